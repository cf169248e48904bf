"""Matmuls by mma.sync on a GPU for which ptxas makes code of sm_89's PTX: every candidate for some shapes, beside a loop of the
instruction (mma_loop.cu) and beside those kernels of cuBLASLt that are not wgmma's, each forced in turn, all in one run.

usage: mma_share.py make DIR [--build-dir build] [--arch sm_90] [--kinds REGEX] [--shapes MxNxK...]
       mma_share.py run DIR --loop mma_loop --out FILE [--seconds N] [--forced N]
       mma_share.py show FILE

`make` takes a build and ptxas, `run` PyTorch and the runtime (matmul/kernel.py). Choices are those for an RTX 4090, which is what
`portable` takes, and those of its model for an H200's shared memory and rates of mma.sync. cuBLASLt's kernels run for the first
`--forced` shapes of bf16.
"""

import argparse
import ctypes
import itertools
import json
import math
import re
import statistics
import subprocess
import time
from pathlib import Path

from matmul.kinds import KINDS
from matmul.program import program
from timing import seconds_of_each

# The first one is what others are measured by. None of them is in what anything was fitted to, but for --shapes.
SHAPES = ["4096x4096x4096", "8192x5120x2048", "3000x3072x8192", "2048x14336x4096", "1104x4096x11008", "6144x2560x1536"]
KINDS_HERE = ("bf16_nt", "tensor_fast", "tensor_promote")
CHIP = "sm_89"
# What an Ada's machine is given in place of its own. The rate of products is a loop's (gemm_sm89.txt), in bytes of a clock and
# multiprocessor: Hopper's mma.sync makes f16 of codes.
CARD = {"multiprocessors": 132, "shared_bytes": 232448, "l2_rate": 49, "memory_rate": 34, "clock": 1830}
RATES = {"bf16": 2700, "e4m3": 970}
ROUNDS, REPEATS, MIN_SECONDS = 3, 6, 2e-3
# Enumerators are those of cublasLt.h.
TYPES, COMPUTE_32F, TILES, STAGES = {"f32": 0, "bf16": 14, "e4m3": 28}, 68, 6, 13
TILE_ID, STAGES_ID = 1, 6
MOST_IDS = 64


# ===----------------------------------------------------------------------===
# Kernels
# ===----------------------------------------------------------------------===


def write_machines(folder, element):
    """An RTX 4090 and the card, by name."""
    source = (Path(__file__).resolve().parents[1] / "lib/Kernels/Machines/rtx4090.mlir").read_text()
    card = source
    for name, value in {**CARD, "mma_rate": RATES[element]}.items():
        card = re.sub(rf"\b{name} = \d+", f"{name} = {value}", card)
    paths = {name: folder / f"{name}_{element}.mlir" for name in ("rtx4090", "card")}
    for name, text in (("rtx4090", source), ("card", card)):
        paths[name].write_text(text)
    return paths


def is_large(config):
    """Others are for few rows."""
    rows, columns = (int(re.search(rf"tile_{side} = (\d+)", config)[1]) for side in "mn")
    return rows * columns >= 64 * 64 and "swap" not in config and "split" not in config


def get_candidates(kind, shape, build, folder):
    """What each machine chooses, and what may be best by any."""
    text, chosen, every = program({**KINDS[kind], "configs": None}, *shape), {}, {}
    for name, path in write_machines(folder, KINDS[kind]["a"]).items():
        def choose(flag, path=path):
            done = subprocess.run([build / "bin/fp8-opt", f"--fp8-set-target=chip={CHIP} machine={path}", flag], input=text,
                                  text=True, capture_output=True, check=True)
            return re.findall(r"fp8_gpu\.config = (#fp8_mma\.gemm<[^>]*>)", done.stdout)
        chosen[name] = choose("--fp8-select-kernels")[0]
        every.update(dict.fromkeys(filter(is_large, choose("--fp8-select-kernels=every-candidate"))))
    return chosen, list(dict.fromkeys([*chosen.values(), *every]))


def build_kernels(kind, configs, args):
    """KIND.cubin and KIND.json, by which a kernel takes any shape."""
    from gemm_kernels import build

    card = write_machines(args.folder, KINDS[kind]["a"])["card"]
    build(kind, {**KINDS[kind], "configs": configs}, args.build_dir / "bin", args.folder, parts=("ptx", "json"),
          target=f"--fp8-set-target=chip={CHIP} machine={card}")
    ptx = args.folder / f"{kind}.ptx"
    subprocess.run(["ptxas", "-arch", args.arch, "-O3", ptx, "-o", args.folder / f"{kind}.cubin"], check=True)
    ptx.unlink()


def make(args):
    args.folder.mkdir(parents=True, exist_ok=True)
    made, kinds = {}, [kind for kind in KINDS_HERE if re.search(args.kinds, kind)]
    for text, kind in itertools.product(args.shapes, kinds):
        shape = tuple(map(int, text.split("x")))
        chosen, candidates = get_candidates(kind, shape, args.build_dir, args.folder)
        made[f"{kind} {text}"] = {"kind": kind, "shape": shape, "chosen": chosen, "candidates": candidates}
    for kind in kinds:
        configs = sorted({config for row in made.values() if row["kind"] == kind for config in row["candidates"]})
        build_kernels(kind, configs, args)
        print(kind, len(configs), flush=True)
    (args.folder / "share.json").write_text(json.dumps(made))


# ===----------------------------------------------------------------------===
# cuBLASLt
# ===----------------------------------------------------------------------===


class Forced:
    """cuBLASLt's kernels of a product that its heuristics need not propose."""

    def __init__(self, torch, problem):
        from matmul import cublaslt

        element, a, b, result = problem.spec["a"], problem.a[0], problem.b[0], torch.empty_like(problem.result[0])
        self.torch, self.lt = torch, cublaslt
        self.lib, self.handle, self.workspace = cublaslt.library()
        (m, k), n = a.shape, b.shape[0]
        self.types = (COMPUTE_32F, TYPES["f32"], TYPES[element], TYPES[element], TYPES["bf16"], TYPES["bf16"])
        self.desc, self.keep = ctypes.c_void_p(), [a, b, result]
        cublaslt.check(self.lib.cublasLtMatmulDescCreate(ctypes.byref(self.desc), COMPUTE_32F, TYPES["f32"]), "descriptor")
        self.set(cublaslt.TRANS_A, ctypes.c_int32(cublaslt.OP_T))
        self.set(cublaslt.TRANS_B, ctypes.c_int32(cublaslt.OP_N))
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


def measure_forced(torch, problem, end):
    """The fastest by mma.sync, seconds and the kernel of each, and what other kernels there are, by name."""
    from matmul.timing import measure

    forced, times, names = Forced(torch, problem), {}, {}
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
                times[name] = seconds_of_each(lambda algo=algo: forced.launch(algo), 2)
    print(len(algorithms), "algorithms", names, flush=True)
    fast = sorted((one for one in times if is_mma_sync(names[one.split()[0]])), key=times.get)[:6]
    works = {name: (lambda algo=algo: forced.launch(algo)) for name, algo in algorithms if name in fast}
    found = measure({name: [work] for name, work in works.items()}, REPEATS, ROUNDS)
    return {"kernels": names, "mma": {name: [found[name], name_kernel(torch, works[name])] for name in found}}


# ===----------------------------------------------------------------------===
# Times
# ===----------------------------------------------------------------------===


def measure_kernels(torch, kind, shape, kernels):
    """Seconds of each config whose result is right, and the problem."""
    from matmul.problem import DTYPES, Operands, Problem
    from matmul.timing import buffer_sets, measure

    width = DTYPES[KINDS[kind]["a"]].itemsize
    problems = [Problem(KINDS[kind], Operands(KINDS[kind], *shape, seed)) for seed in range(buffer_sets(*shape, width))]
    wanted = problems[0].reference()[0]
    contenders = {}
    for config, kernel in kernels.items():
        if not kernel.fits(problems[0]):
            continue
        launches = [kernel.bind(problem) for problem in problems]
        problems[0].poison()
        launches[0]()
        error = ((problems[0].result.double() - wanted).norm() / wanted.norm()).item()
        if error < 0.01 and problems[0].guards_intact():
            contenders[config] = launches
        else:
            print("wrong:", kind, shape, config, error, flush=True)
    repeats = max(len(problems), math.ceil(MIN_SECONDS / (2 * math.prod(shape) / 3e14)))
    return measure(contenders, repeats, ROUNDS), problems[0]


def run(args):
    import torch
    from matmul.kernel import load

    loops = subprocess.run([args.loop.resolve()], text=True, capture_output=True, check=True).stdout
    print(loops, flush=True)
    record = {"device": torch.cuda.get_device_name(), "loops": loops.splitlines(), "rows": []}
    end, forced = time.monotonic() + args.seconds, 0
    made = json.loads((args.folder / "share.json").read_text())
    kernels = {kind: {kernel.config: kernel for kernel in found}
               for kind, found in load(args.folder, sorted({row["kind"] for row in made.values()})).items()}
    for name, facts in made.items():
        if time.monotonic() > end:
            break
        own = {config: kernels[facts["kind"]][config] for config in facts["candidates"]}
        times, problem = measure_kernels(torch, facts["kind"], facts["shape"], own)
        row = {"name": name, **facts, "ours": times}
        record["rows"].append(row)
        if KINDS[facts["kind"]]["a"] == "bf16" and forced < args.forced:
            forced += 1
            try:
                row["cublaslt"] = measure_forced(torch, problem, end)
            except RuntimeError as error:
                print(name, "cuBLASLt:", error, flush=True)
        args.out.write_text(json.dumps(record, indent=1))
    show_rows(record["rows"])


def show_rows(rows):
    """TFLOP/s, and by how much of the fastest's speed each choice has."""
    shares = {}
    for row in rows:
        flops, times = 2e-12 * math.prod(row["shape"]), row["ours"]
        best = min(times, key=times.get)
        speeds = {machine: flops / times[config] if config in times else 0 for machine, config in row["chosen"].items()}
        for machine, speed in speeds.items():
            shares.setdefault((row["kind"], machine), []).append(speed * times[best] / flops)
        others = [flops / took for took, _ in row.get("cublaslt", {}).get("mma", {}).values()]
        print(f"{row['name']:34}", *(f"{machine} {speed:5.1f}" for machine, speed in speeds.items()),
              f"best {flops / times[best]:5.1f} {best}", *(f"cuBLASLt {max(others):5.1f}" for _ in others[:1]))
    for (kind, machine), found in shares.items():
        print(f"{kind:16} {machine:8} {len(found):3} shapes, of the fastest {statistics.mean(found):.3f}, at worst {min(found):.3f}")


def show(args):
    show_rows([row for path in args.files for row in json.loads(path.read_text())["rows"]])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(required=True)
    for function in (make, run):
        command = commands.add_parser(function.__name__)
        command.set_defaults(function=function)
        command.add_argument("folder", type=Path)
        if function is make:
            command.add_argument("--build-dir", type=Path, default=Path("build"))
            command.add_argument("--arch", default="sm_90", help="what ptxas makes code for")
            command.add_argument("--kinds", default="")
            command.add_argument("--shapes", nargs="+", default=SHAPES)
        else:
            command.add_argument("--loop", type=Path, required=True)
            command.add_argument("--out", type=Path, required=True)
            command.add_argument("--seconds", type=float, default=60)
            command.add_argument("--forced", type=int, default=1)
    command = commands.add_parser("show")
    command.set_defaults(function=show)
    command.add_argument("files", type=Path, nargs="+")
    args = parser.parse_args()
    args.function(args)


if __name__ == "__main__":
    main()
