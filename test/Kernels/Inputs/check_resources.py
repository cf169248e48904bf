"""Reads what ptxas -v said of kernels: none may spill, have its wgmma serialized
or setmaxnreg ignored (the C75xx warnings), or use more than it may.

usage: check_resources.py LOG
"""

import re
import sys

log = open(sys.argv[1]).read()
if "C75" in log:
    sys.exit(f"ptxas warns:\n{log}")
spills = re.findall(r"(\d+) bytes spill stores, (\d+) bytes spill loads", log)
registers = [int(n) for n in re.findall(r"Used (\d+) registers", log)]
if not spills or len(spills) != len(registers):
    sys.exit(f"expected a report of each kernel, but got:\n{log}")
if any(pair != ("0", "0") for pair in spills):
    sys.exit(f"expected no spills, but got:\n{log}")
if max(registers) > 255:
    sys.exit(f"expected at most 255 registers, but got {max(registers)}")
print(f"{len(registers)} kernels")
