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
#include <time.h>

#include "kernels/device.h"
#include "recon/linop.h"
#include "recon/projector.h"
#include "recon/scan.h"

#define FLOOR 1e-6f
#define DEPTH_MM 239.36
#define REPEAT_MAX 1000

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
};

static double seconds(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

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
	    w->repeat > REPEAT_MAX || (strcmp(w->model, "slices") && strcmp(w->model, "exact")))
		return -1;
	return w->n[0] > 0 && w->n[1] > 0 && w->n[2] > 0 ? 0 : -1;
}

static int make_scan(struct work *w, double pitch, struct err *err)
{
	struct dbt_geometry g = {w->n[0], w->n[1], pitch, 47, 608.5, 0, w->views, NULL};
	double *angle = malloc((size_t)w->views * sizeof(*angle));
	int r;

	if (!angle)
		return err_set(err, ENOMEM, "out of memory");
	for (int i = 0; i < w->views; i++)
		angle[i] = -25 + 50.0 * i / (w->views - 1);
	g.angle = angle;
	r = scan_create_dbt(&g, &w->scan, err);
	free(angle);
	return r;
}

static int fill_random(struct buf *b, float lo, float hi, struct err *err)
{
	float *host = malloc(b->n * sizeof(*host));
	unsigned state = 1;
	int r;

	if (!host)
		return err_set(err, ENOMEM, "out of memory");
	for (size_t i = 0; i < b->n; i++) {
		state = state * 1664525u + 1013904223u;
		host[i] = lo + (hi - lo) * (float)(state >> 8) / (1 << 24);
	}
	r = b->dev->ops->upload(b, host, err);
	free(host);
	return r;
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
	double pitch = DEPTH_MM / w->n[0];
	struct grid grid = {{w->n[0], w->n[1], w->n[2]}, {pitch, pitch, 1}, {0, -0.5 * w->n[1] * pitch, 17}};
	const struct device_ops *v;
	size_t bins, in_subset;
	int r;

	if ((r = device_open(w->device, &w->dev, err)) < 0 || (r = make_scan(w, pitch, err)) < 0)
		return r;
	v = w->dev->ops;
	bins = scan_view_size(w->scan);
	in_subset = bins * (size_t)w->per_subset;
	if ((r = v->alloc(w->dev, grid_size(&grid), &w->x, err)) < 0 ||
	    (r = v->alloc(w->dev, bins * (size_t)w->views, &w->y, err)) < 0 ||
	    (r = v->alloc(w->dev, 2 * in_subset, &w->pair, err)) < 0 || (r = v->alloc(w->dev, in_subset, &w->mask, err)) < 0 ||
	    (r = fill_random(&w->y, 1, 3, err)) < 0 || (r = v->fill(&w->mask, 1, err)) < 0 ||
	    (r = make_operators(w, &grid, err)) < 0)
		return r;
	if (!linop_fused(w->op[0]) &&
	    ((r = v->alloc(w->dev, in_subset, &w->p, err)) < 0 || (r = v->alloc(w->dev, w->x.n, &w->num, err)) < 0 ||
	     (r = v->alloc(w->dev, w->x.n, &w->den, err)) < 0))
		return r;
	if (rule_wants_length(w->rule.kind) &&
	    ((r = v->alloc(w->dev, w->y.n, &w->row, err)) < 0 || (r = make_lengths(w, err)) < 0))
		return r;
	return fill_random(&w->x, 0.03f, 0.06f, err);
}

/* Devices may run ahead of the calling thread: a number fetched from them waits for them. */
static int settle(struct work *w, struct err *err)
{
	struct buf one = buf_part(&w->x, 0, 1);
	double sum;

	return w->dev->ops->sum(&one, &sum, err);
}

static int sub_iteration(struct work *w, int i, struct err *err)
{
	struct linop *op = w->op[i];
	struct buf y = subset_of(w, &w->y, i), p = buf_part(&w->p, 0, y.n), pair = buf_part(&w->pair, 0, 2 * y.n), row_part;
	const struct buf *row = NULL;
	int r;

	if (rule_wants_length(w->rule.kind)) {
		row_part = subset_of(w, &w->row, i);
		row = &row_part;
	}
	if (linop_fused(op)) {
		r = op->apply_pair(op, &w->rule, &w->x, &y, row, &pair, err);
		return r < 0 ? r : op->adjoint_update(op, &w->rule, &pair, &w->x, err);
	}
	if (rule_wants_line(w->rule.kind) && (r = op->apply(op, &w->x, &p, err)) < 0)
		return r;
	if ((r = op->make_pair(op, &w->rule, &y, &p, row, &pair, err)) < 0 ||
	    (r = op->adjoint_sums(op, &pair, false, &w->num, &w->den, err)) < 0)
		return r;
	return w->dev->ops->rule_voxels(&w->rule, &w->num, &w->den, &w->x, err);
}

static int sweep(struct work *w, struct err *err)
{
	int step = w->subsets % 11 ? 11 : 7, r = 0;

	for (int i = 0; r == 0 && i < w->subsets; i++)
		r = sub_iteration(w, i * step % w->subsets, err); /* far apart in angle */
	return r < 0 ? r : settle(w, err);
}

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

/* Seconds of the median of `n` runs of: a copy of x to `copy`, or where that is NULL an iteration. */
static int measure(struct work *w, struct buf *copy, int n, double *ret_seconds, struct err *err)
{
	double time[REPEAT_MAX + 1], begin;
	int r = 0;

	for (int i = 0; r == 0 && i <= n; i++) {
		begin = seconds();
		if (copy) {
			r = w->dev->ops->copy(&w->x, copy, err);
			r = r < 0 ? r : settle(w, err);
		} else {
			r = sweep(w, err);
		}
		time[i] = seconds() - begin;
	}
	qsort(time + 1, (size_t)n, sizeof(*time), compare); /* the first is the warm-up */
	*ret_seconds = time[1 + n / 2];
	return r;
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
	struct buf c = {0};
	struct err err = {0};
	double pass = 0, copy = 0, voxels, moved;

	if (parse(&w, argc, argv) < 0)
		return usage();
	if (prepare(&w, &err) < 0)
		goto out;
	if (measure(&w, NULL, w.repeat, &pass, &err) < 0 || w.dev->ops->alloc(w.dev, w.x.n, &c, &err) < 0 ||
	    measure(&w, &c, 5, &copy, &err) < 0)
		goto out;
	voxels = (double)w.x.n * w.views;
	moved = (rule_wants_line(w.rule.kind) ? 3.0 : 2.0) * (double)w.x.n * w.subsets * sizeof(float);
	printf("{\"bench\":\"dbt\",\"device\":\"%s\",\"model\":\"%s\",\"rule\":\"%s\",\"size\":[%d,%d,%d],\"views\":%d,"
	       "\"subsets\":%d,\"tile\":[%d,%d],\"repeat\":%d,"
	       "\"seconds\":%.6f,\"giga_voxel_updates_per_s\":%.3f,\"moved_gb_per_s\":%.2f,\"copy_gb_per_s\":%.2f}\n",
	       w.dev->name, w.model, rule_names[w.rule.kind], w.n[0], w.n[1], w.n[2], w.views, w.subsets, w.tile[0], w.tile[1],
	       w.repeat, pass, voxels / pass * 1e-9, moved / pass * 1e-9, 2 * (double)w.x.n * sizeof(float) / copy * 1e-9);
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
	buf_release(&c);
	scan_free(w.scan);
	device_close(w.dev);
	if (err.code)
		fprintf(stderr, "bench_dbt: %s\n", err.msg);
	return err.code ? 1 : 0;
}
