//===- AccumulateMicroscaled.cpp - Sums with a factor for each 32 ---------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// An instruction multiplies 32 of K, which share a factor: its product goes to
// accumulators of its own, and is then added to f32 sums, times its factors.
// All four of a stage are under way at once where there are registers for them;
// else the tensor core fills one set of accumulators while the other is added.
//
// A stage has a word of factors for each row and column, a byte for each
// instruction. Each thread of a warpgroup makes four bf16 of one word, in a
// buffer of shared memory, while products are under way: columns would
// otherwise be converted by each warp again, by more instructions than the sums
// take. As f32 they would be twice the bytes, and reading them took longer than
// the sums. There are two buffers, and a barrier for each stage: who is past it
// has read what was in the other one.
//
//===----------------------------------------------------------------------===//

#include "Accumulate.h"

using namespace mlir;
using namespace mlir::fp8;
using namespace mlir::fp8::sm90;

namespace {
/// The factors of a stage: as they are copied, and as bf16.
class FactorBuffers {
public:
  FactorBuffers(KernelBuilder &b, Value shared, const MatmulLayout &layout,
                int64_t cols, Value thread, Value slice, Value group);

  /// Converts those of the stage. Nobody may read that buffer any more.
  void fill(Value stage, Value buffer);
  /// Until all threads of the warpgroup are here.
  void synchronize() { b.namedBarrier(b.add(group, 1), 128); }
  /// The factors of all instructions for rows 16 w + l / 4 and + 8, and for the
  /// thread's columns, two of each group of 8.
  void load(Value buffer);
  /// Those of one instruction, in f32.
  std::array<Value, 2> getRows(int64_t step);
  SmallVector<Value> getCols(int64_t step);

private:
  /// Four bf16 of a row or column.
  using Four = std::array<Value, 2>;
  Value getPlace(Value buffer) {
    return b.add(b.mul(buffer, kFactorBufferBytes / 2), begin);
  }
  void loadFours(Value place, int64_t count, SmallVectorImpl<Four> &fours);
  Value getF32(const Four &four, int64_t step);

  KernelBuilder &b;
  Value shared;
  int64_t cols;
  Value group;
  /// Where the warpgroup's buffers begin; the word of the thread, which is
  /// number `entry`, in the first stage, and bytes to the next one; what it
  /// reads.
  Value begin, word, stride, entry, row, pair;
  SmallVector<Four> ofRows, ofCols;
};
} // namespace

FactorBuffers::FactorBuffers(KernelBuilder &b, Value shared,
                             const MatmulLayout &layout, int64_t cols,
                             Value thread, Value slice, Value group)
    : b(b), shared(shared), cols(cols), group(group) {
  entry = b.bitAnd(thread, 127);
  begin = b.add(b.mul(group, kFactorBufferBytes), layout.offsetFactors);
  Value isRow = b.less(entry, b.i32(64));
  Value ofRow =
      b.add(b.mul(b.add(b.mul(slice, 64), entry), 4), layout.offsetRowScales);
  // Threads that have none convert the last one, too: without a branch.
  Value col = b.min(entry, b.i32(64 + cols - 1));
  Value ofCol = b.add(b.mul(col, 4), layout.offsetColScales - 64 * 4);
  word = b.select(isRow, ofRow, ofCol);
  stride = b.select(isRow, b.i32(layout.rowScaleStride),
                    b.i32(layout.colScaleStride));
  Value lane = b.bitAnd(thread, 31);
  row = b.add(b.mul(b.shiftRight(entry, 5), 16), b.shiftRight(lane, 2));
  pair = b.mul(b.bitAnd(lane, 3), 2);
}

/// The bf16 of two E8M0, bytes of a word that `selector` brings to both halves:
/// their exponents.
static Value convert(KernelBuilder &b, Value word, int64_t selector) {
  Type i32 = b.getI32Type();
  Value bytes = NVVM::PermuteOp::create(b, i32, word, b.i32(0), b.i32(selector),
                                        NVVM::PermuteMode::DEFAULT);
  // 2^-127 is subnormal: where all bits of a half are 0 it borrows the sign.
  Value bits = b.mul(bytes, 1 << 7);
  auto getSigns = [&](Value value) {
    return b.bitAnd(value, int64_t(0x80008000));
  };
  Value isZero =
      b.bitXor(getSigns(b.add(bits, 0x7fff7fff)), b.i32(int64_t(0x80008000)));
  // And what has all bits of an exponent is NaN.
  Value isNaN = getSigns(b.add(bits, 0x00800080));
  Value fraction = b.shiftRight(arith::OrIOp::create(b, isZero, isNaN), 9);
  return arith::OrIOp::create(b, bits, fraction);
}

void FactorBuffers::fill(Value stage, Value buffer) {
  Value place = b.add(b.mul(stage, stride), word);
  Value bytes = b.load(b.offset(shared, place), b.getI32Type());
  Value four = LLVM::UndefOp::create(b, VectorType::get({2}, b.getI32Type()));
  for (int64_t half = 0; half < 2; ++half)
    four = LLVM::InsertElementOp::create(
        b, four, convert(b, bytes, half == 0 ? 0x4140 : 0x4342), b.i32(half));
  b.store(four, b.offset(shared, b.add(getPlace(buffer), b.mul(entry, 8))));
}

void FactorBuffers::loadFours(Value place, int64_t count,
                              SmallVectorImpl<Four> &fours) {
  Value words = b.load(b.offset(shared, place),
                       VectorType::get({2 * count}, b.getI32Type()));
  for (int64_t i = 0; i < count; ++i)
    fours.push_back(
        {LLVM::ExtractElementOp::create(b, words, b.i32(2 * i)),
         LLVM::ExtractElementOp::create(b, words, b.i32(2 * i + 1))});
}

void FactorBuffers::load(Value buffer) {
  ofRows.clear();
  ofCols.clear();
  Value place = getPlace(buffer);
  for (int64_t i = 0; i < 2; ++i)
    loadFours(b.add(place, b.mul(b.add(row, 8 * i), 8)), 1, ofRows);
  for (int64_t col = 0; col < cols; col += 8)
    loadFours(b.add(place, b.mul(b.add(pair, 64 + col), 8)), 2, ofCols);
}

Value FactorBuffers::getF32(const Four &four, int64_t step) {
  Value half = four[step / 2];
  Value bits = step % 2 ? b.bitAnd(half, int64_t(0xffff0000))
                        : b.mul(half, int64_t(1) << 16);
  return LLVM::BitcastOp::create(b, b.getF32Type(), bits);
}

std::array<Value, 2> FactorBuffers::getRows(int64_t step) {
  return {getF32(ofRows[0], step), getF32(ofRows[1], step)};
}

SmallVector<Value> FactorBuffers::getCols(int64_t step) {
  return llvm::map_to_vector(
      ofCols, [&](const Four &four) { return getF32(four, step); });
}

SmallVector<SmallVector<Value>>
Accumulator::accumulateMicroscaled(const Tile &tile, RingPosition &position) {
  int64_t registers = wgmma.getNumRegisters();
  int64_t steps = wgmma.getNumSteps();
  int64_t sets = getNumProductSets(config.getCols());
  FactorBuffers factors(b, kernel.shared, layout, config.getCols(),
                        kernel.thread, slice, group);
  auto issueStep = [&](Value stage, int64_t step, Value accumulator) {
    auto [rows, cols] = getDescriptors(stage);
    NVVM::WgmmaFenceAlignedOp::create(b);
    Value product = wgmma.multiplyStep(b, rows, cols, accumulator, step,
                                       /*overwrite=*/true);
    NVVM::WgmmaGroupSyncAlignedOp::create(b);
    return product;
  };
  SmallVector<Value> initial(registers, b.f32(0.0f));
  initial.append({position.stage, position.phase, b.i32(0)});
  auto body = [&](Value, ValueRange carried) {
    SmallVector<Value> sums(carried.take_front(registers));
    RingPosition at{carried[registers], carried[registers + 1]};
    Value buffer = carried[registers + 2];
    ring.waitFull(at);
    // Nothing is under way from one iteration to the next: ptxas would make
    // each product wait for the one before it.
    SmallVector<Value> products;
    for (int64_t step = 0; step < sets; ++step)
      products.push_back(issueStep(at.stage, step, wgmma.getUndefined(b)));
    factors.fill(at.stage, buffer);
    factors.synchronize();
    factors.load(buffer);
    for (int64_t step = 0; step < steps; ++step) {
      Value &product = products[step % sets];
      int64_t pending = std::min(sets, steps - step) - 1;
      SmallVector<Value> terms = takeProduct(product, pending);
      sums = pinHere(b, promote(terms, sums, factors.getRows(step),
                                ColFactors{factors.getCols(step), {}}));
      if (step + sets < steps)
        product = issueStep(at.stage, step + sets, product);
    }
    release(at.stage);
    RingPosition after = advance(b, ring, config, at);
    sums.append({after.stage, after.phase, b.bitXor(buffer, b.i32(1))});
    return sums;
  };
  SmallVector<Value> final =
      b.loop(tile.kBegin, tile.kEnd, b.i32(1), initial, body);
  // Whoever reads the last factors may be behind those who fill a buffer for
  // the next tile.
  factors.synchronize();
  position = {final[registers], final[registers + 1]};
  final.truncate(registers);
  return {final};
}
