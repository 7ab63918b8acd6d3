# Random robots, random faults, random requests, and an independent checker on every tick.
. tests/e2e/lib.sh
P=$B/tests/fault/property
[ -x "$P" ] || make -s BUILD="$BUILD" SAN="${SAN:-0}" CC="${CC:-cc}" "$P"
# Sanitizers make a tick ten times slower.
how=(--schedules 250 --ticks 1000000)
[ "${SAN:-0}" = 1 ] && how=(--schedules 50 --ticks 100000 --partial)
keeps_every_promise() {
    "$P" --seed "${SEED:-1}" "${how[@]}" >"$T/out" 2>&1
    local rc=$?
    sed 's/^/# /' "$T/out"
    return $rc
}
ok "a million random ticks keep every promise" keeps_every_promise
[ "${SAN:-0}" = 1 ] || ok "within a minute of one core" logged "$T/out" '^[1-5]?[0-9]\.[0-9] s; '
