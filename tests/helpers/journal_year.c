/* SPDX-License-Identifier: Apache-2.0 */
/* journal_year.c - write a journal as a node leaves it after many cases, with the node's own functions: for tests of growth.
 *
 * journal_year [--instances N] [--destinations N] [--senders N] [--days N] [--kept N] [--open N] SPOOL CASES
 *   CASES        cases to add; each arrives, is reconstructed and delivered
 *   --instances  of each case (2)
 *   --days       over which they are spread, until now (365)
 *   --kept       days after which a case was cleaned (30)
 *   --open       of the cases, the last N have one instance less than they need, and are open (0)
 * Prints the numbers of the last instance and of the last event. A journal that is there is continued.
 */
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "kernels/clock.h"
#include "node/store/journal.h"

#define DAY 86400.0

static const struct option options[] = {
	{"instances", required_argument, NULL, 'i'},
	{"destinations", required_argument, NULL, 'd'},
	{"senders", required_argument, NULL, 's'},
	{"days", required_argument, NULL, 'D'},
	{"kept", required_argument, NULL, 'k'},
	{"open", required_argument, NULL, 'o'},
	{0},
};

struct year {
	struct journal *journal;
	long cases, instances, destinations, senders, days, kept, open;
	int64_t first; /* number that no earlier call has used in a UID */
	double begin, end;
};

static void must(int ret, const char *what, const struct err *err)
{
	if (ret >= 0)
		return;
	fprintf(stderr, "journal_year: %s: %s\n", what, err->msg);
	exit(1);
}

static void append(const struct year *y, int64_t job, enum job_event event, const char *detail, double time)
{
	struct err err = {0};

	must(journal_append(y->journal, job, event, detail, time, &err), job_event_name(event), &err);
}

static int64_t add_instance(const struct year *y, int64_t number, long k, double time)
{
	struct instance_row row = {.received = time, .bytes = 20200000};
	struct err err = {0};

	snprintf(row.sop_class, sizeof(row.sop_class), "1.2.840.10008.5.1.4.1.1.1.2.1");
	snprintf(row.sop_instance, sizeof(row.sop_instance), "2.25.3301%012lld.%ld", (long long)number, k);
	snprintf(row.transfer_syntax, sizeof(row.transfer_syntax), "1.2.840.10008.1.2.1");
	snprintf(row.calling, sizeof(row.calling), "MODALITY%d", (int)(number % y->senders % 10000));
	snprintf(row.host, sizeof(row.host), "192.0.2.%lld", (long long)(number % y->senders % 250));
	snprintf(row.association, sizeof(row.association), "19a0000%llx-1", (long long)number);
	snprintf(row.file, sizeof(row.file), "instances/year-%lld-%ld.dcm", (long long)number, k);
	snprintf(row.digest, sizeof(row.digest), "%016llx%016lx", (long long)number, k);
	must(journal_add_instance(y->journal, &row, &err), "instance", &err);
	return row.id;
}

static void join_instance(const struct year *y, int64_t job, int64_t number, long k, double time)
{
	int64_t id = add_instance(y, number, k, time);
	struct err err = {0};
	char detail[600];

	snprintf(
		detail, sizeof(detail),
		"{\"instance\":%lld,\"sop\":\"2.25.3301%012lld.%ld\",\"received\":%.6f,\"expected\":%ld,\"frames\":1,\"angle\":%.2f,"
		"\"identity\":\"1f4a3c5e.%016llx.0.%016llx.%016llx\",\"exposure\":[\"\",\"20260101\",\"101500\",\"%ld\"]}",
		(long long)id, (long long)number, k, time, y->instances, 2.5 * (double)k, 0x1234567800000001LL + number,
		0x2345678900000002LL + number, 0x3456789a00000003LL + number, k);
	must(journal_classify(y->journal, id, CLASSIFIED_MEMBER, job, detail, time, &err), "classification", &err);
}

static int64_t open_case(const struct year *y, int64_t number, double time)
{
	int64_t job = 0;
	struct err err = {0};
	char detail[700];

	snprintf(detail, sizeof(detail),
		 "{\"key\":\"2.25.3302%012lld|2.25.3303%012lld|L|MLO\",\"kind\":\"dbt\",\"calling\":\"MODALITY%lld\","
		 "\"study\":\"2.25.3302%012lld\",\"accession\":\"A%lld\",\"series\":\"2.25.3303%012lld\",\"laterality\":\"L\","
		 "\"view\":\"MLO\",\"revision\":1,\"revision_of\":0,\"newer_of\":0,\"priority\":0,\"routing\":{}}",
		 (long long)number / 4, (long long)number, (long long)(number % y->senders), (long long)number / 4,
		 (long long)number / 4, (long long)number);
	must(journal_open_job(y->journal, detail, time, &job, &err), "job", &err);
	return job;
}

/* Write a list "D0","D1",... */
static void list_destinations(const struct year *y, char *ret, size_t size)
{
	size_t n = 0;

	ret[0] = '\0';
	for (long i = 0; i < y->destinations && n < size; i++)
		n += (size_t)snprintf(ret + n, size - n, "%s\"D%ld\"", i ? "," : "", i);
}

static void finish_case(const struct year *y, int64_t job, int64_t number, double time)
{
	char names[600], detail[1500];

	list_destinations(y, names, sizeof(names));
	snprintf(detail, sizeof(detail),
		 "{\"why\":\"%ld of %ld instances\",\"protocol\":\"dbt-osem\",\"route\":\"dbt\",\"destinations\":[%s]}",
		 y->instances, y->instances, names);
	append(y, job, EVENT_COMPLETE, detail, time);
	append(y, job, EVENT_STARTED, "{\"device\":\"cpu\",\"attempt\":1}", time + 1);
	snprintf(
		detail, sizeof(detail),
		"{\"device\":\"cpu\",\"objects\":[{\"file\":\"outbox/%lld/1.dcm\",\"sop_instance\":\"2.25.3304%012lld\",\"sop_class\":"
		"\"1.2.840.10008.5.1.4.1.1.13.1.3\",\"series\":\"2.25.3305%012lld\",\"digest\":\"%032llx\"}]}",
		(long long)job, (long long)number, (long long)number, (long long)number);
	append(y, job, EVENT_RECONSTRUCTED, detail, time + 8);
	for (long i = 0; i < y->destinations; i++) {
		snprintf(
			detail, sizeof(detail),
			"{\"destination\":\"D%ld\",\"status\":\"0000\",\"reason\":\"\",\"sop_instances\":[\"2.25.3304%012lld\"]}",
			i, (long long)number);
		append(y, job, EVENT_SENT, detail, time + 9);
	}
	append(y, job, EVENT_DELIVERED, "{}", time + 10);
}

static void write_case(const struct year *y, long i)
{
	double time = y->begin + (y->end - y->begin) * (double)(i + 1) / (double)y->cases;
	bool open = i >= y->cases - y->open;
	int64_t number = y->first + i, job;
	struct err err = {0};
	char detail[80];

	job = open_case(y, number, time);
	for (long k = 0; k < y->instances - open; k++)
		join_instance(y, job, number, k, time + 0.1 * (double)k);
	if (open)
		return;
	finish_case(y, job, number, time);
	if (y->end - time < (double)y->kept * DAY)
		return;
	snprintf(detail, sizeof(detail), "{\"instances\":%ld,\"why\":\"age\"}", y->instances);
	must(journal_append_cleaned(y->journal, job, INT64_MAX, detail, time + (double)y->kept * DAY, &err), "cleaned", &err);
}

static int usage(const char *what)
{
	fprintf(stderr,
		"journal_year: %s\nusage: journal_year [--instances N] [--destinations N] [--senders N] [--days N] [--kept N]"
		" [--open N] SPOOL CASES\n",
		what);
	return 2;
}

int main(int argc, char **argv)
{
	struct year y = {.instances = 2, .destinations = 1, .senders = 4, .days = 365, .kept = 30};
	struct err err = {0};
	int64_t instance = 0, event = 0;
	char path[400];
	int c;

	while ((c = getopt_long(argc, argv, "", options, NULL)) != -1) {
		long *into = c == 'i'	? &y.instances
			     : c == 'd' ? &y.destinations
			     : c == 's' ? &y.senders
			     : c == 'D' ? &y.days
			     : c == 'k' ? &y.kept
			     : c == 'o' ? &y.open
					: NULL;
		char *end;

		if (!into)
			return usage("an option is not known");
		*into = strtol(optarg, &end, 10);
		if (*end || *into < (into == &y.open ? 0 : 1) || (into == &y.destinations && *into > 30))
			return usage("the value of an option is out of range");
	}
	y.cases = argc - optind == 2 ? atol(argv[optind + 1]) : 0;
	if (y.cases < 1)
		return usage("give a folder and a number of cases");
	snprintf(path, sizeof(path), "%s/journal.db", argv[optind]);
	must(journal_open(path, &y.journal, &err), "journal", &err);
	must(journal_last_rows(y.journal, &instance, &event, &err), "journal", &err);
	y.first = instance + 4;
	y.end = clock_wall() - 60;
	y.begin = y.end - (double)y.days * DAY;
	for (long i = 0; i < y.cases; i++)
		write_case(&y, i);
	must(journal_last_rows(y.journal, &instance, &event, &err), "journal", &err);
	printf("instances %lld events %lld\n", (long long)instance, (long long)event);
	journal_close(y.journal);
	return 0;
}
