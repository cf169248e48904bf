"""What a GPU makes of broken kernels that the emulator finds (docs/Emulator.md, "Deliberate
breaks"): which of them it lets pass without a word.

usage: breaks.py DIR [--library libfp8rt.so] [--repeats N] [--seconds S] [--out FILE]

DIR is what test/Emulator/Inputs/mutate.py --keep=DIR left: programs with PTX, which the driver
compiles, and breaks.tsv. Each runs in a process of its own, for some never end. Needs libfp8rt
and a driver alone.
"""

import argparse
import collections
import json
import os
import subprocess
import sys
from pathlib import Path

RUN = """
import sys
from pathlib import Path
from bits import abi, open_library, run_program
folder, program, repeats, *library = sys.argv[1:]
library = abi.Library(library[0]) if library else open_library(None, Path(folder))
print("hashes", run_program(library, Path(program), "program", int(repeats), lambda *_: None))
"""


def run(args, path):
    """The hashes of all functions and repeats as text, or what went wrong."""
    command = [sys.executable, "-c", RUN, str(args.folder), str(path), str(args.repeats)]
    command += [str(args.library)] if args.library else []
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parent)}
    try:
        done = subprocess.run(command, env=environment, capture_output=True, text=True,
                              timeout=args.seconds)
    except subprocess.TimeoutExpired:
        return None, "never ends"
    lines = [line for line in done.stdout.splitlines() if line.startswith("hashes")]
    if done.returncode or not lines:
        return None, (done.stderr.strip().splitlines() or ["no word"])[-1][-160:]
    return lines[0], ""


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("--library", type=Path)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=30)
    parser.add_argument("--out", type=Path)
    args = parser.parse_args()
    rows, clean = [], {}
    for line in (args.folder / "breaks.tsv").read_text().splitlines():
        path, program, name, found = line.split("\t")
        if program not in clean:
            clean[program], error = run(args, args.folder / program)
            assert clean[program], f"{program} as it is: {error}"
        result, error = run(args, args.folder / path)
        outcome = "passes" if result == clean[program] else "other results" if result else error
        rows.append({"break": name, "emulator": found, "gpu": outcome})
        print(f"{name} | {found} | {outcome}", flush=True)
    counts = collections.Counter(row["gpu"] for row in rows)
    print(f"{counts['passes']} of {len(rows)} pass unnoticed")
    if args.out:
        args.out.write_text(json.dumps({"rows": rows}, indent=1))


if __name__ == "__main__":
    main()
