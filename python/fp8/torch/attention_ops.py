"""Attention as operations of PyTorch, with a gradient."""

from typing import NamedTuple

import torch

from fp8.compiler import get_default_target
from fp8.errors import UnsupportedError
from fp8.torch import (attention_backward, attention_programs, attention_ready, attention_transforms, coded_results, flops,
                       linear_ops, operations)
from fp8.torch.coded_results import CodedResult
from fp8.torch.dense import is_on_gpu, is_plain, is_recorded, make_dense


class Options(NamedTuple):
    """Those that all operations of attention have: as attention_programs.Shape."""

    heads_first: bool
    scale: float
    left: int | None = None
    right: int | None = None
    bottom_right: bool = False
    format: str | None = None
    accumulate: str | None = None
    cap: float | None = None
    dropout: float = 0.0
    invariant: bool = False
    # The number of an attention_scales.AttentionUnit, where scales are no present ones.
    unit: int = -1


_SCHEMA = ("bool heads_first, float scale, int? left, int? right, bool bottom_right, str? format, str? accumulate, "
           "float? cap=None, float dropout=0.0, bool invariant=False, int unit=-1")


def _transpose(options, *tensors):
    """Tensors of batches x heads x positions x columns, of those that lie as the options say, or the inverse."""
    return tensors if options.heads_first else tuple(x.transpose(1, 2) for x in tensors)


class Others(NamedTuple):
    """Tensors beside query, key and value, or None: what is added to scores, or which of them are seen; the first key that
    each query sees and the one behind its last; one more score for each head; the seed and the offset of dropout."""

    mask: torch.Tensor | None = None
    ranges: torch.Tensor | None = None
    sinks: torch.Tensor | None = None
    state: torch.Tensor | None = None


NO_OTHERS = Others()
_OTHERS = "Tensor? mask, Tensor? ranges, Tensor? sinks, Tensor? state"


def compute(query, key, value, others, options, saves, codes=False):
    """The result, the logarithms of sums, and with `saves` three times codes and their factor. Tensors are contiguous,
    and their second dimension is that of heads with `heads_first`, else that of positions. With `codes` the result may be
    a CodedResult, if the recipe says so."""
    mask = others.mask
    place = 1 if options.heads_first else 2
    gpu, tensors = is_on_gpu(query), [query, key, value, *(x for x in others if x is not None)]
    unit = linear_ops.get_unit(options.unit) if options.unit >= 0 else None
    ready = attention_ready.shared if unit is None else unit.ready
    described = mask if mask is None else (attention_programs.MASKS[mask.dtype], tuple(size == 1 for size in mask.shape))
    # Few queries have programs of their own.
    queries = query.shape[3 - place]
    told = (options, described, saves, codes, others.ranges is None, others.sinks is None, query.dtype, query.shape[place],
            key.shape[place], query.shape[3], value.shape[3], queries if queries <= attention_programs.FEW else None)
    results = ready.run(told, tensors) if gpu else None
    if results is not None:
        return results if unit is None else unit.finish(results, query.dtype, codes)
    target = get_default_target() if gpu else "cpu"
    format_, transforms = attention_transforms.split(attention_transforms.limit(options.format, options.cap, others.sinks))
    shape = attention_programs.Shape(
        attention_programs.ELEMENTS[query.dtype], query.shape[place], key.shape[place], query.shape[3], value.shape[3],
        *options._replace(format=format_)[:-1], described, saves, others.ranges is not None, others.sinks is not None,
        transforms=transforms)
    if gpu:
        shape = shape._replace(queries=attention_programs.find_queries(shape, query.shape[3 - place]))
    with torch.no_grad():
        if unit is not None:
            return unit.run(shape, target, tensors, codes, told)
        function = attention_programs.get_function(shape, target)
        results = function(*tensors)
        ready.add(told, function, tensors)
        return results


def _infer(query, value, heads_first):
    batches, heads, queries = (query.shape[i] for i in ((0, 1, 2) if heads_first else (0, 2, 1)))
    return (query.new_empty((*query.shape[:3], value.shape[3])),
            query.new_empty((batches, heads, queries), dtype=torch.float32))


def _run_forward(query, key, value, mask, ranges, sinks, state, *options):
    return tuple(compute(query, key, value, Others(mask, ranges, sinks, state), Options(*options), False))


def _infer_forward(query, key, value, mask, ranges, sinks, state, heads_first, *options):
    return _infer(query, value, heads_first)


def _run_saving(query, key, value, mask, ranges, sinks, state, *options):
    return tuple(compute(query, key, value, Others(mask, ranges, sinks, state), Options(*options), True))


def find_code_type(options):
    return attention_programs.CODES[attention_transforms.split(options.format)[0]]


def _infer_factors(x, options, is_value):
    """The shape of an operand's factors."""
    block = attention_transforms.find_block(attention_transforms.split(options.format)[1])
    if not block or is_value and options.accumulate == "fast":
        return 1, 1
    place = 2 if options.heads_first else 1
    return (*x.shape[:place], -(-x.shape[place] // block), *x.shape[place + 1:3], 1)


def _infer_saving(query, key, value, mask, ranges, sinks, state, *options):
    options = Options(*options)
    codes = find_code_type(options)
    saved = [made for x in (query, key, value) for made in (
        x.new_empty(x.shape, dtype=codes), x.new_empty(_infer_factors(x, options, x is value), dtype=torch.float32))]
    return (*_infer(query, value, options.heads_first), *saved)


def widen(query, key, value, factors, dtype, block=0):
    """Numbers of codes, if there are factors: of tensors, or of blocks of so many positions."""
    if not factors:
        return query, key, value
    return tuple(attention_programs.widen(x, factor, dtype, block) for x, factor in zip((query, key, value), factors))


def run_backward(grad, query, key, value, factors, output, lse, mask, ranges, state, sinks, *options):
    """The gradients of query, key and value, which are codes if there are factors."""
    options, renews = Options(*options), False
    block = attention_transforms.find_block(attention_transforms.split(options.format)[1])
    if factors and block and 0 not in (query.numel(), key.numel(), value.numel()):
        # No kernel of a gradient multiplies those.
        gpu = is_on_gpu(query) and output.dtype != torch.float32
        renews = gpu and attention_backward.is_consistent(options.accumulate)
        query, key, value = widen(query, key, value, factors, output.dtype if gpu else torch.float32, block)
        factors = []
    if factors and is_on_gpu(query) and 0 not in (query.numel(), key.numel(), value.numel()):
        is_consistent = attention_backward.is_consistent(options.accumulate)
        if not is_consistent or not attention_backward.takes_codes(query, value, output.dtype, mask is not None):
            renews = is_consistent
            if output.dtype != torch.float32:
                query, key, value = widen(query, key, value, factors, output.dtype)
                factors = []
    rule = attention_backward.Rule(options.scale, options.left, options.right, options.bottom_right, options.cap,
                                   options.dropout)
    grad, query, key, value, output = _transpose(options, grad, query, key, value, output)
    results = attention_backward.run(grad, query, key, value, factors, output, lse, mask, ranges, rule, state, sinks, renews)
    results = attention_transforms.differentiate(results, options.format)
    if options.unit >= 0:
        unit = linear_ops.get_unit(options.unit)
        if unit.steps:
            unit.end_step()
    return tuple(x.contiguous() for x in _transpose(options, *results))


def _infer_backward(grad, query, key, value, factors, output, lse, mask, ranges, state, sinks, *options):
    return tuple(output.new_empty(x.shape) for x in (query, key, value))


# Gradients of query, key and value, which are codes if there are factors.
_backward = operations.define(
    "attention_backward(Tensor grad, Tensor query, Tensor key, Tensor value, Tensor[] factors, Tensor output, "
    f"Tensor lse, Tensor? mask, Tensor? ranges, Tensor? state, Tensor? sinks, {_SCHEMA}) -> (Tensor, Tensor, Tensor)", run_backward, _infer_backward,
    flops=flops.count_attention_backward)


def save(ctx, inputs, output):
    query, key, value, mask, ranges, sinks, state, *ctx.options = inputs
    results, lse, *codes = output
    ctx.mark_non_differentiable(lse, *codes)
    ctx.set_materialize_grads(False)
    tensors = codes[::2] or (query, key, value)
    ctx.count = len(codes) // 2
    # The type of numbers, if the result has codes.
    ctx.coded = results.dtype if isinstance(results, CodedResult) else None
    kept, factors = (results, []) if ctx.coded is None else (results.codes, [results.factor])
    ctx.save_for_backward(*tensors, kept, lse, mask, ranges, sinks, state, *codes[1::2], *factors)


def _differentiate_sinks(grad, output, lse, sinks, heads_first):
    """A sink takes its share of a result from it."""
    lost = (grad.float() * output.float()).sum(-1)
    lost = lost if heads_first else lost.transpose(1, 2)
    share = torch.exp(sinks[:, None] - lse.masked_fill(lse == -torch.inf, torch.inf))
    return -(share * lost).sum((0, 2))


def differentiate(ctx, grad, *others):
    query, key, value, output, lse, mask, ranges, sinks, state, *factors = ctx.saved_tensors
    if grad is None:
        return (None,) * (7 + len(ctx.options))
    if ctx.coded is not None:
        output = coded_results.widen(output, factors.pop(), ctx.coded)
    grads = ctx.backward(make_dense(grad), query, key, value, factors, output, lse, mask, ranges, state,
                         sinks, *ctx.options)
    needed = (x if needs else None for x, needs in zip(grads, ctx.needs_input_grad))
    of_sinks = _differentiate_sinks(grad, output, lse, sinks, ctx.options[0]) if ctx.needs_input_grad[5] else None
    return (*needed, None, None, of_sinks, None, *([None] * len(ctx.options)))


def _differentiate_traced(ctx, grad, *others):
    ctx.backward = _backward
    return differentiate(ctx, grad, *others)


# The result and the logarithms of the sums of exponentials.
forward = operations.define(
    f"attention_forward(Tensor query, Tensor key, Tensor value, {_OTHERS}, {_SCHEMA}) -> (Tensor, Tensor)",
    _run_forward, _infer_forward, (_differentiate_traced, save), flops.count_attention)
# With codes and factors of query, key and value, of which a backward is then.
saving = operations.define(
    f"attention_forward_saving(Tensor query, Tensor key, Tensor value, {_OTHERS}, {_SCHEMA}) -> (Tensor, Tensor, Tensor, Tensor, Tensor, Tensor, Tensor, Tensor)", _run_saving, _infer_saving,
    (_differentiate_traced, save), flops.count_attention)


class _Eager(torch.autograd.Function):
    """The same without operations of PyTorch, which cost the host more."""

    @staticmethod
    def forward(ctx, query, key, value, mask, ranges, sinks, state, *options):
        options, others = Options(*options), Others(mask, ranges, sinks, state)
        results = compute(query, key, value, others, options, options.format is not None, codes=True)
        save(ctx, (query, key, value, *others, *options), results)
        return tuple(results)

    @staticmethod
    def backward(ctx, grad, *others):
        if torch.is_grad_enabled():
            raise UnsupportedError("expected a backward without create_graph, since attention in FP8 has no second "
                                   "derivative")
        ctx.backward = run_backward
        return differentiate(ctx, grad, *others)


def _drop_repeated(mask):
    """A mask without what torch.expand repeats, of four dimensions."""
    for dim in range(4):
        if mask.shape[dim] != 1 and mask.stride(dim) == 0:
            mask = mask.narrow(dim, 0, 1)
    return make_dense(mask)


def attend(query, key, value, others, options):
    """The result and the logarithms of sums, of tensors of batches x heads x positions x columns; a mask has four
    dimensions. `options` say how a program takes tensors, which are copied if they lie otherwise."""
    differentiable = [x for x in (query, key, value, others.sinks) if x is not None]
    saves = torch.is_grad_enabled() and any(x.requires_grad for x in differentiable)
    tensors = [make_dense(x) for x in _transpose(options, query, key, value)]
    mask = None if others.mask is None else _drop_repeated(others.mask)
    others = others._replace(mask=mask)
    if is_recorded() or not is_plain(*tensors):
        operation = saving if saves and options.format else forward
        results = operation(*tensors, *others, *options)
    elif saves:
        results = _Eager.apply(*tensors, *others, *options)
    else:
        results = compute(*tensors, others, options, False, codes=True)
    return _transpose(options, results[0])[0], results[1]
