# Whatever happens to the process, it comes back by itself, and disarmed.
is_new() { [ "$(pid_of)" != "$1" ] && is_state active; }
came_back() { # came_back NAME PID RESTARTS
    ok "$1: restarted" wait_for 20 is_new "$2"
    is "$1: restarts" "$(property NRestarts)" "$3"
    ok "$1: disarmed" stays_disarmed
}

ok "restart while it drives" systemctl restart "$UNIT"
ok "disarmed by that, too" stays_disarmed
ok "armed" run
mark
pid=$(pid_of)
begin=$(date +%s%N)
# Let go of only after the restart: a loop that hangs for good.
./stall "$pid" actd-loop 60 >stall.log &
stall=$!
ok "the loop's thread is stopped" wait_for 5 grep -q stopped stall.log
ok "a loop that hangs gets the process killed" wait_for 10 test ! -d "/proc/$pid"
took=$((($(date +%s%N) - begin) / 1000000))
ok "within 4 s: $took ms" test $took -lt 4000 -a $took -gt 500
wait $stall
ok "by the watchdog" eval 'journalctl -q -u $UNIT --since @$since | grep -q "Watchdog timeout"'
ok "the monitor had cut the output" logged "the monitor cut the output"
came_back "watchdog" "$pid" 1

ok "armed once more" run
pid=$(pid_of)
kill -KILL "$pid"
came_back "killed" "$pid" 2

# What fails again and again is given up, and says so; a person starts it.
storm() {
    for _ in {1..8}; do
        pid=$(pid_of)
        kill -KILL "$pid"
        wait_for 20 eval 'is_new $pid || is_state failed' || return 1
        is_state failed && return
    done
    return 1
}
ok "a storm of restarts is given up" storm
sleep 3
ok "for good" is_state failed
systemctl reset-failed "$UNIT"
ok "until a person starts it" systemctl start "$UNIT"
ok "disarmed" stays_disarmed

# A refused configuration stays refused: no restart, and the log names the place.
printf 'instance: broken\nno_such_key: 1\n' >/etc/actd/broken.yaml
ok "a refused configuration does not start" not systemctl start actd@broken
is "with its exit status" "$(property ExecMainStatus actd@broken)" 78
sleep 1
is "and is not tried again" "$(property NRestarts actd@broken) $(property ActiveState actd@broken)" "0 failed"
ok "the log names the place" eval 'journalctl -q -u actd@broken | grep -q "broken.yaml:2"'
systemctl reset-failed actd@broken
rm /etc/actd/broken.yaml

ok "armed again" run
mark
begin=$(date +%s%N)
ok "stops while it drives" systemctl stop "$UNIT"
took=$((($(date +%s%N) - begin) / 1000000))
ok "within 5 s: $took ms" test $took -lt 5000
is "cleanly" "$(property Result) $(property ExecMainStatus) $(property ActiveState)" "success 0 inactive"
ok "with the arm at rest" logged "arm at rest"
ok "its sockets are gone" test ! -e $RUN
ok "actctl says that nobody is there" ends_with 69 actctl -i $ROBOT status
