// RUN: fp8-opt %S/phases.mlir --fp8-pipeline="recipe=nvfp4 to=fusion" -o %t.mlir
// RUN: fp8-opt %t.mlir | diff %t.mlir -
// RUN: fp8-opt %t.mlir --emit-bytecode | fp8-opt | diff %t.mlir -
// RUN: fp8-opt %t.mlir --mlir-print-op-generic | fp8-opt | diff %t.mlir -
// RUN: fp8-opt %S/phases.mlir --fp8-pipeline="recipe=nvfp4 to=host" -o %t.host.mlir
// RUN: fp8-opt %t.mlir --fp8-pipeline="recipe=nvfp4 to=host" | diff %t.host.mlir -

// What leaves a phase can be stored, as text and as bytecode, and goes on from
// there as if it had never stopped.
