/* SPDX-License-Identifier: Apache-2.0 */
/* job_print.c - print jobs as tables for `list` and `show`, from the JSON that --json prints, and group unassigned objects. */
#include <stdbool.h>
#include <string.h>

#include "node/base/json_get.h"
#include "node/base/plural.h"
#include "node/base/time_text.h"
#include "node/jobs/job_report.h"

/* Return "12/25" (instances, expected number), or "12" if no header gives the expected number. */
static const char *count_text(const json_t *job, char ret[32])
{
	if (json_get_integer(job, "expected") > 0)
		snprintf(ret, 32, "%lld/%lld", json_get_integer(job, "instances"), json_get_integer(job, "expected"));
	else
		snprintf(ret, 32, "%lld", json_get_integer(job, "instances"));
	return ret;
}

/* Return "cuda:0" of "cuda:0 (NVIDIA H200)". */
static const char *device_text(const json_t *job, char ret[16])
{
	const char *device = json_get_text(job, "device");

	snprintf(ret, 16, "%.*s", device[0] ? (int)strcspn(device, " ") : 1, device[0] ? device : "-");
	return ret;
}

/* Write why a send waits for that of another job: " (not reached since 17:02:11: Connection refused; next attempt 17:05:00)". */
static size_t waits_text(const json_t *destination, char *ret, size_t size)
{
	const json_t *waits = json_object_get(destination, "blocked_by");
	char since[TIME_TEXT_SIZE], next[TIME_TEXT_SIZE];

	if (!waits)
		return 0;
	return (size_t)snprintf(ret, size, " (not reached since %s: %s; next attempt %s)",
				time_text(json_get_number(waits, "since"), "-", since), json_get_text(waits, "reason"),
				time_text(json_get_number(waits, "next"), "-", next));
}

/* Write the last column of a job: its progress, the reason of its state, or the states of its deliveries. */
static void write_remark(const json_t *job, char *ret, size_t size)
{
	const json_t *progress = json_object_get(job, "progress"), *d;
	char when[TIME_TEXT_SIZE];
	size_t i, n = 0;

	ret[0] = '\0';
	if (json_is_object(progress)) {
		n = (size_t)snprintf(ret, size, "%s %.0f %%", json_get_text(progress, "stage"),
				     100 * json_get_number(progress, "fraction"));
		if (n < size && json_is_number(json_object_get(progress, "left")))
			snprintf(ret + n, size - n, ", %s left", time_text_span(json_get_number(progress, "left"), when));
		return;
	}
	if (json_get_number(job, "waits_until") > 0) {
		snprintf(ret, size, "until %s: %s", time_text(json_get_number(job, "waits_until"), "-", when),
			 json_get_text(job, "reason"));
		return;
	}
	if (json_get_text(job, "reason")[0]) {
		snprintf(ret, size, "%s", json_get_text(job, "reason"));
		return;
	}
	if (json_get_bool(job, "warned"))
		n = (size_t)snprintf(ret, size, "with warnings, ");
	json_array_foreach(json_object_get(job, "destinations"), i, d)
	{
		if (n < size)
			n += (size_t)snprintf(ret + n, size - n, "%s%s%s: %s", i ? ", " : "",
					      json_get_bool(d, "alarm") ? "ALARM " : "", json_get_text(d, "name"),
					      json_get_text(d, "state"));
		if (n < size)
			n += waits_text(d, ret + n, size - n);
		if (n < size && json_get_text(d, "fallback")[0])
			n += (size_t)snprintf(ret + n, size - n, " by %s", json_get_text(d, "fallback"));
		else if (n < size && json_get_bool(d, "unconfigured"))
			n += (size_t)snprintf(ret + n, size - n, " (%s)", json_get_text(d, "reason"));
		else if (n < size && !strcmp(json_get_text(d, "state"), "due") && json_get_integer(d, "failures") > 0)
			n += (size_t)snprintf(ret + n, size - n, " (%lld failure%s: %s)", json_get_integer(d, "failures"),
					      plural(json_get_integer(d, "failures")), json_get_text(d, "reason"));
		else if (n < size && !strcmp(json_get_text(d, "state"), "stored"))
			n += (size_t)snprintf(ret + n, size - n, ", storage commitment pending%s%s",
					      json_get_text(d, "reason")[0] ? ": " : "", json_get_text(d, "reason"));
	}
}

/* ---- unassigned objects ----
 *
 * They are listed in groups: an exam that was sent twice is one line of 25 objects, not 25 lines.
 * The objects of a group have the same classification, the same sender, and reasons that differ only in the names of objects.
 * They came over one association, or over several with pauses of less than PAUSE (from senders that open an association for each
 * image).
 */

#define PAUSE 60.0 /* s */

/* Return true if the word can name an object: a number, a UID, a path. */
static bool is_name(const char *word, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (word[i] == '/' || (word[i] >= '0' && word[i] <= '9'))
			return true;
	return false;
}

/* Return true if two reasons are equal but for words for which is_name(). */
static bool same_reason(const char *a, const char *b)
{
	while (*a && *b) {
		size_t n = strcspn(a, " "), m = strcspn(b, " ");

		if (!(is_name(a, n) && is_name(b, m)) && (n != m || memcmp(a, b, n) != 0))
			return false;
		a += n + (a[n] == ' ');
		b += m + (b[m] == ' ');
	}
	return !*a && !*b;
}

static bool belongs_to_group(const json_t *group, const json_t *one)
{
	return !strcmp(json_get_text(group, "classification"), json_get_text(one, "classification")) &&
	       !strcmp(json_get_text(group, "calling"), json_get_text(one, "calling")) &&
	       same_reason(json_get_text(group, "reason"), json_get_text(one, "reason")) &&
	       (!strcmp(json_get_text(group, "association"), json_get_text(one, "association")) ||
		json_get_number(group, "first_received") - json_get_number(one, "received") <= PAUSE);
}

json_t *job_report_unassigned_groups(const json_t *unassigned)
{
	json_t *groups = json_array(), *group;
	const json_t *one;
	size_t i, k;

	json_array_foreach(unassigned, i, one)
	{
		for (k = 0; k < json_array_size(groups) && !belongs_to_group(json_array_get(groups, k), one); k++)
			;
		group = json_array_get(groups, k);
		if (group) {
			json_object_set_new(group, "count", json_integer(json_get_integer(group, "count") + 1));
			json_object_set(group, "first_received", json_object_get(one, "received"));
			continue;
		}
		json_array_append_new(
			groups,
			json_pack("{s:O, s:O, s:O, s:O, s:O, s:O, s:O, s:i}", "instance", json_object_get(one, "instance"),
				  "classification", json_object_get(one, "classification"), "calling",
				  json_object_get(one, "calling"), "association", json_object_get(one, "association"), "received",
				  json_object_get(one, "received"), "first_received", json_object_get(one, "received"), "reason",
				  json_object_get(one, "reason"), "count", 1));
	}
	return groups;
}

const char *job_report_unassigned_hint(const json_t *group)
{
	if (!strcmp(json_get_text(group, "classification"), "refused"))
		return "Correct the cause given above, then let the sender send them again.";
	if (!strcmp(json_get_text(group, "classification"), "conflict"))
		return "One UID has two contents: the node uses the first. If the newer ones are right and the case was not "
		       "reconstructed: tomonode retry --newer ID; else the sender must give them UIDs of their own.";
	return "Nothing has to be done, unless you expected a reconstruction.";
}

static void print_unassigned(FILE *to, const json_t *unassigned)
{
	json_t *groups = job_report_unassigned_groups(unassigned);
	const json_t *one;
	char when[TIME_TEXT_SIZE];
	size_t i;

	if (json_array_size(groups) > 0)
		fprintf(to,
			"\nUnassigned objects (they belong to no job; the newest of each class):\n%8s  %-9s  %-19s  %-16s  "
			"%s\n",
			"OBJECTS", "CLASS", "LAST RECEIVED", "FROM", "REASON");
	json_array_foreach(groups, i, one)
		fprintf(to, "%8lld  %-9s  %-19s  %-16s  %s\n%8s  %s\n", json_get_integer(one, "count"),
			json_get_text(one, "classification"), time_text(json_get_number(one, "received"), "-", when),
			json_get_text(one, "calling"), json_get_text(one, "reason"), "", job_report_unassigned_hint(one));
	json_decref(groups);
}

static void print_associations(FILE *to, const json_t *associations)
{
	const json_t *one;
	char when[TIME_TEXT_SIZE];
	size_t i;

	if (json_array_size(associations) > 0)
		fprintf(to,
			"\nSenders of which nothing was stored, or that offered refused classes (the newest):\n%8s  %-19s  %-16s  %-15s  "
			"%s\n",
			"TIMES", "LAST", "FROM", "ADDRESS", "REASON");
	json_array_foreach(associations, i, one)
		fprintf(to, "%8lld  %-19s  %-16s  %-15s  %s\n", json_get_integer(one, "count"),
			time_text(json_get_number(one, "last"), "-", when), json_get_text(one, "calling"),
			json_get_text(one, "host"), json_get_text(one, "reason"));
}

/* ---- list and show ---- */

void job_report_print_list(FILE *to, const json_t *jobs, const json_t *unassigned, const json_t *associations)
{
	char when[TIME_TEXT_SIZE], count[32], device[16], note[400];
	int width = 16; /* of the column PROTOCOL */
	const json_t *one;
	size_t i;

	json_array_foreach(jobs, i, one)
	{
		int length = (int)strnlen(json_get_text(one, "protocol_text"), 40);

		width = length > width ? length : width;
	}
	if (json_array_size(jobs) == 0)
		fprintf(to, "no jobs\n");
	else
		fprintf(to, "%6s  %-13s  %-5s  %-9s  %-*s  %-8s  %-19s  %s\n", "JOB", "STATE", "KIND", "INSTANCES", width,
			"PROTOCOL", "DEVICE", "CHANGED", "REMARK");
	json_array_foreach(jobs, i, one)
	{
		write_remark(one, note, sizeof(note));
		fprintf(to, "%6lld  %-13s  %-5s  %-9s  %-*s  %-8s  %-19s  %s\n", json_get_integer(one, "id"),
			json_get_text(one, "state"), json_get_text(one, "kind"), count_text(one, count), width,
			json_get_text(one, "protocol_text"), device_text(one, device),
			time_text(json_get_number(one, "changed"), "-", when), note);
	}
	print_unassigned(to, unassigned);
	print_associations(to, associations);
}

#define RESULTS_LISTED 8 /* maximum number of objects listed; of a larger result only the number is printed */

static void print_results(FILE *to, const json_t *objects)
{
	const json_t *one = json_array_get(objects, 0);
	size_t i, n = json_array_size(objects);
	const char *file = json_get_text(one, "file"), *end = strrchr(file, '/');

	if (n > RESULTS_LISTED) {
		fprintf(to, "  result %zu objects in %.*s, Series Instance UID %s\n", n, end ? (int)(end - file) : 0, file,
			json_get_text(one, "series"));
		return;
	}
	json_array_foreach(objects, i, one)
		fprintf(to, "  result %s, SOP Instance UID %s\n", json_get_text(one, "file"), json_get_text(one, "sop_instance"));
}

/* Print how many objects of a result a destination has: "12 of 47 sent". */
static void print_sent(FILE *to, const json_t *states)
{
	const json_t *one;
	size_t i, n = 0;

	if (json_array_size(states) <= RESULTS_LISTED)
		return;
	json_array_foreach(states, i, one)
	{
		const char *state = json_string_value(one);

		n += state && (!strcmp(state, send_state_name(SEND_DONE)) || !strcmp(state, send_state_name(SEND_STORED)));
	}
	fprintf(to, " (%zu of %zu objects sent)", n, json_array_size(states));
}

static void print_detail(FILE *to, const json_t *detail)
{
	static const char *const keys[] = {"why",    "reason", "companion", "protocol", "destination",	"fallback", "transaction",
					   "status", "device", "attempt",   "file",	"sop_instance", "warnings", "omitted"};

	for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
		const json_t *value = json_object_get(detail, keys[i]);

		if (json_is_string(value) && json_string_length(value) > 0)
			fprintf(to, "  %s: %s", keys[i], json_string_value(value));
		else if (json_is_integer(value))
			fprintf(to, "  %s: %lld", keys[i], (long long)json_integer_value(value));
	}
	if (json_is_array(json_object_get(detail, "sop_instances")))
		fprintf(to, "  objects: %zu", json_array_size(json_object_get(detail, "sop_instances")));
	fputc('\n', to);
}

static void print_events(FILE *to, const json_t *events)
{
	size_t n = json_array_size(events), run;
	char when[TIME_TEXT_SIZE];

	for (size_t i = 0; i < n; i++) {
		const json_t *e = json_array_get(events, i);

		run = job_report_run(events, i);
		if (run == 0)
			continue;
		fprintf(to, "  %-19s  %-13s", time_text(json_get_number(e, "time"), "-", when), json_get_text(e, "event"));
		if (job_report_repeats(e))
			fprintf(to, "  %zu of them\n", run);
		else
			print_detail(to, json_object_get(e, "detail"));
	}
}

static void print_facts(FILE *to, const json_t *facts)
{
	const char *name;
	json_t *origin;

	if (json_object_size(facts) > 0)
		fprintf(to, "\nOrigin of facts\n");
	json_object_foreach((json_t *)facts, name, origin) fprintf(to, "  %-19s  %s\n", name, json_get_text(facts, name));
}

void job_report_print_show(FILE *to, const json_t *show)
{
	const json_t *job = json_object_get(show, "job"), *one;
	char when[TIME_TEXT_SIZE], count[32], note[400], waits[400];
	size_t i;

	write_remark(job, note, sizeof(note));
	fprintf(to, "job %lld: %s%s%s\n", json_get_integer(job, "id"), json_get_text(job, "state"), note[0] ? ", " : "", note);
	if (json_get_text(job, "hint")[0])
		fprintf(to, "  %s\n", json_get_text(job, "hint"));
	json_array_foreach(json_object_get(show, "commands"), i, one) fprintf(to, "    %s\n", json_string_value(one));
	fprintf(to, "  kind %s from %s, instances %s, frames %lld, revision %lld", json_get_text(job, "kind"),
		json_get_text(job, "calling"), count_text(job, count), json_get_integer(job, "frames"),
		json_get_integer(job, "revision"));
	if (strcmp(json_get_text(job, "priority"), "normal"))
		fprintf(to, ", priority %s", json_get_text(job, "priority"));
	if (json_get_integer(job, "revision_of") > 0)
		fprintf(to, " of job %lld", json_get_integer(job, "revision_of"));
	if (json_get_text(job, "protocol_text")[0])
		fprintf(to, "\n  protocol %s", json_get_text(job, "protocol_text"));
	if (json_get_text(job, "route")[0])
		fprintf(to, ", by route %s", json_get_text(job, "route"));
	if (json_get_integer(job, "result_of") > 0)
		fprintf(to, "\n  result %lld of the images of job %lld", json_get_integer(job, "result_number"),
			json_get_integer(job, "result_of"));
	if (json_get_integer(job, "redo_of") > 0)
		fprintf(to, ", made again after job %lld", json_get_integer(job, "redo_of"));
	if (json_array_size(json_object_get(show, "further")) > 0)
		fprintf(to, "\n  further results:");
	json_array_foreach(json_object_get(show, "further"), i, one)
		fprintf(to, "%s job %lld (%s, %s)", i ? "," : "", json_get_integer(one, "id"),
			json_get_text(one, "protocol_text"), json_get_text(one, "state"));
	fprintf(to, "\n  last instance received %s\n", time_text(json_get_number(job, "last_received"), "-", when));
	if (json_get_text(job, "study")[0])
		fprintf(to, "  Study Instance UID %s\n", json_get_text(job, "study"));
	if (json_get_text(job, "companion")[0])
		fprintf(to, "  %s\n", json_get_text(job, "companion"));
	json_array_foreach(json_object_get(show, "sweeps"), i, one) fprintf(
		to, "  %s: tomonode retry --sweep %zu %lld\n", json_string_value(one), i + 1, json_get_integer(job, "id"));
	if (json_get_text(job, "device")[0])
		fprintf(to, "  device %s\n", json_get_text(job, "device"));
	print_results(to, json_object_get(json_object_get(job, "result"), "objects"));
	json_array_foreach(json_object_get(job, "destinations"), i, one)
	{
		fprintf(to, "  destination %s: %s%s %s %s %s", json_get_text(one, "name"),
			json_get_bool(one, "alarm") ? "ALARM " : "", json_get_text(one, "state"), json_get_text(one, "fallback"),
			json_get_text(one, "status"), json_get_text(one, "reason"));
		waits[0] = '\0';
		waits_text(one, waits, sizeof(waits));
		fputs(waits, to);
		print_sent(to, json_object_get(one, "objects"));
		fputc('\n', to);
	}
	fprintf(to, "\nEvents\n");
	print_events(to, json_object_get(show, "events"));
	fprintf(to, "\nInstances\n");
	json_array_foreach(json_object_get(show, "instances"), i, one)
		fprintf(to, "  %6lld  %-19s  %s  %lld bytes%s\n", json_get_integer(one, "instance"),
			time_text(json_get_number(one, "received"), "-", when), json_get_text(one, "file"),
			json_get_integer(one, "bytes"), json_get_bool(one, "companion") ? ", CT" : "");
	print_facts(to, job_report_facts(json_object_get(show, "events")));
	fprintf(to, "\nTime of each stage (s)\n");
	json_array_foreach(json_object_get(show, "stages"), i, one)
		fprintf(to, "  %-12s %9.3f\n", json_get_text(one, "stage"), json_get_number(one, "seconds"));
	fprintf(to, "  %-12s %9.3f\n", "from the last C-STORE", job_report_total(json_object_get(show, "stages")));
}
