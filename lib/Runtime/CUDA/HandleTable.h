//===- HandleTable.h - Numbers that stand for objects -----------*- C++ -*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FP8_LIB_RUNTIME_CUDA_HANDLETABLE_H
#define FP8_LIB_RUNTIME_CUDA_HANDLETABLE_H

#include <cstdint>
#include <memory>
#include <vector>

namespace fp8rt::cuda {

/// Handles are the number of an entry and the entry's generation, which goes up
/// when the object is removed. A stale handle is known by its generation, and
/// no memory is looked at that may be gone. The caller locks.
template <typename T>
class HandleTable {
public:
  uint64_t add(std::unique_ptr<T> object) {
    if (unused.empty()) {
      // Removing must not need memory.
      if (unused.capacity() <= entries.size())
        unused.reserve(2 * entries.size() + 1);
      entries.emplace_back();
      unused.push_back(static_cast<uint32_t>(entries.size() - 1));
    }
    uint32_t index = unused.back();
    unused.pop_back();
    entries[index].object = std::move(object);
    return uint64_t{entries[index].generation} << 32 | index;
  }

  /// Null if the handle is stale or was never given out.
  T *find(uint64_t handle) const {
    size_t index = handle & UINT32_MAX;
    if (index >= entries.size() || entries[index].generation != handle >> 32)
      return nullptr;
    return entries[index].object.get();
  }

  std::unique_ptr<T> remove(uint64_t handle) {
    if (!find(handle))
      return nullptr;
    uint32_t index = handle & UINT32_MAX;
    // After the last generation the entry stays empty.
    if (++entries[index].generation != 0)
      unused.push_back(index);
    return std::move(entries[index].object);
  }

private:
  struct Entry {
    std::unique_ptr<T> object;
    /// From 1, so that no handle is 0.
    uint32_t generation = 1;
  };
  std::vector<Entry> entries;
  std::vector<uint32_t> unused;
};

} // namespace fp8rt::cuda

#endif // FP8_LIB_RUNTIME_CUDA_HANDLETABLE_H
