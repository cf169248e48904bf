// RUN: fp8-opt %s --split-input-file --verify-diagnostics

// expected-error @below {{expected element type f8E4M3FN, f8E5M2 or f4E2M1FN, but got 'bf16'}}
func.func private @scaled_c1(!fp8.scaled<4x4xbf16, block = [*, *], scale = f32>)

// -----

// expected-error @below {{expected block to have one entry for each of the 2 dimensions, but got 1}}
func.func private @scaled_c2_rank(!fp8.scaled<4x4xf8E4M3FN, block = [*], scale = f32>)

// -----

// expected-error @below {{expected a block extent of at least 1 or '*', but got 0}}
func.func private @scaled_c2_extent(!fp8.scaled<4x4xf8E4M3FN, block = [0, 1], scale = f32>)

// -----

// expected-error @below {{expected scale to be f8E4M3FN, f8E8M0FNU or f32, but got 'f16'}}
func.func private @scaled_c3(!fp8.scaled<4x4xf8E4M3FN, block = [1, 1], scale = f16>)

// -----

// expected-error @below {{expected tensor_scale = f32 exactly with scale = f8E4M3FN, but got scale = 'f8E4M3FN' without a tensor_scale}}
func.func private @scaled_c4(!fp8.scaled<4x16xf4E2M1FN, block = [1, 16], scale = f8E4M3FN>)

// -----

// expected-error @below {{expected element type f4E2M1FN with scale = f8E4M3FN, but got 'f8E4M3FN'}}
func.func private @scaled_c4_element(!fp8.scaled<4x16xf8E4M3FN, block = [1, 16], scale = f8E4M3FN, tensor_scale = f32>)

// -----

// expected-error @below {{expected tensor_scale to be f32, but got 'bf16'}}
func.func private @tensor_scale_type(!fp8.scaled<4x16xf4E2M1FN, block = [1, 16], scale = f8E4M3FN, tensor_scale = bf16>)
