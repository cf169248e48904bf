"""Which shares an attention leaves out, by the rule of `fp8.attention`."""

import numpy as np


def philox(counter, key):
    """Philox4x32-10 of arrays of uint64 that are words."""
    word = np.uint64(0xFFFFFFFF)
    for _ in range(10):
        first, second = np.uint64(0xD2511F53) * counter[0], np.uint64(0xCD9E8D57) * counter[2]
        high = np.uint64(32)
        counter = [second >> high ^ counter[1] ^ key[0], second & word, first >> high ^ counter[3] ^ key[1], first & word]
        key = [key[0] + np.uint64(0x9E3779B9) & word, key[1] + np.uint64(0xBB67AE85) & word]
    return counter


def kept(state, rate, batch, heads, queries, keys):
    """Bool of batch x heads x queries x keys. `state` is int64, a seed and an offset."""
    number, i, j = (np.arange(count, dtype=np.uint64) for count in (batch * heads, queries, keys))
    h, i, j = number[:, None, None], i[:, None], j[None, :]
    seed, offset = np.asarray(state).view(np.uint32).astype(np.uint64).reshape(2, 2)
    n = np.uint64
    zero = (h + i + j) * n(0)
    words = philox([j // n(16) * n(4) + j // n(2) % n(4) + zero, i // n(16) * n(8) + i % n(8) + zero, h + zero,
                    offset[0] + zero], [seed[0], seed[1] ^ offset[1]])
    chosen = np.choose((j % n(2) * n(2) + j // n(8) % n(2) + zero).astype(int), words)
    share = chosen >> n(16) * (i // n(8) % n(2)) & n(0xFFFF)
    threshold = int(np.floor(float(np.float32(rate)) * 65536 + 0.5))
    return (share >= n(threshold)).reshape(batch, heads, queries, keys), 65536 / (65536 - threshold)
