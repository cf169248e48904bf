/* Steps of delayed scaling, as in functional-state.mlir. */

#include "scaled.h"

#include <stdio.h>
#include <stdlib.h>

enum { SLOTS = 2, LENGTH = 2 };

int main(void) {
  float w[16];
  for (int i = 0; i < 16; ++i)
    w[i] = 0.5f;
  const float s[3] = {2, 1000, 4};
  fp8rt_tensor2 weight = fp8rt_make_tensor2(w, 16, 1), y;

  /* What results point to is the caller's to free, as these are. */
  float *ones = malloc(SLOTS * sizeof(float));
  for (int i = 0; i < SLOTS; ++i)
    ones[i] = 1;
  fp8rt_tensor1 scale = fp8rt_make_tensor1(ones, SLOTS), new_scale;
  fp8rt_tensor2 history = fp8rt_make_tensor2(
                    calloc(LENGTH * SLOTS, sizeof(float)), LENGTH, SLOTS),
                new_history;
  for (int step = 0; step < 3; ++step) {
    fp8rt_status status = scaled_main(s[step], &weight, &scale, &history, &y,
                                      &new_scale, &new_history);
    if (status != FP8RT_OK) {
      puts(fp8rt_get_last_error());
      return 1;
    }
    printf("step %d: %d: %g\n", step, (int)status, *(float *)y.data);
    free(y.allocated);
    free(scale.allocated);
    free(history.allocated);
    scale = new_scale;
    history = new_history;
  }

  scale.sizes[0] = 1;
  fp8rt_status status =
      scaled_main(1, &weight, &scale, &history, &y, &new_scale, &new_history);
  printf("short: %d: %s\n", (int)status, fp8rt_get_last_error());
  free(scale.allocated);
  free(history.allocated);
  return 0;
}
