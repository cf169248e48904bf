/* Compiles a program from a string, prints what was decided of its matrix
   product, and runs it on a GPU, in a stream of ours, or on the CPU if the
   argument is `cpu`. */

#include "fp8-c/Compiler.h"
#include "fp8-c/Program.h"
#include "fp8/Runtime/Memory.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char text[] =
    "!t = tensor<128x128xf32>\n"
    "func.func @layer(%x: !t, %w: !t {fp8.weight}) -> !t {\n"
    "  %zero = arith.constant dense<0.0> : !t\n"
    "  %y = linalg.matmul ins(%x, %w : !t, !t) outs(%zero : !t) -> !t\n"
    "  return %y : !t\n"
    "}\n";
static float x[128 * 128], w[128 * 128], y[128 * 128];
static fp8c_device device = {FP8C_CUDA, 0};
static fp8rt_stream stream;

static void check(fp8rt_status status) {
  if (status != FP8RT_OK) {
    fprintf(stderr, "error: %s\n", fp8rt_get_last_error());
    exit(1);
  }
}

static void print_remark(const fp8c_remark *remark, void *user_data) {
  fprintf(user_data, "%s\n", remark->text);
}

/* A tensor where the program runs: on a GPU, in memory of its own. */
static fp8c_tensor make_tensor(float *data) {
  static int64_t sizes[] = {128, 128};
  fp8c_dtype f32 = {FP8C_FLOAT, 32, 1};
  void *memory = data;
  if (device.type == FP8C_CUDA) {
    check(fp8rt_memory_alloc(device.index, sizeof(x), &memory));
    check(fp8rt_memory_copy(device.index, memory, data, sizeof(x), stream));
  }
  return fp8c_make_tensor(memory, device, f32, 2, sizes);
}

int main(int argc, char **argv) {
  if (argc > 1 && strcmp(argv[1], "cpu") == 0)
    device.type = FP8C_CPU;
  else
    check(fp8rt_stream_create(device.index, &stream));
  for (int i = 0; i < 128 * 128; ++i)
    x[i] = 1.75, w[i] = 0.875;

  fp8c_context *context;
  fp8c_source *source;
  fp8c_program *program;
  const char *target = device.type == FP8C_CPU ? "cpu" : "sm_90a";
  fp8c_option options[] = {{"recipe", "current"}, {"target", target}};
  check(fp8c_context_create(&context));
  check(fp8c_context_set_remark_handler(context, print_remark, stdout));
  check(fp8c_source_create(context, text, strlen(text), "text", &source));
  check(fp8c_compile(source, options, 2, &program));
  fp8c_source_destroy(source);
  fp8c_context_destroy(context);

  fp8c_tensor tx = make_tensor(x), tw = make_tensor(w), ty = make_tensor(y);
  const fp8c_tensor *arguments[] = {&tx, &tw}, *results[] = {&ty};
  check(fp8c_program_run_into(program, "layer", arguments, 2, results, 1,
                              /*state=*/0, stream));
  if (device.type == FP8C_CUDA) {
    check(fp8rt_memory_copy(device.index, y, ty.data, sizeof(y), stream));
    check(fp8rt_stream_synchronize(device.index, stream));
  }
  printf("%g, and 196 was expected\n", y[0]);
  fp8c_program_destroy(program);
  return y[0] == 196 ? 0 : 1;
}
