# For the tests inside: TAP lines, the robot, and what the daemon and the kernel say.
ROBOT=demo
UNIT=actd@$ROBOT.service
RUN=/run/actd/$ROBOT
n=0

ok() { # ok NAME COMMAND…
    local name=$1 said
    shift
    n=$((n + 1))
    if said=$("$@" 2>&1); then
        echo "ok $number.$n - $name"
    else
        echo "not ok $number.$n - $name"
        printf '%s\n' "$said" | head -20 | sed '/^$/d; s/^/#     /'
        return 1
    fi
}

is() { # is NAME GOT WANTED
    ok "$1${2:+: $2}" same "$2" "$3"
}
same() { [ "$1" = "$2" ] || { echo "expected: $2, found: $1"; return 1; }; }
not() { ! "$@"; }

ends_with() { # ends_with STATUS COMMAND…
    local want=$1 got=0
    shift
    "$@" || got=$?
    [ $got -eq "$want" ] || { echo "exit status $got, expected $want: $*"; return 1; }
}

wait_for() { # wait_for SECONDS COMMAND…
    local end=$((SECONDS + $1))
    shift
    until "$@" >/dev/null 2>&1; do
        [ $SECONDS -lt $end ] || { "$@"; return 1; }
        sleep 0.1
    done
}

# ---- the service ------------------------------------------------------------------------------

property() { systemctl show -p "$1" --value "${2:-$UNIT}"; }
pid_of() { # of a process that is there, never 0, which is everybody to kill
    local pid
    pid=$(property MainPID "${1:-$UNIT}")
    [ "$pid" -gt 0 ] && echo "$pid" || echo none
}
is_state() { same "$(property ActiveState "${2:-$UNIT}")" "$1"; }
log() { journalctl -q -o cat --no-pager -u "$UNIT" --since "@${since:-0}" "$@"; }
logged() { log | grep -qE "$1" || { log | tail -5; return 1; }; }
mark() { # what is logged before does not count from now on
    sleep 1.1
    since=$(date +%s)
}

with() { # with DROP_IN…: a daemon that has just started
    mkdir -p "/etc/systemd/system/$UNIT.d"
    cp "$@" "/etc/systemd/system/$UNIT.d/"
    systemctl daemon-reload
    since=$(date +%s)
    systemctl restart "$UNIT"
}
without() { # without NAME…: from the next start on
    (cd "/etc/systemd/system/$UNIT.d" && rm "$@")
    systemctl daemon-reload
}

as() { # as USER COMMAND…: with that user's own groups
    local user=$1
    shift
    runuser -u "$user" -- "$@"
}
ctl() { as pilot actctl -i $ROBOT "$@"; }
# A field of the status, as JSON writes it, strings without quotes.
status() {
    actctl -i $ROBOT --json status 2>/dev/null | /usr/bin/python3 -c '
import json, sys
try:
    value = json.load(sys.stdin)["status"]
except (ValueError, KeyError):
    sys.exit("the daemon does not answer")
for key in sys.argv[1].split("."):
    value = value[key]
print(value if isinstance(value, str) else json.dumps(value))' "$1"
}
is_mode() { same "$(status mode)" "$1"; }

is_disarmed() {
    case $(status mode) in
    INIT | WAITING | READY) ;;
    *) status mode; return 1 ;;
    esac
}

# Armed as soon as it is READY, then RUNNING. What a computer that is too busy has stopped is tried
# again; what else stops it does so every time.
run() {
    local _
    for _ in 1 2 3; do
        wait_for 20 eval 'is_mode READY && ctl arm' || return 1
        wait_for 20 eval 'is_mode RUNNING || is_mode STOPPED'
        is_mode RUNNING && return
        ctl reset
    done
    return 1
}

# READY and not a step further, for two seconds. A busy computer may make a stream late, and it is
# WAITING for a moment.
stays_disarmed() {
    wait_for 20 is_mode READY || return 1
    for _ in 1 2 3 4 5 6 7 8 9 10; do
        is_disarmed || return 1
        sleep 0.2
    done
}

# ---- the robot --------------------------------------------------------------------------------

# The simulator as a driver of its own: a user that is in actd-clients and nothing else. It can use
# the service's sockets and make none beside them: its own are in its own directory. Like a real
# one it has a computer's attention, or its joint states would be late on a busy one.
robot_start() {
    local socket attention=(-p Nice=-20)
    chrt -f 1 true 2>/dev/null && attention=(-p CPUSchedulingPolicy=fifo -p CPUSchedulingPriority=1)
    install -d -o robot -g robot /run/robot
    for socket in joints.state joints.command camera.front camera.wrist; do
        ln -sfn "$RUN/$socket" "/run/robot/$socket"
    done
    systemd-run -q --unit=robot -p User=robot -p Restart=always "${attention[@]}" \
        actd-sim --runtime /run/robot --episodes 0 --seed 5
}

# ---- the kernel -------------------------------------------------------------------------------

thread() { # thread NAME: its id
    grep -lx "$1" "/proc/$(pid_of)"/task/*/comm 2>/dev/null | head -1 | cut -d/ -f5
}
scheduled() { # scheduled THREAD: "SCHED_FIFO 50", as the daemon says it
    ps -L -o tid=,cls=,rtprio= -p "$(pid_of)" 2>/dev/null | awk -v tid="$(thread "$1")" '
        $1 == tid { print ($2 == "FF" ? "SCHED_FIFO " $3 : $2 == "TS" ? "SCHED_OTHER" : $2) }'
}
proc() { # proc FIELD: of /proc/PID/status
    awk -v field="$1:" '$1 == field { print $2 }' "/proc/$(pid_of)/status" 2>/dev/null
}
limit() { # limit "Max locked memory": soft, hard
    sed -n "s/^$1 *\([a-z0-9]*\) *\([a-z0-9]*\).*/\1 \2/p" "/proc/${2:-$(pid_of)}/limits"
}
mode() { stat -c '%a %U:%G' "$1"; }
