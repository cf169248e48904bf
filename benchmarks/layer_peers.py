"""The layers of layers.py in PyTorch, as its users write them, with autograd's gradients."""

from timing import torch


def mlp(x, w_gate, w_up, w_down):
    linear, silu = torch.nn.functional.linear, torch.nn.functional.silu
    return linear(silu(linear(x, w_gate)) * linear(x, w_up), w_down)


def norm_mlp(x, w_norm, w_gate, w_up, w_down):
    h = torch.nn.functional.rms_norm(x, (x.shape[-1],), w_norm, eps=1e-5)
    return mlp(h, w_gate, w_up, w_down)


def linear(x, w):
    return torch.nn.functional.linear(x, w)


def projections(x, **weights):
    return {name.removeprefix("w_"): torch.nn.functional.linear(x, w)
            for name, w in weights.items()}


def gelu_mlp(x, w_up, b_up, w_down, b_down):
    linear, gelu = torch.nn.functional.linear, torch.nn.functional.gelu
    return linear(gelu(linear(x, w_up, b_up), approximate="tanh"), w_down, b_down)


def compile_forward(forward):
    return torch.compile(forward, dynamic=False)


def run_step(forward, values):
    """y, or what forward names, and where there is a dy, the gradients of all other arguments;
    by name."""
    arguments = {name: value for name, value in values.items() if name != "dy"}
    if "dy" not in values:
        with torch.no_grad():
            y = forward(**arguments)
        return y if isinstance(y, dict) else {"y": y}
    y = forward(**arguments)
    gradients = torch.autograd.grad(y, tuple(arguments.values()), values["dy"])
    return {"y": y.detach(),
            **{f"d{name}": gradient for name, gradient in zip(arguments, gradients)}}


def make_value(name, shape):
    """Activations and gradients of variance 1, weights that keep it, small biases."""
    value = torch.randn(shape, device="cuda")
    if name == "w_norm":
        value = 1 + 0.1 * value
    elif name.startswith("w"):
        value *= shape[-1] ** -0.5
    elif name.startswith("b"):
        value *= 0.1
    return value


def make_values(names_and_shapes):
    values = {name: make_value(name, shape).to(torch.bfloat16)
              for name, shape in names_and_shapes.items()}
    return with_gradients(values)


def with_gradients(values):
    for name, value in values.items():
        value.requires_grad_("dy" in values and name != "dy")
    return values


def run_exactly(forward, values):
    """The step in f32."""
    torch.set_float32_matmul_precision("highest")  # No TF32.
    return run_step(forward, with_gradients({name: value.detach().float()
                                             for name, value in values.items()}))


# ===----------------------------------------------------------------------===
# Errors
# ===----------------------------------------------------------------------===


def get_errors(values, exact):
    """Errors of the norm, and the greatest, both beside those of what is exact; by name."""
    rows = {}
    for name, value in values.items():
        difference = value.float() - exact[name]
        rows[name] = {"norm": (difference.norm() / exact[name].norm()).item(),
                      "max": (difference.abs().max() / exact[name].abs().max()).item()}
    return rows
