"""A decoder like Llama 3's, and its contenders: what it is trained with on several GPUs.

`Contender` is a model, its optimizer, and a step. Layers of bf16 and of torchao are compiled by torch.compile one by one, as their
users do; those of fp8 have what is between products compiled (`parts`), or are compiled as a whole (`layers`), where each product
is a break of the graph.
"""

import torch
import torch.distributed as dist
from distributed_parts import Cut
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard
from torch.nn import functional as F

import fp8.torch


def add_norm(x, y, weight):
    """The sum, and it normalized."""
    x = x + y
    return x, F.rms_norm(x, weight.shape, weight, 1e-5)


def rotate(x, angles):
    """Rotary embeddings of [batch, length, heads, size]."""
    cos, sin = (each[None, :, None].to(x.dtype) for each in (angles.cos(), angles.sin()))
    low, high = x.chunk(2, -1)
    return torch.cat([low * cos - high * sin, high * cos + low * sin], -1)


def attend(q, k, v, angles):
    size = 2 * angles.shape[1]
    q, k, v = (each.unflatten(-1, (-1, size)) for each in (q, k, v))
    q, k = rotate(q, angles), rotate(k, angles)
    q, k, v = (each.transpose(1, 2) for each in (q, k, v))
    return F.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True).transpose(1, 2).flatten(2)


def gate(x, y):
    return F.silu(x) * y


def get_loss(logits, targets):
    return F.cross_entropy(logits.float().flatten(0, 1), targets.flatten())


PARTS = add_norm, attend, gate, get_loss
_compiled = {}


def find_part(function, is_compiled):
    if not is_compiled:
        return function
    if function not in _compiled:
        _compiled[function] = torch.compile(function, dynamic=False)
    return _compiled[function]


class Layer(nn.Module):
    def __init__(self, args, compiles_parts):
        super().__init__()
        width, part = args.width, args.width // args.heads
        self.cut = None  # By tensor parallelism.
        self.before, self.between = nn.RMSNorm(width), nn.RMSNorm(width)
        self.q, self.o = (nn.Linear(width, width, bias=False) for _ in range(2))
        self.k, self.v = (nn.Linear(width, args.groups * part, bias=False) for _ in range(2))
        self.gate, self.up = (nn.Linear(width, args.wide, bias=False) for _ in range(2))
        self.down = nn.Linear(args.wide, width, bias=False)
        self.add_norm, self.attend, self.multiply = (find_part(each, compiles_parts) for each in (add_norm, attend, gate))

    def forward(self, x, y, angles):
        x, y = self.add_norm(x, y, self.before.weight)
        y = y if self.cut is None else self.cut.gather(y, self.q)
        y = self.o(self.attend(self.q(y), self.k(y), self.v(y), angles))
        y = y if self.cut is None else self.cut.wait(y)
        x, y = self.add_norm(x, y, self.between.weight)
        y = y if self.cut is None else self.cut.gather(y, self.up)
        y = self.down(self.multiply(self.gate(y), self.up(y)))
        return x, y if self.cut is None else self.cut.wait(y)


class Decoder(nn.Module):
    def __init__(self, args, compiles_parts=False):
        super().__init__()
        self.part, self.cut = args.width // args.heads, None
        self.embedding = nn.Embedding(args.words, args.width)
        self.layers = nn.ModuleList(Layer(args, compiles_parts) for _ in range(args.layers))
        self.norm, self.head = nn.RMSNorm(args.width), nn.Linear(args.width, args.words, bias=False)
        self.get_loss, self.add_norm = (find_part(each, True) for each in (get_loss, add_norm))
        self.initialize()

    @torch.no_grad()
    def initialize(self):
        for parameter in self.parameters():
            if parameter.ndim == 2:
                parameter.normal_(std=0.02)

    def forward(self, tokens):
        tokens, targets = tokens[:, :-1], tokens[:, 1:]
        places = torch.arange(tokens.shape[1], device=tokens.device, dtype=torch.float32)
        rates = 500000 ** (-torch.arange(0, self.part, 2, device=tokens.device, dtype=torch.float32) / self.part)
        angles = torch.outer(places, rates)
        x = self.embedding(tokens if self.cut is None else self.cut.take_inputs(tokens))
        y = torch.zeros_like(x)
        for layer in self.layers:
            x, y = layer(x, y, angles)
        y = self.add_norm(x, y, self.norm.weight)[1]
        if self.cut is not None:
            y, targets = self.cut.take_outputs(y), self.cut.take(targets)
        return self.get_loss(self.head(y), targets.contiguous())


def convert_torchao(model, gathers, recipe):
    from torchao.float8 import Float8LinearConfig, convert_to_float8_training
    if recipe == "rowwise":
        config = Float8LinearConfig.from_recipe_name("rowwise")
    else:
        config = Float8LinearConfig(enable_fsdp_float8_all_gather=gathers, emulate=not torch.cuda.is_available())
    convert_to_float8_training(model, config=config, module_filter_fn=lambda layer, name: name.startswith("layers."))


class Contender:
    """What a case is: `library` bf16, torchao or fp8; its `recipe`; whether weights are gathered as codes (`gathers`);
    `sharding` fsdp, hsdp, ddp or none; `compiles` parts, layers or nothing; `dtype` of parameters; how many ranks a layer is
    cut for (`parts`, 0 for all), also along the sequence (`sequence`), and whether activations are gathered as codes (`codes`)."""

    def __init__(self, args, device, library="bf16", recipe=None, gathers=False, sharding="fsdp", compiles=None,
                 dtype=torch.float32, parts=1, sequence=False, codes=False):
        self.library, self.gathers, self.sharding = library, gathers, sharding
        compiles = compiles or ("parts" if library == "fp8" else "layers")
        self.mesh = self.make_mesh(device, parts or dist.get_world_size())
        torch.manual_seed(0)
        with torch.device(device):
            model = Decoder(args, compiles == "parts").to(dtype)
        if library == "torchao":
            convert_torchao(model, gathers, recipe)
        if library == "fp8":
            fp8.torch.convert_to_fp8_training(model, recipe, filter=["layers.*"], first_last_bf16=0, only_faster=False)
        self.cut = Cut(model, self.mesh["parts"], library, sequence, codes) if self.parts > 1 else None
        if library == "fp8":
            if gathers:
                fp8.torch.gather_in_fp8(model)
            fp8.torch.prepare(model, rows=[args.batch * args.length], dtype=torch.bfloat16, device=device)
        for place, layer in enumerate(model.layers):
            if compiles == "layers":
                for each in layer.modules():
                    if isinstance(each, fp8.torch.Linear):
                        each.forward = torch.compiler.disable(each.forward)
                model.layers[place] = torch.compile(layer, dynamic=False)
        self.holder, self.dtype = model, dtype
        self.model = self.shard(model)
        self.optimizer = torch.optim.AdamW(self.group_parameters(), 1e-4, fused=True)

    def make_mesh(self, device, parts):
        """Has data and parts; with HSDP data are replicas and shards."""
        self.parts, world = parts, dist.get_world_size()
        names = ("replicas", "data", "parts") if self.sharding == "hsdp" else ("data", "parts")
        sizes = (2, world // 2, 1) if self.sharding == "hsdp" else (world // parts, parts)
        return init_device_mesh(device.type, sizes, mesh_dim_names=names)

    def group_parameters(self):
        """One step of an optimizer is of tensors of one kind, on one mesh."""
        groups = {}
        for each in self.model.parameters():
            groups.setdefault(getattr(each, "device_mesh", None), []).append(each)
        return [{"params": each} for each in groups.values()]

    def shard(self, model):
        if self.sharding == "ddp":
            return nn.parallel.DistributedDataParallel(model, gradient_as_bucket_view=True)
        if self.sharding in ("fsdp", "hsdp"):
            policy = MixedPrecisionPolicy(param_dtype=torch.bfloat16, reduce_dtype=torch.float32)
            mesh = self.mesh["replicas", "data"] if self.sharding == "hsdp" else self.mesh["data"]
            options = {"mesh": mesh, **({"mp_policy": policy} if self.dtype == torch.float32 else {})}
            for layer in model.layers:
                fully_shard(layer, **options)
            fully_shard(model, **options)
        return model

    def find_data(self, rank):
        """Whose batch a rank has: ranks of one layer's parts have the same."""
        return rank // self.parts

    def step(self, tokens):
        if self.library == "fp8":
            with fp8.torch.accumulated(self.holder):
                loss = self.compute(tokens)
        else:
            loss = self.compute(tokens)
        if self.cut is not None:
            self.cut.reduce(self.holder)
        self.optimizer.step()
        self.optimizer.zero_grad()
        if self.library == "fp8" and (self.gathers or self.cut is not None):
            fp8.torch.precompute_scales(self.holder)
        elif self.gathers:
            from torchao.float8 import precompute_float8_dynamic_scale_for_fsdp
            precompute_float8_dynamic_scale_for_fsdp(self.holder)
        return loss

    def compute(self, tokens):
        needs_cast = self.sharding not in ("fsdp", "hsdp") and self.dtype == torch.float32
        with torch.autocast(tokens.device.type, torch.bfloat16, enabled=needs_cast):
            loss = self.model(tokens) / self.parts
        loss.backward()
        return loss.detach()
