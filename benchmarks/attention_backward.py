"""Attention forward and backward beside PyTorch's by cuDNN, of random batches and positions: our forward, then the
backward that fp8.torch.scaled_dot_product_attention takes for it. Errors of gradients against f32, and TFLOP/s, where a
causal one counts half. Operands in 8 bits are quantized before; the backward takes their codes, which it turns into bf16 by
PyTorch's operations, where the function has one kernel of ours (attention_ops.py) that this does not time. Made for a machine that
has a GPU, PyTorch, libfp8rt and the kernels of attention_kernels.py --lse.

usage: attention_backward.py --kernels DIR [--library FILE] [--seed N] [--count N] [--tokens N] [--only TEXT] --out FILE
"""

import importlib.util
import json
import math
import random
from pathlib import Path

import torch
from torch.nn.attention import SDPBackend

import attention

# By its place: the package's own modules take its extension.
_place = Path(__file__).resolve().parents[1] / "python/fp8/torch/attention_backward.py"
_spec = importlib.util.spec_from_file_location("fp8_attention_backward", _place)
backward = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(backward)

# Shares of a gradient's norm, of bf16 and of operands in 8 bits.
TOLERANCE = {"bf16": 0.015, "f8E4M3FN": 0.12}


def train(kernel, q, k, v, grad):
    """A function of our forward and its backward, which returns the three gradients, and the backward's kernel."""
    launch, output = kernel.bind(q, k, v)
    tensors, spec = launch.keep, kernel.spec
    rule = backward.Rule(spec["dim"] ** -0.5, None, 0 if spec["causal"] else None)
    operands = [tensors[name].transpose(1, 2) for name in "qkv"]
    factors = [] if spec["element"] == "bf16" else [tensors[f"{name}_scale"] for name in "qkv"]
    dy, y = grad.transpose(1, 2), output.transpose(1, 2)

    def work():
        launch()
        return backward.run(dy, *operands, factors, y, tensors["lse"], None, None, rule)
    return work, backward.choose(*(x.to(torch.bfloat16) for x in operands), None, rule)


def train_peer(backend, q, k, v, grad, causal):
    q, k, v = (x.detach().requires_grad_() for x in (q, k, v))
    forward, dy = attention.peer(backend, q, k, v, causal), grad.transpose(1, 2)

    def work():
        return [x.transpose(1, 2) for x in torch.autograd.grad(forward(), (q, k, v), dy)]
    return work


def check(kernel, batch, positions):
    """The largest error of a gradient, of its norm, and what computed it."""
    q, k, v = attention.make(kernel.spec, batch, positions)
    grad = torch.randn_like(q)
    work, chosen = train(kernel, q, k, v, grad)
    wide = [x.float() for x in (q, k, v, grad)]
    expected = train_peer(SDPBackend.MATH, *wide, kernel.spec["causal"])()
    errors = [((x.float() - y).norm() / (y.norm() + 1e-9)).item() for x, y in zip(work(), expected)]
    return (math.inf if any(math.isnan(error) for error in errors) else max(errors)), chosen


def main():
    args = attention.parse()
    torch.manual_seed(args.seed)
    rng = random.Random(args.seed)
    kernels = attention.load_kernels(args)
    errors = {}
    for kernel in kernels:
        for batch, positions in ((1, 64), (2, 777), (1, rng.randint(2, 1500))):
            error, chosen = check(kernel, batch, positions)
            errors[f"{kernel.name} {batch}x{positions} {chosen}"] = error
            if not error <= TOLERANCE[kernel.spec["element"]]:
                print("wrong:", kernel.name, batch, positions, chosen, error, flush=True)
    print("errors:", errors, flush=True)
    rows = []
    for key in sorted({attention.family(kernel.spec) for kernel in kernels}):
        dim, heads, _, causal, _ = key
        for _ in range(args.count):
            positions = int(2 ** rng.uniform(9, math.log2(args.tokens)))
            batch = max(1, min(16384, args.tokens) // positions)
            q, k, v = attention.make(dict(zip(("dim", "heads", "heads_of_k"), key)), batch, positions)
            grad = torch.randn_like(q)
            contenders = {name: train_peer(backend, q, k, v, grad, causal)
                          for name, backend in attention.PEERS.items()}
            chosen = {}
            for kernel in kernels:
                if attention.family(kernel.spec) == key:
                    contenders[kernel.name], chosen[kernel.name] = train(kernel, q, k, v, grad)
            # Five products of the backward beside two of the forward.
            flops = 14 * batch * heads * positions ** 2 * dim / (2 if causal else 1)
            rows.append({"dim": dim, "causal": causal, "batch": batch, "positions": positions, "chosen": chosen,
                         "tflops": attention.measure(contenders, flops)})
            print(rows[-1], flush=True)
    args.out.write_text(json.dumps({
        "device": torch.cuda.get_device_name(), "torch": torch.__version__,
        "cudnn": torch.backends.cudnn.version(), "errors": errors, "rows": rows}, indent=1))


if __name__ == "__main__":
    main()
