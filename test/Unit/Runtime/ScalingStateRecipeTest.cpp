//===- ScalingStateRecipeTest.cpp - States of recipes from outside --------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The runtime knows one recipe. Of any other it keeps the options and the
// words.
//
//===----------------------------------------------------------------------===//

#include "fp8/Runtime/ScalingState.h"

#include "gtest/gtest.h"

#include <cmath>
#include <cstdlib>
#include <limits>
#include <string>
#include <unistd.h>

static const char kRecipe[] =
    R"("recipe": "acme.ema", "words": 2, "decay": 0.5, "warmup": 3,
       "mode": "slow", "strict": true)";

static std::string makeManifest(const std::string &recipe) {
  return R"({"version": 1, "slots": [{"name": "a", "format": "e4m3"},
             {"name": "b", "format": "e5m2"}], )" +
         recipe + "}";
}

static fp8rt_status create(const std::string &recipe, fp8rt_state &state) {
  std::string manifest = makeManifest(recipe);
  return fp8rt_state_create(manifest.data(), manifest.size(), &state);
}

static void expectRefused(const std::string &recipe, const char *message) {
  fp8rt_state state;
  EXPECT_EQ(create(recipe, state), FP8RT_ERROR_INVALID_MANIFEST);
  EXPECT_STREQ(fp8rt_get_last_error(), message);
}

namespace {
class ScalingStateRecipe : public testing::Test {
protected:
  void SetUp() override {
    std::string pattern = testing::TempDir() + "fp8-state-XXXXXX";
    ASSERT_NE(::mkdtemp(pattern.data()), nullptr);
    directory = pattern;
    path = directory + "/state";
    ASSERT_EQ(create(kRecipe, state), FP8RT_OK) << fp8rt_get_last_error();
    ASSERT_EQ(fp8rt_state_get_rows(state, &rows), FP8RT_OK);
  }

  void TearDown() override {
    fp8rt_state_destroy(state);
    ::unlink(path.c_str());
    ::rmdir(directory.c_str());
  }

  void expectMismatch(const std::string &recipe, const std::string &message) {
    fp8rt_state other;
    ASSERT_EQ(create(recipe, other), FP8RT_OK) << fp8rt_get_last_error();
    EXPECT_EQ(fp8rt_state_load(other, path.c_str(), 0, nullptr),
              FP8RT_ERROR_MISMATCH);
    EXPECT_EQ(fp8rt_get_last_error(), path + ": " + message);
    fp8rt_state_destroy(other);
  }

  std::string directory, path;
  fp8rt_state state = 0;
  fp8rt_state_rows rows;
};
} // namespace

TEST_F(ScalingStateRecipe, KeepsOptionsAndWords) {
  fp8rt_state_info info;
  ASSERT_EQ(fp8rt_state_get_info(state, &info), FP8RT_OK);
  EXPECT_STREQ(info.recipe,
               "acme.ema,decay=0.5,mode=slow,strict=true,warmup=3");
  EXPECT_EQ(info.amax_history_len, 0);
  EXPECT_EQ(info.reduce_amax, 1);
  EXPECT_EQ(rows.num_words, 2);
  for (int i = 0; i < 4; ++i)
    EXPECT_EQ(rows.words[i], 0);

  // The manifest that it prints makes the same state.
  std::string manifest = info.manifest;
  fp8rt_state again;
  ASSERT_EQ(fp8rt_state_create(manifest.data(), manifest.size(), &again),
            FP8RT_OK);
  ASSERT_EQ(fp8rt_state_get_info(again, &info), FP8RT_OK);
  EXPECT_EQ(info.manifest, manifest);
  fp8rt_state_destroy(again);
}

TEST_F(ScalingStateRecipe, LeavesTheUpdateToTheProgram) {
  rows.amax[0] = 2;
  EXPECT_EQ(fp8rt_state_update(state), FP8RT_ERROR_INVALID_ARGUMENT);
  EXPECT_STREQ(fp8rt_get_last_error(),
               "expected a state of the recipe delayed, but got one of "
               "'acme.ema', whose update only its program knows: call "
               "fp8rt_program_update_state");
  EXPECT_EQ(rows.amax[0], 2);
  float history[1];
  for (fp8rt_status status : {fp8rt_state_get_history(state, "a", history, 1),
                              fp8rt_state_set_history(state, "a", history, 1),
                              fp8rt_state_get_histories(state, history, 0)}) {
    EXPECT_EQ(status, FP8RT_ERROR_INVALID_ARGUMENT);
    EXPECT_STREQ(fp8rt_get_last_error(),
                 "expected a state of the recipe delayed, but got one of "
                 "'acme.ema', which has no amax history");
  }
  // Frozen, there is none.
  ASSERT_EQ(fp8rt_state_freeze(state), FP8RT_OK);
  rows.amax[0] = 3;
  EXPECT_EQ(fp8rt_state_update(state), FP8RT_OK);
  EXPECT_EQ(rows.amax[0], 0);
  ASSERT_EQ(fp8rt_state_unfreeze(state), FP8RT_OK);
  EXPECT_EQ(rows.amax[0], 2);
}

TEST_F(ScalingStateRecipe, SetsWords) {
  int32_t words[2] = {-5, 6};
  ASSERT_EQ(fp8rt_state_set_words(state, "b", words, 2), FP8RT_OK);
  EXPECT_EQ(rows.words[1], 0);
  EXPECT_EQ(rows.words[2], -5);
  EXPECT_EQ(rows.words[3], 6);
  int32_t read[2] = {0, 0};
  ASSERT_EQ(fp8rt_state_get_words(state, "b", read, 2), FP8RT_OK);
  EXPECT_EQ(read[0], -5);
  EXPECT_EQ(read[1], 6);
  for (fp8rt_status status : {fp8rt_state_set_words(state, "b", words, 3),
                              fp8rt_state_get_words(state, "b", read, 3)}) {
    EXPECT_EQ(status, FP8RT_ERROR_INVALID_ARGUMENT);
    EXPECT_STREQ(fp8rt_get_last_error(), "expected length to be 2, but got 3");
  }
  EXPECT_EQ(fp8rt_state_set_words(state, "c", words, 2), FP8RT_ERROR_NOT_FOUND);
}

TEST_F(ScalingStateRecipe, SavesAndLoads) {
  for (int i = 0; i < 4; ++i)
    rows.words[i] = i - 2;
  // Nobody here knows what a scale may be.
  rows.amax[1] = 7;
  ASSERT_EQ(fp8rt_state_set_scale(state, "b", 0.25f), FP8RT_OK);
  ASSERT_EQ(fp8rt_state_save(state, path.c_str()), FP8RT_OK);

  fp8rt_state copy;
  ASSERT_EQ(fp8rt_state_create_from_file(path.c_str(), &copy), FP8RT_OK)
      << fp8rt_get_last_error();
  fp8rt_state_rows copied;
  ASSERT_EQ(fp8rt_state_get_rows(copy, &copied), FP8RT_OK);
  for (int i = 0; i < 4; ++i)
    EXPECT_EQ(copied.words[i], i - 2);
  EXPECT_EQ(copied.amax[1], 7);
  EXPECT_EQ(copied.scale[1], 0.25f);
  EXPECT_EQ(copied.scale_inv[1], 4);

  ASSERT_EQ(fp8rt_state_reset_slot(copy, "a"), FP8RT_OK);
  EXPECT_EQ(copied.words[0], 0);
  EXPECT_EQ(copied.words[1], 0);
  EXPECT_EQ(copied.words[3], 1);
  fp8rt_load_report report;
  ASSERT_EQ(fp8rt_state_load(copy, path.c_str(), FP8RT_LOAD_STRICT, &report),
            FP8RT_OK);
  EXPECT_EQ(report.amax_history_len, 0);
  EXPECT_EQ(copied.words[0], -2);
  fp8rt_state_destroy(copy);
}

TEST_F(ScalingStateRecipe, RefusesFilesOfAnother) {
  ASSERT_EQ(fp8rt_state_save(state, path.c_str()), FP8RT_OK);
  expectMismatch(R"("amax_history_len": 4)",
                 "expected the recipe 'delayed', but got 'acme.ema'");
  expectMismatch(R"("recipe": "acme.ema", "words": 2, "decay": 0.25,
                     "warmup": 3, "mode": "slow", "strict": true)",
                 "expected decay to be 0.25, but got 0.5");
  expectMismatch(R"("recipe": "acme.ema", "words": 2, "decay": 0.5,
                     "warmup": 3, "mode": "slow", "strict": true, "new": 1)",
                 "expected new to be 1, but got none");
  expectMismatch(R"("recipe": "acme.ema", "words": 2, "decay": 0.5,
                     "warmup": 3, "mode": "slow")",
                 "expected strict to be none, but got true");
  expectMismatch(R"("recipe": "acme.ema", "words": 3, "decay": 0.5,
                     "warmup": 3, "mode": "slow", "strict": true)",
                 "expected words to be 3, but got 2");
}

TEST(ScalingStateRecipes, RefusesBadManifests) {
  expectRefused(R"("recipe": "acme.ema")",
                "manifest: expected the key 'words', but it is missing");
  expectRefused(R"("recipe": "", "words": 1)",
                "manifest: expected recipe to be not empty, but got \"\"");
  expectRefused(R"("recipe": 1)",
                "manifest: expected recipe to be a string without NUL, but got "
                "1");
  for (const char *words : {"-1", "1048577", "1.5", "\"1\""})
    expectRefused(std::string(R"("recipe": "acme.ema", "words": )") + words,
                  (std::string("manifest: expected words to be an integer in "
                               "0..1048576, but got ") +
                   words)
                      .c_str());
  expectRefused(R"("recipe": "acme.ema", "words": 1, "table": [1])",
                "manifest: expected table to be true or false, a number or a "
                "string, but got [1]");
  // A program that was compiled with another idea of the words.
  expectRefused(R"("amax_history_len": 16, "words": 16)",
                "manifest: expected words to be 17, but got 16");
}
