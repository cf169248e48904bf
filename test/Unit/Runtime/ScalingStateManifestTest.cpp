//===- ScalingStateManifestTest.cpp - What a state is made of -------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "fp8/Runtime/ScalingState.h"

#include "gtest/gtest.h"

#include <string>

static std::string makeManifest(const std::string &slots,
                                const std::string &recipe = "") {
  return R"({"version": 1, "slots": [)" + slots + "]" +
         (recipe.empty() ? "" : ", " + recipe) + "}";
}

static fp8rt_status create(const std::string &manifest, fp8rt_state &state) {
  return fp8rt_state_create(manifest.data(), manifest.size(), &state);
}

static void expectError(const std::string &manifest,
                        const std::string &message) {
  fp8rt_state made = 7;
  EXPECT_EQ(create(manifest, made), FP8RT_ERROR_INVALID_MANIFEST);
  EXPECT_EQ(fp8rt_get_last_error(), message);
  EXPECT_EQ(made, 7u);
}

TEST(ScalingStateManifest, FillsInDefaults) {
  fp8rt_state state;
  ASSERT_EQ(create(makeManifest(R"({"name": "x", "format": "e4m3"})"), state),
            FP8RT_OK);
  fp8rt_state_info info;
  ASSERT_EQ(fp8rt_state_get_info(state, &info), FP8RT_OK);
  EXPECT_EQ(info.num_slots, 1);
  EXPECT_EQ(info.amax_history_len, 1024);
  EXPECT_EQ(info.steps, 0);
  EXPECT_EQ(info.frozen, 0);
  EXPECT_EQ(info.reduce_amax, 1);
  EXPECT_STREQ(
      info.manifest,
      R"({"amax_compute_algo":"max","amax_history_len":1024,)"
      R"("compat":"te_fused","initial":"auto","margin":0,"pow2":false,)"
      R"("recipe":"delayed","reduce_amax":true,"slots":[{"format":"e4m3","name":"x",)"
      R"("operand":"","role":""}],"version":1})");
  fp8rt_state_destroy(state);
}

TEST(ScalingStateManifest, AcceptsNoSlots) {
  fp8rt_state state;
  ASSERT_EQ(create(makeManifest(""), state), FP8RT_OK);
  fp8rt_state_rows rows;
  ASSERT_EQ(fp8rt_state_get_rows(state, &rows), FP8RT_OK);
  EXPECT_EQ(rows.num_slots, 0);
  EXPECT_EQ(fp8rt_state_update(state), FP8RT_OK);
  fp8rt_state_destroy(state);
}

TEST(ScalingStateManifest, RefusesBadManifests) {
  expectError("{",
              "expected the manifest to be JSON in UTF-8, but it is malformed "
              "at byte 2");
  expectError("[]", "manifest: expected an object, but got []");
  expectError("{}", "manifest: expected the key 'version', but it is missing");
  expectError(R"({"version": 2, "new": 0})",
              "manifest: expected version to be 1, but got 2");
  expectError(R"({"version": 1})",
              "manifest: expected the key 'slots', but it is missing");
  expectError(R"({"version": 1, "version": 1, "slots": []})",
              "expected keys to be unique, but got 'version' twice");
  expectError(R"({"version": 1, "slots": {}})",
              "manifest: expected slots to be an array, but got {}");
  expectError(makeManifest("", R"("length": 4)"),
              "manifest: expected the keys version, slots, recipe, words, "
              "uses, amax_history_len, amax_compute_algo, margin, reduce_amax, "
              "compat, pow2, initial, but got 'length'");
  std::string uses = "manifest: expected uses to be lists of slots, which are "
                     "integers from 0 to below 1, by functions, but got ";
  for (std::string bad : {"[]", "0", "null"})
    expectError(
        makeManifest(R"({"name": "x", "format": "e4m3"})", R"("uses": )" + bad),
        uses + bad);
  for (std::string bad : {"1", "-1", "0.5", "\"x\""})
    expectError(makeManifest(R"({"name": "x", "format": "e4m3"})",
                             R"("uses": {"f": [0, )" + bad + "]}"),
                uses + bad);
}

TEST(ScalingStateManifest, KnowsWhichFunctionUsesWhat) {
  fp8rt_state state;
  ASSERT_EQ(create(makeManifest(R"({"name": "x", "format": "e4m3"})",
                                R"("uses": {"f": [0], "g": []})"),
                   state),
            FP8RT_OK);
  fp8rt_state_info info;
  ASSERT_EQ(fp8rt_state_get_info(state, &info), FP8RT_OK);
  EXPECT_NE(std::string(info.manifest).find(R"("uses":{"f":[0],"g":[]})"),
            std::string::npos)
      << info.manifest;
  fp8rt_state_destroy(state);
}

TEST(ScalingStateManifest, RefusesBadRecipes) {
  auto expect = [](const std::string &recipe, const std::string &message) {
    expectError(makeManifest("", recipe), "manifest: expected " + message);
  };
  for (const char *bad : {"0", "65537", "18446744073709551615", "1.0", "\"4\""})
    expect(std::string(R"("amax_history_len": )") + bad,
           std::string("amax_history_len to be an integer in 1..65536, but "
                       "got ") +
               bad);
  expect(R"("margin": -65)", "margin to be an integer in -64..64, but got -65");
  expect(R"("pow2": 1)", "pow2 to be true or false, but got 1");
  expect(R"("reduce_amax": null)",
         "reduce_amax to be true or false, but got null");
  expect(R"("amax_compute_algo": "min")",
         "amax_compute_algo to be one of max, most_recent, but got \"min\"");
  expect(R"("compat": 0)",
         "compat to be one of te_fused, te_unfused, flax, but got 0");
  expect(R"("compat": "flax", "margin": 1)",
         "margin to be 0 with compat flax, which knows no other, but got 1");
  expect(R"("compat": "flax", "amax_compute_algo": "most_recent")",
         "amax_compute_algo to be max with compat flax, which knows no other, "
         "but got \"most_recent\"");
}

TEST(ScalingStateManifest, RefusesBadSlots) {
  auto expect = [](const std::string &slots, const std::string &message) {
    expectError(makeManifest(slots), "manifest" + message);
  };
  expect("1", " slot 0: expected an object, but got 1");
  expect(R"({"format": "e4m3"})",
         " slot 0: expected the key 'name', but it is missing");
  expect(R"({"name": "x"})",
         " slot 0: expected the key 'format', but it is missing");
  expect(R"({"name": "", "format": "e4m3"})",
         " slot 0: expected name to be not empty, but got \"\"");
  expect(R"({"name": "a\u0000b", "format": "e4m3"})",
         " slot 0: expected name to be a string without NUL, but got "
         "\"a\\u0000b\"");
  expect(R"({"name": "x", "format": "f16"})",
         " slot 0 'x': expected format to be one of e4m3, e5m2, e2m1, but got "
         "\"f16\"");
  expect(R"({"name": "x", "format": "e4m3", "role": 1})",
         " slot 0 'x': expected role to be a string without NUL, but got 1");
  expect(
      R"({"name": "x", "format": "e4m3", "kind": 1})",
      " slot 0: expected the keys name, format, role, operand, cache, but got "
      "'kind'");
  expect(
      R"({"name": "x", "format": "e4m3", "cache": -1})",
      " slot 0 'x': expected cache to be an integer in 0..1099511627776, but "
      "got -1");
  expect(R"({"name": "x", "format": "e4m3"}, {"name": "x", "format": "e4m3"})",
         ": expected unique names of slots, but got 'x' twice");
}
