# RUN: %python %s
"""The report of a program: its numbers beside NumPy's, its histograms, and its page."""

import math
import re
import subprocess
import sys
import tempfile
import unittest
from html.parser import HTMLParser
from pathlib import Path

import ml_dtypes
import numpy as np

import fp8
from fp8 import report, report_page, tensors

# Two products that share an operand, the second with a K that `block` does not take.
PROGRAM = """
func.func @main(%x: tensor<64x128xf32> {fp8.name = "x"}, %w: tensor<128x96xf32> {fp8.name = "w", fp8.weight},
                %v: tensor<96x32xf32> {fp8.name = "v", fp8.weight}) -> (tensor<64x32xf32> {fp8.name = "y(1)"}) {
  %zero = arith.constant 0.0 : f32
  %e0 = tensor.empty() : tensor<64x96xf32>
  %i0 = linalg.fill ins(%zero : f32) outs(%e0 : tensor<64x96xf32>) -> tensor<64x96xf32>
  %h = linalg.matmul ins(%x, %w : tensor<64x128xf32>, tensor<128x96xf32>) outs(%i0 : tensor<64x96xf32>) -> tensor<64x96xf32> loc("up")
  %e1 = tensor.empty() : tensor<64x32xf32>
  %i1 = linalg.fill ins(%zero : f32) outs(%e1 : tensor<64x32xf32>) -> tensor<64x32xf32>
  %y = linalg.matmul ins(%h, %v : tensor<64x96xf32>, tensor<96x32xf32>) outs(%i1 : tensor<64x32xf32>) -> tensor<64x32xf32> loc("<down>")
  return %y : tensor<64x32xf32>
}
"""


def make_inputs():
    random = np.random.default_rng(0)
    x = random.standard_normal((64, 128)).astype(np.float32)
    x[3] *= 2e5  # A loud row: most of the others becomes zero with one scale.
    x[0, :7] = 0
    return {"x": x, "w": random.standard_normal((128, 96)).astype(np.float32),
            "v": random.standard_normal((96, 32)).astype(np.float32)}


class Checker(HTMLParser):
    """That tags are closed in their order."""

    def __init__(self):
        super().__init__()
        self.open, self.text = [], []

    def handle_starttag(self, tag, _):
        if tag not in ("meta",):
            self.open.append(tag)

    def handle_startendtag(self, tag, attributes):
        pass

    def handle_endtag(self, tag):
        assert self.open and self.open.pop() == tag, tag

    def handle_data(self, data):
        self.text.append(data)


class Report(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.inputs = make_inputs()
        cls.measured = report.measure(PROGRAM, cls.inputs)

    def test_numbers(self):
        x = self.inputs["x"]
        stats = self.measured.tensors["up.x"]
        self.assertEqual(set(stats), set(report.RECIPES))
        scale = {"current": np.float32(448) / np.abs(x).max(),
                 "rowwise": 2 ** np.floor(np.log2(448 / np.abs(x).max(1, keepdims=True)))}
        for recipe, factor in scale.items():
            codes = (x * factor).clip(-448, 448).astype(ml_dtypes.float8_e4m3fn).astype(np.float64)
            error = codes / factor - x
            self.assertEqual(stats[recipe].amax, np.abs(x).max())
            self.assertAlmostEqual(stats[recipe].underflow, np.mean((codes == 0) & (x != 0)))
            sqnr = 10 * math.log10(np.sum(x.astype(np.float64) ** 2) / np.sum(error ** 2))
            self.assertAlmostEqual(stats[recipe].sqnr, sqnr, 3)
        self.assertGreater(stats["current"].underflow, 0.5)
        # The second step of delayed scaling has the scales of the first one's amaxes.
        self.assertEqual(stats["delayed"], stats["current"])

    def test_histograms(self):
        histogram = self.measured.histograms["up.x"]
        magnitudes = np.abs(self.inputs["x"])
        for index, count in enumerate(histogram.counts):
            low = 2.0 ** (histogram.low + index)
            self.assertEqual(count, np.sum((magnitudes >= low) & (magnitudes < 2 * low)))
        self.assertEqual((histogram.zeros, histogram.total), (7, 64 * 128))
        self.assertEqual(set(self.measured.histograms), {"up.x", "up.w", "<down>.x", "<down>.w"})
        special = report.make_histogram(np.array([0.0, np.inf, np.nan, 1.0, -1.5, 2.0, 1e-45],
                                                 np.float32))
        self.assertEqual((special.low, special.counts[0], special.counts[-2:], special.zeros,
                          special.others), (-149, 1, (2, 1), 1, 2))
        self.assertEqual(report.make_histogram(np.zeros(3)).total, 3)

    def test_labels_do_not_overlap(self):
        for low in (-149, -20, -9, 0, 95):
            for count in (1, 2, 12, 19, 20, 21, 24, 36, 48, 100, 278):
                drawn = report_page.draw_histogram(report.Histogram(low, (1,) * count, 0, 0))
                labels = re.findall(r'<text x="([\d.]+)" y="\d+">(2\^-?\d+)</text>', drawn)
                self.assertEqual(labels[0], ("0.0", f"2^{low}"))
                ends = [float(x) + 6.5 * len(text) for x, text in labels]
                self.assertLessEqual(ends[-1], 640)
                for end, (x, _) in zip(ends, labels[1:]):
                    self.assertLess(end, float(x), (low, count))

    def test_products(self):
        up, down = (self.measured.products[name] for name in ("up", "<down>"))
        self.assertEqual(up.operands, ("up.x", "up.w"))
        for recipe in report.RECIPES:
            noise = sum(10 ** (-self.measured.tensors[name][recipe].sqnr / 10)
                        for name in up.operands)
            self.assertAlmostEqual(up.decibels[recipe], -10 * math.log10(noise))
        self.assertEqual(set(down.reasons), {"block"})
        self.assertNotEqual(up.choose()[0], "nvfp4")

    def test_choice(self):
        def choose(**decibels):
            return report.Product("p", "", "", decibels, computed=list(decibels)).choose()
        self.assertEqual(choose(current=28.0, rowwise=28.9), (
            "current", "within 1 dB of rowwise, which costs more"))
        self.assertEqual(choose(current=27.0, rowwise=29.0, block=29.0), (
            "rowwise", "no other is more exact"))
        self.assertEqual(choose(nvfp4=40.0), ("nvfp4", "its operands were not measured"))
        self.assertEqual(choose()[0], "none")
        self.assertEqual(report.Product("p", "", "", computed=["block"]).choose()[0], "block")

    def test_layers(self):
        """One recipe for the products of a layer: none far from its best, or the least far."""
        def choose(forward, dgrad, wgrad):
            measured = report.Measurements("p", "f", report.RECIPES)
            for name, decibels in (("l", forward), ("l.dgrad", dgrad), ("l.wgrad", wgrad)):
                measured.products[name] = report.Product(name, "", "", decibels, computed=list(decibels))
            return measured.choose_layers()["l"]
        good = {"current": 30.0, "rowwise": 30.5, "block": 31.0}
        self.assertEqual(choose(good, good, good), "current")
        self.assertEqual(choose(good, good, {"current": 20.0, "rowwise": 30.0, "block": 30.5}), "rowwise")
        self.assertEqual(choose(good, good, {"current": 30.0}), "current")
        self.assertEqual(choose(good, {}, {}), "current")
        self.assertEqual(choose({}, {}, {}), "none")
        self.assertEqual(choose({"current": 30.0, "rowwise": 35.0}, {"current": 31.0, "rowwise": 28.0}, {}),
                         "rowwise")
        exact = {"current": math.inf, "rowwise": math.inf}
        self.assertEqual(choose(exact, exact, exact), "current")

    def test_recipe_file(self):
        measured = report.Measurements("p", "f", report.RECIPES)
        name = "a[*]{b}?.\\c"
        measured.products[name] = report.Product(name, "", "", {"current": 30.0}, computed=["current"])
        program = PROGRAM.replace('loc("up")', 'loc("a[*]{b}?.\\\\c")')
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "r.json"
            path.write_text(measured.write_recipe_file())
            remarks = fp8.compile(program, None, recipe_file=str(path), target="cpu").remarks
        self.assertEqual({remark.name: remark.recipe for remark in remarks},
                         {name: "current", "<down>": "none"})

    def test_gradients(self):
        random = np.random.default_rng(0)
        inputs = {name: random.standard_normal(shape).astype(ml_dtypes.bfloat16) for name, shape in (
            ("x", (64, 128)), ("w0", (128, 256)), ("w1", (256, 64)), ("dy", (64, 64)))}
        path = Path(__file__).parents[2] / "examples" / "train.mlir"
        measured = report.measure(path, inputs, recipes=("current", "delayed", "block"))
        products = measured.products
        self.assertEqual(products["l1.dgrad"].operands, ("l1.dgrad.dy", "l1.w"))
        self.assertEqual(products["l0.wgrad"].operands, ("l0.x", "l0.wgrad.dy"))
        self.assertEqual(products["l0"].decibels["delayed"], products["l0"].decibels["current"])
        self.assertIn("K=64 is not a multiple of 128", products["l1.wgrad"].reasons["block"][0])

    def test_page(self):
        page = report_page.write_page(self.measured)
        checker = Checker()
        checker.feed(page)
        checker.close()
        self.assertEqual(checker.open, [])
        text = "".join(checker.text)
        for expected in ("Which recipe for which layer", "<down>.x", "SQNR dB", "zeros",
                         "zero in E4M3 with one scale"):
            self.assertIn(expected, text)
        self.assertNotIn("<down>", page)
        self.assertNotIn("http", page)

    def test_mistakes(self):
        with self.assertRaisesRegex(fp8.ArgumentError, "expected w, v among the inputs of 'main'"):
            report.measure(PROGRAM, {"x": self.inputs["x"]})
        with self.assertRaisesRegex(fp8.ArgumentError, "'x'"):
            report.measure(PROGRAM, {**self.inputs, "x": self.inputs["x"][:3]})
        with self.assertRaises(fp8.CompileError):
            report.measure("func.func @f(\n", {})
        with self.assertRaisesRegex(fp8.NotFoundError, "expected one of the functions main"):
            report.measure(PROGRAM, self.inputs, "other")
        some = report.measure(PROGRAM, self.inputs, recipes=("current", "fancy"))
        self.assertEqual(set(some.failures), {"fancy"})
        self.assertIn("fancy", report_page.write_page(some))

    def test_command(self):
        with tempfile.TemporaryDirectory() as folder:
            folder = Path(folder)
            (folder / "p.mlir").write_text(PROGRAM)
            tensors.save(folder / "in.safetensors", self.inputs)
            (folder / "bad.safetensors").write_bytes(b"no")

            def run(*arguments):
                return subprocess.run([sys.executable, "-m", "fp8", "report", *arguments],
                                      cwd=folder, capture_output=True, text=True)
            done = run("p.mlir", "--inputs=in.safetensors", "--recipes=current,rowwise")
            self.assertEqual((done.returncode, done.stderr), (0, ""))
            self.assertRegex(done.stdout, "^up: (current|rowwise), ")
            self.assertIn("up.x", (folder / "p.html").read_text())
            done = run("p.mlir", "--inputs=in.safetensors", "--recipes=current,rowwise",
                       "--recipe-file=r.json")
            self.assertEqual((done.returncode, done.stderr), (0, ""))
            program = fp8.compile(PROGRAM, None, recipe_file=str(folder / "r.json"), target="cpu")
            chosen = {line.partition(":")[0]: line.partition(": ")[2].partition(",")[0]
                      for line in done.stdout.splitlines()}
            self.assertEqual({remark.name: remark.recipe for remark in program.remarks}, chosen)
            for arguments, message in (
                    (("p.mlir", "--inputs=none.safetensors"), "none.safetensors: No such file"),
                    (("p.mlir", "--inputs=bad.safetensors"), "bad.safetensors: "),
                    (("q.mlir", "--inputs=in.safetensors"), "q.mlir: No such file"),
                    (("p.mlir", "--inputs=in.safetensors", "--recipes=current", "-o",
                      "none/p.html"), "none/p.html: ")):
                done = run(*arguments)
                self.assertEqual(done.returncode, 1)
                self.assertRegex(done.stderr, f"^python -m fp8: error: {message}")


if __name__ == "__main__":
    unittest.main()
