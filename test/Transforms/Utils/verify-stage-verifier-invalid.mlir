// RUN: fp8-opt %s --mlir-very-unsafe-disable-verifier-on-parsing --verify-each=false --fp8-verify-stage=stage=host --verify-diagnostics

// What a pass broke is found at the end of the phase, where no pass was
// verified.
// expected-note @below {{when returning from function}}
llvm.func @f() -> i32 {
  // expected-error @below {{'llvm.return' op expected 1 operand}}
  llvm.return
}
