# RUN: %python %s
"""What fp8.compile takes and refuses, and what a program says of itself."""

import ast
import contextlib
import io
import os
import subprocess
import sys
import tempfile
import threading
import unittest
from pathlib import Path
from unittest import mock

sys.path.insert(0, str(Path(__file__).parent / "Inputs"))
import fp8  # noqa: E402
import programs  # noqa: E402
from fp8 import _core, compiler  # noqa: E402


def compile(source, recipe=None, **options):
    return fp8.compile(source, recipe, **{"target": "cpu", "cache": False, **options})


class Sources(unittest.TestCase):
    def test_text_bytes_and_paths(self):
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "linear.mlir"
            path.write_text(programs.LINEAR)
            for source in (programs.LINEAR, programs.LINEAR.encode(), path, str(path)):
                self.assertEqual(list(compile(source).functions), ["linear"])

    def test_a_file_that_is_missing(self):
        with self.assertRaisesRegex(fp8.FileError, "missing.mlir: No such file") as caught:
            compile("missing.mlir")
        self.assertIsInstance(caught.exception, OSError)

    def test_what_is_no_source(self):
        with self.assertRaisesRegex(fp8.ArgumentError, "expected MLIR as text or bytecode, or a "
                                                       "path, but got int"):
            compile(1)

    def test_mistakes_have_places(self):
        with self.assertRaisesRegex(fp8.CompileError, "source:3:.*undeclared SSA value") as caught:
            compile("func.func @f() -> f32 {\n\n  return %x : f32\n}\n")
        (first, *_), error = caught.exception.diagnostics, caught.exception
        self.assertEqual((first.severity, first.line, first.file), ("error", 3, "source"))
        self.assertIn("return %x", str(error))
        self.assertEqual(error.status, "INVALID_PROGRAM")

    def test_a_context_survives_mistakes(self):
        for _ in range(3):
            with self.assertRaises(fp8.CompileError):
                compile("func.func @f( {")
        self.assertIn("linear", compile(programs.LINEAR).functions)


class Options(unittest.TestCase):
    def test_unknown_keys_and_values(self):
        for error, message, recipe, options in [
                (fp8.ArgumentError, "unknown option 'recipes-file'; did you mean 'recipe-file'",
                 None, {"recipes_file": "x"}),
                (fp8.CompileError, "expected a recipe .*, but got 'fp9'", "fp9", {}),
                (fp8.CompileError, "target", None, {"target": "sm_1"}),
                (fp8.CompileError, "no key 'amax_len'|amax_len", "delayed,amax_len=3", {}),
                (fp8.CompileError, "expected an integer in 1..65536 for key 'amax_history_len'",
                 fp8.DelayedScaling(amax_history_len=0), {}),
                (TypeError, "expected a recipe, its text or None, but got 3", 3, {})]:
            with self.subTest(message), self.assertRaisesRegex(error, message):
                compile(programs.LINEAR, recipe, **options)

    def test_how_far_is_optimized(self):
        """FP8_OPT_LEVEL changes how long a program takes, not its bits."""
        arguments, results = programs.make_inputs(), []
        for level in ("0", "3"):
            with mock.patch.dict(os.environ, FP8_OPT_LEVEL=level), (
                    mock.patch.object(_core, "compile", side_effect=_core.compile)) as compile_:
                results.append(fp8.compile(programs.LINEAR, "current", target="cpu", cache=False)(*arguments).tobytes())
            self.assertIn(("opt-level", level), compile_.call_args.args[2])
        self.assertEqual(results[0], results[1])
        with mock.patch.dict(os.environ, FP8_OPT_LEVEL="fast"):
            with self.assertRaisesRegex(fp8.ArgumentError, "expected FP8_OPT_LEVEL in the environment to be 0, 1, 2 or 3, but "
                                                           "got 'fast'"):
                fp8.compile(programs.LINEAR, target="cpu", cache=False)
            fp8.compile(programs.LINEAR, target="cpu", cache=False, opt_level=0)

    def test_orders_of_sums(self):
        """FP8_CPU_SUMS has one value. What a program calls cannot fail, and says what it makes of another."""
        code = ("import sys; sys.path.insert(0, sys.argv[1]); import fp8, programs\n"
                "p = fp8.compile(programs.LINEAR, target='cpu', cache=False)\n"
                "for _ in range(2): p(*programs.make_inputs())")
        for value, said in (("order", "fp8rt: expected FP8_CPU_SUMS in the environment to be 'ordered', but got 'order', which is "
                             "ignored\n"), ("ordered", ""), ("", "")):
            result = subprocess.run([sys.executable, "-c", code, str(Path(__file__).parent / "Inputs")], check=True,
                                    stderr=subprocess.PIPE, text=True, env={**os.environ, "FP8_CPU_SUMS": value})
            self.assertEqual(result.stderr, said)

    def test_flags_and_paths(self):
        with self.assertRaisesRegex(fp8.CompileError, "K"):
            compile(programs.SMALL, "mxfp8", require=True)
        self.assertIn("linear", compile(programs.SMALL, "mxfp8", require=False).functions)

    def test_they_are_listed(self):
        keys = [key for key, _, _ in fp8.get_options()]
        self.assertIn("recipe-file", keys)
        self.assertIn("kernels" if "kernels" in keys else "kernel-format", keys)

    def test_code_before_a_program(self):
        self.assertIn(b"fp8.matmul", fp8.emit(programs.LINEAR, recipe="current", target="cpu",
                                              to="fusion"))
        self.assertIn(b"define", fp8.emit(programs.LINEAR, "llvm", target="cpu"))
        with self.assertRaisesRegex(fp8.ArgumentError, "expected mlir, llvm, ptx or cubin"):
            fp8.emit(programs.LINEAR, "wasm", target="cpu")


class Descriptions(unittest.TestCase):
    def test_functions(self):
        program = compile(programs.SEVERAL)
        self.assertEqual(list(program.functions), ["negate", "both", "nothing"])
        both = program.both
        self.assertEqual(both.arguments, (("arg0", "F32", (4,)), ("arg1", "F32", None)))
        self.assertEqual(program["negate"].results, (("result0", "F32", (None, 3)),))
        self.assertFalse(both.takes_state or both.runs_on_gpu)
        self.assertEqual(repr(both), "<fp8 function both(arg0: F32[4], arg1: F32) -> "
                                     "(result0: F32[4], result1: F32)>")
        self.assertEqual(program.target, "cpu")

    def test_functions_that_there_are_not(self):
        program = compile(programs.SEVERAL)
        with self.assertRaisesRegex(fp8.NotFoundError, "negate, both, nothing, but got 'f'"):
            program["f"]
        with self.assertRaisesRegex(AttributeError, "but got 'f'"):
            program.f
        with self.assertRaisesRegex(fp8.ArgumentError, "one of the functions negate, both"):
            program()

    def test_remarks(self):
        (remark,) = compile(programs.LINEAR, "mxfp8").remarks
        self.assertEqual((remark.kind, remark.name, remark.function, remark.role, remark.recipe),
                         ("fp8", "layer.linear", "linear", "fprop", "mxfp8"))
        self.assertEqual(remark.shape, "M=32 N=64 K=256")
        self.assertEqual(remark.details["a_granularity"], "1-D block")
        self.assertEqual(remark.reason, "")

    def test_former_names(self):
        with self.assertWarnsRegex(DeprecationWarning, "fp8.Port is called fp8.ValueInfo now"):
            self.assertIs(fp8.Port, fp8.ValueInfo)
        self.assertIn("ValueInfo", fp8.__all__)

    def test_why_a_layer_is_not_in_fp8(self):
        program = compile(programs.SMALL, "mxfp8")
        (remark,) = program.remarks
        self.assertEqual(remark.kind, "high precision")
        self.assertIn("K", remark.reason)
        text = io.StringIO()
        with contextlib.redirect_stdout(text):
            program.explain()
        self.assertIn("0 of 1 matrix products in FP8", text.getvalue())
        self.assertIn(f"high precision: {remark.reason}", text.getvalue())

    def test_shared_objects(self):
        x, w = programs.make_inputs()
        program = compile(programs.LINEAR, "current", name="model")
        with tempfile.TemporaryDirectory() as folder:
            path, header = Path(folder) / "model.so", Path(folder) / "model.h"
            program.save(path, header)
            self.assertIn("model_linear", header.read_text())
            loaded = fp8.load(path)
            self.assertEqual(loaded.linear(x, w).tobytes(), program(x, w).tobytes())
            with self.assertRaises(fp8.ArgumentError):
                loaded.save(path)
            path.write_bytes(path.read_bytes()[:5000])
            with self.assertRaisesRegex(fp8.FileError, "model.so"):
                fp8.load(path)
            with self.assertRaises(fp8.FileError):
                program.save(Path(folder) / "missing" / "model.so")


class Progress(unittest.TestCase):
    def test_a_line_after_two_seconds(self):
        times = iter([10, 11, 12, 13.4, 14])
        out = io.StringIO()
        with mock.patch("time.monotonic", lambda: next(times)), mock.patch("sys.stderr", out):
            progress = compiler._Progress("x.mlir")
            for step in ("fp8-apply-recipe", "optimize LLVM IR", "cse"):
                progress(step)
            progress.close()
        line = "fp8: x.mlir: optimize LLVM IR (2 s)"
        self.assertEqual(out.getvalue(), f"\r{line}\r{'fp8: x.mlir: cse (3 s)':{len(line)}}"
                                         f"\r{'':{len(line)}}\r")

    def test_only_on_terminals(self):
        seen = []
        for is_terminal in (False, True):
            out = io.StringIO()
            out.isatty = lambda: is_terminal
            with mock.patch("sys.stderr", out), mock.patch.object(
                    compiler, "_Progress", lambda name: seen.append(name) or mock.Mock()):
                compile(programs.LINEAR)
        self.assertEqual(seen, ["source"])

    def test_one_line_of_all_that_compile(self):
        seen, out = [], io.StringIO()
        out.isatty = lambda: True
        with mock.patch("sys.stderr", out), mock.patch.object(
                compiler, "_Progress", lambda name: seen.append(name) or mock.Mock()):
            compiler._run("first", lambda progress: compiler._run("inner", lambda other: self.assertIsNone(other)))
            compiler._run("next", lambda progress: None)
        self.assertEqual(seen, ["first", "next"])


class Stubs(unittest.TestCase):
    def test_they_describe_the_extension(self):
        text = (Path(fp8.__file__).parent / "_core.pyi").read_text()
        for node in ast.parse(text).body:
            if isinstance(node, ast.ClassDef):
                named = {it.target.id if isinstance(it, ast.AnnAssign) else it.name for it in node.body}
                there = {name for name in vars(getattr(_core, node.name)) if name[0] != "_"}
                self.assertEqual({name for name in named if name[0] != "_"}, there)
        named = {it.name for it in ast.parse(text).body if hasattr(it, "name")}
        self.assertEqual(named, {name for name in vars(_core) if name[0] != "_"})


class Threads(unittest.TestCase):
    def test_several_compile_and_run(self):
        x, w = programs.make_inputs()
        expected = compile(programs.LINEAR, "current")(x, w).tobytes()
        results = []

        def work():
            results.append(compile(programs.LINEAR, "current")(x, w).tobytes())
        threads = [threading.Thread(target=work) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(results, [expected] * 4)


if __name__ == "__main__":
    unittest.main()
