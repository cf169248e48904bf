"""What the kernels of gemm_kernels.py compute from operands that are the same everywhere, as
hashes of the bits.

Needs libfp8rt and a driver, a GPU's or the emulator's, and neither PyTorch nor NumPy. Operands are
drawn by their bits: exponents of a few binades, so that the tensor core's sums lose bits at every
step."""

import ctypes
import hashlib
import json
import math
import random

from matmul.epilogues import EPILOGUES
from matmul.kinds import KINDS
from matmul.program import BATCHES, has_inner_rows, is_transposed
from matmul.tables import TABLES
from programs import abi

DEVICE = 0
WIDTH = {"e4m3": 1, "e5m2": 1, "u8": 1, "bf16": 2, "f16": 2, "f32": 4}
GUARD = 256  # Bytes on either side of a result, of which the hash takes those before it and behind.
# M, N, K: tails in each dimension and several tiles of a block; few rows and a long K, as when a
# model decodes.
SHAPES = [(72, 136, 272), (264, 272, 400), (17, 136, 2064), (130, 1032, 656)]


def draw(rng, element, count):
    """So many elements, little-endian."""
    width = WIDTH.get(element, 4)
    result = bytearray(rng.randbytes(width * count))
    result[width - 1::width] = bytes(result[width - 1::width]).translate(TABLES[element])
    return bytes(result)


class Tensor:
    """Bytes on the device; `strides` are of elements."""

    def __init__(self, device, data, sizes, strides=None, offset=0):
        self.data, self.sizes = device.upload(data) + offset, list(sizes)
        self.strides = strides or [math.prod(sizes[i + 1:]) for i in range(len(sizes))]

    def describe(self, rank):
        """As fp8rt_kernel_argument; dimensions beyond its own or the kernel's are of one
        element."""
        sizes, strides = self.sizes, self.strides
        while len(sizes) > rank:
            sizes, strides = sizes[1:], strides[1:]
        while len(sizes) < rank:
            sizes, strides = [1, *sizes], [sizes[0] * strides[0], *strides]
        argument = abi.structs.fp8rt_kernel_argument(data=self.data)
        argument.sizes[:rank], argument.strides[:rank] = sizes, strides
        return argument


class Device:
    """Memory of the device, freed together."""

    def __init__(self, library):
        self.library, self.blocks = library, []

    def alloc(self, size):
        pointer = ctypes.c_void_p()
        self.library.fp8rt_memory_alloc(DEVICE, max(size, 1), ctypes.byref(pointer))
        self.blocks.append(pointer.value)
        return pointer.value

    def write(self, address, data):
        source = ctypes.cast(data, ctypes.c_void_p).value
        self.library.fp8rt_memory_copy(DEVICE, address, source, len(data), None)
        self.library.fp8rt_stream_synchronize(DEVICE, None)

    def upload(self, data):
        address = self.alloc(len(data))
        self.write(address, data)
        return address

    def read(self, address, size):
        data = ctypes.create_string_buffer(size)
        self.library.fp8rt_memory_copy(DEVICE, ctypes.addressof(data), address, size, None)
        self.library.fp8rt_stream_synchronize(DEVICE, None)
        return data.raw

    def free(self):
        for block in self.blocks:
            self.library.fp8rt_memory_free(DEVICE, block)
        self.blocks.clear()


class Problem:
    """A kind's operands at a shape, and its result."""

    def __init__(self, device, kind, shape):
        spec, (m, n, k) = KINDS[kind], shape
        # Rows of results and of operands begin at multiples of 16 bytes.
        m = (m + 7) // 8 * 8 if is_transposed(spec, "a") else m
        n = (n + 15) // 16 * 16 if spec["result"].startswith("e") else n
        self.spec, self.m, self.n, self.device = spec, m, n, device
        batch = BATCHES if spec["batched"] else 1
        rng = random.Random(f"{kind} {shape}")
        self.tensors = {}
        for name, rows in (("a", m), ("b", n)):
            data = draw(rng, spec[name], batch * rows * k)
            sizes = [k, rows] if is_transposed(spec, name) else [rows, k]  # As in memory.
            self.tensors[name] = Tensor(device, data, [batch, *sizes])
            self.tensors[f"scale_{name}"] = self.factors(rng, batch, rows, k, name)
        self.extra = []
        epilogue = EPILOGUES[spec["epilogue"]] or {"operands": []}
        for i, (dims, element) in enumerate(epilogue["operands"]):
            sizes = {"n": [n], "m": [m, 1], "mn": [m, n]}[dims]
            self.extra.append(draw(rng, element, math.prod(sizes)))
            self.tensors[f"operand{i}"] = Tensor(device, self.extra[i], sizes)
        size = batch * m * n * WIDTH[spec["result"]]
        self.poison = bytes([0xFF]) * (size + 2 * GUARD)
        self.tensors["d"] = Tensor(device, self.poison, [batch, m, n], offset=GUARD)
        self.tensors["amax"] = Tensor(device, bytes(4), [1])
        if spec["epilogue"] == "accumulate":  # In place.
            self.poison = bytes([0xFF]) * GUARD + self.extra[0] + bytes([0xFF]) * GUARD
            self.tensors["operand0"] = self.tensors["d"]
        self.scale = ctypes.c_float(2 / math.sqrt(k))  # The only scalar of any epilogue.

    def factors(self, rng, batch, rows, k, name):
        scale = self.spec[f"scale_{name}"]
        if scale in ("none", "tensor"):
            return Tensor(self.device, draw(rng, "factor", 1), [batch, 1, 1], [0, 1, 1])
        blocks = -(-k // 128)
        sizes = {"row": (rows, 1), "1x128": (rows, blocks),
                 "128x128": (-(-rows // 128), blocks)}[scale]
        data = draw(rng, "factor", batch * math.prod(sizes))
        if scale != "1x128":
            return Tensor(self.device, data, [batch, *sizes])
        # Those of all rows side by side, in lines of 16 bytes.
        line, whole = 4 * rows, -(-rows // 4) * 16
        data = b"".join(data[i:i + line].ljust(whole, b"\0") for i in range(0, len(data), line))
        strides = [blocks * whole // 4, whole // 4, 1]
        sizes = [batch, blocks, rows]
        if not has_inner_rows(self.spec, name):
            sizes, strides = [batch, rows, blocks], [strides[0], strides[2], strides[1]]
        return Tensor(self.device, data, sizes, strides)

    def reset(self):
        self.device.write(self.tensors["d"].data - GUARD, self.poison)
        self.device.write(self.tensors["amax"].data, bytes(4))

    def read(self):
        return (self.device.read(self.tensors["d"].data - GUARD, len(self.poison)) +
                self.device.read(self.tensors["amax"].data, 4))


class Kernel:
    def __init__(self, library, module, name, info):
        self.library, self.config, self.launched = library, info["config"], info["launch"]
        function, self.handle = ctypes.c_uint64(), ctypes.c_void_p()
        library.fp8rt_module_get_function(module, name.encode(), ctypes.byref(function))
        text = json.dumps(self.launched).encode()
        library.fp8rt_kernel_create(function, text, len(text), ctypes.byref(self.handle))

    def run(self, problem, repeats):
        """The result's bytes after each launch."""
        entries = self.launched["arguments"]
        described = [problem.tensors[entry["name"]].describe(entry["rank"]) for entry in entries]
        arguments = (abi.structs.fp8rt_kernel_argument * len(described))(*described)
        captures = (ctypes.c_void_p * 1)(ctypes.addressof(problem.scale))
        size, device = ctypes.c_uint64(), Device(self.library)
        spaces = []
        for i in range(self.library.fp8rt_kernel_get_num_workspaces(self.handle)):
            self.library.fp8rt_kernel_get_workspace_bytes(self.handle, arguments, i,
                                                          ctypes.byref(size))
            spaces.append(device.upload(bytes(size.value)))  # Kernels leave zeros as they were.
        workspaces = (ctypes.c_void_p * max(1, len(spaces)))(*spaces)
        results = []
        for _ in range(repeats):
            problem.reset()
            self.library.fp8rt_kernel_launch(self.handle, arguments, captures, workspaces, None)
            results.append(problem.read())
        device.free()
        return results


def run_kind(library, folder, kind, suffix, repeats, keep):
    """A hash for each config and shape; `keep` is called with a hash and the result's bytes."""
    code = (folder / f"{kind}.{suffix}").read_bytes()
    infos = json.loads((folder / f"{kind}.json").read_text())
    module, device, hashes = ctypes.c_uint64(), Device(library), {}
    library.fp8rt_module_load(DEVICE, code, len(code), ctypes.byref(module))
    kernels = [Kernel(library, module, name, info) for name, info in infos.items()]
    for shape in SHAPES:
        problem = Problem(device, kind, shape)
        for kernel in kernels:
            results = kernel.run(problem, repeats)
            found = [hashlib.sha256(result).hexdigest()[:16] for result in results]
            config = kernel.config.removeprefix("#fp8_sm90.gemm<").removesuffix(">")
            key = f"{kind} {'x'.join(map(str, shape))} {config}"
            hashes[key] = found[0] if len(set(found)) == 1 else found
            keep(shape, found[0], results[0])
        device.free()
    library.fp8rt_module_unload(module)
    return hashes
