//===- CHeader.cpp - Programs described to C ------------------------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "fp8/Program/Interface.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/FormatAdapters.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;
using namespace mlir::fp8;
using fp8rt::DType;

/// A scalar in C. What C has no type for is passed as its bits.
static StringRef getScalarType(DType dtype) {
  switch (dtype) {
#define FP8_DTYPE(NAME, FILE, CODE, BITS, LANES, SCALAR, ...)                  \
  case DType::NAME:                                                            \
    return #SCALAR;
#include "fp8/Formats.def"
  }
  return "";
}

/// Identifiers for the parameters of a function, arguments first.
static std::vector<std::string> nameParameters(const Signature &signature) {
  llvm::StringSet<> used = {"state", "context"};
  std::vector<std::string> names;
  auto add = [&](const ValueInfo &info) {
    std::string base = makeIdentifier(info.name), name = base;
    for (unsigned i = 2; !used.insert(name).second; ++i)
      name = base + "_" + std::to_string(i);
    names.push_back(name);
  };
  llvm::for_each(signature.arguments, add);
  llvm::for_each(signature.results, add);
  return names;
}

/// A line of the table of parameters.
static void writeRow(llvm::raw_ostream &os, StringRef name, size_t width,
                     const Twine &text) {
  os << "///   " << llvm::left_justify(name, width) << "  " << text << '\n';
}

static std::string describeValue(const ValueInfo &info) {
  std::string text = describe(info.dtype, info.shape);
  if (fp8rt::getNumLanes(info.dtype) == 2)
    text += ", two in each byte of a row, the first in the lower half";
  return info.isShaped() ? text : StringRef(text).drop_back(3).str();
}

static void writeFunction(llvm::raw_ostream &os,
                          const ProgramInterface &program,
                          const ProgramFunction &function) {
  const Signature &signature = function.signature;
  std::vector<std::string> names = nameParameters(signature);
  size_t numArguments = signature.arguments.size(), width = 0;
  for (StringRef name : names)
    width = std::max(width, name.size());

  os << "/// The function '";
  llvm::printEscapedString(signature.entry, os);
  os << "'.\n///\n";
  for (auto [name, info] : llvm::zip(names, signature.arguments))
    writeRow(os, name, width,
             describeValue(info) +
                 (info.isMemRef() ? ", read and written" : ""));
  for (auto [name, info] :
       llvm::zip(ArrayRef(names).drop_front(numArguments), signature.results))
    writeRow(os, name, width, "result: " + describeValue(info));

  SmallVector<std::string> parameters;
  for (auto [name, info] : llvm::zip(names, signature.arguments))
    parameters.push_back(info.isShaped()
                             ? llvm::formatv("const fp8rt_tensor{0} *{1}",
                                             info.shape.size(), name)
                                   .str()
                             : (getScalarType(info.dtype) + " " + name).str());
  for (auto [name, info] :
       llvm::zip(ArrayRef(names).drop_front(numArguments), signature.results))
    parameters.push_back(
        info.isShaped()
            ? llvm::formatv("fp8rt_tensor{0} *{1}", info.shape.size(), name)
                  .str()
            : (getScalarType(info.dtype) + " *" + name).str());
  if (signature.takesState)
    parameters.push_back("fp8rt_state state");
  if (program.isOnGPU())
    parameters.push_back("fp8rt_context *context");
  if (parameters.empty())
    parameters.push_back("void");

  std::string head = "fp8rt_status " + function.symbol + "(";
  os << head << llvm::join(parameters, ",\n" + std::string(head.size(), ' '))
     << ");\n\n";
}

static constexpr StringLiteral kIntroduction =
    R"(/* {0} - how to call the program '{1}'.
 *
 * Made by fp8-compile for {2}{3}.
 *
 * Link to the shared object beside this header, and to libfp8rt. Tensors are in
 * row-major order; fp8rt_make_tensor2(data, rows, columns) and its like describe
 * them. A ? is a size that calls choose. {4}
 *
 * Every function returns FP8RT_OK or one of the errors of fp8/Runtime/Status.h,
 * of which fp8rt_get_last_error() says more; then there are no results. Of
 * several threads each may call them{5}.
 */
)";

static constexpr StringLiteral kOnCPU =
    R"(Tensors among the results are
 * allocated; free() their `allocated`.)";
static constexpr StringLiteral kOnGPU =
    R"(Tensors are in the memory of
 * the context's device, aligned to 16 bytes, and those among the results are
 * allocated; fp8rt_workspace_free() their `allocated`. The context, made by
 * fp8rt_context_create(), says in which stream to work: a call returns when all
 * is launched, and does not wait for it. The first call of a context loads the
 * kernels, later ones can be captured in a CUDA graph.)";
static constexpr StringLiteral kState = R"(
/* A scaling state: {0} slots, made by
 * fp8rt_program_create_state(&{1}_program, &state).
 * fp8/Runtime/{2} has the rest. */

/// Ends a step: the scales become those of the next.{3}
fp8rt_status {4}(fp8rt_state state{5});
)";

llvm::Expected<std::string> fp8::getCHeader(const ProgramInterface &program,
                                            StringRef file) {
  constexpr size_t maxRank = 8;
  for (const ProgramFunction &function : program.functions)
    for (ArrayRef<ValueInfo> infos : {ArrayRef(function.signature.arguments),
                                      ArrayRef(function.signature.results)})
      for (const ValueInfo &info : infos)
        if (info.shape.size() > maxRank)
          return llvm::createStringError(
              "expected tensors of up to " + Twine(maxRank) +
              " dimensions in the interface, but '" + info.name + "' of '" +
              function.signature.entry + "' has " + Twine(info.shape.size()));

  std::string text;
  llvm::raw_string_ostream os(text);
  std::string recipe =
      program.recipe.empty() ? "" : ", recipe " + program.recipe;
  StringRef threads = "";
  if (program.isOnGPU())
    threads = " with a context of its own";
  os << llvm::formatv(kIntroduction.data(), file, program.name, program.target,
                      recipe, program.isOnGPU() ? kOnGPU : kOnCPU, threads);
  std::string guard = "FP8_PROGRAM_" + StringRef(program.name).upper() + "_H";
  os << "#ifndef " << guard << "\n#define " << guard
     << "\n\n#include \"fp8/Runtime/Program.h\"\n\n"
     << "#ifdef __cplusplus\nextern \"C\" {\n#endif\n\n"
     << "extern const fp8rt_program_info " << getInfoSymbol(program) << ";\n";
  if (!program.stateManifest.empty())
    os << llvm::formatv(kState.data(), program.numSlots, program.name,
                        program.isOnGPU() ? "DeviceState.h" : "ScalingState.h",
                        program.isOnGPU() ? " Work in the stream, as calls."
                                          : "",
                        getUpdateSymbol(program),
                        program.isOnGPU() ? ", fp8rt_context *context" : "");
  os << '\n';
  for (const ProgramFunction &function : program.functions)
    writeFunction(os, program, function);
  os << "#ifdef __cplusplus\n}\n#endif\n\n#endif /* " << guard << " */\n";
  return text;
}
