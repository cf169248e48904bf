"""The functions of fusion_functions.py in PyTorch, for torch.compile.

Each takes the arguments of the function of its name, in the same order, and returns the
same results: codes in E4M3, factors and amaxes in f32, those of MX as bytes.
"""

from ordinals import LARGEST, compare_bits, compare_sums, compare_values
from timing import torch

E4M3_MAX = 448.0


def encode(x, scale):
    return (x * scale).clamp(-E4M3_MAX, E4M3_MAX).to(torch.float8_e4m3fn)


def turn(x):
    return x.t().contiguous()


def amax_of(x):
    return x.abs().amax().reshape(1, 1).float()


def get_scale(amax, pow2=False):
    """And its inverse."""
    scale = torch.where(amax > 0, E4M3_MAX / amax, 1.0)
    if pow2:
        scale = (scale.view(torch.int32) & 0x7F800000).view(torch.float32)
    return scale, 1.0 / scale


def encode_blocks(x, rows, columns, pow2=False):
    """Codes and factors of blocks of so many rows and columns."""
    m, n = x.shape
    grid = x.float().reshape(m // rows, rows, n // columns, columns)
    scale, inverse = get_scale(grid.abs().amax((1, 3), keepdim=True), pow2)
    return encode(grid, scale).reshape(m, n), inverse.reshape(m // rows, n // columns)


def delayed(x, s, si):
    return encode(x.float(), s), amax_of(x)


def delayed_both(x, s, si):
    codes = encode(x.float(), s)
    return codes, turn(codes), amax_of(x)


def current(x):
    scale, inverse = get_scale(amax_of(x))
    return encode(x.float(), scale), inverse


def current_both(x):
    codes, inverse = current(x)
    return codes, turn(codes), inverse


def block_1x128(x):
    return encode_blocks(x, 1, 128, pow2=True)


def mx_1x32(x):
    """The byte of a factor is the exponent of the least power of two with which the block's
    amax is no more than E4M3's greatest number."""
    m, n = x.shape
    grid = x.float().reshape(m, n // 32, 32)
    bits = (grid.abs().amax(2, keepdim=True) / E4M3_MAX).view(torch.int32)
    byte = ((bits >> 23) + ((bits & 0x7FFFFF) > 0).int()).clamp(0, 254)
    scale = ((254 - byte).clamp(1, 254) << 23).view(torch.float32)
    return encode(grid, scale).reshape(m, n), byte.reshape(m, n // 32).to(torch.uint8)


def row_wise(x):
    scale, inverse = get_scale(x.float().abs().amax(1, keepdim=True))
    return encode(x.float(), scale), inverse


def block_1x128_both(x):
    codes, factors = encode_blocks(x, 1, 128, pow2=True)
    others, other_factors = encode_blocks(x, 128, 1, pow2=True)
    return codes, factors, turn(others), turn(other_factors)


def block_1x128_stored(x):
    codes, factors = encode_blocks(x, 1, 128, pow2=True)
    others, other_factors = encode_blocks(x, 128, 1, pow2=True)
    return codes, turn(factors), turn(others), other_factors


def block_128x128_both(x):
    codes, factors = encode_blocks(x, 128, 128, pow2=True)
    return codes, factors, turn(codes), turn(factors)


def swiglu_both(x, u, s, si):
    gate = x.float()
    return delayed_both((gate * torch.sigmoid(gate) * u.float()).bfloat16(), s, si)


def rmsnorm_both(x, w, s, si):
    wide = x.float()
    inverse = torch.rsqrt((wide * wide).sum(1, keepdim=True) * 2.44140625e-04 + 1e-5)
    return delayed_both((wide * inverse * w.float()).bfloat16(), s, si)


def softmax(x):
    return (torch.softmax(x.float(), 1).bfloat16(),)


def dswiglu_both(x, u, d, s, si):
    gate, up, grad = x.float(), u.float(), d.float()
    sigmoid = torch.sigmoid(gate)
    dgate = (grad * up * (sigmoid * (gate * (1 - sigmoid) + 1))).bfloat16()
    dup = (grad * (gate * sigmoid)).bfloat16()
    codes, turned, amax = delayed_both(dgate, s, si)
    others, other_turned, other_amax = delayed_both(dup, s, si)
    return codes, turned, others, other_turned, amax, other_amax


def bias_grad_both(x, s, si):
    codes, turned, amax = delayed_both(x, s, si)
    return codes, turned, x.float().sum(0).bfloat16(), amax


PEERS = {function.__name__: function for function in (
    delayed, delayed_both, current, current_both, block_1x128, mx_1x32, row_wise,
    block_1x128_both, block_1x128_stored, block_128x128_both, swiglu_both, rmsnorm_both, softmax, dswiglu_both,
    bias_grad_both)}


def compile_peer(name):
    return torch.compile(PEERS[name], dynamic=False)


def compare(dtypes, ours, theirs, sums=None, terms=None):
    """The share of elements with other bits, and what is more than a rounding away, or, of
    the result `sums`, what is no sum of these terms. `ours` and `terms` are integers."""
    share, messages = 0.0, []
    for number, (dtype, our, their) in enumerate(zip(dtypes, ours, theirs)):
        their = their.contiguous().view(our.dtype)
        if our.shape != their.shape:
            messages.append(f"result {number}: {tuple(their.shape)} is {tuple(our.shape)}")
            continue
        differs = our != their
        share = max(share, differs.float().mean().item())
        values = [value[differs].cpu().numpy() for value in (our, their)]
        if number == sums:
            message = compare_sums(*values, terms[:, differs].cpu().numpy())
        elif dtype in (*LARGEST, "F32"):
            message = compare_values(dtype, *values)
        else:
            message = compare_bits(*values)
        if message:
            messages.append(f"result {number}: of those with other bits {message}")
    return {"differs": share, "messages": messages}
