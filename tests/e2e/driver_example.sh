# The driver that the README shows, prepared and run as it says itself, against the other end of
# its sockets.
. tests/e2e/lib.sh
if ! /usr/bin/python3 -c 'import zmq, google.protobuf' 2>/dev/null; then
    echo "ok 1 - driver example # SKIP needs python3-zmq and python3-protobuf (make deps)"
    exit 0
fi
export PYTHONDONTWRITEBYTECODE=1
mkdir -p "$T/run"
command=$(/usr/bin/python3 tests/e2e/as_documented.py "$T/copy" driver_example.py \
    RUNTIME="$T/run" JOINT...="base elbow") || exit 1
# From a file and not a pipe, so that its exit status is this test's.
PYTHONPATH=$T/copy/build/py /usr/bin/python3 tests/e2e/driver_example.py \
    "$T/run" "$T/copy" "$command"
