//===- Passes.td - Conversions out of the fp8 dialect ------*- tablegen -*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FP8_CONVERSION_PASSES_TD
#define FP8_CONVERSION_PASSES_TD

include "mlir/Pass/PassBase.td"

def ConvertFP8ToLinalgPass : Pass<"convert-fp8-to-linalg", "::mlir::ModuleOp"> {
  let summary = "lower the fp8 dialect to linalg, which says what it means";
  let description = [{
    Every operation of the dialect becomes structured operations on the parts of
    its scaled values: `!fp8.scaled` converts to payload, scale_inv and, for
    NVFP4, tensor_scale_inv, also across functions and control flow. Every
    rounding step of the dialect's semantics is spelled out here once; the CPU
    runs it, and every kernel is tested against it.

    Two codes of f4E2M1FN are an i8, so that tensor<4x32xf4E2M1FN> becomes
    tensor<4x16xi8>: of a row, the last dimension, element 2i is the lower half
    of byte i and element 2i + 1 the upper one. A row of an odd number of codes
    has one more half, which is zero; where the number is only known at run time
    it has to be even, which is checked. What moves codes moves bytes where rows
    stay whole or are cut between bytes; for all else codes are taken apart and
    put together again. A `!fp8.state` becomes a pointer to the runtime's
    `fp8rt_state_rows`.

    A matmul with `tensor_core_accumulation` (`fp8-select-accumulation`) becomes contractions
    that have it too, of codes without factors. Where factors change along K it
    is one for each block, or each sum of a block, which its factors multiply while it is added in f32;
    or, where tensor cores multiply them, a sum of products of codes and factors
    that has the attribute.

    A quantize that still names a recipe is an error: run fp8-infer-scales.
  }];
  let dependentDialects = [
    "::mlir::affine::AffineDialect", "::mlir::arith::ArithDialect",
    "::mlir::bufferization::BufferizationDialect",
    "::mlir::cf::ControlFlowDialect", "::mlir::linalg::LinalgDialect",
    "::mlir::LLVM::LLVMDialect",
    "::mlir::math::MathDialect", "::mlir::scf::SCFDialect",
    "::mlir::tensor::TensorDialect"];
}

def LowerLinalgToLoopsPass : Pass<"fp8-lower-linalg-to-loops"> {
  let summary = "lower structured operations on memrefs to loops that "
                "vectorize";
  let description = [{
    As upstream's `convert-linalg-to-loops`, with differences. When the
    innermost loops are reductions, the accumulator is carried in registers
    instead of being stored and loaded in every iteration. LLVM could promote it
    itself only if it knew that the memrefs do not overlap; without, no
    reduction vectorizes. Floats are reduced in their order, but for eight rows
    beside each other, because an addition waits for the one before. Rows and
    columns are transposed by squares of vectors, which touch each line of the
    cache once.
  }];
  let dependentDialects = ["::mlir::affine::AffineDialect",
                           "::mlir::arith::ArithDialect",
                           "::mlir::linalg::LinalgDialect",
                           "::mlir::memref::MemRefDialect",
                           "::mlir::scf::SCFDialect",
                           "::mlir::vector::VectorDialect"];
}

def ConvertForallToRuntimePass
    : Pass<"fp8-convert-forall-to-runtime", "::mlir::ModuleOp"> {
  let summary = "convert scf.forall to calls of the runtime's parallel loop";
  let description = [{
    The body of each outermost `scf.forall` of memrefs becomes a function of a
    range of iterations, which `fp8rt_parallel_for` calls from the threads that
    matrix products have. What the body uses goes along in a struct of the
    caller's. Loops inside of the body stay for upstream's conversion.

    ```mlir
    scf.forall (%i, %j) in (%m, %n) { ... }
    // becomes
    llvm.call @fp8rt_parallel_for(%count, %body, %context)
    // and
    func.func private @f_forall(%begin: i64, %end: i64, %context: !llvm.ptr)
    ```
  }];
  let dependentDialects = ["::mlir::affine::AffineDialect",
                           "::mlir::arith::ArithDialect",
                           "::mlir::func::FuncDialect",
                           "::mlir::LLVM::LLVMDialect",
                           "::mlir::scf::SCFDialect"];
  let statistics = [
    Statistic<"numConverted", "num-converted", "Loops over threads">];
}

def LowerLinalgToGPUPass : Pass<"fp8-lower-linalg-to-gpu", "::mlir::ModuleOp"> {
  let summary = "lower structured operations on memrefs to launches on a GPU";
  let description = [{
    Every structured operation becomes a launch. So do copies between strided
    memrefs, an `scf.forall` of loads, arithmetic and stores, with a thread for
    each iteration, and in a single thread stores of the host. Kernels go to
    `gpu.module @fp8_kernels` when they are outlined.

    - A thread has neighbours along the loop that is innermost in what is
      written, as many as 16 bytes hold of the widest elements, or several
      elements a block's threads apart where rows are not aligned. Loops that
      every operand goes through as through one become one. Whether memory is
      aligned is asked in the kernel where it is not known.
    - Of an input that lies in another order tiles go through shared memory.
    - Reductions whose terms have no order (sums, products, extrema, bits) are
      shared by lanes of a warp, threads of a block or blocks, the fewer results
      there are the more. Others run in the thread of their result, in order.
    - Contractions have a warp for some rows by some columns: its lanes share
      the longest reduction loop, which is innermost in what they read, or in a
      copy of it, and add up in the order of `fp8rt_gemm_warp`.

    ```mlir
    linalg.fill ins(%zero : f32) outs(%x : memref<8x16xf32>)
    // becomes
    gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
               threads(%tx, %ty, %tz) in (%sx = %c256, %sy = %c1, %sz = %c1)
               module(@fp8_kernels) function(@fill_0) {
      %address = memref.extract_aligned_pointer_as_index %x
      %rest = arith.andi %address, %c15 : index
      %aligned = arith.cmpi eq, %rest, %c0 : index
      scf.if %aligned {
        %first = arith.muli %tx, %c4 : index
        %end = arith.addi %first, %c4 : index
        %inside = arith.cmpi ule, %end, %c128 : index
        scf.if %inside {
          llvm.store %zeros, %place {alignment = 16} : vector<4xi32>
        }
      } else {
        scf.for %element = %tx to %c1024 step %c256 {
          ...
        }
      }
      gpu.terminator
    }
    ```
  }];
  let dependentDialects = ["::mlir::affine::AffineDialect",
                           "::mlir::gpu::GPUDialect",
                           "::mlir::linalg::LinalgDialect",
                           "::mlir::LLVM::LLVMDialect",
                           "::mlir::memref::MemRefDialect",
                           "::mlir::scf::SCFDialect"];
}

def ExpandFloatCastsPass : Pass<"fp8-expand-float-casts"> {
  let summary = "expand casts to and from 8-bit, 4-bit and bf16 floats into integer arithmetic";
  let description = [{
    LLVM 22 has no lowering of `arith.truncf` and `arith.extf` on f8E4M3FN,
    f8E5M2, f8E8M0FNU and f4E2M1FN, and on x86 its truncation to bf16 may flush
    subnormals. This pass replaces the casts between these and f64, f32 and f16,
    on scalars and vectors, by branch-free arithmetic that vectorizes. A later
    LLVM that lowers these casts replaces this pass.

    ```mlir
    %q = arith.truncf %x : f32 to f8E4M3FN
    %y = arith.extf %q : f8E4M3FN to f32
    ```

    Extensions are exact where the target has the value. Truncations round once, to nearest even, from f64 too.
    They do not saturate: a caller that wants that clamps first, and a clamp by
    `arith.cmpf ogt/olt` and `arith.select` to the largest value is folded in.

    | beyond the largest | f8E4M3FN | f8E5M2 | f4E2M1FN | f8E8M0FNU | bf16   |
    |--------------------|----------|--------|----------|-----------|--------|
    | finite or Inf      | NaN 0x7F | +-Inf  | +-6      | NaN 0xFF  | +-Inf  |
    | NaN of any sign    | 0x7F     | 0x7F   | 6 (0x7)  | 0xFF      | 0x7FC0 |

    A truncation to f8E8M0FNU rounds to the nearest power of two, ties up.
    Zeros become 2^-127 (0x00), the nearest value, and negative numbers NaN.

    Casts with another rounding mode or of tensors stay as they are.
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect"];
  let statistics = [
    Statistic<"numExpanded", "num-expanded", "Number of casts expanded">
  ];
}

def LowerExtremaPass : Pass<"fp8-lower-extrema"> {
  let summary = "turn arith.maximumf and arith.minimumf into LLVM's intrinsics";
  let description = [{
    Upstream expands them by a comparison, which knows no order of zeros: of -0
    and +0 it takes either as the larger one, where kernels take +0.

    ```mlir
    %0 = arith.maximumf %x, %y : f32
    ```

    becomes

    ```mlir
    %0 = llvm.intr.maximum(%x, %y) : (f32, f32) -> f32
    ```
  }];
  let dependentDialects = ["::mlir::LLVM::LLVMDialect"];
}

def ConvertGemmsToRuntimePass
    : Pass<"fp8-convert-gemms-to-runtime", "::mlir::ModuleOp"> {
  let summary = "turn f32 contractions of memrefs into calls of the runtime";
  let description = [{
    Replaces `linalg.matmul`, `linalg.batch_matmul`, `linalg.contract` and every
    other linalg op that multiplies and adds f32 memrefs by a call of the
    runtime's batched matrix product `fp8rt_gemm_f32`, which uses all cores. The
    order of the dimensions goes into the strides: nothing is copied.

    ```mlir
    linalg.matmul ins(%a, %b : memref<4x8xf32>, memref<8x16xf32>)
                  outs(%c : memref<4x16xf32>)
    ```

    becomes, `%a1` to `%c1` being `memref.reinterpret_cast`s of the operands,

    ```mlir
    call @fp8rt_gemm_f32(%a1, %b1, %c1)
        : (memref<?x?x?xf32, strided<[?, ?, ?], offset: ?>>, ...) -> ()
    ```

    The product has one batch, one m, one n and one k dimension. A dimension
    that the contraction lacks has size 1. Of those it has more than one of,
    neighbours that are contiguous in memory become one; for the others there
    are loops around the call. Small products are no exception: a call costs a
    fraction of a microsecond.

    One with the attribute `tensor_core_accumulation` (types of A and B, K of a block,
    split-K, whether blocks are promoted, whose tensor cores) becomes a call
    of `fp8rt_gemm_tensor_core`, whose sums are an H200's, of `fp8rt_gemm_mma`,
    whose sums are Ada's, or of
    `fp8rt_gemm_tcgen05`, whose sums are Blackwell's, and one that has factors of
    so many elements of K beside them, one of `fp8rt_gemm_tcgen05_scaled`:

    ```mlir
    linalg.generic {indexing_maps = [affine_map<(m, n, k) -> (m, k)>,
                                     affine_map<(m, n, k) -> (m, k floordiv 32)>,
                                     affine_map<(m, n, k) -> (n, k)>,
                                     affine_map<(m, n, k) -> (n, k floordiv 32)>,
                                     affine_map<(m, n, k) -> (m, n)>], ...}
        ins(%a, %factors_a, %b, %factors_b : ...) outs(%c : ...)
    ```

    `fp8.all_reduce_amax` becomes a call of `fp8rt_program_all_reduce`, with
    the name of its group.

    With `in-warps` others become calls of `fp8rt_gemm_warp`, whose sums are in
    the order of a GPU's loops.
  }];
  let options = [
    Option<"inWarps", "in-warps", "bool", "false",
           "Sum in the order of a GPU's loops">
  ];
  let dependentDialects = ["::mlir::arith::ArithDialect",
                           "::mlir::func::FuncDialect",
                           "::mlir::LLVM::LLVMDialect",
                           "::mlir::memref::MemRefDialect",
                           "::mlir::scf::SCFDialect"];
}

def AddContextPass : Pass<"fp8-add-context", "::mlir::ModuleOp"> {
  let summary = "give functions the context of the runtime as an argument";
  let description = [{
    Every function with a body gets one more argument at its end, a pointer to
    the `fp8rt_context` that says where the program runs, and calls pass it on.
  }];
  let dependentDialects = ["::mlir::LLVM::LLVMDialect"];
}

def CheckArgumentsPass : Pass<"fp8-check-arguments", "::mlir::ModuleOp"> {
  let summary = "check that arguments are memory of the context's device";
  let description = [{
    Every public function checks at its start, through
    `fp8rt_context_check_memory`, that the memrefs that it was given, and that
    something uses, are memory which kernels of the device may use, and the rows
    of its scaling state as well: elsewhere they would cost the process the
    device. Errors name an
    argument by its `fp8.name`, else as `arg0`, ..., and the function. Functions
    end in a context (`fp8-add-context`).
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect",
                           "::mlir::LLVM::LLVMDialect",
                           "::mlir::memref::MemRefDialect"];
}

def ShareLaunchesPass : Pass<"fp8-share-launches", "::mlir::ModuleOp"> {
  let summary = "outline equal launches into one function";
  let description = [{
    Launches of a kernel that differ in nothing but values of the same types
    become calls of one private function that launches it, with those values as
    its arguments: what a launch takes is written to memory, field by field,
    which is most of the host's code. Functions end in a context
    (`fp8-add-context`). A function all of whose memrefs have static extents and
    strides takes them as pointers.

    ```mlir
    fp8_gpu.launch @kernels::@k #launch ins(%a : memref<8xf32>) outs(%b : memref<8xf32>)
    fp8_gpu.launch @kernels::@k #launch ins(%b : memref<8xf32>) outs(%c : memref<8xf32>)
    // becomes
    func.call @launch(%a, %b, %context) : (memref<8xf32>, memref<8xf32>, !llvm.ptr) -> ()
    func.call @launch(%b, %c, %context) : (memref<8xf32>, memref<8xf32>, !llvm.ptr) -> ()
    ```
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect",
                           "::mlir::func::FuncDialect",
                           "::mlir::LLVM::LLVMDialect"];
  let statistics = [
    Statistic<"numShared", "num-shared", "Launches that became calls">];
}

def ConvertFunctionsPass
    : Pass<"fp8-convert-functions", "::mlir::ModuleOp"> {
  let summary = "convert functions to the LLVM dialect";
  let description = [{
    `convert-func-to-llvm`, with nothing in a function's first block but what
    takes its arguments apart: for each argument, upstream's conversion numbers
    all operations of that block anew.
  }];
  let dependentDialects = ["::mlir::cf::ControlFlowDialect",
                           "::mlir::LLVM::LLVMDialect"];
}

def CheckStackPass : Pass<"fp8-check-stack", "::mlir::ModuleOp"> {
  let summary = "check the stack's depth in functions that call themselves";
  let description = [{
    Functions of the llvm dialect that may call themselves, directly or through
    others, begin with a call of `fp8rt_program_check_stack`, which ends the
    call of the program with an error while there is stack to do so. They make
    no tail calls: those take no stack, and a program that never ends would
    not be told.
  }];
  let dependentDialects = ["::mlir::LLVM::LLVMDialect"];
}

def ConvertGPUToRuntimePass
    : Pass<"fp8-convert-gpu-to-runtime", "::mlir::ModuleOp"> {
  let summary = "convert device memory and launches to calls of the runtime";
  let description = [{
    On the host of a GPU every memref is the device's memory. This pass replaces
    what touches it by calls of `fp8rt_context_*`: allocation and deallocation
    in stream order, copies, `gpu.launch_func` and `fp8_gpu.launch`. Constants
    are copied to the device at the first call, kernels (`gpu.binary`) become
    constants of the host's module. `cf.assert` records an error in the context
    and goes on: what follows is skipped by the runtime. A `memref.load` is a
    value that the host needs, and waits for the device.

    Functions take the context as their last argument: run `fp8-add-context`.
  }];
  let dependentDialects = ["::mlir::LLVM::LLVMDialect"];
}

#endif // FP8_CONVERSION_PASSES_TD
