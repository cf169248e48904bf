//===- BranchByRows.cpp - Few rows in FP8 and many in bf16 ----------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Enters: matmuls whose operands fp8-decode-operands made bf16, with their
// epilogues. Leaves: where it shows at run time how many rows there are, two of
// them, one for few rows that multiplies codes.
//
// Both are in one scf.if with those of the same A beside them, so that these
// can still become one launch.
//
//===----------------------------------------------------------------------===//

#include "MatmulClocks.h"
#include "fp8/GPU/IR/FP8GPUDialect.h"
#include "fp8/IR/FoldedReads.h"
#include "fp8/Kernels/Matmul/MatmulSpec.h"
#include "fp8/Kernels/Passes.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "mlir/Transforms/RegionUtils.h"
#include "llvm/ADT/ScopeExit.h"
#include "llvm/Support/FormatVariadic.h"

#include <limits>

namespace mlir::fp8 {
#define GEN_PASS_DEF_BRANCHBYROWSPASS
#include "fp8/Kernels/Passes.h.inc"
} // namespace mlir::fp8

using namespace mlir;
using namespace mlir::fp8;

/// Numbers of rows up to which codes may be multiplied.
static constexpr int64_t kRows[] = {16, 32, 48, 64};

namespace {
/// A matmul of bf16, what its operands were before, up to how many rows it
/// takes less time to multiply that, and how many times longer so many take.
struct Candidate {
  MatmulOp op;
  DequantizeOp a, b;
  int64_t most;
  double ratio;
};

struct BranchByRowsPass : fp8::impl::BranchByRowsPassBase<BranchByRowsPass> {
  using Base::Base;

  void getDependentDialects(DialectRegistry &registry) const override {
    Base::getDependentDialects(registry);
    registerKernelDialects(registry);
  }
  void runOnOperation() override;
};
} // namespace

//===----------------------------------------------------------------------===//
// What pays
//===----------------------------------------------------------------------===//

/// The matmul of codes that `candidate` is with few rows.
static MatmulOp cloneOfCodes(OpBuilder &b, Candidate candidate,
                             IRMapping &mapping) {
  auto own = cast<MatmulOp>(b.clone(*candidate.op, mapping));
  own.getAMutable().set(candidate.a.getSource());
  own.getBMutable().set(candidate.b.getSource());
  own.setAccumulate(Accumulate::Promote);
  return own;
}

/// Whether nothing but the number of rows is unknown, and a kernel multiplies
/// sums of codes by their factors.
static bool isForCodes(MatmulOp own) {
  std::string unused;
  FailureOr<MatmulSpec> spec = MatmulSpec::get(own, unused);
  return succeeded(spec) && spec->isMicroscaled() &&
         ShapedType::isDynamic(spec->m) &&
         llvm::none_of(ArrayRef{spec->n, spec->k, spec->batch},
                       ShapedType::isDynamic);
}

static std::optional<Candidate> getCandidate(MatmulOp op,
                                             const KernelTarget &target) {
  Candidate candidate{op, op.getA().getDefiningOp<DequantizeOp>(),
                      op.getB().getDefiningOp<DequantizeOp>(), 0, 0};
  // An amax that a launch records in place is of one launch. Bits of an
  // invariant one do not depend on how many rows there are.
  if (!candidate.a || !candidate.b || isFolded(candidate.a) ||
      op.getTransposeA() || op.getTransposeB() || op.getAmax() ||
      isInvariant(op) || op->hasAttr(kConfigAttrName))
    return std::nullopt;
  // Weights that are quantized here would be written twice.
  if (candidate.b.getSource().getDefiningOp<QuantizeOp>())
    return std::nullopt;
  OpBuilder builder(op);
  IRMapping none;
  MatmulOp own = cloneOfCodes(builder, candidate, none);
  llvm::scope_exit erase([&] { own.erase(); });
  if (!isForCodes(own))
    return std::nullopt;
  auto ofA = cast<ScaledType>(candidate.a.getSource().getType());
  bool isMade = candidate.a.getSource().getDefiningOp<QuantizeOp>() != nullptr;
  for (int64_t rows : kRows) {
    std::optional<double> clocks = getExpectedClocks(own, target, rows);
    std::optional<double> wide = getExpectedClocks(op, target, rows);
    if (!clocks || !wide)
      break;
    // What is quantized here is in bf16 for nothing.
    double pass = isMade ? 0 : getDecodeClocks(ofA, target, rows);
    if (*wide + pass <= *clocks)
      break;
    candidate.most = rows;
    candidate.ratio = (*wide + pass) / *clocks;
  }
  return candidate.most == 0 ? std::nullopt : std::optional(candidate);
}

//===----------------------------------------------------------------------===//
// Branches
//===----------------------------------------------------------------------===//

static void forEachOperand(Operation *op, function_ref<void(Value)> visit) {
  llvm::for_each(op->getOperands(), visit);
  llvm::SetVector<Value> used;
  getUsedValuesDefinedAbove(op->getRegions(), used);
  llvm::for_each(used, visit);
}

/// Collects what `op` needs and stands behind `place`, in the same block. False
/// if some of that has to stay, or needs one of `members`, which `op` itself
/// may.
static bool collectNeeded(Operation *op, Operation *place,
                          ArrayRef<Candidate> members, bool isFirst,
                          llvm::SetVector<Operation *> &needed) {
  bool canMove = true;
  forEachOperand(op, [&](Value value) {
    Operation *source = value.getDefiningOp();
    if (!source || source->getBlock() != place->getBlock())
      return;
    bool isMember = llvm::any_of(
        members, [&](const Candidate &member) { return member.op == source; });
    if (isMember && isFirst)
      return;
    if (isMember) {
      canMove = false;
      return;
    }
    if (source->isBeforeInBlock(place) || needed.contains(source))
      return;
    canMove &=
        isPure(source) && collectNeeded(source, place, members, false, needed);
    needed.insert(source);
  });
  return canMove;
}

/// How many rows `value` has, an operand of a matmul, without a use of what
/// passes over memory compute: they would have to leave it there.
static Value getRows(OpBuilder &b, Location loc, Value value) {
  while (Operation *source = value.getDefiningOp()) {
    if (auto quantize = dyn_cast<QuantizeOp>(source))
      value = quantize.getSource();
    else if (auto dequantize = dyn_cast<DequantizeOp>(source))
      value = dequantize.getSource();
    else if (auto matmul = dyn_cast<MatmulOp>(source);
             matmul && !matmul.getTransposeA())
      value = matmul.getA();
    else if (auto structured = dyn_cast<linalg::LinalgOp>(source))
      value = structured.getDpsInits()[cast<OpResult>(value).getResultNumber()];
    else
      break;
  }
  if (isa<ScaledType>(value.getType())) {
    auto parts = value.getDefiningOp<AssembleOp>();
    value = parts ? parts.getPayload()
                  : DisassembleOp::create(b, loc, value).getPayload();
  }
  int64_t rank = cast<RankedTensorType>(value.getType()).getRank();
  return b.createOrFold<tensor::DimOp>(loc, value, rank - 2);
}

/// Says how many rows `op` is for, which the condition around it knows.
static void setRows(MatmulOp op, int64_t least, int64_t most) {
  op->setAttr(kRowsAttrName,
              DenseI64ArrayAttr::get(op.getContext(), {least, most}));
}

/// Makes the bf16 of `members` in `block`, where it is needed, if none but
/// `candidates` read it; but not what the pass that makes the codes writes as
/// well.
static void moveDecodes(ArrayRef<Candidate> members,
                        ArrayRef<Candidate> candidates, Block *block,
                        IRMapping &mapping) {
  OpBuilder b = OpBuilder::atBlockBegin(block);
  for (Candidate member : members)
    for (DequantizeOp decode : {member.a, member.b}) {
      bool isElsewhere = llvm::any_of(decode->getUsers(), [&](Operation *user) {
        return llvm::none_of(candidates, [&](const Candidate &other) {
          return other.op == user;
        });
      });
      if (!isElsewhere && !mapping.contains(decode.getResult()) &&
          !decode.getSource().getDefiningOp<QuantizeOp>())
        b.clone(*decode, mapping);
    }
}

/// The branches of `members`, at `place`, which stands behind the first one.
static void branch(ArrayRef<Candidate> members, ArrayRef<Candidate> candidates,
                   arith::ConstantOp place) {
  Location loc = place.getLoc();
  int64_t most = cast<IntegerAttr>(place.getValue()).getInt();
  OpBuilder b(place->getContext());
  b.setInsertionPointAfter(place);
  SmallVector<Value> results;
  for (Candidate member : members)
    results.push_back(member.op.getResult());
  Candidate first = members.front();
  Value rows = getRows(b, loc, first.op.getA());
  Value isFew =
      arith::CmpIOp::create(b, loc, arith::CmpIPredicate::sle, rows, place);
  auto choice = scf::IfOp::create(b, loc, TypeRange(ValueRange(results)), isFew,
                                  /*withElseRegion=*/true);
  for (bool few : {true, false}) {
    Block *block = few ? choice.thenBlock() : choice.elseBlock();
    IRMapping mapping;
    if (!few)
      moveDecodes(members, candidates, block, mapping);
    b.setInsertionPointToEnd(block);
    SmallVector<Value> yielded;
    for (const Candidate &member : members) {
      auto own = few ? cloneOfCodes(b, member, mapping)
                     : cast<MatmulOp>(b.clone(*member.op, mapping));
      setRows(own, few ? 0 : most + 1,
              few ? most : std::numeric_limits<int64_t>::max());
      yielded.push_back(own.getResult());
    }
    scf::YieldOp::create(b, loc, yielded);
  }
  for (auto [result, chosen] : llvm::zip_equal(results, choice.getResults()))
    result.replaceAllUsesWith(chosen);
  for (Candidate member : llvm::reverse(members))
    member.op->erase();
}

/// Branches of all `candidates`, of one A and in order, by the same number of
/// rows: those that can stand beside the first one have its.
static void branchAll(ArrayRef<Candidate> candidates) {
  int64_t most = kRows[std::size(kRows) - 1];
  llvm::SetVector<DequantizeOp> decodes;
  for (const Candidate &candidate : candidates) {
    most = std::min(most, candidate.most);
    decodes.insert(candidate.a);
    decodes.insert(candidate.b);
  }
  for (Candidate candidate : candidates)
    candidate.op.emitRemark()
        << "up to " << most << " rows are multiplied as "
        << candidate.a.getSource().getType() << " and "
        << candidate.b.getSource().getType()
        << ", each sum of 32 by its factors: in bf16 " << candidate.most
        << " are expected to take "
        << llvm::formatv("{0:F2}", candidate.ratio).str() << " times as long";
  SmallVector<Candidate> left(candidates);
  while (!left.empty()) {
    SmallVector<Candidate> members{left.front()}, others;
    MatmulOp first = left.front().op;
    OpBuilder b(first->getContext());
    b.setInsertionPointAfter(first);
    auto place =
        arith::ConstantOp::create(b, first.getLoc(), b.getIndexAttr(most));
    for (const Candidate &next : ArrayRef(left).drop_front()) {
      llvm::SetVector<Operation *> needed;
      if (!collectNeeded(next.op, place, members, /*isFirst=*/true, needed)) {
        others.push_back(next);
        continue;
      }
      for (Operation *op : needed)
        op->moveBefore(place);
      members.push_back(next);
    }
    branch(members, left, place);
    left = std::move(others);
  }
  for (DequantizeOp decode : decodes)
    if (decode.use_empty())
      decode.erase();
}

void BranchByRowsPass::runOnOperation() {
  ModuleOp module = getOperation();
  FailureOr<KernelTarget> target = lookupChip(module, chip);
  if (failed(target))
    return signalPassFailure();
  llvm::MapVector<std::pair<Block *, Value>, SmallVector<Candidate>> siblings;
  SmallVector<MatmulOp> matmuls;
  module.walk([&](MatmulOp op) { matmuls.push_back(op); });
  for (MatmulOp op : matmuls)
    if (std::optional<Candidate> candidate = getCandidate(op, *target))
      siblings[{op->getBlock(), op.getA()}].push_back(*candidate);
  for (const auto &[place, candidates] : siblings) {
    branchAll(candidates);
    numBranched += candidates.size();
  }
}
