//===- Machine.h - Grids, clusters, blocks and warps that run ---*- C++ -*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FP8_LIB_EMULATOR_EXEC_MACHINE_H
#define FP8_LIB_EMULATOR_EXEC_MACHINE_H

#include "Async/Queue.h"
#include "Check/GlobalAccesses.h"
#include "Check/Launches.h"
#include "Counts.h"
#include "Exec/Barriers.h"
#include "Exec/Memory.h"
#include "Exec/Program.h"
#include "Exec/Settings.h"

#include <cstring>
#include <deque>
#include <random>
#include <set>
#include <tuple>

namespace fp8emu {

class Checker;
class Cluster;
class Cta;
class Grid;
struct TensorMemory;

struct Dim3 {
  uint32_t x = 1, y = 1, z = 1;
  uint64_t count() const { return uint64_t{x} * y * z; }
  std::string str() const {
    return "(" + std::to_string(x) + ", " + std::to_string(y) + ", " +
           std::to_string(z) + ")";
  }
};

/// What a kernel did wrong: a code of the driver and a report.
struct Fault {
  int code;
  std::string text;
};

enum FaultCode : int {
  kIllegalAddress = 700,
  kLaunchTimeout = 702,
  kAssert = 710,
  kIllegalInstruction = 715,
  kMisalignedAddress = 716,
  kInvalidAddressSpace = 717,
  kLaunchFailed = 719,
};

/// Windows of the generic address space that are not the host's memory.
constexpr uint64_t kSharedWindow = uint64_t{1} << 56;
constexpr uint64_t kLocalWindow = uint64_t{2} << 56;
/// The block's rank in its cluster, in addresses of shared memory.
constexpr unsigned kRankShift = 24;
constexpr uint32_t kSharedOffsetMask = (1u << kRankShift) - 1;

/// Lanes that are at the same place.
struct Group {
  Mask mask;
  uint32_t pc;
  bool waits = false;
  bool deferred = false; /* others first: it ran for long */
  bool expired = false;  /* it waited for as long as a try_wait does */
  uint64_t seen = 0;     /* the cluster's events when it began to wait */
};

class Warp {
public:
  Warp(Cta &cta, unsigned index, Mask lanes);

  template <class T>
  T *row(uint32_t offset) {
    return reinterpret_cast<T *>(registers + offset);
  }
  Mask &predicate(uint32_t offset) { return *row<Mask>(offset); }

  /// Runs until it waits, has ended, or has done so many instructions; their
  /// number.
  uint32_t run(uint32_t quantum);
  bool canRun() const;
  bool hasEnded() const { return live == 0; }

  /// Sends some lanes of the group that runs elsewhere.
  void branch(Mask taken, uint32_t target);
  /// The group that runs has all of these lanes that live.
  bool hasAll(Mask lanes, Mask mask) const { return !(lanes & live & ~mask); }

  [[noreturn]] void fault(const Op &op, Mask lanes, int code,
                          const std::string &what) const;
  std::string describeThread(Mask lanes) const;
  /// The number of a lane's thread in the block.
  unsigned getThread(unsigned lane) const { return index * kLanes + lane; }
  /// Where it is, for reports of what waits.
  void describeWait(std::string &text);

  Cta &cta;
  const unsigned index; /* in the block */
  Mask live;
  uint8_t *registers = nullptr;
  std::vector<Group> groups;
  size_t current = 0;
  unsigned agent = 0; /* in the cluster's clocks */
  WarpTensorState tensor;
  WarpView view; /* of the race checker */
  ClusterArrival clusterArrival;
  Op const *running = nullptr;
  uint64_t retries = 0; /* statements that had to wait */

private:
  void pick();
  bool merge();
  void fillRows();
  uint64_t getSpecial(SpecialRegister which, unsigned lane) const;

  std::unique_ptr<uint8_t[]> storage;
};

/// A thread block.
class Cta {
public:
  Cta(Cluster &cluster, uint32_t rank, Dim3 index);

  Cluster &cluster;
  const uint32_t rank; /* in the cluster */
  const Dim3 index;
  const uint32_t sharedBytes; /* where its shared memory ends */
  std::vector<uint8_t> storage;
  uint8_t *shared;
  std::vector<uint8_t> local;
  std::vector<std::unique_ptr<Warp>> warps;
  NamedBarrier barriers[16];
  MBarrierTable mbarriers;
  std::vector<BulkGroups> bulkGroups;  /* of each thread */
  std::vector<uint32_t> warpRegisters; /* setmaxnreg, of each warp */
  int64_t registerPool = 0;
  unsigned liveWarps = 0;
  std::shared_ptr<TensorMemory> tensorMemory; /* null before it is used */

  uint32_t getSharedAddress(uint32_t offset) const {
    return rank << kRankShift | offset;
  }
  /// When its last warp has ended. Throws Fault.
  void reportTensorLeaks(const Warp &warp) const;
};

/// Blocks that run at the same time and see each other's shared memory.
class Cluster {
public:
  Cluster(Grid &grid, Dim3 index, uint64_t number);
  ~Cluster();

  /// Runs for a while. Throws Fault.
  void run(uint64_t quantum);
  bool hasEnded() const { return liveWarps == 0 && queue.empty(); }

  /// Something happened that others may wait for.
  void notify() { ++events; }
  uint32_t random(uint32_t bound) {
    return static_cast<uint32_t>(generator() % bound);
  }
  void ended(Warp &warp, Mask lanes);

  Grid &grid;
  const Dim3 index; /* in clusters */
  const uint64_t number;
  std::vector<std::unique_ptr<Cta>> ctas;
  std::vector<Warp *> warps;
  unsigned liveWarps = 0, liveLanes = 0;
  uint64_t events = 1;
  uint64_t steps = 0, lastEvents = 0, quietSteps = 0, expiredEvents = 0;
  uint64_t time = 0;
  AsyncQueue queue;
  ClusterBarrier barrier;
  bool refused = false;             /* another cluster's place, when it asked */
  std::unique_ptr<Checker> checker; /* null if nothing is looked for */
  std::mt19937_64 generator;
  /// What was found last, of global memory.
  Allocation knownAllocations[8];
  unsigned nextAllocation = 0;

private:
  bool letWaitsExpire();
  [[noreturn]] void reportDeadlock();
  void finish();

  size_t next = 0;
};

/// What a launch's checks have found, once for each pair of statements.
struct Findings {
  bool add(uint32_t check, uint32_t op, uint32_t other) {
    return known.insert({check, op, other}).second;
  }
  static constexpr size_t most = 8;
  std::vector<std::string> texts;
  size_t more = 0; /* that are not told */
  std::set<std::tuple<uint32_t, uint32_t, uint32_t>> known;
};

/// A launch.
class Grid {
public:
  Grid(const Program &program, const Settings &settings)
      : program(program), settings(settings) {}

  const Program &program;
  const Settings &settings;
  Dim3 grid, block, cluster;
  bool explicitCluster = false;
  uint32_t dynamicShared = 0;
  std::vector<uint8_t> params;
  uint64_t number = 0;
  unsigned residentClusters = 1;

  /// Runs it to its end. Throws Fault.
  void run();
  /// A cluster that has not begun never will: another does its work.
  bool takeCluster(Cluster &taker, Dim3 &firstBlock);

  uint64_t steps = 0;
  Findings findings;
  LaunchOverlap overlap;
  std::unique_ptr<GlobalAccesses> global; /* null if nobody looks */
  std::unique_ptr<Counts> counts;         /* null if nobody asks */

  /// Where in the grid the cluster is that begins as the `number`-th.
  Dim3 getClusterIndex(uint64_t number) const;

private:
  void reportEndless(uint64_t steps,
                     const std::deque<std::unique_ptr<Cluster>> &resident);

  std::mt19937_64 generator;
  std::vector<uint32_t> order; /* in which clusters begin, if it is drawn */
  uint64_t begun = 0;          /* clusters, those that were taken among them */
};

} // namespace fp8emu

#endif // FP8_LIB_EMULATOR_EXEC_MACHINE_H
