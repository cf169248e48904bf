# REQUIRES: pytorch, python-pytorch, python-transformers
# RUN: %import_python %s
"""Experts of transformers with quantized weights: what they compute beside the same experts in high precision, what is
saved of them, and whole models of which nothing but codes is ever in memory."""

import copy
import gc
import math
import sys
import tempfile
import unittest
from pathlib import Path
from unittest import mock

import torch
from torch import nn

import fp8
import fp8.torch
from fp8.torch import checkpoint_files, expert_programs, experts, packed, schemes, stored
from fp8.torch.experts import QuantizedExperts, find_gate, find_projections

sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).parent / "Inputs")]
import published as pub
from torch_published import GPT_OSS, LAYOUTS, TOKENS, get_error, make_config, make_model, write_gpt_oss, write_numbered

X = torch.randn(10, 128, generator=torch.Generator().manual_seed(0)).bfloat16()
SHARE, CHOSEN = torch.topk(torch.rand(10, 4, generator=torch.Generator().manual_seed(1)).softmax(-1), 2)
SHARE = SHARE.bfloat16()


def get_experts(kind):
    return copy.deepcopy(make_model(kind).model.layers[1].mlp.experts)


def quantize(module, *arguments, **options):
    return fp8.torch.quantize_for_inference(nn.ModuleDict({"experts": copy.deepcopy(module)}), *arguments, **options)


def get_values(projection):
    """The matrices of all experts in f32, in the order of the module that it was made of."""
    found = []
    for i in range(projection.groups):
        own = stored.get_stored(projection, i)
        if projection.scheme.is_mxfp4:
            found.append(packed.unlift(packed.lift(own["weight_packed"], own["weight_scale"])))
        else:
            found.append(own["weight"].float() * own["weight_scale"].float())
    return torch.stack(found)


def get_nvfp4(projection):
    """The same of weights in NVFP4, of which each part of the rows has a scale."""
    bytes_ = projection.weight_packed
    codes = torch.stack([bytes_ & 15, bytes_ >> 4], -1).flatten(-2).long()
    numbers = torch.tensor([0, 0.5, 1, 1.5, 2, 3, 4, 6])
    values = torch.cat([numbers, -numbers])[codes] * projection.weight_scale.float().repeat_interleave(16, -1)
    parts = projection.weight_global_scale
    return values / parts.repeat_interleave(projection.out_features // parts.shape[1], 1)[..., None]


class Experts(unittest.TestCase):
    def test_recipes(self):
        for kind in ("gpt_oss", "mixtral"):
            module = get_experts(kind)
            with torch.no_grad():
                expected = module(X, CHOSEN, SHARE)
                for options, limit in (
                        ({"recipe": "rowwise"}, 0.08), ({"recipe": "current"}, 0.08), ({"recipe": "block"}, 0.08),
                        ({"recipe": "mxfp8"}, 0.08), ({"recipe": "nvfp4"}, 0.3), ({"weights": "mxfp4"}, 0.25),
                        ({"weights": "mxfp4", "activations": "bf16"}, 0.25),
                        ({"weights": "mxfp8", "activations": "bf16"}, 0.06),
                        ({"weights": "nvfp4", "activations": "bf16"}, 0.2), ({"activations": "bf16"}, 0.06)):
                    with self.subTest(kind=kind, **options):
                        model = quantize(module, **options)
                        self.assertIsInstance(model["experts"], QuantizedExperts)
                        self.assertLess(get_error(model["experts"](X, CHOSEN, SHARE), expected), limit)
                        self.assertEqual([layer.name for layer in fp8.torch.report(model)],
                                         ["experts.gate_up_proj", "experts.down_proj"])

    def test_prepared(self):
        """fp8.torch.prepare compiles what calls take: one program, or two with a gate of PyTorch's between."""
        for kind, options, count in (("gpt_oss", {}, 1), ("gpt_oss", {"recipe": "block"}, 2)):
            model = quantize(get_experts(kind), **options)
            prepared = fp8.torch.prepare(model, dtype=torch.bfloat16)
            self.assertEqual((prepared.programs, prepared.left), (count, {}))
            with mock.patch("fp8.compile", side_effect=AssertionError("compiled")), torch.no_grad():
                model["experts"](X, CHOSEN, SHARE)
        model = quantize(get_experts("mixtral"))
        with mock.patch("fp8.torch.expert_programs.compile") as compile:
            fp8.torch.prepare(model, dtype=torch.float16, device="cuda")
        self.assertEqual({call.args[2:] for call in compile.call_args_list},
                         {("f16", rows, "auto") for rows in (16, 64, 256, 1024, 4096, None)})

    def test_own_weights(self):
        """With activations as they are, results are those of the weights that codes are."""
        for kind in ("gpt_oss", "mixtral"):
            module = get_experts(kind).float()
            for weights in ("mxfp4", None):
                made = quantize(module, weights=weights, activations="bf16")["experts"]
                with torch.no_grad():
                    for name in find_projections(module):
                        values = get_values(getattr(made, name))
                        getattr(module, name).copy_(values.mT if module.is_transposed else values)
                    expected = module(X.float(), CHOSEN, SHARE.float())
                    self.assertLess(get_error(made(X.float(), CHOSEN, SHARE.float()), expected), 1e-5)

    def test_states_of_other_factors(self):
        """How many scales of a tensor experts have is up to their values: a state_dict with others is loaded, and one with three
        is not."""
        module, made = get_experts("mixtral").float(), []
        scheme = schemes.make_scheme("nvfp4", False, "nvfp4", "bf16")
        second = quantize(module, weights="nvfp4", activations="bf16")["experts"].second
        for ratio in (1, 3):
            writer = experts.Writer(scheme, 4, 256, 128, "cpu", 2)
            for i in range(4):
                writer.put_stored(i, [schemes.quantize_weight(half[i] * scale, scheme) for half, scale in zip(
                    (module.gate_up_proj[:, :128],) * 2, (1, ratio))])
            made.append(QuantizedExperts(module, writer.finish(), copy.deepcopy(second)))
        with torch.no_grad():
            for own, other in (made, made[::-1]):
                self.assertNotEqual(own.first.weight_global_scale.shape, other.first.weight_global_scale.shape)
                loaded, state = copy.deepcopy(other), own.state_dict()
                before = {name: value.shape for name, value in state.items()}
                loaded.load_state_dict(state)
                self.assertEqual({name: value.shape for name, value in state.items()}, before)
                self.assertTrue(torch.equal(loaded(X, CHOSEN, SHARE), own(X, CHOSEN, SHARE)))
                state["gate_up_proj.weight_global_scale"] = torch.ones(4, 3)
                with self.assertRaisesRegex(RuntimeError, "size mismatch for gate_up_proj.weight_global_scale"):
                    loaded.load_state_dict(state)

    def test_two_factors(self):
        """A gate and what goes with it in NVFP4, each with its own scale for the tensor: rows have one number for each, no
        element has one. Where both scales are one, so are the numbers."""
        module, factors = get_experts("mixtral").float(), {}
        scheme = schemes.make_scheme("nvfp4", False, "nvfp4", "bf16")
        run = expert_programs.compile

        def compile(*arguments):
            function = run(*arguments)

            def call(*values):
                factors.update((i, value.nbytes // len(values[0])) for i, value in enumerate(values)
                               if i and value.dtype == torch.float32 and len(value) == len(values[0]))
                return function(*values)
            return call
        for differs in (False, True):
            halves = [half * (1 + 2 * differs * i) for i, half in enumerate(module.gate_up_proj.chunk(2, 1))]
            writer = experts.Writer(scheme, 4, 256, 128, "cpu", 2)
            for i in range(4):
                whole = schemes.quantize_weight(torch.cat([half[i] for half in halves]), scheme)
                parts = [schemes.quantize_weight(half[i], scheme) for half in halves] if differs else [
                    {name: value.chunk(2)[part] if len(value) > 1 else value for name, value in whole.items()} for part in (0, 1)]
                writer.put_stored(i, parts)
            second = quantize(module, weights="nvfp4", activations="bf16")["experts"].second
            first = writer.finish()
            made = QuantizedExperts(module, first, second)
            self.assertEqual(first.weight_global_scale.shape, (4, 1 + differs))
            expected = copy.deepcopy(module)
            for projection, name in ((first, "gate_up_proj"), (second, "down_proj")):
                getattr(expected, name).data.copy_(get_nvfp4(projection))
            factors.clear()
            with torch.no_grad(), mock.patch("fp8.torch.expert_programs.compile", compile):
                for dtype, limit in ((torch.float32, 1e-5), (torch.bfloat16, 0.01)):
                    error = get_error(made(X.to(dtype), CHOSEN, SHARE.to(dtype)), expected(X.float(), CHOSEN, SHARE.float()))
                    self.assertLess(error, limit)
            # Shares of experts, and a factor for each product, are 12 bytes of a row.
            self.assertLessEqual(sum(factors.values()), 12 + 4 * differs)

    def test_bytes(self):
        """Bytes of experts' weights, with all that comes with them, of those in bf16."""
        for groups, sizes in ((32, ((5760, 2880), (2880, 2880))), (64, ((4096, 2048), (2048, 2048)), )):
            for options, share in ((("rowwise", False, "mxfp4"), 0.27), (("rowwise", False, "mxfp4", "bf16"), 0.27),
                                   (("nvfp4", False, "nvfp4", "bf16"), 0.2813), (("block", False, "block", "bf16"), 0.5002)):
                scheme = expert_programs.make_grouped(schemes.make_scheme(*options))
                size = sum(math.prod(shape) * dtype.itemsize for n, k in sizes for shape, dtype in
                           experts.get_expected(scheme, groups, n, k, 2).values())
                self.assertLessEqual(size, share * sum(2 * groups * n * k for n, k in sizes))

    def test_gates(self):
        module = get_experts("mixtral")
        self.assertEqual(find_gate(module), (1.0, None, 0.0, False))
        expected = quantize(module)["experts"]
        self.assertIsNone(find_gate(nn.Module()))
        # Nothing is known of what is between the products: they are two programs.
        model = quantize(module)["experts"]
        model.gate = None
        with torch.no_grad():
            self.assertLess(get_error(model(X, CHOSEN, SHARE), expected(X, CHOSEN, SHARE)), 0.03)

    def test_other_devices(self):
        """Experts of other devices have numbers beyond, and give nothing; some have no token; none has one."""
        made = quantize(get_experts("gpt_oss"))["experts"]
        with torch.no_grad():
            all_ = made(X, CHOSEN, SHARE).float()
            one = made(X[:1], torch.tensor([[2, 9]]), torch.tensor([[0.5, 0.5]]).bfloat16())
            two = made(X[:1], torch.tensor([[2, 2]]), torch.tensor([[0.5, 0.0]]).bfloat16())
            self.assertTrue(torch.equal(one, two))
            self.assertEqual(made(X[:0], CHOSEN[:0], SHARE[:0]).shape, (0, 128))
            self.assertTrue(torch.equal(made(X[3:], CHOSEN[3:], SHARE[3:]).float(), all_[3:]))

    def test_graphs(self):
        made = quantize(get_experts("gpt_oss"), weights="mxfp4")["experts"]
        with torch.inference_mode():
            found = torch.compile(made, backend="aot_eager", fullgraph=True)(X, CHOSEN, SHARE)
            self.assertTrue(torch.equal(found, made(X, CHOSEN, SHARE)))

    def test_mistakes(self):
        made = quantize(get_experts("gpt_oss"))["experts"]
        for x, message in ((X[:, :-1], r"tokens x 128, but got torch.bfloat16 of \(10, 127\)"), (X.long(), "torch.int64"),
                           (X.float().requires_grad_(), "activations that require no gradient in experts")):
            with self.assertRaisesRegex(fp8.ArgumentError, message):
                made(x, CHOSEN, SHARE)
        with self.assertRaisesRegex(fp8.ArgumentError, "experts have no scales that stay"):
            quantize(get_experts("gpt_oss"), "current", calibration=[X])

    def test_state_dict(self):
        first, second = (quantize(get_experts("gpt_oss"), weights="mxfp4")["experts"] for _ in range(2))
        for value in second.parameters():
            value.data.view(torch.uint8).zero_()
        second.load_state_dict(first.state_dict())
        self.assertTrue(torch.equal(first.float()(X, CHOSEN, SHARE), second.float()(X, CHOSEN, SHARE)))
        self.assertEqual(first.gate_up_proj.weight_scale.dtype, torch.float32)
        self.assertEqual(first.gate_up_proj.weight_packed.dtype, torch.uint8)


class Saved(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.path = Path(folder.name)

    def test_layouts(self):
        """What was quantized here, written as others have it, and read again."""
        for kind, layout, options in (
                ("gpt_oss", "mxfp4", {"weights": "mxfp4", "filter": "*.experts"}),
                ("mixtral", "compressed-tensors", {"weights": "mxfp4"}),
                ("deepseek_v3", "compressed-tensors", {"recipe": "rowwise"}),
                ("mixtral", "compressed-tensors", {"recipe": "mxfp8"}),
                ("mixtral", "compressed-tensors", {"weights": "nvfp4", "activations": "bf16"}),
                ("qwen3_moe", "fp8", {"recipe": "block"})):
            with self.subTest(kind=kind, layout=layout, **options):
                model = fp8.torch.quantize_for_inference(make_model(kind), **{"filter": ["*", "!lm_head"], **options})
                fp8.torch.save_quantized(model, self.path, layout)
                loaded = fp8.torch.load_quantized(make_model(kind, seed=1), self.path)
                with torch.no_grad():
                    self.assertTrue(torch.equal(loaded(TOKENS).logits, model(TOKENS).logits))
        with self.assertRaisesRegex(fp8.ArgumentError, "expected a model of load_quantized for the layout original"):
            fp8.torch.save_quantized(model, self.path, "original")
        with self.assertRaisesRegex(fp8.UnsupportedError, "expected experts in MXFP4 alone in the layout mxfp4"):
            fp8.torch.save_quantized(model, self.path, "mxfp4")
        model = fp8.torch.quantize_for_inference(make_model("gpt_oss"), weights="mxfp4")
        with self.assertRaisesRegex(fp8.UnsupportedError, "expected experts without biases"):
            fp8.torch.save_quantized(model, self.path)

    def test_whole(self):
        """A model on meta: tensors are read one by one, and what is in memory are codes."""
        tensors, expected = write_gpt_oss(make_model("gpt_oss"))
        config = make_config("gpt_oss").to_dict()
        config["architectures"] = ["GptOssForCausalLM"]
        pub.write_shards(self.path, tensors, {**config, "quantization_config": GPT_OSS}, 3)
        size = sum(value.nbytes for value in tensors.values())
        largest = max(value.nbytes for value in tensors.values())
        kinds = torch.Tensor, nn.Parameter
        before = {id(value) for value in gc.get_objects() if type(value) in kinds}
        peak, load = 0, checkpoint_files.Files.load

        def count(*arguments):
            nonlocal peak
            loaded = load(*arguments)
            storages = {}
            for value in gc.get_objects():
                if type(value) in kinds and id(value) not in before and not value.is_meta:
                    storages[value.untyped_storage().data_ptr()] = value.untyped_storage().nbytes()
            peak = max(peak, sum(storages.values()))
            return loaded
        with mock.patch.object(checkpoint_files.Files, "load", count):
            model = fp8.torch.load_pretrained(self.path)
        self.assertLess(peak, 1.1 * size + 2 * largest)
        # Less than half of what experts alone would be in bf16.
        self.assertLess(peak, sum(value.nbytes for value in expected.parameters()))
        with torch.no_grad():
            self.assertLess(get_error(model(TOKENS).logits, expected(TOKENS).logits), 0.5)
            self.assertEqual(model.generate(TOKENS, max_new_tokens=4, do_sample=False).shape, (2, 16))
        self.assertFalse([name for name, value in model.named_buffers() if value.is_meta])

    def test_mixed_precision(self):
        """Layers in FP8, experts in bf16 that each have their own tensors."""
        model = make_model("mixtral")
        tensors, expected = write_numbered(model, "mixtral", "fp8-weight-only")
        for name in [name for name in tensors if ".experts." in name]:
            del tensors[name]
        with torch.no_grad():
            for index, layer in enumerate(model.model.layers):
                own = layer.mlp.experts
                expected.model.layers[index].mlp.experts = copy.deepcopy(own)
                for i in range(4):
                    gate, up = own.gate_up_proj[i].chunk(2)
                    for part, value in zip(("w1", "w3", "w2"), (gate, up, own.down_proj[i])):
                        tensors[f"model.layers.{index}.block_sparse_moe.experts.{i}.{part}.weight"] = (
                            value.contiguous().view(torch.uint8).numpy().view(pub.BF16).reshape(value.shape))
        pub.write_shards(self.path, tensors, {"quantization_config": LAYOUTS["fp8-weight-only"][1]})
        loaded = fp8.torch.load_quantized(make_model("mixtral", seed=1), self.path)
        with torch.no_grad():
            self.assertLess(get_error(loaded(TOKENS).logits, expected(TOKENS).logits), 0.02)
        with self.assertRaisesRegex(fp8.UnsupportedError, "as one tensor in the checkpoint, but it was made of several"):
            fp8.torch.save_quantized(loaded, self.path / "out", "original")


if __name__ == "__main__":
    unittest.main()
