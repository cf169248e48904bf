//===- Parallel.cpp - The parallel loop compiled code calls ---------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The threads are oneDNN's, of whichever OpenMP runtime it was built with:
// others would share the cores with its threads, which stay awake for a while
// after each product. Both GNU's and LLVM's have the entry points that GCC's
// code calls, which take a function.
//
// A child of fork() has one thread. LLVM's runtime knows; GNU's would wait for
// those that it had in the parent, in our loops and in oneDNN's products. So
// the thread that forks gives its threads up before: parent and child start new
// ones when they need them.
//
//===----------------------------------------------------------------------===//

#include "fp8/Runtime/Parallel.h"

#include "../ProgramDetail.h"

#include <dlfcn.h>
#include <pthread.h>

#include <algorithm>
#include <atomic>
#include <cstdio>

// ThreadSanitizer does not see how the OpenMP runtime orders what threads read
// and write: after a start what came before it, after an end what they did.
#if defined(__has_feature)
#if __has_feature(thread_sanitizer)
#include <sanitizer/tsan_interface.h>
#define FP8_HAPPENS_BEFORE(ADDRESS) __tsan_release(ADDRESS)
#define FP8_HAPPENS_AFTER(ADDRESS) __tsan_acquire(ADDRESS)
#endif
#endif
#ifndef FP8_HAPPENS_BEFORE
#define FP8_HAPPENS_BEFORE(ADDRESS)
#define FP8_HAPPENS_AFTER(ADDRESS)
#endif

namespace {
using Body = void (*)(int64_t begin, int64_t end, void *context);

struct OpenMP {
  void (*parallel)(void (*function)(void *), void *data, unsigned threads,
                   unsigned flags);
  int (*getMaxThreads)();
  int (*isInParallel)();
  /// Null unless the runtime is GNU's.
  int (*endThreads)(int kind);

  template <typename T>
  static void find(T &function, const char *name) {
    function = reinterpret_cast<T>(dlsym(RTLD_DEFAULT, name));
  }
  OpenMP() {
    find(parallel, "GOMP_parallel");
    find(getMaxThreads, "omp_get_max_threads");
    find(isInParallel, "omp_in_parallel");
    find(endThreads, "omp_pause_resource_all");
    if (dlsym(RTLD_DEFAULT, "__kmpc_fork_call"))
      endThreads = nullptr;
  }
  static const OpenMP &get() {
    static const OpenMP openMP;
    return openMP;
  }

  int getNumThreads() const {
    if (!parallel || !getMaxThreads || !isInParallel || isInParallel())
      return 1;
    return getMaxThreads();
  }

  /// Inside of a loop, which has to end with the threads that it began with,
  /// nothing is done; a child of that has no other loop in it.
  void prepareFork() const {
    constexpr int hard = 2; // omp_pause_hard
    if (endThreads)
      endThreads(hard);
  }
};

/// When the library is loaded: products need no loop of ours.
struct ForkHandler {
  ForkHandler() {
    OpenMP::get();
    pthread_atfork([] { OpenMP::get().prepareFork(); }, nullptr, nullptr);
  }
} forkHandler;

/// What the threads take their ranges from.
struct Loop {
  Body body;
  void *context;
  int64_t count;
  /// Iterations that are taken at a time.
  int64_t step;
  std::atomic<int64_t> next{0};
  /// Why the first thread that gave up did.
  std::atomic_flag hasFailed = ATOMIC_FLAG_INIT;
  fp8rt_status status = FP8RT_OK;
  char message[512] = "";

  void runRanges() {
    for (;;) {
      int64_t begin = next.fetch_add(step, std::memory_order_relaxed);
      if (begin >= count)
        break;
      body(begin, std::min(begin + step, count), context);
    }
  }

  /// A thread where the program gives up leaves the loop as others do.
  void run() {
    FP8_HAPPENS_AFTER(this);
    auto runRanges = [](void *loop) { static_cast<Loop *>(loop)->runRanges(); };
    const char *why;
    fp8rt_status failure = fp8rt::detail::runInFrame(runRanges, this, why);
    if (failure && !hasFailed.test_and_set()) {
      status = failure;
      std::snprintf(message, sizeof(message), "%s", why);
    }
    FP8_HAPPENS_BEFORE(this);
  }
};
} // namespace

extern "C" void fp8rt_parallel_for(int64_t count, void *body, void *context) {
  const OpenMP &openMP = OpenMP::get();
  auto function = reinterpret_cast<Body>(body);
  if (count <= 0)
    return;
  int64_t threads = count == 1 ? 1 : openMP.getNumThreads();
  if (threads <= 1)
    return function(0, count, context);
  threads = std::min(threads, count);
  // A thread that the system has taken away, or whose core is slower, gets
  // less to do; neighbouring iterations stay together.
  constexpr int64_t rangesPerThread = 8;
  Loop loop{function, context, count,
            std::max<int64_t>(count / (threads * rangesPerThread), 1)};
  FP8_HAPPENS_BEFORE(&loop);
  openMP.parallel([](void *data) { static_cast<Loop *>(data)->run(); }, &loop,
                  static_cast<unsigned>(threads), /*flags=*/0);
  FP8_HAPPENS_AFTER(&loop);
  if (loop.status)
    fp8rt::detail::giveUp(loop.status, loop.message);
}
