"""Scales of activations and gradients that are those of all ranks' rows together."""

import torch

from fp8.errors import ArgumentError
from fp8.torch import modules, shard_programs, steps
from fp8.torch.gathered import is_gathered
from fp8.torch.linear_ops import Unit
from fp8.torch.linear_programs import get_programs

# The amax of a tensor, however many rows it has.
_WHOLE = (None, None)


def share_amaxes(model, group=None):
    """Makes the amaxes of activations and gradients the maximum over the ranks of a group, of
    torch.distributed (None: the default one), so that scales are those of one process that has all
    rows. Returns the model.

    Under `current` that is an all-reduce of one number for each layer in the forward, and one in
    the backward. Under `delayed` it is for the calls before the first `end_step(model, group)`, which
    reduces those of all later ones at once. Other recipes scale smaller parts, and stay as they
    are. It goes before the first call.
    """
    if not torch.distributed.is_initialized():
        raise ArgumentError("expected torch.distributed to be initialized, but it is not")
    for layer in model.modules():
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

    def __init__(self, recipe, programs, groups, parallel, *others):
        super().__init__(programs, *others)
        self.recipe, self.groups, self.parallel = recipe, groups, parallel
        # Whether the state has x's scale already: that of codes which were gathered.
        self.has_scale = False

    def measure(self, tensor, operand, others=()):
        """The amax of a tensor of all ranks, [1, 1], and its Shard."""
        codes = shard_programs.find_codes(self.recipe, operand)
        shard = shard_programs.Shard(codes, tensor.detach(), 0, tensor.shape[0], self.programs.target)
        amax = shard.measure(_WHOLE)
        for group in {*self.groups.get(operand, ()), *others}:
            torch.distributed.all_reduce(amax.view(torch.int32), torch.distributed.ReduceOp.MAX,
                                         group=group)
        return amax, shard

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
        if self.before_call:
            self.before_call()
        self.make_state(weight.shape, weight.dtype, weight.device, bias is not None)
        if not self.has_scale:
            self.set_scales(x, "activation")
        self.has_scale = False
        if not is_gathered(weight):
            self.set_scales(weight, "weight")
        return self._forward("train" if saves else "forward", x, weight, bias)

    def backward(self, dy, saved, weight, has_bias, needs_x, needs_weight):
        name = "backward" if needs_x and needs_weight else "dgrad" if needs_x else "wgrad"
        self.set_scales(dy, "gradient")
        results = self._backward(name, [dy, weight, *saved], has_bias)
        if self.steps:
            if self.parallel is not None and self.state is not None:
                steps.reduce_amaxes([self.state], self.parallel)
            self.end_step()
        return results

    def quantize_part(self, x, group):
        """Codes of this rank's rows of x and the inverse of their scale, which is that of all rows in
        a group; the next forward is of these rows. There has to be a state."""
        amax, shard = self.set_scales(x, "activation", {group})
        place, _ = self.find_places("activation")[0]
        amaxes, scales, inverses = steps.get_rows(self.state, x.device)
        if amax is not None:
            # What a forward measures are values of codes, none above the largest of these.
            amaxes[place:place + 1].copy_(torch.maximum(amaxes[place], amax.view(())))
        scale, inverse = (row[place].clone().view(1, 1) for row in (scales, inverses))
        self.has_scale = True
        return shard.quantize(_WHOLE, scale, inverse, x.shape[0]), inverse

    def _prepare(self, name, function, names, values):
        """Calls are not those of C, which would not ask for scales."""


class SharedCurrent(_Shared):
    """Under `current`: programs of `delayed`, whose scales are those of the present amaxes."""

    def __init__(self, recipe, target, options, *others):
        super().__init__(recipe, get_programs(shard_programs.make_given(recipe), target, options),
                         *others)

    def set_scales(self, tensor, operand, others=()):
        amax, shard = self.measure(tensor, operand, others)
        scale, inverse = shard.scale(_WHOLE, amax)
        _, scales, inverses = steps.get_rows(self.state, tensor.device)
        for place, _ in self.find_places(operand):
            scales[place:place + 1].copy_(scale.view(1))
            inverses[place:place + 1].copy_(inverse.view(1))
        return None, shard

    def end_step(self):
        """There is none: all scales are of the present tensors."""
        self._weight = None

    def get_saved(self):
        return None


class SharedDelayed(_Shared):
    """Under `delayed`, whose first scales are those of the present amaxes."""

    def __init__(self, recipe, target, options, *others):
        super().__init__(recipe, get_programs(recipe, target, options), *others)
        self._known = set()

    def set_saved(self, saved):
        super().set_saved(saved)
        self._known = set()

    def set_scales(self, tensor, operand, others=()):
        # All ranks ask the same, since their states are equal.
        self._set_first_scales(tensor, operand, others)
        if not others:
            return None
        codes = shard_programs.find_codes(self.recipe, operand)
        shard = shard_programs.Shard(codes, tensor.detach(), 0, tensor.shape[0], self.programs.target)
        return shard.measure(_WHOLE), shard

    def _set_first_scales(self, tensor, operand, others):
        if operand in self._known or not shard_programs.begins_with_current(self.recipe):
            return
        slots = [slot for _, slot in self.find_slots(operand) if slot.recorded == 0]
        if not slots:
            self._known.add(operand)
            return
        amax, shard = self.measure(tensor, operand, others)
        scale = shard_programs.make_first_scale(shard.codes, self.recipe, amax.item())
        for slot in slots:
            self.state.set_scale(slot.name, scale)
