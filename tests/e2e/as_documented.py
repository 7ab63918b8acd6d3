"""Prepares an example as its docstring says: DIRECTORY EXAMPLE WORD=VALUE...

Makes a copy of what the commands need, with a build/actd in it as after `make`, runs them there
as they are written, and prints the last one with its capital words replaced. What apt-get
installs, `make deps` has installed.
"""
import ast
import os
import shutil
import subprocess
import sys

directory, example = sys.argv[1], sys.argv[2]
values = dict(word.split("=", 1) for word in sys.argv[3:])
shutil.copytree("proto", f"{directory}/proto", dirs_exist_ok=True)
os.makedirs(f"{directory}/config", exist_ok=True)
os.makedirs(f"{directory}/build", exist_ok=True)
shutil.copy(f"config/{example}", f"{directory}/config/")
open(f"{directory}/build/actd", "w").close()

with open(f"config/{example}") as file:
    text = ast.get_docstring(ast.parse(file.read()))
commands = [line[4:] for line in text.splitlines() if line.startswith("    ")]
install, commands, last = commands[0].split(), commands[1:-1], commands[-1]
with open("Makefile") as file:
    debs = file.read().split("DEBS := ")[1].split("LINT_DEBS")[0].split()
unknown = set(install[2:]) - set(debs)
assert install[:2] == ["apt-get", "install"] and not unknown, f"not in make deps: {unknown}"
subprocess.run(["bash", "-e"], input="\n".join(commands), text=True, cwd=directory, check=True)
for word in values:
    assert word in last.split(), f"no {word} in: {last}"
print(" ".join(values.get(word, word) for word in last.split()))
