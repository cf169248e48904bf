# REQUIRES: pytorch, python-pytorch
# RUN: %import_python %s
"""Models whose codes lie as kernels for Hopper read them (fp8.torch.arrange): the order is the one that is documented, it goes
back bit by bit, layers and experts compute what they did, checkpoints have plain codes, and programs for a GPU say how they
lie. What is no such weight stays, with the reason."""

import copy
import os
import sys
import tempfile
import warnings
import weakref

import numpy as np
import torch
from torch import nn

import fp8
import fp8.torch
from fp8.torch import arranged, code_order, expert_programs, quantized_linear, schemes

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "Emulator", "Inputs"))
import arranged_codes

warnings.simplefilter("ignore")
FAILURES = []


def check(what, holds):
    if not holds:
        FAILURES.append(what)
        print(f"{what}: wrong")


def check_order():
    rng = np.random.default_rng(0)
    for shape in ((1, 64), (5, 192), (3, 4, 128)):
        codes = rng.integers(0, 16, shape).astype(np.uint8)
        packed = torch.from_numpy(codes[..., ::2] | codes[..., 1::2] << 4)
        for is_lifted, reference in ((False, arranged_codes.arrange_pairs), (True, arranged_codes.arrange_lifted)):
            found = code_order.arrange_codes(packed, is_lifted)
            check(f"order of {shape}", np.array_equal(found.numpy(), reference(codes)))
            check(f"back of {shape}", torch.equal(code_order.restore_codes(found, is_lifted), packed))
        bytes_ = rng.integers(0, 256, shape).astype(np.uint8)
        e4m3 = torch.from_numpy(bytes_).view(torch.float8_e4m3fn)
        found = code_order.arrange_codes(e4m3)
        check(f"order of E4M3 of {shape}", np.array_equal(found.view(torch.uint8).numpy(), arranged_codes.arrange_e4m3(bytes_)))
        check(f"back of E4M3 of {shape}", np.array_equal(code_order.restore_codes(found).view(torch.uint8).numpy(), bytes_))
    short = code_order.arrange_codes(torch.zeros(3, 48, dtype=torch.uint8), True)
    check("K of 96 to E4M3", short.shape == (3, 48))
    try:
        code_order.arrange_codes(torch.zeros(3, 48, dtype=torch.uint8))
        check("K of 96", False)
    except fp8.ArgumentError as error:
        check("K of 96 says so", "multiple of 64" in str(error))


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.q_proj, self.k_proj = nn.Linear(128, 96), nn.Linear(128, 32)
        self.odd = nn.Linear(96, 31)

    def forward(self, x):
        return self.odd(torch.cat([self.q_proj(x)[:, :64], self.k_proj(x)], -1))


def get_gradient(layer):
    x = torch.ones(3, 128, dtype=torch.bfloat16, requires_grad=True)
    with torch.enable_grad():
        layer(x).sum().backward()
    return x.grad


def saves_plain(model, before):
    """Whether a checkpoint of the model has the tensors that it had before it was arranged."""
    with tempfile.TemporaryDirectory() as folder:
        fp8.torch.save_quantized(model, folder, config={"architectures": ["Block"]})
        other = Block().to(torch.bfloat16).eval()
        fp8.torch.load_quantized(other, folder)
    return all(torch.equal(value.view(torch.uint8), before[name].view(torch.uint8))
               for name, value in other.state_dict().items())


def loads_either(model, before, x, expected):
    """Whether an arranged model takes plain codes, and a plain one arranged codes."""
    plain = copy.deepcopy(model)
    fp8.torch.arrange(plain, arranged=False)
    states = {name: value.clone() for name, value in model.state_dict().items()}
    same = True
    for each, state in ((model, before), (plain, states)):
        for parameter in each.parameters():
            parameter.data.view(torch.uint8).zero_()
        given = dict(state)
        each.load_state_dict(given)
        same &= set(given) == set(state) and torch.equal(each(x), expected)
    return same


def check_model(recipe, weights, activations, odd):
    torch.manual_seed(1)
    model = Block().to(torch.bfloat16).eval()
    x = torch.randn(5, 128, dtype=torch.bfloat16)
    fp8.torch.quantize_for_inference(model, recipe, weights=weights, activations=activations)
    label = f"{recipe}, {weights}, {activations}"
    before = {name: value.clone() for name, value in model.state_dict().items()}
    with torch.no_grad():
        expected, dense, gradient = model(x), model.q_proj.dequantize(), get_gradient(model.q_proj)
        said = fp8.torch.arrange(model)
        check(f"{label}: what was arranged", said == {"q_proj": "arranged", "k_proj": "arranged", "odd": odd})
        check(f"{label}: names", "weight_arranged" in dict(model.q_proj.named_parameters()))
        check(f"{label}: the layers", torch.equal(model(x), expected))
        check(f"{label}: a state of either kind", loads_either(model, before, x, expected))
        check(f"{label}: values", torch.equal(model.q_proj.dequantize(), dense))
        check(f"{label}: prepared", fp8.torch.prepare(model).programs > 0)
        if activations or weights:  # That layout has no dynamic activations in NVFP4.
            check(f"{label}: the checkpoint", saves_plain(model, before))
        check(f"{label}: gradients", torch.equal(get_gradient(model.q_proj), gradient))
        fp8.torch.arrange(model, arranged=False)
        after = model.state_dict()
        check(f"{label}: back", list(after) == list(before) and all(
            torch.equal(after[name].view(torch.uint8), value.view(torch.uint8)) for name, value in before.items()))
    check(f"{label}: again", fp8.torch.arrange(model, arranged=False)["q_proj"] == "they are plain")


def check_sizes():
    model = fp8.torch.quantize_for_inference(nn.Sequential(nn.Linear(128, 32).to(torch.bfloat16)), "nvfp4", activations="bf16")
    state = {**model.state_dict(), "0.weight_packed": torch.zeros(32, 40, dtype=torch.uint8)}
    fp8.torch.arrange(model)
    try:
        model.load_state_dict(state)
        check("a wrong size", False)
    except RuntimeError as error:
        check("a wrong size by its name", "size mismatch for 0.weight_arranged" in str(error))


def check_nans():
    """A code that is no number is found wherever it lies, in either order."""
    codes = torch.arange(128, dtype=torch.uint8).repeat(2).view(2, 128)
    codes[codes == 0x7f] = 0x7e
    codes[1] |= 0x80
    for place in (None, *range(0, 128, 3)):
        each = codes.clone()
        if place is not None:
            each[place % 2, place] |= 0x7f
        e4m3, scheme = each.view(torch.float8_e4m3fn), schemes.make_scheme("mxfp8", False, None, "bf16")
        found = [code_order.find_reason(values, scheme) for values in (
            {"weight": e4m3}, {"weight_arranged": code_order.arrange_codes(e4m3)})]
        check(f"no number at {place}", found == [place is not None and "some are no numbers" or None] * 2)


def check_values():
    """Values that arranged codes cannot have are refused where a state or a weight brings them, with the layer as it was."""
    x = torch.randn(4, 128, dtype=torch.bfloat16)
    for recipe, name, value, reason in (("mxfp8", "weight", 0xff, "some are no numbers"),
                                        ("mxfp8", "weight_scale", 140, "factors are larger than 2^7"),
                                        ("nvfp4", "weight_scale", 0x85, "factors have signs")):
        model = fp8.torch.quantize_for_inference(nn.Sequential(nn.Linear(128, 32).to(torch.bfloat16)), recipe, activations="bf16")
        plain = copy.deepcopy(model)
        fp8.torch.arrange(model)
        before, expected = {key: each.clone() for key, each in model.state_dict().items()}, model(x)
        plain[0]._parameters[name].data.view(torch.uint8)[3, 1] = value
        label = f"{recipe}, {name} of {value}"
        try:
            model.load_state_dict(plain.state_dict())
            check(f"{label}: loaded", False)
        except RuntimeError as error:
            check(f"{label}: by name, and why: {error}", "'0': " in str(error) and reason in str(error))
        check(f"{label}: as it was", torch.equal(model(x), expected) and all(
            torch.equal(each.view(torch.uint8), before[key].view(torch.uint8)) for key, each in model.state_dict().items()))
        fp8.torch.arrange(model, arranged=False)
        model.load_state_dict(plain.state_dict())
        check(f"{label}: plain", torch.equal(model(x).nan_to_num(), plain(x).nan_to_num()))
    model = fp8.torch.quantize_for_inference(nn.Sequential(nn.Linear(128, 32).to(torch.bfloat16)), "mxfp8", activations="bf16")
    fp8.torch.arrange(model)
    expected, weight = model(x), torch.randn(32, 128)
    weight[3, 40] = 1e6
    try:
        model[0].set_weight(weight)
        check("a large weight", False)
    except fp8.ArgumentError as error:
        check("a large weight says so", "factors are larger than 2^7" in str(error))
    check("a large weight leaves the layer", torch.equal(model(x), expected))
    model[0].set_weight(weight.clamp(-4, 4))


def check_units():
    """Factors of 1 are the same of all weights of a size, and end with them."""
    first, second = torch.zeros(4, 8, 1), torch.zeros(4, 8, 1)
    units = weakref.ref(expert_programs._make_units(first, 4, 8, 2))
    check("units of two weights", units() is expert_programs._make_units(second, 4, 8, 2))
    check("units of other sizes", expert_programs._make_units(second, 4, 8, 4).shape == (4, 8, 4))
    del first, second
    check("units end", units() is None)


def check_experts(recipe, weights, activations):
    from transformers.models.mixtral.configuration_mixtral import MixtralConfig
    from transformers.models.mixtral.modeling_mixtral import MixtralExperts
    torch.manual_seed(2)
    of = MixtralExperts(MixtralConfig(hidden_size=64, intermediate_size=128, num_local_experts=4)).to(torch.bfloat16)
    for value in of.parameters():
        value.data.normal_(0, 0.05)
    model = nn.ModuleDict({"experts": of})
    fp8.torch.quantize_for_inference(model, recipe, weights=weights, activations=activations)
    x, chosen = torch.randn(7, 64, dtype=torch.bfloat16), torch.randint(0, 4, (7, 2))
    shares = torch.rand(7, 2)
    with torch.no_grad():
        expected = model["experts"](x, chosen, shares)
        said = fp8.torch.arrange(model)
        check(f"experts in {weights}: {said}", set(said.values()) == {"arranged"})
        check(f"experts in {weights}: results", torch.equal(model["experts"](x, chosen, shares), expected))
    [(shapes, gate)] = model["experts"].programs
    text = expert_programs.write(shapes, gate, "bf16", 64)
    check(f"experts in {weights}: the program", text.count("fp8.arranged = 1") == 2)
    if recipe == "nvfp4":
        check("a factor for each row", "%factor1: tensor<64x1xf32>" in text)
    if recipe == "rowwise" and not weights:
        check("factors of 1", "%units1: tensor<4x1x1xf32>" in text and "%factor1: tensor<64x64xf32>" in text)


def check_programs():
    """For a GPU they compile, with kernels for every product; for others, and beside other activations, they are refused."""
    beside = [schemes.make_scheme(recipe, False, weights, "bf16") for recipe, weights in (
        ("nvfp4", None), ("mxfp8", None), ("rowwise", None), ("block", None), ("rowwise", "mxfp4"))]
    for scheme, element in (*((scheme, element) for scheme in beside for element in ("bf16", "f16")),
                            (schemes.make_scheme("nvfp4", False), "bf16"), (schemes.make_scheme("rowwise", False, "mxfp4"), "bf16")):
        text = schemes.write_linear(schemes.replace(scheme, arranged=True), 128, 256, element, element)
        check("the program says so", "fp8.arranged = 1" in text)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            fp8.emit(text, "llvm", target="sm_90a")
        check(f"a kernel for {scheme.describe()} and {element}", not any("no kernel" in str(one.message) for one in caught))
        for target in ("cpu", "sm_100a"):
            try:
                fp8.emit(text, "llvm", target=target)
                check(f"refused for {target}", False)
            except fp8.CompileError as error:
                check(f"refused for {target}, and says why", "arranged weights" in str(error))


def check_reasons():
    torch.manual_seed(3)
    layer = nn.Linear(128, 32).to(torch.bfloat16)
    of_rows = fp8.Float8BlockScaling(w_block_scaling_dim=1)
    for recipe, activations, reason in (("rowwise", None, "as they are"), ("mxfp8", None, "as they are"),
                                        (of_rows, "bf16", "no kernel reads such factors")):
        model = fp8.torch.quantize_for_inference(nn.Sequential(nn.Linear(128, 32).to(torch.bfloat16)), recipe,
                                                 activations=activations)
        check(f"{recipe}: the reason", reason in fp8.torch.arrange(model)["0"])
    for name, value, reason in (("weight", 0xff, "no numbers"), ("weight_scale", 135, "larger than 2^7")):
        model = fp8.torch.quantize_for_inference(nn.Sequential(nn.Linear(128, 32).to(torch.bfloat16)), "mxfp8", activations="bf16")
        model[0]._parameters[name].data.view(torch.uint8)[3, 1] = value
        check(f"{name} of {value}", reason in fp8.torch.arrange(model)["0"])
    for factor, reason in ((1.5, "arranged"), (128.5, "larger than 2^7"), (float("nan"), "no numbers")):
        model = fp8.torch.quantize_for_inference(nn.Sequential(nn.Linear(128, 33).to(torch.bfloat16)), "block", activations="bf16")
        model[0].weight_scale.data.fill_(factor)
        x = torch.ones(2, 128, dtype=torch.bfloat16)
        expected = model(x)
        check(f"a block's factor of {factor}", reason in fp8.torch.arrange(model)["0"])
        check(f"a block's factor of {factor}: results", torch.equal(model(x).nan_to_num(), expected.nan_to_num()))
    model = fp8.torch.quantize_for_inference(nn.Sequential(layer), "nvfp4")
    model[0].weight_scale.data.view(torch.uint8)[0, 0] = 0x85
    check("negative factors", "signs" in fp8.torch.arrange(model)["0"])
    check("the weights", arranged.find_reason(model[0]) and isinstance(model[0], quantized_linear.QuantizedLinear))


if __name__ == "__main__":
    check_order()
    check_reasons()
    check_sizes()
    check_nans()
    check_values()
    check_units()
    check_model("nvfp4", None, "bf16", "K is no multiple of 64")
    check_model("nvfp4", None, None, "K is no multiple of 64")
    check_model("rowwise", "mxfp4", None, "N is no multiple of 4")
    check_model("rowwise", None, "bf16", "they become bf16 in memory, since no kernel reads such factors")
    check_model("mxfp8", None, "bf16", "K is no multiple of 64")
    check_programs()
    try:
        import transformers  # noqa: F401
    except ImportError:
        transformers = None
    if transformers:
        check_experts("nvfp4", None, "bf16")
        check_experts("mxfp8", None, "bf16")
        check_experts("rowwise", None, "bf16")
        check_experts("rowwise", "mxfp4", None)
    print("wrong" if FAILURES else "all right")
    sys.exit(bool(FAILURES))
