// RUN: fp8-opt %s --fp8-apply-recipe=recipe=none | FileCheck %s --check-prefix=NONE
// RUN: fp8-opt %s --fp8-apply-recipe=recipe=current,format=e4m3,pow2=true,amax_epsilon=0.5,style=torchao,accumulate=fast | FileCheck %s --check-prefix=CURRENT
// RUN: fp8-opt %s --fp8-apply-recipe=recipe=rowwise,format=hybrid,pow2=false,amax_epsilon=1e-12,style=torchao,accumulate=fast_fprop | FileCheck %s --check-prefix=ROWWISE
// RUN: fp8-opt %s --fp8-apply-recipe=recipe=block,format=hybrid,pow2=false,amax_epsilon=2,x_dim=1,w_dim=1,grad_dim=2 | FileCheck %s --check-prefix=BLOCK
// RUN: fp8-opt %s --fp8-apply-recipe=recipe=mxfp8,format=hybrid,mode=even,nonfinite=nan,weight_2d=true | FileCheck %s --check-prefix=MXFP8
// RUN: fp8-opt %s --fp8-apply-recipe=recipe=nvfp4,weight_2d=true | FileCheck %s --check-prefix=NVFP4
// RUN: fp8-opt %s --fp8-apply-recipe=recipe=delayed,format=e4m3,amax_history_len=16,amax_compute_algo=most_recent,margin=-2,reduce_amax=false,compat=te_unfused,pow2=true,initial=one,accumulate=fast | FileCheck %s --check-prefix=DELAYED
// RUN: fp8-opt %s --fp8-apply-recipe=recipe=delayed,amax-history-len=16,amax-compute-algo=most-recent,accumulate=fast-fprop | FileCheck %s --check-prefix=HYPHENS
// RUN: fp8-opt %s --fp8-apply-recipe='recipe=static,state=a-b/c\d.safetensors,format=e4m3,accumulate=fast' | FileCheck %s --check-prefix=STATIC
// RUN: fp8-opt %s --fp8-pipeline="recipe=mxfp8,mode=ceil to=recipe" | FileCheck %s --check-prefix=PIPELINE

// Every recipe with every key, as text.

// NONE-NOT: fp8.quantize
// CURRENT: recipe(#fp8.current<format = e4m3, pow2 = true, amax_epsilon = 5.000000e-01, style = torchao, accumulate = fast>)
// ROWWISE: recipe(#fp8.rowwise<format = hybrid, pow2 = false, amax_epsilon = 9.99999996E-13, style = torchao, accumulate = fast_fprop>)
// BLOCK: recipe(#fp8.block<format = hybrid, pow2 = false, amax_epsilon = 2.000000e+00, w_dim = 1, grad_dim = 2>)
// MXFP8: recipe(#fp8.mxfp8<format = hybrid, mode = even, nonfinite = nan, weight_2d = true>)
// NVFP4: recipe(#fp8.nvfp4<weight_2d = true>)
// DELAYED: recipe(#fp8.delayed<format = e4m3, amax_history_len = 16, amax_compute_algo = most_recent, margin = -2, reduce_amax = false, compat = te_unfused, pow2 = true, initial = one, accumulate = fast>)
// HYPHENS: recipe(#fp8.delayed<amax_history_len = 16, amax_compute_algo = most_recent, accumulate = fast_fprop>)
// STATIC: recipe(#fp8.static<state = "a-b/c\\d.safetensors", format = e4m3, accumulate = fast>)
// PIPELINE: recipe(#fp8.mxfp8<mode = ceil>)

func.func @f(%x: tensor<128x128xf32>, %c: tensor<128x128xf32>) -> tensor<128x128xf32> {
  %0 = linalg.matmul ins(%x, %x : tensor<128x128xf32>, tensor<128x128xf32>) outs(%c : tensor<128x128xf32>) -> tensor<128x128xf32>
  return %0 : tensor<128x128xf32>
}
