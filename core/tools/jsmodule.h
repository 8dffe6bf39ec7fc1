/* What a module's tokens tell about its exports, and about its function `execute` (R37). */
#ifndef PEGFS_TOOLS_JSMODULE_H
#define PEGFS_TOOLS_JSMODULE_H

#include <stdbool.h>
#include <stddef.h>

#include "core/tools/jstoken.h"

/* A function; indices of tokens, JSTOKEN_NONE where there is none. */
struct jsfunction {
	bool is_async;
	size_t params; /* the `(` before its parameters */
	size_t body;   /* the `{` of its body; none where it is one expression */
};

struct jsmodule {
	const struct jstokens *tokens; /* borrowed */
	/* All of these are the first of their kind, at the top of the module. */
	size_t execute;       /* the word `execute` that is exported by name */
	size_t unexported;    /* the word `execute` that is declared, but not exported */
	size_t exported_name; /* another function that is exported by name */
	size_t star_export;   /* export * from: may hold anything */
	size_t class_export;  /* export class, export default class */
	size_t default_export;
	size_t commonjs;            /* module.exports, exports.x, export = */
	size_t cli;                 /* require.main, import.meta.main, process.argv; anywhere */
	struct jsfunction function; /* of execute, where it can be seen */
};

void jsmodule_read(const struct jstokens *tokens, struct jsmodule *module);

/*
 * Reads a function that begins at index: `[async] function [*] [name] (`, `[async] (a) =>`,
 * `[async] a =>`. Returns whether there is one.
 */
bool jsmodule_read_function(
	const struct jstokens *tokens, size_t index, struct jsfunction *function);

/* The index behind a type that begins at index: the first token at this level that is none of it. */
size_t jsmodule_skip_type(const struct jstokens *tokens, size_t index);

/* The index behind `<...>` where there is one at index, else index. */
size_t jsmodule_skip_generics(const struct jstokens *tokens, size_t index);

#endif
