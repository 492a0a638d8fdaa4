/* SPDX-License-Identifier: Apache-2.0 */
/* Test a written PET series: position of every voxel in the patient, values to half a step, UIDs, provenance, all files or none.
 */
#include "tests/node/result/pet_result_fixture.h"
#include "tests/test.h"

TEST(test_places)
{
	struct input in;

	input_make(&in);
	for (size_t k = 0; k < N_POSITIONS; k++) {
		struct series_report report;
		double before = INFINITY;
		int n = 0;

		snprintf(in.s.facts.patient_position, sizeof(in.s.facts.patient_position), "%s", positions[k].name);
		memcpy(in.s.axis, positions[k].axis, sizeof(in.s.axis));
		report = write_series(&in);
		for (int i = 0; i < report.n; i++) {
			struct image im = image_open(report.file[i]);
			double z = number(im.root, TAG_SLICE_LOCATION, 0);

			/* the usual orientation; slices from head to feet */
			assert_true(im.row[0] == 1 && im.column[1] == 1);
			assert_true(fabs(z - im.position[2]) < 1e-9);
			assert_true(i == 0 || fabs(before - z - 3.27) < 1e-9);
			before = z;
			assert_int_equal(number(im.root, TAG_INSTANCE_NUMBER, 0), i + 1);
			assert_int_equal(number(im.root, TAG_IMAGE_INDEX, 0), i + 1);
			n += compare_places(&in, &im, report.factor);
		}
		assert_int_equal(n, N_VOXELS);
	}
}

/* A patient oblique to the axes of the scanner: positions and values are correct. */
TEST(test_tilted)
{
	double a = 0.2, c = cos(a), s = sin(a), tilted[3][3] = {{c, s, 0}, {-s, c, 0}, {0, 0, 1}};
	struct series_report report;
	struct input in;

	input_make(&in);
	memcpy(in.s.axis, tilted, sizeof(tilted));
	report = write_series(&in);
	for (int i = 0; i < report.n; i++) {
		struct image im = image_open(report.file[i]);

		compare_places(&in, &im, report.factor);
	}
}

/* Small, large and negative values, empty slices; uncompressed and compressed. */
static double largest(const float *values, size_t n)
{
	double most = values[0];

	for (size_t i = 1; i < n; i++)
		most = fmax(most, values[i]);
	return most;
}

TEST(test_values)
{
	static const double sizes[] = {1e-9, 1, 3.7e4, 1e12};
	struct series_report report;
	struct input in;
	double top;

	input_make(&in);
	for (size_t k = 0; k < sizeof(sizes) / sizeof(sizes[0]); k++)
		for (int negative = 0; negative < 2; negative++) {
			for (int i = 0; i < N_VOXELS; i++)
				in.volume[i] = i < NX * NY ? 0
							   : (float)(sizes[k] * (sin(i * 1.7) + (negative ? -0.3 : 1.001)) *
								     (1 + i / (NX * NY)));
			in.protocol.compression = negative ? COMPRESSION_JPEGLS : COMPRESSION_NONE;
			report = write_series(&in);
			top = report.factor * largest(in.volume, N_VOXELS);
			for (int i = 0; i < report.n; i++) {
				struct image im = image_open(report.file[i]);

				/* the same window in all slices, 0 to the largest value */
				assert_true(fabs(number(im.root, TAG_WINDOW_WIDTH, 0) - top) <= 1e-5 * top);
				assert_true(fabs(number(im.root, TAG_WINDOW_CENTER, 0) - top / 2) <= 1e-5 * top);

				assert_int_equal(im.is_signed, negative);
				compare_places(&in, &im, report.factor);
				assert_true(number(im.root, TAG_RESCALE_INTERCEPT, 0) == 0);
				assert_int_equal(number(im.root, TAG_BITS_STORED, 0), 16);
			}
		}
}

/* ---- time frames ---- */

/* Three frames after a gap: one series in the order of the standard, each with its own values, times and decay factor, all
 * corrected to the start of the acquisition. */
TEST(test_frames)
{
	static const struct pet_frame frames[] = {{500, 60500}, {60500, 180500}, {240000, 600000}};
	static const char *const starts[] = {"235951", "000051", "000350.500000"}; /* from 235950.5; the day changes */
	const double lambda = log(2) / HALF_LIFE;
	float volumes[3 * N_VOXELS];
	struct series_report report;
	struct err err = {0};
	struct input in;
	double most = 0;

	input_make(&in);
	snprintf(in.s.facts.acquisition_time, sizeof(in.s.facts.acquisition_time), "235950.5");
	in.s.images = (struct pet_images){PET_FRAMES, 3, {{frames[0]}, {frames[1]}, {frames[2]}}};
	for (int i = 0; i < 3 * N_VOXELS; i++)
		volumes[i] = i >= N_VOXELS && i < 2 * N_VOXELS ? 0 : (float)(0.25 * (1 + i));
	report = write_images(&in, volumes);
	assert_int_equal(report.n, 3 * NZ);
	assert_int_equal(entries(), 3 * NZ);
	for (int i = 0; i < report.n; i++) {
		struct image im = image_open(report.file[i]);
		int f = i / NZ;
		double start = (double)frames[f].start / 1000, t = (double)(frames[f].stop - frames[f].start) / 1000;
		double mean = (exp(-lambda * start) - exp(-lambda * (start + t))) / (lambda * t); /* activity, 1 at the start */
		double factor = CALIBRATION / t / mean;

		memcpy(in.volume, volumes + f * N_VOXELS, sizeof(in.volume));
		compare_places(&in, &im, factor);
		most = fmax(most, factor * largest(in.volume, N_VOXELS));
		assert_string_equal(text(im.root, TAG_SERIES_TYPE), "DYNAMIC\\IMAGE");
		assert_string_equal(text(im.root, TAG_DECAY_CORRECTION), "START");
		assert_true(number(im.root, TAG_NUMBER_OF_TIME_SLICES, 0) == 3 && number(im.root, TAG_NUMBER_OF_SLICES, 0) == NZ);
		assert_int_equal(number(im.root, TAG_IMAGE_INDEX, 0), i + 1);
		assert_int_equal(number(im.root, TAG_INSTANCE_NUMBER, 0), i + 1);
		assert_int_equal(number(im.root, TAG_ACTUAL_FRAME_DURATION, 0), frames[f].stop - frames[f].start);
		assert_true(fabs(number(im.root, TAG_DECAY_FACTOR, 0) * mean - 1) < 1e-9);
		assert_true(fabs(number(im.root, TAG_FRAME_REFERENCE_TIME, 0) + 1000 * log(mean) / lambda) < 1e-5);
		assert_string_equal(text(im.root, TAG_ACQUISITION_TIME), starts[f]);
		assert_string_equal(text(im.root, TAG_ACQUISITION_DATE), f ? "20260630" : "20260629");
		assert_string_equal(text(im.root, TAG_SERIES_TIME), "235950.5");
		assert_string_equal(text(im.root, TAG_SERIES_DATE), "20260629");
		assert_true(im.position[2] == number(im.root, TAG_IMAGE_POSITION_PATIENT, 2));
	}
	for (int i = 0; i < report.n; i++) { /* one window */
		struct image im = image_open(report.file[i]);

		assert_true(fabs(number(im.root, TAG_WINDOW_WIDTH, 0) - most) <= 1e-5 * most);
	}
	snprintf(in.s.facts.corrected, sizeof(in.s.facts.corrected), "ATTN\\NORM\\DECY");
	assert_error(pet_result_check(&in.s, &err), &err, ENOTSUP, "already corrected for decay");
}

/* ---- gates ---- */

/* Three gates of cycles of two lengths, others left out: one series in the order of the standard; each gate has the values of its
 * own duration and decay, summed here over single milliseconds, and all have the time of the whole acquisition. */
TEST(test_gates)
{
	int64_t marks[] = {500, 1501, 2500, 60500, 61503, 599000, 600000};
	const double lambda = log(2) / HALF_LIFE;
	float volumes[3 * N_VOXELS];
	struct series_report report, other;
	struct err err = {0};
	struct input in;

	input_make(&in);
	pet_images_set_gates(&in.s.images, &(struct pet_gates){3, 900, 1100, {7, marks}, PET_SIGNAL_RESP});
	for (int i = 0; i < 3 * N_VOXELS; i++)
		volumes[i] = (float)(0.25 * (1 + i));
	report = write_images(&in, volumes);
	assert_int_equal(report.n, 3 * NZ);
	assert_non_null(strstr(report.warnings, "2 of 6 cycles are not 900 to 1100 ms long and left out."));
	for (int i = 0; i < report.n; i++) {
		struct image im = image_open(report.file[i]);
		int k = i / NZ, n = 0;
		double sum = 0;
		size_t cycle = 0;

		for (int64_t t = 0; t < 600000; t++)
			if (pet_gates_find(&in.s.images.gates, t, &cycle) == k) {
				sum += exp(-lambda * ((double)t + 0.5) / 1000);
				n++;
			}
		memcpy(in.volume, volumes + k * N_VOXELS, sizeof(in.volume));
		compare_places(&in, &im, CALIBRATION / (n / 1000.0) * (n / sum));
		assert_string_equal(text(im.root, TAG_SERIES_TYPE), "GATED\\IMAGE");
		assert_true(number(im.root, TAG_NUMBER_OF_R_R_INTERVALS, 0) == 1 &&
			    number(im.root, TAG_NUMBER_OF_TIME_SLOTS, 0) == 3);
		assert_false(dicom_has(im.root, TAG_NUMBER_OF_TIME_SLICES) || dicom_has(im.root, TAG_HEART_RATE));
		assert_int_equal(number(im.root, TAG_IMAGE_INDEX, 0), i + 1);
		assert_int_equal(number(im.root, TAG_TIME_SLOT_TIME, 0), n);
		assert_true(n >= 1333 && n <= 1336);
		assert_true(fabs(number(im.root, TAG_DECAY_FACTOR, 0) * sum / n - 1) < 1e-9);
		assert_true(fabs(number(im.root, TAG_FRAME_REFERENCE_TIME, 0) + 1000 * log(sum / n) / lambda) < 1e-3);
		assert_true(fabs(number(im.root, TAG_TRIGGER_TIME, 0) - k * 4003.0 / 12) < 1e-6);
		assert_true(fabs(number(im.root, TAG_FRAME_TIME, 0) - 4003.0 / 12) < 1e-6);
		assert_true(number(im.root, TAG_LOW_R_R_VALUE, 0) == 900 && number(im.root, TAG_HIGH_R_R_VALUE, 0) == 1100);
		assert_true(number(im.root, TAG_INTERVALS_ACQUIRED, 0) == 4 && number(im.root, TAG_INTERVALS_REJECTED, 0) == 2);
		assert_int_equal(number(im.root, TAG_NOMINAL_INTERVAL, 0), 1001);
		assert_string_equal(text(im.root, TAG_TRIGGER_SOURCE_OR_TYPE), "RESPIRATION");
		assert_int_equal(number(im.root, TAG_ACTUAL_FRAME_DURATION, 0), lround(1000 * in.s.facts.duration));
		assert_string_equal(text(im.root, TAG_ACQUISITION_TIME), in.s.facts.acquisition_time);
	}
	marks[6]--; /* other marks, another series */
	other = write_images(&in, volumes);
	assert_string_not_equal(other.series, report.series);
	snprintf(in.s.facts.corrected, sizeof(in.s.facts.corrected), "ATTN\\NORM\\DECY");
	assert_int_equal(pet_result_check(&in.s, &err), -ENOTSUP);
	assert_string_equal(err.msg, "gates of data that are already corrected for decay (DECY in (0028,0051))");
	in.s.images.gates.marks.ms = NULL; /* not the input's */
}

/* ---- beds ---- */

/* Two beds that overlap by one slice, the first 500 ms after the start: one whole-body series with the slices of both; each image
 * has the times and the decay factor of its bed, and all values the factor of bed 1. */
TEST(test_beds)
{
	static const char *const starts[] = {"235951", "000206"}; /* from 235950.5; the day changes */
	const double lambda = log(2) / HALF_LIFE;
	float volume[NX * NY * (2 * NZ - 1)];
	struct series_report report;
	struct pet_plan plan;
	struct pet_join join GOES(pet_join_clear) = {0};
	struct err err = {0};
	struct input in;
	double factor;

	input_make(&in);
	snprintf(in.s.facts.acquisition_time, sizeof(in.s.facts.acquisition_time), "235950.5");
	in.s.images = (struct pet_images){
		PET_BEDS, 2, {{{500, 60500}, {11, -7.5, 123.25}}, {{135500, 315500}, {11, -7.5, 123.25 + 3 * 3.27}}}};
	if (pet_join_plan(&in.s.images, in.s.axis, &in.plan.grid, &in.s.part[SINOGRAM_EMISSION].header.m, lambda, &join, &err) <
	    0)
		fail_msg("%s", err.msg);
	plan = in.plan;
	plan.grid = join.grid;
	in.info.plan = &plan;
	in.info.join = &join;
	for (int i = 0; i < NX * NY * (2 * NZ - 1); i++)
		volume[i] = (float)(1 + i);
	report = write_images(&in, volume);
	assert_int_equal(report.n, 2 * NZ - 1);
	factor = CALIBRATION / 60 * exp(lambda * 0.5) * lambda * 60 / -expm1(-lambda * 60);
	assert_true(fabs(report.factor / factor - 1) < 1e-9);
	for (int i = 0; i < report.n; i++) {
		struct image im = image_open(report.file[i]);
		int slice = report.n - 1 - i, b = slice >= NZ - 1; /* in the overlap bed 2 has more counts: it lasts longer */
		const struct pet_frame *time = &in.s.images.image[b].time;
		double start = (double)time->start / 1000, t = (double)(time->stop - time->start) / 1000;
		double mean = (exp(-lambda * start) - exp(-lambda * (start + t))) / (lambda * t);

		assert_string_equal(text(im.root, TAG_SERIES_TYPE), "WHOLE BODY\\IMAGE");
		assert_int_equal(number(im.root, TAG_NUMBER_OF_SLICES, 0), report.n);
		assert_false(dicom_has(im.root, TAG_NUMBER_OF_TIME_SLICES));
		assert_int_equal(number(im.root, TAG_IMAGE_INDEX, 0), i + 1);
		assert_true(fabs(im.position[2] - (123.25 - 6.54 + (slice + 0.5) * 3.27)) < 1e-9);
		assert_int_equal(number(im.root, TAG_ACTUAL_FRAME_DURATION, 0), time->stop - time->start);
		assert_true(fabs(number(im.root, TAG_DECAY_FACTOR, 0) * mean - 1) < 1e-9);
		assert_true(fabs(number(im.root, TAG_FRAME_REFERENCE_TIME, 0) + 1000 * log(mean) / lambda) < 1e-5);
		assert_string_equal(text(im.root, TAG_ACQUISITION_TIME), starts[b]);
		assert_string_equal(text(im.root, TAG_SERIES_TIME), "235950.5");
		assert_string_equal(text(im.root, TAG_DECAY_CORRECTION), "START");
		assert_true(fabs(value_at(&im, im.rows - 1, im.columns - 1) / (factor * (slice + 1) * NX * NY) - 1) < 1e-4);
	}
	in.s.facts.calibration = NAN;
	report = write_images(&in, volume);
	assert_non_null(strstr(report.warnings, "The counts of all beds are scaled to the duration and the decay of bed 1."));
	snprintf(in.s.facts.corrected, sizeof(in.s.facts.corrected), "ATTN\\NORM\\DECY");
	assert_int_equal(pet_result_check(&in.s, &err), -ENOTSUP);
	assert_string_equal(err.msg, "beds of data that are already corrected for decay (DECY in (0028,0051))");
}

/* ---- identity and provenance ---- */

/* Write a series, and compare its UIDs. */
static bool same_series(struct input *in, const struct series_report *as)
{
	struct series_report other = write_series(in);
	bool same = !strcmp(other.series, as->series);

	for (int i = 0; i < NZ; i++)
		assert_int_equal(!strcmp(other.sop_instance[i], as->sop_instance[i]), same);
	return same;
}

TEST(test_uids)
{
	struct series_report first, second;
	struct dicom_file *swap;
	struct input in;

	input_make(&in);
	first = write_series(&in);
	in.info.now += 1000;
	snprintf(in.info.device, sizeof(in.info.device), "another");
	swap = in.files[0]; /* the order of the files does not matter */
	in.files[0] = in.files[2];
	in.files[2] = swap;
	second = write_series(&in);
	assert_string_equal(first.series, second.series);
	for (int i = 0; i < NZ; i++) {
		assert_string_equal(first.sop_instance[i], second.sop_instance[i]);
		assert_string_equal(first.file[i], second.file[i]);
		assert_string_not_equal(first.sop_instance[i], first.sop_instance[(i + 1) % NZ]);
	}
	memcpy(in.s.axis, positions[2].axis, sizeof(in.s.axis)); /* feet first: a UID belongs to a slice of the volume */
	second = write_series(&in);
	for (int i = 0; i < NZ; i++)
		assert_string_equal(first.sop_instance[i], second.sop_instance[NZ - 1 - i]);
	memcpy(in.s.axis, positions[0].axis, sizeof(in.s.axis));
	in.protocol.pet.iterations++;
	assert_false(same_series(&in, &first));
	in.protocol.pet.iterations--;
	in.s.facts.calibration *= 2;
	assert_false(same_series(&in, &first));
	in.s.facts.calibration /= 2;
	assert_true(same_series(&in, &first));
	in.s.n_files = 2; /* another set of sources */
	assert_false(same_series(&in, &first));
}

TEST(test_provenance)
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
	struct series_report report;
	const struct dicom_item *item;
	struct input in;
	struct image im;
	const char *recipe;

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
}

/* ---- all files or none ---- */

TEST(test_all_or_nothing)
{
	struct series_report report;
	struct err err = {0};
	char name[64], block[128];
	struct input in;

	input_make(&in);
	in.volume[N_VOXELS - 1] = NAN;
	assert_error(pet_result_write(&in.s, &in.info, in.volume, folder, &report, &err), &err, EIO, "slice 4");
	assert_int_equal(entries(), 0);
	in.volume[N_VOXELS - 1] = 1;

	report = write_series(&in);
	snprintf(name, sizeof(name), "%s", report.file[2]);
	clean();
	/* the third file cannot be renamed: the first two are removed */
	assert_int_equal(mkdir(path_of(name), 0700), 0);
	assert_true(pet_result_write(&in.s, &in.info, in.volume, folder, &report, &err) < 0);
	assert_int_equal(entries(), 1);
	clean();
	/* the third file cannot be created */
	snprintf(block, sizeof(block), "%s.part", name);
	assert_int_equal(mkdir(path_of(block), 0700), 0);
	assert_true(pet_result_write(&in.s, &in.info, in.volume, folder, &report, &err) < 0);
	assert_int_equal(entries(), 1);
	clean();
	assert_true(pet_result_write(&in.s, &in.info, in.volume, path_of("not there"), &report, &err) < 0);
	assert_int_equal(entries(), 0);
	in.info.keep_free = (uint64_t)1e15;
	for (int i = 0; i < 2; i++) {
		in.protocol.compression = i ? COMPRESSION_JPEGLS : COMPRESSION_NONE;
		assert_error(pet_result_write(&in.s, &in.info, in.volume, folder, &report, &err), &err, ENOSPC,
			     "of which 1000000000000000 must stay free");
		assert_int_equal(entries(), 0);
	}
}

/* More files than are open at a time. */
TEST(test_many)
{
	enum { MANY = 150 };
	float *volume = calloc((size_t)NX * NY * MANY, sizeof(*volume));
	struct series_report report;
	struct input in;

	input_make(&in);
	for (int i = 0; i < NX * NY * MANY; i++)
		volume[i] = (float)(1 + i / (NX * NY));
	in.plan.grid.n[2] = MANY;
	in.plan.grid.lo[2] = -MANY / 2 * 3.27;
	report = write_images(&in, volume);
	assert_int_equal(entries(), MANY);
	for (int i = 0; i < MANY; i++) {
		struct image im = image_open(report.file[i]);

		assert_true(fabs(value_at(&im, 0, 0) / report.factor - (MANY - i)) < 1e-3);
	}
	free(volume);
}

TESTS_SETUP(start, stop);
