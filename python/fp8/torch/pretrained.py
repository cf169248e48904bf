"""Whole models of transformers from quantized checkpoints, as they are published."""

import warnings
from pathlib import Path

import torch

from fp8 import programs
from fp8.errors import FileError, UnsupportedError
from fp8.torch import checkpoints, saved_graphs


def load_pretrained(directory, *, dtype=torch.bfloat16, device=None, activations=None, strict=True, make=None,
                    invariant=False):
    """A model of transformers for inference, of a directory with config.json and .safetensors. Its weights are never
    anything but what is stored of them: it is made on the device meta, and tensors are read one by one.

    - dtype: of what is not quantized, and of activations;
    - device: where it is to be, None for the CPU;
    - activations, strict, invariant: as load_quantized has them;
    - make: a function from the config to the model, None for transformers.AutoModelForCausalLM.

    Raises what load_quantized does, and UnsupportedError without transformers or for a model that it does not know.
    """
    try:
        from transformers import AutoConfig, AutoModelForCausalLM
    except ImportError as error:
        raise UnsupportedError("expected transformers, which makes the model") from error
    directory, device = Path(directory), torch.device(device or "cpu")
    if not directory.is_dir():
        raise FileError(f"{directory}: expected a directory with config.json and .safetensors, but there is none")
    try:
        config = AutoConfig.from_pretrained(directory)
    except OSError as error:
        raise FileError(f"{directory}: {error}") from error
    except (KeyError, ValueError) as error:
        raise UnsupportedError(f"{directory}: expected a model that transformers knows, but got: {error}") from error
    # What it says of weights is load_quantized's to read.
    config.__dict__.pop("quantization_config", None)
    with torch.device("meta"):
        model = (make or (lambda config: AutoModelForCausalLM.from_config(config, dtype=dtype)))(config)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*no checkpoint has such buffers")
        model = checkpoints.load_quantized(model, directory, strict, activations, device, invariant)
    _compute_buffers(model, device)
    programs.attach_own(directory, saved_graphs.take)
    return model.eval()


def _compute_buffers(model, device):
    """Values of buffers that no checkpoint has, such as frequencies of rotary embeddings, as transformers makes them."""
    for module in model.modules():
        names = [name for name, value in module._buffers.items() if value is not None and value.is_meta]
        for name in names:
            module._buffers[name] = torch.empty_like(module._buffers[name], device=device)
        if names:
            with torch.no_grad():
                model._init_weights(module)
