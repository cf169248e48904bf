# REQUIRES: pytorch, python-pytorch
# RUN: %import_python %s
"""Products with parameters of modules that are no torch.nn.Linear, in FP8: what is found, by
which name, and what stays PyTorch's."""

import copy
import io
import itertools
import unittest

import torch
from torch import nn
from torch.nn import functional as F

import fp8
import fp8.torch
from fp8.torch import attention, modules

K, N, GROUPS = 128, 256, 4
RECIPES = "current", "delayed", "rowwise", "block", "mxfp8"


def make_parameter(*sizes, seed=1, dtype=torch.bfloat16):
    generator = torch.Generator().manual_seed(seed)
    return nn.Parameter((torch.randn(*sizes, generator=generator) / sizes[-1] ** 0.5).to(dtype))


def make_input(*sizes, seed=2, dtype=torch.bfloat16):
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(*sizes, generator=generator).to(dtype)


def get_error(value, expected):
    return ((value.double() - expected.double()).norm() / expected.double().norm()).item()


class Function(nn.Module):
    """A function of x and parameters."""

    def __init__(self, function, *sizes):
        super().__init__()
        self.function = function
        self.w = make_parameter(*sizes)
        self.b = make_parameter(N, seed=4)

    def forward(self, x):
        return self.function(self, x)


ENDS = [16, 16, 80, 128]


def group(m, x, w):
    return torch._grouped_mm(x, w, offs=torch.tensor(ENDS, dtype=torch.int32))


# What is written, and the sizes of its parameter and of x.
FORMS = {
    "F.linear(x, w, b)": (lambda m, x: F.linear(x, m.w, m.b), (N, K), (128, K)),
    "F.linear(x, weight=w)": (lambda m, x: F.linear(x, weight=m.w), (N, K), (128, K)),
    "F.linear(x, w.T)": (lambda m, x: F.linear(x, m.w.T), (K, N), (128, K)),
    "x @ w": (lambda m, x: x @ m.w, (K, N), (4, 32, K)),
    "x @ w.T": (lambda m, x: x @ m.w.T, (N, K), (128, K)),
    "x @ w.mT": (lambda m, x: x @ m.w.mT, (N, K), (2, 2, 32, K)),
    "x @ w.t()": (lambda m, x: x @ m.w.t(), (N, K), (128, K)),
    "x.matmul(w.transpose(-1, -2))": (lambda m, x: x.matmul(m.w.transpose(-1, -2)), (N, K),
                                      (128, K)),
    "x @ w.permute(1, 0)": (lambda m, x: x @ m.w.permute(1, 0), (N, K), (128, K)),
    "torch.mm(x, w)": (lambda m, x: torch.mm(x, m.w), (K, N), (128, K)),
    "torch.matmul(x, w.to(...))": (lambda m, x: torch.matmul(x, m.w.to(torch.bfloat16).mT), (N, K),
                                   (128, K)),
    "w @ x": (lambda m, x: m.w @ x, (N, K), (K, 128)),
    "w.T @ x": (lambda m, x: m.w.T @ x, (K, N), (4, K, 32)),
    "x @ w[1]": (lambda m, x: x @ m.w[1], (GROUPS, K, N), (128, K)),
    "x @ w.unbind()[1].T": (lambda m, x: x @ m.w.unbind()[1].T, (GROUPS, N, K), (128, K)),
    "x @ w.chunk(2)[1].T": (lambda m, x: x @ m.w.chunk(2)[1].T, (N, K), (128, K)),
    "torch.addmm(b, x, w)": (lambda m, x: torch.addmm(m.b, x, m.w), (K, N), (128, K)),
    "torch.addmm(y, x, w.T)": (lambda m, x: torch.addmm(m.b.expand(128, N), x, m.w.T), (N, K),
                               (128, K)),
    "torch.bmm(x, w)": (lambda m, x: torch.bmm(x, m.w), (GROUPS, K, N), (GROUPS, 32, K)),
    "x @ w of batches": (lambda m, x: x @ m.w.mT, (GROUPS, N, K), (GROUPS, 32, K)),
    "torch.bmm(w, x)": (lambda m, x: torch.bmm(m.w, x), (GROUPS, N, K), (GROUPS, K, 32)),
    "_grouped_mm(x, w)": (lambda m, x: group(m, x, m.w), (GROUPS, K, N), (128, K)),
    "_grouped_mm(x, w.mT)": (lambda m, x: group(m, x, m.w.mT), (GROUPS, N, K), (128, K)),
}
if hasattr(F, "grouped_mm"):
    FORMS["F.grouped_mm(x, w)"] = (lambda m, x: F.grouped_mm(
        x, m.w, offs=torch.tensor(ENDS, dtype=torch.int32)), (GROUPS, K, N), (128, K))


def run(model, x, call=None, recipe=None):
    """The result and all gradients."""
    model.zero_grad(set_to_none=True)
    x = x.clone().requires_grad_()
    with fp8.torch.autocast(recipe, enabled=recipe is not None):
        y = (model if call is None else call)(x)
    y.backward(make_input(*y.shape, seed=5, dtype=y.dtype))
    return [y.detach(), x.grad, *(p.grad for p in model.parameters() if p.grad is not None)]


class Forms(unittest.TestCase):
    def check(self, form, recipe):
        function, sizes, x_sizes = FORMS[form]
        model, x = Function(function, *sizes), make_input(*x_sizes)
        expected = run(model, x)
        results = run(model, x, recipe=recipe)
        for result, other in zip(results, expected, strict=True):
            self.assertEqual((result.shape, result.dtype), (other.shape, other.dtype))
            self.assertLess(get_error(result, other), 0.1)
        # All three were rounded to 8 bits.
        for result, other in zip(results[:3], expected):
            self.assertGreater(get_error(result, other), 0.01)
        layers = modules.get_layers(model)
        self.assertEqual(len(layers), 1, layers.keys())
        kinds = [(remark.role, remark.kind) for layer in layers.values()
                 for remark in layer.remarks]
        self.assertEqual(sorted(kinds), [(role, "fp8") for role in ("dgrad", "fprop", "wgrad")])
        return model, x, results

    def test_each(self):
        for form in FORMS:
            with self.subTest(form):
                self.check(form, "current")

    def test_recipes(self):
        for form, recipe in itertools.product(
                ("x @ w", "F.linear(x, w, b)", "_grouped_mm(x, w.mT)", "torch.bmm(x, w)"), RECIPES):
            with self.subTest(form, recipe=recipe):
                self.check(form, recipe)

    def test_compiled(self):
        for form in FORMS:
            with self.subTest(form):
                model, x, expected = self.check(form, "current")
                torch._dynamo.reset()
                call = torch.compile(model, backend="aot_eager", fullgraph=True)
                for result, other in zip(run(model, x, call, "current"), expected, strict=True):
                    self.assertTrue(torch.equal(result, other))

    def test_dtypes(self):
        for dtype in (torch.float32, torch.float16):
            model = Function(FORMS["x @ w"][0], K, N).to(dtype)
            x = make_input(64, K, dtype=dtype)
            self.assertLess(get_error(run(model, x, recipe="current")[0], x @ model.w), 0.06)
        with torch.autocast("cpu", torch.bfloat16):
            model = Function(FORMS["F.linear(x, w, b)"][0], N, K).float()
            y = run(model, make_input(64, K, dtype=torch.float32), recipe="current")[0]
        self.assertEqual(y.dtype, torch.bfloat16)
        self.assertEqual(model.w.grad.dtype, torch.float32)

    def test_sizes_that_change(self):
        model = Function(FORMS["x @ w"][0], K, N)
        torch._dynamo.reset()
        call = torch.compile(model, backend="aot_eager", fullgraph=True, dynamic=True)
        for rows in (16, 48, 80):
            x = make_input(rows, K)
            self.assertTrue(torch.equal(run(model, x, call, "rowwise")[0],
                                        run(model, x, recipe="rowwise")[0]))


class Left(unittest.TestCase):
    """What stays PyTorch's, with its reason."""

    def check(self, function, sizes, x, reason, dtype=torch.bfloat16):
        model = Function(function, *sizes).to(dtype)
        torch._dynamo.reset()
        for call in (model, torch.compile(model, backend="aot_eager", fullgraph=True)):
            with fp8.torch.autocast("current"):
                y = call(x)
            self.assertTrue(torch.equal(y, model(x)))
            text = fp8.torch.summarize(model)
            if reason is None:
                self.assertEqual(text, "")
            else:
                self.assertRegex(text, rf"^w.*: the recipe of autocast\n  high precision: {reason}")

    def test_sizes(self):
        self.check(lambda m, x: x @ m.w, (24, 32), make_input(16, 24), "K=24 is not a multiple")
        self.check(lambda m, x: x @ m.w, (64, 4), make_input(16, 64),
                   "of the gradient of x: K=4 is not a multiple of 16")

    def test_functions(self):
        x = make_input(64, K)
        for function, name in (
                (lambda m, x: torch.einsum("ik,kj->ij", x, m.w), "einsum"),
                (lambda m, x: torch.tensordot(x, m.w, 1), "tensordot"),
                (lambda m, x: torch.mv(m.w.T, x[0]), "mv")):
            self.check(function, (K, N), x, f"{name} is not taken")

    def test_dtypes(self):
        self.check(lambda m, x: x @ m.w, (K, N), make_input(64, K, dtype=torch.float64),
                   "torch.float64 is none of", torch.float64)

    def test_what_is_computed_of_a_parameter(self):
        self.check(lambda m, x: x @ (m.w * 2), (K, N), make_input(64, K), None)

    def test_nothing_in(self):
        self.check(lambda m, x: x @ m.w, (K, N), make_input(0, K), None)

    def test_mistakes_are_those_of_pytorch(self):
        model = Function(lambda m, x: x @ m.w, K, N)
        for x in (make_input(64, 96), make_input(64, K, dtype=torch.float32)):
            for recipe in (None, "current"):
                with self.assertRaises(RuntimeError) as raised:
                    run(model, x, recipe=recipe)
                if recipe is None:
                    expected = str(raised.exception)
            self.assertEqual(str(raised.exception), expected)

    def test_bilinear_is_refused_by_name(self):
        model = nn.ModuleDict({"pair": nn.Bilinear(32, 32, 32), "one": nn.Linear(32, 32)})
        fp8.torch.convert_to_fp8_training(model, "current", first_last_bf16=0)
        self.assertRegex(fp8.torch.summarize(model), "pair: high precision: a Bilinear multiplies")
        x = make_input(16, 32, dtype=torch.float32)
        expected = model["pair"](x, x)
        with fp8.torch.autocast("current"):
            self.assertTrue(torch.equal(model["pair"](x, x), expected))

    def test_transforms_of_functions(self):
        model, x = Function(lambda m, x: x @ m.w, K, N), make_input(4, 16, K)
        with fp8.torch.autocast("current"):
            self.assertTrue(torch.equal(torch.vmap(model)(x), model.function(model, x))
                            or get_error(torch.vmap(model)(x), x @ model.w) < 0.06)


class Block(nn.Module):
    """A model with parameters and `@` alone."""

    def __init__(self, width=64, wide=128):
        super().__init__()
        self.up, self.down = make_parameter(width, wide, seed=7), make_parameter(wide, width, seed=8)

    def forward(self, x):
        return x + F.gelu(x @ self.up) @ self.down


def make_blocks():
    return nn.Sequential(Block(), Block(), Block()).float()


class Models(unittest.TestCase):
    def train(self, model, recipe):
        optimizer = torch.optim.AdamW(model.parameters(), 3e-3)
        for seed in range(40):
            x = make_input(64, 64, seed=seed, dtype=torch.float32)
            with fp8.torch.autocast(recipe, enabled=recipe is not None):
                loss = F.mse_loss(model(x), x.sin())
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        return loss.item()

    def test_learns_as_in_high_precision(self):
        expected = self.train(make_blocks(), None)
        for recipe in ("current", "delayed", "rowwise"):
            model = make_blocks()
            loss = self.train(model, recipe)
            self.assertLess(abs(loss / expected - 1), 0.1, recipe)
            self.assertNotEqual(loss, expected)
            self.assertEqual(list(modules.get_layers(model)), [
                f"{block}.{name}" for block in range(3) for name in ("up", "down")])

    def test_converted(self):
        model, x = make_blocks(), make_input(64, 64, dtype=torch.float32)
        names = [(name, id(p)) for name, p in model.named_parameters()]
        keys, text = list(model.state_dict()), str(model)
        expected = run(model, x)
        self.assertIs(fp8.torch.convert_to_fp8_training(model, "current", filter=["0", "1"]), model)
        self.assertEqual([(name, id(p)) for name, p in model.named_parameters()], names)
        self.assertEqual((list(model.state_dict()), str(model)), (keys, text))
        results = run(model, x)
        self.assertGreater(get_error(results[0], expected[0]), 0.001)
        self.assertEqual(list(modules.get_layers(model)), ["0.up", "0.down", "1.up", "1.down"])
        # What was not converted is not for an autocast, either.
        self.assertTrue(all(map(torch.equal, run(model, x, recipe="rowwise"), results)))
        fp8.torch.convert_from_fp8(model)
        self.assertTrue(all(map(torch.equal, run(model, x), expected)))
        self.assertEqual([type(block) for block in model], [Block] * 3)

    def test_what_autocast_leaves_out(self):
        """Also of copies: layers at the ends, and those of another filter."""
        model = nn.Sequential(*(nn.Linear(64, 64) for _ in range(3)))
        x = make_input(32, 64, dtype=torch.float32)
        fp8.torch.convert_to_fp8_training(model, None)
        file = io.BytesIO()
        torch.save(model, file)
        file.seek(0)
        for own in (model, copy.deepcopy(model), torch.load(file, weights_only=False)):
            with fp8.torch.autocast("current"):
                self.assertTrue(torch.equal(own[0](x), F.linear(x, own[0].weight, own[0].bias)))
                own(x)
            self.assertEqual(list(modules.get_layers(own)), ["1"])
        # An inner autocast that is off is off for parameters, too.
        model = make_blocks()
        with fp8.torch.autocast("current"):
            with fp8.torch.autocast("current", enabled=False):
                model(x)
        self.assertEqual(modules.get_layers(model), {})

    def test_states(self):
        model, x = make_blocks(), make_input(64, 64, dtype=torch.float32)
        fp8.torch.convert_to_fp8_training(model, "delayed")
        for _ in range(3):
            run(model, x)
        state = modules.get_layers(model)["0.up"].units["delayed"].state
        self.assertEqual(state.steps, 3)
        self.assertEqual(state.slots["fprop.x"].amax, x.abs().max().item())
        self.assertIn("0.up.fp8_state", model.state_dict())
        other = fp8.torch.convert_to_fp8_training(make_blocks(), "delayed")
        self.assertEqual(str(other.load_state_dict(model.state_dict())),
                         "<All keys matched successfully>")
        clone = copy.deepcopy(model)
        file = io.BytesIO()
        torch.save(model, file)
        file.seek(0)
        loaded = torch.load(file, weights_only=False)
        replaced = copy.deepcopy(model)
        replaced.load_state_dict(model.state_dict(), assign=True)
        expected = run(model, x)
        for own in (other, clone, loaded, replaced):
            for result, value in zip(run(own, x), expected, strict=True):
                self.assertTrue(torch.equal(result, value))
        # A checkpoint of before the first step has none, and neither has who loads it.
        fresh = fp8.torch.convert_to_fp8_training(make_blocks(), "delayed")
        run(other, (x.detach() * 100).requires_grad_())
        other.load_state_dict(fresh.state_dict())
        for result, value in zip(run(other, x), run(fresh, x), strict=True):
            self.assertTrue(torch.equal(result, value))
        with self.assertRaisesRegex(fp8.ArgumentError, "expected '0.up.fp8_state' of a state_dict"):
            other.load_state_dict({**model.state_dict(), "0.up.fp8_state": torch.zeros(3)})

    def test_one_step_of_several_calls(self):
        model, x = make_blocks(), make_input(64, 64, dtype=torch.float32)
        for _ in range(2):
            with fp8.torch.accumulated(model):
                run(model, x, recipe="delayed"), run(model, x, recipe="delayed")
        for layer in modules.get_layers(model).values():
            self.assertEqual(layer.units["delayed"].state.steps, 2)

    def test_code_that_blocks_share(self):
        """Compiled once for all blocks, each has its own scales."""
        model, x = make_blocks(), make_input(64, 64, dtype=torch.float32)
        other = copy.deepcopy(model)
        for own in (model, other):
            fp8.torch.convert_to_fp8_training(own, "delayed")
        torch._dynamo.reset()
        for block in other:
            block.compile(backend="aot_eager", fullgraph=True)
        for _ in range(3):
            expected, results = run(model, x), run(other, x)
            self.assertTrue(all(map(torch.equal, results, expected)))
        amaxes = [layer.units["delayed"].state.slots["fprop.x"].amax
                  for layer in modules.get_layers(other).values()]
        self.assertEqual(len(set(amaxes)), 6)

    def test_only_faster(self):
        model, x = make_blocks().bfloat16(), make_input(32, 64)
        expected = run(model, x)
        fp8.torch.convert_to_fp8_training(model, "delayed", target="sm_90a", only_faster=True)
        self.assertTrue(all(map(torch.equal, run(model, x), expected)))
        self.assertIn("few rows: high precision", fp8.torch.summarize(model))

    def test_frozen(self):
        model, x = make_blocks(), make_input(64, 64, dtype=torch.float32)
        fp8.torch.convert_to_fp8_training(model, "current")
        expected = run(model, x)
        for parameter in model.parameters():
            parameter.requires_grad_(False)
        for result, value in zip(run(model, x), expected[:2], strict=True):
            self.assertTrue(torch.equal(result, value))


class Plain:
    """In place of a mode: nothing is in FP8."""

    def find(self, tensor):
        return 0, False

    def linear(self, x, weight, bias=None):
        return F.linear(x, weight, bias)

    def split(self, weight, sizes):
        return weight.split(sizes)

    def get_attention(self):
        return None

    def attend(self, *arguments, **keywords):
        return None


def make_attention(**options):
    torch.manual_seed(3)
    return nn.MultiheadAttention(64, 4, **options)


class Attention(unittest.TestCase):
    def compare(self, layer, *arguments, **keywords):
        """Beside PyTorch, without FP8."""
        original = F.multi_head_attention_forward
        expected = layer(*arguments, **keywords)
        count = []

        def compute(*others, **rest):
            count.append(None)
            result = attention.compute(Plain(), *others, **rest)
            return original(*others, **rest) if result is None else result

        F.multi_head_attention_forward = compute
        try:
            results = layer(*arguments, **keywords)
        finally:
            F.multi_head_attention_forward = original
        self.assertEqual(len(count), 1)
        for result, other in zip(results, expected, strict=True):
            self.assertEqual(result is None, other is None)
            if result is not None:
                torch.testing.assert_close(result, other, rtol=1e-5, atol=1e-6)

    def test_is_pytorchs(self):
        x, y, z = (make_input(8, 3, 64, seed=seed, dtype=torch.float32) for seed in range(3))
        causal = nn.Transformer.generate_square_subsequent_mask(8)
        padding = torch.zeros(3, 8, dtype=torch.bool)
        padding[1, 5:] = True
        for options, needs in itertools.product(
                ({}, {"bias": False}, {"add_bias_kv": True}, {"add_zero_attn": True},
                 {"add_bias_kv": True, "add_zero_attn": True, "bias": False}), (True, False)):
            layer = make_attention(**options)
            for operands in ((x, x, x), (x, y, y), (x, y, z)):
                for masks in ({}, {"attn_mask": causal}, {"key_padding_mask": padding},
                              {"attn_mask": causal, "key_padding_mask": padding},
                              {"attn_mask": causal.bool().expand(12, 8, 8)}):
                    with self.subTest(options=options, needs=needs, masks=list(masks)):
                        self.compare(layer, *operands, need_weights=needs, **masks)
        layer = make_attention(kdim=32, vdim=48)
        self.compare(layer, x, y[..., :32], z[..., :48])
        layer = make_attention(batch_first=True)
        self.compare(layer, x, x, x, attn_mask=causal[:3, :3], is_causal=True, need_weights=False)
        self.compare(layer, x, y, y, average_attn_weights=False)
        self.compare(make_attention(), x[:, 0], x[:, 0], x[:, 0])
        self.compare(make_attention(dropout=0.5).eval(), x, x, x)

    def test_projections(self):
        x, y = make_input(16, 4, 64), make_input(16, 4, 64, seed=9)
        for operands, options, names in (
                ((x, x, x), {}, ["in_proj_weight"]),
                ((x, y, y), {}, ["in_proj_weight[0/2]", "in_proj_weight[1/2]"]),
                ((x, y, x), {}, [f"in_proj_weight[{i}/3]" for i in range(3)]),
                ((x, y[..., :32], x), {"kdim": 32}, [f"{name}_proj_weight" for name in "qkv"])):
            model = nn.ModuleDict({"attn": make_attention(**options)}).bfloat16()
            layer = model["attn"]
            keys, expected = list(model.state_dict()), layer(*operands)
            fp8.torch.convert_to_fp8_training(model, "current", first_last_bf16=0)
            self.assertEqual(list(model.state_dict()), keys)
            results = layer(*operands)
            for result, other in zip(results, expected):
                error = get_error(result, other)
                self.assertTrue(0.001 < error < 0.15, error)
            results[0].float().square().sum().backward()
            found = {name: layer for name, layer in modules.get_layers(model).items()
                     if layer.remarks}
            self.assertEqual(sorted(found), sorted(
                f"attn.{name}" for name in [*names, "out_proj"]))
            for product in found.values():
                self.assertEqual({remark.kind for remark in product.remarks}, {"fp8"})
            torch._dynamo.reset()
            compiled = torch.compile(layer, backend="aot_eager", fullgraph=True)
            self.assertTrue(torch.equal(compiled(*operands)[0], results[0]))

    def test_fast_path(self):
        """PyTorch's own kernels for whole layers would pass projections by."""
        torch.manual_seed(4)
        layer = nn.TransformerEncoderLayer(64, 4, 128, batch_first=True)
        model = nn.TransformerEncoder(layer, 2).eval()
        x = make_input(4, 16, 64, dtype=torch.float32)
        padding = torch.zeros(4, 16, dtype=torch.bool)
        padding[1, 9:] = True
        with torch.no_grad():
            expected = model(x, src_key_padding_mask=padding)
            fp8.torch.convert_to_fp8_training(model, "current", first_last_bf16=0)
            y = model(x, src_key_padding_mask=padding)
        self.assertTrue(0.001 < get_error(y[0], expected[0]) < 0.1)
        names = [f"layers.{i}.{name}" for i in range(2)
                 for name in ("self_attn.in_proj_weight", "self_attn.out_proj", "linear1", "linear2")]
        layers = modules.get_layers(model)
        self.assertEqual(sorted(layers), sorted(names))
        self.assertTrue(all(layer.remarks for layer in layers.values()))


if __name__ == "__main__":
    unittest.main()
