//===- Acme.td - Recipes of another project ----------------*- tablegen -*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ACME_TD
#define ACME_TD

include "fp8/IR/FP8Recipes.td"

def Acme_Dialect : Dialect {
  let name = "acme";
  let cppNamespace = "::acme";
  let useDefaultAttributePrinterParser = 1;
  let extraClassDeclaration = "void registerAttributes();";
}

/// Per-tensor scaling by powers of two that leave `headroom` bits unused. It is
/// the rule of its scales itself.
def Acme_PowersAttr : FP8_RecipeAttr<Acme_Dialect, "Powers", "powers",
    ["getScaleRule"], [DeclareAttrInterfaceMethods<FP8_ScaleRuleAttrInterface>]> {
  let parameters = (ins FP8_IntKey<1, 0, 8>:$headroom,
                        FP8_E4M3FormatKey:$format);
}

/// Per-tensor scaling by a maximum that decays from step to step.
def Acme_MovingMaxAttr : FP8_StatefulRecipeAttr<Acme_Dialect, "MovingMax",
    "moving_max", [], ["getNumWords"]> {
  let parameters = (ins FP8_FloatKey<"0.5", "0", "1">:$decay,
                        FP8_FormatKey:$format);
}

#endif // ACME_TD
