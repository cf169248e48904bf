"""Compiling what a model needs before it is called.

    fp8.torch.prepare(model, rows=[1, 32, 4096])

Beside a checkpoint it can be kept, compiled:

    fp8.torch.prepare(model, calls=[lambda: compiled(tokens)])
    fp8.torch.save_programs("checkpoint")
    fp8.torch.prepare(model, programs="checkpoint")     # In another process.
"""

import dataclasses
import functools
import os
import time
import warnings
from collections import namedtuple
from concurrent.futures import ThreadPoolExecutor

import torch

from fp8 import programs as saved
from fp8.errors import ArgumentError
from fp8.torch import (
    code_order,
    converted,
    expected,
    expert_programs,
    input_gradient,
    linear_programs,
    modules,
    saved_graphs,
    schemes,
)
from fp8.torch.attention_scales import AttentionScales
from fp8.torch.experts import QuantizedExperts
from fp8.torch.gathered import is_parallel
from fp8.torch.quantized_linear import QuantizedLinear, expect_linear

# How many programs there are now for a model's layers, what took `seconds`, why some `left`
# layers compile when they are called, by name, and how many programs were compiled, by layers and by
# calls, and not found on disk.
Prepared = namedtuple("Prepared", "programs seconds left compiled")


def prepare(model, rows=(), dtype=None, device=None, workers=None, calls=(), programs=None):
    """Compiles the programs of a model's layers, in parallel, or takes them from the cache. A call
    that compiles another one for such a layer is a warning, which says for what.

    - rows: how many rows layers for training are called with, those of batch and length together;
      up to four numbers have programs of their own, None stands for any. Layers for inference
      have one program for all, and experts on a GPU some for few;
    - dtype: of activations; by default torch.autocast's, or that of the model's parameters;
    - device: where it will be called, by default where its parameters are;
    - workers: how many programs are compiled at a time, by default one for each processor;
    - calls: functions that call the model as it will be called, without arguments. What only a call
      shows is compiled by them: parts of torch.compile's graphs, attention, what a cache appends. A
      later call that compiles such a thing is a warning, too;
    - programs: a checkpoint's directory, whose programs (`save_programs`) are taken in place of
      compiling. They are code that runs: of anybody's whom the caller trusts.

    Returns a Prepared. Raises ArgumentError for what is no model with such layers, CompileError, and
    FileError for programs that are not there or were changed.
    """
    if not all(map(callable, calls)):
        raise ArgumentError(f"expected calls to be functions, but got {calls!r}")
    if not isinstance(model, torch.nn.Module):
        raise ArgumentError(f"expected a module, but got {type(model).__name__}")
    rows = [rows] if rows is None or isinstance(rows, int) else list(rows)
    if not all(each is None or isinstance(each, int) and each > 0 for each in rows):
        raise ArgumentError(f"expected rows to be numbers above 0 or None, but got {rows!r}")
    device = torch.device(device) if device is not None else next(
        (value.device for value in model.parameters() if value.device.type != "meta"),
        torch.device("cpu"))
    dtype = dtype or _find_dtype(model, device)
    if dtype not in schemes.ELEMENTS:
        raise ArgumentError(f"expected activations of f32, bf16 or f16, but got {dtype}")
    jobs, left, known = {}, {}, set()
    for name, module in model.named_modules():
        if isinstance(module, QuantizedLinear):
            jobs.update(_list_inference(module, dtype, device, _has_adapters(model)))
        elif isinstance(module, QuantizedExperts):
            jobs.update(_list_experts(module, dtype, device))
        elif isinstance(module, modules.Linear):
            _add_training(name, module, rows, dtype, device, jobs, left)
        elif converted.is_converted(module) and converted.is_conv1d(module):
            known.add(name)
            _add_conv1d(name, module, rows, dtype, device, jobs, left)
    left.update({name: "of what its attention is, is not known" if isinstance(layer, AttentionScales)
                 else "what it multiplies is not known"
                 for name, layer in modules.get_layers(model).items()
                 if not isinstance(layer, modules.Linear) and name not in known})
    if not jobs and not left:
        raise ArgumentError("expected a model with layers in FP8, but got none")
    start = time.perf_counter()
    if programs is not None:
        saved.attach(programs, trusts=True, take_graphs=saved_graphs.take)
    with expected.preparing() as count_compiled:
        with ThreadPoolExecutor(workers or os.cpu_count()) as pool:
            for future in [pool.submit(job) for job in jobs.values()]:
                future.result()
        for call in calls:
            call()
        compiled = count_compiled()
    if left:
        warnings.warn(f"fp8: compiled when they are called: {_name(left)}", stacklevel=2)
    return Prepared(len(jobs), time.perf_counter() - start, left, compiled)


def save_programs(directory):
    """Keeps all that this process has compiled, or found in the cache, beside a checkpoint, as
    `fp8_programs`, and what Inductor has made of graphs. `prepare(model, programs=directory)` takes it from there, as do `load_pretrained`, and
    from_pretrained of transformers with fp8.transformers, where the same user has written it: for the same
    compiler and GPU. Returns how many programs that are. Raises FileError."""
    return saved_graphs.save(directory)


def _name(left):
    names = [f"{name} ({reason})" for name, reason in left.items()]
    return ", ".join(names[:5]) + (" and others" if len(names) > 5 else "")


def _find_dtype(model, device):
    if device.type in ("cpu", "cuda") and torch.is_autocast_enabled(device.type):
        return torch.get_autocast_dtype(device.type)
    return next((value.dtype for value in model.parameters() if value.dtype in schemes.ELEMENTS
                 and value.ndim > 1), torch.float32)


def _has_adapters(model):
    """Whether a backward goes through its quantized layers."""
    return any(value.requires_grad for value in model.parameters())


def _list_inference(module, dtype, device, has_gradient):
    """What compiles a layer's programs, by what they are for."""
    scheme = code_order.find_scheme(str(module.scheme), device, dtype)
    n, k = module.out_features, module.in_features
    bias = None if module.bias is None else schemes.ELEMENTS[module.bias.dtype]
    target = "auto" if device.type == "cuda" else "cpu"
    element = schemes.ELEMENTS[dtype]
    key = scheme, n, k, element, bias, target
    sizes = [n]
    if module._row is not None and module is module._row.layers[0]:
        sizes += module._row.find_sizes()
    jobs = {(scheme, size, *key[2:]): functools.partial(expect_linear, scheme, size, *key[2:])
            for size in sizes}
    if has_gradient:
        plain = str(dataclasses.replace(module.scheme, arranged=False))
        jobs["gradient", *key] = lambda: input_gradient.compile_gradient(plain, n, k, element, target)
    return jobs


def _list_experts(module, dtype, device):
    """The same of experts, on a GPU with programs for few rows, too."""
    element, target = schemes.ELEMENTS[dtype], "auto" if device.type == "cuda" else "cpu"
    counts = (*expert_programs.ROWS, None) if device.type == "cuda" else (None,)
    kinds = [(tuple(shape._replace(scheme=code_order.find_scheme(shape.scheme, device, dtype)) for shape in shapes), gate)
             for shapes, gate in module.programs]
    return {(*kind, element, rows, target): functools.partial(
                expert_programs.compile, *kind, element, rows, target)
            for kind in kinds for rows in counts}


def _add_training(name, module, rows, dtype, device, jobs, left):
    """Adds what compiles a layer's programs, or why there are none."""
    weight = module.weight
    outputs, inputs = (weight.to_local() if is_parallel(weight) else weight).shape
    shape = linear_programs.Shape(None, inputs, outputs, dtype,
                                  module.bias is not None, module._cache_weights)
    _add(name, module.recipe, module._target, module._options, shape, rows, device, jobs, left)


def _add_conv1d(name, module, rows, dtype, device, jobs, left):
    """The same of transformers' Conv1D, whose weight is the other way round."""
    product = module._fp8_products["weight"]
    shape = linear_programs.Shape(None, module.nx, module.nf, dtype, module.bias is not None,
                                  product._cache_weights, True)
    recipe = product.recipe
    if recipe is not None and rows:
        reason = product.find_reason(recipe, "transposed", (module.nx, module.nf), dtype)
        if reason:
            return  # It is PyTorch's, which `summarize` says.
    _add(name, recipe, product._target, product._options, shape, rows, device, jobs, left)


def _add(name, recipe, target, options, shape, rows, device, jobs, left):
    if recipe is None:
        left[name] = "its recipe is that of autocast"
    elif not rows:
        left[name] = "its rows are not known: rows= says how many"
    else:
        programs = linear_programs.get_programs(recipe, target, options)
        for each in rows:
            jobs[programs, shape._replace(rows=each), device.type] = functools.partial(
                programs.prepare, shape._replace(rows=each), device.type)
