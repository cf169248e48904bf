"""Weights of four bits that are multiplied as E4M3: MXFP4, codes of E2M1 with an E8M0 for each
32 of K, as one f32 for each row and small exponents (fp8.lift).

E2M1 times 2^e is an E4M3 for e from -8 to 6. So a row of which the exponents differ by 14 at
most is E4M3 times a power of two, without loss. In others the smallest groups are rounded, and
`lift` says how many of them, and by how much.
"""

from collections import namedtuple

import torch

from fp8.errors import ArgumentError

GROUP, WORD = 32, 128  # Elements along K with one exponent, and with one word of exponents.
LEAST, MOST = -8, 6
_E8M0_BIAS, _E8M0_NAN = 127, 255
_LEAST_FACTOR = -126  # A smaller power of two is no normal f32.


class Exactness(namedtuple("Exactness", "groups rounded elements error by_tensor by_word")):
    """What lifting changes: of so many `groups`, those that are `rounded`, the `elements` of them
    that have another value, and the largest `error` of one, as a share of its row's largest
    magnitude. `by_tensor` and `by_word` are the groups that would be rounded with one factor for
    the tensor, and with one for each 128 of K of a row."""

    __slots__ = ()

    def __str__(self):
        if not self.rounded:
            return "lifted exactly"
        return (f"lifted with {self.rounded} of {self.groups} groups of {GROUP} rounded, {self.elements} "
                f"elements, by up to {self.error:.2g} of their row's largest")


def join(several):
    """The Exactness of several weights together."""
    groups, rounded, elements, errors, by_tensor, by_word = zip(*several)
    return Exactness(sum(groups), sum(rounded), sum(elements), max(errors), sum(by_tensor), sum(by_word))


class Lost(namedtuple("Lost", "groups scales codes")):
    """What Lifted does not say of MXFP4: the E8M0 of some groups, and their codes, 16 bytes each. Groups are counted
    along K, then rows. They are those that were rounded, and zeros."""

    __slots__ = ()


class Lifted(namedtuple("Lifted", "packed exponents factors exactness lost", defaults=(None,))):
    """Codes, exponents and factors as fp8.lift and fp8.assemble take them, what lifting
    changed, and what it lost."""

    __slots__ = ()

    def get_tensors(self):
        """By the names that QuantizedLinear has for them."""
        return {"weight_packed": self.packed, "weight_exponents": self.exponents,
                "weight_scale": self.factors}


def _make_rounding():
    """For each shift of a group's exponent up to the least one, what codes become: in units of
    half the least power of two E2M1 has all of 0, 1, 2, 3, 4 and 6."""
    units = torch.tensor([0, 1, 2, 3, 4, 6, 8, 12], dtype=torch.float64)
    codes = torch.zeros(16, 8, dtype=torch.uint8)
    codes[0] = torch.arange(8)
    for shift in range(1, 16):
        rounded = torch.round(units / 2**shift)  # To the even one of two.
        codes[shift] = (rounded[:, None] == units).to(torch.uint8).argmax(1)
    return torch.cat([codes, codes + 8], 1)


def _count(exponents, used, top):
    """Groups that lie too far below their `top`."""
    return int((used & (exponents < top - (MOST - LEAST))).sum())


def _get_bytes(exponents, n):
    """Those of each of the N rows."""
    # In one dimension first: the strides of one of a single word are anything.
    return exponents.t().reshape(-1).view(torch.uint8).view(n, -1)


def _get_codes(packed):
    return torch.stack([packed & 15, packed >> 4], -1).flatten(-2)


def lift(packed, scales):
    """Weights of N x K in MXFP4 as Lifted.

    - packed: N x K/2 bytes, the code of an even column in the lower half;
    - scales: N x K/32 of E8M0, as bytes or as float8_e8m0fnu.

    The codes are those given where nothing is rounded. Raises ArgumentError for sizes that do not
    fit, and for a scale that is NaN.
    """
    packed, scales = packed.view(torch.uint8), scales.view(torch.uint8)
    if (packed.ndim != 2 or scales.shape != (packed.shape[0], packed.shape[1] * 2 // GROUP)
            or packed.shape[1] * 2 % GROUP):
        raise ArgumentError(f"expected N x K/2 bytes of codes and N x K/{GROUP} scales, but got "
                            f"{tuple(packed.shape)} and {tuple(scales.shape)}")
    if bool((scales == _E8M0_NAN).any()):
        raise ArgumentError("expected scales that are numbers, but got NaN")
    n, k = packed.shape[0], packed.shape[1] * 2
    codes = _get_codes(packed).view(n, k // GROUP, GROUP)
    used = ((codes & 7) != 0).any(-1)
    exponents = scales.int() - _E8M0_BIAS
    lowest = -2 * _E8M0_BIAS
    tops = torch.where(used, exponents, lowest)
    top = tops.amax(1, keepdim=True) if k else tops.new_zeros(n, 1)
    base = (top - MOST).clamp(min=_LEAST_FACTOR)
    base = torch.where(top == lowest, 0, base)
    stored = exponents - base
    shift = torch.where(used, (LEAST - stored).clamp(0, 15), 0)
    rounded = codes
    if bool(shift.any()):
        table = _make_rounding().to(packed.device)
        rounded = table[shift[..., None].expand_as(codes).long(), codes.long()]
        packed = (rounded[..., ::2] | rounded[..., 1::2] << 4).view(n, k // 2)
    exactness = _compare(codes, rounded, exponents, shift, used, tops, top)
    words = -(-k // WORD)
    padded = torch.zeros(n, words * WORD // GROUP, dtype=torch.uint8, device=packed.device)
    clamped = stored.clamp(LEAST, MOST)
    padded[:, :k // GROUP] = (clamped - LEAST).to(torch.uint8)
    lost = (clamped != stored).flatten().nonzero()[:, 0]
    before = codes.view(-1, GROUP)[lost]
    return Lifted(packed.contiguous(), padded.view(torch.int32).t().contiguous(),
                  torch.exp2(base.double()).float(), exactness,
                  Lost(lost, scales.reshape(-1)[lost], before[:, ::2] | before[:, 1::2] << 4))


def restore(lifted):
    """The codes and the E8M0 that were lifted, as bytes, bit by bit."""
    n, k = lifted.packed.shape[0], lifted.packed.shape[1] * 2
    bases = torch.frexp(lifted.factors)[1] - 1
    stored = _get_bytes(lifted.exponents, n)[:, :k // GROUP]
    # Zeros may be anywhere, which `lost` says.
    scales = (stored.int() + LEAST + bases + _E8M0_BIAS).clamp(0, _E8M0_NAN).to(torch.uint8)
    if lifted.lost is None or not len(lifted.lost.groups):
        return lifted.packed, scales
    groups, lost_scales, codes = (value.to(scales.device) for value in lifted.lost)
    scales.view(-1)[groups] = lost_scales
    packed = lifted.packed.clone()
    packed.view(-1, GROUP // 2)[groups] = codes
    return packed, scales


def _compare(codes, rounded, exponents, shift, used, tops, top):
    """The Exactness of codes that became others, with `shift` added to their exponents."""
    words = -(-codes.shape[1] * GROUP // WORD) * WORD // GROUP
    padded = torch.nn.functional.pad(tops, (0, words - tops.shape[1]), value=int(tops.min()))
    of_words = padded.view(len(tops), -1, WORD // GROUP).amax(-1).repeat_interleave(
        WORD // GROUP, 1)[:, :tops.shape[1]]
    by_tensor = _count(exponents, used, tops.max())
    by_word = _count(exponents, used, of_words)
    if not bool((shift > 0).any()):
        return Exactness(used.numel(), 0, 0, 0.0, by_tensor, by_word)
    magnitudes = torch.tensor([0, .5, 1, 1.5, 2, 3, 4, 6], dtype=torch.float64,
                              device=codes.device)
    sign = 1 - 2 * (codes >> 3).double()

    def value(of, more):
        power = torch.exp2((exponents - top + more).double())[..., None]
        return sign * magnitudes[(of & 7).long()] * power
    before, after = value(codes, 0), value(rounded, shift)
    largest = before.abs().flatten(1).amax(1)[:, None, None]
    error = (after - before).abs()
    changed = error > 0
    return Exactness(used.numel(), int(changed.any(-1).sum()), int(changed.sum()),
                     float((error / largest.clamp(min=1e-300)).max()), by_tensor, by_word)


def unlift(lifted, dtype=torch.float32):
    """The weights: codes times powers of two, times the factors of rows."""
    n = lifted.packed.shape[0]
    codes = _get_codes(lifted.packed)
    magnitudes = torch.tensor([0, .5, 1, 1.5, 2, 3, 4, 6], device=codes.device)
    values = torch.cat([magnitudes, -magnitudes])[codes.long()]
    exponents = _get_bytes(lifted.exponents, n)
    powers = torch.exp2(exponents.double() + LEAST).repeat_interleave(GROUP, 1)[:, :codes.shape[1]]
    return (values * powers * lifted.factors).to(dtype)


def read_blocks(blocks, scales):
    """Lifted weights of a tensor as gpt-oss has them: `blocks` of ... x N x K/32 x 16 bytes and
    `scales` of ... x N x K/32; a list of them for each index of what comes before N."""
    if blocks.ndim < 3 or blocks.shape[-1] != GROUP // 2 or blocks.shape[:-1] != scales.shape:
        raise ArgumentError(f"expected blocks of ... x N x K/{GROUP} x {GROUP // 2} bytes and scales of "
                            f"... x N x K/{GROUP}, but got {tuple(blocks.shape)} and {tuple(scales.shape)}")
    packed = blocks.flatten(-2)
    if packed.ndim == 2:
        return [lift(packed, scales)]
    return [lift(one, of_one) for one, of_one in zip(packed.flatten(0, -3), scales.flatten(0, -3))]
