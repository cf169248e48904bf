"""Layers of which a model asks the type of the weight, to cast activations to it, or with whose weight it computes itself.

Codes are floats of 8 bits to PyTorch, so that `x.to(self.proj.weight.dtype)` would round activations
without a scale, and `F.linear(x, self.proj.weight)` would fail, or be without one. Such layers stay what they are.
"""

import ast
import functools
import inspect
import re
import sys

from torch import nn

# What functions ask that know of quantized models by themselves.
_KNOWS = "_is_quantized"
# Attributes of a weight that are not its values; methods that cast to the type of what they are given;
# functions that multiply; functions that compute nothing.
_PLAIN = {"shape", "size", "ndim", "dim", "numel", "nelement", "device", "get_device", "is_cuda", "is_meta", "requires_grad", "grad",
          "stride", "is_contiguous", "element_size", "is_floating_point", "weight_loader", "register_hook"}
_CASTS = {"to", "type_as"}
_PRODUCTS = {"linear", "matmul", "mm", "bmm", "addmm", "baddbmm", "einsum", "multi_head_attention_forward"}
_READS = {"Parameter", "isinstance", "hasattr", "getattr", "setattr", "id", "type", "print", "is_tensor", "is_floating_point"}
# Functions that are called before or behind all computations.
_SETS_UP = re.compile(r"(^|_)(init|initiali[sz]e|reset|tie|load|save|resize|prune|convert|(un)?merge|(un)?fuse|set|repr|register|"
                      r"get_(in|out)put)(_|$)")


def find_readers(model):
    """{name of a layer: "Class.function", which reads the type of its weight}."""
    return _find(model, "type")


def find_users(model):
    """The same of functions that multiply with its weight, or that hand on its values without calling the layer."""
    return {**_find(model, "values"), **_find(model, "product")}


def _find(model, wanted):
    found = {}
    for prefix, module in model.named_modules():
        for function, path, kind, knows in _find_class_reads(type(module)):
            name = ".".join(filter(None, [prefix, path]))
            if kind == wanted and not knows and _is_there(model, name):
                found.setdefault(name, f"{type(module).__name__}.{function}")
    return found


def tell(model):
    """Says that it is quantized to functions that ask for that."""
    for module in model.modules():
        if any(knows for *_, knows in _find_class_reads(type(module))) and hasattr(module, "config"):
            setattr(module.config, _KNOWS, True)


def _is_there(model, name):
    try:
        return isinstance(model.get_submodule(name), nn.Module)
    except AttributeError:
        return False


@functools.lru_cache(maxsize=None)
def _find_class_reads(cls):
    """(function, path of a submodule, "type", "product" or "values", whether it asks for quantized models), of a class and its bases."""
    found, overrides = [], {}
    for base in cls.__mro__:
        own = {name: inspect.unwrap(value) for name, value in vars(base).items() if inspect.isfunction(value)}
        if base.__module__.partition(".")[0] not in ("torch", "builtins", "fp8"):
            found += [read for read in _find_file_reads(base.__module__).get(base.__qualname__, ())
                      if overrides.get(read[0]) in (None, own.get(read[0]))]
        # What calls that of a base does not take its place.
        overrides.update({name: value for name, value in own.items()
                          if name not in overrides and "super" not in value.__code__.co_names})
    return tuple(found)


@functools.lru_cache(maxsize=None)
def _find_file_reads(module):
    """The same of all classes of a file that are not within others, by their names."""
    try:
        source = inspect.getsource(sys.modules[module])
        if ".weight" not in source:
            return {}
        tree = ast.parse(source)
    except (KeyError, OSError, TypeError, SyntaxError):
        return {}
    return {cls.name: _list_reads(cls) for cls in tree.body if isinstance(cls, ast.ClassDef)}


def _list_reads(cls):
    # Models that call a layer have other ways for what hardly anybody chooses, as Bloom's slow and exact one.
    called = {".".join(_get_path(node.func) or ()) for node in ast.walk(cls) if isinstance(node, ast.Call)}
    return [(function.name, path, kind, _KNOWS in ast.unparse(function))
            for function in cls.body if isinstance(function, ast.FunctionDef)
            for path, kind in _find_paths(function) if kind != "values" or path not in called]


def _find_paths(function):
    """Paths of submodules whose weight a function reads, with what of it."""
    parents = {}
    for node in () if _SETS_UP.search(function.name) else _walk_evaluation(function, parents):
        if isinstance(node, ast.Attribute) and node.attr == "weight" and isinstance(node.ctx, ast.Load):
            path, kind = _get_path(node.value), _get_kind(node, parents)
            if path and kind:
                yield ".".join(path), kind


def _walk_evaluation(node, parents):
    """The node and what is in it, but for what only training does."""
    yield node
    children = ast.iter_child_nodes(node)
    if isinstance(node, ast.If):
        test, negated = node.test, isinstance(node.test, ast.UnaryOp) and isinstance(node.test.op, ast.Not)
        parts = test.values if isinstance(test, ast.BoolOp) and isinstance(test.op, ast.And) else [test.operand if negated else test]
        if any(isinstance(part, ast.Attribute) and part.attr == "training" for part in parts):
            children = node.body if negated else node.orelse
    for child in children:
        parents[child] = node
        yield from _walk_evaluation(child, parents)


def _get_kind(node, parents):
    """What the expression around a weight reads of it: its "type", "values", those of a "product" with all of them, or None."""
    is_whole = True
    while True:
        inner, node = node, parents[node]
        if isinstance(node, ast.Attribute):
            if node.attr == "dtype":
                return "type"
            if node.attr in _PLAIN or node.attr.endswith("_"):  # The latter writes, as initializers do.
                return None
        elif isinstance(node, ast.Call) and inner is not node.func:
            name = _get_last_name(node.func) or ""
            if isinstance(node.func, ast.Attribute) and name in _CASTS:
                return "type"
            if name in _PRODUCTS and is_whole:
                return "product"
            return None if name in _READS or name.endswith("_") else "values"
        elif isinstance(node, ast.Compare) and isinstance(node.ops[0], (ast.Is, ast.IsNot)):
            return None
        elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.MatMult) and is_whole:
            return "product"
        elif isinstance(node, ast.Subscript):
            is_whole = False
        elif not isinstance(node, (ast.Call, ast.List, ast.Tuple, ast.keyword, ast.Starred)):
            return "values"


def _get_last_name(node):
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else None


def _get_path(node):
    """The names behind `self`, or None."""
    if isinstance(node, ast.Name):
        return [] if node.id == "self" else None
    if isinstance(node, ast.Attribute):
        path, last = _get_path(node.value), node.attr
    elif isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant):
        path, last = _get_path(node.value), str(node.slice.value)
    else:
        return None
    return None if path is None else [*path, last]
