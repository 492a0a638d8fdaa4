/* SPDX-License-Identifier: Apache-2.0 */
/* The report of a fit of a geometry profile, or of the check of one, in one folder:
 *
 *	report.json     everything as numbers (docs/dbt-calibration.md)
 *	report.html     the same for people, with drawings of the residuals
 *	view.png        the view nearest to 0 degrees, for the page
 *	profile.conf    the profile, a configuration file that `tomonode check` accepts; only of a fit that may be used */
#ifndef TOMONODE_NODE_PROFILE_REPORT_H
#define TOMONODE_NODE_PROFILE_REPORT_H

#include <jansson.h>

#include "node/tools/profile_fit.h"

/* check: the comparison with the profile in use; NULL: a fit. Return the numbers as a new reference. */
json_t *profile_report_json(const struct exam *exam, const struct profile_result *r, const struct profile_constancy *check);
/* Write the files into the folder, which exists. */
int profile_report_write(const struct exam *exam, const struct profile_result *r, const struct profile_constancy *check,
			 const char *folder, struct err *err);

#endif
