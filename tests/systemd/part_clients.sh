# Who may enter, use and command.
is "directory of the sockets" "$(mode $RUN)" "750 actd:actd-clients"
is "above it" "$(mode /run/actd)" "755 root:root"
is "state" "$(mode /var/lib/actd/$ROBOT)" "700 actd:actd-clients"
is "logs" "$(mode /var/log/actd/$ROBOT)" "700 actd:actd-clients"
for socket in joints.state joints.command camera.front camera.wrist status control; do
    is "socket $socket" "$(mode $RUN/$socket)" "660 actd:actd-clients"
done
is "nothing else there" "$(ls $RUN | grep -vxE 'joints\.(state|command)|camera\.(front|wrist)|status|control')" lock
is "lock" "$(mode $RUN/lock)" "600 actd:actd-clients"

ok "a client reads the status" as viewer actctl -i $ROBOT status
ok "and makes nothing there" not as viewer touch $RUN/x
ok "an outsider does not enter" not as outsider ls $RUN
ok "actctl tells him so" ends_with 77 as outsider actctl -i $ROBOT status
for verb in arm stop "swap reach"; do
    # shellcheck disable=SC2086
    ok "a client may not $verb" ends_with 77 as viewer actctl -i $ROBOT $verb
done
ok "an operator may, in its time" ends_with 1 ctl arm
