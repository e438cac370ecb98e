# Everything happens in this folder: .venv/ holds the Python side and the command, build/ the C side.
#
#   make compare   replay the bundled traces under every allocator, print the tables, write report.html; with costs if valgrind
#                  is there
#   make test      C tests (plain and with sanitizers) and Python tests, and the slowest of them; of it, make test-threads: those with
#                  threads, under the thread sanitizer
#   make test-nightly  an hour: what make test leaves out of the builds with sanitizers, all of make test-cross, ten minutes of soak,
#                  drawn programs by the thousand
#   make install PREFIX=DIR   the command, and the library for C and C++ with its headers, malloc for LD_PRELOAD, manual pages, all in
#                  DIR; DESTDIR= is obeyed; make install-library: without the command, which needs Python
#   make venv      only the slabyard command, as .venv/bin/slabyard
#   make soak      random work of many threads on heaps and on malloc, under every allocator, for SECONDS=3600 seconds; SEED=N to
#                  begin with
#   make load      100 million operations, 1,000 caches, 100 heaps, 1,000 threads, a storm of forks, the end of memory, and LIVE=1024
#                  MiB at once, under every allocator; OPERATIONS=N for less of it (tests/soak/load.c)
#   make fuzz      fuzzers of malloc, caches, pages and all that is parsed, each for FUZZ=20 seconds (tests/fuzz/run.py; needs clang)
#   make faults    every system call of programs on malloc fails once; SIGKILL at POINTS=200 moments, other signals and full disks, of
#                  import, compare, sweep and record (tests/faults/); make faults-kernel: of builds of kernels, at KERNEL_POINTS=30
#   make cost      count instructions of hot allocations and frees, ours and others', into docs/cost.md (x86-64 and arm64)
#   make bench-malloc   real programs under the malloc libraries there are; BENCH="--list" and others: see docs/benchmarks.md
#   make test-conformance  ten million random operations for every policy, the result into docs/conformance.md
#   make test-kernel  builds and boots real kernels (Linux on each of its allocators and of ours), and holds replays against
#                  them (docs/kernels.md tells how long that takes); of it, make test-kernel-smoke: one kernel with all policies
#                  of ours, each booted once
#   make test-cross  core, C tests and conformance for arm64 and 32-bit Arm, run under qemu; CROSS=arm-linux-gnueabihf for one
#   make exact    writes tests/data/exact.json again, where an allocator's results change on purpose
#   make fidelity  hold replays against the real kernels they replay: writes the tables and curves of docs/fidelity.md
#   make targets   the core compiles, without a warning, for every processor that it is for (needs clang)
#   make docs      draw the drawings of docs/allocators/ and docs/architecture.md again
#   make scratch-form  the Python side of the scratch file, made of the programs' scratch.h
#   make lint      style and types of the Python code
#   make lock      write requirements/*.lock again, from requirements/*.in
#   make clean     remove all of it
#
# Each step leaves a stamp in .venv/ and is done again only when what it was made from has changed.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
JOBS := $(shell nproc 2>/dev/null || echo 2)
PREFIX ?= /usr/local
SECONDS ?= 3600
SEED ?=
FUZZ ?= 20
POINTS ?= 200
KERNEL_POINTS ?= 30
OPERATIONS ?= 100000000
LIVE ?= 1024
INSTALL_BUILD ?= build/install
TRACES := hackbench find spike fileio build
TRACE_FILES := $(TRACES:%=traces/%.parquet)
PIP := $(BIN)/python -m pip --disable-pip-version-check -q
CMAKE_FITS := $(shell cmake --version 2>/dev/null | awk 'NR == 1 { split($$3, v, "."); if (v[1] > 3 || (v[1] == 3 && v[2] >= 20)) print "yes" }')
CMAKE_STAMP := $(if $(CMAKE_FITS),,$(VENV)/.cmake)
SOURCES := CMakeLists.txt pyproject.toml $(shell find core include library malloc ports programs replay import threads pairs launch lab -type f ! -name '*.pyc')

export PATH := $(CURDIR)/$(BIN):$(PATH)
# pip compiles what it installs. Python itself, where a disk is full, would leave half a module.
export PYTHONDONTWRITEBYTECODE := 1

.PHONY: compare bench-library bench-malloc cost test test-c test-sanitize test-threads test-python test-nightly test-conformance test-kernel test-kernel-smoke test-cross exact fidelity targets docs scratch-form lint lock clean install install-library install-command \
	venv soak load fuzz faults faults-kernel
.DELETE_ON_ERROR:

# Costs are counted where valgrind is there.
COUNTS := $(shell command -v valgrind >/dev/null && command -v addr2line >/dev/null && echo --cost)

compare: $(VENV)/.slabyard
	@$(BIN)/slabyard compare $(TRACE_FILES) --jobs $(JOBS) --report report.html $(COUNTS)
	@$(if $(COUNTS),,echo "Instructions and cache misses were not counted; that needs valgrind (Debian: apt install valgrind binutils)" >&2)

bench-library: $(CMAKE_STAMP)
	@mkdir -p build/bench
	@cmake -S . -B build/bench/c -DCMAKE_BUILD_TYPE=Release -DBUILD_TESTING=OFF >build/bench/build.log 2>&1 || { cat build/bench/build.log; exit 1; }
	@cmake --build build/bench/c -j $(JOBS) >>build/bench/build.log 2>&1 || { cat build/bench/build.log; exit 1; }

bench-malloc: $(VENV)/.slabyard bench-library
	@$(BIN)/python bench/malloc/run.py $(BENCH)

cost: $(VENV)/.slabyard bench-library
	@$(BIN)/python bench/malloc/cost.py

venv: $(VENV)/.slabyard

# The library with its manual pages, and the command with its Python packages in a virtual environment, lib/slabyard, and with what
# shells complete it by. Builds in INSTALL_BUILD, and writes nothing elsewhere but what is installed. A script of an environment names
# its Python by path; under DESTDIR that is where it will be.
ROOT = $(DESTDIR)$(abspath $(PREFIX))
# Without DESTDIR, which pip's CMake would obey as well.
INSTALL_PIP = env -u DESTDIR '$(ROOT)/lib/slabyard/bin/python' -m pip --disable-pip-version-check -q install
install_completion = mkdir -p '$(dir $(ROOT)/share/$2)' && '$(ROOT)/bin/slabyard' completion $1 >'$(ROOT)/share/$2'

define check_prefix
	@case '$(PREFIX)' in *[[:space:]]*) echo "PREFIX cannot have spaces: install into another folder, or by cmake --install with --prefix" >&2; exit 1;; esac
endef

install: install-library install-command

install-command: $(CMAKE_STAMP)
	$(check_tools)
	$(check_prefix)
	@rm -rf '$(ROOT)/lib/slabyard'
	@$(PYTHON) -m venv '$(ROOT)/lib/slabyard'
	@$(INSTALL_PIP) --require-hashes --only-binary :all: -r requirements/build.lock -r requirements/run.lock
	@$(INSTALL_PIP) --no-deps --no-build-isolation --config-settings build-dir=$(abspath $(INSTALL_BUILD))/wheel .
	@mkdir -p '$(ROOT)/bin'
	@ln -sf ../lib/slabyard/bin/slabyard '$(ROOT)/bin/slabyard'
	@$(call install_completion,bash,bash-completion/completions/slabyard)
	@$(call install_completion,zsh,zsh/site-functions/_slabyard)
	@$(call install_completion,fish,fish/vendor_completions.d/slabyard.fish)
	@sed -i '1s|^#!$(DESTDIR)|#!|' '$(ROOT)/lib/slabyard/bin/slabyard-python'

install-library: $(CMAKE_STAMP)
	$(check_prefix)
	@mkdir -p $(INSTALL_BUILD)
	@cmake -S . -B $(INSTALL_BUILD) -DCMAKE_BUILD_TYPE=Release -DBUILD_TESTING=OFF -DCMAKE_INSTALL_PREFIX=$(abspath $(PREFIX)) \
		>$(INSTALL_BUILD)/build.log 2>&1 || { cat $(INSTALL_BUILD)/build.log; exit 1; }
	@cmake --build $(INSTALL_BUILD) -j $(JOBS) --target slabyard slabyard_shared slabyard_malloc slabyard_malloc_static \
		>>$(INSTALL_BUILD)/build.log 2>&1 || { cat $(INSTALL_BUILD)/build.log; exit 1; }
	@cmake --install $(INSTALL_BUILD) --component library >$(INSTALL_BUILD)/install.log || { cat $(INSTALL_BUILD)/install.log; exit 1; }
	@echo "Installed in $(ROOT)"

exact: $(VENV)/.slabyard $(VENV)/.test
	@$(BIN)/python tests/python/test_exact.py

fidelity: $(VENV)/.slabyard
	@$(BIN)/python bench/fidelity.py

LOGS := test sanitize threads

test: test-c test-sanitize test-threads test-python
	@$(BIN)/python tests/slowest.py 20 $(LOGS:%=build/%/Testing/Temporary/LastTest.log) build/pytest.xml

# The tests that CMake marks with the label nightly, each group with its reason (slabyard_nightly). All else runs in make test.
TIER := -LE nightly
test-nightly: TIER := -L nightly

# What repeats the tests of make test for longer, under a sanitizer, or for another processor.
test-nightly: test-sanitize test-threads $(VENV)/.slabyard $(VENV)/.test
	@$(MAKE) test-cross TIER=
	@$(MAKE) soak SECONDS=600
	@SLABYARD_CONFORMANCE_EXAMPLES=1000 $(BIN)/python -m pytest -q -n $(JOBS) tests/conformance

test-c: $(VENV)/.tools
	@echo "C tests"
	@mkdir -p build
	@cmake -S . -B build/test -DSLABYARD_WERROR=ON >build/test.log 2>&1 || { cat build/test.log; exit 1; }
	@cmake --build build/test -j $(JOBS) >>build/test.log 2>&1 || { cat build/test.log; exit 1; }
	@ctest --test-dir build/test --output-on-failure -j $(JOBS)

test-sanitize: $(VENV)/.tools
	@echo "C tests with address and undefined sanitizers"
	@mkdir -p build
	@cmake -S . -B build/sanitize -DSLABYARD_SANITIZE=address,undefined >build/sanitize.log 2>&1 || { cat build/sanitize.log; exit 1; }
	@cmake --build build/sanitize -j $(JOBS) >>build/sanitize.log 2>&1 || { cat build/sanitize.log; exit 1; }
	@ctest --test-dir build/sanitize --output-on-failure -j $(JOBS) $(TIER)

test-threads: $(VENV)/.tools
	@echo "Tests with threads, with the thread sanitizer"
	@mkdir -p build
	@cmake -S . -B build/threads -DSLABYARD_SANITIZE=thread >build/threads.log 2>&1 || { cat build/threads.log; exit 1; }
	@cmake --build build/threads -j $(JOBS) >>build/threads.log 2>&1 || { cat build/threads.log; exit 1; }
	@ctest --test-dir build/threads --output-on-failure -j $(JOBS) -L threads $(TIER)

test-python: $(VENV)/.slabyard $(VENV)/.test
	@echo "Python tests"
	@mkdir -p build
	@$(BIN)/python -m pytest -q -n $(JOBS) --dist loadfile --junitxml build/pytest.xml

test-conformance: $(VENV)/.slabyard $(VENV)/.test
	@$(BIN)/python tests/conformance/slow.py
	@SLABYARD_CONFORMANCE_EXAMPLES=1000 $(BIN)/python -m pytest -q tests/conformance

test-kernel: $(VENV)/.slabyard $(VENV)/.test
	@$(BIN)/python tests/kernel/needs.py
	@$(BIN)/python -m pytest -q -n 2 --dist loadgroup --durations 10 tests/kernel/boots.py

test-kernel-smoke: export SLABYARD_KERNEL_LINUX := $(or $(SLABYARD_KERNEL_LINUX),6.1)
test-kernel-smoke: $(VENV)/.slabyard $(VENV)/.test
	@$(BIN)/python tests/kernel/needs.py smoke
	@$(BIN)/python -m pytest -q -n 2 tests/kernel/boots.py -k smoke

CROSS := aarch64-linux-gnu arm-linux-gnueabihf

test-cross: $(VENV)/.tools
	@for target in $(CROSS); do \
		emulator=qemu-$${target%%-*}; \
		command -v $$emulator >/dev/null || emulator=$$emulator-static; \
		for tool in $$target-gcc $$emulator; do \
			command -v $$tool >/dev/null || { echo "make test-cross needs $$tool, which is missing (Debian: apt install gcc-aarch64-linux-gnu gcc-arm-linux-gnueabihf libc6-dev-arm64-cross libc6-dev-armhf-cross qemu-user)" >&2; exit 1; }; \
		done; \
		echo "C tests for $$target, under $$emulator"; \
		mkdir -p build; \
		{ cmake -S . -B build/$$target -DSLABYARD_WERROR=ON -DCMAKE_SYSTEM_NAME=Linux -DCMAKE_SYSTEM_PROCESSOR=$${target%%-*} \
			-DCMAKE_C_COMPILER=$$target-gcc "-DCMAKE_CROSSCOMPILING_EMULATOR=$$emulator;-L;/usr/$$target" && \
		cmake --build build/$$target -j $(JOBS); } >build/$$target.log 2>&1 || { cat build/$$target.log; exit 1; }; \
		ctest --test-dir build/$$target --output-on-failure -j $(JOBS) $(TIER) || exit 1; \
	done

soak: $(CMAKE_STAMP)
	@mkdir -p build
	@cmake -S . -B build/test >build/soak.log 2>&1 || { cat build/soak.log; exit 1; }
	@cmake --build build/test -j $(JOBS) --target slabyard-soak slabyard-soak-malloc >>build/soak.log 2>&1 || { cat build/soak.log; exit 1; }
	@build/test/tests/soak/slabyard-soak $$(($(SECONDS) / 2)) $(SEED)
	@build/test/tests/soak/slabyard-soak-malloc $$(($(SECONDS) / 2)) $(SEED)
	@$(PYTHON) tests/soak/hours.py $(SECONDS)

load: $(CMAKE_STAMP)
	@mkdir -p build
	@cmake -S . -B build/test >build/load.log 2>&1 || { cat build/load.log; exit 1; }
	@cmake --build build/test -j $(JOBS) --target slabyard-load >>build/load.log 2>&1 || { cat build/load.log; exit 1; }
	@build/test/tests/soak/slabyard-load $(OPERATIONS) $(LIVE)

# The fuzzers' own build; the lab's fuzzers run in the command's environment.
fuzz: $(VENV)/.slabyard $(VENV)/.fuzz
	@command -v clang >/dev/null || { echo "make fuzz needs clang, which is missing (Debian: apt install clang)" >&2; exit 1; }
	@echo 'int main(void) { return 0; }' | clang -fsanitize=address -x c - -o /dev/null 2>/dev/null || \
		{ v=$$(clang -dumpversion); echo "make fuzz needs clang's sanitizers, which are missing (Debian: apt install libclang-rt-$${v%%.*}-dev)" >&2; exit 1; }
	@mkdir -p build
	@cmake -S . -B build/fuzz -DCMAKE_C_COMPILER=clang -DSLABYARD_FUZZ=ON -DSLABYARD_SANITIZE=address,undefined >build/fuzz.log 2>&1 || { cat build/fuzz.log; exit 1; }
	@cmake --build build/fuzz -j $(JOBS) --target fuzzers >>build/fuzz.log 2>&1 || { cat build/fuzz.log; exit 1; }
	@$(BIN)/python tests/fuzz/run.py $(FUZZ)

faults: $(VENV)/.slabyard
	@cmake -S . -B build/test >build/faults.log 2>&1 || { cat build/faults.log; exit 1; }
	@cmake --build build/test -j $(JOBS) --target slabyard_malloc >>build/faults.log 2>&1 || { cat build/faults.log; exit 1; }
	@$(BIN)/python tests/faults/syscalls.py
	@$(BIN)/python tests/faults/kills.py --points $(POINTS)

faults-kernel: $(VENV)/.slabyard
	@$(BIN)/python tests/faults/kernel_kills.py --points $(KERNEL_POINTS)

targets:
	@for target in x86_64-linux-gnu aarch64-linux-gnu armv7-linux-gnueabihf; do \
		clang --target=$$target -std=c11 -ffreestanding -nostdlibinc -fsyntax-only -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Werror \
			-Iinclude -I. '-DSY_PLATFORM_SHIM="platform/bare.h"' core/*.c core/backend/*.c core/pages/*.c core/policies/*.c core/policies/*/*.c core/platform/bare.c || exit 1; \
		echo "the core compiles for $$target, with nothing beneath"; \
	done

docs: $(VENV)/.slabyard
	@$(BIN)/python docs/draw.py

scratch-form:
	@$(PYTHON) lab/scratch_form.py

lint: $(VENV)/.slabyard $(VENV)/.lint
	@$(BIN)/ruff check lab bench tests/python tests/package tests/layers tests/debug tests/inspect tests/fuzz tests/faults tests/soak debugger docs
	@$(BIN)/mypy lab/slabyard lab/scratch_form.py bench/fidelity.py bench/fidelity_curve.py bench/planted.py bench/sampling.py bench/attacks.py docs/draw.py docs/architecture.py docs/reproduction.py docs/sheaves.py
	@cd bench/malloc && MYPYPATH=../../lab ../../$(BIN)/mypy --config-file ../../pyproject.toml --cache-dir ../../.mypy_cache *.py

clean:
	rm -rf .venv build report.html .pytest_cache .ruff_cache .mypy_cache .hypothesis

# ---- Steps ---------------------------------------------------------------------------------------------------

define check_tools
	@command -v $(PYTHON) >/dev/null || { echo "$(PYTHON) is missing; install Python 3.11 or newer (Debian: apt install python3 python3-venv)" >&2; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "$$($(PYTHON) --version 2>&1) is too old; name Python 3.11 or newer, as in: make PYTHON=python3.12 compare" >&2; exit 1; }
	@$(PYTHON) -c 'import venv, ensurepip' 2>/dev/null || { echo "$(PYTHON) has no venv module; install it (Debian: apt install python3-venv)" >&2; exit 1; }
	@command -v $${CC:-cc} >/dev/null || { echo "no C compiler ($${CC:-cc}); install one (Debian: apt install gcc libc6-dev)" >&2; exit 1; }
endef

$(VENV)/.made:
	$(check_tools)
	@rm -rf $(VENV)
	@echo "Making $(VENV)"
	@$(PYTHON) -m venv $(VENV)
	@touch $@

$(VENV)/.build: requirements/build.lock $(VENV)/.made
	@$(PIP) install --require-hashes --only-binary :all: -r requirements/build.lock
	@touch $@

$(VENV)/.run: requirements/run.lock $(VENV)/.build
	@echo "Installing the Python packages of requirements/run.lock"
	@$(PIP) install --require-hashes --only-binary :all: -r requirements/run.lock
	@touch $@

$(VENV)/.wheel: $(SOURCES) $(VENV)/.build $(CMAKE_STAMP)
	@echo "Building slabyard"
	@rm -rf build/wheel
	@$(PIP) wheel --no-deps --no-build-isolation --wheel-dir build/wheel .
	@touch $@

$(VENV)/.cmake: requirements/cmake.lock $(VENV)/.made
	@echo "Installing cmake, as this machine has none that is new enough"
	@$(PIP) install --require-hashes --only-binary :all: -r requirements/cmake.lock
	@touch $@

# The compiler is at work while packages come from the network.
$(VENV)/.slabyard: $(SOURCES) requirements/run.lock $(VENV)/.build $(CMAKE_STAMP)
	@$(MAKE) --no-print-directory -j 2 $(VENV)/.run $(VENV)/.wheel
	@$(PIP) install --no-deps --force-reinstall build/wheel/*.whl
	@touch $@

$(VENV)/.tools: $(VENV)/.made $(CMAKE_STAMP)
	@touch $@

EXTRAS := requirements/tune.lock requirements/sweep.lock

$(VENV)/.test: requirements/test.lock $(EXTRAS) $(VENV)/.made
	@echo "Installing what the tests need"
	@$(PIP) install --require-hashes --only-binary :all: -r requirements/test.lock $(EXTRAS:%=-r %)
	@touch $@

$(VENV)/.fuzz: requirements/fuzz.lock $(VENV)/.made
	@$(PIP) install --require-hashes --only-binary :all: -r requirements/fuzz.lock
	@touch $@

$(VENV)/.lint: requirements/lint.lock $(VENV)/.made
	@echo "Installing the linters"
	@$(PIP) install --require-hashes --only-binary :all: -r requirements/lint.lock
	@touch $@

lock: $(VENV)/.made
	@$(PIP) install pip-tools==7.6.2
	@for part in build run cmake tune sweep test fuzz lint; do \
		$(BIN)/pip-compile -q --upgrade --generate-hashes --no-emit-index-url --no-emit-find-links --no-emit-trusted-host \
			--no-header --no-annotate --strip-extras --allow-unsafe \
			--output-file requirements/$$part.lock requirements/$$part.in || exit 1; \
	done
