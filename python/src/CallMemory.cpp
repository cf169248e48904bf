//===- CallMemory.cpp - What a call allocates -----------------------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "CallMemory.h"

#include <nanobind/nanobind.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <string>

using namespace fp8py;
namespace nb = nanobind;

static constexpr size_t kAlignment = 256;
/// A piece is freed with the call, but is more than what a call needs at a
/// time.
static constexpr size_t kMostScratch = 4 << 20;

static thread_local CallMemory *current = nullptr;

//===----------------------------------------------------------------------===//
// Memory of a framework
//===----------------------------------------------------------------------===//

/// What frees memory: a framework's tensor, or a part of one. Which of both it
/// is shows in the lowest bit.
struct CallMemory::Piece {
  static void *mark(Piece *piece) {
    return reinterpret_cast<void *>(reinterpret_cast<uintptr_t>(piece) | 1);
  }
  static Piece *get(void *owner) {
    auto number = reinterpret_cast<uintptr_t>(owner);
    return number & 1 ? reinterpret_cast<Piece *>(number - 1) : nullptr;
  }
  void release() {
    if (--numUsers != 0)
      return;
    tensor->deleter(tensor);
    delete this;
  }

  VersionedTensor *tensor;
  /// Parts, and the call that gives them out.
  std::atomic<size_t> numUsers{1};
};

static char *getData(const VersionedTensor &made) {
  return static_cast<char *>(made.tensor.data) + made.tensor.byte_offset;
}

static fp8rt_status allocateTheirs(const ExchangeAPI &api, int32_t device,
                                   size_t bytes, VersionedTensor *&made) {
  int64_t size = static_cast<int64_t>(bytes), stride = 1;
  fp8c_tensor prototype = {};
  prototype.device = {FP8C_CUDA, device};
  prototype.dtype = {FP8C_UINT, 8, 1};
  prototype.rank = 1;
  prototype.sizes = &size;
  prototype.strides = &stride;
  std::string reason;
  auto setError = [](void *reason, const char *, const char *message) {
    *static_cast<std::string *>(reason) = message;
  };
  if (api.allocate(&prototype, &made, &reason, setError) == 0)
    return FP8RT_OK;
  return fp8rt_set_last_error(FP8RT_ERROR_OUT_OF_MEMORY,
                              reason.substr(0, reason.find('\n')).c_str());
}

fp8rt_status CallMemory::allocate(int32_t device, fp8rt_stream stream,
                                  size_t bytes, void **ptr, void **owner,
                                  void *data) {
  // The cache knows one stream of each device, that of the thread.
  const auto &api = *static_cast<const ExchangeAPI *>(data);
  void *theirs = nullptr;
  if (api.getCurrentStream(FP8C_CUDA, device, &theirs) != 0) {
    nb::gil_scoped_acquire acquire;
    PyErr_Clear();
    return FP8RT_OK;
  }
  if (theirs != stream)
    return FP8RT_OK;
  if (!current || !current->take(api, device, bytes, ptr, owner)) {
    VersionedTensor *made = nullptr;
    if (fp8rt_status status = allocateTheirs(api, device, bytes, made))
      return status;
    *ptr = getData(*made);
    *owner = made;
  }
  if (current) {
    current->items.push_back({bytes, /*isScratch=*/false});
    current->owners.push_back(*owner);
  }
  return FP8RT_OK;
}

void CallMemory::free(void *owner, void *) {
  if (current) {
    // Parts of a piece have one owner: which of them is freed does not matter
    // to a plan that fits.
    auto &owners = current->owners;
    auto found = std::find(owners.begin(), owners.end(), owner);
    if (found != owners.end()) {
      current->items[found - owners.begin()].isScratch = true;
      *found = nullptr;
    }
  }
  if (Piece *piece = Piece::get(owner))
    return piece->release();
  auto *made = static_cast<VersionedTensor *>(owner);
  made->deleter(made);
}

//===----------------------------------------------------------------------===//
// Plans
//===----------------------------------------------------------------------===//

static size_t align(size_t bytes) {
  return (bytes + kAlignment - 1) / kAlignment * kAlignment;
}

CallMemory::CallMemory(MemoryPlan &given)
    : plan(given.isBusy || current ? nullptr : &given), fits(plan) {
  if (!plan)
    return;
  plan->isBusy = true;
  items.reserve(plan->items.size());
  owners.reserve(plan->items.size());
  current = this;
}

CallMemory::~CallMemory() {
  if (!plan)
    return;
  current = nullptr;
  if (piece)
    piece->release();
  if (!fits || items.size() != plan->items.size())
    replacePlan();
  plan->isBusy = false;
}

void CallMemory::replacePlan() {
  // Which of a piece's parts were freed is not known: the next call tells.
  plan->items.clear();
  if (!used)
    plan->items = std::move(items);
  size_t scratch = 0, all = 0;
  for (const MemoryPlan::Item &item : plan->items) {
    all += align(item.bytes);
    scratch += item.isScratch ? align(item.bytes) : 0;
  }
  plan->hasResults = all <= plan->mostWithResults;
  plan->total = plan->hasResults ? all : scratch <= kMostScratch ? scratch : 0;
}

/// Gives out a part of the piece, if the plan has one.
bool CallMemory::take(const ExchangeAPI &api, int32_t device, size_t bytes,
                      void **ptr, void **owner) {
  size_t index = items.size();
  fits =
      fits && index < plan->items.size() && plan->items[index].bytes == bytes;
  if (!fits || plan->total == 0 ||
      !(plan->hasResults || plan->items[index].isScratch))
    return false;
  if (!piece) {
    VersionedTensor *made = nullptr;
    // Maybe what is asked for alone is there.
    if (allocateTheirs(api, device, plan->total, made) != FP8RT_OK)
      return false;
    piece = new Piece{made};
  }
  *ptr = getData(*piece->tensor) + used;
  used += align(bytes);
  *owner = Piece::mark(piece);
  ++piece->numUsers;
  return true;
}
