# Installing, and what is generated for those who run it.

INSTALL ?= install
# Installed with their directories, so that links between them and names in --help stay good.
DOCS := $(wildcard README.md CHANGELOG.md CONTRIBUTING.md docs/*.md lib/README.md config/* proto/*.* proto/examples/*.* \
  proto/examples/admin/*.* deploy/redis.conf deploy/compose.yaml deploy/demo-seed.sh tests/bench/README.md)

.PHONY: install docs
install: all ## install under $(DESTDIR)$(PREFIX), configuration under $(DESTDIR)/etc/dedupd
	$(INSTALL) -d $(DESTDIR)$(PREFIX)/bin $(DESTDIR)/etc/dedupd
	$(INSTALL) -m 755 $(B)/dedupd $(B)/dedupctl $(DESTDIR)$(PREFIX)/bin
	for f in $(DOCS); do $(INSTALL) -D -m 644 $$f $(DESTDIR)$(PREFIX)/share/doc/dedupd/$$f || exit 1; done
	$(if $(wildcard config/dedupd.json),test -e $(DESTDIR)/etc/dedupd/dedupd.json || \
	  $(INSTALL) -m 640 config/dedupd.json $(DESTDIR)/etc/dedupd/dedupd.json)
	$(INSTALL) -d $(DESTDIR)$(PREFIX)/lib/systemd/system $(DESTDIR)$(PREFIX)/lib/sysusers.d
	sed 's|/usr/local/bin/|$(PREFIX)/bin/|' deploy/dedupd.service > $(DESTDIR)$(PREFIX)/lib/systemd/system/dedupd.service
	$(INSTALL) -m 644 deploy/sysusers.conf $(DESTDIR)$(PREFIX)/lib/sysusers.d/dedupd.conf

docs: all ## write config/dedupd.json (every option with its default) and config/README.md from the option table
	env -i $(B)/dedupd --print-config > $(B)/dedupd.json
	env -i $(B)/dedupd --print-reference > $(B)/reference.md
	mkdir -p config && cp $(B)/dedupd.json config/dedupd.json && cp $(B)/reference.md config/README.md
