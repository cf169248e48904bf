"""The shapes every matmul is checked and timed on: (M, N, K[, name])."""

import math
import random

CHECK_SHAPES = [
    (128, 256, 128),
    (256, 512, 1024),
    (1000, 1001, 1008),   # Rows of the result that no bulk copy takes.
    (300, 264, 272),
    (1, 64, 16),
    (17, 136, 2064),
    (129, 2112, 7184),
    (8191, 2112, 512),
    (2048, 2048, 2048),
]

SHAPES = [
    (1024, 1024, 1024, "sq1k"), (2048, 2048, 2048, "sq2k"),
    (4096, 4096, 4096, "sq4k"), (8192, 8192, 8192, "sq8k"),
    (16384, 16384, 16384, "sq16k"),
    (8192, 6144, 4096, "l8b.qkv"), (8192, 4096, 4096, "l8b.o"),
    (8192, 28672, 4096, "l8b.gu"), (8192, 4096, 14336, "l8b.down"),
    (8192, 10240, 8192, "l70b.qkv"), (8192, 57344, 8192, "l70b.gu"),
    (8192, 8192, 28672, "l70b.down"),
    (4096, 2112, 7168, "ds.4ka"), (4096, 24576, 1536, "ds.4kb"),
    (4096, 32768, 512, "ds.4kc"), (4096, 7168, 16384, "ds.4kd"),
    (4096, 4096, 7168, "ds.4ke"), (4096, 7168, 2048, "ds.4kf"),
    (8191, 2112, 7184, "odd"),
]

LAYERS = [(6144, 4096, "8b.qkv"), (4096, 4096, "8b.o"), (28672, 4096, "8b.gu"),
          (4096, 14336, "8b.down"), (10240, 8192, "70b.qkv"), (8192, 8192, "70b.o"),
          (57344, 8192, "70b.gu"), (8192, 28672, "70b.down")]
DECODE_SHAPES = [(m, n, k, f"m{m}.{name}")
                 for m in (1, 8, 16, 32, 64, 128, 256, 512) for n, k, name in LAYERS]
DECODE_SHAPES += [(64, 7168, 2048, "ds.m64a"), (64, 2112, 7168, "ds.m64b"),
                  (64, 24576, 1536, "ds.m64c"), (128, 7168, 16384, "ds.m128a"),
                  (128, 4096, 7168, "ds.m128b"), (64, 2112, 7184, "odd.m64")]


def parse_sample(text):
    """(seed, count) of SEED,COUNT; for argparse."""
    seed, count = text.split(",")
    return int(seed), int(count)


def random_shapes(seed, count):
    """Half of them of a large M; those that constants were fitted to are of
    another seed than those that they are judged by."""
    draw = random.Random(seed)

    def extent(low, high, step):
        value = math.exp(draw.uniform(math.log(low), math.log(high)))
        return max(step, round(value / step) * step)

    shapes = []
    while len(shapes) < count:
        large = len(shapes) % 2 == 0
        m = extent(1024, 16384, draw.choice((8, 128))) if large else extent(8, 512, 8)
        n, k = (extent(512, 16384, draw.choice((16, 64, 256))) for _ in range(2))
        if 2 * m * n * k < 1e12:  # A millisecond or two.
            shapes.append((m, n, k, f"r{seed}.{len(shapes)}"))
    return shapes


def large_shapes(seed, count):
    """Products that take the board to its limit, of extents that layers have."""
    draw = random.Random(seed)
    extents = [*range(2048, 8193, 1024), 6912, 11008, 13824, 14336, 18944, 28672]
    rows = [2048, 3072, 4096, 6144, 8192, 12288, 16384]
    shapes = []
    while len(shapes) < count:
        shape = draw.choice(rows), draw.choice(extents), draw.choice(extents)
        if 1e11 < 2.0 * shape[0] * shape[1] * shape[2] < 2.5e12:
            shapes.append((*shape, f"l{seed}.{len(shapes)}"))
    return shapes


# The smallest on which each kind and config does all that it does.
SANITIZED_SHAPES = [(130, 272, 400), (16, 64, 2064)]
