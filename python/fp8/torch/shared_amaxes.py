"""Scales of activations and gradients that are those of all ranks' rows together."""

import itertools
from collections import namedtuple

import torch

from fp8 import _core
from fp8.errors import ArgumentError
from fp8.torch import attention_scales, collectives, modules, shard_programs, steps
from fp8.torch.coded_results import CodedResult
from fp8.torch.gathered import is_gathered
from fp8.torch.linear_ops import Unit
from fp8.torch.linear_programs import get_programs

# What codes of a tensor were made with, [1, 1] each; the amax where a step is to have it, else None.
Scale = namedtuple("Scale", "amax scale inverse")
# The amax of a tensor, however many rows it has.
_WHOLE = (None, None)
# The numbers that functions have among prepared calls.
_KINDS = {(name, operand): number for number, (name, operand) in enumerate(itertools.product(
    ("measure", "scale"), ("activation", "weight", "gradient")))}


def share_amaxes(model, group=None):
    """Makes the amaxes of activations and gradients the maximum over the ranks of a group, of
    torch.distributed (None: the default one), so that scales are those of one process that has all
    rows. Returns the model.

    Under `current` that is an all-reduce of one number for each layer in the forward, and one in
    the backward. Under `delayed` it is for the calls before the first `end_step(model, group)`, which
    reduces those of all later ones at once. Other recipes scale smaller parts, and stay as they
    are. It goes before the first call, on all ranks at once. Raises MismatchError where they have other layers or recipes.
    """
    if not torch.distributed.is_initialized():
        raise ArgumentError("expected torch.distributed to be initialized, but it is not")
    # Before a rank waits for an amax that another one does not send.
    steps.check_ranks([f"{name}: {layer.recipe}" for name, layer in modules.get_layers(model).items()], group)
    for layer in model.modules():
        if isinstance(layer, attention_scales.AttentionScales):
            layer.share_amaxes(group or torch.distributed.group.WORLD)
        if isinstance(layer, modules.Linear) and has_shared(layer.recipe):
            layer.share_amaxes(group or torch.distributed.group.WORLD)
    return model


def has_shared(recipe):
    """Whether a recipe's text has amaxes of whole tensors that ranks share."""
    return (recipe or "").partition(",")[0] in ("current", "delayed")


def make_unit(recipe, target, options, groups, parallel, *others):
    """A Unit of one of these recipes, whose amaxes are the maximum over groups by operand; `parallel`
    is the one of them that has parts of the weight, or None."""
    kind = SharedCurrent if recipe.partition(",")[0] == "current" else SharedDelayed
    return kind(recipe, target, options, groups, parallel, *others)


class _Shared(Unit):
    """A Unit that gives its state scales before calls."""

    # Whether amaxes of a step say something to the next one.
    has_steps = True
    # Its scales are set before a call, for what that computes.
    shares_codes = False

    def __init__(self, recipe, programs, groups, parallel, *others):
        super().__init__(programs, *others)
        self.recipe, self.groups, self.parallel = recipe, groups, parallel
        # Whether the state has x's scale already: that of codes which were gathered.
        self.has_scale = False
        # Functions that measure tensors and make scales, and the Codes of operands.
        self._given, self._codes = _core.PreparedCalls(), {}

    def find_shard(self, tensor, operand):
        if operand not in self._codes:
            self._codes[operand] = shard_programs.find_codes(self.recipe, operand)
        tensor = tensor.widen() if type(tensor) is CodedResult else tensor
        return shard_programs.Shard(self._codes[operand], tensor.detach(), 0, tensor.shape[0], self.programs.target)

    def measure(self, tensor, operand, others=()):
        """The amax of a tensor of all ranks, [1, 1], and its Shard."""
        shard = self.find_shard(tensor, operand)
        amax = self._measure(shard, operand)
        for group in {*self.groups.get(operand, ()), *others}:
            collectives.reduce_max(amax, group)
        return amax, shard

    def _measure(self, shard, operand):
        # No rows have no amax.
        return self._run(shard, "measure", operand, shard.data)[0] if shard.data.shape[0] else shard.measure(_WHOLE)

    def _run(self, shard, name, operand, value):
        """The results of one of a Shard's functions of one value."""
        kind = _KINDS[name, operand]
        found = self._given.run(kind, [value], False)
        if found is None:
            function = shard.find_function(_WHOLE, name)
            found = function(value)
            found = list(found) if isinstance(found, tuple) else [found]
            function.prepare(self._given, kind, [value], [0], None)
        return found

    def find_slots(self, operand):
        return [(place, slot) for place, slot in enumerate(self.state.slots.values())
                if slot.operand == operand]

    def find_places(self, operand):
        # Names of slots stay, and asking a GPU's state for them waits for it.
        if getattr(self, "_places_of", None) is not self.state:
            self._places, self._places_of = {}, self.state
        if operand not in self._places:
            self._places[operand] = self.find_slots(operand)
        return self._places[operand]

    def forward(self, x, weight, bias, saves=False):
        if self.state is None:
            self.make_state(weight.shape, weight.dtype, weight.device, bias is not None, x.shape[0])
        # Codes have a scale.
        is_coded = type(x) is CodedResult
        tensors = [] if self.has_scale or is_coded else [(x, "activation")]
        if not is_gathered(weight):
            tensors.append((weight, "weight"))
        self.give_scales("coded" if is_coded else "train" if saves else "forward", tensors)
        self.has_scale = False
        return super().forward(x, weight, bias, saves)

    def backward(self, dy, saved, weight, has_bias, needs_x, needs_weight):
        name = "backward" if needs_x and needs_weight else "dgrad" if needs_x else "wgrad"
        self.give_scales(name, [(dy, "gradient")])
        results, _ = self.run_backward(name, dy, saved, weight, has_bias, False)
        if self.steps:
            if self.parallel is not None and self.state is not None and self.has_steps:
                steps.reduce_amaxes([self.state], self.parallel)
            self.end_step()
        return results

    def give_scales(self, name, tensors):
        """Gives the state scales of what a function is called with: pairs of a tensor and its operand."""
        for tensor, operand in tensors:
            self.set_scales(tensor, operand)

    def quantize_part(self, x, group):
        """Codes of this rank's rows of x and their Scale, which is that of all rows in a group; the next
        forward is of these rows. There has to be a state."""
        amax, shard = self.set_scales(x, "activation", {group})
        place, _ = self.find_places("activation")[0]
        amaxes, *rows = steps.get_rows(self.state, x.device)
        scale = Scale(amax, *(row[place].clone().view(1, 1) for row in rows))
        self._record(amaxes, place, scale)
        return shard.quantize(_WHOLE, scale.scale, scale.inverse, x.shape[0]), scale

    def take_part(self, scale, device):
        """The same for rows that another layer has quantized, with its Scale."""
        place, _ = self.find_places("activation")[0]
        amaxes, *rows = steps.get_rows(self.state, device)
        for row, value in zip(rows, scale[1:]):
            row[place:place + 1].copy_(value.view(1))
        self._record(amaxes, place, scale)

    def _record(self, amaxes, place, scale):
        if scale.amax is not None:
            # What a forward measures are values of codes, none above the largest of these.
            amaxes[place:place + 1].copy_(torch.maximum(amaxes[place], scale.amax.view(())))
        self.has_scale = True


class SharedCurrent(_Shared):
    """Under `current`: programs of `delayed`, whose scales are those of the present amaxes."""

    has_steps = False

    def __init__(self, recipe, target, options, *others):
        super().__init__(recipe, get_programs(shard_programs.make_given(recipe), target, options),
                         *others)
        # What the weight was when its scale was given ahead of calls, and what it is.
        self._given_key, self.weight_key = None, None
        # Where the scales of operands and their inverses are in the state, and where its rows were.
        self._views, self._addresses = {}, None

    def set_saved(self, saved):
        super().set_saved(saved)
        self._given_key = None

    def set_scales(self, tensor, operand, others=()):
        if operand == "weight" and self._given_key is not None and self._given_key == self._make_key(tensor.dtype):
            return None
        amax, shard = self.measure(tensor, operand, others)
        self._write(operand, shard, amax)
        return None, shard

    def quantize_part(self, x, group):
        amax, shard = self.measure(x, "activation", {group})
        scale, inverse = self._write("activation", shard, amax)
        self.has_scale = True
        return shard.quantize(_WHOLE, scale, inverse, x.shape[0]), Scale(None, scale, inverse)

    def take_part(self, scale, device):
        self._copy("activation", list(scale[1:]), device)
        self.has_scale = True

    def _write(self, operand, shard, amax):
        both = self._run(shard, "scale", operand, amax)
        self._copy(operand, both, amax.device)
        return both

    def _copy(self, operand, both, device):
        views = self._find_views(operand, device)
        torch._foreach_copy_(views, both * (len(views) // 2))

    def _find_views(self, operand, device):
        """Memory of an operand's scales and their inverses, [1, 1] each, in turn."""
        if device.type == "cuda":
            self.state.set_device(device.index)
        scales, inverses, count, index = self.state.get_scale_rows(steps.get_stream(self.state))
        if self._addresses != (scales, inverses):
            # Whoever asks a GPU's state for numbers takes it to the host: it comes back to other memory.
            self._views, self._addresses = {}, (scales, inverses)
        if operand not in self._views:
            rows = [steps.make_row(address, count, index) for address in (scales, inverses)]
            self._views[operand] = [row[place:place + 1].view(1, 1) for place, _ in self.find_places(operand) for row in rows]
        return self._views[operand]

    def _make_key(self, dtype):
        return None if self.weight_key is None else (*self.weight_key, dtype, self.state)

    def find_weight(self, weight):
        """The Shard of a weight, as calls have it, whose scale can be given ahead of these; None where none was called."""
        if self.state is None or self.dtype is None:
            return None
        return self.find_shard(weight.to(self.dtype), "weight")

    def give_weight(self, shard, amax, key):
        """Gives the state the scale of a weight, which calls then take while it is what the key says."""
        self._write("weight", shard, amax)
        self.weight_key = key
        self._given_key = self._make_key(self.dtype)

    def end_step(self):
        """There is none: all scales are of the present tensors."""
        self._weight = None

    def get_saved(self):
        return None


class SharedDelayed(_Shared):
    """Under `delayed`, whose first scales are those of the present amaxes."""

    def __init__(self, recipe, target, options, *others):
        super().__init__(recipe, get_programs(recipe, target, options), *others)
        # Functions whose slots all have scales of a step before, and those that are called in this one.
        self._known, self._called = set(), set()

    def set_saved(self, saved):
        super().set_saved(saved)
        self._known, self._called = set(), set()

    def end_step(self):
        # What a step has not recorded is nothing that its functions take.
        self._known, self._called = self._known | self._called, set()
        super().end_step()

    def give_scales(self, name, tensors):
        # Asking a GPU's state waits for it. All ranks ask the same, since their states are equal.
        if name in self._known:
            return
        has_all = [self._set_first_scales(tensor, operand) for tensor, operand in tensors]
        (self._known if all(has_all) else self._called).add(name)

    def set_scales(self, tensor, operand, others=()):
        if "part" not in self._known:
            has_all = self._set_first_scales(tensor, operand, others)
            (self._known if has_all else self._called).add("part")
        shard = self.find_shard(tensor, operand)
        return self._measure(shard, operand), shard

    def _set_first_scales(self, tensor, operand, others=()):
        """Whether there is nothing to set."""
        if not shard_programs.begins_with_current(self.recipe):
            return True
        slots = [slot for _, slot in self.find_slots(operand) if slot.recorded == 0]
        if not slots:
            return True
        amax, shard = self.measure(tensor, operand, others)
        scale = shard_programs.make_first_scale(shard.codes, self.recipe, amax.item())
        for slot in slots:
            self.state.set_scale(slot.name, scale)
        return False
