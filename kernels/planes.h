/* SPDX-License-Identifier: Apache-2.0 */
/* Check the planes of a SCAN_PARALLEL and put them into groups of equal rise and equal distance; used by the devices. */
#ifndef TOMONODE_KERNELS_PLANES_H
#define TOMONODE_KERNELS_PLANES_H

#include "kernels/device.h"
#include "kernels/paths.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Check the scan (a SCAN_PARALLEL), the grid and the model of `spec`. EINVAL: one is invalid, or they do not fit together. */
int planes_check(const struct projection_spec *spec, struct err *err);

/* Divide the planes, in their order, into groups of equal rise and equal distance; return the number of groups. ret_group may be
 * NULL: then the groups are only counted. The scan must have passed planes_check(). */
int planes_group(const struct scan *scan, struct plane_group *ret_group);

/* Check the time of flight of `spec`. EINVAL: its scan or its model is invalid with time of flight, or does not support it. */
int planes_check_tof(const struct projection_spec *spec, struct err *err);

double planes_max_abs_rise(const struct scan *scan); /* the largest |rise|, mm */

#ifdef __cplusplus
}
#endif
#endif
