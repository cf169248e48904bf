"""What the times mean: each goal beside what was measured, and a line for each
shape. Needs no GPU: `python3 -m matmul.report gemm.json` prints it again."""

import json
import re
import statistics
import sys

from matmul.kinds import LAYOUTS

# What is asked of our kernels: (what, class, kind, the names that it is compared
# with, whether M is large, geometric mean, no shape below). None: only reported.
CUBLASLT = {"fast": ("torch_fast", "cublaslt_fast"),
            "slow": ("torch_slow", "cublaslt_slow")}
PEERS = (*CUBLASLT["fast"], "triton_fast")
BLOCK_PEERS = (*CUBLASLT["slow"], "deepgemm")
GOALS = [
    ("per tensor, fast, M >= 1024", "tensor", "tensor_fast", PEERS, True, 1.03, 0.96),
    ("per tensor, fast, M <= 512", "tensor", "tensor_fast", PEERS, False, 1.05, 0.90),
    ("row-wise, M >= 1024", "row", "row_fast", PEERS, True, 1.02, 0.95),
    ("row-wise, M <= 512", "row", "row_fast", PEERS, False, 1.25, 0.93),
    ("1x128 by 128x128, M >= 1024", "block", "block", BLOCK_PEERS, True, 1.03, 0.95),
    ("1x128 by 128x128, M <= 512", "block", "block", BLOCK_PEERS, False, 1.03, 0.90),
    ("promote / our fast, M >= 1024", "tensor", "tensor_promote", ("tensor_fast/",),
     True, 0.97, 0.90),
    ("epilogue, erf / none, M >= 1024", "tensor", "tensor_fast_gelu",
     ("tensor_fast/",), True, 0.95, 0.85),
    ("epilogue, tanh / none, M >= 1024", "tensor", "tensor_fast_tanh",
     ("tensor_fast/",), True, 0.95, 0.85),
    ("promote / slow, M >= 1024", "tensor", "tensor_promote", CUBLASLT["slow"], True,
     None, None),
    ("promote / slow, M <= 512", "tensor", "tensor_promote", CUBLASLT["slow"], False,
     None, None),
    ("per tensor, fast / PyTorch", "tensor", "tensor_fast", ("torch_fast",), True,
     None, None),
    ("per tensor, fast / bf16", "tensor", "tensor_fast", ("bf16",), True, None, None),
    *[(f"{element} {layout}, M {'>= 1024' if large else '<= 512'}", f"{element}_{layout}",
       f"{element}_{layout}", ("torch", "cublaslt"), large, mean, worst)
      for element in ("bf16", "f16") for layout in LAYOUTS
      for large, mean, worst in ((True, 0.98, 0.93), (False, 1.0, None))],
]


def ratio(row, kind, against):
    """The best time of `against` over that of our choice, or None; and whose it
    was. Of our own kinds, only the choice counts."""
    times, ours = row["microseconds"], row["ours"].get(kind)
    if against == ("tensor_fast/",):
        names = [row["ours"].get("tensor_fast")]
    else:
        names = [name for name in times if name.startswith(against)]
    names = [name for name in names if name in times]
    if ours not in times or not names:
        return None, None
    best = min(names, key=times.get)
    return times[best] / times[ours], best


def goals(rows):
    """One dict for each goal, with the ratio of every shape."""
    results = []
    for what, class_, kind, against, large, mean, worst in GOALS:
        ratios = {}
        for row in rows:
            if row["class"] == class_ and (row["m"] >= 1024) == large:
                value, best = ratio(row, kind, against)
                if value:
                    ratios[row["shape"]] = {"ratio": value, "best": best}
        values = [entry["ratio"] for entry in ratios.values()]
        result = {"what": what, "goal_mean": mean, "goal_worst": worst,
                  "shapes": len(values), "ratios": ratios}
        if values:
            result["mean"] = statistics.geometric_mean(values)
            result["worst"] = min(values)
            result["worst_shape"] = min(ratios, key=lambda s: ratios[s]["ratio"])
        if mean:
            result["pass"] = bool(values) and (
                round(result["mean"], 3) >= mean and round(result["worst"], 3) >= (worst or 0))
        results.append(result)
    return results


def judge(rows):
    """The goals of the listed shapes, and of a random sample, if there is one."""
    sampled = [row for row in rows if re.match(r"r\d+\.", row["shape"])]
    listed = [row for row in rows if row not in sampled]
    return {what: goals(part) for what, part in (("listed", listed), ("sample", sampled)) if part}


def judgement_lines(judged):
    for what, results in judged.items():
        yield f"{what}:"
        yield from goal_lines(results)
        yield ""


def goal_lines(results):
    yield f"{'ratio of medians':32s} {'mean':>6s} {'goal':>5s}  {'worst':>6s} {'goal':>5s}"
    for r in results:
        if not r["shapes"]:
            measured = f"{r['what']:32s} not measured"
        else:
            bound = [f"{g:5.2f}" if g else "    -"
                     for g in (r["goal_mean"], r["goal_worst"])]
            measured = (f"{r['what']:32s} {r['mean']:6.3f} {bound[0]}  {r['worst']:6.3f} "
                        f"{bound[1]}  {r['shapes']:3d} shapes, worst {r['worst_shape']}")
        verdict = {True: "  pass", False: "  MISS", None: ""}[r.get("pass")]
        yield measured + verdict


def shape_line(row):
    """TFLOP/s of all; of cuBLASLt's proposals, only the best."""
    flops, times = 2e-6 * row["m"] * row["n"] * row["k"], row["microseconds"]
    shown = {}
    for name, t in sorted(times.items(), key=lambda item: item[1]):
        shown.setdefault(name.partition(".")[0], f"{name} {flops / t:.0f}")
    chosen = [f"{name} {flops / times[name]:.0f}" for name in row["ours"].values()
              if name in times]
    others = [text for name, text in shown.items() if "/" not in name]
    best = {name.partition("/")[0]: name for name in reversed(shown) if "/" in name}
    better = [shown[name] for name in best.values()
              if name not in row["ours"].values()]
    extra = f"  | best of all: {', '.join(better)}" if better else ""
    return (f"{row['shape']:11s} {row['m']:6d} {row['n']:6d} {row['k']:6d}  "
            f"{', '.join(chosen) or '-'}  | {', '.join(others)}{extra}")


def check_lines(record):
    checks = record.get("checks", {})
    if checks:
        yield (f"{sum(c['checks'] for c in checks.values())} checks against f64, "
               f"{sum(c['failures'] for c in checks.values())} failures")
        caught = sum(c.get("damage_caught", 0) for c in checks.values())
        if caught:
            yield f"{caught} damaged results, each caught"
    repeated = record.get("determinism", [])
    if repeated:
        yield (f"{len(repeated)} kernels run {repeated[0]['runs']} times beside other "
               f"work, {sum(bool(r['changed']) for r in repeated)} with changed bits")
    for tool, found in record.get("sanitizer", {}).items():
        kernels = ", ".join(f"{k} {n}" for k, n in found["kernels"].items())
        yield (f"compute-sanitizer {tool}: {found['errors']} errors, "
               f"{found['warnings']} warnings, {found['launches']} launches"
               + (f" ({kernels})" if kernels else ""))


def text(record):
    yield f"{record['gpu']}, torch {record['torch']}, {record['date']}"
    yield f"$ {record['command']}"
    yield ""
    yield from check_lines(record)
    if record.get("rows"):
        yield ""
        yield from judgement_lines(record["goals"])
        yield "TFLOP/s; ours as the selection chose, then the peers"
        yield from (shape_line(row) for row in record["rows"])


def main():
    with open(sys.argv[1]) as file:
        record = json.load(file)
    record["goals"] = judge(record.get("rows", []))
    print("\n".join(text(record)))


if __name__ == "__main__":
    main()
