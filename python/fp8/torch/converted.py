"""Modules whose own parameters are multiplied with in FP8, whatever their forward is."""

import copy
import functools

import torch
import torch.nn.functional as F
from torch import nn

from fp8.errors import UnsupportedError
from fp8.torch import attention_scales, checkpointed, products, saved
from fp8.torch.attention_calls import get_shared, share
from fp8.torch.autocasting import autocast
from fp8.torch.capture import Mode, show_dynamo
from fp8.torch.linear_forms import computes_linear

# Own classes, by those that they stand for.
_classes = {}


def get_class(module):
    return getattr(type(module), "_fp8_class", type(module))


def _is_experts(module):
    """Whether it is one of transformers' mixtures of experts, which run in several ways."""
    return hasattr(module, "_is_expert_parallel") and hasattr(
        getattr(module, "config", None), "_experts_implementation")


def is_conv1d(module):
    """Whether it is transformers' Conv1D, a linear layer with its weight the other way round."""
    return get_class(module).__name__ == "Conv1D" and hasattr(module, "nf") and hasattr(
        module, "nx")


def _is_linear(module):
    """Whether it is of a subclass of nn.Linear that computes the same. PyTorch's own is a part of
    MultiheadAttention, which does not call it."""
    cls = get_class(module)
    return not cls.__module__.startswith("torch.nn.") and computes_linear(module, cls)


def is_layer(module):
    """Whether a module that is no nn.Linear itself is a layer, or several, of those that count."""
    return (get_class(module) is nn.MultiheadAttention or is_conv1d(module)
            or _is_experts(module) or _is_linear(module))


def is_watched(module):
    """Whether a module may multiply with parameters of its own, or computes its layers without
    calling them."""
    cls = get_class(module)
    if cls in (nn.TransformerEncoderLayer, nn.TransformerEncoder):
        return True
    if cls.__module__.startswith("torch.nn."):
        return False
    return any(map(products.has_matrix, get_parameters(module).values()))


def get_parameters(module):
    """Parameters that are the module's own, or its projections', by name."""
    found = {name: value for name, value in module._parameters.items() if value is not None}
    if isinstance(module, nn.MultiheadAttention):
        found["out_proj.weight"] = module.out_proj.weight
    return found


class _Converted:
    """What a class of modules has besides its own."""

    def _attach(self):
        """Parameters may be others since."""
        for name, parameter in get_parameters(self).items():
            product = self._fp8_products.get(name)
            if product is not None and not product.is_of(parameter):
                product.attach(parameter)

    def __reduce_ex__(self, protocol):
        return _make_empty, (type(self)._fp8_class, self._fp8_form), self.__dict__

    def __setstate__(self, state):
        super().__setstate__({**state, "_fp8_attention": share(state.get("_fp8_attention"))})
        self._attach()

    def __deepcopy__(self, memo):
        made = _make_empty(type(self)._fp8_class, self._fp8_form)
        memo[id(self)] = made
        made.__setstate__({key: copy.deepcopy(value, memo) for key, value in self.__dict__.items()})
        return made

    def _save_to_state_dict(self, destination, prefix, keep_vars):
        super()._save_to_state_dict(destination, prefix, keep_vars)
        for name, product in self._fp8_products.items():
            for part, each in {"": product, **product.parts}.items():
                for label, data in each.get_saved().items():
                    key = saved.make_key(name, part, "" if label == each.recipe else label)
                    destination[prefix + key] = saved.write(data)

    def _load_from_state_dict(self, state_dict, prefix, *args):
        own, loaded = {}, {}
        attention_scales.drop_saved(self, state_dict, prefix)
        for key in [key for key in state_dict if key.startswith(prefix)]:
            for name, product in self._fp8_products.items():
                found = saved.parse_key(key[len(prefix):], name)
                label = found and (found[1] or product.recipe)
                if label:
                    own[key] = state_dict.pop(key)
                    each = product.get_part(found[0]) if found[0] else product
                    each.set_saved(label, saved.read(key, own[key]))
                    loaded.setdefault(each, set()).add(label)
                    break
        for name, product in self._fp8_products.items():
            if prefix + name in state_dict:  # Without a state nothing had been computed with it.
                for each in (product, *product.parts.values()):
                    each.drop_saved(loaded.get(each, ()))
        super()._load_from_state_dict(state_dict, prefix, *args)
        self._attach()
        state_dict.update(own)


class _Mode(Mode):
    """The mode of a forward: parameters that were converted for `autocast` have its recipe. `scales` is the number of the
    module's AttentionScales, or -1."""

    def __init__(self, attention, scales):
        super().__init__()
        self._attention, self._scales, self._calls = get_shared(attention), scales, 0
        # A forward that is repeated keeps what the first one had; one that may be is at a place.
        self._kept = self.place = None

    def get_recipe(self):
        return autocast.current if self._kept is None else self._kept[0]

    def get_attention(self):
        return (self._attention or autocast.attention) if self._kept is None else self._kept[1]

    def begin_call(self):
        if self.place is not None and not torch.compiler.is_compiling():
            self.place.keep(functools.partial(_repeat, (self.get_recipe(), self.get_attention()), self._scales, self._calls))

    def find_unit(self, settings):
        if self._scales < 0 or settings.recipe is None:
            return -1
        self._calls += 1
        return attention_scales.find_unit(self._scales, settings.recipe, self._calls - 1)


def _repeat(kept, scales, calls):
    """A mode as it was behind so many calls of attention."""
    mode = _Mode(None, scales)
    mode._kept, mode._calls = kept, calls
    return mode


def _run_grouped(module, *arguments, **keywords):
    """Experts by grouped products, in place of a loop, or of a copy of a matrix for each token."""
    from transformers.integrations.moe import ALL_EXPERTS_FUNCTIONS
    return ALL_EXPERTS_FUNCTIONS["grouped_mm"](module, *arguments, **keywords)


def _run_linear(module, *arguments, **keywords):
    """What a forward spells with a transpose, of which Dynamo does not always tell modes."""
    x = arguments[0] if len(arguments) == 1 and not keywords else None
    if x is None or x.dtype != module.weight.dtype and not torch.is_autocast_enabled(x.device.type):
        return get_class(module).forward(module, *arguments, **keywords)
    return F.linear(x, module.weight, module.bias)


# What a converted module computes in place of its forward.
_FORMS = {"experts": _run_grouped, "linear": _run_linear}


def _find_form(module):
    if _is_experts(module):
        return "experts"
    return "linear" if _is_linear(module) else ""


def _make_class(cls, form=""):
    """A class of the same name, within whose forward products are found."""
    if (cls, form) in _classes:
        return _classes[cls, form]
    run = cls.forward
    compute = _FORMS.get(form, run)

    @functools.wraps(run)
    def forward(self, *arguments, **keywords):
        recipe = self._fp8_recipe or autocast.current
        if recipe is None:
            return run(self, *arguments, **keywords)
        if torch.compiler.is_dynamo_compiling() and torch.compiler.is_exporting():
            raise UnsupportedError("expected torch.export with strict=False of modules with parameters of their own: "
                                   "its strict way drops what finds their products, and FP8 with it")
        scales = self._modules.get(attention_scales.CHILD)
        mode = _Mode(self._fp8_attention, -1 if scales is None else scales.number)
        if not torch.compiler.is_compiling():
            self._attach()
            mode.place = checkpointed.Place(forward.__code__)
        with mode:
            return compute(self, *arguments, **keywords)

    made = type(cls.__name__, (_Converted, cls), {
        "__module__": cls.__module__, "__qualname__": cls.__qualname__, "__doc__": cls.__doc__,
        "_fp8_class": cls, "_fp8_form": form, "forward": forward})
    _classes[cls, form] = made
    return made


def _make_empty(cls, form):
    made = _make_class(cls, form)
    return made.__new__(made)


def convert(module, recipe, attention, *others):
    """Makes the products with a module's parameters those of FP8, and its attention that of what
    attention_calls.describe says, or None; `others` are of Product."""
    module.__class__ = _make_class(get_class(module), _find_form(module))
    show_dynamo()
    module._fp8_recipe, module._fp8_attention = recipe, share(attention)
    module._fp8_products = {name: products.Product(recipe, *others)
                            for name, parameter in get_parameters(module).items()
                            if products.has_matrix(parameter)}
    for name, product in module._fp8_products.items():
        product.is_asked_for = is_layer(module) and "bias" not in name
    module._attach()


def revert(module):
    """The inverse."""
    if isinstance(module, _Converted):
        module.__class__ = get_class(module)
        attention_scales.detach(module)
        del module._fp8_recipe, module._fp8_products, module._fp8_attention


def is_converted(module):
    return isinstance(module, _Converted)


def _make_name(name):
    """The name of a parameter's layer: of a weight that of its module."""
    return "" if name == "weight" else name.removesuffix(".weight")


def _find_own(model):
    """Products that converted modules have, by names of layers: parameters of modules that are
    sharded are others than those that are multiplied with."""
    return {_make_name(f"{name}.{own}".removeprefix(".")): product
            for name, module in model.named_modules() if isinstance(module, _Converted)
            for own, product in module._fp8_products.items()}


def _get_parts(name, product):
    return {name: product, **{f"{name}[{key}]": part for key, part in product.parts.items()}}


def hold_products(model):
    """Those of all parameters of a model that may have one."""
    held = {id(product): product for product in [
        *(products.hold(parameter) for parameter in model.parameters()
          if products.has_matrix(parameter)), *_find_own(model).values()]}
    return [each for product in held.values() for each in (product, *product.parts.values())]


def get_products(model):
    """The Products of a model's parameters by name, of those that compute in FP8, or might."""
    found, own = {}, _find_own(model)
    for name, parameter in model.named_parameters():
        name = _make_name(name)
        product = products.get(parameter) or own.get(name)
        if product is not None and not product.left:
            found.update({key: each for key, each in _get_parts(name, product).items()
                          if each.is_asked_for or each.units or each.notes})
    return found
