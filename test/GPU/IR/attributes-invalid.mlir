// RUN: fp8-opt --allow-unregistered-dialect --split-input-file --verify-diagnostics %s

// expected-error @+1 {{expected a target to have a chip}}
"test.target_c1"() {a = #fp8_gpu.target<
    chip = "", compute_capability = 90, features = "+ptx90", multiprocessors = 132, shared_bytes = 232448, registers = 65536, mma_rate = 4096, l2_rate = 49, memory_rate = 34>} : () -> ()

// -----

// expected-error @+1 {{expected compute_capability of a target to be positive, but got 0}}
"test.target_c2_compute_capability"() {a = #fp8_gpu.target<
    chip = "sm_90a", compute_capability = 0, features = "+ptx90", multiprocessors = 132, shared_bytes = 232448, registers = 65536, mma_rate = 4096, l2_rate = 49, memory_rate = 34>} : () -> ()

// -----

// expected-error @+1 {{expected multiprocessors of a target to be positive, but got 0}}
"test.target_c2_multiprocessors"() {a = #fp8_gpu.target<
    chip = "sm_90a", compute_capability = 90, features = "+ptx90", multiprocessors = 0, shared_bytes = 232448, registers = 65536, mma_rate = 4096, l2_rate = 49, memory_rate = 34>} : () -> ()

// -----

// expected-error @+1 {{expected shared_bytes of a target to be positive, but got 0}}
"test.target_c2_shared_bytes"() {a = #fp8_gpu.target<
    chip = "sm_90a", compute_capability = 90, features = "+ptx90", multiprocessors = 132, shared_bytes = 0, registers = 65536, mma_rate = 4096, l2_rate = 49, memory_rate = 34>} : () -> ()

// -----

// expected-error @+1 {{expected registers of a target to be positive, but got 0}}
"test.target_c2_registers"() {a = #fp8_gpu.target<
    chip = "sm_90a", compute_capability = 90, features = "+ptx90", multiprocessors = 132, shared_bytes = 232448, registers = 0, mma_rate = 4096, l2_rate = 49, memory_rate = 34>} : () -> ()

// -----

// expected-error @+1 {{expected mma_rate of a target to be positive, but got 0}}
"test.target_c2_mma_rate"() {a = #fp8_gpu.target<
    chip = "sm_90a", compute_capability = 90, features = "+ptx90", multiprocessors = 132, shared_bytes = 232448, registers = 65536, mma_rate = 0, l2_rate = 49, memory_rate = 34>} : () -> ()

// -----

// expected-error @+1 {{expected l2_rate of a target to be positive, but got -1}}
"test.target_c2_l2_rate"() {a = #fp8_gpu.target<
    chip = "sm_90a", compute_capability = 90, features = "+ptx90", multiprocessors = 132, shared_bytes = 232448, registers = 65536, mma_rate = 4096, l2_rate = -1, memory_rate = 34>} : () -> ()

// -----

// expected-error @+1 {{expected memory_rate of a target to be positive, but got 0}}
"test.target_c2_memory_rate"() {a = #fp8_gpu.target<
    chip = "sm_90a", compute_capability = 90, features = "+ptx90", multiprocessors = 132, shared_bytes = 232448, registers = 65536, mma_rate = 4096, l2_rate = 49, memory_rate = 0>} : () -> ()

// -----

// expected-error @+1 {{expected clock of a target to be positive, or 0 if it is not known, but got -1}}
"test.target_c2_clock"() {a = #fp8_gpu.target<
    chip = "sm_90a", compute_capability = 90, features = "+ptx90", multiprocessors = 132, shared_bytes = 232448, registers = 65536, mma_rate = 4096, l2_rate = 49, memory_rate = 34, clock = -1>} : () -> ()

// -----

// expected-error @+1 {{expected memory_peak of a target to be positive, or 0 if it is not known, but got -1}}
"test.target_c2_memory_peak"() {a = #fp8_gpu.target<
    chip = "sm_90a", compute_capability = 90, features = "+ptx90", multiprocessors = 132, shared_bytes = 232448, registers = 65536, mma_rate = 4096, l2_rate = 49, memory_rate = 34, memory_peak = -1>} : () -> ()

// -----

// expected-error @+1 {{expected launch_time of a target to be positive, or 0 if it is not known, but got -1}}
"test.target_c2_launch_time"() {a = #fp8_gpu.target<
    chip = "sm_90a", compute_capability = 90, features = "+ptx90", multiprocessors = 132, shared_bytes = 232448, registers = 65536, mma_rate = 4096, l2_rate = 49, memory_rate = 34, launch_time = -1>} : () -> ()

// -----

// expected-error @+1 {{expected an argument of a kernel to have a name}}
"test.argument_c1"() {a = #fp8_gpu.argument<name = "", element = f32, rank = 2, access = read, alignment = 16>} : () -> ()

// -----

// expected-error @+1 {{expected rank of argument 'x' to be in 0..8, but got 9}}
"test.argument_c2"() {a = #fp8_gpu.argument<name = "x", element = f32, rank = 9, access = read, alignment = 16>} : () -> ()

// -----

// expected-error @+1 {{expected rank of argument 'x' to be in 0..8, but got -1}}
"test.argument_c2_negative"() {a = #fp8_gpu.argument<name = "x", element = f32, rank = -1, access = read, alignment = 16>} : () -> ()

// -----

// expected-error @+1 {{expected element of argument 'x' to have 8, 16, 32 or 64 bits, but got 'f4E2M1FN'}}
"test.argument_c3"() {a = #fp8_gpu.argument<name = "x", element = f4E2M1FN, rank = 2, access = read, alignment = 16>} : () -> ()

// -----

// expected-error @+1 {{expected element of argument 'x' to have 8, 16, 32 or 64 bits, but got 'index'}}
"test.argument_c3_index"() {a = #fp8_gpu.argument<name = "x", element = index, rank = 2, access = read, alignment = 16>} : () -> ()

// -----

// expected-error @+1 {{expected alignment of argument 'x' to be a power of two from 4 to 4096, but got 24}}
"test.argument_c4"() {a = #fp8_gpu.argument<name = "x", element = f32, rank = 2, access = read, alignment = 24>} : () -> ()

// -----

// expected-error @+1 {{expected alignment of argument 'x' to be a power of two from 4 to 4096, but got 2}}
"test.argument_c4_element"() {a = #fp8_gpu.argument<name = "x", element = f32, rank = 2, access = read, alignment = 2>} : () -> ()

// -----

// expected-error @+1 {{expected alignment of argument 'x' to be a power of two from 4 to 4096, but got 8192}}
"test.argument_c4_most"() {a = #fp8_gpu.argument<name = "x", element = f32, rank = 2, access = read, alignment = 8192>} : () -> ()

// -----

// expected-error @+1 {{expected the name of an extent to be a word, but got '2m'}}
"test.extent_c1"() {a = #fp8_gpu.extent<"2m", 0, 0>} : () -> ()

// -----

// expected-error @+1 {{expected the name of an extent to be a word, but got ''}}
"test.extent_c1_empty"() {a = #fp8_gpu.extent<"", 0, 0>} : () -> ()

// -----

// expected-error @+1 {{expected the name of an extent to be other than an operator's, but got 'ceildiv'}}
"test.extent_c1_operator"() {a = #fp8_gpu.extent<"ceildiv", 0, 0>} : () -> ()

// -----

// expected-error @+1 {{expected 'fp8_gpu.target' to be a #fp8_gpu.target, but got 1 : i64}}
"test.target"() {fp8_gpu.target = 1 : i64} : () -> ()

// -----

// expected-error @+1 {{expected 'fp8_gpu.config' to be the config of a kernel, but got 1 : i64}}
"test.config"() {fp8_gpu.config = 1 : i64} : () -> ()

// -----

// expected-error @+1 {{expected 'fp8_gpu.kernel' to be a symbol, but got "k"}}
"test.kernel"() {fp8_gpu.kernel = "k"} : () -> ()

// -----

// expected-error @+1 {{expected 'fp8_gpu.launch' to be a #fp8_gpu.launch, but got {}}}
"test.launch"() {fp8_gpu.launch = {}} : () -> ()

// -----

// expected-error @+1 {{expected 'fp8_gpu.math' to be #fp8_gpu.math<exact> or #fp8_gpu.math<approximate>, but got "exact"}}
"test.math"() {fp8_gpu.math = "exact"} : () -> ()
