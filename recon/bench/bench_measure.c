/* SPDX-License-Identifier: Apache-2.0 */
/* bench_measure.c - measure times and compute their medians. */
#include <errno.h>
#include <stdlib.h>

#include "kernels/clock.h"
#include "kernels/order.h"
#include "recon/bench/bench_internal.h"

#define LEAST 3	   /* smallest number of runs */
#define ENOUGH 100 /* largest number of runs */
#define SECONDS 1.0

void bench_median(double *seconds, int n, struct bench_times *ret_times)
{
	qsort(seconds, (size_t)n, sizeof(*seconds), order_doubles);
	*ret_times = (struct bench_times){
		.n = n,
		.median = n % 2 ? seconds[n / 2] : 0.5 * (seconds[n / 2 - 1] + seconds[n / 2]),
		.least = seconds[0],
		.most = seconds[n - 1],
		.spread = seconds[(3 * (n - 1) + 2) / 4] - seconds[(n - 1) / 4],
	};
}

/* Return whether n runs in `spent` seconds are enough. */
static bool is_enough(int n, int repeat, double spent)
{
	return repeat ? n == repeat : n >= LEAST && (n == ENOUGH || spent >= SECONDS);
}

int bench_measure(struct device *dev, int repeat, int n_steps, int (*step)(void *ctx, int i, struct err *err), void *ctx,
		  struct bench_times *ret_times, struct err *err)
{
	double took[BENCH_STAGES_MAX][BENCH_REPEAT_MAX], spent = 0;
	int r = 0, n = -1; /* -1: the warm-up */

	if (repeat < 0 || repeat > BENCH_REPEAT_MAX)
		return err_set(err, EINVAL, "%d runs; allowed: 0 to %d", repeat, BENCH_REPEAT_MAX);
	while (r == 0 && !is_enough(n, repeat, spent)) {
		for (int i = 0; r == 0 && i < n_steps; i++) {
			double begun = clock_seconds();

			r = step(ctx, i, err);
			if (r == 0)
				r = dev->ops->wait(dev, QUEUE_WORK, err);
			if (n >= 0) {
				took[i][n] = clock_seconds() - begun;
				spent += took[i][n];
			}
		}
		n++;
	}
	for (int i = 0; r == 0 && i < n_steps; i++)
		bench_median(took[i], n, &ret_times[i]);
	return r;
}

int bench_fits(const struct device *dev, size_t bytes, struct err *err)
{
	if (dev->memory == 0 || bytes <= dev->memory)
		return 0;
	return err_set(err, ENOMEM, "%.3f GB are needed on %s, which has %.3f GB", 1e-9 * (double)bytes, dev->name,
		       1e-9 * (double)dev->memory);
}
