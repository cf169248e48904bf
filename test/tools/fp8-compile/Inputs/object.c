/* Linked with the object of object.mlir, and has a function of its own that is
   called as one of the program is. */

#include "calls.h"

#include <stdio.h>
#include <stdlib.h>

int step(int x);
int step(int x) { return -x; }

int main(void) {
  float x[2] = {1, 2}, y[2] = {2.5, 2.5};
  fp8rt_tensor1 tx = fp8rt_make_tensor1(x, 2), ty = fp8rt_make_tensor1(y, 2);
  fp8rt_tensor1 sum;
  int32_t twice;
  if (calls_add(&tx, &ty, &sum) || calls_step(1, &twice)) {
    puts(fp8rt_get_last_error());
    return 1;
  }
  printf("%g %g\n", ((float *)sum.data)[0], ((float *)sum.data)[1]);
  printf("%d %d\n", (int)twice, step(1));
  free(sum.allocated);
  return 0;
}
