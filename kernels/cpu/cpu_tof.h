/* SPDX-License-Identifier: Apache-2.0 */
/* Private to the CPU device: time of flight along the transaxial paths (kernels/tof.h).
 *
 * - The bins of a point that may have a weight are its window: a fixed number of bins, of which some may be outside [0, n).
 * - The weights of a window depend only on where in its last bin the distribution of the point ends. A table has them for
 *   TOF_TABLE_STEPS positions per sigma; between two positions they are interpolated. The error of a weight is below 2e-7.
 * - Adjacent steps with the same window are a run. Forward: the vector of a step (a value for each plane of the lane) is computed
 *   once from the slab, and added, times a weight, to the sums of the window's bins, which remain in registers during the run.
 *   Back: the vector of a step is the sum of the window's bins times their weights, and is added to the slab once. So the work
 *   is proportional to the window, not to the number of TOF bins. */
#ifndef TOMONODE_KERNELS_CPU_TOF_H
#define TOMONODE_KERNELS_CPU_TOF_H

#include "kernels/cpu/cpu_paths.h"
#include "kernels/tof.h"

#define TOF_TABLE_STEPS 640 /* per sigma */

/* Allocate and fill the table; tof->n may be 0. Return -ENOMEM if there is no memory. */
int cpu_tof_create(const struct scan_tof *tof, struct cpu_tof *ret);

size_t cpu_tof_bytes(const struct scan_tof *tof);   /* of the table */
size_t cpu_tof_scratch(const struct scan_tof *tof); /* of the last members of struct cpu_work, floats */

/* Process the entries of a lane in a block of n steps, whose windows are in w->first and w->bin. sums: of the lane. */
void cpu_tof_forward(const struct cpu_tof *tof, const struct cpu_path_loops *loops, const struct cpu_lane *lane, int n,
		     const struct cpu_work *w, float *sums);
void cpu_tof_back(const struct cpu_tof *tof, const struct cpu_path_loops *loops, const struct cpu_lane *lane, int n,
		  const struct cpu_work *w, const float *sums);

/* Return TOF bins [first, end) that contain the windows of some steps of a path. */
struct cpu_span cpu_tof_reach(const struct projection *a, const struct path *path, struct cpu_span steps, float stretch);

#endif
