/* SPDX-License-Identifier: Apache-2.0 */
/* config_text.c - read a configuration line by line and insert includes. It parses strings and comments like libconfig, because
 * @include, brackets and numbers inside them have no meaning.
 *
 * libconfig stores an integer without the suffix L in 32 bits and drops the rest: 10000000000 would silently be 1410065408. So
 * the suffix is added to each integer that needs more bits.
 */
#include "node/config/config_text.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "node/base/list_grow.h"

struct scan {
	struct config_text *text;
	bool includes; /* @include is allowed */
	enum { IN_CODE, IN_STRING, IN_COMMENT } in;
	int since; /* line in which the string or comment began */
	int nesting;
};

static int append_file(struct scan *s, const char *path, int depth, struct err *err);

struct config_text *config_text_free(struct config_text *t)
{
	if (!t)
		return NULL;
	for (size_t i = 0; i < t->n_files; i++)
		free(t->files[i]);
	free(t->lines);
	free(t->bytes);
	free(t);
	return NULL;
}

void config_text_where(const struct config_text *t, unsigned line, const char **ret_file, int *ret_line)
{
	if (line < 1 || t->n_lines == 0) {
		*ret_file = t->n_files ? t->files[0] : "";
		*ret_line = 1;
		return;
	}
	if (line > t->n_lines)
		line = (unsigned)t->n_lines;
	*ret_file = t->files[t->lines[line - 1].file];
	*ret_line = t->lines[line - 1].line;
}

/* Append bytes to the text. */
static int put_bytes(struct config_text *t, const char *bytes, size_t n, const char *file, int number, struct err *err)
{
	if (t->size + n + 2 > CONFIG_TEXT_MAX)
		return err_set(err, EFBIG, "%s:%d: the configuration is longer than %d bytes", file, number, CONFIG_TEXT_MAX);
	if (!t->bytes)
		t->bytes = malloc(CONFIG_TEXT_MAX);
	if (!t->bytes)
		return err_set(err, ENOMEM, "%s:%d: out of memory", file, number);
	memcpy(t->bytes + t->size, bytes, n);
	t->size += n;
	return 0;
}

/* Return the length of the number or name at the beginning of `at`. */
static size_t word_length(const char *at, size_t n)
{
	size_t length = 0;

	while (length < n && (isalnum((unsigned char)at[length]) || at[length] == '_' || at[length] == '.'))
		length++;
	return length;
}

/* Return the integer that must replace the one of `length` bytes at `at`; NULL: none must, or it is no integer. */
static const char *wide_integer(const char *at, size_t length, char ret_text[40])
{
	bool hex = length > 2 && at[0] == '0' && (at[1] == 'x' || at[1] == 'X');
	unsigned long long value = 0;
	bool over = false;

	for (size_t i = hex ? 2 : 0; i < length; i++) {
		int digit = isdigit((unsigned char)at[i]) ? at[i] - '0' : tolower((unsigned char)at[i]) - 'a' + 10;

		if (!(hex ? isxdigit((unsigned char)at[i]) : isdigit((unsigned char)at[i])))
			return NULL;
		over = over || value > (INT64_MAX - (unsigned long long)digit) / (hex ? 16 : 10);
		value = over ? INT64_MAX : value * (hex ? 16 : 10) + (unsigned long long)digit;
	}
	snprintf(ret_text, 40, "%lluL", value);
	return value > INT32_MAX ? ret_text : NULL;
}

/* Copy the line up to `i`, and the word there; replace an integer that needs more than 32 bits. *io_copied: bytes of the line
 * that are copied. Returns the length of the word, or an error. */
static int copy_word(struct scan *s, const char *line, size_t n, size_t i, size_t *io_copied, const char *file, int number,
		     struct err *err)
{
	size_t length = word_length(line + i, n - i);
	char text[40];
	const char *wide = isdigit((unsigned char)line[i]) ? wide_integer(line + i, length, text) : NULL;
	int ret = 0;

	if (!wide)
		return (int)length;
	ret = put_bytes(s->text, line + *io_copied, i - *io_copied, file, number, err);
	if (ret == 0)
		ret = put_bytes(s->text, wide, strlen(wide), file, number, err);
	*io_copied = i + length;
	return ret < 0 ? ret : (int)length;
}

/* Scan one line and copy its beginning; *ret_copied: number of bytes. Returns 0, or an error for text that libconfig must not
 * receive. */
static int scan_line(struct scan *s, const char *line, size_t n, const char *file, int number, size_t *ret_copied,
		     struct err *err)
{
	*ret_copied = 0;
	for (size_t i = 0; i < n; i++) {
		char c = line[i], next = i + 1 < n ? line[i + 1] : '\0';

		if (s->in == IN_STRING) {
			if (c == '\\' && (next == '"' || next == '\\'))
				i++;
			else if (c == '"')
				s->in = IN_CODE;
		} else if (s->in == IN_COMMENT) {
			if (c == '*' && next == '/') {
				s->in = IN_CODE;
				i++;
			}
		} else if (c == '#' || (c == '/' && next == '/')) {
			return 0;
		} else if (c == '/' && next == '*') {
			s->in = IN_COMMENT;
			s->since = number;
			i++;
		} else if (c == '"') {
			s->in = IN_STRING;
			s->since = number;
		} else if (c == '@') {
			return err_set(err, EINVAL,
				       "%s:%d: '@' in an unexpected place; allowed: @include \"FILE\" on a line of its own", file,
				       number);
		} else if (c == '{' || c == '(' || c == '[') {
			if (s->nesting >= CONFIG_NESTING_MAX)
				return err_set(err, EINVAL, "%s:%d: more than %d levels of nested { ( [", file, number,
					       CONFIG_NESTING_MAX);
			s->nesting++;
		} else if (c == '}' || c == ')' || c == ']') {
			if (s->nesting > 0)
				s->nesting--;
		} else if (isalnum((unsigned char)c)) {
			int length = copy_word(s, line, n, i, ret_copied, file, number, err);

			if (length < 0)
				return length;
			i += (size_t)length - 1;
		}
	}
	return 0;
}

static int put_line(struct config_text *t, const char *line, size_t n, int file, int number, struct err *err)
{
	int ret = put_bytes(t, line, n, t->files[file], number, err);

	if (ret < 0)
		return ret;
	if (!list_grow(&t->lines, t->n_lines, &t->room, sizeof(*t->lines)))
		return err_set(err, ENOMEM, "%s:%d: out of memory", t->files[file], number);
	t->bytes[t->size++] = '\n';
	t->bytes[t->size] = '\0';
	t->lines[t->n_lines++] = (struct config_line){file, number};
	return 0;
}

/* Parse an @include. 1: the line is one, its name is copied; 0: it is not; negative: it is invalid. */
static int parse_include(const char *line, size_t n, const char *file, int number, char *ret_name, size_t size, struct err *err)
{
	static const char word[] = "@include";
	size_t i = 0, length = 0;

	while (i < n && (line[i] == ' ' || line[i] == '\t'))
		i++;
	if (n - i < sizeof(word) - 1 || memcmp(line + i, word, sizeof(word) - 1) != 0)
		return 0;
	i += sizeof(word) - 1;
	while (i < n && (line[i] == ' ' || line[i] == '\t'))
		i++;
	if (i < n && line[i] == '"') {
		i++;
		while (i + length < n && line[i + length] != '"')
			length++;
	}
	if (length == 0 || length >= size || i + length >= n)
		return err_set(err, EINVAL, "%s:%d: invalid @include; allowed: @include \"FILE\" with 1 to %zu characters", file,
			       number, size - 1);
	memcpy(ret_name, line + i, length);
	ret_name[length] = '\0';
	for (i += length + 1; i < n && line[i] != '#'; i++)
		if (!strchr(" \t\r", line[i]))
			return err_set(err, EINVAL, "%s:%d: text after @include \"%s\"; allowed: nothing but a # comment", file,
				       number, ret_name);
	return 1;
}

static int include_file(struct scan *s, const char *name, const char *from, int number, int depth, struct err *err)
{
	const char *slash = strrchr(from, '/');
	int folder = slash && name[0] != '/' ? (int)(slash - from + 1) : 0;
	char path[1024];

	if (!s->includes)
		return err_set(err, EINVAL, "%s:%d: @include is allowed in files only", from, number);
	if (depth >= CONFIG_INCLUDE_MAX)
		return err_set(err, EINVAL, "%s:%d: @include \"%s\": more than %d levels of nested includes", from, number, name,
			       CONFIG_INCLUDE_MAX);
	if ((size_t)snprintf(path, sizeof(path), "%.*s%s", folder, from, name) >= sizeof(path))
		return err_set(err, EINVAL, "%s:%d: @include \"%s\": the path is too long", from, number, name);
	if (append_file(s, path, depth + 1, err) < 0) {
		/* An error inside an included file already names its place; an error of opening the file does not. */
		return err->code == ENOENT || err->code == EACCES || err->code == EISDIR
			       ? err_prefix(err, "%s:%d: @include", from, number)
			       : -err->code;
	}
	return 0;
}

static int append_text(struct scan *s, const char *bytes, size_t size, const char *name, int depth, struct err *err)
{
	struct config_text *t = s->text;
	int file = (int)t->n_files;
	int number = 0, rc;

	if (t->n_files == CONFIG_FILES_MAX)
		return err_set(err, EINVAL, "%s:1: more than %d files in one configuration", name, CONFIG_FILES_MAX);
	t->files[file] = strdup(name);
	if (!t->files[file])
		return err_set(err, ENOMEM, "%s:1: out of memory", name);
	t->n_files++;
	for (size_t at = 0; at < size;) {
		const char *line = bytes + at;
		const char *end = memchr(line, '\n', size - at);
		size_t n = end ? (size_t)(end - line) : size - at;
		size_t copied = 0;
		char included[512];

		at += n + 1;
		number++;
		if (memchr(line, '\0', n))
			return err_set(err, EINVAL, "%s:%d: contains a byte 0: not a text file", name, number);
		rc = s->in == IN_CODE ? parse_include(line, n, name, number, included, sizeof(included), err) : 0;
		if (rc > 0)
			rc = include_file(s, included, name, number, depth, err);
		else if (rc == 0 && (rc = scan_line(s, line, n, name, number, &copied, err)) == 0)
			rc = put_line(t, line + copied, n - copied, file, number, err);
		if (rc < 0)
			return rc;
	}
	if (s->in != IN_CODE)
		return err_set(err, EINVAL, "%s:%d: this %s is not closed", name, s->since,
			       s->in == IN_STRING ? "string" : "comment");
	return 0;
}

static int append_file(struct scan *s, const char *path, int depth, struct err *err)
{
	struct stat st;
	char *bytes = NULL;
	size_t size = 0;
	ssize_t got;
	int fd, rc;

	fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY); /* opening a FIFO must not block */
	if (fd < 0) {
		int code = errno;

		return err_set(err, code, "%s: %s", path, strerror(code));
	}
	if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode)) {
		rc = err_set(err, EISDIR, "%s: not a regular file", path);
		goto out;
	}
	if (st.st_size > CONFIG_TEXT_MAX) {
		rc = err_set(err, EFBIG, "%s: %lld bytes; allowed: at most %d", path, (long long)st.st_size, CONFIG_TEXT_MAX);
		goto out;
	}
	bytes = malloc(CONFIG_TEXT_MAX + 1);
	if (!bytes) {
		rc = err_set(err, ENOMEM, "%s: out of memory", path);
		goto out;
	}
	while (size <= CONFIG_TEXT_MAX && (got = read(fd, bytes + size, CONFIG_TEXT_MAX + 1 - size)) != 0) {
		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0) {
			rc = err_set(err, errno, "%s: %s", path, strerror(errno));
			goto out;
		}
		size += (size_t)got;
	}
	rc = append_text(s, bytes, size, path, depth, err);
out:
	free(bytes);
	close(fd);
	return rc;
}

static int finish_text(struct scan *s, int rc, struct config_text **ret_text, struct err *err)
{
	if (rc == 0 && s->text->n_lines == 0)
		rc = put_line(s->text, "", 0, 0, 1, err); /* an empty configuration is valid */
	if (rc < 0) {
		config_text_free(s->text);
		return rc;
	}
	*ret_text = s->text;
	return 0;
}

int config_text_load(const char *path, struct config_text **ret_text, struct err *err)
{
	struct scan s = {.includes = true, .text = calloc(1, sizeof(struct config_text))};

	if (!s.text)
		return err_set(err, ENOMEM, "%s: out of memory", path);
	return finish_text(&s, append_file(&s, path, 0, err), ret_text, err);
}

int config_text_copy(const char *bytes, const char *name, struct config_text **ret_text, struct err *err)
{
	struct scan s = {.text = calloc(1, sizeof(struct config_text))};

	if (!s.text)
		return err_set(err, ENOMEM, "%s: out of memory", name);
	return finish_text(&s, append_text(&s, bytes, strlen(bytes), name, 0, err), ret_text, err);
}
