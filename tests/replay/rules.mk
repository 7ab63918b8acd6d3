# make replay: what was recorded comes out again, byte by byte. Every fault of the matrix in virtual
# time, then a real daemon (about 3 minutes).
REPLAY_ONLY ?=
.PHONY: replay
replay: all $(BUILD)/tests/fault/matrix $(BUILD)/tests/fault/property ## every fault recorded and replayed to the same bytes, in virtual time and by a real daemon
	@tests/replay/run $(BUILD) '$(REPLAY_ONLY)'
