"""Models and ways that unseen.py does not have: what its libraries' lists name, trained as people train.

Models are all of transformers' lists for text, masked text, pairs and images that unseen_models.py has not, with small sizes under
the names that most configs have, and what makes no model that way is left out; beside them some of timm. Each is forward and backward with batches of
several sizes, and losses and gradients beside those of eager mode in the same type. A way is KIND:RECIPE, and what is said
behind it with `+`: `checkpoint` (as transformers does it), `amp` (f32 in torch.autocast), `dpa` (attention, too), `compile` (aot_eager),
`dynamic` (dynamic shapes), `optimizer` (fuse_optimizer), `codes` (parameters="fp8"), `float` (f32, without autocast). `lora:RECIPE` is peft on a
quantized base, and `inference:RECIPE` and `compiled:RECIPE` have results.

usage: unseen_ways.py [--models GLOBS] [--ways NAMES] [--seconds S] [--out FILE] [--list]
"""

import argparse
import collections
import contextlib
import copy
import fnmatch
import json
import math
import os
import sys
import traceback
import warnings

import fp8
import torch
import unseen_models
from unseen import get_loss, list_tensors, run_all, to

WAYS = ("layers:current+checkpoint", "layers:block+amp", "backend:rowwise+amp", "layers:mxfp8", "backend:nvfp4", "layers:current+dpa",
        "layers:delayed+compile", "backend:current+dynamic", "inference:rowwise", "lora:rowwise")
# What gradients of random models differ by in FP8, and in FP4.
LOSS, GRADIENT, RESULT = 0.03, {"nvfp4": 0.7}, {"nvfp4": 0.5}
DPA = {"current": fp8.Float8CurrentScaling, "delayed": fp8.DelayedScaling, "mxfp8": fp8.MXFP8BlockScaling, "block": fp8.Float8BlockScaling}
# A rounding to E4M3 is 32 of bf16's, of which a model that makes much of the latter makes as much.
SHARE = 12
# The root of the mean square of what E4M3 rounds away, relative to the value, and how often such numbers are drawn.
E4M3, DRAWS = 0.026, 6
MAX_PARAMETERS = 20_000_000
_LISTS = (("CAUSAL_LM", "get_tokens"), ("MASKED_LM", "get_tokens"), ("SEQ_TO_SEQ_CAUSAL_LM", "get_tokens"),
          ("IMAGE_CLASSIFICATION", "get_images"))
_OTHERS = {"num_key_value_heads": lambda sizes: sizes.heads, "num_experts": 4, "num_local_experts": 4, "n_routed_experts": 4,
           "num_experts_per_tok": 2, "moe_intermediate_size": 64, "image_size": 32, "patch_size": 8, "pad_token_id": 0}
TIMM = {"deit3_small_patch16_224": {"img_size": 32, "embed_dim": 48, "depth": 2, "num_heads": 3},
        "eva_giant_patch14_224": {"img_size": 28, "embed_dim": 48, "depth": 2, "num_heads": 3},
        "cait_xxs24_224": {"img_size": 32, "depth": 2}, "levit_128s": {"img_size": 224}, "pit_ti_224": {}, "gmixer_12_224": {"img_size": 32, "num_blocks": 2},
        "coat_tiny": {}, "beitv2_base_patch16_224": {"img_size": 32, "embed_dim": 48, "depth": 2, "num_heads": 3},
        "vit_relpos_small_patch16_224": {"img_size": 32, "embed_dim": 48, "depth": 2, "num_heads": 3},
        "volo_d1_224": {"img_size": 64, "layers": (1, 1, 1, 1), "embed_dims": (24, 48, 48, 48), "num_heads": (3, 3, 3, 3)}}


def list_models():
    """{name: (config, model, inputs)} of transformers, and None for timm's."""
    import transformers
    from transformers.models.auto import configuration_auto, modeling_auto
    known = {each.args[0] for each in unseen_models.MODELS.values() if isinstance(getattr(each, "args", [0])[0], str)}
    found = {}
    for kind, inputs in _LISTS:
        for key, model in getattr(modeling_auto, f"MODEL_FOR_{kind}_MAPPING_NAMES").items():
            config = configuration_auto.CONFIG_MAPPING_NAMES.get(key)
            model = model if isinstance(model, str) else model[0]
            if config and f"{config[:-6]}Config" not in known and hasattr(transformers, model):
                found.setdefault(f"{key}.{kind.lower().partition('_')[0]}", (config, model, inputs))
    return {**found, **{f"timm.{name}": None for name in TIMM}}


def make(name):
    torch.manual_seed(0)
    sizes = unseen_models.Sizes()
    made = list_models()[name]
    if made is None:
        import timm
        options = TIMM[name[5:]]
        model = timm.create_model(name[5:], pretrained=False, num_classes=8, **options)
        inputs = {"x": torch.randn(2, 3, *[options.get("img_size", 224)] * 2)}
    else:
        config, kind, inputs = made
        import transformers
        get = unseen_models._get(**_OTHERS)
        with contextlib.suppress(NotImplementedError), torch.device("meta"):
            count = sum(each.numel() for each in getattr(transformers, kind)(getattr(transformers, config)(**get(sizes))).parameters())
            if count > MAX_PARAMETERS:
                raise ValueError(f"{count} parameters")
        model, inputs = unseen_models._make(config, kind, lambda sizes: sizes.get_images(32) if inputs == "get_images" else
                                            sizes.get_tokens(), get, sizes)
    return unseen_models.drop_nothing(model.train()), inputs


def list_batches(inputs):
    """The batch, and what is left of it: one row, three tokens of one, and one."""
    batches = [inputs, {name: each[:1].contiguous() for name, each in inputs.items()}]
    if "input_ids" in inputs:
        batches += [{name: each[:1, :length].contiguous() for name, each in inputs.items()} for length in (3, 1)]
    return batches


def train(call, model, batches, amp):
    """[(loss, gradients by name)], or why the model does not take a batch."""
    found = []
    for batch in batches:
        model.zero_grad()
        torch.manual_seed(1)
        with torch.autocast("cpu", torch.bfloat16, enabled=amp):
            loss = get_loss(call(**batch))
        loss.backward()
        found.append((loss.item(), {name: each.grad.detach().float().clone() for name, each in model.named_parameters()
                                    if each.grad is not None}))
    return found


def find_batches(model, batches, amp):
    """Those that the model takes by itself."""
    taken = []
    for batch in batches:
        with contextlib.suppress(Exception):
            result = train(model, model, [batch], amp)[0]
            if math.isfinite(result[0]) and all(each.isfinite().all() for each in result[1].values()):
                taken.append(batch)
    return taken


def get_gradient_error(got, want):
    names = want[1].keys() & got[1].keys()
    total = math.sqrt(sum(each.square().sum().item() for each in want[1].values())) + 1e-9
    missing = sum(each.square().sum().item() for name, each in want[1].items() if name not in names)
    return math.sqrt(missing + sum((got[1][name] - want[1][name]).square().sum().item() for name in names)) / total


def compare_training(name, kind, recipe, extras, dtype):
    import fp8.torch
    amp = "amp" in extras
    model, inputs = make(name)
    inputs = to(inputs, dtype)
    model = model.to(dtype)
    # Graphs take longer, and are made again for each number of tokens.
    batches = find_batches(model, list_batches(inputs)[:2 if kind == "backend" else None], amp)
    want = train(model, model, batches, amp)
    exact, exact_inputs = make(name)
    noisy = train(exact, exact, [to(each, torch.float32) for each in batches], False)
    noise = max((get_gradient_error(a, b) for a, b in zip(want, noisy)), default=0)
    loss_noise = max((abs(a[0] - b[0]) / (abs(b[0]) + 1e-6) for a, b in zip(want, noisy)), default=0)
    call, backend = model, None
    if "checkpoint" in extras:
        model.gradient_checkpointing_enable()
    if kind == "layers":
        made = DPA[recipe](fp8_dpa=True) if "dpa" in extras else recipe
        options = {"parameters": "fp8"} if "codes" in extras else {}
        fp8.torch.convert_to_fp8_training(model, made, target="cpu", opt_level=0, first_last_bf16=0, **options)
        if "optimizer" in extras:
            fp8.torch.fuse_optimizer(model, torch.optim.AdamW(model.parameters(), 0.0))
        if "compile" in extras or "dynamic" in extras:
            call = torch.compile(model, backend="aot_eager", dynamic=True if "dynamic" in extras else None)
    else:
        backend = fp8.torch.Backend(recipe, target="cpu", rest="eager", opt_level=0)
        call = torch.compile(model, backend=backend, dynamic=True if "dynamic" in extras else None)
    got = train(call, model, batches, amp)
    if "optimizer" in extras:
        got = train(call, model, batches, amp)
    loss = max((abs(a[0] - b[0]) / (abs(a[0]) + 1e-6) for a, b in zip(want, got)), default=0)
    gradient = max((get_gradient_error(a, b) for a, b in zip(got, want)), default=0)
    limit = GRADIENT.get(recipe, 0.3)
    record = {"error": loss, "norm": gradient, "noise": noise, "batches": len(batches),
              "is_right": bool(loss < LOSS * (4 if recipe == "nvfp4" else 1) + 3 * loss_noise and gradient < limit + SHARE * noise)}
    record["each"] = [[a[0], b[0], get_gradient_error(b, a)] for a, b in zip(want, got)]
    if backend is not None:
        record["kinds"] = collections.Counter(remark.kind for remark in backend.remarks)
    else:
        record["summary"] = str(fp8.torch.summarize(model))[-2500:]
    return record


def compare_inference(name, kind, recipe, dtype):
    import fp8.torch
    model, inputs = make(name)
    model, inputs = model.to(dtype).eval(), to(inputs, dtype)
    taken = find_batches(model, list_batches(inputs), False)
    drop = lambda batch: batch if getattr(getattr(model, "config", None), "is_encoder_decoder", False) else {  # noqa: E731
        key: value for key, value in batch.items() if key != "labels"}
    exact = copy.deepcopy(model).float()
    with torch.inference_mode():
        want = [list_tensors(model(**drop(each))) for each in taken]
        truth = [list_tensors(exact(**to(drop(each), torch.float32))) for each in taken]
    fp8.torch.quantize_for_inference(model, recipe)
    call = torch.compile(model, backend="fp8", options={"rest": "eager"}) if kind == "compiled" else model
    with torch.inference_mode():
        got = [list_tensors(call(**drop(each))) for each in taken]
    error = lambda a, b: max((((a[key].float() - b[key].float()).norm() / (b[key].float().norm() + 1e-6)).item() for key in b), default=0)  # noqa: E731
    worst, noise = max(map(error, got, want), default=0), max(map(error, want, truth), default=0)
    return {"error": worst, "noise": noise, "batches": len(taken),
            "is_right": bool(worst < RESULT.get(recipe, 0.15) + SHARE * noise), "each": list(map(error, got, want))}


def make_adapted(name, dtype, recipe=None):
    """The model with the same adapters on all its linear layers but the head, and its inputs; quantized if there is a recipe."""
    import fp8.peft
    import fp8.torch
    import peft
    model, inputs = make(name)
    model = model.to(dtype)
    head = model.get_output_embeddings() if hasattr(model, "get_output_embeddings") else None
    names = {each.rpartition(".")[2] for each, module in model.named_modules() if type(module) is torch.nn.Linear and module is not head}
    config = peft.LoraConfig(target_modules=sorted(names), r=4, init_lora_weights=True)
    if recipe:
        fp8.torch.quantize_for_inference(model, recipe, filter=["*", "!*experts*"])
        config = fp8.peft.register(config)
    torch.manual_seed(2)
    model = peft.get_peft_model(model, config)
    for each, parameter in model.named_parameters():
        if "lora_" in each:
            torch.manual_seed(len(each))
            # Drawn in one type, so that adapters are the same in each.
            parameter.data.copy_(torch.nn.init.normal_(torch.empty(parameter.shape), std=0.05))
    return model, inputs


def add_noise(model, seed):
    """Has weights and activations of linear layers under adapters be wrong at random, by what a rounding to E4M3 is in the mean."""
    generator = torch.Generator().manual_seed(seed)
    draw = lambda x: x * (1 + E4M3 * torch.randn(x.shape, generator=generator, dtype=torch.float64).to(x.dtype))  # noqa: E731
    for name, module in model.named_modules():
        if type(module) is torch.nn.Linear and "lora_" not in name and "experts" not in name:
            module.weight.data = draw(module.weight.data)
            module.register_forward_pre_hook(lambda module, given: (draw(given[0]),))


def compare_lora(name, recipe, dtype):
    """Gradients of adapters on a quantized base, beside those on the base before it was quantized. What random numbers as large as
    roundings do to the same model in f64 is said beside it."""
    found, batches = [], None
    for kind, given in ((dtype, None), (torch.float32, None), (dtype, recipe)):
        model, inputs = make_adapted(name, kind, given)
        batches = batches or find_batches(model, list_batches(to(inputs, kind)), False)
        found.append(train(model, model, [to(each, kind) for each in batches], False))
    want, exact, got = found
    noise = max((get_gradient_error(a, b) for a, b in zip(want, exact)), default=0)
    loss = max((abs(a[0] - b[0]) / (abs(a[0]) + 1e-6) for a, b in zip(want, got)), default=0)
    gradient = max((get_gradient_error(b, a) for a, b in zip(want, got)), default=0)
    record = {"error": loss, "norm": gradient, "noise": noise, "batches": len(batches),
              "is_right": bool(loss < LOSS and gradient < 0.3 + SHARE * noise),
              "each": [[a[0], b[0], get_gradient_error(b, a)] for a, b in zip(want, got)]}
    if gradient > 0.3:
        wide, drawn = [to(each, torch.float64) for each in batches], []
        model, _ = make_adapted(name, torch.float64)
        truth = train(model, model, wide, False)
        for seed in range(DRAWS):
            model, _ = make_adapted(name, torch.float64)
            add_noise(model, seed)
            drawn.append(max(get_gradient_error(a, b) for a, b in zip(train(model, model, wide, False), truth)))
        record.update(drawn=sorted(drawn), is_right=record["is_right"] or bool(loss < LOSS and gradient < 0.3 + max(drawn)))
    return record


def run_one(name, way, _):
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    way, *extras = way.split("+")
    kind, _, recipe = way.partition(":")
    dtype = torch.float32 if "amp" in extras or "float" in extras else torch.bfloat16
    try:
        model, inputs = make(name)
        if not find_batches(model.to(dtype), [to(inputs, dtype)], "amp" in extras):
            return {"own": "its own operations do not take the type"}
        if "checkpoint" in extras:
            model.gradient_checkpointing_enable()
            if not find_batches(model, [to(inputs, dtype)], "amp" in extras):
                return {"own": "no checkpointing"}
    except Exception as error:
        return {"own": f"{type(error).__name__}: {error}"[:160]}
    try:
        if kind == "lora":
            return compare_lora(name, recipe, dtype)
        if kind in ("inference", "compiled"):
            return compare_inference(name, kind, recipe, dtype)
        return compare_training(name, kind, recipe, extras, dtype)
    except fp8.Error as error:
        return {"refused": f"{type(error).__name__}: {error}"[:400], "crash_": "".join(traceback.format_exception(error))[-2500:]}
    except Exception as error:
        return {"crash": "".join(traceback.format_exception(error))[-3500:]}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--models", default="*")
    parser.add_argument("--ways", default=",".join(WAYS))
    parser.add_argument("--seconds", type=float, default=150)
    parser.add_argument("--out")
    parser.add_argument("--list", action="store_true")
    arguments = parser.parse_args()
    os.environ.setdefault("HF_HUB_OFFLINE", "1")
    names = [name for name in list_models() if any(fnmatch.fnmatch(name, each) for each in arguments.models.split(","))]
    if arguments.list:
        print(*names)
        return 0
    return run_all(names, arguments, run_one, lambda way, kind, text: kind == "own" and "checkpoint" not in way and "type" not in text)

if __name__ == "__main__":
    sys.exit(main())
