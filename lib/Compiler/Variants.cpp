//===- Variants.cpp - Programs for several GPUs ---------------------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Each GPU has a program of its own, with its own order of launches and sizes
// of workspaces. What callers see is one more object, whose functions have the
// runtime choose one of them.
//
//===----------------------------------------------------------------------===//

#include "CompileHost.h"
#include "Tune.h"
#include "fp8/Compiler/Monitor.h"
#include "fp8/Kernels/Architecture.h"
#include "fp8/Support/ReportedError.h"
#include "fp8/Target/CPU/Object.h"
#include "llvm/ADT/StringExtras.h"

#include <set>

using namespace mlir;
using namespace mlir::fp8;

static llvm::Error checkOptions(ArrayRef<StringRef> targets,
                                const CompileOptions &options) {
  for (auto [index, target] : llvm::enumerate(targets)) {
    if (target == kPortableTarget || lookupArchitecture(target)) {
      if (llvm::is_contained(targets.take_front(index), target))
        return llvm::createStringError("expected each target once, but got '" +
                                       target + "' twice");
      continue;
    }
    return llvm::createStringError("expected target to be a list of " +
                                   llvm::join(getArchitectureChips(), ", ") +
                                   " and " + kPortableTarget + ", but got '" +
                                   target + "' in it");
  }
  // What is measured is this machine's GPU, which is one of them.
  std::string tune = isTuned(options) ? options.tune : "";
  for (auto [name, value] :
       {std::pair<StringRef, const std::string &>{"machine", options.machine},
        {"tune", tune},
        {"fusion-report", options.fusionReport},
        {"kernel-table", options.kernelTable}})
    if (!value.empty())
      return llvm::createStringError("expected one target with '" + name +
                                     "', but got '" + options.target + "'");
  return llvm::Error::success();
}

/// That of its machine, whatever the module says.
static llvm::Expected<CompiledProgram> compileVariant(ModuleOp module,
                                                      StringRef target,
                                                      CompileOptions options,
                                                      func::FuncOp entry) {
  options.name += "_" + makeIdentifier(target);
  setTarget(options, target);
  auto tuned = tuneKernels(module, options);
  if (!tuned)
    return tuned.takeError();
  const Architecture *architecture = lookupArchitecture(tuned->target);
  ProgramVariant variant;
  // No name in C has a dot.
  variant.symbol = "fp8." + options.name;
  variant.computeCapability =
      architecture->getTarget(module.getContext()).getComputeCapability();
  variant.runsLater = false;
  auto program = compileHost(module, *tuned, entry, /*emitLLVM=*/false,
                             std::move(variant));
  if (!program)
    return program.takeError();
  program->interface.asVariant->runsLater =
      architecture->isPortable() && program->interface.kernelFormat == "ptx";
  return program;
}

/// That callers do not see which one they call.
static llvm::Error checkAlike(const ProgramInterface &program,
                              const ProgramInterface &first) {
  bool isAlike = program.stateManifest == first.stateManifest &&
                 program.stateUpdate.empty() == first.stateUpdate.empty();
  for (auto [function, other] :
       llvm::zip_equal(program.functions, first.functions))
    isAlike &= function.numArguments == other.numArguments;
  if (!isAlike)
    return llvm::createStringError(
        "expected the same scaling state on all targets, but that of " +
        program.target + " is not that of " + first.target);
  // Some formats have kernels on some targets only.
  if (program.statsSlots != first.statsSlots)
    return llvm::createStringError(
        "expected the same tensors with statistics on all targets, but those "
        "of " +
        program.target + " are not those of " + first.target +
        ": compile with 'stats' for one target");
  return llvm::Error::success();
}

/// The object whose functions choose.
static llvm::Expected<std::string> emitChooser(MLIRContext *context,
                                               const ProgramInterface &program,
                                               const CompileOptions &options) {
  OwningOpRef<ModuleOp> empty = ModuleOp::create(UnknownLoc::get(context));
  ObjectOptions object;
  object.cpu = options.cpu;
  object.addInterface = [&](llvm::Module &translated) {
    addCInterface(translated, program);
  };
  return emitObject(*empty, object);
}

llvm::Expected<CompiledProgram>
fp8::compileVariants(ModuleOp module, const CompileOptions &options,
                     func::FuncOp entry) {
  SmallVector<StringRef> targets;
  StringRef(options.target).split(targets, ',');
  if (llvm::Error error = checkOptions(targets, options))
    return error;
  // Each target decides for itself, and often the same.
  std::set<std::string> said;
  ScopedDiagnosticHandler once(
      module.getContext(), [&](Diagnostic &diagnostic) {
        std::string text;
        llvm::raw_string_ostream(text)
            << diagnostic.getLocation() << diagnostic;
        return success(diagnostic.getSeverity() == DiagnosticSeverity::Remark &&
                       !said.insert(text).second);
      });
  std::optional<CompiledProgram> all;
  for (StringRef target : targets) {
    OwningOpRef<ModuleOp> copy(module.clone());
    func::FuncOp own =
        entry ? copy->lookupSymbol<func::FuncOp>(entry.getSymName()) : entry;
    auto program = compileVariant(*copy, target, options, own);
    if (!program)
      return program.takeError();
    if (!all) {
      all = CompiledProgram{program->interface, {}, options};
      all->interface.asVariant.reset();
    }
    if (llvm::Error error = checkAlike(program->interface, all->interface))
      return error;
    all->interface.variants.push_back(*program->interface.asVariant);
    all->objects.push_back(std::move(program->objects.front()));
  }
  ProgramInterface &interface = all->interface;
  interface.name = makeIdentifier(options.name);
  interface.target = options.target;
  for (ProgramFunction &function : interface.functions)
    function.symbol =
        interface.name + "_" + makeIdentifier(function.signature.entry);
  auto chooser = emitChooser(module.getContext(), interface, options);
  if (!chooser)
    return chooser.takeError();
  all->objects.insert(all->objects.begin(), std::move(*chooser));
  return std::move(*all);
}
