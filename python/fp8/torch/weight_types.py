"""Layers of which a model asks the type of the weight, to cast activations to it, or whose weight it multiplies with.

Codes are floats of 8 bits to PyTorch, so that `x.to(self.proj.weight.dtype)` would round activations
without a scale, and `F.linear(x, self.proj.weight)` would fail, or be without one. Such layers stay what they are.
"""

import ast
import functools
import inspect
import sys

from torch import nn

# What functions ask that know of quantized models by themselves.
_KNOWS = "_is_quantized"
# Functions that multiply with what they are given; and what is still a weight.
_PRODUCTS = {"linear", "matmul", "mm", "bmm", "addmm", "baddbmm", "einsum", "multi_head_attention_forward"}
_VIEWS = {"T", "mT", "data", "t", "transpose", "permute", "to", "type_as", "contiguous", "unsqueeze", "reshape", "view", "detach"}


def find_readers(model):
    """{name of a layer: "Class.function", which reads the type of its weight}."""
    return _find(model, "type")


def find_multipliers(model):
    """The same of functions that multiply with its weight."""
    return _find(model, "product")


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
    """(function, path of a submodule, "type" or "product", whether it asks for quantized models), of a class and its bases."""
    found = []
    for base in cls.__mro__:
        if base.__module__.partition(".")[0] not in ("torch", "builtins", "fp8"):
            found += _find_file_reads(base.__module__).get(base.__qualname__, ())
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
    return {cls.name: [(function.name, path, kind, _KNOWS in ast.unparse(function))
                       for function in cls.body if isinstance(function, ast.FunctionDef)
                       for path, kind in _find_paths(function)]
            for cls in tree.body if isinstance(cls, ast.ClassDef)}


def _find_paths(function):
    """Paths of submodules whose weight a function reads, with what for."""
    for node in ast.walk(function):
        if isinstance(node, ast.Attribute) and node.attr == "dtype":
            yield from _read(node.value, "type")
        elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.MatMult):
            for operand in (node.left, node.right):
                yield from _read(_skip_views(operand), "product")
        elif isinstance(node, ast.Call) and _get_last_name(node.func) in _PRODUCTS:
            for operand in (*node.args, *(keyword.value for keyword in node.keywords)):
                yield from _read(_skip_views(operand), "product")


def _read(node, kind):
    if isinstance(node, ast.Attribute) and node.attr == "weight":
        path = _get_path(node.value)
        if path:
            yield ".".join(path), kind


def _skip_views(node):
    """What a view or a conversion is of."""
    while True:
        inner = node.func if isinstance(node, ast.Call) else node
        if not (isinstance(inner, ast.Attribute) and inner.attr in _VIEWS):
            return node
        node = inner.value


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
