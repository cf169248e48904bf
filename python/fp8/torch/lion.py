"""Lion, an optimizer that torch.optim does not have."""

import torch

from fp8.errors import ArgumentError


class Lion(torch.optim.Optimizer):
    """Lion (Chen et al., Symbolic discovery of optimization algorithms, 2023): steps by the sign of a mean.

        p = p * (1 - lr * weight_decay)
        p = p - lr * sign(beta1 * exp_avg + (1 - beta1) * gradient)
        exp_avg = beta2 * exp_avg + (1 - beta2) * gradient

    - params: parameters, or groups of them, as torch.optim takes them;
    - lr: a number, or a tensor of one; a third to a tenth of AdamW's, with a weight_decay that is as much greater;
    - betas, weight_decay, maximize: as above; `maximize` takes the gradient's negative.

    Numbers are computed in f32, and rounded to the parameter's type once. fp8.torch.fuse_optimizer takes it. Raises
    ArgumentError for numbers below 0, or betas of 1 and more.
    """

    def __init__(self, params, lr=1e-4, betas=(0.9, 0.99), weight_decay=0.0, *, maximize=False):
        if not isinstance(lr, torch.Tensor) and not lr >= 0 or not weight_decay >= 0:
            raise ArgumentError(f"expected lr and weight_decay of at least 0, but got {lr} and {weight_decay}")
        if len(betas) != 2 or not all(0 <= beta < 1 for beta in betas):
            raise ArgumentError(f"expected two betas in [0, 1), but got {betas}")
        super().__init__(params, {"lr": lr, "betas": betas, "weight_decay": weight_decay, "maximize": maximize})

    @torch.no_grad()
    def step(self, closure=None):
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        for group in self.param_groups:
            for parameter in group["params"]:
                if parameter.grad is not None:
                    self._step_one(parameter, group)
        return loss

    def _step_one(self, parameter, group):
        lr, (beta1, beta2) = float(group["lr"]), group["betas"]
        state = self.state[parameter]
        if "exp_avg" not in state:
            state["exp_avg"] = torch.zeros_like(parameter)
        dtype = torch.promote_types(parameter.dtype, torch.float32)
        gradient = parameter.grad.to(dtype)
        gradient = -gradient if group["maximize"] else gradient
        mean, value = state["exp_avg"].to(dtype), parameter.to(dtype)
        update = (mean * beta1 + gradient * (1 - beta1)).sign_()
        parameter.copy_((value * (1 - lr * group["weight_decay"])).add_(update, alpha=-lr))
        state["exp_avg"].copy_((mean * beta2).add_(gradient, alpha=1 - beta2))
