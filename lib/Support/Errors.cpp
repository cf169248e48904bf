//===- Errors.cpp - What tells kinds of errors apart ----------------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "fp8/Support/ReportedError.h"
#include "fp8/Support/Runtime.h"

using namespace mlir::fp8;

char ReportedError::ID = 0;
char RuntimeError::ID = 0;
