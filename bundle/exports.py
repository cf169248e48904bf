"""What a shared library must export so that objects can be linked to it.

Writes a linker's version script that exports every symbol that the objects
name: those that they lack, and those that they have too, such as inline
functions and type information, of which a process must have one. A response
file for the compiler asks for those that they lack, which gets them out of
archives.

usage: exports.py --nm NM --map FILE --response FILE OBJECT...
"""

import argparse
import subprocess
from pathlib import Path


def symbols(nm, objects, *options):
    output = subprocess.run(
        [nm, "--extern-only", "--format=just-symbols", "--quiet", *options, *objects],
        check=True, capture_output=True, text=True).stdout
    # nm names each of several files, followed by a colon.
    return sorted({line for line in output.splitlines()
                   if line and not line.endswith(":") and line != "main"})


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--nm", required=True)
    parser.add_argument("--map", type=Path, required=True)
    parser.add_argument("--response", type=Path, required=True)
    parser.add_argument("objects", nargs="+")
    args = parser.parse_args()
    exported = symbols(args.nm, args.objects)
    args.map.write_text(
        "{\n  global:\n" + "".join(f'    "{name}";\n' for name in exported)
        + "  local:\n    *;\n};\n")
    missing = symbols(args.nm, args.objects, "--undefined-only")
    args.response.write_text("".join(f"-Wl,-u,{name}\n" for name in missing))


if __name__ == "__main__":
    main()
