import glob
import os
import platform
import shutil
import subprocess

import lit.formats
from lit.llvm import llvm_config
from lit.llvm.subst import ToolSubst

config.name = "FP8"
config.test_format = lit.formats.ShTest(execute_external=False)
config.suffixes = [".mlir", ".py", ".test"]
config.excludes = ["Inputs", "CMakeLists.txt", "lit.cfg.py", "lit.local.cfg.py",
                   "commit_title.py", "summary.py"]
config.test_source_root = os.path.dirname(__file__)
config.test_exec_root = os.path.join(config.fp8_build_dir, "test")

llvm_config.with_system_environment(["HOME", "TMPDIR", "CCACHE_DIR"])
llvm_config.with_environment("PATH", config.fp8_tools_dir, append_path=True)
config.environment["PYTHONPATH"] = os.path.join(config.fp8_source_dir, "python")
# Kernels that tests assemble are no concern of the user's.
config.environment["XDG_CACHE_HOME"] = os.path.join(config.test_exec_root, "Cache")
# Tests run side by side, one for a core: threads of pools that wait for each other would take
# turns, and they wait by spinning. A test of threads asks for them.
config.environment["OMP_NUM_THREADS"] = "1"
llvm_config.use_default_substitutions()

# In front: lit's own %python is the interpreter that lit runs in.
config.substitutions[:0] = [
    ("%python", config.fp8_python),
    ("%cmake", config.fp8_cmake),
    ("%cxx_compiler", config.fp8_cxx_compiler),
    ("%c_compiler", config.fp8_c_compiler),
    ("%fp8_source", config.fp8_source_dir),
    ("%fp8_build", config.fp8_build_dir),
    ("%cuda_checks", os.path.join(config.fp8_build_dir, "test", "Integration", "CUDA")),
    ("%lit_package", os.path.dirname(lit.__file__)),
    ("%cuda_include", "/usr/local/cuda/include"),
    ("%fp8_plugin", os.path.join(config.fp8_lib_dir, "fp8-plugin.so")),
]

# FP8_CHECK_ROUNDTRIP=1 turns the whole suite into a round-trip suite: whatever
# fp8-opt reads must survive printing and parsing, as text and as bytecode.
roundtrip = os.environ.get("FP8_CHECK_ROUNDTRIP", "0") not in ("", "0")
if roundtrip:
    config.available_features.add("roundtrip")

llvm_config.add_tool_substitutions(
    [
        ToolSubst("fp8-opt", extra_args=["--verify-roundtrip"] if roundtrip else []),
        "fp8-compile",
        "fp8-run",
        "fp8-reduce",
        "fp8-translate",
        "fp8-lsp-server",
        "fp8-state",
        "fp8-survey",
        "fp8-tune",
    ],
    [config.fp8_tools_dir],
)
# What another project would build on the libraries.
llvm_config.add_tool_substitutions(
    [
        ToolSubst("toy-opt", extra_args=["--verify-roundtrip"] if roundtrip else []),
        "toy-compile",
    ],
    [os.path.join(config.fp8_build_dir, "test", "lib")],
)
llvm_config.add_tool_substitutions(
    ["llvm-nm", "llvm-readelf", "mlir-opt", "mlir-tblgen", "mlir-translate", "mlir-runner", "split-file"],
    [config.llvm_tools_dir],
)

# A compiler for the GPU's assembly, not a GPU.
ptxas = shutil.which("ptxas") or shutil.which("ptxas", path="/usr/local/cuda/bin")
if ptxas:
    config.available_features.add("ptxas")
    config.substitutions.append(("%ptxas", ptxas))

# A sample of the tables' kernels, for each of which ptxas takes a second and more, and of what tests
# break in kernels; all of them with FP8_TEST_EVERY=1 (`make test-every`).
llvm_config.with_system_environment(["FP8_TEST_EVERY"])
every = os.environ.get("FP8_TEST_EVERY", "0") not in ("", "0")
config.substitutions.append(("%every_candidate", "every-candidate" + ("" if every else " sample=5")))

# Frameworks whose programs are imported, in a Python that may be another one.
import_python = os.environ.get("FP8_IMPORT_PYTHON", config.fp8_python)
config.substitutions.insert(0, ("%import_python", import_python))
config.fp8_import_python = import_python
for feature, packages in [("pytorch", "torch torch_mlir"), ("jax", "jax iree.compiler")]:
    find = f"from importlib.util import find_spec as find; all(map(find, {packages.split()})) or 1/0"
    if subprocess.run([import_python, "-c", find], capture_output=True).returncode == 0:
        config.available_features.add(feature)

if platform.machine() == "x86_64":
    config.available_features.add("x86_64")

# What Inductor compiles a CPU's code with.
if shutil.which(os.environ.get("CXX", "g++")):
    config.available_features.add("cxx")

if shutil.which("ld.lld") or shutil.which("ld"):
    config.available_features.add("linker")

if shutil.which("gcc"):
    config.available_features.add("gcc")

if os.path.exists("/usr/local/cuda/include/cudaTypedefs.h"):
    config.available_features.add("cuda-headers")

# A GPU that the kernel's driver offers.
if glob.glob("/dev/nvidia[0-9]*"):
    config.available_features.add("cuda")
    # Which driver, and which of its devices.
    llvm_config.with_system_environment(
        ["FP8_CUDA_DRIVER", "LD_LIBRARY_PATH", "CUDA_VISIBLE_DEVICES"]
    )

# MLIR and LLVM come without sanitizers: what they allocate for good is not a
# leak of ours, and memory that our side of an inlined allocator poisons they
# do not unpoison.
if config.fp8_sanitizers:
    config.available_features.add("sanitizers")
    config.environment["ASAN_OPTIONS"] = "detect_leaks=0:allow_user_poisoning=0"
    config.environment["UBSAN_OPTIONS"] = "print_stacktrace=1"
elif os.path.exists(os.path.join(config.fp8_lib_dir, "fp8-plugin.so")):
    # A stock mlir-opt cannot load a library that needs the sanitizers' runtime.
    config.available_features.add("plugin")
