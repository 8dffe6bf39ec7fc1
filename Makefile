# pegfs. `make help` lists the targets; docs/hacking.md explains them.
#
# One Makefile, no sub-makefiles. A variant (asan, tiny, fuzz, cover) is the same build with other
# flags below build/VARIANT; its targets call this Makefile once more with VARIANT set.

VERSION := 0.1.0

VARIANT :=
BUILD := build$(if $(VARIANT),/$(VARIANT))

CC := gcc
CFLAGS ?= -O2 -g
PYTHON ?= /usr/bin/python3
PREFIX ?= /usr/local
# Where mount(8) looks for helpers; it looks nowhere else, so only a private PREFIX has its own.
MOUNT_HELPER_DIR ?= $(if $(filter /usr /usr/local,$(PREFIX)),/sbin,$(PREFIX)/sbin)
SYSTEMD_DIR ?= $(PREFIX)/lib/systemd/system
# zsh looks here for what the system's packages bring, and in site-functions for the rest.
ZSH_DIR := $(if $(filter /usr,$(PREFIX)),vendor-completions,site-functions)
# Picks tests: a name or a part of one, as in `make check-unit T=manifest`.
T ?=
FUZZ_SECONDS ?= 20

Q := $(if $(V),,@)
say = $(if $(V),,@printf '  %-8s %s\n' '$(1)' '$(2)')

# ------------------------------------------------------------------------------------- flags

WARNINGS := -Wall -Wextra -Wpedantic -Wshadow -Wstrict-prototypes -Wmissing-prototypes \
	-Wpointer-arith -Wcast-qual -Wwrite-strings -Wformat=2 -Wundef -Wvla -Wconversion
HARDENING := -fstack-protector-strong -fstack-clash-protection -fPIE
HARDENING_LINK := -pie -Wl,-z,relro -Wl,-z,now
FORTIFY := -U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=2

SANITIZE := -O1 -fno-omit-frame-pointer -fsanitize=address,undefined -fno-sanitize-recover=undefined
VARIANT_FLAGS_ := $(FORTIFY)
VARIANT_FLAGS_asan := $(SANITIZE)
VARIANT_FLAGS_tiny := $(SANITIZE) -DPEGFS_TINY
VARIANT_FLAGS_fuzz := $(SANITIZE) -fsanitize=fuzzer-no-link
VARIANT_FLAGS_cover := -O0 -fprofile-instr-generate -fcoverage-mapping
VARIANT_FLAGS := $(VARIANT_FLAGS_$(VARIANT))

BASE_FLAGS := -std=c11 -D_GNU_SOURCE -D_FILE_OFFSET_BITS=64 -DPEGFS_VERSION='"$(VERSION)"' -I.
COMPILE = $(CC) $(BASE_FLAGS) $(WARNINGS) $(HARDENING) $(CPPFLAGS) $(CFLAGS) $(VARIANT_FLAGS)
LINK = $(CC) $(HARDENING) $(HARDENING_LINK) $(CFLAGS) $(VARIANT_FLAGS) $(LDFLAGS)

# The core is compiled without the path of libfuse's headers: it cannot come to know them.
FUSE_FLAGS := -I/usr/include/fuse3 -DFUSE_USE_VERSION=314
CORE_LIBS := -ljansson -lyaml -lcmark
FUSE_LIBS := -lfuse3
PASSTHROUGH_SRC := /usr/share/doc/libfuse3-dev/examples/passthrough_ll.c

# --------------------------------------------------------------------------- sources, products

CORE_SRC := $(filter-out core/cmd/main.c,$(wildcard core/*/*.c))
FS_SRC := $(filter-out fs/main.c,$(wildcard fs/*.c))
UNIT_SRC := $(wildcard tests/unit/test_*.c)
UNIT_FS_SRC := $(wildcard tests/unit/fs/test_*.c)
FUZZ_SRC := $(wildcard tests/fuzz/fuzz_*.c)
FUZZ_FS_SRC := $(wildcard tests/fuzz/fs/fuzz_*.c)
ALL_SRC := $(wildcard core/*/*.c fs/*.c tests/unit/*.c tests/unit/fs/*.c tests/fuzz/*.c tests/fuzz/fs/*.c \
	tests/oracle/*.c tests/bench/*.c)
ALL_HEADERS := $(wildcard core/*/*.h fs/*.h tests/*/*.h tests/fuzz/fs/*.h)
SHELL_SCRIPTS := $(wildcard .ci/run .ci/deps tests/demo tests/e2e/*.sh core/host/sh/*.sh \
	mountscripts/*.sh mountscripts/*/*.sh tests/run-fuzz)

obj = $(patsubst %.c,$(BUILD)/obj/%.o,$(1))

CORE_LIB := $(BUILD)/libpegfs-core.a
FS_LIB := $(BUILD)/libpegfs-fs.a
LIB_DIR := build/lib/pegfs
UNIT_TESTS := $(patsubst tests/unit/%.c,$(BUILD)/tests/unit/%,$(UNIT_SRC) $(UNIT_FS_SRC))
FUZZERS := $(patsubst tests/fuzz/%.c,$(BUILD)/fuzzers/%,$(FUZZ_SRC) $(FUZZ_FS_SRC))
PROGRAMS := $(if $(wildcard fs/main.c),$(BUILD)/pegfs) \
	$(if $(wildcard core/cmd/main.c),$(BUILD)/pegfs-core)
HOST_FILES := $(shell find core/host -type f)

.PHONY: all
all: $(PROGRAMS) $(CORE_LIB) lib-dir

.DELETE_ON_ERROR:
.SECONDARY:
MAKEFLAGS += --no-builtin-rules --no-print-directory

# What `make demo`, `make check` and their parts need first; `make` alone installs nothing.
DEPS_FIRST := $(if $(filter demo,$(MAKECMDGOALS)),deps-demo) $(if $(filter bench,$(MAKECMDGOALS)),deps-bench) \
	$(if $(filter check check-%,$(MAKECMDGOALS)),deps-check)

NEEDED := /usr/include/jansson.h /usr/include/yaml.h /usr/include/cmark.h
NEEDED_FUSE := /usr/include/fuse3/fuse_lowlevel.h
NEEDED_TEST := /usr/include/cmocka.h

$(NEEDED) $(NEEDED_FUSE) $(NEEDED_TEST): | $(DEPS_FIRST)
	@test -e $@ || { echo "$@ is missing: run \`make deps\` (as root or with sudo)" >&2; exit 1; }

# Objects are made anew when the compiler or a flag changes.
FLAGS_FILE := $(BUILD)/flags
$(FLAGS_FILE): force
	$(call keep,$(COMPILE) -- $(LINK))

# An archive is made anew when a source comes or goes.
$(BUILD)/core.list: force
	$(call keep,$(CORE_SRC))
$(BUILD)/fs.list: force
	$(call keep,$(FS_SRC))

# Puts a text into the target, and leaves it and its time alone where it holds that text already.
quote = '$(subst ','\'',$(1))'
define keep
@mkdir -p $(@D)
@printf '%s\n' $(call quote,$(1)) | cmp -s - $@ || printf '%s\n' $(call quote,$(1)) >$@
endef
.PHONY: force
force:

$(BUILD)/obj/core/%.o: core/%.c $(FLAGS_FILE) | $(NEEDED)
	$(call say,CC,$<)
	@mkdir -p $(@D)
	$(Q)$(COMPILE) -MMD -MP -c -o $@ $<

$(BUILD)/obj/fs/%.o: fs/%.c $(FLAGS_FILE) | $(NEEDED) $(NEEDED_FUSE)
	$(call say,CC,$<)
	@mkdir -p $(@D)
	$(Q)$(COMPILE) $(FUSE_FLAGS) -MMD -MP -c -o $@ $<

$(BUILD)/obj/tests/unit/fs/%.o: tests/unit/fs/%.c $(FLAGS_FILE) | $(NEEDED_TEST) $(NEEDED_FUSE)
	$(call say,CC,$<)
	@mkdir -p $(@D)
	$(Q)$(COMPILE) $(FUSE_FLAGS) -MMD -MP -c -o $@ $<

$(BUILD)/obj/tests/fuzz/fs/%.o: tests/fuzz/fs/%.c $(FLAGS_FILE) | $(NEEDED) $(NEEDED_FUSE)
	$(call say,CC,$<)
	@mkdir -p $(@D)
	$(Q)$(COMPILE) $(FUSE_FLAGS) -MMD -MP -c -o $@ $<

$(BUILD)/obj/tests/%.o: tests/%.c $(FLAGS_FILE) | $(NEEDED) $(NEEDED_TEST)
	$(call say,CC,$<)
	@mkdir -p $(@D)
	$(Q)$(COMPILE) -MMD -MP -c -o $@ $<

# The core's archive must not refer to libfuse.
$(CORE_LIB): $(call obj,$(CORE_SRC)) $(BUILD)/core.list
	$(call say,AR,$@)
	@rm -f $@
	$(Q)ar rcs $@ $(filter %.o,$^)
	@if nm -u $@ | grep -w 'U fuse_.*'; then echo "$@ refers to libfuse" >&2; exit 1; fi

$(FS_LIB): $(call obj,$(FS_SRC)) $(BUILD)/fs.list
	$(call say,AR,$@)
	@rm -f $@
	$(Q)ar rcs $@ $(filter %.o,$^)

$(BUILD)/pegfs: $(call obj,fs/main.c) $(FS_LIB) $(CORE_LIB)
	$(call say,LINK,$@)
	$(Q)$(LINK) -o $@ $^ $(CORE_LIBS) $(FUSE_LIBS)

$(BUILD)/pegfs-core: $(call obj,core/cmd/main.c) $(CORE_LIB)
	$(call say,LINK,$@)
	$(Q)$(LINK) -o $@ $^ $(CORE_LIBS)

$(BUILD)/tests/unit/fs/%: $(BUILD)/obj/tests/unit/fs/%.o $(FS_LIB) $(CORE_LIB)
	$(call say,LINK,$@)
	@mkdir -p $(@D)
	$(Q)$(LINK) -o $@ $^ -lcmocka $(CORE_LIBS) $(FUSE_LIBS)

$(BUILD)/tests/unit/%: $(BUILD)/obj/tests/unit/%.o $(CORE_LIB)
	$(call say,LINK,$@)
	@mkdir -p $(@D)
	$(Q)$(LINK) -o $@ $^ -lcmocka $(CORE_LIBS)

$(BUILD)/tests/stress/%: $(BUILD)/obj/tests/stress/%.o $(CORE_LIB)
	$(call say,LINK,$@)
	@mkdir -p $(@D)
	$(Q)$(LINK) -o $@ $^ $(CORE_LIBS) -lcmocka

$(BUILD)/tests/describe: $(call obj,tests/oracle/describe.c) $(CORE_LIB)
	$(call say,LINK,$@)
	@mkdir -p $(@D)
	$(Q)$(LINK) -o $@ $^ $(CORE_LIBS)

# The world's own executor takes the place of the archive's.
$(BUILD)/fuzzers/fs/%: $(BUILD)/obj/tests/fuzz/fs/%.o $(BUILD)/obj/tests/fuzz/fs/world.o $(FS_LIB) \
		$(CORE_LIB)
	$(call say,LINK,$@)
	@mkdir -p $(@D)
	$(Q)$(LINK) -fsanitize=fuzzer -o $@ $^ $(CORE_LIBS) $(FUSE_LIBS)

$(BUILD)/fuzzers/%: $(BUILD)/obj/tests/fuzz/%.o $(CORE_LIB)
	$(call say,LINK,$@)
	@mkdir -p $(@D)
	$(Q)$(LINK) -fsanitize=fuzzer -o $@ $^ $(CORE_LIBS)

-include $(patsubst %.c,$(BUILD)/obj/%.d,$(ALL_SRC))

# What the daemon needs beside itself: the host scripts, and the packages of the Node host, pinned
# by its lock file. A variant shares them: the binary looks for lib/pegfs beside it.
.PHONY: lib-dir
lib-dir: $(LIB_DIR)/host.stamp $(LIB_DIR)/node_modules.stamp $(if $(VARIANT),$(BUILD)/lib)

# The warden of tool hosts (core/host/warden) and what enters containers (core/host/enter) are programs
# of their own, small and free of the core. The latter is static: nothing of this system's libraries is
# to be mapped in a container.
$(LIB_DIR)/host.stamp: $(HOST_FILES) core/running/warden.h $(LIB_DIR)/node_modules.stamp
	@mkdir -p $(LIB_DIR)
	@rm -rf $(LIB_DIR)/host
	@cp -r core/host $(LIB_DIR)/host
	@rm $(LIB_DIR)/host/warden/* $(LIB_DIR)/host/enter/* $(LIB_DIR)/host/bundle.mjs
	$(call say,CC,core/host/warden/warden.c)
	$(Q)$(CC) $(BASE_FLAGS) $(WARNINGS) $(HARDENING) $(FORTIFY) -O2 $(HARDENING_LINK) \
		-o $(LIB_DIR)/host/warden/warden core/host/warden/warden.c
	$(call say,CC,core/host/enter)
	$(Q)$(CC) $(BASE_FLAGS) $(WARNINGS) $(HARDENING) $(FORTIFY) -O2 -s -static-pie \
		-o $(LIB_DIR)/host/enter/enter $(wildcard core/host/enter/*.c)
	$(call say,BUNDLE,$(LIB_DIR)/host)
	$(Q)node core/host/bundle.mjs $(LIB_DIR)
	@touch $@

$(LIB_DIR)/node_modules.stamp: core/host/node/package.json core/host/node/package-lock.json \
		| $(DEPS_FIRST)
	$(call say,NPM,$(LIB_DIR))
	@mkdir -p $(LIB_DIR)
	$(Q)cp $^ $(LIB_DIR) && cd $(LIB_DIR) && $(NPM_CI)
	@touch $@

NPM_CI := npm ci --ignore-scripts --no-audit --no-fund --loglevel=error >/dev/null

build/%/lib:
	@mkdir -p $(@D)
	$(Q)ln -sfn ../lib $@

build/oracle/node_modules.stamp: tests/oracle/package.json tests/oracle/package-lock.json \
		| $(DEPS_FIRST)
	$(call say,NPM,build/oracle)
	@mkdir -p build/oracle
	$(Q)cp $^ build/oracle && cd build/oracle && $(NPM_CI)
	@touch $@

build/deploy/node_modules.stamp: tests/deploy/package.json tests/deploy/package-lock.json | $(DEPS_FIRST)
	$(call say,NPM,build/deploy)
	@mkdir -p build/deploy
	$(Q)cp $(filter %.json,$^) build/deploy && cd build/deploy && $(NPM_CI)
	@touch $@

build/pi/node_modules.stamp: tests/pi/package.json tests/pi/package-lock.json | $(DEPS_FIRST)
	$(call say,NPM,build/pi)
	@mkdir -p build/pi
	$(Q)cp $^ build/pi && cd build/pi && $(NPM_CI)
	@touch $@

# Others' MCP clients and servers, for tests/e2e/test_mcp_*.py. Where npm's registry cannot be reached
# these are skipped, with what npm says as the reason.
build/mcp/node_modules.stamp: tests/mcp/package.json tests/mcp/package-lock.json | $(DEPS_FIRST)
	$(call say,NPM,build/mcp)
	@mkdir -p build/mcp
	@rm -f build/mcp/unreachable
	$(Q)cp $(filter %.json,$^) build/mcp && cd build/mcp && \
		if $(NPM_CI); then touch node_modules.stamp; \
		elif npm ping >unreachable 2>&1; then rm unreachable; exit 1; \
		else echo 'npm cannot reach its registry; MCP clients are not tested' >&2; fi

# The manual page and the completions are made of the program's own tables (`pegfs manual`,
# `pegfs completion`) and of docs/pegfs.1.md. The page's date is that of its text, for the same
# sources give the same page.
MAN_PAGE := $(BUILD)/man/pegfs.1
COMPLETIONS := $(BUILD)/completion/bash $(BUILD)/completion/zsh $(BUILD)/completion/fish
MAN_DATE = $(or $(shell git log -1 --format=%cs -- docs/pegfs.1.md 2>/dev/null),$(shell date +%F))

.PHONY: man
man: $(MAN_PAGE) $(COMPLETIONS)

# What cmark writes and mandoc does not like: a font that groff alone knows, .PP behind a heading.
MAN_MENDED := '/^\.S[HS]$$/ { print; getline; print; after = 1; next } \
	/^\.PP$$/ && after { next } { gsub(/\\f\[C\]/, "\\f[CR]"); print; after = 0 }'

$(MAN_PAGE): docs/pegfs.1.md $(BUILD)/pegfs Makefile
	$(call say,MAN,$@)
	@command -v cmark >/dev/null || { echo "cmark is missing: run \`make deps\` (as root or with sudo)" >&2; exit 1; }
	@mkdir -p $(@D)
	$(Q)$(BUILD)/pegfs manual >$@.commands
	$(Q)sed -e '/^<!-- commands/{' -e 'r $@.commands' -e 'd' -e '}' $< | \
		cmark -t man | awk $(MAN_MENDED) >$@.body
	$(Q){ echo '.TH PEGFS 1 "$(MAN_DATE)" "pegfs $(VERSION)"'; cat $@.body; } >$@
	@rm $@.commands $@.body

$(BUILD)/completion/%: $(BUILD)/pegfs
	$(call say,SHELL,$@)
	@mkdir -p $(@D)
	$(Q)$(BUILD)/pegfs completion $* >$@

# -------------------------------------------------------------------------------------- check

.PHONY: check check-unit check-e2e check-oracle check-seed check-pi check-deploy check-asan sanitize check-tiny rules
check: check-unit check-beside check-e2e check-bench rules

check-unit: $(UNIT_TESTS) lib-dir
	$(Q)$(TEST_ENV) $(PYTHON) tests/run-unit '$(BUILD)/tests/unit' '$(T)'

TEST_ENV := PEGFS_MCP_MODULES='$(CURDIR)/build/mcp/node_modules' PEGFS='$(CURDIR)/$(BUILD)/pegfs' PEGFS_CORE='$(CURDIR)/$(BUILD)/pegfs-core' \
	PEGFS_DATA_DIR='$(CURDIR)/tests/data' PEGFS_LIB_DIR='$(CURDIR)/$(LIB_DIR)' \
	PEGFS_BUILD_DIR='$(CURDIR)/$(BUILD)' PEGFS_VARIANT='$(VARIANT)' \
	PYTHONDONTWRITEBYTECODE=1 \
	ASAN_OPTIONS=detect_leaks=1:detect_stack_use_after_return=1:handle_abort=1 \
	UBSAN_OPTIONS=print_stacktrace=1

# Debian's package prometheus has promtool, and a daemon that nobody wants here: it is unpacked and not
# installed. Where that cannot be, the tests that need it are skipped and say so.
PROMTOOL := build/promtool/promtool
$(PROMTOOL): | $(DEPS_FIRST)
	$(call say,UNPACK,$@)
	@mkdir -p $(@D)
	$(Q)cd $(@D) && apt-get -qq download prometheus 2>/dev/null && dpkg-deb --fsys-tarfile prometheus_*.deb | \
		tar x --strip-components=3 ./usr/bin/promtool; rm -f prometheus_*.deb; \
		test -e promtool || echo 'promtool is not to be had' >&2

check-e2e: all $(PROMTOOL) build/mcp/node_modules.stamp
	$(Q)$(TEST_ENV) $(PYTHON) -m pytest -q -p no:cacheprovider tests/e2e $(if $(T),-k '$(T)')

# Edits, kills and calls all the time, for CHAOS_SECONDS.
CHAOS_SECONDS ?= 600
CHECK_CHAOS_SECONDS ?= 60
.PHONY: chaos check-chaos check-beside
chaos: all
	$(Q)$(TEST_ENV) $(PYTHON) tests/chaos $(CHAOS_SECONDS)

check-chaos: CHAOS_SECONDS := $(CHECK_CHAOS_SECONDS)
check-chaos: chaos

# The suites that measure no time, with chaos beside them: what it says comes when they have ended.
check-beside: all
	$(Q)$(MAKE) check-chaos >$(BUILD)/chaos.log 2>&1 & chaos=$$!; \
		$(MAKE) -k check-oracle check-seed check-pi check-deploy; status=$$?; \
		wait $$chaos || status=1; cat $(BUILD)/chaos.log; exit $$status

check-oracle: $(BUILD)/tests/describe build/oracle/node_modules.stamp
	$(Q)$(TEST_ENV) PEGFS_DESCRIBE='$(CURDIR)/$(BUILD)/tests/describe' \
		PEGFS_ORACLE_MODULES='$(CURDIR)/build/oracle/node_modules' \
		$(PYTHON) tests/run-node oracle '$(T)' $(wildcard tests/oracle/*.test.mjs)

check-seed: lib-dir
	$(Q)$(TEST_ENV) $(PYTHON) tests/run-node seed '$(T)' $(wildcard tests/seed/*.test.mjs)

check-deploy: build/deploy/node_modules.stamp
	$(Q)PEGFS_DEPLOY_MODULES='$(CURDIR)/build/deploy/node_modules' \
		$(PYTHON) tests/run-node deploy '$(T)' $(wildcard tests/deploy/*.test.mjs)

# The pi coding agent at work on the tree, and the formats of the model APIs by their own packages.
check-pi: all $(BUILD)/tests/describe build/pi/node_modules.stamp
	$(Q)export $(TEST_ENV) PEGFS_DESCRIBE='$(CURDIR)/$(BUILD)/tests/describe' \
		PEGFS_PI_MODULES='$(CURDIR)/build/pi/node_modules'; status=0; \
		$(PYTHON) tests/run-node pi '$(T)' $(wildcard tests/pi/*.test.mjs) || status=1; \
		$(PYTHON) -m pytest -q -p no:cacheprovider tests/pi $(if $(T),-k '$(T)') || status=1; exit $$status

check-asan:
	$(Q)+$(MAKE) VARIANT=asan check-unit check-oracle check-e2e
sanitize: check-asan

check-tiny:
	$(Q)+$(MAKE) VARIANT=tiny check-unit check-e2e

# Not part of check: very many calls, through the executor alone and through a mount. Does anything grow?
.PHONY: stress
CALLS ?= 100000
stress: all $(BUILD)/tests/stress/executor
	$(Q)$(TEST_ENV) $(BUILD)/tests/stress/executor $(CALLS)
	$(Q)$(TEST_ENV) $(PYTHON) tests/stress/calls.py $(CALLS)

rules:
	$(Q)$(PYTHON) tests/rules

# --------------------------------------------------------------------------------- fuzz, cover

.PHONY: fuzz fuzz-replay run-fuzzers cover run-cover
fuzz:
	$(Q)+$(MAKE) VARIANT=fuzz CC=clang run-fuzzers FUZZ_MODE=search
fuzz-replay:
	$(Q)+$(MAKE) VARIANT=fuzz CC=clang run-fuzzers FUZZ_MODE=replay
run-fuzzers: $(FUZZERS)
	$(Q)tests/run-fuzz $(FUZZ_MODE) $(FUZZ_SECONDS) $^

cover:
	$(Q)+LLVM_PROFILE_FILE='$(CURDIR)/build/cover/profile/%m-%p.profraw' \
		$(MAKE) VARIANT=cover CC=clang CFLAGS=-g check-unit check-e2e run-cover
run-cover:
	$(Q)llvm-profdata merge -o $(BUILD)/profile.data $(BUILD)/profile/*.profraw
	$(Q)llvm-cov report $(BUILD)/pegfs -instr-profile=$(BUILD)/profile.data \
		$(addprefix -object ,$(UNIT_TESTS)) core fs

# -------------------------------------------------------------------------------------- bench

# What pegfs is measured with, and what it is compared with (tests/bench).
BENCH := $(BUILD)/bench
BENCH_PARTS := $(BENCH)/probe $(BENCH)/node/node_modules.stamp \
	$(if $(wildcard $(PASSTHROUGH_SRC)),$(BENCH)/passthrough_ll)

$(BENCH)/probe: $(call obj,$(wildcard tests/bench/*.c))
	$(call say,LINK,$@)
	@mkdir -p $(@D)
	$(Q)$(LINK) -pthread -o $@ $^

# libfuse's own example, where its documentation is installed.
$(BENCH)/passthrough_ll: $(PASSTHROUGH_SRC)
	$(call say,CC,$<)
	@mkdir -p $(@D)
	$(Q)$(CC) -O2 -D_FILE_OFFSET_BITS=64 -DHAVE_UTIMENSAT -I/usr/include/fuse3 -o $@ $< $(FUSE_LIBS) -pthread

$(BENCH)/node/node_modules.stamp: $(wildcard tests/bench/node/*) | $(DEPS_FIRST)
	$(call say,NPM,$(BENCH)/node)
	@mkdir -p $(@D)
	$(Q)cp $^ $(@D) && cd $(@D) && $(NPM_CI)
	@touch $@

.PHONY: bench check-bench bench-page
bench: all $(BENCH_PARTS)
	$(Q)$(TEST_ENV) $(PYTHON) tests/bench/run '$(T)'

# Each figure once or twice, to see that all of it still works; it says nothing of time.
check-bench: all $(BENCH_PARTS)
	$(Q)$(TEST_ENV) $(PYTHON) tests/bench/run --smoke '$(T)'

# Puts the figures of the last `make bench` into the page.
bench-page:
	$(Q)$(PYTHON) tests/bench/page $(BENCH) docs

# ------------------------------------------------------------------------------- lint, format

.PHONY: format format-check lint lint-layers lint-headers lint-analyzer lint-tidy lint-cppcheck \
	lint-shell lint-man
format:
	$(Q)clang-format -i $(ALL_SRC) $(ALL_HEADERS)
format-check:
	$(Q)clang-format --dry-run -Werror $(ALL_SRC) $(ALL_HEADERS)

lint: lint-layers lint-headers lint-analyzer lint-tidy lint-cppcheck lint-shell lint-man

lint-layers:
	$(Q)$(PYTHON) tests/layers $(wildcard core/*/*.[ch] fs/*.[ch])

flags_of = $(BASE_FLAGS) $(WARNINGS) $(if $(filter fs/% tests/unit/fs/% tests/fuzz/fs/%,$(1)),$(FUSE_FLAGS))
LINT := build/lint
lint-headers: $(patsubst %,$(LINT)/%.alone,$(ALL_HEADERS))
lint-analyzer: $(patsubst %,$(LINT)/%.analyzer,$(filter core/% fs/%,$(ALL_SRC)))
lint-tidy: $(patsubst %,$(LINT)/%.tidy,$(filter core/% fs/%,$(ALL_SRC)))

$(LINT)/%.h.alone: %.h $(ALL_HEADERS)
	$(call say,HEADER,$<)
	@mkdir -p $(@D)
	$(Q)gcc $(call flags_of,$<) -Werror -fsyntax-only -x c -include $< /dev/null
	@touch $@

$(LINT)/%.c.analyzer: %.c $(ALL_HEADERS)
	$(call say,ANALYZE,$<)
	@mkdir -p $(@D)
	$(Q)gcc $(call flags_of,$<) -O1 -Werror -fanalyzer -c -o /dev/null $<
	@touch $@

$(LINT)/%.c.tidy: %.c $(ALL_HEADERS) .clang-tidy
	$(call say,TIDY,$<)
	@mkdir -p $(@D)
	$(Q)clang-tidy --quiet --warnings-as-errors='*' $< -- $(call flags_of,$<) 2>$@.log || \
		{ cat $@.log; exit 1; }
	@touch $@

# It reports leaks of what the cleanup attribute releases: those two checks are off. It does not see
# jansson's headers, so the macros that are loops are given to it.
lint-cppcheck:
	$(call say,CPPCHECK,core fs)
	$(Q)cppcheck --quiet --std=c11 --enable=warning,performance,portability --inline-suppr \
		--suppress=memleak --suppress=resourceLeak --suppress=missingIncludeSystem \
		--error-exitcode=1 -D_GNU_SOURCE -DPEGFS_VERSION='"$(VERSION)"' \
		'-Djson_object_foreach(object,key,value)=while (key = next(object), value = at(object))' \
		'-Djson_array_foreach(array,index,value)=while (index = next(array), value = at(array))' -I. core fs

lint-shell:
	$(call say,SHELL,$(SHELL_SCRIPTS))
	$(Q)shellcheck $(SHELL_SCRIPTS)

lint-man: $(MAN_PAGE)
	$(Q)mandoc -Tlint -Wwarning $<

# ------------------------------------------------------------------------------------- static

# One file that carries lib/pegfs, with a warden that needs no libraries either, as an archive.
.PHONY: static
static: $(BUILD)/pegfs-static

$(BUILD)/lib.tar: $(LIB_DIR)/host.stamp $(LIB_DIR)/node_modules.stamp
	$(call say,TAR,$@)
	@rm -rf $(BUILD)/lib-static && mkdir -p $(BUILD)/lib-static
	$(Q)cp -r $(LIB_DIR)/host $(LIB_DIR)/node_modules $(LIB_DIR)/package.json $(BUILD)/lib-static
	$(Q)rm -rf $(BUILD)/lib-static/node_modules/.bin
	$(Q)$(CC) $(BASE_FLAGS) $(WARNINGS) $(HARDENING) $(FORTIFY) -O2 -s -static-pie \
		-o $(BUILD)/lib-static/host/warden/warden core/host/warden/warden.c
	$(Q)tar --format=ustar --sort=name --owner=0 --group=0 --numeric-owner --mtime=@0 \
		-C $(BUILD)/lib-static -cf $@ .

$(BUILD)/embedded.o: core/embedded.S $(BUILD)/lib.tar
	$(Q)$(CC) -DLIBDIR_ARCHIVE='"$(BUILD)/lib.tar"' -c -o $@ $<

# The linker warns of libfuse's modules, which nothing here loads.
$(BUILD)/pegfs-static: $(call obj,fs/main.c) $(BUILD)/embedded.o $(FS_LIB) $(CORE_LIB)
	$(call say,LINK,$@)
	$(Q)$(LINK) -static-pie -o $@ $^ $(FUSE_LIBS) $(CORE_LIBS) -lpthread -ldl

# ---------------------------------------------------------------------------------------- deb

# Who answers for a package is for the one who makes it to say.
MAINTAINER ?= pegfs packagers <pegfs@packages.invalid>
DEB_ROOT := $(BUILD)/deb/root

.PHONY: deb
deb: all man
	@rm -rf $(BUILD)/deb
	$(Q)+$(MAKE) install PREFIX=/usr MOUNT_HELPER_DIR=/sbin SYSTEMD_DIR=/lib/systemd/system \
		DESTDIR='$(CURDIR)/$(DEB_ROOT)' >/dev/null
	$(call say,DEB,pegfs $(VERSION))
	$(Q)mountscripts/debian/build.sh $(DEB_ROOT) $(VERSION) '$(MAN_DATE)' '$(MAINTAINER)'

# ----------------------------------------------------------------------------- deps, install

.PHONY: deps deps-demo deps-check deps-bench demo install uninstall clean help
deps:
	$(Q).ci/deps build demo check seed bench lint
deps-demo:
	$(Q).ci/deps build demo
deps-check:
	$(Q).ci/deps build check seed bench
deps-bench:
	$(Q).ci/deps build bench

UNITS := $(notdir $(wildcard mountscripts/systemd/*))
MOUNTSCRIPTS := $(wildcard $(addprefix mountscripts/,container/* rootless/* host/* compose/* quadlet/* fstab/* kubernetes/*))

demo: all
	$(Q)tests/demo '$(BUILD)/pegfs'

install: all man
	$(call say,INSTALL,$(DESTDIR)$(PREFIX))
	$(Q)install -d $(DESTDIR)$(PREFIX)/bin $(DESTDIR)$(PREFIX)/lib $(DESTDIR)$(MOUNT_HELPER_DIR)
	$(Q)install -m 755 $(BUILD)/pegfs $(DESTDIR)$(PREFIX)/bin/pegfs
	$(Q)rm -rf $(DESTDIR)$(PREFIX)/lib/pegfs
	$(Q)cp -r $(LIB_DIR) $(DESTDIR)$(PREFIX)/lib/pegfs
	$(Q)rm -f $(DESTDIR)$(PREFIX)/lib/pegfs/*.stamp
	$(Q)ln -sfn $(PREFIX)/bin/pegfs $(DESTDIR)$(MOUNT_HELPER_DIR)/mount.fuse.pegfs
	$(Q)install -d $(DESTDIR)$(SYSTEMD_DIR)
	$(Q)for unit in $(UNITS); do \
		sed 's,/usr/\(bin\|share\)/,$(PREFIX)/\1/,g' mountscripts/systemd/$$unit >'$(DESTDIR)$(SYSTEMD_DIR)'/$$unit && \
		chmod 644 '$(DESTDIR)$(SYSTEMD_DIR)'/$$unit || exit 1; done
	$(Q)rm -rf $(DESTDIR)$(PREFIX)/share/pegfs
	$(Q)for file in $(MOUNTSCRIPTS); do \
		case $$file in *.sh) mode=755 ;; *) mode=644 ;; esac; \
		install -D -m $$mode $$file $(DESTDIR)$(PREFIX)/share/pegfs/$$file || exit 1; done
	$(Q)install -D -m 644 $(MAN_PAGE) $(DESTDIR)$(PREFIX)/share/man/man1/pegfs.1
	$(Q)install -d $(DESTDIR)$(PREFIX)/share/man/man8
	$(Q)ln -sfn ../man1/pegfs.1 $(DESTDIR)$(PREFIX)/share/man/man8/mount.fuse.pegfs.8
	$(Q)install -D -m 644 $(BUILD)/completion/bash $(DESTDIR)$(PREFIX)/share/bash-completion/completions/pegfs
	$(Q)install -D -m 644 $(BUILD)/completion/zsh $(DESTDIR)$(PREFIX)/share/zsh/$(ZSH_DIR)/_pegfs
	$(Q)install -D -m 644 $(BUILD)/completion/fish \
		$(DESTDIR)$(PREFIX)/share/fish/vendor_completions.d/pegfs.fish
	$(Q)install -D -m 644 seed/extensions/tool-loader.ts \
		$(DESTDIR)$(PREFIX)/share/pegfs/extensions/tool-loader.ts
	$(Q)for page in $(wildcard README.md docs/*.md docs/*.json); do \
		install -D -m 644 $$page $(DESTDIR)$(PREFIX)/share/doc/pegfs/$${page##*/}; done

uninstall:
	$(Q)rm -rf $(DESTDIR)$(PREFIX)/bin/pegfs $(DESTDIR)$(PREFIX)/lib/pegfs \
		$(DESTDIR)$(PREFIX)/share/doc/pegfs $(DESTDIR)$(MOUNT_HELPER_DIR)/mount.fuse.pegfs \
		$(DESTDIR)$(PREFIX)/share/pegfs $(addprefix $(DESTDIR)$(SYSTEMD_DIR)/,$(UNITS)) \
		$(addprefix $(DESTDIR)$(PREFIX)/share/,man/man1/pegfs.1 man/man8/mount.fuse.pegfs.8 zsh/$(ZSH_DIR)/_pegfs \
		bash-completion/completions/pegfs fish/vendor_completions.d/pegfs.fish)

clean:
	$(Q)rm -rf build

help:
	@echo 'make               build build/pegfs (CC=clang, CFLAGS=..., V=1 shows the commands)'
	@echo 'make demo          mount the tools that ship on ./mnt, call some, show what came back'
	@echo 'make check         all tests; T=NAME picks some in:'
	@echo '  check-unit       core without a mount      check-e2e    real mounts, real programs'
	@echo '  check-oracle     TypeBox and Ajv agree     check-seed   the tools that ship'
	@echo '  check-pi         the pi agent; what the model APIs take'
	@echo '  check-deploy     what is written for Compose and Kubernetes is what they understand'
	@echo '  check-bench      that make bench still works'
	@echo '  rules            each rule has its test; writes docs/rules.md'
	@echo 'make chaos         kills, edits and calls without rest, CHAOS_SECONDS=600; check-chaos: a minute'
	@echo 'make check-asan    the whole suite under ASan and UBSan (also: make sanitize)'
	@echo 'make check-tiny    the same with every tunable at its smallest'
	@echo 'make stress        CALLS=100000 calls: is anything left, does anything grow?'
	@echo 'make install       PREFIX=/usr/local DESTDIR=; make uninstall; make man: the page alone'
	@echo 'make static        build/pegfs-static: one file for any x86-64 container; make deb'
	@echo 'make deps          install what is missing for all of this'
	@echo 'make lint          layers, headers, gcc -fanalyzer, clang-tidy, cppcheck, shellcheck, mandoc'
	@echo 'make format        clang-format in place; make format-check'
	@echo 'make fuzz          search with libFuzzer for FUZZ_SECONDS each; make fuzz-replay'
	@echo 'make cover         coverage of core and fs'
	@echo 'make bench         figures beside those of others, ten minutes; make bench-page: docs/performance.md'
	@echo 'make clean         remove build/'
