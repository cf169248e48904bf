"""Kernels of one tcgen05 sequence, written by hand, and operands as they lie in shared memory.

A kernel fills shared memory from `image` (of each block, from byte 1024 on) and, if there is one, tensor memory from
`tensor` (words, 128 lanes by columns of each block), does `work` in one thread, commits it to an mbarrier, and when
that is done writes the columns of tensor memory to `out`. In `work`, %r0 is where shared memory begins, %r1 where
tensor memory does; registers from %r8, %d8 and predicates from %p4 on are free.
"""

import os
import shutil
import subprocess
import tempfile

import numpy as np

from emulator import Buffer

HEADER = ".version 8.8\n.target sm_100a\n.address_size 64\n"
IMAGE = 1024  # where operands begin in shared memory

TEXT = """
.extern .shared .align 1024 .b8 smem[];
.visible .entry kernel(.param .u64 p0, .param .u64 p1, .param .u64 p2)
    .reqntid 128, 1, 1{cluster}
{{
.reg .pred %p<16>; .reg .b16 %h<8>; .reg .b32 %r<64>; .reg .b64 %d<64>; .reg .b64 %a<4>; .reg .b32 %t; .reg .b32 %v<32>;
ld.param.u64 %a0, [p0];
ld.param.u64 %a1, [p1];
ld.param.u64 %a2, [p2];
cvta.to.global.u64 %a0, %a0;
cvta.to.global.u64 %a1, %a1;
cvta.to.global.u64 %a2, %a2;
mov.u32 %t, %tid.x;
mov.u32 %r0, smem;
mov.u32 %r2, %cluster_ctarank;
setp.eq.u32 %p0, %t, 0;
setp.lt.u32 %p1, %t, 32;
@!%p0 bra INITIALISED;
mbarrier.init.shared.b64 [%r0], 1;
fence.mbarrier_init.release.cluster;
INITIALISED:
@!%p1 bra ALLOCATED;
tcgen05.alloc.cta_group::{group}.sync.aligned.shared::cta.b32 [%r0+8], {columns};
tcgen05.relinquish_alloc_permit.cta_group::{group}.sync.aligned;
ALLOCATED:

// 16 bytes a thread at a time.
mul.lo.u32 %r3, %r2, {bytes};
cvt.u64.u32 %d0, %r3;
add.s64 %d0, %a0, %d0;
shl.b32 %r4, %t, 4;
COPY:
cvt.u64.u32 %d1, %r4;
add.s64 %d1, %d0, %d1;
add.s32 %r5, %r0, %r4;
ld.global.v4.b32 {{%v0, %v1, %v2, %v3}}, [%d1];
st.shared.v4.b32 [%r5+1024], {{%v0, %v1, %v2, %v3}};
add.s32 %r4, %r4, 2048;
setp.lt.u32 %p2, %r4, {bytes};
@%p2 bra COPY;
fence.proxy.async.shared::cta;
bar.sync 0;
ld.shared.b32 %r1, [%r0+8];

// A thread's lane of tensor memory.
shr.u32 %r6, %t, 5;
shl.b32 %r6, %r6, 21;
add.s32 %r6, %r6, %r1;
mul.lo.u32 %r7, %r2, 128;
add.s32 %r7, %r7, %t;
mul.wide.u32 %d2, %r7, {row};
{fill}
tcgen05.fence::before_thread_sync;
{sync}
setp.eq.u32 %p3, %r2, 0;
and.pred %p3, %p3, %p0;
@!%p3 bra DONE;
tcgen05.fence::after_thread_sync;
{work}
{commit}
DONE:
WAIT:
mbarrier.try_wait.parity.shared.b64 %p2, [%r0], 0;
@!%p2 bra WAIT;
tcgen05.fence::after_thread_sync;
add.s64 %d3, %a1, %d2;
mov.b32 %r4, 0;
STORE:
add.s32 %r5, %r6, %r4;
tcgen05.ld.sync.aligned.32x32b.x4.b32 {{%v0, %v1, %v2, %v3}}, [%r5];
tcgen05.wait::ld.sync.aligned;
st.global.v4.b32 [%d3], {{%v0, %v1, %v2, %v3}};
add.s64 %d3, %d3, 16;
add.s32 %r4, %r4, 4;
setp.lt.u32 %p2, %r4, {columns};
@%p2 bra STORE;
tcgen05.fence::before_thread_sync;
{sync}
tcgen05.fence::after_thread_sync;
@!%p1 bra END;
tcgen05.dealloc.cta_group::{group}.sync.aligned.b32 %r1, {columns};
END:
ret;
}}
"""

FILL = """
add.s64 %d3, %a2, %d2;
mov.b32 %r4, 0;
FILL:
add.s32 %r5, %r6, %r4;
ld.global.v4.b32 {{%v0, %v1, %v2, %v3}}, [%d3];
tcgen05.st.sync.aligned.32x32b.x4.b32 [%r5], {{%v0, %v1, %v2, %v3}};
add.s64 %d3, %d3, 16;
add.s32 %r4, %r4, 4;
setp.lt.u32 %p2, %r4, {columns};
@%p2 bra FILL;
tcgen05.wait::st.sync.aligned;
"""
CLUSTER_SYNC = "barrier.cluster.arrive.aligned;\nbarrier.cluster.wait.aligned;"
COMMIT = {
    1: "tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [%r0];",
    2: "mov.b16 %h0, 3;\ntcgen05.commit.cta_group::2.mbarrier::arrive::one.shared::cluster.multicast::cluster.b64 "
       "[%r0], %h0;",
}


def text(work, columns, size, group=1, each=""):
    """The module's PTX, for `size` bytes of operands in each block; `each` is what all threads do before."""
    return HEADER + TEXT.format(
        work=work, columns=columns, bytes=size, row=4 * columns, group=group, commit=COMMIT[group],
        cluster="\n    .reqnctapercluster 2, 1, 1" if group == 2 else "",
        sync=CLUSTER_SYNC if group == 2 else "bar.sync 0;",
        fill=FILL.format(columns=columns) + each)


def execute(device, work, images, tensors, group=1, each=""):
    """Columns of tensor memory afterwards: (blocks, 128, columns) words.

    images: bytes of each block, a multiple of 2048; tensors: (blocks, 128, columns) words.
    """
    images, tensors = np.stack(images), np.asarray(tensors, np.uint32)
    columns, size = tensors.shape[2], images.shape[1]
    module = text(work, columns, size, group, each)
    assemble(module)
    out = Buffer(device, np.zeros(tensors.shape, np.uint32))
    device.launch(device.load(module), [Buffer(device, images), out, Buffer(device, tensors)], grid=(group, 1, 1),
                  block=(128, 1, 1), smem=IMAGE + size, cluster=(group, 1, 1))
    return out.array


PTXAS = shutil.which("ptxas") or shutil.which("ptxas", path="/usr/local/cuda/bin")


def assemble(module):
    """By ptxas, where it is and FP8_TEST_ASSEMBLE says so."""
    if not PTXAS or "FP8_TEST_ASSEMBLE" not in os.environ:
        return
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "kernel.ptx")
        with open(path, "w") as file:
            file.write(module)
        done = subprocess.run([PTXAS, "-arch=sm_100a", path, "-o", path + ".cubin"], capture_output=True, text=True)
        assert done.returncode == 0, done.stderr + module


# ----------------------------------------------------------------------------------------------------------------------
# Operands
# ----------------------------------------------------------------------------------------------------------------------

MODES = {0: 0, 128: 2, 64: 4, 32: 6}


class Tile:
    """A matrix of (rows, bytes of K) in shared memory: PTX ISA, "Shared Memory Matrix Layout".

    swizzle: 0, 32, 64 or 128 bytes. `side` is the bytes of an element if rows lie side by side, else 0.
    """

    def __init__(self, matrix, swizzle, side=0):
        self.swizzle, self.side = swizzle, side
        matrix = np.asarray(matrix, np.uint8)
        self.rows, self.width = matrix.shape
        (self.place_side if side else self.place)(matrix)

    def place(self, matrix):
        """Eight rows of a row of the swizzle, or of 16 bytes, are together."""
        span = self.swizzle or 16
        row, k = np.indices(matrix.shape)
        groups, blocks = -(-self.rows // 8), -(-self.width // span)
        self.stride, self.leading = 8 * span, groups * 8 * span
        unit, within = k % span // 16, k % 16
        mixed = unit ^ (row % 8 * span // 128 if self.swizzle else 0)
        at = row // 8 * self.stride + k // span * self.leading + row % 8 * span + mixed * 16 + within
        self.bytes = np.zeros(groups * blocks * 8 * span, np.uint8)
        self.bytes[at] = matrix

    def place_side(self, matrix):
        """Eight k of a row of the swizzle, or of 16 bytes, of rows are together."""
        span, size = self.swizzle or 16, self.side
        row, byte = np.indices(matrix.shape)
        k, along = byte // size, row * size + byte % size
        groups, blocks = -(-(self.width // size) // 8), -(-self.rows * size // span)
        across, onward = 8 * span, groups * 8 * span  # to the next eight of K, to the next rows
        # Without a swizzle the two strides have each other's place.
        self.stride, self.leading = (across, onward) if self.swizzle else (onward, across)
        mixed = along % span // 16 ^ (k % 8 * span // 128 if self.swizzle else 0)
        at = k // 8 * across + along // span * onward + k % 8 * span + mixed * 16 + along % 16
        self.bytes = np.zeros(groups * blocks * 8 * span, np.uint8)
        self.bytes[at] = matrix

    def step(self, number):
        """Bytes to the operand of the instruction of such a number along K, each of 32 bytes."""
        if self.side:
            return number * 32 // self.side // 8 * (self.stride if self.swizzle else self.leading)
        span = self.swizzle or 16
        return number * 32 // span * self.leading + number * 32 % span

    def descriptor(self, register, offset, number=0):
        """Statements that make it, for a tile at such an offset of the image."""
        bits = self.leading >> 4 << 16 | self.stride >> 4 << 32 | 1 << 46 | MODES[self.swizzle] << 61
        return descriptor(register, offset + self.step(number), bits)


def descriptor(register, offset, bits):
    return f"""add.s32 %r8, %r0, {IMAGE + offset};
shr.u32 %r8, %r8, 4;
and.b32 %r8, %r8, 16383;
cvt.u64.u32 {register}, %r8;
or.b64 {register}, {register}, {bits};
"""


def lay(tiles):
    """The image of some tiles, and the offset of each: multiples of 1024."""
    offsets, parts, at = [], [], 0
    for part in [tile.bytes if isinstance(tile, Tile) else np.asarray(tile, np.uint8).reshape(-1) for tile in tiles]:
        offsets.append(at)
        padded = np.zeros(-(-part.size // 1024) * 1024, np.uint8)
        padded[:part.size] = part
        parts.append(padded)
        at += padded.size
    image = np.concatenate(parts)
    return np.concatenate([image, np.zeros(-image.size % 2048, np.uint8)]), offsets
