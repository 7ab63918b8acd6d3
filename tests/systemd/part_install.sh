# Installing starts nothing; enabling starts the robot; READY when it is usable.
ok "the packages install" dpkg -i actd_*.deb actd-sim_*.deb
is "no robot runs because of that" "$(systemctl list-units --no-legend --all 'actd@*')" ""
is "what systemd says of the unit" "$(systemd-analyze verify --man=no "$UNIT" 2>&1 | grep actd)" ""
is "/etc/actd" "$(mode /etc/actd)" "755 root:root"
is "/var/lib/actd" "$(mode /var/lib/actd)" "755 root:root"
is "/var/lib/actd/policies" "$(mode /var/lib/actd/policies)" "755 root:root"
is "the account has no shell" "$(getent passwd actd | cut -d: -f7)" "/usr/sbin/nologin"

useradd -G actd-clients robot
useradd -G actd-clients viewer
useradd -G actd-clients,actd-operators pilot
useradd outsider

# How busy this computer is must not decide what is tested here: a loop that is not granted FIFO and
# does not get a core for 100 ms is stopped by its monitor, and an inference that comes too late
# stops the arm. (Niceness counts within a session only, where the kernel groups by session.)
mkdir -p /etc/systemd/system/actd@.service.d
cat >/etc/systemd/system/actd@.service.d/first.conf <<'END'
[Service]
Nice=-20
ExecStartPost=+-/bin/sh -c '[ ! -e /proc/$MAINPID/autogroup ] || echo -20 >/proc/$MAINPID/autogroup'
END
cat >>/etc/actd/$ROBOT.yaml <<END

deadlines: {wakeup_ms: 500, tick_ms: 500, chunk_latency_ms: 5000, sensor_age_ms: 2000}
END
systemctl daemon-reload
ok "enable --now returns when the robot is READY" systemctl enable --now "$UNIT"
if ! is "active" "$(property ActiveState)" active; then
    log | sed 's/^/# /'
    exit
fi
ok "and enabled" systemctl is-enabled "$UNIT"
ok "the log says what was granted" wait_for 5 logged '^loop: SCHED_'
ok "status answers" actctl -i $ROBOT status
ok "without a robot it waits" wait_for 5 is_mode WAITING
ok "STATUS= says so" wait_for 5 eval 'property StatusText | grep -q WAITING'
