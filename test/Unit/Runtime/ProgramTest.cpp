//===- ProgramTest.cpp - Calls of compiled programs -----------------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Programs written by hand, as the compiler would describe them.
//
//===----------------------------------------------------------------------===//

#include "fp8/Runtime/Program.h"

#include "gtest/gtest.h"

#include <cstdlib>
#include <pthread.h>
#include <string>
#include <thread>

namespace {

const int64_t kSizes[] = {-1, 2};
const fp8rt_program_value kArguments[] = {{"x", "F32", kSizes, 2, 4, 4, 0},
                                          {"s", "F64", nullptr, -1, 8, 8, 0}};
const fp8rt_program_value kResults[] = {{"code", "U8", nullptr, -1, 1, 1, 0},
                                        {"sum", "F64", nullptr, -1, 8, 8, 0},
                                        {"y", "F32", kSizes, 2, 4, 4, 0}};

/// As C++ lays out the results.
struct Results {
  uint8_t code;
  double sum;
  fp8rt_tensor2 y;
};

/// (x, s) -> (7, s + x[0], x), or a failure if s is negative.
void invokeAdd(void **arguments) {
  auto *results = *static_cast<Results **>(arguments[0]);
  auto *x = *static_cast<fp8rt_tensor2 **>(arguments[1]);
  double s = *static_cast<double *>(arguments[2]);
  if (s < 0)
    fp8rt_program_fail("s is negative");
  *results = {7, s + *static_cast<float *>(x->data), *x};
}

/// () -> (y, part, y), of one allocation; `part` is the second column, upwards.
void invokeShared(void **arguments) {
  auto *results = *static_cast<fp8rt_tensor2 **>(arguments[0]);
  auto *data = static_cast<float *>(std::malloc(6 * sizeof(float)));
  for (int i = 0; i < 6; ++i)
    data[i] = static_cast<float>(i);
  results[0] = results[2] = fp8rt_make_tensor2(data, 3, 2);
  results[1] = {data, data, 5, {3, 1}, {-2, 1}};
}

/// () -> i32
void invokeOne(void **arguments) { *static_cast<int32_t *>(arguments[0]) = 1; }

// ThreadSanitizer begins no thread with a stack of 64 KiB, and remembers no
// more than 65536 calls.
#if defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define FP8_FRAME_BYTES 4096
#define FP8_STACK_KIB 1024, 65536
#endif
#endif
#ifndef FP8_FRAME_BYTES
#define FP8_FRAME_BYTES 512
#define FP8_STACK_KIB 64, 1024, 65536
#endif

/// (depth) -> how often it has called itself, which has no other end than the
/// stack's if depth is negative.
int64_t descend(int64_t depth) {
  fp8rt_program_check_stack("descend");
  char frame[FP8_FRAME_BYTES];
  // All of it has to be there.
  asm volatile("" : : "r"(frame) : "memory");
  return depth == 0 ? 0 : 1 + descend(depth - 1);
}
void invokeDescend(void **arguments) {
  *static_cast<int64_t *>(arguments[1]) =
      descend(*static_cast<int64_t *>(arguments[0]));
}

class ProgramTest : public testing::Test {
protected:
  ProgramTest() : x(fp8rt_make_tensor2(data, 3, 2)) {}

  fp8rt_status call(double s, fp8rt_tensor2 *tensor) {
    void *arguments[] = {tensor, &s},
         *results[] = {&result.code, &result.sum, &result.y};
    return fp8rt_program_call(&functions[0], arguments, results, 0, nullptr);
  }

  float data[6] = {1, 2, 3, 4, 5, 6};
  fp8rt_tensor2 x;
  Results result = {};
  const fp8rt_program_value one = {"one", "I32", nullptr, -1, 4, 4, 0};
  fp8rt_program_function functions[2] = {
      {&info, "add", invokeAdd, kArguments, kResults, 2, 3, 0, 0},
      {&info, "one", invokeOne, nullptr, &one, 0, 1, 0, 0}};
  fp8rt_program_info info = {FP8RT_PROGRAM_MAGIC,
                             FP8RT_VERSION,
                             2,
                             functions,
                             "test",
                             "{}",
                             nullptr,
                             0};
};

} // namespace

TEST_F(ProgramTest, TakesResultsApart) {
  ASSERT_EQ(call(2, &x), FP8RT_OK);
  EXPECT_EQ(result.code, 7);
  EXPECT_EQ(result.sum, 3);
  EXPECT_EQ(result.y.data, data);
  EXPECT_EQ(result.y.sizes[0], 3);
  int32_t value = 0;
  void *place = &value;
  EXPECT_EQ(fp8rt_program_call(&functions[1], nullptr, &place, 0, nullptr),
            FP8RT_OK);
  EXPECT_EQ(value, 1);
}

TEST_F(ProgramTest, GivesResultsAllocationsOfTheirOwn) {
  const int64_t column[] = {3, 1};
  const fp8rt_program_value infos[] = {{"y", "F32", kSizes, 2, 4, 4, 0},
                                       {"part", "F32", column, 2, 4, 4, 0},
                                       {"again", "F32", kSizes, 2, 4, 4, 0}};
  functions[0] = {&info, "shared", invokeShared, nullptr, infos, 0, 3, 0, 0};
  fp8rt_tensor2 y, part, again;
  void *results[] = {&y, &part, &again};
  ASSERT_EQ(fp8rt_program_call(&functions[0], nullptr, results, 0, nullptr),
            FP8RT_OK);
  auto get = [](const fp8rt_tensor2 &tensor, int64_t i, int64_t j) {
    return static_cast<float *>(
        tensor.data)[tensor.offset + i * tensor.strides[0] +
                     j * tensor.strides[1]];
  };
  for (int64_t i = 0; i < 3; ++i) {
    EXPECT_EQ(get(part, i, 0), 5 - 2 * i);
    for (int64_t j = 0; j < 2; ++j) {
      EXPECT_EQ(get(y, i, j), 2 * i + j);
      EXPECT_EQ(get(again, i, j), 2 * i + j);
    }
  }
  // Twice the same would end the process.
  for (fp8rt_tensor2 *tensor : {&y, &part, &again})
    std::free(tensor->allocated);
}

TEST_F(ProgramTest, EndsTheCallThatFails) {
  EXPECT_EQ(call(-1, &x), FP8RT_ERROR_INVALID_ARGUMENT);
  EXPECT_STREQ(fp8rt_get_last_error(), "s is negative");
  EXPECT_EQ(result.code, 0);
  EXPECT_EQ(call(1, &x), FP8RT_OK);
}

TEST_F(ProgramTest, EndsTheInnermostCallOfItsThread) {
  static ProgramTest_EndsTheInnermostCallOfItsThread_Test *outer;
  outer = this;
  functions[1].invoke = [](void **arguments) {
    fp8rt_status status = FP8RT_OK;
    std::thread([&] { status = outer->call(-1, &outer->x); }).join();
    EXPECT_EQ(status, FP8RT_ERROR_INVALID_ARGUMENT);
    EXPECT_EQ(outer->call(-1, &outer->x), FP8RT_ERROR_INVALID_ARGUMENT);
    invokeOne(arguments);
  };
  int32_t value = 0;
  void *place = &value;
  EXPECT_EQ(fp8rt_program_call(&functions[1], nullptr, &place, 0, nullptr),
            FP8RT_OK);
  EXPECT_EQ(value, 1);
}

TEST_F(ProgramTest, EndsTheCallThatIsTooDeep) {
  functions[0].invoke = invokeDescend;
  auto run = [](void *data) -> void * {
    auto *function = static_cast<fp8rt_program_function *>(data);
    for (int64_t depth : {16, -1, 16}) {
      int64_t result = 0;
      void *arguments[] = {&depth, &result};
      fp8rt_status status = fp8rt_program_invoke(function, arguments);
      EXPECT_EQ(status, depth < 0 ? FP8RT_ERROR_OUT_OF_MEMORY : FP8RT_OK);
      EXPECT_EQ(result, depth < 0 ? 0 : depth);
    }
    return nullptr;
  };
  run(&functions[0]);
  for (size_t kib : {FP8_STACK_KIB}) {
    pthread_attr_t attributes;
    ASSERT_EQ(pthread_attr_init(&attributes), 0);
    ASSERT_EQ(pthread_attr_setstacksize(&attributes, kib << 10), 0);
    pthread_t thread;
    ASSERT_EQ(pthread_create(&thread, &attributes, run, &functions[0]), 0);
    pthread_join(thread, nullptr);
    pthread_attr_destroy(&attributes);
  }
}

TEST_F(ProgramTest, ChecksArguments) {
  auto expectError = [&](fp8rt_tensor2 *tensor, const char *message) {
    EXPECT_EQ(call(0, tensor), FP8RT_ERROR_INVALID_ARGUMENT);
    EXPECT_EQ(std::string(fp8rt_get_last_error()), message);
  };
  expectError(nullptr,
              "expected argument 'x' of 'add' to be given, but got null");
  x.sizes[1] = 3;
  expectError(&x, "expected argument 'x' of 'add' to have size 2 in dimension "
                  "1, but got 3");
  x = fp8rt_make_tensor2(data, 3, 2);
  x.strides[0] = 3;
  expectError(&x, "expected argument 'x' of 'add' to be in row-major order, "
                  "with stride 2 in dimension 0, but got 3");
  // The stride of a dimension that is never stepped along is anything.
  x.sizes[0] = 1;
  EXPECT_EQ(call(0, &x), FP8RT_OK);
}

TEST_F(ProgramTest, RefusesOtherVersions) {
  info.version = FP8RT_VERSION + 1;
  EXPECT_EQ(call(0, &x), FP8RT_ERROR_VERSION);
  info.version = FP8RT_VERSION + 1000;
  EXPECT_EQ(call(0, &x), FP8RT_ERROR_VERSION);
  info.version = FP8RT_VERSION - 1000;
  EXPECT_EQ(call(0, &x), FP8RT_ERROR_VERSION);
  info.version = FP8RT_VERSION_MAJOR * 1000;
  EXPECT_EQ(call(0, &x), FP8RT_OK);
}

TEST_F(ProgramTest, WantsAContextOnAGPU) {
  functions[0].flags = FP8RT_FUNCTION_TAKES_CONTEXT;
  EXPECT_EQ(call(0, &x), FP8RT_ERROR_INVALID_ARGUMENT);
  EXPECT_STREQ(
      fp8rt_get_last_error(),
      "expected a context for 'add', which runs on a GPU, but got null");
}

TEST_F(ProgramTest, FindsFunctions) {
  const fp8rt_program_function *found = nullptr;
  EXPECT_EQ(fp8rt_program_get_function(&info, "one", &found), FP8RT_OK);
  EXPECT_EQ(found, &functions[1]);
  EXPECT_EQ(fp8rt_program_get_function(&info, "two", &found),
            FP8RT_ERROR_NOT_FOUND);
  EXPECT_STREQ(fp8rt_get_last_error(),
               "expected a function of program 'test' ('add', 'one'), but got "
               "'two'");
}

TEST_F(ProgramTest, MakesStates) {
  fp8rt_state state = 0;
  EXPECT_EQ(fp8rt_program_create_state(&info, &state),
            FP8RT_ERROR_INVALID_ARGUMENT);
  info.state_manifest = R"({"version": 1, "slots": []})";
  ASSERT_EQ(fp8rt_program_create_state(&info, &state), FP8RT_OK);
  EXPECT_EQ(fp8rt_state_destroy(state), FP8RT_OK);
}

TEST_F(ProgramTest, SurvivesNull) {
  EXPECT_EQ(fp8rt_program_open(nullptr, nullptr), FP8RT_ERROR_INVALID_ARGUMENT);
  EXPECT_EQ(fp8rt_program_close(nullptr), FP8RT_OK);
  EXPECT_EQ(fp8rt_program_get_info(nullptr, nullptr),
            FP8RT_ERROR_INVALID_ARGUMENT);
  EXPECT_EQ(fp8rt_program_call(nullptr, nullptr, nullptr, 0, nullptr),
            FP8RT_ERROR_INVALID_ARGUMENT);
}
