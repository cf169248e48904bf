// An H100 in the SXM form.
//
// What matmuls take was fitted by tuning/fit_matmul.py to 4,900 times on 70
// random shapes of five kinds, from h200's numbers on (tuning/data/h100). On 40
// others what is chosen has 0.975 of the speed of the best measured, and 0.972
// by h200's numbers. What says "taken over" is h200's until measured.

#plain = #fp8_machine.wgmma_costs<
  // Shares of the tensor core's rate: with ping-pong, of one consumer, and of
  // several; and what a block loses to others that are active, if all are.
  ping_pong_share = 0.9536, single_share = 0.8761, cooperative_share = 0.9272,
  contention = 0.08155,
  // For each subtile of a K block, whatever it holds.
  subtile = 184.6,
  // An addition in registers: what it takes from the tensor core, and what
  // it takes where no other consumer, or second set of sums, is there to hide
  // it.
  promotion = 0, exposed_promotion = 0,
  // Writing a line narrower than 128 bytes to shared memory.
  narrow_line = 4.212,
  // What the two multiprocessors that share a port to L2 get through it; what
  // operands ask for in excess whose lines do not start at cache lines, and
  // more where they do not start at sectors of 32 bytes either; what remains
  // of requests that a cluster shares falls with this power of its blocks.
  port_rate = 111.6, misaligned = 0.221, sector_misalignment = 0.4845,
  sharing = 0.38,
  // Each bulk copy.
  box = 14.28,
  // Waiting for an operand in high precision with innermost rows, for each
  // cluster that reads it at about the same time.
  l2_contention = 2.317,
  // One copy, while the others of the ring are under way.
  latency = 1256,
  // What single blocks lose where some of them share a port and others do
  // not.
  uneven = 0.0928,
  // Rows out of bounds, which bulk copies fill with zeros slowly: each at the
  // block's port, at L2 for every active block, and of a byte of memory.
  out_of_bounds = 0.1622, out_of_bounds_all = 0.0498, out_of_bounds_bytes = 0.5416,
  // From one tile to the next, where no other warpgroup multiplies meanwhile.
  drain = 104,
  // Storing a tile in bulk: at all, for a slab of a subtile, and how much longer
  // from one buffer; directly: for a column of 64 rows.
  store = 1860, slab = 166, one_buffer = 4.049, direct = 23.51,
  // Memory: the rate of all, what the two multiprocessors that share a port
  // get and what one gets that has a port for itself; how long a copy takes;
  // and of a byte that another tile brings again at about the same time, up
  // to three times.
  memory_rate = 1640, pair_rate = 67.3, one_rate = 54.13,
  memory_latency = 1378, repeated_rows = 0.461, repeated_cols = 0.1707,
  // Adding up parts of K: at all, for a column of 64 rows, and for each part
  // of it.
  reduce = 2859, reduce_column = 14.51, reduce_part = 3.417, launch = 1649,
  cluster = 1905,
  // Energy: clocks that the tensor core needs for the products of tiles
  // without bounds if it may take what the board has, over those at its full
  // rate; and how it grows as instructions and tiles become narrower, which
  // read more for a product, and falls with ping-pong (docs/Kernels.md,
  // "Large products"). Of operands in high precision nobody has measured it.
  power = 0, energy_of_cols = 0, energy_of_tile = 0, ping_pong_energy = 0
>

#fast = #fp8_machine.wgmma_costs<
  ping_pong_share = 0.8722, single_share = 0.8008, cooperative_share = 0.8444,
  contention = 0.1118,
  subtile = 48.94,
  promotion = 0, exposed_promotion = 0,
  narrow_line = 0,
  port_rate = 179.2, misaligned = 1.123, sector_misalignment = 1.271, sharing = 0.8354,
  box = 0.6401,
  l2_contention = 0,
  latency = 2274,
  uneven = 0.01389,
  out_of_bounds = 0.02628, out_of_bounds_all = 0.0383, out_of_bounds_bytes = 0.749,
  drain = 591.8,
  store = 1180, slab = 55.77, one_buffer = 2.716, direct = 22.68,
  memory_rate = 1751, pair_rate = 41.79, one_rate = 60.22,
  memory_latency = 1545, repeated_rows = 0.5185, repeated_cols = 0.203,
  reduce = 1689, reduce_column = 39.59, reduce_part = 0.4713, launch = 2752,
  cluster = 1612,
  power = 0.4632, energy_of_cols = 2.565, energy_of_tile = 1.392,
  ping_pong_energy = 0.2284
>

#promote = #fp8_machine.wgmma_costs<
  ping_pong_share = 0.6498, single_share = 0.6577, cooperative_share = 1.031,
  contention = 0.1049,
  subtile = 178.5,
  promotion = 0.2993, exposed_promotion = 0.5905,
  narrow_line = 0,
  port_rate = 151.8, misaligned = 0.6875, sector_misalignment = 1.149,
  sharing = 0.896,
  box = 22.67,
  l2_contention = 0,
  latency = 2534,
  uneven = 0.04438,
  out_of_bounds = 0.1527, out_of_bounds_all = 0.04263, out_of_bounds_bytes = 0.716,
  drain = 139.9,
  store = 1374, slab = 76.06, one_buffer = 3.958, direct = 28.73,
  memory_rate = 1639, pair_rate = 38.76, one_rate = 58.24,
  memory_latency = 167.7, repeated_rows = 0.5686, repeated_cols = 0.2027,
  reduce = 2183, reduce_column = 5.551, reduce_part = 7.684, launch = 2167,
  cluster = 1725,
  power = 1.071, energy_of_cols = 0.584, energy_of_tile = 0.2377,
  ping_pong_energy = 0.2426
>

#block = #fp8_machine.wgmma_costs<
  ping_pong_share = 0.6988, single_share = 0.9745, cooperative_share = 1.425,
  contention = 0.02301,
  subtile = 197.3,
  promotion = 1.376, exposed_promotion = 1.489,
  narrow_line = 0,
  port_rate = 128.8, misaligned = 0.2422, sector_misalignment = 1.311,
  sharing = 1.907,
  box = 13.5,
  l2_contention = 0,
  latency = 2517,
  uneven = 0.06971,
  out_of_bounds = 0.001843, out_of_bounds_all = 0.0247, out_of_bounds_bytes = 0.8581,
  drain = 71.33,
  store = 1730, slab = 57.23, one_buffer = 9.46, direct = 57.66,
  memory_rate = 1636, pair_rate = 40.49, one_rate = 61.05,
  memory_latency = 1896, repeated_rows = 0.6004, repeated_cols = 0.1977,
  reduce = 1936, reduce_column = 7.725, reduce_part = 5.628, launch = 1920,
  cluster = 2136,
  power = 0.4935, energy_of_cols = -0.192, energy_of_tile = 2.827,
  ping_pong_energy = 1.278
>

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
    few_rows = 32, many_rows = 512, most_unrolled = 3200, many_of_element = 8
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
