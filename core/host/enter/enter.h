/* What the files of this program share; enter.c says what it is. */
#ifndef PEGFS_HOST_ENTER_H
#define PEGFS_HOST_ENTER_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define NAMESPACES_MAX 8
#define GROUPS_MAX 64

/* The arguments. Strings are borrowed from them. */
struct plan {
	int namespaces[NAMESPACES_MAX]; /* to be joined in this order, descriptors */
	size_t namespace_count;
	int user_fd; /* the user namespace, which is joined last; -1: this one */
	int root_fd; /* the root directory there */
	uid_t uid;
	gid_t gid;
	gid_t groups[GROUPS_MAX];
	size_t group_count;
	uint64_t caps;       /* that the caller has, as bits */
	const char *limits;  /* SOFT:HARD,... of each of getrlimit(2)'s */
	const char *cgroups; /* as /proc/PID/cgroup has them */
	const char *label;   /* as /proc/PID/attr/current has it; "": none */
	const char *script;  /* a file here, which is given to the program as SCRIPT_FD */
	const char *dir;     /* that has to be there */
	char **program;      /* and its arguments */
};

/* Says why there will be no host: a sentence, on standard error, which is shown to the caller. */
void die(const char *format, ...) __attribute__((noreturn, format(printf, 1, 2)));

/* Reads a small file as text; "" where there is none. */
void read_text(const char *path, char *text, size_t size);

/* ---- join.c: each ends this program where it fails */

void join_cgroups(const char *wanted);
void join_label(const char *label);
void join_namespaces(const struct plan *plan); /* all but the user namespace */
void join_root(const struct plan *plan);

/* ---- rights.c: the same */

void lower_limits(const char *limits);
void leave_keyring(void);
/* The caller's ids, its user namespace, its root directory, its capabilities, and no way to more. */
void become(const struct plan *plan);

#endif
