# RUN: rm -rf %t && %python %s %t %fp8_source
"""Command lines that nobody should type: each ends by itself, with one error and a status that
says so, whatever the tool, and leaves nothing half written."""

import concurrent.futures
import json
import os
import resource
import shutil
import signal
import subprocess
import sys
from pathlib import Path

HERE, SOURCE = Path(sys.argv[1]), Path(sys.argv[2])
HERE.mkdir(parents=True)
LINEAR = SOURCE / "examples" / "linear.mlir"


def write(name, contents):
    path = HERE / name
    path.write_bytes(contents.encode() if isinstance(contents, str) else contents)
    return path


EMPTY = write("empty.mlir", "")
GOOD = write("good.mlir", "func.func @f(%x: tensor<4xf32>) -> tensor<4xf32> {\n"
             "  return %x : tensor<4xf32>\n}\n")
BROKEN = write("broken.mlir", "func.func @f( {\n")
BINARY = write("binary.mlir", bytes(range(256)) * 16)
BYTECODE = write("bytecode.mlir", b"ML\xefR\xff\xff\xff\xff" * 8)
GARBAGE = write("garbage.safetensors", b"\xff" * 100)
NOTHING, FOLDER = HERE / "nothing", HERE / "folder"
FOLDER.mkdir()
INPUTS = write("inputs.safetensors", (72).to_bytes(8, "little") + (
    b'{"arg0":{"dtype":"F32","shape":[4],"data_offsets":[0,16]}}').ljust(72) + bytes(16))
SHAPE = write("shape.safetensors", (72).to_bytes(8, "little") + (
    b'{"arg0":{"dtype":"F32","shape":[2,2],"data_offsets":[0,16]}}').ljust(72) + bytes(16))
TWICE = write("twice.json", '{"version": 1,\n"version": 1}')
DEEP = write("deep.json", "[" * 100_000)
LOOP, SPARSE = HERE / "loop", HERE / "sparse.mlir"
LOOP.symlink_to(LOOP)
with open(SPARSE, "wb") as sparse:
    sparse.truncate(1 << 40)
MANY = write("many.mlir", "func.func @f() {\n  return\n}\n" + "// a comment\n" * 100_000)


def write_tensors(name, header, size=16):
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return write(name, len(text).to_bytes(8, "little") + text + bytes(size))


X = {"dtype": "F32", "shape": [4], "data_offsets": [0, 16]}
TENSORS = [write_tensors(f"tensors{i}", header) for i, header in enumerate((
    {"arg0": {**X, "shape": [1 << 62, 4]}}, {"arg0": {**X, "shape": [-4]}},
    {"arg0": {**X, "shape": [4.5]}}, {"arg0": {**X, "data_offsets": [16, 0]}},
    {"arg0": {**X, "data_offsets": [0, 1 << 63]}}, {"arg0": {**X, "dtype": 5}},
    {"arg0": {**X, "dtype": "F32\0"}}, {"arg0": X, "arg1": X}, {"arg0": X, "__metadata__": 5},
    b'{"arg0":' + b"[" * 100_000, b'{"arg0":%b,"arg0":%b}' % ((json.dumps(X).encode(),) * 2)))]
LIBRARY = write("library.so", b"\x7fELF\x02\x01\x01" + bytes(64))

CALLS = [
    # What is read.
    ["fp8-compile", NOTHING, "-o", HERE / "out.so"],
    ["fp8-compile", FOLDER, "-o", HERE / "out.so"],
    ["fp8-compile", EMPTY, "-o", HERE / "out.so"],
    ["fp8-compile", BROKEN, "-o", HERE / "out.so"],
    ["fp8-compile", BINARY, "-o", HERE / "out.so"],
    ["fp8-compile", BYTECODE, "-o", HERE / "out.so"],
    ["fp8-compile", GOOD, GOOD, "-o", HERE / "out.so"],
    ["fp8-compile", "", "-o", HERE / "out.so"],
    ["fp8-compile", "-", "-o", HERE / "out.so"],
    ["fp8-run", NOTHING],
    ["fp8-run", FOLDER],
    ["fp8-run", BROKEN],
    ["fp8-run", BINARY],
    ["fp8-run", LIBRARY],
    ["fp8-run", GARBAGE],
    ["fp8-opt", NOTHING],
    ["fp8-opt", BINARY],
    ["fp8-opt", BYTECODE],
    ["fp8-translate", "--kernels-to-ptx", BROKEN],
    ["fp8-state", NOTHING],
    ["fp8-state", FOLDER],
    ["fp8-state", GARBAGE],
    ["fp8-survey", NOTHING],
    ["fp8-survey", FOLDER],
    ["fp8-survey", LOOP],
    ["fp8-compile", LOOP, "-o", HERE / "out.so"],
    ["fp8-compile", SPARSE, "-o", HERE / "out.so"],
    ["fp8-compile", "/dev/zero", "-o", HERE / "out.so"],
    ["fp8-compile", GOOD, "-o", HERE / "out.so", f"--recipe-file={SPARSE}"],
    ["fp8-compile", GOOD, "-o", HERE / "out.so", "--recipe-file=/dev/zero"],
    ["fp8-compile", GOOD, "-o", HERE / "out.so", "--target=sm_90a", f"--machine={SPARSE}"],
    ["fp8-compile", GOOD, "-o", HERE / "out.so", "--target=sm_90a", "--machine=/dev/zero"],
    ["fp8-run", SPARSE],
    ["fp8-run", GOOD, f"--inputs={SPARSE}"],
    ["fp8-run", GOOD, f"--inputs={LOOP}"],
    ["fp8-state", "print", SPARSE],
    *(["fp8-run", GOOD, f"--inputs={tensors}"] for tensors in TENSORS),
    ["fp8-translate", "--kernels-to-ptx", MANY],
    ["fp8-translate", "--kernels-to-cubin", MANY],
    ["fp8-lsp-server"],
    # Options.
    ["fp8-compile", GOOD],
    ["fp8-compile", GOOD, "-o"],
    ["fp8-compile", GOOD, "-o", ""],
    ["fp8-compile", GOOD, "-o", HERE / "out.so", "--nothing"],
    ["fp8-compile", GOOD, "-o", HERE / "out.so", "--target=sm_70"],
    ["fp8-compile", GOOD, "-o", HERE / "out.so", "--target="],
    ["fp8-compile", GOOD, "-o", HERE / "out.so", "--recipe=nothing"],
    ["fp8-compile", GOOD, "-o", HERE / "out.so", "--recipe=\udcff"],
    ["fp8-compile", GOOD, "-o", HERE / "out.so", "--recipe-file", NOTHING],
    ["fp8-compile", GOOD, "-o", HERE / "out.so", f"--recipe-file={NOTHING}"],
    ["fp8-compile", GOOD, "-o", HERE / "out.so", f"--recipe-file={FOLDER}"],
    ["fp8-compile", GOOD, "-o", HERE / "out.so", f"--recipe-file={BINARY}"],
    ["fp8-compile", GOOD, "-o", HERE / "out.so", f"--recipe-file={TWICE}"],
    ["fp8-compile", GOOD, "-o", HERE / "out.so", f"--recipe-file={DEEP}"],
    ["fp8-compile", GOOD, "-o", HERE / "out.so", f"--kernel-table={NOTHING}"],
    ["fp8-compile", GOOD, "-o", HERE / "out.so", f"--kernel-table={FOLDER}"],
    ["fp8-compile", GOOD, "-o", HERE / "out.so", "--name=a/b"],
    ["fp8-compile", GOOD, "-o", HERE / "out.so", "--name=int"],
    ["fp8-compile", GOOD, "-o", HERE / "out.so", "--name=ä"],
    ["fp8-compile", GOOD, "-o", HERE / "out.so", "--cpu=abacus"],
    ["fp8-compile", GOOD, "-o", HERE / "out.so", f"--linker={NOTHING}"],
    ["fp8-compile", GOOD, "-o", HERE / "out.so", "--linker=false"],
    ["fp8-compile", GOOD, "-o", HERE / "out.so", f"--load-dialect-plugin={NOTHING}"],
    ["fp8-compile", GOOD, "-o", HERE / "out.so", f"--load-dialect-plugin={LIBRARY}"],
    ["fp8-compile", GOOD, "-o", HERE / "out.so", f"--fp8-remarks=text:{FOLDER}"],
    ["fp8-compile", GOOD, "-o", HERE / "out.so", "--fp8-remarks=nothing:-"],
    ["fp8-run", GOOD, "--entry=g"],
    ["fp8-run", GOOD, "--entry=\udcff"],
    ["fp8-run", GOOD, f"--inputs={NOTHING}"],
    ["fp8-run", GOOD, f"--inputs={GARBAGE}"],
    ["fp8-run", GOOD, f"--inputs={SHAPE}"],
    ["fp8-run", GOOD, f"--inputs={FOLDER}"],
    ["fp8-run", GOOD, f"--inputs={INPUTS}", "--target=cpu", "--compare=nothing"],
    ["fp8-run", GOOD, f"--inputs={INPUTS}", "--steps=-1"],
    ["fp8-run", GOOD, f"--inputs={INPUTS}", "--steps=99999999999999999999"],
    ["fp8-run", GOOD, f"--inputs={INPUTS}", "--target=sm_90a", "--device=99999999999"],
    ["fp8-tune"],
    ["fp8-tune", "--shape=0x0x0"],
    ["fp8-tune", "--shape=-1x2x3"],
    ["fp8-tune", "--shape=99999999999999999999x1x1"],
    ["fp8-tune", "--shape=1x2x3x"],
    ["fp8-tune", "--shape=1e9x1x1"],
    ["fp8-tune", "--shape=\u0661x\u0662x\u0663"],
    ["fp8-reduce"],
    ["fp8-opt", GOOD, "--fp8-pipeline=recipe=nothing"],
    ["fp8-opt", GOOD, "--fp8-pipeline=nothing=1"],
    ["fp8-survey", GOOD, "--recipe=nothing"],
    ["fp8-survey", GOOD, "--target=nothing"],
    ["fp8-survey", GOOD, "--time-limit=nan"],
    ["fp8-survey", GOOD, f"--fp8-opt={GARBAGE}"],
    # What is written, /dev/full among it: a disk without space.
    ["fp8-compile", GOOD, "-o", FOLDER],
    ["fp8-compile", GOOD, "-o", GOOD],
    ["fp8-compile", GOOD, "-o", HERE / "out.so", f"--header={HERE}/./good.mlir"],
    ["fp8-compile", GOOD, "-o", LOOP],
    ["fp8-opt", GOOD, "-o", LOOP],
    ["fp8-run", GOOD, f"--inputs={INPUTS}", f"--outputs={LOOP}"],
    ["fp8-compile", GOOD, "-o", NOTHING / "out.so"],
    ["fp8-compile", GOOD, "-o", f"{GOOD}/out.so"],
    ["fp8-compile", GOOD, "-o", HERE / ("x" * 300)],
    ["fp8-compile", GOOD, "-o", HERE / "out.so", f"--header={FOLDER}"],
    ["fp8-compile", GOOD, "-o", HERE / "out.so", f"--header={HERE / 'out.so'}"],
    ["fp8-compile", GOOD, "-o", "/dev/full", "--emit=obj", f"--header={HERE / 'out.h'}"],
    ["fp8-compile", GOOD, "-o", "/dev/full", "--emit=mlir"],
    ["fp8-compile", GOOD, "-o", HERE / "out.so", "--header=/dev/full"],
    ["fp8-run", GOOD, f"--inputs={INPUTS}", f"--outputs={FOLDER}"],
    ["fp8-run", GOOD, f"--inputs={INPUTS}", f"--outputs={NOTHING}/out"],
    ["fp8-run", GOOD, f"--inputs={INPUTS}", "--outputs=/dev/full"],
    ["fp8-opt", GOOD, "-o", "/dev/full"],
    ["fp8-opt", GOOD, "-o", NOTHING / "out.mlir"],
]

# With a full disk below the standard output.
FULL = [
    ["fp8-compile", GOOD, "--emit=mlir"],
    ["fp8-compile", GOOD, "--emit=llvm"],
    ["fp8-compile", "--help"],
    ["fp8-run", GOOD, f"--inputs={INPUTS}"],
    ["fp8-opt", GOOD],
    ["fp8-survey", GOOD, "--recipe=none", "--memory-limit=0"],
]


def run(command, **options):
    """(status, standard error)."""
    done = subprocess.run(list(map(str, command)), stdin=subprocess.DEVNULL,
                          stderr=subprocess.PIPE, timeout=600,
                          **{"stdout": subprocess.DEVNULL, **options})
    return done.returncode, done.stderr.decode(errors="replace")


def find_problem(command, **options):
    """What is wrong with how a call that fails ends, or None."""
    status, said = run(command, **options)
    errors = said.lower().count("error: ")
    if status <= 0 or status >= 126:
        return f"the status is {status}: {said[:500]}"
    if "Traceback" in said or "Stack dump" in said or len(said) > 20_000:
        return f"it says {said[:500]}"
    return None if errors == 1 else f"it has {errors} errors: {said[:1500]}"


def check_all(calls, **options):
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        problems = pool.map(lambda command: find_problem(command, **options), calls)
        return [f"{' '.join(map(str, command))[:300]}: {problem}"
                for command, problem in zip(calls, problems) if problem]


def enter_nothing():
    """A folder that is removed while a process is in it."""
    folder = HERE / f"gone{os.getpid()}"
    folder.mkdir()
    os.chdir(folder)
    folder.rmdir()


# What surrounds a process: what of it is changed, and the call.
SURROUNDED = [
    ({"env": {"TMPDIR": "/nothing"}}, ["fp8-compile", LINEAR, "-o", HERE / "out.so"]),
    ({"env": {"PATH": os.path.dirname(shutil.which("fp8-compile"))}},
     ["fp8-compile", LINEAR, "-o", HERE / "out.so"]),
    ({"env": {"FP8_CUDA_DRIVER": str(GOOD)}},
     ["fp8-run", GOOD, f"--inputs={INPUTS}", "--target=sm_90a"]),
    ({"env": {"FP8_CUDA_DRIVER": "emulator", "FP8_EMULATOR_CHECK": "nothing"}},
     ["fp8-run", GOOD, f"--inputs={INPUTS}", "--target=sm_90a"]),
    ({"preexec_fn": enter_nothing}, ["fp8-compile", GOOD, "-o", "out.so"]),
    ({"preexec_fn": enter_nothing}, ["fp8-run", GOOD, f"--inputs={INPUTS}", "--outputs=out"]),
    ({"preexec_fn": lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (4, 4))},
     ["fp8-compile", GOOD, "-o", HERE / "out.so"]),
]


def check_surrounded():
    problems = []
    for options, command in SURROUNDED:
        options = {**options, "env": {**os.environ, **options.get("env", {})}}
        problem = find_problem(command, **options)
        if problem:
            problems.append(f"{options['env'].get('TMPDIR', '')} {command}: {problem}")
    return problems


def check_closed_pipe():
    """A reader that has gone ends a tool, and without a stack."""
    reading, writing = os.pipe()
    os.close(reading)
    _, said = run(["fp8-compile", LINEAR, "--emit=mlir"], stdout=writing)
    os.close(writing)
    return ["a closed pipe: " + said[:500]] * ("Stack dump" in said)


def check_signals():
    """Ctrl-C and kill end a tool that waits for its input, with nothing left of its output."""
    problems = []
    for number in (signal.SIGINT, signal.SIGTERM):
        process = subprocess.Popen(["fp8-compile", "-", "-o", HERE / "signal.so"],
                                   stdin=subprocess.PIPE, stderr=subprocess.PIPE)
        try:
            process.wait(1)
        except subprocess.TimeoutExpired:
            process.send_signal(number)
        _, said = process.communicate(timeout=60)
        if process.returncode not in (-number, 128 + number, 1) or (HERE / "signal.so").exists():
            problems.append(f"{number.name}: {process.returncode}, {said[:500]}")
    return problems


if __name__ == "__main__":
    found = check_all(CALLS)
    with open("/dev/full", "wb") as full:
        found += check_all(FULL, stdout=full)
    found += check_closed_pipe() + check_signals() + check_surrounded()
    if "func.func" not in GOOD.read_text():
        found.append("the source of a compilation was written to")
    left = [path.name for path in HERE.iterdir() if path.name.startswith(("out", ".", "signal"))]
    print(*found, sep="\n")
    print(len(CALLS) + len(FULL) + len(SURROUNDED), "calls;", len(found), "problems;", *left)
    sys.exit(bool(found or left))
