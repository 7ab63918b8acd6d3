"""The shipped layouts name only topics and fields that there are, and every panel once."""
import json
import re
import sys
import xml.etree.ElementTree as ET

from actd.v1 import joint_command_pb2 as jc
from actd.v1 import record_pb2 as rec
from actd.v1 import status_pb2 as st
from foxglove import CompressedImage_pb2 as ci
from foxglove import JointStates_pb2 as js
from foxglove import Log_pb2 as fl

TYPE = {"/joint_states": js.JointStates, "/command": jc.JointCommand, "/tick": rec.Tick, "/input": rec.Input,
        "/policy/chunk": rec.Chunk, "/policy/seat": rec.Seat, "/events": fl.Log, "/status": st.Status,
        "/camera/front": ci.CompressedImage, "/camera/wrist": ci.CompressedImage}
count = 0


def ok(what, condition, detail=""):
    global count
    count += 1
    print(f"{'' if condition else 'not '}ok {count} - layouts.py: {what}", flush=True)
    if not condition:
        print("#", detail)


def numeric(path, separator):
    """Is it a number (an enum counts) of one of our messages?"""
    topic = max((t for t in TYPE if path.startswith(t + separator)), key=len, default=None)
    if not topic:
        return False
    d = TYPE[topic].DESCRIPTOR
    steps = path[len(topic) + 1:].split(separator)
    for i, step in enumerate(steps):
        name, index = re.fullmatch(r"(\w+)(\[\d+\])?", step).groups()
        f = d.fields_by_name.get(name) if d else None
        if not f or (f.label == f.LABEL_REPEATED) != bool(index):
            return False
        d = f.message_type
    return d is None and f.cpp_type not in (f.CPPTYPE_STRING, f.CPPTYPE_MESSAGE)


def panels(tree):
    return [tree] if isinstance(tree, str) else panels(tree["first"]) + panels(tree["second"])


fox = json.load(open("config/foxglove-layout.json"))
shown, there = panels(fox["layout"]), fox["configById"]
ok("Foxglove: every panel is shown, once", sorted(shown) == sorted(there), (shown, list(there)))
ok("Foxglove: images, plots, the log, the states", {p.split("!")[0] for p in there} ==
   {"Image", "Plot", "RosOut", "StateTransitions"})
bad = [p["value"] for c in there.values() for p in c.get("paths", []) if not numeric(p["value"], ".")]
ok("Foxglove: paths are of numbers that there are", not bad, bad)
ok("Foxglove: pictures and log have their topics", all(c["imageMode"]["imageTopic"] in TYPE for k, c in there.items()
   if k.startswith("Image!")) and there["RosOut!events"]["topicToRender"] == "/events")
root = ET.parse("config/plotjuggler-layout.xml").getroot()
curves = [c.get("name") for c in root.iter("curve")]
bad = [c for c in curves if not numeric(c, "/")]
ok(f"PlotJuggler: {len(curves)} curves of numbers that there are", len(curves) > 30 and not bad, bad)
bad = [s.attrib for s in root.iter("DockSplitter") if int(s.get("count")) != len(list(s))
       or abs(sum(map(float, s.get("sizes").split(";"))) - 1) > 0.01 or len(s.get("sizes").split(";")) != len(list(s))]
ok("PlotJuggler: splitters hold what they count", not bad, bad)
live = next(t for t in root.iter("Tab") if t.get("tab_name") == "live")
ok("PlotJuggler: live curves are of what the bridge sends", all(c.get("name").startswith(("/command/", "/status/"))
   for c in live.iter("curve")))
sys.exit(0)
