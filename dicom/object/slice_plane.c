/* SPDX-License-Identifier: Apache-2.0 */
#include "dicom/object/slice_plane.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "dicom/object/attribute.h"
#include "dicom/object/dicom_tags.h"

static double dot(const double a[3], const double b[3])
{
	return a[0] * b[0] + a[1] * b[1] + a[2] * b[2];
}

int slice_plane_read(const struct dicom_item *root, struct slice_plane *ret, struct err *err)
{
	struct slice_plane p = {0};
	const double *across = p.cosines, *down = p.cosines + 3;
	int rc = attribute_numbers(root, TAG_IMAGE_ORIENTATION_PATIENT, p.cosines, 6, err);

	if (rc == 0)
		rc = attribute_numbers(root, TAG_PIXEL_SPACING, p.spacing, 2, err);
	if (rc == 0 &&
	    (dicom_get_int(root, TAG_ROWS, 0, &p.rows, NULL) != 1 || dicom_get_int(root, TAG_COLUMNS, 0, &p.columns, NULL) != 1))
		rc = err_set(err, EBADMSG, "no %s or %s", tag_text(TAG_ROWS), tag_text(TAG_COLUMNS));
	if (rc < 0)
		return rc;
	if (!(p.spacing[0] > 0 && p.spacing[1] > 0) || p.rows < 1 || p.columns < 1)
		return err_set(err, EBADMSG, "%ld x %ld pixels of %g x %g mm", p.columns, p.rows, p.spacing[1], p.spacing[0]);
	if (fabs(dot(across, across) - 1) > SLICE_UNIT_TOLERANCE || fabs(dot(down, down) - 1) > SLICE_UNIT_TOLERANCE ||
	    fabs(dot(across, down)) > SLICE_UNIT_TOLERANCE)
		return err_set(err, EBADMSG, "%s: %g\\%g\\%g and %g\\%g\\%g are not orthogonal unit vectors",
			       tag_text(TAG_IMAGE_ORIENTATION_PATIENT), across[0], across[1], across[2], down[0], down[1],
			       down[2]);
	dicom_get_text(root, TAG_SERIES_INSTANCE_UID, p.series, sizeof(p.series), NULL);
	dicom_get_text(root, TAG_FRAME_OF_REFERENCE_UID, p.frame_of_reference, sizeof(p.frame_of_reference), NULL);
	*ret = p;
	return 0;
}

int slice_plane_compare(const struct slice_plane *first, const struct slice_plane *p, struct err *err)
{
	if (strcmp(p->series, first->series) != 0)
		return err_set(err, EBADMSG, "two series, %s and %s: give one", first->series, p->series);
	if (strcmp(p->frame_of_reference, first->frame_of_reference) != 0)
		return err_set(err, EBADMSG, "its frame of reference is \"%s\", that of the slices before it \"%s\"",
			       p->frame_of_reference, first->frame_of_reference);
	if (p->columns != first->columns || p->rows != first->rows)
		return err_set(err, EBADMSG, "%ld x %ld pixels, %ld x %ld in the slices before it", p->columns, p->rows,
			       first->columns, first->rows);
	for (int c = 0; c < 2; c++)
		if (fabs(p->spacing[c] - first->spacing[c]) > 1e-4)
			return err_set(err, EBADMSG, "%g\\%g mm between pixels, %g\\%g in the slices before it", p->spacing[0],
				       p->spacing[1], first->spacing[0], first->spacing[1]);
	for (int c = 0; c < 6; c++)
		if (fabs(p->cosines[c] - first->cosines[c]) > SLICE_UNIT_TOLERANCE)
			return err_set(err, EBADMSG, "%s differs from that of the slices before it",
				       tag_text(TAG_IMAGE_ORIENTATION_PATIENT));
	return 0;
}

void slice_plane_normal(const struct slice_plane *p, double ret_normal[3])
{
	const double *across = p->cosines, *down = p->cosines + 3;

	for (int c = 0; c < 3; c++)
		ret_normal[c] = across[(c + 1) % 3] * down[(c + 2) % 3] - across[(c + 2) % 3] * down[(c + 1) % 3];
}

int slice_place_read(const struct dicom_item *root, const double normal[3], size_t file, struct slice_place *ret, struct err *err)
{
	int rc = attribute_numbers(root, TAG_IMAGE_POSITION_PATIENT, ret->at, 3, err);

	ret->sop_instance[0] = '\0';
	dicom_get_text(root, TAG_SOP_INSTANCE_UID, ret->sop_instance, sizeof(ret->sop_instance), NULL);
	ret->depth = dot(ret->at, normal);
	ret->file = file;
	return rc;
}

static int by_name(const void *a, const void *b)
{
	const struct slice_place *x = a, *y = b;
	int difference = strcmp(x->sop_instance, y->sop_instance);

	return difference ? difference : (x->file > y->file) - (x->file < y->file);
}

size_t slice_places_unique(void *list, size_t n, size_t size)
{
	char *all = list;
	size_t kept = 0;

	qsort(list, n, size, by_name);
	for (size_t i = 0; i < n; i++) {
		const struct slice_place *one = (const void *)(all + i * size), *last = (const void *)(all + (kept - 1) * size);

		if (kept > 0 && !strcmp(last->sop_instance, one->sop_instance))
			continue;
		memmove(all + kept * size, one, size);
		kept++;
	}
	return kept;
}
