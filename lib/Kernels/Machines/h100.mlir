// An H100 in the SXM form.
//
// What matmuls take was fitted by tuning/fit_matmul.py to 8,900 times on 110
// random shapes of five kinds, from h200's numbers on (tuning/data/h100). On 40
// others what is chosen has 0.982 of the speed of the best measured, and 0.974
// by h200's numbers. What says "taken over" is h200's until measured.

#plain = #fp8_machine.wgmma_costs<
  // Shares of the tensor core's rate: with ping-pong, of one consumer, and of
  // several; and what a block loses to others that are active, if all are.
  ping_pong_share = 0.9444, single_share = 0.9603, cooperative_share = 0.9064,
  contention = 0.07152,
  // For each subtile of a K block, whatever it holds.
  subtile = 170.1,
  // An addition in registers: what it takes from the tensor core, and what
  // it takes where no other consumer, or second set of sums, is there to hide
  // it.
  promotion = 0, exposed_promotion = 0,
  // Writing a line narrower than 128 bytes to shared memory.
  narrow_line = 4.178,
  // What the two multiprocessors that share a port to L2 get through it; what
  // operands ask for in excess whose lines do not start at cache lines, and
  // more where they do not start at sectors of 32 bytes either; what remains
  // of requests that a cluster shares falls with this power of its blocks.
  port_rate = 110.3, misaligned = 0.1897, sector_misalignment = 0.4845,
  sharing = 0.3495,
  // Each bulk copy.
  box = 12.92,
  // Waiting for an operand in high precision with innermost rows, for each
  // cluster that reads it at about the same time.
  l2_contention = 2.428,
  // One copy, while the others of the ring are under way.
  latency = 1321,
  // What single blocks lose where some of them share a port and others do
  // not.
  uneven = 0.07092,
  // Rows out of bounds, which bulk copies fill with zeros slowly: each at the
  // block's port, at L2 for every active block, and of a byte of memory.
  out_of_bounds = 0.1373, out_of_bounds_all = 0.04914, out_of_bounds_bytes = 0.6025,
  // From one tile to the next, where no other warpgroup multiplies meanwhile.
  drain = 107.2,
  // Storing a tile in bulk: at all, for a slab of a subtile, and how much longer
  // from one buffer; directly: for a column of 64 rows.
  store = 1736, slab = 171.1, one_buffer = 3.695, direct = 24.38,
  // Memory: the rate of all, what the two multiprocessors that share a port
  // get and what one gets that has a port for itself; how long a copy takes;
  // and of a byte that another tile brings again at about the same time, up
  // to three times.
  memory_rate = 1658, pair_rate = 67.29, one_rate = 50.93,
  memory_latency = 1375, repeated_rows = 0.3559, repeated_cols = 0.1794,
  // Adding up parts of K: at all, for a column of 64 rows, and for each part
  // of it.
  reduce = 2774, reduce_column = 12.64, reduce_part = 4.63, launch = 1686,
  cluster = 1853,
  // Energy: clocks that the tensor core needs for the products of tiles
  // without bounds if it may take what the board has, over those at its full
  // rate; and how it grows as instructions and tiles become narrower, which
  // read more for a product, and falls with ping-pong (docs/Kernels.md,
  // "Large products"). Of operands in high precision nobody has measured it.
  power = 0, energy_of_cols = 0, energy_of_tile = 0, ping_pong_energy = 0
>

#fast = #fp8_machine.wgmma_costs<
  ping_pong_share = 0.8694, single_share = 0.883, cooperative_share = 0.8259,
  contention = 0.1061,
  subtile = 48.85,
  promotion = 0, exposed_promotion = 0,
  narrow_line = 0,
  port_rate = 153.3, misaligned = 0.7901, sector_misalignment = 1.221, sharing = 0.8783,
  box = 0.6545,
  l2_contention = 0,
  latency = 2346,
  uneven = 0.01998,
  out_of_bounds = 0.02623, out_of_bounds_all = 0.04286, out_of_bounds_bytes = 0.8135,
  drain = 479.9,
  store = 1251, slab = 60.38, one_buffer = 2.991, direct = 26.4,
  memory_rate = 1807, pair_rate = 43.57, one_rate = 62.36,
  memory_latency = 1682, repeated_rows = 0.437, repeated_cols = 0.261,
  reduce = 1440, reduce_column = 45.35, reduce_part = 0.5122, launch = 2692,
  cluster = 1771,
  power = 0.4632, energy_of_cols = 2.565, energy_of_tile = 1.392,
  ping_pong_energy = 0.2284
>

#promote = #fp8_machine.wgmma_costs<
  ping_pong_share = 0.6466, single_share = 0.6552, cooperative_share = 1.034,
  contention = 0.1484,
  subtile = 175.4,
  promotion = 0.3301, exposed_promotion = 0.456,
  narrow_line = 0,
  port_rate = 130.8, misaligned = 0.4006, sector_misalignment = 1.118,
  sharing = 0.9929,
  box = 24.07,
  l2_contention = 0,
  latency = 2503,
  uneven = 0.04691,
  out_of_bounds = 0.1592, out_of_bounds_all = 0.02283, out_of_bounds_bytes = 0.6805,
  drain = 124.6,
  store = 1435, slab = 67.25, one_buffer = 4.102, direct = 28.66,
  memory_rate = 1696, pair_rate = 39.74, one_rate = 59.83,
  memory_latency = 167.7, repeated_rows = 0.5199, repeated_cols = 0.1147,
  reduce = 2143, reduce_column = 5.06, reduce_part = 8.125, launch = 2145,
  cluster = 1899,
  power = 1.071, energy_of_cols = 0.584, energy_of_tile = 0.2377,
  ping_pong_energy = 0.2426
>

// Factors of 1x128 of A by 128x128 of B (1D2D).
#block = #fp8_machine.wgmma_costs<
  ping_pong_share = 0.7327, single_share = 0.9324, cooperative_share = 1.446,
  contention = 0.02206,
  subtile = 195.7,
  promotion = 1.698, exposed_promotion = 1.065,
  narrow_line = 0,
  port_rate = 120.5, misaligned = 0.2505, sector_misalignment = 1.064,
  sharing = 1.475,
  box = 14.93,
  l2_contention = 0,
  latency = 2499,
  uneven = 0.08801,
  out_of_bounds = 0.001847, out_of_bounds_all = 0.02435, out_of_bounds_bytes = 0.6954,
  drain = 60.96,
  store = 1573, slab = 48.54, one_buffer = 11.81, direct = 53.82,
  memory_rate = 1651, pair_rate = 46.45, one_rate = 63.49,
  memory_latency = 1940, repeated_rows = 0.5353, repeated_cols = 0.1095,
  reduce = 1932, reduce_column = 6.037, reduce_part = 6.01, launch = 1942,
  cluster = 2268,
  power = 0.4935, energy_of_cols = -0.192, energy_of_tile = 2.827,
  ping_pong_energy = 1.278
>

// Factors of 1x128 of both (1D1D).
#both = #fp8_machine.wgmma_costs<
  ping_pong_share = 0.453, single_share = 0.5395, cooperative_share = 0.827,
  contention = 0.006252,
  subtile = 201.1,
  promotion = 2.096, exposed_promotion = 0.003155,
  narrow_line = 0,
  port_rate = 91.21, misaligned = 0.04564, sector_misalignment = 0.1862,
  sharing = 0.07997,
  box = 27.31,
  l2_contention = 0,
  latency = 654.7,
  uneven = 0.05922,
  out_of_bounds = 0.005044, out_of_bounds_all = 0.0104, out_of_bounds_bytes = 0.7718,
  drain = 808.4,
  store = 1180, slab = 104.1, one_buffer = 1.5, direct = 20.02,
  memory_rate = 1242, pair_rate = 40.26, one_rate = 49.45,
  memory_latency = 3246, repeated_rows = 0.207, repeated_cols = 0.03439,
  reduce = 1462, reduce_column = 5.671, reduce_part = 8.321, launch = 2263,
  cluster = 1017,
  power = 0.4935, energy_of_cols = -0.192, energy_of_tile = 2.827,
  ping_pong_energy = 1.278
>

module attributes {fp8_machine.machine = #fp8_machine.machine<
  name = "h100", devices = ["H100"],
  // NVIDIA H100 data sheet, SXM5: 132 multiprocessors, 80 GB of HBM3 at 3.35
  // TB/s, 1979 TFLOP/s of dense FP8, which gives the clock. Taken over from
  // h200 until measured: the rate of L2, and what a launch takes. The rate of
  // memory is h200's 34 times 3350/4800.
  target = <
    chip = "sm_90a", compute_capability = 90, features = "+ptx90",
    multiprocessors = 132, shared_bytes = 232448, registers = 65536,
    mma_rate = 4096, l2_rate = 49, memory_rate = 24, clock = 1830,
    memory_peak = 3350, launch_time = 2500
  >,
  memory = 80, l2 = 52428800,
  matmul = #fp8_machine.wgmma<
    plain = #plain, fast = #fast, promote = #promote, block = #block,
    both = #both,
    // Taken over from h200 until measured, as #both, energies and all that
    // follow.
    most_repeated = 4, reached_by_4 = 120, reached_by_8 = 104,
    // From 1,509 times of bias, GELU and quantize on 70 random shapes of 1024
    // rows and more (benchmarks/results/epilogue_times.json); the fit's
    // matmuls have none of these.
    issue = 0.5, narrow_slab = 200,
    // Products of few rows want swapped operands, which a pair cannot have.
    // Some 2000 instructions that remain fit the instruction cache; what does
    // not issues at half the rate, and moving the sums costs more than that
    // below. Of many instructions of an element tiles of 128x128 took up to
    // 1.27 times as long.
    few_rows = 32, many_rows = 512, most_unrolled = 3200, many_of_element = 8,
    // Taken over from h200, whose are fitted: of some 40 configs of 52 products
    // on an H100 the cheapest takes 1.02 times as long as the best in the mean.
    lift = 4, lift_latency = 350,
    // Taken over from h200.
    lift_registers = 2.52, lift_registers_of_e2m1 = 2.15,
    lift_registers_latency = 86, lift_reduce = 1500, box_row = 1.15,
    cluster_reduce = 1800, cluster_reduce_part = 0.96,
    // Taken over from h200.
    scaled_block = 350, scaled_addition = 6, scaled_share = 0.6,
    scaled_parts = 0.7, scaled_part = 0.34
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
  // Taken over from h200 until fitted.
  attention = <tile_8 = 20480, tile_16 = 32768, tile_step = 4096,
    under_way = 196608, under_way_step = 12288, block = 100>,
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
