/* SPDX-License-Identifier: Apache-2.0 */
/* Test the additional objects of a result, slabs and synthetic view, and compressed objects. */
#include "node/format/picture.h"
#include "node/result/thumbnail.h"
#include "tests/node/result/result_fixture.h"
#include "tests/test.h"

static struct dicom_file *open_object(const struct made *m, size_t i)
{
	struct dicom_file *file = NULL;
	struct err err = {0};

	assert_done(dicom_open(path_of(&m->report.objects[i]), &file, &err), &err);
	return file;
}

/* Return the voxel of a stored pixel of a slice. */
static float voxel_of(const struct made *m, int slice, int pixel)
{
	int row = pixel / NX, column = pixel % NX;
	int i = m->exam->columns_toward_chest ? NX - 1 - column : column;
	int j = m->exam->rows_toward_minus_y ? NY - 1 - row : row;

	return m->volume[(slice * NY + j) * NX + i];
}

/* Check slabs of the slices [first, first + n): values, positions, thickness, description and sources. */
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
	assert_string_equal(m.report.objects[1].sop_class, CLASS_TOMOSYNTHESIS);
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
}

TEST(test_slabs)
{
	/* slices of 1.5 mm; half of the thickness is the default's step */
	check_slabs((const char *const[]){"slab_thickness=3", NULL}, false, (const int[][2]){{0, 2}, {1, 2}}, 2, true);
	check_slabs((const char *const[]){"slab_thickness=3", "slab_mode=maximum", NULL}, true, (const int[][2]){{0, 2}, {1, 2}},
		    2, true);
	check_slabs((const char *const[]){"slab_thickness=1.5", NULL}, false, (const int[][2]){{0, 1}, {1, 1}, {2, 1}}, 3, true);
	check_slabs((const char *const[]){"slab_thickness=30", NULL}, false, (const int[][2]){{0, 3}}, 1, true);
	/* the upper slab has only one slice: each frame has its own thickness */
	check_slabs((const char *const[]){"slab_thickness=3", "slab_step=3", NULL}, false, (const int[][2]){{0, 2}, {2, 1}}, 2,
		    false);
}

TEST(test_slabs_refused)
{
	struct protocol_conf p = protocol_with((const char *const[]){"slab_thickness=1", NULL});
	struct dbt_plan plan = {.grid = {.n = {NX, NY, NZ}, .h = {2, 2, 1.5}}};
	struct err err = {0};

	assert_error(result_check(&p, &plan, &err), &err, EINVAL, "1.5 mm");
	p.slab_thickness = 3;
	p.slab_step = 1;
	assert_int_equal(result_check(&p, &plan, &err), -EINVAL);
	p.slab_step = 0;
	assert_int_equal(result_check(&p, &plan, &err), 0);
}

/* The view is a mammogram whose pixels have the positions of those of the slices; values are integrals; no exposure is stored. */
TEST(test_view)
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

	assert_int_equal(m.report.n_objects, 2);
	assert_string_equal(m.report.objects[1].sop_class, CLASS_MG_PRESENTATION);
	assert_string_equal(text_of(root, TAG_SOP_CLASS_UID), CLASS_MG_PRESENTATION);
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
		/* the volume is smooth except for two voxels at a corner: elsewhere there is no detail to enhance */
		if (voxel_of(&m, 0, i) > 1 || voxel_of(&m, 0, i) < 0)
			continue;
		if (fabs(values[i] * step - sum) > step)
			fail_msg("pixel %d: %g, not %g", i, values[i] * step, sum);
	}
	check_window(root, values, NX * NY);
	dicom_close(file);
}

/* Check that no viewer splits the object by its frames: frame type, acquisition number and stack are equal; positions count. */
static void check_frames(const struct dicom_item *root, size_t n)
{
	for (size_t k = 0; k < n; k++) {
		const struct dicom_item *content = group(root, frame_group, k, TAG_FRAME_CONTENT_SEQUENCE),
					*type = group(root, frame_group, k, TAG_X_RAY_3D_FRAME_TYPE_SEQUENCE);

		assert_string_equal(text_of(type, TAG_FRAME_TYPE), text_of(root, TAG_IMAGE_TYPE));
		assert_true(number_of(content, TAG_FRAME_ACQUISITION_NUMBER, 0) == 1);
		assert_string_equal(text_of(content, TAG_STACK_ID), "1");
		assert_true(number_of(content, TAG_IN_STACK_POSITION_NUMBER, 0) == (double)(k + 1));
		assert_false(dicom_has(dicom_item_at(root, frame_group, k), TAG_FRAME_VOI_LUT_SEQUENCE));
	}
}

/* The view as Breast Tomosynthesis Image of one frame: the same pixels, in the middle of the volume, as thick as the volume. */
TEST(test_view_class)
{
	struct protocol_conf p = protocol_with((const char *const[]){"synthetic=true", NULL});
	struct made m = make_as(&(struct fixture_mg){.n = N_VIEWS, .change = complete}, &p);
	struct dicom_file *file = open_object(&m, 1);
	char mammogram[DICOM_UID_SIZE];
	uint16_t want[NX * NY], values[NX * NY];
	const struct dicom_item *root, *map;
	struct err err = {0};

	assert_int_equal(dicom_read_frame(file, 0, want, &err), 0);
	memcpy(mammogram, m.report.objects[1].sop_instance, sizeof(mammogram));
	dicom_close(file);
	p = protocol_with((const char *const[]){"synthetic=true", "synthetic_class=tomosynthesis", NULL});
	m = make_as(&(struct fixture_mg){.n = N_VIEWS, .change = complete}, &p);
	file = open_object(&m, 1);
	root = dicom_root(file);
	assert_int_equal(m.report.objects[1].kind, RESULT_SYNTHETIC);
	assert_string_equal(m.report.objects[1].sop_class, CLASS_TOMOSYNTHESIS);
	assert_string_equal(text_of(root, TAG_SOP_CLASS_UID), CLASS_TOMOSYNTHESIS);
	assert_string_not_equal(m.report.objects[1].sop_instance, mammogram);
	assert_string_equal(text_of(root, TAG_IMAGE_TYPE), "DERIVED\\PRIMARY\\TOMOSYNTHESIS\\GENERATED_2D");
	assert_string_equal(text_of(root, TAG_VOLUME_BASED_CALCULATION_TECHNIQUE), "VOLUME_RENDER");
	assert_true(number_of(root, TAG_NUMBER_OF_FRAMES, 0) == 1);
	check_frames(root, 1);
	assert_int_equal(dicom_item_count(root, TAG_X_RAY_3D_ACQUISITION_SEQUENCE), 1);
	assert_true(number_of(group(root, shared_group, 0, TAG_PIXEL_MEASURES_SEQUENCE), TAG_SLICE_THICKNESS, 0) == 1.5 * NZ);
	assert_true(fabs(number_of(group(root, frame_group, 0, TAG_PLANE_POSITION_SEQUENCE), TAG_IMAGE_POSITION_PATIENT, 2) -
			 (20 + 1.5 * NZ / 2)) < 1e-3);
	map = group(root, shared_group, 0, TAG_REAL_WORLD_VALUE_MAPPING_SEQUENCE);
	assert_true(fabs(number_of(map, TAG_REAL_WORLD_VALUE_SLOPE, 0) - 2e-4) < 1e-12);
	assert_string_equal(text_of(map, TAG_LUT_LABEL), "INTEGRAL");
	assert_int_equal(dicom_read_frame(file, 0, values, &err), 0);
	assert_memory_equal(values, want, sizeof(values));
	dicom_close(file);
}

/* The objects of a case hang together: one frame of reference, and one window each, in whole numbers within the stored range. */
TEST(test_display)
{
	static const char *const settings[] = {"slab_thickness=3", "slab_step=3", "synthetic=true", "stored_step=1.7e-5", NULL};
	struct protocol_conf p = protocol_with(settings);
	struct made m = make_as(&(struct fixture_mg){.n = N_VIEWS}, &p);

	assert_int_equal(m.report.n_objects, 3);
	for (size_t i = 0; i < 3; i++) {
		struct dicom_file *file = open_object(&m, i);
		const struct dicom_item *root = dicom_root(file), *window = root;
		double centre, width;

		assert_string_equal(text_of(root, TAG_FRAME_OF_REFERENCE_UID), "1.2.3.3");
		assert_true(dicom_has(root, TAG_POSITION_REFERENCE_INDICATOR));
		if (m.report.objects[i].kind != RESULT_SYNTHETIC) {
			window = group(root, shared_group, 0, TAG_FRAME_VOI_LUT_SEQUENCE);
			check_frames(root, (size_t)number_of(root, TAG_NUMBER_OF_FRAMES, 0));
		}
		centre = number_of(window, TAG_WINDOW_CENTER, 0);
		width = number_of(window, TAG_WINDOW_WIDTH, 0);
		assert_string_equal(text_of(window, TAG_VOI_LUT_FUNCTION), "LINEAR");
		assert_true(centre == floor(centre) && width == floor(width) && width >= 2);
		assert_true(centre - width / 2 >= 0 && centre + width / 2 <= 65535);
		dicom_close(file);
	}
}

/* Check that the slices are stored in 12 bits with this step: each voxel to half a step, up to the end of the range. */
static void check_twelve_bits(const struct made *m, const struct result_report *report, double step)
{
	struct dicom_file *file = NULL;
	const struct dicom_item *map;
	struct dicom_pixel_info info;
	uint16_t values[NX * NY];
	struct err err = {0};

	assert_true(report->bits == 12 && fabs(report->step - step) < 1e-12);
	assert_int_equal(dicom_open(path_of(&report->objects[0]), &file, &err), 0);
	map = group(dicom_root(file), shared_group, 0, TAG_REAL_WORLD_VALUE_MAPPING_SEQUENCE);
	assert_true(fabs(number_of(map, TAG_REAL_WORLD_VALUE_SLOPE, 0) - step) < 1e-12);
	assert_true(number_of(map, TAG_REAL_WORLD_VALUE_LAST_VALUE_MAPPED, 0) == 4095);
	assert_int_equal(dicom_pixels_info(file, &info, &err), 0);
	assert_true(info.bits_stored == 12 && number_of(dicom_root(file), TAG_HIGH_BIT, 0) == 11);
	for (int k = 0; k < NZ; k++) {
		assert_int_equal(dicom_read_frame(file, k, values, &err), 0);
		for (int i = 0; i < NX * NY; i++)
			if (fabs(values[i] - fmin(fmax(voxel_of(m, k, i) / step, 0), 4095)) > 0.51)
				fail_msg("slice %d, pixel %d: %u for %g", k, i, values[i], (double)voxel_of(m, k, i));
	}
	dicom_close(file);
}

static void write_again(struct made *m, const struct protocol_conf *p, size_t stride, struct result_report *ret)
{
	struct result_info info = {.protocol = p, .plan = &m->plan, .device = "cpu"};
	struct dbt_session session = session_of(m);
	struct err err = {0};

	session.stride = stride;
	assert_done(result_write(m->exam, &info, &session, fixture_folder, ret, &err), &err);
}

/* 12 bits: the smallest multiple of the step that clips no voxel, also one that the sampled histogram misses; at most the range
 * of 16 bits, and what that clips is counted. */
TEST(test_twelve_bits)
{
	struct protocol_conf p = protocol_with((const char *const[]){"stored_bits=12", "synthetic=true", NULL});
	struct result_report report;

	for (int pass = 0; pass < 2; pass++) {
		struct made m;
		struct dicom_file *file;

		p.compression = pass ? COMPRESSION_JPEGLS : COMPRESSION_NONE;
		m = make_as(&(struct fixture_mg){.n = N_VIEWS}, &p);
		check_twelve_bits(&m, &m.report, 1.6e-4);
		assert_true(m.report.above == 1 && m.report.below == 1);
		m.volume[0] = 0.3f; /* 30000 steps of 1e-5, 3750 of 8e-5 */
		for (size_t stride = 0; stride <= 500; stride += 500) {
			write_again(&m, &p, stride, &report);
			check_twelve_bits(&m, &report, 8e-5);
			assert_int_equal(report.above, 0);
		}
		m.volume[0] = 0.03f;
		write_again(&m, &p, 0, &report);
		check_twelve_bits(&m, &report, 1e-5);
		file = NULL;
		assert_int_equal(dicom_open(path_of(&report.objects[1]), &file, NULL), 0);
		assert_true(number_of(dicom_root(file), TAG_BITS_STORED, 0) == 12);
		dicom_close(file);
	}
}

/* Check that the pixels of the thumbnail, which is not smaller than the slice, have the greys of the object's window. */
static void check_thumbnail(const struct result_report *report, struct dicom_file *object, double lo, double hi)
{
	const char *file = report->objects[0].file;
	char path[4096];
	struct picture p;
	uint16_t values[NX * NY];

	assert_int_equal(thumbnail_make(fixture_folder, &file, 1, NULL), 0);
	snprintf(path, sizeof(path), "%s/thumbnail.png", fixture_folder);
	assert_int_equal(picture_read(path, &p, NULL), 0);
	assert_true(p.width == NX && p.height == NY);
	assert_int_equal(dicom_read_frame(object, NZ / 2, values, NULL), 0);
	for (int i = 0; i < NX * NY; i++)
		assert_near(p.value[i], fmin(fmax((values[i] - lo) / (hi - lo), 0), 1), 0.004);
	picture_clear(&p);
	unlink(path);
}

/* Filtered backprojection: tissue has negative values, so the window is from the inside of the breast, and air is padding, which is
 * below it: stored as 0, as is no tissue, and without a value. A view of it is the same. */
TEST(test_filtered)
{
	struct protocol_conf p = *config_protocol(fixture_config, "dbt-fbp");
	struct result_report report;
	struct made m;

	p.synthetic = true;
	m = make_as(&(struct fixture_mg){.n = N_VIEWS}, &p);
	for (int i = 0; i < NX * NY * NZ; i++) { /* the last 4 columns are air; everything else is around 0 */
		m.volume[i] = i % NX < NX - 4 ? 0.0003f * (float)(i * 37 % 101 - 50) + 1e-6f : 0;
		m.volume[i] += i % NX == NX - 5 ? 0.2f : 0; /* the overshoot at the skin, which is white */
	}
	m.volume[NX - 5] = -9; /* below the range, not air */
	write_again(&m, &p, 0, &report);
	assert_int_equal(report.below, 1);
	for (size_t o = 0; o < 2; o++) {
		struct dicom_file *file = NULL;
		const struct dicom_item *root, *map, *window;
		uint16_t values[NX * NY];
		double lo, hi, zero;
		int shown = 0, inside = 0;

		assert_int_equal(dicom_open(path_of(&report.objects[o]), &file, NULL), 0);
		root = dicom_root(file);
		map = o ? dicom_item_at(root, TAG_REAL_WORLD_VALUE_MAPPING_SEQUENCE, 0)
			: group(root, shared_group, 0, TAG_REAL_WORLD_VALUE_MAPPING_SEQUENCE);
		window = o ? root : group(root, shared_group, 0, TAG_FRAME_VOI_LUT_SEQUENCE);
		assert_true(number_of(root, TAG_PIXEL_PADDING_VALUE, 0) == 0);
		assert_true(number_of(map, TAG_REAL_WORLD_VALUE_FIRST_VALUE_MAPPED, 0) == 1);
		zero = -number_of(map, TAG_REAL_WORLD_VALUE_INTERCEPT, 0) / number_of(map, TAG_REAL_WORLD_VALUE_SLOPE, 0);
		lo = number_of(window, TAG_WINDOW_CENTER, 0) - number_of(window, TAG_WINDOW_WIDTH, 0) / 2;
		hi = lo + number_of(window, TAG_WINDOW_WIDTH, 0);
		assert_true(lo > 0 && lo < zero && hi > zero && hi - lo < 0.2 / number_of(map, TAG_REAL_WORLD_VALUE_SLOPE, 0));
		for (int k = 0; k < (o ? 1 : NZ); k++) {
			assert_int_equal(dicom_read_frame(file, k, values, NULL), 0);
			for (int i = 0; i < NX * NY; i++) {
				bool air = voxel_of(&m, k, i) == 0;
				int at = m.exam->columns_toward_chest ? NX - 1 - i % NX : i % NX;

				assert_int_equal(values[i] == 0, air);
				inside += at < (o ? 1 : NX - 8); /* of a view, more than 12 mm */
				shown += at < (o ? 1 : NX - 8) && values[i] >= lo - 1 && values[i] <= hi + 1;
			}
		}
		assert_true(inside >= NY && shown >= 0.98 * inside);
		if (o == 0)
			check_thumbnail(&report, file, lo, hi);
		dicom_close(file);
	}
}

/* JPEG-LS: the same objects with identical pixels. */
TEST(test_compressed)
{
	static const char *const settings[] = {"slab_thickness=3", "synthetic=true", NULL};
	struct protocol_conf p = protocol_with(settings), q = p;
	struct made plain = make_as(&(struct fixture_mg){.n = N_VIEWS}, &p), packed;
	uint16_t frames[3][NZ][NX * NY], values[NX * NY];
	struct err err = {0};

	assert_int_equal(plain.report.n_objects, 3);
	for (size_t i = 0; i < 3; i++) {
		struct dicom_file *file = open_object(&plain, i);
		struct dicom_pixel_info info;

		assert_int_equal(dicom_pixels_info(file, &info, &err), 0);
		for (long k = 0; k < info.frames; k++)
			assert_int_equal(dicom_read_frame(file, k, frames[i][k], &err), 0);
		dicom_close(file);
	}
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
}

TESTS_SETUP(fixture_start, fixture_stop);
