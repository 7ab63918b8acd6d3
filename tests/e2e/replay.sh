# What a real run did comes out of its recording, byte for byte: policy, loop and commands, over hot
# swaps and an emergency stop; and what was recorded can be asked otherwise.
. tests/e2e/lib.sh
mkdir -p "$T/policies"
cp -r config/policies/reach "$T/policies/again"
# What an inference takes under a sanitizer, and a busy machine's pauses, are no faults here.
robot_yaml "$T/robot.yaml" "s|directory: policies |directory: $T/policies |"
cat >>"$T/robot.yaml" <<END

record: {mode: always, directory: $T/log}
deadlines: {chunk_latency_ms: 60000, wakeup_ms: 1000, tick_ms: 1000}
safety: {hold_ms: 800, tick_gap_ms: 2000}
END
ctl() { "$B/actctl" --socket "$T/run/control" "$@"; }
replay() { "$B/actd" replay "$@"; }
json() { # json EXPRESSION about r: what --json said
    /usr/bin/python3 -c 'import json, sys; r = json.load(open(sys.argv[1])); sys.exit(not eval(sys.argv[2]))' \
        "$T/out" "$1" || { echo "# not so: $1"; head -c 3000 "$T/out" | sed 's/^/# /'; return 1; }
}

background "$T/sim.log" "$B/actd-sim" --runtime "$T/run" --episodes 0
background "$T/actd.log" "$B/actd" run -c "$T/robot.yaml" --arm
actd=$pid
ok "a run" wait_for 60 logged "$T/actd.log" 'RUNNING'
sleep 2
# On a machine so busy that the simulator is late, the arm stops instead: as good a run to replay.
ctl swap again --force >/dev/null 2>&1 || echo "# no swap: $(ctl status | head -1)"
sleep 1
ctl swap --back --force >/dev/null 2>&1 || echo "# no swap back: $(ctl status | head -1)"
sleep 1
ok "an emergency stop" exit_of 0 ctl estop
sleep 1
kill -TERM "$actd"
wait "$actd"
ok "left one whole file" test "$(find "$T/log" -name '*.mcap' | wc -l)" = 1
log=$(find "$T/log" -name '*.mcap')

# ---- verify ----------------------------------------------------------------------------------
ok "the run is equal to itself" exit_of 0 replay verify "$log" --json -o "$T/once.mcap" --strict
ok "bit by bit" json 'r["equal"] and r["bits"] and r["first_difference"] is None'
ok "all of it" json 'all(r[k]["not_compared"] == 0 for k in ("inputs", "chunks", "ticks", "commands"))'
ok "which is a lot" json 'r["chunks"]["compared"] > 10 and r["ticks"]["compared"] > 400 and r["commands"]["compared"] > 400'
ok "without a gap" json 'r["gaps"] == 0 and r["unreadable"] == 0 and r["keyframes"] == 0'
ok "so is what came out" exit_of 0 replay verify "$T/once.mcap" --json -o "$T/twice.mcap"
ok "all of it, too" json 'r["equal"] and all(r[k]["not_compared"] == 0 for k in ("inputs", "chunks", "ticks", "commands"))'
ok "which comes out as it was" cmp "$T/once.mcap" "$T/twice.mcap"
ok "without the policy" exit_of 0 replay verify "$log" --no-policy
ok "people are told" logged "$T/out" 'EQUAL: what came out is what was recorded, byte for byte'
ok "and how fast it was" logged "$T/out" 'times as fast as it was'
echo "# $(grep 'times as fast' "$T/out")"
fast() { [ "${SAN:-0}" = 1 ] || [ "$(grep -oE '[0-9]+ times as fast' "$T/out" | cut -d' ' -f1)" -ge 20 ]; }
ok "20 times at least" fast
ok "with the directory of the run" exit_of 0 replay verify "$T/log" --no-policy -q
ok "with a page about it" exit_of 0 replay verify "$log" --no-policy --report "$T/run.html"
ok "which is one" logged "$T/run.html" '</html>'
cp "$log" "$T/kept.mcap"
ok "not written over what is read" exit_of 73 replay verify "$log" --no-policy -q -o "$log"
ok "nor by the page" exit_of 73 replay verify "$log" --no-policy -q --report "$log"
ok "nor by the page alone" exit_of 73 replay report "$log" -o "$log"
ok "nor by that of an evaluation" exit_of 73 replay eval "$log" --policy config/policies/reach --report "$log"
cp "$log" "$T/unfinished.mcap.part"
ok "nor when it is unfinished" exit_of 0 replay verify "$T/unfinished.mcap.part" --no-policy -q -o "$T/unfinished.mcap"
ok "it is as it was" cmp -s "$log" "$T/kept.mcap"
ok "this one too" cmp -s "$T/unfinished.mcap.part" "$T/kept.mcap"
rm "$T/unfinished.mcap" "$T/unfinished.mcap.part" "$T/kept.mcap"
mkfifo "$T/fifo"
ok "nor a fifo replaced" exit_of 73 timeout 60 "$B/actd" replay verify "$log" --no-policy -q -o "$T/fifo"

# ---- a policy that is not the one ------------------------------------------------------------
mkdir -p "$T/other/reach" "$T/other/again"
cp -r config/policies/reach/. "$T/other/reach"
cp -r config/policies/reach/. "$T/other/again"
sed -i 's/"n_action_steps"/ "n_action_steps"/' "$T/other/reach/config.json"
sed -i 's/"n_action_steps"/ "n_action_steps"/' "$T/other/again/config.json" # other bytes: another digest
ok "chunks of another policy are taken as recorded" exit_of 0 replay verify "$log" --policy-root "$T/other"
ok "which is said" logged "$T/out" 'chunks of policy [12] were taken as recorded: .*another policy than the one that was recorded'
ok "or refused" exit_of 1 replay verify "$log" --policy-root "$T/other" --strict
ok "a root without policies" exit_of 0 replay verify "$log" --policy-root "$T/none"

# ---- what if ---------------------------------------------------------------------------------
sed -E 's/velocity: [0-9.]+/velocity: 0.3/' "$T/robot.yaml" >"$T/slow.yaml"
ok "slower limits" exit_of 0 replay what-if "$log" --config "$T/slow.yaml" --no-policy --json
ok "act more often" json 'sum(j["limited_now"] for j in r["what_if"]["joints"]) > 2 * sum(j["limited_then"] for j in r["what_if"]["joints"])'
ok "and lead elsewhere" json 'max(j["command"]["largest"] for j in r["what_if"]["joints"]) > 0.01'
ok "the same limits" exit_of 0 replay what-if "$log" --config "$T/robot.yaml" --no-policy --json
ok "lead nowhere else" json 'max(j["command"]["largest"] for j in r["what_if"]["joints"]) == 0'
ok "the same policy" exit_of 0 replay what-if "$log" --policy config/policies/reach -o "$T/if.mcap"
ok "is told to people" logged "$T/out" 'shoulder_pan'
ok "open loop, they are told" logged "$T/out" 'Open loop: what was measured stays as it was'
ok "as a log that can be replayed" exit_of 0 replay verify "$T/if.mcap" --no-policy
ok "another robot's configuration is refused" exit_of 78 replay what-if "$log" --config <(sed 's/shoulder_pan/shoulder_pin/' "$T/robot.yaml")

# ---- from the middle of a run, and cut short by a kill ---------------------------------------
sed -i -e 's/mode: always/mode: off/' -e 's/^chunks:/&\n  horizon_rows: 12/' "$T/robot.yaml"
mv "$log" "$T/first.mcap"
log=$T/first.mcap
background "$T/actd.log" "$B/actd" run -c "$T/robot.yaml" --arm
actd=$pid
ok "another run" wait_for 60 logged "$T/actd.log" 'RUNNING'
ok "recorded from here on" exit_of 0 ctl record start
sleep 3
kill -KILL "$actd"
wait "$actd" 2>/dev/null
part=$(find "$T/log" -name '*.mcap.part')
ok "until it was killed" test -s "$part"
ok "what there is is equal" exit_of 0 replay verify "$part" --json
ok "bit by bit, from a state on" json 'r["equal"] and r["bits"] and r["keyframes"] == 1 and r["gaps"] == 0'
ok "which comes soon" json 'r["ticks"]["compared"] > 100 and r["ticks"]["not_compared"] < 20'
ok "chunks, too" json 'r["chunks"]["compared"] > 2 and r["chunks"]["not_compared"] <= 2'
rows() { # rows LOG N: has its first chunk N rows?
    "$B/actd" log cat "$1" --topic /policy/chunk --limit 1 >"$T/chunk.json"
    logged "$T/chunk.json" "\"rows\": ?$2[,}]"
}
ok "which have the rows of the horizon" rows "$part" 12
sed 's/horizon_rows: 12/horizon_rows: 20/' "$T/robot.yaml" >"$T/longer.yaml"
ok "a longer one" exit_of 0 replay what-if "$part" --config "$T/longer.yaml" -o "$T/longer.mcap"
ok "has more" rows "$T/longer.mcap" 20

# ---- what is no recording --------------------------------------------------------------------
ok "no file" exit_of 66 replay verify "$T/none.mcap"
ok "not MCAP" exit_of 65 replay verify "$T/robot.yaml"
ok "no file named" exit_of 64 replay verify
ok "no use of that name" exit_of 64 replay verfy "$log"
ok "what-if wants to know what" exit_of 64 replay what-if "$log"
ok "help" exit_of 0 replay verify --help
head -c $(($(stat -c %s "$log") * 2 / 3)) "$log" >"$T/cut.mcap.part"
ok "a file that was cut short" exit_of 0 replay verify "$T/cut.mcap.part" --no-policy --json
ok "as far as it goes" json 'r["equal"] and r["ticks"]["compared"] > 100 and r["damage"]'
ok "a place for the output that is none" exit_of 73 replay verify "$log" --no-policy -o "$T/none/x.mcap"
echo "1..$n"
