//===- GroupDetail.h - Ranks that share amaxes ------------------*- C++ -*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FP8_LIB_RUNTIME_GROUPDETAIL_H
#define FP8_LIB_RUNTIME_GROUPDETAIL_H

#include "fp8/Runtime/Group.h"

#include <memory>

namespace fp8rt::detail {

/// What reduces over a group. It ends when nobody uses it any more.
class Reducer {
public:
  virtual ~Reducer() = default;
  virtual fp8rt_status reduce(float *amaxes, int64_t count, int32_t device,
                              fp8rt_stream stream) const = 0;
};

/// FP8RT_ERROR_INVALID_ARGUMENT of what is not the name of a group.
fp8rt_status checkName(const char *name);

fp8rt_status setGroup(const char *name, std::shared_ptr<Reducer> reducer);

/// Calls of this thread's look for the first scales of a state while one lives.
class FirstCall {
public:
  FirstCall();
  ~FirstCall();
  FirstCall(const FirstCall &) = delete;
  FirstCall &operator=(const FirstCall &) = delete;
};

/// Whether a reduction with these flags is skipped.
bool isSkipped(int32_t flags);

} // namespace fp8rt::detail

#endif // FP8_LIB_RUNTIME_GROUPDETAIL_H
