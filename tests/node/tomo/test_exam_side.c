/* SPDX-License-Identifier: Apache-2.0 */
/* Test what attributes and pixels say about the side of the breast, and about the edge where it is. */
#include "node/tomo/exam_internal.h"
#include "tests/node/tomo/exam_edits.h"

/* One image that says something else by another attribute. */
struct statement {
	const char *type, *region, *modifier, *second_view;
};

static void put_code(struct dicom_item *item, uint32_t sequence, const char *code)
{
	struct err err = {0};

	assert_done(dicom_add_code(item, sequence, code, code[1] == '-' ? "SRT" : "SCT", "meaning", &err), &err);
}

static void put_statement(struct dicom_item *root, int i, const void *ctx)
{
	const struct statement *s = ctx;

	if (i != 1)
		return;
	if (s->type)
		put(root, TAG_IMAGE_TYPE, s->type);
	if (s->region || s->modifier)
		put_code(root, TAG_ANATOMIC_REGION_SEQUENCE, s->region ? s->region : "76752008");
	if (s->modifier)
		put_code(dicom_item_at(root, TAG_ANATOMIC_REGION_SEQUENCE, 0), TAG_ANATOMIC_REGION_MODIFIER_SEQUENCE,
			 s->modifier);
	if (s->second_view)
		put_code(root, TAG_VIEW_CODE_SEQUENCE, s->second_view);
}

/* The fixture's images are of the left breast, CC. */
TEST(test_statements)
{
	static const struct {
		struct statement statement;
		const char *refusal; /* NULL: they agree */
	} cases[] = {
		{{.type = "ORIGINAL\\PRIMARY\\\\LEFT"}, "Image Type, value 4 (0008,0008): 4 have none, 1 has LEFT"},
		{{.modifier = "G-A101"}, NULL},
		{{.modifier = "7771000"}, NULL},
		{{.modifier = "51440002"}, NULL}, /* both */
		{{.region = "80248007"}, NULL},
		{{.modifier = "G-A100"},
		 "1.dcm: the breast is 'L' by Image Laterality (0020,0062) and 'R' by Anatomic Region Sequence (0008,2218)"},
		{{.modifier = "24028007"}, "'R' by Anatomic Region Sequence (0008,2218)"},
		{{.region = "73056007"}, "'R' by Anatomic Region Sequence (0008,2218)"},
		{{.region = "T-04020"}, "'R' by Anatomic Region Sequence (0008,2218)"},
		{{.type = "ORIGINAL\\PRIMARY\\TOMO_PROJ\\RIGHT"},
		 "'L' by Image Laterality (0020,0062) and 'R' by Image Type (0008,0008)"},
		{{.type = "ORIGINAL\\PRIMARY\\TOMO_PROJ\\RMLO"},
		 "'L' by Image Laterality (0020,0062) and 'R' by Image Type (0008,0008)"},
		{{.second_view = "399162004"}, NULL}, /* the same in another scheme */
		{{.second_view = "399368009"}, "1.dcm: View Code Sequence (0054,0220) names two views, CC and MLO"},
		{{.second_view = "99999"}, NULL},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct exam *exam = NULL;
		struct err err = {0};
		int rc;

		fixture_write_mg(&(struct fixture_mg){.n = N_VIEWS, .change = put_statement, .ctx = &cases[i].statement});
		rc = fixture_open(N_VIEWS, &exam, &err);
		if (cases[i].refusal)
			expect_refusal(rc, EBADMSG, &err, exam, PARTS(cases[i].refusal));
		else if (rc < 0)
			fail_msg("case %zu: %s", i, err.msg);
	}
}

static void right_frame(struct dicom_item *root, struct dicom_item *shared, struct dicom_item *const *frames)
{
	struct dicom_item *anatomy = add(frames[3], TAG_FRAME_ANATOMY_SEQUENCE);

	(void)root;
	(void)shared;
	put(anatomy, TAG_FRAME_LATERALITY, "R");
	put_code(anatomy, TAG_ANATOMIC_REGION_SEQUENCE, "80248007");
}

TEST(test_frame)
{
	struct exam *exam = NULL;
	struct err err = {0};

	fixture_write_bp(right_frame);
	expect_refusal(fixture_open(1, &exam, &err), EBADMSG, &err, exam,
		       PARTS("frame 4: the breast is 'R' by Frame Laterality (0020,9072) and 'L' by Anatomic Region Sequence"));
}

/* An oblique view with the orientation of the other breast is mirrored; a detector that says that it flips is not. */
TEST(test_mirrored)
{
	static const struct {
		struct orientation_case orientation;
		bool mirrored;
	} cases[] = {
		{{"L", "R-10226", "A\\FR", 0, 0, 0, 0}, false}, {{"R", "R-10226", "P\\FL", 0, 0, 0, 0}, false},
		{{"R", "R-10226", "A\\HR", 0, 0, 0, 0}, false}, {{"L", "R-10226", "P\\FR", 0, 0, 0, 0}, true},
		{{"R", "R-10226", "A\\F", 0, 0, 0, 0}, true},	{{"L", "R-10242", "A\\L", 0, 0, 0, 0}, true},
		{{"L", "R-10242", "P\\L", 0, 0, 0, 0}, false},	{{"L", "399352003", "A\\F", 0, 0, 0, 0}, false}, /* LM */
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct exam *exam = NULL;
		struct err err = {0};

		fixture_write_mg(&(struct fixture_mg){.n = 2, .change = put_orientation_case, .ctx = &cases[i].orientation});
		assert_done(fixture_open(2, &exam, &err), &err);
		if ((strstr(exam->warnings, "that of a mirrored image") != NULL) != cases[i].mirrored)
			fail_msg("%s %s: %s", cases[i].orientation.laterality, cases[i].orientation.orientation, exam->warnings);
	}
}

enum { U = 60, V = 100, AIR = 3000, TISSUE = 200 };

/* Fill rows from first to last of the columns from u on, n of them. */
static void fill(uint16_t raw[V][U], int u, int n, int first, int last, uint16_t value)
{
	for (int v = first; v < last; v++)
		for (int k = u; k < u + n; k++)
			raw[v][k] = value;
}

TEST(test_edges)
{
	static const struct {
		const char *what;
		int u, n, first, last; /* the object */
		int far;	       /* columns of a collimator's shadow at the far edge */
		int padding;	       /* rows of padding at the beginning */
		bool wall_is_air;
	} cases[] = {
		{"a breast at the chest wall", 0, 40, 20, 80, 0, 0, false},
		{"a breast at the other edge", 20, 40, 20, 80, 0, 0, true},
		{"a small one there", 50, 10, 40, 51, 0, 0, true},
		{"a smaller one", 50, 10, 40, 49, 0, 0, false},
		{"a phantom that touches neither", 10, 40, 20, 80, 0, 0, false},
		{"a phantom from edge to edge", 0, 60, 20, 80, 0, 0, false},
		{"a breast that covers the image", 0, 60, 0, 100, 0, 0, false},
		{"a breast that covers the other edge", 20, 40, 0, 100, 0, 0, false},
		{"a small breast, and a shadow", 0, 10, 49, 52, 5, 0, false},
		{"a phantom, and a shadow", 10, 40, 20, 80, 5, 0, false},
		{"a breast at the other edge, and padding", 20, 40, 30, 80, 0, 20, true},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		for (int inverted = 0; inverted < 2; inverted++) {
			struct prep p = {.n_u = U, .n_v = V, .max_value = 4095, .inverted = inverted, .offset = 50};
			static uint16_t raw[V][U];

			fill(raw, 0, U, 0, V, AIR);
			fill(raw, cases[i].u, cases[i].n, cases[i].first, cases[i].last, TISSUE);
			fill(raw, U - cases[i].far, cases[i].far, 0, V, 60);
			for (int v = 0; v < V && inverted; v++)
				for (int u = 0; u < U; u++)
					raw[v][u] = (uint16_t)(4095 - raw[v][u]);
			p.has_padding = cases[i].padding > 0;
			p.padding_lo = p.padding_hi = 4095;
			fill(raw, 0, U, 0, cases[i].padding, 4095);
			if (exam_wall_is_air(&p, raw[0]) != cases[i].wall_is_air)
				fail_msg("%s", cases[i].what);
		}
}

/* Along the chest wall everything is tissue: it is no air because parts of the other edge are darker. */
TEST(test_edges_without_air)
{
	struct prep p = {.n_u = U, .n_v = V, .max_value = 4095, .offset = 50};
	static uint16_t raw[V][U];

	fill(raw, 0, U, 0, V, 50 + (AIR - 50) / 4);
	fill(raw, U / 2, U / 2, 20, 80, 50 + (AIR - 50) / 16);
	fill(raw, U / 2, U / 2, 0, 10, AIR);
	assert_false(exam_wall_is_air(&p, raw[0]));
}

/* One view is enough: the image would be destroyed. */
TEST(test_edges_of_views)
{
	struct view_air air[N_VIEWS] = {0};
	struct exam *exam = NULL;
	struct err err = {0};

	fixture_write_mg(&(struct fixture_mg){.n = N_VIEWS});
	assert_int_equal(fixture_open(N_VIEWS, &exam, &err), 0);
	exam_warn_edges(exam, air);
	assert_null(strstr(exam->warnings, "The breast is"));
	air[1].wall_is_air = true;
	exam_warn_edges(exam, air);
	assert_non_null(
		strstr(exam->warnings, "by Patient Orientation (0020,0020), 'A\\R', and air is along the chest wall, in 1 of 5"));
}

TESTS_SETUP(fixture_start, fixture_stop);
