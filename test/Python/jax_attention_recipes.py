# REQUIRES: jax, python-jax
# RUN: %import_python %s
"""Recipes of programs with jax.nn.dot_product_attention: linear layers' are not for its products, forward and backward, but
those of attention are, by fp8_dpa, as an option and in files."""

import json
import tempfile
import unittest
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy

import fp8
import fp8.jax

LENGTH, HEADS, DIM = 32, 2, 32
WIDTH = HEADS * DIM
FORWARD, BACKWARD = ["attention.qk", "attention.pv"], [f"attention.{key}" for key in ("dp", "dv", "dk", "dq")]


def layer(weights, x):
    q, k, v = ((x @ weights[name]).reshape(1, LENGTH, HEADS, DIM) for name in "qkv")
    y = jax.nn.dot_product_attention(q, k, v, is_causal=True).reshape(1, LENGTH, WIDTH)
    return x + y @ weights["o"]


def differentiate(weights, x):
    return jax.grad(lambda weights, x: jnp.sum(layer(weights, x) ** 2), (0, 1))(weights, x)


def make():
    generator = numpy.random.default_rng(0)
    weights = {name: jnp.asarray(generator.standard_normal((WIDTH, WIDTH)) / 8, jnp.float32) for name in "qkvo"}
    return weights, jnp.asarray(generator.standard_normal((1, LENGTH, WIDTH)), jnp.float32)


def compile(function, recipe, **options):
    compiled = fp8.jax.compile(function, recipe, target="cpu", cache=False, **options)
    results = compiled(*make())
    return compiled, results


def split(compiled):
    """Roles of attention's products in FP8 and in high precision, and kinds of the others."""
    roles = {"fp8": [], "high precision": []}
    others = []
    for remark in compiled.remarks:
        if remark.role.startswith("attention."):
            roles[remark.kind].append(remark.role)
        else:
            others.append(remark.kind)
    return sorted(roles["fp8"]), sorted(roles["high precision"]), others


class Recipes(unittest.TestCase):
    def test_transforms(self):
        """A CPU's products have none, which the remark of scores says; a GPU's attention has."""
        recipe = fp8.Float8CurrentScaling(fp8_dpa=True, dpa_smooth_k=True)
        compiled, _ = compile(layer, recipe)
        without = {remark.role: remark.details.get("without", "") for remark in compiled.remarks}
        self.assertEqual(without["attention.qk"], "smooth_k: it is for fp8.attention, and this is a product by itself")
        self.assertEqual(without["attention.pv"], "")

    def test_linear_recipes_are_not_for_attention(self):
        for function, roles, others in (layer, FORWARD, 4), (differentiate, FORWARD + BACKWARD, 12):
            for recipe in "current", "rowwise", fp8.DelayedScaling():
                with self.subTest(function.__name__, recipe=str(recipe)):
                    compiled, _ = compile(function, recipe)
                    self.assertEqual(split(compiled), ([], sorted(roles), ["fp8"] * others))
        reasons = {remark.reason for remark in compiled.remarks if remark.role == "attention.dq"}
        self.assertEqual(reasons, {"it is a product of attention, to which no recipe applies: those of linear layers are not "
                                   "for it"})

    def test_attention_is_told_apart_by_its_error(self):
        """Attention in high precision is what a program without a recipe has, to the sums of its linear layers."""
        expected = numpy.asarray(layer(*make()))
        errors = {}
        for name, recipe, options in (("linear", "current", {}), ("both", "current", {"attention_recipe": "current"}),
                                      ("attention", None, {"attention_recipe": "current"}), ("none", None, {})):
            _, y = compile(layer, recipe, **options)
            errors[name] = float(numpy.linalg.norm(numpy.asarray(y) - expected) / numpy.linalg.norm(expected))
        self.assertLess(errors["none"], 1e-5)
        self.assertTrue(1e-3 < errors["attention"] < 0.05, errors)
        self.assertTrue(errors["linear"] < errors["both"] < 0.08, errors)

    def test_recipes_of_attention(self):
        for recipe, name in ((fp8.DelayedScaling(fp8_dpa=True), "delayed"), (fp8.Float8CurrentScaling(fp8_dpa=True), "current"),
                             (fp8.RowwiseScaling(fp8_dpa=True), "current")):
            with self.subTest(str(recipe)):
                compiled, _ = compile(layer, recipe)
                self.assertEqual(split(compiled), (sorted(FORWARD), [], ["fp8"] * 4))
                self.assertEqual({remark.recipe for remark in compiled.remarks if remark.role in FORWARD}, {name})
        compiled, _ = compile(layer, fp8.DelayedScaling(fp8_dpa=True), attention_recipe="none")
        self.assertEqual(split(compiled)[1], sorted(FORWARD))
        compiled, _ = compile(layer, None, attention_recipe=fp8.Float8CurrentScaling())
        self.assertEqual(split(compiled), (sorted(FORWARD), [], ["high precision"] * 4))

    def test_rules_of_roles(self):
        rules = [{"match": "*", "recipe": "current"}, {"role": "attention.d?", "recipe": "none"},
                 {"role": "attention.*", "match": "main.*", "recipe": "rowwise"}]
        with tempfile.TemporaryDirectory() as directory:
            path = Path(directory) / "recipes.json"
            path.write_text(json.dumps({"version": 1, "rules": rules}))
            compiled, _ = compile(differentiate, None, recipe_file=path)
        self.assertEqual(split(compiled), (sorted(FORWARD), sorted(BACKWARD), ["fp8"] * 12))
        self.assertEqual({remark.recipe for remark in compiled.remarks if remark.role in FORWARD}, {"rowwise"})


if __name__ == "__main__":
    unittest.main()
