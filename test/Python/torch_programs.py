# REQUIRES: pytorch, python-pytorch
# RUN: %import_python %s
"""Compiled programs beside a checkpoint: a process that has them compiles nothing, and what is foreign, stale or
changed is said."""

import json
import os
import subprocess
import sys
import tempfile
import unittest
import warnings
from pathlib import Path
from unittest import mock

import torch
from torch import nn

import fp8
import fp8.torch
from fp8 import cache, programs
from fp8.torch import expected, fused_linears, quantized_linear, schemes

# Calls of a part of a graph, of a layer by itself, and of attention over a cache.
SCRIPT = """
import sys, warnings
import torch
from fp8 import _core
compiled, run = [], _core.compile
_core.compile = lambda text, *others: (compiled.append(text), run(text, *others))[1]
import fp8, fp8.torch

class Block(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.norm, self.a, self.b = torch.nn.RMSNorm(64), torch.nn.Linear(64, 64), torch.nn.Linear(64, 64)

    def forward(self, x):
        return x + self.b(self.a(self.norm(x)).relu())

torch.manual_seed(0)
warnings.simplefilter("error", UserWarning)
model = fp8.torch.quantize_for_inference(Block().bfloat16())
part = torch.compile(model, backend=fp8.torch.Backend(rest="eager"))
x = torch.ones(2, 64, dtype=torch.bfloat16)

def attend():
    cache = fp8.torch.KeyValueCache(1, 2, 8, 16)
    cache.append(*torch.ones(2, 1, 2, 3, 16, dtype=torch.bfloat16))
    cache.attend(torch.ones(1, 4, 1, 16, dtype=torch.bfloat16))

compiled.clear()  # Casts of weights, which no checkpoint needs.
with torch.inference_mode():
    prepared = fp8.torch.prepare(model, calls=[lambda: part(x), attend],
                                 programs=sys.argv[2] if sys.argv[1] == "read" else None)
    if sys.argv[1] == "write":
        print(fp8.torch.save_programs(sys.argv[2]), prepared.compiled, len(compiled))
    print(prepared.compiled, len(compiled), part(x).float().sum().item())
"""


def run(folder, *arguments, check=True):
    return subprocess.run([sys.executable, "-c", SCRIPT, *arguments], check=check, capture_output=True, text=True,
                          env={**os.environ, "XDG_CACHE_HOME": str(folder), "XDG_DATA_HOME": str(folder)})


class Programs(unittest.TestCase):
    def setUp(self):
        self.folder = Path(self.enterContext(tempfile.TemporaryDirectory()))
        for name in ("XDG_CACHE_HOME", "XDG_DATA_HOME"):
            self.enterContext(mock.patch.dict(os.environ, {name: str(self.folder / name)}))
        for known in (programs._known, programs._attached):
            self.enterContext(mock.patch.dict(known, clear=True))

    def write(self):
        """Two programs, in self.folder."""
        for size in 16, 32:
            fp8.compile(f"func.func @f(%x: tensor<{size}xf32>) -> tensor<{size}xf32> {{ return %x : tensor<{size}xf32> }}",
                        target="cpu")
        self.assertEqual(fp8.torch.save_programs(self.folder), 2)
        programs._attached.clear()
        return self.folder / programs.FOLDER

    def edit(self, **values):
        path = self.folder / programs.FOLDER / programs.INDEX
        path.write_text(json.dumps({**json.loads(path.read_text()), **values}))

    def refuse(self, text, **options):
        with self.assertWarnsRegex(RuntimeWarning, text) as caught:
            self.assertEqual(programs.attach(self.folder, **options), 0)
        self.assertEqual((len(caught.warnings), programs._attached), (1, {}))

    def test_another_process(self):
        checkpoint, own = self.folder / "checkpoint", self.folder / "other"
        saved, first = run(self.folder / "one", "write", str(checkpoint)).stdout.splitlines()
        count, compiled, _ = map(int, saved.split())
        self.assertGreaterEqual(compiled, 4)
        self.assertGreaterEqual(count, compiled)
        self.assertEqual(len(list((checkpoint / programs.FOLDER).glob("*.so"))), count)
        # Its cache is empty, and its user another one.
        second = run(own, "read", str(checkpoint)).stdout.splitlines()[-1]
        self.assertEqual(second.split()[:2], ["0", "0"])
        self.assertEqual(first.split()[2], second.split()[2])

    def test_own(self):
        self.write()
        self.assertEqual(programs.attach_own(self.folder), 2)
        self.assertEqual(programs.attach_own(self.folder / "nothing"), 0)
        with mock.patch("fp8._core.compile", side_effect=AssertionError):
            cache.clear()
            fp8.compile("func.func @f(%x: tensor<16xf32>) -> tensor<16xf32> { return %x : tensor<16xf32> }", target="cpu")
            # What came from there is saved again.
            self.assertEqual(fp8.torch.save_programs(self.folder / "again"), 1)

    def test_of_another_user(self):
        self.write()
        (self.folder / "XDG_DATA_HOME" / "fp8" / "key").write_bytes(bytes(32))
        self.refuse("code that another user may have compiled")
        self.assertEqual(programs.attach(self.folder, trusts=True), 2)

    def test_changed_index(self):
        self.write()
        self.edit(release="9")
        self.refuse("code that another user may have compiled")

    def test_stale(self):
        self.write()
        self.edit(compiler="another")
        self.refuse("expected those of this compiler, fp8 .*, but got those of another build", trusts=True)
        self.edit(version=99)
        self.refuse("expected version 1, but got 99", trusts=True)

    def test_another_gpu(self):
        folder = self.write()
        index = json.loads((folder / programs.INDEX).read_text())
        self.edit(programs=[{**entry, "target": "sm_90a", "machine": "device:NVIDIA H20"} for entry in index["programs"]])
        self.refuse("expected those for cpu, but got those for NVIDIA H20", trusts=True)

    def test_files_that_changed(self):
        folder = self.write()
        path = sorted(folder.glob("*.so"))[0]
        contents = path.read_bytes()
        path.write_bytes(contents[:-1])
        for _ in range(2):
            with self.assertRaisesRegex(fp8.FileError, f"{path}: "):
                programs.attach(self.folder)
            path.unlink(missing_ok=True)
        path.write_bytes(contents)
        for text, message in (("{", "programs.json: "), ("[]", "an object with a version"),
                              ('{"version": 1}', "a list of programs"),
                              ('{"version": 1, "programs": [{"key": 1}]}', "each with key, file")):
            (folder / programs.INDEX).write_text(text)
            with self.assertRaisesRegex(fp8.FileError, message):
                programs.attach(self.folder, trusts=True)
        with self.assertRaisesRegex(fp8.FileError, "nothing"):
            programs.attach(self.folder / "nothing")

    def test_what_is_wrong_keeps_no_checkpoint_from_loading(self):
        """Programs that nobody asked for are optional: a warning says what is wrong with them."""
        folder = self.write()
        contents = (folder / programs.INDEX).read_text()
        for text in ("<html>", "[" * 200000, json.dumps({**json.loads(contents), "signature": "\xe9"})):
            (folder / programs.INDEX).write_text(text)
            with self.assertWarnsRegex(RuntimeWarning, "are compiled where they are needed"):
                self.assertEqual(programs.attach_own(self.folder), 0)
        (folder / programs.INDEX).unlink()
        (folder / "other.json").write_text(contents)
        (folder / programs.INDEX).symlink_to("other.json")  # As the Hub's cache has files.
        with self.assertWarnsRegex(RuntimeWarning, "are compiled where they are needed"):
            self.assertEqual(programs.attach_own(self.folder), 0)

    def test_a_program_that_changes_later(self):
        """What was looked at is what is loaded, also where something is written between."""
        folder = self.write()
        self.assertEqual(programs.attach_own(self.folder), 2)
        for path in folder.glob("*.so"):
            path.write_bytes(path.read_bytes() + b"x")
        cache.clear()
        with self.assertWarnsRegex(RuntimeWarning, "expected the program that .* has the checksum of"):
            fp8.compile("func.func @f(%x: tensor<16xf32>) -> tensor<16xf32> { return %x : tensor<16xf32> }", target="cpu")

    def test_a_path_elsewhere(self):
        folder = self.write()
        entries = json.loads((folder / programs.INDEX).read_text())["programs"]
        self.edit(programs=[{**entry, "file": f"../{entry['file']}"} for entry in entries])
        with self.assertRaisesRegex(fp8.FileError, "the name of a file beside it"):
            programs.attach(self.folder, trusts=True)

    def test_others_may_write(self):
        folder = self.write()
        folder.chmod(0o777)
        self.refuse("nobody else may write to", trusts=True)


class Block(nn.Module):
    def __init__(self, n=48):
        super().__init__()
        self.a, self.b = nn.Linear(64, n), nn.Linear(n, 64)

    def forward(self, x):
        return x + self.b(self.a(x).relu())


class Expected(unittest.TestCase):
    def setUp(self):
        for known in (quantized_linear._expected, quantized_linear._prepared, expected._kinds):
            known.clear()
        fused_linears._programs.clear()
        schemes.compile_linear.cache_clear()
        torch.compiler.reset()
        self.enterContext(mock.patch.dict(os.environ, {"XDG_CACHE_HOME": self.enterContext(tempfile.TemporaryDirectory())}))
        self.enterContext(torch.inference_mode())

    def compile(self, model):
        return torch.compile(model, backend=fp8.torch.Backend(rest="eager"))

    def test_parts(self):
        model, x = fp8.torch.quantize_for_inference(Block().bfloat16()), torch.ones(2, 64, dtype=torch.bfloat16)
        fp8.torch.prepare(model)
        with self.assertWarnsRegex(UserWarning, "a call compiles the part graph0.forward.fused0 of torch.compile's graph"):
            self.compile(model)(x)
        # It is known now.
        torch.compiler.reset()
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            self.compile(model)(x)
            other = fp8.torch.quantize_for_inference(Block(80).bfloat16())
            self.compile(other)(x)  # Nobody asked for this one.

    def test_calls(self):
        model, x = fp8.torch.quantize_for_inference(Block(96).bfloat16()), torch.ones(2, 64, dtype=torch.bfloat16)
        compiled = self.compile(model)
        prepared = fp8.torch.prepare(model, calls=[lambda: compiled(x)])
        self.assertEqual((prepared.programs, prepared.compiled), (2, 3))
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            compiled(x)
        with self.assertRaisesRegex(fp8.ArgumentError, "calls to be functions"):
            fp8.torch.prepare(model, calls=[3])


if __name__ == "__main__":
    unittest.main()
