// RUN: fp8-opt --allow-unregistered-dialect --split-input-file --verify-diagnostics %s

// expected-error @+1 {{expected warps to be a power of two up to 32, but got 0}}
"test.c1_none"() {a = #fp8_transpose.config<warps = 0>} : () -> ()

// -----

// expected-error @+1 {{expected warps to be a power of two up to 32, but got 64}}
"test.c1_most"() {a = #fp8_transpose.config<warps = 64>} : () -> ()

// -----

// expected-error @+1 {{expected warps to be a power of two up to 32, but got 6}}
"test.c1_power"() {a = #fp8_transpose.config<warps = 6>} : () -> ()

// -----

// expected-error @+1 {{expected warps to be a power of two up to 32, but got -8}}
"test.c1_negative"() {a = #fp8_transpose.config<warps = -8>} : () -> ()
