// RUN: fp8-opt %s --fp8-fold-globals --verify-diagnostics

ml_program.global private @weight(#ml_program.extern<tensor<2xbf16>>) : tensor<2xbf16>

func.func @no_value() -> tensor<2xbf16> {
  // expected-error @below {{expected the global @weight to be constant and to have a value of type 'tensor<2xbf16>'}}
  %0 = ml_program.global_load_const @weight : tensor<2xbf16>
  return %0 : tensor<2xbf16>
}
