// RUN: fp8-opt %s --fp8-fuse-elementwise | FileCheck %s

!t = tensor<4x8xf32>
#id = affine_map<(i, j) -> (i, j)>

// CHECK-LABEL: func.func @named_chain
// CHECK-COUNT-1: linalg.generic
// CHECK: arith.addf
// CHECK: math.exp
// CHECK-NOT: linalg.{{generic|add|exp}}
func.func @named_chain(%x: !t, %bias: tensor<8xf32>) -> !t {
  %e = tensor.empty() : !t
  %b = linalg.broadcast ins(%bias : tensor<8xf32>) outs(%e : !t) dimensions = [0]
  %0 = linalg.add ins(%x, %b : !t, !t) outs(%e : !t) -> !t
  %1 = linalg.exp ins(%0 : !t) outs(%e : !t) -> !t
  return %1 : !t
}

// An integer power is what others fuse with: products, from the lowest bit of
// the exponent on.
// CHECK-LABEL: func.func @power
// CHECK-COUNT-1: linalg.generic
// CHECK:         %[[X2:.+]] = arith.mulf %[[X:.+]], %[[X]] : f32
// CHECK:         %[[X4:.+]] = arith.mulf %[[X2]], %[[X2]] : f32
// CHECK:         %[[X5:.+]] = arith.mulf %[[X]], %[[X4]] : f32
// CHECK:         %[[INVERSE:.+]] = arith.divf %{{.+}}, %[[X5]] : f32
// CHECK:         arith.negf %[[INVERSE]]
// CHECK-NOT:     math.fpowi
func.func @power(%x: !t) -> !t {
  %e = tensor.empty() : !t
  %exponent = arith.constant -5 : i32
  %0 = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%x : !t) outs(%e : !t) {
  ^bb0(%in: f32, %out: f32):
    %p = math.fpowi %in, %exponent : f32, i32
    linalg.yield %p : f32
  } -> !t
  %1 = linalg.negf ins(%0 : !t) outs(%e : !t) -> !t
  return %1 : !t
}

// With fewer bits it is rounded once.
// CHECK-LABEL: func.func @narrow_power
// CHECK:         %[[WIDE:.+]] = arith.extf %{{.+}} : bf16 to f32
// CHECK:         %[[X2:.+]] = arith.mulf %[[WIDE]], %[[WIDE]] : f32
// CHECK:         %[[X3:.+]] = arith.mulf %[[WIDE]], %[[X2]] : f32
// CHECK:         arith.truncf %[[X3]] : f32 to bf16
func.func @narrow_power(%x: bf16) -> bf16 {
  %exponent = arith.constant 3 : i64
  %0 = math.fpowi %x, %exponent : bf16, i64
  return %0 : bf16
}

// CHECK-LABEL: func.func @trivial_powers
// CHECK-SAME:    %[[X:.+]]: f32
// CHECK:         %[[ONE:.+]] = arith.constant 1.0
// CHECK:         return %[[ONE]], %[[X]]
func.func @trivial_powers(%x: f32) -> (f32, f32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %0 = math.fpowi %x, %c0 : f32, i32
  %1 = math.fpowi %x, %c1 : f32, i32
  return %0, %1 : f32, f32
}

// An exponent that shows at run time has as many products as bits.
// CHECK-LABEL: func.func @dynamic_power
// CHECK-NOT:     math.fpowi
// CHECK-COUNT-62: arith.mulf
// CHECK-NOT:     arith.mulf
// CHECK:         arith.divf
// CHECK:         return
func.func @dynamic_power(%x: f32, %exponent: i32) -> f32 {
  %0 = math.fpowi %x, %exponent : f32, i32
  return %0 : f32
}

// With two users a value is computed once and stored.
// CHECK-LABEL: func.func @two_users
// CHECK-COUNT-3: linalg.generic
// CHECK-NOT: linalg.generic
func.func @two_users(%x: !t) -> (!t, !t) {
  %e = tensor.empty() : !t
  %0 = linalg.exp ins(%x : !t) outs(%e : !t) -> !t
  %1 = linalg.negf ins(%0 : !t) outs(%e : !t) -> !t
  %2 = linalg.sqrt ins(%0 : !t) outs(%e : !t) -> !t
  return %1, %2 : !t, !t
}

// The exponential would be taken once for every column of the result.
// CHECK-LABEL: func.func @contraction
// CHECK: linalg.generic
// CHECK: math.exp
// CHECK: linalg.matmul
func.func @contraction(%x: !t, %w: tensor<8x4xf32>, %c: tensor<4x4xf32>) -> tensor<4x4xf32> {
  %e = tensor.empty() : !t
  %0 = linalg.exp ins(%x : !t) outs(%e : !t) -> !t
  %1 = linalg.matmul ins(%0, %w : !t, tensor<8x4xf32>) outs(%c : tensor<4x4xf32>) -> tensor<4x4xf32>
  return %1 : tensor<4x4xf32>
}

// CHECK-LABEL: func.func @reduction
// CHECK-COUNT-2: linalg.generic
func.func @reduction(%x: !t, %c: tensor<4xf32>) -> tensor<4xf32> {
  %e = tensor.empty() : !t
  %0 = linalg.exp ins(%x : !t) outs(%e : !t) -> !t
  %1 = linalg.generic {indexing_maps = [#id, affine_map<(i, j) -> (i)>], iterator_types = ["parallel", "reduction"]}
      ins(%0 : !t) outs(%c : tensor<4xf32>) {
  ^bb0(%a: f32, %sum: f32):
    %2 = arith.addf %a, %sum : f32
    linalg.yield %2 : f32
  } -> tensor<4xf32>
  return %1 : tensor<4xf32>
}

// Not into a loop.
// CHECK-LABEL: func.func @loop
// CHECK: math.exp
// CHECK: scf.for
// CHECK-NOT: math.exp
// CHECK: arith.addf
func.func @loop(%x: !t, %n: index) -> !t {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %e = tensor.empty() : !t
  %0 = linalg.exp ins(%x : !t) outs(%e : !t) -> !t
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%s = %x) -> !t {
    %1 = linalg.add ins(%s, %0 : !t, !t) outs(%e : !t) -> !t
    scf.yield %1 : !t
  }
  return %r : !t
}

// Rounding stays with the matmul, the rest of the chain is one.
// CHECK-LABEL: func.func @rounded_matmul
// CHECK: fp8.matmul
// CHECK: %[[GATE:.*]] = linalg.generic
// CHECK-NEXT: ^bb0
// CHECK-NEXT: arith.truncf
// CHECK-NEXT: linalg.yield
// CHECK: fp8.matmul
// CHECK: linalg.generic {{.*}} ins(%[[GATE]], %{{.*}} : tensor<32x16xbf16>, tensor<32x16xf32>)
// CHECK: math.exp
// CHECK: arith.mulf
// CHECK-NOT: linalg.generic
func.func @rounded_matmul(%a: tensor<32x64xbf16>, %b: tensor<16x64xbf16>) -> tensor<32x16xf32> {
  %gate = fp8.matmul %a, %b accumulate = fast : tensor<32x64xbf16>, tensor<16x64xbf16> -> tensor<32x16xf32>
  %e16 = tensor.empty() : tensor<32x16xbf16>
  %e = tensor.empty() : tensor<32x16xf32>
  %rounded = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%gate : tensor<32x16xf32>) outs(%e16 : tensor<32x16xbf16>) {
  ^bb0(%x: f32, %o: bf16):
    %0 = arith.truncf %x : f32 to bf16
    linalg.yield %0 : bf16
  } -> tensor<32x16xbf16>
  %exp = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%rounded : tensor<32x16xbf16>) outs(%e : tensor<32x16xf32>) {
  ^bb0(%x: bf16, %o: f32):
    %0 = arith.extf %x : bf16 to f32
    %1 = math.exp %0 : f32
    linalg.yield %1 : f32
  } -> tensor<32x16xf32>
  %up = fp8.matmul %a, %b accumulate = fast : tensor<32x64xbf16>, tensor<16x64xbf16> -> tensor<32x16xf32>
  %r = linalg.mul ins(%exp, %up : tensor<32x16xf32>, tensor<32x16xf32>) outs(%e : tensor<32x16xf32>) -> tensor<32x16xf32>
  return %r : tensor<32x16xf32>
}

// A chain without an end becomes several.
// CHECK-LABEL: func.func @long_chain
// CHECK-COUNT-2: linalg.generic
// CHECK-NOT: linalg.generic
func.func @long_chain(%x: !t, %y: !t) -> !t {
  %e = tensor.empty() : !t
  %0 = linalg.add ins(%x, %y : !t, !t) outs(%e : !t) -> !t
  %1 = linalg.add ins(%0, %y : !t, !t) outs(%e : !t) -> !t
  %2 = linalg.add ins(%1, %y : !t, !t) outs(%e : !t) -> !t
  %3 = linalg.add ins(%2, %y : !t, !t) outs(%e : !t) -> !t
  %4 = linalg.add ins(%3, %y : !t, !t) outs(%e : !t) -> !t
  %5 = linalg.add ins(%4, %y : !t, !t) outs(%e : !t) -> !t
  %6 = linalg.add ins(%5, %y : !t, !t) outs(%e : !t) -> !t
  %7 = linalg.add ins(%6, %y : !t, !t) outs(%e : !t) -> !t
  %8 = linalg.add ins(%7, %y : !t, !t) outs(%e : !t) -> !t
  %9 = linalg.add ins(%8, %y : !t, !t) outs(%e : !t) -> !t
  %10 = linalg.add ins(%9, %y : !t, !t) outs(%e : !t) -> !t
  %11 = linalg.add ins(%10, %y : !t, !t) outs(%e : !t) -> !t
  %12 = linalg.add ins(%11, %y : !t, !t) outs(%e : !t) -> !t
  %13 = linalg.add ins(%12, %y : !t, !t) outs(%e : !t) -> !t
  %14 = linalg.add ins(%13, %y : !t, !t) outs(%e : !t) -> !t
  %15 = linalg.add ins(%14, %y : !t, !t) outs(%e : !t) -> !t
  %16 = linalg.add ins(%15, %y : !t, !t) outs(%e : !t) -> !t
  %17 = linalg.add ins(%16, %y : !t, !t) outs(%e : !t) -> !t
  %18 = linalg.add ins(%17, %y : !t, !t) outs(%e : !t) -> !t
  %19 = linalg.add ins(%18, %y : !t, !t) outs(%e : !t) -> !t
  %20 = linalg.add ins(%19, %y : !t, !t) outs(%e : !t) -> !t
  %21 = linalg.add ins(%20, %y : !t, !t) outs(%e : !t) -> !t
  %22 = linalg.add ins(%21, %y : !t, !t) outs(%e : !t) -> !t
  %23 = linalg.add ins(%22, %y : !t, !t) outs(%e : !t) -> !t
  %24 = linalg.add ins(%23, %y : !t, !t) outs(%e : !t) -> !t
  %25 = linalg.add ins(%24, %y : !t, !t) outs(%e : !t) -> !t
  %26 = linalg.add ins(%25, %y : !t, !t) outs(%e : !t) -> !t
  %27 = linalg.add ins(%26, %y : !t, !t) outs(%e : !t) -> !t
  %28 = linalg.add ins(%27, %y : !t, !t) outs(%e : !t) -> !t
  %29 = linalg.add ins(%28, %y : !t, !t) outs(%e : !t) -> !t
  %30 = linalg.add ins(%29, %y : !t, !t) outs(%e : !t) -> !t
  %31 = linalg.add ins(%30, %y : !t, !t) outs(%e : !t) -> !t
  %32 = linalg.add ins(%31, %y : !t, !t) outs(%e : !t) -> !t
  %33 = linalg.add ins(%32, %y : !t, !t) outs(%e : !t) -> !t
  %34 = linalg.add ins(%33, %y : !t, !t) outs(%e : !t) -> !t
  %35 = linalg.add ins(%34, %y : !t, !t) outs(%e : !t) -> !t
  %36 = linalg.add ins(%35, %y : !t, !t) outs(%e : !t) -> !t
  %37 = linalg.add ins(%36, %y : !t, !t) outs(%e : !t) -> !t
  %38 = linalg.add ins(%37, %y : !t, !t) outs(%e : !t) -> !t
  %39 = linalg.add ins(%38, %y : !t, !t) outs(%e : !t) -> !t
  %40 = linalg.add ins(%39, %y : !t, !t) outs(%e : !t) -> !t
  %41 = linalg.add ins(%40, %y : !t, !t) outs(%e : !t) -> !t
  %42 = linalg.add ins(%41, %y : !t, !t) outs(%e : !t) -> !t
  %43 = linalg.add ins(%42, %y : !t, !t) outs(%e : !t) -> !t
  %44 = linalg.add ins(%43, %y : !t, !t) outs(%e : !t) -> !t
  %45 = linalg.add ins(%44, %y : !t, !t) outs(%e : !t) -> !t
  %46 = linalg.add ins(%45, %y : !t, !t) outs(%e : !t) -> !t
  %47 = linalg.add ins(%46, %y : !t, !t) outs(%e : !t) -> !t
  %48 = linalg.add ins(%47, %y : !t, !t) outs(%e : !t) -> !t
  %49 = linalg.add ins(%48, %y : !t, !t) outs(%e : !t) -> !t
  %50 = linalg.add ins(%49, %y : !t, !t) outs(%e : !t) -> !t
  %51 = linalg.add ins(%50, %y : !t, !t) outs(%e : !t) -> !t
  %52 = linalg.add ins(%51, %y : !t, !t) outs(%e : !t) -> !t
  %53 = linalg.add ins(%52, %y : !t, !t) outs(%e : !t) -> !t
  %54 = linalg.add ins(%53, %y : !t, !t) outs(%e : !t) -> !t
  %55 = linalg.add ins(%54, %y : !t, !t) outs(%e : !t) -> !t
  %56 = linalg.add ins(%55, %y : !t, !t) outs(%e : !t) -> !t
  %57 = linalg.add ins(%56, %y : !t, !t) outs(%e : !t) -> !t
  %58 = linalg.add ins(%57, %y : !t, !t) outs(%e : !t) -> !t
  %59 = linalg.add ins(%58, %y : !t, !t) outs(%e : !t) -> !t
  %60 = linalg.add ins(%59, %y : !t, !t) outs(%e : !t) -> !t
  %61 = linalg.add ins(%60, %y : !t, !t) outs(%e : !t) -> !t
  %62 = linalg.add ins(%61, %y : !t, !t) outs(%e : !t) -> !t
  %63 = linalg.add ins(%62, %y : !t, !t) outs(%e : !t) -> !t
  %64 = linalg.add ins(%63, %y : !t, !t) outs(%e : !t) -> !t
  %65 = linalg.add ins(%64, %y : !t, !t) outs(%e : !t) -> !t
  %66 = linalg.add ins(%65, %y : !t, !t) outs(%e : !t) -> !t
  %67 = linalg.add ins(%66, %y : !t, !t) outs(%e : !t) -> !t
  %68 = linalg.add ins(%67, %y : !t, !t) outs(%e : !t) -> !t
  %69 = linalg.add ins(%68, %y : !t, !t) outs(%e : !t) -> !t
  %70 = linalg.add ins(%69, %y : !t, !t) outs(%e : !t) -> !t
  %71 = linalg.add ins(%70, %y : !t, !t) outs(%e : !t) -> !t
  %72 = linalg.add ins(%71, %y : !t, !t) outs(%e : !t) -> !t
  %73 = linalg.add ins(%72, %y : !t, !t) outs(%e : !t) -> !t
  %74 = linalg.add ins(%73, %y : !t, !t) outs(%e : !t) -> !t
  %75 = linalg.add ins(%74, %y : !t, !t) outs(%e : !t) -> !t
  %76 = linalg.add ins(%75, %y : !t, !t) outs(%e : !t) -> !t
  %77 = linalg.add ins(%76, %y : !t, !t) outs(%e : !t) -> !t
  %78 = linalg.add ins(%77, %y : !t, !t) outs(%e : !t) -> !t
  %79 = linalg.add ins(%78, %y : !t, !t) outs(%e : !t) -> !t
  %80 = linalg.add ins(%79, %y : !t, !t) outs(%e : !t) -> !t
  %81 = linalg.add ins(%80, %y : !t, !t) outs(%e : !t) -> !t
  %82 = linalg.add ins(%81, %y : !t, !t) outs(%e : !t) -> !t
  %83 = linalg.add ins(%82, %y : !t, !t) outs(%e : !t) -> !t
  %84 = linalg.add ins(%83, %y : !t, !t) outs(%e : !t) -> !t
  %85 = linalg.add ins(%84, %y : !t, !t) outs(%e : !t) -> !t
  %86 = linalg.add ins(%85, %y : !t, !t) outs(%e : !t) -> !t
  %87 = linalg.add ins(%86, %y : !t, !t) outs(%e : !t) -> !t
  %88 = linalg.add ins(%87, %y : !t, !t) outs(%e : !t) -> !t
  %89 = linalg.add ins(%88, %y : !t, !t) outs(%e : !t) -> !t
  %90 = linalg.add ins(%89, %y : !t, !t) outs(%e : !t) -> !t
  %91 = linalg.add ins(%90, %y : !t, !t) outs(%e : !t) -> !t
  %92 = linalg.add ins(%91, %y : !t, !t) outs(%e : !t) -> !t
  %93 = linalg.add ins(%92, %y : !t, !t) outs(%e : !t) -> !t
  %94 = linalg.add ins(%93, %y : !t, !t) outs(%e : !t) -> !t
  %95 = linalg.add ins(%94, %y : !t, !t) outs(%e : !t) -> !t
  %96 = linalg.add ins(%95, %y : !t, !t) outs(%e : !t) -> !t
  %97 = linalg.add ins(%96, %y : !t, !t) outs(%e : !t) -> !t
  %98 = linalg.add ins(%97, %y : !t, !t) outs(%e : !t) -> !t
  %99 = linalg.add ins(%98, %y : !t, !t) outs(%e : !t) -> !t
  %100 = linalg.add ins(%99, %y : !t, !t) outs(%e : !t) -> !t
  %101 = linalg.add ins(%100, %y : !t, !t) outs(%e : !t) -> !t
  %102 = linalg.add ins(%101, %y : !t, !t) outs(%e : !t) -> !t
  %103 = linalg.add ins(%102, %y : !t, !t) outs(%e : !t) -> !t
  %104 = linalg.add ins(%103, %y : !t, !t) outs(%e : !t) -> !t
  %105 = linalg.add ins(%104, %y : !t, !t) outs(%e : !t) -> !t
  %106 = linalg.add ins(%105, %y : !t, !t) outs(%e : !t) -> !t
  %107 = linalg.add ins(%106, %y : !t, !t) outs(%e : !t) -> !t
  %108 = linalg.add ins(%107, %y : !t, !t) outs(%e : !t) -> !t
  %109 = linalg.add ins(%108, %y : !t, !t) outs(%e : !t) -> !t
  %110 = linalg.add ins(%109, %y : !t, !t) outs(%e : !t) -> !t
  %111 = linalg.add ins(%110, %y : !t, !t) outs(%e : !t) -> !t
  %112 = linalg.add ins(%111, %y : !t, !t) outs(%e : !t) -> !t
  %113 = linalg.add ins(%112, %y : !t, !t) outs(%e : !t) -> !t
  %114 = linalg.add ins(%113, %y : !t, !t) outs(%e : !t) -> !t
  %115 = linalg.add ins(%114, %y : !t, !t) outs(%e : !t) -> !t
  %116 = linalg.add ins(%115, %y : !t, !t) outs(%e : !t) -> !t
  %117 = linalg.add ins(%116, %y : !t, !t) outs(%e : !t) -> !t
  %118 = linalg.add ins(%117, %y : !t, !t) outs(%e : !t) -> !t
  %119 = linalg.add ins(%118, %y : !t, !t) outs(%e : !t) -> !t
  %120 = linalg.add ins(%119, %y : !t, !t) outs(%e : !t) -> !t
  %121 = linalg.add ins(%120, %y : !t, !t) outs(%e : !t) -> !t
  %122 = linalg.add ins(%121, %y : !t, !t) outs(%e : !t) -> !t
  %123 = linalg.add ins(%122, %y : !t, !t) outs(%e : !t) -> !t
  %124 = linalg.add ins(%123, %y : !t, !t) outs(%e : !t) -> !t
  %125 = linalg.add ins(%124, %y : !t, !t) outs(%e : !t) -> !t
  %126 = linalg.add ins(%125, %y : !t, !t) outs(%e : !t) -> !t
  %127 = linalg.add ins(%126, %y : !t, !t) outs(%e : !t) -> !t
  %128 = linalg.add ins(%127, %y : !t, !t) outs(%e : !t) -> !t
  %129 = linalg.add ins(%128, %y : !t, !t) outs(%e : !t) -> !t
  %130 = linalg.add ins(%129, %y : !t, !t) outs(%e : !t) -> !t
  %131 = linalg.add ins(%130, %y : !t, !t) outs(%e : !t) -> !t
  %132 = linalg.add ins(%131, %y : !t, !t) outs(%e : !t) -> !t
  %133 = linalg.add ins(%132, %y : !t, !t) outs(%e : !t) -> !t
  %134 = linalg.add ins(%133, %y : !t, !t) outs(%e : !t) -> !t
  %135 = linalg.add ins(%134, %y : !t, !t) outs(%e : !t) -> !t
  %136 = linalg.add ins(%135, %y : !t, !t) outs(%e : !t) -> !t
  %137 = linalg.add ins(%136, %y : !t, !t) outs(%e : !t) -> !t
  %138 = linalg.add ins(%137, %y : !t, !t) outs(%e : !t) -> !t
  %139 = linalg.add ins(%138, %y : !t, !t) outs(%e : !t) -> !t
  %140 = linalg.add ins(%139, %y : !t, !t) outs(%e : !t) -> !t
  %141 = linalg.add ins(%140, %y : !t, !t) outs(%e : !t) -> !t
  %142 = linalg.add ins(%141, %y : !t, !t) outs(%e : !t) -> !t
  %143 = linalg.add ins(%142, %y : !t, !t) outs(%e : !t) -> !t
  %144 = linalg.add ins(%143, %y : !t, !t) outs(%e : !t) -> !t
  %145 = linalg.add ins(%144, %y : !t, !t) outs(%e : !t) -> !t
  %146 = linalg.add ins(%145, %y : !t, !t) outs(%e : !t) -> !t
  %147 = linalg.add ins(%146, %y : !t, !t) outs(%e : !t) -> !t
  %148 = linalg.add ins(%147, %y : !t, !t) outs(%e : !t) -> !t
  %149 = linalg.add ins(%148, %y : !t, !t) outs(%e : !t) -> !t
  %150 = linalg.add ins(%149, %y : !t, !t) outs(%e : !t) -> !t
  return %150 : !t
}
