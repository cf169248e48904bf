// RUN: fp8-opt %s --fp8-pipeline="recipe=delayed target=sm_90a to=buffers fusion-report=%t.delayed.txt" -o /dev/null
// RUN: FileCheck %s < %t.delayed.txt
// RUN: fp8-opt %s --fp8-pipeline="recipe=current target=sm_90a to=buffers fusion-report=%t.current.txt" -o /dev/null
// RUN: FileCheck %s < %t.current.txt
// RUN: fp8-opt %s --fp8-pipeline="recipe=rowwise target=sm_90a to=buffers fusion-report=%t.rowwise.txt" -o /dev/null
// RUN: FileCheck %s < %t.rowwise.txt
// RUN: fp8-opt %s --fp8-pipeline="recipe=block target=sm_90a to=buffers fusion-report=%t.block.txt" -o /dev/null
// RUN: FileCheck %s < %t.block.txt
// RUN: fp8-opt %s --fp8-pipeline="recipe=none target=sm_90a to=buffers fusion-report=%t.none.txt" -o /dev/null
// RUN: FileCheck %s < %t.none.txt
// RUN: fp8-opt %s --fp8-pipeline="recipe=delayed target=cpu to=fusion" | FileCheck %s --check-prefix=CPU

// A norm, a product, and gradients, of rows and of as many rows in batches: as many kernels,
// which move and take as much.

// CHECK: @rows
// CHECK-NEXT: {{^}}[[KERNELS:[0-9]+ kernels +.*]]{{$}}
// CHECK-NEXT: [[FLOOR:floor +.*]]
// CHECK: @batches
// CHECK-NEXT: {{^}}[[KERNELS]]{{$}}
// CHECK-NEXT: [[FLOOR]]

// CPU-LABEL: func.func @batches
// CPU: %[[X:.*]] = tensor.collapse_shape %arg0 {{\[}}[0, 1], [2]] : tensor<4x64x512xbf16> into tensor<256x512xbf16>
// CPU-NOT: linalg.generic {{.*}} tensor<4x64x
// CPU: return

#full1 = affine_map<(m, n) -> (m, n)>
#row1 = affine_map<(m, n) -> (m, 0)>
#col1 = affine_map<(m, n) -> (n)>
#full2 = affine_map<(b, l, n) -> (b, l, n)>
#row2 = affine_map<(b, l, n) -> (b, l, 0)>
#col2 = affine_map<(b, l, n) -> (n)>

func.func @rows(%x: tensor<256x512xbf16> {fp8.name = "x"}, %g: tensor<512xf32>, %w: tensor<512x1024xbf16> {fp8.name = "w", fp8.weight},
                %dy: tensor<256x1024xbf16> {fp8.grad}) -> (tensor<256x1024xbf16>, tensor<512x1024xbf16>, tensor<256x512xbf16>, tensor<1024xf32>) {
  %zero = arith.constant 0.0 : f32
  %e1 = tensor.empty() : tensor<256x1xf32>
  %z1 = linalg.fill ins(%zero : f32) outs(%e1 : tensor<256x1xf32>) -> tensor<256x1xf32>
  %squares = linalg.generic {indexing_maps = [#full1, #row1], iterator_types = ["parallel", "reduction"]}
      ins(%x : tensor<256x512xbf16>) outs(%z1 : tensor<256x1xf32>) {
  ^bb0(%a: bf16, %o: f32):
    %0 = arith.extf %a : bf16 to f32
    %1 = arith.mulf %0, %0 : f32
    %2 = arith.addf %1, %o : f32
    linalg.yield %2 : f32
  } -> tensor<256x1xf32>
  %en = tensor.empty() : tensor<256x512xbf16>
  %norm = linalg.generic {indexing_maps = [#full1, #row1, #col1, #full1], iterator_types = ["parallel", "parallel"]}
      ins(%x, %squares, %g : tensor<256x512xbf16>, tensor<256x1xf32>, tensor<512xf32>) outs(%en : tensor<256x512xbf16>) {
  ^bb0(%a: bf16, %s: f32, %b: f32, %o: bf16):
    %0 = arith.extf %a : bf16 to f32
    %1 = math.rsqrt %s : f32
    %2 = arith.mulf %0, %1 : f32
    %3 = arith.mulf %2, %b : f32
    %4 = arith.truncf %3 : f32 to bf16
    linalg.yield %4 : bf16
  } -> tensor<256x512xbf16>
  %ey = tensor.empty() : tensor<256x1024xbf16>
  %zb = arith.constant 0.0 : bf16
  %zy = linalg.fill ins(%zb : bf16) outs(%ey : tensor<256x1024xbf16>) -> tensor<256x1024xbf16>
  %y = linalg.matmul {fp8.name = "y"} ins(%norm, %w : tensor<256x512xbf16>, tensor<512x1024xbf16>) outs(%zy : tensor<256x1024xbf16>) -> tensor<256x1024xbf16>
  %et = tensor.empty() : tensor<512x256xbf16>
  %nt = linalg.transpose ins(%norm : tensor<256x512xbf16>) outs(%et : tensor<512x256xbf16>) permutation = [1, 0]
  %ew = tensor.empty() : tensor<512x1024xbf16>
  %zw = linalg.fill ins(%zb : bf16) outs(%ew : tensor<512x1024xbf16>) -> tensor<512x1024xbf16>
  %dw = linalg.matmul {fp8.name = "y.wgrad", fp8.role = #fp8.role<wgrad>} ins(%nt, %dy : tensor<512x256xbf16>, tensor<256x1024xbf16>) outs(%zw : tensor<512x1024xbf16>) -> tensor<512x1024xbf16>
  %ewt = tensor.empty() : tensor<1024x512xbf16>
  %wt = linalg.transpose ins(%w : tensor<512x1024xbf16>) outs(%ewt : tensor<1024x512xbf16>) permutation = [1, 0]
  %ex = tensor.empty() : tensor<256x512xbf16>
  %zx = linalg.fill ins(%zb : bf16) outs(%ex : tensor<256x512xbf16>) -> tensor<256x512xbf16>
  %dx = linalg.matmul {fp8.name = "y.dgrad", fp8.role = #fp8.role<dgrad>} ins(%dy, %wt : tensor<256x1024xbf16>, tensor<1024x512xbf16>) outs(%zx : tensor<256x512xbf16>) -> tensor<256x512xbf16>
  %ec = tensor.empty() : tensor<1024xf32>
  %zc = linalg.fill ins(%zero : f32) outs(%ec : tensor<1024xf32>) -> tensor<1024xf32>
  %db = linalg.generic {indexing_maps = [#full1, #col1], iterator_types = ["reduction", "parallel"]}
      ins(%dy : tensor<256x1024xbf16>) outs(%zc : tensor<1024xf32>) {
  ^bb0(%a: bf16, %o: f32):
    %0 = arith.extf %a : bf16 to f32
    %1 = arith.addf %0, %o : f32
    linalg.yield %1 : f32
  } -> tensor<1024xf32>
  %sum = arith.addf %dx, %x : tensor<256x512xbf16>
  return %y, %dw, %sum, %db : tensor<256x1024xbf16>, tensor<512x1024xbf16>, tensor<256x512xbf16>, tensor<1024xf32>
}

func.func @batches(%x: tensor<4x64x512xbf16> {fp8.name = "x"}, %g: tensor<512xf32>, %w: tensor<512x1024xbf16> {fp8.name = "w", fp8.weight},
                %dy: tensor<4x64x1024xbf16> {fp8.grad}) -> (tensor<4x64x1024xbf16>, tensor<512x1024xbf16>, tensor<4x64x512xbf16>, tensor<1024xf32>) {
  %zero = arith.constant 0.0 : f32
  %e1 = tensor.empty() : tensor<4x64x1xf32>
  %z1 = linalg.fill ins(%zero : f32) outs(%e1 : tensor<4x64x1xf32>) -> tensor<4x64x1xf32>
  %squares = linalg.generic {indexing_maps = [#full2, #row2], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%x : tensor<4x64x512xbf16>) outs(%z1 : tensor<4x64x1xf32>) {
  ^bb0(%a: bf16, %o: f32):
    %0 = arith.extf %a : bf16 to f32
    %1 = arith.mulf %0, %0 : f32
    %2 = arith.addf %1, %o : f32
    linalg.yield %2 : f32
  } -> tensor<4x64x1xf32>
  %en = tensor.empty() : tensor<4x64x512xbf16>
  %norm = linalg.generic {indexing_maps = [#full2, #row2, #col2, #full2], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%x, %squares, %g : tensor<4x64x512xbf16>, tensor<4x64x1xf32>, tensor<512xf32>) outs(%en : tensor<4x64x512xbf16>) {
  ^bb0(%a: bf16, %s: f32, %b: f32, %o: bf16):
    %0 = arith.extf %a : bf16 to f32
    %1 = math.rsqrt %s : f32
    %2 = arith.mulf %0, %1 : f32
    %3 = arith.mulf %2, %b : f32
    %4 = arith.truncf %3 : f32 to bf16
    linalg.yield %4 : bf16
  } -> tensor<4x64x512xbf16>
  %rows = tensor.collapse_shape %norm [[0, 1], [2]] : tensor<4x64x512xbf16> into tensor<256x512xbf16>
  %drows = tensor.collapse_shape %dy [[0, 1], [2]] : tensor<4x64x1024xbf16> into tensor<256x1024xbf16>
  %ey = tensor.empty() : tensor<256x1024xbf16>
  %zb = arith.constant 0.0 : bf16
  %zy = linalg.fill ins(%zb : bf16) outs(%ey : tensor<256x1024xbf16>) -> tensor<256x1024xbf16>
  %y = linalg.matmul {fp8.name = "y"} ins(%rows, %w : tensor<256x512xbf16>, tensor<512x1024xbf16>) outs(%zy : tensor<256x1024xbf16>) -> tensor<256x1024xbf16>
  %et = tensor.empty() : tensor<512x256xbf16>
  %nt = linalg.transpose ins(%rows : tensor<256x512xbf16>) outs(%et : tensor<512x256xbf16>) permutation = [1, 0]
  %ew = tensor.empty() : tensor<512x1024xbf16>
  %zw = linalg.fill ins(%zb : bf16) outs(%ew : tensor<512x1024xbf16>) -> tensor<512x1024xbf16>
  %dw = linalg.matmul {fp8.name = "y.wgrad", fp8.role = #fp8.role<wgrad>} ins(%nt, %drows : tensor<512x256xbf16>, tensor<256x1024xbf16>) outs(%zw : tensor<512x1024xbf16>) -> tensor<512x1024xbf16>
  %ewt = tensor.empty() : tensor<1024x512xbf16>
  %wt = linalg.transpose ins(%w : tensor<512x1024xbf16>) outs(%ewt : tensor<1024x512xbf16>) permutation = [1, 0]
  %ex = tensor.empty() : tensor<256x512xbf16>
  %zx = linalg.fill ins(%zb : bf16) outs(%ex : tensor<256x512xbf16>) -> tensor<256x512xbf16>
  %dx = linalg.matmul {fp8.name = "y.dgrad", fp8.role = #fp8.role<dgrad>} ins(%drows, %wt : tensor<256x1024xbf16>, tensor<1024x512xbf16>) outs(%zx : tensor<256x512xbf16>) -> tensor<256x512xbf16>
  %yb = tensor.expand_shape %y [[0, 1], [2]] output_shape [4, 64, 1024] : tensor<256x1024xbf16> into tensor<4x64x1024xbf16>
  %dxb = tensor.expand_shape %dx [[0, 1], [2]] output_shape [4, 64, 512] : tensor<256x512xbf16> into tensor<4x64x512xbf16>
  %ec = tensor.empty() : tensor<1024xf32>
  %zc = linalg.fill ins(%zero : f32) outs(%ec : tensor<1024xf32>) -> tensor<1024xf32>
  %db = linalg.generic {indexing_maps = [#full2, #col2], iterator_types = ["reduction", "reduction", "parallel"]}
      ins(%dy : tensor<4x64x1024xbf16>) outs(%zc : tensor<1024xf32>) {
  ^bb0(%a: bf16, %o: f32):
    %0 = arith.extf %a : bf16 to f32
    %1 = arith.addf %0, %o : f32
    linalg.yield %1 : f32
  } -> tensor<1024xf32>
  %sum = arith.addf %dxb, %x : tensor<4x64x512xbf16>
  return %yb, %dw, %sum, %db : tensor<4x64x1024xbf16>, tensor<512x1024xbf16>, tensor<4x64x512xbf16>, tensor<1024xf32>
}
