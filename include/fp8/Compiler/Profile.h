//===- Profile.h - Times of a program's kernels -----------------*- C++ -*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FP8_COMPILER_PROFILE_H
#define FP8_COMPILER_PROFILE_H

#include "fp8/Compiler/Device.h"
#include "mlir/Support/LLVM.h"

namespace mlir::fp8 {

/// As fp8rt_profile_entry, whose page says how it is measured.
struct ProfileEntry {
  std::string name;
  int32_t kind; /* FP8RT_PROFILE_KERNEL, ... */
  double startMs;
  double durationMs;
  double bytes; /* 0 if they are not known */
  double flops;
};

/// A trace of one stream that chrome://tracing and Perfetto open (Trace Event
/// Format, complete events): times in microseconds; bytes and flops, where they
/// are known, are arguments of an event.
std::string getTrace(ArrayRef<ProfileEntry> entries);

/// Bytes that copies within the device read and write in a second: the best of
/// a few copies that are too large for its caches.
llvm::Expected<double> measureCopyRate(Device &device);

} // namespace mlir::fp8

#endif // FP8_COMPILER_PROFILE_H
