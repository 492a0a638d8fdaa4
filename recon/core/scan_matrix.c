/* SPDX-License-Identifier: Apache-2.0 */
/* scan_matrix.c - source and pose of a detector from a projection matrix.
 *
 * With M, the first three columns of P, and p, its last one: the source s is where M s + p = 0. The line of bin (u, v) is s + w
 * M^-1 (u, v, 1), so from a bin to its neighbour along u it is w times the first column of M^-1, on every plane of constant w.
 * The distance of bins therefore determines |w|; the sign is that with the detector below the source. */
#include "recon/core/scan.h"

#include <errno.h>
#include <math.h>

#define PITCH_TOLERANCE 0.02 /* relative difference of bins from the pitch; cosine of the angle between u and v */

static double dot(const double a[3], const double b[3])
{
	return a[0] * b[0] + a[1] * b[1] + a[2] * b[2];
}

static void cross(const double a[3], const double b[3], double ret[3])
{
	for (int c = 0; c < 3; c++)
		ret[c] = a[(c + 1) % 3] * b[(c + 2) % 3] - a[(c + 2) % 3] * b[(c + 1) % 3];
}

/* Compute the columns of M^-1. Return false if M has no inverse. */
static bool invert_matrix(const double p[12], double ret_column[3][3])
{
	double row[3][3], volume, size;

	for (int r = 0; r < 3; r++)
		for (int c = 0; c < 3; c++)
			row[r][c] = p[4 * r + c];
	for (int r = 0; r < 3; r++)
		cross(row[(r + 1) % 3], row[(r + 2) % 3], ret_column[r]);
	volume = dot(row[0], ret_column[0]);
	size = sqrt(dot(row[0], row[0]) * dot(row[1], row[1]) * dot(row[2], row[2]));
	if (!(fabs(volume) > 1e-12 * size) || !isfinite(volume))
		return false;
	for (int r = 0; r < 3; r++)
		for (int c = 0; c < 3; c++)
			ret_column[r][c] /= volume;
	return true;
}

bool scan_view_is_level(const struct scan_view *view)
{
	const struct scan_pose *p = &view->pose;

	return !view->posed || (p->step_u[1] == 0 && p->step_u[2] == 0 && p->step_v[0] == 0);
}

/* Return the same view with the detector turned around its middle so that its columns are parallel to x. */
static struct scan_view made_level(const struct scan_view *view, int n_u, int n_v)
{
	struct scan_view level = *view;
	struct scan_pose *p = &level.pose;
	double u = 0.5 * (n_u - 1), v = 0.5 * (n_v - 1), size_u = sqrt(dot(p->step_u, p->step_u)),
	       size_v = sqrt(dot(p->step_v, p->step_v)), in_plane = hypot(p->step_v[1], p->step_v[2]);

	for (int c = 0; c < 3; c++)
		p->origin[c] += u * p->step_u[c] + v * p->step_v[c];
	p->step_u[0] = size_u;
	p->step_u[1] = p->step_u[2] = 0;
	p->step_v[0] = 0;
	p->step_v[1] *= size_v / in_plane;
	p->step_v[2] *= size_v / in_plane;
	for (int c = 0; c < 3; c++)
		p->origin[c] -= u * p->step_u[c] + v * p->step_v[c];
	return level;
}

/* Return how far, in bins, the rays of one view are from the same bins of another, at most. */
static double ray_distance(const struct scan_view *a, const struct scan_view *b, int n_u, int n_v)
{
	const struct scan scan = {.kind = SCAN_DBT, .n_u = n_u, .n_v = n_v};
	double largest = 0, at[3], foot[2];

	for (int corner = 0; corner < 4; corner++) {
		double u = corner & 1 ? n_u - 0.5 : -0.5, v = corner & 2 ? n_v - 0.5 : -0.5;

		scan_bin_at(&scan, a, u, v, at);
		if (!scan_foot(&scan, b, at, foot))
			return INFINITY;
		largest = fmax(largest, hypot(foot[0] - u, foot[1] - v));
	}
	return largest;
}

static int check_squares(const struct scan_pose *p, struct err *err)
{
	double u = sqrt(dot(p->step_u, p->step_u)), v = sqrt(dot(p->step_v, p->step_v)),
	       skew = dot(p->step_u, p->step_v) / (u * v);

	if (fabs(u / v - 1) <= PITCH_TOLERANCE && fabs(skew) <= PITCH_TOLERANCE)
		return 0;
	return err_set(err, EINVAL,
		       "projection matrix: if its bins are %g mm along u, they are %g mm along v with a cosine of %g between the "
		       "two; allowed: squares (within %g)",
		       u, v, skew, PITCH_TOLERANCE);
}

static int check_directions(const struct scan_pose *p, double pitch, struct err *err)
{
	double u = sqrt(dot(p->step_u, p->step_u)), v = sqrt(dot(p->step_v, p->step_v));

	if (p->step_u[0] > 0.5 * pitch && p->step_v[1] > 0.5 * pitch)
		return 0;
	return err_set(err, EINVAL,
		       "projection matrix: u runs along (%.3f, %.3f, %.3f), v along (%.3f, %.3f, %.3f); they must run along +x "
		       "and +y",
		       p->step_u[0] / u, p->step_u[1] / u, p->step_u[2] / u, p->step_v[0] / v, p->step_v[1] / v,
		       p->step_v[2] / v);
}

/* Compute source and pose in the axes of the matrix. In these the detector must be below the source. */
static int decompose_matrix(const double matrix[12], double u, double v, double pitch, struct scan_view *ret_view,
			    struct err *err)
{
	struct scan_view view = {.posed = true};
	double column[3][3], w, middle_z;

	if (!invert_matrix(matrix, column))
		return err_set(err, EINVAL, "projection matrix: its first three columns have no inverse, or are not finite");
	w = pitch / sqrt(sqrt(dot(column[0], column[0]) * dot(column[1], column[1])));
	middle_z = u * column[0][2] + v * column[1][2] + column[2][2];
	w = middle_z > 0 ? -w : w;
	for (int c = 0; c < 3; c++) {
		view.src[c] = -(matrix[3] * column[0][c] + matrix[7] * column[1][c] + matrix[11] * column[2][c]);
		view.pose.step_u[c] = w * column[0][c];
		view.pose.step_v[c] = w * column[1][c];
		view.pose.origin[c] = view.src[c] + w * column[2][c];
		if (!isfinite(view.src[c]) || !isfinite(view.pose.origin[c]))
			return err_set(err, EINVAL, "projection matrix: the source or the detector is not at a finite position");
	}
	*ret_view = view;
	return check_squares(&view.pose, err);
}

int scan_view_from_matrix(const double matrix[12], int n_u, int n_v, double pitch, double level_bins, struct scan_view *ret_view,
			  struct err *err)
{
	struct scan_view view, level;
	int r = decompose_matrix(matrix, 0.5 * (n_u - 1), 0.5 * (n_v - 1), pitch, &view, err);

	if (r == 0)
		r = check_directions(&view.pose, pitch, err);
	if (r < 0)
		return r;
	level = made_level(&view, n_u, n_v);
	*ret_view = ray_distance(&view, &level, n_u, n_v) <= level_bins ? level : view;
	return 0;
}

/* Compute the axes of the scan in those of a matrix at rest: ret[0..2] unit vectors x, y, z; ret[3] the origin. z is toward the
 * source, x away from the chest wall. */
static int axes_at_rest(const double rest[12], const struct scan_matrix_bins *bins, double pitch, double ret[4][3],
			struct err *err)
{
	double edge = bins->edge_u - 0.5, middle = bins->middle_v - 0.5, size = 0, along = 0, toward[3];
	struct scan_view view;
	int r = decompose_matrix(rest, edge, middle, pitch, &view, err);

	if (r < 0)
		return r;
	for (int c = 0; c < 3; c++) {
		ret[0][c] = -view.pose.step_u[c] / sqrt(dot(view.pose.step_u, view.pose.step_u));
		ret[3][c] = view.pose.origin[c] + edge * view.pose.step_u[c] + middle * view.pose.step_v[c];
		toward[c] = view.src[c] - ret[3][c];
	}
	along = dot(view.pose.step_v, ret[0]);
	for (int c = 0; c < 3; c++)
		ret[1][c] = bins->v_sign * (view.pose.step_v[c] - along * ret[0][c]);
	size = sqrt(dot(ret[1], ret[1]));
	for (int c = 0; c < 3; c++)
		ret[1][c] /= size;
	cross(ret[0], ret[1], ret[2]);
	for (int c = 0, flip = dot(ret[2], toward) < 0; flip && c < 3; c++)
		ret[2][c] = -ret[2][c];
	return 0;
}

int scan_matrix_convert(const double rest[12], const double matrix[12], const struct scan_matrix_bins *bins, int n_v,
			double pitch, double ret_matrix[12], struct err *err)
{
	double axes[4][3], moved[3][4], first_u = bins->edge_u - 1 - bins->window_u,
					first_v = 0.5 * (n_v - 1) - bins->window_v - bins->v_sign * (bins->middle_v - 0.5);
	int r = axes_at_rest(rest, bins, pitch, axes, err);

	if (r < 0)
		return r;
	for (int row = 0; row < 3; row++)
		for (int c = 0; c < 4; c++)
			moved[row][c] = dot(matrix + 4 * row, axes[c]) + (c == 3 ? matrix[4 * row + 3] : 0);
	for (int c = 0; c < 4; c++) { /* u = first_u - u', v = first_v + v_sign v' */
		ret_matrix[c] = first_u * moved[2][c] - moved[0][c];
		ret_matrix[4 + c] = first_v * moved[2][c] + bins->v_sign * moved[1][c];
		ret_matrix[8 + c] = moved[2][c];
	}
	return 0;
}
