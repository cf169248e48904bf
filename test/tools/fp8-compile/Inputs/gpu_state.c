/* Makes two steps of the function of gpu-state.mlir. */

#include "fp8/Runtime/DeviceState.h"
#include "fp8/Runtime/Memory.h"
#include "scaled.h"

#include <stdio.h>
#include <stdlib.h>

/* Between the calls of the driver in its trace. */
static void mark(const char *text) {
  FILE *file = fopen(getenv("FP8_EMULATOR_TRACE"), "a");
  if (!file)
    return;
  fprintf(file, "%s\n", text);
  fclose(file);
}

int main(void) {
  fp8rt_stream stream = NULL;
  fp8rt_context *context = NULL;
  fp8rt_state state = 0;
  fp8rt_state_info info = {.struct_size = sizeof(info)};
  void *x = NULL, *w = NULL;
  if (fp8rt_context_create(0, stream, &context) != FP8RT_OK ||
      fp8rt_memory_alloc(0, 16 * 32 * 4, &x) != FP8RT_OK ||
      fp8rt_memory_alloc(0, 32 * 16 * 4, &w) != FP8RT_OK ||
      /* 0.747 in f32, so that there are amaxes. */
      fp8rt_memory_set(0, x, 0x3f, 16 * 32 * 4, stream) != FP8RT_OK ||
      fp8rt_memory_set(0, w, 0x3f, 32 * 16 * 4, stream) != FP8RT_OK ||
      fp8rt_program_create_state(&scaled_program, &state) != FP8RT_OK)
    return 1;
  for (int step = 0; step < 2; ++step) {
    fp8rt_tensor2 tx = fp8rt_make_tensor2(x, 16, 32);
    fp8rt_tensor2 tw = fp8rt_make_tensor2(w, 32, 16), y;
    mark(step == 0 ? "first call" : "second call");
    fp8rt_status status = scaled_main(&tx, &tw, &y, state, context);
    if (status != FP8RT_OK)
      puts(fp8rt_get_last_error());
    else
      fp8rt_workspace_free(0, stream, y.allocated);
    mark(step == 0 ? "first update" : "second update");
    fp8rt_status update = scaled_update_state(state, context);
    if (update != FP8RT_OK)
      puts(fp8rt_get_last_error());
    printf("step %d: %d, %d\n", step, (int)status, (int)update);
  }
  mark("download");
  /* The device has the state until then. */
  fp8rt_status before = fp8rt_state_get_info(state, &info);
  if (fp8rt_state_download(state, stream) != FP8RT_OK)
    puts(fp8rt_get_last_error());
  printf("info: %d, %d\n", (int)before,
         (int)fp8rt_state_get_info(state, &info));
  fp8rt_state_destroy(state);
  fp8rt_context_destroy(context);
  return 0;
}
