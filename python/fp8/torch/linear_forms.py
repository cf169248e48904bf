"""Subclasses of torch.nn.Linear whose forward is a linear layer's, written otherwise."""

import copy
import inspect

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils._python_dispatch import TorchDispatchMode

# What x @ w.T + b is made of, however it is spelled. Anything else may depend on more than it shows.
_OPERATIONS = {"t", "transpose", "permute", "numpy_T", "mm", "addmm", "bmm", "matmul", "linear", "add", "add_",
               "view", "_unsafe_view", "reshape", "expand", "squeeze", "unsqueeze", "clone", "alias",
               "detach", "_reshape_alias"}
_ROWS, _N, _K = 4, 3, 5


class _Recorder(TorchDispatchMode):
    """Collects the names of operations."""

    def __init__(self):
        super().__init__()
        self.names = set()

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        self.names.add(func.overloadpacket.__name__)
        return func(*args, **(kwargs or {}))


def _make_probe(module, cls):
    """A module of the class with the same settings and parameters that are small, in f64."""
    probe = cls.__new__(cls)
    # Containers of its own, so that what a forward notes does not reach the module.
    probe.__dict__.update({name: copy.copy(value) if isinstance(value, (dict, list, set)) else value
                           for name, value in module.__dict__.items()})
    parameters = {"weight": torch.randn(_N, _K, dtype=torch.float64, device="cpu"), "bias": None}
    if module.bias is not None:
        parameters["bias"] = torch.randn(_N, dtype=torch.float64, device="cpu")
    probe._parameters = {name: None if value is None else nn.Parameter(value, False)
                         for name, value in parameters.items()}
    probe.in_features, probe.out_features = _K, _N
    return probe


def _list_state(probe):
    """What a forward might write to: attributes, and how long its containers are."""
    return {name: (id(value), len(value) if isinstance(value, (dict, list, set)) else 0)
            for name, value in probe.__dict__.items()}


def _agrees(probe, cls, sizes):
    """Whether a forward of that many elements is F.linear's, by operations that it is made of."""
    x = torch.randn(sizes, dtype=torch.float64, device="cpu")
    with torch.no_grad(), _Recorder() as recorder:
        y = cls.forward(probe, x)
    expected = F.linear(x, probe.weight, probe.bias)
    return not recorder.names - _OPERATIONS and isinstance(y, torch.Tensor) and (
        y.dtype == x.dtype and y.shape == expected.shape
        and torch.allclose(y, expected, 1e-12, 1e-12))


def computes_linear(module, cls):
    """Whether the forward of a module, of the class `cls`, is F.linear(x, weight, bias), in training
    and in evaluation: compared on small parameters, without hooks. Not so for what has parameters,
    buffers or modules beside, for what takes more than x, and for what notes something."""
    if not issubclass(cls, nn.Linear) or module._buffers or module._modules or not (
            set(module._parameters) <= {"weight", "bias"}):
        return False
    if cls.forward is nn.Linear.forward:
        return True
    generator = torch.random.get_rng_state()
    try:
        if len(inspect.signature(cls.forward).parameters) != 2:
            return False
        probe = _make_probe(module, cls)
        for training in (True, False):
            probe.training = training
            before = _list_state(probe)
            if not all(_agrees(probe, cls, sizes) for sizes in ((_ROWS, _K), (2, _ROWS, _K))):
                return False
            if _list_state(probe) != before:
                return False
    except Exception:  # It wants other arguments, or sizes of its own.
        return False
    finally:
        torch.random.set_rng_state(generator)
    return True
