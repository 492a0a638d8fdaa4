/* SPDX-License-Identifier: Apache-2.0 */
#include "node/reconstruct/case_told.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "node/base/json_get.h"
#include "node/base/sentence.h"

#define BYTES_MOST 65536
#define TEXT_MOST 200 /* characters of the summary and of each warning */
#define NAME_MOST 40  /* of a figure */
#define FIGURES_MOST 16
#define WARNINGS_MOST 8

/* Is it a text for a header: printable ASCII without backslash, and not too long? */
static bool is_text(const char *text, size_t most)
{
	for (size_t i = 0; text && text[i]; i++)
		if (!isascii((unsigned char)text[i]) || !isprint((unsigned char)text[i]) || text[i] == '\\')
			return false;
	return text && strlen(text) <= most;
}

static int check_figures(json_t *figures, const char *what, struct err *err)
{
	const char *name;
	json_t *value;

	if ((figures && !json_is_object(figures)) || json_object_size(figures) > FIGURES_MOST)
		return err_set(err, EBADMSG, "'figures' of %s is no object of at most %d numbers", what, FIGURES_MOST);
	json_object_foreach(figures, name, value)
	{
		if (!json_is_number(value) || !isfinite(json_number_value(value)) || !is_text(name, NAME_MOST))
			return err_set(
				err, EBADMSG,
				"a member of 'figures' of %s is no number, or its name is no text of at most %d characters", what,
				NAME_MOST);
	}
	return 0;
}

static int check_told(const json_t *told, const char *what, struct err *err)
{
	json_t *warnings = json_object_get(told, "warnings"), *value;
	size_t i;
	int rc;

	if (!json_is_object(told))
		return err_set(err, EBADMSG, "%s is no JSON object", what);
	if (!is_text(json_string_value(json_object_get(told, "summary")), TEXT_MOST))
		return err_set(
			err, EBADMSG,
			"'summary' of %s is missing, or no text of at most %d printable characters of ASCII without backslash",
			what, TEXT_MOST);
	rc = check_figures(json_object_get(told, "figures"), what, err);
	if (rc == 0 && ((warnings && !json_is_array(warnings)) || json_array_size(warnings) > WARNINGS_MOST))
		rc = err_set(err, EBADMSG, "'warnings' of %s is no array of at most %d texts", what, WARNINGS_MOST);
	json_array_foreach(warnings, i, value)
	{
		if (rc == 0 && !is_text(json_string_value(value), TEXT_MOST))
			rc = err_set(err, EBADMSG, "warning %zu of %s is no text as its summary", i + 1, what);
	}
	return rc;
}

int case_told_read(int fd, const char *what, json_t **ret, struct err *err)
{
	char *text = malloc(BYTES_MOST);
	json_t *told = NULL;
	struct stat st;
	int rc;

	if (!text)
		rc = err_set(err, ENOMEM, "no memory for %s", what);
	else if (fstat(fd, &st) < 0 || st.st_size > BYTES_MOST)
		rc = err_set(err, EBADMSG, "%s has %lld bytes; allowed: %d", what, (long long)st.st_size, BYTES_MOST);
	else if (read(fd, text, (size_t)st.st_size) != (ssize_t)st.st_size)
		rc = err_set(err, EBADMSG, "%s cannot be read", what);
	else if (!(told = json_loadb(text, (size_t)st.st_size, JSON_REJECT_DUPLICATES, NULL)))
		rc = err_set(err, EBADMSG, "%s is not valid JSON", what);
	else
		rc = check_told(told, what, err);
	free(text);
	if (rc < 0)
		json_decref(told);
	else
		*ret = told;
	return rc;
}

void case_told_text(const json_t *told, char *ret, size_t size)
{
	json_t *value;
	const char *name;

	snprintf(ret, size, "%s", json_get_text(told, "summary"));
	json_object_foreach(json_object_get(told, "figures"), name, value)
	{
		size_t n = strlen(ret);

		if (n + (size_t)snprintf(NULL, 0, "; %s %.6g; ...", name, json_number_value(value)) >= size) {
			snprintf(ret + n, size - n, "; ...");
			return;
		}
		snprintf(ret + n, size - n, "; %s %.6g", name, json_number_value(value));
	}
}

void case_told_warnings(const json_t *told, const char *who, char *text, size_t size)
{
	json_t *value;
	size_t i;

	json_array_foreach(json_object_get(told, "warnings"), i, value)
		sentence_add(text, size, "%s: %s.", who, json_string_value(value));
}
