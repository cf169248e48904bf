//===- SoftmaxGradient.cpp - From powers to gradients of scores -----------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "SoftmaxGradient.h"
#include "../Blocks/Rounding.h"

using namespace mlir;
using namespace mlir::fp8;

void SoftmaxGradient::loadFactors(const llvm::StringMap<Value> &params) {
  constexpr float kLog2E = 0x1.715476p0f;
  auto load = [&](StringRef name) {
    return b.loadConstant(params.lookup(name), b.getF32Type());
  };
  exponentFactor = b.f32(spec.scale * kLog2E);
  if (spec.isScaled) {
    factorOfV = load("v_scale.ptr");
    exponentFactor = b.mulF(exponentFactor,
                            b.mulF(load("q_scale.ptr"), load("k_scale.ptr")));
    // An infinite distance stays infinite.
    exponentFactor =
        arith::MaxNumFOp::create(b, exponentFactor, b.f32(0x1p-126f));
  }
  if (spec.cap)
    cap.emplace(b, *spec.cap, exponentFactor);
  if (spec.dropThreshold) {
    dropout.emplace(b, params.lookup("dropout.ptr"), spec.dropThreshold);
    Value ofKept = b.f32(getFactorOfKept(spec.dropThreshold));
    factorOfV = factorOfV ? b.mulF(factorOfV, ofKept) : ofKept;
  }
}

Value SoftmaxGradient::differentiate(Value power, Value product,
                                     Value delta) const {
  Value difference =
      factorOfV
          ? LLVM::FMAOp::create(b, b.getF32Type(), product, factorOfV, delta)
                .getResult()
          : arith::AddFOp::create(b, product, delta).getResult();
  if (dropout) {
    Value isLeftOut =
        arith::CmpFOp::create(b, arith::CmpFPredicate::OLT, power, b.f32(0.0f));
    difference = b.select(isLeftOut, delta, difference);
    power = LLVM::FAbsOp::create(b, power);
  }
  return b.mulF(power, difference);
}

SmallVector<Value> SoftmaxGradient::packGrads(MutableArrayRef<Value> grads,
                                              ArrayRef<Value> slopes) const {
  if (cap)
    for (auto [grad, slope] :
         llvm::zip_equal(grads, unpackFragment(b, spec.grad, slopes)))
      grad = b.mulF(grad, slope);
  return packFragment(b, spec.grad, grads);
}
