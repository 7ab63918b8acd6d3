# The daemon and the simulated robot over real ipc sockets: the arm reaches cubes it never saw.
. tests/e2e/lib.sh
robot_yaml "$T/robot.yaml"
# Sanitizers make an inference about ten times slower, so there only the plumbing is judged.
need=0.66
[ "${SAN:-0}" = 1 ] && need=0
ok "three episodes" exit_of 0 "$B/actd-demo" -c "$T/robot.yaml" -n 3 -s 3000 --need $need -o "$T/demo"
sed 's/^/# /' "$T/out" | tail -22
ok "a line a second" logged "$T/out" '^episode .*reached .*Hz .*chunks .*latency .*late'
ok "a summary" logged "$T/out" 'control rate .*Hz achieved of 100 asked'
ok "the contact sheet" test -s "$T/demo/episode.png"
ok "it is a PNG" logged "$T/demo/episode.png" 'PNG'
ok "the daemon ran to RUNNING" logged "$T/demo/actd.log" 'RUNNING'
ok "and came to rest at its end" logged "$T/demo/actd.log" 'arm at rest'
