"""Models that nobody here has tuned anything for, on a GPU: right, and how fast beside PyTorch in bf16?

The models are those of unseen_models.py, some layers of a real width. Each way is a process: `inference:RECIPE` has results and
generated tokens after quantize_for_inference beside bf16 of the same process, also of one row and of an odd batch, `dynamic:RECIPE`
the same in torch.compile. `layers:RECIPE` is convert_to_fp8_training in torch.compile, `backend:RECIPE` torch.compile's backend,
`changes:RECIPE` that with batches of several sizes, and `inductor` bf16 by itself, with eager mode.
Processes compile side by side; while one of them is timed, the others are stopped. Training is forward, backward and a fused AdamW.

usage: unseen_gpu.py [--models NAMES] [--ways NAMES] [--units MODEL=WAY ...] [--jobs N] [--seconds S] [--end S] [--limit S] [--small] [--out FILE]
"""

import argparse
import contextlib
import fcntl
import functools
import json
import math
import os
import signal
import statistics
import sys
import tempfile
import time
import traceback
import warnings

import torch
import torch._dynamo
import torch._inductor.compile_fx
import unseen_models
from unseen import find_generated, generate, get_loss, list_tensors, to

# Drawn at random from those that no list of ours had timed: the first ten of random.Random(20261129)'s order, and one of images.
NAMES = ("granitemoe", "camembert", "hunyuan", "cohere", "mamba2", "nemotron", "plbart", "doge", "bitnet", "ctrl", "vit_msn",
         # The first of random.Random(20261130) of those that were left and take these sizes.
         "gpt_bigcode", "marian", "distilbert", "bigbird", "vaultgemma")
WARM_UP, ROUNDS, STEPS = 3, 5, 4


class Sizes(unseen_models.Sizes):
    """Those of a GPU, or small ones to try the script itself."""

    def __init__(self, small):
        super().__init__()
        self.is_small = small
        if not small:
            self.width, self.wide, self.heads, self.words = 2048, 8192, 16, 8192
            self.batch, self.length, self.layers = 4, 1024, 2

    def pick(self, small, large):
        return small if self.is_small else large


def _wide(sizes):
    return sizes.wide


# What unseen_models has as numbers of small models.
OTHERS = {
    "plbart": {"encoder_ffn_dim": _wide, "decoder_ffn_dim": _wide}, "ctrl": {"dff": _wide},
    "marian": {"encoder_ffn_dim": _wide, "decoder_ffn_dim": _wide}, "distilbert": {"hidden_dim": _wide, "max_position_embeddings": lambda sizes: sizes.pick(64, 2048)},
    "gpt_bigcode": {"n_positions": lambda sizes: sizes.pick(64, 2048)},
    "mamba2": {"hidden_size": lambda sizes: sizes.width, "state_size": lambda sizes: sizes.pick(8, 128),
               "num_heads": lambda sizes: sizes.pick(4, 64), "head_dim": lambda sizes: sizes.pick(32, 64),
               "chunk_size": lambda sizes: sizes.pick(16, 256)},
    "vit_msn": {"image_size": lambda sizes: sizes.pick(32, 256), "patch_size": lambda sizes: sizes.pick(8, 16)},
}


def make(name, sizes, device, batch=None, length=None):
    """A model in bf16 and its inputs, the same ones each time."""
    sizes.batch, sizes.length = batch or sizes.batch, length or sizes.length
    made = unseen_models.MODELS[name]
    names = {"max_position_embeddings": lambda sizes: sizes.pick(64, 2048), "num_key_value_heads": None, **OTHERS.get(name, {})}
    if isinstance(made, functools.partial) and len(made.args) == 4:
        config, model, inputs, get = made.args

        def get_all(sizes):
            found = get(sizes)
            for key, value in names.items():
                if value is not None and (key in found or key in OTHERS.get(name, {})):
                    found[key] = value(sizes)
            if found.get("num_key_value_heads") == 1:
                found["num_key_value_heads"] = max(1, sizes.heads // 4)
            return found
        if name == "vit_msn":
            inputs = functools.partial(unseen_models.Sizes.get_images, size=sizes.pick(32, 256))
            sizes.batch = batch or sizes.pick(2, 16)
        made = functools.partial(unseen_models._make, config, model, inputs, get_all)
    elif name == "ctrl" and not sizes.is_small:
        made = _make_ctrl
    torch.manual_seed(0)
    with torch.device(device):
        model, inputs = made(sizes)
    model = unseen_models.drop_nothing(model.bfloat16().train()).to(device)
    return model, {key: value.to(device) if isinstance(value, torch.Tensor) else value for key, value in inputs.items()}


def _make_ctrl(sizes):
    import transformers
    config = transformers.CTRLConfig(vocab_size=sizes.words, n_embd=sizes.width, dff=sizes.wide, n_layer=sizes.layers,
                                     n_head=sizes.heads, n_positions=2048)
    return transformers.CTRLLMHeadModel(config), sizes.get_tokens()


def synchronize(device):
    if device == "cuda":
        torch.cuda.synchronize()


def get_median_ms(function, device, rounds=ROUNDS, steps=STEPS):
    function()
    synchronize(device)
    times = []
    for _ in range(rounds):
        start = time.perf_counter()
        for _ in range(steps):
            function()
        synchronize(device)
        times.append(1e3 * (time.perf_counter() - start) / steps)
    return statistics.median(times)


class Training:
    def __init__(self, model, inputs, call):
        self.model, self.inputs, self.call = model, inputs, call
        self.optimizer = torch.optim.AdamW([each for each in model.parameters() if each.requires_grad], lr=1e-4, fused=True)

    def step(self):
        self.optimizer.zero_grad(set_to_none=True)
        loss = get_loss(self.call(**self.inputs))
        loss.backward()
        self.optimizer.step()
        return loss

    def warm_up(self):
        losses = [self.step().item()]
        norm = math.sqrt(sum(each.grad.float().square().sum().item() for each in self.model.parameters() if each.grad is not None))
        return {"losses": losses + [self.step().item() for _ in range(WARM_UP)], "norm": norm}


def train(name, kind, recipe, sizes, device, turn):
    model, inputs = make(name, sizes, device)
    record, backend, call = {}, None, model
    if kind == "layers":
        import fp8.torch
        fp8.torch.convert_to_fp8_training(model, recipe)
        call = torch.compile(model)
    elif kind == "backend":
        import fp8.torch
        backend = fp8.torch.Backend(recipe, target="cpu" if device == "cpu" else "auto")
        call = torch.compile(model, backend=backend)
    elif kind == "inductor":
        eager = Training(model, inputs, model)
        record["eager"] = eager.warm_up()
        with turn():
            record["eager"]["ms"] = get_median_ms(eager.step, device)
        del eager
        model, inputs = make(name, sizes, device)
        call = torch.compile(model)
    training = Training(model, inputs, call)
    start = time.perf_counter()
    record.update(training.warm_up())
    record["first calls s"] = time.perf_counter() - start
    with turn():
        record["ms"] = get_median_ms(training.step, device)
    if device == "cuda":
        record["peak MB"] = torch.cuda.max_memory_allocated() / 2**20
    if backend is not None:
        kinds = [remark.kind for remark in backend.remarks]
        record.update({"fp8": kinds.count("fp8"), "products": len(kinds),
                       "reasons": sorted({remark.reason[:150] for remark in backend.remarks if remark.kind != "fp8"})})
    elif kind == "layers":
        text = str(fp8.torch.summarize(model))
        record["summary"] = text[-1500:]
    return record


def cut(inputs, batch, length):
    # Contiguous, as batches are: losses of transformers view labels as one row.
    return {key: (value[:batch, :length] if value.ndim == 2 else value[:batch]).contiguous() for key, value in inputs.items()}


def get_shapes(inputs, length):
    sizes = {"1x1": (1, 1), "3x7": (3, 7), "1": (1, length)}
    return {"all": inputs, **{label: cut(inputs, *each) for label, each in sizes.items()}}


def change(name, recipe, sizes, device):
    """Losses and norms of gradients of batches of other sizes, by one backend, beside those of eager mode."""
    import fp8.torch
    model, inputs = make(name, sizes, device)
    call = torch.compile(model, backend=fp8.torch.Backend(recipe, target="cpu" if device == "cpu" else "auto"))
    record = {"changes": {}}
    for label, each in get_shapes(inputs, sizes.length).items():
        found = []
        for step in (model, call):
            try:
                model.zero_grad()
                loss = get_loss(step(**each))
                loss.backward()
                found += [loss.item(), math.sqrt(sum(p.grad.float().square().sum().item() for p in model.parameters()
                                                     if p.grad is not None))]
            except Exception as error:
                found.append(f"{type(error).__name__}: {error}"[:1500])
        record["changes"][label] = found
    return record


def get_errors(got, want):
    return max((((got[key].float() - value.float()).norm() / (value.float().norm() + 1e-6)).item() for key, value in want.items()),
               default=0.0)


def infer(name, kind, recipe, sizes, device, turn):
    """Errors and times of a quantized model beside those that it has in bf16."""
    import fp8.torch
    record = {}
    model, inputs = make(name, sizes, device)
    model.eval()
    pair = hasattr(model, "config") and getattr(model.config, "is_encoder_decoder", False)
    keep = lambda inputs: {key: value for key, value in inputs.items() if key != "labels" or pair}  # noqa: E731
    shapes = get_shapes(inputs, sizes.length)
    wants, own = {}, {}
    with torch.inference_mode():
        for label, each in shapes.items():
            try:
                wants[label] = list_tensors(model(**keep(each)))
            except Exception as error:
                own[label] = f"{type(error).__name__}: {error}"[:200]
    prompt = cut(inputs, 1, 16)
    tokens = find_generated(model, keep(prompt)).get("dynamic")
    with torch.inference_mode(), turn():
        record["bf16 ms"] = get_median_ms(lambda: model(**keep(inputs)), device)
        if tokens is not None:
            record["bf16 generate ms"] = get_median_ms(lambda: generate(model, keep(prompt)), device, 3, 1)
    fp8.torch.quantize_for_inference(model, recipe)
    call = torch.compile(model, dynamic=True) if kind == "dynamic" else model
    with torch.inference_mode():
        record["errors"] = {label: get_errors(list_tensors(call(**keep(shapes[label]))), want) for label, want in wants.items()}
    if tokens is not None:
        found = generate(model, keep(prompt))
        pairs = [a == b for one, other in zip(found, tokens) for a, b in zip(one, other)]
        record["same tokens"] = sum(pairs) / len(pairs)
    with torch.inference_mode(), turn():
        record["ms"] = get_median_ms(lambda: call(**keep(inputs)), device)
        if tokens is not None:
            record["generate ms"] = get_median_ms(lambda: generate(model, keep(prompt)), device, 3, 1)
    noisy, inputs = make(name, sizes, device)
    with torch.inference_mode():
        noisy = noisy.float().eval()
        truth = list_tensors(noisy(**keep(to(shapes["all"], torch.float32))))
    record["noise"] = get_errors(wants["all"], truth)
    record["own errors"] = own
    return record


class Lock:
    """What one process at a time holds, in a file."""

    def __init__(self, path):
        self.path = path

    @contextlib.contextmanager
    def __call__(self):
        # The parent stops all other children until the lock is free again.
        with open(self.path, "w") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            with open(self.path + ".holder", "w") as holder:
                holder.write(str(os.getpid()))
            time.sleep(0.05)
            try:
                yield
            finally:
                os.unlink(self.path + ".holder")


def run_one(name, way, arguments, lock):
    warnings.simplefilter("ignore")
    device = "cpu" if arguments.small else "cuda"
    kind, _, recipe = way.partition(":")
    sizes = Sizes(arguments.small)
    start = time.perf_counter()
    try:
        record = (infer(name, kind, recipe, sizes, device, lock) if kind in ("inference", "dynamic") else
                  change(name, recipe, sizes, device) if kind == "changes" else train(name, kind, recipe, sizes, device, lock))
    except Exception as error:
        record = {"error": "".join(traceback.format_exception(error))[-3000:]}
    record["seconds"] = time.perf_counter() - start
    return record


def run_child(name, way, path, lock, arguments):
    record = run_one(name, way, arguments, lock)
    with open(path, "w") as file:
        json.dump(record, file)


def can_use_gpu_after_fork():
    """Whether nothing that was imported has initialized CUDA, which a child could not use then."""
    child = os.fork()
    if child == 0:
        with contextlib.suppress(Exception):
            torch.ones(1, device="cuda").sum().item()
            os._exit(0)
        os._exit(1)
    return os.waitpid(child, 0)[1] == 0


class Pool:
    """Children that run side by side, all but the holder of the lock stopped while there is one."""

    def __init__(self, arguments):
        self.arguments, self.children, self.stopped = arguments, {}, set()
        self.seen = time.monotonic()
        self.folder = tempfile.mkdtemp()
        self.lock = Lock(os.path.join(self.folder, "lock"))
        self.can_fork = arguments.small or can_use_gpu_after_fork()

    def start(self, unit):
        path = os.path.join(self.folder, f"{unit[0]}.{unit[1].replace(':', '_')}")
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

    def look(self):
        """Stops and continues children, and yields those that have ended."""
        # Children that others' measurements stop do not get slower by that.
        elapsed, self.seen = time.monotonic() - self.seen, time.monotonic()
        for child in self.stopped & self.children.keys():
            self.children[child][2] += elapsed
        try:
            with open(self.lock.path + ".holder") as file:
                holder = int(file.read() or 0)
        except (FileNotFoundError, ValueError):
            holder = 0
        if holder not in self.children:
            holder = 0
        for child in self.children:
            is_stopped = bool(holder) and child != holder
            if is_stopped != (child in self.stopped):
                os.kill(child, signal.SIGSTOP if is_stopped else signal.SIGCONT)
                (self.stopped.add if is_stopped else self.stopped.discard)(child)
        for child, (unit, path, start) in list(self.children.items()):
            ended, status = os.waitpid(child, os.WNOHANG)
            if not ended and time.monotonic() - start > self.arguments.limit:
                os.kill(child, signal.SIGKILL)
                os.kill(child, signal.SIGCONT)
                os.waitpid(child, 0)
                ended, status = child, None
            if ended:
                del self.children[child]
                self.stopped.discard(child)
                yield unit, self.read(path, status)

    @staticmethod
    def read(path, status):
        with contextlib.suppress(FileNotFoundError, ValueError):
            with open(path) as file:
                return json.load(file)
        with open(path + ".log", errors="replace") as file:
            text = file.read()[-1500:]
        return {"error": ("took too long" if status is None else f"exit {os.waitstatus_to_exitcode(status)}") + "\n" + text}


def describe(record, base):
    if "error" in record:
        return "ERROR " + record["error"].strip().splitlines()[-1][:140]
    if "changes" in record:
        return " ".join(f"{label} " + " ".join(each[:60] if isinstance(each, str) else f"{each:.4g}" for each in found)
                        for label, found in record["changes"].items())
    numbers = f"{record['ms']:9.2f} ms"
    if "errors" in record:
        numbers += f" bf16 {record['bf16 ms']:.2f} ratio {record['ms'] / record['bf16 ms']:.2f}"
        if "generate ms" in record:
            numbers += f" generate {record['generate ms'] / record['bf16 generate ms']:.2f} same {record['same tokens']:.2f}"
        return numbers + f" noise {record['noise']:.3g} errors " + " ".join(f"{k} {v:.3g}" for k, v in record["errors"].items())
    if base and "ms" in base:
        numbers += f" /inductor {record['ms'] / base['ms']:.2f} /eager {record['ms'] / base['eager']['ms']:.2f}"
        numbers += f" losses {record['losses'][0]:.4f} {record['losses'][-1]:.4f} beside {base['losses'][0]:.4f} {base['losses'][-1]:.4f}"
        numbers += f" norm {record['norm'] / base['norm']:.3f}"
    if "fp8" in record:
        numbers += f" fp8 {record['fp8']}/{record['products']}"
    return numbers


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--models", nargs="*", default=list(NAMES))
    parser.add_argument("--ways", nargs="*", default=["inductor", "inference:rowwise", "layers:delayed", "backend:delayed"])
    parser.add_argument("--units", nargs="*", default=[], help="model=way, in front of the others")
    parser.add_argument("--jobs", type=int, default=14)
    parser.add_argument("--seconds", type=float, default=86400, help="after which none is begun")
    parser.add_argument("--end", type=float, default=86400, help="seconds after which all are ended")
    parser.add_argument("--limit", type=float, default=300, help="seconds of one")
    parser.add_argument("--small", action="store_true")
    parser.add_argument("--out")
    parser.add_argument("--child", nargs=4, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    import fp8.torch  # noqa: F401  What is imported here no child imports.
    if arguments.child:
        name, way, path, lock = arguments.child
        run_child(name, way, path, Lock(lock), arguments)
        return 0
    units = [tuple(each.split("=")) for each in arguments.units]
    units += [(name, way) for way in arguments.ways for name in arguments.models if (name, way) not in units]
    pool, records, start = Pool(arguments), {}, time.monotonic()
    while units or pool.children:
        while units and len(pool.children) < arguments.jobs and not pool.stopped and time.monotonic() - start < arguments.seconds:
            pool.start(units.pop(0))
        if not pool.children:
            break
        if time.monotonic() - start > arguments.end:
            arguments.limit = 0
        for (name, way), record in pool.look():
            records.setdefault(name, {})[way] = record
            print(f"{time.monotonic() - start:6.1f} {name:14} {way:18} {describe(record, None)}", flush=True)
            if arguments.out:
                with open(arguments.out, "w") as file:
                    json.dump(records, file, indent=1)
        time.sleep(0.01)
    print("\nbeside Inductor and eager mode")
    for name, ways in records.items():
        for way, record in sorted(ways.items()):
            print(f"{name:14} {way:18} {describe(record, ways.get('inductor'))}")
    return int(any("error" in record for ways in records.values() for record in ways.values()))


if __name__ == "__main__":
    sys.exit(main())
