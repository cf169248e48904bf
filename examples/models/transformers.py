"""A BERT, a Llama and a ViT of two layers in plain torch.nn: the structure of the real
ones, at a width of 256. Each function returns a module and its arguments, as
from_pytorch.py takes them; `make_tensor` makes the parameters.
"""

import sys
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import nn

sys.path.insert(0, str(Path(__file__).parent))
from weights import make_input, make_tensor

WIDTH, HIDDEN, HEADS, LAYERS, TOKENS = 256, 512, 4, 2, 64


class Attention(nn.Module):
    """Grouped where there are fewer heads of keys and values than of queries."""

    def __init__(self, kv_heads=HEADS, bias=True, causal=False):
        super().__init__()
        self.depth, self.kv_heads, self.causal = WIDTH // HEADS, kv_heads, causal
        self.q = nn.Linear(WIDTH, WIDTH, bias)
        self.k = nn.Linear(WIDTH, kv_heads * self.depth, bias)
        self.v = nn.Linear(WIDTH, kv_heads * self.depth, bias)
        self.out = nn.Linear(WIDTH, WIDTH, bias)

    def forward(self, x, mask=None, rotate=None):
        batch, tokens, _ = x.shape

        def split(projected):
            return projected.view(batch, tokens, -1, self.depth).transpose(1, 2)

        q, k, v = split(self.q(x)), split(self.k(x)), split(self.v(x))
        if rotate:
            q, k = rotate(q), rotate(k)
        k = k.repeat_interleave(HEADS // self.kv_heads, dim=1)
        v = v.repeat_interleave(HEADS // self.kv_heads, dim=1)
        y = F.scaled_dot_product_attention(q, k, v, attn_mask=mask, is_causal=self.causal)
        return self.out(y.transpose(1, 2).reshape(batch, tokens, WIDTH))


class Mlp(nn.Module):
    def __init__(self):
        super().__init__()
        self.up = nn.Linear(WIDTH, HIDDEN)
        self.down = nn.Linear(HIDDEN, WIDTH)

    def forward(self, x):
        return self.down(F.gelu(self.up(x)))


# ---- BERT: norms after the sums, a mask of padding, a pooler ----


class BertLayer(nn.Module):
    def __init__(self):
        super().__init__()
        self.attention, self.attention_norm = Attention(), nn.LayerNorm(WIDTH)
        self.mlp, self.mlp_norm = Mlp(), nn.LayerNorm(WIDTH)

    def forward(self, x, mask):
        x = self.attention_norm(x + self.attention(x, mask))
        return self.mlp_norm(x + self.mlp(x))


class Bert(nn.Module):
    def __init__(self):
        super().__init__()
        self.tokens = nn.Embedding(100, WIDTH)
        self.positions = nn.Embedding(TOKENS, WIDTH)
        self.norm = nn.LayerNorm(WIDTH)
        self.layers = nn.ModuleList(BertLayer() for _ in range(LAYERS))
        self.pooler = nn.Linear(WIDTH, WIDTH)

    def forward(self, tokens):
        x = self.tokens(tokens) + self.positions(torch.arange(tokens.shape[1]))
        x = self.norm(x)
        # Token 0 is padding.
        mask = (tokens != 0)[:, None, None, :]
        for layer in self.layers:
            x = layer(x, mask)
        return torch.tanh(self.pooler(x[:, 0]))


# ---- Llama: RMS norms, rotary positions, grouped queries, a gated MLP ----


class GatedMlp(nn.Module):
    def __init__(self):
        super().__init__()
        self.gate = nn.Linear(WIDTH, HIDDEN, bias=False)
        self.up = nn.Linear(WIDTH, HIDDEN, bias=False)
        self.down = nn.Linear(HIDDEN, WIDTH, bias=False)

    def forward(self, x):
        return self.down(F.silu(self.gate(x)) * self.up(x))


class LlamaLayer(nn.Module):
    def __init__(self):
        super().__init__()
        self.attention_norm = nn.RMSNorm(WIDTH, eps=1e-5)
        self.attention = Attention(kv_heads=2, bias=False, causal=True)
        self.mlp_norm = nn.RMSNorm(WIDTH, eps=1e-5)
        self.mlp = GatedMlp()

    def forward(self, x, rotate):
        x = x + self.attention(self.attention_norm(x), rotate=rotate)
        return x + self.mlp(self.mlp_norm(x))


class Llama(nn.Module):
    def __init__(self):
        super().__init__()
        self.tokens = nn.Embedding(100, WIDTH)
        self.layers = nn.ModuleList(LlamaLayer() for _ in range(LAYERS))
        self.norm = nn.RMSNorm(WIDTH, eps=1e-5)
        self.head = nn.Linear(WIDTH, 100, bias=False)

    def forward(self, tokens):
        depth = WIDTH // HEADS
        frequencies = 10000.0 ** -(torch.arange(0, depth, 2) / depth)
        angles = torch.outer(torch.arange(tokens.shape[1], dtype=torch.float32), frequencies)
        cos, sin = torch.cat([angles, angles], -1).cos(), torch.cat([angles, angles], -1).sin()

        def rotate(x):
            low, high = x.chunk(2, dim=-1)
            return x * cos + torch.cat([-high, low], dim=-1) * sin

        x = self.tokens(tokens)
        for layer in self.layers:
            x = layer(x, rotate)
        return self.head(self.norm(x))


# ---- ViT: patches by a convolution, a class token, norms before ----


class VitLayer(nn.Module):
    def __init__(self):
        super().__init__()
        self.attention_norm, self.attention = nn.LayerNorm(WIDTH), Attention()
        self.mlp_norm, self.mlp = nn.LayerNorm(WIDTH), Mlp()

    def forward(self, x):
        x = x + self.attention(self.attention_norm(x))
        return x + self.mlp(self.mlp_norm(x))


class Vit(nn.Module):
    def __init__(self):
        super().__init__()
        self.patches = nn.Conv2d(3, WIDTH, kernel_size=16, stride=16)
        self.class_token = nn.Parameter(torch.zeros(1, 1, WIDTH))
        self.positions = nn.Parameter(torch.zeros(1, 17, WIDTH))
        self.layers = nn.ModuleList(VitLayer() for _ in range(LAYERS))
        self.norm = nn.LayerNorm(WIDTH)
        self.head = nn.Linear(WIDTH, 100)

    def forward(self, images):
        x = self.patches(images).flatten(2).transpose(1, 2)
        x = torch.cat([self.class_token.expand(x.shape[0], -1, -1), x], dim=1)
        x = x + self.positions
        for layer in self.layers:
            x = layer(x)
        return self.head(self.norm(x[:, 0]))


def fill(module):
    with torch.no_grad():
        for name, parameter in module.named_parameters():
            parameter.copy_(torch.from_numpy(make_tensor(name, tuple(parameter.shape))))
    return module.eval()


def bert():
    return fill(Bert()), (torch.from_numpy(make_input("tokens", (2, TOKENS), "i64")),)


def llama():
    return fill(Llama()), (torch.from_numpy(make_input("tokens", (2, TOKENS), "i64")),)


def vit():
    return fill(Vit()), (torch.from_numpy(make_input("images", (2, 3, 64, 64), "f32")),)
