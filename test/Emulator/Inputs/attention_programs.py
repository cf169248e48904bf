"""Programs of one attention, what they are given, and what comes out by f64."""

import ml_dtypes
import numpy as np

import fp8
from dropout import kept

DTYPES = {"bf16": ml_dtypes.bfloat16, "f16": np.float16, "e4m3": ml_dtypes.float8_e4m3fn,
          "e5m2": ml_dtypes.float8_e5m2, "f32": np.float32, "i1": np.bool_}
ELEMENTS = {"e4m3": "f8E4M3FN", "e5m2": "f8E5M2"}
# Shares of the result's norm: what is rounded are P and the result.
TOLERANCE = {"bf16": 4e-3, "f16": 3e-3, "e4m3": 4e-2, "e5m2": 8e-2}


def tensor(shape, element):
    return f"tensor<{'x'.join(map(str, shape))}x{element}>"


class Attention:
    def __init__(self, element, batch, queries, keys, heads, heads_of_k, dim, dim_of_v=None, window=None,
                 bottom_right=False, layout="bshd", accumulate=None, of_heads=False, p_scale=None, lse=True, mask=None,
                 lengths=None, page=None, starts=None, ranges=None, sinks=None, cap=None, mask_of="hk", data="random",
                 dropout=None, blocks=(0, 0, 0)):
        """`blocks` are how many positions of queries, keys and values share a factor, 0 where all do; `ranges` are "packed", sequences one after the other, or "random"; `sinks` the mean of their scores; `mask_of`
        says which of batches, heads, queries and keys a mask tells apart; `data` may be "peaked", with large scores, or
        "outliers", with some large columns; `dropout` is a rate."""
        self.element, self.batch, self.queries, self.keys = element, batch, queries, keys
        self.heads, self.heads_of_k, self.dim, self.dim_of_v = heads, heads_of_k, dim, dim_of_v or dim
        self.window, self.bottom_right, self.layout = window, bottom_right, layout
        self.accumulate, self.of_heads, self.p_scale = accumulate, of_heads, p_scale
        self.lse, self.mask, self.lengths, self.page, self.scale = lse, mask, lengths, page, dim ** -0.5
        self.starts, self.ranges, self.sinks = starts, ranges, sinks
        self.cap, self.mask_of, self.data, self.dropout, self.state = cap, mask_of, data, dropout, None
        self.blocks = dict(zip("qkv", blocks))

    @staticmethod
    def random(rng):
        """Has up to some hundred positions."""
        element = str(rng.choice(["bf16", "f16", "e4m3", "e5m2"]))
        scaled = element in ELEMENTS
        of_k, group = int(rng.integers(1, 3)), int(rng.integers(1, 4))
        dims = [32, 64, 96, 128] if scaled else [16, 48, 64, 80, 128]
        window = None
        if rng.random() < 0.7:
            window = tuple(None if rng.random() < 0.3 else int(rng.integers(0, 100)) for _ in range(2))
        batch, keys = int(rng.integers(1, 3)), int(rng.integers(1, 300))
        queries = int(rng.integers(1, 200) if rng.random() < 0.6 else rng.integers(1, 9))
        lengths = [int(length) for length in rng.integers(-1, keys + 2, batch)] if rng.random() < 0.4 else None
        starts = [int(start) for start in rng.integers(-1, keys + 2, batch)] if rng.random() < 0.3 else None
        ranges = str(rng.choice(["packed", "random"])) if rng.random() < 0.3 else None
        sinks = float(rng.integers(-4, 5)) if rng.random() < 0.3 else None
        cap = float(rng.choice([0.5, 2.0, 30.0, 50.0])) if rng.random() < 0.3 else None
        mask = str(rng.choice(["i1", "bf16", "f16", "f32"])) if rng.random() < 0.3 else None
        mask_of = "".join(dim for dim in "bhqk" if rng.random() < 0.6)
        data = str(rng.choice(["random", "random", "peaked", "outliers"]))
        dropout = float(rng.choice([0.1, 0.5])) if rng.random() < 0.3 else None
        return Attention(element, batch, queries, keys,
                         of_k * group, of_k, int(rng.choice(dims)), int(rng.choice(dims)), window,
                         bool(rng.random() < 0.5), str(rng.choice(["bshd", "bhsd"])),
                         str(rng.choice(["fast", "promote"])) if scaled else None, bool(scaled and rng.random() < 0.5),
                         lengths=lengths, starts=starts, ranges=ranges, sinks=sinks, cap=cap, mask=mask, mask_of=mask_of,
                         data=data, dropout=dropout)

    def mask_shape(self):
        """Without dimensions before the first that it tells apart."""
        sizes = dict(b=self.batch, h=self.heads, q=self.queries, k=self.keys)
        shape = [sizes[dim] if dim in self.mask_of else 1 for dim in "bhqk"]
        return tuple(shape["bhqk".index(self.mask_of[0]):]) if self.mask_of else (1,)

    @property
    def is_scaled(self):
        return self.element in ELEMENTS

    @property
    def pages(self):
        """How many a batch has."""
        return -(-self.keys // self.page)

    def shape(self, positions, heads, dim, batch=None):
        batch = self.batch if batch is None else batch
        return (batch, positions, heads, dim) if self.layout == "bshd" else (batch, heads, positions, dim)

    def operands(self):
        """Name, shape and shape of the factors."""
        for name, positions, heads, dim in (("q", self.queries, self.heads, self.dim),
                                            ("k", self.keys, self.heads_of_k, self.dim),
                                            ("v", self.keys, self.heads_of_k, self.dim_of_v)):
            factors = (1, 1, 1, 1)
            if self.of_heads or self.blocks[name]:
                count = -(-positions // self.blocks[name]) if self.blocks[name] else 1
                factors = (self.batch, count, heads, 1) if self.layout == "bshd" else (self.batch, heads, count, 1)
            if self.page and name != "q":
                # Some belong to nobody.
                yield name, self.shape(self.page, heads, dim, self.batch * self.pages + 3), factors
            else:
                yield name, self.shape(positions, heads, dim), factors

    def program(self, config=None):
        """`config` is that of its kernel, the compiler's choice without."""
        element = ELEMENTS.get(self.element, self.element)
        arguments, made, types = [], "", []
        for name, shape, factors in self.operands():
            if not self.is_scaled:
                arguments.append(f"%{name}: {tensor(shape, element)}")
                types.append(tensor(shape, element))
                continue
            block = "*, *, *, *"
            if self.of_heads or self.blocks[name]:
                block = f"1, {self.blocks[name] or '*'}, 1, *" if self.layout == "bshd" else f"1, 1, {self.blocks[name] or '*'}, *"
            scaled = f"!fp8.scaled<{'x'.join(map(str, shape))}x{element}, block = [{block}], scale = f32>"
            codes, scales = tensor(shape, element), tensor(factors, "f32")
            arguments += [f"%{name}_codes: {codes}", f"%{name}_scales: {scales}"]
            made += f"  %{name} = fp8.assemble %{name}_codes, %{name}_scales : {codes}, {scales} -> {scaled}\n"
            types.append(scaled)
        attributes = f"scale = {self.scale:e}" + (f" cap = {self.cap:e}" if self.cap else "")
        if self.window:
            attributes += f" window = [{', '.join('*' if side is None else str(side) for side in self.window)}]"
        attributes += " bottom_right" * self.bottom_right + f" layout = {self.layout}"
        attributes += f" accumulate = {self.accumulate}" if self.accumulate else ""
        attributes += f" p_scale = {self.p_scale:e}" if self.p_scale else ""
        attributes += f" {{fp8_gpu.config = {config}}}" if config else ""
        mask = ""
        if self.mask:
            shape = tensor(self.mask_shape(), self.mask)
            arguments.append(f"%mask: {shape}")
            mask = f"mask(%mask : {shape})"
        if self.lengths:
            arguments.append(f"%lengths: tensor<{self.batch}xi32>")
            mask += f" key_lengths(%lengths : tensor<{self.batch}xi32>)"
        if self.page:
            table = tensor((self.batch, self.pages), "i32")
            arguments.append(f"%pages: {table}")
            mask += f" page_table(%pages : {table})"
        for name, kind, shape, is_there in (("key_starts", "i32", (self.batch,), self.starts),
                                            ("key_ranges", "i32", (self.batch, self.queries, 2), self.ranges),
                                            ("sinks", "f32", (self.heads,), self.sinks is not None),
                                            ("dropout", "i64", (2,), self.dropout is not None)):
            if is_there:
                arguments.append(f"%{name}: {tensor(shape, kind)}")
                mask += f" {name}(%{name} : {tensor(shape, kind)})"
        mask += "" if self.dropout is None else f" rate = {self.dropout:e}"
        results = [tensor(self.shape(self.queries, self.heads, self.dim_of_v), "bf16")]
        results += [tensor((self.batch, self.heads, self.queries), "f32")] * self.lse
        values = "%o, %lse" if self.lse else "%o"
        return (f"func.func @attention({', '.join(arguments)}) -> ({', '.join(results)}) {{\n{made}"
                f"  {values} = fp8.attention %q, %k, %v {mask} {attributes} : {', '.join(types)} -> "
                f"{', '.join(results)}\n  return {values} : {', '.join(results)}\n}}\n")

    def draw(self, rng, name, shape):
        """Numbers of Q, K or V."""
        numbers = rng.standard_normal(shape).astype(np.float32)
        if self.data == "peaked" and name != "v":
            numbers *= 3
        if self.data == "outliers":
            numbers[..., rng.integers(0, shape[-1], 2)] *= 20 if name == "v" else 5
        return numbers

    def make(self, rng):
        """What the program is given, Q, K and V in f64, and what else says which keys are seen: the mask, ranges and
        sinks."""
        arguments, values = [], []
        if self.page:
            table = rng.permutation(self.batch * self.pages + 3)[:self.batch * self.pages].reshape(self.batch, -1)
        for name, shape, factors in self.operands():
            numbers = self.draw(rng, name, shape)
            if self.is_scaled:
                scales = (np.exp(rng.standard_normal(factors) * 0.3) / 100).astype(np.float32)
                spread = self.spread(name, scales)
                codes = np.clip(numbers / spread, -448, 448).astype(DTYPES[self.element])
                arguments += [codes, scales]
                values.append(codes.astype(np.float64) * spread)
            else:
                arguments.append(numbers.astype(DTYPES[self.element]))
                values.append(arguments[-1].astype(np.float64))
            elements = arguments[-2 if self.is_scaled else -1]
            if self.page and name != "q":
                values[-1] = self.gather(values[-1], table)
                self.spoil_pages(elements, table)
            elif (self.lengths or self.starts) and name != "q":
                self.spoil(elements)
            if name != "q":
                self.clear(values[-1])
        mask = None
        if self.mask:
            mask = rng.standard_normal(self.mask_shape()).astype(DTYPES["f32" if self.mask == "i1" else self.mask])
            if self.mask == "i1":
                mask = mask < 0.5
            elif mask.size:
                mask.flat[rng.integers(0, mask.size, 1 + mask.size // 8)] = -np.inf
            if self.mask_of[-2:] == "qk" and self.queries > 1:
                # A query that sees nothing.
                mask[..., 1, :] = False if self.mask == "i1" else -np.inf
            arguments.append(mask)
            mask = mask if self.mask == "i1" else mask.astype(np.float64)
        if self.lengths:
            arguments.append(np.array(self.lengths, np.int32))
        if self.page:
            # Whatever is beyond a batch's own keys is not looked at.
            first = np.arange(self.pages) * self.page
            bounds = np.array(self.bounds())
            wild = (first >= bounds[:, 1:]) | (first + self.page <= bounds[:, :1])
            arguments.append(np.where(wild, rng.integers(-2**31, 2**31 - 1, table.shape), table).astype(np.int32))
        if self.starts:
            arguments.append(np.array(self.starts, np.int32))
        ranges = sinks = None
        if self.ranges:
            ranges = self.make_ranges(rng)
            arguments.append(ranges)
        if self.sinks is not None:
            sinks = (rng.standard_normal(self.heads) + self.sinks).astype(np.float32)
            arguments.append(sinks)
        if self.dropout is not None:
            self.state = rng.integers(-2**63, 2**63 - 1, 2)
            arguments.append(self.state)
        return arguments, values, (mask, ranges, sinks)

    def spread(self, name, factors):
        """Factors of positions, of those of blocks."""
        if not self.blocks[name]:
            return factors
        place = 1 if self.layout == "bshd" else 2
        count = self.queries if name == "q" else self.keys
        return np.repeat(factors, self.blocks[name], place).take(range(count), place)

    def make_ranges(self, rng):
        shape = (self.batch, self.queries)
        if self.ranges == "random":
            first = rng.integers(-5, self.keys + 5, shape)
            return np.stack([first, first + rng.integers(-5, self.keys + 5, shape)], -1).astype(np.int32)
        # Some sequences have queries, keys or both.
        count = int(rng.integers(1, 6))
        ends = [np.sort(rng.integers(0, most + 1, (self.batch, count)), 1) for most in (self.queries, self.keys)]
        number = (np.arange(self.queries)[None, :, None] >= ends[0][:, None]).sum(-1)
        bounds = np.pad(ends[1], ((0, 0), (1, 1)), constant_values=((0, 0), (0, self.keys)))
        return np.stack([np.take_along_axis(bounds, number + side, 1) for side in range(2)], -1).astype(np.int32)

    def bounds(self):
        """The first key of each batch, and the one behind its last."""
        ends = np.clip(self.lengths or [self.keys] * self.batch, 0, self.keys)
        return [(max(first, 0), int(end)) for first, end in zip(self.starts or [0] * self.batch, ends)]

    def gather(self, pages, table):
        """Keys of batches; what is beyond the last page's does not count."""
        if self.layout == "bhsd":
            return np.concatenate(np.split(pages[table], self.pages, 1), 3)[:, 0]
        return pages[table].reshape(self.batch, -1, *pages.shape[2:])

    def outside(self):
        """Where others than a batch's own keys are."""
        for batch, (first, end) in enumerate(self.bounds()):
            for keys in (slice(0, first), slice(end, None)):
                yield (batch, keys) if self.layout == "bshd" else (batch, slice(None), keys)

    def spoil(self, elements):
        """What is beyond a batch's own keys is NaN."""
        for place in self.outside():
            elements[place] = np.nan

    def clear(self, values):
        """And counts as nothing."""
        for place in self.outside():
            values[place] = 0

    def spoil_pages(self, pages, table):
        """The same where keys are in pages."""
        for batch, (first, end) in enumerate(self.bounds()):
            for key in range(self.pages * self.page):
                if not first <= key < end:
                    page, row = table[batch, key // self.page], key % self.page
                    pages[(page, row) if self.layout == "bshd" else (page, slice(None), row)] = np.nan

    def find_kept(self):
        """What shares count by: 0, or a factor."""
        if self.dropout is None:
            return 1.0
        is_kept, factor = kept(self.state, self.dropout, self.batch, self.heads, self.queries, self.keys)
        return is_kept * factor

    def expect(self, q, k, v, others):
        mask, ranges, sinks = others
        if self.layout == "bshd":
            q, k, v = (x.transpose(0, 2, 1, 3) for x in (q, k, v))
        k, v = (np.repeat(x, self.heads // self.heads_of_k, axis=1) for x in (k, v))
        scores = np.einsum("bhid,bhjd->bhij", q, k) * self.scale
        scores = self.cap * np.tanh(scores / self.cap) if self.cap else scores
        first, lengths = np.array(self.bounds()).T.reshape(2, -1, 1, 1, 1)
        own = np.arange(self.queries)[:, None] + (lengths - self.queries) * self.bottom_right
        key = np.arange(self.keys)[None]
        left, right = self.window or (None, None)
        visible = np.broadcast_to((key >= first) & (key < lengths), (self.batch, 1, self.queries, self.keys))
        if ranges is not None:
            visible = visible & (key >= ranges[:, None, :, :1]) & (key < ranges[:, None, :, 1:])
        visible = visible & (True if left is None else key >= own - left)
        visible = visible & (True if right is None else key <= own + right)
        if mask is not None and mask.dtype == np.bool_:
            visible = visible & mask
        elif mask is not None:
            scores = scores + mask
        scores = np.where(visible, scores, -np.inf)
        most = scores.max(axis=-1, keepdims=True, initial=-np.inf)
        if sinks is not None:
            sinks = sinks.astype(np.float64)[None, :, None, None]
            most = np.maximum(most, sinks)
        finite = np.where(np.isneginf(most), 0, most)
        powers = np.exp(scores - finite)
        sums = powers.sum(axis=-1, keepdims=True)
        if sinks is not None:
            sums = sums + np.exp(sinks - finite)
        output = np.einsum("bhij,bhjd->bhid", powers * self.find_kept(), v) / np.where(sums == 0, 1, sums)
        with np.errstate(divide="ignore"):
            lse = (finite + np.log(sums))[..., 0]
        return output.transpose(0, 2, 1, 3) if self.layout == "bshd" else output, lse

    def check(self, target, rng, config=None):
        arguments, values, others = self.make(rng)
        program = fp8.compile(self.program(config), target=target, cache=False)
        found = program(*arguments)
        found = list(found) if self.lse else [found]
        output, lse = self.expect(*values, others)
        got = np.asarray(found[0]).astype(np.float64)
        assert np.isfinite(got).all(), self.program()
        error = np.linalg.norm(got - output)
        assert error <= TOLERANCE[self.element] * max(np.linalg.norm(output), 1e-30), (error, self.program())
        if self.lse:
            got = np.asarray(found[1]).astype(np.float64)
            assert (np.isneginf(got) == np.isneginf(lse)).all(), self.program()
            seen = ~np.isneginf(lse)
            # Sums of codes in a tensor core have 13 bits.
            most = (2e-3 if self.is_scaled else 2e-5) * (1 if self.data == "random" else 20)
            assert np.abs(got[seen] - lse[seen]).max(initial=0) < most, self.program()
