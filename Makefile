# A thin front for CMake: everything here can also be typed by hand. `make help` lists the targets.

# Where `make install` puts things, below DESTDIR if that is set.
PREFIX ?= /usr/local
# Tests at a time. They watch the clock, so one is the safe number.
JOBS ?= 1
BUILD_JOBS ?= $(shell nproc)
# Seconds for each fuzz target.
FUZZ_SECONDS ?= 60
# What `make bench` measures.
BENCHMARKS ?= raw signal put get barrier sendrecv sendrecv-ring allreduce allgather reduce-scatter \
	alltoall bcast sparse
# More for the configuration, such as -DHEM_WERROR=ON -DHEM_ASSERT=ON.
CMAKE_ARGS ?=

CLANG ?= $(or $(shell command -v clang-14),clang)
CTEST = ctest --output-on-failure --no-tests=error -j$(JOBS)
# ThreadSanitizer's memory map does not bear with much address randomisation; take it off if we may.
FIXED_MAP = $(if $(shell setarch -R true 2>&1),,setarch -R)

configure = cmake --preset $(1) --log-level=NOTICE $(CMAKE_ARGS)
# The build chooses its own number of jobs, and need not say which folder it enters.
build = MAKEFLAGS=--no-print-directory cmake --build $(1) -j$(BUILD_JOBS)
unexport MAKEFLAGS

.PHONY: all demo test debug asan tsan models fuzz soak bench lint format install clean help

all:
	$(call configure,release)
	$(call build,build)

demo:
	dev/setup build
	$(call configure,release)
	$(call build,build) --target hem_command example_heat
	build/hem run -n 4 build/examples/heat --png build/heat.png

test:
	dev/setup test
	$(call configure,release)
	$(call build,build)
	$(CTEST) --test-dir build

debug:
	$(call configure,debug)
	$(call build,build-debug)

asan:
	dev/setup test
	$(call configure,asan)
	$(call build,build-asan)
	$(CTEST) --test-dir build-asan -LE '^source$$'

# What runs in a single thread has nothing for it to find.
tsan:
	dev/setup test
	$(call configure,tsan)
	$(call build,build-tsan)
	$(FIXED_MAP) $(CTEST) --test-dir build-tsan -L '^(unit|sim|threads)$$' -LE '^single$$'

models:
	models/check

fuzz:
	$(call configure,fuzz) -DCMAKE_C_COMPILER=$(CLANG)
	$(call build,build-fuzz)
	dev/fuzz build-fuzz $(FUZZ_SECONDS)

soak:
	dev/setup test
	$(call configure,soak)
	$(call build,build-soak)
	HEM_SOAK=1 HEM_TEST_FULL=1 $(CTEST) --test-dir build-soak -L '^(soak|kill)$$'

bench: all
	for name in $(BENCHMARKS); do build/hem bench $$name || exit 1; done

lint:
	$(call configure,release)
	$(call build,build)
	dev/lint build

format:
	dev/lint --format

install: all
	DESTDIR='$(DESTDIR)' cmake --install build --prefix '$(PREFIX)'

clean:
	rm -rf build build-*

help:
	@echo 'make          the command build/hem and the libraries beside it'
	@echo 'make demo     a heat field on 4 ranks, in the terminal and as a PNG'
	@echo 'make test     all tests                      (JOBS=1 at a time)'
	@echo 'make debug    a build for the debugger, in build-debug'
	@echo 'make asan     tests under AddressSanitizer and UBSan'
	@echo 'make tsan     tests under ThreadSanitizer'
	@echo 'make models   checks the Promela models of the protocols'
	@echo 'make fuzz     runs each fuzz target          (FUZZ_SECONDS=60)'
	@echo 'make soak     the long campaigns, for hours'
	@echo 'make bench    Hem beside the hardware and its peers  (BENCHMARKS="raw signal ...")'
	@echo 'make lint     format, clang-tidy, and the rules of the source'
	@echo 'make format   formats the source'
	@echo 'make install  installs below PREFIX=/usr/local, DESTDIR if set'
	@echo 'make clean    removes all builds'
