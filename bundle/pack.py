"""Packs the bundle: adds to the staged tools what they need, what is to be run on
the other machine, and licenses, and writes a .tar.xz of it. The same contents
give the same bytes. With --linked it stages only libfp8c, which is in that
directory, with all that it needs, for a wheel of Python.

usage: pack.py --source DIR --build DIR --stage DIR --strip PROGRAM
               (--lit DIR --version TEXT --out FILE | --linked DIR)
"""

import argparse
import os
import re
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path

# What other machines have: glibc, and GCC's libraries for C and C++.
SYSTEM_LIBRARIES = re.compile(
    r"(ld-linux-x86-64|libc|libm|libdl|libpthread|librt|libstdc\+\+|libgcc_s)\.so\.\d+")
# Whose code is part of libfp8tools and libfp8rt, or of share/lit.
LINKED_PACKAGES = ["llvm-22-dev", "libmlir-22-dev", "llvm-22-tools", "zlib1g-dev", "libzstd-dev",
                   "nlohmann-json3-dev"]
# Which the linker puts into the stage.
LINKED = ("libfp8tools.so", "libfp8c.so")
# From the source tree, as they are.
SOURCES = ["examples/*.mlir", "examples/*_inputs.py", "examples/compile_and_run.c",
           "benchmarks/**/*.py", "benchmarks/*.mlir", "include/fp8-c/*.h",
           "include/fp8/Runtime/*.h", "include/fp8/Runtime/ABI.def",
           "python/fp8/__init__.py", "python/fp8/abi.py", "python/fp8/files.py", "python/fp8/tensors.py",
           "test/Integration/CUDA/**/*.test", "test/Integration/CUDA/Inputs/*"]
# 64 MiB of history pay; more blocks than one, more cores.
COMPRESS = ["xz", "--threads=2", "--block-size=48MiB", "--x86", "--lzma2=preset=9e,dict=64MiB"]
EPOCH = 1577836800  # 2020-01-01, of every file.


def copy(source, target):
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copy(source, target)


def remove_earlier(stage):
    """Leaves what the linker put there."""
    for path in [*stage.iterdir(), *(stage / "lib").iterdir()]:
        if path.name in ("bin", "lib", "libexec", *LINKED):
            continue
        if path.is_dir():
            shutil.rmtree(path)
        else:
            path.unlink()


def describe_version(args):
    """The version, and the commit where there is one."""
    try:
        commit = subprocess.run(["git", "-C", args.source, "describe", "--always", "--dirty"],
                                check=True, text=True, capture_output=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return args.version
    return f"{args.version} ({commit})"


def copy_sources(args):
    for pattern in SOURCES:
        for path in sorted(args.source.glob(pattern)):
            copy(path, args.stage / path.relative_to(args.source))
    own = args.source / "bundle"
    copy(own / "README.md", args.stage / "README.md")
    copy(own / "check_gpu", args.stage / "check_gpu")
    copy(own / "lit.cfg.py", args.stage / "test" / "lit.cfg.py")
    copy(args.source / "tools/fp8-survey/fp8-survey.py", args.stage / "bin" / "fp8-survey")
    for path in own.glob("gpucheck/*.py"):
        copy(path, args.stage / "share" / "gpucheck" / path.name)
    for path in args.lit.glob("lit/**/*.py"):
        copy(path, args.stage / "share" / path.relative_to(args.lit))
    (args.stage / "VERSION").write_text(describe_version(args) + "\n")


def copy_stripped(args, source, target):
    copy(source, target)
    subprocess.run([args.strip, "--strip-unneeded", target], check=True)


def copy_checks(args):
    for path in (args.build / "test/Integration/CUDA").glob("*-check"):
        copy_stripped(args, path, args.stage / "test/Integration/CUDA" / path.name)


def copy_libraries(args):
    """libfp8rt, the emulator beside it, and the shared libraries that no other machine is sure
    to have; returns where those were."""
    for name in ("libfp8rt.so", "libfp8emu.so"):
        copy_stripped(args, args.build / "lib" / name, args.stage / "lib" / name)
    output = subprocess.run(["ldd", args.build / "lib" / "libfp8rt.so"], check=True, text=True,
                            capture_output=True).stdout
    origins = []
    for name, path in re.findall(r"^\s*(\S+) => (/\S+)", output, re.MULTILINE):
        if not SYSTEM_LIBRARIES.fullmatch(name):
            copy(path, args.stage / "lib" / name)
            origins.append(Path(path).resolve())
    return origins


def find_package(path):
    """The Debian package that a file is of."""
    for name in (path, Path("/usr") / path.relative_to("/")):
        found = subprocess.run(["dpkg", "--search", name], text=True, capture_output=True)
        if found.returncode == 0:
            return found.stdout.split(":")[0]
    sys.exit(f"error: expected {path} to be of a Debian package, but it is of none")


def copy_licenses(args, origins):
    licenses = args.stage / "licenses"
    copy(args.source / "LICENSE", args.stage / "LICENSE")
    for package in sorted({*LINKED_PACKAGES, *map(find_package, origins)}):
        copy(f"/usr/share/doc/{package}/copyright", licenses / f"{package}.txt")
    # Referred to by the others.
    for name in ("Apache-2.0", "GPL-2", "GPL-3"):
        copy(f"/usr/share/common-licenses/{name}", licenses / f"{name}.txt")


def write_archive(stage, out):
    def normal(entry):
        entry.uid = entry.gid = 0
        entry.uname = entry.gname = ""
        entry.mtime = EPOCH
        executable = entry.isdir() or entry.mode & 0o100
        entry.mode = 0o755 if executable else 0o644
        return entry

    partial = out.with_suffix(".partial")
    with open(partial, "wb") as file:
        xz = subprocess.Popen(COMPRESS, stdin=subprocess.PIPE, stdout=file)
        with tarfile.open(fileobj=xz.stdin, mode="w|", format=tarfile.GNU_FORMAT) as archive:
            for path in sorted([stage, *stage.rglob("*")]):
                name = Path(stage.name) / path.relative_to(stage)
                archive.add(path, str(name), recursive=False, filter=normal)
        xz.stdin.close()
        if xz.wait():
            sys.exit("error: xz failed")
    os.replace(partial, out)


def main():
    parser = argparse.ArgumentParser()
    for name in ("source", "build", "stage"):
        parser.add_argument(f"--{name}", type=Path, required=True)
    parser.add_argument("--strip", required=True)
    for name in ("lit", "out", "linked"):
        parser.add_argument(f"--{name}", type=Path)
    parser.add_argument("--version")
    args = parser.parse_args()
    if args.linked:
        shutil.rmtree(args.stage, ignore_errors=True)
        for name in LINKED:
            copy(args.linked / name, args.stage / "lib" / name)
        copy_licenses(args, copy_libraries(args))
        return
    remove_earlier(args.stage)
    copy_sources(args)
    copy_checks(args)
    copy_licenses(args, copy_libraries(args))
    write_archive(args.stage, args.out)
    print(f"{args.out.name}: {args.out.stat().st_size / 1e6:.1f} MB")


if __name__ == "__main__":
    main()
