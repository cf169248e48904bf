//===- ReadMatmul.cpp - What a matmul kernel is to compute ----------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "fp8/IR/FoldedReads.h"
#include "fp8/Kernels/Matmul/MatmulSpec.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Transforms/RegionUtils.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;
using namespace mlir::fp8;

/// A block keeps a table of them in shared memory.
static constexpr int64_t kMaxGroups = 1024;

/// The granularity that kernels know for a factor block, if any.
static std::optional<ScaleBlock> getScaleBlock(ScaledType type) {
  int64_t rank = type.getRank();
  int64_t rows = type.getBlock()[rank - 2], k = type.getBlock()[rank - 1];
  if (isa<Float8E8M0FNUType>(type.getScaleType()) && rows == 1 && k == 32)
    return ScaleBlock::Row32;
  if (isa<Float8E4M3FNType>(type.getScaleType()) && rows == 1 && k == 16)
    return ScaleBlock::Row16;
  if (!type.getScaleType().isF32() || isPacked(type.getElementType()))
    return std::nullopt;
  constexpr int64_t whole = ScaledType::kWhole;
  if (rows == whole && k == whole)
    return ScaleBlock::Tensor;
  if (rows == 1 && k == whole)
    return ScaleBlock::Row;
  if (rows == 1 && k == 128)
    return ScaleBlock::Row128;
  if (rows == 128 && k == 128)
    return ScaleBlock::Block128;
  return std::nullopt;
}

Lifting fp8::getLifting(ScaledType type) {
  int64_t rank = type.getRank();
  int64_t rows = type.getBlock()[rank - 2], k = type.getBlock()[rank - 1];
  Type code = type.getElementType(), factor = type.getScaleType();
  // Those of batches and of groups are their own.
  if (llvm::any_of(type.getBlock().drop_back(2),
                   [](int64_t size) { return size != 1; }))
    return Lifting::None;
  if (rows == 128 && k == 128 && factor.isF32() && isa<Float8E4M3FNType>(code))
    return Lifting::E4M3Blocks;
  if (rows != 1)
    return Lifting::None;
  if (isa<Float8E8M0FNUType>(factor) && k == 32) {
    if (isa<Float8E4M3FNType>(code))
      return Lifting::MXFP8;
    if (isa<Float4E2M1FNType>(code))
      return Lifting::MXFP4;
  }
  if (isa<Float8E4M3FNType>(factor) && isa<Float4E2M1FNType>(code) && k == 16)
    return Lifting::NVFP4;
  return Lifting::None;
}

bool fp8::areArranged(Value codes) {
  while (auto parts = codes.getDefiningOp<DisassembleOp>()) {
    auto assemble = parts.getSource().getDefiningOp<AssembleOp>();
    if (!assemble || codes != parts.getPayload())
      return false;
    codes = assemble.getPayload();
  }
  auto argument = dyn_cast<BlockArgument>(codes);
  if (!argument || !argument.getOwner()->isEntryBlock())
    return false;
  auto function =
      dyn_cast<FunctionOpInterface>(argument.getOwner()->getParentOp());
  return function &&
         function.getArgAttr(argument.getArgNumber(), kArrangedAttrName);
}

/// Whether the codes of what kernels lift are.
static bool areLiftedArranged(Value scaled) {
  auto assemble = scaled.getDefiningOp<AssembleOp>();
  if (!assemble)
    return false;
  auto lift = assemble.getPayload().getDefiningOp<LiftOp>();
  return areArranged(lift ? lift.getCodes() : assemble.getPayload());
}

/// Whether the last two dimensions change places, whatever batches there are.
static bool exchangesLast(ArrayRef<int64_t> permutation) {
  auto rank = static_cast<int64_t>(permutation.size());
  for (int64_t dim = 0; dim < rank; ++dim) {
    int64_t swapped = dim < rank - 2 ? dim : 2 * rank - 3 - dim;
    if (permutation[dim] != swapped)
      return false;
  }
  return true;
}

StoredFactors StoredFactors::get(Value operand) {
  // Powers of two are read as they are given.
  if (auto type = dyn_cast<ScaledType>(operand.getType());
      type && !type.getScaleType().isF32())
    return {};
  // A kernel that transposes codes leaves an assembly behind, with factors that
  // are transposed: those of the source are what is read, before and after.
  if (auto transpose = operand.getDefiningOp<TransposeOp>();
      transpose && exchangesLast(transpose.getPermutation()))
    return {Value(), transpose.getSource(), Major::MN};
  auto assemble = operand.getDefiningOp<AssembleOp>();
  if (!assemble)
    return {};
  Value factors = assemble.getScaleInv();
  auto transpose = factors.getDefiningOp<linalg::TransposeOp>();
  if (!transpose || !exchangesLast(transpose.getPermutation()))
    return {factors};
  return {transpose.getInput(), Value(), Major::MN};
}

/// What an epilogue uses from around it, but for constants, and what is there
/// already.
static void addCaptures(Region &epilogue, SmallVectorImpl<Value> &captures) {
  llvm::SetVector<Value> used;
  getUsedValuesDefinedAbove(epilogue, used);
  for (Value value : used)
    if (!matchPattern(value, m_Constant()) &&
        !llvm::is_contained(captures, value))
      captures.push_back(value);
}

/// What the op's epilogue reads beside the accumulator.
template <typename OpTy>
static void getEpilogue(OpTy op, MatmulSpec &spec) {
  if (!op.hasEpilogue())
    return;
  spec.epilogue = &op.getEpilogue().front();
  int64_t rank = op.getResult().getType().getRank();
  for (Value operand : op.getEpilogueOperands()) {
    auto type = cast<RankedTensorType>(operand.getType());
    auto has = [&](int64_t dim) {
      int64_t own = dim - (rank - type.getRank());
      return own >= 0 && type.getDimSize(own) != 1;
    };
    spec.operands.push_back({type.getElementType(), type.getRank(),
                             rank == 3 && has(0), has(rank - 2),
                             has(rank - 1)});
  }
  addCaptures(op.getEpilogue(), spec.captures);
}

/// Types, factors and layouts of A and B; fails, with the reason, if kernels do
/// not know them.
template <typename OpTy>
static LogicalResult getOperands(OpTy op, MatmulSpec &spec,
                                 std::string &reason) {
  for (auto [name, value, type, transposed, operand] :
       {std::tuple{"A", op.getA(), op.getElementTypeOfA(), op.getTransposeA(),
                   &spec.a},
        {"B", op.getB(), op.getElementTypeOfB(), op.getTransposeB(),
         &spec.b}}) {
    operand->elementType = type;
    operand->major = transposed ? Major::MN : Major::K;
    operand->scale = ScaleBlock::None;
    if (!op.isScaled()) {
      DequantizeOp dequantize = getFoldedDequantize(value);
      if (operand == &spec.b && dequantize) {
        operand->lifting =
            getLifting(cast<ScaledType>(dequantize.getSource().getType()));
        operand->isArranged = areLiftedArranged(dequantize.getSource());
      }
      continue;
    }
    std::optional<ScaleBlock> block =
        getScaleBlock(operand == &spec.a ? op.getScaledA() : op.getScaledB());
    if (!block) {
      reason = llvm::formatv(
          "expected {0} to have f32 scale factors per tensor, per "
          "row, per 1x128 or per 128x128",
          name);
      return failure();
    }
    operand->scale = *block;
    if (operand == &spec.b && LiftOp::getFolded(value)) {
      operand->lifting = Lifting::MXFP4ToE4M3;
      operand->isArranged = areLiftedArranged(value);
    }
    operand->factorMajor = StoredFactors::get(value).major;
  }
  return success();
}

/// Bulk copies want rows of a multiple of 16 bytes.
static LogicalResult checkRows(const MatmulSpec &spec, std::string &reason) {
  for (auto [operand, rows, name, rowsName] :
       {std::tuple{&spec.a, spec.m, "A", "M"}, {&spec.b, spec.n, "B", "N"}}) {
    bool isKMajor = operand->major == Major::K;
    int64_t extent = isKMajor ? spec.k : rows;
    int64_t multiple = operand->getElementsOf(16);
    if (ShapedType::isDynamic(extent) || extent % multiple == 0)
      continue;
    reason = llvm::formatv("expected {0} to be a multiple of {1}, which bulk "
                           "tensor copies of {2} need, but got {3}",
                           isKMajor ? "K" : rowsName, multiple, name, extent);
    return failure();
  }
  return success();
}

static LogicalResult checkCaptures(const MatmulSpec &spec,
                                   std::string &reason) {
  for (Value capture : spec.captures)
    if (!capture.getType().isIntOrFloat()) {
      reason = llvm::formatv(
          "expected the epilogue to use scalars from around it, but got {0}",
          capture.getType());
      return failure();
    }
  return success();
}

/// What every product has; fails, with the reason, if no kernel has it.
template <typename OpTy>
static LogicalResult getProduct(OpTy op, MatmulSpec &spec,
                                std::string &reason) {
  if (failed(getOperands(op, spec, reason)))
    return failure();
  SmallVector<int64_t> a = op.getShapeOfA(), b = op.getShapeOfB();
  spec.accumulate = op.getAccumulate();
  spec.invariant = isInvariant(op);
  spec.resultType = op.getResult().getType().getElementType();
  spec.m = a[a.size() - 2];
  spec.n = b[b.size() - 2];
  spec.k = ShapedType::isDynamic(a.back()) ? b.back() : a.back();
  spec.batch = a.size() == 3 ? a[0] : 1;
  if (failed(checkRows(spec, reason)))
    return failure();
  getEpilogue(op, spec);
  return checkCaptures(spec, reason);
}

static FailureOr<MatmulSpec> read(MatmulOp op, std::string &reason) {
  MatmulSpec spec;
  spec.amax = op.getAmax() != nullptr;
  spec.batched = op.getResult().getType().getRank() == 3;
  if (failed(getProduct(op, spec, reason)))
    return failure();
  return spec;
}

static FailureOr<MatmulSpec> read(GroupedMatmulOp op, std::string &reason) {
  MatmulSpec spec;
  MatmulSpec::Groups groups;
  groups.of = op.sumsGroups() ? Grouping::K : Grouping::Rows;
  groups.count = op.getNumGroups();
  groups.masked = op.isMasked();
  groups.undefPadding = op.getUndefPadding();
  if (std::optional<uint64_t> count = op.getExpectedM())
    groups.expectedM = static_cast<int64_t>(*count);
  spec.many = groups;
  if (failed(getProduct(op, spec, reason)))
    return failure();
  // They are counted as groups.
  spec.batch = 1;
  if (spec.a.elementType.isF32()) {
    reason = "expected no operands in f32, which tensor cores round to TF32";
    return failure();
  }
  if (ShapedType::isDynamic(groups.count) || groups.count < 1 ||
      groups.count > kMaxGroups) {
    reason = llvm::formatv("expected a known number of groups from 1 to {0}",
                           kMaxGroups);
    return failure();
  }
  return spec;
}

/// Whether the epilogues compute the same of their own operands.
static bool haveSameEpilogue(MatmulOp lhs, MatmulOp rhs) {
  llvm::DenseMap<Value, Value> equal;
  auto mark = [&](Value left, Value right) { equal[left] = right; };
  // Constants lie around the matmuls.
  auto isSame = [&](Value left, Value right) -> LogicalResult {
    Attribute ofLeft, ofRight;
    return success(left == right || equal.lookup(left) == right ||
                   (matchPattern(left, m_Constant(&ofLeft)) &&
                    matchPattern(right, m_Constant(&ofRight)) &&
                    ofLeft == ofRight));
  };
  return OperationEquivalence::isRegionEquivalentTo(
      &lhs.getEpilogue(), &rhs.getEpilogue(), isSame, mark,
      OperationEquivalence::IgnoreLocations);
}

/// What results of a group must have in common to come from one kernel; empty
/// if they have it.
static StringRef describeDifference(const MatmulSpec &lhs,
                                    const MatmulSpec &rhs) {
  if (!(lhs.a == rhs.a) || !(lhs.b == rhs.b))
    return "operands of the same types and factors";
  if (lhs.resultType != rhs.resultType || lhs.amax != rhs.amax)
    return "results of the same types";
  if (lhs.accumulate != rhs.accumulate || lhs.invariant != rhs.invariant)
    return "the same accumulation";
  if (lhs.batch != rhs.batch || lhs.k != rhs.k)
    return "the same K and number of batches";
  if (!llvm::equal(lhs.operands, rhs.operands) || lhs.captures != rhs.captures)
    return "epilogues that read the same";
  return "";
}

FailureOr<MatmulSpec> MatmulSpec::joinSiblings(ArrayRef<MatmulOp> matmuls,
                                               bool shareA,
                                               std::string &reason) {
  FailureOr<MatmulSpec> spec = read(matmuls.front(), reason);
  if (failed(spec))
    return failure();
  Siblings siblings{shareA, {ResultExtents{spec->m, spec->n}}};
  for (MatmulOp matmul : matmuls.drop_front()) {
    FailureOr<MatmulSpec> other = read(matmul, reason);
    if (failed(other))
      return failure();
    StringRef difference = describeDifference(*spec, *other);
    MatmulOp first = matmuls.front();
    if (difference.empty() && !haveSameEpilogue(first, matmul))
      difference = "the same epilogue";
    if (!difference.empty()) {
      reason = ("expected matmuls of a group to have " + difference).str();
      return failure();
    }
    siblings.results.push_back({other->m, other->n});
    int64_t &sum = shareA ? spec->n : spec->m;
    int64_t own = shareA ? other->n : other->m;
    sum = ShapedType::isDynamic(sum) || ShapedType::isDynamic(own)
              ? ShapedType::kDynamic
              : sum + own;
  }
  spec->many = std::move(siblings);
  return spec;
}

/// What two products must have to meet in a tile; empty if they have it.
static StringRef getFusionBlocker(const MatmulSpec &first,
                                  const MatmulSpec &second) {
  if (!(first.a == second.a) || !(first.b == second.b))
    return "operands of the same types and factors";
  if (first.accumulate != second.accumulate ||
      first.invariant != second.invariant)
    return "the same accumulation";
  if (first.resultType.getIntOrFloatBitWidth() < 16)
    return "a first result of 16 bits or more";
  if (!second.canStoreInBulk())
    return "rows of a result that are multiples of 16 bytes";
  return "";
}

FailureOr<MatmulSpec> MatmulSpec::joinDual(MatmulOp firstOp, MatmulOp secondOp,
                                           std::string &reason) {
  FailureOr<MatmulSpec> first = read(firstOp, reason),
                        spec = read(secondOp, reason);
  if (failed(first) || failed(spec))
    return failure();
  StringRef blocker = getFusionBlocker(*first, *spec);
  if (!blocker.empty()) {
    reason = ("expected matmuls of a pair to have " + blocker).str();
    return failure();
  }
  auto position = static_cast<size_t>(
      llvm::find(secondOp.getEpilogueOperands(), firstOp.getResult()) -
      secondOp.getEpilogueOperands().begin());
  spec->many = Dual{first->resultType, first->epilogue, first->operands.size(),
                    position};
  spec->operands.erase(spec->operands.begin() + position);
  spec->operands.insert(spec->operands.begin(), first->operands.begin(),
                        first->operands.end());
  addCaptures(firstOp.getEpilogue(), spec->captures);
  if (!ShapedType::isDynamic(spec->n))
    spec->n *= 2;
  return spec;
}

FailureOr<MatmulSpec> MatmulSpec::get(Operation *op, std::string &reason) {
  if (auto matmul = dyn_cast<MatmulOp>(op))
    return read(matmul, reason);
  if (auto grouped = dyn_cast<GroupedMatmulOp>(op))
    return read(grouped, reason);
  auto siblings = cast<SiblingMatmulsOp>(op);
  SmallVector<MatmulOp, 4> matmuls = siblings.getMatmuls();
  if (siblings.isDual())
    return joinDual(matmuls[0], matmuls[1], reason);
  return joinSiblings(matmuls, siblings.sharesA(), reason);
}

SmallVector<Value> MatmulSpec::getCaptures(Operation *op) {
  SmallVector<Value> captures;
  if (auto matmul = dyn_cast<MatmulOp>(op)) {
    addCaptures(matmul.getEpilogue(), captures);
  } else if (auto grouped = dyn_cast<GroupedMatmulOp>(op)) {
    addCaptures(grouped.getEpilogue(), captures);
  } else {
    // Epilogues are equal, but for a pair's, of which the second is first.
    auto siblings = cast<SiblingMatmulsOp>(op);
    SmallVector<MatmulOp, 4> matmuls = siblings.getMatmuls();
    addCaptures(matmuls[siblings.isDual() ? 1 : 0].getEpilogue(), captures);
    if (siblings.isDual())
      addCaptures(matmuls[0].getEpilogue(), captures);
  }
  return captures;
}
