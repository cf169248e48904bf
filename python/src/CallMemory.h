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
  static constexpr int32_t kAlone = -1;
  struct Item {
    size_t bytes;
    /// Which piece it is a part of, if of any, and where that has it.
    int32_t piece;
    size_t offset = 0;
  };
  std::vector<Item> items;
  /// The bytes of each piece.
  std::vector<size_t> pieces;
  /// All is in one piece where that has no more bytes, and one result, with
  /// which it begins: whoever keeps the result keeps the piece. PyTorch's
  /// graphs look for results at the beginning of what was allocated
  /// (check_memory_pool).
  size_t mostWithResults = 0;
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
  /// What was allocated by this call.
  struct Allocation {
    size_t bytes;
    const void *memory;
    /// Null when it was freed: it is no result.
    void *owner;
  };

  bool take(const ExchangeAPI &api, int32_t device, size_t bytes, void **ptr,
            void **owner);
  void replacePlan();
  void planPieces();

  MemoryPlan *plan;
  std::vector<Allocation> allocations;
  /// Those of the plan, null before they are needed.
  std::vector<Piece *> pieces;
  bool fits;
};

} // namespace fp8py

#endif // FP8_PYTHON_CALLMEMORY_H
