//===- graphs.h - The driver's graphs, for checks on a GPU --------*- C -*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FP8_TEST_INTEGRATION_CUDA_GRAPHS_H
#define FP8_TEST_INTEGRATION_CUDA_GRAPHS_H

#include <dlfcn.h>
#include <stdlib.h>

/// The driver's graphs, which libfp8rt has no need of.
typedef struct graphs {
  int (*begin)(void *stream, int mode);
  int (*end)(void *stream, void **graph);
  int (*instantiate)(void **exec, void *graph, unsigned long long flags);
  int (*launch)(void *exec, void *stream);
  int (*retain)(void **context, int device);
  int (*set_current)(void *context);
} graphs;

enum {
  GRAPHS_CAPTURE_GLOBAL = 0, /* the strictest mode */
  GRAPHS_FREE_ON_LAUNCH = 1  /* what an earlier launch allocated */
};

/// All null without a driver.
static inline graphs find_graphs(void) {
  const char *path = getenv("FP8_CUDA_DRIVER");
  void *driver = dlopen(path && *path ? path : "libcuda.so.1", RTLD_NOW);
  graphs g = {0};
  if (!driver)
    return g;
  *(void **)&g.begin = dlsym(driver, "cuStreamBeginCapture_v2");
  *(void **)&g.end = dlsym(driver, "cuStreamEndCapture");
  *(void **)&g.instantiate = dlsym(driver, "cuGraphInstantiateWithFlags");
  *(void **)&g.launch = dlsym(driver, "cuGraphLaunch");
  *(void **)&g.retain = dlsym(driver, "cuDevicePrimaryCtxRetain");
  *(void **)&g.set_current = dlsym(driver, "cuCtxSetCurrent");
  return g;
}

/// libfp8rt leaves no context current; who calls the driver needs one. Returns
/// 0 if it cannot be, or if the driver has no graphs.
static inline int enter_graphs(const graphs *g, int device) {
  void *context = NULL;
  return g->begin && g->end && g->instantiate && g->launch && g->retain &&
         g->set_current && g->retain(&context, device) == 0 &&
         g->set_current(context) == 0;
}

#endif // FP8_TEST_INTEGRATION_CUDA_GRAPHS_H
