# RUN: %python %s
"""Ctrl-C while something is compiled or run, and what is left behind."""

import os
import signal
import subprocess
import sys
import threading
import time
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent / "Inputs"))
import fp8  # noqa: E402
import programs  # noqa: E402

# As many matrix products take some seconds to compile.
COUNT = 200
LONG = "\n".join(programs.LINEAR.replace("@linear", f"@linear{i}") for i in range(COUNT))

# A sum of n terms, each of which waits for the one before.
SPIN = """
func.func @spin(%n: i64, %x: f32) -> f32 {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %count = arith.index_cast %n : i64 to index
  %sum = scf.for %i = %zero to %count step %one iter_args(%s = %x) -> f32 {
    %next = arith.addf %s, %x : f32
    scf.yield %next : f32
  }
  return %sum : f32
}
"""


def interrupt_soon():
    """Ctrl-C, once, when Python is likely to be in a call."""
    threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT)).start()


class Interrupts(unittest.TestCase):
    def test_compiling(self):
        interrupt_soon()
        with self.assertRaises(KeyboardInterrupt):
            fp8.compile(LONG, "current", target="cpu", cache=False)
            time.sleep(20)  # A machine that is fast.
        program = fp8.compile(programs.LINEAR, "current", target="cpu", cache=False)
        self.assertEqual(program(*programs.make_inputs()).shape, (32, 64))

    def test_running(self):
        spin = fp8.compile(SPIN, target="cpu", cache=False).spin
        interrupt_soon()
        with self.assertRaises(KeyboardInterrupt):
            spin(2_000_000_000, 1.0)
            time.sleep(20)
        self.assertEqual(float(spin(4, 1.0)), 5)

    def test_handlers_that_do_not_raise(self):
        called = []
        before = signal.signal(signal.SIGINT, lambda *_: called.append(1))
        try:
            spin = fp8.compile(SPIN, target="cpu", cache=False).spin
            interrupt_soon()
            self.assertEqual(float(spin(400_000_000, 1.0)), 2**24)
            time.sleep(0.3)
        finally:
            signal.signal(signal.SIGINT, before)
        self.assertEqual(called, [1])

    def test_other_threads_go_on(self):
        spin = fp8.compile(SPIN, target="cpu", cache=False).spin
        results = []
        thread = threading.Thread(target=lambda: results.append(spin(400_000_000, 1.0)))
        thread.start()
        interrupt_soon()
        with self.assertRaises(KeyboardInterrupt):
            time.sleep(20)
        thread.join()
        self.assertEqual(float(results[0]), 2**24)


    def test_processes_end(self):
        done = subprocess.run([sys.executable, __file__, "exit"], text=True, capture_output=True)
        self.assertEqual(done.returncode, -signal.SIGINT, done.stderr)
        self.assertEqual(done.stderr.splitlines()[-1], "KeyboardInterrupt")


def main():
    """A process that is interrupted, and ends."""
    interrupt_soon()
    fp8.compile(LONG, "current", target="cpu", cache=False)
    time.sleep(20)


if __name__ == "__main__":
    # Whoever started the tests may have had it ignored.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    main() if sys.argv[1:] == ["exit"] else unittest.main()
