/* SPDX-License-Identifier: Apache-2.0 */
/* profile_views.c - one view after the other: stored values to attenuation relative to the largest value that can be stored,
 * which is enough to find beads; no intensity of the unattenuated beam is needed. */
#include "node/tools/profile_views.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/order.h"
#include "node/format/picture.h"
#include "recon/dbt/prep.h"

#define DARKEST 0.05 /* fraction of the values that becomes black; the highest value, of a bead, is white */

struct reader {
	const struct exam *exam;
	uint16_t *raw;
	float *line, *valid;
};

static void close_reader(struct reader *r)
{
	free(r->raw);
	free(r->line);
	free(r->valid);
}

static int open_reader(const struct exam *exam, struct reader *r, struct err *err)
{
	size_t n = (size_t)exam->scan->n_u * (size_t)exam->scan->n_v;

	*r = (struct reader){exam, malloc(n * sizeof(*r->raw)), malloc(n * sizeof(*r->line)), malloc(n * sizeof(*r->valid))};
	if (r->raw && r->line && r->valid)
		return 0;
	close_reader(r);
	return err_set(err, ENOMEM, "no memory for a view of %zu bins", n);
}

/* Read the attenuations of a view into r->line; NaN: no data. */
static int read_view(struct reader *r, int view, struct err *err)
{
	struct prep prep = r->exam->prep;
	struct prep_stats stats;
	int rc = exam_read_view(r->exam, view, r->raw, err);

	if (rc < 0)
		return rc;
	prep.bin = 1;
	prep.i0 = fmax(prep.max_value - prep.offset, 1);
	prep.floor = 0.5 / prep.i0;
	prep.flatfield = NULL;
	rc = prep_view(&prep, r->raw, r->line, r->valid, &stats, err);
	for (size_t i = 0; rc == 0 && i < (size_t)prep.n_u * (size_t)prep.n_v; i++)
		if (!(r->valid[i] > 0))
			r->line[i] = NAN;
	return rc;
}

int profile_views_find(const struct exam *exam, double diameter, const struct monitor *monitor, struct bead_spots **ret_spots,
		       struct err *err)
{
	struct bead_spots *spots = calloc((size_t)exam->n_views, sizeof(*spots));
	struct reader r = {0};
	int rc = spots ? open_reader(exam, &r, err) : err_set(err, ENOMEM, "no memory for %d views", exam->n_views);

	for (int v = 0; rc == 0 && v < exam->n_views; v++) {
		struct bead_picture picture = {exam->scan->n_u, exam->scan->n_v, r.line};
		struct bead_spot *found = NULL;

		monitor_progress(monitor, "find beads", (double)v / exam->n_views);
		if (monitor_cancelled(monitor))
			rc = err_set(err, ECANCELED, "cancelled before view %d of %d", v + 1, exam->n_views);
		if (rc == 0)
			rc = read_view(&r, v, err);
		if (rc < 0)
			break;
		rc = bead_find(&picture, diameter / exam->scan->h[0], &found, &spots[v].n, err);
		spots[v].spots = found;
		if (rc == -ENODATA) /* other views may show beads */
			rc = 0;
		if (rc < 0)
			rc = err_prefix(err, "view %d (%.2f degrees)", v + 1, exam->views[v].angle);
	}
	close_reader(&r);
	if (rc < 0)
		profile_views_free(spots, exam->n_views);
	else
		*ret_spots = spots;
	return rc;
}

void profile_views_free(struct bead_spots *spots, int n_views)
{
	for (int v = 0; spots && v < n_views; v++)
		free((void *)(uintptr_t)spots[v].spots);
	free(spots);
}

/* Reduce a view by taking the largest of n x n values, so that beads stay visible. Returns the number of values that are one. */
static size_t reduce_view(const struct reader *r, int n, int width, int height, float *ret)
{
	size_t used = 0;

	for (int y = 0; y < height; y++)
		for (int x = 0; x < width; x++) {
			float most = NAN;

			for (int k = 0; k < n * n; k++)
				most = fmaxf(most,
					     r->line[((size_t)y * (size_t)n + (size_t)(k / n)) * (size_t)r->exam->scan->n_u +
						     (size_t)x * (size_t)n + (size_t)(k % n)]);
			ret[(size_t)y * (size_t)width + (size_t)x] = most;
			used += !isnan(most);
		}
	return used;
}

static int write_picture(const float *value, size_t used, const int size[2], const char *path, struct err *err)
{
	size_t n = (size_t)size[0] * (size_t)size[1], k = 0;
	float *sorted = malloc((used + 1) * sizeof(*sorted)), lo = 0, hi = 1;
	unsigned char *grey = NULL;
	int rc = sorted ? 0 : err_set(err, ENOMEM, "no memory for a picture of %d x %d", size[0], size[1]);

	if (rc == 0) {
		for (size_t i = 0; i < n; i++)
			if (!isnan(value[i]))
				sorted[k++] = value[i];
		if (k > 0) {
			qsort(sorted, k, sizeof(*sorted), order_floats);
			lo = sorted[(size_t)(DARKEST * (double)(k - 1))];
			hi = fmaxf(sorted[k - 1], lo + 1e-6f);
		}
		rc = picture_greys(&(struct picture_levels){(double)lo, (double)hi, false}, value, n, &grey, err);
		if (rc == 0)
			rc = picture_write(path, size[0], size[1], grey, err);
	}
	free(sorted);
	free(grey);
	return rc;
}

int profile_views_picture(const struct exam *exam, int view, int side, const char *path, int ret_size[2], struct err *err)
{
	const struct scan *s = exam->scan;
	int longer = s->n_u > s->n_v ? s->n_u : s->n_v, n = (longer + side - 1) / side;
	int size[2] = {s->n_u / n, s->n_v / n};
	float *value = malloc((size_t)size[0] * (size_t)size[1] * sizeof(*value));
	struct reader r = {0};
	int rc =
		value ? open_reader(exam, &r, err) : err_set(err, ENOMEM, "no memory for a picture of %d x %d", size[0], size[1]);

	if (rc == 0)
		rc = read_view(&r, view, err);
	if (rc == 0)
		rc = write_picture(value, reduce_view(&r, n, size[0], size[1], value), size, path, err);
	if (rc == 0)
		memcpy(ret_size, size, sizeof(size));
	free(value);
	close_reader(&r);
	return rc;
}
