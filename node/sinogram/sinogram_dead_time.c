/* SPDX-License-Identifier: Apache-2.0 */
/* sinogram_dead_time.c - what the objects of an acquisition say about counts that were lost to dead time. */
#include <errno.h>

#include "dicom/object/attribute.h"
#include "dicom/object/dicom_tags.h"
#include "node/sinogram/pet_source.h"

#define FACTOR_MOST 100.0

int sinogram_dead_time_factor(const struct sinogram *s, int image, double *ret, struct err *err)
{
	const struct sinogram_part *part = &s->part[SINOGRAM_EMISSION];
	int rc;

	if (s->source->list_mode)
		return 0;
	if (s->frame_part)
		part = &s->frame_part[image][SINOGRAM_EMISSION];
	rc = dicom_get_double(dicom_root(s->files[part->file[0]]), TAG_DEAD_TIME_FACTOR, 0, ret, err);
	if (rc < 0 || (rc > 0 && !(*ret >= 1 && *ret <= FACTOR_MOST)))
		return err_set(err, EBADMSG, "Dead Time Factor (0054,1324) is not a number from 1 to %g", FACTOR_MOST);
	return rc;
}
