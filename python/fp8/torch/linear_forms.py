"""Subclasses of torch.nn.Linear whose forward is a linear layer's, written otherwise."""

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
    probe.__dict__.update(module.__dict__)
    parameters = {"weight": torch.randn(_N, _K, dtype=torch.float64, device="cpu"), "bias": None}
    if module.bias is not None:
        parameters["bias"] = torch.randn(_N, dtype=torch.float64, device="cpu")
    probe._parameters = {name: None if value is None else nn.Parameter(value, False)
                         for name, value in parameters.items()}
    probe.in_features, probe.out_features = _K, _N
    return probe


def computes_linear(module, cls):
    """Whether the forward of a module, of the class `cls`, is F.linear(x, weight, bias): compared on
    small parameters, without hooks. Not so for what has parameters, buffers or modules beside."""
    if not issubclass(cls, nn.Linear) or module._buffers or module._modules or not (
            set(module._parameters) <= {"weight", "bias"}):
        return False
    if cls.forward is nn.Linear.forward:
        return True
    generator = torch.random.get_rng_state()
    try:
        probe = _make_probe(module, cls)
        for sizes in ((_ROWS, _K), (2, _ROWS, _K)):
            x = torch.randn(sizes, dtype=torch.float64, device="cpu")
            with torch.no_grad(), _Recorder() as recorder:
                y = cls.forward(probe, x)
            expected = F.linear(x, probe.weight, probe.bias)
            if recorder.names - _OPERATIONS or not (
                    isinstance(y, torch.Tensor) and y.dtype == x.dtype
                    and y.shape == expected.shape and torch.allclose(y, expected, 1e-12, 1e-12)):
                return False
    except Exception:  # It wants other arguments, or sizes of its own.
        return False
    finally:
        torch.random.set_rng_state(generator)
    return True
