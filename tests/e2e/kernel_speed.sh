# The products' inner loops are what they were built for, a share of the processor's peak that a probe
# measures beside them (tests/bench/bench_kernels.c). A busy machine gets three tries.
. tests/e2e/lib.sh
fast() { # fast ISA PERCENT
    for _ in 1 2 3; do
        OPENBLAS_NUM_THREADS=1 "$B/bench_kernels" --isa "$1" --only gemm --seconds 0.02 --need "$2" >"$T/out" && return
    done
    cat "$T/out"
    return 1
}
# Whoever says that this machine does not run it is believed; another failure is one.
missing() {
    "$B/bench_kernels" --isa "$1" --only none >"$T/out" 2>&1 && return 1
    grep -q "does not run $1" "$T/out"
}
# gcc 12 at -O2, Zen 5: least shares 92 and 91 %; with loads folded into the multiply-adds 60. In C
# it is the compiler's vectors of 4, 65 %.
while read -r isa need; do
    if [ "$SAN" = 1 ]; then
        n=$((n + 1)) && echo "ok $n - $isa # SKIP sanitizers have a speed of their own"
    elif missing "$isa"; then
        n=$((n + 1)) && echo "ok $n - $isa # SKIP this machine does not run it"
    else
        ok "$isa: $need % of the peak" fast "$isa" "$need"
    fi
done <<END
avx512 78
avx2 78
generic 45
END
ok "--need of a product that did not run" exit_of 1 "$B/bench_kernels" --only none --need 50
ok "says so" logged "$T/out" 'nothing that --need is asked of ran'
echo "1..$n"
