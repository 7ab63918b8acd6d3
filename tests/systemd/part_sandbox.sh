# What the process has, as the kernel tells it.
is "user" "$(proc Uid) $(id -un "$(proc Uid)")" "$(id -u actd) actd"
is "group" "$(id -gn "$(proc Gid)" 2>/dev/null || getent group "$(proc Gid)" | cut -d: -f1)" actd-clients
is "capabilities" "$(proc CapEff) $(proc CapBnd) $(proc CapAmb)" \
    "0000000000000000 0000000000000000 0000000000000000"
is "no new privileges, a system call filter" "$(proc NoNewPrivs) $(proc Seccomp)" "1 2"
is "umask" "$(proc Umask)" 0077
is "no core files" "$(limit 'Max core file size')" "0 0"
is "no limit of real time" "$(limit 'Max realtime timeout')" "unlimited unlimited"

# A hard limit that process 1 may not raise stays; then that is what the unit can grant.
granted() { # granted NAME WANTED
    local fixed
    fixed=$(limit "$1" 1 | cut -d' ' -f2)
    if (($(sed -n 's/^CapEff:\t/0x/p' /proc/1/status) >> 24 & 1)) || [ "$fixed" = unlimited ]; then
        echo "$2 $2"
    else
        echo "$fixed $fixed"
    fi
}
is "rtprio" "$(limit 'Max realtime priority')" "$(granted 'Max realtime priority' 80)"
is "memlock" "$(limit 'Max locked memory')" "$(granted 'Max locked memory' unlimited)"

# What the daemon says must be what the kernel says.
agrees() {
    is "class of the loop, as the kernel and the status say" "$(scheduled actd-loop)" \
        "$(status scheduling | sed 's/ (.*//')"
    local locked
    locked=$(proc VmLck)
    locked=${locked:-none}
    is "locked memory, $locked kB, as the status says" "$([ "$locked" = 0 ] && echo false || echo true)" \
        "$(status memory_locked)"
    ok "the log says the same class" logged "^loop: $(scheduled actd-loop)"
}
agrees

within() { nsenter --target "$(pid_of)" --mount -- "$@"; }
ok "the system is read-only to it" eval 'within touch /usr/x 2>&1 | grep -q Read-only'
ok "so are others' state" eval 'within touch /var/lib/actd/policies/x 2>&1 | grep -q Read-only'
ok "homes are out of sight" eval '! within ls /home/pilot /root/. 2>/dev/null'
ok "its own directories are writable" within test -w "$RUN" -a -w /var/lib/actd/$ROBOT -a -w /var/log/actd/$ROBOT
ok "no network but its own" test "$(readlink "/proc/$(pid_of)/ns/net")" != "$(readlink /proc/1/ns/net)"
ok "users are the machine's" test "$(readlink "/proc/$(pid_of)/ns/user")" = "$(readlink /proc/1/ns/user)"
ok "exposure of the unit that runs" systemd-analyze security --threshold=8 "$UNIT"
