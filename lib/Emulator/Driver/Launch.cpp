//===- Launch.cpp - Launches, and how many fit ----------------------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Driver.h"

#include <cstdio>

using namespace fp8emu;

namespace {
struct LaunchAttribute {
  int id;
  int padding;
  union {
    char bytes[64];
    uint32_t cluster[3];
    int flag;
  } value;
};

struct LaunchConfig {
  uint32_t grid[3], block[3], dynamicShared;
  StreamState *stream;
  LaunchAttribute *attributes;
  uint32_t numAttributes;
};

struct Launch {
  Dim3 grid, block, cluster;
  bool explicitCluster = false;
  bool programmatic = false; /* it may overlap the one before */
};
} // namespace

static constexpr int kClusterDimension = 4, kProgrammaticSerialization = 6;

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

int fp8emu::getActiveClusters(const FunctionState &function, const Dim3 &block,
                              const Dim3 &cluster, uint32_t dynamicShared) {
  uint64_t bytes = function.program->dynamicOffset + dynamicShared;
  uint64_t threads = (block.count() + kLanes - 1) / kLanes * kLanes;
  uint64_t blocks =
      std::min(kMultiprocessorShared / bytes, kMultiprocessorThreads / threads);
  return static_cast<int>(getSettings().multiprocessors * blocks /
                          cluster.count());
}

FP8EMU_API int cuOccupancyMaxActiveClusters(int *clusters,
                                            FunctionState *function,
                                            const LaunchConfig *config) {
  if (int error = enter())
    return error;
  Launch launch;
  LaunchConfig one = *config;
  // The grid is of no matter.
  if (int error = checkLaunch(*function, one, launch);
      error &&
      static_cast<int64_t>(config->dynamicShared) > function->maxDynamicShared)
    return error;
  *clusters = getActiveClusters(*function, launch.block, launch.cluster,
                                config->dynamicShared);
  return kSuccess;
}

static void trace(const Program &program, const Launch &launch,
                  uint64_t steps) {
  if (getSettings().traceFile.empty())
    return;
  if (FILE *file = std::fopen(getSettings().traceFile.c_str(), "a")) {
    std::fprintf(file, "%s grid %s block %s cluster %s steps %llu\n",
                 std::string(program.function->name).c_str(),
                 launch.grid.str().c_str(), launch.block.str().c_str(),
                 launch.cluster.str().c_str(),
                 static_cast<unsigned long long>(steps));
    std::fclose(file);
  }
}

/// In strict mode the kernel has failed.
static void reportFindings(const Grid &grid) {
  for (const std::string &text : grid.findings.texts)
    if (grid.settings.strict)
      reportFault({kLaunchFailed, text});
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
  if (int lost = getContextState().lost)
    return lost;
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
  if (grid.settings.checks & kCheckGlobal)
    grid.global = std::make_unique<GlobalAccesses>();
  try {
    grid.run();
  } catch (const Fault &fault) {
    // As on a chip, the next call tells.
    reportFindings(grid);
    reportFault(fault);
  } catch (const std::bad_alloc &) {
    return kOutOfMemory;
  }
  if (overlaps)
    getLast()[stream] = grid.overlap;
  if (!getContextState().lost)
    reportFindings(grid);
  trace(*function.program, launch, grid.steps);
  // The same whenever the same is run, and a thousand times a chip's, so that
  // who repeats what is short repeats little.
  constexpr double launchTime = 1e6, perInstruction = 150;
  getDeviceTime() += static_cast<uint64_t>(
      launchTime + perInstruction * static_cast<double>(grid.steps) /
                       getSettings().multiprocessors);
  return kSuccess;
}

FP8EMU_API int cuLaunchKernelEx(const LaunchConfig *config,
                                FunctionState *function, void **params,
                                void **) {
  if (int error = enter())
    return error;
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
