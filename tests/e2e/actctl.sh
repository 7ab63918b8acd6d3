# actctl: its words, errors, screen, manual and completion, against fake daemons.
. tests/e2e/lib.sh
if ! /usr/bin/python3 -c 'import google.protobuf' 2>/dev/null; then
    echo "ok 1 - actctl # SKIP needs python3-protobuf (make deps)"
    exit 0
fi
mkdir -p "$T/py"
protoc -Iproto -I/usr/include --python_out="$T/py" proto/actd/v1/*.proto || exit 1
export T BUILD=$B PYTHONDONTWRITEBYTECODE=1
/usr/bin/python3 tests/actctl/run.py "$@"
