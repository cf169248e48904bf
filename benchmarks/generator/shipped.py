"""Random programs for a machine with a GPU and no compiler: made here, run there."""

import ctypes
import hashlib
import json
import os
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from generator.drawing import decode, draw_arguments, is_near, make_canonical

DEVICE = 0
BATCH = 10  # Programs of a file.
STEPS = 3  # As compare.py has it.


def spell(shape, data, element):
    """What is hashed of a result."""
    return repr(list(shape)).encode() + make_canonical(data, element)


def digest(shape, data, element):
    return hashlib.sha256(spell(shape, data, element)).hexdigest()[:24]


# ===----------------------------------------------------------------------===
# Here
# ===----------------------------------------------------------------------===


def describe(programs):
    """What `run_programs` has to know of each program of a batch, and what the model computes;
    without those of which that is not what a CPU with its sums does."""
    import numpy as np
    from generator.compare import check_batch

    described = []
    for program, status, _, found in check_batch(programs, "sm_90a"):
        if status == "lost":
            raise SystemExit("the device is lost")
        # A stream divides within 2 ulp on a GPU (docs/Kernels.md, Precision), its model exactly.
        if status != "same" or "arith.divf" in program.write():
            continue
        results = []
        for i, array in enumerate(found):
            value, array = program.results[i % len(program.results)], np.asarray(array)
            near = program.near.get(value.name)
            results.append([value.element, near, array.tobytes().hex() if near else
                            digest(array.shape, array.tobytes(), value.element)])
        arguments = [[argument.shape, argument.element, argument.kind,
                      argument.type.startswith("tensor")] for argument in program.arguments]
        described.append({"seed": program.seed, "arguments": arguments, "results": results})
    return described


def describe_batch(programs):
    """The same in a process; if that ends, each program for itself."""
    code = (f"import sys, json; sys.path.insert(0, {str(Path(__file__).parents[1])!r})\n"
            "from generator.shipped import describe\nfrom generator.program import Program\n"
            "print(json.dumps(describe([Program(int(seed)) for seed in sys.argv[1:]])))")
    environment = {**os.environ, "FP8_CUDA_DRIVER": "emulator", "FP8_EMULATOR_ARCH": "90"}
    done = subprocess.run([sys.executable, "-c", code, *(str(program.seed) for program in programs)],
                          env=environment, text=True, capture_output=True)
    if done.returncode == 0:
        return json.loads(done.stdout)
    if len(programs) > 1:
        return [entry for program in programs for entry in describe_batch([program])]
    print(f"{programs[0].seed}: status {done.returncode}: {done.stderr[-300:]}", flush=True)
    return []


def make_programs(args):
    from generator.program import make_batches, write_module
    from programs import compile_program, copy_libraries

    args.folder.mkdir(parents=True, exist_ok=True)
    copy_libraries(args.build_dir, args.folder)

    def make_batch(batch):
        """A shared object of programs, and beside it what they are."""
        described = describe_batch(batch)
        good = {entry["seed"] for entry in described}
        batch = [program for program in batch if program.seed in good]
        if not batch:
            return []
        text, recipe = write_module(batch)
        name = f"p{batch[0].seed}"
        source, path = args.folder / f"{name}.mlir", args.folder / f"{name}.so"
        source.write_text(text)
        compile_program(args.build_dir, source, path, "--target=sm_90a", f"--recipe={recipe}",
                        f"--kernel-format={args.code}", stderr=subprocess.DEVNULL)
        for left in (source, path.with_suffix(".h")):
            left.unlink(missing_ok=True)
        path.with_suffix(".json").write_text(json.dumps(described))  # When all of it is there.
        return described

    batches = make_batches(range(args.seed, args.seed + args.programs), BATCH)
    with ThreadPoolExecutor(args.jobs) as pool:
        number = sum(map(len, pool.map(make_batch, batches)))
    print(f"{number} of {args.programs} programs; what is left out is refused, divides, or "
          "the model differs from the CPU")
    return 0


# ===----------------------------------------------------------------------===
# There
# ===----------------------------------------------------------------------===


class Runner:
    def __init__(self, library, device):
        self.library, self.device = library, device

    def call(self, path, entry):
        """The shapes and bytes of the results of all steps."""
        from programs import Program, abi, elements, sizes, tensor

        program, context = Program(self.library, path), ctypes.c_void_p()
        self.library.fp8rt_context_create(DEVICE, None, ctypes.byref(context))
        function = program.functions[f"p{entry['seed']}"]
        data = draw_arguments(entry["seed"], [argument[:3] for argument in entry["arguments"]])
        arguments = []
        for (shape, element, _, is_tensor), content in zip(entry["arguments"], data):
            if is_tensor:
                arguments.append(tensor(shape, self.device.upload(content)))
            else:
                kind = ctypes.c_int64 if element == "index" else ctypes.c_float
                arguments.append(kind.from_buffer_copy(content))
        state = 0
        if program.has_state:
            state = program.create_state()
            rows = abi.structs.fp8rt_state_rows()
            self.library.fp8rt_state_upload(state, DEVICE, None, ctypes.byref(rows))
        found = []
        for _ in range(STEPS if state else 1):
            for info, result in zip(function.results, function.call(arguments, state, context)):
                found.append(self.read(result, info))
                self.library.fp8rt_workspace_free(DEVICE, None, result.allocated)
            if state:
                program.update(state, context)
        self.library.fp8rt_stream_synchronize(DEVICE, None)
        self.library.fp8rt_context_destroy(context)
        self.device.free()
        return found

    def read(self, result, info):
        """The shape and the bytes of a result, which may be a view of more memory."""
        shape = [result.sizes[i] for i in range(info.rank)]
        strides = [result.strides[i] for i in range(info.rank)]
        if 0 in shape:
            return shape, b""
        last = sum((extent - 1) * stride for extent, stride in zip(shape, strides))
        data = self.device.read(result.data + result.offset * info.width, (last + 1) * info.width)
        offsets = [0]
        for extent, stride in zip(shape, strides):
            offsets = [offset + i * stride for offset in offsets for i in range(extent)]
        if offsets == list(range(len(offsets))):
            return shape, data
        return shape, b"".join(data[offset * info.width:(offset + 1) * info.width]
                               for offset in offsets)


def run_programs(args):
    from matmul.bits import Device
    from programs import abi, open_library

    library = abi.Library(args.library) if args.library else open_library(args.build_dir, args.folder)
    runner, start = Runner(library, Device(library)), time.monotonic()
    described = [(path.with_suffix(".so").absolute(), entry)
                 for path in sorted(args.folder.glob("p*.json"))
                 for entry in json.loads(path.read_text())]
    wrong, failed, results = [], {}, 0
    for path, entry in described:
        try:
            found = runner.call(path, entry)
        except abi.Error as error:
            failed[entry["seed"]] = str(error)
            print(f"{entry['seed']}: {error}", flush=True)
            continue
        for i, ((shape, data), (element, near, expected)) in enumerate(
                zip(found, entry["results"])):
            results += 1
            is_same = (is_near(*near, decode(bytes.fromhex(expected), element), decode(data, element))
                       if near else digest(shape, data, element) == expected)
            if not is_same:
                print(f"{entry['seed']}: result {i}, {element} {shape}", flush=True)
                wrong.append({"seed": entry["seed"], "result": i, "element": element, "shape": shape,
                              "data": data[:4096].hex()})
    info = abi.structs.fp8rt_device_info()
    library.fp8rt_device_get_info(DEVICE, ctypes.byref(info))
    record = {"device": info.name.decode(), "programs": len(described), "results": results,
              "seconds": round(time.monotonic() - start, 1), "failed": failed, "wrong": wrong}
    args.out.write_text(json.dumps(record, indent=1) + "\n")
    print(f"{len(described)} programs, {results} results, {len(wrong)} differ, {len(failed)} programs "
          "failed")
    return int(bool(wrong or failed))
