# Removing stops it and leaves configuration and state; purging leaves nothing.
systemctl stop robot
ok "remove" dpkg -r actd-sim actd
is "has stopped it" "$(property ActiveState)" inactive
ok "programs and unit are gone" test ! -e /usr/bin/actd -a ! -e /usr/bin/actctl -a ! -e '/lib/systemd/system/actd@.service'
ok "configuration and policies are there" test -e /etc/actd/$ROBOT.yaml -a -d /var/lib/actd/policies/second
ok "purge" dpkg -P actd-sim actd
is "nothing is left" "$(find /etc /usr /lib/systemd /var /run -xdev \( -name 'actd*' -o -name 'actctl*' \) \
    ! -name 'actd?test*' ! -path '/usr/src/*' ! -path '/var/cache/man/*' 2>/dev/null)" ""
is "no unit either" "$(systemctl list-units --all --no-legend 'actd@*')" ""
ok "dpkg knows it no more" not dpkg-query -W actd
