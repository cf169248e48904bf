"""Attention by mma.sync on a GPU whose driver assembles sm_89's PTX, forward and gradient, beside PyTorch's FlashAttention,
whose kernels for that GPU are the same instruction's: errors against f32, and TFLOP/s, where a causal one counts half. The gradient
takes the sums of dy times y, which torch.compile makes here, and its time has that.

usage: mma_attention.py make DIR
       mma_attention.py run DIR --out FILE [--seed N] [--count N] [--tokens N]

`make` takes `fp8`, `run` takes `fp8` without its compiler, and PyTorch.
"""

import argparse
import json
import math
import os
import random
import statistics
from pathlib import Path

import fp8
from attention_kernels import program, program_gradients
from timing import seconds_of_each

SAMPLE_S, ROUNDS = 0.02, 5
SPECS = {f"{element}_d{dim}_{'causal' if causal else 'full'}": {
    "element": element, "dim": dim, "heads": heads, "heads_of_k": heads_of_k, "causal": causal, "lse": True,
    "sums": None if element == "bf16" else "fast", "order": "deterministic"}
    for dim, heads, heads_of_k in ((64, 16, 16), (128, 32, 8)) for causal in (True, False)
    for element in ("bf16", "f8E4M3FN")}
# Shares of the norm.
TOLERANCE = {"bf16": (0.01, 0.015), "f8E4M3FN": (0.08, 0.12)}


def make(args):
    args.folder.mkdir(parents=True, exist_ok=True)
    for name, spec in SPECS.items():
        for what, text in (("forward", program(spec)), ("gradient", program_gradients(spec))):
            made = fp8.compile(text, target="portable", cache=False, cpu="x86-64-v3")
            assert not any("no kernel" in str(remark) for remark in made.remarks), made.remarks
            made.save(os.fspath(args.folder / f"{name}_{what}.so"))


def quantize(x, torch):
    """Codes and their factor."""
    scale = (x.float().abs().amax() / 448).reshape(1, 1, 1, 1)
    return (x.float() / scale).to(torch.float8_e4m3fn), scale


def bind(name, folder, torch, tensors, sum_products):
    """Functions of our forward, of its gradient, and of both."""
    forward, gradient = (fp8.load(os.fspath(folder / f"{name}_{what}.so")) for what in ("forward", "gradient"))
    q, k, v, dy = tensors
    given = [q, k, v] if SPECS[name]["element"] == "bf16" else [part for x in (q, k, v) for part in quantize(x, torch)]
    y, lse = forward(*given)

    def differentiate(y=y, lse=lse):
        return gradient(dy, *given, lse, sum_products(dy, y))
    return {"forward": lambda: forward(*given), "gradient": differentiate,
            "both": lambda: differentiate(*forward(*given))}


def bind_flash(torch, tensors, causal):
    q, k, v, dy = tensors
    scale, positions, aten = q.shape[-1] ** -0.5, q.shape[1], torch.ops.aten

    def forward():
        return aten._flash_attention_forward(
            q, k, v, None, None, positions, positions, 0.0, causal, False, scale=scale)
    y, lse, state, unused, _ = forward()

    def differentiate(y=y, lse=lse, state=state, unused=unused):
        return aten._flash_attention_backward(
            dy, q, k, v, y, lse, None, None, positions, positions, 0.0, causal, state, unused, scale=scale)
    return {"forward": forward, "gradient": differentiate, "both": lambda: differentiate(*forward()[:4])}


def check(name, ours, torch, tensors):
    """Errors of the result and of the worst gradient, and of FlashAttention's."""
    spec = SPECS[name]
    q, k, v, dy = (x.float().transpose(1, 2) for x in tensors)
    q, k, v = (x.detach().requires_grad_() for x in (q, k, v))
    with torch.nn.attention.sdpa_kernel(torch.nn.attention.SDPBackend.MATH):
        y = torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=spec["causal"], enable_gqa=True)
    wanted = [x.transpose(1, 2) for x in torch.autograd.grad(y, (q, k, v), dy)]

    def get_error(one, other):
        error = ((one.float() - other).norm() / other.norm()).item()
        return math.inf if math.isnan(error) else error
    return (get_error(ours["forward"]()[0], y.transpose(1, 2)),
            max(get_error(*pair) for pair in zip(ours["gradient"](), wanted)))


def measure(contenders):
    """Median seconds; rounds of all of them go forwards and backwards in turn."""
    repeats = {name: max(2, math.ceil(SAMPLE_S / max(seconds_of_each(work, 3), 1e-5))) for name, work in contenders.items()}
    times = {name: [] for name in contenders}
    for round_ in range(ROUNDS):
        for name in list(contenders)[:: 1 if round_ % 2 else -1]:
            times[name].append(seconds_of_each(contenders[name], repeats[name]))
    return {name: statistics.median(found) for name, found in times.items()}


def run(args):
    import torch

    torch.manual_seed(args.seed)
    rng = random.Random(args.seed)
    sum_products = torch.compile(lambda dy, y: (dy.float() * y.float()).sum(-1).transpose(1, 2).contiguous(), dynamic=True)

    def draw(spec, batch, positions):
        return [torch.randn(batch, positions, heads, spec["dim"], device="cuda", dtype=torch.bfloat16)
                for heads in (spec["heads"], spec["heads_of_k"], spec["heads_of_k"], spec["heads"])]
    record = {"device": torch.cuda.get_device_name(), "torch": torch.__version__, "errors": {}, "rows": []}
    for name, spec in SPECS.items():
        for batch, positions in ((1, 64), (2, 777), (1, rng.randint(2, 1500))):
            tensors = draw(spec, batch, positions)
            found = check(name, bind(name, args.folder, torch, tensors, sum_products), torch, tensors)
            record["errors"][f"{name} {batch}x{positions}"] = found
            if not all(error <= most for error, most in zip(found, TOLERANCE[spec["element"]])):
                print("wrong:", name, batch, positions, found, flush=True)
    print("largest errors:", *(f"{element} {max(error for name, error in some)}" for element in TOLERANCE for some in [
        [(name, max(found)) for name, found in record["errors"].items() if name.startswith(element)]]), flush=True)
    families = [name for name in SPECS if name.startswith("bf16")]
    for name in families:
        for _ in range(args.count):
            spec = SPECS[name]
            positions = int(2 ** rng.uniform(9, math.log2(args.tokens)))
            batch = max(1, min(16384, args.tokens) // positions)
            tensors = draw(spec, batch, positions)
            contenders = {f"flash {what}": work for what, work in bind_flash(torch, tensors, spec["causal"]).items()}
            for element in TOLERANCE:
                found = bind(name.replace("bf16", element), args.folder, torch, tensors, sum_products)
                contenders |= {f"{element} {what}": work for what, work in found.items()}
            flops = 2 * batch * spec["heads"] * positions ** 2 * spec["dim"] / (2 if spec["causal"] else 1)
            products = {"forward": 2, "gradient": 5, "both": 7}
            row = {"name": name[5:], "batch": batch, "positions": positions, "tflops": {
                key: round(flops * products[key.split()[1]] / time * 1e-12, 1)
                for key, time in measure(contenders).items()}}
            record["rows"].append(row)
            print(row["name"], f"{batch}x{positions}", row["tflops"], flush=True)
            args.out.write_text(json.dumps(record, indent=1))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(required=True)
    for function in (make, run):
        command = commands.add_parser(function.__name__)
        command.set_defaults(function=function)
        command.add_argument("folder", type=Path)
        if function is run:
            command.add_argument("--out", type=Path, required=True)
            command.add_argument("--seed", type=int, default=1)
            command.add_argument("--count", type=int, default=3)
            command.add_argument("--tokens", type=int, default=16384)
    args = parser.parse_args()
    args.function(args)


if __name__ == "__main__":
    main()
