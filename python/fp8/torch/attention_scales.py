"""Scales of attention that follow from earlier steps, or are given: what a module keeps for its calls."""

import copy
import functools
import itertools
import json
import math
import types
import weakref

import safetensors
import torch
from torch import nn

from fp8.compiler import get_default_target
from fp8.errors import ArgumentError
from fp8.recipes import Recipe, get_attention_text, get_text, write_transforms
from fp8.torch import attention_programs, attention_ready, attention_transforms, linear_ops, saved
from fp8.torch.coded_results import CodedResult

_numbers = itertools.count()
_scales = weakref.WeakValueDictionary()
CHILD = "fp8_attention"
# What the text of a recipe ends with whose results are codes; it is no key of the compiler's.
_CODES = "fp8_mha=true"
SLOTS = "q", "k", "v"
_RESULT = "o"


def _read(text):
    name, *entries = text.split(",")
    return name, dict(entry.split("=", 1) for entry in entries)


def find_format(text):
    """The format of a recipe's codes of query, key and value, with what goes before them."""
    options = _read(text)[1]
    return attention_transforms.join("e5m2" if options.get("format") == "e5m2" else "e4m3",
                                     *(options.get(name) == "true" for name in attention_transforms.NAMES),
                                     int(options["block"]) if "block" in options else None)


def find_accumulate(text):
    return "fast" if _read(text)[1].get("accumulate", "").startswith("fast") else None


def find_text(recipe):
    """The text of a recipe's attention, or None: get_attention_text, and whether results are codes, too."""
    text = get_attention_text(recipe)
    return f"{text},{_CODES}" if text and getattr(recipe, "fp8_mha", False) and has_scales(text) else text


def has_scales(text):
    """Whether scales are others than those of the present numbers."""
    return _read(text)[0] in ("delayed", "static")


def _write_attribute(text):
    """A recipe's text as an attribute."""
    name, options = _read(text)
    written = (f"{key} = {json.dumps(value) if key == 'state' else value.replace('-', '_', value[1:].count('-'))}"
               for key, value in options.items())
    return f"#fp8.{name}<{', '.join(written)}>"


@functools.lru_cache(maxsize=64)
def _list_slots(path):
    """The names of slots of a file of states."""
    try:
        with safetensors.safe_open(path, "numpy") as file:
            return {slot["name"] for slot in json.loads(file.metadata()["fp8.scaling_state.manifest"])["slots"]}
    except Exception:  # The compiler says what is wrong with it.
        return set()


def _find_prefix(text, name):
    """What names of slots of a file of states begin with: of a program of a model the name of this attention."""
    prefix = f"{name}." if name else ""
    return prefix if f"{prefix}q" in _list_slots(_read(text)[1].get("state", "")) else ""


class AttentionUnit(linear_ops.Unit):
    """What has the scales of one call of attention under a recipe. Each backward ends a step, unless `steps` is off."""

    def __init__(self, recipe, name="", data=None):
        # Graphs of those that give codes have other operations.
        super().__init__(None, data, told=("attention", recipe))
        self.gives_codes = recipe.endswith("," + _CODES)
        recipe = attention_transforms.drop(recipe.removesuffix("," + _CODES))
        self.recipe, self.name, self.is_frozen, self.groups = recipe, name, False, set()
        kind, options = _read(recipe)
        self._prefix = _find_prefix(recipe, name) if kind == "static" else ""
        # A file without the scale of results is one of attention with numbers for a result.
        self.gives_codes &= kind != "static" or f"{self._prefix}{_RESULT}" in _list_slots(options.get("state", ""))
        self._attribute = _write_attribute(recipe)
        # Whether operands, and the result, may have no scales yet.
        self._begins = self._begins_result = True
        self._forget()

    def _forget(self):
        """What is prepared is of a state."""
        self.ready, self.calls = attention_ready.Functions(), attention_ready.Calls()

    @property
    def has_steps(self):
        """Whether what calls measure says something to later ones."""
        return not self.is_frozen

    @property
    def program(self):
        """The one that it had first, or None."""
        return next(iter(self.used.values()), None)

    def run(self, shape, target, tensors, codes=False, told=None):
        """The results of a program of that shape. With `codes` the first one may be a CodedResult. `told` is what such calls
        are known by later."""
        is_coded = codes and self.gives_codes and shape.element != "f32"
        program = self._get_program(shape, target, is_coded)
        function = program.functions["attention"]
        shares = function.takes_state and self.groups and self.has_steps
        if shares and self._begins:
            made = attention_transforms.apply(*tensors[:2], shape.transforms, shape.heads_first)
            self._set_first_scales(SLOTS, [*made, tensors[2]])
        self._begins = False
        if shares and is_coded and self._begins_result:
            self._set_first_scale_of_result(shape, target, tensors)
        results = function(*tensors, state=self.state if function.takes_state else None)
        self.ready.add(told, function, tensors, self.state if function.takes_state else None)
        return self.finish(results, tensors[0].dtype, codes)

    def finish(self, results, dtype, codes):
        """Results of a program as `run` gives them."""
        if not codes or not self.gives_codes or dtype == torch.float32:
            return results
        numbers, *results, factor = results
        return [CodedResult(numbers, factor, dtype), *results]

    def _get_program(self, shape, target, is_coded=False):
        result = ("codes" if is_coded else "slot") if self.gives_codes else None
        program = attention_programs.get_program(
            shape._replace(recipe=self._attribute, prefix=self._prefix, result=result), target)
        self.used[id(program)] = program
        if self.state is None and program.functions["attention"].takes_state:
            self._make_state(program)
            if self.is_frozen:
                self.state.freeze()
        return program

    def _set_first_scales(self, names, tensors):
        """Those of the largest numbers of all ranks, where a slot has no history."""
        from fp8.torch import collectives, shard_programs
        if not shard_programs.begins_with_current(self.recipe):
            return
        amaxes = torch.stack([x.detach().abs().amax().float() if x.numel() else x.new_zeros((), dtype=torch.float32)
                              for x in tensors])
        for group in self.groups:
            collectives.reduce_max(amaxes, group)
        codes = types.SimpleNamespace(format=find_format(self.recipe))
        for name, amax in zip(names, amaxes.tolist()):
            if self.state.slots[name].recorded == 0:
                self.state.set_scale(name, shard_programs.make_first_scale(codes, self.recipe, amax))

    def _set_first_scale_of_result(self, shape, target, tensors):
        """The same of the result, which is computed as numbers for that, once."""
        self._begins_result = False
        if self.state.slots[_RESULT].recorded == 0:
            function = self._get_program(shape, target).functions["attention"]
            self._set_first_scales([_RESULT], [function(*tensors, state=self.state)[0]])

    def prepare(self, device):
        """Makes the state, if there is none and the recipe has one: slots are the same, whatever calls are of."""
        shape = attention_programs.Shape("bf16", 1, 1, 32, 32, True, 1.0, format=find_format(self.recipe))
        self._get_program(shape, get_default_target() if device.type == "cuda" else "cpu")

    def set_saved(self, saved):
        super().set_saved(saved)
        self._begins = self._begins_result = True
        self._forget()

    def freeze(self, is_on):
        self.is_frozen = is_on
        if self.state is not None:
            self.state.freeze() if is_on else self.state.unfreeze()

    def end_step(self):
        if self.has_steps:
            super().end_step()


@functools.lru_cache(maxsize=64)
def _make_fresh(recipe):
    """The state of attention that nothing was computed with, of delayed scaling."""
    unit = AttentionUnit(recipe)
    unit.prepare(torch.device("cpu"))
    return unit.get_saved()


class AttentionScales(nn.Module):
    """The scales of a module's attention, for recipes whose scales do not follow from the present numbers. It is a
    module without parameters, so that `state_dict` has its histories, as `fp8_state`:

        self.scales = fp8.torch.AttentionScales(fp8.DelayedScaling())
        y = fp8.torch.scaled_dot_product_attention(q, k, v, scales=self.scales)

    Each backward ends a step, unless fp8.torch.accumulated says otherwise. `convert_to_fp8_training` gives one to each
    module that calls attention, as `fp8_attention`, if its recipe has fp8_dpa. Calls of one forward have scales of
    their own.

    - recipe: DelayedScaling or StaticScaling, or its text;
    - name: of the module, by which StaticScaling finds slots in the file of a program of a whole model.
    """

    slower = notes = ()

    def __init__(self, recipe, name=""):
        super().__init__()
        text = None if recipe is None else find_text(recipe) or get_text(recipe)
        if isinstance(recipe, Recipe) and find_text(recipe) is None:
            text = write_transforms(text, recipe)
        if text is None or not has_scales(text):
            raise ArgumentError(f"expected a recipe with scales of other steps, delayed or static, but got '{text}'")
        self.recipe, self.name, self.is_frozen = text, name, False
        self._units, self._saved, self._groups, self._steps = {}, {}, set(), True
        self._count()

    def _count(self):
        self.number = next(_numbers)
        _scales[self.number] = self

    def forward(self, *_, **__):
        raise ArgumentError("expected AttentionScales to be given to scaled_dot_product_attention, but it was called")

    def get_unit(self, recipe, call=0):
        """What has the scales of a call under a recipe."""
        key = (f"[{call}]" if call else "") + ("" if recipe == self.recipe else recipe)
        if key not in self._units:
            unit = AttentionUnit(recipe, self.name, self._saved.pop(key, None))
            unit.steps, unit.groups = self._steps, self._groups
            unit.is_frozen = self.is_frozen
            self._units[key] = unit
        return self._units[key]

    def set_steps(self, is_on):
        """Whether each backward ends a step, also of what later calls make."""
        self._steps = is_on
        for unit in self._units.values():
            unit.steps = is_on

    @property
    def units(self):
        """What has computed it, by recipe and call."""
        return dict(self._units)

    @property
    def remarks(self):
        return ()

    @property
    def scales(self):
        """The slots of query, key and value of each call, and of a result in codes, by its key in `units`."""
        return {key: unit.state.slots for key, unit in self._units.items() if unit.state is not None}

    def share_amaxes(self, group):
        """Before the first step ends, scales follow from the largest numbers of all ranks of a group."""
        self._groups.add(group)

    def freeze(self, is_on=True):
        """From now on scales stay what they are: those of training, or of calibration. Raises ArgumentError if there
        are none."""
        known = any(unit.state is not None or unit._saved for unit in self._units.values()) or self._saved
        if is_on and not known and _read(self.recipe or "")[0] != "static":
            raise ArgumentError("expected scales to keep, but nothing was computed or loaded; set_scales takes numbers")
        self.is_frozen = is_on
        for unit in self._units.values():
            unit.freeze(is_on)

    def set_scales(self, q_scale, k_scale, v_scale, device="cpu", *, o_scale=None):
        """Gives numbers, as checkpoints have them: codes times them are values. They stay until `freeze(False)`. A result
        in codes, by fp8_mha, has V's scale where `o_scale` is None: without dropout none of its numbers is above V's
        largest."""
        if self.recipe is None or _read(self.recipe)[0] != "delayed":
            raise ArgumentError(f"expected scales to be set of delayed scaling, but got '{self.recipe}'")
        unit = self.get_unit(self.recipe)
        if o_scale is not None and not unit.gives_codes:
            raise ArgumentError("expected no o_scale, but of a recipe with fp8_mha, whose results are codes")
        given = {**dict(zip(SLOTS, (q_scale, k_scale, v_scale))), _RESULT: v_scale if o_scale is None else o_scale}
        scales = {name: float(scale) for name, scale in given.items() if name != _RESULT or unit.gives_codes}
        if not all(0 < scale < math.inf and 0 < 1 / scale < math.inf for scale in scales.values()):
            written = ", ".join(map(str, scales.values()))
            raise ArgumentError(f"expected scales to be finite and positive, but got {written}")
        unit.prepare(torch.device(device))
        for slot, scale in scales.items():
            unit.state.set_scale(slot, 1 / scale)
        self.freeze()

    def prepare(self, device):
        """Makes the state, which else the first call makes."""
        if self.recipe is not None:
            self.get_unit(self.recipe).prepare(device)

    @property
    def fp8_state(self):
        """What `state_dict()` has of the state, which torch.distributed.checkpoint looks for."""
        data = self._list_saved().get("")
        if data is None:
            raise AttributeError("expected attention with a scaling state, but got one without")
        return saved.write(data)

    def _get_saved(self):
        return {**self._saved, **{key: data for key, unit in self._units.items() if (data := unit.get_saved())}}

    def _list_saved(self):
        """The same, with a state where nothing was computed: checkpoints have one of each module, called or not."""
        data = self._get_saved()
        if _read(self.recipe)[0] == "delayed" and data.get("") is None:
            data[""] = _make_fresh(self.recipe)
        return data

    def _save_to_state_dict(self, destination, prefix, keep_vars):
        super()._save_to_state_dict(destination, prefix, keep_vars)
        for key, data in self._list_saved().items():
            destination[f"{prefix}{saved.STATE}{key and '.'}{key}"] = saved.write(data)

    def _load_from_state_dict(self, state_dict, prefix, *args):
        begin = prefix + saved.STATE
        own = {key: state_dict.pop(key) for key in list(state_dict) if key == begin or key.startswith(begin + ".")}
        super()._load_from_state_dict(state_dict, prefix, *args)
        for key, value in own.items():
            self._set_saved(key[len(begin) + 1:], saved.read(key, value))
        state_dict.update(own)

    def drop_saved(self):
        for name in {*self._units, *self._saved}:
            self._set_saved(name, None)

    def _set_saved(self, name, data):
        if name in self._units:
            self._units[name].set_saved(data)
        elif data is None:
            self._saved.pop(name, None)
        else:
            self._saved[name] = data

    def __getstate__(self):
        return {**self.__dict__, "_units": {}, "_saved": self._get_saved(), "_groups": set()}

    def __setstate__(self, state):
        super().__setstate__(state)
        self._count()

    def __deepcopy__(self, memo):
        made = type(self).__new__(type(self))
        memo[id(self)] = made
        made.__setstate__(copy.deepcopy(self.__getstate__(), memo))
        made._groups = set(self._groups)
        return made

    def extra_repr(self):
        return f"recipe={self.recipe}"


@torch.compiler.assume_constant_result
def find_unit(number, recipe, call=0):
    """The number of what has the scales of a module's call, counted from its forward's first; Dynamo asks once."""
    return _scales[number].get_unit(recipe, call).number


def find(module):
    """The AttentionScales of a module, or None."""
    return module._modules.get(CHILD)


def drop_saved(module, state_dict, prefix):
    """Lets go of a module's histories, where a checkpoint has all weights of it and of its layers, and not of adapters alone:
    without a state nothing had been computed with them. Frozen scales were given, or kept, and stay."""
    scales = find(module)
    if scales is None or scales.is_frozen:
        return
    weights = [name for name, _ in module.named_parameters() if name.endswith("weight") and name.count(".") < 2]
    if weights and all(prefix + name in state_dict for name in weights):
        scales.drop_saved()


def find_all(model):
    """Those of a model by name."""
    return {name: module for name, module in model.named_modules() if isinstance(module, AttentionScales)}


# Modules within a step of several calls: of it are scales that a call makes, too.
accumulating = weakref.WeakSet()


def make(module, recipe, name=""):
    """Gives a module scales of a recipe's text."""
    scales = AttentionScales(recipe, name)
    scales.set_steps(module not in accumulating)
    module.add_module(CHILD, scales)
    return scales


def accumulate(model, is_on):
    """Says to modules, with what their calls have made or will make, whether a step is of several calls."""
    for module in model.modules():
        if is_on:
            accumulating.add(module)
        else:
            accumulating.discard(module)
            if find(module) is not None:
                find(module).set_steps(True)


def attach(module, recipe, name=""):
    """Gives a module scales of a recipe's attention, where these are of other steps; takes others away."""
    detach(module)
    text = find_text(recipe)
    if text is not None and has_scales(text):
        make(module, text, name)


def detach(module):
    module._modules.pop(CHILD, None)
