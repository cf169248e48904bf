# RUN: rm -rf %t && %python %s %t
# REQUIRES: linker
"""Programs on disk: what is found again, what is made anew, and several processes."""

import errno
import json
import os
import shutil
import stat
import subprocess
import sys
import threading
import time
import unittest
import warnings
from pathlib import Path
from unittest import mock

sys.path.insert(0, str(Path(__file__).parent / "Inputs"))
import fp8  # noqa: E402
import programs  # noqa: E402
from fp8 import _core, cache  # noqa: E402

FOLDER = Path(sys.argv.pop()) if len(sys.argv) > 1 else Path("cache-test")


class Cache(unittest.TestCase):
    def setUp(self):
        self.folder = FOLDER / self.id().rpartition(".")[2]
        shutil.rmtree(self.folder, ignore_errors=True)
        self.count, self.compile_core = 0, _core.compile
        _core.compile = self.count_compilations

    def tearDown(self):
        _core.compile = self.compile_core

    def count_compilations(self, *arguments):
        self.count += 1
        return self.compile_core(*arguments)

    def compile(self, source=programs.LINEAR, recipe="current", **options):
        return fp8.compile(source, recipe, **{"target": "cpu", "cache": self.folder, **options})

    def get_entries(self):
        return sorted(self.folder.iterdir()) if self.folder.exists() else []

    def test_the_same_program_is_found(self):
        first, second = self.compile(), self.compile()
        self.assertEqual(self.count, 1)
        self.assertEqual(second.remarks, first.remarks)
        self.assertEqual(repr(second.functions), repr(first.functions))
        x, w = programs.make_inputs()
        self.assertEqual(second(x, w).tobytes(), first(x, w).tobytes())

    def test_what_was_found_can_be_saved(self):
        path, header = FOLDER / "found.so", FOLDER / "found.h"
        first, second = self.compile(), self.compile()
        self.assertEqual(self.count, 1)
        second.save(path, header)
        x, w = programs.make_inputs()
        self.assertEqual(fp8.load(path)(x, w).tobytes(), first(x, w).tobytes())
        self.assertIn("linear", header.read_text())
        with self.assertRaises(fp8.FileError):
            second.save(FOLDER / "nowhere" / "found.so")

    def test_states(self):
        x, w = programs.make_inputs()
        results = []
        for _ in range(2):
            program = self.compile(recipe=fp8.DelayedScaling(amax_history_len=4))
            state = fp8.State(program)
            for _ in range(3):
                y = program(x, w, state=state)
                state.end_step()
            results.append((y.tobytes(), state.slots))
        self.assertEqual(self.count, 1)
        self.assertEqual(results[0], results[1])

    def test_what_makes_a_program_another(self):
        self.compile()
        self.compile(programs.LINEAR + "\n")
        self.compile(recipe="mxfp8")
        self.compile(max_padding=0)
        rules = FOLDER / "rules.json"
        for recipe in ("none", "mxfp8"):
            rules.write_text(json.dumps(
                {"version": 1, "rules": [{"match": "*", "recipe": recipe}]}))
            program = self.compile(recipe=None, recipe_file=rules)
            self.assertEqual(program.remarks[0].recipe, recipe)
        self.assertEqual(self.count, 6)
        self.assertEqual(len(self.get_entries()), 6)

    def test_a_saved_state_is_part_of_static(self):
        program = self.compile(recipe="delayed")
        state, path = fp8.State(program), FOLDER / "state.safetensors"
        for scale in (2, 4):
            state.set_scale("layer.linear.x", scale)
            state.save(path)
            self.compile(recipe=fp8.StaticScaling(str(path)))
        self.assertEqual(self.count, 3)

    def test_damaged_entries_are_made_anew(self):
        x, w = programs.make_inputs()
        expected = self.compile()(x, w).tobytes()

        def cut(path):
            path.write_bytes(path.read_bytes()[:100])
        for name, damage in [("program.so", cut), ("program.so", Path.unlink),
                             ("program.so", lambda path: path.write_bytes(b"")),
                             ("notes.json", cut), ("notes.json", Path.unlink),
                             ("notes.json", lambda path: path.write_text("{}")),
                             ("notes.json", lambda path: path.write_text("[1]"))]:
            (entry,) = self.get_entries()
            damage(entry / name)
            before = self.count
            self.assertEqual(self.compile()(x, w).tobytes(), expected)
            self.assertEqual(self.count, before + 1)
            self.compile()
            self.assertEqual(self.count, before + 1, name)

    def test_errors_are_not_kept(self):
        for _ in range(2):
            with self.assertRaises(fp8.CompileError):
                self.compile("func.func @f() -> f32 {\n}")
        self.assertEqual((self.count, self.get_entries()), (2, []))

    def test_none(self):
        self.compile(cache=False)
        self.compile(cache=False)
        self.assertEqual((self.count, self.get_entries()), (2, []))

    def refuse(self, path, message, **changes):
        """A path of that mode or owner is not used, is left alone, and is spoken of once."""
        before = os.lstat(path)
        if "mode" in changes:
            path.chmod(changes["mode"])
        if "owner" in changes:
            os.chown(path, changes["owner"], -1)
        entries, count = self.get_entries(), self.count
        cache._warn.cache_clear()
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            for _ in range(2):
                self.assertIn("linear", self.compile().functions)
        self.assertEqual((self.get_entries(), self.count), (entries, count + 2))
        (warning,) = caught
        self.assertIs(warning.category, RuntimeWarning)
        self.assertRegex(str(warning.message), f"^the cache of programs is not used: '.*': {message}")
        os.chown(path, before.st_uid, -1)
        path.chmod(stat.S_IMODE(before.st_mode))

    def test_what_others_may_write(self):
        self.compile()
        (entry,) = self.get_entries()
        self.assertEqual(stat.S_IMODE(self.folder.stat().st_mode), 0o700)
        for mode in (0o777, 0o770):
            self.refuse(self.folder, "expected a directory that nobody else may write to, but got "
                                     f"one of mode {mode:04o}$", mode=mode)
        self.refuse(FOLDER, "expected it in folders that nobody else may write to", mode=0o777)
        self.refuse(entry, "expected a directory that nobody else may write to", mode=0o757)
        for name in ("program.so", "notes.json"):
            self.assertEqual(stat.S_IMODE((entry / name).stat().st_mode), 0o600)
            self.refuse(entry / name, "expected a file that nobody else may write to", mode=0o622)
        FOLDER.chmod(0o1777)  # As /tmp.
        count = self.count
        self.compile()
        self.assertEqual(self.count, count)
        FOLDER.chmod(0o755)

    @unittest.skipUnless(os.geteuid() == 0, "needs root")
    def test_what_others_own(self):
        self.compile()
        (entry,) = self.get_entries()
        for path, kind in ((self.folder, "directory"), (entry, "directory"),
                           (entry / "program.so", "file"), (entry / "notes.json", "file")):
            self.refuse(path, f"expected a {kind} of user 0, but got one of user 12345$",
                        owner=12345)
        self.refuse(FOLDER, "expected it in folders of user 0 or root, but '.*' is one of user",
                    owner=12345)

    def test_a_folder_that_is_not_there(self):
        FOLDER.chmod(0o777)
        cache._warn.cache_clear()
        with self.assertWarnsRegex(RuntimeWarning, "nobody else may write to"):
            self.compile()
        FOLDER.chmod(0o755)
        self.assertEqual(self.get_entries(), [])

    def test_what_is_no_file(self):
        self.compile()
        (entry,) = self.get_entries()
        for name in ("program.so", "notes.json"):
            kept = (entry / name).read_bytes()
            (entry / name).unlink()
            os.mkfifo(entry / name, 0o600)
            self.refuse(entry / name, "expected a regular file$")
            (entry / name).unlink()
            (entry / name).write_bytes(kept)
            (entry / name).chmod(0o600)

    def test_folders_that_cannot_be(self):
        self.folder.parent.mkdir(parents=True, exist_ok=True)
        self.folder.write_text("a file")
        self.assertIn("linear", self.compile().functions)
        self.folder.unlink()

    def test_without_a_linker(self):
        path = os.environ["PATH"]
        os.environ["PATH"] = "/nowhere"
        try:
            self.assertIn("linear", self.compile().functions)
        finally:
            os.environ["PATH"] = path
        self.assertEqual(self.get_entries(), [])

    def test_several_processes(self):
        code = ("import sys, fp8; from fp8 import programs; noted = []\n"
                "with programs.noting(lambda: noted.append(1)):\n"
                f"  p = fp8.compile(sys.stdin.read(), 'current', target='cpu', cache={str(self.folder)!r})\n"
                "print(p.remarks[0].kind, len(noted))")
        processes = [subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE,
                                      stdout=subprocess.PIPE, text=True) for _ in range(4)]
        said = []
        for process in processes:
            process.stdin.write(programs.LINEAR)
            process.stdin.flush()
        for process in processes:
            said.append(process.communicate()[0])
            self.assertEqual(process.returncode, 0)
        # One compiles, and the others wait.
        self.assertEqual(sorted(said), 3 * ["fp8 0\n"] + ["fp8 1\n"])
        (entry,) = self.get_entries()
        self.assertFalse(entry.name.startswith("."))

    def compile_in_threads(self, count=3):
        """How many of so many threads that want a program compile it, each for a while."""
        meet, compile_core = threading.Barrier(count), _core.compile

        def compile_slowly(*arguments):
            time.sleep(0.2)
            return compile_core(*arguments)

        def run():
            meet.wait()
            self.assertIn("linear", self.compile().functions)

        with mock.patch.object(_core, "compile", compile_slowly):
            threads = [threading.Thread(target=run) for _ in range(count)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
        return self.count

    def test_threads(self):
        self.assertEqual(self.compile_in_threads(), 1)
        self.assertEqual(len(self.get_entries()), 1)

    def test_files_that_cannot_be_locked(self):
        with mock.patch.object(cache.fcntl, "flock", side_effect=OSError(errno.ENOLCK, "no locks")):
            self.assertEqual(self.compile_in_threads(), 3)

    def test_who_does_not_end(self):
        """Nobody waits for it without end."""
        with mock.patch.object(cache, "_LONGEST_WAIT", 0.05):
            self.assertEqual(self.compile_in_threads(), 3)

    def test_who_has_died(self):
        """Its lock goes with it, and what compiles next takes its file away."""
        code = ("import os, fp8; from pathlib import Path; from fp8 import cache\n"
                f"with cache.Entry(Path({str(self.folder / 'x')!r})).claim(): os._exit(1)")
        subprocess.run([sys.executable, "-c", code], check=False)
        self.assertEqual([path.name for path in self.get_entries()], [".lock-x"])
        with cache.Entry(self.folder / "x").claim():
            pass
        self.assertEqual(self.get_entries(), [])

    def test_the_usual_place(self):
        os.environ["XDG_CACHE_HOME"] = str(self.folder)
        self.compile(cache=True)
        self.assertEqual(len(list(cache.get_directory().iterdir())), 1)
        self.assertTrue(cache.get_directory().is_relative_to(self.folder))
        cache.clear()
        self.assertFalse(cache.get_directory().exists())


if __name__ == "__main__":
    FOLDER.mkdir(parents=True, exist_ok=True)
    unittest.main()
