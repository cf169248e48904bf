//===- FormerNames.cpp - What things were called before -------------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "FormerNames.h"
#include "fp8/IR/FP8Dialect.h"
#include "fp8/IR/FP8Ops.h"
#include "llvm/ADT/StringSwitch.h"

using namespace mlir;
using namespace mlir::fp8;

static void warnOfName(OpAsmParser &parser, llvm::SMLoc place, StringRef former,
                       StringRef name) {
  emitWarning(parser.getEncodedSourceLoc(place))
      << "'" << former << "' is called '" << name << "' now";
}

//===----------------------------------------------------------------------===//
// Operations
//===----------------------------------------------------------------------===//

/// Parses an operation whose mnemonic is a former one as an `Op`.
template <typename Op>
static ParseResult parseFormer(OpAsmParser &parser, OperationState &state) {
  warnOfName(parser, parser.getNameLoc(), state.name.getStringRef(),
             Op::getOperationName());
  state.name = OperationName(Op::getOperationName(), parser.getContext());
  return Op::parse(parser, state);
}

std::optional<Dialect::ParseOpHook>
FP8Dialect::getParseOperationHook(StringRef name) const {
  if (name == "fp8.stream")
    return ParseOpHook(parseFormer<FusionOp>);
  if (name == "fp8.matmul_group")
    return ParseOpHook(parseFormer<SiblingMatmulsOp>);
  return std::nullopt;
}

//===----------------------------------------------------------------------===//
// Attributes
//===----------------------------------------------------------------------===//

ParseResult fp8::parseUndefPadding(OpAsmParser &parser, UnitAttr &flag) {
  llvm::SMLoc place = parser.getCurrentLocation();
  bool isFormer = succeeded(parser.parseOptionalKeyword("unspecified_rest"));
  if (isFormer)
    warnOfName(parser, place, "unspecified_rest", "undef_padding");
  if (isFormer || succeeded(parser.parseOptionalKeyword("undef_padding")))
    flag = parser.getBuilder().getUnitAttr();
  return success();
}

void fp8::printUndefPadding(OpAsmPrinter &printer, Operation *, UnitAttr flag) {
  if (flag)
    printer << " undef_padding";
}

ParseResult fp8::parseNamedAttributes(OpAsmParser &parser,
                                      NamedAttrList &attributes) {
  llvm::SMLoc place = parser.getCurrentLocation();
  NamedAttrList given;
  if (parser.parseOptionalAttrDict(given))
    return failure();
  for (NamedAttribute attribute : given) {
    StringRef former = attribute.getName();
    StringRef name = llvm::StringSwitch<StringRef>(former)
                         .Case("expected_count", "expected_m")
                         .Case("tensor_core_sums", "tensor_core_accumulation")
                         .Default(former);
    if (name != former)
      warnOfName(parser, place, former, name);
    attributes.append(name, attribute.getValue());
  }
  return success();
}

void fp8::printNamedAttributes(OpAsmPrinter &printer, Operation *op,
                               DictionaryAttr) {
  // The other inherent ones are keywords of their own.
  NamedAttrList printed(op->getDiscardableAttrDictionary());
  if (Attribute expected = op->getInherentAttr("expected_m").value_or(nullptr))
    printed.append("expected_m", expected);
  printer.printOptionalAttrDict(printed.getAttrs());
}
