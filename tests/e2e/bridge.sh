# actd bridge: a running daemon's streams in the form that PlotJuggler's ZMQ subscriber takes.
if ! /usr/bin/python3 -c 'import zmq, google.protobuf' 2>/dev/null; then
    echo "ok 1 - bridge # SKIP needs python3-zmq and python3-protobuf (make deps)"
    exit 0
fi
. tests/e2e/lib.sh
robot_yaml "$T/robot.yaml"
port=$((20000 + $$ % 20000))

ok "what to bridge to is asked for" exit_of 64 "$B/actd" bridge
ok "another viewer's name too" exit_of 64 "$B/actd" bridge foxglove -c "$T/robot.yaml"
ok "a configuration or a name, not both" exit_of 64 "$B/actd" bridge plotjuggler -i a -c "$T/robot.yaml"
ok "a configuration that is none" exit_of 78 "$B/actd" bridge plotjuggler -c "$T/none.yaml"
ok "no daemon of that name" exit_of 69 env XDG_RUNTIME_DIR="$T" "$B/actd" bridge plotjuggler -i nobody
ok "says how to name one" logged "$T/out" 'robot.yaml'
ok "loopback alone" exit_of 69 "$B/actd" bridge plotjuggler -c "$T/robot.yaml" --bind tcp://0.0.0.0:$port
ok "says so" logged "$T/out" '127'

background "$T/sim.log" "$B/actd-sim" --runtime "$T/run" --episodes 0
sim=$pid
background "$T/actd.log" "$B/actd" run -c "$T/robot.yaml"
actd=$pid
ok "a daemon" wait_for 40 logged "$T/actd.log" ' READY'
# By way of actctl, which finds the actd beside it: the same process goes on.
background "$T/bridge.log" "$B/actctl" bridge plotjuggler -c "$T/robot.yaml" --bind tcp://127.0.0.1:$port
bridge=$pid
ok "says where it publishes" wait_for 10 logged "$T/bridge.log" "on tcp://127.0.0.1:$port"
ok "and that the joint states have one receiver" logged "$T/bridge.log" 'joint states have one receiver'
ok "a second one finds the port taken" exit_of 69 "$B/actd" bridge plotjuggler -c "$T/robot.yaml" --bind tcp://127.0.0.1:$port
mkdir -p "$T/py"
ok "the protos for python" protoc -Iproto --python_out="$T/py" proto/actd/v1/joint_command.proto \
    proto/actd/v1/status.proto proto/foxglove/JointStates.proto
PYTHONPATH=$T/py /usr/bin/python3 tests/e2e/bridge.py "tcp://127.0.0.1:$port" "$T/joints"
kill -INT "$bridge"
wait "$bridge"
ok "Ctrl-C ends it with 0" test $? -eq 0
ok "with its counts" logged "$T/bridge.log" '^sent on  /command [1-9][0-9]*  /status [1-9]'
ok "the daemon does not notice" bash -c '! grep -qiE "warning: .*(skipped|dropped commands)" "$0"' "$T/actd.log"

# Where the driver's socket is one to connect to, joint states come too.
sed 's|joint_state: {rate_hz: 100}|joint_state: {rate_hz: 100, bind: false, endpoint: "ipc://'"$T"'/joints"}|' \
    "$T/robot.yaml" >"$T/other.yaml"
chmod 600 "$T/other.yaml"
background "$T/bridge2.log" "$B/actd" bridge plotjuggler -c "$T/other.yaml" --bind tcp://127.0.0.1:$port
bridge=$pid
ok "with joint states" wait_for 10 logged "$T/bridge2.log" "/joint_states +from ipc://$T/joints"
PYTHONPATH=$T/py /usr/bin/python3 tests/e2e/bridge.py "tcp://127.0.0.1:$port" "$T/joints" joints
kill -KILL "$actd" "$sim"
sleep 0.3
ok "it outlives the daemon" bash -c 'kill -0 "$0"' "$bridge"
kill -TERM "$bridge"
wait "$bridge"
ok "SIGTERM ends it with 0" test $? -eq 0
