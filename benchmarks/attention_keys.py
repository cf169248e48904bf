"""Attention that sees some keys, and with sinks: errors of results and logarithms of sums against f32, with NaN wherever
nobody looks, and microseconds beside PyTorch's kernels: padding beside its function with a mask, packed sequences beside
FlashAttention's. Made for a machine that has a GPU, PyTorch, libfp8rt and the kernels of attention_keys_kernels.py.

usage: attention_keys.py --kernels DIR [--library FILE] [--seed N] [--count N] [--only TEXT] --out FILE
"""

import math
import random
import statistics

import torch

from attention import PEERS, TOLERANCE, load_kernels, make_parser, peer, write_record
from timing import seconds_of_each

aten = torch.ops.aten
SAMPLE_S, ROUNDS = 0.02, 5


def numbers(most, batch, low=0):
    return torch.randint(low, most + 1, (batch,), device="cuda", dtype=torch.int32)


def pack(rng, positions, longest):
    """Lengths of sequences that have so many positions together."""
    lengths = []
    while sum(lengths) < positions:
        lengths.append(min(int(2 ** rng.uniform(2, math.log2(longest))), positions - sum(lengths)))
    return lengths


def ranges_of(lengths):
    ends = torch.tensor(lengths).cumsum(0)
    firsts = ends - torch.tensor(lengths)
    pairs = torch.stack([firsts, ends], -1).repeat_interleave(torch.tensor(lengths), 0)
    return pairs.int()[None].cuda()


def make(spec, batch, queries, keys, rng):
    """Q, K and V, and what else the kernel takes."""
    q, k, v = (torch.randn(batch, rows, heads, spec["dim"], device="cuda", dtype=torch.bfloat16) for rows, heads in (
        (queries, spec["heads"]), (keys, spec["heads_of_k"]), (keys, spec["heads_of_k"])))
    others = {}
    if "key_lengths" in spec["others"]:
        others["key_lengths"] = numbers(keys, batch)
    if "key_starts" in spec["others"]:
        others["key_starts"] = numbers(keys, batch)
    if "key_ranges" in spec["others"]:
        first = torch.randint(-3, keys, (batch, queries), device="cuda")
        length = torch.randint(-3, keys, (batch, queries), device="cuda")
        others["key_ranges"] = torch.stack([first, first + length], -1).int()
        if queries == keys and rng.random() < 0.5:
            others["key_ranges"] = ranges_of(pack(rng, queries, 400)).expand(batch, -1, -1).contiguous()
    if "sinks" in spec["others"]:
        others["sinks"] = torch.randn(spec["heads"], device="cuda") * 3
    return q, k, v, others


def see(spec, q, k, others):
    """Which keys each query sees, batches x 1 x queries x keys."""
    queries, keys = q.shape[1], k.shape[1]
    ends = others.get("key_lengths", torch.full((q.shape[0],), keys, device="cuda")).view(-1, 1, 1)
    starts = others.get("key_starts", torch.zeros_like(ends)).view(-1, 1, 1)
    key, query = torch.arange(keys, device="cuda"), torch.arange(queries, device="cuda")[:, None]
    visible = ((key >= starts) & (key < ends)).expand(-1, queries, -1).clone()
    if spec["causal"]:
        visible &= key <= query
        if spec.get("left", "*") != "*":
            visible &= key >= query - spec["left"]
    if "key_ranges" in others:
        ranges = others["key_ranges"]
        visible &= (key >= ranges[..., :1]) & (key < ranges[..., 1:])
    return visible.unsqueeze(1)


def define(q, k, v, visible, sinks):
    """In f32, head by head."""
    group = q.shape[2] // k.shape[2]
    outputs, sums = [], []
    for head in range(q.shape[2]):
        x, y, z = q[:, :, head].float(), k[:, :, head // group].float(), v[:, :, head // group].float()
        scores = (x @ y.mT * x.shape[-1] ** -0.5).masked_fill(~visible[:, 0], -torch.inf)
        if sinks is not None:
            scores = torch.cat([scores, sinks[head].expand(*scores.shape[:2], 1)], -1)
            z = torch.cat([z, torch.zeros_like(z[:, :1])], 1)
        sums.append(scores.logsumexp(-1))
        outputs.append(scores.softmax(-1).nan_to_num(0) @ z)
    return torch.stack(outputs, 2), torch.stack(sums, 1)


def check(kernel, batch, queries, keys, rng):
    """Errors of the result, of its norm, and of logarithms, beside those of the codes' numbers."""
    q, k, v, others = make(kernel.spec, batch, queries, keys, rng)
    visible = see(kernel.spec, q, k, others)
    launch, output = kernel.bind(q, k, v, **others)
    tensors = launch.keep
    key = torch.arange(keys, device="cuda")
    outside = torch.zeros(batch, keys, dtype=torch.bool, device="cuda")
    if "key_lengths" in others:
        outside |= key >= others["key_lengths"][:, None]
    if "key_starts" in others:
        outside |= key < others["key_starts"][:, None]
    for name in "kv":
        # E4M3's NaN, and bf16's.
        bits = tensors[name].view(torch.uint8 if tensors[name].element_size() == 1 else torch.int16)
        bits[outside] = 0x7f if tensors[name].element_size() == 1 else 0x7fff
    for _ in range(2):
        launch()
    operands = [tensors[name].float().nan_to_num(0) * tensors.get(f"{name}_scale", 1) for name in "qkv"]
    expected, sums = define(*operands, visible, others.get("sinks"))
    error = ((output.float() - expected).norm() / expected.norm().clamp(min=1e-20)).item()
    if "lse" not in tensors:
        return error, 0.0
    found = tensors["lse"]
    if not torch.equal(found == -torch.inf, sums == -torch.inf):
        return error, math.inf
    return error, (found - sums).nan_to_num(0).abs().max().item()


def measure(contenders):
    """Median microseconds; rounds of all of them go forwards and backwards in turn."""
    works, times = {}, {}
    for name, work in contenders.items():
        try:
            times[name], works[name] = [max(3, int(SAMPLE_S / seconds_of_each(work, 3)))], work
        except RuntimeError as error:
            print(name, str(error).splitlines()[0], flush=True)
    for round_ in range(ROUNDS):
        for name in list(works)[:: 1 if round_ % 2 else -1]:
            times[name].append(seconds_of_each(works[name], times[name][0]))
    return {name: round(statistics.median(found[1:]) * 1e6, 1) for name, found in times.items()}


def mask_peer(q, k, v, mask):
    q, k, v = (x.transpose(1, 2) for x in (q, k, v))
    group = q.shape[1] // k.shape[1]
    k, v = (x.repeat_interleave(group, 1) for x in (k, v))
    return lambda: torch.nn.functional.scaled_dot_product_attention(q, k, v, mask)


def packed_peer(q, k, v, lengths):
    ends = torch.tensor([0, *lengths]).cumsum(0).int().cuda()
    most = max(lengths)
    return lambda: aten._flash_attention_forward(q[0], k[0], v[0], ends, ends, most, most, 0.0, True, False)


def time_padded(kernels, spec, batch, positions, rng):
    """Prompts that are padded on the left, by a half on average."""
    q, k, v, _ = make({**spec, "others": ()}, batch, positions, positions, rng)
    starts = numbers(positions - 1, batch)
    ranges = torch.stack([starts[:, None].expand(-1, positions), torch.full_like(starts, positions)[:, None].expand(
        -1, positions)], -1).contiguous()
    mask = see({**spec, "causal": True}, q, k, {"key_starts": starts})
    contenders = {"torch_mask": mask_peer(q, k, v, mask)}
    contenders |= {f"{name}_unpadded": peer(backend, q, k, v, True) for name, backend in PEERS.items()}
    given = {"key_starts": starts, "key_ranges": ranges, "key_lengths": positions - starts}
    for kernel in kernels:
        others = {name: given[name] for name in kernel.spec["others"]}
        contenders[kernel.name] = kernel.bind(q, k, v, **others)[0]
    return {"what": "padded", "batch": batch, "positions": positions, "us": measure(contenders)}


def time_packed(kernels, spec, positions, longest, rng):
    q, k, v, _ = make({**spec, "others": ()}, 1, positions, positions, rng)
    lengths = pack(rng, positions, longest)
    ranges = ranges_of(lengths)
    # Causal by the ranges alone, as packed_attention of PyTorch has it.
    causal = ranges.clone()
    causal[..., 1] = torch.arange(1, positions + 1, device="cuda")
    contenders = {"flash_packed": packed_peer(q, k, v, lengths)}
    for kernel in kernels:
        contenders[kernel.name] = kernel.bind(q, k, v, key_ranges=ranges if kernel.spec["causal"] else causal)[0]
    return {"what": "packed", "positions": positions, "sequences": len(lengths), "us": measure(contenders)}


def time_sinks(kernels, spec, batch, positions, rng):
    q, k, v, others = make({**spec, "others": ("sinks",)}, batch, positions, positions, rng)
    contenders = {f"{name}_without": peer(backend, q, k, v, True) for name, backend in PEERS.items()}
    contenders |= {kernel.name: kernel.bind(q, k, v, **(others if kernel.spec["others"] else {}))[0] for kernel in kernels}
    return {"what": "sinks", "dim": spec["dim"], "batch": batch, "positions": positions, "us": measure(contenders)}


def time_decoding(kernels, spec, batch, keys, rng):
    q, k, v, _ = make({**spec, "others": ()}, batch, 1, keys, rng)
    whole, starts = numbers(keys, batch, keys), torch.zeros(batch, device="cuda", dtype=torch.int32)
    ranges = torch.stack([starts, whole], -1)[:, None].contiguous()
    given = {"key_lengths": whole, "key_starts": starts, "key_ranges": ranges,
             "sinks": torch.zeros(spec["heads"], device="cuda")}
    contenders = {kernel.name: kernel.bind(q, k, v, **{name: given[name] for name in kernel.spec["others"]})[0]
                  for kernel in kernels}
    return {"what": "decoding", "batch": batch, "keys": keys, "us": measure(contenders)}


def main():
    args = make_parser().parse_args()
    torch.manual_seed(args.seed)
    rng = random.Random(args.seed)
    kernels = load_kernels(args)
    wrong, worst = {}, {}
    for kernel in kernels:
        few = "queries" in kernel.spec
        for batch, positions in ((1, 1), (2, 777), (3, rng.randint(2, 1500)), (7, rng.randint(2, 700))):
            queries = 1 if few else positions
            errors = check(kernel, batch, queries, positions, rng)
            # Sums of codes in a tensor core have 13 bits.
            if not (errors[0] <= TOLERANCE[kernel.spec["element"]] and errors[1] <= 5e-3):
                wrong[f"{kernel.name} {batch}x{positions}"] = errors
            worst[kernel.name] = max(worst.get(kernel.name, (0, 0)), errors)
    print("wrong:", wrong, "\nerrors:", worst, flush=True)

    def choose(*parts, but=()):
        return [kernel for kernel in kernels if all(part in kernel.name for part in parts) and not any(
            part in kernel.name for part in but)]

    rows, spec = [], {"dim": 128, "heads": 32, "heads_of_k": 8, "causal": True}
    for _ in range(args.count):
        positions = int(2 ** rng.uniform(9, 13))
        batch = max(1, 32768 // positions)
        rows.append(time_padded(choose("causal", but=("sinks", "d64")), spec, batch, positions, rng))
        rows.append(time_packed(choose("key_ranges", but=("one",)), spec, 16384, 2 ** rng.uniform(8, 13), rng))
        rows.append(time_sinks(choose("causal", but=("key", "d64")), spec, batch, positions, rng))
        rows.append(time_sinks(choose("d64"), {**spec, "dim": 64, "heads": 64}, batch, positions, rng))
        rows.append(time_decoding(choose("_one"), spec, int(2 ** rng.uniform(0, 6)), int(2 ** rng.uniform(10, 14)), rng))
        for row in rows[-5:]:
            print(row, flush=True)
    write_record(args.out, kernels, wrong, rows)


if __name__ == "__main__":
    main()
