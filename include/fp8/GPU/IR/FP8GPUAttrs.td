//===- FP8GPUAttrs.td - Targets and launches of kernels ----*- tablegen -*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FP8_GPU_IR_FP8GPUATTRS_TD
#define FP8_GPU_IR_FP8GPUATTRS_TD

include "fp8/GPU/IR/FP8GPUDialect.td"
include "fp8/GPU/IR/FP8GPUInterfaces.td"
include "mlir/IR/AttrTypeBase.td"
include "mlir/IR/EnumAttr.td"

class FP8GPU_Enum<string name, string summary, list<I32EnumAttrCase> cases>
    : I32EnumAttr<name, summary, cases> {
  let cppNamespace = "::mlir::fp8";
  let genSpecializedAttr = 0;
}

class FP8GPU_Attr<string name, string attrMnemonic, list<Trait> traits = []>
    : AttrDef<FP8GPU_Dialect, name, traits> {
  let mnemonic = attrMnemonic;
}

//===----------------------------------------------------------------------===//
// Targets
//===----------------------------------------------------------------------===//

def FP8GPU_TargetAttr : FP8GPU_Attr<"GPUTarget", "target"> {
  let summary = "a GPU, as far as kernels are chosen and built for it";
  let description = [{
    What `fp8-set-target` gives to a module: the chip, which names the
    architecture whose kernels are used, and numbers of one GPU with that chip.
    A module that has the attribute already keeps its numbers: a smaller GPU of
    the same architecture differs in nothing else.

    | parameter | meaning |
    | --- | --- |
    | `chip` | as LLVM and ptxas call it |
    | `compute_capability` | 10 times the major number, plus the minor one |
    | `features` | LLVM's features, such as the version of PTX |
    | `multiprocessors` | their number |
    | `shared_bytes` | of shared memory that a block can have |
    | `registers` | of 32 bits, of a multiprocessor |
    | `mma_rate` | 8-bit multiply-adds of a multiprocessor in a clock |
    | `l2_rate` | bytes in a clock that a multiprocessor gets from L2 |
    | `memory_rate` | bytes in a clock that are a multiprocessor's share of memory's rate |
    | `clock` | of multiprocessors, in MHz; 0 if it is not known |
    | `memory_peak` | 10^9 bytes in a second that memory reads and writes at most; 0 if it is not known |
    | `launch_time` | nanoseconds that an empty kernel takes among others; 0 if it is not known |
    | `machine` | whose models compare configs: the name of a machine that the compiler has, or all of one in an attribute of its own dialect; the chip's usual one if it is left out |

    The rates of clocks are what kernels were measured to get under load, and
    serve to compare configs. The last three are for floors of times: `mma_rate`
    at `clock`, and `memory_peak`, are what the data sheet says.

    Constraints:
    - (C1) `chip` is not empty;
    - (C2) all numbers are positive, but for those of which 0 is not known.
  }];
  let parameters = (ins
    StringRefParameter<"chip">:$chip,
    "int64_t":$compute_capability,
    StringRefParameter<"LLVM's features">:$features,
    "int64_t":$multiprocessors,
    "int64_t":$shared_bytes,
    "int64_t":$registers,
    "int64_t":$mma_rate,
    "int64_t":$l2_rate,
    "int64_t":$memory_rate,
    DefaultValuedParameter<"int64_t", "0">:$clock,
    DefaultValuedParameter<"int64_t", "0">:$memory_peak,
    DefaultValuedParameter<"int64_t", "0">:$launch_time,
    OptionalParameter<"::mlir::Attribute">:$machine
  );
  let assemblyFormat = "`<` struct(params) `>`";
  let genVerifyDecl = 1;
}

def FP8GPU_Math : FP8GPU_Enum<"KernelMath",
    "how elementwise functions of a kernel are computed", [
  I32EnumAttrCase<"Exact", 0, "exact">,
  I32EnumAttrCase<"Approximate", 1, "approximate">]>;

def FP8GPU_MathAttr : EnumAttr<FP8GPU_Dialect, FP8GPU_Math, "math"> {
  let cppClassName = "KernelMathAttr";
  let assemblyFormat = "`<` $value `>`";
}

//===----------------------------------------------------------------------===//
// Launches: what the arguments are
//===----------------------------------------------------------------------===//

def FP8GPU_Access : FP8GPU_Enum<"KernelAccess",
    "what a kernel does with an argument: reads it, overwrites all of it, both, or "
    "raises its elements to amaxes that are greater", [
  I32EnumAttrCase<"Read", 0, "read">,
  I32EnumAttrCase<"Write", 1, "write">,
  I32EnumAttrCase<"Update", 2, "update">,
  I32EnumAttrCase<"Raise", 3, "raise">]>;

def FP8GPU_ArgumentAttr : FP8GPU_Attr<"KernelArgument", "argument"> {
  let summary = "a tensor that a kernel is launched with";
  let description = [{
    `alignment`, in bytes, is that of the address and, if it is more than an
    element's, of every row: rows then start at multiples of it, and their
    elements lie together. A dimension whose stride no parameter of the launch
    tells the kernel lies as in a dense tensor, whose rows, where `alignment` is
    4 or less, begin anywhere: a kernel reads words of them all.

    Constraints:
    - (C1) `name` is not empty;
    - (C2) `rank` is in 0..8;
    - (C3) `element` has 8, 16, 32 or 64 bits, or is `i1`, which has a byte in memory;
    - (C4) `alignment` is a power of two from the element's bytes to 4096.

    Example: `#fp8_gpu.argument<name = "a", element = f8E4M3FN, rank = 2, access = read, alignment = 16>`.
  }];
  let parameters = (ins
    StringRefParameter<"for messages">:$name,
    "::mlir::Type":$element,
    "int64_t":$rank,
    EnumParameter<FP8GPU_Access>:$access,
    "int64_t":$alignment
  );
  let assemblyFormat = "`<` struct(params) `>`";
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    int64_t getElementBytes() const {
      return getElement().getIntOrFloatBitWidth() / 8;
    }
  }];
}

def FP8GPU_FewRowsAttr : FP8GPU_Attr<"FewRows", "few_rows"> {
  let summary = "how an operation is computed that has few rows";
  let description = [{
    In the list `fp8_gpu.few_rows` of an operation whose rows show at run time: up
    to `most` of them, and more than the one before it has, it is computed by a
    kernel of `config`, `kernel` once that has been built. A config may come back
    for more rows: its kernel is built and launched in one place.

    Example: `#fp8_gpu.few_rows<most = 16, config = #fp8_sm90.gemm<tile_m = 16, tile_n = 64, stages = 12, consumers = 1, swap_ab = true, store = direct>>`.
  }];
  let parameters = (ins
    "int64_t":$most,
    "::mlir::Attribute":$config,
    OptionalParameter<"::mlir::SymbolRefAttr">:$kernel
  );
  let assemblyFormat = "`<` struct(params) `>`";
}

def FP8GPU_ExtentAttr : FP8GPU_Attr<"KernelExtent", "extent"> {
  let summary = "the size of a dimension of an argument";
  let description = [{
    A symbol of the expressions of a launch. Example: `#fp8_gpu.extent<"m", 0, 1>`
    is dimension 1 of argument 0.

    Constraints:
    - (C1) `name` is a letter, then letters, digits and underscores, and none of
      `floordiv`, `ceildiv` and `mod`, which are operators.
  }];
  let parameters = (ins
    StringRefParameter<"name">:$name,
    "int64_t":$argument,
    "int64_t":$dim
  );
  let assemblyFormat = "`<` $name `,` $argument `,` $dim `>`";
  let genVerifyDecl = 1;
}

def FP8GPU_WorkspaceAttr : FP8GPU_Attr<"KernelWorkspace", "workspace"> {
  let summary = "device memory for the time of a launch";
  let description = [{
    `bytes` is an expression of the launch's extents; `zero` asks for memory
    filled with zeros, which the kernel leaves so.
  }];
  let parameters = (ins
    "::mlir::AffineMapAttr":$bytes,
    DefaultValuedParameter<"bool", "false">:$zero
  );
  let assemblyFormat = "`<` struct(params) `>`";
}

//===----------------------------------------------------------------------===//
// Launches: where parameters come from
//===----------------------------------------------------------------------===//

class FP8GPU_Param<string name, string attrMnemonic>
    : FP8GPU_Attr<name, attrMnemonic,
        [DeclareAttrInterfaceMethods<FP8GPU_KernelParamAttrInterface>]>;

def FP8GPU_TensorMapAttr : FP8GPU_Param<"TensorMapParam", "tensor_map"> {
  let summary = "a descriptor for bulk copies of boxes of an argument";
  let description = [{
    128 bytes by value, 64-byte aligned, as `cuTensorMapEncodeTiled` makes them,
    with zeros outside of the tensor. All dimensions count from the innermost:
    `box` are the extents of one copy, in elements; the rows of a box are
    permuted in shared memory as `swizzle` bytes say, 0 for not at all; `l2` is
    what the L2 cache fetches at a time.

    `tail` is a dimension for tail boxes, which end with the tensor: along it a box has
    what is left of the argument's extent after whole boxes, or `box` if nothing
    is. Such a box has no zeros from outside, which are slow to come: the chip
    fills 1 to 3 KiB of them a clock, all multiprocessors together.

    Constraints (PTX ISA, "Tensors"; CUDA driver API, cuTensorMapEncodeTiled):
    - (C1) `box` has an extent for each dimension of the argument, of which there
      are 1 to 5, each in 1..256;
    - (C2) the innermost extent in bytes is a multiple of 16, and no more than
      `swizzle`, unless that is 0;
    - (C3) `swizzle` is 0, 32, 64 or 128, `l2` 0, 64, 128 or 256;
    - (C4) the argument's alignment is a multiple of 16;
    - (C5) `tail` is one of the dimensions but the innermost, whose extent
      decides how the others lie in shared memory.

    Example: `#fp8_gpu.tensor_map<0, box = [128, 64], swizzle = 128, l2 = 128>`.
  }];
  let parameters = (ins
    "int64_t":$argument,
    ArrayRefParameter<"int64_t">:$box,
    "int64_t":$swizzle,
    "int64_t":$l2,
    OptionalParameter<"std::optional<int64_t>">:$tail
  );
  let assemblyFormat = [{
    `<` $argument `,` `box` `=` `[` $box `]` `,` `swizzle` `=` $swizzle `,`
    `l2` `=` $l2 `` custom<Tail>($tail) `>`
  }];
}

def FP8GPU_PointerAttr : FP8GPU_Param<"PointerParam", "pointer"> {
  let summary = "the address of an argument's first element";
  let parameters = (ins "int64_t":$argument);
  let assemblyFormat = "`<` $argument `>`";
}

def FP8GPU_StrideAttr : FP8GPU_Param<"StrideParam", "stride"> {
  let summary = "the elements from one index of a dimension to the next, an i64";
  let description = [{
    Of a dimension of one element that of the first one outwards with more, as
    long as the kernel is not told it; else 0, so that broadcasting multiplies.
  }];
  let parameters = (ins "int64_t":$argument, "int64_t":$dim);
  let assemblyFormat = "`<` $argument `,` $dim `>`";
}

def FP8GPU_ValueAttr : FP8GPU_Param<"ValueParam", "value"> {
  let summary = "an expression of the launch's extents, an i32 or an i64";
  let description = [{
    A launch whose value does not fit is an error.
    Example: `#fp8_gpu.value<affine_map<()[s0] -> (s0)> : i32>`.
  }];
  let parameters = (ins "::mlir::AffineMapAttr":$value, "::mlir::IntegerType":$type);
  let assemblyFormat = "`<` $value `:` $type `>`";
}

def FP8GPU_CaptureAttr : FP8GPU_Param<"CaptureParam", "capture"> {
  let summary = "a scalar that the launch is given";
  let parameters = (ins "int64_t":$index, "::mlir::Type":$type);
  let assemblyFormat = "`<` $index `:` $type `>`";
}

def FP8GPU_ScratchAttr : FP8GPU_Param<"ScratchParam", "scratch"> {
  let summary = "the address of a workspace";
  let parameters = (ins "int64_t":$workspace);
  let assemblyFormat = "`<` $workspace `>`";
}

//===----------------------------------------------------------------------===//
// Launches
//===----------------------------------------------------------------------===//

def FP8GPU_LaunchAttr : FP8GPU_Attr<"Launch", "launch"> {
  let summary = "what a kernel takes, and how it is launched";
  let description = [{
    | parameter | meaning |
    | --- | --- |
    | `arguments` | `#fp8_gpu.argument`s: the tensors, those that are read before those that are written |
    | `extents` | `#fp8_gpu.extent`s: the symbols of all expressions, in order |
    | `params` | where the kernel's parameters come from, in order |
    | `grid` | clusters in x and, if there are more results, blocks in y and z |
    | `block` | threads of a block |
    | `cluster` | blocks of a cluster, neighbours in x |
    | `shared_bytes` | dynamic shared memory of a block |
    | `resident` | blocks that a multiprocessor runs at a time if the kernel is persistent: the grid in x is cut to what runs at once. 0 if it is not |
    | `overlap` | the kernel may start before its predecessor in the stream has ended (PTX ISA, griddepcontrol), for whose results it waits by itself |
    | `workspaces` | `#fp8_gpu.workspace`s |
    | `flops` | multiplications and additions that the launch is for, whose rate a profile shows; none if it is for moving bytes |

    Expressions are affine maps without dimensions, whose products may be of two
    extents. They are evaluated in 64 bits; a result below 0 is an error of the
    launch, and a grid without blocks launches nothing.

    Constraints:
    - (C1) the elements of the arrays are the attributes that the table says, in
      the order that it says, and an argument is written;
    - (C2) names of arguments and of extents are unique;
    - (C3) extents, parameters and captures refer to arguments, dimensions and
      workspaces that there are; captures are numbered without gaps;
    - (C4) expressions have the extents as symbols, divide by positive
      constants, and need no more than 16 numbers at a time when they are
      evaluated in postfix order;
    - (C5) `grid` has 1 to 3 results, every other expression one;
    - (C6) `block` is a multiple of 32 up to 1024, `cluster` in 1..16,
      `shared_bytes` below 2^31 and `resident` in 0..64.
  }];
  let parameters = (ins
    "::mlir::ArrayAttr":$arguments,
    "::mlir::ArrayAttr":$extents,
    "::mlir::ArrayAttr":$params,
    "::mlir::AffineMapAttr":$grid,
    "int64_t":$block,
    DefaultValuedParameter<"int64_t", "1">:$cluster,
    DefaultValuedParameter<"int64_t", "0">:$shared_bytes,
    DefaultValuedParameter<"int64_t", "0">:$resident,
    DefaultValuedParameter<"bool", "false">:$overlap,
    OptionalParameter<"::mlir::ArrayAttr">:$workspaces,
    OptionalParameter<"::mlir::AffineMapAttr">:$flops
  );
  let assemblyFormat = "`<` struct(params) `>`";
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    KernelArgumentAttr getArgument(int64_t index) const {
      return ::llvm::cast<KernelArgumentAttr>(getArguments()[index]);
    }
    /// Arguments that are read alone: the others are written.
    int64_t getNumInputs() const;
    /// Whether a parameter tells the kernel the stride of a dimension.
    bool takesStride(int64_t argument, int64_t dim) const;
    /// The types of the captures, in order.
    ::llvm::SmallVector<::mlir::Type> getCaptureTypes() const;
  }];
}

#endif // FP8_GPU_IR_FP8GPUATTRS_TD
