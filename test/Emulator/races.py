# RUN: %python %s

"""What FP8_EMULATOR_CHECK looks for: each with a twin that is right."""

import unittest

from emulator import INIT, run, run_kernel

COPY = """
    mbarrier.arrive.expect_tx.shared.b64 _, [%r0], 256;
    add.s32 %r1, %r0, 128;
    cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r1], [%a0], 256, [%r0];
"""
WAIT = "WAIT{0}: mbarrier.try_wait.parity.shared.b64 %p1, [%r0], {1}; @!%p1 bra WAIT{0};"
# The address of the thread's word, and of the next thread's.
WORDS = "shl.b32 %r1, %t, 2; add.s32 %r1, %r1, smem; add.s32 %r2, %t, 1; rem.u32 %r2, %r2, THREADS; " \
        "shl.b32 %r2, %r2, 2; add.s32 %r2, %r2, smem; st.shared.b32 [%r1], %t; "
PRODUCT = "wgmma.mma_async.sync.aligned.m64n8k32.f32.e4m3.e4m3 {%r4, %r5, %r6, %r7}, %d0, %d0, 0, 1, 1;"
# Rows of 32 bytes without a swizzle, all of shared memory written and shown.
OPERANDS = """
    mul.lo.u32 %r1, %t, 16; add.s32 %r1, %r1, smem; mov.b32 %r2, 0;
    st.shared.v4.b32 [%r1], {%r2, %r2, %r2, %r2}; st.shared.v4.b32 [%r1+2048], {%r2, %r2, %r2, %r2};
    PROXY
    bar.sync 0;
    mov.u32 %r3, smem; shr.u32 %r3, %r3, 4; and.b32 %r3, %r3, 16383; cvt.u64.u32 %d0, %r3;
    mov.u64 %d1, 0x1000000080000; or.b64 %d0, %d0, %d1;
"""
PROXY = "fence.proxy.async.shared::cta;"


class Races(unittest.TestCase):
    def outcome(self, body, shared=1024, threads=64, blocks=1, cluster=None, **environment):
        environment = {"STEPS": 1000000, "CHECK": "all", **environment}
        body = body.replace("THREADS", str(threads))
        return run_kernel(body, shared, threads, blocks, cluster, registers=32, **environment)

    def finds(self, body, *messages, **options):
        printed, report = self.outcome(body, **options)
        self.assertEqual(printed.split(), ["719"], report)
        for message in messages:
            self.assertIn(message, report)

    def accepts(self, body, **options):
        for order in ("random", "lazy"):
            printed, report = self.outcome(body, ORDER=order, **options)
            self.assertEqual((printed.split(), report), (["done"], ""))

    def twins(self, body, what, *messages, **options):
        """Right with `what`, wrong without."""
        self.accepts(body.replace("{}", what), **options)
        self.finds(body.replace("{}", ""), *messages, **options)

    def test_threads(self):
        self.twins(WORDS + "{} ld.shared.b32 %r3, [%r2];", "bar.sync 0;", "a read at [smem+", "of shared memory is not "
                   "ordered after a write by block (0, 0, 0), thread (", "'st.shared.b32 [%r1], %t'")

    def test_write_after_read(self):
        self.twins(WORDS + "bar.sync 0; ld.shared.b32 %r3, [%r2]; {} st.shared.b32 [%r1], %t;", "bar.sync 0;",
                   "a write at [smem+", "is not ordered after a read by")

    def test_lanes_of_a_warp(self):
        self.twins(WORDS + "{} ld.shared.b32 %r3, [%r2];", "bar.warp.sync -1;", "is not ordered after a write",
                   threads=32)
        # Shuffles order nothing.
        self.finds(WORDS + "shfl.sync.idx.b32 %r3, %r2, 0, 31, -1; ld.shared.b32 %r3, [%r2];", threads=32)

    def test_barriers_of_some(self):
        pair = """setp.lt.u32 %p2, %t, 64; @%p2 bra LOW;
            bar.sync 1, 128; ld.shared.b32 %r3, [smem]; bra END;
            LOW: setp.eq.u32 %p3, %t, 0; @%p3 st.shared.b32 [smem], %t; bar.arrive NUMBER, 128; END:"""
        self.accepts(pair.replace("NUMBER", "1"), threads=128)
        self.finds(pair.replace("bar.sync 1, 128; ld", "ld").replace("NUMBER", "1"), threads=128)

    def test_one_lane_arrives_for_its_warp(self):
        body = INIT + """setp.lt.u32 %p2, %t, 32; @%p2 bra FIRST;
            """ + WAIT.format("", 0) + """ mov.b32 %r4, 1; st.shared.b32 [%r0+64], %r4; bra END;
            FIRST: setp.eq.u32 %p3, %t, 9; @!%p3 bra READ; READ: ld.shared.b32 %r3, [%r0+64];
            {} setp.eq.u32 %p3, %t, 9; @!%p3 bra END; mbarrier.arrive.shared.b64 _, [%r0]; END:"""
        body = body.replace("INITIALISED: bar.sync 0;", "st.shared.b32 [%r0+64], %t; INITIALISED: bar.sync 0;")
        body = body.replace("st.shared.b32 [%r0+64], %r4", "setp.eq.u32 %p4, %t, 40; @%p4 st.shared.b32 [%r0+64], %r4")
        self.twins(body, "bar.warp.sync -1;", "a write at [smem+64]", "is not ordered after a read by", "31 more")

    def test_copy_that_is_not_waited_for(self):
        body = INIT + "@%p0 bra ISSUED;" + COPY + "ISSUED: {} ld.shared.b32 %r2, [%r0+128];"
        self.twins(body, WAIT.format("", 0), "is not ordered after an asynchronous write")
        # One thread has waited, the others have not heard of it.
        alone = INIT + "@%p0 bra ISSUED;" + COPY + WAIT.format("", 0) + "ISSUED: {} ld.shared.b32 %r2, [%r0+128];"
        self.twins(alone, "bar.sync 0;", "is not ordered after an asynchronous write", threads=32)

    def test_copy_onto_what_is_read(self):
        body = INIT + "@%p0 bra ISSUED;" + COPY + "ISSUED: " + WAIT.format("", 0) + """
            ld.shared.b32 %r2, [%r0+128];
            {} @%p0 bra AGAIN;""" + COPY + "AGAIN: " + WAIT.format("2", 1)
        self.twins(body, "bar.sync 0;", "an asynchronous write at [smem+128]", "is not ordered after a read by")

    def test_copy_from_what_is_written(self):
        body = """mov.u32 %r0, smem; setp.ne.u32 %p0, %t, 0; @%p0 bra END;
            mov.b64 %d0, 0; st.shared.v2.b64 [%r0], {%d0, %d0};""" + PROXY + """
            cp.async.bulk.global.shared::cta.bulk_group [%a0], [%r0], 16;
            cp.async.bulk.commit_group; {} st.shared.b64 [%r0+8], %d0; cp.async.bulk.wait_group 0; END:"""
        self.twins(body, "cp.async.bulk.wait_group.read 0;", "a write at [smem+8]", "after an asynchronous read by")
        self.finds(body.replace("{}", "cp.async.bulk.wait_group.read 1;"))

    def test_fence_between_proxies(self):
        body = """mov.u32 %r0, smem; setp.ne.u32 %p0, %t, 0;
            mov.b64 %d0, 0; @!%p0 st.shared.v2.b64 [%r0], {%d0, %d0}; {} bar.sync 0; SECOND @%p0 bra END;
            cp.async.bulk.global.shared::cta.bulk_group [%a0], [%r0], 16;
            cp.async.bulk.commit_group; cp.async.bulk.wait_group 0; END:"""
        self.twins(body.replace("SECOND", ""), PROXY, "lacks a fence.proxy.async between it and a write by")
        # It may be that of the thread that issues the copy, too; not one before the write.
        self.accepts(body.replace("{}", "").replace("SECOND", PROXY))
        self.finds(body.replace("{}", "").replace("SECOND", "").replace("mov.b64", PROXY + " mov.b64"))
        # The order is there, and nothing else is asked for.
        self.accepts(body.replace("{}", "").replace("SECOND", ""), CHECK="races")

    def test_barriers_shown_to_copies(self):
        body = (INIT + "@%p0 bra ISSUED;" + COPY + "ISSUED:" + WAIT.format("", 0)).replace(
            "fence.mbarrier_init.release.cluster;", "{}")
        self.twins(body, "fence.mbarrier_init.release.cluster;", "lacks a fence.mbarrier_init or fence.proxy.async")
        self.accepts(body.replace("{}", PROXY))
        self.accepts(body.replace("{}", ""), MODE="lax")

    def test_barrier_that_others_do_not_know(self):
        body = INIT.replace("bar.sync 0;", "{}") + "@%p0 bra END; mbarrier.arrive.shared.b64 _, [%r0]; END:" \
            + WAIT.format("", 0)
        body = body.replace("mov.u32 %r0, smem;", "mov.u32 %r0, smem; bar.sync 1;", 1)
        # Lanes of one warp, so that the barrier is there when the others come.
        self.twins(body, "bar.sync 0;", "an atomic write at [smem+0] of shared memory is not ordered after a write by",
                   "mbarrier.init", threads=32)

    def test_plain_copies(self):
        few = "shl.b32 %r1, %t, 2; add.s32 %r1, %r1, smem; add.s64 %d0, %a0, %o;" \
              "cp.async.ca.shared.global [%r1], [%d0], 4; cp.async.commit_group; "
        self.twins(few + "{} ld.shared.b32 %r3, [%r1];", "cp.async.wait_group 0;", "after an asynchronous write")
        self.twins(few + "{} bar.sync 0; ld.shared.b32 %r3, [smem];", "cp.async.wait_all;", "asynchronous write")
        self.finds(few + "cp.async.wait_group 1; ld.shared.b32 %r3, [%r1];")
        arrives = INIT.replace("[%r0], 1;", "[%r0], THREADS;") + few.replace("[%r1]", "[%r1+64]") \
            + "{}.shared.b64 [%r0];" + WAIT.format("", 0) + "ld.shared.b32 %r3, [smem+64];"
        self.accepts(arrives.replace("{}", "cp.async.mbarrier.arrive.noinc"))
        self.finds(arrives.replace("{}.shared.b64 [%r0]", "mbarrier.arrive.shared.b64 _, [%r0]"))

    def test_cluster(self):
        body = """mov.u32 %r0, smem; mov.u32 %r1, %cluster_ctarank; xor.b32 %r1, %r1, 1;
            mapa.shared::cluster.u32 %r2, %r0, %r1; setp.ne.u32 %p0, %t, 0;
            @!%p0 st.shared::cluster.b32 [%r2], %t; ARRIVE
            barrier.cluster.wait.aligned; ld.shared.b32 %r3, [%r0];
            barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;"""
        options = dict(blocks=2, cluster=(2, 1, 1))
        self.accepts(body.replace("ARRIVE", "barrier.cluster.arrive.aligned;"), **options)
        self.finds(body.replace("ARRIVE", "barrier.cluster.arrive.relaxed.aligned;"),
                   "a read at [smem+0] of shared memory is not ordered after a write by block (", **options)
        self.accepts(body.replace("ARRIVE", "fence.acq_rel.cluster; barrier.cluster.arrive.relaxed.aligned;"),
                     **options)

    def test_atomics(self):
        flag = """mov.u32 %r0, smem; setp.ge.u32 %p0, %t, 32; setp.eq.u32 %p2, %t, 0; mov.b32 %r1, 1;
            @%p2 st.shared.b32 [%r0], %r1; @%p2 st.shared.b32 [%r0+4], %r1; @!%p2 bra INITIALISED;
            INITIALISED: bar.sync 0; @%p0 bra READS; @!%p2 bra END; st.shared.b32 [%r0+4], %t; STORE bra END;
            READS: LOAD setp.ne.u32 %p3, %r2, 2; @%p3 bra READS; FENCE ld.shared.b32 %r3, [%r0+4]; END:"""

        def with_(store, load, fence=""):
            return flag.replace("STORE", "mov.b32 %r1, 2;" + store).replace("LOAD", load).replace("FENCE", fence)

        release, acquire = "st.release.cta.shared.b32 [%r0], %r1;", "ld.acquire.cta.shared.b32 %r2, [%r0];"
        relaxed = "ld.relaxed.cta.shared.b32 %r2, [%r0];"
        self.accepts(with_(release, acquire))
        self.finds(with_(release, relaxed), "a read at [smem+4]")
        self.finds(with_("st.relaxed.cta.shared.b32 [%r0], %r1;", acquire), "a read at [smem+4]")
        self.accepts(with_("fence.acq_rel.cta; st.relaxed.cta.shared.b32 [%r0], %r1;", relaxed, "fence.acq_rel.cta;"))
        self.accepts(with_("membar.cta; atom.shared.exch.b32 %r4, [%r0], %r1;", relaxed, "membar.cta;"))
        # Several atomic operations need no order between them.
        self.accepts("setp.eq.u32 %p0, %t, 0; @%p0 st.shared.b32 [smem], %t; bar.sync 0;"
                     "red.shared.add.u32 [smem], 1; bar.sync 0; ld.shared.b32 %r1, [smem];")

    def test_memory_that_nobody_has_written(self):
        self.twins("setp.eq.u32 %p0, %t, 0; {} bar.sync 0; ld.shared.b32 %r1, [smem+8];",
                   "@%p0 st.shared.b32 [smem+8], %t;", "a read at [smem+8] of shared memory, which nobody has written")
        self.accepts("ld.shared.b32 %r1, [smem+8];", CHECK="races,proxies")

    def product(self, then="wgmma.wait_group.sync.aligned 0;", fence="wgmma.fence.sync.aligned;", proxy=PROXY):
        return OPERANDS.replace("PROXY", proxy) + "mov.b32 %r4, 0; mov.b32 %r5, 0; mov.b32 %r6, 0; mov.b32 %r7, 0;" \
            + fence + PRODUCT + "wgmma.commit_group.sync.aligned;" + then

    def test_operands_of_products(self):
        options = dict(threads=128, shared=4096)
        wait, store = "wgmma.wait_group.sync.aligned 0;", " st.shared.b32 [%r1], %r2;"
        self.accepts(self.product(wait + "bar.sync 0;" + store), **options)
        self.finds(self.product(store + wait), "a write at [smem+", "is not ordered after an asynchronous read by",
                   **options)
        self.finds(self.product(proxy=""), "an asynchronous read at", "lacks a fence.proxy.async", **options)

    def test_registers_of_products(self):
        options = dict(threads=128, shared=4096)
        wait = "wgmma.wait_group.sync.aligned 0;"
        self.accepts(self.product(wait + "mov.b32 %r8, %r4;"), **options)
        self.accepts(self.product("wgmma.fence.sync.aligned; " + PRODUCT + "wgmma.commit_group.sync.aligned;" + wait),
                     **options)
        self.finds(self.product("mov.b32 %r8, %r4;" + wait), "reads an accumulator of a wgmma in flight", **options)
        self.finds(self.product("mov.b32 %r4, %r8;" + wait), "writes an accumulator of a wgmma in flight", **options)
        self.finds(self.product("wgmma.wait_group.sync.aligned 1; mov.b32 %r8, %r4;" + wait), "reads an accumulator",
                   **options)
        again = PRODUCT + "wgmma.commit_group.sync.aligned;" + wait
        self.accepts(self.product(wait + "mov.b32 %r8, %r4; wgmma.fence.sync.aligned; " + again), **options)
        self.accepts(self.product(wait + "mov.b32 %r8, %r9; " + again), **options)
        self.finds(self.product(wait + "mov.b32 %r8, %r4; " + again), "lacks a wgmma.fence", **options)
        self.finds(self.product(fence=""), "lacks a wgmma.fence between it and what has read", **options)

    def overlap(self, first, second, third=None, **launch):
        """What three launches print that may overlap."""
        return run(f"""
device = Device()
out, other = Buffer(device, np.zeros(4096, np.uint8)), Buffer(device, np.zeros(4096, np.uint8))
try:
    for body in {[body for body in (first, second, third) if body]!r}:
        function = device.load(kernel(body, params=2))
        device.launch(function, [out, other], wait=False, **{launch or dict(programmatic=True)!r})
    device.call("cuCtxSynchronize")
    print("done")
except DriverError as error:
    print(error.code)
""", CHECK="launches")

    def test_launches_that_overlap(self):
        write, read, other = "st.global.b32 [%a0], %t;", "ld.global.b32 %r0, [%a0];", "ld.global.b32 %r0, [%a1];"
        wait, go = "griddepcontrol.wait;", "griddepcontrol.launch_dependents;"

        def accepts(*bodies, **launch):
            self.assertEqual(self.overlap(*bodies, **launch), ("done\n", ""))

        def finds(message, *bodies):
            printed, report = self.overlap(*bodies)
            self.assertEqual(printed, "719\n", report)
            self.assertIn(message, report)

        accepts(go + write, wait + read)
        finds("'ld.global.b32 %r0, [%a0]': reads global memory at 0x", go + write, read)
        finds("before a griddepcontrol.wait, although kernel kernel writes it and may not have ended", go + write,
              read + wait)
        finds("although kernel kernel reads it and may not have ended", go + read, write)
        accepts(go + read, read)
        accepts(go + write, other)
        accepts(go + write, read, programmatic=False)
        # Who does not let others begin has ended when they do.
        accepts(write, read)
        # One thread waits, and the others wait for it.
        some = "setp.ne.u32 %p0, %t, 0; @%p0 bra HERE; " + wait + "HERE: "
        accepts(go + write, some + "bar.warp.sync -1; " + read)
        finds("reads global", go + write, some + read)
        # What came before the one before has ended, unless that one let us begin before it had waited.
        accepts(go + write, wait + go, read)
        finds("reads global", go + write, go + wait, read)

    def test_global_memory_of_other_blocks(self):
        # Each block writes its words, then counts up; who comes last reads those of all.
        own = "mov.u32 %r0, %ctaid.x; shl.b32 %r0, %r0, 8; shl.b32 %r1, %t, 2; add.s32 %r0, %r0, %r1; " \
              "cvt.u64.u32 %d0, %r0; add.s64 %d0, %d0, %a0; st.global.b32 [%d0+64], %t; bar.sync 0;"
        count = "setp.ne.u32 %p0, %t, 0; @%p0 bra COUNTED; RELEASE atom.{0}global.inc.u32 %r2, [%a0], 3; ACQUIRE " \
                "st.shared.b32 [smem], %r2; COUNTED: bar.sync 0; ld.shared.b32 %r2, [smem];"
        last = "setp.ne.u32 %p1, %r2, 3; @%p1 bra END; add.s64 %d1, %a0, 64; " \
               "ld.global.b32 %r3, [%d1+132]; ld.global.b32 %r3, [%d1+388]; ld.global.b32 %r3, [%d1+900]; END: "
        race = "a read of global memory at 0x"
        fence = "fence.acq_rel.gpu;"
        body = own + count + last
        four = dict(threads=64, blocks=4)
        right = body.format("").replace("RELEASE", fence).replace("ACQUIRE", fence)
        self.accepts(right, **four)
        self.finds(right.replace(fence, "", 1), race, "is not ordered after a write by block (", "st.global.b32",
                   **four)
        self.finds(body.format("").replace("RELEASE", fence).replace("ACQUIRE", ""), race, **four)
        # By the atomic operation itself.
        self.accepts(body.format("acq_rel.gpu.").replace("RELEASE", "").replace("ACQUIRE", ""), **four)
        self.finds(body.format("relaxed.gpu.").replace("RELEASE", "").replace("ACQUIRE", ""), race, **four)
        # A fence before the barrier is none of the thread that counts; chips let it pass.
        early = right.replace(fence, "", 1).replace("bar.sync 0;", fence + "bar.sync 0;", 1)
        self.finds(early, race, **four)
        self.assertEqual(self.outcome(early, MODE="lax", **four), ("done\n", ""))

    def test_global_memory_that_two_blocks_write(self):
        write = "mov.u32 %r0, %ctaid.x; shl.b32 %r0, %r0, {0}; cvt.u64.u32 %d0, %r0; add.s64 %d0, %d0, %a0; " \
                "st.global.v4.b32 [%d0], {{%t, %t, %t, %t}};"
        one = dict(threads=1, blocks=2)
        self.accepts(write.format(4), **one)
        self.finds("st.global.b32 [%a0+8], %t;", "a write of global memory at 0x",
                   "is not ordered after a write by block (0, 0, 0)", **one)
        # Atomic operations have no quarrel.
        self.accepts("red.global.add.u32 [%a0], 1;", **one)
        self.finds("setp.eq.u32 %p0, %t, 1; red.global.add.u32 [%a0], 1; ld.global.b32 %r0, [%a0];",
                   "is not ordered after", **one)

    def test_global_memory_in_a_block(self):
        write = "shl.b32 %r0, %t, 2; cvt.u64.u32 %d0, %r0; add.s64 %d0, %d0, %a0; st.global.b32 [%d0], %t; BAR " \
                "ld.global.b32 %r1, [%a0];"
        self.twins(write.replace("BAR", "{}"), "bar.sync 0;", "a read of global memory at 0x")

    def test_global_memory_of_a_flag(self):
        # One block waits for what the other one says.
        say = "mov.u32 %r0, %ctaid.x; setp.eq.u32 %p0, %r0, 1; @%p0 bra WAIT; st.global.b32 [%a0+64], %r0; " \
              "st.{0}.gpu.global.b32 [%a0], 1; bra END; " \
              "WAIT: ld.{1}.gpu.global.b32 %r1, [%a0]; setp.eq.u32 %p1, %r1, 0; @%p1 bra WAIT; " \
              "ld.global.b32 %r2, [%a0+64]; END: "
        two = dict(threads=1, blocks=2)
        self.accepts(say.format("release", "acquire"), **two)
        for words in (("relaxed", "acquire"), ("release", "relaxed")):
            self.finds(say.format(*words), "a read of global memory at 0x", **two)

    def test_global_memory_and_bulk_copies(self):
        # A store by the asynchronous proxy, which another block reads.
        copy = "mov.u32 %r0, %ctaid.x; setp.eq.u32 %p0, %r0, 1; @%p0 bra WAIT; mov.u32 %r1, smem; " \
               "st.shared.b32 [%r1], %t; fence.proxy.async.shared::cta; add.s64 %d0, %a0, 64; " \
               "cp.async.bulk.global.shared::cta.bulk_group [%d0], [%r1], 16; cp.async.bulk.commit_group; " \
               "cp.async.bulk.wait_group{0} 0; st.release.gpu.global.b32 [%a0], 1; bra END; " \
               "WAIT: ld.acquire.gpu.global.b32 %r1, [%a0]; setp.eq.u32 %p1, %r1, 0; @%p1 bra WAIT; " \
               "ld.global.b32 %r2, [%a0+64]; END: "
        two = dict(threads=1, blocks=2, CHECK="global")
        self.accepts(copy.format(""), **two)
        self.finds(copy.format(".read"), "is not ordered after an asynchronous write by block (0, 0, 0)", **two)

    def test_global_memory_of_a_cluster(self):
        write = "mov.u32 %r0, %ctaid.x; shl.b32 %r0, %r0, 2; cvt.u64.u32 %d0, %r0; add.s64 %d0, %d0, %a0; " \
                "st.global.b32 [%d0], %t; {} ld.global.b32 %r1, [%a0]; ld.global.b32 %r1, [%a0+4];"
        self.twins(write, "barrier.cluster.arrive; barrier.cluster.wait;", "a read of global memory at 0x", threads=1,
                   blocks=2, cluster=(2, 1, 1))

    def test_lax(self):
        printed, report = self.outcome(WORDS + "ld.shared.b32 %r3, [%r2];", MODE="lax")
        self.assertEqual(printed.split(), ["done"])
        self.assertIn("note: kernel kernel, block (0, 0, 0), thread (", report)
        # Lanes of a warp go together there.
        self.accepts(WORDS + "ld.shared.b32 %r3, [%r2];", MODE="lax", threads=32)

    def test_environment(self):
        printed, report = run("Device()", CHECK="races,luck")
        self.assertIn("expected FP8_EMULATOR_CHECK to be a list of races, proxies, uninitialized, registers, launches, "
                      "global, unwritten, sums, all, but got 'races,luck'", report)


if __name__ == "__main__":
    unittest.main()
