#include "linear.h"

#include <stdio.h>
#include <stdlib.h>

int main(void) {
  /* bf16 is the upper half of a float: 0x3F80 is 1, 0x3F00 is 0.5. */
  static uint16_t x[32][256], w[256][64], bias[64];
  for (int i = 0; i < 32 * 256; ++i)
    x[i / 256][i % 256] = 0x3F80;
  for (int i = 0; i < 256 * 64; ++i)
    w[i / 64][i % 64] = 0x3F00;

  fp8rt_tensor2 tx = fp8rt_make_tensor2(x, 32, 256);
  fp8rt_tensor2 tw = fp8rt_make_tensor2(w, 256, 64);
  fp8rt_tensor1 tbias = fp8rt_make_tensor1(bias, 64);
  fp8rt_tensor2 y;
  if (linear_linear(&tx, &tw, &tbias, &y) != FP8RT_OK) {
    fprintf(stderr, "%s\n", fp8rt_get_last_error());
    return 1;
  }
  printf("[%d, %d] of %#x\n", (int)y.sizes[0], (int)y.sizes[1],
         ((uint16_t *)y.data)[0]);
  free(y.allocated);
  return 0;
}
