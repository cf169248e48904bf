//===- FusionLayouts.h - Where the values of a fusion lie -------*- C++ -*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FP8_ANALYSIS_FUSIONLAYOUTS_H
#define FP8_ANALYSIS_FUSIONLAYOUTS_H

#include "fp8/IR/FP8Ops.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"

namespace mlir::fp8 {

/// How the elements of a tensor belong to those of a domain. An element of the
/// tensor stands for a block of the domain: what is `[1, *]` has one for each
/// row, what is `[1, 128]` one for every 128 columns of each row.
struct FusionLayout {
  /// For each dimension of the tensor that of the domain, in whose blocks it
  /// counts; -1 for one of extent 1.
  SmallVector<int64_t> dims;
  /// For each dimension of the domain the extent of a block: 1, n or
  /// ScaledType::kWhole.
  SmallVector<int64_t> block;

  bool operator==(const FusionLayout &other) const {
    return dims == other.dims && block == other.block;
  }
  /// Whether the tensor has an element for each of the domain, in any order.
  bool isFull() const;
  /// Whether it has a single element for the whole domain.
  bool isSingle() const;
  /// Whether its dimensions are in the order of the domain's.
  bool isOrdered() const;
};

/// Tensors with an element for each of the domain that one pass reads or writes
/// at most: what a kernel's registers have room for.
constexpr size_t kMaxFusionTensors = 10;

/// The layouts of the values that operations compute on one domain. Operations
/// are added in program order; values that none of them computes are inputs,
/// whose layout is up to who reads them.
class FusionLayouts {
public:
  explicit FusionLayouts(ArrayRef<int64_t> domain) : domain(domain) {}

  /// The domain that `op` would work on alone; empty if it works on none.
  static SmallVector<int64_t> getOwnDomain(Operation *op);

  /// That of the operation of a fusion's body that works on most.
  static SmallVector<int64_t> findDomain(Block &body);

  ArrayRef<int64_t> getDomain() const { return domain; }

  /// Says why if `op` is none of those that work on a domain, or works on
  /// another one.
  LogicalResult add(Operation *op, std::string &reason);

  /// The layout of what an added operation computes; a scaled value's is that
  /// of its codes. Null for an input.
  const FusionLayout *lookup(Value value) const;
  /// That of a tensor that an added operation reads.
  const FusionLayout &lookup(OpOperand &operand) const;
  /// For each loop of an added generic the dimension of the domain, and the
  /// extent of its blocks.
  ArrayRef<std::pair<int64_t, int64_t>> getLoops(linalg::LinalgOp op) const {
    return loops.at(op);
  }

private:
  LogicalResult addGeneric(linalg::LinalgOp op, std::string &reason);
  /// Tensors of which a generic reads rows by an index; their other dimensions
  /// count in nothing of the domain.
  LogicalResult addGathers(linalg::LinalgOp op,
                           ArrayRef<std::pair<int64_t, int64_t>> opLoops,
                           std::string &reason);
  LogicalResult addTranspose(linalg::TransposeOp op, std::string &reason);
  LogicalResult addAmax(AmaxOp op, std::string &reason);
  LogicalResult addScale(ComputeScaleOp op, std::string &reason);
  LogicalResult addHadamard(HadamardOp op, std::string &reason);
  LogicalResult addQuantize(QuantizeOp op, std::string &reason);
  LogicalResult addDequantize(DequantizeOp op, std::string &reason);
  LogicalResult addTranspose(TransposeOp op, std::string &reason);
  LogicalResult addAssemble(AssembleOp op, std::string &reason);
  LogicalResult addDisassemble(DisassembleOp op, std::string &reason);
  /// Reads `operand` so; fails if it lies in another way.
  LogicalResult read(OpOperand &operand, FusionLayout layout,
                     std::string &reason);
  /// Reads codes that are computed here, in any order, or are the domain's.
  LogicalResult readCodes(OpOperand &operand, std::string &reason);
  /// That of the factors of codes that lie as `codes`, or of what else there is
  /// for their blocks.
  static FusionLayout getFactors(ScaledType type, const FusionLayout &codes);
  /// What a pass over the domain knows before it has passed: reductions of
  /// whole rows and of blocks, or, as the last that it does, of whole columns
  /// and of all.
  static LogicalResult checkReduction(const FusionLayout &result, bool isAmax,
                                      std::string &reason);
  bool isDomain(ArrayRef<int64_t> shape) const;
  FusionLayout getFull() const;
  FusionLayout getSingle() const;
  FusionLayout getBlocks(ArrayRef<int64_t> block, int64_t rank) const;

  SmallVector<int64_t> domain;
  DenseMap<Value, FusionLayout> values;
  DenseMap<OpOperand *, FusionLayout> reads;
  DenseMap<Operation *, SmallVector<std::pair<int64_t, int64_t>>> loops;
};

/// The operation that a reduction of `op` to its only result is made of:
/// `arith.addf` or a maximum; null if there is another, or none.
Operation *getCombiner(linalg::LinalgOp op);

/// The operations of an elementwise body that compute where a tensor is read by
/// an index, and nothing else.
llvm::SmallPtrSet<Operation *, 8> getPlaces(Block &body);

/// Whether an argument of such a body says where, and nothing else.
bool isPlace(BlockArgument argument);

/// Whether kernels compute with `op` where a tensor is read.
bool isPlaceArithmetic(Operation *op);

/// Whether `op` measures or sums elements.
bool isReduction(Operation *op);

/// Whether what `op` computes of an element depends on the element's place in
/// the tensor: on random numbers that go by it, or on the 16 that are rotated
/// together.
bool isPositionDependent(Operation *op);

} // namespace mlir::fp8

#endif // FP8_ANALYSIS_FUSIONLAYOUTS_H
