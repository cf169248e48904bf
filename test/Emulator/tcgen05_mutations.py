# RUN: %python %s

"""A pipelined matmul of tcgen05, and what is found of it when one statement is broken."""

import os
import re
import sys
import unittest

from blackwell import assemble
from emulator import Buffer, Device, DriverError, np, run

PATH = os.path.join(os.path.dirname(os.path.abspath(__file__)), "Inputs", "blackwell_matmul.ptx")
CODE = """
import sys
sys.path.insert(0, {folder!r})
from tcgen05_mutations import outcome
print(outcome({break_!r}))
"""
# Name: what is looked for, what is put there, which of those that are found (None: all).
BREAKS = {
    "wait for a full stage gone": (r"(WAIT_FULL:\n)[^;]*;[^;]*;", r"\1", 0),
    "wait for an empty stage gone": (r"(WAIT_EMPTY:\n)[^;]*;[^;]*;", r"\1", 0),
    "wait for a free accumulator gone": (r"(WAIT_FREE:\n)[^;]*;[^;]*;", r"\1", 0),
    "wait for the products gone": (r"(WAIT_DONE:\n)[^;]*;[^;]*;", r"\1", 0),
    "parity of the products flipped": (r"\[%r19\+101376\], %r11", "[%r19+101376], %r13", 0),
    "commit of a stage gone": (r"tcgen05\.commit[^;]*;", "", 0),
    "commit of a tile gone": (r"tcgen05\.commit[^;]*;", "", 1),
    "commit of a stage before its products": (r"(    setp\.ne\.u32 %p6, %r18, 0;)",
                                               "    add.s32 %r25, %r19, 101400; tcgen05.commit.cta_group::1."
                                               "mbarrier::arrive::one.shared::cluster.b64 [%r25];\\1", 0),
    "arrival at the free accumulator gone": (r"mbarrier\.arrive\.shared[^;]*;", "", 0),
    "accumulator given back before it is read": (r"(STORE_COLUMNS:)",
                                                 "mbarrier.arrive.shared.b64 _, [%r16+101440]; \\1", 0),
    "count of a barrier": (r"101440\], 128", "101440], 64", 0),
    "bytes expected": (r"33792", "33280", 0),
    "factors of A not loaded": (r"cp\.async\.bulk\.shared[^;]*;", "", 0),
    "factors of B not copied": (r"tcgen05\.cp[^;]*;", "", 1),
    "factors where the other's are": (r"add\.s32 %r23, %r6, 260", "add.s32 %r23, %r6, 256", 0),
    "number of the factors": (r"0x48a00020", "0x28a00010", 0),
    "number of B's factors": (r"0x48a00020", "0x48a00010", 0),
    "type of A": (r"0x08a00000", "0x08a00080", 0),
    "N halved": (r"0x28a00010", "0x28900010", 0),
    "M doubled": (r"0x08a00000", "0x10a00000", 0),
    "rows side by side": (r"0x08a00000", "0x08a10000", 0),
    "swizzle": (r"0x4000404000000000", "0x8000404000000000", 0),
    "stride": (r"0x4000404000000000", "0x4000402000000000", 1),
    "version of a descriptor": (r"0x4000404000000000", "0x4000004000000000", 0),
    "advance along K": (r"add\.s64 %d7, %d7, 2", "add.s64 %d7, %d7, 4", 1),
    "a product gone": (r"tcgen05\.mma[^;]*;", "", 2),
    "accumulator not cleared": (r"(\[%r23\], )%p6", r"\1%p7", 0),
    "accumulator cleared too often": (r"(\[%r23\], )%p7", r"\1%p6", 1),
    "accumulators overlap": (r"shl\.b32 %r16, %r12, 7", "shl.b32 %r16, %r12, 6", 0),
    "one accumulator for two": (r"shl\.b32 %r1[67], %r12, 7", "mov.b32 %r16, 0", 0),
    "lanes of warps": (r"and\.b32 %r21, %r4, 96", "and.b32 %r21, %r4, 64", 0),
    "a stage too many": (r"setp\.eq\.u32 %p6, %r10, 3", "setp.eq.u32 %p6, %r10, 4", None),
    "products by all lanes": (r"@!%p4 bra END;\nMULTIPLY_TILE", "\nMULTIPLY_TILE", 0),
    "relinquished too early": (r"(tcgen05\.alloc)",
                               "tcgen05.relinquish_alloc_permit.cta_group::1.sync.aligned; \\1", 0),
    "too few columns": (r", 512;", ", 256;", None),
    "columns not given back": (r"tcgen05\.dealloc[^;]*;", "", 0),
    "barrier before the columns' end gone": (r"(END:\n[^\n]*\n)    bar\.sync 0;", r"\1", 0),
    "tcgen05.wait::ld gone": (r"tcgen05\.wait::ld[^;]*;", "", 0),
    "fence before a free accumulator gone": (r"(STORE_COLUMNS;\n *)tcgen05\.fence::before_thread_sync;", r"\1", 0),
    "fences after waits of the products gone": (r"(WAIT_F[A-Z]*;\n *)tcgen05\.fence::after_thread_sync;", r"\1", None),
    "fence after the products gone": (r"(WAIT_DONE;\n *)tcgen05\.fence::after_thread_sync;", r"\1", 0),
    "fence of the mbarriers gone": (r"fence\.mbarrier_init[^;]*;", "", 0),
}
M, N, K = 256, 384, 512


def change(text, break_):
    pattern, new, which = BREAKS[break_]
    found = list(re.finditer(pattern, text))
    assert found, break_
    for match in reversed(found if which is None else [found[which]]):
        text = text[:match.start()] + match.expand(new) + text[match.end():]
    return text


def outcome(break_):
    """"right", "wrong", or the code of the driver."""
    import ml_dtypes
    from tcgen05_scales import atoms
    with open(PATH) as file:
        text = file.read()
    device, rng = Device(), np.random.default_rng(0)
    a, b = (rng.choice(np.arange(-3.0, 4), (rows, K)) for rows in (M, N))
    codes = [rng.integers(125, 130, (rows, K // 32)).astype(np.uint8) for rows in (M, N)]
    scaled = [x * np.repeat(2.0 ** (c.astype(float) - 127), 32, 1) for x, c in zip((a, b), codes)]
    buffers = [Buffer(device, x.astype(ml_dtypes.float8_e4m3fn).view(np.uint8)) for x in (a, b)]
    factors = [Buffer(device, atoms(c)) for c in codes]
    out = Buffer(device, np.full((M, N), np.nan, np.float32))
    try:
        kernel = device.load(text if not break_ else change(text, break_))
        maps = [device.tensor_map(x, (128, 128), 3) for x in buffers]
        device.launch(kernel, [*maps, *factors, out, M // 128 * (N // 128), N // 128, K // 128], block=(256, 1, 1),
                      smem=101464)
    except DriverError as error:
        return error.code
    return "right" if np.array_equal(out.array, scaled[0] @ scaled[1].T) else "wrong"


class Mutations(unittest.TestCase):
    def attempt(self, break_, **environment):
        code = CODE.format(folder=os.path.dirname(PATH) + "/..", break_=break_)
        printed, report = run(code, ARCH=100, STEPS=20000000, **environment)
        return printed.strip(), report

    def test_kernel(self):
        for order in ("random", "lazy", "eager"):
            for seed in range(3 if order == "random" else 1):
                self.assertEqual(self.attempt("", ORDER=order, SEED=seed, CHECK="all"), ("right", ""))
        with open(PATH) as file:
            os.environ["FP8_TEST_ASSEMBLE"] = "1"
            assemble(file.read())

    def test_breaks(self):
        """A report or another result in some order; with the checks of races if need be."""
        table = []
        for break_ in BREAKS:
            for how in ({}, {"ORDER": "lazy"}, {"ORDER": "eager"}, {"CHECK": "all"}):
                result, report = self.attempt(break_, **how)
                if result != "right":
                    break
            with self.subTest(break_=break_):
                self.assertNotIn(result, ("right", ""), report)
            table.append((break_, how, result, report.strip().split("\n")[0].split("': ", 1)[-1]))
        if "--table" in sys.argv:
            for row in table:
                print(*row, sep=" | ")


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0]])
