/* SPDX-License-Identifier: Apache-2.0 */
/* Functions that change attributes of the fixture's exams and check the error of exam_open(). */
#ifndef TOMONODE_TESTS_NODE_EXAM_EDITS_H
#define TOMONODE_TESTS_NODE_EXAM_EDITS_H

#include "tests/node/tomo/exam_fixture.h"

/* One attribute to set, in one image or in all (image -1), to a text, a number, or an empty value. */
struct edit {
	int image;
	uint32_t tag;
	const char *text; /* NULL: empty */
};

static inline void edit(struct dicom_item *root, int i, const void *ctx)
{
	for (const struct edit *e = ctx; e->tag; e++) {
		struct err err = {0};

		if (e->image >= 0 && e->image != i)
			continue;
		if (!e->text) {
			assert_true(dicom_put_empty(root, e->tag, &err) >= 0);
		} else if (dicom_put_text(root, e->tag, e->text, &err) < 0) {
			if (dicom_put_double(root, e->tag, atof(e->text), &err) < 0)
				assert_true(dicom_put_int(root, e->tag, atol(e->text), &err) >= 0);
		}
	}
}

static inline void expect_refusal(int rc, int code, const struct err *err, struct exam *exam, const char *const *parts)
{
	if (rc != -code || err->code != code)
		fail_msg("%d and not %d: %s", rc, -code, rc < 0 ? err->msg : "accepted");
	assert_null(exam);
	for (; *parts; parts++)
		if (!strstr(err->msg, *parts))
			fail_msg("'%s' does not hold '%s'", err->msg, *parts);
	assert_null(strstr(err->msg, "ller")); /* no patient's name */
}

#define PARTS(...) ((const char *const[]){__VA_ARGS__, NULL})

static inline void refused_n(int n, const struct edit *edits, int code, const char *const *parts)
{
	struct exam *exam = NULL;
	struct err err = {0};

	fixture_write_mg(&(struct fixture_mg){.n = n, .change = edit, .ctx = edits});
	expect_refusal(fixture_open(n, &exam, &err), code, &err, exam, parts);
}

static inline void refused(const struct edit *edits, int code, const char *const *parts)
{
	refused_n(N_VIEWS, edits, code, parts);
}

#define EDITS(...) ((const struct edit[]){__VA_ARGS__, {0}})

/* Open an exam of N_VIEWS images with these edits, NULL: without. */
static inline struct exam *exam_of(const struct edit *edits)
{
	struct exam *exam = NULL;
	struct err err = {0};

	fixture_write_mg(&(struct fixture_mg){.n = N_VIEWS, .change = edits ? edit : NULL, .ctx = edits});
	assert_done(fixture_open(N_VIEWS, &exam, &err), &err);
	return exam;
}

/* Attributes of an image, and the orientation that must be computed from them. */
struct orientation_case {
	const char *laterality, *view_code, *orientation;
	bool columns_toward_chest, rows_toward_minus_y;
	double y_left, y_head; /* sign of the scan's y along L and H; 0: not checked */
};

static inline void put_orientation_case(struct dicom_item *root, int i, const void *ctx)
{
	struct dicom_item *view = dicom_item_at(root, TAG_VIEW_CODE_SEQUENCE, 0);
	const struct orientation_case *o = ctx;

	(void)i;
	put(root, TAG_IMAGE_LATERALITY, o->laterality);
	put(root, TAG_PATIENT_ORIENTATION, o->orientation);
	put(view, TAG_CODE_VALUE, o->view_code);
	put(view, TAG_CODING_SCHEME_DESIGNATOR, o->view_code[0] == 'R' ? "SRT" : "SCT");
}

#endif
