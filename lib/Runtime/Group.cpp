//===- Group.cpp - Ranks that share amaxes --------------------------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "GroupDetail.h"

#include "ProgramDetail.h"
#include "StatusDetail.h"

#include <map>
#include <mutex>
#include <string>

using namespace fp8rt;
using detail::fail;
using detail::Reducer;

namespace {
class HostReducer : public Reducer {
public:
  HostReducer(fp8rt_reduce_function function, void *data)
      : function(function), data(data) {}

  fp8rt_status reduce(float *amaxes, int64_t count, int32_t device,
                      fp8rt_stream stream) const override {
    return function(data, amaxes, count, device, stream);
  }

private:
  fp8rt_reduce_function function;
  void *data;
};

struct Groups {
  std::mutex mutex;
  std::map<std::string, std::shared_ptr<Reducer>> byName;
};
} // namespace

/// Never destroyed: programs may run when the process ends.
static Groups &getGroups() {
  static auto &groups = *new Groups;
  return groups;
}

fp8rt_status detail::checkName(const char *name) {
  if (name && *name)
    return FP8RT_OK;
  return fail(FP8RT_ERROR_INVALID_ARGUMENT,
              name ? "expected the name of a group, but got \"\""
                   : "expected name to be given, but got null");
}

fp8rt_status detail::setGroup(const char *name,
                              std::shared_ptr<Reducer> reducer) {
  if (fp8rt_status status = detail::checkName(name))
    return status;
  Groups &groups = getGroups();
  {
    std::lock_guard<std::mutex> lock(groups.mutex);
    // What was there ends without the lock: it may wait for a device.
    std::swap(groups.byName[name], reducer);
  }
  return FP8RT_OK;
}

fp8rt_status fp8rt_group_set(const char *name, void *reduce, void *data) {
  return detail::guard([&]() -> fp8rt_status {
    std::shared_ptr<Reducer> reducer;
    if (reduce)
      reducer = std::make_shared<HostReducer>(
          reinterpret_cast<fp8rt_reduce_function>(reduce), data);
    return detail::setGroup(name, std::move(reducer));
  });
}

fp8rt_status fp8rt_group_all_reduce(const char *name, float *amaxes,
                                    int64_t count, int32_t device,
                                    fp8rt_stream stream) {
  return detail::guard([&]() -> fp8rt_status {
    if (fp8rt_status status = detail::checkName(name))
      return status;
    if (count < 0 || (count > 0 && !amaxes))
      return fail(FP8RT_ERROR_INVALID_ARGUMENT,
                  "expected amaxes to be given, but got " +
                      (count < 0 ? std::to_string(count) + " of them"
                                 : std::string("null")));
    std::shared_ptr<Reducer> reducer;
    Groups &groups = getGroups();
    {
      std::lock_guard<std::mutex> lock(groups.mutex);
      auto found = groups.byName.find(name);
      if (found != groups.byName.end())
        reducer = found->second;
    }
    if (!reducer)
      return fail(FP8RT_ERROR_NOT_FOUND,
                  std::string("expected something that reduces over the group "
                              "'") +
                      name + "', but got nothing: set it before a call");
    return count == 0 ? FP8RT_OK
                      : reducer->reduce(amaxes, count, device, stream);
  });
}

//===----------------------------------------------------------------------===//
// For compiled programs
//===----------------------------------------------------------------------===//

static thread_local int numFirstCalls = 0;

detail::FirstCall::FirstCall() { ++numFirstCalls; }
detail::FirstCall::~FirstCall() { --numFirstCalls; }

bool detail::isSkipped(int32_t flags) {
  return (flags & FP8RT_REDUCE_FIRST_CALL) && numFirstCalls == 0;
}

void fp8rt_program_all_reduce(const char *name, float *amaxes, int64_t count,
                              int32_t flags) {
  if (detail::isSkipped(flags))
    return;
  fp8rt_status status = fp8rt_group_all_reduce(name, amaxes, count,
                                               /*device=*/-1,
                                               /*stream=*/nullptr);
  if (status != FP8RT_OK)
    detail::giveUp(status, fp8rt_get_last_error());
}
