"""Training steps with AdamW: torch's fused one beside fp8.torch.fuse_optimizer.

First the optimizer's pass over a parameter of 14336 x 4096, beside a copy, in bytes a second, and over the
many parameters of a narrow model. Then whole steps, forward, backward and optimizer in a CUDA graph: an MLP
of 768-3072-768 with 32 rows, a layer of Llama 3 8B with 8192 tokens (its attention is PyTorch's), three such layers that are
compiled one by one, as steps within the backward pay for, and MLPs of other widths and numbers of tokens. "own codes" is without
sharing codes of x, "one order" with transposed_codes="kernel", "by cost" with "cost", "chosen"
leaves to PyTorch what is expected to be no faster, "backend" is torch.compile's backend, with moments in FP8, with attention in E4M3 ("dpa"), and
with weights whose codes the optimizer writes ("written"). PyTorch's own
is bf16 in torch.compile. Parameters and moments are bf16, and in the first part also f32. All ways of a case take turns in the same process.

usage: optimizers.py [--make] [--programs DIR] [--seconds N] [--cases GLOBS] [--steps GLOBS] [--out FILE]

`--make` compiles the optimizer's programs into DIR, and those of layers in one order, for a machine without this compiler. A case that fails is
a line, and the others go on. FILE is written behind each.
"""

import argparse
import copy
import fnmatch
import functools
import hashlib
import itertools
import json
import statistics
import time
import traceback
from pathlib import Path

import torch
import torch._functorch.config
from torch import nn
from torch.nn import functional as F

import fp8
import fp8.torch
from fp8.recipes import get_text
from fp8.torch import backward_steps, linear_ops, linear_programs, moments, shard_programs, update_plan
from fp8.torch.linear_programs import ELEMENTS, Shape
from fp8.torch.update_text import CODES, DRAWN, SPLIT, Part, Rule, Target, Update, divide_orders, write

TOKENS, WIDTH, WIDE, HEADS, GROUPS = 8192, 4096, 14336, 32, 8
SMALL = 32, 768, 3072
# Widths of MLPs, which are four times as wide within, and tokens.
GRID = ((1024, 64), (2048, 256), (4096, 512), (4096, 64))
# Layers of a model of many parameters, and their width.
MANY = 48, 256
DEVICE, TARGET = "cuda", "auto"
RECIPES = ("delayed", "current", "rowwise", "block")
# What else a pass in bf16 may keep: options of fuse_optimizer, and whether weights are codes, by name.
KEPT = {"split": ({"masters": "split"}, False), "stochastic": ({"masters": "stochastic"}, False),
        "fp8 moments": ({"moments": "fp8"}, False),
        "stochastic, fp8 moments": ({"masters": "stochastic", "moments": "fp8"}, False),
        "codes": ({}, True), "codes, fp8 moments": ({"moments": "fp8"}, True)}
FAST, CODED = "delayed,accumulate=fast_fprop", {"moments": "fp8"}
# Ways of the backend: a name, a recipe and its options.
BACKENDS = (("delayed", "delayed", {}), ("current", "current", {}), ("by cost", "current", {"transposed_codes": "cost"}),
            ("without codes", "current", {"keep_codes": False}), ("fast", FAST, {}),
            ("dpa", fp8.DelayedScaling(accumulate="fast_fprop", fp8_dpa=True), {}))
# Ways of whole steps: a recipe, whether the optimizer is fused, its options, and whether weights are codes.
WAYS = {"bf16": (None, False), "delayed": ("delayed", False), "delayed fused": ("delayed", True),
        "current fused": ("current", True), "block fused": ("block", True), "bf16, ours": (None, True),
        "bf16, ours, fp8 moments": (None, True, CODED), "delayed, fp8 moments": ("delayed", True, CODED),
        "fast fprop, fp8 moments": (FAST, True, CODED),
        "codes": ("block", True, {}, True), "codes, fp8 moments": ("block", True, CODED, True),
        "current codes, fp8 moments": ("current", True, CODED, True),
        **{f"{way}, {name}": (recipe, True, {**CODED, "layers": {"transposed_codes": order}}, are_codes)
           for name, order in (("one order", "kernel"), ("by cost", "cost"))
           for way, recipe, are_codes in (("current codes", "current", True), ("delayed", "delayed", False), ("codes", "block", True))},
        **{f"backend {name}": (recipe, True, {**CODED, "backend": options}) for name, recipe, options in BACKENDS},
        **{f"backend {name}, written": (recipe, True, {**CODED, "backend": options, "written": True})
           for name, recipe, options in BACKENDS if not options},
        "delayed, chosen": ("delayed", True, {"layers": {"only_faster": None}}),
        "delayed, own codes": ("delayed", True, {**CODED, "own_codes": True}),
        "delayed, in backward": ("delayed", True, {**CODED, "in_backward": True}),
        "codes, in backward": ("block", True, {**CODED, "in_backward": True}, True)}
START = time.monotonic()


class Layer(nn.Module):
    """A transformer layer of Llama 3 8B."""

    def __init__(self):
        super().__init__()
        head = WIDTH // HEADS
        self.norm, self.norm2 = nn.RMSNorm(WIDTH), nn.RMSNorm(WIDTH)
        self.q, self.out = (nn.Linear(WIDTH, WIDTH, bias=False) for _ in range(2))
        self.k, self.v = (nn.Linear(WIDTH, GROUPS * head, bias=False) for _ in range(2))
        self.gate, self.up = (nn.Linear(WIDTH, WIDE, bias=False) for _ in range(2))
        self.down = nn.Linear(WIDE, WIDTH, bias=False)

    def forward(self, x):
        def split(z):
            return z.view(2, TOKENS // 2, -1, WIDTH // HEADS).transpose(1, 2)

        y = self.norm(x)
        z = F.scaled_dot_product_attention(split(self.q(y)), split(self.k(y)), split(self.v(y)),
                                           is_causal=True, enable_gqa=True)
        x = x + self.out(z.transpose(1, 2).reshape(x.shape))
        y = self.norm2(x)
        return x + self.down(F.silu(self.gate(y)) * self.up(y))


class Stack(nn.Sequential):
    """Layers that are compiled one by one."""

    def __init__(self, count=3):
        super().__init__(*(Layer() for _ in range(count)))


def make_mlp(width, wide):
    return nn.Sequential(nn.Linear(width, wide), nn.GELU(), nn.Linear(wide, width))


def make_many():
    count, width = MANY
    return nn.Sequential(*(layer for _ in range(count) for layer in (nn.LayerNorm(width), nn.Linear(width, width))))


# ===----------------------------------------------------------------------===
# Programs
# ===----------------------------------------------------------------------===


def find_layer_path(folder, shape, recipe, options):
    return find_path(folder, f"{sorted(options.items())} {recipe} {shape.write()}")


def list_layers(model, rows):
    """Shapes, recipes and options of programs of a model's layers, of ways that have options for these."""
    for recipe, _, *kept in WAYS.values():
        layers = (kept or [{}])[0].get("layers", {})
        for layer in model.modules() if "transposed_codes" in layers else ():
            if isinstance(layer, nn.Linear):
                yield Shape(rows, layer.in_features, layer.out_features, torch.bfloat16, layer.bias is not None, True), recipe, layers


def find_path(folder, text):
    return Path(folder) / f"{hashlib.sha256(text.encode()).hexdigest()[:16]}.so"


def list_parts(model, recipe, element, options=(), are_codes=False):
    """The Parts of a model's parameters."""
    options = dict(options)
    # Steps of what a backend compiles write codes only where these are asked for.
    recipe = recipe if "backend" not in options else get_text(recipe) if "written" in options else None
    master = {"split": SPLIT, "stochastic": DRAWN}.get(options.get("masters"))
    weights = {id(layer.weight) for layer in model.modules() if isinstance(layer, nn.Linear)}
    parts = []
    for value in model.parameters():
        has_codes = bool(options.get("moments")) and moments.is_worth(value)
        is_weight = id(value) in weights
        target = recipe and Target(shard_programs.find_codes(recipe), "f32" if are_codes else element, recipe.startswith("delayed"),
                                   shard_programs.keeps_one_order(recipe, options.get("layers", ())))
        parts.append((Part(value.numel() // value.shape[-1], value.shape[-1], element, target if is_weight else None,
                           CODES if are_codes and is_weight else master, has_codes),))
    return parts


def list_updates(parts, kind="adamw", in_backward=False):
    """Updates of a step, those with random numbers by themselves, and so is what has its step within the backward."""
    def draws(part):
        return part.coded or part.master in (DRAWN, CODES)
    for options in (("decay",), ("drawn", "decay")):
        same = [each for each in parts if draws(each[0]) == ("drawn" in options)]
        alone = [each for each in same if in_backward and each[0].rows * each[0].columns >= backward_steps.LEAST]
        same = [(divide_orders(part), part) for part, in same if (part,) not in alone]
        for chunk in [*([(divide_orders(part), part)] for part, in alone), *update_plan.divide(same)]:
            yield Update(Rule(kind, options), tuple(part for part, _ in chunk))
            turned = [Part(whole.rows, whole.columns, whole.target.element, whole.target) for part, whole in chunk if part != whole]
            if turned:
                yield Update(Rule("turn"), tuple(turned))


def make_programs(folder):
    """Those of all models below."""
    Path(folder).mkdir(parents=True, exist_ok=True)
    with torch.device("meta"):
        weight, layer, stack = nn.Linear(WIDTH, WIDE, bias=False), Layer(), Stack()
        models = [(layer, ("bf16",)), (stack, ("bf16",)), (weight, ("f32", "bf16")), (make_many(), ("bf16",)),
                  *((make_mlp(width, wide), ("bf16",)) for width, wide in {SMALL[1:], *((w, 4 * w) for w, _ in GRID)})]
    updates = set()
    for (model, elements), recipe in itertools.product(models, (None, *RECIPES)):
        for element in elements:
            parts = list_parts(model, recipe, element)
            updates.update(list_updates(parts))
            for chunk in update_plan.divide([each for each in parts if each[0].target]):
                updates.add(Update(Rule("none"), tuple(part for part, in chunk)))
    for options, are_codes in KEPT.values():
        updates.update(list_updates(list_parts(weight, "block" if are_codes else None, "bf16", options, are_codes)))
    for (model, _), (recipe, fuses, *kept) in itertools.product(models, WAYS.values()):
        if fuses:
            updates.update(list_updates(list_parts(model, recipe, "bf16", *kept), in_backward="in_backward" in (kept or [{}])[0]))
    updates.update(list_updates(list_parts(weight, None, "bf16"), "lion"))
    texts = {write(update)[0] for update in updates}
    for text in texts:
        if not find_path(folder, text).exists():
            fp8.compile(text, target="sm_90a", cpu="x86-64-v3", cache=False).save(str(find_path(folder, text)))
    for shape, recipe, options in list_layers(layer, TOKENS):
        path = find_layer_path(folder, shape, recipe, options)
        if not path.exists():
            linear_programs.compile_shape(shape, recipe, "sm_90a", **options, cpu="x86-64-v3", cache=False).save(str(path))
    print(f"{len(list(Path(folder).iterdir()))} programs")


def use_programs(folder):
    """Takes programs from there in place of compiling them."""
    @functools.lru_cache(maxsize=None)
    def load(update, target):
        text, names = write(update)
        path = find_path(folder, text)
        if not path.exists():
            print(f"compiled here: {update}", flush=True)
            return compile_update(update, target)
        return fp8.load(str(path)).functions["update"], names

    def load_layer(shape, recipe, target, **options):
        path = find_layer_path(folder, shape, recipe, options)
        return fp8.load(str(path)) if path.exists() else compile_shape(shape, recipe, target, **options)

    compile_update, compile_shape = update_plan._compile, linear_programs.compile_shape
    update_plan._compile, linear_programs.compile_shape = load, load_layer


# ===----------------------------------------------------------------------===
# Timing
# ===----------------------------------------------------------------------===


def capture(step, calls=1):
    """A CUDA graph of `calls` steps, after a few that compile and load."""
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        for _ in range(4):
            step()
    torch.cuda.current_stream().wait_stream(stream)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for _ in range(calls):
            step()
    return graph


def time_all(results, case, graphs, replays, calls=1, rounds=7):
    """Microseconds of a call of each, the median of rounds that alternate."""
    for name in list(graphs):
        def run():
            graphs[name].replay()
            torch.cuda.synchronize()
            return True
        if attempt(results, f"{case} {name}", run) is None:
            del graphs[name]
    times = {name: [] for name in graphs}
    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    for _ in range(rounds):
        for name, graph in graphs.items():
            graph.replay()
            begin.record()
            for _ in range(replays):
                graph.replay()
            end.record()
            end.synchronize()
            times[name].append(begin.elapsed_time(end) * 1e3 / replays / calls)
    return {name: statistics.median(each) for name, each in times.items()}


def attempt(results, name, make):
    """What `make` returns; a failure is a line."""
    try:
        return make()
    except Exception as error:
        traceback.print_exc()
        results.setdefault("errors", {})[name] = f"{type(error).__name__}: {error}"[:500]
        return None


# ===----------------------------------------------------------------------===
# The optimizer alone
# ===----------------------------------------------------------------------===


def count_bytes(parameter, options, are_codes, has_codes):
    """What a step of AdamW moves of a parameter."""
    size = parameter.element_size()
    moment = 1 + 4 / 128 if options.get("moments") else 4 if options.get("masters") == "split" else size
    own = 1 if are_codes else 4 if options.get("masters") == "split" else size
    return (2 * own + size + 4 * moment + (are_codes or 2 * has_codes)) * parameter.numel()


def make_pass(model, width, dtype, recipe, fuses, options={}, are_codes=False, cls=torch.optim.AdamW):
    """A step of AdamW of a model's parameters, and bytes that it moves."""
    torch.manual_seed(0)
    model = model.to(DEVICE, dtype)
    if recipe:
        fp8.torch.convert_to_fp8_training(model, recipe, first_last_bf16=0, only_faster=False, target=TARGET,
                                          **({"parameters": "fp8"} if are_codes else {}))
        # Delayed scaling has its scale of a step.
        model(torch.randn(128, width, device=DEVICE, dtype=dtype)).sum().backward()
    is_adam = cls is torch.optim.AdamW
    optimizer = cls(model.parameters(), 1e-3, weight_decay=0.1, **({"fused": True, "capturable": True} if is_adam else {}))
    moved = 0
    for parameter in model.parameters():
        parameter.grad = torch.randn(parameter.shape, dtype=parameter.dtype, device=DEVICE)
        moved += count_bytes(parameter, options, are_codes, bool(recipe and fuses and parameter.ndim > 1))
        moved -= 0 if is_adam else 2 * parameter.element_size() * parameter.numel()
    if fuses:
        fp8.torch.fuse_optimizer(model, optimizer, **options)
        if recipe and optimizer.fp8_left:
            print(optimizer.fp8_left)
    return optimizer, moved, model


def run_kept(results, make_model):
    """Passes over a weight in bf16, or in FP8, with what else may be kept."""
    graphs, moved, kept = {}, {}, []
    for name, (options, are_codes) in {"lion": ({}, False), **KEPT}.items():
        def make():
            cls = fp8.torch.Lion if name == "lion" else torch.optim.AdamW
            optimizer, moved[name], model = make_pass(make_model(), WIDTH, torch.bfloat16, "block" if are_codes else None, True,
                                                      options, are_codes, cls)
            kept.append((optimizer, model))
            return capture(optimizer.step)
        graph = attempt(results, f"kept {name}", make)
        if graph is not None:
            graphs[name] = graph
    for name, us in time_all(results, "kept", graphs, 10).items():
        results[f"kept {name}"] = {"us": us, "GB/s": moved[name] / us / 1e3}
        print(f"{'kept':10} {name:24} {us:9.1f} us {moved[name] / 1e6:9.1f} MB {moved[name] / us / 1e3:8.0f} GB/s", flush=True)


def run_pass(results, case, make_model, width, dtype, recipes, replays):
    graphs, moved, kept = {}, {}, []
    source = torch.randn(7 * WIDE * WIDTH // 2, device=DEVICE).to(dtype)
    target = torch.empty_like(source)
    graphs["copy"] = capture(lambda: target.copy_(source))
    moved["copy"] = 2 * source.numel() * source.element_size()
    for name, recipe, fuses in (("torch fused", None, False), ("ours, no codes", None, True),
                                *((f"ours, {recipe}", recipe, True) for recipe in recipes)):
        def make():
            optimizer, moved[name], model = make_pass(make_model(), width, dtype, recipe, fuses)
            kept.append((optimizer, model))
            return capture(optimizer.step)
        graph = attempt(results, f"{case} {name}", make)
        if graph is not None:
            graphs[name] = graph
    for name, us in time_all(results, case, graphs, replays).items():
        rate = moved[name] / us / 1e3
        results[f"{case} {name}"] = {"us": us, "GB/s": rate}
        print(f"{case:10} {name:18} {us:9.1f} us {moved[name] / 1e6:9.1f} MB {rate:8.0f} GB/s", flush=True)


# ===----------------------------------------------------------------------===
# Whole steps
# ===----------------------------------------------------------------------===


def make_step(model, x, target, recipe, fuses, options={}, are_codes=False):
    model = copy.deepcopy(model)
    options = dict(options)
    linear_ops.Unit.shares_codes, layers = not options.pop("own_codes", False), options.pop("layers", {})
    backend, is_written = options.pop("backend", None), options.pop("written", False)
    if recipe and backend is None:
        fp8.torch.convert_to_fp8_training(model, recipe, first_last_bf16=0, target=TARGET, **{"only_faster": False, **layers},
                                          **({"parameters": "fp8"} if are_codes else {}))
    by = {} if backend is None else {"backend": fp8.torch.Backend(recipe, only_faster=False, **backend)}
    optimizer = torch.optim.AdamW(model.parameters(), 1e-4, fused=True, capturable=True)
    if fuses:
        fp8.torch.fuse_optimizer(model, optimizer, **options, **(by if is_written else {}))
        if recipe and backend is None and optimizer.fp8_left:
            print(optimizer.fp8_left)
    if recipe and backend is None and layers.get("only_faster", False) is False:
        fp8.torch.prepare(model, rows=x.numel() // x.shape[-1])
    compiled = model
    if isinstance(model, Stack):
        for layer in model:
            layer.compile(dynamic=False, **by)
    else:
        compiled = torch.compile(model, dynamic=False, **by)

    def step():
        optimizer.zero_grad(set_to_none=True)
        # Nothing keeps the autograd graph: the next one's nodes may be of another stream.
        compiled(x).backward(target)
        optimizer.step()
    return step, (model, optimizer)


def run_steps(results, case, model, x, ways, seconds, replays, calls):
    target = torch.randn_like(x) / x.numel() ** 0.5
    graphs, kept = {}, []
    torch._dynamo.reset()
    for way, (recipe, fuses, *others) in ways.items():
        if time.monotonic() - START > seconds:
            results.setdefault("left out", []).append(f"{case} {way}")
            continue

        def make():
            torch.cuda.empty_cache()
            torch.cuda.reset_peak_memory_stats()
            before = torch.cuda.memory_allocated()
            begin = time.monotonic()
            step, objects = make_step(model, x, target, recipe, fuses, *others)
            for _ in range(3):
                step()
            torch.cuda.synchronize()
            results[f"{case} {way} held MB"] = (torch.cuda.memory_allocated() - before) / 1e6
            results[f"{case} {way} peak MB"] = (torch.cuda.max_memory_allocated() - before) / 1e6
            kept.append(objects)
            graph = capture(step, calls)
            print(f"{case} {way}: ready in {time.monotonic() - begin:.1f} s", flush=True)
            return graph
        graph = attempt(results, f"{case} {way}", make)
        if graph is not None:
            graphs[way] = graph
    times = time_all(results, case, graphs, replays, calls)
    for way, us in times.items():
        share = us / times["bf16"] if "bf16" in times else float("nan")
        peak = results.pop(f"{case} {way} peak MB")
        held = results.pop(f"{case} {way} held MB")
        results[f"{case} {way}"] = {"us": us, "of bf16": share, "peak MB": peak, "held MB": held}
        print(f"{case:12} {way:24} {us:10.1f} us {share:6.3f} of bf16's, peak {peak:7.0f} MB, between steps {held:7.0f}",
              flush=True)


def choose(names, globs):
    return [name for name in names if any(fnmatch.fnmatchcase(name, glob) for glob in globs.split(";"))]


def choose_ways(args):
    return {way: WAYS[way] for way in choose(WAYS, args.steps)}


def run_mlp(results, case, tokens, width, wide, args):
    torch.manual_seed(0)
    x = torch.randn(tokens, width, device=DEVICE, dtype=torch.bfloat16)
    run_steps(results, case, make_mlp(width, wide).to(DEVICE, torch.bfloat16), x, choose_ways(args), args.seconds, 10, 10)


def run_layer(results, args, case="layer", make=Layer):
    torch.manual_seed(0)
    x = torch.randn(TOKENS, WIDTH, device=DEVICE, dtype=torch.bfloat16)
    run_steps(results, case, make().to(DEVICE, torch.bfloat16), x, choose_ways(args), args.seconds, 5, 1)


def list_cases(args):
    """Functions of results, by name, in the order of what is asked first."""
    def make_weight():
        return nn.Sequential(nn.Linear(WIDTH, WIDE, bias=False))

    cases = {
        "pass bf16": lambda results: run_pass(results, "pass bf16", make_weight, WIDTH, torch.bfloat16, RECIPES, 10),
        "small": lambda results: run_mlp(results, "small", *SMALL, args),
        "kept": lambda results: run_kept(results, make_weight),
        "layer": lambda results: run_layer(results, args),
        "layers": lambda results: run_layer(results, args, "layers", Stack),
        "pass f32": lambda results: run_pass(results, "pass f32", make_weight, WIDTH, torch.float32, RECIPES, 10),
        "many bf16": lambda results: run_pass(results, "many bf16", make_many, MANY[1], torch.bfloat16, ("delayed",), 10)}
    for width, tokens in GRID:
        cases[f"mlp {width} x {tokens}"] = functools.partial(
            run_mlp, case=f"mlp {width} x {tokens}", tokens=tokens, width=width, wide=4 * width, args=args)
    return cases


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--make", action="store_true")
    parser.add_argument("--programs")
    parser.add_argument("--seconds", type=float, default=75)
    parser.add_argument("--cases", default="*", help="globs of names, with semicolons")
    parser.add_argument("--steps", default="*", help="the same of ways of whole steps")
    parser.add_argument("--out")
    args = parser.parse_args()
    if args.make:
        return make_programs(args.programs)
    if args.programs:
        use_programs(args.programs)
    # Graphs that were kept with shared codes are not those without.
    torch._functorch.config.enable_autograd_cache = False
    # All layers and ways have one forward.
    torch._dynamo.config.recompile_limit = 64
    results = {"device": torch.cuda.get_device_name()}
    print(results["device"])
    for name, run in list_cases(args).items():
        if not choose([name], args.cases):
            continue
        if time.monotonic() - START > args.seconds:
            results.setdefault("left out", []).append(name)
            continue
        attempt(results, name, lambda: run(results))
        torch.cuda.empty_cache()
        if args.out:
            Path(args.out).write_text(json.dumps(results, indent=1) + "\n")
        print(f"{name}: {time.monotonic() - START:.0f} s", flush=True)


if __name__ == "__main__":
    main()
