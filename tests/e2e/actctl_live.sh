# actctl and a real daemon that drives the simulated arm: what an operator does in a day.
. tests/e2e/lib.sh
mkdir -p "$T/policies"
cp -r config/policies/reach "$T/policies/reach"
cp -r config/policies/reach "$T/policies/again"
cp -r config/policies/reach "$T/policies/broken"
truncate -s -1 "$T/policies/broken/model.safetensors"
chmod -R go-w "$T/policies"
robot_yaml "$T/robot.yaml" \
    "s|^policy:|&\n  precision: int8|; s|$PWD/config/policies/reach|$T/policies/reach|; s|directory: policies  .*|directory: $T/policies|"
export ACTD_SOCKET=$T/run/control
ctl() { "$B/actctl" "$@"; }
mode() { ctl --json status 2>/dev/null | grep -oE '"mode": "[A-Z]+"' | head -n 1 | cut -d'"' -f4; }
is() { [ "$(mode)" = "$1" ]; }
# A swap may be BUSY with the end of the one before, or find no time beside a loaded machine.
answered() { say swap "$1"; [ $? -eq "$2" ]; }
say() { ctl "$@" >"$T/out" 2>&1; }
not_logged() { ! logged "$@"; }
ready_chunk() { say status && not_logged "$T/out" '^chunk .* row '; }

ok "no daemon yet" exit_of 69 "$B/actctl" status
background "$T/sim.log" "$B/actd-sim" --runtime "$T/run" --episodes 50 --seed 3 --control-hz 100
background "$T/actd.log" "$B/actd" run -c "$T/robot.yaml"
actd=$pid
ok "it comes up disarmed, and READY" wait_for 60 is READY
ok "status" exit_of 0 "$B/actctl" status
ok "shows the policy's precision" logged "$T/out" '^policy +reach [(]act, int8[)]'
ok "shows a joint" logged "$T/out" 'shoulder_pan'
ok "policies" exit_of 0 "$B/actctl" policies
ok "which runs" logged "$T/out" '^ *reach  +running'
ok "arm, as soon as it is READY" wait_for 30 say arm
ok "and it drives" wait_for 30 is RUNNING
ok "top, one frame" exit_of 0 "$B/actctl" top
ok "of 24 rows" test "$(wc -l <"$T/out")" = 24
ok "swap" answered again 0
ok "tells the digests" logged "$T/out" '[0-9a-f]{64}'
ok "and from when on it is live" logged "$T/out" '^ *live +from tick [0-9]+'
ok "and it drives still" is RUNNING
ok "in 8 bits, as near to float32 as the first" logged "$T/actd.log" 'policy again: precision int8: furthest from float32 in [a-z_]+, 0.00[0-9]+ rad'
ok "a broken candidate is refused" answered broken 65
ok "naming the file" logged "$T/out" 'model.safetensors'
ok "and that the arm goes on" logged "$T/out" '^actctl: the running policy goes on$'
ok "swap --back" answered --back 0
ok "metrics" exit_of 0 "$B/actctl" metrics
ok "know of the swaps" logged "$T/out" '^actd_.*swap.* 2'
ok "instruct is not supported" exit_of 1 "$B/actctl" instruct "pick it up"
ok "record" exit_of 0 "$B/actctl" record start
ok "a mark" exit_of 0 "$B/actctl" record mark "before the stop"
ok "and no more" exit_of 0 "$B/actctl" record stop
ok "estop" exit_of 0 "$B/actctl" estop
ok "latches" wait_for 5 is ESTOP
ok "so that arm is refused" exit_of 1 "$B/actctl" arm
rested() { say reset; }
ok "reset, once it is at rest" wait_for 5 rested
ok "opens it" wait_for 30 is READY
ok "a chunk there may be is not followed" ready_chunk
ok "a swap while the arm rests" answered again 0
ok "is in use, and does not drive" logged "$T/out" '^ *in use +from tick'
ok "no word of driving" not_logged "$T/out" 'drives|live'
ok "doctor asks the daemon" bash -c '"$0" --json doctor | grep -q SCHED_' "$B/actctl"
kill -TERM "$actd"; wait "$actd"
ok "the daemon ends at rest" test $? -eq 0
ok "and is gone" exit_of 69 "$B/actctl" status
