/* SPDX-License-Identifier: Apache-2.0 */
/* exam_edges.c - compare the orientation of the image with the pixels: the breast is at the edge of the chest wall. An image that
 * has air all along this edge, and the object at a part of the opposite one, is probably turned or mirrored. An opposite edge
 * that is dark everywhere tells nothing, because a collimator's shadow is. */
#include "node/tomo/exam_internal.h"

#define STRIP 0.02     /* of the columns, at either edge */
#define BRIGHT 0.7     /* of the air: darker is no air, whatever its open field */
#define DARK 0.5       /* of the air: this is object */
#define WALL_AIR 0.98  /* least share of air along the chest wall */
#define FAR_OBJECT 0.1 /* least share of object at the opposite edge */
#define FAR_AIR 0.05   /* least share of air there */

/* Return the mean intensity of columns of a row that have data; -1: none has. */
static double row_mean(const struct prep *p, const uint16_t *row, int first, int n)
{
	double sum = 0;
	int count = 0;

	for (int u = first; u < first + n; u++)
		if (!p->has_padding || row[u] < p->padding_lo || row[u] > p->padding_hi) {
			sum += exam_value_intensity(p, row[u]);
			count++;
		}
	return count ? sum / count : -1;
}

/* Count the rows with data, and those brighter and darker than parts of `air`, in a strip of columns. */
static void count_rows(const struct prep *p, const uint16_t *raw, int first, int n, double air, int ret[3])
{
	ret[0] = ret[1] = ret[2] = 0;
	for (int v = 0; v < p->n_v; v += exam_row_step(p)) {
		double mean = row_mean(p, raw + (size_t)v * (size_t)p->n_u, first, n);

		ret[0] += mean >= 0;
		ret[1] += mean > BRIGHT * air;
		ret[2] += mean >= 0 && mean < DARK * air;
	}
}

bool exam_wall_is_air(const struct prep *p, const uint16_t *raw)
{
	int n = (int)fmax(1, STRIP * p->n_u), wall[3], far[3];
	double air = 0;

	for (int v = 0; v < p->n_v; v += exam_row_step(p)) { /* air is brighter than all else, wherever it is */
		const uint16_t *row = raw + (size_t)v * (size_t)p->n_u;

		air = fmax(air, fmax(row_mean(p, row, 0, n), row_mean(p, row, p->n_u - n, n)));
	}
	count_rows(p, raw, 0, n, air, wall);
	count_rows(p, raw, p->n_u - n, n, air, far);
	return air > 0 && wall[0] > 0 && wall[1] >= WALL_AIR * wall[0] && far[2] >= FAR_OBJECT * far[0] &&
	       far[1] >= FAR_AIR * far[0];
}

void exam_warn_edges(struct exam *exam, const struct view_air *air)
{
	struct header h = exam_header(exam, 0);
	char orientation[65];
	int n = 0;

	for (int i = 0; i < exam->n_views; i++)
		n += air[i].wall_is_air;
	if (n == 0)
		return;
	if (header_text(&h, TAG_PATIENT_ORIENTATION, orientation, sizeof(orientation), NULL) == 1)
		exam_warn(exam,
			  "The breast is at the edge that is opposite the chest wall by Patient Orientation (0020,0020), '%s', "
			  "and air is along the chest wall, in %d of %d projections: is the image turned or mirrored?",
			  orientation, n, exam->n_views);
	else
		exam_warn(
			exam,
			"The breast is at the edge that is opposite the chest wall by chest_wall of the profile '%s', and air is "
			"along the chest wall, in %d of %d projections.",
			exam->profile->name, n, exam->n_views);
}
