//===- SplatConstants.h - Constants of equal elements -----------*- C++ -*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FP8_LIB_PIPELINES_SPLATCONSTANTS_H
#define FP8_LIB_PIPELINES_SPLATCONSTANTS_H

#include "ConstantProgram.h"

namespace mlir::fp8 {

/// `computation`, if all its tensors are splats, on ones of a few elements,
/// whose operations go to the end of `block`; nothing if they are not, or small
/// already.
std::optional<ConstantComputation>
shrinkSplats(const ConstantComputation &computation, Block *block);

/// Makes the splats that a computation on few elements gave those of
/// `computation`; false if one is none.
bool expandSplats(const ConstantComputation &computation,
                  MutableArrayRef<TypedAttr> parts);

} // namespace mlir::fp8

#endif // FP8_LIB_PIPELINES_SPLATCONSTANTS_H
