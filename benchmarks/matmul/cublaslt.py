"""Products through cuBLASLt itself, with every algorithm that its heuristics
propose: PyTorch only ever runs the first.

Enumerators are those of cublasLt.h. cuBLASLt is column-major: it computes the
transposed result, so that its A is our B."""

import ctypes
import ctypes.util
from pathlib import Path

import torch

TYPES = {"f32": 0, "f16": 2, "bf16": 14, "e4m3": 28, "e5m2": 29}
COMPUTE_32F, OP_N, OP_T = 68, 0, 1
TRANS_A, TRANS_B, A_SCALE, B_SCALE, FAST_ACCUM, A_MODE, B_MODE = 3, 4, 17, 18, 25, 31, 32
SCALE_MODES = {"tensor": 0, "row": 3, "1x128": 4, "128x128": 5}
MAX_WORKSPACE_BYTES = 1  # CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES
WORKSPACE = 64 << 20
PROPOSALS = 8


class Heuristic(ctypes.Structure):
    _fields_ = [("algo", ctypes.c_uint64 * 8), ("workspace", ctypes.c_size_t),
                ("state", ctypes.c_int), ("waves", ctypes.c_float),
                ("reserved", ctypes.c_int * 4)]


def find_library():
    """The one that PyTorch uses, or CUDA's."""
    packages = Path(torch.__file__).parent.parent / "nvidia"
    for path in [*packages.glob("*/lib/libcublasLt.so.*"), "libcublasLt.so.13",
                 "/usr/local/cuda/lib64/libcublasLt.so"]:
        try:
            return ctypes.CDLL(str(path))
        except OSError:
            continue
    raise RuntimeError("expected libcublasLt, but found none")


_state = {}


def library():
    """The library, a handle and a workspace, made once."""
    if not _state:
        torch.cuda.current_stream()
        lib, handle = find_library(), ctypes.c_void_p()
        lib.cublasLtGetVersion.restype = ctypes.c_size_t
        check(lib.cublasLtCreate(ctypes.byref(handle)), "cublasLtCreate")
        _state.update(lib=lib, handle=handle, version=lib.cublasLtGetVersion(),
                      workspace=torch.empty(WORKSPACE, device="cuda",
                                            dtype=torch.uint8))
    return _state["lib"], _state["handle"], _state["workspace"]


def check(status, what):
    if status:
        raise RuntimeError(f"{what}: status {status}")


def layout(lib, dtype, rows, columns):
    """A dense column-major matrix."""
    made = ctypes.c_void_p()
    check(lib.cublasLtMatrixLayoutCreate(
        ctypes.byref(made), ctypes.c_int(dtype), ctypes.c_uint64(rows),
        ctypes.c_uint64(columns), ctypes.c_int64(rows)), "cublasLtMatrixLayoutCreate")
    return made


def block_factors(scale):
    """Factors of 128x128 blocks: those along K contiguous, rows of a multiple of 4."""
    rows, blocks = scale.shape
    padded = torch.zeros(rows, (blocks + 3) // 4 * 4, device="cuda")
    padded[:, :blocks] = scale
    return padded


class Product:
    """One problem, described to cuBLASLt. Descriptors live as long as the
    process, for graphs refer to what they describe."""

    def __init__(self, problem, fast):
        self.lib, self.handle, self.workspace = library()
        spec, p = problem.spec, problem
        self.desc = ctypes.c_void_p()
        check(self.lib.cublasLtMatmulDescCreate(
            ctypes.byref(self.desc), COMPUTE_32F, TYPES["f32"]),
            "cublasLtMatmulDescCreate")
        self.keep = (p,)
        if spec["scale_a"] != "none":
            self.set_factors(problem, fast)
        # Where K is innermost, columns of a column-major matrix are along K.
        self.set(TRANS_A, ctypes.c_int32(OP_N if p.transposed("b") else OP_T))
        self.set(TRANS_B, ctypes.c_int32(OP_T if p.transposed("a") else OP_N))
        self.a, self.b = (
            layout(self.lib, TYPES[spec[name]], *((rows, p.k) if p.transposed(name)
                                                  else (p.k, rows)))
            for name, rows in (("b", p.n), ("a", p.m)))
        self.d = layout(self.lib, TYPES[spec["result"]], p.n, p.m)
        self.pointers = [ctypes.c_void_p(t.data_ptr())
                         for t in (p.b, p.a, p.result)]

    def set_factors(self, problem, fast):
        spec, p = problem.spec, problem
        scale_a, scale_b = p.scale_a[0].contiguous(), p.scale_b[0].contiguous()
        if spec["scale_a"] == "1x128":
            scale_a, scale_b = p.scale_a[0], block_factors(scale_b)
        if fast:
            self.set(FAST_ACCUM, ctypes.c_int8(1))
        self.set(A_MODE, ctypes.c_int32(SCALE_MODES[spec["scale_b"]]))
        self.set(B_MODE, ctypes.c_int32(SCALE_MODES[spec["scale_a"]]))
        self.set(A_SCALE, ctypes.c_void_p(scale_b.data_ptr()))
        self.set(B_SCALE, ctypes.c_void_p(scale_a.data_ptr()))
        self.keep = (p, scale_a, scale_b)

    def set(self, attribute, value):
        check(self.lib.cublasLtMatmulDescSetAttribute(
            self.desc, attribute, ctypes.byref(value),
            ctypes.c_size_t(ctypes.sizeof(value))), f"descriptor attribute {attribute}")

    def proposals(self):
        """Algorithms, the one preferred by cuBLASLt first."""
        preference, count = ctypes.c_void_p(), ctypes.c_int(0)
        check(self.lib.cublasLtMatmulPreferenceCreate(ctypes.byref(preference)),
              "cublasLtMatmulPreferenceCreate")
        size = ctypes.c_uint64(WORKSPACE)
        check(self.lib.cublasLtMatmulPreferenceSetAttribute(
            preference, MAX_WORKSPACE_BYTES, ctypes.byref(size), ctypes.c_size_t(8)),
            "workspace size")
        found = (Heuristic * PROPOSALS)()
        status = self.lib.cublasLtMatmulAlgoGetHeuristic(
            self.handle, self.desc, self.a, self.b, self.d, self.d, preference,
            PROPOSALS, found, ctypes.byref(count))
        self.lib.cublasLtMatmulPreferenceDestroy(preference)
        check(status, "cublasLtMatmulAlgoGetHeuristic")
        return [f.algo for f in found[:count.value] if f.state == 0]

    def launcher(self, algo):
        a, b, d = self.pointers
        one, zero = ctypes.c_float(1), ctypes.c_float(0)
        workspace = ctypes.c_void_p(self.workspace.data_ptr())

        def launch():
            stream = ctypes.c_void_p(torch.cuda.current_stream().cuda_stream)
            check(self.lib.cublasLtMatmul(
                self.handle, self.desc, ctypes.byref(one), a, self.a, b, self.b,
                ctypes.byref(zero), d, self.d, d, self.d, ctypes.byref(algo),
                workspace, ctypes.c_size_t(WORKSPACE), stream), "cublasLtMatmul")

        return launch


def proposals(problems, fast):
    """For each algorithm proposed, a launch for each of the problems."""
    products = [Product(p, fast) for p in problems]
    return [[product.launcher(algo) for product in products]
            for algo in products[0].proposals()]
