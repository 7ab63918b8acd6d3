# FIFO where the limits do not stand in the way, and from here on: what is tested must not depend on
# how busy this computer is. And what the filter of system calls forbids ends the process, so that
# nothing is missing quietly.
ok "with CAP_SYS_NICE and CAP_IPC_LOCK, every forbidden call deadly" with caps.conf strict.conf
pid=$(pid_of)
is "still that user" "$(proc Uid)" "$(id -u actd)"
is "the loop" "$(scheduled actd-loop)" "SCHED_FIFO 50"
is "the bus below it" "$(scheduled actd-bus)" "SCHED_FIFO 49"
is "inference is not real-time" "$(scheduled actd-infer)" "SCHED_OTHER"
ok "all of its memory is locked" test "$(proc VmLck)" -gt "$(proc VmRSS)"
agrees

ok "it drives like that" run
ok "STATUS= follows" wait_for 5 eval 'property StatusText | grep -q RUNNING'
cp -r /usr/share/actd/policies/reach /var/lib/actd/policies/second
ok "policies lists another one" eval 'ctl policies --names | grep -qx second'
ok "swap" ctl swap second
is "what drives" "$(status policy_in_use.name)" second
ok "still RUNNING" is_mode RUNNING
ok "and back" ctl swap --back
is "what drives" "$(status policy_in_use.name)" reach
chmod o+w /var/lib/actd/policies/second/model.safetensors
ok "weights that everybody may write are refused" ends_with 65 ctl swap second
chmod o-w /var/lib/actd/policies/second/model.safetensors
ok "which is logged with its reason" logged "second.*(writ|chmod)"
is "and nothing changed" "$(status policy_in_use.name) $(status mode)" "reach RUNNING"
# The recorder is let do all that it does, into the service's own directory for logs.
ok "a recording" ctl record start
sleep 1
ok "a mark in it" ctl record mark "in the sandbox"
ok "ends" ctl record stop
recorded() { ls /var/log/actd/$ROBOT/record/*.mcap; }
ok "as a whole file of the service's" wait_for 10 recorded
is "which has no trouble to tell" "$(status record.last_error)" ""
ok "and is a recording" as root actd log info /var/log/actd/$ROBOT/record
ok "disarm" ctl disarm
ok "comes to rest" stays_disarmed
is "no forbidden call was made" "$(pid_of)" "$pid"
# Its questions about the machine are tries, some of them forbidden.
without strict.conf
