"""The GPU tests of a bundle, which check_gpu runs: with the bundle's tools, and
nothing of LLVM's but lit and FileCheck."""

import os
import shutil
import sys

import lit.formats

root = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
config.name = "fp8-bundle"
config.test_format = lit.formats.ShTest(execute_external=False)
config.suffixes = [".test"]
config.test_source_root = os.path.join(root, "test")
config.test_exec_root = lit_config.params["exec_root"]

path = os.pathsep.join([os.path.join(root, "bin"), os.path.join(root, "libexec"),
                        os.environ.get("PATH", "")])
config.environment["PATH"] = path
for name in ("CUDA_HOME", "CUDA_PATH", "CUDA_ROOT", "CUDA_VISIBLE_DEVICES", "FP8_CUDA_DRIVER",
             "HOME", "LD_LIBRARY_PATH", "TMPDIR"):
    if name in os.environ:
        config.environment[name] = os.environ[name]

config.available_features.add("cuda")
if shutil.which("ld.lld", path=path) or shutil.which("ld", path=path):
    config.available_features.add("linker")
config.substitutions += [
    ("%python", sys.executable),
    ("%fp8_source", root),
    ("%repeats", "1000"),
    ("%cuda_checks", os.path.join(root, "test", "Integration", "CUDA")),
]
