"""Codes of weights that an optimizer writes for the parts of a Backend.

A weight has a layer that is in no model: it keeps the state of the weight's scale, and the codes that steps write
(held_codes.py). Parts ask for codes of the weights that they quantize, and so each that they have has a layer.
"""

from typing import NamedTuple

import torch

import fp8
from fp8.errors import ArgumentError
from fp8.torch import held_codes, modules, shard_programs

_SIZE = 128
# Places that are remembered to be no parameter's.
_MOST_OTHERS = 4096


def _list_ids(optimizer):
    return {id(each) for group in optimizer.param_groups for each in group["params"]}


def _is_dense(parameter):
    """Whether it has memory of its own that a graph may read: DTensors and codes have none, and tensors in place of parameters
    (torch.func.functional_call) are no optimizer's."""
    return isinstance(parameter, torch.nn.Parameter) and type(parameter.data) is torch.Tensor


def _describe(parameter):
    """What a layer is made of."""
    return parameter.dtype, parameter.device, parameter.shape


class Holder(NamedTuple):
    """The state of a weight's scale, as a Part has one."""

    name: str
    state: object


class WrittenWeights:
    """The weights of a model that a Backend compiles, of which an optimizer writes codes."""

    def __init__(self, model, recipe, target, options, report):
        """`report` is given lines on weights that no step writes. Raises ArgumentError for a recipe of which none is."""
        if not isinstance(recipe, str) or shard_programs.find_codes(recipe) is None or "recipe_file" in options:
            raise ArgumentError("expected a Backend with one recipe of delayed, current, rowwise or block, but got "
                                f"{'a recipe file' if 'recipe_file' in options else recipe}")
        # Parts of a forward and of a backward take a weight's codes in the order that each multiplies.
        self._options = {key: value for key, value in options.items() if key != "transposed_codes"}
        self._model, self._recipe, self._target = model, recipe, target
        # Parameters and why they are not written, or None, by name, and what is told of it.
        self._reasons, self._report = {}, report
        self._optimizers, self._layers = [], {}
        # Parameters by their memory, and memory that is none's, of so many parameters that optimizers had.
        self._places, self._others, self._count = {}, set(), None

    @property
    def left(self):
        """Why others are not written, by name."""
        return {name: reason for name, (_, reason) in self._reasons.items() if reason}

    def check_model(self, model):
        """Raises ArgumentError for another one than the first."""
        if {id(each) for each in model.parameters()} != {id(each) for each in self._model.parameters()}:
            raise ArgumentError("expected the model that fuse_optimizer was given with this Backend before, but got another one")

    def attach(self, optimizer):
        """From now on the steps of this optimizer write those that it has; of several the last one."""
        own = _list_ids(optimizer)
        # One whose weights are all another's now is not kept alive.
        self._optimizers = [each for each in self._optimizers if each is not optimizer and not _list_ids(each) <= own] + [optimizer]
        self._count = None
        for layer in self._layers.values():
            if id(layer.weight) in own:
                optimizer._fp8_plan.take_layer(layer.weight, layer)

    def find_all(self, weights):
        """What programs take in place of weights, by names as a layer's have them, or None: no step writes one of them."""
        read = [self._find_parameter(weight) for weight in weights]
        # None gets codes that nobody takes.
        if None in read or any(self._find_reason(*each) for each in read):
            return None
        found = [self._find(*each) for each in read]
        return None if any(values is None for values in found) else found

    def _find(self, name, parameter):
        layer = self._layers.get(name)
        if layer is None or layer.made_of != _describe(parameter):
            layer = self._make(name, parameter)
        elif layer.weight is not parameter:  # Its scales go on.
            layer.weight = parameter
            self._find_optimizer(parameter)._fp8_plan.take_layer(parameter, layer)
        unit = layer._get_unit(layer.recipe)
        if self._has_turned(name, layer) and unit.held is not None:
            unit.held.drop()
        values = unit.held and unit.held.get(parameter)
        if values is None:  # Something else than a step has changed it.
            self._find_optimizer(parameter)._fp8_plan.write_codes([parameter])
            values = unit.held and unit.held.get(parameter)
        return values

    def _has_turned(self, name, layer):
        """Whether the module that has a weight trains where it evaluated before, or the other way round: as Linear.train, since what
        evaluates may have written weights through `.data`."""
        is_training = self._model.get_submodule(name.rpartition(".")[0]).training
        has_turned, layer.training = layer.training != is_training, is_training
        return has_turned

    def _find_optimizer(self, parameter):
        return next((each for each in reversed(self._optimizers) if id(parameter) in _list_ids(each)), None)

    def _find_parameter(self, weight):
        """The name of the parameter of the model that has the memory of a tensor, and it, or None."""
        count = [sum(len(group["params"]) for group in each.param_groups) for each in self._optimizers]
        if count != self._count:
            self._places, self._others, self._count, self._reasons = {}, set(), count, {}
        place = weight.data_ptr(), weight.dtype, tuple(weight.shape)
        found = self._places.get(place)
        if found is not None and found[1].data_ptr() == place[0] and self._get(found[0]) is found[1]:
            return found
        if place in self._others:
            return None
        self._places = {(each.data_ptr(), each.dtype, tuple(each.shape)): (name, each)
                        for name, each in self._model.named_parameters() if _is_dense(each)}
        found = self._places.get(place)
        # What a graph computes has new memory again and again.
        if found is None and len(self._others) < _MOST_OTHERS:
            self._others.add(place)
        return found

    def _get(self, name):
        try:
            return self._model.get_parameter(name)
        except AttributeError:
            return None

    def _find_reason(self, name, parameter):
        """Why a parameter's codes are not written, or None."""
        if self._reasons.get(name, (None,))[0] is not parameter:
            self._reasons[name] = parameter, self._compute_reason(parameter)
            if self._reasons[name][1]:
                self._report(f"{name}: no step writes its codes: {self._reasons[name][1]}")
        return self._reasons[name][1]

    def _compute_reason(self, parameter):
        names = {}
        if self._find_optimizer(parameter) is None:
            return "no optimizer that fuse_optimizer was given has it"
        if parameter.ndim != 2:
            return f"it has {parameter.ndim} dimensions"
        for other, each in self._model.named_parameters(remove_duplicate=False):
            names.setdefault(id(each), []).append(other)
        return held_codes.find_reason(self._make_layer(parameter), names, held_codes.find_overlaps(self._model))

    def _make_layer(self, parameter):
        outputs, inputs = parameter.shape
        layer = modules.Linear(inputs, outputs, False, "meta", parameter.dtype, recipe=self._recipe, target=self._target,
                               only_faster=False, **self._options)
        layer.weight, layer.made_of = parameter, _describe(parameter)
        return layer

    def _make(self, name, parameter):
        """The layer of a parameter, whose codes are written."""
        layer = self._make_layer(parameter)
        layer._holds, layer.ends_with_optimizer = True, True
        plan, unit = self._find_optimizer(parameter)._fp8_plan, layer._get_unit(self._recipe)
        plan.take_layer(parameter, layer)
        if self._recipe.startswith("delayed"):
            # The slots are those of any sizes: one small program has them for all weights, which takes codes as all here do.
            unit.take_codes()
            unit.make_state((_SIZE, _SIZE), parameter.dtype, parameter.device, False, rows=_SIZE)
            # A first step has the scales of its own tensors.
            row = plan.find_held(parameter).arguments["row"]
            row.copy_(parameter.detach().abs().amax().float().view(1, 1))
            unit.end_step()
        self._layers[name] = layer
        return layer

    def list_holders(self):
        """Lists Holders of the weights that have a state."""
        units = {name: layer._get_unit(layer.recipe) for name, layer in self._layers.items()}
        return [Holder(f"written.{name}", unit.state) for name, unit in units.items() if unit.state is not None]

    def drop(self):
        """Behind a change of states: codes are written again when they are asked for."""
        for layer in self._layers.values():
            for unit in layer.units.values():
                if unit.held is not None:
                    unit.held.drop()


class Places:
    """Where the results of what quantizes a part's weights are among the codes that a step writes."""

    def __init__(self, program, function, infos):
        """`infos` of the weights, which are the function's arguments."""
        self._program, self._function = program, function
        # For each result its weight.
        self._weights = [next(i for i, info in enumerate(infos) if result.name.startswith(f"{info.name}."))
                         for result in function.results]
        self._keys = None
        self._is_known = False

    def find(self, weights, written):
        """The results, of codes that are written, or None."""
        read = sorted(set(self._weights))
        found = written.find_all([weights[i] for i in read])
        if found is None:
            return None
        values = dict(zip(read, found))
        if not self._is_known:
            self._keys, self._is_known = self._find_keys(weights, values), True
        return self._keys and [values[i][key] for i, key in zip(self._weights, self._keys)]

    def quantize(self, weights):
        """The results for other weights, whose amaxes are in no state."""
        if not self._function.takes_state:
            return self._function(*weights)
        return self._function(*weights, state=fp8.State(self._program))

    def _find_keys(self, weights, values):
        """For each result the name of what is written, or None: something is written otherwise."""
        is_square = [weight.shape[0] == weight.shape[1] for weight in weights]
        # Which way codes lie only numbers tell there: above the diagonal they are positive.
        shown = self.quantize([2 * torch.ones_like(weight).triu() - 1 if square else weight
                               for weight, square in zip(weights, is_square)]) if any(is_square) else None
        keys, is_turned = [], {}
        for place, (info, i) in enumerate(zip(self._function.results, self._weights)):
            last = info.name.rpartition(".")[2]
            kind = "codes" if last.startswith("codes") else "scale_inv"
            number = last.removeprefix(kind)
            # Codes come before their factors.
            if kind == "codes":
                is_turned[i, number] = shown[place][0, -1].float().item() < 0 if is_square[i] else (
                    tuple(info.shape) != tuple(weights[i].shape))
            key = f"weight.{kind}{'_1' * is_turned[i, number]}"
            value = values[i].get(key)
            if value is None or tuple(value.shape) != tuple(info.shape):
                return None
            keys.append(key)
        return keys
