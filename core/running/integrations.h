/*
 * The integrations' settings (R59): a JSON file of resources, as the platform keeps them, becomes
 * OFFICER_RESOURCES and the variables that are derived from it:
 *
 *   PI_SEARXNG_URL               searxng.url, searxng.base_url
 *   OFFICER_APIFY_TOKEN          apify.token, apify.api_token
 *   OFFICER_BROWSER_RELAY_PORT   browser-relay.port
 *   OFFICER_BROWSER_RELAY_TOKEN  browser-relay.token
 *
 * What is not there, or empty, is not set (R76 to R78).
 */
#ifndef PEGFS_RUNNING_INTEGRATIONS_H
#define PEGFS_RUNNING_INTEGRATIONS_H

#include "core/running/environment.h"

#define INTEGRATIONS_SIZE_MAX (1024 * 1024)

/* Adds the variables to environment. 0, or *why with file, line and column; never a value. */
int integrations_load(struct environment *environment, const char *path, struct fail *why);

#endif
