//===- AnnotateGemms.cpp - Names and roles of contractions ----------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Any program on tensors enters; the same program leaves with `fp8.name` and
// `fp8.role` on every contraction of floats. Names come from the program, not
// from positions, wherever the program has any, so that a recipe file or saved
// state that names a layer survives changes elsewhere.
//
//===----------------------------------------------------------------------===//

#include "fp8/Analysis/GemmRoles.h"
#include "fp8/IR/FP8Dialect.h"
#include "fp8/IR/FP8Ops.h"
#include "fp8/Transforms/CanonicalGemm.h"
#include "fp8/Transforms/Passes.h"
#include "mlir/Conversion/TosaToLinalg/TosaToLinalg.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Tosa/IR/TosaOps.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/DebugLog.h"

#define DEBUG_TYPE "fp8-annotate-gemms"

namespace mlir::fp8 {
#define GEN_PASS_DEF_ANNOTATEGEMMSPASS
#include "fp8/Transforms/Passes.h.inc"
} // namespace mlir::fp8

using namespace mlir;
using namespace mlir::fp8;

namespace {
struct AnnotateGemmsPass : fp8::impl::AnnotateGemmsPassBase<AnnotateGemmsPass> {
  using Base::Base;
  void runOnOperation() override;
  void raiseTosa();
  void annotate(FunctionOpInterface function);
  /// `base`, with a number if it is taken.
  std::string makeName(StringRef base);

  llvm::StringSet<> names;
  /// Copies of a name made so far, so that making one more takes no search.
  llvm::StringMap<unsigned> copies;
};
} // namespace

/// The first name in `loc`: a NameLoc, or one inside a fused or call location.
static StringRef getLocationName(Location loc) {
  StringRef name;
  loc->walk([&](Location inner) {
    auto nameLoc = dyn_cast<NameLoc>(inner);
    if (!nameLoc || nameLoc.getName().empty())
      return WalkResult::advance();
    name = nameLoc.getName();
    return WalkResult::interrupt();
  });
  return name;
}

/// Whether `op` is a product that gets a name; its first operands are A and B.
static bool isNamed(Operation *op) {
  auto linalgOp = dyn_cast<linalg::LinalgOp>(op);
  return isa<GroupedMatmulOp>(op) || (linalgOp && isContraction(linalgOp));
}

/// What the program calls the weight that `op` multiplies by; empty if nothing.
static StringRef getWeightName(Operation *op, FunctionOpInterface function,
                               const GemmRoles &roles) {
  for (int64_t operand : {1, 0}) {
    Value value = op->getOperand(operand);
    if (!roles.isMarkedWeight(value))
      continue;
    Value source = GemmRoles::getSource(value);
    auto argument = dyn_cast<BlockArgument>(source);
    if (!argument)
      return getLocationName(source.getLoc());
    auto name = function.getArgAttrOfType<StringAttr>(argument.getArgNumber(),
                                                      kNameAttrName);
    return name ? name.getValue() : StringRef();
  }
  return {};
}

/// tosa.matmul without zero points is linalg.batch_matmul; raising it here
/// keeps its location, and with it its name.
void AnnotateGemmsPass::raiseTosa() {
  SmallVector<tosa::MatMulOp> matmuls;
  getOperation()->walk([&](tosa::MatMulOp op) {
    auto isZero = [](Value zeroPoint) {
      return matchPattern(zeroPoint, m_AnyZeroFloat());
    };
    if (isa<FloatType>(getElementTypeOrSelf(op.getType())) &&
        isZero(op.getAZp()) && isZero(op.getBZp()))
      matmuls.push_back(op);
  });
  IRRewriter rewriter(&getContext());
  for (tosa::MatMulOp op : matmuls) {
    rewriter.setInsertionPoint(op);
    Location loc = op.getLoc();
    auto type = cast<RankedTensorType>(op.getType());
    SmallVector<OpFoldResult> sizes =
        tensor::getMixedSizes(rewriter, loc, op.getA());
    sizes.back() = tensor::getMixedSize(rewriter, loc, op.getB(), 2);
    Value empty =
        tensor::EmptyOp::create(rewriter, loc, sizes, type.getElementType());
    Value zero = arith::ConstantOp::create(
        rewriter, loc, rewriter.getZeroAttr(type.getElementType()));
    Value init =
        linalg::FillOp::create(rewriter, loc, zero, empty).getResult(0);
    auto matmul = linalg::BatchMatmulOp::create(
        rewriter, loc, ValueRange{op.getA(), op.getB()}, ValueRange{init});
    matmul->setDiscardableAttrs(op->getDiscardableAttrDictionary());
    Value result = matmul.getResult(0);
    if (result.getType() != type)
      result = tensor::CastOp::create(rewriter, loc, type, result);
    rewriter.replaceOp(op, result);
  }
}

std::string AnnotateGemmsPass::makeName(StringRef base) {
  std::string name = base.str();
  // Not a component of its own, which might look like a layer's number.
  while (!names.insert(name).second)
    name = (base + "_" + Twine(++copies[base])).str();
  return name;
}

void AnnotateGemmsPass::annotate(FunctionOpInterface function) {
  GemmRoles roles(function);
  // Attention does not move the positions of products.
  unsigned position = 0, attentions = 0;
  function->walk([&](Operation *op) {
    if (isa<AttentionOp>(op) && !op->hasAttr(kNameAttrName)) {
      std::string base = getLocationName(op->getLoc()).str();
      if (base.empty())
        base = (function.getName() + ".attention_" + Twine(attentions)).str();
      ++attentions;
      op->setAttr(kNameAttrName,
                  StringAttr::get(&getContext(), makeName(base)));
    }
    if (!isNamed(op))
      return;
    ++numContractions;
    unsigned index = position++;
    auto grouped = dyn_cast<GroupedMatmulOp>(op);
    GemmRole role = grouped
                        ? roles.getRole(grouped)
                        : roles.getRole(op->getOperand(0), op->getOperand(1));
    if (!op->hasAttr(kNameAttrName)) {
      std::string base = getLocationName(op->getLoc()).str();
      // A weight keeps its name whatever is added before.
      if (StringRef weight = getWeightName(op, function, roles);
          base.empty() && !weight.empty())
        base = (function.getName() + "." + weight +
                (role == GemmRole::Dgrad ? ".dgrad" : ""))
                   .str();
      if (base.empty())
        base = (function.getName() + "." + op->getName().stripDialect() + "_" +
                Twine(index))
                   .str();
      op->setAttr(kNameAttrName,
                  StringAttr::get(&getContext(), makeName(base)));
    }
    if (!op->hasAttr(kRoleAttrName))
      op->setAttr(kRoleAttrName, GemmRoleAttr::get(&getContext(), role));
    LDBG() << op->getAttr(kNameAttrName) << " is "
           << op->getAttr(kRoleAttrName);
  });
}

void AnnotateGemmsPass::runOnOperation() {
  raiseTosa();
  // Names given by the user are taken before any is made up.
  names.clear();
  copies.clear();
  getOperation()->walk([&](Operation *op) {
    if (!isa<linalg::LinalgOp, GroupedMatmulOp, AttentionOp>(op))
      return;
    if (auto name = op->getAttrOfType<StringAttr>(kNameAttrName))
      names.insert(name.getValue());
  });
  getOperation()->walk(
      [&](FunctionOpInterface function) { annotate(function); });
}
