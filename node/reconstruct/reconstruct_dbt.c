/* reconstruct_dbt.c - one tomosynthesis: views are read and prepared side by side, slices are written while they come. */
#include <errno.h>
#include <stdio.h>

#include "kernels/clock.h"
#include "node/base/thread_pool.h"
#include "node/reconstruct/case_views.h"
#include "node/reconstruct/reconstruct_internal.h"
#include "node/result/result.h"
#include "node/tomo/exam.h"

struct dbt_work {
	struct reconstruct_work base;
	struct exam *exam;
	struct dbt_plan plan;
	struct dbt_session *session;
};

static int open_case(struct reconstruct_work *base, struct err *err)
{
	struct dbt_work *w = (struct dbt_work *)base;
	int rc = exam_open(base->paths, base->n_paths, base->as_is, base->config, &w->exam, err);

	if (rc < 0)
		return rc;
	rc = dbt_plan(&base->protocol->dbt, w->exam->scan, w->exam->support, w->exam->thickness, base->dev, &w->plan, err);
	if (rc == 0)
		rc = result_check(base->protocol, &w->plan, err);
	rc = err_remap(rc, EINVAL, ENOTSUP, err); /* the protocol and this case do not fit */
	if (rc == 0)
		rc = dbt_open(&base->protocol->dbt, &w->plan, w->exam->scan, base->dev, &w->session, err);
	return rc;
}

static int read_case(struct reconstruct_work *base, struct err *err)
{
	struct dbt_work *w = (struct dbt_work *)base;
	struct case_views_report views = {0};
	int rc = case_read_views(w->exam, &base->protocol->dbt, &w->plan, w->session, threads_available(), base->monitor, &views,
				 err);

	base->report.seconds_read = views.seconds_read;
	base->report.seconds_prepare = views.seconds_prepare;
	base->report.seconds_upload = views.seconds_upload;
	base->report.padded = views.padded;
	base->report.saturated = views.saturated;
	base->report.floored = views.floored;
	base->report.clamped = views.clamped;
	base->report.air = views.air;
	base->report.unmasked = views.unmasked;
	return rc;
}

static int run_case(struct reconstruct_work *base, struct err *err)
{
	struct dbt_work *w = (struct dbt_work *)base;

	return dbt_run(w->session, base->monitor, NULL, err);
}

static int write_case(struct reconstruct_work *base, struct err *err)
{
	struct dbt_work *w = (struct dbt_work *)base;
	struct result_info info = {.protocol = base->protocol, .plan = &w->plan, .now = clock_wall()};
	struct reconstruct_report *report = &base->report;
	int rc;

	snprintf(info.device, sizeof(info.device), "%s", base->dev->name);
	rc = result_write(w->exam, &info, w->session, base->out_dir, &report->result, err);
	if (rc < 0)
		return rc;
	report->seconds_download = report->result.seconds_tally + report->result.seconds_download;
	report->seconds_write = report->result.seconds_write;
	return 0;
}

static const struct grid *fill_report(struct reconstruct_work *base)
{
	struct dbt_work *w = (struct dbt_work *)base;
	struct reconstruct_report *report = &base->report;

	snprintf(report->profile, sizeof(report->profile), "%s", w->exam->profile->name);
	report->n_views = w->plan.n_views;
	report->bytes_device = w->plan.bytes_total;
	return &w->plan.grid;
}

static void close_case(struct reconstruct_work *base)
{
	struct dbt_work *w = (struct dbt_work *)base;

	dbt_close(w->session);
	exam_close(w->exam);
}

const struct reconstruct_kind reconstruct_dbt = {
	sizeof(struct dbt_work), open_case, read_case, run_case, write_case, fill_report, close_case,
};
