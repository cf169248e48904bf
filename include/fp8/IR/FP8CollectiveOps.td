//===- FP8CollectiveOps.td - What ranks share --------------*- tablegen -*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FP8_IR_FP8COLLECTIVEOPS_TD
#define FP8_IR_FP8COLLECTIVEOPS_TD

include "fp8/IR/FP8OpBase.td"

def FP8_AmaxBuffer : StridedMemRefRankOf<[F32], [0, 1, 2, 3, 4, 5, 6, 7, 8]>;

def FP8_AllReduceAmaxOp : FP8_EffectOp<"all_reduce_amax", [
    InferTypeOpAdaptor,
    DeclareOpInterfaceMethods<MemoryEffectsOpInterface>]> {
  let summary = "the largest amaxes of all ranks of a group";
  let description = [{
    ```
    reduced[b] = max over the ranks of the group of amax[b]      (NaN is the largest)
    ```

    With it a tensor that ranks have parts of is quantized with the scale of the
    whole one: a compiler that cuts a tensor puts it between `fp8.amax` and
    `fp8.compute_scale`. Where nobody has a part, all ranks have the same amaxes,
    and keep them.

    `group` is a name. What stands behind it is up to the host of each rank: a
    function that it gives the runtime, or a communicator of NCCL
    (`fp8/Runtime/Group.h`). All ranks of a group call it in the same order and
    with as many amaxes. So the operation has an effect on the order of
    collectives, and on nothing else: none goes, moves past another or becomes
    one with another.

    `size` is the number of ranks, where it is known. That of one rank folds to
    its operand, and so does one of what the same group has reduced.

    Of a memref it is in place, which bufferization makes of it; `first_call`
    then says that it is skipped but in calls of a host that look for the first
    scales of a state.

    Constraints:
    - (C1) `group` is not empty and has no NUL;
    - (C2) `size` is at least 1;
    - (C3) `first_call` is of a memref.

    Example:

    ```mlir
    %reduced = fp8.all_reduce_amax %amax group = "tp" size = 4 : tensor<1x1xf32>
    ```
  }];
  let arguments = (ins AnyTypeOf<[FP8_F32Tensor, FP8_AmaxBuffer]>:$amax,
                       StrAttr:$group, OptionalAttr<I64Attr>:$size,
                       UnitAttr:$first_call);
  let results = (outs Variadic<FP8_F32Tensor>:$reduced);
  let assemblyFormat = [{
    $amax `group` `=` $group (`size` `=` $size^)? (`first_call` $first_call^)?
    attr-dict `:` type($amax)
  }];
  let hasVerifier = 1;
  let hasFolder = 1;
}

def FP8_AllReduceStateOp : FP8_EffectOp<"all_reduce_state",
    [MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "the largest amaxes that any rank has recorded in a step";
  let description = [{
    Does to the amaxes that all slots of a state have in the present step what
    `fp8.all_reduce_amax` does, in one collective. In front of
    `fp8.update_state` it gives all ranks the scales of one process that has
    all tensors.

    With `first_call` it is skipped but in calls that look for the first scales
    of a state: these are then those of all ranks, too. `fp8-build-state-update`
    puts both into functions with `fp8.amax_group`.

    Constraints:
    - (C1) `group` is not empty and has no NUL.

    Example:

    ```mlir
    fp8.all_reduce_state %state group = "tp"
    ```
  }];
  let arguments = (ins FP8_StateType:$state, StrAttr:$group,
                       UnitAttr:$first_call);
  let assemblyFormat = [{
    $state `group` `=` $group (`first_call` $first_call^)? attr-dict
  }];
  let hasVerifier = 1;
}

#endif // FP8_IR_FP8COLLECTIVEOPS_TD
