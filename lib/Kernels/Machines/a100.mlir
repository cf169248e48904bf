// An A100 of 80 GB, as its data sheet says; we have measured none.

module attributes {fp8_machine.machine = #fp8_machine.machine<
  name = "a100", devices = ["A100"],
  // Multiprocessors, clock and memory are the data sheet's, and the tensor
  // core's rate is its peak of dense f16 with sums in f32, which codes become,
  // in bytes of codes. L2's rate is an estimate; what a launch takes is taken
  // over from h200.
  target = <
    chip = "sm_80", compute_capability = 80, features = "+ptx84",
    multiprocessors = 108, shared_bytes = 166912, registers = 65536,
    mma_rate = 1024, l2_rate = 24, memory_rate = 13, clock = 1410,
    memory_peak = 2039, launch_time = 2500
  >,
  memory = 80, l2 = 41943040,
  // Rates of the multiprocessor are those of the architecture; clocks are
  // estimates, of which none is measured.
  matmul = #fp8_machine.mma<
    shared_rate = 128, store_rate = 32, scattered = 4, add_rate = 128,
    store_instructions = 6, fill = 1200, step = 250, reduce = 4000,
    reduce_part = 600, most_swapped = 128
  >,
  // Taken over from h200 until fitted: measured on an H200, bf16 of 8192 x
  // 14336 and 8192 x 4096.
  fusion = <
    rotated = <rows = 8, warps = 8, resident = 1>,
    drawn = <rows = 4, warps = 8, resident = 3>,
    drawn_wide = <rows = 4, warps = 8, resident = 2>,
    unaligned = <rows = 4, warps = 8, resident = 2>,
    waiting = <rows = 8, warps = 8, resident = 2>,
    few = <rows = 4, warps = 16, resident = 2>,
    many = <rows = 8, warps = 16, resident = 1>,
    plain = <rows = 4, warps = 16, resident = 2>,
    usual = <rows = 8, warps = 8, resident = 2>,
    crowded = <rows = 4, warps = 8, resident = 4>,
    small = <rows = 2, warps = 8, resident = 4>,
    // The more tiles of 256 x 128 there are, the less the last ones cost.
    tile_elements = 32768, fewest_tiles = 600, few_tiles = 2048,
    row_warps = 8, row_resident = 2, row_chunks = 7
  >,
  transpose = <warp_bytes = 8>,
  // Taken over from h200 until fitted: microseconds of forward and backward
  // of a layer of bf16 as a CUDA graph: least squares of relative errors over
  // 60 random layers, of which benchmarks/results/layer_speed.txt has the
  // judgement by others.
  layers = {
    none = #fp8_machine.layer<launch = 9.842, product = 7.734, x = 0.2335,
      weight = 1.348, y = 0.0>,
    delayed = #fp8_machine.layer<launch = 16.18, product = 4.147, x = 1.371,
      weight = 2.543, y = 1.828>,
    current = #fp8_machine.layer<launch = 20.01, product = 4.268, x = 1.808,
      weight = 3.283, y = 2.04>,
    rowwise = #fp8_machine.layer<launch = 25.14, product = 4.235, x = 2.699,
      weight = 3.188, y = 3.364>,
    block = #fp8_machine.layer<launch = 14.9, product = 5.639, x = 4.197,
      weight = 2.366, y = 4.266>
  },
  // Taken over from h200 until fitted: of a training step by Inductor, over
  // the models of benchmarks/zoo.py beside an H200: microseconds of the host
  // for each product, in the middle, and for a cast; and the time of all
  // kernels over that of the products, the least. Not measured where it runs:
  // what is computed in FP8 must not depend on what else a machine does.
  host = <product = 95, cast = 15, share = 1.3>
>} {}
