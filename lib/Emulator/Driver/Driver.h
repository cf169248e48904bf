//===- Driver.h - What the parts of the driver share ------------*- C++ -*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The driver's ABI, as much of it as libfp8rt and its tests use ("CUDA Driver
// API"). Declared once more and not taken from lib/Runtime/CUDA, so that a
// mistake there is not made twice. All work is done when it is asked for, in
// the thread that asks, or recorded if the stream is captured.
//
//===----------------------------------------------------------------------===//

#ifndef FP8_LIB_EMULATOR_DRIVER_DRIVER_H
#define FP8_LIB_EMULATOR_DRIVER_DRIVER_H

#include "Exec/Machine.h"

#include <atomic>
#include <mutex>
#include <set>

#define FP8EMU_API extern "C" __attribute__((visibility("default")))

namespace fp8emu {

enum Result : int {
  kSuccess = 0,
  kInvalidValue = 1,
  kOutOfMemory = 2,
  kNotInitialized = 3,
  kNoDevice = 100,
  kInvalidDevice = 101,
  kInvalidImage = 200,
  kInvalidContext = 201,
  kNoBinaryForGPU = 209,
  kInvalidPTX = 218,
  kUnsupportedPTXVersion = 222,
  kInvalidHandle = 400,
  kNotFound = 500,
  kLaunchOutOfResources = 701,
  kNotSupported = 801,
  kCaptureUnsupported = 900,
  kCaptureInvalidated = 901,
  kUnknown = 999,
};

constexpr int kMaxDevices = 8;

/// A device's.
struct ContextState {
  int device = 0;
  std::atomic<int> lost{0}; /* the error that every call gives from then on */
};

struct PoolProps {
  int allocationType, handleTypes, locationType, device;
};

struct Pool {
  int device = 0;
  uint64_t threshold = 0;
};

/// Work of a stream that is captured: done by each launch of the graph.
struct Graph {
  using Work = std::function<int()>;
  std::vector<Work> work;
  std::vector<uint64_t> memory; /* allocated while it was captured */
  bool invalid = false;
  bool ended = false;
  ~Graph();
};

struct GraphHandle {
  std::shared_ptr<Graph> graph;
};

struct StreamState {
  ContextState *context = nullptr;
  std::shared_ptr<Graph> capture;
  /// Null if it is not captured, or no more.
  Graph *getCapture() const {
    return capture && !capture->ended ? capture.get() : nullptr;
  }
};

inline Graph *getCapture(const StreamState *stream) {
  return stream ? stream->getCapture() : nullptr;
}

struct EventState {
  uint64_t time = 0; /* of the device */
  bool recorded = false;
  std::shared_ptr<Graph> capture;
};

struct FunctionState;

struct ModuleState {
  ContextState *context = nullptr;
  std::shared_ptr<const Module> module;
  std::deque<FunctionState> functions;
  std::vector<uint64_t> globals;
  SymbolTable symbols;
  ~ModuleState();
};

struct FunctionState {
  ModuleState *module;
  std::unique_ptr<Program> program;
  int maxDynamicShared = 0;
};

constexpr int kClusterDimension = 4, kProgrammaticSerialization = 6;

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

/// Bytes of shared memory of a block and of a multiprocessor, of which the
/// system keeps 1 KiB for each block.
constexpr int kDefaultShared = 49152;
int getMaxShared();
int getMultiprocessorShared();
constexpr int kMultiprocessorThreads = 2048;
constexpr int kMaxThreads = 1024;

const Settings &getSettings();
ContextState &getContextState(int device);
/// The thread's context; null if it has none.
ContextState *getCurrent();
/// The work of streams is done one piece after the other.
std::mutex &getDeviceMutex();

/// The error of a call in the present context; `unsafe` in a capture of another
/// thread's, if the mode is not relaxed.
int enter(bool unsafe = false);
std::atomic<int> &getNumCaptures();
/// Nanoseconds that the device's work would have taken, by a rough count.
std::atomic<uint64_t> &getDeviceTime();
/// The time that anything a stream does takes. A thousand times a chip's, so
/// that who repeats what is short repeats little.
constexpr uint64_t kLaunchTime = 1'000'000;
int exchangeCaptureMode(int mode);

/// Does the work, or records it.
int submit(StreamState *stream, Graph::Work work);

/// Memory of the device, aligned to 256, filled with a pattern that is NaN.
/// 0 if there is none.
uint64_t allocate(size_t bytes, const Pool *pool, bool managed);
int release(uint64_t address);

/// Whether it is told what of the device's memory has been written.
bool tracksWrites();
void markUnwritten(uint64_t address, size_t bytes);
void markWritten(uint64_t address, size_t bytes);
/// Tracks a copy, which takes what is unwritten along within the device; what
/// reaches the host must be written.
void trackCopy(uint64_t to, uint64_t from, size_t bytes);

/// To the standard error and to the file for reports.
void writeReport(const std::string &text);
/// Tells the user what a kernel did wrong, and loses the context.
int reportFault(const Fault &fault, ContextState &context);

/// Whether `device` is one of the devices' numbers.
inline bool isDevice(int device) {
  return device >= 0 && device < static_cast<int>(getSettings().devices);
}

/// What comes next overlaps no launch: something else has been waited for.
void endOverlap();

/// How many clusters run at the same time.
int getActiveClusters(const FunctionState &function, const Dim3 &block,
                      const Dim3 &cluster, uint32_t dynamicShared);

/// Counts a call and says what it fails with, if that was asked for.
int beginCall(int function);
/// A line of FP8_EMULATOR_TRACE.
[[gnu::format(printf, 1, 2)]] void trace(const char *format, ...);
void recordLaunch(const Program &program, const LaunchConfig &config,
                  const std::vector<uint8_t> &params);
/// Adds to `problem` what of the settings names no function.
void checkFunctionNames(const Settings &settings, std::string &problem);

enum FunctionIndex : int {
#define FP8EMU_FUNCTION(name, symbol, version, parameters) k_##name,
#include "Functions.def"
  kNumFunctions
};

#define FP8EMU_FUNCTION(name, symbol, version, parameters)                     \
  FP8EMU_API int symbol parameters;
#include "Functions.def"

} // namespace fp8emu

#endif // FP8_LIB_EMULATOR_DRIVER_DRIVER_H
