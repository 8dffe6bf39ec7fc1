#include "core/tools/checkcodes.h"

#include <string.h>

#define E FAULT_ERROR
#define W FAULT_WARNING

static const struct checkcode codes[] = {
	/* the place of a tool */
	{ "missing-source", E, "R96", "the path is not there, or cannot be read" },
	{ "no-tools", E, "R2", "there is no tool in the directory" },
	{ "missing-manifest", E, "R6", "an entry file without TOOL.md" },
	{ "missing-entry", E, "R6", "TOOL.md without an entry file" },
	{ "entry-language", E, "A9", "the entry file does not fit the language" },
	{ "not-a-file", E, "R6", "TOOL.md or the entry is no regular file" },
	{ "unreadable", E, "R6", "a file or directory cannot be read" },
	{ "dangling-link", E, "R6", "a symbolic link to nothing" },
	{ "link-outside", E, "R6", "a symbolic link that leads out of the tool" },
	{ "changing", E, "A14", "TOOL.md is being written" },
	{ "duplicate-name", E, "R98 A7", "two tools of one directory have the same name" },
	{ "directory-name", W, "A7", "the directory has another name than the tool" },
	{ "hidden-file", W, "", "a file whose name the mounted tree uses itself" },
	{ "clutter", W, "R107", "files that no tool needs" },
	{ "own-mount", E, "", "the path is a mount of pegfs" },
	{ "too-many-directories", E, "", "more directories than are looked at" },
	{ "unbumped-version", E, "R104", "changed, but the version is not greater" },
	/* the file TOOL.md */
	{ "utf-16", E, "A13", "TOOL.md is UTF-16" },
	{ "nul-byte", E, "R14", "TOOL.md holds a NUL byte" },
	{ "too-large", E, "", "TOOL.md or its front matter is too large" },
	{ "no-front-matter", E, "R14 A5", "TOOL.md does not begin with ---" },
	{ "unclosed-fence", E, "R14 A5", "the front matter has no closing ---" },
	{ "late-fence", W, "R14", "something stands before the opening ---" },
	{ "dots-fence", W, "R14", "the front matter is closed by ..." },
	{ "invalid-utf8", W, "", "bytes that are no UTF-8" },
	{ "control-character", W, "", "a control character in the front matter" },
	/* its YAML */
	{ "yaml-syntax", E, "R14 A5", "the front matter is no YAML" },
	{ "yaml-alias", E, "R14", "a YAML alias" },
	{ "yaml-anchor", E, "R14", "a YAML anchor" },
	{ "yaml-tag", E, "R14", "a YAML tag" },
	{ "yaml-directive", E, "R14", "a YAML directive" },
	{ "yaml-documents", E, "R14", "more than one YAML document" },
	{ "yaml-depth", E, "R14", "YAML nested too deep" },
	{ "yaml-key", E, "R14", "a YAML key that is no text" },
	{ "yaml-nul", E, "R14", "the character U+0000 in YAML" },
	{ "yaml-duplicate-key", E, "R14", "the same key twice" },
	{ "not-a-mapping", E, "R14", "the front matter is no list of key: value" },
	/* its fields */
	{ "missing-name", E, "R15 A5", "there is no name" },
	{ "unsafe-name", E, "R15", "the name cannot be that of a directory" },
	{ "name-pattern", W, "R15", "model APIs refuse the name" },
	{ "name-not-snake-case", W, "R15", "the name is not in snake_case" },
	{ "missing-description", E, "R17 A5", "there is no description" },
	{ "vague-description", W, "R17", "the description is too short, or does not say when" },
	{ "long-description", W, "R17", "a description is longer than model APIs take" },
	{ "not-text", W, "R14", "a list or mapping where a text belongs" },
	{ "comment-cut", W, "R14", "# begins a comment and cuts a text" },
	{ "missing-version", W, "R18 R94", "there is no version" },
	{ "version-not-integer", W, "R18 A1", "the version is no plain integer" },
	{ "version-zero", W, "R18", "the version is 0" },
	{ "unknown-language", W, "R19 A9", "the language is not known" },
	{ "bad-timeout", W, "", "the timeout is no number of seconds" },
	{ "not-json", W, "", "a schema or annotations that are no JSON object" },
	{ "unknown-key", W, "A10", "a key that is ignored and looks like a mistake" },
	/* its inputs */
	{ "inputs-not-mapping", E, "R20", "inputs is no mapping of names" },
	{ "too-many-inputs", E, "R20", "more inputs than are possible" },
	{ "input-not-mapping", W, "R20", "an input without type and description below it" },
	{ "input-name-pattern", W, "R20", "model APIs refuse an input's name" },
	{ "input-missing-description", W, "R27", "an input has no description" },
	{ "missing-type", W, "R26", "an input has no type" },
	{ "unknown-type", W, "R21 R26", "an input's type is not known" },
	{ "unsupported-type", W, "R25", "object and array are no types here" },
	{ "not-boolean", W, "R28 R29", "optional or sensitive is neither true nor false" },
	{ "secret-not-sensitive", W, "R29", "a token or password that is not sensitive" },
	{ "missing-values", W, "R24 A4", "an enum without values" },
	{ "bad-value", W, "R30", "a value that is no text" },
	{ "duplicate-value", W, "R30", "a value is there twice" },
	{ "too-many-values", E, "R30", "more values than are possible" },
	{ "unused-values", W, "R24", "values of an input that is no enum" },
	{ "bad-default", W, "R31", "a default outside its type or its values" },
	{ "too-many-faults", W, "", "further warnings are left out" },
	/* its body */
	{ "missing-title", W, "R35", "the body has no title" },
	{ "missing-section", W, "R35", "the body lacks a section" },
	{ "bad-example", W, "R36", "an example is no valid call" },
	{ "long-body", W, "R34", "the body is very long" },
	/* the entry file */
	{ "code-syntax", E, "R37", "the code cannot be read" },
	{ "large-entry", W, "", "the entry is too large to be looked at" },
	{ "no-execute", E, "R37 R100", "execute is not exported by name" },
	{ "class-export", E, "R100", "a class instead of execute" },
	{ "cli-entry", E, "R101", "a program for the command line" },
	{ "commonjs-export", E, "R102", "module.exports instead of export" },
	{ "default-export", E, "R102", "a default export alone" },
	{ "execute-arguments", E, "R39 R40", "execute takes the parameters first" },
	{ "sync-execute", W, "R45", "execute is not async" },
	{ "throw-in-execute", W, "R54 R106", "execute throws instead of returning an error" },
	{ "unguarded-execute", W, "R53", "execute has no try and catch" },
	{ "console-output", W, "R103", "printing instead of returning" },
	{ "process-exit", W, "R55", "the code ends its process" },
	{ "bun-api", E, "R62 R105", "Bun's API does not exist in Node.js" },
	{ "foreign-import", E, "R63", "an import that is not Node.js's own" },
	{ "builtin-prefix", W, "R63", "a module of Node.js without node:" },
	{ "relative-import", W, "R63", "an import of another file of the tool" },
	{ "own-path", W, "R84", "the tool's own path is written into it" },
	{ "params-missing", W, "R33", "an input is missing in the type of params" },
	{ "params-extra", W, "R33", "the type of params has what is no input" },
	{ "params-optional", W, "R49", "an optional input without ? in the type of params" },
	{ "params-type", W, "R33", "an input has another type in the type of params" },
	{ "non-erasable", W, "A20", "TypeScript that is not only types" },
};

const struct checkcode *checkcodes_all(size_t *count)
{
	*count = sizeof(codes) / sizeof(*codes);
	return codes;
}

const struct checkcode *checkcodes_find(const char *code)
{
	for (size_t i = 0; i < sizeof(codes) / sizeof(*codes); i++)
		if (strcmp(codes[i].code, code) == 0)
			return &codes[i];
	return NULL;
}
