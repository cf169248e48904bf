//===- FusionValues.h - Values of a fusion in registers ---------*- C++ -*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FP8_LIB_KERNELS_FUSION_FUSIONVALUES_H
#define FP8_LIB_KERNELS_FUSION_FUSIONVALUES_H

#include "FusionTile.h"
#include "mlir/IR/IRMapping.h"

#include <map>

namespace mlir::fp8 {

/// Computes the values of a fusion's body where they are asked for, each place
/// once. A float in registers is an f32 that has the value, whatever the type;
/// codes are packed, four to a word.
class FusionValues {
public:
  FusionValues(KernelBuilder &b, const FusionSpec &spec,
               FusionConfigAttr config, FusionTile &tile,
               ArrayRef<FusionArgument> inputs, ValueRange captures,
               Value scratch);

  /// Loads the inputs that are read element by element, rows of some by their
  /// index. An index that is none stops the kernel, as it does a program on a
  /// CPU. Of more rows than a thread's registers hold (`getFusionRowsAhead`)
  /// only the first ones: `loadRow` loads the next one.
  void loadInputs();
  void loadRow();
  /// The elements of a value at a place: those of the 8 columns, or one that
  /// they have in common.
  SmallVector<Value> get(Value value, int64_t row, int64_t chunk);
  /// A chunk of a full value as it is stored: words of its type.
  SmallVector<Value> getWords(Value value, int64_t row, int64_t chunk);
  /// Adds a place to the amax of the whole tensor.
  void measure(AmaxOp op, int64_t row, int64_t chunk);
  /// The amax of what was measured in this thread: its bits, i32.
  Value getMeasured(AmaxOp op);

  FusionBlock getBlock(Value value) const;
  /// Whether lanes of a warp reduce each row of this operation for itself, as
  /// `reduceRow` does it for one row.
  bool isOfLanes(Operation *op) const;
  void reduceRow(Operation *op, int64_t row);
  /// Whether loads of some rows wait until others were computed.
  bool loadsInTurn() const { return rowsAhead < config.getRows(); }

  /// `bytes` of the shared memory that reductions exchange values through.
  Value allocate(int64_t bytes);
  /// Shared memory that reductions of the spec use, in bytes.
  static int64_t getScratchBytes(const FusionSpec &spec,
                                 FusionConfigAttr config);

private:
  bool mayBeInPlace(const FusionArgument &input) const;
  SmallVector<Value> loadChunk(const FusionArgument &input, int64_t row,
                               int64_t chunk);
  SmallVector<Value> evaluate(Value value, int64_t row, int64_t chunk);
  SmallVector<Value> evaluateInput(BlockArgument argument, int64_t row,
                                   int64_t chunk);
  SmallVector<Value> evaluateGeneric(linalg::GenericOp op, unsigned result,
                                     int64_t row, int64_t chunk);
  SmallVector<Value> evaluateScales(ComputeScaleOp op, unsigned result,
                                    int64_t row, int64_t chunk);
  SmallVector<Value> evaluateCodes(QuantizeOp op, int64_t row, int64_t chunk);
  SmallVector<Value> getScaled(QuantizeOp op, int64_t row, int64_t chunk);
  SmallVector<Value> evaluateRandomCodes(QuantizeOp op, int64_t row,
                                         int64_t chunk);
  SmallVector<Value> drawApart(Value inside, int64_t results,
                               KernelBuilder::Branch build);
  void encodeColumns(QuantizeOp op, ArrayRef<Value> seed, int64_t row,
                     int64_t chunk);
  /// The words of a seed, an input.
  SmallVector<Value> loadSeed(Value seed);
  SmallVector<Value> evaluateNumbers(DequantizeOp op, int64_t row,
                                     int64_t chunk);
  /// The factors of codes at a place, f32: one, or one for each column.
  SmallVector<Value> getFactors(Value codes, int64_t row, int64_t chunk);
  IRMapping mapInputs(linalg::GenericOp op, int64_t row, int64_t chunk,
                      int64_t e);
  void loadGathered();
  /// Where a generic reads an input in one of a thread's rows, i64.
  Value getPlace(linalg::GenericOp op, Value place, int64_t row);
  /// A value of an elementwise body, from those that are mapped.
  Value inlineValue(Value value, IRMapping &mapping);
  Value castBits(Value value, Type type);
  /// The f32 that `value`, of a narrower type, is the rounding of.
  Value inlineUnrounded(Value value, IRMapping &mapping);
  Value computeIn32(Operation *op, const IRMapping &mapping);
  Value widen(Value stored, Type type);
  Value round(Value value, Type type);
  SmallVector<Value> pack(ArrayRef<Value> elements, Type type);
  SmallVector<Value> unpack(ArrayRef<Value> words, Type type);

  //===--- Rotations ------------------------------------------------------===//

  SmallVector<Value> evaluateRotation(HadamardOp op, int64_t row,
                                      int64_t chunk);
  SmallVector<Value> getRotated(HadamardOp op, int64_t row, int64_t chunk);
  void rotate(HadamardOp op, MutableArrayRef<Value> values, Value number,
              int64_t distance);
  void rotateRows(HadamardOp op, int64_t chunk);

  //===--- Reductions -----------------------------------------------------===//

  /// What two terms of a reduction become: a sum, a maximum of floats, of
  /// magnitudes, or of their bits, of which two of 16 bits may lie in a word.
  struct Combiner {
    enum Kind { Sum, Maximum, MaxNum, Magnitude, Bits, Words } kind;
    /// The type of the words' elements.
    Type element;
    bool propagatesNaN = false;
  };
  void reduce(Operation *op);
  Value finish(Operation *op, const Combiner &combiner, Value slot);
  Combiner getCombinerOf(Operation *op);
  Value combine(const Combiner &combiner, Value lhs, Value rhs);
  Value getIdentity(const Combiner &combiner);
  /// The terms of a place, what is outside replaced.
  SmallVector<Value> getTerms(Operation *op, const Combiner &combiner,
                              int64_t row, int64_t chunk);
  /// Whether an amax is taken on words as they are loaded or rounded.
  bool measuresWords(AmaxOp op) const;
  SmallVector<Value> reduceWords(AmaxOp op, const FusionBlock &block);
  /// The magnitudes in a word, as the bits of f32.
  std::array<Value, 2> splitWord(Value word, Type element);
  /// What a reduction starts with.
  Value getInitial(linalg::GenericOp op);
  Value shuffle(Value value, int64_t distance);
  void reduceLanes(const Combiner &combiner, SmallVectorImpl<Value> &slots,
                   const FusionBlock &block);
  void reduceWarpsAcross(const Combiner &combiner,
                         SmallVectorImpl<Value> &slots,
                         const FusionBlock &block);
  void reduceCluster(const Combiner &combiner, SmallVectorImpl<Value> &slots);
  void reduceWarpsDown(const Combiner &combiner, SmallVectorImpl<Value> &slots,
                       const FusionBlock &block);

  //===--- Scales ---------------------------------------------------------===//

  /// The tensor's scale and its inverse, where there are two levels of factors.
  std::pair<Value, Value> buildTensorScale(ComputeScaleOp op);
  /// A scale and its inverse from an amax; an inverse of 8 bits as i32.
  std::pair<Value, Value> buildScale(ComputeScaleOp op, Value amax);
  void shareRowScales(ComputeScaleOp op, const FusionBlock &block,
                      int64_t chunk);
  void shareColumnScales(ComputeScaleOp op, const FusionBlock &block,
                         int64_t chunk);
  void setScales(ComputeScaleOp op, int64_t row, int64_t chunk,
                 SmallVector<Value> scales, SmallVector<Value> inverses);

  KernelBuilder &b;
  const FusionSpec &spec;
  FusionConfigAttr config;
  FusionTile &tile;
  llvm::DenseMap<Value, const FusionArgument *> inputs;
  llvm::DenseMap<Value, Value> captures;
  std::map<std::tuple<void *, int64_t, int64_t>, SmallVector<Value>> elements,
      words;
  llvm::DenseMap<Operation *, Value> measured;
  /// By the tensor's amax and the format of its codes.
  llvm::DenseMap<std::pair<Value, Type>, std::pair<Value, Value>> tensorScales;
  Value scratch;
  int64_t scratchUsed = 0;
  /// Rows whose loads are under way before the first is waited for, and those
  /// that were loaded so far.
  int64_t rowsAhead, rowsLoaded = 0;
  /// Whether all blocks of the cluster are known to have begun.
  bool hasCluster = false;
};

} // namespace mlir::fp8

#endif // FP8_LIB_KERNELS_FUSION_FUSIONVALUES_H
