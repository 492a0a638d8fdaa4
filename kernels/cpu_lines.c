/* cpu_lines.c - stacks of 2-D parallel beams on the CPU. */
#include "kernels/cpu.h"

#include <errno.h>

int cpu_row_sweep(struct projection *a, float relaxation, const struct buf *y, struct buf *x, struct err *err)
{
	(void)a;
	(void)relaxation;
	(void)y;
	(void)x;
	return err_set(err, ENOTSUP, "row_sweep: not a stack of parallel beams");
}
