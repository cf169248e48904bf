//===- CallMemory.h - What a call allocates ---------------------*- C++ -*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Programs allocate results and what they need meanwhile one by one, from the
// framework's cache, which takes the host as long as a launch does. A function
// that is called again asks for the same sizes in the same order: so what is
// small comes in one piece, which lives until its last part is freed.
//
//===----------------------------------------------------------------------===//

#ifndef FP8_PYTHON_CALLMEMORY_H
#define FP8_PYTHON_CALLMEMORY_H

#include "DLPack.h"

#include "fp8/Runtime/Stream.h"

#include <cstddef>
#include <vector>

namespace fp8py {

/// What a function allocated when it was called last.
struct MemoryPlan {
  struct Item {
    size_t bytes;
    /// Freed by the call itself, so no result.
    bool isScratch;
  };
  std::vector<Item> items;
  /// Results may be parts, too, where all together has no more bytes: whoever
  /// keeps one keeps the piece.
  size_t mostWithResults = 0;
  /// The bytes of all that come in one piece, each at a multiple of some, and
  /// whether results are among these.
  size_t total = 0;
  bool hasResults = false;
  /// A call uses it: another thread's goes without.
  bool isBusy = false;
};

/// While it lives, the calls of this thread allocate by a plan, and one that
/// does not fit is replaced by what was allocated. With the GIL it comes and
/// goes, and without it the call may be made.
class CallMemory {
public:
  explicit CallMemory(MemoryPlan &plan);
  CallMemory(const CallMemory &) = delete;
  ~CallMemory();

  /// Memory of a framework that is its current stream's on a device, as
  /// fp8rt_workspace_set_allocator wants it; null for any other stream.
  static fp8rt_status allocate(int32_t device, fp8rt_stream stream,
                               size_t bytes, void **ptr, void **owner,
                               void *api);
  static void free(void *owner, void *api);

private:
  struct Piece;

  bool take(const ExchangeAPI &api, int32_t device, size_t bytes, void **ptr,
            void **owner);
  void replacePlan();

  MemoryPlan *plan;
  /// What is allocated now, in this order, with the owners.
  std::vector<MemoryPlan::Item> items;
  std::vector<void *> owners;
  Piece *piece = nullptr;
  size_t used = 0;
  bool fits;
};

} // namespace fp8py

#endif // FP8_PYTHON_CALLMEMORY_H
