// RUN: fp8-opt --fp8-set-target=chip=sm_90a --fp8-select-kernels --verify-diagnostics %s | FileCheck %s

// CHECK-NOT: fp8_gpu.config =

#id = affine_map<(i, j) -> (i, j)>
#row = affine_map<(i, j) -> (i)>
!x = tensor<32x64xbf16>
!one = tensor<1x1xf32>
!q = !fp8.scaled<32x64xf8E4M3FN, block = [*, *], scale = f32>

func.func @four_dimensions(%x: tensor<2x3x4x8xf32>) -> tensor<1x1x1x1xf32> {
  // expected-remark @below {{no kernel: expected a domain of one to three dimensions, but got 4}}
  %0 = fp8.fusion(%x) {
  ^bb0(%a: tensor<2x3x4x8xf32>):
    %1 = fp8.amax %a block = [*, *, *, *] : tensor<2x3x4x8xf32>
    fp8.yield %1 : tensor<1x1x1x1xf32>
  } : (tensor<2x3x4x8xf32>) -> tensor<1x1x1x1xf32>
  return %0 : tensor<1x1x1x1xf32>
}

func.func @nothing(%x: !x) -> !x {
  // expected-remark @below {{no kernel: expected a domain of one to three dimensions, but got 0}}
  %0 = fp8.fusion(%x) {
  ^bb0(%a: !x):
    fp8.yield %a : !x
  } : (!x) -> !x
  return %0 : !x
}

func.func @not_elementwise(%x: !x) -> (!one, tensor<2048xbf16>) {
  // expected-remark @below {{no kernel: expected what works on a tensor element by element, but got tensor.collapse_shape}}
  %0:2 = fp8.fusion(%x) {
  ^bb0(%a: !x):
    %1 = fp8.amax %a block = [*, *] : !x
    %2 = tensor.collapse_shape %a [[0, 1]] : !x into tensor<2048xbf16>
    fp8.yield %1, %2 : !one, tensor<2048xbf16>
  } : (!x) -> (!one, tensor<2048xbf16>)
  return %0#0, %0#1 : !one, tensor<2048xbf16>
}

func.func @two_domains(%x: !x, %y: tensor<16x16xbf16>) -> (!one, !one) {
  // expected-remark @below {{no kernel: expected the amax of the domain's blocks}}
  %0:2 = fp8.fusion(%x, %y) {
  ^bb0(%a: !x, %b: tensor<16x16xbf16>):
    %1 = fp8.amax %a block = [*, *] : !x
    %2 = fp8.amax %b block = [*, *] : tensor<16x16xbf16>
    fp8.yield %1, %2 : !one, !one
  } : (!x, tensor<16x16xbf16>) -> (!one, !one)
  return %0#0, %0#1 : !one, !one
}

func.func @hands_on(%x: !x) -> (!one, !x) {
  // expected-remark @below {{no kernel: expected results that are computed}}
  %0:2 = fp8.fusion(%x) {
  ^bb0(%a: !x):
    %1 = fp8.amax %a block = [*, *] : !x
    fp8.yield %1, %a : !one, !x
  } : (!x) -> (!one, !x)
  return %0#0, %0#1 : !one, !x
}

func.func @columns(%x: tensor<513x64xbf16>) -> tensor<1x64xf32> {
  // expected-remark @below {{no kernel: expected columns of at most 512 rows, of which something is measured}}
  %0 = fp8.fusion(%x) {
  ^bb0(%a: tensor<513x64xbf16>):
    %1 = fp8.amax %a block = [*, 1] : tensor<513x64xbf16>
    fp8.yield %1 : tensor<1x64xf32>
  } : (tensor<513x64xbf16>) -> tensor<1x64xf32>
  return %0 : tensor<1x64xf32>
}

func.func @columns_of_all_batches(%x: tensor<4x32x64xbf16>) -> (tensor<1x1x64xf32>, tensor<4x1x64xf32>) {
  // expected-remark @below {{no kernel: expected columns of one batch, of which something is measured}}
  %0:2 = fp8.fusion(%x) {
  ^bb0(%a: tensor<4x32x64xbf16>):
    %1 = fp8.amax %a block = [*, *, 1] : tensor<4x32x64xbf16>
    %2 = fp8.amax %a block = [1, *, 1] : tensor<4x32x64xbf16>
    fp8.yield %1, %2 : tensor<1x1x64xf32>, tensor<4x1x64xf32>
  } : (tensor<4x32x64xbf16>) -> (tensor<1x1x64xf32>, tensor<4x1x64xf32>)
  return %0#0, %0#1 : tensor<1x1x64xf32>, tensor<4x1x64xf32>
}

// A chunk of 8 columns, and a thread's rows, have one factor.

func.func @narrow_blocks(%x: !x, %s: tensor<32x16xf32>) -> tensor<32x64xf8E4M3FN> {
  // expected-remark @below {{no kernel: expected values of a multiple of 8 columns to read, but got 4}}
  %0 = fp8.fusion(%x, %s) {
  ^bb0(%a: !x, %f: tensor<32x16xf32>):
    %q = fp8.quantize %a scale(%f, %f : tensor<32x16xf32>, tensor<32x16xf32>) : !x -> !fp8.scaled<32x64xf8E4M3FN, block = [1, 4], scale = f32>
    %codes, %factor = fp8.disassemble %q : !fp8.scaled<32x64xf8E4M3FN, block = [1, 4], scale = f32>
    fp8.yield %codes : tensor<32x64xf8E4M3FN>
  } : (!x, tensor<32x16xf32>) -> tensor<32x64xf8E4M3FN>
  return %0 : tensor<32x64xf8E4M3FN>
}

func.func @blocks_of_three_rows(%x: !x, %s: tensor<11x64xf32>) -> tensor<32x64xf8E4M3FN> {
  // expected-remark @below {{no kernel: expected values of a power of two of rows to read, but got 3}}
  %0 = fp8.fusion(%x, %s) {
  ^bb0(%a: !x, %f: tensor<11x64xf32>):
    %q = fp8.quantize %a scale(%f, %f : tensor<11x64xf32>, tensor<11x64xf32>) : !x -> !fp8.scaled<32x64xf8E4M3FN, block = [3, 1], scale = f32>
    %codes, %factor = fp8.disassemble %q : !fp8.scaled<32x64xf8E4M3FN, block = [3, 1], scale = f32>
    fp8.yield %codes : tensor<32x64xf8E4M3FN>
  } : (!x, tensor<11x64xf32>) -> tensor<32x64xf8E4M3FN>
  return %0 : tensor<32x64xf8E4M3FN>
}

func.func @own_amax(%x: !x) -> (tensor<32x64xf8E4M3FN>, !one) {
  // expected-remark @below {{no kernel: expected the amax of the whole tensor to be a result only: it is known when the tensor has been read}}
  %0:2 = fp8.fusion(%x) {
  ^bb0(%a: !x):
    %1 = fp8.amax %a block = [*, *] : !x
    %s, %si = fp8.compute_scale %1 format = f8E4M3FN scale_type = f32 : !one
    %q = fp8.quantize %a scale(%s, %si : !one, !one) : !x -> !q
    %codes, %factor = fp8.disassemble %q : !q
    fp8.yield %codes, %factor : tensor<32x64xf8E4M3FN>, !one
  } : (!x) -> (tensor<32x64xf8E4M3FN>, !one)
  return %0#0, %0#1 : tensor<32x64xf8E4M3FN>, !one
}

// Sums of a number of rows or columns, which no tile has.

func.func @parts_of_100(%x: tensor<1000x64xf32>) -> tensor<10x64xf32> {
  // expected-remark @below {{no kernel: expected blocks of a power of two up to 128, but got 100}}
  %0 = fp8.fusion(%x) {
  ^bb0(%a: tensor<1000x64xf32>):
    %zero = arith.constant 0.0 : f32
    %e = tensor.empty() : tensor<10x64xf32>
    %z = linalg.fill ins(%zero : f32) outs(%e : tensor<10x64xf32>) -> tensor<10x64xf32>
    %1 = linalg.generic {indexing_maps = [#id, affine_map<(i, j) -> (i floordiv 100, j)>], iterator_types = ["reduction", "parallel"]} ins(%a : tensor<1000x64xf32>) outs(%z : tensor<10x64xf32>) {
    ^bb0(%v: f32, %o: f32):
      %2 = arith.addf %o, %v : f32
      linalg.yield %2 : f32
    } -> tensor<10x64xf32>
    fp8.yield %1 : tensor<10x64xf32>
  } : (tensor<1000x64xf32>) -> tensor<10x64xf32>
  return %0 : tensor<10x64xf32>
}

func.func @parts_of_256(%x: tensor<1024x64xf32>) -> tensor<4x64xf32> {
  // expected-remark @below {{no kernel: expected blocks of a power of two up to 128, but got 256}}
  %0 = fp8.fusion(%x) {
  ^bb0(%a: tensor<1024x64xf32>):
    %zero = arith.constant 0.0 : f32
    %e = tensor.empty() : tensor<4x64xf32>
    %z = linalg.fill ins(%zero : f32) outs(%e : tensor<4x64xf32>) -> tensor<4x64xf32>
    %1 = linalg.generic {indexing_maps = [#id, affine_map<(i, j) -> (i floordiv 256, j)>], iterator_types = ["reduction", "parallel"]} ins(%a : tensor<1024x64xf32>) outs(%z : tensor<4x64xf32>) {
    ^bb0(%v: f32, %o: f32):
      %2 = arith.addf %o, %v : f32
      linalg.yield %2 : f32
    } -> tensor<4x64xf32>
    fp8.yield %1 : tensor<4x64xf32>
  } : (tensor<1024x64xf32>) -> tensor<4x64xf32>
  return %0 : tensor<4x64xf32>
}

func.func @parts_of_4_columns(%x: tensor<32x64xf32>) -> tensor<32x16xf32> {
  // expected-remark @below {{no kernel: expected blocks of at least 8 columns, but got 4}}
  %0 = fp8.fusion(%x) {
  ^bb0(%a: tensor<32x64xf32>):
    %zero = arith.constant 0.0 : f32
    %e = tensor.empty() : tensor<32x16xf32>
    %z = linalg.fill ins(%zero : f32) outs(%e : tensor<32x16xf32>) -> tensor<32x16xf32>
    %1 = linalg.generic {indexing_maps = [#id, affine_map<(i, j) -> (i, j floordiv 4)>], iterator_types = ["parallel", "reduction"]} ins(%a : tensor<32x64xf32>) outs(%z : tensor<32x16xf32>) {
    ^bb0(%v: f32, %o: f32):
      %2 = arith.addf %o, %v : f32
      linalg.yield %2 : f32
    } -> tensor<32x16xf32>
    fp8.yield %1 : tensor<32x16xf32>
  } : (tensor<32x64xf32>) -> tensor<32x16xf32>
  return %0 : tensor<32x16xf32>
}

func.func @parts_rounded_up(%x: tensor<32x64xf32>) -> tensor<2x64xf32> {
  // expected-remark @below {{no kernel: expected results that are written by the loops' indices}}
  %0 = fp8.fusion(%x) {
  ^bb0(%a: tensor<32x64xf32>):
    %zero = arith.constant 0.0 : f32
    %e = tensor.empty() : tensor<2x64xf32>
    %z = linalg.fill ins(%zero : f32) outs(%e : tensor<2x64xf32>) -> tensor<2x64xf32>
    %1 = linalg.generic {indexing_maps = [#id, affine_map<(i, j) -> (i ceildiv 32, j)>], iterator_types = ["reduction", "parallel"]} ins(%a : tensor<32x64xf32>) outs(%z : tensor<2x64xf32>) {
    ^bb0(%v: f32, %o: f32):
      %2 = arith.addf %o, %v : f32
      linalg.yield %2 : f32
    } -> tensor<2x64xf32>
    fp8.yield %1 : tensor<2x64xf32>
  } : (tensor<32x64xf32>) -> tensor<2x64xf32>
  return %0 : tensor<2x64xf32>
}

func.func @parts_of_a_sum(%x: tensor<32x64xf32>) -> tensor<2x64xf32> {
  // expected-remark @below {{no kernel: expected results that are written by the loops' indices}}
  %0 = fp8.fusion(%x) {
  ^bb0(%a: tensor<32x64xf32>):
    %zero = arith.constant 0.0 : f32
    %e = tensor.empty() : tensor<2x64xf32>
    %z = linalg.fill ins(%zero : f32) outs(%e : tensor<2x64xf32>) -> tensor<2x64xf32>
    %1 = linalg.generic {indexing_maps = [#id, affine_map<(i, j) -> ((i + 1) floordiv 32, j)>], iterator_types = ["reduction", "parallel"]} ins(%a : tensor<32x64xf32>) outs(%z : tensor<2x64xf32>) {
    ^bb0(%v: f32, %o: f32):
      %2 = arith.addf %o, %v : f32
      linalg.yield %2 : f32
    } -> tensor<2x64xf32>
    fp8.yield %1 : tensor<2x64xf32>
  } : (tensor<32x64xf32>) -> tensor<2x64xf32>
  return %0 : tensor<2x64xf32>
}

// Blocks are read, and not written but by quantizes and sums.

func.func @writes_blocks(%x: !x) -> tensor<2x64xbf16> {
  // expected-remark @below {{no kernel: expected results that are written by the loops' indices}}
  %0 = fp8.fusion(%x) {
  ^bb0(%a: !x):
    %e = tensor.empty() : tensor<2x64xbf16>
    %1 = linalg.generic {indexing_maps = [#id, affine_map<(i, j) -> (i floordiv 16, j)>], iterator_types = ["parallel", "parallel"]} ins(%a : !x) outs(%e : tensor<2x64xbf16>) {
    ^bb0(%v: bf16, %o: bf16):
      linalg.yield %v : bf16
    } -> tensor<2x64xbf16>
    fp8.yield %1 : tensor<2x64xbf16>
  } : (!x) -> tensor<2x64xbf16>
  return %0 : tensor<2x64xbf16>
}

// The same row for each row, and the tensor itself.

func.func @read_in_two_ways(%x: tensor<32x32xbf16>) -> tensor<32x32xbf16> {
  // expected-remark @below {{no kernel: expected each input to be read in one way}}
  %0 = fp8.fusion(%x) {
  ^bb0(%a: tensor<32x32xbf16>):
    %e = tensor.empty() : tensor<32x32xbf16>
    %1 = linalg.generic {indexing_maps = [#id, affine_map<(i, j) -> (0, j)>, #id], iterator_types = ["parallel", "parallel"]} ins(%a, %a : tensor<32x32xbf16>, tensor<32x32xbf16>) outs(%e : tensor<32x32xbf16>) {
    ^bb0(%b: bf16, %c: bf16, %o: bf16):
      %2 = arith.addf %b, %c : bf16
      linalg.yield %2 : bf16
    } -> tensor<32x32xbf16>
    fp8.yield %1 : tensor<32x32xbf16>
  } : (tensor<32x32xbf16>) -> tensor<32x32xbf16>
  return %0 : tensor<32x32xbf16>
}

func.func @scalar_of_16_bits(%x: !x, %factor: bf16) -> !x {
  // expected-remark @below {{no kernel: expected scalars of f32}}
  %0 = fp8.fusion(%x, %factor) {
  ^bb0(%a: !x, %f: bf16):
    %e = tensor.empty() : !x
    %1 = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]} ins(%a : !x) outs(%e : !x) {
    ^bb0(%b: bf16, %o: bf16):
      %2 = arith.mulf %b, %f : bf16
      linalg.yield %2 : bf16
    } -> !x
    fp8.yield %1 : !x
  } : (!x, bf16) -> !x
  return %0 : !x
}

func.func @mask(%x: !x) -> tensor<32x64xi1> {
  // expected-remark @below {{no kernel: expected f32, bf16, f16, 8-bit and f4E2M1FN elements, but got tensor<32x64xi1>}}
  %0 = fp8.fusion(%x) {
  ^bb0(%a: !x):
    %zero = arith.constant 0.0 : bf16
    %e = tensor.empty() : tensor<32x64xi1>
    %1 = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]} ins(%a : !x) outs(%e : tensor<32x64xi1>) {
    ^bb0(%b: bf16, %o: i1):
      %2 = arith.cmpf ogt, %b, %zero : bf16
      linalg.yield %2 : i1
    } -> tensor<32x64xi1>
    fp8.yield %1 : tensor<32x64xi1>
  } : (!x) -> tensor<32x64xi1>
  return %0 : tensor<32x64xi1>
}

// Rows that are read by their index.

func.func @rows_of_nothing(%i: tensor<32xi64>) -> !x {
  // expected-remark @below {{no kernel: expected an input to read rows of by their index}}
  %0 = fp8.fusion(%i) {
  ^bb0(%a: tensor<32xi64>):
    %t = tensor.empty() : tensor<8x64xbf16>
    %e = tensor.empty() : !x
    %y = linalg.generic {indexing_maps = [#row, #id], iterator_types = ["parallel", "parallel"]} ins(%a : tensor<32xi64>) outs(%e : !x) {
    ^bb0(%n: i64, %o: bf16):
      %p = arith.index_cast %n : i64 to index
      %c = linalg.index 1 : index
      %v = tensor.extract %t[%p, %c] : tensor<8x64xbf16>
      linalg.yield %v : bf16
    } -> !x
    fp8.yield %y : !x
  } : (tensor<32xi64>) -> !x
  return %0 : !x
}

func.func @the_first_row(%t: tensor<8x64xbf16>) -> !x {
  // expected-remark @below {{no kernel: expected an input that has an element for each row}}
  %0 = fp8.fusion(%t) {
  ^bb0(%a: tensor<8x64xbf16>):
    %e = tensor.empty() : !x
    %y = linalg.generic {indexing_maps = [#id], iterator_types = ["parallel", "parallel"]} outs(%e : !x) {
    ^bb0(%o: bf16):
      %p = arith.constant 0 : index
      %c = linalg.index 1 : index
      %v = tensor.extract %a[%p, %c] : tensor<8x64xbf16>
      linalg.yield %v : bf16
    } -> !x
    fp8.yield %y : !x
  } : (tensor<8x64xbf16>) -> !x
  return %0 : !x
}

func.func @gathered_and_read(%t: !x, %i: tensor<32xi64>) -> !x {
  // expected-remark @below {{no kernel: expected each input to be read in one way}}
  %0 = fp8.fusion(%t, %i) {
  ^bb0(%a: !x, %b: tensor<32xi64>):
    %e = tensor.empty() : !x
    %y = linalg.generic {indexing_maps = [#id, #row, #id], iterator_types = ["parallel", "parallel"]} ins(%a, %b : !x, tensor<32xi64>) outs(%e : !x) {
    ^bb0(%f: bf16, %n: i64, %o: bf16):
      %p = arith.index_cast %n : i64 to index
      %c = linalg.index 1 : index
      %v = tensor.extract %a[%p, %c] : !x
      %s = arith.addf %f, %v : bf16
      linalg.yield %s : bf16
    } -> !x
    fp8.yield %y : !x
  } : (!x, tensor<32xi64>) -> !x
  return %0 : !x
}

// Integers that are numbers too.

func.func @counted(%t: tensor<8x64xbf16>, %i: tensor<32xi32>) -> !x {
  // expected-remark @below {{no kernel: expected f32, bf16, f16, 8-bit and f4E2M1FN elements, but got i32}}
  %0 = fp8.fusion(%t, %i) {
  ^bb0(%a: tensor<8x64xbf16>, %b: tensor<32xi32>):
    %e = tensor.empty() : !x
    %y = linalg.generic {indexing_maps = [#row, #id], iterator_types = ["parallel", "parallel"]} ins(%b : tensor<32xi32>) outs(%e : !x) {
    ^bb0(%n: i32, %o: bf16):
      %p = arith.index_cast %n : i32 to index
      %c = linalg.index 1 : index
      %v = tensor.extract %a[%p, %c] : tensor<8x64xbf16>
      %f = arith.sitofp %n : i32 to bf16
      %s = arith.addf %f, %v : bf16
      linalg.yield %s : bf16
    } -> !x
    fp8.yield %y : !x
  } : (tensor<8x64xbf16>, tensor<32xi32>) -> !x
  return %0 : !x
}

func.func @both_in_one(%q: !q) -> !x {
  // expected-remark @below {{no kernel: expected codes and scale factors as inputs, but got both in one}}
  %0 = fp8.fusion(%q) {
  ^bb0(%a: !q):
    %y = fp8.dequantize %a : !q -> !x
    fp8.yield %y : !x
  } : (!q) -> !x
  return %0 : !x
}

func.func @turned_codes(%p: tensor<63x63xf8E4M3FN>, %f: !one) -> tensor<63x63xbf16> {
  // expected-remark @below {{no kernel: expected codes to dequantize in the order of the domain}}
  %0 = fp8.fusion(%p, %f) {
  ^bb0(%a: tensor<63x63xf8E4M3FN>, %b: !one):
    %q = fp8.assemble %a, %b : tensor<63x63xf8E4M3FN>, !one -> !fp8.scaled<63x63xf8E4M3FN, block = [*, *], scale = f32>
    // expected-remark @below {{no kernel: expected the number of rows to be a multiple of 4, so that they start at words, but got 63}}
    %t = fp8.transpose %q permutation = [1, 0] : !fp8.scaled<63x63xf8E4M3FN, block = [*, *], scale = f32>
    %y = fp8.dequantize %t : !fp8.scaled<63x63xf8E4M3FN, block = [*, *], scale = f32> -> tensor<63x63xbf16>
    fp8.yield %y : tensor<63x63xbf16>
  } : (tensor<63x63xf8E4M3FN>, !one) -> tensor<63x63xbf16>
  return %0 : tensor<63x63xbf16>
}

func.func @narrow_blocks_of_codes(%p: tensor<32x64xf8E4M3FN>, %f: tensor<32x16xf32>) -> !x {
  // expected-remark @below {{no kernel: expected values of a multiple of 8 columns to read, but got 4}}
  %0 = fp8.fusion(%p, %f) {
  ^bb0(%a: tensor<32x64xf8E4M3FN>, %b: tensor<32x16xf32>):
    %q = fp8.assemble %a, %b : tensor<32x64xf8E4M3FN>, tensor<32x16xf32> -> !fp8.scaled<32x64xf8E4M3FN, block = [1, 4], scale = f32>
    %y = fp8.dequantize %q : !fp8.scaled<32x64xf8E4M3FN, block = [1, 4], scale = f32> -> !x
    fp8.yield %y : !x
  } : (tensor<32x64xf8E4M3FN>, tensor<32x16xf32>) -> !x
  return %0 : !x
}

func.func @transposed_numbers(%x: !x) -> tensor<64x32xbf16> {
  // expected-remark @below {{no kernel: expected a transposed result to be codes, but got tensor<64x32xbf16>}}
  %0 = fp8.fusion(%x) {
  ^bb0(%a: !x):
    %e = tensor.empty() : tensor<64x32xbf16>
    %1 = linalg.generic {indexing_maps = [#id, affine_map<(i, j) -> (j, i)>], iterator_types = ["parallel", "parallel"]} ins(%a : !x) outs(%e : tensor<64x32xbf16>) {
    ^bb0(%b: bf16, %o: bf16):
      %2 = arith.negf %b : bf16
      linalg.yield %2 : bf16
    } -> tensor<64x32xbf16>
    fp8.yield %1 : tensor<64x32xbf16>
  } : (!x) -> tensor<64x32xbf16>
  return %0 : tensor<64x32xbf16>
}

func.func @transposed_batches(%x: tensor<2x32x64xbf16>, %s: tensor<1x1x1xf32>) -> tensor<32x2x64xf8E4M3FN> {
  // expected-remark @below {{no kernel: expected batches to stay in their places}}
  %0 = fp8.fusion(%x, %s) {
  ^bb0(%a: tensor<2x32x64xbf16>, %b: tensor<1x1x1xf32>):
    %q = fp8.quantize %a scale(%b, %b : tensor<1x1x1xf32>, tensor<1x1x1xf32>) : tensor<2x32x64xbf16> -> !fp8.scaled<2x32x64xf8E4M3FN, block = [*, *, *], scale = f32>
    // expected-remark @below {{no kernel: expected the last of two or three dimensions to be exchanged, but got [1, 0, 2]}}
    %t = fp8.transpose %q permutation = [1, 0, 2] : !fp8.scaled<2x32x64xf8E4M3FN, block = [*, *, *], scale = f32>
    %codes, %factor = fp8.disassemble %t : !fp8.scaled<32x2x64xf8E4M3FN, block = [*, *, *], scale = f32>
    fp8.yield %codes : tensor<32x2x64xf8E4M3FN>
  } : (tensor<2x32x64xbf16>, tensor<1x1x1xf32>) -> tensor<32x2x64xf8E4M3FN>
  return %0 : tensor<32x2x64xf8E4M3FN>
}

func.func @rows_of_unknown_length(%x: tensor<32x?xbf16>) -> tensor<32x1xf32> {
  // expected-remark @below {{no kernel: expected a static row length for a row reduction}}
  %0 = fp8.fusion(%x) {
  ^bb0(%a: tensor<32x?xbf16>):
    %1 = fp8.amax %a block = [1, *] : tensor<32x?xbf16>
    fp8.yield %1 : tensor<32x1xf32>
  } : (tensor<32x?xbf16>) -> tensor<32x1xf32>
  return %0 : tensor<32x1xf32>
}

// More than registers of eight blocks have.

func.func @long_rows(%x: tensor<4x1048576xbf16>) -> tensor<4x1xf32> {
  // expected-remark @below {{no kernel: expected rows that the registers of a cluster hold, but got 1048576 columns}}
  %0 = fp8.fusion(%x) {
  ^bb0(%a: tensor<4x1048576xbf16>):
    %1 = fp8.amax %a block = [1, *] : tensor<4x1048576xbf16>
    fp8.yield %1 : tensor<4x1xf32>
  } : (tensor<4x1048576xbf16>) -> tensor<4x1xf32>
  return %0 : tensor<4x1xf32>
}

// A row is read by each row: nothing has the tensor's elements.

func.func @broadcast(%r: tensor<64xbf16>) -> !x {
  // expected-remark @below {{no kernel: expected an operand that has an element for each of the domain}}
  %0 = fp8.fusion(%r) {
  ^bb0(%a: tensor<64xbf16>):
    %e = tensor.empty() : !x
    %1 = linalg.generic {indexing_maps = [affine_map<(i, j) -> (j)>, #id], iterator_types = ["parallel", "parallel"]} ins(%a : tensor<64xbf16>) outs(%e : !x) {
    ^bb0(%b: bf16, %o: bf16):
      %2 = arith.negf %b : bf16
      linalg.yield %2 : bf16
    } -> !x
    fp8.yield %1 : !x
  } : (tensor<64xbf16>) -> !x
  return %0 : !x
}

// What no kernel computes with the others has one by itself, where there is one.

// CHECK-LABEL: func.func @inside
// CHECK:       fp8.fusion
// CHECK:         fp8.transpose {{.+}} {fp8_gpu.config = #fp8_transpose.config<
func.func @inside(%x: tensor<4x8x16xbf16>, %s: tensor<1x1x1xf32>) -> tensor<4x16x8xf8E4M3FN> {
  // expected-remark @below {{no kernel: expected what works on a tensor element by element, but got tensor.cast}}
  %0 = fp8.fusion(%x, %s) {
  ^bb0(%a: tensor<4x8x16xbf16>, %b: tensor<1x1x1xf32>):
    %q = fp8.quantize %a scale(%b, %b : tensor<1x1x1xf32>, tensor<1x1x1xf32>) : tensor<4x8x16xbf16> -> !fp8.scaled<4x8x16xf8E4M3FN, block = [*, *, *], scale = f32>
    %t = fp8.transpose %q permutation = [0, 2, 1] : !fp8.scaled<4x8x16xf8E4M3FN, block = [*, *, *], scale = f32>
    %codes, %factor = fp8.disassemble %t : !fp8.scaled<4x16x8xf8E4M3FN, block = [*, *, *], scale = f32>
    %c = tensor.cast %codes : tensor<4x16x8xf8E4M3FN> to tensor<4x?x8xf8E4M3FN>
    %d = tensor.cast %c : tensor<4x?x8xf8E4M3FN> to tensor<4x16x8xf8E4M3FN>
    fp8.yield %d : tensor<4x16x8xf8E4M3FN>
  } : (tensor<4x8x16xbf16>, tensor<1x1x1xf32>) -> tensor<4x16x8xf8E4M3FN>
  return %0 : tensor<4x16x8xf8E4M3FN>
}

// A block has 32 warps at most: whole rows beside 512 rows of whole columns were
// 128 of them.
func.func @rows_and_high_columns(%x: tensor<368x2048xbf16>) -> (tensor<368x1xf32>, tensor<1x2048xf32>) {
  // expected-remark @below {{no kernel: expected rows that the registers of a cluster hold, but got 2048 columns}}
  %0:2 = fp8.fusion(%x) {
  ^bb0(%a: tensor<368x2048xbf16>):
    %1 = fp8.amax %a block = [1, *] : tensor<368x2048xbf16>
    %2 = fp8.amax %a block = [*, 1] : tensor<368x2048xbf16>
    fp8.yield %1, %2 : tensor<368x1xf32>, tensor<1x2048xf32>
  } : (tensor<368x2048xbf16>) -> (tensor<368x1xf32>, tensor<1x2048xf32>)
  return %0#0, %0#1 : tensor<368x1xf32>, tensor<1x2048xf32>
}

// Two codes of 4 bits share a byte.

func.func @odd_rows(%x: tensor<32x63xbf16>, %s: !one) -> !fp8.scaled<32x63xf4E2M1FN, block = [*, *], scale = f32> {
  // expected-remark @below {{no kernel: expected a known number of codes of f4E2M1FN in a row that fill bytes, but got 63}}
  %0 = fp8.fusion(%x, %s) {
  ^bb0(%a: tensor<32x63xbf16>, %f: !one):
    %q = fp8.quantize %a scale(%f, %f : !one, !one) : tensor<32x63xbf16> -> <32x63xf4E2M1FN, block = [*, *], scale = f32>
    %c:2 = fp8.disassemble %q : <32x63xf4E2M1FN, block = [*, *], scale = f32>
    fp8.yield %c#0 : tensor<32x63xf4E2M1FN>
  } : (tensor<32x63xbf16>, !one) -> tensor<32x63xf4E2M1FN>
  %1 = fp8.assemble %0, %s : tensor<32x63xf4E2M1FN>, !one -> <32x63xf4E2M1FN, block = [*, *], scale = f32>
  return %1 : !fp8.scaled<32x63xf4E2M1FN, block = [*, *], scale = f32>
}

func.func @unknown_rows(%x: tensor<32x?xbf16>, %s: !one) -> tensor<32x?xf4E2M1FN> {
  // expected-remark @below {{no kernel: expected a known number of codes of f4E2M1FN in a row that fill bytes, but got ?}}
  %0 = fp8.fusion(%x, %s) {
  ^bb0(%a: tensor<32x?xbf16>, %f: !one):
    %q = fp8.quantize %a scale(%f, %f : !one, !one) : tensor<32x?xbf16> -> <32x?xf4E2M1FN, block = [*, *], scale = f32>
    %c:2 = fp8.disassemble %q : <32x?xf4E2M1FN, block = [*, *], scale = f32>
    fp8.yield %c#0 : tensor<32x?xf4E2M1FN>
  } : (tensor<32x?xbf16>, !one) -> tensor<32x?xf4E2M1FN>
  return %0 : tensor<32x?xf4E2M1FN>
}

func.func @narrow_columns(%x: tensor<128x3xf32>) -> tensor<3xf32> {
  // expected-remark @below {{no kernel: expected at least 8 columns to add up below each other, but got 3}}
  %0 = fp8.fusion(%x) {
  ^bb0(%a: tensor<128x3xf32>):
    %zero = arith.constant 0.0 : f32
    %empty = tensor.empty() : tensor<3xf32>
    %b = linalg.fill ins(%zero : f32) outs(%empty : tensor<3xf32>) -> tensor<3xf32>
    %1 = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (j)>], iterator_types = ["reduction", "parallel"]}
        ins(%a : tensor<128x3xf32>) outs(%b : tensor<3xf32>) {
    ^bb1(%e: f32, %acc: f32):
      %2 = arith.addf %e, %acc : f32
      linalg.yield %2 : f32
    } -> tensor<3xf32>
    fp8.yield %1 : tensor<3xf32>
  } : (tensor<128x3xf32>) -> tensor<3xf32>
  return %0 : tensor<3xf32>
}

func.func @few_rows(%x: tensor<128x7x64xbf16>) -> tensor<128x64xf32> {
  // expected-remark @below {{no kernel: expected more than a sum of 16 rows or fewer, which a loop adds up as they lie}}
  %0 = fp8.fusion(%x) {
  ^bb0(%a: tensor<128x7x64xbf16>):
    %zero = arith.constant 0.0 : f32
    %empty = tensor.empty() : tensor<128x64xf32>
    %b = linalg.fill ins(%zero : f32) outs(%empty : tensor<128x64xf32>) -> tensor<128x64xf32>
    %1 = linalg.generic {indexing_maps = [affine_map<(i, j, k) -> (i, j, k)>, affine_map<(i, j, k) -> (i, k)>], iterator_types = ["parallel", "reduction", "parallel"]}
        ins(%a : tensor<128x7x64xbf16>) outs(%b : tensor<128x64xf32>) {
    ^bb1(%e: bf16, %acc: f32):
      %2 = arith.extf %e : bf16 to f32
      %3 = arith.addf %2, %acc : f32
      linalg.yield %3 : f32
    } -> tensor<128x64xf32>
    fp8.yield %1 : tensor<128x64xf32>
  } : (tensor<128x7x64xbf16>) -> tensor<128x64xf32>
  return %0 : tensor<128x64xf32>
}
