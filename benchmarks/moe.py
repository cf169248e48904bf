"""A mixture of experts on a GPU: the router and the experts of gpt-oss, and of a DeepSeek-like model, with weights in MXFP4,
in NVFP4 beside activations in bf16, both also with arranged codes, and in FP8, beside transformers' experts in bf16 by PyTorch's grouped product.

Checks each result against f32 with the weights that codes and scales are, in the norm. Times are those of CUDA graphs of a
block, in rounds that alternate, after other memory was written, so that no weight is in the cache. Memory is that of the
experts' parameters. Programs are compiled first, several at a time. Needs a GPU and transformers.

usage: moe.py [--models NAME...] [--tokens N...] [--rounds 15] [--variants NAME...] [--compiled] [--processes 12] [--out FILE]
"""

import argparse
import concurrent.futures
import copy
import gc
import multiprocessing
import statistics
import sys
import warnings
from pathlib import Path

import torch
from torch import nn

import fp8
import fp8.torch
from fp8.torch import expert_programs, experts, packed, stored
from timing import capture, describe, seconds, show_machine, write_record

TOKENS = 1, 8, 64, 4096
# Hidden size, that of an expert, how many experts there are, and of a token.
MODELS = {"gpt-oss": (2880, 2880, 32, 4), "deepseek": (7168, 2048, 64, 8)}
# Recipe, weights, activations, and whether codes are arranged.
OURS = {"mxfp4": ("rowwise", "mxfp4", None, False), "fp8 rowwise": ("rowwise", None, None, False),
        "fp8 block": ("block", None, None, False), "nvfp4": ("nvfp4", None, "bf16", False),
        "mxfp4 arranged": ("rowwise", "mxfp4", None, True), "nvfp4 arranged": ("nvfp4", None, "bf16", True),
        "mxfp4 beside bf16": ("rowwise", "mxfp4", "bf16", False), "mxfp4 arranged beside bf16": ("rowwise", "mxfp4", "bf16", True)}
FLUSH = 256 << 20
DEVICE = "cuda"


class Block(nn.Module):
    """A router and experts."""

    def __init__(self, hidden, each, of):
        super().__init__()
        self.router, self.experts, self.each = nn.Linear(hidden, of.num_experts), of, each

    def forward(self, x):
        scores, chosen = torch.topk(self.router(x), self.each, -1)
        return self.experts(x, chosen, torch.softmax(scores, -1))


def make_block(name):
    hidden, inner, count, each = MODELS[name]
    if name == "gpt-oss":
        from transformers.models.gpt_oss.configuration_gpt_oss import GptOssConfig as Config
        from transformers.models.gpt_oss.modeling_gpt_oss import GptOssExperts as Experts
        config = Config(hidden_size=hidden, intermediate_size=inner, num_local_experts=count)
    else:
        from transformers.models.mixtral.configuration_mixtral import MixtralConfig as Config
        from transformers.models.mixtral.modeling_mixtral import MixtralExperts as Experts
        config = Config(hidden_size=hidden, intermediate_size=inner, num_local_experts=count)
    config._experts_implementation = "grouped_mm"
    with torch.device(DEVICE):
        block = Block(hidden, each, Experts(config).to(torch.bfloat16)).to(torch.bfloat16)
    torch.manual_seed(0)
    with torch.no_grad():
        for value in block.experts.parameters():
            value.normal_(0, 0.02)
    return block.eval()


def quantize(block, variant):
    recipe, weights, activations, arranged = OURS[variant]
    holder = nn.ModuleDict({"experts": copy.deepcopy(block.experts)})
    fp8.torch.quantize_for_inference(holder, recipe, weights=weights, activations=activations, filter="experts")
    if arranged:
        fp8.torch.arrange(holder)
    made = Block.__new__(Block)
    nn.Module.__init__(made)
    made.router, made.experts, made.each = block.router, holder["experts"], block.each
    return made


def get_values(projection, expert):
    """The matrix of an expert in f32, in the order of a checkpoint."""
    own = stored.get_stored(projection, expert)
    if projection.scheme.is_mxfp4:
        return packed.unlift(packed.lift(own["weight_packed"], own["weight_scale"]))
    scales, (rows, columns) = own["weight_scale"].float(), projection.scheme.weight_block
    if projection.scheme.scale == "e4m3":
        values = packed.unlift(packed.Lifted(own["weight_packed"], torch.full(
            (-(-projection.in_features // packed.WORD), projection.out_features), 0x08080808, dtype=torch.int32,
            device=scales.device), 1.0, None))  # Exponents of 0.
        whole = own["weight_global_scale"]
        return values * scales.repeat_interleave(columns, 1) / whole.repeat_interleave(len(values) // len(whole))[:, None]
    codes = own["weight"].float()
    scales = scales.repeat_interleave(rows, 0) if rows > 1 else scales
    scales = scales.repeat_interleave(columns, 1) if columns else scales
    return codes * scales[:codes.shape[0], :codes.shape[1] if columns else 1]


def compute(block, x):
    """The result of a quantized block in f32, with the experts' own weights."""
    layer = block.experts
    scores, chosen = torch.topk(block.router(x), block.each, -1)
    share, x, y = torch.softmax(scores, -1).float(), x.float(), torch.zeros_like(x, dtype=torch.float32)
    biases = [None if p.bias is None else stored.restore(
        p, stored.Record("", "F32", tuple(p.bias.shape), "bias", None, 0, 1)) for p in (layer.first, layer.second)]
    for i in chosen.unique().tolist():
        row, place = torch.where(chosen == i)
        z = x[row] @ get_values(layer.first, i).T + (0 if biases[0] is None else biases[0][i])
        z = layer.gate.compute(z) @ get_values(layer.second, i).T + (0 if biases[1] is None else biases[1][i])
        y.index_add_(0, row, z * share[row, place, None])
    return y


def list_programs(block, tokens):
    """The arguments of expert_programs.compile that blocks need."""
    layer = block.experts
    shapes = layer.first.get_shape(), layer.second.get_shape()
    rows = {expert_programs.count_rows(count * block.each, True) for count in tokens}
    return [(tuple(map(tuple, shapes)), tuple(layer.gate), "bf16", count, "auto") for count in rows]


def compile_one(arguments):
    shapes, gate, *others = arguments
    expert_programs.compile(tuple(expert_programs.Shape(*shape) for shape in shapes), expert_programs.Gate(*gate), *others)


def count_bytes(block):
    return sum(value.nbytes for name, value in block.experts.named_parameters() if "bias" not in name)


def measure(blocks, x, rounds):
    """Medians of times in us, of each block's graph."""
    room = torch.empty(FLUSH, dtype=torch.uint8, device="cuda")
    graphs = {}
    for name, block in blocks.items():
        try:
            for _ in range(3):
                block(x)
            torch.cuda.synchronize()
            graphs[name] = capture(lambda block=block: block(x), 1)
        except Exception as error:  # A peer that does not run on this machine is left out.
            print(f"  {name}: {describe(error)}", file=sys.stderr)
    times = {name: [] for name in graphs}
    for _ in range(rounds):
        for name, graph in graphs.items():
            room.fill_(1)
            graph.replay()
            room.fill_(2)
            times[name].append(1e6 * seconds(graph.replay))
    return {name: statistics.median(values) for name, values in times.items()}


def get_error(value, expected):
    return ((value.float() - expected.float()).norm() / expected.float().norm()).item()


def run_model(name, args):
    block = make_block(name)
    blocks = {"bf16": block}
    for variant in args.variants:
        try:
            blocks[variant] = quantize(block, variant)
        except fp8.Error as error:
            print(f"  {variant}: {describe(error)}", file=sys.stderr)
    jobs = [job for variant in blocks.keys() & OURS.keys() for job in list_programs(blocks[variant], args.tokens)]
    with concurrent.futures.ProcessPoolExecutor(args.processes, multiprocessing.get_context("spawn")) as pool:
        list(pool.map(compile_one, jobs))
    if args.compiled:
        for variant in [variant for variant in ("bf16", "mxfp4") if variant in blocks]:
            blocks[f"{variant} compiled"] = torch.compile(blocks[variant])
    base = count_bytes(block)
    memory = {variant: count_bytes(blocks[variant]) for variant in blocks if "compiled" not in variant}
    print(f"{name}: " + ", ".join(f"{variant} {size / 1e6:.0f} MB ({size / base:.4f})" for variant, size in memory.items()))
    record = {"model": name, "sizes": MODELS[name], "bytes": memory, "errors": {}, "us": {}}
    for tokens in args.tokens:
        x = torch.randn(tokens, MODELS[name][0], device="cuda", dtype=torch.bfloat16)
        with torch.inference_mode():
            times = measure(blocks, x, args.rounds)
            errors = {variant: get_error(blocks[variant](x), compute(blocks[variant], x))
                      for variant in times if variant in OURS}
        record["us"][tokens], record["errors"][tokens] = times, errors
        print(f"  {tokens:5} tokens: " + ", ".join(
            f"{variant} {time:.1f} us" + (
                f" ({times['bf16'] / time:.2f} of bf16)" if "bf16" in times and variant != "bf16" else "")
            for variant, time in times.items()))
        print("      errors: " + ", ".join(f"{variant} {error:.4f}" for variant, error in errors.items()))
    del blocks, block
    gc.collect()
    torch.cuda.empty_cache()
    return record


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--models", nargs="+", choices=MODELS, default=list(MODELS))
    parser.add_argument("--tokens", nargs="+", type=int, default=TOKENS)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--variants", nargs="+", choices=OURS, default=list(OURS))
    parser.add_argument("--compiled", action="store_true")
    parser.add_argument("--processes", type=int, default=12)
    parser.add_argument("--out", type=Path)
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    show_machine()
    records = [run_model(name, args) for name in args.models]
    write_record(args.out, models=records)
    wrong = [(record["model"], tokens, variant, error) for record in records for tokens, errors in record["errors"].items()
             for variant, error in errors.items() if not error < 0.08]
    print(f"{len(wrong)} wrong" + "".join(f"\n{entry}" for entry in wrong))
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main())
