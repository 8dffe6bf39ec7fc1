#include "fs/state.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "core/base/auto.h"
#include "core/base/log.h"

static struct state *map(int fd, struct fail *why)
{
	void *memory = mmap(NULL, sizeof(struct state), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (memory != MAP_FAILED)
		return memory;
	fail_errno(why, "cannot map the memory that survives the server");
	return NULL;
}

int state_make(struct state **state, struct fail *why)
{
	auto_close int fd = memfd_create("pegfs-state", MFD_CLOEXEC);
	if (fd < 0 || ftruncate(fd, (off_t)sizeof(struct state)) < 0)
		return fail_errno(why, "cannot make the memory that survives the server");
	*state = map(fd, why);
	if (!*state)
		return why->code;
	(*state)->layout = STATE_LAYOUT;
	return take_fd(&fd);
}

/* Where it may not be locked it is at least there now; only swapping could take it away again. */
void state_make_resident(struct state *state)
{
	if (mlock(state->receive, sizeof(state->receive)) == 0)
		return;
	log_errno(LOG_LEVEL_DEBUG, "the receive buffer is not locked in memory");
	for (size_t at = 0; at < sizeof(state->receive); at += 4096)
		((volatile unsigned char *)state->receive)[at] = state->receive[at];
}

struct state *state_map(int fd, struct fail *why)
{
	struct stat st;
	if (fstat(fd, &st) < 0) {
		fail_errno(why, "cannot look at the memory that survives the server");
		return NULL;
	}
	/* The layout's number stands first in all of them. */
	uint32_t layout = 0;
	if (pread(fd, &layout, sizeof(layout), 0) != (ssize_t)sizeof(layout) ||
		layout != STATE_LAYOUT || st.st_size != (off_t)sizeof(struct state)) {
		fail_set(why, -EPROTO,
			"this version cannot take over from the one that runs (layout %u, not %u): "
			"unmount and mount again",
			layout, STATE_LAYOUT);
		return NULL;
	}
	struct state *state = map(fd, why);
	if (state && (state->init_len > STATE_INIT_MAX || state->reply_len > STATE_INIT_MAX)) {
		fail_set(why, -EPROTO, "what was noted of the kernel's terms makes no sense");
		state_unmap(state);
		return NULL;
	}
	return state;
}

void state_unmap(struct state *state)
{
	if (state)
		munmap(state, sizeof(*state));
}

static struct state_poison *poison_of(struct state *state, uint64_t unique)
{
	struct state_poison *least = &state->poisons[0];
	for (size_t i = 0; i < STATE_POISONS; i++) {
		struct state_poison *poison = &state->poisons[i];
		if (poison->unique == unique)
			return poison;
		if (poison->crashes < least->crashes)
			least = poison;
	}
	*least = (struct state_poison){ .unique = unique };
	return least;
}

bool state_blame(struct state *state)
{
	const struct state_current current = state->current;
	state->current = (struct state_current){ .unique = 0 };
	if (current.unique) {
		struct state_poison *poison = poison_of(state, current.unique);
		poison->opcode = current.opcode;
		poison->crashes++;
		return true;
	}
	if (current.host == 0 || current.host > STATE_HOSTS)
		return false;
	state->hosts[current.host - 1].crashes++;
	return true;
}

bool state_is_poison(const struct state *state, uint64_t unique)
{
	for (size_t i = 0; i < STATE_POISONS; i++)
		if (state->poisons[i].unique == unique)
			return state->poisons[i].crashes >= STATE_QUARANTINE_AFTER;
	return false;
}

uint64_t state_now_ms(void)
{
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}
