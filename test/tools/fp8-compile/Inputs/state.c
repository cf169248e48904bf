/* Steps of delayed scaling, as in state.mlir. */

#include "scaled.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char other[] = "{\"version\": 1, \"slots\": [{\"name\": \"x\", "
                            "\"format\": \"e4m3\"}]}";

int main(void) {
  float w[16];
  for (int i = 0; i < 16; ++i)
    w[i] = 0.5f;
  const float s[3] = {2, 1000, 4};
  fp8rt_tensor2 weight = fp8rt_make_tensor2(w, 16, 1), y;
  fp8rt_state state;
  if (fp8rt_program_create_state(&scaled_program, &state) != FP8RT_OK)
    return 1;
  for (int step = 0; step < 3; ++step) {
    fp8rt_status status = scaled_main(s[step], &weight, &y, state);
    printf("step %d: %d: %g\n", step, (int)status, *(float *)y.data);
    free(y.allocated);
    if (scaled_update_state(state) != FP8RT_OK)
      return 1;
  }
  fp8rt_state_destroy(state);

  fp8rt_status status = scaled_main(1, &weight, &y, state);
  printf("none: %d: %s\n", (int)status, fp8rt_get_last_error());
  if (fp8rt_state_create(other, strlen(other), &state) != FP8RT_OK)
    return 1;
  status = scaled_main(1, &weight, &y, state);
  printf("other: %d: %s\n", (int)status, fp8rt_get_last_error());
  return 0;
}
