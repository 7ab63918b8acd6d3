"""One engine with one model in one process, for tests/bench/peers.py; speaks what bench_serve does.

python peers_engine.py ENGINE VARIANT DIR THREADS CORES

    prints once      ready {facts as JSON}
    run N            ms WALL/CPU WALL/CPU …     N inferences; CPU: of all threads
    actions FILE     actions                    the last actions, float32
    end of input     ends

Inputs are in memory, normalised, float32; the answer is the normalised actions: what a peer
would spend on pictures and units is not counted.
"""

import ctypes
import json
import os
import signal
import sys
import time

import peers_make


def with_parent():
    """Ends when the one who asks has gone, even by SIGKILL and in the middle of compiling."""
    PR_SET_PDEATHSIG = 1
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def onnx_runtime(variant, where, threads, cores, inputs):
    """VARIANT: legacy or dynamo (the export); at 2 threads +spin or +sleep, of idle workers."""
    import onnxruntime as ort

    export, _, idle = variant.partition("+")
    options = ort.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    options.execution_mode = ort.ExecutionMode.ORT_SEQUENTIAL
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_ENABLE_ALL
    options.log_severity_level = 3
    spin = "0" if idle == "sleep" else "1"
    options.add_session_config_entry("session.intra_op.allow_spinning", spin)
    if threads > 1:  # counted from 1; the caller's own is not among them
        pins = ";".join(str(c + 1) for c in cores[1:])
        options.add_session_config_entry("session.intra_op_thread_affinities", pins)
    session = ort.InferenceSession(
        str(where / f"{export}.onnx"), options, providers=["CPUExecutionProvider"]
    )
    os.sched_setaffinity(0, {cores[0]})
    settings = (
        f"{export} export, all graph optimisations, sequential, workers pinned and "
        + ("spinning" if spin == "1" else "sleeping")
        if threads > 1
        else f"{export} export, all graph optimisations, sequential"
    )
    # It has no way to say; seen with perf on a Zen 5: its products and convolutions in zmm.
    isa = "not said (MLAS goes by cpuid; with AVX-512 its kernels use zmm registers)"
    return lambda: session.run(None, inputs)[0], {"settings": settings, "isa": isa}


def kinds(model):
    """How many of OpenVINO's own kernels were built for what, without ref and unknown."""
    names = [str(op.get_rt_info()["primitiveType"].astype(str)) for op in model.get_ops()]
    found = sorted({n for n in names if not n.startswith(("unknown", "ref"))})
    return ", ".join(f"{names.count(n)} {n}" for n in found)


def openvino(variant, where, threads, cores, inputs):
    """VARIANT: legacy or dynamo (the export)."""
    import openvino as ov

    config = {
        "INFERENCE_PRECISION_HINT": "f32",
        "PERFORMANCE_HINT": "LATENCY",
        "NUM_STREAMS": 1,
        "INFERENCE_NUM_THREADS": threads,
    }
    model = ov.Core().compile_model(str(where / f"{variant}.onnx"), "CPU", config)
    request = model.create_infer_request()
    for name, a in inputs.items():
        request.set_tensor(name, ov.Tensor(a, shared_memory=True))

    def run():
        request.infer()
        return request.get_output_tensor().data

    said = ", ".join(f"{k} {v}" for k, v in config.items())
    try:
        isa = kinds(model.get_runtime_model())
    except Exception as e:  # only a remark
        isa = f"not said ({e})"
    return run, {"settings": f"{variant} export, {said}", "isa": isa}


def torch_isa(torch):
    """Seen with ONEDNN_VERBOSE and perf on a Zen 5: oneDNN's convolutions and packed products are
    jit:avx512_core, MKL's products its AVX2 kernel for Zen, 73 % of the AVX2 peak."""
    said = f"ATen {torch.backends.cpu.get_cpu_capability()}; oneDNN the processor's best; MKL, on AMD"
    return said + ", an AVX2 kernel"


def torch_ready(threads):
    import torch

    torch.set_num_threads(threads)
    torch.set_float32_matmul_precision("highest")
    torch.set_grad_enabled(False)
    return torch


def tensors(torch, inputs, channels_last):
    form = torch.channels_last if channels_last else torch.contiguous_format
    args = [torch.from_numpy(a) for a in inputs.values()]
    return [a.contiguous(memory_format=form) if a.dim() == 4 else a for a in args]


def torch_net(torch, where, parts):
    net = peers_make.network(where)
    return net.to(memory_format=torch.channels_last) if "channels_last" in parts else net


def torch_eager(variant, where, threads, cores, inputs):
    """VARIANT: plain or channels_last."""
    torch = torch_ready(threads)
    parts = variant.split("+")
    net, args = torch_net(torch, where, parts), tensors(torch, inputs, "channels_last" in parts)

    def run():
        with torch.inference_mode():
            return net(*args).numpy()

    return run, {"settings": variant, "isa": torch_isa(torch)}


def inductor_config(parts):
    config = {"freezing": "freezing" in parts}
    if "autotune" in parts:  # inductor's own C++ products against oneDNN's and MKL's
        config.update(max_autotune=True, max_autotune_gemm_backends="CPP,ATEN")
    return config


def ahead_of_time(torch, net, args, config, package):
    """Compiled once for a thread count, a minute, and kept beside the checkpoint."""
    if not package.exists():
        part = package.with_suffix(".part.pt2")
        program = torch.export.export(net, tuple(args))
        torch._inductor.aoti_compile_and_package(
            program, package_path=str(part), inductor_configs=config
        )
        part.rename(package)
    return torch._inductor.aoti_load_package(str(package))


def torch_compile(variant, where, threads, cores, inputs):
    """VARIANT: aot or jit, then +freezing, +autotune, +channels_last.

    aot is torch.export and AOTInductor, jit torch.compile: the same compiler.
    """
    torch = torch_ready(threads)
    import torch._inductor.config as inductor

    parts = variant.split("+")
    config = inductor_config(parts)
    net, args = torch_net(torch, where, parts), tensors(torch, inputs, "channels_last" in parts)
    if "aot" in parts:
        package = where / f"{variant}-{threads}.pt2"
        net = ahead_of_time(torch, net, args, config, package)
    else:
        for key, value in config.items():
            setattr(inductor, key, value)
        net = torch.compile(net)
    facts = {"settings": f"inductor, {variant}", "isa": torch_isa(torch)}
    return lambda: net(*args).numpy(), facts


ENGINES = {
    "onnxruntime": onnx_runtime,
    "openvino": openvino,
    "torch eager": torch_eager,
    "torch compile": torch_compile,
}


def timed(run, n):
    parts = []
    for _ in range(n):
        wall, cpu = time.perf_counter(), time.process_time()
        answer = run()
        cpu, wall = time.process_time() - cpu, time.perf_counter() - wall
        parts.append(f"{1e3 * wall:.4f}/{1e3 * cpu:.4f}")
    return answer, " ".join(parts)


def serve(run, answer):
    for line in sys.stdin:
        word, _, rest = line.strip().partition(" ")
        if word == "run":
            answer, times = timed(run, int(rest))
            print("ms", times, flush=True)
        elif word == "actions":
            answer.astype("<f4").tofile(rest)
            print("actions", flush=True)
        else:
            sys.exit(f"peers_engine: {line.strip()}?")


def main():
    with_parent()
    engine, variant, where, threads, cores = sys.argv[1:]
    cores = [int(c) for c in cores.split(",")]
    os.sched_setaffinity(0, set(cores))
    where = peers_make.Path(where)
    inputs, _ = peers_make.load_inputs(where)
    start = time.monotonic()
    run, facts = ENGINES[engine](variant, where, int(threads), cores, inputs)
    answer = run()
    facts["ready_s"] = round(time.monotonic() - start, 1)
    # Libraries say things on standard output while they load: the reader skips to this line.
    print("ready", json.dumps(facts), flush=True)
    serve(run, answer)


if __name__ == "__main__":
    main()
