# RUN: %python %s
# RUN: env FP8_CUDA_DRIVER=emulator %python %s Emulator
"""Children of fork(), as data loaders and pools of multiprocessing have them. A child that waits
for threads of its parent is ended by a signal."""

import multiprocessing
import os
import signal
import sys
import tempfile
import unittest
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parent / "Inputs"))
import fp8  # noqa: E402
import programs  # noqa: E402

# A size that oneDNN gives all threads.
LARGE = programs.LINEAR.replace("32x256", "512x512").replace("256x64", "512x512").replace(
    "32x64", "512x512")
PATIENCE = 120


def run_in_child(body):
    """What the body returned in a child, as text; the status of one that was ended."""
    with tempfile.TemporaryFile("w+") as answer:
        child = os.fork()
        if child == 0:
            signal.alarm(PATIENCE)
            try:
                text = str(body())
            except Exception as error:
                text = f"{type(error).__name__}: {error}"
            answer.write(text)
            answer.flush()
            os._exit(0)
        status = os.waitpid(child, 0)[1]
        answer.seek(0)
        return answer.read() if status == 0 else f"status {status}"


class Fork(unittest.TestCase):
    def setUp(self):
        self.program = fp8.compile(LARGE, "delayed,amax_history_len=4", target="cpu", cache=False)
        self.state = fp8.State(self.program)
        random = np.random.default_rng(0)
        dtype = programs.make_inputs()[0].dtype
        self.x, self.w = (random.standard_normal((512, 512)).astype(dtype) for _ in range(2))
        self.step()

    def step(self, _=None):
        y = self.program(self.x, self.w, state=self.state)
        self.state.end_step()
        scales = [slot.scale for slot in self.state.slots.values()]
        return y.astype(np.float64).sum(), scales

    def test_child_and_parent(self):
        in_child = run_in_child(self.step)
        self.assertEqual(in_child, str(self.step()))

    def test_child_of_a_child(self):
        in_child = run_in_child(lambda: run_in_child(self.step))
        self.assertEqual(in_child, str(self.step()))

    def test_pool(self):
        global step
        step = self.step
        with multiprocessing.get_context("fork").Pool(2) as pool:
            answers = pool.map_async(call_step, range(4)).get(timeout=PATIENCE)
        self.assertEqual(len(answers), 4)

    def test_compiling(self):
        for target in ("cpu", "sm_90a"):
            answer = run_in_child(
                lambda: fp8.compile(programs.LINEAR, "block", target=target, cache=False).target)
            self.assertEqual(answer, target)


def call_step(_):
    return step()


class Emulator(unittest.TestCase):
    """As CUDA, which does not work in a child of a process that has used it."""

    def test_before_and_after_the_first_use(self):
        x, w = programs.make_inputs()
        program = fp8.compile(programs.LINEAR, "current", target="sm_90a", cache=False)

        def call():
            return program(x, w).astype(np.float64).sum()

        before = run_in_child(call)
        self.assertEqual(before, str(call()))
        self.assertRegex(run_in_child(call), r"^DeviceError: expected a process that used no GPU "
                                             r"before it was forked, but got a child")
        self.assertEqual(before, str(call()))


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], defaultTest=sys.argv[1:] or ["Fork"])
