// RUN: fp8-run %s --stats | FileCheck %s
// RUN: fp8-run %S/entry.mlir --entry=one --stats | FileCheck %s --check-prefix=NONE

// The table shows what a program reports; this one reports by hand.

// NONE: no tensor is quantized

// CHECK: tensor {{ *}}amax  underflow %  saturation % {{ *}}SQNR dB
// CHECK-NEXT: {{^}}layer.0.x {{ *}}3.5 {{ *}}12.500 {{ *}}25.000 {{ *}}20.00{{$}}
// CHECK-NEXT: {{^}}exact {{ *}}2 {{ *}}0.000 {{ *}}0.000 {{ *}}inf{{$}}
// CHECK-NEXT: {{^}}unused {{ *}}- {{ *}}- {{ *}}- {{ *}}-{{$}}
module attributes {fp8.stats_slots = ["layer.0.x", "exact", "unused"]} {
  func.func private @fp8rt_stats_record(i64, f64, f64, f64, f64, f64, f64)
  func.func @main() {
    %slot0 = arith.constant 0 : i64
    %slot1 = arith.constant 1 : i64
    %zero = arith.constant 0.0 : f64
    %one = arith.constant 1.0 : f64
    %two = arith.constant 2.0 : f64
    %amax = arith.constant 3.5 : f64
    %count = arith.constant 8.0 : f64
    %signal = arith.constant 100.0 : f64
    func.call @fp8rt_stats_record(%slot0, %amax, %count, %one, %two, %signal, %one)
        : (i64, f64, f64, f64, f64, f64, f64) -> ()
    func.call @fp8rt_stats_record(%slot1, %two, %count, %zero, %zero, %signal, %zero)
        : (i64, f64, f64, f64, f64, f64, f64) -> ()
    return
  }
}
