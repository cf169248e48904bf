//===- ElementTrace.cpp - What an element is computed from ----------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ElementTrace.h"
#include "fp8/Transforms/CanonicalGemm.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace mlir::fp8;

//===----------------------------------------------------------------------===//
// Digits
//===----------------------------------------------------------------------===//

unsigned DigitTable::add(int64_t extent) {
  digits.push_back({extent, {}});
  return digits.size() - 1;
}

Digits DigitTable::getLoop(Operation *op, unsigned loop, int64_t extent) {
  if (extent == 1)
    return {};
  auto [it, isNew] = loops.try_emplace({op, loop});
  if (isNew)
    it->second = {add(extent)};
  return resolve(it->second);
}

int64_t DigitTable::getExtent(ArrayRef<unsigned> index) const {
  int64_t product = 1;
  for (unsigned digit : index) {
    if (ShapedType::isDynamic(digits[digit].extent))
      return ShapedType::kDynamic;
    product *= digits[digit].extent;
  }
  return product;
}

Digits DigitTable::resolve(ArrayRef<unsigned> index) const {
  Digits resolved;
  for (unsigned digit : index) {
    if (digits[digit].parts.empty())
      resolved.push_back(digit);
    else
      llvm::append_range(resolved, resolve(digits[digit].parts));
  }
  return resolved;
}

Place DigitTable::resolve(const Place &place) const {
  Place resolved;
  for (const Digits &index : place)
    resolved.push_back(resolve(index));
  return resolved;
}

FailureOr<Place> DigitTable::split(ArrayRef<unsigned> index,
                                   ArrayRef<int64_t> extents) {
  Digits left = resolve(index);
  Place place(extents.size());
  // What is known begins at the end; one extent that is not known has the rest.
  for (size_t dim = extents.size(); dim-- > 0;) {
    bool isRest = llvm::all_of(extents.take_front(dim),
                               [](int64_t extent) { return extent == 1; });
    if (isRest) {
      place[dim] = std::move(left);
      return place;
    }
    int64_t wanted = extents[dim];
    if (ShapedType::isDynamic(wanted))
      return failure();
    while (wanted > 1) {
      if (left.empty())
        return failure();
      unsigned digit = left.pop_back_val();
      int64_t extent = digits[digit].extent;
      if (extent == 0)
        return failure();
      bool isWhole = !ShapedType::isDynamic(extent) && wanted % extent == 0;
      if (isWhole) {
        place[dim].insert(place[dim].begin(), digit);
        wanted /= extent;
        continue;
      }
      if (!ShapedType::isDynamic(extent) && extent % wanted != 0)
        return failure();
      unsigned high =
          add(ShapedType::isDynamic(extent) ? extent : extent / wanted);
      unsigned low = add(wanted);
      digits[digit].parts = {high, low};
      ++numCut;
      left.push_back(high);
      place[dim].insert(place[dim].begin(), low);
      wanted = 1;
    }
  }
  return place;
}

//===----------------------------------------------------------------------===//
// Elements
//===----------------------------------------------------------------------===//

Type Element::getType() const {
  if (kind == Kind::Constant)
    return constant.getType();
  if (kind == Kind::Tensor)
    return getElementTypeOrSelf(tensor.getType());
  return op ? getElementTypeOrSelf(op->getResult(0).getType()) : Type();
}

Element *ElementTrace::make(Element::Kind kind) {
  elements.emplace_back();
  elements.back().kind = kind;
  return &elements.back();
}

Element *ElementTrace::makeConstant(TypedAttr value) {
  Element *element = make(Element::Kind::Constant);
  element->constant = value;
  return element;
}

/// The one value that a constant has everywhere; null if it has several.
static TypedAttr getSplat(Value value) {
  Attribute constant;
  if (!matchPattern(value, m_Constant(&constant)))
    return {};
  if (auto elements = dyn_cast<DenseElementsAttr>(constant))
    return elements.isSplat()
               ? dyn_cast<TypedAttr>(elements.getSplatValue<Attribute>())
               : TypedAttr();
  return dyn_cast<TypedAttr>(constant);
}

Element *ElementTrace::get(Value tensor, Place place) {
  auto type = cast<RankedTensorType>(tensor.getType());
  for (auto [index, extent] : llvm::zip_equal(place, type.getShape()))
    if (extent == 1)
      index.clear();
  for (;;) {
    place = digits.resolve(place);
    Value before = tensor;
    if (failed(move(tensor, place)))
      break;
    ops.insert(before.getDefiningOp());
  }
  Element *&element = tensors[{tensor.getAsOpaquePointer(), place}];
  if (!element) {
    element = make(Element::Kind::Tensor);
    element->tensor = tensor;
    element->place = place;
  }
  return element;
}

LogicalResult ElementTrace::move(Value &value, Place &place) {
  Operation *op = value.getDefiningOp();
  if (auto cast = dyn_cast_or_null<tensor::CastOp>(op)) {
    if (!isa<RankedTensorType>(cast.getSource().getType()))
      return failure();
    value = cast.getSource();
    return success();
  }
  if (auto collapse = dyn_cast_or_null<tensor::CollapseShapeOp>(op)) {
    Place source;
    for (auto [index, group] :
         llvm::zip_equal(place, collapse.getReassociationIndices())) {
      FailureOr<Place> parts = digits.split(
          index,
          collapse.getSrcType().getShape().slice(group.front(), group.size()));
      if (failed(parts))
        return failure();
      llvm::append_range(source, *parts);
    }
    value = collapse.getSrc();
    place = std::move(source);
    return success();
  }
  if (auto expand = dyn_cast_or_null<tensor::ExpandShapeOp>(op)) {
    Place source;
    for (const ReassociationIndices &group : expand.getReassociationIndices()) {
      Digits index;
      for (int64_t dim : group)
        llvm::append_range(index, place[dim]);
      source.push_back(std::move(index));
    }
    value = expand.getSrc();
    place = std::move(source);
    return success();
  }
  // Transposes and broadcasts, and generics that only yield.
  auto linalgOp = dyn_cast_or_null<linalg::LinalgOp>(op);
  if (!linalgOp || linalgOp.getNumReductionLoops() != 0 ||
      linalgOp->getNumResults() != 1 || !linalgOp.hasPureTensorSemantics())
    return failure();
  auto input = dyn_cast<BlockArgument>(
      linalgOp.getBlock()->getTerminator()->getOperand(0));
  if (!input || input.getOwner() != linalgOp.getBlock() ||
      input.getArgNumber() >= linalgOp.getNumDpsInputs() ||
      !isa<RankedTensorType>(
          linalgOp->getOperand(input.getArgNumber()).getType()))
    return failure();
  FailureOr<Place> loops = getLoops(linalgOp, 0, place);
  if (failed(loops))
    return failure();
  Element *source = getInput(linalgOp, input.getArgNumber(), *loops);
  if (!source)
    return failure();
  value = source->tensor;
  place = source->place;
  return success();
}

FailureOr<Place> ElementTrace::getLoops(linalg::LinalgOp op, unsigned result,
                                        const Place &place) {
  AffineMap map = op.getIndexingMapMatchingResult(op->getResult(result));
  SmallVector<int64_t> ranges = op.getStaticLoopRanges();
  SmallVector<std::optional<Digits>> loops(op.getNumLoops());
  for (auto [expr, index] : llvm::zip_equal(map.getResults(), place)) {
    if (auto dim = dyn_cast<AffineDimExpr>(expr))
      loops[dim.getPosition()] = index;
    else if (!isa<AffineConstantExpr>(expr))
      return failure();
  }
  Place known;
  for (auto [loop, kind] : llvm::enumerate(op.getIteratorTypesArray())) {
    if (kind == utils::IteratorType::reduction) {
      // The other extent may be known elsewhere only.
      int64_t extent = digits.getExtent(keys);
      if (loops[loop] || ranges[loop] != extent)
        return failure();
      loops[loop] = keys;
    }
    if (!loops[loop] && ranges[loop] != 1)
      return failure();
    known.push_back(loops[loop] ? digits.resolve(*loops[loop]) : Digits());
  }
  return known;
}

Element *ElementTrace::getInput(linalg::LinalgOp op, unsigned operand,
                                const Place &loops) {
  OpOperand &input = op->getOpOperand(operand);
  if (!isa<RankedTensorType>(input.get().getType())) {
    TypedAttr constant = getSplat(input.get());
    return constant ? makeConstant(constant) : nullptr;
  }
  Place place;
  auto type = cast<RankedTensorType>(input.get().getType());
  AffineMap map = op.getMatchingIndexingMap(&input);
  for (auto [expr, extent] :
       llvm::zip_equal(map.getResults(), type.getShape())) {
    auto dim = dyn_cast<AffineDimExpr>(expr);
    auto constant = dyn_cast<AffineConstantExpr>(expr);
    if (!dim && !(constant && constant.getValue() == 0 && extent == 1))
      return nullptr;
    place.push_back(dim ? loops[dim.getPosition()] : Digits());
  }
  return get(input.get(), std::move(place));
}

Element *ElementTrace::getScalar(linalg::LinalgOp op, Value scalar,
                                 const Place &loops, Scalars &known) {
  if (auto found = known.find(scalar); found != known.end())
    return found->second;
  Element *element = traceScalar(op, scalar, loops, known);
  known[scalar] = element;
  return element;
}

Element *ElementTrace::traceScalar(linalg::LinalgOp op, Value scalar,
                                   const Place &loops, Scalars &known) {
  if (auto argument = dyn_cast<BlockArgument>(scalar)) {
    if (argument.getOwner() != op.getBlock() ||
        argument.getArgNumber() >= op.getNumDpsInputs())
      return nullptr;
    return getInput(op, argument.getArgNumber(), loops);
  }
  if (TypedAttr constant = getSplat(scalar))
    return makeConstant(constant);
  Operation *definition = scalar.getDefiningOp();
  if (auto index = dyn_cast<linalg::IndexOp>(definition)) {
    Element *element = make(Element::Kind::Index);
    element->index = loops[index.getDim()];
    element->op = index;
    return element;
  }
  if (definition->getNumResults() != 1 || definition->getNumRegions() != 0 ||
      !isPure(definition))
    return nullptr;
  SmallVector<Element *, 3> operands;
  for (Value operand : definition->getOperands()) {
    Element *traced = isa<TensorType>(operand.getType())
                          ? nullptr
                          : getScalar(op, operand, loops, known);
    if (!traced)
      return nullptr;
    operands.push_back(traced);
  }
  Element *element = make(Element::Kind::Operation);
  element->op = definition;
  element->operands = std::move(operands);
  return element;
}

Element *ElementTrace::defineLinalg(linalg::LinalgOp op, unsigned result,
                                    const Place &place) {
  if (!op.hasPureTensorSemantics() || isContraction(op))
    return nullptr;
  FailureOr<Place> loops = getLoops(op, result, place);
  if (failed(loops))
    return nullptr;
  Value yielded = op.getBlock()->getTerminator()->getOperand(result);
  Scalars known;
  if (op.getNumReductionLoops() == 0)
    return getScalar(op, yielded, *loops, known);
  Operation *combiner = yielded.getDefiningOp();
  if (!combiner || combiner->getNumOperands() != 2 ||
      op.getNumReductionLoops() != 1)
    return nullptr;
  Value sum = op.getRegionOutputArgs()[result];
  bool isSecond = combiner->getOperand(1) == sum;
  if (combiner->getOperand(!isSecond) == sum ||
      combiner->getOperand(isSecond) != sum)
    return nullptr;
  Element *reduced =
      getScalar(op, combiner->getOperand(!isSecond), *loops, known);
  Place initial = place;
  Element *start = get(op.getDpsInitOperand(result)->get(), initial);
  if (!reduced)
    return nullptr;
  Element *element = make(Element::Kind::Reduction);
  element->op = combiner;
  element->operands = {reduced, start};
  return element;
}

/// Whether `value` is a constant of 0, 1, 2 and so on, in its type with a sign:
/// behind 127 comes -128 in 8 bits.
static bool isCounting(Value value) {
  DenseIntElementsAttr numbers;
  if (!matchPattern(value, m_Constant(&numbers)) ||
      numbers.getType().getRank() != 1)
    return false;
  return llvm::all_of(llvm::enumerate(numbers.getValues<APInt>()),
                      [](auto number) {
                        return number.value().isNonNegative() &&
                               number.value() == number.index();
                      });
}

Element *ElementTrace::define(Value tensor, const Place &place) {
  if (TypedAttr constant = getSplat(tensor))
    return makeConstant(constant);
  if (isCounting(tensor)) {
    Element *element = make(Element::Kind::Index);
    element->index = place[0];
    return element;
  }
  Operation *op = tensor.getDefiningOp();
  if (!op)
    return nullptr;
  if (auto softmax = dyn_cast<linalg::SoftmaxOp>(op)) {
    if (place[softmax.getDimension()] != digits.resolve(keys))
      return nullptr;
    Element *element = make(Element::Kind::Operation);
    element->op = op;
    element->operands = {get(softmax.getInput(), place)};
    return element;
  }
  if (auto linalgOp = dyn_cast<linalg::LinalgOp>(op))
    return defineLinalg(linalgOp, cast<OpResult>(tensor).getResultNumber(),
                        place);
  if (!OpTrait::hasElementwiseMappableTraits(op) || op->getNumResults() != 1)
    return nullptr;
  Element *element = make(Element::Kind::Operation);
  element->op = op;
  for (Value operand : op->getOperands()) {
    if (!isa<RankedTensorType>(operand.getType()))
      return nullptr;
    element->operands.push_back(get(operand, place));
  }
  return element;
}

Element *ElementTrace::look(Element *element) {
  while (element->kind == Element::Kind::Tensor) {
    if (!element->isTraced) {
      element->isTraced = true;
      element->definition = define(element->tensor, element->place);
      if (element->definition && element->tensor.getDefiningOp())
        ops.insert(element->tensor.getDefiningOp());
    }
    if (!element->definition)
      break;
    element = element->definition;
  }
  return element;
}

Element *ElementTrace::skipCasts(Element *element) {
  for (;;) {
    Element *definition = look(element);
    if (definition->kind != Element::Kind::Operation ||
        !isa<arith::ExtFOp, arith::TruncFOp, arith::ExtSIOp, arith::ExtUIOp,
             arith::TruncIOp, arith::IndexCastOp>(definition->op) ||
        (isa<arith::TruncIOp>(definition->op) &&
         definition->getType().isInteger(1)))
      return definition;
    element = definition->operands.front();
  }
}

bool ElementTrace::isSame(Element *lhs, Element *rhs) {
  lhs = skipCasts(lhs);
  rhs = skipCasts(rhs);
  if (lhs == rhs)
    return true;
  if (lhs->kind != rhs->kind)
    return false;
  if (lhs->kind == Element::Kind::Constant)
    return getNumber(lhs) && getNumber(lhs) == getNumber(rhs);
  if (lhs->kind == Element::Kind::Index)
    return lhs->index == rhs->index;
  if (lhs->kind == Element::Kind::Tensor)
    return false;
  if (lhs->op->getName() != rhs->op->getName() ||
      lhs->op->getAttrDictionary() != rhs->op->getAttrDictionary() ||
      lhs->operands.size() != rhs->operands.size())
    return false;
  // Operands may be shared, so that there are far more paths than pairs.
  auto [known, isNew] = same.try_emplace({lhs, rhs}, false);
  if (!isNew)
    return known->second;
  bool isEqual = llvm::all_of(
      llvm::zip_equal(lhs->operands, rhs->operands),
      [&](auto pair) { return isSame(std::get<0>(pair), std::get<1>(pair)); });
  same[{lhs, rhs}] = isEqual;
  return isEqual;
}

std::optional<double> ElementTrace::getNumber(Element *element) {
  element = skipCasts(element);
  if (element->kind != Element::Kind::Constant)
    return std::nullopt;
  if (auto number = dyn_cast<FloatAttr>(element->constant))
    return number.getValueAsDouble();
  if (auto number = dyn_cast<IntegerAttr>(element->constant)) {
    const APInt &value = number.getValue();
    return value.getBitWidth() == 1 ? double(value.getZExtValue())
                                    : double(value.getSExtValue());
  }
  return std::nullopt;
}
