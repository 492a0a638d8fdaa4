/* SPDX-License-Identifier: Apache-2.0 */
/* The result that a pilot returned against its case: every attribute that says whose it is counts, and no value of a patient is
 * in a message. */
#include "dicom/object/dicom_tags.h"
#include "dicom/pixels/pixels.h"
#include "node/worker/seat_check.h"
#include "tests/test.h"

#define IMAGES 2
#define CLASS "1.2.840.10008.5.1.4.1.1.66"

struct place {
	struct journal *journal;
	char spool[64], folder[80];
	struct instance_row files[IMAGES];
	struct case_order order;
	json_t *detail;
};

/* A header of a patient and a study. */
static void make(const char *path, const char *uid, const char *id, const char *name, const char *study, const char *series)
{
	struct dicom_file *file = NULL;
	struct err err = {0};

	unlink(path);
	assert_int_equal(dicom_new(CLASS, uid, &file, &err), 0);
	assert_int_equal(dicom_put_text(dicom_root(file), TAG_PATIENT_ID, id, &err), 0);
	assert_int_equal(dicom_put_text(dicom_root(file), TAG_PATIENT_NAME, name, &err), 0);
	assert_int_equal(dicom_put_text(dicom_root(file), TAG_STUDY_INSTANCE_UID, study, &err), 0);
	assert_int_equal(dicom_put_text(dicom_root(file), TAG_SERIES_INSTANCE_UID, series, &err), 0);
	assert_int_equal(dicom_write(path, file, &err), 0);
	dicom_close(file);
}

static void make_object(const struct place *p, int i, const char *id, const char *name, const char *study)
{
	char path[120], uid[20];

	snprintf(path, sizeof(path), "%s/%d.dcm.part", p->folder, i);
	snprintf(uid, sizeof(uid), "2.25.10%d", i);
	make(path, uid, id, name, study, "2.25.7");
}

static int check(const struct place *p, struct err *err)
{
	return seat_check_result(p->journal, p->spool, &p->order, p->detail, p->folder, ".part", err);
}

static json_t *describe(int i)
{
	char file[40], uid[20];

	snprintf(file, sizeof(file), "outbox/3/%d.dcm", i);
	snprintf(uid, sizeof(uid), "2.25.10%d", i);
	return json_pack("{s:s,s:s,s:s,s:s}", "file", file, "sop_class", CLASS, "sop_instance", uid, "series", "2.25.7");
}

static int64_t open_job(const struct place *p, const char *key)
{
	char detail[100];
	int64_t job;

	snprintf(detail, sizeof(detail), "{\"key\":\"%s\"}", key);
	assert_int_equal(journal_open_job(p->journal, detail, 1, &job, NULL), 0);
	return job;
}

/* Two images, and a result of two objects that is theirs. */
static int setup(void **state)
{
	struct place *p = calloc(1, sizeof(*p));
	char path[120];

	test_folder(p->spool, sizeof(p->spool));
	snprintf(path, sizeof(path), "%s/journal.db", p->spool);
	assert_int_equal(journal_open(path, &p->journal, NULL), 0);
	snprintf(p->folder, sizeof(p->folder), "%s/outbox", p->spool);
	mkdir(p->folder, 0700);
	for (int i = 0; i < IMAGES; i++) {
		snprintf(p->files[i].file, sizeof(p->files[i].file), "%d.dcm", i);
		snprintf(p->files[i].sop_instance, sizeof(p->files[i].sop_instance), "1.2.%d", i);
		snprintf(path, sizeof(path), "%s/%d.dcm", p->spool, i);
		make(path, p->files[i].sop_instance, "SMITH-1", "Smith^Ann", "1.2.3", "1.2.4");
		make_object(p, i, "SMITH-1", "Smith^Ann", "1.2.3");
	}
	p->order = (struct case_order){.job = open_job(p, "1.2.3|L|CC"), .attempt = 4, .files = p->files, .n_files = IMAGES};
	p->detail = json_pack("{s:[o,o]}", "objects", describe(0), describe(1));
	*state = p;
	return 0;
}

static int teardown(void **state)
{
	struct place *p = *state;

	json_decref(p->detail);
	journal_close(p->journal);
	free(p);
	return 0;
}

static void refuse(const struct place *p, const char *part)
{
	struct err err = {0};

	assert_int_equal(check(p, &err), -EBADMSG);
	if (!strstr(err.msg, part))
		fail_msg("'%s' is not in: %s", part, err.msg);
	assert_null(strstr(err.msg, "SMITH"));
	assert_null(strstr(err.msg, "JONES"));
	assert_null(strstr(err.msg, "Smith"));
}

TEST(test_owner, .setup = setup, .teardown = teardown)
{
	struct place *p = *state;
	struct err err = {0};

	assert_int_equal(check(p, &err), 0);
	/* Whichever object it is. */
	for (int i = 0; i < 2; i++) {
		make_object(p, i, "JONES-1", "Smith^Ann", "1.2.3");
		refuse(p, "is not of the case: the headers name different patients: Patient ID (0010,0020) differs");
		make_object(p, i, "", "Smith^Ann", "1.2.3");
		refuse(p, "Patient ID (0010,0020)");
		make_object(p, i, "SMITH-1", "Jones^Ann", "1.2.3");
		refuse(p, "Patient's Name (0010,0010)");
		make_object(p, i, "SMITH-1", "Smith^Ann", "1.2.33");
		refuse(p, "Study Instance UID (0020,000D) is 1.2.33, that of the images is 1.2.3");
		make_object(p, i, "smith-1 ", "SMITH^ANN", "1.2.3"); /* the same, as patients are compared */
		assert_int_equal(check(p, &err), 0);
	}
}

/* Images of one patient whose headers differ, as a person decided: the header that counts, and no mixture. */
TEST(test_decided, .setup = setup, .teardown = teardown)
{
	struct place *p = *state;
	struct err err = {0};
	char path[120];

	snprintf(path, sizeof(path), "%s/0.dcm", p->spool);
	make(path, "1.2.0", "JONES-1", "Jones^Ann", "1.2.3", "1.2.4");
	assert_int_equal(check(p, &err), 0); /* of the last one */
	make_object(p, 0, "JONES-1", "Jones^Ann", "1.2.3");
	refuse(p, "Patient ID (0010,0020), Patient's Name (0010,0010) differ");
	make_object(p, 1, "JONES-1", "Jones^Ann", "1.2.3");
	assert_int_equal(check(p, &err), 0); /* of the first one */
	p->order.same_patient = true;	     /* the last one counts */
	refuse(p, "Patient ID");
	strcpy(p->order.header, "instances/0.dcm");
	assert_int_equal(check(p, &err), 0);
	strcpy(p->order.header, "instances/1.dcm");
	refuse(p, "Patient ID");
}

TEST(test_described, .setup = setup, .teardown = teardown)
{
	struct place *p = *state;
	json_t *first = json_array_get(json_object_get(p->detail, "objects"), 0);
	char path[120];

	json_object_set_new(first, "series", json_string("2.25.8"));
	refuse(p, "Series Instance UID (0020,000E) is '2.25.7', described as '2.25.8'");
	json_object_del(first, "series");
	refuse(p, "Series Instance UID (0020,000E)");
	json_object_set_new(first, "series", json_string("2.25.7"));
	json_object_set_new(first, "sop_class", json_string("1.2.840.10008.5.1.4.1.1.2"));
	refuse(p, "SOP Class UID (0008,0016)");
	json_object_set_new(first, "sop_class", json_string(CLASS));
	json_object_set_new(first, "sop_instance", json_string("2.25.101"));
	refuse(p, "SOP Instance UID (0008,0018)");
	snprintf(path, sizeof(path), "%s/0.dcm.part", p->folder);
	make(path, "2.25.101", "SMITH-1", "Smith^Ann", "1.2.3", "2.25.7");
	refuse(p, "two objects of the result have the SOP Instance UID 2.25.101");
	json_object_set_new(first, "sop_instance", json_string("1.2.1"));
	make(path, "1.2.1", "SMITH-1", "Smith^Ann", "1.2.3", "2.25.7");
	refuse(p, "the SOP Instance UID 1.2.1 of an image");
}

/* An object of another study has the UID: an archive would not store this one. The same study, made again, may have it. */
TEST(test_other_results, .setup = setup, .teardown = teardown)
{
	static const struct {
		const char *key;
		bool other;
	} jobs[] = {{"1.2.3|L|CC", false}, {"1.2.3", false}, {"1.2.30|L|CC", true}, {"1.2", true}};
	struct place *p = *state;
	struct err err = {0};

	for (size_t i = 0; i < sizeof(jobs) / sizeof(jobs[0]); i++) {
		int64_t job = open_job(p, jobs[i].key);
		char *detail = json_dumps(p->detail, JSON_COMPACT);

		assert_int_equal(journal_append(p->journal, job, EVENT_COMPLETE, "{}", 1, NULL), 0);
		assert_int_equal(journal_append(p->journal, job, EVENT_STARTED, "{}", 1, NULL), 0);
		assert_int_equal(check(p, &err), 0);
		assert_int_equal(journal_append(p->journal, job, EVENT_RECONSTRUCTED, detail, 1, NULL), 0);
		if (jobs[i].other)
			refuse(p, "SOP Instance UID 2.25.100 of the result of job");
		else
			assert_int_equal(check(p, &err), 0);
		assert_int_equal(journal_append(p->journal, job, EVENT_CANCEL, "{}", 1, NULL), 0);
		assert_int_equal(journal_append(p->journal, job, EVENT_CLEANED, "{}", 1, NULL), 0);
		assert_int_equal(journal_delete_case(p->journal, &job, 1, NULL), 0); /* with what the journal knew of it */
		free(detail);
	}
	assert_int_equal(check(p, &err), 0);
}

TEST(test_files, .setup = setup, .teardown = teardown)
{
	struct place *p = *state;
	struct err err = {0};
	char path[120];
	FILE *f;

	snprintf(path, sizeof(path), "%s/1.dcm.part", p->folder);
	f = fopen(path, "w");
	fputs("no DICOM", f);
	fclose(f);
	refuse(p, "the object 1.dcm cannot be read");
	make_object(p, 1, "SMITH-1", "Smith^Ann", "1.2.3");
	/* An image that cannot be read is no fault of the pilot. */
	for (int i = 0; i < IMAGES; i++) {
		snprintf(path, sizeof(path), "%s/%d.dcm", p->spool, i);
		unlink(path);
	}
	assert_error(check(p, &err), &err, EIO, "1.dcm");
}
