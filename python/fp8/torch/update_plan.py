"""What a step of a fused optimizer calls: programs, and their arguments."""

import functools

import torch

import fp8
from fp8.errors import ArgumentError
from fp8.torch import moments, step_factors, update_random
from fp8.torch.coded_weights import is_coded
from fp8.torch.update_items import Item, Settings, is_taken
from fp8.torch.update_text import Part, Rule, Update, write

# Parameters of a call: more would be programs that no other model has, and that compile for long. Of small ones, whose
# launches are one, there are more.
_MOST, _MOST_SMALL, _SMALL = 8, 32, 1 << 20
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
    def is_small(part):
        return part.rows * part.columns <= _SMALL

    lists = []
    for entry in sorted(entries, key=lambda entry: (is_small(entry[0]), str(entry[0]))):
        last = lists[-1] if lists else []
        same = last and is_small(last[0][0]) == is_small(entry[0])
        if same and len(last) < (_MOST_SMALL if is_small(entry[0]) else _MOST):
            last.append(entry)
        else:
            lists.append([entry])
    return lists


def _describe(value):
    return f"one of sizes {list(value.shape)}" if isinstance(value, torch.Tensor) else type(value).__name__


def _unshare_step(state):
    if isinstance(state.get("step"), torch.Tensor):
        state["step"] = state["step"].clone()


def _scale(gradients, max_norm, grad_scale):
    """The norm of all gradients, and what they are multiplied by for it to be max_norm at most."""
    norm = torch.nn.utils.get_total_norm(gradients)
    if grad_scale is not None:
        norm = norm / grad_scale.reshape(()).to(norm.device)
    return norm, (max_norm / (norm + 1e-6)).clamp(max=1.0)


@functools.lru_cache(maxsize=64)
def _count(size, device):
    return torch.arange(size, dtype=torch.float32, device=device)


class Plan:
    """The steps of an optimizer of a kind, of which weights of some layers, by the ids of these, are
    written as codes."""

    def __init__(self, optimizer, kind, layers, settings=Settings()):
        self._optimizer, self._kind, self._layers, self.settings = optimizer, kind, layers, settings
        self._items, self._factors = {}, step_factors.Factors()

    def forget(self):
        """What is known of states and groups, which are others now."""
        for item in self._items.values():
            item.forget()
        self._factors = step_factors.Factors()
        for state in self._optimizer().state.values():
            _unshare_step(state)

    def _get_item(self, parameter):
        item = self._items.get(id(parameter))
        if item is None or not item.is_of(parameter):
            layer, number = self._layers.get(id(parameter)), self._get_number(parameter)
            made = self._items[id(parameter)] = Item(parameter, layer, number, self.settings)
            if item is not None:
                made.follow(item)
            return made
        return item

    def _get_number(self, parameter):
        """Which of the optimizer's parameters it is."""
        parameters = (each for group in self._optimizer().param_groups for each in group["params"])
        return next((i for i, each in enumerate(parameters) if each is parameter), 0)

    def take_layer(self, parameter, layer):
        """From now on writes the codes of a weight of this layer."""
        self._layers[id(parameter)] = layer
        self._items.pop(id(parameter), None)

    def find_held(self, parameter):
        """The codes of a weight that are written, or None."""
        return self._get_item(parameter).find_held()

    def has_own_steps(self, parameter):
        """Whether the step of its layer's scales, if there is one, ends with a backward."""
        layer = self._layers.get(id(parameter))
        return layer is None or layer._steps

    def step(self, only=None):
        """Makes a step of all parameters that have a gradient, or of the only one, with the number of its group."""
        optimizer = self._optimizer()
        taken, others = [], []
        chosen = [(group, group["params"]) for group in optimizer.param_groups] if only is None else [
            (optimizer.param_groups[only[0]], only[1:])]
        for group, parameters in chosen:
            rest = []
            for parameter in parameters:
                if parameter.grad is not None and is_taken(parameter):
                    taken.append((group, self._get_item(parameter)))
                elif parameter.grad is not None:
                    rest.append(parameter)
            others.append(rest)
        shared = self._list_shared(optimizer)
        calls = {}
        for _, item in taken:
            item.begin_step()
        for group, item in taken:
            calls.setdefault(self._begin(optimizer, group, item, shared), []).append(item)
        self._factors.begin({_NAMES.get(name, name): value for name, value in shared.items()})
        self._factors.settle([(optimizer.state[item.parameter], id(item.parameter), (rule, number, item.alias.device))
                              for (rule, number), items in calls.items() for item in items
                              if rule.counts or "drawn" in rule.options])
        for (rule, number), items in calls.items():
            alike = {}
            for item in items:
                step = optimizer.state[item.parameter].get("step") if rule.counts or "drawn" in rule.options else None
                alike.setdefault((id(step), item.alias.device), (step, []))[1].append(item)
            group = optimizer.param_groups[number]
            for (_, device), (step, same) in alike.items():
                factors = self._factors.get(rule, group, step, device)
                self._run_muon(rule, group, same, factors) if self._kind == "muon" else self._run(rule, same, factors)
        if any(others):
            self._run_others(optimizer, others, shared.get("clip_factor"))

    def _list_shared(self, optimizer):
        """Tensors of one number that all parameters of a step have."""
        factor, most = optimizer.clip_factor, self.settings.max_norm
        if factor is not None and not (isinstance(factor, torch.Tensor) and factor.numel() == 1):
            raise ArgumentError(f"expected clip_factor to be a tensor of one number, but got {_describe(factor)}")
        shared = {name: value for name in ("grad_scale", "found_inf", "clip_factor")
                  if (value := getattr(optimizer, name, None)) is not None}
        gradients = [] if most is None else [parameter.grad for group in optimizer.param_groups
                                             for parameter in group["params"] if parameter.grad is not None]
        if gradients:
            optimizer.grad_norm, own = _scale(gradients, most, shared.get("grad_scale"))
            shared["clip_factor"] = own if factor is None else own * factor.reshape(()).to(own.device)
        return shared

    def _run_others(self, optimizer, others, factor):
        """Steps of torch.optim for parameters that programs do not take."""
        step = type(optimizer)._fp8_class.step
        step = getattr(step, "__wrapped__", step)  # Hooks are around ours.
        groups, kept = optimizer.param_groups, []
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
            ("maximize", group.get("maximize")), ("drawn", item.draws),
            ("decay", isinstance(group["weight_decay"], torch.Tensor) or group["weight_decay"] != 0)) if is_there]
        number = next(i for i, each in enumerate(optimizer.param_groups) if each is group)
        state = optimizer.state[item.parameter]
        rule = self._make_rule(group, item, state, options)
        if (rule.counts or item.draws) and "step" not in state:
            on_device = group.get("capturable") or group.get("fused") or not rule.counts
            state["step"] = torch.zeros((), device=item.alias.device if on_device else "cpu")
        elif item.draws and not rule.counts and state["step"].device != item.alias.device:
            state["step"] = state["step"].to(item.alias.device)  # torch.optim leaves it where it was saved from.
        item.settle(state, rule.moments)
        return rule, number

    def _make_rule(self, group, item, state, options):
        if self._kind == "sgd":
            options += ["nesterov"] * group["nesterov"] + ["momentum"] * (group["momentum"] != 0)
            if group["momentum"] != 0 and all(state.get(name) is None for has_codes in (True, False)
                                              for name in moments.list_names("momentum_buffer", has_codes)):
                options.append("first")
                state.pop("momentum_buffer", None)
            return Rule("sgd", tuple(options))
        if self._kind == "lion":
            return Rule("lion", tuple(options))
        if self._kind == "muon":
            options += ["nesterov"] * group["nesterov"] + ["late"] * (1 - group["momentum"] >= 0.5)
            return Rule("momentum", (*options, *["low"] * (group["momentum"] < 0.5)))
        options += ["amsgrad"] * group["amsgrad"] + ["late"] * (1 - group["betas"][0] >= 0.5)
        kind = "adamw" if group.get("decoupled_weight_decay", self._kind == "adamw") else "adam"
        return Rule(kind, tuple(options))

    def remake_masters(self):
        """Makes masters of weights that are codes what these are."""
        for parameter, state in self._optimizer().state.items():
            if is_coded(parameter):
                self._get_item(parameter).remake_master(state)

    def write_codes(self, only=None):
        """Writes the codes of all weights as they are, or of these alone."""
        chosen = None if only is None else set(map(id, only))
        rule, items = Rule("none"), []
        for group in self._optimizer().param_groups:
            for parameter in group["params"]:
                if id(parameter) in self._layers and (chosen is None or id(parameter) in chosen) and parameter.device.type in ("cpu", "cuda"):
                    items.append(self._get_item(parameter))
        # Others are codes anyway.
        items = [item for item in items if not is_coded(item.parameter) and item.find_held() is not None]
        self._run(rule, items, {})

    def _run_muon(self, rule, group, items, factors):
        """What is before and behind Muon's products, which are PyTorch's."""
        from torch.optim import _muon
        updates = {id(item): torch.empty(item.sizes, dtype=torch.bfloat16, device=item.alias.device) for item in items}
        self._run(rule, items, factors, updates)
        alike = {}
        for item in items:
            update = updates[id(item)].view(item.parameter.shape)
            update = _muon._zeropower_via_newtonschulz(update, group["ns_coefficients"], group["ns_steps"], group["eps"])
            updates[id(item)] = update.contiguous()
            ratio = _muon._adjust_lr(1.0, group["adjust_lr_fn"], item.parameter.shape)
            alike.setdefault(ratio, []).append(item)
        options = tuple(option for option in ("decay", "drawn") if option in rule.options)
        for ratio, same in alike.items():
            own = self._factors.get(Rule("muon"), group, None, same[0].alias.device, ratio)
            self._run(Rule("muon", options), same, {**factors, **own}, updates)

    def _run(self, rule, items, factors, updates=None):
        """Calls programs for parameters of one rule with the same factors, a few at a time."""
        places = {}
        for item in items:
            held = item.find_held() if rule.has_param else None
            where = item.layer._target if held else "auto"
            places.setdefault((where, item.alias.device), []).append((item.make_part(rule, held), item, held))
        for (where, _), entries in places.items():
            for chunk in divide(entries):
                self._call(Update(rule, tuple(part for part, _, _ in chunk)), where,
                           [(item, held) for _, item, held in chunk], factors, updates or {})

    def _write_turned(self, pairs, where):
        """Writes codes in the other order, of weights whose step has written those in one."""
        if pairs:
            update = Update(Rule("turn"), tuple(Part(*item.sizes, held.target.element, held.target) for item, held in pairs))
            function, names = _get_function(update, pairs[0][0].alias, where)
            values = {f"{name}_{number}": value for number, (_, held) in enumerate(pairs) for name, value in held.arguments.items()}
            function(*[values[name] for name in names])

    def _call(self, update, where, pairs, factors, updates):
        rule, values = update.rule, dict(factors)
        function, names = _get_function(update, pairs[0][0].alias, where)
        for number, (item, held) in enumerate(pairs):
            gradient = updates.get(id(item)) if rule.kind == "muon" else item.parameter.grad
            own = item.list_arguments(rule, held, None if rule.kind == "none" else gradient.contiguous())
            if rule.kind == "momentum":
                own["update"] = updates[id(item)]
            if "drawn" in rule.options:
                (rows, columns), device = item.sizes, item.alias.device
                own.update(place_rows=_count(rows, device).view(-1, 1), place_columns=_count(columns, device).view(1, -1),
                           place_groups=_count(-(-columns // update_random.GROUP), device).view(1, -1))
            values.update({f"{name}_{number}": value for name, value in own.items()})
        function(*[values[name] for name in names])
        copies = [copy for item, held in pairs for copy in item.list_copies(rule, held)]
        if copies:
            torch._foreach_copy_(*map(list, zip(*copies)))
        self._write_turned([(item, held) for part, (item, held) in zip(update.parts, pairs)
                            if held and part.target != held.target], where)
        for item, held in pairs:
            if rule.kind not in ("none", "momentum"):
                torch.autograd.graph.increment_version(item.parameter)
                item.mark()
            if held:
                held.mark(item.parameter)
