"""Layers of which a model asks the type of the weight, to cast activations to it.

Codes are floats of 8 bits to PyTorch, so that `x.to(self.proj.weight.dtype)` would round activations
without a scale. Such layers stay what they are.
"""

import ast
import functools
import inspect
import sys

from torch import nn

# What functions ask that know of quantized models by themselves.
_KNOWS = "_is_quantized"


def find_readers(model):
    """{name of a layer: "Class.function", which reads the type of its weight}."""
    readers = {}
    for prefix, module in model.named_modules():
        for function, path, knows in _find_class_reads(type(module)):
            name = ".".join(filter(None, [prefix, path]))
            if not knows and _is_there(model, name):
                readers.setdefault(name, f"{type(module).__name__}.{function}")
    return readers


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
    """(function, path of a submodule, whether it asks for quantized models), of a class and its bases."""
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
        if ".weight.dtype" not in source:
            return {}
        tree = ast.parse(source)
    except (KeyError, OSError, TypeError, SyntaxError):
        return {}
    return {cls.name: [(function.name, path, _KNOWS in ast.unparse(function))
                       for function in cls.body if isinstance(function, ast.FunctionDef)
                       for path in _find_paths(function)]
            for cls in tree.body if isinstance(cls, ast.ClassDef)}


def _find_paths(function):
    for node in ast.walk(function):
        if (isinstance(node, ast.Attribute) and node.attr == "dtype"
                and isinstance(node.value, ast.Attribute) and node.value.attr == "weight"):
            path = _get_path(node.value.value)
            if path:
                yield ".".join(path)


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
