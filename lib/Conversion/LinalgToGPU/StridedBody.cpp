//===- StridedBody.cpp - Neighbouring iterations of an operation ----------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "StridedBody.h"
#include "../LinalgToLoops/ScalarBody.h"
#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/IR/IRMapping.h"

using namespace mlir;
using namespace mlir::fp8;

/// Operations that a thread's lanes may have together: more take registers and
/// time to compile.
static constexpr int64_t kMaxOperations = 256;

//===----------------------------------------------------------------------===//
// Elements in memory
//===----------------------------------------------------------------------===//

Value fp8::getGlobalPointer(OpBuilder &b, Location loc, Value memref) {
  Value address =
      memref::ExtractAlignedPointerAsIndexOp::create(b, loc, memref);
  Value number = arith::IndexCastOp::create(b, loc, b.getI64Type(), address);
  auto space = [&](NVVM::NVVMMemorySpace space) {
    return LLVM::LLVMPointerType::get(b.getContext(),
                                      static_cast<unsigned>(space));
  };
  Value pointer = LLVM::IntToPtrOp::create(
      b, loc, space(NVVM::NVVMMemorySpace::Generic), number);
  return LLVM::AddrSpaceCastOp::create(
      b, loc, space(NVVM::NVVMMemorySpace::Global), pointer);
}

IntegerType fp8::getWord(Type type) {
  return IntegerType::get(type.getContext(), 8 * *getElementBytes(type));
}

Value fp8::fromWord(OpBuilder &b, Location loc, Value word, Type type) {
  if (word.getType() == type)
    return word;
  if (type.isIndex())
    return arith::IndexCastOp::create(b, loc, type, word);
  if (type.isInteger(1))
    return arith::TruncIOp::create(b, loc, type, word);
  return arith::BitcastOp::create(b, loc, type, word);
}

Value fp8::toWord(OpBuilder &b, Location loc, Value value) {
  Type type = value.getType(), word = getWord(type);
  if (type == word)
    return value;
  if (type.isIndex())
    return arith::IndexCastOp::create(b, loc, word, value);
  if (type.isInteger(1))
    return arith::ExtUIOp::create(b, loc, word, value);
  return arith::BitcastOp::create(b, loc, word, value);
}

static Value getAddress(OpBuilder &b, Location loc, Value pointer, Value offset,
                        Type word) {
  Value number = arith::IndexCastOp::create(b, loc, b.getI64Type(), offset);
  return LLVM::GEPOp::create(b, loc, pointer.getType(), word, pointer,
                             ValueRange{number});
}

static Value getLane(OpBuilder &b, Location loc, int64_t lane) {
  return LLVM::ConstantOp::create(b, loc, b.getI32Type(),
                                  b.getI32IntegerAttr(lane));
}

/// An element of a vector that was loaded. Bytes are taken out of words, as
/// LLVM would load them one by one.
static Value extractElement(OpBuilder &b, Location loc, Value vector,
                            int64_t element) {
  auto type = cast<VectorType>(vector.getType());
  Type word = type.getElementType();
  int64_t bytes = type.getNumElements(), together = 4;
  if (!word.isInteger(8) || bytes % together != 0)
    return LLVM::ExtractElementOp::create(b, loc, vector,
                                          getLane(b, loc, element));
  auto words = VectorType::get(bytes / together, b.getI32Type());
  Value whole = LLVM::ExtractElementOp::create(
      b, loc, LLVM::BitcastOp::create(b, loc, words, vector),
      getLane(b, loc, element / together));
  Value place = arith::ConstantOp::create(
      b, loc, b.getI32IntegerAttr(8 * (element % together)));
  return arith::TruncIOp::create(b, loc, word,
                                 arith::ShRUIOp::create(b, loc, whole, place));
}

/// Whether an allocation of the program begins where `memref`'s pointer is.
static bool isAllocated(Value memref) {
  while (Operation *op = memref.getDefiningOp()) {
    if (isa<memref::AllocOp>(op))
      return true;
    auto view = dyn_cast<ViewLikeOpInterface>(op);
    if (!view || isa<memref::ViewOp>(op))
      return false;
    memref = view.getViewSource();
  }
  return false;
}

//===----------------------------------------------------------------------===//
// How many
//===----------------------------------------------------------------------===//

int64_t StridedBody::getAligned(const StridedOperand &operand, int64_t lanes) {
  if (isFlat)
    return loops.isGapless(operand) ? lanes : 1;
  if (!operand.isConsecutive(along))
    return 1;
  for (unsigned loop = 0; loop < operand.strides.size(); ++loop)
    if (loop != along)
      lanes = std::gcd(lanes, operand.getStride(loop).value_or(0));
  return std::gcd(lanes, getConstantIntValue(operand.offset).value_or(0));
}

int64_t StridedBody::getWidth(const StridedOperand &operand, int64_t lanes) {
  if (!isAligned)
    return 1;
  Type type = getElementTypeOrSelf(operand.operand->get());
  return std::min(getAligned(operand, lanes),
                  kAccessBytes / *getElementBytes(type));
}

int64_t StridedBody::chooseLanes(bool isTail) {
  // One access takes the widest elements: threads beside each other then have
  // what lies beside each other of all. What a reduction writes is little.
  bool isReduction = op.getNumReductionLoops() > 0;
  int64_t bytes = 0;
  for (const StridedOperand &operand : loops.getOperands())
    if (operand.isConsecutive(along) &&
        !(isReduction && op.isDpsInit(operand.operand)))
      bytes = std::max(bytes, *getElementBytes(getElementTypeOrSelf(
                                  operand.operand->get())));
  if (bytes == 0)
    return 1;
  int64_t lanes = kAccessBytes / bytes;
  int64_t operations = std::max<int64_t>(
      1, llvm::range_size(op.getBlock()->without_terminator()));
  while (lanes > 1 && lanes * operations > kMaxOperations)
    lanes /= 2;
  // What is written tells how much lies side by side: pieces of it would not
  // fill what memory takes at once.
  for (const StridedOperand &operand : loops.getOperands())
    if (isReduction
            ? operand.isConsecutive(along) && !op.isDpsInit(operand.operand)
            : op.isDpsInit(operand.operand))
      lanes = std::min(lanes, getAligned(operand, lanes));
  std::optional<int64_t> size =
      getConstantIntValue(loops.getLoops()[along].size);
  return isTail || !size ? lanes : std::gcd(lanes, *size);
}

Value StridedBody::getMisalignment(int64_t lanes, bool isTail) {
  Value found;
  auto require = [&](OpFoldResult value, int64_t multiple) {
    Value rest = arith::AndIOp::create(
        b, loc, getIndex(value),
        arith::ConstantIndexOp::create(b, loc, multiple - 1));
    found =
        found ? arith::OrIOp::create(b, loc, found, rest).getResult() : rest;
  };
  auto requireStart = [&](Value memref, OpFoldResult offset, int64_t width) {
    int64_t bytes = *getElementBytes(getElementTypeOrSelf(memref));
    if (!isAllocated(memref))
      require(memref::ExtractAlignedPointerAsIndexOp::create(b, loc, memref)
                  .getResult(),
              width * bytes);
    if (!getConstantIntValue(offset))
      require(offset, width);
  };
  for (const StridedOperand &operand : loops.getOperands()) {
    int64_t width = operand.isStrided ? getWidth(operand, lanes) : 1;
    if (width == 1)
      continue;
    requireStart(operand.operand->get(), operand.offset, width);
    for (unsigned loop = 0; loop < operand.strides.size(); ++loop)
      if (!operand.getStride(loop))
        require(operand.strides[loop], width);
  }
  OpFoldResult size = loops.getLoops()[along].size;
  if (!isTail && !getConstantIntValue(size))
    require(size, lanes);
  findVarying(/*isChained=*/false);
  for (auto load : op.getBlock()->getOps<memref::LoadOp>())
    if (int64_t width = getRowWidth(load, lanes); width > 1)
      requireStart(load.getMemRef(), b.getIndexAttr(0), width);
  return found;
}

//===----------------------------------------------------------------------===//
// Loads and stores
//===----------------------------------------------------------------------===//

Value StridedBody::getIndex(OpFoldResult value) {
  return getValueOrCreateConstantIndexOp(b, loc, value);
}

Value StridedBody::getPointer(const StridedOperand &operand) {
  return getGlobalPointer(b, loc, operand.operand->get());
}

Value StridedBody::getOffset(const StridedOperand &operand,
                             ArrayRef<Value> ivs) {
  Value offset = getIndex(operand.offset);
  for (auto [loop, iv] : llvm::enumerate(ivs)) {
    if (!iv || operand.isSame(loop))
      continue;
    Value part = iv;
    if (operand.getStride(loop) != 1)
      part = arith::MulIOp::create(b, loc, iv, getIndex(operand.strides[loop]));
    offset = arith::AddIOp::create(b, loc, offset, part);
  }
  return offset;
}

Value StridedBody::getDimIndex(unsigned dim, ArrayRef<Value> ivs,
                               int64_t lane) {
  std::optional<unsigned> loop = loops.findLoop(dim);
  Value index = loop ? ivs[*loop] : Value();
  if (!index)
    return getIndex(b.getIndexAttr(0));
  if (lane == 0 || loop != along)
    return index;
  return arith::AddIOp::create(b, loc, index, getIndex(b.getIndexAttr(lane)));
}

SmallVector<Value> StridedBody::loadFrom(Value pointer, Value offset,
                                         Value stride, Type type, int64_t lanes,
                                         int64_t width) {
  IntegerType word = getWord(type);
  int64_t bytes = word.getWidth() / 8;
  SmallVector<Value> values;
  for (int64_t lane = 0; lane < lanes; lane += width) {
    Value place = offset;
    if (lane > 0) {
      Value distance = getIndex(b.getIndexAttr(lane));
      if (stride)
        distance = arith::MulIOp::create(b, loc, distance, stride);
      place = arith::AddIOp::create(b, loc, offset, distance);
    }
    Value address = getAddress(b, loc, pointer, place, word);
    if (width == 1) {
      values.push_back(fromWord(
          b, loc, LLVM::LoadOp::create(b, loc, word, address, bytes), type));
      continue;
    }
    Value vector = LLVM::LoadOp::create(b, loc, VectorType::get(width, word),
                                        address, width * bytes);
    for (int64_t element = 0; element < width; ++element)
      values.push_back(
          fromWord(b, loc, extractElement(b, loc, vector, element), type));
  }
  return values;
}

Value StridedBody::loadOpaque(OpOperand *operand, ArrayRef<Value> ivs,
                              int64_t lane) {
  AffineMap map = op.getMatchingIndexingMap(operand);
  SmallVector<OpFoldResult> dims;
  for (unsigned dim = 0; dim < map.getNumDims(); ++dim)
    dims.push_back(map.isFunctionOfDim(dim)
                       ? OpFoldResult(getDimIndex(dim, ivs, lane))
                       : OpFoldResult(b.getIndexAttr(0)));
  SmallVector<Value> indices;
  for (AffineExpr expr : map.getResults())
    indices.push_back(getIndex(affine::makeComposedFoldedAffineApply(
        b, loc, AffineMap::get(map.getNumDims(), 0, expr), dims)));
  return memref::LoadOp::create(b, loc, operand->get(), indices);
}

SmallVector<Value> StridedBody::load(OpOperand *operand, ArrayRef<Value> ivs,
                                     int64_t lanes) {
  if (!isa<MemRefType>(operand->get().getType()))
    return SmallVector<Value>(lanes, operand->get());
  if (Value filled = getFilled(b, op, operand))
    return SmallVector<Value>(lanes, filled);
  const StridedOperand &strided = loops.getOperand(operand);
  SmallVector<Value> values;
  if (!strided.isStrided) {
    for (int64_t lane = 0; lane < lanes; ++lane)
      values.push_back(loadOpaque(operand, ivs, lane));
    return values;
  }
  Type type = getElementTypeOrSelf(operand->get());
  bool isSame = loops.getLoops().empty() || strided.isSame(along);
  Value stride = isSame || strided.getStride(along) == 1
                     ? Value()
                     : getIndex(strided.strides[along]);
  values = loadFrom(getPointer(strided), getOffset(strided, ivs), stride, type,
                    isSame ? 1 : lanes, getWidth(strided, lanes));
  values.resize(lanes, values.front());
  return values;
}

StridedBody::Lanes StridedBody::loadInputs(ArrayRef<Value> ivs, int64_t lanes,
                                           const Found &found) {
  Lanes values(lanes);
  for (OpOperand *input : op.getDpsInputOperands()) {
    SmallVector<Value> loaded = found.lookup(input);
    if (loaded.empty())
      loaded.resize(lanes);
    if (!found.contains(input) && op.payloadUsesValueFromOperand(input))
      loaded = load(input, ivs, lanes);
    for (auto [lane, value] : llvm::zip_equal(values, loaded))
      lane.push_back(value);
  }
  return values;
}

StridedBody::Lanes StridedBody::loadInits(ArrayRef<Value> ivs, int64_t lanes) {
  Lanes values(lanes);
  for (OpOperand &init : op.getDpsInitsMutable()) {
    SmallVector<Value> loaded(lanes);
    if (op.payloadUsesValueFromOperand(&init))
      loaded = load(&init, ivs, lanes);
    for (auto [lane, value] : llvm::zip_equal(values, loaded))
      lane.push_back(value);
  }
  return values;
}

void StridedBody::storeInits(ArrayRef<Value> ivs, const Lanes &values) {
  int64_t lanes = values.size();
  for (auto [index, init] : llvm::enumerate(op.getDpsInitsMutable())) {
    const StridedOperand &written = loops.getOperand(&init);
    IntegerType word = getWord(getElementTypeOrSelf(init.get()));
    int64_t width = getWidth(written, lanes), bytes = word.getWidth() / 8;
    Value pointer = getPointer(written), offset = getOffset(written, ivs);
    for (int64_t lane = 0; lane < lanes; lane += width) {
      Value stored = toWord(b, loc, values[lane][index]);
      if (width > 1) {
        Value vector =
            LLVM::PoisonOp::create(b, loc, VectorType::get(width, word));
        for (int64_t element = 0; element < width; ++element)
          vector = LLVM::InsertElementOp::create(
              b, loc, vector, toWord(b, loc, values[lane + element][index]),
              getLane(b, loc, element));
        stored = vector;
      }
      Value place = offset;
      if (lane > 0)
        place = arith::AddIOp::create(
            b, loc, offset,
            getIndex(multiply(b, loc, b.getIndexAttr(lane),
                              written.strides[along])));
      LLVM::StoreOp::create(b, loc, stored,
                            getAddress(b, loc, pointer, place, word),
                            width * bytes);
    }
  }
}

//===----------------------------------------------------------------------===//
// The body
//===----------------------------------------------------------------------===//

void StridedBody::findVarying(bool isChained) {
  varying.clear();
  Block *body = op.getBlock();
  for (OpOperand &operand : op->getOpOperands()) {
    bool isInit = op.isDpsInit(&operand);
    bool isMemRef = isa<MemRefType>(operand.get().getType());
    if ((isInit && isChained) ||
        (isMemRef && !loops.getOperand(&operand).isSame(along)))
      varying.insert(op.getMatchingBlockArgument(&operand));
  }
  for (Operation &inner : body->without_terminator()) {
    auto index = dyn_cast<linalg::IndexOp>(inner);
    bool isApart = inner.getNumRegions() > 0 ||
                   (index && loops.findLoop(index.getDim()) == along) ||
                   llvm::any_of(inner.getOperands(), [&](Value operand) {
                     return isVarying(operand);
                   });
    if (isApart)
      varying.insert(inner.getResults().begin(), inner.getResults().end());
  }
}

StridedBody::Lanes StridedBody::compute(ArrayRef<Value> ivs,
                                        const Lanes &inputs, const Lanes &inits,
                                        bool isChained) {
  Block *body = op.getBlock();
  int64_t lanes = inputs.size();
  findVarying(isChained);
  SmallVector<IRMapping> mappings(lanes);
  DenseMap<Operation *, SmallVector<Value>> rows;
  Lanes results;
  for (int64_t lane = 0; lane < lanes; ++lane) {
    IRMapping &mapping = mappings[lane];
    for (auto [input, value] :
         llvm::zip_equal(op.getDpsInputOperands(), inputs[lane]))
      if (value)
        mapping.map(op.getMatchingBlockArgument(input), value);
    ArrayRef<Value> before = isChained && lane > 0
                                 ? ArrayRef(results.back())
                                 : ArrayRef(inits[isChained ? 0 : lane]);
    for (auto [index, value] : llvm::enumerate(before))
      if (value)
        mapping.map(op.getMatchingBlockArgument(op.getDpsInitOperand(index)),
                    value);
    for (Operation &inner : body->without_terminator()) {
      if (auto index = dyn_cast<linalg::IndexOp>(inner)) {
        mapping.map(index.getResult(), getDimIndex(index.getDim(), ivs, lane));
        continue;
      }
      auto load = dyn_cast<memref::LoadOp>(inner);
      if (int64_t width = load ? getRowWidth(load, lanes) : 1; width > 1) {
        SmallVector<Value> &row = rows[load];
        if (lane % width == 0)
          row = loadRow(load, mapping, width);
        mapping.map(load.getResult(), row[lane % width]);
        continue;
      }
      // What lanes have together is computed once.
      if (lane > 0 && inner.getNumRegions() == 0 &&
          llvm::none_of(inner.getOperands(),
                        [&](Value operand) { return isVarying(operand); })) {
        for (Value result : inner.getResults())
          mapping.map(result, mappings[0].lookup(result));
        continue;
      }
      Operation *clone = b.clone(inner, mapping);
      // Indices of nested regions are the indices of this nest.
      OpBuilder::InsertionGuard guard(b);
      clone->walk([&](linalg::IndexOp index) {
        b.setInsertionPoint(index);
        b.replaceOp(index, getDimIndex(index.getDim(), ivs, lane));
      });
    }
    SmallVector<Value> yielded;
    for (Value value : body->getTerminator()->getOperands())
      yielded.push_back(mapping.lookupOrDefault(value));
    if (isChained && lane > 0)
      results.back() = yielded;
    else
      results.push_back(yielded);
  }
  return results;
}
