"""Models of transformers with tiny random weights, for unseen.py: architectures that nobody here has tuned anything for. Each is
what its library makes of a config; sizes are common ones, or odd ones that no kernel is made for."""

import collections
import functools

import torch
import transformers

# By name: a function of Sizes that makes (model, inputs).
MODELS = {}


class Sizes:
    """Extents of models and inputs."""

    def __init__(self, is_odd=False):
        self.width, self.wide, self.heads = (84, 143, 3) if is_odd else (64, 128, 2)
        self.words, self.batch, self.length = (131, 1, 37) if is_odd else (128, 2, 32)
        self.layers, self.labels = 2, 7 if is_odd else 8

    @property
    def part(self):
        return self.width // self.heads

    def get_tokens(self):
        tokens = torch.randint(3, self.words, (self.batch, self.length))
        return {"input_ids": tokens, "labels": tokens}

    def get_images(self, size):
        return {"pixel_values": torch.randn(self.batch, 3, size, size).bfloat16(), **self.get_classes()}

    def get_classes(self):
        return {"labels": torch.randint(self.labels, (self.batch,))}


def _add(name):
    def add(function):
        MODELS[name] = function
        return function
    return add


def _get(**names):
    """Sizes under the names of a config, beside those of most."""
    def get(sizes):
        found = {"vocab_size": sizes.words, "hidden_size": sizes.width, "intermediate_size": sizes.wide,
                 "num_hidden_layers": sizes.layers, "num_attention_heads": sizes.heads}
        for name, value in names.items():
            found[name] = value(sizes) if callable(value) else value
        return {name: value for name, value in found.items() if value is not None}
    return get


def _make(config, model, inputs, get, sizes):
    made = getattr(transformers, config)(**get(sizes))
    return getattr(transformers, model)(made), inputs(sizes)


def _add_causal(name, kind, **names):
    MODELS[name] = functools.partial(_make, f"{kind}Config", f"{kind}ForCausalLM", Sizes.get_tokens, _get(**names))


def _add_masked(name, kind, **names):
    names = {"max_position_embeddings": 64, **names}
    MODELS[name] = functools.partial(_make, f"{kind}Config", f"{kind}ForMaskedLM", Sizes.get_tokens, _get(**names))


def _add_pair(name, kind, model, **names):
    """Encoder and decoder."""
    names = {"decoder_start_token_id": 0, **names}
    MODELS[name] = functools.partial(_make, f"{kind}Config", model, Sizes.get_tokens, _get(**names))


def _add_images(name, kind, size, **names):
    MODELS[name] = functools.partial(
        _make, f"{kind}Config", f"{kind}ForImageClassification", lambda sizes: sizes.get_images(size),
        _get(**{"vocab_size": None, "num_labels": lambda sizes: sizes.labels, **names}))


def _width(sizes):
    return sizes.width


def _part(sizes):
    return sizes.part


def _heads(sizes):
    return sizes.heads


def _half(sizes):
    return sizes.width // 2


_NO_SIZES = {"hidden_size": None, "intermediate_size": None, "num_hidden_layers": None, "num_attention_heads": None}
_GPT = {**_NO_SIZES, "n_embd": _width, "n_layer": 2, "n_head": _heads}
_ONE = {"num_key_value_heads": 1}
_MIXED = {**_ONE, "num_experts": 4, "num_experts_per_tok": 2}
_DEEP = {"num_key_value_heads": _heads, "q_lora_rank": 32, "kv_lora_rank": 32, "qk_rope_head_dim": 16, "qk_nope_head_dim": 16,
         "v_head_dim": 32, "n_routed_experts": 4, "n_group": 1, "topk_group": 1, "num_experts_per_tok": 2,
         "moe_intermediate_size": 64, "first_k_dense_replace": 1}
_BART = {**_NO_SIZES, "d_model": _width, "encoder_layers": 1, "decoder_layers": 1, "encoder_attention_heads": _heads,
         "decoder_attention_heads": _heads, "encoder_ffn_dim": 128, "decoder_ffn_dim": 128, "pad_token_id": 0,
         "max_position_embeddings": 64}
_T5 = {**_NO_SIZES, "d_model": _width, "d_kv": _part, "d_ff": 128, "num_layers": 1, "num_heads": _heads}

for _name, _kind, _names in (
        ("mistral", "Mistral", {**_ONE, "sliding_window": 16}), ("qwen2", "Qwen2", _ONE),
        ("gemma", "Gemma", {**_ONE, "head_dim": _part}), ("phi", "Phi", {}), ("stablelm", "StableLm", {"num_key_value_heads": _heads, "partial_rotary_factor": 1.0}), ("cohere", "Cohere", {}),
        ("cohere2", "Cohere2", {**_ONE, "sliding_window": 16}), ("deepseek_v3", "DeepseekV3", _DEEP),
        ("glm4", "Glm4", {**_ONE, "head_dim": _part, "pad_token_id": 0}), ("deepseek_v2", "DeepseekV2", _DEEP),
        ("falcon", "Falcon", {}), ("bloom", "Bloom", {"n_layer": 2, "n_head": _heads}),
        ("mpt", "Mpt", {**_NO_SIZES, "d_model": _width, "n_layers": 2, "n_heads": _heads, "max_seq_len": 64}),
        ("gptj", "GPTJ", {**_GPT, "rotary_dim": 16}), ("codegen", "CodeGen", {**_GPT, "n_head": 4, "n_embd": 64, "rotary_dim": 8}),
        ("olmoe", "Olmoe", {"num_experts": 4, "num_experts_per_tok": 2}), ("rwkv", "Rwkv", {"context_length": 64}),
        ("mamba", "Mamba", {"state_size": 8}),
        ("mamba2", "Mamba2", {"hidden_size": 64, "state_size": 8, "num_heads": 4, "head_dim": 32, "n_groups": 1, "chunk_size": 16}),
        ("qwen3_next", "Qwen3Next", {**_MIXED, "head_dim": _part, "moe_intermediate_size": 64,
                                     "shared_expert_intermediate_size": 64, "linear_num_value_heads": 2,
                                     "linear_num_key_heads": 2, "linear_key_head_dim": 16, "linear_value_head_dim": 16,
                                     "layer_types": ["linear_attention", "full_attention"]}),
        ("smollm3", "SmolLM3", {**_ONE, "pad_token_id": 0}), ("ernie4_5", "Ernie4_5", _ONE), ("nemotron", "Nemotron", _ONE),
        ("exaone4", "Exaone4", _ONE), ("helium", "Helium", {**_ONE, "head_dim": _part}), ("bitnet", "BitNet", _ONE),
        ("lfm2", "Lfm2", _ONE), ("gpt_bigcode", "GPTBigCode", {**_GPT, "n_positions": 64}),
        ("gpt_neo", "GPTNeo", {**_NO_SIZES, "hidden_size": _width, "num_layers": 2, "num_heads": _heads, "window_size": 16,
                               "attention_types": [[["global", "local"], 1]], "max_position_embeddings": 64}),
        ("xglm", "XGLM", {**_NO_SIZES, "d_model": _width, "ffn_dim": 128, "num_layers": 2, "attention_heads": _heads,
                          "max_position_embeddings": 64}),
        ("zamba2", "Zamba2", {"hidden_size": 64, "num_attention_heads": 2, "num_mem_blocks": 1, "mamba_d_state": 8,
                              "mamba_ngroups": 1, "n_mamba_heads": 2, "chunk_size": 16, "hybrid_layer_ids": [1],
                              "layer_types": ["mamba", "hybrid"],
                              "num_key_value_heads": 2}),
        ("jamba", "Jamba", {**_MIXED, "mamba_d_state": 8, "mamba_dt_rank": 4, "use_mamba_kernels": False, "attn_layer_period": 2,
                            "attn_layer_offset": 1, "expert_layer_period": 2, "expert_layer_offset": 1}),
        ("granitemoe", "GraniteMoe", {**_ONE, "num_local_experts": 4, "num_experts_per_tok": 2}),
        ("phimoe", "Phimoe", {**_ONE, "num_local_experts": 4}), ("arcee", "Arcee", _ONE), ("persimmon", "Persimmon", {}),
        ("minimax", "MiniMax", {**_ONE, "num_local_experts": 4, "head_dim": _part, "block_size": 16}),
        ("hunyuan", "HunYuanDenseV1", {**_ONE, "head_dim": _part}), ("diffllama", "DiffLlama", {"num_key_value_heads": _heads}),
        ("biogpt", "BioGpt", {"max_position_embeddings": 64}),
        ("granitemoehybrid", "GraniteMoeHybrid", {"hidden_size": 64, "num_attention_heads": 2, **_ONE, "num_local_experts": 4,
                                                  "num_experts_per_tok": 2, "mamba_n_heads": 4, "mamba_d_head": 32,
                                                  "mamba_d_state": 8, "mamba_n_groups": 1, "mamba_chunk_size": 16,
                                                  "layer_types": ["mamba", "attention"], "shared_intermediate_size": 64}),
        ("seed_oss", "SeedOss", {**_ONE, "head_dim": _part}), ("apertus", "Apertus", _ONE), ("dots1", "Dots1", {
            **_DEEP, "n_shared_experts": 1, "q_lora_rank": None, "kv_lora_rank": None, "qk_rope_head_dim": None,
            "qk_nope_head_dim": None, "v_head_dim": None}),
        ("ernie4_5_moe", "Ernie4_5_Moe", {**_ONE, "moe_num_experts": 4, "moe_k": 2, "moe_intermediate_size": 64,
                                          "moe_num_shared_experts": 1, "moe_layer_start_index": 0}),
        ("bamba", "Bamba", {"hidden_size": 64, "num_attention_heads": 2, **_ONE, "mamba_n_heads": 4, "mamba_d_head": 32,
                            "mamba_d_state": 8, "mamba_n_groups": 1, "mamba_chunk_size": 16, "attn_layer_indices": [1]}),
        ("recurrent_gemma", "RecurrentGemma", {**_ONE, "attention_window_size": 16, "lru_width": _width, "num_hidden_layers": 3}),
        ("falcon_h1", "FalconH1", {"hidden_size": 64, "num_attention_heads": 2, **_ONE, "mamba_n_heads": 4, "mamba_d_head": 32,
                                   "mamba_d_ssm": 128, "mamba_d_state": 8, "mamba_n_groups": 1, "mamba_chunk_size": 16}),
        ("flex_olmo", "FlexOlmo", {**_MIXED, "pad_token_id": 0}), ("olmo3", "Olmo3", {**_ONE, "sliding_window": 16}),
        ("vaultgemma", "VaultGemma", {**_ONE, "head_dim": _part}), ("doge", "Doge", {**_ONE}),
        ("glm4_moe", "Glm4Moe", {**_ONE, "head_dim": _part, "n_routed_experts": 4, "n_group": 1, "topk_group": 1,
                                 "num_experts_per_tok": 2, "moe_intermediate_size": 64, "first_k_dense_replace": 1}),
        ("longcat_flash", "LongcatFlash", {**_DEEP, "num_layers": 1, "num_hidden_layers": None, "head_dim": 16, "ffn_hidden_size": 128,
                                           "expert_ffn_hidden_size": 64, "moe_topk": 2, "zero_expert_num": 2})):
    _add_causal(_name, _kind, **_names)

for _name, _kind, _names in (
        ("albert", "Albert", {"embedding_size": 32}), ("xlm_roberta", "XLMRoberta", {}), ("mpnet", "MPNet", {}),
        ("modernbert", "ModernBert", {"pad_token_id": 0, "cls_token_id": 1, "sep_token_id": 2, "bos_token_id": 1,
                                      "eos_token_id": 2, "local_attention": 16}), ("camembert", "Camembert", {}),
        ("distilbert", "DistilBert", {**_NO_SIZES, "dim": _width, "hidden_dim": 128, "n_layers": 2, "n_heads": _heads}),
        ("esm", "Esm", {"pad_token_id": 0, "mask_token_id": 1, "position_embedding_type": "rotary"}),
        ("bigbird", "BigBird", {"attention_type": "original_full"}), ("longformer", "Longformer", {"attention_window": 8}),
        ("nystromformer", "Nystromformer", {"num_landmarks": 8, "segment_means_seq_len": 32}), ("fnet", "FNet", {}),
        ("squeezebert", "SqueezeBert", {"embedding_size": _width, "hidden_size": 64, "num_attention_heads": 2, "embedding_size": 64}),
        ("mobilebert", "MobileBert", {"embedding_size": 32, "true_hidden_size": 32, "intra_bottleneck_size": 32,
                                      "hidden_size": 64, "num_attention_heads": 2}),
        ("roformer", "RoFormer", {"embedding_size": _width}), ("ibert", "IBert", {}), ("megatron_bert", "MegatronBert", {}),
        ("rembert", "RemBert", {"input_embedding_size": 32, "output_embedding_size": 32}), ("convbert", "ConvBert", {
            "embedding_size": _width, "head_ratio": 1}), ("layoutlm", "LayoutLM", {}), ("funnel", "Funnel", {
                **_NO_SIZES, "d_model": _width, "block_sizes": [1, 1], "num_decoder_layers": 1, "n_head": _heads, "d_head": _part,
                "d_inner": 128}), ("eurobert", "EuroBert", {**_ONE, "pad_token_id": 0}), ("deberta_v2", "DebertaV2", {
                    "relative_attention": True, "position_buckets": 8, "pos_att_type": ["p2c", "c2p"]}),
        ("data2vec_text", "Data2VecText", {})):
    _add_masked(_name, _kind, **_names)

for _name, _kind, _size, _names in (
        ("deit", "DeiT", 32, {"image_size": 32, "patch_size": 8}), ("beit", "Beit", 32, {"image_size": 32, "patch_size": 8}),
        ("swinv2", "Swinv2", 32, {**_NO_SIZES, "image_size": 32, "patch_size": 4, "embed_dim": 32, "depths": [1, 1],
                                  "num_heads": [2, 2], "window_size": 4}),
        ("poolformer", "PoolFormer", 64, {**_NO_SIZES, "hidden_sizes": [32, 32, 64, 64], "depths": [1, 1, 1, 1]}),
        ("mobilevit", "MobileViT", 64, {**_NO_SIZES, "image_size": 64, "hidden_sizes": [32, 48, 64],
                                        "neck_hidden_sizes": [16, 16, 32, 32, 48, 64, 96]}),
        ("convnextv2", "ConvNextV2", 64, {**_NO_SIZES, "hidden_sizes": [32, 32, 64, 64], "depths": [1, 1, 1, 1]}),
        ("regnet", "RegNet", 64, {**_NO_SIZES, "embedding_size": 16, "hidden_sizes": [16, 32, 32, 64], "depths": [1, 1, 1, 1],
                                  "groups_width": 16}),
        ("focalnet", "FocalNet", 32, {**_NO_SIZES, "image_size": 32, "embed_dim": 32, "depths": [1, 1], "hidden_sizes": [32, 64],
                                      "focal_levels": [2, 2], "focal_windows": [3, 3]}),
        ("hiera", "Hiera", 64, {**_NO_SIZES, "image_size": [64, 64], "embed_dim": 32, "depths": [1, 1, 1, 1],
                                "num_heads": [1, 2, 2, 2]}),
        ("pvt_v2", "PvtV2", 64, {**_NO_SIZES, "image_size": 64, "hidden_sizes": [32, 32, 64, 64], "depths": [1, 1, 1, 1],
                                 "num_attention_heads": [1, 1, 2, 2]}),
        ("dinov2", "Dinov2", 32, {"image_size": 32, "patch_size": 8}), ("vit_msn", "ViTMSN", 32, {"image_size": 32, "patch_size": 8}),
        ("ijepa", "IJepa", 32, {"image_size": 32, "patch_size": 8}),
        ("segformer", "Segformer", 64, {**_NO_SIZES, "hidden_sizes": [16, 32, 32, 64], "depths": [1, 1, 1, 1],
                                        "num_attention_heads": [1, 1, 2, 2]}),
        ("efficientnet", "EfficientNet", 64, {**_NO_SIZES, "image_size": 64})):
    _add_images(_name, _kind, _size, **_names)

for _name, _kind, _model, _names in (
        ("marian", "Marian", "MarianMTModel", _BART), ("pegasus", "Pegasus", "PegasusForConditionalGeneration", _BART),
        ("mt5", "MT5", "MT5ForConditionalGeneration", _T5), ("longt5", "LongT5", "LongT5ForConditionalGeneration", {
            **_T5, "local_radius": 7}),
        ("switch", "SwitchTransformers", "SwitchTransformersForConditionalGeneration", {
            **_T5, "num_layers": 2, "num_decoder_layers": 2, "num_sparse_encoder_layers": 1, "num_sparse_decoder_layers": 1,
            "num_experts": 4}),
        ("bart", "Bart", "BartForConditionalGeneration", _BART), ("mbart", "MBart", "MBartForConditionalGeneration", _BART),
        ("m2m_100", "M2M100", "M2M100ForConditionalGeneration", _BART),
        ("blenderbot", "Blenderbot", "BlenderbotForConditionalGeneration", _BART),
        ("umt5", "UMT5", "UMT5ForConditionalGeneration", _T5), ("plbart", "PLBart", "PLBartForConditionalGeneration", _BART),
        ("nllb_moe", "NllbMoe", "NllbMoeForConditionalGeneration", {**_BART, "num_experts": 4, "encoder_sparse_step": 1,
                                                                    "decoder_sparse_step": 1}),
        ("prophetnet", "ProphetNet", "ProphetNetForConditionalGeneration", {
            **_NO_SIZES, "hidden_size": _width, "num_encoder_layers": 1, "num_decoder_layers": 1,
            "num_encoder_attention_heads": _heads, "num_decoder_attention_heads": _heads, "encoder_ffn_dim": 128,
            "decoder_ffn_dim": 128, "max_position_embeddings": 64, "pad_token_id": 0}),
        ("led", "LED", "LEDForConditionalGeneration", {**_BART, "max_position_embeddings": None, "attention_window": 8,
                                                       "max_encoder_position_embeddings": 64,
                                                       "max_decoder_position_embeddings": 64})):
    _add_pair(_name, _kind, _model, **_names)


@_add("gemma3_text")
def _make_gemma3(sizes):
    get = _get(**_ONE, head_dim=_part, sliding_window=16)
    return transformers.Gemma3ForCausalLM(transformers.Gemma3TextConfig(**get(sizes))), sizes.get_tokens()


@_add("xlnet")
def _make_xlnet(sizes):
    config = transformers.XLNetConfig(vocab_size=sizes.words, d_model=sizes.width, n_layer=2, n_head=sizes.heads, d_inner=128)
    return transformers.XLNetLMHeadModel(config), sizes.get_tokens()


@_add("ctrl")
def _make_ctrl(sizes):
    config = transformers.CTRLConfig(vocab_size=sizes.words, n_embd=sizes.width, dff=128, n_layer=2, n_head=sizes.heads,
                                     n_positions=64)
    return transformers.CTRLLMHeadModel(config), sizes.get_tokens()


def _make_sound(kind, sizes, **others):
    config = getattr(transformers, f"{kind}Config")(
        num_labels=sizes.labels, conv_dim=[32] * 3, conv_stride=[5, 2, 2], conv_kernel=[10, 3, 3], num_conv_pos_embeddings=16,
        num_conv_pos_embedding_groups=2, **{**_get(vocab_size=None)(sizes), "hidden_size": 64, "num_attention_heads": 2}, **others)
    return (getattr(transformers, f"{kind}ForSequenceClassification")(config),
            {"input_values": torch.randn(sizes.batch, 2600).bfloat16(), **sizes.get_classes()})


for _name, _kind in (("wavlm", "WavLM"), ("hubert", "Hubert"), ("sew", "SEW"), ("unispeech", "UniSpeech"),
                     ("data2vec_audio", "Data2VecAudio")):
    MODELS[_name] = functools.partial(_make_sound, _kind)


@_add("ast")
def _make_ast(sizes):
    config = transformers.ASTConfig(max_length=64, num_mel_bins=32, num_labels=sizes.labels, **_get(vocab_size=None)(sizes))
    return (transformers.ASTForAudioClassification(config),
            {"input_values": torch.randn(sizes.batch, 64, 32).bfloat16(), **sizes.get_classes()})


def _get_vision(sizes):
    return {**_get(vocab_size=None)(sizes), "image_size": 32, "patch_size": 16}


def _get_text(sizes, **others):
    return {**_get(**others)(sizes), "pad_token_id": 0}


def _see(sizes, model, places, token):
    """A picture of some places in the text."""
    inputs = sizes.get_tokens()
    inputs["input_ids"][:, 1:1 + places] = token
    inputs["labels"] = inputs["labels"].clone()
    return model, {**inputs, "pixel_values": torch.randn(sizes.batch, 3, 32, 32).bfloat16()}


@_add("llava")
def _make_llava(sizes):
    config = transformers.LlavaConfig(
        vision_config=transformers.CLIPVisionConfig(projection_dim=sizes.width, **_get_vision(sizes)),
        text_config=transformers.LlamaConfig(**_get_text(sizes, **_ONE)), image_token_index=2, vision_feature_layer=-1)
    return _see(sizes, transformers.LlavaForConditionalGeneration(config), 4, 2)


@_add("paligemma")
def _make_paligemma(sizes):
    config = transformers.PaliGemmaConfig(
        vision_config=transformers.SiglipVisionConfig(**_get_vision(sizes)),
        text_config=transformers.GemmaConfig(**_get_text(sizes, **_ONE, head_dim=_part)), image_token_index=2,
        projection_dim=sizes.width)
    return _see(sizes, transformers.PaliGemmaForConditionalGeneration(config), 4, 2)


@_add("blip2")
def _make_blip2(sizes):
    config = transformers.Blip2Config(
        vision_config=_get_vision(sizes), qformer_config={**_get()(sizes), "encoder_hidden_size": sizes.width},
        text_config=transformers.OPTConfig(
            vocab_size=sizes.words, hidden_size=sizes.width, ffn_dim=128, num_hidden_layers=2, num_attention_heads=sizes.heads,
            max_position_embeddings=64, word_embed_proj_dim=sizes.width).to_dict(), num_query_tokens=4, image_token_index=2)
    return _see(sizes, transformers.Blip2ForConditionalGeneration(config), 4, 2)


@_add("git")
def _make_git(sizes):
    config = transformers.GitConfig(vision_config=_get_vision(sizes), max_position_embeddings=64, **_get()(sizes))
    return transformers.GitForCausalLM(config), {
        **sizes.get_tokens(), "pixel_values": torch.randn(sizes.batch, 3, 32, 32).bfloat16()}


@_add("clip")
def _make_clip(sizes):
    config = transformers.CLIPConfig(text_config={**_get_text(sizes), "eos_token_id": 2}, vision_config=_get_vision(sizes),
                                     projection_dim=32)
    batch = {"input_ids": sizes.get_tokens()["input_ids"], "pixel_values": sizes.get_images(32)["pixel_values"]}
    return transformers.CLIPModel(config), {**batch, "return_loss": True}


@_add("siglip")
def _make_siglip(sizes):
    config = transformers.SiglipConfig(text_config={**_get_text(sizes), "projection_size": sizes.width},
                                       vision_config=_get_vision(sizes))
    batch = {"input_ids": sizes.get_tokens()["input_ids"], "pixel_values": sizes.get_images(32)["pixel_values"]}
    return transformers.SiglipModel(config), {**batch, "return_loss": True}


@_add("trocr")
def _make_trocr(sizes):
    """A picture's encoder, and a decoder of text."""
    decoder = transformers.TrOCRConfig(
        vocab_size=sizes.words, d_model=sizes.width, decoder_layers=1, decoder_attention_heads=sizes.heads, decoder_ffn_dim=128,
        max_position_embeddings=64)
    config = transformers.VisionEncoderDecoderConfig.from_encoder_decoder_configs(
        transformers.ViTConfig(**_get_vision(sizes)), decoder)
    config.decoder_start_token_id, config.pad_token_id = 0, 1
    return transformers.VisionEncoderDecoderModel(config), {
        "pixel_values": sizes.get_images(32)["pixel_values"], "labels": sizes.get_tokens()["labels"]}


@_add("whisper_wide")
def _make_whisper(sizes):
    config = transformers.WhisperConfig(
        num_mel_bins=16, max_source_positions=32, max_target_positions=64, decoder_start_token_id=1, bos_token_id=1,
        eos_token_id=2, pad_token_id=0, suppress_tokens=None, begin_suppress_tokens=None,
        **{name: value for name, value in _get(**_BART)(sizes).items() if name not in ("max_position_embeddings", "pad_token_id")})
    return transformers.WhisperForConditionalGeneration(config), {
        "input_features": torch.randn(sizes.batch, 16, 64).bfloat16(), "labels": sizes.get_tokens()["labels"]}


@_add("speech_to_text")
def _make_speech(sizes):
    config = transformers.Speech2TextConfig(
        input_feat_per_channel=16, max_source_positions=64, max_target_positions=64, conv_channels=32, decoder_start_token_id=1,
        bos_token_id=1, eos_token_id=2,
        **{name: value for name, value in _get(**_BART)(sizes).items() if name != "max_position_embeddings"})
    return transformers.Speech2TextForConditionalGeneration(config), {
        "input_features": torch.randn(sizes.batch, 64, 16).bfloat16(), "labels": sizes.get_tokens()["labels"]}


def _make_series(kind, sizes, **others):
    config = getattr(transformers, f"{kind}Config")(
        context_length=32, prediction_length=8, d_model=sizes.width, num_attention_heads=sizes.heads, num_hidden_layers=2,
        num_input_channels=3, **others)
    values = torch.randn(sizes.batch, 40, 3).bfloat16()
    return getattr(transformers, f"{kind}ForPrediction")(config), {
        "past_values": values[:, :32], "future_values": values[:, 32:]}


MODELS["patchtst"] = functools.partial(_make_series, "PatchTST", patch_length=8, patch_stride=8, ffn_dim=128)
MODELS["patchtsmixer"] = functools.partial(_make_series, "PatchTSMixer", patch_length=8, patch_stride=8)


@_add("decision_transformer")
def _make_decisions(sizes):
    config = transformers.DecisionTransformerConfig(state_dim=17, act_dim=3, hidden_size=sizes.width, n_layer=2,
                                                    n_head=sizes.heads, max_ep_len=64)
    steps = sizes.length // 2
    floats = {name: torch.randn(sizes.batch, steps, size).bfloat16() for name, size in (
        ("states", 17), ("actions", 3), ("returns_to_go", 1))}
    return transformers.DecisionTransformerModel(config), {
        **floats, "timesteps": torch.arange(steps).expand(sizes.batch, -1),
        "attention_mask": torch.ones(sizes.batch, steps, dtype=torch.long)}


@_add("perceiver")
def _make_perceiver(sizes):
    config = transformers.PerceiverConfig(
        vocab_size=sizes.words, num_latents=11, d_latents=sizes.width, d_model=sizes.width, num_blocks=1,
        num_self_attends_per_block=2, num_self_attention_heads=sizes.heads, num_cross_attention_heads=1,
        max_position_embeddings=sizes.length, qk_channels=sizes.width, v_channels=sizes.width)
    tokens = sizes.get_tokens()
    return transformers.PerceiverForMaskedLM(config), {
        "inputs": tokens["input_ids"], "labels": tokens["labels"],
        "attention_mask": torch.ones_like(tokens["input_ids"])}


def make(name, is_odd=False):
    """(model, inputs) in bf16, without dropout."""
    torch.manual_seed(0)
    model, inputs = MODELS[name](Sizes(is_odd))
    return drop_nothing(model.bfloat16().train()), inputs


def drop_nothing(model):
    """Rates of dropout are numbers of modules and of configs, and all of them 0."""
    holders = collections.deque([*model.modules(), *(m.config for m in model.modules() if hasattr(getattr(m, "config", None), "__dict__"))])
    for module in holders:
        for name, value in list(vars(module).items()):
            if ("drop" in name or isinstance(module, torch.nn.Dropout) and name == "p") and isinstance(value, float):
                setattr(module, name, 0.0)
    return model
