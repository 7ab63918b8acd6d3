# The recorder in the real daemon: killed, on disks that fail, and beside a loop at 1 kHz.
RECORD_O = $(call obj,$(wildcard tests/record/*.c) tests/twin.c)
$(BUILD)/actd-record-rig: $(RECORD_O) $(BUILD)/libactd.a $(BUILD)/libpolicy.a
	$(call say,LD,$@)
	$(Q)$(CC) $(LDFLAGS_ALL) -o $@ $^ $(LIBS_CORE)
$(BUILD)/record-disk.so: tests/record/preload/disk.c tests/record/disk.h
	@mkdir -p $(@D)
	$(call say,LD,$@)
	$(Q)$(CC) -std=c17 -D_GNU_SOURCE -O2 -g -Wall -Wextra -Werror -I. -fPIC -shared -o $@ $< -ldl
RECORD_KILLS ?= 100
RECORD_AT_ONCE ?= 3
RECORD_PYTHON ?= $(PYTHON)
RECORD_SEED ?= 1
.PHONY: record-kill record-disk bench-record
record-kill: all $(BUILD)/actd-record-rig ## the daemon killed at RECORD_KILLS (100) random moments while it records
	@rm -rf $(BUILD)/record-kill; mkdir -p $(BUILD)/record-kill
	$(BUILD)/actd-record-rig --build $(BUILD) kill $(RECORD_KILLS) $(RECORD_AT_ONCE) \
		$(abspath $(BUILD))/record-kill $(RECORD_SEED)
	@$(RECORD_PYTHON) tests/record/check.py $(BUILD)/record-kill/list; r=$$?; [ $$r = 77 ] || exit $$r
	@rm -rf $(BUILD)/record-kill
RECORD_DISK_SECONDS ?= 8
RECORD_DISK_ROUNDS ?= 4
record-disk: all $(BUILD)/actd-record-rig $(BUILD)/record-disk.so ## full, broken, slow and removed disks: no late tick (11 min)
	$(BUILD)/actd-record-rig --build $(abspath $(BUILD)) disk $(RECORD_DISK_SECONDS) $(RECORD_DISK_ROUNDS)
BENCH_RECORD_SECONDS ?= 2
BENCH_RECORD_PAIRS ?= 24
bench-record: all $(BUILD)/actd-record-rig $(if $(SANFLAGS),,$(BUILD)/swaps-count.so) ## 1 kHz, 4 cameras: with and without recording; replay of it (3 min)
	$(BUILD)/actd-record-rig --build $(abspath $(BUILD)) bench $(BENCH_RECORD_SECONDS) $(BENCH_RECORD_PAIRS)
# The e2e test kills a few daemons, too.
unit: $(BUILD)/actd-record-rig
