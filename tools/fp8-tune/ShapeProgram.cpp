//===- ShapeProgram.cpp - Matmuls of a command line -----------------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Options.h"

#include "llvm/Support/FormatVariadic.h"

using llvm::StringRef;
using namespace mlir::fp8;

static StringRef getElement(StringRef name) {
  return name == "e4m3" ? "f8E4M3FN" : name == "e5m2" ? "f8E5M2" : name;
}

/// The type of an operand; `isB` for the second, whose blocks are square.
static std::string getScaledType(int64_t batches, int64_t rows, int64_t k,
                                 StringRef element, StringRef scales,
                                 bool isB) {
  StringRef block = scales == "tensor" ? "*, *"
                    : scales == "row"  ? "1, *"
                    : isB              ? "128, 128"
                                       : "1, 128";
  std::string batch, batchBlock;
  if (batches) {
    batch = std::to_string(batches) + "x";
    batchBlock = scales == "tensor" ? "*, " : "1, ";
  }
  return llvm::formatv("!fp8.scaled<{0}{1}x{2}x{3}, block = [{4}{5}], "
                       "scale = f32>",
                       batch, rows, k, getElement(element), batchBlock, block);
}

std::string mlir::fp8::getProgram(const ShapeOptions &shapes) {
  std::string text;
  for (auto [i, extents] : llvm::enumerate(shapes.extents)) {
    auto [batches, m, n, k] = extents;
    std::string a =
        getScaledType(batches, m, k, shapes.a, shapes.scales, /*isB=*/false);
    std::string b =
        getScaledType(batches, n, k, shapes.b, shapes.scales, /*isB=*/true);
    std::string result = llvm::formatv(
        "tensor<{0}{1}x{2}x{3}>", batches ? std::to_string(batches) + "x" : "",
        m, n, getElement(shapes.result));
    text += llvm::formatv("func.func @matmul{0}(%a: {1}, %b: {2}) -> {3} {{\n"
                          "  %d = fp8.matmul %a, %b accumulate = {4}"
                          " : {1}, {2} -> {3}\n"
                          "  return %d : {3}\n}\n",
                          i, a, b, result, shapes.accumulate);
  }
  return text;
}
