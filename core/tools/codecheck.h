/*
 * The rules for a tool's entry file in JavaScript or TypeScript, and the few for Python: what keeps
 * it from working in a container, or an agent from seeing what went wrong (R33, R37 to R68, R84,
 * R100 to R106, A20). They look at tokens (jstoken.h), so they can be wrong about code that hides
 * what it does; a comment `pegfs-ignore: CODE` on the line, or on the line above, silences one.
 */
#ifndef PEGFS_TOOLS_CODECHECK_H
#define PEGFS_TOOLS_CODECHECK_H

#include <stdbool.h>
#include <stddef.h>

#include "core/tools/faults.h"
#include "core/tools/jsmodule.h"
#include "core/tools/jstoken.h"
#include "core/tools/tool.h"

#define CODECHECK_FAULTS_MAX 100 /* of one file */

/* One file that is looked at. */
struct codecheck {
	const struct jstokens *tokens; /* borrowed */
	const struct jsmodule *module; /* borrowed */
	const struct tool *tool;       /* borrowed; NULL where TOOL.md made none */
	bool is_typescript;
	struct faults *faults; /* borrowed; without a file */
	size_t reported;
};

/* Appends what is wrong with the source of index.ts or index.js to faults, without a file. */
void codecheck_javascript(const char *source, size_t len, bool is_typescript,
	const struct tool *tool, struct faults *faults);

/* The same for index.py. */
void codecheck_python(const char *source, size_t len, struct faults *faults);

/* Whether code of a tool is given secrets by its environment (R58). */
bool codecheck_uses_secrets(const char *source, size_t len);

/* ---- the parts, each a file of its own */

/* A fault at the token at index, unless a comment there silences its code. */
void codecheck_report(struct codecheck *check, enum fault_level level, const char *code,
	size_t index, const char *format, ...) __attribute__((format(printf, 5, 6)));

static inline bool codecheck_is(const struct codecheck *check, size_t index, const char *text)
{
	return jstokens_is(check->tokens, index, text);
}

/* Whether the token at index is a name of its own, and no member or key of that name. */
bool codecheck_is_free(const struct codecheck *check, size_t index, const char *name);

void codecheck_exports(struct codecheck *check); /* codeexports.c: R37, R100 to R102 */
void codecheck_body(struct codecheck *check);    /* codebody.c: R39, R45, R53, R54 */
void codecheck_uses(struct codecheck *check);    /* codeuses.c: R62 to R67, R84, R103, R105 */
void codecheck_types(struct codecheck *check);   /* codetypes.c: A20 */
void codecheck_params(struct codecheck *check);  /* codeparams.c: R33, R49 */

#endif
