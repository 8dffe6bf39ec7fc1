/* The levels of notifications/message (RFC 5424), from debug to emergency. */
#ifndef PEGFS_CMD_MCPLEVEL_H
#define PEGFS_CMD_MCPLEVEL_H

#include <jansson.h>

#define MCPLEVEL_INFO 1    /* of what tools print */
#define MCPLEVEL_NOTHING 8 /* above all: nothing is wanted */

/* Its number; -1 where it is none. */
int mcplevel_parse(const json_t *name);

#endif
