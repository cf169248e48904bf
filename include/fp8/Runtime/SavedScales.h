//===- SavedScales.h - Scales of a saved state ------------------*- C++ -*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What a compiler wants of a state file, without a state: in a static library
// of its own, so that passes do not depend on libfp8rt.
//
//===----------------------------------------------------------------------===//

#ifndef FP8_RUNTIME_SAVEDSCALES_H
#define FP8_RUNTIME_SAVEDSCALES_H

#include <cstdint>
#include <string>
#include <vector>

namespace fp8rt {

struct SavedScale {
  /// The slot's name.
  std::string name;
  /// "e4m3" or "e5m2".
  std::string format;
  /// Multiplies on quantize.
  float scale;
  /// 1 / scale.
  float scaleInv;
  /// Updates with an amax other than 0.
  int64_t recorded;
};

/// Reads the scales that fp8rt_state_save wrote, with all of its checks.
/// Returns false, with a message that names the file, if there is something
/// wrong.
bool readSavedScales(const std::string &path, std::vector<SavedScale> &scales,
                     std::string &error);

} // namespace fp8rt

#endif // FP8_RUNTIME_SAVEDSCALES_H
