# bench_policy: that `make bench` measures what it says, and fails when an inference does.
. tests/e2e/lib.sh
bench() { OPENBLAS_NUM_THREADS=1 "$B/bench_policy" --runs 1 --threads 1 "$@"; }
ok "a checkpoint" exit_of 0 bench config/policies/reach
ok "its speed" logged "$T/out" '^  checkpoint +1 +[0-9.]+ +[0-9.]+ +[0-9.]+ +0\.49[0-9] +[0-9.]+ +[0-9]+ % +[0-9]+ % +[0-9]+\.[0-9]+ +[0-9]+ / [0-9]+'
ok "its stages" logged "$T/out" 'backbone +tokens +encoder +decoder +head +sum'
ok "its memory" logged "$T/out" '^  checkpoint +[0-9.]+ +1\.[0-9]+x +[0-9.]+ +[0-9.]+ +[0-9.]+ +0$'
ok "its loading" logged "$T/out" '^  checkpoint +1 beside +[0-9.]+'
ok "by OpenBLAS" exit_of 0 bench --kernels openblas config/policies/reach
ok "with its buffers" logged "$T/out" '^  checkpoint +[0-9.]+ +1\.[0-9]+x +[0-9.]+ +[0-9.]+ +[0-9.]+ +256$'
ok "no checkpoint" exit_of 1 bench "$T"
ok "says why" logged "$T/out" 'config.json'
ok "kernels that there are not" exit_of 2 bench --kernels tensor config/policies/reach
ok "too many arguments" exit_of 2 bench a b
# What `make bench-peers` wrote on this processor, and on another one. Engines that are ours are no peers.
results() {
    local cpu
    cpu=$(sed -n 's/^model name[^:]*: *//p' /proc/cpuinfo | head -1)
    cat >"$1" <<END
# actd beside the engines a user could take instead

2026-01-01, 5 minutes; ${2:-$cpu} (family 26), 2 cores.

| case | threads | actd | actd int8 | onnxruntime | torch eager | actd / fastest peer |
|---|---|---|---|---|---|---|
| c: ours | 2 | 1.00 | 1.00 | 1000 | 900 | 0.5 |
| c: ours | 1 | 1.00 | 1.00 | 5000 | – | 0.5 |
| d: ours | 1 | 1.00 | 1.00 | 1 | 1 | 0.5 |

| case | threads | onnxruntime |
|---|---|---|
| c | 1 | 3.00 |
END
}
results "$T/RESULTS.md"
ok "beside a peer" exit_of 0 bench --peers "$T/RESULTS.md" config/policies/reach
if grep -q '^model name' /proc/cpuinfo; then # the case of a checkpoint is called c…
    ok "the fastest of its case and threads" logged "$T/out" '^  checkpoint .* of 5000\.0 ms, onnxruntime'
fi
results "$T/RESULTS.md" "another processor"
ok "of another processor" exit_of 0 bench --peers "$T/RESULTS.md" config/policies/reach
none() { ! grep -q 'onnxruntime' "$T/out"; }
ok "nothing is compared" none
echo "1..$n"
