//===- AttentionBackward.cpp - Its gradients by mma.sync ------------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

// A block has rows, 16 for each warp, and walks the columns that they see; no
// block adds to what another has, so that sums have an order:
//
//   rows of keys, columns of queries:     rows of queries, columns of keys:
//     S = K Q^T; D = V dO^T                 S = Q K^T; D = dO V^T
//     P = exp2(S - lse)                     P = exp2(S - lse)
//     G = P (D - delta)                     G = P (D - delta)
//     dV += P dO; dK += G Q                 dQ += G K
//
// Scores and D are computed twice, seven products for five. In exchange nothing
// is added up in global memory, and P and G are operands as threads have them.
//
//===----------------------------------------------------------------------===//

#include "AttentionBackwardGenerator.h"
#include "AttentionBackwardWorker.h"

using namespace mlir;
using namespace mlir::fp8;
using namespace mlir::fp8::mma;

/// Blocks of each part.
static SmallVector<AffineExpr>
getBlocks(const AttentionBackwardSignature &made, AttentionConfigAttr config,
          const AttentionBackwardMemory &memory) {
  int64_t rows = config.getTileQ();
  SmallVector<AffineExpr> blocks;
  for (BackwardPart part : memory.parts)
    blocks.push_back(
        part.ofKeys
            ? made.batch * made.spec.headsOfK * made.keys.ceilDiv(rows)
            : made.batch * made.spec.heads * made.queries.ceilDiv(rows));
  return blocks;
}

void mma::describeAttentionBackward(AttentionBackwardSignature &made,
                                    const AttentionBackwardSpec &spec,
                                    AttentionConfigAttr config,
                                    const AttentionBackwardMemory &memory,
                                    KernelSignature::Launch &launch) {
  for (StringRef name : {"grad", "q", "k", "v", "dq", "dk", "dv"})
    made.addTensor(name);
  made.addParams();
  AffineExpr grid = getAffineConstantExpr(0, config.getContext());
  for (auto [i, blocks] : llvm::enumerate(getBlocks(made, config, memory))) {
    made.signature.addValue("blocks" + Twine(i), blocks, 32);
    grid = grid + blocks;
  }
  launch.grid = {grid};
  launch.block = config.getThreads();
  launch.sharedBytes = memory.sharedBytes;
  launch.flops = made.getFlops();
}

/// The parts one after the other, from `first` on; `block` (i32) is this
/// block's number among theirs.
static void buildParts(const AttentionBackwardContext &kernel, Value block,
                       size_t first) {
  KernelBuilder &b = kernel.b;
  BackwardPart part = kernel.memory.parts[first];
  auto build = [&] { BackwardWorker(kernel, part).build(block); };
  if (first + 1 == kernel.memory.parts.size())
    return build();
  Value blocks = kernel.getParam("blocks" + std::to_string(first));
  b.ifThenElse(b.less(block, blocks), build,
               [&] { buildParts(kernel, b.sub(block, blocks), first + 1); });
}

void mma::buildAttentionBackward(AttentionKernel<AttentionBackwardMemory> &made,
                                 const AttentionBackwardSpec &spec,
                                 AttentionConfigAttr config, GPUTargetAttr) {
  KernelBuilder &b = made.b;
  Value shared = LLVM::AddressOfOp::create(
      b, LLVM::LLVMPointerType::get(b.getContext(), 3),
      KernelSignature::kSharedName);
  Value thread = NVVM::ThreadIdXOp::create(b, b.getI32Type());
  AttentionBackwardContext kernel{b,
                                  spec,
                                  config,
                                  made.memory,
                                  made.params,
                                  shared,
                                  thread,
                                  b.uniform(b.shiftRight(thread, 5)),
                                  b.bitAnd(thread, 31)};
  buildParts(kernel, NVVM::BlockIdXOp::create(b, b.getI32Type()), 0);
  LLVM::ReturnOp::create(b, ValueRange());
}
