//===- AttentionTotals.cpp - Sums of chunks of keys -----------------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "AttentionTotals.h"
#include "../Attention/ScoreLayout.h"

using namespace mlir;
using namespace mlir::fp8;
using namespace mlir::fp8::sm90;

Value AttentionTotals::allocate(KernelBuilder &b, int64_t count) {
  return LLVM::AllocaOp::create(b, LLVM::LLVMPointerType::get(b.getContext()),
                                LLVM::LLVMArrayType::get(b.getF32Type(), count),
                                b.i32(1),
                                /*alignment=*/16);
}

Value AttentionTotals::getAddress(int64_t first) {
  return b.element(slots, b.i64(first), b.getF32Type());
}

static void storeFour(KernelBuilder &b, ArrayRef<Value> values, Value address) {
  auto four =
      VectorType::get({static_cast<int64_t>(values.size())}, b.getF32Type());
  Value all = LLVM::UndefOp::create(b, four);
  for (auto [i, value] : llvm::enumerate(values))
    all = LLVM::InsertElementOp::create(b, all, value,
                                        b.i32(static_cast<int64_t>(i)));
  // Volatile, or LLVM would have them in registers all through the loop.
  LLVM::StoreOp::create(b, all, address, /*alignment=*/16, /*isVolatile=*/true);
}

void AttentionTotals::clear() {
  SmallVector<Value> zeros(kTogether, b.f32(0.0f));
  for (int64_t first = 0; first < count; first += kTogether)
    storeFour(b, zeros, getAddress(first));
}

void AttentionTotals::add(ArrayRef<Value> sums,
                          const std::pair<Value, Value> (&weights)[2]) {
  SmallVector<Value> totals = load();
  for (auto [i, total] : llvm::enumerate(totals)) {
    auto [ofTotal, ofSum] =
        weights[kFragmentScores.getRow(static_cast<int64_t>(i))];
    total = LLVM::FMAOp::create(b, b.getF32Type(), total, ofTotal,
                                b.mulF(sums[i], ofSum));
  }
  for (int64_t first = 0; first < count; first += kTogether)
    storeFour(b, ArrayRef(totals).slice(first, kTogether), getAddress(first));
}

SmallVector<Value> AttentionTotals::load() {
  auto four = VectorType::get({kTogether}, b.getF32Type());
  SmallVector<Value> totals;
  for (int64_t first = 0; first < count; first += kTogether) {
    Value loaded = LLVM::LoadOp::create(b, four, getAddress(first),
                                        /*alignment=*/16, /*isVolatile=*/true);
    for (int64_t i = 0; i < kTogether; ++i)
      totals.push_back(LLVM::ExtractElementOp::create(b, loaded, b.i32(i)));
  }
  return totals;
}
