"""What stochastic rounding and the Hadamard transform compute, in numpy.

Written after Salmon et al., Parallel random numbers: as easy as 1, 2, 3 (2011), and
after the definition of the transform as a matrix, not after our code.
"""

import numpy as np

U32, U64, F32 = np.uint32, np.uint64, np.float32
E2M1 = np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6])
SIGNS = np.array([1, 1, 1, -1, 1, -1, -1, -1, -1, -1, -1, 1, -1, 1, -1, -1], F32)


def philox(counter, key):
    """Philox4x32-10: four words for each counter, arrays of words that broadcast."""
    c0, c1, c2, c3 = np.broadcast_arrays(*(np.asarray(word, U32) for word in counter))
    k0, k1 = (int(word) & 0xFFFFFFFF for word in key)
    for _ in range(10):
        first = c0.astype(U64) * U64(0xD2511F53)
        second = c2.astype(U64) * U64(0xCD9E8D57)
        c0, c1, c2, c3 = ((second >> U64(32)).astype(U32) ^ c1 ^ U32(k0), second.astype(U32),
                          (first >> U64(32)).astype(U32) ^ c3 ^ U32(k1), first.astype(U32))
        k0, k1 = (k0 + 0x9E3779B9) & 0xFFFFFFFF, (k1 + 0xBB67AE85) & 0xFFFFFFFF
    return c0, c1, c2, c3


def check_philox():
    """The known answers that come with the authors' Random123."""
    for counter, key, answer in [
            ([0] * 4, [0] * 2, "6627e8d5 e169c58d bc57ac4c 9b00dbd8"),
            ([0xFFFFFFFF] * 4, [0xFFFFFFFF] * 2, "408f276d 41c83b0e a20bc7c6 6d5451fd"),
            ([0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344], [0xA4093822, 0x299F31D0],
             "d16cfe09 94fdcceb 5001e420 24126ea1")]:
        words = " ".join(f"{int(word):08x}" for word in philox(counter, key))
        if words != answer:
            raise SystemExit(f"expected Philox to give {answer}, but got {words}")


def uniform(shape, seed):
    """The number in [0, 1) of every element, for the four words of a seed."""
    columns = shape[-1]
    rows = int(np.prod(shape[:-1]))
    seed = [int(word) & 0xFFFFFFFF for word in seed]
    words = philox((np.arange(-(-columns // 4))[None, :], np.arange(rows)[:, None], seed[2], seed[3]),
                   seed[:2])
    words = np.stack(words, axis=-1).reshape(rows, -1)[:, :columns]
    return ((words >> U32(8)) / F32(2.0**24)).reshape(shape)


def encode(scaled, seed):
    """Codes of E2M1, a byte each, of f32 values."""
    numbers = uniform(scaled.shape, seed)
    magnitude = np.minimum(np.abs(scaled.astype(np.float64)), 6)
    below = np.searchsorted(E2M1, magnitude, side="right") - 1
    below = np.clip(below, 0, len(E2M1) - 1)
    above = np.minimum(below + 1, len(E2M1) - 1)
    step = np.where(above > below, E2M1[above] - E2M1[below], 1)
    fraction = (magnitude - E2M1[below]) / step
    code = np.where(numbers < fraction, above, below)
    code = code | np.where(np.signbit(scaled), 8, 0)
    return np.where(np.isnan(scaled), 7, code).astype(np.uint8)


def hadamard(x, signs=SIGNS):
    """Every 16 neighbours of the last dimension, by the matrix, in the order of the sums that
    fp8.hadamard promises."""
    blocks = x.astype(F32).reshape(*x.shape[:-1], -1, 16) * signs
    rotated = np.empty_like(blocks)
    for i in range(16):
        values = blocks
        for bit in range(4):
            sign = F32(-1 if i >> bit & 1 else 1)
            values = values[..., 0::2] + sign * values[..., 1::2]
        rotated[..., i] = values[..., 0] * F32(0.25)
    return rotated.reshape(x.shape).astype(x.dtype)


def check_hadamard():
    """The matrix of the above: Sylvester's, orthogonal, with signs by columns of its input."""
    matrix = np.array([[1.0]])
    while len(matrix) < 16:
        matrix = np.block([[matrix, matrix], [matrix, -matrix]])
    ours = hadamard(np.eye(16, dtype=F32))
    if not np.array_equal(ours, SIGNS[:, None] * matrix / 4):
        raise SystemExit("expected the matrix of Sylvester, but got another")
    if not np.array_equal(ours @ ours.T, np.eye(16)):
        raise SystemExit("expected an orthogonal matrix, but got another")
