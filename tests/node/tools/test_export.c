/* SPDX-License-Identifier: Apache-2.0 */
/* Test reading a PET series as a volume, and its export to NIfTI and Interfile. */
#include "tests/node/result/pet_result_fixture.h"
#include "tests/test.h"

#include <jansson.h>

#include "node/tools/export_format.h"
#include "node/tools/export_image.h"
#include "node/tools/image_series.h"

/* Return the paths of the objects in reverse order, each twice. */
static size_t shuffled(const struct series_report *r, char *ret_paths[2 * NZ])
{
	size_t n = 0;

	for (int twice = 0; twice < 2; twice++)
		for (int i = r->n - 1; i >= 0; i--)
			ret_paths[n++] = strdup(path_of(r->file[i]));
	return n;
}

static void paths_free(char **paths, size_t n)
{
	for (size_t i = 0; i < n; i++)
		free(paths[i]);
}

static struct image_series *series_open(char **paths, size_t n)
{
	struct image_series *s = NULL;
	struct err err = {0};

	assert_done(image_series_open(paths, n, false, &s, &err), &err);
	return s;
}

static const float *slice_of(const struct image_series *s, int image, int k)
{
	const float *values = NULL;
	struct err err = {0};

	assert_done(image_series_slice(s, image, k, &values, &err), &err);
	return values;
}

static void expect_refused(char **paths, size_t n, const char *word)
{
	struct image_series *s = NULL;
	struct err err = {0};

	assert_true(image_series_open(paths, n, false, &s, &err) < 0);
	assert_null(s);
	if (!strstr(err.msg, word))
		fail_msg("\"%s\" is not in \"%s\"", word, err.msg);
}

/* Return the value of the volume at a point of the patient. */
static double truth_at(const struct input *in, const double p[3])
{
	const struct grid *g = &in->plan.grid;
	int at[3];

	for (int a = 0; a < 3; a++) {
		double v = 0;

		for (int c = 0; c < 3; c++)
			v += (p[c] - in->s.centre[c]) * in->s.axis[a][c];
		v = (v - g->lo[a]) / g->h[a] - 0.5;
		at[a] = (int)lround(v);
		assert_true(fabs(v - at[a]) < 1e-4);
		assert_in_range(at[a], 0, g->n[a] - 1);
	}
	return in->volume[(at[2] * NY + at[1]) * NX + at[0]];
}

/* Compare each voxel of the NIfTI file, at the position in its header. RAS is LPS with the signs of the first two axes changed.
 */
static void compare_nifti(const struct input *in, const char *path, double factor)
{
	uint8_t header[352];
	float row[3][4], v;
	int16_t dim[8], type, code;
	FILE *f = fopen(path, "rb");

	assert_non_null(f);
	assert_int_equal(fread(header, 1, sizeof(header), f), sizeof(header));
	memcpy(dim, header + 40, sizeof(dim));
	memcpy(&type, header + 70, sizeof(type));
	memcpy(&code, header + 254, sizeof(code));
	memcpy(row, header + 280, sizeof(row));
	assert_int_equal(dim[0], 3);
	assert_int_equal(type, 16);
	assert_int_equal(code, 1);
	assert_memory_equal(header + 344, "n+1", 4);
	for (int k = 0; k < dim[3]; k++)
		for (int j = 0; j < dim[2]; j++)
			for (int i = 0; i < dim[1]; i++) {
				double p[3], want;

				for (int c = 0; c < 3; c++)
					p[c] = (c < 2 ? -1 : 1) *
					       ((double)row[c][0] * i + row[c][1] * j + row[c][2] * k + row[c][3]);
				want = factor * truth_at(in, p);
				assert_int_equal(fread(&v, sizeof(v), 1, f), 1);
				assert_true(fabs(v - want) < want / 32767 * 8); /* half a step of the slice's largest */
			}
	assert_int_equal(fread(&v, 1, 1, f), 0);
	fclose(f);
}

/* Each row is whole, and is found by its endings and its name alone. */
TEST(formats)
{
	char path[100];

	for (size_t i = 0; i < EXPORT_FORMAT_COUNT; i++) {
		const struct export_format *f = export_formats[i];
		bool has_own = false;

		assert_true(f->endings[0] && f->help && f->name_files && f->write);
		assert_int_equal(f->help[strlen(f->help) - 1], '\n');
		for (size_t e = 0; f->endings[e]; e++) {
			snprintf(path, sizeof(path), "a.folder/a%s", f->endings[e]);
			assert_ptr_equal(export_format_of_file(path), f);
			assert_null(export_format_of_file(path + strlen("a.folder/a"))); /* without a name */
			has_own = has_own || (f->ending && !strcmp(f->ending, f->endings[e]));
		}
		assert_int_equal(f->name != NULL, has_own);
		if (f->name)
			assert_ptr_equal(export_format_named(f->name), f);
	}
	assert_null(export_formats[EXPORT_FORMAT_COUNT]);
	assert_null(export_format_of_file("a.nii/a.tif"));
	assert_null(export_format_named("nii"));
}

TEST(test_series)
{
	struct series_report report;
	char *paths[2 * NZ];
	struct err err = {0};
	struct input in;

	input_make(&in);
	for (size_t k = 0; k < N_POSITIONS; k++) {
		struct image_series *s;
		size_t n;

		memcpy(in.s.axis, positions[k].axis, sizeof(in.s.axis));
		report = write_series(&in);
		n = shuffled(&report, paths);
		s = series_open(paths, n);
		assert_int_equal(s->n[0] * s->n[1] * s->n[2], N_VOXELS);
		assert_string_equal(s->units, "BQML");
		assert_string_equal(s->series, report.series);
		assert_true(s->duration == DURATION);
		for (int z = 0; z < s->n[2]; z++)
			for (int y = 0; y < s->n[1]; y++)
				for (int x = 0; x < s->n[0]; x++) {
					double p[3], want;

					for (int c = 0; c < 3; c++)
						p[c] = s->corner[c] + x * s->spacing[0] * s->across[c] +
						       y * s->spacing[1] * s->down[c] + z * s->spacing[2] * s->normal[c];
					want = report.factor * truth_at(&in, p);
					assert_true(fabs(slice_of(s, 0, z)[y * s->n[0] + x] - want) < want / 32767 * 40);
				}
		assert_done(export_nifti(s, path_of("out.nii"), &err), &err);
		compare_nifti(&in, path_of("out.nii"), report.factor);
		image_series_close(s);
		paths_free(paths, n);
	}
}

/* ---- time frames and gates ---- */

#define IMAGES 3

/* Write a series of three images: of frames, or of gates of a cycle of 900 ms that lasts from 300 ms on. */
static struct series_report write_frames(struct input *in, const struct pet_frame *frames, float *volumes)
{
	static int64_t marks[] = {300, 1200, 2100};

	pet_images_set_gates(&in->s.images, &(struct pet_gates){.n = IMAGES, .marks = {3, marks}, .signal = PET_SIGNAL_ECG});
	in->s.images.of = frames ? PET_FRAMES : PET_GATES;
	for (int i = 0; frames && i < IMAGES; i++)
		in->s.images.image[i].time = frames[i];
	for (int i = 0; i < IMAGES * N_VOXELS; i++)
		volumes[i] = (float)(1 + i % 977);
	return write_images(in, volumes);
}

/* Compare each voxel with that of its image, up to a factor of the image, which is returned. */
static void compare_images(const struct image_series *s, struct input *in, const float *volumes, double ret_factor[IMAGES])
{
	for (int f = 0; f < IMAGES; f++) {
		memcpy(in->volume, volumes + f * N_VOXELS, sizeof(in->volume));
		ret_factor[f] = 0;
		for (int z = 0; z < s->n[2]; z++)
			for (int i = 0; i < s->n[0] * s->n[1]; i++) {
				double p[3], want, found = slice_of(s, f, z)[i];

				for (int c = 0; c < 3; c++)
					p[c] = s->corner[c] + i % s->n[0] * s->spacing[0] * s->across[c] +
					       i / s->n[0] * s->spacing[1] * s->down[c] + z * s->spacing[2] * s->normal[c];
				want = truth_at(in, p);
				ret_factor[f] = ret_factor[f] > 0 ? ret_factor[f] : found / want;
				assert_true(fabs(found / ret_factor[f] - want) < 0.2);
			}
	}
}

struct nifti {
	int16_t dim[8];
	float pixdim[8], toffset, last; /* last: last value of the file */
	int units;
	long values;
};

static struct nifti nifti_read(const char *path)
{
	uint8_t header[352];
	struct nifti ret;
	FILE *f = fopen(path, "rb");

	assert_non_null(f);
	assert_int_equal(fread(header, 1, sizeof(header), f), sizeof(header));
	memcpy(ret.dim, header + 40, sizeof(ret.dim));
	memcpy(ret.pixdim, header + 76, sizeof(ret.pixdim));
	memcpy(&ret.toffset, header + 136, sizeof(ret.toffset));
	ret.units = header[123];
	fseek(f, -4, SEEK_END);
	ret.values = (ftell(f) + 4 - 352) / 4;
	assert_int_equal(fread(&ret.last, 4, 1, f), 1);
	fclose(f);
	return ret;
}

static json_t *json_read(const char *path)
{
	json_error_t error;
	json_t *root = json_load_file(path, 0, &error);

	if (!root)
		fail_msg("%s: %s", path, error.text);
	return root;
}

static void is_times(const json_t *root, const char *key, const double wanted[IMAGES])
{
	const json_t *all = json_object_get(root, key);

	assert_int_equal(json_array_size(all), IMAGES);
	for (size_t i = 0; i < IMAGES; i++)
		assert_true(fabs(json_real_value(json_array_get(all, i)) - wanted[i]) < 1e-6);
}

/* The objects in any order: four dimensions, the images in the order of the series, each with its own factor; pixdim[4] only of
 * frames of one duration that follow each other; the times beside the file. */
TEST(test_images)
{
	static const struct pet_frame equal[] = {{2000, 32000}, {32000, 62000}, {62000, 92000}},
				      unequal[] = {{0, 30000}, {30000, 90000}, {100000, 130000}},
				      gap[] = {{0, 30000}, {40000, 70000}, {70000, 100000}};
	static const struct {
		const struct pet_frame *frames;
		double start[IMAGES], duration[IMAGES], step, first;
	} cases[] = {
		{equal, {2, 32, 62}, {30, 30, 30}, 30, 2},
		{unequal, {0, 30, 100}, {30, 60, 30}, 0, 0},
		{gap, {0, 40, 70}, {30, 30, 30}, 0, 0},
		{NULL, {0, 0.3, 0.6}, {0.3, 0.3, 0.3}, 0.3, 0},
	};
	static const double live[] = {0.6, 0.6, 0.6};
	float volumes[IMAGES * N_VOXELS];
	struct err err = {0};

	for (size_t k = 0; k < sizeof(cases) / sizeof(cases[0]); k++) {
		char *paths[IMAGES * NZ];
		double factor[IMAGES];
		struct series_report report;
		struct image_series *s;
		struct nifti n;
		struct input in;
		json_t *root;

		input_make(&in);
		report = write_frames(&in, cases[k].frames, volumes);
		for (int i = 0; i < report.n; i++)
			paths[i * 7 % report.n] = strdup(path_of(report.file[i]));
		s = series_open(paths, (size_t)report.n);
		assert_true(s->n_images == IMAGES && s->n[2] == NZ);
		assert_string_equal(s->type, cases[k].frames ? "DYNAMIC" : "GATED");
		compare_images(s, &in, volumes, factor);
		assert_true(fabs(factor[0] / factor[1] - cases[k].duration[1] / cases[k].duration[0]) < 0.05);
		assert_done(export_nifti(s, path_of("out.nii"), &err), &err);
		n = nifti_read(path_of("out.nii"));
		assert_true(n.dim[0] == 4 && n.dim[3] == NZ && n.dim[4] == IMAGES && n.dim[5] == 1);
		assert_int_equal(n.values, IMAGES * N_VOXELS);
		assert_true(n.last == slice_of(s, IMAGES - 1, NZ - 1)[NX * NY - 1]);
		assert_true(fabs(n.pixdim[4] - cases[k].step) < 1e-6 && fabs(n.toffset - cases[k].first) < 1e-6);
		assert_int_equal(n.units, cases[k].step > 0 ? 10 : 2);
		root = json_read(path_of("out.json"));
		is_times(root, cases[k].frames ? "FrameTimesStart" : "TriggerTime", cases[k].start);
		is_times(root, cases[k].frames ? "FrameDuration" : "FrameTime", cases[k].duration);
		if (!cases[k].frames)
			is_times(root, "GateDuration", live);
		json_decref(root);
		assert_int_equal(export_interfile_image(s, path_of("out.hv"), &err), -ENOTSUP);
		image_series_close(s);
		expect_refused(paths, (size_t)report.n - 1, "incomplete: 11 of 12 slices");
		free(paths[0]);
		paths[0] = strdup(paths[1]); /* a repeated object is not a further one */
		expect_refused(paths, (size_t)report.n, "incomplete: 11 of 12 slices");
		paths_free(paths, (size_t)report.n);
		in.s.images.gates.marks = (struct pet_marks){0};
	}
}

TEST(test_refused)
{
	struct series_report report, other;
	char *paths[2 * NZ], *mixed[2];
	struct input in;
	size_t n;

	input_make(&in);
	report = write_series(&in);
	n = shuffled(&report, paths);
	expect_refused(paths, NZ - 1, "incomplete: 3 of 4");
	expect_refused(paths, 0, "none of the files is a PET or CT image");
	mixed[0] = strdup(paths[0]);
	in.protocol.pet.iterations++; /* another series, in the same folder */
	other = write_images(&in, in.volume);
	mixed[1] = strdup(path_of(other.file[1]));
	expect_refused(mixed, 2, "give one");
	paths_free(mixed, 2);
	paths_free(paths, n);
}

/* A scanner of one ring has one slice. */
TEST(test_one_slice)
{
	struct series_report report;
	struct image_series *s;
	struct input in;
	char *path;

	input_make(&in);
	in.plan.grid.n[2] = 1;
	report = write_images(&in, in.volume);
	path = strdup(path_of(report.file[0]));
	s = series_open(&path, 1);
	assert_int_equal(s->n[2], 1);
	assert_true(fabs(s->spacing[2] - 3.27) < 1e-9);
	image_series_close(s);
	free(path);
}

TEST(test_rename_data)
{
	static const struct {
		const char *text, *want;
	} cases[] = {
		{"!INTERFILE :=\nname of data file := old.s\n!END :=\n", "!INTERFILE :=\nname of data file := new.s\n!END :=\n"},
		{"a := 1\r\n!Name of  Data File:=/x/y z.s\r\nb := 2", "a := 1\r\n!Name of  Data File:= new.s\r\nb := 2"},
		{"name of data file :=", "name of data file := new.s"},
		{"!name_of_data_file:=old.s\n", "!name_of_data_file:= new.s\n"},
		{"NAME OF DATAFILE\t:= old.s\n", "NAME OF DATAFILE\t:= new.s\n"},
	};
	struct err err = {0};
	char *text = NULL;

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		assert_int_equal(interfile_rename_data(cases[i].text, "new.s", &text, &err), 0);
		assert_string_equal(text, cases[i].want);
		free(text);
	}
	assert_int_equal(interfile_rename_data("name of data files := x\n", "new.s", &text, &err), -EBADMSG);
}

TESTS_SETUP(start, stop);
