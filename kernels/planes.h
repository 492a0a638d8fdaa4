/* The planes of a SCAN_PARALLEL, checked and put into groups of equal rise and equal distance; for the devices. */
#ifndef TOMONODE_KERNELS_PLANES_H
#define TOMONODE_KERNELS_PLANES_H

#include "kernels/device.h"
#include "kernels/paths.h"

#ifdef __cplusplus
extern "C" {
#endif

/* What is wrong with a spec's SCAN_PARALLEL, grid and model: EINVAL. */
int planes_check(const struct projection_spec *spec, struct err *err);

/* Groups of at least one plane, in the planes' order; ret_group may be NULL to count. A checked scan only. */
int planes_group(const struct scan *scan, struct plane_group *ret_group);

double planes_largest_rise(const struct scan *scan); /* of |rise| */

#ifdef __cplusplus
}
#endif
#endif
