# What a person at the command line sees, good and bad.
. tests/e2e/lib.sh
ok "help" exit_of 0 "$B/actd" --help
for c in run check inspect init golden log replay bridge; do
    ok "help lists $c" logged "$T/out" "^  $c "
done
for c in run check inspect init golden log replay bridge; do
    ok "$c --help" exit_of 0 "$B/actd" $c --help
done
for c in "log info" "log recover" "log cut" "log cat" "replay verify" "replay what-if" "replay eval" \
    "replay publish" "replay report"; do
    ok "$c --help" exit_of 0 "$B/actd" $c --help
done
options_told() { # every option of theirs is in the manual
    local c o
    for c in "log info" "log recover" "log cut" "log cat" "replay verify" "replay what-if" "replay eval" \
        "replay publish" "replay report" bridge inspect; do
        for o in $("$B/actd" $c --help | grep -oE -e '--[a-z]+(-[a-z]+)*' | sort -u); do
            tr -d '\\' <daemon/man/actd.1 | grep -qF -e "$o" || { echo "# $c $o"; return 1; }
        done
    done
}
ok "the manual has the options of log, replay, bridge and inspect" options_told
ok "version" exit_of 0 "$B/actd" --version
ok "no command is a usage error" exit_of 64 "$B/actd"
ok "an unknown command is one too" exit_of 64 "$B/actd" runn
ok "and is named" logged "$T/out" "runn"
ok "run without a config" exit_of 64 "$B/actd" run
ok "a config that is not there" exit_of 78 "$B/actd" run -c "$T/none.yaml"
ok "is named" logged "$T/out" "none.yaml"
robot_yaml "$T/bad.yaml" 's/rate_hz: 100  /rate_hzz: 100 /'
ok "an unknown key" exit_of 78 "$B/actd" run -c "$T/bad.yaml"
ok "with line, column and the nearest key" logged "$T/out" 'bad.yaml:[0-9]+:[0-9]+:.*rate_hzz.*rate_hz'
robot_yaml "$T/limit.yaml" 's/velocity: 3.0, //'
ok "a missing limit" exit_of 78 "$B/actd" check -c "$T/limit.yaml"
ok "is named" logged "$T/out" 'limit.yaml:[0-9]+:[0-9]+:.*velocity'
robot_yaml "$T/cam.yaml" 's/observation.images.wrist/observation.images.wirst/'
ok "a camera key that matches nothing" exit_of 78 "$B/actd" check -c "$T/cam.yaml"
ok "is named" logged "$T/out" 'wirst'
robot_yaml "$T/joint.yaml" 's/state: gripper.pos/state: griper.pos/'
ok "a joint name that matches nothing" exit_of 78 "$B/actd" check -c "$T/joint.yaml"
ok "is named" logged "$T/out" 'griper.pos'
robot_yaml "$T/robot.yaml"
ok "check accepts the demo robot" exit_of 0 "$B/actd" check -c "$T/robot.yaml"
ok "and prints the joint map" logged "$T/out" 'shoulder_pan.*shoulder_pan.pos'
ok "and the camera map" logged "$T/out" 'front.*observation.images.front'
robot_yaml "$T/int8.yaml" 's/^policy:/&\n  precision: int8/'
ok "check measures 8 bits" exit_of 0 "$B/actd" check -c "$T/int8.yaml"
ok "at each joint" logged "$T/out" 'gripper +0\.0[0-9]+ rad +0\.[0-9]+ % +2 %'
robot_yaml "$T/strict.yaml" 's/^policy:/&\n  precision: int8\n  max_deviation: 0.0001/'
ok "too far from float32" exit_of 78 "$B/actd" check -c "$T/strict.yaml"
ok "is named" logged "$T/out" 'REFUSED: in int8 the policy wants .*policy.max_deviation allows 0.01 %'
ok "run refuses it too" exit_of 78 "$B/actd" run -c "$T/strict.yaml"
ok "inspect the shipped policy" exit_of 0 "$B/actd" inspect config/policies/reach
ok "and see its backbone" logged "$T/out" 'resnet18'
ok "its plan" exit_of 0 "$B/actd" inspect --plan --runs 2 config/policies/reach
ok "names the kernels and why" logged "$T/out" '^kernels: [a-z0-9]+: '
ok "each step" logged "$T/out" 'image 2 layer1.0 conv1 +winograd 4x4 +[a-z0-9]+ [0-9]+x[0-9]+ +256 x 576 x 64 '
ok "and the parts" logged "$T/out" 'encoder +14 steps'
ok "with other kernels and threads" exit_of 0 "$B/actd" inspect --plan --runs 1 --threads 2 --kernels openblas config/policies/reach
ok "they are OpenBLAS's" logged "$T/out" '^kernels: openblas [A-Z][A-Za-z]+: asked for'
plan_in_json() {
    "$B/actd" inspect --plan --json --runs 1 --kernels generic config/policies/reach | python3 -c 'import json, sys
p = json.load(sys.stdin)
assert p["kernels"] == "generic" and len(p["steps"]) > 60 and p["float32_bytes"] < p["weight_bytes"]
assert abs(sum(s["gmac"] for s in p["stages"]) - p["gmac"]) < 1e-6'
}
ok "in JSON" plan_in_json
ok "kernels that there are not" exit_of 78 "$B/actd" inspect --plan --kernels tensor config/policies/reach
ok "what only a plan has" exit_of 64 "$B/actd" inspect --threads 2 config/policies/reach
ok "no threads at all" exit_of 64 "$B/actd" inspect --plan --threads 0 config/policies/reach
ok "inspect what 8 bits do to it" exit_of 0 "$B/actd" inspect config/policies/reach --precision int8
ok "in the units of policy.yaml" logged "$T/out" '5 +gripper.pos +0\.00[0-9]+ +rad +[0-9.]+ %'
ok "inspect in no precision" exit_of 64 "$B/actd" inspect config/policies/reach --precision int4
ok "golden without a checkpoint" exit_of 78 "$B/actd" golden "$T"
ok "inspect nothing" exit_of 78 "$B/actd" inspect "$T"
ok "--arm under a service manager" exit_of 64 env NOTIFY_SOCKET=/x "$B/actd" run -c "$T/robot.yaml" --arm
as_unit() { SYSTEMD_EXEC_PID=$BASHPID exec "$B/actd" run -c "$T/robot.yaml" --arm; }
unit() { (as_unit) >"$T/out" 2>&1; [ $? -eq 64 ]; }
ok "as a unit's process too" unit
ok "foreign BLAS settings are cleared" exit_of 0 env OPENBLAS_CORETYPE=Prescott OMP_NUM_THREADS=7 "$B/actd" check -c "$T/robot.yaml"
ok "sim help" exit_of 0 "$B/actd-sim" --help
ok "demo help" exit_of 0 "$B/actd-demo" --help
ok "demo with nonsense" exit_of 64 "$B/actd-demo" --episodes zero
