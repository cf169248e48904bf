//===- MatmulEpilogue.h - The epilogue of a matmul --------------*- C++ -*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FP8_LIB_KERNELS_MATMUL_MATMULEPILOGUE_H
#define FP8_LIB_KERNELS_MATMUL_MATMULEPILOGUE_H

#include "../Blocks/EpilogueRegion.h"
#include "fp8/Kernels/Matmul/MatmulSpec.h"

namespace mlir::fp8 {

inline EpilogueRegion::Shape getEpilogueShape(const MatmulSpec &spec) {
  return {spec.epilogue, spec.resultType, spec.amax, spec.captures};
}

/// The shape of a pair's first product.
inline EpilogueRegion::Shape getFirstShape(const MatmulSpec &spec) {
  return {spec.getDual()->epilogue, spec.getDual()->resultType,
          /*isMeasured=*/false, spec.captures};
}

} // namespace mlir::fp8

#endif // FP8_LIB_KERNELS_MATMUL_MATMULEPILOGUE_H
