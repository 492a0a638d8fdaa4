/* SPDX-License-Identifier: Apache-2.0 */
#include "node/jobs/companion.h"

#include <errno.h>
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "node/base/json_get.h"
#include "node/base/list_grow.h"
#include "node/base/plural.h"
#include "node/jobs/patients.h"

/* ---- the series that were received ---- */

static int compare_series(const struct companion_series *s, const char *study, const char *series)
{
	int by_study = strcmp(s->study, study);

	return by_study ? by_study : strcmp(s->series, series);
}

/* Return the index of the first series that is not before this one. */
static size_t find_position(const struct companions *c, const char *study, const char *series)
{
	size_t lo = 0, hi = c->n;

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;

		if (compare_series(&c->list[mid], study, series) < 0)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

static struct companion_series *find_or_add(struct companions *c, const char *study, const char *series)
{
	size_t at = find_position(c, study, series);

	if (at < c->n && compare_series(&c->list[at], study, series) == 0)
		return &c->list[at];
	if (!list_grow(&c->list, c->n, &c->capacity, sizeof(*c->list)))
		return NULL;
	memmove(&c->list[at + 1], &c->list[at], (c->n - at) * sizeof(c->list[0]));
	c->list[at] = (struct companion_series){0};
	snprintf(c->list[at].study, sizeof(c->list[at].study), "%s", study);
	snprintf(c->list[at].series, sizeof(c->list[at].series), "%s", series);
	c->n++;
	return &c->list[at];
}

static void add_patient(struct companion_series *s, const json_t *detail, int64_t instance)
{
	struct patient_identity identity;
	uint32_t key;

	if (!patients_parse(json_get_text(detail, "identity"), &identity, &key) || (s->patients.seen && key != s->patients_key)) {
		s->other_key = true;
		return;
	}
	s->patients_key = key;
	patient_set_add(&s->patients, &identity, instance);
}

static int add_instance(struct companions *c, const struct instance_row *row, const json_t *detail)
{
	const char *study = json_get_text(detail, "study"), *series = json_get_text(detail, "series"),
		   *frame = json_get_text(detail, "frame");
	double acquired = json_get_number(detail, "acquired");
	long expected = json_get_integer(detail, "expected");
	struct companion_series *s;

	if (!study[0] || !series[0] || strlen(study) > 64 || strlen(series) > 64 || strlen(frame) > 64)
		return -EBADMSG;
	s = find_or_add(c, study, series);
	if (!s || !list_grow(&s->instances, (size_t)s->images, &s->capacity, sizeof(*s->instances)))
		return -ENOMEM;
	if (expected > s->expected)
		s->expected = expected;
	if (row->received > s->last)
		s->last = row->received;
	snprintf(s->calling, sizeof(s->calling), "%s", row->calling);
	if (json_is_false(json_object_get(detail, "slice"))) { /* earlier versions wrote slices only, without this member */
		s->others++;
		if (!s->values[0])
			snprintf(s->values, sizeof(s->values), "%s", json_get_text(detail, "values"));
		return 0;
	}
	if (s->images == 0)
		snprintf(s->frame, sizeof(s->frame), "%s", frame);
	ct_part_named(json_get_text(detail, "part"), &s->part); /* not there: of the patient */
	s->mixed = s->mixed || !frame[0] || strcmp(s->frame, frame) != 0;
	if (acquired > 0 && (s->acquired <= 0 || acquired < s->acquired))
		s->acquired = acquired;
	add_patient(s, detail, row->id);
	s->instances[s->images++] = row->id;
	return 0;
}

int companions_add(struct companions *c, const struct instance_row *row, const char *detail)
{
	json_t *object = json_loads(detail, 0, NULL);
	int ret = add_instance(c, row, object);

	json_decref(object);
	return ret;
}

/* An image whose detail is damaged belongs to no series: the case that lacks it says what is missing. */
static int add_row(void *ctx, const struct instance_row *row, const char *detail)
{
	struct companions *c = ctx;
	int ret = companions_add(c, row, detail);

	if (ret == 0 || ret == -EBADMSG)
		c->last = row->id;
	return ret == -EBADMSG ? 0 : ret;
}

int companions_refresh(struct companions *c, struct journal *j, struct err *err)
{
	int ret = journal_each_companion(j, c->last, add_row, c, err);

	return ret == -ENOMEM && err && !err->code ? err_set(err, ENOMEM, "no memory for the CT series") : ret;
}

void companions_clamp_time(struct companions *c, double now)
{
	for (size_t i = 0; i < c->n; i++)
		if (c->list[i].last > now)
			c->list[i].last = now;
}

bool companions_have_sender(const struct companions *c, const char *study, const char *calling)
{
	for (size_t i = find_position(c, study, ""); i < c->n && !strcmp(c->list[i].study, study); i++)
		if (!strcmp(c->list[i].calling, calling))
			return true;
	return false;
}

void companions_clear(struct companions *c)
{
	for (size_t i = 0; i < c->n; i++)
		free(c->list[i].instances);
	free(c->list);
	*c = (struct companions){0};
}

/* ---- the decision ---- */

/* Say why a series does not fit; false: it fits. */
static bool is_unfit(const struct companion_series *s, const struct companion_need *need, char *ret_why, size_t size)
{
	struct patient_conflict conflict;

	ret_why[0] = '\0';
	if (s->images == 0 && s->values[0])
		snprintf(ret_why, size, "none of its images has Hounsfield units of a tube voltage: %s", s->values);
	else if (s->images == 0)
		snprintf(ret_why, size, "none of its images is axial");
	else if (s->mixed)
		snprintf(ret_why, size, "its images are not of one frame of reference");
	else if (strcmp(s->frame, need->frame) != 0)
		snprintf(ret_why, size, "it is of another frame of reference");
	else if (s->other_key || !need->patients->seen || s->patients_key != need->patients_key)
		snprintf(ret_why, size, "its patient cannot be compared with that of the case");
	else if (patient_sets_conflict(need->patients, &s->patients, &conflict))
		patient_conflict_text(&conflict, "between it and the case", ret_why, size);
	return ret_why[0];
}

static bool is_arriving(const struct companion_series *s, double now, double quiet_time)
{
	return now - s->last < quiet_time;
}

static bool is_short(const struct companion_series *s)
{
	return s->expected > 0 && s->images + s->others < s->expected;
}

/* Seconds between the acquisitions; HUGE_VAL: unknown. */
static double time_distance(const struct companion_series *s, const struct companion_need *need)
{
	return s->acquired > 0 && need->acquired > 0 ? fabs(s->acquired - need->acquired) : HUGE_VAL;
}

static bool is_nearer(const struct companion_series *a, const struct companion_series *b, const struct companion_need *need)
{
	double da = time_distance(a, need), db = time_distance(b, need);

	if (da != db)
		return da < db;
	return a->images != b->images ? a->images > b->images : strcmp(a->series, b->series) < 0;
}

struct candidates {
	const struct companion_series *best;	 /* the nearest of those that fit and are complete; NULL: none */
	const struct companion_series *arriving; /* the last of those that fit and are arriving */
	int fit;				 /* number of those that fit and are complete */
	const struct companion_series *hardware[CT_SERIES_MOST - 1]; /* that fit and are complete */
	int n_hardware, left_out;				     /* left_out: for which there was no place */
	int unfit;						     /* number of the others of the study */
	char why[400];						     /* about the first of these */
};

/* Take a map of hardware; of two tables the nearer one. */
static void add_hardware(struct candidates *found, const struct companion_series *s, const struct companion_need *need)
{
	int i = 0;

	while (i < found->n_hardware && (s->part != CT_TABLE || found->hardware[i]->part != CT_TABLE))
		i++;
	if (i < found->n_hardware && !is_nearer(s, found->hardware[i], need))
		return;
	if (i < CT_SERIES_MOST - 1) {
		found->hardware[i] = s;
		found->n_hardware += i == found->n_hardware;
	} else {
		found->left_out++;
	}
}

static void find_candidates(const struct companions *c, const struct companion_need *need, double now, double quiet_time,
			    struct candidates *ret)
{
	char why[300];

	*ret = (struct candidates){0};
	for (size_t i = find_position(c, need->study, ""); i < c->n && !strcmp(c->list[i].study, need->study); i++) {
		const struct companion_series *s = &c->list[i];
		bool unfit = is_unfit(s, need, why, sizeof(why));

		if (!unfit && is_arriving(s, now, quiet_time)) {
			ret->arriving = !ret->arriving || s->last > ret->arriving->last ? s : ret->arriving;
			continue;
		}
		if (!unfit && is_short(s)) {
			unfit = true;
			snprintf(why, sizeof(why), "it has only %ld of %ld images", s->images + s->others, s->expected);
		}
		if (unfit && ret->unfit++ == 0)
			snprintf(ret->why, sizeof(ret->why), "; CT series %s: %s", s->series, why);
		if (unfit)
			continue;
		if (s->part != CT_PATIENT) {
			add_hardware(ret, s, need);
			continue;
		}
		ret->fit++;
		if (!ret->best || is_nearer(s, ret->best, need))
			ret->best = s;
	}
	if (ret->n_hardware > 0 && ret->fit == 0 && ret->unfit == 0)
		snprintf(ret->why, sizeof(ret->why), "; there is a map of %s, but none of the patient",
			 ct_part_word(ret->hardware[0]->part));
}

static void describe_choice(const struct candidates *found, const struct companion_need *need, struct companion_decision *answer)
{
	const struct companion_series *s = found->best;
	double seconds = time_distance(s, need);
	size_t n = (size_t)snprintf(answer->text, sizeof(answer->text), "CT series %s of %ld image%s", s->series, s->images,
				    plural(s->images));

	if (isfinite(seconds))
		n += (size_t)snprintf(answer->text + n, sizeof(answer->text) - n, ", acquired %.0f s %s the PET data", seconds,
				      s->acquired > need->acquired ? "after" : "before");
	else
		n += (size_t)snprintf(answer->text + n, sizeof(answer->text) - n, ", whose time beside the PET data is unknown");
	if (found->fit > 1)
		n += (size_t)snprintf(answer->text + n, sizeof(answer->text) - n, ": %s of %d that fit",
				      isfinite(seconds) ? "the nearest" : "one", found->fit);
	if (found->left_out > 0)
		n += (size_t)snprintf(answer->text + n, sizeof(answer->text) - n,
				      "; %d more map%s of hardware not used (at most %d)", found->left_out,
				      plural(found->left_out), CT_SERIES_MOST - 1);
	for (int i = 0; i < found->n_hardware && n < sizeof(answer->text); i++)
		n += (size_t)snprintf(answer->text + n, sizeof(answer->text) - n, "; map of %s, series %s",
				      ct_part_word(found->hardware[i]->part), found->hardware[i]->series);
}

static void describe_lack(const struct candidates *found, const struct companion_need *need, struct companion_decision *answer)
{
	char others[40] = "", within[40] = "";

	if (found->unfit > 1)
		snprintf(others, sizeof(others), " (and %d other%s)", found->unfit - 1, plural(found->unfit - 1));
	if (need->wait > 0)
		snprintf(within, sizeof(within), " came within %g s", need->wait);
	if (answer->verdict == COMPANION_LACKS && !need->frame[0])
		snprintf(answer->text, sizeof(answer->text),
			 "the images have no Frame of Reference UID, by which the CT series for the attenuation correction is "
			 "found: reconstruct without it (retry --as-is)");
	else if (answer->verdict == COMPANION_LACKS)
		snprintf(answer->text, sizeof(answer->text),
			 "no CT series for the attenuation correction%s: send it, or reconstruct without it (retry --as-is)%s%s",
			 within, found->why, others);
	else if (found->arriving)
		snprintf(answer->text, sizeof(answer->text),
			 "waits for the CT series for the attenuation correction, which is arriving%s%s", found->why, others);
	else
		snprintf(answer->text, sizeof(answer->text), "waits for the CT series for the attenuation correction%s%s",
			 found->why, others);
}

void companion_decide(const struct companions *c, const struct companion_need *need, double now, double quiet_time,
		      struct companion_decision *ret_answer)
{
	struct companion_decision answer = {.verdict = COMPANION_WAIT};
	bool over = now >= need->until || !need->frame[0];
	struct candidates found;

	find_candidates(c, need, now, quiet_time, &found);
	if (found.best && (!found.arriving || over)) {
		answer.verdict = COMPANION_JOIN;
		answer.series = found.best;
		answer.n_hardware = found.n_hardware;
		memcpy(answer.hardware, found.hardware, sizeof(found.hardware));
		describe_choice(&found, need, &answer);
	} else {
		if (over && !found.arriving)
			answer.verdict = COMPANION_LACKS;
		answer.again = found.arriving ? found.arriving->last + quiet_time : need->until;
		if (found.arriving && found.best && need->until < answer.again)
			answer.again = need->until;
		describe_lack(&found, need, &answer);
	}
	*ret_answer = answer;
}

int64_t *companion_instances(const struct companion_decision *d, size_t *ret_n)
{
	size_t n = (size_t)d->series->images;
	int64_t *all;

	for (int i = 0; i < d->n_hardware; i++)
		n += (size_t)d->hardware[i]->images;
	all = malloc((n + 1) * sizeof(*all));
	if (!all)
		return NULL;
	*ret_n = n;
	n = (size_t)d->series->images;
	memcpy(all, d->series->instances, n * sizeof(*all));
	for (int i = 0; i < d->n_hardware; n += (size_t)d->hardware[i++]->images)
		memcpy(all + n, d->hardware[i]->instances, (size_t)d->hardware[i]->images * sizeof(*all));
	return all;
}
