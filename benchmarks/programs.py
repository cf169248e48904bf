"""Compiled programs: making them here, calling them on a machine without the compiler.

Benchmarks of them share their options: `--compile-only` makes the programs in a folder,
`--programs` measures those of a folder, and without either they are made and measured.
"""

import argparse
import ctypes
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "python"))

from fp8 import abi  # noqa: E402

# ===----------------------------------------------------------------------===
# Here
# ===----------------------------------------------------------------------===


def make_parser(rounds=None):
    """A parser of the options that all have; `rounds` are measured if nothing is said."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--build-dir", type=Path, default=ROOT / "build")
    parser.add_argument("--programs", type=Path)
    parser.add_argument("--compile-only", action="store_true")
    if rounds:
        parser.add_argument("--rounds", type=int, default=rounds)
    parser.add_argument("--out", type=Path)
    return parser


def parse_shapes(text):
    """Reads an option: MxNxK,..."""
    return [tuple(map(int, part.split("x"))) for part in text.split(",")]


def get_name(shape):
    return "x".join(map(str, shape))


def tensor_type(shape, element):
    return f"tensor<{get_name(shape)}x{element}>"


def make_programs(args, compile_programs):
    """The folder with the programs; none if they were all that was asked for."""
    folder = (args.programs or Path(tempfile.mkdtemp())).absolute()
    folder.mkdir(parents=True, exist_ok=True)
    if args.compile_only or not args.programs:
        compile_programs(folder)
    if not args.compile_only:
        return folder
    copy_libraries(args.build_dir, folder)
    return None


def compile_program(build, source, path, *options, stderr=None):
    subprocess.run([build / "bin/fp8-compile", source, "-o", path, "--cpu=x86-64-v3", *options],
                   check=True, stderr=stderr)


def list_work(build, source, *options):
    """What each function of a program for a GPU puts into its stream: kernels by name,
    and `copy`."""
    text = subprocess.run([build / "bin/fp8-compile", source, "--emit=mlir",
                           "--compile-to=kernels", *options],
                          check=True, text=True, capture_output=True).stdout
    work = {}
    for function, kernel, copy in re.findall(
            r"^ *(?:func\.func @(\w+)|(?:fp8_gpu\.launch|gpu\.launch_func) +@\w+::@(\w+)|"
            r"(memref\.copy) )", text, re.MULTILINE):
        if function:
            work[function] = []
        else:
            list(work.values())[-1].append(kernel or "copy")
    return work


def copy_libraries(build, folder):
    """libfp8rt.so and what other machines may lack of what it needs."""
    library = build / "lib/libfp8rt.so"
    shutil.copy(library, folder)
    listed = subprocess.run(["ldd", library], check=True, text=True, capture_output=True).stdout
    for name, path in re.findall(r"(\S+) => (/\S+)", listed):
        if not re.match(r"lib(c|m|dl|pthread|rt|stdc\+\+|gcc_s)\.so", name):
            shutil.copy(path, folder / name)


# ===----------------------------------------------------------------------===
# There
# ===----------------------------------------------------------------------===


def open_library(build, folder):
    """That of the folder, with the libraries that lie there, or the build's."""
    if not (folder / "libfp8rt.so").exists():
        return abi.Library(build / "lib/libfp8rt.so")
    waiting = [path for path in folder.glob("lib*.so.*")]
    while waiting:  # In an order in which each finds what it needs.
        failed = []
        for path in waiting:
            try:
                ctypes.CDLL(str(path), mode=ctypes.RTLD_GLOBAL)
            except OSError as error:
                failed.append(path)
                message = error
        if len(failed) == len(waiting):
            raise message
        waiting = failed
    return abi.Library(folder / "libfp8rt.so")


def sizes(info):
    return [info.sizes[i] for i in range(info.rank)]


def elements(info):
    count = 1
    for size in sizes(info):
        count *= size
    return count


def tensor(extents, address):
    """A descriptor of a tensor in row-major order."""
    descriptor = getattr(abi.structs, f"fp8rt_tensor{len(extents)}")(address, address, 0)
    stride = 1
    for i in reversed(range(len(extents))):
        descriptor.sizes[i], descriptor.strides[i] = extents[i], stride
        stride *= extents[i]
    return descriptor


def pointers(values):
    return (ctypes.c_void_p * len(values))(*[ctypes.addressof(value) for value in values])


class Function:
    def __init__(self, program, info):
        self.program, self.info, self.name = program, info, info.name.decode()
        self.arguments = [info.arguments[i] for i in range(info.num_arguments)]
        self.results = [info.results[i] for i in range(info.num_results)]

    def call(self, arguments, state, context):
        """The descriptors of new tensors, for the caller to free."""
        results = [getattr(abi.structs, f"fp8rt_tensor{info.rank}")() for info in self.results]
        self.program.library.fp8rt_program_call(
            ctypes.byref(self.info), pointers(arguments), pointers(results), state, context)
        return results


class Program:
    def __init__(self, library, path):
        self.library, self.handle = library, ctypes.c_void_p()
        self.info = ctypes.POINTER(abi.structs.fp8rt_program_info)()
        library.fp8rt_program_open(str(path).encode(), ctypes.byref(self.handle))
        library.fp8rt_program_get_info(self.handle, ctypes.byref(self.info))
        info = self.info.contents
        functions = [Function(self, info.functions[i]) for i in range(info.num_functions)]
        self.functions = {function.name: function for function in functions}
        self.has_state = info.num_slots > 0

    def create_state(self):
        state = ctypes.c_uint64()
        self.library.fp8rt_program_create_state(self.info, ctypes.byref(state))
        return state

    def update(self, state, context):
        self.library.fp8rt_program_update_state(self.info, state, context)
