#!/usr/bin/env python3
"""In place of fp8-opt: does what the name of the program says."""

import json
import os
import signal
import sys
import time
from pathlib import Path

program = Path(sys.argv[1]).stem
remarks = next(argument for argument in sys.argv if argument.startswith("--fp8-remarks=json:"))
if program == "hangs":
    # So does what it starts.
    if os.fork() == 0:
        time.sleep(600)
    time.sleep(600)
if program == "crashes":
    sys.stderr.write("PLEASE submit a bug report to someone\nStack dump:\n0.\tProgram arguments\n"
                     "something is wrong with 3 of 14x?xf32\n")
    os.kill(os.getpid(), signal.SIGSEGV)
if program == "wrapped":
    sys.exit(128 + signal.SIGABRT)
if program == "grows":
    try:
        bytes(1 << 40)
    except MemoryError:
        sys.stderr.write("LLVM ERROR: out of memory\n")
        os.kill(os.getpid(), signal.SIGABRT)
if program == "silent":
    sys.exit(3)
Path(remarks.partition(":")[2]).write_text(json.dumps({"remarks": [
    {"kind": "passed"}, {"kind": "missed", "reason": "it is in line 7"}]}))
