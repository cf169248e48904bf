# RUN: %python %s %t
"""Files are replaced whole; what cannot be replaced is written to. No test here goes near a device
of the machine: if it failed, that would be gone."""

import contextlib
import os
import shutil
import stat
import subprocess
import sys
import threading
import time
import unittest
from pathlib import Path

import numpy as np
import safetensors.numpy

import fp8
from fp8 import files, tensors

FOLDER = Path(sys.argv.pop())
X = {"x": np.arange(4, dtype=np.float32)}


class Files(unittest.TestCase):
    def setUp(self):
        shutil.rmtree(FOLDER, ignore_errors=True)
        FOLDER.mkdir(parents=True)
        self.path = FOLDER / "file"

    def list(self):
        return sorted(path.name for path in FOLDER.iterdir())

    def read_pipe(self, write):
        """What arrives in a pipe at `self.path`, which is one afterwards, too."""
        os.mkfifo(self.path)
        arrived = []
        reader = threading.Thread(target=lambda: arrived.append(self.path.read_bytes()))
        reader.daemon = True
        reader.start()
        write()
        self.assertTrue(stat.S_ISFIFO(os.stat(self.path).st_mode))
        reader.join(60)
        return arrived[0]

    def test_replaces(self):
        for text in ("old", "new"):
            files.write_text(self.path, text)
            self.assertEqual(self.path.read_text(), text)
            self.assertEqual(self.list(), ["file"])

    def test_keeps_the_old_file_after_an_error(self):
        files.write_text(self.path, "old")

        def fail(draft):
            Path(draft).write_text("half")
            raise ValueError

        with self.assertRaises(ValueError):
            files.replace(self.path, fail)
        self.assertEqual(self.path.read_text(), "old")
        self.assertEqual(self.list(), ["file"])

    def test_follows_links(self):
        (FOLDER / "link").symlink_to("file")
        for text in ("old", "new"):  # At first it leads nowhere.
            files.write_text(FOLDER / "link", text)
            self.assertEqual(self.path.read_text(), text)
            self.assertEqual(os.readlink(FOLDER / "link"), "file")

    def test_writes_to_pipes(self):
        self.assertEqual(self.read_pipe(lambda: files.write_text(self.path, "text")), b"text")

    def test_writes_to_links_to_pipes(self):
        (FOLDER / "link").symlink_to("file")
        arrived = self.read_pipe(lambda: files.write_bytes(FOLDER / "link", b"text"))
        self.assertEqual(arrived, b"text")
        self.assertTrue((FOLDER / "link").is_symlink())

    def test_writes_to_devices(self):
        try:
            os.mknod(self.path, 0o600 | stat.S_IFCHR, os.makedev(1, 7))  # That is always full.
            with open(self.path, "wb"):
                pass
        except OSError as error:
            self.skipTest(f"no device: {error.strerror}")
        with self.assertRaisesRegex(OSError, "No space left"):
            files.write_text(self.path, "text")
        self.assertTrue(stat.S_ISCHR(os.stat(self.path).st_mode))

    def test_folders_are_errors(self):
        self.path.mkdir()
        with self.assertRaises(IsADirectoryError):
            files.write_text(self.path, "text")
        with self.assertRaises(FileNotFoundError):
            files.write_text(FOLDER / "no" / "file", "text")
        self.assertEqual(self.list(), ["file"])

    def start_writer(self, pause):
        """A thread that has the pipe open, and writes once somebody reads: what is written to a
        pipe without a reader is lost."""
        reading = os.open(self.path, os.O_RDWR)
        writing = os.open(self.path, os.O_WRONLY)
        os.close(reading)

        def write():
            time.sleep(pause)
            while True:
                with contextlib.suppress(BrokenPipeError):
                    os.write(writing, b"text")
                    break
                time.sleep(0.001)
            os.close(writing)

        writer = threading.Thread(target=write)
        writer.start()
        return writer

    def test_reads(self):
        for contents in (b"", b"text", bytes(100000)):
            self.path.write_bytes(contents)
            self.assertEqual(files.read(self.path), contents)
        self.path.unlink()
        os.mkfifo(self.path)
        for read in (files.read, tensors.load):
            with self.assertRaisesRegex(OSError, "but got a pipe without a writer"):
                read(self.path)
        with self.assertRaisesRegex(fp8.FileError, "but got a pipe without a writer"):
            fp8.compile(self.path, target="cpu")
        for pause in (0, 1):
            writer = self.start_writer(pause)
            self.assertEqual(files.read(self.path), b"text")
            writer.join()
        with self.assertRaises(IsADirectoryError):
            files.read(FOLDER)
        with self.assertRaisesRegex(OSError, "expected a regular file or a pipe"):
            files.read("/dev/zero")
        self.assertEqual(files.read("/dev/null"), b"")

    def test_pipes_are_not_cached(self):
        program, rules = FOLDER / "negate.mlir", FOLDER / "rules"
        program.write_text("func.func @f(%x: f32) -> f32 {\nreturn %x : f32\n}\n")
        os.mkfifo(rules)
        with self.assertRaisesRegex(fp8.CompileError, "but got a pipe without a writer"):
            fp8.compile(program, target="cpu", recipe_file=rules, cache=FOLDER / "cache")

    def test_tensors(self):
        arrived = self.read_pipe(lambda: tensors.save(self.path, X))
        np.testing.assert_array_equal(safetensors.numpy.load(arrived)["x"], X["x"])

    def test_report(self):
        program, inputs = FOLDER / "negate.mlir", FOLDER / "inputs.safetensors"
        program.write_text("func.func @negate(%x: tensor<4xf32> {fp8.name = \"x\"}) -> "
                           "tensor<4xf32> {\n%y = arith.negf %x : tensor<4xf32>\n"
                           "return %y : tensor<4xf32>\n}\n")
        tensors.save(inputs, X)

        def write():
            subprocess.run([sys.executable, "-m", "fp8", "report", program, "--inputs", inputs,
                            "--recipes=current", "-o", self.path], check=True, timeout=120)

        self.assertIn(b"<html", self.read_pipe(write))

    def test_nothing_else_replaces(self):
        """In the whole package."""
        package = Path(fp8.__file__).parent
        for path in sorted(package.rglob("*.py")):
            if path.name not in ("files.py", "cache.py"):  # A cache's entries are folders.
                for word in ("os.replace(", "os.rename(", "draft.replace(", ".rename("):
                    self.assertNotIn(word, path.read_text(), path)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
