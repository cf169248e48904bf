"""How checkpoints have the weights of layers and of experts: what tensors are called, how they become those of a
fp8.torch.QuantizedLinear or QuantizedGroups, and how those become them again, bit by bit.

Another layout is an entry of LINEAR or STACKED, or another name in PARTS.
"""

from collections import namedtuple

import torch

from fp8.errors import ArgumentError, MismatchError, UnsupportedError
from fp8.torch import code_order, expert_programs, experts, packed, plain_linears
from fp8.torch.checkpoint_files import get_dtype_of
from fp8.torch.converted import is_conv1d
from fp8.torch.quantized_linear import QuantizedLinear

# What is appended to a layer's name, or a parameter's: for codes, their scales, the scale for the tensor, and that of
# activations. A scale for the tensor that is no "global_scale" is the inverse of what one is.
Names = namedtuple("Names", "codes scale tensor_scale input_scale", defaults=(None, None))
LINEAR = (
    Names(".weight_packed", ".weight_scale", ".weight_global_scale", ".input_global_scale"),  # compressed-tensors
    Names(".weight", ".weight_scale", ".weight_scale_2", ".input_scale"),  # The same of 8 bits, ModelOpt
    Names(".weight", ".weight_scale_inv", None, ".input_scale"),  # DeepSeek-V3
    Names(".weight", ".weight_scale_inv", None, ".activation_scale"),  # transformers
    Names(".weight", ".scale"),  # DeepSeek-V4
)
# Matrices of such stacks lie as the module has them, K x N in those of gpt-oss and Llama 4.
MODELOPT = Names("", "_weight_scale", "_weight_scale_2", "_input_scale")
FBGEMM = Names("", "_scale", None, "_input_scale")
STACKED = (
    Names("_blocks", "_scales"),  # gpt-oss
    Names("_packed", "_scale", "_global_scale", "_input_global_scale"),  # compressed-tensors
    Names("", "_scale_inv", None, "_activation_scale"),  # transformers
    MODELOPT,
    FBGEMM,
)
# The layers that a projection of all experts is made of, one beside the other, where each expert has its own.
PARTS = {"gate_up_proj": (("gate_proj", "up_proj"), ("w1", "w3"), ("fc1", "fc3"), ("gate_up_proj",)),
         "up_proj": (("up_proj",), ("w1",)), "down_proj": (("down_proj",), ("w2",), ("fc2",))}
_ROLES = {"weight": "codes", "weight_packed": "codes", "weight_scale": "scale", "weight_global_scale": "tensor_scale",
          "input_scale": "input_scale", "input_global_scale": "input_scale", "bias": "bias"}
_CODES = ("F8_E4M3", "U8", "I8", "F4", "F4_E2M1", "F4_E2M1_X2")

# Tensors of one matrix by their roles, and the Names that they have.
Found = namedtuple("Found", "names tensors")
# A projection of all experts as one tensor for each of its PARTS: a Found of each.
Stacked = namedtuple("Stacked", "parts")
# A tensor of a checkpoint: what it is called there, its dtype and shape, and what it is of a module: the own name, the
# expert, None for all, and the part of so many; `is_turned` is whether matrices are K x N there.
Record = namedtuple("Record", "name dtype shape own expert part parts is_turned", defaults=(False,))


class Origin(namedtuple("Origin", "records kept")):
    """The Records of a module, and by name those tensors that it would not have bit by bit."""

    __slots__ = ()


def find(files, prefix, choices):
    """What files have of a matrix called `prefix`, as the first of `choices` with all of it, or None for no codes."""
    best = None
    for names in choices:
        tensors = {role: prefix + end for role, end in names._asdict().items()
                   if end is not None and prefix + end in files}
        if "codes" not in tensors or files.get_dtype(tensors["codes"]) not in _CODES:
            continue
        if "scale" in tensors:
            return Found(names, tensors)
        best = best or Found(names, tensors)
    return best


def find_parts(files, prefix, projection):
    """What files have of each expert's matrices by themselves: lists of Found, one for each part, by expert; or None."""
    for parts in PARTS[projection]:
        if any(find(files, f"{prefix}.0.{part}", LINEAR) for part in parts):
            experts_, i = [], 0
            while any(files.get_layer(f"{prefix}.{i}.{part}") for part in parts):
                found = [find(files, f"{prefix}.{i}.{part}", LINEAR) for part in parts]
                if None in found:
                    name = f"{prefix}.{i}.{parts[found.index(None)]}"
                    raise MismatchError(f"expected codes of '{name}', as other experts have, but got "
                                        f"{files.get_dtype(name + '.weight')}")
                experts_.append(found)
                i += 1
            return experts_
    return None


def find_stacked(files, prefix, projection):
    """What files have of a projection whose parts are each one tensor of all experts, as Step 3's: Stacked, or None."""
    for parts in PARTS[projection]:
        found = [find(files, f"{prefix}.{part}", LINEAR) for part in parts]
        if None in found and any(found):
            raise MismatchError(f"expected codes of '{prefix}.{parts[found.index(None)]}', as the other part has, but got none")
        if any(found):
            return Stacked(found)
    return None


def _convert(value, own, shape, dtype, stored, spreads):
    """A tensor of a checkpoint as a module has it, or as it is where it does not fit; `spreads` is whether a scale for
    the tensor is one for each row."""
    if own in ("weight_global_scale", "input_global_scale") and value.is_floating_point():
        value = value.float() if stored.endswith("global_scale") else 1 / value.float()
    bytes_ = (torch.float8_e8m0fnu,) if own == "weight_scale" else (
        torch.int8, getattr(torch, "float4_e2m1fn_x2", torch.int8))
    if dtype == torch.uint8 and value.dtype in bytes_:
        value = value.view(torch.uint8)
    elif dtype == torch.float32 and value.dtype == torch.uint8 and own == "weight_scale":
        value = value.view(torch.float8_e8m0fnu).float()  # Exponents.
    elif dtype == torch.float32 and value.dtype in (torch.bfloat16, torch.float16, torch.float8_e8m0fnu):
        value = value.float()
    if tuple(value.shape) == shape:
        return value
    if own.startswith("weight") and [size for size in value.shape if size != 1] == [size for size in shape if size != 1]:
        return value.reshape(shape)
    if shape == (1,) and value.numel() == 1:
        return value.reshape(shape)
    if own in ("weight_packed", "weight") and value.ndim == len(shape) + 1 and value.flatten(-2).shape == shape:
        return value.flatten(-2)  # Blocks of 16 bytes.
    if own == "weight_scale" and spreads and value.numel() == 1:
        return value.reshape(1, 1).expand(shape)
    return value


def _check_scales(value, name):
    if value.dtype == torch.uint8:
        wrong = "NaN" if bool((value == 255).any()) else ""
    else:
        wide = value.float()
        wrong = ("NaN" if bool(wide.isnan().any()) else "Inf" if bool(wide.isinf().any())
                 else "negative ones" if bool((wide < 0).any()) else "")
    if wrong:
        raise MismatchError(f"expected finite scales of '{name}', but got {wrong}")


def read(files, label, found, scheme, n, k, expert=None, spreads=False, is_turned=False):
    """The tensors of a matrix of N x K as scheme.get_stored has them, and as the files do, by own names; `expert` is
    which of stacked ones, `spreads` whether a scale for the tensor becomes one for each row, `is_turned` whether
    matrices are K x N in the files."""
    tensors, originals = {}, {}
    for own, (shape, dtype) in scheme.get_stored(n, k).items():
        name = found.tensors.get(_ROLES[own])
        if name is None:
            end = getattr(found.names, _ROLES[own]) or f".{own}"
            raise MismatchError(f"expected '{label}{end}' in the checkpoint, but got {', '.join(found.tensors.values())}")
        is_one = expert is not None and not files.get_shape(name)
        original = files.load(name, None if is_one else expert)
        value = original.mT if is_turned and original.ndim == 2 else original
        value = _convert(value, own, shape, dtype, files.stored[name], spreads)
        if tuple(value.shape) != shape or value.dtype != dtype:
            raise MismatchError(f"'{label}': expected '{own}' to be {dtype} of {shape}, but got {value.dtype} of "
                                f"{tuple(value.shape)}, as '{files.stored[name]}'")
        if _ROLES[own] != "codes":
            _check_scales(value, files.stored[name])
            originals[own] = original
        tensors[own] = value
    left = set(found.tensors) - {_ROLES[own] for own in tensors}
    if left and scheme.input_block is not None:
        raise MismatchError(f"expected '{label}' without {', '.join(sorted(left))}, as its config says, but got "
                            f"'{files.stored[found.tensors[min(left)]]}'")
    return tensors, originals


def _make_records(files, found, scheme, n, k, expert=None, part=0, parts=1, is_turned=False):
    """Records of all that was found; what the scheme has no use for has no own name."""
    own_of = {_ROLES[own]: own for own in scheme.get_stored(n, k)}
    return [Record(files.stored[name], files.get_dtype(name), files.get_shape(name), own_of.get(role), expert, part, parts,
                   is_turned)
            for role, name in found.tensors.items()]


def _find_kept(module, records, files, originals):
    """Tensors by name that a module does not have bit by bit, with those that it has no use for."""
    kept = {}
    by_name = {stored: name for name, stored in files.stored.items()}
    for record in records:
        if record.own is None:
            kept[record.name] = files.load(by_name[record.name])
        elif record.name in originals:
            before = originals[record.name]
            after = restore(module, record)
            if before.dtype != after.dtype or not torch.equal(
                    before.contiguous().flatten().view(torch.uint8), after.cpu().contiguous().flatten().view(torch.uint8)):
                kept[record.name] = before
    return kept


def load_linear(files, name, module, scheme, found, device):
    """The QuantizedLinear of a plain layer `module`, called `name`."""
    n, k = plain_linears.get_sizes(module)
    tensors, originals = read(files, name, found, scheme, n, k)
    lifted = None
    if scheme.packed:
        lifted = packed.lift(tensors["weight_packed"], tensors["weight_scale"])
        tensors = lifted.get_tensors()
    try:
        layer = QuantizedLinear(k, n, scheme, {own: value.to(device) for own, value in tensors.items()}, module.bias)
    except ArgumentError as error:
        raise MismatchError(f"'{name}': {error}") from error
    layer.exactness, layer.lost = lifted and lifted.exactness, lifted and lifted.lost
    layer.is_transposed = is_conv1d(module)
    records = _make_records(files, found, scheme, n, k)
    stored = {record.own: record.name for record in records}
    layer.origin = Origin(records, _find_kept(layer, records, files, {
        stored[own]: value for own, value in originals.items()}))
    return layer


def get_stacks(found):
    """What is found of tensors of all experts, for each part; nothing where each expert has its own."""
    return [found] if isinstance(found, Found) else found.parts if isinstance(found, Stacked) else []


def load_projection(files, label, projection, module, scheme, found, device):
    """The QuantizedGroups of a projection of the experts `module`. `found` is that of all experts stacked, Stacked, or lists
    of those of the parts of each expert."""
    groups, n, k = experts.get_sizes(module, projection)
    stacks = get_stacks(found)
    pieces = [stacks] * groups if stacks else found
    if len(pieces) != groups:
        raise MismatchError(f"expected '{label}' for {groups} experts, but got {len(pieces)}")
    parts = len(pieces[0])
    if parts > 1 and not getattr(module, "is_concatenated", True):
        raise UnsupportedError(f"expected '{label}' as one tensor, whose rows take turns, but got {parts}")
    rows = scheme.weight_block[0]
    if n % parts or parts > 1 and rows is not None and n // parts % rows:
        raise UnsupportedError(f"expected {parts} parts of '{label}' to be multiples of {rows} rows, which share a scale, "
                               f"but got {n // parts}")
    spreads, scheme = scheme.weight_block[0] is None, expert_programs.make_grouped(scheme)
    writer = experts.Writer(scheme, groups, n, k, device, parts)
    records, originals = [], {}
    is_turned = isinstance(found, Found) and found.names in (MODELOPT, FBGEMM) and experts.is_transposed(module)
    for part, stack in enumerate(stacks):
        _check_stack(files, label, stack, groups)
        records += _make_records(files, stack, scheme, n // parts, k, None, part, parts, is_turned)
    for i, of_expert in enumerate(pieces):
        tensors = []
        for part, piece in enumerate(of_expert):
            own_label = label if isinstance(found, Found) else piece.tensors["codes"].rpartition(".")[0]
            values, before = read(files, own_label, piece, scheme, n // parts, k, i if stacks else None, spreads, is_turned)
            tensors.append(values)
            if not stacks:
                records += _make_records(files, piece, scheme, n // parts, k, i, part, parts)
                if not scheme.packed:
                    originals.update((files.stored[piece.tensors[_ROLES[own]]], value) for own, value in before.items())
        writer.put_stored(i, tensors)
    if not scheme.packed:
        originals.update((files.stored[name], files.load(name)) for stack in stacks
                         for role, name in stack.tensors.items() if role != "codes")
    bias, bias_name = getattr(module, f"{projection}_bias", None), f"{label}_bias"
    if bias is not None:
        if bias_name not in files:
            raise MismatchError(f"expected '{bias_name}' in the checkpoint, but it has none")
        value = files.load(bias_name)
        if value.shape != bias.shape:
            raise MismatchError(f"expected '{bias_name}' of {tuple(bias.shape)}, but got {tuple(value.shape)}")
        records.append(Record(files.stored[bias_name], files.get_dtype(bias_name), tuple(value.shape), "bias", None, 0, 1))
        originals[files.stored[bias_name]] = value
        bias = value.to(device=writer.device, dtype=bias.dtype)
    result = writer.finish(bias)
    result.origin = Origin(records, _find_kept(result, records, files, originals))
    return result


def load_dense(files, path, projection, module):
    """A projection in high precision of all experts, of which each, or each part, has its own tensors, and their names."""
    groups, n, k = experts.get_sizes(module, projection)
    for parts in PARTS[projection]:
        names = [[f"{path}.{i}.{part}.weight" for part in parts] for i in range(groups)]
        stacks = [f"{path}.{part}.weight" for part in parts]
        if all(name in files for of_expert in names for name in of_expert) or all(name in files for name in stacks):
            break
    else:
        raise MismatchError(f"expected '{path}.{projection}' in the checkpoint, but it has none")
    is_stacked = stacks[0] in files
    if len(parts) > 1 and not getattr(module, "is_concatenated", True):
        raise UnsupportedError(f"expected '{path}.{projection}' as one tensor, whose rows take turns, but got {len(parts)}")
    value = torch.empty(groups, n, k, dtype=getattr(module, projection).dtype)
    if is_stacked:
        names = [stacks] * groups
    for i, of_expert in enumerate(names):
        joined = torch.cat([files.load(name, i if is_stacked else None) for name in of_expert])
        if joined.shape != value.shape[1:]:
            raise MismatchError(f"expected '{of_expert[0]}' to be of {(n // len(parts), k)}, but got another shape")
        value[i] = joined
    value = value.mT.contiguous() if experts.is_transposed(module) else value
    return value, stacks if is_stacked else [name for of_expert in names for name in of_expert]


def _check_stack(files, label, found, groups):
    for name in found.tensors.values():
        shape = files.get_shape(name)
        if shape and shape[0] != groups:
            raise MismatchError(f"expected '{label}' for {groups} experts, but got {shape[0]}, as '{files.stored[name]}'")


def get_stored(module, expert=None):
    """What a checkpoint has of a module's weight, or of an expert's, by own names, in its order of rows."""
    n = module.out_features
    tensors = {name: value if expert is None else value[expert] for name, value in module._parameters.items()
               if value is not None and name != "bias"}
    if module.scheme.arranged:
        tensors[module.scheme.plain_codes] = code_order.restore_codes(tensors.pop("weight_arranged"), module.scheme.packed)
    if getattr(module, "is_deinterleaved", False):
        tensors = {name: experts.interleave(value, n, name) for name, value in tensors.items()}
    if module.scheme.packed:
        lost = module.lost if expert is None else (module.lost or {}).get(expert)
        codes, scales = packed.restore(packed.Lifted(*(tensors[name] for name in (
            "weight_packed", "weight_exponents", "weight_scale")), None, lost))
        tensors = {"weight_packed": codes, "weight_scale": scales}
    return tensors


def restore(module, record):
    """The tensor of a Record, which a module was made of."""
    if record.own == "bias":
        bias = module.bias
        if getattr(module, "is_deinterleaved", False):
            bias = experts.interleave_rows(bias, 1)
        return bias.to(get_dtype_of(record.dtype))
    if record.expert is None and hasattr(module, "groups"):
        values = [_take_part(get_stored(module, i)[record.own], record) for i in range(module.groups)]
        each = record._replace(shape=record.shape[1:])
        if not record.shape:
            return _convert_back(values[0], record)
        return torch.stack([_convert_back(value, each) for value in values])
    return _convert_back(_take_part(get_stored(module, record.expert)[record.own], record), record)


def _take_part(value, record):
    if record.parts == 1 or value.shape[0] % record.parts:
        return value
    count = value.shape[0] // record.parts
    return value[record.part * count:(record.part + 1) * count]


def _convert_back(value, record):
    dtype = get_dtype_of(record.dtype)
    value = value.detach()
    if record.own in ("weight_global_scale", "input_global_scale") and not record.name.endswith("global_scale"):
        value = 1 / value
    if record.is_turned and value.ndim == 2:
        value = value.mT
    size = 1
    for extent in record.shape:
        size *= extent
    if value.numel() != size:
        value = value.flatten()[:1]
    if value.dtype == torch.float32 and dtype == torch.uint8:
        value = value.to(torch.float8_e8m0fnu).view(torch.uint8)
    elif value.dtype == torch.uint8 and dtype is not None and dtype.itemsize == 1:
        value = value.view(dtype)
    elif value.dtype != dtype and dtype is not None:
        value = value.to(dtype)
    return value.reshape(record.shape)
