# What the daemon does when the robot's side goes away, and how it ends.
. tests/e2e/lib.sh
robot_yaml "$T/robot.yaml"
start() {
    background "$T/actd.log" "$B/actd" run -c "$T/robot.yaml" "$@"
    actd=$pid
    background "$T/sim.log" "$B/actd-sim" --runtime "$T/run" --episodes 50 --seed 3 --control-hz 100
    sim=$pid
}

start
ok "comes up READY without being armed" wait_for 30 logged "$T/actd.log" ' READY'
status_true() {
    mkdir -p "$T/py"
    protoc -Iproto --python_out="$T/py" proto/actd/v1/*.proto &&
        PYTHONPATH=$T/py PYTHONDONTWRITEBYTECODE=1 /usr/bin/python3 tests/e2e/status.py "$T/run" >"$T/status.log" 2>&1 ||
        { sed 's/^/# /' "$T/status.log"; return 1; }
}
ok "its status is true" status_true
ok "and stays there: a start never moves the robot" test -z "$(grep -E 'APPROACH|RUNNING' "$T/actd.log")"
ok "a second daemon on the same sockets is refused" exit_of 69 "$B/actd" run -c "$T/robot.yaml"
ok "naming what is in use" logged "$T/out" "$T/run"
kill -TERM "$actd"
ok "ends on SIGTERM" wait_for 10 gone "$actd"
wait "$actd"
ok "with exit 0" test $? -eq 0
kill -TERM "$sim"
wait "$sim" 2>/dev/null

start --arm
ok "arms when told to" wait_for 40 logged "$T/actd.log" ' RUNNING'
kill -STOP "$sim"
ok "the robot's side stops: it says which stream and since when" wait_for 10 logged "$T/actd.log" 'RUNNING -> HOLD \(JOINTS_STALE\): .*joint state is [0-9]+ ms old'
ok "STOPPED" wait_for 10 logged "$T/actd.log" ' STOPPED'
kill -CONT "$sim"
sleep 2
ok "latched: it stays STOPPED when the streams return" test -n "$(grep "| commands" "$T/actd.log" | tail -n 1 | grep STOPPED)"
kill -TERM "$actd"
ok "still ends on SIGTERM" wait_for 10 gone "$actd"
kill -TERM "$sim"
wait "$sim" 2>/dev/null

start --arm
ok "arms again after a restart only because it was told to" wait_for 40 logged "$T/actd.log" ' RUNNING'
kill -KILL "$actd"
sleep 1
kill -TERM "$sim"
wait "$sim" "$actd" 2>/dev/null
ok "kill -9: the arm stopped when the time to live ran out" logged "$T/sim.log" ' [1-9][0-9]* stops since a command.s time to live ran out'
background "$T/sim.log" "$B/actd-sim" --runtime "$T/run" --episodes 50 --seed 3 --control-hz 100
background "$T/again.log" "$B/actd" run -c "$T/robot.yaml"
again=$pid
ok "a new daemon takes over the stale sockets" wait_for 30 logged "$T/again.log" ' READY'
sleep 1
ok "disarmed" test -z "$(grep -E 'APPROACH|RUNNING' "$T/again.log")"
kill -TERM "$again"
wait "$again"
ok "exit 0" test $? -eq 0
