// RUN: fp8-opt %s --fp8-annotate-gemms --fp8-verify-stage=stage=import -o /dev/null
// RUN: fp8-opt %s --fp8-pipeline="recipe=current to=recipe" --fp8-verify-stage=stage=recipe -o /dev/null
// RUN: fp8-opt %s --fp8-pipeline="recipe=current to=scaling" --fp8-verify-stage=stage=scaling -o /dev/null
// RUN: fp8-opt %s --fp8-pipeline="recipe=current to=fusion" --fp8-verify-stage=stage=fusion -o /dev/null
// RUN: fp8-opt %s --fp8-pipeline="recipe=current to=buffers" --fp8-verify-stage=stage=buffers -o /dev/null
// RUN: fp8-opt %s --fp8-pipeline="recipe=current to=kernels" --fp8-verify-stage=stage=kernels -o /dev/null
// RUN: fp8-opt %s --fp8-pipeline="recipe=current to=host" --fp8-verify-stage=stage=host -o /dev/null
// RUN: not fp8-opt %s --fp8-verify-stage=stage=import -o /dev/null 2>&1 | FileCheck %s --check-prefix=IMPORT
// RUN: not fp8-opt %s --fp8-pipeline="recipe=current to=recipe" --fp8-verify-stage=stage=scaling -o /dev/null 2>&1 | FileCheck %s --check-prefix=SCALING
// RUN: not fp8-opt %s --fp8-pipeline="recipe=current to=scaling" --fp8-verify-stage=stage=fusion -o /dev/null 2>&1 | FileCheck %s --check-prefix=FUSION
// RUN: not fp8-opt %s --fp8-pipeline="recipe=current to=fusion" --fp8-verify-stage=stage=buffers -o /dev/null 2>&1 | FileCheck %s --check-prefix=BUFFERS
// RUN: not fp8-opt %s --fp8-pipeline="recipe=current to=fusion" --fp8-verify-stage=stage=kernels -o /dev/null 2>&1 | FileCheck %s --check-prefix=KERNELS
// RUN: not fp8-opt %s --fp8-pipeline="recipe=current to=kernels" --fp8-verify-stage=stage=host -o /dev/null 2>&1 | FileCheck %s --check-prefix=HOST

// Every phase keeps its promise and not yet that of the next.

// IMPORT: error: 'linalg.matmul' op expected fp8.name and fp8.role after phase 'import': run fp8-annotate-gemms
// SCALING: error: 'fp8.quantize' op expected a scale after phase 'scaling': run fp8-infer-scales
// FUSION: error: 'linalg.contract' op expected no contraction with a recipe after phase 'fusion': run fp8-form-matmul
// BUFFERS: error: 'func.func' op expected no tensor after phase 'buffers', but got 'tensor<32x64xbf16>'
// KERNELS: error: 'fp8.amax' op expected no fp8 operation after phase 'kernels'
// HOST: error: 'func.func' op cannot be lowered to LLVM: it is left after phase 'host'
func.func @fc(%x: tensor<32x64xbf16>, %w: tensor<64x16xbf16>, %c: tensor<32x16xbf16>) -> tensor<32x16xbf16> {
  %0 = linalg.matmul ins(%x, %w : tensor<32x64xbf16>, tensor<64x16xbf16>) outs(%c : tensor<32x16xbf16>) -> tensor<32x16xbf16>
  return %0 : tensor<32x16xbf16>
}
