# RUN: %python %s %fp8_build/bin/fp8-state
"""States of programs with delayed scaling."""

import json
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

import ml_dtypes
import numpy as np

sys.path.insert(0, str(Path(__file__).parent / "Inputs"))
import fp8  # noqa: E402
import programs  # noqa: E402

FP8_STATE = sys.argv.pop() if len(sys.argv) > 1 else "fp8-state"


def make_program(recipe=fp8.DelayedScaling(amax_history_len=4)):
    return fp8.compile(programs.LINEAR, recipe, target="cpu", cache=False)


class State(unittest.TestCase):
    def setUp(self):
        self.program = make_program()
        self.state = fp8.State(self.program)

    def step(self, state=None, factor=1):
        x, w = programs.make_inputs()
        state = state or self.state
        y = self.program((x * factor).astype(x.dtype), w, state=state)
        state.end_step()
        return y

    def test_steps(self):
        x, w = programs.make_inputs()
        before = self.state.slots["layer.linear.x"]
        self.assertEqual((before.scale, before.recorded, before.format, before.operand),
                         (1, 0, "e4m3", "activation"))
        first = self.step()
        slot = self.state.slots["layer.linear.x"]
        amax = np.abs(x.astype(np.float32)).max()
        self.assertEqual((slot.amax, slot.recorded), (amax, 1))
        self.assertEqual(slot.scale, np.float32(448) / amax)
        self.assertEqual(self.state.steps, 1)
        # The history has the scale that the first step found in its own tensor.
        self.assertEqual(self.step().tobytes(), first.tobytes())

    def test_a_first_step_with_scales_of_one(self):
        first = self.step()
        self.program = make_program(fp8.DelayedScaling(amax_history_len=4, initial="one"))
        self.state = fp8.State(self.program)
        self.assertNotEqual(self.step().tobytes(), first.tobytes())
        self.assertEqual(self.step().tobytes(), first.tobytes())

    def test_several_calls_are_one_step(self):
        x, w = programs.make_inputs()
        self.program(x, w, state=self.state)
        self.program((x * 4).astype(x.dtype), w, state=self.state)
        self.state.end_step()
        amax = 4 * np.abs(x.astype(np.float32)).max()
        self.assertEqual(self.state.slots["layer.linear.x"].amax, amax)
        self.assertEqual(self.state.steps, 1)

    def test_frozen(self):
        self.step()
        slots = self.state.slots
        with self.state.frozen():
            self.step(factor=100)
        self.assertEqual(self.state.slots, slots)
        self.step(factor=100)
        self.assertNotEqual(self.state.slots, slots)

    def test_frozen_after_an_error(self):
        with self.assertRaises(ZeroDivisionError), self.state.frozen():
            1 / 0
        self.step()
        self.assertEqual(self.state.slots["layer.linear.x"].recorded, 1)

    def test_reset_and_scales(self):
        new = self.state.slots
        self.step()
        self.state.reset()
        self.assertEqual(self.state.slots, new)
        self.state.set_scale("layer.linear.w", 2)
        self.assertEqual(self.state.slots["layer.linear.w"].scale, 2)
        with self.assertRaisesRegex(fp8.ArgumentError, "finite"):
            self.state.set_scale("layer.linear.w", float("inf"))
        with self.assertRaisesRegex(fp8.NotFoundError, "layer.linear.v"):
            self.state.set_scale("layer.linear.v", 1)

    def test_files_of_before(self):
        """Their manifests know of no first scales, and have no checksum; a slot that was never
        used has none."""
        for steps in (0, 1):
            self.state = fp8.State(self.program)
            for _ in range(steps):
                self.step()
            saved = self.state.state_dict()
            metadata = json.loads(saved["metadata"].tobytes())
            prefix = "fp8.scaling_state."
            manifest = json.loads(metadata[f"{prefix}manifest"])
            self.assertEqual(manifest.pop("initial"), "auto")
            self.assertNotIn("uses", manifest)
            metadata = {f"{prefix}version": "1", f"{prefix}manifest": json.dumps(manifest)}
            text = np.frombuffer(json.dumps(metadata).encode(), np.uint8)
            other = fp8.State(self.program)
            other.load_state_dict({**saved, "metadata": text})
            self.assertEqual(self.step(other, factor=3).tobytes(), self.step(factor=3).tobytes())
            self.assertEqual(other.slots, self.state.slots)

    def test_files(self):
        for factor in (1, 3, 2):
            self.step(factor=factor)
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "state.safetensors"
            self.state.save(path)
            shown = subprocess.run([FP8_STATE, "print", path], check=True, text=True,
                                   capture_output=True).stdout
            self.assertIn("layer.linear.x", shown)
            other = fp8.State(self.program)
            self.assertEqual(other.load(path, strict=True), "")
            self.assertEqual(other.slots, self.state.slots)
            self.assertEqual(self.step(other).tobytes(), self.step().tobytes())
            longer = fp8.State(make_program(fp8.DelayedScaling(amax_history_len=8)))
            self.assertIn("amax_history_len", longer.load(path))
            with self.assertRaises(fp8.MismatchError):
                longer.load(path, strict=True)
            path.write_bytes(path.read_bytes()[:-1])
            with self.assertRaisesRegex(fp8.FileError, "state.safetensors"):
                other.load(path)
            with self.assertRaises(fp8.FileError):
                self.state.save(Path(folder) / "missing" / "state.safetensors")

    def test_state_dicts(self):
        for factor in (1, 3, 2):
            self.step(factor=factor)
        saved = self.state.state_dict()
        self.assertTrue(all(isinstance(array, np.ndarray) for array in saved.values()))
        self.assertEqual(saved["amax_history"].shape, (2, 3))
        other = fp8.State(self.program)
        self.assertEqual(other.load_state_dict(saved), "")
        self.assertEqual(self.step(other).tobytes(), self.step().tobytes())

    def test_state_dicts_that_are_none(self):
        saved, slots = self.state.state_dict(), self.state.slots
        without = {key: array for key, array in saved.items() if key != "metadata"}
        for wrong in ({}, without, {**saved, "metadata": saved["scale"]},
                      {**saved, "scale": saved["scale"][:1]}, {**saved, "scale": saved["amax"]},
                      {key: array for key, array in saved.items() if key != "scale"}):
            with self.assertRaises(fp8.FileError):
                self.state.load_state_dict(wrong)
            self.assertEqual(self.state.slots, slots)

    def test_the_row_of_amaxes(self):
        x, w = programs.make_inputs()
        self.program(x, w, state=self.state)
        address, count, device = self.state.get_amax_row()
        self.assertIsNone(device)
        import ctypes
        row = (ctypes.c_float * count).from_address(address)
        self.assertEqual(row[0], np.abs(x.astype(np.float32)).max())
        row[0] = 896
        self.state.end_step()
        self.assertEqual(self.state.slots["layer.linear.x"].scale, 0.5)


class Wrong(unittest.TestCase):
    def test_the_device_before_a_call(self):
        """Where rows are asked for before the first call, of a GPU that is not the first one."""
        state = fp8.State(fp8.compile(programs.LINEAR, fp8.DelayedScaling(), target="sm_90a", cache=False))
        state.set_device(1)
        try:
            device = state.get_scale_rows()[3]
        except fp8.Error as error:  # Where there is no such GPU.
            device = 1
            self.assertNotIn("device 0", str(error))
        self.assertEqual((device, state._core.device), (1, 1))
        on_host = fp8.State(make_program())
        on_host.set_device(1)
        self.assertIsNone(on_host.get_scale_rows()[3])

    def test_programs_without_a_state(self):
        with self.assertRaisesRegex(fp8.ArgumentError, "state"):
            fp8.State(make_program("current"))

    def test_calls_without_one(self):
        x, w = programs.make_inputs()
        with self.assertRaisesRegex(fp8.ArgumentError, "expected a state for 'linear', but got "
                                                       "None"):
            make_program()(x, w)

    def test_another_programs(self):
        x, w = programs.make_inputs()
        other = fp8.compile(programs.LINEAR.replace("layer.linear", "layer.other"),
                            fp8.DelayedScaling(), target="cpu", cache=False)
        program = make_program()
        with self.assertRaises(fp8.MismatchError):
            program(x, w, state=fp8.State(other))
        self.assertEqual(program(x, w, state=program.create_state()).dtype, np.float32)

    def test_objects_that_are_none(self):
        x, w = programs.make_inputs()
        with self.assertRaisesRegex(fp8.ArgumentError, "expected a state for 'linear', but got "
                                                       "dict"):
            make_program()(x, w, state={})

    def test_a_program_lives_as_long_as_its_state(self):
        x, w = programs.make_inputs()
        program = make_program()
        state = program.create_state()
        program(x.astype(ml_dtypes.bfloat16), w, state=state)
        del program
        state.end_step()
        self.assertEqual(state.steps, 1)


if __name__ == "__main__":
    unittest.main()
