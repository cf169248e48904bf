"""Codes as kernels of sm_90a read them that lift in registers, after docs/PackedWeights.md and apart from what
fp8.torch makes: word by word, as the kernel takes them apart."""

import numpy as np

# Which of a thread's words has a pair of its codes, 2 for both, and by how many bits further up.
PAIRS = ((0, 0), (0, 4), (0, -6), (1, 2), (1, 6), (1, -4), (2, 8), (2, -2))
PAIR_BITS = 0x81c081c0


def rotate(words, bits):
    words = np.asarray(words, np.uint64)
    return ((words << np.uint64(bits % 32)) | (words >> np.uint64(-bits % 32))) & np.uint64(0xffffffff)


def arrange_pairs(codes):
    """Bytes of ... x K/2 for codes of ... x K, one in a byte, that become bf16."""
    blocks = codes.reshape(*codes.shape[:-1], -1, 64).astype(np.uint64)
    own = np.uint64(0)
    for word, up in PAIRS:
        own |= rotate(PAIR_BITS, up) if word == 0 else np.uint64(0)
    words = np.zeros((*blocks.shape[:-1], 4, 2), np.uint64)
    for quad in range(4):
        for number, (word, up) in enumerate(PAIRS):
            first = number * 8 + 2 * quad
            halves = [(blocks[..., first + i] & np.uint64(7)) << np.uint64(6) | blocks[..., first + i] >> np.uint64(3) << np.uint64(15)
                      for i in range(2)]
            pair = rotate(halves[0] | halves[1] << np.uint64(16), up)
            if word < 2:
                words[..., quad, word] |= pair
            else:
                words[..., quad, 0] |= pair & own ^ pair
                words[..., quad, 1] |= pair & own
    return words.astype("<u4").view(np.uint8).reshape(*codes.shape[:-1], -1)


def arrange_lifted(codes):
    """The same of codes that become E4M3, of 32 at a time."""
    blocks = codes.reshape(*codes.shape[:-1], -1, 2, 4, 4).astype(np.uint32)  # Halves, quads, and four codes.
    words = np.zeros((*blocks.shape[:-3], 4), np.uint32)
    for half in range(2):
        for i in range(4):
            code = blocks[..., half, :, i]
            words |= (code & 7) << np.uint32(4 * (4 * half + i)) | code >> 3 << np.uint32(8 * i + (7, 3)[half])
    return words.astype("<u4").view(np.uint8).reshape(*codes.shape[:-1], -1)


def arrange_e4m3(codes):
    """Bytes of ... x K for as many E4M3 in bytes, that become bf16."""
    blocks = codes.reshape(*codes.shape[:-1], -1, 4, 2, 4, 2).astype(np.uint32)  # Words, pairs, quads, and two codes.
    words = np.zeros((*blocks.shape[:-4], 4, 4), np.uint32)
    for half in range(2):
        first, second = blocks[..., 0, :, half], blocks[..., 1, :, half]
        own = (first & 127) << np.uint32(4) | first >> 7 << np.uint32(15)
        own |= second & 15 | (second >> 4 & 7) << np.uint32(12) | second >> 7 << np.uint32(11)
        words |= np.swapaxes(own, -1, -2) << np.uint32(16 * half)
    return words.astype("<u4").view(np.uint8).reshape(codes.shape)
