// An H200 in the SXM form.
//
// What matmuls take, in clocks, and bytes a clock, unless said otherwise:
// fitted by tuning/fit_matmul.py to 35,000 times on random shapes
// (tuning/data). They absorb what the model leaves out, so that a single one
// is no measurement; the comments stand beside those of operands in high
// precision.

#plain = #fp8_machine.wgmma_costs<
  // Shares of the tensor core's rate: with ping-pong, of one consumer, and of
  // several; and what a block loses to others that are active, if all are.
  ping_pong_share = 0.9212, single_share = 0.8716, cooperative_share = 0.8942,
  contention = 0.09653,
  // For each subtile of a K block, whatever it holds.
  subtile = 155.7,
  // An addition in registers: what it takes from the tensor core, and what
  // it takes where no other consumer, or second set of sums, is there to hide
  // it.
  promotion = 0, exposed_promotion = 0,
  // Writing a line narrower than 128 bytes to shared memory.
  narrow_line = 3.117,
  // What the two multiprocessors that share a port to L2 get through it; what
  // operands ask for in excess whose lines do not start at cache lines, and
  // more where they do not start at sectors of 32 bytes either; what remains
  // of requests that a cluster shares falls with this power of its blocks.
  port_rate = 173.4, misaligned = 0.2011, sector_misalignment = 0.4845,
  sharing = 0.3051,
  // Each bulk copy.
  box = 34.78,
  // Waiting for an operand in high precision with innermost rows, for each
  // cluster that reads it at about the same time.
  l2_contention = 2.247,
  // One copy, while the others of the ring are under way.
  latency = 1838,
  // What single blocks lose where some of them share a port and others do
  // not.
  uneven = 0.07661,
  // Rows out of bounds, which bulk copies fill with zeros slowly: each at the
  // block's port, at L2 for every active block, and of a byte of memory.
  out_of_bounds = 0.2513, out_of_bounds_all = 0.03329, out_of_bounds_bytes = 0.7363,
  // From one tile to the next, where no other warpgroup multiplies meanwhile.
  drain = 106.6,
  // Storing a tile in bulk: at all, for a slab of a subtile, and how much longer
  // from one buffer; directly: for a column of 64 rows.
  store = 1501, slab = 111.8, one_buffer = 2.627, direct = 19.7,
  // Memory: the rate of all, what the two multiprocessors that share a port
  // get and what one gets that has a port for itself; how long a copy takes;
  // and of a byte that another tile brings again at about the same time, up
  // to three times.
  memory_rate = 2255, pair_rate = 67.3, one_rate = 72.34,
  memory_latency = 1378, repeated_rows = 0.4353, repeated_cols = 0.2962,
  // Adding up parts of K: at all, for a column of 64 rows, and for each part
  // of it.
  reduce = 3157, reduce_column = 15.27, reduce_part = 2.945, launch = 2010,
  cluster = 974.2,
  // Energy: clocks that the tensor core needs for the products of tiles
  // without bounds if it may take what the board has, over those at its full
  // rate; and how it grows as instructions and tiles become narrower, which
  // read more for a product, and falls with ping-pong (docs/Kernels.md,
  // "Large products"). Of operands in high precision nobody has measured it.
  power = 0, energy_of_cols = 0, energy_of_tile = 0, ping_pong_energy = 0
>

#fast = #fp8_machine.wgmma_costs<
  ping_pong_share = 0.8584, single_share = 0.7842, cooperative_share = 0.8141,
  contention = 0.1063,
  subtile = 49.11,
  promotion = 0, exposed_promotion = 0,
  narrow_line = 0,
  port_rate = 306.4, misaligned = 1.495, sector_misalignment = 2.467, sharing = 1.417,
  box = 0.6316,
  l2_contention = 0,
  latency = 2361,
  uneven = 0.0121,
  out_of_bounds = 0.02654, out_of_bounds_all = 0.03469, out_of_bounds_bytes = 0.9656,
  drain = 491.6,
  store = 1153, slab = 60.77, one_buffer = 2.789, direct = 19.54,
  memory_rate = 2454, pair_rate = 45.3, one_rate = 60.2,
  memory_latency = 1428, repeated_rows = 0.5285, repeated_cols = 0.2624,
  reduce = 1891, reduce_column = 33.62, reduce_part = 0.4784, launch = 2814,
  cluster = 895,
  power = 0.4632, energy_of_cols = 2.565, energy_of_tile = 1.392,
  ping_pong_energy = 0.2284
>

#promote = #fp8_machine.wgmma_costs<
  ping_pong_share = 0.6101, single_share = 0.7118, cooperative_share = 0.9692,
  contention = 0.09458,
  subtile = 171.3,
  promotion = 0.2658, exposed_promotion = 1.126,
  narrow_line = 0,
  port_rate = 284.1, misaligned = 0.8035, sector_misalignment = 2.719,
  sharing = 1.462,
  box = 22.38,
  l2_contention = 0,
  latency = 2408,
  uneven = 0.05083,
  out_of_bounds = 0.1677, out_of_bounds_all = 0.03409, out_of_bounds_bytes = 0.4721,
  drain = 120.4,
  store = 1134, slab = 92.67, one_buffer = 3.03, direct = 23.68,
  memory_rate = 2134, pair_rate = 41.52, one_rate = 57.47,
  memory_latency = 167.7, repeated_rows = 0.4236, repeated_cols = 0.1482,
  reduce = 2500, reduce_column = 5.47, reduce_part = 7.777, launch = 2517,
  cluster = 1113,
  power = 1.071, energy_of_cols = 0.584, energy_of_tile = 0.2377,
  ping_pong_energy = 0.2426
>

// Factors of 1x128 of A by 128x128 of B (1D2D).
#block = #fp8_machine.wgmma_costs<
  ping_pong_share = 0.6766, single_share = 1.058, cooperative_share = 1.246,
  contention = 0.02418,
  subtile = 194.6,
  promotion = 1.194, exposed_promotion = 1.535,
  narrow_line = 0,
  port_rate = 227.6, misaligned = 0.2392, sector_misalignment = 2.364,
  sharing = 1.972,
  box = 12.86,
  l2_contention = 0,
  latency = 2351,
  uneven = 0.09004,
  out_of_bounds = 0.001841, out_of_bounds_all = 0.03085, out_of_bounds_bytes = 1.06,
  drain = 76.66,
  store = 1719, slab = 61.72, one_buffer = 7.475, direct = 59.72,
  memory_rate = 2129, pair_rate = 42.36, one_rate = 55.33,
  memory_latency = 1884, repeated_rows = 0.4146, repeated_cols = 0.2529,
  reduce = 1705, reduce_column = 7.852, reduce_part = 4.973, launch = 2251,
  cluster = 1422,
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
  memory_rate = 1780, pair_rate = 40.26, one_rate = 49.45,
  memory_latency = 3246, repeated_rows = 0.207, repeated_cols = 0.03439,
  reduce = 1462, reduce_column = 5.671, reduce_part = 8.321, launch = 2263,
  cluster = 1017,
  power = 0.4935, energy_of_cols = -0.192, energy_of_tile = 2.827,
  ping_pong_energy = 1.278
>

module attributes {fp8_machine.machine = #fp8_machine.machine<
  name = "h200", devices = ["H200"], usual = true,
  // CUDA C++ Programming Guide, technical specifications by compute
  // capability; the rates of L2 and memory are fitted (docs/Kernels.md,
  // "Selection"). The clock is that at which the data sheet has its 1979
  // TFLOP/s, the memory's peak is from there too; what a launch takes is
  // benchmarks/results/runtime_cuda.txt.
  target = <
    chip = "sm_90a", compute_capability = 90, features = "+ptx90",
    multiprocessors = 132, shared_bytes = 232448, registers = 65536,
    mma_rate = 4096, l2_rate = 49, memory_rate = 34, clock = 1830,
    memory_peak = 4800, launch_time = 2500
  >,
  memory = 141, l2 = 52428800,
  matmul = #fp8_machine.wgmma<
    plain = #plain, fast = #fast, promote = #promote, block = #block,
    both = #both,
    // Tiles and multiprocessors, counted.
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
    // Fitted to 37 products with up to 100 configs each, by benchmarks/packed.py
    // (docs/PackedWeights.md, "Selection").
    lift = 4, lift_latency = 350,
    // Fitted on a grid to nine products of two formats in up to eleven configs
    // each, of an H200 (the twelfth run of benchmarks/results/microscaled.txt).
    lift_registers = 2.52, lift_registers_of_e2m1 = 2.15,
    lift_registers_latency = 86, lift_reduce = 1500, box_row = 1.15,
    cluster_reduce = 1800, cluster_reduce_part = 0.96,
    // The same for three products.
    scaled_block = 350, scaled_addition = 6, scaled_share = 0.6,
    // Fitted to two shapes of 1 and 8 rows (benchmarks/results/microscaled.txt,
    // the sixteenth run).
    scaled_parts = 0.7, scaled_part = 0.34
  >,
  // Configs and no clocks, so that nothing is fitted: the fastest ones of
  // bf16 of 8192 x 14336 and 8192 x 4096 on an H200, by benchmarks/fusions.py;
  // fp8-tune --exhaustive times all others, too. Those that are rotated, drawn
  // and unaligned are what registers hold without spills, by ptxas.
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
    // The more tiles of 256 x 128 there are, the less the last ones cost: of
    // 128 rows they took up to a sixth less where there were few, on 12 shapes.
    tile_elements = 32768, fewest_tiles = 600, few_tiles = 2048,
    // Rows of 14336 take 7 chunks of 8 warps; 8 leave one in eight idle.
    row_warps = 8, row_resident = 2, row_chunks = 7
  >,
  // So many keep some loads of each under way (benchmarks/transposes.py).
  transpose = <warp_bytes = 8>,
  // Two blocks a multiprocessor, so that one copies while the other ends, and as
  // many bytes under way as there is room (benchmarks/attention_decode.py
  // --configs, of its seeds 11 and 23).
  attention = <tile_8 = 20480, tile_16 = 32768, tile_step = 4096,
    under_way = 196608, under_way_step = 12288, block = 100>,
  // Microseconds of forward and backward of a layer of bf16 as a CUDA graph:
  // least squares of relative errors over 60 random layers, of which
  // benchmarks/results/layer_speed.txt has the judgement by others.
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
  // A training step by Inductor, over the models of benchmarks/zoo.py
  // beside an H200: microseconds of the host for each product, in the middle,
  // and for a cast; and the time of all kernels over that of the products,
  // the least. Not measured where it runs: what is computed in FP8 must not
  // depend on what else a machine does. Compiled layers whose call is one of C
  // take 13 more for each of three casts with delayed scaling, 18 with current
  // (benchmarks/results/host_time.txt).
  host = <product = 95, cast = 15, share = 1.3>
>} {}
