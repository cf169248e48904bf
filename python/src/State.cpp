//===- State.cpp - Scaling states -----------------------------------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "State.h"

#include "Errors.h"
#include "Text.h"

#include "fp8/Runtime/DeviceState.h"

#include <nanobind/stl/vector.h>
#include <string>

using namespace fp8py;

State::State(const Program &program) : program(program) {
  check(fp8rt_program_create_state(&program.getInfo(), &state));
}

State::~State() { fp8rt_state_destroy(state); }

static std::string readPath(nb::handle path) {
  return readText(path, "the path of a state");
}

static std::string readName(nb::handle name) {
  return readText(name, "the name of a slot");
}

/// The stream that was asked for, or that of the last call.
static fp8rt_stream getStream(const State &state, nb::handle stream) {
  return stream.is_none() ? state.stream : readStream(stream);
}

/// (name, format, role, operand, and the statistics in their order).
static nb::list describeSlots(const State &state) {
  nb::list result;
  fp8rt_state_info info;
  check(fp8rt_state_get_info(state.get(), &info));
  for (int64_t i = 0; i < info.num_slots; ++i) {
    fp8rt_state_slot slot;
    fp8rt_state_statistics statistics;
    check(fp8rt_state_get_slot(state.get(), i, &slot));
    check(fp8rt_state_get_statistics(state.get(), i, &statistics));
    result.append(nb::make_tuple(
        slot.name, slot.format, slot.role, slot.operand, statistics.amax,
        statistics.scale, statistics.recorded, statistics.non_finite,
        statistics.underflow, statistics.saturated));
  }
  return result;
}

static fp8rt_state_info getInfo(const State &state) {
  fp8rt_state_info info;
  check(fp8rt_state_get_info(state.get(), &info));
  return info;
}

/// Where the rows of a state are, of the host or of the device that has it.
static fp8rt_state_rows getRows(const State &state, bool isOnDevice,
                                nb::handle stream) {
  fp8rt_state_rows rows;
  check(isOnDevice ? fp8rt_state_upload(state.get(), state.device,
                                        getStream(state, stream), &rows)
                   : fp8rt_state_get_rows(state.get(), &rows));
  return rows;
}

/// What waits for the end of the step, for a reduction over ranks: (address,
/// number of f32).
static nb::tuple getAmaxRow(const State &state, bool isOnDevice,
                            nb::handle stream) {
  fp8rt_state_rows rows = getRows(state, isOnDevice, stream);
  return nb::make_tuple(reinterpret_cast<uintptr_t>(rows.amax), rows.num_slots);
}

/// The scales of the present step and their inverses, for codes that others
/// make: (address, address of the inverses, number of f32).
static nb::tuple getScaleRows(const State &state, bool isOnDevice,
                              nb::handle stream) {
  fp8rt_state_rows rows = getRows(state, isOnDevice, stream);
  return nb::make_tuple(reinterpret_cast<uintptr_t>(rows.scale),
                        reinterpret_cast<uintptr_t>(rows.scale_inv),
                        rows.num_slots);
}

/// Adds what goes between the program and the device in a step.
static void addSteps(nb::class_<State> &state) {
  state
      .def(
          "end_step",
          [](const State &self, nb::handle stream) {
            fp8rt_stream where = getStream(self, stream);
            fp8rt_status status;
            {
              nb::gil_scoped_release release;
              status = fp8c_program_end_step(self.getProgram().get(),
                                             self.get(), self.device, where);
            }
            check(status);
          },
          nb::arg("stream").none())
      .def(
          "download",
          [](const State &self, nb::handle stream) {
            fp8rt_stream where = getStream(self, stream);
            fp8rt_status status;
            {
              nb::gil_scoped_release release;
              status = fp8rt_state_download(self.get(), where);
            }
            check(status);
          },
          nb::arg("stream").none());
}

/// Adds what goes to a file and comes from it.
static void addFiles(nb::class_<State> &state) {
  state
      .def(
          "save",
          [](const State &self, nb::handle path) {
            check(fp8rt_state_save(self.get(), readPath(path).c_str()));
          },
          nb::arg("path"))
      .def(
          "load",
          [](const State &self, nb::handle path, bool isStrict) {
            fp8rt_load_report report;
            check(fp8rt_state_load(self.get(), readPath(path).c_str(),
                                   isStrict ? FP8RT_LOAD_STRICT : 0, &report));
            return std::string(report.text);
          },
          nb::arg("path"), nb::arg("strict"));
}

/// Adds what reads and sets single values by their names.
static void addValues(nb::class_<State> &state) {
  state
      .def(
          "set_scale",
          [](const State &self, nb::handle name, float scale) {
            check(fp8rt_state_set_scale(self.get(), readName(name).c_str(),
                                        scale));
          },
          nb::arg("name"), nb::arg("scale"))
      .def(
          "get_words",
          [](const State &self, const char *name, int64_t length) {
            std::vector<int32_t> words(length);
            check(
                fp8rt_state_get_words(self.get(), name, words.data(), length));
            return words;
          },
          nb::arg("name"), nb::arg("length"))
      .def(
          "set_words",
          [](const State &self, const char *name,
             const std::vector<int32_t> &words) {
            check(fp8rt_state_set_words(self.get(), name, words.data(),
                                        words.size()));
          },
          nb::arg("name"), nb::arg("words"));
}

void fp8py::addStates(nb::module_ &module) {
  nb::class_<State> state(module, "State");
  state.def(nb::init<const Program &>(), nb::arg("program"))
      .def("freeze",
           [](const State &self) { check(fp8rt_state_freeze(self.get())); })
      .def("unfreeze",
           [](const State &self) { check(fp8rt_state_unfreeze(self.get())); })
      .def("reset",
           [](const State &self) { check(fp8rt_state_reset(self.get())); })
      .def("describe_slots", describeSlots)
      .def("get_amax_row", getAmaxRow, nb::arg("on_device"),
           nb::arg("stream").none())
      .def("get_scale_rows", getScaleRows, nb::arg("on_device"),
           nb::arg("stream").none())
      .def_rw("device", &State::device)
      .def_prop_ro("steps",
                   [](const State &self) { return getInfo(self).steps; })
      .def_prop_ro("frozen",
                   [](const State &self) { return getInfo(self).frozen != 0; })
      .def_prop_ro("recipe", [](const State &self) {
        return std::string(getInfo(self).recipe);
      });
  addSteps(state);
  addFiles(state);
  addValues(state);
}
