//===- Launch.cpp - Launches, and how many fit ----------------------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Check/Unwritten.h"
#include "Driver.h"

#include <cstdio>

using namespace fp8emu;

namespace {
struct Launch {
  Dim3 grid, block, cluster;
  bool explicitCluster = false;
  bool programmatic = false; /* it may overlap the one before */
};
} // namespace

static Dim3 toDim3(const uint32_t (&extents)[3]) {
  return {extents[0], extents[1], extents[2]};
}

static bool isSame(const Dim3 &a, const uint32_t (&b)[3]) {
  return a.x == b[0] && a.y == b[1] && a.z == b[2];
}

/// What a driver refuses; 0 if it is all right.
static int checkLaunch(const FunctionState &function,
                       const LaunchConfig &config, Launch &launch) {
  const Function &source = *function.program->function;
  launch.grid = toDim3(config.grid);
  launch.block = toDim3(config.block);
  for (uint32_t i = 0; i < config.numAttributes; ++i)
    if (config.attributes[i].id == kClusterDimension) {
      launch.cluster = toDim3(config.attributes[i].value.cluster);
      launch.explicitCluster = true;
    } else if (config.attributes[i].id == kProgrammaticSerialization) {
      launch.programmatic = config.attributes[i].value.flag;
    }
  if (source.reqCluster[0]) {
    if (launch.explicitCluster && !isSame(launch.cluster, source.reqCluster))
      return kInvalidValue;
    launch.cluster = toDim3(source.reqCluster);
    launch.explicitCluster = true;
  }
  if (launch.explicitCluster && getSettings().arch < 90)
    return kNotSupported;
  uint64_t threads = launch.block.count();
  if (launch.grid.count() == 0 || threads == 0 || launch.cluster.count() == 0 ||
      launch.grid.x > INT32_MAX || launch.grid.y > 65535 ||
      launch.grid.z > 65535 || launch.block.z > 64 || threads > kMaxThreads ||
      launch.cluster.count() > 16)
    return kInvalidValue;
  if (launch.grid.x % launch.cluster.x || launch.grid.y % launch.cluster.y ||
      launch.grid.z % launch.cluster.z)
    return kInvalidValue;
  if (source.reqThreads[0] && !isSame(launch.block, source.reqThreads))
    return kInvalidValue;
  uint64_t most = uint64_t{source.maxThreads[0]} * source.maxThreads[1] *
                  source.maxThreads[2];
  if (most && threads > most)
    return kInvalidValue;
  if (static_cast<int64_t>(config.dynamicShared) > function.maxDynamicShared)
    return kInvalidValue;
  if (uint32_t each = function.program->registersPerThread)
    if (each * threads > 65536)
      return kLaunchOutOfResources;
  return kSuccess;
}

/// Multiprocessors are in groups of 16, of which some have 2 more; a cluster is
/// in one of them. 132 are 66 pairs, but 32 clusters of four.
static uint64_t countClusters(uint64_t blocks, uint64_t cluster) {
  uint64_t all = getSettings().multiprocessors;
  uint64_t groups = std::max<uint64_t>(1, all / 16);
  uint64_t each = all / groups / 2 * 2, clusters = 0;
  for (uint64_t left = all; groups > 0; --groups) {
    uint64_t here = groups == 1                 ? left
                    : left >= groups * each + 2 ? each + 2
                                                : each;
    clusters += here * blocks / cluster;
    left -= here;
  }
  return clusters;
}

int fp8emu::getActiveClusters(const FunctionState &function, const Dim3 &block,
                              const Dim3 &cluster, uint32_t dynamicShared) {
  uint64_t bytes = function.program->dynamicOffset + dynamicShared;
  uint64_t threads = (block.count() + kLanes - 1) / kLanes * kLanes;
  uint64_t blocks =
      std::min(static_cast<uint64_t>(getMultiprocessorShared()) / bytes,
               kMultiprocessorThreads / threads);
  return static_cast<int>(countClusters(blocks, cluster.count()));
}

FP8EMU_API int cuOccupancyMaxActiveClusters(int *clusters,
                                            FunctionState *function,
                                            const LaunchConfig *config) {
  if (int error = enter())
    return error;
  Launch launch;
  // The grid is of no matter.
  if (int error = checkLaunch(*function, *config, launch);
      error &&
      static_cast<int64_t>(config->dynamicShared) > function->maxDynamicShared)
    return error;
  *clusters = getActiveClusters(*function, launch.block, launch.cluster,
                                config->dynamicShared);
  return kSuccess;
}

static void traceLaunch(const Program &program, const Launch &launch,
                        uint32_t dynamicShared) {
  const Dim3 &grid = launch.grid, &block = launch.block;
  trace("  %s grid %ux%ux%u block %ux%ux%u cluster %u smem %u",
        std::string(program.function->name).c_str(), grid.x, grid.y, grid.z,
        block.x, block.y, block.z,
        static_cast<unsigned>(launch.cluster.count()), dynamicShared);
}

static void writeCounts(const Grid &grid) {
  if (!grid.counts)
    return;
  if (FILE *file = std::fopen(getSettings().countsFile.c_str(), "a")) {
    std::fputs(
        grid.counts->str(std::string(grid.program.function->name)).c_str(),
        file);
    std::fclose(file);
  }
}

/// In strict mode the kernel has failed.
static void reportFindings(const Grid &grid, ContextState &context) {
  for (const std::string &text : grid.findings.texts)
    if (grid.settings.strict)
      reportFault({kLaunchFailed, text}, context);
    else
      writeReport("note: " + text);
  if (grid.findings.more)
    writeReport("and " + std::to_string(grid.findings.more) + " more");
}

/// The last launch of each stream, unless something else has come since.
static std::unordered_map<const StreamState *, LaunchOverlap> &getLast() {
  static auto *last =
      new std::unordered_map<const StreamState *, LaunchOverlap>;
  return *last;
}

void fp8emu::endOverlap() {
  if (!(getSettings().checks & kCheckLaunches))
    return;
  std::lock_guard<std::mutex> lock(getDeviceMutex());
  getLast().clear();
}

static int runKernel(FunctionState &function, const Launch &launch,
                     const StreamState *stream, uint32_t dynamicShared,
                     const std::vector<uint8_t> &params) {
  static std::atomic<uint64_t> numLaunches{0};
  // Threads of the host may use several streams; the device is one.
  std::lock_guard<std::mutex> lock(getDeviceMutex());
  ContextState &context = *function.module->context;
  if (int lost = context.lost)
    return lost;
  getDeviceTime() += kLaunchTime;
  if (!getSettings().runKernels)
    return kSuccess;
  Grid grid(*function.program, getSettings());
  grid.grid = launch.grid;
  grid.block = launch.block;
  grid.cluster = launch.cluster;
  grid.explicitCluster = launch.explicitCluster;
  grid.dynamicShared = dynamicShared;
  grid.params = params;
  grid.number = ++numLaunches;
  grid.residentClusters = static_cast<unsigned>(
      std::max(1, getActiveClusters(function, launch.block, launch.cluster,
                                    dynamicShared)));
  bool overlaps = grid.settings.checks & kCheckLaunches;
  if (overlaps)
    grid.overlap = beginLaunch(getLast()[stream], launch.programmatic,
                               std::string(grid.program.function->name));
  if (grid.settings.checks & kCheckUnwritten)
    Unwritten::get().kernel = grid.program.function->name;
  if (grid.settings.checks & (kCheckGlobal | kCheckSums))
    grid.global = std::make_unique<GlobalAccesses>();
  if (!getSettings().countsFile.empty())
    grid.counts = std::make_unique<Counts>();
  try {
    grid.run();
  } catch (const Fault &fault) {
    // As on a chip, the next call tells.
    reportFindings(grid, context);
    reportFault(fault, context);
  } catch (const std::bad_alloc &) {
    return kOutOfMemory;
  }
  if (overlaps)
    getLast()[stream] = grid.overlap;
  if (!context.lost)
    reportFindings(grid, context);
  trace("  %s took %llu steps",
        std::string(grid.program.function->name).c_str(),
        static_cast<unsigned long long>(grid.steps));
  writeCounts(grid);
  // The same whenever the same is run.
  constexpr double perInstruction = 150;
  getDeviceTime() +=
      static_cast<uint64_t>(perInstruction * static_cast<double>(grid.steps) /
                            getSettings().multiprocessors);
  return kSuccess;
}

FP8EMU_API int cuLaunchKernelEx(const LaunchConfig *config,
                                FunctionState *function, void **params,
                                void **) {
  if (int error = enter())
    return error;
  ContextState *context = function->module->context;
  if (context != getCurrent() ||
      (config->stream && config->stream->context != context))
    return kInvalidHandle;
  Launch launch;
  if (int error = checkLaunch(*function, *config, launch))
    return error;
  const Program &program = *function->program;
  std::vector<uint8_t> bytes(program.paramBytes);
  if (!params && !program.params.empty())
    return kInvalidValue;
  for (size_t i = 0; i < program.params.size(); ++i)
    std::memcpy(bytes.data() + program.params[i].offset, params[i],
                program.params[i].bytes);
  recordLaunch(program, *config, bytes);
  traceLaunch(program, launch, config->dynamicShared);
  return submit(config->stream, [=, bytes = std::move(bytes),
                                 stream = config->stream,
                                 dynamicShared = config->dynamicShared] {
    return runKernel(*function, launch, stream, dynamicShared, bytes);
  });
}

FP8EMU_API int cuLaunchKernel(FunctionState *function, uint32_t gridX,
                              uint32_t gridY, uint32_t gridZ, uint32_t blockX,
                              uint32_t blockY, uint32_t blockZ,
                              uint32_t dynamicShared, StreamState *stream,
                              void **params, void **extra) {
  LaunchConfig config = {{gridX, gridY, gridZ},
                         {blockX, blockY, blockZ},
                         dynamicShared,
                         stream,
                         nullptr,
                         0};
  return cuLaunchKernelEx(&config, function, params, extra);
}
