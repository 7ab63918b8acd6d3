# The example driver, cameras and status reader, prepared and run as they say themselves, around
# a real daemon.
. tests/e2e/lib.sh
if ! /usr/bin/python3 -c 'import zmq, google.protobuf' 2>/dev/null; then
    echo "ok 1 - examples # SKIP needs python3-zmq and python3-protobuf (make deps)"
    exit 0
fi
export PYTHONDONTWRITEBYTECODE=1

example() { # example LOG FILE WORD=VALUE…
    local log=$1 file=$2 command copy
    shift 2
    copy=$(mktemp -d "$T/copy.XXX") # its own: it reads what another's commands would write anew
    command=$(/usr/bin/python3 tests/e2e/as_documented.py "$copy" "$file" "$@") || exit 1
    background "$log" env -C "$copy" $command
}

# A grey JPEG of 96x96: one Huffman code of one bit each for "no difference" and "end of block".
grey_jpeg() {
    printf '\xff\xd8\xff\xdb\x00\x43\x00'
    printf '\x10%.0s' {1..64}
    printf '\xff\xc0\x00\x0b\x08\x00\x60\x00\x60\x01\x01\x11\x00'
    printf '\xff\xc4\x00\x14\x00\x01'
    head -c 16 /dev/zero
    printf '\xff\xc4\x00\x14\x10\x01'
    head -c 16 /dev/zero
    printf '\xff\xda\x00\x08\x01\x01\x00\x00\x3f\x00'
    head -c 36 /dev/zero
    printf '\xff\xd9'
}
grey_jpeg >"$T/a.jpg"
cp "$T/a.jpg" "$T/b.jpg"
sed 's/\xff\xc0/\xff\xc2/' "$T/a.jpg" >"$T/progressive.jpg"
joints=$(sed -n 's/^  \([a-z_]*\):$/\1/p' config/reach.yaml | xargs)

# The example has one size for every camera.
robot_yaml "$T/robot.yaml" 's/^policy:/policy:\n  resize: stretch/'
background "$T/actd.log" "$B/actd" run -c "$T/robot.yaml"
actd=$pid
example "$T/driver.log" driver_example.py RUNTIME="$T/run" JOINT...="$joints"
example "$T/front.log" camera_example.py RUNTIME="$T/run" CAMERA=front "[JPEG...]=$T/a.jpg $T/b.jpg"
front=$pid
example "$T/wrist.log" camera_example.py RUNTIME="$T/run" CAMERA=wrist "[JPEG...]="
example "$T/status.log" status_example.py RUNTIME="$T/run"
status=$pid
stream() { logged "$T/status.log" "^(MODE_[A-Z]+ REASON_[A-Z_]+), commands 9[0-9.]+ of 100 Hz.*, $1 $2[0-9.]+ of $3 Hz"; }
said() { sed 's/^/# /' "$T/status.log" "$T/driver.log" "$T/front.log" "$T/wrist.log"; }
ok "joints at about 100 Hz" wait_for 40 stream joints '(9|10)' 100 || said
ok "JPEG files at about 25 Hz" wait_for 10 stream front '2[3-5]' 25 || said
ok "raw frames at about 25 Hz" wait_for 10 stream wrist '2[3-5]' 25 || said
ok "nothing is refused or corrupt" test -z "$(grep -E 'refused|corrupt|duplicate' "$T/status.log")"
kill -TERM "$front"
wait "$front" 2>/dev/null
example "$T/front.log" camera_example.py RUNTIME="$T/run" CAMERA=front "[JPEG...]=$T/progressive.jpg"
ok "a progressive JPEG is refused" wait_for 10 logged "$T/status.log" 'front frames refused' || said
kill -TERM "$actd"
wait "$actd"
ok "the daemon ends well" test $? -eq 0
ok "the status reader waits for the next one" kill -0 "$status"
