/* SPDX-License-Identifier: Apache-2.0 */
/* Private to cpu_line_rows.c and cpu_line_rows_back.c: the rays of a view through a single slice (kernels/line_rows.h). */
#ifndef TOMONODE_KERNELS_CPU_LINE_ROWS_H
#define TOMONODE_KERNELS_CPU_LINE_ROWS_H

#include "kernels/cpu/cpu_lines.h"
#include "kernels/line_rows.h"

struct view_rays {
	struct row_view w;
	bool inside;	 /* PATHS: the image is in the field of view; so the rows of rays have no partial ones */
	bool descending; /* positions fall from ray to ray */
	bool one_by_one; /* PATHS: nearly along an axis, so that the place where a ray changes the pixel would be inaccurate in
			    float */
};

static inline float *cpu_rows_scratch(const struct projection *a)
{
	return cpu_state(a->dev)->scratch + (size_t)cpu_thread() * a->thread_floats;
}

static inline const struct scan_view *cpu_rows_view(const struct projection *a, int view)
{
	return a->scan->views + a->first + view;
}

/* Return the floats of a thread's scratch that the back pass needs. */
size_t cpu_line_rows_back_scratch(void);

#endif
