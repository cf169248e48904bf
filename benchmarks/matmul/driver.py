"""The part of the CUDA driver's interface that launching a kernel takes."""

import ctypes

driver = ctypes.CDLL("libcuda.so.1")

# CUtensorMapDataType; the swizzle, of CUtensorMapSwizzle, by bytes of a box row.
MAP_TYPES = {"e4m3": 0, "e5m2": 0, "f16": 6, "f32": 7, "bf16": 9}
SWIZZLES = {16: 0, 32: 1, 64: 2, 128: 3}
L2_PROMOTION_128B = 2  # 256B loses 15 % where rows are no multiple of 128 bytes.
MAX_DYNAMIC_SHARED = 8  # CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
PROGRAMMATIC_STREAM_SERIALIZATION = 6  # CU_LAUNCH_ATTRIBUTE_...


def check(result, what):
    if result:
        text = ctypes.c_char_p()
        driver.cuGetErrorName(result, ctypes.byref(text))
        raise RuntimeError(f"{what}: {(text.value or b'?').decode()}")


def tensor_map(tensor, dtype, dims, strides, box, swizzle):
    """128 bytes, 64-byte aligned; returns what keeps them alive, and where."""
    storage = ctypes.create_string_buffer(192)
    address = (ctypes.addressof(storage) + 63) // 64 * 64
    rank = len(dims)
    check(driver.cuTensorMapEncodeTiled(
        ctypes.c_void_p(address), ctypes.c_int(dtype), ctypes.c_uint32(rank),
        ctypes.c_void_p(tensor.data_ptr()), (ctypes.c_uint64 * rank)(*dims),
        (ctypes.c_uint64 * (rank - 1))(*strides), (ctypes.c_uint32 * rank)(*box),
        (ctypes.c_uint32 * rank)(*([1] * rank)), ctypes.c_int(0),
        ctypes.c_int(swizzle), ctypes.c_int(L2_PROMOTION_128B), ctypes.c_int(0)),
        "cuTensorMapEncodeTiled")
    return storage, address


def load_module(path):
    module = ctypes.c_void_p()
    check(driver.cuModuleLoadData(ctypes.byref(module), path.read_bytes()), path.stem)
    return module


def get_function(module, name, shared_bytes):
    function = ctypes.c_void_p()
    check(driver.cuModuleGetFunction(ctypes.byref(function), module, name.encode()),
          name)
    check(driver.cuFuncSetAttribute(function, MAX_DYNAMIC_SHARED, shared_bytes),
          "shared memory")
    return function


class LaunchAttribute(ctypes.Structure):
    """CUlaunchAttribute, with a number for the value's 64 bytes."""
    _fields_ = [("id", ctypes.c_uint32), ("_pad", ctypes.c_uint32),
                ("value", ctypes.c_int32), ("_rest", ctypes.c_uint8 * 60)]


class LaunchConfig(ctypes.Structure):
    """CUlaunchConfig."""
    _fields_ = [("grid", ctypes.c_uint32 * 3), ("block", ctypes.c_uint32 * 3),
                ("shared_bytes", ctypes.c_uint32), ("stream", ctypes.c_void_p),
                ("attributes", ctypes.POINTER(LaunchAttribute)),
                ("num_attributes", ctypes.c_uint32)]


def launch_kernel(function, grid, threads, shared_bytes, stream, params):
    """As libfp8rt launches a matmul."""
    overlap = LaunchAttribute(id=PROGRAMMATIC_STREAM_SERIALIZATION, value=1)
    config = LaunchConfig((grid, 1, 1), (threads, 1, 1), shared_bytes, stream,
                          ctypes.pointer(overlap), 1)
    check(driver.cuLaunchKernelEx(ctypes.byref(config), function, params, None),
          "cuLaunchKernelEx")
