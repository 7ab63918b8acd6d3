"""actctl top on a terminal of the test's own: what it shows at each size, its keys, what it leaves behind."""
import fcntl
import os
import re
import select
import signal
import struct
import subprocess
import termios
import time

from kit import ACTCTL, Daemon, always, jc, ok, pb, reply, run, st, status

SEQUENCE = re.compile(r"\x1b\[(\??)([0-9;]*)([A-Za-z])")


class Terminal:
    """As much of a terminal as top uses; anything else is an error."""

    def __init__(self, rows, columns, *args, env=None):
        self.master, self.slave = os.openpty()
        self.resize(rows, columns)
        self.before = termios.tcgetattr(self.slave)
        self.row = self.column = 0
        self.other = self.hidden = False  # the other screen, the cursor
        self.text, self.raw, self.errors = "", "", []

        def own_session():
            os.setsid()
            fcntl.ioctl(0, termios.TIOCSCTTY, 0)
        e = {"PATH": os.environ["PATH"], "TERM": "xterm", "LC_ALL": "C.UTF-8", **(env or {})}
        for k in ("ASAN_OPTIONS", "UBSAN_OPTIONS"):
            if k in os.environ:
                e[k] = os.environ[k]
        self.p = subprocess.Popen([ACTCTL, *args], stdin=self.slave, stdout=self.slave, stderr=self.slave,
                                  env=e, preexec_fn=own_session)

    def resize(self, rows, columns):
        self.rows, self.columns = rows, columns
        self.cells = [[" "] * columns for _ in range(rows)]
        fcntl.ioctl(self.slave, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def feed(self, text):
        text = self.text + text
        at = 0
        while at < len(text):
            c = text[at]
            if c == "\x1b":
                m = SEQUENCE.match(text, at)
                if not m:
                    break  # the rest is still to come
                self.sequence(*m.groups())
                at = m.end()
                continue
            at += 1
            if c == "\r":
                self.column = 0
            elif c == "\n":
                self.row += 1
            elif ord(c) < 32:
                self.errors.append(f"control character {ord(c)}")
            elif self.row < self.rows and self.column < self.columns:
                self.cells[self.row][self.column] = c
                self.column += 1
            else:
                self.errors.append(f"written outside: {c!r} at {self.row},{self.column}")
        self.text = text[at:]

    def sequence(self, private, numbers, letter):
        if private:
            on = letter == "h"
            if numbers == "1049":
                self.other = on
            elif numbers == "25":
                self.hidden = not on
            elif numbers != "7":
                self.errors.append(f"mode {numbers}")
        elif letter == "H" and not numbers:
            self.row = self.column = 0
        elif letter == "K" and self.row < self.rows:
            self.cells[self.row][self.column:] = [" "] * (self.columns - self.column)
        elif letter == "J":
            self.cells = [[" "] * self.columns for _ in range(self.rows)]
        elif letter != "m":
            self.errors.append(f"sequence {letter}")

    def wait(self, condition, seconds=8):
        """Reads until the screen's text satisfies condition; whether it did."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            if condition(self.screen()):
                return True
            if select.select([self.master], [], [], 0.05)[0]:
                data = os.read(self.master, 65536).decode("utf-8", "replace")
                self.raw += data
                self.feed(data)
        return condition(self.screen())

    def screen(self):
        return "\n".join("".join(r).rstrip() for r in self.cells)

    def key(self, k):
        os.write(self.master, k.encode())

    def end(self, sig=None):
        if sig:
            os.kill(self.p.pid, sig)
        end = time.monotonic() + 10
        while self.p.poll() is None and time.monotonic() < end:
            self.wait(lambda _: False, 0.05)
        self.wait(lambda _: False, 0.1)
        gone = self.p.poll() is not None
        if not gone:
            self.p.kill()
        restored = termios.tcgetattr(self.slave) == self.before and not self.other and not self.hidden
        os.close(self.master)
        os.close(self.slave)
        return gone and restored


def sizes():
    s = status()
    with Daemon(always(reply(status=s))) as d:
        for rows, columns in ((24, 80), (24, 120), (50, 200), (10, 40), (3, 12), (1, 1), (150, 400)):
            r = run("--socket", d.path, "top", env={"LINES": str(rows), "COLUMNS": str(columns)})
            lines = r.out.splitlines()
            ok(f"one frame of {columns}x{rows} into a pipe", r.rc == 0 and len(lines) == min(rows, 100)
               and max(map(len, lines)) <= columns and "\x1b" not in r.out, r)
        r = run("--socket", d.path, "top")
        for w in ("reach", "RUNNING", "The policy drives", "99.7 of 100 Hz", "3.1 Hz", "2 skipped", "3 drops", "p50 23.0 ms",
                  "late (log) p99 0.12 ms max 2.40 ms", "chunk latency p50 25.0 ms p99 35.0 ms", "< 0.05 ms", "# 989", "## 1", "front", "wrist", "21.0 ms", "slow", "row 31/100",
                  "69 left", "2 blended", "85.0 ms", "joint_0", "joint_5", "VELOCITY", "-2.00 [", "] 2.00"):
            ok(f"80x24 shows {w}", w in r.out, r)
    s = status(joints=14, cameras=7)
    s.mode, s.reason, s.explanation = 6, 5, "camera front: no frame for 640 ms; see its cable"
    s.faults.add(reason=jc.REASON_CAMERA_STALE, active=True, latched=True)
    with Daemon(always(reply(status=s))) as d:
        r = run("--socket", d.path, "top")
        ok("14 joints and 8 streams in 24 rows", r.rc == 0 and len(r.out.splitlines()) == 24 and "joint_0" in r.out
           and "of 14" in r.out and re.search(r"and \d more", r.out) and "HOLD" in r.out and "640 ms" in r.out
           and "fault CAMERA_STALE latched" in r.out, r)
        r = run("--socket", d.path, "top", env={"LINES": "45"})
        ok("and all of them in 45", "joint_13" in r.out and "cam6" in r.out and "of 14" not in r.out, r)
    with Daemon(always(reply(status=st.Status()))) as d:
        ok("a status with nothing in it", run("--socket", d.path, "top").rc == 0)


def bars():
    """Marks lie where the numbers say: recomputed here from the numbers alone."""
    s = status(joints=4)
    for j, (m, c, w) in zip(s.joints, ((-2, 2, 0), (-3, 1, float("nan")), (0.5, 0.5, 9), (0, 0, 0))):
        j.measured, j.commanded, j.wanted = m, c, w
    s.joints[3].min = s.joints[3].max = 0
    with Daemon(always(reply(status=s))) as d:
        r = run("--socket", d.path, "top")
    bar = [re.search(r"\[([^=\]]*)\]", l).group(1) for l in r.out.splitlines() if l.startswith("joint_")]
    n = len(bar[0])
    at = lambda v: int((v + 2) / 4 * (n - 1) + 0.5)  # noqa: E731
    ok("marks at both ends and between", bar[0][0] == "o" and bar[0][-1] == "#" and bar[0][at(0)] == "w", bar)
    ok("beyond the limits, and nothing for NaN", bar[1][0] == "<" and bar[1][at(1)] == "#" and "w" not in bar[1], bar)
    ok("the commanded hides the measured", bar[2][at(0.5)] == "#" and bar[2][-1] == ">" and "o" not in bar[2], bar)
    ok("limits that are none", bar[3].strip() == "", bar)


def live():
    ticks = [1000]
    limit = [None]
    mode = ["RUNNING"]

    def answer(q):
        ticks[0] += 20
        if q.verb == pb.VERB_STATUS:
            yield reply(status=status(ticks=ticks[0], mode=mode[0]))
        else:
            yield reply(*(limit[0] or ("OK", "done so")))
    d = Daemon(answer)
    t = Terminal(24, 80, "--socket", d.path, "top", "--hz", "10")
    ok("it shows itself on the other screen", t.wait(lambda s: "RUNNING" in s and "q quit" in s) and t.other and t.hidden,
       t.screen())
    n, t0 = len(d.asked), time.monotonic()
    t.wait(lambda _: False, 2)
    rate = (len(d.asked) - n) / (time.monotonic() - t0)
    ok("it asks as often as told", 7 < rate < 11, rate)
    t.resize(40, 120)
    os.kill(t.p.pid, signal.SIGWINCH)
    ok("it takes the size of the terminal", t.wait(lambda s: "q quit" in s.splitlines()[-1] and len(s.splitlines()) == 40),
       t.screen())
    t.key(" ")
    ok("space is a pause", t.wait(lambda s: "PAUSED" in s), t.screen())
    n = len(d.asked)
    t.wait(lambda _: False, 0.5)
    ok("in which the conversation is kept up", len(d.asked) > n)
    t.key(" ")
    ok("and another goes on", t.wait(lambda s: "PAUSED" not in s), t.screen())
    acts = lambda: [pb.Verb.Name(q.verb) for q in d.asked if q.verb != pb.VERB_STATUS]  # noqa: E731
    t.key("s")
    ok("s stops", t.wait(lambda s: "stop: done so" in s) and acts() == ["VERB_STOP"], f"{acts()} {t.screen()}")
    t.key("e")
    ok("e asks first", t.wait(lambda s: "Press e again" in s) and acts() == ["VERB_STOP"], t.screen())
    for k in "xjk ":
        t.key(k)
        ok(f"'{k}' between takes it back, and says so", t.wait(lambda s: "another key cancelled" in s and "Press e" not in s)
           and acts() == ["VERB_STOP"], t.screen())
        t.key("e")
        ok("so that e asks anew", t.wait(lambda s: "Press e again" in s and "cancelled" not in s)
           and acts() == ["VERB_STOP"], t.screen())
    t.key(" ")
    t.wait(lambda s: "PAUSED" not in s)
    t.key("e")
    t.wait(lambda s: "Press e again" in s)
    t.wait(lambda _: False, 2)
    ok("for 3 s", "Press e again" in t.screen(), t.screen())
    ok("and no longer", t.wait(lambda s: "NOT sent: e was not pressed" in s and "Press e" not in s, 3), t.screen())
    t.key("e")
    ok("e asks again", t.wait(lambda s: "Press e again" in s) and acts() == ["VERB_STOP"], t.screen())
    t.key("e")
    ok("e again stops everything", t.wait(lambda s: "e-stop: done so" in s) and acts() == ["VERB_STOP", "VERB_ESTOP"], acts())
    mode[0] = "ESTOP"
    t.wait(lambda s: " ESTOP " in s)
    t.key("e")
    ok("in ESTOP e says so", t.wait(lambda s: "in ESTOP already" in s) and len(acts()) == 2, t.screen())
    t.key("e")
    ok("and may be sent all the same", t.wait(lambda s: "e-stop: done so" in s) and len(acts()) == 3, t.screen())
    mode[0] = "RUNNING"
    t.wait(lambda s: " RUNNING " in s)
    t.key("?")
    ok("? shows the keys", t.wait(lambda s: "pause the picture" in s and "any other key cancels" in s and "joint_0" not in s),
       t.screen())
    t.key("?")
    ok("and the joints again", t.wait(lambda s: "pause the picture" not in s and "joint_0" in s), t.screen())
    limit[0] = ("DENIED", "operators.act has no nobody")
    t.key("s")
    ok("a refusal is shown", t.wait(lambda s: "NOT DONE: operators.act" in s), t.screen())
    d.stop()
    ok("a daemon that is gone is told", t.wait(lambda s: "trying again" in s and "RUNNING" in s), t.screen())
    ticks[0] = 0
    d = Daemon(answer, d.path)
    ok("and one that is back", t.wait(lambda s: "connected again" in s and "restarted" in s and "trying" not in s),
       t.screen())
    ok("nothing was drawn outside", not t.errors, t.errors[:5])
    t.key("q")
    ok("q ends it, the terminal as before", t.end() and t.p.returncode == 0, t.p.returncode)
    d.stop()


def endings():
    d = Daemon(always(reply(status=status(joints=14))))
    for sig in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT, signal.SIGSEGV, signal.SIGABRT):
        t = Terminal(24, 80, "--socket", d.path, "top")
        t.wait(lambda s: "RUNNING" in s)
        ok(f"{sig.name}: the terminal as before", t.other and t.end(sig) and t.p.returncode == -sig,
           f"{t.p.returncode} {t.other} {t.hidden}")
    t = Terminal(24, 80, "--socket", d.path, "top")
    t.wait(lambda s: "RUNNING" in s)
    t.key("\x03")
    ok("Ctrl-C too", t.end() and t.p.returncode == -signal.SIGINT)
    t = Terminal(24, 80, "--socket", d.path, "top")
    t.wait(lambda s: "RUNNING" in s)
    t.key("j")
    ok("j goes to further joints", t.wait(lambda s: "joints 2 to" in s), t.screen())
    t.key("k")
    ok("k back", t.wait(lambda s: "joints 1 to" in s), t.screen())
    os.kill(t.p.pid, signal.SIGTSTP)
    stopped = lambda _: open(f"/proc/{t.p.pid}/stat").read().rsplit(")", 1)[1].split()[0] == "T"  # noqa: E731
    t.wait(stopped, 5)
    t.wait(lambda _: False, 0.1)
    ok("suspended, the terminal is as before", not t.other and not t.hidden
       and termios.tcgetattr(t.slave) == t.before)
    os.kill(t.p.pid, signal.SIGCONT)
    ok("and continued it is back", t.wait(lambda s: t.other and "RUNNING" in s, 5), t.screen())
    t.key("q")
    ok("q ends it still", t.end() and t.p.returncode == 0)
    t = Terminal(24, 80, "--socket", d.path, "top", env={"NO_COLOR": "1"})
    t.wait(lambda s: "RUNNING" in s)
    ok("NO_COLOR: none", not re.search(r"\x1b\[0;[0-9;]*m", t.raw))
    t.key("q")
    ok("and it ends", t.end())
    t = Terminal(24, 80, "--socket", d.path, "status")
    ok("on a terminal status has colours", t.wait(lambda s: "joint_13" in t.raw) and "\x1b[0;32mRUNNING" in t.raw, t.raw)
    t.end()
    t = Terminal(24, 80, "--socket", d.path, "status", env={"NO_COLOR": "1"})
    ok("and none with NO_COLOR", t.wait(lambda s: "joint_13" in t.raw) and "\x1b" not in t.raw)
    t.end()
    t = Terminal(24, 80, "--socket", d.path + "x", "top")
    ok("a path that is wrong is told on the ordinary screen", t.end() and t.p.returncode == 69 and "1049" not in t.raw
       and "is not there" in t.raw, t.raw)
    d.stop()


def everything():
    sizes()
    bars()
    live()
    endings()
