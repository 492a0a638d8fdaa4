/* SPDX-License-Identifier: Apache-2.0 */
/* Private to the CPU device: table and inner loops for stacks of 2-D parallel beams (kernels/lines.h).
 *
 * - The entries of a line are sorted by image row, ascending. So the entries in a band of adjacent rows are contiguous (split[]).
 *   In the back pass, one thread processes a band, line by line.
 * - The table holds `batch` views: all of them, or, if that needs more than CPU_LINES_KEPT, a few that are computed again in each
 *   pass.
 * - Up to CPU_LINES_WIDE slices are processed together. Each slice has its own sum, to which the entries are added in their
 *   order, so the result does not depend on which slices are processed together. */
#ifndef TOMONODE_KERNELS_CPU_LINES_H
#define TOMONODE_KERNELS_CPU_LINES_H

#include "kernels/cpu/cpu.h"
#include "kernels/lines.h"

#define CPU_LINES_KEPT ((size_t)2 << 30)   /* bytes; a larger table is computed again in each pass */
#define CPU_LINES_BATCH ((size_t)32 << 20) /* bytes of a table that is not kept, or one view if larger */
#define CPU_LINES_WIDE 64		   /* slices */

struct cpu_lines {
	struct line *line; /* batch * n_v elements */
	struct line_entry *entry;
	int32_t *split;	 /* for each line bands + 1 entry indices, relative to its first entry */
	int batch;	 /* views */
	int table_first; /* first view in the table, relative to the projection's first; -1: none */
	int stride, bands;
};

#define CPU_TILE 16	  /* pixels: one AVX-512 vector */
#define CPU_TILE_VIEWS 64 /* views per call of tile() in back_interpolated(); each call starts new sums */

/* How a tile of CPU_TILE x CPU_TILE pixels projects onto a row of bins. Pixel (i, j) is at position at + i across + j down, in
 * bins from row[0]. */
struct cpu_tile_view {
	const float *row;
	float at, across, down;
	float first, last; /* positions of the centres of the row's first and last bin, in bins from row[0] */
	bool edge;	   /* some pixels may project outside `first`..`last` */
	bool near_by;	   /* all pixels project interpolate row[0] and row[31] */
};

/* The position of a pixel in a row: the fraction `part` of the way from one bin to the next. */
struct cpu_bin_position {
	size_t from; /* index of the lower bin, floats */
	float part;
};

/* x: the volume, starting at the first of the slices that are processed together; `column` floats from one column to the next.
 * width: number of slices, rounded up to a multiple of 4, at most CPU_LINES_WIDE; values after the last slice are padding. */
struct cpu_line_loops {
	/* One slice. dot(): return the sum of weight * x. add(): x += weight * value. */
	float (*dot)(const struct line_entry *e, int n, const float *x, size_t column);
	void (*add)(const struct line_entry *e, int n, float value, float *x, size_t column);
	/* Many slices: sums() is dot() and spread() is add(), for each of the slices. */
	void (*sums)(const struct line_entry *e, int n, const float *x, size_t column, int width, float *ret_sum);
	void (*spread)(const struct line_entry *e, int n, const float *value, int width, float *x, size_t column);
	/* For back_interpolated(). tile(): add the sums over n views to a tile whose rows are `stride` floats apart.
	 * interpolate(): add the sums to `width` slices (any number) of a pixel, from bins that are `bin` floats apart. */
	void (*tile)(float *sum, int stride, const struct cpu_tile_view *view, int n);
	void (*interpolate)(const struct cpu_bin_position *position, int n, const float *y, size_t bin, int width, float *sum);
};

extern const struct cpu_line_loops baseline_lines, avx2_lines, avx512_lines;

#endif
