# REQUIRES: pytorch, python-pytorch, python-transformers
# RUN: %import_python %s
"""A mixture of experts of transformers, DeepSeek's, whose experts two ranks share, to which tokens travel as codes, beside one
process with all of them."""

import copy
import sys
import unittest
import warnings
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent / "Inputs"))
import ranks  # noqa: E402
import torch  # noqa: E402
import torch.distributed as dist  # noqa: E402
from torch import nn  # noqa: E402
from transformers import DeepseekV3Config  # noqa: E402
from transformers.models.deepseek_v3.modeling_deepseek_v3 import DeepseekV3MoE  # noqa: E402

import fp8  # noqa: E402
import fp8.torch  # noqa: E402

WIDTH, TOKENS, STEPS = 128, 64, 3
warnings.filterwarnings("ignore", "fp8: ")


def make_model():
    torch.manual_seed(0)
    config = DeepseekV3Config(hidden_size=WIDTH, moe_intermediate_size=128, n_routed_experts=4, num_experts_per_tok=2, n_group=1,
                              topk_group=1, n_shared_experts=1, num_hidden_layers=1, num_attention_heads=2)
    model = nn.Sequential(DeepseekV3MoE(config))
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.normal_(std=0.1)
    return model.bfloat16()


def train(recipe, cuts, codes=True):
    """Results, and parameters, of this rank's tokens; gradients of experts are of all tokens."""
    model = make_model()
    if cuts:
        fp8.torch.cut_experts(model, codes=codes)
    if recipe:
        fp8.torch.convert_to_fp8_training(model, recipe, first_last_bf16=0, target="cpu")
    optimizer, found, world = torch.optim.SGD(model.parameters(), 0.1), [], dist.get_world_size()
    for x in torch.randn(STEPS, 1, TOKENS, WIDTH, generator=torch.Generator().manual_seed(1)).bfloat16():
        x = x.chunk(world, 1)[dist.get_rank()]
        y = model(x)
        y.float().square().mean().div(world).backward()
        for name, parameter in model.named_parameters():
            if "experts." not in name or "shared" in name:
                dist.all_reduce(parameter.grad)
        optimizer.step()
        optimizer.zero_grad()
        found.append(y.detach())
    return found, {name: value.detach() for name, value in model.named_parameters()}


def get_error(value, expected):
    return ((value.float() - expected.float()).norm() / expected.float().norm()).item()


class Experts(unittest.TestCase):
    def test_beside_one_process(self):
        """First results have its bits where tokens travel as they are, or are quantized to what they travel as. Later ones differ by
        roundings of sums, and by the scales of gradients."""
        cases = [(None, False), ("block,pow2=true", True), ("current", False)]
        alone, = ranks.run(1, lambda: {case: train(case[0], False) for case in cases})
        cut, = ranks.run(1, lambda: {case: train(case[0], True, case[1]) for case in cases[:2]})
        both = ranks.run(2, lambda: {case: train(case[0], True, case[1]) for case in cases})
        for case in cases:
            results, values = alone[case]
            found = [torch.cat([each[case][0][step] for each in both], 1) for step in range(STEPS)]
            with self.subTest(case=case):
                if case in cut:
                    self.assertTrue(torch.equal(cut[case][0][0], found[0]))
                bound = 0.02 if case[0] is None else 0.1
                for step in range(STEPS):
                    self.assertLess(get_error(found[step], results[step]), bound)
                for name, value in values.items():
                    parts = [each[case][1][name] for each in both]
                    whole = torch.cat(parts) if parts[0].shape != value.shape else parts[0]
                    self.assertLess(get_error(whole, value), bound, name)

    def test_a_rank_whose_experts_have_no_tokens(self):
        def run(recipe):
            model = fp8.torch.cut_experts(make_model())
            fp8.torch.convert_to_fp8_training(model, recipe, first_last_bf16=0, target="cpu")
            x = torch.ones(8, WIDTH, dtype=torch.bfloat16, requires_grad=True)
            chosen = torch.tensor([[0, 1]] * 8)
            y = model[0].experts(hidden_states=x, top_k_index=chosen, top_k_weights=torch.ones(8, 2, dtype=torch.bfloat16))
            y.sum().backward()
            return y.isfinite().all().item(), x.grad.isfinite().all().item()
        self.assertEqual(ranks.run(2, lambda: run("block")), [(True, True)] * 2)

    def test_copies(self):
        """Copies send tokens to the same ranks, of any group."""
        def run():
            model = fp8.torch.cut_experts(make_model(), dist.new_group([0, 1]))
            x = torch.randn(1, TOKENS, WIDTH, generator=torch.Generator().manual_seed(1)).bfloat16()
            return torch.equal(copy.deepcopy(model)(x), model(x))
        self.assertEqual(ranks.run(2, run), [True, True])

    def test_refused(self):
        def run():
            model = fp8.torch.cut_experts(make_model())
            with self.assertRaisesRegex(fp8.ArgumentError, "^expected experts that are not cut yet, but got '0.experts', of which"):
                fp8.torch.cut_experts(model)
            with self.assertRaisesRegex(fp8.ArgumentError, "^expected experts of transformers in the model, but got none in Linear$"):
                fp8.torch.cut_experts(nn.Linear(4, 4))
            model = fp8.torch.convert_to_fp8_training(make_model(), "block", first_last_bf16=0, target="cpu")
            with self.assertRaisesRegex(fp8.ArgumentError, "^expected cut_experts before convert_to_fp8_training, but got '0.experts'"):
                fp8.torch.cut_experts(model)
        ranks.run(2, run)
        with self.assertRaisesRegex(AssertionError, "expected a multiple of 3 experts, as many for each rank, but got 4 in '0.experts'"):
            ranks.run(3, lambda: fp8.torch.cut_experts(make_model()))


if __name__ == "__main__":
    unittest.main()
