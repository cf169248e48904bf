//===- FlattenCalls.cpp - Calls with thousands of values ------------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A function `f` of the program is called by MLIR's C interface of it, and that
// by what the runtime calls with an array of pointers, each once. With many
// tensors the three become one, which reads the array.
//
//===----------------------------------------------------------------------===//

#include "FlattenCalls.h"
#include "mlir/Support/LLVM.h"
#include "llvm/ADT/SmallBitVector.h"
#include "llvm/Analysis/LoopInfo.h"
#include "llvm/IR/Dominators.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/Module.h"
#include "llvm/Passes/PassBuilder.h"
#include "llvm/Transforms/IPO/AlwaysInliner.h"
#include "llvm/Transforms/Utils/Local.h"

using namespace mlir;
using namespace mlir::fp8;

/// Up to so many arguments, and parts of a result, LLVM's own passes do as well
/// and better.
static constexpr unsigned maxValues = 256;

/// The numbers and pointers that a value of the type consists of.
static uint64_t countParts(llvm::Type *type) {
  if (auto *array = dyn_cast<llvm::ArrayType>(type))
    return array->getNumElements() * countParts(array->getElementType());
  if (!type->isStructTy())
    return 1;
  uint64_t count = 0;
  for (llvm::Type *element : type->subtypes())
    count += countParts(element);
  return count;
}

static bool hasManyValues(const llvm::Function &function) {
  return function.arg_size() > maxValues ||
         countParts(function.getReturnType()) > maxValues;
}

//===----------------------------------------------------------------------===//
// Calls
//===----------------------------------------------------------------------===//

/// Makes functions with many values part of the only one that calls them.
static void inlineSingleCalls(llvm::Module &module) {
  bool changes = false;
  for (llvm::Function &function : module) {
    if (function.isDeclaration() || !function.hasLocalLinkage() ||
        !function.hasOneUse() || !hasManyValues(function))
      continue;
    auto *call = dyn_cast<llvm::CallInst>(function.user_back());
    if (!call || call->getCalledFunction() != &function)
      continue;
    function.addFnAttr(llvm::Attribute::AlwaysInline);
    changes = true;
  }
  if (!changes)
    return;
  llvm::LoopAnalysisManager loops;
  llvm::FunctionAnalysisManager functions;
  llvm::CGSCCAnalysisManager components;
  llvm::ModuleAnalysisManager modules;
  llvm::PassBuilder builder;
  builder.registerModuleAnalyses(modules);
  builder.registerCGSCCAnalyses(components);
  builder.registerFunctionAnalyses(functions);
  builder.registerLoopAnalyses(loops);
  builder.crossRegisterProxies(loops, functions, components, modules);
  llvm::AlwaysInlinerPass(/*InsertLifetime=*/false).run(module, modules);
}

//===----------------------------------------------------------------------===//
// Results
//===----------------------------------------------------------------------===//

namespace {
/// A part of a struct.
struct Part {
  SmallVector<unsigned, 4> path;
  llvm::Value *value;
};

/// The parts of one element of a struct, and what they are stored in front of.
struct Element {
  SmallVector<Part> parts;
  llvm::Instruction *place;
};
} // namespace

/// Adds the parts of `value`, which is at `path`, as they were put into it
/// last. False if it is not made of parts that are put into it whole.
static bool findParts(llvm::Value *value, ArrayRef<unsigned> path,
                      SmallVectorImpl<Part> &parts) {
  if (!isa<llvm::InsertValueInst>(value)) {
    if (!isa<llvm::UndefValue>(value))
      parts.push_back({llvm::to_vector<4>(path), value});
    return true;
  }
  SmallVector<ArrayRef<unsigned>> known;
  while (auto *insert = dyn_cast<llvm::InsertValueInst>(value)) {
    ArrayRef<unsigned> indices = insert->getIndices();
    value = insert->getAggregateOperand();
    if (llvm::is_contained(known, indices))
      continue;
    known.push_back(indices);
    SmallVector<unsigned> inner(path);
    llvm::append_range(inner, indices);
    if (!findParts(insert->getInsertedValueOperand(), inner, parts))
      return false;
  }
  // A part of a part would have to be put into it at its turn.
  bool isWhole = llvm::all_of(known, [&](ArrayRef<unsigned> indices) {
    return llvm::none_of(known, [&](ArrayRef<unsigned> other) {
      return other.size() < indices.size() &&
             indices.take_front(other.size()) == other;
    });
  });
  return isWhole && isa<llvm::UndefValue>(value);
}

/// Takes the struct that `store` writes into its elements; empty if it is not
/// made of them.
static SmallVector<Element> findElements(llvm::StoreInst &store) {
  SmallVector<Element> elements;
  llvm::Value *value = store.getValueOperand();
  llvm::SmallBitVector isKnown(value->getType()->getStructNumElements());
  while (auto *insert = dyn_cast<llvm::InsertValueInst>(value)) {
    if (insert->getNumIndices() != 1)
      return {};
    unsigned index = insert->getIndices()[0];
    value = insert->getAggregateOperand();
    if (isKnown[index])
      continue;
    isKnown.set(index);
    Element element{{}, &store};
    llvm::Value *whole = insert->getInsertedValueOperand();
    if (!findParts(whole, index, element.parts))
      element.parts = {{{index}, whole}};
    elements.push_back(std::move(element));
  }
  if (!isa<llvm::UndefValue>(value))
    return {};
  return elements;
}

/// Where the parts of `element` are known: what is kept until the function
/// returns is in the way of all that comes until then.
static llvm::Instruction *getPlace(const Element &element,
                                   llvm::StoreInst &store) {
  llvm::BasicBlock &entry = store.getFunction()->getEntryBlock();
  llvm::Instruction *last =
      dyn_cast<llvm::Instruction>(store.getPointerOperand());
  if (last && last->getParent() != &entry)
    return &store;
  bool hasValues = false;
  for (const Part &part : element.parts) {
    auto *value = dyn_cast<llvm::Instruction>(part.value);
    if (!value)
      continue;
    if (value->getParent() != &entry || value->isTerminator())
      return &store;
    hasValues = true;
    if (!last || last->comesBefore(value))
      last = value;
  }
  return hasValues ? last->getNextNode() : &store;
}

/// Stores structs of many parts one by one.
static void splitStores(llvm::Function &function) {
  SmallVector<llvm::StoreInst *> stores;
  for (llvm::Instruction &inst : llvm::instructions(function))
    if (auto *store = dyn_cast<llvm::StoreInst>(&inst))
      if (llvm::Type *type = store->getValueOperand()->getType();
          store->isSimple() && type->isStructTy() &&
          countParts(type) > maxValues)
        stores.push_back(store);
  for (llvm::StoreInst *store : stores) {
    SmallVector<Element> elements = findElements(*store);
    if (elements.empty())
      continue;
    // All before a change, after which blocks number their instructions anew.
    for (Element &element : elements)
      element.place = getPlace(element, *store);
    llvm::IRBuilder<> b(store);
    llvm::Value *value = store->getValueOperand();
    for (const Element &element : elements) {
      b.SetInsertPoint(element.place);
      for (const Part &part : element.parts) {
        SmallVector<llvm::Value *> path{b.getInt32(0)};
        for (unsigned index : part.path)
          path.push_back(b.getInt32(index));
        b.CreateStore(part.value,
                      b.CreateInBoundsGEP(value->getType(),
                                          store->getPointerOperand(), path));
      }
    }
    store->eraseFromParent();
    llvm::RecursivelyDeleteTriviallyDeadInstructions(value);
  }
}

//===----------------------------------------------------------------------===//
// Arguments
//===----------------------------------------------------------------------===//

namespace {
/// Loads of a function's arguments, from an array of pointers that is its own
/// only argument, take place where they are needed.
class ArgumentLoads {
public:
  explicit ArgumentLoads(llvm::Function &function) : function(function) {}

  void run();

private:
  bool isFound(const llvm::Value *value) const { return found.contains(value); }
  void find();
  void splitStructs();
  void sink();
  llvm::Instruction *getPlace(llvm::Instruction &load,
                              const llvm::DominatorTree &dominators,
                              const llvm::LoopInfo &loops) const;

  llvm::Function &function;
  /// Loads that nothing in the call changes, and their addresses.
  llvm::SetVector<llvm::Value *> found;
};
} // namespace

/// The address of a place that is the same in each call.
static bool isPlaceIn(const llvm::Instruction &inst) {
  const auto *address = dyn_cast<llvm::GetElementPtrInst>(&inst);
  return address && address->hasAllConstantIndices();
}

void ArgumentLoads::find() {
  for (llvm::Instruction &inst : function.getEntryBlock()) {
    auto *load = dyn_cast<llvm::LoadInst>(&inst);
    if (!load && !isPlaceIn(inst))
      continue;
    auto *source = inst.getOperand(0);
    if (source != function.getArg(0) && !isFound(source))
      continue;
    // Descriptors of tensors, which are the host's.
    if (load && load->getType()->isStructTy())
      load->setMetadata(llvm::LLVMContext::MD_invariant_load,
                        llvm::MDNode::get(inst.getContext(), {}));
    if (!load || load->hasMetadata(llvm::LLVMContext::MD_invariant_load))
      found.insert(&inst);
  }
}

/// Each of the fields that are used gets a load of its own.
void ArgumentLoads::splitStructs() {
  for (llvm::Value *value : llvm::to_vector(found)) {
    auto *load = dyn_cast<llvm::LoadInst>(value);
    if (!load || !load->getType()->isStructTy())
      continue;
    llvm::IRBuilder<> b(load);
    for (llvm::User *user : llvm::make_early_inc_range(load->users())) {
      auto *extract = dyn_cast<llvm::ExtractValueInst>(user);
      if (!extract)
        continue;
      SmallVector<llvm::Value *> path{b.getInt32(0)};
      for (unsigned index : extract->indices())
        path.push_back(b.getInt32(index));
      auto *address = llvm::GetElementPtrInst::CreateInBounds(
          load->getType(), load->getPointerOperand(), path, "",
          load->getIterator());
      llvm::LoadInst *field = b.CreateLoad(extract->getType(), address);
      field->copyMetadata(*load, {llvm::LLVMContext::MD_invariant_load});
      found.insert(address);
      found.insert(field);
      extract->replaceAllUsesWith(field);
      extract->eraseFromParent();
    }
  }
}

/// Where `load` comes before all that needs it, and only then; not in a loop.
/// Null if nothing that runs does.
llvm::Instruction *
ArgumentLoads::getPlace(llvm::Instruction &load,
                        const llvm::DominatorTree &dominators,
                        const llvm::LoopInfo &loops) const {
  llvm::BasicBlock *block = nullptr;
  auto getBlock = [](const llvm::Use &use) {
    auto *user = cast<llvm::Instruction>(use.getUser());
    if (auto *phi = dyn_cast<llvm::PHINode>(user))
      return phi->getIncomingBlock(use);
    return user->getParent();
  };
  SmallVector<const llvm::Use *> uses;
  for (const llvm::Use &use : load.uses())
    if (!isFound(use.getUser()) &&
        dominators.isReachableFromEntry(getBlock(use))) {
      uses.push_back(&use);
      block = block
                  ? dominators.findNearestCommonDominator(block, getBlock(use))
                  : getBlock(use);
    }
  if (!block)
    return nullptr;
  while (const llvm::Loop *loop = loops.getLoopFor(block))
    block = dominators.getNode(loop->getHeader())->getIDom()->getBlock();
  llvm::Instruction *place = block->getTerminator();
  for (const llvm::Use *use : uses) {
    auto *user = cast<llvm::Instruction>(use->getUser());
    if (user->getParent() == block && !isa<llvm::PHINode>(user) &&
        user->comesBefore(place))
      place = user;
  }
  return place;
}

void ArgumentLoads::sink() {
  llvm::DominatorTree dominators(function);
  llvm::LoopInfo loops(dominators);
  // All places first: blocks number their instructions anew after a change.
  SmallVector<std::pair<llvm::Instruction *, llvm::Instruction *>> places;
  for (llvm::Value *value : found)
    if (auto *load = dyn_cast<llvm::LoadInst>(value))
      if (llvm::Instruction *place = getPlace(*load, dominators, loops))
        places.push_back({load, place});
  for (auto [load, place] : places) {
    // From the argument on.
    SmallVector<llvm::Instruction *> road{load};
    while (auto *source =
               dyn_cast<llvm::Instruction>(road.back()->getOperand(0)))
      road.push_back(source);
    llvm::Instruction *copy = nullptr;
    for (llvm::Instruction *inst : llvm::reverse(road)) {
      llvm::Instruction *next = inst->clone();
      if (copy)
        next->setOperand(0, copy);
      next->insertBefore(place->getIterator());
      copy = next;
    }
    load->replaceUsesWithIf(
        copy, [&](llvm::Use &use) { return !isFound(use.getUser()); });
  }
  for (llvm::Value *value : llvm::reverse(found))
    if (value->use_empty())
      cast<llvm::Instruction>(value)->eraseFromParent();
}

void ArgumentLoads::run() {
  find();
  if (found.size() <= maxValues)
    return;
  splitStructs();
  sink();
}

//===----------------------------------------------------------------------===//
// Functions
//===----------------------------------------------------------------------===//

void fp8::flattenCalls(llvm::Module &module) {
  inlineSingleCalls(module);
  for (llvm::Function &function : module) {
    if (function.isDeclaration())
      continue;
    if (function.hasExternalLinkage()) {
      // What C calls puts its arguments into an array, which is as good as it
      // gets.
      if (hasManyValues(function)) {
        function.addFnAttr(llvm::Attribute::NoInline);
        function.addFnAttr(llvm::Attribute::OptimizeNone);
      }
      continue;
    }
    splitStores(function);
    if (function.arg_size() == 1 &&
        function.getArg(0)->getType()->isPointerTy())
      ArgumentLoads(function).run();
  }
}
