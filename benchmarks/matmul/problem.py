"""A matmul with random operands, and what it should give."""

import math

import torch

from matmul.epilogues import EPILOGUES
from matmul.program import BATCHES, is_transposed

DTYPES = {"e4m3": torch.float8_e4m3fn, "e5m2": torch.float8_e5m2,
          "bf16": torch.bfloat16, "f16": torch.float16, "f32": torch.float32}
GUARD = 4096  # Elements on either side of the result that no kernel may touch.


class Operands:
    """A, B and their factors. `spec` gives types and factors; problems of other
    results and epilogues may share them."""

    def __init__(self, spec, m, n, k, seed=0):
        self.m, self.n, self.k = m, n, k
        self.batch = BATCHES if spec["batched"] else 1
        self.generator = torch.Generator("cuda").manual_seed(seed)
        self.a = self.operand(spec, "a", m)
        self.b = self.operand(spec, "b", n)
        self.scale_a = self.factors(m, spec["scale_a"])
        self.scale_b = self.factors(n, spec["scale_b"])

    def random(self, *shape, dtype=None):
        return torch.randn(*shape, device="cuda", generator=self.generator,
                           dtype=dtype or torch.bfloat16)

    def operand(self, spec, name, rows):
        """rows x K, of which `spec` says what is innermost in memory."""
        dtype = DTYPES[spec[name]]
        drawn = torch.float32 if dtype.itemsize == 4 or dtype == torch.float16 else None
        if is_transposed(spec, name):
            return self.random(self.batch, self.k, rows, dtype=drawn).to(dtype).transpose(1, 2)
        return self.random(self.batch, rows, self.k, dtype=drawn).to(dtype)

    def factors(self, rows, scale):
        if scale == "none":
            return torch.ones(1, 1, 1, device="cuda")
        blocks = math.ceil(self.k / 128)
        shape = {"tensor": (1, 1), "row": (rows, 1), "1x128": (rows, blocks),
                 "128x128": (math.ceil(rows / 128), blocks)}[scale]
        values = torch.rand(self.batch, *shape, device="cuda",
                            generator=self.generator) + 0.5
        if scale == "tensor":
            return values[:1].expand(self.batch, 1, 1)
        if scale == "1x128":  # M-major, as cuBLASLt wants them too; lines of 16 bytes.
            stored = values.new_zeros(self.batch, blocks, -(-rows // 4) * 4)[..., :rows]
            return stored.copy_(values.transpose(1, 2)).transpose(1, 2)
        return values


class Problem:
    """Operands, the epilogue's operands, and memory for the result."""

    def __init__(self, spec, operands):
        self.spec = spec
        for name in ("m", "n", "k", "batch", "a", "b", "scale_a", "scale_b"):
            setattr(self, name, getattr(operands, name))
        m, n = self.m, self.n
        self.epilogue = EPILOGUES[spec["epilogue"]] or {"operands": []}
        self.quantized = self.epilogue.get("quantize", False)
        self.operands = []
        for dims, dtype in self.epilogue["operands"]:
            shape = {"n": (n,), "m": (m, 1), "mn": (m, n)}[dims]
            self.operands.append(operands.random(*shape).to(DTYPES[dtype]))
        self.scale = 3.0 / math.sqrt(self.k) * 8
        size = self.batch * m * n
        dtype = DTYPES[spec["result"]]
        self.storage = torch.full(((size + 2 * GUARD) * dtype.itemsize,), 0xFF,
                                  device="cuda", dtype=torch.uint8)
        self.result = self.storage.view(dtype)[GUARD:GUARD + size].view(
            self.batch, m, n)
        self.amax = torch.zeros(1, device="cuda")

    def transposed(self, name):
        """Whether the operand's rows are innermost in memory, not K."""
        return is_transposed(self.spec, name)

    def poison(self):
        self.storage.fill_(0xFF)
        self.amax.zero_()
        if self.spec["epilogue"] == "accumulate":
            self.result.copy_(self.operands[0])

    def guards_intact(self):
        edge = GUARD * self.result.element_size()
        return bool((self.storage[:edge] == 0xFF).all()
                    and (self.storage[-edge:] == 0xFF).all())

    def dequantized(self, which):
        """An operand as f64."""
        payload, scale = getattr(self, which), getattr(self, f"scale_{which}").double()
        rows = payload.shape[1]
        if self.spec[f"scale_{which}"] == "128x128":
            scale = scale.repeat_interleave(128, 1)[:, :rows]
        if scale.shape[2] > 1:
            scale = scale.repeat_interleave(128, 2)[:, :, :self.k]
        return payload.double() * scale

    def reference(self):
        """In f64: what the epilogue yields (its amax is measured), and the
        result before it is rounded."""
        x = self.dequantized("a") @ self.dequantized("b").transpose(1, 2)
        o = [t.double() for t in self.operands]
        gelu = torch.nn.functional.gelu
        x = {
            "none": lambda: x,
            "quantize": lambda: x,
            "bias_relu": lambda: torch.relu(x + o[0]),
            "residual_silu": lambda: torch.nn.functional.silu(x + o[0]),
            "gate": lambda: x * o[0] + o[1],
            "gelu_tanh": lambda: gelu(x, approximate="tanh"),
            "bias_gelu": lambda: gelu(x + o[0]),
            "bias_gelu_tanh": lambda: gelu(x + o[0], approximate="tanh"),
            "accumulate": lambda: x + o[0],
        }[self.spec["epilogue"].replace("_quantize", "")]()
        if not self.quantized:
            return x, x
        limit = torch.finfo(DTYPES[self.spec["result"]]).max
        return x, (x * self.scale).clamp(-limit, limit)
