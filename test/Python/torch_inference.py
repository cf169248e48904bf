# REQUIRES: pytorch, python-pytorch
# RUN: %import_python %s
"""Linear layers of PyTorch with quantized weights, beside torch's own float8 casts and products
in f64."""

import copy
import io
import unittest

import torch
from torch import nn

import fp8
import fp8.torch
from fp8.torch import schemes

E4M3 = torch.float8_e4m3fn
E2M1 = torch.tensor([0, .5, 1, 1.5, 2, 3, 4, 6, -0., -.5, -1, -1.5, -2, -3, -4, -6])


def make_model(dtype=torch.float32):
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(256, 160), nn.GELU(), nn.Linear(160, 128, bias=False)).to(dtype)


def quantize(x, block, amax=None, pow2=False):
    """Codes and factors of torch, both in f64, spread over the elements."""
    x = x.float()
    rows, columns = (size if extent is None else extent for size, extent in zip(x.shape, block))
    padded = nn.functional.pad(x, (0, -x.shape[1] % columns, 0, -x.shape[0] % rows))
    tiles = padded.unflatten(0, (-1, rows)).unflatten(2, (-1, columns))
    amax = tiles.abs().amax((1, 3)) if amax is None else torch.full(
        (tiles.shape[0], tiles.shape[2]), amax)
    scale = torch.div(torch.tensor(448.0), amax)  # 448 / amax would round twice.
    if pow2:
        scale = torch.exp2(torch.floor(torch.log2(scale)))
    scale = torch.where(amax == 0, torch.ones(()), scale)

    def spread(grid):
        return grid.repeat_interleave(rows, 0)[:x.shape[0]].repeat_interleave(columns, 1)[
            :, :x.shape[1]]
    factors = torch.div(torch.ones(()), scale)
    codes = (x * spread(scale)).clamp(-448, 448).to(E4M3)
    return codes, spread(factors).double(), factors


def multiply(x, weight, bias):
    (x_codes, x_factors, _), (w_codes, w_factors, _) = x, weight
    y = (x_codes.double() * x_factors) @ (w_codes.double() * w_factors).T
    return y if bias is None else y + bias.double()


def get_error(value, expected):
    return ((value.double() - expected).norm() / expected.norm()).item()


class Layers(unittest.TestCase):
    def check(self, recipe, weight_block, input_block, pow2, dtype=torch.float32, **options):
        layer = make_model(dtype)[0]
        x = torch.randn(7, 256, dtype=dtype) * torch.logspace(-1, 1, 7)[:, None].to(dtype)
        quantized = fp8.torch.quantize_for_inference(copy.deepcopy(layer), recipe, **options)
        amax = max(batch.abs().max().item() for batch in options["calibration"]) if options else None
        weight = quantize(layer.weight.detach(), weight_block, pow2=pow2)
        self.assertTrue(torch.equal(quantized.weight.view(torch.uint8),
                                    weight[0].view(torch.uint8)))
        scale = quantized.weight_scale
        self.assertTrue(torch.equal(scale, weight[2].reshape(scale.shape)))
        with torch.no_grad():
            y = quantized(x)
        self.assertEqual((y.dtype, y.shape), (dtype, (7, 160)))
        expected = multiply(quantize(x, input_block, amax, pow2), weight, layer.bias.detach())
        self.assertLess(get_error(y, expected), 1e-6 if dtype == torch.float32 else 3e-3)
        # Far from the layer by about what the rounding of two operands makes.
        self.assertGreater(get_error(y, layer(x).detach().double()), 0.01)

    def test_current(self):
        for dtype in (torch.float32, torch.bfloat16, torch.float16):
            self.check("current", (None, None), (None, None), False, dtype)

    def test_calibrated(self):
        batches = [torch.randn(4, 256), torch.randn(3, 5, 256) * 20]
        self.check(fp8.Float8CurrentScaling(), (None, None), (None, None), False,
                   calibration=batches)

    def test_rowwise(self):
        self.check(fp8.RowwiseScaling(), (1, None), (1, None), True)
        self.check("rowwise,pow2=false,accumulate=fast", (1, None), (1, None), False)

    def test_block(self):
        self.check(fp8.Float8BlockScaling(), (128, 128), (1, 128), True)
        self.check("block,pow2=false,w_dim=1", (1, 128), (1, 128), False)

    def test_mxfp8(self):
        # Power-of-two scales round significands alike, however many elements have them.
        layer = make_model()[0]
        x = torch.randn(7, 256)
        quantized = fp8.torch.quantize_for_inference(copy.deepcopy(layer), "mxfp8")
        scale = torch.exp2(quantized.weight_scale.double() - 127).repeat_interleave(32, 1)
        weight = quantized.state_dict()["weight"].double() * scale
        self.assertTrue((((weight - layer.weight) / layer.weight).abs() <= 2 ** -4).all())
        tiles = x.unflatten(1, (-1, 32)).abs().amax(2)
        factors = torch.exp2(torch.ceil(torch.log2(tiles / 448))).repeat_interleave(32, 1)
        codes = (x / factors).to(E4M3)
        with torch.no_grad():
            y = quantized(x)
        expected = (codes.double() * factors) @ weight.T + layer.bias.double()
        self.assertLess(get_error(y, expected), 1e-6)

    def test_nvfp4(self):
        layer, batch = make_model()[0], torch.randn(9, 256)
        for calibration in (None, [batch]):
            quantized = fp8.torch.quantize_for_inference(copy.deepcopy(layer), "nvfp4", calibration)
            packed = quantized.weight_packed
            codes = torch.stack((packed & 15, packed >> 4), 2).reshape(160, 256)
            weight = E2M1[codes.int()].double() * (
                quantized.weight_scale.double() / quantized.weight_global_scale.double()
            ).repeat_interleave(16, 1)
            self.assertLess(get_error(weight, layer.weight.detach().double()), 0.11)
            # Activations that are codes already leave a sum of exact products.
            x = E2M1[torch.randint(0, 16, (5, 256))] * 0.25
            x[:, ::16] = 1.5
            batch[:] = x.abs().max()
            if calibration:
                quantized.input_global_scale.copy_(torch.tensor([448 * 6 / 1.5]))
            with torch.no_grad():
                y = quantized(x)
            self.assertLess(get_error(y, x.double() @ weight.T + layer.bias.double()), 1e-5)

    def test_shapes_and_order(self):
        layer = fp8.torch.quantize_for_inference(make_model(torch.bfloat16)[0], "rowwise")
        x = torch.randn(256, 6, dtype=torch.bfloat16).T
        with torch.no_grad():
            y = layer(x)
            self.assertTrue(torch.equal(layer(x.reshape(2, 3, 256)), y.reshape(2, 3, 160)))
            self.assertTrue(torch.equal(layer(x[0]), y[0]))
            self.assertEqual(layer(x[:0]).shape, (0, 160))

    def test_one_program_for_all_batches(self):
        schemes.compile_linear.cache_clear()
        model = fp8.torch.quantize_for_inference(
            nn.Sequential(nn.Linear(64, 64), nn.Linear(64, 64)), "current")
        with torch.no_grad():
            for rows in (1, 3, 17, 64):
                model(torch.randn(rows, 64))
        self.assertEqual(schemes.compile_linear.cache_info().currsize, 1)

    def test_wrong_activations(self):
        layer = fp8.torch.quantize_for_inference(make_model()[0], "rowwise")
        for x in (torch.randn(3, 255), torch.randn(3, 256, dtype=torch.float64), torch.tensor(1.0)):
            with self.assertRaisesRegex(fp8.ArgumentError, "activations of f32, bf16 or f16 with 256"):
                layer(x)
        self.assertEqual(layer(torch.randn(3, 256)).shape, (3, 160))

    def test_as_modules_are_used(self):
        model = fp8.torch.quantize_for_inference(make_model(torch.bfloat16), "rowwise")
        x = torch.randn(5, 256, dtype=torch.bfloat16)
        with torch.no_grad():
            y = model(x)
            self.assertTrue(torch.equal(torch.compile(model, fullgraph=True)(x), y))
            self.assertTrue(torch.equal(copy.deepcopy(model)(x), y))
            file = io.BytesIO()
            torch.save(model, file)
            file.seek(0)
            self.assertTrue(torch.equal(torch.load(file, weights_only=False)(x), y))
            with torch.autocast("cpu", torch.bfloat16):
                self.assertTrue(torch.equal(model(x.float()), y))
            other = fp8.torch.quantize_for_inference(
                nn.Sequential(*(copy.deepcopy(layer) for layer in make_model(torch.bfloat16))),
                "rowwise")
            for value in other.parameters():
                value.data = torch.zeros(value.shape).to(value.dtype)
            other.load_state_dict(model.state_dict())
            self.assertTrue(torch.equal(other(x), y))
            # What is converted is the bias; codes and scales stay what they are.
            self.assertEqual([value.dtype for value in model.float().parameters()],
                             [E4M3, torch.float32, torch.float32, E4M3, torch.float32])
            self.assertLess(get_error(model(x), y.double()), 1e-2)
        self.assertEqual(list(model.state_dict()),
                         ["0.weight", "0.weight_scale", "0.bias", "2.weight", "2.weight_scale"])


class Models(unittest.TestCase):
    def test_report(self):
        class Own(nn.Linear):
            def forward(self, x):
                return super().forward(x) * 2

        model = nn.ModuleDict({
            "embed": nn.Embedding(32, 64), "conv": nn.Conv1d(4, 4, 3), "own": Own(64, 64),
            "attention": nn.MultiheadAttention(64, 4), "odd": nn.Linear(100, 64),
            "wide": nn.Linear(64, 64).double(), "head": nn.Linear(64, 32, bias=False),
            "normed": nn.utils.parametrizations.weight_norm(nn.Linear(64, 64)),
            "skipped": nn.Linear(64, 64), "up": nn.Linear(64, 128), "norm": nn.LayerNorm(64)})
        model["head"].weight = model["embed"].weight
        fp8.torch.quantize_for_inference(model, "rowwise", filter=["*", "!skip*"])
        layers = {layer.name: layer for layer in fp8.torch.report(model)}
        self.assertEqual([name for name, layer in layers.items() if layer.kind == "fp8"], ["up"])
        for name, reason in {
                "conv": "a Conv1d is no nn.Linear", "own": "a Own has a forward of its own",
                "attention": "a MultiheadAttention is no nn.Linear",
                "attention.out_proj": "nn.MultiheadAttention takes its weight",
                "odd": "K=100 is not a multiple of 16", "wide": "torch.float64",
                "head": "its weight is that of 'embed.weight' too",
                "normed": "a forward of its own", "skipped": "the filter leaves it out"}.items():
            self.assertIn(reason, layers[name].reason)
        self.assertNotIn("embed", layers)
        text = str(fp8.torch.report(model)).splitlines()
        self.assertIn("layers in FP8", text[0])
        self.assertIn("N=128 K=64  fp8: e4m3, scales in f32, weights 1x*", "\n".join(text))

    def test_kept_by_transformers(self):
        class Block(nn.Module):
            _keep_in_fp32_modules = ["wo"]

            def __init__(self):
                super().__init__()
                self.wi, self.wo, self.two = nn.Linear(64, 64), nn.Linear(64, 64), nn.Linear(64, 64)

        model = fp8.torch.quantize_for_inference(nn.ModuleDict({"block": Block()}))
        self.assertEqual([(layer.name, layer.kind) for layer in fp8.torch.report(model)],
                         [("block.wi", "fp8"), ("block.wo", "high precision"), ("block.two", "fp8")])

    def test_routers_stay(self):
        class Experts(nn.Module):
            def __init__(self):
                super().__init__()
                self.up = nn.Parameter(torch.randn(16, 64, 64))

        class Block(nn.Module):
            def __init__(self, experts):
                super().__init__()
                self.gate, self.shared_expert_gate, self.gate_proj, self.down = (
                    nn.Linear(64, n, bias=False) for n in (16, 1, 16, 16))
                self.experts = experts

        class Plain(nn.Module):  # A gate of a convolution's channels, which is no router.
            def __init__(self):
                super().__init__()
                self.gate, self.conv = nn.Linear(64, 16), nn.Conv1d(16, 16, 4)

        def make():
            return nn.ModuleDict({
                "one": Block(Experts()), "list": Block(nn.ModuleList(nn.Linear(64, 64) for _ in range(16))),
                "plain": Plain(), "router": nn.Sequential(nn.Linear(64, 32), nn.Linear(32, 16))})

        def find(**options):
            report = fp8.torch.report(fp8.torch.quantize_for_inference(make(), **options))
            return {layer.name for layer in report if "chooses experts" in layer.reason}
        gates = {f"{block}.{name}" for block in ("one", "list") for name in ("gate", "shared_expert_gate")}
        self.assertEqual(find(), gates | {"router.0", "router.1"})
        self.assertEqual(find(filter=["*", "!list.experts*"]), gates | {"router.0", "router.1"})
        self.assertEqual(find(filter=lambda name, _: name != "one.gate"), gates - {"one.gate"} | {"router.0", "router.1"})
        self.assertEqual(find(filter=["*", "*.gate", "router.[01]"]), {name for name in gates if "shared" in name})

    def test_trained_in_fp8(self):
        model = fp8.torch.convert_to_fp8_training(make_model(), "current", first_last_bf16=0,
                                                  filter=lambda name, module: name == "0")
        fp8.torch.quantize_for_inference(model, filter=lambda name, module: name == "0")
        self.assertEqual([layer.kind for layer in fp8.torch.report(model)],
                         ["fp8", "high precision"])

    def test_shared_and_hooked(self):
        layer, calls = nn.Linear(64, 64), []
        layer.register_forward_hook(lambda *_: calls.append("after"))
        layer.register_forward_pre_hook(
            lambda _, arguments, keywords: calls.append(sorted(keywords)), with_kwargs=True)
        layer.register_forward_pre_hook(lambda *_: calls.append("before"))
        model = nn.Sequential(layer, nn.ReLU(), layer)
        fp8.torch.quantize_for_inference(model, "current")
        self.assertIs(model[0], model[2])
        with torch.no_grad():
            model[0](input=torch.randn(2, 64))
            model(torch.randn(2, 64))
        self.assertEqual(calls, [["input"], "before", "after", *([[], "before", "after"] * 2)])

    def test_transformer_encoder(self):
        """Whose layers give all weights to one kernel of PyTorch's, where they evaluate."""
        torch.manual_seed(0)
        model = nn.TransformerEncoder(nn.TransformerEncoderLayer(64, 2, 128, batch_first=True), 2).eval()
        x, padding = torch.randn(2, 16, 64), torch.arange(16).expand(2, -1) >= torch.tensor([[16], [9]])
        with torch.inference_mode():
            expected = model(x), model(x, src_key_padding_mask=padding)[:1]
            fp8.torch.quantize_for_inference(model)
            found = model(x), model(x, src_key_padding_mask=padding)[:1]
        for value, other in zip(found, expected):
            self.assertLess(get_error(value, other.double()), 0.05)
            self.assertGreater(get_error(value, other.double()), 0.001)

    def test_a_second_time(self):
        model = make_model()
        fp8.torch.quantize_for_inference(model, "rowwise", filter="0")
        fp8.torch.quantize_for_inference(model, "mxfp8")
        self.assertEqual([module.scheme.scale for module in (model[0], model[2])], ["f32", "e8m0"])

    def test_calibration(self):
        class Branches(nn.Module):
            def __init__(self):
                super().__init__()
                self.a, self.b, self.c = (nn.Linear(64, 64) for _ in range(3))

            def forward(self, x, takes_b=False):
                return self.b(input=x) if takes_b else self.a(x)

        model = Branches().train()
        x = torch.randn(4, 64)
        fp8.torch.quantize_for_inference(model, "current", [
            x, (3 * x, False), -2 * x, {"x": 2 * x, "takes_b": True}, torch.empty(0, 64)])
        self.assertTrue(model.training)
        for layer, factor in ((model.a, 3), (model.b, 2)):
            self.assertAlmostEqual(layer.input_scale.item() * 448 / x.abs().max().item(), factor, 5)
        reasons = {layer.name: layer.reason for layer in fp8.torch.report(model)}
        self.assertIn("no batch of the calibration reaches it", reasons["c"])

    def test_mistakes_leave_the_model(self):
        x = torch.randn(4, 256)
        nan = x.clone()
        nan[1, 2] = torch.nan
        for message, arguments in {
                "expected one of the recipes": ("fancy",),
                "expected one of the keys": ("current,colour=3",),
                "for inference, but got 'delayed'": (fp8.DelayedScaling(),),
                "for inference, but got 'none'": (None,),
                "expected codes in e4m3": ("current,format=e5m2",),
                "expected no weight_2d": ("mxfp8,weight_2d=true",),
                "expected x_dim 1": ("block,x_dim=2",),
                "expected no calibration": ("rowwise", [x]),
                "expected a list of batches": ("current", x),
                "expected batches that reach": ("current", []),
                "expected finite activations of '0'": ("current", [nan]),
                "the filter leaves it out": ("current", None, "nothing")}.items():
            model = make_model()
            before = list(model)
            with self.assertRaisesRegex(fp8.ArgumentError, message):
                fp8.torch.quantize_for_inference(model, *arguments)
            self.assertEqual(list(model), before)
            self.assertFalse(any(module._forward_pre_hooks for module in model))
            self.assertEqual(model(x).shape, (4, 128))
        with self.assertRaisesRegex(fp8.Error, "amax_epsilon"):
            fp8.torch.quantize_for_inference(make_model(), "current,amax_epsilon=-1")
        with torch.device("meta"), self.assertRaisesRegex(fp8.ArgumentError, "'0'.*meta"):
            fp8.torch.quantize_for_inference(make_model(), "current")
        with self.assertRaisesRegex(fp8.ArgumentError, "expected a batch"):
            fp8.torch.quantize_for_inference(make_model(), "current", ["text"])


if __name__ == "__main__":
    unittest.main()
