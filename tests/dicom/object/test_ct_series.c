/* SPDX-License-Identifier: Apache-2.0 */
/* A series of CT slices: its place, order and values, and every reason to refuse one. */
#include "dicom/object/ct_series.h"
#include "tests/dicom/core/fixture.h"
#include "tests/dicom/object/slices_fixture.h"
#include "tests/test.h"

/* What all slices have. The last values of their positions are in z[]. */
static const struct edit usual[] = {
	{0, TAG_IMAGE_TYPE, "ORIGINAL\\PRIMARY\\AXIAL"},
	{0, TAG_IMAGE_ORIENTATION_PATIENT, "1\\0\\0\\0\\1\\0"},
	{0, TAG_PIXEL_SPACING, "0.5\\0.25"},
	{0, TAG_ROWS, "2"},
	{0, TAG_COLUMNS, "3"},
	{0, TAG_SAMPLES_PER_PIXEL, "1"},
	{0, PHOTOMETRIC, "MONOCHROME2"},
	{0, TAG_PIXEL_REPRESENTATION, "0"},
	{0, TAG_BITS_ALLOCATED, "16"},
	{0, TAG_BITS_STORED, "12"},
	{0, TAG_HIGH_BIT, "11"},
	{0, TAG_RESCALE_SLOPE, "2"},
	{0, TAG_RESCALE_INTERCEPT, "-1000"},
	{0, TAG_RESCALE_TYPE, "HU"},
	{0, TAG_PIXEL_PADDING_VALUE, "-"},
	{0, TAG_KVP, "120"},
	{0, TAG_MULTI_ENERGY_CT_ACQUISITION, "-"},
	{0, TAG_CONTRAST_BOLUS_AGENT, "none"},
	{0, TAG_MANUFACTURER, "-"},
	{0, TAG_MANUFACTURER_MODEL_NAME, "-"},
	{0, TAG_SERIES_DESCRIPTION, "-"},
	{0, TAG_PATIENT_ID, "P1"},
	{0, TAG_STUDY_INSTANCE_UID, "1.2.7"},
	{0, TAG_SERIES_INSTANCE_UID, "1.2.8"},
	{0, TAG_FRAME_OF_REFERENCE_UID, "1.2.9"},
	{1, TAG_IMAGE_POSITION_PATIENT, "10\\20\\10"},
	{2, TAG_IMAGE_POSITION_PATIENT, "10\\20\\0"},
	{3, TAG_IMAGE_POSITION_PATIENT, "10\\20\\15"},
	{4, TAG_IMAGE_POSITION_PATIENT, "10\\20\\5"},
};
static const int order[N_SLICES] = {2, 4, 1, 3}; /* along z */

static struct dicom_file *make_header(int slice, const struct edit *edits, size_t n)
{
	return make_slice(slice, CLASS_CT, usual, sizeof(usual) / sizeof(usual[0]), edits, n);
}

static const char *const names[] = {"s1.dcm", "s2.dcm", "s3.dcm", "s4.dcm"};

static int open_headers(int n, const struct edit *edits, size_t n_edits, struct ct_series **ret, struct err *err)
{
	struct ct_headers *h = ct_headers_new((size_t)n);
	int rc;

	for (int i = 0; i < n; i++) {
		struct dicom_file *file = make_header(i + 1, edits, n_edits);

		ct_headers_add(h, names[i], dicom_root(file));
		dicom_close(file);
	}
	rc = ct_series_open(h, ret, err);
	ct_headers_free(h);
	return rc;
}

struct row {
	REFUSED;
	int slices; /* 0: all */
	struct edit edits[3];
};

static int try_row(const void *row, struct err *err)
{
	const struct row *r = row;
	struct ct_series *s = NULL;
	int rc = open_headers(r->slices ? r->slices : N_SLICES, r->edits, 3, &s, err);

	assert_int_equal(!s, rc < 0);
	ct_series_close(s);
	return rc;
}

#define ORIENTATION TAG_IMAGE_ORIENTATION_PATIENT
#define POSITION TAG_IMAGE_POSITION_PATIENT
#define UNEQUAL "s3.dcm at"

static const struct row refused_series[] = {
	{{"another class", EBADMSG, "CT: s2.dcm"}, 0, {{2, TAG_SOP_CLASS_UID, "1.2.840.10008.5.1.4.1.1.4"}}},
	{{"no orientation", EBADMSG, "0037"}, 0, {{1, ORIENTATION, "-"}}},
	{{"five values of an orientation", EBADMSG, "0037"}, 0, {{1, ORIENTATION, "1\\0\\0\\0\\1"}}},
	{{"an orientation that is no number", EBADMSG, "0037"}, 0, {{1, ORIENTATION, "1\\0\\0\\0\\x\\0"}}},
	{{"a long first direction", EBADMSG, "0037"}, 0, {{0, ORIENTATION, "1.0006\\0\\0\\0\\1\\0"}}},
	{{"a long second direction", EBADMSG, "0037"}, 0, {{0, ORIENTATION, "1\\0\\0\\0\\1.0006\\0"}}},
	{{"a short direction", EBADMSG, "0037"}, 0, {{0, ORIENTATION, "0.9994\\0\\0\\0\\1\\0"}}},
	{{"oblique directions", EBADMSG, "0037"}, 0, {{0, ORIENTATION, "1\\0\\0\\0.0011\\1\\0"}}},
	{{"no spacing", EBADMSG, "0030"}, 0, {{3, TAG_PIXEL_SPACING, "-"}}},
	{{"one spacing", EBADMSG, "0030"}, 0, {{1, TAG_PIXEL_SPACING, "0.5"}}},
	{{"rows at one place", EBADMSG, "0.25 x 0 mm"}, 0, {{0, TAG_PIXEL_SPACING, "0\\0.25"}}},
	{{"columns at one place", EBADMSG, "0 x 0.5 mm"}, 0, {{0, TAG_PIXEL_SPACING, "0.5\\0"}}},
	{{"a negative spacing", EBADMSG, "-0.25 x 0.5 mm"}, 0, {{0, TAG_PIXEL_SPACING, "0.5\\-0.25"}}},
	{{"no rows", EBADMSG, "0010"}, 0, {{1, TAG_ROWS, "-"}}},
	{{"no columns", EBADMSG, "0011"}, 0, {{1, TAG_COLUMNS, "-"}}},
	{{"0 rows", EBADMSG, "3 x 0 pixels"}, 0, {{1, TAG_ROWS, "0"}}},
	{{"0 columns", EBADMSG, "0 x 2 pixels"}, 0, {{1, TAG_COLUMNS, "0"}}},
	{{"no position", EBADMSG, "0032"}, 0, {{4, POSITION, "-"}}},
	{{"two values of a position", EBADMSG, "0032"}, 0, {{4, POSITION, "10\\20"}}},
	{{"two series", EBADMSG, "1.2.8 and 1.2.88"}, 0, {{2, TAG_SERIES_INSTANCE_UID, "1.2.88"}}},
	{{"two frames of reference", EBADMSG, "1.2.99"}, 0, {{2, TAG_FRAME_OF_REFERENCE_UID, "1.2.99"}}},
	{{"other rows", EBADMSG, "3 x 5 pixels"}, 0, {{4, TAG_ROWS, "5"}}},
	{{"other columns", EBADMSG, "5 x 2 pixels"}, 0, {{4, TAG_COLUMNS, "5"}}},
	{{"another distance of rows", EBADMSG, "0.5002\\0.25"}, 0, {{4, TAG_PIXEL_SPACING, "0.5002\\0.25"}}},
	{{"another distance of columns", EBADMSG, "0.5\\0.2502"}, 0, {{4, TAG_PIXEL_SPACING, "0.5\\0.2502"}}},
	{{"another first direction", EBADMSG, "0037"}, 0, {{4, ORIENTATION, "-1\\0\\0\\0\\1\\0"}}},
	{{"another second direction", EBADMSG, "0037"}, 0, {{4, ORIENTATION, "1\\0\\0\\0\\-1\\0"}}},
	{{"no slice", EBADMSG, "3 localizers, 1 secondary"},
	 0,
	 {{0, TAG_IMAGE_TYPE, "ORIGINAL\\PRIMARY\\LOCALIZER"}, {2, TAG_IMAGE_TYPE, "DERIVED\\SECONDARY\\AXIAL"}}},
	{{"one slice", EBADMSG, "s1.dcm"}, 1, {{0}}},
	{{"one slice, twice", EBADMSG, "s1.dcm"}, 2, {{2, TAG_SOP_INSTANCE_UID, "1.2.3.1"}}},
	{{"a slice is missing", EBADMSG, UNEQUAL}, 0, {{3, POSITION, "10\\20\\20"}}},
	{{"a slice is near", EBADMSG, UNEQUAL}, 0, {{3, POSITION, "10\\20\\14.94"}}},
	{{"a slice is far", EBADMSG, UNEQUAL}, 0, {{3, POSITION, "10\\20\\15.06"}}},
	{{"two slices at one place", EBADMSG, "s3.dcm"}, 0, {{3, POSITION, "10\\20\\10"}}},
	{{"all slices at one place", EBADMSG, "the same place"}, 0, {{0, POSITION, "10\\20\\10"}}},
	{{"off the line, x", EBADMSG, "s4.dcm"}, 0, {{4, POSITION, "10.11\\20\\5"}}},
	{{"off the line, y", EBADMSG, "s4.dcm"}, 0, {{4, POSITION, "10\\19.89\\5"}}},
	{{"a map of electron density", EBADMSG, "Rescale Type EDW"}, 0, {{0, TAG_RESCALE_TYPE, "EDW"}}},
	{{"monoenergetic images", EBADMSG, "Image Type VMI"}, 0, {{0, TAG_IMAGE_TYPE, "DERIVED\\PRIMARY\\AXIAL\\VMI"}}},
	{{"Enhanced CT", EBADMSG, "Enhanced CT"}, 0, {{0, TAG_SOP_CLASS_UID, CLASS_ENHANCED_CT}}},
	{{"two tube voltages", EBADMSG, "80 kV, in the slices before it 120"}, 0, {{3, TAG_KVP, "80"}}},
	{{"two tube voltages, the first unknown", EBADMSG, "118.9 kV"}, 0, {{1, TAG_KVP, "-"}, {4, TAG_KVP, "118.9"}}},
	{{"two patients", ENOTUNIQ, "s3.dcm"}, 0, {{3, TAG_PATIENT_ID, "P2"}}},
};

REFUSES(every_wrong_series, refused_series, try_row)

/* The same tables from the other side: what is just within the tolerances is a series. */
TEST(within_the_tolerances)
{
	static const struct row rows[] = {
		{{"nothing changed", 0, NULL}, 0, {{0}}},
		{{"a long direction", 0, NULL}, 0, {{0, ORIENTATION, "1.0004\\0\\0\\0\\1\\0"}}},
		{{"a short direction", 0, NULL}, 0, {{0, ORIENTATION, "1\\0\\0\\0\\0.9996\\0"}}},
		{{"oblique directions", 0, NULL}, 0, {{0, ORIENTATION, "1\\0\\0\\0.0009\\1\\0"}}},
		{{"other directions", 0, NULL}, 0, {{4, ORIENTATION, "1\\0\\0\\0.0009\\1\\0"}}},
		{{"another spacing", 0, NULL}, 0, {{4, TAG_PIXEL_SPACING, "0.50009\\0.25009"}}},
		{{"a slice is near", 0, NULL}, 0, {{3, POSITION, "10\\20\\14.96"}}},
		{{"a slice is far", 0, NULL}, 0, {{3, POSITION, "10\\20\\15.04"}}},
		{{"off the line", 0, NULL}, 0, {{4, POSITION, "10.09\\19.91\\5"}}},
		{{"one row", 0, NULL}, 0, {{0, TAG_ROWS, "1"}}},
		{{"two slices", 0, NULL}, 2, {{0}}},
		{{"unspecified values", 0, NULL}, 0, {{0, TAG_RESCALE_TYPE, "US"}}},
		{{"no type of values", 0, NULL}, 0, {{0, TAG_RESCALE_TYPE, "-"}}},
		{{"a measured tube voltage", 0, NULL}, 0, {{3, TAG_KVP, "119.1"}, {4, TAG_KVP, "-"}}},
		{{"no frame of reference", 0, NULL}, 0, {{0, TAG_FRAME_OF_REFERENCE_UID, "-"}}},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct err err = {0};

		if (try_row(&rows[i], &err) != 0)
			fail_msg("%s: %s", rows[i].refused.what, err.msg);
	}
}

TEST(kinds_of_objects)
{
	static const struct {
		const char *type;
		enum ct_object kind;
	} rows[] = {{"ORIGINAL\\PRIMARY\\AXIAL", CT_SLICE},
		    {"DERIVED\\PRIMARY\\AXIAL\\X", CT_SLICE},
		    {"ORIGINAL\\PRIMARY", CT_SLICE},
		    {"ORIGINAL", CT_SLICE},
		    {"-", CT_SLICE},
		    {"ORIGINAL\\PRIMARY\\LOCALIZER", CT_LOCALIZER},
		    {"ORIGINAL\\PRIMARY\\OTHER", CT_SECONDARY},
		    {"ORIGINAL\\SECONDARY\\AXIAL", CT_SECONDARY},
		    {"DERIVED\\SECONDARY", CT_SECONDARY},
		    {"DERIVED\\SECONDARY\\AXIAL\\VMI", CT_SECONDARY},
		    {"DERIVED\\PRIMARY\\AXIAL\\ELECTRON_DENSITY", CT_OTHER},
		    {"DERIVED\\PRIMARY\\AXIAL\\EFF_ATOMIC_NUM", CT_OTHER},
		    {"DERIVED\\PRIMARY\\AXIAL\\MAT_REMOVED", CT_OTHER},
		    {"DERIVED\\PRIMARY\\AXIAL\\X\\VMI", CT_OTHER},
		    {"ORIGINAL\\PRIMARY\\AXIAL\\CT_SOM5 SPI", CT_SLICE}};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const struct edit edits[] = {{0, TAG_IMAGE_TYPE, rows[i].type}};
		struct dicom_file *file = make_header(1, edits, 1);

		assert_int_equal(ct_object_of(dicom_root(file), NULL), rows[i].kind);
		dicom_close(file);
	}
}

TEST(place_and_facts)
{
	struct ct_series *s = NULL;
	struct err err = {0};
	/* a localizer and a repeated slice are no slices of the volume */
	const struct edit edits[] = {{4, TAG_SOP_INSTANCE_UID, "1.2.3.2"}, {3, TAG_IMAGE_TYPE, "A\\PRIMARY\\LOCALIZER"}};
	const struct edit other[] = {{3, TAG_RESCALE_TYPE, "Z_EFF"}, {0, TAG_MULTI_ENERGY_CT_ACQUISITION, "YES"}};

	ok(open_headers(N_SLICES, NULL, 0, &s, &err), &err);
	assert_int_equal(s->n[0], 3);
	assert_int_equal(s->n[1], 2);
	assert_int_equal(s->n[2], N_SLICES);
	for (int k = 0; k < N_SLICES; k++)
		assert_string_equal(s->path[k], names[order[k] - 1]);
	for (int c = 0; c < 3; c++) {
		assert_near(s->at[c], ((double[]){10, 20, 0})[c], 0);
		assert_near(s->step[0][c], ((double[]){0.25, 0, 0})[c], 0);
		assert_near(s->step[1][c], ((double[]){0, 0.5, 0})[c], 0);
		assert_near(s->step[2][c], ((double[]){0, 0, 5})[c], 1e-12);
	}
	assert_near(s->kvp, 120, 0);
	assert_string_equal(s->contrast, "none");
	assert_string_equal(s->study, "1.2.7");
	assert_string_equal(s->series, "1.2.8");
	assert_string_equal(s->frame_of_reference, "1.2.9");
	assert_int_equal(ct_series_bytes(s), N_SLICES * 6 * 2);
	assert_null(s->hu);
	ct_series_close(s);
	ok(open_headers(N_SLICES, edits, 2, &s, &err), &err);
	assert_int_equal(s->n[2], 2);
	assert_int_equal(s->localizers, 1);
	assert_int_equal(s->secondaries, 0);
	assert_string_equal(s->path[0], "s2.dcm"); /* the first of the two files */
	ct_series_close(s);
	ok(open_headers(N_SLICES, other, 2, &s, &err), &err); /* a map beside the slices */
	assert_int_equal(s->n[2], 3);
	assert_int_equal(s->others, 1);
	assert_string_equal(s->values, "Rescale Type Z_EFF");
	assert_true(s->multi_energy);
	ct_series_close(s);
	assert_null(ct_series_close(NULL));
	assert_null(ct_headers_free(NULL));
}

/* A sagittal series, whose slices run against x: row x column is its normal. */
TEST(order_is_along_the_normal)
{
	struct ct_series *s = NULL;
	struct err err = {0};
	const struct edit edits[] = {{0, ORIENTATION, "0\\0\\1\\0\\1\\0"},
				     {1, POSITION, "10\\0\\0"},
				     {2, POSITION, "0\\0\\0"},
				     {3, POSITION, "15\\0\\0"},
				     {4, POSITION, "5\\0\\0"},
				     {0, TAG_KVP, "0"}};

	ok(open_headers(N_SLICES, edits, 6, &s, &err), &err);
	assert_near(s->at[0], 15, 0);
	assert_near(s->step[2][0], -5, 1e-12);
	assert_near(s->step[0][2], 0.25, 0);
	assert_true(isnan(s->kvp));
	for (int k = 0; k < N_SLICES; k++)
		assert_string_equal(s->path[k], names[order[N_SLICES - 1 - k] - 1]);
	ct_series_close(s);
}

/* ---- values ---- */

/* Write the slices with these stored values at their first pixels. */
static int read_values(const struct edit *edits, size_t n_edits, const uint16_t *stored, size_t n, struct ct_series **ret,
		       struct err *err)
{
	struct ct_headers *h = ct_headers_new(N_SLICES);
	static char paths[N_SLICES][256];
	int rc;

	for (int i = 0; i < N_SLICES; i++) {
		struct dicom_file *file = make_header(i + 1, edits, n_edits);
		uint16_t values[6] = {0};

		for (size_t k = 0; k < 6; k++)
			values[k] = k < n ? stored[k] : (uint16_t)i;
		snprintf(paths[i], sizeof(paths[i]), "%s", in_folder(names[i]));
		ct_headers_add(h, paths[i], dicom_root(file));
		write_slice(paths[i], file, values);
	}
	rc = ct_series_open(h, ret, err);
	ct_headers_free(h);
	return rc < 0 ? rc : ct_series_read(*ret, err);
}

TEST(values_are_hounsfield_units)
{
	static const struct {
		struct edit edits[5];
		uint16_t stored[4];
		int16_t hu[4];
		int padding;
	} rows[] = {
		{{{0}}, {0, 1, 500, 4095}, {-1000, -998, 0, 7190}, INT_MIN},
		{{{0, TAG_PIXEL_PADDING_VALUE, "3"}}, {0}, {-1000, -1000, -1000, -1000}, -994},
		{{{0, TAG_PIXEL_REPRESENTATION, "1"}, {0, TAG_PIXEL_PADDING_VALUE, "-5"}, {0, TAG_RESCALE_INTERCEPT, "0"}},
		 {0, 1, 0xfff, 0x800},
		 {0, 2, -2, -4096},
		 -10},
		{{{0, TAG_RESCALE_SLOPE, "0.4"}, {0, TAG_RESCALE_INTERCEPT, "0"}}, {1, 2, 3, 4}, {0, 1, 1, 2}, INT_MIN},
		{{{0, TAG_RESCALE_SLOPE, "16"}, {0, TAG_RESCALE_INTERCEPT, "0"}},
		 {2047, 2048, 4095, 0},
		 {32752, 32767, 32767, 0},
		 INT_MIN},
		{{{0, TAG_RESCALE_SLOPE, "-16"}, {0, TAG_RESCALE_INTERCEPT, "0"}},
		 {2047, 2048, 2049, 0},
		 {-32752, -32768, -32768, 0},
		 INT_MIN},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct ct_series *s = NULL;
		struct err err = {0};

		ok(read_values(rows[i].edits, 5, rows[i].stored, 4, &s, &err), &err);
		for (int k = 0; k < N_SLICES; k++)
			for (int p = 0; p < 4; p++)
				if (s->hu[6 * k + p] != rows[i].hu[p])
					fail_msg("row %zu, slice %d: %d instead of %d", i, k, s->hu[6 * k + p], rows[i].hu[p]);
		assert_int_equal(s->padding, rows[i].padding);
		ct_series_close(s);
	}
}

/* Each file's pixels are at its place. */
TEST(slices_are_in_order)
{
	struct ct_series *s = NULL;
	struct err err = {0};

	ok(read_values(NULL, 0, NULL, 0, &s, &err), &err);
	for (int k = 0; k < N_SLICES; k++)
		for (int p = 0; p < 6; p++)
			assert_int_equal(s->hu[6 * k + p], 2 * (order[k] - 1) - 1000);
	ct_series_close(s);
}

static int try_values(const void *row, struct err *err)
{
	const struct row *r = row;
	struct ct_series *s = NULL;
	int rc = read_values(r->edits, 3, NULL, 0, &s, err);

	ct_series_close(s);
	return rc;
}

static const struct row refused_values[] = {
	{{"no slope", EBADMSG, "1053"}, 0, {{3, TAG_RESCALE_SLOPE, "-"}}},
	{{"no intercept", EBADMSG, "1052"}, 0, {{3, TAG_RESCALE_INTERCEPT, "-"}}},
	{{"a colour image", ENOTSUP, "CT: s2.dcm"}, 0, {{2, PHOTOMETRIC, "PALETTE COLOR"}}},
};

REFUSES(wrong_values, refused_values, try_values)

/* ---- maps from MR ---- */

#define MAP(slice, what)                                                                                                         \
	{slice, TAG_SOP_CLASS_UID, CLASS_MR}, {slice, TAG_MANUFACTURER, "SIEMENS"},                                              \
		{slice, TAG_MANUFACTURER_MODEL_NAME, "Biograph_mMR"},                                                            \
	{                                                                                                                        \
		slice, TAG_SERIES_DESCRIPTION, what                                                                              \
	}

/* Which object is a map, and of what: by Series Description or Image Type. */
TEST(maps)
{
	static const struct {
		struct edit edits[5];
		enum ct_object object;
		enum ct_part part;
		const char *values;
	} rows[] = {
		{{MAP(1, "Head_MRAC_PET_UMAP")}, CT_SLICE, CT_PATIENT, ""},
		{{MAP(1, "UMAP_Table")}, CT_SLICE, CT_TABLE, ""},
		{{MAP(1, "Coils_UMAP")}, CT_SLICE, CT_COILS, ""},
		{{MAP(1, "UMAP"), {1, TAG_IMAGE_TYPE, "DERIVED\\PRIMARY\\UMAP\\HARDWARE"}}, CT_SLICE, CT_HARDWARE, ""},
		{{MAP(1, "t1_mprage table")}, CT_NO_SLICE, CT_PATIENT, ""},
		{{MAP(1, "head_ACMAP_TC"), {1, TAG_MANUFACTURER, "GE MEDICAL SYSTEMS"}}, CT_NO_SLICE, CT_PATIENT, ""},
		{{MAP(1, "head_ACMAP_TC"), {1, TAG_MANUFACTURER_MODEL_NAME, "SIGNA PET/MR"}}, CT_NO_SLICE, CT_PATIENT, ""},
	};
	static const struct edit signa[] = {{1, TAG_SOP_CLASS_UID, CLASS_MR},
					    {1, TAG_MANUFACTURER, "GE MEDICAL SYSTEMS"},
					    {1, TAG_MANUFACTURER_MODEL_NAME, "SIGNA PET/MR"},
					    {1, TAG_SERIES_DESCRIPTION, "head_ACMAP_TC"}};
	char values[CT_VALUES_SIZE];
	struct dicom_file *file;

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		file = make_header(1, rows[i].edits, 5);
		assert_int_equal(ct_object_of(dicom_root(file), values), rows[i].object);
		assert_string_equal(values, rows[i].values);
		assert_int_equal(ct_part_of(dicom_root(file)), rows[i].part);
		dicom_close(file);
	}
	file = make_header(1, signa, 4);
	assert_int_equal(ct_object_of(dicom_root(file), values), CT_OTHER);
	assert_string_equal(values, "map of a GE SIGNA PET/MR, whose unit is not documented: recon --map FILE,unit=UNIT");
	dicom_close(file);
}

/* Two series of two slices: that of the patient first, whatever came first. */
static int open_maps(const char *first, const char *second, const struct edit *more, struct ct_series **ret, struct err *err)
{
	struct ct_headers *h = ct_headers_new(4);
	int rc;

	for (int i = 1; i <= 4; i++) {
		struct edit edits[6] = {MAP(0, i < 3 ? first : second),
					{0, TAG_SERIES_INSTANCE_UID, i < 3 ? "1.2.81" : "1.2.82"}};
		struct dicom_file *file;

		edits[5] = *more;
		file = make_header(i, edits, 6);
		ct_headers_add(h, names[i - 1], dicom_root(file));
		dicom_close(file);
	}
	rc = ct_series_open(h, ret, err);
	ct_headers_free(h);
	return rc;
}

TEST(hardware)
{
	static const struct {
		const char *first, *second;
		struct edit more;
		const char *why;
	} refused[] = {
		{"UMAP", "other UMAP", {0}, "two series, 1.2.81 and 1.2.82: give one"},
		{"UMAP table", "UMAP coils", {0}, "there is the map of the table, but none of the patient"},
		{"UMAP",
		 "UMAP table",
		 {4, TAG_ROWS, "7"},
		 "map of the table: s4.dcm: 3 x 7 pixels, 3 x 2 in the slices before it"},
		{"UMAP", "UMAP table", {4, TAG_PATIENT_ID, "P2"}, "different patients"},
	};
	static const struct edit none = {0};
	struct ct_series *s = NULL;
	struct err err = {0};

	ok(open_maps("UMAP table", "UMAP", &none, &s, &err), &err);
	assert_int_equal(s->part, CT_PATIENT);
	assert_string_equal(s->series, "1.2.82");
	assert_string_equal(ct_series_word(s), "map from MR");
	assert_int_equal(s->next->part, CT_TABLE);
	assert_string_equal(s->next->path[0], "s2.dcm");
	assert_string_equal(ct_series_word(s->next), "map of the table");
	assert_null(s->next->next);
	assert_int_equal(ct_series_bytes(s), 2 * 2 * 6 * 2);
	ct_series_close(s);
	for (size_t i = 0; i < sizeof(refused) / sizeof(refused[0]); i++)
		assert_error(open_maps(refused[i].first, refused[i].second, &refused[i].more, &s, &err), &err,
			     i == 3 ? ENOTUNIQ : EBADMSG, refused[i].why);
}

/* The files have changed since their headers were read. */
TEST(changed_files)
{
	static const struct edit larger[] = {{0, TAG_ROWS, "4"}};
	struct ct_series *s = NULL;
	struct err err = {0};

	ok(read_values(NULL, 0, NULL, 0, &s, &err), &err);
	free(s->hu);
	s->hu = NULL;
	write_slice(s->path[3], make_header(3, larger, 1), (uint16_t[12]){0});
	assert_error(ct_series_read(s, &err), &err, EBADMSG, "3 x 4 pixels");
	free(s->hu);
	s->hu = NULL;
	unlink(s->path[3]);
	assert_error(ct_series_read(s, &err), &err, ENOENT, "CT: s3.dcm");
	ct_series_close(s);
}

TESTS_SETUP(folder_make, folder_remove);
