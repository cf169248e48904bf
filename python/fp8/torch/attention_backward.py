"""Gradients of attention: which kernel computes them from our result, ours or one of PyTorch's, and a formula for the
rest."""

from collections import Counter
from typing import NamedTuple

import torch

from fp8.compiler import get_default_target
from fp8.torch import attention_dropout, attention_programs, attention_ready
from fp8.torch.dense import is_on_gpu, make_dense

aten = torch.ops.aten

# How many scores the formula has in memory at a time.
_SCORES = 1 << 24


# From how many queries and keys on our kernel is no slower than cuDNN's, by columns and whether it is causal, the sums that it
# needs of the gradient times the result included, and in which order it adds up (benchmarks/results/attention_gradients.txt).
# Others were slower. On GPUs where nobody timed it, it is taken where PyTorch has no kernel.
_UNTIMED = ("sm_80", "sm_89", "sm_100a", "sm_120a", "sm_121a")
_MEASURED = "sm_90a"
_FASTER = {(128, True): (2048, "deterministic"), (64, True): (4096, "deterministic"), (64, False): (2048, "any")}
# Which kernel was chosen, and why, by how often.
taken = Counter()


class Rule(NamedTuple):
    """What is visible, and the factor of scores: as `fp8.attention` has it."""

    scale: float
    left: int | None = None
    right: int | None = None
    bottom_right: bool = False
    cap: float | None = None
    dropout: float = 0.0


def _can_use(kernel, query, key, value, is_causal):
    """Whether PyTorch's kernel takes such tensors on this device with a gradient, under its switches."""
    q, k, v = (x.detach().requires_grad_() for x in (query, key, value))
    parameters = torch.backends.cuda.SDPAParams(q, k, v, None, 0.0, is_causal, query.shape[1] != key.shape[1])
    if kernel == "cudnn":
        return torch.backends.cuda.can_use_cudnn_attention(parameters)
    return torch.backends.cuda.can_use_flash_attention(parameters)


def _find_window(rule, queries, keys):
    """The limits that hide something, counted from a query's own number: (left, right)."""
    offset = keys - queries if rule.bottom_right else 0
    left = None if rule.left is None or queries - 1 + offset - rule.left <= 0 else rule.left - offset
    right = None if rule.right is None or offset + rule.right >= keys - 1 else rule.right + offset
    return left, right


def _count_from_end(window, queries, keys):
    """The same as FlashAttention counts, from the last query and key; None where it takes a limit for none."""
    left, right = window
    left, right = left if left is None else left + keys - queries, right if right is None else right - keys + queries
    return None if any(side is not None and side < 0 for side in (left, right)) else (left, right)


def _is_deterministic():
    """Whether torch.use_deterministic_algorithms asks for the same bits in every run, rather than for a warning."""
    return torch.are_deterministic_algorithms_enabled() and not torch.is_deterministic_algorithms_warn_only_enabled()


def find_missing(query, value, dropout=False):
    """Why our kernel does not take such tensors on this GPU, or None."""
    columns, target = (query.shape[3], value.shape[3]), get_default_target()
    if target in (_MEASURED, "sm_100a"):
        if columns not in ((64, 64), (128, 128)):
            return f"a kernel of {target} has 64 or 128 columns, as many of value, but there are {columns[0]} and {columns[1]}"
        return "a kernel of sm_100a has no dropout" if dropout and target == "sm_100a" else None
    if target not in _UNTIMED:
        return f"no kernel of {target}"
    if all(count % 16 == 0 and 0 < count <= 256 for count in columns):
        return None
    return f"a kernel of {target} has multiples of 16 columns up to 256, but there are {columns[0]} and {columns[1]}"


def has_kernel(query, value, dropout=False):
    return find_missing(query, value, dropout) is None


def is_consistent(accumulate):
    """Whether a gradient of codes has to be of scores whose sums its logarithms are of. With `fast` it is of numbers in 16 bits,
    with the forward's logarithms, which takes less time. But a tensor core's sums of codes are not those of numbers, so that
    shares do not sum up to 1 where scores are large (docs/Attention.md)."""
    return accumulate != "fast"


def takes_codes(query, value, dtype, hides):
    """Whether our kernel multiplies codes as they are, as the forward did, so that scores are the same."""
    return (not hides and is_on_gpu(query) and dtype in (torch.bfloat16, torch.float16)
            and get_default_target() == _MEASURED and has_kernel(query, value))


def _find_faster(query, key, is_causal):
    """Why ours is expected to be no slower than cuDNN's, or None."""
    least, _ = _FASTER.get((query.shape[3], is_causal), (None, None))
    if least is None or min(query.shape[2], key.shape[2]) < least:
        return None
    return f"no slower than cuDNN's of {query.shape[3]} columns, {'causal' if is_causal else 'all keys'}, from {least} on"


def choose(query, key, value, hides, rule, has_ranges=False):
    """"fp8", "cudnn", "flash" or "formula", and why, by tensors of batches x heads x positions x columns; `hides` if more is
    hidden, or added, than the rule and ranges of keys say. Ours has the same bits in every run and FlashAttention's a deterministic mode, which
    PyTorch sees to; cuDNN's has none."""
    if not is_on_gpu(query) or query.dtype not in (torch.bfloat16, torch.float16):
        return "formula", "a CPU, or f32"
    if hides:
        return "formula", "no kernel of ours takes a mask in the gradient: scores are in memory, in f32"
    if 0 in query.shape or 0 in key.shape or 0 in value.shape:
        return "formula", "nothing to attend to"
    queries, keys = query.shape[2], key.shape[2]
    window = _find_window(rule, queries, keys)
    is_simple = window in ((None, None), (None, 0))
    missing = find_missing(query, value, bool(rule.dropout))
    is_ours = missing is None
    is_faster = is_ours and get_default_target() == _MEASURED
    if has_ranges or rule.cap is not None or rule.dropout:
        reason = "no other has ranges of keys, a cap, or this dropout"
        return ("fp8", reason) if is_ours else ("formula", missing)
    if is_simple and not _is_deterministic() and _can_use("cudnn", query, key, value, window[1] == 0):
        reason = _find_faster(query, key, window[1] == 0) if is_faster else None
        if reason:
            return "fp8", reason
        return "cudnn", "ours is slower, or was not measured" if is_ours else "ours has no kernel"
    if is_faster:
        return "fp8", "faster than FlashAttention's, where cuDNN's is not deterministic or has no such window"
    if value.shape[3] == query.shape[3] and _count_from_end(window, queries, keys) is not None and (
            _can_use("flash", query, key, value, False)):
        reason = "ours was not measured here" if is_ours else "ours has no kernel"
        return "flash", f"{reason}, and cuDNN's is not deterministic or has no such window"
    return ("fp8", "PyTorch has no kernel of it") if is_ours else ("formula", missing)


def explain():
    """A line for each kind of gradient that was computed: its kernel, why, and how often."""
    return "\n".join(f"{kernel}: {reason} ({count} times)" for (kernel, reason), count in sorted(taken.items()))


def _find_order(queries, keys, columns, rule):
    """The order in which ours adds up dQ: a fixed one, but where another is faster and nobody asks for the same bits."""
    window = _find_window(rule, queries, keys)
    if _is_deterministic() or window not in ((None, None), (None, 0)):
        return "deterministic"
    return _FASTER.get((columns, window[1] == 0), (None, "deterministic"))[1]


def _call_ours(shape, order, tensors):
    """Our kernel's results for tensors as its program takes them."""
    results = attention_ready.shared.run((shape, order), tensors)
    if results is None:
        function = attention_programs.get_backward(shape, order, get_default_target())
        results = function(*tensors)
        attention_ready.shared.add((shape, order), function, tensors)
    return results


def _describe(query, key, value, rule, dtype, ranges, **others):
    """What programs are of, but for dropout, and tensors as they take them."""
    heads_first = query.is_contiguous()
    shape = attention_programs.Shape(
        attention_programs.ELEMENTS[dtype], query.shape[1], key.shape[1], query.shape[3], value.shape[3], heads_first,
        rule.scale, rule.left, rule.right, rule.bottom_right, cap=rule.cap, ranges=ranges is not None, **others)
    return shape, [make_dense(x if heads_first else x.transpose(1, 2)) for x in (query, key, value)]


def find_sums(query, key, value, rule, ranges=None, sinks=None):
    """The logarithms of the sums of exponentials, by a forward of these numbers."""
    shape, tensors = _describe(query, key, value, rule, query.dtype, ranges, sinks=sinks is not None)
    shape = shape._replace(queries=attention_programs.find_queries(shape, query.shape[2]))
    others = [make_dense(x) for x in (ranges, sinks) if x is not None]
    return attention_programs.get_function(shape, get_default_target())(*tensors, *others)[1]


def _run_ours(grad, query, key, value, output, lse, rule, ranges=None, state=None, factors=()):
    """With factors query, key and value are codes."""
    format_ = next((name for name, kind in attention_programs.CODES.items() if kind == query.dtype), None)
    shape, tensors = _describe(query, key, value, rule, output.dtype, ranges, dropout=rule.dropout, format=format_)
    heads_first = shape.heads_first
    grad, output = (make_dense(x if heads_first else x.transpose(1, 2)) for x in (grad, output))
    if factors:
        tensors = [y for x, factor in zip(tensors, factors) for y in (x, factor.reshape(1, 1, 1, 1))]
    others = [make_dense(lse)] + [make_dense(x) for x in (ranges, state) if x is not None]
    order = _find_order(query.shape[2], key.shape[2], query.shape[3], rule)
    results = _call_ours(shape, order, [grad, *tensors, output, *others])
    return tuple(results) if heads_first else tuple(x.transpose(1, 2) for x in results)


_OF_CODES = "fp8", "of codes as they are: no other has the scores that the forward had"


def run_codes(grad, tensors, factors, output, lse, rule, heads_first, unit=None):
    """The same of codes of query, key and value, all of them dense, and in the order of programs, as results are. Ends the step
    of an AttentionUnit."""
    query, key, value = tensors
    place = 1 if heads_first else 2
    order = _find_order(query.shape[3 - place], key.shape[3 - place], query.shape[3], rule)
    taken[_OF_CODES] += 1
    ready, ends = (attention_ready.shared, False) if unit is None else (unit.ready, unit.steps and unit.has_steps)
    told = "gradients", rule, order, heads_first, output.dtype, query.dtype, query.shape[place], key.shape[place], query.shape[3]
    given = [grad, *(y for x, factor in zip(tensors, factors) for y in (x, factor.view(1, 1, 1, 1))), output, lse]
    results = ready.run(told, given, ends)
    if results is not None:
        return results
    shape = attention_programs.Shape(
        attention_programs.ELEMENTS[output.dtype], query.shape[place], key.shape[place], query.shape[3], value.shape[3],
        heads_first, rule.scale, rule.left, rule.right, rule.bottom_right, cap=rule.cap, dropout=rule.dropout,
        format=next(name for name, kind in attention_programs.CODES.items() if kind == query.dtype))
    function = attention_programs.get_backward(shape, order, get_default_target())
    results = function(*given)
    ready.add(told, function, given, None if unit is None else unit.state)
    if ends:
        unit.end_step()
    return results


def _put_heads_inside(x):
    """A tensor whose positions lie outside of heads in memory, as models have them."""
    x = x.transpose(1, 2)
    return (x if x.is_contiguous() else x.contiguous()).transpose(1, 2)


def _run_cudnn(grad, query, key, value, output, lse, rule):
    # PyTorch keeps cuDNN's plans by how query, key and value lie, not by how the result and its gradient do. Where heads lie
    # outside, a plan that PyTorch's own call has made takes them to lie otherwise than ours, and computes nonsense.
    grad, query, key, value, output = map(_put_heads_inside, (grad, query, key, value, output))
    is_causal = _find_window(rule, query.shape[2], key.shape[2])[1] == 0
    # Without dropout nobody reads them.
    seed, offset = (torch.empty((), dtype=torch.int64, device=query.device) for _ in range(2))
    return aten._scaled_dot_product_cudnn_attention_backward(
        grad, query, key, value, output, lse.unsqueeze(-1), seed, offset, None, None, None, query.shape[2],
        key.shape[2], 0.0, is_causal, scale=rule.scale)


def _run_flash(grad, query, key, value, output, lse, rule):
    queries, keys = query.shape[2], key.shape[2]
    left, right = _count_from_end(_find_window(rule, queries, keys), queries, keys)
    # Subtracting this for a query that sees no key makes its exponentials 0.
    lse = lse.masked_fill(lse == -torch.inf, torch.inf)
    state, unused = (torch.empty(size, dtype=torch.uint64, device=query.device) for size in ((2,), ()))
    results = aten._flash_attention_backward(
        *(x.transpose(1, 2) for x in (grad, query, key, value, output)), lse, None, None, queries, keys, 0.0,
        left is None and right == 0, state, unused, scale=rule.scale, window_size_left=left, window_size_right=right)
    return tuple(x.transpose(1, 2) for x in results)


def run_packed_flash(grad, query, key, value, output, lse, cu_seqlens_q, cu_seqlens_k, most_q, most_k, scale, left, right):
    """The gradients of sequences one after the other, 1 x positions x heads x columns; `right` is None or 0, and no
    sequence is longer than `most_q` and `most_k`."""
    lse = lse.masked_fill(lse == -torch.inf, torch.inf)
    state, unused = (torch.empty(size, dtype=torch.uint64, device=query.device) for size in ((2,), ()))
    results = aten._flash_attention_backward(
        *(x[0] for x in (grad, query, key, value, output, lse)), cu_seqlens_q, cu_seqlens_k, most_q, most_k, 0.0,
        left is None and right == 0, state, unused, scale=scale, window_size_left=left, window_size_right=right)
    return tuple(x[None] for x in results)


def _hide(scores, first, begin, rule, queries, keys):
    """Sets hidden scores, [..., rows, columns], to -inf; rows begin with query `first`, columns with key `begin`."""
    left, right = _find_window(rule, queries, keys)
    if left is None and right is None:
        return scores
    rows = torch.arange(first, first + scores.shape[-2], device=scores.device)[:, None]
    columns = torch.arange(begin, begin + scores.shape[-1], device=scores.device)
    hidden = columns > rows + right if right is not None else columns < rows - left
    if left is not None and right is not None:
        hidden = hidden | (columns < rows - left)
    return scores.masked_fill(hidden, -torch.inf)


def _add_mask(scores, mask):
    if mask.dtype == torch.bool:
        return scores.masked_fill(~mask, -torch.inf)
    return scores + mask.float()


def _cut_mask(mask, groups, rows, columns):
    """The part of a mask for rows and columns of scores, with dimensions of groups and the heads of each."""
    mask = mask[:, :, rows if mask.shape[2] > 1 else slice(None), columns if mask.shape[3] > 1 else slice(None)]
    return mask.unflatten(1, (groups, -1)) if mask.shape[1] > 1 else mask.unsqueeze(1)


def _hide_beyond(scores, ranges, begin):
    """Sets scores to -inf of keys, from key `begin`, that are not of their queries' ranges, which have all dimensions but
    the last."""
    columns = torch.arange(begin, begin + scores.shape[-1], device=scores.device)
    return scores.masked_fill((columns < ranges[..., :1]) | (columns >= ranges[..., 1:]), -torch.inf)


def _sum_exponentials(scores, sinks, groups):
    """The logarithms of sums, of scores with dimensions of groups and the heads of each; infinite for queries that see no
    key, whose exponentials are 0 with it."""
    sums = scores.logsumexp(-1, keepdim=True)
    if sinks is not None:
        sums = torch.logaddexp(sums, sinks.view(groups, -1, 1, 1))
    return sums.masked_fill(sums == -torch.inf, torch.inf)


def compute(grad, query, key, value, output, lse, mask, ranges, rule, state=None, sinks=None):
    """The gradients of query, key and value by their definition, in f32, some queries at a time. Without logarithms of sums
    they are those of the scores here, and of sinks."""
    batches, heads, queries, dim = query.shape
    groups, keys = key.shape[1:3]
    grad, query, output = (x.float().unflatten(1, (groups, heads // groups)) for x in (grad, query, output))
    key, value = key.float().unsqueeze(2), value.float().unsqueeze(2)
    # With it the exponential of a query that sees no key is 0.
    if lse is not None:
        lse = lse.masked_fill(lse == -torch.inf, torch.inf).unflatten(1, (groups, -1)).unsqueeze(-1)
    weighted = (grad * output).sum(-1, keepdim=True)
    results = [torch.zeros(x.shape, dtype=torch.float32, device=x.device) for x in (query, key[:, :, 0], value[:, :, 0])]
    dq, dk, dv = results
    left, right = _find_window(rule, queries, keys)
    step = max(1, _SCORES // max(1, batches * heads * keys))
    for first in range(0, queries, step):
        rows = slice(first, min(first + step, queries))
        begin = 0 if left is None else min(max(0, first - left), keys)
        end = keys if right is None else max(begin, min(keys, rows.stop + right))
        columns = slice(begin, end)
        k, v = key[..., columns, :], value[..., columns, :]
        q, dy = query[..., rows, :], grad[..., rows, :]
        scores = torch.matmul(q, k.mT) * rule.scale
        slope = 1.0
        if rule.cap is not None:
            bent = torch.tanh(scores / rule.cap)
            scores, slope = bent * rule.cap, 1 - bent * bent
        scores = _hide(scores, first, begin, rule, queries, keys)
        if ranges is not None:
            scores = _hide_beyond(scores, ranges[:, None, None, rows], begin)
        if mask is not None:
            scores = _add_mask(scores, _cut_mask(mask, groups, rows, columns))
        p = torch.exp(scores - (_sum_exponentials(scores, sinks, groups) if lse is None else lse[..., rows, :]))
        of_p, kept = torch.matmul(dy, v.mT), p
        if rule.dropout:
            is_kept = attention_dropout.find_kept(state, rule.dropout, batches, heads, rows, columns)
            factor = is_kept.unflatten(1, (groups, -1)) * attention_dropout.get_factor(rule.dropout)
            of_p, kept = of_p * factor, p * factor
        ds = p * (of_p - weighted[..., rows, :]) * slope * rule.scale
        dq[..., rows, :] = torch.matmul(ds, k)
        # The heads of a group are more rows.
        dk[..., columns, :] += torch.matmul(ds.flatten(2, 3).mT, q.flatten(2, 3))
        dv[..., columns, :] += torch.matmul(kept.flatten(2, 3).mT, dy.flatten(2, 3))
    return dq.flatten(1, 2), dk, dv


def run(grad, query, key, value, factors, output, lse, mask, ranges, rule, state=None, sinks=None, renews=False):
    """The gradients of query, key and value, all of batches x heads x positions x columns, in the type of the result.
    `factors` are empty, or those of codes that query, key and value are; the gradient goes straight through. With `renews`
    the logarithms of sums are computed again, of the scores that the gradient has."""
    dtype = output.dtype
    if factors and takes_codes(query, value, dtype, mask is not None):
        taken[_OF_CODES] += 1
        return _run_ours(grad, query, key, value, output, lse, rule, ranges, state, factors)
    tensors = query, key, value
    if factors:
        tensors = [x.float() * factor for x, factor in zip(tensors, factors)]
    narrow = [x.to(dtype) for x in tensors]
    kernel, reason = choose(*narrow, mask is not None, rule, ranges is not None)
    taken[kernel, reason + "; with sums of the scores that it has" * renews] += 1
    if kernel == "formula":
        results = compute(grad, *tensors, output, None if renews else lse, mask, ranges, rule, state, sinks)
        return tuple(x.to(dtype) for x in results)
    if renews:
        lse = find_sums(*narrow, rule, ranges, sinks)
    if kernel == "fp8":
        results = _run_ours(grad, *narrow, output, lse, rule, ranges, state)
    else:
        run_kernel = {"cudnn": _run_cudnn, "flash": _run_flash}[kernel]
        results = run_kernel(grad, *narrow, output, lse, rule)
    return tuple(x.to(dtype) for x in results)
