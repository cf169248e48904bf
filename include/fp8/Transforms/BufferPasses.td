//===- BufferPasses.td - Phase 5, buffers ------------------*- tablegen -*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FP8_TRANSFORMS_BUFFERPASSES_TD
#define FP8_TRANSFORMS_BUFFERPASSES_TD

include "mlir/Pass/PassBase.td"

def WidenContractionsPass : Pass<"fp8-widen-contractions"> {
  let summary = "convert bf16 and f16 contractions to f32 ones";
  let description = [{
    A contraction that stays in high precision is rewritten to
    `linalg.contract` with f32 operands and accumulator and a cast of the
    result; one with several M, N, K or batch loops is first collapsed to
    `[batch x] M x K` times `[batch x] N x K`. Products of bf16 or f16
    are exact in f32 (but for f16 x f16 below 2^-149); the sum is rounded once
    at the end instead of at every step, as every framework does it.
  }];
  let dependentDialects = [
    "::mlir::affine::AffineDialect", "::mlir::arith::ArithDialect",
    "::mlir::linalg::LinalgDialect", "::mlir::tensor::TensorDialect"];
  let statistics = [
    Statistic<"numWidened", "num-widened", "Contractions widened">];
}

def CheckExtentsPass : Pass<"fp8-check-extents", "::mlir::func::FuncOp"> {
  let summary = "compare at run time what types do not say";
  let description = [{
    Operations check that their operands fit (`RuntimeVerifiableOpInterface`), as
    upstream's `generate-runtime-verification` has it, but not where there is
    nothing to find: structured operations of static shape have been verified, and
    tiles are parts of tensors that have been compared before the loop
    (`fp8-tile-fusions`). Each check is code with a text of its own: of a program
    with dynamic extents it would be most of it, and of a static one most of what
    the passes that follow take time for. Loops over tiles are marked with
    `fp8.tiles`, and the mark goes; what an element decides within them, such as
    the row that it reads, is checked. So are the bytes of a tensor whose extents
    are no other tensor's: a number of elements that wraps would be memory for
    fewer.

    ```mlir
    %0 = tensor.extract_slice %x[%i] [8] [1] : tensor<?xf32> to tensor<8xf32>
    // becomes
    %fits = ...
    cf.assert %fits, "ERROR: Runtime op verification failed ..."
    %0 = tensor.extract_slice %x[%i] [8] [1] : tensor<?xf32> to tensor<8xf32>
    ```
  }];
  let dependentDialects = ["::mlir::affine::AffineDialect",
                           "::mlir::arith::ArithDialect",
                           "::mlir::cf::ControlFlowDialect",
                           "::mlir::tensor::TensorDialect"];
  let statistics = [
    Statistic<"numChecked", "num-checked", "Operations that are checked">];
}

def DecomposeAggregatesPass : Pass<"fp8-decompose-aggregates"> {
  let summary = "decompose softmax, pack and other aggregate linalg operations";
  let description = [{
    Upstream bufferizes and lowers only structured operations; aggregates
    (`linalg.softmax`, `winograd_*`) are first decomposed through their own
    interface, `linalg.pack` and `linalg.unpack` into padding, reshapes and
    transposes, or a gather where the extents of tiles show at run time, and
    `tensor.reshape` into a collapse and an expansion. A `tensor.gather` becomes
    a loop over its elements. A constant of equal
    elements that takes more than a MiB becomes a `linalg.fill`: it would be
    spelled out in the program's data. Of a large `tensor.pad` with known
    borders only these are filled, in place of all of the result; one of or to a
    tensor without elements becomes a `linalg.fill`. A `tensor.collapse_shape`
    of an unknown extent and one of 0 becomes a `tensor.empty`, as upstream takes
    the extent of both for known.

    With `gather-windows`, as on a GPU, a `tensor.pad` becomes one loop in which
    each element is the source's or the padding. So does a `tensor.insert_slice`
    into an argument that may not be written, of which all would be copied first.
    What is computed only to be padded is still written between its borders.
  }];
  let options = [
    Option<"gatherWindows", "gather-windows", "bool", /*default=*/"false",
           "Pad, and insert into read-only arguments, in one loop">];
  let dependentDialects = ["::mlir::affine::AffineDialect",
                           "::mlir::arith::ArithDialect",
                           "::mlir::cf::ControlFlowDialect",
                           "::mlir::linalg::LinalgDialect",
                           "::mlir::tensor::TensorDialect"];
}

def LowerDynamicExpandShapePass : Pass<"fp8-lower-dynamic-expand-shape"> {
  let summary = "lower memref.expand_shape to several unknown extents to a "
                "cast";
  let description = [{
    Upstream's `expand-strided-metadata` allows one unknown extent for each
    dimension that is expanded, and crashes if there are more; it divides by
    the known ones, of which one may be 0. These become
    `memref.reinterpret_cast`, with the extents that the operation gives.
  }];
  let dependentDialects = ["affine::AffineDialect", "arith::ArithDialect",
                           "memref::MemRefDialect"];
}

def OutlineEqualComputationsPass : Pass<"fp8-outline-equal-computations", "::mlir::ModuleOp"> {
  let summary = "outline and deduplicate equal computations";
  let description = [{
    Layers of a model are the same again and again. Structured operations on
    tensors that are equal but for their operands become calls of one private
    function, so that each is bufferized, lowered and compiled once. It is given the
    memory that they write, fills it itself, and has its own constants and slices
    and reshapes of what they read, whose memory may not be in one piece.
    What writes into a tensor that another operation made stays where it is, and so
    do operations in loops and branches, and those that nothing is equal to, unless
    the function has so many (`max-in-place`) that LLVM would take long for it.

    ```mlir
    %1 = linalg.exp ins(%x : tensor<64xf32>) outs(%0 : tensor<64xf32>) -> tensor<64xf32>
    %3 = linalg.exp ins(%1 : tensor<64xf32>) outs(%2 : tensor<64xf32>) -> tensor<64xf32>
    // becomes
    %1 = call @f_exp(%x, %0) : (tensor<64xf32>, tensor<64xf32>) -> tensor<64xf32>
    %3 = call @f_exp(%1, %2) : (tensor<64xf32>, tensor<64xf32>) -> tensor<64xf32>
    ```
  }];
  let dependentDialects = ["::mlir::func::FuncDialect",
                           "::mlir::LLVM::LLVMDialect"];
  let options = [
    Option<"maxInPlace", "max-in-place", "unsigned", /*default=*/"128",
           "Computations that nothing is equal to which a function may have">];
  let statistics = [
    Statistic<"numFunctions", "num-functions", "Functions that were made">,
    Statistic<"numCalls", "num-calls", "Operations that are calls now">];
}

def FreeBuffersPass : Pass<"fp8-free-buffers", "::mlir::func::FuncOp"> {
  let summary = "free memory after its last use, where that is seen";
  let description = [{
    Upstream's deallocation frees what a block has allocated at its end, all at
    once, after it has compared each buffer with each other for those that may be
    the same. Memory whose every use, by itself or through a view, is in the block
    that allocates it, that nothing returns and whose address nothing keeps
    is no other's: it is freed after the last of them, and marked as done
    (`bufferization.manual_deallocation`). A `memref.dealloc` of the program is
    erased before, since what reads the memory may have been moved behind it; one
    of what a call returns too, which is the caller's to free. A `memref.dealloc`
    of anything else is an error.
  }];
  let dependentDialects = ["::mlir::bufferization::BufferizationDialect",
                           "::mlir::memref::MemRefDialect"];
  let statistics = [Statistic<"numFreed", "num-freed", "Buffers that are freed">];
}

def MergeFillsPass : Pass<"fp8-merge-fills"> {
  let summary = "fill small buffers that begin as the same number at once";
  let description = [{
    On a GPU each fill is a launch, and what sums or maxima of a whole tensor are
    made in begins as zero. Buffers of a block that a fill with the same constant
    is the first to use, and that the block frees, become views of one that is
    filled once, 64 bytes apart at least. It is freed where the last of them was.

    ```mlir
    %0 = memref.alloc() : memref<1x1xf32>
    linalg.fill ins(%zero : f32) outs(%0 : memref<1x1xf32>)
    ...
    %1 = memref.alloc() : memref<1x1xf32>
    linalg.fill ins(%zero : f32) outs(%1 : memref<1x1xf32>)
    // becomes
    %all = memref.alloc() {alignment = 64 : i64} : memref<128xi8>
    %whole = memref.view %all[%c0][] : memref<128xi8> to memref<32xf32>
    linalg.fill ins(%zero : f32) outs(%whole : memref<32xf32>)
    %0 = memref.view %all[%c0][] : memref<128xi8> to memref<1x1xf32>
    %1 = memref.view %all[%c64][] : memref<128xi8> to memref<1x1xf32>
    ```

    Larger buffers, of more than 4096 bytes, are filled by themselves: together
    they would be in memory for longer.
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect",
                           "::mlir::linalg::LinalgDialect",
                           "::mlir::memref::MemRefDialect"];
  let statistics = [
    Statistic<"numMerged", "num-merged", "Buffers that are filled with others">];
}

def DuplicateEmptyTensorsPass
    : Pass<"fp8-duplicate-empty-tensors", "::mlir::func::FuncOp"> {
  let summary = "give each use of a destination a tensor.empty of its own";
  let description = [{
    Equal `tensor.empty` have been merged, and so have equal `linalg.fill` of them.
    Bufferization makes one buffer of them wherever their contents do not overlap
    in time: it is allocated for the first of its uses and freed after the last,
    although it may hold nothing for most of the program; what is filled once is
    copied for all uses but one; and each use is compared with each other, which
    takes time with the square of their number. Here every use in the block gets a
    `tensor.empty` just before it, filled if it was, and who allocates in fusion
    order finds the memory that another one has left.

    ```mlir
    %0 = tensor.empty() : tensor<64x64xf32>
    %1 = linalg.exp ins(%x : ...) outs(%0 : ...)
    %2 = linalg.abs ins(%y : ...) outs(%0 : ...)
    // becomes
    %0 = tensor.empty() : tensor<64x64xf32>
    %1 = linalg.exp ins(%x : ...) outs(%0 : ...)
    %2 = tensor.empty() : tensor<64x64xf32>
    %3 = linalg.abs ins(%y : ...) outs(%2 : ...)
    ```
  }];
  let statistics = [
    Statistic<"numSeparated", "num-separated",
              "Uses that got memory of their own">];
}

def SeparateReadsPass : Pass<"fp8-separate-reads", "::mlir::func::FuncOp"> {
  let summary = "give each of many reads of a tensor a tensor of its own";
  let description = [{
    Bufferization compares a read of a tensor with all others, which takes time
    with the square of their number. An argument, or what an operation has
    written to new memory, that more than `max-reads` operations read and nothing
    else uses, is a buffer that is not written to again: each of them reads it
    through a `bufferization.to_tensor` of its own, which bufferization folds.

    ```mlir
    %1 = linalg.matmul ins(%x, %a : ...) outs(%0 : ...)
    // becomes
    %m = bufferization.to_buffer %x read_only : tensor<8x8xf32> to memref<8x8xf32>
    ...
    %y = bufferization.to_tensor %m restrict : memref<8x8xf32> to tensor<8x8xf32>
    %1 = linalg.matmul ins(%y, %a : ...) outs(%0 : ...)
    ```
  }];
  let options = [
    Option<"maxReads", "max-reads", "unsigned", "16",
           "How many reads share a tensor">
  ];
  let statistics = [
    Statistic<"numSeparated", "num-separated",
              "Reads that got a tensor of their own">];
  let dependentDialects = ["::mlir::bufferization::BufferizationDialect"];
}

def SinkProducersPass : Pass<"fp8-sink-producers"> {
  let summary = "make tensors just before they are needed, to save memory";
  let description = [{
    An operation without effects moves to before the first that needs its results
    where that lowers the peak of what is allocated in between and raises it
    nowhere: it makes more than it frees, as the cast of a weight does, which is an
    argument, and what it frees needs no more room than what that user makes after
    it. Where there is more in memory at the user than anywhere in between, the
    order stays. An amax that is recorded is recorded where its tensor is now made.

    The order in which kernels are launched costs nothing, and what was just
    written is in the cache. Nothing moves into a loop or a branch. Bytes are
    those of a model: what is no view is allocated when it is computed and freed
    after its last use, which is what bufferization and
    `optimize-allocation-liveness` make of it. In a block with extents that are not
    known nothing moves.
  }];
  let statistics = [
    Statistic<"numSunk", "num-sunk", "Operations moved to their first user">];
}

def MarkReadOnlyArgumentsPass : Pass<"fp8-mark-read-only-arguments", "::mlir::ModuleOp"> {
  let summary = "mark arguments read-only, so that bufferization copies them";
  let description = [{
    A tensor is a value, and its memory the caller's: a result that would be
    computed in the memory of an argument, such as a sum that a matmul adds to,
    is computed in a copy, which is then the result. Bufferization takes
    arguments for writable where nothing is said; this pass says of every tensor
    argument of a public function that something uses that it is not, unless the
    program says that it is (`bufferization.writable = true`).
  }];
  let dependentDialects = ["bufferization::BufferizationDialect"];
}

def StripAttributesPass : Pass<"fp8-strip-attributes", "::mlir::ModuleOp"> {
  let summary = "drop attributes of functions that LLVM has no use for";
  let description = [{
    Names, weights and what other compilers attach to functions, arguments and
    results has served by now; LLVM's translation would warn about each. The
    module's table of scaling state becomes the manifest that the runtime takes,
    a string, which tools that do not know the dialect can read; so does what
    `fp8.state_uses` says of functions.
  }];
}

#endif // FP8_TRANSFORMS_BUFFERPASSES_TD
