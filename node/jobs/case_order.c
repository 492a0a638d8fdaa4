/* SPDX-License-Identifier: Apache-2.0 */
#include "node/jobs/case_order.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "node/base/list_grow.h"

struct reader {
	struct case_order *order;
	size_t capacity;
	struct err *err;
};

static int add_file(void *ctx, const struct instance_row *row, const char *detail)
{
	struct reader *r = ctx;
	struct case_order *order = r->order;

	(void)detail;
	if (!list_grow(&order->files, order->n_files, &r->capacity, sizeof(*order->files)))
		return err_set(r->err, EAGAIN, "no memory for %zu files",
			       order->n_files + 1); /* EAGAIN: temporary, unlike a plan that does not fit */
	order->files[order->n_files++] = *row;
	return 0;
}

int case_order_read_files(struct journal *j, int64_t job, struct case_order *ret_order, struct err *err)
{
	struct case_order order = {.job = job};
	struct reader r = {.order = &order, .err = err};
	int ret = journal_each_member(j, job, add_file, &r, err);

	if (ret < 0)
		case_order_clear(&order);
	*ret_order = order;
	return ret;
}

int case_order_read(struct journal *j, const struct job_view *v, struct case_order *ret_order, struct err *err)
{
	int ret = case_order_read_files(j, v->id, ret_order, err);

	if (ret < 0)
		return ret;
	ret_order->attempt = v->started_seq;
	snprintf(ret_order->protocol, sizeof(ret_order->protocol), "%s", v->protocol);
	ret_order->as_is = v->members.as_is;
	ret_order->same_patient = v->same_patient > 0;
	snprintf(ret_order->settings, sizeof(ret_order->settings), "%s", v->other.settings ? v->other.settings : "");
	ret_order->place = (struct result_place){.number = v->other.number, .redo = v->other.redo_of > 0 ? v->id : 0};
	if (v->newer_of > 0) /* other images under the same UIDs, but the same ones for all results of the case */
		ret_order->place.newer = v->other.of > 0 ? v->other.of : v->id;
	snprintf(ret_order->place.related_series, sizeof(ret_order->place.related_series), "%s", v->other.related);
	snprintf(ret_order->header, sizeof(ret_order->header), "%s", v->header ? v->header : "");
	return 0;
}

void case_order_clear(struct case_order *order)
{
	free(order->files);
	*order = (struct case_order){0};
}

void case_outcome_clear(struct case_outcome *outcome)
{
	json_decref(outcome->detail);
	*outcome = (struct case_outcome){0};
}
