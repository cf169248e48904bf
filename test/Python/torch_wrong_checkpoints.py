# REQUIRES: pytorch, python-pytorch, python-transformers
# RUN: %import_python %s
"""Checkpoints that are not what they say: refused by name, with the model as it was."""

import copy
import json
import os
import random
import sys
import tempfile
import unittest
import warnings
from pathlib import Path

import numpy as np
import torch

import fp8
import fp8.torch

sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).parent / "Inputs")]
import published as pub
from torch_published import GPT_OSS, LAYOUTS, STACKS, make_model, write_gpt_oss, write_numbered


class Wrong(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.path = Path(folder.name)

    def refuse(self, kind, *patterns):
        model = make_model(kind, seed=1)
        before = {name: value.clone() for name, value in model.state_dict().items()}
        modules = [type(module) for module in model.modules()]
        with self.assertRaises(fp8.Error) as caught:
            fp8.torch.load_quantized(model, self.path)
        for pattern in patterns:
            self.assertRegex(str(caught.exception), pattern)
        self.assertEqual([type(module) for module in model.modules()], modules)
        for name, value in model.state_dict().items():
            self.assertTrue(torch.equal(value, before[name]))

    def write(self, tensors, quantization, **more):
        for file in self.path.glob("*"):
            file.unlink()
        pub.write_shards(self.path, tensors, {**more, "quantization_config": quantization}, 1)

    def test_tensors(self):
        """One tensor of a quantized matrix is absent, cut, of another type, or has scales that are none."""
        rng = np.random.default_rng(0)
        models = {"gpt_oss": (*write_gpt_oss(make_model("gpt_oss")), GPT_OSS)}
        for algorithm in ("NVFP4", "FP8_PER_CHANNEL_PER_TOKEN"):
            models["gpt_oss", algorithm] = (*write_gpt_oss(make_model("gpt_oss"), STACKS[algorithm]),
                                            {"quant_method": "modelopt", "quant_algo": algorithm})
        for kind, layout in (("mixtral", "fp8-dynamic"), ("qwen3_moe", "nvfp4-weight-only"), ("mixtral", "mxfp4"),
                             ("deepseek_v3", "deepseek-ue8m0"), ("qwen3_moe", "mxfp8")):
            models[kind, layout] = (*write_numbered(make_model(kind), kind, layout), LAYOUTS[layout][1])
        for key, (tensors, _, quantization) in models.items():
            kind = key if isinstance(key, str) else key[0]
            coded = [name for name, value in tensors.items()
                     if ("proj" in name or ".w" in name) and value.dtype != pub.BF16 and (
                         "scale" in name or value.dtype != np.float32) or name.endswith("_scale")]
            for name in rng.choice(coded, 6, replace=False):
                for action in ("absent", "cut", "wider", "type", "scale"):
                    changed, value = dict(tensors), tensors[name]
                    if action == "absent":
                        del changed[name]
                    elif action in ("cut", "wider") and value.ndim < 2:
                        continue
                    elif action == "cut":
                        changed[name] = np.ascontiguousarray(value[..., :-1] if value.shape[-1] > 1 else value[:-1])
                    elif action == "wider":
                        changed[name] = np.concatenate([value, value], 0)
                    elif action == "type":
                        changed[name] = np.zeros(value.shape, np.int8).view(np.int8) if "scale" in name else (
                            np.zeros(value.shape, np.float32))
                    elif "scale" in name and value.size > 1:
                        as_bytes = np.array(value)
                        as_bytes.view(np.uint8).reshape(-1)[:] = 255  # NaN in each of the formats.
                        changed[name] = as_bytes
                    else:
                        continue
                    with self.subTest(kind=key, name=name, action=action):
                        self.write(changed, quantization)
                        layer = name.split(".")[2]
                        self.refuse(kind, rf"layers\.{layer}\.")

    def test_no_directory(self):
        with self.assertRaisesRegex(fp8.FileError, "nowhere: expected a directory with config.json"):
            fp8.torch.load_pretrained(self.path / "nowhere")

    def test_experts(self):
        tensors, _ = write_numbered(make_model("qwen3_moe"), "qwen3_moe", "fp8-dynamic")
        config = LAYOUTS["fp8-dynamic"][1]
        prefix = "model.layers.1.mlp.experts"
        fewer = {name: value for name, value in tensors.items() if not name.startswith(f"{prefix}.3.")}
        more = {**tensors, **{name.replace(f"{prefix}.3.", f"{prefix}.4."): value for name, value in tensors.items()
                              if name.startswith(f"{prefix}.3.")}}
        plain = {**tensors, f"{prefix}.2.up_proj.weight": np.zeros((128, 128), np.float32)}
        mixed = {name: value for name, value in tensors.items() if not (name.startswith(prefix) and "down" in name)}
        for changed, message in ((fewer, "for 4 experts, but got 3"), (more, "for 4 experts, but got 5"),
                                 (plain, rf"expected codes of '{prefix}.2.up_proj', as other experts have, but got F32"),
                                 (mixed, rf"expected codes of '{prefix}.down_proj', as the other projection has")):
            with self.subTest(message):
                self.write(changed, config)
                self.refuse("qwen3_moe", message)

    def test_labels(self):
        """The config of another layout."""
        for kind, layout, others in (
                ("mixtral", "fp8-dynamic", ("mxfp8", "mxfp4", "nvfp4", "nvfp4-weight-only", "deepseek", "modelopt-fp8")),
                ("mixtral", "mxfp4", ("mxfp8", "nvfp4-weight-only", "fp8-dynamic", "deepseek")),
                ("mixtral", "nvfp4-weight-only", ("mxfp4", "mxfp8", "nvfp4", "fp8-weight-only")),
                ("mixtral", "deepseek", ("fp8-dynamic", "mxfp8", "modelopt-fp8", "modelopt-w4a16"))):
            tensors, _ = write_numbered(make_model(kind), kind, layout)
            for other in others:
                with self.subTest(layout=layout, other=other):
                    self.write(tensors, LAYOUTS[other][1])
                    self.refuse(kind, r"layers\.0\.")
        tensors, _ = write_gpt_oss(make_model("gpt_oss"))
        self.write(tensors, {**GPT_OSS, "modules_to_not_convert": ["model.layers.*"]})
        self.refuse("gpt_oss", "in high precision, since modules_to_not_convert has it")
        self.write(tensors, LAYOUTS["nvfp4-weight-only"][1])
        self.refuse("gpt_oss", r"layers\.0\.")

    def test_files(self):
        """Cut anywhere, of other bytes in the header, and an index that says something else."""
        tensors, _ = write_gpt_oss(make_model("gpt_oss"))
        self.write(tensors, GPT_OSS)
        file = self.path / "model.safetensors"
        data, rng = file.read_bytes(), np.random.default_rng(0)
        header = int.from_bytes(data[:8], "little")
        for size in [0, 7, 8, header, header + 7, len(data) - 1, *rng.integers(0, len(data), 8)]:
            file.write_bytes(data[:size])
            self.refuse("gpt_oss", "model.safetensors")
        file.write_bytes(data + b"\0")
        self.refuse("gpt_oss", "model.safetensors")
        for place in rng.integers(8, 8 + header, 12):
            file.write_bytes(data[:place] + bytes([data[place] ^ 0x80]) + data[place + 1:])
            self.refuse("gpt_oss", "model.safetensors")
        self.write(tensors, GPT_OSS)
        index = self.path / "model.safetensors.index.json"
        names = dict.fromkeys(tensors, "model.safetensors")
        for text, message in (
                ({"weight_map": {**names, "other": "model.safetensors"}},
                 "expected 'other', as model.safetensors.index.json says"),
                ({"weight_map": {**names, "other": "absent.safetensors"}}, "absent.safetensors"),
                ({"weight_map": []}, "expected a weight_map"), ({}, "expected a weight_map")):
            index.write_text(json.dumps(text))
            self.refuse("gpt_oss", message)
        index.unlink()
        pub.write_file(self.path / "more.safetensors", {"model.norm.weight": tensors["model.norm.weight"]})
        self.refuse("gpt_oss", "expected each tensor in one file, but got 'model.norm.weight' again")
        (self.path / "more.safetensors").unlink()
        (self.path / "config.json").write_text(json.dumps({"quantization_config": [1]}))
        self.refuse("gpt_oss", "expected a quantization_config")

    def test_drawn(self):
        """Entries of a config that are absent or anything else, matrices under each other's names, and bytes of a header: each
        is refused as an error of the package with the model as it was, or is loaded."""
        rng = random.Random(int(os.environ.get("FP8_FUZZ_SEED", 0)))
        drawn = {(kind, layout): write_numbered(make_model(kind), kind, layout)[0] for kind, layout in (
            ("mixtral", "mxfp4"), ("qwen3_moe", "nvfp4"), ("deepseek_v3", "deepseek-ue8m0"), ("qwen3_moe", "modelopt-w4a16"))}
        for number in range(int(os.environ.get("FP8_FUZZ_COUNT", 32))):
            key = rng.choice(list(drawn))
            tensors, quantization = dict(drawn[key]), copy.deepcopy(LAYOUTS[key[1]][1])
            what = [change(rng, tensors, quantization) for change in rng.choices([change_config, exchange], k=rng.randint(1, 2))]
            with self.subTest(number=number, key=key, what=what):
                self.write(tensors, quantization)
                if rng.random() < 0.2:
                    file = self.path / "model.safetensors"
                    data = bytearray(file.read_bytes())
                    data[rng.randrange(8, 8 + int.from_bytes(data[:8], "little"))] = rng.randrange(256)
                    file.write_bytes(data)
                model = make_model(key[0], seed=1)
                before = {name: value.clone() for name, value in model.state_dict().items()}
                try:
                    with warnings.catch_warnings():
                        warnings.simplefilter("ignore")
                        fp8.torch.load_quantized(model, self.path)
                except fp8.Error:
                    after = model.state_dict()
                    self.assertEqual(after.keys(), before.keys())
                    self.assertTrue(all(torch.equal(value, before[name]) for name, value in after.items()))


def change_config(rng, _, config):
    """Takes away an entry, or gives it another value."""
    places = []

    def find(node):
        for name, value in list(node.items()) if isinstance(node, dict) else list(enumerate(node)):
            places.append((node, name))
            if isinstance(value, (dict, list)):
                find(value)
    find(config)
    node, name = rng.choice(places)
    value = rng.choice([None, [], {}, -1, 3, 64, 2.5, "x", "", True, ["re:("], "float", {"a": 1}, "absent"])
    if value == "absent":
        del node[name]
    else:
        node[name] = value
    return name, value


def exchange(rng, tensors, _):
    """Has two tensors under each other's names."""
    first, second = rng.sample(list(tensors), 2)
    tensors[first], tensors[second] = tensors[second], tensors[first]
    return first, second


if __name__ == "__main__":
    unittest.main()
