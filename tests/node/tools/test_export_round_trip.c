/* SPDX-License-Identifier: Apache-2.0 */
/* Random volumes in random places: what is exported is read back by another reader of this program, voxel by voxel where it is in
 * the patient; and pictures show each plane where its name says. */
#include "node/format/label_volume.h"
#include "node/format/picture.h"
#include "node/tools/export_image.h"
#include "node/tools/export_picture.h"
#include "tests/node/report/volume_fixture.h"

static char folder[64];

static double random_real(double lo, double hi)
{
	return lo + (hi - lo) * rand() / RAND_MAX;
}

/* Two random directions at a right angle to each other, and the third. */
static void random_axes(struct image_series *s)
{
	double along = 0, length = 0, across = 0;

	for (int c = 0; c < 3; c++) {
		s->across[c] = random_real(-1, 1);
		s->down[c] = random_real(-1, 1);
		across += s->across[c] * s->across[c];
	}
	for (int c = 0; c < 3; c++) {
		s->across[c] /= sqrt(across);
		along += s->across[c] * s->down[c];
	}
	for (int c = 0; c < 3; c++) {
		s->down[c] -= along * s->across[c];
		length += s->down[c] * s->down[c];
	}
	for (int c = 0; c < 3; c++)
		s->down[c] /= sqrt(length);
	for (int c = 0; c < 3; c++)
		s->normal[c] = s->across[(c + 1) % 3] * s->down[(c + 2) % 3] - s->across[(c + 2) % 3] * s->down[(c + 1) % 3];
}

static struct image_series *random_volume(void)
{
	struct image_series *s = volume_make(1 + rand() % 7, 1 + rand() % 6, 1 + rand() % 5, random_real(0.2, 5),
					     random_real(0.2, 5), random_real(0.2, 5));

	random_axes(s);
	for (int c = 0; c < 3; c++)
		s->corner[c] = random_real(-300, 300);
	for (int i = 0; i < s->n[0] * s->n[1] * s->n[2]; i++)
		s->values[i] = (float)(rand() % 65536);
	return s;
}

/* Each voxel's value is at its centre, and up to nearly half a voxel around it. */
static void compare(const struct image_series *s, const char *path)
{
	struct label_volume v GOES(label_volume_clear) = {0};
	struct err err = {0};

	assert_done(label_volume_open(path, &v, &err), &err);
	for (int k = 0; k < s->n[2]; k++)
		for (int j = 0; j < s->n[1]; j++)
			for (int i = 0; i < s->n[0]; i++) {
				double at[3] = {i + random_real(-0.49, 0.49), j + random_real(-0.49, 0.49),
						k + random_real(-0.49, 0.49)},
				       p[3];

				for (int c = 0; c < 3; c++)
					p[c] = s->corner[c] + at[0] * s->spacing[0] * s->across[c] +
					       at[1] * s->spacing[1] * s->down[c] + at[2] * s->spacing[2] * s->normal[c];
				if (label_volume_at(&v, p) != (int)*volume_at(s, i, j, k))
					fail_msg("%s: voxel %d, %d, %d is %d, not %g", path, i, j, k, label_volume_at(&v, p),
						 (double)*volume_at(s, i, j, k));
			}
}

TEST(images)
{
	static const struct {
		const char *name;
		bool metaimage, compress;
	} forms[] = {{"a.nii", false, false}, {"a.nii.gz", false, false}, {"a.mha", true, false},
		     {"a.mha", true, true},   {"a.mhd", true, false},	  {"a.mhd", true, true}};
	unsigned seed = test_seed();

	for (unsigned round = 0; round < (test_tier() == 2 ? 200u : 12u); round++)
		for (size_t f = 0; f < sizeof(forms) / sizeof(forms[0]); f++) {
			struct image_series *s;
			struct err err = {0};
			char path[100];

			srand(seed + 7 * round);
			s = random_volume();
			snprintf(path, sizeof(path), "%s/%s", folder, forms[f].name);
			assert_done((forms[f].metaimage ? export_metaimage(s, path, forms[f].compress, &err)
							: export_nifti(s, path, &err)),
				    &err);
			compare(s, path);
		}
}

/* A voxel that is bright is at its place in the picture of every direction: left of the patient on the right, head and front up.
 */
TEST(pictures)
{
	unsigned seed = test_seed();
	const int n[3] = {5, 6, 7};

	for (unsigned round = 0; round < 10; round++) {
		struct image_series *s = volume_make(n[0], n[1], n[2], 1, 1, 1);
		int at[3];

		srand(seed + round);
		for (int a = 0; a < 3; a++)
			at[a] = rand() % n[a];
		*volume_at(s, at[0], at[1], at[2]) = 1;
		for (int plane = PLANE_AXIAL; plane <= PLANE_SAGITTAL; plane++) {
			/* slices: from feet to head, front to back, right to left; columns and rows of the bright pixel */
			const int slice = plane == PLANE_AXIAL ? at[2] : plane == PLANE_CORONAL ? at[1] : at[0];
			const int column = plane == PLANE_SAGITTAL ? at[1] : at[0];
			const int row = plane == PLANE_AXIAL ? at[1] : n[2] - 1 - at[2];
			const struct picture_choice choice = {.plane = plane,
							      .slice = slice + 1,
							      .image = 1,
							      .window = WINDOW_GIVEN,
							      .range = {0, 1},
							      .bits = 8};
			struct picture_report report;
			struct picture p GOES(picture_clear) = {0};
			struct err err = {0};
			char path[100];

			snprintf(path, sizeof(path), "%s/p.png", folder);
			if (export_pictures(s, &choice, path, &report, &err) < 0 || picture_read(path, &p, &err) < 0)
				fail_msg("%s", err.msg);
			for (int y = 0; y < p.height; y++)
				for (int x = 0; x < p.width; x++)
					if ((p.value[y * p.width + x] > 0.5f) != (x == column && y == row))
						fail_msg("plane %d of voxel %d, %d, %d: pixel %d, %d is %g", plane, at[0], at[1],
							 at[2], x, y, (double)p.value[y * p.width + x]);
		}
	}
}

static int start(void **state)
{
	test_folder(folder, sizeof(folder));
	return 0;
}

TESTS_SETUP(start, NULL);
