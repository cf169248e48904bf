// RUN: fp8-opt --allow-unregistered-dialect --split-input-file --verify-diagnostics %s

// expected-error @+1 {{tensor map of argument 'x': expected a box of 1 to 5 dimensions, as many as the argument's 2, but got 1}}
"test.tensor_map_c1"() {a = #fp8_gpu.launch<
    arguments = [#fp8_gpu.argument<name = "x", element = f32, rank = 2, access = read, alignment = 16>,
      #fp8_gpu.argument<name = "y", element = f32, rank = 2, access = write, alignment = 16>],
    extents = [#fp8_gpu.extent<"n", 0, 0>],
    params = [#fp8_gpu.tensor_map<0, box = [32], swizzle = 128, l2 = 128>],
    grid = affine_map<()[s0] -> (s0)>,
    block = 128>} : () -> ()

// -----

// expected-error @+1 {{tensor map of argument 'x': expected a box of 1 to 5 dimensions, as many as the argument's 6, but got 6}}
"test.tensor_map_c1_rank"() {a = #fp8_gpu.launch<
    arguments = [#fp8_gpu.argument<name = "x", element = f32, rank = 6, access = read, alignment = 16>,
      #fp8_gpu.argument<name = "y", element = f32, rank = 2, access = write, alignment = 16>],
    extents = [#fp8_gpu.extent<"n", 0, 0>],
    params = [#fp8_gpu.tensor_map<0, box = [32, 1, 1, 1, 1, 1], swizzle = 128, l2 = 128>],
    grid = affine_map<()[s0] -> (s0)>,
    block = 128>} : () -> ()

// -----

// expected-error @+1 {{tensor map of argument 'x': expected a box of 1 to 5 dimensions, as many as the argument's 0, but got 1}}
"test.tensor_map_c1_scalar"() {a = #fp8_gpu.launch<
    arguments = [#fp8_gpu.argument<name = "x", element = f32, rank = 0, access = read, alignment = 16>,
      #fp8_gpu.argument<name = "y", element = f32, rank = 2, access = write, alignment = 16>],
    extents = [],
    params = [#fp8_gpu.tensor_map<0, box = [4], swizzle = 128, l2 = 128>],
    grid = affine_map<() -> (1)>,
    block = 128>} : () -> ()

// -----

// expected-error @+1 {{tensor map of argument 'x': expected extents of the box to be in 1..256, but got 257}}
"test.tensor_map_c1_extent"() {a = #fp8_gpu.launch<
    arguments = [#fp8_gpu.argument<name = "x", element = f32, rank = 2, access = read, alignment = 16>,
      #fp8_gpu.argument<name = "y", element = f32, rank = 2, access = write, alignment = 16>],
    extents = [#fp8_gpu.extent<"n", 0, 0>],
    params = [#fp8_gpu.tensor_map<0, box = [32, 257], swizzle = 128, l2 = 128>],
    grid = affine_map<()[s0] -> (s0)>,
    block = 128>} : () -> ()

// -----

// expected-error @+1 {{tensor map of argument 'x': expected rows of the box of a multiple of 16 bytes, no longer than the swizzle, but got 24}}
"test.tensor_map_c2"() {a = #fp8_gpu.launch<
    arguments = [#fp8_gpu.argument<name = "x", element = f32, rank = 2, access = read, alignment = 16>,
      #fp8_gpu.argument<name = "y", element = f32, rank = 2, access = write, alignment = 16>],
    extents = [#fp8_gpu.extent<"n", 0, 0>],
    params = [#fp8_gpu.tensor_map<0, box = [6, 64], swizzle = 0, l2 = 128>],
    grid = affine_map<()[s0] -> (s0)>,
    block = 128>} : () -> ()

// -----

// expected-error @+1 {{tensor map of argument 'x': expected rows of the box of a multiple of 16 bytes, no longer than the swizzle, but got 128}}
"test.tensor_map_c2_swizzle"() {a = #fp8_gpu.launch<
    arguments = [#fp8_gpu.argument<name = "x", element = f32, rank = 2, access = read, alignment = 16>,
      #fp8_gpu.argument<name = "y", element = f32, rank = 2, access = write, alignment = 16>],
    extents = [#fp8_gpu.extent<"n", 0, 0>],
    params = [#fp8_gpu.tensor_map<0, box = [32, 64], swizzle = 64, l2 = 128>],
    grid = affine_map<()[s0] -> (s0)>,
    block = 128>} : () -> ()

// -----

// expected-error @+1 {{tensor map of argument 'x': expected swizzle to be 0, 32, 64 or 128, but got 16}}
"test.tensor_map_c3_swizzle"() {a = #fp8_gpu.launch<
    arguments = [#fp8_gpu.argument<name = "x", element = f32, rank = 2, access = read, alignment = 16>,
      #fp8_gpu.argument<name = "y", element = f32, rank = 2, access = write, alignment = 16>],
    extents = [#fp8_gpu.extent<"n", 0, 0>],
    params = [#fp8_gpu.tensor_map<0, box = [32, 64], swizzle = 16, l2 = 128>],
    grid = affine_map<()[s0] -> (s0)>,
    block = 128>} : () -> ()

// -----

// expected-error @+1 {{tensor map of argument 'x': expected l2 to be 0, 64, 128 or 256, but got 32}}
"test.tensor_map_c3_l2"() {a = #fp8_gpu.launch<
    arguments = [#fp8_gpu.argument<name = "x", element = f32, rank = 2, access = read, alignment = 16>,
      #fp8_gpu.argument<name = "y", element = f32, rank = 2, access = write, alignment = 16>],
    extents = [#fp8_gpu.extent<"n", 0, 0>],
    params = [#fp8_gpu.tensor_map<0, box = [32, 64], swizzle = 128, l2 = 32>],
    grid = affine_map<()[s0] -> (s0)>,
    block = 128>} : () -> ()

// -----

// expected-error @+1 {{tensor map of argument 'x': expected an alignment of 16 bytes, but got 8}}
"test.tensor_map_c4"() {a = #fp8_gpu.launch<
    arguments = [#fp8_gpu.argument<name = "x", element = f32, rank = 2, access = read, alignment = 8>,
      #fp8_gpu.argument<name = "y", element = f32, rank = 2, access = write, alignment = 16>],
    extents = [#fp8_gpu.extent<"n", 0, 0>],
    params = [#fp8_gpu.tensor_map<0, box = [32, 64], swizzle = 128, l2 = 128>],
    grid = affine_map<()[s0] -> (s0)>,
    block = 128>} : () -> ()

// -----

// expected-error @+1 {{tensor map of argument 'x': expected tail to be a dimension in 1..1, but got 2}}
"test.tensor_map_c5"() {a = #fp8_gpu.launch<
    arguments = [#fp8_gpu.argument<name = "x", element = f32, rank = 2, access = read, alignment = 16>,
      #fp8_gpu.argument<name = "y", element = f32, rank = 2, access = write, alignment = 16>],
    extents = [#fp8_gpu.extent<"n", 0, 0>],
    params = [#fp8_gpu.tensor_map<0, box = [32, 64], swizzle = 128, l2 = 128, tail = 2>],
    grid = affine_map<()[s0] -> (s0)>,
    block = 128>} : () -> ()

// -----

// expected-error @+1 {{tensor map of argument 'x': expected tail to be a dimension in 1..1, but got 0}}
"test.tensor_map_c5_innermost"() {a = #fp8_gpu.launch<
    arguments = [#fp8_gpu.argument<name = "x", element = f32, rank = 2, access = read, alignment = 16>,
      #fp8_gpu.argument<name = "y", element = f32, rank = 2, access = write, alignment = 16>],
    extents = [#fp8_gpu.extent<"n", 0, 0>],
    params = [#fp8_gpu.tensor_map<0, box = [32, 64], swizzle = 128, l2 = 128, tail = 0>],
    grid = affine_map<()[s0] -> (s0)>,
    block = 128>} : () -> ()

// -----

// expected-error @+1 {{expected an extent to be of one of 2 arguments, but got 2}}
"test.launch_c3_extent"() {a = #fp8_gpu.launch<
    arguments = [#fp8_gpu.argument<name = "x", element = f32, rank = 2, access = read, alignment = 16>,
      #fp8_gpu.argument<name = "y", element = f32, rank = 2, access = write, alignment = 16>],
    extents = [#fp8_gpu.extent<"n", 2, 0>],
    params = [],
    grid = affine_map<()[s0] -> (s0)>,
    block = 128>} : () -> ()

// -----

// expected-error @+1 {{expected an extent to be of one of the 2 dimensions of argument 'y', but got 2}}
"test.launch_c3_extent_dim"() {a = #fp8_gpu.launch<
    arguments = [#fp8_gpu.argument<name = "x", element = f32, rank = 2, access = read, alignment = 16>,
      #fp8_gpu.argument<name = "y", element = f32, rank = 2, access = write, alignment = 16>],
    extents = [#fp8_gpu.extent<"n", 1, 2>],
    params = [],
    grid = affine_map<()[s0] -> (s0)>,
    block = 128>} : () -> ()

// -----

// expected-error @+1 {{expected a tensor map to be of one of 2 arguments, but got -1}}
"test.launch_c3_tensor_map"() {a = #fp8_gpu.launch<
    arguments = [#fp8_gpu.argument<name = "x", element = f32, rank = 2, access = read, alignment = 16>,
      #fp8_gpu.argument<name = "y", element = f32, rank = 2, access = write, alignment = 16>],
    extents = [#fp8_gpu.extent<"n", 0, 0>],
    params = [#fp8_gpu.tensor_map<-1, box = [32, 64], swizzle = 128, l2 = 128>],
    grid = affine_map<()[s0] -> (s0)>,
    block = 128>} : () -> ()

// -----

// expected-error @+1 {{expected a pointer to be of one of 2 arguments, but got 2}}
"test.launch_c3_pointer"() {a = #fp8_gpu.launch<
    arguments = [#fp8_gpu.argument<name = "x", element = f32, rank = 2, access = read, alignment = 16>,
      #fp8_gpu.argument<name = "y", element = f32, rank = 2, access = write, alignment = 16>],
    extents = [#fp8_gpu.extent<"n", 0, 0>],
    params = [#fp8_gpu.pointer<2>],
    grid = affine_map<()[s0] -> (s0)>,
    block = 128>} : () -> ()

// -----

// expected-error @+1 {{expected a stride to be of one of 2 arguments, but got 5}}
"test.launch_c3_stride"() {a = #fp8_gpu.launch<
    arguments = [#fp8_gpu.argument<name = "x", element = f32, rank = 2, access = read, alignment = 16>,
      #fp8_gpu.argument<name = "y", element = f32, rank = 2, access = write, alignment = 16>],
    extents = [#fp8_gpu.extent<"n", 0, 0>],
    params = [#fp8_gpu.stride<5, 0>],
    grid = affine_map<()[s0] -> (s0)>,
    block = 128>} : () -> ()

// -----

// expected-error @+1 {{expected a stride to be of one of the 2 dimensions of argument 'x', but got -1}}
"test.launch_c3_stride_dim"() {a = #fp8_gpu.launch<
    arguments = [#fp8_gpu.argument<name = "x", element = f32, rank = 2, access = read, alignment = 16>,
      #fp8_gpu.argument<name = "y", element = f32, rank = 2, access = write, alignment = 16>],
    extents = [#fp8_gpu.extent<"n", 0, 0>],
    params = [#fp8_gpu.stride<0, -1>],
    grid = affine_map<()[s0] -> (s0)>,
    block = 128>} : () -> ()

// -----

// expected-error @+1 {{expected scratch to be one of 0 workspaces, but got 0}}
"test.launch_c3_scratch"() {a = #fp8_gpu.launch<
    arguments = [#fp8_gpu.argument<name = "x", element = f32, rank = 2, access = read, alignment = 16>,
      #fp8_gpu.argument<name = "y", element = f32, rank = 2, access = write, alignment = 16>],
    extents = [#fp8_gpu.extent<"n", 0, 0>],
    params = [#fp8_gpu.scratch<0>],
    grid = affine_map<()[s0] -> (s0)>,
    block = 128>} : () -> ()

// -----

// expected-error @+1 {{expected captures to be numbered from 0 without gaps, but got 2 in the place of 1}}
"test.launch_c3_captures"() {a = #fp8_gpu.launch<
    arguments = [#fp8_gpu.argument<name = "x", element = f32, rank = 2, access = read, alignment = 16>,
      #fp8_gpu.argument<name = "y", element = f32, rank = 2, access = write, alignment = 16>],
    extents = [#fp8_gpu.extent<"n", 0, 0>],
    params = [#fp8_gpu.capture<0 : f32>,
      #fp8_gpu.capture<2 : f32>],
    grid = affine_map<()[s0] -> (s0)>,
    block = 128>} : () -> ()

// -----

// expected-error @+1 {{expected captures to be numbered from 0 without gaps, but got 0 in the place of 1}}
"test.launch_c3_capture_twice"() {a = #fp8_gpu.launch<
    arguments = [#fp8_gpu.argument<name = "x", element = f32, rank = 2, access = read, alignment = 16>,
      #fp8_gpu.argument<name = "y", element = f32, rank = 2, access = write, alignment = 16>],
    extents = [#fp8_gpu.extent<"n", 0, 0>],
    params = [#fp8_gpu.capture<0 : f32>,
      #fp8_gpu.capture<0 : f32>],
    grid = affine_map<()[s0] -> (s0)>,
    block = 128>} : () -> ()

// -----

// expected-error @+1 {{expected a value that is an i32 or i64, but got 'i16'}}
"test.value_type"() {a = #fp8_gpu.launch<
    arguments = [#fp8_gpu.argument<name = "x", element = f32, rank = 2, access = read, alignment = 16>,
      #fp8_gpu.argument<name = "y", element = f32, rank = 2, access = write, alignment = 16>],
    extents = [#fp8_gpu.extent<"n", 0, 0>],
    params = [#fp8_gpu.value<affine_map<()[s0] -> (s0)> : i16>],
    grid = affine_map<()[s0] -> (s0)>,
    block = 128>} : () -> ()

// -----

// expected-error @+1 {{expected a capture of up to 64 bits, but got 'index'}}
"test.capture_type"() {a = #fp8_gpu.launch<
    arguments = [#fp8_gpu.argument<name = "x", element = f32, rank = 2, access = read, alignment = 16>,
      #fp8_gpu.argument<name = "y", element = f32, rank = 2, access = write, alignment = 16>],
    extents = [#fp8_gpu.extent<"n", 0, 0>],
    params = [#fp8_gpu.capture<0 : index>],
    grid = affine_map<()[s0] -> (s0)>,
    block = 128>} : () -> ()

// -----

// expected-error @+1 {{expected a capture of up to 64 bits, but got 'f80'}}
"test.capture_wide"() {a = #fp8_gpu.launch<
    arguments = [#fp8_gpu.argument<name = "x", element = f32, rank = 2, access = read, alignment = 16>,
      #fp8_gpu.argument<name = "y", element = f32, rank = 2, access = write, alignment = 16>],
    extents = [#fp8_gpu.extent<"n", 0, 0>],
    params = [#fp8_gpu.capture<0 : f80>],
    grid = affine_map<()[s0] -> (s0)>,
    block = 128>} : () -> ()
