/* SPDX-License-Identifier: Apache-2.0 */
/* The known activity of a uniform phantom, by which the calibration factor of a scanner is measured: a PET series of it in Bq/ml that
 * was made with the Dose Calibration Factor C, and whose mean is m where the activity is a, has the factor C a / m. */
#ifndef TOMONODE_NODE_SERIES_ACTIVITY_H
#define TOMONODE_NODE_SERIES_ACTIVITY_H

#include "kernels/err.h"

struct series_activity {
	double at_start;    /* Bq/ml at the time to which the decay of the series is corrected */
	double calibration; /* of the series, (Bq/ml) per (count per second and mm of ray) */
};

/* Read "BQML", the activity at that time, or "BQML,YYYYMMDDHHMMSS", that at another one; path: of an object of the series. EINVAL:
 * another form; EBADMSG: the object does not have what is needed. */
int series_activity_read(const char *text, const char *path, struct series_activity *ret, struct err *err);

#endif
