//===- QuantizeUses.cpp - Which GEMMs a quantized tensor feeds ------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "fp8/Analysis/QuantizeUses.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "llvm/ADT/SmallPtrSet.h"

using namespace mlir;
using namespace mlir::fp8;

StringRef GemmUse::getName() const {
  auto name = gemm->getAttrOfType<StringAttr>(kNameAttrName);
  return name ? name.getValue() : StringRef();
}

GemmRole GemmUse::getRole() const {
  auto role = gemm->getAttrOfType<GemmRoleAttr>(kRoleAttrName);
  return role ? role.getValue() : GemmRole::Fprop;
}

std::optional<OperandKind> GemmUse::getKind() const {
  auto kinds = gemm->getAttrOfType<ArrayAttr>(kOperandsAttrName);
  return kinds ? std::optional(cast<OperandKindAttr>(kinds[operand]).getValue())
               : std::nullopt;
}

static bool isGemm(Operation *op) {
  return isa<MatmulOp, GroupedMatmulOp>(op) ||
         (isa<linalg::ContractOp>(op) && op->hasAttr(kAccumulateAttrName));
}

SmallVector<GemmUse> fp8::getGemmUses(Value quantized) {
  SmallVector<GemmUse> uses;
  SmallVector<Value> worklist{quantized};
  llvm::SmallPtrSet<Value, 8> visited;
  while (!worklist.empty()) {
    Value value = worklist.pop_back_val();
    if (!visited.insert(value).second)
      continue;
    for (OpOperand &use : value.getUses()) {
      Operation *user = use.getOwner();
      if (isGemm(user)) {
        if (use.getOperandNumber() < 2)
          uses.push_back({user, use.getOperandNumber()});
        continue;
      }
      if (isa<DequantizeOp, TransposeOp, AssembleOp, DisassembleOp,
              linalg::TransposeOp>(user) ||
          isa_and_present<tensor::TensorDialect>(user->getDialect()))
        llvm::append_range(worklist, user->getResults());
    }
  }
  return uses;
}

std::optional<GemmUse> fp8::getNamingUse(Value quantized) {
  std::optional<GemmUse> best;
  auto isBefore = [](const GemmUse &a, const GemmUse &b) {
    bool aRecomputes = a.gemm->hasAttr(kRecomputeAttrName);
    bool bRecomputes = b.gemm->hasAttr(kRecomputeAttrName);
    if (aRecomputes != bRecomputes)
      return bRecomputes;
    if (a.getRole() != b.getRole())
      return a.getRole() < b.getRole();
    if (a.gemm == b.gemm)
      return a.operand < b.operand;
    // Take operations in other regions in any order that does not depend on how
    // uses are listed.
    if (a.gemm->getBlock() == b.gemm->getBlock())
      return a.gemm->isBeforeInBlock(b.gemm);
    return a.getName() < b.getName();
  };
  for (const GemmUse &use : getGemmUses(quantized))
    if (!use.getName().empty() && (!best || isBefore(use, *best)))
      best = use;
  return best;
}

static StringRef getSuffix(const GemmUse &use) {
  std::optional<OperandKind> kind = use.getKind();
  GemmUse other{use.gemm, 1 - use.operand};
  if (!kind || kind == other.getKind())
    return use.operand == 0 ? "a" : "b";
  switch (*kind) {
  case OperandKind::Activation:
    return "x";
  case OperandKind::Weight:
    return "w";
  case OperandKind::Gradient:
    return "dy";
  }
  llvm_unreachable("unknown operand kind");
}

std::string fp8::getTensorName(QuantizeOp op) {
  if (auto name = op->getAttrOfType<StringAttr>(kNameAttrName);
      name && !name.empty())
    return name.str();
  std::optional<GemmUse> use = getNamingUse(op.getResult());
  return use ? (use->getName() + "." + getSuffix(*use)).str() : std::string();
}
