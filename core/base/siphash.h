/*
 * SipHash-2-4 (Aumasson, Bernstein): a digest of bytes under a secret. Who does not know the secret
 * can neither tell the digest of anything nor find two inputs of the same one, which map_hash() gives
 * to everybody.
 */
#ifndef PEGFS_BASE_SIPHASH_H
#define PEGFS_BASE_SIPHASH_H

#include <stddef.h>
#include <stdint.h>

#define SIPHASH_SECRET_SIZE 16

uint64_t siphash(const uint8_t secret[SIPHASH_SECRET_SIZE], const void *bytes, size_t len);

#endif
