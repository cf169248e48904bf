"""Parts of a module's forward that activation checkpointing repeats in the backward, outside of the forward's mode."""

import sys

import torch


def _run(make_mode, function, *arguments, **keywords):
    with make_mode():
        return function(*arguments, **keywords)


class _Repeated:
    """A function that runs in a mode of its own each time."""

    def __init__(self, make_mode, function):
        self.make_mode, self.function = make_mode, function

    def __call__(self, *arguments, **keywords):
        return _run(self.make_mode, self.function, *arguments, **keywords)


def _get_hooks():
    return torch._C._autograd._top_saved_tensors_default_hooks(False)


class Place:
    """Where a forward begins: what is checkpointed further in is its own."""

    def __init__(self, code):
        """`code` is of the function that the forward is called by."""
        hooks = _get_hooks()
        self._codes, self._has_grad = (code, _run.__code__), torch.is_grad_enabled()
        self._pack = None if hooks is None else hooks[0]

    def _list_checkpoints(self):
        """What will repeat the present call, and the name of its function."""
        hooks = _get_hooks()
        if hooks is not None and hooks[0] is not self._pack:
            code, closure = getattr(hooks[0], "__code__", None), getattr(hooks[0], "__closure__", None) or ()
            if code is not None and "frame" in code.co_freevars:
                yield closure[code.co_freevars.index("frame")].cell_contents, "recompute_fn"
        if not self._has_grad or torch.is_grad_enabled():
            return
        # A reentrant one, of PyTorch or others, computes without gradients first.
        frame = sys._getframe(1)
        while frame is not None and frame.f_code not in self._codes:
            if frame.f_code.co_name == "forward":
                yield frame.f_locals.get("ctx"), "run_function"
            frame = frame.f_back

    def keep(self, make_mode):
        """Repeats the present call in the mode that `make_mode` makes, if it is checkpointed."""
        for owner, name in self._list_checkpoints():
            function = getattr(owner, name, None)
            if callable(function) and not isinstance(function, _Repeated):
                setattr(owner, name, _Repeated(make_mode, function))
