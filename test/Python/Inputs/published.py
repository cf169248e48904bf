"""Checkpoints as they are published, written by hand: codes and scales by ml_dtypes and NumPy, files by the format of
safetensors. Nothing of the package that is tested is used here."""

import json
import struct

import ml_dtypes
import numpy as np

E4M3, E8M0, E2M1, BF16 = (ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e8m0fnu, ml_dtypes.float4_e2m1fn,
                          ml_dtypes.bfloat16)
NAMES = {np.dtype(E4M3): "F8_E4M3", np.dtype(E8M0): "F8_E8M0", np.dtype(np.uint8): "U8", np.dtype(np.int8): "I8",
         np.dtype(BF16): "BF16", np.dtype(np.float32): "F32"}


def write_file(path, tensors):
    header, offset = {"__metadata__": {"format": "pt"}}, 0
    for name, value in tensors.items():
        header[name] = {"dtype": NAMES[value.dtype], "shape": list(value.shape),
                        "data_offsets": [offset, offset + value.nbytes]}
        offset += value.nbytes
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    path.write_bytes(struct.pack("<Q", len(text)) + text + b"".join(value.tobytes() for value in tensors.values()))


def read_file(path):
    """(dtype, shape, bytes) by name."""
    data = path.read_bytes()
    size = struct.unpack("<Q", data[:8])[0]
    header = json.loads(data[8:8 + size])
    return {name: (entry["dtype"], entry["shape"], data[8 + size + entry["data_offsets"][0]:
                                                        8 + size + entry["data_offsets"][1]])
            for name, entry in header.items() if name != "__metadata__"}


def write_shards(directory, tensors, config, count=2):
    """Tensors in so many files with an index, in turns."""
    directory.mkdir(exist_ok=True)
    names, places = list(tensors), {}
    for i in range(count):
        file = "model.safetensors" if count == 1 else f"model-{i + 1:05}-of-{count:05}.safetensors"
        places.update(dict.fromkeys(names[i::count], file))
        write_file(directory / file, {name: tensors[name] for name in names[i::count]})
    if count > 1:
        (directory / "model.safetensors.index.json").write_text(json.dumps({"weight_map": places}))
    (directory / "config.json").write_text(json.dumps(config, indent=2))


def read_shards(directory):
    tensors = {}
    for path in sorted(directory.glob("*.safetensors")):
        tensors.update(read_file(path))
    return tensors


def pack(codes):
    """Two codes of E2M1 to a byte, the even one in the lower half."""
    bits = codes.astype(E2M1).view(np.uint8) & 15
    return bits[..., ::2] | bits[..., 1::2] << 4


def spread(scales, block):
    for dim, size in zip((-2, -1), block):
        scales = np.repeat(scales, size, dim)
    return scales


def _round_scales(amax, largest):
    return np.exp2(np.ceil(np.log2(np.maximum(amax, 1e-30) / largest)))


def _find_amax(weight, block):
    n, k = weight.shape[-2:]
    rows, columns = block
    padded = np.pad(np.abs(weight), [(0, 0)] * (weight.ndim - 2) + [(0, -n % rows), (0, -k % columns)])
    tiles = padded.reshape(*weight.shape[:-2], -(-n // rows), rows, -(-k // columns), columns)
    return tiles.max((-3, -1))


def _cut(scales, block, weight):
    return spread(scales, block)[..., :weight.shape[-2], :weight.shape[-1]]


def quantize_mxfp4(weight):
    """Codes as bytes, E8M0, and the values that they are."""
    scales = _round_scales(_find_amax(weight, (1, 32)), 6.0)
    codes = (weight / spread(scales, (1, 32))).astype(E2M1)
    return pack(codes), scales.astype(E8M0), codes.astype(np.float64) * spread(scales, (1, 32))


def quantize_mxfp8(weight):
    scales = _round_scales(_find_amax(weight, (1, 32)), 448.0)
    codes = np.clip(weight / spread(scales, (1, 32)), -448, 448).astype(E4M3)
    return codes, scales.astype(E8M0), codes.astype(np.float64) * spread(scales, (1, 32))


def quantize_block(weight, is_power=False):
    block = (128, 128)
    amax = np.maximum(_find_amax(weight, block), 1e-30)
    scales = (_round_scales(amax, 448.0) if is_power else amax / 448).astype(np.float32)
    codes = np.clip(weight / _cut(scales, block, weight), -448, 448).astype(E4M3)
    return codes, scales, codes.astype(np.float64) * _cut(scales.astype(np.float64), block, weight)


def quantize_rows(weight):
    scales = (_find_amax(weight, (1, weight.shape[-1])) / 448).astype(np.float32)
    codes = np.clip(weight / scales, -448, 448).astype(E4M3)
    return codes, scales, codes.astype(np.float64) * scales.astype(np.float64)


def quantize_tensor(weight):
    scale = np.float32(np.abs(weight).max() / 448)
    codes = np.clip(weight / scale, -448, 448).astype(E4M3)
    return codes, np.array(scale), codes.astype(np.float64) * np.float64(scale)


def quantize_nvfp4(weight, top=None):
    """Codes as bytes, E4M3 scales, the f32 that they are multiplied with, and values."""
    factor = np.float32((np.abs(weight).max() if top is None else top) / (448 * 6))
    scales = np.clip(_find_amax(weight, (1, 16)) / 6 / factor, 2.0**-9, 448).astype(E4M3)
    wide = spread(scales.astype(np.float64), (1, 16)) * np.float64(factor)
    codes = (weight / wide).astype(E2M1)
    return pack(codes), scales, np.array(factor), codes.astype(np.float64) * wide
