# RUN: %python %s
"""Calls that nobody should make: each is one error of ours, in a line that names what is wrong."""

import os
import resource
import signal
import subprocess
import sys
import tempfile
import threading
import unittest
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parent / "Inputs"))
import fp8  # noqa: E402
import programs  # noqa: E402
from fp8 import cache, casts, tensors  # noqa: E402

EMPTY = "func.func @f() { return }"
TWO = "func.func @f() { return }\nfunc.func @g() { return }"
LONG = "x" * 1_000_000
X = np.ones((4, 32), np.float32)
FOLDER = tempfile.TemporaryDirectory(prefix="fp8-hostile-")
HERE = Path(FOLDER.name)


def write(name, contents):
    path = HERE / name
    path.write_bytes(contents.encode() if isinstance(contents, str) else contents)
    return path


def compile(source, recipe=None, **options):
    return fp8.compile(source, recipe, **{"target": "cpu", "cache": False, **options})


class BadPath:
    """A path that cannot be had."""

    def __fspath__(self):
        raise ValueError("no path")


LINEAR = compile(programs.LINEAR, "delayed")
IDENTITY = compile("func.func @f(%x: tensor<?x32xf32>) -> tensor<?x32xf32> { return %x : tensor<?x32xf32> }")
SCALAR = compile("func.func @f(%x: i8) -> i8 { return %x : i8 }")
STATE = fp8.State(LINEAR)
OTHER = fp8.State(compile(programs.LINEAR, "delayed,margin=1"))
FROZEN = STATE.state_dict()
STATE.save(HERE / "state")
SAVED = (HERE / "state").read_bytes()
LINEAR.save(HERE / "linear.so")
LIBRARY = (HERE / "linear.so").read_bytes()
SLOT = next(iter(STATE.slots))
QUANTIZED = fp8.quantize(X)

# What is called, and what its message has. `E` is any of fp8's errors, or the one that is named.
CALLS = {
    "sources": [
        ("expected MLIR as text or bytecode", lambda: compile(5)),
        ("expected MLIR as text or bytecode", lambda: compile(None)),
        ("expected MLIR as text or bytecode", lambda: compile([EMPTY])),
        ("No such file", lambda: compile(HERE / "nothing.mlir")),
        ("Is a directory", lambda: compile(HERE)),
        ("null", lambda: compile("a\0b.mlir")),
        ("File name too long", lambda: compile(LONG)),
        ("surrogates", lambda: compile("func.func @f() { // \ud800\n return }")),
        ("No such file", lambda: compile("\udcff.mlir")),
        ("public function", lambda: compile(b"")),
        ("", lambda: compile(b"\0" * 100)),
        ("", lambda: compile(b"ML\xefR" + b"\xff" * 64)),
        ("", lambda: compile("func.func @f( {\n")),
        ("", lambda: compile(f"func.func @f() {{\n  return %{LONG} : f32\n}}")),
        ("", lambda: compile(f'func.func @f() {{\n  "{LONG}"() : () -> ()\n  return\n}}')),
        ("", lambda: compile("{" * 100)),
        ("", lambda: compile('func.func private @f()\n')),
        ("", lambda: compile("module {\n module {\n func.func @f() { return }\n }\n}")),
    ],
    "options": [
        ("unknown option 'nothing'", lambda: compile(EMPTY, nothing=1)),
        ("unknown option", lambda: compile(EMPTY, **{LONG: 1})),
        ("expected target", lambda: compile(EMPTY, target="")),
        ("expected target", lambda: compile(EMPTY, target="sm_70")),
        ("", lambda: compile(EMPTY, target=5)),
        ("null", lambda: compile(EMPTY, target="cpu\0")),
        ("", lambda: compile(EMPTY, target=None)),
        ("expected a recipe", lambda: compile(EMPTY, "nothing")),
        ("expected a recipe", lambda: compile(EMPTY, LONG)),
        ("null", lambda: compile(EMPTY, "current\0")),
        ("", lambda: compile(EMPTY, "current,current")),
        ("", lambda: compile(EMPTY, "delayed,amax_history_len=0")),
        ("", lambda: compile(EMPTY, "delayed,amax_history_len=99999999999999999999")),
        ("", lambda: compile(EMPTY, "mxfp8,mode=\ud800")),
        ("true or false", lambda: compile(EMPTY, require="maybe")),
        ("No such file", lambda: compile(EMPTY, recipe_file=HERE / "nothing.json")),
        ("", lambda: compile(EMPTY, recipe_file=HERE)),
        ("'version' a second time", lambda: compile(
            EMPTY, recipe_file=write("twice.json", '{"version": 1, "version": 1}'))),
        ("nests", lambda: compile(EMPTY, recipe_file=write("deep.json", "[" * 100_000))),
        ("No such file", lambda: compile(EMPTY, kernel_table=HERE / "nothing.json")),
        ("identifier of C", lambda: compile(EMPTY, name="a/b")),
        ("identifier of C", lambda: compile(EMPTY, name="int")),
        ("processor", lambda: compile(EMPTY, cpu="abacus")),
        ("", lambda: compile(EMPTY, state=HERE / "nothing")),
        ("", lambda: compile(programs.LINEAR, f"static,state={HERE}/nothing")),
        ("", lambda: compile(programs.LINEAR, f"static,state={write('garbage', SAVED[:100])}")),
        ("as the last phase", lambda: compile(EMPTY, to="fusion")),
        ("expected cache to be True, False or a path", lambda: compile(EMPTY, cache=5)),
        ("expected cache to be True, False or a path", lambda: compile(EMPTY, cache=object())),
        ("expected cache to be True, False or a path", lambda: compile(EMPTY, cache="a\0b")),
        ("expected cache to be True, False or a path", lambda: compile(EMPTY, cache=b"a")),
        ("", lambda: compile(EMPTY, name=b"a")),
        ("", lambda: compile(EMPTY, name=["a"])),
        ("expected", lambda: fp8.emit(EMPTY, "nothing", target="cpu")),
        ("expected", lambda: fp8.emit(EMPTY, "", target="cpu")),
        ("", lambda: fp8.emit(EMPTY, 5, target="cpu")),
        ("", lambda: fp8.emit(EMPTY, "ptx", target="cpu")),
        ("expected a phase", lambda: fp8.emit(EMPTY, "mlir", to="nowhere", target="cpu")),
    ],
    "programs": [
        ("No such file|cannot open", lambda: fp8.load(HERE / "nothing.so")),
        ("", lambda: fp8.load(HERE)),
        ("null", lambda: fp8.load("a\0b")),
        ("", lambda: fp8.load(5)),
        ("without null characters", lambda: fp8.load(BadPath())),
        ("", lambda: fp8.load("/dev/zero")),
        ("", lambda: fp8.load("/proc/self/mem")),
        ("", lambda: fp8.load("\ud800")),
        ("", lambda: fp8.load(write("text.so", "no object"))),
        ("", lambda: fp8.load(write("short.so", LIBRARY[:1000]))),
        ("", lambda: fp8.load("libc.so.6")),
        ("null", lambda: LINEAR.save("a\0b")),
        ("", lambda: LINEAR.save(HERE / "no" / "folder.so")),
        ("", lambda: LINEAR.save(HERE)),
        ("", lambda: LINEAR.save(5)),
        ("Is a directory", lambda: LINEAR.save(HERE / "a.so", HERE)),
        ("expected one of the functions f, g", lambda: compile(TWO)()),
        ("expected one of the functions f, g", lambda: compile(TWO)["h"]),
        ("", lambda: fp8.load(HERE / "linear.so").save(HERE / "again.so")),
        ("expected 2 arguments", lambda: LINEAR(state=STATE)),
        ("expected a state", lambda: LINEAR(*programs.make_inputs())),
        ("expected a state", lambda: LINEAR(*programs.make_inputs(), state=STATE._core)),
        ("", lambda: LINEAR(*programs.make_inputs(), state=OTHER)),
        ("BF16, but got F32", lambda: LINEAR(X, X, state=STATE)),
        ("to be I8, but got 128", lambda: SCALAR(128)),
        ("", lambda: IDENTITY(np.lib.stride_tricks.as_strided(X, (1 << 40, 32), (0, 4)))),
        ("a stream of CUDA", lambda: IDENTITY(X, stream=float("nan"))),
        ("a stream of CUDA", lambda: IDENTITY(X, stream=1 << 64)),
        ("to be I8, but got 1.5", lambda: SCALAR(1.5)),
        ("to be I8, but got nan", lambda: SCALAR(float("nan"))),
        ("an array, but got str", lambda: SCALAR("1")),
    ],
    "states": [
        ("expected a program, but got str", lambda: fp8.State("program")),
        ("expected a program, but got NoneType", lambda: fp8.State(None)),
        ("", lambda: fp8.State(SCALAR)),
        ("a stream of CUDA", lambda: STATE.end_step("s")),
        ("a stream of CUDA", lambda: STATE.end_step(-1)),
        ("", lambda: STATE.set_scale("nothing", 1)),
        ("", lambda: STATE.set_scale(LONG, 1)),
        ("", lambda: STATE.set_scale(5, 1)),
        ("", lambda: STATE.set_scale(SLOT, 0)),
        ("", lambda: STATE.set_scale(SLOT, float("inf"))),
        ("expected a scale", lambda: STATE.set_scale(SLOT, "1x")),
        ("expected a scale", lambda: STATE.set_scale(SLOT, 10 ** 400)),
        ("expected a seed", lambda: STATE.set_seed("s")),
        ("expected a seed", lambda: STATE.set_seed(-1)),
        ("stochastic rounding", lambda: STATE.set_seed(1)),
        ("No such file", lambda: STATE.load(HERE / "nothing")),
        ("", lambda: STATE.load(HERE)),
        ("", lambda: STATE.load("/proc/self/mem")),
        ("", lambda: STATE.save("/proc/version")),
        ("", lambda: STATE.set_scale(SLOT, float("nan"))),
        ("", lambda: STATE.set_scale(SLOT, 1e-320)),
        ("", lambda: STATE.set_scale(SLOT, 1e300)),
        ("null", lambda: STATE.load("a\0b")),
        ("", lambda: STATE.load(write("cut", SAVED[:-1]))),
        ("", lambda: STATE.load(write("flipped", SAVED[:-1] + bytes([SAVED[-1] ^ 1])))),
        ("", lambda: STATE.load(write("no-header", b"\xff" * 64))),
        ("", lambda: OTHER.load(HERE / "state", strict=True)),
        ("", lambda: STATE.save(HERE / "no" / "folder")),
        ("", lambda: STATE.save(5)),
        ("No space|full", lambda: STATE.save("/dev/full")),
        ("expected a state_dict, but got list", lambda: STATE.load_state_dict([])),
        ("expected 'metadata'", lambda: STATE.load_state_dict({})),
        ("expected 'metadata'", lambda: STATE.load_state_dict(
            {**FROZEN, "metadata": np.frombuffer(b'{"a": 1}', np.uint8)})),
        ("expected 'metadata'", lambda: STATE.load_state_dict(
            {**FROZEN, "metadata": np.frombuffer(b"[" * 100_000, np.uint8)})),
        ("expected 'metadata'", lambda: STATE.load_state_dict(
            {**FROZEN, "metadata": np.uint8(5)})),
        ("expected 'metadata'", lambda: STATE.load_state_dict(
            {**FROZEN, "metadata": np.zeros(100)})),
        ("to name an array", lambda: STATE.load_state_dict({"a": FROZEN})),
        ("to name an array", lambda: STATE.load_state_dict({**FROZEN, 5: X})),
        ("to name an array", lambda: STATE.load_state_dict({**FROZEN, "a\ud800": X})),
        ("to name an array", lambda: STATE.load_state_dict({**FROZEN, "amax": object()})),
        ("", lambda: STATE.load_state_dict({**FROZEN, LONG: X})),
        ("", lambda: STATE.load_state_dict({**FROZEN, "amax": X})),
    ],
    "casts": [
        ("expected the format", lambda: fp8.quantize(X, "e3m4")),
        ("expected the format", lambda: fp8.quantize(X, [])),
        ("expected the format", lambda: fp8.quantize(X, LONG)),
        ("expected the scale", lambda: fp8.quantize(X, scale=None)),
        ("expected a block", lambda: fp8.quantize(X, block=(1, 0))),
        ("expected a block", lambda: fp8.quantize(X, block=(1,))),
        ("expected a block", lambda: fp8.quantize(X, block=5)),
        ("expected a block", lambda: fp8.quantize(X, block=(1.5, 4))),
        ("expected a block", lambda: fp8.quantize(X, block=(-1, 4))),
        ("", lambda: fp8.quantize(np.zeros((1,) * 9, np.float32))),
        ("", lambda: fp8.dequantize((1, 2, 3))),
        ("expected a block", lambda: fp8.quantize(X, block="ab")),
        ("", lambda: fp8.quantize(X, block=(1, 2 ** 70))),
        ("expected an array of F32", lambda: fp8.quantize(X.astype(np.int8))),
        ("expected an array of F32", lambda: fp8.quantize(np.float32(1))),
        ("to be an array", lambda: fp8.quantize(None)),
        ("to be an array", lambda: fp8.quantize([1.0])),
        ("", lambda: fp8.quantize(X, amax_epsilon="x")),
        ("", lambda: fp8.quantize(X, style="nothing")),
        ("expected no 'mode'", lambda: fp8.quantize(X, mode="floor")),
        ("", lambda: fp8.quantize(X, pow2="true, mode = floor>")),
        ("expected what quantize returned", lambda: fp8.dequantize(X)),
        ("expected what quantize returned", lambda: fp8.dequantize(None)),
        ("expected the dtype", lambda: fp8.dequantize(QUANTIZED, "f64")),
        ("expected the format", lambda: fp8.dequantize(QUANTIZED._replace(format="e3m4"))),
        ("", lambda: fp8.dequantize(QUANTIZED._replace(scale_inv=X))),
        ("", lambda: fp8.dequantize(QUANTIZED._replace(codes=None))),
    ],
}
# Functions of fp8.tensors, which does without the compiler and its errors, and of recipes.
OTHERS = [
    ("No such file", lambda: tensors.load(HERE / "nothing")),
    ("", lambda: tensors.load(HERE)),
    ("", lambda: tensors.load(write("empty", b""))),
    ("", lambda: tensors.load(write("huge", b"\xff" * 8 + b"{}"))),
    ("", lambda: tensors.load(write("unknown", b"\x48" + b"\0" * 7 + (
        b'{"x":{"dtype":"F6_E2M3","shape":[4],"data_offsets":[0,3]}}').ljust(72) + b"abc"))),
    ("", lambda: tensors.save(HERE / "out", {"x": X.astype(object)})),
    ("", lambda: tensors.save(HERE / "out", {"x": [1]})),
    ("", lambda: tensors.save(HERE / "out", [X])),
    ("", lambda: tensors.save(HERE / "no" / "folder", {"x": X})),
    ("", lambda: tensors.save("/dev/full", {"x": X})),
    ("null", lambda: tensors.load("a\0b")),
    ("a regular file or a pipe", lambda: tensors.load("/dev/zero")),
    ("other than __metadata__", lambda: tensors.save(HERE / "out", {"__metadata__": X})),
    ("to be text", lambda: tensors.save(HERE / "out", {"a\ud800": X})),
    ("to be text", lambda: tensors.save(HERE / "out", {5: X})),
    ("no path", lambda: tensors.load(BadPath())),
    ("expected a recipe, its text or None", lambda: compile(EMPTY, 5)),
    ("expected a recipe, its text or None", lambda: compile(EMPTY, object())),
]


class Calls(unittest.TestCase):
    def test_calls(self):
        for kind, calls in CALLS.items():
            for number, (message, call) in enumerate(calls):
                with self.subTest(kind, number=number, message=message):
                    with self.assertRaises(fp8.Error) as caught:
                        call()
                    text = str(caught.exception)
                    self.assertRegex(text, message or ".")
                    self.assertLess(len(text), 20_000)
                    if not isinstance(caught.exception, fp8.CompileError):
                        self.assertNotIn("\n", text)

    def test_calls_beside_the_compiler(self):
        for number, (message, call) in enumerate(OTHERS):
            with self.subTest(number=number, message=message):
                with self.assertRaises((OSError, ValueError, TypeError)) as caught:
                    call()
                self.assertRegex(str(caught.exception), message or ".")
                self.assertNotIn("\n", str(caught.exception))


def run(code, **options):
    """A process of its own, which has to end by itself."""
    prefix = (f"import sys; sys.path.insert(0, {str(Path(__file__).parent / 'Inputs')!r})\n"
              "import fp8, programs, os, signal, threading, numpy as np\n")
    return subprocess.run([sys.executable, "-c", prefix + code], capture_output=True, text=True,
                          timeout=300, **options)


class Processes(unittest.TestCase):
    def check(self, done, status=0, stderr=""):
        self.assertEqual(done.returncode, status, done.stderr[-2000:])
        self.assertEqual(done.stderr, stderr)

    def test_a_cache_of_another_encoding(self):
        code = "fp8.compile('func.func @f() {return}', target='cpu')()"
        for name in (b"\xff\xfe", b"a b\n", "ä".encode("latin-1")):
            environment = {**os.environb, b"XDG_CACHE_HOME": os.fsencode(HERE) + b"/" + name}
            for _ in range(2):  # Made, and found.
                self.check(run(code, env=environment))

    def test_a_full_disk(self):
        limit = 4096
        code = ("signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
                "p = fp8.compile('func.func @f() {return}', target='cpu', cache=False)\n"
                f"try: p.save({str(HERE / 'full.so')!r})\n"
                "except fp8.Error as e: assert len(str(e)) < 500, e; print('refused')\n"
                # Compiled all the same, and not kept.
                f"fp8.compile('func.func @g() {{return}}', target='cpu', cache={str(HERE)!r})()")
        done = run(code, preexec_fn=lambda: resource.setrlimit(
            resource.RLIMIT_FSIZE, (limit, limit)))
        self.check(done)
        self.assertEqual(done.stdout, "refused\n")
        self.assertFalse((HERE / "full.so").exists())

    def test_forks(self):
        code = ("p = fp8.compile(programs.LINEAR, 'current', target='cpu', cache=False)\n"
                "def child():\n"
                "    q = fp8.compile(programs.SEVERAL, target='cpu', cache=False)\n"
                "    q.negate(np.ones((2, 3), np.float32))\n"
                "    try: q.negate(5)\n"
                "    except fp8.ArgumentError: os._exit(7)\n"
                "pid = os.fork()\n"
                "if pid == 0: child()\n"
                "assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 7\n"
                "p(*programs.make_inputs())")
        self.check(run(code))

    def test_threads(self):
        code = ("p = fp8.compile(programs.LINEAR, 'delayed', target='cpu', cache=False)\n"
                "s, kinds = fp8.State(p), set()\n"
                # All at the first call, which finds what is kept from then on.
                "start = threading.Barrier(4)\n"
                "def work():\n"
                "    start.wait()\n"
                "    for i in range(20):\n"
                "        try: p(*programs.make_inputs(), state=s); s.end_step()\n"
                "        except fp8.BusyError as e: assert '\\n' not in str(e)\n"
                "        except BaseException as e: kinds.add(repr(e))\n"
                "threads = [threading.Thread(target=work) for _ in range(4)]\n"
                "[t.start() for t in threads]; [t.join() for t in threads]\n"
                "assert not kinds, kinds")
        self.check(run(code))

    def test_signals(self):
        # A handler that raises ends a compilation; those that do not leave it alone.
        code = ("class Stop(Exception): pass\n"
                "def stop(*_): raise Stop\n"
                "def compile(): fp8.compile(programs.LINEAR, 'mxfp8', target='cpu', cache=False)\n"
                "signal.signal(signal.SIGALRM, lambda *_: None)\n"
                "signal.setitimer(signal.ITIMER_REAL, 0.001, 0.001)\n"
                "compile()\n"
                "signal.setitimer(signal.ITIMER_REAL, 0)\n"
                "signal.signal(signal.SIGALRM, stop)\n"
                "signal.setitimer(signal.ITIMER_REAL, 0.05)\n"
                "try:\n"
                "    while True: compile()\n"
                "except Stop: pass\n"
                "compile()\n")
        self.check(run(code))


if __name__ == "__main__":
    unittest.main()
