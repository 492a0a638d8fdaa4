/* SPDX-License-Identifier: Apache-2.0 */
/* Reading a tomosynthesis image: places and values of its voxels, whatever the order of its frames; geometries that are refused.
 */
#include "dicom/object/dicom_tags.h"
#include "dicom/object/item_writer.h"
#include "dicom/object/tomo_object.h"
#include "tests/dicom/core/fixture.h"
#include "tests/test.h"

#define N_ROWS 2
#define N_COLUMNS 3
#define N_FRAMES 3
#define N (N_ROWS * N_COLUMNS)

/* What the tests vary. */
struct image {
	double cosines[6], spacing[2], z[N_FRAMES], shift; /* shift: of the last frame, along x */
	double slope, intercept;
	bool is_signed;
	long bits_stored;
	long padding;		       /* stored value of padding; 0: none */
	double own_slope, own_spacing; /* of the last frame, unlike the others; 0: it has that of the others */
};

static const struct image sound = {
	.cosines = {1, 0, 0, 0, 1, 0}, .spacing = {0.2, 0.1}, .z = {5, 3, 4}, .slope = 0.5, .intercept = -2, .bits_stored = 12};

static void put_mapping(struct item_writer *frame, double slope, double intercept)
{
	struct item_writer group = item_begin(frame, TAG_REAL_WORLD_VALUE_MAPPING_SEQUENCE);

	item_put_double(&group, TAG_REAL_WORLD_VALUE_SLOPE, slope);
	item_put_double(&group, TAG_REAL_WORLD_VALUE_INTERCEPT, intercept);
	item_end(frame, &group);
}

static void put_spacing(struct item_writer *frame, const double spacing[2])
{
	struct item_writer group = item_begin(frame, TAG_PIXEL_MEASURES_SEQUENCE);

	item_put_doubles(&group, TAG_PIXEL_SPACING, spacing, 2);
	item_end(frame, &group);
}

static void put_shared(struct item_writer *root, const struct image *m)
{
	struct item_writer shared = item_begin(root, TAG_SHARED_FUNCTIONAL_GROUPS_SEQUENCE), group;

	group = item_begin(&shared, TAG_PLANE_ORIENTATION_SEQUENCE);
	item_put_doubles(&group, TAG_IMAGE_ORIENTATION_PATIENT, m->cosines, 6);
	item_end(&shared, &group);
	put_spacing(&shared, m->spacing);
	put_mapping(&shared, m->slope, m->intercept);
	item_end(root, &shared);
}

static void put_frames(struct item_writer *root, const struct image *m)
{
	for (int f = 0; f < N_FRAMES; f++) {
		struct item_writer frame = item_begin(root, TAG_PER_FRAME_FUNCTIONAL_GROUPS_SEQUENCE), group;
		double position[3] = {10 + (f == N_FRAMES - 1 ? m->shift : 0), 20, m->z[f]};

		group = item_begin(&frame, TAG_PLANE_POSITION_SEQUENCE);
		item_put_doubles(&group, TAG_IMAGE_POSITION_PATIENT, position, 3);
		item_end(&frame, &group);
		if (f == N_FRAMES - 1 && m->own_slope > 0)
			put_mapping(&frame, m->own_slope, m->intercept);
		if (f == N_FRAMES - 1 && m->own_spacing > 0)
			put_spacing(&frame, (const double[]){m->own_spacing, m->spacing[1]});
		item_end(root, &frame);
	}
}

static void put_description(struct item_writer *root, const struct image *m)
{
	const struct {
		uint32_t tag;
		long value;
	} numbers[] = {{TAG_SAMPLES_PER_PIXEL, 1},
		       {DICOM_TAG(0x0028, 0x0008), N_FRAMES},
		       {TAG_ROWS, N_ROWS},
		       {TAG_COLUMNS, N_COLUMNS},
		       {TAG_BITS_ALLOCATED, 16},
		       {TAG_BITS_STORED, m->bits_stored},
		       {TAG_HIGH_BIT, m->bits_stored - 1},
		       {TAG_PIXEL_REPRESENTATION, m->is_signed}};

	item_put_text(root, DICOM_TAG(0x0028, 0x0004), "MONOCHROME2");
	if (m->padding)
		item_put_int(root, TAG_PIXEL_PADDING_VALUE, m->padding);
	for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
		item_put_int(root, numbers[i].tag, numbers[i].value);
}

/* Write the image; pixel i of frame f has the stored value 100 f + i, in a signed image 4095 - that. */
static const char *write_image(const struct image *m)
{
	struct dicom_file *file = NULL;
	struct dicom_writer *w = NULL;
	struct err err = {0};
	struct item_writer root = {.err = &err};

	ok(dicom_new(CLASS_TOMOSYNTHESIS, "1.2.3", &file, &err), &err);
	root.item = dicom_root(file);
	put_description(&root, m);
	put_shared(&root, m);
	put_frames(&root, m);
	ok(root.rc, &err);
	ok(dicom_writer_open(in_folder("tomo.dcm"), file, NULL, &w, &err), &err);
	for (int f = 0; f < N_FRAMES; f++) {
		uint16_t values[N];

		for (int i = 0; i < N; i++)
			values[i] = (uint16_t)(m->is_signed ? 4095 - 100 * f - i : 100 * f + i);
		ok(dicom_writer_frame(w, values, &err), &err);
	}
	ok(dicom_writer_close(w, &err), &err);
	dicom_close(file);
	return in_folder("tomo.dcm");
}

static struct tomo_object *open_image(const struct image *m)
{
	struct tomo_object *t = NULL;
	struct err err = {0};

	ok(tomo_object_open(write_image(m), &t, &err), &err);
	return t;
}

static void refused_image(struct image m, const char *words)
{
	struct tomo_object *t = NULL;
	struct err err = {0};

	assert_int_equal(tomo_object_open(write_image(&m), &t, &err), -EBADMSG);
	if (!strstr(err.msg, words))
		fail_msg("\"%s\" does not contain \"%s\"", err.msg, words);
	assert_null(t);
}

TEST(test_places)
{
	struct tomo_object *t = open_image(&sound);
	double patient[3] = {10.2, 20.2, 4.5}, at[3];

	/* spacing is that between columns, then rows; the attribute has it in the other order (PS3.3 10.7.1.3) */
	assert_true(t->spacing[0] == 0.1 && t->spacing[1] == 0.2);
	assert_true(t->corner[0] == 10 && t->corner[1] == 20);
	/* the first frame is above the last one: slices begin at the last frame in the order of z */
	tomo_object_locate(t, patient, at);
	assert_true(fabs(at[0] - 2) < 1e-9 && fabs(at[1] - 1) < 1e-9);
	assert_true(fabs(fabs(t->depth[2] - t->depth[0]) - 2) < 1e-9);
	for (int k = 0; k < N_FRAMES; k++)
		assert_true(fabs(t->corner[2] + t->normal[2] * t->depth[k] - sound.z[t->frame[k]]) < 1e-9);
	tomo_object_close(t);
	assert_null(tomo_object_close(NULL));
}

/* Padding has no value: 0 is read, or what is to be shown black. */
TEST(test_padding)
{
	struct image m = sound;
	struct err err = {0};
	struct tomo_object *t;
	float values[N];

	m.padding = 203;
	t = open_image(&m);
	for (int way = 0; way < 2; way++) {
		t->padded = way ? -5 : t->padded;
		for (long k = 0; k < N_FRAMES; k++) {
			ok(tomo_object_slice(t, k, values, &err), &err);
			for (int i = 0; i < N; i++) {
				double stored = 100 * (double)t->frame[k] + i;

				assert_true(values[i] == (stored == 203 ? (way ? -5 : 0) : (float)(0.5 * stored - 2)));
			}
		}
	}
	tomo_object_close(t);
}

TEST(test_values)
{
	struct image m = sound;
	struct err err = {0};
	float values[N];

	for (int is_signed = 0; is_signed < 2; is_signed++) {
		m.is_signed = is_signed;
		struct tomo_object *t = open_image(&m);
		for (long k = 0; k < N_FRAMES; k++) {
			ok(tomo_object_slice(t, k, values, &err), &err);
			for (int i = 0; i < N; i++) {
				double stored = 100 * (double)t->frame[k] + i;

				assert_true(values[i] == (float)(0.5 * (is_signed ? -1 - stored : stored) - 2));
			}
		}
		tomo_object_close(t);
	}
}

TEST(test_refused)
{
	struct image m = sound;

	m.z[2] = m.z[0];
	refused_image(m, "have the same position");
	m = sound;
	m.shift = 0.5;
	refused_image(m, "is shifted by");
	m = sound;
	m.cosines[3] = sqrt(0.5); /* both are unit vectors, 45 degrees apart */
	m.cosines[4] = sqrt(0.5);
	refused_image(m, "not orthogonal unit vectors");
	m = sound;
	m.cosines[0] = 0.9;
	refused_image(m, "not orthogonal unit vectors");
	m = sound;
	m.spacing[1] = 0;
	refused_image(m, "mm between pixels");
}

/* Slope and spacing of the first frame are used for all frames: others are refused. */
TEST(test_frames_that_differ)
{
	struct image m = sound;

	m.own_slope = m.slope;
	m.own_spacing = m.spacing[0];
	tomo_object_close(open_image(&m));
	m.own_slope = 2 * m.slope;
	refused_image(m, "frame 3: (0040,9225) is 1, unlike that of the first frame");
	m.own_slope = 0;
	m.own_spacing = 0.3;
	refused_image(m, "frame 3: (0028,0030) is 0.3, unlike that of the first frame");
}

/* The first error within a sequence is that of the writer. */
TEST(test_error_in_a_sequence)
{
	struct dicom_file *file = NULL;
	struct err err = {0};
	struct item_writer root = {.err = &err}, inner;

	ok(dicom_new(CLASS_TOMOSYNTHESIS, "1.2.3", &file, &err), &err);
	root.item = dicom_root(file);
	inner = item_begin(&root, TAG_PIXEL_MEASURES_SEQUENCE);
	item_put_int(&inner, TAG_ROWS, 65536);
	item_put_double(&inner, TAG_SLICE_THICKNESS, 1);
	item_end(&root, &inner);
	assert_int_equal(root.rc, -ERANGE);
	item_put_text(&root, TAG_PATIENT_ID, "after the error");
	assert_false(dicom_has(dicom_root(file), TAG_PATIENT_ID));
	assert_int_equal(root.rc, -ERANGE);
	assert_non_null(strstr(err.msg, "(0028,0010)"));
	dicom_close(file);
}

TESTS_SETUP(folder_make, folder_remove);
