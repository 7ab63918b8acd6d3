# The bench of the loop runs and says what it should; what it measures is not judged here.
. tests/e2e/lib.sh
if [ "${SAN:-0}" = 1 ] || [ ! -x "$B/bench_loop" ] || ! command -v cyclictest >/dev/null; then
    echo "ok 1 - bench_loop # SKIP needs an ordinary build, $B/bench_loop and cyclictest (make deps-bench)"
    exit 0
fi
quick() {
    OPENBLAS_NUM_THREADS=1 "$B/bench_loop" --quick >"$T/out" 2>&1 || { sed 's/^/# /' "$T/out"; return 1; }
}
rows() { [ "$(grep -cE "$2" "$T/out")" -eq "$1" ] || { sed 's/^/# /' "$T/out"; return 1; }; }
ok "a quick bench of the loop runs" quick
ok "six lines of cyclictest and six of the loop beside them" rows 12 "^  (cyclictest|actd's loop) +[1-9]"
ok "a line for every blend mode, with and without jerk limits" rows 14 '^  [a-z_]+(, jerk)? +[0-9.]+ +[0-9.]+ .* %'
ok "three lines through the bus and three of the bare pair" rows 6 '^  (bare pair|through actd) +[1-9]'
ok "the loop's figures are from RUNNING" test -z "$(grep 'not in RUNNING' "$T/out")"
