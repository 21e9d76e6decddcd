# dedupd: `make help` lists the targets. Everything built goes to build/ (or build-<sanitizer>/).

VERSION   := 0.1.0
CC        ?= cc
PREFIX    ?= /usr/local
DESTDIR   ?=
SANITIZER ?=
WERROR    ?=
PYTHON    ?= /usr/bin/python3

# SANITIZER=address, undefined, thread, or address,undefined; each builds into its own folder.
comma := ,
B := build$(if $(SANITIZER),-$(subst $(comma),-,$(SANITIZER)))

# Modules in the order of "may include": DEPS_x is everything that x may see, itself excluded (tests/lint checks it).
MODULES     := base config stats filter loop store hot dedup http api
DEPS_base   :=
DEPS_config := base filter
DEPS_stats  := base
DEPS_filter := base
DEPS_loop   := base stats
DEPS_store  := base stats filter loop
DEPS_hot    := base stats loop
DEPS_http   := base stats loop
DEPS_dedup  := base stats filter loop store hot
DEPS_api    := base stats filter loop http dedup

PACKAGES := libevent_core libevent_pthreads hiredis rocksdb jansson libxxhash
CFLAGS_ALL := -std=c11 -D_GNU_SOURCE -DDD_VERSION='"$(VERSION)"' -Ilib -Itests/unit -O2 -g -fno-omit-frame-pointer \
  -Wall -Wextra -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Wpointer-arith -Wvla -Wformat=2 -Wno-format-zero-length \
  $(if $(WERROR),-Werror) $(if $(SANITIZER),-fsanitize=$(SANITIZER) $(if $(findstring undefined,$(SANITIZER)),-fno-sanitize-recover=all),-D_FORTIFY_SOURCE=2) \
  -fstack-protector-strong -pthread $(shell pkg-config --cflags $(PACKAGES)) $(CFLAGS)
LDFLAGS_ALL := $(if $(SANITIZER),-fsanitize=$(SANITIZER)) -pthread -Wl,--as-needed $(LDFLAGS)
LIBS := $(shell pkg-config --libs $(PACKAGES)) -lm

objs = $(patsubst %.c,$(B)/obj/%.o,$(sort $(wildcard $(1))))
$(foreach m,$(MODULES),$(eval OBJS_$(m) := $(call objs,lib/$(m)/*.c)))
ALL_OBJS := $(foreach m,$(MODULES),$(OBJS_$(m)))
# What a test of a module links: the module and, transitively, all that it may see.
closure = $(sort $(1) $(foreach d,$(DEPS_$(1)),$(d) $(DEPS_$(d))))

.PHONY: all help
all: $(B)/dedupd $(B)/dedupctl ## build build/dedupd and build/dedupctl (default)

help: ## list all targets
	@grep -hE '^[a-z][a-z-]*:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 18

$(B)/dedupd: $(call objs,cmd/dedupd/*.c) $(ALL_OBJS)
	$(CC) $(LDFLAGS_ALL) -o $@ $^ $(shell pkg-config --libs libsystemd) $(LIBS)

$(B)/dedupctl: $(call objs,cmd/dedupctl/*.c) $(foreach m,config $(call closure,store),$(OBJS_$(m)))
	$(CC) $(LDFLAGS_ALL) -o $@ $^ $(shell pkg-config --libs libcurl) $(LIBS)

$(B)/obj/%.o: %.c Makefile
	@mkdir -p $(@D)
	$(CC) $(CFLAGS_ALL) -MMD -MP -c -o $@ $<

# One check program a module: tests/unit/<module>/*.c
define UNIT
ifneq ($$(wildcard tests/unit/$(1)/*.c),)
UNIT_BINS += $(B)/tests/unit-$(1)
$(B)/tests/unit-$(1): $$(call objs,tests/unit/$(1)/*.c) $$(call objs,tests/unit/*.c) $$(foreach m,$$(call closure,$(1)),$$(OBJS_$$(m)))
	@mkdir -p $$(@D)
	$$(CC) $$(LDFLAGS_ALL) -o $$@ $$^ $$(shell pkg-config --libs check) $$(LIBS)
unit-$(1): $(B)/tests/unit-$(1)
	CK_FORK=$$(if $$(SANITIZER),no,yes) $$<
.PHONY: unit-$(1)
endif
endef
$(foreach m,$(MODULES),$(eval $(call UNIT,$(m))))

.PHONY: unit
unit: $(UNIT_BINS) ## build the unit tests (make unit-<module> builds and runs one)

include tests/tests.mk deploy/deploy.mk

.PHONY: clean
clean: ## remove everything built
	rm -rf build build-*

-include $(shell find $(B)/obj -name '*.d' 2>/dev/null)
