"""Our matmul kernels on a GPU: checked against PyTorch in higher precision, and
timed beside cuBLASLt (through torch._scaled_mm) and Triton.

Made for a machine that has a GPU and PyTorch and nothing of this project but
this folder and the kernels that gemm_kernels.py made.

Every contender of a shape is a CUDA graph of launches that rotate among buffers
that together exceed the L2 cache; the graphs are replayed in turn and the
median of each is kept.

usage: gemm.py --kernels DIR [--out DIR] [--check] [--time] [--quick]
"""

import argparse
import ctypes
import datetime
import json
import math
import statistics
import subprocess
import sys
from pathlib import Path

import torch

from gemm_kernels import KINDS, EPILOGUES, TIMED
from gemm_shapes import CHECK_SHAPES, DECODE_SHAPES, SHAPES

driver = ctypes.CDLL("libcuda.so.1")
DTYPES = {"e4m3": torch.float8_e4m3fn, "e5m2": torch.float8_e5m2,
          "bf16": torch.bfloat16, "f16": torch.float16, "f32": torch.float32}
# CUtensorMapDataType; the swizzle, of CUtensorMapSwizzle, by bytes of a box row.
MAP_TYPES = {"e4m3": 0, "e5m2": 0, "f16": 6, "f32": 7, "bf16": 9}
SWIZZLES = {16: 0, 32: 1, 64: 2, 128: 3}
L2_PROMOTION_128B = 2  # 256B loses 15 % where rows are no multiple of 128 bytes.
MAX_DYNAMIC_SHARED = 8  # CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES


def check(result, what):
    if result:
        text = ctypes.c_char_p()
        driver.cuGetErrorName(result, ctypes.byref(text))
        raise RuntimeError(f"{what}: {(text.value or b'?').decode()}")


def tensor_map(tensor, dtype, dims, strides, box, swizzle):
    """128 bytes, 64-byte aligned; returns what keeps them alive, and where."""
    storage = ctypes.create_string_buffer(192)
    address = (ctypes.addressof(storage) + 63) // 64 * 64
    rank = len(dims)
    check(driver.cuTensorMapEncodeTiled(
        ctypes.c_void_p(address), ctypes.c_int(dtype), ctypes.c_uint32(rank),
        ctypes.c_void_p(tensor.data_ptr()), (ctypes.c_uint64 * rank)(*dims),
        (ctypes.c_uint64 * (rank - 1))(*strides), (ctypes.c_uint32 * rank)(*box),
        (ctypes.c_uint32 * rank)(*([1] * rank)), ctypes.c_int(0),
        ctypes.c_int(swizzle), ctypes.c_int(L2_PROMOTION_128B), ctypes.c_int(0)),
        "cuTensorMapEncodeTiled")
    return storage, address


class Problem:
    """Random operands of one kind and shape."""

    def __init__(self, spec, m, n, k, seed=0):
        self.spec, self.m, self.n, self.k = spec, m, n, k
        self.batch = 3 if spec["batched"] else 1
        generator = torch.Generator("cuda").manual_seed(seed)
        self.generator = generator

        def random(*shape):
            return torch.randn(*shape, device="cuda", generator=generator,
                               dtype=torch.bfloat16)

        def factors(rows, scale):
            shape = {"tensor": (1, 1), "row": (rows, 1),
                     "1x128": (rows, math.ceil(k / 128)),
                     "128x128": (math.ceil(rows / 128), math.ceil(k / 128))}[scale]
            values = torch.rand(self.batch, *shape, device="cuda",
                                generator=generator) + 0.5
            if scale == "tensor":
                values = values[:1].expand(self.batch, 1, 1)
            if scale == "1x128":  # M-major, as cuBLASLt wants them too.
                values = values.transpose(1, 2).contiguous().transpose(1, 2)
            return values

        self.a = random(self.batch, m, k).to(DTYPES[spec["a"]])
        self.b = random(self.batch, n, k).to(DTYPES[spec["b"]])
        self.scale_a = factors(m, spec["scale_a"])
        self.scale_b = factors(n, spec["scale_b"])
        self.operands = []
        epilogue = EPILOGUES[spec["epilogue"]] or {"operands": []}
        for dims, dtype in epilogue["operands"]:
            shape = {"n": (n,), "m": (m, 1), "mn": (m, n)}[dims]
            self.operands.append(random(*shape).to(DTYPES[dtype]))
        self.scale = 3.0 / math.sqrt(k) * 8
        # Poisoned, with guards around it that no kernel may touch.
        self.guard = 4096
        size = self.batch * m * n
        width = DTYPES[spec["result"]].itemsize
        self.storage = torch.full(((size + 2 * self.guard) * width,), 0xFF,
                                  device="cuda", dtype=torch.uint8)
        self.result = self.storage.view(DTYPES[spec["result"]])[
            self.guard:self.guard + size].view(self.batch, m, n)
        self.amax = torch.zeros(1, device="cuda")

    def poison(self):
        self.storage.fill_(0xFF)
        self.amax.zero_()
        if self.spec["epilogue"] == "accumulate":
            self.result.copy_(self.operands[0])

    def guards_intact(self):
        edge = self.guard * self.result.element_size()
        return bool((self.storage[:edge] == 0xFF).all()
                    and (self.storage[-edge:] == 0xFF).all())

    def dequantized(self, payload, scale_inv, rows, dtype):
        """A slice of rows, in high precision."""
        values = payload[:, rows].to(dtype)
        scale = scale_inv.to(dtype)
        if scale.shape[1] > 1:
            repeat = 128 if self.rows_per_scale(payload) == 128 else 1
            scale = scale.repeat_interleave(repeat, 1)[:, :payload.shape[1]][:, rows]
        if scale.shape[2] > 1:
            scale = scale.repeat_interleave(128, 2)[:, :, :self.k]
        return values * scale

    def rows_per_scale(self, payload):
        name = "scale_a" if payload is self.a else "scale_b"
        return 128 if self.spec[name] == "128x128" else 1

    def reference(self, rows, dtype):
        """Rows of (result before rounding)."""
        a = self.dequantized(self.a, self.scale_a, rows, dtype)
        b = self.dequantized(self.b, self.scale_b, slice(None), dtype)
        x = a @ b.transpose(1, 2)
        operands = [t[rows].to(dtype) if t.dim() == 2 else t.to(dtype)
                    for t in self.operands]
        name = self.spec["epilogue"].replace("_quantize", "")
        gelu = torch.nn.functional.gelu
        return {
            "none": lambda: x,
            "quantize": lambda: x,
            "bias_relu": lambda: torch.relu(x + operands[0]),
            "residual_silu": lambda: torch.nn.functional.silu(x + operands[0]),
            "gate": lambda: x * operands[0] + operands[1],
            "gelu_tanh": lambda: gelu(x, approximate="tanh"),
            "bias_gelu": lambda: gelu(x + operands[0]),
            "accumulate": lambda: x + operands[0],
        }[name]()

    def errors(self):
        """Relative error in the Frobenius norm, of amax too, and bad elements."""
        whole = self.m * self.n * self.k <= 1 << 31
        blocks = [slice(None)] if whole else [slice(0, 256), slice(-256, None)]
        dtype = torch.float64 if whole else torch.float32
        noise = signal = 0.0
        quantized = EPILOGUES[self.spec["epilogue"]] or {}
        quantized = quantized.get("quantize", False)
        error_amax = 0.0
        for rows in blocks:
            expected = self.reference(rows, dtype)
            if quantized and whole:
                amax = expected.abs().max().item()
                error_amax = abs(self.amax.item() - amax) / amax
            if quantized:
                limit = torch.finfo(DTYPES[self.spec["result"]]).max
                expected = (expected * self.scale).clamp(-limit, limit)
            actual = self.result[:, rows].to(dtype)
            noise += (actual - expected).square().sum().item()
            signal += expected.square().sum().item()
        bad = int(torch.isnan(self.result.float()).sum().item())
        return math.sqrt(noise / signal), error_amax, bad


class Kernel:
    sms = None

    def __init__(self, module, name, launch):
        self.name, self.launch_info = name, launch
        self.function = ctypes.c_void_p()
        check(driver.cuModuleGetFunction(ctypes.byref(self.function), module,
                                         name.encode()), name)
        check(driver.cuFuncSetAttribute(self.function, MAX_DYNAMIC_SHARED,
                                        launch["shared_bytes"]), "shared memory")

    def bind(self, problem, workspace=None):
        """A function that launches the kernel on the current stream."""
        info, p = self.launch_info, problem
        m, n, k, batch = p.m, p.n, p.k, p.batch
        batched = p.spec["batched"]
        keep = []

        def operand_map(tensor, rows, tile):
            dims, strides, box = [k, rows], [k], [128, tile]
            if batched:
                dims, strides, box = [*dims, batch], [*strides, k * rows], [*box, 1]
            keep.append(tensor_map(tensor, 0, dims, strides, box, SWIZZLES[128]))
            return ctypes.c_void_p(keep[-1][1]), True

        def result_map():
            width = p.result.element_size()
            dims, strides = [n, m], [n * width]
            box = [info["store_bytes"] // width, 64]
            if batched:
                dims = [*dims, batch]
                strides, box = [*strides, n * m * width], [*box, 1]
            keep.append(tensor_map(p.result, MAP_TYPES[p.spec["result"]], dims,
                                   strides, box, SWIZZLES[info["store_bytes"]]))
            return ctypes.c_void_p(keep[-1][1]), True

        tiles = math.ceil(m / info["tile_m"]) * math.ceil(n / info["tile_n"]) * batch

        def pointer(tensor):
            keep.append(tensor)
            return ctypes.c_void_p(tensor.data_ptr()), False

        def value(param):
            name, _, field = param.partition(".")
            if field == "map":
                if name == "d":
                    return result_map()
                tensor, rows = (p.a, m) if name == "a" else (p.b, n)
                return operand_map(tensor, rows, info[f"tile_{'m' if name == 'a' else 'n'}"])
            if name in ("scale_a", "scale_b"):
                tensor = getattr(p, name)
                if field == "ptr":
                    return pointer(tensor)
                dim = {"stride_batch": 0, "stride_row": 1, "stride_k": 2}[field]
                return ctypes.c_int64(tensor.stride(dim)), False
            if name == "d":
                if field == "ptr":
                    return pointer(p.result)
                return ctypes.c_int64({"stride_m": n, "stride_batch": m * n}[field]), False
            if name.startswith("operand"):
                tensor = p.operands[int(name[7:])]
                if p.spec["epilogue"] == "accumulate":
                    tensor = p.result[0]
                if field == "ptr":
                    return pointer(tensor)
                stride = tensor.stride(0) if tensor.dim() == 2 else 0
                return ctypes.c_int64(stride if field == "stride_m" else 0), False
            if name.startswith("capture"):
                return ctypes.c_float(p.scale), False
            if name == "amax":
                return pointer(p.amax)
            if name == "workspace":
                return pointer(workspace or torch.empty(
                    tiles * info["workspace_bytes_per_tile"], device="cuda",
                    dtype=torch.uint8))
            if name == "counters":
                return pointer(torch.zeros(tiles, device="cuda", dtype=torch.int32))
            return ctypes.c_int32({"m": m, "n": n, "k": k, "batch": batch}[name]), False

        pointers = []
        for param in info["params"]:
            argument, is_address = value(param)
            keep.append(argument)
            # A tensor map is passed by what it points to.
            pointers.append(argument.value if is_address else ctypes.addressof(argument))
        array = (ctypes.c_void_p * len(pointers))(*pointers)
        grid = min(Kernel.sms, tiles * info["split_k"])
        function, threads, shared = self.function, info["threads"], info["shared_bytes"]

        def launch():
            stream = ctypes.c_void_p(torch.cuda.current_stream().cuda_stream)
            check(driver.cuLaunchKernel(function, grid, 1, 1, threads, 1, 1, shared,
                                        stream, array, None), "cuLaunchKernel")

        launch.keep = (keep, array)
        return launch


def load(folder, names):
    kernels = {}
    for name in names:
        cubin = (folder / f"{name}.cubin").read_bytes()
        module = ctypes.c_void_p()
        check(driver.cuModuleLoadData(ctypes.byref(module), cubin), name)
        infos = json.loads((folder / f"{name}.json").read_text())
        kernels[name] = [Kernel(module, key, info) for key, info in infos.items()]
    return kernels


def short(kernel):
    i = kernel.launch_info
    text = f"{i['tile_m']}x{i['tile_n']}"
    c = i["config"]
    for word, mark in (("ping_pong", "pp"), ("swap_ab", "swap"), ("direct", "")):
        if word in c and mark:
            text += mark
    if i["split_k"] > 1:
        text += f"k{i['split_k']}"
    return text


# ---------------------------------------------------------------------------
# Correctness
# ---------------------------------------------------------------------------

def fits(kernel, problem):
    """Whether the kernel may run: bulk stores need rows of 16 bytes."""
    row = problem.n * problem.result.element_size()
    if "d.map" in kernel.launch_info["params"] and row % 16:
        return False
    return not ("swap_ab" in kernel.launch_info["config"] and problem.m > 512)


def limit(spec, k):
    rounding = {"bf16": 2.0e-3, "f16": 3e-4, "f32": 2e-5, "e4m3": 3e-2, "e5m2": 6e-2}
    # The tensor core keeps about 14 bits and truncates.
    if k < 256:  # Few values: rounding to 8 bits does not average out.
        rounding = {dtype: 2 * error for dtype, error in rounding.items()}
    accumulator = 4e-4 + (3e-7 * k if spec["accumulate"] == "fast" else 0)
    if spec["accumulate"] == "fast":
        accumulator += 6e-4 * math.sqrt(k / 1024)
    return rounding[spec["result"]] + accumulator


def run_checks(kernels, quick):
    rows, failures = [], 0
    for name, list_ in kernels.items():
        spec = KINDS[name]
        for shape in CHECK_SHAPES[: 3 if quick else None]:
            problem = Problem(spec, *shape)
            for kernel in list_:
                if not fits(kernel, problem):
                    continue
                problem.poison()
                launch = kernel.bind(problem)
                row = {"kind": name, "config": short(kernel), "shape": shape}
                launch()
                torch.cuda.synchronize()
                error, amax, bad = problem.errors()
                first = problem.storage.clone()
                same = True
                for _ in range(2):  # Counters must be left as they were.
                    problem.poison()
                    launch()
                    same &= bool((problem.storage == first).all())
                ok = (error < limit(spec, shape[2]) and amax < 1e-2 and bad == 0
                      and problem.guards_intact() and same)
                rows.append({**row, "error": error, "amax_error": amax, "nan": bad,
                             "guards": problem.guards_intact(), "repeats": same,
                             "ok": ok})
                if not ok:
                    failures += 1
                    print("FAIL", rows[-1], flush=True)
        worst = max((r["error"] for r in rows if r["kind"] == name), default=0)
        print(f"check {name:24s} worst error {worst:.2e}", flush=True)
    print(f"{len(rows)} checks, {failures} failures", flush=True)
    return {name: {"checks": sum(r["kind"] == name for r in rows),
                   "failures": sum(r["kind"] == name and not r["ok"] for r in rows),
                   "worst_error": max((r["error"] for r in rows
                                       if r["kind"] == name), default=0)}
            for name in kernels}


# ---------------------------------------------------------------------------
# Time
# ---------------------------------------------------------------------------

def graph_of(launches, repeats):
    """A graph of `repeats` launches that rotate."""
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        for launch in launches:
            launch()
    torch.cuda.current_stream().wait_stream(stream)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for i in range(repeats):
            launches[i % len(launches)]()
    return graph


def measure(contenders, repeats, rounds):
    """Median seconds of one launch of each; `contenders` maps names to one
    launch for each set of buffers."""
    graphs = {}
    for name, launches in contenders.items():
        try:
            graphs[name] = graph_of(launches, repeats)
        except Exception as error:  # A peer may not take a shape.
            print(f"  {name}: {str(error).splitlines()[0][:120]}", flush=True)
    times = {name: [] for name in graphs}
    for round_ in range(rounds + 1):
        for name, graph in graphs.items():
            start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            start.record()
            graph.replay()
            end.record()
            end.synchronize()
            if round_:
                times[name].append(start.elapsed_time(end) / repeats * 1e-3)
    return {name: statistics.median(t) for name, t in times.items()}


def scaled_mm(problem, fast):
    a, b = problem.a[0], problem.b[0].t()
    scale_a, scale_b = problem.scale_a[0], problem.scale_b[0].t()
    if problem.spec["scale_a"] == "tensor":
        scale_a, scale_b = scale_a.reshape(()), scale_b.reshape(())
    if problem.spec["scale_a"] == "row":
        scale_a, scale_b = scale_a.contiguous(), scale_b.contiguous()
    if problem.spec["scale_a"] == "1x128":
        from torch.nn.functional import ScalingType, scaled_mm as block_mm
        blocks = problem.scale_b[0]
        padded = torch.zeros(blocks.shape[0], (blocks.shape[1] + 3) // 4 * 4,
                             device="cuda")
        padded[:, : blocks.shape[1]] = blocks
        for layout in (padded[:, : blocks.shape[1]].t(), padded.t(), blocks.t()):
            def call(layout=layout):
                return block_mm(a, b, scale_a=scale_a,
                                scale_recipe_a=ScalingType.BlockWise1x128,
                                scale_b=layout,
                                scale_recipe_b=ScalingType.BlockWise128x128,
                                output_dtype=torch.bfloat16)
            try:
                call()
                return call
            except Exception:
                continue
    return lambda: torch._scaled_mm(a, b, scale_a=scale_a, scale_b=scale_b,
                                    out_dtype=torch.bfloat16, use_fast_accum=fast)


def peers(kind, problems):
    spec = KINDS[kind]
    contenders = {}
    if spec["epilogue"] == "none":
        if spec["accumulate"] == "fast":
            contenders["cublaslt_fast"] = [scaled_mm(p, True) for p in problems]
        if kind == "tensor_promote":
            contenders["cublaslt_slow"] = [scaled_mm(p, False) for p in problems]
        if kind == "block":
            contenders["cublaslt_block"] = [scaled_mm(p, False) for p in problems]
    if kind == "tensor_fast" and problems[0].m >= 1024:
        try:
            import gemm_triton
            contenders["triton"] = [gemm_triton.bind(p) for p in problems]
        except Exception as error:
            print("  triton:", str(error).splitlines()[0][:120], flush=True)
    return contenders


def run_times(kernels, shapes, rounds, kinds, selected, quick, with_peers=True):
    rows = []
    l2 = 120 << 20
    for m, n, k, label in shapes:
        bytes_ = m * k + n * k + 2 * m * n
        sets = max(2, min(16, math.ceil(l2 / bytes_) + 1))
        floor = max(2.0 * m * n * k / 1.4e15, bytes_ / 4e12, 3e-6)
        repeats = max(sets, min(400, int(3e-3 / floor)))
        for kind in kinds:
            if kind not in kernels:
                continue
            problems = [Problem(KINDS[kind], m, n, k, seed) for seed in range(sets)]
            contenders = peers(kind, problems) if with_peers else {}
            chosen, ours = selected[kind].get(f"{m}x{n}x{k}"), None
            for kernel in kernels[kind]:
                if not fits(kernel, problems[0]):
                    continue
                if kernel.launch_info["config"] == chosen:
                    pass
                elif quick:
                    continue
                elif "swap_ab" in kernel.launch_info["config"]:
                    if kernel.launch_info["tile_m"] < min(m, 128) or m > 256:
                        continue
                elif m <= 16 and kernel.launch_info["tile_m"] > 64:
                    continue
                contenders[short(kernel)] = [kernel.bind(p) for p in problems]
                if kernel.launch_info["config"] == chosen:
                    ours = short(kernel)
            seconds = measure(contenders, repeats, rounds)
            flops = 2.0 * m * n * k
            ranked = sorted(seconds.items(), key=lambda item: item[1])
            rows.append({"shape": label, "m": m, "n": n, "k": k, "kind": kind,
                         "ours": ours,
                         "microseconds": {name: t * 1e6 for name, t in ranked}})
            peer = min((t for name, t in seconds.items() if not name[0].isdigit()),
                       default=None)
            ratio = f"{peer / seconds[ours]:.3f}" if peer and ours in seconds else "-"
            rows[-1]["ratio"] = peer / seconds[ours] if ratio != "-" else None
            print(f"{label:10s} {m:6d} {n:6d} {k:6d} {kind:16s} ours {ours} "
                  f"{flops / seconds[ours] / 1e12 if ours in seconds else 0:.0f} "
                  f"ratio {ratio} | "
                  + "  ".join(f"{name} {flops / t / 1e12:.0f}" for name, t in ranked[:6]),
                  flush=True)
            del problems, contenders
            torch.cuda.empty_cache()
    return rows


def table(record):
    """TFLOP/s of the kernel that the selection chose, of the best in the table
    and of the peers; `ratio` is the best peer's time over ours."""
    lines = [f"{record['gpu']}, torch {record['torch']}, {record['date']}",
             f"$ {record['command']}", "", *record.get("summary", []), ""]
    for row in record["rows"]:
        flops = 2e-6 * row["m"] * row["n"] * row["k"]
        times = row["microseconds"]
        peers_ = "  ".join(f"{name} {flops / t:.0f}" for name, t in times.items()
                           if not name[0].isdigit())
        best = min((name for name in times if name[0].isdigit()), key=times.get)
        ours = row["ours"]
        mine = f"{ours} {flops / times[ours]:.0f}" if ours in times else "-"
        ratio = f"{row['ratio']:.3f}" if row["ratio"] else "-"
        lines.append(f"{row['shape']:11s} {row['m']:6d} {row['n']:6d} {row['k']:6d} "
                     f"{row['kind']:16s} ratio {ratio:6s} ours {mine:18s} "
                     f"best {best} {flops / times[best]:.0f}  {peers_}")
    return "\n".join(lines) + "\n"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--kernels", required=True)
    parser.add_argument("--out", default=".")
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--time", action="store_true")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--kinds", nargs="*", default=[])
    parser.add_argument("--shapes", nargs="*", default=[])
    args = parser.parse_args()
    torch.backends.cuda.matmul.allow_tf32 = False
    torch.zeros(1, device="cuda")
    Kernel.sms = torch.cuda.get_device_properties(0).multi_processor_count
    names = args.kinds or [n for n in KINDS if (Path(args.kernels) / f"{n}.cubin").exists()]
    kernels = load(Path(args.kernels), names)
    gpu = subprocess.run(
        ["nvidia-smi", "--query-gpu=name,driver_version,power.limit,clocks.max.sm",
         "--format=csv,noheader"], capture_output=True, text=True).stdout.strip()
    record = {"command": " ".join(["python3", *sys.argv]), "gpu": gpu,
              "date": datetime.date.today().isoformat(), "torch": torch.__version__}
    print(gpu, flush=True)
    out = Path(args.out)
    if args.check:
        record["checks"] = run_checks(kernels, args.quick)
        (out / "gemm.json").write_text(json.dumps(record, indent=1))
    if args.time:
        shapes = [s for s in SHAPES + DECODE_SHAPES
                  if not args.shapes or s[3] in args.shapes]
        kinds = [name for name in names if name in TIMED]
        selected = json.loads((Path(args.kernels) / "selected.json").read_text())
        record["rows"] = run_times(kernels, shapes, args.rounds, kinds, selected,
                                   args.quick)
        for kind in kinds:
            for group, test in (("M >= 1024", lambda r: r["m"] >= 1024),
                                ("M < 1024", lambda r: r["m"] < 1024)):
                ratios = [r["ratio"] for r in record["rows"]
                          if r["kind"] == kind and r["ratio"] and test(r)]
                if ratios:
                    mean = statistics.geometric_mean(ratios)
                    record.setdefault("summary", []).append(
                        f"{kind:16s} {group:9s}: geometric mean {mean:.3f}, worst "
                        f"{min(ratios):.3f}, {len(ratios)} shapes")
                    print(record["summary"][-1], flush=True)
        (out / "gemm.json").write_text(json.dumps(record, indent=1))
        (out / "gemm.json").write_text(json.dumps(record, indent=1))
        (out / "gemm.txt").write_text(table(record))
    return any(kind["failures"] for kind in record.get("checks", {}).values())


if __name__ == "__main__":
    sys.exit(main())
