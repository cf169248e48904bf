//===- StateManifest.h - A state table for the runtime ----------*- C++ -*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FP8_IR_STATEMANIFEST_H
#define FP8_IR_STATEMANIFEST_H

#include "fp8/IR/FP8Attrs.h"
#include <string>

namespace mlir::fp8 {

/// The manifest that fp8rt_state_create takes, JSON, for the slots of `table`,
/// whose recipe learns: slots in the order of their offsets, every option of
/// the recipe that the state depends on spelled out.
/// `uses` is `fp8.state_uses`, or null.
std::string getStateManifest(StateTableAttr table, DictionaryAttr uses = {});

} // namespace mlir::fp8

#endif // FP8_IR_STATEMANIFEST_H
