"""What this machine can do."""

import os
import shutil
from dataclasses import dataclass
from importlib import metadata

from fp8 import _core
from fp8.compiler import get_default_target, get_target
from fp8.errors import Error


# What is known of the kernels of a target, and the class of speed of each recipe's products: of tensor cores that
# multiply its codes, of tensor cores in bf16, of those that multiply f16, which codes become in registers, or of simple
# kernels without them.
_PER_TENSOR = ("current", "delayed", "static", "rowwise")
_SMALL_BLACKWELL = ("timed by nobody", {"codes": (*_PER_TENSOR, "block", "mxfp8", "nvfp4"), "bf16": ("none",), "loops": ()})
_KNOWN = {
    "sm_80": ("timed by nobody", {"f16": (*_PER_TENSOR, "block"), "bf16": ("mxfp8", "nvfp4", "none"), "loops": ()}),
    "sm_89": ("timed by nobody", {"codes": (*_PER_TENSOR, "block"), "bf16": ("mxfp8", "nvfp4", "none"), "loops": ()}),
    "sm_90a": ("measured", {"codes": (*_PER_TENSOR, "block"), "bf16": ("mxfp8", "nvfp4", "none"), "loops": ()}),
    "sm_100a": ("timed by nobody", {"codes": (*_PER_TENSOR, "block", "mxfp8", "nvfp4"), "bf16": ("none",), "loops": ()}),
    "sm_120a": _SMALL_BLACKWELL,
    "sm_121a": _SMALL_BLACKWELL,
}


def get_speeds(capability):
    """The recipes of each class of speed on a GPU of that compute capability; {} where the CPU is all that works."""
    target, _ = get_target(capability)
    return {} if target == "cpu" else _KNOWN[target][1]


def describe(capability):
    """What a GPU of that compute capability runs, and how fast it may be."""
    target, is_portable = get_target(capability)
    if target == "cpu":
        return "nothing: kernels take compute capability 8.0 or later; target=\"cpu\" works"
    known, speeds = _KNOWN[target]
    classes = {"codes": "products of codes", "f16": "products of codes as f16", "bf16": "in bf16", "loops": "without tensor cores, slowly"}
    said = "; ".join(f"{classes[name]}: {', '.join(recipes)}" for name, recipes in speeds.items() if recipes)
    said += "; attention: forward and gradient"
    if is_portable:
        return f"portable: kernels of {target}, assembled by the driver, timed by nobody; {said}"
    return f"{target}: kernels of its own, {known}; {said}"


@dataclass(frozen=True)
class Support:
    """What check_support found. `str` of it is a table."""

    version: str  # of the package
    target: str  # what compile(target="auto") takes
    gpus: tuple  # (name, (major, minor)) of each
    driver: str  # the version of CUDA that the driver has, or why there is none
    ptxas: str  # its path, or "": the driver assembles kernels then, which takes CUDA 13.0's
    linker: str  # its path, or "": no cache of programs, no Program.save

    def __str__(self):
        gpus = "; ".join(f"{name} (compute capability {major}.{minor}), {describe((major, minor))}"
                         for name, (major, minor) in self.gpus)
        rows = [("fp8", self.version), ("target", self.target), ("GPUs", gpus or "none"),
                ("CUDA driver", self.driver),
                ("ptxas", self.ptxas or "none: the driver assembles kernels"),
                ("linker", self.linker or "none: programs are neither cached nor saved")]
        return "\n".join(f"{name:12} {value}" for name, value in rows)


def _get_version():
    try:
        return metadata.version("fp8")
    except metadata.PackageNotFoundError:
        return "of a source tree"


def _find_ptxas():
    folders = [os.path.join(os.environ[name], "bin") for name in ["CUDA_HOME"] if name in os.environ]
    for path in [*folders, None, "/usr/local/cuda/bin"]:
        found = shutil.which("ptxas", path=path)
        if found:
            return found
    return ""


def check_support():
    """A Support. Never raises: what is missing is said in it."""
    try:
        number = _core.get_driver_version()
        driver = f"{number // 1000}.{number % 1000 // 10}"
        gpus = tuple(_core.get_devices())
    except Error as error:
        driver, gpus = f"none: {error}", ()
    return Support(_get_version(), get_default_target(), gpus, driver, _find_ptxas(),
                   shutil.which("ld.lld") or shutil.which("ld") or "")
