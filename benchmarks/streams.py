"""Passes over memory beside a copy, and beside what torch.compile makes of the same.

The functions of stream_functions.py: casts in every granularity, row-major and transposed,
alone and with what makes their tensor. Each is compiled for the GPU and for the CPU, and
called on both over random, extreme and adversarial tensors of odd and even sizes; codes,
factors and amaxes have to be the same bits, but where functions such as exp are
approximated: those are within a rounding of each other. Then large tensors are timed: the
share is that of a device-to-device copy of the bytes that have to move, in the same run.

usage: streams.py [--build-dir build] [--programs DIR] [--compile-only] [--rounds N]
                  [--extents MxN] [--peers] [--out FILE]

`--compile-only` makes programs in DIR, for a machine without the compiler.
"""

import argparse
import ctypes
import json
import statistics
import sys
import tempfile
from pathlib import Path

from programs import ROOT, Program, compile_program, copy_libraries, list_work, open_library, tensor
from stream_functions import MAPS, STREAMS, get_arguments, get_function, get_name

DEVICE = 0
BIG = (8192, 14336)
ROWS = (8192, 4096)  # Of what is held by whole rows.
EVEN = (256, 512)
CHECKED = [EVEN, (77, 130), (1, 4096), (130, 1001), (129, 8), (64, 1), (33, 264)]
DYNAMIC = [("?", 512), ("?", "?")]
DYNAMIC_EXTENTS = {("?", 512): [(256, 512), (77, 512), (16, 512)],
                   ("?", "?"): [(256, 512), (77, 130), (5, 3)]}
CALLS = 20
INTEGERS = {}  # By the width in bytes, once torch is there.
PATTERNS = ("random", "extreme", "zeros", "nan", "outlier")


def is_by_row(stream):
    return stream.name in ("row_wise", "rmsnorm_both", "softmax")


def timed_extents(stream, extents):
    return extents or (ROWS if is_by_row(stream) else BIG)


def write_source(path, functions):
    path.write_text(MAPS + "".join(functions))


def compile_programs(build, folder, extents):
    timed = [get_function(stream, *timed_extents(stream, extents)) for stream in STREAMS]
    checked = [get_function(stream, *sizes) for stream in STREAMS
               for sizes in [*CHECKED, *DYNAMIC]]
    work = {}
    for name, functions in (("timed", timed), ("checked", checked)):
        source = folder / f"{name}.mlir"
        write_source(source, functions)
        options = ("--target=sm_90a", "--recipe=none")
        compile_program(build, source, folder / f"{name}_gpu.so", *options)
        work.update(list_work(build, source, *options))
    compile_program(build, folder / "checked.mlir", folder / "checked_cpu.so", "--recipe=none")
    (folder / "work.json").write_text(json.dumps(work, indent=1) + "\n")


# ===----------------------------------------------------------------------===
# Tensors
# ===----------------------------------------------------------------------===


def make_tensor(pattern, extents):
    m, n = extents if len(extents) == 2 else (1, extents[0])
    x = torch.randn(m, n)
    if pattern == "extreme":
        x = x * torch.exp2(torch.randint(-130, 127, (m, n)).float())
    elif pattern == "zeros":
        x = torch.zeros(m, n)
        x[::3, ::7] = -0.0
    elif pattern == "nan":
        x[torch.rand(m, n) < 0.05] = float("nan")
        x[torch.rand(m, n) < 0.02] = float("inf")
        x[torch.rand(m, n) < 0.02] = float("-inf")
        x[: m // 3, : max(1, n // 2)] = float("nan")
    elif pattern == "outlier":
        x[torch.rand(m, n) < 0.01] *= 1e30
        x[torch.rand(m, n) < 0.3] *= 1e-30
    return x.to(torch.bfloat16).reshape(extents)


def make_arguments(stream, extents, pattern):
    m, n = extents
    values = []
    for name, _ in get_arguments(stream):
        if name in ("s", "si"):
            values.append(torch.full((1, 1), {"s": 37.0, "si": 1 / 37.0}[name]))
        elif name == "w":
            values.append(make_tensor("random", (n,)))
        else:
            values.append(make_tensor(pattern, (m, n)))
    return values


class Runner:
    """Calls of the functions of a program, on the device if it has a stream."""

    def __init__(self, library, path, stream=None):
        self.library, self.stream = library, stream
        self.program = Program(library, path)
        self.context = ctypes.c_void_p()
        if stream is not None:
            library.fp8rt_context_create(DEVICE, stream, ctypes.byref(self.context))
        self.free_host = ctypes.CDLL(None).free
        self.free_host.argtypes = [ctypes.c_void_p]

    def call(self, name, arguments):
        descriptors = [tensor(list(value.shape), value.data_ptr()) for value in arguments]
        function = self.program.functions[name]
        return function, function.call(descriptors, 0, self.context)

    def free(self, results):
        for result in results:
            if self.stream is None:
                self.free_host(result.allocated)
            else:
                self.library.fp8rt_workspace_free(DEVICE, self.stream, result.allocated)

    def read(self, name, arguments):
        """The results, as bytes on the host."""
        function, results = self.call(name, arguments)
        values = []
        for port, result in zip(function.results, results):
            extents = [result.sizes[i] for i in range(port.rank)]
            strides = [result.strides[i] for i in range(port.rank)]
            span = 1 + sum((extent - 1) * stride for extent, stride in zip(extents, strides))
            value = torch.empty(span * port.width, dtype=torch.uint8)
            if self.stream is None:
                ctypes.memmove(value.data_ptr(), result.data, len(value))
            else:
                there = torch.empty_like(value, device="cuda")
                self.library.fp8rt_memory_copy(DEVICE, there.data_ptr(), result.data, len(value),
                                               self.stream)
                value.copy_(there)
            value = value.view(INTEGERS[port.width]).as_strided(extents, strides)
            value = value.contiguous().view(-1).view(torch.uint8)
            values.append((port.width, value))
        self.free(results)
        return values


# ===----------------------------------------------------------------------===
# Checks
# ===----------------------------------------------------------------------===


def compare(stream, found, expected):
    """What is wrong; of approximated codes how many differ."""
    worst = 0.0
    for number, ((width, ours), (_, theirs)) in enumerate(zip(found, expected)):
        if len(ours) != len(theirs):
            return f"result {number}: expected {len(theirs)} bytes, but got {len(ours)}"
        if torch.equal(ours, theirs):
            continue
        if stream.approximate and width == 2:  # A NaN is a NaN.
            ours, theirs = (value.view(torch.bfloat16).nan_to_num(9.0) for value in (ours, theirs))
        differ = (ours != theirs).float().mean().item()
        if not stream.approximate:
            at = (ours != theirs).nonzero().flatten()
            return (f"result {number}: {len(at)} of {len(ours)} bytes differ, the first at "
                    f"{at[0].item()}: {ours[at[0]].item()} for {theirs[at[0]].item()}")
        worst = max(worst, differ)
    return "" if worst < 0.02 else f"{100 * worst:.1f} % of the bytes differ"


def check_all(gpu, cpu, work):
    checks = []
    cases = [(sizes, sizes) for sizes in CHECKED]
    cases += [(sizes, extents) for sizes in DYNAMIC for extents in DYNAMIC_EXTENTS[sizes]]
    for stream in STREAMS:
        for sizes, extents in cases:
            name = get_name(stream, *sizes)
            for pattern in PATTERNS:
                torch.manual_seed(1000 * extents[0] + extents[1] + PATTERNS.index(pattern))
                arguments = make_arguments(stream, extents, pattern)
                expected = cpu.read(name, arguments)
                try:
                    found = gpu.read(name, [value.cuda() for value in arguments])
                    message = compare(stream, found, expected)
                except Exception as error:
                    message = str(error)
                checks.append({"function": name, "extents": list(extents), "pattern": pattern,
                               "kernels": work[name], "message": message})
                if message:
                    print(f"{name} {extents} {pattern}: {message}", flush=True)
    failed = sum(bool(check["message"]) for check in checks)
    print(f"{len(checks)} checks, {failed} failures", flush=True)
    return checks


# ===----------------------------------------------------------------------===
# Times
# ===----------------------------------------------------------------------===


def seconds(call):
    start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    start.record()
    for _ in range(CALLS):
        call()
    end.record()
    end.synchronize()
    return 1e-3 * start.elapsed_time(end) / CALLS


def measure(gpu, stream, extents, rounds):
    m, n = extents
    arguments = [value.cuda() for value in make_arguments(stream, extents, "random")]
    half = int(stream.bytes * m * n) // 2
    source = torch.empty(half, dtype=torch.uint8, device="cuda")
    target = torch.empty_like(source)
    name = get_name(stream, m, n)
    calls = {"ours": lambda: gpu.free(gpu.call(name, arguments)[1]),
             "copy": lambda: target.copy_(source)}
    times = {name: [] for name in calls}
    for round_ in range(rounds + 1):
        for which in list(calls)[:: 1 if round_ % 2 else -1]:
            spent = seconds(calls[which])
            if round_:
                times[which].append(spent)
    middle = {name: statistics.median(values) for name, values in times.items()}
    return {"function": name, "extents": list(extents), "bytes": stream.bytes,
            "ms": 1e3 * middle["ours"], "worst_ms": 1e3 * max(times["ours"]),
            "copy_ms": 1e3 * middle["copy"], "of_copy": middle["copy"] / middle["ours"]}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--build-dir", type=Path, default=ROOT / "build")
    parser.add_argument("--programs", type=Path)
    parser.add_argument("--compile-only", action="store_true")
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--extents", type=lambda text: tuple(map(int, text.split("x"))))
    parser.add_argument("--out", type=Path)
    args = parser.parse_args()
    folder = (args.programs or Path(tempfile.mkdtemp())).absolute()
    folder.mkdir(parents=True, exist_ok=True)
    if args.compile_only or not args.programs:
        compile_programs(args.build_dir, folder, args.extents)
    if args.compile_only:
        copy_libraries(args.build_dir, folder)
        return 0
    global torch
    import torch
    INTEGERS.update({1: torch.uint8, 2: torch.int16, 4: torch.int32})
    library = open_library(args.build_dir, folder)
    work = json.loads((folder / "work.json").read_text())
    stream, rows = torch.cuda.Stream(), []
    with torch.cuda.stream(stream):
        gpu = Runner(library, folder / "checked_gpu.so", stream.cuda_stream)
        checks = check_all(gpu, Runner(library, folder / "checked_cpu.so"), work)
        timed = Runner(library, folder / "timed_gpu.so", stream.cuda_stream)
        for function in STREAMS:
            try:
                row = measure(timed, function, timed_extents(function, args.extents), args.rounds)
            except Exception as error:
                print(f"{function.name}: {error}", flush=True)
                continue
            rows.append(row)
            print(f"{row['function']:>32}: {row['ms']:.3f} ms (worst {row['worst_ms']:.3f}), "
                  f"{row['of_copy']:.3f} of a copy's", flush=True)
    record = {"gpu": torch.cuda.get_device_name(), "torch": torch.__version__,
              "rounds": args.rounds, "calls": CALLS, "checks": checks, "rows": rows}
    if args.out:
        args.out.write_text(json.dumps(record, indent=1) + "\n")
    return 1 if any(check["message"] for check in checks) else 0


if __name__ == "__main__":
    sys.exit(main())
