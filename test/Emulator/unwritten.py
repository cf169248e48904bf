# RUN: %python %s %fp8_tools
# REQUIRES: linker
# UNSUPPORTED: sanitizers
"""What FP8_EMULATOR_CHECK=unwritten looks for: memory that is read, given to the host or promised as a result, and that
nobody has written; each with a twin that is right."""

import os
import re
import subprocess
import sys
import tempfile
import unittest

import numpy as np

from emulator import run
from fp8 import tensors

# `fresh` is memory that nobody has written.
CODE = """
class Fresh(Buffer):
    def __init__(self, bytes):
        self.pointer = ctypes.c_uint64()
        device.call("cuMemAlloc_v2", ctypes.byref(self.pointer), ctypes.c_size_t(bytes))

def copy(to, of, bytes, offset=0):
    device.call("cuMemcpyAsync", ctypes.c_uint64(to), ctypes.c_uint64(of + offset), ctypes.c_size_t(bytes), None)

def set_words(buffer, first, count):
    device.call("cuMemsetD32Async", ctypes.c_uint64(buffer.pointer.value + 4 * first), 7, ctypes.c_size_t(count), None)

def give_back(buffer, bytes, offset=0):
    host = np.empty(bytes, np.uint8)
    copy(host.ctypes.data, buffer.pointer.value, bytes, offset)
    device.call("cuCtxSynchronize")

def launch(body, *buffers, threads=32, **more):
    text = kernel(body, params=len(buffers), shared=1024)
    device.launch(device.load(text), buffers, block=(threads, 1, 1), **more)

def result(name, buffer, sizes, strides):
    extents = (ctypes.c_int64 * len(sizes))(*sizes), (ctypes.c_int64 * len(sizes))(*strides)
    arguments = [None, buffer.pointer, len(sizes), *extents, ctypes.c_int64(4)]
    device.call(name, *arguments, *([b"y"] if name == "fp8emu_end_result" else []))
    device.call("cuCtxSynchronize")

device = Device()
fresh = Fresh(512)
try:
{body}
    print("done")
except DriverError as error:
    print(error.code)
"""
STORE = "add.u64 %a0, %a0, %o; st.global.b32 [%a0], %t;"
LOAD = "add.u64 %a0, %a0, %o; ld.global.b32 %r0, [%a0];"

PROGRAM = """
#id = affine_map<(b, m, k) -> (b, m, k)>
func.func @main(%x: tensor<3x1x64xf32> {fp8.name = "x"}) -> (tensor<3x1x64xf32> {fp8.name = "y"}) {
  %empty = tensor.empty() : tensor<3x1x64xf32>
  %y = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%x : tensor<3x1x64xf32>) outs(%empty : tensor<3x1x64xf32>) {
  ^bb0(%v: f32, %o: f32):
    %twice = arith.addf %v, %v : f32
    linalg.yield %twice : f32
  } -> tensor<3x1x64xf32>
  return %y : tensor<3x1x64xf32>
}
"""


class Unwritten(unittest.TestCase):
    def outcome(self, *lines, **environment):
        code = CODE.replace("{body}", "\n".join("    " + line for line in lines))
        return run(code, **{"STEPS": 1000000, "CHECK": "unwritten", **environment})

    def finds(self, message, *lines):
        printed, report = self.outcome(*lines)
        self.assertEqual(printed.split(), ["719"], report)
        self.assertIn(message, re.sub("0x[0-9a-f]+", "ADDRESS", report))

    def accepts(self, *lines, **environment):
        printed, report = self.outcome(*lines, **environment)
        self.assertEqual((printed.split(), report), (["done"], ""))

    def test_load(self):
        load = f"launch({LOAD!r}, fresh)"
        self.accepts("set_words(fresh, 0, 32)", load)
        self.finds("'ld.global.b32 %r0, [%a0]': reads byte 124 of 512 bytes at ADDRESS of global memory, parameter 0's, "
                   "which nobody has written", "set_words(fresh, 0, 31)", load)
        # Only one of its lanes.
        self.accepts("set_words(fresh, 0, 8)", f"launch('setp.gt.u32 %p0, %t, 7; @%p0 bra END;{LOAD} END:', fresh)")

    def test_kernels_write(self):
        self.accepts(f"launch({STORE!r}, fresh)", f"launch({LOAD!r}, fresh)", "give_back(fresh, 128)")
        self.finds("reads byte 128 of", f"launch({STORE!r}, fresh)", f"launch({LOAD!r}, fresh, threads=64)")

    def test_part_of_a_vector_that_nobody_uses(self):
        body = "ld.global.v4.b32 {%r0, %r1, %r2, %r3}, [%a0]; add.u32 %r5, %r0, %r1; add.u32 %r5, %r5, WHICH;"
        written = "set_words(fresh, 0, 3)"
        self.accepts(written, f"launch({body.replace('WHICH', '%r2')!r}, fresh)")
        self.finds("reads byte 12 of", written, f"launch({body.replace('WHICH', '%r3')!r}, fresh)")

    def test_atomic(self):
        self.finds("reads and writes byte 0 of", "launch('red.global.add.u32 [%a0], %t;', fresh)")

    def test_copies(self):
        body = ("mov.u32 %r0, smem; cp.async.ca.shared.global [%r0], [%a0], 16; cp.async.wait_all;")
        self.accepts("set_words(fresh, 0, 4)", f"launch({body!r}, fresh, threads=1)")
        self.finds("reads byte 12 of", "set_words(fresh, 0, 3)", f"launch({body!r}, fresh, threads=1)")
        # A predicate leaves the source alone: four words of zeros.
        ignored = "setp.eq.u32 %p0, %t, 0;" + body.replace("ca.shared.global [%r0], [%a0], 16", "cg.shared.global [%r0], [%a0], 16, %p0")
        self.accepts("set_words(fresh, 0, 3)", f"launch({ignored!r}, fresh, threads=1)")
        self.finds("reads byte 12 of", "set_words(fresh, 0, 3)", f"launch({ignored.replace('16, %p0', '16, !%p0')!r}, fresh, threads=1)")
        body = """mov.u32 %r0, smem; mbarrier.init.shared.b64 [%r0], 1; fence.mbarrier_init.release.cluster;
            mbarrier.arrive.expect_tx.shared.b64 _, [%r0], 256; add.s32 %r1, %r0, 128;
            cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r1], [%a0], 256, [%r0];
            WAIT: mbarrier.try_wait.parity.shared.b64 %p1, [%r0], 0; @!%p1 bra WAIT;"""
        self.accepts("set_words(fresh, 0, 64)", f"launch({body!r}, fresh, threads=1)")
        self.finds("reads byte 252 of", "set_words(fresh, 0, 63)", f"launch({body!r}, fresh, threads=1)")

    def test_host(self):
        self.accepts("set_words(fresh, 2, 3)", "give_back(fresh, 12, offset=8)")
        self.finds("a copy to the host: nobody has written 4 of 16 bytes, the first is byte 20 of 512 bytes at ADDRESS",
                   "set_words(fresh, 2, 3)", "give_back(fresh, 16, offset=8)")
        _, report = self.outcome("give_back(fresh, 4)", MODE="lax")
        self.assertIn("note: a copy to the host", report)
        self.accepts("give_back(fresh, 4)", CHECK="races,global")

    def test_copies_take_it_along(self):
        copy = ("other = Fresh(512); set_words(fresh, 0, 2); set_words(other, 0, 128); "
                "copy(other.pointer.value, fresh.pointer.value, 12)")
        self.accepts(copy, "give_back(other, 8)", "give_back(other, 4, offset=12)")
        self.finds("nobody has written 4 of 12 bytes, the first is byte 8", copy, "give_back(other, 12)")

    def test_memory_that_was_freed(self):
        again = "device.call('cuMemFree_v2', fresh.pointer); fresh = Fresh(512)"
        self.finds("nobody has written 4 of 4 bytes", "set_words(fresh, 0, 128)", again, "give_back(fresh, 4)")

    def test_results(self):
        # Two rows of 24 of each of two matrices of 32.
        shape = "[2, 2, 24], [64, 32, 1]"
        begin, end = (f"result('fp8emu_{when}_result', fresh, {shape})" for when in ("begin", "end"))
        full = "set_words(fresh, 0, 128)"
        self.accepts(begin, f"launch({STORE!r}, fresh, threads=128)", end)
        # What was there before is no result of the launch.
        self.finds("kernel kernel has not written 112 of the 384 bytes of its result 'y', the first in element [1, 0, 20], "
                   "byte 336 of 512 bytes at ADDRESS", full, begin, f"launch({STORE!r}, fresh, threads=84)", end)
        # The next launch has nothing to do with it.
        self.accepts(full, begin, f"launch({STORE!r}, fresh, threads=128)", end, f"launch({STORE!r}, fresh)",
                     "result('fp8emu_end_result', fresh, [128], [1])")


class Programs(unittest.TestCase):
    """What a compiled program's kernel leaves out."""

    def run_program(self, change):
        with tempfile.TemporaryDirectory() as folder:
            source, library, inputs = (os.path.join(folder, name) for name in ("p.mlir", "p.so", "in"))
            with open(source, "w") as file:
                file.write(PROGRAM)
            tensors.save(inputs, {"x": np.ones((3, 1, 64), np.float32)})
            subprocess.run([os.path.join(TOOLS, "fp8-compile"), source, "--target=sm_90a", "--kernel-format=ptx", "-o",
                            library], check=True)
            with open(library, "rb") as file:
                text = change(file.read())
            with open(library, "wb") as file:
                file.write(text)
            return subprocess.run([os.path.join(TOOLS, "fp8-run"), library, f"--inputs={inputs}", "--device=emulator",
                                   "--check=all"], capture_output=True, text=True)

    def test_as_it_is(self):
        done = self.run_program(lambda text: text)
        self.assertEqual((done.returncode, done.stderr), (0, ""))

    def test_store_gone(self):
        pattern = rb"st\.global[^;]*;"
        done = self.run_program(lambda text: re.sub(pattern, lambda match: b" " * len(match[0]), text))
        self.assertNotEqual(done.returncode, 0)
        self.assertRegex(done.stderr, r"kernel \S+ has not written 768 of the 768 bytes of its result 'out0', the first in "
                                      r"element \[0, 0, 0\]")

    def test_one_matrix_only(self):
        # As if there were one batch, of one row.
        pattern, found = rb'("name": ?"batch", ?"argument": ?0, ?"dim": ?)0', []

        def change(text):
            found.extend(re.findall(pattern, text))
            return re.sub(pattern, rb"\g<1>1", text)
        done = self.run_program(change)
        self.assertEqual(len(found), 1)
        self.assertRegex(done.stderr, r"has not written 512 of the 768 bytes of its result 'out0', the first in element "
                                      r"\[1, 0, 0\]")


if __name__ == "__main__":
    TOOLS = sys.argv.pop(1)
    unittest.main()
