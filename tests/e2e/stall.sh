# The loop's thread alone is stopped, as if it were stuck: what comes out, what the service manager
# hears, and what happens when it comes back.
. tests/e2e/lib.sh
if ! /usr/bin/python3 -c 'import zmq, google.protobuf' 2>/dev/null; then
    echo "ok 1 - stall # SKIP needs python3-zmq and python3-protobuf (make deps)"
    exit 0
fi
robot_yaml "$T/robot.yaml"
mkdir -p "$T/py"
protoc -Iproto --python_out="$T/py" proto/actd/v1/*.proto || exit 1
background "$T/sim.log" "$B/actd-sim" --runtime "$T/run" --episodes 500 --seed 3 --control-hz 100
PYTHONPATH=$T/py PYTHONDONTWRITEBYTECODE=1 /usr/bin/python3 tests/e2e/stall.py \
    "$B/actd" "$T/robot.yaml" "$T/run"
