//===- Interface.cpp - What a compiled program offers ---------------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "fp8/Program/Interface.h"

#include "fp8/IR/FP8Dialect.h"
#include "fp8/Runtime/ScalingState.h"
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

int64_t fp8::getAlignment(const ProgramInterface &program,
                          const ValueInfo &info) {
  // Bulk copies of a tensor's tiles, and loads of neighbours. A single element
  // has none, and is often one of several: a scale, an amax.
  bool isSingle =
      llvm::all_of(info.shape, [](int64_t size) { return size == 1; });
  if (program.isOnGPU() && info.isShaped() && !isSingle)
    return 16;
  return static_cast<int64_t>(fp8rt::getByteWidth(info.dtype));
}

std::string fp8::getInfoSymbol(const ProgramInterface &program) {
  return program.name + "_program";
}

std::string fp8::getUpdateSymbol(const ProgramInterface &program) {
  return program.name + "_update_state";
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
                           : isForEmulator() || findPtxas().empty() ? "ptx"
                                                                    : "cubin";
  llvm::StringSet<> symbols = {getInfoSymbol(program)};
  for (auto function : module.getOps<func::FuncOp>()) {
    if (!isEntry(function) || (entry && function != entry))
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
    program.functions.push_back(
        {std::move(*signature), std::move(symbol), /*numArguments=*/0});
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

LogicalResult ProgramInterface::completeState(ModuleOp module) {
  auto manifest = module->getAttrOfType<StringAttr>(kStateManifestAttrName);
  if (!manifest)
    return success();
  stateManifest = manifest.str();
  // The runtime is asked what it makes of it, since it is that which has to
  // agree with the program.
  fp8rt_state state;
  fp8rt_state_info info;
  fp8rt_state_rows rows;
  if (fp8rt_state_create(stateManifest.data(), stateManifest.size(), &state) !=
      FP8RT_OK)
    return module.emitError() << fp8rt_get_last_error();
  fp8rt_state_get_info(state, &info);
  fp8rt_state_get_rows(state, &rows);
  numSlots = info.num_slots;
  numWords = rows.num_words;
  stateRecipe = info.recipe;
  fp8rt_state_destroy(state);

  auto update = module->getAttrOfType<FlatSymbolRefAttr>(kStateUpdateAttrName);
  if (!update ||
      !module.lookupSymbol("_mlir_ciface_" + update.getValue().str()))
    return module.emitError()
           << "expected '" << kStateUpdateAttrName
           << "' to be a function, in a program with scaling state";
  stateUpdate = update.getValue().str();
  for (const ProgramFunction &function : functions)
    if (function.symbol == getUpdateSymbol(*this))
      return module.emitError()
             << "expected no function '" << function.signature.entry
             << "' in a program with scaling state, since '" << function.symbol
             << "' is what C calls the end of a step";
  return success();
}

LogicalResult ProgramInterface::complete(ModuleOp module) {
  if (failed(completeState(module)))
    return failure();
  if (auto slots = module->getAttrOfType<ArrayAttr>(kStatsSlotsAttrName))
    for (auto slot : slots.getAsRange<StringAttr>())
      statsSlots.push_back(slot.str());
  for (ProgramFunction &function : functions) {
    std::string symbol = "_mlir_ciface_" + function.signature.entry;
    auto compiled = module.lookupSymbol<LLVM::LLVMFuncOp>(symbol);
    if (!compiled)
      return module.emitError()
             << "expected function '" << symbol << "' after the pipeline";
    function.numArguments = compiled.getNumArguments();
    size_t added = compiled.getNumArguments() -
                   countArguments(function.signature) - isOnGPU();
    function.signature.takesState = added != 0;
  }
  return success();
}
