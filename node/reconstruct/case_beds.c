/* SPDX-License-Identifier: Apache-2.0 */
/* case_beds.c - see node/reconstruct/case_beds.h. */
#include "node/reconstruct/case_beds.h"
#include "node/base/sentence.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#define FEW 0.15     /* counts of a slice between beds, relative to the middle of bed 1: fewer are noted */
#define FWHM 2.35482 /* of a Gaussian, in standard deviations */

static size_t slice_size(const struct grid *g)
{
	return (size_t)g->n[0] * (size_t)g->n[1];
}

int case_beds_plan(struct case_beds *c, const struct sinogram *s, const struct michelogram *m, const struct grid *bed,
		   struct err *err)
{
	if (s->images.of != PET_BEDS)
		return 0;
	pet_join_clear(&c->join);
	return pet_join_plan(&s->images, s->axis, bed, m, s->facts.half_life > 0 ? M_LN2 / s->facts.half_life : 0, &c->join, err);
}

size_t case_beds_bytes(const struct case_beds *c)
{
	const struct pet_join *j = &c->join;

	return j->n > 0 ? slice_size(&j->grid) * (size_t)(j->grid.n[2] + j->bed.n[2]) * sizeof(float) : 0;
}

int case_beds_allocate(struct case_beds *c, float **ret_joint, struct err *err)
{
	const struct pet_join *j = &c->join;

	*ret_joint = calloc(slice_size(&j->grid) * (size_t)j->grid.n[2], sizeof(**ret_joint));
	c->volume = malloc(slice_size(&j->bed) * (size_t)j->bed.n[2] * sizeof(*c->volume));
	if (*ret_joint && c->volume)
		return 0;
	return err_set(err, ENOMEM, "no memory for %d beds, together %d slices of %d x %d", j->n, j->grid.n[2], j->grid.n[0],
		       j->grid.n[1]);
}

/* ---- description ---- */

/* Name the beds whose slices lie between those of bed 1, and the width of the smoothing. */
static void note_interpolated(const struct pet_join *j, char *text, size_t size)
{
	double most = 0;
	int n = 0;

	for (int b = 0; b < j->n; b++) {
		double share = j->part[b].shift - floor(j->part[b].shift);

		n += j->part[b].interpolated;
		most = j->part[b].interpolated ? fmax(most, share * (1 - share)) : most;
	}
	if (n == 0)
		return;
	sentence_add(
		text, size,
		"%d of %d beds are not whole slices from bed 1: interpolated linearly, as smoothed along z by at most %.2g mm "
		"FWHM.",
		n, j->n, FWHM * sqrt(most) * j->bed.h[2]);
}

/* Say how few counts the slices between the middles of the outermost beds have. */
static void note_few(const struct pet_join *j, char *text, size_t size)
{
	int lo = j->grid.n[2], hi = 0;
	double least = INFINITY;

	for (int b = 0; b < j->n; b++) {
		int middle = (j->part[b].first + j->part[b].end) / 2;

		lo = middle < lo ? middle : lo;
		hi = middle > hi ? middle : hi;
	}
	for (int k = lo; k <= hi; k++)
		least = fmin(least, j->counted[k]);
	if (!(least < FEW))
		return;
	sentence_add(
		text, size,
		"The beds overlap little: a slice between them has %.2g %% of the counts of the middle of bed 1, and more noise.",
		100 * least);
}

void case_beds_note(const struct case_beds *c, const struct sinogram *s, char *text, size_t size)
{
	if (s->images.of != PET_BEDS)
		return;
	note_interpolated(&c->join, text, size);
	note_few(&c->join, text, size);
}

json_t *case_beds_details(const struct case_beds *c, const struct sinogram *s, const double *counts)
{
	json_t *all = c->join.n > 0 ? json_array() : json_null();

	for (int b = 0; b < c->join.n; b++) {
		const struct pet_image *bed = &s->images.image[b];

		json_array_append_new(
			all, json_pack("{s:f, s:f, s:[f,f,f], s:f, s:i, s:i, s:b}", "start", (double)bed->time.start / 1000,
				       "duration", (double)pet_images_duration(&s->images, b) / 1000, "centre", bed->centre[0],
				       bed->centre[1], bed->centre[2], "counts", counts[b], "first_slice", c->join.part[b].first,
				       "slices", c->join.bed.n[2], "interpolated", c->join.part[b].interpolated));
	}
	return all;
}

void case_beds_clear(struct case_beds *c)
{
	pet_join_clear(&c->join);
	free(c->volume);
	*c = (struct case_beds){0};
}
