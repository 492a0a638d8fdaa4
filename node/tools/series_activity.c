/* SPDX-License-Identifier: Apache-2.0 */
/* series_activity.c - see node/tools/series_activity.h. */
#include "node/tools/series_activity.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "dicom/object/dicom_tags.h"
#include "node/base/folder.h"
#include "node/sinogram/sinogram.h"

#define DAY 8 /* digits of a date */

/* Return the factor from the activity at a moment to that at the start of the series; NaN: the header does not tell it. */
static double decay_since(const char *moment, const struct pet_facts *f)
{
	char date[DAY + 1];
	double then, start;

	snprintf(date, sizeof(date), "%s", moment);
	if (!pet_facts_moment(date, moment + DAY, &then) || !pet_facts_moment(f->series_date, f->series_time, &start) ||
	    !(f->half_life > 0))
		return NAN;
	return exp2((then - start) / f->half_life);
}

static int check_series(const struct dicom_item *root, const struct pet_facts *f, struct err *err)
{
	char units[17] = "", decay[17] = "";

	dicom_get_text(root, TAG_UNITS, units, sizeof(units), NULL);
	dicom_get_text(root, TAG_DECAY_CORRECTION, decay, sizeof(decay), NULL);
	if (strcmp(units, "BQML") != 0 || strcmp(decay, "START") != 0 || !(f->calibration > 0))
		return err_set(
			err, EBADMSG,
			"Units (0054,1001) are \"%s\", Decay Correction (0054,1102) is \"%s\", and Dose Calibration Factor (0054,1322) is "
			"%s; --activity needs BQML, START and a factor: reconstruct the phantom with any calibration, such as 1",
			units, decay, f->calibration > 0 ? "there" : "missing");
	return 0;
}

int series_activity_read(const char *text, const char *path, struct series_activity *ret, struct err *err)
{
	struct dicom_file *file = NULL;
	struct pet_facts f;
	char *end;
	double activity = strtod(text, &end), decay = 1;
	int rc;

	if (end == text || !(activity > 0) || isinf(activity) || (*end && (*end != ',' || strlen(end + 1) < DAY + 2)))
		return err_set(err, EINVAL, "--activity %s: not of the form BQML[,YYYYMMDDHHMMSS] with BQML above 0", text);
	rc = dicom_open(path, &file, err);
	if (rc < 0)
		return err_prefix(err, "%s", file_name(path));
	pet_facts_read(dicom_root(file), &f);
	rc = check_series(dicom_root(file), &f, err);
	dicom_close(file);
	if (rc == 0 && *end)
		decay = decay_since(end + 1, &f);
	if (rc == 0 && !(decay > 0 && isfinite(decay)))
		rc = err_set(err, EBADMSG, "--activity %s: the time is none, or the series has no start or no half-life", text);
	if (rc == 0)
		*ret = (struct series_activity){activity * decay, f.calibration};
	return rc;
}
