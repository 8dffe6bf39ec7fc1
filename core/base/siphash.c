#include "core/base/siphash.h"

static uint64_t load(const uint8_t *at, size_t count)
{
	uint64_t word = 0;
	for (size_t i = 0; i < count; i++)
		word |= (uint64_t)at[i] << 8 * i;
	return word;
}

static uint64_t rotate(uint64_t word, unsigned bits)
{
	return word << bits | word >> (64 - bits);
}

static void rounds(uint64_t v[4], unsigned count)
{
	for (; count > 0; count--) {
		v[0] += v[1];
		v[2] += v[3];
		v[1] = rotate(v[1], 13) ^ v[0];
		v[3] = rotate(v[3], 16) ^ v[2];
		v[0] = rotate(v[0], 32) + v[3];
		v[2] += v[1];
		v[1] = rotate(v[1], 17) ^ v[2];
		v[3] = rotate(v[3], 21) ^ v[0];
		v[2] = rotate(v[2], 32);
	}
}

static void take(uint64_t v[4], uint64_t word)
{
	v[3] ^= word;
	rounds(v, 2);
	v[0] ^= word;
}

uint64_t siphash(const uint8_t secret[SIPHASH_SECRET_SIZE], const void *bytes, size_t len)
{
	const uint8_t *at = bytes;
	const uint64_t k0 = load(secret, 8), k1 = load(secret + 8, 8);
	uint64_t v[4] = { k0 ^ 0x736f6d6570736575u, k1 ^ 0x646f72616e646f6du,
		k0 ^ 0x6c7967656e657261u, k1 ^ 0x7465646279746573u };
	size_t left = len;
	for (; left >= 8; left -= 8, at += 8)
		take(v, load(at, 8));
	take(v, load(at, left) | (uint64_t)len << 56);
	v[2] ^= 0xff;
	rounds(v, 4);
	return v[0] ^ v[1] ^ v[2] ^ v[3];
}
