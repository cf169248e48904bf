//===- Acme.h - Recipes of another project ----------------------*- C++ -*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ACME_H
#define ACME_H

#include "fp8/IR/FP8Attrs.h"

#include "AcmeDialect.h.inc"

#define GET_ATTRDEF_CLASSES
#include "AcmeAttrs.h.inc"

namespace acme {
/// The dialect, and its recipes for recipe texts.
void registerAcme(mlir::DialectRegistry &registry);
} // namespace acme

#endif // ACME_H
