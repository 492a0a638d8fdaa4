/* SPDX-License-Identifier: Apache-2.0 */
/* agree.c - `bench agree`: compare the tomosynthesis images of two devices. Default: cpu and cuda.
 *
 * Both reconstruct the same random projections (one iteration; one bin in ten has no data) in the geometry of the benchmark.
 * Prints the largest difference of the images relative to the largest voxel, the adjoint gap of all views on each device, the
 * seconds of each reconstruction, and the bytes and parts of the plan. Tile, memory limit and determinism apply to the second
 * device. Exit code 1: the difference or a gap is above LIMIT. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "recon/core/projector.h"
#include "tests/bench/bench.h"
#include "tests/recon/dbt/dbt_reconstruct.h"

#define LIMIT 1e-5

struct work {
	const struct options *o;
	struct dbt_protocol protocol; /* of the second device */
	struct scan *scan;
	struct grid grid;
	float *line, *valid, *image[2];
};

struct outcome {
	char device[96];
	double gap;
	struct dbt_plan plan;
	struct dbt_report report;
};

static int prepare(struct work *w, struct err *err)
{
	int r = bench_dbt_geometry(&w->o->setup, &w->scan, &w->grid, err);
	size_t bins;

	if (r < 0)
		return r;
	bins = (size_t)w->scan->n_u * (size_t)w->scan->n_v * (size_t)w->scan->n_views;
	w->line = malloc(bins * sizeof(*w->line));
	w->valid = malloc(bins * sizeof(*w->valid));
	w->image[0] = malloc(grid_size(&w->grid) * sizeof(float));
	w->image[1] = malloc(grid_size(&w->grid) * sizeof(float));
	if (!w->line || !w->valid || !w->image[0] || !w->image[1])
		return err_set(err, ENOMEM, "out of memory");
	bench_random(w->line, bins, 0.5f, 2, 5);
	bench_random(w->valid, bins, 0, 1, 77);
	for (size_t i = 0; i < bins; i++)
		w->valid[i] = w->valid[i] < 0.9f;
	return 0;
}

static int adjoint_gap(const struct work *w, struct device *dev, const struct grid *grid, double *ret_gap, struct err *err)
{
	struct projection_spec spec = {.model = w->protocol.projector,
				       .scan = w->scan,
				       .n_views = w->scan->n_views,
				       .grid = grid,
				       .deterministic = false};
	struct linop *op = NULL;
	int r = projector_create(dev, &spec, &op, err);

	if (r < 0)
		return r;
	*ret_gap = linop_adjoint_gap(op, 1, err);
	linop_free(op);
	return *ret_gap < 0 ? -EIO : 0;
}

static int run(struct work *w, int which, const char *spec, struct outcome *o, struct err *err)
{
	struct dbt_protocol p = w->protocol;
	struct device *dev = NULL;
	int r = device_open(spec, &dev, err);

	if (r < 0)
		return r;
	if (which == 0) {
		p.memory_limit = 0;
		p.tile[0] = p.tile[1] = 0;
		p.deterministic = false;
	}
	snprintf(o->device, sizeof(o->device), "%s", dev->name);
	r = dbt_plan(&p, w->scan, BENCH_DBT_SUPPORT, w->grid.n[2], dev, &o->plan, err);
	if (r == 0)
		r = dbt_reconstruct(&p, &o->plan, w->scan, dev, w->line, w->valid, NULL, w->image[which], &o->report, err);
	if (r == 0 && w->o->gap)
		r = adjoint_gap(w, dev, &o->plan.grid, &o->gap, err);
	device_close(dev);
	return r;
}

static void print(const struct work *w, const struct outcome o[2], double difference, bool good)
{
	printf("{\"bench\":\"agree\",\"a\":\"%s\",\"b\":\"%s\",\"model\":\"%s\",\"algorithm\":\"%s\",\"size\":[%d,%d,%d],"
	       "\"views\":%d,\"difference\":%.3g,\"adjoint_gap\":[%.3g,%.3g],\"seconds\":[%.4f,%.4f],\"bytes_device\":[%zu,%zu],"
	       "\"slab_slices\":%d,\"group_views\":%d,\"deterministic\":%s,\"agree\":%s}\n",
	       o[0].device, o[1].device, model_name(w->protocol.projector),
	       w->protocol.algorithm == ALGORITHM_MLEM ? "mlem" : "osem", w->grid.n[0], w->grid.n[1], w->grid.n[2],
	       w->scan->n_views, difference, o[0].gap, o[1].gap, o[0].report.seconds_iterate, o[1].report.seconds_iterate,
	       o[0].plan.bytes.total, o[1].plan.bytes.total, o[1].plan.slab_slices, o[1].plan.group_views,
	       w->protocol.deterministic ? "true" : "false", good ? "true" : "false");
}

static struct dbt_protocol protocol_of(const struct options *o)
{
	return (struct dbt_protocol){
		.algorithm = o->work && !strcmp(o->work, "dbt-mlem") ? ALGORITHM_MLEM : ALGORITHM_OSEM,
		.iterations = 1,
		.slice_spacing = 1,
		.relaxation = 1,
		.filter = DBT_FILTER_HANN,
		.filter_cut = 1,
		.projector = o->setup.model ? o->setup.model : PROJECTION_SLICES,
		.tile = {o->setup.tile[0], o->setup.tile[1]},
		.memory_limit = o->memory_limit,
		.deterministic = o->setup.deterministic,
	};
}

int bench_agree(const struct options *o)
{
	const char *first = o->n_devices > 0 ? o->device[0] : "cpu", *second = o->n_devices > 1 ? o->device[1] : "cuda";
	struct work w = {.o = o, .protocol = protocol_of(o)};
	struct outcome out[2] = {0};
	struct err err = {0};
	bool good = false;
	double d;

	if (prepare(&w, &err) == 0 && run(&w, 0, first, &out[0], &err) == 0 && run(&w, 1, second, &out[1], &err) == 0) {
		d = relative_difference(w.image[1], w.image[0], grid_size(&w.grid));
		good = d <= LIMIT && out[0].gap <= LIMIT && out[1].gap <= LIMIT;
		print(&w, out, d, good);
	}
	free(w.line);
	free(w.valid);
	free(w.image[0]);
	free(w.image[1]);
	scan_free(w.scan);
	if (err.code)
		fprintf(stderr, "bench: %s\n", err.msg);
	return err.code || !good;
}
