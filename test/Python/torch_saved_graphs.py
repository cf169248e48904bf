# REQUIRES: pytorch, python-pytorch, cxx
# RUN: %import_python %s
"""What Inductor made of graphs with quantized layers, beside a checkpoint's programs: another process with empty
caches compiles none of it, also with a model that was loaded, and files that changed are found out."""

import contextlib
import importlib.util
import os
import subprocess
import sys
import tempfile
import unittest
import weakref
from pathlib import Path
from unittest import mock

import torch
from torch._dynamo.exc import BackendCompilerFailed
from torch._inductor import codecache

import fp8
import fp8.torch
from fp8 import programs
from fp8.torch import part_ops, saved_graphs

SCRIPT = """
import sys
import torch
from torch._dynamo.utils import counters
import fp8.torch

class Block(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.norm, self.a, self.b = torch.nn.RMSNorm(64), torch.nn.Linear(64, 64), torch.nn.Linear(64, 64)

    def forward(self, x):
        return x + self.b(self.a(self.norm(x)).relu()).softmax(0).cumsum(0)

torch.manual_seed(0)
model = fp8.torch.quantize_for_inference(Block().bfloat16())
compiled = torch.compile(model, backend="fp8")
x = torch.ones(2, 64, dtype=torch.bfloat16)
with torch.inference_mode():
    if sys.argv[1] == "read":  # What was compiled before, or lives, is another graph's.
        other = torch.nn.Sequential(torch.nn.Linear(64, 32), torch.nn.RMSNorm(32), torch.nn.Linear(32, 64)).bfloat16()
        other = torch.compile(fp8.torch.quantize_for_inference(other), backend="fp8")
        other(x)
        counters.clear()
    fp8.torch.prepare(model, calls=[lambda: compiled(x)], programs=sys.argv[2] if sys.argv[1] == "read" else None)
    if sys.argv[1] == "write":
        fp8.torch.save_programs(sys.argv[2])
    found = counters["inductor"]
    print(found["fxgraph_cache_hit"], found["fxgraph_cache_miss"], compiled(x).float().sum().item())
"""


def run(folder, *arguments):
    names = ("XDG_CACHE_HOME", "XDG_DATA_HOME", "TORCHINDUCTOR_CACHE_DIR")
    return subprocess.run([sys.executable, "-c", SCRIPT, *arguments], check=True, capture_output=True, text=True,
                          env={**os.environ, **{name: str(folder / name) for name in names}}).stdout.split()


class Found(Exception):
    pass


def find_key(model):
    """What Inductor's cache calls a model's graph, which is not compiled."""
    keys, find = [], codecache.compiled_fx_graph_hash

    def stop(*arguments, **keywords):
        keys.append(find(*arguments, **keywords)[0])
        raise Found

    torch.compiler.reset()
    # Parts that are alike and alive have numbers, which begin at 0 in another process.
    with mock.patch.object(part_ops, "_calls", weakref.WeakValueDictionary()), mock.patch.object(codecache, "compiled_fx_graph_hash", stop), (
            contextlib.suppress(BackendCompilerFailed)), torch.inference_mode():
        torch.compile(model, backend="fp8")(torch.arange(3, 35)[None], use_cache=False)
    return keys[0]


class Graphs(unittest.TestCase):
    def setUp(self):
        self.folder = Path(self.enterContext(tempfile.TemporaryDirectory()))
        for name in ("XDG_CACHE_HOME", "XDG_DATA_HOME"):
            self.enterContext(mock.patch.dict(os.environ, {name: str(self.folder / name)}))
        for known in (programs._known, programs._attached):
            self.enterContext(mock.patch.dict(known, clear=True))

    def test_another_process(self):
        checkpoint = str(self.folder / "checkpoint")
        hits, misses, first = run(self.folder / "one", "write", checkpoint)
        self.assertEqual((hits, misses), ("0", "1"))
        hits, misses, second = run(self.folder / "other", "read", checkpoint)
        self.assertEqual((hits, misses), ("1", "0"))
        self.assertEqual(first, second)

    @unittest.skipUnless(importlib.util.find_spec("transformers"), "it takes transformers")
    def test_loaded_model(self):
        """A model that load_pretrained makes has the graphs of that which was saved, if that has buffers as transformers
        makes them: rounded ones are other graphs."""
        import transformers
        config = transformers.LlamaConfig(
            hidden_size=64, intermediate_size=64, vocab_size=64, num_hidden_layers=1, num_attention_heads=2)
        model = transformers.AutoModelForCausalLM.from_config(config, dtype=torch.bfloat16).eval()
        fp8.torch.quantize_for_inference(model, filter=["*", "!lm_head"])
        config.save_pretrained(self.folder)
        fp8.torch.save_quantized(model, self.folder)
        key = find_key(model)
        self.assertEqual(find_key(fp8.torch.load_pretrained(self.folder)), key)
        self.assertNotEqual(find_key(model.to(torch.bfloat16)), key)

    def test_files(self):
        path = self.folder / programs.FOLDER / programs.GRAPHS
        programs.save(self.folder, "a maker", b"graphs")
        taken = mock.Mock()
        self.assertEqual(programs.attach(self.folder, take_graphs=taken), 0)
        taken.assert_called_once_with("a maker", b"graphs")
        path.write_bytes(b"others")
        with self.assertRaisesRegex(fp8.FileError, "graphs.bin: expected the graphs"):
            programs.attach(self.folder, take_graphs=taken)
        programs.save(self.folder)  # What was there is replaced.
        self.assertFalse(path.exists())
        self.assertEqual(programs.attach(self.folder, take_graphs=taken), 0)
        taken.assert_called_once()

    def test_another_pytorch(self):
        with mock.patch.object(torch.compiler, "load_cache_artifacts") as load:
            saved_graphs.take("torch 1.0", b"")
            load.assert_not_called()
            saved_graphs.take(f"torch {torch.__version__}", b"graphs")
            load.assert_called_once_with(b"graphs")


if __name__ == "__main__":
    unittest.main()
