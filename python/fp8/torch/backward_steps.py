"""Steps of parameters within a backward, each when its gradient is complete, so that gradients do not live together."""

import weakref

import torch

from fp8.errors import ArgumentError, UnsupportedError
from fp8.torch.update_items import is_taken

# Parameters of fewer elements keep their gradients until the optimizer's step, which is one launch for many of them.
LEAST = 1 << 16


def _has_ranks():
    distributed = torch.distributed
    return distributed.is_available() and distributed.is_initialized() and distributed.get_world_size() > 1


class BackwardSteps:
    """Hooks of an optimizer's parameters that make a plan's step of them."""

    def __init__(self, optimizer, plan):
        self._optimizer, self._plan = weakref.ref(optimizer), plan
        self._handles, self._groups, self._done = [], {}, set()
        # By which GradScaler tells the step, in place of unscaling what gradients there still are.
        self._supports = optimizer.__dict__.get("_step_supports_amp_scaling")
        optimizer._step_supports_amp_scaling = True
        self.attach()

    def attach(self):
        """Once more behind new parameters."""
        self._remove_hooks()
        self_of, optimizer = weakref.ref(self), self._optimizer()

        def run(parameter):
            own = self_of()
            if own is not None:
                own._run(parameter)

        for number, group in enumerate(optimizer.param_groups):
            for place, parameter in enumerate(group["params"]):
                if parameter.numel() >= LEAST and parameter.is_leaf and parameter.requires_grad:
                    self._groups[id(parameter)] = number, place
                    self._handles.append(parameter.register_post_accumulate_grad_hook(run))

    def _remove_hooks(self):
        for handle in self._handles:
            handle.remove()
        self._handles, self._groups = [], {}

    def remove(self):
        """Steps are the optimizer's again."""
        self._remove_hooks()
        optimizer = self._optimizer()
        if self._supports is None:
            optimizer.__dict__.pop("_step_supports_amp_scaling", None)
        else:
            optimizer._step_supports_amp_scaling = self._supports

    def _find_group(self, parameter):
        """The number of a parameter's group, or None: groups change between steps."""
        groups, (number, place) = self._optimizer().param_groups, self._groups[id(parameter)]
        if number < len(groups) and place < len(groups[number]["params"]) and groups[number]["params"][place] is parameter:
            return number
        for number, group in enumerate(groups):
            for place, each in enumerate(group["params"]):
                if each is parameter:
                    self._groups[id(parameter)] = number, place
                    return number
        return None

    def _run(self, parameter):
        if self._optimizer() is None or not is_taken(parameter):
            return  # The optimizer's step takes it.
        number = self._find_group(parameter)
        if number is None:
            return
        self._check(parameter)
        self._done.add(id(parameter))
        with torch.no_grad():
            self._plan.step((number, parameter))
        parameter.grad = None

    def _check(self, parameter):
        if id(parameter) in self._done:
            raise UnsupportedError("expected a step of the optimizer behind each backward, but got a second backward: with "
                                   "in_backward gradients are not accumulated, since each is gone once its parameter had a step; "
                                   "layers that several checkpoints share need use_reentrant=False")
        if not self._plan.has_own_steps(parameter):
            raise UnsupportedError("expected a backward outside of fp8.torch.accumulated, but got one within: with in_backward "
                                   "a weight has its codes within the backward, before its layer's step of scaling ends")
        if _has_ranks():
            raise UnsupportedError("expected one process, but got several: with in_backward a parameter has its step before "
                                   "gradients of other processes are added")
        if self._optimizer().clip_factor is not None:
            raise UnsupportedError("expected clip_factor to be None, but got a tensor: with in_backward parameters have their "
                                   "steps before all gradients, and so their norm, are known")

    def skip(self):
        """The next backward is another step's, where one did not come to its end."""
        self._done.clear()

    def end(self):
        """What the optimizer's step begins with: the next backward is another step's."""
        optimizer = self._optimizer()
        self.skip()
        if getattr(optimizer, "grad_scale", None) is not None or getattr(optimizer, "found_inf", None) is not None:
            raise UnsupportedError("expected gradients that are not scaled, but got GradScaler's: with in_backward parameters "
                                   "had their steps before gradients were unscaled, and searched for Inf; bf16 needs no scaler")


def check_settings(settings):
    """Raises ArgumentError for what takes all gradients of a step."""
    if settings.max_norm is not None:
        raise ArgumentError(f"expected no max_norm with in_backward, but got {settings.max_norm}: the norm of all gradients is "
                            "known when the last one is, and the first ones are gone by then")
