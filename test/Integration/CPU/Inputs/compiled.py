"""Compiles a module to a shared library and calls it on numpy arrays."""

import ctypes
import subprocess
from pathlib import Path

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


def build(module, passes, tools, directory, libraries=()):
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
        [tools.clang, "-O3", "-march=native", "-fPIC", "-shared", "-Wno-override-module"]
        + [str(source), "-o", str(library), *map(str, libraries)]
        + [f"-Wl,-rpath,{Path(path).parent}" for path in libraries],
        check=True,
    )
    return ctypes.CDLL(str(library))


def memref(array):
    """The descriptor of an array, which must outlive it."""

    class MemRef(ctypes.Structure):
        _fields_ = [
            ("allocated", ctypes.c_void_p),
            ("data", ctypes.c_void_p),
            ("offset", ctypes.c_int64),
            ("sizes", ctypes.c_int64 * array.ndim),
            ("strides", ctypes.c_int64 * array.ndim),
        ]

    strides = [stride // array.itemsize for stride in array.strides]
    address = array.ctypes.data
    return MemRef(
        address,
        address,
        0,
        (ctypes.c_int64 * array.ndim)(*array.shape),
        (ctypes.c_int64 * array.ndim)(*strides),
    )


def bind(library, name, *arguments):
    """A call without arguments, for timing; floats are passed as f32."""
    function = getattr(library, f"_mlir_ciface_{name}")
    held = [
        ctypes.c_float(a) if isinstance(a, float) else ctypes.byref(memref(a))
        for a in arguments
    ]
    return lambda: function(*held)
