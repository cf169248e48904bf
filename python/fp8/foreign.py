"""Why an array of a framework cannot be handed out, in words of its users."""

import sys


def explain(array, reason):
    """What an array is, if it is one of PyTorch without memory of its own; else the first line
    of `reason`."""
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(array, torch.Tensor):
        reason = _explain_tensor(torch, array) or reason
    return reason.strip().partition("\n")[0]


def _explain_tensor(torch, tensor):
    kind = type(tensor)
    try:
        if torch._C._functorch.is_functorch_wrapped_tensor(tensor):
            return "a tensor within a transform of torch.func, such as vmap or grad"
        if tensor.is_nested:
            return "a nested tensor"
        if tensor.layout is not torch.strided:
            return f"a tensor of the layout {tensor.layout}"
        if tensor.device.type == "meta":
            return "a tensor on meta, which has no memory"
        if kind.__torch_dispatch__ is not torch.Tensor.__torch_dispatch__:
            return f"a {kind.__name__}, which has no memory of its own"
        if tensor._is_zerotensor():
            return "a tensor of zeros without memory; its clone() has some"
    except Exception:  # The class may make anything of its attributes.
        return f"a {kind.__name__}"
    return None
