"""Compiles a module to a shared library and calls it on numpy arrays."""

import ctypes
import subprocess
from pathlib import Path

import numpy as np

from fp8 import abi

LOOPS_TO_LLVM = [
    "--convert-linalg-to-loops",
    "--convert-scf-to-cf",
    "--finalize-memref-to-llvm",
    "--convert-to-llvm",
    "--reconcile-unrealized-casts",
]


def add_arguments(parser):
    parser.add_argument("--fp8-opt", default="fp8-opt")
    parser.add_argument("--mlir-translate", default="mlir-translate-22")
    parser.add_argument("--clang", default="clang-22")


def build(module, passes, tools, directory, libraries=(), optimize="-O3"):
    """Runs `passes` on MLIR text that has `llvm.emit_c_interface` functions."""
    commands = [
        [tools.fp8_opt, *passes],
        [tools.mlir_translate, "--mlir-to-llvmir"],
    ]
    for command in commands:
        module = subprocess.run(
            command, input=module, stdout=subprocess.PIPE, text=True, check=True
        ).stdout
    source, library = Path(directory, "module.ll"), Path(directory, "module.so")
    source.write_text(module)
    subprocess.run(
        [tools.clang, optimize, "-march=native", "-fPIC", "-shared", "-Wno-override-module"]
        + [str(source), "-o", str(library), *map(str, libraries)]
        + [f"-Wl,-rpath,{Path(path).parent}" for path in libraries],
        check=True,
    )
    return ctypes.CDLL(str(library))


def get_descriptor(rank):
    """The class of MLIR's descriptors of that rank."""
    return getattr(abi.structs, f"fp8rt_tensor{rank}")


def memref(array):
    """The descriptor of an array, which must outlive it."""
    address = array.ctypes.data
    strides = tuple(stride // array.itemsize for stride in array.strides)
    sizes = [array.shape, strides] if array.ndim else []
    return get_descriptor(array.ndim)(address, address, 0, *sizes)


def bind(library, name, *arguments):
    """A call without arguments, for timing; floats are passed as f32."""
    function = getattr(library, f"_mlir_ciface_{name}")
    held = [
        ctypes.c_float(a) if isinstance(a, float) else ctypes.byref(memref(a))
        for a in arguments
    ]
    return lambda: function(*held)


def call(library, name, arguments, results):
    """Calls a function of tensors, of structures, which it takes by pointer, and of
    C's numbers; `results` has the dtype and rank of each."""
    fields = [(f"result{i}", get_descriptor(rank)) for i, (_, rank) in enumerate(results)]
    returned = type("Results", (ctypes.Structure,), {"_fields_": fields})()
    held = [memref(a) if isinstance(a, np.ndarray) else a for a in arguments]
    function = getattr(library, f"_mlir_ciface_{name}")
    structures = (np.ndarray, ctypes.Structure)
    function(ctypes.byref(returned), *(
        ctypes.byref(h) if isinstance(a, structures) else a for a, h in zip(arguments, held)))
    outputs, allocations = [], set()
    for (dtype, rank), (field, _) in zip(results, fields):
        result = getattr(returned, field)
        itemsize = np.dtype(dtype).itemsize
        shape, strides = (result.sizes, result.strides) if rank else ([], [])
        shape, strides = list(shape), [s * itemsize for s in strides]
        # Everything up to the last element, wherever that is.
        extent = itemsize + sum(max(d - 1, 0) * s for d, s in zip(shape, strides))
        start = (result.data or 0) + result.offset * itemsize
        raw = ctypes.string_at(start, extent if 0 not in shape else 0)
        outputs.append(np.ndarray(shape, dtype, bytearray(raw), strides=strides).copy())
        allocations.add(result.allocated)
    # A function may return an argument.
    allocations -= {a.ctypes.data for a in arguments if isinstance(a, np.ndarray)}
    libc = ctypes.CDLL(None)
    for address in allocations:
        libc.free(ctypes.c_void_p(address))
    return outputs
