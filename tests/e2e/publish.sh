# A recording, sent once more, feeds a live daemon: it becomes READY and stays fed, at the recorded
# rates; with the stamps of then it does not. Ctrl-C ends the sender cleanly.
. tests/e2e/lib.sh
robot_yaml "$T/robot.yaml"
mkdir -p "$T/rec" "$T/live"
chmod 750 "$T/live"
printf 'record: {mode: always, directory: %s/rec}\n' "$T" >>"$T/robot.yaml"
sed -e "s|^runtime: .*|runtime: $T/live|" -e '/^record:/d' "$T/robot.yaml" >"$T/live.yaml"
chmod 600 "$T/live.yaml"

ok "two episodes, recorded" exit_of 0 timeout 250 "$B/actd-demo" -c "$T/robot.yaml" -n 2 -s 3000 --need 0 -o "$T/demo"
ok "nobody listens: it says so" exit_of 0 "$B/actd" replay publish "$T/rec" --runtime "$T/live" --wait 0 --speed 50
ok "by its endpoints" logged "$T/out" '^only 0 of 3 endpoints had a listener'

background "$T/live.log" "$B/actd" run -c "$T/live.yaml"
daemon=$pid
ok "a daemon waits" wait_for 60 logged "$T/live.log" 'WAITING'
background "$T/publish.log" "$B/actd" replay publish "$T/rec" --runtime "$T/live" --loop --wait 30
sender=$pid
ok "it becomes READY" wait_for 60 logged "$T/live.log" 'WAITING -> READY'
ok "nothing that it was sent is undecodable" bash -c "! grep -qE 'undecodable|unparsable|wrong names' '$T/live.log'"
kill -INT "$sender"
ok "Ctrl-C ends the sender" wait_for 10 gone "$sender"
wait "$sender"
ok "with 0" test $? -eq 0
ok "all three had a listener" bash -c "! grep -q 'had a listener' '$T/publish.log'"
ok "it says how well it kept time" logged "$T/publish.log" '^[0-9]+ joint states, [0-9]+ frames, .* later than 2 ms'
sed 's/^/# /' "$T/publish.log"
ok "the daemon notices" wait_for 20 logged "$T/live.log" 'READY -> WAITING'
kill -TERM "$daemon"
ok "and ends" wait_for 20 gone "$daemon"
