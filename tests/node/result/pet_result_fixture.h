/* SPDX-License-Identifier: Apache-2.0 */
/* A small PET acquisition without sinograms, and functions that read the written series with dicom/. Number and size of the
 * voxels differ between the axes, and all voxels have different values. */
#ifndef TOMONODE_TESTS_NODE_PET_RESULT_FIXTURE_H
#define TOMONODE_TESTS_NODE_PET_RESULT_FIXTURE_H

#include <dirent.h>

#include "dicom/pixels/pixels.h"
#include "dicom/pixels/start.h"
#include "node/result/pet_result_internal.h"
#include "node/sinogram/pet_source.h"
#include "tests/test.h"

#define NX 7
#define NY 5
#define NZ 4
#define N_VOXELS (NX * NY * NZ)

#define HALF_LIFE 6586.2 /* s, F-18 */
#define DURATION 600.0
#define CALIBRATION 1234.5

static char folder[64];

static inline const char *path_of(const char *name)
{
	return test_path(folder, name);
}

static inline int entries(void)
{
	DIR *d = opendir(folder);
	int n = -2; /* . and .. */

	while (d && readdir(d))
		n++;
	closedir(d);
	return n;
}

static inline void clean(void)
{
	DIR *d = opendir(folder);
	struct dirent *e;

	while (d && (e = readdir(d)))
		if (unlinkat(dirfd(d), e->d_name, 0) < 0 && strcmp(e->d_name, ".") && strcmp(e->d_name, ".."))
			unlinkat(dirfd(d), e->d_name, AT_REMOVEDIR);
	closedir(d);
}

static inline int start(void **state)
{
	struct err err = {0};

	test_folder(folder, sizeof(folder));
	return dicom_start(&err) == 0 ? 0 : -1;
}

static inline int stop(void **state)
{
	clean();
	dicom_stop();
	return rmdir(folder);
}

static inline void put(struct dicom_item *item, uint32_t tag, const char *text)
{
	struct err err = {0};

	assert_done(dicom_put_text(item, tag, text, &err), &err);
}

/* ---- input ---- */

struct input {
	struct sinogram s;
	struct dicom_file *files[3];
	size_t chunk[1];
	struct michelogram_segment segment;
	struct protocol_conf protocol;
	struct pet_plan plan;
	struct pet_result_info info;
	float volume[N_VOXELS];
};

TEST_GIVES_BACK(dicom_close);
TEST_GIVES_BACK(series_report_clear);

static inline struct dicom_file *source_file(int i)
{
	struct dicom_file *file = NULL;
	struct dicom_item *root, *item;
	struct err err = {0};
	char uid[DICOM_UID_SIZE];
	static const struct {
		uint32_t tag;
		const char *text;
	} texts[] = {
		{TAG_SPECIFIC_CHARACTER_SET, "ISO_IR 192"},
		{TAG_PATIENT_NAME, "M\xc3\xbcller^Erika"},
		{TAG_PATIENT_ID, "P-1"},
		{TAG_PATIENT_BIRTH_DATE, "19600229"},
		{TAG_STUDY_DATE, "20260629"},
		{TAG_STUDY_TIME, "080000"},
		{TAG_ACCESSION_NUMBER, "A-77"},
		{TAG_PATIENT_WEIGHT, "70"},
		{TAG_STUDY_INSTANCE_UID, "1.2.3.1"},
		{TAG_SERIES_INSTANCE_UID, "1.2.3.2"},
		{TAG_FRAME_OF_REFERENCE_UID, "1.2.3.3"},
		{TAG_SERIES_NUMBER, "4"},
		{TAG_SERIES_DATE, "20260629"},
		{TAG_SERIES_TIME, "080500"},
		{TAG_MANUFACTURER, "Bench"},
		{TAG_MANUFACTURER_MODEL_NAME, "Ring"},
		{TAG_BODY_PART_EXAMINED, "BRAIN"},
		{TAG_RANDOMS_CORRECTION_METHOD, "DLYD"},
		{TAG_ATTENUATION_CORRECTION_METHOD, "measured, by the source"},
	};

	snprintf(uid, sizeof(uid), "1.2.3.4.%d", i + 1);
	assert_int_equal(dicom_new(CLASS_RAW_DATA, uid, &file, &err), 0);
	root = dicom_root(file);
	for (size_t k = 0; k < sizeof(texts) / sizeof(texts[0]); k++)
		put(root, texts[k].tag, texts[k].text);
	item = dicom_add_item(root, TAG_RADIOPHARMACEUTICAL_INFORMATION_SEQUENCE, &err);
	assert_non_null(item);
	put(item, TAG_RADIOPHARMACEUTICAL_START_TIME, "070000");
	put(item, TAG_RADIONUCLIDE_TOTAL_DOSE, "370000000");
	put(item, TAG_RADIONUCLIDE_HALF_LIFE, "6586.2");
	assert_int_equal(dicom_add_code(item, DICOM_TAG(0x0054, 0x0300), "77004003", "SCT", "^18^Fluorine", &err), 0);
	test_later(give_back_dicom_close, file);
	return file;
}

/* Axes of the scanner in the patient (LPS), from their definitions: x right, y down, z into the gantry, seen from the foot of the
 * bed. */
static const struct position {
	const char *name;
	double axis[3][3];
} positions[] = {
	{"HFS", {{1, 0, 0}, {0, 1, 0}, {0, 0, 1}}},	{"HFP", {{-1, 0, 0}, {0, -1, 0}, {0, 0, 1}}},
	{"FFS", {{-1, 0, 0}, {0, 1, 0}, {0, 0, -1}}},	{"FFP", {{1, 0, 0}, {0, -1, 0}, {0, 0, -1}}},
	{"HFDR", {{0, 1, 0}, {-1, 0, 0}, {0, 0, 1}}},	{"HFDL", {{0, -1, 0}, {1, 0, 0}, {0, 0, 1}}},
	{"FFDR", {{0, -1, 0}, {-1, 0, 0}, {0, 0, -1}}}, {"FFDL", {{0, 1, 0}, {1, 0, 0}, {0, 0, -1}}},
};
#define N_POSITIONS (sizeof(positions) / sizeof(positions[0]))

/* An empty folder, and what is written into it. */
static inline void input_make(struct input *in)
{
	clean();
	*in = (struct input){
		.segment = {0, 0, NZ},
		.chunk = {1},
		.protocol = {.name = "pet-test",
			     .kind = KIND_PET,
			     .pet = {.algorithm = ALGORITHM_OSEM,
				     .iterations = 3,
				     .subsets = 7,
				     .projector = PROJECTION_PATHS,
				     .postfilter = 4}},
		.plan = {.grid = {{NX, NY, NZ}, {2, 2.5, 3.27}, {-7, -6.25, -6.54}, true},
			 .fov_radius = 8,
			 .subsets = 7,
			 .iterations = 3},
	};
	for (int i = 0; i < 3; i++)
		in->files[i] = source_file(i);
	in->s.source = &pet_source_objects;
	in->s.n_files = 3;
	in->s.files = in->files;
	in->s.part[SINOGRAM_EMISSION] = (struct sinogram_part){.present = true, .n_chunks = 1, .file = in->chunk};
	in->s.part[SINOGRAM_EMISSION].header.m = (struct michelogram){{2, 32, 6.54, 100, 0, 2}, 9, 8, 0, true, 1, &in->segment};
	in->s.part[SINOGRAM_EMISSION].header.duration = NAN;
	in->s.facts = (struct pet_facts){.weight = 70,
					 .size = NAN,
					 .half_life = HALF_LIFE,
					 .dose = 370e6,
					 .injected = "070000",
					 .series_date = "20260629",
					 .series_time = "080500",
					 .acquisition_date = "20260629",
					 .acquisition_time = "081000.5",
					 .duration = DURATION,
					 .calibration = CALIBRATION,
					 .corrected = "ATTN\\NORM\\DTIM",
					 .patient_position = "HFS"};
	memcpy(in->s.axis, positions[0].axis, sizeof(in->s.axis));
	memcpy(in->s.centre, (double[]){11, -7.5, 123.25}, sizeof(in->s.centre));
	in->info = (struct pet_result_info){
		.protocol = &in->protocol, .plan = &in->plan, .device = "cpu (test)", .now = 1782726000.25};
	for (int i = 0; i < N_VOXELS; i++) /* all voxels have different values */
		in->volume[i] = (float)(0.001 * (1 + i) * (1 + i / (NX * NY)));
}

/* ---- written images ---- */

struct image {
	struct dicom_file *file;
	struct dicom_item *root;
	uint16_t values[N_VOXELS];
	long rows, columns;
	double slope, position[3], row[3], column[3], spacing[2];
	bool is_signed;
};

static inline double number(const struct dicom_item *item, uint32_t tag, unsigned index)
{
	struct err err = {0};
	double v = NAN;

	if (dicom_get_double(item, tag, index, &v, &err) != 1)
		fail_msg("%08x: %s", tag, err.msg);
	return v;
}

static inline const char *text(const struct dicom_item *item, uint32_t tag)
{
	static char ring[4][1100];
	static int k;

	k = (k + 1) % 4;
	if (dicom_get_text(item, tag, ring[k], sizeof(ring[k]), NULL) < 0)
		snprintf(ring[k], sizeof(ring[k]), "(unreadable)");
	return ring[k];
}

static inline struct image image_open(const char *name)
{
	struct dicom_pixel_info info;
	struct err err = {0};
	struct image im = {0};

	if (dicom_open(path_of(name), &im.file, &err) < 0 || dicom_pixels_info(im.file, &info, &err) < 0 ||
	    dicom_read_frame(im.file, 0, im.values, &err) < 0)
		fail_msg("%s: %s", name, err.msg);
	test_later(give_back_dicom_close, im.file);
	im.root = dicom_root(im.file);
	im.rows = info.rows;
	im.columns = info.columns;
	im.is_signed = info.is_signed;
	im.slope = number(im.root, TAG_RESCALE_SLOPE, 0);
	for (unsigned c = 0; c < 3; c++) {
		im.position[c] = number(im.root, TAG_IMAGE_POSITION_PATIENT, c);
		im.row[c] = number(im.root, TAG_IMAGE_ORIENTATION_PATIENT, c);
		im.column[c] = number(im.root, TAG_IMAGE_ORIENTATION_PATIENT, 3 + c);
	}
	im.spacing[0] = number(im.root, TAG_PIXEL_SPACING, 0);
	im.spacing[1] = number(im.root, TAG_PIXEL_SPACING, 1);
	return im;
}

static inline double value_at(const struct image *im, long i, long j)
{
	uint16_t v = im->values[i * im->columns + j];

	return (im->is_signed ? (double)(int16_t)v : v) * im->slope;
}

/* Images of these volumes in the folder. What the report holds is freed when the test ends. */
static inline struct series_report write_images(struct input *in, const float *volumes)
{
	struct series_report report;
	struct err err = {0};

	assert_done(pet_result_write(&in->s, &in->info, volumes, folder, &report, &err), &err);
	test_later(give_back_series_report_clear, take_copy(&report, sizeof(report)));
	return report;
}

static inline struct series_report write_series(struct input *in)
{
	struct series_report report;

	clean();
	report = write_images(in, in->volume);
	assert_int_equal(report.n, NZ);
	assert_int_equal(entries(), NZ);
	return report;
}

/* Compare each pixel of the image with the voxel at its position, which is computed only from attributes of the image. Returns
 * the number of pixels. */
static inline int compare_places(const struct input *in, const struct image *im, double factor)
{
	const struct grid *g = &in->plan.grid;
	int n = 0;

	for (long i = 0; i < im->rows; i++)
		for (long j = 0; j < im->columns; j++, n++) {
			int at[3];
			double want;

			for (int a = 0; a < 3; a++) {
				double v = 0;

				for (int c = 0; c < 3; c++) {
					double p = im->position[c] + (double)j * im->spacing[1] * im->row[c] +
						   (double)i * im->spacing[0] * im->column[c];

					v += (p - in->s.centre[c]) * in->s.axis[a][c];
				}
				v = (v - g->lo[a]) / g->h[a] - 0.5;
				at[a] = (int)lround(v);
				assert_true(fabs(v - at[a]) < 1e-6);
				assert_in_range(at[a], 0, g->n[a] - 1);
			}
			want = factor * in->volume[(at[2] * NY + at[1]) * NX + at[0]];
			assert_true(fabs(value_at(im, i, j) - want) <= 0.5000001 * im->slope);
		}
	return n;
}

#endif
