/* SPDX-License-Identifier: Apache-2.0 */
/* retention_unassigned.c - retention of unassigned objects, which belong to no case: of a kind that is not reconstructed,
 * refused, sent again, or with other content than an earlier object with the same UID; and of CT images that no case uses.
 *
 * - They were acknowledged but are never delivered, so they are kept unless a person configures for how long
 *   (node.retention_unassigned_days).
 * - First the journal, then the file is changed, as for cases: a file that remains after a crash is removed at the next start.
 *   The row stays and records the object; the same object sent again is stored again.
 * - A member of a case is never removed here, whatever the state of the case.
 */
#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "node/audit/audit.h"
#include "node/base/log.h"
#include "node/serve/retention.h"

#define DAY 86400.0

struct unassigned {
	const struct jobs *jobs; /* an object of a study with an open case remains; NULL: whatever its study is */
	size_t n;
	struct one {
		struct instance_row row;
		json_t *detail; /* detail of the classification: with study and patient if there is an audit trail */
	} list[RETENTION_UNASSIGNED_MAX];
};

/* Whether a case of this study may still need a CT: it is collecting, held or about to be reconstructed. */
static bool is_open(const struct jobs *jobs, const char *study)
{
	for (size_t i = 0; study && i < jobs->n_open; i++) {
		const struct job_view *v = jobs->open[i];

		if (!strcmp(v->study, study) && (v->state == JOB_COLLECTING || v->state == JOB_HELD || v->state == JOB_READY))
			return true;
	}
	return false;
}

static int add_unassigned(void *ctx, const struct instance_row *row, const char *detail)
{
	struct unassigned *u = ctx;
	struct one *o = &u->list[u->n];
	json_t *facts = audit_is_on() || u->jobs ? json_loads(detail, 0, NULL) : NULL;

	if (u->jobs && is_open(u->jobs, json_string_value(json_object_get(facts, "study")))) {
		json_decref(facts);
		return 0;
	}
	o->row = *row;
	o->detail = facts;
	u->n++;
	return 0;
}

static void audit_removal(const struct one *o)
{
	struct audit_study study = {.study = json_string_value(json_object_get(o->detail, "study")),
				    .patient = json_string_value(json_object_get(o->detail, "patient"))};

	if (!study.study || !audit_is_on())
		return; /* its header could not be read */
	study.patient = study.patient ? study.patient : "";
	audit_study_count(&study, o->row.sop_class, 1);
	audit_removed(&study);
}

static int remove_one(struct journal *j, const struct one *o, const char *spool, double now, struct err *err)
{
	char path[500];
	int ret = journal_remove_instance(j, o->row.id, now, err);

	if (ret < 0)
		return ret;
	if (!strncmp(o->row.file, "instances/", 10) && !strchr(o->row.file + 10, '/')) {
		snprintf(path, sizeof(path), "%s/%s", spool, o->row.file);
		if (unlink(path) < 0 && errno != ENOENT)
			return err_set(err, errno, "cannot remove %s: %s", path, strerror(errno));
	}
	audit_removal(o);
	return 0;
}

/* Remove what `each` lists. jobs: see struct unassigned. what: for the log. */
static size_t clean_listed(struct journal *j, const struct jobs *jobs, const char *spool, int days, double now,
			   int (*each)(struct journal *j, double until, int max,
				       int (*each)(void *ctx, const struct instance_row *row, const char *detail), void *ctx,
				       struct err *err),
			   const char *what)
{
	struct unassigned *u = calloc(1, sizeof(*u));
	struct err err = {0};
	size_t removed = 0;
	int ret;

	if (u)
		u->jobs = jobs;
	ret = u ? each(j, now - days * DAY, RETENTION_UNASSIGNED_MAX, add_unassigned, u, &err)
		: err_set(&err, ENOMEM, "no memory");

	for (size_t i = 0; u && i < u->n; i++) {
		if (ret == 0)
			ret = remove_one(j, &u->list[i], spool, now, &err);
		removed += ret == 0;
		json_decref(u->list[i].detail);
	}
	if (ret < 0)
		log_event(LOG_ERR, "retention-failed", "reason=%s", log_quote(err.msg));
	if (removed > 0)
		log_event(LOG_INFO, what, "removed=%zu days=%d", removed, days);
	free(u);
	return removed;
}

size_t retention_clean_unassigned(struct journal *j, const char *spool, int days, double now)
{
	return clean_listed(j, NULL, spool, days, now, journal_each_unassigned, "retention-unassigned");
}

size_t retention_clean_companions(struct journal *j, const struct jobs *jobs, const char *spool, int days, double now)
{
	return clean_listed(j, jobs, spool, days, now, journal_each_unused_companion, "retention-companions");
}
