"""Codes in the order in which kernels for Hopper read them that lift weights, in registers or by warps of their own (fp8.arranged,
docs/PackedWeights.md), and back, bit by bit."""

import functools

import torch

from fp8.errors import ArgumentError
from fp8.torch import packed, schemes

# Elements along K whose codes are arranged among themselves: of codes that become bf16, and of those that become E4M3.
BLOCK, LIFTED_BLOCK = 64, packed.GROUP
# Where the lower three bits of an E2M1 and its sign are in the half of a word that becomes its bf16.
_MAGNITUDE, _SIGN = 6, 15
# An E4M3 without its sign that is no number; the same in the two halves of words that have one in every other bit of theirs.
_NAN, _ARRANGED_NANS = 0x7f, (0x07f0, 0x700f)
# The largest E8M0 that kernels multiply arranged E4M3 with, 2^7: they take a larger one for a negative number. Factors in
# f32 of 128x128 are multiplied by 2^120 first.
_MOST = 134
# For each pair of a thread: which of its two words has the bits, or, 2, that half of them which the others leave in either;
# and by how many bits they are further up, around the end of the word.
_PAIRS = ((0, 0), (0, 4), (0, -6), (1, 2), (1, 6), (1, -4), (2, 8), (2, -2))


def _list_bits():
    """For each bit of the two words of a thread: of which pair, of which of its two codes, and which bit of that."""
    bits = {}
    places = [*range(_MAGNITUDE, _MAGNITUDE + 3), _SIGN]
    taken = {(half * 16 + place + up) % 32 for word, up in _PAIRS if word == 0 for half in (0, 1) for place in places}
    for number, (word, up) in enumerate(_PAIRS):
        for half in (0, 1):
            for bit, place in enumerate(places):
                at = (half * 16 + place + up) % 32
                own = word if word < 2 else int(at in taken)
                bits[own * 32 + at] = number, half, bit
    return [bits[at] for at in range(64)]


def _list_bits_of_e4m3():
    """The same of the four words of a thread, whose codes have 8 bits."""
    bits = [None] * 128
    for pair in range(8):
        for half in (0, 1):
            at = pair // 2 * 32 + half * 16
            # The first pair of a word has its bits where a bf16 has them, the second those that it leaves.
            places = [4, 5, 6, 7, 8, 9, 10, 15] if pair % 2 == 0 else [0, 1, 2, 3, 12, 13, 14, 11]
            for bit, place in enumerate(places):
                bits[at + place] = pair, half, bit
    return bits


@functools.lru_cache(maxsize=None)
def _make_order(is_lifted, width=4):
    """For each bit of an arranged block of codes of `width` bits the number of the plain bit that it is."""
    order = []
    for quad in range(4):
        if not is_lifted:
            for pair, half, bit in _list_bits() if width == 4 else _list_bits_of_e4m3():
                # A pair has two codes of K: eight pairs are two of each 16 elements.
                order.append((pair * 8 + 2 * quad + half) * width + bit)
            continue
        own = [4 * quad + i for i in range(4)] + [16 + 4 * quad + i for i in range(4)]
        word = [None] * 32
        for i, code in enumerate(own):
            word[4 * i:4 * i + 3] = [4 * code + bit for bit in range(3)]
        for i in range(4):
            # Signs lie where magnitudes leave a bit: of the first four where results have them, of others four below.
            word[8 * i + 7], word[8 * i + 3] = 4 * own[i] + 3, 4 * own[4 + i] + 3
        order += word
    return torch.tensor(order)


def _permute(codes, is_lifted, change):
    """Bytes whose bits, in blocks of as many, are those that the order says, which `change` makes of that of arranging."""
    width = 4 if codes.dtype == torch.uint8 else 8
    order = change(_make_order(is_lifted, width)).to(codes.device)
    if codes.shape[-1] * 8 % len(order):
        raise ArgumentError(f"expected K to be a multiple of {len(order) // width}, of which codes are arranged, but got "
                            f"{codes.shape[-1] * 8 // width}")
    dtype, codes = codes.dtype, codes.view(torch.uint8)
    shifts = torch.arange(8, dtype=torch.uint8, device=codes.device)
    plain = codes.reshape(-1, len(order) // 8)
    result = torch.empty_like(plain)
    # Bits take eight times the memory of what they are of.
    for begin in range(0, len(plain), 1 << 16):
        bits = (plain[begin:begin + (1 << 16), :, None] >> shifts & 1).flatten(1)[:, order]
        result[begin:begin + (1 << 16)] = (bits.view(len(bits), -1, 8) << shifts).sum(-1, dtype=torch.uint8)
    return result.view(codes.shape).view(dtype)


def arrange_codes(codes, is_lifted=False):
    """Bytes of ... x K/2, the code of an even column in the lower half, or E4M3 of ... x K, as kernels read them that make
    bf16 of them, or E4M3 if they are `is_lifted` (fp8.lift). K is a multiple of 64, or of 32. Raises ArgumentError."""
    return _permute(codes, is_lifted, lambda order: order)


def restore_codes(codes, is_lifted=False):
    """What arrange_codes was given."""
    return _permute(codes, is_lifted, torch.argsort)


def restore_tensors(tensors, scheme):
    """Stored tensors, of which codes are the first, and the Scheme, of plain codes in place of arranged ones."""
    if not scheme.arranged:
        return tensors, scheme
    return ([restore_codes(tensors[0].data, scheme.packed), *tensors[1:]], schemes.replace(scheme, arranged=False))


def find_reason(values, scheme):
    """Why such stored tensors, some of those of a Scheme by name, are none that kernels read arranged, or None."""
    codes, factors = values.get("weight_arranged", values.get("weight")), values.get("weight_scale")
    if not scheme.shares_bytes:
        if codes is not None and _has_nan(codes, "weight_arranged" in values):
            return "some are no numbers"
        is_large = factors is not None and (
            scheme.scale == "e8m0" and bool((factors.view(torch.uint8) > _MOST).any())
            or scheme.has_blocks and not bool((factors.abs() <= 2.0 ** (_MOST - 127)).all()))
        return "factors are larger than 2^7, or no numbers" if is_large else None
    if scheme.packed or scheme.in_halves or factors is None:
        return None
    # Kernels take their bits for those of larger exponents, which a sign or a NaN has none of.
    return "factors have signs, or are no numbers" if bool((factors.view(torch.uint8) >= 0x7f).any()) else None


def _has_nan(codes, is_arranged):
    if not is_arranged:
        return bool(((codes.view(torch.uint8) & _NAN) == _NAN).any())
    halves = codes.contiguous().view(torch.int16)
    return any(bool(((halves & bits) == bits).any()) for bits in _ARRANGED_NANS)


def find_scheme(scheme, device, dtype):
    """The str of the Scheme that products of such activations on a device have, of the str of one."""
    known = schemes.Scheme.read(scheme)
    if not known.arranged or reads(known, torch.device(device), dtype):
        return scheme
    return str(schemes.replace(known, arranged=False))


def settle(tensors, scheme, dtype):
    """The same with the str of a Scheme, for products with activations of a dtype: arranged codes stay where kernels read
    them."""
    if find_scheme(scheme, tensors[0].device, dtype) == scheme:
        return tensors, scheme
    tensors, known = restore_tensors(tensors, schemes.Scheme.read(scheme))
    return tensors, str(known)


def reads(scheme, device, dtype):
    """Whether products of a Scheme have kernels for arranged codes."""
    # What kernels make of codes and their factors is bf16 or f16.
    return (device.type == "cuda" and torch.cuda.get_device_capability(device) == (9, 0)
            and (scheme.input_block is not None or dtype in (torch.bfloat16, torch.float16)))
