//===- repeat.c - Repeats a compiled program on a GPU ---------------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
//   repeat-check PROGRAM.so RUNS
//
// Calls the first function of a program on arguments of its own making, RUNS
// times directly and RUNS times by replaying a CUDA graph of one call, and
// compares every result with the first one's bytes. Prints one JSON object, and
// returns 1 if anything failed or differed; 77 without a GPU.
//
//===----------------------------------------------------------------------===//

#include "graphs.h"

#include "fp8/Runtime/Memory.h"
#include "fp8/Runtime/Program.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { DEVICE = 0, MAX_PORTS = 16, MAX_RANK = 8 };

/// A fp8rt_tensor of any rank: two pointers, the offset, sizes and strides.
typedef struct tensor {
  int64_t words[3 + 2 * MAX_RANK];
  size_t bytes;
} tensor;

static fp8rt_stream stream;
static fp8rt_context *context;
static const fp8rt_program_function *function;
static tensor arguments[MAX_PORTS], results[MAX_PORTS];
static char *expected[MAX_PORTS], *actual[MAX_PORTS];

static void fail(const char *what) {
  fprintf(stderr, "%s: %s\n", what, fp8rt_get_last_error());
  exit(1);
}
static void ok(fp8rt_status status, const char *what) {
  if (status != FP8RT_OK)
    fail(what);
}

static double now(void) {
  struct timespec time;
  timespec_get(&time, TIME_UTC);
  return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

//===----------------------------------------------------------------------===//
// Tensors
//===----------------------------------------------------------------------===//

/// Lays out a info's tensor in row-major order, without data.
static tensor make_tensor(const fp8rt_program_value *info) {
  if (info->rank < 0 || info->rank > MAX_RANK)
    fail("expected only tensors among arguments and results");
  tensor result = {{0}, (size_t)info->width};
  for (int i = info->rank - 1; i >= 0; --i) {
    if (info->sizes[i] < 0)
      fail("expected static sizes");
    result.words[3 + i] = info->sizes[i];
    result.words[3 + info->rank + i] =
        (int64_t)result.bytes / (int64_t)info->width;
    result.bytes *= (size_t)info->sizes[i];
  }
  return result;
}

/// Uniform in [-1, 1), the same in every process.
static float random_float(void) {
  static uint64_t state = 88172645463325252u;
  state ^= state << 13;
  state ^= state >> 7;
  state ^= state << 17;
  return (float)(state >> 40) / 8388608.0f - 1.0f;
}

static void upload(const fp8rt_program_value *info, tensor *argument) {
  int is_bf16 = strcmp(info->dtype, "BF16") == 0;
  if (!is_bf16 && strcmp(info->dtype, "F32") != 0)
    fail("expected arguments of BF16 or F32");
  char *host = malloc(argument->bytes);
  for (size_t i = 0; i < argument->bytes; i += (size_t)info->width) {
    float value = random_float();
    // The upper half of an f32 is a bf16, on this little-endian machine.
    memcpy(host + i, (char *)&value + (is_bf16 ? 2 : 0), (size_t)info->width);
  }
  void *data = NULL;
  ok(fp8rt_memory_alloc(DEVICE, argument->bytes, &data), "arguments");
  ok(fp8rt_memory_copy(DEVICE, data, host, argument->bytes, stream),
     "arguments");
  ok(fp8rt_stream_synchronize(DEVICE, stream), "arguments");
  free(host);
  argument->words[0] = argument->words[1] = (int64_t)(intptr_t)data;
}

//===----------------------------------------------------------------------===//
// Calls
//===----------------------------------------------------------------------===//

static void call(void) {
  void *in[MAX_PORTS], *out[MAX_PORTS];
  for (int i = 0; i < function->num_arguments; ++i)
    in[i] = arguments[i].words;
  for (int i = 0; i < function->num_results; ++i)
    out[i] = results[i].words;
  ok(fp8rt_program_call(function, in, out, /*state=*/0, context), "call");
}

static void download(char *hosts[]) {
  for (int i = 0; i < function->num_results; ++i)
    ok(fp8rt_memory_copy(DEVICE, hosts[i],
                         (void *)(intptr_t)results[i].words[1],
                         results[i].bytes, stream),
       "results");
  ok(fp8rt_stream_synchronize(DEVICE, stream), "results");
}

static void free_results(void) {
  for (int i = 0; i < function->num_results; ++i)
    ok(fp8rt_workspace_free(DEVICE, stream,
                            (void *)(intptr_t)results[i].words[0]),
       "results");
}

/// Whether the results on the device are not those of the first call.
static int differs(void) {
  download(actual);
  for (int i = 0; i < function->num_results; ++i)
    if (memcmp(actual[i], expected[i], results[i].bytes) != 0)
      return 1;
  return 0;
}

static int repeat_calls(int runs) {
  int differences = 0;
  for (int i = 0; i < runs; ++i) {
    call();
    differences += differs();
    free_results();
  }
  return differences;
}

static int repeat_graph(int runs) {
  graphs g = find_graphs();
  void *graph = NULL, *exec = NULL;
  if (!enter_graphs(&g, DEVICE) || g.begin(stream, GRAPHS_CAPTURE_GLOBAL) != 0)
    fail("expected a driver with graphs");
  call();
  if (g.end(stream, &graph) != 0 ||
      g.instantiate(&exec, graph, GRAPHS_FREE_ON_LAUNCH) != 0)
    fail("expected a call that can be captured");
  int differences = 0;
  for (int i = 0; i < runs; ++i) {
    if (g.launch(exec, stream) != 0)
      fail("expected a graph that can be launched");
    differences += differs();
  }
  return differences;
}

/// FNV-1a of the first call's results: the same arguments give the same bits on
/// every device of a kind, and on its model.
static uint64_t hash_results(void) {
  uint64_t hash = 0xcbf29ce484222325u;
  for (int i = 0; i < function->num_results; ++i)
    for (size_t j = 0; j < results[i].bytes; ++j)
      hash = (hash ^ (unsigned char)expected[i][j]) * 0x100000001b3u;
  return hash;
}

/// Microseconds of a call whose results are not looked at.
static double measure_calls(int runs) {
  double start = now();
  for (int i = 0; i < runs; ++i) {
    call();
    free_results();
  }
  ok(fp8rt_stream_synchronize(DEVICE, stream), "calls");
  return (now() - start) / runs * 1e6;
}

int main(int argc, char **argv) {
  int32_t count = 0;
  int runs = argc == 3 ? atoi(argv[2]) : 0;
  if (runs < 1) {
    fprintf(stderr, "usage: repeat-check PROGRAM.so RUNS\n");
    return 1;
  }
  if (fp8rt_device_get_count(&count) != FP8RT_OK || count == 0) {
    fprintf(stderr, "no GPU: %s\n", fp8rt_get_last_error());
    return 77;
  }
  fp8rt_program *program = NULL;
  const fp8rt_program_info *info = NULL;
  ok(fp8rt_program_open(argv[1], &program), "program");
  ok(fp8rt_program_get_info(program, &info), "program");
  function = info->functions;
  if (function->num_arguments > MAX_PORTS ||
      function->num_results > MAX_PORTS ||
      function->flags != FP8RT_FUNCTION_TAKES_CONTEXT)
    fail("expected a function for a GPU, without a state");
  ok(fp8rt_stream_create(DEVICE, &stream), "stream");
  ok(fp8rt_context_create(DEVICE, stream, &context), "context");
  for (int i = 0; i < function->num_arguments; ++i) {
    arguments[i] = make_tensor(&function->arguments[i]);
    upload(&function->arguments[i], &arguments[i]);
  }
  for (int i = 0; i < function->num_results; ++i) {
    results[i] = make_tensor(&function->results[i]);
    expected[i] = malloc(results[i].bytes);
    actual[i] = malloc(results[i].bytes);
  }
  call();
  download(expected);
  free_results();
  int calls = repeat_calls(runs), replays = repeat_graph(runs);
  printf("{\"function\": \"%s\", \"runs\": %d, \"different_calls\": %d, "
         "\"different_replays\": %d, \"call_us\": %.1f, "
         "\"results\": \"%016llx\"}\n",
         function->name, runs, calls, replays, measure_calls(runs),
         (unsigned long long)hash_results());
  return calls != 0 || replays != 0;
}
