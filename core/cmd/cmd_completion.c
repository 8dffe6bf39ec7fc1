/*
 * `pegfs completion SHELL`: a script for the shell, written from the tables of commands and options,
 * so that it always fits this program. Packages run it when they are built.
 *
 * The three scripts ask the program itself for the names of tools (`pegfs list --names`) with the
 * --mount or --tools that stand on the line already.
 */
#include <getopt.h>
#include <stdio.h>
#include <string.h>

#include "core/base/buf.h"
#include "core/cmd/cmdline.h"
#include "core/cmd/commands.h"

#define SCRIPT_MAX (1024 * 1024)

static const struct command_option options[] = { { NULL, 0, NULL, NULL, NULL } };

static const struct command_option help_option = { "help", 'h', NULL, "help", NULL };

static const struct command *next_shown(size_t *at)
{
	const struct command *command;
	while ((command = command_next(at)) && command->is_hidden)
		;
	return command;
}

/* The options of a command one after the other, --help last; *at begins at 0. */
static const struct command_option *next_option(const struct command *command, size_t *at)
{
	size_t index = (*at)++, count = 0;
	while (command->options && command->options[count].name)
		count++;
	return index < count ? &command->options[index] : index == count ? &help_option : NULL;
}

static bool is_letter(const struct command_option *option)
{
	return option->id > ' ' && option->id < 127;
}

/* What a value may be: a directory, several with colons, a file, or nobody knows. */
static bool is_dir(const char *value)
{
	return strcmp(value, "DIR") == 0 || strcmp(value, "PATH") == 0 ||
	       strcmp(value, "MOUNTPOINT") == 0;
}

static bool is_dirs(const char *value)
{
	return strcmp(value, "DIR:DIR...") == 0;
}

static bool is_file(const char *value)
{
	return strcmp(value, "FILE") == 0;
}

/* The first line of a help text, without what the shell would take for its own. */
static void put_help(struct buf *out, const char *help)
{
	for (; *help && *help != '\n'; help++)
		if (!strchr("'\"\\[]:`$", *help))
			buf_putc(out, *help);
}

/* ---- bash */

static void bash_values(struct buf *out, const struct command_option *option)
{
	buf_printf(out, "\t\t--%s", option->name);
	if (is_letter(option))
		buf_printf(out, " | -%c", option->id);
	buf_puts(out, ") ");
	if (option->words)
		buf_printf(out, "_pegfs_offer '%s'; ", option->words);
	else if (is_dir(option->value) || is_dirs(option->value))
		buf_puts(out, "_pegfs_paths -d; ");
	else if (is_file(option->value))
		buf_puts(out, "_pegfs_paths -f; ");
	buf_puts(out, "return ;;\n");
}

static void bash_command(struct buf *out, const struct command *command)
{
	const struct command_option *option;
	buf_printf(out, "\t%s)\n\t\tcase $prev in\n", command->name);
	for (size_t at = 0; (option = next_option(command, &at));)
		if (option->value)
			bash_values(out, option);
	buf_puts(out, "\t\t*) ;;\n\t\tesac\n\t\toptions='");
	for (size_t at = 0; (option = next_option(command, &at));)
		buf_printf(out, "%s--%s", at > 1 ? " " : "", option->name);
	static const char *const kinds[] = { [COMMAND_TAKES_NOTHING] = "none",
		[COMMAND_TAKES_DIRS] = "dirs",
		[COMMAND_TAKES_TOOLS] = "tools",
		[COMMAND_TAKES_TEXT] = "none" };
	buf_printf(out, "' takes=%s\n\t\t;;\n", kinds[command->takes]);
}

/* Bash parts words at colons: of DIR:DIR it hands over "DIR", ":" and "DIR". */
static const char bash_head[] =
	"# bash completion for pegfs, written by `pegfs completion bash`.\n"
	"_pegfs_offer() {\n"
	"\tmapfile -t COMPREPLY < <(compgen -W \"$1\" -- \"$cur\")\n"
	"}\n"
	"_pegfs_paths() {\n"
	"\tcompopt -o filenames\n"
	"\tmapfile -t COMPREPLY < <(compgen \"$1\" -- \"${cur#:}\")\n"
	"}\n"
	"_pegfs_tools() {\n"
	"\tlocal i option='' value='' where=()\n"
	"\tfor ((i = 2; i < COMP_CWORD; i++)); do\n"
	"\t\tcase ${COMP_WORDS[i]} in\n"
	"\t\t--mount | -m | --tools | -t) option=${COMP_WORDS[i]} value='' ;;\n"
	"\t\t:) value+=: ;;\n"
	"\t\t*) [[ -z $value || $value == *: ]] && value+=${COMP_WORDS[i]} ;;\n"
	"\t\tesac\n"
	"\t\t[ -z \"$option\" ] || where=(\"$option\" \"$value\")\n"
	"\tdone\n"
	"\t_pegfs_offer \"$(\"${COMP_WORDS[0]}\" list --names \"${where[@]}\" 2>/dev/null)\"\n"
	"}\n"
	"_pegfs() {\n"
	"\tlocal cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD - 1]} options='' takes=none\n"
	"\tCOMPREPLY=()\n"
	"\tif [ \"$cur\" = : ] || [ \"$prev\" = : ]; then\n"
	"\t\t_pegfs_paths -d\n"
	"\t\treturn\n"
	"\tfi\n"
	"\tif [ \"$COMP_CWORD\" -eq 1 ]; then\n"
	"\t\t_pegfs_offer '";

static const char bash_tail[] = "\t*) return ;;\n"
				"\tesac\n"
				"\tcase $takes:$cur in\n"
				"\t*:-*) _pegfs_offer \"$options\" ;;\n"
				"\tdirs:*) _pegfs_paths -d ;;\n"
				"\ttools:*) _pegfs_tools ;;\n"
				"\tesac\n"
				"}\n"
				"complete -F _pegfs pegfs\n";

static void write_bash(struct buf *out)
{
	const struct command *command;
	buf_puts(out, bash_head);
	for (size_t at = 0; (command = next_shown(&at));)
		buf_printf(out, "%s ", command->name);
	buf_puts(out, "--help --version'\n\t\treturn\n\tfi\n"
		      "\tcase ${COMP_WORDS[1]} in\n");
	for (size_t at = 0; (command = next_shown(&at));)
		bash_command(out, command);
	buf_puts(out, bash_tail);
}

/* ---- zsh */

static void zsh_action(struct buf *out, const struct command_option *option)
{
	buf_printf(out, ":%s:", is_dirs(option->value) ? "directories" : option->value);
	if (option->words)
		buf_printf(out, "(%s)", option->words);
	else if (is_dir(option->value) || is_dirs(option->value))
		buf_puts(out, "_directories");
	else if (is_file(option->value))
		buf_puts(out, "_files");
}

static void zsh_option(struct buf *out, const struct command_option *option)
{
	if (is_letter(option)) {
		buf_printf(out, "\t\t\t'(-%c --%s)'", option->id, option->name);
		buf_printf(out, "{-%c,--%s}'", option->id, option->name);
	} else {
		buf_printf(out, "\t\t\t'--%s", option->name);
	}
	buf_putc(out, '[');
	put_help(out, option->help);
	buf_putc(out, ']');
	if (option->value)
		zsh_action(out, option);
	buf_puts(out, "' \\\n");
}

static void zsh_command(struct buf *out, const struct command *command)
{
	static const char *const kinds[] = { [COMMAND_TAKES_NOTHING] = "",
		[COMMAND_TAKES_DIRS] = "'*:directory:_directories'",
		[COMMAND_TAKES_TOOLS] = "'*:tool:_pegfs_tools'",
		[COMMAND_TAKES_TEXT] = "'*:name:'" };
	const struct command_option *option;
	buf_printf(out, "\t%s)\n\t\t_arguments -s \\\n", command->name);
	for (size_t at = 0; (option = next_option(command, &at));)
		zsh_option(out, option);
	buf_printf(out, "\t\t\t%s\n\t\t;;\n", kinds[command->takes]);
}

static const char zsh_head[] =
	"#compdef pegfs\n"
	"# zsh completion for pegfs, written by `pegfs completion zsh`.\n"
	"_pegfs_tools() {\n"
	"\tlocal i where=() names=()\n"
	"\tfor ((i = 1; i < CURRENT - 1; i++)); do\n"
	"\t\tcase ${words[i]} in\n"
	"\t\t--mount|-m) where=(--mount \"${words[i + 1]}\") ;;\n"
	"\t\t--tools|-t) where=(--tools \"${words[i + 1]}\") ;;\n"
	"\t\tesac\n"
	"\tdone\n"
	"\tnames=(${(f)\"$(_call_program tools pegfs list --names ${(q)where} 2>/dev/null)\"})\n"
	"\tcompadd -a names\n"
	"}\n"
	"_pegfs() {\n"
	"\tlocal -a commands=(\n";

static void write_zsh(struct buf *out)
{
	const struct command *command;
	buf_puts(out, zsh_head);
	for (size_t at = 0; (command = next_shown(&at));) {
		buf_printf(out, "\t\t'%s:", command->name);
		put_help(out, command->summary);
		buf_puts(out, "'\n");
	}
	buf_puts(out, "\t)\n\tif ((CURRENT == 2)); then\n\t\t_describe command commands\n"
		      "\t\treturn\n\tfi\n\tshift words\n\t((CURRENT--))\n\tcase ${words[1]} in\n");
	for (size_t at = 0; (command = next_shown(&at));)
		zsh_command(out, command);
	buf_puts(out,
		"\tesac\n}\n"
		"if [[ ${funcstack[1]} == _pegfs ]]; then _pegfs \"$@\"; else compdef _pegfs pegfs; fi\n");
}

/* ---- fish */

static void fish_option(
	struct buf *out, const struct command *command, const struct command_option *option)
{
	buf_printf(out, "complete -c pegfs -n '__fish_seen_subcommand_from %s' -l %s",
		command->name, option->name);
	if (is_letter(option))
		buf_printf(out, " -s %c", option->id);
	if (option->words)
		buf_printf(out, " -x -a '%s'", option->words);
	else if (option->value && (is_dir(option->value) || is_dirs(option->value)))
		buf_puts(out, " -x -a '(__fish_complete_directories)'");
	else if (option->value && is_file(option->value))
		buf_puts(out, " -r -F");
	else if (option->value)
		buf_puts(out, " -x");
	buf_puts(out, " -d '");
	put_help(out, option->help);
	buf_puts(out, "'\n");
}

static void fish_command(struct buf *out, const struct command *command)
{
	buf_printf(out, "complete -c pegfs -n __fish_use_subcommand -a %s -d '", command->name);
	put_help(out, command->summary);
	buf_puts(out, "'\n");
	const struct command_option *option;
	for (size_t at = 0; (option = next_option(command, &at));)
		fish_option(out, command, option);
	if (command->takes == COMMAND_TAKES_TOOLS || command->takes == COMMAND_TAKES_DIRS)
		buf_printf(out, "complete -c pegfs -n '__fish_seen_subcommand_from %s' -a '(%s)'\n",
			command->name,
			command->takes == COMMAND_TAKES_TOOLS ? "__pegfs_tools"
							      : "__fish_complete_directories");
}

static const char fish_head[] =
	"# fish completion for pegfs, written by `pegfs completion fish`.\n"
	"function __pegfs_tools\n"
	"\tset -l words (commandline -opc)\n"
	"\tset -l where\n"
	"\tfor i in (seq 2 (math (count $words) - 1))\n"
	"\t\tswitch $words[$i]\n"
	"\t\t\tcase --mount -m\n"
	"\t\t\t\tset where --mount $words[(math $i + 1)]\n"
	"\t\t\tcase --tools -t\n"
	"\t\t\t\tset where --tools $words[(math $i + 1)]\n"
	"\t\tend\n"
	"\tend\n"
	"\tpegfs list --names $where 2>/dev/null\n"
	"end\n"
	"complete -c pegfs -f\n"
	"complete -c pegfs -n __fish_use_subcommand -l help -d 'the commands'\n"
	"complete -c pegfs -n __fish_use_subcommand -l version -d 'the version'\n";

static void write_fish(struct buf *out)
{
	const struct command *command;
	buf_puts(out, fish_head);
	for (size_t at = 0; (command = next_shown(&at));)
		fish_command(out, command);
}

/* ---- the command */

static int completion(int argc, char **argv)
{
	static const struct {
		const char *name;
		void (*write)(struct buf *out);
	} shells[] = { { "bash", write_bash }, { "zsh", write_zsh }, { "fish", write_fish } };
	cmdline_begin();
	if (cmdline_next(&cmd_completion, argc, argv) != CMDLINE_END)
		return COMMAND_USAGE;
	auto_buf struct buf out = BUF_INIT(SCRIPT_MAX);
	for (size_t i = 0; optind + 1 == argc && i < sizeof(shells) / sizeof(*shells); i++)
		if (strcmp(argv[optind], shells[i].name) == 0)
			shells[i].write(&out);
	if (out.len == 0)
		return command_misuse("completion", "name a shell: bash, zsh or fish");
	fputs(buf_str(&out), stdout);
	if (out.failed || fflush(stdout) != 0)
		return command_failed("completion", "cannot write the output");
	return COMMAND_OK;
}

const struct command cmd_completion = { .name = "completion",
	.summary = "a shell's completion script",
	.arguments = "bash|zsh|fish",
	.about = "Prints the completions of this program for a shell.\n",
	.options = options,
	.takes = COMMAND_TAKES_TEXT,
	.is_hidden = true,
	.run = completion };
