//===- MatmulParams.h - What a matmul kernel was given ----------*- C++ -*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FP8_LIB_KERNELS_MATMUL_MATMULPARAMS_H
#define FP8_LIB_KERNELS_MATMUL_MATMULPARAMS_H

#include "../Blocks/Epilogue.h"
#include "../Blocks/TileScheduler.h"
#include "fp8/Kernels/Matmul/MatmulSpec.h"
#include "llvm/ADT/StringMap.h"

namespace mlir::fp8 {

/// The parameters of a matmul kernel, and what of a tile is made of them.
class MatmulParams {
public:
  MatmulParams(KernelBuilder &b, const MatmulSpec &spec,
               llvm::StringMap<Value> params)
      : b(b), spec(spec), params(std::move(params)) {}

  /// A parameter by its name in docs/Kernels.md, null if there is none.
  Value getParam(const Twine &name) const { return params.lookup(name.str()); }
  /// The parameter of an argument, or of an extent, that the tile's result has:
  /// "a", ".map".
  Value getParam(const Tile &tile, StringRef name, StringRef part = "") const;
  /// Extents of all results, for the scheduler.
  TileScheduler::Extents getExtents() const;
  /// The result of the tile's batch, where each element is stored by itself.
  Value getResult(const Tile &tile) const;

  /// Brings tensor maps to the cache: one thread.
  void prefetchMaps() const;
  /// Gives the epilogue the factors, operands and captures of a tile.
  void setSources(Epilogue &epilogue, const Tile &tile) const;

  KernelBuilder &b;
  const MatmulSpec &spec;

private:
  FragmentSource getSource(StringRef name, Type type, bool alongM, bool alongN,
                           bool alongBatch, const Tile &tile) const;

  llvm::StringMap<Value> params;
};

/// Waits, with programmatic dependent launch (PTX ISA, griddepcontrol), for the
/// kernel before; lets the next one's blocks come in at once if as many have
/// room beside these.
void beginDependentLaunch(KernelBuilder &b, int64_t multiprocessors);

} // namespace mlir::fp8

#endif // FP8_LIB_KERNELS_MATMUL_MATMULPARAMS_H
