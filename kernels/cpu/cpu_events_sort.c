/* SPDX-License-Identifier: Apache-2.0 */
/* cpu_events_sort.c - sort events by the cell of their line (kernels/events.h): a counting sort, which keeps the order of the
 * events of a cell. Each thread moves the events of a range of cells. */
#include "kernels/cpu/cpu_events.h"

#include <errno.h>
#include <string.h>

static void find_cells(struct events *a, const struct event *events, size_t n)
{
	int threads = cpu_state(a->dev)->threads;

#pragma omp parallel for num_threads(threads) schedule(static) if (threads > 1)
	for (size_t i = 0; i < n; i++) {
		struct event_line line;

		a->cell[i] = event_line_make(&a->model, &events[i], a->detectors.mem, &line)
				     ? (uint32_t)event_cell(&a->cells, &line)
				     : (uint32_t)a->cells.first[3] - 1;
	}
}

/* Set count[c] to the number of events in the cells before c. */
static void count_cells(struct events *a, size_t n)
{
	uint32_t sum = 0;

	memset(a->count, 0, ((size_t)a->cells.first[3] + 1) * sizeof(*a->count));
	for (size_t i = 0; i < n; i++)
		a->count[a->cell[i]]++;
	for (int c = 0; c <= a->cells.first[3]; c++) {
		uint32_t here = a->count[c];

		a->count[c] = sum;
		sum += here;
	}
}

/* Return the first of the cells that thread t of n moves: the parts have about the same number of events. */
static uint32_t first_cell(const struct events *a, size_t n_events, int t, int n)
{
	uint32_t low = 0, high = (uint32_t)a->cells.first[3];

	while (low < high) {
		uint32_t middle = (low + high) / 2;

		if (a->count[middle] * (size_t)n < n_events * (size_t)t)
			low = middle + 1;
		else
			high = middle;
	}
	return t == n ? (uint32_t)a->cells.first[3] : low;
}

int cpu_events_sort(struct events *a, struct buf *events, struct err *err)
{
	struct event *list = (struct event *)(void *)events->mem;
	size_t n = events->n / EVENT_FLOATS;
	int threads = cpu_state(a->dev)->threads;

	if (events->n % EVENT_FLOATS != 0 || n > a->batch)
		return err_set(err, EINVAL, "list mode: sort %zu floats of events; allowed: %zu events", events->n, a->batch);
	find_cells(a, list, n);
	count_cells(a, n);
#pragma omp parallel num_threads(threads) if (threads > 1)
	{
		uint32_t first = first_cell(a, n, cpu_thread(), cpu_team()), end = first_cell(a, n, cpu_thread() + 1, cpu_team());

#pragma omp barrier
		for (size_t i = 0; i < n; i++)
			if (a->cell[i] >= first && a->cell[i] < end)
				a->sorted[a->count[a->cell[i]]++] = list[i];
	}
	memcpy(list, a->sorted, n * sizeof(*list));
	return 0;
}
