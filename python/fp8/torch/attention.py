"""Attention of torch.nn.MultiheadAttention with projections that a mode computes."""

import math

import torch
from torch.nn import functional as F


def _project(mode, x, weight, bias):
    y = mode.linear(x, weight, bias)
    return F.linear(x, weight, bias) if y is None else y


def _project_packed(mode, query, key, value, weight, bias):
    """q, k and v by one weight that has all three: by one product for what is the same."""
    width = query.shape[-1]
    if key is value and query is key:
        sizes, inputs = [3 * width], [query]
    elif key is value:
        sizes, inputs = [width, 2 * width], [query, key]
    else:
        sizes, inputs = [width] * 3, [query, key, value]
    weights = [weight] if len(sizes) == 1 else mode.split(weight, sizes)
    biases = [None] * len(sizes) if bias is None else bias.split(sizes)
    results = [_project(mode, *each) for each in zip(inputs, weights, biases)]
    return [part for result in results for part in result.split(width, -1)]


def _check_mask(mask, name, other, other_name, dtype, checks_other=True):
    return F._canonical_mask(mask=mask, mask_name=name, other_type=F._none_or_dtype(other),
                             other_name=other_name, target_type=dtype, check_other=checks_other)


def compute(mode, query, key, value, embed_dim_to_check, num_heads, in_proj_weight, in_proj_bias,
            bias_k, bias_v, add_zero_attn, dropout_p, out_proj_weight, out_proj_bias,
            training=True, key_padding_mask=None, need_weights=True, attn_mask=None,
            use_separate_proj_weight=False, q_proj_weight=None, k_proj_weight=None,
            v_proj_weight=None, static_k=None, static_v=None, average_attn_weights=True,
            is_causal=False):
    """What F.multi_head_attention_forward computes, or None where neither a projection nor
    attention is ours, or arguments are those of rare cases."""
    weights = [in_proj_weight, q_proj_weight, k_proj_weight, v_proj_weight, out_proj_weight]
    is_left = mode.get_attention() is None or need_weights
    if is_left and all(mode.find(weight)[0] < 0 for weight in weights) or static_k is not None or (
            static_v is not None) or is_causal and attn_mask is None:
        return None
    width = query.shape[-1]
    if width != embed_dim_to_check or width % num_heads or (bias_k is None) != (bias_v is None):
        return None
    if key.shape[:-1] != value.shape[:-1] or not (
            use_separate_proj_weight or key.shape == value.shape):
        return None
    batches = query.shape[1] if query.ndim == 3 else 1
    if attn_mask is not None and attn_mask.shape not in (
            (query.shape[0], key.shape[0]),
            (batches * num_heads, query.shape[0], key.shape[0])):
        return None
    is_batched = F._mha_shape_check(query, key, value, key_padding_mask, attn_mask, num_heads)
    if not is_batched:
        same, same_value = query is key, key is value
        query = query.unsqueeze(1)
        key = query if same else key.unsqueeze(1)
        value = key if same_value else value.unsqueeze(1)
        if key_padding_mask is not None:
            key_padding_mask = key_padding_mask.unsqueeze(0)
    length, batch, _ = query.shape
    key_padding_mask = _check_mask(key_padding_mask, "key_padding_mask", attn_mask, "attn_mask",
                                   query.dtype)
    if is_causal and key_padding_mask is None and not need_weights:
        attn_mask = None
    else:
        attn_mask = _check_mask(attn_mask, "attn_mask", None, "", query.dtype, False)
        is_causal = is_causal and key_padding_mask is None
    if use_separate_proj_weight:
        biases = [None] * 3 if in_proj_bias is None else in_proj_bias.chunk(3)
        separate = q_proj_weight, k_proj_weight, v_proj_weight
        q, k, v = (_project(mode, *each) for each in zip((query, key, value), separate, biases))
    else:
        q, k, v = _project_packed(mode, query, key, value, in_proj_weight, in_proj_bias)
    if attn_mask is not None and attn_mask.ndim == 2:
        attn_mask = attn_mask.unsqueeze(0)
    if bias_k is not None:
        k = torch.cat([k, bias_k.repeat(1, batch, 1)])
        v = torch.cat([v, bias_v.repeat(1, batch, 1)])
    q, k, v = (_split_heads(x, num_heads) for x in (q, k, v))
    if add_zero_attn:
        k, v = (torch.cat([x, x.new_zeros(x.shape[0], 1, x.shape[2])], 1) for x in (k, v))
    added = (bias_k is not None) + bool(add_zero_attn)
    if added and attn_mask is not None:
        attn_mask = F.pad(attn_mask, (0, added))
    if key_padding_mask is not None:
        padding = F.pad(key_padding_mask, (0, added)) if added else key_padding_mask
        padding = padding.view(batch, 1, 1, -1).expand(-1, num_heads, -1, -1)
        padding = padding.reshape(batch * num_heads, 1, -1)
        attn_mask = padding if attn_mask is None else attn_mask + padding
    dropout_p = dropout_p if training else 0.0
    if not need_weights:
        y = _attend(mode, q, k, v, attn_mask, batch, num_heads, dropout_p, is_causal)
        y = _project(mode, y.reshape(batch * length, width), out_proj_weight, out_proj_bias)
        y = y.view(length, batch, -1)
        return (y if is_batched else y.squeeze(1)), None
    q = q * math.sqrt(1.0 / q.shape[-1])
    scores = torch.bmm(q, k.mT) if attn_mask is None else torch.baddbmm(attn_mask, q, k.mT)
    scores = F.softmax(scores, -1)
    scores = F.dropout(scores, dropout_p) if dropout_p > 0.0 else scores
    y = torch.bmm(scores, v).transpose(0, 1).reshape(length * batch, width)
    y = _project(mode, y, out_proj_weight, out_proj_bias).view(length, batch, -1)
    scores = scores.view(batch, num_heads, length, -1)
    scores = scores.mean(1) if average_attn_weights else scores
    return (y, scores) if is_batched else (y.squeeze(1), scores.squeeze(0))


def _split_heads(x, num_heads):
    """[length, batch, width] as [batch * heads, length, width of a head]."""
    return x.reshape(x.shape[0], x.shape[1] * num_heads, -1).transpose(0, 1)


def _attend(mode, q, k, v, mask, batch, num_heads, dropout_p, is_causal):
    """By the one call that PyTorch makes; the result is [length, batch, width] in memory."""
    q, k, v = (x.reshape(batch, num_heads, x.shape[1], x.shape[2]) for x in (q, k, v))
    if mask is not None:
        mask = mask.unsqueeze(0) if mask.shape[0] == 1 else mask.reshape(
            batch, num_heads, mask.shape[1], mask.shape[2])
    y = mode.attend(q, k, v, mask, dropout_p, is_causal)
    if y is None:
        y = F.scaled_dot_product_attention(q, k, v, mask, dropout_p, is_causal)
    return y.permute(2, 0, 1, 3).contiguous()
