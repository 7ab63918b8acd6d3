# What the daemon senses, thinks and does becomes files: on demand, always, and around a fault.
if ! /usr/bin/python3 -c 'import google.protobuf' 2>/dev/null; then
    echo "ok 1 - record # SKIP needs python3-protobuf (make deps)"
    exit 0
fi
. tests/e2e/lib.sh
export PYTHONPATH=$T/py
mkdir -p "$T/py" "$T/policies"
cp -r config/policies/reach "$T/policies/again"
protoc -Iproto --python_out="$T/py" proto/actd/v1/{joint_command,record}.proto proto/foxglove/Log.proto
# What an inference takes under a sanitizer, and a busy machine's pauses, are no faults here.
configure() { # configure "KEY: VALUE, …": writes $T/robot.yaml with a record section of them
    robot_yaml "$T/robot.yaml" "s|directory: policies |directory: $T/policies |"
    printf '\nrecord: {%s, compression: none}\n' "$1" >>"$T/robot.yaml"
    printf '\ndeadlines: {chunk_latency_ms: 60000, wakeup_ms: 1000, tick_ms: 1000}\n' >>"$T/robot.yaml"
    printf 'safety: {hold_ms: 800, tick_gap_ms: 2000}\n' >>"$T/robot.yaml"
}
ctl() { "$B/actctl" --socket "$T/run/control" "$@"; }
simulate() {
    background "$T/sim.log" "$B/actd-sim" --runtime "$T/run" --episodes 0
    sim=$pid
}
start() { # start OPTION…
    background "$T/actd.log" "$B/actd" run -c "$T/robot.yaml" "$@"
    actd=$pid
}
stop() { kill -TERM "$actd"; wait "$actd"; }
shows() { ctl status >"$T/status" && grep -qE "$1" "$T/status"; }
files() { find "$T/$1" -name "$2" 2>/dev/null | sort; }
count() { [ "$(files "$1" "$2" | wc -l)" "$3" "$4" ]; }
has() { /usr/bin/python3 tests/e2e/record.py "$@"; }

# ---- on demand -------------------------------------------------------------------------------
configure "mode: off, directory: $T/hand"
ok "check says that nothing is recorded" exit_of 0 "$B/actd" check -c "$T/robot.yaml"
ok "and where it would be" logged "$T/out" "record +off until actctl record start; $T/hand"
simulate
start
ok "a daemon" wait_for 60 logged "$T/actd.log" ' READY'
ok "stop without a start is refused" exit_of 1 ctl record stop
ok "with the remedy" logged "$T/out" 'actctl record start'
ok "a mark too" exit_of 1 ctl record mark nothing
ok "with the remedy too" logged "$T/out" 'actctl record start'
ok "a mark without words is a usage error" exit_of 64 ctl record mark
ok "a status without a word of it" bash -c '! grep -q "^record" "$0"' <(ctl status)
ok "nothing was made" test ! -e "$T/hand"
ok "start" exit_of 0 ctl record start
ok "says where" logged "$T/out" "$T/hand"
ok "status shows the file" wait_for 10 shows "^record +on, mode OFF; 1 file"
ok "by its name" shows "file +$T/hand/e2e-.*.mcap.part"
ok "top shows that it records" bash -c '"$0" --socket "$1" top | grep -q "REC"' "$B/actctl" "$T/run/control"
ok "a second start says so" exit_of 1 ctl record start
ok "already" logged "$T/out" 'already'
sleep 1
ok "a mark" exit_of 0 ctl record mark 'the cup slipped: 3 °'
ok "another policy" exit_of 0 ctl swap again --force
sleep 0.6
ok "Prometheus sees it" bash -c '"$0" --socket "$1" metrics | grep -q "^actd_record_active{.*} 1"' "$B/actctl" "$T/run/control"
ok "stop" exit_of 0 ctl record stop
ok "leaves a whole file" wait_for 10 count hand '*.mcap' -eq 1
ok "and no part of one" count hand '*.part' -eq 0
ok "status says so" wait_for 5 shows "^record +off, mode OFF; 1 file"
has $(files hand '*.mcap') -- \
    "('mark', 'the cup slipped: 3 °') in events" \
    "any('RECORD_MARK by user' in t for n, t in events)" \
    "len(topics['/tick']) > 100 and len(topics['/command']) > 100 and len(topics['/joint_states']) > 100" \
    "len(topics['/camera/front']) > 20 and all(d.find(b'\xff\xd8\xff') > 0 for _, d in topics['/camera/front'])" \
    "[t.tick for t in ticks] == list(range(ticks[0].tick, ticks[-1].tick + 1)) or len({t.tick for t in ticks}) == len(ticks)" \
    "[i.number for i in inputs] == list(range(inputs[0].number, inputs[0].number + len(inputs)))" \
    "[(s.generation, s.name) for s in seats] == [(1, 'reach'), (2, 'again')] and 'rate_hz' in seats[1].sidecar" \
    "facts['instance'] == 'e2e' and 'mode: off' in facts['config'] and len(facts['exe_sha256']) == 64" \
    "facts['config_sha256'] == '$(sha256sum <"$T/robot.yaml" | cut -d' ' -f1)'" \
    "facts['weights_sha256'] == '$(sha256sum <config/policies/reach/model.safetensors | cut -d' ' -f1)'" \
    "facts['policy_sha256'] == seats[0].digest and '-ffp-contract=off' in facts['flags']" \
    "facts['joints'].split() == ['shoulder_pan', 'shoulder_lift', 'elbow_flex', 'wrist_flex', 'wrist_roll', 'gripper']" \
    "facts['cameras'].split() == ['front', 'wrist'] and facts['config_file'].startswith('/')" \
    "len(topics['/keyframe']) >= 2"
ok "start again" exit_of 0 ctl record start
sleep 1
stop
ok "the end of the daemon ends the file" count hand '*.mcap' -eq 2
has $(files hand '*.mcap' | tail -1) -- "any('ends on Terminated' in t for n, t in events)" "seats[-1].name == 'again'"

# ---- always ----------------------------------------------------------------------------------
configure "mode: always, directory: $T/always"
start
ok "always" wait_for 60 logged "$T/actd.log" ' READY'
ok "says so" logged "$T/actd.log" "record: always, in $T/always"
ok "start is not needed" exit_of 1 ctl record start
kill -KILL "$actd"
wait "$actd" 2>/dev/null
ok "killed, it leaves a part" count always '*.part' -eq 1
start
ok "the next one" wait_for 60 logged "$T/actd.log" ' READY'
ok "makes a whole file of it" wait_for 10 count always '*.mcap' -ge 1
sleep 0.5
stop
ok "so that there are two" count always '*.mcap' -eq 2
has $(files always '*.mcap' | tail -1) -- "inputs[0].number == 1" "ticks[0].last_work_ns < 0" \
    "any('INIT -> WAITING' in t for n, t in events)"

# ---- around a fault --------------------------------------------------------------------------
configure "mode: trigger, directory: $T/trigger, before_s: 3, after_s: 1"
start --arm
ok "armed" wait_for 90 logged "$T/actd.log" ' RUNNING'
ok "it waits" wait_for 5 shows '^record +off until a fault or a mark, mode TRIGGER; 0 files.* in memory'
sleep 3
ok "who stops the arm himself" exit_of 0 ctl stop
sleep 1
ok "is no fault" count trigger '*.mcap*' -eq 0
ok "reset" exit_of 0 ctl reset
ok "and on" wait_for 10 shows 'READY'
arms() { ctl arm >/dev/null 2>&1; sleep 0.3; shows ' RUNNING'; } # streams may be late on a busy machine
ok "armed again" wait_for 30 arms
kill -STOP "$sim"
ok "the joints fall silent" wait_for 10 logged "$T/actd.log" 'STOPP(ING|ED) .(JOINTS|CAMERA)_STALE'
ok "a file is written" wait_for 15 count trigger '*-fault.mcap' -ge 1
kill -CONT "$sim"
has $(files trigger '*-fault.mcap' | head -1) -- \
    "any(t.reason in (3, 5) and t.mode in (7, 8) for t in ticks)" \
    "any(t.mode == 5 for t in ticks)" \
    "3 <= span_s < 9" \
    "any('_STALE' in t for n, t in events)"
stop
ok "the daemon ends well" test $? -eq 0

# ---- where nothing can be written ------------------------------------------------------------
configure "mode: always, directory: /proc/actd/record"
start --arm
ok "a directory that can not be does not keep it from running" wait_for 90 logged "$T/actd.log" ' RUNNING'
ok "the log says which, and what to do" logged "$T/actd.log" 'warning: recording: .*/proc/actd/record.*;'
ok "and the status" shows '/proc/actd/record'
ok "top too" bash -c '"$0" --socket "$1" top | grep -q "record fails"' "$B/actctl" "$T/run/control"
stop
ok "and it ends well" test $? -eq 0
kill -TERM "$sim"
wait "$sim" 2>/dev/null
