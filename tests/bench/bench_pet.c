/* bench_pet - an MLEM iteration over a GE Discovery STE michelogram (553 planes, 280 angles, 329 radial bins) of random data, as
 * a line of JSON.
 *
 *   bench_pet [--device SPEC] [--matrix N] [--fov MM] [--model siddon|joseph|exact] [--deterministic] [--angles N] [--repeat N]
 *             [--check]
 *
 * --angles: only the first N angles (for slow operators; says nothing of a whole iteration). A warm-up comes first; times are
 * medians.
 * --check compares the model with the exact one on random data (largest difference over largest value), gives the adjoint gap and
 * the largest relative error of a ray's length against 2 sqrt(fov^2 - r^2) sqrt(1 + slope^2), over all rays.
 */
#include <errno.h>
#include <getopt.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/clock.h"
#include "recon/bench/bench_job.h"
#include "recon/core/linop.h"
#include "recon/core/projector.h"

#define TRY(call)                                                                                                                \
	do {                                                                                                                     \
		if ((call) < 0)                                                                                                  \
			return -1;                                                                                               \
	} while (0)

enum { FORWARD, BINS, BACK, UPDATE, ITERATION, N_STAGES };
static const char *const stage_names[N_STAGES] = {"forward", "bins", "back", "update", "iteration"};

struct work {
	const char *device, *model_name;
	enum projection_model model;
	int matrix, angles, repeat;
	double fov;
	bool deterministic, check;
	struct device *dev;
	struct scan *scan;
	struct grid grid;
	struct linop *op;
	struct buf x, y, p, num, den;
	double median[N_STAGES];
	double difference_forward, difference_back, gap, chord;
};

static int make_operator(struct work *w, enum projection_model model, struct linop **ret, struct err *err)
{
	struct projection_spec spec = {
		.model = model, .scan = w->scan, .n_views = w->angles, .grid = &w->grid, .deterministic = w->deterministic};

	return projector_create(w->dev, &spec, ret, err);
}

static double now(struct work *w)
{
	w->dev->ops->wait(w->dev, QUEUE_WORK, NULL);
	return clock_seconds();
}

/* Stages one by one, each waited for; then whole iterations, waited for at the end of each. */
static int measure(struct work *w, struct err *err)
{
	const struct rule em = {.kind = RULE_EM, .bin_floor = 1e-6f, .voxel_floor = 1e-6f};
	static double took[N_STAGES][BENCH_REPEAT_MAX];
	const struct device_ops *v = w->dev->ops;

	for (int i = -1; i < w->repeat; i++) {
		double at[5];

		at[0] = now(w);
		TRY(w->op->apply(w->op, &w->x, &w->p, err));
		at[1] = now(w);
		TRY(v->rule_bins(&em, &w->y, &w->p, NULL, NULL, NULL, &w->p, err));
		at[2] = now(w);
		TRY(w->op->adjoint(w->op, &w->p, &w->num, err));
		at[3] = now(w);
		TRY(v->rule_voxels(&em, &w->num, &w->den, &w->x, err));
		at[4] = now(w);
		for (int s = 0; i >= 0 && s < ITERATION; s++)
			took[s][i] = at[s + 1] - at[s];
	}
	for (int i = 0; i < w->repeat; i++) {
		double begun = now(w);

		TRY(w->op->apply(w->op, &w->x, &w->p, err));
		TRY(v->rule_bins(&em, &w->y, &w->p, NULL, NULL, NULL, &w->p, err));
		TRY(w->op->adjoint(w->op, &w->p, &w->num, err));
		TRY(v->rule_voxels(&em, &w->num, &w->den, &w->x, err));
		took[ITERATION][i] = now(w) - begun;
	}
	for (int s = 0; s < N_STAGES; s++) {
		struct bench_times times;

		bench_median(took[s], w->repeat, &times);
		w->median[s] = times.median;
	}
	return 0;
}

static int fetch(const struct buf *b, float **ret, struct err *err)
{
	*ret = malloc(b->n * sizeof(float));
	if (!*ret)
		return err_set(err, ENOMEM, "no memory for %zu floats", b->n);
	return b->dev->ops->download(b, *ret, err);
}

static double difference(const float *a, const float *b, size_t n)
{
	double largest = 0, worst = 0;

	for (size_t i = 0; i < n; i++) {
		largest = fmax(largest, fabs((double)b[i]));
		worst = fmax(worst, fabs((double)a[i] - b[i]));
		if (isnan(a[i]) || isnan(b[i]))
			return NAN;
	}
	return worst / largest;
}

static double worst_chord(const struct work *w, const float *line)
{
	const struct scan *s = w->scan;
	double worst = 0;

	for (int view = 0; view < w->angles; view++)
		for (int v = 0; v < s->n_v; v++)
			for (int u = 0; u < s->n_u; u++) {
				double t = scan_reach(s, v), slope = t > 0 ? scan_slope(s, s->planes[u].rise, v) : 0;
				double want = 2 * t * sqrt(1 + slope * slope);
				double got = line[((size_t)view * (size_t)s->n_v + (size_t)v) * (size_t)s->n_u + (size_t)u];

				if (want == 0 && got != 0)
					return INFINITY;
				if (want > 0)
					worst = fmax(worst, fabs(got / want - 1));
			}
	return worst;
}

static int check(struct work *w, struct err *err)
{
	const struct device_ops *v = w->dev->ops;
	struct linop *exact = NULL;
	float *a = NULL, *b = NULL;
	int r = -1;

	if (bench_random(&w->x, 0.1f, 1.1f, 5, err) < 0 || make_operator(w, PROJECTION_EXACT, &exact, err) < 0 ||
	    w->op->apply(w->op, &w->x, &w->p, err) < 0 || fetch(&w->p, &a, err) < 0 ||
	    exact->apply(exact, &w->x, &w->p, err) < 0 || fetch(&w->p, &b, err) < 0)
		goto out;
	w->difference_forward = difference(a, b, w->p.n);
	free(a);
	free(b);
	a = b = NULL;
	if (w->op->adjoint(w->op, &w->y, &w->num, err) < 0 || fetch(&w->num, &a, err) < 0 ||
	    exact->adjoint(exact, &w->y, &w->num, err) < 0 || fetch(&w->num, &b, err) < 0)
		goto out;
	w->difference_back = difference(a, b, w->num.n);
	free(a);
	a = NULL;
	if (v->fill(&w->x, 1, err) < 0 || w->op->apply(w->op, &w->x, &w->p, err) < 0 || fetch(&w->p, &a, err) < 0)
		goto out;
	w->chord = worst_chord(w, a);
	w->gap = linop_adjoint_gap(w->op, 1, err);
	r = w->gap < 0 ? -1 : 0;
out:
	free(a);
	free(b);
	linop_free(exact);
	return r;
}

static int run(struct work *w, struct err *err)
{
	struct bench_pet pet = bench_pet_discovery_ste;

	TRY(device_open(w->device, &w->dev, err));
	pet.matrix = w->matrix;
	pet.fov_radius = w->fov;
	TRY(bench_pet_geometry(&pet, &w->scan, &w->grid, err));
	if (w->angles < 1 || w->angles > w->scan->n_views)
		w->angles = w->scan->n_views;
	TRY(make_operator(w, w->model, &w->op, err));
	TRY(bench_random_alloc(w->dev, w->op->n_in, 0.1f, 1.1f, 1, &w->x, err));
	TRY(bench_random_alloc(w->dev, w->op->n_out, 0.1f, 1.1f, 2, &w->y, err));
	TRY(w->dev->ops->alloc(w->dev, w->op->n_out, &w->p, err));
	TRY(w->dev->ops->alloc(w->dev, w->op->n_in, &w->num, err));
	TRY(w->dev->ops->alloc(w->dev, w->op->n_in, &w->den, err));
	TRY(linop_sensitivity(w->op, &w->den, err));
	TRY(measure(w, err));
	return w->check ? check(w, err) : 0;
}

static void print(const struct work *w)
{
	printf("{\"bench\": \"pet\", \"device\": \"%s\", \"model\": \"%s\", \"voxels\": \"%dx%dx47\", \"fov_mm\": %g, "
	       "\"angles\": %d, "
	       "\"deterministic\": %s, \"repeat\": %d",
	       w->dev->name, w->model_name, w->matrix, w->matrix, w->fov, w->angles, w->deterministic ? "true" : "false",
	       w->repeat);
	for (int s = 0; s < N_STAGES; s++)
		printf(", \"%s_ms\": %.4g", stage_names[s], 1e3 * w->median[s]);
	if (w->check)
		printf(", \"forward_difference\": %.3g, \"back_difference\": %.3g, \"adjoint_gap\": %.3g, \"chord_error\": %.3g",
		       w->difference_forward, w->difference_back, w->gap, w->chord);
	printf("}\n");
}

static int usage(void)
{
	fprintf(stderr,
		"usage: bench_pet [--device SPEC] [--matrix N] [--fov MM] [--model siddon|joseph|exact] [--deterministic] "
		"[--angles N] [--repeat N] [--check]\n");
	return 2;
}

int main(int argc, char **argv)
{
	static const struct option options[] = {
		{"device", required_argument, NULL, 'd'},
		{"matrix", required_argument, NULL, 'm'},
		{"fov", required_argument, NULL, 'f'},
		{"model", required_argument, NULL, 'p'},
		{"deterministic", no_argument, NULL, 'b'},
		{"angles", required_argument, NULL, 'a'},
		{"repeat", required_argument, NULL, 'r'},
		{"check", no_argument, NULL, 'c'},
		{NULL, 0, NULL, 0},
	};
	struct work w = {.device = "auto", .model_name = "siddon", .matrix = 256, .fov = 350, .repeat = 5};
	struct err err = {0};
	int option, rc;

	while ((option = getopt_long(argc, argv, "", options, NULL)) != -1) {
		switch (option) {
		case 'd':
			w.device = optarg;
			break;
		case 'm':
			w.matrix = atoi(optarg);
			break;
		case 'f':
			w.fov = atof(optarg);
			break;
		case 'p':
			w.model_name = optarg;
			break;
		case 'b':
			w.deterministic = true;
			break;
		case 'a':
			w.angles = atoi(optarg);
			break;
		case 'r':
			w.repeat = atoi(optarg);
			break;
		case 'c':
			w.check = true;
			break;
		default:
			return usage();
		}
	}
	w.model = !strcmp(w.model_name, "siddon")   ? PROJECTION_PATHS
		  : !strcmp(w.model_name, "joseph") ? PROJECTION_JOSEPH
		  : !strcmp(w.model_name, "exact")  ? PROJECTION_EXACT
						    : 0;
	if (!w.model || w.matrix < 2 || !(w.fov > 0) || w.repeat < 1 || w.repeat > BENCH_REPEAT_MAX || optind != argc)
		return usage();
	rc = run(&w, &err);
	if (rc < 0)
		fprintf(stderr, "bench_pet: %s\n", err.msg);
	else
		print(&w);
	linop_free(w.op);
	buf_release(&w.x);
	buf_release(&w.y);
	buf_release(&w.p);
	buf_release(&w.num);
	buf_release(&w.den);
	scan_free(w.scan);
	device_close(w.dev);
	return rc < 0 ? 1 : 0;
}
