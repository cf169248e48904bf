/* Calls the functions of call.mlir and other.mlir, as C and as C++. */

#include "calls.h"
#include "other.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void print_error(const char *what, fp8rt_status status) {
  printf("%s: %d: %s\n", what, (int)status,
         status == FP8RT_OK ? "none" : fp8rt_get_last_error());
}

static void call_all(void) {
  float x[4] = {1, 2, 3, 4}, y[4] = {10, 20, 30, 40};
  fp8rt_tensor1 tx = fp8rt_make_tensor1(x, 4), ty = fp8rt_make_tensor1(y, 4);
  fp8rt_tensor1 sum;
  fp8rt_status status = calls_add(&tx, &ty, &sum);
  float *data = (float *)sum.data;
  printf("calls_add: %d: %g %g %g %g\n", (int)status, data[0], data[1], data[2],
         data[3]);
  free(sum.allocated);

  double scalar;
  uint8_t flag;
  tx = fp8rt_make_tensor1(x + 1, 2);
  status = calls_several(&tx, 2.5, &sum, &scalar, &flag);
  data = (float *)sum.data;
  printf("calls_several: %d: %g of %d, %g, %d\n", (int)status, data[1] / 2,
         (int)sum.sizes[0], scalar, flag);
  free(sum.allocated);

  uint16_t product; /* bf16: the upper half of a float */
  status = calls_scale(0x3F80, 255.0f * 16, &product);
  uint32_t bits = (uint32_t)product << 16;
  float value;
  memcpy(&value, &bits, sizeof(value));
  printf("calls_scale: %d: %g\n", (int)status, value);

  float filled[2] = {0, 0};
  fp8rt_tensor1 tm = fp8rt_make_tensor1(filled, 2);
  status = calls_fill(&tm, 7);
  printf("calls_fill: %d: %g %g\n", (int)status, filled[0], filled[1]);
  status = calls_nothing();
  printf("calls_nothing: %d\n", (int)status);

  fp8rt_tensor1 part, again;
  tx = fp8rt_make_tensor1(x, 2);
  ty = fp8rt_make_tensor1(y, 2);
  status = calls_share(&tx, &ty, &sum, &part, &again);
  data = (float *)sum.data;
  printf("calls_share: %d: %g %g, %g, %g\n", (int)status, data[0], data[1],
         *(float *)part.data, ((float *)again.data)[1]);
  free(sum.allocated);
  free(part.allocated);
  free(again.allocated);
  status = calls_keep(&tx, &ty, 5, &sum, &again);
  data = (float *)sum.data;
  printf("calls_keep: %d: %g %g of %g %g, ", (int)status, data[0], data[1],
         y[0], y[1]);
  data = (float *)again.data;
  printf("%g %g of %g %g\n", data[0], data[1], y[0], y[1]);
  free(sum.allocated);
  free(again.allocated);

  tx = fp8rt_make_tensor1(x, 1);
  ty = fp8rt_make_tensor1(y, 1);
  status = other_add(&tx, &ty, &sum);
  printf("other_add: %d: %g\n", (int)status, *(float *)sum.data);
  free(sum.allocated);
  printf("programs %s and %s\n", calls_program.functions[0].program->name,
         other_program.functions[0].program->name);
}

static void call_wrongly(void) {
  float x[4] = {1, 2, 3, 4}, y[4] = {4, 5, 6, 7};
  fp8rt_tensor1 good = fp8rt_make_tensor1(x, 4), bad = good, sum;
  print_error("null", calls_add(NULL, &good, &sum));
  bad.data = NULL;
  print_error("no data", calls_add(&good, &bad, &sum));
  print_error("no place", calls_add(&good, &good, NULL));
  bad = fp8rt_make_tensor1(x, 3);
  print_error("size", calls_add(&bad, &good, &sum));
  bad = fp8rt_make_tensor1(x, -1);
  print_error("negative", calls_join(&bad, &good, &sum));
  bad = good;
  bad.offset = 1;
  print_error("offset", calls_add(&bad, &good, &sum));
  bad = fp8rt_make_tensor1(x, 2);
  bad.strides[0] = 2;
  print_error("order", calls_fill(&bad, 0));
  bad = fp8rt_make_tensor1((char *)x + 2, 4);
  print_error("alignment", calls_add(&bad, &good, &sum));

  /* Found by the program itself, while it runs. */
  bad = fp8rt_make_tensor1(x, 3);
  print_error("sizes", calls_join(&good, &bad, &sum));
  good = fp8rt_make_tensor1(x, 2);
  bad = fp8rt_make_tensor1(y, 2);
  fp8rt_status status = calls_join(&good, &bad, &sum);
  printf("calls_join: %d: %g %g\n", (int)status, ((float *)sum.data)[0],
         ((float *)sum.data)[1]);
  free(sum.allocated);
  bad = fp8rt_make_tensor1(NULL, 0);
  status = calls_join(&bad, &bad, &sum);
  printf("none of 0: %d\n", (int)status);
  free(sum.allocated);
}

int main(void) {
  call_all();
  call_wrongly();
  return 0;
}
