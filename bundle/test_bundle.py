"""Checks a bundle: its size, that it can be made again byte by byte, what it needs
of a machine, and that its tools work where there is nothing but that.

usage: test_bundle.py ARCHIVE SOURCE
"""

import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import unittest
from pathlib import Path

from pack import EPOCH, SYSTEM_LIBRARIES

ARCHIVE, SOURCE = (Path(argument).resolve() for argument in sys.argv[1:3])
MAX_BYTES = 40_000_000
# Debian 12's: versions of symbols that may be asked for.
NEWEST = {"GLIBC": (2, 36), "GLIBCXX": (3, 4, 30)}
# The loader learns from /proc where a program is.
CHANGE_ROOT = 'mount --rbind /proc "$0/proc" && exec /usr/sbin/chroot "$0" "$@"'
ENTER = ["/usr/bin/unshare", "--mount"] + ([] if os.geteuid() == 0 else ["--map-root-user"])
RECIPES = ["none", "current", "rowwise", "block", "mxfp8", "nvfp4"]


def output(*command):
    return subprocess.run(command, check=True, text=True, capture_output=True).stdout


class Archive(unittest.TestCase):
    def test_size(self):
        self.assertLessEqual(ARCHIVE.stat().st_size, MAX_BYTES)

    def test_entries_are_those_of_any_other_machine(self):
        with tarfile.open(ARCHIVE) as archive:
            entries = archive.getmembers()
        self.assertEqual([e.name for e in entries],
                         [str(p) for p in sorted(Path(e.name) for e in entries)])
        for entry in entries:
            self.assertTrue(entry.isfile() or entry.isdir(), entry.name)
            self.assertEqual((entry.uid, entry.gid, entry.uname, entry.mtime, entry.mode & 0o22),
                             (0, 0, "", EPOCH, 0), entry.name)


class Unpacked(unittest.TestCase):
    """In a root directory that holds the bundle and a bare system's libraries."""

    @classmethod
    def setUpClass(cls):
        scratch = tempfile.TemporaryDirectory()
        cls.addClassCleanup(scratch.cleanup)
        cls.root = Path(scratch.name)
        for name in ("opt", "proc", "tmp"):
            (cls.root / name).mkdir()
        output("tar", "-xJf", ARCHIVE, "-C", cls.root / "opt")
        cls.bundle = cls.root / "opt" / "fp8-bundle"
        cls.programs = [p for p in cls.bundle.rglob("*")
                        if p.is_file() and p.read_bytes()[:4] == b"\x7fELF"]
        for name, path in re.findall(
                r"(\S+) (?:=> (/\S+) )?\(0x", output("ldd", cls.bundle / "bin/fp8-run")):
            path = Path(path or name)
            if SYSTEM_LIBRARIES.fullmatch(path.name):
                folder = cls.root / ("lib64" if path.name.startswith("ld-") else "lib")
                folder.mkdir(exist_ok=True)
                shutil.copy(path, folder / path.name)
        tensors = cls.bundle / "test/Integration/CUDA/Inputs/tensors.py"
        output(sys.executable, tensors, cls.root / "tmp/in.safetensors", "x=bf16:32x256",
               "w=bf16:256x64/16", "bias=bf16:64")

        cls.namespaces = subprocess.run(ENTER + ["/bin/true"], capture_output=True).returncode == 0

    def run_tool(self, *command, code=0):
        """The output of a command that sees nothing else, with an empty environment."""
        if not self.namespaces:
            self.skipTest("expected to be allowed a mount namespace")
        result = subprocess.run(
            [*ENTER, "/bin/sh", "-c", CHANGE_ROOT, self.root,
             f"/opt/fp8-bundle/bin/{command[0]}", *command[1:]], text=True,
            capture_output=True, env={})
        self.assertEqual(result.returncode, code, result.stderr)
        return result.stdout if code == 0 else result.stderr

    def test_needs_only_a_bare_system(self):
        ours = {path.name for path in self.programs}
        for path in self.programs:
            for name in re.findall(r"\(NEEDED\).*\[(.*)\]", output("llvm-readelf-22", "-d", path)):
                self.assertTrue(name in ours or SYSTEM_LIBRARIES.fullmatch(name),
                                f"{path.name} needs {name}")

    def test_needs_no_newer_system(self):
        for path in self.programs:
            for library, version in re.findall(r"Name: (GLIBC|GLIBCXX)_([\d.]+)",
                                               output("llvm-readelf-22", "-V", path)):
                version = tuple(map(int, version.split(".")))
                self.assertLessEqual(version, NEWEST[library], path.name)

    def test_names_no_place_of_the_build(self):
        for path in self.bundle.rglob("*"):
            if path.is_file():
                self.assertNotIn(bytes(SOURCE) + b"/", path.read_bytes(), path.name)

    def test_licenses(self):
        for path in self.bundle.glob("lib/*.so*"):
            self.assertTrue(path.name.startswith("libfp8")
                            or any(path.name[3:].lower().split(".")[0] in p.name.lower()
                                   for p in self.bundle.glob("licenses/*")), path.name)

    def test_every_tool_starts(self):
        # fp8-survey is in Python, which the root directory has not.
        for path in (p for p in self.programs if p.parent.name == "bin"):
            self.assertIn("USAGE:", self.run_tool(path.name, "--help"), path.name)

    def test_optimizes(self):
        text = self.run_tool("fp8-opt", "/opt/fp8-bundle/examples/linear.mlir",
                             "--fp8-pipeline=recipe=current target=cpu to=fusion")
        self.assertIn("fp8.matmul", text)

    def test_runs_on_the_cpu(self):
        for recipe in RECIPES:
            text = self.run_tool("fp8-run", "/opt/fp8-bundle/examples/linear.mlir",
                                 f"--recipe={recipe}", "--inputs=/tmp/in.safetensors")
            self.assertRegex(text, r"^y: BF16 \[32, 64\] min -\d\.\d+ max \d")

    def test_makes_ptx(self):
        text = self.run_tool("fp8-compile", "/opt/fp8-bundle/examples/linear.mlir",
                             "--recipe=current", "--target=sm_90a", "--emit=ptx")
        self.assertIn("wgmma.mma_async", text)

    def test_translates_to_ptx(self):
        (self.root / "tmp/matmul.mlir").write_text("""
            !a = !fp8.scaled<128x256xf8E4M3FN, block = [*, *], scale = f32>
            func.func @matmul(%a: !a, %b: !a) -> tensor<128x128xf32> {
              %0 = fp8.matmul %a, %b : !a, !a -> tensor<128x128xf32>
              return %0 : tensor<128x128xf32>
            }""")
        self.run_tool("fp8-opt", "/tmp/matmul.mlir", "--fp8-select-kernels",
                      "--fp8-build-kernels", "-o", "/tmp/kernels.mlir")
        text = self.run_tool("fp8-translate", "--kernels-to-ptx", "/tmp/kernels.mlir")
        self.assertIn(".target sm_90a", text)

    def test_compiles_for_c(self):
        text = self.run_tool("../test/Integration/CUDA/capi-check", "cpu", "/tmp")
        self.assertEqual(text, "ok\n")
        # As somebody would who has nothing but the bundle and a compiler.
        output("cc", "-std=c11", "-Wall", "-Wextra", "-pedantic", "-Werror",
               f"-I{self.bundle}/include", self.bundle / "examples/compile_and_run.c",
               f"-L{self.bundle}/lib", "-lfp8c", "-lfp8rt", "-Wl,-rpath,/opt/fp8-bundle/lib",
               f"-Wl,-rpath-link,{self.bundle}/lib", "-o", self.root / "tmp/compile_and_run")
        text = self.run_tool("../../../tmp/compile_and_run", "cpu")
        self.assertRegex(text, r"^layer.matmul_0: fp8;.*\n196, and")

    def test_checks_files(self):
        check = self.root / "tmp/check"
        check.write_text("AFTER: {{[0-9]+}} of\nAFTER-NEXT: x\n")
        for text, code in (("12 of\nx\n", 0), ("12 of\n\nx\n", 1), ("", 2)):
            (self.root / "tmp/input").write_text(text)
            self.run_tool("../libexec/FileCheck", "/tmp/check", "--check-prefix=AFTER",
                          "--input-file=/tmp/input", code=code)

    def test_says_what_a_gpu_needs(self):
        text = self.run_tool("fp8-run", "/opt/fp8-bundle/examples/linear.mlir",
                             "--target=sm_90a", "--inputs=/tmp/in.safetensors", code=1)
        self.assertIn("libcuda.so.1", text)

    def test_check_without_a_gpu(self):
        result = subprocess.run(
            [self.bundle / "check_gpu", "--out", self.root / "tmp/check.json"], text=True,
            capture_output=True, env={**os.environ, "FP8_CUDA_DRIVER": "/nowhere/libcuda.so"})
        self.assertEqual(result.returncode, 2, result.stdout)
        self.assertIn("no GPU to check on: ", result.stderr)
        self.assertIn("/nowhere/libcuda.so", (self.root / "tmp/check.json").read_text())


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
