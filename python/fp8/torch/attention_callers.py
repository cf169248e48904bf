"""Which modules call attention, by what their code names."""

import dis
import functools
import inspect
import types

from torch import nn
from torch.nn import functional as F

# What code that calls attention names.
_CALLS = {"scaled_dot_product_attention", "ALL_ATTENTION_FUNCTIONS"}
# How many functions away a call is looked for.
_DEPTH = 3
# Bases whose code says nothing of the module's own: all models of transformers have the last one.
_OTHERS = "torch.nn.", "transformers.modeling_utils"


def _find_function(value):
    """The function that a value runs, or None."""
    while isinstance(value, functools.partial):
        value = value.func
    value = getattr(value, "__func__", value)
    value = inspect.unwrap(value) if isinstance(value, types.FunctionType) else value
    return value if isinstance(value, types.FunctionType) else None


def _list_code(code):
    yield code
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from _list_code(constant)


def _list_cells(function):
    for cell in function.__closure__ or ():
        try:
            yield cell.cell_contents
        except ValueError:  # It has no contents yet.
            continue


def _list_values(function, names):
    """What a function may call: by names of its file, of what it encloses, and of files that it names."""
    own = {each.argval for code in _list_code(function.__code__) for each in dis.get_instructions(code)
           if each.opname == "LOAD_GLOBAL"}
    found = [function.__globals__[name] for name in own if name in function.__globals__]
    found += _list_cells(function)
    for value in list(found):
        if isinstance(value, types.ModuleType) and value.__name__.partition(".")[0] != "torch":
            found += [vars(value)[name] for name in names if name in vars(value)]
    return found


def _find_method(cls, name):
    for base in cls.__mro__:
        if name in vars(base):
            return None if base.__module__.startswith(_OTHERS) else _find_function(vars(base)[name])
    return None


def _reaches(function, cls=None, depth=_DEPTH, seen=None):
    """Whether a function calls attention, or names one that does, or a method of a class that does."""
    seen = set() if seen is None else seen
    if function is None or function in seen or function.__module__ == "torch" or (
            function.__module__ or "").startswith("torch."):
        return False
    seen.add(function)
    names = {name for code in _list_code(function.__code__) for name in code.co_names}
    if names & _CALLS:
        return True
    values = _list_values(function, names)
    if any(value is F.scaled_dot_product_attention or type(value).__name__ == "AttentionInterface" for value in values):
        return True
    if depth == 0:
        return False
    if cls is not None and any(_reaches(_find_method(cls, name), cls, depth, seen) for name in names):
        return True
    return any(_reaches(_find_function(value), None, depth - 1, seen) for value in values)


@functools.lru_cache(maxsize=4096)
def _has_call(cls):
    """Whether the forward of a class calls attention."""
    return _reaches(_find_method(cls, "forward"), cls)


@functools.lru_cache(maxsize=4096)
def _mentions(cls):
    """Whether any function of a class does."""
    return any(_reaches(_find_function(value), None, 1) for base in cls.__mro__
               if not base.__module__.startswith(_OTHERS) for value in vars(base).values())


def _holds_caller(module):
    """Whether a module has something that is no module and calls attention, as diffusers' processors are."""
    for value in vars(module).values():
        if value is F.scaled_dot_product_attention or _reaches(_find_function(value)):
            return True
        if callable(value) and not isinstance(value, (nn.Module, type)) and _mentions(type(value)):
            return True
    return False


def _may_call(module):
    cls = getattr(type(module), "_fp8_class", type(module))
    return isinstance(module, nn.MultiheadAttention) or _has_call(cls) or _mentions(cls) or _holds_caller(module)


def calls_attention(module):
    """Whether the forward of a module, or what it calls, names PyTorch's function or what transformers chooses one by. Of
    one without others that do, another method or something that it holds may name it as well."""
    if isinstance(module, nn.MultiheadAttention) or _has_call(getattr(type(module), "_fp8_class", type(module))):
        return True
    return _may_call(module) and not any(map(_may_call, list(module.modules())[1:]))
