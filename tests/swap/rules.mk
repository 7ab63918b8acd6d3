# make swap: policies change while the simulated arm moves, SWAPS times (1000, about 40 minutes).
SWAPS ?= 1000
SWAP_SEED ?= 1
SWAP_FULL ?= 6
# Seconds from the request to the first chunk of a full-size policy, on cores that are there.
SWAP_NEED_S ?= 2
SWAP_O = $(call obj,$(wildcard tests/swap/*.c) tests/twin.c)
$(BUILD)/actd-swaps: $(SWAP_O) $(BUILD)/libactd.a $(BUILD)/libpolicy.a
	$(call say,LD,$@)
	$(Q)$(CC) $(LDFLAGS_ALL) -o $@ $^ $(LIBS_CORE)
# Nothing of it for sanitizers, which own malloc.
$(BUILD)/swaps-count.so: tests/swap/preload/count.c tests/swap/count.h
	@mkdir -p $(@D)
	$(call say,LD,$@)
	$(Q)$(CC) -std=c17 -D_GNU_SOURCE -O2 -g -Wall -Wextra -Werror -I. -fPIC -shared -fno-builtin \
		-o $@ $< -ldl
.PHONY: swap
swap: all $(BUILD)/actd-swaps $(if $(SANFLAGS),,$(BUILD)/swaps-count.so) ## policies swapped in mid-motion, SWAPS (1000) times, bad ones mixed in
	@mkdir -p $(BUILD)/swap
	$(BUILD)/actd-swaps --build $(BUILD) --output $(BUILD)/swap --swaps $(SWAPS) --seed $(SWAP_SEED) \
		--full $(SWAP_FULL) --need-s $(SWAP_NEED_S)
# The same daemon under ThreadSanitizer, fewer times, between small policies.
TSAN_SWAPS ?= 30
.PHONY: swap-tsan
swap-tsan: all $(BUILD)/actd-swaps ## races in TSAN_SWAPS (30) swaps
	$(MAKE) BUILD=$(TSAN_BUILD) SANFLAGS=-fsanitize=thread OPT="-O1 -g" \
		CFLAGS=-U_FORTIFY_SOURCE $(TSAN_BUILD)/actd
	@rm -f $(TSAN_BUILD)/race.*
	TSAN_OPTIONS="suppressions=$(CURDIR)/tests/tsan/suppressions exitcode=66 log_path=$(abspath $(TSAN_BUILD))/race" \
		setarch -R $(BUILD)/actd-swaps --build $(TSAN_BUILD) --sim $(BUILD) --output $(TSAN_BUILD)/swap \
		--swaps $(TSAN_SWAPS) --tiny
	@! cat $(TSAN_BUILD)/race.* 2>/dev/null
