"""Weights that are codes and scales, and nothing else: a byte an element each way.

What computes with such a parameter other than its layer takes its values; what changes it in place rounds the new ones to
the nearest codes. fp8.torch.fuse_optimizer rounds them stochastically, or keeps a master.
"""

import copy
import math

import torch
from torch.utils._pytree import tree_flatten, tree_map_only

import fp8
from fp8.errors import ArgumentError, UnsupportedError
from fp8.torch import operations, shard_programs
from fp8.torch.gathered import FORWARD, Content, GatheredWeight
from fp8.torch.linear_ops import get_unit
from fp8.torch.update_text import Target

# Names of a parameter's tensors, and of what the state_dict of a layer has beside its codes.
_TENSORS = ("codes", "turned", "factors", "turned_factors")
SCALES = "weight_scale_inv"


class CodedContent(Content):
    """The codes of a weight both ways, and the inverses of their scales; without `turned` of the one order in which all
    products take them."""

    def __init__(self, codes, turned, factors, turned_factors):
        self.codes, self.turned, self.factors, self.turned_factors = codes, turned, factors, turned_factors
        self.target = self._next = None
        # The same for contents of the same values on other devices: others are what something gave the parameter.
        self.origin = object()

    @classmethod
    def allocate(cls, spec, sizes, device, has_one_order=False):
        """Memory for codes of a shard_programs.Codes."""
        kind = shard_programs.get_dtype(spec)
        grid = [1 if each is None else -(-size // each) for size, each in zip(sizes, spec.forward)]
        inverse = torch.empty(grid, device=device)
        made = cls(torch.empty(sizes, dtype=kind, device=device), None, inverse, None)
        if not has_one_order:
            made.turned = torch.empty(sizes[::-1], dtype=kind, device=device)
            made.turned_factors = inverse.view(grid[::-1]) if 1 in grid else torch.empty(grid[::-1], device=device)
        made.target = Target(spec, "f32", False, has_one_order)
        return made

    @classmethod
    def make(cls, spec, values, has_one_order=False):
        """Quantizes values by a shard_programs.Codes."""
        made = cls.allocate(spec, values.shape, values.device, has_one_order)
        made.fill(values)
        return made

    def reorder(self, has_one_order):
        """The same codes in one order, or both ways."""
        made = CodedContent.allocate(self.target.codes, self.codes.shape, self.codes.device, has_one_order)
        made.fill_codes(self.codes, self.factors)
        made.origin = self.origin
        return made

    def follow(self, other):
        """Itself in the orders that another one has."""
        return self if self.target == other.target else self.reorder(other.target.has_one_order)

    def has_codes_of(self, other):
        """Whether codes of one may be those of the other, whatever their order."""
        return self.target == other.target or None not in (self.target, other.target) and (
            self.target.codes == other.target.codes)

    def list_names(self):
        """The names of the tensors that there are."""
        return [name for name in _TENSORS if getattr(self, name) is not None]

    def fill(self, values):
        """Makes the codes those of values, rounded to the nearest."""
        spec = self.target.codes
        made = fp8.quantize(values.detach().float().contiguous(), spec.format, spec.forward, **shard_programs.read_rule(spec.rule))
        self.fill_codes(made.codes, made.scale_inv)

    def fill_codes(self, codes, inverse):
        self.codes.view(torch.uint8).copy_(codes.view(torch.uint8))
        self.factors.copy_(inverse)
        if self.turned is None:
            return
        self.turned.view(torch.uint8).copy_(codes.view(torch.uint8).t())
        if self.turned_factors.data_ptr() != self.factors.data_ptr():
            self.turned_factors.copy_(inverse.t())

    def get_values(self, direction, has_one_order=False):
        if direction == FORWARD or has_one_order:
            return {"weight.codes": self.codes, "weight.scale_inv": self.factors}
        return {"weight.codes_1": self.turned, "weight.scale_inv_1": self.turned_factors}

    def dequantize(self, dtype):
        inverse = self.factors
        for dim, (size, count) in enumerate(zip(self.codes.shape, inverse.shape)):
            if count not in (1, size):
                inverse = inverse.repeat_interleave(128, dim).narrow(dim, 0, size)
        return (self.codes.float() * inverse).to(dtype)

    def clone(self):
        return self.map(torch.Tensor.clone)

    def map(self, function):
        """The same of other tensors. Factors in one line are the same memory both ways, as a step writes them once."""
        made = CodedContent(**{**dict.fromkeys(_TENSORS), **{name: function(getattr(self, name)) for name in self.list_names()}})
        if made.turned is not None and 1 in made.factors.shape:
            made.turned_factors = made.factors.view(made.turned_factors.shape)
        made.target = self.target
        return made

    # What an optimizer's step takes, as of codes that it writes beside a weight.

    @property
    def arguments(self):
        if self._next is None or self._next.device != self.factors.device:
            self._next = torch.empty_like(self.factors)
        own = {"param_codes": self.codes, "param_inverse": self.factors, "param_inverse_new": self._next,
               "codes": self.codes, "codes_1": self.turned, "inverse": self.factors}
        return own if 1 in self.factors.shape else {**own, "inverse_1": self.turned_factors}

    def find_copy(self, is_master):
        """What a step has written beside factors that it still read."""
        return (self.factors, self._next) if is_master else None

    def mark(self, weight):
        """Codes are always those of the weight."""


class CodedWeight(GatheredWeight):
    """A parameter whose values are a CodedContent's."""

    @staticmethod
    def __new__(cls, content, dtype):
        made = torch.Tensor._make_wrapper_subclass(cls, content.codes.shape, dtype=dtype, device=content.codes.device)
        made._content = content
        return made

    def __init__(self, content, dtype):
        pass

    def __repr__(self):
        return f"CodedWeight({list(self.shape)}, {self.dtype})"

    @property
    def content(self):
        return self._content

    def make_like(self, content):
        """What it was while its codes were others."""
        return CodedWeight(content, self.dtype)

    @property
    def data(self):
        return torch.Tensor.data.__get__(self)

    @data.setter
    def data(self, values):
        # PyTorch would give the parameter the memory of numbers, beside which its codes stay what they were.
        if not isinstance(values, torch.Tensor) or values.shape != self.shape:
            raise ArgumentError(f"expected data of a parameter in FP8 to be values of its sizes {list(self.shape)}, but got "
                                f"{list(values.shape) if isinstance(values, torch.Tensor) else type(values).__name__}")
        if (values.dtype, values.device) != (self.dtype, self.device):
            raise ArgumentError(f"expected data of a parameter in FP8 to be {self.dtype} on {self.device}, as it is, but got "
                                f"{values.dtype} on {values.device}: to() of its module makes it another type, or moves it")
        # As with PyTorch what was its data before stays what it is, and no operation counts as one in place.
        if is_coded(values) and values._content.has_codes_of(self._content):
            self._content = values._content.follow(self._content)
            return
        content = self._content.clone()
        with torch.no_grad():
            content.fill(torch.empty(self.shape, dtype=self.dtype, device=self.device).copy_(values))
        self._content = content

    def __deepcopy__(self, memo):
        if id(self) not in memo:
            memo[id(self)] = torch.nn.Parameter(CodedWeight(self._content.clone(), self.dtype), self.requires_grad)
        return memo[id(self)]

    def __reduce_ex__(self, protocol):
        content = self._content
        return _rebuild, ([getattr(content, name) for name in _TENSORS], content.target, self.dtype, self.requires_grad)

    def __setitem__(self, index, value):
        # PyTorch writes to a view, which here has no memory of the parameter.
        values = self._content.dequantize(self.dtype)
        values[index] = value
        self.copy_(values)

    # What torch.compile asks for.

    def __getattr__(self, name):
        if name in _TENSORS:
            return getattr(self._content, name)
        raise AttributeError(name)

    def __tensor_flatten__(self):
        return self._content.list_names(), (self.dtype, self._content.target)

    @staticmethod
    def __tensor_unflatten__(tensors, context, sizes, strides):
        return _build([tensors.get(name) for name in _TENSORS], context[1], context[0])

    @classmethod
    def __torch_dispatch__(cls, func, types, args, kwargs=None):
        kwargs, aten = kwargs or {}, torch.ops.aten
        own = args[0] if args and isinstance(args[0], cls) else None
        if own is not None and (func in (aten.detach.default, aten.alias.default) or (
                func is aten.view.default and tuple(args[1]) == tuple(own.shape))):
            return cls(own._content, own.dtype)
        if own is not None and func is aten.clone.default:
            return cls(own._content.clone(), own.dtype)
        if own is not None and func is aten._to_copy.default:
            return _convert(own, **kwargs)
        if own is not None and func is aten.copy_.default and isinstance(args[1], cls) and (
                own._content.has_codes_of(args[1]._content)):
            own._content.fill_codes(args[1]._content.codes, args[1]._content.factors)
            return own
        if func in _CODED:
            return _CODED[func](*args, **kwargs)
        changed = _list_changed(func, args, kwargs)
        values = {}

        def widen(each):
            if id(each) not in values:
                values[id(each)] = each, each._content.dequantize(each.dtype)
            return values[id(each)][1]

        plain = tree_map_only(cls, widen, (args, kwargs))
        result = func(*plain[0], **plain[1])
        for each in changed:
            if isinstance(each, cls):
                each._content.fill(values[id(each)][1])
        if own is not None and any(each is own for each in changed):
            return own
        # Graphs are traced with tensors of other classes, and have views of none of ours.
        return _seal(func, result) if own is not None and type(own._content.codes) is torch.Tensor else result


class CodedView(torch.Tensor):
    """Values of a part of a CodedWeight, or in other sizes. What writes to them raises UnsupportedError, as the parameter
    would not have it."""

    @staticmethod
    def __new__(cls, values):
        made = torch.Tensor._make_subclass(cls, values)
        made._values = values
        return made

    def __repr__(self):
        return repr(self._values)

    # What PyTorch asks of its own class only.

    def tolist(self):
        return self._values.tolist()

    def numpy(self, **keywords):
        return self._values.numpy(**keywords)

    def __reduce_ex__(self, protocol):
        return self._values.__reduce_ex__(protocol)

    @classmethod
    def __torch_dispatch__(cls, func, types, args, kwargs=None):
        kwargs = kwargs or {}
        if any(isinstance(each, cls) for each in _list_changed(func, args, kwargs)):
            raise UnsupportedError(f"expected changes of a parameter in FP8 as a whole, or by weight[index] = values, since its "
                                   f"views are values of its codes and not its memory, but got {func} of a view")
        args, kwargs = tree_map_only(cls, lambda each: each._values, (args, kwargs))
        return _seal(func, func(*args, **kwargs))


def _seal(func, result):
    """What views of a parameter are where they would be of the same memory."""
    alias = [each.alias_info for each in func._schema.returns]
    if not any(each is not None and not each.is_write for each in alias):
        return result
    return tree_map_only(torch.Tensor, lambda each: CodedView(each) if type(each) is torch.Tensor else each, result)


def is_coded(tensor):
    return isinstance(tensor, CodedWeight)


def _build(tensors, target, dtype):
    content = CodedContent(*tensors)
    content.target = target
    return CodedWeight(content, dtype)


def _rebuild(tensors, target, dtype, requires_grad):
    return torch.nn.Parameter(_build(tensors, target, dtype), requires_grad)


def _list_changed(func, args, kwargs):
    """The tensors that an operation writes to, also those in lists."""
    changed = []
    for place, argument in enumerate(func._schema.arguments):
        if argument.alias_info is not None and argument.alias_info.is_write:
            value = args[place] if place < len(args) else kwargs.get(argument.name)
            changed += tree_flatten(value)[0]
    return changed


def _convert(weight, dtype=None, device=None, **others):
    """On another device the same codes; of another type only the values."""
    if dtype is not None and dtype != weight.dtype:
        return weight._content.dequantize(dtype).to(device or weight.device)
    content = weight._content
    return CodedWeight(content.clone() if device is None else content.map(lambda each: each.to(device, copy=True)),
                       weight.dtype)


def move(weight, function):
    """Makes a parameter what a function that torch.nn.Module._apply is given makes of numbers: of another type, on
    another device, or both. Codes stay what they are."""
    probe = function(torch.empty(0, dtype=weight.dtype, device=weight.device))
    if (probe.dtype, probe.device) == (weight.dtype, weight.device):
        return
    content = weight.content
    if probe.device != weight.device:
        origin = content.origin
        content = content.map(lambda each: torch.empty_like(each, device=probe.device) if each.is_meta
                              else each.to(probe.device))
        content.origin = origin
    gradient, weight.grad = weight.grad, None
    made = torch.nn.Parameter(CodedWeight(content, probe.dtype), weight.requires_grad)
    torch.utils.swap_tensors(weight, made)
    weight.grad = None if gradient is None else function(gradient)


# ===----------------------------------------------------------------------===
# In graphs: operations that take tensors of no class of ours
# ===----------------------------------------------------------------------===


def _run_forward(x, tensors, bias, unit, saves):
    return get_unit(unit).forward(x, _build_listed(tensors, x.dtype), bias, saves)


def _infer_forward(x, tensors, bias, unit, saves):
    from fp8.torch.linear_ops import _infer_forward as infer
    return infer(x, x.new_empty(tensors[0].shape), bias, unit, saves)


def _run_reuse(x, codes, tensors, bias, unit):
    return get_unit(unit).reuse(x, codes, _build_listed(tensors, x.dtype), bias)


def _infer_reuse(x, codes, tensors, bias, unit):
    from fp8.torch.linear_ops import _infer_reuse as infer
    return infer(x, codes, x.new_empty(tensors[0].shape), bias, unit)


def _run_backward(dy, saved, tensors, has_bias, unit, needs_x, needs_weight):
    weight = _build_listed(tensors, dy.dtype)
    return get_unit(unit).backward(dy, saved, weight, has_bias, needs_x, needs_weight)


def _infer_backward(dy, saved, tensors, has_bias, unit, needs_x, needs_weight):
    from fp8.torch.linear_ops import _infer_backward as infer
    return infer(dy, saved, dy.new_empty(tensors[0].shape), has_bias, unit, needs_x, needs_weight)


def _count_forward(x, weight, *_, **others):
    return 2 * x[0] * math.prod(weight[0])


def _count_backward(dy, saved, weight, has_bias, unit, needs_x, needs_weight, **others):
    return 2 * dy[0] * math.prod(weight[0]) * (needs_x + needs_weight)


_forward = operations.define(
    "coded_linear_forward(Tensor x, Tensor[] weight, Tensor? bias, int unit, bool saves) -> Tensor[]",
    _run_forward, _infer_forward, flops=_count_forward)
operations.define("coded_linear_reuse(Tensor x, Tensor[] codes, Tensor[] weight, Tensor? bias, int unit) -> Tensor[]",
                  _run_reuse, _infer_reuse, flops=lambda x, codes, *others, **named: _count_forward(x, *others))
_backward = operations.define(
    "coded_linear_backward(Tensor dy, Tensor[] saved, Tensor[] weight, bool has_bias, int unit, bool needs_x, "
    "bool needs_weight) -> Tensor[]", _run_backward, _infer_backward, flops=_count_backward)


def _list_tensors(weight):
    return [getattr(weight._content, name) for name in weight._content.list_names()]


def _build_listed(tensors, dtype):
    if len(tensors) < len(_TENSORS):
        tensors = tensors[0], None, tensors[1], None
    return _build(tensors, None, dtype)


_CODED = {
    torch.ops.fp8.linear_forward.default: lambda x, weight, bias, unit, saves: _forward(
        x, _list_tensors(weight), bias, unit, saves),
    torch.ops.fp8.linear_backward.default: lambda dy, saved, weight, *others: _backward(
        dy, saved, _list_tensors(weight), *others)}


# ===----------------------------------------------------------------------===
# Layers
# ===----------------------------------------------------------------------===


def find_spec(recipe):
    """The Codes of a recipe's weights, of which both directions have the same. Raises ArgumentError if there are none."""
    spec = recipe and shard_programs.find_codes(recipe)
    if not spec or spec.forward != spec.backward or recipe.partition(",")[0] == "delayed":
        raise ArgumentError("expected a recipe whose weights have the same codes both ways and scales of their own, block or "
                            f"current, for parameters in FP8, but got {recipe}")
    return spec


def find_owners(model):
    """Names of a model's parameters by their ids, of those that several modules share all."""
    owners = {}
    for place, module in model.named_modules():
        for name, parameter in module._parameters.items():
            if parameter is not None:
                owners.setdefault(id(parameter), []).append(f"{place}.{name}".removeprefix("."))
    return owners


def encode(layer, names):
    """Makes the weight of a Linear layer codes, if its sizes allow, and no other module has it, of which `names` are all
    names. Returns why it does not, or None."""
    spec, has_one_order = find_spec(layer.recipe), shard_programs.keeps_one_order(layer.recipe, layer._options)
    if is_coded(layer.weight) and layer.weight.content.target.codes == spec:
        if layer.weight.content.target.has_one_order != has_one_order:
            layer.weight._content = layer.weight.content.reorder(has_one_order)
        layer.take_codes()
        return None
    if len(names) > 1 and not is_coded(layer.weight):
        # Another Parameter in one of its modules would untie it.
        return f"the weight, which is no codes, since it is shared: {', '.join(names)}"
    decode(layer)
    weight = layer.weight
    if type(weight.data) is not torch.Tensor:
        return "the weight, which is no codes, since it is no dense tensor"
    if any(size % spec.multiple for size in weight.shape):
        return f"the weight, which is no codes, since its sizes are no multiples of {spec.multiple}"
    content = CodedContent.make(spec, weight.detach(), has_one_order)
    layer.weight = torch.nn.Parameter(CodedWeight(content, weight.dtype), weight.requires_grad)
    layer.take_codes()
    return None


def decode(layer):
    """Makes the weight of a layer a tensor again."""
    weight = layer.weight
    if is_coded(weight):
        layer.weight = torch.nn.Parameter(weight.content.dequantize(weight.dtype), weight.requires_grad)


def save(layer, destination, prefix):
    """Puts what a state_dict has of a weight in place of the parameter: values, or codes where the layer says so."""
    content = layer.weight.content
    if layer.saves_codes:
        destination[prefix + "weight"], destination[prefix + SCALES] = content.codes.detach(), content.factors.detach()
    else:
        destination[prefix + "weight"] = content.dequantize(layer.weight.dtype)


def load(layer, state_dict, prefix, assigns=False):
    """Takes codes from a state_dict, as those of `save`, whatever the layer has. What is left there is what PyTorch
    loads, or assigns as the parameter, and what has been taken."""
    scales = state_dict.pop(prefix + SCALES, None)
    codes = state_dict.get(prefix + "weight")
    if scales is None or codes is None:
        if codes is None or not assigns or not is_coded(layer.weight) or is_coded(codes) or (
                codes.shape != layer.weight.shape):
            return {}
        target = layer.weight.content.target
        content = CodedContent.make(target.codes, codes, target.has_one_order)
        state_dict[prefix + "weight"] = CodedWeight(content, codes.dtype)
        return {prefix + "weight": codes}
    taken = {prefix + SCALES: scales, prefix + "weight": codes}
    if is_coded(layer.weight) and codes.dtype == layer.weight.content.codes.dtype and (
            scales.shape == layer.weight.content.factors.shape):
        if assigns:
            target = layer.weight.content.target
            content = CodedContent.allocate(target.codes, codes.shape, codes.device, target.has_one_order)
            content.fill_codes(codes, scales)
            state_dict[prefix + "weight"] = CodedWeight(content, layer.weight.dtype)
            return taken
        with torch.no_grad():
            layer.weight.content.fill_codes(codes, scales)
            torch.autograd.graph.increment_version(layer.weight)
        state_dict[prefix + "weight"] = layer.weight.detach()
    else:
        content = CodedContent(codes, None, scales, None)
        state_dict[prefix + "weight"] = content.dequantize(layer.weight.dtype)
    return taken
