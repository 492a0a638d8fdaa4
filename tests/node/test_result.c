/* The result object, read back through dicom/: values and their places, UIDs, provenance, text byte for byte, all or nothing. */
#include "tests/node/exam_fixture.h"

#include <errno.h>
#include <math.h>

#include "node/result.h"

/* The session of this test: a volume in memory, of which one slice may be unreadable. It takes the place of recon's. */
struct dbt_session {
	const float *volume;
	const struct grid *grid;
	int broken; /* slice; -1: none */
	int next;   /* slices are read in order, each once */
};

int dbt_read_slices(struct dbt_session *s, int first, int n, float *ret_slices, struct err *err)
{
	size_t slice = (size_t)s->grid->n[0] * (size_t)s->grid->n[1];

	if (first != s->next || first + n > s->grid->n[2])
		return err_set(err, EINVAL, "slices %d to %d after %d", first, first + n, s->next);
	if (s->broken >= first && s->broken < first + n)
		return err_set(err, ENODEV, "the device is gone");
	s->next += n;
	memcpy(ret_slices, s->volume + (size_t)first * slice, (size_t)n * slice * sizeof(float));
	return 0;
}

int dbt_tally(struct dbt_session *s, double offset, double step, uint64_t bins[65536], size_t *ret_counted,
	      struct tally *ret_tally, struct err *err)
{
	size_t n = grid_size(s->grid);
	struct tally t = {0};

	(void)err;
	for (size_t i = 0; i < n; i++) {
		double steps = floor((s->volume[i] - offset) / step + 0.5);

		t.bad += !isfinite(steps);
		t.below += steps < 0;
		t.above += steps > 65535;
		bins[(size_t)fmin(fmax(steps, 0), 65535)]++;
	}
	*ret_counted = n;
	*ret_tally = t;
	return 0;
}

#define NX (COLUMNS / 2)
#define NY (ROWS / 2)
#define NZ 3

static const uint32_t shared_group = TAG_SHARED_FUNCTIONAL_GROUPS_SEQUENCE,
		      frame_group = TAG_PER_FRAME_FUNCTIONAL_GROUPS_SEQUENCE;

/* What a modality with a complete header adds. */
static void complete(struct dicom_item *root, int i, const void *ctx)
{
	static const struct {
		uint32_t tag;
		const char *text;
	} texts[] = {
		{TAG_DETECTOR_TYPE, "DIRECT"},
		{TAG_DETECTOR_ID, "D1"},
		{TAG_DATE_OF_LAST_DETECTOR_CALIBRATION, "20260101"},
		{TAG_TIME_OF_LAST_DETECTOR_CALIBRATION, "080000"},
		{TAG_DETECTOR_ELEMENT_SPACING, "1\\1"},
		{TAG_ANODE_TARGET_MATERIAL, "TUNGSTEN"},
		{TAG_EXPOSURE_CONTROL_MODE, "AUTOMATIC"},
		{TAG_EXPOSURE_CONTROL_MODE_DESCRIPTION, "pre-exposure"},
		{TAG_HALF_VALUE_LAYER, "0.55"},
		{TAG_FOCAL_SPOTS, "0.3"},
		{TAG_DETECTOR_TEMPERATURE, "30"},
		{TAG_FILTER_TYPE, "FLAT"},
		{TAG_FILTER_MATERIAL, "RHODIUM"},
		{TAG_COMPRESSION_FORCE, "100"},
		{TAG_PADDLE_DESCRIPTION, "flat"},
		{TAG_FIELD_OF_VIEW_ORIGIN, "0\\0"},
		{TAG_FIELD_OF_VIEW_ROTATION, "0"},
		{TAG_FIELD_OF_VIEW_HORIZONTAL_FLIP, "NO"},
		{TAG_ACQUISITION_DATE, "20260629"},
		{TAG_ACQUISITION_TIME, "101500"},
		{TAG_EXPOSURE_TIME, "50"},
		{TAG_EXPOSURE_IN_UAS, "4200"},
		{TAG_RELATIVE_X_RAY_EXPOSURE, "400"},
		{TAG_ORGAN_DOSE, "0.002"},
		{TAG_ENTRANCE_DOSE_IN_MGY, "0.5"},
		{TAG_KVP, "30"},
	};
	const uint32_t *missing = ctx;

	(void)i;
	for (size_t t = 0; t < sizeof(texts) / sizeof(texts[0]); t++)
		if (!missing || *missing != texts[t].tag)
			put(root, texts[t].tag, texts[t].text);
}

struct made {
	struct exam *exam;
	struct dicom_file *file;
	struct dicom_item *root;
	float volume[NX * NY * NZ];
	struct dbt_plan plan;
	struct result_report report;
};

static void volume_fill(float *volume)
{
	for (int k = 0; k < NZ; k++)
		for (int j = 0; j < NY; j++)
			for (int i = 0; i < NX; i++)
				volume[(k * NY + j) * NX + i] = (float)(1e-5 * (1000 * k + 20 * j + i) + 0.01);
}

static int fixture_entries(void)
{
	DIR *d = opendir(fixture_folder);
	int n = 0;

	while (d && readdir(d))
		n++;
	closedir(d);
	return n;
}

static struct dbt_session session_of(const struct made *m)
{
	return (struct dbt_session){.volume = m->volume, .grid = &m->plan.grid, .broken = -1};
}

static const char *path_of(const struct result_object *object)
{
	return fixture_path(object->file);
}

static struct made make_as(const struct fixture_mg *f, const struct protocol_conf *protocol)
{
	struct result_info info = {.protocol = protocol, .device = "cpu (test)", .now = 1782726000.25};
	struct dbt_session session;
	struct made m = {0};
	struct err err = {0};

	fixture_write_mg(f);
	volume_fill(m.volume);
	m.volume[0] = 2.0f;   /* above the range */
	m.volume[1] = -0.01f; /* below */
	m.plan = (struct dbt_plan){
		.grid = {.n = {NX, NY, NZ}, .h = {2, 2, 1.5}, .lo = {0, -ROWS / 2.0, 20}},
		.bin = 2,
		.n_u = NX,
		.n_v = NY,
		.n_views = N_VIEWS,
		.subsets = N_VIEWS,
	};
	if (fixture_open(N_VIEWS, &m.exam, &err) < 0)
		fail_msg("%s", err.msg);
	info.plan = &m.plan;
	session = session_of(&m);
	if (result_write(m.exam, &info, &session, fixture_folder, &m.report, &err) < 0 ||
	    dicom_open(path_of(&m.report.objects[0]), &m.file, &err) < 0)
		fail_msg("%s", err.msg);
	m.root = dicom_root(m.file);
	return m;
}

static struct made make(const struct fixture_mg *f)
{
	const struct protocol_conf *protocol = config_protocol(fixture_config, "dbt-osem");

	assert_non_null(protocol);
	return make_as(f, protocol);
}

static void unmake(struct made *m)
{
	dicom_close(m->file);
	exam_close(m->exam);
}

static const char *text_of(const struct dicom_item *item, uint32_t tag)
{
	static char text[4][2048];
	static int k;

	k = (k + 1) % 4;
	if (dicom_get_text(item, tag, text[k], sizeof(text[0]), NULL) != 1)
		fail_msg("no (%04x,%04x)", tag >> 16, tag & 0xFFFF);
	return text[k];
}

static double number_of(const struct dicom_item *item, uint32_t tag, unsigned index)
{
	double value = NAN;

	if (!item || dicom_get_double(item, tag, index, &value, NULL) != 1)
		fail_msg("no (%04x,%04x)[%u]", tag >> 16, tag & 0xFFFF, index);
	return value;
}

static const struct dicom_item *group(const struct dicom_item *root, uint32_t groups, size_t frame, uint32_t sequence)
{
	const struct dicom_item *item = dicom_item_at(dicom_item_at(root, groups, frame), sequence, 0);

	assert_non_null(item);
	return item;
}

static void lie_so(struct dicom_item *root, int i, const void *ctx)
{
	(void)i;
	put(root, TAG_PATIENT_ORIENTATION, ctx);
}

/* Every stored pixel, through position, orientation and spacing, is the voxel at that point of the patient. */
static void test_places(void **state)
{
	static const char *const orientations[] = {"A\\R", "A\\L", "P\\L", "P\\R"};

	(void)state;
	for (size_t o = 0; o < 4; o++) {
		struct dicom_pixel_info info;
		uint16_t values[NX * NY];
		struct err err = {0};
		struct made m;

		m = make(&(struct fixture_mg){.n = N_VIEWS, .change = lie_so, .ctx = orientations[o]});
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
		/* the first letter of each direction is the source's */
		for (unsigned d = 0; d < 2; d++) {
			char letter = orientations[o][2 * d];
			unsigned axis = letter == 'A' || letter == 'P' ? 1 : 0;
			double cosine = number_of(plane, TAG_IMAGE_ORIENTATION_PATIENT, 3 * d + axis);

			assert_true(cosine == (letter == 'A' || letter == 'R' ? -1 : 1));
		}
		unmake(&m);
	}
}

static void test_identity(void **state)
{
	struct made m = make(&(struct fixture_mg){.n = N_VIEWS});
	char uid[DICOM_UID_SIZE], again[DICOM_UID_SIZE];
	struct protocol_conf other = *config_protocol(fixture_config, "dbt-osem");
	struct err err = {0};
	struct exam *turned = NULL;
	const char *paths[N_VIEWS];

	(void)state;
	result_uid(m.exam, &other, RESULT_SLICES, uid);
	assert_string_equal(text_of(m.root, TAG_SOP_INSTANCE_UID), uid);
	assert_string_equal(text_of(m.root, TAG_SOP_CLASS_UID), RESULT_CLASS);
	/* the files in another order: the same result */
	for (int i = 0; i < N_VIEWS; i++)
		paths[i] = m.exam->paths[N_VIEWS - 1 - i];
	assert_int_equal(exam_open(paths, N_VIEWS, fixture_config, &turned, &err), 0);
	result_uid(turned, &other, RESULT_SLICES, again);
	assert_string_equal(uid, again);
	exam_close(turned);
	/* another protocol, or one projection less: another result */
	other.dbt.iterations = 2;
	result_uid(m.exam, &other, RESULT_SLICES, again);
	assert_string_not_equal(uid, again);
	assert_string_not_equal(text_of(m.root, TAG_SERIES_INSTANCE_UID), "1.2.3.2");
	fixture_write_mg(&(struct fixture_mg){.n = N_VIEWS - 1});
	assert_int_equal(fixture_open(N_VIEWS - 1, &turned, &err), 0);
	result_uid(turned, config_protocol(fixture_config, "dbt-osem"), RESULT_SLICES, again);
	assert_string_not_equal(uid, again);
	exam_close(turned);
	unmake(&m);
}

static void test_copied(void **state)
{
	struct made m = make(&(struct fixture_mg){.n = N_VIEWS});
	const struct dicom_item *derivation = group(m.root, shared_group, 0, TAG_DERIVATION_IMAGE_SEQUENCE);
	static const char *const parts[] = {
		"sha256=",	" clipped=1 ",	    "step=1e-05 offset=0", "device=\"cpu (test)\"", "protocol=\"dbt-osem: ",
		"iterations=1", "projector=slices", "profile=\"bench: ",   "source_axis=600",	    "i0_mode=fixed"};
	const char *recipe;
	const struct dicom_item *map = group(m.root, shared_group, 0, TAG_REAL_WORLD_VALUE_MAPPING_SEQUENCE);

	(void)state;
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
	/* the recipe, whole, with one clipped voxel */
	recipe = text_of(dicom_item_at(m.root, TAG_CONTRIBUTING_EQUIPMENT_SEQUENCE, 1), TAG_CONTRIBUTION_DESCRIPTION);
	for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++)
		if (!strstr(recipe, parts[i]))
			fail_msg("'%s' does not hold '%s'", recipe, parts[i]);
	/* this source says nothing about detector and exposure: nothing is invented */
	assert_false(dicom_has(m.root, TAG_CONTRIBUTING_SOURCES_SEQUENCE));
	assert_false(dicom_has(m.root, TAG_X_RAY_3D_ACQUISITION_SEQUENCE));
	unmake(&m);
}

/* A machine that keeps the gantry's angle in (0018,1510) and the projection's in (0018,1531). */
static void complete_other_angle(struct dicom_item *root, int i, const void *ctx)
{
	char angle[16];

	complete(root, i, ctx);
	snprintf(angle, sizeof(angle), "%d", 4 * i - 8);
	put(root, TAG_MANUFACTURER_MODEL_NAME, "Scaled");
	put(root, TAG_POSITIONER_PRIMARY_ANGLE, "0");
	put(root, TAG_DETECTOR_SECONDARY_ANGLE, angle);
}

static void test_all_or_nothing(void **state)
{
	static const uint32_t one_less[] = {TAG_DETECTOR_ID, TAG_PADDLE_DESCRIPTION, TAG_RELATIVE_X_RAY_EXPOSURE,
					    TAG_ACQUISITION_TIME};
	struct made m = make(&(struct fixture_mg){.n = N_VIEWS, .change = complete});
	const struct dicom_item *acquisition = dicom_item_at(m.root, TAG_X_RAY_3D_ACQUISITION_SEQUENCE, 0);

	(void)state;
	assert_int_equal(dicom_item_count(m.root, TAG_CONTRIBUTING_SOURCES_SEQUENCE), 1);
	assert_int_equal(dicom_item_count(acquisition, TAG_PER_PROJECTION_ACQUISITION_SEQUENCE), N_VIEWS);
	for (size_t i = 0; i < N_VIEWS; i++) {
		const struct dicom_item *p = dicom_item_at(acquisition, TAG_PER_PROJECTION_ACQUISITION_SEQUENCE, i);

		assert_true(number_of(p, TAG_POSITIONER_PRIMARY_ANGLE, 0) == -10 + 5 * (double)i);
		assert_true(fabs(number_of(p, TAG_EXPOSURE_IN_MAS, 0) - 4.2) < 1e-9); /* 4200 uAs */
	}
	assert_true(fabs(number_of(acquisition, TAG_ORGAN_DOSE, 0) - 0.01) < 1e-9); /* of all projections */
	assert_true(fabs(number_of(acquisition, TAG_ESTIMATED_RADIOGRAPHIC_MAGNIFICATION_FACTOR, 0) - 640.0 / 620) < 1e-6);
	unmake(&m);
	m = make(&(struct fixture_mg){.n = N_VIEWS, .change = complete_other_angle});
	assert_false(dicom_has(m.root, TAG_X_RAY_3D_ACQUISITION_SEQUENCE)); /* five times 0 degrees would not be true */
	unmake(&m);
	for (size_t i = 0; i < sizeof(one_less) / sizeof(one_less[0]); i++) {
		m = make(&(struct fixture_mg){.n = N_VIEWS, .change = complete, .ctx = &one_less[i]});
		assert_false(dicom_has(m.root, TAG_CONTRIBUTING_SOURCES_SEQUENCE));
		assert_false(dicom_has(m.root, TAG_X_RAY_3D_ACQUISITION_SEQUENCE));
		unmake(&m);
	}
}

static void no_frame_of_reference(struct dicom_item *root, int i, const void *ctx)
{
	(void)i;
	(void)ctx;
	put(root, DICOM_TAG(0x0008, 0x0201), "-0330");
	assert_true(dicom_put_empty(root, TAG_FRAME_OF_REFERENCE_UID, NULL) >= 0);
}

static void test_made_up(void **state)
{
	struct made m = make(&(struct fixture_mg){.n = N_VIEWS, .change = no_frame_of_reference});

	(void)state;
	assert_int_equal(strncmp(text_of(m.root, TAG_FRAME_OF_REFERENCE_UID), "2.25.", 5), 0);
	/* 1782726000 s is 2026-06-29 09:40:00 UTC */
	assert_string_equal(text_of(m.root, TAG_CONTENT_DATE), "20260629");
	assert_int_equal(strncmp(text_of(m.root, TAG_CONTENT_TIME), "061000.25", 9), 0);
	unmake(&m);
}

static struct protocol_conf protocol_with(const char *const *settings)
{
	struct protocol_conf p = *config_protocol(fixture_config, "dbt-osem");
	struct err err = {0};

	for (; *settings; settings++)
		if (config_set(&p, *settings, &err) < 0)
			fail_msg("%s: %s", *settings, err.msg);
	return p;
}

/* The scale of the protocol: stored = round((mu - offset) / step), the mapping says so,
 * the pixel transformation stays identity. */
static void test_scale(void **state)
{
	struct protocol_conf p = protocol_with((const char *const[]){"stored_offset=-0.005", "stored_step=2e-5", NULL});
	struct made m = make_as(&(struct fixture_mg){.n = N_VIEWS}, &p), other;
	const struct dicom_item *map = group(m.root, shared_group, 0, TAG_REAL_WORLD_VALUE_MAPPING_SEQUENCE);
	const struct dicom_item *transform = group(m.root, shared_group, 0, TAG_PIXEL_VALUE_TRANSFORMATION_SEQUENCE);
	uint16_t values[NX * NY];
	char uid[DICOM_UID_SIZE];
	struct err err = {0};

	(void)state;
	assert_true(number_of(map, TAG_REAL_WORLD_VALUE_SLOPE, 0) == 2e-5);
	assert_true(number_of(map, TAG_REAL_WORLD_VALUE_INTERCEPT, 0) == -0.005);
	assert_true(number_of(transform, TAG_RESCALE_SLOPE, 0) == 1 && number_of(transform, TAG_RESCALE_INTERCEPT, 0) == 0);
	assert_true(m.report.below == 1 && m.report.above == 1); /* -0.01 and 2 */
	for (int k = 0; k < NZ; k++) {
		assert_int_equal(dicom_read_frame(m.file, k, values, &err), 0);
		for (int i = 0; i < NX * NY; i++) {
			/* this fixture's images lie as the volume does but for their directions: look at the set of values */
			double mu = -0.005 + 2e-5 * values[i];

			assert_true(values[i] == 0 || values[i] == 65535 || (mu > 0.0099 && mu < 0.05));
		}
	}
	snprintf(uid, sizeof(uid), "%s", m.report.objects[0].sop_instance);
	unmake(&m);
	other = make(&(struct fixture_mg){.n = N_VIEWS});
	assert_string_not_equal(other.report.objects[0].sop_instance, uid);
	assert_string_not_equal(other.report.objects[0].series, "");
	unmake(&other);
}

static struct dicom_file *open_object(const struct made *m, size_t i)
{
	struct dicom_file *file = NULL;
	struct err err = {0};

	if (dicom_open(path_of(&m->report.objects[i]), &file, &err) < 0)
		fail_msg("%s", err.msg);
	return file;
}

/* The voxel that a stored pixel of a slice shows. */
static float voxel_of(const struct made *m, int slice, int pixel)
{
	int row = pixel / NX, column = pixel % NX;
	int i = m->exam->columns_toward_chest ? NX - 1 - column : column;
	int j = m->exam->rows_toward_minus_y ? NY - 1 - row : row;

	return m->volume[(slice * NY + j) * NX + i];
}

/* Slabs of the slices [first, first + n): values, places, thickness, what they say they are and where they come from. */
static void check_slabs(const char *const *settings, bool maximum, const int (*slabs)[2], size_t n, bool even)
{
	struct protocol_conf p = protocol_with(settings);
	struct made m = make_as(&(struct fixture_mg){.n = N_VIEWS}, &p);
	struct dicom_file *file;
	struct dicom_item *root;
	const struct dicom_item *derivation;
	uint16_t values[NX * NY];
	struct err err = {0};

	assert_int_equal(m.report.n_objects, 2);
	assert_int_equal(m.report.objects[1].kind, RESULT_SLABS);
	assert_string_equal(m.report.objects[1].sop_class, RESULT_CLASS);
	assert_string_not_equal(m.report.objects[1].series, m.report.objects[0].series);
	file = open_object(&m, 1);
	root = dicom_root(file);
	assert_string_equal(text_of(root, TAG_SOP_INSTANCE_UID), m.report.objects[1].sop_instance);
	assert_string_equal(text_of(root, TAG_SERIES_INSTANCE_UID), m.report.objects[1].series);
	assert_string_equal(text_of(root, TAG_VOLUMETRIC_PROPERTIES), "SAMPLED");
	assert_string_equal(text_of(root, TAG_VOLUME_BASED_CALCULATION_TECHNIQUE), maximum ? "MAX_IP" : "TOMOSYNTHESIS");
	assert_string_equal(text_of(root, TAG_IMAGE_TYPE), "DERIVED\\PRIMARY\\TOMOSYNTHESIS\\NONE");
	assert_true(number_of(root, TAG_NUMBER_OF_FRAMES, 0) == (double)n);
	/* one step of derivation from the projections, one from the slices, which are referred to as another series */
	derivation = dicom_item_at(dicom_item_at(root, shared_group, 0), TAG_DERIVATION_IMAGE_SEQUENCE, 1);
	assert_string_equal(text_of(dicom_item_at(derivation, TAG_SOURCE_IMAGE_SEQUENCE, 0), TAG_REFERENCED_SOP_INSTANCE_UID),
			    m.report.objects[0].sop_instance);
	assert_string_equal(text_of(dicom_item_at(derivation, TAG_DERIVATION_CODE_SEQUENCE, 0), TAG_CODE_VALUE),
			    maximum ? "113078" : "113049");
	assert_int_equal(dicom_item_count(root, TAG_REFERENCED_SERIES_SEQUENCE), 2);
	assert_int_equal(dicom_has(dicom_item_at(root, shared_group, 0), TAG_PIXEL_MEASURES_SEQUENCE), even);
	for (size_t k = 0; k < n; k++) {
		const struct dicom_item *frame = dicom_item_at(root, frame_group, k);
		const struct dicom_item *measures =
			group(root, even ? shared_group : frame_group, even ? 0 : k, TAG_PIXEL_MEASURES_SEQUENCE);
		const struct dicom_item *position = group(root, frame_group, k, TAG_PLANE_POSITION_SEQUENCE);

		assert_non_null(frame);
		assert_true(fabs(number_of(measures, TAG_SLICE_THICKNESS, 0) - 1.5 * slabs[k][1]) < 1e-6);
		assert_true(fabs(number_of(position, TAG_IMAGE_POSITION_PATIENT, 2) -
				 (20 + 1.5 * (slabs[k][0] + slabs[k][1] / 2.0))) < 1e-3); /* a CC view: z is the patient's */
		if (even)
			assert_true(fabs(number_of(measures, TAG_SPACING_BETWEEN_SLICES, 0) -
					 1.5 * (n > 1 ? slabs[1][0] - slabs[0][0] : slabs[0][1])) < 1e-6);
		assert_int_equal(dicom_read_frame(file, (long)k, values, &err), 0);
		for (int i = 0; i < NX * NY; i++) {
			double want = maximum ? -1 : 0;

			for (int s = slabs[k][0]; s < slabs[k][0] + slabs[k][1]; s++)
				want = maximum ? fmax(want, voxel_of(&m, s, i)) : want + voxel_of(&m, s, i) / slabs[k][1];
			want = fmin(fmax(want * 1e5, 0), 65535);
			if (fabs(values[i] - want) > 0.51)
				fail_msg("slab %zu, pixel %d: %u, not %g", k, i, values[i], want);
		}
	}
	dicom_close(file);
	unmake(&m);
}

static void test_slabs(void **state)
{
	(void)state;
	/* slices of 1.5 mm; half of the thickness is the default's step */
	check_slabs((const char *const[]){"slab_thickness=3", NULL}, false, (const int[][2]){{0, 2}, {1, 2}}, 2, true);
	check_slabs((const char *const[]){"slab_thickness=3", "slab_mode=maximum", NULL}, true, (const int[][2]){{0, 2}, {1, 2}},
		    2, true);
	check_slabs((const char *const[]){"slab_thickness=1.5", NULL}, false, (const int[][2]){{0, 1}, {1, 1}, {2, 1}}, 3, true);
	check_slabs((const char *const[]){"slab_thickness=30", NULL}, false, (const int[][2]){{0, 3}}, 1, true);
	/* the upper one holds one slice alone: thickness is told frame by frame */
	check_slabs((const char *const[]){"slab_thickness=3", "slab_step=3", NULL}, false, (const int[][2]){{0, 2}, {2, 1}}, 2,
		    false);
}

static void test_slabs_refused(void **state)
{
	struct protocol_conf p = protocol_with((const char *const[]){"slab_thickness=1", NULL});
	struct dbt_plan plan = {.grid = {.n = {NX, NY, NZ}, .h = {2, 2, 1.5}}};
	struct err err = {0};

	(void)state;
	assert_int_equal(result_check(&p, &plan, &err), -EINVAL);
	assert_non_null(strstr(err.msg, "1.5 mm"));
	p.slab_thickness = 3;
	p.slab_step = 1;
	assert_int_equal(result_check(&p, &plan, &err), -EINVAL);
	p.slab_step = 0;
	assert_int_equal(result_check(&p, &plan, &err), 0);
}

/* The view: a mammogram, its pixels on those of the slices, its values an integral, nothing of an exposure. */
static void test_view(void **state)
{
	struct protocol_conf p = protocol_with((const char *const[]){"synthetic=true", NULL});
	struct made m = make_as(&(struct fixture_mg){.n = N_VIEWS, .change = complete}, &p);
	struct dicom_file *file = open_object(&m, 1);
	struct dicom_item *root = dicom_root(file);
	const struct dicom_item *map = dicom_item_at(root, TAG_REAL_WORLD_VALUE_MAPPING_SEQUENCE, 0);
	double step = number_of(map, TAG_REAL_WORLD_VALUE_SLOPE, 0);
	struct dicom_pixel_info info;
	uint16_t values[NX * NY];
	struct err err = {0};
	size_t n;

	(void)state;
	assert_int_equal(m.report.n_objects, 2);
	assert_string_equal(m.report.objects[1].sop_class, RESULT_CLASS_VIEW);
	assert_string_equal(text_of(root, TAG_SOP_CLASS_UID), RESULT_CLASS_VIEW);
	assert_string_equal(text_of(root, TAG_IMAGE_TYPE), "DERIVED\\PRIMARY\\TOMOSYNTHESIS\\GENERATED_2D");
	assert_string_equal(text_of(root, DICOM_TAG(0x0008, 0x0068)), "FOR PRESENTATION");
	assert_string_equal(text_of(root, TAG_PATIENT_ORIENTATION),
			    text_of(dicom_root(m.exam->files[0]), TAG_PATIENT_ORIENTATION));
	assert_true(number_of(root, TAG_IMAGER_PIXEL_SPACING, 0) == 2 && number_of(root, TAG_IMAGER_PIXEL_SPACING, 1) == 2);
	assert_string_equal(text_of(root, TAG_ANODE_TARGET_MATERIAL), "TUNGSTEN");
	assert_false(dicom_has(root, TAG_ORGAN_DOSE) || dicom_has(root, TAG_ENTRANCE_DOSE_IN_MGY) ||
		     dicom_has(root, TAG_EXPOSURE));
	n = dicom_item_count(root, TAG_SOURCE_IMAGE_SEQUENCE);
	assert_int_equal(n, N_VIEWS + 1);
	assert_string_equal(text_of(dicom_item_at(root, TAG_SOURCE_IMAGE_SEQUENCE, n - 1), TAG_REFERENCED_SOP_INSTANCE_UID),
			    m.report.objects[0].sop_instance);
	assert_true(fabs(step - 2e-4) < 1e-12);
	assert_int_equal(dicom_pixels_info(file, &info, &err), 0);
	assert_true(info.columns == NX && info.rows == NY && info.frames == 1);
	assert_int_equal(dicom_read_frame(file, 0, values, &err), 0);
	for (int i = 0; i < NX * NY; i++) {
		double sum = 0;

		for (int k = 0; k < NZ; k++)
			sum += 1.5 * voxel_of(&m, k, i);
		/* the volume is smooth but for two voxels at a corner: there is no detail to enhance beside them */
		if (voxel_of(&m, 0, i) > 1 || voxel_of(&m, 0, i) < 0)
			continue;
		if (fabs(values[i] * step - sum) > step)
			fail_msg("pixel %d: %g, not %g", i, values[i] * step, sum);
	}
	dicom_close(file);
	unmake(&m);
}

/* JPEG-LS: the same objects, bit by bit the same pixels. */
static void test_compressed(void **state)
{
	static const char *const settings[] = {"slab_thickness=3", "synthetic=true", NULL};
	struct protocol_conf p = protocol_with(settings), q = p;
	struct made plain = make_as(&(struct fixture_mg){.n = N_VIEWS}, &p), packed;
	uint16_t frames[3][NZ][NX * NY], values[NX * NY];
	struct err err = {0};

	(void)state;
	assert_int_equal(plain.report.n_objects, 3);
	for (size_t i = 0; i < 3; i++) {
		struct dicom_file *file = open_object(&plain, i);
		struct dicom_pixel_info info;

		assert_int_equal(dicom_pixels_info(file, &info, &err), 0);
		for (long k = 0; k < info.frames; k++)
			assert_int_equal(dicom_read_frame(file, k, frames[i][k], &err), 0);
		dicom_close(file);
	}
	unmake(&plain);
	q.compression = COMPRESSION_JPEGLS;
	packed = make_as(&(struct fixture_mg){.n = N_VIEWS}, &q);
	for (size_t i = 0; i < 3; i++) {
		struct dicom_file *file = open_object(&packed, i);
		struct dicom_pixel_info info;

		assert_string_equal(packed.report.objects[i].sop_instance, plain.report.objects[i].sop_instance);
		assert_string_equal(dicom_transfer_syntax(file), "1.2.840.10008.1.2.4.80");
		assert_string_equal(text_of(dicom_root(file), TAG_LOSSY_IMAGE_COMPRESSION), "00");
		assert_int_equal(dicom_pixels_info(file, &info, &err), 0);
		for (long k = 0; k < info.frames; k++) {
			assert_int_equal(dicom_read_frame(file, k, values, &err), 0);
			assert_memory_equal(values, frames[i][k], sizeof(values));
		}
		dicom_close(file);
	}
	unmake(&packed);
}

static void test_not_written(void **state)
{
	struct made m = make(&(struct fixture_mg){.n = N_VIEWS});
	struct result_info info = {.protocol = config_protocol(fixture_config, "dbt-osem"), .plan = &m.plan, .device = "cpu"};
	struct result_report report = {0};
	struct dbt_session session = session_of(&m);
	struct err err = {0};
	int before;

	(void)state;
	assert_true(result_write(m.exam, &info, &session, fixture_path("no/such"), &report, &err) < 0);
	before = fixture_entries();
	m.volume[77] = NAN;
	session = session_of(&m);
	assert_int_equal(result_write(m.exam, &info, &session, fixture_folder, &report, &err), -EIO);
	assert_non_null(strstr(err.msg, "1 of"));
	m.volume[77] = 0;
	/* a device that dies under way: its error, and no file */
	unlink(path_of(&m.report.objects[0]));
	session.broken = 1;
	session.next = 0;
	assert_int_equal(result_write(m.exam, &info, &session, fixture_folder, &report, &err), -ENODEV);
	assert_non_null(strstr(err.msg, "the device is gone"));
	assert_int_equal(fixture_entries(), before - 1);
	assert_int_equal(report.n_objects, 0);
	unmake(&m);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_places),	       cmocka_unit_test(test_identity),	  cmocka_unit_test(test_copied),
		cmocka_unit_test(test_all_or_nothing), cmocka_unit_test(test_made_up),	  cmocka_unit_test(test_not_written),
		cmocka_unit_test(test_scale),	       cmocka_unit_test(test_slabs),	  cmocka_unit_test(test_slabs_refused),
		cmocka_unit_test(test_view),	       cmocka_unit_test(test_compressed),
	};

	return cmocka_run_group_tests_name("result", tests, fixture_start, fixture_stop);
}
