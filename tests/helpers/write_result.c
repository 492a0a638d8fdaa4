/* SPDX-License-Identifier: Apache-2.0 */
/* write_result - write the slices of a session as DICOM objects, without a reconstruction, and print the time as a line of JSON.
 *
 *   write_result -o DIR [--size NXxNYxNZ] [--set KEY=VALUE]... FILE...
 * The volume is synthetic: tissue with noise; each slice is the previous one moved by a row. Reading a slice is a copy in memory,
 * as from a pinned buffer. FILEs: projections of any exam (`tomonode simulate`), the source of the objects' attributes. The
 * functions below replace those of the session in recon/. */
#include <errno.h>
#include <getopt.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "dicom/pixels/start.h"
#include "kernels/clock.h"
#include "node/config/config.h"
#include "node/result/result.h"
#include "node/tomo/exam.h"

struct dbt_session {
	struct grid grid;
	float *base; /* one slice, and one more row for each slice */
};

static size_t row_size(const struct dbt_session *s)
{
	return (size_t)s->grid.n[0];
}

int dbt_read_slices(struct dbt_session *s, int first, int n, float *ret_slices, struct err *err)
{
	size_t slice = row_size(s) * (size_t)s->grid.n[1];

	if (first < 0 || first + n > s->grid.n[2])
		return err_set(err, EINVAL, "slices %d to %d of %d", first, first + n - 1, s->grid.n[2]);
	for (int k = 0; k < n; k++)
		memcpy(ret_slices + (size_t)k * slice, s->base + (size_t)(first + k) * row_size(s), slice * sizeof(float));
	return 0;
}

int dbt_read_stored(struct dbt_session *s, int k, const struct stored_form *form, uint16_t *ret_values, struct err *err)
{
	if (k < 0 || k >= s->grid.n[2])
		return err_set(err, EINVAL, "slice %d of %d", k, s->grid.n[2]);
	stored_rows(form, s->base + (size_t)k * row_size(s), 0, form->rows, ret_values);
	return 0;
}

/* Count the values of one slice only, because a device counts faster than this process reads. */
int dbt_tally(struct dbt_session *s, double offset, double step, uint64_t bins[65536], size_t *ret_counted,
	      struct tally *ret_tally, struct err *err)
{
	size_t n = row_size(s) * (size_t)s->grid.n[1];

	(void)err;
	for (size_t i = 0; i < n; i++)
		bins[(size_t)fmin(fmax(floor((s->base[i] - offset) / step + 0.5), 0), 65535)]++;
	*ret_counted = n;
	*ret_tally = (struct tally){0};
	return 0;
}

/* Half of each row is tissue of 0.05 / mm with texture and noise, the rest is air. */
static int make_volume(struct dbt_session *s)
{
	size_t rows = (size_t)(s->grid.n[1] + s->grid.n[2]), columns = row_size(s);
	uint32_t x = 1;

	s->base = malloc(rows * columns * sizeof(float));
	if (!s->base)
		return -ENOMEM;
	for (size_t r = 0; r < rows; r++)
		for (size_t c = 0; c < columns; c++) {
			x = x * 1664525u + 1013904223u;
			s->base[r * columns + c] = c > columns / 2 ? 0
								   : 0.05f + 0.01f * sinf((float)r / 90) * sinf((float)c / 70) +
									     1e-8f * (float)(x >> 12);
		}
	return 0;
}

static int write_it(struct config *config, const struct protocol_conf *protocol, struct dbt_session *s, const char *out,
		    char **files, size_t n, struct err *err)
{
	struct dbt_plan plan = {.grid = s->grid, .n_views = (int)n, .subsets = (int)n};
	struct result_info info = {.protocol = protocol, .plan = &plan, .device = "none", .now = clock_wall()};
	struct result_report r = {0};
	struct exam *exam = NULL;
	uint64_t bytes = 0;
	double begun;
	int rc = exam_open((const char *const *)files, n, false, NULL, config, &exam, err);

	if (rc == 0)
		rc = result_check(protocol, &plan, err);
	begun = clock_seconds();
	if (rc == 0)
		rc = result_write(exam, &info, s, out, &r, err);
	for (size_t i = 0; i < r.n_objects; i++)
		bytes += r.objects[i].bytes;
	if (rc == 0)
		printf("{\"bench\": \"write_result\", \"size\": [%d, %d, %d], \"objects\": %zu, \"bytes\": %llu, \"seconds\": "
		       "%.4f, \"tally\": %.4f, \"download\": %.4f, \"write\": %.4f, \"sync\": %.4f}\n",
		       s->grid.n[0], s->grid.n[1], s->grid.n[2], r.n_objects, (unsigned long long)bytes, clock_seconds() - begun,
		       r.seconds_tally, r.seconds_download, r.seconds_write, r.seconds_sync);
	exam_close(exam);
	return rc;
}

int main(int argc, char **argv)
{
	static const struct option options[] = {{"output", required_argument, NULL, 'o'},
						{"size", required_argument, NULL, 's'},
						{"set", required_argument, NULL, 'e'},
						{0}};
	struct dbt_session s = {.grid = {.n = {2816, 3584, 60}, .h = {0.085, 0.085, 1}, .lo = {0, -152.32, 20}}};
	struct config *config = NULL;
	struct protocol_conf protocol;
	struct err err = {0};
	const char *out = NULL;
	int c, rc;

	if (dicom_start(&err) < 0 || config_load(NULL, NULL, NULL, &config, &err) < 0) {
		fprintf(stderr, "write_result: %s\n", err.msg);
		return 1;
	}
	protocol = config->protocols[0];
	while ((c = getopt_long(argc, argv, "o:", options, NULL)) != -1) {
		if (c == 'o')
			out = optarg;
		else if (c != 's' && c != 'e')
			out = NULL;
		if ((c == 's' && sscanf(optarg, "%dx%dx%d", &s.grid.n[0], &s.grid.n[1], &s.grid.n[2]) != 3) ||
		    (c == 'e' && config_set(&protocol, optarg, &err) < 0) || (c == '?')) {
			fprintf(stderr, "write_result: '%s': %s\n", optarg ? optarg : "", err.msg);
			return 2;
		}
	}
	if (!out || optind == argc) {
		fprintf(stderr, "usage: write_result -o DIR [--size NXxNYxNZ] [--set KEY=VALUE]... FILE...\n");
		return 2;
	}
	mkdir(out, 0777);
	rc = make_volume(&s);
	if (rc == 0)
		rc = write_it(config, &protocol, &s, out, argv + optind, (size_t)(argc - optind), &err);
	if (rc < 0)
		fprintf(stderr, "write_result: %s\n", err.msg[0] ? err.msg : strerror(-rc));
	free(s.base);
	config_free(config);
	dicom_stop();
	return rc < 0 ? 1 : 0;
}
