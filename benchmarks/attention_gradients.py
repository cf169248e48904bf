"""Our kernel of attention's gradients beside PyTorch's backwards by cuDNN and FlashAttention, of random batches and
positions: errors against f32, launch after launch with the same workspaces, whether these have the same bits, and TFLOP/s of
the backward alone, where a causal one counts half. Both orders of sums of dQ, and FlashAttention's with and without one.
`delta`, the sums of dy times y that our kernel takes and the others compute themselves, is timed by itself, of
torch.compile. Made for a machine that has a GPU, PyTorch, libfp8rt and the kernels of attention_kernels.py --gradients.

usage: attention_gradients.py --kernels DIR [--library FILE] [--seed N] [--count N] [--tokens N] [--only TEXT] --out FILE
"""

import hashlib
import json
import math
import random
import re

import torch
from torch.nn.attention import SDPBackend

import attention

aten = torch.ops.aten
# A share of a gradient's norm, for operands as the kernel takes them.
TOLERANCE = 0.015
LAUNCHES = 6
_compute_delta = torch.compile(lambda dy, y: (dy.float() * y.float()).sum(-1).transpose(1, 2).contiguous(),
                               dynamic=True)


def bind(kernel, q, k, v, dy, lse, delta, **others):
    """A function that launches the kernel. Its `keep` has the gradients, and Q, K and V as it takes them."""
    tensors = kernel.quantize({"q": q, "k": k, "v": v, "grad": dy, "lse": lse, "delta": delta, **others})
    for name in "qkv":
        tensors[f"d{name}"] = torch.full_like(tensors[name], math.nan, dtype=torch.bfloat16)
    batch, positions, heads, dim = q.shape
    rows = int(re.search(r"tile_q = (\d+)", kernel.config)[1])
    tiles = batch * heads * -(-positions // rows)
    # Kernels leave them as they were: zeros.
    spaces = [torch.zeros(tiles * rows * dim, device="cuda"), torch.zeros(tiles, dtype=torch.int32, device="cuda")]
    if kernel.spec["order"] == "deterministic":
        # Tickets.
        spaces.append(torch.zeros(1, dtype=torch.int32, device="cuda"))
    return kernel.bind_tensors(tensors, spaces)


def run_peers(q, k, v, dy, causal):
    """Functions by name; and what cuDNN's forward has made, with the logarithms of sums."""
    scale, positions = q.shape[-1] ** -0.5, q.shape[1]
    across = [x.transpose(1, 2) for x in (q, k, v, dy)]
    y, lse, _, _, _, _, seed, offset, _ = aten._scaled_dot_product_cudnn_attention(
        *across[:3], None, True, 0.0, causal, False, scale=scale)
    other, sums, state, unused, _ = aten._flash_attention_forward(
        q, k, v, None, None, positions, positions, 0.0, causal, False, scale=scale)
    def run_flash():
        return aten._flash_attention_backward(
            dy, q, k, v, other, sums, None, None, positions, positions, 0.0, causal, state, unused, scale=scale)

    def run_flash_in_order():
        torch.use_deterministic_algorithms(True)
        try:
            return run_flash()
        finally:
            torch.use_deterministic_algorithms(False)

    functions = {
        "cudnn": lambda: aten._scaled_dot_product_cudnn_attention_backward(
            across[3], *across[:3], y, lse, seed, offset, None, None, None, positions, positions, 0.0, causal,
            scale=scale),
        "flash": run_flash, "flash_deterministic": run_flash_in_order}
    return functions, y.transpose(1, 2), lse.reshape(*lse.shape[:2], positions).float().contiguous()


def check(kernel, batch, positions):
    """The largest error of a gradient, of its norm, in some launches, and how many different bits dQ, dK and dV had."""
    spec = kernel.spec
    q, k, v = attention.make(spec, batch, positions)
    dy = torch.randn_like(q)
    taken = kernel.quantize({"q": q, "k": k, "v": v})
    wide = [taken[name].float() * taken.get(f"{name}_scale", 1) for name in "qkv"]
    q32, k32, v32 = (x.requires_grad_() for x in wide)
    y = attention.peer(SDPBackend.MATH, q32, k32, v32, spec["causal"])().transpose(1, 2)
    expected = torch.autograd.grad(y, (q32, k32, v32), dy.float())
    with torch.no_grad():
        group = spec["heads"] // spec["heads_of_k"]
        scores = q32.transpose(1, 2) @ k32.transpose(1, 2).repeat_interleave(group, 1).mT * spec["dim"] ** -0.5
        if spec["causal"]:
            scores.masked_fill_(torch.ones_like(scores, dtype=torch.bool).triu(1), -math.inf)
        delta = (dy.float() * y).sum(-1).transpose(1, 2).contiguous()
        launch, worst = bind(kernel, q, k, v, dy, scores.logsumexp(-1), delta), 0.0
    bits = [set() for _ in "qkv"]
    for _ in range(LAUNCHES):
        for name in "qkv":
            launch.keep[f"d{name}"].fill_(math.nan)
        launch()
        for name, seen in zip("qkv", bits):
            seen.add(hashlib.sha256(launch.keep[f"d{name}"].view(torch.int16).cpu().numpy().tobytes()).hexdigest())
        for name, gradient in zip("qkv", expected):
            error = ((launch.keep[f"d{name}"].float() - gradient).norm() / gradient.norm()).item()
            worst = max(worst, math.inf if math.isnan(error) else error)
    return worst, [len(seen) for seen in bits]


def main():
    args = attention.parse()
    torch.manual_seed(args.seed)
    rng = random.Random(args.seed)
    kernels = attention.load_kernels(args)
    errors, bits = {}, {}
    for kernel in kernels:
        for batch, positions in ((1, 64), (2, 777), (1, rng.randint(2, 1500))):
            name = f"{kernel.name} {batch}x{positions}"
            errors[name], bits[name] = error, counts = check(kernel, batch, positions)
            expected = [1] * 3 if kernel.spec["order"] == "deterministic" else [counts[0], 1, 1]
            if not error <= TOLERANCE or counts != expected:
                print("wrong:", kernel.name, batch, positions, error, counts, flush=True)
    print("largest error:", max(errors.values()), flush=True)
    rows = []
    for key in sorted({attention.family(kernel.spec) for kernel in kernels}):
        dim, heads, _, causal, _ = key
        for _ in range(args.count):
            positions = int(2 ** rng.uniform(9, math.log2(args.tokens)))
            batch = max(1, min(16384, args.tokens) // positions)
            q, k, v = attention.make(dict(zip(("dim", "heads", "heads_of_k"), key)), batch, positions)
            dy = torch.randn_like(q)
            contenders, y, lse = run_peers(q, k, v, dy, causal)
            delta = _compute_delta(dy, y)
            contenders |= {kernel.name: bind(kernel, q, k, v, dy, lse, delta)
                           for kernel in kernels if attention.family(kernel.spec) == key}
            flops = 10 * batch * heads * positions ** 2 * dim / (2 if causal else 1)
            found = attention.measure({**contenders, "delta": lambda: _compute_delta(dy, y)}, flops)
            rows.append({"dim": dim, "causal": causal, "batch": batch, "positions": positions,
                         "delta_us": round(flops / found.pop("delta") * 1e-6, 1), "tflops": found})
            print(rows[-1], flush=True)
    args.out.write_text(json.dumps({
        "device": torch.cuda.get_device_name(), "torch": torch.__version__,
        "cudnn": torch.backends.cudnn.version(), "errors": errors, "bits": bits, "rows": rows}, indent=1))


if __name__ == "__main__":
    main()
