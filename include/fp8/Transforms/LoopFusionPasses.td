//===- LoopFusionPasses.td - What goes through one tensor --*- tablegen -*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FP8_TRANSFORMS_LOOPFUSIONPASSES_TD
#define FP8_TRANSFORMS_LOOPFUSIONPASSES_TD

include "mlir/Pass/PassBase.td"

def FormFusionsPass : Pass<"fp8-form-fusions"> {
  let summary = "fuse what one pass over memory computes into an fp8.fusion";
  let description = [{
    Operations of a block that work on one tensor element by element become one
    `fp8.fusion`: those that read the same tensor, and those that read what
    another of them computes. So the casts of a tensor, its amax, its transposed
    copies and the arithmetic that makes it read and write memory once.

    ```mlir
    %0 = linalg.generic ... ins(%gate, %up : ...) { silu, mulf, truncf }
    %1 = fp8.quantize %0 scale(%s, %si : ...) : ...
    %2 = fp8.amax %0 block = [*, *] : ...
    %3 = fp8.transpose %1 permutation = [1, 0] : ...
    // becomes
    %codes, %amax, %transposed = fp8.fusion(%gate, %up, %s, %si) { ... } : ...
    %1 = fp8.assemble %codes, %si : ...
    %3 = fp8.assemble %transposed, %si : ...
    ```

    What needs a value that is only known when the whole tensor has been read,
    as a quantize with the scale of its own amax, begins another fusion; whole
    columns of 64 rows or fewer are known at once. The other fusion
    measures the blocks there whose scales wait for the tensor's amax. A
    number that two fusions need, and that light arithmetic makes of what is no
    more to read, is computed in both. Operations move; the order of effects
    stays what it was.

    With `position-dependent`, quantizes with a seed, whose random numbers go by an
    element's place in the tensor, and `fp8.hadamard`, whose 16 elements begin at
    places, take part: kernels of a GPU know places, the tiles that
    `fp8-tile-fusions` cuts do not. A rotation, with a `linalg.transpose` in
    front of it, is computed by each pass that reads it.
  }];
  let dependentDialects = ["::mlir::fp8::FP8Dialect"];
  let options = [
    Option<"positionDependent", "position-dependent", "bool", /*default=*/"false",
           "Take quantizes with a seed, and rotations, along">];
  let statistics = [
    Statistic<"numFormed", "num-formed", "Fusions formed">];
}

def TileFusionsPass : Pass<"fp8-tile-fusions", "::mlir::ModuleOp"> {
  let summary = "tile fp8.fusion: its body for each tile of the tensor";
  let description = [{
    A fusion becomes a call of a function, one for all equal fusions, which is an
    `scf.forall` over tiles of the domain with the body's operations on slices, so that what one computes is in the cache when the next
    reads it, and memory is passed over once. Tiles are whole blocks; of more rows
    where something is transposed; whole rows or columns where these are summed
    in their order. Each tile has its own amax of the tensor, and the amax of
    these follows: every result has the bits that it has without tiles, in
    whatever order they are computed.

    ```mlir
    %codes, %amax = fp8.fusion(%x, %s, %si) { ... }
    // becomes
    %codes, %amax = call @f_fusion(%x, %s, %si)
    // and in the function
    %codes, %amaxes = scf.forall (%i, %j) in (256, 2) shared_outs(...) {
      %0 = tensor.extract_slice %x[...] [8, 2048] [1, 1] : ...
      %1 = fp8.quantize %0 scale(%s, %si : ...) : ...
      %2 = fp8.amax %0 block = [*, *] : ...
      scf.forall.in_parallel { ... }
    }
    %amax = fp8.amax %amaxes block = [*, *] : ...
    ```

    Tensors that are only known to fit when the program runs are compared before
    they are cut. The loop is marked (`fp8.tiles`), so that nothing compares their
    parts again (`fp8-check-extents`). Fusions that are too small to be worth
    it, or that have sums in both directions, stay.
  }];
  let dependentDialects = ["::mlir::affine::AffineDialect",
                           "::mlir::bufferization::BufferizationDialect",
                           "::mlir::arith::ArithDialect",
                           "::mlir::cf::ControlFlowDialect",
                           "::mlir::func::FuncDialect",
                           "::mlir::LLVM::LLVMDialect",
                           "::mlir::linalg::LinalgDialect",
                           "::mlir::scf::SCFDialect",
                           "::mlir::tensor::TensorDialect"];
  let options = [
    Option<"elements", "elements", "int64_t", "16384",
           "Elements of a tile, about: what is computed of them stays in the "
           "cache, and takes longer than to wake a thread">];
  let statistics = [
    Statistic<"numTiled", "num-tiled", "Fusions cut into tiles">,
    Statistic<"numFunctions", "num-functions", "Functions that compute them">,
    Statistic<"numWhole", "num-whole", "Fusions left whole">];
}

#endif // FP8_TRANSFORMS_LOOPFUSIONPASSES_TD
