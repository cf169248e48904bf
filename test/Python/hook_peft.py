# REQUIRES: pytorch, python-pytorch, python-transformers, python-peft
# RUN: %import_python %s
"""LoRA by peft on quantized weights: losses and gradients beside the dequantized base, merge and unmerge, and
adapters that are saved; under every scheme."""

import copy
import importlib.util
import tempfile
import unittest

import peft
import torch
import transformers
from torch.utils._python_dispatch import TorchDispatchMode

import fp8
import fp8.peft
import fp8.torch
import fp8.transformers
from fp8.torch.quantized_linear import QuantizedLinear

SMALL = {"hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 2, "num_attention_heads": 4,
         "num_key_value_heads": 2, "vocab_size": 96, "max_position_embeddings": 64, "head_dim": 16}
IDS = torch.arange(24).reshape(2, 12) * 7 % 96
transformers.utils.logging.disable_progress_bar()
transformers.utils.logging.set_verbosity_error()
TARGETS = ["q_proj", "v_proj", "up_proj", "down_proj"]


def make_config(**options):
    return peft.LoraConfig(r=4, lora_alpha=8, target_modules=TARGETS, **options)


def make_base(recipe="rowwise", weights=None):
    torch.manual_seed(0)
    model = transformers.LlamaForCausalLM(transformers.LlamaConfig(**SMALL))
    return fp8.torch.quantize_for_inference(model, recipe, filter=["*", "!lm_head"], weights=weights)


def dequantize(model):
    """The same with plain layers, whose values are those of the codes."""
    made = copy.deepcopy(model)
    for name, module in list(made.named_modules()):
        if isinstance(module, QuantizedLinear):
            plain = torch.nn.Linear(module.in_features, module.out_features, False)
            plain.weight.data.copy_(module.dequantize())
            made.set_submodule(name, plain)
    return made


def fill(model):
    """Adapters that are not zero, the same in each model."""
    generator = torch.Generator().manual_seed(3)
    for name, value in model.named_parameters():
        if "lora_" in name:
            value.data.normal_(0, 0.05, generator=generator)


def get_gradients(model):
    model.zero_grad()
    loss = model(input_ids=IDS, labels=IDS).loss
    loss.backward()
    return loss.item(), torch.cat([value.grad.flatten() for name, value in model.named_parameters()
                                   if "lora_" in name])


class Largest(TorchDispatchMode):
    """How many elements the largest f32 tensor has that operations make, of those that are computed."""

    elements = 0

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        result = function(*args, **kwargs or {})
        for value in torch.utils._pytree.tree_leaves(result):
            if isinstance(value, torch.Tensor) and value.dtype == torch.float32 and "randn" not in str(function):
                self.elements = max(self.elements, value.numel())
        return result


def make_layer(dtype, by_peft=False, **options):
    """A layer of 64 inputs and 32 outputs with an adapter that is not zero."""
    torch.manual_seed(0)
    model = torch.nn.Sequential()
    model.add_module("q_proj", torch.nn.Linear(64, 32).to(dtype))
    fp8.torch.quantize_for_inference(model)
    model = peft.get_peft_model(model, fp8.peft.register(
        peft.LoraConfig(r=4, lora_alpha=8, target_modules=["q_proj"], **options), by_peft))
    layer = model.get_base_model().q_proj
    fill(layer)
    return layer


def make_input(dtype):
    generator = torch.Generator().manual_seed(5)
    return torch.randn(3, 16, 64, generator=generator).to(dtype).requires_grad_()


def run_layer(layer, dtype):
    """The result of a layer and gradients of what it takes and of the adapter."""
    torch.manual_seed(7)  # For dropout.
    x = make_input(dtype)
    y = layer(x)
    values = [value for name, value in layer.named_parameters() if ".default." in name]
    return [y, *torch.autograd.grad(y, [x, *values], make_input(dtype)[..., :32].detach())]


def compare(case, found, expected, tolerance):
    for value, wanted in zip(found, expected, strict=True):
        case.assertEqual((value.dtype, value.shape), (wanted.dtype, wanted.shape))
        case.assertLess(((value.float() - wanted.float()).norm() / wanted.float().norm()).item(), tolerance)


class LoRA(unittest.TestCase):
    def test_beside_dequantized(self):
        for recipe, weights, tolerance in (("rowwise", None, 0.12), ("current", None, 0.12),
                                           ("mxfp8", None, 0.12), ("nvfp4", None, 0.4),
                                           ("rowwise", "mxfp4", 0.12)):
            with self.subTest(recipe, weights=weights):
                base = make_base(recipe, weights)
                codes = {name: value.clone() for name, value in base.named_parameters()}
                plain = peft.get_peft_model(dequantize(base), make_config())
                model = peft.get_peft_model(base, fp8.peft.register(make_config()))
                fill(plain), fill(model)
                loss, gradients = get_gradients(model)
                expected_loss, expected = get_gradients(plain)
                self.assertLess(abs(loss / expected_loss - 1), 0.01)
                error = ((gradients - expected).norm() / expected.norm()).item()
                self.assertTrue(0 < error < tolerance, error)
                # Adapters alone are trained, and the base is what it was.
                trained = [name for name, value in model.named_parameters() if value.requires_grad]
                self.assertTrue(trained and all("lora_" in name for name in trained))
                self.assertEqual({value.dtype for name, value in model.named_parameters() if "lora_" in name},
                                 {torch.float32})
                for name, value in model.get_base_model().named_parameters():
                    name = name.replace(".base_layer", "")
                    if name in codes:
                        self.assertTrue(torch.equal(value.view(torch.uint8), codes[name].view(torch.uint8)), name)

    def test_learns(self):
        model = peft.get_peft_model(make_base(), fp8.peft.register(make_config()))
        optimizer = torch.optim.AdamW([value for value in model.parameters() if value.requires_grad], 0.01)
        losses = []
        for _ in range(8):
            losses.append(model(input_ids=IDS, labels=IDS).loss)
            losses[-1].backward()
            optimizer.step()
            optimizer.zero_grad()
        self.assertLess(losses[-1].item(), losses[0].item() - 0.1)

    @unittest.skipUnless(importlib.util.find_spec("accelerate"), "takes accelerate")
    def test_trainer(self):
        """A model that from_pretrained quantizes, with adapters, in a Trainer."""
        with tempfile.TemporaryDirectory() as folder:
            torch.manual_seed(0)
            transformers.LlamaForCausalLM(transformers.LlamaConfig(**SMALL)).save_pretrained(folder)
            model = transformers.AutoModelForCausalLM.from_pretrained(
                folder, quantization_config=fp8.transformers.FP8Config("rowwise"))
            model = peft.get_peft_model(model, fp8.peft.register(make_config()))
            trainer = transformers.Trainer(model, transformers.TrainingArguments(
                folder, max_steps=4, per_device_train_batch_size=2, use_cpu=True, report_to=[], logging_steps=1,
                learning_rate=1e-2, disable_tqdm=True, save_strategy="no"),
                train_dataset=[{"input_ids": row, "labels": row} for row in IDS.repeat(8, 1)])
            trainer.train()
            losses = [entry["loss"] for entry in trainer.state.log_history if "loss" in entry]
        self.assertLess(losses[-1], losses[0])
        self.assertIsInstance(model.get_base_model().model.layers[0].mlp.up_proj.base_layer, QuantizedLinear)

    def test_merge(self):
        model = peft.get_peft_model(make_base(), fp8.peft.register(make_config())).eval()
        fill(model)
        layer = model.get_base_model().model.layers[1].mlp.up_proj
        with torch.no_grad():
            apart, before = model(input_ids=IDS).logits, layer.base_layer.get_tensors()
            wanted = layer.base_layer.dequantize() + layer.get_delta_weight("default")
            model.merge_adapter(safe_merge=True)
            merged = layer.base_layer.dequantize()
            self.assertLess(((merged - wanted).norm() / wanted.norm()).item(), 0.04)
            error = ((model(input_ids=IDS).logits - apart).norm() / apart.norm()).item()
            self.assertTrue(0 < error < 0.1, error)
            model.unmerge_adapter()
            for value, old in zip(layer.base_layer.get_tensors(), before):
                self.assertTrue(torch.equal(value.view(torch.uint8), old.view(torch.uint8)))
            self.assertTrue(torch.equal(model(input_ids=IDS).logits, apart))
            alone = model.merge_and_unload()
        self.assertIs(type(alone.model.layers[1].mlp.up_proj), QuantizedLinear)

    def test_merge_of_what_arranged_codes_cannot_have(self):
        """Factors above 2^7: the layer and those beside it are plain until the adapters are taken out again."""
        torch.manual_seed(0)
        base = transformers.LlamaForCausalLM(transformers.LlamaConfig(**SMALL)).bfloat16()
        fp8.torch.quantize_for_inference(base, filter=["*", "!lm_head"], weights="mxfp8", activations="bf16")
        fp8.torch.arrange(base)
        model = peft.get_peft_model(base, fp8.peft.register(make_config())).eval()
        fill(model)
        attention = model.get_base_model().model.layers[1].self_attn
        for layer in (attention.q_proj, attention.v_proj):
            layer.lora_B["default"].weight.data *= 3e6
        layers = [module for module in model.modules() if isinstance(module, QuantizedLinear)]
        beside = list(attention.q_proj.base_layer._row.layers)
        self.assertLessEqual({attention.q_proj.base_layer, attention.v_proj.base_layer}, set(beside))
        before = [value.view(torch.uint8).clone() for layer in layers for value in layer.get_tensors()]
        with torch.no_grad():
            apart = model(input_ids=IDS).logits
            wanted = attention.q_proj.base_layer.dequantize() + attention.q_proj.get_delta_weight("default").float()
            model.merge_adapter()
            self.assertEqual({layer.scheme.arranged for layer in beside}, {False})
            self.assertTrue(all(layer.scheme.arranged for layer in layers if layer not in beside))
            merged = attention.q_proj.base_layer.dequantize()
            self.assertLess(((merged - wanted).norm() / wanted.norm()).item(), 0.04)
            self.assertTrue(model(input_ids=IDS).logits.isfinite().all())
            model.unmerge_adapter()
            after = [value.view(torch.uint8) for layer in layers for value in layer.get_tensors()]
            self.assertTrue(all(layer.scheme.arranged for layer in layers))
            self.assertTrue(all(map(torch.equal, after, before)))
            self.assertTrue(torch.equal(model(input_ids=IDS).logits, apart))
            # Who asks for plain codes in between has them afterwards, too.
            model.merge_adapter()
            fp8.torch.arrange(model, arranged=False)
            model.unmerge_adapter()
            self.assertFalse(any(layer.scheme.arranged for layer in layers))
            self.assertTrue(torch.equal(model(input_ids=IDS).logits, apart))

    def test_unmerge_of_what_arranged_codes_cannot_have(self):
        """Codes that are arranged while an adapter is merged, which took away what they have no room for."""
        base = torch.nn.ModuleDict({"q_proj": torch.nn.Linear(64, 64, False).bfloat16()})
        column, row = torch.full((64, 1), 2.0**21), torch.ones(1, 64)
        base["q_proj"].weight.data.copy_(column @ row)
        fp8.torch.quantize_for_inference(base, weights="mxfp8", activations="bf16")
        config = peft.LoraConfig(r=1, lora_alpha=1, target_modules=["q_proj"])
        model = peft.inject_adapter_in_model(fp8.peft.register(config), base)
        layer = model["q_proj"].base_layer
        self.assertIn("larger than 2^7", fp8.torch.arrange(model)["q_proj.base_layer"])
        before = [value.view(torch.uint8).clone() for value in layer.get_tensors()]
        model["q_proj"].lora_A["default"].weight.data.copy_(row)
        model["q_proj"].lora_B["default"].weight.data.copy_(-column)
        model["q_proj"].merge()
        self.assertEqual(fp8.torch.arrange(model)["q_proj.base_layer"], "arranged")
        model["q_proj"].unmerge()
        self.assertFalse(layer.scheme.arranged)
        self.assertTrue(all(map(torch.equal, [value.view(torch.uint8) for value in layer.get_tensors()], before)))

    def test_conv1d(self):
        """GPT-2's config says that weights are the other way round, which codes are not."""
        torch.manual_seed(0)
        model = transformers.GPT2LMHeadModel(transformers.GPT2Config(
            n_embd=64, n_layer=1, n_head=4, vocab_size=96, n_positions=64, resid_pdrop=0, embd_pdrop=0, attn_pdrop=0))
        fp8.torch.quantize_for_inference(model, filter=["*", "!lm_head"])
        config = peft.LoraConfig(r=4, target_modules=["c_attn", "c_fc"], fan_in_fan_out=True)
        model = peft.get_peft_model(model, fp8.peft.register(config)).eval()
        fill(model)
        with torch.no_grad():
            apart = model(input_ids=IDS).logits
            model.merge_adapter()
            error = ((model(input_ids=IDS).logits - apart).norm() / apart.norm()).item()
        self.assertTrue(0 < error < 0.1, error)

    def test_saved(self):
        model = peft.get_peft_model(make_base(), fp8.peft.register(make_config())).eval()
        fill(model)
        with tempfile.TemporaryDirectory() as folder, torch.no_grad():
            model.save_pretrained(folder)
            again = fp8.peft.load(make_base(), folder).eval()
            self.assertTrue(torch.equal(again(input_ids=IDS).logits, model(input_ids=IDS).logits))

    def test_bfloat16_and_checkpointing(self):
        """Activations in bf16, adapters in f32, and layers whose forward is computed again."""
        base = make_base()
        for module in base.modules():
            if not isinstance(module, QuantizedLinear):
                for value in module.parameters(recurse=False):
                    value.data = value.data.to(torch.bfloat16)
        model = peft.get_peft_model(base, fp8.peft.register(make_config()))
        fill(model)
        loss, expected = get_gradients(model)
        model.enable_input_require_grads()
        model.gradient_checkpointing_enable()
        model.train()
        again, gradients = get_gradients(model)
        self.assertEqual(again, loss)
        self.assertTrue(torch.equal(gradients, expected))

    def test_adapters_are_computed_with_activations(self):
        """Beside peft's own: the same in f32; in bf16 within its roundings, with no tensor of f32 as large as
        activations, the same in graphs, with hooks on the base, and where two adapters are peft's."""
        for dtype, tolerance in ((torch.float32, 1e-5), (torch.bfloat16, 0.02)):
            for dropout in (0.0, 0.4):
                with self.subTest(dtype, dropout=dropout):
                    layer, theirs = (make_layer(dtype, by_peft, lora_dropout=dropout) for by_peft in (False, True))
                    made = Largest()
                    with made:
                        found = run_layer(layer, dtype)
                    if dtype == torch.bfloat16:
                        self.assertLess(made.elements, 48 * 32)
                    compare(self, found, run_layer(theirs, dtype), tolerance)
                    layer.base_layer.register_forward_hook(lambda module, arguments, result: None)
                    compare(self, run_layer(layer, dtype), found, tolerance)
        layer = make_layer(torch.bfloat16)
        found = run_layer(layer, torch.bfloat16)
        compare(self, run_layer(torch.compile(layer, backend="aot_eager"), torch.bfloat16), found, 0.02)
        layer.update_layer("other", 4, 8, config=peft.LoraConfig(r=4))
        layer.set_adapter(["default", "other"])
        compare(self, run_layer(layer, torch.bfloat16), found, 0.02)

    def test_results_are_changed(self):
        """In place, as RoCBert's embeddings do."""
        layer = make_layer(torch.float32)
        y = layer(make_input(torch.float32))
        y += 1
        y.sum().backward()
        self.assertIsNotNone(layer.lora_B["default"].weight.grad)

    def test_first_layers_and_autocast(self):
        """Activations without a gradient, as embeddings have, and f32 that autocast makes bf16."""
        layer, theirs = make_layer(torch.float32), make_layer(torch.float32, True)
        for each in (layer, theirs):
            each(make_input(torch.float32).detach()).sum().backward()
        for name, value in layer.named_parameters():
            self.assertEqual(value.grad is None, not value.requires_grad)
        self.assertLess((layer.lora_B["default"].weight.grad - theirs.lora_B["default"].weight.grad).norm(), 1e-4)
        with torch.autocast("cpu", torch.bfloat16):
            y = layer(make_input(torch.float32))
        self.assertEqual(y.dtype, torch.bfloat16)
        with self.assertRaisesRegex(fp8.UnsupportedError, "no second derivative"):
            torch.autograd.grad(layer(make_input(torch.float32)).sum(), layer.lora_A["default"].weight,
                                create_graph=True)

    def test_head(self):
        """A head of few bits, too, whose gradient stays in high precision."""
        for weights in (None, "mxfp4"):
            base = make_base(weights=weights)
            fp8.torch.quantize_for_inference(base, filter="lm_head", weights=weights, activations="bf16")
            self.assertIsInstance(base.lm_head, QuantizedLinear)
            self.assertIsNone(base.lm_head.scheme.input_block)
            self.assertIsNotNone(base.model.layers[0].mlp.up_proj.scheme.input_block)
            plain = peft.get_peft_model(dequantize(base), make_config())
            model = peft.get_peft_model(base, fp8.peft.register(make_config()))
            fill(plain), fill(model)
            loss, gradients = get_gradients(model)
            expected_loss, expected = get_gradients(plain)
            self.assertLess(abs(loss / expected_loss - 1), 0.01)
            self.assertLess(((gradients - expected).norm() / expected.norm()).item(), 0.12)

    def test_refused(self):
        for options, text in (({"use_dora": True}, "DoRA"), ({"init_lora_weights": "pissa"}, "'pissa'")):
            with self.assertRaisesRegex(fp8.UnsupportedError, text):
                peft.get_peft_model(make_base(), fp8.peft.register(make_config(**options)))
        with self.assertRaisesRegex(fp8.ArgumentError, "expected a LoraConfig"):
            fp8.peft.register(peft.IA3Config())


if __name__ == "__main__":
    unittest.main()
