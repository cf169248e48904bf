//===- MachineDialect.td - What a GPU takes for what ----- -*- tablegen -*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FP8_LIB_KERNELS_MACHINES_MACHINEDIALECT_TD
#define FP8_LIB_KERNELS_MACHINES_MACHINEDIALECT_TD

include "mlir/IR/AttrTypeBase.td"
include "mlir/IR/OpBase.td"

def Machine_Dialect : Dialect {
  let name = "fp8_machine";
  let cppNamespace = "::mlir::fp8";
  let summary = "GPUs by their products: data sheets, and what kernels were fitted to take";
  let description = [{
    All numbers by which configs are compared, so that a GPU is a file and no
    code. The compiler has the files of lib/Kernels/Machines; `--machine=FILE`
    takes another one, a module with the attribute `fp8_machine.machine`.
  }];
  let dependentDialects = ["::mlir::fp8::FP8GPUDialect"];
  let useDefaultAttributePrinterParser = 1;
  let hasOperationAttrVerify = 1;
  let extraClassDeclaration = [{
    /// A module's attribute that says the machine of a file.
    static constexpr ::llvm::StringLiteral kMachineAttrName =
        "fp8_machine.machine";

    /// The compiler's own machines, by name.
    ::mlir::ArrayRef<MachineAttr> getMachines();

  private:
    void registerAttributes();

    std::once_flag parsed;
    ::llvm::SmallVector<MachineAttr> machines;

  public:
  }];
}

class Machine_Attr<string name, string attrMnemonic>
    : AttrDef<Machine_Dialect, name> {
  let mnemonic = attrMnemonic;
  let assemblyFormat = "`<` struct(params) `>`";
}

// Numbers are checked when they are parsed (MachineNumbers.h).
class Machine_Param<string type, string held, string what>
    : AttrOrTypeParameter<"::mlir::fp8::machine::" # type, what, held>;
def Machine_Number : Machine_Param<"Number", "double", "a number">;
def Machine_Amount
    : Machine_Param<"Amount", "double", "a number that is not negative">;
def Machine_Rate : Machine_Param<"Rate", "double", "a positive number">;
def Machine_Count : Machine_Param<"Count", "int64_t", "a positive integer">;

// What nobody has measured.
class Machine_Unmeasured<string type>
    : Machine_Param<type, "double", "0 if it is left out"> {
  let defaultValue = "::mlir::fp8::machine::" # type # "{0}";
}

//===----------------------------------------------------------------------===//
// Matmuls
//===----------------------------------------------------------------------===//

def Machine_WgmmaCostsAttr : Machine_Attr<"WgmmaCostsModel", "wgmma_costs"> {
  let summary = "what matmuls of one kind of operands take on Hopper";
  let description = [{
    In clocks, and bytes a clock, unless said otherwise; fitted together
    (tuning/fit_matmul.py). They absorb what the model leaves out, so that a
    single one is no measurement. lib/Kernels/SM90/MatmulCost.cpp says what each
    is multiplied with, lib/Kernels/Machines/h200.mlir what it stands for. Energies
    may be left out.
  }];
  let parameters = (ins
    Machine_Rate:$ping_pong_share,
    Machine_Rate:$single_share,
    Machine_Rate:$cooperative_share,
    Machine_Amount:$contention,
    Machine_Amount:$subtile,
    Machine_Amount:$promotion,
    Machine_Amount:$exposed_promotion,
    Machine_Amount:$narrow_line,
    Machine_Rate:$port_rate,
    Machine_Amount:$misaligned,
    Machine_Amount:$sector_misalignment,
    Machine_Amount:$sharing,
    Machine_Amount:$box,
    Machine_Amount:$l2_contention,
    Machine_Amount:$latency,
    Machine_Amount:$uneven,
    Machine_Amount:$out_of_bounds,
    Machine_Amount:$out_of_bounds_all,
    Machine_Amount:$out_of_bounds_bytes,
    Machine_Amount:$drain,
    Machine_Amount:$store,
    Machine_Amount:$slab,
    Machine_Amount:$one_buffer,
    Machine_Amount:$direct,
    Machine_Rate:$memory_rate,
    Machine_Rate:$pair_rate,
    Machine_Rate:$one_rate,
    Machine_Rate:$memory_latency,
    Machine_Amount:$repeated_rows,
    Machine_Amount:$repeated_cols,
    Machine_Amount:$reduce,
    Machine_Amount:$reduce_column,
    Machine_Amount:$reduce_part,
    Machine_Amount:$launch,
    Machine_Amount:$cluster,
    Machine_Unmeasured<"Amount">:$power,
    Machine_Unmeasured<"Number">:$energy_of_cols,
    Machine_Unmeasured<"Amount">:$energy_of_tile,
    Machine_Unmeasured<"Amount">:$ping_pong_energy
  );
}

def Machine_WgmmaAttr : Machine_Attr<"WgmmaModel", "wgmma"> {
  let summary = "what matmuls take on Hopper";
  let description = [{
    | parameter | meaning |
    | --- | --- |
    | `plain` | of operands in high precision |
    | `fast` | of sums that are not promoted |
    | `promote` | of promoted ones |
    | `block` | with factors along K of A or B |
    | `both` | with such of single rows of both |
    | `most_repeated` | tiles that bring a byte again at about the same time, at most |
    | `reached_by_4`, `reached_by_8` | multiprocessors that clusters of 4 and 8 reach |
    | `issue` | clocks that an instruction of an epilogue takes each scheduler |
    | `narrow_slab` | clocks of a slab of a subtile that is less than 64 bytes wide |
    | `few_rows` | rows up to which two products are not worth a pair |
    | `many_rows` | rows of A beyond which swapped operands are the exception |
    | `most_unrolled` | instructions of an epilogue beyond which subtiles share its code |
    | `many_of_element` | of an element, from which on they do if each is stored at once |
    | `lift`, `lift_latency` | clocks that a warp of each scheduler takes to lift a row of packed weights for 128 of K, and those that warps wait for each stage |
    | `lift_registers`, `lift_registers_of_e2m1`, `lift_registers_latency` | clocks that consumers take to lift a row of packed weights for a K block to bf16 in registers, of E4M3 and of E2M1, and those that one of them takes at least |
    | `lift_reduce` | clocks that parts of K which are added up through memory take more than `reduce` beside such consumers |
    | `box_row` | clocks in which a multiprocessor's bulk copies bring a row of packed codes, however short it is |
    | `cluster_reduce`, `cluster_reduce_part` | clocks in which the first block of a cluster has the parts of K of all, and more for each part of 64 rows of a column |
    | `scaled_block`, `scaled_addition`, `scaled_share` | clocks that a consumer takes for 128 of K with factors for each 32, beside its sums; those for each sum of a thread that is multiplied by its factors; and of both what each of several consumers takes from the others |
    | `scaled_parts`, `scaled_part` | of the clocks of consumers that share K with such factors and few rows what is left, and that over how many these are, up to four |
    | `fills` | whether copies bring zeros out of bounds in every block of K, as those of older kernels did; for fits to their times |
  }];
  let parameters = (ins
    "WgmmaCostsModelAttr":$plain,
    "WgmmaCostsModelAttr":$fast,
    "WgmmaCostsModelAttr":$promote,
    "WgmmaCostsModelAttr":$block,
    "WgmmaCostsModelAttr":$both,
    Machine_Count:$most_repeated,
    Machine_Count:$reached_by_4,
    Machine_Count:$reached_by_8,
    Machine_Unmeasured<"Amount">:$issue,
    Machine_Unmeasured<"Amount">:$narrow_slab,
    Machine_Count:$few_rows,
    Machine_Count:$many_rows,
    Machine_Count:$most_unrolled,
    Machine_Count:$many_of_element,
    Machine_Unmeasured<"Amount">:$lift,
    Machine_Unmeasured<"Amount">:$lift_latency,
    Machine_Unmeasured<"Amount">:$lift_registers,
    Machine_Unmeasured<"Amount">:$lift_registers_of_e2m1,
    Machine_Unmeasured<"Amount">:$lift_registers_latency,
    Machine_Unmeasured<"Amount">:$lift_reduce,
    Machine_Unmeasured<"Amount">:$box_row,
    Machine_Unmeasured<"Amount">:$cluster_reduce,
    Machine_Unmeasured<"Amount">:$cluster_reduce_part,
    Machine_Unmeasured<"Amount">:$scaled_block,
    Machine_Unmeasured<"Amount">:$scaled_addition,
    Machine_Unmeasured<"Amount">:$scaled_share,
    Machine_Unmeasured<"Amount">:$scaled_parts,
    Machine_Unmeasured<"Amount">:$scaled_part,
    DefaultValuedParameter<"bool", "false">:$fills
  );
}

def Machine_Tcgen05Attr : Machine_Attr<"Tcgen05Model", "tcgen05"> {
  let summary = "what matmuls take on Blackwell";
  let description = [{
    | parameter | meaning |
    | --- | --- |
    | `shared_rate` | bytes a clock of shared memory |
    | `tensor_memory_rate` | words of tensor memory that are read in a clock |
    | `store_rate` | bytes a clock of results that leave |
    | `scattered` | how much longer elements take that are stored alone |
    | `add_rate` | multiply-adds of a multiprocessor in a clock |
    | `store_instructions` | of an element, beside those of its epilogue |
    | `fill` | clocks until the first bytes have come |
    | `chunk` | clocks from one chunk of sums to the next one, whose load is waited for |
    | `sync` | clocks from one warp's arrival at a barrier to another's going on |
    | `reduce`, `reduce_part` | clocks for adding up parts of K: fixed, and for each part |
    | `most_swapped` | rows of A up to which swapped operands are worth a thought |
  }];
  let parameters = (ins
    Machine_Rate:$shared_rate,
    Machine_Rate:$tensor_memory_rate,
    Machine_Rate:$store_rate,
    Machine_Rate:$scattered,
    Machine_Rate:$add_rate,
    Machine_Amount:$store_instructions,
    Machine_Amount:$fill,
    Machine_Amount:$chunk,
    Machine_Amount:$sync,
    Machine_Amount:$reduce,
    Machine_Amount:$reduce_part,
    Machine_Count:$most_swapped
  );
}

def Machine_MmaAttr : Machine_Attr<"MmaModel", "mma"> {
  let summary = "what matmuls take on Ada";
  let description = [{
    | parameter | meaning |
    | --- | --- |
    | `shared_rate` | bytes a clock of shared memory |
    | `store_rate` | bytes a clock of results that leave |
    | `scattered` | how much longer elements take that are stored alone |
    | `add_rate` | multiply-adds of a multiprocessor in a clock |
    | `store_instructions` | of an element, beside those of its epilogue |
    | `fill` | clocks until the first bytes have come |
    | `step` | clocks of a K block in which a block waits |
    | `reduce`, `reduce_part` | clocks for adding up parts of K: fixed, and for each part |
    | `most_swapped` | rows of A up to which swapped operands are worth a thought |
  }];
  let parameters = (ins
    Machine_Rate:$shared_rate,
    Machine_Rate:$store_rate,
    Machine_Rate:$scattered,
    Machine_Rate:$add_rate,
    Machine_Amount:$store_instructions,
    Machine_Amount:$fill,
    Machine_Amount:$step,
    Machine_Amount:$reduce,
    Machine_Amount:$reduce_part,
    Machine_Count:$most_swapped
  );
}

//===----------------------------------------------------------------------===//
// Streams and transposes
//===----------------------------------------------------------------------===//

def Machine_TileAttr : Machine_Attr<"TileModel", "tile"> {
  let summary = "a block of a streaming kernel";
  let description = [{
    Rows of a thread, warps, and blocks that a multiprocessor has room for.

    Constraints:
    - (C1) `rows` and `warps` are powers of two up to 32, and `resident` is up
      to 8.
  }];
  let parameters = (ins
    Machine_Count:$rows,
    Machine_Count:$warps,
    Machine_Count:$resident
  );
  let genVerifyDecl = 1;
}

def Machine_FusionAttr : Machine_Attr<"FusionModel", "fusion"> {
  let summary = "which configs of streaming kernels are the fastest";
  let description = [{
    | parameter | tiles, which are considered where |
    | --- | --- |
    | `rotated` | rows of f32 are rotated |
    | `drawn`, `drawn_wide` | random words are drawn, beside inputs of 16 bits and of 32 |
    | `unaligned` | pairs of codes are transposed whose addresses are computed one at a time |
    | `waiting` | blocks wait in the middle, or few tiles have one input |
    | `few` | there are fewer than `few_tiles` |
    | `many` | there are more, of one input |
    | `plain` | columns are not reduced, and nothing is drawn |
    | `usual` | always |
    | `crowded` | nothing is drawn |
    | `small` | always |

    `tile_elements` are those of the tiles that are counted; fewer than
    `fewest_tiles` of one input wait. Of whole rows that are not transposed
    `row_warps` hide what memory takes, and more than `row_chunks` of a thread
    are held by fewer threads at once.

    Constraints:
    - (C1) `row_warps` is a power of two up to 32, and `row_resident` is up to 8.
  }];
  let parameters = (ins
    "TileModelAttr":$rotated,
    "TileModelAttr":$drawn,
    "TileModelAttr":$drawn_wide,
    "TileModelAttr":$unaligned,
    "TileModelAttr":$waiting,
    "TileModelAttr":$few,
    "TileModelAttr":$many,
    "TileModelAttr":$plain,
    "TileModelAttr":$usual,
    "TileModelAttr":$crowded,
    "TileModelAttr":$small,
    Machine_Count:$tile_elements,
    Machine_Count:$fewest_tiles,
    Machine_Count:$few_tiles,
    Machine_Count:$row_warps,
    Machine_Count:$row_resident,
    Machine_Count:$row_chunks
  );
  let genVerifyDecl = 1;
}

def Machine_TransposeAttr : Machine_Attr<"TransposeModel", "transpose"> {
  let summary = "which configs of transposing kernels are the fastest";
  let description = [{
    A block has `warp_bytes` / bytes of an element warps: as many as keep some
    loads of each under way.

    Constraints:
    - (C1) `warp_bytes` is 8 or 16.
  }];
  let parameters = (ins Machine_Count:$warp_bytes);
  let genVerifyDecl = 1;
}

//===----------------------------------------------------------------------===//
// Programs
//===----------------------------------------------------------------------===//

def Machine_AttentionAttr : Machine_Attr<"AttentionModel", "attention"> {
  let summary = "which configs of attention are the fastest for few queries";
  let description = [{
    What decodes is limited by memory: configs are compared by how far they are
    from what was the fastest.

    | parameter | meaning |
    | --- | --- |
    | `tile_8`, `tile_16` | bytes of keys and values of the best tile, of 8 and of 16 bits: smaller ones have a tile's barriers and reductions more often, larger ones exponentiate for longer |
    | `tile_step` | bytes of distance from those that count 1 |
    | `under_way` | bytes that a multiprocessor has to have on their way |
    | `under_way_step` | bytes that it has less of those that count 1 |
    | `block` | what it counts that a multiprocessor has one block, and not two |
  }];
  let parameters = (ins
    Machine_Count:$tile_8,
    Machine_Count:$tile_16,
    Machine_Count:$tile_step,
    Machine_Count:$under_way,
    Machine_Count:$under_way_step,
    Machine_Amount:$block
  );
}

def Machine_LayerAttr : Machine_Attr<"LayerModel", "layer"> {
  let summary = "what a linear layer takes, forward and backward";
  let description = [{
    Microseconds: of its launches, of 10^9 multiply-adds of one of its products,
    and of 10^6 elements of its input, its weight and its result.
  }];
  let parameters = (ins
    Machine_Amount:$launch,
    Machine_Amount:$product,
    Machine_Amount:$x,
    Machine_Amount:$weight,
    Machine_Amount:$y
  );
}

def Machine_HostAttr : Machine_Attr<"HostModel", "host"> {
  let summary = "what the host takes for products";
  let description = [{
    Microseconds for a product, `product`, and for a cast, `cast`; and `share`,
    the time of all kernels of a step over that of its products.
  }];
  let parameters = (ins
    Machine_Amount:$product,
    Machine_Amount:$cast,
    Machine_Rate:$share
  );
}

//===----------------------------------------------------------------------===//
// Machines
//===----------------------------------------------------------------------===//

def Machine_MachineAttr : Machine_Attr<"Machine", "machine"> {
  let summary = "a GPU's product";
  let description = [{
    | parameter | meaning |
    | --- | --- |
    | `name` | what `--machine` calls it |
    | `devices` | words of which the driver's name of such a device has one |
    | `usual` | whether it is meant where only its chip is known |
    | `target` | `#fp8_gpu.target`: its data sheet, as far as kernels need it |
    | `memory` | gigabytes (10^9) of memory |
    | `l2` | bytes of L2 |
    | `matmul` | `#fp8_machine.wgmma` or `#fp8_machine.tcgen05` |
    | `fusion`, `transpose` | of kernels of these kinds |
    | `attention` | of attention, where its chip has kernels of it; without, that of the chip's usual machine |
    | `layers` | a `#fp8_machine.layer` of each recipe that was measured, and of `none` |
    | `host` | of a host beside it |

    Constraints:
    - (C1) `name` is not empty, and neither are `devices`, strings;
    - (C2) `target` has no machine of its own;
    - (C3) `matmul` is one of the attributes that the table says;
    - (C4) `layers` are `#fp8_machine.layer`s, with one of `none`.
  }];
  let parameters = (ins
    StringRefParameter<"name">:$name,
    "::mlir::ArrayAttr":$devices,
    DefaultValuedParameter<"bool", "false">:$usual,
    "::mlir::fp8::GPUTargetAttr":$target,
    Machine_Count:$memory,
    Machine_Count:$l2,
    "::mlir::Attribute":$matmul,
    "FusionModelAttr":$fusion,
    "TransposeModelAttr":$transpose,
    OptionalParameter<"AttentionModelAttr">:$attention,
    "::mlir::DictionaryAttr":$layers,
    "HostModelAttr":$host
  );
  let genVerifyDecl = 1;
}

#endif // FP8_LIB_KERNELS_MACHINES_MACHINEDIALECT_TD
