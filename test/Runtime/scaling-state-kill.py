# RUN: %python %s %fp8_build/lib/libfp8rt.so %t
# UNSUPPORTED: sanitizers
"""Kills a process that saves states in a loop, 500 times, at random moments.

The child saves two states in turn to one file. Whenever it dies, the file
must be, byte for byte, one of the two.
"""

import os
import random
import shutil
import signal
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent / "Inputs"))
import libfp8rt  # noqa: E402

KILLS = 500
library = libfp8rt.Library(sys.argv[1])
folder = Path(sys.argv[2])
shutil.rmtree(folder, ignore_errors=True)
folder.mkdir()
path = folder / "state"

names = [f"slot{i}" for i in range(500)]
*states, reader = [library.create(names, ["e4m3"] * 500, 65) for _ in range(3)]
contents = []
for i, state in enumerate(states):
    for step in range(70):
        state.amax[:] = 1 + i + step
        state.call("update")
    state.save(path)
    contents.append(path.read_bytes())
assert contents[0] != contents[1]


def child(ready):
    state = 0
    states[state].save(path)
    os.write(ready, b".")
    while True:
        state = 1 - state
        states[state].save(path)


# Saves may take long on a slow disk: the moments are spread over two of them.
start = time.perf_counter()
for _ in range(8):
    states[1].save(path)
save_s = (time.perf_counter() - start) / 8
generator = random.Random(7)
seen, pending = [0, 0], 0
for _ in range(KILLS):
    readable, ready = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            child(ready)
        finally:
            os._exit(1)
    os.close(ready)
    assert os.read(readable, 1) == b"."
    os.close(readable)
    time.sleep(generator.uniform(0, 2 * save_s))
    os.kill(pid, signal.SIGKILL)
    assert os.waitpid(pid, 0)[1] == signal.SIGKILL
    got = path.read_bytes()
    if got not in contents:
        raise SystemExit(f"expected one of the two states, but got {len(got)} other bytes")
    seen[contents.index(got)] += 1
    reader.load(path, libfp8rt.STRICT)
    # What a killed save leaves beside the file shows that saves were hit.
    for left in folder.glob(".safetensors-*.tmp"):
        pending += 1
        left.unlink()
print(f"{KILLS} kills, {pending} during a save, {seen} of each state")
assert pending > 0 and min(seen) > 0
