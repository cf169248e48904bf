"""Kernels in PTX on the emulator, through the functions of the driver.

A device of the emulator is lost after a fault, and the environment is read once, so
that each test of a fault is a process of its own: run().
"""

import ctypes
import os
import subprocess
import sys

import numpy as np

LIBRARY = os.environ["FP8_EMULATOR_LIBRARY"]
HEADER = ".version 8.6\n.target sm_90a\n.address_size 64\n"


class DriverError(Exception):
    def __init__(self, name, code, log=""):
        super().__init__(f"{name}: {code} {log}".strip())
        self.code, self.log = code, log


class LaunchAttribute(ctypes.Structure):
    _fields_ = [("id", ctypes.c_int), ("padding", ctypes.c_int), ("value", ctypes.c_uint32 * 16)]


class LaunchConfig(ctypes.Structure):
    _fields_ = [("grid", ctypes.c_uint32 * 3), ("block", ctypes.c_uint32 * 3), ("smem", ctypes.c_uint32),
                ("stream", ctypes.c_void_p), ("attributes", ctypes.c_void_p), ("count", ctypes.c_uint32)]


class TensorMap(ctypes.Structure):
    """A map of 128 bytes; ctypes aligns them too little, hence the room."""
    _fields_ = [("room", ctypes.c_uint8 * 192)]

    @property
    def address(self):
        return (ctypes.addressof(self) + 63) // 64 * 64


class Buffer:
    """An array of the device's memory, which is the host's."""

    def __init__(self, device, array):
        array = np.ascontiguousarray(array)
        self.pointer = ctypes.c_uint64()
        device.call("cuMemAlloc_v2", ctypes.byref(self.pointer), ctypes.c_size_t(array.nbytes))
        raw = (ctypes.c_uint8 * array.nbytes).from_address(self.pointer.value)
        self.array = np.frombuffer(raw, array.dtype).reshape(array.shape)
        # What a kernel may read must have been copied there.
        if array.nbytes:
            device.call("cuMemcpyAsync", self.pointer, ctypes.c_void_p(array.ctypes.data), ctypes.c_size_t(array.nbytes),
                        None)


class Device:
    def __init__(self):
        self.library = ctypes.CDLL(LIBRARY)
        context = ctypes.c_void_p()
        self.call("cuInit", 0)
        self.call("cuDevicePrimaryCtxRetain", ctypes.byref(context), 0)
        self.call("cuCtxSetCurrent", context)

    def call(self, name, *arguments):
        code = getattr(self.library, name)(*arguments)
        if code:
            raise DriverError(name, code)

    def load(self, text, name="kernel"):
        module, function = ctypes.c_void_p(), ctypes.c_void_p()
        log = ctypes.create_string_buffer(4096)
        options = (ctypes.c_int * 2)(5, 6)
        values = (ctypes.c_void_p * 2)(ctypes.addressof(log), len(log))
        code = self.library.cuModuleLoadDataEx(ctypes.byref(module), text.encode(), 2, options, values)
        if code:
            raise DriverError("cuModuleLoadDataEx", code, log.value.decode())
        self.call("cuModuleGetFunction", ctypes.byref(function), module, name.encode())
        return function

    def launch(self, function, arguments, grid=(1, 1, 1), block=(32, 1, 1), smem=0, cluster=None, programmatic=False,
               wait=True):
        keep, pointers = [], (ctypes.c_void_p * max(len(arguments), 1))()
        for i, argument in enumerate(arguments):
            if isinstance(argument, TensorMap):
                pointers[i] = argument.address
                continue
            value = argument.pointer if isinstance(argument, Buffer) else ctypes.c_uint32(argument)
            keep.append(value)
            pointers[i] = ctypes.addressof(value)
        if smem > 48 << 10:
            self.call("cuFuncSetAttribute", function, 8, smem)
        config = LaunchConfig((ctypes.c_uint32 * 3)(*grid), (ctypes.c_uint32 * 3)(*block), smem, None, None, 0)
        attributes = (LaunchAttribute * 2)()
        config.attributes = ctypes.addressof(attributes)
        for id_, value in [(4, cluster), (6, (1,) if programmatic else None)]:
            if value:
                attributes[config.count].id = id_
                attributes[config.count].value[:len(value)] = value
                config.count += 1
        self.call("cuLaunchKernelEx", ctypes.byref(config), function, pointers, None)
        if wait:
            self.call("cuCtxSynchronize")

    def tensor_map(self, buffer, box, swizzle=0, kind=0, sizes=None):
        """The map of a matrix; kind 0 is bytes, 7 is f32. Sizes are the array's without others."""
        made, array = TensorMap(), buffer.array
        rank = array.ndim
        sizes = (ctypes.c_uint64 * rank)(*(sizes or array.shape[::-1]))
        strides = (ctypes.c_uint64 * rank)(*array.strides[-2::-1], 0)
        extents, ones = (ctypes.c_uint32 * rank)(*box), (ctypes.c_uint32 * rank)(*[1] * rank)
        self.call("cuTensorMapEncodeTiled", ctypes.c_void_p(made.address), kind, rank, buffer.pointer, sizes,
                  strides, extents, ones, 0, swizzle, 0, 0)
        return made


def kernel(body, params=1, registers=16, shared=0, directives=""):
    """A module with one kernel: its parameters are addresses p0, p1, ..., in registers %a0, %a1, ..."""
    declared = ", ".join(f".param .u64 p{i}" for i in range(params))
    loads = "\n".join(f"ld.param.u64 %a{i}, [p{i}];" for i in range(params))
    smem = f".shared .align 1024 .b8 smem[{shared}];" if shared else ""
    return f"""{HEADER}
.visible .entry kernel({declared}) {directives}
{{
.reg .pred %p<8>; .reg .b16 %h<{registers}>; .reg .b32 %r<{registers}>; .reg .b64 %d<{registers}>;
.reg .b64 %a<8>; .reg .b32 %t; .reg .b64 %o;
{smem}
{loads}
mov.u32 %t, %tid.x;
mul.wide.u32 %o, %t, 4;
{body}
ret;
}}
"""


def run(code, **environment):
    """What a process prints that does this after `from emulator import *`, and its report."""
    variables = {**os.environ, **{f"FP8_EMULATOR_{name}": str(value) for name, value in environment.items()}}
    done = subprocess.run([sys.executable, "-c", "from emulator import *\n" + code], env=variables, text=True,
                          capture_output=True, cwd=os.path.dirname(os.path.abspath(__file__)), timeout=60)
    return done.stdout, done.stderr


# A barrier of one arrival. %p0: all but the first thread.
INIT = """
    mov.u32 %r0, smem;
    setp.ne.u32 %p0, %t, 0;
    @%p0 bra INITIALISED;
    mbarrier.init.shared.b64 [%r0], 1;
    fence.mbarrier_init.release.cluster;
    INITIALISED: bar.sync 0;
"""


def run_kernel(body, shared, threads, blocks, cluster, registers=16, directives="", **environment):
    """A process launches this kernel on 4096 bytes, and prints "done" or the driver's error; and its report."""
    return run(f"""
device = Device()
out = Buffer(device, np.zeros(4096, np.uint8))
text = kernel({body!r}, shared={shared}, registers={registers}, directives={directives!r})
try:
    device.launch(device.load(text), [out], block=({threads}, 1, 1), grid=({blocks}, 1, 1), cluster={cluster})
    print("done")
except DriverError as error:
    print(error.code)
""", **environment)
