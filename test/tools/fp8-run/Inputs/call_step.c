/* A host with a function of its own that is called as the program's is. */
#include <stdint.h>
#include <stdio.h>

int32_t _mlir_ciface_step(int32_t x);
int32_t step(int32_t x) { return -x; }

int main(void) {
  printf("%d %d\n", _mlir_ciface_step(1), step(1));
  return 0;
}
