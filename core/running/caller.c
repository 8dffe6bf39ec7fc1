#include "core/running/caller.h"

#include <fcntl.h>
#include <linux/nsfs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/base/auto.h"

#define STATUS_MAX 4096

/* Reads a small file of /proc whole. Returns the bytes, NUL-terminated, or -1. */
static ssize_t read_proc(pid_t pid, const char *name, char *text, size_t size)
{
	char path[64];
	snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, name);
	auto_close int fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -1;
	ssize_t got = read(fd, text, size - 1);
	text[got > 0 ? got : 0] = '\0';
	return got;
}

/* The number behind "\nNAME:" of proc_pid_status(5), or 0. */
static unsigned long status_number(const char *status, const char *name)
{
	const char *line = strstr(status, name);
	return line ? strtoul(line + strlen(name), NULL, 10) : 0;
}

/* The same, of hexadecimal digits. */
static uint64_t status_hex(const char *status, const char *name)
{
	const char *line = strstr(status, name);
	return line ? strtoull(line + strlen(name), NULL, 16) : 0;
}

static void load_groups(struct identity *who, const char *status)
{
	const char *at = strstr(status, "\nGroups:");
	if (!at)
		return;
	at += strlen("\nGroups:");
	while (who->group_count < IDENTITY_GROUPS_MAX) {
		while (*at == ' ' || *at == '\t')
			at++;
		if (*at < '0' || *at > '9')
			break;
		char *end = NULL;
		who->groups[who->group_count++] = (gid_t)strtoul(at, &end, 10);
		at = end;
	}
}

/* Field `number` of proc_pid_stat(5), from the last ')' on, which ends field 2: names hold blanks. */
static unsigned long long stat_field(const char *stat, unsigned number)
{
	const char *at = strrchr(stat, ')');
	for (unsigned field = 2; at && field < number; field++)
		at = strchr(at + 1, ' ');
	return at ? strtoull(at, NULL, 10) : 0;
}

static bool load_link(pid_t pid, struct process *link, pid_t *parent)
{
	char stat[1024];
	if (read_proc(pid, "stat", stat, sizeof(stat)) <= 0)
		return false;
	*link = (struct process){ .pid = pid, .start = stat_field(stat, 22) };
	*parent = (pid_t)stat_field(stat, 4);
	return true;
}

static void load_chain(struct chain *chain, pid_t pid)
{
	while (pid > 0 && chain->count < CALLER_CHAIN_MAX &&
		load_link(pid, &chain->links[chain->count], &pid))
		chain->count++;
}

#ifndef NS_GET_ID
#define NS_GET_ID _IOR(0xb7, 13, uint64_t) /* ioctl_nsfs(2), Linux 6.18 */
#endif

uint64_t caller_pid_namespace(pid_t tid)
{
	char path[64];
	struct stat st;
	uint64_t id;
	if (tid <= 0)
		return 0;
	snprintf(path, sizeof(path), "/proc/%d/ns/pid", (int)tid);
	auto_close int fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &st) < 0)
		return 0;
	if (ioctl(fd, NS_GET_ID, &id) == 0)
		return id;
	/* The inode's number is given again once a container has ended; that of its mount is not. */
	return place_mix_mount(st.st_ino, tid);
}

/* Ids, groups and capabilities. Whether status holds more of it. */
static bool load_rights(
	struct identity *who, uid_t uid, gid_t gid, pid_t tid, char *status, size_t size)
{
	memset(who, 0, sizeof(*who));
	who->uid = uid;
	who->gid = gid;
	if (tid <= 0 || read_proc(tid, "status", status, size) <= 0)
		return false;
	load_groups(who, status);
	who->caps = status_hex(status, "\nCapPrm:") & status_hex(status, "\nCapBnd:");
	return true;
}

static void load_place(struct identity *who, pid_t tid)
{
	place_load(&who->place, tid, who->uid, who->gid);
}

void caller_load_identity(struct identity *who, uid_t uid, gid_t gid, pid_t tid)
{
	char status[STATUS_MAX];
	if (load_rights(who, uid, gid, tid, status, sizeof(status)))
		load_place(who, tid);
}

void caller_load_reader(struct caller *caller, uid_t uid, gid_t gid, pid_t tid)
{
	memset(caller, 0, sizeof(*caller));
	caller->tid = tid;
	char status[STATUS_MAX];
	if (!load_rights(&caller->who, uid, gid, tid, status, sizeof(status)))
		return;
	caller->pid_ns = caller_pid_namespace(tid);
	load_chain(&caller->chain, (pid_t)status_number(status, "\nTgid:"));
}

void caller_load(struct caller *caller, uid_t uid, gid_t gid, pid_t tid)
{
	caller_load_reader(caller, uid, gid, tid);
	load_place(&caller->who, tid);
}

void caller_demote(struct caller *caller, uid_t uid, gid_t gid)
{
	caller->who = (struct identity){ .uid = uid, .gid = gid, .place = caller->who.place };
}

void caller_confine(struct caller *caller, uint64_t caps, const struct place *place)
{
	caller->who.caps &= caps;
	caller->who.place = place_mix(&caller->who.place, place);
}

bool process_equal(const struct process *a, const struct process *b)
{
	return a->pid == b->pid && a->start == b->start;
}

size_t chain_distance_below(const struct chain *reader, const struct chain *other, size_t than)
{
	for (size_t i = 0; i < reader->count && i < than; i++)
		for (size_t j = 0; j < other->count; j++)
			if (process_equal(&reader->links[i], &other->links[j]))
				return i;
	return than < CALLER_CHAIN_MAX ? than : CALLER_CHAIN_MAX;
}

size_t chain_distance(const struct chain *reader, const struct chain *other)
{
	return chain_distance_below(reader, other, CALLER_CHAIN_MAX);
}
