"""What is said about actctl (help, manual, completion) against what it does."""
import os
import re
import subprocess
import time

from kit import ACTCTL, BUILD, Daemon, always, ok, pb, reply, run, st, status

MANUAL = "daemon/man/actctl.1"
ACTING = "arm disarm stop estop reset home instruct record doctor".split()


def helps():
    text = run("--help").out
    verbs = re.findall(r"^  ([a-z]+) ", text, re.M)
    ok("help names 15 commands", len(verbs) == len(set(verbs)) == 15, verbs)
    texts = {"": text}
    for v in verbs:
        r = run(v, "--help")
        texts[v] = r.out
        ok(f"{v} --help: usage, example, statuses", r.rc == 0 and not r.err and r.out.startswith("usage: actctl")
           and f"{v}" in r.out.splitlines()[0] and f"example: actctl {v}" in r.out and "exit status:" in r.out
           and max(map(len, r.out.splitlines())) <= 90, r)
        ok(f"help {v} is the same", run("help", v).out == r.out)
        own = r.out.split("exit status:")[1]
        ok(f"{v} --help: the statuses that it has", (" 65 " in own) == (v == "swap") and (" 1 " in own) == (v in ACTING)
           and ("something hurts" in own) == (v == "doctor"), r)
    ok("what not every policy does is told", "(where the policy can)" in re.search("^  instruct .*", text, re.M)[0], text)
    return verbs, texts


def options(text):
    return set(re.findall(r"^ +(?:-[a-z], )?(--[a-z]+(?:-[a-z]+)*)", text, re.M)) | set(re.findall(r"^ +(-[a-z]), --", text, re.M))


def manual(verbs, texts):
    source = open(MANUAL).read()
    if subprocess.run(["sh", "-c", "command -v man"], capture_output=True).returncode == 0:
        p = subprocess.run(["man", "-l", "--warnings", MANUAL], capture_output=True, text=True,
                           env={**os.environ, "MANWIDTH": "80", "LC_ALL": "C.UTF-8"})
        ok("the manual formats without a warning", p.returncode == 0 and not p.stderr and len(p.stdout) > 5000, p.stderr)
    else:
        ok("the manual formats # SKIP needs man-db", True)
    commands = source.split(".SH COMMANDS")[1].split(".SH ")[0]
    headed = re.findall(r"^\.T[PQ]\n\.[BIR]+ ([a-z]+)", commands, re.M)
    ok("the manual has the commands of the help", sorted(set(headed)) == sorted(verbs), headed)
    plain = source.replace("\\-", "-")
    # Lines of an example that call something else have options of their own.
    plain = re.sub(r"^(?:sudo )?(?:actd|actd-sim|systemctl|adduser|cp) .*$", "", plain, flags=re.M)
    told = set(re.findall(r"(?<![\w-])--[a-z]+|(?<![\w-])-[a-z](?![\w-])", plain))
    there = set().union(*map(options, texts.values()))
    ok("the manual has the options of the helps", told == there, told ^ there)
    for word in ("ladder", "seam", "golden forward", "rows"):
        ok(f"the manual explains {word}", f".B {word}\n" in source.split(".SH GLOSSARY")[1].split(".SH ")[0])
    session = source.split(".SH EXAMPLES")[1].split(".SH ")[0]
    used = re.findall(r"^actctl ([a-z]+)", session, re.M)
    ok("the first session uses commands that there are", {"status", "arm", "disarm"} <= set(used) <= set(verbs), used)
    table = dict(re.findall(r'\{"([a-z]+)", \d, NULL, \'(.)\'\}', open("daemon/actctl/main.c").read()))
    ok("and the helps those of the program", {"--" + k for k in table} == {o for o in there if o.startswith("--")}, table)
    statuses = set(re.findall(r"^\.B (\d+)$", source.split(".SH EXIT STATUS")[1].split(".SH ")[0], re.M))
    in_help = set(re.findall(r"(?:^|, |: )(\d+) ", texts[""].split("exit status:")[1].replace("\n", " ")))
    in_help.add("0")
    in_code = set(re.findall(r"= (\d+),", open("daemon/actctl/exits.h").read()))
    ok("exit statuses: manual, help and program agree", statuses == in_help == in_code, (statuses, in_help, in_code))
    for variable in set(re.findall(r'getenv\("([A-Z_]+)"\)', "".join(
            open(f"daemon/actctl/{f}").read() for f in os.listdir("daemon/actctl")))):
        ok(f"the manual knows ${variable}", f".B {variable}\n" in source or variable in ("TERM",), variable)


def keys(j):
    if isinstance(j, dict):
        return set(j) | set().union(set(), *map(keys, j.values()))
    return set().union(set(), *map(keys, j)) if isinstance(j, list) else set()


def json_keys():
    s = status()
    s.faults.add(), s.budgets.add().histogram.buckets.add(), s.seams.add(), s.record.lost.add()
    everything = reply(status=s, swap=pb.SwapReport(), policies=[pb.PolicyEntry()], findings=[pb.Finding()])
    found = set()
    with Daemon(always(everything)) as d:
        for verb in (["status"], ["swap", "x"], ["policies"], ["metrics"], ["doctor"], ["arm"]):
            found |= keys(run("--socket", d.path, "--json", *verb).json())
    part = open(MANUAL).read().split(".SH JSON")[1].split(".SH ")[0]
    words = set(re.findall(r"[a-z][a-z0-9_]*", part))
    ok("every key of the JSON is in the manual", found <= words, found - words)
    named = {w for w in words if "_" in w} - {"rad_s"}
    ok("and every key in the manual is one", named <= found, named - found)
    fields = {f.name for m in (st.Status, pb.SwapReport) for f in m.DESCRIPTOR.fields}
    ok("no field of the protocol is missing", len(fields - found) == 1 and "timestamp" in fields - found, fields - found)


def complete(line, program=ACTCTL, file="daemon/completion/actctl", function="_actctl", env=None):
    """What bash would offer for the line, the cursor at its end."""
    words = line.split(" ")
    script = f"""source {file}
COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); {function}; printf '%s\\n' "${{COMPREPLY[@]}}" """
    p = subprocess.run(["bash", "--norc", "-c", script, "bash", program, *words[1:]], capture_output=True, text=True,
                       timeout=10, env={**{k: v for k, v in os.environ.items() if k not in ("ACTD_SOCKET",)}, **(env or {})})
    return p.stdout.split() + ([f"ERROR {p.stderr}"] if p.stderr else [])


def completion(verbs, texts):
    p = subprocess.run(["bash", "--norc", "-c", "source daemon/completion/actctl && complete -p actctl && "
                        "source daemon/completion/actd && complete -p actd"], capture_output=True, text=True)
    ok("both completions register themselves", p.returncode == 0 and p.stdout.count("complete -F") == 2, p)
    offered = complete("actctl ")
    ok("commands", offered == verbs, offered)
    ok("commands that begin so", complete("actctl st") == ["status", "stop"], complete("actctl st"))
    for v in [""] + verbs:
        want = {o for o in options(texts[v]) if o.startswith("-")}
        got = complete(f"actctl {v} -" if v else "actctl -")
        ok(f"options of {v or 'actctl'}", set(got) == want, set(got) ^ want)
    ok("record", complete("actctl record ") == ["start", "stop", "mark"])
    ok("bridge", complete("actctl bridge ") == ["plotjuggler"])
    ok("its configuration", complete("actctl bridge plotjuggler -c config/rea") == ["config/reach.yaml"])
    ok("--allow", complete("actctl swap x --allow ") == ["joints", "units", "cameras", "rate", "chunk"])
    ok("--allow goes on after a comma", complete("actctl swap x --allow rate,c") == ["rate,cameras", "rate,chunk"],
       complete("actctl swap x --allow rate,c"))
    policies = [pb.PolicyEntry(name=n, usable=n != "broken") for n in ("pick-v1", "pick-v2", "wipe", "broken")]
    run_dir = os.environ["T"] + "/completion"
    os.makedirs(f"{run_dir}/actd/left")
    os.makedirs(f"{run_dir}/actd/empty")
    env = {"XDG_RUNTIME_DIR": run_dir}
    with Daemon(always(reply(policies=policies)), f"{run_dir}/actd/left/control") as d:
        got = complete(f"actctl --socket {d.path} swap p")
        ok("names of policies, from the daemon", got == ["pick-v1", "pick-v2"], got)
        got = complete("actctl -i left swap ", env=env)
        ok("of the instance that is named, none that cannot be used", got == ["pick-v1", "pick-v2", "wipe"], got)
        got = complete("actctl -i ", env=env)
        ok("instances that have a socket", "left" in got and "empty" not in got, got)
    with Daemon(lambda q: iter(())) as d:
        t0 = time.monotonic()
        got = complete(f"actctl --socket {d.path} swap ")
        ok("a silent daemon does not keep the prompt", got == [] and time.monotonic() - t0 < 1.8, got)
    ok("no daemon is no error", complete("actctl --socket /none swap ") == [])
    actd = f"{BUILD}/actd"
    if os.access(actd, os.X_OK):
        def of_actd(line):
            return complete(line, actd, "daemon/completion/actd", "_actd")
        got = of_actd("actd ")
        ok("actd: commands", {"run", "check", "init", "inspect"} <= set(got), got)
        text = subprocess.run([actd, "run", "--help"], capture_output=True, text=True).stdout
        got = of_actd("actd run -")
        ok("actd: options", set(got) == set(options(text)) and "--arm" in got, got)
        got = of_actd("actd run -c config/rea")
        ok("actd: files", got == ["config/reach.yaml"], got)
        for words, want in (("log ", ["info", "recover", "cut", "cat"]), ("bridge ", ["plotjuggler"]),
                            ("replay ", ["verify", "what-if", "eval", "publish", "report"]),
                            ("replay verify config/rea", ["config/reach.yaml"])):
            got = of_actd("actd " + words)
            ok(f"actd: {words.strip()}", got == want, got)
        for words in ("log cut", "replay what-if", "bridge"):
            text = subprocess.run([actd, *words.split(), "--help"], capture_output=True, text=True).stdout
            got = of_actd(f"actd {words} -")
            ok(f"actd: options of {words}", set(got) == set(options(text)), set(got) ^ set(options(text)))
        got = of_actd("actd inspect config/policies/re")
        ok("actd: checkpoints", got == ["config/policies/reach"], got)
    else:
        ok("actd's completion # SKIP it is not built", True)


def everything():
    verbs, texts = helps()
    manual(verbs, texts)
    json_keys()
    completion(verbs, texts)
