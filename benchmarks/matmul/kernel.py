"""Our kernels: loading them, and launching one on a problem.

The parameters are those that docs/Kernels.md lists."""

import ctypes
import json
import math

import torch

from matmul.driver import (MAP_TYPES, SWIZZLES, get_function, launch_kernel,
                           load_module, tensor_map)


class Arguments:
    """The arguments of one launch, by the names of the parameters."""

    def __init__(self, info, problem):
        self.info, self.p = info, problem
        self.tiles = (math.ceil(problem.m / info["cluster_m"])
                      * math.ceil(problem.n / info["cluster_n"]) * problem.batch)
        self.keep = []
        self.addresses = [self.address(name) for name in info["params"]]

    def address(self, param):
        name, _, field = param.partition(".")
        if field == "map":  # Passed by what it points to.
            return self.result_map() if name == "d" else self.operand_map(name)
        argument = self.value(name, field)
        if isinstance(argument, torch.Tensor):
            self.keep.append(argument)
            argument = ctypes.c_void_p(argument.data_ptr())
        self.keep.append(argument)
        return ctypes.addressof(argument)

    def map(self, tensor, dtype, dims, strides, box, swizzle):
        if self.p.spec["batched"]:
            strides = [*strides, strides[-1] * dims[-1]]
            dims, box = [*dims, self.p.batch], [*box, 1]
        self.keep.append(tensor_map(tensor, dtype, dims, strides, box, swizzle))
        return self.keep[-1][1]

    def operand_map(self, name):
        tensor, rows = (self.p.a, self.p.m) if name == "a" else (self.p.b, self.p.n)
        box = self.info["box_m" if name == "a" else "box_n"]
        return self.map(tensor, 0, [self.p.k, rows], [self.p.k], [128, box],
                        SWIZZLES[128])

    def result_map(self):
        width, store = self.p.result.element_size(), self.info["store_bytes"]
        return self.map(self.p.result, MAP_TYPES[self.p.spec["result"]],
                        [self.p.n, self.p.m], [self.p.n * width],
                        [store // width, 64], SWIZZLES[store])

    def value(self, name, field):
        p = self.p
        if name in ("scale_a", "scale_b"):
            tensor = getattr(p, name)
            dims = {"stride_batch": 0, "stride_row": 1, "stride_k": 2}
            return tensor if field == "ptr" else ctypes.c_int64(
                tensor.stride(dims[field]))
        if name == "d":
            return p.result if field == "ptr" else ctypes.c_int64(
                {"stride_m": p.n, "stride_batch": p.m * p.n}[field])
        if name.startswith("operand"):
            tensor = p.operands[int(name[7:])]
            if p.spec["epilogue"] == "accumulate":  # In place.
                tensor = p.result[0]
            if field == "ptr":
                return tensor
            rows = field == "stride_m" and tensor.dim() == 2
            return ctypes.c_int64(tensor.stride(0) if rows else 0)
        if name.startswith("capture"):
            return ctypes.c_float(p.scale)
        if name == "amax":
            return p.amax
        if name == "workspace":
            return torch.empty(self.tiles * self.info["workspace_bytes_per_tile"],
                               device="cuda", dtype=torch.uint8)
        if name == "counters":
            return torch.zeros(self.tiles, device="cuda", dtype=torch.int32)
        return ctypes.c_int32(getattr(p, name))


class Kernel:
    def __init__(self, module, name, info):
        self.name, self.info, self.config = name, info, info["config"]
        self.swapped, self.split = "swap_ab" in info["config"], info["split_k"]
        self.function = get_function(module, name, info["shared_bytes"])

    def label(self):
        marks = "pp" * ("ping_pong" in self.config) + "swap" * self.swapped
        split = f"k{self.split}" if self.split > 1 else ""
        cluster = f"x{self.info['cluster']}" if self.info["cluster"] > 1 else ""
        return f"{self.info['tile_m']}x{self.info['tile_n']}{marks}{split}{cluster}"

    def fits(self, problem):
        """Bulk stores need rows of 16 bytes."""
        row = problem.n * problem.result.element_size()
        if "d.map" in self.info["params"] and row % 16:
            return False
        return not (self.swapped and problem.m > 512)

    def bind(self, problem):
        """A function that launches the kernel on the current stream."""
        arguments = Arguments(self.info, problem)
        array = (ctypes.c_void_p * len(arguments.addresses))(*arguments.addresses)
        sms = torch.cuda.get_device_properties(0).multi_processor_count
        cluster = self.info["cluster"]
        grid = min(sms // cluster, arguments.tiles * self.split) * cluster
        function, threads = self.function, self.info["threads"]
        shared = self.info["shared_bytes"]

        def launch():
            stream = torch.cuda.current_stream().cuda_stream
            launch_kernel(function, grid, threads, shared, stream, array)

        launch.keep = (arguments, array)
        return launch


def load(folder, names):
    kernels = {}
    for name in names:
        module = load_module(folder / f"{name}.cubin")
        infos = json.loads((folder / f"{name}.json").read_text())
        kernels[name] = [Kernel(module, key, info) for key, info in infos.items()]
    return kernels
