/* SPDX-License-Identifier: Apache-2.0 */
/* interfile_parallel.c - headers of parallel beams (PARALLEL_1, docs/sinogram-object.md): slices, angles, radial bins and their
 * positions; of raw intensities the kinds of their frames. Angles are equal steps over an arc or a list, never both. Counts are
 * limited before lists are allocated; parallel_check() and parallel_flat_check() check everything else, with the limits of a
 * reconstruction. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "node/base/plural.h"
#include "node/format/interfile_internal.h"

#define COUNT_MAX 65535
#define ANGLES_MAX 16384
#define LENGTH_MAX 10000.0 /* mm */
#define ANGLE_MAX 3600.0   /* degrees, in a list */
#define RUNS_MAX 4096	   /* of frames of one kind */
#define FRAMES_MAX 65535

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
			return rc < 0 ? rc : interfile_line_missing(l, counts[i].name, err);
	}
	return 0;
}

static int read_lengths(const struct interfile_lines *l, struct parallel_scan *s, struct err *err)
{
	int rc = interfile_line_length(l, "binsize(mm)", 0, INTERFILE_TINY, LENGTH_MAX, &s->bin, err);

	if (rc <= 0)
		return rc < 0 ? rc : interfile_line_missing(l, "bin size (mm)", err);
	s->slice = s->bin;
	rc = interfile_line_length(l, "slicespacing(mm)", 0, INTERFILE_TINY, LENGTH_MAX, &s->slice, err);
	if (rc == 0 && s->n_slices > 1)
		return interfile_line_missing(l, "slice spacing (mm)", err);
	if (rc >= 0)
		rc = interfile_line_length(l, "axisoffset(mm)", 0, -LENGTH_MAX, LENGTH_MAX, &s->offset, err);
	s->offset_unknown = rc == 0;
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
	arc = interfile_line_number(l, "arc(degrees)", 0, INTERFILE_TINY, 360, &s->arc, err);
	if (arc < 0)
		return arc;
	if (list && (first || arc))
		return err_set(err, EBADMSG, "\"angles (degrees)\" and \"%s\" in one header; allowed: one of them",
			       first ? "first angle (degrees)" : "arc (degrees)");
	return 0;
}

/* Read the runs of frames: two lists of the same length. */
static int read_runs(const struct interfile_lines *l, double *kind, double *count, struct parallel_frames *f, struct err *err)
{
	int n_kinds = 0, n_counts = 0, rc, counts;
	struct parallel_run *run;

	rc = interfile_line_numbers(l, "framekinds", 0, 0, PARALLEL_FRAME_KINDS - 1, RUNS_MAX, kind, &n_kinds, err);
	if (rc < 0)
		return rc;
	counts = interfile_line_numbers(l, "framecounts", 0, 1, COUNT_MAX, RUNS_MAX, count, &n_counts, err);
	if (counts < 0)
		return counts;
	if (n_kinds != n_counts)
		return err_set(err, EBADMSG, "%d \"frame kinds\", %d \"frame counts\"; needed: as many of both", n_kinds,
			       n_counts);
	if (n_kinds == 0)
		return 0;
	run = calloc((size_t)n_kinds, sizeof(*run));
	if (!run)
		return err_set(err, ENOMEM, "no memory for %d runs of frames", n_kinds);
	f->run = run;
	f->n_runs = n_kinds;
	for (int i = 0; i < n_kinds; i++) {
		run[i] = (struct parallel_run){(enum parallel_frame)kind[i], (int)count[i]};
		f->n += run[i].n;
		if (run[i].kind != kind[i] || run[i].n != count[i])
			return err_set(err, EBADMSG, "run %d: %g frames of kind %g; allowed: whole numbers", i, count[i],
				       kind[i]);
	}
	return f->n <= FRAMES_MAX ? 0 : err_set(err, EBADMSG, "%d frames; allowed: at most %d", f->n, FRAMES_MAX);
}

static int read_frames(const struct interfile_lines *l, struct parallel_frames *f, struct err *err)
{
	double *list = malloc(2 * RUNS_MAX * sizeof(*list));
	int rc = list ? read_runs(l, list, list + RUNS_MAX, f, err) : err_set(err, ENOMEM, "no memory for %d runs", RUNS_MAX);

	free(list);
	return rc;
}

static int read_keys(struct interfile_parser *p)
{
	struct parallel_scan *s = &p->f->parallel;
	struct parallel_frames *frames = &p->f->frames;
	int rc = read_counts(&p->lines, s, p->err);

	if (rc == 0)
		rc = read_lengths(&p->lines, s, p->err);
	if (rc == 0)
		rc = read_angles(&p->lines, s, p->err);
	if (rc == 0)
		rc = interfile_unit(p);
	if (rc == 0)
		rc = read_frames(&p->lines, frames, p->err);
	if (rc == 0 && frames->n_runs > 0 && strcmp(p->f->unit, INTERFILE_ATTENUATION) != 0)
		rc = err_set(p->err, EBADMSG, "frames of intensities with unit := %s; allowed: %s", p->f->unit,
			     INTERFILE_ATTENUATION);
	if (rc == 0 && (parallel_check(s, p->err) < 0 || (frames->n_runs > 0 && parallel_flat_check(frames, s, p->err) < 0))) {
		if (p->err)
			p->err->code = EBADMSG;
		rc = -EBADMSG;
	}
	return rc;
}

static void write_keys(struct interfile_writer *w, const struct interfile *f)
{
	const struct parallel_scan *s = &f->parallel;

	interfile_put(w, "!number of slices := %d\n!number of angles := %d\n!number of radial bins := %d\n", s->n_slices,
		      s->n_angles, s->n_radial);
	interfile_put_number(w, "!bin size (mm)", s->bin);
	interfile_put_number(w, "slice spacing (mm)", s->slice);
	if (!s->offset_unknown)
		interfile_put_number(w, "axis offset (mm)", s->offset);
	if (s->angle) {
		interfile_put(w, "angles (degrees) := {");
		for (int a = 0; a < s->n_angles; a++) {
			interfile_put(w, "%s", a ? "," : "");
			interfile_put_digits(w, s->angle[a]);
		}
		interfile_put(w, "}\n");
	} else {
		interfile_put_number(w, "first angle (degrees)", s->first_angle);
		interfile_put_number(w, "arc (degrees)", s->arc);
	}
	for (int i = 0; i < f->frames.n_runs; i++)
		interfile_put(w, "%s%d", i ? "," : "frame kinds := {", (int)f->frames.run[i].kind);
	for (int i = 0; i < f->frames.n_runs; i++)
		interfile_put(w, "%s%d", i ? "," : "}\nframe counts := {", f->frames.run[i].n);
	interfile_put(w, "%sunit := %s\n", f->frames.n_runs > 0 ? "}\n" : "", f->unit[0] ? f->unit : INTERFILE_ATTENUATION);
}

static void clear_arrays(struct interfile *f)
{
	free((double *)f->parallel.angle); /* allocated by read_list() */
	f->parallel.angle = NULL;
	free((struct parallel_run *)f->frames.run); /* allocated by read_runs() */
	f->frames = (struct parallel_frames){0};
}

/* Return the number of rows of a slice: views, or frames of intensities. */
static int count_rows(const struct interfile *f)
{
	return f->frames.n_runs > 0 ? f->frames.n : f->parallel.n_angles;
}

static void find_shape(const struct interfile *f, size_t *ret_planes, size_t *ret_values)
{
	*ret_planes = (size_t)f->parallel.n_slices;
	*ret_values = (size_t)count_rows(f) * (size_t)f->parallel.n_radial;
}

static void describe_extent(const struct interfile *f, char *ret_text, size_t size)
{
	const struct parallel_scan *s = &f->parallel;

	snprintf(ret_text, size, "%d slice%s, %d %s, %d radial bins of %d byte%s", s->n_slices, plural(s->n_slices),
		 count_rows(f), f->frames.n_runs > 0 ? "frames" : "angles", s->n_radial, f->bytes, plural(f->bytes));
}

static void convert_plane(const struct interfile *f, const uint8_t *bytes, size_t plane, float *ret_values)
{
	size_t n = (size_t)count_rows(f) * (size_t)f->parallel.n_radial;

	interfile_convert(f, bytes + plane * n * (size_t)f->bytes, n, ret_values);
}

const struct interfile_type interfile_parallel = {
	.id = "PARALLEL_1",
	.title = "parallel beams",
	.modality = "CT",
	.data_type = "PARALLEL",
	.general_keys = "!GENERAL DATA :=\n",
	.study_keys = "",
	.read = read_keys,
	.write = write_keys,
	.clear = clear_arrays,
	.shape = find_shape,
	.extent = describe_extent,
	.plane = convert_plane,
};
