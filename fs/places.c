#include "fs/places.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/base/auto.h"
#include "core/base/buf.h"
#include "core/base/io.h"
#include "core/base/log.h"
#include "core/base/xalloc.h"

#define JOURNAL_NAME "places"
#define JOURNAL_MAX ((size_t)1 << 30)
#define SWEEP_LEAST 65536

struct place {
	uint32_t number;
	char *key;          /* owned */
	struct place *next; /* with the same hash of the key */
};

static uint64_t hash_of(const char *key)
{
	return map_hash(MAP_HASH_SEED, key, strlen(key));
}

static struct place *find(const struct places *places, const char *key)
{
	struct place *place = map_get(&places->by_key, hash_of(key));
	while (place && strcmp(place->key, key) != 0)
		place = place->next;
	return place;
}

static void put(struct places *places, const char *key, uint32_t number)
{
	struct place *place = xcalloc(1, sizeof(*place));
	*place = (struct place){ .number = number, .key = xstrdup(key) };
	place->next = map_put(&places->by_key, hash_of(key), place);
	map_put(&places->by_number, number, place);
	if (number >= places->next)
		places->next = number + 1;
}

static void drop_all(struct places *places)
{
	size_t at = 0;
	const struct map_slot *slot;
	while ((slot = map_next(&places->by_number, &at))) {
		struct place *place = slot->value;
		free(place->key);
		free(place);
	}
	map_release(&places->by_number);
	map_release(&places->by_key);
}

void places_release(struct places *places)
{
	drop_all(places);
	if (places->journal_fd > 0)
		close(places->journal_fd);
}

/* ---- the journal: the key and the number in hexadecimal, each with a NUL behind it */

static void put_entry(struct buf *out, const char *key, uint32_t number)
{
	buf_append(out, key, strlen(key) + 1);
	buf_printf(out, "%" PRIx32, number);
	buf_putc(out, '\0');
}

/* A server that was killed may have left half an entry at the end: that number was not given. */
static size_t load_entries(struct places *places, const struct buf *text)
{
	size_t done = 0;
	while (done < text->len) {
		const char *key = text->data + done;
		size_t key_len = strnlen(key, text->len - done);
		size_t left = text->len - done - key_len;
		const char *number = left > 0 ? key + key_len + 1 : NULL;
		size_t number_len = number ? strnlen(number, left - 1) : 0;
		if (!number || number_len == left - 1)
			return done;
		uint32_t value = (uint32_t)strtoul(number, NULL, 16);
		if (*key)
			put(places, key, value);
		else if (value > places->next) /* what a sweep has left of those before */
			places->next = value;
		done += key_len + number_len + 2;
	}
	return done;
}

static void open_journal(struct places *places, size_t len)
{
	int fd = openat(places->dir_fd, JOURNAL_NAME,
		O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd < 0 || ftruncate(fd, (off_t)len) < 0)
		log_errno(LOG_LEVEL_ERROR, "what users have open will not survive the server");
	places->journal_fd = fd < 0 ? 0 : fd;
}

void places_load(struct places *places, int dir_fd)
{
	auto_close int fd = openat(dir_fd, JOURNAL_NAME, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	auto_buf struct buf text = BUF_INIT(JOURNAL_MAX);
	places->dir_fd = dir_fd;
	places->next = 1;
	places->sweep_at = SWEEP_LEAST;
	size_t len = fd >= 0 && io_read_all(fd, &text) == 0 ? load_entries(places, &text) : 0;
	open_journal(places, len);
}

/* ---- what is gone */

/* Whoever makes new names again and again would fill the memory: what nobody can want is dropped. */
static void sweep(struct places *places)
{
	auto_buf struct buf text = BUF_INIT(JOURNAL_MAX);
	put_entry(&text, "", places->next);
	size_t at = 0;
	const struct map_slot *slot;
	while ((slot = map_next(&places->by_number, &at))) {
		const struct place *place = slot->value;
		if (places->is_there && places->is_there(places->arg, place->key))
			put_entry(&text, place->key, place->number);
	}
	if (text.failed ||
		io_replace_file(places->dir_fd, JOURNAL_NAME, text.data, text.len, 0600) < 0)
		return;
	drop_all(places);
	load_entries(places, &text);
	if (places->journal_fd > 0)
		close(places->journal_fd);
	open_journal(places, text.len);
	places->sweep_at = places->by_number.count * 2 > SWEEP_LEAST ? places->by_number.count * 2
								     : SWEEP_LEAST;
}

uint32_t places_number(struct places *places, const char *key)
{
	const struct place *place = find(places, key);
	if (place)
		return place->number;
	if (places->by_number.count >= places->sweep_at)
		sweep(places);
	uint32_t number = places->next ? places->next : 1;
	auto_buf struct buf entry = BUF_INIT(JOURNAL_MAX);
	put_entry(&entry, key, number);
	/* Before it is given: the next server must not give it to another. */
	if (places->journal_fd > 0 && io_write_all(places->journal_fd, entry.data, entry.len) < 0)
		log_errno(LOG_LEVEL_ERROR, "%s will not survive the server", key);
	put(places, key, number);
	return number;
}

const char *places_key(const struct places *places, uint32_t number)
{
	const struct place *place = map_get(&places->by_number, number);
	return place ? place->key : NULL;
}
