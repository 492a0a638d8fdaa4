/* SPDX-License-Identifier: Apache-2.0 */
/* case_views_kept.c - what is kept of the views of a case for another result of the same exam. */
#include <stdlib.h>

#include "node/reconstruct/case_views.h"

static void *free_views(void *views, int n)
{
	void **view = views;

	for (int i = 0; view && i < n; i++)
		free(view[i]);
	free(view);
	return NULL;
}

/* Return a buffer for each view; NULL: no memory. */
static void *make_views(int n, size_t bytes)
{
	void **view = calloc((size_t)n, sizeof(*view));

	for (int i = 0; view && i < n; i++)
		if (!(view[i] = malloc(bytes)))
			return free_views(view, n);
	return view;
}

void case_views_kept_clear(struct case_views_kept *kept)
{
	free_views(kept->raw, kept->n_views);
	free_views(kept->made, kept->n_views);
	*kept = (struct case_views_kept){0};
}

static size_t bytes_made(const struct dbt_plan *plan)
{
	return 2 * sizeof(float) * (size_t)plan->n_u * (size_t)plan->n_v;
}

/* Beside the exam, only these settings have an influence on the line integrals. */
size_t case_views_kept_bytes(struct case_views_kept *kept, const struct exam *exam, const struct dbt_protocol *protocol,
			     const struct dbt_plan *plan)
{
	size_t bytes = 0;

	if (kept->bin != plan->bin || kept->mask != protocol->breast_mask || kept->scatter != protocol->scatter) {
		kept->made = free_views(kept->made, kept->n_views);
		kept->complete = false;
	}
	kept->n_views = exam->n_views;
	kept->bin = plan->bin;
	kept->mask = protocol->breast_mask;
	kept->scatter = protocol->scatter;
	if (kept->raw || kept->keep)
		bytes += (size_t)exam->n_views * scan_view_size(exam->scan) * sizeof(uint16_t);
	if (exam->flatfield)
		bytes += scan_view_size(exam->scan) * sizeof(float);
	if (kept->made || kept->keep)
		bytes += (size_t)exam->n_views * bytes_made(plan);
	return bytes;
}

void case_views_kept_make_room(struct case_views_kept *kept, size_t pixels, const struct dbt_plan *plan)
{
	if (!kept || !kept->keep)
		return;
	if (!kept->raw)
		kept->raw = make_views(kept->n_views, pixels * sizeof(uint16_t));
	if (kept->raw && !kept->made)
		kept->made = make_views(kept->n_views, bytes_made(plan));
	kept->keep = kept->raw;
}
