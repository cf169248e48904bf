"""The GPU, as libfp8rt sees it."""

import ctypes
import shutil
import subprocess


class _Info(ctypes.Structure):
    """fp8rt_device_info of fp8/Runtime/Device.h."""

    _fields_ = [
        ("name", ctypes.c_char * 128),
        *((name, ctypes.c_int32) for name in (
            "compute_capability_major", "compute_capability_minor", "num_sms",
            "max_threads_per_block", "smem_per_block", "smem_per_block_optin",
            "smem_per_sm", "l2_cache_size", "supports_clusters",
            "supports_memory_pools")),
        ("total_memory", ctypes.c_int64),
    ]


class NoDevice(Exception):
    """There is none to run on; the message says what is missing."""


def describe(root):
    """Facts about device 0."""
    try:
        runtime = ctypes.CDLL(str(root / "lib" / "libfp8rt.so"))
    except OSError as error:
        raise NoDevice(f"libfp8rt cannot be loaded: {error}") from None
    runtime.fp8rt_get_last_error.restype = ctypes.c_char_p

    def call(function, *arguments):
        if getattr(runtime, function)(*arguments):
            raise NoDevice(runtime.fp8rt_get_last_error().decode())

    version, info = ctypes.c_int32(), _Info()
    call("fp8rt_device_get_driver_version", ctypes.byref(version))
    call("fp8rt_device_get_info", 0, ctypes.byref(info))
    capability = f"{info.compute_capability_major}.{info.compute_capability_minor}"
    if capability != "9.0":
        raise NoDevice(f"expected a GPU of compute capability 9.0, but got {capability} "
                       f"({info.name.decode()})")
    return {
        "gpu": info.name.decode(),
        "compute_capability": capability,
        "multiprocessors": info.num_sms,
        "memory_bytes": info.total_memory,
        "cuda": f"{version.value // 1000}.{version.value % 1000 // 10}",
        "driver": driver_release(),
    }


def driver_release():
    """The driver's own version, which only its tools tell."""
    smi = shutil.which("nvidia-smi")
    if not smi:
        return None
    try:
        lines = subprocess.run(
            [smi, "--query-gpu=driver_version", "--format=csv,noheader"], timeout=20,
            capture_output=True, text=True).stdout.split()
    except (OSError, subprocess.TimeoutExpired):
        return None
    return lines[0] if lines else None
