"""Our kernels: loading them, and launching one on a problem, both through
libfp8rt, which reads how a kernel is launched from what the compiler wrote."""

import ctypes
import json
import re
import sys
from pathlib import Path

import torch

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "python"))

from fp8 import abi  # noqa: E402
from matmul.program import has_inner_rows  # noqa: E402

DEVICE = 0
NUMBERS = ("tile_m", "tile_n", "stages", "consumers", "split_k", "cluster_m",
           "cluster_n", "group")
DEFAULTS = {"consumers": 2, "split_k": 1, "cluster_m": 1, "cluster_n": 1, "group": 16}


def open_library(path=None):
    """That of `path`, or the one beside this folder: of a bundle or of a build."""
    if path:
        return abi.Library(path)
    places = [ROOT / "lib/libfp8rt.so", ROOT / "build/lib/libfp8rt.so"]
    found = [place for place in places if place.exists()]
    if not found:
        raise RuntimeError(f"expected one of {', '.join(map(str, places))}, but found none")
    return abi.Library(found[0])


def describe(tensor, rank):
    """A tensor as fp8rt_kernel_argument; dimensions beyond its own or the kernel's
    are of one element."""
    while tensor.dim() > rank:
        tensor = tensor[0]
    while tensor.dim() < rank:
        tensor = tensor[None]
    argument = abi.structs.fp8rt_kernel_argument(data=tensor.data_ptr())
    for i in range(rank):
        argument.sizes[i], argument.strides[i] = tensor.shape[i], tensor.stride(i)
    return argument


def stored(problem, name):
    """The tensor that a kernel takes for an argument."""
    if name.startswith("operand"):
        if problem.spec["epilogue"] == "accumulate":  # In place.
            return problem.result[0]
        return problem.operands[int(name[7:])]
    if name == "d":
        return problem.result
    tensor = getattr(problem, name)
    if name in ("a", "b") and problem.transposed(name):
        return tensor.transpose(1, 2)
    if name.startswith("scale_") and has_inner_rows(problem.spec, name[-1]):
        return tensor.transpose(-2, -1)
    return tensor


class Kernel:
    def __init__(self, library, module, name, info):
        self.library, self.name = library, name
        self.config, self.launch = info["config"], info["launch"]
        self.number = {key: self.find(rf"{key} = (\d+)") or DEFAULTS.get(key, 0)
                       for key in NUMBERS}
        self.swapped = "swap_ab" in self.config
        self.split = self.number["split_k"]
        self.stores_in_bulk = "direct" not in self.config
        function, self.handle = ctypes.c_uint64(), ctypes.c_void_p()
        library.fp8rt_module_get_function(module, name.encode(), ctypes.byref(function))
        text = json.dumps(self.launch).encode()
        library.fp8rt_kernel_create(function, text, len(text), ctypes.byref(self.handle))

    def find(self, pattern):
        found = re.search(pattern, self.config)
        return int(found.group(1)) if found else None

    def label(self):
        marks = "pp" * ("ping_pong" in self.config) + "swap" * self.swapped
        split = f"k{self.split}" if self.split > 1 else ""
        split += "cluster" * ("cluster_k = true" in self.config)
        rows, cols = self.number["cluster_m"], self.number["cluster_n"]
        if self.swapped:
            rows, cols = cols, rows
        cluster = f"x{rows}" if rows > 1 else ""
        cluster += f"c{cols}" if cols > 1 else ""
        return f"{self.number['tile_m']}x{self.number['tile_n']}{marks}{split}{cluster}"

    def fits(self, problem):
        """Bulk stores need rows of 16 bytes; those of operands with their rows
        innermost, too."""
        row = problem.n * problem.result.element_size()
        if self.stores_in_bulk and row % 16:
            return False
        for name, rows in (("a", problem.m), ("b", problem.n)):
            if problem.transposed(name) and rows % 8:
                return False
        return True

    def workspaces(self, arguments):
        """Zeros; kernels leave those that must be zeros as they were."""
        size = ctypes.c_uint64()
        tensors = []
        for i in range(self.library.fp8rt_kernel_get_num_workspaces(self.handle)):
            self.library.fp8rt_kernel_get_workspace_bytes(
                self.handle, arguments, i, ctypes.byref(size))
            tensors.append(torch.zeros(size.value, device="cuda", dtype=torch.uint8))
        return tensors

    def bind(self, problem):
        """A function that launches the kernel on the current stream."""
        tensors = [stored(problem, entry["name"]) for entry in self.launch["arguments"]]
        described = [describe(tensor, entry["rank"])
                     for tensor, entry in zip(tensors, self.launch["arguments"])]
        arguments = (abi.structs.fp8rt_kernel_argument * len(described))(*described)
        scale = ctypes.c_float(problem.scale)  # The only scalar of any epilogue.
        captures = (ctypes.c_void_p * 1)(ctypes.addressof(scale))
        spaces = self.workspaces(arguments)
        workspaces = (ctypes.c_void_p * max(1, len(spaces)))(
            *[space.data_ptr() for space in spaces])
        launch_kernel, handle = self.library.fp8rt_kernel_launch, self.handle

        def launch():
            stream = torch.cuda.current_stream().cuda_stream
            launch_kernel(handle, arguments, captures, workspaces, stream)

        launch.keep = (tensors, scale, spaces)
        return launch


def load(folder, names, library=None):
    """The kernels of each kind; they stay loaded as long as the process lives."""
    library = open_library(library)
    kernels = {}
    for name in names:
        code, module = (folder / f"{name}.cubin").read_bytes(), ctypes.c_uint64()
        library.fp8rt_module_load(DEVICE, code, len(code), ctypes.byref(module))
        infos = json.loads((folder / f"{name}.json").read_text())
        kernels[name] = [Kernel(library, module, key, info) for key, info in infos.items()]
    return kernels
