# REQUIRES: pytorch, python-pytorch
# RUN: %import_python %s %fp8_source
"""examples/train.py: variables and options, what it prints, and the page of both curves."""

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest
from html.parser import HTMLParser
from pathlib import Path

SCRIPT = Path(sys.argv.pop(1)) / "examples" / "train.py"
SIZES = ["--steps", "12", "--width", "64", "--depth", "2", "--batch", "2", "--length", "64", "--device", "cpu",
         "--every", "6"]


class Test(unittest.TestCase):
    def run_script(self, *options, is_right=True, script=SCRIPT, **variables):
        """What it prints."""
        done = subprocess.run([sys.executable, script, *SIZES, *options], text=True, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, env={**os.environ, "OMP_NUM_THREADS": "1", **variables})
        self.assertEqual(done.returncode == 0, is_right, done.stdout)
        return done.stdout

    def test_variables(self):
        printed = self.run_script(USE_FP8="1", FP8_FORMAT="E4M3", FP8_AMAX_HISTORY_LEN="16",
                                  FP8_AMAX_COMPUTE_ALGO="most_recent")
        self.assertIn("format delayed,format=e4m3,amax_history_len=16,amax_compute_algo=most_recent, device cpu, "
                      "optimizer adamw", printed)
        self.assertRegex(printed, r"layers\.0\.mlp\.up: delayed\S*\n  3 of 3 matrix products in FP8")
        self.assertRegex(printed, r"step    12  loss \d\.\d{4}  \d+ tokens/s  \d+ MiB")
        self.assertIn("head: high precision: it was not converted", printed)
        for variables in ({"FP8_FORMAT": "e3m4"}, {"FP8_RECIPE": "curent"}):
            self.assertIn("expected", self.run_script(is_right=False, **variables))

    def test_text(self):
        """The examples alone, without the documentation beside them."""
        with tempfile.TemporaryDirectory() as folder:
            text, examples = Path(folder, "text"), Path(folder, "examples")
            examples.mkdir()
            for file in SCRIPT.parent.glob("*.py"):
                shutil.copy(file, examples)
            printed = self.run_script(is_right=False, script=examples / SCRIPT.name)
            self.assertRegex(printed, "^expected pages of documentation in .*, or --text FILE\n$")
            for count in (640, 650):
                text.write_bytes(b"abcdefghij" * 65)
                os.truncate(text, count)
                printed = self.run_script("--text", text, "--recipe", "current", "--steps", "2", "--depth", "1", is_right=count == 650,
                                          script=examples / SCRIPT.name)
            self.assertRegex(printed, r"current: loss \d\.\d{4}")

    def test_compare(self):
        with tempfile.TemporaryDirectory() as folder:
            page, out = Path(folder, "page.html"), Path(folder, "out.json")
            printed = self.run_script("--compare", page, "--out", out, "--recipe", "rowwise", "--quiet")
            self.assertRegex(printed, r"page.html: [+-]\d\.\d\d% in loss, \d+\.\d\d times the speed of bf16")
            plain, in_fp8 = json.loads(out.read_text())
            text = page.read_text()
        self.assertEqual([plain["recipe"], in_fp8["recipe"]], ["bf16", "rowwise"])
        for loss, other in zip(in_fp8["losses"], plain["losses"]):
            self.assertLess(abs(loss / other - 1), 0.01)
        self.assertNotEqual(in_fp8["losses"], plain["losses"])
        HTMLParser().feed(text)
        self.assertEqual(len(re.findall("<polyline", text)), 6)
        self.assertEqual(len(re.findall("<tr>", text)), 3)
        self.assertNotRegex(text, r"\bnan\b|https?://")


if __name__ == "__main__":
    unittest.main()
