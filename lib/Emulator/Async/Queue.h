//===- Queue.h - Asynchronous work that has been issued ---------*- C++ -*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Each operation has a few actions, such as to read, to write and to tell a
// barrier, which take place one after the other, at times that the order and
// the seed decide.
//
//===----------------------------------------------------------------------===//

#ifndef FP8_LIB_EMULATOR_ASYNC_QUEUE_H
#define FP8_LIB_EMULATOR_ASYNC_QUEUE_H

#include <cstdint>
#include <functional>
#include <list>
#include <string>

namespace fp8emu {

class Cluster;

struct AsyncOp {
  /// Does the next action; false when there is none left.
  std::function<bool()> advance;
  uint64_t due = 0;
  /// Operations of one stream take place in order; 0 is no stream.
  uint64_t stream = 0;
  unsigned line = 0;
};

class AsyncQueue {
public:
  explicit AsyncQueue(Cluster &cluster) : cluster(cluster) {}

  void push(AsyncOp op);
  bool empty() const { return ops.empty(); }
  size_t size() const { return ops.size(); }
  /// Advances what is due.
  void poll();
  /// Advances one that is next, due or not.
  void force();

private:
  uint64_t draw();
  void advance(std::list<AsyncOp>::iterator it);
  bool isFirst(std::list<AsyncOp>::iterator it);

  Cluster &cluster;
  std::list<AsyncOp> ops;
  uint64_t earliest = UINT64_MAX;
};

} // namespace fp8emu

#endif // FP8_LIB_EMULATOR_ASYNC_QUEUE_H
