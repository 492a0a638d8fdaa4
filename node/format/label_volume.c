/* SPDX-License-Identifier: Apache-2.0 */
/* label_volume.c - see node/format/label_volume.h. */
#include "node/format/label_volume.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "node/base/folder.h"
#include "node/format/volume_file.h"

void label_volume_clear(struct label_volume *v)
{
	free(v->labels);
	*v = (struct label_volume){0};
}

struct taking {
	const char *name;
	struct label_volume *v;
};

static int take_labels(void *ctx, size_t at, const double *values, size_t n, struct err *err)
{
	const struct taking *t = ctx;
	struct label_volume *v = t->v;
	size_t columns = (size_t)v->n[0], rows = (size_t)v->n[1];

	for (size_t i = 0; i < n; i++, at++) {
		if (!(values[i] >= 0 && values[i] <= LABEL_MAX && values[i] == floor(values[i])))
			return err_set(err, EBADMSG,
				       "%s: voxel %zu, %zu, %zu has the value %g; labels are whole numbers from 0 to %d", t->name,
				       at % columns, at / columns % rows, at / columns / rows, values[i], LABEL_MAX);
		v->labels[at] = (uint16_t)values[i];
	}
	return 0;
}

/* Invert the steps, which span a volume. */
static void invert_steps(const double s[3][3], double inverse[3][3])
{
	double determinant = 0;

	for (int a = 0; a < 3; a++)
		for (int c = 0; c < 3; c++) /* rows of the inverse are the cross products of two steps */
			inverse[a][c] = s[(a + 1) % 3][(c + 1) % 3] * s[(a + 2) % 3][(c + 2) % 3] -
					s[(a + 1) % 3][(c + 2) % 3] * s[(a + 2) % 3][(c + 1) % 3];
	for (int c = 0; c < 3; c++)
		determinant += s[0][c] * inverse[0][c];
	for (int a = 0; a < 3; a++)
		for (int c = 0; c < 3; c++)
			inverse[a][c] /= determinant;
}

int label_volume_at(const struct label_volume *v, const double patient[3])
{
	long at[3];

	for (int a = 0; a < 3; a++) {
		double index = 0;

		for (int c = 0; c < 3; c++)
			index += v->inverse[a][c] * (patient[c] - v->corner[c]);
		if (!(index >= -0.5 && index < v->n[a] - 0.5))
			return 0;
		at[a] = (long)floor(index + 0.5);
	}
	return v->labels[((size_t)at[2] * (size_t)v->n[1] + (size_t)at[1]) * (size_t)v->n[0] + (size_t)at[0]];
}

int label_volume_open(const char *path, struct label_volume *ret, struct err *err)
{
	struct volume_file f;
	struct label_volume v = {0};
	int rc = volume_file_open(path, &f, err);

	if (rc == 0 && f.form == VOLUME_INTERFILE)
		rc = err_set(err, ENOTSUP, "%s: labels are read from " VOLUME_FILE_ENDINGS, file_name(path));
	if (rc < 0)
		return rc;
	memcpy(v.n, f.n, sizeof(v.n));
	memcpy(v.corner, f.corner, sizeof(v.corner));
	invert_steps((const double(*)[3])f.step, v.inverse);
	v.labels = malloc(volume_file_count(&f) * sizeof(*v.labels));
	rc = v.labels ? volume_file_read(&f, take_labels, &(struct taking){file_name(path), &v}, err)
		      : err_set(err, ENOMEM, "%s: no memory for %zu voxels", file_name(path), volume_file_count(&f));
	if (rc < 0) {
		label_volume_clear(&v);
		return rc;
	}
	*ret = v;
	return 0;
}
