"""Fusions on the GPU against the CPU, over random, extreme and adversarial tensors."""

from device import Call
from gather_functions import TABLE_ROWS
from ordinals import compare_bits, compare_numbers, compare_sums, compare_values
from fusion_functions import fill, get_arguments, get_name, has_whole_bytes
from timing import describe, torch

EVEN = (256, 512)
CHECKED = [EVEN, (77, 130), (1, 4096), (130, 1001), (129, 8), (64, 1), (33, 264),
           # Columns that are summed in parts, rows of a cluster, and one that no block has whole.
           (1500, 520), (3, 40000), (700, 3584)]
DYNAMIC = [("?", 512), ("?", "?")]
DYNAMIC_EXTENTS = {("?", 512): [(256, 512), (77, 512), (16, 512)],
                   ("?", "?"): [(256, 512), (77, 130), (5, 3)]}
PATTERNS = ("random", "extreme", "zeros", "nan", "outlier")
# Between these, exp(-x) is finite and 1 / exp(-x) below the smallest normal number, where
# approximations have 0: a factor of 2^100 makes that any difference.
FLUSHED = (-89.0, -87.0)


def make_tensor(pattern, extents):
    m, n = extents if len(extents) == 2 else (1, extents[0])
    x = torch.randn(m, n)
    if pattern == "extreme":
        x = x * torch.exp2(torch.randint(-130, 127, (m, n)).float())
    elif pattern == "zeros":
        x = torch.zeros(m, n)
        x[::3, ::7] = -0.0
    elif pattern == "nan":
        x[torch.rand(m, n) < 0.05] = float("nan")
        x[torch.rand(m, n) < 0.02] = float("inf")
        x[torch.rand(m, n) < 0.02] = float("-inf")
        x[: m // 3, : max(1, n // 2)] = float("nan")
    elif pattern == "outlier":
        x[torch.rand(m, n) < 0.01] *= 1e30
        x[torch.rand(m, n) < 0.3] *= 1e-30
    return x.to(torch.bfloat16).reshape(extents)


def make_codes(pattern, extents):
    """Every code; NaN is among them unless the tensor is random or of zeros."""
    if pattern == "zeros":
        return torch.randint(0, 2, extents).to(torch.uint8) * 0x80
    codes = torch.randint(0, 256, extents)
    if pattern in ("random", "outlier"):
        codes[(codes & 0x7F) >= 0x7B] = 0x3B
    return codes.to(torch.uint8)


def make_factors(pattern, extents):
    factors = torch.exp2(torch.randint(-10, 10, extents).float()) * (1 + torch.rand(extents))
    if pattern in ("extreme", "outlier"):
        factors = torch.exp2(torch.randint(-149, 128, extents).float())
    elif pattern == "nan":
        factors[torch.rand(extents) < 0.1] = float("nan")
        factors[torch.rand(extents) < 0.1] = float("inf")
        factors[torch.rand(extents) < 0.1] = 0.0
    return factors


def make_bytes(pattern, extents):
    """Exponents; the ends of their range are a subnormal number and a NaN."""
    if pattern in ("random", "zeros"):
        return torch.randint(110, 140, extents).to(torch.uint8)
    return torch.randint(0, 255 if pattern == "outlier" else 256, extents).to(torch.uint8)


def make_arguments(fusion, extents, pattern):
    m, n = extents
    values = []
    for name, kind in get_arguments(fusion):
        if name in ("s", "si"):
            values.append(torch.full((1, 1), {"s": 37.0, "si": 1 / 37.0}[name]))
        elif name == "ids":
            values.append(torch.randint(0, TABLE_ROWS, (m,)))
        elif name == "t":
            values.append(make_tensor(pattern, (TABLE_ROWS, n)))
        elif name.startswith("c"):
            codes = make_codes(pattern, extents)
            if name == "c4":  # Two in a byte.
                codes = codes[:, ::2] & 0x0F | codes[:, 1::2] << 4
            values.append(codes)
        elif name.startswith("f_"):
            grid = fill(kind, m, n).removeprefix("tensor<").split("x")
            make_factor = make_bytes if grid[-1].startswith("f8") else make_factors
            values.append(make_factor(pattern, tuple(map(int, grid[:-1]))))
        elif name == "seed":
            values.append(torch.randint(-2**31, 2**31, (4,), dtype=torch.int32))
        elif name == "w":
            values.append(make_tensor("random", (n,)))
        else:
            values.append(make_tensor(pattern, (m, n)))
            if fusion.approximate:
                low, high = FLUSHED
                values[-1][(values[-1] > low) & (values[-1] < high)] = high
    return values


def compare(fusion, dtypes, arguments, found, expected):
    """What is wrong with results, bits of values of these types."""
    for number, (dtype, *values) in enumerate(zip(dtypes, found, expected)):
        ours, theirs = (value.cpu().numpy() for value in values)
        if number == fusion.sums:
            message = compare_sums(ours, theirs, arguments[0].view(torch.int16).numpy())
        elif fusion.approximate:
            message = compare_values(dtype, ours, theirs)
        elif fusion.any_nan and dtype in ("BF16", "F32"):
            message = compare_numbers(dtype, ours, theirs)
        else:
            message = compare_bits(ours, theirs)
        if message:
            return f"result {number}: {message}"
    return ""


def check(fusion, name, arguments, gpu, cpu):
    """The same on both, which are a place and a program each."""
    function = cpu[1].functions[name]
    expected = Call(cpu[0], function, arguments).read()
    try:
        found = Call(gpu[0], gpu[1].functions[name],
                     [value.cuda() for value in arguments]).read()
    except Exception as error:
        return describe(error)
    dtypes = [info.dtype.decode() for info in function.results]
    return compare(fusion, dtypes, arguments, found, expected)


def check_all(fusions, gpu, cpu, work):
    checks = []
    cases = [(sizes, sizes) for sizes in CHECKED]
    cases += [(sizes, extents) for sizes in DYNAMIC for extents in DYNAMIC_EXTENTS[sizes]]
    for fusion in fusions:
        for sizes, extents in cases:
            if not (has_whole_bytes(fusion, *sizes) and has_whole_bytes(fusion, *extents)):
                continue
            name = get_name(fusion, *sizes)
            for pattern in PATTERNS:
                torch.manual_seed(1000 * extents[0] + extents[1] + PATTERNS.index(pattern))
                arguments = make_arguments(fusion, extents, pattern)
                message = check(fusion, name, arguments, gpu, cpu)
                checks.append({"function": name, "extents": list(extents), "pattern": pattern,
                               "kernels": work[name], "message": message})
                if message:
                    print(f"{name} {extents} {pattern}: {message}", flush=True)
    failed = sum(bool(entry["message"]) for entry in checks)
    print(f"{len(checks)} checks, {failed} failures", flush=True)
    return checks
