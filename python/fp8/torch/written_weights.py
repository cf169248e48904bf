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


class Holder(NamedTuple):
    """The state of a weight's scale, as a Part has one."""

    name: str
    state: object


class WrittenWeights:
    """The weights of a model that a Backend compiles, of which an optimizer writes codes."""

    def __init__(self, model, recipe, target, options):
        """Raises ArgumentError for a recipe whose weights no step writes."""
        if not isinstance(recipe, str) or shard_programs.find_codes(recipe) is None or "recipe_file" in options:
            raise ArgumentError("expected a Backend with one recipe of delayed, current, rowwise or block, but got "
                                f"{'a recipe file' if 'recipe_file' in options else recipe}")
        # Parts of a forward and of a backward take a weight's codes in the order that each multiplies.
        self._options = {key: value for key, value in options.items() if key != "transposed_codes"}
        self._model, self._recipe, self._target = model, recipe, target
        # Why others are not written, by name.
        self.left = {}
        self._optimizer, self._layers, self._places = None, {}, {}

    def attach(self, optimizer):
        """From now on the steps of this optimizer write them."""
        self._optimizer, self._places = optimizer, {}
        for layer in self._layers.values():
            optimizer._fp8_plan.take_layer(layer.weight, layer)

    def find(self, weight):
        """What programs take in place of a weight, by names as a layer's have them, or None: no step writes it."""
        name = self._find_name(weight)
        if name is None:
            return None
        layer = self._layers.get(name) or self._make(name)
        if layer is None:
            return None
        parameter, unit = layer.weight, layer._get_unit(layer.recipe)
        values = unit.held and unit.held.get(parameter)
        if values is None:  # Something else than a step has changed it.
            self._optimizer._fp8_plan.write_codes([parameter])
            values = unit.held and unit.held.get(parameter)
        return values

    def _find_name(self, weight):
        """Which parameter of the model has the memory of a tensor."""
        place = weight.data_ptr(), weight.dtype, tuple(weight.shape)
        found = self._places.get(place)
        if found is None or found[1].data_ptr() != place[0]:
            chosen = {id(each) for group in self._optimizer.param_groups for each in group["params"]}
            self._places = {(each.data_ptr(), each.dtype, tuple(each.shape)): (name, each)
                            for name, each in self._model.named_parameters() if id(each) in chosen}
            found = self._places.get(place)
        return None if found is None or found[0] in self.left else found[0]

    def _make(self, name):
        """The layer of a parameter, whose codes are written, or None."""
        names = {}
        for other, each in self._model.named_parameters(remove_duplicate=False):
            names.setdefault(id(each), []).append(other)
        parameter = self._model.get_parameter(name)
        outputs, inputs = parameter.shape
        layer = modules.Linear(inputs, outputs, False, "meta", parameter.dtype, recipe=self._recipe, target=self._target,
                               only_faster=False, **self._options)
        layer.weight = parameter
        reason = held_codes.find_reason(layer, names)
        if reason is not None:
            self.left[name] = reason
            return None
        layer._holds, layer.ends_with_optimizer = True, True
        plan, unit = self._optimizer._fp8_plan, layer._get_unit(self._recipe)
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
        values = [written.find(weight) if i in self._weights else None for i, weight in enumerate(weights)]
        if any(values[i] is None for i in self._weights):
            return None
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
