# The real-time code refers to nothing that allocates, locks, waits or prints.
. tests/e2e/lib.sh
if [ "${SAN:-0}" = 1 ] || nm -u "$B/daemon/loop.o" | grep -qE '__(asan|ubsan|tsan|gcov|sanitizer)'; then
    echo "ok 1 - rt symbols # SKIP instrumented build: sanitizers and gcov add calls of their own"
    exit 0
fi
judge() { tests/hygiene/rt_symbols "$B" "$@" >"$T/out" 2>&1 || { sed 's/^/# /' "$T/out"; return 1; }; }
refused() { # refused SYMBOL: an object that calls it is refused by that name
    printf 'extern int %s(void *); int bad(void); int bad(void) { return %s((void *)0); }\n' "$1" "$1" >"$T/bad.c"
    "${CC:-cc}" -w -fno-builtin -c -o "$T/bad.o" "$T/bad.c" || return 1
    ! tests/hygiene/rt_symbols "$B" "$T/bad.o" >"$T/out" 2>&1 && grep -q "bad.o refers to $1," "$T/out"
}
ok "rt objects refer to pure functions, the clock, one sleep and one write" judge
for s in malloc free printf pthread_mutex_lock zmq_send open syslog; do
    ok "an rt object that calls $s is refused" refused $s
done
through() { # and so is one that calls a function of ours that allocates
    printf 'struct ring; int ring_init(struct ring *); int bad(void); int bad(void) { return ring_init((struct ring *)0); }\n' >"$T/bad.c"
    "${CC:-cc}" -w -c -o "$T/bad.o" "$T/bad.c" || return 1
    ! tests/hygiene/rt_symbols "$B" "$T/bad.o" >"$T/out" 2>&1 && grep -q "ring_init.o refers to aligned_alloc," "$T/out"
}
ok "one that allocates through another file of ours, too" through
missing() { ! tests/hygiene/rt_symbols "$B" "$T/gone.o" >"$T/out" 2>&1 && grep -q "gone.o is missing" "$T/out"; }
ok "a listed file that is not there is an error" missing
