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
static constexpr size_t kMaxScratch = 4 << 20;

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
  if (current)
    current->allocations.push_back({bytes, *ptr, *owner});
  return FP8RT_OK;
}

void CallMemory::free(void *owner, void *) {
  // Parts of a piece have one owner: which of them is freed does not matter to
  // a plan that fits.
  if (current)
    for (Allocation &allocation : current->allocations)
      if (allocation.owner == owner) {
        allocation.owner = nullptr;
        break;
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
  allocations.reserve(plan->items.size());
  pieces.resize(plan->pieces.size());
  current = this;
}

CallMemory::~CallMemory() {
  if (!plan)
    return;
  current = nullptr;
  bool hadPieces = false;
  for (Piece *piece : pieces)
    if (piece) {
      hadPieces = true;
      piece->release();
    }
  if (!fits || allocations.size() != plan->items.size()) {
    // Which of a piece's parts were freed is not known: the next call tells.
    if (hadPieces)
      allocations.clear();
    replacePlan();
  }
  plan->isBusy = false;
}

/// Gives out a part of a piece, if the plan has one.
bool CallMemory::take(const ExchangeAPI &api, int32_t device, size_t bytes,
                      void **ptr, void **owner) {
  size_t index = allocations.size();
  fits =
      fits && index < plan->items.size() && plan->items[index].bytes == bytes;
  if (!fits || plan->items[index].piece == MemoryPlan::kAlone)
    return false;
  auto number = static_cast<size_t>(plan->items[index].piece);
  Piece *&piece = pieces[number];
  if (!piece) {
    VersionedTensor *made = nullptr;
    // Maybe what is asked for alone is there.
    if (allocateTheirs(api, device, plan->pieces[number], made) != FP8RT_OK)
      return false;
    piece = new Piece{made};
  }
  *ptr = getData(*piece->tensor) + plan->items[index].offset;
  *owner = Piece::mark(piece);
  ++piece->numUsers;
  return true;
}

void CallMemory::replacePlan() {
  plan->items.clear();
  plan->pieces.clear();
  for (const Allocation &allocation : allocations)
    plan->items.push_back({allocation.bytes, MemoryPlan::kAlone});
  planPieces();
}

/// Says where in one piece the plan's items are that have a place there: what
/// the call needs meanwhile, behind its result if there is one alone.
void CallMemory::planPieces() {
  size_t scratch = 0, all = 0, numResults = 0;
  for (const Allocation &allocation : allocations) {
    all += align(allocation.bytes);
    scratch += allocation.owner ? 0 : align(allocation.bytes);
    numResults += allocation.owner != nullptr;
  }
  bool takesResult = all <= plan->mostWithResults && numResults == 1;
  size_t end = 0;
  for (bool ofResults : {true, false})
    for (size_t i = 0; i < allocations.size(); ++i) {
      bool isResult = allocations[i].owner;
      if (isResult != ofResults ||
          !(isResult ? takesResult : takesResult || scratch <= kMaxScratch))
        continue;
      plan->items[i].piece = 0;
      plan->items[i].offset = end;
      end += align(allocations[i].bytes);
    }
  if (end != 0)
    plan->pieces.push_back(end);
}
