"""Tensors as programs take them."""

import torch

from fp8.errors import ArgumentError

# Each call of a layer asks these.
_count_modes, _get_tracing_state = torch._C._len_torch_dispatch_stack, torch._C._get_tracing_state
_count_function_modes, _get_function_mode = torch._C._len_torch_function_stack, torch._C._get_function_stack_at


def make_dense(tensor):
    """A tensor in row-major order whose memory has its values: not negated ones, as that of
    torch.imag of a conjugate has."""
    # Asking is much cheaper than calling what then does nothing.
    if not torch.compiler.is_compiling() and tensor.is_contiguous() and not tensor.is_neg():
        return tensor
    return tensor.resolve_neg().contiguous()


def is_on_gpu(tensor):
    """Whether a GPU's programs compute with a tensor: asked here alone, so that those who emulate one can answer."""
    return tensor.is_cuda


def own(tensor):
    """The same for what an autograd.Function returns, whose views nobody could change in place."""
    return tensor.data if tensor._is_view() else tensor


def wait(tensor):
    """A tensor that other ranks send a part of, once it is there: a gradient of tensor parallelism may be on its way. It has
    no gradient."""
    if type(tensor) is torch.Tensor or not hasattr(tensor, "trigger_wait"):
        return tensor
    return tensor.trigger_wait()


def check_model(model):
    if not isinstance(model, torch.nn.Module):
        raise ArgumentError(f"expected the model to be a torch.nn.Module, but got {type(model).__name__}")


def check_tensor(tensor, what):
    """Raises ArgumentError for what no layer takes; errors call it `what`."""
    if not isinstance(tensor, torch.Tensor):
        raise ArgumentError(f"expected {what} to be a tensor, but got {type(tensor).__name__}")
    if tensor.is_nested or tensor.layout is not torch.strided:
        got = "nested" if tensor.is_nested else tensor.layout
        raise ArgumentError(f"expected {what} to be a dense tensor, but got a {got} one")
    if not torch.compiler.is_compiling() and (
            torch._C._functorch.is_functorch_wrapped_tensor(tensor)):
        raise ArgumentError(f"expected {what} to be a tensor, but got one within a transform of "
                            f"torch.func, such as vmap or grad, which a layer in FP8 is not for")


def is_recorded():
    """Whether calls become part of a graph, or are looked at by a mode that sees operations: torch.compile, torch.export,
    torch.jit.trace, make_fx, FlopCounterMode. What computes without operations would be missing there."""
    # Dynamo knows the answer of the first alone, and asks no other.
    return torch.compiler.is_compiling() or _count_modes() > 0 or _get_tracing_state() is not None


def saves_for_gradient(*tensors):
    """Whether a forward of tensors, or None, is one with a backward. What torch.jit.trace records is so with gradients and
    without: it checks itself without, and has to find as many results."""
    return (torch.is_grad_enabled() or not torch.compiler.is_compiling() and _get_tracing_state() is not None) and any(
        tensor is not None and tensor.requires_grad for tensor in tensors)


def is_watched_by_own():
    """Whether modes of PyTorch's functions are there, and all of them are ours and look for what a module calls itself
    (capture.Mode). Within a layer each would be asked of every size and type that is read, which takes the host longer
    than what the layer does; they take nothing of what layers call."""
    count = _count_function_modes()
    for i in range(count):
        if not getattr(_get_function_mode(i), "skips_layers", False):
            return False
    return count > 0


def is_plain(*tensors):
    """Whether tensors have memory that can be computed on: fake ones and those of meta have a
    shape and no more, which custom operations know what to do with."""
    for tensor in tensors:
        if type(tensor) not in (torch.Tensor, torch.nn.Parameter) or tensor.device.type == "meta":
            return False
    return True
