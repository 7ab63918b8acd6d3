"""Daemons that are not there, not ours, silent, hostile; and which of several is meant."""
import os
import socket
import threading
import time

from kit import T, Daemon, always, ok, pb, reply, run, st, status

HOSTILE = "a\x1b]0;title\x07\x1b[2J\u0085\u202e\x9b\r\nforged: RUNNING\x00\x7f"


def nobody():
    r = run("--socket", f"{T}/none/control", "status")
    ok("no socket: no unit is guessed from a path", r.rc == 69 and f"{T}/none/control" in r.err and "actd@" not in r.err
       and "actd run -c robot.yaml" in r.err, r)
    r = run("status", env={"ACTD_SOCKET": f"{T}/none/control"})
    ok("nor from that of $ACTD_SOCKET", r.rc == 69 and f"{T}/none/control" in r.err and "actd@" not in r.err, r)
    j = run("--json", "--socket", f"{T}/none/control", "status")
    ok("no socket, as JSON", j.rc == 69 and j.json()["result"] == "NO_DAEMON" and j.json()["exit_status"] == 69, j)
    left = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    left.bind(f"{T}/left")
    left.close()
    r = run("--socket", f"{T}/left", "status")
    ok("a socket that was left behind", r.rc == 69 and "nobody listens" in r.err, r)
    r = run("--socket", "/" + "x" * 200, "status")
    ok("a path that is too long", r.rc == 64 and "107" in r.err, r)
    with open(f"{T}/file", "w"):
        pass
    ok("a file", run("--socket", f"{T}/file", "status").rc == 69)
    s = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    s.bind(f"{T}/stream")
    s.listen()
    r = run("--socket", f"{T}/stream", "status")
    ok("a socket of another kind", r.rc == 69 and "another kind" in r.err, r)


def silent():
    with Daemon(lambda q: iter(())) as d:
        r = run("--socket", d.path, "status")
        ok("an answer that never comes is waited for 2 s", r.rc == 69 and 1.9 < r.seconds < 6 and "answer" in r.err, r)
    full = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    full.bind(f"{T}/full")
    full.listen(0)
    waiting = [socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) for _ in range(3)]
    for w in waiting:
        w.setblocking(False)
        w.connect_ex(f"{T}/full")
    r = run("--socket", f"{T}/full", "status")
    ok("a daemon that takes no connection too", r.rc == 69 and 1.9 < r.seconds < 6, r)
    with Daemon(lambda q: iter((None,))) as d:
        r = run("--socket", d.path, "arm")
        ok("a daemon that hangs up", r.rc == 69 and "closed" in r.err and r.seconds < 1.9, r)

    def early(listener):
        s, _ = listener.accept()
        s.send(reply("BUSY", "16 sessions are taken").SerializeToString())
        time.sleep(late)  # the question comes before or after the end
        s.close()
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    listener.bind(f"{T}/early")
    listener.listen()
    for late in (0, 0.3):
        threading.Thread(target=early, args=(listener,), daemon=True).start()
        r = run("--socket", f"{T}/early", "arm")
        ok("a refusal before the question is heard", r.rc == 75 and "16 sessions" in r.err, r)


def strange():
    for what, bytes_ in (("garbage", b"\xff" * 100), ("a message cut off", reply(text="x" * 50).SerializeToString()[:-9]),
                         ("a gigabyte claimed", b"\x1a\xff\xff\xff\xff\x03"), ("a stranger's protocol", b"HTTP/1.1 200 OK\r\n\r\n")):
        with Daemon(always(bytes_)) as d:
            r = run("--socket", d.path, "status")
            ok(f"{what} is exit 76", r.rc == 76 and "protocol" in r.err, r)
    with Daemon(always(b"\x1a\x80\x80\x14" + b"x" * 300_000)) as d:
        r = run("--socket", d.path, "status")
        ok("an answer of more than 256 KiB", r.rc == 76 and "256" in r.err, r)
    late = reply(text="too late")
    late.id = 4711
    with Daemon(lambda q: iter((late, reply(text="in time")))) as d:
        r = run("--socket", d.path, "arm")
        ok("an answer to another question is not ours", r.out == "in time\n", r)
    unknown = reply(text="from tomorrow", status=status()).SerializeToString()
    unknown += b"\xfa\x3f\x03abc"  # field 1023
    with Daemon(lambda q: iter((unknown + b"\x08" + bytes([q.id]),))) as d:
        r = run("--socket", d.path, "status")
        ok("fields of tomorrow are passed over", r.rc == 0 and "RUNNING" in r.out, r)


def hostile():
    s = status()
    s.instance = s.version = s.explanation = s.policy = s.scheduling = s.black_box = HOSTILE
    s.policy_in_use.name = s.policy_in_use.previous = s.policy_in_use.digest = HOSTILE
    s.policy_in_use.type = s.policy_in_use.swapping_to = HOSTILE
    for x in (*s.joints, *s.streams, *s.drops, *s.limited):
        x.name = HOSTILE
    s.budgets.add(name=HOSTILE, missed=1)
    s.record.file = s.record.last_error = HOSTILE
    s.record.lost.add(name=HOSTILE, value=1)
    w = pb.SwapReport(**{"from": HOSTILE}, to=HOSTILE, from_digest=HOSTILE, to_digest=HOSTILE,
                      difference_joint=HOSTILE, golden_error=-1)
    f = [pb.Finding(what=HOSTILE, severity=x, text=HOSTILE, remedy=HOSTILE) for x in (0, 2, 7)]
    p = [pb.PolicyEntry(name=HOSTILE, note=HOSTILE, usable=True)]
    everything = reply(text=HOSTILE, status=s, swap=w, findings=f, policies=p, metrics=HOSTILE)
    verbs = (["status"], ["top"], ["arm"], ["swap", "x"], ["policies"], ["policies", "--names"], ["metrics"], ["doctor"])
    for result in ("OK", "REFUSED"):
        everything.result = pb.Result.Value("RESULT_" + result)
        with Daemon(always(everything)) as d:
            for verb in verbs:
                r = run("--socket", d.path, *verb, env={"LC_ALL": "C.UTF-8"})
                bad = [c for c in r.out + r.err if (ord(c) < 32 and c != "\n") or 127 <= ord(c) < 160 or c in "\u202e\ufffd"]
                # A line of their own is theirs to make in metrics only.
                forged = verb != ["metrics"] and any(l.startswith("forged") for l in (r.out + r.err).splitlines())
                ok(f"{' '.join(verb)} ({result}): nothing of a hostile daemon moves the cursor", not bad and not forged
                   and r.rc in (0, 1, 65), f"{bad} {r}")
                j = run("--socket", d.path, "--json", *verb)
                ok(f"{' '.join(verb)} ({result}): and its JSON is JSON", "\x1b" not in j.out and "\\u001b" in j.out.lower()
                   and isinstance(j.json(), dict), j)
    raw = reply(text="Q").SerializeToString().replace(b"Q", b"\xff")  # a string that is no UTF-8
    with Daemon(lambda q: iter((raw + b"\x08" + bytes([q.id]),))) as d:
        r, j = run("--socket", d.path, "arm"), run("--socket", d.path, "--json", "arm")
        ok("bytes that are no UTF-8", r.out == "\\xff\n" and j.json()["text"] == "\ufffd", f"{r} {j}")


def several():
    run_dir = f"{T}/run"
    for n in ("left", "right", "dead"):
        os.makedirs(f"{run_dir}/actd/{n}")
    env = {"XDG_RUNTIME_DIR": run_dir}
    r = run("status", env=env)
    ok("no daemon: where it was looked for", r.rc == 69 and "/run/actd/*/control" in r.err
       and f"{run_dir}/actd/*/control" in r.err and "systemctl" in r.err
       and "or start one: actd run -c robot.yaml" in r.err, r)
    dead = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    dead.bind(f"{run_dir}/actd/dead/control")
    dead.close()
    for args in (("-i", "dead"), ()):
        r = run(*args, "status", env=env | ({"ACTD_SOCKET": "/x"} if args else {}))
        ok("of one that was found the unit is known", r.rc == 69 and "nobody listens" in r.err
           and "systemctl status actd@dead" in r.err, r)
    s = status()
    with Daemon(always(reply(status=s)), f"{run_dir}/actd/left/control") as left:
        r = run("status", env=env)
        ok("the only one that lives is meant", r.rc == 0 and len(left.asked) == 1, r)
        with Daemon(always(reply(status=s)), f"{run_dir}/actd/right/control") as right:
            r = run("status", env=env)
            ok("of two, none", r.rc == 64 and "left, right" in r.err and "-i left" in r.err
               and len(left.asked) == 1 and not right.asked, r)
            r = run("-i", "right", "status", env=env)
            ok("-i says which", r.rc == 0 and len(right.asked) == 1, r)
            r = run("status", env=env | {"ACTD_SOCKET": right.path})
            ok("$ACTD_SOCKET too", r.rc == 0 and len(right.asked) == 2, r)
            r = run("-i", "left", "status", env=env | {"ACTD_SOCKET": right.path})
            ok("-i counts before $ACTD_SOCKET", r.rc == 0 and len(left.asked) == 2, r)
    r = run("-i", "none", "status", env=env)
    ok("-i that is not there", r.rc == 69 and "/run/actd/none/control" in r.err
       and f"{run_dir}/actd/none/control" in r.err and "actd@none" in r.err and "actd run -c robot.yaml" in r.err, r)


def permission():
    if os.getuid() != 0:
        ok("no permission # SKIP needs root to become somebody else", True)
        return
    os.chmod(T, 0o755)
    os.makedirs(f"{T}/shut/actd/arm7", mode=0o755)
    with Daemon(always(reply(status=status())), f"{T}/shut/actd/arm7/control") as d:
        os.chown(d.path, 0, 4)  # adm, on every Debian
        os.chmod(d.path, 0o660)

        def nobody():
            os.setgroups([])
            os.setgid(65534)
            os.setuid(65534)
        r = run("--socket", d.path, "status", preexec_fn=nobody)
        ok("no permission: which group", r.rc == 77 and "usermod -aG adm" in r.err, r)
        os.chown(f"{T}/shut/actd/arm7", 0, 4)
        os.chmod(f"{T}/shut/actd/arm7", 0o750)
        r = run("status", preexec_fn=nobody, env={"XDG_RUNTIME_DIR": f"{T}/shut"})
        ok("a directory that is shut is found all the same", r.rc == 77 and "usermod -aG adm" in r.err, r)


def everything():
    assert st and time
    nobody()
    silent()
    strange()
    hostile()
    several()
    permission()
