//===- Compare.cpp - Show what differs between two states -----------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Commands.h"
#include "StateContents.h"

#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/Format.h"

#include <algorithm>
#include <cmath>

using namespace mlir::fp8;
using llvm::StringRef;

namespace {
/// Collects what differs in a slot, or in what belongs to none.
class Differences {
public:
  explicit Differences(double tolerance) : tolerance(tolerance) {}

  bool isSame(float a, float b) const {
    if (a == b || (std::isnan(a) && std::isnan(b)))
      return true;
    // An Inf would be within any tolerance of itself.
    double limit = tolerance * std::fmax(a, b);
    return std::isfinite(limit) && std::fabs(double(a) - b) <= limit;
  }

  void compare(StringRef what, float a, float b) {
    if (!isSame(a, b))
      // The nine digits that tell any two f32 apart.
      begin() << what << llvm::format(" %.9g and %.9g", a, b);
  }
  template <typename T>
  void compare(StringRef what, const T &a, const T &b) {
    if (!(a == b))
      begin() << what << ' ' << a << " and " << b;
  }
  /// The newest of both, as far as both have them.
  void compareHistories(llvm::ArrayRef<float> a, llvm::ArrayRef<float> b) {
    size_t length = std::min(a.size(), b.size()), count = 0;
    a = a.take_back(length);
    b = b.take_back(length);
    for (size_t i = 0; i < length; ++i)
      count += !isSame(a[i], b[i]);
    if (count)
      begin() << count << " of " << length << " past amaxes";
  }

  /// As many as the shorter has: of one recipe both have as many.
  void compareWords(llvm::ArrayRef<int32_t> a, llvm::ArrayRef<int32_t> b) {
    size_t length = std::min(a.size(), b.size()), count = 0;
    for (size_t i = 0; i < length; ++i)
      count += a[i] != b[i];
    if (count)
      begin() << count << " of " << length << " words";
  }

  llvm::raw_ostream &begin() { return os << (text.empty() ? "" : ", "); }
  StringRef getText() const { return text; }

private:
  double tolerance;
  std::string text;
  llvm::raw_string_ostream os{text};
};

class Comparison {
public:
  Comparison(const StateContents &a, const StateContents &b, double tolerance,
             llvm::raw_ostream &os)
      : a(a), b(b), tolerance(tolerance), os(os) {}

  bool run(llvm::ArrayRef<size_t> ofA, llvm::ArrayRef<size_t> ofB);

private:
  void compareRecipes();
  void compareSlots(const SlotContents &ours, const SlotContents &theirs);
  void print(StringRef what, StringRef difference) {
    if (difference.empty())
      return;
    os << what << ": " << difference << '\n';
    same = false;
  }

  const StateContents &a, &b;
  double tolerance;
  llvm::raw_ostream &os;
  bool same = true;
};
} // namespace

void Comparison::compareRecipes() {
  Differences differences(tolerance);
  // A name and key=value; another name has other keys.
  llvm::SmallVector<StringRef> ours, theirs;
  StringRef(a.recipe).split(ours, ',');
  StringRef(b.recipe).split(theirs, ',');
  differences.compare("recipe", ours.front(), theirs.front());
  if (ours.front() == theirs.front())
    for (auto [x, y] : llvm::zip_first(ours, theirs))
      differences.compare(x.split('=').first, x.split('=').second,
                          y.split('=').second);
  differences.compare("steps", a.steps, b.steps);
  print("state", differences.getText());
}

void Comparison::compareSlots(const SlotContents &ours,
                              const SlotContents &theirs) {
  Differences differences(tolerance);
  differences.compare("format", ours.format, theirs.format);
  differences.compare("role", ours.role, theirs.role);
  differences.compare("operand", ours.operand, theirs.operand);
  const fp8rt_state_statistics &x = ours.statistics, &y = theirs.statistics;
  differences.compare("scale", x.scale, y.scale);
  differences.compare("last amax", x.amax, y.amax);
  differences.compare("waiting amax", ours.waiting, theirs.waiting);
  differences.compareHistories(ours.history, theirs.history);
  differences.compareWords(ours.words, theirs.words);
  differences.compare("recorded", x.recorded, y.recorded);
  differences.compare("non-finite", x.non_finite, y.non_finite);
  differences.compare("underflow", x.underflow, y.underflow);
  differences.compare("saturated", x.saturated, y.saturated);
  print("slot '" + ours.name + "'", differences.getText());
}

bool Comparison::run(llvm::ArrayRef<size_t> ofA, llvm::ArrayRef<size_t> ofB) {
  compareRecipes();
  llvm::StringMap<const SlotContents *> others;
  for (size_t i : ofB)
    others[b.slots[i].name] = &b.slots[i];
  llvm::StringSet<> matched;
  for (size_t i : ofA) {
    const SlotContents &slot = a.slots[i];
    auto other = others.find(slot.name);
    if (other == others.end()) {
      print("slot '" + slot.name + "'", "only in " + a.path);
      continue;
    }
    matched.insert(slot.name);
    compareSlots(slot, *other->second);
  }
  for (size_t i : ofB)
    if (const SlotContents &slot = b.slots[i]; !matched.contains(slot.name))
      print("slot '" + slot.name + "'", "only in " + b.path);
  return same;
}

llvm::Expected<bool> mlir::fp8::compareStates(const StateOptions &options,
                                              llvm::raw_ostream &os) {
  auto a = StateContents::open(options.files[0]);
  if (!a)
    return a.takeError();
  auto b = StateContents::open(options.files[1]);
  if (!b)
    return b.takeError();
  auto ofA = a->select(options.slots);
  if (!ofA)
    return ofA.takeError();
  auto ofB = b->select(options.slots);
  if (!ofB)
    return ofB.takeError();
  return Comparison(*a, *b, options.tolerance, os).run(*ofA, *ofB);
}
