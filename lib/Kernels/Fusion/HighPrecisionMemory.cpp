//===- HighPrecisionMemory.cpp - Memory without quantization --------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "HighPrecisionMemory.h"
#include "FusionParts.h"
#include "fp8/Analysis/TensorMemory.h"
#include "fp8/IR/FP8Ops.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "llvm/ADT/MapVector.h"

using namespace mlir;
using namespace mlir::fp8;

static bool isCodes(Type type) {
  auto tensor = dyn_cast<RankedTensorType>(type);
  return tensor && isa<FloatType>(tensor.getElementType()) &&
         tensor.getElementTypeBitWidth() <= 8 &&
         !isa<Float8E8M0FNUType>(tensor.getElementType());
}

/// In a fusion, what the codes `yielded` are of, in any order; null if they
/// were given to it.
static Value getQuantized(Value yielded) {
  auto parts = yielded.getDefiningOp<DisassembleOp>();
  Value value = parts ? parts.getSource() : Value();
  while (value) {
    if (auto transpose = value.getDefiningOp<TransposeOp>())
      value = transpose.getSource();
    else if (auto quantize = value.getDefiningOp<QuantizeOp>())
      value = quantize.getSource();
    else if (auto transpose = value.getDefiningOp<linalg::TransposeOp>())
      value = transpose.getInput();
    else
      return isa<ScaledType>(value.getType()) ? Value() : value;
  }
  return value;
}

static Operation *getLater(Operation *lhs, Operation *rhs) {
  return lhs->isBeforeInBlock(rhs) ? rhs : lhs;
}

namespace {
class HighPrecisionMemory {
public:
  HighPrecisionMemory(Block &block, MemoryProfile profile)
      : block(block), profile(std::move(profile)) {}

  double getPeak() {
    for (Operation &op : block) {
      if (auto fusion = dyn_cast<FusionOp>(op))
        replaceCodes(fusion);
      else if (auto matmul = dyn_cast<MatmulOp>(op))
        widen(matmul.getResult());
    }
    return profile.getPeak();
  }

private:
  /// What needs `value`, made by `op`, last.
  Operation *getLast(Value value, Operation *op) {
    Operation *last = getLastUser(value, block);
    return last ? last : op;
  }
  void addUntil(Operation *first, Operation *last, double bytes) {
    profile.add(first, last->getNextNode(), bytes);
  }
  void widen(Value codes);
  void replaceCodes(FusionOp fusion);
  void keep(FusionOp fusion, Value quantized, Operation *last);

  Block &block;
  MemoryProfile profile;
};
} // namespace

/// An epilogue's codes would have 16 bits.
void HighPrecisionMemory::widen(Value codes) {
  std::optional<double> bytes = getBytes(codes.getType());
  if (isCodes(codes.getType()) && bytes)
    addUntil(codes.getDefiningOp(), getLast(codes, codes.getDefiningOp()),
             *bytes);
}

/// `quantized`, of the fusion's body, is in memory until `last`.
void HighPrecisionMemory::keep(FusionOp fusion, Value quantized,
                               Operation *last) {
  std::optional<double> bytes = getBytes(quantized.getType());
  if (!bytes)
    return;
  Value stored;
  if (auto argument = dyn_cast<BlockArgument>(quantized))
    stored = fusion.getInputs()[argument.getArgNumber()];
  for (auto [result, yielded] : llvm::zip_equal(
           fusion.getResults(), getTerminator(fusion)->getOperands()))
    if (yielded == quantized)
      stored = result;
  if (!stored)
    return addUntil(fusion, last, *bytes);
  // It is there until its own last use.
  while (Operation *op = stored.getDefiningOp()) {
    if (!isViewOfTensor(op))
      break;
    stored = op->getOperand(0);
  }
  Operation *op = stored.getDefiningOp();
  if (!op || op->getBlock() != &block)
    return;
  Operation *own = getLast(stored, op);
  if (own->isBeforeInBlock(last))
    profile.add(own->getNextNode(), last->getNextNode(), *bytes);
}

void HighPrecisionMemory::replaceCodes(FusionOp fusion) {
  llvm::MapVector<Value, Operation *> quantized;
  for (auto [result, yielded] : llvm::zip_equal(
           fusion.getResults(), getTerminator(fusion)->getOperands())) {
    Value source = isCodes(result.getType()) ? getQuantized(yielded) : Value();
    std::optional<double> bytes = getBytes(result.getType());
    if (!source || !bytes)
      continue;
    Operation *last = getLast(result, fusion);
    addUntil(fusion, last, -*bytes);
    Operation *&latest = quantized[source];
    latest = latest ? getLater(latest, last) : last;
  }
  for (auto [source, last] : quantized)
    keep(fusion, source, last);
}

double fp8::getPeakInHighPrecision(Block &block, const MemoryProfile &profile) {
  return HighPrecisionMemory(block, profile).getPeak();
}
