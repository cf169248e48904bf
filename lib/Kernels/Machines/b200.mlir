// A B200, as others have published it and measured; we have measured none.

module attributes {fp8_machine.machine = #fp8_machine.machine<
  name = "b200", devices = ["B200"], usual = true,
  // The tensor core's rate and the clock are those of the data sheet's 4500
  // TFLOP/s of dense FP8; what a launch takes is taken over from h200.
  target = <
    chip = "sm_100a", compute_capability = 100, features = "+ptx90",
    multiprocessors = 148, shared_bytes = 232448, registers = 65536,
    mma_rate = 8192, l2_rate = 69, memory_rate = 25, clock = 1856,
    memory_peak = 7670, launch_time = 2500
  >,
  memory = 180, l2 = 132120576,
  // The rates are those that others have published (docs/Kernels.md,
  // "Blackwell"): 116.5 words a clock are 466 bytes of tensor memory, and of
  // the chip's 80 TFLOP/s of f32 128 a clock are a multiprocessor's.
  matmul = #fp8_machine.tcgen05<
    shared_rate = 128, tensor_memory_rate = 116.5, store_rate = 64,
    scattered = 8, add_rate = 128, store_instructions = 4,
    fill = 2000, chunk = 200, sync = 100, reduce = 6000, reduce_part = 600,
    most_swapped = 128
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
