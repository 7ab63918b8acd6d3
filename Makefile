# actd: build, test, run. `make help` lists what it can do.
#
#   make BUILD=dir     builds elsewhere (default build, build-san with SAN=1)
#   make SAN=1 …       with AddressSanitizer and UndefinedBehaviorSanitizer
#   make CC=clang …    with another compiler
#   make test T=NAME   only the tests whose name contains NAME

SHELL := /bin/bash
.DEFAULT_GOAL := all

SAN ?= 0
ifeq ($(SAN),1)
BUILD ?= build-san
SANFLAGS := -fsanitize=address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer
else
BUILD ?= build
SANFLAGS :=
endif

CC ?= cc
comma := ,
# One line per file; V=1 shows whole commands.
Q := $(if $(V),,@)
say = $(if $(V),,@printf '  %-5s %s\n' $(1) $(2))
VERSION := $(shell git describe --tags --always --dirty 2>/dev/null || echo 0.1)

PKGS_CORE := libzmq libprotobuf-c yaml-0.1 jansson libturbojpeg libsystemd libcrypto libmicrohttpd \
	zlib libzstd liblz4
PKGS_CTL  := libprotobuf-c jansson
PKGS_SIM  := egl libpng

WARN := -Wall -Wextra -Wshadow -Wconversion -Wfloat-conversion -Wstrict-prototypes \
	-Wmissing-prototypes -Wvla -Wcast-qual -Wformat=2 -Wundef -Wpointer-arith -Werror
# With a sanitizer's checks gcc takes half its time to find out where each variable is.
OPT  ?= -O2 -g$(if $(SANFLAGS), -fno-var-tracking)
HARD := -fstack-protector-strong -fstack-clash-protection -fPIE \
	$(if $(filter x86_64,$(shell uname -m)),-fcf-protection)
ifneq ($(SAN),1)
HARD += -D_FORTIFY_SOURCE=2
endif
# No contraction of a*b+c, no -ffast-math: the same binary must give the same bits on every run.
CFLAGS_ALL = -std=c17 -D_GNU_SOURCE $(OPT) $(WARN) $(HARD) -ffp-contract=off $(SANFLAGS) \
	-I. -isystem $(BUILD)/gen $(shell pkg-config --cflags $(PKGS_CORE)) $(CFLAGS)
# A kernel for one instruction set is a file of its own, NAME_avx2.c, and nothing else may use that
# set; of another architecture it compiles to nothing. In every kind of build, the fuzzers', too.
ISA_AVX2   := -mavx2 -mfma
ISA_AVX512 := -mavx512f -mavx512bw -mavx512dq -mavx512vl -mfma -mprefer-vector-width=512
ISA_FLAGS :=
ifneq ($(filter x86_64%,$(shell $(CC) -dumpmachine)),)
$(BUILD)/%_avx2.o: ISA_FLAGS := $(ISA_AVX2)
$(BUILD)/%_avx512.o: ISA_FLAGS := $(ISA_AVX512)
$(BUILD)/%_vnni_avx2.o: ISA_FLAGS := $(ISA_AVX2) -mavxvnni
$(BUILD)/%_vnni_avx512.o: ISA_FLAGS := $(ISA_AVX512) -mavx512vnni
endif
# … and with those between its unrolled transforms 18 s for each of these files, at -O1 one.
ifneq ($(SANFLAGS),)
$(BUILD)/policy/kernels/winograd_%.o: OPT += -O1
endif
LDFLAGS_ALL = -pie -Wl,-z,relro,-z,now $(SANFLAGS) $(LDFLAGS)
LIBS_POLICY := -lopenblas -ljansson -lcrypto -lpthread -lm
LIBS_CORE = $(shell pkg-config --libs $(PKGS_CORE)) $(LIBS_POLICY)
LIBS_SIM  = -lmujoco $(shell pkg-config --libs $(PKGS_SIM))

# ---- sources -------------------------------------------------------------------------------
PROTOS   := google/protobuf/timestamp foxglove/CompressedImage foxglove/RawImage \
	foxglove/JointStates foxglove/Log actd/v1/joint_command actd/v1/status actd/v1/control \
	actd/v1/sim_status actd/v1/record
GEN_C    := $(PROTOS:%=$(BUILD)/gen/%.pb-c.c)
GEN_H    := $(PROTOS:%=$(BUILD)/gen/%.pb-c.h)
GEN_O    := $(GEN_C:.c=.o)
# What a recording says its messages look like (daemon/schema.c): files with all their imports.
SCHEMAS  := foxglove/JointStates foxglove/CompressedImage foxglove/RawImage foxglove/Log \
	actd/v1/joint_command actd/v1/record
GEN_H    += $(SCHEMAS:%=$(BUILD)/gen/%.fds.inc)

POLICY_C := $(wildcard policy/*.c policy/kernels/*.c policy/models/*.c)
DAEMON_C := $(filter-out daemon/main.c,$(wildcard daemon/*.c))
SIM_C    := $(filter-out daemon/sim/main.c,$(wildcard daemon/sim/*.c))
TOOL_C   := $(wildcard daemon/tools/*.c)
CTL_C    := $(wildcard daemon/actctl/*.c)
UNIT_C   := $(wildcard tests/unit/test_*.c)

obj = $(patsubst %.c,$(BUILD)/%.o,$(1))
TOOLS := $(TOOL_C:daemon/tools/%.c=$(BUILD)/%)
UNITS := $(UNIT_C:tests/unit/%.c=$(BUILD)/tests/%)
FAULT_BIN := $(patsubst %,$(BUILD)/tests/fault/%,matrix property hygiene)

.PHONY: all
all: $(BUILD)/actd $(BUILD)/actctl $(BUILD)/actd-sim $(TOOLS)

# ---- rules ---------------------------------------------------------------------------------
$(BUILD)/gen/%.pb-c.c $(BUILD)/gen/%.pb-c.h &: proto/%.proto
	@mkdir -p $(BUILD)/gen
	$(Q)protoc-c -Iproto -I/usr/include --c_out=$(BUILD)/gen $<
$(BUILD)/gen/google/%.pb-c.c $(BUILD)/gen/google/%.pb-c.h &: /usr/include/google/%.proto
	@mkdir -p $(BUILD)/gen
	$(Q)protoc-c -I/usr/include --c_out=$(BUILD)/gen $<
$(BUILD)/gen/%.fds.inc: proto/%.proto $(wildcard proto/*/*.proto proto/*/*/*.proto)
	@mkdir -p $(@D)
	$(Q)protoc -Iproto -I/usr/include --include_imports --descriptor_set_out=$(@:.inc=) $<
	$(Q)od -An -v -tu1 -w20 $(@:.inc=) | sed -E 's/ +/ /g; s/([0-9]+)/\1,/g' >$@
$(BUILD)/daemon/schema.o $(BUILD)/fuzz/daemon/schema.o: $(SCHEMAS:%=$(BUILD)/gen/%.fds.inc)

$(BUILD)/gen/%.o: $(BUILD)/gen/%.c | $(GEN_H)
	$(call say,CC,$@)
	$(Q)$(CC) -std=c17 $(OPT) $(HARD) $(SANFLAGS) -I$(BUILD)/gen -c -o $@ $<

$(BUILD)/%.o: %.c $(GEN_H)
	@mkdir -p $(@D)
	$(call say,CC,$<)
	$(Q)$(CC) $(CFLAGS_ALL) $(ISA_FLAGS) -DACTD_VERSION='"$(VERSION)"' -MMD -MP -c -o $@ $<

# Whoever says the version is compiled anew when it has changed.
VERSIONED := $(shell grep -ls 'ACTD_VERSION' daemon/*.c daemon/*/*.c daemon/actctl/*.h)
$(patsubst %.c,$(BUILD)/%.o,$(filter %.c,$(VERSIONED)) $(wildcard daemon/actctl/*.c)): $(BUILD)/version
ifneq ($(VERSION),$(shell cat $(BUILD)/version 2>/dev/null))
.PHONY: $(BUILD)/version
endif
$(BUILD)/version:
	@mkdir -p $(@D)
	@echo '$(VERSION)' >$@

# A recording says how the program was built.
$(BUILD)/daemon/recorder_facts.o: CFLAGS_ALL += -DACTD_FLAGS='"$(strip $(subst ",,$(OPT) $(HARD) \
	-ffp-contract=off $(SANFLAGS) $(CFLAGS)))"'

$(BUILD)/libpolicy.a: $(call obj,$(POLICY_C))
$(BUILD)/libactd.a: $(call obj,$(DAEMON_C)) $(GEN_O)
$(BUILD)/libsim.a: $(call obj,$(SIM_C))
$(BUILD)/lib%.a:
	@rm -f $@
	$(call say,AR,$@)
	$(Q)ar rcs $@ $^

$(BUILD)/actd: $(BUILD)/daemon/main.o $(BUILD)/libactd.a $(BUILD)/libpolicy.a
	$(call say,LD,$@)
	$(Q)$(CC) $(LDFLAGS_ALL) -o $@ $^ $(LIBS_CORE)
$(BUILD)/actd-sim: $(BUILD)/daemon/sim/main.o $(BUILD)/libsim.a $(BUILD)/libactd.a
	$(call say,LD,$@)
	$(Q)$(CC) $(LDFLAGS_ALL) -o $@ $^ $(LIBS_SIM) $(LIBS_CORE)
# Without OpenBLAS and ZeroMQ: it is a short conversation over one socket.
$(BUILD)/actctl: $(call obj,$(CTL_C)) $(BUILD)/libactd.a
	$(call say,LD,$@)
	$(Q)$(CC) $(LDFLAGS_ALL) -o $@ $^ $(shell pkg-config --libs $(PKGS_CTL)) -lm
$(TOOLS): $(BUILD)/%: $(BUILD)/daemon/tools/%.o $(BUILD)/libactd.a $(BUILD)/libpolicy.a
	$(call say,LD,$@)
	$(Q)$(CC) $(LDFLAGS_ALL) -o $@ $^ $(LIBS_CORE)

# A unit test that needs the simulator is called test_sim*.
$(BUILD)/tests/test_sim%: $(BUILD)/tests/unit/test_sim%.o $(BUILD)/libsim.a $(BUILD)/libactd.a $(BUILD)/libpolicy.a
	$(call say,LD,$@)
	$(Q)$(CC) $(LDFLAGS_ALL) -o $@ $^ -lcmocka $(LIBS_SIM) $(LIBS_CORE)
$(BUILD)/tests/test_%: $(BUILD)/tests/unit/test_%.o $(BUILD)/libactd.a $(BUILD)/libpolicy.a
	$(call say,LD,$@)
	$(Q)$(CC) $(LDFLAGS_ALL) -o $@ $^ -lcmocka $(LIBS_CORE)

# It stands between the network and what divides its work.
$(BUILD)/tests/test_partition: LDFLAGS += $(patsubst %,-Wl$(comma)--wrap=%,pool_run pool_threads pool_share gemm_kernel \
	gemm_int8_kernel stem_kernel winograd_transforms_of linear_run conv_run stem_run attention_run layer_norm_run map_flatten)

# ---- what people call ----------------------------------------------------------------------
DEBS := build-essential pkg-config libzmq3-dev libprotobuf-c-dev protobuf-c-compiler \
	protobuf-compiler libprotobuf-dev libopenblas-pthread-dev libyaml-dev libjansson-dev \
	libturbojpeg0-dev libsystemd-dev libssl-dev libmicrohttpd-dev zlib1g-dev libzstd-dev liblz4-dev libmujoco-dev libegl-dev libegl-mesa0 libgl1-mesa-dri \
	libpng-dev libcmocka-dev valgrind python3 python3-zmq python3-protobuf systemd procps
LINT_DEBS := clang clang-format clang-tidy cppcheck libclang-rt-14-dev man-db
SUDO := $(shell [ "$$(id -u)" = 0 ] || echo sudo)

.PHONY: help deps deps-lint test unit bench demo demo-100 parity lint fuzz ci clean
help: ## this list
	@grep -hE '^[a-z0-9-]+:.*## ' Makefile systemd/rules.mk tests/swap/rules.mk tests/record/rules.mk tests/replay/rules.mk tests/neon/rules.mk | \
		sed -E 's/^([a-z0-9-]+):.*## /  make \1\t/' | expand -t 22

# Does nothing when everything is there already, so it also works without a network then.
missing = $(shell for p in $(1); do dpkg-query -W -f='$${Status}' $$p 2>/dev/null | \
	grep -q 'ok installed' || echo $$p; done)
deps: ## install the Debian packages that building, testing and the demo need
	@m="$(call missing,$(DEBS))"; if [ -n "$$m" ]; then echo "installing $$m"; \
	$(SUDO) apt-get update -qq && $(SUDO) env \
	DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $$m; fi
deps-lint: ## install clang, clang-tidy, cppcheck for lint and fuzz
	@m="$(call missing,$(LINT_DEBS))"; if [ -n "$$m" ]; then echo "installing $$m"; \
	$(SUDO) apt-get update -qq && $(SUDO) env \
	DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $$m; fi

unit: $(UNITS) $(FAULT_BIN) $(BUILD)/bench_loop $(BUILD)/bench_count $(BUILD)/bench_policy $(BUILD)/bench_kernels
test: all unit ## every test; T=NAME runs the matching ones; SAN=1 with sanitizers
	@BUILD=$(BUILD) SAN=$(SAN) CC="$(CC)" tests/run "$(T)"

demo: all ## the simulated robot driven by the shipped policy, 10 episodes
	$(BUILD)/actd-demo $(DEMO_CONFIG) --output $(BUILD)/demo
demo-100: all ## the same over 100 unseen episodes; at least 95 must succeed (PRECISION=int8: in that)
	$(BUILD)/actd-demo $(DEMO_CONFIG) --output $(BUILD)/demo-100 --episodes 100 --seed 2000 --need 0.95
# With another policy.precision the robot is a copy, whose relative paths are made absolute.
DEMO_YAML := $(if $(PRECISION),$(BUILD)/reach-$(PRECISION).yaml)
DEMO_CONFIG := $(if $(PRECISION),-c $(DEMO_YAML))
demo demo-100: $(DEMO_YAML)
$(BUILD)/reach-%.yaml: config/reach.yaml
	@mkdir -p $(@D)
	$(Q)sed -e 's|^  directory: policies|  directory: $(CURDIR)/config/policies|' \
		-e 's|^policy:|&\n  precision: $*|' $< >$@

BENCH_RUNS ?= 20
bench: $(BUILD)/bench_policy ## an inference of the full-size cases: ms, share of the peak, stages, memory (BENCH_RUNS=20, BENCH_ARGS="--cases ad --kernels avx2")
	OPENBLAS_NUM_THREADS=1 $(BUILD)/bench_policy --runs $(BENCH_RUNS) --peers tests/bench/RESULTS.md $(BENCH_ARGS)
$(BUILD)/bench_policy: $(call obj,$(wildcard tests/bench/bench_policy*.c) tests/bench/bench_kernels_race.c \
		$(wildcard tests/bench/bench_kernels_probe_*.c)) $(BUILD)/libpolicy.a
	$(call say,LD,$@)
	$(Q)$(CC) $(LDFLAGS_ALL) -o $@ $^ $(LIBS_POLICY)

KERNELS_O = $(call obj,$(wildcard tests/bench/bench_kernels*.c))
bench-kernels: $(BUILD)/bench_kernels ## each kernel against the FMA peak of its instruction set and OpenBLAS (BENCH_KERNELS_ARGS="--isa avx2")
	OPENBLAS_NUM_THREADS=1 $(BUILD)/bench_kernels $(BENCH_KERNELS_ARGS)
$(BUILD)/bench_kernels: $(KERNELS_O) $(BUILD)/libpolicy.a
	$(call say,LD,$@)
	$(Q)$(CC) $(LDFLAGS_ALL) -o $@ $^ $(LIBS_POLICY)
.PHONY: bench-kernels

$(BUILD)/bench_count: $(BUILD)/tests/bench/bench_count.o $(BUILD)/libpolicy.a
	$(call say,LD,$@)
	$(Q)$(CC) $(LDFLAGS_ALL) -o $@ $^ $(LIBS_POLICY)
count-instructions: $(BUILD)/bench_count ## writes tests/bench/instructions.txt anew, which make test compares with
	@BUILD=$(BUILD) CC="$(CC)" tests/bench/count_instructions --renew
.PHONY: count-instructions

PEERS_BIN := $(BUILD)/bench_serve $(BUILD)/fma_probe
bench-peers: $(PEERS_BIN) ## ONNX Runtime, OpenVINO, PyTorch in turn with ours: tests/bench/RESULTS.md (PYTHON=a venv, BENCH_ARGS=--quick)
	$(PYTHON) tests/bench/peers.py --build $(BUILD) $(BENCH_ARGS)
$(BUILD)/bench_serve: $(BUILD)/tests/bench/bench_serve.o $(BUILD)/libpolicy.a
$(BUILD)/fma_probe: $(call obj,tests/bench/fma_probe.c tests/bench/bench_kernels_race.c \
	$(wildcard tests/bench/bench_kernels_probe_*.c)) $(BUILD)/libpolicy.a
$(PEERS_BIN):
	$(call say,LD,$@)
	$(Q)$(CC) $(LDFLAGS_ALL) -o $@ $^ $(LIBS_POLICY)
.PHONY: bench-peers

# ---- faults ----------------------------------------------------------------------------------
FAULT_OBJ = $(patsubst %,$(BUILD)/tests/fault/%.o,injector plant clock sender sender_frame world world_bus world_new \
	world_record brain blind_refuse matrix scenario verdict joints clocks cameras pictures policy timing requests idle \
	output weights configs disk) $(call obj,$(wildcard tests/replay/*.c))
$(BUILD)/tests/fault/matrix: $(FAULT_OBJ) $(BUILD)/libactd.a $(BUILD)/libpolicy.a
	$(call say,LD,$@)
	$(Q)$(CC) $(LDFLAGS_ALL) -o $@ $^ $(LIBS_CORE)
# The blind build's daemon: with a loader that says no and goes on (blind_refuse.c).
$(BUILD)/tests/fault/actd: $(BUILD)/daemon/main.o $(BUILD)/tests/fault/blind_refuse.o $(BUILD)/libactd.a \
		$(BUILD)/libpolicy.a
	$(call say,LD,$@)
	$(Q)$(CC) $(LDFLAGS_ALL) -o $@ $^ $(LIBS_CORE)
.PHONY: fault
fault: all $(BUILD)/tests/fault/matrix ## every fault, its table, and every scenario again without its detector
	@$(MAKE) --no-print-directory BUILD=$(BUILD)/blind CFLAGS="$(CFLAGS) -DACTD_BLIND" \
		$(BUILD)/blind/tests/fault/actd $(BUILD)/blind/tests/fault/matrix
	@tests/fault/run $(BUILD)
$(BUILD)/tests/fault/hygiene: LDFLAGS += -Wl,--wrap=loop_tick
# A million random ticks with an independent checker; and what the loop thread asks of the kernel.
WALK_OBJ = $(patsubst %,$(BUILD)/tests/fault/%.o,injector plant clock sender sender_frame world world_bus world_new \
	world_record brain blind_refuse checker checker_chunks checker_ladder walk walk_robot) \
	$(call obj,$(wildcard tests/replay/*.c))
$(BUILD)/tests/fault/property $(BUILD)/tests/fault/hygiene: $(BUILD)/tests/fault/%: \
		$(BUILD)/tests/fault/%.o $(WALK_OBJ) $(BUILD)/libactd.a $(BUILD)/libpolicy.a
	$(call say,LD,$@)
	$(Q)$(CC) $(LDFLAGS_ALL) -o $@ $^ $(LIBS_CORE)

# ---- benches, proofs --------------------------------------------------------------------------
.PHONY: coverage mutation
coverage: $(BUILD)/libactd.a $(BUILD)/libpolicy.a ## 100 % of lines and branches of the safety files, or fail
	@tests/coverage/run --build $(BUILD)
MUTATION_ARGS ?=
mutation: $(BUILD)/libactd.a $(BUILD)/libpolicy.a ## at least 95 % of small wrong changes noticed; MUTATION_ARGS="--sample 100"
	@tests/mutation/run --build $(BUILD) $(MUTATION_ARGS)

PYTHON ?= python3
parity: all ## compare with the installed LeRobot (PYTHON=python3.12 or newer; several GB)
	$(PYTHON) tests/parity/run.py --build $(BUILD) $(PARITY_ARGS)

BENCH_DEBS := rt-tests
deps-bench: ## install cyclictest, which bench-loop compares with
	@m="$(call missing,$(BENCH_DEBS))"; if [ -n "$$m" ]; then echo "installing $$m"; \
	$(SUDO) apt-get update -qq && $(SUDO) env \
	DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $$m; fi

BENCH_LOOP_O := $(call obj,$(wildcard tests/bench/bench_loop*.c))
bench-loop: deps-bench $(BUILD)/bench_loop ## the loop beside cyclictest, ticks, joint message to command (9 min)
	OPENBLAS_NUM_THREADS=1 OPENBLAS_CORETYPE=Haswell $(BUILD)/bench_loop $(BENCH_LOOP_ARGS)
$(BUILD)/bench_loop: $(BENCH_LOOP_O) $(BUILD)/libactd.a $(BUILD)/libpolicy.a
	$(call say,LD,$@)
	$(Q)$(CC) $(LDFLAGS_ALL) -o $@ $^ $(LIBS_CORE)

TSAN_BUILD ?= build-tsan
TSAN_SECONDS ?= 15
tsan: all ## ThreadSanitizer: whatever has threads, then the daemon driving the simulated arm
	$(MAKE) BUILD=$(TSAN_BUILD) SANFLAGS=-fsanitize=thread OPT="-O1 -g" \
		CFLAGS=-U_FORTIFY_SOURCE $(TSAN_BUILD)/actd unit
	tests/tsan/run $(TSAN_BUILD) $(BUILD) $(TSAN_SECONDS)

SOAK_SECONDS ?= 3600
SOAK_SEED ?= 1
soak: all $(BUILD)/actd-soak ## the daemon under a robot that misbehaves, SOAK_SECONDS (3600); wants the machine to itself
	@mkdir -p $(BUILD)/soak
	$(BUILD)/actd-soak --build $(BUILD) --output $(BUILD)/soak --seconds $(SOAK_SECONDS) --seed $(SOAK_SEED)
$(BUILD)/actd-soak: $(call obj,$(wildcard tests/soak/*.c)) $(BUILD)/libactd.a $(BUILD)/libpolicy.a
	$(call say,LD,$@)
	$(Q)$(CC) $(LDFLAGS_ALL) -o $@ $^ $(LIBS_CORE)
.PHONY: deps-bench bench-loop tsan soak

# ---- lint ----------------------------------------------------------------------------------
ALL_C := $(POLICY_C) $(DAEMON_C) $(SIM_C) $(TOOL_C) $(CTL_C) daemon/main.c daemon/sim/main.c
lint: deps-lint $(GEN_H) ## clang-format, clang-tidy, cppcheck
	@echo clang-format
	@clang-format --dry-run -Werror $(ALL_C) $(wildcard policy/*.h policy/*/*.h daemon/*.h \
		daemon/*/*.h tests/unit/*.[ch])
	@echo cppcheck
	@cppcheck --quiet --std=c11 --enable=warning,performance,portability --inline-suppr \
		--error-exitcode=1 -j2 -I. $(ALL_C)
	@echo clang-tidy
	@printf '%s\n' $(ALL_C) | xargs -P2 -I{} sh -c "clang-tidy --quiet {} -- -std=c17 -D_GNU_SOURCE \
		-DACTD_VERSION='\"x\"' -I. -isystem $(BUILD)/gen \
		\$$(case {} in *_vnni_avx2.c) echo $(ISA_AVX2) -mavxvnni;; *_vnni_avx512.c) echo $(ISA_AVX512) -mavx512vnni;; \
		*_avx2.c) echo $(ISA_AVX2);; *_avx512.c) echo $(ISA_AVX512);; esac) >$(BUILD)/tidy.\$$\$$ 2>/dev/null || \
		{ cat $(BUILD)/tidy.\$$\$$; exit 1; }; rm -f $(BUILD)/tidy.\$$\$$"

# ---- fuzz ----------------------------------------------------------------------------------
FUZZ_SECONDS ?= 30
FUZZERS := $(patsubst tests/fuzz/%.c,$(BUILD)/fuzz/%,$(wildcard tests/fuzz/fuzz_*.c))
FUZZ_CC := clang -std=c17 -D_GNU_SOURCE -g -O1 -fno-sanitize-recover=all -I. \
	-isystem $(BUILD)/gen -MMD -MP
FUZZ_O  := $(patsubst %.c,$(BUILD)/fuzz/%.o,$(DAEMON_C) $(POLICY_C) $(PROTOS:%=gen/%.pb-c.c))
$(BUILD)/fuzz/%.o: %.c $(GEN_H)
	@mkdir -p $(@D)
	$(call say,FUZZ,$<)
	$(Q)$(FUZZ_CC) $(ISA_FLAGS) -fsanitize=fuzzer-no-link,address,undefined -c -o $@ $<
$(BUILD)/fuzz/gen/%.o: $(BUILD)/gen/%.c | $(GEN_H)
	@mkdir -p $(@D)
	$(Q)$(FUZZ_CC) -fsanitize=fuzzer-no-link,address,undefined -c -o $@ $<
$(BUILD)/fuzz/fuzz_%: tests/fuzz/fuzz_%.c $(FUZZ_O)
	$(call say,FUZZ,$@)
	$(Q)$(FUZZ_CC) -fsanitize=fuzzer,address,undefined -o $@ $< $(FUZZ_O) $(LIBS_CORE)
FUZZ_JOBS ?= 2
fuzz: deps-lint $(FUZZERS) ## each fuzzer for FUZZ_SECONDS (30), FUZZ_JOBS (2) at a time
	@printf '%s\n' $(FUZZERS) | xargs -P$(FUZZ_JOBS) -I{} sh -c 'n=$$(basename {}); \
		mkdir -p $(BUILD)/corpus/$$n; \
		{} -max_total_time=$(FUZZ_SECONDS) -timeout=10 -rss_limit_mb=2048 -verbosity=0 \
		-print_final_stats=1 $(BUILD)/corpus/$$n $$(ls -d tests/fuzz/corpus/$$n 2>/dev/null) \
		2>$(BUILD)/corpus/$$n.log || { tail -40 $(BUILD)/corpus/$$n.log; exit 255; }; \
		echo "$$n for $(FUZZ_SECONDS) s: $$(grep number_of_executed $(BUILD)/corpus/$$n.log)"'

ci: ## make test, then clang, sanitizers, lint, coverage, some mutants and swaps, ARM kernels, fault, replay, systemd, fuzz, demo
	$(MAKE) test
	$(MAKE) ci-rest
.PHONY: ci-rest
ci-rest:
	$(MAKE) -j2 all unit CC=clang BUILD=build-clang OPT=-O1
	$(MAKE) -j2 all unit SAN=1
	$(MAKE) test SAN=1
	$(MAKE) lint
	$(MAKE) coverage
	$(MAKE) mutation MUTATION_ARGS="--sample 100"
	$(MAKE) deps-neon test-neon
	$(MAKE) fault
	$(MAKE) replay
	$(MAKE) swap SWAPS=40 SWAP_FULL=2 SWAP_NEED_S=8
	$(MAKE) check-units
	$(MAKE) test-systemd ALLOW_SKIP=$(ALLOW_SKIP)
	$(MAKE) fuzz FUZZ_SECONDS=20
	$(MAKE) demo

clean:
	rm -rf build build-san build-clang build-tsan

include systemd/rules.mk tests/swap/rules.mk tests/record/rules.mk tests/replay/rules.mk tests/neon/rules.mk

.SECONDARY:
-include $(shell find $(BUILD) -name '*.d' 2>/dev/null)
