"""Our kernels of grouped products on a GPU: checked against f64, and timed beside DeepGEMM's, PyTorch's
(torch._scaled_grouped_mm, torch._grouped_mm) and a product by itself for each group.

Made for a machine that has a GPU and PyTorch and nothing of this project but this folder, the one beside it with the
Python package, lib/libfp8rt.so and the kernels that grouped_kernels.py made. Peers that cannot be imported, or do not take
a shape, are left out. Groups begin anywhere; DeepGEMM has each padded to a multiple of 128 tokens, as it wants them, and is
credited with the tokens alone. With --aligned all have such groups, whose tokens all count. With --masked groups have room
for more tokens than are there, and a count each on the device.

usage: grouped.py --kernels DIR [--out DIR] [--check] [--time] [--aligned] [--every] [--others | --masked]
                  [--kinds KIND...] [--shapes GxMEANxNxK...]
"""

import argparse
import datetime
import json
import statistics
import subprocess
import sys
from pathlib import Path

import torch

from grouped_shapes import ALL_KINDS, CAPACITY, KINDS, MASKED, MASKED_KINDS, OTHERS, ROW128, SHAPES, label
from matmul.kernel import DEVICE, Kernel, open_library
from matmul.timing import measure

DTYPES = {"e4m3": torch.float8_e4m3fn, "e5m2": torch.float8_e5m2, "bf16": torch.bfloat16, "f32": torch.float32}
GUARD = 4096  # Elements on either side of the result that no kernel may touch.
ALIGNMENT = 128
# Tokens of a group in the mean, N and K.
CHECK_SHAPES = [(200, 256, 512), (96, 144, 272), (700, 1024, 1152), (24, 512, 2048)]


class Problem:
    """Operands of groups of random sizes, in the way that kernels take them, and memory for the result."""

    epilogue = None
    scale = 1.0

    def __init__(self, kind, shape, seed, aligned=False, rest=0, empty=False, capacity=CAPACITY):
        groups, mean, self.n, self.k = shape
        spec = self.kind = ALL_KINDS[kind]
        self.masked, self.mean = spec["grouped"] == "masked", mean
        self.spec = {"epilogue": "none",
                     **{name: "1x128" for name in ("scale_a", "scale_b") if spec[name] == ROW128}}
        self.generator = torch.Generator("cuda").manual_seed(seed)
        host = torch.Generator().manual_seed(seed)
        sizes = (mean * (0.7 + 0.6 * torch.rand(groups, generator=host))).long()
        if aligned:
            sizes = (sizes + ALIGNMENT - 1) // ALIGNMENT * ALIGNMENT
        if empty and groups > 1:
            sizes[seed % groups] = 0
        self.sizes = sizes.tolist()
        self.bounds = [0, *torch.cumsum(sizes, 0).tolist()]
        self.offsets = torch.tensor(self.bounds, dtype=torch.int32, device="cuda")
        # Rows of codes are multiples of 16 bytes, also where tokens are innermost.
        self.m = -(-(self.bounds[-1] + rest) // 16) * 16
        self.groups, self.sums = groups, spec["grouped"] == "k"
        extents = (((self.n, self.m), (self.k, self.m), (groups, self.n, self.k)) if self.sums
                   else ((self.m, self.k), (groups, self.n, self.k), (self.m, self.n)))
        if self.masked:
            self.m = capacity
            extents = ((groups, self.m, self.k), (groups, self.n, self.k), (groups, self.m, self.n))
            self.counts = sizes.to(torch.int32).cuda()
        self.a, self.scale_a = self.operand(spec["a"], spec["scale_a"], extents[0])
        self.b, self.scale_b = self.operand(spec["b"], spec["scale_b"], extents[1])
        dtype = DTYPES[spec["result"]]
        size = 1
        for extent in extents[2]:
            size *= extent
        self.storage = torch.full(((size + 2 * GUARD) * dtype.itemsize,), 0xFF, device="cuda", dtype=torch.uint8)
        self.result = self.storage.view(dtype)[GUARD:GUARD + size].view(extents[2])

    def operand(self, element, scale, extents):
        values = torch.randn(*extents, device="cuda", generator=self.generator, dtype=torch.bfloat16)
        values = values.to(DTYPES[element])
        if scale is None:
            return values, None
        block = ["1"] * (len(extents) - len(scale)) + list(scale)
        grid = [1 if b == "*" else -(-n // int(b)) for n, b in zip(extents, block)]
        factors = torch.rand(*grid, device="cuda", generator=self.generator) + 0.5
        if block[-2:] == ["1", "128"]:  # Rows innermost, as programs store them.
            factors = factors.transpose(-2, -1).contiguous().transpose(-2, -1)
        return values, factors

    def spoil(self):
        """What there is no token for becomes NaN, in the codes of A and its factors."""
        for group, count in enumerate(self.sizes):
            self.a[group, count:] = float("nan")
            if self.scale_a is not None and self.scale_a.shape[1] > 1:
                self.scale_a[group, count:] = float("nan")

    def transposed(self, name):
        return False

    def dequantized(self, name, begin, end):
        """Values of that range of groups, or of tokens, in f64."""
        values, factors = getattr(self, name), getattr(self, f"scale_{name}")
        dim = 1 if self.sums else 0
        part = values.narrow(dim, begin, end - begin).double()
        if factors is None:
            return part
        scale, factors = self.kind[f"scale_{name}"], factors.double()
        if scale[-1] == "128":
            factors = factors.repeat_interleave(128, -1)[..., :values.shape[-1]]
        if factors.shape[dim] > 1:
            factors = factors.narrow(dim, begin, end - begin)
        if scale[-2:] == ("128", "128"):
            factors = factors.repeat_interleave(128, -2)[..., :self.n, :]
        return part * factors

    def expected_of_masked(self):
        """What rows that there are no tokens for hold is left to what they hold, unless it must be zeros."""
        result = torch.zeros(self.result.shape, device="cuda", dtype=torch.float64)
        for group, count in enumerate(self.sizes):
            a, b = (tensor[group].double() for tensor in (self.a, self.b))
            for name in ("a", "b") if self.scale_a is not None else ():
                scale, factors = self.kind[f"scale_{name}"], getattr(self, f"scale_{name}").double()
                factors = factors[group if factors.shape[0] > 1 else 0]
                for dim in (0, 1):
                    if scale[dim - 2] == "128":
                        factors = factors.repeat_interleave(128, dim).narrow(dim, 0, (a, b)[name == "b"].shape[dim])
                a, b = (a * factors, b) if name == "a" else (a, b * factors)
            result[group, :count] = a[:count] @ b.t()
            if "cleared" not in self.kind:
                self.result[group, count:] = self.result[group, count:].nan_to_num()
                result[group, count:] = self.result[group, count:].double()
        return result

    def expected(self):
        if self.masked:
            return self.expected_of_masked()
        result = torch.zeros(self.result.shape, device="cuda", dtype=torch.float64)
        for group, (begin, end) in enumerate(zip(self.bounds, self.bounds[1:])):
            if begin == end:
                continue
            a = self.dequantized("a", begin, end)
            if self.sums:
                result[group] = a @ self.dequantized("b", begin, end).t()
            else:
                result[begin:end] = a @ self.dequantized("b", group, group + 1)[0].t()
        return result

    def guards_intact(self):
        edge = GUARD * self.result.element_size()
        return bool((self.storage[:edge] == 0xFF).all() and (self.storage[-edge:] == 0xFF).all())

    def flops(self):
        return 2 * self.bounds[-1] * self.n * self.k


#===--- Kernels -----------------------------------------------------------===#


def load(folder, kind, groups, library):
    import ctypes
    path = folder / f"{kind}_{groups}.cubin"
    if not path.exists():
        return []
    code, module = path.read_bytes(), ctypes.c_uint64()
    library.fp8rt_module_load(DEVICE, code, len(code), ctypes.byref(module))
    infos = json.loads((folder / f"{kind}_{groups}.json").read_text())
    return [Kernel(library, module, name, info) for name, info in infos.items()]


#===--- Peers -------------------------------------------------------------===#


def each_group(problem):
    """A product of PyTorch's for each group: the host knows where groups begin."""
    import torch.nn.functional
    launches = []
    for group, (begin, end) in enumerate(zip(problem.bounds, problem.bounds[1:])):
        if begin == end:
            continue
        a, b, out = problem.a[begin:end], problem.b[group].t(), problem.result[begin:end]
        if problem.scale_a is None:
            launches.append(lambda a=a, b=b, out=out: torch.mm(a, b, out=out))
            continue
        scale_a = problem.scale_a if problem.scale_a.shape[0] == 1 else problem.scale_a[begin:end]
        scale_b = problem.scale_b[group]
        if problem.kind["scale_a"] == ("*", "*"):
            scale_a, scale_b = scale_a.reshape(()), scale_b.reshape(())
        else:
            scale_a, scale_b = scale_a.contiguous(), scale_b.t().contiguous()
        fast = problem.kind["accumulate"] == "fast"
        launches.append(lambda a=a, b=b, out=out, scale_a=scale_a, scale_b=scale_b: torch._scaled_mm(
            a, b, scale_a=scale_a, scale_b=scale_b, out_dtype=torch.bfloat16, use_fast_accum=fast, out=out))

    def launch():
        for one in launches:
            one()

    return launch


def torch_grouped(problem):
    ends = problem.offsets[1:].contiguous()
    if problem.scale_a is None:
        return lambda: torch._grouped_mm(problem.a, problem.b.transpose(-2, -1), offs=ends)
    scale_a, scale_b = problem.scale_a.reshape(-1), problem.scale_b.reshape(problem.groups, -1)
    fast = problem.kind["accumulate"] == "fast"
    return lambda: torch._scaled_grouped_mm(problem.a, problem.b.transpose(-2, -1), scale_a, scale_b, offs=ends,
                                            out_dtype=torch.bfloat16, use_fast_accum=fast)


def deep_gemm(problem):
    import deep_gemm as library
    rows = torch.repeat_interleave(torch.arange(problem.groups, dtype=torch.int32),
                                   torch.tensor(problem.sizes)).cuda()
    tokens = problem.bounds[-1]
    factors_a = library.get_mn_major_tma_aligned_tensor(problem.scale_a[:tokens].contiguous())
    a, b = (problem.a[:tokens], factors_a), (problem.b, problem.scale_b.contiguous())
    return lambda: library.m_grouped_fp8_gemm_nt_contiguous(a, b, problem.result[:tokens], rows,
                                                            disable_ue8m0_cast=True)


def deep_gemm_bf16(problem):
    import deep_gemm as library
    rows = torch.repeat_interleave(torch.arange(problem.groups, dtype=torch.int32),
                                   torch.tensor(problem.sizes)).cuda()
    tokens = problem.bounds[-1]
    return lambda: library.m_grouped_bf16_gemm_nt_contiguous(problem.a[:tokens], problem.b, problem.result[:tokens],
                                                             rows)


def deep_gemm_k(problem):
    """DeepGEMM's gradient of the weights: each group's operands are matrices of their own, one after the other, and it
    adds to a result, here of zeros."""
    import deep_gemm as library
    ranges = [(begin, end) for begin, end in zip(problem.bounds, problem.bounds[1:])]
    a, b = (torch.cat([tensor[:, begin:end].reshape(-1) for begin, end in ranges])
            for tensor in (problem.a, problem.b))
    blocks = problem.bounds[-1] // 128
    factors = [tensor[:, :blocks].t().contiguous() for tensor in (problem.scale_a, problem.scale_b)]
    sizes = torch.tensor(problem.sizes, dtype=torch.int32, device="cuda")
    zeros = torch.zeros_like(problem.result)
    return lambda: library.k_grouped_fp8_gemm_nt_contiguous((a, factors[0]), (b, factors[1]), problem.result,
                                                            problem.sizes, sizes, zeros)


def deep_gemm_masked(problem):
    """As its own tests call it: with 1.2 of the tokens that may be expected."""
    import deep_gemm as library
    expected = int(problem.mean * 1.2)
    if problem.scale_a is None:
        return lambda: library.m_grouped_bf16_gemm_nt_masked(problem.a, problem.b, problem.result, problem.counts,
                                                             expected)
    factors_a = library.get_mn_major_tma_aligned_tensor(problem.scale_a.contiguous())
    a, b = (problem.a, factors_a), (problem.b, problem.scale_b.contiguous())
    return lambda: library.m_grouped_fp8_gemm_nt_masked(a, b, problem.result, problem.counts, expected,
                                                        disable_ue8m0_cast=True)


PEERS = {"tensor_fast": {"torch_each": each_group}, "tensor_promote": {"torch_each": each_group},
         "row_fast": {"torch_each": each_group, "torch_grouped": torch_grouped}, "block": {"deepgemm": deep_gemm},
         "bf16": {"torch_each": each_group, "torch_grouped": torch_grouped, "deepgemm": deep_gemm_bf16},
         "k_tensor": {}, "k_row": {}, "k_block": {"deepgemm": deep_gemm_k},
         "masked_block": {"deepgemm_masked": deep_gemm_masked}, "masked_bf16": {"deepgemm_masked": deep_gemm_masked}}
# These want groups to begin at multiples of ALIGNMENT.
PADDED = {"deepgemm"}
AGREEMENT = 2e-2  # Relative: results of two accumulators.


def offered(contenders, name, make, problems, expected):
    """Adds a peer, unless it does not take the problems, or gives something else than ours."""
    try:
        launches = [make(problem) for problem in problems]
        problems[0].result.zero_()
        result = launches[0]()
        torch.cuda.synchronize()
        actual = problems[0].result if result is None else result
        if problems[0].masked:
            actual, expected = (torch.cat([result[group, :count] for group, count in enumerate(problems[0].sizes)])
                                for result in (actual, expected))
        else:
            tokens = expected.shape[0] if problems[0].sums else problems[0].bounds[-1]
            actual, expected = actual[:tokens], expected[:tokens]
        error = ((actual.double() - expected.double()).norm() / expected.double().norm()).item()
        if error < AGREEMENT:
            contenders[name] = launches
        else:
            print(f"  {name} differs from ours by {error:.1e}: left out", flush=True)
    except Exception as error:  # A peer may not be there, or not take the shape.
        print(f"  {name}: {(str(error).splitlines() or [repr(error)])[0][:120]}", flush=True)


#===--- What is done ------------------------------------------------------===#


def limit(spec, k):
    """Bounds the relative error in the Frobenius norm: rounding and the tensor core's accumulator."""
    error = 2e-3 if spec["result"] == "bf16" else 2e-5
    if spec["scale_a"] is None:
        return error + 1e-5
    return error + 4e-4 + (3e-7 * k + 6e-4 * (k / 1024) ** 0.5 if spec["accumulate"] == "fast" else 0)


def check(args, library, selected):
    """Kernels on small problems; a damaged result must be noticed."""
    failures, runs = [], 0
    for kind in args.kinds:
        for groups in sorted({shape[0] for shape in args.all_shapes}):
            for kernel in load(args.kernels, kind, groups, library):
                if not args.every and kernel.config not in selected[kind].values():
                    continue
                for i, (mean, n, k) in enumerate(CHECK_SHAPES):
                    problem = Problem(kind, (groups, mean, n, k), i, rest=100 * (i % 2), empty=True,
                                      capacity=(mean * 3 // 2 + 15) // 16 * 16)
                    if problem.masked:
                        problem.spoil()
                    launch = kernel.bind(problem)
                    launch()
                    torch.cuda.synchronize()
                    wanted = problem.expected()
                    bound = limit(ALL_KINDS[kind], max(problem.sizes) if problem.sums else k)

                    def error():
                        return ((problem.result.double() - wanted).norm() / wanted.norm()).item()

                    first, found = problem.result.clone(), error()
                    launch()
                    torch.cuda.synchronize()
                    same = torch.equal(first.view(torch.uint8), problem.result.view(torch.uint8))
                    runs += 1
                    if not (found < bound and problem.guards_intact() and same):
                        failures.append(f"{kind} {groups}x{mean}x{n}x{k} {kernel.config}: error {found:.2e} of {bound:.2e}, "
                                        f"guards {problem.guards_intact()}, repeated {same}")
                        print(failures[-1], flush=True)
                    problem.result[(0 if 0 < problem.sizes[0] else 1) if problem.masked else ...].view(-1)[7] += 1e6
                    if error() < bound:
                        failures.append(f"{kind}: a damaged result was not noticed")
            print(f"checked {kind}, {groups} groups", flush=True)
    return {"runs": runs, "failures": failures}


def time_shape(args, kind, shape, kernels, chosen):
    moved = shape[0] * shape[1] * (shape[2] * (4 if ALL_KINDS[kind]["grouped"] == "k" else 2) + shape[3])
    moved += shape[0] * shape[2] * shape[3]
    sets = max(2, min(8, (120 << 20) // moved + 1))
    problems = [Problem(kind, shape, seed, args.aligned) for seed in range(sets)]
    contenders, ours = {}, None
    for kernel in kernels:
        if kernel.config != chosen and not args.every:
            continue
        name = f"ours/{kernel.label()}" + ("/" + str(len(contenders)) if args.every else "")
        contenders[name] = [kernel.bind(problem) for problem in problems]
        ours = name if kernel.config == chosen else ours
    chosen_kernel = next(kernel for kernel in kernels if kernel.config == chosen)

    def compute(problem):
        chosen_kernel.bind(problem)()
        torch.cuda.synchronize()
        return problem.result.clone()

    expected = compute(problems[0])
    for name, make in PEERS.get(kind, {}).items():
        if name not in PADDED:
            offered(contenders, name, make, problems, expected)
            continue
        padded = [Problem(kind, shape, seed, aligned=True) for seed in range(sets)]
        offered(contenders, name, make, padded, compute(padded[0]))
    flops = statistics.mean(problem.flops() for problem in problems)
    repeats = max(sets, min(200, int(3e-3 / max(flops / 1.4e15, moved / 4e12, 5e-6))))
    times = measure(contenders, repeats, args.rounds)
    return {"kind": kind, "shape": label(shape), "ours": ours, "flops": flops,
            "microseconds": {name: seconds * 1e6 for name, seconds in times.items()}}


def report(rows):
    lines = [f"{'kind':<15} {'shape':<18} {'ours':<26} {'us':>8} {'TFLOP/s':>8}  ours beside each peer"]
    ratios = {}
    for row in rows:
        times, ours = row["microseconds"], row["ours"]
        if ours not in times:
            continue
        others = {name: time / times[ours] for name, time in times.items() if not name.startswith("ours")}
        for name, value in others.items():
            ratios.setdefault((row["kind"], name), []).append(value)
        best = min(time for name, time in times.items() if name.startswith("ours"))
        text = ", ".join(f"{name} {value:.3f}" for name, value in others.items())
        if best < times[ours]:
            text += f", best of ours {times[ours] / best:.3f} faster"
        lines.append(f"{row['kind']:<15} {row['shape']:<18} {ours[5:]:<26} {times[ours]:8.1f} "
                     f"{row['flops'] / times[ours] / 1e6:8.0f}  {text}")
    lines.append("")
    for (kind, name), values in ratios.items():
        mean = statistics.geometric_mean(values)
        lines.append(f"{kind} / {name}: geometric mean {mean:.3f}, worst {min(values):.3f}, of {len(values)} shapes")
    return "\n".join(lines)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--kernels", required=True, type=Path)
    parser.add_argument("--out", default=".", type=Path)
    parser.add_argument("--library", type=Path, help="libfp8rt.so")
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--time", action="store_true")
    parser.add_argument("--aligned", action="store_true", help="groups of multiples of 128 tokens for all")
    parser.add_argument("--every", action="store_true", help="all kernels that were made, not the selected ones alone")
    parser.add_argument("--others", action="store_true", help="shapes that nothing was chosen by")
    parser.add_argument("--masked", action="store_true", help="groups that have room for more rows than are there")
    parser.add_argument("--rounds", type=int, default=11)
    parser.add_argument("--kinds", nargs="*")
    parser.add_argument("--shapes", nargs="*")
    args = parser.parse_args()
    args.kinds = args.kinds or list(MASKED_KINDS if args.masked else KINDS)
    args.all_shapes = MASKED if args.masked else OTHERS if args.others else SHAPES
    library = open_library(args.library)
    gpu = subprocess.run(["nvidia-smi", "--query-gpu=name,driver_version,power.limit", "--format=csv,noheader"],
                         capture_output=True, text=True).stdout.strip()
    record = {"command": " ".join(["python3", *sys.argv]), "gpu": gpu, "date": datetime.date.today().isoformat(),
              "torch": torch.__version__}
    selected = json.loads((args.kernels / "selected.json").read_text())
    if args.check:
        record["check"] = check(args, library, selected)
        print(f"{record['check']['runs']} runs, {len(record['check']['failures'])} failures", flush=True)
    if args.time:
        rows = []
        for kind in args.kinds:
            for shape in args.all_shapes:
                if args.shapes and label(shape) not in args.shapes:
                    continue
                kernels = load(args.kernels, kind, shape[0], library)
                rows.append(time_shape(args, kind, shape, kernels, selected[kind][label(shape)]))
                torch.cuda.empty_cache()
                print(kind, label(shape), flush=True)
                # What has been measured is kept if there is no time for the rest.
                text = report(rows)
                (args.out / "grouped.txt").write_text(f"{gpu}, PyTorch {torch.__version__}\n{text}\n")
                (args.out / "grouped.json").write_text(json.dumps({**record, "times": rows}, indent=1))
        record["times"] = rows
        print(report(rows))
    (args.out / "grouped.json").write_text(json.dumps(record, indent=1))
    return int(bool(record.get("check", {}).get("failures")))


if __name__ == "__main__":
    sys.exit(main())
