# What the loop thread asks of the system in a million ticks with every kind of fault.
. tests/e2e/lib.sh
P=$B/tests/fault/hygiene
[ -x "$P" ] || make -s BUILD="$BUILD" SAN="${SAN:-0}" CC="${CC:-cc}" "$P"
"$P" --seed "${SEED:-1}" # prints TAP itself
