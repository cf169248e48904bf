//===- Grid.cpp - Launches, clusters and blocks in turn -------------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Check/Checker.h"

#include <algorithm>

using namespace fp8emu;

/// A chip's registers of a multiprocessor are 64 Ki; a warp's are given in
/// units of 8 a thread.
static constexpr uint32_t kMultiprocessorRegisters = 65536;
/// Instructions without an event, after which asynchronous work is done.
static constexpr uint64_t kQuietSteps = 1 << 16;

Cta::Cta(Cluster &cluster, uint32_t rank, Dim3 index)
    : cluster(cluster), rank(rank), index(index),
      sharedBytes(cluster.grid.program.dynamicOffset +
                  cluster.grid.dynamicShared) {
  const Grid &grid = cluster.grid;
  // Tiles begin at multiples of 1024.
  storage.resize(sharedBytes + 1024, 0xff);
  auto address = reinterpret_cast<uintptr_t>(storage.data());
  shared = storage.data() + (1024 - address % 1024);
  auto threads = static_cast<uint32_t>(grid.block.count());
  local.resize(size_t{threads} * grid.program.localBytes, 0xff);
  bulkGroups.resize(threads);
  uint32_t numWarps = (threads + kLanes - 1) / kLanes;
  for (uint32_t i = 0; i < numWarps; ++i) {
    uint32_t lanes = std::min(threads - i * kLanes, kLanes);
    Mask mask = lanes == kLanes ? ~Mask{0} : (Mask{1} << lanes) - 1;
    warps.push_back(std::make_unique<Warp>(*this, i, mask));
  }
  liveWarps = numWarps;
  // What ptxas gives a kernel that says how many threads it has: as many as
  // there are. setmaxnreg moves them between warps, none are left.
  uint32_t each =
      std::min(256u, kMultiprocessorRegisters / (numWarps * kLanes) / 8 * 8);
  if (uint32_t said = grid.program.registersPerThread)
    each = std::min(each, (said + 7) / 8 * 8);
  warpRegisters.assign(numWarps, each);
}

Cluster::Cluster(Grid &grid, Dim3 index, uint64_t number)
    : grid(grid), index(index), number(number), queue(*this),
      generator(grid.settings.seed * 0x9e3779b97f4a7c15 + number) {
  const Dim3 &c = grid.cluster;
  for (uint32_t rank = 0; rank < c.count(); ++rank) {
    Dim3 block = {index.x * c.x + rank % c.x, index.y * c.y + rank / c.x % c.y,
                  index.z * c.z + rank / c.x / c.y};
    ctas.push_back(std::make_unique<Cta>(*this, rank, block));
    for (auto &warp : ctas.back()->warps) {
      warp->agent = static_cast<unsigned>(warps.size());
      warps.push_back(warp.get());
    }
  }
  liveWarps = static_cast<unsigned>(warps.size());
  for (Warp *warp : warps)
    liveLanes += static_cast<unsigned>(__builtin_popcount(warp->live));
  if (grid.settings.checks)
    checker = std::make_unique<Checker>(*this);
}

Cluster::~Cluster() = default;

/// Some lanes have ended. Barriers that wait for the whole block see to that
/// themselves.
void Cluster::ended(Warp &warp, Mask lanes) {
  notify();
  liveLanes -= static_cast<unsigned>(__builtin_popcount(lanes));
  if (!warp.hasEnded())
    return;
  if (--warp.cta.liveWarps == 0)
    warp.cta.reportTensorLeaks(warp);
  --liveWarps;
}

void Cluster::run(uint64_t quantum) {
  uint64_t end = steps + quantum;
  bool random = grid.settings.order != Order::Eager;
  while (steps < end && !hasEnded()) {
    queue.poll();
    // From a place that the seed draws, the first that can run.
    size_t count = warps.size(),
           begin = random ? this->random(static_cast<uint32_t>(count))
                          : next++ % count;
    Warp *chosen = nullptr;
    for (size_t i = 0; i < count && !chosen; ++i) {
      Warp *warp = warps[(begin + i) % count];
      if (!warp->hasEnded() && warp->canRun())
        chosen = warp;
    }
    if (!chosen) {
      if (!queue.empty()) {
        queue.force();
        continue;
      }
      if (liveWarps > 0) {
        if (letWaitsExpire())
          continue;
        reportDeadlock();
      }
      break;
    }
    uint32_t length = random ? 16 + this->random(1024) : 1024;
    uint64_t retries = chosen->retries;
    uint32_t done = chosen->run(length);
    if (Counts *counts = grid.counts.get())
      counts->countInstructions(chosen->index,
                                done - (chosen->retries - retries));
    steps += done;
    time += 1 + done / 64;
    if (events != lastEvents) {
      lastEvents = events;
      quietSteps = 0;
    } else {
      quietSteps += done;
    }
    // Who asks over and over, instead of waiting, gets an answer some time.
    if (quietSteps > kQuietSteps && !queue.empty()) {
      queue.force();
      quietSteps = 0;
    }
  }
}

/// Who asks with mbarrier.try_wait, and has something else to do, goes on some
/// time. False if that was of no use.
bool Cluster::letWaitsExpire() {
  if (expiredEvents == events)
    return false;
  expiredEvents = events;
  for (Warp *warp : warps)
    for (Group &group : warp->groups) {
      group.waits = false;
      group.expired = true;
    }
  return true;
}

void Cluster::reportDeadlock() {
  std::string text = "kernel " + std::string(grid.program.function->name) +
                     ": no thread can go on";
  unsigned shown = 0;
  for (Warp *warp : warps) {
    if (warp->hasEnded())
      continue;
    if (++shown > 12) {
      text += "\n  ...";
      break;
    }
    warp->describeWait(text);
  }
  throw Fault{kLaunchTimeout, text};
}

Dim3 Grid::getClusterIndex(uint64_t number) const {
  if (!order.empty())
    number = order[number];
  Dim3 extent = {grid.x / cluster.x, grid.y / cluster.y, grid.z / cluster.z};
  return {static_cast<uint32_t>(number % extent.x),
          static_cast<uint32_t>(number / extent.x % extent.y),
          static_cast<uint32_t>(number / extent.x / extent.y)};
}

bool Grid::takeCluster(Cluster &taker, Dim3 &firstBlock) {
  if (begun == grid.count() / cluster.count())
    return false;
  // Nobody is promised anything.
  if (settings.order == Order::Random && taker.random(16) == 0)
    return false;
  Dim3 index = getClusterIndex(begun++);
  firstBlock = {index.x * cluster.x, index.y * cluster.y, index.z * cluster.z};
  return true;
}

void Grid::reportEndless(uint64_t steps,
                         const std::deque<std::unique_ptr<Cluster>> &resident) {
  std::string text = "kernel " + std::string(program.function->name) +
                     " has not ended after " + std::to_string(steps) +
                     " instructions of warps";
  for (auto &some : resident)
    for (Warp *warp : some->warps)
      if (!warp->hasEnded() && text.size() < 4000)
        warp->describeWait(text);
  throw Fault{kLaunchTimeout, text};
}

void Grid::run() {
  uint64_t count = grid.count() / cluster.count();
  if (settings.shuffled) {
    generator.seed(settings.seed);
    order.resize(count);
    for (uint64_t i = 0; i < count; ++i) {
      uint64_t other = generator() % (i + 1);
      order[i] = order[other];
      order[other] = static_cast<uint32_t>(i);
    }
  }
  std::deque<std::unique_ptr<Cluster>> resident;
  while (begun < count || !resident.empty()) {
    uint64_t quantum = 1 << 20;
    if (settings.shuffled) {
      quantum = 1 + generator() % (1 << 14);
      if (!resident.empty())
        std::swap(resident.front(), resident[generator() % resident.size()]);
    }
    if (resident.size() < residentClusters && begun < count) {
      resident.push_back(
          std::make_unique<Cluster>(*this, getClusterIndex(begun), begun));
      ++begun;
      resident.back()->run(quantum);
    } else {
      resident.front()->run(quantum);
    }
    uint64_t now = 0;
    for (auto it = resident.begin(); it != resident.end();) {
      now += (*it)->steps;
      if ((*it)->hasEnded()) {
        steps += (*it)->steps;
        it = resident.erase(it);
      } else {
        ++it;
      }
    }
    if (!resident.empty()) {
      resident.push_back(std::move(resident.front()));
      resident.pop_front();
    }
    if (steps + now > settings.maxSteps && !resident.empty())
      reportEndless(steps + now, resident);
  }
}
