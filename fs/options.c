#include "fs/options.h"

#include <errno.h>
#include <getopt.h>
#include <limits.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <unistd.h>

#include "core/base/auto.h"
#include "core/base/io.h"
#include "core/base/xalloc.h"
#include "core/cmd/command.h"
#include "core/running/audit.h"
#include "core/running/calls.h"
#include "core/running/integrations.h"
#include "core/running/libdir.h"
#include "core/running/program.h"
#include "core/tools/users.h"
#include "fs/mount.h"
#include "fs/state.h"
#include "fs/useroptions.h"

#define REQUEST_MAX_DEFAULT ((size_t)64 * 1024 * 1024)
#define OPEN_PER_UID_MAX (STATE_HANDLES / 2) /* nobody takes all of them */
#define TIMEOUT_MAX_S (UINT_MAX / 1000)
#define WATCHDOG_DEFAULT_MS 10000
#define DATA_SHOWN_AT "/officer/tools" /* where containers have what is theirs */
#define SAVED_MAX ((size_t)64 << 20)

struct option_row;
typedef int set_option(struct mount_options *options, const struct option_row *row,
	const char *value, struct fail *why);

enum number_type { NUMBER_UNSIGNED, NUMBER_SIZE, NUMBER_U64 };

/* One row an option: its name (also behind -o), its value's name, what it does, what sets it. */
struct option_row {
	const char *name;
	char letter; /* 0: none */
	const char *value;
	const char *help;
	set_option *set;
	/* of set_number: where it goes, in units of `scale` of what is typed */
	unsigned long long min, max, scale;
	size_t offset;
	enum number_type type;
};

static void replace(char **slot, const char *value)
{
	free(*slot);
	*slot = xstrdup(value);
}

static int set_tools(struct mount_options *options, const struct option_row *row, const char *value,
	struct fail *why)
{
	(void)row;
	(void)why;
	replace(&options->tools, value);
	options->has_tools = true;
	return 0;
}

static int set_data(struct mount_options *options, const struct option_row *row, const char *value,
	struct fail *why)
{
	(void)row;
	if (!*value || strchr(value, ':'))
		return fail_set(
			why, -EINVAL, "--data '%s' is no directory: name one, without ':'", value);
	replace(&options->data, value);
	return 0;
}

static int set_at(struct mount_options *options, const struct option_row *row, const char *value,
	struct fail *why)
{
	(void)row;
	if (*value != '/')
		return fail_set(why, -EINVAL, "--at '%s' is no absolute path", value);
	replace(&options->shown_at, value);
	return 0;
}

static int set_lib_dir(struct mount_options *options, const struct option_row *row,
	const char *value, struct fail *why)
{
	(void)row;
	free(options->lib_dir);
	options->lib_dir = realpath(value, NULL); /* the daemon leaves the working directory */
	return options->lib_dir ? 0 : fail_errno(why, "--lib-dir '%s'", value);
}

static int set_foreground(struct mount_options *options, const struct option_row *row,
	const char *value, struct fail *why)
{
	(void)row;
	(void)value;
	(void)why;
	options->foreground = true;
	return 0;
}

static unsigned long long get_number(
	const struct mount_options *options, const struct option_row *row)
{
	const void *field = (const char *)options + row->offset;
	switch (row->type) {
	case NUMBER_UNSIGNED:
		return *(const unsigned *)field / row->scale;
	case NUMBER_SIZE:
		return *(const size_t *)field / row->scale;
	case NUMBER_U64:
		break;
	}
	return *(const uint64_t *)field / row->scale;
}

static int set_replay(struct mount_options *options, const struct option_row *row,
	const char *value, struct fail *why)
{
	(void)row;
	(void)value;
	(void)why;
	options->replays = true;
	return 0;
}

static int set_number(struct mount_options *options, const struct option_row *row,
	const char *value, struct fail *why)
{
	char *end = NULL;
	errno = 0;
	unsigned long long number = strtoull(value, &end, 10);
	if (errno || end == value || *end || *value == '-' || number < row->min ||
		number > row->max)
		return fail_set(why, -EINVAL, "--%s '%s' is no number from %llu to %llu", row->name,
			value, row->min, row->max);
	void *field = (char *)options + row->offset;
	if (row->type == NUMBER_UNSIGNED)
		*(unsigned *)field = (unsigned)(number * row->scale);
	else if (row->type == NUMBER_SIZE)
		*(size_t *)field = (size_t)(number * row->scale);
	else
		*(uint64_t *)field = number * row->scale;
	return 0;
}

static int set_env(struct mount_options *options, const struct option_row *row, const char *value,
	struct fail *why)
{
	(void)row;
	return environment_put(&options->asked, value, why);
}

static int set_env_file(struct mount_options *options, const struct option_row *row,
	const char *value, struct fail *why)
{
	(void)row;
	return environment_load_file(&options->asked, value, why);
}

static char *make_absolute(const char *path)
{
	auto_free char *cwd = *path == '/' ? NULL : getcwd(NULL, 0);
	return *path == '/' ? xstrdup(path) : cwd ? xasprintf("%s/%s", cwd, path) : NULL;
}

static int set_integrations(struct mount_options *options, const struct option_row *row,
	const char *value, struct fail *why)
{
	(void)row;
	free(options->integrations);
	bool is_of_users = strstr(value, USEROPTIONS_NAME) != NULL;
	options->integrations = is_of_users ? make_absolute(value) : realpath(value, NULL);
	return options->integrations ? 0 : fail_errno(why, "--integrations '%s'", value);
}

/* It need not be there yet: the daemon makes it. */
static int set_audit(struct mount_options *options, const struct option_row *row, const char *value,
	struct fail *why)
{
	(void)row;
	auto_free char *cwd = getcwd(NULL, 0);
	if (!cwd)
		return fail_errno(why, "cannot find out the working directory");
	bool as_it_is = *value == '/' || strcmp(value, AUDIT_STDERR) == 0;
	auto_free char *path = as_it_is ? xstrdup(value) : xasprintf("%s/%s", cwd, value);
	replace(&options->audit, path);
	return 0;
}

/* Whom the daemon has left cannot hear it. */
static int check_audit(const struct mount_options *options, struct fail *why)
{
	if (!options->audit || strcmp(options->audit, AUDIT_STDERR) != 0 || options->foreground)
		return 0;
	return fail_set(why, -EINVAL,
		"--audit - is standard error, which a daemon in the background has not: give "
		"--foreground as well, or a file");
}

static int set_seed(struct mount_options *options, const struct option_row *row, const char *value,
	struct fail *why)
{
	(void)row;
	free(options->seed);
	options->seed = realpath(value, NULL);
	return options->seed ? 0 : fail_errno(why, "--seed '%s'", value);
}

/* Kept with a comma on both sides, in which a number is looked for. */
static int set_callers(struct mount_options *options, const struct option_row *row,
	const char *value, struct fail *why)
{
	auto_buf struct buf list = BUF_INIT(strlen(value) * 2 + 16);
	buf_putc(&list, ',');
	for (const char *at = value; *at; at += *at == ',') {
		char *end = NULL;
		errno = 0;
		unsigned long number = *at == '-' ? UINT32_MAX : strtoul(at, &end, 10);
		if (errno || !end || end == at || (*end && *end != ',') || number >= UINT32_MAX)
			return fail_set(why, -EINVAL,
				"--%s '%s' is no list of user ids, as in 0,1000,1001", row->name,
				value);
		buf_printf(&list, "%lu,", number);
		at = end;
	}
	if (list.len == 1)
		return fail_set(why, -EINVAL, "--%s names nobody", row->name);
	replace(&options->callers, buf_str(&list));
	return 0;
}

static const char *const sandbox_names[] = { [SANDBOX_NONE] = "none",
	[SANDBOX_BWRAP] = "bwrap",
	[SANDBOX_BWRAP_OFFLINE] = "bwrap-offline" };

static int set_run_in(struct mount_options *options, const struct option_row *row,
	const char *value, struct fail *why)
{
	(void)row;
	if (strcmp(value, "daemon") != 0 && strcmp(value, "caller") != 0)
		return fail_set(why, -EINVAL, "--run-in '%s' is neither daemon nor caller", value);
	options->executor.rules.takes_all = true;
	options->executor.rules.runs_there = strcmp(value, "caller") == 0;
	return 0;
}

/* An id, never that of root: what everybody may call must not run with all rights. */
static int take_id(const struct option_row *row, const char *value, unsigned *id, struct fail *why)
{
	char *end = NULL;
	errno = 0;
	unsigned long number = strtoul(value, &end, 10);
	if (errno || end == value || *end || *value == '-' || number == 0 || number >= UINT32_MAX)
		return fail_set(why, -EINVAL,
			"--%s '%s' is no id from 1 to %u; calls of everybody are never run as root",
			row->name, value, UINT32_MAX - 1);
	*id = (unsigned)number;
	return 0;
}

static int set_call_uid(struct mount_options *options, const struct option_row *row,
	const char *value, struct fail *why)
{
	struct identity_rules *rules = &options->executor.rules;
	rules->has_one = true;
	return take_id(row, value, &rules->call_uid, why);
}

static int set_call_gid(struct mount_options *options, const struct option_row *row,
	const char *value, struct fail *why)
{
	return take_id(row, value, &options->executor.rules.call_gid, why);
}

/* Whether calls can be run as is asked for; the group is that of the same number by default. */
static int check_rules(struct identity_rules *rules, struct fail *why)
{
	if (rules->call_gid != 0 && !rules->has_one)
		return fail_set(why, -EINVAL, "--call-gid goes with --call-uid only");
	if (rules->has_one && geteuid() != 0 && rules->call_uid != geteuid())
		return fail_set(why, -EPERM,
			"--call-uid %u: only root can run calls as another user; run pegfs as root, or "
			"leave it out",
			rules->call_uid);
	if (rules->call_gid == 0)
		rules->call_gid = rules->call_uid;
	return 0;
}

/* What runs in a container has its rights and sees what it sees: there is no second opinion. */
static int check_run_in(const struct mount_options *options, struct fail *why)
{
	if (!options->executor.rules.runs_there)
		return 0;
	if (geteuid() != 0)
		return fail_set(why, -EPERM,
			"--run-in caller: only root can start tools in other containers; run pegfs as "
			"root, or in each container");
	if (options->executor.rules.has_one)
		return fail_set(why, -EINVAL,
			"--call-uid does not go with --run-in caller: a call in a container runs as "
			"who calls");
	if (options->executor.sandbox != SANDBOX_NONE)
		return fail_set(why, -EINVAL,
			"--sandbox does not go with --run-in caller: bubblewrap would be needed in "
			"each container, which confines tools itself");
	return 0;
}

static int set_sandbox(struct mount_options *options, const struct option_row *row,
	const char *value, struct fail *why)
{
	(void)row;
	for (size_t i = 0; i < sizeof(sandbox_names) / sizeof(*sandbox_names); i++) {
		if (strcmp(value, sandbox_names[i]) != 0)
			continue;
		options->executor.sandbox = (enum sandbox_kind)i;
		return 0;
	}
	return fail_set(
		why, -EINVAL, "--sandbox '%s' is none of none, bwrap, bwrap-offline", value);
}

/* Before anything is mounted, and where the tools' PATH leads. */
static int check_sandbox(const struct mount_options *options, struct fail *why)
{
	if (options->executor.sandbox == SANDBOX_NONE)
		return 0;
	auto_environment struct environment environment = ENVIRONMENT_INIT;
	if (options_load_environment(options, &environment, why) < 0)
		return why->code;
	auto_free char *bwrap = program_find("bwrap", (const char *const *)environment.items, why);
	if (!bwrap)
		fail_context(why, "--sandbox bwrap needs the package bubblewrap");
	return why->code;
}

static int set_log_level(struct mount_options *options, const struct option_row *row,
	const char *value, struct fail *why)
{
	(void)row;
	if (log_parse_level(value, &options->log_level) < 0)
		return fail_set(why, -EINVAL,
			"--log-level '%s' is none of error, warning, info, debug", value);
	return 0;
}

#define MIB (1024 * 1024)
#define NUMBER(type_, min_, max_, scale_, field_)                                                  \
	set_number, min_, max_, scale_, offsetof(struct mount_options, field_), type_
#define OTHER(set_) set_, 0, 0, 1, 0, NUMBER_UNSIGNED

/* clang-format off: a table reads by its lines */
static const struct option_row rows[] = {
	{ "tools", 't', "DIR:DIR...",
		"directories that hold tools; the last that has a tool of a name wins\n"
		"(default: PI_TOOLS_DIRS)",
		OTHER(set_tools) },
	{ "data", 'd', "DIR",
		"show a tree of each user in DIR, at MOUNTPOINT/USER: the tools in\n"
		"DIR/tools with those in DIR/USER/tools over them; users are the\n"
		"directories named by e-mail addresses, and come and go with them",
		OTHER(set_data) },
	{ "foreground", 'f', NULL, "stay in front, log to standard error", OTHER(set_foreground) },
	{ "at", 0, "PATH",
		"where readers see the tree, if not at MOUNTPOINT\n"
		"(with --data: if not at /officer/tools)",
		OTHER(set_at) },
	{ "seed", 0, "DIR",
		"at the start, copy tools of newer versions from there into the\n"
		"first of --tools, as 'pegfs sync' does",
		OTHER(set_seed) },
	{ "env", 0, "NAME=VALUE", "a variable for the tools; may be repeated", OTHER(set_env) },
	{ "env-file", 0, "FILE", "the same, a line each", OTHER(set_env_file) },
	{ "integrations", 0, "FILE", "JSON that becomes OFFICER_RESOURCES and what follows from it",
		OTHER(set_integrations) },
	{ "run-in", 0, "WHERE",
		"take calls from other containers and namespaces too (else they are\n"
		"refused), and run them: caller: where their caller lives, with its\n"
		"rights; daemon: in the namespaces of the daemon, never as root",
		OTHER(set_run_in) },
	{ "call-uid", 0, "UID", "run all calls as this user, not as who calls; never root",
		OTHER(set_call_uid) },
	{ "call-gid", 0, "GID", "and as this group (default: the number of the user)",
		OTHER(set_call_gid) },
	{ "callers", 0, "UID,UID...", "who may call; others may only read (default: everybody)",
		OTHER(set_callers) },
	{ "sandbox", 0, "KIND",
		"around each tool: none (default); bwrap: it sees a read-only\n"
		"system, its own directory, the user's data and a private /tmp;\n"
		"bwrap-offline: and has no network",
		OTHER(set_sandbox) },
	{ "audit", 0, "FILE",
		"append the audit trail (.pegfs/events) to a file; -: to standard\n"
		"error, with --foreground",
		OTHER(set_audit) },
	{ "timeout", 0, "SECONDS", "longest time of a call",
		NUMBER(NUMBER_UNSIGNED, 1, TIMEOUT_MAX_S, 1000, executor.timeout_ms) },
	{ "memory", 0, "MIB", "of a host with all that it starts; 0: no limit",
		NUMBER(NUMBER_U64, 0, 1 << 24, MIB, executor.memory_max) },
	{ "processes", 0, "NUMBER", "of a host with all that it starts; 0: no limit",
		NUMBER(NUMBER_UNSIGNED, 0, 1 << 22, 1, executor.processes_max) },
	{ "files", 0, "NUMBER", "open files of one process of a tool",
		NUMBER(NUMBER_UNSIGNED, 32, 1 << 20, 1, executor.files_max) },
	{ "request-max", 0, "BYTES", "of one request",
		NUMBER(NUMBER_SIZE, 2, 1 << 30, 1, request_max) },
	{ "result-max", 0, "BYTES", "of one result",
		NUMBER(NUMBER_SIZE, 1024, 1 << 28, 1, executor.result_max) },
	{ "log-max", 0, "BYTES", "that are kept of what a call prints",
		NUMBER(NUMBER_SIZE, 1, 1 << 28, 1, executor.output_max) },
	{ "progress-max", 0, "BYTES", "that are kept of a call's progress",
		NUMBER(NUMBER_SIZE, 1, 1 << 28, 1, executor.progress_max) },
	{ "hosts", 0, "NUMBER", "tool host processes at once",
		NUMBER(NUMBER_UNSIGNED, 1, 10000, 1, executor.hosts_max) },
	{ "hosts-per-tool", 0, "NUMBER", "of one tool and caller",
		NUMBER(NUMBER_UNSIGNED, 1, 10000, 1, executor.hosts_per_tool) },
	{ "spares", 0, "NUMBER", "booted hosts that wait for a tool",
		NUMBER(NUMBER_UNSIGNED, 1, 100, 1, executor.spares) },
	{ "idle", 0, "SECONDS", "after which a warm host goes",
		NUMBER(NUMBER_UNSIGNED, 1, TIMEOUT_MAX_S, 1000, executor.idle_ms) },
	{ "queue", 0, "NUMBER", "calls that wait for a host, in all",
		NUMBER(NUMBER_UNSIGNED, 1, 1 << 20, 1, executor.queue_max) },
	{ "queue-per-user", 0, "NUMBER", "calls of one user that wait or run",
		NUMBER(NUMBER_UNSIGNED, 1, 1 << 20, 1, executor.queue_per_uid) },
	{ "open-per-user", 0, "NUMBER", "'call' files that one user has open to write",
		NUMBER(NUMBER_SIZE, 1, OPEN_PER_UID_MAX, 1, open_per_uid) },
	{ "keep", 0, "NUMBER", "finished calls kept of each caller and tool",
		NUMBER(NUMBER_UNSIGNED, 1, 100000, 1, keep) },
	{ "watchdog", 0, "SECONDS", "after which a server that hangs is replaced; 0: never",
		NUMBER(NUMBER_UNSIGNED, 0, TIMEOUT_MAX_S, 1000, watchdog_ms) },
	{ "replay", 0, NULL,
		"do not ask the kernel to repeat requests (before Linux 6.9 it cannot)",
		OTHER(set_replay) },
	{ "lib-dir", 0, "DIR", "where the host scripts are", OTHER(set_lib_dir) },
	{ "ready-fd", 0, "FD", "gets the line READY once the tree can be used",
		NUMBER(NUMBER_UNSIGNED, 3, INT_MAX, 1, ready_fd) },
	{ "log-level", 0, "LEVEL", "error, warning, info or debug (default: info)",
		OTHER(set_log_level) },
};
/* clang-format on */
#define ROWS (sizeof(rows) / sizeof(*rows))

/* What mount(8) hands on behind -o and what it means to the kernel; 0 where it means nothing. */
static const struct {
	const char *name;
	unsigned long flag;
	bool clears;
} mount_words[] = {
	{ "ro", MS_RDONLY, false },
	{ "rw", MS_RDONLY, true },
	{ "suid", MS_NOSUID, true },
	{ "nosuid", MS_NOSUID, false },
	{ "dev", MS_NODEV, true },
	{ "nodev", MS_NODEV, false },
	{ "exec", MS_NOEXEC, true },
	{ "noexec", MS_NOEXEC, false },
	{ "atime", MS_NOATIME, true },
	{ "noatime", MS_NOATIME, false },
	{ "relatime", 0, false },
	{ "defaults", 0, false },
	{ "auto", 0, false },
	{ "noauto", 0, false },
	{ "user", 0, false },
	{ "nouser", 0, false },
	{ "users", 0, false },
	{ "nofail", 0, false },
	{ "_netdev", 0, false },
	{ "sync", 0, false },
	{ "async", 0, false },
	{ "default_permissions", 0, false },
};

static bool take_mount_word(struct mount_options *options, const char *word)
{
	for (size_t i = 0; i < sizeof(mount_words) / sizeof(*mount_words); i++) {
		if (strcmp(word, mount_words[i].name) != 0)
			continue;
		if (mount_words[i].clears)
			options->mount_flags &= ~mount_words[i].flag;
		else
			options->mount_flags |= mount_words[i].flag;
		return true;
	}
	return strncmp(word, "x-", 2) == 0 || strncmp(word, "X-", 2) == 0 ||
	       strncmp(word, "comment=", 8) == 0;
}

static int take_word(struct mount_options *options, const char *word, struct fail *why)
{
	if (*word == '\0' || take_mount_word(options, word))
		return 0;
	if (strcmp(word, "allow_other") == 0) {
		options->allow_other = true;
		return 0;
	}
	size_t len = strcspn(word, "=");
	for (size_t i = 0; i < ROWS; i++)
		if (strlen(rows[i].name) == len && strncmp(rows[i].name, word, len) == 0 &&
			(word[len] == '=') == (rows[i].value != NULL))
			return rows[i].set(options, &rows[i], word + len + (word[len] == '='), why);
	return fail_set(
		why, -EINVAL, "-o: there is no option '%s'; see 'pegfs mount --help'", word);
}

/* Words parted by commas; "\," is a comma in a word, as mount(8) has it. */
static int take_words(struct mount_options *options, const char *list, struct fail *why)
{
	auto_buf struct buf word = BUF_INIT(strlen(list) + 1);
	for (const char *at = list;; at++) {
		if (*at == '\\' && at[1] == ',') {
			buf_putc(&word, *++at);
		} else if (*at == ',' || *at == '\0') {
			if (take_word(options, buf_str(&word), why) < 0)
				return why->code;
			buf_reset(&word);
			if (*at == '\0')
				return 0;
		} else {
			buf_putc(&word, *at);
		}
	}
}

/* A number with a default, which all have but the descriptor for READY. */
static bool is_limit(const struct option_row *row)
{
	return row->set == set_number && row->offset != offsetof(struct mount_options, ready_fd);
}

static void set_defaults(struct mount_options *options)
{
	*options = (struct mount_options){ .ready_fd = -1,
		.allow_other = geteuid() == 0,
		.mount_flags = MS_NOSUID | MS_NODEV,
		.request_max = REQUEST_MAX_DEFAULT,
		.open_per_uid = OPEN_PER_UID_MAX,
		.keep = CALLS_KEEP_DEFAULT,
		.watchdog_ms = WATCHDOG_DEFAULT_MS,
		.log_level = LOG_LEVEL_INFO };
	const char *tools = getenv("PI_TOOLS_DIRS");
	options->tools = xstrdup(tools ? tools : "");
	executor_config_defaults(&options->executor);
}

const struct command_option *options_table(void)
{
	static struct command_option table[ROWS + 2];
	struct mount_options defaults;
	set_defaults(&defaults);
	for (size_t i = 0; i < ROWS && !table[ROWS].name; i++) {
		const struct option_row *row = &rows[i];
		table[i] = (struct command_option){ row->name,
			row->letter ? row->letter : 256 + (int)i, row->value, row->help,
			row->set == set_log_level ? "error warning info debug" : NULL };
		if (is_limit(row)) /* kept for good: the table is made once */
			table[i].help = xasprintf(
				"%s (default: %llu)", row->help, get_number(&defaults, row));
	}
	table[ROWS] = (struct command_option){ "options", 'o', "OPTION,...",
		"any of these as NAME=VALUE, allow_other (implied for root),\n"
		"and those of mount(8)",
		NULL };
	options_release(&defaults);
	return table;
}

static int take_options(struct mount_options *options, int argc, char **argv, struct fail *why)
{
	struct option longs[ROWS + 3] = { { 0 } };
	for (size_t i = 0; i < ROWS; i++)
		longs[i] = (struct option){ rows[i].name,
			rows[i].value ? required_argument : no_argument, NULL,
			rows[i].letter ? rows[i].letter : 256 + (int)i };
	longs[ROWS] = (struct option){ "help", no_argument, NULL, 'h' };
	longs[ROWS + 1] = (struct option){ "options", required_argument, NULL, 'o' };
	int option;
	optind = 0;
	opterr = 0;
	while ((option = getopt_long(argc, argv, ":t:d:fo:hnsv", longs, NULL)) != -1) {
		if (option == 'h')
			return 1;
		if (option == 'n' || option == 's' || option == 'v')
			continue; /* mount(8) hands these to its helpers */
		if (option == ':' || option == '?')
			return fail_set(why, -EINVAL, "%s '%s'; see 'pegfs mount --help'",
				option == ':' ? "a value is missing behind" : "there is no option",
				argv[optind - 1]);
		if (option == 'o' && take_words(options, optarg, why) < 0)
			return why->code;
		for (size_t i = 0; i < ROWS; i++)
			if ((option == rows[i].letter || option == 256 + (int)i) &&
				rows[i].set(options, &rows[i], optarg, why) < 0)
				return why->code;
	}
	return 0;
}

/* The daemon leaves the working directory: relative directories are made absolute before. */
static int make_tools_absolute(struct mount_options *options, struct fail *why)
{
	auto_free char *cwd = getcwd(NULL, 0);
	auto_buf struct buf dirs = BUF_INIT(SIZE_MAX / 2);
	if (!cwd)
		return fail_errno(why, "cannot find out the working directory");
	for (const char *at = options->tools; *at; at += strspn(at, ":")) {
		size_t len = strcspn(at, ":");
		if (len > 0)
			buf_printf(&dirs, "%s%s%s%.*s", dirs.len ? ":" : "", *at == '/' ? "" : cwd,
				*at == '/' ? "" : "/", (int)len, at);
		at += len;
	}
	replace(&options->tools, buf_str(&dirs));
	return 0;
}

/* --data: the global tools are those in there, and nothing else names tools. */
static int take_data(struct mount_options *options, bool has_tools, struct fail *why)
{
	bool is_of_users = options->integrations && strstr(options->integrations, USEROPTIONS_NAME);
	if (!options->data && is_of_users)
		return fail_set(why, -EINVAL,
			"--integrations with " USEROPTIONS_NAME " goes with --data only");
	if (!options->data)
		return 0;
	if (has_tools)
		return fail_set(why, -EINVAL,
			"give --tools or --data, not both: the global tools are those in '%s/tools'",
			options->data);
	auto_free char *data = make_absolute(options->data);
	if (!data)
		return fail_errno(why, "cannot find out the working directory");
	size_t len = strlen(data);
	while (len > 1 && data[len - 1] == '/')
		data[--len] = '\0';
	replace(&options->data, data);
	auto_free char *tools = xasprintf("%s/" USERS_TOOLS, data);
	replace(&options->tools, tools);
	return 0;
}

static int take_mountpoint(struct mount_options *options, const char *path, struct fail *why)
{
	options->mountpoint = mount_real_path(path);
	if (!options->mountpoint)
		return fail_errno(why, "mount point '%s'", path);
	if (!options->shown_at)
		options->shown_at = xstrdup(options->data ? DATA_SHOWN_AT : options->mountpoint);
	size_t len = strlen(options->shown_at);
	while (len > 1 && options->shown_at[len - 1] == '/')
		options->shown_at[--len] = '\0';
	return 0;
}

int options_parse(
	struct mount_options *options, bool is_helper, int argc, char **argv, struct fail *why)
{
	set_defaults(options);
	int result = take_options(options, argc, argv, why);
	if (result != 0)
		return result;
	/* mount(8) calls its helpers with what is mounted first: the tool directories. */
	if (is_helper && argc - optind == 2) {
		const char *source = argv[optind++];
		if (strchr(source, '/'))
			set_tools(options, NULL, source, why);
	}
	if (argc - optind != 1)
		return fail_set(why, -EINVAL, "%s; see 'pegfs mount --help'",
			argc == optind ? "the mount point is missing" : "too many arguments");
	if (take_data(options, options->has_tools, why) < 0 ||
		make_tools_absolute(options, why) < 0)
		return why->code;
	if (!*options->tools)
		return fail_set(why, -EINVAL,
			"no tool directories: give --tools DIR:DIR... or set PI_TOOLS_DIRS");
	if (take_mountpoint(options, argv[optind], why) < 0)
		return why->code;
	if (!options->lib_dir)
		options->lib_dir = libdir_find(why);
	if (!why->code && check_rules(&options->executor.rules, why) == 0 &&
		check_run_in(options, why) == 0)
		check_sandbox(options, why);
	if (!why->code)
		check_audit(options, why);
	return why->code;
}

void options_release(struct mount_options *options)
{
	free(options->mountpoint);
	free(options->shown_at);
	free(options->tools);
	free(options->data);
	free(options->lib_dir);
	free(options->integrations);
	free(options->seed);
	free(options->audit);
	free(options->callers);
	environment_release(&options->asked);
}

int options_load_environment(
	const struct mount_options *options, struct environment *environment, struct fail *why)
{
	environment_load(environment, options->tools);
	/* With data each user has his own, see useroptions.h. */
	if (options->integrations && !options->data &&
		integrations_load(environment, options->integrations, why) < 0)
		return why->code;
	for (size_t i = 0; i < options->asked.count; i++)
		environment_put(environment, options->asked.items[i], why);
	return why->code;
}

static const char *run_in(const struct identity_rules *rules)
{
	return rules->runs_there ? "caller" : "daemon";
}

int options_render(const struct mount_options *options, struct buf *out)
{
	buf_printf(out, "mountpoint=%s\nat=%s\ntools=%s\nlib-dir=%s\nallow_other=%s\n",
		options->mountpoint, options->shown_at, options->tools, options->lib_dir,
		options->allow_other ? "yes" : "no");
	if (options->data)
		buf_printf(out, "data=%s\n", options->data);
	if (options->integrations)
		buf_printf(out, "integrations=%s\n", options->integrations);
	if (options->callers)
		buf_printf(out, "callers=%.*s\n", (int)strlen(options->callers) - 2,
			options->callers + 1);
	if (options->seed)
		buf_printf(out, "seed=%s\n", options->seed);
	if (options->audit)
		buf_printf(out, "audit=%s\n", options->audit);
	const struct identity_rules *rules = &options->executor.rules;
	buf_printf(out, "sandbox=%s\n", sandbox_names[options->executor.sandbox]);
	if (rules->takes_all)
		buf_printf(out, "run-in=%s\n", run_in(rules));
	if (rules->has_one)
		buf_printf(out, "call-uid=%u\ncall-gid=%u\n", (unsigned)rules->call_uid,
			(unsigned)rules->call_gid);
	for (size_t i = 0; i < ROWS; i++)
		if (is_limit(&rows[i]))
			buf_printf(out, "%s=%llu\n", rows[i].name, get_number(options, &rows[i]));
	/* Names only: values may be tokens. */
	for (size_t i = 0; i < options->asked.count; i++) {
		const char *item = options->asked.items[i];
		buf_printf(out, "env=%.*s\n", (int)strcspn(item, "="), item);
	}
	return out->failed;
}

/* ---- for the servers: words of NAME=VALUE, each with a NUL behind it */

static const char *const level_names[] = { "error", "warning", "info", "debug" };

static void put_word(struct buf *out, const char *name, const char *value)
{
	if (!value)
		return;
	buf_printf(out, "%s=%s", name, value);
	buf_putc(out, '\0');
}

static void put_rules(const struct identity_rules *rules, struct buf *out)
{
	char id[16];
	put_word(out, "run-in", rules->takes_all ? run_in(rules) : NULL);
	if (!rules->has_one)
		return;
	snprintf(id, sizeof(id), "%u", (unsigned)rules->call_uid);
	put_word(out, "call-uid", id);
	snprintf(id, sizeof(id), "%u", (unsigned)rules->call_gid);
	put_word(out, "call-gid", id);
}

static void put_callers(const struct mount_options *options, struct buf *out)
{
	if (!options->callers)
		return;
	auto_free char *list = xstrndup(options->callers + 1, strlen(options->callers) - 2);
	put_word(out, "callers", list);
}

static void put_options(const struct mount_options *options, struct buf *out)
{
	put_callers(options, out);
	put_rules(&options->executor.rules, out);
	put_word(out, "sandbox", sandbox_names[options->executor.sandbox]);
	put_word(out, "mountpoint", options->mountpoint);
	put_word(out, "integrations", options->integrations);
	put_word(out, "audit", options->audit);
	put_word(out, "tools", options->tools);
	put_word(out, "data", options->data);
	put_word(out, "at", options->shown_at);
	put_word(out, "lib-dir", options->lib_dir);
	put_word(out, "log-level", level_names[options->log_level]);
	put_word(out, "foreground", options->foreground ? "" : NULL);
	put_word(out, "replay", options->replays ? "" : NULL);
	put_word(out, "allow_other", options->allow_other ? "" : NULL);
	for (size_t i = 0; i < ROWS; i++) {
		char number[24];
		if (!is_limit(&rows[i]))
			continue;
		snprintf(number, sizeof(number), "%llu", get_number(options, &rows[i]));
		put_word(out, rows[i].name, number);
	}
	for (size_t i = 0; i < options->asked.count; i++)
		put_word(out, "env", options->asked.items[i]);
}

int options_save(const struct mount_options *options, struct fail *why)
{
	auto_buf struct buf words = BUF_INIT(SAVED_MAX);
	put_options(options, &words);
	if (words.failed)
		return fail_set(why, words.failed, "the options are too long");
	auto_close int fd = memfd_create("pegfs-options", MFD_CLOEXEC);
	int result = fd < 0 ? -errno : io_write_all(fd, words.data, words.len);
	if (result < 0)
		return fail_set(why, result, "cannot keep the options: %s", strerror(-result));
	return take_fd(&fd);
}

static int load_word(struct mount_options *options, char *word, struct fail *why)
{
	char *value = strchr(word, '=');
	if (!value)
		return fail_set(why, -EINVAL, "a kept option has no value");
	*value++ = '\0';
	if (strcmp(word, "mountpoint") == 0)
		replace(&options->mountpoint, value);
	else if (strcmp(word, "integrations") == 0)
		replace(&options->integrations, value);
	else if (strcmp(word, "allow_other") == 0)
		options->allow_other = true;
	for (size_t i = 0; i < ROWS; i++)
		if (strcmp(rows[i].name, word) == 0 && rows[i].set != set_integrations)
			return rows[i].set(options, &rows[i], value, why);
	return 0; /* or one that an older version had */
}

int options_load(struct mount_options *options, int fd, struct fail *why)
{
	set_defaults(options);
	options->allow_other = false;
	auto_buf struct buf words = BUF_INIT(SAVED_MAX);
	/* The offset is shared with the servers before. */
	int result = lseek(fd, 0, SEEK_SET) < 0 ? -errno : io_read_all(fd, &words);
	if (result < 0)
		return fail_set(why, result, "cannot read the kept options: %s", strerror(-result));
	for (size_t at = 0; at < words.len; at += strlen(words.data + at) + 1) {
		auto_free char *word = xstrdup(words.data + at);
		if (load_word(options, word, why) < 0)
			return why->code;
	}
	if (!options->mountpoint)
		return fail_set(why, -EINVAL, "the kept options name no mount point");
	return 0;
}
