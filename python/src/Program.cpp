//===- Program.cpp - Compiled programs ------------------------------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Program.h"

#include "Arrays.h"
#include "Errors.h"
#include "Job.h"
#include "Results.h"
#include "State.h"
#include "Text.h"

#include <cstring>
#include <string>

using namespace fp8py;

/// The arguments that are memory of the caller's, which a program may change.
static std::shared_ptr<const Program::Places> findWrites(const char *manifest) {
  if (!std::strstr(manifest, "\"memref<"))
    return nullptr;
  auto writes = std::make_shared<Program::Places>();
  nb::object parsed = nb::module_::import_("json").attr("loads")(manifest);
  uint32_t index = 0;
  for (nb::handle function : parsed["functions"]) {
    size_t position = 0;
    for (nb::handle argument : function["arguments"]) {
      if (nb::cast<std::string>(argument["type"]).rfind("memref<", 0) == 0)
        writes->insert({index, position});
      ++position;
    }
    ++index;
  }
  return writes;
}

Program::Program(fp8c_program *program)
    : program(program, fp8c_program_destroy) {
  check(fp8c_program_get_info(program, &info));
  writes = findWrites(info->manifest);
  durations.assign(info->num_functions, std::chrono::hours(1));
}

//===----------------------------------------------------------------------===//
// Calls
//===----------------------------------------------------------------------===//

namespace {
/// A call with all that it uses, so that it can be left to itself.
struct Call : Job {
  Call(std::shared_ptr<fp8c_program> program,
       const fp8rt_program_function &function, nb::handle arguments,
       nb::handle state);
  ~Call() {
    for (fp8c_managed_tensor *result : results)
      fp8c_managed_tensor_destroy(result);
  }

  void run() override;
  nb::object takeResults();

  std::shared_ptr<fp8c_program> program;
  const fp8rt_program_function &function;
  /// Kept: what PyTorch's say of their sizes is theirs.
  nb::object arrays, stateObject;
  std::vector<Argument> arguments;
  std::vector<const fp8c_tensor *> tensors;
  std::vector<fp8c_managed_tensor *> results;
  fp8rt_state state = 0;
  void *stream = nullptr;
  fp8rt_status status = FP8RT_OK;
  std::string message;
  std::chrono::nanoseconds duration;
};
} // namespace

Call::Call(std::shared_ptr<fp8c_program> program,
           const fp8rt_program_function &function, nb::handle arguments,
           nb::handle state)
    : program(std::move(program)), function(function),
      arrays(nb::borrow(arguments)), stateObject(nb::borrow(state)),
      arguments(nb::len(arguments)), results(function.num_results) {
  if (!state.is_none())
    this->state = nb::cast<const State &>(state).get();
}

void Call::run() {
  auto start = std::chrono::steady_clock::now();
  status = fp8c_program_run(program.get(), function.name, tensors.data(),
                            tensors.size(), results.data(), results.size(),
                            state, stream);
  if (status != FP8RT_OK)
    message = fp8rt_get_last_error();
  duration = std::chrono::steady_clock::now() - start;
}

nb::object Call::takeResults() {
  if (status != FP8RT_OK)
    raise(status, message);
  nb::handle prototype = getPrototype(arrays);
  auto take = [&](size_t index) {
    SharedTensor result = makeShared(results[index]);
    results[index] = nullptr;
    return makeArray(std::move(result), prototype, stream);
  };
  if (results.empty())
    return nb::none();
  if (results.size() == 1)
    return take(0);
  nb::object tuple = nb::steal(PyTuple_New(results.size()));
  for (size_t i = 0; i < results.size(); ++i)
    PyTuple_SetItem(tuple.ptr(), i, take(i).release().ptr());
  return tuple;
}

nb::object Program::call(uint32_t index, nb::handle arguments, nb::handle state,
                         nb::handle stream) {
  const fp8rt_program_function &function = info->functions[index];
  // Signals are looked for where a call would keep Python from it for long.
  constexpr auto kLong = std::chrono::milliseconds(20);
  bool isOnGPU = function.flags & FP8RT_FUNCTION_TAKES_CONTEXT;
  bool mayTakeLong = !isOnGPU && durations[index] > kLong && isMainThread();

  auto job = std::make_shared<Call>(program, function, arguments, state);
  Framework framework;
  if (isOnGPU)
    framework = findFramework(arguments);
  job->stream =
      stream.is_none() ? framework.getCurrentStream() : readStream(stream);
  size_t count = job->arguments.size();
  if (count != static_cast<size_t>(function.num_arguments))
    raise(FP8RT_ERROR_INVALID_ARGUMENT,
          "expected " + std::to_string(function.num_arguments) +
              " arguments for '" + function.name + "', but got " +
              std::to_string(count));
  job->tensors.reserve(count);
  size_t position = 0;
  for (nb::handle array : nb::borrow<nb::tuple>(arguments)) {
    Argument &argument = job->arguments[position];
    argument.begin(function, function.arguments[position]);
    argument.set(array, job->stream);
    if (writes && writes->count({index, position}))
      argument.checkWritable();
    else if (stream.is_none())
      argument.align(array);
    job->tensors.push_back(&argument.getTensor());
    ++position;
  }
  if (isOnGPU && !state.is_none()) {
    auto &used = nb::cast<State &>(state);
    used.stream = job->stream;
    for (const fp8c_tensor *tensor : job->tensors)
      if (tensor->device.type == FP8C_CUDA) {
        used.device = tensor->device.index;
        break;
      }
  }
  framework.shareMemory();
  if (mayTakeLong) {
    Job::wait(job);
  } else {
    nb::gil_scoped_release release;
    job->run();
  }
  durations[index] = job->duration;
  return job->takeResults();
}

//===----------------------------------------------------------------------===//
// Descriptions
//===----------------------------------------------------------------------===//

/// (name, dtype, sizes), with None for a size that calls choose, and for the
/// sizes of a scalar.
static nb::object describe(const fp8rt_program_value &info) {
  nb::list sizes;
  for (int32_t i = 0; i < info.rank; ++i)
    sizes.append(info.sizes[i] < 0 ? nb::object(nb::none())
                                   : nb::object(nb::int_(info.sizes[i])));
  return nb::make_tuple(info.name, info.dtype,
                        info.rank < 0 ? nb::object(nb::none())
                                      : nb::object(nb::tuple(sizes)));
}

static nb::list describe(const fp8rt_program_value *infos, int32_t count) {
  nb::list result;
  for (int32_t i = 0; i < count; ++i)
    result.append(describe(infos[i]));
  return result;
}

/// (name, arguments, results, takes a state, runs on a GPU).
static nb::list describeFunctions(const Program &program) {
  nb::list result;
  const fp8rt_program_info &info = program.getInfo();
  for (uint32_t i = 0; i < info.num_functions; ++i) {
    const fp8rt_program_function &function = info.functions[i];
    result.append(nb::make_tuple(
        function.name, describe(function.arguments, function.num_arguments),
        describe(function.results, function.num_results),
        bool(function.flags & FP8RT_FUNCTION_TAKES_STATE),
        bool(function.flags & FP8RT_FUNCTION_TAKES_CONTEXT)));
  }
  return result;
}

void fp8py::addPrograms(nb::module_ &module) {
  nb::class_<Program>(module, "Program")
      .def("call", &Program::call, nb::arg("function"), nb::arg("arguments"),
           nb::arg("state").none(), nb::arg("stream").none())
      .def("describe_functions", describeFunctions)
      .def_prop_ro("manifest",
                   [](const Program &self) { return self.getInfo().manifest; })
      .def_prop_ro("num_slots",
                   [](const Program &self) { return self.getInfo().num_slots; })
      .def(
          "save",
          [](const Program &self, nb::handle path, nb::handle header) {
            std::string file = readText(path, "the path of a program");
            std::string headerFile;
            if (!header.is_none())
              headerFile = readText(header, "the path of a header");
            fp8rt_status status;
            {
              nb::gil_scoped_release release;
              status = fp8c_program_save(self.get(), file.c_str(),
                                         header.is_none() ? nullptr
                                                          : headerFile.c_str());
            }
            check(status);
          },
          nb::arg("path"), nb::arg("header").none());
  module.def(
      "load_program",
      [](nb::handle path) {
        fp8c_program *program = nullptr;
        check(fp8c_program_load(readText(path, "the path of a program").c_str(),
                                &program));
        return Program(program);
      },
      nb::arg("path"));
}
