//===- Queue.cpp - Asynchronous work that has been issued -----------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Queue.h"

#include "Exec/Machine.h"

using namespace fp8emu;

/// How far ahead, in turns of warps, random work is put off; now and then much
/// further, or who runs far behind would never come too early.
static constexpr uint32_t kDelay = 48, kLongDelay = 4096, kLongOneOf = 16;

uint64_t AsyncQueue::draw() {
  switch (cluster.grid.settings.order) {
  case Order::Eager:
    return 0;
  case Order::Lazy:
    return UINT64_MAX;
  case Order::Random:
    break;
  }
  bool isLong = cluster.random(kLongOneOf) == 0;
  return cluster.time + cluster.random(isLong ? kLongDelay : kDelay);
}

void AsyncQueue::push(AsyncOp op) {
  op.due = draw();
  ops.push_back(std::move(op));
  auto last = std::prev(ops.end());
  earliest = std::min(earliest, last->due);
  if (cluster.grid.settings.order == Order::Eager)
    while (!ops.empty())
      advance(ops.begin());
}

void AsyncQueue::advance(std::list<AsyncOp>::iterator it) {
  cluster.notify();
  if (!it->advance()) {
    ops.erase(it);
    return;
  }
  it->due = draw();
  earliest = std::min(earliest, it->due);
}

bool AsyncQueue::isFirst(std::list<AsyncOp>::iterator it) {
  if (it->stream == 0)
    return true;
  for (auto before = ops.begin(); before != it; ++before)
    if (before->stream == it->stream)
      return false;
  return true;
}

void AsyncQueue::poll() {
  if (cluster.time < earliest)
    return;
  earliest = UINT64_MAX;
  for (auto it = ops.begin(); it != ops.end();) {
    auto here = it++;
    if (here->due <= cluster.time && isFirst(here))
      advance(here);
    else
      earliest = std::min(earliest, here->due);
  }
}

void AsyncQueue::force() {
  // One of the first few, so that not the oldest alone is late.
  auto chosen = ops.begin();
  uint32_t skip = cluster.random(4);
  for (auto it = ops.begin(); it != ops.end(); ++it)
    if (isFirst(it)) {
      chosen = it;
      if (skip-- == 0)
        break;
    }
  advance(chosen);
}
