//===- devices.c - A C program that looks for a GPU -----------------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Prints how the calls end that every program with a GPU begins with.
//
//===----------------------------------------------------------------------===//

#include "fp8/Runtime/GpuWrappers.h"
#include "fp8/Runtime/Memory.h"
#include "fp8/Runtime/Module.h"
#include "fp8/Runtime/TensorMap.h"

#include <stdio.h>

static void report(const char *call, fp8rt_status status) {
  if (status == FP8RT_OK)
    printf("%s: ok\n", call);
  else
    printf("%s: %s: %s\n", call, fp8rt_stringify_status(status),
           fp8rt_get_last_error());
}

int main(void) {
  int32_t version = 0, count = 0;
  report("version", fp8rt_device_get_driver_version(&version));
  report("count", fp8rt_device_get_count(&count));
  printf("driver %d, devices %d\n", (int)version, (int)count);

  fp8rt_device_info info = {.struct_size = sizeof(info)};
  fp8rt_stream stream = NULL;
  report("info", fp8rt_device_get_info(0, &info));
  report("stream", fp8rt_stream_create(0, &stream));

  void *ptr = NULL;
  report("workspace", fp8rt_workspace_alloc(0, stream, 4096, 0, &ptr));
  report("free", fp8rt_workspace_free(0, stream, ptr));

  fp8rt_tensor_map_desc desc = {
      .struct_size = sizeof(desc),
      .address = (void *)4096,
      .type = FP8RT_TENSOR_MAP_U8,
      .rank = 2,
      .sizes = {128, 128},
      .strides = {0, 128},
      .box = {128, 64},
      .swizzle = FP8RT_TENSOR_MAP_SWIZZLE_128B,
  };
  fp8rt_tensor_map map;
  report("tensor map", fp8rt_tensor_map_get(0, &desc, &map));

  fp8rt_module module = 0;
  report("module", fp8rt_module_load(0, "no image", 8, &module));
  fp8rt_launch_config config = {sizeof(config), {1, 1, 1}, {1, 1, 1},
                                {0, 0, 0},      0,         0};
  report("launch", fp8rt_launch(0, &config, NULL, stream));

  mgpuStreamSynchronize(stream);
  report("wrapper", fp8rt_gpu_take_error());
  return 0;
}
