"""What a GPU takes for layers, of its machine's file (lib/Kernels/Machines), beside this
module."""

import dataclasses
import functools
import re
from pathlib import Path

from fp8 import _core
from fp8.errors import Error

FOLDER = Path(__file__).parent / "machines"
# What a GPU is taken for that no file is of.
_USUAL = "h200"
_NAME = re.compile(r'\bname = "(\w+)", devices = \[([^\]]*)\]')
_LAYER = re.compile(r"(\w+) = #fp8_machine\.layer<([^>]*)>")
_HOST = re.compile(r"\bhost = <([^>]*)>")
_NUMBER = re.compile(r"(\w+) = (-?[\d.e+-]+)")


@dataclasses.dataclass(frozen=True)
class Machine:
    """A GPU: `devices`, words of which the driver's name of one has one; `layers`, by the name of the
    recipe or "none", microseconds by what they are of; `host`, those of the host."""

    name: str
    devices: tuple[str, ...]
    layers: dict[str, dict[str, float]]
    host: dict[str, float]


def _read_numbers(text):
    return {key: float(number) for key, number in _NUMBER.findall(text)}


def read(path):
    """A Machine of a file of the compiler's own, which it has verified."""
    text = re.sub(r"//[^\n]*", "", Path(path).read_text())
    name, devices = _NAME.search(text).groups()
    return Machine(name, tuple(re.findall(r'"([^"]*)"', devices)),
                   {recipe: _read_numbers(layer) for recipe, layer in _LAYER.findall(text)},
                   _read_numbers(_HOST.search(text)[1]))


@functools.cache
def get_machines():
    """By name."""
    machines = map(read, sorted(FOLDER.glob("*.mlir")))
    return {machine.name: machine for machine in machines}


def find(device):
    """The machine that the driver's name of a GPU is of, or the usual one."""
    for machine in get_machines().values():
        if any(re.search(rf"\b{re.escape(name)}\b", device) for name in machine.devices):
            return machine
    return get_machines()[_USUAL]


@functools.cache
def get_own():
    """The machine of the first GPU, or the usual one where there is none."""
    try:
        devices = _core.get_devices()
    except Error:
        devices = []
    return find(devices[0][0] if devices else "")
