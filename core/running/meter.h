/*
 * What calls have taken, of each tool: how many ended how, and how long they took, in classes as
 * Prometheus has them. Of a bounded number of tools: those beyond it, which somebody who renames his
 * tools all the time could make, are counted together.
 */
#ifndef PEGFS_RUNNING_METER_H
#define PEGFS_RUNNING_METER_H

#include <stddef.h>
#include <stdint.h>

#include "core/base/map.h"
#include "core/running/call.h"

#define METER_TOOLS_MAX 1024
#define METER_OTHERS ".other" /* no tool is called so: names do not begin with a dot */
#define METER_CLASSES 15

/* Upper bounds of the classes, in milliseconds, rising; what is above the last is in `sum` alone. */
extern const uint32_t meter_bounds_ms[METER_CLASSES];

struct meter_times {
	uint64_t in_class[METER_CLASSES]; /* each call in one class, the first that it fits */
	uint64_t count;                   /* of all, also above the last bound */
	uint64_t sum_ms;
};

struct meter_tool {
	char *name;                  /* owned */
	uint64_t ended[CALL_STATES]; /* by how */
	struct meter_times took;     /* of those that ran, from their request to their end */
};

struct meter {
	struct map by_name;        /* hash of the name -> owned struct meter_tool */
	struct meter_times waited; /* for a host, of those that ran */
};

#define METER_INIT                                                                                 \
	{                                                                                          \
		.by_name = MAP_INIT                                                                \
	}

void meter_release(struct meter *meter);

/* Counts a call that has ended; to be called once. */
void meter_note(struct meter *meter, const struct call *call);

/* The next tool in no order; NULL at the end. Start with *at = 0. */
const struct meter_tool *meter_next(const struct meter *meter, size_t *at);

#endif
