# RUN: env FP8_CUDA_DRIVER=emulator %python %s %fp8_source %fp8_build %lit_package
# UNSUPPORTED: sanitizers
"""check_gpu of a bundle whose tests pass, fail, hang or are skipped, on the
emulator: nothing stops what follows, and the report says all."""

import json
import os
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

SOURCE, BUILD, LIT = (Path(argument) for argument in sys.argv[1:4])
INPUTS = Path(__file__).parent / "Inputs"
LAUNCH = '#!/bin/sh\necho \'{"launch_ns": 2500}\'\nexit $CHECK_STATUS\n'


class CheckGPU(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.root = Path(scratch.name) / "fp8-bundle"
        checks = self.root / "test/Integration/CUDA"
        for folder in ("bin", "lib", "share"):
            (self.root / folder).mkdir(parents=True)
        checks.mkdir(parents=True)
        shutil.copy(SOURCE / "bundle/check_gpu", self.root)
        shutil.copy(SOURCE / "bundle/lit.cfg.py", self.root / "test")
        shutil.copytree(SOURCE / "bundle/gpucheck", self.root / "share/gpucheck")
        for folder in ("python/fp8", "include/fp8/Runtime"):
            shutil.copytree(SOURCE / folder, self.root / folder)
        (self.root / "share/lit").symlink_to(LIT)
        for library in ("libfp8rt.so", "libfp8emu.so"):
            (self.root / "lib" / library).symlink_to(BUILD / "lib" / library)
        (self.root / "VERSION").write_text("1.2.3\n")
        for test in INPUTS.glob("*.test"):
            shutil.copy(test, checks)
        (checks / "runtime-check").write_text(LAUNCH)
        (checks / "runtime-check").chmod(0o755)

    def check(self, *options, **environment):
        """The exit status, the report, and the rows of the report by name."""
        self.errors = ""
        out = self.root / "out.json"
        result = subprocess.run(
            [sys.executable, self.root / "check_gpu", "--out", out, *options], text=True,
            capture_output=True, env={**os.environ, "CHECK_STATUS": "0", **environment})
        self.errors = result.stderr
        report = json.loads(out.read_text()) if out.exists() else {"rows": []}
        rows = {row["name"].split("/")[-1]: row for row in report["rows"]}
        return result.returncode, report, rows

    def test_reports_each_result(self):
        status, report, rows = self.check("--only=*.test", "--only=launch", "--limit=4")
        self.assertEqual(status, 1)
        self.assertEqual(report["gpu"], "Emulated H200")
        self.assertEqual(report["cuda"], "13.0")
        self.assertEqual(report["version"], "1.2.3")
        self.assertEqual(rows["pass.test"]["status"], "passed")
        self.assertEqual(rows["pass.test"]["output"], ["7"])
        self.assertEqual(rows["fail.test"]["status"], "failed")
        self.assertIn("before", rows["fail.test"]["message"])
        self.assertEqual(rows["wait.test"]["status"], "failed")
        self.assertIn("not done after", rows["wait.test"]["message"])
        # Nothing was left for those that came later, and they say so.
        self.assertIn("no time was left of 4 s", rows["launch"]["message"])

    def test_benchmark(self):
        status, _, rows = self.check("--only=launch")
        self.assertEqual(status, 0)
        self.assertEqual(rows["launch"]["data"], {"launch_ns": 2500})

    def test_failed_benchmark_keeps_its_numbers(self):
        status, _, rows = self.check("--only=launch", CHECK_STATUS="1")
        self.assertEqual(status, 1)
        self.assertEqual(rows["launch"]["status"], "failed")
        self.assertEqual(rows["launch"]["data"], {"launch_ns": 2500})

    def test_skipped_is_no_failure(self):
        status, _, rows = self.check("--only=*/skip.test")
        self.assertEqual(status, 0)
        self.assertEqual(rows["skip.test"]["status"], "skipped")
        self.assertIn("nothing-has-this", rows["skip.test"]["message"])

    def test_benchmark_without_pytorch(self):
        # The tests' own Python has none.
        status, _, rows = self.check("--only=gemm-time")
        self.assertEqual(status, 0)
        self.assertEqual(rows["gemm-time"]["status"], "skipped")
        self.assertIn("expected PyTorch", rows["gemm-time"]["message"])

    def test_without_a_gpu(self):
        status, report, _ = self.check(FP8_CUDA_DRIVER="/nowhere/libcuda.so")
        self.assertEqual(status, 2)
        self.assertIn("/nowhere/libcuda.so", report["error"])
        self.assertIn("error: no GPU to check on: ", self.errors)

    def test_keeps_what_was_written(self):
        keep = self.root / "keep"
        status, _, _ = self.check("--only=*/pass.test", f"--keep={keep}")
        self.assertEqual(status, 0)
        self.assertTrue((keep / "lit.json").exists())
        status, _, _ = self.check("--only=*/pass.test", f"--keep={keep}")
        self.assertEqual(status, 1)
        self.assertIn("expected a new directory for --keep", self.errors)

    def test_another_gpu(self):
        status, report, _ = self.check(FP8_EMULATOR_ARCH="80")
        self.assertEqual(status, 2)
        self.assertEqual(report["error"],
                         "expected a GPU of compute capability 9.0, but got 8.0 (Emulated A100)")

    def test_nothing_to_run(self):
        status, _, _ = self.check("--only=nothing")
        self.assertEqual(status, 1)
        self.assertIn("nothing to run has a name like those of --only", self.errors)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
