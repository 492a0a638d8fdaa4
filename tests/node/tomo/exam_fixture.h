/* SPDX-License-Identifier: Apache-2.0 */
/* Small tomosynthesis exams for tests, made attribute by attribute through dicom/core/dataset.h: a series of 5 single-frame
 * images, or one Breast Projection object, of 24 columns x 32 rows at 1 mm, of a system that the profile of the fixture
 * describes. Tests change attributes to check that they are refused. */
#ifndef TOMONODE_TESTS_NODE_EXAM_FIXTURE_H
#define TOMONODE_TESTS_NODE_EXAM_FIXTURE_H

#include <dirent.h>

#include "dicom/object/dicom_tags.h"
#include "dicom/pixels/pixels.h"
#include "dicom/pixels/start.h"
#include "node/tomo/exam.h"
#include "tests/test.h"

#define N_VIEWS 5
#define COLUMNS 24
#define ROWS 32

static const char fixture_conf[] =
	"protocols = ( { name = \"dbt-osem\"; stored_step = 1e-5; } );"
	"profiles = ( { name = \"bench\"; manufacturer = \"Bench*\"; model = \"One\"; axis_height = 40.0; source_axis = 600.0;"
	"  support = 20.0; pitch = 1.0; i0_mode = \"fixed\"; i0 = 1000.0; sid_tolerance = 2.0; },"
	" { name = \"scaled\"; manufacturer = \"Bench*\"; model = \"Scaled\"; axis_height = 40.0; source_axis = 600.0;"
	"  support = 20.0; pitch = 1.0; i0_mode = \"fixed\"; i0 = 1050.0; offset = 50.0; scale_by_exposure = true;"
	"  angle_tag = \"0018,1531\"; angle_sign = -1; angle_offset = 1.5; },"
	" { name = \"seen\"; manufacturer = \"Bench*\"; model = \"Seen\"; axis_height = 40.0; source_axis = 600.0;"
	"  support = 20.0; pitch = 1.0; i0_mode = \"fixed\"; i0 = 1000.0; angle_offset = 0.5; angle_about = \"detector\"; "
	"source_y = 2.0; },"
	" { name = \"log\"; manufacturer = \"Bench*\"; model = \"Log\"; axis_height = 40.0; source_axis = 600.0;"
	"  support = 20.0; pitch = 1.0; log_zero = 4000.0; log_scale = 0.001; chest_wall = \"right\"; },"
	" { name = \"top\"; manufacturer = \"Bench*\"; model = \"Top\"; axis_height = 40.0; source_axis = 600.0;"
	"  support = 20.0; pitch = 1.0; i0_mode = \"header_max\"; },"
	" { name = \"topscaled\"; manufacturer = \"Bench*\"; model = \"TopScaled\"; axis_height = 40.0; source_axis = 600.0;"
	"  support = 20.0; pitch = 1.0; i0_mode = \"header_max\"; scale_by_exposure = true; },"
	" { name = \"part\"; manufacturer = \"Bench*\"; model = \"Part\"; axis_height = 40.0; source_axis = 600.0;"
	"  support = 20.0; pitch = 1.0; i0_mode = \"percentile\"; i0 = 90.0; },"
	" { name = \"window\"; manufacturer = \"Bench*\"; model = \"Window\"; axis_height = 40.0; source_axis = 600.0;"
	"  support = 20.0; pitch = 1.0; elements_x = 30; elements_y = 50; projections = 5; geometry_source = \"simulated\"; },"
	" { name = \"range\"; manufacturer = \"Bench*\"; model = \"Range\"; axis_height = 40.0; source_axis = 600.0;"
	"  support = 20.0; pitch = 1.0; arc = 20.0; },"
	" { name = \"four\"; manufacturer = \"Bench*\"; model = \"Four\"; axis_height = 40.0; source_axis = 600.0;"
	"  support = 20.0; pitch = 1.0; projections = 4; },"
	" { name = \"fitted\"; manufacturer = \"Bench*\"; model = \"Fitted\"; axis_height = 40.0; source_axis = 600.0;"
	"  support = 20.0; pitch = 0.5; geometry_source = \"calibrated\"; calibration_date = \"2026-05-31\"; calibration_rms = "
	"0.05; },"
	" { name = \"air\"; manufacturer = \"Bench*\"; model = \"Air\"; axis_height = 40.0; source_axis = 600.0;"
	"  support = 20.0; pitch = 1.0; offset = 100.0; air_value = 1100.0; air_exposure = 5.0; },"
	" { name = \"distance\"; manufacturer = \"Bench*\"; model = \"Distance\"; axis_height = 40.0; source_axis = 600.0;"
	"  support = 20.0; pitch = 1.0; open_field = \"distance\"; },"
	" { name = \"fit\"; manufacturer = \"Bench*\"; model = \"Fit\"; axis_height = 40.0; source_axis = 600.0;"
	"  support = 20.0; pitch = 1.0; open_field_fit = true; },"
	" { name = \"constants\"; manufacturer = \"Bench*\"; model = \"Constants\"; axis_height = 40.0; source_axis = 600.0;"
	"  support = 20.0; pitch = 1.0; i0_mode = \"fixed\"; i0 = 1000.0; detector_type = \"SCINTILLATOR\"; detector_id = \"D7\";"
	"  element_spacing = 0.1; anode = \"TUNGSTEN\"; focal_spot = 0.3; filter_type = \"FLAT\"; filter_material = \"ALUMINUM\";"
	"  exposure_control = \"AUTOMATIC\"; exposure_control_text = \"scout exposure\"; paddle = \"flat 24 x 29\"; } );";

static char fixture_folder[64];
static struct config *fixture_config;

static inline const char *fixture_path(const char *name)
{
	return test_path(fixture_folder, name);
}

static inline int fixture_start(void **state)
{
	struct err err = {0};

	test_folder(fixture_folder, sizeof(fixture_folder));
	if (dicom_start(&err) < 0 || config_parse(fixture_conf, "fixture.conf", NULL, NULL, &fixture_config, &err) < 0) {
		fprintf(stderr, "%s\n", err.msg);
		return -1;
	}
	return 0;
}

static inline void fixture_clean(void)
{
	DIR *d = opendir(fixture_folder);
	struct dirent *e;

	while (d && (e = readdir(d)))
		unlinkat(dirfd(d), e->d_name, 0);
	if (d)
		closedir(d);
}

static inline int fixture_stop(void **state)
{
	config_free(fixture_config);
	dicom_stop();
	return 0;
}

/* Set an attribute to a text, with the VR of the dictionary. */
static inline void put(struct dicom_item *item, uint32_t tag, const char *text)
{
	struct err err = {0};

	assert_done(dicom_put_text(item, tag, text, &err), &err);
}

static inline void put_number(struct dicom_item *item, uint32_t tag, double value)
{
	struct err err = {0};

	if (dicom_put_double(item, tag, value, &err) < 0 && dicom_put_int(item, tag, (long)value, &err) < 0)
		fail_msg("%s", err.msg);
}

static inline struct dicom_item *add(struct dicom_item *item, uint32_t sequence)
{
	struct err err = {0};
	struct dicom_item *added = dicom_add_item(item, sequence, &err);

	if (!added)
		fail_msg("%s", err.msg);
	return added;
}

/* Fill an image with 100 + 20 * row + column + view, so that a value identifies its position. */
static inline void fixture_pixels(int view, uint16_t values[ROWS * COLUMNS])
{
	for (int i = 0; i < ROWS; i++)
		for (int j = 0; j < COLUMNS; j++)
			values[i * COLUMNS + j] = (uint16_t)(100 + 20 * i + j + view);
}

static inline void fixture_common(struct dicom_item *root)
{
	struct err err = {0};

	put(root, TAG_SPECIFIC_CHARACTER_SET, "ISO_IR 100");
	put(root, TAG_MODALITY, "MG");
	put(root, TAG_MANUFACTURER, "Bench Works");
	put(root, TAG_MANUFACTURER_MODEL_NAME, "One");
	put(root, TAG_PATIENT_NAME, "M\xFCller^Test");
	put(root, TAG_PATIENT_ID, "P1");
	put(root, TAG_PATIENT_BIRTH_DATE, "19700630");
	put(root, TAG_STUDY_DATE, "20260629");
	put(root, TAG_STUDY_INSTANCE_UID, "1.2.3.1");
	put(root, TAG_SERIES_INSTANCE_UID, "1.2.3.2");
	put(root, TAG_FRAME_OF_REFERENCE_UID, "1.2.3.3");
	put(root, TAG_IMAGER_PIXEL_SPACING, "1\\1");
	put(root, TAG_PIXEL_SPACING, "0.9\\0.9"); /* scaled to the breast: never used */
	put(root, TAG_BODY_PART_THICKNESS, "12");
	put_number(root, TAG_PIXEL_REPRESENTATION, 0);
	put_number(root, TAG_SAMPLES_PER_PIXEL, 1);
	put(root, TAG_PHOTOMETRIC_INTERPRETATION, "MONOCHROME1");
	put_number(root, TAG_ROWS, ROWS);
	put_number(root, TAG_COLUMNS, COLUMNS);
	put_number(root, TAG_BITS_ALLOCATED, 16);
	put_number(root, TAG_BITS_STORED, 12);
	put_number(root, TAG_HIGH_BIT, 11);
	assert_true(dicom_add_code(root, TAG_VIEW_CODE_SEQUENCE, "R-10242", "SRT", "cranio-caudal", &err) >= 0);
}

struct fixture_mg {
	int n;								 /* images */
	void (*change)(struct dicom_item *root, int i, const void *ctx); /* called for each image before it is written */
	const void *ctx;
	void (*pixels)(int view, uint16_t values[ROWS * COLUMNS]); /* NULL: fixture_pixels() */
};

/* Write images 0..n-1 as "i.dcm", with angles -10 + 5 i degrees in (0018,1510) and decreasing instance numbers. */
static inline void fixture_write_mg(const struct fixture_mg *f)
{
	uint16_t values[ROWS * COLUMNS];

	fixture_clean();
	for (int i = 0; i < f->n; i++) {
		struct dicom_writer *w = NULL;
		struct dicom_file *file = NULL;
		struct dicom_item *root;
		struct err err = {0};
		char text[32];

		snprintf(text, sizeof(text), "1.2.3.4.%d", i + 1);
		assert_int_equal(dicom_new(CLASS_MG_PROCESSING, text, &file, &err), 0);
		root = dicom_root(file);
		fixture_common(root);
		put(root, TAG_IMAGE_LATERALITY, "L");
		put(root, TAG_PATIENT_ORIENTATION, "A\\R");
		put(root, TAG_DISTANCE_SOURCE_TO_DETECTOR, "640");
		put(root, TAG_DISTANCE_SOURCE_TO_PATIENT, "620");
		put(root, TAG_PIXEL_INTENSITY_RELATIONSHIP, "LIN");
		put_number(root, TAG_PIXEL_INTENSITY_RELATIONSHIP_SIGN, 1);
		put_number(root, TAG_NUMBER_OF_FRAMES, 1);
		put_number(root, TAG_INSTANCE_NUMBER, 100 - i);
		put_number(root, TAG_IMAGES_IN_ACQUISITION, f->n);
		snprintf(text, sizeof(text), "%d", -10 + 5 * i);
		put(root, TAG_POSITIONER_PRIMARY_ANGLE, text);
		if (f->change)
			f->change(root, i, f->ctx);
		snprintf(text, sizeof(text), "%d.dcm", i);
		(f->pixels ? f->pixels : fixture_pixels)(i, values);
		if (dicom_writer_open(fixture_path(text), file, NULL, &w, &err) < 0 || dicom_writer_frame(w, values, &err) < 0 ||
		    dicom_writer_close(w, &err) < 0)
			fail_msg("%s", err.msg);
		dicom_close(file);
	}
}

/* Write one object of N_VIEWS frames: right MLO, gantry at 50 degrees, source at Ab1 - a with a = -10 + 5 i degrees. */
static inline void fixture_write_bp(void (*change)(struct dicom_item *root, struct dicom_item *shared,
						   struct dicom_item *const *frames))
{
	struct dicom_item *root, *shared, *frames[N_VIEWS];
	uint16_t values[ROWS * COLUMNS];
	struct dicom_writer *w = NULL;
	struct dicom_file *file = NULL;
	struct err err = {0};

	fixture_clean();
	assert_int_equal(dicom_new(CLASS_PROJECTION_PROCESSING, "1.2.3.5", &file, &err), 0);
	root = dicom_root(file);
	fixture_common(root);
	put(dicom_item_at(root, TAG_VIEW_CODE_SEQUENCE, 0), TAG_CODE_VALUE, "399368009");
	put(dicom_item_at(root, TAG_VIEW_CODE_SEQUENCE, 0), TAG_CODING_SCHEME_DESIGNATOR, "SCT");
	put_number(root, TAG_NUMBER_OF_FRAMES, N_VIEWS);
	shared = add(root, TAG_SHARED_FUNCTIONAL_GROUPS_SEQUENCE);
	put(add(shared, TAG_FRAME_ANATOMY_SEQUENCE), TAG_FRAME_LATERALITY, "R");
	put(add(shared, TAG_PATIENT_ORIENTATION_IN_FRAME_SEQUENCE), TAG_PATIENT_ORIENTATION, "P\\FL");
	for (int i = 0; i < N_VIEWS; i++) {
		struct dicom_item *group;

		frames[i] = add(root, TAG_PER_FRAME_FUNCTIONAL_GROUPS_SEQUENCE);
		group = add(frames[i], TAG_ISOCENTER_REFERENCE_SYSTEM_SEQUENCE);
		put_number(group, TAG_X_RAY_SOURCE_ISOCENTER_PRIMARY_ANGLE, -50 - (-10 + 5 * i));
		put_number(group, TAG_X_RAY_SOURCE_ISOCENTER_SECONDARY_ANGLE, 0);
		put_number(group, TAG_BREAST_SUPPORT_ISOCENTER_PRIMARY_ANGLE, -50);
		group = add(frames[i], TAG_FRAME_PIXEL_DATA_PROPERTIES_SEQUENCE);
		put(group, TAG_PIXEL_INTENSITY_RELATIONSHIP, "LIN");
		put_number(group, TAG_PIXEL_INTENSITY_RELATIONSHIP_SIGN, 1);
	}
	if (change)
		change(root, shared, frames);
	assert_done(dicom_writer_open(fixture_path("0.dcm"), file, NULL, &w, &err), &err);
	for (int i = 0; i < N_VIEWS; i++) {
		fixture_pixels(i, values);
		assert_done(dicom_writer_frame(w, values, &err), &err);
	}
	assert_done(dicom_writer_close(w, &err), &err);
	dicom_close(file);
}

TEST_GIVES_BACK(exam_close);

/* exam_open() on the first n files. The exam is closed when the test ends. */
static inline int fixture_open(int n, struct exam **ret_exam, struct err *err)
{
	char names[N_VIEWS + 3][256];
	const char *paths[N_VIEWS + 3];
	int rc;

	for (int i = 0; i < n; i++) {
		snprintf(names[i], sizeof(names[i]), "%s/%d.dcm", fixture_folder, i);
		paths[i] = names[i];
	}
	rc = exam_open(paths, (size_t)n, false, NULL, fixture_config, ret_exam, err);
	if (rc == 0)
		test_later(give_back_exam_close, *ret_exam);
	return rc;
}

#endif
