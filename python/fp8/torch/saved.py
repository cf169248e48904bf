"""Scaling states as entries of a state_dict."""

import re

import torch

from fp8.errors import ArgumentError, shorten

STATE = "fp8_state"


def write(data):
    """What an entry has for the bytes of a state's file."""
    return torch.frombuffer(bytearray(data), dtype=torch.uint8)


def read(key, value):
    """The bytes that an entry holds."""
    is_bytes = (isinstance(value, torch.Tensor) and value.dtype == torch.uint8
                and value.layout == torch.strided and value.device.type != "meta")
    if not is_bytes:
        got = f"{value.dtype} on {value.device}" if isinstance(value, torch.Tensor) else (
            type(value).__name__)
        raise ArgumentError(f"expected '{shorten(key)}' of a state_dict to be bytes as uint8, but "
                            f"got {got}")
    return value.cpu().numpy().tobytes()


def make_key(name, part, label):
    """Behind a module's prefix, that of a parameter, or of a part of it; `label` is "" for its
    recipe."""
    return ".".join(filter(None, [("" if name == "weight" else name) + (part and f"[{part}]"),
                                  STATE, label]))


def parse_key(key, name):
    """The part and the label of such a key, or None if it is none of that parameter."""
    begin = "" if name == "weight" else re.escape(name)
    match = re.fullmatch(rf"{begin}(?:\[([^\]]*)\])?\.?{STATE}(?:\.(.*))?", key)
    return match and (match[1] or "", match[2] or "")
