"""Matmuls by mma.sync on a GPU whose driver assembles sm_89's PTX: every candidate for some shapes, beside a loop of the instruction
(mma_loop.cu) and beside those kernels of cuBLASLt that are not wgmma's, each forced in turn, all in one run.

usage: mma_share.py make DIR [--build-dir build]
       mma_share.py run DIR --loop mma_loop --out FILE [--seconds N]

`make` takes `fp8`, `run` takes `fp8` without its compiler, and PyTorch.
"""

import argparse
import ctypes
import itertools
import json
import os
import re
import statistics
import subprocess
import time
from pathlib import Path

import fp8
from matmul.kinds import KINDS
from matmul.program import program

SHAPES = [(4096, 4096, 4096)]
TARGET = "--fp8-set-target=chip=sm_89"
KINDS_HERE = ("bf16_nt", "tensor_fast", "tensor_promote")
ROUNDS, REPEATS = 5, 6
# Enumerators are those of cublasLt.h.
TYPES, COMPUTE_32F, TILES, STAGES = {"f32": 0, "bf16": 14, "e4m3": 28}, 68, 6, 13
TILE_ID, STAGES_ID = 1, 6
MOST_IDS = 64


def get_candidates(kind, shape, build):
    text = program({**KINDS[kind], "configs": None}, *shape)

    def choose(flag):
        done = subprocess.run([build / "bin/fp8-opt", TARGET, flag], input=text, text=True, capture_output=True, check=True)
        return re.findall(r"fp8_gpu\.config = (#fp8_mma\.gemm<[^>]*>)", done.stdout)
    chosen, every = choose("--fp8-select-kernels")[0], choose("--fp8-select-kernels=every-candidate")
    return chosen, [config for config in dict.fromkeys([chosen, *every]) if is_large(config)]


def is_large(config):
    """Others are for few rows."""
    rows, columns = (int(re.search(rf"tile_{side} = (\d+)", config)[1]) for side in "mn")
    return rows * columns >= 128 * 64 and "swap" not in config and "split" not in config


def take_codes(text):
    """Functions that are given codes and factors for scaled operands."""
    def replace(found):
        name, shape, kind = found.groups()
        return f"%{name}_codes: tensor<{shape}>, %{name}_factor: tensor<1x1xf32>"

    def assemble(found):
        return "".join(
            f"  %{name} = fp8.assemble %{name}_codes, %{name}_factor : tensor<{shape}>, tensor<1x1xf32> -> {kind}\n"
            for name, kind, shape in re.findall(r"%(\w+): (!fp8\.scaled<([^,]*),[^>]*>)", found[0]))
    text = re.sub(r"func\.func .*\n", lambda found: found[0] + assemble(found), text)
    return re.sub(r"%(\w+): !fp8\.scaled<([^,]*), (block = [^>]*)>", replace, text)


def make(args):
    args.folder.mkdir(parents=True, exist_ok=True)
    made = {}
    for kind, shape in itertools.product(KINDS_HERE, SHAPES):
        chosen, candidates = get_candidates(kind, shape, args.build_dir)
        name = f"{kind}_{'x'.join(map(str, shape))}"
        text = take_codes(program({**KINDS[kind], "configs": candidates}, *shape))
        built = fp8.compile(text, target="portable", cache=False, cpu="x86-64-v3")
        built.save(os.fspath(args.folder / f"{name}.so"))
        made[name] = {"kind": kind, "shape": shape, "chosen": chosen, "candidates": candidates}
        print(name, len(candidates), chosen, flush=True)
    (args.folder / "share.json").write_text(json.dumps(made))


def seconds(torch, work, repeats=REPEATS):
    start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    start.record()
    for _ in range(repeats):
        work()
    end.record()
    end.synchronize()
    return start.elapsed_time(end) / repeats * 1e-3


def measure(torch, works, flops):
    """TFLOP/s by name, the median of rounds."""
    times = {name: [] for name in works}
    for name, work in works.items():
        seconds(torch, work, 2)
    for _ in range(ROUNDS):
        for name, work in works.items():
            times[name].append(seconds(torch, work))
    return {name: round(flops / statistics.median(found) * 1e-12, 1) for name, found in times.items()}


class Forced:
    """cuBLASLt's kernels of a product that its heuristics need not propose."""

    def __init__(self, torch, element, a, b, result):
        from matmul import cublaslt

        self.torch, self.lt = torch, cublaslt
        self.lib, self.handle, self.workspace = cublaslt.library()
        (m, k), n = a.shape, b.shape[0]
        self.types = (COMPUTE_32F, TYPES["f32"], TYPES[element], TYPES[element], TYPES["bf16"], TYPES["bf16"])
        self.desc, self.keep = ctypes.c_void_p(), [a, b, result]
        cublaslt.check(self.lib.cublasLtMatmulDescCreate(ctypes.byref(self.desc), COMPUTE_32F, TYPES["f32"]), "descriptor")
        self.set(cublaslt.TRANS_A, ctypes.c_int32(cublaslt.OP_T))
        self.set(cublaslt.TRANS_B, ctypes.c_int32(cublaslt.OP_N))
        if element == "e4m3":
            self.set(cublaslt.FAST_ACCUM, ctypes.c_int8(1))
            one = torch.ones(1, device="cuda")
            self.keep.append(one)
            for which in (cublaslt.A_SCALE, cublaslt.B_SCALE):
                self.set(which, ctypes.c_void_p(one.data_ptr()))
        self.a, self.b = (cublaslt.layout(self.lib, TYPES[element], k, rows) for rows in (n, m))
        self.d = cublaslt.layout(self.lib, TYPES["bf16"], n, m)
        self.pointers = [ctypes.c_void_p(x.data_ptr()) for x in (b, a, result)]

    def set(self, attribute, value):
        self.lt.check(self.lib.cublasLtMatmulDescSetAttribute(
            self.desc, attribute, ctypes.byref(value), ctypes.c_size_t(ctypes.sizeof(value))), f"attribute {attribute}")

    def get_capabilities(self, algo, which):
        values, written = (ctypes.c_uint32 * 256)(), ctypes.c_size_t()
        self.lib.cublasLtMatmulAlgoCapGetAttribute(
            ctypes.byref(algo), which, values, ctypes.c_size_t(ctypes.sizeof(values)), ctypes.byref(written))
        return list(values[:written.value // 4])

    def list_algorithms(self):
        """What may run, with a name of its number, tile and stages."""
        ids, count = (ctypes.c_int * MOST_IDS)(), ctypes.c_int()
        self.lt.check(self.lib.cublasLtMatmulAlgoGetIds(self.handle, *self.types, MOST_IDS, ids, ctypes.byref(count)), "ids")
        for number in ids[:count.value]:
            algo = (ctypes.c_uint64 * 8)()
            if self.lib.cublasLtMatmulAlgoInit(self.handle, *self.types, number, ctypes.byref(algo)):
                continue
            tiles, stages = self.get_capabilities(algo, TILES), self.get_capabilities(algo, STAGES)
            for tile, stage in itertools.product(tiles or [0], stages or [0]):
                one = (ctypes.c_uint64 * 8)(*algo)
                for which, value in ((TILE_ID, tile), (STAGES_ID, stage)):
                    value = ctypes.c_uint32(value)
                    self.lib.cublasLtMatmulAlgoConfigSetAttribute(ctypes.byref(one), which, ctypes.byref(value),
                                                                  ctypes.c_size_t(4))
                found = self.lt.Heuristic()
                status = self.lib.cublasLtMatmulAlgoCheck(self.handle, self.desc, self.a, self.b, self.d, self.d,
                                                          ctypes.byref(one), ctypes.byref(found))
                if not status and found.workspace <= self.lt.WORKSPACE:
                    yield f"{number} tile {tile} stages {stage}", one

    def launch(self, algo):
        a, b, d = self.pointers
        one, zero = ctypes.c_float(1), ctypes.c_float(0)
        stream = ctypes.c_void_p(self.torch.cuda.current_stream().cuda_stream)
        return self.lib.cublasLtMatmul(
            self.handle, self.desc, ctypes.byref(one), a, self.a, b, self.b, ctypes.byref(zero), d, self.d, d, self.d,
            ctypes.byref(algo), ctypes.c_void_p(self.workspace.data_ptr()), ctypes.c_size_t(self.lt.WORKSPACE), stream)


def name_kernel(torch, work):
    from torch.profiler import ProfilerActivity, profile
    with profile(activities=[ProfilerActivity.CUDA]) as found:
        work()
        torch.cuda.synchronize()
    names = [event.key for event in found.key_averages() if "emcpy" not in event.key and "emset" not in event.key]
    return max(names, key=len, default="")


def is_mma_sync(name):
    """Says so of a kernel of cuBLASLt, by its name."""
    return bool(re.search(r"sm8\d|ampere|cutlass_80|_16816|ada_", name)) and not re.search(r"sm90|gmma|hopper", name)


def measure_forced(torch, element, a, b, result, flops, end):
    """The fastest by mma.sync and how many there are, and the fastest of all kernels, by name."""
    forced, times, names = Forced(torch, element, a, b, result), {}, {}
    algorithms = []
    for name, algo in forced.list_algorithms():
        if not forced.launch(algo):
            algorithms.append((name, algo))
    torch.cuda.synchronize()
    by_id = {}
    for name, algo in algorithms:
        by_id.setdefault(name.split()[0], []).append((name, algo))
    for number, some in by_id.items():
        kernel = name_kernel(torch, lambda algo=some[0][1]: forced.launch(algo))
        names[number] = kernel
        for name, algo in some if is_mma_sync(kernel) else some[:1]:
            if time.monotonic() < end:
                times[name] = seconds(torch, lambda algo=algo: forced.launch(algo), 2)
    print(element, len(algorithms), "algorithms", names, flush=True)
    fast = sorted((one for one in times if is_mma_sync(names[one.split()[0]])), key=times.get)[:6]
    works = {name: (lambda algo=algo: forced.launch(algo)) for name, algo in algorithms if name in fast}
    found = measure(torch, works, flops)
    return {"kernels": names, "mma": {name: [found[name], name_kernel(torch, works[name])] for name in found},
            "others": {name: round(flops / took * 1e-12, 1) for name, took in times.items() if name not in found}}


def run(args):
    import torch

    loops = subprocess.run([args.loop.resolve()], text=True, capture_output=True, check=True).stdout
    print(loops, flush=True)
    record = {"device": torch.cuda.get_device_name(), "loops": loops.splitlines(), "rows": []}
    end = time.monotonic() + args.seconds
    for name, facts in json.loads((args.folder / "share.json").read_text()).items():
        if time.monotonic() > end:
            break
        (m, n, k), element = facts["shape"], KINDS[facts["kind"]]["a"]
        a, b = (torch.randn(rows, k, device="cuda", dtype=torch.bfloat16) for rows in (m, n))
        factor = torch.ones(1, 1, device="cuda")
        wanted = (a.float() @ b.float().T) if element == "bf16" else None
        if element == "e4m3":
            a, b = (x.to(torch.float8_e4m3fn) for x in (a, b))
            wanted = a.float() @ b.float().T
        given = [a, b] if element == "bf16" else [a, factor, b, factor]
        program_, flops, works = fp8.load(os.fspath(args.folder / f"{name}.so")), 2 * m * n * k, {}
        for (_, function), config in zip(program_.functions.items(), facts["candidates"]):
            works[config] = lambda function=function: function(*given)
            error = ((works[config]().float() - wanted).norm() / wanted.norm()).item()
            if not error < 0.01:
                print("wrong:", name, config, error, flush=True)
        row = {"name": name, "chosen": facts["chosen"], "ours": measure(torch, works, flops)}
        best = max(row["ours"], key=row["ours"].get)
        print(name, "chosen", row["ours"][facts["chosen"]], "best", row["ours"][best], best, flush=True)
        record["rows"].append(row)
        args.out.write_text(json.dumps(record, indent=1))
        if facts["kind"] != "tensor_promote":
            try:
                row["cublaslt"] = measure_forced(torch, element, a, b, torch.empty_like(wanted, dtype=torch.bfloat16), flops, end)
                print(name, "cuBLASLt's", row["cublaslt"]["mma"], flush=True)
            except RuntimeError as error:
                print(name, "cuBLASLt:", error, flush=True)
            args.out.write_text(json.dumps(record, indent=1))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(required=True)
    for function in (make, run):
        command = commands.add_parser(function.__name__)
        command.set_defaults(function=function)
        command.add_argument("folder", type=Path)
        command.add_argument("--build-dir", type=Path, default=Path("build"))
        if function is run:
            command.add_argument("--loop", type=Path, required=True)
            command.add_argument("--out", type=Path, required=True)
            command.add_argument("--seconds", type=float, default=60)
    args = parser.parse_args()
    args.function(args)


if __name__ == "__main__":
    main()
