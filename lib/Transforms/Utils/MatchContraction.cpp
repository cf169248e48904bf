//===- MatchContraction.cpp - What is a matrix product, and which ---------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "fp8/Transforms/CanonicalGemm.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;
using namespace mlir::fp8;

/// Looks through conversions between types of floats or of integers. Upstream's
/// matcher looks through every unary operation, also exp; that would be another
/// computation.
static Value skipCasts(Value value) {
  while (Operation *op = value.getDefiningOp()) {
    if (!isa<arith::ExtFOp, arith::TruncFOp, arith::ExtSIOp, arith::ExtUIOp,
             arith::TruncIOp>(op))
      break;
    value = op->getOperand(0);
  }
  return value;
}

/// Whether `body` yields argument 2 plus the product of arguments 0 and 1.
template <typename AddOp, typename MulOp>
static bool multipliesAndAdds(Block *body) {
  auto isArgument = [&](Value value, unsigned number) {
    return skipCasts(value) == body->getArgument(number);
  };
  auto add =
      skipCasts(body->getTerminator()->getOperand(0)).getDefiningOp<AddOp>();
  if (!add)
    return false;
  for (auto [sum, product] : {std::pair{add.getLhs(), add.getRhs()},
                              std::pair{add.getRhs(), add.getLhs()}}) {
    auto mul = skipCasts(product).template getDefiningOp<MulOp>();
    if (mul && isArgument(sum, 2) &&
        ((isArgument(mul.getLhs(), 0) && isArgument(mul.getRhs(), 1)) ||
         (isArgument(mul.getLhs(), 1) && isArgument(mul.getRhs(), 0))))
      return true;
  }
  return false;
}

/// Whether `op` has two inputs, multiplies them and adds, and nothing else.
static bool multipliesInputs(linalg::LinalgOp op) {
  if (op.getNumDpsInputs() != 2)
    return false;
  Block *body = op.getBlock();
  return multipliesAndAdds<arith::AddFOp, arith::MulFOp>(body) ||
         multipliesAndAdds<arith::AddIOp, arith::MulIOp>(body);
}

/// The inputs of `op` that `value` in its body is computed from.
static SmallVector<unsigned> getInputsOf(linalg::LinalgOp op, Value value) {
  llvm::SmallSetVector<Value, 8> values;
  values.insert(value);
  SmallVector<unsigned> inputs;
  for (size_t i = 0; i < values.size(); ++i) {
    if (auto argument = dyn_cast<BlockArgument>(values[i])) {
      if (argument.getOwner() == op.getBlock() &&
          argument.getArgNumber() < op.getNumDpsInputs())
        inputs.push_back(argument.getArgNumber());
    } else {
      values.insert_range(values[i].getDefiningOp()->getOperands());
    }
  }
  return inputs;
}

/// Whether factors computed from inputs `a` and `b` are multiplied like
/// matrices or like an image and filters: each is read for elements of the
/// result that the other is not, or one by an expression.
static bool multipliesMatrices(linalg::LinalgOp op, ArrayRef<unsigned> a,
                               ArrayRef<unsigned> b) {
  SmallVector<AffineMap> maps = op.getIndexingMapsArray();
  auto isIndexed = [&](ArrayRef<unsigned> inputs, unsigned loop) {
    return llvm::any_of(inputs, [&](unsigned input) {
      return maps[input].isFunctionOfDim(loop);
    });
  };
  bool hasRows = false, hasColumns = false;
  for (auto [loop, kind] : llvm::enumerate(op.getIteratorTypesArray())) {
    if (kind != utils::IteratorType::parallel)
      continue;
    hasRows |= isIndexed(a, loop) && !isIndexed(b, loop);
    hasColumns |= isIndexed(b, loop) && !isIndexed(a, loop);
  }
  auto isConvolved = [&](unsigned input) {
    return !maps[input].isProjectedPermutation(/*allowZeroInResults=*/true);
  };
  return (hasRows && hasColumns) || llvm::any_of(a, isConvolved) ||
         llvm::any_of(b, isConvolved);
}

/// Whether `op` adds products of what its body computes of several inputs, as
/// integer products with zero points and those with factors do.
template <typename AddOp, typename MulOp>
static bool multipliesComputed(linalg::LinalgOp op) {
  Block *body = op.getBlock();
  auto add =
      skipCasts(body->getTerminator()->getOperand(0)).getDefiningOp<AddOp>();
  if (!add)
    return false;
  for (auto [sum, product] : {std::pair{add.getLhs(), add.getRhs()},
                              std::pair{add.getRhs(), add.getLhs()}}) {
    auto mul = skipCasts(product).template getDefiningOp<MulOp>();
    if (!mul || skipCasts(sum) != op.getRegionOutputArgs()[0])
      continue;
    SmallVector<unsigned> a = getInputsOf(op, mul.getLhs());
    SmallVector<unsigned> b = getInputsOf(op, mul.getRhs());
    bool isShared = llvm::any_of(
        a, [&](unsigned input) { return llvm::is_contained(b, input); });
    if (!isShared && !a.empty() && !b.empty() && multipliesMatrices(op, a, b))
      return true;
  }
  return false;
}

bool fp8::isContraction(linalg::LinalgOp op) {
  if (op.getNumDpsInputs() < 2 || op.getNumDpsInits() != 1 ||
      op.getNumReductionLoops() == 0)
    return false;
  return multipliesInputs(op) ||
         multipliesComputed<arith::AddFOp, arith::MulFOp>(op) ||
         multipliesComputed<arith::AddIOp, arith::MulIOp>(op);
}

int64_t Contraction::getExtent(ArrayRef<unsigned> loops) const {
  SmallVector<int64_t> ranges = linalg::LinalgOp(op).getStaticLoopRanges();
  int64_t product = 1;
  for (unsigned loop : loops) {
    if (ShapedType::isDynamic(ranges[loop]))
      return ShapedType::kDynamic;
    product *= ranges[loop];
  }
  return product;
}

Contraction Contraction::exchange() const {
  Contraction other = *this;
  std::swap(other.dims.m, other.dims.n);
  other.isExchanged = !isExchanged;
  return other;
}

FailureOr<Contraction> fp8::matchContraction(linalg::LinalgOp op,
                                             ContractionMismatch &mismatch) {
  auto fail = [&](const Twine &reason, const Twine &suggestion) {
    mismatch = {reason.str(), suggestion.str()};
    return failure();
  };
  if (!op.hasPureTensorSemantics())
    return fail("works on memrefs",
                "run the pass before bufferization, on tensors");
  if (!multipliesInputs(op))
    return fail("multiplies what it computes of its operands, such as their "
                "distances from zero points",
                "compute it in an operation before, in f32, bf16 or f16");
  for (Value operand : op->getOperands()) {
    Type type = getElementTypeOrSelf(operand);
    if (!isa<Float32Type, BFloat16Type, Float16Type>(type)) {
      std::string name;
      llvm::raw_string_ostream(name) << type;
      return fail("has operands of type " + name + ", not f32, bf16 or f16",
                  "convert its operands to f32, bf16 or f16");
    }
  }
  SmallVector<AffineMap> maps = op.getIndexingMapsArray();
  for (AffineMap map : maps)
    if (!map.isProjectedPermutation())
      return fail("indexes an operand by an expression or twice by one loop, "
                  "as a convolution does",
                  "express it as a matrix product, e.g. after im2col");
  // Upstream's inferContractionDims wants at least one M, one N and one K; a
  // matrix-vector product has no N.
  Contraction contraction{op, {}};
  auto uses = [&](unsigned operand, unsigned loop) {
    return maps[operand].isFunctionOfDim(loop);
  };
  for (unsigned loop = 0, e = op.getNumLoops(); loop < e; ++loop) {
    bool a = uses(0, loop), b = uses(1, loop), c = uses(2, loop);
    if (a && b && c)
      contraction.dims.batch.push_back(loop);
    else if (a && !b && c)
      contraction.dims.m.push_back(loop);
    else if (!a && b && c)
      contraction.dims.n.push_back(loop);
    else if (a && b && !c)
      contraction.dims.k.push_back(loop);
    else
      return fail("sums or broadcasts over a loop that is not shared by both "
                  "operands",
                  "broadcast or sum outside of the contraction");
  }
  if (contraction.dims.k.empty())
    return fail("sums over no loop", "use an elementwise operation");
  return contraction;
}
