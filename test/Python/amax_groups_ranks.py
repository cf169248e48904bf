# REQUIRES: pytorch, python-pytorch
# RUN: %import_python %s
"""Programs on two ranks over gloo, each with a part of the rows: results have the bits of one process with all of them."""

import sys
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent / "Inputs"))
import programs  # noqa: E402
import ranks  # noqa: E402
import torch  # noqa: E402
import torch.distributed as dist  # noqa: E402

import fp8  # noqa: E402
import fp8.torch  # noqa: E402

TEXT = programs.LINEAR.replace('"y"}) {', '"y"}) attributes {fp8.amax_group = "rows"} {')
STEPS = 3


def make_batches():
    """The largest elements are another rank's in each step."""
    generator = torch.Generator().manual_seed(0)
    batches = torch.randn(STEPS, 64, 256, generator=generator).bfloat16()
    for step in range(STEPS):
        batches[step, 32 * (step % 2) + 3, 5] = 20 + step
    return batches, torch.randn(256, 64, generator=generator).bfloat16()


def run(program, batches, w, state):
    results = []
    for batch in batches:
        results.append(program(batch, w, **({"state": state} if state else {})))
        if state:
            state.end_step()
    return results


class Ranks(unittest.TestCase):
    def compare(self, recipe):
        program = fp8.compile(TEXT, recipe, target="cpu")
        whole = fp8.compile(programs.LINEAR.replace("32x2", "64x2").replace("32x6", "64x6"), recipe, target="cpu")
        batches, w = make_batches()
        has_state = recipe.startswith("delayed")

        def work():
            fp8.torch.set_group("rows")
            part = batches.chunk(2, 1)[dist.get_rank()]
            state = fp8.State(program) if has_state else None
            results = run(program, part, w, state)
            return results, [slot.scale for slot in state.slots.values()] if state else None
        expected = run(whole, batches, w, fp8.State(whole) if has_state else None)
        (first, scales), (second, other_scales) = ranks.run(2, work)
        self.assertEqual(scales, other_scales)
        for y, *parts in zip(expected, first, second):
            self.assertTrue(torch.equal(y, torch.cat(parts)))

    def test_current(self):
        self.compare("current")

    def test_delayed(self):
        """The first step's scales are those of all ranks, too."""
        self.compare("delayed,amax_history_len=1")

    def test_a_rank_that_is_gone(self):
        """An error of the call, where it waits for the others."""
        program = fp8.compile(TEXT, "current", target="cpu")
        batches, w = make_batches()

        def work():
            if dist.get_rank() == 1:
                import os
                os._exit(1)
            fp8.torch.set_group("rows")
            with self.assertRaisesRegex(fp8.DeviceError, "^cannot reduce over the group 'rows': "):
                program(batches[0, :32], w)
        ranks.run(2, work, dies=[1], timeout=30)

    def test_without_torch_distributed(self):
        with self.assertRaisesRegex(fp8.ArgumentError, "^expected torch.distributed to be initialized"):
            fp8.torch.set_group("rows")


if __name__ == "__main__":
    unittest.main()
