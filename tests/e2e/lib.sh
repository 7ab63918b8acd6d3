# Helpers for tests of whole processes: TAP lines, a private runtime directory, processes that
# are ended by number when the test ends, however it ends.
B=$(realpath "${BUILD:-build}")
T=$(mktemp -d /tmp/actd-e2e.XXXXXX)
export XDG_STATE_HOME=$T/state # black boxes
unset LOGS_DIRECTORY
n=0
pids=()

cleanup() {
    for p in "${pids[@]:-}"; do [ -n "$p" ] && kill -KILL "$p" 2>/dev/null; done
    wait 2>/dev/null
    rm -rf "$T"
}
trap cleanup EXIT

ok() { # ok NAME COMMAND…: one test
    local name=$1
    shift
    n=$((n + 1))
    if "$@"; then
        echo "ok $n - $name"
    else
        echo "not ok $n - $name"
        return 1
    fi
}

background() { # background LOG COMMAND…: sets $pid
    local log=$1
    shift
    : >"$log" # here, or what the one before said may be taken for its words
    "$@" >"$log" 2>&1 </dev/null &
    pid=$!
    pids+=("$pid")
}

wait_for() { # wait_for SECONDS COMMAND…
    local end=$((SECONDS + $1))
    shift
    until "$@"; do
        [ $SECONDS -ge $end ] && return 1
        sleep 0.1
    done
}

logged() { grep -qE "$2" "$1"; }
gone() { ! kill -0 "$1" 2>/dev/null; }

exit_of() { # exit_of STATUS COMMAND…: output in $T/out
    local want=$1
    shift
    "$@" >"$T/out" 2>&1 </dev/null
    local got=$?
    [ $got -eq "$want" ] || { echo "# exit $got, expected $want: $*"; sed 's/^/# /' "$T/out"; return 1; }
}

# The demo robot's configuration with sockets of our own.
robot_yaml() { # robot_yaml FILE [sed expression]
    mkdir -p "$T/run"
    sed -e "s|^instance: .*|instance: e2e\nruntime: $T/run|" \
        -e "s|directory: policies/reach|directory: $PWD/config/policies/reach|" \
        ${2:+-e "$2"} config/reach.yaml >"$1"
    chmod 600 "$1"
}
