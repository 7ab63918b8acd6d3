"""Every verb, its words on the wire, its exit statuses, its JSON."""
import math
import re
import time

from kit import ACTCTL, Daemon, always, jc, ok, pb, reply, run, st, status

SIMPLE = ["arm", "disarm", "stop", "estop", "reset", "home"]
EXITS = {"OK": 0, "REFUSED": 1, "DENIED": 77, "BUSY": 75, "RATE_LIMITED": 75, "INVALID": 76,
         "UNSUPPORTED": 1, "FAILED": 1}


def simple():
    for verb in SIMPLE:
        with Daemon(always(reply())) as d:
            r = run("--socket", d.path, verb)
            ok(f"{verb} asks for that and nothing else", r.rc == 0 and r.out.count("\n") == 1 and not r.err
               and [pb.Verb.Name(q.verb) for q in d.asked] == ["VERB_" + verb.upper()], r)
    with Daemon(always(reply(text="armed at tick 7"))) as d:
        r = run("--socket", d.path, "arm")
        ok("the daemon's sentence is shown", r.out == "armed at tick 7\n", r)
    for result, rc in EXITS.items():
        with Daemon(always(reply(result))) as d:
            r, j = run("--socket", d.path, "arm"), run("--json", "arm", env={"ACTD_SOCKET": d.path})
            ok(f"{result} is exit {rc}, with a sentence", r.rc == rc == j.rc and (rc == 0 or len(r.err) > 20), r)
            ok(f"{result} as JSON", j.json()["result"] == result and j.json()["exit_status"] == rc
               and (rc == 0 or j.json()["text"]) and not j.err, j)
    r99 = reply()
    r99.result = 99
    with Daemon(always(r99)) as d:
        r = run("--socket", d.path, "arm")
        ok("a result of the future is exit 76 and blames the version", r.rc == 76 and "version" in r.err, r)


def words():
    with Daemon(always(reply("UNSUPPORTED", "act takes no instructions"))) as d:
        r = run("--socket", d.path, "instruct", 'put "it" down')
        ok("instruct sends the text", d.asked[0].verb == pb.VERB_INSTRUCT and d.asked[0].text == 'put "it" down'
           and r.rc == 1 and "act takes no instructions" in r.err, r)
        r = run("--socket", d.path, "instruct", "x" * 5000)
        ok("a text that does not fit is a usage error", r.rc == 64 and "1023" in r.err, r)
        r = run("--socket", d.path, "instruct", b"\xff\xfe")
        ok("a text that is no UTF-8 too", r.rc == 64 and len(d.asked) == 1, r)
        for w in ("start", "stop"):
            run("--socket", d.path, "record", w)
            ok(f"record {w}", pb.Verb.Name(d.asked[-1].verb) == "VERB_RECORD_" + w.upper())
        run("--socket", d.path, "record", "mark", "the cup slipped: 3 \u00b0")
        ok("record mark", d.asked[-1].verb == pb.VERB_RECORD_MARK and d.asked[-1].text == "the cup slipped: 3 \u00b0")
        n = len(d.asked)
        for words in (["on"], ["mark"], ["mark", ""], ["start", "x"], ["stop", "x"], ["mark", b"\xff"], ["mark", "a\nb"], ["mark", "\x1b[2J"],
                      ["mark", "\u0085"], ["mark", "x" * 1024]):
            r = run("--socket", d.path, "record", *words)
            ok(f"record {words}", r.rc == 64 and r.err and len(d.asked) == n, r)
    with Daemon(always(reply(text="marked: x"))) as d:
        r = run("--socket", d.path, "record", "mark", "x")
        ok("what the daemon says of a mark", r.rc == 0 and r.out == "marked: x\n", r)


def usage():
    for args in (["arm", "now"], ["swap"], ["swap", "a", "b"], ["swap", "--back", "a"], ["swap", "../a"], ["swap", "\u00e9"], ["swap", "a" * 64],
                 ["swap", ".."], ["swap", ""], ["swap", "a", "--allow", "joints,colour"], ["swap", "a", "--allow", ""], ["swap", "a", "--allow", "rate," * 60 + "x"],
                 ["swap", "--back", "--allow", "rate"], ["instruct"], ["record"], ["bridge"], ["status", "--bind", "x"], ["flap"], [], ["arm", "--force"],
                 ["status", "--hz", "5"], ["top", "--hz", "0"], ["top", "--hz", "nan"], ["top", "--hz", "21"],
                 ["top", "--hz", "5x"], ["--nonsense"], ["-i"], ["-i", "a/b", "status"],
                 ["-i", "a", "--socket", "/x", "status"], ["policies", "x"]):
        r = run(*args)
        ok(f"usage: actctl {' '.join(args)}", r.rc == 64 and r.err and not r.out, r)
    r = run("bogus\x1b[2J")
    ok("an unknown command is named", r.err == "actctl: unknown command 'bogus\\x1b[2J'; actctl --help lists them\n", r)


def the_status():
    s = status()
    with Daemon(always(reply(status=s))) as d:
        r = run("--socket", d.path, "status")
        lines = r.out.splitlines()
        ok("status is a screenful", r.rc == 0 and len(lines) < 40 and max(map(len, lines)) <= 80, r)
        for piece in ("RUNNING", "The policy drives", "actctl disarm", "3f" * 32, "reach-old", "99.7 of 100 Hz",
                      "p50 0.05 ms", "p99 0.12 ms", "max 2.40 ms", "row 31.0 of 100, 69.0 left", "85.0 ms old",
                      "2 blended", "joint_5", "VELOCITY", "3 late", "joint_2:velocity 17", "front", "9.9-test"):
            ok(f"status shows {piece[:20]}", piece in r.out, r)
        ok("a drop that never was is left out", "corrupt" not in r.out)
        ok("no escape sequence goes into a pipe", "\x1b" not in r.out)
    s.mode, s.reason, s.explanation = jc.MODE_STOPPED, jc.REASON_JOINTS_STALE, "joints: nothing for 3.2 s"
    s.faults.add(reason=jc.REASON_JOINTS_STALE, active=True, latched=True, episodes=2, last_tick=999)
    s.faults.add(reason=jc.REASON_CAMERA_MISSING, episodes=4, last_tick=9)
    s.mode, s.reason = 8, 3
    with Daemon(always(reply(status=s))) as d:
        r = run("--socket", d.path, "status")
        ok("a stop: why, and what to do", all(w in r.out for w in (
            "STOPPED", "JOINTS_STALE", "nothing for 3.2 s", "actctl reset", "latched", "2 times", "CAMERA_MISSING 4")), r)
    s.mode, s.reason = 77, 99
    with Daemon(always(reply(status=s))) as d:
        r = run("--socket", d.path, "status")
        ok("a mode of the future", r.rc == 0 and "UNKNOWN 77" in r.out and "UNKNOWN 99" in r.out, r)
    for mode in ("HOLD", "READY", "APPROACH", "STOPPED", "ESTOP", "HOMING"):
        with Daemon(always(reply(status=status(mode=mode)))) as d:
            r, t = run("--socket", d.path, "status"), run("--socket", d.path, "top")
            rows = mode == "HOLD"
            ok(f"{mode}: the place in the chunk only where it is followed", ("row 31.0 of 100" in r.out) == rows
               and ("row 31/100" in t.out) == rows and ("ready, not followed" in r.out) != rows
               and ("ready, not followed" in t.out) != rows and ("[===" in t.out) == rows, f"{r}\n{t}")
    recording = status()
    with Daemon(always(reply(status=recording))) as d:
        ok("no recorder, no word of it", "record" not in run("--socket", d.path, "status").out
           and "REC" not in run("--socket", d.path, "top").out)
    recording.record.SetInParent()
    with Daemon(always(reply(status=recording))) as d:
        ok("nor of one that never did anything", "record" not in run("--socket", d.path, "status").out)
    recording.record.CopyFrom(st.RecordStatus(mode=st.RecordStatus.TRIGGER, recording=True, healthy=True, files=2,
                                              file="/r/left-1.mcap.part", bytes=3_400_000, messages=1234))
    recording.record.lost.add(name="frames", value=5)
    recording.record.lost.add(name="ticks", value=0)
    with Daemon(always(reply(status=recording))) as d:
        r, t = run("--socket", d.path, "status"), run("--socket", d.path, "top")
        ok("a recording is shown", all(w in r.out for w in (
            "record     on, mode TRIGGER; 2 files, 3.4 MB, 1234 messages", "/r/left-1.mcap.part", "frames 5"))
           and "ticks" not in r.out.split("lost")[1].splitlines()[0] and " REC " in t.out, f"{r}\n{t}")
    recording.record.recording, recording.record.held_bytes = False, 7_000_000
    with Daemon(always(reply(status=recording))) as d:
        r, t = run("--socket", d.path, "status"), run("--socket", d.path, "top")
        ok("one that waits", "off until a fault or a mark, mode TRIGGER" in r.out and "7.0 MB in memory" in r.out
           and "rec waits" in t.out, f"{r}\n{t}")
    recording.record.last_error = "/r: cannot be written: No space left on device; make room"
    with Daemon(always(reply(status=recording))) as d:
        r, t = run("--socket", d.path, "status"), run("--socket", d.path, "top")
        ok("one that can not", "make room" in r.out and "record fails" in t.out, f"{r}\n{t}")
    with Daemon(always(reply(status=st.Status()))) as d:
        r = run("--socket", d.path, "status")
        ok("a status with nothing in it", r.rc == 0 and "chunk      none" in r.out, r)
    with Daemon(always(reply())) as d:
        r = run("--socket", d.path, "status")
        ok("no status in the answer is no answer", r.rc == 76, r)


def twin(m):
    """JSON as documented, by the protobuf library's own reflection: shares nothing with json.c."""
    units = {("JointStatus", n): n + "_rad" for n in ("measured", "commanded", "wanted", "min", "max")}
    units |= {("JointStatus", "velocity"): "velocity_rad_s", ("ChunkStatus", "row"): "row_rows",
              ("ChunkStatus", "remaining"): "remaining_rows", ("Status", "timestamp"): "timestamp_s"}
    prefixes = {"Mode": "MODE_", "Reason": "REASON_", "Limit": "LIMIT_", "SwapStage": "SWAP_STAGE_",
                "Severity": "", "Result": "RESULT_", "Verb": "VERB_"}

    def one(f, v):
        if f.type == f.TYPE_MESSAGE:
            return v.seconds + v.nanos / 1e9 if f.message_type.name == "Timestamp" else twin(v)
        if f.type == f.TYPE_ENUM:
            e = f.enum_type.values_by_number.get(v)
            return e.name.removeprefix(prefixes[f.enum_type.name]) if e else f"UNKNOWN {v}"
        return None if isinstance(v, float) and not math.isfinite(v) else v

    out = {}
    for f in m.DESCRIPTOR.fields:
        v = getattr(m, f.name)
        if f.label == f.LABEL_REPEATED:
            v = [one(f, x) for x in v]
        elif f.type == f.TYPE_MESSAGE and not m.HasField(f.name):
            v = None
        else:
            v = one(f, v)
        out[units.get((m.DESCRIPTOR.name, f.name), f.name)] = v
    return out


def same(a, b):
    if isinstance(a, dict):
        return isinstance(b, dict) and a.keys() == b.keys() and all(same(a[k], b[k]) for k in a)
    if isinstance(a, list):
        return isinstance(b, list) and len(a) == len(b) and all(map(same, a, b))
    if isinstance(a, float) or isinstance(b, float):
        return type(a) in (int, float) and type(b) in (int, float) and math.isclose(a, b, rel_tol=1e-13)
    return type(a) is type(b) and a == b


def full_report(**kw):
    return pb.SwapReport(number=4, stage=pb.SWAP_STAGE_DONE, **{"from": "reach"}, to="pick", from_digest="1" * 64,
                         to_digest="2" * 64, load_ns=812_000_000, trial_ns=400_000_000, commit_ns=9_000_000,
                         total_ns=1_230_000_000, trials=5, inference_median_ns=24_000_000,
                         inference_worst_ns=31_000_000, deadline_ns=120_000_000, difference_rad=0.0421,
                         difference_joint="joint_2", difference_row=13, bound_rad=0.3, golden_error=3e-7,
                         tick=45678, **kw)


def as_json():
    s = status()
    s.joints[1].measured = float("inf")
    s.ticks = 2**63 - 1
    s.faults.add(reason=jc.REASON_ESTOP, active=True, episodes=1)
    s.budgets.add(name="wakeup", limit_ns=500_000, samples=9, missed=1, worst_ns=700_000)
    s.seams.add(joint="joint_0", max_rad=0.5, max_rad_s=1.25, tick=3)
    with Daemon(always(reply(status=s))) as d:
        j = run("--socket", d.path, "--json", "status").json()
        ok("JSON of a status, key for key", j.keys() == {"result", "exit_status", "text", "status"}
           and same(j["status"], twin(s)), j)
        j = run("--socket", d.path, "top", "--json").json()
        ok("JSON of top is the same", same(j["status"], twin(s)), j)
    with Daemon(always(reply(status=st.Status()))) as d:
        j = run("--socket", d.path, "--json", "status").json()
        ok("JSON of an empty status has every key", same(j["status"], twin(st.Status())), j)
    with Daemon(always(reply(swap=full_report()))) as d:
        j = run("--socket", d.path, "--json", "swap", "pick").json()
        ok("JSON of a swap", j["result"] == "OK" and same(j["swap"], twin(full_report())), j)
    p = [pb.PolicyEntry(name="a", running=True, usable=True, bytes=2**40, modified_s=1_700_000_000)]
    with Daemon(always(reply(policies=p))) as d:
        j = run("--socket", d.path, "--json", "policies").json()
        ok("JSON of policies", same(j["policies"], [twin(x) for x in p]), j)
    with Daemon(always(reply(metrics="a 1\nb 2\n"))) as d:
        ok("JSON of metrics", run("--socket", d.path, "--json", "metrics").json()["metrics"] == "a 1\nb 2\n")


def swapping():
    steps = [reply("PROGRESS", "3 of 100 tensors", swap=pb.SwapReport(stage=1, to="pick", total_ns=100_000_000)),
             reply("PROGRESS", swap=pb.SwapReport(stage=2, to="pick", trials=2, inference_worst_ns=31_000_000)),
             reply("PROGRESS", swap=pb.SwapReport(stage=3, to="pick")), reply(swap=full_report())]
    with Daemon(always(*steps)) as d:
        r = run("--socket", d.path, "swap", "pick", "--allow", "rate,chunk,rate", "--force")
        q = d.asked[0]
        ok("swap asks for it", q.verb == pb.VERB_SWAP and q.name == "pick" and q.force
           and list(q.allow) == ["rate", "chunk"] and [x.verb for x in d.asked[1:]] == [pb.VERB_STATUS], q)
        ok("swap shows its progress", all(w in r.err for w in (
            "loading", "3 of 100 tensors", "trying", "2 trials", "changing over")) and r.err.count("\n") == 3, r)
        ok("and ends with a table", r.rc == 0 and all(w in r.out for w in (
            "1" * 64, "2" * 64, "812 ms", "1.23 s", "5 trials", "31.0 ms", "deadline 120 ms", "0.0421 rad", "joint_2",
            "row 13", "bound 0.3000", "3.0e-07", "45678")), r)
        j = run("--socket", d.path, "--json", "swap", "pick")
        ok("with --json one object and no progress", j.json()["swap"]["to"] == "pick" and not j.err, j)
    with Daemon(always(reply(swap=full_report()))) as d:
        run("--socket", d.path, "swap", "--back", "--force")
        ok("swap --back", d.asked[0].verb == pb.VERB_SWAP_BACK and d.asked[0].force and not d.asked[0].name)
    far = full_report()
    far.stage, far.difference_rad = pb.SWAP_STAGE_FAILED, 0.9
    with Daemon(always(steps[0], reply("REFUSED", "joint_2 differs by 0.9 rad", swap=far))) as d:
        r = run("--socket", d.path, "swap", "pick")
        ok("too different: exit 65, the sentence, and --force", r.rc == 65 and "differs by 0.9" in r.err
           and "actctl swap pick --force" in r.err and "(above)" in r.out and "live" not in r.out, r)
        r = run("--socket", d.path, "swap", "pick", "--force")
        ok("--force is not told to who gave it", r.rc == 65 and "swap pick --force" not in r.err, r)
    with Daemon(swapped(reply("FAILED", "model.decoder.0: NaN"), "RUNNING")) as d:
        r = run("--socket", d.path, "swap", "pick")
        ok("a bad candidate: exit 65", r.rc == 65 and "NaN" in r.err and "running policy goes on" in r.err, r)
    for result, rc in (("BUSY", 75), ("DENIED", 77)):
        with Daemon(always(reply(result, "no"))) as d:
            r = run("--socket", d.path, "swap", "pick")
            ok(f"a swap that is {result}", r.rc == rc and "goes on" not in r.err and "stays" not in r.err, r)


def swapped(answer, mode, *steps):
    """A daemon that answers a swap so, and whose arm is then in that mode (None: it does not tell)."""
    def both(q):
        if q.verb == pb.VERB_STATUS:
            return always(reply(status=status(mode=mode)) if mode else reply("RATE_LIMITED"))(q)
        return always(*steps, answer)(q)
    return both


def after_swap():
    """What a swap says by what the arm does when it is over."""
    refused = reply("FAILED", "given up: the arm stops (ESTOP)", swap=pb.SwapReport(stage=5, **{"from": "a"}, to="b",
                                                                                   golden_error=-1))
    stopped = "the policy before stays loaded; the arm has stopped: see actctl status"
    for mode, want in (("RUNNING", "the running policy goes on"), ("STOPPED", stopped), ("ESTOP", stopped),
                       ("STOPPING", "the policy before stays loaded; the arm is stopping: see actctl status"),
                       ("READY", "the policy before stays loaded"), (None, "the policy before stays loaded")):
        with Daemon(swapped(refused, mode)) as d:
            r = run("--socket", d.path, "swap", "b")
            ok(f"refused, {mode}: what the arm does", r.rc == 65 and r.err.splitlines()[-1] == f"actctl: {want}", r)
    ok("refused before it was loaded: no times, no digests", r.out.split() == ["from", "a", "to", "b"], r)
    part = pb.SwapReport()
    part.CopyFrom(refused.swap)
    part.from_digest, part.to_digest, part.load_ns, part.total_ns = "1" * 64, "2" * 64, 300_000_000, 310_000_000
    with Daemon(swapped(reply("FAILED", "no", swap=part), "RUNNING")) as d:
        r = run("--socket", d.path, "swap", "b")
        ok("refused after it: those that there are", "loaded in 300 ms, in all 310 ms" in r.out and "tried" not in r.out
           and "changed" not in r.out and "1" * 64 in r.out and "2" * 64 in r.out, r)
    for mode in ("RUNNING", "READY", "STOPPED", None):
        with Daemon(swapped(reply(swap=full_report()), mode)) as d:
            r = run("--socket", d.path, "swap", "pick")
            drives = mode == "RUNNING"
            ok(f"done, {mode}: {'live and drives' if drives else 'in use'}", r.rc == 0 and ("live" in r.out) == drives
               and ("drives" in r.out) == drives and bool(re.search("in use +from tick 45678", r.out)) != drives
               and ("does not follow" in r.out) == (mode in ("READY", "STOPPED")), r)
    far = full_report()
    far.stage, far.difference_rad = pb.SWAP_STAGE_FAILED, 0.9
    with Daemon(swapped(reply("FAILED", "0.9 rad apart: use --force when that is meant", swap=far), "RUNNING")) as d:
        r = run("--socket", d.path, "swap", "pick")
        ok("--force is named once", r.rc == 65 and r.err.count("--force") == 1, r)


def swap_clock():
    """A line of progress tells when it came, whatever the report says."""
    def slow(q):
        if q.verb == pb.VERB_STATUS:
            yield reply(status=status())
            return
        yield reply("PROGRESS", swap=pb.SwapReport(stage=1, to="b"))
        time.sleep(0.4)
        yield reply("PROGRESS", swap=pb.SwapReport(stage=2, to="b", total_ns=1_000_000))
        yield reply("PROGRESS", swap=pb.SwapReport(stage=3, to="b", total_ns=50_000_000_000))
        yield reply(swap=full_report())
    with Daemon(slow) as d:
        r = run("--socket", d.path, "swap", "b")
    told = [float(n) / (1000 if u == "ms" else 1) for n, u in re.findall(r"^ +([0-9.]+) (ms|s) ", r.err, re.M)]
    ok("progress: the time that has passed, or the report's where that is more", len(told) == 3 and told[0] < 0.4
       and 0.4 <= told[1] <= r.seconds and told[2] == 50, r)


def listing():
    p = [pb.PolicyEntry(name="reach", running=True, usable=True, bytes=52_000_000, modified_s=1_700_000_000),
         pb.PolicyEntry(name="old", previous=True, usable=True),
         pb.PolicyEntry(name="evil\x1b[2J", note="writable for everybody")]
    with Daemon(always(reply(policies=p))) as d:
        r = run("--socket", d.path, "policies")
        ok("policies", r.rc == 0 and all(w in r.out for w in ("running", "previous", "52.0 MB", "2023-11-1",
                                                              "unusable", "writable for everybody")), r)
        ok("names, those that can be had", run("--socket", d.path, "policies", "--names").out == "reach\nold\n")
    with Daemon(always(reply())) as d:
        ok("no policies", "swap.directory" in run("--socket", d.path, "policies").out)
    with Daemon(always(reply(metrics="# HELP x y\nx{i=\"a\"} 1\n"))) as d:
        ok("metrics as they are", run("--socket", d.path, "metrics").out == "# HELP x y\nx{i=\"a\"} 1\n")


def diagnosing():
    f = [pb.Finding(what="zzz", severity=2, text="It hurts \x1b[1m.", remedy="sudo mend"),
         pb.Finding(what="yyy", severity=0, text="Fine.")]
    with Daemon(always(reply(findings=f))) as d:
        r, j = run("--socket", d.path, "doctor"), run("--socket", d.path, "--json", "doctor")
        ok("doctor tells what hurts and mends", r.rc == 1 and "sudo mend" in r.out and "\x1b" not in r.out, r)
        n = [len(re.findall(f"^{w} ", r.out, re.M)) for w in ("hurts", "note", "good")]
        last = r.out.splitlines()[-1]
        ok("and counts them", last == f"{n[0]} problem{'s' * (n[0] != 1)}, {n[1]} note{'s' * (n[1] != 1)}, {n[2]} good"
           and n[0] and n[2], r)
        found = j.json()["findings"]
        ok("the daemon's and the machine's are merged", len(found) > 2 and "zzz" in [x["what"] for x in found]
           and len({x["what"] for x in found}) == len(found) and j.rc == 1, j)
        ok("severities by name", {x["severity"] for x in found} <= {"GOOD", "NOTE", "HURTS"}, j)
    r = run("--socket", "/nowhere/control", "doctor")
    ok("doctor without a daemon: the machine, and exit 69", r.rc == 69 and len(r.out) > 100 and "/nowhere" in r.err, r)
    with Daemon(always(reply("DENIED", "not you"))) as d:
        r = run("--socket", d.path, "doctor")
        ok("doctor of a daemon that will not", r.rc == 77 and len(r.out) > 100 and "not you" in r.err, r)


def everything():
    assert ACTCTL
    simple()
    words()
    usage()
    the_status()
    as_json()
    swapping()
    after_swap()
    swap_clock()
    listing()
    diagnosing()
