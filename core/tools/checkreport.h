/* What check found, in the forms that people and programs read. */
#ifndef PEGFS_TOOLS_CHECKREPORT_H
#define PEGFS_TOOLS_CHECKREPORT_H

#include "core/base/buf.h"
#include "core/tools/check.h"

enum checkreport_format {
	CHECKREPORT_TEXT,   /* FILE:LINE:COLUMN: warning: TEXT [CODE] */
	CHECKREPORT_JSON,   /* one object: tools, errors, warnings, findings */
	CHECKREPORT_SARIF,  /* SARIF 2.1.0 */
	CHECKREPORT_GITHUB, /* workflow commands: ::warning file=...,line=...::TEXT */
};

/* "text", "json", "sarif", "github". Returns 0 or -EINVAL. */
int checkreport_parse_format(const char *name, enum checkreport_format *format);

void checkreport_render(
	const struct check_report *report, enum checkreport_format format, struct buf *out);

#endif
