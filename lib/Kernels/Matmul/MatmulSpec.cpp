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
#include "mlir/Dialect/Math/IR/Math.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;
using namespace mlir::fp8;

//===----------------------------------------------------------------------===//
// Arguments and results
//===----------------------------------------------------------------------===//

bool MatmulSpec::hasBatch(StringRef argument) const {
  if (batched || isMasked())
    return true;
  switch (getGrouping()) {
  case Grouping::None:
    return false;
  case Grouping::Rows:
    return argument == "b" || argument == "exponents" ||
           argument == "scale_b" || argument == "tensor_scale_b";
  case Grouping::K:
    return argument == "d";
  }
  llvm_unreachable("every grouping has arguments");
}

SmallVector<MatmulSpec::ResultExtents> MatmulSpec::getResults() const {
  if (const Siblings *siblings = getSiblings())
    return siblings->results;
  return {ResultExtents{m, n}};
}

size_t MatmulSpec::getCount(StringRef name) const {
  constexpr StringRef ofA[] = {"a", "scale_a", "tensor_scale_a", "m"};
  constexpr StringRef ofB[] = {"b", "exponents", "scale_b", "tensor_scale_b",
                               "n"};
  if (isDual())
    return name != "n" && llvm::is_contained(ofB, name) ? 2 : 1;
  bool isShared =
      llvm::is_contained(sharesA() ? ArrayRef(ofA) : ArrayRef(ofB), name);
  return areSiblings() && isShared ? 1 : getNumResults();
}

int64_t MatmulSpec::getNumTiles(int64_t tileM, int64_t tileN) const {
  int64_t tiles = 0;
  for (ResultExtents result : getResults())
    tiles +=
        llvm::divideCeil(result.m, tileM) * llvm::divideCeil(result.n, tileN);
  return tiles * batch;
}

bool MatmulSpec::canStoreInBulk() const {
  int64_t bytes = resultType.getIntOrFloatBitWidth() / 8;
  return llvm::all_of(getResults(), [&](ResultExtents result) {
    return !ShapedType::isDynamic(result.n) &&
           getResultCols(result.n) * bytes % 16 == 0;
  });
}

bool MatmulSpec::areFactorsInFours(bool ofA) const {
  const OperandSpec &operand = ofA ? a : b;
  if (operand.scale != ScaleBlock::Row128 || operand.factorMajor != Major::MN)
    return false;
  return llvm::all_of(getResults(), [&](ResultExtents result) {
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

static StringRef getOperandName(const OperandSpec &operand) {
  switch (operand.lifting) {
  case Lifting::None:
    return getFormatName(operand.elementType);
  case Lifting::MXFP4ToE4M3:
  case Lifting::MXFP4:
    return operand.isArranged ? "mxfp4arranged" : "mxfp4";
  case Lifting::MXFP8:
    return operand.isArranged ? "mxfp8arranged" : "mxfp8";
  case Lifting::NVFP4:
    return operand.isArranged ? "nvfp4arranged" : "nvfp4";
  case Lifting::E4M3Blocks:
    return operand.isArranged ? "e4m3blocksarranged" : "e4m3blocks";
  }
  llvm_unreachable("all ways to lift have names");
}

std::string MatmulSpec::getTypesName() const {
  std::string name;
  llvm::raw_string_ostream os(name);
  os << getOperandName(a) << '_' << getOperandName(b) << '_'
     << getFormatName(resultType) << '_';
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
  if (const MatmulSpec::Dual *dual = spec.getDual()) {
    if (dual->epilogue)
      addBody(dual->epilogue);
    os << space << "pair:" << dual->resultType;
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
  if (auto *siblings = std::get_if<Siblings>(&known.many))
    for (ResultExtents &result : siblings->results) {
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
  if (const Groups *groups = getGroups()) {
    key += (groups->of == Grouping::Rows ? " m/" : " k/") +
           std::to_string(groups->count) +
           (groups->masked ? " masked groups" : " groups");
    if (groups->masked && !ShapedType::isDynamic(groups->expectedM))
      key += " of " + std::to_string(groups->expectedM);
    if (groups->undefPadding)
      key += " undef_padding";
  }
  if (areSiblings()) {
    key += sharesA() ? " n" : " m";
    for (ResultExtents result : getResults())
      key += '/' + std::to_string(sharesA() ? result.n : result.m);
  }
  // Tables have other configs for these, of which each may be taken.
  if (invariant)
    key += " invariant";
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
  return isDual() ? (count + countInstructions(getDual()->epilogue)) / 2
                  : count;
}
