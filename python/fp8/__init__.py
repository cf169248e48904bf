"""FP8 programs: compiled from MLIR, called with arrays of NumPy, PyTorch and JAX.

    program = fp8.compile("linear.mlir", recipe=fp8.Float8CurrentScaling())
    y = program(x, w, bias)
    program.explain()

docs/Python.md goes through all of it.
"""

import importlib
import warnings
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fp8 import formats, recipes, tensors
    from fp8.casts import Quantized, dequantize, quantize
    from fp8.compiler import compile, emit, get_options
    from fp8.errors import (ArgumentError, BusyError, CompileError, DeviceError, Diagnostic, Error,
                            FileError, MismatchError, NotFoundError, OutOfMemoryError,
                            UnsupportedError)
    from fp8.groups import create_nccl_group, create_nccl_id, set_group
    from fp8.program import Function, Program, ValueInfo, load
    from fp8.recipes import (DelayedScaling, Float8BlockScaling, Float8CurrentScaling, Format,
                             MXFP8BlockScaling, NVFP4BlockScaling, Recipe, RowwiseScaling,
                             StaticScaling)
    from fp8.remarks import Remark
    from fp8.state import Slot, State
    from fp8.support import Support, check_support

# What comes from where. Imported when it is asked for: the compiler is a large library, which
# those who only want fp8.tensors or fp8.recipes do without.
_MODULES = {
    "casts": ("Quantized", "dequantize", "quantize"),
    "compiler": ("compile", "emit", "get_options"),
    "errors": ("ArgumentError", "BusyError", "CompileError", "DeviceError", "Diagnostic", "Error",
               "FileError", "MismatchError", "NotFoundError", "OutOfMemoryError",
               "UnsupportedError"),
    "groups": ("create_nccl_group", "create_nccl_id", "set_group"),
    "program": ("Function", "Program", "ValueInfo", "load"),
    "recipes": ("DelayedScaling", "Float8BlockScaling", "Float8CurrentScaling", "Format",
                "MXFP8BlockScaling", "NVFP4BlockScaling", "Recipe", "RowwiseScaling",
                "StaticScaling"),
    "remarks": ("Remark",),
    "state": ("Slot", "State"),
    "support": ("Support", "check_support"),
}
# What names of today were before; read until 0.3.
_FORMER = {"Port": "ValueInfo"}
_SUBMODULES = ("formats", "recipes", "tensors")
_ORIGINS = {name: module for module, names in _MODULES.items() for name in names}

__all__ = sorted({*_ORIGINS, *_SUBMODULES})


def __getattr__(name):
    if name in _SUBMODULES:
        return importlib.import_module(f"fp8.{name}")
    if name in _FORMER:
        warnings.warn(f"fp8.{name} is called fp8.{_FORMER[name]} now", DeprecationWarning,
                      stacklevel=2)
        return __getattr__(_FORMER[name])
    module = _ORIGINS.get(name)
    if module is None:
        raise AttributeError(f"module 'fp8' has no attribute '{name}'")
    value = getattr(importlib.import_module(f"fp8.{module}"), name)
    globals()[name] = value
    return value


def __dir__():
    return sorted({*globals(), *__all__})
