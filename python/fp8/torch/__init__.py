"""FP8 in PyTorch: a backend of torch.compile, linear layers, and models for inference.

    import fp8.torch
    model = torch.compile(model, backend="fp8", options={"recipe": fp8.DelayedScaling()})
    # or
    fp8.torch.convert_to_fp8_training(model, fp8.DelayedScaling())
    # or
    fp8.torch.quantize_for_inference(model, fp8.RowwiseScaling())

The backend takes torch-mlir, layers do not. docs/Torch.md goes through the first two,
docs/Inference.md through the last.
"""

import importlib

from torch._dynamo import register_backend

from fp8.torch.modules import (Linear, autocast, convert_from_fp8, convert_to_fp8_training,
                               summarize)
from fp8.torch.steps import accumulate, accumulated, end_step, make_states

# What is imported when it is asked for.
_LATE = {"Attention": "attention_calls", "AttentionScales": "attention_scales", "Backend": "backend", "ColwiseParallel": "tensor_parallel",
         "KeyValueCache": "key_value_cache", "Lion": "lion",
         "Part": "parts", "QuantizedExperts": "experts", "QuantizedLinear": "quantized_linear",
         "RowwiseParallel": "tensor_parallel",
         "arrange": "arranged", "attend_to_cache": "cached_attention", "combine": "expert_parallel",
         "compile_regions": "regions",
         "cut_experts": "cut_mixtures", "cut_for_inference": "cut_linears", "dispatch": "expert_parallel",
         "explain": "backend", "flex_attention": "flex", "fuse_optimizer": "optimizers", "gather_in_fp8": "sharded",
         "load_pretrained": "pretrained", "load_quantized": "checkpoints", "make_cache": "transformers_cache",
         "packed_attention": "packed_sequences", "precompute_scales": "sharded", "prepare": "ready",
         "quantize_for_inference": "inference", "reduce_in_fp8": "gradient_codes", "register_attention": "transformers_attention",
         "report": "inference", "save_programs": "ready", "save_quantized": "checkpoints",
         "scaled_dot_product_attention": "scaled_dot_product", "set_group": "groups", "share_amaxes": "shared_amaxes",
         "use_attention": "autocasting"}

__all__ = ["Attention", "AttentionScales", "Backend", "ColwiseParallel", "KeyValueCache", "Linear", "Lion", "Part", "QuantizedExperts", "QuantizedLinear",
           "RowwiseParallel", "accumulate", "accumulated", "arrange", "attend_to_cache", "autocast", "combine", "compile_fp8",
           "compile_regions",
           "convert_from_fp8", "convert_to_fp8_training", "cut_experts", "cut_for_inference", "dispatch", "end_step", "explain",
           "flex_attention", "fuse_optimizer",
           "gather_in_fp8", "load_pretrained",
           "load_quantized", "make_cache", "make_states", "packed_attention", "precompute_scales", "prepare",
           "quantize_for_inference", "reduce_in_fp8", "register_attention", "report", "save_programs", "save_quantized",
           "scaled_dot_product_attention", "set_group", "share_amaxes", "summarize", "use_attention"]


def __getattr__(name):
    if name in _LATE:
        return getattr(importlib.import_module(f"fp8.torch.{_LATE[name]}"), name)
    raise AttributeError(f"module 'fp8.torch' has no attribute '{name}'")


def compile_fp8(module, inputs, *, recipe=None, options=None, **others):
    """What torch.compile calls for `backend="fp8"`."""
    from fp8.torch.backend import Backend
    return Backend(**{"recipe": recipe, **(options or {}), **others})(module, inputs)


register_backend(compile_fp8, name="fp8")
