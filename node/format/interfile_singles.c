/* SPDX-License-Identifier: Apache-2.0 */
/* interfile_singles.c - headers of single events (docs/sinogram-object.md#singles): a value for each detector, or for each block
 * of neighbouring detectors, and the coincidence window. Unit and window are required: a wrong one gives wrong randoms without an
 * error. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "node/base/plural.h"
#include "node/format/interfile_internal.h"

#define BLOCK_MAX 4096	   /* detectors along one side of a block */
#define WINDOW_MAX 1000.0  /* ns */
#define WINDOW_LEAST 0.001 /* ns */

static const char *const labels[2] = {"detector", "ring"};
static const char *const sides[2] = {"detectorsperblock", "ringsperblock"};
static const char *const side_names[2] = {"detectors per block", "rings per block"};

static int read_axes(struct interfile_parser *p)
{
	struct interfile_singles *s = &p->f->singles;
	const struct interfile_line *line;
	char text[40];
	int dims, rc = interfile_dimensions(p, 2, 2, "singles have 2", &dims);

	if (rc < 0)
		return rc;
	for (int c = 0; c < 2; c++) {
		rc = interfile_word(p, "matrixaxislabel", c + 1, text, sizeof(text), &line);
		if (rc < 0)
			return rc;
		if (rc == 0)
			return err_set(p->err, EBADMSG, "\"matrix axis label [%d]\" is missing", c + 1);
		if (strcmp(text, labels[c]) != 0)
			return interfile_unsupported(p, line, EBADMSG, labels[c]);
		rc = interfile_side(p, c + 1, INTERFILE_SIDE_MAX, &s->blocks[c]);
		s->block[c] = 1;
		if (rc == 0)
			rc = interfile_line_int(&p->lines, sides[c], 0, 1, BLOCK_MAX, &s->block[c], p->err);
		if (rc < 0)
			return rc;
	}
	return 0;
}

static int read_unit(struct interfile_parser *p)
{
	const struct interfile_line *line;
	char text[40];
	int rc = interfile_word(p, "unit", 0, text, sizeof(text), &line);

	if (rc <= 0)
		return rc < 0 ? rc : interfile_missing(p, "unit");
	p->f->singles.rates = !strcmp(text, "countspersecond");
	if (!p->f->singles.rates && strcmp(text, "counts") != 0)
		return interfile_unsupported(p, line, EBADMSG, "counts, counts per second");
	return 0;
}

static int read_keys(struct interfile_parser *p)
{
	double window;
	int rc = read_axes(p);

	if (rc == 0)
		rc = read_unit(p);
	if (rc < 0)
		return rc;
	rc = interfile_line_number(&p->lines, "coincidencewindow(ns)", 0, WINDOW_LEAST, WINDOW_MAX, &window, p->err);
	if (rc <= 0)
		return rc < 0 ? rc : interfile_missing(p, "coincidence window (ns)");
	p->f->singles.window = 1e-9 * window;
	return 0;
}

static void write_keys(struct interfile_writer *w, const struct interfile *f)
{
	const struct interfile_singles *s = &f->singles;

	interfile_put(w, "number of dimensions := 2\n");
	for (int c = 1; c >= 0; c--)
		interfile_put(w, "matrix axis label [%d] := %s\n!matrix size [%d] := %d\n%s := %d\n", c + 1, labels[c], c + 1,
			      s->blocks[c], side_names[c], s->block[c]);
	interfile_put(w, "unit := %s\n", s->rates ? "counts per second" : "counts");
	interfile_put_number(w, "coincidence window (ns)", 1e9 * s->window);
}

static void find_shape(const struct interfile *f, size_t *ret_planes, size_t *ret_values)
{
	*ret_planes = (size_t)f->singles.blocks[1];
	*ret_values = (size_t)f->singles.blocks[0];
}

static void describe_extent(const struct interfile *f, char *ret_text, size_t size)
{
	const struct interfile_singles *s = &f->singles;

	snprintf(ret_text, size, "%d x %d values of %d byte%s", s->blocks[1], s->blocks[0], f->bytes, plural(f->bytes));
}

static void convert_plane(const struct interfile *f, const uint8_t *bytes, size_t plane, float *ret_values)
{
	size_t n = (size_t)f->singles.blocks[0], row = (size_t)f->singles.blocks[1] - 1 - plane; /* rings in STIR's order */

	interfile_convert(f, bytes + row * n * (size_t)f->bytes, n, ret_values);
}

int interfile_singles_check(const struct interfile *f, const struct pet_scanner *scanner, struct err *err)
{
	const struct interfile_singles *s = &f->singles;
	const int wanted[2] = {scanner->detectors, scanner->rings};

	for (int c = 0; c < 2; c++)
		if ((long)s->blocks[c] * s->block[c] != wanted[c])
			return err_set(err, EBADMSG, "%d values of %d %s%s each; the scanner has %d %s", s->blocks[c],
				       s->block[c], labels[c], plural(s->block[c]), wanted[c],
				       c == 0 ? "detectors in each ring" : "rings");
	return 0;
}

int interfile_singles_expand(const struct interfile *f, const uint8_t *bytes, double *ret, double *ret_sum, struct err *err)
{
	const struct interfile_singles *s = &f->singles;
	size_t detectors = (size_t)s->blocks[0] * (size_t)s->block[0];
	float *row = malloc((size_t)s->blocks[0] * sizeof(*row));
	double sum = 0;
	int rc = row ? 0 : err_set(err, ENOMEM, "no memory for %d singles", s->blocks[0]);

	for (int ring = 0; rc == 0 && ring < s->blocks[1] * s->block[1]; ring++) {
		interfile_plane(f, bytes, (size_t)(ring / s->block[1]), row);
		for (size_t d = 0; rc == 0 && d < detectors; d++) {
			size_t block = d / (size_t)s->block[0];
			double value = (double)row[block];

			if (!(value >= 0 && value < INFINITY))
				rc = err_set(err, EBADMSG, "row %d, value %zu: %g; allowed: finite and at least 0",
					     s->blocks[1] - 1 - ring / s->block[1], block, value);
			ret[(size_t)ring * detectors + d] = value / s->block[0] / s->block[1];
			sum += ret[(size_t)ring * detectors + d];
		}
	}
	free(row);
	*ret_sum = sum;
	return rc;
}

const struct interfile_type interfile_singles = {
	.title = "single events",
	.modality = "PT",
	.data_type = "PET",
	.pet_data = "singles",
	.general_keys = "!GENERAL DATA :=\n",
	.study_keys = "!PET STUDY (General) :=\n!PET data type := Singles\n",
	.read = read_keys,
	.write = write_keys,
	.shape = find_shape,
	.extent = describe_extent,
	.plane = convert_plane,
};
