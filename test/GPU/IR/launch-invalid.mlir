// RUN: fp8-opt --allow-unregistered-dialect --split-input-file --verify-diagnostics %s

// expected-error @+1 {{expected arguments of a launch to be #fp8_gpu.argument, but got 1 : i32}}
"test.launch_c1_arguments"() {a = #fp8_gpu.launch<
    arguments = [1 : i32],
    extents = [#fp8_gpu.extent<"n", 0, 0>],
    params = [],
    grid = affine_map<()[s0] -> (s0)>,
    block = 128>} : () -> ()

// -----

// expected-error @+1 {{expected extents of a launch to be #fp8_gpu.extent, but got "n"}}
"test.launch_c1_extents"() {a = #fp8_gpu.launch<
    arguments = [#fp8_gpu.argument<name = "x", element = f32, rank = 2, access = read, alignment = 16>,
      #fp8_gpu.argument<name = "y", element = f32, rank = 2, access = write, alignment = 16>],
    extents = ["n"],
    params = [],
    grid = affine_map<()[s0] -> (s0)>,
    block = 128>} : () -> ()

// -----

// expected-error @+1 {{expected params of a launch to be parameters of a kernel, but got #fp8_gpu.extent<"n", 0, 0>}}
"test.launch_c1_params"() {a = #fp8_gpu.launch<
    arguments = [#fp8_gpu.argument<name = "x", element = f32, rank = 2, access = read, alignment = 16>,
      #fp8_gpu.argument<name = "y", element = f32, rank = 2, access = write, alignment = 16>],
    extents = [#fp8_gpu.extent<"n", 0, 0>],
    params = [#fp8_gpu.extent<"n", 0, 0>],
    grid = affine_map<()[s0] -> (s0)>,
    block = 128>} : () -> ()

// -----

// expected-error @+1 {{expected workspaces of a launch to be #fp8_gpu.workspace, but got 4 : i64}}
"test.launch_c1_workspaces"() {a = #fp8_gpu.launch<
    arguments = [#fp8_gpu.argument<name = "x", element = f32, rank = 2, access = read, alignment = 16>,
      #fp8_gpu.argument<name = "y", element = f32, rank = 2, access = write, alignment = 16>],
    extents = [#fp8_gpu.extent<"n", 0, 0>],
    params = [],
    grid = affine_map<()[s0] -> (s0)>,
    block = 128,
    workspaces = [4]>} : () -> ()

// -----

// expected-error @+1 {{expected arguments that are read before those that are written, but got 'x' after one of these}}
"test.launch_c1_order"() {a = #fp8_gpu.launch<
    arguments = [#fp8_gpu.argument<name = "y", element = f32, rank = 2, access = update, alignment = 16>,
      #fp8_gpu.argument<name = "x", element = f32, rank = 2, access = read, alignment = 16>],
    extents = [#fp8_gpu.extent<"n", 0, 0>],
    params = [],
    grid = affine_map<()[s0] -> (s0)>,
    block = 128>} : () -> ()

// -----

// expected-error @+1 {{expected a launch to write an argument}}
"test.launch_c1_written"() {a = #fp8_gpu.launch<
    arguments = [#fp8_gpu.argument<name = "x", element = f32, rank = 2, access = read, alignment = 16>],
    extents = [#fp8_gpu.extent<"n", 0, 0>],
    params = [],
    grid = affine_map<()[s0] -> (s0)>,
    block = 128>} : () -> ()

// -----

// expected-error @+1 {{expected one argument called 'x', but got several}}
"test.launch_c2_arguments"() {a = #fp8_gpu.launch<
    arguments = [#fp8_gpu.argument<name = "x", element = f32, rank = 2, access = read, alignment = 16>,
      #fp8_gpu.argument<name = "x", element = f32, rank = 2, access = write, alignment = 16>],
    extents = [#fp8_gpu.extent<"n", 0, 0>],
    params = [],
    grid = affine_map<()[s0] -> (s0)>,
    block = 128>} : () -> ()

// -----

// expected-error @+1 {{expected one extent called 'n', but got several}}
"test.launch_c2_extents"() {a = #fp8_gpu.launch<
    arguments = [#fp8_gpu.argument<name = "x", element = f32, rank = 2, access = read, alignment = 16>,
      #fp8_gpu.argument<name = "y", element = f32, rank = 2, access = write, alignment = 16>],
    extents = [#fp8_gpu.extent<"n", 0, 0>,
      #fp8_gpu.extent<"n", 0, 1>],
    params = [],
    grid = affine_map<()[s0, s1] -> (s0)>,
    block = 128>} : () -> ()

// -----

// expected-error @+1 {{expected the grid to have the 1 extents as symbols and no dimensions, but got affine_map<(d0)[s0] -> (d0)>}}
"test.launch_c4_dimensions"() {a = #fp8_gpu.launch<
    arguments = [#fp8_gpu.argument<name = "x", element = f32, rank = 2, access = read, alignment = 16>,
      #fp8_gpu.argument<name = "y", element = f32, rank = 2, access = write, alignment = 16>],
    extents = [#fp8_gpu.extent<"n", 0, 0>],
    params = [],
    grid = affine_map<(d0)[s0] -> (d0)>,
    block = 128>} : () -> ()

// -----

// expected-error @+1 {{expected the grid to have the 1 extents as symbols and no dimensions, but got affine_map<()[s0, s1] -> (s1)>}}
"test.launch_c4_symbols"() {a = #fp8_gpu.launch<
    arguments = [#fp8_gpu.argument<name = "x", element = f32, rank = 2, access = read, alignment = 16>,
      #fp8_gpu.argument<name = "y", element = f32, rank = 2, access = write, alignment = 16>],
    extents = [#fp8_gpu.extent<"n", 0, 0>],
    params = [],
    grid = affine_map<()[s0, s1] -> (s1)>,
    block = 128>} : () -> ()

// -----

// expected-error @+1 {{expected the flops to have the 1 extents as symbols and no dimensions, but got affine_map<()[s0, s1] -> (s0 * s1)>}}
"test.launch_c4_flops"() {a = #fp8_gpu.launch<
    arguments = [#fp8_gpu.argument<name = "x", element = f32, rank = 2, access = read, alignment = 16>,
      #fp8_gpu.argument<name = "y", element = f32, rank = 2, access = write, alignment = 16>],
    extents = [#fp8_gpu.extent<"n", 0, 0>],
    params = [],
    grid = affine_map<()[s0] -> (s0)>,
    block = 128,
    flops = affine_map<()[s0, s1] -> (s0 * s1)>>} : () -> ()

// -----

// expected-error @+1 {{expected the grid to divide by positive constants, but got affine_map<()[s0, s1] -> (s0 ceildiv s1)>}}
"test.launch_c4_division"() {a = #fp8_gpu.launch<
    arguments = [#fp8_gpu.argument<name = "x", element = f32, rank = 2, access = read, alignment = 16>,
      #fp8_gpu.argument<name = "y", element = f32, rank = 2, access = write, alignment = 16>],
    extents = [#fp8_gpu.extent<"m", 0, 0>,
      #fp8_gpu.extent<"n", 0, 1>],
    params = [],
    grid = affine_map<()[s0, s1] -> (s0 ceildiv s1)>,
    block = 128>} : () -> ()

// -----

// expected-error @+1 {{expected the grid to divide by positive constants, but got}}
"test.launch_c4_inner_division"() {a = #fp8_gpu.launch<
    arguments = [#fp8_gpu.argument<name = "x", element = f32, rank = 2, access = read, alignment = 16>,
      #fp8_gpu.argument<name = "y", element = f32, rank = 2, access = write, alignment = 16>],
    extents = [#fp8_gpu.extent<"m", 0, 0>,
      #fp8_gpu.extent<"n", 0, 1>],
    params = [],
    grid = affine_map<()[s0, s1] -> (1 + 2 * (s0 mod s1))>,
    block = 128>} : () -> ()

// -----

// expected-error @+1 {{expected a value to have the 1 extents as symbols and no dimensions, but got affine_map<() -> (1)>}}
"test.launch_c4_value"() {a = #fp8_gpu.launch<
    arguments = [#fp8_gpu.argument<name = "x", element = f32, rank = 2, access = read, alignment = 16>,
      #fp8_gpu.argument<name = "y", element = f32, rank = 2, access = write, alignment = 16>],
    extents = [#fp8_gpu.extent<"n", 0, 0>],
    params = [#fp8_gpu.value<affine_map<() -> (1)> : i32>],
    grid = affine_map<()[s0] -> (s0)>,
    block = 128>} : () -> ()

// -----

// expected-error @+1 {{expected the bytes of a workspace to have the 1 extents as symbols and no dimensions, but got affine_map<(d0) -> (d0)>}}
"test.launch_c4_workspace"() {a = #fp8_gpu.launch<
    arguments = [#fp8_gpu.argument<name = "x", element = f32, rank = 2, access = read, alignment = 16>,
      #fp8_gpu.argument<name = "y", element = f32, rank = 2, access = write, alignment = 16>],
    extents = [#fp8_gpu.extent<"n", 0, 0>],
    params = [],
    grid = affine_map<()[s0] -> (s0)>,
    block = 128,
    workspaces = [#fp8_gpu.workspace<bytes = affine_map<(d0) -> (d0)>>]>} : () -> ()

// -----

// expected-error @+1 {{expected the grid to have 1 to 3 results, but got 4}}
"test.launch_c5_grid"() {a = #fp8_gpu.launch<
    arguments = [#fp8_gpu.argument<name = "x", element = f32, rank = 2, access = read, alignment = 16>,
      #fp8_gpu.argument<name = "y", element = f32, rank = 2, access = write, alignment = 16>],
    extents = [#fp8_gpu.extent<"n", 0, 0>],
    params = [],
    grid = affine_map<()[s0] -> (1, 2, 3, 4)>,
    block = 128>} : () -> ()

// -----

// expected-error @+1 {{expected the grid to have 1 to 3 results, but got 0}}
"test.launch_c5_no_grid"() {a = #fp8_gpu.launch<
    arguments = [#fp8_gpu.argument<name = "x", element = f32, rank = 2, access = read, alignment = 16>,
      #fp8_gpu.argument<name = "y", element = f32, rank = 2, access = write, alignment = 16>],
    extents = [#fp8_gpu.extent<"n", 0, 0>],
    params = [],
    grid = affine_map<()[s0] -> ()>,
    block = 128>} : () -> ()

// -----

// expected-error @+1 {{expected a value to have 1 result, but got 2}}
"test.launch_c5_value"() {a = #fp8_gpu.launch<
    arguments = [#fp8_gpu.argument<name = "x", element = f32, rank = 2, access = read, alignment = 16>,
      #fp8_gpu.argument<name = "y", element = f32, rank = 2, access = write, alignment = 16>],
    extents = [#fp8_gpu.extent<"n", 0, 0>],
    params = [#fp8_gpu.value<affine_map<()[s0] -> (s0, 1)> : i32>],
    grid = affine_map<()[s0] -> (s0)>,
    block = 128>} : () -> ()

// -----

// expected-error @+1 {{expected the bytes of a workspace to have 1 result, but got 2}}
"test.launch_c5_workspace"() {a = #fp8_gpu.launch<
    arguments = [#fp8_gpu.argument<name = "x", element = f32, rank = 2, access = read, alignment = 16>,
      #fp8_gpu.argument<name = "y", element = f32, rank = 2, access = write, alignment = 16>],
    extents = [#fp8_gpu.extent<"n", 0, 0>],
    params = [],
    grid = affine_map<()[s0] -> (s0)>,
    block = 128,
    workspaces = [#fp8_gpu.workspace<bytes = affine_map<()[s0] -> (s0, 1)>>]>} : () -> ()

// -----

// expected-error @+1 {{expected block to be a multiple of 32 up to 1024, but got 48}}
"test.launch_c6_block"() {a = #fp8_gpu.launch<
    arguments = [#fp8_gpu.argument<name = "x", element = f32, rank = 2, access = read, alignment = 16>,
      #fp8_gpu.argument<name = "y", element = f32, rank = 2, access = write, alignment = 16>],
    extents = [#fp8_gpu.extent<"n", 0, 0>],
    params = [],
    grid = affine_map<()[s0] -> (s0)>,
    block = 48>} : () -> ()

// -----

// expected-error @+1 {{expected block to be a multiple of 32 up to 1024, but got 0}}
"test.launch_c6_block_zero"() {a = #fp8_gpu.launch<
    arguments = [#fp8_gpu.argument<name = "x", element = f32, rank = 2, access = read, alignment = 16>,
      #fp8_gpu.argument<name = "y", element = f32, rank = 2, access = write, alignment = 16>],
    extents = [#fp8_gpu.extent<"n", 0, 0>],
    params = [],
    grid = affine_map<()[s0] -> (s0)>,
    block = 0>} : () -> ()

// -----

// expected-error @+1 {{expected block to be a multiple of 32 up to 1024, but got 1056}}
"test.launch_c6_block_most"() {a = #fp8_gpu.launch<
    arguments = [#fp8_gpu.argument<name = "x", element = f32, rank = 2, access = read, alignment = 16>,
      #fp8_gpu.argument<name = "y", element = f32, rank = 2, access = write, alignment = 16>],
    extents = [#fp8_gpu.extent<"n", 0, 0>],
    params = [],
    grid = affine_map<()[s0] -> (s0)>,
    block = 1056>} : () -> ()

// -----

// expected-error @+1 {{expected cluster to be in 1..16, but got 17}}
"test.launch_c6_cluster"() {a = #fp8_gpu.launch<
    arguments = [#fp8_gpu.argument<name = "x", element = f32, rank = 2, access = read, alignment = 16>,
      #fp8_gpu.argument<name = "y", element = f32, rank = 2, access = write, alignment = 16>],
    extents = [#fp8_gpu.extent<"n", 0, 0>],
    params = [],
    grid = affine_map<()[s0] -> (s0)>,
    block = 128,
    cluster = 17>} : () -> ()

// -----

// expected-error @+1 {{expected cluster to be in 1..16, but got 0}}
"test.launch_c6_cluster_zero"() {a = #fp8_gpu.launch<
    arguments = [#fp8_gpu.argument<name = "x", element = f32, rank = 2, access = read, alignment = 16>,
      #fp8_gpu.argument<name = "y", element = f32, rank = 2, access = write, alignment = 16>],
    extents = [#fp8_gpu.extent<"n", 0, 0>],
    params = [],
    grid = affine_map<()[s0] -> (s0)>,
    block = 128,
    cluster = 0>} : () -> ()

// -----

// expected-error @+1 {{expected shared_bytes to be in 0..2147483647, but got -1}}
"test.launch_c6_shared_bytes"() {a = #fp8_gpu.launch<
    arguments = [#fp8_gpu.argument<name = "x", element = f32, rank = 2, access = read, alignment = 16>,
      #fp8_gpu.argument<name = "y", element = f32, rank = 2, access = write, alignment = 16>],
    extents = [#fp8_gpu.extent<"n", 0, 0>],
    params = [],
    grid = affine_map<()[s0] -> (s0)>,
    block = 128,
    shared_bytes = -1>} : () -> ()

// -----

// expected-error @+1 {{expected resident to be in 0..64, but got 65}}
"test.launch_c6_resident"() {a = #fp8_gpu.launch<
    arguments = [#fp8_gpu.argument<name = "x", element = f32, rank = 2, access = read, alignment = 16>,
      #fp8_gpu.argument<name = "y", element = f32, rank = 2, access = write, alignment = 16>],
    extents = [#fp8_gpu.extent<"n", 0, 0>],
    params = [],
    grid = affine_map<()[s0] -> (s0)>,
    block = 128,
    resident = 65>} : () -> ()

// -----

// expected-error @+1 {{expected resident to be in 0..64, but got -1}}
"test.launch_c6_resident_negative"() {a = #fp8_gpu.launch<
    arguments = [#fp8_gpu.argument<name = "x", element = f32, rank = 2, access = read, alignment = 16>,
      #fp8_gpu.argument<name = "y", element = f32, rank = 2, access = write, alignment = 16>],
    extents = [#fp8_gpu.extent<"n", 0, 0>],
    params = [],
    grid = affine_map<()[s0] -> (s0)>,
    block = 128,
    resident = -1>} : () -> ()

// -----

// expected-error @+1 {{expected the grid to be evaluated with up to 16 numbers at hand, but got 17 for affine_map}}
"test.launch_c4_operands"() {a = #fp8_gpu.launch<
    arguments = [#fp8_gpu.argument<name = "y", element = f32, rank = 1, access = write, alignment = 16>],
    extents = [#fp8_gpu.extent<"n", 0, 0>],
    params = [],
    grid = affine_map<()[s0] -> (s0 * (1 + s0 * (1 + s0 * (1 + s0 * (1 + s0 * (1 + s0 * (1 + s0 * (1 + s0 * (1 + s0 * (1 + s0 * (1 + s0 * (1 + s0 * (1 + s0 * (1 + s0 * (1 + s0 * (1 + s0 mod 3) mod 4) mod 5) mod 6) mod 7) mod 8) mod 9) mod 10) mod 11) mod 12) mod 13) mod 14) mod 15) mod 16) mod 17))>,
    block = 128>} : () -> ()
