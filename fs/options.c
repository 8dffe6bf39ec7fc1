#include "fs/options.h"

#include <errno.h>
#include <getopt.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <unistd.h>

#include "core/base/auto.h"
#include "core/base/xalloc.h"
#include "core/running/calls.h"
#include "fs/mount.h"

#define REQUEST_MAX_DEFAULT ((size_t)64 * 1024 * 1024)
#define TIMEOUT_DEFAULT_S 600

typedef int set_option(struct mount_options *options, const char *value, struct fail *why);

/* One row an option: its name (also behind -o), its value's name, what it does, what sets it. */
struct option_row {
	const char *name;
	char letter; /* 0: none */
	const char *value;
	const char *help;
	set_option *set;
};

static void replace(char **slot, const char *value)
{
	free(*slot);
	*slot = xstrdup(value);
}

static int set_tools(struct mount_options *options, const char *value, struct fail *why)
{
	(void)why;
	replace(&options->tools, value);
	return 0;
}

static int set_at(struct mount_options *options, const char *value, struct fail *why)
{
	if (*value != '/')
		return fail_set(why, -EINVAL, "--at '%s' is no absolute path", value);
	replace(&options->shown_at, value);
	return 0;
}

static int set_lib_dir(struct mount_options *options, const char *value, struct fail *why)
{
	(void)why;
	replace(&options->lib_dir, value);
	return 0;
}

static int set_foreground(struct mount_options *options, const char *value, struct fail *why)
{
	(void)value;
	(void)why;
	options->foreground = true;
	return 0;
}

static int parse_number(const char *name, const char *value, unsigned long long min,
	unsigned long long max, unsigned long long *number, struct fail *why)
{
	char *end = NULL;
	errno = 0;
	*number = strtoull(value, &end, 10);
	if (errno || end == value || *end || *value == '-' || *number < min || *number > max)
		return fail_set(why, -EINVAL, "--%s '%s' is no number from %llu to %llu", name,
			value, min, max);
	return 0;
}

static int set_keep(struct mount_options *options, const char *value, struct fail *why)
{
	unsigned long long number = 0;
	int result = parse_number("keep", value, 1, 100000, &number, why);
	options->keep = (unsigned)number;
	return result;
}

static int set_timeout(struct mount_options *options, const char *value, struct fail *why)
{
	unsigned long long number = 0;
	int result = parse_number("timeout", value, 1, UINT_MAX / 1000, &number, why);
	options->timeout_ms = (unsigned)number * 1000;
	return result;
}

static int set_request_max(struct mount_options *options, const char *value, struct fail *why)
{
	unsigned long long number = 0;
	int result =
		parse_number("request-max", value, 2, (unsigned long long)1 << 30, &number, why);
	options->request_max = (size_t)number;
	return result;
}

static int set_hosts_max(struct mount_options *options, const char *value, struct fail *why)
{
	unsigned long long number = 0;
	int result = parse_number("hosts", value, 1, 10000, &number, why);
	options->hosts_max = (unsigned)number;
	return result;
}

static int set_env(struct mount_options *options, const char *value, struct fail *why)
{
	return environment_put(&options->environment, value, why);
}

static int set_ready_fd(struct mount_options *options, const char *value, struct fail *why)
{
	unsigned long long number = 0;
	int result = parse_number("ready-fd", value, 3, INT_MAX, &number, why);
	options->ready_fd = (int)number;
	return result;
}

static int set_log_level(struct mount_options *options, const char *value, struct fail *why)
{
	if (log_parse_level(value, &options->log_level) < 0)
		return fail_set(why, -EINVAL,
			"--log-level '%s' is none of error, warning, info, debug", value);
	return 0;
}

static const struct option_row rows[] = {
	{ "tools", 't', "DIR:DIR...",
		"the tool directories; the last that has a tool of a name wins "
		"(default: $PI_TOOLS_DIRS)",
		set_tools },
	{ "foreground", 'f', NULL, "stay in front, log to standard error", set_foreground },
	{ "at", 0, "PATH", "where readers see the tree, if not at MOUNTPOINT", set_at },
	{ "timeout", 0, "SECONDS", "longest time of a call (default: 600)", set_timeout },
	{ "keep", 0, "NUMBER", "finished calls kept of each caller and tool (default: 64)",
		set_keep },
	{ "hosts", 0, "NUMBER", "tool host processes at once (default: 16)", set_hosts_max },
	{ "request-max", 0, "BYTES", "largest request (default: 67108864)", set_request_max },
	{ "env", 0, "NAME=VALUE", "sets a variable in the tools' environment; may be repeated",
		set_env },
	{ "lib-dir", 0, "DIR", "where the host scripts are", set_lib_dir },
	{ "ready-fd", 0, "FD", "gets the line READY once the tree can be used", set_ready_fd },
	{ "log-level", 0, "LEVEL", "error, warning, info or debug (default: info)", set_log_level },
};
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
			return rows[i].set(options, word + len + (word[len] == '='), why);
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

static void help(void)
{
	printf("usage: pegfs mount MOUNTPOINT [OPTIONS]\n\n"
	       "Shows the tools of the tool directories as one tree at MOUNTPOINT; returns when it\n"
	       "can be used.\n\n");
	for (size_t i = 0; i < ROWS; i++) {
		char head[64];
		snprintf(head, sizeof(head), "%s--%s%s%s", rows[i].letter ? "" : "    ",
			rows[i].name, rows[i].value ? " " : "", rows[i].value ? rows[i].value : "");
		if (rows[i].letter)
			printf("  -%c, %-24s %s\n", rows[i].letter, head, rows[i].help);
		else
			printf("  %-28s %s\n", head, rows[i].help);
	}
	printf("  -o OPTION[,OPTION...]        any of these as NAME=VALUE, allow_other (implied\n"
	       "                               for root), and those of mount(8)\n");
}

static void set_defaults(struct mount_options *options)
{
	*options = (struct mount_options){ .ready_fd = -1,
		.allow_other = geteuid() == 0,
		.mount_flags = MS_NOSUID | MS_NODEV,
		.timeout_ms = TIMEOUT_DEFAULT_S * 1000,
		.request_max = REQUEST_MAX_DEFAULT,
		.keep = CALLS_KEEP_DEFAULT,
		.log_level = LOG_LEVEL_INFO };
	const char *tools = getenv("PI_TOOLS_DIRS");
	options->tools = xstrdup(tools ? tools : "");
	environment_load(&options->environment, options->tools);
}

static int take_options(struct mount_options *options, int argc, char **argv, struct fail *why)
{
	struct option longs[ROWS + 2] = { { 0 } };
	for (size_t i = 0; i < ROWS; i++)
		longs[i] = (struct option){ rows[i].name,
			rows[i].value ? required_argument : no_argument, NULL,
			rows[i].letter ? rows[i].letter : 256 + (int)i };
	longs[ROWS] = (struct option){ "help", no_argument, NULL, 'h' };
	int option;
	optind = 0;
	opterr = 0;
	while ((option = getopt_long(argc, argv, ":t:fo:hnsv", longs, NULL)) != -1) {
		if (option == 'h') {
			help();
			return 1;
		}
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
				rows[i].set(options, optarg, why) < 0)
				return why->code;
	}
	return 0;
}

/* build/pegfs finds build/lib/pegfs; PREFIX/bin/pegfs finds PREFIX/lib/pegfs. */
static int find_lib_dir(struct mount_options *options, struct fail *why)
{
	if (options->lib_dir)
		return 0;
	char exe[PATH_MAX];
	ssize_t len = readlink("/proc/self/exe", exe, sizeof(exe) - 1);
	if (len < 0)
		return fail_errno(why, "cannot find out where this program is");
	exe[len] = '\0';
	for (char *slash = strrchr(exe, '/'); slash; slash = strrchr(exe, '/')) {
		*slash = '\0';
		auto_free char *path = xasprintf("%s/lib/pegfs", exe);
		if (access(path, R_OK) == 0) {
			options->lib_dir = take_ptr(&path);
			return 0;
		}
	}
	return fail_set(why, -ENOENT,
		"the host scripts are missing: there is no lib/pegfs beside or above this program; "
		"run 'make' or 'make install', or give --lib-dir");
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

static int take_mountpoint(struct mount_options *options, const char *path, struct fail *why)
{
	options->mountpoint = mount_real_path(path);
	if (!options->mountpoint)
		return fail_errno(why, "mount point '%s'", path);
	if (!options->shown_at)
		options->shown_at = xstrdup(options->mountpoint);
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
			replace(&options->tools, source);
	}
	if (argc - optind != 1)
		return fail_set(why, -EINVAL, "%s; see 'pegfs mount --help'",
			argc == optind ? "the mount point is missing" : "too many arguments");
	if (make_tools_absolute(options, why) < 0)
		return why->code;
	if (!*options->tools)
		return fail_set(why, -EINVAL,
			"no tool directories: give --tools DIR:DIR... or set PI_TOOLS_DIRS");
	auto_free char *dirs = xasprintf("PI_TOOLS_DIRS=%s", options->tools);
	environment_put(&options->environment, dirs, why);
	if (take_mountpoint(options, argv[optind], why) < 0)
		return why->code;
	return find_lib_dir(options, why);
}

void options_release(struct mount_options *options)
{
	free(options->mountpoint);
	free(options->shown_at);
	free(options->tools);
	free(options->lib_dir);
	environment_release(&options->environment);
}

int options_render(const struct mount_options *options, struct buf *out)
{
	buf_printf(out, "mountpoint=%s\nat=%s\ntools=%s\nlib-dir=%s\n", options->mountpoint,
		options->shown_at, options->tools, options->lib_dir);
	buf_printf(out, "timeout=%u\nkeep=%u\nrequest-max=%zu\nallow_other=%s\n",
		options->timeout_ms / 1000, options->keep, options->request_max,
		options->allow_other ? "yes" : "no");
	/* Names only: values may be tokens. */
	for (size_t i = 0; i < options->environment.count; i++) {
		const char *item = options->environment.items[i];
		buf_printf(out, "env=%.*s\n", (int)strcspn(item, "="), item);
	}
	return out->failed;
}
