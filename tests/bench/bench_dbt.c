/* bench_dbt - one iteration (every subset once) over a DBT volume of random data, as a line of JSON.
 *
 *   bench_dbt [--device SPEC] [--size NXxNYxNZ] [--views N] [--views-per-subset N] [--tile UxV] [--model slices|exact]
 *             [--rule em|em-rows|transmission|sart|backproject] [--repeat N]
 *
 * A subset is a view and its N - 1 neighbours; 1, as in OSEM, unless said otherwise; N = views is ML-EM.
 * The geometry is that of a Siemens MAMMOMAT Inspiration (655.5 mm, 50 degrees) with a detector of NX x NY bins, 239.36 mm deep,
 * and voxels of the same pitch. A warm-up pass comes first; the time is the median of the others. Bytes moved are the least a
 * pass can move: per subset the volume read by the forward pass, read and written by the back pass. The copy rate is measured on
 * the same device with the volume itself.
 */
#include <errno.h>
#include <getopt.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/device.h"
#include "recon/bench/bench_job.h"
#include "recon/core/linop.h"
#include "recon/core/projector.h"

#define FLOOR 1e-6f

static const char *const rule_names[] = {
	[RULE_EM] = "em",     [RULE_EM_ROWS] = "em-rows",	  [RULE_TRANSMISSION] = "transmission",
	[RULE_SART] = "sart", [RULE_BACKPROJECT] = "backproject",
};
#define N_RULE_NAMES (int)(sizeof(rule_names) / sizeof(rule_names[0]))

struct work {
	const char *device, *model;
	int n[3], views, per_subset, tile[2], repeat;
	struct rule rule;
	struct device *dev;
	struct scan *scan;
	int subsets;
	struct linop **op;
	struct buf x, y, row, pair, mask; /* mask: every bin of a subset counts; row: as y, where the rule wants it */
	struct buf p, num, den;		  /* where the passes are not fused */
	struct buf copy;
};

static int usage(void)
{
	fprintf(stderr, "usage: bench_dbt [--device SPEC] [--size NXxNYxNZ] [--views N] [--views-per-subset N] [--tile UxV] "
			"[--model slices|exact] [--rule em|em-rows|transmission|sart|backproject] [--repeat N]\n");
	return 2;
}

static bool parse_rule(const char *name, struct rule *rule)
{
	for (int i = RULE_EM; i < N_RULE_NAMES; i++) {
		if (strcmp(rule_names[i], name) == 0) {
			rule->kind = (enum rule_kind)i;
			return true;
		}
	}
	return false;
}

static int parse(struct work *w, int argc, char **argv)
{
	static const struct option options[] = {{"device", 1, NULL, 'd'},
						{"size", 1, NULL, 's'},
						{"views", 1, NULL, 'v'},
						{"views-per-subset", 1, NULL, 'p'},
						{"rule", 1, NULL, 'u'},
						{"tile", 1, NULL, 't'},
						{"model", 1, NULL, 'm'},
						{"repeat", 1, NULL, 'r'},
						{0}};
	int c;

	while ((c = getopt_long(argc, argv, "", options, NULL)) != -1) {
		if (c == 'd')
			w->device = optarg;
		else if (c == 's' && sscanf(optarg, "%dx%dx%d", &w->n[0], &w->n[1], &w->n[2]) != 3)
			return -1;
		else if (c == 'v')
			w->views = atoi(optarg);
		else if (c == 'p')
			w->per_subset = atoi(optarg);
		else if (c == 'u' && !parse_rule(optarg, &w->rule))
			return -1;
		else if (c == 't' && sscanf(optarg, "%dx%d", &w->tile[0], &w->tile[1]) != 2)
			return -1;
		else if (c == 'm')
			w->model = optarg;
		else if (c == 'r')
			w->repeat = atoi(optarg);
		else if (c == '?')
			return -1;
	}
	if (optind < argc || w->views < 2 || w->per_subset < 1 || w->per_subset > w->views || w->repeat < 1 ||
	    w->repeat > BENCH_REPEAT_MAX || (strcmp(w->model, "slices") && strcmp(w->model, "exact")))
		return -1;
	return w->n[0] > 0 && w->n[1] > 0 && w->n[2] > 0 ? 0 : -1;
}

/* The views of subset i. */
static int first_view(const struct work *w, int i)
{
	return i * w->per_subset;
}

static int count_views(const struct work *w, int i)
{
	int first = first_view(w, i);

	return first + w->per_subset < w->views ? w->per_subset : w->views - first;
}

static struct buf subset_of(const struct work *w, const struct buf *of_views, int i)
{
	size_t bins = scan_view_size(w->scan);

	return buf_part(of_views, (size_t)first_view(w, i) * bins, (size_t)count_views(w, i) * bins);
}

static int make_operators(struct work *w, const struct grid *grid, struct err *err)
{
	int r = 0;

	w->subsets = (w->views + w->per_subset - 1) / w->per_subset;
	w->op = calloc((size_t)w->subsets, sizeof(struct linop *));
	if (!w->op)
		return err_set(err, ENOMEM, "out of memory");
	for (int i = 0; r == 0 && i < w->subsets; i++) {
		struct buf mask = subset_of(w, &w->mask, 0);
		struct projection_spec spec = {.model = strcmp(w->model, "exact") ? PROJECTION_SLICES : PROJECTION_EXACT,
					       .scan = w->scan,
					       .first = first_view(w, i),
					       .n_views = count_views(w, i),
					       .grid = grid,
					       .mask = &mask,
					       .tile = {w->tile[0], w->tile[1]}};

		mask.n = (size_t)spec.n_views * scan_view_size(w->scan);
		r = projector_create(w->dev, &spec, &w->op[i], err);
	}
	return r;
}

/* The length of every ray in the volume. */
static int make_lengths(struct work *w, struct err *err)
{
	int r = w->dev->ops->fill(&w->x, 1, err);

	for (int i = 0; r == 0 && i < w->subsets; i++) {
		struct buf row = subset_of(w, &w->row, i);

		r = w->op[i]->apply(w->op[i], &w->x, &row, err);
	}
	return r;
}

static int prepare(struct work *w, struct err *err)
{
	struct grid grid;
	const struct device_ops *v;
	size_t bins, in_subset;
	int r;

	if ((r = device_open(w->device, &w->dev, err)) < 0 || (r = bench_dbt_geometry(w->n, w->views, &w->scan, &grid, err)) < 0)
		return r;
	v = w->dev->ops;
	bins = scan_view_size(w->scan);
	in_subset = bins * (size_t)w->per_subset;
	if ((r = v->alloc(w->dev, grid_size(&grid), &w->x, err)) < 0 ||
	    (r = v->alloc(w->dev, bins * (size_t)w->views, &w->y, err)) < 0 ||
	    (r = v->alloc(w->dev, 2 * in_subset, &w->pair, err)) < 0 || (r = v->alloc(w->dev, in_subset, &w->mask, err)) < 0 ||
	    (r = bench_random(&w->y, 1, 3, 1, err)) < 0 || (r = v->fill(&w->mask, 1, err)) < 0 ||
	    (r = make_operators(w, &grid, err)) < 0)
		return r;
	if (!linop_fused(w->op[0]) &&
	    ((r = v->alloc(w->dev, in_subset, &w->p, err)) < 0 || (r = v->alloc(w->dev, w->x.n, &w->num, err)) < 0 ||
	     (r = v->alloc(w->dev, w->x.n, &w->den, err)) < 0))
		return r;
	if (rule_needs_length(w->rule.kind) &&
	    ((r = v->alloc(w->dev, w->y.n, &w->row, err)) < 0 || (r = make_lengths(w, err)) < 0))
		return r;
	return bench_random(&w->x, 0.03f, 0.06f, 1, err);
}

static int sub_iteration(struct work *w, int i, struct err *err)
{
	struct linop *op = w->op[i];
	struct buf y = subset_of(w, &w->y, i), p = buf_part(&w->p, 0, y.n), pair = buf_part(&w->pair, 0, 2 * y.n), row_part;
	const struct buf *row = NULL;
	int r;

	if (rule_needs_length(w->rule.kind)) {
		row_part = subset_of(w, &w->row, i);
		row = &row_part;
	}
	if (linop_fused(op)) {
		r = op->apply_pair(op, &w->rule, &w->x, &y, row, &pair, err);
		return r < 0 ? r : op->adjoint_update(op, &w->rule, &pair, &w->x, err);
	}
	if (rule_needs_line(w->rule.kind) && (r = op->apply(op, &w->x, &p, err)) < 0)
		return r;
	if ((r = op->make_pair(op, &w->rule, &y, &p, row, &pair, err)) < 0 ||
	    (r = op->adjoint_sums(op, &pair, false, &w->num, &w->den, err)) < 0)
		return r;
	return w->dev->ops->rule_voxels(&w->rule, &w->num, &w->den, &w->x, err);
}

static int sweep(void *ctx, struct err *err)
{
	struct work *w = ctx;
	int step = w->subsets % 11 ? 11 : 7, r = 0;

	for (int i = 0; r == 0 && i < w->subsets; i++)
		r = sub_iteration(w, i * step % w->subsets, err); /* far apart in angle */
	return r;
}

static int copy(void *ctx, struct err *err)
{
	struct work *w = ctx;

	return w->dev->ops->copy(&w->x, &w->copy, err);
}

int main(int argc, char **argv)
{
	struct work w = {.device = "auto",
			 .model = "slices",
			 .n = {704, 896, 60},
			 .views = 25,
			 .per_subset = 1,
			 .repeat = 5,
			 .rule = {RULE_EM, FLOOR, FLOOR, 1}};
	struct bench_times pass, copied;
	struct err err = {0};
	double voxels, moved;

	if (parse(&w, argc, argv) < 0)
		return usage();
	if (prepare(&w, &err) < 0)
		goto out;
	if (bench_measure(w.dev, w.repeat, sweep, &w, &pass, &err) < 0 || w.dev->ops->alloc(w.dev, w.x.n, &w.copy, &err) < 0 ||
	    bench_measure(w.dev, 5, copy, &w, &copied, &err) < 0)
		goto out;
	voxels = (double)w.x.n * w.views;
	moved = (rule_needs_line(w.rule.kind) ? 3.0 : 2.0) * (double)w.x.n * w.subsets * sizeof(float);
	printf("{\"bench\":\"dbt\",\"device\":\"%s\",\"model\":\"%s\",\"rule\":\"%s\",\"size\":[%d,%d,%d],\"views\":%d,"
	       "\"subsets\":%d,\"tile\":[%d,%d],\"repeat\":%d,"
	       "\"seconds\":%.6f,\"giga_voxel_updates_per_s\":%.3f,\"moved_gb_per_s\":%.2f,\"copy_gb_per_s\":%.2f}\n",
	       w.dev->name, w.model, rule_names[w.rule.kind], w.n[0], w.n[1], w.n[2], w.views, w.subsets, w.tile[0], w.tile[1],
	       w.repeat, pass.median, voxels / pass.median * 1e-9, moved / pass.median * 1e-9,
	       2 * (double)w.x.n * sizeof(float) / copied.median * 1e-9);
out:
	for (int i = 0; w.op && i < w.subsets; i++)
		w.op[i] = linop_free(w.op[i]);
	free(w.op);
	buf_release(&w.x);
	buf_release(&w.y);
	buf_release(&w.row);
	buf_release(&w.pair);
	buf_release(&w.p);
	buf_release(&w.num);
	buf_release(&w.den);
	buf_release(&w.mask);
	buf_release(&w.copy);
	scan_free(w.scan);
	device_close(w.dev);
	if (err.code)
		fprintf(stderr, "bench_dbt: %s\n", err.msg);
	return err.code ? 1 : 0;
}
