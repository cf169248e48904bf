//===- StateManifestTest.cpp - A state table for the runtime --------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "fp8/IR/StateManifest.h"

#include "fp8/Runtime/ScalingState.h"
#include "mlir/AsmParser/AsmParser.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/MLIRContext.h"

#include "gtest/gtest.h"

using namespace mlir;
using namespace mlir::fp8;

// The runtime is the judge: what it makes of the manifest is what the table
// says, with no default of its own in between.
TEST(StateManifestTest, MakesTheStateOfTheTable) {
  MLIRContext context;
  context.loadDialect<FP8Dialect>();
  auto table = cast<StateTableAttr>(parseAttribute(
      R"mlir(#fp8.state_table<#fp8.delayed<amax_history_len = 7,
          amax_compute_algo = most_recent, margin = -3, reduce_amax = false,
          compat = te_unfused, pow2 = true, initial = current>,
        [#fp8.slot<"l0.\22x\22" : f8E4M3FN, wgrad activation>,
         #fp8.slot<"l0.dy" : f8E5M2, dgrad gradient>]>)mlir",
      &context));
  Builder builder(&context);
  std::string manifest = getStateManifest(
      table, builder.getDictionaryAttr(builder.getNamedAttr(
                 "train", builder.getDenseI64ArrayAttr({0, 1}))));

  fp8rt_state state;
  ASSERT_EQ(fp8rt_state_create(manifest.data(), manifest.size(), &state),
            FP8RT_OK);
  fp8rt_state_info info;
  ASSERT_EQ(fp8rt_state_get_info(state, &info), FP8RT_OK);
  EXPECT_EQ(info.num_slots, 2);
  EXPECT_EQ(info.amax_history_len, 7);
  EXPECT_EQ(info.reduce_amax, 0);
  for (const char *setting :
       {R"("amax_compute_algo":"most_recent")", R"("margin":-3)",
        R"("compat":"te_unfused")", R"("pow2":true)", R"("initial":"current")",
        R"("uses":{"train":[0,1]})"})
    EXPECT_NE(StringRef(info.manifest).find(setting), StringRef::npos)
        << setting << " in " << info.manifest;
  fp8rt_state_slot slot;
  ASSERT_EQ(fp8rt_state_get_slot(state, 0, &slot), FP8RT_OK);
  EXPECT_STREQ(slot.name, "l0.\"x\"");
  EXPECT_STREQ(slot.format, "e4m3");
  EXPECT_STREQ(slot.role, "wgrad");
  EXPECT_STREQ(slot.operand, "activation");
  ASSERT_EQ(fp8rt_state_get_slot(state, 1, &slot), FP8RT_OK);
  EXPECT_STREQ(slot.name, "l0.dy");
  EXPECT_STREQ(slot.format, "e5m2");
  EXPECT_STREQ(slot.role, "dgrad");
  EXPECT_STREQ(slot.operand, "gradient");
  EXPECT_EQ(fp8rt_state_destroy(state), FP8RT_OK);
}
