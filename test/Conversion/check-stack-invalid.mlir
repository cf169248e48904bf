// RUN: fp8-opt %s --fp8-check-stack --verify-diagnostics

// expected-error@+1 {{expected 'fp8rt_program_check_stack' to be the runtime's function, '!llvm.func<void (ptr)>'}}
llvm.func @fp8rt_program_check_stack() {
  llvm.return
}
llvm.func @itself() {
  llvm.call @itself() : () -> ()
  llvm.return
}
