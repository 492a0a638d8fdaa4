/* SPDX-License-Identifier: Apache-2.0 */
/* interfile_parallel.c - read a header of parallel beams (PARALLEL_1, docs/sinogram-object.md): slices, angles, radial bins and
 * their positions. Angles are equal steps over an arc or a list, never both. Counts are limited before the list is allocated;
 * parallel_check() checks everything else, with the limits of a reconstruction.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "node/format/interfile.h"
#include "node/format/interfile_lines.h"

#define COUNT_MAX 65535
#define ANGLES_MAX 16384
#define TINY 1e-9
#define LENGTH_MAX 10000.0 /* mm */
#define ANGLE_MAX 3600.0   /* degrees, in a list */

static int missing(const char *key, struct err *err)
{
	return err_set(err, EBADMSG, "\"%s\" is missing", key);
}

static int read_counts(const struct interfile_lines *l, struct parallel_scan *s, struct err *err)
{
	const struct {
		const char *key, *name;
		int most, *count;
	} counts[] = {
		{"numberofslices", "number of slices", COUNT_MAX, &s->n_slices},
		{"numberofangles", "number of angles", ANGLES_MAX, &s->n_angles},
		{"numberofradialbins", "number of radial bins", COUNT_MAX, &s->n_radial},
	};

	for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++) {
		int rc = interfile_line_int(l, counts[i].key, 0, 1, counts[i].most, counts[i].count, err);

		if (rc <= 0)
			return rc < 0 ? rc : missing(counts[i].name, err);
	}
	return 0;
}

static int read_lengths(const struct interfile_lines *l, struct parallel_scan *s, struct err *err)
{
	int rc = interfile_line_length(l, "binsize", 0, TINY, LENGTH_MAX, &s->bin, err);

	if (rc <= 0)
		return rc < 0 ? rc : missing("bin size (mm)", err);
	s->slice = s->bin;
	rc = interfile_line_length(l, "slicespacing", 0, TINY, LENGTH_MAX, &s->slice, err);
	if (rc == 0 && s->n_slices > 1)
		return missing("slice spacing (mm)", err);
	if (rc >= 0)
		rc = interfile_line_length(l, "axisoffset", 0, -LENGTH_MAX, LENGTH_MAX, &s->offset, err);
	return rc < 0 ? rc : 0;
}

static int read_list(const struct interfile_lines *l, struct parallel_scan *s, struct err *err)
{
	double *angle = malloc((size_t)s->n_angles * sizeof(*angle));
	int n = 0, rc;

	if (!angle)
		return err_set(err, ENOMEM, "no memory for %d angles", s->n_angles);
	rc = interfile_line_numbers(l, "angles(degrees)", 0, -ANGLE_MAX, ANGLE_MAX, s->n_angles, angle, &n, err);
	if (rc > 0 && n != s->n_angles)
		rc = err_set(err, EBADMSG, "%d angles in \"angles (degrees)\", number of angles := %d", n, s->n_angles);
	if (rc <= 0) {
		free(angle);
		return rc;
	}
	s->angle = angle;
	return 1;
}

static int read_angles(const struct interfile_lines *l, struct parallel_scan *s, struct err *err)
{
	int list = read_list(l, s, err), first, arc;

	if (list < 0)
		return list;
	s->arc = 180;
	first = interfile_line_number(l, "firstangle(degrees)", 0, -360, 360, &s->first_angle, err);
	if (first < 0)
		return first;
	arc = interfile_line_number(l, "arc(degrees)", 0, TINY, 360, &s->arc, err);
	if (arc < 0)
		return arc;
	if (list && (first || arc))
		return err_set(err, EBADMSG, "\"angles (degrees)\" and \"%s\" in one header; allowed: one of them",
			       first ? "first angle (degrees)" : "arc (degrees)");
	return 0;
}

/* Read the unit: a word that is valid in DICOM (LO) and in a header. */
static int read_unit(const struct interfile_lines *l, struct interfile *f, struct err *err)
{
	const struct interfile_line *line;
	int rc = interfile_line_find(l, "unit", 0, &line, err);
	const char *unit = rc > 0 ? line->value : INTERFILE_ATTENUATION;

	if (rc < 0)
		return rc;
	for (const char *c = unit; *c; c++)
		if (*c < ' ' || *c > '~' || *c == '\\')
			return err_set(err, EBADMSG, "line %d: unit := %.60s; allowed: printable ASCII without \\", line->number,
				       unit);
	if (strlen(unit) >= sizeof(f->unit))
		return err_set(err, EBADMSG, "line %d: unit := %.60s; allowed: at most %d letters", line->number, unit,
			       INTERFILE_UNIT_SIZE - 1);
	snprintf(f->unit, sizeof(f->unit), "%s", unit);
	return 0;
}

int interfile_read_parallel(const struct interfile_lines *l, struct interfile *f, struct err *err)
{
	struct parallel_scan *s = &f->beams;
	int rc = read_counts(l, s, err);

	if (rc == 0)
		rc = read_lengths(l, s, err);
	if (rc == 0)
		rc = read_angles(l, s, err);
	if (rc == 0)
		rc = read_unit(l, f, err);
	if (rc == 0 && parallel_check(s, err) < 0) {
		if (err)
			err->code = EBADMSG;
		rc = -EBADMSG;
	}
	return rc;
}
