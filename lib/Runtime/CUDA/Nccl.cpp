//===- Nccl.cpp - Ranks that NCCL connects --------------------------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// NCCL is the host's to install: it is loaded when it is asked for, and what is
// used of it has been the same since version 2.0.
//
//===----------------------------------------------------------------------===//

#include "Context.h"
#include "GroupDetail.h"

#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <string>

using namespace fp8rt;
using detail::fail;

namespace {
using Communicator = void *;

/// ncclUniqueId, which goes by value.
struct UniqueId {
  char bytes[FP8RT_NCCL_ID_SIZE];
};

// The values of nccl.h.
constexpr int kUint32 = 3, kMax = 2;

struct Library {
  int (*getUniqueId)(UniqueId *) = nullptr;
  int (*commInitRank)(Communicator *, int, UniqueId, int) = nullptr;
  int (*commDestroy)(Communicator) = nullptr;
  int (*allReduce)(const void *, void *, size_t, int, int, Communicator,
                   void *) = nullptr;
  const char *(*getErrorString)(int) = nullptr;

  fp8rt_status status = FP8RT_OK;
  std::string message;

  Library();
  fp8rt_status check(int result, const char *action) const {
    return result == 0 ? FP8RT_OK
                       : fail(FP8RT_ERROR_CUDA,
                              std::string("cannot ") + action +
                                  " with NCCL: " + getErrorString(result));
  }
};
} // namespace

Library::Library() {
  const char *path = std::getenv("FP8_NCCL");
  if (!path || !*path)
    path = "libnccl.so.2";
  // Never closed: it has threads of its own.
  void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (!library) {
    const char *reason = dlerror();
    status = FP8RT_ERROR_NOT_FOUND;
    message = std::string("expected NCCL, but got none: ") +
              (reason ? reason : path) + "; FP8_NCCL may name its library";
    return;
  }
  auto find = [&](auto &function, const char *name) {
    void *address = dlsym(library, name);
    function = reinterpret_cast<std::decay_t<decltype(function)>>(address);
    if (address || status != FP8RT_OK)
      return;
    status = FP8RT_ERROR_NOT_FOUND;
    message = std::string("expected NCCL with ") + name + ", but got '" + path +
              "' without it";
  };
  find(getUniqueId, "ncclGetUniqueId");
  find(commInitRank, "ncclCommInitRank");
  find(commDestroy, "ncclCommDestroy");
  find(allReduce, "ncclAllReduce");
  find(getErrorString, "ncclGetErrorString");
}

/// Loaded once; null where there is none, which has been reported.
static const Library *getLibrary() {
  static const auto &library = *new Library;
  if (library.status == FP8RT_OK)
    return &library;
  fail(library.status, library.message);
  return nullptr;
}

namespace {
class NcclReducer : public detail::Reducer {
public:
  /// On any device without one.
  NcclReducer(const Library &library, Communicator communicator,
              int32_t ownedOnDevice = -1)
      : library(library), communicator(communicator), device(ownedOnDevice) {}
  ~NcclReducer() override {
    if (device < 0)
      return;
    cuda::inContext(device, [&](const cuda::Driver &) {
      return library.check(library.commDestroy(communicator),
                           "destroy a communicator");
    });
  }

  fp8rt_status reduce(float *amaxes, int64_t count, int32_t where,
                      fp8rt_stream stream) const override {
    if (where < 0 || (device >= 0 && where != device))
      return fail(FP8RT_ERROR_WRONG_DEVICE,
                  "expected amaxes on " +
                      (device < 0 ? std::string("a device")
                                  : "device " + std::to_string(device)) +
                      " for NCCL, but got some on " +
                      (where < 0 ? std::string("the host")
                                 : "device " + std::to_string(where)));
    return cuda::inContext(where, [&](const cuda::Driver &) {
      // Their bits: as an integer NaN is the largest.
      return library.check(
          library.allReduce(amaxes, amaxes, static_cast<size_t>(count), kUint32,
                            kMax, communicator, stream),
          "reduce amaxes");
    });
  }

private:
  const Library &library;
  Communicator communicator;
  int32_t device;
};
} // namespace

fp8rt_status fp8rt_nccl_create_id(char *id) {
  return detail::guard([&]() -> fp8rt_status {
    if (!id)
      return cuda::failNull("id");
    const Library *library = getLibrary();
    if (!library)
      return FP8RT_ERROR_NOT_FOUND;
    UniqueId made = {};
    if (fp8rt_status status =
            library->check(library->getUniqueId(&made), "make an id"))
      return status;
    std::memcpy(id, made.bytes, sizeof(made.bytes));
    return FP8RT_OK;
  });
}

fp8rt_status fp8rt_group_create_nccl(const char *name, const char *id,
                                     int32_t size, int32_t rank,
                                     int32_t device) {
  return cuda::inContext(device, [&](const cuda::Driver &) -> fp8rt_status {
    // Before the other ranks are waited for, who would have the group.
    if (fp8rt_status status = detail::checkName(name))
      return status;
    if (!id)
      return cuda::failNull("id");
    if (size < 1 || rank < 0 || rank >= size)
      return fail(FP8RT_ERROR_INVALID_ARGUMENT,
                  "expected a rank below the size of its group, but got rank " +
                      std::to_string(rank) + " of " + std::to_string(size));
    const Library *library = getLibrary();
    if (!library)
      return FP8RT_ERROR_NOT_FOUND;
    UniqueId shared;
    std::memcpy(shared.bytes, id, sizeof(shared.bytes));
    Communicator communicator = nullptr;
    if (fp8rt_status status = library->check(
            library->commInitRank(&communicator, size, shared, rank),
            "make a communicator"))
      return status;
    return detail::setGroup(
        name, std::make_shared<NcclReducer>(*library, communicator, device));
  });
}

fp8rt_status fp8rt_group_set_nccl(const char *name, void *communicator) {
  return detail::guard([&]() -> fp8rt_status {
    if (!communicator)
      return cuda::failNull("communicator");
    const Library *library = getLibrary();
    if (!library)
      return FP8RT_ERROR_NOT_FOUND;
    return detail::setGroup(
        name, std::make_shared<NcclReducer>(*library, communicator));
  });
}
