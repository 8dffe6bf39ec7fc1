#include "core/base/ownmount.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/auto.h"

/* The number at the start of text, or -1. */
static long number_at(const char *text)
{
	char *end;
	long number = strtol(text, &end, 10);
	return end == text ? -1 : number;
}

/* The id of the mount that fd lies in, or -1. */
static long mount_id(int fd)
{
	static const char key[] = "mnt_id:";
	char path[64], line[128];
	snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", fd);
	FILE *info = fopen(path, "re");
	if (!info)
		return -1;
	long id = -1;
	while (id < 0 && fgets(line, sizeof(line), info))
		if (strncmp(line, key, strlen(key)) == 0)
			id = number_at(line + strlen(key));
	fclose(info);
	return id;
}

/* A line of mountinfo: "ID PARENT MAJOR:MINOR ROOT POINT OPTIONS [TAGS] - TYPE SOURCE OPTIONS" */
static bool is_own(const char *line)
{
	const char *type = strstr(line, " - ");
	size_t len = strlen(OWNMOUNT_TYPE);
	return type && strncmp(type + 3, OWNMOUNT_TYPE, len) == 0 && type[3 + len] == ' ';
}

bool ownmount_has(int fd)
{
	long wanted = mount_id(fd);
	FILE *mounts = wanted < 0 ? NULL : fopen("/proc/self/mountinfo", "re");
	if (!mounts)
		return false;
	auto_free char *line = NULL;
	size_t size = 0;
	bool own = false;
	while (getline(&line, &size, mounts) > 0)
		if (number_at(line) == wanted) {
			own = is_own(line);
			break;
		}
	fclose(mounts);
	return own;
}
