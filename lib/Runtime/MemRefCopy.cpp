//===- MemRefCopy.cpp - Copies between strided memrefs --------------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What upstream's lowering of `memref.copy` calls when a side is not dense.
//
//===----------------------------------------------------------------------===//

#include <cstdint>
#include <cstring>

namespace {
/// MLIR's C interface: a rank and a pointer to the descriptor, which is two
/// pointers, the offset, `rank` sizes and `rank` strides.
struct UnrankedMemRef {
  int64_t rank;
  const int64_t *descriptor;

  char *getData(int64_t elementSize) const {
    return reinterpret_cast<char *>(descriptor[1]) +
           descriptor[2] * elementSize;
  }
  const int64_t *getSizes() const { return descriptor + 3; }
  const int64_t *getStrides() const { return descriptor + 3 + rank; }
};
} // namespace

static void copy(int64_t elementSize, int64_t rank, const int64_t *sizes,
                 char *destination, const int64_t *destinationStrides,
                 const char *source, const int64_t *sourceStrides) {
  if (rank == 0) {
    std::memcpy(destination, source, elementSize);
    return;
  }
  if (rank == 1 && *destinationStrides == 1 && *sourceStrides == 1) {
    std::memcpy(destination, source, *sizes * elementSize);
    return;
  }
  for (int64_t i = 0; i < *sizes; ++i)
    copy(elementSize, rank - 1, sizes + 1,
         destination + i * *destinationStrides * elementSize,
         destinationStrides + 1, source + i * *sourceStrides * elementSize,
         sourceStrides + 1);
}

/// The sizes of both are equal.
extern "C" void memrefCopy(int64_t elementSize, const UnrankedMemRef *source,
                           const UnrankedMemRef *destination) {
  const int64_t *sizes = source->getSizes();
  for (int64_t i = 0; i < source->rank; ++i)
    if (sizes[i] == 0)
      return;
  copy(elementSize, source->rank, sizes, destination->getData(elementSize),
       destination->getStrides(), source->getData(elementSize),
       source->getStrides());
}
