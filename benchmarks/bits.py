"""Whether a GPU and its model (docs/Emulator.md) give the same bits: hashes of what kernels and
programs compute.

usage: bits.py make DIR [--build-dir build] [--jobs N] [--only REGEX] [--code cubin|ptx]
       bits.py run DIR --code cubin|ptx --out FILE [--library libfp8rt.so] [--repeats N]
               [--results DIR] [--only REGEX]
       bits.py compare FILE FILE [--some]

`make` builds the kernels of gemm_kernels.py and the programs of bit_programs.py, as machine code
and as PTX. `run` needs libfp8rt and a driver alone: machine code is for a GPU, PTX for
FP8_CUDA_DRIVER=.../libfp8emu.so. It writes a hash for each kernel and shape and for each function,
and with --results the bytes behind those of the smallest shape. `compare` says what differs, with
--some of what the first one has.
"""

import argparse
import ctypes
import hashlib
import json
import random
import re
import shutil
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from matmul.bits import DEVICE, SHAPES, TABLES, Device, run_kind
from matmul.kinds import KINDS, TIMED
from programs import (Program, abi, compile_program, copy_libraries, elements, open_library, sizes,
                      tensor)

CODES = ("cubin", "ptx")

# ===----------------------------------------------------------------------===
# Here
# ===----------------------------------------------------------------------===


def make(args):
    from bit_programs import get_programs
    from gemm_kernels import build, select, with_configs
    from gemm_shapes import DECODE_SHAPES
    from gemm_shapes import SHAPES as TIMED_SHAPES

    tools = args.build_dir / "bin"
    codes = [args.code] if args.code else CODES
    kernels, programs = args.folder / "kernels", args.folder / "programs"
    for folder in (kernels, programs):
        folder.mkdir(parents=True, exist_ok=True)
    wanted = [name for name in KINDS if re.search(args.only, name)]

    def make_kind(name):
        shapes = TIMED_SHAPES + DECODE_SHAPES
        selected = {name: select(KINDS[name], shapes, tools)} if name in TIMED else {}
        build(name, with_configs(name, selected), tools, kernels, ("json", *codes))

    def make_program(program):
        name, recipe, text = program
        source = programs / f"{name}.mlir"
        source.write_text(text)
        for code in codes:
            compile_program(args.build_dir, source, programs / f"{name}.{code}.so",
                            "--target=sm_90a", f"--recipe={recipe}", f"--kernel-format={code}",
                            stderr=subprocess.DEVNULL)
            (programs / f"{name}.{code}.h").unlink(missing_ok=True)
        source.unlink()

    with ThreadPoolExecutor(args.jobs) as pool:
        list(pool.map(make_kind, wanted))
        list(pool.map(make_program, [program for program in get_programs()
                                     if re.search(args.only, program[0])]))
    if "cubin" in codes:  # For a machine with a GPU.
        copy_libraries(args.build_dir, args.folder)
    return 0


# ===----------------------------------------------------------------------===
# There
# ===----------------------------------------------------------------------===


def draw_value(rng, info):
    """Bytes of an argument: numbers of a few binades, factors that are positive, indices of a
    table of 50 rows."""
    dtype, count = info.dtype.decode(), elements(info)
    if dtype == "F4x2":
        codes = bytes(byte & 15 for byte in rng.randbytes(2 * count))
        return bytes(low | high << 4 for low, high in zip(codes[::2], codes[1::2]))
    data = bytearray(rng.randbytes(count * info.width))
    top = slice(info.width - 1, None, info.width)
    if dtype == "I64":
        data = b"".join((byte % 50).to_bytes(8, "little") for byte in rng.randbytes(count))
    elif dtype in ("BF16", "F16"):
        data[top] = data[top].translate(TABLES[dtype.lower()])
    elif dtype == "F32":
        data[top] = data[top].translate(TABLES["factor"])
    elif dtype == "F8_E8M0":
        data = bytearray(110 + byte % 30 for byte in data)
    elif dtype in ("F8_E4M3", "F8_E5M2"):
        data[top] = data[top].translate(TABLES["e4m3" if dtype == "F8_E4M3" else "e5m2"])
    return bytes(data)


def span(result, rank, width):
    """Bytes of a result, whose strides may have gaps."""
    return width * (1 + sum((result.sizes[i] - 1) * result.strides[i] for i in range(rank)))


def spell(info, data):
    """What is hashed: of bytes with two codes of 4 bits a byte for each."""
    if info.dtype.decode() != "F4x2":
        return data
    return bytes(code for byte in data for code in (byte & 15, byte >> 4))


def call(library, context, function, device):
    rng = random.Random(function.name)
    arguments = [tensor(sizes(info), device.upload(draw_value(rng, info)))
                 for info in function.arguments]
    digest = hashlib.sha256()
    parts = []
    for info, result in zip(function.results, function.call(arguments, 0, context)):
        parts.append(spell(info, device.read(result.data,
                                             span(result, info.rank, info.width))))
        digest.update(parts[-1])
        library.fp8rt_workspace_free(DEVICE, None, result.allocated)
    return digest.hexdigest()[:16], b"".join(parts)


def run_program(library, path, name, repeats, keep):
    program, context, device = Program(library, path), ctypes.c_void_p(), Device(library)
    library.fp8rt_context_create(DEVICE, None, ctypes.byref(context))
    hashes = {}
    for function in program.functions.values():
        found = []
        for _ in range(repeats):
            digest, data = call(library, context, function, device)
            found.append(digest)
            device.free()
        hashes[f"{name} {function.name}"] = found[0] if len(set(found)) == 1 else found
        keep(None, found[0], data)
    library.fp8rt_context_destroy(context)
    return hashes


def show_machine(library):
    info = abi.structs.fp8rt_device_info()
    library.fp8rt_device_get_info(DEVICE, ctypes.byref(info))
    return info.name.decode()


def run(args):
    library = (abi.Library(args.library) if args.library
               else open_library(args.build_dir, args.folder))
    hashes, failed, start, kept = {}, {}, time.monotonic(), set()
    if args.results:
        args.results.mkdir(parents=True, exist_ok=True)

    def keep(shape, digest, data):
        is_small = shape == SHAPES[0] if shape else len(data) < 1 << 16
        if args.results and digest not in kept and is_small:
            kept.add(digest)
            (args.results / digest).write_bytes(data)

    def attempt(name, action):
        if not re.search(args.only, name):
            return
        try:
            found = action()
        except abi.Error as error:
            failed[name] = str(error)
            print(f"{name}: {error}", flush=True)
            return
        hashes.update(found)
        print(f"{time.monotonic() - start:7.1f} s  {name}: {len(found)}", flush=True)

    for name in KINDS:
        if (args.folder / "kernels" / f"{name}.{args.code}").exists():
            attempt(name, lambda: run_kind(library, args.folder / "kernels", name, args.code,
                                           args.repeats, keep))
    for path in sorted((args.folder / "programs").glob(f"*.{args.code}.so")):
        name = path.name.removesuffix(f".{args.code}.so")
        attempt(name, lambda: run_program(library, path.absolute(), name, args.repeats, keep))
    record = {"device": show_machine(library), "code": args.code,
              "seconds": round(time.monotonic() - start, 1), "failed": failed, "hashes": hashes}
    args.out.write_text(json.dumps(record, indent=0, sort_keys=True) + "\n")
    varying = sum(isinstance(digest, list) for digest in hashes.values())
    print(f"{len(hashes)} results, {len(failed)} failures, {varying} that vary")
    return int(bool(failed))


def compare(args):
    """Groups by kind or program: how many results are the same."""
    first, second = (json.loads(path.read_text())["hashes"] for path in (args.first, args.second))
    groups = {}
    for key in sorted(first if args.some else {*first, *second}):
        groups.setdefault(key.split(" ")[0], []).append((key, first.get(key), second.get(key)))
    total = same = 0
    for name, rows in groups.items():
        differing = [key for key, one, other in rows if one != other]
        total, same = total + len(rows), same + len(rows) - len(differing)
        if differing:
            print(f"{name}: {len(rows) - len(differing)} of {len(rows)} the same")
            for key in differing:
                print(f"  {key}: {first.get(key)}, {second.get(key)}")
    print(f"{same} of {total} results the same")
    return int(same != total or total == 0)


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(required=True)
    for function in (make, run, compare):
        command = commands.add_parser(function.__name__)
        command.set_defaults(function=function)
        if function is compare:
            command.add_argument("first", type=Path)
            command.add_argument("second", type=Path)
            command.add_argument("--some", action="store_true")
            continue
        command.add_argument("folder", type=Path)
        command.add_argument("--only", default="")
        command.add_argument("--build-dir", type=Path, default=Path("build"))
        if function is make:
            command.add_argument("--jobs", type=int, default=2)
            command.add_argument("--code", choices=CODES)
        else:
            command.add_argument("--code", choices=CODES, required=True)
            command.add_argument("--library", type=Path)
            command.add_argument("--repeats", type=int, default=1)
            command.add_argument("--results", type=Path)
            command.add_argument("--out", type=Path, required=True)
    args = parser.parse_args()
    return args.function(args)


if __name__ == "__main__":
    sys.exit(main())
