//===- FusionRegisters.h - What registers hold of inputs --------*- C++ -*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FP8_LIB_KERNELS_FUSION_FUSIONREGISTERS_H
#define FP8_LIB_KERNELS_FUSION_FUSIONREGISTERS_H

#include "FusionDialect.h"
#include "FusionSpec.h"

namespace mlir::fp8 {

/// Registers that a config leaves to a thread.
int64_t getFusionRegisters(FusionConfigAttr config);

/// Those that a row of a thread wants: its words as they are loaded, the
/// numbers in them, and what is computed.
int64_t getFusionRowRegisters(const FusionSpec &spec, int64_t chunks);

/// Whether more than two tensors are read element by element.
bool readsSeveral(const FusionSpec &spec);

/// Rows of a thread that are loaded before the first is waited for. Where the
/// words of all take more than half of its registers it is a part of them: the
/// others are loaded in turn, each behind a row that was computed.
int64_t getFusionRowsAhead(const FusionSpec &spec, FusionConfigAttr config);

} // namespace mlir::fp8

#endif // FP8_LIB_KERNELS_FUSION_FUSIONREGISTERS_H
