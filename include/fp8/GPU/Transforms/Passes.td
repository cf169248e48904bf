//===- Passes.td - Passes on kernels -----------------------*- tablegen -*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FP8_GPU_TRANSFORMS_PASSES_TD
#define FP8_GPU_TRANSFORMS_PASSES_TD

include "mlir/Pass/PassBase.td"

def LowerApproximateMathPass
    : InterfacePass<"fp8-lower-approximate-math", "::mlir::FunctionOpInterface"> {
  let summary = "lower elementwise functions to the GPU's approximate "
                "instructions";
  let description = [{
    In functions with `fp8_gpu.math = #fp8_gpu.math<approximate>`, `math.exp` and
    division become the GPU's approximate instructions (a relative error of
    2^-22), `math.tanh`, `math.erf` and the others polynomials, so that kernels
    need no device library. `1 + erf(x)`, `1 + tanh(x)` and `x / (1 + exp(y))`,
    which GELU and SiLU are made of, have shorter formulas of their own, and
    `math.tanh` with `fastmath<afn>` is one instruction with an error of 2^-11.
    f32 only; wider rounding hides in the result type.
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect",
                           "::mlir::LLVM::LLVMDialect",
                           "::mlir::math::MathDialect",
                           "::mlir::vector::VectorDialect"];
}

def LowerExactMathPass
    : InterfacePass<"fp8-lower-exact-math", "::mlir::FunctionOpInterface"> {
  let summary = "expand elementwise functions to what the CPU computes";
  let description = [{
    In functions without `fp8_gpu.math`, or with `#fp8_gpu.math<exact>`, division
    and square roots stay what they are, correctly rounded: scales are quotients.
    `math.exp`, `math.tanh`, `math.erf` and others on f32 become polynomials, a
    few ulp off, so that kernels need no device library, and so do `math.exp` and
    `math.log` on f64. Another function on f64 is an error.
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect",
                           "::mlir::LLVM::LLVMDialect",
                           "::mlir::math::MathDialect",
                           "::mlir::vector::VectorDialect"];
}

def SinkConstantsPass : Pass<"fp8-sink-constants", "::mlir::func::FuncOp"> {
  let summary = "clone constants into the kernels that use them";
  let description = [{
    Constants of the host that a `gpu.launch` uses become constants in its body.
    `gpu-launch-sink-index-computations` does so, too, and looks at all uses of
    a constant for each of the launches that share it.

    ```mlir
    %c = arith.constant 1.0 : f32
    gpu.launch ... {
      memref.store %c, %m[%i] : memref<8xf32>
    // becomes
    gpu.launch ... {
      %c = arith.constant 1.0 : f32
      memref.store %c, %m[%i] : memref<8xf32>
    ```
  }];
}

def InlineKernelCallsPass
    : Pass<"fp8-inline-kernel-calls", "::mlir::ModuleOp"> {
  let summary = "inline functions that kernels call";
  let description = [{
    What a `gpu.launch` calls, such as a function that computes an element,
    becomes part of it: functions of the host take a context, which a kernel has
    not. Such a function has to have one block and may not call itself.

    ```mlir
    gpu.launch ... {
      %0 = func.call @value(%i) : (index) -> f32
    // becomes
    gpu.launch ... {
      %0 = arith.index_cast %i : index to i32
    ```
  }];
  let dependentDialects = ["::mlir::gpu::GPUDialect"];
  let statistics = [Statistic<"numInlined", "num-inlined", "Calls inlined">];
}

def ConvertOutlinedKernelsPass
    : Pass<"fp8-convert-outlined-kernels", "::mlir::gpu::GPUModuleOp"> {
  let summary = "convert gpu.func to the LLVM dialect";
  let description = [{
    Takes the kernels of a module that were outlined from loops to functions of
    the LLVM dialect and simplifies them; those that are functions of it already
    stay as they are.
  }];
  let dependentDialects = ["::mlir::LLVM::LLVMDialect",
                           "::mlir::NVVM::NVVMDialect"];
}

def BatchLaunchesPass : Pass<"fp8-batch-launches", "::mlir::ModuleOp"> {
  let summary = "make small launches of a kernel one";
  let description = [{
    In a module with `fp8_gpu.disjoint`, none of whose functions has two
    arguments that share memory, launches of one kernel with up to 1024 blocks
    each, which do not depend on each other, become one at the place of the
    last. A block finds out which of them it is of, and branches to where the
    kernel begins, with the pointers of that one; an argument that all have is
    one. Memory has to be of known sizes. Fills of small arguments of one type,
    with any numbers, and copies to such ones of others become one loop. What a
    loop or an operation hands on may be any memory: it stays where it is.

    ```mlir
    fp8_gpu.launch @kernels::@k #launch ins(%a, %s : ...) outs(%x : ...)
    fp8_gpu.launch @kernels::@k #launch ins(%b, %s : ...) outs(%y : ...)
    // becomes
    fp8_gpu.launch @kernels::@k_x2 #both ins(%a, %b, %s : ...) outs(%x, %y : ...)
    ```

    Steps of optimizers have many parameters of a size, of which a launch takes
    longer than what it does.
  }];
  let dependentDialects = ["::mlir::linalg::LinalgDialect",
                           "::mlir::LLVM::LLVMDialect",
                           "::mlir::NVVM::NVVMDialect"];
  let statistics = [
    Statistic<"numBatched", "num-batched", "Launches that are part of another">];
}

def MergeKernelsPass : Pass<"fp8-merge-kernels", "::mlir::ModuleOp"> {
  let summary = "merge kernels that do the same";
  let description = [{
    Of kernels of a `gpu.module` that differ in their names and locations alone,
    the first stays, and is launched in place of the others. Layers of a model
    have the same extents, hence the same casts.
  }];
  let statistics = [
    Statistic<"numMerged", "num-merged", "Kernels that were another's copy">];
}

def SplitKernelsPass : Pass<"fp8-split-kernels", "::mlir::ModuleOp"> {
  let summary = "give each kernel a gpu.module of its own";
  let description = [{
    Gives every kernel but the first of a `gpu.module` a module of its own, with
    copies of what it refers to, and lets launches lead there. What is done with
    kernels afterwards is then done to several at once, and a kernel's code does
    not depend on what else is in the program.

    ```mlir
    gpu.module @kernels {
      llvm.func @a() attributes {nvvm.kernel} { ... }
      llvm.func @b() attributes {nvvm.kernel} { ... }
    }
    // becomes
    gpu.module @kernels {
      llvm.func @a() attributes {nvvm.kernel} { ... }
    }
    gpu.module @kernels_0 {
      llvm.func @b() attributes {nvvm.kernel} { ... }
    }
    ```
  }];
  let statistics = [
    Statistic<"numSplit", "num-split", "Kernels that got a module">];
}

#endif // FP8_GPU_TRANSFORMS_PASSES_TD
