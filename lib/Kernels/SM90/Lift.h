//===- Lift.h - The warps that lift packed weights --------------*- C++ -*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FP8_LIB_KERNELS_SM90_LIFT_H
#define FP8_LIB_KERNELS_SM90_LIFT_H

#include "../Blocks/Ring.h"
#include "../Blocks/TileScheduler.h"
#include "MatmulContext.h"

namespace mlir::fp8::sm90 {

/// Writes the table that E4M3, or factors, are looked up in, before all threads
/// meet.
void buildLiftTable(const MatmulContext &kernel);

/// Eight codes of E2M1 to two words of E4M3, those of the magnitudes of an
/// exponent being `low` and `high`, an entry of that table.
std::array<Value, 2> liftWord(KernelBuilder &b, Value codes, Value low,
                              Value high);

/// The same of eight arranged codes (docs/PackedWeights.md): four, and those 16
/// further on.
std::array<Value, 2> liftArrangedWord(KernelBuilder &b, Value codes, Value low,
                                      Value high);

/// Lifts the packed weights of each stage to where the tensor core reads them:
/// all threads of the warps that do so, of which this one is number `warp`.
/// Codes and exponents arrive at the full barriers of `packed`, whose stages
/// are those of `ring`; these warps arrive at its full ones.
void buildLifter(const MatmulContext &kernel, const TileScheduler &scheduler,
                 Ring ring, Ring packed, Value warp);

} // namespace mlir::fp8::sm90

#endif // FP8_LIB_KERNELS_SM90_LIFT_H
