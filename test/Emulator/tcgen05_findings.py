# RUN: %python %s

"""What is wrong with a tcgen05 kernel is found, and nothing of its twin that is right."""

import unittest

import blackwell
from blackwell import Tile, lay
from emulator import np, run

CODE = """
import blackwell
device = Device()
image = Buffer(device, np.zeros({bytes}, np.uint8))
tensor, out = (Buffer(device, np.zeros((2, 128, 512), np.uint32)) for _ in range(2))
try:
    device.launch(device.load({text!r}), [image, out, tensor], grid=({blocks}, 1, 1), block=(128, 1, 1), smem={smem},
                  cluster={cluster})
    print("done")
except DriverError as error:
    print(error.code, error.log)
"""
A, B = Tile(np.zeros((128, 32), np.uint8), 32), Tile(np.zeros((32, 32), np.uint8), 32)
IMAGE, (AT_A, AT_B) = lay([A, B])
WORD = 1 << 4 | 32 >> 3 << 17 | 128 >> 4 << 24
MMA = f"tcgen05.mma.cta_group::1.kind::f8f6f4 [%r1], %d8, %d9, {WORD}, %p4;"
WORK = A.descriptor("%d8", AT_A) + B.descriptor("%d9", AT_B) + "setp.ne.u32 %p4, 0, 0;\n" + MMA
COMMIT = blackwell.COMMIT[1]
WAIT = "mbarrier.try_wait.parity.shared.b64 %p2, [%r0], 0;\n@!%p2 bra WAIT;\n"
DEALLOC = "tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r1, 32;"
ALLOC = "tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%r0+8], 32;"


class Findings(unittest.TestCase):
    def outcome(self, text, blocks=1, cluster=None, **environment):
        code = CODE.format(text=text, bytes=2 * IMAGE.size, blocks=blocks, cluster=cluster,
                           smem=blackwell.IMAGE + IMAGE.size)
        return run(code, ARCH=100, STEPS=1000000, **environment)

    def text(self, *changes, work=WORK, columns=32, group=1):
        text = blackwell.text(work, columns, IMAGE.size, group)
        for old, new in changes:
            self.assertIn(old, text)
            text = text.replace(old, new, 1) if not old.startswith("*") else text.replace(old[1:], new)
        return text

    def finds(self, *messages, changes=(), code=None, **options):
        environment = {"CHECK": "none", **{k: options.pop(k) for k in list(options) if k.isupper()}}
        launch = {k: options.pop(k) for k in ("blocks", "cluster") if k in options}
        printed, report = self.outcome(self.text(*changes, **options), **launch, **environment)
        self.assertNotIn("done", printed, report)
        for message in messages:
            self.assertIn(message, report + printed)
        if code:
            self.assertEqual(printed.split()[0], str(code), report)

    def reports(self, *messages, changes=(), **options):
        """By the checks that are asked for, not without them."""
        self.finds(*messages, changes=changes, CHECK="all", **options)

    def accepts(self, changes=(), blocks=1, cluster=None, work=WORK, columns=32, group=1, **environment):
        for order in ("random", "lazy", "eager"):
            printed, report = self.outcome(self.text(*changes, work=work, columns=columns, group=group), blocks=blocks,
                                           cluster=cluster, ORDER=order, **{"CHECK": "all", **environment})
            self.assertEqual((printed.split(), report), (["done"], ""))

    def test_twins(self):
        self.accepts()
        pair = WORK.replace(MMA, MMA.replace("::1", "::2").replace(str(WORD), str(WORD + (8 << 24))))
        self.accepts(work=pair, group=2, blocks=2, cluster=(2, 1, 1))
        self.finds("expected the even block of the pair", work=pair, group=2, blocks=2, cluster=(2, 1, 1),
                   changes=[("setp.eq.u32 %p3, %r2, 0;", "setp.eq.u32 %p3, %r2, 1;")])
        self.finds("expected a cluster of pairs of blocks", work=pair, group=2, cluster=(1, 1, 1),
                   changes=[("\n    .reqnctapercluster 2, 1, 1", "")])
        self.finds("expected one .cta_group in all of a kernel", work=pair, code=218)

    def test_other_devices(self):
        self.finds("expected code for sm_100, but got sm_90a", changes=[("sm_100a", "sm_90a")], code=218)
        self.finds("expected a module for sm_100a, but got one for sm_90", changes=[("sm_100a", "sm_90")], code=218)
        self.finds("expected a module for sm_90a, but got one for sm_100a",
                   changes=[("END:\nret;", "END:\nwgmma.fence.sync.aligned;\nret;")], code=218)

    def test_allocations(self):
        self.finds("32 columns of tensor memory from", "were not deallocated before the block ended",
                   changes=[(DEALLOC, "")])
        self.finds("expected what was allocated, but got 64 columns",
                   changes=[(DEALLOC, DEALLOC.replace("32;", "64;"))])
        self.finds("expected what was allocated", changes=[(DEALLOC, DEALLOC + DEALLOC)])
        self.finds("expected a power of two from 32 to 512 columns, but got 48",
                   changes=[(ALLOC, ALLOC.replace("32;", "48;"))])
        again = ALLOC.replace("+8", "+16")
        self.finds("expected no allocation after tcgen05.relinquish_alloc_permit",
                   changes=[("ALLOCATED:\n", again + "ALLOCATED:\n")])
        self.finds("expected at most the 32 columns of the allocation before, but got 64",
                   changes=[(ALLOC, ALLOC + again.replace("32;", "64;"))])
        self.finds("no thread can go on", "waits at 'tcgen05.alloc", code=702, columns=512,
                   changes=[("[%r0+8], 512;", "[%r0+8], 512;" + again.replace("32;", "512;"))])

    def test_allocations_by_two_warps(self):
        """Each of its own columns, of other sizes."""
        both = [("@!%p1 bra ALLOCATED;", """setp.ge.u32 %p4, %t, 96; @!%p4 bra FIRST;
            tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%r0+16], 32; FIRST:
            @!%p1 bra ALLOCATED;"""), ("tcgen05.relinquish_alloc_permit.cta_group::1.sync.aligned;", ""),
                ("@!%p1 bra END;", """@!%p4 bra OTHER; ld.shared.b32 %r9, [%r0+16];
            tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r9, 32; OTHER: @!%p1 bra END;""")]
        self.accepts(changes=both)

    def test_columns_that_are_not_allocated(self):
        self.finds("D in columns", "which are not all allocated", work=WORK.replace(str(WORD), str(WORD + (4 << 17))),
                   code=700)
        self.finds("a load in columns", "are not all allocated: none are",
                   changes=[(DEALLOC, DEALLOC + "tcgen05.ld.sync.aligned.32x32b.x1.b32 {%v0}, [%r1];")])

    def test_lanes_of_warps(self):
        self.finds("expected an address at lane ", "of tensor memory from warp ", "of the block, but got lane 0",
                   changes=[("shl.b32 %r6, %r6, 21;", "mov.b32 %r6, 0;")])
        self.accepts(changes=[("shl.b32 %r6, %r6, 21;", "mov.b32 %r6, 0;")], MODE="lax")
        self.finds("expected an address at lane 0 of tensor memory, but got lane 5",
                   work=WORK.replace(MMA, "add.s32 %r1, %r1, 0x50000;\n" + MMA))

    def test_what_is_not_modelled(self):
        for old, new, message in [("mma.", "mma.ws.", "expected no .ws: weights that stay are not modelled"),
                                  ("mma.", "mma.sp.", "expected no .sp: sparse operands are not modelled"),
                                  (MMA, "tcgen05.shift.cta_group::1.down [%r1];",
                                   "expected no tcgen05.shift, which is not modelled")]:
            self.finds(message, work=WORK.replace(MMA, MMA.replace(old, new)), code=218)

    def test_instruction_descriptors(self):
        for bits, message in [
                (1 << 2, "0 in bit 2 of the instruction descriptor, sparsity, which is not modelled, but got 1"),
                (1 << 3, "0 in bit 3 of the instruction descriptor, saturation of integers"),
                (1 << 5, "0 (f16) or 1 (f32) in bits 4 to 5 of the instruction descriptor, the type of D, but got 3"),
                (1 << 6, "0 in bit 6 of the instruction descriptor, reserved"),
                (2 << 7, "in bits 7 to 9 of the instruction descriptor, the type of A, but got 2"),
                (7 << 10, "in bits 10 to 12 of the instruction descriptor, the type of B, but got 7"),
                (1 << 23, "0 in bit 23 of the instruction descriptor, reserved"),
                (1 << 25, "expected M of 64 or 128 in the instruction descriptor, but got 160"),
                (1 << 22, "expected N to be a multiple of 8 up to 256 in bits 17 to 22"),
                (1 << 29, "0 in bit 29 of the instruction descriptor, reserved"),
                (1 << 30, "0 in bits 30 to 31 of the instruction descriptor, the shift of .ws")]:
            with self.subTest(message=message):
                self.finds(message, work=WORK.replace(str(WORD), str(WORD | bits)), code=715)
        self.finds("expected N to be a multiple of 8 up to 256", work=WORK.replace(str(WORD), str(WORD & ~(63 << 17))))
        integers = WORK.replace("f8f6f4", "i8")
        self.accepts(work=integers.replace(str(WORD), str(WORD ^ 3 << 4)))
        for bits, message in [(0, "2 (s32) in bits 4 to 5 of the instruction descriptor, the type of D, but got 1"),
                              (3 << 4 | 2 << 7, "0 (u8) or 1 (s8) in bits 7 to 9 of the instruction descriptor"),
                              (3 << 4 | 1 << 14, "bits 13 to 14 of the instruction descriptor, negation"),
                              (3 << 4 | 1 << 17, "expected N to be a multiple of 16 up to 256 in bits 17 to 22")]:
            with self.subTest(message=message):
                self.finds(message, work=integers.replace(str(WORD), str(WORD ^ bits)), code=715)
        scaled = MMA.replace("f8f6f4", "mxf8f6f4.block_scale").replace("%p4", "[%r1], [%r1], %p4")
        word = 32 >> 3 << 17 | 1 << 23 | 1 << 27
        for kind, bits, message in [
                ("mxf8f6f4.block_scale", word ^ 1 << 23, "1 (ue8m0) in bit 23 of the instruction descriptor"),
                ("mxf8f6f4.block_scale", word | 1 << 24, "0 in bits 24 to 26 of the instruction descriptor, reserved"),
                ("mxf4.block_scale", word | 1 << 7 | 1 << 10 | 1 << 4, "0 or 2 in bits 4 to 5 of the instruction "
                 "descriptor, the first factor of B, but got 1"),
                ("mxf4nvf4.block_scale.block16", word | 1 << 7 | 1 << 10 | 2 << 29, "the first factor of A, but got 2"),
                ("mxf4.block_scale", word | 1 << 7 | 1 << 10 | 1 << 15, "rows of A side by side, which FP4 has not"),
                ("mxf4.block_scale", word, "1 (e2m1) in bits 7 to 9")]:
            with self.subTest(kind=kind, message=message):
                mma = scaled.replace("mxf8f6f4.block_scale", kind).replace(str(WORD), str(bits))
                self.finds(message, work=WORK.replace(MMA, mma), code=715)

    def test_matrix_descriptors(self):
        for bits, message in [(0x4000, "0 in bits 14 to 15 of the matrix descriptor, reserved, but got 1"),
                              (1 << 30, "0 in bits 30 to 31 of the matrix descriptor"),
                              (1 << 47, "1 in bits 46 to 48 of the matrix descriptor, its version, but got 3"),
                              (1 << 49, "0 in bits 49 to 51 of the matrix descriptor, a base offset"),
                              (1 << 52, "0 in bit 52 of the matrix descriptor, absolute strides"),
                              (1 << 53, "0 in bits 53 to 60 of the matrix descriptor"),
                              (1 << 61, "in bits 61 to 63 of the matrix descriptor, the swizzle, ")]:
            with self.subTest(message=message):
                self.finds(message, work=WORK.replace(MMA, f"or.b64 %d9, %d9, {bits};\n" + MMA), code=715)
        self.finds("an operand at", "of shared memory is out of bounds", code=700,
                   work=WORK.replace(MMA, "or.b64 %d9, %d9, 0x3fff;\n" + MMA))

    def test_commits(self):
        self.finds("no thread can go on", "whose phase 0 lacks 1 of 1 arrivals", changes=[(COMMIT, "")], code=702)
        self.finds("was not initialized", changes=[(COMMIT, COMMIT.replace("[%r0]", "[%r0+32]"))])

    def test_results_that_were_not_waited_for(self):
        self.reports("a load of column", "is not ordered after an asynchronous write", "tcgen05.mma",
                     changes=[(WAIT, "bar.sync 0;\n")])

    def test_operands_that_are_overwritten(self):
        overwrite = COMMIT + "\nst.shared.b32 [%r0+1024], %t;"
        self.reports("a write at [smem+1024] of shared memory is not ordered after an asynchronous read",
                     changes=[(COMMIT, overwrite)])
        self.accepts(changes=[(WAIT, WAIT + "@%p0 st.shared.b32 [%r0+1024], %t;\n")])

    def test_fences(self):
        after = "tcgen05.fence::after_thread_sync;\n"
        self.reports("lacks a tcgen05.fence::after_thread_sync", "a load of column",
                     changes=[(WAIT + after, WAIT)])
        self.accepts(changes=[(WAIT + after, WAIT)], MODE="lax")
        self.reports("lacks a tcgen05.fence::after_thread_sync", "an asynchronous write",
                     changes=[("@!%p3 bra DONE;\n" + after, "@!%p3 bra DONE;\n")])
        self.reports("the other thread a ::before_thread_sync", "an asynchronous write",
                     changes=[("tcgen05.wait::st.sync.aligned;\n\ntcgen05.fence::before_thread_sync;",
                               "tcgen05.wait::st.sync.aligned;\n")])
        self.reports("lacks a fence.proxy.async between it and", changes=[("fence.proxy.async.shared::cta;\n", "")])

    def test_waits_for_loads_and_stores(self):
        self.reports("an asynchronous write of column", "is not ordered after an asynchronous write", "tcgen05.st",
                     changes=[("tcgen05.wait::st.sync.aligned;\n", "")])
        again = "tcgen05.st.sync.aligned.32x32b.x1.b32 [%r5], {%v4};\n"
        wait = "tcgen05.wait::ld.sync.aligned;\n"
        store = "tcgen05.wait::st.sync.aligned;\n"
        self.reports("a store of column", "is not ordered after an asynchronous read", "tcgen05.ld",
                     changes=[(wait, again + store + wait)])
        self.accepts(changes=[(wait, wait + again + store)])
        # Loads that others' end of the columns does not wait for.
        self.reports("the end of column", changes=[("@%p2 bra STORE;\ntcgen05.fence::before_thread_sync;\nbar.sync 0;",
                                                   "@%p2 bra STORE;\ntcgen05.fence::before_thread_sync;\n")])

    def test_memory_that_nobody_has_written(self):
        fill = blackwell.FILL.format(columns=32)
        self.accepts(changes=[(fill, "")])
        self.reports("an asynchronous write of column", "which nobody has written",
                     changes=[(fill, ""), ("setp.ne.u32 %p4, 0, 0;", "setp.ne.u32 %p4, 1, 0;")])

    def test_threads_of_which_each_issues(self):
        """Two threads' products without an order between them."""
        both = [("@!%p3 bra DONE;", "setp.lt.u32 %p3, %t, 2;\n@!%p3 bra DONE;"),
                ("mbarrier.init.shared.b64 [%r0], 1;", "mbarrier.init.shared.b64 [%r0], 2;")]
        self.reports("an asynchronous write of column", "is not ordered after an asynchronous write", "tcgen05.mma",
                     changes=both)


CONTROL = """
device = Device()
out = Buffer(device, np.zeros(64, np.uint32))
text = kernel({body!r}, shared=64).replace(HEADER, ".version 8.7\\n.target sm_100a\\n.address_size 64\\n").replace(
    ".reg .b32 %t;", ".reg .b32 %t; .reg .b128 %q<2>;")
try:
    device.launch(device.load(text), [out])
    print("done")
except DriverError as error:
    print(error.code)
"""
ASK = """
    mov.u32 %r0, smem; setp.ne.u32 %p0, %t, 0; @%p0 bra END;
    mbarrier.init.shared.b64 [%r0], 1; fence.mbarrier_init.release.cluster;
    mbarrier.arrive.expect_tx.shared.b64 _, [%r0], 16;
    clusterlaunchcontrol.try_cancel.async.shared::cta.mbarrier::complete_tx::bytes.b128 [%r0+16], [%r0];
    WAIT: mbarrier.try_wait.parity.shared.b64 %p1, [%r0], 0; @!%p1 bra WAIT;
    ld.shared.b128 %q0, [%r0+16];
    clusterlaunchcontrol.query_cancel.is_canceled.pred.b128 %p2, %q0;
    {} END:
"""


class ClusterLaunchControl(unittest.TestCase):
    def outcome(self, body):
        return run(CONTROL.format(body=body), ARCH=100, CHECK="all")

    def test_questions(self):
        self.assertEqual(self.outcome(ASK.format("")), ("done\n", ""))
        again = "mbarrier.arrive.expect_tx.shared.b64 _, [%r0], 16; clusterlaunchcontrol.try_cancel.async.shared::cta" \
                ".mbarrier::complete_tx::bytes.b128 [%r0+16], [%r0];"
        first = "clusterlaunchcontrol.query_cancel.get_first_ctaid.v4.b32.b128 {%r1, %r2, %r3, %r4}, %q0;"
        early = ASK.format("").replace("WAIT: mbarrier.try_wait.parity.shared.b64 %p1, [%r0], 0; @!%p1 bra WAIT;", "")
        for body, message in [(ASK.format(again), "expected no try_cancel after one that was refused"),
                              (ASK.format(first), "expected the answer of a try_cancel that was not refused"),
                              (early, "expected the answer of a try_cancel that was waited for")]:
            printed, report = self.outcome(body)
            self.assertEqual(printed, "719\n", report)
            self.assertIn(message, report)


if __name__ == "__main__":
    unittest.main()
