# The way to the rest pose: slow, once, and only with a rest pose; and what a fault leaves behind.
. tests/e2e/lib.sh
robot_yaml "$T/robot.yaml" 's/home: 0.0/home: 0.25/'
simulate() {
    background "$T/sim.log" "$B/actd-sim" --runtime "$T/run" --episodes 50 --seed 3 --control-hz 100
    sim=$pid
}
end_sim() { kill -TERM "$sim"; wait "$sim" 2>/dev/null; }

simulate
ok "--home ends by itself" exit_of 0 "$B/actd" run -c "$T/robot.yaml" --home
ok "it went from READY" logged "$T/out" 'READY -> HOMING'
ok "to rest" logged "$T/out" 'HOMING -> DISARMING$'
ok "and says so" logged "$T/out" 'ends on its arrival at the rest pose, arm at rest'
background "$T/watch.log" "$B/actd" run -c "$T/robot.yaml"
actd=$pid
ok "a daemon that only watches comes up" wait_for 30 logged "$T/watch.log" ' READY'
kill -TERM "$actd"; wait "$actd"
end_sim
ok "no evidence is left of a run without a fault" test -z "$(find "$T/state" -name '*.csv')"

robot_yaml "$T/no-home.yaml" 's/, home: 0.0//'
ok "without a rest pose it is refused" exit_of 78 "$B/actd" run -c "$T/no-home.yaml" --home
ok "naming what is missing" logged "$T/out" 'rest pose: write .home. for every joint'
ok "--arm and --home are not for both" exit_of 64 "$B/actd" run -c "$T/robot.yaml" --home --arm
ok "and not for a service manager" env NOTIFY_SOCKET=@nobody bash -c \
    '"$0" run -c "$1" --home >/dev/null 2>&1; [ $? -eq 64 ]' "$B/actd" "$T/robot.yaml"

simulate
background "$T/actd.log" "$B/actd" run -c "$T/robot.yaml" --arm
actd=$pid
ok "armed" wait_for 40 logged "$T/actd.log" ' RUNNING'
sleep 1
kill -STOP "$sim"
ok "a fault stops the arm" wait_for 10 logged "$T/actd.log" ' STOPPED'
ok "the log says where the evidence is" wait_for 5 logged "$T/actd.log" 'last 5 s before the fault are in .*-JOINTS_STALE.csv'
csv=$(find "$T/state" -name 'blackbox-e2e-*-JOINTS_STALE.csv' | sort | head -n 1)
ok "which is there, one line per tick" test "$(wc -l <"$csv")" -gt 150
ok "with a header" bash -c 'head -n 1 "$0" | grep -q "^tick,.*mode.*reason.*shoulder_pan.measured"' "$csv"
ok "up to the stop" bash -c 'tail -n 1 "$0" | grep -qE "STOPP(ING|ED).*JOINTS_STALE"' "$csv"
rest() { wait_for 5 bash -c 'tail -qn 1 "$0"/actd/e2e/*.csv | grep -q "STOPPED.*JOINTS_STALE"' "$T/state"; }
ok "and another one to the end of the braking" rest
ok "not for everybody to read" test "$(stat -c %a "$csv")" = 640
kill -CONT "$sim"
kill -TERM "$actd"; wait "$actd"
ok "exit 0" test $? -eq 0
end_sim
