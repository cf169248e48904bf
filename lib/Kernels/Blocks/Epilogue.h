//===- Epilogue.h - What becomes of the sums of a tile ----------*- C++ -*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FP8_LIB_KERNELS_BLOCKS_EPILOGUE_H
#define FP8_LIB_KERNELS_BLOCKS_EPILOGUE_H

#include "EpilogueRegion.h"

namespace mlir::fp8 {

/// A tensor read by the epilogue, or factors that do not change along K.
struct FragmentSource {
  Value pointer;
  /// Elements (i64) from one row of the result to the next.
  Value strideM;
  Type elementType;
  bool alongM, alongN;
};

/// Multiplies the accumulators of a fragment by their factors, inlines the
/// epilogue's region on them, and keeps the largest magnitude of what it
/// measures. Each tensor is read where the fragment needs it: once for a tile,
/// a row or a column where it is repeated along the rest. Indices beyond the
/// result are clamped, for what is computed there is never stored.
class Epilogue {
public:
  /// `vectorLoads` promises that neighbours along N can be loaded together.
  Epilogue(KernelBuilder &b, EpilogueRegion::Shape shape, FragmentLayout layout,
           bool vectorLoads);

  /// The extents of the current tile's result.
  void setExtents(Value m, Value n);
  /// The sources of the current tile: two factors, null where the sum has them
  /// already, and the operands of the epilogue.
  void setFactors(std::optional<FragmentSource> a,
                  std::optional<FragmentSource> b);
  void addOperand(FragmentSource source) { operands.emplace_back(source); }
  void setCaptures(ValueRange values);
  /// Loads what all rows of a tile share, whose first column of the thread's is
  /// `col`: before the sums are waited for, so that it is there with them. Only
  /// narrow types, for it stays in registers.
  void loadColumns(Value col);
  /// Has the factor and operands of a row and those of a column (i32) brought
  /// to where they are loaded from later; others, of each element, are not.
  void prefetch(Value row, Value col);
  void beginSubtile(Fragment fragment);
  /// After all of its results have been evaluated.
  void endSubtile();

  /// Says that the accumulators are of two products: what becomes of the first
  /// one, with so many operands at the front of all, is at `position` among
  /// those of the second one's region.
  void setFirst(EpilogueRegion::Shape shape, size_t numOperands,
                size_t position);
  /// After `setFactors`, what the first product has in place of `b`.
  void setFirstFactor(std::optional<FragmentSource> b);

  /// The packed results of pair `pair` of the layout; `ofFirst` are the first
  /// product's accumulators, if there is one.
  Value evaluate(int64_t pair, Pair accumulators, Pair ofFirst);
  const FragmentLayout &getLayout() const { return layout; }

  /// The thread's largest magnitude, an f32 that starts as 0.
  void resetAmax();
  /// Combines the warp's magnitudes into `pointer`.
  void storeAmax(Value pointer, Value lane);

private:
  struct Loaded {
    explicit Loaded(FragmentSource source) : source(source) {}

    FragmentSource source;
    llvm::DenseMap<std::pair<int64_t, int64_t>, Pair> cache;
    bool isWholeTile = false;
  };
  /// Whether the tensor has that column of the fragment.
  Value isInside(int64_t col, int64_t e);
  Pair load(Loaded &loaded, FragmentLayout::Place place);
  /// Pairs of neighbouring columns as integers, for `loadColumns`.
  SmallVector<Value> loadPairs(const FragmentSource &source, Value col,
                               ArrayRef<int64_t> offsets);
  SmallVector<Value> loadClamped(const FragmentSource &source, Value col,
                                 ArrayRef<int64_t> offsets);
  /// The two elements in an integer.
  Pair split(Value both, Type element);
  /// Times factors, null for none.
  Pair scale(Pair accumulators, std::optional<Loaded> &ofB,
             FragmentLayout::Place place);
  void measure(FragmentLayout::Place place, Pair values);

  KernelBuilder &b;
  EpilogueRegion region;
  bool isMeasured;
  FragmentLayout layout;
  Value m, n;
  bool vectorLoads;
  Fragment fragment;
  struct First {
    EpilogueRegion region;
    size_t numOperands, position;
    std::optional<Loaded> factorB;
  };
  std::optional<First> first;
  std::optional<Loaded> factorA, factorB;
  SmallVector<Loaded> operands;
  /// The largest magnitudes of the subtile in each of the thread's rows,
  /// whether or not these are in the result; null before the first.
  SmallVector<Value> rowAmax;
  /// A slot that LLVM turns into a register.
  Value amaxSlot;
};

} // namespace mlir::fp8

#endif // FP8_LIB_KERNELS_BLOCKS_EPILOGUE_H
