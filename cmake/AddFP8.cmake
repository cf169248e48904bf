# The few build rules of the project. Everything links to the LLVM and MLIR
# dylibs; static MLIR archives are never mixed in, because two copies of MLIR
# in one process disagree about type ids.

include(CheckCXXCompilerFlag)

# -fno-exceptions for MLIR-facing code; the runtime adds its own flags.
add_library(fp8_compile_options INTERFACE)
target_include_directories(fp8_compile_options INTERFACE
  $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include>
  $<BUILD_INTERFACE:${PROJECT_BINARY_DIR}/include>
  $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
target_include_directories(fp8_compile_options SYSTEM INTERFACE
  ${MLIR_INCLUDE_DIRS} ${LLVM_INCLUDE_DIRS})
if(FP8_SANITIZERS)
  string(REPLACE ";" "," _fp8_sanitizers "${FP8_SANITIZERS}")
  add_compile_options(-fsanitize=${_fp8_sanitizers} -fno-omit-frame-pointer
                      -fno-sanitize-recover=undefined -fno-sanitize=vptr,function)
  add_link_options(-fsanitize=${_fp8_sanitizers})
endif()

# LLVM's headers lay classes out by NDEBUG (pass statistics, for one), so even in
# a debug build it must be what it was when LLVM was built.
if(NOT LLVM_ENABLE_ASSERTIONS)
  add_compile_definitions($<$<CONFIG:Debug>:NDEBUG>)
endif()

add_compile_options(-Wall -Wextra -Wno-unused-parameter)
if(FP8_WARNINGS_AS_ERRORS)
  add_compile_options(-Werror)
endif()
check_cxx_compiler_flag(-Xclang=-fno-pch-timestamp FP8_HAS_PCH_TIMESTAMP)

if(FP8_ENABLE_CCACHE)
  find_program(FP8_CCACHE ccache)
  if(FP8_CCACHE)
    # ccache sees through a precompiled header only with this sloppiness. A file is
    # not preprocessed for its key, which took as long as compiling it: what the
    # compiler says that it read makes the key of the next time.
    set(_fp8_launcher "${CMAKE_COMMAND};-E;env" "CCACHE_DEPEND=1"
      "CCACHE_SLOPPINESS=pch_defines,time_macros,include_file_mtime,include_file_ctime"
      "CCACHE_BASEDIR=${PROJECT_SOURCE_DIR}" "CCACHE_NOHASHDIR=1" "${FP8_CCACHE}")
    set(CMAKE_C_COMPILER_LAUNCHER "${_fp8_launcher}")
    set(CMAKE_CXX_COMPILER_LAUNCHER "${_fp8_launcher}")
  endif()
endif()

# One precompiled header for every MLIR-facing library. The operations' classes,
# SCF's and matchers were a third of what a file took.
function(_fp8_use_pch target)
  if(NOT FP8_ENABLE_PCH)
    return()
  endif()
  if(NOT TARGET fp8_pch)
    file(CONFIGURE OUTPUT "${PROJECT_BINARY_DIR}/fp8_pch.cpp" CONTENT "")
    add_library(fp8_pch OBJECT "${PROJECT_BINARY_DIR}/fp8_pch.cpp")
    target_link_libraries(fp8_pch PUBLIC fp8_compile_options)
    target_compile_options(fp8_pch PRIVATE -fno-exceptions)
    target_precompile_headers(fp8_pch PRIVATE
      <mlir/Dialect/GPU/IR/GPUDialect.h>
      <mlir/Dialect/LLVMIR/NVVMDialect.h>
      <mlir/Dialect/Linalg/IR/Linalg.h>
      <mlir/Dialect/Tensor/IR/Tensor.h>
      <mlir/Dialect/Func/IR/FuncOps.h>
      <mlir/Dialect/SCF/IR/SCF.h>
      <mlir/IR/Matchers.h>
      <mlir/Pass/Pass.h>
      <mlir/Transforms/DialectConversion.h>
      <mlir/Transforms/GreedyPatternRewriteDriver.h>
      <fp8/IR/FP8Ops.h>)
    target_include_directories(fp8_pch PRIVATE "${PROJECT_SOURCE_DIR}/include"
                                               "${PROJECT_BINARY_DIR}/include")
    add_dependencies(fp8_pch FP8IRIncGen FP8RuntimeIncGen)
    if(FP8_HAS_PCH_TIMESTAMP)
      target_compile_options(fp8_pch PRIVATE
        "$<$<COMPILE_LANG_AND_ID:CXX,Clang>:SHELL:-Xclang -fno-pch-timestamp>")
    endif()
  endif()
  if(FP8_HAS_PCH_TIMESTAMP)
    target_compile_options(${target} PRIVATE
      "$<$<COMPILE_LANG_AND_ID:CXX,Clang>:SHELL:-Xclang -fno-pch-timestamp>")
  endif()
  target_precompile_headers(${target} REUSE_FROM fp8_pch)
endfunction()

# add_fp8_library(Name SOURCES a.cpp ... [DEPENDS tablegen targets] [LINK FP8 libs])
function(add_fp8_library name)
  cmake_parse_arguments(ARG "" "" "SOURCES;DEPENDS;LINK" ${ARGN})
  add_library(${name} STATIC ${ARG_SOURCES})
  add_library(FP8::${name} ALIAS ${name})
  target_link_libraries(${name} PUBLIC fp8_compile_options ${ARG_LINK} MLIR LLVM)
  target_compile_options(${name} PRIVATE -fno-exceptions)
  if(ARG_DEPENDS)
    add_dependencies(${name} ${ARG_DEPENDS})
  endif()
  _fp8_use_pch(${name})
  set_property(GLOBAL APPEND PROPERTY FP8_LIBRARIES ${name})
  install(TARGETS ${name} EXPORT FP8Targets
          ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
endfunction()

# add_fp8_tool(name SOURCES main.cpp ... LINK FP8 libs)
function(add_fp8_tool name)
  cmake_parse_arguments(ARG "" "" "SOURCES;LINK" ${ARGN})
  add_executable(${name} ${ARG_SOURCES})
  target_link_libraries(${name} PRIVATE fp8_compile_options ${ARG_LINK} MLIR LLVM)
  # -fPIC, not -fPIE: the precompiled header is shared with the libraries.
  # Plugins find the dialect that the tool has, not a copy of their own.
  set_target_properties(${name} PROPERTIES POSITION_INDEPENDENT_CODE OFF
                                           ENABLE_EXPORTS ON)
  target_compile_options(${name} PRIVATE -fno-exceptions -fPIC)
  _fp8_use_pch(${name})
  set_property(GLOBAL APPEND PROPERTY FP8_TOOLS ${name})
  install(TARGETS ${name} RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
endfunction()

# add_fp8_plugin(name SOURCES plugin.cpp ... LINK FP8 libs): a module that a
# stock mlir-opt loads; it resolves MLIR to the dylib that mlir-opt runs on.
function(add_fp8_plugin name)
  cmake_parse_arguments(ARG "" "" "SOURCES;LINK" ${ARGN})
  add_library(${name} MODULE ${ARG_SOURCES})
  set_target_properties(${name} PROPERTIES PREFIX "")
  target_link_libraries(${name} PRIVATE fp8_compile_options ${ARG_LINK} MLIR LLVM)
  target_compile_options(${name} PRIVATE -fno-exceptions)
  _fp8_use_pch(${name})
  set_property(GLOBAL APPEND PROPERTY FP8_TOOLS ${name})
  install(TARGETS ${name} LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
endfunction()

# add_fp8_unittest(FP8XTests SOURCES X/ATest.cpp ... LINK FP8 libs)
# The name ends in Tests: that is how lit finds the executable.
function(add_fp8_unittest name)
  cmake_parse_arguments(ARG "" "" "SOURCES;LINK" ${ARGN})
  add_executable(${name} ${ARG_SOURCES})
  set_target_properties(${name} PROPERTIES
    RUNTIME_OUTPUT_DIRECTORY "${CMAKE_CURRENT_BINARY_DIR}")
  target_link_libraries(${name} PRIVATE fp8_compile_options ${ARG_LINK}
    GTest::gtest_main MLIR LLVM)
  set_property(GLOBAL APPEND PROPERTY FP8_UNITTESTS ${name})
endfunction()
