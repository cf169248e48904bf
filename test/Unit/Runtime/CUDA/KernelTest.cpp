//===- KernelTest.cpp - Launches that are described -----------------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "EmulatedDriver.h"

#include "fp8/Runtime/Context.h"
#include "fp8/Runtime/Kernel.h"
#include "fp8/Runtime/Memory.h"
#include "fp8/Runtime/TensorMap.h"

#include <cstring>
#include <vector>

namespace {

// x is m x n, y is n; the parameters are a map of x, the address of y, the
// stride of x's rows, n + 1, a capture, and two workspaces.
constexpr char kPTX[] = ".version 8.0\n.target sm_90a\n.address_size 64\n"
                        ".visible .entry kernel(\n"
                        ".param .align 64 .b8 kernel_param_0[128],\n"
                        ".param .u64 .ptr .global .align 1 kernel_param_1,\n"
                        ".param .u64 kernel_param_2,\n"
                        ".param .u32 kernel_param_3,\n"
                        ".param .b16 kernel_param_4,\n"
                        ".param .u64 kernel_param_5,\n"
                        ".param .u64 kernel_param_6\n)\n"
                        ".reqnctapercluster 2, 1, 1\n{ ret; }\n";
constexpr char kLaunch[] = R"({
  "version": 2,
  "arguments": [{"name": "x", "type": "bf16", "rank": 2, "access": "read",
                 "alignment": 16},
                {"name": "y", "type": "f32", "rank": 1, "alignment": 8,
                 "access": "update"}],
  "extents": [{"name": "m", "argument": 0, "dim": 0},
              {"name": "n", "argument": 0, "dim": 1}],
  "params": [{"tensor_map": 0, "box": [64, 32], "swizzle": 128, "l2": 256},
             {"pointer": 1}, {"stride": 0, "dim": 0},
             {"value": "n 1 +", "bytes": 4}, {"capture": 0, "bytes": 2},
             {"scratch": 1}, {"scratch": 0}],
  "workspaces": [{"bytes": "m 128 ceildiv n *", "zero": false},
                 {"bytes": "m 3 mod n 7 floordiv +", "zero": true}],
  "grid": ["m 32 ceildiv n 64 ceildiv *"],
  "block": 128, "cluster": 2, "shared_bytes": 100000, "resident": 1,
  "overlap": true, "flops": "m n * 2 *"
})";

class Kernel : public EmulatedDriver {
protected:
  void SetUp() override {
    EmulatedDriver::SetUp();
    expectOk(fp8rt_stream_create(1, &stream));
    expectOk(fp8rt_module_load(1, kPTX, sizeof(kPTX) - 1, &module));
    expectOk(fp8rt_module_get_function(module, "kernel", &function));
    expectOk(fp8rt_memory_alloc(1, 1 << 20, &memory));
    x = {memory, {100, 72}, {80, 1}};
    y = {memory, {72}, {1}};
  }
  void TearDown() override {
    expectOk(fp8rt_memory_free(1, memory));
    expectOk(fp8rt_module_unload(module));
    expectOk(fp8rt_stream_destroy(1, stream));
    EmulatedDriver::TearDown();
  }

  /// kLaunch with a text replaced.
  static std::string edit(const std::string &from, const std::string &to) {
    std::string text = kLaunch;
    size_t at = text.find(from);
    EXPECT_NE(at, std::string::npos) << from;
    return text.replace(at, from.size(), to);
  }
  fp8rt_status launch(const std::string &text = kLaunch,
                      void *const *workspaces = nullptr) {
    fp8rt_kernel *kernel = nullptr;
    fp8rt_status status =
        fp8rt_kernel_create(function, text.data(), text.size(), &kernel);
    if (status != FP8RT_OK)
      return status;
    fp8rt_kernel_argument arguments[] = {x, y};
    uint16_t captured = 0x1234;
    const void *captures[] = {&captured};
    status =
        fp8rt_kernel_launch(kernel, arguments, captures, workspaces, stream);
    EXPECT_EQ(fp8rt_kernel_destroy(kernel), FP8RT_OK);
    return status;
  }
  fp8rt_stream stream = nullptr;
  fp8rt_module module = 0;
  fp8rt_function function = 0;
  void *memory = nullptr;
  fp8rt_kernel_argument x, y;
};

TEST_F(Kernel, IsLaunchedAsDescribed) {
  expectOk(launch());
  fp8emu_launch last = getLastLaunch();
  // 4 x 2 clusters of two blocks.
  EXPECT_EQ(last.grid[0], 16u);
  EXPECT_EQ(last.grid[1], 1u);
  EXPECT_EQ(last.block[0], 128u);
  EXPECT_EQ(last.dynamic_smem, 100000u);
  EXPECT_EQ(last.overlap, 1);
  EXPECT_EQ(last.stream, stream);
  EXPECT_EQ(last.num_params, 7u);
  EXPECT_EQ(getParam<void *>(1), memory);
  EXPECT_EQ(getParam<int64_t>(2), 80);
  EXPECT_EQ(getParam<int32_t>(3), 73);
  EXPECT_EQ(getParam<uint16_t>(4), 0x1234);
}

/// The map of 72 columns of bf16, of which a row has 80, in boxes of 64
/// columns.
static fp8rt_tensor_map makeMap(void *memory, uint64_t rows, uint32_t boxRows) {
  fp8rt_tensor_map_desc desc = {};
  desc.address = memory;
  desc.type = FP8RT_TENSOR_MAP_BF16;
  desc.rank = 2;
  desc.sizes[0] = 72;
  desc.sizes[1] = rows;
  desc.strides[1] = 160;
  desc.box[0] = 64;
  desc.box[1] = boxRows;
  desc.swizzle = FP8RT_TENSOR_MAP_SWIZZLE_128B;
  desc.l2_promotion = FP8RT_TENSOR_MAP_L2_256B;
  fp8rt_tensor_map map = {};
  EXPECT_EQ(fp8rt_tensor_map_get(1, &desc, &map), FP8RT_OK);
  return map;
}

TEST_F(Kernel, GetsTensorMaps) {
  expectOk(launch());
  auto map = getParam<fp8rt_tensor_map>(0);
  fp8rt_tensor_map expected = makeMap(memory, 100, 32);
  EXPECT_EQ(std::memcmp(&map, &expected, sizeof(map)), 0);
}

// 100 rows are three boxes of 32 and one of 4, 96 are whole boxes.
TEST_F(Kernel, GetsTensorMapsOfTails) {
  // Programs that were compiled for 1.0 have the latter.
  for (std::string key : {"tail", "rest"}) {
    SCOPED_TRACE(key);
    std::string text = edit("\"l2\": 256}", "\"l2\": 256, \"" + key + "\": 1}");
    for (auto [rows, boxRows] : {std::pair(100, 4), std::pair(96, 32)}) {
      x.sizes[0] = rows;
      expectOk(launch(text));
      auto map = getParam<fp8rt_tensor_map>(0);
      fp8rt_tensor_map expected = makeMap(memory, static_cast<uint64_t>(rows),
                                          static_cast<uint32_t>(boxRows));
      EXPECT_EQ(std::memcmp(&map, &expected, sizeof(map)), 0);
    }
  }
}

// One of the zeros is in bounds of a map, and every step along them is none.
TEST_F(Kernel, GetsZerosForWhatHasNoElements) {
  int before = getLiveBlocks();
  x = {nullptr, {100, 0}, {80, 1}};
  y = {nullptr, {0}, {1}};
  expectOk(launch(edit("ceildiv *\"]", "ceildiv * 1 +\"]")));
  auto *zeros = getParam<void *>(1);
  ASSERT_NE(zeros, nullptr);
  fp8rt_tensor_map_desc desc = {};
  desc.address = zeros;
  desc.type = FP8RT_TENSOR_MAP_BF16;
  desc.rank = 2;
  desc.sizes[0] = desc.sizes[1] = 1;
  desc.strides[1] = 16;
  desc.box[0] = 64;
  desc.box[1] = 32;
  desc.swizzle = FP8RT_TENSOR_MAP_SWIZZLE_128B;
  desc.l2_promotion = FP8RT_TENSOR_MAP_L2_256B;
  fp8rt_tensor_map expected = {};
  expectOk(fp8rt_tensor_map_get(1, &desc, &expected));
  auto map = getParam<fp8rt_tensor_map>(0);
  EXPECT_EQ(std::memcmp(&map, &expected, sizeof(map)), 0);
  EXPECT_EQ(getParam<int64_t>(2), 0);
  EXPECT_EQ(getParam<int32_t>(3), 1);
  // And those of the workspace that is to be zero.
  EXPECT_EQ(getCalls("cuMemsetD8Async"), 2);
  EXPECT_EQ(getLiveBlocks(), before);
}

TEST_F(Kernel, PersistsOnAllMultiprocessors) {
  x.sizes[0] = 10000;
  fp8rt_device_info info;
  expectOk(fp8rt_device_get_info(1, &info));
  expectOk(launch(edit("m 32 ceildiv n 64 ceildiv *", "m 64 *")));
  EXPECT_EQ(getLastLaunch().grid[0],
            static_cast<uint32_t>(info.num_sms / 2 * 2));
  expectOk(launch(edit("\"resident\": 1", "\"resident\": 2")));
  EXPECT_EQ(getLastLaunch().grid[0], static_cast<uint32_t>(info.num_sms * 2));
  expectOk(launch(edit("\"resident\": 1", "\"resident\": 0")));
  EXPECT_EQ(getLastLaunch().grid[0], 313u * 2 * 2);
}

// Clusters of four do not reach every multiprocessor, and what does not fit
// into the shared memory does not run at once: a grid of more would wait for
// itself.
TEST_F(Kernel, PersistsAsClustersThatRunAtOnce) {
  x.sizes[0] = 100000;
  std::string ptx = kPTX;
  ptx.replace(ptx.find("cluster 2"), 9, "cluster 4");
  fp8rt_module other;
  expectOk(fp8rt_module_load(1, ptx.data(), ptx.size(), &other));
  expectOk(fp8rt_module_get_function(other, "kernel", &function));
  expectOk(launch(edit("\"cluster\": 2, \"shared_bytes\": 100000",
                       "\"cluster\": 4, \"shared_bytes\": 200000")));
  EXPECT_EQ(getLastLaunch().grid[0], 128u);
  expectOk(fp8rt_module_unload(other));

  expectOk(fp8rt_module_get_function(module, "kernel", &function));
  expectOk(launch(edit("\"resident\": 1", "\"resident\": 3")));
  EXPECT_EQ(getLastLaunch().grid[0], 2u * 132);
}

// Blocks that are alone run on every multiprocessor.
TEST_F(Kernel, AsksForTheNumberOfPersistentClustersOnly) {
  expectOk(launch(edit("\"resident\": 1", "\"resident\": 0")));
  expectOk(launch(edit("\"cluster\": 2", "\"cluster\": 1")));
  EXPECT_EQ(getCalls("cuOccupancyMaxActiveClusters"), 0);
  fail("cuOccupancyMaxActiveClusters", kLaunchOutOfResources, 1);
  expectError(launch(), FP8RT_ERROR_CUDA,
              "cannot find how many clusters of kernel 'kernel' run at once: "
              "CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES");
}

TEST_F(Kernel, HasGridsOfThreeDimensions) {
  expectOk(launch(edit("[\"m 32 ceildiv n 64 ceildiv *\"]",
                       "[\"m 64 ceildiv\", \"n\", \"3\"]")));
  fp8emu_launch last = getLastLaunch();
  EXPECT_EQ(last.grid[0], 4u);
  EXPECT_EQ(last.grid[1], 72u);
  EXPECT_EQ(last.grid[2], 3u);
}

TEST_F(Kernel, LaunchesNothingWithoutBlocks) {
  x.sizes[1] = 0;
  x.data = nullptr;
  expectOk(launch());
  EXPECT_EQ(getCalls("cuLaunchKernelEx"), 0);
}

TEST_F(Kernel, AllocatesWorkspacesForTheLaunch) {
  int before = getLiveBlocks();
  expectOk(launch());
  EXPECT_NE(getParam<void *>(5), nullptr);
  EXPECT_NE(getParam<void *>(6), nullptr);
  EXPECT_NE(getParam<void *>(5), getParam<void *>(6));
  EXPECT_EQ(getCalls("cuMemsetD8Async"), 1);
  EXPECT_EQ(getLiveBlocks(), before);
  fail("cuLaunchKernelEx", kLaunchOutOfResources, 1);
  expectError(launch(), FP8RT_ERROR_CUDA, "launch kernel 'kernel'");
  EXPECT_EQ(getLiveBlocks(), before);
}

TEST_F(Kernel, TakesWorkspacesOfTheCaller) {
  fp8rt_kernel *kernel = nullptr;
  expectOk(
      fp8rt_kernel_create(function, kLaunch, sizeof(kLaunch) - 1, &kernel));
  fp8rt_kernel_argument arguments[] = {x, y};
  EXPECT_EQ(fp8rt_kernel_get_num_workspaces(kernel), 2);
  uint64_t bytes[2];
  expectOk(fp8rt_kernel_get_workspace_bytes(kernel, arguments, 0, &bytes[0]));
  expectOk(fp8rt_kernel_get_workspace_bytes(kernel, arguments, 1, &bytes[1]));
  EXPECT_EQ(bytes[0], 72u);
  EXPECT_EQ(bytes[1], 11u);
  expectError(fp8rt_kernel_get_workspace_bytes(kernel, arguments, 2, bytes),
              FP8RT_ERROR_INVALID_ARGUMENT, "the index of one of 2 workspaces");
  expectOk(fp8rt_kernel_destroy(kernel));
  char *own = static_cast<char *>(memory);
  void *workspaces[] = {own + 16, own + 32};
  expectOk(launch(kLaunch, workspaces));
  EXPECT_EQ(getParam<void *>(5), own + 32);
  EXPECT_EQ(getParam<void *>(6), own + 16);
  EXPECT_EQ(getCalls("cuMemAllocFromPoolAsync"), 0);
}

TEST_F(Kernel, WantsAlignedRows) {
  x.data = static_cast<char *>(memory) + 8;
  expectError(launch(), FP8RT_ERROR_INVALID_ARGUMENT,
              "argument 'x' of a kernel to have rows whose elements lie "
              "together, aligned to 16 bytes");
  x.data = memory;
  x.strides[0] = 81;
  expectError(launch(), FP8RT_ERROR_INVALID_ARGUMENT, "argument 'x'");
  x.strides[0] = 80;
  x.strides[1] = 2;
  expectError(launch(), FP8RT_ERROR_INVALID_ARGUMENT, "argument 'x'");
  x.strides[1] = 1;
  y.data = static_cast<char *>(memory) + 4;
  expectError(launch(), FP8RT_ERROR_INVALID_ARGUMENT, "argument 'y'");
}

TEST_F(Kernel, WantsDenseDimensionsUnlessToldTheirStrides) {
  const char dense[] =
      "argument 'y' of a kernel to lie as in a dense tensor where it takes no "
      "strides";
  std::string text =
      edit("\"rank\": 1, \"alignment\": 8", "\"rank\": 3, \"alignment\": 4");
  y = {memory, {2, 3, 5}, {15, 5, 1}};
  expectOk(launch(text));
  y.strides[2] = 2;
  expectError(launch(text), FP8RT_ERROR_INVALID_ARGUMENT, dense);
  y = {memory, {2, 3, 5}, {15, 6, 1}};
  expectError(launch(text), FP8RT_ERROR_INVALID_ARGUMENT, dense);
  // A dimension of one element has no stride.
  y = {memory, {2, 1, 5}, {5, 77, 1}};
  expectOk(launch(text));
  y = {memory, {2, 1, 5}, {6, 1, 1}};
  expectError(launch(text), FP8RT_ERROR_INVALID_ARGUMENT, dense);
  // The stride of the kernel's second parameter is that of y's rows now.
  const std::string stride = "\"stride\": 0, \"dim\": 0";
  text.replace(text.find(stride), stride.size(), "\"stride\": 1, \"dim\": 1");
  y = {memory, {2, 3, 5}, {24, 8, 1}};
  expectOk(launch(text));
  y.strides[0] = 25;
  expectError(launch(text), FP8RT_ERROR_INVALID_ARGUMENT, dense);
}

TEST_F(Kernel, TakesRowsFromAnywhereWhereAllIsDense) {
  std::string text = edit("\"type\": \"f32\", \"rank\": 1, \"alignment\": 8",
                          "\"type\": \"bf16\", \"rank\": 3, \"alignment\": 4");
  y = {memory, {2, 3, 5}, {15, 5, 1}};
  expectOk(launch(text));
  // Where it is told a stride, words have to begin with rows, also with those
  // of a dimension that takes the place of one of one element.
  const std::string stride = "\"stride\": 0, \"dim\": 0";
  text.replace(text.find(stride), stride.size(), "\"stride\": 1, \"dim\": 1");
  const char rows[] = "argument 'y' of a kernel to have rows";
  y = {memory, {8, 1, 6}, {8, 8, 1}};
  expectOk(launch(text));
  y = {memory, {1, 8, 6}, {56, 7, 1}};
  expectError(launch(text), FP8RT_ERROR_INVALID_ARGUMENT, rows);
  y = {memory, {8, 1, 6}, {7, 7, 1}};
  expectError(launch(text), FP8RT_ERROR_INVALID_ARGUMENT, rows);
}

TEST_F(Kernel, ReadsOneElementFromAnywhere) {
  y = {static_cast<char *>(memory) + 4, {1}, {12345}};
  expectOk(launch());
}

TEST_F(Kernel, TakesColumnsAsRows) {
  // A dimension of one element is no dimension.
  std::string text =
      edit("\"type\": \"f32\", \"rank\": 1", "\"type\": \"f32\", \"rank\": 2");
  y = {memory, {72, 1}, {1, 1}};
  expectOk(launch(text));
  y = {memory, {72, 1}, {3, 1}};
  expectError(launch(text), FP8RT_ERROR_INVALID_ARGUMENT, "argument 'y'");
}

TEST_F(Kernel, HasNoStrideWithoutASecondElement) {
  x.sizes[0] = 1;
  x.strides[0] = 7;
  expectOk(launch());
  EXPECT_EQ(getParam<int64_t>(2), 0);
}

TEST_F(Kernel, GoesOnWithTheStrideOutsideAnElement) {
  // The kernel is told the stride of y's last but one dimension and counts on
  // with it in those outside.
  std::string text =
      edit("\"rank\": 1, \"alignment\": 8", "\"rank\": 4, \"alignment\": 4");
  const std::string stride = "\"stride\": 0, \"dim\": 0";
  text.replace(text.find(stride), stride.size(), "\"stride\": 1, \"dim\": 2");
  auto expectStride = [&](int64_t expected, fp8rt_kernel_argument argument) {
    y = argument;
    expectOk(launch(text));
    EXPECT_EQ(getParam<int64_t>(2), expected);
  };
  expectStride(5, {memory, {2, 3, 4, 5}, {60, 20, 5, 1}});
  expectStride(5, {memory, {2, 3, 1, 5}, {15, 5, 5, 1}});
  expectStride(5, {memory, {2, 3, 1, 5}, {15, 5, 77, 1}});
  expectStride(8, {memory, {2, 3, 1, 5}, {24, 8, 0, 1}});
  expectStride(9, {memory, {2, 1, 1, 5}, {9, 1, 1, 1}});
  expectStride(0, {memory, {1, 1, 1, 5}, {9, 8, 7, 1}});
  // One element of all, and none.
  expectStride(3, {memory, {2, 1, 1, 1}, {3, 1, 1, 1}});
  expectStride(0, {memory, {2, 1, 0, 5}, {5, 5, 5, 1}});
  y = {memory, {2, 3, 1, 5}, {25, 8, 8, 1}};
  expectError(launch(text), FP8RT_ERROR_INVALID_ARGUMENT,
              "argument 'y' of a kernel to lie as in a dense tensor");
  // Told each, it counts on in none.
  const std::string value = "\"value\": \"n 1 +\", \"bytes\": 4";
  text.replace(text.find(value), value.size(), "\"stride\": 1, \"dim\": 1");
  expectStride(0, {memory, {1, 3, 1, 5}, {15, 5, 5, 1}});
}

TEST_F(Kernel, RefusesWhatDoesNotFit) {
  x.sizes[1] = int64_t(1) << 31;
  x.strides[0] = x.sizes[1];
  void *workspaces[] = {memory, memory};
  expectError(launch(kLaunch, workspaces), FP8RT_ERROR_INVALID_ARGUMENT,
              "'n 1 +' of a kernel to be below 2^31");
  x.sizes[1] = INT64_MAX;
  expectError(launch(edit("n 64 ceildiv *", "n *")),
              FP8RT_ERROR_INVALID_ARGUMENT, "does not fit in 64 bits");
  x.sizes[1] = 72;
  expectError(launch(edit("m 3 mod n 7 floordiv +", "m -200 +")),
              FP8RT_ERROR_INVALID_ARGUMENT, "'m -200 +' is negative");
  expectError(launch(edit("m 32 ceildiv n 64 ceildiv *",
                          "m 1000000000 *\", \"1\", \"70000")),
              FP8RT_ERROR_INVALID_ARGUMENT, "a grid of up to");
}

TEST_F(Kernel, RefusesMalformedDescriptions) {
  const struct {
    const char *from, *to, *error;
  } cases[] = {
      {"\"version\": 2", "\"version\": 1", "expected version to be 2"},
      {"\"block\": 128, ", "", "expected the key 'block', but it is missing"},
      {"\"block\": 128", "\"blocks\": 1, \"block\": 128",
       "expected no key 'blocks'"},
      {"\"block\": 128", "\"block\": 0", "expected block to be an integer"},
      {"\"block\": 128", "\"block\": true", "expected block to be an integer"},
      {"\"overlap\": true", "\"overlap\": 1", "expected overlap to be true"},
      {"\"read\"", "\"reads\"",
       "arguments[0]: expected access to be one of read, write, update, raise"},
      {"m n * 2 *", "m n * 2", "expected flops to be an expression"},
      {"\"bf16\"", "\"bf15\"", "arguments[0]: expected type to be one of"},
      {"\"alignment\": 16", "\"alignment\": 24",
       "arguments[0]: expected alignment to be a power of two"},
      {"\"name\": \"m\", \"argument\": 0", "\"name\": \"m\", \"argument\": 2",
       "extents[0]: expected argument to be an integer in 0..1"},
      {"\"argument\": 0, \"dim\": 1", "\"argument\": 0, \"dim\": 2",
       "extents[1]: expected dim to be an integer in 0..1"},
      {"{\"pointer\": 1}", "{\"pointer\": -1}",
       "params[1]: expected pointer to be an integer in 0..1"},
      {"{\"pointer\": 1}", "{\"address\": 1}",
       "params[1]: expected a tensor_map, pointer"},
      {"{\"pointer\": 1}", "{\"pointer\": 1, \"dim\": 0}",
       "params[1]: expected no key 'dim'"},
      {"{\"pointer\": 1}", "7", "params[1]: expected a tensor_map, pointer"},
      {"\"scratch\": 1", "\"scratch\": 2", "params[5]: expected scratch to be"},
      {"[64, 32]", "[64]", "params[0]: expected box to be an extent for each"},
      {"[64, 32]", "[64, 257]", "params[0]: expected box to be of integers"},
      {"\"l2\": 256}", "\"l2\": 256, \"tail\": 0}",
       "params[0]: expected tail to be a dimension that is not the innermost"},
      {"\"l2\": 256}", "\"l2\": 256, \"tail\": 2}",
       "params[0]: expected tail to be"},
      {"\"swizzle\": 128", "\"swizzle\": 48",
       "params[0]: expected swizzle to be a number of bytes"},
      {"n 1 +", "n 1 + +", "params[3]: expected value to be an expression"},
      {"n 1 +", "n 1", "params[3]: expected value to be an expression"},
      {"n 1 +", "k 1 +", "params[3]: expected value to be an expression"},
      {"n 1 +", "n 0 mod", "params[3]: expected value to be an expression"},
      {"n 1 +", "n m mod", "params[3]: expected value to be an expression"},
      {"n 1 +", "n 99999999999999999999 +",
       "expected value to be an expression"},
      {"n 1 +", "", "params[3]: expected value to be an expression"},
      {"\"n 1 +\"", "73", "params[3]: expected value to be an expression"},
      {"[\"m 32 ceildiv n 64 ceildiv *\"]", "[]", "expected grid to be 1 to 3"},
      {"\"arguments\": [", "\"arguments\": [[], ",
       "arguments[0]: expected an object"},
      {"\"version\"", "version", "to be JSON in UTF-8"},
  };
  for (auto [from, to, error] : cases)
    expectError(launch(edit(from, to)), FP8RT_ERROR_INVALID_MANIFEST, error);
  EXPECT_EQ(getCalls("cuLaunchKernelEx"), 0);
}

TEST_F(Kernel, SaysWhatALaunchIsFor) {
  fp8rt_kernel *kernel = nullptr;
  expectOk(
      fp8rt_kernel_create(function, kLaunch, sizeof(kLaunch) - 1, &kernel));
  fp8rt_kernel_argument arguments[] = {x, y};
  double bytes, flops;
  expectOk(fp8rt_kernel_get_work(kernel, arguments, &bytes, &flops));
  // y is read and written.
  EXPECT_EQ(bytes, 100 * 72 * 2 + 2 * 72 * 4);
  EXPECT_EQ(flops, 100 * 72 * 2);
  // One row for all, and no row at all.
  arguments[0].strides[0] = 0;
  expectOk(fp8rt_kernel_get_work(kernel, arguments, &bytes, &flops));
  EXPECT_EQ(bytes, 72 * 2 + 2 * 72 * 4);
  arguments[0].sizes[0] = 0;
  expectOk(fp8rt_kernel_get_work(kernel, arguments, &bytes, &flops));
  EXPECT_EQ(bytes, 2 * 72 * 4);
  EXPECT_EQ(flops, 0);
  // Too many to be counted.
  arguments[0].sizes[0] = arguments[0].sizes[1] = int64_t(1) << 40;
  expectOk(fp8rt_kernel_get_work(kernel, arguments, &bytes, &flops));
  EXPECT_EQ(flops, 0);
  expectError(fp8rt_kernel_get_work(nullptr, arguments, &bytes, &flops),
              FP8RT_ERROR_INVALID_ARGUMENT, "expected kernel");
  expectError(fp8rt_kernel_get_work(kernel, nullptr, &bytes, &flops),
              FP8RT_ERROR_INVALID_ARGUMENT, "expected arguments");
  expectOk(fp8rt_kernel_destroy(kernel));
}

TEST_F(Kernel, CountsWhatIsReadAndWhatIsWritten) {
  const struct {
    const char *access;
    int64_t times;
  } cases[] = {{"read", 1}, {"write", 1}, {"update", 2}, {"raise", 2}};
  for (auto [access, times] : cases) {
    std::string text = edit("\"update\"", '"' + std::string(access) + '"');
    fp8rt_kernel *kernel = nullptr;
    expectOk(fp8rt_kernel_create(function, text.data(), text.size(), &kernel));
    fp8rt_kernel_argument arguments[] = {x, y};
    double bytes, flops;
    expectOk(fp8rt_kernel_get_work(kernel, arguments, &bytes, &flops));
    EXPECT_EQ(bytes, 100 * 72 * 2 + times * 72 * 4) << access;
    expectOk(fp8rt_kernel_destroy(kernel));
  }
}

TEST_F(Kernel, RefusesNull) {
  fp8rt_kernel *kernel = nullptr;
  expectError(fp8rt_kernel_create(function, nullptr, 0, &kernel),
              FP8RT_ERROR_INVALID_ARGUMENT, "expected launch");
  expectError(fp8rt_kernel_create(0, kLaunch, sizeof(kLaunch) - 1, &kernel),
              FP8RT_ERROR_INVALID_HANDLE, "function");
  expectError(fp8rt_kernel_launch(nullptr, nullptr, nullptr, nullptr, stream),
              FP8RT_ERROR_INVALID_ARGUMENT, "expected kernel");
  expectOk(fp8rt_kernel_destroy(nullptr));
  EXPECT_EQ(fp8rt_kernel_get_num_workspaces(nullptr), 0);
}

TEST_F(Kernel, RefusesMoreSharedMemoryThanThereIs) {
  expectError(launch(edit("100000", "300000")), FP8RT_ERROR_INVALID_ARGUMENT,
              "300000");
}

TEST_F(Kernel, IsLaunchedByPrograms) {
  fp8rt_program_image image = {kPTX, sizeof(kPTX) - 1};
  fp8rt_program_kernel kernel = {&image, "kernel", kLaunch};
  fp8rt_context *context = nullptr;
  expectOk(fp8rt_context_create(1, stream, &context));
  fp8rt_kernel_argument arguments[] = {x, y};
  uint16_t captured = 0x4321;
  const void *captures[] = {&captured};
  for (int i = 0; i < 2; ++i)
    fp8rt_context_launch_kernel(context, &kernel, arguments, captures);
  expectOk(fp8rt_context_take_status(context));
  EXPECT_EQ(getCalls("cuLaunchKernelEx"), 2);
  EXPECT_EQ(getCalls("cuModuleGetFunction"), 2) << "one is the test's own";
  EXPECT_EQ(getLastLaunch().stream, stream);
  EXPECT_EQ(getParam<uint16_t>(4), 0x4321);
  arguments[0].strides[0] = 81;
  fp8rt_context_launch_kernel(context, &kernel, arguments, captures);
  expectError(fp8rt_context_take_status(context), FP8RT_ERROR_INVALID_ARGUMENT,
              "argument 'x'");
  expectOk(fp8rt_context_destroy(context));
}

} // namespace
