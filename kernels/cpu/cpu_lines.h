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

struct view_rays;

struct cpu_lines {
	struct view_rays *rays; /* one per view: a single slice without a table (cpu_line_rows.c); NULL: with a table */
	float *turned;		/* without a table: room for the image with x and y exchanged; NULL: too few views need it */
	struct line *line;	/* batch * n_v elements */
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

#define CPU_BUNDLE 16 /* rays of one view: one AVX-512 vector */
#define CPU_WINDOW 32 /* pixels or bins that are selected from: two AVX-512 vectors */

/* Adjacent rays of a view through one slice (kernels/line_rows.h): ray i is at low + i pitch + k slope in row k, pitch > 0. */
struct cpu_bundle {
	const float *image;
	size_t row, pixel; /* distance of rows and of pixels in a row, floats */
	int width;	   /* pixels of a row */
	bool rim;	   /* JOSEPH: the value beyond an end of a row is that of the outermost pixel; else 0 */
	double low, slope;
	float pitch, inverse;
	int from[CPU_BUNDLE], to[CPU_BUNDLE]; /* rows of each ray */
	int begin, whole, partial,
		end; /* rows in [whole, partial) are in from..to of every ray, no row outside [begin, end) of any */
};

/* How the rays of a view cross a tile of CPU_TILE x CPU_TILE pixels: pixel i of row j is at + i + j down pixels from the lower
 * end of ray 0; ray m + 1 has the value window[m] and is `pitch` pixels from ray m. The rays that meet a pixel are `rays` at
 * most, from the first one on that is more than at - `reach` pixels from ray 0. */
struct cpu_tile_rays {
	float at, down, pitch, per_pixel; /* per_pixel: 1 / pitch */
	float inverse, reach;
	int rays;
	bool near_by; /* all rays are in the first CPU_WINDOW values */
	const float *window;
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
	/* One slice without a table. bundle(): the sums of each ray, in rows of length 1. rays(): add the weights times the
	 * values of n views to a tile, whose rows follow each other. */
	void (*bundle)(const struct cpu_bundle *b, float *ret_sum);
	void (*rays)(float *sum, const struct cpu_tile_rays *view, int n);
};

bool cpu_lines_kept(const struct projection_spec *spec); /* would the table hold all views? */

/* cpu_line_rows.c */
void cpu_line_rows_forward(const struct projection *a, const struct cpu_forward *f);
void cpu_line_rows_back(const struct projection *a, const struct cpu_back *b);
void cpu_line_rows_sweep(const struct projection *a, float relaxation, int view, int v, float y, float *x); /* one ray */
size_t cpu_line_rows_bytes(const struct projection *a);
size_t cpu_line_rows_scratch(const struct projection *a); /* floats of a thread */
int cpu_line_rows_create(struct projection *a, struct err *err);

extern const struct cpu_line_loops baseline_lines, avx2_lines, avx512_lines;

#endif
