//===- RecipeDecision.cpp - What a recipe makes of a contraction ----------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "RecipeDecision.h"
#include "fp8/IR/FP8Dialect.h"
#include "mlir/IR/Remarks.h"
#include "mlir/Interfaces/FunctionInterfaces.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/MathExtras.h"
#include "llvm/Support/ScopedPrinter.h"

using namespace mlir;
using namespace mlir::fp8;

StringRef fp8::getGemmName(Operation *op) {
  auto name = op->getAttrOfType<StringAttr>(kNameAttrName);
  return name ? name.getValue() : StringRef();
}

bool fp8::is2D(const OperandFormat &operand) {
  return operand.blockRows != 1 && operand.blockK != ScaledType::kWhole;
}

/// "M=32 N=3072 K=768", with ? for a dynamic extent.
static std::string describeShape(const Contraction &contraction) {
  std::string text;
  llvm::raw_string_ostream os(text);
  auto print = [&](StringRef name, ArrayRef<unsigned> loops) {
    if (name == "batch" && loops.empty())
      return;
    int64_t extent = contraction.getExtent(loops);
    os << (text.empty() ? "" : " ") << name << '=';
    if (ShapedType::isDynamic(extent))
      os << '?';
    else
      os << extent;
  };
  print("batch", contraction.dims.batch);
  print("M", contraction.dims.m);
  print("N", contraction.dims.n);
  print("K", contraction.dims.k);
  return text;
}

std::string fp8::describeOperand(const OperandFormat &operand) {
  std::string text;
  llvm::raw_string_ostream os(text);
  auto extent = [&](int64_t value) {
    if (value == ScaledType::kWhole)
      os << '*';
    else
      os << value;
  };
  os << operand.elementType << '[';
  extent(operand.blockRows);
  os << 'x';
  extent(operand.blockK);
  os << ']' << operand.scaleType;
  if (operand.hasTensorScale)
    os << "+f32";
  return text;
}

std::string fp8::describeOtherRows(RecipeAttrInterface recipe, GemmRole role,
                                   OperandKind kind) {
  // Those of a weight are the same for all rows.
  if (kind == OperandKind::Weight)
    return "";
  RecipeAttrInterface state = recipe.getStateRecipe();
  bool isKnown = state && !isa<StateUpdateAttrInterface>(state) &&
                 !recipe.roundsStochastically();
  OperandFormat format = recipe.getOperandFormat(role, kind);
  if (isKnown || (format.blockRows == 1 && !format.hasTensorScale))
    return "";
  bool isOfTensor =
      format.hasTensorScale || format.blockRows == ScaledType::kWhole;
  std::string text;
  llvm::raw_string_ostream os(text);
  os << "scales that depend on one row in an invariant program, but "
     << recipe.getRecipeName() << " has one for ";
  if (isOfTensor)
    os << "all rows";
  else
    os << format.blockRows << " rows";
  os << ": use rowwise, block, mxfp8, or static";
  return text;
}

static StringRef describeGranularity(const OperandFormat &operand) {
  if (operand.blockK != ScaledType::kWhole)
    return is2D(operand) ? "2-D block" : "1-D block";
  return operand.blockRows == 1 ? "row" : "tensor";
}

static void reportDecision(Operation *op, StringRef shape,
                           const RecipeDecision &decision) {
  auto function = op->getParentOfType<FunctionOpInterface>();
  remark::RemarkOpts opts =
      remark::RemarkOpts::name("gemm").category("fp8").function(
          function ? function.getName() : StringRef());
  auto describe = [&](auto &remark) {
    std::string role = stringifyGemmRole(decision.role).str();
    if (isa<AttentionOp>(op))
      role = "attention";
    else if (decision.attention)
      role = stringifyAttentionRole(decision.attention->role);
    remark << remark::detail::Remark::Arg("gemm", getGemmName(op))
           << remark::detail::Remark::Arg("role", role);
    if (!shape.empty())
      remark << remark::detail::Remark::Arg("shape", shape);
  };
  if (decision.staysHighPrecision()) {
    auto remark = remark::missed(op->getLoc(), opts);
    describe(remark);
    remark << remark::detail::Remark::Arg(
                  "recipe", decision.recipe ? decision.recipe.getRecipeName()
                                            : StringRef("none"))
           << remark::detail::Remark::Arg("Reason", decision.reason)
           << remark::detail::Remark::Arg("Suggestion", decision.suggestion);
    return;
  }
  auto remark = remark::passed(op->getLoc(), opts);
  describe(remark);
  using Arg = remark::detail::Remark::Arg;
  remark << Arg("recipe", decision.isGiven ? StringRef("given")
                                           : decision.recipe.getRecipeName())
         << Arg("a", describeOperand(decision.a))
         << Arg("b", describeOperand(decision.b))
         << Arg("a_granularity", describeGranularity(decision.a))
         << Arg("b_granularity", describeGranularity(decision.b))
         << Arg("accumulate", stringifyAccumulate(decision.accumulate));
  if (decision.transforms.any() || decision.transforms.block)
    remark << Arg("transforms", decision.transforms.describe());
  if (!decision.leftOut.empty())
    remark << Arg("without", decision.leftOut);
  // `hybrid` rounds gradients so, for their range; who has it everywhere should
  // know what it costs.
  if (isa<Float8E5M2Type>(decision.a.elementType) &&
      isa<Float8E5M2Type>(decision.b.elementType))
    remark << Arg("precision",
                  "2 mantissa bits in both operands, which rounds an element "
                  "by up to 2^-3 of it where E4M3 rounds by 2^-4");
  if (decision.paddedTo == 1)
    remark << Arg("padding", "none");
  else if (ShapedType::isDynamic(decision.k))
    remark << Arg("padding", "K to a multiple of " +
                                 std::to_string(decision.paddedTo) +
                                 " at run time");
  else
    remark << Arg("padding", "K from " + std::to_string(decision.k) + " to " +
                                 std::to_string(llvm::alignTo(
                                     decision.k, decision.paddedTo)));
}

void fp8::decidePadding(RecipeDecision &decision, double maxPadding) {
  // What the recipe's blocks and the tensor cores need.
  int64_t multiple = decision.recipe.getContractionMultiple();
  if (ShapedType::isDynamic(decision.k)) {
    if (maxPadding == 0.0)
      return decision.stay(
          "K is dynamic and may not be padded to a multiple of " +
              Twine(multiple),
          "raise max-padding, or make K static");
    decision.paddedTo = multiple;
    return;
  }
  int64_t padded = llvm::alignTo(decision.k, multiple);
  if (padded == decision.k)
    return;
  if (padded - decision.k > maxPadding * decision.k)
    return decision.stay(
        "K=" + Twine(decision.k) + " is not a multiple of " + Twine(multiple) +
            " and padding it to " + Twine(padded) + " would add more than " +
            llvm::to_string(llvm::format("%g", maxPadding * 100)) + "%",
        "make K a multiple of " + Twine(multiple) + " or raise max-padding");
  decision.paddedTo = multiple;
}

void fp8::remarkDecision(linalg::LinalgOp op, const RecipeDecision &decision) {
  ContractionMismatch unused;
  FailureOr<Contraction> contraction = matchContraction(op, unused);
  reportDecision(op, succeeded(contraction) ? describeShape(*contraction) : "",
                 decision);
}

static void printExtent(raw_ostream &os, StringRef name, int64_t extent) {
  os << name;
  if (ShapedType::isDynamic(extent))
    os << '?';
  else
    os << extent;
}

void fp8::remarkDecision(GroupedMatmulOp op, const RecipeDecision &decision) {
  SmallVector<int64_t> a = op.getShapeOfA(), b = op.getShapeOfB();
  std::string text;
  llvm::raw_string_ostream os(text);
  auto print = [&](StringRef name, int64_t extent) {
    printExtent(os, name, extent);
  };
  print("groups=", op.getNumGroups());
  print(" M=", a[a.size() - 2]);
  print(" N=", b[b.size() - 2]);
  print(" K=", a.back());
  reportDecision(op, text, decision);
}

void fp8::remarkDecision(AttentionOp op, const RecipeDecision &decision) {
  ArrayRef<int64_t> q = AttentionOp::getShapeOf(op.getQ());
  ArrayRef<int64_t> v = AttentionOp::getShapeOf(op.getV());
  std::string text;
  llvm::raw_string_ostream os(text);
  auto print = [&](StringRef name, int64_t extent) {
    printExtent(os, name, extent);
  };
  print("batch=", q[0]);
  print(" heads=", q[op.getHeadDim()]);
  print(" queries=", q[op.getSequenceDim()]);
  print(" keys=", op.getNumKeys());
  print(" columns=", q[3]);
  if (v[3] != q[3])
    print("/", v[3]);
  reportDecision(op, text, decision);
}
