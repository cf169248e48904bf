//===- LaunchMatmul.cpp - Matmul kernels as docs/Kernels.md wants them ----===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "RuntimeCalls.h"
#include "fp8/IR/FP8Ops.h"
#include "mlir/Conversion/LLVMCommon/MemRefBuilder.h"
#include "mlir/Conversion/LLVMCommon/Pattern.h"

using namespace mlir;
using namespace mlir::fp8;

namespace {

/// A memref of the launch, taken apart. Dimensions count from the last, as
/// operands of an epilogue are aligned.
class Buffer {
public:
  Buffer(RuntimeCalls &b, const LLVMTypeConverter &converter, Value memref,
         Value descriptor)
      : b(b), type(cast<MemRefType>(memref.getType())), descriptor(descriptor),
        pointer(this->descriptor.bufferPtr(b, b.getLoc(), converter, type)) {}

  Value getPointer() const { return pointer; }
  Type getElementType() const { return type.getElementType(); }
  int64_t getElementBytes() const {
    return llvm::divideCeil(type.getElementTypeBitWidth(), 8);
  }
  Value getSize(int64_t fromEnd) {
    return descriptor.size(b, b.getLoc(), type.getRank() - fromEnd);
  }
  /// In elements; 0 where the buffer lacks the dimension or is repeated along
  /// it.
  Value getStride(int64_t fromEnd) {
    int64_t dim = type.getRank() - fromEnd;
    if (dim < 0 || type.getDimSize(dim) == 1)
      return b.i64(0);
    return descriptor.stride(b, b.getLoc(), dim);
  }

private:
  RuntimeCalls &b;
  MemRefType type;
  MemRefDescriptor descriptor;
  Value pointer;
};

/// Builds one launch.
class LaunchBuilder {
public:
  LaunchBuilder(RuntimeCalls &b, const LLVMTypeConverter &converter,
                LaunchMatmulOp op, LaunchMatmulOp::Adaptor adaptor,
                const KernelGlobal &kernel);

  /// Fails, with an error, if the kernel wants what this does not know.
  LogicalResult build();

private:
  int64_t getInt(StringRef name) {
    auto value = kernel.metadata.getAs<IntegerAttr>(name);
    return value ? value.getInt() : 0;
  }
  void buildSizes();
  /// The value of a parameter; null if it is not known.
  Value getParam(StringRef name);
  Value getBufferParam(Buffer &buffer, StringRef field, bool isScale);
  Value buildTensorMap(Buffer &buffer, ArrayRef<int64_t> box, int64_t swizzle);
  Value buildStoreMap();
  Value allocateOnDevice(Value bytes, int64_t flags);
  void requireAlignment();
  Value ceilDiv(Value value, int64_t divisor);

  RuntimeCalls &b;
  LaunchMatmulOp op;
  const KernelGlobal &kernel;
  bool batched;
  Buffer a, scaleA, bBuffer, scaleB;
  SmallVector<Buffer> operands, outs;
  ValueRange captures;
  Value m, n, k, batch, tiles;
  /// Device memory for the time of the launch.
  SmallVector<Value> temporaries;
};

} // namespace

LaunchBuilder::LaunchBuilder(RuntimeCalls &b,
                             const LLVMTypeConverter &converter,
                             LaunchMatmulOp op, LaunchMatmulOp::Adaptor adaptor,
                             const KernelGlobal &kernel)
    : b(b), op(op), kernel(kernel),
      batched(cast<MemRefType>(op.getA().getType()).getRank() == 3),
      a(b, converter, op.getA(), adaptor.getA()),
      scaleA(b, converter, op.getScaleA(), adaptor.getScaleA()),
      bBuffer(b, converter, op.getB(), adaptor.getB()),
      scaleB(b, converter, op.getScaleB(), adaptor.getScaleB()),
      captures(adaptor.getCaptures()) {
  for (auto [memref, descriptor] :
       llvm::zip_equal(op.getEpilogueOperands(), adaptor.getEpilogueOperands()))
    operands.emplace_back(b, converter, memref, descriptor);
  for (auto [memref, descriptor] :
       llvm::zip_equal(op.getOuts(), adaptor.getOuts()))
    outs.emplace_back(b, converter, memref, descriptor);
}

Value LaunchBuilder::ceilDiv(Value value, int64_t divisor) {
  value = LLVM::AddOp::create(b, value, b.i64(divisor - 1));
  return LLVM::UDivOp::create(b, value, b.i64(divisor));
}

void LaunchBuilder::buildSizes() {
  m = a.getSize(2);
  n = bBuffer.getSize(2);
  k = a.getSize(1);
  batch = batched ? a.getSize(3) : b.i64(1);
  tiles = LLVM::MulOp::create(b, ceilDiv(m, getInt("cluster_m")),
                              ceilDiv(n, getInt("cluster_n")));
  tiles = LLVM::MulOp::create(b, tiles, batch);
}

/// fp8rt_tensor_map_desc, and the map that the runtime makes of it.
Value LaunchBuilder::buildTensorMap(Buffer &buffer, ArrayRef<int64_t> box,
                                    int64_t swizzle) {
  using Desc = runtime::Struct<fp8rt_tensor_map_desc>;
  int32_t type = FP8RT_TENSOR_MAP_U8;
  if (buffer.getElementType().isF32())
    type = FP8RT_TENSOR_MAP_F32;
  else if (buffer.getElementType().isBF16())
    type = FP8RT_TENSOR_MAP_BF16;
  else if (buffer.getElementType().isF16())
    type = FP8RT_TENSOR_MAP_F16;

  Value desc = b.allocate<fp8rt_tensor_map_desc>();
  auto store = [&](auto field, Value value) {
    storeField(b, desc, field, value);
  };
  int32_t rank = batched ? 3 : 2;
  store(Desc::address, buffer.getPointer());
  store(Desc::type, b.i32(type));
  store(Desc::rank, b.i32(rank));
  for (int32_t i = 0; i < rank; ++i) {
    store(Desc::sizes[i], buffer.getSize(i + 1));
    Value bytes = LLVM::MulOp::create(b, buffer.getStride(i + 1),
                                      b.i64(buffer.getElementBytes()));
    // A dimension of one element has no stride; any that is allowed will do.
    Value isNone =
        LLVM::ICmpOp::create(b, LLVM::ICmpPredicate::eq, bytes, b.i64(0));
    store(Desc::strides[i],
          LLVM::SelectOp::create(b, isNone, b.i64(16), bytes));
    store(Desc::box[i], b.i32(box[i]));
  }
  store(Desc::swizzle, b.i32(swizzle));
  store(Desc::l2_promotion, b.i32(FP8RT_TENSOR_MAP_L2_128B));
  Value map = b.allocate<fp8rt_tensor_map>();
  b.call(runtime::fp8rt_context_get_tensor_map, desc, map);
  return map;
}

Value LaunchBuilder::buildStoreMap() {
  int64_t bytes = getInt("store_bytes");
  int64_t swizzle = bytes == 128  ? FP8RT_TENSOR_MAP_SWIZZLE_128B
                    : bytes == 64 ? FP8RT_TENSOR_MAP_SWIZZLE_64B
                    : bytes == 32 ? FP8RT_TENSOR_MAP_SWIZZLE_32B
                                  : FP8RT_TENSOR_MAP_SWIZZLE_NONE;
  Buffer &d = outs.front();
  return buildTensorMap(d, {bytes / d.getElementBytes(), 64, 1}, swizzle);
}

Value LaunchBuilder::allocateOnDevice(Value bytes, int64_t flags) {
  temporaries.push_back(
      b.call(runtime::fp8rt_context_alloc, bytes, b.i32(flags)));
  return temporaries.back();
}

Value LaunchBuilder::getBufferParam(Buffer &buffer, StringRef field,
                                    bool isScale) {
  if (field == "ptr")
    return buffer.getPointer();
  if (field == "stride_batch")
    return buffer.getStride(3);
  if (field == (isScale ? "stride_row" : "stride_m"))
    return buffer.getStride(2);
  if (isScale && field == "stride_k")
    return buffer.getStride(1);
  return {};
}

Value LaunchBuilder::getParam(StringRef name) {
  constexpr int64_t swizzle = FP8RT_TENSOR_MAP_SWIZZLE_128B;
  auto [head, field] = name.split('.');
  unsigned index = 0;
  if (name == "a.map")
    return buildTensorMap(a, {128, getInt("box_m"), 1}, swizzle);
  if (name == "b.map")
    return buildTensorMap(bBuffer, {128, getInt("box_n"), 1}, swizzle);
  if (name == "d.map")
    return buildStoreMap();
  if (head == "d")
    return getBufferParam(outs.front(), field, /*isScale=*/false);
  if (head == "scale_a")
    return getBufferParam(scaleA, field, /*isScale=*/true);
  if (head == "scale_b")
    return getBufferParam(scaleB, field, /*isScale=*/true);
  if (name == "amax.ptr" && outs.size() > 1)
    return outs[1].getPointer();
  if (head.consume_front("operand") && !head.getAsInteger(10, index) &&
      index < operands.size())
    return getBufferParam(operands[index], field, /*isScale=*/false);
  if (head.consume_front("capture") && !head.getAsInteger(10, index) &&
      index < captures.size())
    return captures[index];
  if (name == "workspace.ptr")
    return allocateOnDevice(
        LLVM::MulOp::create(b, tiles,
                            b.i64(getInt("workspace_bytes_per_tile"))),
        /*flags=*/0);
  if (name == "counters.ptr")
    return allocateOnDevice(LLVM::MulOp::create(b, tiles, b.i64(4)),
                            /*flags=*/1);
  for (auto [size, value] : {std::pair<StringRef, Value>{"m", m},
                             {"n", n},
                             {"k", k},
                             {"batch", batch}})
    if (name == size)
      return b.narrow(value);
  return {};
}

/// Kernels with bulk stores read factors per row and operands in pairs.
void LaunchBuilder::requireAlignment() {
  if (getInt("store_bytes") == 0)
    return;
  for (auto [index, operand] : llvm::enumerate(operands)) {
    Value address =
        LLVM::PtrToIntOp::create(b, b.getI64Type(), operand.getPointer());
    Value rest = LLVM::AndOp::create(b, address, b.i64(7));
    b.require(LLVM::ICmpOp::create(b, LLVM::ICmpPredicate::eq, rest, b.i64(0)),
              "expected operand " + Twine(index) +
                  " of an epilogue to be aligned to 8 bytes");
  }
}

LogicalResult LaunchBuilder::build() {
  auto names = kernel.metadata.getAs<ArrayAttr>("params");
  if (!names)
    return op.emitOpError("expected the kernel to name its parameters");
  buildSizes();
  SmallVector<Value> params;
  for (auto name : names.getAsRange<StringAttr>()) {
    Value value = getParam(name);
    if (!value)
      return op.emitOpError("expected a parameter of docs/Kernels.md, but the "
                            "kernel wants '")
             << name.getValue() << "'";
    // A tensor map goes by value, so that it is where the parameter points to.
    if (!name.getValue().ends_with(".map")) {
      Value place = b.allocate(value.getType());
      LLVM::StoreOp::create(b, value, place);
      value = place;
    }
    params.push_back(value);
  }
  requireAlignment();
  // Persistent blocks: no more than fit on the device at once.
  Value blocks = LLVM::MulOp::create(b, tiles, b.i64(getInt("split_k")));
  Value most = b.call(runtime::fp8rt_context_get_num_sms);
  if (int64_t cluster = getInt("cluster"); cluster > 1) {
    most = LLVM::UDivOp::create(b, most, b.i64(cluster));
    blocks = LLVM::UMinOp::create(b, blocks, most);
    blocks = LLVM::MulOp::create(b, blocks, b.i64(cluster));
  } else {
    blocks = LLVM::UMinOp::create(b, blocks, most);
  }
  b.launch(kernel, {b.narrow(blocks), b.i32(1), b.i32(1)},
           {b.i32(getInt("threads")), b.i32(1), b.i32(1)},
           b.i32(getInt("shared_bytes")), FP8RT_LAUNCH_OVERLAP, params);
  for (Value temporary : temporaries)
    b.call(runtime::fp8rt_context_free, temporary);
  return success();
}

/// Kernels copy whole rows: their elements lie together.
static LogicalResult checkRows(LaunchMatmulOp op) {
  for (Value operand : op->getOperands()) {
    auto type = dyn_cast<MemRefType>(operand.getType());
    if (!type || type.getRank() == 0 || type.getShape().back() == 1)
      continue;
    SmallVector<int64_t> strides;
    int64_t offset;
    if (failed(type.getStridesAndOffset(strides, offset)) ||
        strides.back() != 1)
      return op.emitOpError("expected rows whose elements lie together, but "
                            "got ")
             << type;
  }
  return success();
}

namespace {
struct ConvertLaunchMatmul : ConvertOpToLLVMPattern<LaunchMatmulOp> {
  ConvertLaunchMatmul(const LLVMTypeConverter &converter,
                      const KernelGlobals &kernels)
      : ConvertOpToLLVMPattern(converter), kernels(kernels) {}

  LogicalResult
  matchAndRewrite(LaunchMatmulOp op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    const KernelGlobal *kernel = kernels.lookup(op.getKernel());
    if (!kernel || !kernel->metadata)
      return rewriter.notifyMatchFailure(op, "no kernel of that name");
    if (failed(checkRows(op)))
      return failure();
    RuntimeCalls calls(rewriter, op);
    if (failed(LaunchBuilder(calls, *getTypeConverter(), op, adaptor, *kernel)
                   .build()))
      return failure();
    rewriter.eraseOp(op);
    return success();
  }

  const KernelGlobals &kernels;
};
} // namespace

void fp8::populateLaunchMatmulPatterns(const LLVMTypeConverter &converter,
                                       const KernelGlobals &kernels,
                                       RewritePatternSet &patterns) {
  patterns.add<ConvertLaunchMatmul>(converter, kernels);
}
