/* SPDX-License-Identifier: Apache-2.0 */
/* Test the object of slices: positions, UIDs, copied attributes, scale; all objects are written or none. */
#include "tests/node/result/result_fixture.h"
#include "tests/test.h"

static int fixture_entries(void)
{
	DIR *d = opendir(fixture_folder);
	int n = 0;

	while (d && readdir(d))
		n++;
	closedir(d);
	return n;
}

static struct made make(const struct fixture_mg *f)
{
	const struct protocol_conf *protocol = config_protocol(fixture_config, "dbt-osem");

	assert_non_null(protocol);
	return make_as(f, protocol);
}

static void put_orientation(struct dicom_item *root, int i, const void *ctx)
{
	(void)i;
	put(root, TAG_PATIENT_ORIENTATION, ctx);
}

/* The position of every stored pixel, computed from its attributes, is that of its voxel in the patient. */
TEST(test_places)
{
	static const char *const orientations[] = {"A\\R", "A\\L", "P\\L", "P\\R"};

	for (size_t o = 0; o < 4; o++) {
		struct dicom_pixel_info info;
		uint16_t values[NX * NY];
		struct err err = {0};
		struct made m;

		m = make(&(struct fixture_mg){.n = N_VIEWS, .change = put_orientation, .ctx = orientations[o]});
		assert_int_equal(dicom_pixels_info(m.file, &info, &err), 0);
		assert_true(info.columns == NX && info.rows == NY && info.frames == NZ && info.bits_stored == 16);
		const struct dicom_item *plane = group(m.root, shared_group, 0, TAG_PLANE_ORIENTATION_SEQUENCE);
		const struct dicom_item *measures = group(m.root, shared_group, 0, TAG_PIXEL_MEASURES_SEQUENCE);
		for (size_t k = 0; k < NZ; k++) {
			const struct dicom_item *position = group(m.root, frame_group, k, TAG_PLANE_POSITION_SEQUENCE);

			assert_int_equal(dicom_read_frame(m.file, (long)k, values, &err), 0);
			for (int r = 0; r < NY; r++)
				for (int c = 0; c < NX; c++) {
					double at[3], x, y, z;
					int i, j, kk;
					float mu;

					for (unsigned a = 0; a < 3; a++)
						at[a] = number_of(position, TAG_IMAGE_POSITION_PATIENT, a) +
							c * number_of(measures, TAG_PIXEL_SPACING, 1) *
								number_of(plane, TAG_IMAGE_ORIENTATION_PATIENT, a) +
							r * number_of(measures, TAG_PIXEL_SPACING, 0) *
								number_of(plane, TAG_IMAGE_ORIENTATION_PATIENT, a + 3);
					x = -at[1], y = at[0], z = at[2]; /* a CC view: anterior, left, head */
					i = (int)floor(x / 2), j = (int)floor((y + ROWS / 2.0) / 2),
					kk = (int)floor((z - 20) / 1.5);
					assert_true(fabs(x - 2 * (i + 0.5)) < 1e-3 &&
						    fabs(y + ROWS / 2.0 - 2 * (j + 0.5)) < 1e-3);
					assert_int_equal(kk, k);
					mu = m.volume[(kk * NY + j) * NX + i];
					assert_int_equal(values[r * NX + c], mu > 1 ? 65535 : mu < 0 ? 0 : lround(mu * 1e5));
				}
		}
		/* the first letter of each direction is that of the source */
		for (unsigned d = 0; d < 2; d++) {
			char letter = orientations[o][2 * d];
			unsigned axis = letter == 'A' || letter == 'P' ? 1 : 0;
			double cosine = number_of(plane, TAG_IMAGE_ORIENTATION_PATIENT, 3 * d + axis);

			assert_true(cosine == (letter == 'A' || letter == 'R' ? -1 : 1));
		}
	}
}

TEST(test_identity)
{
	struct made m = make(&(struct fixture_mg){.n = N_VIEWS});
	char uid[DICOM_UID_SIZE], again[DICOM_UID_SIZE];
	struct protocol_conf other = *config_protocol(fixture_config, "dbt-osem");
	struct err err = {0};
	struct exam *turned = NULL;
	const char *paths[N_VIEWS];

	result_uid(m.exam, &other, RESULT_SLICES, uid);
	assert_string_equal(text_of(m.root, TAG_SOP_INSTANCE_UID), uid);
	assert_string_equal(text_of(m.root, TAG_SOP_CLASS_UID), CLASS_TOMOSYNTHESIS);
	/* another order of the files gives the same UIDs */
	for (int i = 0; i < N_VIEWS; i++)
		paths[i] = m.exam->paths[N_VIEWS - 1 - i];
	assert_int_equal(exam_open(paths, N_VIEWS, false, NULL, fixture_config, &turned, &err), 0);
	test_later(give_back_exam_close, turned);
	result_uid(turned, &other, RESULT_SLICES, again);
	assert_string_equal(uid, again);
	/* another protocol, or a missing projection, gives other UIDs */
	other.dbt.iterations = 2;
	result_uid(m.exam, &other, RESULT_SLICES, again);
	assert_string_not_equal(uid, again);
	assert_string_not_equal(text_of(m.root, TAG_SERIES_INSTANCE_UID), "1.2.3.2");
	fixture_write_mg(&(struct fixture_mg){.n = N_VIEWS - 1});
	assert_int_equal(fixture_open(N_VIEWS - 1, &turned, &err), 0);
	result_uid(turned, config_protocol(fixture_config, "dbt-osem"), RESULT_SLICES, again);
	assert_string_not_equal(uid, again);
}

/* Of a de-identified exam the result says that it is one, and what became of its dates. */
static void put_deidentified(struct dicom_item *root, int i, const void *ctx)
{
	(void)i;
	(void)ctx;
	put(root, DICOM_TAG(0x0012, 0x0062), "YES");
	put(root, DICOM_TAG(0x0028, 0x0303), "MODIFIED");
}

TEST(test_deidentified)
{
	struct made m = make(&(struct fixture_mg){.n = N_VIEWS, .change = put_deidentified});

	assert_string_equal(text_of(m.root, DICOM_TAG(0x0012, 0x0062)), "YES");
	assert_string_equal(text_of(m.root, DICOM_TAG(0x0028, 0x0303)), "MODIFIED");
	assert_false(dicom_has(m.root, TAG_PIXEL_PADDING_VALUE)); /* a clipped voxel has the value of the background */
}

TEST(test_copied)
{
	struct made m = make(&(struct fixture_mg){.n = N_VIEWS});
	const struct dicom_item *derivation = group(m.root, shared_group, 0, TAG_DERIVATION_IMAGE_SEQUENCE);
	static const char *const parts[] = {
		"sha256=",	" clipped=1 ",	    "step=1e-05 offset=0", "device=\"cpu (test)\"", "protocol=\"dbt-osem: ",
		"iterations=1", "projector=slices", "profile=\"bench: ",   "source_axis=600",	    "i0_mode=fixed"};
	const char *recipe;
	const struct dicom_item *map = group(m.root, shared_group, 0, TAG_REAL_WORLD_VALUE_MAPPING_SEQUENCE);

	assert_string_equal(text_of(m.root, TAG_PATIENT_NAME), "M\xFCller^Test"); /* byte for byte, in its character set */
	assert_string_equal(text_of(m.root, TAG_SPECIFIC_CHARACTER_SET), "ISO_IR 100");
	assert_string_equal(text_of(m.root, TAG_STUDY_INSTANCE_UID), "1.2.3.1");
	assert_string_equal(text_of(m.root, TAG_FRAME_OF_REFERENCE_UID), "1.2.3.3");
	assert_string_equal(text_of(m.root, TAG_PATIENT_AGE), "055Y"); /* a day before the birthday */
	assert_string_equal(text_of(m.root, TAG_IMAGE_TYPE), "DERIVED\\PRIMARY\\TOMOSYNTHESIS\\NONE");
	assert_string_equal(text_of(m.root, TAG_CONTENT_QUALIFICATION), "RESEARCH");
	assert_int_equal(dicom_item_count(derivation, TAG_SOURCE_IMAGE_SEQUENCE), N_VIEWS);
	for (size_t i = 0; i < N_VIEWS; i++) {
		char uid[32];

		snprintf(uid, sizeof(uid), "1.2.3.4.%zu", i + 1);
		assert_string_equal(
			text_of(dicom_item_at(derivation, TAG_SOURCE_IMAGE_SEQUENCE, i), TAG_REFERENCED_SOP_INSTANCE_UID), uid);
	}
	assert_true(number_of(map, TAG_REAL_WORLD_VALUE_SLOPE, 0) == 1e-5 &&
		    number_of(map, TAG_REAL_WORLD_VALUE_INTERCEPT, 0) == 0);
	assert_int_equal(dicom_item_count(m.root, TAG_CONTRIBUTING_EQUIPMENT_SEQUENCE), 2);
	assert_string_equal(text_of(dicom_item_at(m.root, TAG_CONTRIBUTING_EQUIPMENT_SEQUENCE, 0), TAG_MANUFACTURER),
			    "Bench Works");
	/* the complete recipe, with one clipped voxel */
	recipe = text_of(dicom_item_at(m.root, TAG_CONTRIBUTING_EQUIPMENT_SEQUENCE, 1), TAG_CONTRIBUTION_DESCRIPTION);
	for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++)
		if (!strstr(recipe, parts[i]))
			fail_msg("'%s' does not hold '%s'", recipe, parts[i]);
	/* the source has no attributes of detector and exposure: none are written */
	assert_false(dicom_has(m.root, TAG_CONTRIBUTING_SOURCES_SEQUENCE));
	assert_false(dicom_has(m.root, TAG_X_RAY_3D_ACQUISITION_SEQUENCE));
}

/* A system that stores the angle of the gantry in (0018,1510) and that of the projection in (0018,1531). */
static void complete_other_angle(struct dicom_item *root, int i, const void *ctx)
{
	char angle[16];

	complete(root, i, ctx);
	snprintf(angle, sizeof(angle), "%d", 4 * i - 8);
	put(root, TAG_MANUFACTURER_MODEL_NAME, "Scaled");
	put(root, TAG_POSITIONER_PRIMARY_ANGLE, "0");
	put(root, TAG_DETECTOR_SECONDARY_ANGLE, angle);
}

TEST(test_acquisition)
{
	static const struct {
		uint32_t tag;
		bool source; /* Contributing Sources lacks it, else X-Ray 3D Acquisition */
		const char *says;
	} one_less[] = {{TAG_DETECTOR_ID, true,
			 "have no Detector ID (0018,700A). Keys of profile bench that supply such values: detector_id."},
			{TAG_PADDLE_DESCRIPTION, false,
			 "have no Paddle Description (0018,11A4). Keys of profile bench that supply such values: paddle."},
			{TAG_ESTIMATED_RADIOGRAPHIC_MAGNIFICATION_FACTOR, false,
			 "have no Estimated Radiographic Magnification Factor (0018,1114)."},
			{TAG_RELATIVE_X_RAY_EXPOSURE, false, "have no Relative X-Ray Exposure (0018,1405)."},
			{TAG_ACQUISITION_TIME, true, "have no Acquisition DateTime (0008,002A)."}};
	struct made m = make(&(struct fixture_mg){.n = N_VIEWS, .change = complete});
	const struct dicom_item *acquisition = dicom_item_at(m.root, TAG_X_RAY_3D_ACQUISITION_SEQUENCE, 0);

	assert_int_equal(dicom_item_count(m.root, TAG_CONTRIBUTING_SOURCES_SEQUENCE), 1);
	assert_int_equal(dicom_item_count(acquisition, TAG_PER_PROJECTION_ACQUISITION_SEQUENCE), N_VIEWS);
	for (size_t i = 0; i < N_VIEWS; i++) {
		const struct dicom_item *p = dicom_item_at(acquisition, TAG_PER_PROJECTION_ACQUISITION_SEQUENCE, i);

		assert_true(number_of(p, TAG_POSITIONER_PRIMARY_ANGLE, 0) == -10 + 5 * (double)i);
		assert_true(fabs(number_of(p, TAG_EXPOSURE_IN_MAS, 0) - 4.2) < 1e-9); /* 4200 uAs */
	}
	assert_true(fabs(number_of(acquisition, TAG_ORGAN_DOSE, 0) - 0.01) < 1e-9); /* sum over all projections */
	/* copied: SID / SOD would be 640 / 620 */
	assert_true(number_of(acquisition, TAG_ESTIMATED_RADIOGRAPHIC_MAGNIFICATION_FACTOR, 0) == 1.07);
	m = make(&(struct fixture_mg){.n = N_VIEWS, .change = complete_other_angle});
	assert_false(dicom_has(m.root, TAG_X_RAY_3D_ACQUISITION_SEQUENCE)); /* five times 0 degrees would not be true */
	for (size_t i = 0; i < sizeof(one_less) / sizeof(one_less[0]); i++) {
		m = make(&(struct fixture_mg){.n = N_VIEWS, .change = complete, .ctx = &one_less[i].tag});
		assert_int_equal(dicom_has(m.root, TAG_CONTRIBUTING_SOURCES_SEQUENCE), !one_less[i].source);
		assert_int_equal(dicom_has(m.root, TAG_X_RAY_3D_ACQUISITION_SEQUENCE), one_less[i].source);
		if (!strstr(m.report.omitted, one_less[i].says))
			fail_msg("'%s' does not hold '%s'", m.report.omitted, one_less[i].says);
		assert_null(strchr(m.report.omitted, ';'));
	}
}

/* Images without any of the values: each missing one is named once. */
TEST(test_omitted)
{
	struct made m = make(&(struct fixture_mg){.n = N_VIEWS});
	const char *relative;

	assert_false(dicom_has(m.root, TAG_CONTRIBUTING_SOURCES_SEQUENCE) ||
		     dicom_has(m.root, TAG_X_RAY_3D_ACQUISITION_SEQUENCE));
	assert_ptr_equal(strstr(m.report.omitted, "Breast Implant Present (0028,1300) is left out: the images have none. Contr"),
			 m.report.omitted);
	assert_non_null(strstr(m.report.omitted,
			       "Contributing Sources is left out: the images and the profile have no Acquisition "
			       "DateTime (0008,002A), Detector Type (0018,7004), Detector ID (0018,700A)"));
	assert_non_null(strstr(m.report.omitted, "X-Ray 3D Acquisition is left out: the images and the profile have no Anode"));
	relative = strstr(m.report.omitted, "Relative X-Ray Exposure");
	assert_non_null(relative);
	assert_null(strstr(relative + 1, "Relative X-Ray Exposure"));
	/* complete, to the last key */
	assert_non_null(strstr(m.report.omitted, "such values: detector_type, detector_id, element_spacing. X-Ray"));
	assert_string_equal(strrchr(m.report.omitted, ':'), ": anode, exposure_control, exposure_control_text, focal_spot, "
							    "filter_type, filter_material, paddle.");
}

/* Constants of the system come from the profile if the images lack them. */
static void put_constants_model(struct dicom_item *root, int i, const void *ctx)
{
	static const uint32_t lacks[] = {
		TAG_DETECTOR_TYPE,	   TAG_DETECTOR_ID,	      TAG_DETECTOR_ELEMENT_SPACING,
		TAG_ANODE_TARGET_MATERIAL, TAG_FOCAL_SPOTS,	      TAG_FILTER_TYPE,
		TAG_FILTER_MATERIAL,	   TAG_EXPOSURE_CONTROL_MODE, TAG_EXPOSURE_CONTROL_MODE_DESCRIPTION,
		TAG_PADDLE_DESCRIPTION};

	complete(root, i, ctx);
	put(root, TAG_MANUFACTURER_MODEL_NAME, "Constants");
	for (size_t k = 0; k < sizeof(lacks) / sizeof(lacks[0]); k++)
		assert_true(dicom_put_empty(root, lacks[k], NULL) >= 0);
}

TEST(test_constants)
{
	static const struct {
		uint32_t tag;
		const char *text;
	} want[] = {{TAG_ANODE_TARGET_MATERIAL, "TUNGSTEN"},
		    {TAG_FILTER_TYPE, "FLAT"},
		    {TAG_FILTER_MATERIAL, "ALUMINUM"},
		    {TAG_EXPOSURE_CONTROL_MODE, "AUTOMATIC"},
		    {TAG_EXPOSURE_CONTROL_MODE_DESCRIPTION, "scout exposure"},
		    {TAG_PADDLE_DESCRIPTION, "flat 24 x 29"}};
	struct made m = make(&(struct fixture_mg){.n = N_VIEWS, .change = put_constants_model});
	const struct dicom_item *source = dicom_item_at(m.root, TAG_CONTRIBUTING_SOURCES_SEQUENCE, 0),
				*acquisition = dicom_item_at(m.root, TAG_X_RAY_3D_ACQUISITION_SEQUENCE, 0);
	char keys[400];

	assert_string_equal(m.report.omitted, "");
	assert_string_equal(text_of(source, TAG_DETECTOR_TYPE), "SCINTILLATOR");
	assert_string_equal(text_of(source, TAG_DETECTOR_ID), "D7");
	assert_true(number_of(source, TAG_DETECTOR_ELEMENT_SPACING, 0) == 0.1 &&
		    number_of(source, TAG_DETECTOR_ELEMENT_SPACING, 1) == 0.1);
	assert_true(number_of(acquisition, TAG_FOCAL_SPOTS, 0) == 0.3);
	for (size_t i = 0; i < sizeof(want) / sizeof(want[0]); i++)
		assert_string_equal(text_of(acquisition, want[i].tag), want[i].text);
	result_profile_constants(m.exam->profile, keys, sizeof(keys));
	assert_string_equal(keys, "");
	m = make(&(struct fixture_mg){.n = N_VIEWS, .change = complete});
	assert_string_equal(text_of(dicom_item_at(m.root, TAG_CONTRIBUTING_SOURCES_SEQUENCE, 0), TAG_DETECTOR_ID), "D1");
	result_profile_constants(m.exam->profile, keys, sizeof(keys));
	assert_string_equal(keys, "detector_type, detector_id, element_spacing, anode, exposure_control, exposure_control_text, "
				  "focal_spot, filter_type, filter_material, paddle");
}

static void no_frame_of_reference(struct dicom_item *root, int i, const void *ctx)
{
	(void)i;
	(void)ctx;
	put(root, DICOM_TAG(0x0008, 0x0201), "-0330");
	assert_true(dicom_put_empty(root, TAG_FRAME_OF_REFERENCE_UID, NULL) >= 0);
}

TEST(test_made_up)
{
	struct made m = make(&(struct fixture_mg){.n = N_VIEWS, .change = no_frame_of_reference});

	assert_int_equal(strncmp(text_of(m.root, TAG_FRAME_OF_REFERENCE_UID), "2.25.", 5), 0);
	/* 1782726000 s is 2026-06-29 09:40:00 UTC */
	assert_string_equal(text_of(m.root, TAG_CONTENT_DATE), "20260629");
	assert_int_equal(strncmp(text_of(m.root, TAG_CONTENT_TIME), "061000.25", 9), 0);
}

/* The scale of the protocol: stored = round((mu - offset) / step), which the Real World Value Mapping contains; the pixel value
 * transformation is identity. */
TEST(test_scale)
{
	struct protocol_conf p = protocol_with((const char *const[]){"stored_offset=-0.005", "stored_step=2e-5", NULL});
	struct made m = make_as(&(struct fixture_mg){.n = N_VIEWS}, &p), other;
	const struct dicom_item *map = group(m.root, shared_group, 0, TAG_REAL_WORLD_VALUE_MAPPING_SEQUENCE);
	const struct dicom_item *transform = group(m.root, shared_group, 0, TAG_PIXEL_VALUE_TRANSFORMATION_SEQUENCE);
	uint16_t values[NX * NY];
	char uid[DICOM_UID_SIZE];
	struct err err = {0};

	assert_true(number_of(map, TAG_REAL_WORLD_VALUE_SLOPE, 0) == 2e-5);
	assert_true(number_of(map, TAG_REAL_WORLD_VALUE_INTERCEPT, 0) == -0.005);
	assert_true(number_of(transform, TAG_RESCALE_SLOPE, 0) == 1 && number_of(transform, TAG_RESCALE_INTERCEPT, 0) == 0);
	assert_true(m.report.below == 1 && m.report.above == 1); /* -0.01 and 2 */
	for (int k = 0; k < NZ; k++) {
		assert_int_equal(dicom_read_frame(m.file, k, values, &err), 0);
		for (int i = 0; i < NX * NY; i++) {
			/* the images are mirrored relative to the volume: compare values regardless of their position */
			double mu = -0.005 + 2e-5 * values[i];

			assert_true(values[i] == 0 || values[i] == 65535 || (mu > 0.0099 && mu < 0.05));
		}
	}
	snprintf(uid, sizeof(uid), "%s", m.report.objects[0].sop_instance);
	other = make(&(struct fixture_mg){.n = N_VIEWS});
	assert_string_not_equal(other.report.objects[0].sop_instance, uid);
	assert_string_not_equal(other.report.objects[0].series, "");
}

TEST(test_window)
{
	struct made m = make(&(struct fixture_mg){.n = N_VIEWS});
	uint16_t values[NZ * NX * NY];
	struct err err = {0};

	for (int k = 0; k < NZ; k++)
		assert_int_equal(dicom_read_frame(m.file, k, values + (size_t)k * NX * NY, &err), 0);
	check_window(group(m.root, shared_group, 0, TAG_FRAME_VOI_LUT_SEQUENCE), values, NZ * NX * NY);
}

/* However long the other sentences are, the derivation is cut at the end of one, and ends with the last one. */
TEST(test_derivation_cut)
{
	struct made m = make(&(struct fixture_mg){.n = N_VIEWS});
	struct result_info info = {.protocol = config_protocol(fixture_config, "dbt-osem"), .plan = &m.plan, .device = "cpu"};
	struct result_report report = {0};
	struct dicom_file *file = NULL;
	struct err err = {0};

	for (size_t length = 0; length < sizeof(m.exam->warnings); length += 31) {
		struct result_info longer = info;
		struct dbt_session session = session_of(&m);
		const char *text;

		memset(longer.device, 'd', sizeof(longer.device) - 1);
		memset(longer.scatter, 's', sizeof(longer.scatter) - 1);
		memset(m.exam->geometry, 'g', sizeof(m.exam->geometry) - 1);
		memset(m.exam->warnings, 0, sizeof(m.exam->warnings));
		for (size_t i = 0; i + 1 < length; i++) /* no space after the last one */
			m.exam->warnings[i] = "A long sentence with a middle. "[i % 31];
		assert_int_equal(result_write(m.exam, &longer, &session, fixture_folder, &report, &err), 0);
		assert_int_equal(dicom_open(path_of(&report.objects[0]), &file, &err), 0);
		text = text_of(group(dicom_root(file), shared_group, 0, TAG_DERIVATION_IMAGE_SEQUENCE),
			       TAG_DERIVATION_DESCRIPTION);
		assert_true(strlen(text) <= 1024);
		assert_string_equal(text + strlen(text) - 19, " Research use only.");
		assert_true(!strstr(text, "A long") || strstr(text, "middle. Research use only."));
		dicom_close(file);
	}
}

/* Every key of a profile is part of the identity, however long the others are. */
TEST(test_identity_long)
{
	struct made m = make(&(struct fixture_mg){.n = N_VIEWS});
	const struct protocol_conf *protocol = config_protocol(fixture_config, "dbt-osem");
	const struct profile_conf *own = m.exam->profile;
	struct profile_conf p = *own;
	char uid[DICOM_UID_SIZE], again[DICOM_UID_SIZE], text[4096];

	memset(p.flatfield, 'f', sizeof(p.flatfield) - 1);
	memset(p.paddle, 'p', sizeof(p.paddle) - 1);
	memset(p.exposure_control_text, 'e', sizeof(p.exposure_control_text) - 1);
	p.axis_height = p.source_axis = p.source_x = p.source_y = p.support = p.detector_ratio = p.detector_axis_y =
		p.detector_axis_height = p.angle_offset = p.sid_tolerance = p.air_value = p.air_exposure = p.focal_spot =
			p.element_spacing = p.log_zero = p.log_scale = p.floor = p.pose_edge = p.pose_middle = -1.0 / 3;
	p.elements_y = 15;
	m.exam->profile = &p;
	result_uid(m.exam, protocol, RESULT_SLICES, uid);
	assert_true(config_describe_profile(&p, text, sizeof(text)) > 1023);
	assert_true(config_describe_profile(&p, text, sizeof(text)) < sizeof(text));
	assert_true((size_t)(strstr(text, "elements_y=15") - text) > 1023);
	p.elements_y = 13;
	result_uid(m.exam, protocol, RESULT_SLICES, again);
	assert_string_not_equal(uid, again);
	m.exam->profile = own;
}

/* The content of a flat field is part of the identity of object and series if a view uses it; its path alone does not show a
 * change of the file. */
TEST(test_identity_flatfield)
{
	struct made m = make(&(struct fixture_mg){.n = N_VIEWS});
	const struct protocol_conf *protocol = config_protocol(fixture_config, "dbt-osem");
	char uid[3][DICOM_UID_SIZE], series[3][DICOM_UID_SIZE];

	m.exam->i0 = calloc(N_VIEWS, sizeof(*m.exam->i0));
	assert_non_null(m.exam->i0);
	for (int i = 0; i < 3; i++) { /* not used; used, with two contents */
		m.exam->i0[N_VIEWS - 1].use_flatfield = i > 0;
		snprintf(m.exam->flatfield_digest, DIGEST_SIZE, "%032d", i);
		result_uid(m.exam, protocol, RESULT_SLICES, uid[i]);
		result_series(m.exam, protocol, RESULT_SLICES, series[i]);
	}
	for (int i = 0; i < 3; i++) {
		assert_string_not_equal(uid[i], uid[(i + 1) % 3]);
		assert_string_not_equal(series[i], series[(i + 1) % 3]);
	}
	m.exam->i0[N_VIEWS - 1].use_flatfield = false;
	result_uid(m.exam, protocol, RESULT_SLICES, uid[1]);
	assert_string_equal(uid[1], uid[0]);
}

TEST(test_not_written)
{
	struct made m = make(&(struct fixture_mg){.n = N_VIEWS});
	struct result_info info = {.protocol = config_protocol(fixture_config, "dbt-osem"), .plan = &m.plan, .device = "cpu"};
	struct result_report report = {0};
	struct dbt_session session = session_of(&m);
	struct err err = {0};
	int before;

	assert_true(result_write(m.exam, &info, &session, fixture_path("no/such"), &report, &err) < 0);
	before = fixture_entries();
	m.volume[77] = NAN;
	session = session_of(&m);
	assert_error(result_write(m.exam, &info, &session, fixture_folder, &report, &err), &err, EIO, "1 of");
	m.volume[77] = 0;
	/* a device that fails during the pass: its error is returned, no file is written */
	unlink(path_of(&m.report.objects[0]));
	session.broken = 1;
	session.next = 0;
	assert_error(result_write(m.exam, &info, &session, fixture_folder, &report, &err), &err, ENODEV, "the device is gone");
	assert_int_equal(fixture_entries(), before - 1);
	assert_int_equal(report.n_objects, 0);
}

TESTS_SETUP(fixture_start, fixture_stop);
