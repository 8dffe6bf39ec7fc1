#include "core/tools/suggest.h"

#include <limits.h>
#include <stddef.h>
#include <string.h>

#define NAME_MAX_LEN 64  /* longer names are not compared: the cost is the product of the lengths */
#define PART_MIN_LEN 3   /* a shorter part of a name says too little */
#define PART_RANK 1000   /* parts come after every misspelling */
#define FORGIVEN_SHARE 3 /* one wrong character in three */

struct folded {
	char text[NAME_MAX_LEN + 1];
	size_t len;
};

static int fold(const char *name, struct folded *folded)
{
	folded->len = 0;
	for (const char *at = name; *at; at++) {
		if (strchr("_- ", *at))
			continue;
		if (folded->len == NAME_MAX_LEN)
			return 0;
		char lower = *at >= 'A' && *at <= 'Z' ? (char)(*at - 'A' + 'a') : *at;
		folded->text[folded->len++] = lower;
	}
	folded->text[folded->len] = '\0';
	return folded->len > 0;
}

static unsigned least(unsigned a, unsigned b)
{
	return a < b ? a : b;
}

/*
 * Optimal string alignment: insertions, deletions, substitutions and exchanges of neighbours, by
 * the usual table, of which three rows are kept.
 */
static unsigned distance(const struct folded *a, const struct folded *b)
{
	unsigned rows[3][NAME_MAX_LEN + 1];
	unsigned *before = rows[0], *last = rows[1], *row = rows[2];
	for (unsigned j = 0; j <= b->len; j++)
		last[j] = before[j] = j;
	for (unsigned i = 1; i <= a->len; i++) {
		row[0] = i;
		for (unsigned j = 1; j <= b->len; j++) {
			char x = a->text[i - 1], y = b->text[j - 1];
			row[j] = least(least(last[j], row[j - 1]) + 1, last[j - 1] + (x != y));
			if (i > 1 && j > 1 && x == b->text[j - 2] && y == a->text[i - 2])
				row[j] = least(row[j], before[j - 2] + 1);
		}
		unsigned *oldest = before;
		before = last;
		last = row;
		row = oldest;
	}
	return last[b->len];
}

static unsigned rank_of(const struct folded *a, const struct folded *b)
{
	const struct folded *longer = a->len > b->len ? a : b;
	const struct folded *shorter = longer == a ? b : a;
	unsigned wrong = distance(a, b);
	unsigned forgiven = (unsigned)longer->len / FORGIVEN_SHARE;
	if (forgiven == 0)
		forgiven = 1;
	if (wrong <= forgiven && wrong < shorter->len)
		return wrong;
	if (shorter->len >= PART_MIN_LEN && strstr(longer->text, shorter->text))
		return PART_RANK + (unsigned)(longer->len - shorter->len);
	return UINT_MAX;
}

void suggest_begin(struct suggest *suggest, const char *given)
{
	*suggest = (struct suggest){ .given = given, .best = NULL, .rank = UINT_MAX };
}

void suggest_offer(struct suggest *suggest, const char *known)
{
	struct folded given, offered;
	if (!fold(suggest->given, &given) || !fold(known, &offered))
		return;
	unsigned rank = rank_of(&given, &offered);
	if (rank < suggest->rank) {
		suggest->rank = rank;
		suggest->best = known;
	}
}
