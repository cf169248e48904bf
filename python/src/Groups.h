//===- Groups.h - Ranks that share amaxes -----------------------*- C++ -*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FP8_PYTHON_GROUPS_H
#define FP8_PYTHON_GROUPS_H

#include <nanobind/nanobind.h>

namespace fp8py {

void addGroups(nanobind::module_ &module);

} // namespace fp8py

#endif // FP8_PYTHON_GROUPS_H
