"""Models of other libraries than transformers for unseen.py, and what torch.nn has besides layers: timm, torchvision, diffusers, graphs,
recurrent networks, and models that people publish as packages. A library that is not there is an error of its own models."""

import torch
from torch import nn
from torch.nn import functional as F
from unseen_models import Sizes, drop_nothing

# By name: a function of Sizes that makes (model, inputs).
MODELS = {}


def add(function):
    MODELS[function.__name__] = function
    return function


def get_images(sizes, size=32, channels=3):
    return torch.randn(sizes.batch, channels, size, size)


def _add_timm(name, size=32, **options):
    def make_timm(sizes):
        import timm
        return timm.create_model(name, pretrained=False, num_classes=sizes.labels, **options), {"x": get_images(sizes, size)}
    MODELS[f"timm_{name}"] = make_timm


for _name, _size, _options in (
        ("vit_tiny_patch16_224", 32, {"img_size": 32, "embed_dim": 48, "depth": 2, "num_heads": 3}),
        ("convnext_atto", 64, {"depths": (1, 1, 1, 1), "dims": (16, 24, 32, 40)}),
        ("swin_tiny_patch4_window7_224", 56, {"img_size": 56, "embed_dim": 24, "depths": (1, 1), "num_heads": (1, 3)}),
        ("mobilenetv3_small_050", 64, {}), ("xcit_nano_12_p16_224", 32, {"img_size": 32, "depth": 2})):
    _add_timm(_name, _size, **_options)


def _add_mixer(name, **options):
    def make_mixer(sizes):
        from timm.models import mlp_mixer
        model = mlp_mixer.MlpMixer(num_classes=sizes.labels, img_size=32, patch_size=8, num_blocks=2, embed_dim=48,
                                   block_layer=getattr(mlp_mixer, name), **options)
        return model, {"x": get_images(sizes)}
    MODELS[f"timm_{name.lower()}"] = make_mixer


for _name, _options in (("MixerBlock", {}), ("ResBlock", {"mlp_ratio": 2}), ("SpatialGatingBlock", {"mlp_ratio": 4})):
    _add_mixer(_name, **_options)


@add
def torchvision_swin(sizes):
    from torchvision.models import SwinTransformer
    return SwinTransformer([4, 4], 24, [1, 1], [2, 2], [4, 4], num_classes=sizes.labels), {"x": get_images(sizes)}


@add
def torchvision_resnet(sizes):
    from torchvision.models.resnet import BasicBlock, ResNet
    return ResNet(BasicBlock, [1, 1, 1, 1], num_classes=sizes.labels), {"x": get_images(sizes, 33)}


@add
def torchvision_vit(sizes):
    from torchvision.models import VisionTransformer
    return VisionTransformer(32, 16, 2, 2, 48, 96, num_classes=sizes.labels), {"x": get_images(sizes)}


def _get_noisy(sizes, size=16, channels=4):
    return {"hidden_states": get_images(sizes, size, channels), "timestep": torch.full((sizes.batch,), 7)}


@add
def diffusers_unet(sizes):
    from diffusers import UNet2DConditionModel
    model = UNet2DConditionModel(
        sample_size=16, block_out_channels=(16, 32), layers_per_block=1, cross_attention_dim=24, attention_head_dim=8,
        norm_num_groups=8, down_block_types=("CrossAttnDownBlock2D", "DownBlock2D"),
        up_block_types=("UpBlock2D", "CrossAttnUpBlock2D"))
    return model, {"sample": get_images(sizes, 16, 4), "timestep": 7, "encoder_hidden_states": torch.randn(sizes.batch, 7, 24)}


@add
def diffusers_dit(sizes):
    from diffusers import DiTTransformer2DModel
    model = DiTTransformer2DModel(num_attention_heads=2, attention_head_dim=24, in_channels=4, num_layers=2, sample_size=8,
                                  num_embeds_ada_norm=10)
    return model, {**_get_noisy(sizes, 8), "class_labels": torch.randint(10, (sizes.batch,))}


@add
def diffusers_sd3(sizes):
    from diffusers import SD3Transformer2DModel
    model = SD3Transformer2DModel(
        sample_size=8, num_layers=2, attention_head_dim=8, num_attention_heads=3, joint_attention_dim=24, caption_projection_dim=24,
        pooled_projection_dim=20, in_channels=4, out_channels=4, pos_embed_max_size=8)
    return model, {**_get_noisy(sizes, 8), "encoder_hidden_states": torch.randn(sizes.batch, 7, 24),
                   "pooled_projections": torch.randn(sizes.batch, 20)}


@add
def diffusers_flux(sizes):
    from diffusers import FluxTransformer2DModel
    model = FluxTransformer2DModel(in_channels=4, num_layers=1, num_single_layers=1, attention_head_dim=16, num_attention_heads=2,
                                   joint_attention_dim=24, pooled_projection_dim=20, axes_dims_rope=(4, 4, 8))
    return model, {"hidden_states": torch.randn(sizes.batch, 9, 4), "encoder_hidden_states": torch.randn(sizes.batch, 7, 24),
                   "pooled_projections": torch.randn(sizes.batch, 20), "timestep": torch.full((sizes.batch,), 0.5),
                   "img_ids": torch.zeros(9, 3), "txt_ids": torch.zeros(7, 3)}


@add
def diffusers_vae(sizes):
    from diffusers import AutoencoderKL
    model = AutoencoderKL(block_out_channels=(8, 16), norm_num_groups=4, latent_channels=4,
                          down_block_types=("DownEncoderBlock2D",) * 2, up_block_types=("UpDecoderBlock2D",) * 2)
    return model, {"sample": get_images(sizes, 16)}


@add
def diffusers_pixart(sizes):
    from diffusers import PixArtTransformer2DModel
    model = PixArtTransformer2DModel(num_attention_heads=2, attention_head_dim=24, in_channels=4, out_channels=8, num_layers=2,
                                     sample_size=8, cross_attention_dim=48, caption_channels=20)
    return model, {**_get_noisy(sizes, 8), "encoder_hidden_states": torch.randn(sizes.batch, 7, 20),
                   "added_cond_kwargs": {"resolution": None, "aspect_ratio": None}}


@add
def torch_transformer(sizes):
    """Encoder and decoder of torch.nn, with a causal mask."""
    model = nn.Transformer(48, 3, 1, 1, 80, 0.0, batch_first=True)
    return model, {"src": torch.randn(sizes.batch, sizes.length, 48), "tgt": torch.randn(sizes.batch, 11, 48),
                   "tgt_mask": torch.triu(torch.ones(11, 11, dtype=torch.bool), 1), "tgt_is_causal": True}


class Tagger(nn.Module):
    """A recurrent network between an embedding and a layer."""

    def __init__(self, kind, words, width):
        super().__init__()
        self.embedding, self.cells = nn.Embedding(words, width), kind(width, 40, 2, batch_first=True, bidirectional=True)
        self.wide, self.out = nn.Linear(80, 96), nn.Linear(96, words)

    def forward(self, tokens):
        y = self.out(torch.tanh(self.wide(self.cells(self.embedding(tokens))[0])))
        return F.cross_entropy(y.float().flatten(0, 1), tokens.flatten())


@add
def torch_lstm(sizes):
    return Tagger(nn.LSTM, sizes.words, 48), {"tokens": sizes.get_tokens()["input_ids"]}


@add
def torch_gru(sizes):
    return Tagger(nn.GRU, sizes.words, 48), {"tokens": sizes.get_tokens()["input_ids"]}


class Cells(nn.Module):
    """Cells called step by step, whose layers are called many times in a step."""

    def __init__(self, width):
        super().__init__()
        self.x, self.h, self.out = nn.Linear(width, 64), nn.Linear(64, 64, bias=False), nn.Linear(64, width)

    def forward(self, x):
        h = torch.zeros(x.shape[0], 64, dtype=x.dtype)
        outputs = []
        for each in x.unbind(1):
            h = torch.tanh(self.x(each) + self.h(h))
            outputs.append(self.out(h))
        return torch.stack(outputs, 1)


@add
def torch_cells(sizes):
    return Cells(48), {"x": torch.randn(sizes.batch, 7, 48)}


@add
def torch_siamese(sizes):
    """Layers that share a weight, and one called twice."""
    class Siamese(nn.Module):
        def __init__(self):
            super().__init__()
            self.a, self.b = nn.Linear(48, 64), nn.Linear(48, 64)
            self.b.weight = self.a.weight

        def forward(self, x, y):
            return F.normalize(self.a(x), dim=-1) @ F.normalize(self.b(y), dim=-1).mT + self.a(y).sum(-1)
    return Siamese(), {"x": torch.randn(sizes.length, 48), "y": torch.randn(sizes.length, 48)}


@add
def torch_parametrized(sizes):
    """Weights that are made of others: low rank, and a norm."""
    class Low(nn.Module):
        def __init__(self, n, k):
            super().__init__()
            self.down = nn.Parameter(torch.randn(n, 3) * 0.1)

        def forward(self, weight):
            return weight + self.down @ self.down.mT[:, :1] @ torch.ones(1, weight.shape[1], dtype=weight.dtype)
    first, second = nn.Linear(48, 64), nn.Linear(64, 48)
    nn.utils.parametrize.register_parametrization(first, "weight", Low(64, 48))
    return nn.Sequential(first, nn.GELU(), nn.utils.parametrizations.weight_norm(second)), {
        "input": torch.randn(sizes.length, 48)}


@add
def torch_experts(sizes):
    """Experts as a list of layers, some of which get no tokens."""
    class Experts(nn.Module):
        def __init__(self):
            super().__init__()
            self.router = nn.Linear(48, 5)
            self.experts = nn.ModuleList(nn.Sequential(nn.Linear(48, 64), nn.SiLU(), nn.Linear(64, 48)) for _ in range(5))

        def forward(self, x):
            gates, chosen = self.router(x).float().softmax(-1).max(-1)
            y = torch.zeros_like(x)
            for place, expert in enumerate(self.experts):
                rows = (chosen == place).nonzero()[:, 0]
                y = y.index_add(0, rows, expert(x[rows]) * gates[rows, None].to(x.dtype))
            return y
    return Experts(), {"x": torch.randn(7, 48)}


def _get_graph():
    return torch.tensor([[0, 1, 2, 3, 4, 5, 6, 0, 2, 4], [1, 2, 3, 4, 5, 6, 0, 3, 5, 0]])


def _make_graph(kind, **options):
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            import torch_geometric.nn as layers
            self.a, self.b = (getattr(layers, kind)(48, 48, **options) for _ in range(2))
            self.out = nn.Linear(48, 9)

        def forward(self, x, edges):
            return self.out(F.relu(self.b(F.relu(self.a(x, edges)), edges)))
    return lambda sizes: (Net(), {"x": torch.randn(7, 48), "edges": _get_graph()})


for _name, _options in (("GCNConv", {}), ("GATConv", {"heads": 3, "concat": False}), ("SAGEConv", {}),
                        ("TransformerConv", {"heads": 2, "concat": False}), ("GraphConv", {}), ("TAGConv", {})):
    MODELS[f"graph_{_name.lower()}"] = _make_graph(_name, **_options)


@add
def vit_pytorch_vit(sizes):
    from vit_pytorch import ViT
    return ViT(image_size=32, patch_size=8, num_classes=sizes.labels, dim=48, depth=2, heads=3, mlp_dim=80, dim_head=16), {
        "img": get_images(sizes)}


@add
def vit_pytorch_simple(sizes):
    from vit_pytorch import SimpleViT
    return SimpleViT(image_size=32, patch_size=8, num_classes=sizes.labels, dim=48, depth=2, heads=3, mlp_dim=80, dim_head=16), {
        "img": get_images(sizes)}


@add
def vit_pytorch_cait(sizes):
    from vit_pytorch.cait import CaiT
    return CaiT(image_size=32, patch_size=8, num_classes=sizes.labels, dim=48, depth=1, cls_depth=1, heads=3, mlp_dim=80,
                dim_head=16), {"img": get_images(sizes)}


def _make_words(sizes, **options):
    from x_transformers import Decoder, TransformerWrapper
    model = TransformerWrapper(num_tokens=sizes.words, max_seq_len=64,
                               attn_layers=Decoder(dim=48, depth=2, heads=3, attn_dim_head=16, **options))
    return model, {"x": sizes.get_tokens()["input_ids"]}


@add
def x_transformers_rotary(sizes):
    return _make_words(sizes, rotary_pos_emb=True, ff_glu=True, use_rmsnorm=True)


@add
def x_transformers_grouped(sizes):
    return _make_words(sizes, alibi_pos_bias=True, attn_kv_heads=1, attn_qk_norm=True, ff_swish=True, sandwich_norm=True)


@add
def segmentation_unet(sizes):
    import segmentation_models_pytorch as models
    return models.Unet("resnet18", encoder_weights=None, encoder_depth=3, decoder_channels=(16, 8, 8), classes=3), {
        "x": get_images(sizes, 32)}


@add
def segmentation_segformer(sizes):
    import segmentation_models_pytorch as models
    return models.Segformer("mit_b0", encoder_weights=None, decoder_segmentation_channels=24, classes=3), {"x": get_images(sizes, 64)}


@add
def sentence_encoder(sizes):
    """A transformer, a mean over tokens and a layer, as sentence-transformers has them."""
    import transformers
    from sentence_transformers.models import Dense, Pooling

    class Encoder(nn.Module):
        def __init__(self):
            super().__init__()
            self.words = transformers.BertModel(transformers.BertConfig(
                vocab_size=sizes.words, hidden_size=48, num_hidden_layers=1, num_attention_heads=3, intermediate_size=80))
            self.pooling, self.dense = Pooling(48), Dense(48, 32)

        def forward(self, input_ids, attention_mask):
            features = {"token_embeddings": self.words(input_ids, attention_mask).last_hidden_state, "attention_mask": attention_mask}
            return self.dense(self.pooling(features))["sentence_embedding"]
    tokens = sizes.get_tokens()["input_ids"]
    return Encoder(), {"input_ids": tokens, "attention_mask": torch.ones_like(tokens)}


def make(name, is_odd=False):
    """(model, inputs) in bf16, without dropout."""
    torch.manual_seed(0)
    model, inputs = MODELS[name](Sizes(is_odd))
    inputs = {key: value.bfloat16() if isinstance(value, torch.Tensor) and value.is_floating_point() else value
              for key, value in inputs.items()}
    # Heads that begin as zeros would have no gradient in front of them.
    for parameter in model.parameters():
        if parameter.ndim > 1 and not parameter.any():
            nn.init.normal_(parameter, std=0.05)
    return drop_nothing(model.bfloat16().train()), inputs
