//===- Gemm.cpp - The matrix product compiled code calls ------------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Maps a batched product with arbitrary strides onto oneDNN's sgemm, which
// wants one unit stride per matrix, and copies only what has none. In which
// order sgemm adds depends on the CPU, on the layouts and on how many rows and
// columns there are: without AVX-512 a row of a batch of 64 has other last bits
// than in one of 32. Loops of ours add in one order, for who asks.
//
//===----------------------------------------------------------------------===//

#include "fp8/Runtime/Gemm.h"

#include <dnnl.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <new>
#include <string_view>

namespace {
/// One matrix of a batch.
template <typename T>
struct Matrix {
  T *data;
  int64_t rows, columns;
  int64_t rowStride, columnStride;

  T &at(int64_t row, int64_t column) const {
    return data[row * rowStride + column * columnStride];
  }
  Matrix transposed() const {
    return {data, columns, rows, columnStride, rowStride};
  }
};

/// How sgemm is told about a matrix: row-major or, transposed, column-major.
struct Layout {
  char transpose;
  int64_t leadingDimension;
};
} // namespace

template <typename T>
static Matrix<T> matrixOf(const fp8rt_memref3d_f32 &memref, int64_t batch) {
  return {memref.data + memref.offset + batch * memref.strides[0],
          memref.sizes[1], memref.sizes[2], memref.strides[1],
          memref.strides[2]};
}

/// Whether rows lie one after the other, each contiguous. The stride of a
/// dimension of size 1 means nothing.
template <typename T>
static bool isRowMajor(const Matrix<T> &m, int64_t &leadingDimension) {
  leadingDimension = m.rows == 1 ? m.columns : m.rowStride;
  return (m.columns == 1 || m.columnStride == 1) &&
         leadingDimension >= m.columns;
}

/// False if the matrix must be copied first.
template <typename T>
static bool getLayout(const Matrix<T> &m, Layout &layout) {
  if (isRowMajor(m, layout.leadingDimension)) {
    layout.transpose = 'N';
    return true;
  }
  layout.transpose = 'T';
  return isRowMajor(m.transposed(), layout.leadingDimension);
}

template <typename From, typename To>
static void copy(const Matrix<From> &from, const Matrix<To> &to) {
  // Tiles, for the sake of whichever of the two is read or written across.
  constexpr int64_t tile = 32;
  for (int64_t row = 0; row < from.rows; row += tile)
    for (int64_t column = 0; column < from.columns; column += tile)
      for (int64_t i = row, e = std::min(row + tile, from.rows); i < e; ++i)
        for (int64_t j = column, f = std::min(column + tile, from.columns);
             j < f; ++j)
          to.at(i, j) = from.at(i, j);
}

/// A row-major copy in `storage`, or false without memory for it. The storage
/// is kept from one matrix of the batch to the next.
template <typename T>
static bool pack(Matrix<T> &m, std::unique_ptr<float[]> &storage) {
  if (!storage)
    storage.reset(new (std::nothrow) float[m.rows * m.columns]);
  if (!storage)
    return false;
  Matrix<float> packed{storage.get(), m.rows, m.columns, m.columns, 1};
  copy(m, packed);
  m = {packed.data, packed.rows, packed.columns, packed.rowStride, 1};
  return true;
}

/// The meaning: each sum begins with C's element, and the products follow in
/// the order of K. Columns are summed side by side from panels of B that fit a
/// cache, for any strides and without memory for copies.
static void gemmInOrder(const Matrix<const float> &a,
                        const Matrix<const float> &b, const Matrix<float> &c) {
  constexpr int64_t width = 16, depth = 256;
  float panel[depth][width];
  for (int64_t column = 0; column < c.columns; column += width)
    for (int64_t first = 0; first < a.columns; first += depth) {
      int64_t columns = std::min(width, c.columns - column);
      int64_t last = std::min(first + depth, a.columns);
      for (int64_t k = first; k < last; ++k)
        for (int64_t j = 0; j < width; ++j)
          panel[k - first][j] = j < columns ? b.at(column + j, k) : 0.0f;
      for (int64_t i = 0; i < c.rows; ++i) {
        float sums[width] = {};
        for (int64_t j = 0; j < columns; ++j)
          sums[j] = c.at(i, column + j);
        for (int64_t k = first; k < last; ++k) {
          float element = a.at(i, k);
          for (int64_t j = 0; j < width; ++j)
            sums[j] += element * panel[k - first][j];
        }
        for (int64_t j = 0; j < columns; ++j)
          c.at(i, column + j) = sums[j];
      }
    }
}

/// Whether the user asked for sums that are the same on every machine and for
/// any number of rows.
static bool isOrderAsked() {
  static const bool isAsked = [] {
    const char *value = std::getenv("FP8_CPU_SUMS");
    if (!value || !*value)
      return false;
    if (std::string_view(value) == "ordered")
      return true;
    // A product cannot fail.
    std::fprintf(stderr,
                 "fp8rt: expected FP8_CPU_SUMS in the environment to be "
                 "'ordered', but got '%.64s', which is ignored\n",
                 value);
    return false;
  }();
  return isAsked;
}

/// False if nothing was done.
static bool gemmByOneDNN(Matrix<const float> a, Matrix<const float> b,
                         Matrix<float> c, std::unique_ptr<float[]> storage[3]) {
  // sgemm has no transposed result, but C' = B * A' is one.
  Layout layoutC;
  Matrix<float> target = c;
  bool isPackedC = !getLayout(c, layoutC);
  if (isPackedC && (!pack(target, storage[2]) || !getLayout(target, layoutC)))
    return false;
  if (layoutC.transpose == 'T') {
    std::swap(a, b);
    c = c.transposed();
    target = target.transposed();
  }

  Layout layoutA, layoutB;
  if ((!getLayout(a, layoutA) &&
       (!pack(a, storage[0]) || !getLayout(a, layoutA))) ||
      (!getLayout(b, layoutB) &&
       (!pack(b, storage[1]) || !getLayout(b, layoutB))))
    return false;
  // sgemm multiplies by B, not by its transpose.
  char transposeB = layoutB.transpose == 'N' ? 'T' : 'N';
  if (dnnl_sgemm(layoutA.transpose, transposeB, c.rows, c.columns, a.columns,
                 /*alpha=*/1.0f, a.data, layoutA.leadingDimension, b.data,
                 layoutB.leadingDimension, /*beta=*/1.0f, target.data,
                 layoutC.leadingDimension) != dnnl_success)
    return false;
  if (isPackedC)
    copy(target, c);
  return true;
}

extern "C" void _mlir_ciface_fp8rt_gemm_f32(const fp8rt_memref3d_f32 *a,
                                            const fp8rt_memref3d_f32 *b,
                                            fp8rt_memref3d_f32 *c) {
  int64_t k = a->sizes[2];
  if (c->sizes[1] == 0 || c->sizes[2] == 0 || k == 0)
    return;
  bool isOrdered = isOrderAsked();
  std::unique_ptr<float[]> storage[3];
  for (int64_t batch = 0; batch < c->sizes[0]; ++batch) {
    auto matrixA = matrixOf<const float>(*a, batch);
    auto matrixB = matrixOf<const float>(*b, batch);
    auto matrixC = matrixOf<float>(*c, batch);
    if (isOrdered || !gemmByOneDNN(matrixA, matrixB, matrixC, storage))
      gemmInOrder(matrixA, matrixB, matrixC);
  }
}
