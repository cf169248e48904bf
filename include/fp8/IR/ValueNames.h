//===- ValueNames.h - Names of inputs and outputs ---------------*- C++ -*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FP8_IR_VALUENAMES_H
#define FP8_IR_VALUENAMES_H

#include "mlir/Interfaces/FunctionInterfaces.h"

#include <string>

namespace mlir::fp8 {

/// Its `fp8.name`, else arg0, ...
std::string getArgumentName(FunctionOpInterface function, unsigned index);

/// Its `fp8.name`, else result0, ...
std::string getResultName(FunctionOpInterface function, unsigned index);

} // namespace mlir::fp8

#endif // FP8_IR_VALUENAMES_H
