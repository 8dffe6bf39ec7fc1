#include "core/tools/jstoken.h"
#include "tests/unit/scratch.h"

/* The tokens of a source, with `|` between them: w:word n:number s:string t:template r:regex. */
static void assert_tokens(const char *source, const char *wanted)
{
	static const char marks[] = { [JSTOKEN_WORD] = 'w',
		[JSTOKEN_NUMBER] = 'n',
		[JSTOKEN_STRING] = 's',
		[JSTOKEN_TEMPLATE] = 't',
		[JSTOKEN_REGEX] = 'r' };
	auto_jstokens struct jstokens tokens = JSTOKENS_INIT;
	auto_buf struct buf out = BUF_INIT(1 << 20);
	struct jstoken_problem problem;
	if (jstokens_scan(source, strlen(source), &tokens, &problem) < 0)
		buf_printf(&out, "%zu:%zu: %s", problem.line, problem.column, problem.text);
	else
		for (size_t i = 0; i + 1 < tokens.count; i++) {
			const struct jstoken *token = &tokens.items[i];
			buf_puts(&out, i ? "|" : "");
			if (token->kind != JSTOKEN_PUNCT)
				buf_printf(&out, "%c:", marks[token->kind]);
			buf_append(&out, token->text, token->len);
		}
	assert_string_equal(buf_str(&out), wanted);
}

static void words_numbers_strings(void **state)
{
	(void)state;
	assert_tokens("", "");
	assert_tokens("let a_1 = $b", "w:let|w:a_1|=|w:$b");
	assert_tokens("#x in o", "w:#x|w:in|w:o");
	assert_tokens("\xc3\xa4\xc3\xb6 = 1", "w:\xc3\xa4\xc3\xb6|=|n:1");
	assert_tokens("1 1.5 .5 0x1F 1e5 10_000n 1..x",
		"n:1|n:1.5|n:.5|n:0x1F|n:1e5|n:10_000n|n:1|.|.|w:x");
	assert_tokens("'a\\'b' \"c\\\"d\" 'e\\\nf'", "s:'a\\'b'|s:\"c\\\"d\"|s:'e\\\nf'");
	assert_tokens(
		"'// no comment' + \"/* nor here */\"", "s:'// no comment'|+|s:\"/* nor here */\"");
}

static void comments_are_no_tokens(void **state)
{
	(void)state;
	assert_tokens("a // b\nc /* d\n * e */ f", "w:a|w:c|w:f");
	assert_tokens("#!/usr/bin/env node\nx", "w:x");
	assert_tokens("\xef\xbb\xbf// mark\nx", "w:x");
	assert_tokens("a /* ' ` \" */ b // ' `", "w:a|w:b");
}

static void templates_come_in_pieces(void **state)
{
	(void)state;
	assert_tokens("`a`", "t:`a`");
	assert_tokens("`a${b}c`", "t:`a|${|w:b|}|t:c`");
	assert_tokens("`${a}${b}`", "t:`|${|w:a|}|t:|${|w:b|}|t:`");
	assert_tokens("`a${`b${c}`}d` + e", "t:`a|${|t:`b|${|w:c|}|t:`|}|t:d`|+|w:e");
	assert_tokens("`${{a: {b: 1}}.a}`", "t:`|${|{|w:a|:|{|w:b|:|n:1|}|}|.|w:a|}|t:`");
	assert_tokens("`\\`\\${` + x", "t:`\\`\\${`|+|w:x");
	assert_tokens("`// ${a /* } */} '`", "t:`// |${|w:a|}|t: '`");
}

static void a_slash_is_a_regex_where_an_operand_may_begin(void **state)
{
	(void)state;
	assert_tokens("a = /b'/g", "w:a|=|r:/b'/g");
	assert_tokens("/[/'\"`]/.test(a)", "r:/[/'\"`]/|.|w:test|(|w:a|)");
	assert_tokens("/\\//", "r:/\\//");
	assert_tokens("f(/a/, /b/)", "w:f|(|r:/a/|,|r:/b/|)");
	assert_tokens("return /a/", "w:return|r:/a/");
	assert_tokens("x => /a/", "w:x|=>|r:/a/");
	assert_tokens("a ? /b/ : /c/", "w:a|?|r:/b/|:|r:/c/");
	assert_tokens("!/a/.test(b) && /c/", "!|r:/a/|.|w:test|(|w:b|)|&&|r:/c/");
	assert_tokens("if (a) /b/.exec(c)", "w:if|(|w:a|)|r:/b/|.|w:exec|(|w:c|)");
	assert_tokens("if (a) { b } /c/.exec(d)", "w:if|(|w:a|)|{|w:b|}|r:/c/|.|w:exec|(|w:d|)");
	assert_tokens("`${/}/.source}`", "t:`|${|r:/}/|.|w:source|}|t:`");
	assert_tokens("a.b(/(['\"])/g, '')", "w:a|.|w:b|(|r:/(['\"])/g|,|s:''|)");
}

static void a_slash_is_a_division_behind_an_operand(void **state)
{
	(void)state;
	assert_tokens("a / b / c", "w:a|/|w:b|/|w:c");
	assert_tokens("(a) / b / c", "(|w:a|)|/|w:b|/|w:c");
	assert_tokens("a[1] / 2 / 3", "w:a|[|n:1|]|/|n:2|/|n:3");
	assert_tokens("a++ / b / c", "w:a|++|/|w:b|/|w:c");
	assert_tokens("`a` / b / c", "t:`a`|/|w:b|/|w:c");
	assert_tokens("x.return / b / c", "w:x|.|w:return|/|w:b|/|w:c");
	assert_tokens("x = {a: 1} / b / c", "w:x|=|{|w:a|:|n:1|}|/|w:b|/|w:c");
	assert_tokens("f(a) / 1024 / 1024", "w:f|(|w:a|)|/|n:1024|/|n:1024");
}

static void operators_that_matter_are_whole(void **state)
{
	(void)state;
	assert_tokens("a?.b ?? c", "w:a|?.|w:b|??|w:c");
	assert_tokens("a?.5:b", "w:a|?|n:.5|:|w:b");
	assert_tokens("a === b == c = d", "w:a|===|w:b|==|w:c|=|w:d");
	assert_tokens("...a => b", "...|w:a|=>|w:b");
	assert_tokens("Array<Array<T>>", "w:Array|<|w:Array|<|w:T|>|>");
}

static void what_has_no_end_is_told_with_its_place(void **state)
{
	(void)state;
	assert_tokens("a\n  'b\n", "2:3: a string has no end on its line");
	assert_tokens("`a\nb", "1:1: a template has no end; close it with `");
	assert_tokens("x /* y", "1:3: a comment has no end; close it with */");
	assert_tokens("x = /y\n", "1:5: a regular expression has no end on its line");
	assert_tokens("f(\n  {", "2:3: a bracket is never closed");
	assert_tokens(
		"\xc3\xa4 = (1]", "1:5: a bracket is closed by one of another kind, or never");
	assert_tokens("a }", "1:3: a bracket is closed that was not opened");
	assert_tokens("'a\\", "1:1: a string has no end on its line");
	assert_tokens("`a${b`", "1:6: a template has no end; close it with `");
}

static void brackets_know_their_partners_and_depth(void **state)
{
	(void)state;
	static const char source[] = "a(b{c}[d])";
	auto_jstokens struct jstokens tokens = JSTOKENS_INIT;
	struct jstoken_problem problem;
	assert_int_equal(jstokens_scan(source, strlen(source), &tokens, &problem), 0);
	static const size_t matches[] = { JSTOKEN_NONE, 9, JSTOKEN_NONE, 5, JSTOKEN_NONE, 3, 8,
		JSTOKEN_NONE, 6, 1 };
	static const size_t depths[] = { 0, 0, 1, 1, 2, 1, 1, 2, 1, 0 };
	for (size_t i = 0; i < 10; i++) {
		assert_int_equal(tokens.items[i].match, matches[i]);
		assert_int_equal(tokens.items[i].depth, depths[i]);
	}
}

/* Every prefix of a program with everything in it: nothing reads beyond its end, all ends. */
static void any_prefix_can_be_scanned(void **state)
{
	(void)state;
	static const char source[] =
		"#!x\n\xef\xbb\xbf/*c*/ // pegfs-ignore: a\nexport const f = async <T>(a: T) => {\n"
		"  const r = /[\\/]+/g, s = `a${b + `c${'d\\''}`}e`; return a?.b / 2 ?? {x: 1};\n"
		"};\n#p;@q class X<Y> extends Z {}\n";
	for (size_t len = 0; len <= strlen(source); len++) {
		auto_free char *copy = xcalloc(len ? len : 1, 1);
		memcpy(copy, source, len);
		auto_jstokens struct jstokens tokens = JSTOKENS_INIT;
		struct jstoken_problem problem;
		(void)jstokens_scan(copy, len, &tokens, &problem);
		assert_true(tokens.count > 0);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(words_numbers_strings),
		cmocka_unit_test(comments_are_no_tokens),
		cmocka_unit_test(templates_come_in_pieces),
		cmocka_unit_test(a_slash_is_a_regex_where_an_operand_may_begin),
		cmocka_unit_test(a_slash_is_a_division_behind_an_operand),
		cmocka_unit_test(operators_that_matter_are_whole),
		cmocka_unit_test(what_has_no_end_is_told_with_its_place),
		cmocka_unit_test(brackets_know_their_partners_and_depth),
		cmocka_unit_test(any_prefix_can_be_scanned),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
