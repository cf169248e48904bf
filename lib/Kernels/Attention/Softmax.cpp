//===- Softmax.cpp - The softmax of attention, tile by tile ---------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Softmax.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"

#include <limits>

using namespace mlir;
using namespace mlir::fp8;
using namespace mlir::fp8;

static constexpr float kInfinity = std::numeric_limits<float>::infinity();
static constexpr float kLn2 = 0x1.62e43p-1f, kLog2E = 0x1.715476p0f;

static Value call(KernelBuilder &b, StringRef intrinsic, Value x) {
  return LLVM::CallIntrinsicOp::create(b, b.getF32Type(),
                                       b.getStringAttr(intrinsic), x)
      .getResult(0);
}

Value Softmax::exp2(KernelBuilder &b, Value x) {
  return call(b, "llvm.nvvm.ex2.approx.ftz.f32", x);
}

Softmax::Rows Softmax::getInitial() {
  Rows rows;
  for (int64_t row = 0; row < layout.rows; ++row)
    rows.max[row] = b.f32(-kInfinity);
  for (int64_t row = 0; row < layout.rows; ++row)
    rows.sum[row] = b.f32(0.0f);
  return rows;
}

SmallVector<Value> Softmax::mask(ArrayRef<Value> scores, const Window &window) {
  SmallVector<Value> masked;
  Value hidden = b.f32(-kInfinity);
  for (auto [i, score] : llvm::enumerate(scores)) {
    Value column = b.i32(layout.getColumn(i)), result = score;
    int64_t row = layout.getRow(i);
    if (Value to = window.to[row])
      result = b.select(
          arith::CmpIOp::create(b, arith::CmpIPredicate::sle, column, to),
          result, hidden);
    if (Value from = window.from[row])
      result = b.select(
          arith::CmpIOp::create(b, arith::CmpIPredicate::sge, column, from),
          result, hidden);
    masked.push_back(result);
  }
  return masked;
}

Value Softmax::reduceLanes(Value value,
                           llvm::function_ref<Value(Value, Value)> combine) {
  for (int64_t distance = 1; distance < layout.lanes; distance *= 2) {
    Value other = NVVM::ShflOp::create(
        b, b.getF32Type(), b.i32(-1), value, b.i32(distance), b.i32(31),
        NVVM::ShflKind::bfly, /*return_value_and_is_valid=*/UnitAttr());
    value = combine(value, other);
  }
  return value;
}

/// `combine` of the values of a row, as a tree: its steps wait for few others.
static Value reduceRow(ScoreLayout layout, ArrayRef<Value> values, int64_t row,
                       llvm::function_ref<Value(Value, Value)> combine) {
  constexpr size_t kChains = 4;
  SmallVector<Value> chains;
  size_t next = 0;
  for (auto [i, value] : llvm::enumerate(values)) {
    if (layout.getRow(static_cast<int64_t>(i)) != row)
      continue;
    if (chains.size() < kChains)
      chains.push_back(value);
    else
      chains[next % kChains] = combine(chains[next % kChains], value);
    ++next;
  }
  while (chains.size() > 1) {
    SmallVector<Value> pairs;
    for (size_t i = 0; i + 1 < chains.size(); i += 2)
      pairs.push_back(combine(chains[i], chains[i + 1]));
    if (chains.size() % 2)
      pairs.push_back(chains.back());
    chains = pairs;
  }
  return chains.front();
}

Value Softmax::makeFinite(KernelBuilder &b, Value max) {
  Value isHidden = arith::CmpFOp::create(b, arith::CmpFPredicate::OEQ, max,
                                         b.f32(-kInfinity));
  return b.select(isHidden, b.f32(0.0f), max);
}

/// 2 to the power of `x`, of which 0.0001 of its value may be missing: 0 up to
/// -127. Schraudolph's exponent (1999) and a polynomial of the rest, by units
/// that are idle while others compute `exp2`; FlashAttention-4 has both as
/// well.
///
/// `x` that `mayBeLarge`, or NaN, becomes a large number: an exponent's bits
/// would be a smaller one's beyond, and those of NaN are of the largest then.
static Value approximateExp2(KernelBuilder &b, Value x, bool mayBeLarge) {
  Type f32 = b.getF32Type(), i32 = b.getI32Type();
  if (mayBeLarge)
    x = arith::MinimumFOp::create(
        b, arith::MaximumFOp::create(b, x, b.f32(-127.0f)), b.f32(127.0f));
  else
    x = arith::MaxNumFOp::create(b, x, b.f32(-127.0f));
  // A sum with it has the nearest integer in its last bits.
  Value magic = b.f32(0x1.8p23f);
  Value shifted = arith::AddFOp::create(b, x, magic);
  Value rest =
      arith::SubFOp::create(b, x, arith::SubFOp::create(b, shifted, magic));
  // The smallest relative error of those that are 1 at 0: there the exponent
  // of -127 has to give 0.
  Value power = b.f32(0x1.c29fd8p-5f);
  for (float coefficient : {0x1.f00aeap-3f, 0x1.62f5f4p-1f, 1.0f})
    power = LLVM::FMAOp::create(b, f32, power, rest, b.f32(coefficient));
  Value exponent = arith::ShLIOp::create(
      b, arith::BitcastOp::create(b, i32, shifted), b.i32(23));
  return arith::BitcastOp::create(
      b, f32, b.add(arith::BitcastOp::create(b, i32, power), exponent));
}

Softmax::Step Softmax::raise(ArrayRef<Value> scores, Rows &rows) {
  // NaN makes all of its row NaN: `approximateExp2` knows none.
  auto larger = [&](Value lhs, Value rhs) -> Value {
    return arith::MaximumFOp::create(b, lhs, rhs);
  };
  Step step;
  for (int64_t row = 0; row < layout.rows; ++row) {
    Value factor = factors[row],
          largest = reduceRow(layout, scores, row, larger);
    if (keepsExponents) {
      largest = b.mulF(largest, factor);
      factor = b.f32(1.0f);
    }
    Value max = reduceLanes(larger(rows.max[row], largest), larger);
    Value finite = makeFinite(b, max);
    step.corrections[row] = exp2(
        b, b.mulF(arith::SubFOp::create(b, rows.max[row], finite), factor));
    // Powers are 2 to (score - max) factor + log2(p_scale).
    step.offsets[row] =
        LLVM::FMAOp::create(b, b.getF32Type(), arith::NegFOp::create(b, finite),
                            factor, b.f32(logOfP));
    rows.max[row] = max;
  }
  return step;
}

void Softmax::Step::addBits(KernelBuilder &b, Value zero) {
  for (Value &offset : offsets) {
    Value bits = arith::BitcastOp::create(b, b.getI32Type(), offset);
    offset = arith::BitcastOp::create(b, b.getF32Type(), b.add(bits, zero));
  }
}

SmallVector<Value> Softmax::exponentiate(ArrayRef<Value> scores, Rows &rows,
                                         const Step &step, bool mayBeLarge) {
  SmallVector<Value> powers;
  for (auto [number, score] : llvm::enumerate(scores)) {
    auto i = static_cast<int64_t>(number);
    int64_t row = layout.getRow(i);
    Value exponent = LLVM::FMAOp::create(b, b.getF32Type(), score, factors[row],
                                         step.offsets[row]);
    bool isPolynomial = (i + 1) * polynomials / 16 != i * polynomials / 16;
    powers.push_back(isPolynomial ? approximateExp2(b, exponent, mayBeLarge)
                                  : exp2(b, exponent));
  }
  for (int64_t row = 0; row < layout.rows; ++row) {
    Value sum =
        reduceRow(layout, powers, row, [&](Value lhs, Value rhs) -> Value {
          return arith::AddFOp::create(b, lhs, rhs);
        });
    rows.sum[row] = LLVM::FMAOp::create(b, b.getF32Type(), rows.sum[row],
                                        step.corrections[row], sum);
  }
  return powers;
}

SmallVector<Value> Softmax::scaleRows(KernelBuilder &b, ScoreLayout layout,
                                      ArrayRef<Value> sums,
                                      const Value (&factors)[2]) {
  SmallVector<Value> scaled;
  for (auto [i, sum] : llvm::enumerate(sums))
    scaled.push_back(
        b.mulF(sum, factors[layout.getRow(static_cast<int64_t>(i))]));
  return scaled;
}

Value Softmax::addLanes(Value sum) {
  return reduceLanes(sum, [&](Value lhs, Value rhs) -> Value {
    return arith::AddFOp::create(b, lhs, rhs);
  });
}

Softmax::Total Softmax::getNone(KernelBuilder &b) {
  return {b.f32(-kInfinity), b.f32(0.0f)};
}

std::pair<Value, Value> Softmax::merge(KernelBuilder &b, Total &total,
                                       const Total &added) {
  Value largest = arith::MaximumFOp::create(b, total.exponent, added.exponent);
  Value finite = makeFinite(b, largest);
  Value ofTotal = exp2(b, arith::SubFOp::create(b, total.exponent, finite));
  Value ofAdded = exp2(b, arith::SubFOp::create(b, added.exponent, finite));
  total.sum = LLVM::FMAOp::create(b, b.getF32Type(), total.sum, ofTotal,
                                  b.mulF(added.sum, ofAdded));
  total.exponent = largest;
  return {ofTotal, ofAdded};
}

Value Softmax::addScore(KernelBuilder &b, Value score, Value &exponent,
                        Value &sum, float logOfP) {
  Value added = b.mulF(score, b.f32(kLog2E));
  Value largest = arith::MaximumFOp::create(b, exponent, added);
  Value finite = makeFinite(b, largest);
  Value correction = exp2(b, arith::SubFOp::create(b, exponent, finite));
  Value offset = arith::SubFOp::create(b, b.f32(logOfP), finite);
  Value power = exp2(b, arith::AddFOp::create(b, added, offset));
  sum = LLVM::FMAOp::create(b, b.getF32Type(), sum, correction, power);
  exponent = largest;
  return correction;
}

Value Softmax::getLogSum(KernelBuilder &b, Value exponent, Value sum,
                         float logOfP) {
  // -inf for no keys: the logarithm of 0.
  Value log = arith::SubFOp::create(
      b, call(b, "llvm.nvvm.lg2.approx.ftz.f", sum), b.f32(logOfP));
  Value inTwos = arith::AddFOp::create(b, makeFinite(b, exponent), log);
  return b.mulF(inTwos, b.f32(kLn2));
}
