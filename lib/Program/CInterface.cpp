//===- CInterface.cpp - Programs described to the runtime -----------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The structs of fp8/Runtime/Program.h, field by field, as LLVM constants; and
// for each function one that C calls, which hands its arguments to the runtime.
//
//===----------------------------------------------------------------------===//

#include "fp8/Program/Interface.h"
#include "fp8/Runtime/ABI/LLVM.h"

using namespace mlir;
using namespace mlir::fp8;

namespace {
class CInterfaceBuilder {
public:
  CInterfaceBuilder(llvm::Module &module, const ProgramInterface &program)
      : module(module), program(program), b(module.getContext()) {}

  void build();

private:
  void hideProgram();
  llvm::Constant *createGlobal(llvm::Constant *value, const Twine &name);
  llvm::Constant *createString(StringRef text);
  llvm::Constant *getNull() {
    return llvm::Constant::getNullValue(b.getPtrTy());
  }

  llvm::Constant *createValueInfo(const ValueInfo &info);
  llvm::Constant *createValueInfos(ArrayRef<ValueInfo> infos);
  llvm::Function *createInvoke(const Twine &name);
  llvm::Value *loadPlace(llvm::Function *invoke, int64_t index);
  llvm::Value *loadConstant(llvm::Type *type, llvm::Value *place);
  llvm::Function *createInvokeOf(const Twine &name, llvm::Function *callee);
  /// The same of the variant for the context's device.
  llvm::Function *createInvokeOfVariant(const Twine &name, int64_t index,
                                        int64_t numArguments);
  llvm::Constant *createVariants();
  llvm::Constant *createFunction(const ProgramFunction &function,
                                 llvm::Function *invoke);
  SmallVector<llvm::Function *> createInvokes();
  /// The function of the header; `description` is its entry in the table.
  void createEntry(const ProgramFunction &function,
                   llvm::Constant *description);
  void createUpdate();
  void createInfo(llvm::Constant *functions, llvm::Constant *invokeUpdate);
  llvm::Type *getScalarType(const ValueInfo &info);

  llvm::Module &module;
  const ProgramInterface &program;
  llvm::IRBuilder<> b;
  llvm::GlobalVariable *info = nullptr;
  /// MLIR's C interface of each function.
  SmallVector<llvm::Function *> callees;
  /// Null without a state.
  llvm::Function *update = nullptr;
  /// Null but for several GPUs.
  llvm::Constant *variants = nullptr;
};
} // namespace

llvm::Constant *CInterfaceBuilder::createGlobal(llvm::Constant *value,
                                                const Twine &name) {
  return new llvm::GlobalVariable(module, value->getType(), /*isConstant=*/true,
                                  llvm::GlobalValue::InternalLinkage, value,
                                  name);
}

llvm::Constant *CInterfaceBuilder::createString(StringRef text) {
  return createGlobal(
      llvm::ConstantDataArray::getString(module.getContext(), text),
      "fp8_string");
}

//===----------------------------------------------------------------------===//
// Descriptions
//===----------------------------------------------------------------------===//

llvm::Constant *CInterfaceBuilder::createValueInfo(const ValueInfo &info) {
  SmallVector<uint64_t> sizes;
  for (int64_t size : info.shape)
    sizes.push_back(ShapedType::isDynamic(size) ? -1 : size);
  int32_t rank = info.isShaped() ? static_cast<int32_t>(sizes.size()) : -1;
  using Fields = runtime::Struct<fp8rt_program_value>;
  StructConstant<fp8rt_program_value> constant(module.getContext());
  constant.set(Fields::name, createString(info.name))
      .set(Fields::dtype,
           createString(StringRef(fp8rt::stringifyDType(info.dtype))))
      .set(Fields::rank, rank)
      .set(Fields::width, fp8rt::getByteWidth(info.dtype))
      .set(Fields::alignment, getAlignment(program, info));
  if (!sizes.empty())
    constant.set(Fields::sizes, createGlobal(llvm::ConstantDataArray::get(
                                                 module.getContext(), sizes),
                                             "fp8_sizes"));
  return constant.get();
}

llvm::Constant *CInterfaceBuilder::createValueInfos(ArrayRef<ValueInfo> infos) {
  if (infos.empty())
    return getNull();
  SmallVector<llvm::Constant *> values;
  for (const ValueInfo &info : infos)
    values.push_back(createValueInfo(info));
  auto *type = llvm::ArrayType::get(values[0]->getType(), values.size());
  return createGlobal(llvm::ConstantArray::get(type, values), "fp8_ports");
}

llvm::Function *CInterfaceBuilder::createInvoke(const Twine &name) {
  auto *type = llvm::FunctionType::get(b.getVoidTy(), {b.getPtrTy()},
                                       /*isVarArg=*/false);
  auto *invoke = llvm::Function::Create(
      type, llvm::GlobalValue::InternalLinkage, name + "_invoke", module);
  b.SetInsertPoint(llvm::BasicBlock::Create(module.getContext(), "", invoke));
  return invoke;
}

/// What the call does not change.
llvm::Value *CInterfaceBuilder::loadConstant(llvm::Type *type,
                                             llvm::Value *place) {
  llvm::LoadInst *value = b.CreateLoad(type, place);
  value->setMetadata(llvm::LLVMContext::MD_invariant_load,
                     llvm::MDNode::get(module.getContext(), {}));
  return value;
}

llvm::Value *CInterfaceBuilder::loadPlace(llvm::Function *invoke,
                                          int64_t index) {
  return loadConstant(
      b.getPtrTy(),
      b.CreateConstGEP1_64(b.getPtrTy(), invoke->getArg(0), index));
}

/// MLIR's C interface behind one signature for all: a pointer to each argument,
/// and last, if there is one, to the result.
llvm::Function *CInterfaceBuilder::createInvokeOf(const Twine &name,
                                                  llvm::Function *callee) {
  llvm::Function *invoke = createInvoke(name);
  SmallVector<llvm::Value *> arguments;
  for (llvm::Argument &argument : callee->args())
    arguments.push_back(loadConstant(argument.getType(),
                                     loadPlace(invoke, argument.getArgNo())));
  llvm::Value *result = b.CreateCall(callee, arguments);
  if (!result->getType()->isVoidTy())
    b.CreateStore(result, loadPlace(invoke, callee->arg_size()));
  b.CreateRetVoid();
  return invoke;
}

llvm::Constant *CInterfaceBuilder::createVariants() {
  llvm::Type *infoType = getLLVMType<fp8rt_program_info>(module.getContext());
  using Fields = runtime::Struct<fp8rt_program_variant>;
  SmallVector<llvm::Constant *> values;
  for (const ProgramVariant &variant : program.variants) {
    auto *description =
        new llvm::GlobalVariable(module, infoType, /*isConstant=*/true,
                                 llvm::GlobalValue::ExternalLinkage,
                                 /*Initializer=*/nullptr, variant.symbol);
    description->setVisibility(llvm::GlobalValue::HiddenVisibility);
    StructConstant<fp8rt_program_variant> constant(module.getContext());
    values.push_back(
        constant.set(Fields::program, description)
            .set(Fields::compute_capability, variant.computeCapability)
            .set(Fields::flags,
                 variant.runsLater ? FP8RT_VARIANT_RUNS_LATER : 0)
            .get());
  }
  auto *type = llvm::ArrayType::get(values[0]->getType(), values.size());
  return createGlobal(llvm::ConstantArray::get(type, values), "fp8_variants");
}

llvm::Function *CInterfaceBuilder::createInvokeOfVariant(const Twine &name,
                                                         int64_t index,
                                                         int64_t numArguments) {
  llvm::Function *invoke = createInvoke(name);
  llvm::Value *context =
      loadConstant(b.getPtrTy(), loadPlace(invoke, numArguments - 1));
  createRuntimeCall(b, runtime::fp8rt_program_invoke_variant, context, variants,
                    b.getInt32(program.variants.size()), b.getInt32(index),
                    invoke->getArg(0));
  b.CreateRetVoid();
  return invoke;
}

llvm::Constant *
CInterfaceBuilder::createFunction(const ProgramFunction &function,
                                  llvm::Function *invoke) {
  const Signature &signature = function.signature;
  uint32_t flags = (signature.takesState ? FP8RT_FUNCTION_TAKES_STATE : 0) |
                   (program.isOnGPU() ? FP8RT_FUNCTION_TAKES_CONTEXT : 0);
  using Fields = runtime::Struct<fp8rt_program_function>;
  StructConstant<fp8rt_program_function> constant(module.getContext());
  return constant.set(Fields::program, info)
      .set(Fields::name, createString(signature.entry))
      .set(Fields::invoke, invoke)
      .set(Fields::arguments, createValueInfos(signature.arguments))
      .set(Fields::results, createValueInfos(signature.results))
      .set(Fields::num_arguments, signature.arguments.size())
      .set(Fields::num_results, signature.results.size())
      .set(Fields::flags, flags)
      .get();
}

//===----------------------------------------------------------------------===//
// Functions
//===----------------------------------------------------------------------===//

/// As the header has it.
llvm::Type *CInterfaceBuilder::getScalarType(const ValueInfo &info) {
  if (info.dtype == fp8rt::DType::F64)
    return b.getDoubleTy();
  if (info.dtype == fp8rt::DType::F32)
    return b.getFloatTy();
  return b.getIntNTy(8 * fp8rt::getByteWidth(info.dtype));
}

void CInterfaceBuilder::createEntry(const ProgramFunction &function,
                                    llvm::Constant *description) {
  const Signature &signature = function.signature;
  SmallVector<llvm::Type *> types;
  for (const ValueInfo &info : signature.arguments)
    types.push_back(info.isShaped() ? b.getPtrTy() : getScalarType(info));
  types.append(signature.results.size(), b.getPtrTy());
  if (signature.takesState)
    types.push_back(b.getInt64Ty());
  if (program.isOnGPU())
    types.push_back(b.getPtrTy());
  auto *entry = llvm::Function::Create(
      llvm::FunctionType::get(b.getInt32Ty(), types, /*isVarArg=*/false),
      llvm::GlobalValue::ExternalLinkage, function.symbol, module);
  b.SetInsertPoint(llvm::BasicBlock::Create(module.getContext(), "", entry));

  unsigned next = 0;
  auto collect = [&](size_t count, bool areScalarsByValue) -> llvm::Value * {
    llvm::Value *array = b.CreateAlloca(b.getPtrTy(), b.getInt64(count));
    for (size_t i = 0; i < count; ++i) {
      llvm::Value *value = entry->getArg(next++);
      if (areScalarsByValue && !signature.arguments[i].isShaped()) {
        llvm::Value *place = b.CreateAlloca(value->getType());
        b.CreateStore(value, place);
        value = place;
      }
      b.CreateStore(value, b.CreateConstGEP1_64(b.getPtrTy(), array, i));
    }
    return array;
  };
  llvm::Value *arguments = collect(signature.arguments.size(), true);
  llvm::Value *results = collect(signature.results.size(), false);
  llvm::Value *state = b.getInt64(0), *context = getNull();
  if (signature.takesState)
    state = entry->getArg(next++);
  if (program.isOnGPU())
    context = entry->getArg(next++);
  b.CreateRet(createRuntimeCall(b, runtime::fp8rt_program_call, description,
                                arguments, results, state, context));
}

/// The end of a step, as the header has it.
void CInterfaceBuilder::createUpdate() {
  SmallVector<llvm::Type *> types{b.getInt64Ty()};
  if (program.isOnGPU())
    types.push_back(b.getPtrTy());
  auto *entry = llvm::Function::Create(
      llvm::FunctionType::get(b.getInt32Ty(), types, /*isVarArg=*/false),
      llvm::GlobalValue::ExternalLinkage, getUpdateSymbol(program), module);
  b.SetInsertPoint(llvm::BasicBlock::Create(module.getContext(), "", entry));
  llvm::Value *context = getNull();
  if (program.isOnGPU())
    context = entry->getArg(1);
  b.CreateRet(createRuntimeCall(b, runtime::fp8rt_program_update_state, info,
                                entry->getArg(0), context));
}

/// A failed assertion ends the call, not the process.
static void redirectAssertions(llvm::Module &module) {
  llvm::Function *abort = module.getFunction("abort");
  if (!abort)
    return;
  llvm::IRBuilder<> b(module.getContext());
  for (llvm::User *user : llvm::make_early_inc_range(abort->users())) {
    auto *call = dyn_cast<llvm::CallInst>(user);
    auto *puts =
        call ? dyn_cast_or_null<llvm::CallInst>(call->getPrevNode()) : nullptr;
    if (!puts || !puts->getCalledFunction() ||
        puts->getCalledFunction()->getName() != "puts")
      continue;
    b.SetInsertPoint(call);
    createRuntimeCall(b, runtime::fp8rt_program_fail, puts->getArgOperand(0))
        ->setDoesNotReturn();
    call->eraseFromParent();
    puts->eraseFromParent();
  }
}

/// Memory that there is not ends the call, too. The name is MLIR's for such a
/// function of a host's own.
static void redirectAllocations(llvm::Module &module) {
  llvm::Function *alloc = module.getFunction("aligned_alloc");
  if (!alloc || !alloc->isDeclaration())
    return;
  alloc->setName("_mlir_memref_to_llvm_aligned_alloc");
  alloc->addRetAttr(llvm::Attribute::NoAlias);
}

void CInterfaceBuilder::hideProgram() {
  for (llvm::GlobalValue &value : module.global_values())
    if (!value.isDeclaration() && !value.getName().starts_with("llvm."))
      value.setLinkage(llvm::GlobalValue::InternalLinkage);
  // Names that the interface wants, and a function of the program may have: its
  // own, and those of the runtime.
  auto free = [&](StringRef name) {
    if (llvm::GlobalValue *value = module.getNamedValue(name))
      value->setName(name + ".internal");
  };
  free(FP8RT_PROGRAM_SYMBOL);
  free(getInfoSymbol(program));
  free(runtime::fp8rt_program_call.name);
  free(runtime::fp8rt_program_update_state.name);
  free(runtime::fp8rt_program_fail.name);
  free(runtime::fp8rt_program_invoke_variant.name);
  // What follows is in the variants' own objects.
  if (!program.variants.empty())
    return;
  for (const ProgramFunction &function : program.functions) {
    callees.push_back(
        module.getFunction("_mlir_ciface_" + function.signature.entry));
    free(function.symbol);
  }
  if (!program.stateUpdate.empty()) {
    update = module.getFunction("_mlir_ciface_" + program.stateUpdate);
    free(getUpdateSymbol(program));
  }
}

SmallVector<llvm::Function *> CInterfaceBuilder::createInvokes() {
  SmallVector<llvm::Function *> invokes;
  for (auto [index, function] : llvm::enumerate(program.functions))
    invokes.push_back(variants
                          ? createInvokeOfVariant(function.symbol, index,
                                                  function.numArguments)
                          : createInvokeOf(function.symbol, callees[index]));
  return invokes;
}

void CInterfaceBuilder::createInfo(llvm::Constant *functions,
                                   llvm::Constant *invokeUpdate) {
  using Fields = runtime::Struct<fp8rt_program_info>;
  StructConstant<fp8rt_program_info> constant(module.getContext());
  constant.set(Fields::magic, FP8RT_PROGRAM_MAGIC)
      .set(Fields::version, FP8RT_VERSION)
      .set(Fields::num_functions, program.functions.size())
      .set(Fields::functions, functions)
      .set(Fields::name, createString(program.name))
      .set(Fields::manifest, createString(getManifest(program)))
      .set(Fields::num_slots, program.numSlots)
      .set(Fields::num_words, program.numWords);
  if (!program.stateManifest.empty())
    constant.set(Fields::state_manifest, createString(program.stateManifest))
        .set(Fields::state_recipe, createString(program.stateRecipe));
  if (invokeUpdate)
    constant.set(Fields::update_state, invokeUpdate);
  info->setInitializer(constant.get());
}

void CInterfaceBuilder::build() {
  hideProgram();
  redirectAssertions(module);
  redirectAllocations(module);

  llvm::Type *infoType = getLLVMType<fp8rt_program_info>(module.getContext());
  info = new llvm::GlobalVariable(module, infoType, /*isConstant=*/true,
                                  llvm::GlobalValue::InternalLinkage,
                                  /*Initializer=*/nullptr, "fp8_program_info");
  if (!program.variants.empty())
    variants = createVariants();
  SmallVector<llvm::Constant *> functions;
  for (auto [function, invoke] :
       llvm::zip_equal(program.functions, createInvokes()))
    functions.push_back(createFunction(function, invoke));
  auto *tableType =
      llvm::ArrayType::get(functions[0]->getType(), functions.size());
  llvm::Constant *table = createGlobal(
      llvm::ConstantArray::get(tableType, functions), "fp8_functions");
  bool hasUpdate = !program.stateUpdate.empty();
  llvm::Constant *invokeUpdate = nullptr;
  if (hasUpdate && variants)
    // The rows of the state, and the context.
    invokeUpdate = createInvokeOfVariant(getUpdateSymbol(program), /*index=*/-1,
                                         /*numArguments=*/2);
  else if (hasUpdate)
    invokeUpdate = createInvokeOf(getUpdateSymbol(program), update);
  createInfo(table, invokeUpdate);
  auto addName = [&](StringRef name) {
    return llvm::GlobalAlias::create(
        infoType, 0, llvm::GlobalValue::ExternalLinkage, name, info, &module);
  };
  if (program.asVariant) {
    addName(program.asVariant->symbol)
        ->setVisibility(llvm::GlobalValue::HiddenVisibility);
    return;
  }
  // Two programs of one process have the first name in common: it is for dlsym,
  // and the program itself means its own by neither.
  addName(FP8RT_PROGRAM_SYMBOL);
  addName(getInfoSymbol(program));
  for (auto [index, function] : llvm::enumerate(program.functions))
    createEntry(function, llvm::ConstantExpr::getInBoundsGetElementPtr(
                              tableType, table,
                              ArrayRef<llvm::Constant *>{b.getInt64(0),
                                                         b.getInt64(index)}));
  if (hasUpdate)
    createUpdate();
}

void fp8::addCInterface(llvm::Module &module, const ProgramInterface &program) {
  CInterfaceBuilder(module, program).build();
}
