/* A host that knows nothing of the compiler, nor of libm, and loads it as Python
   loads extensions: for whoever asked, and nobody else. */

#include "fp8-c/Program.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

/* The weight is computed while compiling, by code that calls libm; the program
   calls libfp8rt. */
static const char text[] =
    "func.func @layer(%x: tensor<1x16xf32>) -> tensor<1x1xf32> {\n"
    "  %c = arith.constant dense<[[0.0], [1.0], [2.0], [3.0], [4.0], [5.0],\n"
    "    [6.0], [7.0], [8.0], [0.0], [0.0], [0.0], [0.0], [0.0], [0.0],\n"
    "    [0.0]]> : tensor<16x1xf32>\n"
    "  %w = math.cbrt %c : tensor<16x1xf32>\n"
    "  %zero = arith.constant dense<0.0> : tensor<1x1xf32>\n"
    "  %y = linalg.matmul ins(%x, %w : tensor<1x16xf32>, tensor<16x1xf32>)\n"
    "      outs(%zero : tensor<1x1xf32>) -> tensor<1x1xf32>\n"
    "  %z = math.cbrt %y : tensor<1x1xf32>\n"
    "  return %z : tensor<1x1xf32>\n"
    "}\n";

static void *library;

static void *find(const char *name) {
  void *symbol = dlsym(library, name);
  if (!symbol)
    fprintf(stderr, "%s\n", dlerror());
  return symbol;
}

#define DEFINE(name)                                                           \
  __typeof__(&name) name##_ = (__typeof__(&name))find(#name)

int main(int argc, char **argv) {
  library = argc == 2 ? dlopen(argv[1], RTLD_NOW | RTLD_LOCAL) : NULL;
  if (!library || dlsym(RTLD_DEFAULT, "expf")) {
    fprintf(stderr, "expected the path of libfp8c, and no libm before it\n");
    return 1;
  }
  DEFINE(fp8rt_get_last_error);
  DEFINE(fp8c_context_create);
  DEFINE(fp8c_source_create);
  DEFINE(fp8c_compile);
  DEFINE(fp8c_program_run);
  fp8c_context *context;
  fp8c_source *source;
  fp8c_program *program;
  fp8c_option option = {"recipe", "current"};
  float data[16] = {0, 0, 0, 0, 0, 0, 0, 0, 1};
  int64_t sizes[] = {1, 16};
  fp8c_device host = {FP8C_CPU, 0};
  fp8c_dtype f32 = {FP8C_FLOAT, 32, 1};
  fp8c_tensor x = fp8c_make_tensor(data, host, f32, 2, sizes);
  const fp8c_tensor *arguments[] = {&x};
  fp8c_managed_tensor *y;
  if (fp8c_context_create_(&context) ||
      fp8c_source_create_(context, text, strlen(text), "text", &source) ||
      fp8c_compile_(source, &option, 1, &program) ||
      fp8c_program_run_(program, NULL, arguments, 1, &y, 1, 0, NULL)) {
    fprintf(stderr, "%s\n", fp8rt_get_last_error_());
    return 1;
  }
  printf("%.3f\n", ((float *)y->tensor.data)[0]);
  return 0;
}
