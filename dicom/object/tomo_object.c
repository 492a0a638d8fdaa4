/* SPDX-License-Identifier: Apache-2.0 */
/* tomo_object.c - read geometry and values of a tomosynthesis object: from its functional groups, or from the container of an SCO
 * object. */
#include "dicom/object/tomo_object.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "dicom/object/dicom_tags.h"

#define UNIT_TOLERANCE 1e-3	/* relative, for a direction's length */
#define IN_PLANE_TOLERANCE 0.01 /* mm: largest shift of frames against each other */
#define FRAME_TOLERANCE 1e-6	/* relative, for numbers that all frames must have in common */
#define STORED_VALUES 65536	/* of 16 bits */

/* Return the item of a functional group sequence that applies to a frame: its own, or else the shared one. */
static const struct dicom_item *functional_group(const struct tomo_object *t, long frame, uint32_t tag)
{
	const struct dicom_item *root = dicom_root(t->file), *item;

	item = dicom_item_at(root, TAG_PER_FRAME_FUNCTIONAL_GROUPS_SEQUENCE, (size_t)frame);
	item = item ? dicom_item_at(item, tag, 0) : NULL;
	if (item)
		return item;
	item = dicom_item_at(root, TAG_SHARED_FUNCTIONAL_GROUPS_SEQUENCE, 0);
	return item ? dicom_item_at(item, tag, 0) : NULL;
}

/* Read n numbers of an attribute in a functional group. */
static int read_doubles(const struct tomo_object *t, long frame, uint32_t sequence, uint32_t tag, double *ret, unsigned n,
			struct err *err)
{
	const struct dicom_item *item = functional_group(t, frame, sequence);

	for (unsigned i = 0; i < n; i++) {
		int r = item ? dicom_get_double(item, tag, i, &ret[i], err) : 0;

		if (r < 0)
			return r;
		if (r == 0)
			return err_set(err, EBADMSG, "frame %ld: no (%04X,%04X) in (%04X,%04X)", frame + 1, tag >> 16,
				       tag & 0xffff, sequence >> 16, sequence & 0xffff);
	}
	return 0;
}

static double dot(const double a[3], const double b[3])
{
	return a[0] * b[0] + a[1] * b[1] + a[2] * b[2];
}

/* Read directions and spacing of the pixels, from the first frame. */
static int read_plane(struct tomo_object *t, struct err *err)
{
	double cosines[6], spacing[2];
	int r = read_doubles(t, 0, TAG_PLANE_ORIENTATION_SEQUENCE, TAG_IMAGE_ORIENTATION_PATIENT, cosines, 6, err);

	if (r == 0)
		r = read_doubles(t, 0, TAG_PIXEL_MEASURES_SEQUENCE, TAG_PIXEL_SPACING, spacing, 2, err);
	if (r < 0)
		return r;
	if (dicom_get_double(functional_group(t, 0, TAG_PIXEL_MEASURES_SEQUENCE), TAG_SLICE_THICKNESS, 0, &t->thickness, NULL) !=
	    1)
		t->thickness = 0;
	memcpy(t->across, cosines, sizeof(t->across));
	memcpy(t->down, cosines + 3, sizeof(t->down));
	t->spacing[0] = spacing[1];
	t->spacing[1] = spacing[0];
	for (int c = 0; c < 3; c++)
		t->normal[c] = t->across[(c + 1) % 3] * t->down[(c + 2) % 3] - t->across[(c + 2) % 3] * t->down[(c + 1) % 3];
	if (fabs(dot(t->across, t->across) - 1) > UNIT_TOLERANCE || fabs(dot(t->down, t->down) - 1) > UNIT_TOLERANCE ||
	    fabs(dot(t->across, t->down)) > UNIT_TOLERANCE)
		return err_set(err, EBADMSG, "(0020,0037): %g\\%g\\%g and %g\\%g\\%g are not orthogonal unit vectors", cosines[0],
			       cosines[1], cosines[2], cosines[3], cosines[4], cosines[5]);
	if (!(spacing[0] > 0 && spacing[1] > 0))
		return err_set(err, EBADMSG, "(0028,0030): %g\\%g mm between pixels", spacing[0], spacing[1]);
	return 0;
}

/* Read the unit of the values: of the mapping, or the Rescale Type. */
static void read_units(struct tomo_object *t, uint32_t sequence)
{
	const struct dicom_item *item = functional_group(t, 0, sequence), *units;

	units = item ? dicom_item_at(item, TAG_MEASUREMENT_UNITS_CODE_SEQUENCE, 0) : NULL;
	if (units)
		dicom_get_text(units, TAG_CODE_VALUE, t->units, sizeof(t->units), NULL);
	else if (item)
		dicom_get_text(item, TAG_RESCALE_TYPE, t->units, sizeof(t->units), NULL);
}

/* Read how stored values are converted to those that they stand for. */
static int read_values(struct tomo_object *t, struct err *err)
{
	double slope = 1, offset = 0;
	uint32_t sequence = TAG_REAL_WORLD_VALUE_MAPPING_SEQUENCE, slope_tag = TAG_REAL_WORLD_VALUE_SLOPE,
		 offset_tag = TAG_REAL_WORLD_VALUE_INTERCEPT;
	int r;

	if (!functional_group(t, 0, sequence)) { /* not written by tomonode */
		sequence = TAG_PIXEL_VALUE_TRANSFORMATION_SEQUENCE;
		slope_tag = TAG_RESCALE_SLOPE;
		offset_tag = TAG_RESCALE_INTERCEPT;
	}
	if (functional_group(t, 0, sequence)) {
		r = read_doubles(t, 0, sequence, slope_tag, &slope, 1, err);
		if (r == 0)
			r = read_doubles(t, 0, sequence, offset_tag, &offset, 1, err);
		if (r < 0)
			return r;
	}
	t->slope = slope;
	t->offset = offset;
	read_units(t, sequence);
	return 0;
}

/* Read the window, whose function is LINEAR (PS3.3 C.11.2.1.2.1), as a range of values with this slope and offset. */
static void read_window(struct tomo_object *t, const struct dicom_item *item, double slope, double offset)
{
	double center, width;

	if (!item || dicom_get_double(item, TAG_WINDOW_CENTER, 0, &center, NULL) != 1 ||
	    dicom_get_double(item, TAG_WINDOW_WIDTH, 0, &width, NULL) != 1 || !(width > 1))
		return;
	for (int i = 0; i < 2; i++)
		t->window[i] = offset + slope * (center - 0.5 + (i - 0.5) * (width - 1));
}

/* Read the window of the first frame. It is in rescaled values; the class requires that these are the stored ones
 * (C.7.6.16.2.9b), to which a mapping also belongs. */
static void read_frame_window(struct tomo_object *t)
{
	const struct dicom_item *transformation = functional_group(t, 0, TAG_PIXEL_VALUE_TRANSFORMATION_SEQUENCE);
	bool mapped = functional_group(t, 0, TAG_REAL_WORLD_VALUE_MAPPING_SEQUENCE);
	double slope = 1, offset = 0;

	if (transformation && (dicom_get_double(transformation, TAG_RESCALE_SLOPE, 0, &slope, NULL) != 1 ||
			       dicom_get_double(transformation, TAG_RESCALE_INTERCEPT, 0, &offset, NULL) != 1))
		return;
	if (mapped && (slope != 1 || offset != 0))
		return;
	read_window(t, functional_group(t, 0, TAG_FRAME_VOI_LUT_SEQUENCE), mapped ? t->slope : 1, mapped ? t->offset : 0);
}

bool tomo_object_window(struct dicom_file *file, double ret_window[2])
{
	struct tomo_object t = {.file = file, .slope = 1, .window = {NAN, NAN}};

	if (!dicom_has(dicom_root(file), TAG_SHARED_FUNCTIONAL_GROUPS_SEQUENCE))
		return false;
	read_frame_window(&t);
	memcpy(ret_window, t.window, sizeof(t.window));
	return isfinite(t.window[0]) && t.window[1] > t.window[0];
}

/* Check that all frames have the n numbers of an attribute in a functional group that the first one has. */
static int check_common(const struct tomo_object *t, uint32_t sequence, uint32_t tag, unsigned n, struct err *err)
{
	const struct dicom_item *first = functional_group(t, 0, sequence);
	double expected[6] = {0}, found[6], most = 0;
	int r = first ? read_doubles(t, 0, sequence, tag, expected, n, err) : 0;

	for (unsigned i = 0; i < n; i++)
		most = fmax(most, fabs(expected[i]));
	for (long k = 1; r == 0 && k < t->info.frames; k++) {
		if (functional_group(t, k, sequence) == first)
			continue;
		r = read_doubles(t, k, sequence, tag, found, n, err);
		for (unsigned i = 0; r == 0 && i < n; i++)
			if (!first || !(fabs(found[i] - expected[i]) <= FRAME_TOLERANCE * most))
				r = err_set(err, EBADMSG, "frame %ld: (%04X,%04X) is %g, unlike that of the first frame", k + 1,
					    tag >> 16, tag & 0xffff, found[i]);
	}
	return r;
}

/* Check that the frames differ only in their positions. */
static int check_frames(const struct tomo_object *t, struct err *err)
{
	static const struct {
		uint32_t sequence, tag;
		unsigned n;
	} common[] = {{TAG_PLANE_ORIENTATION_SEQUENCE, TAG_IMAGE_ORIENTATION_PATIENT, 6},
		      {TAG_PIXEL_MEASURES_SEQUENCE, TAG_PIXEL_SPACING, 2},
		      {TAG_REAL_WORLD_VALUE_MAPPING_SEQUENCE, TAG_REAL_WORLD_VALUE_SLOPE, 1},
		      {TAG_REAL_WORLD_VALUE_MAPPING_SEQUENCE, TAG_REAL_WORLD_VALUE_INTERCEPT, 1},
		      {TAG_PIXEL_VALUE_TRANSFORMATION_SEQUENCE, TAG_RESCALE_SLOPE, 1},
		      {TAG_PIXEL_VALUE_TRANSFORMATION_SEQUENCE, TAG_RESCALE_INTERCEPT, 1}};
	int r = 0;

	for (size_t i = 0; r == 0 && i < sizeof(common) / sizeof(common[0]); i++)
		r = check_common(t, common[i].sequence, common[i].tag, common[i].n, err);
	return r;
}

struct frame_position {
	double depth;
	long frame;
};

static int by_depth(const void *a, const void *b)
{
	double x = ((const struct frame_position *)a)->depth, y = ((const struct frame_position *)b)->depth;

	return (x > y) - (x < y);
}

/* Read the positions of all frames and sort the frames along the normal. */
static int read_frames(struct tomo_object *t, struct err *err)
{
	size_t n = (size_t)t->info.frames;
	double(*position)[3] = malloc(n * sizeof(*position)), from[3];
	struct frame_position *order = malloc(n * sizeof(*order));
	int r = 0;

	if (!position || !order) {
		r = err_set(err, ENOMEM, "no memory for %zu frames", n);
		goto out;
	}
	for (size_t i = 0; r == 0 && i < n; i++) {
		r = read_doubles(t, (long)i, TAG_PLANE_POSITION_SEQUENCE, TAG_IMAGE_POSITION_PATIENT, position[i], 3, err);
		order[i] = (struct frame_position){r == 0 ? dot(position[i], t->normal) : 0, (long)i};
	}
	if (r < 0)
		goto out;
	if (order[n - 1].depth < order[0].depth) {
		for (int c = 0; c < 3; c++)
			t->normal[c] = -t->normal[c];
		for (size_t i = 0; i < n; i++)
			order[i].depth = -order[i].depth;
	}
	qsort(order, n, sizeof(*order), by_depth);
	memcpy(t->corner, position[order[0].frame], sizeof(t->corner));
	for (size_t k = 0; r == 0 && k < n; k++) {
		t->frame[k] = order[k].frame;
		for (int c = 0; c < 3; c++)
			from[c] = position[t->frame[k]][c] - t->corner[c];
		t->depth[k] = dot(from, t->normal);
		if (fabs(dot(from, t->across)) > IN_PLANE_TOLERANCE || fabs(dot(from, t->down)) > IN_PLANE_TOLERANCE)
			r = err_set(err, EBADMSG, "frame %ld is shifted by %g and %g mm against the lowest one", t->frame[k] + 1,
				    dot(from, t->across), dot(from, t->down));
		else if (k > 0 && !(t->depth[k] > t->depth[k - 1]))
			r = err_set(err, EBADMSG, "frames %ld and %ld have the same position", t->frame[k - 1] + 1,
				    t->frame[k] + 1);
	}
out:
	free(position);
	free(order);
	return r;
}

/* Read the geometry and the conversion of an object with functional groups. */
static int read_groups(struct tomo_object *t, struct err *err)
{
	long padding;
	int r;

	if (!dicom_has(dicom_root(t->file), TAG_SHARED_FUNCTIONAL_GROUPS_SEQUENCE))
		return err_set(err, EBADMSG, "no (5200,9229): not an object with functional groups, as a tomosynthesis image is");
	r = read_plane(t, err);
	if (r == 0)
		r = read_values(t, err);
	if (r == 0)
		r = check_frames(t, err);
	if (r == 0)
		r = read_frames(t, err);
	if (r == 0)
		read_frame_window(t);
	if (r == 0 && t->offset < 0 && !t->info.is_signed &&
	    dicom_get_int(dicom_root(t->file), TAG_PIXEL_PADDING_VALUE, 0, &padding, NULL) == 1)
		t->padding = padding;
	return r;
}

/* Take the order of an SCO object's slices, and its window if it is for values of as many bits. */
static void read_slices(struct tomo_object *t)
{
	const struct dicom_item *root = dicom_root(t->file);
	long bits;

	t->slope = 1;
	for (long k = 0; k < t->info.frames; k++) {
		t->frame[k] = k;
		t->depth[k] = (double)k;
	}
	if (dicom_get_int(root, TAG_BITS_STORED, 0, &bits, NULL) == 1 && bits == t->info.bits_stored)
		read_window(t, root, 1, 0);
}

static bool has_sco(const struct dicom_item *root, enum sco_content content)
{
	char sop_class[DICOM_UID_SIZE] = "", modality[17] = "";

	dicom_get_text(root, TAG_SOP_CLASS_UID, sop_class, sizeof(sop_class), NULL);
	dicom_get_text(root, TAG_MODALITY, modality, sizeof(modality), NULL);
	return !strcmp(sop_class, CLASS_SECONDARY_CAPTURE) && !strcmp(modality, "MG") && sco_content_of(root) == content;
}

bool tomo_object_is(const struct dicom_item *root)
{
	char sop_class[DICOM_UID_SIZE] = "";

	dicom_get_text(root, TAG_SOP_CLASS_UID, sop_class, sizeof(sop_class), NULL);
	return !strcmp(sop_class, CLASS_TOMOSYNTHESIS) || has_sco(root, SCO_SLICES);
}

/* Find the frames: those of the object itself, or those of an SCO object in the highest resolution that it has. */
static int open_frames(struct tomo_object *t, struct err *err)
{
	const struct dicom_item *root = dicom_root(t->file);
	int r;

	if (has_sco(root, SCO_PROJECTIONS))
		return err_set(err, ENOTSUP, "a Hologic SCO object with projections, not slices: reconstruct them first");
	if (!has_sco(root, SCO_SLICES))
		return dicom_pixels_info(t->file, &t->info, err);
	t->lower = !sco_has(root, SCO_FULL) && sco_has(root, SCO_LOWER);
	r = sco_open(t->file, t->lower ? SCO_LOWER : SCO_FULL, &t->sco, err);
	if (r == 0)
		t->info = *sco_info(t->sco);
	return r;
}

int tomo_object_open(const char *path, struct tomo_object **ret_object, struct err *err)
{
	struct tomo_object *t = calloc(1, sizeof(*t));
	int r = t ? dicom_open(path, &t->file, err) : err_set(err, ENOMEM, "no memory for an object");

	if (r == 0)
		r = open_frames(t, err);
	if (r < 0)
		goto out;
	t->window[0] = t->window[1] = NAN;
	t->padding = -1;
	dicom_get_text(dicom_root(t->file), TAG_SOP_INSTANCE_UID, t->sop_instance, sizeof(t->sop_instance), NULL);
	dicom_get_text(dicom_root(t->file), TAG_FRAME_OF_REFERENCE_UID, t->frame_of_reference, sizeof(t->frame_of_reference),
		       NULL);
	t->depth = calloc((size_t)t->info.frames, sizeof(*t->depth));
	t->frame = calloc((size_t)t->info.frames, sizeof(*t->frame));
	t->stored = malloc((size_t)t->info.rows * (size_t)t->info.columns * sizeof(*t->stored));
	t->value = malloc(STORED_VALUES * sizeof(*t->value));
	if (!t->depth || !t->frame || !t->stored || !t->value)
		r = err_set(err, ENOMEM, "no memory for a frame of %ld x %ld", t->info.columns, t->info.rows);
	else if (t->sco)
		read_slices(t);
	else
		r = read_groups(t, err);
out:
	if (r < 0) {
		tomo_object_close(t);
		return r;
	}
	*ret_object = t;
	return 0;
}

void tomo_object_place(struct tomo_object *t, const double voxel[3], const double across[3], const double down[3],
		       const double normal[3])
{
	memcpy(t->spacing, voxel, sizeof(t->spacing));
	memcpy(t->across, across, sizeof(t->across));
	memcpy(t->down, down, sizeof(t->down));
	memcpy(t->normal, normal, sizeof(t->normal));
	t->thickness = voxel[2];
	for (long k = 0; k < t->info.frames; k++)
		t->depth[k] = (double)k * voxel[2];
}

struct tomo_object *tomo_object_close(struct tomo_object *t)
{
	if (t) {
		sco_close(t->sco);
		dicom_close(t->file);
		free(t->depth);
		free(t->frame);
		free(t->stored);
		free(t->value);
		free(t);
	}
	return NULL;
}

/* Convert a stored two's complement value of `bits` bits, of which the higher bits are 0, to a signed number. */
static int signed_value(uint16_t stored, int bits)
{
	int sign = 1 << (bits - 1);

	return (stored ^ sign) - sign;
}

/* Compute what each stored value stands for: a frame has many times more pixels. */
static void fill_values(const struct tomo_object *t)
{
	for (int i = 0; i < STORED_VALUES; i++) {
		int number = t->info.is_signed ? signed_value((uint16_t)i, t->info.bits_stored) : i;

		t->value[i] = i == t->padding ? t->padded : (float)(t->offset + t->slope * number);
	}
}

int tomo_object_slice(struct tomo_object *t, long k, float *ret_values, struct err *err)
{
	size_t n = (size_t)t->info.rows * (size_t)t->info.columns;
	int r = t->sco ? sco_read_frame(t->sco, t->frame[k], t->stored, err)
		       : dicom_read_frame(t->file, t->frame[k], t->stored, err);

	if (r < 0)
		return r;
	fill_values(t);
	for (size_t i = 0; i < n; i++)
		ret_values[i] = t->value[t->stored[i]];
	return 0;
}

void tomo_object_locate(const struct tomo_object *t, const double patient[3], double ret_at[3])
{
	double from[3] = {patient[0] - t->corner[0], patient[1] - t->corner[1], patient[2] - t->corner[2]};

	ret_at[0] = dot(from, t->across) / t->spacing[0];
	ret_at[1] = dot(from, t->down) / t->spacing[1];
	ret_at[2] = dot(from, t->normal);
}
