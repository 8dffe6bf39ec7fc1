#include "core/base/ownmount.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/auto.h"

/* The id of the mount that fd lies in, or -1. */
static int mount_id(int fd)
{
	char path[64], line[128];
	snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", fd);
	FILE *info = fopen(path, "re");
	if (!info)
		return -1;
	int id = -1;
	while (id < 0 && fgets(line, sizeof(line), info))
		if (sscanf(line, "mnt_id: %d", &id) != 1)
			id = -1;
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
	int wanted = mount_id(fd);
	FILE *mounts = wanted < 0 ? NULL : fopen("/proc/self/mountinfo", "re");
	if (!mounts)
		return false;
	auto_free char *line = NULL;
	size_t size = 0;
	bool own = false;
	while (getline(&line, &size, mounts) > 0)
		if (atoi(line) == wanted) {
			own = is_own(line);
			break;
		}
	fclose(mounts);
	return own;
}
