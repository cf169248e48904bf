"""Models of transformers that are no part of zoo_models.py: nobody looked at one of them while
anything was made faster, and no test has them. zoo.py runs and shows them as held out."""


def _make_causal(name, sizes, **others):
    import transformers
    config = getattr(transformers, f"{name}Config")(vocab_size=sizes.vocabulary, **others)
    return getattr(transformers, f"{name}ForCausalLM")(config), sizes.get_tokens(4, 2048)


def _make_masked(name, sizes, **others):
    import transformers
    config = getattr(transformers, f"{name}Config")(
        vocab_size=sizes.vocabulary, max_position_embeddings=2048, **others)
    return getattr(transformers, f"{name}ForMaskedLM")(config), sizes.get_tokens(8, 1024)


def _make_images(name, sizes, **others):
    import transformers
    size = sizes.pick(64, 256)
    config = getattr(transformers, f"{name}Config")(image_size=size, num_labels=8, **others)
    return (getattr(transformers, f"{name}ForImageClassification")(config),
            sizes.get_images(32, size))


def make_mistral(sizes):
    """Windows of 1024 keys."""
    return _make_causal("Mistral", sizes, **sizes.get_transformer(
        num_key_value_heads=sizes.heads // 2, sliding_window=sizes.pick(16, 1024)))


def make_gemma3(sizes):
    """Norms of Q and K, windows in some layers."""
    import transformers
    config = transformers.Gemma3TextConfig(
        vocab_size=sizes.vocabulary, head_dim=sizes.width // sizes.heads,
        **sizes.get_transformer(num_key_value_heads=sizes.heads // 2,
                                sliding_window=sizes.pick(16, 512)))
    return transformers.Gemma3ForCausalLM(config), sizes.get_tokens(4, 2048)


def make_cohere2(sizes):
    """Attention and MLP beside each other."""
    return _make_causal("Cohere2", sizes, **sizes.get_transformer(
        num_key_value_heads=sizes.heads // 2, sliding_window=sizes.pick(16, 1024)))


def make_falcon(sizes):
    """One head of keys and values."""
    return _make_causal("Falcon", sizes, **sizes.get_layers(hidden_size=sizes.width))


def make_bloom(sizes):
    """A bias of attention by distance."""
    return _make_causal("Bloom", sizes, hidden_size=sizes.width, n_layer=sizes.layers,
                        n_head=sizes.heads)


def make_gptj(sizes):
    return _make_causal("GPTJ", sizes, n_embd=sizes.width, n_layer=sizes.layers,
                        n_head=sizes.heads, rotary_dim=sizes.pick(16, 64))


def make_deepseek_v3(sizes):
    """Latent attention, experts behind one dense layer."""
    head = sizes.pick(16, 64)
    return _make_causal(
        "DeepseekV3", sizes, q_lora_rank=sizes.width // 4, kv_lora_rank=sizes.width // 4,
        qk_rope_head_dim=head, qk_nope_head_dim=2 * head, v_head_dim=2 * head, n_routed_experts=8,
        n_group=1, topk_group=1, num_experts_per_tok=2, moe_intermediate_size=sizes.wide // 4,
        first_k_dense_replace=1,
        **sizes.get_transformer(num_key_value_heads=sizes.heads))


def make_modernbert(sizes):
    """Windows of 128 tokens in two of three layers, a gated MLP."""
    return _make_masked("ModernBert", sizes, pad_token_id=0, cls_token_id=1, sep_token_id=2,
                        bos_token_id=1, eos_token_id=2, local_attention=sizes.pick(16, 128),
                        **sizes.get_transformer())


def make_xlm_roberta(sizes):
    return _make_masked("XLMRoberta", sizes, **sizes.get_transformer())


def make_albert(sizes):
    """The same weights in each layer."""
    return _make_masked("Albert", sizes, embedding_size=128, **sizes.get_transformer())


def make_pegasus(sizes):
    import transformers
    config = transformers.PegasusConfig(
        vocab_size=sizes.vocabulary, d_model=sizes.width, encoder_layers=2, decoder_layers=2,
        encoder_attention_heads=sizes.heads, decoder_attention_heads=sizes.heads,
        encoder_ffn_dim=sizes.wide, decoder_ffn_dim=sizes.wide, pad_token_id=0)
    return transformers.PegasusForConditionalGeneration(config), sizes.get_tokens(8, 512)


def make_beit(sizes):
    """A bias of positions in attention."""
    return _make_images("Beit", sizes, patch_size=16, use_relative_position_bias=True,
                        **sizes.get_transformer())


def make_swinv2(sizes):
    return _make_images("Swinv2", sizes, embed_dim=sizes.pick(32, 192),
                        depths=[sizes.pick(1, 2)] * 2, num_heads=[sizes.pick(2, 6)] * 2,
                        window_size=8)


MODELS = {name[len("make_"):]: function for name, function in list(globals().items())
          if name.startswith("make_")}
