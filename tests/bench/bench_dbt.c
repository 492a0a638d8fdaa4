/* bench_dbt - one pass of OSEM (a subset per view) over a DBT volume of random data, as a line of JSON.
 *
 *   bench_dbt [--device SPEC] [--size NXxNYxNZ] [--views N] [--tile UxV] [--model slices|exact] [--repeat N]
 *
 * The geometry is that of a Siemens MAMMOMAT Inspiration (655.5 mm, 50 degrees) with a detector of NX x NY bins, 239.36 mm deep,
 * and voxels of the same pitch. A warm-up pass comes first; the time is the median of the others. Bytes moved are the least a
 * pass can move: per view the volume read by the forward pass, read and written by the back pass. The copy rate is measured on
 * the same device with the volume itself.
 */
#include <errno.h>
#include <getopt.h>
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

struct work {
	const char *device, *model;
	int n[3], views, tile[2], repeat;
	struct device *dev;
	struct scan *scan;
	struct linop **op;
	struct buf x, y, p, mask;
};

static double seconds(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static int usage(void)
{
	fprintf(stderr, "usage: bench_dbt [--device SPEC] [--size NXxNYxNZ] [--views N] [--tile UxV] [--model slices|exact] "
			"[--repeat N]\n");
	return 2;
}

static int parse(struct work *w, int argc, char **argv)
{
	static const struct option options[] = {{"device", 1, NULL, 'd'},
						{"size", 1, NULL, 's'},
						{"views", 1, NULL, 'v'},
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
		else if (c == 't' && sscanf(optarg, "%dx%d", &w->tile[0], &w->tile[1]) != 2)
			return -1;
		else if (c == 'm')
			w->model = optarg;
		else if (c == 'r')
			w->repeat = atoi(optarg);
		else if (c == '?')
			return -1;
	}
	if (optind < argc || w->views < 2 || w->repeat < 1 || w->repeat > REPEAT_MAX ||
	    (strcmp(w->model, "slices") && strcmp(w->model, "exact")))
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

static int prepare(struct work *w, struct err *err)
{
	double pitch = DEPTH_MM / w->n[0];
	struct grid grid = {{w->n[0], w->n[1], w->n[2]}, {pitch, pitch, 1}, {0, -0.5 * w->n[1] * pitch, 17}};
	const struct device_ops *v;
	size_t bins;
	int r;

	if ((r = device_open(w->device, &w->dev, err)) < 0 || (r = make_scan(w, pitch, err)) < 0)
		return r;
	v = w->dev->ops;
	bins = scan_view_size(w->scan);
	w->op = calloc((size_t)w->views, sizeof(struct linop *));
	if (!w->op)
		return err_set(err, ENOMEM, "out of memory");
	if ((r = v->alloc(w->dev, grid_size(&grid), &w->x, err)) < 0 ||
	    (r = v->alloc(w->dev, bins * (size_t)w->views, &w->y, err)) < 0 || (r = v->alloc(w->dev, bins, &w->p, err)) < 0 ||
	    (r = v->alloc(w->dev, bins, &w->mask, err)) < 0 || (r = fill_random(&w->x, 0.03f, 0.06f, err)) < 0 ||
	    (r = fill_random(&w->y, 1, 3, err)) < 0 || (r = v->fill(&w->mask, 1, err)) < 0)
		return r;
	for (int i = 0; i < w->views; i++) {
		struct projection_spec spec = {strcmp(w->model, "exact") ? PROJECTION_SLICES : PROJECTION_EXACT,
					       w->scan,
					       i,
					       1,
					       &grid,
					       &w->mask,
					       {w->tile[0], w->tile[1]},
					       false};

		if ((r = projector_create(w->dev, &spec, &w->op[i], err)) < 0)
			return r;
	}
	return 0;
}

/* Devices may run ahead of the calling thread: a number fetched from them waits for them. */
static int settle(struct work *w, struct err *err)
{
	struct buf one = buf_part(&w->x, 0, 1);
	double sum;

	return w->dev->ops->sum(&one, &sum, err);
}

static int sweep(struct work *w, struct buf *c, struct buf *sens, struct err *err)
{
	const struct device_ops *v = w->dev->ops;
	size_t bins = scan_view_size(w->scan);
	int r = 0;

	for (int i = 0; r == 0 && i < w->views; i++) {
		struct linop *op = w->op[i * 11 % w->views]; /* far apart in angle */
		struct buf y = buf_part(&w->y, (size_t)i * bins, bins);

		if (linop_fused(op)) {
			r = op->apply_ratio(op, &w->x, &y, FLOOR, &w->p, err);
			r = r < 0 ? r : op->adjoint_update(op, &w->p, FLOOR, &w->x, err);
			continue;
		}
		if ((r = v->fill(&w->p, 1, err)) < 0 || (r = op->adjoint(op, &w->p, sens, err)) < 0 ||
		    (r = op->apply(op, &w->x, &w->p, err)) < 0 || (r = v->ratio(&y, &w->p, FLOOR, &w->p, err)) < 0 ||
		    (r = op->adjoint(op, &w->p, c, err)) < 0)
			break;
		r = v->update(&w->x, c, sens, FLOOR, err);
	}
	return r < 0 ? r : settle(w, err);
}

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

/* Seconds of the median of `n` runs of: a pass (c NULL where it is fused), or a copy of x to c. */
static int measure(struct work *w, int copy, int n, struct buf *c, struct buf *sens, double *ret_seconds, struct err *err)
{
	double time[REPEAT_MAX + 1], begin;
	int r = 0;

	for (int i = 0; r == 0 && i <= n; i++) {
		begin = seconds();
		if (copy) {
			r = w->dev->ops->copy(&w->x, c, err);
			r = r < 0 ? r : settle(w, err);
		} else {
			r = sweep(w, c, sens, err);
		}
		time[i] = seconds() - begin;
	}
	qsort(time + 1, (size_t)n, sizeof(*time), compare); /* the first is the warm-up */
	*ret_seconds = time[1 + n / 2];
	return r;
}

int main(int argc, char **argv)
{
	struct work w = {.device = "auto", .model = "slices", .n = {704, 896, 60}, .views = 25, .repeat = 5};
	struct buf c = {0}, sens = {0};
	struct err err = {0};
	double pass = 0, copy = 0, voxels, moved;

	if (parse(&w, argc, argv) < 0)
		return usage();
	if (prepare(&w, &err) < 0)
		goto out;
	if (!linop_fused(w.op[0]) &&
	    (w.dev->ops->alloc(w.dev, w.x.n, &c, &err) < 0 || w.dev->ops->alloc(w.dev, w.x.n, &sens, &err) < 0))
		goto out;
	if (measure(&w, 0, w.repeat, &c, &sens, &pass, &err) < 0)
		goto out;
	if (!c.mem && w.dev->ops->alloc(w.dev, w.x.n, &c, &err) < 0)
		goto out;
	if (measure(&w, 1, 5, &c, NULL, &copy, &err) < 0)
		goto out;
	voxels = (double)w.x.n * w.views;
	moved = 3 * voxels * sizeof(float);
	printf("{\"bench\":\"dbt-osem\",\"device\":\"%s\",\"model\":\"%s\",\"size\":[%d,%d,%d],\"views\":%d,\"tile\":[%d,%d],"
	       "\"repeat\":%d,"
	       "\"seconds\":%.6f,\"giga_voxel_updates_per_s\":%.3f,\"moved_gb_per_s\":%.2f,\"copy_gb_per_s\":%.2f}\n",
	       w.dev->name, w.model, w.n[0], w.n[1], w.n[2], w.views, w.tile[0], w.tile[1], w.repeat, pass, voxels / pass * 1e-9,
	       moved / pass * 1e-9, 2 * (double)w.x.n * sizeof(float) / copy * 1e-9);
out:
	for (int i = 0; w.op && i < w.views; i++)
		w.op[i] = linop_free(w.op[i]);
	free(w.op);
	buf_release(&w.x);
	buf_release(&w.y);
	buf_release(&w.p);
	buf_release(&w.mask);
	buf_release(&c);
	buf_release(&sens);
	scan_free(w.scan);
	device_close(w.dev);
	if (err.code)
		fprintf(stderr, "bench_dbt: %s\n", err.msg);
	return err.code ? 1 : 0;
}
