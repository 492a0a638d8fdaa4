/* SPDX-License-Identifier: Apache-2.0 */
/* michelogram.c - from rings and segments to planes, from planes to rays.
 *
 * A ring pair (i, j) has the sum i + j, which gives its position (z = (sum - (rings-1)) ring_spacing / 2), and the difference i -
 * j of the same parity. Difference d has the sums |d|, |d| + 2, ... 2 (rings-1) - |d|. So
 * - a segment with one difference has rings - |d| planes a whole ring apart;
 * - one with several has differences of both parities, and a plane for each sum from that of the smallest |d| on.
 *
 * A scan is one allocation, as in scan.c: scan, views, planes, radii. */
#include "recon/pet/michelogram.h"
#include "recon/core/scan.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#define PLANES_MAX 65535
#define BINS_MAX 65535
#define ANGLES_MAX 4096
#define DETECTORS_MAX 65535
#define LENGTH_MAX 10000.0 /* mm */
#define TOF_REACH 0.66	   /* fraction of the largest radius that the TOF bins must cover on each side of the middle */

static int smallest_difference(int first, int last)
{
	return first > 0 ? first : last < 0 ? -last : 0;
}

int michelogram_segment_planes(int rings, int first, int last)
{
	int smallest = smallest_difference(first, last);

	if (rings < 1 || rings > MICHELOGRAM_RINGS_MAX || first > last || first <= -rings || last >= rings)
		return 0;
	return first == last ? rings - smallest : 2 * (rings - smallest) - 1;
}

int michelogram_segments(int rings, int span, int largest_difference, struct michelogram_segment **ret_segments, int *ret_n,
			 struct err *err)
{
	int half = span == 2 ? 1 : span / 2, pairs, n; /* segment 0 is -half .. half */
	struct michelogram_segment *list;

	if (rings < 1 || rings > MICHELOGRAM_RINGS_MAX)
		return err_set(err, EINVAL, "michelogram: %d rings; allowed: 1 to %d", rings, MICHELOGRAM_RINGS_MAX);
	if (span < 1 || span > 2 * MICHELOGRAM_RINGS_MAX || (span % 2 == 0 && span != 2))
		return err_set(err, EINVAL, "michelogram: span %d; allowed: odd numbers, and 2", span);
	if (largest_difference < 0 || largest_difference >= rings)
		return err_set(err, EINVAL, "michelogram: largest ring difference %d; allowed with %d rings: 0 to %d",
			       largest_difference, rings, rings - 1);
	if (half > largest_difference)
		return err_set(err, EINVAL, "michelogram: span %d needs ring differences up to at least %d, not %d", span, half,
			       largest_difference);
	pairs = (largest_difference - half) / span;
	n = 2 * pairs + 1;
	if (n > MICHELOGRAM_SEGMENTS_MAX)
		return err_set(err, EINVAL, "michelogram: %d segments; allowed: at most %d", n, MICHELOGRAM_SEGMENTS_MAX);
	list = malloc((size_t)n * sizeof(*list));
	if (!list)
		return err_set(err, ENOMEM, "michelogram: no memory for %d segments", n);
	list[0] = (struct michelogram_segment){-half, half, michelogram_segment_planes(rings, -half, half)};
	for (int i = 0; i < pairs; i++) {
		int first = half + 1 + i * span, last = first + span - 1, planes = michelogram_segment_planes(rings, first, last);

		list[2 * i + 1] = (struct michelogram_segment){first, last, planes};
		list[2 * i + 2] = (struct michelogram_segment){-last, -first, planes};
	}
	*ret_segments = list;
	*ret_n = n;
	return 0;
}

int michelogram_segments_all(int rings, int span, struct michelogram_segment **ret_segments, int *ret_n, struct err *err)
{
	struct michelogram_segment *list = NULL, *more;
	int n = 0, last, planes, r = michelogram_segments(rings, span, rings - 1, &list, &n, err);

	if (r < 0)
		return r;
	last = n > 1 ? list[n - 2].last : list[0].last;
	if (last < rings - 1) {
		more = realloc(list, ((size_t)n + 2) * sizeof(*list));
		if (!more) {
			free(list);
			return err_set(err, ENOMEM, "michelogram: no memory for %d segments", n + 2);
		}
		list = more;
		planes = michelogram_segment_planes(rings, last + 1, rings - 1);
		list[n++] = (struct michelogram_segment){last + 1, rings - 1, planes};
		list[n++] = (struct michelogram_segment){1 - rings, -last - 1, planes};
	}
	*ret_segments = list;
	*ret_n = n;
	return 0;
}

static int check_scanner(const struct michelogram *m, struct err *err)
{
	const struct pet_scanner *s = &m->scanner;

	if (s->rings < 1 || s->rings > MICHELOGRAM_RINGS_MAX)
		return err_set(err, EINVAL, "michelogram: %d rings; allowed: 1 to %d", s->rings, MICHELOGRAM_RINGS_MAX);
	if (!(s->ring_spacing > 0 && s->ring_spacing <= LENGTH_MAX)) /* !(x > 0) also refuses NaN */
		return err_set(err, EINVAL, "michelogram: rings %g mm apart", s->ring_spacing);
	if (!(s->radius > 0 && s->radius <= LENGTH_MAX))
		return err_set(err, EINVAL, "michelogram: rings of %g mm radius", s->radius);
	if (!(s->interaction_depth >= 0 && s->interaction_depth <= LENGTH_MAX))
		return err_set(err, EINVAL, "michelogram: depth of interaction %g mm", s->interaction_depth);
	if (m->n_radial < 1 || m->n_radial > BINS_MAX)
		return err_set(err, EINVAL, "michelogram: %d radial bins; allowed: 1 to %d", m->n_radial, BINS_MAX);
	if (m->n_angles < 1 || m->n_angles > ANGLES_MAX)
		return err_set(err, EINVAL, "michelogram: %d angles; allowed: 1 to %d", m->n_angles, ANGLES_MAX);
	if (!(fabs(m->angle_offset) <= 360))
		return err_set(err, EINVAL, "michelogram: first angle at %g degrees; allowed: -360 to 360", m->angle_offset);
	if (m->arc_corrected && !(s->bin > 0 && s->bin <= LENGTH_MAX))
		return err_set(err, EINVAL, "michelogram: radial bins of %g mm", s->bin);
	if (!m->arc_corrected && (s->detectors < 1 || s->detectors > DETECTORS_MAX))
		return err_set(err, EINVAL, "michelogram: %d detectors in a ring; allowed without arc correction: 1 to %d",
			       s->detectors, DETECTORS_MAX);
	if (!m->arc_corrected && m->n_radial > s->detectors) /* beyond 90 degrees sin() decreases again */
		return err_set(err, EINVAL, "michelogram: %d radial bins of %d detectors, without arc correction", m->n_radial,
			       s->detectors);
	return 0;
}

bool michelogram_tof_reaches(const struct michelogram *m, double *ret_reach, double *ret_largest)
{
	double largest = fmax(michelogram_radius(m, m->n_radial - 1), -michelogram_radius(m, 0));

	*ret_reach = 0.5 * m->tof.n * m->tof.width;
	*ret_largest = fmin(largest, m->scanner.radius + m->scanner.interaction_depth);
	return *ret_reach >= TOF_REACH * *ret_largest;
}

static int check_tof(const struct michelogram *m, struct err *err)
{
	const struct scan_tof *tof = &m->tof;
	double reach, largest;

	if (tof->n == 0)
		return 0;
	if (tof->n < 1 || tof->n > MICHELOGRAM_TOF_MAX)
		return err_set(err, EINVAL, "michelogram: %d TOF bins; allowed: 1 to %d", tof->n, MICHELOGRAM_TOF_MAX);
	if (!(tof->width > 0 && tof->width <= LENGTH_MAX))
		return err_set(err, EINVAL, "michelogram: TOF bins of %g mm", tof->width);
	if (!(tof->sigma > 0 && tof->sigma <= LENGTH_MAX))
		return err_set(err, EINVAL, "michelogram: TOF resolution of %g mm (standard deviation)", tof->sigma);
	if (!michelogram_tof_reaches(m, &reach, &largest))
		return err_set(
			err, EINVAL,
			"michelogram: %d TOF bins of %g mm end %g mm from the middle of the rays, but the radial bins extend "
			"to %g mm: their width is wrong",
			tof->n, tof->width, reach, largest);
	return 0;
}

int michelogram_check(const struct michelogram *m, struct err *err)
{
	size_t planes = 0;
	int rc = check_scanner(m, err);

	if (rc == 0)
		rc = check_tof(m, err);
	if (rc < 0)
		return rc;
	if (m->n_segments < 1 || m->n_segments > MICHELOGRAM_SEGMENTS_MAX || !m->segments)
		return err_set(err, EINVAL, "michelogram: %d segments; allowed: 1 to %d", m->n_segments,
			       MICHELOGRAM_SEGMENTS_MAX);
	for (int i = 0; i < m->n_segments; i++) {
		const struct michelogram_segment *s = &m->segments[i];
		int n = michelogram_segment_planes(m->scanner.rings, s->first, s->last);

		if (n == 0)
			return err_set(err, EINVAL,
				       "michelogram: segment %d of ring differences %d to %d; %d rings have -%d to %d", i,
				       s->first, s->last, m->scanner.rings, m->scanner.rings - 1, m->scanner.rings - 1);
		if (s->n_planes != n)
			return err_set(err, EINVAL,
				       "michelogram: segment %d has %d planes; ring differences %d to %d of %d rings "
				       "have %d",
				       i, s->n_planes, s->first, s->last, m->scanner.rings, n);
		for (int j = 0; j < i; j++)
			if (s->first <= m->segments[j].last && m->segments[j].first <= s->last)
				return err_set(err, EINVAL,
					       "michelogram: segments %d (%d to %d) and %d (%d to %d) share ring "
					       "differences",
					       j, m->segments[j].first, m->segments[j].last, i, s->first, s->last);
		planes += (size_t)n;
	}
	if (planes > PLANES_MAX)
		return err_set(err, EINVAL, "michelogram: %zu planes; allowed: at most %d", planes, PLANES_MAX);
	return 0;
}

size_t michelogram_planes(const struct michelogram *m)
{
	size_t n = 0;

	for (int i = 0; i < m->n_segments; i++)
		n += (size_t)m->segments[i].n_planes;
	return n;
}

size_t michelogram_data_planes(const struct michelogram *m)
{
	return michelogram_planes(m) * (m->tof.n > 0 ? (size_t)m->tof.n : 1);
}

size_t michelogram_size(const struct michelogram *m)
{
	return michelogram_data_planes(m) * michelogram_plane_bins(m);
}

int michelogram_mash(const struct michelogram *m, int factor, struct michelogram *ret, struct err *err)
{
	struct michelogram mashed = *m;

	if (m->tof.n > 0) {
		if (factor < 1 || m->tof.n % factor)
			return err_set(err, EINVAL, "tof_mashing=%d; allowed: numbers that divide the %d TOF bins of the data",
				       factor, m->tof.n);
		mashed.tof.n /= factor;
		mashed.tof.width *= factor;
	}
	*ret = mashed;
	return 0;
}

double michelogram_angle(const struct michelogram *m, double angle)
{
	int views = m->scanner.detectors / 2;
	bool mashed = views > 0 && m->scanner.detectors % (2 * m->n_angles) == 0;

	/* (mash - 1) / 2 views of 180 / views degrees, with mash = views / n_angles */
	return m->angle_offset + angle * 180.0 / m->n_angles + (mashed ? 90.0 / m->n_angles - 90.0 / views : 0);
}

double michelogram_radius(const struct michelogram *m, int t)
{
	int at = t - m->n_radial / 2;

	if (m->arc_corrected)
		return at * m->scanner.bin;
	return (m->scanner.radius + m->scanner.interaction_depth) * sin(at * M_PI / m->scanner.detectors);
}

/* Return the mean of the differences first .. last with the parity of `sum`. */
static double mean_difference(const struct michelogram_segment *s, int sum)
{
	int lo = s->first + ((s->first ^ sum) & 1), hi = s->last - ((s->last ^ sum) & 1);

	return 0.5 * (lo + hi);
}

const struct michelogram_segment *michelogram_direct(const struct michelogram *m, size_t *ret_first)
{
	const struct michelogram_segment *best = NULL;
	size_t first = 0;

	for (int s = 0; s < m->n_segments; first += (size_t)m->segments[s++].n_planes) {
		const struct michelogram_segment *own = &m->segments[s];

		if (best && abs(own->first + own->last) >= abs(best->first + best->last))
			continue;
		best = own;
		*ret_first = first;
	}
	return best;
}

int michelogram_pairs(const struct michelogram *m, int segment, int plane)
{
	const struct michelogram_segment *s = &m->segments[segment];
	int sum = smallest_difference(s->first, s->last) + plane * (s->first == s->last ? 2 : 1),
	    last = 2 * (m->scanner.rings - 1);
	int most = sum < last - sum ? sum : last - sum, n = 0;

	for (int d = s->first; d <= s->last; d++)
		n += ((d ^ sum) & 1) == 0 && abs(d) <= most;
	return n;
}

int michelogram_bin_pairs(const struct michelogram *m, size_t plane)
{
	int views = m->arc_corrected ? 1 : m->scanner.detectors / (2 * m->n_angles), s = 0;

	for (; plane >= (size_t)m->segments[s].n_planes; s++)
		plane -= (size_t)m->segments[s].n_planes;
	return michelogram_pairs(m, s, (int)plane) * (views > 1 ? views : 1);
}

void michelogram_place(const struct michelogram *m, int segment, int plane, double *ret_z, double *ret_rise)
{
	const struct michelogram_segment *s = &m->segments[segment];
	int sum = smallest_difference(s->first, s->last) + plane * (s->first == s->last ? 2 : 1);

	*ret_z = 0.5 * (sum - (m->scanner.rings - 1)) * m->scanner.ring_spacing;
	*ret_rise = 0.5 * mean_difference(s, sum) * m->scanner.ring_spacing;
}

/* Write a segment's planes from ret_plane[at] on; planes of equal rise are consecutive. */
static void segment_planes(const struct michelogram *m, int segment, int number, size_t at, struct scan_plane *ret_plane,
			   int *ret_number)
{
	const struct michelogram_segment *s = &m->segments[segment];
	bool differ = mean_difference(s, 0) != mean_difference(s, 1) && s->first != s->last;
	int passes = differ ? 2 : 1;

	for (int pass = 0; pass < passes; pass++)
		for (int a = pass; a < s->n_planes; a += passes, at++) {
			michelogram_place(m, segment, a, &ret_plane[at].z, &ret_plane[at].rise);
			ret_number[at] = number + a;
		}
}

/* Which rays a scan has: the radial bins first, first + step ..., with the angles turned by this, degrees. */
struct rays {
	int first, step;
	double turned;
};

static int fill_views(const struct michelogram *m, const int *order, double turned, struct scan_view *ret_view, struct err *err)
{
	bool seen[ANGLES_MAX] = {false};

	for (int i = 0; i < m->n_angles; i++) {
		int a = order ? order[i] : i;

		if (a < 0 || a >= m->n_angles)
			return err_set(err, EINVAL, "michelogram: the order contains angle %d of %d", a, m->n_angles);
		if (seen[a])
			return err_set(err, EINVAL, "michelogram: the order contains angle %d twice", a);
		seen[a] = true;
		ret_view[i] = (struct scan_view){0};
		scan_turn(michelogram_angle(m, a) + turned, ret_view[i].turn);
	}
	return 0;
}

static int create_scan(const struct michelogram *m, double fov_radius, const int *order, const struct rays *rays,
		       struct scan **ret_scan, int **ret_plane, struct err *err)
{
	struct scan *s = NULL;
	struct scan_view *views;
	struct scan_plane *planes;
	double *radius, ring;
	int *number = NULL;
	size_t n = 0;
	int rc = michelogram_check(m, err);

	if (rc < 0)
		return rc;
	ring = m->scanner.radius + m->scanner.interaction_depth;
	if (!(fov_radius > 0 && fov_radius < ring))
		return err_set(err, EINVAL, "michelogram: field of view of %g mm radius; the rays end at a radius of %g mm",
			       fov_radius, ring);
	n = michelogram_planes(m);
	s = scan_new_parallel(&(struct scan){.n_u = (int)n,
					     .n_v = (m->n_radial - rays->first + rays->step - 1) / rays->step,
					     .n_views = m->n_angles,
					     .ring_radius = ring,
					     .fov_radius = fov_radius,
					     .tof = m->tof},
			      &views, &planes, &radius);
	number = malloc(n * sizeof(*number));
	if (!s || !number) {
		rc = err_set(err, ENOMEM, "michelogram: no memory for %d angles of %zu planes", m->n_angles, n);
		goto out;
	}
	rc = fill_views(m, order, rays->turned, views, err);
	if (rc < 0)
		goto out;
	for (int i = 0; i < s->n_v; i++)
		radius[i] = michelogram_radius(m, rays->first + i * rays->step);
	n = 0;
	for (int i = 0; i < m->n_segments; i++) {
		segment_planes(m, i, (int)n, n, planes, number);
		n += (size_t)m->segments[i].n_planes;
	}
	*ret_scan = s;
	*ret_plane = number;
	return 0;
out:
	scan_free(s);
	free(number);
	return rc;
}

int scan_create_michelogram(const struct michelogram *m, double fov_radius, const int *order, struct scan **ret_scan,
			    int **ret_plane, struct err *err)
{
	return create_scan(m, fov_radius, order, &(struct rays){0, 1, 0}, ret_scan, ret_plane, err);
}

int scan_create_pairs(const struct michelogram *m, double fov_radius, int first, struct scan **ret_scan, int **ret_plane,
		      struct err *err)
{
	bool odd = (first - m->n_radial / 2) % 2 != 0;
	struct rays rays = {first, 2, odd ? -180.0 / m->scanner.detectors : 0};

	return create_scan(m, fov_radius, NULL, &rays, ret_scan, ret_plane, err);
}
