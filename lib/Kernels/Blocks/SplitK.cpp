//===- SplitK.cpp - Sums over parts of K that different blocks computed ---===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "SplitK.h"

using namespace mlir;
using namespace mlir::fp8;

Value fp8::arriveLast(KernelBuilder &b, Value counter, Value parts, Value flag,
                      Value barrierId, Value thread, int64_t threads) {
  // The fences are between the barriers: what one thread releases is what the
  // others have done before the first of them, and what it acquires they have
  // after the second. (LLVM lowers this atomic operation to a relaxed one.)
  auto fence = [&] {
    LLVM::FenceOp::create(b, LLVM::AtomicOrdering::acq_rel, "device");
  };
  Value last = b.sub(parts, b.i32(1));
  b.namedBarrier(barrierId, threads);
  b.ifThen(b.equal(thread, 0), [&] {
    fence();
    // Wraps to 0 with the last arrival: ready for the next launch.
    Value arrived = LLVM::AtomicRMWOp::create(
        b, LLVM::AtomicBinOp::uinc_wrap, counter, last,
        LLVM::AtomicOrdering::acq_rel, "device");
    fence();
    b.store(arrived, flag);
  });
  b.namedBarrier(barrierId, threads);
  return b.equal(b.load(flag, b.getI32Type()), last);
}

void SplitK::reduce(Value tile, Value part, Value thread,
                    ValueRange accumulators,
                    llvm::function_ref<void(ValueRange sums)> last) {
  Type f32 = b.getF32Type();
  int64_t threads = shape.threads / shape.divisions;
  int64_t parts = shape.parts * shape.divisions;
  Value own = thread;
  if (shape.divisions > 1) {
    own = b.rem(thread, threads);
    part = b.add(b.mul(part, shape.divisions), b.div(thread, threads));
  }
  // [tile][part][register][thread]: neighbouring threads, neighbouring words.
  Value first = b.add(b.mul(b.widen(tile), parts * shape.registers * threads),
                      b.widen(own));
  auto addressOf = [&](Value part, int64_t i) {
    Value index = b.add(first, b.mul(b.widen(part), shape.registers * threads));
    return b.element(workspace, b.add(index, i * threads), f32);
  };
  for (auto [i, value] : llvm::enumerate(accumulators))
    b.store(value, addressOf(part, i));
  Value counter = b.element(counters, b.widen(tile), b.getI32Type());
  Value isLast = arriveLast(b, counter, b.i32(shape.parts), flag, barrierId,
                            thread, shape.threads);
  if (shape.divisions > 1)
    isLast = b.bitAnd(isLast, b.less(thread, b.i32(threads)));
  b.ifThen(isLast, [&] {
    SmallVector<Value> zeros(accumulators.size(), b.f32(0.0f));
    SmallVector<Value> sums =
        b.loop(b.i32(0), b.i32(parts), b.i32(1), zeros,
               [&](Value part, ValueRange carried) {
                 SmallVector<Value> next;
                 for (auto [i, sum] : llvm::enumerate(carried))
                   next.push_back(arith::AddFOp::create(
                       b, sum, b.load(addressOf(part, i), f32)));
                 return next;
               });
    last(sums);
  });
  // The flag is read by all before the next tile writes it.
  b.namedBarrier(barrierId, shape.threads);
}
