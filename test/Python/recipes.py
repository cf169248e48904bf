# RUN: %python %s
"""Recipes of fp8.recipes as the compiler's text."""

import dataclasses
import sys
import unittest
import unittest.mock
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent / "Inputs"))
import fp8  # noqa: E402
import programs  # noqa: E402
from fp8.recipe_keys import RECIPES, Key  # noqa: E402

ALL = [fp8.DelayedScaling, fp8.Float8CurrentScaling, fp8.RowwiseScaling, fp8.Float8BlockScaling,
       fp8.MXFP8BlockScaling, fp8.NVFP4BlockScaling]
# A value that is not the default, for fields that take a word or a number.
OTHERS = {"margin": 1, "amax_history_len": 16, "amax_compute_algo": "most_recent",
          "compat": "te_unfused", "initial": "one", "accumulate": "fast", "amax_epsilon": 0.5,
          "style": "torchao",
          "x_block_scaling_dim": 1, "w_block_scaling_dim": 1, "grad_block_scaling_dim": 1,
          "mode": "floor", "nonfinite": "nan"}


def get_recipe(recipe):
    """What the compiler understands of it, in its own words."""
    text = fp8.emit(programs.LINEAR, recipe=recipe, target="cpu", to="fusion").decode()
    return text[text.index("fp8.recipe = ") + 13:].split(", fp8.role")[0]


class Recipes(unittest.TestCase):
    def test_text(self):
        for recipe, text in [
                (fp8.DelayedScaling(), "delayed"),
                (fp8.DelayedScaling(initial="one"), "delayed,initial=one"),
                (fp8.DelayedScaling(amax_history_len=1024, amax_compute_algo="max",
                                    fp8_format=fp8.Format.HYBRID, margin=0), "delayed"),
                (fp8.DelayedScaling(margin=2, fp8_format=fp8.Format.E4M3, reduce_amax=False),
                 "delayed,margin=2,format=e4m3,reduce_amax=false"),
                (fp8.Float8CurrentScaling(use_power_2_scales=True), "current,pow2=true"),
                (fp8.RowwiseScaling(style="torchao"), "rowwise,style=torchao"),
                (fp8.Float8BlockScaling(use_f32_scales=True, w_block_scaling_dim=1),
                 "block,pow2=false,w_dim=1"),
                (fp8.MXFP8BlockScaling(mode="floor"), "mxfp8,mode=floor"),
                (fp8.NVFP4BlockScaling(enable_2d_quantization=True), "nvfp4,weight_2d=true"),
                (fp8.NVFP4BlockScaling(enable_stochastic_rounding=True, enable_rht=True),
                 "nvfp4,stochastic_rounding=true,hadamard=true"),
                (fp8.StaticScaling("s.safetensors"), "static,state=s.safetensors")]:
            self.assertEqual(str(recipe), text)

    def test_defaults_are_the_compilers(self):
        for recipe in ALL:
            spelled = [recipe._name]
            for field in fp8.recipes.get_options(recipe):
                value = field.default
                value = value.value if isinstance(value, fp8.Format) else value
                value = not value if field.metadata["negated"] else value
                value = str(value).lower() if isinstance(value, bool) else value
                spelled.append(f"{field.metadata['key'] or field.name}={value}")
            self.assertEqual(get_recipe(",".join(spelled)), get_recipe(recipe()))

    def test_keys_are_the_compilers(self):
        for recipe in [*ALL, fp8.StaticScaling]:
            keys = {field.metadata["key"] or field.name for field in fp8.recipes.get_options(recipe)}
            self.assertEqual(keys, {key.name for key in RECIPES[recipe._name]})
        self.assertEqual({recipe._name for recipe in [*ALL, fp8.StaticScaling]},
                         RECIPES.keys() - {"none"})

    def test_keys_without_a_field(self):
        keys = [*RECIPES["current"], Key("seed", 7, 0, 9)]
        with unittest.mock.patch.dict(RECIPES, added=keys):
            @dataclasses.dataclass(frozen=True)
            class Fancy(fp8.Recipe, name="added"):
                power: bool = fp8.recipes._key("pow2", negated=True)

            self.assertEqual(str(Fancy()), "added")
            self.assertEqual(str(Fancy(power=False, seed=8)), "added,pow2=true,seed=8")
            self.assertEqual(Fancy().format, fp8.Format.HYBRID)
            with self.assertRaisesRegex(AssertionError, "keys of 'added', but got sed"):
                class Typo(fp8.Recipe, name="added"):
                    sed: int = fp8.recipes._key()
            made = fp8.recipes._make_kind("added")
            self.assertEqual(str(made(pow2=True, style="torchao")),
                             "added,pow2=true,style=torchao")

    def test_every_field_is_an_option(self):
        for recipe in ALL:
            for field in fp8.recipes.get_options(recipe):
                value = OTHERS.get(field.name, fp8.Format.E5M2)
                value = not field.default if isinstance(field.default, bool) else value
                other = recipe(**{field.name: value})
                if value != field.default:
                    with self.subTest(str(other)):
                        self.assertNotEqual(get_recipe(other), get_recipe(recipe()))

    def test_attention_is_no_key(self):
        for recipe in [*ALL, fp8.StaticScaling]:
            options = {"state": "s"} if recipe is fp8.StaticScaling else {}
            self.assertFalse(recipe(**options).fp8_dpa)
            self.assertTrue(recipe(**options, fp8_dpa=True).fp8_dpa)
            self.assertEqual(str(recipe(**options, fp8_dpa=True)), str(recipe(**options)))
        self.assertEqual(fp8.DelayedScaling(2).margin, 2)

    def test_recipe_of_attention(self):
        for recipe, text in ((fp8.DelayedScaling(margin=1, fp8_dpa=True), "delayed,margin=1"),
                             (fp8.Float8CurrentScaling(amax_epsilon=0.5, fp8_dpa=True), "current,amax_epsilon=0.5"),
                             (fp8.StaticScaling("s", fp8_dpa=True), "static,state=s"),
                             (fp8.RowwiseScaling(fp8_dpa=True), "current"), (fp8.MXFP8BlockScaling(fp8_dpa=True), "current")):
            self.assertEqual(fp8.recipes.get_attention_text(recipe), text)
        for recipe in None, "current", fp8.DelayedScaling():
            self.assertIsNone(fp8.recipes.get_attention_text(recipe))

    def test_values_that_are_none(self):
        for value in ("max,margin=3", ["max"], None, max):
            with self.assertRaisesRegex(TypeError, "for 'amax_compute_algo', but got"):
                str(fp8.DelayedScaling(amax_compute_algo=value))
        with self.assertRaises(TypeError):
            fp8.DelayedScaling(amax_history=3)
        with self.assertRaises(dataclasses.FrozenInstanceError):
            fp8.DelayedScaling().margin = 1

    def test_parse(self):
        for recipe in [*(kind() for kind in ALL), fp8.DelayedScaling(margin=2, reduce_amax=False),
                       fp8.Float8CurrentScaling(amax_epsilon=1e-3, fp8_format=fp8.Format.E4M3),
                       fp8.Float8BlockScaling(use_f32_scales=True, w_block_scaling_dim=1),
                       fp8.StaticScaling("s.safetensors")]:
            self.assertEqual(fp8.recipes.parse(str(recipe)), recipe)
            self.assertIs(fp8.recipes.parse(recipe), recipe)
        self.assertIsNone(fp8.recipes.parse("none"))
        for text, message in [("fancy", "one of the recipes"), ("current,colour=3", "one of the keys"),
                              ("delayed,margin=x", "a value of 'margin' like 0, but got 'x'"),
                              ("current,pow2=1", "like false, but got '1'"),
                              ("current,format=e3m4", "like hybrid"), ("none,x=1", "the recipes")]:
            with self.assertRaisesRegex(fp8.ArgumentError, message):
                fp8.recipes.parse(text)

    def test_they_are_values(self):
        self.assertEqual({fp8.DelayedScaling(): 1}[fp8.DelayedScaling(margin=0)], 1)
        self.assertNotEqual(fp8.DelayedScaling(), fp8.Float8CurrentScaling())


if __name__ == "__main__":
    unittest.main()
