/* SPDX-License-Identifier: Apache-2.0 */
#include "node/jobs/patients.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "node/base/folder.h"
#include "node/base/json_get.h"
#include "node/jobs/case_results.h"
#include "node/jobs/case_selection.h"
#include "node/store/event.h"

_Static_assert(PATIENT_KEY_BYTES == PATIENT_KEY_SIZE, "the file holds one key");

/* ---- the text in a detail ---- */

static uint64_t keyed_hash(const uint8_t *key, const void *bytes, size_t n)
{
	uint64_t first = 0;
	uint8_t mac[32];

	dicom_hmac_sha256(key, PATIENT_KEY_BYTES, bytes, n, mac);
	for (int i = 0; i < 8; i++)
		first = first << 8 | mac[i];
	return first ? first : 1;
}

void patients_format(const struct patient_identity *of, const uint8_t key[PATIENT_KEY_BYTES],
		     char ret_text[PATIENTS_IDENTITY_SIZE])
{
	static const char what[] = "tomonode patient key";
	int n = snprintf(ret_text, PATIENTS_IDENTITY_SIZE, "%08" PRIx32, (uint32_t)(keyed_hash(key, what, sizeof(what)) >> 32));

	for (int a = 0; a < PATIENT_ATTRIBUTES; a++) {
		uint64_t value = of->digest[a] ? keyed_hash(key, &of->digest[a], sizeof(of->digest[a])) : 0;

		n += snprintf(ret_text + n, (size_t)(PATIENTS_IDENTITY_SIZE - n), " %016" PRIx64, value);
	}
}

bool patients_parse(const char *text, struct patient_identity *ret_identity, uint32_t *ret_key)
{
	struct patient_identity p;
	int end = 0;

	if (sscanf(text, "%8" SCNx32 " %16" SCNx64 " %16" SCNx64 " %16" SCNx64 " %16" SCNx64 "%n", ret_key, &p.digest[0],
		   &p.digest[1], &p.digest[2], &p.digest[3], &end) != 5 ||
	    text[end])
		return false;
	*ret_identity = p;
	return true;
}

/* ---- the decision ---- */

/* Is field `index` of two case keys equal, and not empty? Study and series are the first two of every kind (node/config/kind.h).
 */
static bool same_field(const char *a, const char *b, int index)
{
	size_t n;

	for (; index > 0; index--) {
		a = strchr(a, '|');
		b = strchr(b, '|');
		if (!a++ || !b++)
			return false;
	}
	n = strcspn(a, "|");
	return n > 0 && n == strcspn(b, "|") && !strncmp(a, b, n);
}

static bool is_covered(const struct job_view *a, const struct job_view *b)
{
	return (a->same_patient > 0 && b->last_instance < a->same_patient) ||
	       (b->same_patient > 0 && a->last_instance < b->same_patient);
}

static bool is_comparable(const struct job_view *a, const struct job_view *b)
{
	return a != b && !case_results_same_images(a, b) && b->patients.seen && a->patients_key == b->patients_key &&
	       (same_field(a->key, b->key, 0) || same_field(a->key, b->key, 1)) && !is_covered(a, b);
}

/* Return the older one of `found` (NULL: none) and `other`, if that has a conflict with v. */
static const struct job_view *older_conflict(const struct jobs *jobs, const struct job_view *v, const struct job_view *other,
					     const struct job_view *found)
{
	struct patient_conflict conflict;

	return (!found || other->id < found->id) && is_comparable(v, other) &&
			       patient_sets_conflict(&v->patients, &other->patients, &conflict) &&
			       !case_newer_corrects(jobs, v, other) && !case_replaced_by(jobs, other)
		       ? other
		       : found;
}

bool patients_are_mixed(const struct job_view *v)
{
	struct patient_conflict conflict;

	return v->patients.seen && !v->same_patient && patient_set_conflict(&v->patients, &conflict);
}

bool patients_conflict(const struct jobs *jobs, const struct job_view *v, struct patient_conflict *ret_conflict,
		       const struct job_view **ret_other)
{
	*ret_other = NULL;
	if (!v->patients.seen)
		return false;
	if (!v->same_patient && patient_set_conflict(&v->patients, ret_conflict))
		return true;
	for (const struct job_view *o = jobs_of_study(jobs, v->key); o; o = jobs_before_in_study(o))
		*ret_other = older_conflict(jobs, v, o, *ret_other);
	for (const struct job_view *o = jobs_of_series(jobs, v->key); o; o = jobs_before_in_series(o))
		*ret_other = older_conflict(jobs, v, o, *ret_other);
	return *ret_other && patient_sets_conflict(&v->patients, &(*ret_other)->patients, ret_conflict);
}

struct names {
	const int64_t *instance;
	char file[2][128];
};

static int find_name(void *ctx, const struct instance_row *row, const char *detail)
{
	struct names *names = ctx;

	(void)detail; /* a companion has another number */
	for (int i = 0; i < 2; i++)
		if (row->id == names->instance[i])
			snprintf(names->file[i], sizeof(names->file[i]), "%s", row->file);
	return 0;
}

void patients_reason(struct journal *j, const struct job_view *v, const struct patient_conflict *conflict,
		     const struct job_view *other, char *ret_text, size_t size)
{
	struct names names = {.instance = conflict->header};
	char between[300];

	if (other) {
		snprintf(between, sizeof(between), "between this case and case %lld of the same %s", (long long)other->id,
			 same_field(v->key, other->key, 0) ? "study" : "series");
	} else {
		for (int i = 0; i < 2; i++)
			snprintf(names.file[i], sizeof(names.file[i]), "instance %lld", (long long)conflict->header[i]);
		journal_each_member(j, v->id, find_name, &names, NULL);
		snprintf(between, sizeof(between), "between %s and %s", names.file[0], names.file[1]);
	}
	patient_conflict_text(conflict, between, ret_text, size);
}

/* ---- a person's statement ---- */

const char *patients_no_statement(const struct job_view *v)
{
	return v->state == JOB_HELD && v->patients_differ ? NULL : "it is not held because its headers name different patients";
}

struct patient_header {
	const char *wanted; /* NULL: the last one */
	char file[128];
};

static int find_header(void *ctx, const struct instance_row *row, const char *detail)
{
	struct patient_header *h = ctx;

	(void)detail;
	if (row->companion) /* the result has patient and study of the case's own images */
		return 0;
	if (!h->wanted || !strcmp(file_name(h->wanted), file_name(row->file)) || !strcmp(h->wanted, row->sop_instance))
		snprintf(h->file, sizeof(h->file), "%s", row->file);
	return 0;
}

struct naming {
	struct patients_named *named;
	struct patient_identity identity[PATIENTS_NAMED_MAX], last_identity; /* {0}: none, or of another key */
	uint32_t key;
	struct instance_row last; /* of the job's own images */
};

static bool same_identity(const struct patient_identity *a, const struct patient_identity *b)
{
	return !memcmp(a->digest, b->digest, sizeof(a->digest));
}

static size_t find_identity(const struct naming *c, const struct patient_identity *who)
{
	size_t i = 0;

	while (i < c->named->n && !same_identity(&c->identity[i], who))
		i++;
	return i;
}

static void set_named(struct naming *c, size_t at, const struct patient_identity *who, const struct instance_row *row)
{
	c->identity[at] = *who;
	snprintf(c->named->list[at].file, sizeof(c->named->list[at].file), "%s", row->file);
	c->named->list[at].received = row->received;
}

static int add_named(void *ctx, const struct instance_row *row, const char *text)
{
	struct naming *c = ctx;
	struct patient_identity who = {0};
	json_t *detail;
	uint32_t key = 0;
	bool known;

	if (row->companion)
		return 0;
	detail = json_loads(text ? text : "", 0, NULL);
	known = patients_parse(json_get_text(detail, "identity"), &who, &key) && key == c->key;
	json_decref(detail);
	if (!known)
		memset(&who, 0, sizeof(who));
	c->last = *row;
	c->last_identity = who;
	if (!known || find_identity(c, &who) < c->named->n)
		return 0;
	if (c->named->n == PATIENTS_NAMED_MAX)
		c->named->more = true;
	else
		set_named(c, c->named->n++, &who, row);
	return 0;
}

/* Put the patient of the last image before the others: patients_statement() chooses its header. */
static void put_last_first(struct naming *c)
{
	size_t at = find_identity(c, &c->last_identity);

	if (at == PATIENTS_NAMED_MAX) {
		c->named->more = true;
		at--;
	}
	if (at == c->named->n)
		c->named->n++;
	memmove(&c->named->list[1], &c->named->list[0], at * sizeof(c->named->list[0]));
	memmove(&c->identity[1], &c->identity[0], at * sizeof(c->identity[0]));
	set_named(c, 0, &c->last_identity, &c->last);
}

bool patients_named(struct journal *j, const struct jobs *jobs, const struct job_view *v, struct patients_named *ret)
{
	const struct job_view *other = NULL;
	struct patient_conflict conflict;
	struct naming c = {.named = ret, .key = v->patients_key};

	*ret = (struct patients_named){0};
	if (patients_no_statement(v) || journal_each_member(j, v->id, add_named, &c, NULL) < 0 || !c.last.file[0])
		return false;
	put_last_first(&c);
	return !patients_conflict(jobs, v, &conflict, &other) || !other ||
	       journal_each_member(j, other->id, add_named, &c, NULL) >= 0;
}

int patients_statement(struct journal *j, const struct job_view *v, const char *header, bool as_is, const char *where,
		       const char *by, json_t **ret_detail, struct err *err)
{
	struct patient_header h = {.wanted = header};
	char reason[200];
	int ret = journal_each_member(j, v->id, find_header, &h, err);

	if (ret < 0)
		return ret;
	if (!h.file[0])
		return err_set(err, ENOENT, "job %lld has no instance %.100s", (long long)v->id, header ? header : "");
	snprintf(reason, sizeof(reason), "it is the same patient: stated %s by %.60s", where, by);
	*ret_detail = json_pack("{s:o, s:b, s:b, s:o, s:o}", "reason", event_json_text(reason), "as_is", as_is, "same_patient", 1,
				"header", event_json_text(h.file), "by", event_json_text(by));
	return *ret_detail ? 0 : err_set(err, ENOMEM, "no memory for a statement");
}
