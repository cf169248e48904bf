# RUN: %python %s

"""wgmma against the rule of its sums, once more in fractions; layouts of operands against plain matrices."""

import unittest

import numpy as np

from emulator import Buffer, Device, kernel, run
from fractions_of_sums import FORMATS, step

device = Device()
COLUMNS = 16


def swizzle(matrix, width):
    """Rows of bytes, `width` at a time side by side, as shared memory has them: 16 bytes mixed by the row."""
    rows, row_bytes = matrix.shape
    out = np.zeros((row_bytes // width, rows, width), np.uint8)
    mask = width // 16 - 1
    for row in range(rows):
        for piece in range(row_bytes // 16):
            block, within = divmod(piece, width // 16)
            address = row * width + within * 16
            mixed = address ^ (address >> 7 & mask) << 4
            out.reshape(row_bytes // width, -1)[block, mixed:mixed + 16] = matrix[row, piece * 16:piece * 16 + 16]
    return out.reshape(-1)


def multiply(a, b, c, name, width=128, transposed=False):
    """c + a * b^T by one instruction; a (64, K) and b (COLUMNS, K) fill rows of `width` bytes."""
    size = a.dtype.itemsize
    k = 32 // size
    if transposed:  # rows of K, elements of M or N side by side
        image_a = swizzle(np.ascontiguousarray(a.T).view(np.uint8), width)
        image_b = swizzle(np.pad(np.ascontiguousarray(b.T).view(np.uint8), ((0, 0), (0, width - COLUMNS * size))), width)
    else:
        image_a, image_b = (swizzle(np.pad(x.view(np.uint8), ((0, 0), (0, width - 32))), width) for x in (a, b))
    image = np.concatenate([image_a, np.zeros(-len(image_a) % 1024, np.uint8), image_b])
    bits = {128: 1, 64: 2, 32: 3}[width] << 62 | (8 * width >> 4) << 32 | 1 << 16
    offset = (len(image_a) + 1023) // 1024 * 1024
    count = COLUMNS // 2
    accumulators = ", ".join(f"%r{i}" for i in range(count))
    moves = "\n".join(f"ld.global.b32 %r{i}, [%d0+{512 * i}];" for i in range(count))
    stores = "\n".join(f"st.global.b32 [%d1+{512 * i}], %r{i};" for i in range(count))
    flags = f", {int(transposed)}, {int(transposed)}" if size == 2 else ""
    text = kernel(f"""
        mov.u32 %r20, %t;
        COPY: setp.ge.u32 %p0, %r20, {len(image) // 4}; @%p0 bra DONE;
        mul.wide.u32 %d2, %r20, 4; add.s64 %d2, %a0, %d2; ld.global.b32 %r21, [%d2];
        shl.b32 %r22, %r20, 2; mov.u32 %r23, smem; add.s32 %r22, %r22, %r23; st.shared.b32 [%r22], %r21;
        add.s32 %r20, %r20, 128; bra COPY;
        DONE: fence.proxy.async; bar.sync 0;
        add.s64 %d0, %a1, %o; add.s64 %d1, %a2, %o;
        {moves}
        mov.u32 %r23, smem; shr.u32 %r24, %r23, 4; cvt.u64.u32 %d3, %r24; or.b64 %d3, %d3, {bits};
        add.s64 %d4, %d3, {offset >> 4};
        setp.ne.u32 %p1, 1, 0;
        wgmma.fence.sync.aligned;
        wgmma.mma_async.sync.aligned.m64n{COLUMNS}k{k}.f32.{name}.{name} {{{accumulators}}}, %d3, %d4, %p1, 1, 1{flags};
        wgmma.commit_group.sync.aligned;
        wgmma.wait_group.sync.aligned 0;
        {stores}""", params=3, registers=32, shared=len(image))
    # A fragment's register i: rows and columns as the ISA draws them.
    lane, register = np.arange(128), np.arange(count)[:, None]
    rows = lane // 32 * 16 + lane % 32 // 4 + register // 2 % 2 * 8
    columns = register // 4 * 8 + lane % 4 * 2 + register % 2
    out = Buffer(device, np.zeros((count, 128), np.uint32))
    device.launch(device.load(text), [Buffer(device, image), Buffer(device, c[rows, columns]), out], block=(128, 1, 1))
    result = np.zeros_like(c)
    result[rows, columns] = out.array
    return result


class Sums(unittest.TestCase):
    def compare(self, name, how, **options):
        rng = np.random.default_rng(len(name) + len(how))
        ebits, mbits, _ = FORMATS[name]
        dtype = np.uint8 if mbits < 4 else np.uint16
        k = 32 // np.dtype(dtype).itemsize

        def draw(shape, exponent_bits, mantissa_bits, type_):
            codes = rng.integers(0, 1 << exponent_bits + mantissa_bits + 1, shape)
            if how != "any":
                bias = (1 << exponent_bits - 1) - 1
                field = rng.integers(0, 3, shape) if how == "low" else np.clip(bias + rng.integers(-3, 4, shape), 0, 2 * bias)
                codes = codes & ~((1 << exponent_bits) - 1 << mantissa_bits) | field << mantissa_bits
                codes = np.where(rng.random(shape) < 0.1, 0, codes)
            return codes.astype(type_)

        a, b = draw((64, k), ebits, mbits, dtype), draw((COLUMNS, k), ebits, mbits, dtype)
        c = draw((64, COLUMNS), 8, 23, np.uint32)
        got = multiply(a, b, c, name, **options)
        rows = range(len(how), 64, 5)  # of all warps
        expected = [[step(c[m, n], a[m], b[n], name, name) for n in range(COLUMNS)] for m in rows]
        np.testing.assert_array_equal(got[rows], np.array(expected, np.uint32))

    def test_bits(self):
        for name in FORMATS:
            for how in ("any", "near", "low"):
                with self.subTest(name=name, how=how):
                    self.compare(name, how)

    def test_swizzles(self):
        for width in (64, 32):
            with self.subTest(width=width):
                self.compare("e4m3", "near", width=width)

    def test_transposed_operands(self):
        self.compare("bf16", "near", transposed=True)


    def test_accumulation_of_f32(self):
        """32 products of 1 and an accumulator of 2^-10, which a tensor core cuts off."""
        code = """
device = Device()
out = Buffer(device, np.zeros(1, np.float32))
device.launch(device.load(kernel('''
    mul.lo.u32 %r1, %t, 16; add.s32 %r1, %r1, smem; mov.b32 %r2, 0x38383838;
    st.shared.v4.b32 [%r1], {%r2, %r2, %r2, %r2}; st.shared.v4.b32 [%r1+2048], {%r2, %r2, %r2, %r2};
    fence.proxy.async.shared::cta; bar.sync 0;
    mov.u32 %r3, smem; shr.u32 %r3, %r3, 4; and.b32 %r3, %r3, 16383; cvt.u64.u32 %d0, %r3;
    mov.u64 %d1, 0x1000000080000; or.b64 %d0, %d0, %d1;
    mov.b32 %r4, 0f3A800000; mov.b32 %r5, %r4; mov.b32 %r6, %r4; mov.b32 %r7, %r4;
    wgmma.fence.sync.aligned;
    wgmma.mma_async.sync.aligned.m64n8k32.f32.e4m3.e4m3 {%r4, %r5, %r6, %r7}, %d0, %d0, 1, 1, 1;
    wgmma.commit_group.sync.aligned; wgmma.wait_group.sync.aligned 0;
    setp.eq.u32 %p0, %t, 0; @%p0 st.global.b32 [%a0], %r4;''', shared=4096)), [out], block=(128, 1, 1))
print(float(out.array[0]) - 32)
"""
        self.assertEqual(run(code), ("0.0\n", ""))
        self.assertEqual(run(code, MATH="f32"), (f"{2**-10}\n", ""))


if __name__ == "__main__":
    unittest.main()
