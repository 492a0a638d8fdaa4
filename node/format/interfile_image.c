/* SPDX-License-Identifier: Apache-2.0 */
/* interfile_image.c - headers of PET images, as STIR writes them: voxels, their spacing, and the centre of the first voxel. */
#include <errno.h>
#include <stdio.h>

#include "node/format/interfile_internal.h"

static int read_keys(struct interfile_parser *p)
{
	const struct interfile_line *line;
	struct interfile *f = p->f;
	int dims, rc = interfile_dimensions(p, 3, 3, "an image has 3", &dims);

	if (rc < 0)
		return rc;
	for (int c = 0; c < 3; c++) {
		rc = interfile_side(p, c + 1, INTERFILE_SIDE_MAX, &f->n[c]);
		if (rc < 0)
			return rc;
		rc = interfile_line_number(&p->lines, "scalingfactor(mm/pixel)", c + 1, INTERFILE_TINY, INTERFILE_LENGTH_MAX,
					   &f->spacing[c], p->err);
		if (rc <= 0)
			return rc < 0 ? rc : err_set(p->err, EBADMSG, "\"scaling factor (mm/pixel) [%d]\" is missing", c + 1);
		f->first[c] = c < 2 ? -(f->n[c] / 2) * f->spacing[c] : 0; /* integer division: STIR's index 0 */
		rc = interfile_line_number(&p->lines, "firstpixeloffset(mm)", c + 1, -INTERFILE_LENGTH_MAX, INTERFILE_LENGTH_MAX,
					   &f->first[c], p->err);
		if (rc < 0)
			return rc;
	}
	rc = interfile_line_find(&p->lines, "$originoffset(mm)", 1, &line, p->err);
	f->of_table = rc > 0;
	return rc < 0 ? rc : 0;
}

static void write_keys(struct interfile_writer *w, const struct interfile *f)
{
	interfile_put(w, "number of dimensions := 3\n");
	for (int c = 0; c < 3; c++) {
		char key[60];

		interfile_put(w, "matrix axis label [%d] := %c\n!matrix size [%d] := %d\n", c + 1, "xyz"[c], c + 1, f->n[c]);
		snprintf(key, sizeof(key), "scaling factor (mm/pixel) [%d]", c + 1);
		interfile_put_number(w, key, f->spacing[c]);
		snprintf(key, sizeof(key), "first pixel offset (mm) [%d]", c + 1);
		interfile_put_number(w, key, f->first[c]);
	}
}

static void find_shape(const struct interfile *f, size_t *ret_planes, size_t *ret_values)
{
	*ret_planes = (size_t)f->n[2];
	*ret_values = (size_t)f->n[0] * (size_t)f->n[1];
}

static void convert_slice(const struct interfile *f, const uint8_t *bytes, size_t plane, float *ret_values)
{
	size_t n = (size_t)f->n[0] * (size_t)f->n[1];

	interfile_convert(f, bytes + plane * n * (size_t)f->bytes, n, ret_values);
}

static void describe_extent(const struct interfile *f, char *ret_text, size_t size)
{
	snprintf(ret_text, size, "%d x %d x %d voxels of %d bytes", f->n[0], f->n[1], f->n[2], f->bytes);
}

const struct interfile_type interfile_image = {
	.title = "images",
	.modality = "PT",
	.data_type = "PET",
	.pet_data = "image",
	.general_keys = "!version of keys := STIR3.0\n!GENERAL DATA :=\n!GENERAL IMAGE DATA :=\n",
	.study_keys = "!PET STUDY (General) :=\n!PET data type := Image\nprocess status := Reconstructed\n",
	.read = read_keys,
	.write = write_keys,
	.shape = find_shape,
	.extent = describe_extent,
	.plane = convert_slice,
};
