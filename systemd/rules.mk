# What turns a build into an installed service: install, deb, and the tests of both.

PREFIX ?= /usr/local
SYSCONFDIR ?= /etc
# A package's units belong to /lib, those of a local installation to its own tree; systemd looks
# in both.
UNITDIR ?= $(if $(filter /usr,$(PREFIX)),/lib,$(PREFIX)/lib)/systemd/system
D = $(DESTDIR)$(PREFIX)
ETC = $(DESTDIR)$(SYSCONFDIR)/actd

.PHONY: install deb check-units test-systemd
install: all ## install programs, manual, completions, examples, protos, the shipped policy, the unit
	install -d $(D)/bin $(D)/share/man/man1 $(D)/share/bash-completion/completions
	install -d $(D)/share/doc/actd/examples $(D)/share/actd/policies/reach
	install -d $(D)/share/actd/proto/foxglove $(D)/share/actd/proto/actd/v1
	install -d $(DESTDIR)$(UNITDIR) $(D)/lib/sysusers.d $(D)/lib/tmpfiles.d $(ETC)
	install -m755 $(BUILD)/actd $(BUILD)/actctl $(BUILD)/actd-sim $(BUILD)/actd-demo $(D)/bin
	install -m644 $(wildcard daemon/man/*.1) $(D)/share/man/man1
	for f in $(wildcard daemon/completion/*); do \
		install -m644 $$f $(D)/share/bash-completion/completions; done
	install -m644 $(filter-out config/reach.yaml,$(wildcard config/*.yaml)) systemd/tcp.conf \
		$(D)/share/doc/actd/examples
	install -m755 config/*.py $(D)/share/doc/actd/examples
	install -m644 config/foxglove-layout.json config/plotjuggler-layout.xml $(D)/share/doc/actd/examples
	install -m644 README.md $(D)/share/doc/actd
	install -m644 config/reach.yaml $(D)/share/actd
	install -m644 config/policies/reach/* $(D)/share/actd/policies/reach
	install -m644 proto/foxglove/* $(D)/share/actd/proto/foxglove
	install -m644 proto/actd/v1/* $(D)/share/actd/proto/actd/v1
	sed 's|/usr/bin/|$(PREFIX)/bin/|; s|/etc/actd/%i|$(SYSCONFDIR)/actd/%i|' \
		systemd/actd@.service >$(DESTDIR)$(UNITDIR)/actd@.service
	chmod 644 $(DESTDIR)$(UNITDIR)/actd@.service
	install -m644 systemd/actd.sysusers $(D)/lib/sysusers.d/actd.conf
	install -m644 systemd/actd.tmpfiles $(D)/lib/tmpfiles.d/actd.conf
	systemd/demo-config $(PREFIX) $(ETC)/demo.yaml

# DEB_VERSION=… overrides what git says.
deb: all ## Debian packages in BUILD/deb: actd, and actd-sim with the simulator and its policy
	+@systemd/deb/build $(BUILD) "$(DEB_VERSION)"

check-units: all ## systemd-analyze verify; exposure of the unit at most 0.8, with tcp.conf 1.5
	@systemd/check-units $(BUILD)

# Exit 77: this machine can not boot it; counts as a failure unless ALLOW_SKIP=1.
test-systemd: deb $(BUILD)/tests/systemd/stall ## the package under a real systemd as PID 1
	@tests/systemd/run $(BUILD) || { r=$$?; \
		[ $$r = 77 ] && [ "$(ALLOW_SKIP)" = 1 ] || exit $$r; }
$(BUILD)/tests/systemd/stall: tests/systemd/stall.c
	@mkdir -p $(@D)
	$(call say,LD,$@)
	$(Q)$(CC) $(CFLAGS_ALL) $(LDFLAGS_ALL) -o $@ $<
