# Targets that check and measure. tests/run.sh runs every suite, prints a line for each and the sum.

PYTEST ?= $(PYTHON) -m pytest -q -p no:cacheprovider
VALGRIND := valgrind -q --error-exitcode=9 --leak-check=full --show-leak-kinds=definite,possible

.PHONY: test check-fast test-unit test-integration test-valgrind
test: ## run every suite; the last line is "N passed, N failed"
	sh tests/run.sh all

check-fast: ## the same without sanitizers, valgrind and slow tests: about a minute
	sh tests/run.sh fast

test-unit: $(addprefix unit-,$(patsubst $(B)/tests/unit-%,%,$(UNIT_BINS))) ## build and run the unit tests

test-integration: all ## run the integration tests; T="file -k name" picks, DEDUPD=path chooses the binary
	DEDUPD=$${DEDUPD:-$(abspath $(B)/dedupd)} $(PYTEST) $(or $(T),tests/integration)

# The client of the overload row: it must cost less than the server that it overloads.
$(B)/tests/offer: $(call objs,tests/hostile/offer.c)
	@mkdir -p $(@D)
	$(CC) $(LDFLAGS_ALL) -o $@ $^
.PHONY: test-hostile
test-hostile: all $(B)/tests/offer ## hostile clients and overload against the real server, a row each; T="pipelined" picks
	DEDUPD=$${DEDUPD:-$(abspath $(B)/dedupd)} OFFER=$(abspath $(B)/tests/offer) $(PYTHON) tests/hostile/hostile.py $(T)

.PHONY: test-image
test-image: ## build the image with buildah from a debootstrap-made base and run it (root, network, 2 minutes)
	sh tests/image/image.sh

.PHONY: crash
crash: all ## kill dedupd, Redis, both under load; count what is missing; T="redis flush" picks, ROUNDS=20
	DEDUPD=$${DEDUPD:-$(abspath $(B)/dedupd)} $(PYTHON) tests/crash/lanes.py $(T)

# Debian's libraries are not instrumented: valgrind sees what they do with our memory, sanitizers do not.
valgrind-%: $(B)/tests/unit-%
	CK_FORK=no $(VALGRIND) $<
test-valgrind: valgrind-filter valgrind-api ## unit tests of filter and api under valgrind

# ---- fuzzing: tests/fuzz/fuzz_<name>.c defines LLVMFuzzerTestOneInput; tests/fuzz/corpus/<name>/ is replayed in `test`

FUZZ := $(patsubst tests/fuzz/fuzz_%.c,%,$(wildcard tests/fuzz/fuzz_*.c))
FUZZ_SECONDS ?= 60

$(B)/libdedupd.a: $(ALL_OBJS)
	@rm -f $@
	$(AR) rcs $@ $^
$(B)/fuzz/replay-%: $(B)/obj/tests/fuzz/fuzz_%.o $(B)/obj/tests/fuzz/replay.o $(B)/libdedupd.a
	@mkdir -p $(@D)
	$(CC) $(LDFLAGS_ALL) -o $@ $^ $(LIBS)
$(B)/fuzz/fuzz-%: tests/fuzz/fuzz_%.c $(wildcard lib/*/*.c lib/*/*.h)
	@mkdir -p $(@D)
	clang -fsanitize=fuzzer,address,undefined $(filter-out -fsanitize=%,$(CFLAGS_ALL)) -o $@ $(filter %.c,$^) $(LIBS)

.PHONY: fuzz fuzz-replay
.SECONDARY: $(foreach f,$(FUZZ),$(B)/obj/tests/fuzz/fuzz_$(f).o) $(B)/obj/tests/fuzz/replay.o
fuzz-replay: $(foreach f,$(FUZZ),$(B)/fuzz/replay-$(f)) ## run the committed fuzz inputs once
	@for f in $(FUZZ); do $(B)/fuzz/replay-$$f tests/fuzz/corpus/$$f || exit 1; done
fuzz: $(foreach f,$(FUZZ),$(B)/fuzz/fuzz-$(f)) ## fuzz each target for FUZZ_SECONDS (60); needs clang
	@for f in $(FUZZ); do mkdir -p $(B)/fuzz/new-$$f tests/fuzz/corpus/$$f && $(B)/fuzz/fuzz-$$f \
	  -max_total_time=$(FUZZ_SECONDS) -print_final_stats=1 $(B)/fuzz/new-$$f tests/fuzz/corpus/$$f || exit 1; done

# ---- style and measurements

.PHONY: lint format bench bench-grow bench-replay bench-filters bench-http
lint: ## include rules, format, lengths, cppcheck, clang-tidy, shellcheck
	DEPS="$(foreach m,$(MODULES),$(m):$(subst $() ,$(comma),$(DEPS_$(m))))" \
	  CPPFLAGS="$(filter-out -DDD_VERSION=%,$(filter -I% -D% -std=%,$(CFLAGS_ALL)))" sh tests/lint/lint.sh $(CHECKS)

format: ## clang-format all C files in place
	git ls-files '*.[ch]' | xargs clang-format -i

$(B)/bench/load: $(B)/obj/tests/bench/load.o
	@mkdir -p $(@D)
	$(CC) $(LDFLAGS_ALL) -o $@ $^ -lm

bench: all $(B)/bench/load ## cost of each kind of request beside nginx's and Redis's; USERS=1000000 ARGS="--seconds 5"
	$(PYTHON) tests/bench/bench.py $(ARGS)

bench-grow: all $(B)/bench/load ## cost of /filter against users, items, candidates, window; ARGS="--users 10000,100000"
	$(PYTHON) tests/bench/grow.py $(ARGS)

$(B)/bench/replay: $(B)/obj/tests/bench/replay.o $(ALL_OBJS)
	@mkdir -p $(@D)
	$(CC) $(LDFLAGS_ALL) -o $@ $^ $(LIBS)

bench-replay: $(B)/bench/replay ## instructions of a fixed replay against those recorded; RECORD=--record writes them
	$(PYTHON) tests/bench/replay.py $< $(CC) $(RECORD)

bench-filters: $(B)/dedupctl ## filter structures side by side, and their targets; ARGS="--users 100000"
	$(B)/dedupctl filters
	$(B)/dedupctl filters --targets $(ARGS)

$(B)/bench/http: $(call objs,tests/bench/bench_http.c) $(foreach m,$(call closure,http),$(OBJS_$(m)))
	@mkdir -p $(@D)
	$(CC) $(LDFLAGS_ALL) -o $@ $^ $(LIBS)
$(B)/bench/evhttp: $(call objs,tests/bench/bench_evhttp.c)
	@mkdir -p $(@D)
	$(CC) $(LDFLAGS_ALL) -o $@ $^ $(shell pkg-config --libs libevent_extra) $(LIBS)
bench-http: $(B)/bench/http $(B)/bench/evhttp ## CPU of a request in lib/http and in evhttp, side by side (needs wrk)
	sh tests/bench/http.sh $^
