//===- Status.cpp - Errors across the C interface -------------------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Status.h"

#include "fp8/Support/Runtime.h"

using namespace mlir::fp8;

fp8rt_status capi::fail(llvm::Error error) {
  fp8rt_status status = FP8RT_OK;
  llvm::handleAllErrors(
      std::move(error),
      [&](const RuntimeError &info) {
        status = fail(info.getStatus(), info.message());
      },
      [&](const llvm::ErrorInfoBase &info) {
        bool isFile =
            info.convertToErrorCode() != llvm::inconvertibleErrorCode();
        status = fail(isFile ? FP8RT_ERROR_FILE : FP8RT_ERROR_INVALID_ARGUMENT,
                      info.message());
      });
  return status;
}
