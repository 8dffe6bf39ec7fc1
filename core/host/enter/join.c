/* Into the namespaces, the root directory, the cgroups and the security label of the caller. */
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "core/host/enter/enter.h"

#define TEXT_MAX 8192
#define POINT_MAX 1024
#define TABLE_MAX ((size_t)16 << 20)

void join_namespaces(const struct plan *plan)
{
	for (size_t i = 0; i < plan->namespace_count; i++)
		if (setns(plan->namespaces[i], 0) < 0)
			die("cannot join a namespace of the caller: %s; pegfs has to run as root of "
			    "the machine for --run-in caller\n",
				strerror(errno));
}

void join_root(const struct plan *plan)
{
	/* No path is walked: whatever lies below that directory is not looked at. */
	if (fchdir(plan->root_fd) < 0 || chroot(".") < 0 || chdir("/") < 0)
		die("cannot go to the caller's root directory: %s\n", strerror(errno));
}

/* ---- cgroups: what the container may use is what the tool may use */

/* One line of /proc/PID/cgroup: NUMBER:CONTROLLERS:PATH; version 2 has no controllers. */
struct line {
	const char *head, *path; /* head: up to the second colon */
	size_t head_len, controllers_at, path_len;
};

/* Takes the line at *at; false at the end. */
static bool take_line(const char **at, struct line *line)
{
	const char *first = strchr(*at, ':'), *second = first ? strchr(first + 1, ':') : NULL;
	if (!second)
		return false;
	line->head = *at;
	line->head_len = (size_t)(second - *at);
	line->controllers_at = (size_t)(first + 1 - *at);
	line->path = second + 1;
	line->path_len = strcspn(line->path, "\n");
	*at = line->path + line->path_len;
	*at += **at == '\n';
	return true;
}

static bool is_same(const struct line *a, const struct line *b)
{
	return a->path_len == b->path_len && memcmp(a->path, b->path, a->path_len) == 0;
}

static bool find_own(const char *text, const struct line *wanted, struct line *own)
{
	while (take_line(&text, own))
		if (own->head_len == wanted->head_len &&
			memcmp(own->head, wanted->head, own->head_len) == 0)
			return true;
	return false;
}

/* Whether each of the controllers is among the options of a mount. */
static bool has_all(const char *options, const char *controllers, size_t len)
{
	while (len > 0) {
		size_t word = 0;
		while (word < len && controllers[word] != ',')
			word++;
		const char *at = options;
		for (; at; at = strchr(at, ',') ? strchr(at, ',') + 1 : NULL)
			if (strncmp(at, controllers, word) == 0 &&
				(at[word] == ',' || at[word] == '\0' || at[word] == '\n'))
				break;
		if (!at)
			return false;
		controllers += word;
		len -= word;
		if (len > 0) {
			controllers++;
			len--;
		}
	}
	return true;
}

/* The mount point in a line of mountinfo, where it is that of a line's hierarchy, whole. */
static bool is_mount_of(const char *text, const struct line *line, char point[POINT_MAX])
{
	const char *controllers = line->head + line->controllers_at;
	size_t len = line->head_len - line->controllers_at;
	char root[16], kind[32], options[POINT_MAX];
	const char *rest = strstr(text, " - ");
	if (!rest || sscanf(text, "%*s %*s %*s %15s %1023s", root, point) != 2 ||
		sscanf(rest, " - %31s %*s %1023s", kind, options) != 2 || strcmp(root, "/") != 0)
		return false;
	if (len == 0)
		return strcmp(kind, "cgroup2") == 0;
	return strcmp(kind, "cgroup") == 0 && has_all(options, controllers, len);
}

/* Its directory, or -1. The table is of this system: nothing of it is to stay in memory. */
static int open_hierarchy(const struct line *line)
{
	char *table = mmap(NULL, TABLE_MAX, PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (table == MAP_FAILED)
		die("there is no memory\n");
	read_text("/proc/self/mountinfo", table, TABLE_MAX);
	char point[POINT_MAX];
	int fd = -1;
	char *rest = table;
	for (char *text = strsep(&rest, "\n"); text && fd < 0; text = strsep(&rest, "\n"))
		if (is_mount_of(text, line, point))
			fd = open(point, O_PATH | O_DIRECTORY | O_CLOEXEC);
	explicit_bzero(point, sizeof(point));
	munmap(table, TABLE_MAX);
	return fd;
}

/* Directories in there may be made by the container, but names cannot lead out of the hierarchy. */
static void move_to(const struct line *line)
{
	int top = open_hierarchy(line);
	char path[TEXT_MAX];
	snprintf(path, sizeof(path), ".%.*s/cgroup.procs", (int)line->path_len, line->path);
	struct open_how how = { .flags = O_WRONLY | O_CLOEXEC,
		.resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_XDEV };
	int fd = top < 0 ? -1 : (int)syscall(SYS_openat2, top, path, &how, sizeof(how));
	if (fd < 0 || write(fd, "0", 1) != 1)
		die("cannot move to the caller's cgroup '%.*s': %s; --run-in caller needs the cgroups "
		    "mounted, writable and whole where pegfs runs\n",
			(int)line->path_len, line->path,
			top < 0 ? "it is not mounted" : strerror(errno));
	close(fd);
	close(top);
}

void join_cgroups(const char *wanted)
{
	char own_text[TEXT_MAX];
	read_text("/proc/self/cgroup", own_text, sizeof(own_text));
	struct line line, own;
	while (take_line(&wanted, &line))
		if (!find_own(own_text, &line, &own) || !is_same(&line, &own))
			move_to(&line);
	explicit_bzero(own_text, sizeof(own_text));
}

/* ---- the label */

/*
 * It counts from the next execve(2) on, also of a child. AppArmor shows a mode behind the profile,
 * "name (enforce)", and wants a command before it; SELinux takes what it shows.
 */
void join_label(const char *label)
{
	char own[1024], text[1100];
	read_text("/proc/self/attr/current", own, sizeof(own));
	own[strcspn(own, "\n")] = '\0';
	if (!*label || strcmp(own, label) == 0 || strcmp(label, "unconfined") == 0)
		return;
	const char *mode = strstr(label, " (");
	if (mode && label[strlen(label) - 1] == ')')
		snprintf(text, sizeof(text), "exec %.*s", (int)(mode - label), label);
	else
		snprintf(text, sizeof(text), "%s", label);
	int fd = open("/proc/self/attr/exec", O_WRONLY | O_CLOEXEC);
	if (fd < 0 || write(fd, text, strlen(text)) != (ssize_t)strlen(text))
		die("cannot take the caller's security label '%s': %s\n", label, strerror(errno));
	close(fd);
}
