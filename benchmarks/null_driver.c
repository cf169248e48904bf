//===- null_driver.c - A driver that launches nothing ---------------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The emulator's driver, but for launches and fills, which do nothing, and
// memory, which is the host's: what is left of a call is what the host does.
// FP8_NULL_DRIVER_OF is the path of libfp8emu.so, and this is to have the same
// name, by which the compiler knows that it is to embed PTX.
//
//===----------------------------------------------------------------------===//

#include <dlfcn.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

static void *find(const char *name) {
  static void *library;
  if (!library)
    library = dlopen(getenv("FP8_NULL_DRIVER_OF"), RTLD_NOW | RTLD_LOCAL);
  return library ? dlsym(library, name) : NULL;
}

/// Takes any number of arguments: nobody reads one.
static int succeed(void) { return 0; }

/// The host's memory, without what the emulator remembers of its own.
static int allocate(uint64_t *pointer, size_t bytes) {
  *pointer = (uint64_t)aligned_alloc(256, (bytes + 255) / 256 * 256);
  return *pointer ? 0 : 2;
}

static int release(uint64_t pointer) {
  free((void *)pointer);
  return 0;
}

static const struct {
  const char *name;
  void *function;
} kOwn[] = {
    {"cuLaunchKernelEx", (void *)succeed},
    {"cuMemsetD8Async", (void *)succeed},
    {"cuMemsetD16Async", (void *)succeed},
    {"cuMemsetD32Async", (void *)succeed},
    {"cuMemAllocFromPoolAsync", (void *)allocate},
    {"cuMemFreeAsync", (void *)release},
};

int cuDriverGetVersion(int *version) {
  int (*theirs)(int *) = (int (*)(int *))find("cuDriverGetVersion");
  return theirs ? theirs(version) : 1;
}

int fp8emu_takes_host_tensors(void) { return 1; }

int cuGetProcAddress_v2(const char *name, void **function, int version,
                        uint64_t flags, int *status) {
  for (size_t i = 0; i < sizeof(kOwn) / sizeof(kOwn[0]); ++i)
    if (strcmp(name, kOwn[i].name) == 0) {
      *function = kOwn[i].function;
      return 0;
    }
  typedef int (*GetAddress)(const char *, void **, int, uint64_t, int *);
  GetAddress theirs = (GetAddress)find("cuGetProcAddress_v2");
  return theirs ? theirs(name, function, version, flags, status) : 1;
}
