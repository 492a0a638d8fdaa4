/* Private to the CPU's stacks of 2-D parallel beams (kernels/lines.h): their table, and the loops that do the work.
 *
 * - The entries of a line lie in ascending rows of the image. So a band of rows has a piece of every line (split[]), and back is
 *   done band by band, each by one thread, with the lines in their order.
 * - The table holds `batch` views: all of them, or, where that takes more than CPU_LINES_KEPT, a few that are made again in each
 *   pass.
 * - Slices are taken up to CPU_LINES_WIDE at a time. Each has sums of its own, which are made entry after entry, so that it
 *   does not matter which slices are taken together.
 */
#ifndef TOMONODE_KERNELS_CPU_LINES_H
#define TOMONODE_KERNELS_CPU_LINES_H

#include "kernels/cpu/cpu.h"
#include "kernels/lines.h"

#define CPU_LINES_KEPT ((size_t)2 << 30)   /* bytes */
#define CPU_LINES_BATCH ((size_t)32 << 20) /* bytes, where they are not kept, or one view if that is more */
#define CPU_LINES_WIDE 64		   /* slices */

struct cpu_lines {
	struct line *line; /* batch * n_v */
	struct line_entry *entry;
	int32_t *split; /* of each line: bands + 1 entries, counted from its first */
	int batch;	/* views */
	int made;	/* the first view, counted from the projection's, that the table holds; -1: none */
	int stride, bands;
};

#define CPU_TILE 16	  /* pixels: one AVX-512 vector */
#define CPU_TILE_VIEWS 64 /* of back_interpolated(): sums start anew behind them */

/* What a tile of CPU_TILE x CPU_TILE pixels sees of a row of bins. Pixel (i, j)
 * lies at at + i across + j down bins from row[0]. */
struct cpu_tile_view {
	const float *row;
	float at, across, down;
	float first, last; /* where the row's own first and last bin lie; they count LINE_EDGE beyond */
	bool edge;	   /* pixels may lie beyond them; else none does */
	bool near_by;	   /* all lie between row[0] and row[31] */
};

/* Where a pixel lies in a row: `part` of the way between two bins. */
struct cpu_pick {
	size_t from; /* floats, of the lower one */
	float part;
};

/* x: of the first of the slices; from column to column it is `column` floats. width: a multiple of 4, up to CPU_LINES_WIDE: what
 * lies behind the last slice is padding. */
struct cpu_line_loops {
	/* of one slice: sum of weight * x; x += weight * value */
	float (*dot)(const struct line_entry *e, int n, const float *x, size_t column);
	void (*add)(const struct line_entry *e, int n, float value, float *x, size_t column);
	/* of many: the same for each */
	void (*sums)(const struct line_entry *e, int n, const float *x, size_t column, int width, float *ret_sum);
	void (*spread)(const struct line_entry *e, int n, const float *value, int width, float *x, size_t column);
	/* back_interpolated(): to a tile, in rows of `stride` floats, the sums over n views; to `width` slices of a pixel (any
	 * number), from bins `bin` floats apart */
	void (*tile)(float *sum, int stride, const struct cpu_tile_view *view, int n);
	void (*between)(const struct cpu_pick *pick, int n, const float *y, size_t bin, int width, float *sum);
};

extern const struct cpu_line_loops baseline_lines, avx2_lines, avx512_lines;

#endif
