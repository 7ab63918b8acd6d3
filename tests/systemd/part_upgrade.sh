# The same programs under a higher version number.
later() { # later PACKAGE: its file
    local tree=/tmp/later.$1
    dpkg-deb -R "$1"_*.deb "$tree"
    sed -i -e 's/^Version: .*/&+later/' -e 's/actd (= \(.*\)),/actd (= \1+later),/' "$tree/DEBIAN/control"
    dpkg-deb -Znone -b "$tree" "/tmp/$1.deb" >/dev/null
    rm -r "$tree"
    echo "/tmp/$1.deb"
}
packages="$(later actd) $(later actd-sim)"
cp /etc/actd/$ROBOT.yaml /etc/actd/idle.yaml # a robot that does not run
ok "armed" run
pid=$(pid_of)
mark
# shellcheck disable=SC2086
ok "an upgrade while it drives" dpkg -i $packages
ok "is an upgrade" eval 'dpkg-query -W -f "\${Version}" actd | grep -q "+later$"'
ok "the new one runs" eval '[ "$(pid_of)" != '"$pid"' ] && is_state active'
ok "the old one had brought the arm to rest" logged "arm at rest"
ok "disarmed" stays_disarmed
is "what did not run does not run now" "$(property ActiveState actd@idle)" inactive
ok "what was changed in the configuration is kept" grep -q '^deadlines:' /etc/actd/$ROBOT.yaml
