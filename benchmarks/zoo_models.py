"""Models of zoo.py, and what they are trained on: built from the configs of transformers and
timm."""

import collections

import torch

# Not looked at while anything is made faster: shown apart.
HELD_OUT = ("granite", "starcoder2", "electra")


class Sizes:
    """Sizes of the models: those of a GPU, small ones for a CPU, and tiny ones for a test there."""

    def __init__(self, small=False, tiny=False):
        self.small, self.tiny = small or tiny, tiny
        self.device = "cpu" if self.small else "cuda"
        self.width, self.wide, self.heads = (
            (64, 128, 2) if tiny else (128, 384, 4) if small else (2048, 8192, 16))
        self.layers, self.vocabulary = (1, 128) if tiny else (2, 512) if small else (4, 32000)

    def pick(self, small, large):
        return small if self.small else large

    def get_layers(self, **others):
        """Layers and heads, and others."""
        return {"num_hidden_layers": self.layers, "num_attention_heads": self.heads, **others}

    def get_transformer(self, **others):
        """Arguments of configs that have these names."""
        return self.get_layers(hidden_size=self.width, intermediate_size=self.wide, **others)

    def get_tokens(self, batch, length):
        sizes = self.pick(2, batch), 32 if self.tiny else self.pick(64, length)
        tokens = torch.randint(3, self.vocabulary, sizes, device=self.device)
        return {"input_ids": tokens, "labels": tokens}

    def get_images(self, batch, size, labels=8):
        batch = self.pick(4, batch)
        return {"pixel_values": torch.randn(batch, 3, size, size, device=self.device).bfloat16(),
                "labels": torch.randint(0, labels, (batch,), device=self.device)}

    def get_sound(self, batch, samples):
        batch = self.pick(2, batch)
        values = torch.randn(batch, self.pick(2600, samples), device=self.device)
        return {"input_values": values.bfloat16(),
                "labels": torch.randint(0, 8, (batch,), device=self.device)}


def _make_causal(name, sizes, **others):
    import transformers
    config = getattr(transformers, f"{name}Config")(
        vocab_size=sizes.vocabulary, **sizes.get_transformer(**others))
    return getattr(transformers, f"{name}ForCausalLM")(config), sizes.get_tokens(4, 2048)


def make_llama(sizes):
    return _make_causal("Llama", sizes, num_key_value_heads=sizes.heads // 2)


def make_gemma2(sizes):
    return _make_causal("Gemma2", sizes, num_key_value_heads=sizes.heads // 2,
                        head_dim=sizes.width // sizes.heads)


def make_qwen3(sizes):
    return _make_causal("Qwen3", sizes, num_key_value_heads=sizes.heads // 2,
                        head_dim=sizes.width // sizes.heads)


def make_phi3(sizes):
    return _make_causal("Phi3", sizes, num_key_value_heads=sizes.heads // 2, pad_token_id=0,
                        bos_token_id=1, eos_token_id=2, embd_pdrop=0, resid_pdrop=0,
                        attention_dropout=0)


def make_olmo2(sizes):
    return _make_causal("Olmo2", sizes, num_key_value_heads=sizes.heads // 2, pad_token_id=0,
                        bos_token_id=1, eos_token_id=2)


def make_granite(sizes):
    return _make_causal("Granite", sizes, num_key_value_heads=sizes.heads // 2,
                        attention_multiplier=(sizes.heads / sizes.width) ** 0.5,
                        residual_multiplier=0.22, embedding_multiplier=12.0)


def make_starcoder2(sizes):
    """LayerNorm, biases and GELU in a decoder."""
    return _make_causal("Starcoder2", sizes, num_key_value_heads=sizes.heads // 2,
                        residual_dropout=0.0, embedding_dropout=0.0)


def make_gpt_neox(sizes):
    return _make_causal("GPTNeoX", sizes, bos_token_id=1, eos_token_id=2)


def make_opt(sizes):
    import transformers
    config = transformers.OPTConfig(
        vocab_size=sizes.vocabulary, ffn_dim=sizes.wide, dropout=0, attention_dropout=0,
        word_embed_proj_dim=sizes.width,
        **sizes.get_layers(hidden_size=sizes.width))
    return transformers.OPTForCausalLM(config), sizes.get_tokens(4, 2048)


def make_mixtral(sizes):
    return _make_causal("Mixtral", sizes, num_key_value_heads=sizes.heads // 2,
                        num_local_experts=4)


def make_qwen3_moe(sizes):
    return _make_causal("Qwen3Moe", sizes, num_key_value_heads=sizes.heads // 2, num_experts=4,
                        num_experts_per_tok=2, moe_intermediate_size=sizes.wide // 2,
                        head_dim=sizes.width // sizes.heads)


def make_gpt_oss(sizes):
    return _make_causal("GptOss", sizes, num_key_value_heads=sizes.heads // 2,
                        num_local_experts=4, num_experts_per_tok=2, pad_token_id=0,
                        bos_token_id=1, eos_token_id=2, head_dim=sizes.width // sizes.heads)


def make_gpt2(sizes):
    import transformers
    config = transformers.GPT2Config(
        n_embd=sizes.width, n_layer=sizes.layers, n_head=sizes.heads, resid_pdrop=0, embd_pdrop=0,
        attn_pdrop=0, vocab_size=sizes.vocabulary, bos_token_id=1, eos_token_id=2)
    return transformers.GPT2LMHeadModel(config), sizes.get_tokens(4, 1024)


def _make_masked(name, sizes, **others):
    import transformers
    config = getattr(transformers, f"{name}Config")(
        vocab_size=sizes.vocabulary, hidden_dropout_prob=0, attention_probs_dropout_prob=0,
        **sizes.get_transformer(**others))
    inputs = sizes.get_tokens(4, 512)
    inputs["attention_mask"] = torch.ones_like(inputs["input_ids"])
    return getattr(transformers, f"{name}ForMaskedLM")(config), inputs


def make_bert(sizes):
    return _make_masked("Bert", sizes)


def make_roberta(sizes):
    return _make_masked("Roberta", sizes, max_position_embeddings=516)


def make_electra(sizes):
    return _make_masked("Electra", sizes, embedding_size=sizes.pick(32, 512))


def make_deberta(sizes):
    return _make_masked("DebertaV2", sizes, relative_attention=True, position_buckets=32,
                        pos_att_type=["p2c", "c2p"], norm_rel_ebd="layer_norm", share_att_key=True)


def make_vit(sizes):
    import transformers
    config = transformers.ViTConfig(
        image_size=sizes.pick(64, 224), hidden_dropout_prob=0, attention_probs_dropout_prob=0,
        num_labels=8, **sizes.get_transformer())
    return transformers.ViTForImageClassification(config), sizes.get_images(64, config.image_size)


def make_dinov2(sizes):
    import transformers
    config = transformers.Dinov2Config(image_size=sizes.pick(56, 224), patch_size=14, num_labels=8,
                                       **sizes.get_layers(hidden_size=sizes.width))
    return (transformers.Dinov2ForImageClassification(config),
            sizes.get_images(64, config.image_size))


def make_swin(sizes):
    import transformers
    config = transformers.SwinConfig(
        image_size=sizes.pick(32, 224), patch_size=4, window_size=sizes.pick(4, 7),
        embed_dim=sizes.pick(32, 192), depths=sizes.pick([1, 1], [2, 2, 18, 2]),
        num_heads=sizes.pick([1, 2], [6, 12, 24, 48]), drop_path_rate=0, num_labels=8)
    return transformers.SwinForImageClassification(config), sizes.get_images(64, config.image_size)


def make_convnext(sizes):
    import transformers
    config = transformers.ConvNextConfig(
        depths=sizes.pick([1, 1], [3, 3, 27, 3]), num_labels=8, num_stages=sizes.pick(2, 4),
        hidden_sizes=sizes.pick([32, 64], [192, 384, 768, 1536]))
    return (transformers.ConvNextForImageClassification(config),
            sizes.get_images(64, sizes.pick(32, 224)))


def make_resnet(sizes):
    import transformers
    config = transformers.ResNetConfig(
        embedding_size=sizes.pick(16, 64), depths=sizes.pick([1, 1], [3, 4, 23, 3]), num_labels=8,
        hidden_sizes=sizes.pick([32, 64], [256, 512, 1024, 2048]))
    return (transformers.ResNetForImageClassification(config),
            sizes.get_images(64, sizes.pick(32, 224)))


def make_segformer(sizes):
    import transformers
    size = sizes.pick(32, 512)
    config = transformers.SegformerConfig(
        num_encoder_blocks=sizes.pick(2, 4), depths=sizes.pick([1, 1], [3, 6, 40, 3]),
        sr_ratios=sizes.pick([4, 2], [8, 4, 2, 1]), patch_sizes=sizes.pick([7, 3], [7, 3, 3, 3]),
        strides=sizes.pick([4, 2], [4, 2, 2, 2]), mlp_ratios=sizes.pick([4, 4], [4, 4, 4, 4]),
        hidden_sizes=sizes.pick([32, 64], [64, 128, 320, 512]),
        num_attention_heads=sizes.pick([1, 2], [1, 2, 5, 8]), hidden_dropout_prob=0,
        attention_probs_dropout_prob=0, classifier_dropout_prob=0, drop_path_rate=0,
        decoder_hidden_size=sizes.pick(64, 768), num_labels=8)
    inputs = sizes.get_images(8, size)
    inputs["labels"] = torch.randint(0, 8, (len(inputs["labels"]), size, size),
                                     device=sizes.device)
    return transformers.SegformerForSemanticSegmentation(config), inputs


def _make_pair(name, sizes, text, **others):
    """A model of images and texts."""
    import transformers
    vision = sizes.get_transformer(image_size=sizes.pick(64, 224), patch_size=16)
    config = getattr(transformers, f"{name}Config")(
        text_config={**sizes.get_transformer(vocab_size=sizes.vocabulary), **text},
        vision_config=vision, **others)
    inputs = sizes.get_images(16, sizes.pick(64, 224))
    batch, length = len(inputs.pop("labels")), text["max_position_embeddings"]
    tokens = torch.randint(3, sizes.vocabulary, (batch, length), device=sizes.device)
    return (getattr(transformers, f"{name}Model")(config),
            {**inputs, "input_ids": tokens, "return_loss": True})


def make_clip(sizes):
    return _make_pair("CLIP", sizes, {"max_position_embeddings": sizes.pick(20, 77),
                                      "bos_token_id": 1, "eos_token_id": 2},
                      projection_dim=sizes.width)


def make_siglip(sizes):
    return _make_pair("Siglip", sizes, {"max_position_embeddings": sizes.pick(16, 64),
                                        "projection_size": sizes.width, "pad_token_id": 1,
                                        "bos_token_id": 0, "eos_token_id": 2})


def make_whisper(sizes):
    import transformers
    layers = max(sizes.layers // 2, 1)
    config = transformers.WhisperConfig(
        d_model=sizes.width, encoder_layers=layers, decoder_layers=layers,
        encoder_attention_heads=sizes.heads, decoder_attention_heads=sizes.heads,
        encoder_ffn_dim=sizes.wide, decoder_ffn_dim=sizes.wide, vocab_size=sizes.vocabulary,
        max_source_positions=sizes.pick(64, 1500), num_mel_bins=sizes.pick(16, 80),
        pad_token_id=0, bos_token_id=1, eos_token_id=2, decoder_start_token_id=1)
    batch = sizes.pick(2, 8)
    features = torch.randn(batch, config.num_mel_bins, 2 * config.max_source_positions,
                           device=sizes.device).bfloat16()
    labels = torch.randint(3, sizes.vocabulary, (batch, sizes.pick(32, 448)), device=sizes.device)
    return (transformers.WhisperForConditionalGeneration(config),
            {"input_features": features, "labels": labels})


def _make_sound(name, sizes):
    import transformers
    config = getattr(transformers, f"{name}Config")(
        conv_dim=sizes.pick((32,) * 3, (512,) * 7), hidden_dropout=0, attention_dropout=0,
        conv_kernel=sizes.pick((10, 3, 3), (10, 3, 3, 3, 3, 2, 2)), activation_dropout=0,
        conv_stride=sizes.pick((8, 4, 2), (5, 2, 2, 2, 2, 2, 2)), feat_proj_dropout=0,
        num_feat_extract_layers=sizes.pick(3, 7), final_dropout=0, layerdrop=0, mask_time_prob=0,
        num_conv_pos_embeddings=sizes.pick(16, 128), num_conv_pos_embedding_groups=16,
        classifier_proj_size=sizes.pick(64, 256), num_labels=8, **sizes.get_transformer())
    model = getattr(transformers, f"{name}ForSequenceClassification")(config)
    return model, sizes.get_sound(8, 160000)


def make_wav2vec2(sizes):
    return _make_sound("Wav2Vec2", sizes)


def make_hubert(sizes):
    return _make_sound("Hubert", sizes)


def make_t5(sizes):
    import transformers
    config = transformers.T5Config(
        d_model=sizes.width, d_kv=sizes.width // sizes.heads, d_ff=sizes.wide,
        num_layers=max(sizes.layers // 2, 1), num_heads=sizes.heads, vocab_size=sizes.vocabulary,
        dropout_rate=0, decoder_start_token_id=0)
    return transformers.T5ForConditionalGeneration(config), sizes.get_tokens(8, 512)


def make_bart(sizes):
    import transformers
    layers = max(sizes.layers // 2, 1)
    config = transformers.BartConfig(
        d_model=sizes.width, encoder_layers=layers, decoder_layers=layers, dropout=0,
        encoder_attention_heads=sizes.heads, decoder_attention_heads=sizes.heads,
        encoder_ffn_dim=sizes.wide, decoder_ffn_dim=sizes.wide, vocab_size=sizes.vocabulary)
    return transformers.BartForConditionalGeneration(config), sizes.get_tokens(8, 512)


Output = collections.namedtuple("Output", ["loss"])


class Classifier(torch.nn.Module):
    """A model of timm with a loss."""

    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, pixel_values, labels):
        return Output(torch.nn.functional.cross_entropy(self.model(pixel_values), labels))


def _make_timm(name, sizes, small, batch=64, size=224):
    import timm
    others = {**small, "img_size": 56} if sizes.small else {}
    model = timm.create_model(name, num_classes=8, **others)
    return Classifier(model), sizes.get_images(batch, sizes.pick(56, size))


def make_timm_eva02(sizes):
    """SwiGLU, rotary embeddings, tokens 257."""
    return _make_timm("eva02_large_patch14_224", sizes,
                      {"embed_dim": sizes.width, "depth": 1, "num_heads": sizes.heads})


def make_timm_mixer(sizes):
    """Products over tokens, of which there are 196."""
    import timm
    size = sizes.pick(56, 224)
    model = timm.models.MlpMixer(num_classes=8, img_size=size, patch_size=sizes.pick(14, 16),
                                 num_blocks=sizes.pick(1, 24), embed_dim=sizes.pick(64, 1024))
    return Classifier(model), sizes.get_images(64, size)


def make_timm_so400m(sizes):
    """Widths 1152 and 4304, tokens 256, a head that attends."""
    return _make_timm("vit_so400m_patch14_siglip_224", sizes,
                      {"embed_dim": sizes.width, "depth": 1, "num_heads": sizes.heads})


MODELS = {name[len("make_"):]: function for name, function in list(globals().items())
          if name.startswith("make_")}


def make(name, sizes, seed=0, models=MODELS):
    """A model in bf16 that is to be trained, without dropout, and its inputs."""
    torch.manual_seed(seed)
    with torch.device(sizes.device):
        model, inputs = models[name](sizes)
    model = model.to(torch.bfloat16).train()
    for module in model.modules():
        if isinstance(module, torch.nn.Dropout):
            module.p = 0.0
    return model, inputs
