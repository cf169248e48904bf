// RUN: fp8-opt --allow-unregistered-dialect --split-input-file --verify-diagnostics %s

// expected-error @+1 {{expected rows to be a power of two up to 32, but got 6}}
"test.c1_rows"() {a = #fp8_fusion.config<rows = 6, chunks = 1, lanes = 16, across = 1, down = 8, cluster = 1, resident = 2>} : () -> ()

// -----

// expected-error @+1 {{expected rows to be a power of two up to 32, but got 0}}
"test.c1_none"() {a = #fp8_fusion.config<rows = 0, chunks = 1, lanes = 16, across = 1, down = 8, cluster = 1, resident = 2>} : () -> ()

// -----

// expected-error @+1 {{expected rows to be a power of two up to 32, but got 64}}
"test.c1_most"() {a = #fp8_fusion.config<rows = 64, chunks = 1, lanes = 16, across = 1, down = 8, cluster = 1, resident = 2>} : () -> ()

// -----

// expected-error @+1 {{expected chunks to be 1 to 32, but got -1}}
"test.c1_chunks"() {a = #fp8_fusion.config<rows = 8, chunks = -1, lanes = 16, across = 1, down = 8, cluster = 1, resident = 2>} : () -> ()

// -----

// expected-error @+1 {{expected across to be 1 to 32, but got 33}}
"test.c1_across"() {a = #fp8_fusion.config<rows = 8, chunks = 1, lanes = 16, across = 33, down = 8, cluster = 1, resident = 2>} : () -> ()

// -----

// expected-error @+1 {{expected down to be a power of two up to 32, but got 12}}
"test.c1_down"() {a = #fp8_fusion.config<rows = 8, chunks = 1, lanes = 16, across = 1, down = 12, cluster = 1, resident = 2>} : () -> ()

// -----

// expected-error @+1 {{expected lanes to be a power of two up to 32, but got 64}}
"test.c2"() {a = #fp8_fusion.config<rows = 8, chunks = 1, lanes = 64, across = 1, down = 8, cluster = 1, resident = 2>} : () -> ()

// -----

// expected-error @+1 {{expected at most 32 warps, but got 64}}
"test.c3"() {a = #fp8_fusion.config<rows = 8, chunks = 1, lanes = 16, across = 8, down = 8, cluster = 1, resident = 2>} : () -> ()

// -----

// expected-error @+1 {{expected cluster to be 1, 2, 4 or 8, but got 3}}
"test.c4_power"() {a = #fp8_fusion.config<rows = 8, chunks = 1, lanes = 16, across = 1, down = 8, cluster = 3, resident = 2>} : () -> ()

// -----

// expected-error @+1 {{expected cluster to be 1, 2, 4 or 8, but got 16}}
"test.c4_most"() {a = #fp8_fusion.config<rows = 8, chunks = 1, lanes = 16, across = 1, down = 8, cluster = 16, resident = 2>} : () -> ()

// -----

// expected-error @+1 {{expected cluster to be 1, 2, 4 or 8, but got 0}}
"test.c4_none"() {a = #fp8_fusion.config<rows = 8, chunks = 1, lanes = 16, across = 1, down = 8, cluster = 0, resident = 2>} : () -> ()

// -----

// expected-error @+1 {{expected resident to be 1 to 8, but got 0}}
"test.c5_none"() {a = #fp8_fusion.config<rows = 8, chunks = 1, lanes = 16, across = 1, down = 8, cluster = 1, resident = 0>} : () -> ()

// -----

// expected-error @+1 {{expected resident to be 1 to 8, but got 9}}
"test.c5_most"() {a = #fp8_fusion.config<rows = 8, chunks = 1, lanes = 16, across = 1, down = 8, cluster = 1, resident = 9>} : () -> ()
