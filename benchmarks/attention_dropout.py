"""Attention with dropout and its gradients: errors beside f32 with the shares that the rule of `fp8.attention` leaves out, and
microseconds beside PyTorch's cuDNN and FlashAttention with the same rate. Made for a machine that has a GPU, PyTorch, libfp8rt
and the kernels of attention_dropout_kernels.py.

usage: attention_dropout.py --kernels DIR [--library FILE] [--seed N] [--only TEXT] --out FILE
"""

import json

import torch
from torch.nn.attention import SDPBackend, sdpa_kernel

from attention import TOLERANCE, load_kernels, make, make_parser
from attention_gradients import TOLERANCE as OF_GRADIENTS
from attention_gradients import _compute_delta, bind
from attention_keys import measure
from fp8.torch import attention_dropout

PEERS = {"cudnn": SDPBackend.CUDNN_ATTENTION, "flash": SDPBackend.FLASH_ATTENTION}


def define(q, k, v, causal, factor, dy):
    """The result, logarithms of sums and gradients, in f32; shares count by `factor`."""
    q, k, v = (x.detach().float().transpose(1, 2).requires_grad_() for x in (q, k, v))
    group = q.shape[1] // k.shape[1]
    scores = q @ k.repeat_interleave(group, 1).mT * q.shape[-1] ** -0.5
    if causal:
        scores = scores.masked_fill(torch.ones_like(scores, dtype=torch.bool).triu(1), -torch.inf)
    y = ((scores.softmax(-1) * factor) @ v.repeat_interleave(group, 1)).transpose(1, 2)
    grads = torch.autograd.grad(y, (q, k, v), dy.float())
    return y.detach(), scores.logsumexp(-1).detach(), [x.transpose(1, 2) for x in grads]


def find_error(found, expected):
    return ((found.float() - expected).norm() / expected.norm().clamp(min=1e-20)).nan_to_num(torch.inf).item()


def check(kernel, batch, positions):
    """The largest error of results, of their norm."""
    spec = kernel.spec
    q, k, v = make(spec, batch, positions)
    taken = kernel.quantize({"q": q, "k": k, "v": v})
    numbers = [taken[name].float() * taken.get(f"{name}_scale", 1) for name in "qkv"]
    state, whole = attention_dropout.make_state("cuda"), slice(0, positions)
    rate, others, factor = spec.get("dropout", 0.0), {}, 1.0
    if rate:
        others["dropout"] = state
        kept = attention_dropout.find_kept(state, rate, batch, spec["heads"], whole, whole)
        factor = kept * attention_dropout.get_factor(rate)
        assert abs(kept.float().mean().item() - 1 + rate) < 0.01, kept.float().mean()
    dy = torch.randn_like(q)
    y, lse, grads = define(*numbers, spec["causal"], factor, dy)
    if not spec.get("gradients"):
        launch, output = kernel.bind(q, k, v, **others)
        launch()
        return max(find_error(output, y), find_error(launch.keep["lse"], lse))
    delta = (dy.float() * y).sum(-1).transpose(1, 2).contiguous()
    launch = bind(kernel, q, k, v, dy, lse.contiguous(), delta, **others)
    for _ in range(2):
        launch()
    return max(find_error(launch.keep[f"d{name}"], x) for name, x in zip("qkv", grads))


def make_peer(backend, q, k, v, dy, causal, rate):
    """A forward, and both directions."""
    across = [x.transpose(1, 2).detach().requires_grad_() for x in (q, k, v)]

    def forward():
        with sdpa_kernel(backend):
            return torch.nn.functional.scaled_dot_product_attention(
                *across, dropout_p=rate, is_causal=causal, enable_gqa=True)

    return forward, lambda: torch.autograd.grad(forward(), across, dy.transpose(1, 2))


def time_all(kernels, rows, dim, causal, batch, positions):
    kernels = [x for x in kernels if x.spec["dim"] == dim and x.spec["causal"] == causal]
    q, k, v = make(kernels[0].spec, batch, positions)
    dy, state = torch.randn_like(q), attention_dropout.make_state("cuda")
    lse = torch.randn(batch, q.shape[2], positions, device="cuda") + 9
    forwards, both = {}, {}
    for name, backend in PEERS.items():
        for rate in (0.0, 0.1):
            label = f"{name}_dropout" if rate else name
            forwards[label], both[label] = make_peer(backend, q, k, v, dy, causal, rate)
    def give(kernel):
        return {"dropout": state} if kernel.spec.get("dropout") else {}
    ours = {x.name: x.bind(q, k, v, **give(x))[0] for x in kernels if not x.spec.get("gradients")}
    forwards |= ours
    for kernel in kernels:
        if kernel.spec.get("gradients"):
            first = ours[kernel.name.partition("_gradients")[0] + "_dropout" * bool(kernel.spec.get("dropout"))]
            second = bind(kernel, q, k, v, dy, lse, torch.randn_like(lse), **give(kernel))
            both[kernel.name] = lambda first=first, second=second: (first(), _compute_delta(dy, q), second())
            both[f"{kernel.name} alone"] = second
    for what, contenders in (("forward", forwards), ("both", both)):
        rows.append({"what": what, "dim": dim, "causal": causal, "batch": batch, "positions": positions,
                     "us": measure(contenders)})
        print(rows[-1], flush=True)


def main():
    args = make_parser().parse_args()
    torch.manual_seed(args.seed)
    kernels = load_kernels(args)
    errors, wrong, rows = {}, {}, []
    for kernel in kernels:
        for batch, positions in ((1, 64), (2, 777)):
            error = errors[f"{kernel.name} {batch}x{positions}"] = check(kernel, batch, positions)
            if not error <= (OF_GRADIENTS if kernel.spec.get("gradients") else TOLERANCE[kernel.spec["element"]]):
                wrong[f"{kernel.name} {batch}x{positions}"] = error
    print("wrong:", wrong, "\nlargest error:", max(errors.values()), flush=True)
    for shape in ((128, True, 2, 8192), (64, True, 8, 2048), (64, False, 32, 512), (128, False, 4, 4096)):
        time_all(kernels, rows, *shape)
    args.out.write_text(json.dumps({
        "device": torch.cuda.get_device_name(), "torch": torch.__version__, "cudnn": torch.backends.cudnn.version(),
        "configs": {kernel.name: kernel.config for kernel in kernels}, "errors": errors, "wrong": wrong, "rows": rows},
        indent=1))


if __name__ == "__main__":
    main()
