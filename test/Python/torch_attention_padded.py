# REQUIRES: pytorch, python-pytorch, python-transformers
# RUN: env FP8_CUDA_DRIVER=emulator %import_python %s
"""A step of training on padded batches by the kernels of a GPU, on the emulator: models of transformers beside "eager", with
masks as ranges of keys, caps of scores, and packed sequences."""

import copy
import unittest
from unittest import mock

import torch
import transformers

import fp8.torch
from fp8.torch import attention_backward, attention_calls, attention_programs, key_ranges

_get_function, _get_backward = attention_programs.get_function, attention_programs.get_backward
SIZES = {"hidden_size": 128, "num_attention_heads": 2, "num_key_value_heads": 1, "head_dim": 64, "intermediate_size": 48,
         "num_hidden_layers": 2, "vocab_size": 50, "max_position_embeddings": 128}


def make(kind, **options):
    torch.manual_seed(1)
    config = getattr(transformers, f"{kind}Config")(**{**SIZES, **options})
    return config, getattr(transformers, f"{kind}Model")(config).bfloat16()


class Padded(unittest.TestCase):
    def setUp(self):
        """Tensors of a CPU, programs of a GPU."""
        for target, name, replacement in (
                (attention_programs, "get_function", lambda shape, target: _get_function(shape, "sm_90a")),
                (attention_programs, "get_backward", lambda shape, order, target: _get_backward(shape, order, "sm_90a")),
                (attention_backward, "choose", lambda *others: ("fp8", "a test")),
                (attention_backward, "get_default_target", lambda: "sm_90a"),
                (attention_calls, "_find_ranges", lambda query, key, value, mask: key_ranges.find(mask, query))):
            patch = mock.patch.object(target, name, replacement)
            patch.start()
            self.addCleanup(patch.stop)
        self.settings = fp8.torch.register_attention()

    def step(self, model, implementation, padding, **inputs):
        """What there is of positions that are no padding, and gradients of all weights."""
        model = copy.deepcopy(model)
        model.set_attn_implementation(implementation)
        y = model(attention_mask=padding, **inputs).last_hidden_state.float() * padding[..., None]
        y.square().mean().backward()
        return torch.cat([y.flatten(), *(p.grad.float().flatten() / p.grad.float().norm().clamp(min=1e-6)
                                         for p in model.parameters() if p.grad is not None)])

    def compare(self, model, left, kept):
        ids = torch.randint(0, 50, (2, 41), generator=torch.Generator().manual_seed(2))
        padding = torch.ones_like(ids)
        padding[1, :15] = 0
        padding = padding if left else padding.flip(1)
        expected = self.step(model.float(), "eager", padding, input_ids=ids)
        plain, ours = (self.step(model.bfloat16(), name, padding, input_ids=ids) for name in ("eager", "fp8"))
        error, rounding = ((x - expected).norm() / expected.norm() for x in (ours, plain))
        # No further than roundings to bf16 take "eager" itself.
        self.assertLess(error, 1.5 * rounding + 0.01)
        self.assertEqual(self.settings.reasons, ())
        self.assertTrue(all(kept in text for text in self.settings.taken), self.settings.taken)

    def test_llama(self):
        for left in True, False:
            self.compare(make("Llama")[1], left, "ranges of keys in bf16")

    def test_bert(self):
        model = make("Bert", attention_probs_dropout_prob=0.0, hidden_dropout_prob=0.0)[1]
        self.compare(model, False, "ranges of keys in bf16")

    def test_gemma2(self):
        for left in True, False:
            model = make("Gemma2", query_pre_attn_scalar=64, attn_logit_softcapping=1.0, sliding_window=16)[1]
            self.compare(model, left, "ranges of keys, cap 1 in bf16")

    def test_packed(self):
        ends = torch.tensor([0, 30, 37, 90], dtype=torch.int32)
        torch.manual_seed(3)
        q, k, v, dy = (torch.randn(90, heads, 64).bfloat16() for heads in (4, 2, 2, 4))
        for cap in None, 1.5:
            found = []
            for run in (fp8.torch.packed_attention, self.attend_one_by_one):
                tensors = [x.clone().requires_grad_() for x in (q, k, v)]
                y = run(*tensors, ends, ends, is_causal=True, cap=cap)
                found.append([y, *torch.autograd.grad(y, tensors, dy)])
            for mine, other in zip(*found):
                self.assertLess((mine.float() - other.float()).norm() / other.float().norm(), 0.01)

    @staticmethod
    def attend_one_by_one(q, k, v, ends, _, is_causal, cap):
        """In f32."""
        results = []
        for first, end in zip(ends[:-1].tolist(), ends[1:].tolist()):
            x, y, z = (t[first:end].float().transpose(0, 1) for t in (q, k, v))
            scores = x @ y.repeat_interleave(2, 0).mT * 0.125
            scores = scores if cap is None else cap * torch.tanh(scores / cap)
            scores = scores.masked_fill(torch.ones_like(scores, dtype=torch.bool).triu(1), -torch.inf)
            results.append((scores.softmax(-1) @ z.repeat_interleave(2, 0)).transpose(0, 1))
        return torch.cat(results).bfloat16()


if __name__ == "__main__":
    unittest.main()
