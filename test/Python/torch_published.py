# REQUIRES: pytorch, python-pytorch, python-transformers
# RUN: %import_python %s
"""Checkpoints of transformers' models in the layouts that are published, written by hand (Inputs/published.py): models with
them beside the same models with the values that codes and scales are, and files written back, bit by bit."""

import copy
import json
import sys
import tempfile
import unittest
from pathlib import Path

import numpy as np
import torch
import transformers
from torch import nn

import fp8
import fp8.torch
from fp8.torch.experts import QuantizedExperts
from fp8.torch.quantized_linear import QuantizedLinear

sys.path.insert(0, str(Path(__file__).parent / "Inputs"))
import published as pub

HIDDEN, INNER, EXPERTS = 128, 128, 4
COMMON = {"hidden_size": HIDDEN, "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2,
          "head_dim": 32, "vocab_size": 64, "max_position_embeddings": 64, "num_experts_per_tok": 2,
          "initializer_range": 0.1}
TOKENS = torch.arange(24).reshape(2, 12)


def make_config(kind, **more):
    if kind == "gpt_oss":
        return transformers.GptOssConfig(**COMMON, intermediate_size=INNER, num_local_experts=EXPERTS, sliding_window=8,
                                         **more)
    if kind == "mixtral":
        return transformers.MixtralConfig(**COMMON, intermediate_size=INNER, num_local_experts=EXPERTS, **more)
    if kind == "qwen3_moe":
        return transformers.Qwen3MoeConfig(**COMMON, intermediate_size=INNER, moe_intermediate_size=INNER,
                                           num_experts=EXPERTS, norm_topk_prob=True, **more)
    if kind == "deepseek_v3":
        return transformers.DeepseekV3Config(
            **{**COMMON, "num_key_value_heads": 4, "head_dim": 16}, intermediate_size=INNER,
            moe_intermediate_size=INNER, n_routed_experts=EXPERTS, n_shared_experts=1, q_lora_rank=32,
            kv_lora_rank=32, qk_rope_head_dim=16, qk_nope_head_dim=16, v_head_dim=32, first_k_dense_replace=1, n_group=1, topk_group=1, **more)
    if kind == "llama4":
        return transformers.Llama4TextConfig(**COMMON, intermediate_size=INNER, intermediate_size_mlp=INNER,
                                             num_local_experts=EXPERTS, interleave_moe_layer_step=1, **more)
    if kind == "step3p7":
        text = {**COMMON, "intermediate_size": INNER, "moe_intermediate_size": INNER, "n_routed_experts": EXPERTS,
                "share_expert_dim": INNER, "sliding_window": 8, "mlp_layer_types": ["dense", "sparse"]}
        vision = {"hidden_size": 32, "num_hidden_layers": 1, "num_attention_heads": 2, "image_size": 28}
        return transformers.Step3p7Config(text_config=text, vision_config=vision, image_token_id=63, **more)
    raise ValueError(kind)


def make_model(kind, seed=0):
    torch.manual_seed(seed)
    config = make_config(kind)
    config._experts_implementation = "eager"
    is_step = kind == "step3p7"
    factory = transformers.AutoModelForImageTextToText if is_step else transformers.AutoModelForCausalLM
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        model = factory.from_config(config, dtype=torch.bfloat16)
    with torch.no_grad():
        for name, value in model.named_parameters():
            if "experts." in name or value.ndim > 1:
                value.normal_(0, 0.1)
    return model.eval()


def make_meta(kind):
    return make_model(kind, seed=1)


def to_numpy(tensor):
    tensor = tensor.detach().contiguous()
    return tensor.view(torch.uint8).numpy().view(pub.BF16).reshape(tensor.shape) if tensor.dtype == torch.bfloat16 else (
        tensor.numpy())


def get_error(value, expected):
    return ((value.double() - expected.double()).norm() / expected.double().norm()).item()


# How a matrix is quantized, and what its tensors are called behind its name, for layers and numbered experts.
def of_rows(weight):
    codes, scales, values = pub.quantize_rows(weight)
    return {".weight": codes, ".weight_scale": scales.astype(pub.BF16)}, codes.astype(np.float64) * scales.astype(
        pub.BF16).astype(np.float64)


def of_block(weight):
    codes, scales, values = pub.quantize_block(weight)
    return {".weight": codes, ".weight_scale_inv": scales}, values


def of_ue8m0(weight):
    codes, scales, values = pub.quantize_block(weight, is_power=True)
    return {".weight": codes, ".weight_scale_inv": scales.astype(pub.E8M0)}, values


def of_block_alone(weight):
    codes, scales, values = pub.quantize_block(weight)
    return {".weight": codes, ".weight_scale": scales[:, None, :, None]}, values


def of_mxfp8(weight):
    codes, scales, values = pub.quantize_mxfp8(weight)
    return {".weight": codes, ".weight_scale": scales.view(np.uint8)}, values


def of_mxfp4(weight):
    codes, scales, values = pub.quantize_mxfp4(weight)
    return {".weight_packed": codes, ".weight_scale": scales.view(np.uint8)}, values


def of_deepseek_fp4(weight):
    codes, scales, values = pub.quantize_mxfp4(weight)
    return {".weight": codes.view(np.int8), ".scale": scales}, values


def of_nvfp4(weight):
    codes, scales, factor, values = pub.quantize_nvfp4(weight)
    return {".weight_packed": codes, ".weight_scale": scales, ".weight_global_scale": np.reshape(1 / factor, 1)}, values


def of_nvfp4_static(weight):
    tensors, values = of_nvfp4(weight)
    return {**tensors, ".input_global_scale": np.array([2688 / 8], np.float32)}, values


def of_nvfp4_modelopt(weight):
    codes, scales, factor, values = pub.quantize_nvfp4(weight)
    return {".weight": codes, ".weight_scale": scales, ".weight_scale_2": factor}, values


def of_tensor_modelopt(weight):
    codes, scale, values = pub.quantize_tensor(weight)
    return {".weight": codes, ".weight_scale": scale, ".input_scale": np.array(0.02, np.float32)}, values


def turn(stack):
    return np.ascontiguousarray(stack.swapaxes(-1, -2))


def of_stack_fp4(weight):
    codes, scales, factor, values = pub.quantize_nvfp4(weight)
    return {"": turn(codes), "_weight_scale": turn(scales), "_weight_scale_2": factor}, values


def of_stack_static_fp4(weight):
    tensors, values = of_stack_fp4(weight)
    return {**tensors, "_input_scale": np.array(0.02, np.float32)}, values


def of_stack_tensor(weight):
    made = [pub.quantize_tensor(one) for one in weight]
    codes, scales, values = (np.stack(part) for part in zip(*made))
    return {"": turn(codes), "_weight_scale": scales, "_input_scale": np.full(len(scales), 0.02, np.float32)}, values


def of_stack_rows(weight):
    codes, scales, values = pub.quantize_rows(weight)
    return {"": turn(codes), "_weight_scale": scales[..., 0]}, values


# How ModelOpt has experts of gpt-oss, whose matrices stay K x N in one tensor.
STACKS = {"NVFP4": of_stack_static_fp4, "W4A16_NVFP4": of_stack_fp4, "FP8": of_stack_tensor,
          "FP8_PER_CHANNEL_PER_TOKEN": of_stack_rows}


def ct(weights, activations, format):
    """A config of compressed-tensors."""
    common = {"symmetric": True, "dynamic": False, "type": "float", "actorder": None}
    return {"quant_method": "compressed-tensors", "format": format, "ignore": ["lm_head", "re:.*gate$", "re:.*router.*"],
            "config_groups": {"group_0": {
                "targets": ["Linear"], "format": format, "weights": {**common, **weights},
                "input_activations": activations and {**common, **weights, **activations}}}}


ROWS = {"num_bits": 8, "strategy": "channel"}
FP4 = {"num_bits": 4, "group_size": 16, "strategy": "tensor_group", "scale_dtype": "torch.float8_e4m3fn"}
MX8 = {"num_bits": 8, "group_size": 32, "strategy": "group", "scale_dtype": "torch.uint8"}
MX4 = {**MX8, "num_bits": 4}
DEEPSEEK = {"quant_method": "fp8", "activation_scheme": "dynamic", "fmt": "e4m3", "weight_block_size": [128, 128]}
# The kind of quantization and the config.
LAYOUTS = {
    "fp8-dynamic": (of_rows, ct(ROWS, {"dynamic": True, "strategy": "token"}, "float-quantized")),
    "fp8-weight-only": (of_rows, ct(ROWS, None, "float-quantized")),
    "mxfp8": (of_mxfp8, ct(MX8, {"dynamic": True}, "mxfp8-quantized")),
    "mxfp8-weight-only": (of_mxfp8, ct(MX8, None, "mxfp8-quantized")),
    "mxfp8-by-format": (of_mxfp8, ct({**MX8, "scale_dtype": None}, {"dynamic": True}, "mxfp8-quantized")),
    "mxfp4": (of_mxfp4, ct(MX4, None, "mxfp4-pack-quantized")),
    "nvfp4": (of_nvfp4_static, ct(FP4, {"dynamic": "local"}, "nvfp4-pack-quantized")),
    "nvfp4-weight-only": (of_nvfp4, ct(FP4, None, "nvfp4-pack-quantized")),
    "deepseek": (of_block, DEEPSEEK),
    "deepseek-ue8m0": (of_ue8m0, {**DEEPSEEK, "scale_fmt": "ue8m0"}),
    "modelopt-fp8": (of_tensor_modelopt, {"quant_method": "modelopt", "quant_algo": "FP8"}),
    "modelopt-fp8-blocks": (of_block_alone, {"quant_method": "modelopt", "quant_algo": "fp8_pb_wo"}),
    "modelopt-w4a16": (of_nvfp4_modelopt, {"quant_method": "modelopt", "quant_algo": "W4A16_NVFP4"}),
}
NUMBERED = {"mixtral": ("w1", "w3", "w2"), "qwen3_moe": ("gate_proj", "up_proj", "down_proj"),
            "deepseek_v3": ("gate_proj", "up_proj", "down_proj")}


def multiply_exactly(module):
    """Weights in f64 are exactly what codes and scales are. Those of NVFP4 are no bf16: rounded ones would make as large
    an error as the activations, which changes whom a router selects where two are nearly as good."""
    module.double()
    module.register_forward_pre_hook(lambda _, inputs: tuple(x.double() if x.is_floating_point() else x for x in inputs))
    module.register_forward_hook(lambda _, inputs, y: y.bfloat16())


def rename(kind, name):
    return name.replace(".mlp.", ".block_sparse_moe.") if kind == "mixtral" else name


def write_numbered(model, kind, layout, of_experts=None):
    """Tensors of a model with numbered experts, and the model with the values that they are. Layers of attention and
    experts are quantized, those that route and the head not."""
    quantize, _ = LAYOUTS[layout]
    model, tensors = copy.deepcopy(model), {}

    def put(prefix, weight, how):
        made, values = how(weight.detach().double().numpy())
        tensors.update((rename(kind, prefix) + end, value) for end, value in made.items())
        return torch.from_numpy(values)
    quantized = set()
    with torch.no_grad():
        for name, module in model.named_modules():
            if isinstance(module, nn.Linear) and name != "lm_head":
                quantized.add(f"{name}.weight")
                multiply_exactly(module)
                module.weight.copy_(put(name, module.weight, quantize))
            elif name.endswith(".experts"):
                quantized.update((f"{name}.gate_up_proj", f"{name}.down_proj"))
                multiply_exactly(module)
                for i in range(EXPERTS):
                    gate, up = module.gate_up_proj[i].chunk(2)
                    parts = [put(f"{name}.{i}.{part}", weight, of_experts or quantize) for part, weight in zip(
                        NUMBERED[kind], (gate, up, module.down_proj[i]))]
                    module.gate_up_proj[i].copy_(torch.cat(parts[:2]))
                    module.down_proj[i].copy_(parts[2])
    for name, value in model.state_dict().items():
        if name not in quantized:
            tensors[rename(kind, name)] = to_numpy(value)
    return tensors, model


def of_blocks(weight):
    codes, scales, values = pub.quantize_mxfp4(weight)
    return {"_blocks": codes.reshape(*scales.shape, 16), "_scales": scales.view(np.uint8)}, values


def write_gpt_oss(model, quantize=of_blocks):
    """The same as gpt-oss has it: experts alone, each projection one tensor. `quantize` is given all N x K, interleaved."""
    model, tensors = copy.deepcopy(model), {}
    with torch.no_grad():
        for name, module in model.named_modules():
            if name.endswith(".experts"):
                for projection in ("gate_up_proj", "down_proj"):
                    weight = getattr(module, projection)
                    made, values = quantize(weight.detach().double().mT.numpy())
                    tensors.update((f"{name}.{projection}{end}", value) for end, value in made.items())
                    weight.copy_(torch.from_numpy(values).mT)
    for name, value in model.state_dict().items():
        if not name.endswith(("experts.gate_up_proj", "experts.down_proj")):
            tensors[name] = to_numpy(value)
    return tensors, model


GPT_OSS = {"quant_method": "mxfp4", "modules_to_not_convert": [
    "model.layers.*.self_attn", "model.layers.*.mlp.router", "model.embed_tokens", "lm_head"]}


class Published(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.path = Path(folder.name)

    def write(self, tensors, quantization, count=2, **more):
        pub.write_shards(self.path / "in", tensors, {"model_type": "own", **more, "quantization_config": quantization},
                         count)
        return self.path / "in"

    def check(self, kind, tensors, quantization, expected, config=(), **options):
        """Loads as it is written and with activations in bf16, computes beside `expected`, and writes back."""
        source = self.write(tensors, quantization, **dict(config))
        for activations, limit in (("bf16", 0.02), (None, 0.5)):
            loaded = fp8.torch.load_quantized(make_meta(kind), source, activations=activations)
            with torch.no_grad():
                error = get_error(loaded(TOKENS).logits, expected(TOKENS).logits)
            self.assertLess(error, limit)
        for size in (None, 40000):
            fp8.torch.save_quantized(loaded, self.path / "out", "original", max_shard_size=size)
            self.assertEqual(pub.read_shards(self.path / "out"), pub.read_shards(source))
            self.assertEqual(json.loads((self.path / "out" / "config.json").read_text()),
                             json.loads((source / "config.json").read_text()))
            for file in (self.path / "out").glob("*"):
                file.unlink()
        for file in source.glob("*"):
            file.unlink()
        return loaded

    def test_gpt_oss(self):
        tensors, expected = write_gpt_oss(make_model("gpt_oss"))
        loaded = self.check("gpt_oss", tensors, GPT_OSS, expected)
        experts = loaded.model.layers[0].mlp.experts
        self.assertIsInstance(experts, QuantizedExperts)
        self.assertEqual(experts.gate, (1.702, 7.0, 1.0, True))
        size = sum(value.nbytes for name, value in experts.named_parameters() if not name.endswith("bias"))
        self.assertLessEqual(size, (0.25 + 1 / 64 + 2 / HIDDEN) * 2 * 3 * EXPERTS * HIDDEN * INNER)

    def test_numbered(self):
        for number, (layout, (_, config)) in enumerate(LAYOUTS.items()):
            kind = list(NUMBERED)[number % 3]
            with self.subTest(layout, kind=kind):
                tensors, expected = write_numbered(make_model(kind), kind, layout)
                loaded = self.check(kind, tensors, config, expected)
                kinds = [type(module) for module in loaded.modules()]
                self.assertIn(QuantizedExperts, kinds)
                self.assertIn(QuantizedLinear, kinds)

    def test_modelopt_stacks(self):
        """Experts that ModelOpt leaves in one tensor, K x N as gpt-oss has them: N of one projection is K / 2."""
        for algorithm, quantize in STACKS.items():
            with self.subTest(algorithm):
                tensors, expected = write_gpt_oss(make_model("gpt_oss"), quantize)
                self.check("gpt_oss", tensors, {"quant_method": "modelopt", "quant_algo": algorithm}, expected)

    def test_modelopt_mixed(self):
        """Layers by their names, and experts that were one module by its name."""
        tensors, expected = write_numbered(make_model("qwen3_moe"), "qwen3_moe", "modelopt-fp8", of_nvfp4_modelopt)
        layers = {name.removesuffix(".weight_scale"): {"quant_algo": "FP8"} for name in tensors
                  if name.endswith(".weight_scale") and ".experts." not in name}
        layers.update((f"model.layers.{i}.mlp.experts", {"quant_algo": "W4A16_NVFP4", "group_size": 16}) for i in range(2))
        self.check("qwen3_moe", tensors, {"quant_method": "modelopt", "quant_algo": "MIXED_PRECISION",
                                          "quantized_layers": layers}, expected)
        del layers["model.layers.1.mlp.experts"]
        source = self.write(tensors, {"quant_method": "modelopt", "quant_algo": "MIXED_PRECISION", "quantized_layers": layers})
        with self.assertRaisesRegex(fp8.MismatchError, "quantized_layers of the config does not have it"):
            fp8.torch.load_quantized(make_meta("qwen3_moe"), source)

    def test_deepseek_fp4(self):
        """Layers in blocks with E8M0, experts in MXFP4."""
        tensors, expected = write_numbered(make_model("deepseek_v3"), "deepseek_v3", "deepseek-ue8m0", of_deepseek_fp4)
        self.check("deepseek_v3", tensors, {**DEEPSEEK, "scale_fmt": "ue8m0"}, expected,
                   config={"expert_dtype": "fp4"})


if __name__ == "__main__":
    unittest.main()
