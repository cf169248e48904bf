"""Models for found.py: what people download or write, at widths that they have, a few layers each. None of them is in zoo.py or was
in unseen_gpu.py. Each is a function of Sizes that makes (model, inputs); `is_small` has the same structures for a CPU."""

import collections
import math

import torch
from torch import nn
from torch.nn import functional as F

Output = collections.namedtuple("Output", ["loss", "logits"])


class Sizes:
    def __init__(self, is_small, device):
        self.is_small, self.device, self.words = is_small, device, 128 if is_small else 32000

    def pick(self, small, large):
        return small if self.is_small else large

    def get_tokens(self, batch, length):
        tokens = torch.randint(6, self.words, (self.pick(2, batch), self.pick(32, length)), device=self.device)
        return {"input_ids": tokens, "labels": tokens}

    def get_images(self, batch, size):
        return torch.randn(self.pick(2, batch), 3, size, size, device=self.device).bfloat16()


def _get_ids():
    return {"pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2}


def _make_causal(kind, sizes, batch, length, small, large, **others):
    import transformers
    names = "hidden_size", "intermediate_size", "num_attention_heads", "num_key_value_heads", "num_hidden_layers"
    found = dict(zip(names, sizes.pick(small, large), strict=True))
    config = getattr(transformers, f"{kind}Config")(vocab_size=sizes.words, **_get_ids(), **{**found, **others})
    return getattr(transformers, f"{kind}ForCausalLM")(config), sizes.get_tokens(batch, length)


def make_qwen2(sizes):
    """Qwen 2.5 7B: biases of q, k and v, 28 heads, K of 18944."""
    return _make_causal("Qwen2", sizes, 2, 2048, (96, 160, 3, 1, 2), (3584, 18944, 28, 4, 2))


def make_smollm3(sizes):
    """Every fourth layer has no rotary embedding."""
    return _make_causal("SmolLM3", sizes, 4, 2048, (64, 128, 4, 2, 4), (2048, 11008, 16, 4, 4))


def make_phi(sizes):
    """Phi 2: rotary embeddings of 0.4 of a head of 80, attention and MLP beside each other."""
    return _make_causal("Phi", sizes, 4, 1024, (80, 160, 2, 2, 2), (2560, 10240, 32, 32, 3), partial_rotary_factor=0.4)


def make_olmoe(sizes):
    """64 experts, 8 of them a token."""
    return _make_causal("Olmoe", sizes, 2, 2048, (64, 48, 2, 2, 2), (2048, 1024, 16, 16, 2), num_experts=sizes.pick(8, 64),
                        num_experts_per_tok=sizes.pick(2, 8))


def make_glm4_moe(sizes):
    """A dense layer, and experts with one that all tokens go to; chosen by sigmoids."""
    return _make_causal("Glm4Moe", sizes, 2, 2048, (64, 128, 4, 2, 2), (2048, 5504, 32, 4, 3), head_dim=sizes.pick(16, 128),
                        n_routed_experts=sizes.pick(4, 32), num_experts_per_tok=sizes.pick(2, 4), n_group=1, topk_group=1,
                        moe_intermediate_size=sizes.pick(48, 1408), first_k_dense_replace=1, use_qk_norm=True)


def make_llama4(sizes):
    """Scout's: batched products of experts that all have room for all tokens, chunks of attention, no rotary embedding in some."""
    import transformers
    config = transformers.Llama4TextConfig(
        vocab_size=sizes.words, **_get_ids(), hidden_size=sizes.pick(64, 2048), intermediate_size=sizes.pick(128, 4096),
        intermediate_size_mlp=sizes.pick(128, 8192), num_hidden_layers=2, num_attention_heads=sizes.pick(4, 16),
        num_key_value_heads=sizes.pick(2, 4), head_dim=sizes.pick(16, 128), num_local_experts=sizes.pick(4, 8),
        attention_chunk_size=sizes.pick(16, 8192))
    return transformers.Llama4ForCausalLM(config), sizes.get_tokens(2, 1024)


def make_gemma3n(sizes):
    """Several streams of residuals, embeddings of each layer, layers that share keys and values, gates that cut activations off."""
    import transformers
    config = transformers.Gemma3nTextConfig(
        vocab_size=sizes.words, vocab_size_per_layer_input=sizes.words, **_get_ids(), hidden_size=sizes.pick(64, 2048),
        hidden_size_per_layer_input=sizes.pick(16, 256), intermediate_size=sizes.pick(128, 8192), num_hidden_layers=5,
        num_attention_heads=sizes.pick(4, 8), num_key_value_heads=2, head_dim=sizes.pick(16, 256),
        sliding_window=sizes.pick(16, 512), num_kv_shared_layers=0, laurel_rank=sizes.pick(16, 64), activation_sparsity_pattern=[0.95] * 2 + [0.0] * 3)
    return transformers.Gemma3nForCausalLM(config), sizes.get_tokens(2, 1024)


def make_qwen3_next(sizes):
    """Gated delta rule in three of four layers, gated attention with heads of 256, many small experts."""
    return _make_causal("Qwen3Next", sizes, 2, 512, (64, 128, 2, 1, 4), (2048, 5120, 16, 2, 4), head_dim=sizes.pick(32, 256),
                        num_experts=sizes.pick(4, 32), num_experts_per_tok=sizes.pick(2, 8), moe_intermediate_size=sizes.pick(32, 512),
                        shared_expert_intermediate_size=sizes.pick(32, 512), linear_num_value_heads=sizes.pick(2, 32),
                        linear_num_key_heads=sizes.pick(2, 16), linear_key_head_dim=sizes.pick(16, 128),
                        linear_value_head_dim=sizes.pick(16, 128))


def make_granite4(sizes):
    """Granite 4's hybrid: Mamba 2 and attention, experts and one that all tokens go to."""
    return _make_causal("GraniteMoeHybrid", sizes, 2, 512, (64, 48, 4, 2, 2), (1536, 512, 12, 4, 2), num_local_experts=sizes.pick(4, 32),
                        num_experts_per_tok=sizes.pick(2, 8), shared_intermediate_size=sizes.pick(64, 1024), mamba_n_heads=sizes.pick(4, 48),
                        mamba_d_head=sizes.pick(32, 64), mamba_d_state=sizes.pick(16, 128), mamba_n_groups=1,
                        mamba_chunk_size=sizes.pick(16, 256), layer_types=["mamba", "attention"])


def make_lfm2(sizes):
    """Short gated convolutions, and attention."""
    return _make_causal("Lfm2", sizes, 4, 2048, (64, 128, 4, 2, 4), (2048, 8192, 32, 8, 4),
                        layer_types=["conv", "conv", "full_attention", "conv"], block_auto_adjust_ff_dim=False)


def make_qwen2_5_vl(sizes):
    """Pictures as windows of patches in a row, and their tokens among those of text."""
    import transformers
    width = sizes.pick(64, 2048)
    side = 8 if sizes.is_small else 32  # Patches of a picture's side; four of them are a token.
    config = transformers.Qwen2_5_VLConfig(
        text_config={"vocab_size": sizes.words, **_get_ids(), "hidden_size": width, "intermediate_size": sizes.pick(128, 11008),
                     "num_hidden_layers": 2, "num_attention_heads": sizes.pick(4, 16), "num_key_value_heads": 2,
                     "rope_scaling": {"type": "mrope", "mrope_section": sizes.pick([2, 3, 3], [16, 24, 24])}},
        vision_config={"depth": 4, "hidden_size": sizes.pick(32, 1280), "intermediate_size": sizes.pick(64, 3420), "num_heads": sizes.pick(2, 16),
                       "out_hidden_size": width, "fullatt_block_indexes": [3], "patch_size": 14},
        image_token_id=3, video_token_id=4, vision_start_token_id=5)
    inputs = sizes.get_tokens(2, 1024)
    batch, places = len(inputs["input_ids"]), side * side // 4
    inputs["input_ids"][:, 0], inputs["input_ids"][:, 1:1 + places] = 5, 3
    inputs["labels"] = inputs["input_ids"].clone()
    inputs["pixel_values"] = torch.randn(batch * side * side, 3 * 2 * 14 * 14, device=sizes.device).bfloat16()
    inputs["image_grid_thw"] = torch.tensor([[1, side, side]] * batch, device=sizes.device)
    # What a processor says of each token: 1 for those of pictures.
    inputs["mm_token_type_ids"] = (inputs["input_ids"] == 3).int()
    return transformers.Qwen2_5_VLForConditionalGeneration(config), inputs


def make_dinov3(sizes):
    """ViT-L/16: rotary embeddings of two axes, registers, scales of layers."""
    import transformers
    size = sizes.pick(64, 224)
    config = transformers.DINOv3ViTConfig(
        image_size=size, patch_size=16, hidden_size=sizes.pick(64, 1024), intermediate_size=sizes.pick(128, 4096),
        num_hidden_layers=sizes.pick(2, 8), num_attention_heads=sizes.pick(2, 16), num_register_tokens=4, layerscale_value=1.0)
    return transformers.DINOv3ViTModel(config), {"pixel_values": sizes.get_images(32, size)}


def make_sam(sizes):
    """ViT-H: windows of 14 x 14 tokens with biases of their places, and one layer without."""
    import transformers
    size = sizes.pick(64, 1024)
    config = transformers.SamVisionConfig(
        image_size=size, patch_size=16, hidden_size=sizes.pick(64, 1280), mlp_dim=sizes.pick(128, 5120), num_hidden_layers=4,
        num_attention_heads=sizes.pick(2, 16), window_size=sizes.pick(3, 14), global_attn_indexes=[3], output_channels=sizes.pick(32, 256), initializer_range=0.02)
    return transformers.SamVisionModel(config), {"pixel_values": sizes.get_images(1, size)}


def make_detr(sizes):
    """A ResNet 50, and an encoder and a decoder of 100 queries."""
    import transformers
    backbone = transformers.ResNetConfig(
        embedding_size=sizes.pick(8, 64), hidden_sizes=sizes.pick([8, 16, 16, 32], [256, 512, 1024, 2048]),
        depths=sizes.pick([1, 1, 1, 1], [3, 4, 6, 3]), out_features=["stage4"])
    config = transformers.DetrConfig(
        backbone_config=backbone, use_timm_backbone=False, use_pretrained_backbone=False, backbone=None, num_queries=sizes.pick(10, 100), d_model=sizes.pick(32, 256),
        encoder_layers=sizes.pick(2, 6), decoder_layers=sizes.pick(2, 6), encoder_attention_heads=sizes.pick(2, 8),
        decoder_attention_heads=sizes.pick(2, 8), encoder_ffn_dim=sizes.pick(64, 2048), decoder_ffn_dim=sizes.pick(64, 2048))
    size = sizes.pick(96, 640)
    inputs = {"pixel_values": sizes.get_images(8, size)}
    inputs["pixel_mask"] = torch.ones(len(inputs["pixel_values"]), size, size, dtype=torch.long, device=sizes.device)
    return transformers.DetrForObjectDetection(config), inputs


def make_esm2(sizes):
    """ESM-2 650M: 20 heads of 64, sequences of proteins of several lengths."""
    import transformers
    config = transformers.EsmConfig(
        vocab_size=33, mask_token_id=32, pad_token_id=1, position_embedding_type="rotary", hidden_size=sizes.pick(64, 1280),
        intermediate_size=sizes.pick(128, 5120), num_hidden_layers=sizes.pick(2, 8), num_attention_heads=sizes.pick(2, 20),
        max_position_embeddings=1026, token_dropout=False, emb_layer_norm_before=False)
    tokens = torch.randint(4, 24, (sizes.pick(2, 8), sizes.pick(32, 512)), device=sizes.device)
    mask = torch.ones_like(tokens)
    mask[::2, tokens.shape[1] * 3 // 4:] = 0
    return transformers.EsmForMaskedLM(config), {"input_ids": tokens, "labels": tokens, "attention_mask": mask}


def make_longformer(sizes):
    """Windows of 512 tokens, written out, and one token that sees all."""
    import transformers
    config = transformers.LongformerConfig(
        vocab_size=sizes.words, **_get_ids(), hidden_size=sizes.pick(64, 1024), intermediate_size=sizes.pick(128, 4096), num_hidden_layers=2,
        num_attention_heads=sizes.pick(2, 16), attention_window=sizes.pick(8, 512), max_position_embeddings=2050)
    return transformers.LongformerForMaskedLM(config), sizes.get_tokens(2, 2048)


def make_timesfm(sizes):
    """Patches of 32 numbers as tokens."""
    import transformers
    config = transformers.TimesFmConfig(
        hidden_size=sizes.pick(64, 1280), intermediate_size=sizes.pick(64, 1280), num_hidden_layers=sizes.pick(2, 8),
        head_dim=sizes.pick(16, 80), num_attention_heads=sizes.pick(4, 16), context_length=sizes.pick(64, 512), horizon_length=sizes.pick(32, 128))
    batch, length = sizes.pick(2, 64), sizes.pick(64, 512)
    return transformers.TimesFmModelForPrediction(config), {
        "past_values": torch.randn(batch, length, device=sizes.device).bfloat16(),
        "freq": torch.zeros(batch, dtype=torch.long, device=sizes.device),
        "future_values": torch.randn(batch, sizes.pick(32, 128), device=sizes.device).bfloat16()}


def make_parakeet(sizes):
    """Conformers: convolutions between two halves of an MLP, relative positions."""
    import transformers
    encoder = {"hidden_size": sizes.pick(64, 1024), "intermediate_size": sizes.pick(128, 4096), "num_hidden_layers": sizes.pick(2, 4),
               "num_attention_heads": sizes.pick(2, 8), "num_mel_bins": 80, "subsampling_conv_channels": sizes.pick(16, 256)}
    config = transformers.ParakeetCTCConfig(vocab_size=sizes.pick(64, 1025), pad_token_id=0, encoder_config=encoder)
    batch, frames = sizes.pick(2, 8), sizes.pick(128, 1600)
    return transformers.ParakeetForCTC(config), {
        "input_features": torch.randn(batch, frames, 80, device=sizes.device).bfloat16(),
        "attention_mask": torch.ones(batch, frames, dtype=torch.long, device=sizes.device),
        "labels": torch.randint(1, sizes.pick(64, 1024), (batch, sizes.pick(8, 40)), device=sizes.device)}


def make_mpnet(sizes):
    """An encoder of sentences: short rows, means of tokens, a loss of pairs."""
    import transformers
    config = transformers.MPNetConfig(
        vocab_size=sizes.words, hidden_size=sizes.pick(64, 768), intermediate_size=sizes.pick(128, 3072), num_hidden_layers=sizes.pick(2, 6),
        num_attention_heads=sizes.pick(2, 12), max_position_embeddings=514)
    inputs = sizes.get_tokens(64, 128)
    if sizes.is_small:
        inputs["input_ids"] = torch.randint(6, sizes.words, (8, 16))
    return Pairs(transformers.MPNetModel(config)), {"input_ids": inputs["input_ids"]}


class Pairs(nn.Module):
    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, input_ids):
        hidden = F.normalize(self.model(input_ids).last_hidden_state.mean(1), dim=-1)
        one, other = hidden.chunk(2)
        scores = 20 * one @ other.T
        return Output(F.cross_entropy(scores.float(), torch.arange(len(one), device=scores.device)), hidden)


class Attention(nn.Module):
    """nanoGPT's."""

    def __init__(self, width, heads):
        super().__init__()
        self.c_attn, self.c_proj, self.heads = nn.Linear(width, 3 * width, bias=False), nn.Linear(width, width, bias=False), heads

    def forward(self, x):
        batch, length, width = x.shape
        q, k, v = (each.view(batch, length, self.heads, -1).transpose(1, 2) for each in self.c_attn(x).split(width, dim=2))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.c_proj(y.transpose(1, 2).contiguous().view(batch, length, width))


class GPT(nn.Module):
    """As scripts like nanoGPT have it: f32 weights under autocast, the head's weight that of the embedding."""

    def __init__(self, words, length, width, heads, layers):
        super().__init__()
        self.wte, self.wpe = nn.Embedding(words, width), nn.Embedding(length, width)
        self.h = nn.ModuleList(nn.ModuleDict({
            "ln_1": nn.LayerNorm(width, bias=False), "attn": Attention(width, heads), "ln_2": nn.LayerNorm(width, bias=False),
            "c_fc": nn.Linear(width, 4 * width, bias=False), "c_proj": nn.Linear(4 * width, width, bias=False)}) for _ in range(layers))
        self.ln_f, self.lm_head = nn.LayerNorm(width, bias=False), nn.Linear(width, words, bias=False)
        self.wte.weight = self.lm_head.weight
        for each in self.parameters():
            if each.ndim > 1:
                nn.init.normal_(each, std=0.02)

    def forward(self, input_ids, labels):
        with torch.autocast(input_ids.device.type, torch.bfloat16):
            x = self.wte(input_ids) + self.wpe(torch.arange(input_ids.shape[1], device=input_ids.device))
            for block in self.h:
                x = x + block["attn"](block["ln_1"](x))
                x = x + block["c_proj"](F.gelu(block["c_fc"](block["ln_2"](x))))
            logits = self.lm_head(self.ln_f(x))
            return Output(F.cross_entropy(logits.view(-1, logits.size(-1)), labels.view(-1), ignore_index=-1), logits)


def make_nanogpt(sizes):
    """GPT-2 medium's width, 50304 words."""
    words, length = sizes.pick(128, 50304), sizes.pick(32, 1024)
    model = GPT(words, length, sizes.pick(64, 1024), sizes.pick(2, 16), sizes.pick(2, 8))
    model.keeps_f32 = True
    tokens = torch.randint(words, (sizes.pick(2, 12), length), device=sizes.device)
    return model, {"input_ids": tokens, "labels": tokens.roll(-1, 1)}


class Block(nn.Module):
    """DiT's, modulated by what the time says."""

    def __init__(self, width, heads):
        super().__init__()
        self.norm1, self.norm2 = (nn.LayerNorm(width, elementwise_affine=False, eps=1e-6) for _ in range(2))
        self.qkv, self.proj, self.heads = nn.Linear(width, 3 * width), nn.Linear(width, width), heads
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(approximate="tanh"), nn.Linear(4 * width, width))
        self.adaLN_modulation = nn.Sequential(nn.SiLU(), nn.Linear(width, 6 * width))

    def attend(self, x):
        batch, length, width = x.shape
        q, k, v = self.qkv(x).reshape(batch, length, 3, self.heads, -1).permute(2, 0, 3, 1, 4).unbind(0)
        return self.proj(F.scaled_dot_product_attention(q, k, v).transpose(1, 2).reshape(batch, length, width))

    def forward(self, x, c):
        shift, scale, gate, shift2, scale2, gate2 = self.adaLN_modulation(c).chunk(6, dim=1)
        x = x + gate.unsqueeze(1) * self.attend(self.norm1(x) * (1 + scale.unsqueeze(1)) + shift.unsqueeze(1))
        return x + gate2.unsqueeze(1) * self.mlp(self.norm2(x) * (1 + scale2.unsqueeze(1)) + shift2.unsqueeze(1))


class DiT(nn.Module):
    def __init__(self, width, heads, layers, side, channels=4):
        super().__init__()
        self.x_embedder = nn.Conv2d(channels, width, 2, 2)
        self.pos_embed = nn.Parameter(0.02 * torch.randn(1, side * side // 4, width), requires_grad=False)
        self.t_embedder = nn.Sequential(nn.Linear(256, width), nn.SiLU(), nn.Linear(width, width))
        self.y_embedder = nn.Embedding(1001, width)
        self.blocks = nn.ModuleList(Block(width, heads) for _ in range(layers))
        self.norm, self.linear = nn.LayerNorm(width, elementwise_affine=False, eps=1e-6), nn.Linear(width, 8 * channels)
        self.side = side

    def forward(self, x, t, y):
        freqs = torch.exp(-math.log(10000) * torch.arange(128, device=t.device) / 128)
        args = t[:, None].float() * freqs[None]
        c = self.t_embedder(torch.cat([args.cos(), args.sin()], -1).to(x.dtype)) + self.y_embedder(y)
        h = self.x_embedder(x).flatten(2).transpose(1, 2) + self.pos_embed
        for block in self.blocks:
            h = block(h, c)
        h = self.linear(self.norm(h)).view(len(x), self.side // 2, self.side // 2, 2, 2, 8)
        out = torch.einsum("nhwpqc->nchpwq", h).reshape(len(x), 8, self.side, self.side)
        return Output((out[:, :4] - x).float().square().mean(), out)


def make_dit(sizes):
    """DiT-XL/2, 256 tokens."""
    batch, side = sizes.pick(2, 32), sizes.pick(8, 32)
    return DiT(sizes.pick(64, 1152), sizes.pick(2, 16), sizes.pick(2, 8), side), {
        "x": torch.randn(batch, 4, side, side, device=sizes.device).bfloat16(), "t": torch.randint(1000, (batch,), device=sizes.device),
        "y": torch.randint(1000, (batch,), device=sizes.device)}


class Classifier(nn.Module):
    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, x, labels):
        logits = self.model(x)
        return Output(F.cross_entropy(logits.float(), labels), logits)


def make_torchvision_vit(sizes):
    """ViT-L/16 by nn.MultiheadAttention, 197 tokens, 1000 classes."""
    from torchvision.models import VisionTransformer
    size, width, layers = sizes.pick(32, 224), sizes.pick(64, 1024), sizes.pick(2, 8)
    model = VisionTransformer(size, 16, layers, sizes.pick(2, 16), width, 4 * width, num_classes=sizes.pick(10, 1000))
    nn.init.normal_(model.heads[0].weight, std=0.02)
    images = sizes.get_images(64, size)
    return Classifier(model), {"x": images, "labels": torch.randint(10, (len(images),), device=sizes.device)}


def make_timm_davit(sizes):
    """Attention of channels, and of windows of 7 x 7 tokens."""
    import timm
    size = sizes.pick(64, 224)
    others = {"depths": (1, 1), "embed_dims": (32, 64), "num_heads": (2, 4)} if sizes.is_small else {"depths": (1, 1, 3, 1)}
    images = sizes.get_images(64, size)
    return Classifier(timm.create_model("davit_base", num_classes=10, **others)), {"x": images, "labels": torch.randint(10, (len(images),), device=sizes.device)}


MODELS = {name[len("make_"):]: function for name, function in list(globals().items()) if name.startswith("make_")}


def make(name, sizes):
    """A model in bf16, if it does not keep f32, without dropout, and its inputs; the same ones each time."""
    from unseen_models import drop_nothing
    torch.manual_seed(0)
    with torch.device(sizes.device):
        model, inputs = MODELS[name](sizes)
    if not getattr(model, "keeps_f32", False):
        model = model.bfloat16()
    return drop_nothing(model.train()), inputs
