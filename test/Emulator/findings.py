# RUN: %python %s

"""What is wrong with a kernel is found, and what is right with its twin is not."""

import os
import tempfile
import unittest

from emulator import INIT, run, run_kernel


class Findings(unittest.TestCase):
    def outcome(self, body, shared=64, threads=32, blocks=1, cluster=None, directives="", **environment):
        environment.setdefault("STEPS", 1000000)
        return run_kernel(body, shared, threads, blocks, cluster, directives=directives, **environment)

    def finds(self, body, code, *messages, **options):
        printed, report = self.outcome(body, **options)
        self.assertEqual(printed.split(), [str(code)], report)
        for message in messages:
            self.assertIn(message, report)

    def accepts(self, body, **options):
        printed, report = self.outcome(body, **options)
        self.assertEqual((printed.split(), report), (["done"], ""))

    def test_out_of_bounds(self):
        self.accepts("add.s64 %d0, %a0, 4092; st.global.b32 [%d0], %t;")
        self.finds("add.s64 %d0, %a0, 4096; st.global.b32 [%d0], %t;", 700, "line 13",
                   "block (0, 0, 0), thread (0, 0, 0)", "0 bytes behind the end of 4096 bytes")
        self.finds("mov.u64 %d0, 0; ld.global.b32 %r1, [%d0];", 700, "of global memory is out of bounds")
        self.accepts("mov.u32 %r0, smem; st.shared.b32 [%r0+60], %t;")
        self.finds("mov.u32 %r0, smem; st.shared.b32 [%r0+64], %t;", 700, "of shared memory are out of bounds")
        self.finds("mov.u32 %r0, 0; st.shared.b32 [%r0], %t;", 700, "of shared memory are out of bounds")

    def test_innermost_coordinate(self):
        code = """
device = Device()
tensor = Buffer(device, np.zeros((8, 64), np.uint8))
text = kernel('''
    mov.u32 %r0, smem; shl.b32 %r1, %t, 3; add.s32 %r1, %r1, %r0; mov.b64 %d0, 0; st.shared.b64 [%r1], %d0;
    fence.proxy.async.shared::cta; bar.warp.sync -1; setp.ne.u32 %p0, %t, 0; @%p0 bra DONE;
    mov.b32 %r2, COORDINATE; mov.b32 %r3, 0;
    cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group [%a0, {%r2, %r3}], [%r0];
    cp.async.bulk.commit_group; cp.async.bulk.wait_group 0; DONE:''', shared=256)
text = text.replace(".param .u64 p0", ".param .align 64 .b8 p0[128]")
text = text.replace("ld.param.u64 %a0, [p0];", "mov.b64 %a0, p0; cvta.param.u64 %a0, %a0;")
try:
    device.launch(device.load(text), [device.tensor_map(tensor, (32, 8))])
    print("done")
except DriverError as error:
    print(error.code)
"""
        for coordinate, printed, message in ((16, "done", ""), (-16, "done", ""), (8, "715", "at a multiple of 16 bytes")):
            found, report = run(code.replace("COORDINATE", str(coordinate)))
            self.assertEqual(found.strip(), printed, report)
            self.assertIn(message, report)

    def test_misalignment(self):
        self.finds("st.global.b32 [%a0+2], %t;", 716, "a multiple of 4")
        self.finds("mov.u32 %r0, smem; ld.shared.v2.b32 {%r1, %r2}, [%r0+4];", 716, "a multiple of 8")

    def test_assertions(self):
        printed, report = run("""
device = Device()
declared = '''.global .align 1 .b8 message[9] = {98, 101, 108, 111, 119, 32, 51, 49};
.extern .func __assertfail (.param .b64 a, .param .b64 b, .param .b32 c, .param .b64 d, .param .b64 e) .noreturn;
'''
body = '''
    setp.lt.u32 %p0, %t, {limit};
    @%p0 bra HOLDS;
    {{
    .param .b64 param0; .param .b64 param1; .param .b32 param2; .param .b64 param3; .param .b64 param4;
    mov.b64 %d0, message;
    cvta.global.u64 %d0, %d0;
    st.param.b64 [param0], %d0;
    st.param.b64 [param1], %d0;
    st.param.b32 [param2], 20;
    st.param.b64 [param3], %d0;
    st.param.b64 [param4], 1;
    call.uni __assertfail, (param0, param1, param2, param3, param4);
    }}
    HOLDS: st.global.b32 [%a0], %t;
'''
for limit in (32, 31):
    text = kernel(body.format(limit=limit)).replace(".visible .entry", declared + ".visible .entry")
    try:
        device.launch(device.load(text), [Buffer(device, np.zeros(64, np.uint8))])
        print("done")
    except DriverError as error:
        print(error.code)
""")
        self.assertEqual(printed.split(), ["done", "710"], report)
        self.assertIn("thread (31, 0, 0)", report)
        self.assertIn("assertion failed: below 31", report)

    def test_memory_that_was_freed(self):
        printed, report = run("""
device = Device()
a, b = Buffer(device, np.zeros(1024, np.uint8)), Buffer(device, np.zeros(64, np.uint8))
device.call("cuMemFree_v2", a.pointer)
try:
    device.launch(device.load(kernel("st.global.b32 [%a0], %t;")), [a])
except DriverError as error:
    print(error.code)
try:
    Buffer(device, np.zeros(64, np.uint8))
except DriverError as error:
    print(error.code)
""")
        self.assertEqual(printed.split(), ["700", "700"], report)
        self.assertIn("in memory that was freed", report)

    def test_waits_that_never_end(self):
        wait = INIT + "WAIT: mbarrier.try_wait.parity.shared.b64 %p1, [%r0], 0; @!%p1 bra WAIT;"
        arrive = INIT + "@%p0 bra ARRIVED; mbarrier.arrive.shared.b64 _, [%r0]; ARRIVED: " + wait[len(INIT):]
        self.accepts(arrive)
        self.finds(wait, 702, "no thread can go on", "waits at 'mbarrier.try_wait.parity",
                   "mbarrier [smem+0], whose phase 0 lacks 1 of 1 arrivals and 0 bytes")
        self.finds("setp.lt.u32 %p0, %t, 32; @!%p0 bra END; bar.sync 1, 64; END:", 702,
                   "for barrier 1, where 32 threads of 64 have arrived", threads=64)

    def test_leaders(self):
        """Any lane may be the one that elect.sync takes; in lax mode it is the first, as on chips."""
        body = "elect.sync _|%p0, -1; setp.ne.u32 %p1, %t, 0; and.pred %p0, %p0, %p1; @%p0 trap;"
        self.finds(body, 719, "the kernel gave up")
        self.accepts(body, MODE="lax")

    def test_waits_that_expire(self):
        """A try_wait without a loop around it: who asks has something else to do, on which that depends."""
        body = INIT + """@%p0 bra END;
            mbarrier.try_wait.parity.shared.b64 %p1, [%r0], 0;
            mbarrier.arrive.shared.b64 _, [%r0];
            WAIT: mbarrier.try_wait.parity.shared.b64 %p1, [%r0], 0; @!%p1 bra WAIT; END:"""
        for order in ("random", "lazy", "eager"):
            self.accepts(body, ORDER=order)

    def test_transactions_that_do_not_add_up(self):
        copy = INIT + """
            @%p0 bra ISSUED;
            mbarrier.arrive.expect_tx.shared.b64 _, [%r0], BYTES;
            add.s32 %r1, %r0, 128;
            cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r1], [%a0], 256, [%r0];
            ISSUED:
            WAIT: mbarrier.try_wait.parity.shared.b64 %p1, [%r0], 0; @!%p1 bra WAIT;
            ld.shared.b32 %r2, [%r0+128];"""
        self.accepts(copy.replace("BYTES", "256"), shared=1024)
        self.finds(copy.replace("BYTES", "272"), 702, "lacks 0 of 1 arrivals and 16 bytes", shared=1024)
        self.finds(copy.replace("256, [%r0]", "250, [%r0]").replace("BYTES", "250"), 716, "a multiple of 16",
                   shared=1024)

    def test_misuse_of_mbarriers(self):
        self.finds("mov.u32 %r0, smem; mbarrier.arrive.shared.b64 _, [%r0];", 719, "was not initialized")
        self.finds(INIT + "mbarrier.arrive.shared.b64 _, [%r0], 2;", 719, "expected at most 1 more arrivals")
        self.finds(INIT + "bar.sync 0; @%p0 bra END; mbarrier.init.shared.b64 [%r0], 1; END:", 719,
                   "initialized already")

    def test_barriers_with_other_counts(self):
        body = "setp.lt.u32 %p0, %t, 32; @%p0 bra FIRST; bar.sync 1, 96; bra END; FIRST: bar.sync 1, 64; END:"
        self.accepts(body.replace("96", "64"), threads=64)
        self.finds(body, 719, "threads at barrier 1", threads=96)

    def test_divergence(self):
        body = "setp.lt.u32 %p0, %t, 16; @%p0 bra LOW; bar.sync 0; bra END; LOW: bar.sync 0; END:"
        self.finds(body, 702, "for other lanes of its warp")
        self.finds("setp.lt.u32 %p0, %t, 16; @%p0 bar.sync 0;", 719, "its guard is true in some only")

    def test_registers_beyond_the_pool(self):
        body = """setp.lt.u32 %p0, %t, 128; @%p0 bra FIRST;
            setmaxnreg.inc.sync.aligned.u32 240; bra END;
            FIRST: setmaxnreg.dec.sync.aligned.u32 DEC; END:"""
        self.accepts(body.replace("DEC", "24"), threads=384)
        self.finds(body.replace("DEC", "160"), 702, "waits at 'setmaxnreg.inc", threads=384)

    def test_clusters(self):
        remote = """mov.u32 %r0, smem; mov.u32 %r1, RANK; mapa.shared::cluster.u32 %r2, %r0, %r1;
            st.shared::cluster.b32 [%r2], %t; barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;"""
        self.accepts(remote.replace("RANK", "1"), blocks=2, cluster=(2, 1, 1))
        self.finds(remote.replace("RANK", "2"), 700, "expected a block of the cluster, of 2, but got 2", blocks=2,
                   cluster=(2, 1, 1))
        self.finds("barrier.cluster.wait.aligned;", 719, "expected a barrier.cluster.arrive before the wait")

    def test_kernels_that_never_end(self):
        self.finds("LOOP: add.s32 %r0, %r0, 1; bra LOOP;", 702, "has not ended after")
        self.finds("trap;", 719, "the kernel gave up")

    def test_results_that_were_not_waited_for(self):
        body = INIT + """
            @%p0 bra ISSUED;
            mbarrier.arrive.expect_tx.shared.b64 _, [%r0], 256;
            add.s32 %r1, %r0, 128;
            cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r1], [%a0], 256, [%r0];
            ISSUED: bar.sync 0;
            ld.shared.b32 %r2, [%r0+128]; setp.eq.u32 %p2, %r2, 0; @!%p2 trap;"""
        self.finds(body, 719, "the kernel gave up", shared=1024, ORDER="lazy")
        self.accepts(body, shared=1024, ORDER="eager")

    def test_kernel_without_ret(self):
        printed, report = run("""
device = Device()
device.launch(device.load(HEADER + ".visible .entry kernel() { }"), [])
device.launch(device.load(HEADER + ".visible .entry kernel() { bar.sync 0; }"), [])
print("done")
""")
        self.assertEqual((printed.split(), report), (["done"], ""))

    def test_calls_at_exit(self):
        """Programs free memory when what is thread-local is gone."""
        printed, report = run("""
device = Device()
context = ctypes.c_void_p()
ctypes.CDLL(None).__cxa_atexit(ctypes.CDLL(None).puts, b"last", None)
ctypes.CDLL(None).__cxa_atexit(device.library.cuCtxSynchronize, None, None)
print("done", flush=True)
""")
        self.assertEqual((printed.split(), report), (["done", "last"], ""))

    def test_report_is_written(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "report")
            self.finds("trap;", 719, REPORT=path)
            with open(path) as file:
                self.assertIn("the kernel gave up", file.read())

    def test_environment(self):
        printed, report = run("Device()", ORDER="sometimes", SMS=0, BLOCKS="random")
        self.assertIn("expected FP8_EMULATOR_SMS to be a number from 1 to 1024, but got '0'; expected "
                      "FP8_EMULATOR_ORDER to be eager, lazy or random, but got 'sometimes'; expected "
                      "FP8_EMULATOR_BLOCKS to be ordered or shuffled, but got 'random'", report)


if __name__ == "__main__":
    unittest.main()
