"""How many operations of floats torch.utils.flop_counter counts for ours: from sizes of tensors, as it does for PyTorch's own,
so that a model has the numbers that it has without FP8."""

import math


def _count_attention(query, key, value, heads_first, products):
    """Products of all queries with all keys, hidden ones too, of which each has some of the columns of query and of value."""
    rows, keys = math.prod(query[:3]), key[2 if heads_first else 1]
    return 2 * rows * keys * (products[0] * query[3] + products[1] * value[3])


def count_attention(query, key, value, mask, ranges, sinks, state, heads_first, *_, **others):
    return _count_attention(query, key, value, heads_first, (1, 1))


def count_attention_backward(grad, query, key, value, factors, output, lse, mask, ranges, state, sinks, heads_first, *_,
                             **others):
    """Scores once more, and the gradients of query and key; those of shares and of value."""
    return _count_attention(query, key, value, heads_first, (3, 2))


def count_flex(query, key, value, operands, number, with_sums, heads_first, *_, **others):
    return _count_attention(query, key, value, heads_first, (1, 1))


def count_flex_backward(grad, query, key, value, factors, output, lse, operands, number, heads_first, *_, **others):
    return _count_attention(query, key, value, heads_first, (3, 2))


def count_cached_attention(query, keys, values, lengths, page_table, starts, ranges, mask, sinks, k_scale, v_scale, heads_first,
                           *_, **others):
    """Counts all positions that there is room for: how many of them have keys is in memory."""
    place = 2 if heads_first else 1
    positions = keys[place] * (1 if page_table is None else page_table[1])
    return 2 * math.prod(query[:3]) * positions * (query[3] + values[3])


def count_grouped(x, weight, *_, **others):
    """Each row is of one group."""
    return 2 * x[0] * math.prod(weight[1:])


def count_grouped_backward(dy, x, weight, ends, unit, needs_x, needs_weight, **others):
    return count_grouped(x, weight) * (needs_x + needs_weight)
