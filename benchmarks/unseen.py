"""Models that nobody here has tuned anything for, in FP8 beside what they are without: do they run, and are they right?

On the CPU, each in a process of its own: three steps of training or inference with tiny random weights. A way is `layers:RECIPE`
(convert_to_fp8_training), `backend:RECIPE` (torch.compile), `inference:RECIPE` (quantize_for_inference, results and generated
tokens), or `compiled:RECIPE` (the same within torch.compile). What differs by more than roundings of FP8 is shown beside how far
bf16 is from f32. It ends with 1 where one crashes, hangs or differs.

usage: unseen.py [--models GLOBS] [--ways NAMES] [--odd] [--seconds S] [--out FILE] [--list]
"""

import argparse
import collections
import contextlib
import copy
import fnmatch
import json
import math
import os
import signal
import sys
import time
import traceback
import warnings

import torch

WAYS = "layers:current", "backend:current", "inference:rowwise", "compiled:rowwise"
STEPS, TOKENS = 3, 5
# Errors of FP8 in results: a step, and what a model makes of it where it divides small numbers or routes.
LOSS, NORM, RESULT = 0.03, 0.1, 0.12


def make(name, is_odd):
    import unseen_models
    import unseen_others
    if name in unseen_models.MODELS:
        return unseen_models.make(name, is_odd)
    return unseen_others.make(name, is_odd)


def list_models():
    import unseen_models
    import unseen_others
    return [*unseen_models.MODELS, *unseen_others.MODELS]


def make_running(name, is_odd):
    """The model in bf16 or, where its own operations do not take that, in f32; None with an error if it does not run at all."""
    error = None
    for dtype in (torch.bfloat16, torch.float32):
        try:
            model, inputs = make(name, is_odd)
            cast_inputs = to(inputs, dtype)
            get_loss(model.to(dtype)(**cast_inputs)).backward()
            return make_again(name, is_odd, dtype), None
        except Exception as failure:
            error = error or failure
    return None, f"{type(error).__name__}: {error}".partition("\n")[0][:160]


def make_again(name, is_odd, dtype):
    model, inputs = make(name, is_odd)
    return model.to(dtype), to(inputs, dtype)


def to(inputs, dtype):
    return {key: value.to(dtype) if isinstance(value, torch.Tensor) and value.is_floating_point() else value
            for key, value in inputs.items()}


def list_tensors(results):
    """Those of floats of what a model returns, with names."""
    if isinstance(results, torch.Tensor):
        return {"": results} if results.is_floating_point() else {}
    items = results.items() if hasattr(results, "items") else enumerate(results) if isinstance(results, (list, tuple)) else ()
    return {f"{key}.{name}": value for key, each in items if "cache" not in str(key) and "past_key" not in str(key)
            for name, value in list_tensors(each).items()}


def get_loss(results):
    loss = getattr(results, "loss", None)
    if loss is not None:
        return loss
    return sum(each.float().square().mean() for each in list_tensors(results).values())


def train(model, inputs, convert):
    """Losses of steps, and the norm of the first gradients."""
    call = convert(model)
    parameters = [each for each in model.parameters() if each.requires_grad]
    optimizer = torch.optim.AdamW(parameters, lr=1e-3)
    losses, norms = [], []
    for _ in range(STEPS):
        torch.manual_seed(1)
        loss = get_loss(call(**inputs))
        loss.backward()
        norms.append(math.sqrt(sum(each.grad.float().square().sum().item() for each in parameters if each.grad is not None)))
        optimizer.step()
        optimizer.zero_grad()
        losses.append(loss.item())
    return losses, norms[0]


def convert_layers(recipe):
    def convert(model):
        import fp8.torch
        fp8.torch.convert_to_fp8_training(model, recipe, target="cpu", opt_level=0, first_last_bf16=0)
        return model
    return convert, lambda: {}


def use_backend(recipe):
    import fp8.torch
    backend = fp8.torch.Backend(recipe, target="cpu", rest="eager", opt_level=0)

    def describe():
        kinds = collections.Counter(remark.kind for remark in backend.remarks)
        reasons = collections.Counter(remark.reason for remark in backend.remarks if remark.kind != "fp8")
        return {"kinds": kinds, "reasons": reasons}
    return lambda model: torch.compile(model, backend=backend), describe


def compare_training(name, kind, recipe, model_inputs, is_odd):
    model, inputs = model_inputs
    dtype = next(each.dtype for each in model.parameters() if each.is_floating_point())
    want = train(*make_again(name, is_odd, dtype), lambda model: model)
    exact = train(*make_again(name, is_odd, torch.float32), lambda model: model)
    convert, describe = (convert_layers if kind == "layers" else use_backend)(recipe)
    got = train(model, inputs, convert)
    noise = max(abs(b - a) / (abs(a) + 1e-6) for a, b in zip(exact[0], want[0]))
    worst = max(abs(b - a) / (abs(a) + 1e-6) for a, b in zip(want[0], got[0]))
    norm = abs(got[1] - want[1]) / (want[1] + 1e-6)
    return {"error": worst, "norm": norm, "noise": noise, "is_right": bool(worst < LOSS + 3 * noise and norm < NORM + 3 * noise),
            "losses": [want[0], got[0]], **describe()}


def generate(model, inputs, **options):
    names = {"input_ids", "pixel_values", "input_features", "attention_mask", "image_sizes"}
    with torch.inference_mode():
        return model.generate(**{key: value for key, value in inputs.items() if key in names}, max_new_tokens=TOKENS,
                              min_new_tokens=TOKENS, do_sample=False, **options).tolist()


def find_generated(model, inputs):
    """Ways in which the model generates at all, and what."""
    found = {}
    if hasattr(model, "generate") and getattr(model, "can_generate", lambda: True)():
        for cache in ("dynamic", "static"):
            with contextlib.suppress(Exception):
                found[cache] = generate(model, inputs, **({"cache_implementation": "static"} if cache == "static" else {}))
    return found


def compare_inference(name, kind, recipe, model_inputs, is_odd):
    import fp8.torch
    model, inputs = model_inputs
    model.eval()
    keeps = {key: value for key, value in inputs.items() if key != "labels" or "decoder_start_token_id" in str(
        getattr(model, "config", "")) and getattr(model.config, "is_encoder_decoder", False)}
    exact = copy.deepcopy(model).float()
    with torch.inference_mode():
        want, truth = list_tensors(model(**keeps)), list_tensors(exact(**to(keeps, torch.float32)))
    generated = find_generated(model, keeps)
    fp8.torch.quantize_for_inference(model, recipe)
    call = model
    if kind == "compiled":
        call = torch.compile(model, backend="fp8", options={"rest": "eager"})
    with torch.inference_mode():
        got = list_tensors(call(**keeps))
        again = list_tensors(call(**keeps))
    errors = {}
    for key, value in want.items():
        scale = truth[key].float().norm() + 1e-6
        errors[key] = ((got[key].float() - value.float()).norm() / scale).item()
        if not torch.equal(got[key].nan_to_num(), again[key].nan_to_num()):
            errors[key] = math.inf
    noise = max((((want[key].float() - truth[key].float()).norm() / (truth[key].float().norm() + 1e-6)).item() for key in want),
                default=0)
    same = {}
    for cache, tokens in generated.items():
        torch._dynamo.reset()
        options = {} if cache == "dynamic" else {"cache_implementation": "static"}
        if kind == "compiled" and cache == "static":
            options["compile_config"] = make_compile_config()
        found = generate(model, keeps, **options)
        pairs = [a == b for one, other in zip(found, tokens) for a, b in zip(one, other)]
        same[cache] = sum(pairs) / max(len(pairs), 1)
    worst = max(errors.values(), default=0)
    return {"error": worst, "noise": noise, "generated": same, "is_right": bool(worst < RESULT + 3 * noise)}


def make_compile_config():
    import transformers
    return transformers.CompileConfig(backend="fp8", mode="default", fullgraph=False, options={"rest": "eager"})


def run_one(name, way, is_odd):
    """What a process says of one model in one way."""
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    kind, _, recipe = way.partition(":")
    found, reason = make_running(name, is_odd)
    if found is None:
        return {"own": reason}
    compare = compare_training if kind in ("layers", "backend") else compare_inference
    import fp8
    try:
        return compare(name, kind, recipe, found, is_odd)
    except fp8.Error as error:
        return {"refused": f"{type(error).__name__}: {error}"[:400]}
    except Exception as error:
        return {"crash": "".join(traceback.format_exception(error))[-2500:]}


def run_apart(name, way, is_odd, seconds, run=run_one):
    """The same of a child, which may crash or take too long. It has what was imported already."""
    receiver, sender = os.pipe()
    sys.stdout.flush()
    child = os.fork()
    if child == 0:
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.alarm(int(seconds))
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
        os.dup2(2, 1)
        with os.fdopen(sender, "w") as file:
            json.dump(run(name, way, is_odd), file)
        os._exit(0)
    os.close(sender)
    start = time.perf_counter()
    with os.fdopen(receiver) as file:
        text = file.read()
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    if status == -signal.SIGALRM:
        return {"hang": f"more than {seconds} s"}
    if status or not text:
        return {"crash": f"exit {status}"}
    return {**json.loads(text), "seconds": time.perf_counter() - start}


def describe(record):
    for kind in ("own", "refused", "crash", "hang"):
        if kind in record:
            return kind, record[kind].strip().splitlines()[-1][:150] if kind == "crash" else record[kind][:150]
    numbers = " ".join(f"{key} {record[key]:.3g}" for key in ("error", "norm", "noise") if key in record)
    numbers += f" drawn {record['drawn'][0]:.3g} to {record['drawn'][-1]:.3g}" if record.get("drawn") else ""
    tokens = "".join(f" {cache} {part:.2f}" for cache, part in record.get("generated", {}).items())
    return ("right" if record["is_right"] else "WRONG"), numbers + tokens


def run_all(names, arguments, run=run_one, ends=lambda way, kind, text: False):
    """Prints and keeps what models do in ways, and returns 1 if one crashes, hangs or differs. Where it `ends`, a model is left."""
    # Children have one thread each, and what is imported here.
    torch.set_num_threads(1)
    import fp8.torch  # noqa: F401
    records, counts = {}, collections.defaultdict(collections.Counter)
    for name in names:
        for way in arguments.ways.split(","):
            record = records[f"{name} {way}"] = run_apart(name, way, getattr(arguments, "odd", False), arguments.seconds, run)
            kind, text = describe(record)
            counts[way][kind] += 1
            print(f"{name:28} {way:26} {kind:8} {text}", flush=True)
            if arguments.out:
                with open(arguments.out, "w") as file:
                    json.dump(records, file, indent=1)
            if ends(way, kind, text):
                break
    for way, found in counts.items():
        print(f"{way}: " + ", ".join(f"{count} {kind}" for kind, count in found.items()))
    return int(any(found[kind] for found in counts.values() for kind in ("crash", "hang", "WRONG")))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--models", default="*")
    parser.add_argument("--ways", default=",".join(WAYS))
    parser.add_argument("--odd", action="store_true")
    parser.add_argument("--seconds", type=float, default=300)
    parser.add_argument("--out")
    parser.add_argument("--list", action="store_true")
    arguments = parser.parse_args()
    names = [name for name in list_models() if any(fnmatch.fnmatch(name, each) for each in arguments.models.split(","))]
    if arguments.list:
        print(*names)
        return 0
    return run_all(names, arguments)

if __name__ == "__main__":
    sys.exit(main())
