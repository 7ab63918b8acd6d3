# actd log: what is in a recording, saving a damaged one, a part of one, its messages as text.
. tests/e2e/lib.sh
if ! /usr/bin/python3 -c 'import google.protobuf' 2>/dev/null; then
    echo "ok 1 - log tool # SKIP needs python3-protobuf (make deps)"
    exit 0
fi
mkdir -p "$T/py"
protoc -Iproto -I/usr/include --python_out="$T/py" proto/actd/v1/*.proto proto/foxglove/*.proto || exit 1
export PYTHONDONTWRITEBYTECODE=1
/usr/bin/python3 tests/e2e/log_tool_make.py "$T" "$T/py" || exit 1
A=$B/actd
json() { # json FILE EXPRESSION: of j, what is in the file; one line of it, or all
    /usr/bin/python3 -c '
import json, sys
text = open(sys.argv[1]).read()
try:
    j = json.loads(text)
except ValueError:
    j = [json.loads(line) for line in text.splitlines()]
sys.exit(0 if eval("(" + sys.argv[2] + ")") else print("#", str(j)[:600]) or 1)' "$@"
}

ok "help" exit_of 0 "$A" log --help
for c in info recover cut cat; do
    ok "$c is in it" logged "$T/out" "^  $c "
done
for c in info recover cut cat; do
    ok "$c --help" exit_of 0 "$A" log $c --help
    ok "$c alone is a usage error" exit_of 64 "$A" log $c
    ok "$c with a strange option too" exit_of 64 "$A" log $c --strange "$T/run"
done
ok "no such command" exit_of 64 "$A" log mend

ok "info" exit_of 0 "$A" log info "$T/run"
for want in '12\.0 s|11\.9 s' '308 messages in 2 files' '^  demo-0001.mcap ' '^  demo-0002-fault.mcap .*whole' \
    '^  /tick +120 +10\.00 .*actd.v1.Tick' '/camera/front +60 +5\.[0-9]+ +.*foxglove.CompressedImage' \
    'version +9\.9' 'joints +one two' 'policy 1 +reach abababab' 'ticks +120' '2\.000 s +info +mark +now' \
    '8\.500 s +fatal +fault +the elbow' \
    '9\.000 s +warning +record +could not keep up: lost 7 tick records' 'and 28 more'; do
    ok "info says $want" logged "$T/out" "$want"
done
ok "info --json" exit_of 0 "$A" log info --json "$T/run"
ok "is right" json "$T/out" 'j["messages"] == 308 and not j["damaged"] and j["topics"]["/tick"]["messages"] == 120 and
len(j["files"]) == 2 and j["metadata"]["run_id"] == "r1" and j["policies"][0]["name"] == "reach" and
j["end_ns"] - j["start_ns"] == 11902000000'
ok "info of a torn file" exit_of 1 "$A" log info "$T/torn.mcap.part"
ok "says what, where and the remedy" logged "$T/out" 'damage: .*torn.mcap.part: .*bytes.*only 991 are left'
ok "the remedy" logged "$T/out" 'actd log recover'
ok "info of none" exit_of 66 "$A" log info "$T/none.mcap"
ok "info of something else" exit_of 65 "$A" log info /etc/passwd

ok "cat" exit_of 0 "$A" log cat "$T/run" --topic /tick --from 3 --to 4
ok "decodes a tick" json "$T/out" '[m["message"]["tick"] for m in j] == list(range(30, 40)) and
j[0]["message"]["measured"] == [0.5, "NaN"] and j[0]["message"]["now_ns"] == -30 and
j[0]["message"]["cameras"] == [{"received_ns": 77}] and j[0]["message"]["room"] is True and
j[0]["log_time"] == 1700000003002000000 and isinstance(j[0]["message"]["mode"], str)'
ok "cat of several topics" exit_of 0 "$A" log cat "$T/run" --topic '/camera/*' --topic /events --topic /keyframe --from 8.5
ok "pictures by their size, strange bytes as base64" json "$T/out" '[m["message"]["message"] for m in j
if m["topic"] == "/events"] == ["the elbow is too fast", "could not keep up: lost 7 tick records"] and j[1]["topic"] in ("/camera/front", "/events") and
any(m["topic"] == "/camera/front" and m["message"]["data"] == "5000 bytes" for m in j) and
any(m["topic"] == "/keyframe" and m["bytes"] == 156 and len(m["base64"]) == 208 for m in j) and
any(m["topic"] == "/events" and m["message"]["level"] == "FATAL" for m in j)'
ok "cat is in the order of time" json "$T/out" '[m["log_time"] for m in j] == sorted(m["log_time"] for m in j)'
ok "cat --limit" exit_of 0 "$A" log cat "$T/run" --limit 7
ok "ends there" json "$T/out" 'len(j) == 7'
ok "cat quotes" exit_of 0 "$A" log cat "$T/run" --topic /joint_states --limit 1
ok "names" grep -q '"name":"a\\"b"' "$T/out"
ok "cat --from nonsense" exit_of 64 "$A" log cat "$T/run" --from soon
ok "cat of a torn file" exit_of 1 "$A" log cat "$T/torn.mcap.part" --topic /none

ok "cut" exit_of 0 "$A" log cut "$T/run" --from 5.5 --to 7 -o "$T/cut.mcap"
ok "is a whole file" exit_of 0 "$A" log info --json "$T/cut.mcap"
ok "with the ticks asked for and those from the keyframes on" json "$T/out" 'j["topics"]["/tick"]["messages"] == 20 and
j["topics"]["/tick"]["first_ns"] == 1700000005002000000 and j["files"][0]["whole"]'
ok "keyframes, policy, metadata" json "$T/out" 'j["topics"]["/keyframe"]["first_ns"] == 1700000005000000000 and
j["topics"]["/policy/seat"]["messages"] == 1 and j["metadata"]["base_ns"] == "1700000000000000000"'
ok "and what was seen two seconds before" json "$T/out" 'j["topics"]["/camera/front"]["first_ns"] == 1700000003000000000 and
j["topics"]["/joint_states"]["first_ns"] == 1700000003000000000 and j["end_ns"] < 1700000007000000000'
ok "cut around the fault" exit_of 0 "$A" log cut "$T/run" --around-fault --before 1 --after 0.4 -o "$T/cut.mcap"
ok "says when it was" logged "$T/out" 'fault was at 8\.500 s'
ok "has it" exit_of 0 "$A" log cat "$T/cut.mcap" --topic /events
ok "and only it" json "$T/out" 'j["message"]["name"] == "fault"'
ok "cut of nothing" exit_of 65 "$A" log cut "$T/run" --from 50 --to 60 -o "$T/none.mcap"
ok "leaves nothing" test ! -e "$T/none.mcap"
ok "cut without an output" exit_of 64 "$A" log cut "$T/run" --from 1
ok "cut of both kinds" exit_of 64 "$A" log cut "$T/run" --from 1 --around-fault -o "$T/none.mcap"
ok "no fault, no cut" exit_of 65 "$A" log cut "$T/run/demo-0001.mcap" --around-fault -o "$T/none.mcap"
ok "cut into no directory" exit_of 74 "$A" log cut "$T/run" --from 1 -o "$T/nowhere/x.mcap"

cp "$T/torn.mcap.part" "$T/t.mcap.part"
ok "recover what is torn" exit_of 1 "$A" log recover "$T/t.mcap.part"
ok "says what is lost" logged "$T/out" '1 damaged place, 1000 of [0-9]+ bytes lost'
ok "into its name" exit_of 0 "$A" log info "$T/t.mcap"
ok "and keeps the damaged one" test -e "$T/t.mcap.part.damaged" -a ! -e "$T/t.mcap.part"
ok "recover what was never finished" exit_of 0 "$A" log recover "$T/unfinished.mcap.part"
ok "loses nothing" logged "$T/out" '90 messages in 4 chunks.*nothing was lost'
ok "and does not keep it" test -e "$T/unfinished.mcap" -a ! -e "$T/unfinished.mcap.part"
ok "recover elsewhere" exit_of 1 "$A" log recover "$T/torn.mcap.part" -o "$T/else.mcap"
ok "leaves it" test -e "$T/torn.mcap.part"
cp "$T/torn.mcap.part" "$T/same.mcap"
ok "recover in place" exit_of 1 "$A" log recover "$T/same.mcap"
ok "is whole then" exit_of 0 "$A" log info "$T/same.mcap"
ok "and once more" exit_of 0 "$A" log recover "$T/same.mcap"
ok "was whole" logged "$T/out" 'It was whole'
cp "$T/torn.mcap.part" "$T/same.mcap"
ok "recover in place again" exit_of 1 "$A" log recover "$T/same.mcap"
ok "keeps both" cmp -s "$T/same.mcap.damaged.2" "$T/torn.mcap.part"
ok "what was damaged is kept" cmp -s "$T/same.mcap.damaged" "$T/torn.mcap.part"
ok "recover over itself by name" exit_of 0 "$A" log recover "$T/same.mcap" -o "$T/same.mcap"
echo something else >"$T/other.mcap"
ok "recover what is no recording" exit_of 65 "$A" log recover "$T/other.mcap"
ok "leaves it as it is" grep -q 'something else' "$T/other.mcap"
ok "recover nothing" exit_of 66 "$A" log recover "$T/none.mcap"
ok "recover into no directory" exit_of 74 "$A" log recover "$T/same.mcap" -o "$T/nowhere/x.mcap"

# What is no file is neither waited for nor replaced, and no recording written over.
mkfifo "$T/fifo"
ln -s nothing "$T/loop" && ln -sfn loop "$T/loop"
for c in info cat recover; do
    ok "$c of a fifo" exit_of 65 timeout 20 "$A" log $c "$T/fifo"
    ok "$c of a link to itself" exit_of 66 "$A" log $c "$T/loop"
done
ok "recover into a fifo" exit_of 74 timeout 20 "$A" log recover "$T/same.mcap" -o "$T/fifo"
ok "cut into a fifo" exit_of 74 timeout 20 "$A" log cut "$T/run" --from 1 -o "$T/fifo"
ok "which is one still" test -p "$T/fifo"
cp "$T/same.mcap" "$T/kept.mcap"
ok "cut onto itself" exit_of 74 "$A" log cut "$T/same.mcap" --from 0 --to 5 -o "$T/same.mcap"
ok "says why" logged "$T/out" 'is the recording itself'
ln -s same.mcap "$T/link.mcap"
ok "cut onto itself by another name" exit_of 74 "$A" log cut "$T/same.mcap" --from 0 --to 5 -o "$T/link.mcap"
ok "leaves it as it was" cmp -s "$T/same.mcap" "$T/kept.mcap"
ok "cut to where a link leads" exit_of 0 "$A" log cut "$T/run" --from 0 --to 5 -o "$T/link.mcap"
ok "which is a link still" test -L "$T/link.mcap" -a "$(stat -c %s "$T/same.mcap")" != "$(stat -c %s "$T/kept.mcap")"

# Ctrl-C while it writes. A shell's background jobs ignore it: python gives it back.
mkdir "$T/int"
/usr/bin/python3 -c 'import os, signal, sys; signal.signal(signal.SIGINT, signal.SIG_DFL); os.execv(sys.argv[1], sys.argv[1:])' \
    "$A" log recover "$T/big.mcap" -o "$T/int/x.mcap" >/dev/null 2>&1 &
pid=$!
for _ in $(seq 2000); do
    compgen -G "$T/int/x.mcap.*" >/dev/null && break
    sleep 0.002
done
kill -INT $pid
wait $pid
status=$?
ok "stopped by Ctrl-C" test $status -eq 130
ok "leaves no half file" test -z "$(ls "$T/int")"
echo "1..$n"
