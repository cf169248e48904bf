//===- ScalingStateFileTest.cpp - Saved states and threads ----------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What test/Runtime/scaling-state-file.py cannot show: saving and loading
// beside other threads, and under the sanitizers.
//
//===----------------------------------------------------------------------===//

#include "fp8/Runtime/ScalingState.h"

#include "gtest/gtest.h"

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <fstream>
#include <iterator>
#include <string>
#include <thread>
#include <unistd.h>

static const char kManifest[] = R"({"version": 1, "amax_history_len": 17,
  "slots": [{"name": "a", "format": "e4m3"}, {"name": "b", "format": "e5m2"}]})";

namespace {
class ScalingStateFile : public testing::Test {
protected:
  void SetUp() override {
    std::string pattern = testing::TempDir() + "fp8-state-XXXXXX";
    ASSERT_NE(::mkdtemp(pattern.data()), nullptr);
    directory = pattern;
    path = directory + "/state";
    ASSERT_EQ(fp8rt_state_create(kManifest, std::strlen(kManifest), &state),
              FP8RT_OK);
    ASSERT_EQ(fp8rt_state_get_rows(state, &rows), FP8RT_OK);
  }

  void TearDown() override {
    fp8rt_state_destroy(state);
    ::unlink(path.c_str());
    ::rmdir(directory.c_str());
  }

  std::string directory, path;
  fp8rt_state state = 0;
  fp8rt_state_rows rows;
};
} // namespace

TEST_F(ScalingStateFile, RoundTrips) {
  rows.amax[0] = 2;
  ASSERT_EQ(fp8rt_state_update(state), FP8RT_OK);
  ASSERT_EQ(fp8rt_state_save(state, path.c_str()), FP8RT_OK);
  fp8rt_state copy;
  ASSERT_EQ(fp8rt_state_create_from_file(path.c_str(), &copy), FP8RT_OK)
      << fp8rt_get_last_error();
  float scale;
  ASSERT_EQ(fp8rt_state_get_scale(copy, "a", &scale), FP8RT_OK);
  EXPECT_EQ(scale, 224);
  fp8rt_state_info info;
  ASSERT_EQ(fp8rt_state_get_info(copy, &info), FP8RT_OK);
  EXPECT_EQ(info.steps, 1);
  EXPECT_EQ(info.amax_history_len, 17);
  ASSERT_EQ(fp8rt_state_destroy(copy), FP8RT_OK);
}

/// A product's operand has the same amaxes whoever of its two products
/// quantizes it, and others than another operand.
TEST_F(ScalingStateFile, LoadsWhatAnotherProductRecorded) {
  auto create = [](const char *role, const char *operand, fp8rt_state &made) {
    std::string manifest = std::string(R"({"version": 1,
      "amax_history_len": 17, "slots": [{"name": "a", "format": "e4m3",
      "role": ")") + role + R"(", "operand": ")" +
                           operand + R"("}]})";
    return fp8rt_state_create(manifest.data(), manifest.size(), &made);
  };
  fp8rt_state saved, loading, other;
  ASSERT_EQ(create("wgrad", "activation", saved), FP8RT_OK);
  ASSERT_EQ(create("fprop", "activation", loading), FP8RT_OK);
  ASSERT_EQ(create("fprop", "weight", other), FP8RT_OK);
  ASSERT_EQ(fp8rt_state_set_scale(saved, "a", 8), FP8RT_OK);
  ASSERT_EQ(fp8rt_state_save(saved, path.c_str()), FP8RT_OK);
  EXPECT_EQ(fp8rt_state_load(loading, path.c_str(), FP8RT_LOAD_STRICT, nullptr),
            FP8RT_OK)
      << fp8rt_get_last_error();
  float scale;
  ASSERT_EQ(fp8rt_state_get_scale(loading, "a", &scale), FP8RT_OK);
  EXPECT_EQ(scale, 8);
  EXPECT_EQ(fp8rt_state_load(other, path.c_str(), 0, nullptr),
            FP8RT_ERROR_MISMATCH);
  EXPECT_EQ(fp8rt_get_last_error(), path + ": slot 'a': expected operand "
                                           "'weight', but got 'activation'");
  for (fp8rt_state made : {saved, loading, other})
    fp8rt_state_destroy(made);
}

TEST_F(ScalingStateFile, MakesNoStateOfABadFile) {
  fp8rt_state copy = 7;
  EXPECT_EQ(fp8rt_state_create_from_file(path.c_str(), &copy),
            FP8RT_ERROR_FILE);
  EXPECT_EQ(fp8rt_get_last_error(),
            path + ": cannot open: No such file or directory");
  EXPECT_EQ(copy, 7u);
}

// Wherever it is: in keys, the version, shapes, the manifest or values.
TEST_F(ScalingStateFile, NoticesEachBit) {
  ASSERT_EQ(fp8rt_state_save(state, path.c_str()), FP8RT_OK);
  std::ifstream in(path, std::ios::binary);
  std::string bytes{std::istreambuf_iterator<char>(in), {}};
  ASSERT_GT(bytes.size(), 500u);
  int file = ::open(path.c_str(), O_WRONLY | O_CLOEXEC);
  ASSERT_GE(file, 0);
  auto put = [&](size_t place, char byte) {
    ASSERT_EQ(::pwrite(file, &byte, 1, static_cast<off_t>(place)), 1);
  };
  for (size_t bit = 0; bit < 8 * bytes.size(); ++bit) {
    put(bit / 8, static_cast<char>(bytes[bit / 8] ^ (1 << bit % 8)));
    EXPECT_NE(fp8rt_state_load(state, path.c_str(), 0, nullptr), FP8RT_OK)
        << "bit " << bit % 8 << " of byte " << bit / 8;
    put(bit / 8, bytes[bit / 8]);
  }
  ::close(file);
  EXPECT_EQ(fp8rt_state_load(state, path.c_str(), 0, nullptr), FP8RT_OK);
}

TEST_F(ScalingStateFile, RefusesUnknownFlags) {
  EXPECT_EQ(fp8rt_state_load(state, path.c_str(), 2, nullptr),
            FP8RT_ERROR_INVALID_ARGUMENT);
  EXPECT_STREQ(fp8rt_get_last_error(),
               "expected flags to be 0 or FP8RT_LOAD_STRICT, but got 2");
}

TEST_F(ScalingStateFile, IsWholeBesideAnotherThread) {
  ASSERT_EQ(fp8rt_state_save(state, path.c_str()), FP8RT_OK);
  std::atomic<bool> stop{false};
  std::thread updater([&] {
    while (!stop) {
      fp8rt_status status = fp8rt_state_update(state);
      EXPECT_TRUE(status == FP8RT_OK || status == FP8RT_ERROR_BUSY);
      // Nobody waits for a state that is busy: leave the others a turn, which
      // they may not get for long on a machine with other work.
      std::this_thread::sleep_for(std::chrono::microseconds(20));
    }
  });
  int saved = 0, loaded = 0;
  for (int attempt = 0; attempt < 100'000 && (saved < 20 || loaded < 20);
       ++attempt) {
    fp8rt_status save = fp8rt_state_save(state, path.c_str());
    fp8rt_status load =
        fp8rt_state_load(state, path.c_str(), FP8RT_LOAD_STRICT, nullptr);
    ASSERT_TRUE(save == FP8RT_OK || save == FP8RT_ERROR_BUSY);
    ASSERT_TRUE(load == FP8RT_OK || load == FP8RT_ERROR_BUSY);
    saved += save == FP8RT_OK;
    loaded += load == FP8RT_OK;
  }
  stop = true;
  updater.join();
  EXPECT_GE(saved, 20);
  EXPECT_GE(loaded, 20);
}
