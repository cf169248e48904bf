"""What a training step keeps between forward and backward, in bytes, counted and not computed.

Graphs of models with the sizes of zoo.py, and of a layer of Llama 3 8B with 8192 tokens, are made of tensors without values
and divided as torch.compile does for Inductor, and as the backend has it: what goes into a cast is computed again. From that
are taken off the bytes of values that products of two matrices alone read (fp8.torch.kept_codes), which a recipe of one scale
for a tensor keeps as codes. Arguments and parameters, which are there anyway, do not count, but for those that become codes.
Needs no GPU. A model that reads values, as to compare them, has no such graph.

usage: kept_bytes.py [--models NAMES] [--layers N]
"""

import argparse
import warnings
from unittest import mock

import optimizers
import torch
import zoo_models
import zoo_others
from torch._functorch import config
from torch._inductor import compile_fx
from torch._subclasses.fake_tensor import FakeTensorMode

from fp8.torch import graphs, kept_codes

MODELS = {**zoo_models.MODELS, **zoo_others.MODELS}


def make(name, layers):
    """A model and its inputs."""
    if name == "layer":
        sizes = 2, optimizers.TOKENS // 2, optimizers.WIDTH
        return optimizers.Layer(), (torch.empty(sizes, requires_grad=True),), {}
    sizes = zoo_models.Sizes()
    sizes.device, sizes.layers = "cpu", layers
    model, inputs = MODELS[name](sizes)
    return model.train(), (), inputs


def count(forward, backward, outputs, parameters):
    """Bytes that one graph keeps, and those of them that are twice those of their codes."""
    inputs = {node.name for node in graphs.get_placeholders(forward.graph)}
    found = kept_codes.find(forward, backward, outputs, parameters)
    kept = multiplied = 0
    for node in graphs.get_placeholders(backward.graph):
        value = node.meta["val"]
        if not isinstance(value, torch.Tensor) or node.name.startswith("tangents"):
            continue
        size = value.numel() * value.element_size()
        kept += size * (node.name not in inputs or node.name in found)
        multiplied += size * (node.name in found and value.element_size() == 2)
    return kept, multiplied


def run(name, layers, is_backend):
    """The same of all graphs of a model."""
    found, divide = [], compile_fx.min_cut_rematerialization_partition

    def keep(module, inputs, **options):
        halves = divide(module, inputs, **{"compiler": "inductor", **options})
        found.append(count(*halves, options["num_fwd_outputs"], parameters))
        return halves

    def compile(graph, inputs, **others):
        values = [node.meta["val"] if isinstance(node, torch.fx.Node) else node for node in graphs.get_outputs(graph.graph)]

        def call(arguments):
            return tuple(torch.empty_like(value) if isinstance(value, torch.Tensor) else value for value in values)

        call._boxed_call = True
        return call

    def backend(module, inputs):
        nonlocal parameters
        parameters = [graphs.get_parameter_name(node) for node in graphs.get_placeholders(module.graph)]
        with config.patch(enable_autograd_cache=False, ban_recompute_materialized_backward=not is_backend):
            return compile_fx.compile_fx(module, inputs, inner_compile=compile)

    parameters = []
    torch._dynamo.reset()
    with FakeTensorMode(allow_non_fake_inputs=True), mock.patch.object(
            compile_fx, "min_cut_rematerialization_partition", keep):
        model, arguments, inputs = make(name, layers)
        torch.compile(model, backend=backend)(*arguments, **inputs)
    return [sum(sizes) for sizes in zip(*found)]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--models", nargs="*", default=["layer", *MODELS])
    parser.add_argument("--layers", type=int, default=2)
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    torch.set_default_dtype(torch.bfloat16)
    print(f"torch {torch.__version__}, MB")
    print(f"{'model':16}{'Inductor':>10}{'backend':>10}{'with codes':>12}{'/Inductor':>11}")
    for name in arguments.models:
        try:
            (inductor, _), (backend, multiplied) = (run(name, arguments.layers, is_backend) for is_backend in (False, True))
        except Exception as error:
            print(f"{name:16}{type(error).__name__}: {str(error).splitlines()[0][:80]}", flush=True)
            continue
        coded = backend - multiplied / 2
        print(f"{name:16}{inductor / 1e6:10.1f}{backend / 1e6:10.1f}{coded / 1e6:12.1f}{coded / inductor:11.2f}", flush=True)


if __name__ == "__main__":
    main()
