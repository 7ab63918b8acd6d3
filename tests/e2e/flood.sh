# Other users against the control socket while the arm drives: floods, nonsense, a thousand
# connections. FLOOD_SECONDS for each of the twelve attacks (default 2.5).
. tests/e2e/lib.sh
if [ "$(id -u)" != 0 ]; then
    echo "ok 1 - flood # SKIP needs root, to be three users"
    exit 0
fi
if ! /usr/bin/python3 -c 'import google.protobuf' 2>/dev/null; then
    echo "ok 1 - flood # SKIP needs python3-protobuf (make deps)"
    exit 0
fi
robot_yaml "$T/robot.yaml"
cat >>"$T/robot.yaml" <<'END'
operators: {act: 41002, read: [41001, 41002]}
END
chmod 711 "$T" # others must get as far as the socket
mkdir -p "$T/py"
protoc -Iproto --python_out="$T/py" proto/actd/v1/*.proto || exit 1
background "$T/sim.log" "$B/actd-sim" --runtime "$T/run" --episodes 5000 --seed 3 --control-hz 100
background "$T/actd.log" "$B/actd" run -c "$T/robot.yaml"
actd=$pid
ok "actd is ready, disarmed" wait_for 60 logged "$T/actd.log" ' READY'
PYTHONPATH=$T/py PYTHONDONTWRITEBYTECODE=1 /usr/bin/python3 tests/control/flood.py \
    "$actd" "$T/run/control"
n=$((n + 100))
ok "the log stays short" test "$(grep -c 'control:' "$T/actd.log")" -lt 1000
ok "nothing in it was forged" test "$(grep -cP '[^\x20-\x7e\x{80}-\x{10ffff}\t]' "$T/actd.log")" -eq 0
kill -TERM "$actd"
wait "$actd"
ok "it ends as it should" test $? -eq 0
ok "its socket is gone" test ! -e "$T/run/control"
