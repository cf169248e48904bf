//===- MatmulSpec.cpp - What a matmul kernel computes ---------------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "fp8/Kernels/Matmul/MatmulSpec.h"
#include "fp8/IR/Formats.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Transforms/RegionUtils.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;
using namespace mlir::fp8;

/// A block keeps a table of them in shared memory.
static constexpr int64_t kMostGroups = 1024;

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
  llvm::SetVector<Value> captures;
  getUsedValuesDefinedAbove(op.getEpilogue(), captures);
  for (Value value : captures)
    if (!matchPattern(value, m_Constant()))
      spec.captures.push_back(value);
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
    if (!op.isScaled())
      continue;
    std::optional<ScaleBlock> block =
        getScaleBlock(operand == &spec.a ? op.getScaledA() : op.getScaledB());
    if (!block) {
      reason = llvm::formatv("expected {0} to have f32 factors per tensor, per "
                             "row, per 1x128 or per 128x128",
                             name);
      return failure();
    }
    operand->scale = *block;
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
  spec.resultType = op.getResult().getType().getElementType();
  spec.m = a[a.size() - 2];
  spec.n = b[b.size() - 2];
  spec.k = ShapedType::isDynamic(a.back()) ? b.back() : a.back();
  spec.batch = a.size() == 3 ? a[0] : 1;
  spec.results = {{spec.m, spec.n}};
  if (failed(checkRows(spec, reason)))
    return failure();
  getEpilogue(op, spec);
  return checkCaptures(spec, reason);
}

FailureOr<MatmulSpec> MatmulSpec::get(MatmulOp op, std::string &reason) {
  MatmulSpec spec;
  spec.amax = op.getAmax() != nullptr;
  spec.batched = op.getResult().getType().getRank() == 3;
  if (failed(getProduct(op, spec, reason)))
    return failure();
  return spec;
}

FailureOr<MatmulSpec> MatmulSpec::get(GroupedMatmulOp op, std::string &reason) {
  MatmulSpec spec;
  spec.grouping = op.sumsGroups() ? Grouping::K : Grouping::Rows;
  spec.groups = op.getNumGroups();
  spec.masked = op.isMasked();
  spec.hasUndefPadding = op.getUndefPadding();
  if (std::optional<uint64_t> count = op.getExpectedM())
    spec.expectedM = static_cast<int64_t>(*count);
  if (failed(getProduct(op, spec, reason)))
    return failure();
  // Which are counted as groups.
  spec.batch = 1;
  // Which nobody has asked for.
  if (spec.a.elementType.isF32()) {
    reason = "expected no operands in f32, which tensor cores round to TF32";
    return failure();
  }
  if (ShapedType::isDynamic(spec.groups) || spec.groups < 1 ||
      spec.groups > kMostGroups) {
    reason = llvm::formatv("expected a known number of groups from 1 to {0}",
                           kMostGroups);
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
  if (lhs.accumulate != rhs.accumulate)
    return "the same accumulation";
  if (lhs.batch != rhs.batch || lhs.k != rhs.k)
    return "the same K and number of batches";
  if (!llvm::equal(lhs.operands, rhs.operands) || lhs.captures != rhs.captures)
    return "epilogues that read the same";
  return "";
}

FailureOr<MatmulSpec> MatmulSpec::get(SiblingMatmulsOp op,
                                      std::string &reason) {
  SmallVector<MatmulOp, 4> matmuls = op.getMatmuls();
  if (op.isDual())
    return getDual(matmuls[0], matmuls[1], reason);
  return get(matmuls, op.sharesA(), reason);
}

FailureOr<MatmulSpec> MatmulSpec::get(ArrayRef<MatmulOp> matmuls, bool sharesA,
                                      std::string &reason) {
  FailureOr<MatmulSpec> spec = get(matmuls.front(), reason);
  if (failed(spec))
    return failure();
  spec->sharesA = sharesA;
  for (MatmulOp matmul : matmuls.drop_front()) {
    FailureOr<MatmulSpec> other = get(matmul, reason);
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
    spec->results.push_back(other->results.front());
    int64_t &sum = sharesA ? spec->n : spec->m;
    int64_t own = sharesA ? other->n : other->m;
    sum = ShapedType::isDynamic(sum) || ShapedType::isDynamic(own)
              ? ShapedType::kDynamic
              : sum + own;
  }
  return spec;
}

/// What two products must have to meet in a tile; empty if they have it.
static StringRef getFusionBlocker(const MatmulSpec &first,
                                  const MatmulSpec &second) {
  if (!(first.a == second.a) || !(first.b == second.b))
    return "operands of the same types and factors";
  if (first.accumulate != second.accumulate)
    return "the same accumulation";
  if (first.resultType.getIntOrFloatBitWidth() < 16)
    return "a first result of 16 bits or more";
  if (!second.canStoreInBulk())
    return "rows of a result that are multiples of 16 bytes";
  return "";
}

FailureOr<MatmulSpec> MatmulSpec::getDual(MatmulOp firstOp, MatmulOp secondOp,
                                          std::string &reason) {
  FailureOr<MatmulSpec> first = get(firstOp, reason),
                        spec = get(secondOp, reason);
  if (failed(first) || failed(spec))
    return failure();
  StringRef hindrance = getFusionBlocker(*first, *spec);
  if (!hindrance.empty()) {
    reason = ("expected matmuls of a pair to have " + hindrance).str();
    return failure();
  }
  auto position = static_cast<size_t>(
      llvm::find(secondOp.getEpilogueOperands(), firstOp.getResult()) -
      secondOp.getEpilogueOperands().begin());
  spec->first = FirstProduct{first->resultType, first->epilogue,
                             first->operands.size(), position};
  spec->operands.erase(spec->operands.begin() + position);
  spec->operands.insert(spec->operands.begin(), first->operands.begin(),
                        first->operands.end());
  for (Value capture : first->captures)
    if (!llvm::is_contained(spec->captures, capture))
      spec->captures.push_back(capture);
  if (!ShapedType::isDynamic(spec->n))
    spec->n *= 2;
  spec->results = {{spec->m, spec->n}};
  return spec;
}

size_t MatmulSpec::getCount(StringRef name) const {
  constexpr StringRef ofA[] = {"a", "scale_a", "tensor_scale_a", "m"};
  constexpr StringRef ofB[] = {"b", "scale_b", "tensor_scale_b", "n"};
  if (isDual())
    return name != "n" && llvm::is_contained(ofB, name) ? 2 : 1;
  bool isShared = llvm::is_contained(sharesA ? ofA : ofB, name);
  return areSiblings() && isShared ? 1 : results.size();
}

int64_t MatmulSpec::getNumTiles(int64_t tileM, int64_t tileN) const {
  int64_t tiles = 0;
  for (ResultExtents result : results)
    tiles +=
        llvm::divideCeil(result.m, tileM) * llvm::divideCeil(result.n, tileN);
  return tiles * batch;
}

bool MatmulSpec::canStoreInBulk() const {
  int64_t bytes = resultType.getIntOrFloatBitWidth() / 8;
  return llvm::all_of(results, [&](ResultExtents result) {
    return !ShapedType::isDynamic(result.n) &&
           getResultCols(result.n) * bytes % 16 == 0;
  });
}

bool MatmulSpec::areFactorsInFours(bool ofA) const {
  const OperandSpec &operand = ofA ? a : b;
  if (operand.scale != ScaleBlock::Row128 || operand.factorMajor != Major::MN)
    return false;
  return llvm::all_of(results, [&](ResultExtents result) {
    int64_t rows = ofA ? result.m : result.n;
    return !ShapedType::isDynamic(rows) && rows % 4 == 0;
  });
}

int64_t MatmulSpec::getFactorWidth(bool ofA) const {
  // Rows of a group begin anywhere.
  bool isAligned = !ofA || !hasAdjacentRows();
  return isAligned && areFactorsInFours(ofA) ? 4 : 1;
}

//===----------------------------------------------------------------------===//
// Names
//===----------------------------------------------------------------------===//

static StringRef getScaleName(ScaleBlock scale) {
  switch (scale) {
  case ScaleBlock::None:
    return "none";
  case ScaleBlock::Tensor:
    return "tensor";
  case ScaleBlock::Row:
    return "row";
  case ScaleBlock::Row128:
    return "1x128";
  case ScaleBlock::Block128:
    return "128x128";
  case ScaleBlock::Row32:
    return "1x32";
  case ScaleBlock::Row16:
    return "1x16";
  }
  llvm_unreachable("every granularity has a name");
}

std::string MatmulSpec::getTypesName() const {
  std::string name;
  llvm::raw_string_ostream os(name);
  os << getFormatName(a.elementType) << '_' << getFormatName(b.elementType)
     << '_' << getFormatName(resultType) << '_';
  bool areKMajor = a.major == Major::K && b.major == Major::K;
  if (isScaled())
    os << getScaleName(a.scale) << '_' << getScaleName(b.scale) << '_'
       << stringifyAccumulate(accumulate) << (areKMajor ? "" : "_");
  if (!isScaled() || !areKMajor)
    os << (a.major == Major::K ? 'n' : 't')
       << (b.major == Major::K ? 't' : 'n');
  return name;
}

/// The epilogue as what it reads and does, e.g. "n:bf16 extf addf truncf";
/// empty for none.
static std::string describeEpilogue(const MatmulSpec &spec) {
  std::string text;
  llvm::raw_string_ostream os(text);
  llvm::ListSeparator space(" ");
  for (const EpilogueOperandSpec &operand : spec.operands) {
    os << space << (operand.alongBatch ? "b" : "")
       << (operand.alongM ? "m" : "") << (operand.alongN ? "n" : "") << ':'
       << operand.elementType;
  }
  auto addBody = [&](Block *body) {
    for (Operation &op : body->without_terminator())
      if (!op.hasTrait<OpTrait::ConstantLike>())
        os << space << op.getName().stripDialect();
  };
  if (spec.first) {
    if (spec.first->epilogue)
      addBody(spec.first->epilogue);
    os << space << "pair:" << spec.first->resultType;
  }
  if (spec.epilogue)
    addBody(spec.epilogue);
  if (spec.amax)
    os << space << "amax";
  return text;
}

MatmulSpec MatmulSpec::withUsualExtents() const {
  MatmulSpec known = *this;
  auto set = [](int64_t &extent, int64_t otherwise) {
    if (ShapedType::isDynamic(extent))
      extent = otherwise;
  };
  set(known.m, kUsualExtent);
  set(known.n, kUsualExtent);
  set(known.k, kUsualExtent);
  set(known.batch, 1);
  for (ResultExtents &result : known.results) {
    set(result.m, kUsualExtent);
    set(result.n, kUsualExtent);
  }
  return known;
}

bool MatmulSpec::hasKnownExtents() const {
  return llvm::none_of(ArrayRef{batch, m, n, k}, ShapedType::isDynamic);
}

std::string MatmulSpec::describe() const {
  std::string key =
      llvm::formatv("{0} {1}x{2}x{3}x{4}", getTypesName(), batch, m, n, k);
  if (isGrouped()) {
    key += (grouping == Grouping::Rows ? " m/" : " k/") +
           std::to_string(groups) + (masked ? " masked groups" : " groups");
    if (masked && !ShapedType::isDynamic(expectedM))
      key += " of " + std::to_string(expectedM);
    if (hasUndefPadding)
      key += " undef_padding";
  }
  if (areSiblings()) {
    key += sharesA ? " n" : " m";
    for (ResultExtents result : results)
      key += '/' + std::to_string(sharesA ? result.n : result.m);
  }
  std::string epilogueText = describeEpilogue(*this);
  return epilogueText.empty() ? key : key + ' ' + epilogueText;
}

//===----------------------------------------------------------------------===//
// Cost
//===----------------------------------------------------------------------===//

/// What functions take in the kernel (fp8-lower-kernel-math), and one for
/// everything else.
static int64_t countInstructions(Block *epilogue) {
  int64_t count = 0;
  if (!epilogue)
    return count;
  for (Operation &op : epilogue->without_terminator()) {
    if (op.hasTrait<OpTrait::ConstantLike>())
      continue;
    auto math = dyn_cast<arith::ArithFastMathInterface>(op);
    arith::FastMathFlagsAttr flags =
        math ? math.getFastMathFlagsAttr() : arith::FastMathFlagsAttr();
    bool isRough = flags && arith::bitEnumContainsAll(
                                flags.getValue(), arith::FastMathFlags::afn);
    count += isRough                                              ? 2
             : isa<math::ErfOp>(op)                               ? 16
             : isa<math::TanhOp, math::LogOp, math::PowFOp>(op)   ? 6
             : isa<math::ExpOp, arith::DivFOp, math::RsqrtOp>(op) ? 3
                                                                  : 1;
  }
  return count;
}

int64_t MatmulSpec::getEpilogueInstructions() const {
  int64_t count = countInstructions(epilogue);
  // Two of the tensor core's elements for one of the result.
  return first ? (count + countInstructions(first->epilogue)) / 2 : count;
}
