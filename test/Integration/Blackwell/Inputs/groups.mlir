// Matmuls of one A: those of a gated MLP, which meet in a tile, and projections, which share a launch.
func.func @main(%x: tensor<200x256xbf16> {fp8.name = "x"}, %gate: tensor<256x192xbf16> {fp8.name = "gate"},
                %up: tensor<256x192xbf16> {fp8.name = "up"},
                %q: tensor<192x256xbf16> {fp8.name = "q"},
                %k: tensor<192x64xbf16> {fp8.name = "k"}, %v: tensor<192x64xbf16> {fp8.name = "v"})
    -> (tensor<200x256xbf16> {fp8.name = "oq"}, tensor<200x64xbf16> {fp8.name = "ok"}, tensor<200x64xbf16> {fp8.name = "ov"}) {
  %zero = arith.constant 0.0 : f32
  %ge = tensor.empty() : tensor<200x192xf32>
  %gz = linalg.fill ins(%zero : f32) outs(%ge : tensor<200x192xf32>) -> tensor<200x192xf32>
  %gs = linalg.matmul ins(%x, %gate : tensor<200x256xbf16>, tensor<256x192xbf16>) outs(%gz : tensor<200x192xf32>) -> tensor<200x192xf32>
  %gated = arith.truncf %gs : tensor<200x192xf32> to tensor<200x192xbf16>
  %ue = tensor.empty() : tensor<200x192xf32>
  %uz = linalg.fill ins(%zero : f32) outs(%ue : tensor<200x192xf32>) -> tensor<200x192xf32>
  %us = linalg.matmul ins(%x, %up : tensor<200x256xbf16>, tensor<256x192xbf16>) outs(%uz : tensor<200x192xf32>) -> tensor<200x192xf32>
  %upped = arith.truncf %us : tensor<200x192xf32> to tensor<200x192xbf16>
  %h = arith.mulf %gated, %upped : tensor<200x192xbf16>
  %qe = tensor.empty() : tensor<200x256xf32>
  %qz = linalg.fill ins(%zero : f32) outs(%qe : tensor<200x256xf32>) -> tensor<200x256xf32>
  %qs = linalg.matmul ins(%h, %q : tensor<200x192xbf16>, tensor<192x256xbf16>) outs(%qz : tensor<200x256xf32>) -> tensor<200x256xf32>
  %oq = arith.truncf %qs : tensor<200x256xf32> to tensor<200x256xbf16>
  %ke = tensor.empty() : tensor<200x64xf32>
  %kz = linalg.fill ins(%zero : f32) outs(%ke : tensor<200x64xf32>) -> tensor<200x64xf32>
  %ks = linalg.matmul ins(%h, %k : tensor<200x192xbf16>, tensor<192x64xbf16>) outs(%kz : tensor<200x64xf32>) -> tensor<200x64xf32>
  %ok = arith.truncf %ks : tensor<200x64xf32> to tensor<200x64xbf16>
  %ve = tensor.empty() : tensor<200x64xf32>
  %vz = linalg.fill ins(%zero : f32) outs(%ve : tensor<200x64xf32>) -> tensor<200x64xf32>
  %vs = linalg.matmul ins(%h, %v : tensor<200x192xbf16>, tensor<192x64xbf16>) outs(%vz : tensor<200x64xf32>) -> tensor<200x64xf32>
  %ov = arith.truncf %vs : tensor<200x64xf32> to tensor<200x64xbf16>
  return %oq, %ok, %ov : tensor<200x256xbf16>, tensor<200x64xbf16>, tensor<200x64xbf16>
}
