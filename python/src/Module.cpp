//===- Module.cpp - The extension of the Python package -------------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// fp8._core: the C API with arrays, exceptions and signals of Python. What
// users see is made of it by the package's modules; python/fp8/_core.pyi
// describes it.
//
//===----------------------------------------------------------------------===//

#include "Arrays.h"
#include "Compile.h"
#include "Errors.h"
#include "ForeignCall.h"
#include "Groups.h"
#include "Job.h"
#include "LayerCall.h"
#include "PartCall.h"
#include "PreparedCalls.h"
#include "Program.h"
#include "Results.h"
#include "State.h"

#include "fp8/Runtime/Device.h"
#include "fp8/Runtime/Stats.h"

using namespace fp8py;

/// (name, compute capability as (major, minor)) of each device.
static nb::list getDevices() {
  nb::list result;
  int32_t count = 0;
  check(fp8rt_device_get_count(&count));
  for (int32_t i = 0; i < count; ++i) {
    fp8rt_device_info info;
    check(fp8rt_device_get_info(i, &info));
    result.append(nb::make_tuple(
        info.name, nb::make_tuple(info.compute_capability_major,
                                  info.compute_capability_minor)));
  }
  return result;
}

static int32_t getDriverVersion() {
  int32_t version = 0;
  check(fp8rt_device_get_driver_version(&version));
  return version;
}

/// What was recorded for each slot since the last reset, as fp8rt_stats has it.
static nb::list getStats() {
  nb::list result;
  for (int64_t i = 0, count = fp8rt_stats_get_num_slots(); i < count; ++i) {
    fp8rt_stats stats;
    fp8rt_stats_get(i, &stats);
    result.append(nb::make_tuple(stats.calls, stats.amax, stats.count,
                                 stats.underflow, stats.saturated, stats.signal,
                                 stats.noise));
  }
  return result;
}

NB_MODULE(_core, module) {
  // What torch.compile keeps until Python has ended is no mistake of ours.
  nb::set_leak_warnings(false);
  addResults(module);
  addPrograms(module);
  addStates(module);
  addCompiler(module);
  addForeignCalls(module);
  addGroups(module);
  addLayerCalls(module);
  addPartCalls(module);
  addPreparedCalls(module);
  module.def("get_devices", getDevices);
  module.def("get_driver_version", getDriverVersion);
  module.def("get_stats", getStats);
  module.def("reset_stats", fp8rt_stats_reset);
  module.def("get_versions", [] {
    return nb::make_tuple(fp8c_get_version(), fp8rt_get_version());
  });
  module.def("inspect_array", inspectArray, nb::arg("array").none());
  // While Python is still there: what was left to itself uses this library.
  nb::module_::import_("atexit").attr("register")(
      nb::cpp_function(Job::waitForAbandoned));
}
