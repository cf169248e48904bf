//===- AllKernels.h - Kinds that every architecture has ---------*- C++ -*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FP8_LIB_KERNELS_ALLKERNELS_H
#define FP8_LIB_KERNELS_ALLKERNELS_H

namespace mlir::fp8 {

class Architecture;

/// Gives `architecture` the generators whose kernels are for any GPU of compute
/// capability 9.0 or more, so that none of these kinds is listed for each.
void addPortableGenerators(Architecture &architecture);

} // namespace mlir::fp8

#endif // FP8_LIB_KERNELS_ALLKERNELS_H
