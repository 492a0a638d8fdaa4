/* SPDX-License-Identifier: Apache-2.0 */
/* interfile_write.c - write an Interfile header in the form that STIR writes and reads. Numbers have as many digits as are needed
 * to read the same double again, up to the factor of 10 between mm and cm.
 * Another name of the data file in the text of a header, which is otherwise unchanged.
 */
#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "node/format/interfile_internal.h"

void interfile_put(struct interfile_writer *w, const char *fmt, ...)
{
	va_list args;
	int n;

	va_start(args, fmt);
	n = vsnprintf(w->text + w->n, w->size - w->n, fmt, args);
	va_end(args);
	if (n < 0 || (size_t)n >= w->size - w->n)
		w->full = true;
	else
		w->n += (size_t)n;
}

void interfile_put_digits(struct interfile_writer *w, double v)
{
	char text[40];

	for (int digits = 6; digits <= 17; digits++) {
		snprintf(text, sizeof(text), "%.*g", digits, v);
		if (strtod(text, NULL) == v)
			break;
	}
	interfile_put(w, "%s", text);
}

void interfile_put_number(struct interfile_writer *w, const char *key, double v)
{
	interfile_put(w, "%s := ", key);
	interfile_put_digits(w, v);
	interfile_put(w, "\n");
}

static void put_start(struct interfile_writer *w, const struct interfile *f)
{
	static const char *const formats[] = {"", "signed integer", "unsigned integer", "float"};
	const struct interfile_type *type = interfile_type(f->kind);

	interfile_put(w, "!INTERFILE  :=\n!imaging modality := %s\nname of data file := %s\n%s!type of data := %s\n",
		      type->modality, f->data_file, type->general_keys, type->data_type);
	interfile_put(w, "imagedata byte order := %s\n%s", f->big_endian ? "BIGENDIAN" : "LITTLEENDIAN", type->study_keys);
	interfile_put(w, "!number format := %s\n!number of bytes per pixel := %d\n", formats[f->number], f->bytes);
}

static void put_study(struct interfile_writer *w, const struct interfile *f)
{
	static const char *const rotations[][2] = {{"S", "supine"}, {"P", "prone"}, {"DR", "right"}, {"DL", "left"}};

	if (strlen(f->date) == 8)
		interfile_put(w, "study date (yyyy:mm:dd) := %.4s:%.2s:%.2s\n", f->date, f->date + 4, f->date + 6);
	if (strlen(f->time) == 6 && f->zone[0])
		interfile_put(w, "study time (hh:mm:ss GMT%.3s:%.2s) := %.2s:%.2s:%.2s\n", f->zone, f->zone + 3, f->time,
			      f->time + 2, f->time + 4);
	else if (strlen(f->time) == 6)
		interfile_put(w, "study time (hh:mm:ss) := %.2s:%.2s:%.2s\n", f->time, f->time + 2, f->time + 4);
	for (size_t i = 0; f->position[0] && i < sizeof(rotations) / sizeof(rotations[0]); i++)
		if (!strcmp(f->position + 2, rotations[i][0]))
			interfile_put(w, "patient orientation := %s\npatient rotation := %s\n",
				      f->position[0] == 'H' ? "head_in" : "feet_in", rotations[i][1]);
	interfile_put_number(w, "image scaling factor[1]", f->scale);
	interfile_put(w, "data offset in bytes[1] := %llu\nnumber of time frames := 1\n", (unsigned long long)f->offset);
	if (f->duration > 0)
		interfile_put_number(w, "image duration (sec)[1]", f->duration);
	if (isfinite(f->start))
		interfile_put_number(w, "image relative start time (sec)[1]", f->start);
	interfile_put(w, "!END OF INTERFILE :=\n");
}

int interfile_write(const struct interfile *f, char **ret_text, struct err *err)
{
	struct interfile_writer w = {.size = INTERFILE_TEXT_MAX};
	struct interfile check;
	int rc;

	if (f->number < INTERFILE_SIGNED || f->number > INTERFILE_FLOAT)
		return err_set(err, EINVAL, "Interfile: number format %d", (int)f->number);
	w.text = malloc(w.size);
	if (!w.text)
		return err_set(err, ENOMEM, "Interfile: no memory for a header");
	put_start(&w, f);
	interfile_type(f->kind)->write(&w, f);
	put_study(&w, f);
	if (w.full) {
		rc = err_set(err, EINVAL, "Interfile: a header of more than %d bytes", INTERFILE_TEXT_MAX);
		goto out;
	}
	/* Check by reading it again: a header that cannot be read, for example with a line end in a name or a size of 0, is not
	 * written. */
	rc = interfile_parse(w.text, w.n, &check, err);
	if (rc < 0) {
		err_prefix(err, "Interfile: the header to be written would not be readable");
		goto out;
	}
	interfile_clear(&check);
	*ret_text = w.text;
	return 0;
out:
	free(w.text);
	return rc;
}

/* ---- another data file ---- */

/* Return where the value begins if the line has this key, else NULL. key: without characters that Interfile ignores
 * (interfile_normalise()). */
static const char *value_of(const char *line, const char *key)
{
	static const char passed_over[] = " \t\v\f_!";

	line += strspn(line, passed_over);
	for (; *key; key++) {
		if (tolower((unsigned char)*line) != *key)
			return NULL;
		line++;
		line += strspn(line, passed_over);
	}
	return strncmp(line, ":=", 2) ? NULL : line + 2;
}

int interfile_rename_data(const char *text, const char *data_file, char **ret_text, struct err *err)
{
	for (const char *line = text; *line;) {
		const char *value = value_of(line, "nameofdatafile");
		size_t length = strcspn(line, "\r\n"), size;

		if (value) {
			size = strlen(text) + strlen(data_file) + 2;
			*ret_text = malloc(size);
			if (!*ret_text)
				return err_set(err, ENOMEM, "no memory for a header of %zu bytes", size);
			snprintf(*ret_text, size, "%.*s %s%s", (int)(value - text), text, data_file, line + length);
			return 0;
		}
		line += length;
		line += strspn(line, "\r\n");
	}
	return err_set(err, EBADMSG, "the Interfile header names no data file");
}
