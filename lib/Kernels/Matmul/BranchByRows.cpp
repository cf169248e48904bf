//===- BranchByRows.cpp - Few rows in FP8 and many in bf16 ----------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Enters: matmuls of bf16 whose weights, or both operands, are codes in memory,
// with their epilogues. Leaves: where it shows at run time how many rows there
// are, up to three of them. One is for few rows and multiplies codes; one is
// for many, of which so much time is the tensor core's that a pass which makes
// bf16 of weights pays; one, between the two, reads codes.
//
// All are in one scf.if with those of the same A beside them, so that these
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

/// Numbers of rows up to which codes may be multiplied, and from which on a
/// pass may make bf16 of weights.
static constexpr int64_t kFewRows[] = {16, 32, 48, 64};
static constexpr int64_t kManyRows[] = {1024, 1536, 2048, 4096, 8192, 16384};
static constexpr int64_t kNever = std::numeric_limits<int64_t>::max();

/// The memory of such a bf16, at most. It pays where it is expected to take no
/// longer: kernels that lift take more than they are expected to, of 200 rows
/// and more on an H200 1.05 to 1.25 times, beside those of bf16.
static constexpr int64_t kMaxDecodedBytes = int64_t(256) << 20;

namespace {
/// A matmul of bf16, what its operands were before, A only where codes may be
/// multiplied; up to how many rows that takes less time, and from how many on
/// bf16 of weights that a pass makes does. Beside them is how many times longer
/// so many take otherwise.
struct Candidate {
  MatmulOp op;
  DequantizeOp a, b;
  int64_t most = 0, least = kNever;
  double ratio = 0, ratioOfMany = 0;
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

/// Its spec, if nothing but the number of rows is unknown.
static std::optional<MatmulSpec> getSpecOfAnyRows(MatmulOp op) {
  std::string unused;
  FailureOr<MatmulSpec> spec = MatmulSpec::get(op, unused);
  if (failed(spec) || !ShapedType::isDynamic(spec->m) ||
      llvm::any_of(ArrayRef{spec->n, spec->k, spec->batch},
                   ShapedType::isDynamic))
    return std::nullopt;
  return *spec;
}

/// Whether nobody but kernels that lift them knows how the codes lie.
static bool isArranged(DequantizeOp dequantize) {
  auto assemble = dequantize.getSource().getDefiningOp<AssembleOp>();
  return assemble && areArranged(assemble.getPayload());
}

/// Up to how many rows it pays to multiply codes.
static void findFew(Candidate &candidate, const KernelTarget &target) {
  // Weights that are quantized here would be written twice.
  if (!candidate.a || isFolded(candidate.a) || isArranged(candidate.b) ||
      candidate.b.getSource().getDefiningOp<QuantizeOp>())
    return;
  MatmulOp op = candidate.op;
  OpBuilder builder(op);
  IRMapping none;
  MatmulOp own = cloneOfCodes(builder, candidate, none);
  llvm::scope_exit erase([&] { own.erase(); });
  std::optional<MatmulSpec> spec = getSpecOfAnyRows(own);
  if (!spec || !spec->isMicroscaled())
    return;
  auto ofA = cast<ScaledType>(candidate.a.getSource().getType());
  // In bf16 for nothing is what is quantized here, and what others read so.
  bool isMade = candidate.a.getSource().getDefiningOp<QuantizeOp>() ||
                candidate.a->getBlock() != op->getBlock() ||
                !llvm::all_of(candidate.a->getUsers(), llvm::IsaPred<MatmulOp>);
  for (int64_t rows : kFewRows) {
    std::optional<double> clocks = getExpectedClocks(own, target, rows);
    std::optional<double> wide = getExpectedClocks(op, target, rows);
    if (!clocks || !wide)
      break;
    double pass = isMade ? 0 : getDecodeClocks(ofA, target, rows);
    if (*wide + pass <= *clocks)
      break;
    candidate.most = rows;
    candidate.ratio = (*wide + pass) / *clocks;
  }
}

/// From how many rows on it pays to make bf16 of weights that kernels read.
static void findMany(Candidate &candidate, const KernelTarget &target) {
  DequantizeOp b = candidate.b;
  auto type = cast<ScaledType>(b.getSource().getType());
  int64_t bytes = b.getResult().getType().getNumElements() * 2;
  if (!isFolded(b) || bytes > kMaxDecodedBytes || isArranged(b))
    return;
  // The least number from which on it pays for each larger one, too.
  for (int64_t rows : llvm::reverse(kManyRows)) {
    std::optional<double> folded =
        getExpectedClocks(candidate.op, target, rows);
    Attribute attribute = b->removeAttr(kFoldedAttrName);
    std::optional<double> apart = getExpectedClocks(candidate.op, target, rows);
    b->setAttr(kFoldedAttrName, attribute);
    if (!folded || !apart)
      break;
    double ratio = *folded / (*apart + getDecodeClocks(type, target));
    if (ratio < 1)
      break;
    candidate.least = rows;
    candidate.ratioOfMany = ratio;
  }
}

static std::optional<Candidate> getCandidate(MatmulOp op,
                                             const KernelTarget &target) {
  Candidate candidate;
  candidate.op = op;
  candidate.a = op.getA().getDefiningOp<DequantizeOp>();
  candidate.b = op.getB().getDefiningOp<DequantizeOp>();
  // An amax that a launch records in place is of one launch. Bits of an
  // invariant one do not depend on how many rows there are.
  if (!candidate.b || op.getTransposeA() || op.getTransposeB() ||
      op.getAmax() || isInvariant(op) || op->hasAttr(kConfigAttrName) ||
      !getSpecOfAnyRows(op))
    return std::nullopt;
  findFew(candidate, target);
  findMany(candidate, target);
  if (candidate.most == 0 && candidate.least == kNever)
    return std::nullopt;
  return candidate;
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

namespace {
/// What is done with how many rows, ends among them.
enum class Way { Codes, Reading, Decoding };
struct Branch {
  Way way;
  int64_t first, last;
};
} // namespace

/// Makes the bf16 of `members` in `block`, where it is needed, if none but
/// `candidates` read it; but not what the pass that makes the codes writes as
/// well.
static void moveDecodes(ArrayRef<Candidate> members,
                        ArrayRef<Candidate> candidates, Way way, Block *block,
                        IRMapping &mapping) {
  OpBuilder b = OpBuilder::atBlockBegin(block);
  for (Candidate member : members)
    for (DequantizeOp decode : {member.a, member.b}) {
      if (!decode || mapping.contains(decode.getResult()))
        continue;
      bool isElsewhere = llvm::any_of(decode->getUsers(), [&](Operation *user) {
        return llvm::none_of(candidates, [&](const Candidate &other) {
          return other.op == user;
        });
      });
      // In front of a loop it is made once.
      MatmulOp matmul = member.op;
      isElsewhere |= decode->getBlock() != matmul->getBlock();
      // What kernels read is nowhere.
      bool isMade = way == Way::Decoding && isFolded(decode);
      if (isMade)
        b.clone(*decode, mapping)->removeAttr(kFoldedAttrName);
      else if (!isElsewhere && !decode.getSource().getDefiningOp<QuantizeOp>())
        b.clone(*decode, mapping);
    }
}

/// Computes `members` in one way, at the end of `block`.
static void compute(ArrayRef<Candidate> members, ArrayRef<Candidate> candidates,
                    Branch branch, Block *block) {
  IRMapping mapping;
  if (branch.way != Way::Codes)
    moveDecodes(members, candidates, branch.way, block, mapping);
  OpBuilder b = OpBuilder::atBlockEnd(block);
  SmallVector<Value> yielded;
  for (const Candidate &member : members) {
    auto own = branch.way == Way::Codes
                   ? cloneOfCodes(b, member, mapping)
                   : cast<MatmulOp>(b.clone(*member.op, mapping));
    // The condition around it knows.
    own->setAttr(kRowsAttrName,
                 b.getDenseI64ArrayAttr(ArrayRef{branch.first, branch.last}));
    yielded.push_back(own.getResult());
  }
  Candidate first = members.front();
  scf::YieldOp::create(b, first.op.getLoc(), yielded);
}

/// The results of `members` by one of `branches`, which are for numbers of
/// `rows` in order.
static scf::IfOp choose(OpBuilder &b, ArrayRef<Candidate> members,
                        ArrayRef<Candidate> candidates,
                        ArrayRef<Branch> branches, Value rows, Value most) {
  Candidate first = members.front();
  Location loc = first.op.getLoc();
  auto types = llvm::map_to_vector(members, [](Candidate member) -> Type {
    return member.op.getResult().getType();
  });
  if (!most)
    most = arith::ConstantOp::create(b, loc,
                                     b.getIndexAttr(branches.front().last));
  Value isFew =
      arith::CmpIOp::create(b, loc, arith::CmpIPredicate::sle, rows, most);
  auto choice =
      scf::IfOp::create(b, loc, types, isFew, /*withElseRegion=*/true);
  compute(members, candidates, branches.front(), choice.thenBlock());
  ArrayRef<Branch> others = branches.drop_front();
  if (others.size() == 1) {
    compute(members, candidates, others.front(), choice.elseBlock());
    return choice;
  }
  OpBuilder inner = OpBuilder::atBlockEnd(choice.elseBlock());
  scf::IfOp other = choose(inner, members, candidates, others, rows, Value());
  scf::YieldOp::create(inner, loc, other.getResults());
  return choice;
}

/// The branches of `members`, at `place`, which stands behind the first one.
static void branch(ArrayRef<Candidate> members, ArrayRef<Candidate> candidates,
                   ArrayRef<Branch> branches, arith::ConstantOp place) {
  OpBuilder b(place->getContext());
  b.setInsertionPointAfter(place);
  Candidate first = members.front();
  Value rows = getRows(b, place.getLoc(), first.op.getA());
  scf::IfOp choice = choose(b, members, candidates, branches, rows, place);
  for (auto [member, chosen] : llvm::zip_equal(members, choice.getResults()))
    Candidate(member).op.getResult().replaceAllUsesWith(chosen);
  for (Candidate member : llvm::reverse(members))
    member.op->erase();
}

/// Says what `candidate` is multiplied as, with those of its A.
static void report(Candidate candidate, int64_t most, int64_t least) {
  if (most > 0)
    candidate.op.emitRemark()
        << "up to " << most << " rows are multiplied as "
        << candidate.a.getSource().getType() << " and "
        << candidate.b.getSource().getType()
        << ", each sum of 32 by its factors: in bf16 " << candidate.most
        << " are expected to take "
        << llvm::formatv("{0:F2}", candidate.ratio).str() << " times as long";
  if (least != kNever)
    candidate.op.emitRemark()
        << "from " << least << " rows on a pass makes bf16 of "
        << candidate.b.getSource().getType()
        << ": where kernels read the codes " << candidate.least
        << " are expected to take "
        << llvm::formatv("{0:F2}", candidate.ratioOfMany).str()
        << " times as long";
}

/// Branches of all `candidates`, of one A and in order, by the same numbers of
/// rows: those that can stand beside the first one have its.
static bool branchAll(ArrayRef<Candidate> candidates) {
  int64_t most = kNever, least = 0;
  llvm::SetVector<DequantizeOp> decodes;
  for (const Candidate &candidate : candidates) {
    most = std::min(most, candidate.most);
    least = std::max(least, candidate.least);
    if (candidate.a)
      decodes.insert(candidate.a);
    decodes.insert(candidate.b);
  }
  SmallVector<Branch> branches;
  if (most > 0)
    branches.push_back({Way::Codes, 0, most});
  if (least != kNever) {
    branches.push_back({Way::Reading, most > 0 ? most + 1 : 0, least - 1});
    branches.push_back({Way::Decoding, least, kNever});
  } else {
    branches.push_back({Way::Reading, most + 1, kNever});
  }
  if (branches.size() == 1)
    return false;
  for (const Candidate &candidate : candidates)
    report(candidate, most, least);
  SmallVector<Candidate> left(candidates);
  while (!left.empty()) {
    SmallVector<Candidate> members{left.front()}, others;
    MatmulOp first = left.front().op;
    OpBuilder b(first->getContext());
    b.setInsertionPointAfter(first);
    auto place = arith::ConstantOp::create(
        b, first.getLoc(), b.getIndexAttr(branches.front().last));
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
    branch(members, left, branches, place);
    left = std::move(others);
  }
  for (DequantizeOp decode : decodes)
    if (decode.use_empty())
      decode.erase();
  return true;
}

void BranchByRowsPass::runOnOperation() {
  ModuleOp module = getOperation();
  FailureOr<KernelTarget> target = lookupChip(module, chip);
  if (failed(target))
    return signalPassFailure();
  // Those that never multiply codes keep nobody else from it.
  using Key = std::tuple<Block *, Value, int64_t>;
  llvm::MapVector<Key, SmallVector<Candidate>> siblings;
  SmallVector<MatmulOp> matmuls;
  module.walk([&](MatmulOp op) { matmuls.push_back(op); });
  for (MatmulOp op : matmuls)
    if (std::optional<Candidate> candidate = getCandidate(op, *target))
      siblings[{op->getBlock(), op.getA(), candidate->most > 0}].push_back(
          *candidate);
  for (const auto &[place, candidates] : siblings) {
    if (branchAll(candidates))
      numBranched += candidates.size();
  }
}
