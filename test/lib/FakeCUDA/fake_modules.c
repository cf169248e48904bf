//===- fake_modules.c - Modules, launches and tensor maps -----------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "fake_state.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct module {
  context *owner;
  char *text; /* of PTX */
} module;

typedef struct function {
  module *owner;
  char name[256];
  int static_smem, max_dynamic_smem;
  uint32_t cluster;
  uint32_t num_params, param_bytes[64];
} function;

/// Bytes of shared memory of a block: 48 KiB, or 227 KiB for a kernel that asks
/// for them; of an SM's 228 KiB the system keeps 1 KiB for each block.
enum {
  DEFAULT_SMEM = 49152,
  MAX_SMEM = 232448,
  SM_SMEM = 233472,
  RESERVED_SMEM = 1024,
  SM_THREADS = 2048
};

static fake_launch last;

void fake_cuda_last_launch(fake_launch *launch) {
  pthread_mutex_lock(&fake_mutex);
  *launch = last;
  pthread_mutex_unlock(&fake_mutex);
}

//===----------------------------------------------------------------------===//
// Modules
//===----------------------------------------------------------------------===//

/// What the image is for: the number after ".target sm_", or the bits of an
/// ELF.
static int get_arch(const char *image) {
  const char *target = strstr(image, ".target sm_");
  return target ? atoi(target + strlen(".target sm_")) : 0;
}

/// What the kernels of the image have before a launch adds to it; cubins are
/// taken to have nothing.
static int get_static_smem(const char *text) {
  const char *declaration = text;
  int bytes = 0, size;
  while (declaration && (declaration = strstr(declaration, "\n.shared "))) {
    ++declaration;
    if (sscanf(declaration, ".shared .align %*d .b8 %*[^[][%d]", &size) == 1)
      bytes += size;
  }
  return bytes;
}

/// Reads the parameters that follow ".entry NAME(": their types, or of arrays
/// of bytes the extents.
static void get_params(const char *text, function *f) {
  const char *end = strchr(text, ')');
  while ((text = strstr(text, ".param ")) && text < end && f->num_params < 64) {
    const char *stop = text + strcspn(text, ",)");
    int bytes = 0;
    const char *extent = memchr(text, '[', (size_t)(stop - text));
    if (extent)
      bytes = atoi(extent + 1);
    for (const char *type = text + strlen(".param"); !bytes && type < stop;
         ++type)
      if (*type == '.' && strchr("usbf", type[1]))
        bytes = atoi(type + 2) / 8;
    f->param_bytes[f->num_params++] = (uint32_t)bytes;
    text = stop;
  }
}

/// The blocks of a cluster that the kernel was compiled for, 1 without; those of
/// cubins are not known, 0.
static uint32_t get_cluster(const char *entry) {
  uint32_t x = 1, y = 1, z = 1;
  const char *end = strchr(entry, '{');
  const char *directive = strstr(entry, ".reqnctapercluster");
  if (directive && end && directive < end)
    sscanf(directive, ".reqnctapercluster %u, %u, %u", &x, &y, &z);
  return x * y * z;
}

CUresult cuModuleLoadDataEx(module **result, const void *image, unsigned count,
                            int *options, void **values) {
  ENTER_CONTEXT(true);
  bool is_elf = memcmp(image, "\177ELF", 4) == 0;
  const char *text = image;
  if (is_elf && ((const unsigned char *)image)[49] != fake_arch)
    return 209;
  if (!is_elf && strstr(text, ".version 99."))
    return 222;
  if (!is_elf && get_arch(text) > fake_arch)
    return 218;
  if (!is_elf && strstr(text, "syntax error")) {
    char *log = NULL;
    size_t size = 0;
    for (unsigned i = 0; i < count; ++i) {
      if (options[i] == 5)
        log = values[i];
      if (options[i] == 6)
        size = (size_t)values[i];
    }
    if (log)
      snprintf(log, size, "line 4; error   : unexpected 'syntax'\nfatal.\n");
    return 218;
  }
  *result = calloc(1, sizeof(module));
  (*result)->owner = current();
  (*result)->text = is_elf ? NULL : strdup(text);
  return 0;
}

CUresult cuModuleUnload(module *unloaded) {
  ENTER_CONTEXT(true);
  free(unloaded->text);
  free(unloaded);
  return 0;
}

CUresult cuModuleGetFunction(function **result, module *owner,
                             const char *name) {
  ENTER_CONTEXT(false);
  char entry[300];
  snprintf(entry, sizeof(entry), ".entry %s(", name);
  if (owner->text && !strstr(owner->text, entry))
    return 500;
  *result = calloc(1, sizeof(function));
  (*result)->owner = owner;
  snprintf((*result)->name, sizeof((*result)->name), "%s", name);
  if (owner->text) {
    get_params(strstr(owner->text, entry), *result);
    (*result)->cluster = get_cluster(strstr(owner->text, entry));
  }
  (*result)->static_smem = get_static_smem(owner->text);
  (*result)->max_dynamic_smem = DEFAULT_SMEM - (*result)->static_smem;
  return 0;
}

CUresult cuFuncGetAttribute(int *value, int attribute, function *f) {
  ENTER_CONTEXT(false);
  switch (attribute) {
  case 0: /* threads of a block */
    *value = 512;
    return 0;
  case 1: /* static shared memory */
    *value = f->static_smem;
    return 0;
  case 3: /* local memory */
    *value = 0;
    return 0;
  case 4: /* registers */
    *value = 128;
    return 0;
  case 6: /* architecture of the code */
    *value = fake_arch;
    return 0;
  case 8:
    *value = f->max_dynamic_smem;
    return 0;
  }
  return 1;
}

CUresult cuFuncSetAttribute(function *f, int attribute, int value) {
  ENTER_CONTEXT(false);
  if (attribute != 8 || value > MAX_SMEM - f->static_smem)
    return 1;
  f->max_dynamic_smem = value;
  return 0;
}

typedef struct launch_attribute {
  int id;
  int padding;
  union {
    char bytes[64];
    uint32_t cluster[3];
    int flag;
  } value;
} launch_attribute;

typedef struct launch_config {
  uint32_t grid[3], block[3], dynamic_smem;
  stream *stream;
  launch_attribute *attributes;
  uint32_t num_attributes;
} launch_config;

/// The launch's clusters if it says so, or the kernel's; of a cubin the grid is
/// taken to be one. Multiprocessors are in groups of 16, of which some have 2
/// more: 132, of which clusters of more than 2 blocks reach 128.
CUresult cuOccupancyMaxActiveClusters(int *clusters, function *f,
                                      const launch_config *config) {
  ENTER_CONTEXT(false);
  if ((int)config->dynamic_smem > f->max_dynamic_smem)
    return 1;
  uint32_t cluster = f->cluster ? f->cluster : config->grid[0];
  for (uint32_t i = 0; i < config->num_attributes; ++i)
    if (config->attributes[i].id == 4)
      cluster = config->attributes[i].value.cluster[0] *
                config->attributes[i].value.cluster[1] *
                config->attributes[i].value.cluster[2];
  uint32_t threads = config->block[0] * config->block[1] * config->block[2];
  uint32_t bytes =
      config->dynamic_smem + (uint32_t)f->static_smem + RESERVED_SMEM;
  uint32_t blocks = SM_THREADS / threads;
  if (blocks > SM_SMEM / bytes)
    blocks = SM_SMEM / bytes;
  *clusters = (int)((cluster > 2 ? 128 : 132) * blocks / cluster);
  return 0;
}

CUresult cuLaunchKernelEx(const launch_config *config, function *f,
                          void **params, void **extra) {
  (void)extra;
  ENTER_CONTEXT(false);
  context *owner = f->owner->owner;
  if (owner != current() || (config->stream && config->stream->owner != owner))
    return 400;
  if ((int)config->dynamic_smem > f->max_dynamic_smem)
    return 1;
  pthread_mutex_lock(&fake_mutex);
  trace("  %s grid %ux%ux%u block %ux%ux%u smem %u", f->name, config->grid[0],
        config->grid[1], config->grid[2], config->block[0], config->block[1],
        config->block[2], config->dynamic_smem);
  memset(&last, 0, sizeof(last));
  memcpy(last.grid, config->grid, sizeof(last.grid));
  memcpy(last.block, config->block, sizeof(last.block));
  last.dynamic_smem = config->dynamic_smem;
  last.stream = config->stream;
  last.device = owner->device;
  for (uint32_t i = 0; i < config->num_attributes; ++i) {
    const launch_attribute *attribute = &config->attributes[i];
    if (attribute->id == 4)
      memcpy(last.cluster, attribute->value.cluster, sizeof(last.cluster));
    if (attribute->id == 6)
      last.overlap = attribute->value.flag;
  }
  if (params)
    memcpy(&last.first_param, params[0], sizeof(void *));
  last.num_params = params ? f->num_params : 0;
  for (uint32_t i = 0; i < last.num_params; ++i) {
    last.param_bytes[i] = f->param_bytes[i];
    memcpy(last.params[i], params[i],
           f->param_bytes[i] < 128 ? f->param_bytes[i] : 128);
  }
  pthread_mutex_unlock(&fake_mutex);
  return 0;
}

//===----------------------------------------------------------------------===//
// Tensor maps
//===----------------------------------------------------------------------===//

/// Writes what it is told, so that a test can read it.
CUresult cuTensorMapEncodeTiled(uint64_t *map, int type, uint32_t rank,
                                void *address, const uint64_t *sizes,
                                const uint64_t *strides, const uint32_t *box,
                                const uint32_t *element_strides, int interleave,
                                int swizzle, int l2_promotion, int oob_fill) {
  ENTER_CONTEXT(false);
  if ((uintptr_t)map % 64 != 0 || rank < 1 || rank > 5 || interleave ||
      oob_fill)
    return 1;
  memset(map, 0, 128);
  map[0] = (uintptr_t)address;
  map[1] = (uint64_t)type << 24 | rank << 16 | swizzle << 8 | l2_promotion;
  for (uint32_t i = 0; i < rank; ++i) {
    map[2 + i] = sizes[i];
    map[7 + i] = i == 0 ? 0 : strides[i - 1];
    map[12 + i / 2] |= (uint64_t)box[i] << 32 * (i % 2);
    if (element_strides[i] != 1)
      return 1;
  }
  return 0;
}
