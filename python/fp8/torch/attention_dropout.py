"""Dropout of attention: which shares `fp8.attention` leaves out, by a seed and an offset."""

import math

import torch

_ONE = 1 << 16
_WORD = (1 << 32) - 1


def get_threshold(rate):
    """The rate as kernels have it, of 2^16."""
    return math.floor(rate * _ONE + 0.5)


def write_rate(rate):
    """The same as a program's text, which f32 has exactly."""
    return f"{get_threshold(rate) / _ONE:.9e}"


def get_factor(rate):
    """What is kept counts by this factor."""
    return _ONE / (_ONE - get_threshold(rate))


def find_reason(rate):
    """Why there is no such dropout, or None."""
    if isinstance(rate, (int, float)) and 0 <= rate < 1 and get_threshold(rate) < _ONE:
        return None
    return f"a dropout of {rate}"


def make_state(device):
    """A seed and an offset from torch's generator, as any random numbers: torch.manual_seed repeats them, checkpointing
    restores them, and in a CUDA graph each replay has others. Nothing waits for a GPU."""
    return torch.randint(0, 2 ** 63 - 1, (2,), dtype=torch.int64, device=device)


def _multiply(factor, word):
    """The lower and the upper half of a product of words, in int64."""
    upper = (word * (factor >> 16) + (word * (factor & 0xFFFF) >> 16)) >> 16
    return (word * factor) & _WORD, upper


def _draw(counter, key):
    """Philox4x32-10: four words, of a counter of four and a key of two."""
    for number in range(10):
        low0, high0 = _multiply(0xD2511F53, counter[0])
        low1, high1 = _multiply(0xCD9E8D57, counter[2])
        keys = [(word + number * step) & _WORD for word, step in zip(key, (0x9E3779B9, 0xBB67AE85))]
        counter = [high1 ^ counter[1] ^ keys[0], low1, high0 ^ counter[3] ^ keys[1], low0]
    return counter


def find_kept(state, rate, batches, heads, rows, columns):
    """Which shares are kept, bool, of batches x heads x queries x keys; `rows` and `columns` are slices of the latter."""
    device = state.device
    queries, keys = (torch.arange(x.start, x.stop, device=device) for x in (rows, columns))
    head = torch.arange(batches * heads, device=device).reshape(batches, heads, 1, 1)
    query, key = queries[:, None], keys[None]
    seed, offset = ([x & _WORD, x >> 32 & _WORD] for x in state.unbind())
    words = torch.stack(torch.broadcast_tensors(*_draw(
        [key // 16 * 4 + key // 2 % 4, query // 16 * 8 + query % 8, head, offset[0]], [seed[0], seed[1] ^ offset[1]])))
    number = (key % 2 * 2 + key // 8 % 2).expand(words.shape[1:])
    word = torch.gather(words, 0, number[None])[0]
    return (word >> query // 8 % 2 * 16 & 0xFFFF) >= get_threshold(rate)
