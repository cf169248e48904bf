#include <stdint.h>
#include <stdio.h>

// MLIR's descriptor of a one-dimensional memref.
struct Memref1D {
  float *base, *data;
  int64_t offset, sizes[1], strides[1];
};

void _mlir_ciface_add(struct Memref1D *result, struct Memref1D *x,
                      struct Memref1D *y);

int main(void) {
  float x[2] = {1, 2}, y[2] = {2.5, 2.5};
  struct Memref1D mx = {x, x, 0, {2}, {1}}, my = {y, y, 0, {2}, {1}}, result;
  _mlir_ciface_add(&result, &mx, &my);
  printf("%g %g\n", result.data[0], result.data[1]);
  return 0;
}
