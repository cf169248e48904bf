# REQUIRES: pytorch, python-pytorch, python-transformers
# RUN: %import_python %s
"""Models of transformers on two ranks beside one process: cut by plans of torch's and of our styles, and under FSDP2, where one's head
has the weight of its embedding."""

import sys
import unittest
import warnings
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent / "Inputs"))
import ranks  # noqa: E402
import torch  # noqa: E402
import torch.distributed as dist  # noqa: E402
import transformers  # noqa: E402
from torch.distributed.device_mesh import init_device_mesh  # noqa: E402
from torch.distributed.fsdp import fully_shard  # noqa: E402
from torch.distributed.tensor import parallel  # noqa: E402
from torch.distributed.tensor.parallel import parallelize_module  # noqa: E402

import fp8.torch  # noqa: E402

SIZES = {"hidden_size": 128, "intermediate_size": 256, "num_hidden_layers": 1, "num_attention_heads": 4, "vocab_size": 96,
         "max_position_embeddings": 64}
LLAMA = {"self_attn.q_proj": "Colwise", "self_attn.k_proj": "Colwise", "self_attn.v_proj": "Colwise", "self_attn.o_proj": "Rowwise",
         "mlp.gate_proj": "Colwise", "mlp.up_proj": "Colwise", "mlp.down_proj": "Rowwise"}
NEOX = {"mlp.dense_h_to_4h": "Colwise", "mlp.dense_4h_to_h": "Rowwise"}
BERT = {"attention.self.query": "Colwise", "attention.self.key": "Colwise", "attention.self.value": "Colwise",
        "attention.output.dense": "Rowwise", "intermediate.dense": "Colwise", "output.dense": "Rowwise"}
STEPS, BATCH, LENGTH = 2, 4, 64
warnings.filterwarnings("ignore", "fp8: ")


def make_model(name, recipe):
    torch.manual_seed(0)
    if name == "Bert":
        model = transformers.BertForMaskedLM(transformers.BertConfig(
            **SIZES, hidden_dropout_prob=0, attention_probs_dropout_prob=0))
    else:
        kind = {} if name == "GPTNeoX" else {"num_key_value_heads": 2}
        kind |= {"head_dim": 32} if name in ("Qwen3", "Gemma2") else {}
        config = getattr(transformers, f"{name}Config")(**SIZES, **kind, use_cache=False)
        model = getattr(transformers, f"{name}ForCausalLM")(config)
    return fp8.torch.convert_to_fp8_training(model.float(), recipe, first_last_bf16=0, target="cpu")


def find_layers(model):
    return next(module for module in model.modules() if isinstance(module, torch.nn.ModuleList))


def train(model, parts=1, rank=None):
    """Losses of each of so many parts of a batch, or of a rank's, and whole parameters."""
    optimizer, losses = torch.optim.SGD(model.parameters(), 0.1), []
    for ids in torch.randint(1, 96, (STEPS, BATCH, LENGTH), generator=torch.Generator().manual_seed(1)):
        with fp8.torch.accumulated(model):
            for place, part in enumerate(ids.chunk(parts)):
                if rank in (None, place):
                    loss = model(input_ids=part, labels=part).loss
                    (loss if rank is not None else loss / parts).backward()
                    losses.append(loss.item())
        optimizer.step()
        optimizer.zero_grad()
        fp8.torch.precompute_scales(model)
    return losses, [(value.full_tensor() if hasattr(value, "full_tensor") else value).detach() for value in model.parameters()]


def train_cut(name, recipe, is_own):
    model, styles = make_model(name, recipe), fp8.torch if is_own else parallel
    plan = {"GPTNeoX": NEOX, "Bert": BERT}.get(name, LLAMA)
    for layer in find_layers(model):
        parallelize_module(layer, init_device_mesh("cpu", (2,)), {
            key: getattr(styles, f"{style}Parallel")() for key, style in plan.items()})
    return train(model)


def train_sharded(name, recipe, gathers):
    model = make_model(name, recipe)
    left = fp8.torch.gather_in_fp8(model) if gathers else {}
    for layer in find_layers(model):
        fully_shard(layer)
    return left, train(fully_shard(model), 2, dist.get_rank())


class Models(unittest.TestCase):
    def test_parts(self):
        """Losses differ by the order of sums, and by codes that follow from it."""
        cases = [("Llama", "block", True), ("Qwen3", "current", True), ("GPTNeoX", "block", False), ("Bert", "current", False)]
        alone = {(name, recipe): train(make_model(name, recipe))[0] for name, recipe, _ in cases}
        for found in ranks.run(2, lambda: {case: train_cut(*case)[0] for case in cases}):
            for (name, recipe, _), losses in found.items():
                with self.subTest(name=name):
                    for loss, expected in zip(losses, alone[name, recipe]):
                        self.assertLess(abs(loss - expected), 5e-3)

    def test_shards(self):
        """Losses and parameters have the bits of one process that takes each rank's rows in turn."""
        cases = [("Bert", "current", True), ("Gemma2", "rowwise", True)]
        alone = {name: train(make_model(name, recipe), 2) for name, recipe, _ in cases}
        for rank, found in enumerate(ranks.run(2, lambda: {case: train_sharded(*case) for case in cases})):
            for (name, *_), (left, (losses, values)) in found.items():
                with self.subTest(name=name, rank=rank):
                    self.assertEqual(losses, alone[name][0][rank::2])
                    self.assertTrue(all(map(torch.equal, values, alone[name][1])))
                    self.assertEqual(["shares its weight" in reason for reason in left.values()], [True])


if __name__ == "__main__":
    unittest.main()
