// RUN: fp8-opt %s --convert-fp8-to-linalg --canonicalize --cse | FileCheck %s

!x = !fp8.scaled<32x256xf8E4M3FN, block = [1, 128], scale = f32>
!w = !fp8.scaled<4x64x256xf8E4M3FN, block = [1, 128, 128], scale = f32>

// A loop over the groups; rows of none stay zero.

// CHECK-LABEL: func.func @rows
// CHECK:       %[[ZEROS:.+]] = linalg.fill {{.*}} -> tensor<32x64xbf16>
// CHECK:       scf.for %[[G:.+]] = %c0 to %c4 step %c1 iter_args(%[[D:.+]] = %[[ZEROS]]) -> (tensor<32x64xbf16>)
// CHECK:         %[[FIRST:.+]] = tensor.extract %{{.+}}[%[[G]]] : tensor<5xi32>
// CHECK:         %[[BEGIN:.+]] = arith.index_cast %[[FIRST]]
// CHECK:         %[[END:.+]] = arith.index_cast
// CHECK:         cf.assert %{{.+}}, "expected offsets of groups that begin with 0, do not decrease and do not exceed the number of rows"
// CHECK:         %[[SIZE:.+]] = arith.subi %[[END]], %[[BEGIN]] : index
// CHECK:         tensor.extract_slice %{{.+}}[%[[BEGIN]], 0] [%[[SIZE]], 256] [1, 1] : tensor<32x256xf8E4M3FN> to tensor<?x256xf8E4M3FN>
// CHECK:         tensor.extract_slice %{{.+}}[%[[BEGIN]], 0] [%[[SIZE]], 2] [1, 1] : tensor<32x2xf32> to tensor<?x2xf32>
// CHECK:         tensor.extract_slice %{{.+}}[%[[G]], 0, 0] [1, 64, 256] [1, 1, 1] : tensor<4x64x256xf8E4M3FN> to tensor<64x256xf8E4M3FN>
// CHECK:         tensor.extract_slice %{{.+}}[%[[G]], 0, 0] [1, 1, 2] [1, 1, 1] : tensor<4x1x2xf32> to tensor<1x2xf32>
// CHECK:         linalg.contract
// CHECK:         tensor.insert_slice %{{.+}} into %[[D]][%[[BEGIN]], 0] [%[[SIZE]], 64] [1, 1] : tensor<?x64xbf16> into tensor<32x64xbf16>
func.func @rows(%x: !x, %w: !w, %offsets: tensor<5xi32>) -> tensor<32x64xbf16> {
  %0 = fp8.grouped_matmul %x, %w offsets(%offsets : tensor<5xi32>) : !x, !w -> tensor<32x64xbf16>
  return %0 : tensor<32x64xbf16>
}

// One factor serves all groups.

// CHECK-LABEL: func.func @tensor_scale
// CHECK:         tensor.extract_slice %{{.+}}[0, 0, 0] [1, 1, 1] [1, 1, 1] : tensor<1x1x1xf32> to tensor<1x1xf32>
func.func @tensor_scale(%x: !fp8.scaled<32x256xf8E4M3FN, block = [*, *], scale = f32>,
                        %w: !fp8.scaled<4x64x256xf8E4M3FN, block = [*, *, *], scale = f32>,
                        %offsets: tensor<5xi32>) -> tensor<32x64xbf16> {
  %0 = fp8.grouped_matmul %x, %w offsets(%offsets : tensor<5xi32>)
      : !fp8.scaled<32x256xf8E4M3FN, block = [*, *], scale = f32>,
        !fp8.scaled<4x64x256xf8E4M3FN, block = [*, *, *], scale = f32> -> tensor<32x64xbf16>
  return %0 : tensor<32x64xbf16>
}

// A slice of codes with blocks along it is no value: that of what they stand for is.

// CHECK-LABEL: func.func @k_blocks
// CHECK:       %[[A:.+]] = tensor.collapse_shape {{.*}} into tensor<64x256xf32>
// CHECK:       scf.for
// CHECK:         tensor.extract_slice %[[A]][0, %{{.+}}] [64, %{{.+}}] [1, 1] : tensor<64x256xf32> to tensor<64x?xf32>
// CHECK:         tensor.insert_slice %{{.+}} into %{{.+}}[%{{.+}}, 0, 0] [1, 64, 32] [1, 1, 1] : tensor<64x32xf32> into tensor<4x64x32xf32>
func.func @k_blocks(%dy: !fp8.scaled<64x256xf8E4M3FN, block = [1, 128], scale = f32>,
                    %x: !fp8.scaled<32x256xf8E4M3FN, block = [1, 128], scale = f32>,
                    %offsets: tensor<5xi32>) -> tensor<4x64x32xf32> {
  %0 = fp8.grouped_matmul %dy, %x offsets(%offsets : tensor<5xi32>)
      : !fp8.scaled<64x256xf8E4M3FN, block = [1, 128], scale = f32>,
        !fp8.scaled<32x256xf8E4M3FN, block = [1, 128], scale = f32> -> tensor<4x64x32xf32>
  return %0 : tensor<4x64x32xf32>
}

// What the epilogue reads is sliced where it has rows.

// CHECK-LABEL: func.func @epilogue
// CHECK:       scf.for
// CHECK:         %[[R:.+]] = tensor.extract_slice %arg6[%{{.+}}, 0] [%{{.+}}, 64] [1, 1] : tensor<32x64xf32> to tensor<?x64xf32>
// CHECK:         linalg.generic {{.*}} ins(%{{.+}}, %{{.+}}, %{{.+}}, %arg5, %[[R]] :
func.func @epilogue(%x: !fp8.scaled<32x256xf8E4M3FN, block = [*, *], scale = f32>,
                    %w: !fp8.scaled<4x64x256xf8E4M3FN, block = [*, *, *], scale = f32>,
                    %offsets: tensor<5xi32>, %bias: tensor<64xf32>, %residual: tensor<32x64xf32>) -> tensor<32x64xf32> {
  %0 = fp8.grouped_matmul %x, %w offsets(%offsets : tensor<5xi32>) epilogue(%bias, %residual : tensor<64xf32>, tensor<32x64xf32>) {
  ^bb0(%acc: f32, %b: f32, %r: f32):
    %1 = arith.addf %acc, %b : f32
    %2 = arith.addf %1, %r : f32
    fp8.yield %2 : f32
  } : !fp8.scaled<32x256xf8E4M3FN, block = [*, *], scale = f32>,
      !fp8.scaled<4x64x256xf8E4M3FN, block = [*, *, *], scale = f32> -> tensor<32x64xf32>
  return %0 : tensor<32x64xf32>
}

// Groups that are counted have their first rows; what follows stays zero.

// CHECK-LABEL: func.func @counts
// CHECK:       %[[ZEROS:.+]] = linalg.fill {{.*}} -> tensor<4x32x64xbf16>
// CHECK:       scf.for %[[G:.+]] = %c0 to %c4 step %c1 iter_args(%[[D:.+]] = %[[ZEROS]]) -> (tensor<4x32x64xbf16>)
// CHECK:         %[[LOADED:.+]] = tensor.extract %{{.+}}[%[[G]]] : tensor<4xi32>
// CHECK:         %[[COUNT:.+]] = arith.index_cast %[[LOADED]]
// CHECK:         cf.assert %{{.+}}, "expected counts of groups that are not negative and do not exceed the number of rows that a group has room for"
// CHECK:         %[[CODES:.+]] = tensor.extract_slice %{{.+}}[%[[G]], 0, 0] [1, 32, 256] [1, 1, 1] : tensor<4x32x256xf8E4M3FN> to tensor<32x256xf8E4M3FN>
// CHECK:         %[[FACTORS:.+]] = tensor.extract_slice %{{.+}}[%[[G]], 0, 0] [1, 32, 2] [1, 1, 1] : tensor<4x32x2xf32> to tensor<32x2xf32>
// CHECK:         tensor.extract_slice %[[CODES]][0, 0] [%[[COUNT]], 256] [1, 1] : tensor<32x256xf8E4M3FN> to tensor<?x256xf8E4M3FN>
// CHECK:         tensor.extract_slice %[[FACTORS]][0, 0] [%[[COUNT]], 2] [1, 1] : tensor<32x2xf32> to tensor<?x2xf32>
// CHECK:         tensor.extract_slice %{{.+}}[%[[G]], 0, 0] [1, 64, 256] [1, 1, 1] : tensor<4x64x256xf8E4M3FN> to tensor<64x256xf8E4M3FN>
// CHECK:         tensor.insert_slice %{{.+}} into %[[D]][%[[G]], 0, 0] [1, %[[COUNT]], 64] [1, 1, 1] : tensor<?x64xbf16> into tensor<4x32x64xbf16>
func.func @counts(%x: !fp8.scaled<4x32x256xf8E4M3FN, block = [1, 1, 128], scale = f32>, %w: !w,
                  %counts: tensor<4xi32>) -> tensor<4x32x64xbf16> {
  %0 = fp8.grouped_matmul %x, %w counts(%counts : tensor<4xi32>)
      : !fp8.scaled<4x32x256xf8E4M3FN, block = [1, 1, 128], scale = f32>, !w -> tensor<4x32x64xbf16>
  return %0 : tensor<4x32x64xbf16>
}

// CHECK-LABEL: func.func @counts_k
// CHECK:         %[[COUNT:.+]] = arith.index_cast
// CHECK:         %[[A:.+]] = tensor.extract_slice %arg0[%[[G:.+]], 0, 0] [1, 256, 64] [1, 1, 1] : tensor<4x256x64xbf16> to tensor<256x64xbf16>
// CHECK:         tensor.extract_slice %[[A]][0, 0] [%[[COUNT]], 64] [1, 1] : tensor<256x64xbf16> to tensor<?x64xbf16>
// CHECK:         %[[B:.+]] = tensor.extract_slice %arg1[%[[G]], 0, 0] [1, 256, 32] [1, 1, 1] : tensor<4x256x32xbf16> to tensor<256x32xbf16>
// CHECK:         tensor.extract_slice %[[B]][0, 0] [%[[COUNT]], 32] [1, 1] : tensor<256x32xbf16> to tensor<?x32xbf16>
// CHECK:         tensor.insert_slice %{{.+}} into %{{.+}}[%[[G]], 0, 0] [1, 64, 32] [1, 1, 1] : tensor<64x32xf32> into tensor<4x64x32xf32>
func.func @counts_k(%dy: tensor<4x256x64xbf16>, %x: tensor<4x256x32xbf16>, %counts: tensor<4xi32>) -> tensor<4x64x32xf32> {
  %0 = fp8.grouped_matmul %dy, %x counts_k(%counts : tensor<4xi32>) transpose_a transpose_b accumulate = fast
      : tensor<4x256x64xbf16>, tensor<4x256x32xbf16> -> tensor<4x64x32xf32>
  return %0 : tensor<4x64x32xf32>
}

// What the epilogue reads is sliced where it has groups, and where it has rows.

// CHECK-LABEL: func.func @counts_epilogue
// CHECK:         tensor.extract_slice %arg3[%[[G:.+]], 0, 0] [1, 1, 64] [1, 1, 1] : tensor<4x1x64xf32> to tensor<1x64xf32>
// CHECK:         %[[ROWS:.+]] = tensor.extract_slice %arg4[0, 0, 0] [1, 32, 1] [1, 1, 1] : tensor<1x32x1xf32> to tensor<32x1xf32>
// CHECK:         tensor.extract_slice %[[ROWS]][0, 0] [%{{.+}}, 1] [1, 1] : tensor<32x1xf32> to tensor<?x1xf32>
func.func @counts_epilogue(%x: tensor<4x32x256xbf16>, %w: tensor<4x64x256xbf16>, %counts: tensor<4xi32>,
                           %bias: tensor<4x1x64xf32>, %rows: tensor<1x32x1xf32>) -> tensor<4x32x64xf32> {
  %0 = fp8.grouped_matmul %x, %w counts(%counts : tensor<4xi32>) accumulate = fast
      epilogue(%bias, %rows : tensor<4x1x64xf32>, tensor<1x32x1xf32>) {
  ^bb0(%acc: f32, %b: f32, %r: f32):
    %1 = arith.addf %acc, %b : f32
    %2 = arith.mulf %1, %r : f32
    fp8.yield %2 : f32
  } : tensor<4x32x256xbf16>, tensor<4x64x256xbf16> -> tensor<4x32x64xf32>
  return %0 : tensor<4x32x64xf32>
}

// No slice is inside of a tensor without elements: there, a part is a new tensor, and nothing has a place.

// CHECK-LABEL: func.func @no_rows
// CHECK:         %[[ZEROS:.+]] = linalg.fill {{.*}} -> tensor<4x0x64xbf16>
// CHECK:         scf.for
// CHECK:           cf.assert
// CHECK-NOT:       tensor.insert_slice
// CHECK:         return %[[ZEROS]]
func.func @no_rows(%x: tensor<4x0x256xbf16>, %w: tensor<4x64x256xbf16>, %counts: tensor<4xi32>) -> tensor<4x0x64xbf16> {
  %0 = fp8.grouped_matmul %x, %w counts(%counts : tensor<4xi32>) accumulate = fast
      : tensor<4x0x256xbf16>, tensor<4x64x256xbf16> -> tensor<4x0x64xbf16>
  return %0 : tensor<4x0x64xbf16>
}

// CHECK-LABEL: func.func @no_room
// CHECK:           %[[COUNT:.+]] = arith.index_cast
// CHECK:           tensor.empty(%[[COUNT]]) : tensor<64x?xbf16>
// CHECK:           tensor.insert_slice %{{.+}} into %{{.+}}[%{{.+}}, 0, 0] [1, 64, 32] [1, 1, 1] : tensor<64x32xf32> into tensor<4x64x32xf32>
func.func @no_room(%x: tensor<4x64x0xbf16>, %y: tensor<4x32x0xbf16>, %counts: tensor<4xi32>) -> tensor<4x64x32xf32> {
  %0 = fp8.grouped_matmul %x, %y counts_k(%counts : tensor<4xi32>) accumulate = fast
      : tensor<4x64x0xbf16>, tensor<4x32x0xbf16> -> tensor<4x64x32xf32>
  return %0 : tensor<4x64x32xf32>
}

// Where sums are a kernel's, its factors multiply the sum of a block: a group that is counted begins with one.

// CHECK-LABEL: func.func @counts_k_blocks
// CHECK:         %[[COUNT:.+]] = arith.index_cast
// CHECK:         tensor.extract_slice %{{.+}}[0, 0] [64, %[[COUNT]]] [1, 1] : tensor<64x256xf8E4M3FN> to tensor<64x?xf8E4M3FN>
// CHECK:         %[[BLOCKS:.+]] = arith.ceildivui %[[COUNT]], %c128
// CHECK:         tensor.extract_slice %{{.+}}[0, 0] [64, %[[BLOCKS]]] [1, 1] : tensor<64x2xf32> to tensor<64x?xf32>
// CHECK:         tensor.extract_slice %{{.+}}[0, 0] [32, %[[BLOCKS]]] [1, 1] : tensor<32x2xf32> to tensor<32x?xf32>
// CHECK:         scf.for %{{.+}} = %c0 to %[[BLOCKS]]
// CHECK:           linalg.contract {{.*}} {tensor_core_accumulation = array<i64: 0, 0, 128, 1, 0, 0>}
// CHECK:           math.fma
func.func @counts_k_blocks(%x: !fp8.scaled<4x64x256xf8E4M3FN, block = [1, 1, 128], scale = f32>,
                           %y: !fp8.scaled<4x32x256xf8E4M3FN, block = [1, 1, 128], scale = f32>,
                           %counts: tensor<4xi32>) -> tensor<4x64x32xf32> {
  %0 = fp8.grouped_matmul %x, %y counts_k(%counts : tensor<4xi32>) {tensor_core_accumulation = array<i64: 0, 0, 128, 1, 1, 0>}
      : !fp8.scaled<4x64x256xf8E4M3FN, block = [1, 1, 128], scale = f32>,
        !fp8.scaled<4x32x256xf8E4M3FN, block = [1, 1, 128], scale = f32> -> tensor<4x64x32xf32>
  return %0 : tensor<4x64x32xf32>
}

// One that begins anywhere has zeros where the first block is another one's; of nothing there is no block.

// CHECK-LABEL: func.func @k_blocks_of_kernel
// CHECK:         %[[BEGIN:.+]] = arith.index_cast
// CHECK:         %[[END:.+]] = arith.index_cast
// CHECK:         %[[SIZE:.+]] = arith.subi %[[END]], %[[BEGIN]]
// CHECK:         %[[EMPTY:.+]] = arith.cmpi eq, %[[SIZE]], %c0
// CHECK:         %[[REST:.+]] = arith.remui %[[BEGIN]], %c128
// CHECK:         %[[OTHERS:.+]] = arith.select %[[EMPTY]], %c0, %[[REST]]
// CHECK:         %[[WHOLE:.+]] = arith.addi %[[SIZE]], %[[OTHERS]]
// CHECK:         tensor.insert_slice %{{.+}} into %{{.+}}[0, %[[OTHERS]]] [64, %[[SIZE]]] [1, 1] : tensor<64x?xf8E4M3FN> into tensor<64x?xf8E4M3FN>
// CHECK:         %[[FIRST:.+]] = arith.subi %[[END]], %[[WHOLE]]
// CHECK:         %[[BLOCK:.+]] = arith.divui %[[FIRST]], %c128
// CHECK:         %[[BLOCKS:.+]] = arith.ceildivui %[[WHOLE]], %c128
// CHECK:         tensor.extract_slice %arg1[0, %[[BLOCK]]] [64, %[[BLOCKS]]] [1, 1] : tensor<64x2xf32> to tensor<64x?xf32>
// CHECK:         tensor.extract_slice %arg3[0, %[[BLOCK]]] [32, %[[BLOCKS]]] [1, 1] : tensor<32x2xf32> to tensor<32x?xf32>
func.func @k_blocks_of_kernel(%dy: !fp8.scaled<64x256xf8E4M3FN, block = [1, 128], scale = f32>,
                              %x: !fp8.scaled<32x256xf8E4M3FN, block = [1, 128], scale = f32>,
                              %offsets: tensor<5xi32>) -> tensor<4x64x32xf32> {
  %0 = fp8.grouped_matmul %dy, %x offsets(%offsets : tensor<5xi32>) {tensor_core_accumulation = array<i64: 0, 0, 128, 1, 1, 0>}
      : !fp8.scaled<64x256xf8E4M3FN, block = [1, 128], scale = f32>,
        !fp8.scaled<32x256xf8E4M3FN, block = [1, 128], scale = f32> -> tensor<4x64x32xf32>
  return %0 : tensor<4x64x32xf32>
}

// Factors of blocks of rows are as many as the rows have blocks.

!v = !fp8.scaled<4x64x256xf8E4M3FN, block = [1, 1, 128], scale = f32>

// CHECK-LABEL: func.func @counts_row_blocks
// CHECK:         %[[COUNT:.+]] = arith.index_cast
// CHECK:         %[[BLOCKS:.+]] = arith.ceildivui %[[COUNT]], %c128
// CHECK:         tensor.extract_slice %{{.+}}[0, 0] [%[[BLOCKS]], 2] [1, 1] : tensor<3x2xf32> to tensor<?x2xf32>
func.func @counts_row_blocks(%x: !fp8.scaled<4x300x256xf8E4M3FN, block = [1, 128, 128], scale = f32>, %w: !v,
                             %counts: tensor<4xi32>) -> tensor<4x300x64xbf16> {
  %0 = fp8.grouped_matmul %x, %w counts(%counts : tensor<4xi32>)
      : !fp8.scaled<4x300x256xf8E4M3FN, block = [1, 128, 128], scale = f32>, !v -> tensor<4x300x64xbf16>
  return %0 : tensor<4x300x64xbf16>
}
