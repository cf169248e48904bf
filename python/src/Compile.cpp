//===- Compile.cpp - Compiling from Python --------------------------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Compile.h"

#include "Errors.h"
#include "Job.h"
#include "Program.h"
#include "Text.h"

#include "fp8-c/Compiler.h"

#include <nanobind/stl/pair.h>
#include <nanobind/stl/vector.h>

#include <optional>
#include <utility>

using namespace fp8py;

//===----------------------------------------------------------------------===//
// What the compiler says
//===----------------------------------------------------------------------===//

namespace {
struct Diagnostic {
  int32_t severity, line, column;
  std::string file, message, text;
};

struct Remark {
  int32_t kind;
  std::string name, function, location, role, shape, recipe, reason, suggestion,
      text;
  std::vector<std::pair<std::string, std::string>> details;
};

struct Messages {
  std::vector<Diagnostic> diagnostics;
  std::vector<Remark> remarks;
};
} // namespace

static void collectDiagnostic(const fp8c_diagnostic *diagnostic, void *data) {
  static_cast<Messages *>(data)->diagnostics.push_back(
      {diagnostic->severity, diagnostic->line, diagnostic->column,
       diagnostic->file, diagnostic->message, diagnostic->text});
}

static void collectRemark(const fp8c_remark *remark, void *data) {
  Remark copy = {remark->kind,
                 remark->name,
                 remark->function,
                 remark->location,
                 remark->role,
                 remark->shape,
                 remark->recipe,
                 remark->reason,
                 remark->suggestion,
                 remark->text,
                 {}};
  for (int32_t i = 0; i < remark->num_details; ++i)
    copy.details.emplace_back(remark->details[i].key, remark->details[i].value);
  static_cast<Messages *>(data)->remarks.push_back(std::move(copy));
}

/// Tuples in the order of the members; fp8.remarks and fp8.errors name them.
static nb::list convert(const std::vector<Diagnostic> &diagnostics) {
  nb::list result;
  for (const Diagnostic &it : diagnostics)
    result.append(nb::make_tuple(it.severity, it.line, it.column,
                                 decode(it.file), decode(it.message),
                                 decode(it.text)));
  return result;
}

static nb::list convert(const std::vector<Remark> &remarks) {
  nb::list result;
  for (const Remark &it : remarks) {
    nb::dict details;
    for (const auto &[key, value] : it.details)
      details[decode(key)] = decode(value);
    nb::list entry;
    entry.append(it.kind);
    for (const std::string *text :
         {&it.name, &it.function, &it.location, &it.role, &it.shape, &it.recipe,
          &it.reason, &it.suggestion, &it.text})
      entry.append(decode(*text));
    entry.append(details);
    result.append(entry);
  }
  return result;
}

//===----------------------------------------------------------------------===//
// Compilations
//===----------------------------------------------------------------------===//

namespace {
using Options = std::vector<std::pair<std::string, std::string>>;

/// A compilation to a program, or to code where there is a `kind`, in a context
/// of its own: contexts keep what they have seen.
struct Compilation : Job {
  Compilation(nb::bytes text, std::string name, Options options)
      : text(text.c_str(), text.size()), name(std::move(name)),
        options(std::move(options)) {}
  ~Compilation() {
    fp8c_program_destroy(program);
    fp8c_buffer_destroy(code);
  }

  void run() override {
    status = compile();
    if (status != FP8RT_OK)
      message = fp8rt_get_last_error();
  }
  fp8rt_status compile();

  std::string text, name;
  std::optional<std::string> kind;
  Options options;
  Messages messages;
  fp8c_program *program = nullptr;
  fp8c_buffer *code = nullptr;
  fp8rt_status status = FP8RT_OK;
  std::string message;
  std::mutex stepMutex;
  std::string step;
};
} // namespace

fp8rt_status Compilation::compile() {
  fp8c_context *context = nullptr;
  if (fp8rt_status status = fp8c_context_create(&context))
    return status;
  std::unique_ptr<fp8c_context, decltype(&fp8c_context_destroy)> owner(
      context, fp8c_context_destroy);
  fp8c_context_set_diagnostic_handler(context, collectDiagnostic, &messages);
  fp8c_context_set_remark_handler(context, collectRemark, &messages);
  fp8c_context_set_progress_handler(
      context,
      [](const char *step, void *data) -> int32_t {
        auto *self = static_cast<Compilation *>(data);
        std::lock_guard<std::mutex> lock(self->stepMutex);
        self->step = step;
        return self->mustStop;
      },
      this);

  fp8c_source *source = nullptr;
  if (fp8rt_status status = fp8c_source_create(
          context, text.data(), text.size(), name.c_str(), &source))
    return status;
  std::unique_ptr<fp8c_source, decltype(&fp8c_source_destroy)> sourceOwner(
      source, fp8c_source_destroy);
  std::vector<fp8c_option> list;
  for (const auto &[key, value] : options)
    list.push_back({key.c_str(), value.c_str()});
  return !kind ? fp8c_compile(source, list.data(), list.size(), &program)
               : fp8c_emit(source, kind->c_str(), list.data(), list.size(),
                           &code);
}

/// Throws fp8.errors' exception, with the diagnostics, where it failed.
static void wait(const std::shared_ptr<Compilation> &compilation,
                 nb::handle progress) {
  std::function<void()> tick;
  if (!progress.is_none())
    tick = [&] {
      std::string step;
      {
        std::lock_guard<std::mutex> lock(compilation->stepMutex);
        step = compilation->step;
      }
      progress(step);
    };
  Job::wait(compilation, tick);
  if (compilation->status == FP8RT_OK)
    return;
  nb::object error =
      nb::module_::import_("fp8.errors")
          .attr("make_error")(compilation->status, decode(compilation->message),
                              convert(compilation->messages.diagnostics));
  PyErr_SetObject(error.type().ptr(), error.ptr());
  throw nb::python_error();
}

/// (key, value) of each.
static Options readOptions(nb::handle options) {
  Options result;
  for (nb::handle option : options) {
    std::string key = readText(option[0], "the name of an option");
    std::string what = "the option '" + key + "'";
    result.emplace_back(key, readText(option[1], what.c_str()));
  }
  return result;
}

/// (program, remarks, diagnostics).
static nb::tuple compile(nb::bytes text, nb::handle name, nb::handle options,
                         nb::handle progress) {
  auto compilation = std::make_shared<Compilation>(
      text, readText(name, "the name of a source"), readOptions(options));
  wait(compilation, progress);
  return nb::make_tuple(Program(std::exchange(compilation->program, nullptr)),
                        convert(compilation->messages.remarks),
                        convert(compilation->messages.diagnostics));
}

/// (code, remarks, diagnostics).
static nb::tuple emit(nb::bytes text, nb::handle name, nb::handle kind,
                      nb::handle options, nb::handle progress) {
  auto compilation = std::make_shared<Compilation>(
      text, readText(name, "the name of a source"), readOptions(options));
  compilation->kind = readText(kind, "the kind of code");
  wait(compilation, progress);
  size_t size = 0;
  const char *data = fp8c_buffer_get_data(compilation->code, &size);
  return nb::make_tuple(nb::bytes(data, size),
                        convert(compilation->messages.remarks),
                        convert(compilation->messages.diagnostics));
}

/// (key, value, help) of each.
static nb::list getOptions() {
  nb::list result;
  for (int32_t i = 0; i < fp8c_option_get_count(); ++i) {
    fp8c_option_info info;
    check(fp8c_option_get_info(i, &info));
    result.append(nb::make_tuple(info.key, info.value, info.help));
  }
  return result;
}

void fp8py::addCompiler(nb::module_ &module) {
  module.def("compile", compile, nb::arg("text"), nb::arg("name"),
             nb::arg("options"), nb::arg("progress").none());
  module.def("emit", emit, nb::arg("text"), nb::arg("name"), nb::arg("kind"),
             nb::arg("options"), nb::arg("progress").none());
  module.def("get_options", getOptions);
}
