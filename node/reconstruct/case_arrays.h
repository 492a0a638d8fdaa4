/* SPDX-License-Identifier: Apache-2.0 */
/* The arrays that a case is reconstructed from, for other programs: FOLDER/case.json and ROLE.f32, ROLE.i32 (docs/library.md).
 *
 * - Values are those that the session of a reconstruction gets, with all corrections of the protocol, little endian, in C order.
 * - case.json has the members of struct tn_pet, tn_lines, tn_views or tn_parallel of recon/api/tomonode.h by their names, and no
 *   attribute of the patient or the study.
 * - Either all files appear, case.json last, or none. */
#ifndef TOMONODE_NODE_CASE_ARRAYS_H
#define TOMONODE_NODE_CASE_ARRAYS_H

#include <jansson.h>

#include "node/base/atomic_file.h"
#include "node/config/config.h"
#include "recon/core/scan.h"
#include "recon/dbt/dbt.h"
#include "recon/parallel/parallel.h"

#define CASE_ARRAYS_MAX 8
#define CASE_ARRAYS_AXES 4

struct case_arrays {
	const char *folder;			       /* created with the first array */
	json_t *json;				       /* of case.json; owned */
	struct atomic_file *file[CASE_ARRAYS_MAX + 1]; /* the last one is that of the array that is being written */
	size_t n;
};

/* Begin an array: of float32, or if is_int of int32, with the axes of `shape` that are not 0. Then add its values, in parts. */
int case_arrays_open(struct case_arrays *a, const char *role, const char *unit, bool is_int, const size_t shape[CASE_ARRAYS_AXES],
		     struct err *err);
int case_arrays_add(struct case_arrays *a, const void *values, size_t n, struct err *err);

/* The values of a DICOM result: scale x + offset. */
struct case_scale {
	double scale, offset;
	const char *unit;
};

/* Add what describes the reconstruction: keys of the protocol that differ from their defaults and have an effect, for tn_recon_new()
 * (with `more` in front), the grid, and the values of a result. */
void case_arrays_describe(struct case_arrays *a, const struct protocol_conf *protocol, const char *more, const struct grid *g,
			  const struct case_scale *scale);
void case_arrays_grid(struct case_arrays *a, const struct grid *g); /* the grid alone */
json_t *case_arrays_tof(const struct scan_tof *tof);		    /* struct tn_tof; null: none */

/* Add a tomosynthesis: line integrals and validity of each view, as passed to dbt_view_end(), one behind the other. detector: as of
 * dbt_plan(). */
int case_arrays_views(struct case_arrays *a, const struct scan *detector, const struct dbt_plan *plan, float *const *views,
		      struct err *err);
/* Add a scan of parallel beams: [slice][angle][radial]. unit: of the line integrals. */
int case_arrays_parallel(struct case_arrays *a, const struct parallel_scan *p, const char *unit, const float *lines,
			 struct err *err);

/* Write case.json, and finish all files; a->json remains. */
int case_arrays_end(struct case_arrays *a, struct err *err);
void case_arrays_clear(struct case_arrays *a); /* what was not finished is removed */

#endif
