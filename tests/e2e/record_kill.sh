# Daemons killed while they record, and what is left of their recordings: a few of `make record-kill`.
. tests/e2e/lib.sh
mkdir -p "$T/logs"
n=1
if "$B/actd-record-rig" --build "$B" kill 10 2 "$T/logs" 1 >"$T/out" 2>&1; then
    echo "ok 1 - ten are killed, all recordings recover, less than 0.5 s is lost of each"
else
    echo "not ok 1 - ten are killed, all recordings recover, less than 0.5 s is lost of each"
fi
sed 's/^/# /' "$T/out" | tail -30
