/* SPDX-License-Identifier: Apache-2.0 */
/* tomo_slices.c - see node/tomo/tomo_slices.h. */
#include "node/tomo/tomo_slices.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "node/tomo/exam_internal.h"

bool tomo_slices_voxel(const char *text, double ret_voxel[3])
{
	double v[3];
	int used = 0;

	if (sscanf(text, "%lf,%lf,%lf%n", &v[0], &v[1], &v[2], &used) != 3 || text[used])
		return false;
	for (int a = 0; a < 3; a++)
		if (!(v[a] >= SLICES_VOXEL_MIN && v[a] <= SLICES_VOXEL_MAX))
			return false;
	memcpy(ret_voxel, v, sizeof(v));
	return true;
}

static int check_consent(const struct profile_conf *profile, struct err *err)
{
	if (profile->sco)
		return 0;
	return err_set(err, ENOTSUP,
		       "slices in a Hologic SCO object, whose format is not documented by the manufacturer: they are read only "
		       "if the profile '%s' has sco = true",
		       profile->name);
}

/* Check what a person stated about the size of the voxels: needed for an SCO object, and not for another one. */
static int check_voxel(const struct tomo_object *t, const double *voxel, struct err *err)
{
	if (t->sco && !voxel)
		return err_set(err, EBADMSG,
			       "slices in a Hologic SCO object, %ld x %ld pixels: the header has neither Pixel Spacing "
			       "(0028,0030) nor the distance of the slices, and Detector Binning (0018,701A) is that of the "
			       "projections; state the voxels with --voxel COLUMN,ROW,SLICE, in mm",
			       t->info.columns, t->info.rows);
	if (!t->sco && voxel)
		return err_set(err, EBADMSG,
			       "--voxel is for slices in Hologic SCO objects: this object has the size of its voxels");
	return 0;
}

/* Set the geometry from the orientation of the image in the exam. */
static void set_slice_axes(struct tomo_object *t, const struct exam *exam, const double voxel[3])
{
	double across[3], down[3], middle = 0.5 * (double)(t->info.rows - 1) * voxel[1],
				   edge = (exam->columns_toward_chest ? (double)t->info.columns - 0.5 : -0.5) * voxel[0];

	for (int c = 0; c < 3; c++) {
		across[c] = exam->columns_toward_chest ? -exam->axis[0][c] : exam->axis[0][c];
		down[c] = exam->rows_toward_minus_y ? -exam->axis[1][c] : exam->axis[1][c];
		t->corner[c] = -edge * across[c] - middle * down[c];
	}
	tomo_object_place(t, voxel, across, down, exam->axis[2]);
}

/* Write what is assumed about the slices, and sizes that a person can compare. */
static void describe_slices(const struct tomo_object *t, const struct exam *exam, const double voxel[3], char *ret_notes)
{
	struct header h = {.root = dicom_root(t->file), .frame = -1};
	char orientation[64] = "", height[64] = "", gantry[100] = "";
	double thickness;

	header_text(&h, TAG_PATIENT_ORIENTATION, orientation, sizeof(orientation), NULL);
	if (header_double(&h, TAG_BODY_PART_THICKNESS, 0, &thickness, NULL) == 1)
		snprintf(height, sizeof(height), " (the compressed breast has %g mm)", thickness);
	if (!exam->gantry_recorded)
		snprintf(gantry, sizeof(gantry),
			 "; the gantry has the nominal angle of %g degrees, because (0018,1510) is missing", fabs(exam->gantry));
	snprintf(ret_notes, SLICES_NOTES_SIZE,
		 "Slices of a Hologic SCO object (%c %s), %s: with the stated voxels they have %.4g x %.4g mm and are %.4g mm "
		 "high%s. The object does not prove the following, which is assumed: the first frame is the lowest slice, at the "
		 "breast support; the frames have the directions of Patient Orientation (0020,0020), %s%s. The position in the "
		 "patient is unknown: the origin is the middle of the edge of the lowest slice at the chest wall. Values are "
		 "those of the modality for display, without a unit.",
		 exam->laterality, exam->view, t->lower ? "in lower resolution" : "in full resolution",
		 (double)t->info.columns * voxel[0], (double)t->info.rows * voxel[1], (double)t->info.frames * voxel[2], height,
		 orientation, gantry);
}

/* Read an SCO object's orientation, and place its slices. */
static int place_sco(struct tomo_object *t, const char *path, const struct config *config, const double *voxel, char *ret_notes,
		     struct err *err)
{
	char *paths[] = {(char *)path};
	struct exam exam = {.source = EXAM_SCO, .frames_in_file = true, .n_files = 1, .paths = paths, .files = &t->file};
	int rc = exam_find_profile(&exam, config, err);

	if (rc == 0)
		rc = check_consent(exam.profile, err);
	if (rc == 0)
		rc = check_voxel(t, voxel, err);
	if (rc == 0)
		rc = exam_orient(&exam, err);
	if (rc < 0)
		return rc;
	set_slice_axes(t, &exam, voxel);
	describe_slices(t, &exam, voxel, ret_notes);
	return 0;
}

int tomo_slices_open(const char *path, const struct config *config, const double *voxel, struct tomo_object **ret_object,
		     char *ret_notes, struct err *err)
{
	struct tomo_object *t = NULL;
	int rc = tomo_object_open(path, &t, err);

	*ret_notes = '\0';
	if (rc == 0)
		rc = t->sco ? place_sco(t, path, config, voxel, ret_notes, err) : check_voxel(t, voxel, err);
	if (rc < 0) {
		tomo_object_close(t);
		return rc;
	}
	*ret_object = t;
	return 0;
}
