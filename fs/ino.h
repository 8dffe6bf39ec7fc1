/*
 * Node numbers: 64 bits that are made from what a node is and never stored, so that they mean the
 * same to the next server (survival.md A4). The top four bits are the class:
 *
 *   INO_STATIC  kind (8 bits), version (20), tool id (32)  of a tool, or of the tree: schema.json
 *   INO_CALL    serial (28), tool id (32)                  `call`: a new one for each look-up (H1)
 *   INO_ID_CALL serial (8), seq (52)                       `calls/ID/call`, likewise
 *   INO_DOC     kind (8), seq (52)                         what one call left or leaves
 *   INO_FILE    hash of the path (60)                      a tool's own file or directory
 *
 * The root is 1 (FUSE_ROOT_ID), which is in no class. The version of a text is a digest of what it
 * is made from: when that changes, the same name gets another number, and who has the old one open
 * keeps the old bytes. So nothing that the kernel has cached is ever wrong, and nothing has to be
 * dropped from its page cache, for which it might have to wait for us.
 */
#ifndef PEGFS_FS_INO_H
#define PEGFS_FS_INO_H

#include <stdint.h>

enum ino_class { INO_ROOT = 0, INO_STATIC = 1, INO_CALL, INO_ID_CALL, INO_DOC, INO_FILE };

#define INO_CLASS_SHIFT 60
#define INO_VERSION_BITS 20
#define INO_SEQ_BITS 52

static inline enum ino_class ino_class(uint64_t ino)
{
	return (enum ino_class)(ino >> INO_CLASS_SHIFT);
}

static inline uint64_t ino_make(enum ino_class class, unsigned bits, uint64_t high, uint64_t low)
{
	return (uint64_t) class << INO_CLASS_SHIFT |
	       (high & ((UINT64_C(1) << (INO_CLASS_SHIFT - bits)) - 1)) << bits |
	       (low & ((UINT64_C(1) << bits) - 1));
}

static inline uint64_t ino_static(unsigned kind, uint32_t version, uint32_t tool_id)
{
	uint64_t high =
		(uint64_t)kind << INO_VERSION_BITS | (version & ((1u << INO_VERSION_BITS) - 1));
	return ino_make(INO_STATIC, 32, high, tool_id);
}

static inline uint64_t ino_call(uint64_t serial, uint32_t tool_id)
{
	return ino_make(INO_CALL, 32, serial, tool_id);
}

static inline uint64_t ino_id_call(uint64_t serial, uint64_t seq)
{
	return ino_make(INO_ID_CALL, INO_SEQ_BITS, serial, seq);
}

static inline uint64_t ino_doc(unsigned kind, uint64_t seq)
{
	return ino_make(INO_DOC, INO_SEQ_BITS, kind, seq);
}

static inline uint64_t ino_file(uint64_t path_hash)
{
	return ino_make(INO_FILE, 32, path_hash >> 32, path_hash);
}

/* The kind of an INO_STATIC or INO_DOC. */
static inline unsigned ino_kind(uint64_t ino)
{
	unsigned shift = ino_class(ino) == INO_DOC ? INO_SEQ_BITS : 32 + INO_VERSION_BITS;
	return (unsigned)(ino >> shift) & 0xff;
}

/* The tool id of an INO_STATIC or INO_CALL. */
static inline uint32_t ino_tool_id(uint64_t ino)
{
	return (uint32_t)ino;
}

/* The seq of an INO_ID_CALL or INO_DOC. */
static inline uint64_t ino_seq(uint64_t ino)
{
	return ino & ((UINT64_C(1) << INO_SEQ_BITS) - 1);
}

#endif
