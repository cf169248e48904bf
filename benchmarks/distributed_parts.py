"""A decoder's layers cut by tensor and sequence parallelism, with torch's styles.

What is not cut (norms, embedding, head) is the same on all ranks. Each has the loss of its part of the sequence, and gradients
of what saw a part alone are added up behind a backward, as Megatron does it.
"""

import torch
import torch.distributed as dist
from torch.distributed.tensor import DTensor, Replicate, Shard
from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module

import fp8.torch


class _Take(torch.autograd.Function):
    """This rank's part of what is whole on all ranks, and so is its gradient."""

    @staticmethod
    def forward(ctx, x, cut):
        ctx.cut = cut
        return cut.take(x).contiguous()

    @staticmethod
    def backward(ctx, gradient):
        return ctx.cut.join(gradient), None


class _Wait(torch.autograd.Function):
    """What a collective returns, once it is there, as compiled functions take it."""

    @staticmethod
    def forward(ctx, y):
        return y.trigger_wait() if hasattr(y, "trigger_wait") else y.view_as(y)

    @staticmethod
    def backward(ctx, gradient):
        return gradient


_COLUMNS, _ROWS = ("q", "k", "v", "gate", "up"), ("o", "down")


class Cut:
    """`is_sequence` also cuts what is between products, along the sequence; `codes` then gathers it as codes."""

    def __init__(self, model, mesh, library, is_sequence, codes):
        self.mesh, self.library, self.is_sequence, self.codes = mesh, library, is_sequence, codes
        self.rank, self.count = mesh.get_local_rank(), mesh.size()
        columns, rows = ColwiseParallel, RowwiseParallel
        if library == "torchao":
            from torchao.float8.float8_tensor_parallel import Float8ColwiseParallel, Float8RowwiseParallel
            columns, rows = Float8ColwiseParallel, Float8RowwiseParallel
        if codes:
            columns, rows = fp8.torch.ColwiseParallel, fp8.torch.RowwiseParallel
        before = {"input_layouts": Shard(1)} if codes and is_sequence else {}
        behind = {"output_layouts": Shard(1)} if is_sequence else {}
        for layer in model.layers:
            parallelize_module(layer, mesh, {**{name: columns(**before) for name in _COLUMNS},
                                             **{name: rows(**behind) for name in _ROWS}})
            layer.cut = self
        model.cut = self

    def take(self, tensor):
        """This rank's part of the sequence."""
        return tensor.chunk(self.count, 1)[self.rank]

    def join(self, part):
        """The whole sequence of what ranks have parts of."""
        every = part.new_empty((self.count * part.shape[0], *part.shape[1:]))
        dist.all_gather_into_tensor(every, part.contiguous(), group=self.mesh.get_group())
        return torch.cat(every.chunk(self.count), 1)

    def take_inputs(self, tokens):
        return self.take(tokens).contiguous() if self.is_sequence else tokens

    def take_outputs(self, y):
        """The same of what is whole on all ranks: its gradient is whole again."""
        if self.is_sequence:
            return y
        return _Take.apply(y, self)

    def gather(self, y, layer):
        """The whole sequence, once for all layers that take it: their gradients are parts of a sum, which ranks add up
        once. Styles of ours gather for themselves."""
        if self.codes:
            return y
        y = DTensor.from_local(y, self.mesh, [Shard(1) if self.is_sequence else Replicate()], run_check=False)
        if self.library == "torchao":
            # What its PrepareFloat8ModuleInput does.
            from torchao.float8.config import e4m3_dtype
            from torchao.float8.float8_scaling_utils import hp_tensor_to_float8_dynamic
            from torchao.float8.float8_training_tensor import GemmInputRole
            y = hp_tensor_to_float8_dynamic(y, e4m3_dtype, layer.linear_mm_config, gemm_input_role=GemmInputRole.INPUT)
        return y.redistribute(placements=[Replicate()]) if self.is_sequence else y

    def wait(self, y):
        return y if torch.compiler.is_compiling() or self.codes else _Wait.apply(y)

    def reduce(self, model):
        """Adds up gradients of what saw a part of the sequence."""
        names = ("head",) if not self.is_sequence else ("head", "embedding", "norm", "before", "between")
        gradients = []
        for name, parameter in model.named_parameters():
            if parameter.grad is not None and name.split(".")[-2] in names:
                gradients.append(getattr(parameter.grad, "_local_tensor", parameter.grad))
        if gradients:
            flat = torch._utils._flatten_dense_tensors(gradients)
            dist.all_reduce(flat, group=self.mesh.get_group())
            torch._foreach_copy_(gradients, list(torch._utils._unflatten_dense_tensors(flat, gradients)))
