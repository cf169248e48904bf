// REQUIRES: linker
// UNSUPPORTED: sanitizers
// RUN: %python %fp8_source/test/Integration/CUDA/Inputs/tensors.py %t.in x=bf16:32x256 w=bf16:256x64/16 bias=bf16:64
// RUN: fp8-run %fp8_source/examples/linear.mlir --target=sm_90a --device=emulator --recipe=current --inputs=%t.in --compare=cpu --accumulate=tensor-core --tolerance=0 | FileCheck %s
// RUN: not fp8-run %fp8_source/examples/linear.mlir --target=sm_90a --device=emulator --recipe=current --inputs=%t.in --compare=cpu --tolerance=0 | FileCheck %s --check-prefix=F32
// RUN: fp8-compile %fp8_source/examples/linear.mlir --recipe=current --accumulate=tensor-core -o %t.so
// RUN: fp8-run %t.so --inputs=%t.in --outputs=%t.cpu
// RUN: fp8-run %fp8_source/examples/linear.mlir --target=sm_90a --device=emulator --recipe=current --inputs=%t.in --outputs=%t.emulator
// RUN: cmp %t.cpu %t.emulator
// RUN: env FP8_EMULATOR_ARCH=100 fp8-run %fp8_source/examples/linear.mlir --target=sm_100a --device=emulator --recipe=nvfp4 --inputs=%t.in --outputs=%t.emulator --compare=cpu --accumulate=tensor-core --tolerance=0 | FileCheck %s
// RUN: fp8-compile %fp8_source/examples/linear.mlir --recipe=nvfp4 --accumulate=tensor-core --accumulation-of=sm_100a -o %t.so
// RUN: fp8-run %t.so --inputs=%t.in --outputs=%t.cpu
// RUN: cmp %t.cpu %t.emulator
// RUN: not env FP8_EMULATOR_ARCH=100 fp8-run %fp8_source/examples/linear.mlir --target=sm_100a --device=emulator --recipe=current --inputs=%t.in --compare=cpu --accumulate=tensor-core --accumulation-of=sm_90a --tolerance=0 | FileCheck %s --check-prefix=F32
// RUN: not env FP8_EMULATOR_ARCH=90 fp8-run %fp8_source/examples/linear.mlir --target=sm_89,sm_90a --device=emulator --recipe=current --inputs=%t.in --compare=cpu --accumulate=tensor-core 2>&1 | FileCheck %s --check-prefix=SEVERAL --implicit-check-not=y:
// RUN: not env FP8_EMULATOR_ARCH=90 fp8-run %fp8_source/examples/linear.mlir --target=sm_89,sm_90a --device=emulator --recipe=current --inputs=%t.in --compare=cpu --invariant 2>&1 | FileCheck %s --check-prefix=SEVERAL --implicit-check-not=y:
// RUN: env FP8_EMULATOR_ARCH=90 fp8-run %fp8_source/examples/linear.mlir --target=sm_89,sm_90a --device=emulator --recipe=current --inputs=%t.in --compare=cpu --accumulate=tensor-core --accumulation-of=sm_90a --tolerance=0 | FileCheck %s
// RUN: not fp8-run %fp8_source/examples/linear.mlir --accumulate=f64 --inputs=%t.in 2>&1 | FileCheck %s --check-prefix=WORD

// CHECK: y: largest difference 0 of {{.*}}, 0 of 2048 elements differ
// F32: y: largest difference 0.0
// SEVERAL: error: expected --accumulation-of=TARGET, or one target, with --compare
// WORD: expected accumulate to be f32 or tensor-core, but got 'f64'
