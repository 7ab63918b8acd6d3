# The layouts for Foxglove and PlotJuggler, against the messages.
if ! /usr/bin/python3 -c 'import google.protobuf' 2>/dev/null; then
    echo "ok 1 - layouts # SKIP needs python3-protobuf (make deps)"
    exit 0
fi
. tests/e2e/lib.sh
mkdir -p "$T/py"
ok "the protos for python" protoc -Iproto --python_out="$T/py" proto/actd/v1/{joint_command,status,record}.proto \
    proto/foxglove/{JointStates,Log,CompressedImage}.proto
PYTHONPATH=$T/py /usr/bin/python3 tests/e2e/layouts.py
