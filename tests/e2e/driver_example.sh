# The driver that the README shows, against the other end of its sockets.
. tests/e2e/lib.sh
if ! /usr/bin/python3 -c 'import zmq, google.protobuf' 2>/dev/null; then
    echo "ok 1 - driver example # SKIP needs python3-zmq and python3-protobuf (make deps)"
    exit 0
fi
mkdir -p "$T/py" "$T/run"
protoc -Iproto --python_out="$T/py" proto/foxglove/JointStates.proto \
    proto/actd/v1/joint_command.proto || exit 1
# From a file and not a pipe, so that its exit status is this test's.
PYTHONPATH=$T/py PYTHONDONTWRITEBYTECODE=1 /usr/bin/python3 tests/e2e/driver_example.py \
    "$T/run" config/driver_example.py
