"""Numbers that the parameters of a step share, as tensors that programs take."""

import torch

from fp8.torch import step_program

# What all parameters of a step have besides, where something has set it, and what it is where not.
_SHARED = {"grad_scale": 1.0, "found_inf": 0.0, "clip": 1.0}


def make_numbers(rule, group, step, ratio=1.0):
    """Numbers of a rule by name, as torch.optim's fused forms have them, in f64. Muon's learning rate is multiplied by
    a ratio, of a parameter's sizes."""
    lr, decay = float(group["lr"]), float(group["weight_decay"])
    if rule.kind == "sgd":
        return {"decay": decay, "momentum": group["momentum"], "damp": 1 - group["dampening"], "step_size": -lr}
    if rule.kind == "muon":
        return {"decay": 1 - lr * decay, "step_size": -(lr * ratio)}
    if rule.kind == "momentum":
        return dict(zip(("lerp", "momentum"), step_program.find_lerps(rule, group["momentum"])))
    beta1, beta2 = (float(beta) for beta in group["betas"])
    if rule.kind == "lion":
        return {"decay": 1 - lr * decay, "beta1": beta1, "rest": 1 - beta1, "beta2": beta2, "square": 1 - beta2,
                "step_size": -lr}
    return {"decay": 1 - lr * decay if rule.kind == "adamw" else decay,
            "lerp": step_program.find_lerp(rule, beta1), "beta2": beta2, "square": 1 - beta2,
            "step_size": lr / (1 - beta1 ** step), "root": (1 - beta2 ** step) ** 0.5, "eps": group["eps"]}


def _get_constants(rule, group, ratio):
    names = {"sgd": ("momentum", "dampening"), "momentum": ("momentum",), "lion": (), "muon": ()}.get(rule.kind, ("eps",))
    return (*(float(beta) for beta in group.get("betas", ())), *(float(group[name]) for name in names),
            *[ratio] * (rule.kind == "muon"), float(group["weight_decay"]))


class Factors:
    """The factors of steps, and the numbers of steps that parameters share."""

    def __init__(self):
        self._members, self._memory = {}, {}
        self._shared, self._placed = {}, {}

    def begin(self, shared):
        """Begins a step, for all of whose parameters these tensors are: grad_scale, found_inf and clip,
        where they are."""
        self._shared, self._placed = shared, {}

    def _place(self, device):
        if device not in self._placed:
            self._placed[device] = {
                name: self._shared[name].detach().to(device, torch.float32).reshape(1, 1)
                if name in self._shared else torch.full((1, 1), default, device=device)
                for name, default in _SHARED.items()} if self._shared else {}
        return self._placed[device]

    def settle(self, entries):
        """Makes the numbers of steps of parameters one tensor, of those that have the same label and always
        had gradients together. `entries` are of a state, what identifies its parameter, and a label."""
        together, used = {}, set()
        for state, parameter, label in entries:
            together.setdefault((id(state["step"]), label), []).append((state, parameter))
        found = {}
        for (key, label), each in together.items():
            step = each[0][0]["step"]
            if key not in self._members:
                # Asking a GPU waits for it: once, for parameters that are new here.
                found.setdefault((label, step.device, step.item()), []).extend(each)
                continue
            if key in used or self._members[key][1] - {parameter for _, parameter in each}:
                step = step.clone()  # Others, which share it, have no gradient.
            used.add(id(step))
            self._share(step, each)
        for each in found.values():
            self._share(each[0][0]["step"], each)

    def is_shared(self, step):
        """Whether several parameters may have this number of steps."""
        return id(step) in self._members

    def _share(self, step, each):
        for state, _ in each:
            state["step"] = step
        self._members[id(step)] = step, {parameter for _, parameter in each}

    def get(self, rule, group, step, device, ratio=1.0):
        """Tensors of one f32 by name, for parameters of a group. Counts the step, a tensor or None; `ratio` is what
        Muon's learning rate is multiplied by."""
        lr, found = group["lr"], self._place(device).get("found_inf") if "scaled" in rule.options else None
        reads_lr = isinstance(lr, torch.Tensor) and lr.is_cuda
        if reads_lr or self._is_of_gpu(step, device):
            views = self._compute(rule, group, step, device, lr if reads_lr else None, found, ratio)
        else:
            if step is not None:
                step += 1 if found is None else 1 - found.to(step.device).view(())
            count = None if step is None else step.item()
            numbers = {**make_numbers(rule, group, count, ratio), "count": count}
            views = self._write([numbers[name] for name in rule.factors if name in numbers], device)
        names = [name for name in rule.factors if name not in _SHARED]
        return {**dict(zip(names, views)), **self._place(device)}

    @staticmethod
    def _is_of_gpu(step, device):
        """Whether the host is not to be asked: it counts no step, or is not there when a graph runs."""
        if step is not None:
            return step.is_cuda
        return device.type == "cuda" and torch.cuda.is_current_stream_capturing()

    def _compute(self, rule, group, step, device, lr, found, ratio):
        """On a GPU, into memory that stays, by one launch."""
        if step is not None and not rule.counts:
            step += 1 if found is None else 1 - found.view(())
            return [*self._compute(rule, group, None, device, lr, None, ratio), step.view(1, 1)]
        function = step_program.compile(rule._replace(options=tuple(
            option for option in rule.options if option in ("late", "low", "decay"))), _get_constants(rule, group, ratio),
            lr is not None, found is not None, "auto")
        key = rule, id(group), None if step is None else id(step), device, ratio
        if key not in self._memory:
            count = sum(name not in _SHARED and name != "count" for name in rule.factors)
            self._memory[key] = torch.empty(1, count, device=device)
        numbers = self._memory[key]
        arguments = [] if step is None else [step.view(1, 1)] + ([] if found is None else [found])
        function(*arguments, float(group["lr"]) if lr is None else lr.to(device, torch.float32).view(1, 1), numbers)
        counts = [step.view(1, 1)] if "count" in rule.factors and step is not None else []
        return self._split(numbers.view(-1)) + counts

    def _write(self, numbers, device):
        values = torch.tensor(numbers, dtype=torch.float64).float()
        if device.type == "cuda":  # From pinned memory nobody waits for the copy.
            values = values.pin_memory().to(device, non_blocking=True)
        return self._split(values)

    @staticmethod
    def _split(numbers):
        return [numbers[i:i + 1].view(1, 1) for i in range(numbers.numel())]
