//===- FakeNccl.cpp - NCCL within a process, for tests --------------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The functions of NCCL that the runtime uses, whose ranks are threads and
// whose memory is the emulator's. It takes maxima of u32 and nothing else.
//
//===----------------------------------------------------------------------===//

#include <algorithm>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <map>
#include <mutex>
#include <string>
#include <vector>

namespace {
struct Id {
  char bytes[128];
};

/// Ranks that wait for each other.
struct Group {
  std::mutex mutex;
  std::condition_variable changed;
  int size = 0, arrived = 0, round = 0;
  std::vector<uint32_t> maxima, result;

  /// Calls `join` for each rank, and returns when all are there.
  template <typename Join>
  void meet(Join &&join) {
    std::unique_lock<std::mutex> lock(mutex);
    join();
    int mine = round;
    if (++arrived == size) {
      arrived = 0;
      ++round;
      result.swap(maxima);
      maxima.clear();
      changed.notify_all();
    } else {
      changed.wait(lock, [&] { return round != mine; });
    }
  }
};

std::mutex mutex;
std::map<std::string, Group> groups;
int numIds = 0;
} // namespace

extern "C" {
int ncclGetUniqueId(Id *id) {
  std::memset(id, 0, sizeof(Id));
  std::lock_guard<std::mutex> lock(mutex);
  id->bytes[127] = static_cast<char>(++numIds);
  return 0;
}

int ncclCommInitRank(Group **communicator, int size, Id id, int) {
  {
    std::lock_guard<std::mutex> lock(mutex);
    *communicator = &groups[std::string(id.bytes, sizeof(id.bytes))];
    (*communicator)->size = size;
  }
  (*communicator)->meet([] {});
  return 0;
}

int ncclCommDestroy(Group *) { return 0; }

int ncclAllReduce(const void *from, void *to, size_t count, int type, int op,
                  Group *group, void *) {
  if (type != 3 || op != 2)
    return 4;
  const auto *numbers = static_cast<const uint32_t *>(from);
  group->meet([&] {
    group->maxima.resize(count);
    for (size_t i = 0; i < count; ++i)
      group->maxima[i] = std::max(group->maxima[i], numbers[i]);
  });
  std::memcpy(to, group->result.data(), count * sizeof(uint32_t));
  return 0;
}

const char *ncclGetErrorString(int result) {
  return result == 4 ? "invalid argument" : "unknown";
}
}
