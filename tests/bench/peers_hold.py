"""Holds ONNX Runtime and OpenVINO to AVX2 on a processor that has more (tests/bench/peers.py).

Some of their kernels are chosen by cpuid alone and heed no setting. Before it uses AVX-512 every
program asks with XGETBV whether the system keeps those registers: in copies of the packages that
instruction becomes one that answers "up to AVX" (mov al, 7; nop). Only the copies are changed.
"""

import importlib.util
import shutil
from pathlib import Path

XGETBV, AVX_ONLY = b"\x0f\x01\xd0", b"\xb0\x07\x90"
# With few enough questions that each is one: three bytes may be part of something else.
LIBRARIES = {
    "onnxruntime": ("capi/onnxruntime_pybind11_state*.so", 64),
    "openvino": ("libs/libopenvino_intel_cpu_plugin.so", 16),
}


def copy(name, to):
    """A changed copy of a package; how many questions were answered in it."""
    pattern, most = LIBRARIES[name]
    package = Path(importlib.util.find_spec(name).origin).parent
    shutil.copytree(package, to / name, ignore=shutil.ignore_patterns("__pycache__"))
    asked = 0
    for library in (to / name).glob(pattern):
        code = library.read_bytes()
        asked += code.count(XGETBV)
        library.write_bytes(code.replace(XGETBV, AVX_ONLY))
    if not 0 < asked <= most:
        raise RuntimeError(f"{name}: {asked} XGETBV found, 1 to {most} expected: not held.")
    return asked


def hold(cache, names):
    """The directory to put before all others on the engines' path."""
    to = cache / "avx2"
    shutil.rmtree(to, ignore_errors=True)
    return to, {n: copy(n, to) for n in names if n in LIBRARIES}
