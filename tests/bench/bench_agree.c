/* bench_agree - do two devices make the same image? As a line of JSON, and an exit code.
 *
 *   bench_agree [--devices A,B] [--size NXxNYxNZ] [--views N] [--model slices|exact] [--algorithm osem|mlem] [--deterministic]
 *               [--memory-limit BYTES] [--tile UxV] [--no-gap]
 *
 * Both reconstruct the same random projections (one iteration, a subset per view for osem; one bin in ten has no data) with the
 * geometry of a Siemens MAMMOMAT Inspiration and voxels as large as the bins. Printed: the largest difference of the images
 * relative to the largest voxel, the adjoint gap of all views on each device, the seconds of each reconstruction, and what the
 * plan takes. The limit, the tile and --deterministic are those of B. Exit code 1: the difference or a gap is above 1e-5.
 */
#include <errno.h>
#include <getopt.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "recon/core/projector.h"
#include "tests/recon/dbt/dbt_reconstruct.h"

#define DEPTH_MM 239.36
#define SUPPORT_MM 17
#define LIMIT 1e-5

struct work {
	char devices[2][32];
	int n[3], views;
	bool gap;
	struct dbt_protocol protocol; /* of B */
	struct scan *scan;
	float *line, *valid, *image[2];
};

struct outcome {
	char device[96];
	double gap;
	struct dbt_plan plan;
	struct dbt_report report;
};

static int usage(void)
{
	fprintf(stderr, "usage: bench_agree [--devices A,B] [--size NXxNYxNZ] [--views N] [--model slices|exact] [--algorithm "
			"osem|mlem] [--deterministic] [--memory-limit BYTES] [--tile UxV] [--no-gap]\n");
	return 2;
}

static int parse(struct work *w, int argc, char **argv)
{
	static const struct option options[] = {{"devices", 1, NULL, 'd'},	{"size", 1, NULL, 's'},
						{"views", 1, NULL, 'v'},	{"model", 1, NULL, 'm'},
						{"algorithm", 1, NULL, 'a'},	{"deterministic", 0, NULL, 'r'},
						{"memory-limit", 1, NULL, 'l'}, {"tile", 1, NULL, 't'},
						{"no-gap", 0, NULL, 'g'},	{0}};
	int c;

	while ((c = getopt_long(argc, argv, "", options, NULL)) != -1) {
		if (c == 'd' && sscanf(optarg, "%31[^,],%31s", w->devices[0], w->devices[1]) != 2)
			return -1;
		else if (c == 's' && sscanf(optarg, "%dx%dx%d", &w->n[0], &w->n[1], &w->n[2]) != 3)
			return -1;
		else if (c == 't' && sscanf(optarg, "%dx%d", &w->protocol.tile[0], &w->protocol.tile[1]) != 2)
			return -1;
		else if (c == 'v')
			w->views = atoi(optarg);
		else if (c == 'm')
			w->protocol.projector = strcmp(optarg, "exact") ? PROJECTION_SLICES : PROJECTION_EXACT;
		else if (c == 'a')
			w->protocol.algorithm = strcmp(optarg, "mlem") ? ALGORITHM_OSEM : ALGORITHM_MLEM;
		else if (c == 'l')
			w->protocol.memory_limit = strtoull(optarg, NULL, 10);
		else if (c == 'r')
			w->protocol.deterministic = true;
		else if (c == 'g')
			w->gap = false;
		else if (c == '?')
			return -1;
	}
	return optind == argc && w->n[0] > 0 && w->n[1] > 0 && w->n[2] > 0 && w->views > 1 ? 0 : -1;
}

static float *random_floats(size_t n, unsigned state, float lo, float hi)
{
	float *x = malloc(n * sizeof(*x));

	for (size_t i = 0; x && i < n; i++) {
		state = state * 1664525u + 1013904223u;
		x[i] = lo + (hi - lo) * (float)(state >> 8) / (1 << 24);
	}
	return x;
}

static int prepare(struct work *w, struct err *err)
{
	struct dbt_geometry g = {w->n[0], w->n[1], DEPTH_MM / w->n[0], 47, 608.5, 0, w->views, NULL};
	size_t bins = (size_t)w->n[0] * (size_t)w->n[1] * (size_t)w->views;
	double *angle = malloc((size_t)w->views * sizeof(*angle));
	int r;

	w->line = random_floats(bins, 5, 0.5f, 2);
	w->valid = random_floats(bins, 77, 0, 1);
	if (!angle || !w->line || !w->valid) {
		free(angle);
		return err_set(err, ENOMEM, "out of memory");
	}
	for (size_t i = 0; i < bins; i++)
		w->valid[i] = w->valid[i] < 0.9f;
	for (int i = 0; i < w->views; i++)
		angle[i] = -25 + 50.0 * i / (w->views - 1);
	g.angle = angle;
	r = scan_create_dbt(&g, &w->scan, err);
	free(angle);
	return r;
}

static int adjoint_gap(const struct work *w, struct device *dev, const struct grid *grid, double *ret_gap, struct err *err)
{
	struct projection_spec spec = {
		.model = w->protocol.projector, .scan = w->scan, .n_views = w->views, .grid = grid, .deterministic = false};
	struct linop *op = NULL;
	int r = projector_create(dev, &spec, &op, err);

	if (r < 0)
		return r;
	*ret_gap = linop_adjoint_gap(op, 1, err);
	linop_free(op);
	return *ret_gap < 0 ? -EIO : 0;
}

static int run(struct work *w, int which, struct outcome *o, struct err *err)
{
	struct dbt_protocol p = w->protocol;
	struct device *dev = NULL;
	int r = device_open(w->devices[which], &dev, err);

	if (r < 0)
		return r;
	if (which == 0) {
		p.memory_limit = 0;
		p.tile[0] = p.tile[1] = 0;
		p.deterministic = false;
	}
	snprintf(o->device, sizeof(o->device), "%s", dev->name);
	r = dbt_plan(&p, w->scan, SUPPORT_MM, w->n[2], dev, &o->plan, err);
	if (r == 0) {
		w->image[which] = malloc(grid_size(&o->plan.grid) * sizeof(float));
		r = w->image[which] ? 0 : err_set(err, ENOMEM, "out of memory");
	}
	if (r == 0)
		r = dbt_reconstruct(&p, &o->plan, w->scan, dev, w->line, w->valid, NULL, w->image[which], &o->report, err);
	if (r == 0 && w->gap)
		r = adjoint_gap(w, dev, &o->plan.grid, &o->gap, err);
	device_close(dev);
	return r;
}

static double difference(const struct work *w, size_t n)
{
	double largest = 0, worst = 0;

	for (size_t i = 0; i < n; i++) {
		double d = fabs((double)w->image[1][i] - w->image[0][i]);

		largest = fmax(largest, fabs(w->image[0][i]));
		worst = d <= worst ? worst : d; /* NaN stays */
	}
	return worst / largest;
}

int main(int argc, char **argv)
{
	struct work w = {.devices = {"cpu", "cuda"},
			 .n = {704, 896, 60},
			 .views = 25,
			 .gap = true,
			 .protocol = {.algorithm = ALGORITHM_OSEM,
				      .iterations = 1,
				      .slice_spacing = 1,
				      .relaxation = 1,
				      .filter = DBT_FILTER_HANN,
				      .filter_cut = 1,
				      .projector = PROJECTION_SLICES}};
	struct outcome o[2] = {0};
	struct err err = {0};
	double d = 0;
	bool good = false;

	if (parse(&w, argc, argv) < 0)
		return usage();
	if (prepare(&w, &err) < 0 || run(&w, 0, &o[0], &err) < 0 || run(&w, 1, &o[1], &err) < 0)
		goto out;
	d = difference(&w, grid_size(&o[0].plan.grid));
	good = d <= LIMIT && o[0].gap <= LIMIT && o[1].gap <= LIMIT;
	printf("{\"bench\":\"agree\",\"a\":\"%s\",\"b\":\"%s\",\"model\":\"%s\",\"algorithm\":\"%s\",\"size\":[%d,%d,%d],"
	       "\"views\":%d,"
	       "\"difference\":%.3g,\"adjoint_gap\":[%.3g,%.3g],\"seconds\":[%.4f,%.4f],\"bytes_device\":[%zu,%zu],"
	       "\"slab_slices\":%d,\"group_views\":%d,\"deterministic\":%s,\"agree\":%s}\n",
	       o[0].device, o[1].device, w.protocol.projector == PROJECTION_EXACT ? "exact" : "slices",
	       w.protocol.algorithm == ALGORITHM_MLEM ? "mlem" : "osem", w.n[0], w.n[1], w.n[2], w.views, d, o[0].gap, o[1].gap,
	       o[0].report.seconds_iterate, o[1].report.seconds_iterate, o[0].plan.bytes_total, o[1].plan.bytes_total,
	       o[1].plan.slab_slices, o[1].plan.group_views, w.protocol.deterministic ? "true" : "false",
	       good ? "true" : "false");
out:
	free(w.line);
	free(w.valid);
	free(w.image[0]);
	free(w.image[1]);
	scan_free(w.scan);
	if (err.code)
		fprintf(stderr, "bench_agree: %s\n", err.msg);
	return err.code || !good;
}
