"""Attention with a cap of scores, with masks, and of padded sequences with their gradients: errors beside f32, and microseconds
beside PyTorch's flex_attention, compiled, its function with a mask, and FlashAttention's of packed sequences. Made for a
machine that has a GPU, PyTorch, libfp8rt and the kernels of attention_scores_kernels.py.

usage: attention_scores.py --kernels DIR [--library FILE] [--seed N] [--only cap|mask|padded] --out FILE
"""

import json
import math
import random

import torch
from torch.nn.attention import SDPBackend, sdpa_kernel

from attention import TOLERANCE, load_kernels, make_parser, peer
from attention_gradients import TOLERANCE as OF_GRADIENTS
from attention_gradients import bind
from attention_keys import measure, pack, ranges_of

aten = torch.ops.aten


def draw(spec, batch, positions):
    return [torch.randn(batch, positions, heads, spec["dim"], device="cuda", dtype=torch.bfloat16)
            for heads in (spec["heads"], spec["heads_of_k"], spec["heads_of_k"])]


def define(q, k, v, cap, causal, bias, dy=None):
    """The result and logarithms of sums in f32, and with `dy` gradients; `bias` is added, or a bool mask."""
    q, k, v = (x.detach().float().transpose(1, 2).requires_grad_() for x in (q, k, v))
    group = q.shape[1] // k.shape[1]
    scores = q @ k.repeat_interleave(group, 1).mT * q.shape[-1] ** -0.5
    scores = scores if cap is None else cap * torch.tanh(scores / cap)
    if bias is not None:
        scores = scores.masked_fill(~bias, -math.inf) if bias.dtype == torch.bool else scores + bias.float()
    if causal:
        scores = scores.masked_fill(torch.ones_like(scores, dtype=torch.bool).triu(1), -math.inf)
    lse = scores.logsumexp(-1)
    p = torch.exp(scores - lse.masked_fill(lse == -math.inf, 0)[..., None])
    y = (p @ v.repeat_interleave(group, 1)).transpose(1, 2)
    if dy is None:
        return y.detach(), lse.detach(), None
    found = torch.autograd.grad(y, (q, k, v), dy.float())
    return y.detach(), lse.detach(), [x.transpose(1, 2) for x in found]


def make_mask(spec, batch, positions):
    if not spec.get("mask"):
        return None
    shape = (batch, 1, positions if spec["mask_of_queries"] else 1, positions)
    if spec["mask"] == "i1":
        mask = torch.rand(shape, device="cuda") < 0.7
    else:
        dtype = {"bf16": torch.bfloat16, "f32": torch.float32}[spec["mask"]]
        mask = torch.randn(shape, device="cuda").masked_fill(torch.rand(shape, device="cuda") < 0.2, -math.inf).to(dtype)
    if spec["mask_of_queries"]:
        # A query that sees nothing.
        mask[:, :, 1] = False if spec["mask"] == "i1" else -math.inf
    return mask


def make_ranges(rng, batch, positions):
    """Those of queries that see some keys beside each other: of packed sequences, and any."""
    packed = torch.cat([ranges_of(pack(rng, positions, 300)) for _ in range(batch)])
    first = torch.randint(-3, positions, (batch, positions, 1), device="cuda")
    other = torch.cat([first, first + torch.randint(-3, positions, first.shape, device="cuda")], -1).int()
    return packed, other


def show(ranges, keys):
    key = torch.arange(keys, device="cuda")
    return ((key >= ranges[..., :1]) & (key < ranges[..., 1:]))[:, None]


def find_error(found, expected):
    error = (found.float() - expected).norm() / expected.norm().clamp(min=1e-20)
    return math.inf if found.isnan().any() else error.item()


def check(kernel, batch, positions, rng):
    """The largest error of results, of their norm."""
    spec = kernel.spec
    q, k, v = draw(spec, batch, positions)
    taken = kernel.quantize({"q": q, "k": k, "v": v})
    q, k, v = (taken[name].float() * taken.get(f"{name}_scale", 1) for name in "qkv")
    given = [torch.randn_like(q).bfloat16()] if spec.get("gradients") else [None]
    q, k, v = (x.bfloat16() for x in (q, k, v))
    # Large scores, which bend.
    q = q * 8 if spec.get("cap") else q
    worst = 0.0
    has_ranges = "key_ranges" in spec.get("others", ())
    for ranges in make_ranges(rng, batch, positions) if has_ranges else (None,):
        mask = make_mask(spec, batch, positions)
        bias = mask if ranges is None else show(ranges, positions)
        others = {name: x for name, x in (("mask", mask), ("key_ranges", ranges)) if x is not None}
        if not spec.get("gradients"):
            taken = kernel.quantize({"q": q, "k": k, "v": v})
            numbers = [taken[name].float() * taken.get(f"{name}_scale", 1) for name in "qkv"]
            y, lse, _ = define(*numbers, spec.get("cap"), spec["causal"], bias)
            launch, output = kernel.bind(q, k, v, **others)
            launch()
            sums = launch.keep["lse"]
            if not torch.equal(sums == -math.inf, lse == -math.inf):
                return math.inf
            worst = max(worst, find_error(output, y))
            continue
        dy = given[0]
        y, lse, expected = define(q, k, v, spec.get("cap"), spec["causal"], bias, dy)
        delta = (dy.float() * y).sum(-1).transpose(1, 2).contiguous()
        launch = bind(kernel, q, k, v, dy, lse, delta, **others)
        for _ in range(3):
            launch()
        worst = max(worst, *(find_error(launch.keep[f"d{name}"], x) for name, x in zip("qkv", expected)))
    return worst


def time_caps(kernels, rows, dim, batch, positions):
    """Forward, and gradients alone, causal, beside flex_attention."""
    from torch.nn.attention.flex_attention import create_block_mask, flex_attention
    kernels = [x for x in kernels if x.spec["dim"] == dim and x.spec["causal"] and not x.spec.get("mask")]
    spec = kernels[0].spec
    q, k, v = draw(spec, batch, positions)
    dy, cap = torch.randn_like(q), 50.0
    flex = torch.compile(flex_attention, dynamic=False)
    block = torch.compile(create_block_mask)(lambda b, h, i, j: i >= j, None, None, positions, positions, device="cuda")
    across = [x.transpose(1, 2).detach().requires_grad_() for x in (q, k, v)]

    def bend(score, b, h, i, j):
        return cap * torch.tanh(score / cap)

    y = flex(*across, score_mod=bend, block_mask=block, enable_gqa=True)
    contenders = {
        "flex_cap": lambda: flex(*across, score_mod=bend, block_mask=block, enable_gqa=True),
        "cudnn_without": peer(SDPBackend.CUDNN_ATTENTION, q, k, v, True)}
    contenders |= {x.name: x.bind(q, k, v)[0] for x in kernels if not x.spec.get("gradients")}
    rows.append({"what": "cap", "dim": dim, "batch": batch, "positions": positions, "us": measure(contenders)})
    if not any(x.spec.get("gradients") for x in kernels):
        return
    lse = torch.randn(batch, spec["heads"], positions, device="cuda") + math.log(positions)
    delta = torch.randn_like(lse)
    contenders = {"flex_cap": lambda: torch.autograd.grad(y, across, dy.transpose(1, 2), retain_graph=True)}
    contenders |= {x.name: bind(x, q, k, v, dy, lse, delta) for x in kernels if x.spec.get("gradients")}
    rows.append({"what": "cap, gradients", "dim": dim, "batch": batch, "positions": positions, "us": measure(contenders)})


def call_peer(backend, q, k, v, mask):
    """PyTorch's function, of heads that are repeated."""
    q, k, v = (x.transpose(1, 2) for x in (q, k, v))
    k, v = (x.repeat_interleave(q.shape[1] // k.shape[1], 1) for x in (k, v))

    def launch():
        with sdpa_kernel(backend):
            return torch.nn.functional.scaled_dot_product_attention(q, k, v, mask)
    return launch


def time_masks(kernels, rows, batch, positions):
    found = {}
    for kernel in kernels:
        if kernel.spec.get("mask"):
            found.setdefault((kernel.spec["mask"], kernel.spec["mask_of_queries"]), []).append(kernel)
    for alike in found.values():
        kernel = alike[0]
        q, k, v = draw(kernel.spec, batch, positions)
        mask = make_mask(kernel.spec, batch, positions)
        of_peer = mask.to(q.dtype) if mask.dtype == torch.float32 else mask
        of_peer = of_peer.expand(-1, -1, positions, -1)
        contenders = {name: call_peer(backend, q, k, v, of_peer) for name, backend in (
            ("cudnn", SDPBackend.CUDNN_ATTENTION), ("efficient", SDPBackend.EFFICIENT_ATTENTION))}
        contenders |= {"cudnn_without": peer(SDPBackend.CUDNN_ATTENTION, q, k, v, False),
                       **{x.name: x.bind(q, k, v, mask=mask)[0] for x in alike}}
        contenders |= {x.name: x.bind(q, k, v)[0] for x in kernels if x.name == "bf16_d128_full"}
        rows.append({"what": "mask", "mask": kernel.name, "batch": batch, "positions": positions,
                     "us": measure(contenders)})


def time_padded(kernels, rows, dim, batch, positions, causal, rng):
    """Forward and gradients of sequences padded on the right, by a half on average, as fine-tuning has them."""
    spec = {"dim": dim, "heads": 32 if dim == 128 else 16, "heads_of_k": 8 if dim == 128 else 16}
    q, k, v = draw(spec, batch, positions)
    dy = torch.randn_like(q)
    lengths = torch.tensor([rng.randint(1, positions) for _ in range(batch)], device="cuda")
    end = lengths[:, None].expand(-1, positions).int()
    if causal:
        end = torch.minimum(end, torch.arange(1, positions + 1, device="cuda", dtype=torch.int32))
    ranges = torch.stack([torch.zeros_like(end), end], -1).contiguous()
    mask = show(ranges, positions)
    lse = torch.randn(batch, spec["heads"], positions, device="cuda") + math.log(positions)
    delta = torch.randn_like(lse)
    of_peers = {}
    for name, backend in (("cudnn", SDPBackend.CUDNN_ATTENTION), ("efficient", SDPBackend.EFFICIENT_ATTENTION)):
        across = [x.detach().clone().requires_grad_() for x in (q, k, v)]

        def step(across=across, backend=backend):
            call = call_peer(backend, *across, mask)
            return torch.autograd.grad(call(), across, dy.transpose(1, 2))
        of_peers[name] = step
    ours = {}
    forward = [x for x in kernels if x.name == "bf16_d128_full_ranges" and dim == 128]
    forward = forward[0].bind(q, k, v, key_ranges=ranges)[0] if forward else None
    for kernel in kernels:
        if not kernel.spec.get("gradients") or kernel.spec["dim"] != dim:
            continue
        if kernel.name.endswith("ranges"):
            launch = bind(kernel, q, k, v, dy, lse, delta, key_ranges=ranges)
            ours[kernel.name] = launch
            if forward:
                ours[f"{kernel.name} and forward"] = lambda launch=launch: (forward(), launch())
        elif kernel.spec["causal"] == causal and "cap" not in kernel.name:
            ours[f"{kernel.name} unpadded"] = bind(kernel, q, k, v, dy, lse, delta)
    rows.append({"what": "padded", "dim": dim, "causal": causal, "batch": batch, "positions": positions,
                 "share": round(mask.float().mean().item(), 3), "us": measure({**of_peers, **ours})})


def time_packed(kernels, rows, dim, positions, longest, rng):
    """Gradients of packed causal sequences beside FlashAttention's."""
    spec = {"dim": dim, "heads": 32 if dim == 128 else 16, "heads_of_k": 8 if dim == 128 else 16}
    q, k, v = draw(spec, 1, positions)
    dy, lengths = torch.randn_like(q), pack(rng, positions, longest)
    ranges = ranges_of(lengths)
    ranges[..., 1] = torch.arange(1, positions + 1, device="cuda")
    ends = torch.tensor([0, *lengths]).cumsum(0).int().cuda()
    most = max(lengths)
    y, lse, state, unused, _ = aten._flash_attention_forward(q[0], k[0], v[0], ends, ends, most, most, 0.0, True, False)
    delta = torch.randn(1, spec["heads"], positions, device="cuda")
    contenders = {"flash_packed": lambda: aten._flash_attention_backward(
        dy[0], q[0], k[0], v[0], y, lse, ends, ends, most, most, 0.0, True, state, unused)}
    contenders |= {x.name: bind(x, q, k, v, dy, lse.reshape(1, *lse.shape), delta, key_ranges=ranges)
                   for x in kernels if x.spec.get("gradients") and x.spec["dim"] == dim and x.name.endswith("ranges")}
    rows.append({"what": "packed, gradients", "dim": dim, "positions": positions, "sequences": len(lengths),
                 "us": measure(contenders)})


def main():
    parser = make_parser()
    args = parser.parse_args()
    only, args.only = args.only, ""
    torch.manual_seed(args.seed)
    rng = random.Random(args.seed)
    kernels = load_kernels(args)
    errors, wrong, rows = {}, {}, []

    def run(what, *arguments):
        try:
            what(*arguments)
            print(rows[-1], flush=True)
        except Exception as error:  # A peer that has not what is asked for ends no other's measurement.
            print(what.__name__, arguments[2:], type(error).__name__, str(error).splitlines()[0], flush=True)

    for kernel in kernels:
        for batch, positions in ((1, 64), (2, 777)):
            try:
                error = check(kernel, batch, positions, rng)
            except RuntimeError as failure:
                print(kernel.name, str(failure).splitlines()[0], flush=True)
                error = math.inf
            errors[f"{kernel.name} {batch}x{positions}"] = error
            if not error <= (OF_GRADIENTS if kernel.spec.get("gradients") else TOLERANCE[kernel.spec["element"]]):
                wrong[f"{kernel.name} {batch}x{positions}"] = error
    print("wrong:", wrong, "\nlargest error:", max(errors.values()), flush=True)
    if only in ("", "padded"):
        for causal in (False, True):
            run(time_padded, kernels, rows, 128, 8, 2048, causal, rng)
        run(time_padded, kernels, rows, 64, 16, 1024, False, rng)
        for dim in (128, 64):
            run(time_packed, kernels, rows, dim, 16384, 2048, rng)
    if only in ("", "mask"):
        run(time_masks, kernels, rows, 4, 4096)
        for row in rows[-3:]:
            print(row, flush=True)
    if only in ("", "cap"):
        run(time_caps, kernels, rows, 128, 2, 8192)
        run(time_caps, kernels, rows, 64, 4, 4096)
        for row in rows[-4:]:
            print(row, flush=True)
    args.out.write_text(json.dumps({
        "device": torch.cuda.get_device_name(), "torch": torch.__version__, "cudnn": torch.backends.cudnn.version(),
        "configs": {kernel.name: kernel.config for kernel in kernels}, "errors": errors, "wrong": wrong, "rows": rows},
        indent=1))


if __name__ == "__main__":
    main()
