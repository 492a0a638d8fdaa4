/* SPDX-License-Identifier: Apache-2.0 */
/* michelogram_pairs.c - the tables behind the numbering of planes.
 *
 * Plane a of a segment has the sum smallest + a step of its ring numbers, with step 1, or 2 if the segment has one difference
 * (michelogram.c). So a ring pair of this segment is in the plane (number of the segment's first plane) + (sum - smallest) /
 * step; a sum has the parity of its difference, and with step 2 also that of `smallest`. */
#include "recon/pet/michelogram_pairs.h"

#include <errno.h>

static int smallest_of(const struct michelogram_segment *s)
{
	return s->first > 0 ? s->first : s->last < 0 ? -s->last : 0;
}

static int step_of(const struct michelogram_segment *s)
{
	return s->first == s->last ? 2 : 1;
}

static int check_pairs(const struct michelogram *m, struct err *err)
{
	int n = m->scanner.detectors, rc = michelogram_check(m, err);

	if (rc < 0)
		return rc;
	if (m->arc_corrected)
		return err_set(err, EINVAL, "michelogram: the bins of arc-corrected sinograms are not pairs of detectors");
	if (n < 2 || n % 2)
		return err_set(err, EINVAL, "michelogram: %d detectors in a ring; an even number is needed", n);
	if (n / 2 % m->n_angles)
		return err_set(err, EINVAL, "michelogram: %d angles of %d detectors; the %d views are not a multiple of them",
			       m->n_angles, n, n / 2);
	return 0;
}

int michelogram_index_init(const struct michelogram *m, struct michelogram_index *ret, struct err *err)
{
	int rc = check_pairs(m, err), plane = 0;

	if (rc < 0)
		return rc;
	*ret = (struct michelogram_index){.rings = m->scanner.rings,
					  .detectors = m->scanner.detectors,
					  .n_radial = m->n_radial,
					  .n_angles = m->n_angles,
					  .mash = m->scanner.detectors / 2 / m->n_angles,
					  .n_segments = m->n_segments,
					  .segments = m->segments};
	for (int i = 0; i < m->n_segments; i++) {
		const struct michelogram_segment *s = &m->segments[i];
		int step = step_of(s);

		for (int d = s->first; d <= s->last; d++) {
			ret->difference[d + ret->rings - 1].step = step;
			ret->difference[d + ret->rings - 1].base = plane - smallest_of(s) / step;
		}
		plane += s->n_planes;
	}
	ret->n_planes = plane;
	return 0;
}

struct michelogram_rings michelogram_plane_rings(const struct michelogram_index *x, int plane)
{
	const struct michelogram_segment *s = x->segments;
	struct michelogram_rings r;
	int reach, lo, hi;

	while (plane >= s->n_planes)
		plane -= s++->n_planes;
	r.sum = smallest_of(s) + plane * step_of(s);
	reach = r.sum < x->rings ? r.sum : 2 * (x->rings - 1) - r.sum; /* largest difference of rings with this sum */
	lo = s->first > -reach ? s->first : -reach;
	hi = s->last < reach ? s->last : reach;
	r.difference = lo + ((lo ^ r.sum) & 1);
	r.n = (hi - r.difference) / 2 + 1;
	return r;
}
