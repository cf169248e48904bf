"""Attention beside PyTorch's cuDNN and flash backends, of random batches and positions: errors against
f32, and TFLOP/s, where a causal one counts half. Made for a machine that has a GPU, PyTorch, libfp8rt
and the kernels of attention_kernels.py.

usage: attention.py --kernels DIR [--library FILE] [--seed N] [--count N] [--tokens N] [--only TEXT]
                    [--times X...] --out FILE

`--times` multiplies queries of the standard normal, so that scores are as much larger: by each of these numbers.
"""

import argparse
import ctypes
import itertools
import json
import math
import random
import statistics
from pathlib import Path

import torch
from torch.nn.attention import SDPBackend, sdpa_kernel

from matmul.kernel import abi, describe, open_library
from timing import seconds_of_each

PEERS = {"cudnn": SDPBackend.CUDNN_ATTENTION, "flash": SDPBackend.FLASH_ATTENTION}
SAMPLE_S, ROUNDS = 0.02, 5
# Shares of the result's norm, with a factor for each tensor.
TOLERANCE = {"bf16": 0.01, "f8E4M3FN": 0.08}


class Kernel:
    def __init__(self, library, folder, name, spec):
        self.library, self.name, self.spec = library, name, spec
        code, module = (folder / f"{name}.cubin").read_bytes(), ctypes.c_uint64()
        library.fp8rt_module_load(0, code, len(code), ctypes.byref(module))
        (symbol, info), = json.loads((folder / f"{name}.json").read_text()).items()
        function, self.handle = ctypes.c_uint64(), ctypes.c_void_p()
        library.fp8rt_module_get_function(module, symbol.encode(), ctypes.byref(function))
        text = json.dumps(info["launch"]).encode()
        library.fp8rt_kernel_create(function, text, len(text), ctypes.byref(self.handle))
        self.arguments, self.config = info["launch"]["arguments"], info["config"]
        # Their numbers of bytes are constants, but for gradients.
        self.workspaces = [] if spec.get("gradients") else [
            torch.zeros(int(space["bytes"]), dtype=torch.uint8, device="cuda")
            for space in info["launch"].get("workspaces", [])]

    def quantize(self, tensors):
        """Q, K and V as the kernel takes them, by name."""
        if self.spec["element"] != "bf16":
            for name in "qkv":
                numbers = tensors[name].float()
                scale = (numbers.abs().max() / 448).reshape(1, 1, 1, 1)
                tensors[f"{name}_scale"] = scale
                tensors[name] = (numbers / scale).to(torch.float8_e4m3fn)
        return tensors

    def bind_tensors(self, tensors, workspaces):
        """A function that launches the kernel with tensors by name."""
        described = [describe(tensors[entry["name"]], entry["rank"]) for entry in self.arguments]
        arguments = (abi.structs.fp8rt_kernel_argument * len(described))(*described)
        spaces = (ctypes.c_void_p * max(1, len(workspaces)))(*(space.data_ptr() for space in workspaces))

        def launch():
            self.library.fp8rt_kernel_launch(self.handle, arguments, None, spaces,
                                             torch.cuda.current_stream().cuda_stream)

        launch.keep, launch.spaces = tensors, workspaces
        return launch

    def bind(self, q, k, v, **others):
        """A function that launches the kernel, and its result."""
        tensors = self.quantize({"q": q, "k": k, "v": v, **others})
        tensors["output"] = q.new_full((*q.shape[:3], v.shape[3]), math.nan)
        if self.spec.get("lse"):
            tensors["lse"] = q.new_full((q.shape[0], q.shape[2], q.shape[1]), math.nan, dtype=torch.float32)
        return self.bind_tensors(tensors, self.workspaces), tensors["output"]


def peer(backend, q, k, v, causal):
    q, k, v = (x.transpose(1, 2) for x in (q, k, v))

    def launch():
        with sdpa_kernel(backend):
            return torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=causal, enable_gqa=True)
    return launch


def list_peers(q, k, v, causal):
    """Those that take it, by name."""
    found = {}
    for name, backend in PEERS.items():
        call = peer(backend, q, k, v, causal)
        try:
            call()
        except RuntimeError as error:
            print(f"{name} of {q.shape[-1]} and {v.shape[-1]} columns: {str(error).splitlines()[0]}", flush=True)
        else:
            found[name] = call
    return found


def make(spec, batch, positions):
    columns = spec["dim"], spec["dim"], spec.get("dim_of_v", spec["dim"])
    return tuple(torch.randn(batch, positions, heads, dim, device="cuda", dtype=torch.bfloat16)
                 for heads, dim in zip((spec["heads"], spec["heads_of_k"], spec["heads_of_k"]), columns))


def check(kernel, batch, positions, times=1.0):
    """The error of the result, of its norm, with queries `times` as large."""
    q, k, v = make(kernel.spec, batch, positions)
    q *= times
    launch, output = kernel.bind(q, k, v)
    launch()
    expected = peer(SDPBackend.MATH, q.float(), k.float(), v.float(), kernel.spec["causal"])().transpose(1, 2)
    return ((output.float() - expected).norm() / expected.norm()).item()


def measure(contenders, flops):
    """Median TFLOP/s; rounds of all of them go forwards and backwards in turn."""
    repeats = max(3, int(SAMPLE_S / (flops / 6e14)))
    for work in contenders.values():
        seconds_of_each(work, 3)
    times = {name: [] for name in contenders}
    for round_ in range(ROUNDS):
        for name in list(contenders)[:: 1 if round_ % 2 else -1]:
            times[name].append(seconds_of_each(contenders[name], repeats))
    return {name: round(flops / statistics.median(found) * 1e-12, 1) for name, found in times.items()}


def family(spec):
    return spec["dim"], spec["heads"], spec["heads_of_k"], spec["causal"], spec.get("dim_of_v", spec["dim"])


def make_parser():
    parser = argparse.ArgumentParser()
    parser.add_argument("--kernels", required=True, type=Path)
    parser.add_argument("--library", type=Path)
    parser.add_argument("--out", required=True, type=Path)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=6)
    parser.add_argument("--only", default="")
    return parser


def parse():
    parser = make_parser()
    parser.add_argument("--tokens", type=int, default=32768)
    parser.add_argument("--times", type=float, nargs="+", default=[1.0])
    return parser.parse_args()


def load_kernels(args):
    library = open_library(args.library)
    return [Kernel(library, args.kernels, name, spec)
            for name, spec in json.loads((args.kernels / "kernels.json").read_text()).items() if args.only in name]


def write_record(path, kernels, wrong, rows):
    path.write_text(json.dumps({
        "device": torch.cuda.get_device_name(), "torch": torch.__version__,
        "cudnn": torch.backends.cudnn.version(), "wrong": wrong,
        "configs": {kernel.name: kernel.config for kernel in kernels}, "rows": rows}, indent=1))


def main():
    args = parse()
    torch.manual_seed(args.seed)
    rng = random.Random(args.seed)
    kernels = load_kernels(args)
    wrong = {}
    for kernel in kernels:
        shapes = [(1, 1), (2, 777), (1, rng.randint(1, 1500))]
        for times, (batch, positions) in itertools.product(args.times, shapes):
            error = check(kernel, batch, positions, times)
            if not error <= TOLERANCE[kernel.spec["element"]]:
                wrong[f"{kernel.name} {batch}x{positions} times {times:g}"] = error
    print("wrong:", wrong, flush=True)
    rows = []
    for key in sorted({family(kernel.spec) for kernel in kernels}):
        dim, heads, _, causal, dim_of_v = key
        for _ in range(args.count):
            positions = int(2 ** rng.uniform(9, math.log2(args.tokens)))
            batch = max(1, min(16384, args.tokens) // positions)
            standard, k, v = make(dict(zip(("dim", "heads", "heads_of_k", "causal", "dim_of_v"), key)), batch, positions)
            flops = 2 * batch * heads * positions ** 2 * (dim + dim_of_v) / (2 if causal else 1)
            for times in args.times:
                q = standard * times
                contenders = list_peers(q, k, v, causal)
                contenders |= {kernel.name: kernel.bind(q, k, v)[0] for kernel in kernels if family(kernel.spec) == key}
                rows.append({"dim": dim, "dim_of_v": dim_of_v, "causal": causal, "batch": batch, "positions": positions,
                             "times": times, "tflops": measure(contenders, flops)})
                print(rows[-1], flush=True)
    write_record(args.out, kernels, wrong, rows)


if __name__ == "__main__":
    main()
