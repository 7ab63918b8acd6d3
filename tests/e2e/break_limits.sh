# What a poor or careless surrounding must not do to the daemon: hang it, crash it, or make it
# write into the wrong file.
. tests/e2e/lib.sh
robot_yaml "$T/robot.yaml"

ends() { # ends PID STATUS: ends within 8 s with that status
    wait_for 8 gone "$1" || { echo "# still running"; return 1; }
    wait "$1"
    local got=$?
    [ $got -eq "$2" ] || { echo "# exit $got, expected $2"; return 1; }
}

# Standard error is a pipe that is full and that nobody reads.
mkfifo "$T/pipe"
sleep 60 <"$T/pipe" &
pids+=($!)
"$B/actd" run -c "$T/robot.yaml" 2>"$T/pipe" &
actd=$!
pids+=("$actd")
wait_for 20 test -S "$T/run/status"
timeout 2 dd if=/dev/zero of="$T/pipe" bs=4096 count=64 2>/dev/null
sleep 2.5
kill -TERM "$actd"
ok "ends on SIGTERM although nobody reads its log" ends "$actd" 0

# Standard streams closed: the first files opened must not take their numbers.
"$B/actd" run -c "$T/robot.yaml" --seconds 2 <&- >&- 2>&- &
actd=$!
pids+=("$actd")
wait_for 20 test -S "$T/run/status"
for i in 0 1 2; do readlink "/proc/$actd/fd/$i"; done >"$T/fds"
ok "closed standard streams are filled" test "$(sort -u "$T/fds")" = /dev/null
ok "and it runs to its end" ends "$actd" 0

ok "a listing that cannot be printed is a failure" exit_of 74 \
    sh -c "'$B/actd' inspect config/policies/reach >/dev/full"

# Frames of another size are refused; the end looks at those counters, too.
background "$T/actd.log" "$B/actd" run -c "$T/robot.yaml"
actd=$pid
background "$T/sim.log" "$B/actd-sim" --runtime "$T/run" --episodes 1 --camera front=64x48
sim=$pid
ok "says why frames are refused" wait_for 30 logged "$T/actd.log" 'frames refused .*64x48, but the policy takes'
kill -TERM "$actd"
ok "and ends cleanly after that" ends "$actd" 0
kill -TERM "$sim"
ends "$sim" 0
ok "the simulator leaves no socket" test ! -e "$T/run/sim.status"

# Two of everything.
background "$T/sim.log" "$B/actd-sim" --runtime "$T/run" --episodes 0
sim=$pid
wait_for 20 test -S "$T/run/sim.status"
ok "a second simulator on the same directory is refused" exit_of 1 \
    "$B/actd-sim" --runtime "$T/run" --episodes 1
kill -TERM "$sim"
ends "$sim" 0
background "$T/actd.log" "$B/actd" run -c "$T/robot.yaml"
actd=$pid
wait_for 20 test -S "$T/run/status"
ok "a demo on another daemon's directory is refused" exit_of 69 \
    "$B/actd-demo" -c "$T/robot.yaml" -n 1 -o "$T/demo"
kill -TERM "$actd"
ends "$actd" 0

robot_yaml "$T/cpu.yaml" 's|^  rate_hz: 100 .*|  rate_hz: 100\n  cpu: 1000|'
ok "check refuses a core that is not there" exit_of 78 "$B/actd" check -c "$T/cpu.yaml"
ok "so does run" exit_of 78 "$B/actd" run -c "$T/cpu.yaml"
robot_yaml "$T/gap.yaml" 's|^instance: .*|safety: {tick_gap_ms: 10}\n&|'
ok "a tick gap of one period is refused" exit_of 78 "$B/actd" check -c "$T/gap.yaml"
ok "by its name" logged "$T/out" 'safety\.tick_gap_ms'

# AddressSanitizer needs terabytes of addresses.
if [ "${SAN:-0}" != 1 ]; then
    ok "too little address space is refused, not waited for" exit_of 71 \
        timeout 20 prlimit --as=120000000 "$B/actd" check -c "$T/robot.yaml"
    ok "saying who needs how much" logged "$T/out" 'MiB'
    ok "so are too few descriptors" exit_of 69 \
        timeout 20 prlimit --nofile=12 "$B/actd" run -c "$T/robot.yaml"
fi
