"""What computes products with parameters that belong to no `Linear`, and how it is found."""

import functools
import itertools
import weakref

import torch
from torch import nn
from torch.utils.weak import WeakIdKeyDictionary

import fp8
from fp8.errors import UnsupportedError
from fp8.torch import grouped_ops, linear_ops, speed
from fp8.torch.faked import find_real
from fp8.torch.linear_programs import Shape, get_programs

_numbers = itertools.count()
_products = weakref.WeakValueDictionary()
# Those that no module holds, for as long as their parameters live.
_found = WeakIdKeyDictionary()
_left = weakref.WeakSet()

# How a parameter is used: x w^T, x w, or that with a matrix for each group of rows.
USES = ("linear", "transposed", "grouped", "grouped transposed")


class Product:
    """What computes the products of one parameter, as a `Linear` is of its weight.

    `left` is the reason why it is PyTorch's for good, or ""; `notes` are reasons of single
    calls. Rows of it, as one of several experts, have a Product each, `parts`, by what a name has
    behind that of the parameter.
    """

    def __init__(self, recipe=None, target="auto", cache_weights=False, only_faster=None,
                 options=(), left=""):
        self.recipe, self._target, self._options = recipe, target, options
        self._cache_weights, self.only_faster = cache_weights, only_faster
        self.left, self.notes, self.parts, self.is_asked_for = left, {}, {}, False
        self._units, self._saved, self._steps, self._slower = {}, {}, True, {}
        self._parameter = lambda: None
        self._count()

    def _count(self):
        self.number = next(_numbers)
        _products[self.number] = self

    def attach(self, parameter):
        """Makes it the Product of a parameter, which then says its number."""
        self._parameter = weakref.ref(parameter)
        parameter._fp8_number = self.number

    def is_of(self, parameter):
        return self._parameter() is parameter

    def get_part(self, key):
        if key not in self.parts:
            self.parts[key] = Product(self.recipe, self._target, self._cache_weights,
                                      self.only_faster, self._options, self.left)
            self.parts[key]._steps = self._steps
        return self.parts[key]

    def note(self, reason):
        self.notes[reason] = None

    def _get_label(self, recipe, use):
        """A key of `units`: the recipe's text, where the parameter is used in one way only."""
        other = f"{recipe} {use}"
        known = self._units.get(recipe)
        return recipe if known is None or known.use == use else other

    def get_unit(self, recipe, use):
        label = self._get_label(recipe, use)
        if label not in self._units:
            make = grouped_ops.GroupedUnit if use.startswith("grouped") else linear_ops.Unit
            # A product of groups has no codes of weights to keep.
            caches = self._cache_weights and not use.startswith("grouped")
            unit = make(get_programs(recipe, self._target, self._options),
                        self._saved.pop(label, None), caches, use.endswith("transposed"))
            unit.use, unit.steps = use, self._steps
            self._units[label] = unit
        return self._units[label]

    @property
    def units(self):
        """What has computed it, by recipe."""
        return dict(self._units)

    @property
    def remarks(self):
        return tuple({
            (label, remark.text): remark for label, unit in self._units.items()
            for program in unit.used.values() for remark in program.remarks
            if remark.function in ("forward", "backward")}.values())

    @property
    def slower(self):
        return tuple(self._slower)

    def find_reason(self, recipe, use, sizes, dtype):
        """Why a product stays in high precision, or ""."""
        if self.left:
            return self.left
        inputs, outputs = sizes[-2:] if use.endswith("transposed") else sizes[:-3:-1]
        reason = _find_reason(inputs, outputs, dtype, recipe, self._options)
        if reason:
            return reason
        reason = _find_reason(outputs, inputs, dtype, recipe, self._options)
        return f"of the gradient of x: {reason}" if reason else ""

    def asks_for_speed(self, device, use):
        """Whether calls are PyTorch's where it is expected to be faster."""
        is_on_gpu = device == "cuda" or self.only_faster and self._target.startswith("sm_")
        return self.only_faster is not False and is_on_gpu and not use.startswith("grouped")

    def note_slower(self, recipe):
        self._slower[f"few rows: high precision: expected to be slower under {recipe}"] = None

    def get_saved(self):
        """States as bytes, by what a key of a state_dict has behind the name."""
        saved = {label: unit.get_saved() for label, unit in self._units.items()}
        return {**self._saved, **{label: data for label, data in saved.items() if data}}

    def set_saved(self, label, data):
        if label in self._units:
            self._units[label].set_saved(data)
        else:
            self._saved[label] = data

    def drop_saved(self, kept):
        """Forgets states, but for those of the labels `kept`."""
        self._saved = {label: data for label, data in self._saved.items() if label in kept}
        for label, unit in self._units.items():
            if label not in kept:
                unit.set_saved(None)

    def __getstate__(self):
        return {**self.__dict__, "_units": {}, "_saved": self.get_saved(), "_parameter": None,
                "number": None}

    def __setstate__(self, state):
        self.__dict__.update(state)
        self._parameter = lambda: None
        self._count()


@functools.lru_cache(maxsize=4096)
def _find_reason(inputs, outputs, dtype, recipe, options):
    """Why a forward of such sizes is not in FP8, or "": what the compiler says of it."""
    given = {key: value for key, value in options if key != "require"}
    text = Shape(128, inputs, outputs, dtype, False).write_forward()
    program = fp8.compile(text, recipe, target="cpu", **given)
    return "; ".join(remark.reason for remark in program.remarks
                     if remark.kind == "high precision")


def get(parameter):
    """The Product of a parameter, or None."""
    product = _products.get(getattr(parameter, "_fp8_number", None))
    return product if product is not None and product.is_of(parameter) else None


def hold(parameter):
    """The Product of a parameter; if there is none, a new one for the recipes of `autocast`."""
    product = get(parameter)
    if product is None:
        _leave_others()
        product = get(parameter)
    if product is None:
        product = _found[parameter] = Product()
        product.attach(parameter)
    return product


class Left:
    """Says of a module that products with its parameters are PyTorch's, and why if a `note` has that. It is an attribute
    of the module, and so of its copies."""

    note = ""  # Pickled ones have none.

    def __init__(self, module=None, note=""):
        self.module, self.note = lambda: None, note
        if module is not None:
            self._begin(module)

    def _begin(self, module):
        self.module = weakref.ref(module)
        _left.add(self)

    def __getstate__(self):
        return self.module()

    def __setstate__(self, module):
        self._begin(module)

    def __deepcopy__(self, memo):
        return Left(memo.get(id(self.module())), self.note)


def _leave_others():
    """Parameters may have come since they were looked at last."""
    for module in [left.module() for left in list(_left)]:
        for parameter in module._parameters.values() if module is not None else ():
            if parameter is not None and has_matrix(parameter) and get(parameter) is None:
                _found[parameter] = Product(left="it was not converted")
                _found[parameter].attach(parameter)


def release(parameter):
    """Takes a parameter's Product away."""
    _found.pop(parameter, None)
    if hasattr(parameter, "_fp8_number"):
        del parameter._fp8_number


def has_matrix(parameter):
    """Whether a parameter may be what rows are multiplied with."""
    if type(parameter) is not nn.Parameter:
        return False
    # One matrix may be the one expert that a rank has; most else of this shape is added, as embeddings of places are.
    is_one = parameter.ndim == 3 and all(size > 1 and size % 16 == 0 for size in parameter.shape[1:])
    return parameter.ndim == 2 or is_one or parameter.ndim == 3 and parameter.shape[0] > 1


# Dynamo asks what follows once for a graph, with parameters as they are.

@torch.compiler.assume_constant_result
def find_number(parameter, creates):
    """The number of a parameter's Product, or -1; with `creates` a new one has one."""
    real = find_real(parameter)
    if real is None and creates and parameter.ndim in (2, 3) and torch.compiler.is_exporting():
        raise UnsupportedError("expected parameters with values in torch.export within autocast, but got a fake one; "
                               "convert_to_fp8_training(model, None) before its values are gone")
    if real is None or not has_matrix(real):
        return -1
    product = hold(real) if creates else get(real)
    if product is None:
        return -1
    parameter._fp8_number = product.number
    return product.number


@torch.compiler.assume_constant_result
def find_part(number, key):
    return _products[number].get_part(key).number


@torch.compiler.assume_constant_result
def find_recipe(number, recipe):
    """That of a Product, or of `autocast`, None if nothing is to be in FP8."""
    product = _products[number]
    return None if product.left else product.recipe or recipe


@torch.compiler.assume_constant_result
def find_unit(number, recipe, use, sizes, dtype):
    """The number of the Unit, or -1 where it is PyTorch's."""
    product = _products[number]
    reason = product.find_reason(recipe, use, sizes, dtype)
    if reason:
        product.note(reason)
        return -1
    return product.get_unit(recipe, use).number


@torch.compiler.assume_constant_result
def note(number, text, *values):
    """Notes a reason, of which values are a part."""
    product = _products[number]
    if not product.left:
        product.note(text.format(*values))


@torch.compiler.assume_constant_result
def _asks_for_speed(number, device, use):
    return _products[number].asks_for_speed(device, use)


@torch.compiler.assume_constant_result
def _note_slower(number, recipe):
    _products[number].note_slower(recipe)


def is_slower(number, recipe, use, rows, sizes, x):
    """Whether a call on a GPU is left to PyTorch, as it is expected to be faster; `sizes` are
    inputs and outputs."""
    if x.dtype == torch.float32 or not _asks_for_speed(number, x.device.type, use) or (
            speed.is_faster(recipe, rows, sizes[1], sizes[0])):
        return False
    _note_slower(number, recipe)
    return True
