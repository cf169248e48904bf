# A thin front door over CMake. `make demo` and `make test` need nothing but git,
# make and Debian 12's package sources; everything they build lands in build/bin.

PRESET ?= default
BUILD_DIR := $(if $(filter default,$(PRESET)),build,build-$(PRESET))
PYTHON := PYTHONPATH=python .venv/bin/python
CLANG_FORMAT ?= clang-format-22

.DEFAULT_GOAL := help
.PHONY: help setup configure build demo test test-asan test-tsan test-roundtrip \
        test-emulator test-every lint fuzz bench bundle test-bundle format docs clean

help: ## Show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-15s %s\n", $$1, $$2}' \
	  $(firstword $(MAKEFILE_LIST))

setup: ## Install missing Debian packages and make .venv for the tests
	@cmake/setup.sh

# CMake runs again by itself when its own inputs change; the presets are not
# among them.
$(BUILD_DIR)/configured: CMakePresets.json | setup
	@cmake --preset $(PRESET)
	@touch $@

configure: setup $(BUILD_DIR)/configured

build: configure ## Build everything (PRESET=default, debug or asan)
	@cmake --build $(BUILD_DIR)

# What the demo runs, without tests, the other tools and the Python package.
demo: configure ## Compile and run an MLP under every recipe, explained
	@echo "demo: building fp8-opt and fp8-run, the first time some 430 files, most of them" \
	  "with MLIR's headers, which take seconds each"
	@cmake --build $(BUILD_DIR) --target fp8-opt fp8-run
	@$(PYTHON) examples/demo.py --build-dir $(BUILD_DIR)

# The summary reads what lit wrote, so an old result must not survive.
test: build ## Run lit, unit and consumer tests
	@rm -f $(BUILD_DIR)/test/results.json
	@cmake --build $(BUILD_DIR) --target check-fp8; \
	  $(PYTHON) test/summary.py $(BUILD_DIR)/test/results.json

lint: setup ## Check how sources and documents are written, in seconds
	@failed=0; for check in test/Project/*.py; do \
	  $(PYTHON) $$check "$(CURDIR)" "$(CURDIR)/$(BUILD_DIR)" || failed=1; \
	done; exit $$failed

test-asan: ## Run the tests under AddressSanitizer and UBSan
	@$(MAKE) --no-print-directory test PRESET=asan

test-tsan: ## Run the runtime's unit tests under ThreadSanitizer
	@$(MAKE) --no-print-directory configure PRESET=tsan
	@cmake --build --preset tsan
	@build-tsan/test/Unit/FP8RuntimeTests

# Some 1500 kernels, in minutes, and 2000 programs on each GPU, in a night; `make test` runs
# samples.
test-emulator: build ## Run kernels of every config and random programs on the model of a GPU
	@FP8_CUDA_DRIVER=emulator FP8_EMULATOR_CHECK=all $(PYTHON) \
	  test/Emulator/Inputs/every_config.py benchmarks $(BUILD_DIR)/bin --bits
	@FP8_CUDA_DRIVER=emulator FP8_EMULATOR_CHECK=all $(PYTHON) \
	  test/Emulator/Inputs/every_config.py benchmarks $(BUILD_DIR)/bin --bits --target=sm_100a
	@FP8_CUDA_DRIVER=emulator FP8_EMULATOR_CHECK=all $(PYTHON) \
	  test/Emulator/Inputs/every_config.py benchmarks $(BUILD_DIR)/bin --bits --target=sm_89
	@FP8_CUDA_DRIVER=emulator FP8_EMULATOR_CHECK=all $(PYTHON) \
	  test/Emulator/Inputs/every_config.py benchmarks $(BUILD_DIR)/bin --bits --target=sm_120a
	@FP8_EMULATOR_CHECK=all PYTHONPATH=$(BUILD_DIR)/python .venv/bin/python \
	  benchmarks/random_programs.py check --seed 1000 --programs 2000 --jobs 2
	@FP8_EMULATOR_CHECK=all PYTHONPATH=$(BUILD_DIR)/python .venv/bin/python \
	  benchmarks/random_programs.py check --seed 1000 --programs 2000 --jobs 2 --target sm_100a

test-every: build ## Assemble kernels of every config, break all statements, try all recipes; `make test` takes samples
	@FP8_TEST_EVERY=1 LIT_FILTER="Kernels/.*-table|Emulator/.*mutations|Python/" $(MAKE) --no-print-directory test

# libFuzzer; each fuzzer runs for FP8_FUZZ_SECONDS of the cache, 60.
fuzz: configure ## Fuzz what reads files, a minute each
	@cmake -S . -B $(BUILD_DIR) -DFP8_BUILD_FUZZERS=ON >$(BUILD_DIR)/fuzz.log
	@cmake --build $(BUILD_DIR) --target fuzz

test-roundtrip: ## Run the tests with every module round-tripped first
	@FP8_CHECK_ROUNDTRIP=1 $(MAKE) --no-print-directory test

bench: build ## Measure casts, matmul, start-up and compile time
	@$(PYTHON) benchmarks/run.py --build-dir $(BUILD_DIR)

bundle: build ## Make build/fp8-bundle.tar.xz, which runs elsewhere
	@cmake --build $(BUILD_DIR) --target fp8-bundle

test-bundle: bundle ## Check the bundle where nothing else is
	@python3 bundle/test_bundle.py $(BUILD_DIR)/fp8-bundle.tar.xz .

format: setup ## Format the C++ sources
	@git ls-files -z '*.h' '*.cpp' | xargs -0 $(CLANG_FORMAT) -i

docs: setup ## Regenerate docs/generated
	@docs/generate.sh

clean: ## Remove the build directory
	@rm -rf $(BUILD_DIR)
