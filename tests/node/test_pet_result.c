/* A PET series read back through dicom/: every voxel at its place in the patient, values to half a step, units and what they
 * take, UIDs, provenance, all or nothing. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "dicom/pixels.h"
#include "node/pet_result_parts.h"

#define NX 7
#define NY 5
#define NZ 4
#define N_VOXELS (NX * NY * NZ)

#define HALF_LIFE 6586.2 /* s, F-18 */
#define DURATION 600.0
#define CALIBRATION 1234.5

static char folder[64];

static const char *path_of(const char *name)
{
	static char path[4][256];
	static int k;

	k = (k + 1) % 4;
	snprintf(path[k], sizeof(path[k]), "%s/%s", folder, name);
	return path[k];
}

static int entries(void)
{
	DIR *d = opendir(folder);
	int n = -2; /* . and .. */

	while (d && readdir(d))
		n++;
	closedir(d);
	return n;
}

static void clean(void)
{
	DIR *d = opendir(folder);
	struct dirent *e;

	while (d && (e = readdir(d)))
		if (unlinkat(dirfd(d), e->d_name, 0) < 0 && strcmp(e->d_name, ".") && strcmp(e->d_name, ".."))
			unlinkat(dirfd(d), e->d_name, AT_REMOVEDIR);
	closedir(d);
}

static int start(void **state)
{
	struct err err = {0};

	(void)state;
	snprintf(folder, sizeof(folder), "/tmp/tomonode-test-XXXXXX");
	return mkdtemp(folder) && dicom_start(&err) == 0 ? 0 : -1;
}

static int stop(void **state)
{
	(void)state;
	clean();
	dicom_stop();
	return rmdir(folder);
}

static void put(struct dicom_item *item, uint32_t tag, const char *text)
{
	struct err err = {0};

	if (dicom_put_text(item, tag, text, &err) < 0)
		fail_msg("%s", err.msg);
}

/* ---- what goes in ---- */

struct input {
	struct sinogram s;
	struct dicom_file *files[3];
	size_t chunk[1];
	struct michelogram_segment segment;
	struct protocol_conf protocol;
	struct pet_plan plan;
	struct pet_report report;
	struct pet_result_info info;
	float volume[N_VOXELS];
};

static struct dicom_file *source_file(int i)
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
	return file;
}

/* Axes of the scanner in the patient (LPS), written down from the definitions: x right, y down, z into the gantry, for somebody
 * at the foot of the bed. */
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

static void input_make(struct input *in)
{
	*in = (struct input){
		.segment = {0, 0, NZ},
		.chunk = {1},
		.protocol = {.name = "pet-test",
			     .kind = KIND_PET,
			     .pet = {.algorithm = PET_OSEM,
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
	in->info = (struct pet_result_info){.protocol = &in->protocol,
					    .plan = &in->plan,
					    .report = &in->report,
					    .device = "cpu (test)",
					    .now = 1782726000.25};
	for (int i = 0; i < N_VOXELS; i++) /* no two alike */
		in->volume[i] = (float)(0.001 * (1 + i) * (1 + i / (NX * NY)));
}

static void input_clear(struct input *in)
{
	for (int i = 0; i < 3; i++)
		in->files[i] = dicom_close(in->files[i]);
	clean();
}

/* ---- what came out ---- */

struct image {
	struct dicom_file *file;
	struct dicom_item *root;
	uint16_t values[N_VOXELS];
	long rows, columns;
	double slope, position[3], row[3], column[3], spacing[2];
	bool is_signed;
};

static double number(const struct dicom_item *item, uint32_t tag, unsigned index)
{
	struct err err = {0};
	double v = NAN;

	if (dicom_get_double(item, tag, index, &v, &err) != 1)
		fail_msg("%08x: %s", tag, err.msg);
	return v;
}

static const char *text(const struct dicom_item *item, uint32_t tag)
{
	static char ring[4][1100];
	static int k;

	k = (k + 1) % 4;
	if (dicom_get_text(item, tag, ring[k], sizeof(ring[k]), NULL) < 0)
		snprintf(ring[k], sizeof(ring[k]), "(unreadable)");
	return ring[k];
}

static struct image image_open(const char *name)
{
	struct dicom_pixel_info info;
	struct err err = {0};
	struct image im = {0};

	if (dicom_open(path_of(name), &im.file, &err) < 0 || dicom_pixels_info(im.file, &info, &err) < 0 ||
	    dicom_read_frame(im.file, 0, im.values, &err) < 0)
		fail_msg("%s: %s", name, err.msg);
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

static double value_at(const struct image *im, long i, long j)
{
	uint16_t v = im->values[i * im->columns + j];

	return (im->is_signed ? (double)(int16_t)v : v) * im->slope;
}

static struct pet_result_report write_series(struct input *in)
{
	struct pet_result_report report;
	struct err err = {0};

	clean();
	if (pet_result_write(&in->s, &in->info, in->volume, folder, &report, &err) < 0)
		fail_msg("%s", err.msg);
	assert_int_equal(report.n, NZ);
	assert_int_equal(entries(), NZ);
	return report;
}

/* Each pixel of the image, by its own attributes alone: from there into the scanner, into the volume. Returns how many. */
static int compare_places(const struct input *in, const struct image *im, double factor)
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

static void test_places(void **state)
{
	struct input in;

	(void)state;
	input_make(&in);
	for (size_t k = 0; k < N_POSITIONS; k++) {
		struct pet_result_report report;
		double before = INFINITY;
		int n = 0;

		snprintf(in.s.facts.patient_position, sizeof(in.s.facts.patient_position), "%s", positions[k].name);
		memcpy(in.s.axis, positions[k].axis, sizeof(in.s.axis));
		report = write_series(&in);
		for (int i = 0; i < report.n; i++) {
			struct image im = image_open(report.file[i]);
			double z = number(im.root, TAG_SLICE_LOCATION, 0);

			/* the usual orientation, and from the head down */
			assert_true(im.row[0] == 1 && im.column[1] == 1);
			assert_true(fabs(z - im.position[2]) < 1e-9);
			assert_true(i == 0 || fabs(before - z - 3.27) < 1e-9);
			before = z;
			assert_int_equal(number(im.root, TAG_INSTANCE_NUMBER, 0), i + 1);
			assert_int_equal(number(im.root, TAG_IMAGE_INDEX, 0), i + 1);
			n += compare_places(&in, &im, report.factor);
			dicom_close(im.file);
		}
		assert_int_equal(n, N_VOXELS);
		pet_result_report_clear(&report);
	}
	input_clear(&in);
}

/* A patient who lies obliquely in the scanner's axes: positions and values all the same. */
static void test_tilted(void **state)
{
	double a = 0.2, c = cos(a), s = sin(a), tilted[3][3] = {{c, s, 0}, {-s, c, 0}, {0, 0, 1}};
	struct pet_result_report report;
	struct input in;

	(void)state;
	input_make(&in);
	memcpy(in.s.axis, tilted, sizeof(tilted));
	report = write_series(&in);
	for (int i = 0; i < report.n; i++) {
		struct image im = image_open(report.file[i]);

		compare_places(&in, &im, report.factor);
		dicom_close(im.file);
	}
	pet_result_report_clear(&report);
	input_clear(&in);
}

/* Values of every size, negative ones, empty slices; plain and compressed. */
static void test_values(void **state)
{
	static const double sizes[] = {1e-9, 1, 3.7e4, 1e12};
	struct pet_result_report report;
	struct input in;

	(void)state;
	input_make(&in);
	for (size_t k = 0; k < sizeof(sizes) / sizeof(sizes[0]); k++)
		for (int negative = 0; negative < 2; negative++) {
			for (int i = 0; i < N_VOXELS; i++)
				in.volume[i] = i < NX * NY ? 0
							   : (float)(sizes[k] * (sin(i * 1.7) + (negative ? -0.3 : 1.001)) *
								     (1 + i / (NX * NY)));
			in.protocol.compression = negative ? COMPRESSION_JPEGLS : COMPRESSION_NONE;
			report = write_series(&in);
			for (int i = 0; i < report.n; i++) {
				struct image im = image_open(report.file[i]);

				assert_int_equal(im.is_signed, negative);
				compare_places(&in, &im, report.factor);
				assert_true(number(im.root, TAG_RESCALE_INTERCEPT, 0) == 0);
				assert_int_equal(number(im.root, TAG_BITS_STORED, 0), 16);
				dicom_close(im.file);
			}
			pet_result_report_clear(&report);
		}
	input_clear(&in);
}

/* ---- units ---- */

static bool has(const char *values, const char *term)
{
	const char *at = strstr(values, term);

	return at && (at[strlen(term)] == '\\' || !at[strlen(term)]);
}

/* Every combination of what quantity takes, and where it comes from. */
static void test_units(void **state)
{
	double lambda = log(2) / HALF_LIFE, decay = lambda * DURATION / (1 - exp(-lambda * DURATION));
	struct input in;

	(void)state;
	input_make(&in);
	for (unsigned bits = 0; bits < 128; bits++) {
		bool factor = bits & 1, half_life = bits & 2, attn = bits & 4, norm = bits & 8, attenuation = bits & 16,
		     normalisation = bits & 32, multiplicative = bits & 64;
		bool attenuated = attn || attenuation || multiplicative, normalised = norm || normalisation || multiplicative;
		bool twice = (attn && attenuation) || (norm && normalisation);
		bool bqml = factor && attenuated && normalised && !twice;
		struct pet_result_report report;
		struct image im;

		in.s.facts.calibration = factor ? CALIBRATION : NAN;
		in.s.facts.half_life = half_life ? HALF_LIFE : NAN;
		snprintf(in.s.facts.corrected, sizeof(in.s.facts.corrected), "%s%s%s", attn ? "ATTN" : "",
			 attn && norm ? "\\" : "", norm ? "NORM" : "");
		in.s.part[SINOGRAM_ATTENUATION].present = attenuation;
		in.s.part[SINOGRAM_NORMALISATION].present = normalisation;
		in.s.part[SINOGRAM_MULTIPLICATIVE].present = multiplicative;
		report = write_series(&in);
		im = image_open(report.file[0]);
		assert_string_equal(report.units, bqml ? "BQML" : "CNTS");
		assert_string_equal(text(im.root, TAG_UNITS), report.units);
		assert_string_equal(text(im.root, TAG_CORRECTED_IMAGE), report.corrected);
		assert_int_equal(has(report.corrected, "ATTN"), attenuated);
		assert_int_equal(has(report.corrected, "NORM"), normalised);
		assert_int_equal(has(report.corrected, "DCAL"), bqml);
		assert_int_equal(has(report.corrected, "DECY"), bqml && half_life);
		assert_false(has(report.corrected, "SCAT") || has(report.corrected, "RAN"));
		assert_string_equal(text(im.root, TAG_DECAY_CORRECTION), bqml && half_life ? "START" : "NONE");
		assert_int_equal(dicom_has(im.root, TAG_DECAY_FACTOR), bqml && half_life);
		assert_int_equal(dicom_has(im.root, TAG_DOSE_CALIBRATION_FACTOR), bqml);
		assert_true(fabs(report.factor / (!bqml ? 1 : CALIBRATION / DURATION * (half_life ? decay : 1)) - 1) < 1e-9);
		assert_true(fabs(number(im.root, TAG_FRAME_REFERENCE_TIME, 0) -
				 1000 * (half_life ? log(decay) / lambda : DURATION / 2)) < 1e-3);
		assert_int_equal(strstr(report.warnings, "Not in Bq/ml") != NULL, !bqml);
		assert_int_equal(strstr(report.warnings, "No SUV") != NULL, !half_life);
		assert_non_null(strstr(text(im.root, TAG_DERIVATION_DESCRIPTION), report.warnings));
		compare_places(&in, &im, report.factor);
		dicom_close(im.file);
		pet_result_report_clear(&report);
	}
	input_clear(&in);
}

/* Randoms and scatter in the model; a scanner's calibration; data that come corrected for decay; no weight. */
static void test_units_further(void **state)
{
	struct scanner_conf scanner = {.name = "bench", .calibration = 10};
	struct pet_result_report report;
	struct err err = {0};
	struct input in;
	struct image im;

	(void)state;
	input_make(&in);
	in.s.part[SINOGRAM_ADDITIVE].present = true;
	in.s.scanner = &scanner;
	in.s.facts.calibration = NAN;
	in.s.facts.weight = NAN;
	report = write_series(&in);
	im = image_open(report.file[0]);
	assert_string_equal(report.corrected, "ATTN\\NORM\\DTIM\\RAN\\SCAT\\RADL\\DCAL\\DECY");
	assert_true(number(im.root, TAG_DOSE_CALIBRATION_FACTOR, 0) == 10);
	assert_string_equal(report.warnings, "No SUV can be computed: not in the data: patient's weight.");
	assert_string_equal(text(im.root, TAG_RANDOMS_CORRECTION_METHOD), "DLYD");
	assert_string_equal(text(im.root, TAG_ATTENUATION_CORRECTION_METHOD), "measured, by the source");
	assert_string_equal(text(im.root, TAG_SCATTER_CORRECTION_METHOD), "background in the system model");
	dicom_close(im.file);
	pet_result_report_clear(&report);

	snprintf(in.s.facts.corrected, sizeof(in.s.facts.corrected), "ATTN\\NORM\\DECY");
	assert_int_equal(pet_result_check(&in.s, &err), -EBADMSG);
	assert_non_null(strstr(err.msg, "(0054,1102)"));
	put(dicom_root(in.files[1]), TAG_DECAY_CORRECTION, "ADMIN");
	put(dicom_root(in.files[1]), TAG_DECAY_FACTOR, "1.5");
	report = write_series(&in);
	im = image_open(report.file[0]);
	assert_string_equal(text(im.root, TAG_DECAY_CORRECTION), "ADMIN");
	assert_true(number(im.root, TAG_DECAY_FACTOR, 0) == 1.5);
	assert_true(fabs(report.factor - 10 / DURATION) < 1e-12); /* not a second time */
	dicom_close(im.file);
	pet_result_report_clear(&report);
	input_clear(&in);
}

static void test_refused(void **state)
{
	struct err err = {0};
	struct input in;

	(void)state;
	input_make(&in);
	assert_int_equal(pet_result_check(&in.s, &err), 0);
	in.s.facts.duration = NAN;
	assert_int_equal(pet_result_check(&in.s, &err), -EBADMSG);
	assert_non_null(strstr(err.msg, "(0018,1242)"));
	in.s.part[SINOGRAM_EMISSION].header.duration = 60;
	assert_int_equal(pet_result_check(&in.s, &err), 0);
	in.s.facts.acquisition_time[0] = '\0';
	assert_int_equal(pet_result_check(&in.s, &err), 0);
	in.s.facts.series_date[0] = '\0';
	assert_int_equal(pet_result_check(&in.s, &err), -EBADMSG);
	assert_non_null(strstr(err.msg, "(0008,0022)"));
	input_clear(&in);
}

/* ---- identity and provenance ---- */

static void test_uids(void **state)
{
	struct pet_result_report first, second;
	struct dicom_file *swap;
	char other[DICOM_UID_SIZE];
	struct input in;

	(void)state;
	input_make(&in);
	first = write_series(&in);
	in.info.now += 1000;
	snprintf(in.info.device, sizeof(in.info.device), "another");
	swap = in.files[0]; /* whatever the order of the files */
	in.files[0] = in.files[2];
	in.files[2] = swap;
	second = write_series(&in);
	assert_string_equal(first.series, second.series);
	for (int i = 0; i < NZ; i++) {
		assert_string_equal(first.sop_instance[i], second.sop_instance[i]);
		assert_string_equal(first.file[i], second.file[i]);
		pet_result_uid(&in.s, &in.protocol, NZ - 1 - i, other); /* the head is at high z */
		assert_string_equal(first.sop_instance[i], other);
		assert_string_not_equal(first.sop_instance[i], first.sop_instance[(i + 1) % NZ]);
	}
	in.protocol.pet.iterations++;
	pet_result_series(&in.s, &in.protocol, other);
	assert_string_not_equal(other, first.series);
	in.protocol.pet.iterations--;
	in.s.facts.calibration *= 2;
	pet_result_series(&in.s, &in.protocol, other);
	assert_string_not_equal(other, first.series);
	in.s.facts.calibration /= 2;
	pet_result_series(&in.s, &in.protocol, other);
	assert_string_equal(other, first.series);
	in.s.n_files = 2; /* another set of sources */
	pet_result_series(&in.s, &in.protocol, other);
	assert_string_not_equal(other, first.series);
	pet_result_report_clear(&first);
	pet_result_report_clear(&second);
	input_clear(&in);
}

static void test_provenance(void **state)
{
	static const struct {
		uint32_t tag;
		const char *text;
	} wanted[] = {
		{TAG_PATIENT_NAME, "M\xc3\xbcller^Erika"},
		{TAG_SPECIFIC_CHARACTER_SET, "ISO_IR 192"},
		{TAG_PATIENT_AGE, "066Y"},
		{TAG_ACCESSION_NUMBER, "A-77"},
		{TAG_STUDY_INSTANCE_UID, "1.2.3.1"},
		{TAG_FRAME_OF_REFERENCE_UID, "1.2.3.3"},
		{TAG_SERIES_NUMBER, "1041"},
		{TAG_MODALITY, "PT"},
		{TAG_SERIES_TYPE, "STATIC\\IMAGE"},
		{TAG_COUNTS_SOURCE, "EMISSION"},
		{TAG_SERIES_DATE, "20260629"}, /* of the acquisition, not of the reconstruction */
		{TAG_SERIES_TIME, "081000.5"},
		{TAG_ACQUISITION_TIME, "081000.5"},
		{TAG_ACTUAL_FRAME_DURATION, "600000"},
		{TAG_NUMBER_OF_SLICES, "4"},
		{TAG_RECONSTRUCTION_METHOD, "OSEM 3i7s, siddon"},
		{TAG_CONVOLUTION_KERNEL, "Gauss 4 mm"},
		{TAG_RECONSTRUCTION_DIAMETER, "16"},
		{TAG_BODY_PART_EXAMINED, "BRAIN"},
		{TAG_MANUFACTURER, "tomonode"},
		{TAG_CONTENT_QUALIFICATION, "RESEARCH"},
	};
	struct pet_result_report report;
	const struct dicom_item *item;
	struct input in;
	struct image im;
	const char *recipe;

	(void)state;
	input_make(&in);
	report = write_series(&in);
	im = image_open(report.file[2]);
	for (size_t i = 0; i < sizeof(wanted) / sizeof(wanted[0]); i++)
		if (strcmp(text(im.root, wanted[i].tag), wanted[i].text))
			fail_msg("%08x: \"%s\" instead of \"%s\"", wanted[i].tag, text(im.root, wanted[i].tag), wanted[i].text);
	assert_string_equal(text(im.root, TAG_SERIES_INSTANCE_UID), report.series);
	assert_string_equal(text(im.root, TAG_SOP_INSTANCE_UID), report.sop_instance[2]);
	assert_false(dicom_has(im.root, TAG_PATIENT_POSITION));
	assert_string_not_equal(text(im.root, TAG_CONTENT_TIME), "081000.5");
	item = dicom_item_at(im.root, TAG_PATIENT_ORIENTATION_CODE_SEQUENCE, 0);
	assert_string_equal(text(item, TAG_CODE_MEANING), "recumbent");
	item = dicom_item_at(item, TAG_PATIENT_ORIENTATION_MODIFIER_CODE_SEQUENCE, 0);
	assert_string_equal(text(item, TAG_CODE_VALUE), "40199007");
	item = dicom_item_at(im.root, TAG_PATIENT_GANTRY_RELATIONSHIP_CODE_SEQUENCE, 0);
	assert_string_equal(text(item, TAG_CODE_VALUE), "102540008");
	item = dicom_item_at(im.root, TAG_RADIOPHARMACEUTICAL_INFORMATION_SEQUENCE, 0);
	assert_true(number(item, TAG_RADIONUCLIDE_TOTAL_DOSE, 0) == 370e6);
	assert_string_equal(text(dicom_item_at(item, DICOM_TAG(0x0054, 0x0300), 0), TAG_CODE_VALUE), "77004003");

	assert_int_equal(dicom_item_count(im.root, TAG_SOURCE_INSTANCE_SEQUENCE), 3);
	assert_int_equal(dicom_item_count(im.root, TAG_REFERENCED_SERIES_SEQUENCE), 1);
	item = dicom_item_at(im.root, TAG_REFERENCED_SERIES_SEQUENCE, 0);
	assert_int_equal(dicom_item_count(item, TAG_REFERENCED_INSTANCE_SEQUENCE), 3);
	item = dicom_item_at(im.root, TAG_SOURCE_INSTANCE_SEQUENCE, 2);
	assert_string_equal(text(item, TAG_REFERENCED_SOP_INSTANCE_UID), "1.2.3.4.3");
	assert_int_equal(dicom_item_count(im.root, TAG_CONTRIBUTING_EQUIPMENT_SEQUENCE), 2);
	item = dicom_item_at(im.root, TAG_CONTRIBUTING_EQUIPMENT_SEQUENCE, 0);
	assert_string_equal(text(item, TAG_MANUFACTURER_MODEL_NAME), "Ring");
	item = dicom_item_at(im.root, TAG_CONTRIBUTING_EQUIPMENT_SEQUENCE, 1);
	recipe = text(item, TAG_CONTRIBUTION_DESCRIPTION);
	assert_int_equal(strncmp(recipe, "sha256=", 7), 0);
	assert_non_null(strstr(recipe, "device=\"cpu (test)\""));
	assert_non_null(strstr(recipe, "protocol=\"pet-test: algorithm=osem"));
	assert_non_null(strstr(recipe, "rings=2"));
	dicom_close(im.file);
	pet_result_report_clear(&report);
	input_clear(&in);
}

/* ---- all or nothing ---- */

static void test_all_or_nothing(void **state)
{
	struct pet_result_report report;
	struct err err = {0};
	char name[64], block[128];
	struct input in;

	(void)state;
	input_make(&in);
	in.volume[N_VOXELS - 1] = NAN;
	assert_int_equal(pet_result_write(&in.s, &in.info, in.volume, folder, &report, &err), -EIO);
	assert_non_null(strstr(err.msg, "slice 4"));
	assert_int_equal(entries(), 0);
	in.volume[N_VOXELS - 1] = 1;

	report = write_series(&in);
	snprintf(name, sizeof(name), "%s", report.file[2]);
	pet_result_report_clear(&report);
	clean();
	/* the third file cannot get its name: the first two lose theirs */
	assert_int_equal(mkdir(path_of(name), 0700), 0);
	assert_true(pet_result_write(&in.s, &in.info, in.volume, folder, &report, &err) < 0);
	assert_int_equal(entries(), 1);
	clean();
	/* nor can it be written at all */
	snprintf(block, sizeof(block), "%s.part", name);
	assert_int_equal(mkdir(path_of(block), 0700), 0);
	assert_true(pet_result_write(&in.s, &in.info, in.volume, folder, &report, &err) < 0);
	assert_int_equal(entries(), 1);
	clean();
	assert_true(pet_result_write(&in.s, &in.info, in.volume, path_of("not there"), &report, &err) < 0);
	assert_int_equal(entries(), 0);
	input_clear(&in);
}

/* More files than are open at a time. */
static void test_many(void **state)
{
	enum { MANY = 150 };
	float *volume = calloc((size_t)NX * NY * MANY, sizeof(*volume));
	struct pet_result_report report;
	struct err err = {0};
	struct input in;

	(void)state;
	input_make(&in);
	for (int i = 0; i < NX * NY * MANY; i++)
		volume[i] = (float)(1 + i / (NX * NY));
	in.plan.grid.n[2] = MANY;
	in.plan.grid.lo[2] = -MANY / 2 * 3.27;
	if (pet_result_write(&in.s, &in.info, volume, folder, &report, &err) < 0)
		fail_msg("%s", err.msg);
	assert_int_equal(entries(), MANY);
	for (int i = 0; i < MANY; i++) {
		struct image im = image_open(report.file[i]);

		assert_true(fabs(value_at(&im, 0, 0) / report.factor - (MANY - i)) < 1e-3);
		dicom_close(im.file);
	}
	pet_result_report_clear(&report);
	free(volume);
	input_clear(&in);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_places), cmocka_unit_test(test_tilted),	     cmocka_unit_test(test_values),
		cmocka_unit_test(test_units),  cmocka_unit_test(test_units_further), cmocka_unit_test(test_refused),
		cmocka_unit_test(test_uids),   cmocka_unit_test(test_provenance),    cmocka_unit_test(test_all_or_nothing),
		cmocka_unit_test(test_many),
	};

	return cmocka_run_group_tests(tests, start, stop);
}
