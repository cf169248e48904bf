/* Calls the function of gpu.mlir in a stream. */

#include "gpu.h"
#include "fp8/Runtime/Memory.h"

#include <stdio.h>
#include <stdlib.h>

static void *x, *w;

/* Between the calls of the driver in its trace. */
static void mark(const char *text) {
  const char *path = getenv("FP8_EMULATOR_TRACE");
  FILE *file = path ? fopen(path, "a") : NULL;
  if (!file)
    return;
  fprintf(file, "%s\n", text);
  fclose(file);
}

static void call(const char *what, void *data, fp8rt_stream stream,
                 fp8rt_context *context) {
  fp8rt_tensor2 tx = fp8rt_make_tensor2(data, 32, 256);
  fp8rt_tensor2 tw = fp8rt_make_tensor2(w, 256, 64), y;
  fp8rt_status status = gpu_linear(&tx, &tw, &y, context);
  if (status != FP8RT_OK) {
    printf("%s: %d: %s\n", what, (int)status, fp8rt_get_last_error());
    return;
  }
  printf("%s: 0: [%d, %d]\n", what, (int)y.sizes[0], (int)y.sizes[1]);
  fp8rt_workspace_free(0, stream, y.allocated);
}

int main(void) {
  fp8rt_stream stream = NULL;
  fp8rt_context *context = NULL;
  static char host[32 * 256 * 2];
  fp8rt_status status = fp8rt_context_create(0, stream, &context);
  if (status != FP8RT_OK)
    printf("context: %d: %s\n", (int)status, fp8rt_get_last_error());
  else if (fp8rt_memory_alloc(0, 32 * 256 * 2 + 16, &x) != FP8RT_OK ||
           fp8rt_memory_alloc(0, 256 * 64 * 2, &w) != FP8RT_OK)
    return 1;
  mark("first call");
  call("call", x ? x : host, stream, context);
  mark("second call");
  call("call", x ? x : host, stream, context);
  mark("end of calls");
  if (context) {
    call("host", host, stream, context);
    call("misaligned", (char *)x + 2, stream, context);
  }
  fp8rt_context_destroy(context);
  return 0;
}
