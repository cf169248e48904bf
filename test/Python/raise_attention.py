# REQUIRES: pytorch, python-pytorch
# RUN: %import_python %s
"""Attention with masks that a program computes has the program's numbers on a CPU, raised or not."""

import re
import subprocess
import unittest

import torch

import fp8

BATCHES, QUERIES, KEYS, COLUMNS = 2, 32, 48, 64
SCORES = f"tensor<{BATCHES}x{QUERIES}x{KEYS}xf32>"
Q, K = f"tensor<{BATCHES}x{QUERIES}x{COLUMNS}xbf16>", f"tensor<{BATCHES}x{KEYS}x{COLUMNS}xbf16>"

# What makes %y, whether a key %j is seen by a query %i.
CONDITIONS = {
    "causal": """
    %y = arith.cmpi sle, %j, %i : index""",
    "sliding": """
    %a = arith.cmpi sle, %j, %i : index
    %n = arith.constant 5 : index
    %l = arith.addi %j, %n : index
    %b = arith.cmpi sge, %l, %i : index
    %y = arith.andi %a, %b : i1""",
    "in 32 bits": """
    %jw = arith.index_cast %j : index to i32
    %iw = arith.index_cast %i : index to i32
    %n = arith.constant 3 : i32
    %l = arith.addi %iw, %n : i32
    %y = arith.cmpi slt, %jw, %l : i32""",
    "no limit": """
    %jw = arith.index_cast %j : index to i32
    %n = arith.constant 2147483647 : i32
    %y = arith.cmpi sle, %jw, %n : i32""",
    "inverted": """
    %a = arith.cmpi sgt, %j, %i : index
    %t = arith.constant true
    %y = arith.xori %a, %t : i1"""}
# No windows: what wraps, and others.
ODD_CONDITIONS = {
    "wraps in 32 bits": """
    %jw = arith.index_cast %j : index to i32
    %iw = arith.index_cast %i : index to i32
    %n = arith.constant 2147483640 : i32
    %a = arith.addi %jw, %n : i32
    %b = arith.addi %iw, %n : i32
    %y = arith.cmpi sle, %a, %b : i32""",
    "wraps on the way": """
    %jw = arith.index_cast %j : index to i32
    %iw = arith.index_cast %i : index to i32
    %n = arith.constant -2147483648 : i32
    %a = arith.subi %jw, %n : i32
    %y = arith.cmpi sle, %a, %iw : i32""",
    "sums of few bits": """
    %jw = arith.index_cast %j : index to i8
    %iw = arith.index_cast %i : index to i8
    %n = arith.constant 100 : i8
    %a = arith.addi %jw, %n : i8
    %b = arith.addi %iw, %n : i8
    %aw = arith.extsi %a : i8 to i32
    %bw = arith.extsi %b : i8 to i32
    %y = arith.cmpi sle, %aw, %bw : i32""",
    "numbers of few bits": """
    %jw = arith.index_cast %j : index to i4
    %iw = arith.index_cast %i : index to i4
    %aw = arith.extsi %jw : i4 to i32
    %bw = arith.extsi %iw : i4 to i32
    %y = arith.cmpi sle, %aw, %bw : i32""",
    "without a sign": """
    %jw = arith.index_cast %j : index to i32
    %iw = arith.index_cast %i : index to i32
    %d = arith.subi %jw, %iw : i32
    %dw = arith.extui %d : i32 to i64
    %n = arith.constant 0 : i64
    %y = arith.cmpi sle, %dw, %n : i64""",
    "compared without a sign": """
    %d = arith.subi %j, %i : index
    %n = arith.constant 0 : index
    %y = arith.cmpi ule, %d, %n : index""",
    "every third": """
    %n = arith.constant 3 : index
    %z = arith.constant 0 : index
    %m = arith.remui %j, %n : index
    %y = arith.cmpi ne, %m, %z : index"""}
# What makes %f, which is added to scores.
ADDED = {
    "positions": """
    %d = arith.subi %j, %i : index
    %w = arith.index_cast %d : index to i32
    %x = arith.sitofp %w : i32 to f32
    %c = arith.constant 0.07 : f32
    %f = arith.mulf %x, %c : f32""",
    "hidden by -inf": """
    %a = arith.cmpi sle, %j, %i : index
    %z = arith.constant 0.0 : f32
    %h = arith.constant 0xFF800000 : f32
    %f = arith.select %a, %z, %h : f32""",
    "hidden a little": """
    %a = arith.cmpi sle, %j, %i : index
    %z = arith.constant 0.0 : f32
    %h = arith.constant -3.0 : f32
    %f = arith.select %a, %z, %h : f32""",
    "rounded to 16 bits": """
    %d = arith.subi %j, %i : index
    %w = arith.index_cast %d : index to i32
    %x = arith.sitofp %w : i32 to f32
    %r = arith.truncf %x : f32 to bf16
    %f = arith.extf %r : bf16 to f32""",
    "rounded to 8 bits": """
    %d = arith.subi %j, %i : index
    %w = arith.index_cast %d : index to i32
    %x = arith.sitofp %w : i32 to f32
    %r = arith.truncf %x : f32 to f8E4M3FN
    %f = arith.extf %r : f8E4M3FN to f32"""}


def write(made, added, masked=None, rounds=None):
    """Scores, masked in place or by a tensor, which may be rounded as it is added, and the rest of attention."""
    element, name = ("f32", "%f") if added else ("i1", "%y")
    mask = f"tensor<{QUERIES}x{KEYS}x{element}>"
    rounded = f"""    %r = arith.truncf %of : f32 to {rounds}
    %w = arith.extf %r : {rounds} to f32
    %x = arith.addf %score, %w : f32"""
    use = (rounded if rounds else "    %x = arith.addf %score, %of : f32" if added else
           "    %hidden = arith.constant 0xFF800000 : f32\n    %x = arith.select %of, %score, %hidden : f32")
    masked = masked or f"""
  %me = tensor.empty() : {mask}
  %mask = linalg.generic {{indexing_maps = [#two], iterator_types = ["parallel", "parallel"]}} outs(%me : {mask}) {{
  ^bb0(%unused: {element}):
    %i = linalg.index 0 : index
    %j = linalg.index 1 : index{made}
    linalg.yield {name} : {element}
  }} -> {mask}
  %masked = linalg.generic {{indexing_maps = [#all, #mask, #all], iterator_types = ["parallel", "parallel", "parallel"]}} ins(%s, %mask : {SCORES}, {mask}) outs(%e : {SCORES}) {{
  ^bb0(%score: f32, %of: {element}, %unused: f32):
{use}
    linalg.yield %x : f32
  }} -> {SCORES}"""
    wide = Q.replace("bf16", "f32")
    return f"""#q = affine_map<(b, m, n, k) -> (b, m, k)>
#k = affine_map<(b, m, n, k) -> (b, n, k)>
#s = affine_map<(b, m, n, k) -> (b, m, n)>
#all = affine_map<(b, m, n) -> (b, m, n)>
#rows = affine_map<(b, m, n) -> (b, m)>
#mask = affine_map<(b, m, n) -> (m, n)>
#two = affine_map<(m, n) -> (m, n)>
func.func @main(%q: {Q}, %k: {K}, %v: {K}) -> {Q} {{
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : {SCORES}
  %init = linalg.fill ins(%zero : f32) outs(%e : {SCORES}) -> {SCORES}
  %product = linalg.batch_matmul indexing_maps = [#q, #k, #s] ins(%q, %k : {Q}, {K}) outs(%init : {SCORES}) -> {SCORES}
  %factors = arith.constant dense<0.125> : {SCORES}
  %s = arith.mulf %product, %factors : {SCORES}{masked}
  %p = linalg.softmax dimension(2) ins(%masked : {SCORES}) outs(%e : {SCORES}) -> {SCORES}
  %shares = arith.truncf %p : {SCORES} to {SCORES.replace("f32", "bf16")}
  %oe = tensor.empty() : {wide}
  %oinit = linalg.fill ins(%zero : f32) outs(%oe : {wide}) -> {wide}
  %o = linalg.batch_matmul ins(%shares, %v : {SCORES.replace("f32", "bf16")}, {K}) outs(%oinit : {wide}) -> {wide}
  %r = arith.truncf %o : {wide} to {Q}
  return %r : {Q}
}}
"""


# The largest score of each row is taken from all of them before the softmax does so.
FROM_SCORES = f"""
  %least = arith.constant 0xFF800000 : f32
  %re = tensor.empty() : tensor<{BATCHES}x{QUERIES}xf32>
  %rinit = linalg.fill ins(%least : f32) outs(%re : tensor<{BATCHES}x{QUERIES}xf32>) -> tensor<{BATCHES}x{QUERIES}xf32>
  %most = linalg.generic {{indexing_maps = [#all, #rows], iterator_types = ["parallel", "parallel", "reduction"]}} ins(%s : {SCORES}) outs(%rinit : tensor<{BATCHES}x{QUERIES}xf32>) {{
  ^bb0(%score: f32, %sofar: f32):
    %x = arith.maximumf %score, %sofar : f32
    linalg.yield %x : f32
  }} -> tensor<{BATCHES}x{QUERIES}xf32>
  %masked = linalg.generic {{indexing_maps = [#all, #rows, #all], iterator_types = ["parallel", "parallel", "parallel"]}} ins(%s, %most : {SCORES}, tensor<{BATCHES}x{QUERIES}xf32>) outs(%e : {SCORES}) {{
  ^bb0(%score: f32, %of: f32, %unused: f32):
    %x = arith.addf %score, %of : f32
    linalg.yield %x : f32
  }} -> {SCORES}"""


def raise_attention(text):
    done = subprocess.run(["fp8-opt", "--fp8-raise-attention=chip=sm_90a"], input=text, text=True, capture_output=True,
                          check=True)
    return done.stdout


class Numbers(unittest.TestCase):
    def check(self, text):
        """What the raised operation says, or None where all stays."""
        torch.manual_seed(1)
        given = [torch.randn(BATCHES, count, COLUMNS).bfloat16() for count in (QUERIES, KEYS, KEYS)]
        raised = raise_attention(text)
        first, second = (fp8.compile(each, target="cpu").functions["main"](*given) for each in (text, raised))
        error = (first.float() - second.float()).norm() / first.float().norm()
        self.assertLessEqual(error.item(), 0.01)
        found = re.search(r"fp8\.attention .*", raised)
        return found and found[0]

    def test_windows(self):
        for name, made in CONDITIONS.items():
            with self.subTest(name):
                found = self.check(write(made, False))
                self.assertIsNotNone(found)
                self.assertNotIn("mask(", found)

    def test_other_conditions_are_no_windows(self):
        for name, made in ODD_CONDITIONS.items():
            with self.subTest(name):
                self.assertNotIn("window", self.check(write(made, False)) or "")

    def test_added(self):
        for name, made in ADDED.items():
            with self.subTest(name):
                self.assertIsNotNone(self.check(write(made, True)))

    def test_added_numbers_are_rounded_as_they_are_added(self):
        self.check(write(ADDED["positions"], True, rounds="bf16"))
        self.assertIsNone(self.check(write(ADDED["positions"], True, rounds="f8E4M3FN")))

    def test_scores_that_something_else_reads_stay(self):
        self.assertIsNone(self.check(write("", False, FROM_SCORES)))


if __name__ == "__main__":
    unittest.main()
