//===- Groups.cpp - Ranks that share amaxes -------------------------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Groups.h"

#include "Errors.h"

#include "fp8/Runtime/Device.h"
#include "fp8/Runtime/Group.h"

#include <unordered_map>

using namespace fp8py;

/// What reduces over a group, by its name; read and written with the GIL. Never
/// destroyed: another thread may be about to call one.
static std::unordered_map<std::string, nb::object> &getReducers() {
  static auto &reducers = *new std::unordered_map<std::string, nb::object>;
  return reducers;
}

/// The last line of what Python says is the error.
static fp8rt_status fail(const std::string &name, std::string reason) {
  while (!reason.empty() && reason.back() == '\n')
    reason.pop_back();
  reason = "cannot reduce over the group '" + name +
           "': " + reason.substr(reason.rfind('\n') + 1);
  return fp8rt_set_last_error(FP8RT_ERROR_CUDA, reason.c_str());
}

static fp8rt_status reduce(void *data, float *amaxes, int64_t count,
                           int32_t device, fp8rt_stream stream) {
  // The emulator's memory is the host's.
  int32_t isEmulated = 0;
  if (device >= 0 && fp8rt_device_is_emulated(&isEmulated) == FP8RT_OK &&
      isEmulated)
    device = -1;
  nb::gil_scoped_acquire acquire;
  const auto &[name, reducer] =
      *static_cast<std::pair<const std::string, nb::object> *>(data);
  try {
    // Another one may take its place meanwhile.
    nb::object function = reducer;
    function(reinterpret_cast<uintptr_t>(amaxes), count, device,
             reinterpret_cast<uintptr_t>(stream));
    return FP8RT_OK;
  } catch (const nb::python_error &failure) {
    std::string reason = failure.what();
    // Raised again where the program's call ends; to write the reason would
    // swallow it.
    if (failure.matches(PyExc_KeyboardInterrupt))
      PyErr_SetInterrupt();
    return fail(name, std::move(reason));
  } catch (const std::exception &failure) {
    return fail(name, failure.what());
  }
}

/// None removes it.
static void setGroup(const std::string &name, nb::object reducer) {
  void *function = nullptr, *data = nullptr;
  if (!reducer.is_none()) {
    auto &entry = *getReducers().try_emplace(name).first;
    entry.second = std::move(reducer);
    function = reinterpret_cast<void *>(reduce);
    data = const_cast<void *>(static_cast<const void *>(&entry));
  }
  fp8rt_status status;
  {
    // To destroy what was there may wait for a device.
    nb::gil_scoped_release release;
    status = fp8rt_group_set(name.c_str(), function, data);
  }
  check(status);
}

static nb::bytes createNcclId() {
  char id[FP8RT_NCCL_ID_SIZE];
  check(fp8rt_nccl_create_id(id));
  return nb::bytes(id, sizeof(id));
}

static void createNcclGroup(const std::string &name, const nb::bytes &id,
                            int32_t size, int32_t rank, int32_t device) {
  if (id.size() != FP8RT_NCCL_ID_SIZE)
    raise(FP8RT_ERROR_INVALID_ARGUMENT,
          "expected an id of " + std::to_string(int{FP8RT_NCCL_ID_SIZE}) +
              " bytes, but got " + std::to_string(id.size()));
  fp8rt_status status;
  {
    // Until the other ranks are there.
    nb::gil_scoped_release release;
    status =
        fp8rt_group_create_nccl(name.c_str(), id.c_str(), size, rank, device);
  }
  check(status);
}

void fp8py::addGroups(nb::module_ &module) {
  module.def("set_group", setGroup, nb::arg("name"), nb::arg("reduce").none());
  module.def("create_nccl_id", createNcclId);
  module.def("create_nccl_group", createNcclGroup);
}
