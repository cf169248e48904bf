// Simple kernels as nvcc compiles them: others' PTX.

extern "C" __global__ void sum(float *out, const float *in, int n) {
  __shared__ float parts[32];
  float v = 0;
  for (int i = threadIdx.x; i < n; i += blockDim.x)
    v += in[i];
  for (int o = 16; o; o >>= 1)
    v += __shfl_xor_sync(~0u, v, o);
  if (threadIdx.x % 32 == 0)
    parts[threadIdx.x / 32] = v;
  __syncthreads();
  if (threadIdx.x < 32) {
    v = threadIdx.x < blockDim.x / 32 ? parts[threadIdx.x] : 0;
    for (int o = 16; o; o >>= 1)
      v += __shfl_xor_sync(~0u, v, o);
    if (threadIdx.x == 0)
      atomicAdd(out, v);
  }
}

extern "C" __global__ void transpose(float *out, const float *in, int rows,
                                     int columns) {
  __shared__ float tile[32][33];
  int x = blockIdx.x * 32 + threadIdx.x, y = blockIdx.y * 32 + threadIdx.y;
  for (int i = 0; i < 32; i += blockDim.y)
    if (x < columns && y + i < rows)
      tile[threadIdx.y + i][threadIdx.x] = in[(y + i) * columns + x];
  __syncthreads();
  x = blockIdx.y * 32 + threadIdx.x, y = blockIdx.x * 32 + threadIdx.y;
  for (int i = 0; i < 32; i += blockDim.y)
    if (x < rows && y + i < columns)
      out[(y + i) * rows + x] = tile[threadIdx.x][threadIdx.y + i];
}
