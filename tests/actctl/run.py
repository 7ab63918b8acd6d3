"""actctl against daemons that are not actd: run.py [verbs|wire|screen|words]…, all without an argument."""
import importlib
import sys

sys.dont_write_bytecode = True
import kit  # noqa: E402

for name in sys.argv[1:] or ["verbs", "wire", "screen", "words"]:
    importlib.import_module(name).everything()
kit.finish()
