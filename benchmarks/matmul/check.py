"""Whether kernels compute what they should: against f64, beside their memory,
and repeatedly.

Every criterion is shown to be able to fail: `run(..., perturb=True)` damages the
result of the first kernel of each problem in ways that each must catch."""

import math

import torch

from gemm_shapes import CHECK_SHAPES
from matmul.kinds import KINDS
from matmul.problem import GUARD, Operands, Problem


def limit(spec, k):
    """The relative error, in the Frobenius norm, that the accumulator and the
    rounding of the result leave."""
    rounding = {"bf16": 2.0e-3, "f16": 3e-4, "f32": 2e-5, "e4m3": 3e-2, "e5m2": 6e-2}
    if spec["scale_a"] == "none":  # TF32 has a mantissa of 10 bits, and truncates.
        accumulator = 2e-3 if spec["a"] == "f32" else 1e-5
        return rounding[spec["result"]] + accumulator
    if k < 256:  # Few values: rounding to 8 bits does not average out.
        rounding = {dtype: 2 * error for dtype, error in rounding.items()}
    # The tensor core keeps about 14 bits and truncates.
    accumulator = 4e-4
    if spec["accumulate"] == "fast":
        accumulator += 3e-7 * k + 6e-4 * math.sqrt(k / 1024)
    return rounding[spec["result"]] + accumulator


class Checker:
    """A problem, what is expected of it, and what is wrong with its result."""

    def __init__(self, problem):
        self.problem = problem
        yielded, self.expected = problem.reference()
        self.amax = yielded.abs().max().item() if problem.quantized else None
        self.limit = limit(problem.spec, problem.k)

    def errors(self):
        """Errors of the whole, of the worst row and column (a tail may be too small to show in the
        whole), and of amax, with the bound of each."""
        square = (self.problem.result.double() - self.expected).square()
        signal = self.expected.square().mean().item()
        found = {"error": (math.sqrt(square.mean().item() / signal), self.limit)}
        for name, dim in (("row_error", 2), ("column_error", 1)):
            if square.shape[dim] >= 16:  # One element may be far off the mean.
                worst = square.mean(dim).max().item()
                found[name] = (math.sqrt(worst / signal), min(8 * self.limit, 0.4))
        if self.amax is not None:
            measured = self.problem.amax.item()
            found["amax_error"] = (abs(measured - self.amax) / self.amax, 1e-2)
        return found

    def failures(self, first=None):
        """The names of the criteria that the result does not meet; `first` is
        what an earlier run left."""
        failed = [name for name, (value, bound) in self.errors().items()
                  if not value < bound]  # NaN fails too.
        if bool(torch.isnan(self.problem.result.float()).any()):
            failed.append("nan")
        if not self.problem.guards_intact():
            failed.append("guards")
        if first is not None and not torch.equal(self.problem.storage, first):
            failed.append("repeats")
        return failed


def damages(checker):
    """(What must be caught, by what, an action that damages a correct result.)"""
    p = checker.problem
    result, storage = p.result, p.storage
    wrong = 1 + 3 * checker.limit

    def scale(view):
        view.copy_((checker.expected * wrong).to(view.dtype))

    def zero(view):
        view.copy_(torch.zeros_like(view, dtype=torch.float32).to(view.dtype))

    yield "a factor", "error", lambda: scale(result)
    if p.n >= 16:
        yield "no last row", "row_error", lambda: zero(result[:, -1:])
    if p.m >= 16:
        yield "no last column", "column_error", lambda: zero(result[:, :, -1:])
    width = result.element_size()
    edge = GUARD * width
    yield "an element not written", "nan", lambda: storage[edge:edge + width].fill_(0xFF)
    yield "an element before", "guards", lambda: storage[edge - 1].fill_(0)
    yield "an element behind", "guards", lambda: storage[-edge].fill_(0)
    yield "another bit", "repeats", lambda: storage[edge].bitwise_xor_(1)
    if checker.amax is not None:
        yield "twice the amax", "amax_error", lambda: p.amax.mul_(2)


def undetected(checker):
    """Damage that no criterion notices."""
    p = checker.problem
    result, amax = p.storage.clone(), p.amax.clone()
    missed = []
    for what, criterion, damage in damages(checker):
        damage()
        if criterion not in checker.failures(result):
            missed.append(f"{what} ({criterion})")
        p.storage.copy_(result)
        p.amax.copy_(amax)
    return missed


def check_kernel(checker, kernel):
    """One row: runs it three times, for counters must be left as they were."""
    p = checker.problem
    launch = kernel.bind(p)
    p.poison()
    launch()
    torch.cuda.synchronize()
    first, failed = p.storage.clone(), checker.failures()
    row = {name: value for name, (value, _) in checker.errors().items()}
    for _ in range(2):
        p.poison()
        launch()
        failed += ["repeats"] * (not torch.equal(p.storage, first))
    return {"config": kernel.label(), **row, "failed": sorted(set(failed))}


def run(kernels, quick=False, perturb=False):
    summary = {}
    for name, list_ in kernels.items():
        rows, caught = [], 0
        for shape in CHECK_SHAPES[: 3 if quick else None]:
            problem = Problem(KINDS[name], Operands(KINDS[name], *shape))
            checker = Checker(problem)
            fitting = [kernel for kernel in list_ if kernel.fits(problem)]
            for i, kernel in enumerate(fitting):
                row = check_kernel(checker, kernel)
                if perturb and i == 0 and not row["failed"]:
                    missed = undetected(checker)
                    caught += len(list(damages(checker))) - len(missed)
                    row["failed"] += [f"undetected: {what}" for what in missed]
                rows.append(row)
                if row["failed"]:
                    print("FAIL", name, shape, row, flush=True)
        summary[name] = {
            "checks": len(rows), "failures": sum(bool(r["failed"]) for r in rows),
            "worst_error": max((r["error"] for r in rows), default=0)}
        if perturb:
            summary[name]["damage_caught"] = caught
        print(f"check {name:24s} {len(rows):4d} checks, worst error "
              f"{summary[name]['worst_error']:.2e}"
              + (f", {caught} damages caught" if perturb else ""), flush=True)
    print(f"{sum(s['checks'] for s in summary.values())} checks, "
          f"{sum(s['failures'] for s in summary.values())} failures", flush=True)
    return summary
