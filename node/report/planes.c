/* SPDX-License-Identifier: Apache-2.0 */
#include "node/report/planes.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "node/tools/export_picture.h"

#define OBLIQUE 0.35 /* a component below this part of the length has no letter: less than about 20 degrees */

void plane_letters(const double direction[3], char ret_letters[PLANE_LETTERS])
{
	static const char letters[3][2] = {{'R', 'L'}, {'A', 'P'}, {'F', 'H'}};
	bool used[3] = {false};
	int n = 0;

	for (int pass = 0; pass < 3; pass++) {
		int most = -1;

		for (int a = 0; a < 3; a++)
			if (!used[a] && fabs(direction[a]) > OBLIQUE && (most < 0 || fabs(direction[a]) > fabs(direction[most])))
				most = a;
		if (most < 0)
			break;
		used[most] = true;
		ret_letters[n++] = letters[most][direction[most] > 0];
	}
	ret_letters[n] = '\0';
}

static int main_axis(const double v[3])
{
	int most = 0;

	for (int a = 1; a < 3; a++)
		if (fabs(v[a]) > fabs(v[most]))
			most = a;
	return most;
}

const char *plane_name(const double normal[3])
{
	static const char *const names[] = {"sagittal", "coronal", "axial"};
	int most = main_axis(normal);

	return fabs(normal[most]) > 0.9 ? names[most] : "oblique";
}

double plane_bar(double width)
{
	double most = width / 3, power;

	if (!(most > 0) || !isfinite(most))
		return 0;
	power = pow(10, floor(log10(most)));
	return power * (most >= 5 * power ? 5 : most >= 2 * power ? 2 : 1);
}

static void negate_vector(const double v[3], double ret[3])
{
	for (int a = 0; a < 3; a++)
		ret[a] = -v[a];
}

/* Set the axes along the width and the height of a picture. */
static void choose_view(const struct image_series *s, struct plane_picture *p)
{
	struct picture_view v = export_picture_view(s, PLANE_STORED);

	for (int plane = PLANE_AXIAL; v.axis[2] != p->axis; plane++)
		v = export_picture_view(s, (enum picture_plane)plane);
	for (int a = 0; a < 2; a++) {
		p->along[a] = v.axis[a];
		p->reversed[a] = v.reversed[a];
	}
}

void plane_picture_plan(const struct image_series *s, int axis, int index, int side, struct plane_picture *ret_picture)
{
	const double *directions[3] = {s->across, s->down, s->normal};
	struct plane_picture p = {.axis = axis, .index = index};
	char(*letters[2][2])[PLANE_LETTERS] = {{&p.left, &p.right}, {&p.top, &p.bottom}};
	int n[2];
	double back[3];

	choose_view(s, &p);
	for (int a = 0; a < 2; a++) {
		n[a] = s->n[p.along[a]];
		p.mm[a] = n[a] * s->spacing[p.along[a]];
		p.step[a] = (n[a] + side - 1) / side;
		plane_letters(directions[p.along[a]], *letters[a][!p.reversed[a]]);
		negate_vector(directions[p.along[a]], back);
		plane_letters(back, *letters[a][p.reversed[a]]);
	}
	p.width = (n[0] + p.step[0] - 1) / p.step[0];
	p.height = (n[1] + p.step[1] - 1) / p.step[1];
	*ret_picture = p;
}

void plane_picture_mark(const struct image_series *s, const int voxel[3], struct plane_picture *p)
{
	for (int a = 0; a < 2; a++) {
		p->at[a] = (voxel[p->along[a]] + 0.5) / s->n[p->along[a]];
		if (p->reversed[a])
			p->at[a] = 1 - p->at[a];
	}
}

/* ---- pixels ---- */

/* Sums of the voxels of each pixel of a picture that is being made. */
struct making {
	float *sum;
	unsigned *n;
};

static void add_value(const struct plane_picture *p, struct making *m, int x, int y, float value)
{
	size_t i = (size_t)(y / p->step[1]) * (size_t)p->width + (size_t)(x / p->step[0]);

	m->sum[i] += value;
	m->n[i]++;
}

/* Add what slice k has of a picture: the slice itself, or a line of a section. */
static void add_slice(const struct image_series *s, const struct plane_picture *p, struct making *m, int k, const float *values)
{
	int deep = p->along[0] == 2 ? 0 : 1, line = 1 - deep, at[2];
	size_t columns = (size_t)s->n[0];

	if (p->axis == 2 && k == p->index)
		for (int j = 0; j < s->n[1]; j++)
			for (int i = 0; i < s->n[0]; i++)
				add_value(p, m, i, j, values[(size_t)j * columns + (size_t)i]);
	if (p->axis == 2)
		return;
	at[deep] = p->reversed[deep] ? s->n[2] - 1 - k : k;
	for (int i = 0, n = s->n[p->along[line]]; i < n; i++) {
		size_t row = (size_t)(p->axis == 1 ? p->index : i), column = (size_t)(p->axis == 1 ? i : p->index);

		at[line] = p->reversed[line] ? n - 1 - i : i;
		add_value(p, m, at[0], at[1], values[row * columns + column]);
	}
}

static void finish_picture(const struct plane_picture *p, const struct making *m, const struct picture_levels *w)
{
	size_t n = (size_t)p->width * (size_t)p->height;

	for (size_t i = 0; i < n; i++) {
		double value = m->n[i] ? (double)m->sum[i] / m->n[i] : w->lo;

		p->grey[i] = (unsigned char)picture_grey(w, value, 255);
	}
}

static int make_room(struct plane_picture *p, struct making *m, struct err *err)
{
	size_t n = (size_t)p->width * (size_t)p->height;

	p->grey = malloc(n);
	m->sum = calloc(n, sizeof(*m->sum));
	m->n = calloc(n, sizeof(*m->n));
	return p->grey && m->sum && m->n ? 0 : err_set(err, ENOMEM, "no memory for a picture of %d x %d", p->width, p->height);
}

int plane_pictures_fill(const struct image_series *s, int image, const struct picture_levels *window,
			struct plane_picture *pictures, size_t n, struct err *err)
{
	struct making *m = calloc(n + 1, sizeof(*m));
	int rc = m ? 0 : err_set(err, ENOMEM, "no memory for %zu pictures", n);

	for (size_t i = 0; rc == 0 && i < n; i++)
		rc = make_room(&pictures[i], &m[i], err);
	for (int k = 0; rc == 0 && k < s->n[2]; k++) {
		const float *values;

		rc = image_series_slice(s, image, k, &values, err);
		for (size_t i = 0; rc == 0 && i < n; i++)
			add_slice(s, &pictures[i], &m[i], k, values);
	}
	for (size_t i = 0; rc == 0 && i < n; i++)
		finish_picture(&pictures[i], &m[i], window);
	for (size_t i = 0; m && i < n; i++) {
		free(m[i].sum);
		free(m[i].n);
	}
	free(m);
	return rc;
}

void plane_pictures_clear(struct plane_picture *pictures, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		free(pictures[i].grey);
		pictures[i].grey = NULL;
	}
}
