"""Parameters as programs of steps take them."""

from collections import namedtuple

import torch

from fp8.torch import moments
from fp8.torch.coded_weights import is_coded
from fp8.torch.held_codes import HeldCodes
from fp8.torch.linear_programs import ELEMENTS
from fp8.torch.shard_programs import keeps_one_order
from fp8.torch.update_text import CODES, DRAWN, NEAREST, SPLIT, Part, divide_orders

# How an optimizer keeps what it has of parameters: whether its moments are codes, how it rounds what is bf16
# (update_text.py), and what it clips the norm of all gradients to, or None.
Settings = namedtuple("Settings", "has_codes masters max_norm", defaults=(False, NEAREST, None))


class Item:
    """A parameter, as programs take it, and the codes that are written of it."""

    def __init__(self, parameter, layer, number, settings):
        self.parameter, self.layer, self.held, self.dtype = parameter, layer, None, parameter.dtype
        # Without a gradient of its own, but with the memory and the version of the parameter.
        self.alias = parameter.content.codes if is_coded(parameter) else parameter.detach()
        columns = parameter.shape[-1] if parameter.ndim > 1 else parameter.numel()
        self.sizes = parameter.numel() // columns if columns else 0, columns
        # A master in f32 of a weight that is codes is in the optimizer's state.
        self.is_kept = is_coded(parameter) and settings.masters == SPLIT
        self.element = "f32" if self.is_kept else ELEMENTS.get(parameter.dtype)
        self.has_codes = settings.has_codes and moments.is_worth(parameter)
        if is_coded(parameter):
            self.master = NEAREST if self.is_kept else CODES
        else:
            self.master = settings.masters if parameter.dtype == torch.bfloat16 else NEAREST
        # Tells random numbers of parameters from each other.
        self.number = torch.full((1, 1), float(number), device=self.alias.device)
        # The optimizer's tensors as matrices, by the names of arguments, and what its state has for them.
        self.states, self._kept, self._next = None, {}, {}
        # The parameter's version as the last step left it, whose master is in the state.
        self._version = None
        # The same of what its codes are of: an assignment to its data gives it others, and no version.
        self._origin = None

    @property
    def draws(self):
        return self.has_codes or self.master in (DRAWN, CODES)

    @property
    def moment(self):
        """The type of moments that are no codes."""
        return torch.float32 if self.master == SPLIT or self.is_kept else self.parameter.dtype

    def is_of(self, parameter):
        """Whether it is that parameter, where it was."""
        alias = parameter.content.codes if is_coded(parameter) else parameter
        return self.parameter is parameter and self.dtype == parameter.dtype and self.alias.shape == alias.shape and (
            self.alias.data_ptr() == alias.data_ptr())

    def forget(self):
        """What is known of an optimizer's state, which is another one now, and whose master counts."""
        self.states = self._version = self._origin = None

    def mark(self):
        """Behind a step: what changes the parameter from now on is something else."""
        self._version = self.parameter._version
        self._origin = self.parameter.content.origin if self.is_kept else None

    def begin_step(self):
        """Before a step: ends that of a scale that no backward ends, of a weight of parts of a Backend."""
        if getattr(self.layer, "ends_with_optimizer", False):
            self.layer._get_unit(self.layer.recipe).end_step()

    def follow(self, item):
        """Takes over what is known of the parameter from the item that it was before it moved."""
        if item.parameter is self.parameter:
            self._origin = item._origin

    def remake_master(self, state):
        """Makes the master what the parameter is, in place of what it was before something else than a step changed it."""
        if self.is_kept and moments.MASTER in state:
            state[moments.MASTER].copy_(self.parameter.content.dequantize(torch.float32))

    def settle(self, state, names):
        """Makes moments of those names in an optimizer's state what programs take; others may move or replace them."""
        keys = [key for name in names for key in moments.list_names(name, self.has_codes)]
        keys += [moments.LOW] * (self.master == SPLIT) + [moments.MASTER] * self.is_kept
        if self._version not in (None, self.parameter._version) or (
                self._origin is not None and self._origin is not self.parameter.content.origin):
            self.remake_master(state)
            self.mark()
        if self.states is not None and set(keys) == set(self._kept) and all(
                state.get(key) is value for key, value in self._kept.items()):
            return
        for name in names:
            moments.settle(state, name, self.has_codes, self.sizes, self.parameter, self.moment)
        if self.master == SPLIT and moments.LOW not in state:
            state[moments.LOW] = torch.zeros(self.parameter.shape, dtype=torch.int16, device=self.alias.device)
        if self.is_kept and moments.MASTER not in state:
            state[moments.MASTER] = self.parameter.content.dequantize(torch.float32)
        self._kept = {key: state[key] for key in keys}
        self.states = {}
        for key, value in self._kept.items():
            if key == moments.LOW:
                self.states["low"] = self.flatten(value.view(torch.bfloat16))
            else:
                self.states[key] = value.detach() if key.endswith(moments.INVERSE) else self.flatten(value)

    def flatten(self, tensor):
        """A view of a tensor of the parameter's sizes, as a matrix."""
        return tensor.detach().view(self.sizes)

    def find_held(self):
        """The HeldCodes to write, or None: nothing was computed with the weight yet, it is of another
        type than activations and no master of them, or the layer has become another one since."""
        if is_coded(self.parameter):
            return self.parameter.content
        if not getattr(self.layer, "_holds", False) or self.layer._amax_groups or (
                self.layer.weight is not self.parameter):
            return None
        recipe = self.layer.recipe
        unit = self.layer._get_unit(recipe)
        dtype = unit.dtype or self.parameter.dtype
        if dtype != self.parameter.dtype and self.parameter.dtype != torch.float32:
            return None
        has_one_order = keeps_one_order(recipe, self.layer._options)
        if self.held is None or (self.held.dtype, self.held.recipe, self.held.target.has_one_order) != (
                dtype, recipe, has_one_order):
            self.held = HeldCodes(self.layer, dtype)
        unit.hold(self.held)
        return self.held if self.held.bind(unit) else None

    def list_copies(self, rule, held):
        """Pairs of what is written behind a call and what from: factors that the call still reads."""
        pairs = [] if held is None else [held.find_copy(self.master == CODES)]
        if rule.kind not in ("none", "muon") and self.has_codes:
            pairs += [(self.states[name], self._next.pop(name)) for name in list(self._next)]
        return [pair for pair in pairs if pair is not None]

    def make_part(self, rule, held):
        if rule.kind == "none":
            return Part(*self.sizes, self.element, held.target)
        is_update = rule.kind == "muon"
        if not rule.has_param:
            master = SPLIT if self.master == SPLIT else NEAREST  # It decides on the type of moments.
            gradient = ELEMENTS[self.parameter.dtype]
            return Part(*self.sizes, self.element, master=master, coded=self.has_codes,
                        gradient=None if gradient == self.element else gradient)
        gradient = "bf16" if is_update else ELEMENTS[self.parameter.dtype]
        return divide_orders(Part(*self.sizes, self.element, held and held.target, self.master, self.has_codes and not is_update,
                                  None if gradient == self.element else gradient))

    def list_arguments(self, rule, held, gradient):
        """Tensors of a call by the names of arguments, of which programs may take fewer."""
        own = {"number": self.number, **(held.arguments if held else {})}
        if self.is_kept:
            own["param"] = self.states[moments.MASTER]
        elif not is_coded(self.parameter):
            own["param"] = self.flatten(self.alias)
        # For the call alone: factors are a thirtieth of what moments take.
        self._next = {} if rule.kind in ("none", "muon") else {
            name: torch.empty_like(value) for name, value in self.states.items() if name.endswith(moments.INVERSE)}
        if rule.kind != "none":
            own.update(self.states, grad=self.flatten(gradient), **{f"{name}_new": value for name, value in self._next.items()})
        return own


def is_taken(parameter):
    """Whether a parameter and its gradient are what programs take: others are torch.optim's."""
    gradient = parameter.grad
    if gradient is None:  # A hook may have taken it.
        return False
    is_dense = is_coded(parameter) or type(parameter.data) is torch.Tensor and parameter.is_contiguous()
    return (parameter.dtype in ELEMENTS and gradient.dtype == parameter.dtype and parameter.numel() > 0
            and gradient.layout is torch.strided and is_dense and type(gradient) is torch.Tensor
            and not gradient.is_neg() and parameter.device.type in ("cpu", "cuda")
            and gradient.device == parameter.device)
