"""Layers with quantized weights beside activations in bf16 or f16 on a GPU: each granularity, plain and arranged, beside
PyTorch's in the same type and vLLM's two families of kernels for such weights, each where it is there: Humming, a wheel
(https://github.com/vllm-project/humming), and Marlin.

Marlin comes in a module `marlin_peer` on the path, which is not here: vLLM's csrc/quantization/marlin compiled as an
extension of PyTorch, and its function `make(weight, kind, dtype)`. That quantizes a weight of NxK as one of KINDS, orders
codes and scales as vLLM does when it has loaded a layer, and returns a module whose parameters are those.

A layer has as many copies as keep its weights out of the cache, and a time is that of a CUDA graph of all, over how many
there are, in rounds that alternate. Results are compared, in the norm, with PyTorch's for the weights that codes and scales
are. `w4a8` has MXFP4 with activations in E4M3 for each token. A row has PyTorch's time over each of the others, and the share
of a copy's speed that the bytes of a weight have. Needs a GPU; with `--device cpu` results are compared and nothing is timed.

usage: weight_only.py [--shapes MxNxK,...] [--kinds NAME...] [--types bf16 f16] [--rounds 5] [--device cuda] [--out FILE]
"""

import argparse
import copy
import math
import statistics
import sys
import warnings
from pathlib import Path

import torch
from torch import nn
from torch.nn import functional

import fp8.torch
from timing import capture, describe, seconds, show_machine, write_record

SHAPES = "1x4096x7168,16x4096x7168,64x8192x4096,13x8960x5376,1x5184x10880,256x7168x2048,2048x5760x2880,4096x7168x2048"
# By name: recipe, weights, activations, what Humming calls them, its type of activations where that is another, and the types
# of activations in which Marlin has them on Hopper.
KINDS = {"rowwise": ("rowwise", None, "bf16", {"dtype": "float8e4m3"}, None, ("bf16", "f16")),
         "block": ("block", None, "bf16", {"dtype": "float8e4m3", "group_size": 128, "group_size_n": 128}, None,
                   ("bf16", "f16")),
         "mxfp8": ("mxfp8", None, "bf16", {"dtype": "float8e4m3", "group_size": 32, "scale_dtype": "float8e8m0"}, None,
                   ("bf16",)),
         "mxfp4": ("rowwise", "mxfp4", "bf16", {"dtype": "float4e2m1", "group_size": 32, "scale_dtype": "float8e8m0"}, None,
                   ("bf16",)),
         "nvfp4": ("nvfp4", None, "bf16", {"dtype": "float4e2m1", "group_size": 16, "scale_dtype": "float8e4m3",
                                           "scale_2_type": "tensor"}, None, ("bf16", "f16")),
         "w4a8": ("rowwise", "mxfp4", None, {"dtype": "float4e2m1", "group_size": 32, "scale_dtype": "float8e8m0"},
                  "float8e4m3", ())}
TYPES = {"bf16": torch.bfloat16, "f16": torch.float16}
CACHE = 192 << 20  # Bytes of weights that no cache holds.
MAX_ERRORS = {"w4a8": 0.06}
MAX_ERROR = 6e-3  # A result is rounded, in f16 less than in bf16.


def find_humming():
    """What makes a layer of a weight, a kind and a type, or None where it has none of them."""
    from humming.layer import HummingLayer

    def make(weight, kind, dtype):
        n, k = weight.shape
        _, _, _, config, input_dtype, _ = KINDS[kind]
        options = {"input_config": {"dtype": input_dtype}} if input_dtype else {}
        layer = HummingLayer(shape_n=n, shape_k=k, weight_config=dict(config), torch_dtype=dtype, **options).to(weight.device)
        layer.load_from_unquantized(weight)
        layer.transform()
        return layer
    return make


def find_marlin():
    import marlin_peer

    def make(weight, kind, dtype):
        types = [TYPES[name] for name in KINDS[kind][-1]]
        return marlin_peer.make(weight, kind, dtype) if dtype in types else None
    return make


PEERS = {"humming": find_humming, "marlin": find_marlin}


def find_peers():
    found = {}
    for name, find in PEERS.items():
        try:
            found[name] = find()
        except (ImportError, OSError) as error:  # The latter of an extension that does not load.
            print(f"no {name}: {describe(error)}", file=sys.stderr)
    return found


def get_bytes(module):
    return sum(value.nbytes for value in module.parameters())


def make_layers(args, kind, weight, dtype, peers):
    """Layers by name, and the matrix that ours are, in f32."""
    recipe, weights, activations, *_ = KINDS[kind]
    base = nn.Linear(weight.shape[1], weight.shape[0], bias=False, device=weight.device, dtype=dtype)
    base.weight.data.copy_(weight)
    plain = fp8.torch.quantize_for_inference(copy.deepcopy(base), recipe, weights=weights, activations=activations)
    found = {kind: plain}
    ordered = copy.deepcopy(plain)
    if args.device == "cuda" and "arranged" in fp8.torch.arrange(nn.ModuleList([ordered])).values():
        found[f"{kind} arranged"] = ordered
    for name, make in peers.items():
        try:
            layer = make(base.weight.detach(), kind, dtype)
        except Exception as error:  # One that cannot be made is a gap in the table.
            print(f"{kind} {name}: {describe(error)}", file=sys.stderr)
            continue
        if layer is not None:
            found[f"{kind} {name}"] = layer
    return found, plain.dequantize().float()


def check(name, kind, y, expected):
    error = ((y.float() - expected).norm() / expected.norm()).item()
    # Peers round weights, and choose scales, their own way.
    limit = 0.2 if name.split()[-1] in PEERS else MAX_ERRORS.get(kind, MAX_ERROR)
    if not error <= limit:
        print(f"{name}: an error of {error:.4f}, above {limit}")
    return error <= limit


def time_calls(layers, x, rounds):
    """Microseconds of a call of each layer, by name."""
    graphs, times = {}, {name: [] for name in layers}
    for name, layer in layers.items():
        count = max(2, math.ceil(CACHE / max(get_bytes(layer), 1)))
        copies = [layer, *(copy.deepcopy(layer) for _ in range(count - 1))]

        def run(copies=copies):
            for one in copies:
                one(x)
        run()
        graphs[name] = capture(run, 1), copies
    for _ in range(rounds + 1):
        for name, (graph, copies) in graphs.items():
            graph.replay()
            times[name].append(1e6 * seconds(graph.replay) / len(copies))
    return {name: statistics.median(own[1:]) for name, own in times.items()}


def run_shape(args, shape, dtype, peers):
    m, n, k = shape
    generator = torch.Generator(args.device).manual_seed(m + n)
    weight = torch.randn(n, k, device=args.device, generator=generator) * 0.05
    x = torch.randn(m, k, device=args.device, generator=generator).to(dtype)
    base = nn.Linear(k, n, bias=False, device=args.device, dtype=dtype)
    base.weight.data.copy_(weight)
    row, failures = {}, 0
    with torch.inference_mode():
        for kind in args.kinds:
            layers, values = make_layers(args, kind, weight, dtype, peers)
            expected = functional.linear(x.float(), values)
            failures += sum(not check(name, kind, layer(x), expected) for name, layer in layers.items())
            if args.device == "cuda":
                timed = {"torch": base, **layers}
                for name, us in time_calls(timed, x, args.rounds).items():
                    row.setdefault(name, (us, get_bytes(timed[name])))
    return row, failures


def measure_copy():
    """Bytes a microsecond, read and written."""
    source = torch.empty(1 << 30, dtype=torch.uint8, device="cuda")
    target = torch.empty_like(source)
    graph = capture(lambda: target.copy_(source), 1)
    graph.replay()
    return 2 * source.nbytes / (1e6 * min(seconds(graph.replay) for _ in range(5)))


def show(row, rate):
    us, _ = row["torch"]
    return "  ".join([f"torch {us:.1f} us", *(f"{name} {us / own:.2f} ({size / own / rate:.2f})"
                                              for name, (own, size) in row.items() if name != "torch")])


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--shapes", default=SHAPES)
    parser.add_argument("--kinds", nargs="*", default=list(KINDS), choices=list(KINDS))
    parser.add_argument("--types", nargs="*", default=["bf16"], choices=list(TYPES))
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--device", default="cuda", choices=["cuda", "cpu"])
    parser.add_argument("--out", type=Path)
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    record, failures, rate = [], 0, 1
    peers = find_peers() if args.device == "cuda" else {}
    if args.device == "cuda":
        show_machine()
        rate = measure_copy()
        print(f"a copy moves {rate / 1e6:.2f} TB/s; shares of it are those of bytes of weights")
    for shape in (tuple(map(int, text.split("x"))) for text in args.shapes.split(",")):
        for type_ in args.types:
            row, wrong = run_shape(args, shape, TYPES[type_], peers)
            failures += wrong
            label = f"{'x'.join(map(str, shape)):>16} {type_}"
            print(f"{label}  {show(row, rate) if row else 'compared'}", flush=True)
            record.append({"shape": shape, "type": type_, "us": {name: us for name, (us, _) in row.items()}})
    write_record(args.out, rows=record, copy_bytes_per_us=rate)
    print("all results are right" if not failures else f"{failures} results are wrong")
    return int(failures > 0)


if __name__ == "__main__":
    sys.exit(main())
