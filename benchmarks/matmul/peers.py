"""What a shape's kernels are compared with. All write to the problem's own
result, as ours do."""

import torch

from matmul import cublaslt
from matmul.timing import measure

KEPT = 3  # Proposals of cuBLASLt, those that a first measurement ranks best.


def scaled_mm(problem, fast):
    """PyTorch's product, which runs cuBLASLt's first proposal."""
    a, b = problem.a[0], problem.b[0].t()
    scale_a, scale_b = problem.scale_a[0], problem.scale_b[0].t()
    if problem.spec["scale_a"] == "1x128":
        return block_mm(problem, a, b, scale_a)
    if problem.spec["scale_a"] == "tensor":
        scale_a, scale_b = scale_a.reshape(()), scale_b.reshape(())
    scale_a, scale_b, out = scale_a.contiguous(), scale_b.contiguous(), problem.result[0]
    return lambda: torch._scaled_mm(a, b, scale_a=scale_a, scale_b=scale_b,
                                    out_dtype=torch.bfloat16, use_fast_accum=fast,
                                    out=out)


def block_mm(problem, a, b, scale_a):
    from torch.nn.functional import ScalingType, scaled_mm as call
    scale_b = cublaslt.block_factors(problem.scale_b[0]).t()
    if problem.m == 1:  # PyTorch insists on the strides that then mean nothing.
        scale_a = scale_a.as_strided(scale_a.shape, (1, 1))
    return lambda: call(a, b, scale_a=scale_a, scale_b=scale_b,
                        scale_recipe_a=ScalingType.BlockWise1x128,
                        scale_recipe_b=ScalingType.BlockWise128x128,
                        output_dtype=torch.bfloat16)


def deep_gemm(problem):
    """DeepGEMM, where it is installed; its factors of A lie M-major."""
    import deep_gemm as library
    factors_a = library.get_mn_major_tma_aligned_tensor(problem.scale_a[0])
    a, b = (problem.a[0], factors_a), (problem.b[0], problem.scale_b[0].contiguous())
    return lambda: library.fp8_gemm_nt(a, b, problem.result[0], disable_ue8m0_cast=True)


def mm(problem):
    a, b, out = problem.a[0], problem.b[0].t(), problem.result[0]
    return lambda: torch.mm(a, b, out=out)


def bf16(problem):
    a, b = problem.a[0].bfloat16(), problem.b[0].bfloat16().t()
    out = problem.result[0]
    return lambda: torch.mm(a, b, out=out)


def triton(problem):
    from matmul import triton_tma
    return triton_tma.bind(problem)


def offered(contenders, name, make):
    """Adds a contender, unless it does not take the problems."""
    try:
        launches = make()
        launches[0]()
        torch.cuda.synchronize()
        contenders[name] = launches
    except Exception as error:
        print(f"  {name}: {str(error).splitlines()[0][:120]}", flush=True)


def best_of_8(contenders, name, problems, fast, repeats, tried):
    """The best of cuBLASLt's proposals; `tried` receives the times of all."""
    try:
        launches = cublaslt.proposals(problems, fast)
    except Exception as error:
        print(f"  {name}: {str(error).splitlines()[0][:120]}", flush=True)
        return
    times = measure({f"{name}.{i}": l for i, l in enumerate(launches)}, repeats, 2)
    tried.update({key: seconds * 1e6 for key, seconds in times.items()})
    for key in sorted(times, key=times.get)[:KEPT]:
        contenders[key] = launches[int(key.rpartition(".")[2])]


def of_class(name, problems, repeats):
    """Contenders by name, and the microseconds of each of cuBLASLt's proposals.

    `fast` and `slow` in a name are the accumulators; a name with a number is one
    of cuBLASLt's proposals."""
    contenders, tried = {}, {}
    if problems[0].spec["scale_a"] == "none":
        offered(contenders, "torch", lambda: [mm(p) for p in problems])
        best_of_8(contenders, "cublaslt", problems, False, repeats, tried)
        return contenders, tried
    for accumulate in {"tensor": ("fast", "slow"), "row": ("fast",),
                       "block": ("slow",)}[name]:
        fast = accumulate == "fast"
        offered(contenders, f"torch_{accumulate}",
                lambda: [scaled_mm(p, fast) for p in problems])
        best_of_8(contenders, f"cublaslt_{accumulate}", problems, fast, repeats, tried)
    if name != "block" and problems[0].m >= 1024:
        offered(contenders, "triton_fast", lambda: [triton(p) for p in problems])
    if name == "block":
        offered(contenders, "deepgemm", lambda: [deep_gemm(p) for p in problems])
    if name == "tensor":
        offered(contenders, "bf16", lambda: [bf16(p) for p in problems])
    return contenders, tried
