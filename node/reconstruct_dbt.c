/* reconstruct_dbt.c - one tomosynthesis from files to files: open, plan, read and prepare, reconstruct, write.
 *
 * Nothing is allocated in proportion to the image before the plan is accepted; nothing appears in the output folder before the
 * whole object is on disk. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "kernels/clock.h"
#include "node/case_views.h"
#include "node/exam.h"
#include "node/reconstruct_parts.h"
#include "node/result.h"
#include "node/task.h"

struct work {
	const struct protocol_conf *protocol;
	const struct monitor *monitor;
	struct exam *exam;
	struct device *dev; /* borrowed */
	struct dbt_plan plan;
	struct dbt_session *session;
	struct reconstruct_report report;
};

static int open_case(struct work *w, const struct config *config, const char *const *paths, size_t n_paths, struct err *err)
{
	double begun = clock_seconds();
	int rc;

	monitor_progress(w->monitor, "open", 0);
	rc = exam_open(paths, n_paths, config, &w->exam, err);
	if (rc < 0)
		return rc;
	rc = dbt_plan(&w->protocol->dbt, w->exam->scan, w->exam->support, w->exam->thickness, w->dev, &w->plan, err);
	if (rc == 0)
		rc = result_check(w->protocol, &w->plan, err);
	if (rc == -EINVAL) { /* the protocol and this case do not fit: to be held, not to be tried again */
		if (err)
			err->code = ENOTSUP;
		return -ENOTSUP;
	}
	if (rc == 0)
		rc = dbt_open(&w->protocol->dbt, &w->plan, w->exam->scan, w->dev, &w->session, err);
	w->report.seconds_open = clock_seconds() - begun;
	return rc;
}

static int read_case(struct work *w, struct err *err)
{
	struct case_views_report views = {0};
	int rc = case_read_views(w->exam, &w->protocol->dbt, &w->plan, w->session, task_threads(), w->monitor, &views, err);

	w->report.seconds_read = views.seconds_read;
	w->report.seconds_prepare = views.seconds_prepare;
	w->report.seconds_upload = views.seconds_upload;
	w->report.padded = views.padded;
	w->report.saturated = views.saturated;
	w->report.floored = views.floored;
	w->report.clamped = views.clamped;
	w->report.air = views.air;
	w->report.unmasked = views.unmasked;
	return rc;
}

static int reconstruct(struct work *w, struct err *err)
{
	double begun = clock_seconds();
	struct dbt_report report;
	int rc = dbt_run(w->session, w->monitor, &report, err);

	w->report.seconds_reconstruct = clock_seconds() - begun;
	return rc;
}

static int write_case(struct work *w, const char *out_dir, struct err *err)
{
	struct result_info info = {.protocol = w->protocol, .plan = &w->plan, .now = clock_wall()};
	struct reconstruct_report *report = &w->report;
	int rc;

	monitor_progress(w->monitor, "write", 0);
	if (monitor_cancelled(w->monitor))
		return err_set(err, ECANCELED, "cancelled before writing");
	snprintf(info.device, sizeof(info.device), "%s", w->dev->name);
	if (mkdir(out_dir, 0777) < 0 && errno != EEXIST)
		return err_set(err, errno, "cannot make the output folder %s: %s", out_dir, strerror(errno));
	rc = result_write(w->exam, &info, w->session, out_dir, &report->result, err);
	if (rc < 0)
		return rc;
	monitor_progress(w->monitor, "write", 1);
	report->seconds_download = report->result.seconds_tally + report->result.seconds_download;
	report->seconds_write = report->result.seconds_write;
	return 0;
}

static void fill_report(struct work *w)
{
	struct reconstruct_report *report = &w->report;

	snprintf(report->device, sizeof(report->device), "%s", w->dev->name);
	snprintf(report->profile, sizeof(report->profile), "%s", w->exam->profile->name);
	report->n_views = w->plan.n_views;
	report->bytes_device = w->plan.bytes_total;
	for (int c = 0; c < 3; c++) {
		report->n[c] = w->plan.grid.n[c];
		report->voxel[c] = w->plan.grid.h[c];
	}
}

int reconstruct_dbt(const struct config *config, const struct protocol_conf *protocol, struct device *dev,
		    const char *const *paths, size_t n_paths, const char *out_dir, const struct monitor *monitor,
		    struct reconstruct_report *ret_report, struct err *err)
{
	struct work w = {.protocol = protocol, .monitor = monitor, .dev = dev};
	double begun = clock_seconds();
	int rc;

	rc = open_case(&w, config, paths, n_paths, err);
	if (rc < 0)
		goto out;
	rc = read_case(&w, err);
	if (rc < 0)
		goto out;
	rc = reconstruct(&w, err);
	if (rc < 0)
		goto out;
	rc = write_case(&w, out_dir, err);
	if (rc < 0)
		goto out;
	fill_report(&w);
	w.report.seconds_total = clock_seconds() - begun;
	*ret_report = w.report;
	rc = 0;
out:
	dbt_close(w.session);
	exam_close(w.exam);
	return rc;
}
