"""Models as people find them (found_models.py), each way that they would take: is FP8 right, and how do time and memory compare?

A model has processes, or parts: `ours` has layers of convert_to_fp8_training in eager mode, inference after quantize_for_inference
with results of several shapes and generated tokens, and torch.compile's backend; `graphs` has the layers, and the quantized
model, within torch.compile; `peers` has bf16 in eager mode and by Inductor. A step of training is forward and backward. Errors of gradients
are of all of them, and of the worst parameter, beside those of bf16 (`noise`), both against the same weights in f32. Processes compile
side by side, and while one of them is timed, the others are stopped. What is done is in the file at once.

usage: found.py [--models NAMES] [--parts NAMES] [--ways NAMES] [--recipe R] [--backend R] [--inference R] [--jobs N] [--end S] [--limit S] [--small]
                [--static-graphs] [--out FILE]
"""

import argparse
import collections
import contextlib
import copy
import gc
import json
import os
import statistics
import sys
import time
import traceback
import warnings

os.environ.setdefault("TORCHINDUCTOR_COMPILE_THREADS", "1")
os.environ.setdefault("HF_HUB_OFFLINE", "1")

import found_models
import torch
import torch._dynamo
import torch._inductor.compile_fx
import unseen_gpu
from unseen import list_tensors

PARTS = "ours", "peers", "graphs"
OURS = "layers", "inference", "backend"
WARM_UP, ROUNDS, STEPS, TOKENS = 2, 2, 2, 8
Gradients = collections.namedtuple("Gradients", ["loss", "grads"])


def get_loss(results):
    """The model's own; else the scalar product of its results with random numbers, the same ones each time."""
    loss = getattr(results, "loss", None)
    if loss is not None:
        return loss
    total = 0
    for each in list_tensors(results).values():
        generator = torch.Generator(each.device).manual_seed(each.numel())
        weights = torch.randn(each.shape, generator=generator, device=each.device)
        total = total + (each.float() * weights).mean() * each.shape[-1] ** 0.5
    return total


def to(inputs, dtype):
    return {key: value.to(dtype) if torch.is_tensor(value) and value.is_floating_point() else value for key, value in inputs.items()}


class Run:
    """One process of one model."""

    def __init__(self, name, arguments, turn, write):
        self.device = "cpu" if arguments.small else "cuda"
        self.arguments, self.turn, self.write = arguments, turn, write
        self.sizes = found_models.Sizes(arguments.small, self.device)
        self.model, self.inputs = found_models.make(name, self.sizes)
        self.record = {"parameters": sum(each.numel() for each in self.model.parameters())}

    def synchronize(self):
        if self.device == "cuda":
            torch.cuda.synchronize()

    def get_bytes(self):
        return torch.cuda.memory_allocated() if self.device == "cuda" else 0

    @contextlib.contextmanager
    def part(self, name):
        """What fails in it is noted, and no other part's."""
        start, record = time.perf_counter(), {}
        self.record[name] = record
        try:
            with warnings.catch_warnings(record=True) as said:
                warnings.simplefilter("always")
                yield record
        except Exception as error:
            record["error"] = "".join(traceback.format_exception(error))[-3500:]
        record["warnings"] = list(dict.fromkeys(str(each.message)[:700] for each in said if "fp8" in f"{each.message} {each.filename}"))[:12]
        record["seconds"] = time.perf_counter() - start
        torch._dynamo.reset()
        gc.collect()
        if self.device == "cuda":
            torch.cuda.empty_cache()
        self.write(self.record)

    def measure(self, function, record, prefix=""):
        """Milliseconds of a call, and of the host's work in one; the memory that a call adds to what is there before."""
        for _ in range(WARM_UP):
            function()
        self.synchronize()
        if self.device == "cuda":
            torch.cuda.reset_peak_memory_stats()
            before = self.get_bytes()
            function()
            self.synchronize()
            record[prefix + "added MB"] = (torch.cuda.max_memory_allocated() - before) / 2**20
        times, hosts = [], []
        with self.turn():
            self.wait_for_others()
            function()
            self.synchronize()
            for _ in range(ROUNDS):
                start, host = time.perf_counter(), time.process_time()
                for _ in range(STEPS):
                    function()
                host = time.process_time() - host
                self.synchronize()
                times.append(1e3 * (time.perf_counter() - start) / STEPS)
                hosts.append(1e3 * host / STEPS)
        record[prefix + "ms"], record[prefix + "host ms"] = statistics.median(times), min(hosts)

    def wait_for_others(self):
        """Until the GPU is done with what processes had given it before they were stopped."""
        one = torch.ones(1, device=self.device)
        for _ in range(200):
            self.synchronize()
            start = time.perf_counter()
            one.add_(1)
            self.synchronize()
            if time.perf_counter() - start < 2e-4:
                break

    @staticmethod
    def step(model, call, inputs):
        for each in model.parameters():
            each.grad = None
        loss = get_loss(call(**inputs))
        loss.backward()
        return loss

    def get_gradients(self, model, call, inputs):
        torch.manual_seed(1)
        loss = self.step(model, call, inputs).item()
        return Gradients(loss, {name: each.grad.detach() for name, each in model.named_parameters() if each.grad is not None})

    @staticmethod
    def compare(got, want):
        """Errors of all gradients together, and of the parameters that are wrong by most, of those that are not next to nothing."""
        names, errors = sorted(want.grads), []
        norms = torch.stack([want.grads[name].float().norm() for name in names])
        for name in names:
            other = got.grads.get(name)
            value = want.grads[name].float()
            errors.append((value - other.float()).norm() if other is not None else value.norm())
        errors = torch.stack(errors)
        total = norms.norm()
        each = errors / norms.clamp(min=1e-3 * total)
        order = each.nan_to_num(1e9).argsort(descending=True)[:4].tolist()
        return {"loss": got.loss, "gradient": (errors.norm() / total).item(), "norm": total.item(),
                "worst": [[names[i], each[i].item(), norms[i].item() / total.item()] for i in order],
                "missing": [name for name in names if name not in got.grads][:5]}

    def find_reference(self):
        """Gradients in f32, or those of bf16 where the model does not take that."""
        with self.part("bf16") as record:
            own = self.get_gradients(self.model, self.model, self.inputs)
            self.want = own
            try:
                exact = copy.deepcopy(self.model).float()
                torch.set_float32_matmul_precision("high")  # TF32's errors are a hundredth of bf16's noise.
                self.want = self.get_gradients(exact, exact, to(self.inputs, torch.float32))
            except Exception as error:
                record["no f32"] = f"{type(error).__name__}: {error}"[:300]
            torch.set_float32_matmul_precision("highest")
            record.update(self.compare(own, self.want))
            self.measure(lambda: self.step(self.model, self.model, self.inputs), record)
            for each in self.model.parameters():
                each.grad = None

    def train(self, name, convert):
        """What `convert`, a function of the model, makes of training."""
        with self.part(name) as record:
            model = copy.deepcopy(self.model)
            for each in model.parameters():
                each.grad = None
            before, start = self.get_bytes(), time.perf_counter()
            call, describe = convert(model)
            got = self.get_gradients(model, call, self.inputs)
            record["first call s"] = time.perf_counter() - start
            if hasattr(self, "want"):
                record.update(self.compare(got, self.want))
            del got
            describe(record)
            self.write(self.record)
            self.measure(lambda: self.step(model, call, self.inputs), record)
            for each in model.parameters():
                each.grad = None
            record["held MB"] = (self.get_bytes() - before) / 2**20

    def convert(self, compiled=False):
        import fp8.torch

        def convert(model):
            options = {"opt_level": 0, "target": "cpu"} if self.arguments.small else {}
            fp8.torch.convert_to_fp8_training(model, self.arguments.recipe, **options)

            def describe(record):
                record["summary"] = str(fp8.torch.summarize(model))[-3000:]
            return torch.compile(model, backend="aot_eager" if self.arguments.small else "inductor") if compiled else model, describe
        return convert

    def use_backend(self, model):
        import fp8.torch
        options = {"opt_level": 0, "target": "cpu", "rest": "eager"} if self.arguments.small else {}
        backend = fp8.torch.Backend(self.arguments.backend, **options)

        def describe(record):
            kinds = [remark.kind for remark in backend.remarks]
            record.update({"fp8": kinds.count("fp8"), "products": len(kinds), "left": list(dict.fromkeys(map(str, backend.left)))[:30],
                           "breaks": str(backend.breaks)[:1500], "parts": len(backend.parts),
                           "reasons": collections.Counter(remark.reason[:200] for remark in backend.remarks if remark.kind != "fp8")})
        return torch.compile(model, backend=backend), describe

    def get_shapes(self):
        shapes = {"all": self.inputs}
        # Pairs of sentences are no fewer than two.
        if set(self.inputs) <= {"input_ids", "labels", "attention_mask"} and type(self.model).__name__ != "Pairs":
            for label, (batch, length) in {"1x1": (1, 1), "3x7": (3, 7)}.items():
                shapes[label] = {key: value[:batch, :length].contiguous() for key, value in self.inputs.items()}
        return {label: {key: value for key, value in each.items() if key not in ("labels", "future_values")}
                if not hasattr(self.model, "keeps_f32") and type(self.model).__name__ != "Classifier" else each for label, each in shapes.items()}

    def generate(self, model, tokens=TOKENS, **options):
        names = "input_ids", "pixel_values", "attention_mask", "image_grid_thw", "mm_token_type_ids"
        length = None if "pixel_values" in self.inputs else 64
        inputs = {key: value[:1, :length] if key in ("input_ids", "attention_mask", "mm_token_type_ids") else value for key, value in self.inputs.items() if key in names}
        if "image_grid_thw" in inputs:
            grid = inputs["image_grid_thw"]
            inputs.update(image_grid_thw=grid[:1], pixel_values=inputs["pixel_values"][:grid[0].prod()])
        with torch.inference_mode():
            return model.generate(**inputs, max_new_tokens=tokens, min_new_tokens=tokens, do_sample=False, **options).tolist()

    def find_ways(self, model):
        """Options of generate that the model takes."""
        ways, found = {}, {}
        if hasattr(model, "generate") and getattr(model, "can_generate", lambda: True)():
            ways = {"dynamic": {}, "static": {"cache_implementation": "static", "disable_compile": True}}
            if self.arguments.static_graphs:
                ways["compiled static"] = {"cache_implementation": "static"}
        for way, options in ways.items():
            with contextlib.suppress(Exception):
                found[way] = options, self.generate(model, **options)
        return found

    def infer(self):
        import fp8.torch
        with self.part("inference") as record:
            model = copy.deepcopy(self.model).eval()
            shapes = self.get_shapes()
            wants, noise = {}, {}
            with torch.inference_mode():
                for label, each in shapes.items():
                    with contextlib.suppress(Exception):
                        wants[label] = list_tensors(model(**each))
                with contextlib.suppress(Exception):
                    exact = copy.deepcopy(model).float()
                    noise = list_tensors(exact(**to(self.inputs if shapes["all"] is self.inputs else shapes["all"], torch.float32)))
                    exact = None
                self.measure(lambda: model(**shapes["all"]), record, "bf16 ")
            if noise:
                record["noise"] = unseen_gpu.get_errors(wants["all"], noise)
            ways = self.find_ways(model)
            timed = set(ways) & {"dynamic", "compiled static"}
            for way in timed:
                self.time_tokens(record, f"bf16 {way}", model, ways[way][0])
            fp8.torch.quantize_for_inference(model, self.arguments.inference)
            record["report"] = str(fp8.torch.report(model))[-2500:]
            with torch.inference_mode():
                record["errors"] = {label: unseen_gpu.get_errors(list_tensors(model(**shapes[label])), want) for label, want in wants.items()}
                self.measure(lambda: model(**shapes["all"]), record)
            for way, (options, want) in ways.items():
                got = self.generate(model, **options)
                pairs = [a == b for one, other in zip(got, want) for a, b in zip(one[-TOKENS:], other[-TOKENS:])]
                record[f"same {way}"] = sum(pairs) / len(pairs)
                if way in timed:
                    self.time_tokens(record, way, model, options)

    def time_tokens(self, record, way, model, options):
        """Milliseconds of a token: the least of several runs, since the host is the limit and others are on it."""
        self.generate(model, **options)
        runs = []
        with self.turn():
            for _ in range(5):
                start, host = time.perf_counter(), time.process_time()
                self.generate(model, **options)
                runs.append((time.perf_counter() - start, time.process_time() - host))
        for name, times in zip(("token ms", "token host ms"), zip(*runs)):
            record[f"{way} {name}"] = 1e3 * min(times) / TOKENS

    def infer_compiled(self, name, quantize):
        with self.part(name) as record:
            model = copy.deepcopy(self.model).eval()
            inputs = self.get_shapes()["all"]
            with torch.inference_mode():
                want = list_tensors(model(**inputs))
                if quantize:
                    import fp8.torch
                    fp8.torch.quantize_for_inference(model, self.arguments.inference)
                call = torch.compile(model, backend="aot_eager" if self.arguments.small else "inductor")
                record["errors"] = {"all": unseen_gpu.get_errors(list_tensors(call(**inputs)), want)}
                self.measure(lambda: call(**inputs), record)


def run_one(name, part, arguments, lock, write):
    run = Run(name, arguments, lock, write)
    compiler = "aot_eager" if arguments.small else "inductor"
    if part == "ours":
        run.find_reference()
        ways = {"layers": lambda: run.train("layers", run.convert()), "inference": run.infer,
                "backend": lambda: run.train("backend", run.use_backend)}
        for way in arguments.ways:
            ways[way]()
    elif part == "peers":
        run.find_reference()
        run.train("inductor", lambda model: (torch.compile(model, backend=compiler), lambda record: None))
        run.infer_compiled("inductor inference", False)
    else:
        run.find_reference()
        run.train("layers in graphs", run.convert(True))
        run.infer_compiled("compiled inference", True)
    return run.record


class Pool(unseen_gpu.Pool):
    """Children that write what they have as they go."""

    def start(self, unit):
        path = os.path.join(self.folder, ".".join(unit))
        sys.stdout.flush()
        child = os.fork()
        if child == 0:
            os.dup2(os.open(path + ".log", os.O_WRONLY | os.O_CREAT), 2)
            os.dup2(2, 1)
            if not self.can_fork:
                os.execv(sys.executable, [sys.executable, __file__, *sys.argv[1:], "--child", *unit, path, self.lock.path])
            run_child(*unit, path, self.lock, self.arguments)
            os._exit(0)
        self.children[child] = [unit, path, time.monotonic()]

    @staticmethod
    def read(path, status):
        record = {}
        with contextlib.suppress(FileNotFoundError, ValueError):
            with open(path) as file:
                record = json.load(file)
        if status != 0:
            with open(path + ".log", errors="replace") as file:
                text = file.read()[-1500:]
            record["ended"] = ("took too long" if status is None else f"exit {os.waitstatus_to_exitcode(status)}") + "\n" + text
        return record


def run_child(name, part, path, lock, arguments):
    def write(record):
        with open(path + ".new", "w") as file:
            json.dump(record, file)
        os.replace(path + ".new", path)

    torch.set_num_threads(1)
    start = time.perf_counter()
    try:
        record = run_one(name, part, arguments, lock, write)
    except Exception as error:
        record = {"error": "".join(traceback.format_exception(error))[-3500:]}
    record["seconds"] = time.perf_counter() - start
    write(record)


def describe(record):
    """A line for each way of a model's."""
    if "error" in record:
        return ["ERROR " + record["error"].strip().splitlines()[-1][:200]]
    lines = []
    for way, found in record.items():
        if not isinstance(found, dict):
            continue
        numbers = [f"{way:18}"]
        for key, label in (("loss", "loss"), ("gradient", "gradient"), ("ms", "ms"), ("host ms", "host"), ("bf16 ms", "bf16"), ("bf16 host ms", "host"), ("added MB", "MB"), ("held MB", "held"), ("bf16 added MB", "bf16 MB"), ("noise", "noise"),
                           ("dynamic token ms", "token"), ("bf16 dynamic token ms", "bf16"), ("same dynamic", "same"), ("static token ms", "static"), ("bf16 static token ms", "bf16"), ("same static", "same"), ("compiled static token ms", "compiled"), ("bf16 compiled static token ms", "bf16"), ("same compiled static", "same"), ("first call s", "first")):
            if key in found:
                numbers.append(f"{label} {found[key]:.4g}")
        numbers += [f"{label} {error:.3g}" for label, error in found.get("errors", {}).items()]
        if "fp8" in found:
            numbers.append(f"fp8 {found['fp8']}/{found['products']}")
        if found.get("worst"):
            numbers.append(f"worst {found['worst'][0][0]} {found['worst'][0][1]:.3g} of {found['worst'][0][2]:.2g}")
        if found.get("missing"):
            numbers.append(f"MISSING {found['missing']}")
        if "error" in found:
            numbers.append("ERROR " + found["error"].strip().splitlines()[-1][:300])
        lines.append(" ".join(numbers))
    if "ended" in record:
        lines.append("ENDED " + " ".join(record["ended"].split())[:300])
    return lines


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--models", nargs="*", default=list(found_models.MODELS), choices=list(found_models.MODELS))
    parser.add_argument("--parts", nargs="*", default=list(PARTS), choices=PARTS)
    parser.add_argument("--ways", nargs="*", default=list(OURS), choices=OURS, help="of the part `ours`")
    parser.add_argument("--recipe", default="delayed", help="of layers")
    parser.add_argument("--backend", default="delayed", help="the recipe of torch.compile's backend")
    parser.add_argument("--inference", default="rowwise", help="the recipe of quantize_for_inference")
    parser.add_argument("--jobs", type=int, default=16)
    parser.add_argument("--end", type=float, default=86400, help="seconds after which all are ended")
    parser.add_argument("--limit", type=float, default=600, help="seconds of one")
    parser.add_argument("--small", action="store_true")
    parser.add_argument("--static-graphs", action="store_true", help="generate with transformers' compiled static cache, too")
    parser.add_argument("--out")
    parser.add_argument("--child", nargs=4, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    import fp8.torch  # noqa: F401  What is imported here no child imports.
    import transformers  # noqa: F401
    if arguments.child:
        name, part, path, lock = arguments.child
        run_child(name, part, path, unseen_gpu.Lock(lock), arguments)
        return 0
    units = [(name, part) for part in arguments.parts for name in arguments.models]
    pool, records, start = Pool(arguments), {}, time.monotonic()
    while units or pool.children:
        while units and len(pool.children) < arguments.jobs and not pool.stopped and time.monotonic() - start < arguments.end:
            pool.start(units.pop(0))
        if not pool.children:
            break
        if time.monotonic() - start > arguments.end:
            arguments.limit = 0
        for (name, part), record in pool.look():
            records.setdefault(name, {})[part] = record
            for line in describe(record):
                print(f"{time.monotonic() - start:6.1f} {name:16} {line}", flush=True)
            if arguments.out:
                with open(arguments.out, "w") as file:
                    json.dump(records, file, indent=1)
        time.sleep(0.01)
    return 0


if __name__ == "__main__":
    sys.exit(main())
