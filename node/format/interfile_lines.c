/* SPDX-License-Identifier: Apache-2.0 */
/* interfile_lines.c - split the text of an Interfile header into keys and values. "!matrix size [2] := { 27, 23 }": the text
 * before ":=" is the key, a number in brackets its index. Lines that begin with ';' are comments, and so is the rest of a value
 * from a ';' after a blank. A line continues in the next one after a backslash, and while the brace of a list is open. All texts
 * are stored in one copy of the header, followed by the keys in short form, so that any header needs only three allocations.
 */
#include "node/format/interfile_lines.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "node/base/nearest.h"
#include "node/format/interfile.h"

#define INDEX_MAX 1000
#define KEYS_MAX 16384
#define BLANKS " \t\r\v\f"
#define ASKED_MAX 128

struct interfile_asked {
	size_t n;
	char key[ASKED_MAX][64];
};

static bool is_blank(char c)
{
	return c && strchr(BLANKS, c);
}

static char *trim_blanks(char *text)
{
	char *end;

	while (is_blank(*text))
		text++;
	end = text + strlen(text);
	while (end > text && is_blank(end[-1]))
		end--;
	*end = '\0';
	return text;
}

void interfile_normalise(const char *value, char *ret, size_t size)
{
	size_t n = 0;

	for (; *value && n + 1 < size; value++)
		if (!is_blank(*value) && *value != '_' && *value != '!')
			ret[n++] = (char)tolower((unsigned char)*value);
	ret[n] = '\0';
}

/* Remove the index from the end of a short key and return it. */
static int split_index(char *key, int number, int *ret_index, struct err *err)
{
	size_t n = strlen(key);
	char *open = strrchr(key, '['), *end;
	long index;

	*ret_index = 0;
	if (n == 0 || key[n - 1] != ']' || !open)
		return 0;
	index = strtol(open + 1, &end, 10);
	if (end == open + 1 || *end != ']' || end[1] || index < 1 || index > INDEX_MAX)
		return err_set(err, EBADMSG, "line %d: index \"%.20s\"; allowed: 1 to %d", number, open, INDEX_MAX);
	*open = '\0';
	*ret_index = (int)index;
	return 0;
}

/* Whether a line, which is read part by part, has the braces of a list. */
struct braces {
	bool open, closed;
};

/* Return true if the line ends inside the braces of a list. A key in the next line means that the closing brace is missing. part: of
 * the line, up to its end, that was not asked about before. */
static bool is_open(struct braces *b, const char *part, const char *end)
{
	size_t n = (size_t)(end - part);

	b->open = b->open || memchr(part, '{', n);
	b->closed = b->closed || memchr(part, '}', n);
	return b->open && !b->closed && !memmem(end + 1, strcspn(end + 1, "\n"), ":=", 2);
}

/* Return the next line of *at, joined in place with its continuation lines; NULL: the end. */
static char *next_line(char **at, int *number, int *ret_number)
{
	struct braces braces = {false, false};
	char *line = *at, *end;
	size_t taken = 0;

	if (!*line)
		return NULL;
	*ret_number = *number;
	for (;;) {
		char *last;
		bool open;

		end = strchr(line + taken, '\n');
		if (!end) {
			*at = line + strlen(line);
			return line;
		}
		++*number;
		*at = end + 1;
		for (last = end; last > line + taken && is_blank(last[-1]); last--)
			;
		open = is_open(&braces, line + taken, end);
		if (last > line + taken && last[-1] == '\\')
			memset(last - 1, ' ', (size_t)(end - last + 2));
		else if (line[0] != ';' && open)
			*end = ' ';
		else
			break;
		taken = (size_t)(end - line) + 1;
	}
	*end = '\0';
	return line;
}

/* Cut off "; comment" from a value. A ';' within a word belongs to the value. */
static char *without_comment(char *value)
{
	for (char *c = value; (c = strchr(c, ';')); c++)
		if (c == value || is_blank(c[-1])) {
			*c = '\0';
			break;
		}
	return value;
}

static int parse_line(struct interfile_lines *l, char *text, int number, char **room, size_t *room_size, struct err *err)
{
	struct interfile_line *line = &l->line[l->n];
	char *value = strstr(text, ":="), *key = *room;
	bool bare = !value && l->n == 0 && !strcmp(text, "!INTERFILE"); /* the first line of some programs of Siemens */
	int rc;

	if (bare)
		value = text + strlen(text);
	if (!value)
		return err_set(err, EBADMSG, "line %d: no ':=' in \"%.60s\"", number, trim_blanks(text));
	*value = '\0';
	interfile_normalise(text + strspn(text, "!% \t"), key, *room_size);
	rc = split_index(key, number, &line->index, err);
	if (rc < 0)
		return rc;
	*room_size -= strlen(key) + 1;
	*room += strlen(key) + 1;
	line->number = number;
	line->looked_for = false;
	line->name = trim_blanks(text);
	line->key = key;
	line->value = trim_blanks(without_comment(bare ? value : value + 2));
	l->n++;
	return 0;
}

int interfile_lines_read(const char *text, size_t size, struct interfile_lines *ret, struct err *err)
{
	struct interfile_lines l = {0};
	char *at, *line, *room;
	size_t n_lines = 1, room_size;
	int number = 1, this_one = 1, rc = 0;

	if (size >= 3 && !memcmp(text, "\xEF\xBB\xBF", 3)) { /* the byte order mark of UTF-8 */
		text += 3;
		size -= 3;
	}
	if (memchr(text, '\0', size))
		return err_set(err, EBADMSG, "contains a byte 0: not an Interfile header");
	if (size > INTERFILE_TEXT_MAX)
		return err_set(err, EBADMSG, "more than %d bytes: not an Interfile header", INTERFILE_TEXT_MAX);
	for (size_t i = 0; i < size; i++)
		n_lines += text[i] == '\n';
	room_size = size + 1; /* a key is not longer than its line without ":=" */
	l.memory = malloc(size + 1 + room_size);
	l.line = malloc((n_lines < KEYS_MAX ? n_lines : KEYS_MAX) * sizeof(*l.line));
	l.asked = calloc(1, sizeof(*l.asked));
	if (!l.memory || !l.line || !l.asked) {
		rc = err_set(err, ENOMEM, "no memory for an Interfile header of %zu bytes", size);
		goto out;
	}
	memcpy(l.memory, text, size);
	l.memory[size] = '\0';
	at = l.memory;
	room = l.memory + size + 1;
	while (rc == 0 && (line = next_line(&at, &number, &this_one))) {
		line = trim_blanks(line);
		if (!*line || *line == ';')
			continue;
		rc = l.n < KEYS_MAX
			     ? parse_line(&l, line, this_one, &room, &room_size, err)
			     : err_set(err, EBADMSG, "line %d: more than %d keys: not an Interfile header", this_one, KEYS_MAX);
		if (rc < 0)
			break;
		if (l.n == 1 && strcmp(l.line[0].key, "interfile") != 0)
			rc = err_set(err, EBADMSG, "line %d: an Interfile header begins with \"!INTERFILE :=\"", this_one);
		if (!strcmp(l.line[l.n - 1].key, "endofinterfile"))
			break;
	}
	if (rc == 0 && l.n == 0)
		rc = err_set(err, EBADMSG, "an empty header");
	if (rc == 0) {
		*ret = l;
		return 0;
	}
out:
	interfile_lines_clear(&l);
	return rc;
}

void interfile_lines_clear(struct interfile_lines *l)
{
	free(l->memory);
	free(l->line);
	free(l->asked);
	*l = (struct interfile_lines){0};
}

/* Return the length of a key without the unit in parentheses at its end. "(hh:mm:ss)" is a form, not a unit. */
static size_t without_unit(const char *key)
{
	size_t n = strlen(key);
	const char *open = n > 0 && key[n - 1] == ')' ? strrchr(key, '(') : NULL;

	return open && open > key && !strchr(open, ':') ? (size_t)(open - key) : n;
}

static bool same_but_unit(const char *a, const char *b)
{
	size_t n = without_unit(a);

	return n == without_unit(b) && !memcmp(a, b, n);
}

/* Return true if a line that was looked for has this key, with any unit. */
static bool has_unit(const struct interfile_lines *l, const char *key)
{
	for (size_t i = 0; i < l->n; i++)
		if (l->line[i].looked_for && l->line[i].value[0] && same_but_unit(l->line[i].key, key))
			return true;
	return false;
}

/* Return the unit at the end of a normalised key as people write it; "": none. */
static const char *unit_of(const char *key)
{
	static const char *const written[] = {"(Bq)", "(keV)"};
	const char *unit = key + without_unit(key);

	for (size_t i = 0; i < sizeof(written) / sizeof(written[0]); i++)
		if (!strcasecmp(unit, written[i]))
			return written[i];
	return strcmp(unit, "(inkev)") != 0 ? unit : "(in keV)";
}

int interfile_line_check_units(const struct interfile_lines *l, struct err *err)
{
	for (size_t i = 0; i < l->n; i++) {
		const struct interfile_line *line = &l->line[i];
		char index[16] = "";
		int n = (int)strcspn(line->name, "([");

		if (line->looked_for || !line->value[0] || has_unit(l, line->key))
			continue;
		while (n > 0 && is_blank(line->name[n - 1]))
			n--;
		if (line->index > 0)
			snprintf(index, sizeof(index), "[%d]", line->index);
		for (size_t k = 0; k < l->asked->n; k++) {
			const char *key = l->asked->key[k], *unit = unit_of(key);

			if (!same_but_unit(line->key, key))
				continue;
			return err_set(err, EBADMSG,
				       "line %d: \"%.60s\" has another unit than the key that is known, or none: did you mean "
				       "\"%.*s%s%s%s\"? Convert the value to it, or make the line a comment (;)",
				       line->number, line->name, n, line->name, *unit ? " " : "", unit, index);
		}
	}
	return 0;
}

const struct interfile_line *interfile_line_misspelt(const struct interfile_lines *l, const char *name)
{
	const char **keys = calloc(l->n + 1, sizeof(*keys)), *near;
	const struct interfile_line *found = NULL;
	size_t n = 0;
	char key[80];

	interfile_normalise(name + strspn(name, "%"), key, sizeof(key));
	key[strcspn(key, "[")] = '\0';
	for (size_t i = 0; keys && i < l->n; i++)
		if (!l->line[i].looked_for && l->line[i].value[0])
			keys[n++] = l->line[i].key;
	near = keys ? nearest_typo(key, keys) : NULL;
	for (size_t i = 0; i < n && !near; i++)
		near = same_but_unit(key, keys[i]) ? keys[i] : NULL;
	for (size_t i = 0; near && i < l->n && !found; i++)
		found = l->line[i].key == near ? &l->line[i] : NULL;
	free(keys);
	return found;
}

/* Return true if `name`, without its unit, has at least two words, and all of them are in the normalised key. */
static bool has_only_words_of(const char *key, const char *name)
{
	int n = 0;

	while (*name && *name != '(' && *name != '[') {
		size_t length = strcspn(name, " \t_!([");
		char word[32];

		if (length >= sizeof(word))
			return false;
		snprintf(word, sizeof(word), "%.*s", (int)length, name);
		if (length > 0 && !strcasestr(key, word))
			return false;
		n += length > 0;
		name += length + strspn(name + length, " \t_!");
	}
	return n >= 2;
}

const struct interfile_line *interfile_line_reworded(const struct interfile_lines *l, const char *name)
{
	char key[80];

	interfile_normalise(name, key, sizeof(key));
	for (size_t i = 0; !has_unit(l, key) && i < l->n; i++)
		if (!l->line[i].looked_for && l->line[i].value[0] && has_only_words_of(key, l->line[i].name))
			return &l->line[i];
	return NULL;
}

int interfile_line_missing(const struct interfile_lines *l, const char *name, struct err *err)
{
	const struct interfile_line *near = interfile_line_misspelt(l, name);

	if (!near)
		return err_set(err, EBADMSG, "\"%s\" is missing", name);
	return err_set(err, EBADMSG, "\"%s\" is missing; line %d: \"%.60s\": did you mean \"%s\"?", name, near->number,
		       near->name, name);
}

int interfile_line_refuse_two(const struct interfile_line *a, const struct interfile_line *b, struct err *err)
{
	return err_set(err, EBADMSG, "line %d: %.60s := %.40s; line %d: %.60s := %.40s; allowed: one of them, or the same value",
		       a->number, a->name, a->value, b->number, b->name, b->value);
}

static void note_asked(struct interfile_asked *asked, const char *key)
{
	for (size_t i = 0; i < asked->n; i++)
		if (!strcmp(asked->key[i], key))
			return;
	if (asked->n < ASKED_MAX && strlen(key) < sizeof(asked->key[0]))
		strcpy(asked->key[asked->n++], key);
}

int interfile_line_find(const struct interfile_lines *l, const char *key, int index, const struct interfile_line **ret_line,
			struct err *err)
{
	const struct interfile_line *found = NULL;

	note_asked(l->asked, key);
	for (size_t i = 0; i < l->n; i++) {
		struct interfile_line *line = &l->line[i];

		if (strcmp(line->key, key) != 0)
			continue;
		line->looked_for = true;
		if ((line->index != index && (line->index != 0 || index > 1)) || !line->value[0])
			continue;
		if (found && strcmp(found->value, line->value) != 0)
			return err_set(err, EBADMSG, "line %d: \"%.60s\" is \"%.40s\"; line %d says \"%.40s\"", line->number,
				       line->name, line->value, found->number, found->value);
		found = line;
	}
	if (found)
		*ret_line = found;
	return found != NULL;
}

static int refuse_value(const struct interfile_line *line, double lo, double hi, int n_max, struct err *err)
{
	if (n_max == 1)
		return err_set(err, EBADMSG, "line %d: %.60s := %.60s; allowed: a number from %g to %g", line->number, line->name,
			       line->value, lo, hi);
	return err_set(err, EBADMSG, "line %d: %.60s := %.60s; allowed: at most %d numbers from %g to %g", line->number,
		       line->name, line->value, n_max, lo, hi);
}

int interfile_line_numbers(const struct interfile_lines *l, const char *key, int index, double lo, double hi, int n_max,
			   double *ret, int *ret_n, struct err *err)
{
	const struct interfile_line *line;
	int rc = interfile_line_find(l, key, index, &line, err), n = 0;
	const char *at;
	bool list;

	if (rc <= 0)
		return rc;
	at = line->value;
	list = *at == '{';
	at += list;
	for (;;) {
		char *end;
		double v = strtod(at, &end);

		if (end == at || n == n_max || !(v >= lo && v <= hi)) /* also refuses NaN */
			return refuse_value(line, lo, hi, n_max, err);
		ret[n++] = v;
		at = end + strspn(end, BLANKS);
		if (!list || *at != ',')
			break;
		at++;
	}
	if (list && *at++ != '}')
		return refuse_value(line, lo, hi, n_max, err);
	if (at[strspn(at, BLANKS)])
		return refuse_value(line, lo, hi, n_max, err);
	*ret_n = n;
	return 1;
}

int interfile_line_number(const struct interfile_lines *l, const char *key, int index, double lo, double hi, double *ret,
			  struct err *err)
{
	int n;

	return interfile_line_numbers(l, key, index, lo, hi, 1, ret, &n, err);
}

int interfile_line_int(const struct interfile_lines *l, const char *key, int index, int lo, int hi, int *ret, struct err *err)
{
	const struct interfile_line *line;
	double v;
	int rc = interfile_line_number(l, key, index, lo, hi, &v, err);

	if (rc <= 0)
		return rc;
	if (v != floor(v)) {
		rc = interfile_line_find(l, key, index, &line, err);
		return rc < 0 ? rc
			      : err_set(err, EBADMSG, "line %d: %.60s := %.60s is not an integer", line->number, line->name,
					line->value);
	}
	*ret = (int)v;
	return 1;
}

int interfile_line_length(const struct interfile_lines *l, const char *key, int index, double lo, double hi, double *ret_mm,
			  struct err *err)
{
	const char *unit = strrchr(key, '(');
	double in_own = !strcmp(unit, "(cm)") ? 10 : 1, in_other = 11 - in_own, own = 0, other = 0; /* mm in a unit */
	const struct interfile_line *a, *b;
	int has_own, has_other;
	char with_other[80];

	snprintf(with_other, sizeof(with_other), "%.*s%s", (int)(unit - key), key, in_own > 1 ? "(mm)" : "(cm)");
	has_own =
		interfile_line_number(l, key, index, lo / in_own, hi / in_own, &own, err); /* first: it is what is recommended */
	if (has_own < 0)
		return has_own;
	has_other = interfile_line_number(l, with_other, index, lo / in_other, hi / in_other, &other, err);
	if (has_other < 0)
		return has_other;
	if (has_own && has_other && fabs(in_own * own - in_other * other) > 1e-6 * fabs(in_own * own) &&
	    interfile_line_find(l, key, index, &a, err) > 0 && interfile_line_find(l, with_other, index, &b, err) > 0)
		return interfile_line_refuse_two(a, b, err);
	if (has_own || has_other)
		*ret_mm = has_own ? in_own * own : in_other * other;
	return has_own || has_other;
}
