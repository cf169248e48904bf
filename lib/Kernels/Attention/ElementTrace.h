//===- ElementTrace.h - What an element is computed from --------*- C++ -*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Programs say the same with transposes, reshapes and broadcasts of many kinds.
// An element of a tensor, followed through them, is an expression of elements
// of other tensors, whatever the way was.
//
//===----------------------------------------------------------------------===//

#ifndef FP8_LIB_KERNELS_ATTENTION_ELEMENTTRACE_H
#define FP8_LIB_KERNELS_ATTENTION_ELEMENTTRACE_H

#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SetVector.h"

#include <deque>
#include <map>

namespace mlir::fp8 {

/// An index along a dimension: numbers of digits, the most significant first.
/// None are 0, as in a dimension of one element.
using Digits = SmallVector<unsigned, 4>;
/// An index of each dimension of a tensor.
using Place = SmallVector<Digits, 4>;

/// Digits, each a variable below its extent. A reshape that cuts one makes it
/// several, which take its place wherever it stood.
class DigitTable {
public:
  /// The index of a loop of `op`, the same one whenever it is asked for.
  Digits getLoop(Operation *op, unsigned loop, int64_t extent);
  int64_t getExtent(unsigned digit) const { return digits[digit].extent; }
  /// The product of their extents; kDynamic if one is.
  int64_t getExtent(ArrayRef<unsigned> index) const;
  /// `index` with those that were cut replaced.
  Digits resolve(ArrayRef<unsigned> index) const;
  Place resolve(const Place &place) const;
  /// Indices of dimensions that were one; fails where that is not known.
  FailureOr<Place> split(ArrayRef<unsigned> index, ArrayRef<int64_t> extents);
  /// How many have been cut.
  unsigned getNumCut() const { return numCut; }

private:
  unsigned add(int64_t extent);

  struct Digit {
    int64_t extent;
    /// What it was cut into.
    Digits parts;
  };
  SmallVector<Digit> digits;
  std::map<std::pair<Operation *, unsigned>, Digits> loops;
  unsigned numCut = 0;
};

/// An element of a tensor, or a number that one is computed from.
struct Element {
  enum class Kind { Tensor, Constant, Index, Operation, Reduction };

  Kind kind;
  /// What the element is of, and where.
  Value tensor;
  Place place;
  /// A constant's value.
  TypedAttr constant;
  /// What an index counts.
  Digits index;
  /// The operation on numbers; a reduction's combines two of them.
  Operation *op = nullptr;
  /// Operands of `op`; what a reduction reduces, and what it starts from.
  SmallVector<Element *, 3> operands;
  /// What a tensor's element is, once somebody asked.
  Element *definition = nullptr;
  bool isTraced = false;

  Type getType() const;
};

/// Elements of the tensors that one is computed from. Only what is asked for is
/// followed, up to products, arguments, and what moves data in other ways.
class ElementTrace {
public:
  /// Reductions are along `keys`.
  ElementTrace(DigitTable &digits, Digits keys)
      : digits(digits), keys(std::move(keys)) {}

  /// The element of `tensor` at `place`.
  Element *get(Value tensor, Place place);
  /// What `element` is: an operation, a constant or an index, or a tensor's
  /// that is computed in another way.
  Element *look(Element *element);
  /// `element` before conversions between types of floats and of integers.
  Element *skipCasts(Element *element);
  /// Whether both are known to have the same value.
  bool isSame(Element *lhs, Element *rhs);
  /// A constant's value, looking through arithmetic on it.
  std::optional<double> getNumber(Element *element);
  /// Operations on tensors that were looked through.
  const llvm::SetVector<Operation *> &getOps() const { return ops; }
  DigitTable &getDigits() { return digits; }

private:
  Element *make(Element::Kind kind);
  Element *makeConstant(TypedAttr value);
  /// One step through what moves data; fails if `value` does something else.
  LogicalResult move(Value &value, Place &place);
  Element *define(Value tensor, const Place &place);
  Element *defineLinalg(linalg::LinalgOp op, unsigned result,
                        const Place &place);
  /// Indices of the loops of `op` for an element of a result.
  FailureOr<Place> getLoops(linalg::LinalgOp op, unsigned result,
                            const Place &place);
  /// Numbers of a body that are known, as they may be needed many times: null
  /// where it cannot be said.
  using Scalars = llvm::DenseMap<Value, Element *>;
  /// A number in the body of `op`.
  Element *getScalar(linalg::LinalgOp op, Value scalar, const Place &loops,
                     Scalars &known);
  Element *traceScalar(linalg::LinalgOp op, Value scalar, const Place &loops,
                       Scalars &known);
  Element *getInput(linalg::LinalgOp op, unsigned operand, const Place &loops);

  DigitTable &digits;
  Digits keys;
  std::deque<Element> elements;
  std::map<std::pair<const void *, Place>, Element *> tensors;
  /// What `isSame` has said of pairs.
  llvm::DenseMap<std::pair<Element *, Element *>, bool> same;
  llvm::SetVector<Operation *> ops;
};

} // namespace mlir::fp8

#endif // FP8_LIB_KERNELS_ATTENTION_ELEMENTTRACE_H
