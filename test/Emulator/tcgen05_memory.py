# RUN: env FP8_EMULATOR_ARCH=100 FP8_EMULATOR_CHECK=all FP8_TEST_ASSEMBLE=1 %python %s

"""What tcgen05.ld, st and cp move where; conversions and cluster launch control of sm_100."""

import unittest

import ml_dtypes
import numpy as np

from blackwell import HEADER, Tile, assemble, descriptor, execute, lay
from emulator import Buffer, Device

device = Device()
rng = np.random.default_rng(0)
# Places of a thread's register: the lane and the column (PTX ISA, figures of data movement shapes).
SHAPES = {
    "32x32b": (1, lambda t, i: (t, i)),
    "16x64b": (1, lambda t, i: (t // 4 + t % 2 * 8, i * 2 + t % 4 // 2)),
    "16x128b": (2, lambda t, i: (t // 4 + i % 2 * 8, i // 2 * 4 + t % 4)),
    "16x256b": (4, lambda t, i: (t // 4 + i % 4 // 2 * 8, i // 4 * 8 + t % 4 * 2 + i % 2)),
}


def vector(count):
    return "{" + ", ".join(f"%v{i}" for i in range(count)) + "}"


class Moves(unittest.TestCase):
    def words(self, columns=128):
        return rng.integers(0, 1 << 32, (1, 128, columns), np.uint64).astype(np.uint32)

    def run_each(self, each, words):
        return execute(device, "", [np.zeros(2048, np.uint8)], words, each=each)[0]

    def locate(self, shape, count, packed=1):
        """Lanes and columns, (registers, 32 threads)."""
        place = [[SHAPES[shape][1](t, i) for t in range(32)] for i in range(count)]
        return np.array(place)[..., 0], np.array(place)[..., 1] * packed

    def test_shapes(self):
        for shape, (unit, _) in SHAPES.items():
            for number in (1, 2, 8):
                for half in (0, 16)[:1 if shape[0] == "3" else 2]:
                    with self.subTest(shape=shape, number=number, half=half):
                        self.check_shape(shape, number, number * unit, half)

    def check_shape(self, shape, number, count, half):
        """To registers and to 64 columns further, a register a column; and back the other way."""
        words = self.words(256)
        lanes, columns = self.locate(shape, count)
        to = "32x32b.x" + str(count)
        each = f"""add.s32 %r8, %r6, {(half << 16) + 4}; add.s32 %r9, %r6, 64;
            tcgen05.ld.sync.aligned.{shape}.x{number}.b32 {vector(count)}, [%r8];
            tcgen05.wait::ld.sync.aligned;
            tcgen05.st.sync.aligned.{to}.b32 [%r9], {vector(count)}; tcgen05.wait::st.sync.aligned;
            add.s32 %r8, %r6, {(half << 16) + 160}; add.s32 %r9, %r6, 4;
            tcgen05.ld.sync.aligned.{to}.b32 {vector(count)}, [%r9]; tcgen05.wait::ld.sync.aligned;
            tcgen05.st.sync.aligned.{shape}.x{number}.b32 [%r8], {vector(count)}; tcgen05.wait::st.sync.aligned;"""
        got = self.run_each(each, words)
        for warp in range(4):
            old, new = words[0, 32 * warp:32 * warp + 32], got[32 * warp:32 * warp + 32]
            np.testing.assert_array_equal(new[:, 64:64 + count].T, old[lanes + half, columns + 4])
            np.testing.assert_array_equal(new[lanes + half, columns + 160], old[:, 4:4 + count].T)

    def test_two_parts(self):
        words = self.words()
        each = f"""add.s32 %r8, %r6, 64;
            tcgen05.ld.sync.aligned.16x32bx2.x4.b32 {vector(4)}, [%r6], 16; tcgen05.wait::ld.sync.aligned;
            tcgen05.st.sync.aligned.32x32b.x4.b32 [%r8], {vector(4)}; tcgen05.wait::st.sync.aligned;"""
        got = self.run_each(each, words)
        for warp in range(4):
            old, new = words[0, 32 * warp:], got[32 * warp:]
            np.testing.assert_array_equal(new[:16, 64:68], old[:16, :4])
            np.testing.assert_array_equal(new[16:32, 64:68], old[:16, 16:20])

    def test_halves(self):
        """Two columns a register."""
        words = self.words() & np.uint32(0xffff)
        each = f"""add.s32 %r8, %r6, 64;
            tcgen05.ld.sync.aligned.32x32b.x4.pack::16b.b32 {vector(4)}, [%r6]; tcgen05.wait::ld.sync.aligned;
            tcgen05.st.sync.aligned.32x32b.x4.b32 [%r8], {vector(4)};
            add.s32 %r8, %r6, 96;
            tcgen05.st.sync.aligned.32x32b.x4.unpack::16b.b32 [%r8], {vector(4)}; tcgen05.wait::st.sync.aligned;"""
        got = self.run_each(each, words)
        np.testing.assert_array_equal(got[:, 64:68], words[0, :, 0:8:2] | words[0, :, 1:8:2] << 16)
        np.testing.assert_array_equal(got[:, 96:104], words[0, :, :8])

    def test_registers_before_the_wait(self):
        """Who uses a register of a load has it, whether or not the load was waited for."""
        words = self.words()
        each = f"""add.s32 %r8, %r6, 64;
            tcgen05.ld.sync.aligned.32x32b.x4.b32 {vector(4)}, [%r6];
            add.s32 %v4, %v0, %v3;
            tcgen05.st.sync.aligned.32x32b.x1.b32 [%r8], {{%v4}};
            tcgen05.wait::ld.sync.aligned; tcgen05.wait::st.sync.aligned;"""
        got = self.run_each(each, words)
        np.testing.assert_array_equal(got[:, 64], words[0, :, 0] + words[0, :, 3])

    def test_copies(self):
        quarters = {"32x128b.warpx4": [[0, 1, 2, 3]], "64x128b.warpx2::02_13": [[0, 2], [1, 3]],
                    "64x128b.warpx2::01_23": [[0, 1], [2, 3]], "128x128b": [[0], [1], [2], [3]],
                    "128x256b": [[0], [1], [2], [3]]}
        for shape, places in quarters.items():
            for group in (1, 2):
                with self.subTest(shape=shape, group=group):
                    width = 32 if "256" in shape else 16
                    data = rng.integers(0, 256, (group, 32 * len(places), width)).astype(np.uint8)
                    tiles = [Tile(part, 0) for part in data]
                    images = [lay([tile])[0] for tile in tiles]
                    words = np.concatenate([self.words(32)] * group)
                    got = execute(device, tiles[0].descriptor("%d8", 0) + "add.s32 %r9, %r1, 8;\n" +
                                  f"tcgen05.cp.cta_group::{group}.{shape} [%r9], %d8;\n", images, words, group)
                    for block in range(group):
                        for part, lanes in enumerate(places):
                            wanted = data[block, 32 * part:32 * part + 32].view(np.uint32)
                            for quarter in lanes:
                                there = got[block, 32 * quarter:32 * quarter + 32]
                                np.testing.assert_array_equal(there[:, 8:8 + width // 4], wanted)
                        untouched = np.r_[0:8, 8 + width // 4:32]
                        np.testing.assert_array_equal(got[block][:, untouched], words[block][:, untouched])


KERNEL = HEADER + """
.extern .shared .align 1024 .b8 smem[];
.visible .entry kernel(.param .u64 p0, .param .u64 p1) .reqntid 32, 1, 1
{{
.reg .pred %p<8>; .reg .b8 %b<8>; .reg .b16 %h<8>; .reg .b32 %r<32>; .reg .f32 %f<8>; .reg .b64 %d<16>;
.reg .b128 %q<2>;
ld.param.u64 %d0, [p0];
ld.param.u64 %d1, [p1];
cvta.to.global.u64 %d0, %d0;
cvta.to.global.u64 %d1, %d1;
mov.u32 %r0, %tid.x;
{body}
ret;
}}
"""


class Instructions(unittest.TestCase):
    def run_kernel(self, body, values, out, grid=1, smem=1024):
        module = KERNEL.format(body=body)
        assemble(module)
        result = Buffer(device, out)
        device.launch(device.load(module), [Buffer(device, values), result], grid=(grid, 1, 1), smem=smem)
        return result.array

    def test_tensors_of_4_bits(self):
        """Two elements a byte; of type 14 each 16 are 16 bytes in shared memory, and 8 of a barrier."""
        data = rng.integers(0, 256, (8, 128)).astype(np.uint8)
        units = data[:, 64:].reshape(8, 8, 8)
        for kind, bytes_, width, wanted in [(13, 512, 64, data[:, 64:]),
                                            (14, 512, 128, np.concatenate([units, np.zeros_like(units)], 2))]:
            buffer = Buffer(device, data)
            map_ = device.tensor_map(buffer, (128, 8), 0, kind, sizes=(256, 8))
            body = f"""
                mov.u32 %r1, smem; setp.ne.u32 %p0, %r0, 0; @%p0 bra LOADED;
                mbarrier.init.shared.b64 [%r1], 1; fence.mbarrier_init.release.cluster;
                mbarrier.arrive.expect_tx.shared.b64 _, [%r1], {bytes_}; mov.b64 %d0, p0; cvta.param.u64 %d0, %d0;
                add.s32 %r2, %r1, 1024; mov.b32 %r3, 128; mov.b32 %r4, 0;
                cp.async.bulk.tensor.2d.shared::cta.global.tile.mbarrier::complete_tx::bytes
                    [%r2], [%d0, {{%r3, %r4}}], [%r1];
                LOADED: bar.warp.sync -1;
                WAIT: mbarrier.try_wait.parity.shared.b64 %p1, [%r1], 0; @!%p1 bra WAIT;
                shl.b32 %r2, %r0, 2;
                NEXT: add.s32 %r3, %r1, %r2; ld.shared.b32 %r4, [%r3+1024];
                cvt.u64.u32 %d2, %r2; add.s64 %d2, %d1, %d2; st.global.b32 [%d2], %r4;
                add.s32 %r2, %r2, 128; setp.lt.u32 %p2, %r2, {8 * width}; @%p2 bra NEXT;"""
            module = KERNEL.replace(".param .u64 p0", ".param .align 64 .b8 p0[128]").replace(
                "ld.param.u64 %d0, [p0];", "").replace("cvta.to.global.u64 %d0, %d0;", "").format(body=body)
            assemble(module)
            out = Buffer(device, np.zeros((8, width), np.uint8))
            device.launch(device.load(module), [map_, out], smem=4096)
            np.testing.assert_array_equal(out.array, wanted.reshape(8, width))

    def test_conversions_to_narrow_types(self):
        edges = [np.nan, np.inf, -np.inf, 0.25, 0.125, 5e-324, 2.0 ** -127, 1.5 * 2.0 ** -127, 2.0 ** 127, 3e38, 1.0,
                 1.25, -3, 0.3, 0, -0.0]
        values = np.concatenate([np.linspace(-8, 8, 41), edges])
        values = np.concatenate([values, rng.standard_normal(64 - values.size)]).astype(np.float32).reshape(32, 2)
        body = """
            mul.wide.u32 %d2, %r0, 8; add.s64 %d2, %d0, %d2; ld.global.v2.f32 {%f0, %f1}, [%d2];
            mul.wide.u32 %d3, %r0, 16; add.s64 %d3, %d1, %d3;
            cvt.rn.satfinite.e2m1x2.f32 %b0, %f1, %f0; mov.b32 %r1, {%b0, %b0, %b0, %b0};
            cvt.rn.satfinite.e2m3x2.f32 %h1, %f1, %f0; cvt.rn.satfinite.e3m2x2.f32 %h2, %f1, %f0;
            mov.b32 %r2, {%h1, %h2};
            cvt.rp.satfinite.ue8m0x2.f32 %h3, %f1, %f0; cvt.rz.satfinite.ue8m0x2.f32 %h4, %f1, %f0;
            mov.b32 %r3, {%h3, %h4};
            cvt.rn.f16x2.e2m1x2 %r4, %b0;
            st.global.v4.b32 [%d3], {%r1, %r2, %r3, %r4};"""
        got = self.run_kernel(body, values, np.zeros((32, 4), np.uint32)).view(np.uint8)
        plain = np.where(np.isnan(values), np.inf, values)

        def codes(dtype):
            return np.clip(plain, -float(ml_dtypes.finfo(dtype).max), float(ml_dtypes.finfo(dtype).max)).astype(dtype)

        four = codes(ml_dtypes.float4_e2m1fn)
        nibbles = four.view(np.uint8)
        for byte in range(4):
            np.testing.assert_array_equal(got[:, byte], nibbles[:, 0] | nibbles[:, 1] << 4)
        np.testing.assert_array_equal(got[:, 4:6], codes(ml_dtypes.float6_e2m3fn).view(np.uint8))
        np.testing.assert_array_equal(got[:, 6:8], codes(ml_dtypes.float6_e3m2fn).view(np.uint8))
        for at, up in ((8, True), (10, False)):
            with np.errstate(all="ignore"):
                log = np.log2(np.abs(values.astype(np.float64)))
                exponent = np.clip(np.ceil(log) if up else np.floor(log), -127, 127) + 127
            np.testing.assert_array_equal(got[:, at:at + 2], np.where(np.isnan(values), 255, exponent).astype(np.uint8))
        np.testing.assert_array_equal(got[:, 12:].copy().view(np.float16), four.astype(np.float16))

    def test_conversions_of_factors(self):
        values = np.arange(256, dtype=np.uint8)[:64]
        body = """mul.wide.u32 %d2, %r0, 2; add.s64 %d2, %d0, %d2; ld.global.b16 %h0, [%d2];
            cvt.rn.bf16x2.ue8m0x2 %r1, %h0; mul.wide.u32 %d3, %r0, 4; add.s64 %d3, %d1, %d3;
            st.global.b32 [%d3], %r1;"""
        for first in range(0, 256, 64):
            codes = (values + first).astype(np.uint8)
            got = self.run_kernel(body, codes, np.zeros(32, np.uint32)).view(ml_dtypes.bfloat16)
            wanted = codes.view(ml_dtypes.float8_e8m0fnu)
            np.testing.assert_array_equal(got.astype(np.float64), wanted.astype(np.float64))

    def test_pairs_of_f32(self):
        values = rng.standard_normal((32, 2)).astype(np.float32)
        body = """mul.wide.u32 %d2, %r0, 8; add.s64 %d3, %d0, %d2; ld.global.b64 %d4, [%d3];
            add.rn.f32x2 %d5, %d4, %d4; mul.rn.f32x2 %d6, %d5, %d4; fma.rn.f32x2 %d7, %d4, %d5, %d6;
            add.s64 %d8, %d1, %d2; st.global.b64 [%d8], %d7;"""
        got = self.run_kernel(body, values, np.zeros((32, 2), np.float32))
        wide = values.astype(np.float64)
        product = (2 * wide * wide).astype(np.float32)
        np.testing.assert_array_equal(got, (wide * 2 * wide + product).astype(np.float32))

    def test_three_are_compared(self):
        values = rng.standard_normal((32, 2)).astype(np.float32)
        values[3, 0] = np.nan
        body = """mul.wide.u32 %d2, %r0, 8; add.s64 %d3, %d0, %d2; ld.global.v2.b32 {%r1, %r2}, [%d3];
            max.f32 %r3, %r1, %r2, 0f3E800000; min.NaN.f32 %r4, %r1, 0f3E800000, %r2;
            add.s64 %d8, %d1, %d2; st.global.v2.b32 [%d8], {%r3, %r4};"""
        got = self.run_kernel(body, values, np.zeros((32, 2), np.float32))
        np.testing.assert_array_equal(got[:, 0], np.fmax(np.fmax(*values.T), 0.25))
        np.testing.assert_array_equal(got[:, 1], np.minimum(np.minimum(*values.T), 0.25))

    def test_terms_of_16_bits(self):
        """add, sub and fma of f32 whose other operands have 16 bits."""
        for name, dtype in (("bf16", ml_dtypes.bfloat16), ("f16", np.float16)):
            values = np.zeros((32, 2), np.uint32)
            terms = rng.standard_normal((32, 2)).astype(dtype)
            values[:, 0] = terms.view(np.uint32)[:, 0]
            values[:, 1] = rng.standard_normal(32).astype(np.float32).view(np.uint32)
            body = f"""mul.wide.u32 %d2, %r0, 8; add.s64 %d3, %d0, %d2; ld.global.v2.b32 {{%r1, %r2}}, [%d3];
                mov.b32 {{%h0, %h1}}, %r1; add.rn.f32.{name} %r3, %h0, %r2; sub.f32.{name} %r4, %h1, %r3;
                fma.rn.f32.{name} %r5, %h0, %h1, %r4; add.s64 %d8, %d1, %d2; st.global.v2.b32 [%d8], {{%r3, %r5}};"""
            got = self.run_kernel(body, values, np.zeros((32, 2), np.float32))
            a, b = terms.astype(np.float32).T
            added = a + values[:, 1].view(np.float32)
            fused = (a.astype(np.float64) * b + (b - added)).astype(np.float32)
            np.testing.assert_array_equal(got, np.stack([added, fused], 1))

    def test_cluster_launch_control(self):
        """Blocks that take others' place until they are refused: each number is counted once."""
        body = """
            mov.u32 %r1, smem; setp.ne.u32 %p0, %r0, 0; mov.b32 %r2, 0; mov.u32 %r3, %ctaid.x; %INIT
            NEXT: mul.wide.u32 %d2, %r3, 4; add.s64 %d2, %d1, %d2; mov.b32 %r4, 1;
            @!%p0 red.global.add.u32 [%d2], %r4;
            @%p0 bra ASKED;
            fence.proxy.async::generic.acquire.sync_restrict::shared::cluster.cluster;
            mbarrier.arrive.expect_tx.shared.b64 _, [%r1], 16;
            clusterlaunchcontrol.try_cancel.async.shared::cta.mbarrier::complete_tx::bytes.b128 [%r1+16], [%r1];
            ASKED: WAIT: mbarrier.try_wait.parity.shared.b64 %p1, [%r1], %r2; @!%p1 bra WAIT;
            ld.shared.b128 %q0, [%r1+16];
            clusterlaunchcontrol.query_cancel.is_canceled.pred.b128 %p2, %q0;
            mov.b32 %r3, 0;
            @%p2 clusterlaunchcontrol.query_cancel.get_first_ctaid.v4.b32.b128 {%r3, %r5, %r6, %r7}, %q0;
            fence.proxy.async::generic.release.sync_restrict::shared::cta.cluster;
            bar.warp.sync -1; xor.b32 %r2, %r2, 1;
            @%p2 bra NEXT;""".replace("%INIT", """@%p0 bra INITIALISED; mbarrier.init.shared.b64 [%r1], 1;
            fence.mbarrier_init.release.cluster; INITIALISED: bar.warp.sync -1;""")
        for count in (1, 7, 40):
            got = self.run_kernel(body, np.zeros(4, np.uint32), np.zeros(64, np.uint32), grid=count)
            np.testing.assert_array_equal(got, np.arange(64) < count)


if __name__ == "__main__":
    unittest.main()
