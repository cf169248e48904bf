//===- AttentionKernel.h - How attention kernels begin ----------*- C++ -*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FP8_LIB_KERNELS_ATTENTION_ATTENTIONKERNEL_H
#define FP8_LIB_KERNELS_ATTENTION_ATTENTIONKERNEL_H

#include "../Blocks/KernelSignature.h"
#include "../Blocks/Ring.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"

namespace mlir::fp8 {

/// What a kernel of attention, or of its gradients, is built of, at its start.
template <typename Memory>
struct AttentionKernel {
  LLVM::LLVMFuncOp function;
  KernelBuilder b;
  const Memory &memory;
  llvm::StringMap<Value> params;

  /// Whoever has roles of their own registers says so: without it ptxas ignores
  /// setmaxnreg, as for matmuls.
  void setResident(int64_t blocks) {
    function->setAttr(NVVM::NVVMDialect::getMinctasmAttrName(),
                      b.getI32IntegerAttr(static_cast<int32_t>(blocks)));
  }
};

/// Rings of a block alone, whose barriers are one after the other.
class RingRow {
public:
  RingRow(KernelBuilder &b, Value shared, int64_t barriers)
      : b(b), shared(shared), barriers(barriers) {}

  Ring get(int64_t stages) {
    Ring ring(b, shared, barriers, stages,
              Ring::Cluster{/*rows=*/1, /*cols=*/1, Value(), Value()});
    barriers += 16 * stages;
    return ring;
  }

private:
  KernelBuilder &b;
  Value shared;
  int64_t barriers;
};

} // namespace mlir::fp8

#endif // FP8_LIB_KERNELS_ATTENTION_ATTENTIONKERNEL_H
