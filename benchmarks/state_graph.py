"""Whether a step of delayed scaling, its update included, is the same work in a
CUDA graph. 1,000 replays give the state and results of 1,000 launches, and the
state of the CPU, bit for bit.

Inputs change in every step; they are copied to where the graph reads them. The
sums that are quantized are exact, in any order and on tensor cores. Inputs are
integers up to 7 times a power of two, and since 448 and 57344 are 7 times a
power of two, so are all scales of inputs, and their codes are exact. Then the
update alone is compared with the host's, on amaxes of every kind.

usage: state_graph.py [--build-dir build] [--programs DIR] [--compile-only]
                      [--steps N] [--out FILE]

Programs that are in DIR are not compiled again. `--compile-only` puts all there
that a machine without the compiler needs beside this folder, python/ and
include/fp8/Runtime/ABI.def: programs, libfp8rt.so and its libraries.
"""

import ctypes
import json
import os
import random
import struct
import sys
import time

from programs import (ROOT, Program, abi, compile_program, elements, make_parser, make_programs,
                      open_library, sizes, tensor)

DEVICE = 0
RECIPES = {  # The training step's.
    "long": "delayed",
    "short": "delayed,amax_history_len=4,compat=te_unfused,margin=1",
    "flax": "delayed,amax_history_len=16,compat=flax",
    "recent": "delayed,amax_history_len=3,amax_compute_algo=most_recent,pow2=true",
}
UPDATES = [  # Updates from amaxes that are given.
    f"amax_history_len = {length}, amax_compute_algo = {algo}, margin = {margin}, "
    f"compat = {compat}, pow2 = {pow2}"
    for compat, algo, margin in (("te_fused", "max", 0), ("te_fused", "most_recent", -2),
                                 ("te_unfused", "max", 64), ("te_unfused", "most_recent", 4),
                                 ("flax", "max", 0))
    for length, pow2 in ((1, "true"), (3, "false"), (33, "false"))
]
UPDATE_STEPS, SLOTS = 100, 300
POOL = 48  # Tensors to choose from for each argument that is no weight.
WEIGHTS = 8
ROWS = {"amax": 4, "scale": 4, "scale_inv": 4, "last_amax": 4, "recorded": 8, "non_finite": 8,
        "underflow": 8, "saturated": 8}  # Bytes of an element.


# ===----------------------------------------------------------------------===
# Programs
# ===----------------------------------------------------------------------===


def update_source(recipe):
    formats = ("f8E4M3FN", "f8E5M2")
    slots = ", ".join(f'#fp8.slot<"s{i}" : {formats[i % 2]}, fprop activation>'
                      for i in range(SLOTS))
    return f"""
module attributes {{fp8.state = #fp8.state_table<#fp8.delayed<{recipe}>, [{slots}]>}} {{
  func.func @scale(%state: !fp8.state) -> tensor<1xf32> {{
    %slot = arith.constant 0 : index
    %scale, %scale_inv = fp8.read_scale %state[%slot] : tensor<1xf32>
    return %scale : tensor<1xf32>
  }}
}}"""


def compile_programs(build, folder):
    def run(source, name, *options):
        path = folder / f"{name}.so"
        if not path.exists():
            compile_program(build, source, path, *options)

    for name, recipe in RECIPES.items():
        for target in ("cpu", "sm_90a"):
            run(ROOT / "examples/train.mlir", f"train_{name}_{target}", f"--recipe={recipe}",
                f"--target={target}")
    for number, recipe in enumerate(UPDATES):
        source = folder / f"update_{number}.mlir"
        source.write_text(update_source(recipe))
        run(source, f"update_{number}", "--recipe=none", "--target=sm_90a")


# ===----------------------------------------------------------------------===
# Data
# ===----------------------------------------------------------------------===


def bf16(value):
    return struct.pack("<f", value)[2:]


def integers(generator, count, exponent):
    """bf16 in -3..3 with one 7, times a power of two."""
    codes = [bf16(value * 2.0**exponent) for value in range(-3, 4)]
    values = generator.choices(codes, k=count)
    values[generator.randrange(count)] = bf16(7 * 2.0**exponent)
    return b"".join(values)


class Data:
    """For each argument tensors to choose from, and a choice for each step."""

    def __init__(self, function, steps):
        generator = random.Random(1)
        self.names, self.pools, self.choices = [], [], []
        for info in function.arguments:
            name, size = info.name.decode(), elements(info)
            count = WEIGHTS if name.startswith("w") else POOL
            pool = [integers(generator, size, generator.randrange(-4, 5)) for _ in range(count)]
            if name == "dy":
                pool[0] = bytes(2 * size)  # No amax: the scale is kept.
            self.names.append(name)
            self.pools.append(pool)
            self.choices.append([generator.randrange(count) for _ in range(steps)])


# ===----------------------------------------------------------------------===
# Runs
# ===----------------------------------------------------------------------===


def read(library, state):
    """The bits of a state that the host has, by row."""
    rows = abi.structs.fp8rt_state_rows()
    library.fp8rt_state_get_rows(state, ctypes.byref(rows))
    bits = {name: ctypes.string_at(getattr(rows, name), width * rows.num_slots)
            for name, width in ROWS.items()}
    bits["words"] = ctypes.string_at(rows.words, 4 * rows.num_words * rows.num_slots)
    bits["steps"] = rows.steps[0]
    return bits


def differences(ours, theirs):
    return [name for name in theirs if ours[name] != theirs[name]]


class Driver:
    """What libfp8rt leaves to the host: capture and replay."""

    def __init__(self):
        self.driver = ctypes.CDLL(os.environ.get("FP8_CUDA_DRIVER") or "libcuda.so.1")
        # libfp8rt leaves no context current.
        context = ctypes.c_void_p()
        self.call("cuInit", 0)
        self.call("cuDevicePrimaryCtxRetain", ctypes.byref(context), DEVICE)
        self.call("cuCtxSetCurrent", context)

    def call(self, name, *arguments):
        status = getattr(self.driver, name)(*arguments)
        if status:
            raise RuntimeError(f"{name} returned {status}")

    def capture(self, stream, work):
        graph, executable = ctypes.c_void_p(), ctypes.c_void_p()
        self.call("cuStreamBeginCapture_v2", stream, 0)  # Nothing may be unsafe in it.
        work()
        self.call("cuStreamEndCapture", stream, ctypes.byref(graph))
        self.call("cuGraphInstantiateWithFlags", ctypes.byref(executable), graph,
                  ctypes.c_ulonglong(0))
        return executable

    def replay(self, executable, stream):
        self.call("cuGraphLaunch", executable, stream)


class Device:
    """The data of a program on a GPU, and its steps."""

    def __init__(self, library, program, data, context, stream):
        self.library, self.program, self.data = library, program, data
        self.context, self.stream = context, stream
        infos = program.functions["train"].arguments
        self.sizes = [2 * elements(info) for info in infos]
        self.pools = []
        for size, pool in zip(self.sizes, data.pools):
            memory = self.allocate(size * len(pool))
            self.copy(memory, b"".join(pool), size * len(pool))
            self.pools.append(memory)
        self.inputs = [self.allocate(size) for size in self.sizes]
        self.arguments = [tensor(sizes(info), at) for info, at in zip(infos, self.inputs)]
        self.function = program.functions["train"]
        self.bytes = [elements(info) * info.width for info in self.function.results]

    def allocate(self, size):
        memory = ctypes.c_void_p()
        self.library.fp8rt_memory_alloc(DEVICE, size, ctypes.byref(memory))
        return memory.value

    def copy(self, target, source, size):
        self.library.fp8rt_memory_copy(DEVICE, target, source, size, self.stream)

    def choose(self, step):
        for at, pool, size, choices in zip(self.inputs, self.pools, self.sizes,
                                           self.data.choices):
            self.copy(at, pool + choices[step] * size, size)

    def step(self, state, outputs):
        """Work in the stream: a step, whose results go to `outputs`."""
        results = self.function.call(self.arguments, state, self.context)
        for result, output, size in zip(results, outputs, self.bytes):
            self.copy(output, result.data, size)
            self.library.fp8rt_workspace_free(DEVICE, self.stream, result.allocated)
        self.program.update(state, self.context)

    def synchronize(self):
        self.library.fp8rt_stream_synchronize(DEVICE, self.stream)

    def download(self, log, size):
        host = ctypes.create_string_buffer(size)
        self.copy(ctypes.addressof(host), log, size)
        self.synchronize()
        return host.raw

    def run(self, state, driver, steps):
        """All steps, launched or, with a driver, replayed. Returns the results of
        all, the state and seconds of a step."""
        rows = abi.structs.fp8rt_state_rows()
        self.library.fp8rt_state_upload(state, DEVICE, self.stream, ctypes.byref(rows))
        outputs = [self.allocate(size) for size in self.bytes]
        total = sum(self.bytes)
        log = self.allocate(total * steps)
        if driver:
            graph = driver.capture(self.stream, lambda: self.step(state, outputs))
        self.synchronize()
        start = time.perf_counter()
        for step in range(steps):
            self.choose(step)
            if driver:
                driver.replay(graph, self.stream)
            else:
                self.step(state, outputs)
            place = log + step * total
            for output, size in zip(outputs, self.bytes):
                self.copy(place, output, size)
                place += size
        self.synchronize()
        seconds = (time.perf_counter() - start) / steps
        self.library.fp8rt_state_download(state, self.stream)
        results = self.download(log, total * steps)
        for memory in [log, *outputs]:
            self.library.fp8rt_memory_free(DEVICE, memory)
        return results, read(self.library, state), seconds


def run_on_cpu(library, program, data, steps):
    """The state after all steps."""
    state = program.create_state()
    infos = program.functions["train"].arguments
    inputs = [ctypes.create_string_buffer(2 * elements(info) + 64) for info in infos]
    addresses = [(ctypes.addressof(buffer) + 63) & ~63 for buffer in inputs]
    arguments = [tensor(sizes(info), at) for info, at in zip(infos, addresses)]
    free = ctypes.CDLL(None).free
    free.argtypes = [ctypes.c_void_p]
    for step in range(steps):
        for at, pool, choices in zip(addresses, data.pools, data.choices):
            ctypes.memmove(at, pool[choices[step]], len(pool[choices[step]]))
        for result in program.functions["train"].call(arguments, state, None):
            free(result.allocated)
        program.update(state, None)
    return read(library, state)


# ===----------------------------------------------------------------------===
# Checks
# ===----------------------------------------------------------------------===


def check_training(library, driver, folder, name, steps, context, stream):
    program = Program(library, folder / f"train_{name}_sm_90a.so")
    data = Data(program.functions["train"], steps)
    device = Device(library, program, data, context, stream)
    # The first call loads kernels, which no capture can; its state is forgotten.
    device.choose(0)
    device.step(program.create_state(), [device.allocate(size) for size in device.bytes])
    launched, launched_state, launched_seconds = device.run(program.create_state(), None, steps)
    replayed, replayed_state, replayed_seconds = device.run(program.create_state(), driver, steps)
    host_state = run_on_cpu(library, Program(library, folder / f"train_{name}_cpu.so"), data, steps)
    failures = []
    if launched_state["steps"] != steps or not any(launched_state["words"]):
        failures.append("the launches recorded nothing")
    if launched != replayed:
        failures.append("replays give other results than launches")
    failures += [f"replays give another {row} than launches"
                 for row in differences(replayed_state, launched_state)]
    failures += [f"replays give another {row} than the CPU"
                 for row in differences(replayed_state, host_state)]
    return {"recipe": RECIPES[name], "steps": steps, "launched_us": 1e6 * launched_seconds,
            "replayed_us": 1e6 * replayed_seconds, "failures": failures}


def amaxes(generator):
    """Bits of amaxes of every kind, those of negative numbers too."""
    special = (0, 1, 0x007FFFFF, 0x00800000, 0x7F7FFFFF, 0x7F800000, 0x7F800001, 0x7FC00000)
    kinds = (lambda: generator.choice(special), lambda: generator.getrandbits(31),
             lambda: generator.randrange(0x3E000000, 0x42000000), lambda: 0)
    bits = [generator.choice(kinds)() | generator.getrandbits(1) << 31 for _ in range(SLOTS)]
    return struct.pack(f"<{SLOTS}I", *bits)


def check_update(library, folder, number, context, stream):
    """One kernel's work beside fp8rt_state_update's."""
    program, generator = Program(library, folder / f"update_{number}.so"), random.Random(number)
    ours, theirs = program.create_state(), program.create_state()
    rows, failures = abi.structs.fp8rt_state_rows(), []
    for step in range(UPDATE_STEPS):
        amax = amaxes(generator)
        for state in (ours, theirs):
            library.fp8rt_state_get_rows(state, ctypes.byref(rows))
            ctypes.memmove(rows.amax, amax, len(amax))
        program.update(ours, context)
        library.fp8rt_state_download(ours, stream)
        library.fp8rt_state_update(theirs)
        failures = [f"step {step}: another {row} than the CPU"
                    for row in differences(read(library, ours), read(library, theirs))]
        if failures:
            break
    return {"recipe": UPDATES[number], "steps": UPDATE_STEPS, "failures": failures}


def run(library, folder, steps):
    driver, results = Driver(), []

    def check(function, *arguments):
        # A failed capture leaves a stream of no use.
        stream, context = ctypes.c_void_p(), ctypes.c_void_p()
        library.fp8rt_stream_create(DEVICE, ctypes.byref(stream))
        library.fp8rt_context_create(DEVICE, stream, ctypes.byref(context))
        try:
            result = function(*arguments, context, stream)
        except (abi.Error, RuntimeError) as error:
            result = {"recipe": str(arguments[-2:]), "failures": [str(error)]}
        results.append(result)
        print(json.dumps(result), flush=True)

    for name in RECIPES:
        check(check_training, library, driver, folder, name, steps)
    for number in range(len(UPDATES)):
        check(check_update, library, folder, number)
    return results


def main():
    parser = make_parser()
    parser.add_argument("--steps", type=int, default=1000)
    args = parser.parse_args()
    folder = make_programs(args, lambda folder: compile_programs(args.build_dir, folder))
    if not folder:
        return 0
    # The CPU's products are so small that threads only wait for each other.
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    results = run(open_library(args.build_dir, folder), folder, args.steps)
    if args.out:
        args.out.write_text(json.dumps(results, indent=1) + "\n")
    failed = sum(bool(result["failures"]) for result in results)
    print(f"{len(results)} checks, {failed} failures")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
