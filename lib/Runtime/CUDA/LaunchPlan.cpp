//===- LaunchPlan.cpp - Descriptions of launches, read --------------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "LaunchPlan.h"

#include "Tensors/StrictJSON.h"

#include "fp8/Runtime/LaunchRules.h"

#include <algorithm>
#include <set>
#include <sstream>

using namespace fp8rt;
using namespace fp8rt::cuda;
using nlohmann::json;

//===----------------------------------------------------------------------===//
// Expressions
//===----------------------------------------------------------------------===//

const char *Expression::evaluate(const std::vector<int64_t> &extents,
                                 int64_t &result) const {
  // The parser has seen to it that nothing is missing.
  int64_t stack[launch::kMaxOperands];
  size_t top = 0;
  for (const Step &step : steps) {
    bool overflows = false;
    switch (step.op) {
    case Op::Constant:
      stack[top++] = step.value;
      break;
    case Op::Extent:
      stack[top++] = extents[static_cast<size_t>(step.value)];
      break;
    case Op::Add:
      --top;
      overflows =
          __builtin_add_overflow(stack[top - 1], stack[top], &stack[top - 1]);
      break;
    case Op::Multiply:
      --top;
      overflows =
          __builtin_mul_overflow(stack[top - 1], stack[top], &stack[top - 1]);
      break;
    case Op::FloorDiv:
    case Op::CeilDiv:
    case Op::Mod: {
      int64_t value = stack[top - 1], rest = value % step.value;
      if (rest < 0)
        rest += step.value;
      int64_t floor = (value - rest) / step.value;
      stack[top - 1] = step.op == Op::Mod        ? rest
                       : step.op == Op::FloorDiv ? floor
                                                 : floor + (rest != 0);
      break;
    }
    }
    if (overflows)
      return "does not fit in 64 bits";
  }
  result = stack[0];
  return result < 0 ? "is negative" : nullptr;
}

//===----------------------------------------------------------------------===//
// Reading
//===----------------------------------------------------------------------===//

namespace {
/// The first finding becomes the error.
class Parser {
public:
  Parser(LaunchPlan &plan, std::string &error) : plan(plan), error(error) {}

  bool parse(const json &root);

private:
  bool parseArgument(const json &entry);
  bool parseExtent(const json &entry);
  bool parseParam(const json &entry);
  bool parseTensorMap(const json &entry, LaunchPlan::Param &param);
  bool parseWorkspace(const json &entry);
  bool parseExpression(const json &value, const char *key, Expression &result);

  bool checkKeys(const json &object, std::initializer_list<const char *> keys);
  bool readInteger(const json &object, const char *key, int64_t low,
                   int64_t high, int64_t &result);
  /// Reads the index of something that there are `count` of.
  bool readIndex(const json &object, const char *key, size_t count,
                 size_t &result);
  bool readBool(const json &object, const char *key, bool &result);
  bool readName(const json &object, const char *key, std::string &result);
  template <typename Element>
  bool readArray(const json &root, const char *key, Element parseElement);

  bool fail(const std::string &message) {
    error = "launch" + where + ": " + message;
    return false;
  }
  bool fail(const char *key, const std::string &expected, const json &value) {
    return fail("expected " + std::string(key) + " to be " + expected +
                ", but got " + detail::summarize(value));
  }

  LaunchPlan &plan;
  std::string &error;
  std::string where;
};
} // namespace

bool Parser::checkKeys(const json &object,
                       std::initializer_list<const char *> keys) {
  if (!object.is_object())
    return fail("expected an object, but got " + detail::summarize(object));
  for (const char *key : keys)
    if (!object.contains(key))
      return fail("expected the key '" + std::string(key) +
                  "', but it is missing");
  for (const auto &[key, value] : object.items())
    if (std::find(keys.begin(), keys.end(), key) == keys.end())
      return fail("expected no key '" + key + "'");
  return true;
}

bool Parser::readInteger(const json &object, const char *key, int64_t low,
                         int64_t high, int64_t &result) {
  const json &value = object.at(key);
  // Unsigned are only those that are not negative.
  bool fits = value.is_number_integer() &&
              (!value.is_number_unsigned() ||
               value.get<uint64_t>() <= static_cast<uint64_t>(INT64_MAX));
  result = fits ? value.get<int64_t>() : 0;
  if (!fits || result < low || result > high)
    return fail(key,
                low == high ? std::to_string(low)
                            : "an integer in " + std::to_string(low) + ".." +
                                  std::to_string(high),
                value);
  return true;
}

bool Parser::readIndex(const json &object, const char *key, size_t count,
                       size_t &result) {
  if (count == 0)
    return fail(key, "absent, for there is nothing that it could mean",
                object.at(key));
  int64_t index;
  if (!readInteger(object, key, 0, static_cast<int64_t>(count) - 1, index))
    return false;
  result = static_cast<size_t>(index);
  return true;
}

bool Parser::readBool(const json &object, const char *key, bool &result) {
  if (!object.at(key).is_boolean())
    return fail(key, "true or false", object.at(key));
  result = object.at(key).get<bool>();
  return true;
}

bool Parser::readName(const json &object, const char *key,
                      std::string &result) {
  if (!object.at(key).is_string() ||
      object.at(key).get_ref<const std::string &>().empty())
    return fail(key, "a string", object.at(key));
  result = object.at(key).get<std::string>();
  return true;
}

template <typename Element>
bool Parser::readArray(const json &root, const char *key,
                       Element parseElement) {
  if (!root.at(key).is_array())
    return fail(key, "an array", root.at(key));
  size_t index = 0;
  for (const json &element : root.at(key)) {
    where = " " + std::string(key) + "[" + std::to_string(index++) + "]";
    if (!parseElement(element))
      return false;
  }
  where.clear();
  return true;
}

static Expression::Op getOp(launch::Operator known) {
  using Op = Expression::Op;
  constexpr Op ops[] = {Op::Add, Op::Multiply, Op::FloorDiv, Op::CeilDiv,
                        Op::Mod};
  return ops[static_cast<size_t>(known)];
}

bool Parser::parseExpression(const json &value, const char *key,
                             Expression &result) {
  if (!value.is_string())
    return fail(key, "an expression", value);
  result.text = value.get<std::string>();
  std::istringstream words(result.text);
  std::string word;
  size_t depth = 0, deepest = 0;
  auto &steps = result.steps;
  auto malformed = [&] {
    return fail(key,
                "an expression in postfix order, of numbers, extents, +, *, "
                "and floordiv, ceildiv and mod by positive numbers",
                value);
  };
  while (words >> word) {
    using Op = Expression::Op;
    const auto *found = std::find(std::begin(launch::kOperators),
                                  std::end(launch::kOperators), word);
    if (found != std::end(launch::kOperators)) {
      auto known =
          static_cast<launch::Operator>(found - std::begin(launch::kOperators));
      if (depth < 2)
        return malformed();
      --depth;
      if (!isDivision(known)) {
        steps.push_back({getOp(known), 0});
        continue;
      }
      // A divisor is a number: it goes into the step.
      if (steps.back().op != Op::Constant || steps.back().value <= 0)
        return malformed();
      steps.back().op = getOp(known);
      continue;
    }
    auto extent = std::find_if(
        plan.extents.begin(), plan.extents.end(),
        [&](const LaunchPlan::Extent &known) { return known.name == word; });
    if (extent != plan.extents.end()) {
      steps.push_back({Op::Extent, extent - plan.extents.begin()});
    } else {
      size_t used = 0;
      int64_t number = 0;
      try {
        number = std::stoll(word, &used);
      } catch (const std::exception &) {
        return malformed();
      }
      if (used != word.size())
        return malformed();
      steps.push_back({Op::Constant, number});
    }
    deepest = std::max(deepest, ++depth);
  }
  return (depth == 1 && deepest <= launch::kMaxOperands) || malformed();
}

bool Parser::parseArgument(const json &entry) {
  LaunchPlan::Argument argument;
  std::string type, access;
  int64_t rank;
  if (!checkKeys(entry, {"name", "type", "rank", "access", "alignment"}) ||
      !readName(entry, "name", argument.name) ||
      !readName(entry, "type", type) || !readName(entry, "access", access) ||
      !readInteger(entry, "rank", 0, launch::kMaxRank, rank) ||
      !readInteger(entry, "alignment", 1, launch::kMaxAlignment,
                   argument.alignment))
    return false;
  argument.rank = static_cast<int32_t>(rank);
  argument.takesStride.assign(static_cast<size_t>(rank), false);
  std::string names;
  const launch::ElementType *found = nullptr;
  for (const launch::ElementType &known : launch::kElementTypes) {
    names += (names.empty() ? "" : ", ") + std::string(known.name);
    if (type == known.name)
      found = &known;
  }
  if (!found)
    return fail("type", "one of " + names, entry["type"]);
  argument.mapType = found->mapType;
  argument.bytes = found->bytes;
  if (access != "read" && access != "write" && access != "update" &&
      access != "raise")
    return fail("access", "one of read, write, update, raise", entry["access"]);
  argument.isRead = access != "write";
  argument.isWritten = access != "read";
  if ((argument.alignment & (argument.alignment - 1)) != 0 ||
      argument.alignment % argument.bytes != 0)
    return fail("alignment",
                "a power of two and a multiple of the type's bytes",
                entry["alignment"]);
  plan.arguments.push_back(std::move(argument));
  return true;
}

bool Parser::parseExtent(const json &entry) {
  LaunchPlan::Extent extent;
  if (!checkKeys(entry, {"name", "argument", "dim"}) ||
      !readName(entry, "name", extent.name) ||
      !readIndex(entry, "argument", plan.arguments.size(), extent.argument) ||
      !readIndex(entry, "dim",
                 static_cast<size_t>(plan.arguments[extent.argument].rank),
                 extent.dim))
    return false;
  plan.extents.push_back(std::move(extent));
  return true;
}

/// The key of a tensor map's tail dimension, if it has one. Programs that were
/// compiled for 1.0 spell it "rest".
static const char *findTail(const json &map) {
  return map.contains("tail")   ? "tail"
         : map.contains("rest") ? "rest"
                                : nullptr;
}

bool Parser::parseTensorMap(const json &entry, LaunchPlan::Param &param) {
  const LaunchPlan::Argument &argument = plan.arguments[param.index];
  const json &box = entry["box"];
  if (!box.is_array() || box.size() != static_cast<size_t>(argument.rank) ||
      box.empty() || box.size() > launch::kMaxMapRank)
    return fail("box",
                "an extent for each of 1 to " +
                    std::to_string(launch::kMaxMapRank) + " dimensions",
                box);
  for (const json &extent : box) {
    if (!extent.is_number_integer() || extent < 1 || extent > launch::kMaxBox)
      return fail("box", "of integers in 1.." + std::to_string(launch::kMaxBox),
                  box);
    param.box.push_back(extent.get<uint32_t>());
  }
  if (const char *tail = findTail(entry)) {
    // Not the innermost one.
    if (!readIndex(entry, tail, box.size(), param.tail))
      return false;
    if (param.tail == 0)
      return fail(tail, "a dimension that is not the innermost", entry[tail]);
  }
  auto readOne = [&](const char *key, const auto &sizes, int32_t &code) {
    int64_t value;
    if (!readInteger(entry, key, 0, 256, value))
      return false;
    code = launch::findCode(sizes, value);
    return code >= 0 ||
           fail(key, "a number of bytes that the hardware knows", entry[key]);
  };
  return readOne("swizzle", launch::kSwizzles, param.swizzle) &&
         readOne("l2", launch::kL2Sizes, param.l2);
}

bool Parser::parseParam(const json &entry) {
  using Kind = LaunchPlan::Param::Kind;
  LaunchPlan::Param param;
  int64_t bytes;
  bool isRead = false;
  auto has = [&](const char *key) {
    return entry.is_object() && entry.contains(key);
  };
  if (has("tensor_map")) {
    param.kind = Kind::TensorMap;
    isRead =
        (findTail(entry)
             ? checkKeys(entry, {"tensor_map", "box", "swizzle", "l2",
                                 findTail(entry)})
             : checkKeys(entry, {"tensor_map", "box", "swizzle", "l2"})) &&
        readIndex(entry, "tensor_map", plan.arguments.size(), param.index) &&
        parseTensorMap(entry, param);
  } else if (has("pointer")) {
    param.kind = Kind::Pointer;
    isRead = checkKeys(entry, {"pointer"}) &&
             readIndex(entry, "pointer", plan.arguments.size(), param.index);
  } else if (has("stride")) {
    param.kind = Kind::Stride;
    isRead = checkKeys(entry, {"stride", "dim"}) &&
             readIndex(entry, "stride", plan.arguments.size(), param.index) &&
             readIndex(entry, "dim",
                       static_cast<size_t>(plan.arguments[param.index].rank),
                       param.dim);
  } else if (has("value")) {
    param.kind = Kind::Value;
    isRead = checkKeys(entry, {"value", "bytes"}) &&
             parseExpression(entry["value"], "value", param.value) &&
             readInteger(entry, "bytes", 4, 8, bytes);
    if (isRead && bytes != 4 && bytes != 8)
      return fail("bytes", "4 or 8", entry["bytes"]);
  } else if (has("capture")) {
    param.kind = Kind::Capture;
    isRead = checkKeys(entry, {"capture", "bytes"}) &&
             readIndex(entry, "capture", 1024, param.index) &&
             readInteger(entry, "bytes", 1, 8, bytes);
  } else if (has("scratch")) {
    param.kind = Kind::Scratch;
    isRead = checkKeys(entry, {"scratch"}) &&
             readIndex(entry, "scratch", plan.workspaces.size(), param.index);
  } else {
    return fail("expected a tensor_map, pointer, stride, value, capture or "
                "scratch, but got " +
                detail::summarize(entry));
  }
  if (!isRead)
    return false;
  if (param.kind == Kind::Stride)
    plan.arguments[param.index].takesStride[param.dim] = true;
  // A map's innermost elements lie together.
  if (param.kind == Kind::TensorMap)
    for (size_t dim = 0; dim + 1 < param.box.size(); ++dim)
      plan.arguments[param.index].takesStride[dim] = true;
  if (param.kind == Kind::Value || param.kind == Kind::Capture)
    param.bytes = static_cast<size_t>(bytes);
  plan.params.push_back(std::move(param));
  return true;
}

bool Parser::parseWorkspace(const json &entry) {
  LaunchPlan::Workspace space;
  if (!checkKeys(entry, {"bytes", "zero"}) ||
      !parseExpression(entry["bytes"], "bytes", space.bytes) ||
      !readBool(entry, "zero", space.zero))
    return false;
  plan.workspaces.push_back(std::move(space));
  return true;
}

bool Parser::parse(const json &root) {
  int64_t version, block, cluster, sharedBytes, resident;
  if (!checkKeys(root, {"version", "arguments", "extents", "params",
                        "workspaces", "grid", "block", "cluster",
                        "shared_bytes", "resident", "overlap", "flops"}) ||
      !readInteger(root, "version", launch::kVersion, launch::kVersion,
                   version) ||
      !readInteger(root, "block", 1, launch::kMaxBlock, block) ||
      !readInteger(root, "cluster", 1, launch::kMaxCluster, cluster) ||
      !readInteger(root, "shared_bytes", 0, launch::kMaxSharedBytes,
                   sharedBytes) ||
      !readInteger(root, "resident", 0, launch::kMaxResident, resident) ||
      !readBool(root, "overlap", plan.overlap) ||
      !readArray(root, "arguments",
                 [&](const json &entry) { return parseArgument(entry); }) ||
      !readArray(root, "extents",
                 [&](const json &entry) { return parseExtent(entry); }) ||
      !readArray(root, "workspaces",
                 [&](const json &entry) { return parseWorkspace(entry); }) ||
      !readArray(root, "params",
                 [&](const json &entry) { return parseParam(entry); }) ||
      !readArray(root, "grid",
                 [&](const json &entry) {
                   return parseExpression(entry, "grid",
                                          plan.grid.emplace_back());
                 }) ||
      !parseExpression(root["flops"], "flops", plan.flops))
    return false;
  if (plan.grid.empty() || plan.grid.size() > launch::kMaxGridRank)
    return fail("grid",
                "1 to " + std::to_string(launch::kMaxGridRank) + " expressions",
                root["grid"]);
  plan.block = static_cast<uint32_t>(block);
  plan.cluster = static_cast<uint32_t>(cluster);
  plan.sharedBytes = static_cast<uint32_t>(sharedBytes);
  plan.resident = static_cast<uint32_t>(resident);
  return true;
}

bool LaunchPlan::parse(std::string_view text, LaunchPlan &plan,
                       std::string &error) {
  json root;
  if (!detail::parseStrictJSON(text, "the description of a launch", 0, root,
                               error))
    return false;
  plan = LaunchPlan();
  const json &checked = root;
  return Parser(plan, error).parse(checked);
}
