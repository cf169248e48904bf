"""Optimizers whose steps are our programs, which write the codes of weights as well.

    optimizer = torch.optim.AdamW(model.parameters(), lr)
    fp8.torch.fuse_optimizer(model, optimizer)
"""

import collections
import functools
import weakref

import torch

from fp8.errors import ArgumentError
from fp8.torch import backward_steps, held_codes, modules
from fp8.torch import moments as moment_states
from fp8.torch.coded_weights import is_coded
from fp8.torch.lion import Lion
from fp8.torch.update_items import Settings
from fp8.torch.update_plan import Plan
from fp8.torch.update_text import DRAWN, NEAREST, SPLIT

# Classes that are taken, and what their rules are called. Old versions of PyTorch have no Muon.
_KINDS = {torch.optim.AdamW: "adamw", torch.optim.Adam: "adam", torch.optim.SGD: "sgd", Lion: "lion",
          **({torch.optim.Muon: "muon"} if hasattr(torch.optim, "Muon") else {})}
_MASTERS = {None: NEAREST, "stochastic": DRAWN, "split": SPLIT}


class _Fused:
    """What the class of an optimizer has besides its own."""

    # What makes steps within a backward, if something does.
    _fp8_backward = None

    def step(self, closure=None):
        """Performs a step, as torch.optim's; behind it the codes of weights are those of the new ones."""
        # What a scheduler that wraps `step` would note.
        self._opt_called = True
        for name in ("_accelerator_graph_capture_health_check", "_cuda_graph_capture_health_check"):
            # Groups that say nothing of graphs have nothing that a host counts.
            if hasattr(self, name) and all("capturable" in group for group in self.param_groups):
                getattr(self, name)()
                break
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        if self._fp8_backward is not None:
            self._fp8_backward.end()
        with torch.no_grad():
            self._fp8_plan.step()
        return loss

    def zero_grad(self, set_to_none=True):
        """As torch.optim's. Where a backward failed, or is of no step, the next one may begin."""
        super().zero_grad(set_to_none)
        if self._fp8_backward is not None:
            self._fp8_backward.skip()

    def write_codes(self):
        """Makes the codes those of weights that something else than a step has changed. Calls that see
        a weight changed quantize it themselves: CUDA graphs that were captured before do not see it. Masters of weights
        that are codes become what these are."""
        with torch.no_grad():
            self._fp8_plan.remake_masters()
            self._fp8_plan.write_codes()

    def state_dict(self):
        """As torch.optim's own, which takes it."""
        states = super().state_dict()
        states["state"] = {key: _unshare(state) for key, state in states["state"].items()}
        return states

    def load_state_dict(self, state_dict):
        """Takes torch.optim's, too."""
        super().load_state_dict(state_dict)
        # torch.optim makes all that is floating-point of the parameter's type.
        saved = [number for group in state_dict["param_groups"] for number in group["params"]]
        own = [parameter for group in self.param_groups for parameter in group["params"]]
        for number, parameter in zip(saved, own):
            for name, value in state_dict["state"].get(number, {}).items():
                if moment_states.is_own(name, value, self._fp8_plan.settings.masters == SPLIT):
                    self.state[parameter][name] = value.to(parameter.device, copy=True)
        self._fp8_plan.forget()

    def add_param_group(self, param_group):
        super().add_param_group(param_group)
        if hasattr(self, "_fp8_plan"):
            self._fp8_plan.forget()
            if self._fp8_backward is not None:
                self._fp8_backward.attach()

    def __reduce_ex__(self, protocol):
        # What is copied or unpickled is torch's own: it knows no model.
        values = self.__getstate__()
        states = {parameter: _unshare(state) for parameter, state in values["state"].items()}
        return _make_plain, (type(self)._fp8_class,), {**values, "state": collections.defaultdict(dict, states)}


def _unshare(state):
    """A parameter's state with a number of steps of its own: here parameters share it, and torch would count
    it once for each."""
    return {name: value.clone() if name == "step" and isinstance(value, torch.Tensor) else value
            for name, value in state.items()}


def _make_plain(cls):
    return cls.__new__(cls)


@functools.lru_cache(maxsize=None)
def _make_class(cls):
    """A class of the same name, whose step is ours."""
    return type(cls.__name__, (_Fused, cls), {
        "__module__": cls.__module__, "__qualname__": cls.__qualname__, "__doc__": cls.__doc__,
        "_fp8_class": cls})


def _find_layers(model, chosen):
    """Layers by the id of a weight whose codes an optimizer writes, and why others' are not, by name."""
    linear = {name: layer for name, layer in model.named_modules() if isinstance(layer, modules.Linear)}
    names = {}
    for name, layer in linear.items():
        names.setdefault(id(layer.weight), []).append(name)
    found, left, overlaps = {}, {}, held_codes.find_overlaps(model)
    for name, layer in linear.items():
        reason = "the optimizer does not have its weight" if id(layer.weight) not in chosen else (
            held_codes.find_reason(layer, names, overlaps))
        if reason is None:
            found[id(layer.weight)] = layer
        else:
            left[name] = reason
    return found, left


def fuse_optimizer(model, optimizer, *, max_norm=None, moments=None, masters=None, in_backward=False, backend=None):
    """Makes the steps of an optimizer programs that read and write each parameter once, and write the
    codes of the weights of a model's `Linear` layers, so that no forward quantizes a weight.

    - model: what convert_to_fp8_training converted, or what a Backend compiles;
    - optimizer: torch.optim.AdamW, Adam, SGD or Muon, or fp8.torch.Lion, of its parameters, of any options but
      differentiable;
    - max_norm: scales the gradients of a step where their norm is greater, as clip_grad_norm_ does;
    - moments: "fp8" for a byte an element, codes with a factor for 128 of them, rounded stochastically;
    - masters: of parameters in bf16: "stochastic" rounds what a step makes of them stochastically, "split" keeps the
      other 16 bits of an f32 in the optimizer's state; None rounds to the nearest. Weights that are codes are rounded
      stochastically; with "split" the optimizer has an f32 of them;
    - in_backward: makes the step of a parameter within the backward, when its gradient is complete, and lets go of that,
      so that gradients of a model do not live together. `optimizer.step()` stays where it is, for small parameters. Gradients
      are not accumulated, clipped by their norm, scaled by GradScaler, or added up over processes;
    - backend: the Backend that compiles the model, which has compiled nothing yet: its parts take the codes of weights that
      steps write.

    Works in place, and returns the optimizer: its groups, state and hooks stay, and its state_dict is
    torch.optim's, but for what `moments` and `masters` add. `optimizer.fp8_left` says which layers' weights are not
    written as codes, and why, `optimizer.grad_norm` the norm of the last step's gradients, if there is a max_norm,
    `optimizer.clip_factor` may be a tensor of one f32 that all gradients are multiplied by, and
    `optimizer.write_codes()` is for weights that something else has changed. Once more, it takes layers that
    have been converted since, and other options. Raises ArgumentError.
    """
    cls = getattr(type(optimizer), "_fp8_class", type(optimizer))
    kind = _KINDS.get(cls)
    if kind is None:
        known = ", ".join(cls.__name__ for cls in _KINDS)
        raise ArgumentError(f"expected one of the optimizers {known}, but got {type(optimizer).__name__}")
    if not isinstance(model, torch.nn.Module):
        raise ArgumentError(f"expected a module, but got {type(model).__name__}")
    if any(group.get("differentiable") for group in optimizer.param_groups):
        raise ArgumentError("expected an optimizer that is not differentiable, but got one that is")
    settings = _read_settings(max_norm, moments, masters)
    if in_backward:
        backward_steps.check_settings(settings)
    if backend is not None and not hasattr(backend, "write_weights"):
        raise ArgumentError(f"expected backend to be a Backend, but got {backend!r}")
    written = None if backend is None else backend.write_weights(model)
    chosen = {id(parameter) for group in optimizer.param_groups for parameter in group["params"]}
    layers, left = _find_layers(model, chosen)
    wrapped = optimizer.__dict__.pop("step", None)
    if wrapped is not None and not hasattr(wrapped, "_wrapped_by_lr_sched"):
        optimizer.step = wrapped
        raise ArgumentError("expected an optimizer with the step of its class, but got one whose step "
                            "something has replaced")
    optimizer.__class__ = _make_class(cls)
    optimizer._patch_step_function()
    if wrapped is not None:
        _mark(optimizer)
    optimizer.fp8_left, optimizer.clip_factor = left, None
    for layer in layers.values():
        if not is_coded(layer.weight):
            layer._holds = True
            layer.take_codes()
    optimizer._fp8_plan = Plan(weakref.ref(optimizer), kind, layers, settings)
    optimizer._fp8_plan.forget()
    if written is not None:
        written.attach(optimizer)
    if optimizer._fp8_backward is not None:
        optimizer._fp8_backward.remove()
    optimizer._fp8_backward = backward_steps.BackwardSteps(optimizer, optimizer._fp8_plan) if in_backward else None
    with torch.no_grad():
        optimizer._fp8_plan.write_codes()
    return optimizer


def _read_settings(max_norm, moments, masters):
    if max_norm is not None and not (isinstance(max_norm, (int, float)) and max_norm > 0):
        raise ArgumentError(f"expected max_norm to be a number above 0, but got {max_norm!r}")
    if moments not in (None, "fp8"):
        raise ArgumentError(f"expected moments to be None or 'fp8', but got {moments!r}")
    if masters not in _MASTERS:
        raise ArgumentError(f"expected masters to be None, 'stochastic' or 'split', but got {masters!r}")
    return Settings(moments == "fp8", _MASTERS[masters], max_norm)


def _mark(optimizer):
    """Tells a scheduler that was made before that steps are still seen: `_Fused.step` notes them."""
    step = type(optimizer).step

    @functools.wraps(step)
    def run(*arguments, **keywords):
        return step(optimizer, *arguments, **keywords)

    run._wrapped_by_lr_sched = True
    optimizer.step = run
