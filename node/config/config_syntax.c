/* SPDX-License-Identifier: Apache-2.0 */
/* config_syntax.c - the grammar of libconfig, walked once more for the sentence of a mistake. A group contains NAME = VALUE, each
 * with an optional ; or , behind it; a list or an array contains values between commas. Comments and strings are those that
 * config_text.c has checked: all are closed. */
#include "node/config/config_syntax.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum { SHOWN = 40 }; /* bytes of the line before and after the mark */

struct token {
	enum { TOKEN_END, TOKEN_NAME, TOKEN_SCALAR, TOKEN_MARK } kind; /* a mark is one character */
	const char *at;
	size_t n;
};

struct walk {
	const char *at;
	struct token open[CONFIG_NESTING_MAX]; /* brackets that are not closed */
	size_t depth;
	struct token name, before; /* the last name of a group; the token before the present one */
	enum { WANT_NAME, WANT_EQUALS, WANT_VALUE, AFTER_VALUE } state;
};

static const char *skip_comment(const char *at)
{
	const char *end = at[1] == '*' ? strstr(at + 2, "*/") : strchr(at, '\n');

	return !end ? at + strlen(at) : at[1] == '*' ? end + 2 : end;
}

static const char *end_of_string(const char *at)
{
	for (at++; *at && *at != '"'; at++)
		if (*at == '\\' && at[1])
			at++;
	return *at ? at + 1 : at;
}

/* Return `at` if there is no number. */
static const char *end_of_number(const char *at)
{
	char *end;

	strtod(at, &end); /* hexadecimal, too */
	return end > at ? end + strspn(end, "L") : at;
}

static struct token next_token(struct walk *w)
{
	struct token t = {.kind = TOKEN_MARK, .n = 1};

	for (;; w->at++) {
		while (*w->at == '#' || (*w->at == '/' && (w->at[1] == '/' || w->at[1] == '*')))
			w->at = skip_comment(w->at);
		if (!isspace((unsigned char)*w->at))
			break;
	}
	t.at = w->at;
	if (!*t.at)
		t.kind = TOKEN_END, t.n = 0;
	else if (*t.at == '"')
		t.kind = TOKEN_SCALAR, t.n = (size_t)(end_of_string(t.at) - t.at);
	else if (isalpha((unsigned char)*t.at) || *t.at == '*')
		t.kind = TOKEN_NAME,
		t.n = 1 + strspn(t.at + 1, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-*");
	else if (end_of_number(t.at) > t.at)
		t.kind = TOKEN_SCALAR, t.n = (size_t)(end_of_number(t.at) - t.at);
	w->at += t.n;
	return t;
}

static bool is_mark(const struct token *t, const char *marks)
{
	return t->kind == TOKEN_MARK && strchr(marks, *t->at);
}

static bool in_group(const struct walk *w)
{
	return w->depth == 0 || *w->open[w->depth - 1].at == '{';
}

static bool in_array(const struct walk *w)
{
	return w->depth > 0 && *w->open[w->depth - 1].at == '[';
}

static bool is_value(const struct walk *w, const struct token *t)
{
	bool word = t->kind == TOKEN_NAME &&
		    ((t->n == 4 && !strncasecmp(t->at, "true", 4)) || (t->n == 5 && !strncasecmp(t->at, "false", 5)));

	return t->kind == TOKEN_SCALAR || word || (is_mark(t, "{([") && w->depth < CONFIG_NESTING_MAX && !in_array(w));
}

/* Take a value. */
static void enter_value(struct walk *w, const struct token *t)
{
	w->state = AFTER_VALUE;
	if (!is_mark(t, "{(["))
		return;
	w->open[w->depth++] = *t;
	w->state = *t->at == '{' ? WANT_NAME : WANT_VALUE;
}

/* Take the bracket that closes the present group, list or array. Returns false if it does not. */
static bool close_bracket(struct walk *w, const struct token *t)
{
	static const char open[] = "{([", close[] = "})]";
	const char *which = is_mark(t, close) ? strchr(close, *t->at) : NULL;
	bool empty = w->depth > 0 && w->state == WANT_VALUE && w->before.at == w->open[w->depth - 1].at;

	if (!which || w->depth == 0 || open[which - close] != *w->open[w->depth - 1].at ||
	    !(w->state == AFTER_VALUE || w->state == WANT_NAME || empty))
		return false;
	w->depth--;
	w->state = AFTER_VALUE;
	return true;
}

/* Take the next token. Returns false if it must not be here. */
static bool take_token(struct walk *w, const struct token *t)
{
	bool group = in_group(w), strings = w->before.n > 0 && *w->before.at == '"' && t->n > 0 && *t->at == '"';

	if ((w->state == AFTER_VALUE && strings) || close_bracket(w, t)) /* two strings are one */
		return true;
	if (w->state == AFTER_VALUE && is_mark(t, group ? ";," : ",")) {
		w->state = group ? WANT_NAME : WANT_VALUE;
	} else if (group && t->kind == TOKEN_NAME && (w->state == WANT_NAME || w->state == AFTER_VALUE)) {
		w->name = *t;
		w->state = WANT_EQUALS;
	} else if (w->state == WANT_EQUALS && is_mark(t, "=:")) {
		w->state = WANT_VALUE;
	} else if (w->state == WANT_VALUE && is_value(w, t)) {
		enter_value(w, t);
	} else {
		return false;
	}
	return true;
}

/* Write what is missing where the token stands. */
static void say_missing(const struct walk *w, const struct token *t, char ret[160])
{
	const struct token *open = w->depth > 0 ? &w->open[w->depth - 1] : NULL;
	char close = !open ? ' ' : *open->at == '{' ? '}' : *open->at == '(' ? ')' : ']';

	if (!strncmp(t->at, "\xef\xbb\xbf", 3))
		snprintf(ret, 160, "a byte order mark is not allowed");
	else if (in_array(w) && is_mark(t, "{(["))
		snprintf(ret, 160, "an array in [ ] has no groups or lists: they are in ( )");
	else if (!open && is_mark(t, "})]") && (w->state == WANT_NAME || w->state == AFTER_VALUE))
		snprintf(ret, 160, "'%c' closes nothing", *t->at);
	else if (w->state == WANT_EQUALS)
		snprintf(ret, 160, "'=' is missing after '%.*s'", (int)(w->name.n < 64 ? w->name.n : 64), w->name.at);
	else if (open && (t->kind == TOKEN_END || is_mark(t, "})]")) && w->state != WANT_VALUE)
		snprintf(ret, 160, "'%c' is missing for '%c'", close, *open->at);
	else if (w->state == WANT_VALUE && in_group(w))
		snprintf(ret, 160, "the value of '%.*s' is missing%s", (int)(w->name.n < 64 ? w->name.n : 64), w->name.at,
			 t->kind == TOKEN_NAME ? "; a text needs quotation marks" : "");
	else if (w->state == WANT_VALUE)
		snprintf(ret, 160, "%s",
			 t->kind != TOKEN_NAME ? "an entry is missing"
			 : *open->at == '('    ? "an entry with keys needs '{' before them"
					       : "a text needs quotation marks");
	else if (w->state == AFTER_VALUE && !in_group(w) && is_value(w, t))
		snprintf(ret, 160, "',' is missing between two entries");
	else if (w->state == AFTER_VALUE && !in_group(w))
		snprintf(ret, 160, "',' or '%c' is missing", close);
	else
		snprintf(ret, 160, "a key is missing");
}

unsigned config_syntax_explain(const struct config_text *text, char ret_text[CONFIG_SYNTAX_TEXT])
{
	struct walk w = {.at = text->bytes};
	const char *begin, *end, *place;
	char missing[160];
	struct token t;
	unsigned line = 1;

	for (t = next_token(&w); take_token(&w, &t); t = next_token(&w))
		w.before = t;
	if (t.kind == TOKEN_END && w.depth == 0 && (w.state == WANT_NAME || w.state == AFTER_VALUE))
		return 0;
	say_missing(&w, &t, missing);
	/* at the end of the text the bracket that is open says more than the place behind the last token */
	place = t.kind != TOKEN_END ? t.at : w.depth > 0 ? w.open[w.depth - 1].at : w.before.at + w.before.n;
	for (const char *at = text->bytes; at < place; at++)
		line += *at == '\n';
	for (begin = place; begin > text->bytes && begin[-1] != '\n';)
		begin--;
	end = place + strcspn(place, "\n");
	snprintf(ret_text, CONFIG_SYNTAX_TEXT, "syntax error, column %d: %s: %.*s<here>%.*s", (int)(place - begin) + 1, missing,
		 (int)(place - begin < SHOWN ? place - begin : SHOWN), place - begin < SHOWN ? begin : place - SHOWN,
		 (int)(end - place < SHOWN ? end - place : SHOWN), place);
	return line;
}
