"""What a matmul takes by its config: the model of lib/Kernels/SM90/MatmulCost.cpp over
arrays, for the fit. Both have the same names; the comments are there, and the constants
in the machine's file."""

from types import SimpleNamespace

import numpy as np
from measurements import SCALED_CONFIG

ELEMENT_BYTES = {"plain": 2, "fast": 1, "promote": 1, "block": 1, "both": 1}
MULTIPROCESSORS = 132
MMA_RATE = 4096  # Bytes of K that a multiprocessor's tensor cores multiply a clock.
ROW_BYTES = 128
SECTOR_BYTES = 32
# Layouts: whether the rows of A and of B are innermost.
TRANSPOSED = {"nt": (0, 0), "nn": (0, 1), "tn": (1, 1), "tt": (1, 0)}
def get_stages(rows, cols, consumers, swapped, bulk):
    """As MatmulConfigs::setStages, without factors along K: stages and buffers of stores."""
    def fitting(staging):
        used = 1296 + np.where(~swapped & bulk, consumers * staging * 64 * ROW_BYTES, 0)
        return np.minimum((232448 - used) // ((rows + cols) * ROW_BYTES + 16), 16)
    two, one = fitting(2), fitting(1)
    single = (two < 4) & (one > two)
    return np.where(single, one, two), np.where(single, 1, 2)


def get_swizzle(width, transposed):
    return np.where(~transposed | (width % 64 == 0), 128,
                    np.where(width % 32 == 0, 64, np.where(width % 16 == 0, 32, 16)))


def get_slabs(cols):
    """As getStoreBytes of MatmulLayout.cpp."""
    slabs = np.zeros_like(cols)
    for width in (16, 32, 64, 128):
        aligned = -(-cols * 2 // width) * width
        slabs = np.where((width <= cols * 2) & (aligned * 4 <= cols * 2 * 5),
                         aligned // width, slabs)
    return slabs


class Table:
    """What of configs does not depend on the constants. `problems` has a line
    (m, n, k, transposed A, transposed B) for each of `configs`, whose columns are
    CONFIG, or SCALED_CONFIG; `kind` is one of machine_file.KINDS. `fills`, of each, says whether every block
    of K has its rows out of bounds filled with zeros, as kernels did before 2026-11-23."""

    def __init__(self, kind, problems, configs, fills=False):
        m, n, self.k, ta, tb = np.asarray(problems).T
        configs = dict(zip(SCALED_CONFIG, np.asarray(configs).T))
        self.kind, self.element_bytes = kind, ELEMENT_BYTES[kind]
        self.pingpong, self.swapped = configs["pingpong"] > 0, configs["swapped"] > 0
        self.consumers, self.split_k = configs["consumers"], configs["split_k"]
        self.products, self.result_bytes = m * n * self.k, 2 * m * n
        self.bulk = ~self.swapped & (n % 8 == 0)
        pick = lambda a, b: np.where(self.swapped, b, a)
        self.size = configs["cluster"] * configs["cluster_cols"]
        self.sides = []
        for name, extent, transposed, sharers, splitters in (
                ("rows", pick(m, n), pick(ta, tb), "cluster_cols", "cluster"),
                ("cols", pick(n, m), pick(tb, ta), "cluster", "cluster_cols")):
            side, width, transposed = SimpleNamespace(), configs[name], transposed > 0
            side.extent, side.width, side.sharers = extent, width, configs[sharers]
            side.transposed, side.used = transposed, np.minimum(width, extent)
            swizzle = get_swizzle(width, transposed)
            side.narrow = swizzle < ROW_BYTES
            side.boxes = np.where(transposed, width * 2 / swizzle, 1)
            side.tiles = -(-extent // width)
            side.groups = -(-side.tiles // configs[splitters])
            padded = side.groups * configs[splitters] > side.tiles
            side.beyond = np.where(padded, width, side.tiles * width - extent)
            side.always_beyond = width - side.used
            side.total_beyond = side.groups * configs[splitters] * width - extent
            side.box_rows = swizzle // 2
            innermost = np.where(transposed, extent, self.k)
            side.misaligned = innermost * self.element_bytes % ROW_BYTES > 0
            side.cuts_sectors = innermost * self.element_bytes % SECTOR_BYTES > 0
            self.sides.append(side)
        rows, cols = self.sides
        self.rows, self.cols = rows.width, cols.width
        self.subtiles = self.rows // 64 // np.where(self.pingpong, 1, self.consumers)
        if "stages" in configs:
            self.stages, self.staging = configs["stages"], configs["staging"]
        else:
            self.stages, self.staging = get_stages(self.rows, self.cols, self.consumers,
                                                   self.swapped, n % 8 == 0)
        self.beside = (np.where(self.pingpong, 2, self.consumers)
                       * (1 + configs.get("overlap", 0)))
        self.slabs = get_slabs(self.cols)
        # Tiles that cut blocks of 128 columns of B choose between factors.
        step = np.gcd(self.cols, 128)
        cuts = (kind == "block") & ~self.swapped & (step < np.minimum(self.cols, 128))
        self.choices = np.where(cuts, 3 * self.cols / step, 0)
        self.k_blocks = -(-self.k * self.element_bytes // ROW_BYTES)
        self.blocks_per_part = -(-self.k_blocks // self.split_k)
        always = fills | (self.size > 2)
        self.filled = np.where(always, self.blocks_per_part,
                               np.minimum(self.blocks_per_part, self.stages))
        self.items = rows.groups * cols.groups * self.split_k
        reached = np.select([self.size == 8, self.size == 4], [104, 120], MULTIPROCESSORS)
        self.slots = reached // self.size
        self.rounds = -(-self.items // self.slots)
        self.last = (self.items - (self.rounds - 1) * self.slots) * self.size
        self.active = np.minimum(self.items, self.slots) * self.size


def combine(*clocks):
    return sum(value ** 6 for value in clocks) ** (1 / 6)


def get_clocks(c, t):
    """Those that configs of the table `t` take of a board without bounds to its power,
    by the constants `c`; without the launch."""
    rows, cols = t.sides
    share = np.select([t.pingpong, t.consumers == 1], [c["PingPongShare"], c["SingleShare"]],
                      c["CooperativeShare"])
    multiply = t.rows * np.maximum(t.cols, 16) * ROW_BYTES / MMA_RATE / share
    read = t.rows / 64 * (64 + t.cols)
    block = combine(multiply, read, c["Subtile"] * t.subtiles)
    if t.kind in ("promote", "block", "both"):
        additions = t.rows / 64 * (t.cols / 2 + t.choices)
        block = block + additions * (c["Promotion"] + c["ExposedPromotion"] / t.beside)
    active = t.active / MULTIPROCESSORS
    block = block * (1 + c["Contention"] * active)

    paired = np.where((t.active * 2 > MULTIPROCESSORS) | (t.size == 2), 2, 1)
    shared = np.minimum(2 * (1 - active), np.maximum(4 * active - 1, 0))
    uneven = np.where(t.size > 1, 1, 1 + c["Uneven"] * shared)
    lines = c["NarrowLine"] * sum(s.narrow * s.used for s in t.sides)
    requested = sum(s.used * ROW_BYTES * s.sharers ** -c["Sharing"] *
                    (1 + c["Misaligned"] * s.misaligned + c["CutSectors"] * s.cuts_sectors)
                    for s in t.sides)
    port = paired * requested / c["PortRate"] + c["Box"] * sum(s.boxes / s.sharers for s in t.sides)
    latency = c["Latency"] / (t.stages - 1)
    contended = c["Contended"] * sum(
        (s.transposed & s.misaligned) * np.minimum(o.groups, t.active / t.size)
        for s, o in ((rows, cols), (cols, rows)))

    def feed(beyond):
        return uneven * combine(lines, port + paired * c["Beyond"] * beyond, latency,
                                c["BeyondAll"] * t.active * beyond) + contended

    def copy(beyond):
        # Later blocks have whole boxes of innermost rows only.
        later = [np.where(s.transposed, rows % s.box_rows, 0)
                 for s, rows in zip(t.sides, beyond)]
        return (t.filled * feed(sum(r / s.sharers for s, r in zip(t.sides, beyond))) +
                (t.blocks_per_part - t.filled) *
                feed(sum(r / s.sharers for s, r in zip(t.sides, later))))
    worst = copy([s.beyond for s in t.sides])
    usual = copy([s.always_beyond for s in t.sides])

    slabs = np.where(t.staging > 2, 1, t.slabs * np.where(t.staging == 1, c["OneBuffer"], 1))
    epilogue = np.where(t.bulk, c["Store"] + t.subtiles * slabs * c["Slab"],
                        t.rows / 64 * t.cols * c["Direct"])
    loop = t.blocks_per_part * block + np.where(t.pingpong, 0, c["Drain"])
    chain = np.where(t.pingpong, t.rounds * np.maximum(loop, (loop + epilogue) / 2),
                     t.rounds * (loop + epilogue) - epilogue)
    compute = combine(chain, worst + (t.rounds - 1) * usual) + epilogue

    read_bytes = sum(
        t.element_bytes * t.k * (s.extent * (1 + c[repeated] * (np.minimum(o.groups, 4) - 1)) +
                                 c["BeyondBytes"] * s.total_beyond * o.groups
                                 * np.where(s.transposed, 1, t.filled / t.blocks_per_part))
        for s, o, repeated in ((rows, cols, "RepeatedRows"), (cols, rows, "RepeatedCols")))
    under_way = (t.stages - 1) * ROW_BYTES * sum(s.used / s.sharers for s in t.sides)

    def rate(blocks):
        alone = np.where(blocks * 2 > MULTIPROCESSORS, c["PairRate"] / 2, c["OneRate"])
        return np.minimum(np.minimum(c["MemoryRate"], blocks * under_way / c["MemoryLatency"]),
                          blocks * alone)
    last = t.last / t.size / t.items
    memory = uneven * (read_bytes + t.result_bytes) * (
        (1 - last) / rate(t.slots * t.size) + last / rate(t.last))

    reduce = t.rounds * (c["Reduce"] + t.rows / 64 * t.cols *
                         (c["ReduceColumn"] + c["ReducePart"] * t.split_k))
    return (combine(compute, memory) + np.where(t.split_k > 1, reduce, 0)
            + np.where(t.size > 1, c["Cluster"], 0))


def get_energy(c, t):
    """A product's energy, beside that of a tile without bounds."""
    rows, cols = 64 / t.rows, 64 / t.cols
    return (1 + c["EnergyOfCols"] * cols + c["EnergyOfTile"] * (rows + cols)
            - c["PingPongEnergy"] * t.pingpong)


def get_power_clocks(c, t):
    """Those that the board's power leaves to the products."""
    ideal = t.products * t.element_bytes / MMA_RATE / MULTIPROCESSORS
    return c["Power"] * ideal * get_energy(c, t)


def get_cost(c, t):
    clocks = get_clocks(c, t)
    return c["Launch"] + np.sqrt(clocks * np.maximum(clocks, get_power_clocks(c, t)))
