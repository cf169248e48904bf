"""The GPU, as libfp8rt sees it."""

import ctypes
import shutil
import subprocess

from fp8 import abi


class NoDevice(Exception):
    """There is none to run on; the message says what is missing."""


def describe(root):
    """Facts about device 0."""
    version, info = ctypes.c_int32(), abi.structs.fp8rt_device_info()
    try:
        runtime = abi.Library(root / "lib" / "libfp8rt.so")
        runtime.fp8rt_device_get_driver_version(ctypes.byref(version))
        runtime.fp8rt_device_get_info(0, ctypes.byref(info))
    except OSError as error:
        raise NoDevice(f"libfp8rt cannot be loaded: {error}") from None
    except abi.Error as error:
        raise NoDevice(str(error)) from None
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
