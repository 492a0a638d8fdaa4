/* SPDX-License-Identifier: Apache-2.0 */
/* export_image.c - see node/tools/export_image.h. A NIfTI-1 file is a header of 348 bytes, four bytes that state that there are
 * no extensions, and the values (https://nifti.nimh.nih.gov/nifti-1); MetaImage: itk.org/Wiki/ITK/MetaIO/Documentation; .npy:
 * numpy.org/doc/stable/reference/generated/numpy.lib.format.html. */
#include "node/tools/export_image.h"

#include <errno.h>
#include <jansson.h>
#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "dicom/object/attribute.h"
#include "node/base/folder.h"
#include "node/base/version.h"
#include "node/format/nifti.h"
#include "node/format/packed_file.h"
#include "node/tools/export_format.h"

static int write_values(const struct image_series *s, struct packed_file *p, struct err *err)
{
	size_t bytes = (size_t)s->n[0] * (size_t)s->n[1] * sizeof(float);
	const float *values = NULL;
	int rc = 0;

	for (int i = 0; i < s->n_images; i++)
		for (int k = 0; k < s->n[2] && rc == 0; k++) {
			rc = image_series_slice(s, i, k, &values, err);
			if (rc == 0)
				rc = packed_file_write(p, values, bytes, err);
		}
	return rc;
}

/* Write all values behind what f has; f NULL: only count. ret_bytes: size of what is stored; may be NULL. */
static int store_values(const struct image_series *s, struct atomic_file *f, enum packing packing, uint64_t *ret_bytes,
			struct err *err)
{
	struct packed_file *p = NULL;
	int rc = packed_file_open(f, packing, &p, err);

	if (rc == 0)
		rc = write_values(s, p, err);
	if (rc == 0)
		rc = packed_file_finish(p, ret_bytes, err);
	packed_file_free(p);
	return rc;
}

/* Open a file with this text. */
static int open_with(const char *path, const char *text, size_t n, struct atomic_file **ret_file, struct err *err)
{
	int rc = atomic_file_open(path, ret_file, err);

	return rc < 0 ? rc : atomic_file_write(*ret_file, text, n, err);
}

/* Finish the files of one image, the header last; NULL: not needed. rc < 0: abort them. */
static int close_all(struct atomic_file **files, size_t n, int rc, struct err *err)
{
	size_t used = 0;

	for (size_t i = 0; i < n; i++)
		if (files[i])
			files[used++] = files[i];
	if (rc == 0)
		return atomic_files_close(files, used, err);
	for (size_t i = 0; i < used; i++)
		atomic_file_abort(files[i]);
	return rc;
}

/* ---- NIfTI ---- */

#define TIME_TOLERANCE 1e-3 /* s */

/* Time frames or gates, also if there is one. */
static bool is_multiple(const struct image_series *s)
{
	return !strcmp(s->type, "DYNAMIC") || !strcmp(s->type, "GATED");
}

static void set_int16(uint8_t *header, int at, int value)
{
	int16_t v = (int16_t)value;

	memcpy(header + at, &v, sizeof(v));
}

static void set_float(uint8_t *header, int at, double value)
{
	float v = (float)value;

	memcpy(header + at, &v, sizeof(v));
}

/* Whether the images follow each other, all with the same duration. */
static bool is_equidistant(const struct image_series *s)
{
	double step = s->time[0].duration;

	for (int i = 0; i < s->n_images; i++)
		if (!(fabs(s->time[i].duration - step) <= TIME_TOLERANCE &&
		      fabs(s->time[i].start - s->time[0].start - i * step) <= TIME_TOLERANCE)) /* false for NaN */
			return false;
	return true;
}

/* Describe the fourth dimension, time. */
static void fill_time(const struct image_series *s, uint8_t *header)
{
	set_int16(header, NIFTI_DIM, 4);
	set_int16(header, NIFTI_DIM + 8, s->n_images);
	if (!is_equidistant(s))
		return;
	set_float(header, NIFTI_PIXDIM + 16, s->time[0].duration);
	set_float(header, NIFTI_TOFFSET, s->time[0].start);
	header[NIFTI_XYZT_UNITS] |= NIFTI_SECONDS;
}

static void fill_nifti(const struct image_series *s, uint8_t header[NIFTI_HEADER + 4])
{
	const double *axis[3] = {s->across, s->down, s->normal};
	int32_t size = NIFTI_HEADER;

	memset(header, 0, NIFTI_HEADER + 4);
	memcpy(header, &size, sizeof(size));
	set_int16(header, NIFTI_DIM, 3);
	for (int a = 0; a < 3; a++) {
		set_int16(header, NIFTI_DIM + 2 * (a + 1), s->n[a]);
		set_float(header, NIFTI_PIXDIM + 4 * (a + 1), s->spacing[a]);
	}
	for (int a = 4; a < 8; a++)
		set_int16(header, NIFTI_DIM + 2 * a, 1);
	set_float(header, NIFTI_PIXDIM, 1);
	set_int16(header, NIFTI_DATATYPE, NIFTI_FLOAT32);
	set_int16(header, NIFTI_BITPIX, 32);
	set_float(header, NIFTI_VOX_OFFSET, NIFTI_HEADER + 4);
	set_float(header, NIFTI_SCL_SLOPE, 1);
	header[NIFTI_XYZT_UNITS] = NIFTI_MILLIMETRES;
	if (s->window[1] > s->window[0]) { /* false for NaN */
		set_float(header, NIFTI_CAL_MIN, s->window[0]);
		set_float(header, NIFTI_CAL_MAX, s->window[1]);
	}
	snprintf((char *)header + NIFTI_DESCRIP, 80, "tomonode %s, units %s", TOMONODE_VERSION, s->units[0] ? s->units : "none");
	set_int16(header, NIFTI_SFORM_CODE, NIFTI_SCANNER_ANATOMY);
	for (int c = 0; c < 3; c++) {
		double sign = c < 2 ? -1 : 1; /* LPS to RAS: left and back become right and front */

		for (int a = 0; a < 3; a++)
			set_float(header, NIFTI_SROW + 16 * c + 4 * a, sign * axis[a][c] * s->spacing[a] + 0.0);
		set_float(header, NIFTI_SROW + 16 * c + 12, sign * s->corner[c] + 0.0);
	}
	memcpy(header + NIFTI_MAGIC, "n+1", 4);
	if (is_multiple(s))
		fill_time(s, header);
}

/* ---- times ---- */

/* Return an array with one number of each image, which is `at` bytes behind its struct image_time. */
static json_t *times_of(const struct image_series *s, size_t at)
{
	json_t *all = json_array();

	for (int i = 0; i < s->n_images; i++) {
		double value;

		memcpy(&value, (const char *)&s->time[i] + at, sizeof(value));
		json_array_append_new(all, isfinite(value) ? json_real(value) : json_null());
	}
	return all;
}

static json_t *describe_times(const struct image_series *s)
{
	json_t *start = times_of(s, offsetof(struct image_time, start)),
	       *duration = times_of(s, offsetof(struct image_time, duration));

	if (!strcmp(s->type, "DYNAMIC"))
		return json_pack("{s:s, s:s, s:o, s:o}", "SeriesType", s->type, "Units", s->units, "FrameTimesStart", start,
				 "FrameDuration", duration);
	return json_pack("{s:s, s:s, s:o, s:o, s:o}", "SeriesType", s->type, "Units", s->units, "TriggerTime", start, "FrameTime",
			 duration, "GateDuration", times_of(s, offsetof(struct image_time, live)));
}

/* Open the file of the times beside the image, and write them; of one image there is none: *ret_file stays NULL. */
static int write_times(const struct image_series *s, const char *path, struct atomic_file **ret_file, struct err *err)
{
	json_t *root = is_multiple(s) ? describe_times(s) : NULL;
	char *text = root ? json_dumps(root, JSON_INDENT(2)) : NULL, *name = root ? export_beside(path, ".json") : NULL;
	int rc = 0;

	if (is_multiple(s))
		rc = text && name ? open_with(name, text, strlen(text), ret_file, err)
				  : err_set(err, ENOMEM, "no memory for the times of %d images", s->n_images);
	json_decref(root);
	free(text);
	free(name);
	return rc;
}

/* Name the file of the image, with the ending `values` that of the values, and that of the times; NULL: no such file. */
static int name_image(struct export_job *j, const char *values, struct err *err)
{
	int rc = export_job_add(j, strdup(j->out), false, "", err);

	if (rc == 0 && values)
		rc = export_job_add(j, export_beside(j->out, values), false, "", err);
	if (rc == 0 && is_multiple(j->series))
		rc = export_job_add(j, export_beside(j->out, ".json"), false, "the times of the images", err);
	return rc;
}

int export_nifti(const struct image_series *s, const char *path, struct err *err)
{
	uint8_t header[NIFTI_HEADER + 4];
	struct atomic_file *f[2] = {NULL}; /* times, image */
	struct packed_file *p = NULL;
	enum packing packing = file_name_ends(path, ".gz") ? PACKING_GZIP : PACKING_NONE;
	int rc;

	if (s->n_images > INT16_MAX)
		return err_set(err, EFBIG, "%d images; NIfTI-1 allows at most %d", s->n_images, INT16_MAX);
	for (int a = 0; a < 3; a++)
		if (s->n[a] > INT16_MAX)
			return err_set(err, EFBIG, "%d voxels along an axis; NIfTI-1 allows at most %d", s->n[a], INT16_MAX);
	fill_nifti(s, header);
	rc = atomic_file_open(path, &f[1], err);
	if (rc == 0)
		rc = packed_file_open(f[1], packing, &p, err);
	if (rc == 0)
		rc = packed_file_write(p, header, sizeof(header), err);
	if (rc == 0)
		rc = write_values(s, p, err);
	if (rc == 0)
		rc = packed_file_finish(p, NULL, err);
	packed_file_free(p);
	if (rc == 0)
		rc = write_times(s, path, &f[0], err);
	return close_all(f, 2, rc, err);
}

static int name_nifti(struct export_job *j, struct err *err)
{
	return name_image(j, NULL, err);
}

static int write_nifti(struct export_job *j, struct err *err)
{
	return export_nifti(j->series, j->out, err);
}

const struct export_format export_format_nifti = {
	.name = "nifti",
	.ending = ".nii.gz",
	.endings = {".nii", ".nii.gz"},
	.help = ".nii, .nii.gz  NIfTI-1, float32, in real units, with the position in the patient (RAS). A dynamic or gated series\n"
		"      has four dimensions; its times are in a .json file beside it. A tomosynthesis is one Breast Tomosynthesis\n"
		"      Image, or a Hologic SCO object with slices, if the profile has sco = true.\n",
	.input = EXPORT_IMAGES,
	.name_files = name_nifti,
	.write = write_nifti,
};

/* ---- MetaImage ---- */

/* Append numbers with as many digits as are needed to read the same float64 again. */
static void put_numbers(FILE *f, const char *key, const double *values, int n)
{
	fprintf(f, "%s =", key);
	for (int i = 0; i < n; i++)
		fprintf(f, " %.17g", values[i] + 0.0); /* no -0 */
	fputc('\n', f);
}

/* Write the text of the header. data: name of the file of the values, "LOCAL": behind the header; bytes: their compressed size,
 * 0: not compressed. The axes of MetaImage are those of DICOM (LPS); the matrix has the direction of one axis after the other. */
static int describe_metaimage(const struct image_series *s, const char *data, uint64_t bytes, char **ret_text, size_t *ret_n,
			      struct err *err)
{
	bool steps = is_multiple(s) && is_equidistant(s);
	double spacing[4] = {s->spacing[0], s->spacing[1], s->spacing[2], steps ? s->time[0].duration : 1};
	double offset[4] = {s->corner[0], s->corner[1], s->corner[2], steps ? s->time[0].start : 0}, centre[4] = {0};
	const double *axis[3] = {s->across, s->down, s->normal};
	int n = is_multiple(s) ? 4 : 3;
	double matrix[16] = {0};
	FILE *f = open_memstream(ret_text, ret_n);

	if (!f)
		return err_set(err, ENOMEM, "no memory for a MetaImage header");
	for (int a = 0; a < 3; a++)
		memcpy(matrix + (size_t)(a * n), axis[a], 3 * sizeof(double));
	if (n == 4)
		matrix[15] = 1;
	fprintf(f,
		"ObjectType = Image\nNDims = %d\nComment = tomonode %s, units %s\nBinaryData = True\nBinaryDataByteOrderMSB = "
		"False\n",
		n, TOMONODE_VERSION, s->units[0] ? s->units : "none");
	fprintf(f, "CompressedData = %s\n", bytes ? "True" : "False");
	if (bytes)
		fprintf(f, "CompressedDataSize = %llu\n", (unsigned long long)bytes);
	put_numbers(f, "TransformMatrix", matrix, n * n);
	put_numbers(f, "Offset", offset, n);
	put_numbers(f, "CenterOfRotation", centre, n);
	put_numbers(f, "ElementSpacing", spacing, n);
	fprintf(f, "DimSize = %d %d %d", s->n[0], s->n[1], s->n[2]);
	if (n == 4)
		fprintf(f, " %d", s->n_images);
	fprintf(f, "\nElementType = MET_FLOAT\nElementDataFile = %s\n", data);
	if (fclose(f) == 0)
		return 0;
	free(*ret_text);
	*ret_text = NULL;
	return err_set(err, ENOMEM, "no memory for a MetaImage header");
}

/* Return the ending of the file of the values; NULL: they are behind the header. */
static const char *values_ending(const char *path, bool compress)
{
	return file_name_ends(path, ".mha") ? NULL : compress ? ".zraw" : ".raw";
}

int export_metaimage(const struct image_series *s, const char *path, bool compress, struct err *err)
{
	enum packing packing = compress ? PACKING_ZLIB : PACKING_NONE;
	struct atomic_file *f[3] = {NULL}; /* values, times, header */
	const char *ending = values_ending(path, compress);
	char *data = ending ? export_beside(path, ending) : NULL, *text = NULL;
	int rc = ending && !data ? err_set(err, ENOMEM, "no memory for the name of a file") : 0;
	uint64_t bytes = 0;
	size_t n = 0;

	if (rc == 0 && data) {
		rc = atomic_file_open(data, &f[0], err);
		if (rc == 0)
			rc = store_values(s, f[0], packing, &bytes, err);
	} else if (rc == 0 && compress) {
		/* compressed twice, because the size is in the header before the values */
		rc = store_values(s, NULL, packing, &bytes, err);
	}
	if (rc == 0)
		rc = describe_metaimage(s, data ? file_name(data) : "LOCAL", compress ? bytes : 0, &text, &n, err);
	if (rc == 0)
		rc = open_with(path, text, n, &f[2], err);
	if (rc == 0 && !data)
		rc = store_values(s, f[2], packing, NULL, err);
	if (rc == 0)
		rc = write_times(s, path, &f[1], err);
	free(data);
	free(text);
	return close_all(f, 3, rc, err);
}

static int name_metaimage(struct export_job *j, struct err *err)
{
	return name_image(j, values_ending(j->out, j->compress), err);
}

static int write_metaimage(struct export_job *j, struct err *err)
{
	return export_metaimage(j->series, j->out, j->compress, err);
}

const struct export_format export_format_metaimage = {
	.name = "metaimage",
	.ending = ".mha",
	.endings = {".mha", ".mhd"},
	.help = ".mha, .mhd  MetaImage, float32, with the position in the patient (LPS), else the same. The values of .mhd are in a\n"
		"      .raw file beside it, compressed in a .zraw file.\n",
	.input = EXPORT_IMAGES,
	.compressible = true,
	.name_files = name_metaimage,
	.write = write_metaimage,
};

/* ---- NumPy ---- */

enum { NPY_BEGIN = 10, NPY_ALIGN = 64, NPY_HEADER = 3 * NPY_ALIGN }; /* bytes before the text, and of all before the values */

static int name_numpy(struct export_job *j, struct err *err)
{
	return name_image(j, NULL, err);
}

static int write_numpy(struct export_job *j, struct err *err)
{
	const struct image_series *s = j->series;
	char header[NPY_HEADER + 1], images[16] = "";
	struct atomic_file *f[2] = {NULL}; /* times, values */
	int rc;

	if (is_multiple(s))
		snprintf(images, sizeof(images), "%d, ", s->n_images);
	memcpy(header, "\x93NUMPY\x01", 8); /* version 1.0 */
	header[8] = (char)(NPY_HEADER - NPY_BEGIN);
	header[9] = 0;
	rc = snprintf(header + NPY_BEGIN, sizeof(header) - NPY_BEGIN,
		      "{'descr': '<f4', 'fortran_order': False, 'shape': (%s%d, %d, %d), }", images, s->n[2], s->n[1], s->n[0]);
	memset(header + NPY_BEGIN + rc, ' ', (size_t)(NPY_HEADER - NPY_BEGIN - rc));
	header[NPY_HEADER - 1] = '\n';
	rc = open_with(j->out, header, NPY_HEADER, &f[1], err);
	if (rc == 0)
		rc = store_values(s, f[1], PACKING_NONE, NULL, err);
	if (rc == 0)
		rc = write_times(s, j->out, &f[0], err);
	return close_all(f, 2, rc, err);
}

const struct export_format export_format_numpy = {
	.name = "numpy",
	.ending = ".npy",
	.endings = {".npy"},
	.flat = true,
	.help = ".npy  an array of NumPy, float32 (slice, row, column), without the position in the patient; with time frames or\n"
		"      gates as a first axis, and their times in a .json file.\n",
	.input = EXPORT_IMAGES,
	.name_files = name_numpy,
	.write = write_numpy,
};
