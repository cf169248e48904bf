"""Makes broken copies of a compiled program.

usage: damage.py PROGRAM DIRECTORY
"""

import struct
import sys
from pathlib import Path

program, directory = Path(sys.argv[1]).read_bytes(), Path(sys.argv[2])
MAGIC = b"FP8PROG\0"


def write(name, contents):
    (directory / f"{name}.so").write_bytes(contents)


def replace(old, new):
    assert len(old) == len(new) and program.count(old) == 1, (old, new)
    return program.replace(old, new)


(version,) = struct.unpack_from("<I", program, program.index(MAGIC) + len(MAGIC))
now = MAGIC + struct.pack("<I", version)
write("empty", b"")
write("header", program[:64])
write("half", program[: len(program) // 2])
write("most", program[:-1])
write("machine", program[:18] + struct.pack("<H", 8) + program[20:])
write("older", replace(now, MAGIC + struct.pack("<I", version + 1000)))
write("newer", replace(now, MAGIC + struct.pack("<I", version + 1)))
write("magic", replace(MAGIC, b"FP8PLUM\0"))
write("json", replace(b'{"version":1', b'["version":1'))
write("type", replace(b'"type":"f32"', b'"type":"g32"'))
