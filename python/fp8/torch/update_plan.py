"""What a step of a fused optimizer calls: programs, and their arguments."""

import functools

import torch

import fp8
from fp8.errors import ArgumentError
from fp8.torch import step_factors
from fp8.torch.held_codes import HeldCodes
from fp8.torch.linear_programs import ELEMENTS
from fp8.torch.update_text import Part, Rule, Update, write

# Parameters of a call: more would be programs that no other model has, and that compile for long.
_MOST = 8
# What an attribute of an optimizer is called by programs.
_NAMES = {"clip_factor": "clip"}


@functools.lru_cache(maxsize=None)
def _compile(update, target):
    """The function of an Update, and the names of its arguments."""
    text, names = write(update)
    return fp8.compile(text, target=target).functions["update"], names


def _get_function(update, tensor, target):
    if target == "auto":
        target = "auto" if tensor.is_cuda else "cpu"
    return _compile(update, target)


def divide(entries):
    """Lists of entries that one call has, by their Parts, with which they begin: those of one kind stand
    beside each other, so that most calls of a large model are of one program."""
    ordered = sorted(entries, key=lambda entry: str(entry[0]))
    return [ordered[i:i + _MOST] for i in range(0, len(ordered), _MOST)]


class _Item:
    """A parameter, as programs take it, and the codes that are written of it."""

    def __init__(self, parameter, layer):
        self.parameter, self.layer, self.held = parameter, layer, None
        # Without a gradient of its own, but with the memory and the version of the parameter.
        self.alias = parameter.detach()
        columns = parameter.shape[-1] if parameter.ndim > 1 else parameter.numel()
        self.sizes = parameter.numel() // columns if columns else 0, columns
        self.element = ELEMENTS.get(parameter.dtype)
        # The moments as matrices, by name, and what the optimizer's state has for them.
        self.states, self._kept = None, ()

    def has(self, state, names):
        """Whether `states` are those of an optimizer's state, which others may move or replace."""
        return self.states is not None and tuple(self.states) == names and all(
            state.get(name) is value for name, value in zip(names, self._kept))

    def keep(self, state, names):
        self._kept = [state[name] for name in names]
        self.states = {name: self.flatten(state[name]) for name in names}

    def flatten(self, tensor):
        """A view of a tensor of the parameter's sizes, as a matrix."""
        return tensor.detach().view(self.sizes)

    def find_held(self):
        """The HeldCodes to write, or None: nothing was computed with the weight yet, it is of another
        type than activations and no master of them, or the layer has become another one since."""
        if not getattr(self.layer, "_holds", False) or self.layer._amax_groups or (
                self.layer.weight is not self.parameter):
            return None
        recipe = self.layer.recipe
        unit = self.layer._get_unit(recipe)
        dtype = unit.dtype or self.parameter.dtype
        if dtype != self.parameter.dtype and self.parameter.dtype != torch.float32:
            return None
        if self.held is None or self.held.dtype != dtype or self.held.recipe != recipe:
            self.held = HeldCodes(self.layer, dtype)
        unit.hold(self.held)
        return self.held if self.held.bind(unit) else None


def _describe(value):
    return f"one of sizes {list(value.shape)}" if isinstance(value, torch.Tensor) else type(value).__name__


def _is_taken(parameter):
    """Whether a parameter and its gradient are what programs take: others are torch.optim's."""
    gradient = parameter.grad
    return (parameter.dtype in ELEMENTS and gradient.dtype == parameter.dtype and parameter.numel() > 0
            and gradient.layout is torch.strided and type(parameter.data) is torch.Tensor
            and type(gradient) is torch.Tensor and parameter.is_contiguous() and not gradient.is_neg()
            and parameter.device.type in ("cpu", "cuda") and gradient.device == parameter.device)


def _unshare_step(state):
    if isinstance(state.get("step"), torch.Tensor):
        state["step"] = state["step"].clone()


class Plan:
    """The steps of an optimizer of a kind, of which weights of some layers, by the ids of these, are
    written as codes."""

    def __init__(self, optimizer, kind, layers):
        self._optimizer, self._kind, self._layers = optimizer, kind, layers
        self._items, self._factors = {}, step_factors.Factors()

    def forget(self):
        """What is known of states and groups, which are others now."""
        for item in self._items.values():
            item.states = None
        self._factors = step_factors.Factors()
        for state in self._optimizer().state.values():
            _unshare_step(state)

    def _get_item(self, parameter):
        item = self._items.get(id(parameter))
        if item is None or item.alias.data_ptr() != parameter.data_ptr() or (
                item.alias.shape != parameter.shape or item.parameter is not parameter):
            item = self._items[id(parameter)] = _Item(parameter, self._layers.get(id(parameter)))
        return item

    def step(self):
        optimizer = self._optimizer()
        factor = optimizer.clip_factor
        if factor is not None and not (isinstance(factor, torch.Tensor) and factor.numel() == 1):
            raise ArgumentError(f"expected clip_factor to be a tensor of one number, but got {_describe(factor)}")
        taken, others = [], []
        for group in optimizer.param_groups:
            rest = []
            for parameter in group["params"]:
                if parameter.grad is not None and _is_taken(parameter):
                    taken.append((group, self._get_item(parameter)))
                elif parameter.grad is not None:
                    rest.append(parameter)
            others.append(rest)
        shared = {name: value for name in ("grad_scale", "found_inf", "clip_factor")
                  if (value := getattr(optimizer, name, None)) is not None}
        calls = {}
        for group, item in taken:
            calls.setdefault(self._begin(optimizer, group, item, shared), []).append(item)
        self._factors.begin({_NAMES.get(name, name): value for name, value in shared.items()})
        if self._kind != "sgd":
            self._factors.settle([(optimizer.state[item.parameter], id(item.parameter), (rule, number, item.alias.device))
                                  for (rule, number), items in calls.items() for item in items])
        for (rule, number), items in calls.items():
            alike = {}
            for item in items:
                step = optimizer.state[item.parameter].get("step")
                alike.setdefault((id(step), item.alias.device), (step, []))[1].append(item)
            for (_, device), (step, same) in alike.items():
                self._run(rule, same, self._factors.get(rule, optimizer.param_groups[number], step, device))
        if any(others):
            self._run_others(optimizer, others)

    def _run_others(self, optimizer, others):
        """Steps of torch.optim for parameters that programs do not take."""
        step = type(optimizer)._fp8_class.step
        step = getattr(step, "__wrapped__", step)  # Hooks are around ours.
        groups, kept, factor = optimizer.param_groups, [], optimizer.clip_factor
        for parameter in (parameter for rest in others for parameter in rest):
            # It may have been taken by programs before, which share the number of steps.
            if self._factors.is_shared(optimizer.state.get(parameter, {}).get("step")):
                _unshare_step(optimizer.state[parameter])
            if factor is not None:
                kept.append((parameter, parameter.grad))
                parameter.grad = parameter.grad * factor.reshape(()).to(parameter.grad.device, parameter.grad.dtype)
        optimizer.param_groups = [{**group, "params": rest} for group, rest in zip(groups, others)]
        try:
            step(optimizer)
        finally:
            optimizer.param_groups = groups
            for parameter, gradient in kept:
                parameter.grad = gradient

    def _begin(self, optimizer, group, item, shared):
        """The Rule of a parameter's step and the number of its group; makes what state is not there yet."""
        options = [name for name, is_there in (
            ("scaled", "grad_scale" in shared or "found_inf" in shared), ("clipped", "clip_factor" in shared),
            ("maximize", group["maximize"]),
            ("decay", isinstance(group["weight_decay"], torch.Tensor) or group["weight_decay"] != 0)) if is_there]
        number = next(i for i, each in enumerate(optimizer.param_groups) if each is group)
        state = optimizer.state[item.parameter]
        if self._kind == "sgd":
            return self._begin_sgd(group, item, state, options), number
        options += ["amsgrad"] * group["amsgrad"] + ["late"] * (1 - group["betas"][0] >= 0.5)
        rule = Rule("adamw" if group.get("decoupled_weight_decay", self._kind == "adamw") else "adam", tuple(options))
        if not item.has(state, rule.moments) or "step" not in state:
            if "step" not in state:
                on_device = group["capturable"] or group["fused"]
                state["step"] = torch.zeros((), device=item.alias.device if on_device else "cpu")
            for name in rule.moments:
                if name not in state:
                    state[name] = torch.zeros_like(item.parameter, requires_grad=False)
            item.keep(state, rule.moments)
        return rule, number

    def _begin_sgd(self, group, item, state, options):
        options += ["nesterov"] * group["nesterov"] + ["momentum"] * (group["momentum"] != 0)
        if group["momentum"] != 0 and state.get("momentum_buffer") is None:
            options.append("first")
            state["momentum_buffer"] = torch.zeros_like(item.parameter, requires_grad=False)
            item.states = None
        rule = Rule("sgd", tuple(options))
        if not item.has(state, rule.moments):
            item.keep(state, rule.moments)
        return rule

    def write_codes(self):
        """Writes the codes of all weights as they are."""
        rule, items = Rule("none"), []
        for group in self._optimizer().param_groups:
            for parameter in group["params"]:
                if id(parameter) in self._layers and parameter.device.type in ("cpu", "cuda"):
                    items.append(self._get_item(parameter))
        items = [item for item in items if item.find_held() is not None]
        self._run(rule, items, {})

    def _run(self, rule, items, factors):
        """Calls programs for parameters of one rule with the same factors, a few at a time."""
        places = {}
        for item in items:
            held = item.find_held()
            part = Part(*item.sizes, item.element, held and held.target)
            where = item.layer._target if held else "auto"
            places.setdefault((where, item.alias.device), []).append((part, item, held))
        for (where, _), entries in places.items():
            for chunk in divide(entries):
                self._call(Update(rule, tuple(part for part, _, _ in chunk)), where,
                           [(item, held) for _, item, held in chunk], factors)

    def _call(self, update, where, pairs, factors):
        function, names = _get_function(update, pairs[0][0].alias, where)
        values = dict(factors)
        for number, (item, held) in enumerate(pairs):
            own = {"param": item.flatten(item.alias), **(held.arguments if held else {})}
            if update.rule.kind != "none":
                own.update(item.states, grad=item.flatten(item.parameter.grad.contiguous()))
            values.update({f"{name}_{number}": value for name, value in own.items()})
        function(*[values[name] for name in names])
        copies = [copy for _, held in pairs if held and (copy := held.find_copy()) is not None]
        if copies:
            torch._foreach_copy_(*map(list, zip(*copies)))
        for item, held in pairs:
            if update.rule.kind != "none":
                torch.autograd.graph.increment_version(item.parameter)
            if held:
                held.mark(item.parameter)
