//===- RecipeBase.td - What recipes are made of ------------*- tablegen -*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A recipe is an attribute whose parameters are keys: each says here, once, what
// it is called, which values it takes and which one it has unless told. The
// attribute's checks, the text of command lines and recipe files, and saved
// states follow from that. Dialects outside the project define theirs with these
// classes too.
//
//===----------------------------------------------------------------------===//

#ifndef FP8_IR_RECIPEBASE_TD
#define FP8_IR_RECIPEBASE_TD

include "fp8/IR/FP8Interfaces.td"
include "mlir/IR/AttrTypeBase.td"
include "mlir/IR/EnumAttr.td"

//===----------------------------------------------------------------------===//
// Keys
//===----------------------------------------------------------------------===//

/// What the schema says of a key, as a fp8rt::RecipeKey holds it. `inState`: the
/// values in a scaling state depend on it; 0 for a key that is about an operand
/// or a product, in which tensors of one state may differ.
class FP8_Key<string keyKind, string keyDefault, bit keyInState = 1> {
  string kind = keyKind;
  string text = keyDefault;
  string low = "0";
  string high = "0";
  string words = "";
  bit inState = keyInState;
}

class FP8_BoolKey<bit default, bit inState = 1>
    : AttrOrTypeParameter<"bool", "">,
      FP8_Key<"Bool", !if(default, "true", "false"), inState> {
  let defaultValue = !if(default, "true", "false");
}

class FP8_IntKey<int default, int least, int most, bit inState = 1>
    : AttrOrTypeParameter<"int64_t", least # " to " # most>,
      FP8_Key<"Integer", !cast<string>(default), inState> {
  let defaultValue = !cast<string>(default);
  let low = !cast<string>(least);
  let high = !cast<string>(most);
}

/// An f32 that prints so that it parses back to the same bits. Numbers are
/// written as in C++.
class FP8_FloatKey<string default, string least, string most, string desc = "",
                   bit inState = 1>
    : AttrOrTypeParameter<"::mlir::fp8::Float32", desc>,
      FP8_Key<"Float", default, inState> {
  let defaultValue = "::mlir::fp8::Float32{static_cast<float>(" # default # ")}";
  let low = least;
  let high = most;
}

/// One of the words of `info`, whose case `default` is the default.
class FP8_EnumKey<EnumInfo info, string default, bit inState = 1>
    : EnumParameter<info>,
      FP8_Key<"Word",
              !head(!filter(case, info.enumerants,
                            !eq(case.symbol, default))).str, inState> {
  let summary = "";
  let defaultValue =
      info.cppNamespace # "::" # info.className # "::" # default;
  let words = !interleave(!foreach(case, info.enumerants, case.str), ", ");
}

/// A path, which has to be given.
class FP8_PathKey<string desc, bit inState = 1>
    : StringRefParameter<desc>, FP8_Key<"Path", "", inState> {
  let words = desc;
}

//===----------------------------------------------------------------------===//
// Recipes
//===----------------------------------------------------------------------===//

/// The recipe `#dialect.mnemonic`; its name is the mnemonic in this dialect, and
/// `dialect.mnemonic` in others. All parameters are keys. `overridden` are the
/// methods of the interface that it does not take the default of.
class FP8_RecipeAttr<Dialect dialect, string name, string attrMnemonic,
                     list<string> overridden = [], list<Trait> traits = []>
    : AttrDef<dialect, name,
        [DeclareAttrInterfaceMethods<FP8_RecipeAttrInterface, overridden>]
        # traits> {
  let mnemonic = attrMnemonic;

  /// Set to write `verifyKeysTogether`, for what no key says alone.
  bit hasKeysVerifier = 0;
  /// More of the class.
  code extraRecipeDeclaration = [{}];

  string recipeName =
      !if(!eq(dialect.name, "fp8"), "", dialect.name # ".") # attrMnemonic;
  list<int> positions = !range(!size(parameters));
  list<FP8_Key> keys = !foreach(i, positions,
                                !getdagarg<FP8_Key>(parameters, i));
  list<string> keyNames = !foreach(i, positions, !getdagname(parameters, i));
  // Keys of the manifest of a state that are not the recipe's.
  assert !empty(!filter(key, keyNames, !or(!eq(key, "version"),
                                           !eq(key, "recipe"),
                                           !eq(key, "slots"),
                                           !eq(key, "uses"),
                                           !eq(key, "words")))),
         "expected no key version, recipe, slots, uses or words";

  /// The initializers of the fp8rt::RecipeKeys.
  string schema = !interleave(!foreach(i, positions,
      "{\"" # keyNames[i] # "\", ::fp8rt::RecipeKey::" # keys[i].kind # ", "
      # keys[i].low # ", " # keys[i].high # ", \"" # keys[i].words # "\", "
      # !if(!eq(keys[i].kind, "Path"), "nullptr", "\"" # keys[i].text # "\"")
      # ", " # !if(keys[i].inState, "true", "false") # "}"), ",\n    ");

  /// The parameters of `verify` and their names.
  string declared = !interleave(!foreach(i, positions,
      ", " # !getdagarg<AttrOrTypeParameter>(parameters, i).cppType # " "
      # keyNames[i]), "");
  string named = !interleave(!foreach(key, keyNames, ", " # key), "");
  bit hasKeys = !not(!empty(keyNames));
  bit hasState = !not(!empty(!filter(method, overridden,
                                     !eq(method, "getStateRecipe"))));
  /// What the recipe of a state has for each key.
  string stateValues = !interleave(!foreach(i, positions,
      ", " # !if(keys[i].inState, "std::get<" # i # ">(values)",
                 !getdagarg<AttrOrTypeParameter>(parameters, i).defaultValue)),
      "");
  bit needsValue = !not(!empty(!filter(key, keys, !eq(key.kind, "Path"))));

  let assemblyFormat = !if(hasKeys,
      !if(needsValue, "`<` struct(params) `>`", "(`<` struct(params)^ `>`)?"),
      "");
  let genVerifyDecl = hasKeys;

  code emitErrorType = "::llvm::function_ref<::mlir::InFlightDiagnostic()>";
  let extraClassDeclaration = !if(hasKeysVerifier,
      "static ::llvm::LogicalResult verifyKeysTogether(" # emitErrorType
      # " emitError" # declared # ");\n", "") # extraRecipeDeclaration;
  let extraClassDefinition = "const ::fp8rt::RecipeSchema &$cppClass::getSchema() {\n"
      # !if(hasKeys, "  static constexpr ::fp8rt::RecipeKey keys[] = {\n    "
                     # schema # "};\n", "")
      # "  static constexpr ::fp8rt::RecipeSchema schema{\"" # recipeName
      # "\", " # !if(hasKeys, "keys", "nullptr") # ", " # !size(keyNames)
      # "};\n  return schema;\n}\n"
      # "::llvm::SmallVector<::fp8rt::RecipeValue> $cppClass::getSettings() const {\n"
      # !if(hasKeys,
            "  return std::apply([](const auto &...values) {\n"
            # "    return ::llvm::SmallVector<::fp8rt::RecipeValue>{\n"
            # "        ::mlir::fp8::makeRecipeValue(values)...};\n"
            # "  }, getImpl()->getAsKey());\n", "  return {};\n") # "}\n"
      # !if(hasState,
            "::mlir::fp8::RecipeAttrInterface $cppClass::getStateRecipe() const {\n"
            # "  auto values = getImpl()->getAsKey();\n"
            # "  return get(getContext()" # stateValues # ");\n}\n", "")
      # !if(hasKeys,
            "::llvm::LogicalResult $cppClass::verify(" # emitErrorType
            # " emitError" # declared # ") {\n"
            # "  if (::llvm::failed(::mlir::fp8::verifyKeys(emitError, getSchema(), {"
            # !interleave(!foreach(key, keyNames,
                  "::mlir::fp8::makeRecipeValue(" # key # ")"), ", ")
            # "})))\n    return ::llvm::failure();\n"
            # !if(hasKeysVerifier,
                  "  return verifyKeysTogether(emitError" # named # ");\n",
                  "  return ::llvm::success();\n") # "}\n", "");
}

/// A recipe whose scales come from a scaling state that learns.
class FP8_StatefulRecipeAttr<Dialect dialect, string name, string attrMnemonic,
                             list<string> overridden = [],
                             list<string> overriddenOfState = []>
    : FP8_RecipeAttr<dialect, name, attrMnemonic,
        !listconcat(["getStateRecipe"], overridden),
        [DeclareAttrInterfaceMethods<FP8_StateUpdateAttrInterface,
                                     overriddenOfState>]>;

#endif // FP8_IR_RECIPEBASE_TD
