# RUN: %python %s %fp8_source
"""Rooms, the directories of lib with their headers in include/fp8, do not include each other in a
circle; rooms of passes include none but Utils; and nothing includes the emulator."""

import re
import sys
from collections import defaultdict
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

ROOT = Path(sys.argv[1])
INCLUDE = re.compile(r'^\s*#?include "([^"]+)"', re.MULTILINE)
# These have rooms of their own inside, each of which is a library.
SPLIT = ("Conversion", "Target", "GPU")


def get_room(path):
    """Kernels of lib/Kernels/Matmul/MatmulSpec.cpp and of fp8/Kernels/KernelSpec.h."""
    parts = path.parts[1:] if path.parts[0] == "lib" else path.parts[2:]
    return "/".join(parts[:2]) if parts[0] in SPLIT and len(parts) > 2 else parts[0]


def list_files():
    for folder in ("lib", "include/fp8"):
        for path in sorted((ROOT / folder).rglob("*")):
            if path.suffix in (".h", ".cpp", ".td"):
                yield path.relative_to(ROOT)


def find(name, user):
    """The file of the project that `user` includes as `name`; None if it is another's."""
    for base in (user.parent, Path("include"), Path("lib"), *list(user.parents)[:-1]):
        if (ROOT / base / name).is_file():
            return base / name
    return None


rooms = defaultdict(set)
example = {}
for user in list_files():
    for name in INCLUDE.findall((ROOT / user).read_text()):
        used = find(name, user)
        if used is None or len(used.parts) < 3 and used.parts[0] == "include":
            continue
        ours, theirs = get_room(user), get_room(used)
        assert theirs != "Emulator" or ours == "Emulator", f"{user} includes the emulator: {name}"
        if used.parts[:2] == user.parts[:2] == ("lib", "Transforms"):
            assert used.parts[2] in ("Utils", user.parts[2]), f"{user} includes another room: {used}"
        if ours != theirs:
            rooms[ours].add(theirs)
            example.setdefault((ours, theirs), f"{user} includes {name}")
try:
    list(TopologicalSorter(rooms).static_order())
except CycleError as error:
    circle = error.args[1]
    print(*(example[pair[::-1]] for pair in zip(circle, circle[1:])), sep="\n", file=sys.stderr)
    sys.exit("rooms include each other in a circle: " + ", ".join(circle))
