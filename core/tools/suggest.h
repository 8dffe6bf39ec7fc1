/*
 * "Did you mean ...": of the names that are known, the one closest to a name that is not. Case and
 * the characters `_`, `-` and blank do not count; a few wrong, missing or exchanged characters are
 * forgiven, and so is a part of the name in place of the whole.
 */
#ifndef PEGFS_TOOLS_SUGGEST_H
#define PEGFS_TOOLS_SUGGEST_H

struct suggest {
	const char *given; /* borrowed */
	const char *best;  /* borrowed from what was offered; NULL: nothing is close */
	unsigned rank;     /* of best, less is closer */
};

/* Begin with the name that was given, offer each known one, then read `best`. */
void suggest_begin(struct suggest *suggest, const char *given);
void suggest_offer(struct suggest *suggest, const char *known);

#endif
