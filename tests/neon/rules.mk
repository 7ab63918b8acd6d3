# The ARM kernels, on any machine: their unit tests as static binaries under an emulator, or natively
# on ARM.
ifeq ($(shell uname -m),aarch64)
NEON_CC  ?= $(CC)
NEON_AR  ?= ar
NEON_RUN ?= env
else
NEON_CC  ?= aarch64-linux-gnu-gcc
NEON_AR  ?= aarch64-linux-gnu-ar
NEON_RUN ?= qemu-aarch64
NEON_DEFS := -DEMULATED=1
endif
NEON_DEBS := gcc-aarch64-linux-gnu libc6-dev-arm64-cross qemu-user
# the longest first, so that none is left alone at the end
NEON_TESTS := resnet winograd conv attention gemm gemm_int8 gemm_int8_special linear vector_math stem
NEON_BIN := $(NEON_TESTS:%=$(BUILD)/neon/test_%)
NEON_O := $(patsubst %.c,$(BUILD)/neon/%.o,$(wildcard policy/kernels/*.c) policy/pool.c policy/arena.c \
	policy/models/resnet.c policy/profile.c)
$(BUILD)/neon/%.o: %.c
	@mkdir -p $(@D)
	$(call say,NEON,$<)
	$(Q)$(NEON_CC) -std=c17 -D_GNU_SOURCE $(NEON_DEFS) -O2 -g $(WARN) -ffp-contract=off -MMD -MP -Itests/neon -I. -c -o $@ $<
$(NEON_BIN): $(BUILD)/neon/test_%: $(BUILD)/neon/tests/unit/test_%.o $(BUILD)/neon/libkernels.a
	$(Q)$(NEON_CC) -static -o $@ $^ -lm -lpthread
$(BUILD)/neon/libkernels.a: $(NEON_O)
	@rm -f $@
	$(Q)$(NEON_AR) rcs $@ $^
.PHONY: test-neon neon-binaries deps-neon
neon-binaries: $(NEON_BIN)
deps-neon: ## install the compiler for ARM and the emulator (nothing on ARM)
	@m="$(if $(filter aarch64,$(shell uname -m)),,$(call missing,$(NEON_DEBS)))"; \
	if [ -n "$$m" ]; then echo "installing $$m"; $(SUDO) apt-get update -qq && $(SUDO) env \
	DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $$m; fi
test-neon: ## the ARM kernels against their twins under qemu-aarch64 (NEON_CC, NEON_RUN)
	@for p in "$(NEON_CC)" "$(NEON_RUN)"; do command -v $$p >/dev/null || { \
		echo "SKIPPED: test-neon: no $$p here (apt-get install $(NEON_DEBS))"; exit 0; }; done; \
	$(MAKE) --no-print-directory neon-binaries && \
	printf '%s\n' $(NEON_BIN) | xargs -P2 -I{} sh -c '$(NEON_RUN) {} >{}.log 2>&1 && echo {} || \
		{ echo "FAILED: {}"; cat {}.log; exit 255; }'
