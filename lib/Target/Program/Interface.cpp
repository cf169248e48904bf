//===- Interface.cpp - What a compiled program offers ---------------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "fp8/Target/Program/Interface.h"

#include "fp8/IR/FP8Dialect.h"
#include "fp8/Target/NVPTX/PTX.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/JSON.h"

using namespace mlir;
using namespace mlir::fp8;

std::string fp8::makeIdentifier(StringRef text) {
  static const llvm::StringSet<> keywords = {
      "alignas",   "alignof",  "and",      "asm",      "auto",      "bool",
      "break",     "case",     "catch",    "char",     "class",     "compl",
      "const",     "continue", "decltype", "default",  "delete",    "do",
      "double",    "else",     "enum",     "explicit", "export",    "extern",
      "false",     "float",    "for",      "friend",   "goto",      "if",
      "inline",    "int",      "long",     "mutable",  "namespace", "new",
      "noexcept",  "not",      "nullptr",  "operator", "or",        "private",
      "protected", "public",   "register", "restrict", "return",    "short",
      "signed",    "sizeof",   "static",   "struct",   "switch",    "template",
      "this",      "throw",    "true",     "try",      "typedef",   "typeid",
      "typename",  "typeof",   "union",    "unsigned", "using",     "virtual",
      "void",      "volatile", "while",    "xor"};
  std::string name;
  for (char c : text)
    name += llvm::isAlnum(c) ? c : '_';
  if (name.empty() || llvm::isDigit(name.front()))
    name = "_" + name;
  return keywords.contains(name) ? name + "_" : name;
}

int64_t fp8::getAlignment(const ProgramInterface &program, const Port &port) {
  // Bulk copies of a tensor's tiles.
  if (program.isOnGPU() && port.isShaped())
    return 16;
  return static_cast<int64_t>(fp8rt::getByteWidth(port.dtype));
}

std::string fp8::getInfoSymbol(const ProgramInterface &program) {
  return program.name + "_program";
}

FailureOr<ProgramInterface>
ProgramInterface::create(ModuleOp module, StringRef name,
                         const PipelineOptions &options, func::FuncOp entry) {
  ProgramInterface program;
  program.name = makeIdentifier(name);
  program.target = options.target;
  program.recipe = options.recipe;
  if (program.isOnGPU())
    program.kernelFormat = options.kernelFormat != "auto" ? options.kernelFormat
                           : findPtxas().empty()          ? "ptx"
                                                          : "cubin";
  llvm::StringSet<> symbols = {getInfoSymbol(program)};
  for (auto function : module.getOps<func::FuncOp>()) {
    if (!function.isPublic() || function.isExternal() ||
        (entry && function != entry))
      continue;
    FailureOr<Signature> signature = getSignature(function);
    if (failed(signature))
      return failure();
    std::string symbol =
        program.name + "_" + makeIdentifier(function.getSymName());
    if (!symbols.insert(symbol).second)
      return function.emitError()
             << "expected names of functions to differ in C too, but got '"
             << symbol << "' twice";
    function->setAttr(LLVM::LLVMDialect::getEmitCWrapperAttrName(),
                      UnitAttr::get(module->getContext()));
    program.functions.push_back({std::move(*signature), std::move(symbol)});
  }
  if (program.functions.empty())
    return module.emitError(
        "expected a public function with a body, but there is none");
  return program;
}

/// How many arguments MLIR's C interface of a function has, of those that were
/// written: one more for results in memory.
static size_t countArguments(const Signature &signature) {
  bool inStruct =
      signature.results.size() > 1 ||
      (signature.results.size() == 1 && signature.results[0].isShaped());
  return inStruct + signature.arguments.size();
}

LogicalResult ProgramInterface::complete(ModuleOp module) {
  if (auto manifest = module->getAttrOfType<StringAttr>(kStateManifestAttrName))
    stateManifest = manifest.str();
  if (!stateManifest.empty())
    if (auto value = llvm::json::parse(stateManifest))
      if (const auto *slots = value->getAsObject()->getArray("slots"))
        numSlots = slots->size();
  if (auto slots = module->getAttrOfType<ArrayAttr>(kStatsSlotsAttrName))
    for (auto slot : slots.getAsRange<StringAttr>())
      statsSlots.push_back(slot.str());
  for (ProgramFunction &function : functions) {
    std::string symbol = "_mlir_ciface_" + function.signature.entry;
    auto compiled = module.lookupSymbol<LLVM::LLVMFuncOp>(symbol);
    if (!compiled)
      return module.emitError()
             << "expected function '" << symbol << "' after the pipeline";
    size_t added = compiled.getNumArguments() -
                   countArguments(function.signature) - isOnGPU();
    function.signature.takesState = added != 0;
  }
  return success();
}
