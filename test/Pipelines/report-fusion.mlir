// RUN: fp8-opt %s --fp8-fuse-epilogues --fp8-fuse-casts --fp8-form-fusions \
// RUN:   --fp8-set-target=chip=sm_90a --fp8-select-kernels --fp8-report-fusion \
// RUN:   -o /dev/null | FileCheck %s
// RUN: fp8-opt %s --fp8-form-fusions --fp8-set-target=chip=sm_90a --fp8-select-kernels \
// RUN:   -o %t.before.mlir
// RUN: fp8-opt %t.before.mlir --fp8-report-fusion=file=%t.txt -o %t.after.mlir
// RUN: diff %t.before.mlir %t.after.mlir

// Each reason, and before it the program that lacks it. The report changes
// nothing.

#full = affine_map<(m, n) -> (m, n)>
#rows = affine_map<(m, n) -> (m)>
#first = affine_map<(m, n) -> (m, 0)>
!a = !fp8.scaled<256x512xf8E4M3FN, block = [*, *], scale = f32>
!b = !fp8.scaled<1024x512xf8E4M3FN, block = [*, *], scale = f32>
!square = !fp8.scaled<512x512xf8E4M3FN, block = [*, *], scale = f32>
!codes = !fp8.scaled<256x1024xf8E4M3FN, block = [*, *], scale = f32>

// CHECK: Kernels for sm_90a; MB are 10^6 bytes. Floors: 4800 GB/s, 1979 TFLOP/s in 8 bits, 2.5 us a kernel

//===----------------------------------------------------------------------===//
// Passes over memory
//===----------------------------------------------------------------------===//

// The amax and the codes of 256 x 1024, 0.52 MB in bf16, from one read: what
// the floor has too, but that what is raised is set to 0 before.

// CHECK-LABEL: @given_scale
// CHECK-NEXT: 2 kernels 0.79 5.2
// CHECK-NEXT: floor 0.79 2.7
// CHECK-NEXT: kernels / floor 1.00 1.94
// CHECK: 1 fill 0.00 0.00 2.5 for #2
// CHECK-NEXT: 2 fusion 0.52 0.26 2.7 quantize amax of x for q, amax
// CHECK-NOT: what one would save
// CHECK: read again only to be quantized: none
func.func @given_scale(%x: tensor<256x1024xbf16> {fp8.name = "x"}, %s: tensor<1x1xf32>, %si: tensor<1x1xf32>)
    -> (tensor<256x1024xf8E4M3FN> {fp8.name = "q"}, tensor<1x1xf32> {fp8.name = "amax"}) {
  %0 = fp8.quantize %x scale(%s, %si : tensor<1x1xf32>, tensor<1x1xf32>) : tensor<256x1024xbf16> -> !codes
  %1 = fp8.amax %x block = [*, *] : tensor<256x1024xbf16>
  %2, %3 = fp8.disassemble %0 : !codes
  return %2, %1 : tensor<256x1024xf8E4M3FN>, tensor<1x1xf32>
}

// CHECK-LABEL: @own_scale
// CHECK-NEXT: 3 kernels 1.31
// CHECK-NEXT: floor 1.31
// CHECK: what one would save
// CHECK-NEXT: MB us
// CHECK-NEXT: 0.52 2.6 #2 -> #3 through #2's amax or scale, both read x: expected the amax of the whole tensor to be a result only: it is known when the tensor has been read
// CHECK: read again only to be quantized:{{$}}
// CHECK-NEXT: x, 256x1024xbf16, by #2, #3 of #2, #3
func.func @own_scale(%x: tensor<256x1024xbf16> {fp8.name = "x"}) -> (tensor<256x1024xf8E4M3FN>, tensor<1x1xf32>) {
  %0 = fp8.amax %x block = [*, *] : tensor<256x1024xbf16>
  %s, %si = fp8.compute_scale %0 format = f8E4M3FN scale_type = f32 : tensor<1x1xf32>
  %1 = fp8.quantize %x scale(%s, %si : tensor<1x1xf32>, tensor<1x1xf32>) : tensor<256x1024xbf16> -> !codes
  %2, %3 = fp8.disassemble %1 : !codes
  return %2, %3 : tensor<256x1024xf8E4M3FN>, tensor<1x1xf32>
}

// What is measured is computed again in place of being kept.

// CHECK-LABEL: @own_scale_of_a_function
// CHECK-NEXT: 3 kernels 1.31
// CHECK-NEXT: floor 1.31
// CHECK: what one would save
// CHECK: 0.52 2.6 #2 -> #3 through {{.*}}: expected the amax of the whole tensor
func.func @own_scale_of_a_function(%x: tensor<256x1024xbf16> {fp8.name = "x"}) -> (tensor<256x1024xf8E4M3FN>, tensor<1x1xf32>) {
  %empty = tensor.empty() : tensor<256x1024xbf16>
  %0 = linalg.generic {indexing_maps = [#full, #full], iterator_types = ["parallel", "parallel"]}
      ins(%x : tensor<256x1024xbf16>) outs(%empty : tensor<256x1024xbf16>) {
  ^bb0(%in: bf16, %out: bf16):
    %5 = arith.mulf %in, %in : bf16
    linalg.yield %5 : bf16
  } -> tensor<256x1024xbf16>
  %1 = fp8.amax %0 block = [*, *] : tensor<256x1024xbf16>
  %s, %si = fp8.compute_scale %1 format = f8E4M3FN scale_type = f32 : tensor<1x1xf32>
  %2 = fp8.quantize %0 scale(%s, %si : tensor<1x1xf32>, tensor<1x1xf32>) : tensor<256x1024xbf16> -> !codes
  %3, %4 = fp8.disassemble %2 : !codes
  return %3, %4 : tensor<256x1024xf8E4M3FN>, tensor<1x1xf32>
}

// CHECK-LABEL: @accumulation_of_rows
// CHECK: 1 fusion 0.52 0.26 2.7 quantize reduction of x for result0, result1
// CHECK-NOT: what one would save
// CHECK: read again only to be quantized: none
func.func @accumulation_of_rows(%x: tensor<256x1024xbf16> {fp8.name = "x"}, %s: tensor<1x1xf32>, %si: tensor<1x1xf32>)
    -> (tensor<256x1024xf8E4M3FN>, tensor<256xf32>) {
  %0 = fp8.quantize %x scale(%s, %si : tensor<1x1xf32>, tensor<1x1xf32>) : tensor<256x1024xbf16> -> !codes
  %1, %2 = fp8.disassemble %0 : !codes
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<256xf32>
  %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<256xf32>) -> tensor<256xf32>
  %sums = linalg.generic {indexing_maps = [#full, #rows], iterator_types = ["parallel", "reduction"]}
      ins(%x : tensor<256x1024xbf16>) outs(%init : tensor<256xf32>) {
  ^bb0(%in: bf16, %sum: f32):
    %3 = arith.extf %in : bf16 to f32
    %4 = arith.addf %sum, %3 : f32
    linalg.yield %4 : f32
  } -> tensor<256xf32>
  return %1, %sums : tensor<256x1024xf8E4M3FN>, tensor<256xf32>
}

// Integers, of which there are no kernels.

// CHECK-LABEL: @counts
// CHECK: 2 loop 0.52 2.10 3.0 elementwise of x for bits
// CHECK-NEXT: a loop: expected elements of f32, bf16 and f16
// CHECK: what one would save
// CHECK-NEXT: MB us
// CHECK-NEXT: 0.52 2.6 #1, #2 both read x: expected elements of f32, bf16 and f16
// CHECK: read again only to be quantized:{{$}}
// CHECK-NEXT: x, 256x1024xbf16, by #1 of #1, #2
func.func @counts(%x: tensor<256x1024xbf16> {fp8.name = "x"}, %s: tensor<1x1xf32>, %si: tensor<1x1xf32>)
    -> (tensor<256x1024xf8E4M3FN>, tensor<256x1024xi64> {fp8.name = "bits"}) {
  %0 = fp8.quantize %x scale(%s, %si : tensor<1x1xf32>, tensor<1x1xf32>) : tensor<256x1024xbf16> -> !codes
  %1, %2 = fp8.disassemble %0 : !codes
  %empty = tensor.empty() : tensor<256x1024xi64>
  %bits = linalg.generic {indexing_maps = [#full, #full], iterator_types = ["parallel", "parallel"]}
      ins(%x : tensor<256x1024xbf16>) outs(%empty : tensor<256x1024xi64>) {
  ^bb0(%in: bf16, %out: i64):
    %3 = arith.bitcast %in : bf16 to i16
    %4 = arith.extui %3 : i16 to i64
    linalg.yield %4 : i64
  } -> tensor<256x1024xi64>
  return %1, %bits : tensor<256x1024xf8E4M3FN>, tensor<256x1024xi64>
}

// Six tensors, and twelve.

// CHECK-LABEL: @few_tensors
// CHECK-NOT: what one would save
// CHECK: read again only to be quantized: none
func.func @few_tensors(%x0: tensor<256x1024xbf16>, %x1: tensor<256x1024xbf16>, %z0: tensor<256x1024xbf16>, %z1: tensor<256x1024xbf16>) -> (tensor<256x1024xbf16>, tensor<256x1024xbf16>) {
  %empty = tensor.empty() : tensor<256x1024xbf16>
  %0 = linalg.generic {indexing_maps = [#full, #full, #full], iterator_types = ["parallel", "parallel"]}
      ins(%x0, %x1 : tensor<256x1024xbf16>, tensor<256x1024xbf16>) outs(%empty : tensor<256x1024xbf16>) {
  ^bb0(%i0: bf16, %i1: bf16, %out: bf16):
    %s1 = arith.addf %i0, %i1 : bf16
    linalg.yield %s1 : bf16
  } -> tensor<256x1024xbf16>
  %1 = linalg.generic {indexing_maps = [#full, #full, #full, #full], iterator_types = ["parallel", "parallel"]}
      ins(%0, %z0, %z1 : tensor<256x1024xbf16>, tensor<256x1024xbf16>, tensor<256x1024xbf16>) outs(%empty : tensor<256x1024xbf16>) {
  ^bb0(%i0: bf16, %i1: bf16, %i2: bf16, %out: bf16):
    %s1 = arith.addf %i0, %i1 : bf16
    %s2 = arith.addf %s1, %i2 : bf16
    linalg.yield %s2 : bf16
  } -> tensor<256x1024xbf16>
  return %0, %1 : tensor<256x1024xbf16>, tensor<256x1024xbf16>
}

// CHECK-LABEL: @many_tensors
// CHECK: what one would save
// CHECK-NEXT: MB us
// CHECK-NEXT: 0.52 2.6 #1 -> #2 through #1's 256x1024xbf16: one pass would read and write 12 tensors, more than 10
func.func @many_tensors(%x0: tensor<256x1024xbf16>, %x1: tensor<256x1024xbf16>, %x2: tensor<256x1024xbf16>, %x3: tensor<256x1024xbf16>, %x4: tensor<256x1024xbf16>, %z0: tensor<256x1024xbf16>, %z1: tensor<256x1024xbf16>, %z2: tensor<256x1024xbf16>, %z3: tensor<256x1024xbf16>, %z4: tensor<256x1024xbf16>) -> (tensor<256x1024xbf16>, tensor<256x1024xbf16>) {
  %empty = tensor.empty() : tensor<256x1024xbf16>
  %0 = linalg.generic {indexing_maps = [#full, #full, #full, #full, #full, #full], iterator_types = ["parallel", "parallel"]}
      ins(%x0, %x1, %x2, %x3, %x4 : tensor<256x1024xbf16>, tensor<256x1024xbf16>, tensor<256x1024xbf16>, tensor<256x1024xbf16>, tensor<256x1024xbf16>) outs(%empty : tensor<256x1024xbf16>) {
  ^bb0(%i0: bf16, %i1: bf16, %i2: bf16, %i3: bf16, %i4: bf16, %out: bf16):
    %s1 = arith.addf %i0, %i1 : bf16
    %s2 = arith.addf %s1, %i2 : bf16
    %s3 = arith.addf %s2, %i3 : bf16
    %s4 = arith.addf %s3, %i4 : bf16
    linalg.yield %s4 : bf16
  } -> tensor<256x1024xbf16>
  %1 = linalg.generic {indexing_maps = [#full, #full, #full, #full, #full, #full, #full], iterator_types = ["parallel", "parallel"]}
      ins(%0, %z0, %z1, %z2, %z3, %z4 : tensor<256x1024xbf16>, tensor<256x1024xbf16>, tensor<256x1024xbf16>, tensor<256x1024xbf16>, tensor<256x1024xbf16>, tensor<256x1024xbf16>) outs(%empty : tensor<256x1024xbf16>) {
  ^bb0(%i0: bf16, %i1: bf16, %i2: bf16, %i3: bf16, %i4: bf16, %i5: bf16, %out: bf16):
    %s1 = arith.addf %i0, %i1 : bf16
    %s2 = arith.addf %s1, %i2 : bf16
    %s3 = arith.addf %s2, %i3 : bf16
    %s4 = arith.addf %s3, %i4 : bf16
    %s5 = arith.addf %s4, %i5 : bf16
    linalg.yield %s5 : bf16
  } -> tensor<256x1024xbf16>
  return %0, %1 : tensor<256x1024xbf16>, tensor<256x1024xbf16>
}

// The second pass needs what a matmul makes of the first one's codes.

// CHECK-LABEL: @between
// CHECK: what one would save
// CHECK-NEXT: MB us
// CHECK-NEXT: 1.05 2.7 #2 -> #3 through product's 256x512xf32: fp8.amax: of blocks, which no epilogue has
// CHECK-NEXT: 0.26 2.6 #1, #3 both read x: the second one needs product, which needs the first one
func.func @between(%x: tensor<256x512xbf16> {fp8.name = "x"}, %w: !square, %s: tensor<1x1xf32>, %si: tensor<1x1xf32>)
    -> tensor<256x512xbf16> {
  %0 = fp8.quantize %x scale(%s, %si : tensor<1x1xf32>, tensor<1x1xf32>) : tensor<256x512xbf16> -> !a
  %1 = fp8.matmul %0, %w {fp8.name = "product"} : !a, !square -> tensor<256x512xf32>
  %2 = fp8.amax %1 block = [1, *] : tensor<256x512xf32>
  %empty = tensor.empty() : tensor<256x512xbf16>
  %3 = linalg.generic {indexing_maps = [#full, #first, #full], iterator_types = ["parallel", "parallel"]}
      ins(%x, %2 : tensor<256x512xbf16>, tensor<256x1xf32>) outs(%empty : tensor<256x512xbf16>) {
  ^bb0(%in: bf16, %amax: f32, %out: bf16):
    %4 = arith.truncf %amax : f32 to bf16
    %5 = arith.addf %in, %4 : bf16
    linalg.yield %5 : bf16
  } -> tensor<256x512xbf16>
  return %3 : tensor<256x512xbf16>
}

// Fusions that are written so, and that no pass looks at any more.

// CHECK-LABEL: @nothing_in_the_way
// CHECK: what one would save
// CHECK-NEXT: MB us
// CHECK-NEXT: 0.52 2.6 #2, #3 both read x: a kernel would compute both, but no pass joins them
func.func @nothing_in_the_way(%x: tensor<256x1024xbf16> {fp8.name = "x"}) -> (tensor<1x1xf32>, tensor<256x1xf32>) {
  %0 = fp8.fusion(%x) {
  ^bb0(%1: tensor<256x1024xbf16>):
    %2 = fp8.amax %1 block = [*, *] : tensor<256x1024xbf16>
    fp8.yield %2 : tensor<1x1xf32>
  } : (tensor<256x1024xbf16>) -> tensor<1x1xf32>
  %3 = fp8.fusion(%x) {
  ^bb0(%4: tensor<256x1024xbf16>):
    %5 = fp8.amax %4 block = [1, *] : tensor<256x1024xbf16>
    fp8.yield %5 : tensor<256x1xf32>
  } : (tensor<256x1024xbf16>) -> tensor<256x1xf32>
  return %0, %3 : tensor<1x1xf32>, tensor<256x1xf32>
}

//===----------------------------------------------------------------------===//
// Epilogues
//===----------------------------------------------------------------------===//

// Codes and their amax are the matmul's own results.

// CHECK-LABEL: @codes_of_a_matmul
// CHECK: 2 matmul 0.66 0.26 0.27 2.7 product
// CHECK-NOT: what one would save
// CHECK: read again only to be quantized: none
func.func @codes_of_a_matmul(%a: !a, %b: !b, %s: tensor<1x1xf32>, %si: tensor<1x1xf32>)
    -> (tensor<256x1024xf8E4M3FN>, tensor<1x1xf32>) {
  %0 = fp8.matmul %a, %b {fp8.name = "product"} : !a, !b -> tensor<256x1024xbf16>
  %1 = fp8.amax %0 block = [*, *] : tensor<256x1024xbf16>
  %2 = fp8.quantize %0 scale(%s, %si : tensor<1x1xf32>, tensor<1x1xf32>) : tensor<256x1024xbf16> -> !codes
  %3, %4 = fp8.disassemble %2 : !codes
  return %3, %1 : tensor<256x1024xf8E4M3FN>, tensor<1x1xf32>
}

// CHECK-LABEL: @others_use_it
// CHECK-NEXT: 2 kernels 1.97
// CHECK-NEXT: floor 1.44
// CHECK: what one would save
// CHECK-NEXT: MB us
// CHECK-NEXT: 0.52 2.6 #1 -> #2 through product's 256x1024xbf16: fp8.quantize: others use the result too
func.func @others_use_it(%a: !a, %b: !b, %s: tensor<1x1xf32>, %si: tensor<1x1xf32>)
    -> (tensor<256x1024xf8E4M3FN>, tensor<256x1024xbf16>) {
  %0 = fp8.matmul %a, %b {fp8.name = "product"} : !a, !b -> tensor<256x1024xbf16>
  %1 = fp8.quantize %0 scale(%s, %si : tensor<1x1xf32>, tensor<1x1xf32>) : tensor<256x1024xbf16> -> !codes
  %2, %3 = fp8.disassemble %1 : !codes
  return %2, %0 : tensor<256x1024xf8E4M3FN>, tensor<256x1024xbf16>
}

// CHECK-LABEL: @own_scale_of_a_matmul
// CHECK-NEXT: 3 kernels 1.97
// CHECK-NEXT: floor 1.97
// CHECK: what one would save
// CHECK-NEXT: MB us
// CHECK-NEXT: 1.05 2.7 #2 -> #3 through product's amax or scale, product's 256x1024xbf16: fp8.quantize: the scale depends on what comes after the matmul
func.func @own_scale_of_a_matmul(%a: !a, %b: !b) -> (tensor<256x1024xf8E4M3FN>, tensor<1x1xf32>) {
  %0 = fp8.matmul %a, %b {fp8.name = "product"} : !a, !b -> tensor<256x1024xbf16>
  %1 = fp8.amax %0 block = [*, *] : tensor<256x1024xbf16>
  %s, %si = fp8.compute_scale %1 format = f8E4M3FN scale_type = f32 : tensor<1x1xf32>
  %2 = fp8.quantize %0 scale(%s, %si : tensor<1x1xf32>, tensor<1x1xf32>) : tensor<256x1024xbf16> -> !codes
  %3, %4 = fp8.disassemble %2 : !codes
  return %3, %4 : tensor<256x1024xf8E4M3FN>, tensor<1x1xf32>
}

// CHECK-LABEL: @residual
// CHECK-NOT: what one would save
// CHECK: read again only to be quantized: none
func.func @residual(%a: !a, %b: !b, %x: tensor<256x1024xbf16> {fp8.name = "x"}) -> tensor<256x1024xbf16> {
  %0 = fp8.matmul %a, %b epilogue(%x : tensor<256x1024xbf16>) {
  ^bb0(%sum: f32, %other: bf16):
    %1 = arith.truncf %sum : f32 to bf16
    %2 = arith.addf %1, %other : bf16
    fp8.yield %2 : bf16
  } {fp8.name = "product"} : !a, !b -> tensor<256x1024xbf16>
  return %0 : tensor<256x1024xbf16>
}

// CHECK-LABEL: @computed_residual
// CHECK-NEXT: 2 kernels 2.75
// CHECK-NEXT: floor 1.70
// CHECK: what one would save
// CHECK-NEXT: MB us
// CHECK-NEXT: 1.05 2.7 #1 -> #2 through #1's 256x1024xbf16: what an epilogue reads is computed before its matmul
func.func @computed_residual(%a: !a, %b: !b, %x: tensor<256x1024xbf16> {fp8.name = "x"}) -> tensor<256x1024xbf16> {
  %empty = tensor.empty() : tensor<256x1024xbf16>
  %half = arith.constant 0.5 : bf16
  %0 = linalg.generic {indexing_maps = [#full, #full], iterator_types = ["parallel", "parallel"]}
      ins(%x : tensor<256x1024xbf16>) outs(%empty : tensor<256x1024xbf16>) {
  ^bb0(%in: bf16, %out: bf16):
    %3 = arith.mulf %in, %half : bf16
    linalg.yield %3 : bf16
  } -> tensor<256x1024xbf16>
  %1 = fp8.matmul %a, %b epilogue(%0 : tensor<256x1024xbf16>) {
  ^bb0(%sum: f32, %other: bf16):
    %3 = arith.truncf %sum : f32 to bf16
    %4 = arith.addf %3, %other : bf16
    fp8.yield %4 : bf16
  } {fp8.name = "product"} : !a, !b -> tensor<256x1024xbf16>
  return %1 : tensor<256x1024xbf16>
}

//===----------------------------------------------------------------------===//
// Products
//===----------------------------------------------------------------------===//

// What a matmul multiplies has to be in memory: nothing to be fused.

// CHECK-LABEL: @operand
// CHECK-NOT: what one would save
// CHECK: read again only to be quantized: none
func.func @operand(%x: tensor<256x512xbf16> {fp8.name = "x"}, %b: !b, %s: tensor<1x1xf32>, %si: tensor<1x1xf32>)
    -> tensor<256x1024xbf16> {
  %0 = fp8.quantize %x scale(%s, %si : tensor<1x1xf32>, tensor<1x1xf32>) : tensor<256x512xbf16> -> !a
  %1 = fp8.matmul %0, %b {fp8.name = "product"} : !a, !b -> tensor<256x1024xbf16>
  return %1 : tensor<256x1024xbf16>
}

// Two products of one operand are one launch, which reads that once; so does
// the floor.

// CHECK-LABEL: @siblings
// CHECK-NEXT: 1 kernel 2.23 3.0
// CHECK-NEXT: floor 2.23 3.0
// CHECK: 1 matmul 1.18 1.05 0.54 3.0 gate; up
// CHECK-NOT: what one would save
// CHECK: read again only to be quantized: none
func.func @siblings(%a: !a, %b: !b, %c: !b) -> (tensor<256x1024xbf16>, tensor<256x1024xbf16>) {
  %0 = fp8.matmul %a, %b {fp8.name = "gate"} : !a, !b -> tensor<256x1024xbf16>
  %1 = fp8.matmul %a, %c {fp8.name = "up"} : !a, !b -> tensor<256x1024xbf16>
  return %0, %1 : tensor<256x1024xbf16>, tensor<256x1024xbf16>
}

// CHECK-LABEL: @strangers
// CHECK: what one would save
// CHECK-NEXT: MB us
// CHECK-NEXT: 0.13 2.5 #1, #2 both read arg0: expected matmuls of a group to have results of the same types
func.func @strangers(%a: !a, %b: !b, %c: !b) -> (tensor<256x1024xbf16>, tensor<256x1024xf32>) {
  %0 = fp8.matmul %a, %b {fp8.name = "gate"} : !a, !b -> tensor<256x1024xbf16>
  %1 = fp8.matmul %a, %c {fp8.name = "up"} : !a, !b -> tensor<256x1024xf32>
  return %0, %1 : tensor<256x1024xbf16>, tensor<256x1024xf32>
}

// Alone, both fill more of their last rounds of tiles.

// CHECK-LABEL: @full_rounds
// CHECK: what one would save
// CHECK-NEXT: MB us
// CHECK-NEXT: 4.19 3.4 #1, #2 both read arg0: by the model of their time, one launch for both takes longer
func.func @full_rounds(%a: !fp8.scaled<512x8192xf8E4M3FN, block = [*, *], scale = f32>,
                      %b: !fp8.scaled<5248x8192xf8E4M3FN, block = [*, *], scale = f32>,
                      %c: !fp8.scaled<12160x8192xf8E4M3FN, block = [*, *], scale = f32>)
    -> (tensor<512x5248xbf16>, tensor<512x12160xbf16>) {
  %0 = fp8.matmul %a, %b {fp8.name = "q"} : !fp8.scaled<512x8192xf8E4M3FN, block = [*, *], scale = f32>, !fp8.scaled<5248x8192xf8E4M3FN, block = [*, *], scale = f32> -> tensor<512x5248xbf16>
  %1 = fp8.matmul %a, %c {fp8.name = "k"} : !fp8.scaled<512x8192xf8E4M3FN, block = [*, *], scale = f32>, !fp8.scaled<12160x8192xf8E4M3FN, block = [*, *], scale = f32> -> tensor<512x12160xbf16>
  return %0, %1 : tensor<512x5248xbf16>, tensor<512x12160xbf16>
}

// What an epilogue reads could be computed in its tile, if nobody else needed it.

// CHECK-LABEL: @saved
// CHECK: what one would save
// CHECK-NEXT: MB us
// CHECK-NEXT: #1 -> #2 through gate's 256x1024xbf16, both read arg0: others read the first one's result too
func.func @saved(%a: !a, %b: !b, %c: !b) -> (tensor<256x1024xbf16>, tensor<256x1024xbf16>) {
  %0 = fp8.matmul %a, %b {fp8.name = "gate"} : !a, !b -> tensor<256x1024xbf16>
  %1 = fp8.matmul %a, %c epilogue(%0 : tensor<256x1024xbf16>) {
  ^bb0(%acc: f32, %gate: bf16):
    %2 = arith.extf %gate : bf16 to f32
    %3 = arith.mulf %acc, %2 : f32
    %4 = arith.truncf %3 : f32 to bf16
    fp8.yield %4 : bf16
  } {fp8.name = "up"} : !a, !b -> tensor<256x1024xbf16>
  return %0, %1 : tensor<256x1024xbf16>, tensor<256x1024xbf16>
}

// Results of two that meet: one of them has to be in memory.

// CHECK-LABEL: @meeting
// CHECK-NEXT: 2 kernels 4.33
// CHECK-NEXT: floor 3.28
// CHECK: 1.05 2.7 #1 -> #2 through up's 256x1024xbf16: linalg.generic: more results than the one that an epilogue has
func.func @meeting(%a: !a, %b: !b, %c: !b) -> (tensor<256x1024xbf16>, tensor<256x1024xbf16>) {
  %0 = fp8.matmul %a, %b {fp8.name = "gate"} : !a, !b -> tensor<256x1024xbf16>
  %1 = fp8.matmul %a, %c {fp8.name = "up"} : !a, !b -> tensor<256x1024xbf16>
  %empty = tensor.empty() : tensor<256x1024xbf16>
  %2:2 = linalg.generic {indexing_maps = [#full, #full, #full, #full], iterator_types = ["parallel", "parallel"]}
      ins(%0, %1 : tensor<256x1024xbf16>, tensor<256x1024xbf16>)
      outs(%empty, %empty : tensor<256x1024xbf16>, tensor<256x1024xbf16>) {
  ^bb0(%g: bf16, %u: bf16, %out0: bf16, %out1: bf16):
    %3 = arith.mulf %g, %u : bf16
    %4 = arith.addf %g, %u : bf16
    linalg.yield %3, %4 : bf16, bf16
  } -> (tensor<256x1024xbf16>, tensor<256x1024xbf16>)
  return %2#0, %2#1 : tensor<256x1024xbf16>, tensor<256x1024xbf16>
}

// A tensor that is multiplied as it is, and quantized.

// CHECK-LABEL: @operand_and_codes
// CHECK: what one would save
// CHECK-NEXT: MB us
// CHECK-NEXT: 0.26 2.6 #1, #2 both read x: the kernel of a product computes nothing else of its operands
// CHECK: read again only to be quantized:{{$}}
// CHECK-NEXT: x, 256x512xbf16, by #2 of #1, #2
func.func @operand_and_codes(%x: tensor<256x512xbf16> {fp8.name = "x"}, %w: tensor<1024x512xbf16>, %s: tensor<1x1xf32>, %si: tensor<1x1xf32>)
    -> (tensor<256x1024xbf16>, tensor<256x512xf8E4M3FN>) {
  %0 = fp8.matmul %x, %w accumulate = fast {fp8.name = "product"} : tensor<256x512xbf16>, tensor<1024x512xbf16> -> tensor<256x1024xbf16>
  %1 = fp8.quantize %x scale(%s, %si : tensor<1x1xf32>, tensor<1x1xf32>) : tensor<256x512xbf16> -> !a
  %2, %3 = fp8.disassemble %1 : !a
  return %0, %2 : tensor<256x1024xbf16>, tensor<256x512xf8E4M3FN>
}

//===----------------------------------------------------------------------===//
// What is not known
//===----------------------------------------------------------------------===//

// Extents that are not known: no sums, and tensors in place of bytes.

// CHECK-LABEL: @dynamic
// CHECK-NEXT: 4 kernels - -
// CHECK-NEXT: floor - -
// CHECK-NEXT: kernels / floor - -
// CHECK: 2 fusion - 0.00 - amax of x
// CHECK-NEXT: reads ?x1024xbf16, 1x1xf32, writes 1x1xf32
// CHECK: 4 fusion - - - quantize of x for result0
// CHECK-NEXT: reads ?x1024xbf16, 1x1xf32, 1x1xf32, writes ?x1024xf8E4M3FN
// CHECK: what one would save
// CHECK: - - #2, #4 both read x: the second one needs #3, which needs the first one
func.func @dynamic(%x: tensor<?x1024xbf16> {fp8.name = "x"}) -> tensor<?x1024xf8E4M3FN> {
  %0 = fp8.amax %x block = [*, *] : tensor<?x1024xbf16>
  %s, %si = fp8.compute_scale %0 format = f8E4M3FN scale_type = f32 : tensor<1x1xf32>
  %1 = fp8.quantize %x scale(%s, %si : tensor<1x1xf32>, tensor<1x1xf32>) : tensor<?x1024xbf16> -> !fp8.scaled<?x1024xf8E4M3FN, block = [*, *], scale = f32>
  %2, %3 = fp8.disassemble %1 : !fp8.scaled<?x1024xf8E4M3FN, block = [*, *], scale = f32>
  return %2 : tensor<?x1024xf8E4M3FN>
}

// CHECK-LABEL: @branch
// CHECK: 1 fusion 0.52 0.00 2.6 amax of x
// CHECK-NEXT: in a loop or a branch, counted once
func.func @branch(%x: tensor<256x1024xbf16> {fp8.name = "x"}, %c: i1) -> tensor<256x1xf32> {
  %0 = scf.if %c -> tensor<256x1xf32> {
    %1 = fp8.amax %x block = [1, *] : tensor<256x1024xbf16>
    scf.yield %1 : tensor<256x1xf32>
  } else {
    %2 = tensor.empty() : tensor<256x1xf32>
    scf.yield %2 : tensor<256x1xf32>
  }
  return %0 : tensor<256x1xf32>
}

//===----------------------------------------------------------------------===//
// Codes that are read
//===----------------------------------------------------------------------===//

// 0.13 MB of codes, read twice: the scale is that of the tensor's own amax.

// CHECK-LABEL: @codes_of_own_scale
// CHECK:       2 fusion 0.13 0.00 2.5 dequantize amax of q
// CHECK-NEXT:  3 fusion 0.13 0.13 2.6 dequantize quantize of q for result0, result1
// CHECK:       0.13 2.5 #2 -> #3 through {{.*}}: expected the amax of the whole tensor to be a result only
func.func @codes_of_own_scale(%q: !a {fp8.name = "q"}) -> (tensor<256x512xf8E4M3FN>, tensor<1x1xf32>) {
  %x = fp8.dequantize %q : !a -> tensor<256x512xbf16>
  %0 = fp8.amax %x block = [*, *] : tensor<256x512xbf16>
  %s, %si = fp8.compute_scale %0 format = f8E4M3FN scale_type = f32 : tensor<1x1xf32>
  %1 = fp8.quantize %x scale(%s, %si : tensor<1x1xf32>, tensor<1x1xf32>) : tensor<256x512xbf16> -> !a
  %2, %3 = fp8.disassemble %1 : !a
  return %2, %3 : tensor<256x512xf8E4M3FN>, tensor<1x1xf32>
}

// CHECK-LABEL: @codes_of_4_bits
// CHECK:       2 fusion 0.07 0.00 2.5 dequantize amax of arg0
func.func @codes_of_4_bits(%q: !fp8.scaled<256x512xf4E2M1FN, block = [*, *], scale = f32>) -> tensor<1x1xf32> {
  %x = fp8.dequantize %q : !fp8.scaled<256x512xf4E2M1FN, block = [*, *], scale = f32> -> tensor<256x512xbf16>
  %0 = fp8.amax %x block = [*, *] : tensor<256x512xbf16>
  return %0 : tensor<1x1xf32>
}
