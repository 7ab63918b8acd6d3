# `actd check --system` on this machine, whatever it is, and as somebody without rights.
. tests/e2e/lib.sh
robot_yaml "$T/robot.yaml"

# 0 with nothing that hurts, 1 with something, and each that hurts tells what mends it.
judged() {
    "$@" >"$T/out" 2>&1 </dev/null
    local rc=$? hurts
    hurts=$(grep -c '^hurts ' "$T/out")
    [ "$rc" -eq "$((hurts > 0))" ] && grep -qE "^$hurts problems?, [0-9]+ notes?, [0-9]+ good$" "$T/out" &&
        ! grep -A1 '^hurts ' "$T/out" | grep -A1 '^hurts ' | sed -n 'n;p' | grep -v -- '-> ' | grep -q . ||
        { echo "# exit $rc"; sed 's/^/# /' "$T/out"; return 1; }
}
all_topics() {
    local w
    for w in scheduling rtprio memlock niceness environment kernels instructions governor isolated \
        nohz_full SMT cpu_dma_latency preemption 'rt throttling' THP hypervisor steal container \
        'cpu quota' time 'log disk'; do
        grep -qE "^(good|note|hurts) +$w " "$T/out" || { echo "# no $w"; return 1; }
    done
}
ok "check --system" judged "$B/actd" check --system
ok "tells of every topic" all_topics
ok "with a configuration" judged "$B/actd" check --system -c "$T/robot.yaml"
ok "looks where its black boxes go" logged "$T/out" "log disk .*$T/state"
ok "names what LD_ variables are there" judged env LD_LIBRARY_PATH=/nowhere "$B/actd" check --system
ok "as something that hurts" logged "$T/out" '^hurts +environment +LD_LIBRARY_PATH'
ok "sees a process that was made nice" judged nice -n 7 "$B/actd" check --system
ok "as something that hurts" logged "$T/out" '^hurts +niceness '
ok "a configuration that is not there" exit_of 78 "$B/actd" check --system -c "$T/none.yaml"
ok "an option that is not there" exit_of 64 "$B/actd" check --sytem

# Nobody's limits, where a user can be chosen: setpriv takes the capabilities, prlimit the limits.
poor() {
    prlimit --rtprio=0:0 --memlock=65536:65536 setpriv --reuid=65534 --regid=65534 --clear-groups \
        --bounding-set=-all --inh-caps=-all "$@"
}
chmod 755 "$T"
cp "$B/actd" "$T/actd"
if [ "$(id -u)" = 0 ] && poor true 2>/dev/null; then
    ok "without rights" judged poor "$T/actd" check --system
    ok "FIFO is refused" logged "$T/out" '^hurts +scheduling +a loop.s thread would get SCHED_OTHER'
    ok "the limit is named" logged "$T/out" '^hurts +rtprio +the rtprio limit is 0'
    ok "memory can not be locked" logged "$T/out" '^hurts +memlock '
    ok "and what mends it" logged "$T/out" 'limits.d|log out and in'
else
    n=$((n + 1))
    echo "ok $n - without rights # SKIP only root can become somebody else"
fi

# A sandbox as the service's: what is hidden is unknown, and nothing is guessed.
sandbox() {
    unshare -m sh -c 'mount -t proc -o subset=pid proc /proc && mount -t tmpfs none /sys &&
        exec "$0" check --system' "$T/actd"
}
if unshare -m sh -c 'mount -t proc -o subset=pid proc /proc' 2>/dev/null; then
    ok "in a sandbox" judged sandbox
    ok "throttling is unknown" logged "$T/out" '^note +rt throttling +unknown: '
    ok "steal is unknown" logged "$T/out" '^note +steal +unknown: '
    ok "the governor is unknown" logged "$T/out" '^note +governor +unknown: '
else
    n=$((n + 1))
    echo "ok $n - in a sandbox # SKIP no mount namespace to be had"
fi
echo "1..$n"
