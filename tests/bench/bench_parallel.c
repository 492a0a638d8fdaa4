/* bench_parallel - stacks of 2-D parallel beams of random data, as a line of JSON.
 *
 *   bench_parallel --work radon|bp|fbp|filter|art [--size N] [--angles N] [--slices N] [--device SPEC]
 *                  [--model siddon|joseph|sampled] [--repeat N]
 *
 * size: pixels and radial bins, 1 mm each; angles over 180 degrees; the field of view is the whole image.
 * radon: a forward projection. bp: the voxel-driven backprojection. filter: convolution with Shepp & Logan's kernel. fbp: both.
 * art: a sweep of Kaczmarz' method. Data lie on the device. Times are medians behind a warm-up; a step is a pixel (bp, fbp) or an
 * entry of the system matrix, reckoned as size a ray (radon, art), in one view and slice.
 */
#include <getopt.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/clock.h"
#include "recon/bench/bench_job.h"
#include "recon/core/ramp.h"
#include "recon/parallel/parallel.h"

#define TRY(call)                                                                                                                \
	do {                                                                                                                     \
		if ((call) < 0)                                                                                                  \
			return -1;                                                                                               \
	} while (0)

enum work { RADON, BP, FBP, FILTER, ART, N_WORKS };
static const char *const work_names[N_WORKS] = {"radon", "bp", "fbp", "filter", "art"};

struct bench {
	enum work work;
	const char *device, *model_name;
	enum projection_model model;
	int size, angles, slices, repeat;
	struct device *dev;
	struct scan *scan;
	struct grid grid;
	struct projection *a;
	struct ramp *ramp;
	struct buf x, y, filtered;
	double setup;
	struct bench_times times;
};

static int set_up(struct bench *b, struct err *err)
{
	const struct parallel_scan s = {
		.n_slices = b->slices, .n_angles = b->angles, .n_radial = b->size, .bin = 1, .slice = 1, .arc = 180};
	struct projection_spec spec = {.model = b->work == RADON || b->work == ART ? b->model : PROJECTION_EXACT,
				       .n_views = b->angles,
				       .grid = &b->grid,
				       .sampling = 0.1,
				       .sweeps = b->work == ART};
	double begun;

	TRY(device_open(b->device, &b->dev, err));
	TRY(scan_create_parallel(&s, b->slices, 0.5 * sqrt(2) * b->size, NULL, &b->scan, err));
	b->grid = (struct grid){.n = {b->size, b->size, b->slices},
				.h = {1, 1, 1},
				.lo = {-0.5 * b->size, -0.5 * b->size, -0.5 * b->slices},
				.z_fastest = b->slices > 1};
	spec.scan = b->scan;
	begun = clock_seconds();
	TRY(b->dev->ops->projection_create(b->dev, &spec, &b->a, err));
	b->setup = clock_seconds() - begun;
	TRY(bench_random_alloc(b->dev, grid_size(&b->grid), 0.1f, 1.1f, 1, &b->x, err));
	TRY(bench_random_alloc(b->dev, scan_view_size(b->scan) * (size_t)b->angles, 0.1f, 1.1f, 2, &b->y, err));
	TRY(b->dev->ops->alloc(b->dev, b->y.n, &b->filtered, err));
	TRY(b->dev->ops->fill(&b->filtered, 1, err));
	return ramp_create(RAMP_SHEPP_LOGAN, 1, 1, b->size, &b->ramp, err);
}

static int once(void *ctx, struct err *err)
{
	struct bench *b = ctx;
	const struct device_ops *v = b->dev->ops;

	switch (b->work) {
	case RADON:
		return v->forward(b->a, &b->x, false, &b->filtered, err);
	case ART:
		return v->row_sweep(b->a, 0.1f, &b->y, &b->x, err);
	case BP:
		return v->back_interpolated(b->a, &b->y, false, &b->x, err);
	default:
		TRY(v->convolve(&b->y, (size_t)b->angles, b->size, (size_t)b->slices, ramp_kernel(b->ramp), &b->filtered, err));
		return b->work == FILTER ? 0 : v->back_interpolated(b->a, &b->filtered, false, &b->x, err);
	}
}

static void print(const struct bench *b)
{
	double steps = (double)b->size * b->size * b->angles * b->slices;

	printf("{\"bench\": \"parallel\", \"work\": \"%s\", \"device\": \"%s\", \"model\": \"%s\", \"size\": %d, \"angles\": %d, "
	       "\"slices\": %d, \"repeat\": %d, \"setup_ms\": %.4g, \"median_ms\": %.4g, \"least_ms\": %.4g, \"slice_ms\": %.4g, "
	       "\"gsteps_s\": %.4g}\n",
	       work_names[b->work], b->dev->name, b->work == RADON || b->work == ART ? b->model_name : "interpolated", b->size,
	       b->angles, b->slices, b->repeat, 1e3 * b->setup, 1e3 * b->times.median, 1e3 * b->times.least,
	       1e3 * b->times.median / b->slices, 1e-9 * steps / b->times.median);
}

static int usage(void)
{
	fprintf(stderr, "usage: bench_parallel --work radon|bp|fbp|filter|art [--size N] [--angles N] [--slices N] "
			"[--device SPEC] [--model siddon|joseph|sampled] [--repeat N]\n");
	return 2;
}

static enum work work_of(const char *name)
{
	int w = 0;

	while (w < N_WORKS && strcmp(name, work_names[w]) != 0)
		w++;
	return (enum work)w;
}

int main(int argc, char **argv)
{
	static const struct option options[] = {
		{"work", required_argument, NULL, 'w'},	  {"size", required_argument, NULL, 's'},
		{"angles", required_argument, NULL, 'a'}, {"slices", required_argument, NULL, 'n'},
		{"device", required_argument, NULL, 'd'}, {"model", required_argument, NULL, 'm'},
		{"repeat", required_argument, NULL, 'r'}, {NULL, 0, NULL, 0},
	};
	struct bench b = {
		.work = N_WORKS, .device = "auto", .model_name = "siddon", .size = 300, .angles = 300, .slices = 1, .repeat = 11};
	struct err err = {0};
	int option, rc;

	while ((option = getopt_long(argc, argv, "", options, NULL)) != -1) {
		switch (option) {
		case 'w':
			b.work = work_of(optarg);
			break;
		case 's':
			b.size = atoi(optarg);
			break;
		case 'a':
			b.angles = atoi(optarg);
			break;
		case 'n':
			b.slices = atoi(optarg);
			break;
		case 'd':
			b.device = optarg;
			break;
		case 'm':
			b.model_name = optarg;
			break;
		case 'r':
			b.repeat = atoi(optarg);
			break;
		default:
			return usage();
		}
	}
	b.model = !strcmp(b.model_name, "siddon")    ? PROJECTION_PATHS
		  : !strcmp(b.model_name, "joseph")  ? PROJECTION_JOSEPH
		  : !strcmp(b.model_name, "sampled") ? PROJECTION_SAMPLED
						     : 0;
	if (b.work == N_WORKS || !b.model || b.size < 2 || b.angles < 1 || b.slices < 1 || b.repeat < 1 ||
	    b.repeat > BENCH_REPEAT_MAX || optind != argc)
		return usage();
	rc = set_up(&b, &err);
	rc = rc < 0 ? rc : bench_measure(b.dev, b.repeat, once, &b, &b.times, &err);
	if (rc < 0)
		fprintf(stderr, "bench_parallel: %s\n", err.msg);
	else
		print(&b);
	if (b.a)
		b.dev->ops->projection_free(b.a);
	ramp_free(b.ramp);
	buf_release(&b.x);
	buf_release(&b.y);
	buf_release(&b.filtered);
	scan_free(b.scan);
	device_close(b.dev);
	return rc < 0 ? 1 : 0;
}
