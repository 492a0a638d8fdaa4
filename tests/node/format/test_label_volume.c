/* SPDX-License-Identifier: Apache-2.0 */
/* Volumes of labels: every element type, both byte orders, sform and qform, compressed or not; damaged files are refused. */
#include <zlib.h>

#include "node/format/label_volume.h"
#include "tests/test.h"

static char folder[64];

static void put(unsigned char *at, const void *value, size_t n, bool swap)
{
	for (size_t i = 0; i < n; i++)
		at[i] = ((const unsigned char *)value)[swap ? n - 1 - i : i];
}

static void put16(unsigned char *at, int value, bool swap)
{
	int16_t v = (int16_t)value;

	put(at, &v, 2, swap);
}

static void put_float(unsigned char *at, double value, bool swap)
{
	float v = (float)value;

	put(at, &v, 4, swap);
}

/* A NIfTI file of 3 x 2 x 4 voxels, label = index; sform, or qform: 90 degrees around z. x to the right and y to the front. */
static size_t nifti(unsigned char *b, int type, int bytes, bool swap, bool qform)
{
	int32_t size = 348;

	memset(b, 0, 600);
	put(b, &size, 4, swap);
	for (int i = 0; i < 4; i++)
		put16(b + 40 + (size_t)2 * (size_t)i, (int[]){3, 3, 2, 4}[i], swap);
	put16(b + 70, type, swap);
	for (int i = 0; i < 4; i++)
		put_float(b + 76 + 4 * (size_t)i, (double[]){1, 2, 3, 4}[i], swap);
	put_float(b + 108, 352, swap);
	put16(b + 252, qform, swap);
	put16(b + 254, !qform, swap);
	put_float(b + 264, sqrt(0.5), swap); /* d: i goes along +y, j along -x */
	for (int c = 0; c < 3; c++)
		put_float(b + 268 + 4 * (size_t)c, (double[]){10, 20, 30}[c], swap);
	for (int c = 0; c < 12; c++)
		put_float(b + 280 + 4 * (size_t)c, (double[]){0, -3, 0, 10, 2, 0, 0, 20, 0, 0, 4, 30}[c], swap);
	memcpy(b + 344, "n+1", 4);
	for (int i = 0; i < 24; i++) {
		unsigned char *at = b + 352 + (size_t)i * (size_t)bytes;
		uint8_t u8 = (uint8_t)i;
		int32_t s32 = i;
		float f32 = (float)i;
		double f64 = i;

		if (bytes == 1)
			put(at, &u8, 1, swap);
		else if (bytes == 2)
			put16(at, i, swap);
		else if (type == 16)
			put(at, &f32, 4, swap);
		else if (bytes == 4)
			put(at, &s32, 4, swap);
		else
			put(at, &f64, 8, swap);
	}
	return 352 + 24 * (size_t)bytes;
}

static void write_bytes(const char *path, const unsigned char *b, size_t n, bool packed)
{
	gzFile f = gzopen(path, packed ? "wb" : "wbT");

	assert_non_null(f);
	assert_int_equal(gzwrite(f, b, (unsigned)n), n);
	assert_int_equal(gzclose(f), Z_OK);
}

/* Every voxel is where the header says: RAS (10 - 3 j, 20 + 2 i, 30 + 4 k), so LPS (-10 + 3 j, -20 - 2 i, ...). */
static void check_places(const char *path)
{
	struct label_volume v GOES(label_volume_clear) = {0};
	struct err err = {0};

	assert_done(label_volume_open(path, &v, &err), &err);
	for (int i = 0; i < 24; i++) {
		double p[3] = {-10 + 3 * (i / 3 % 2), -20 - 2 * (i % 3), 30 + 4 * (i / 6)};

		assert_int_equal(label_volume_at(&v, p), i);
		assert_int_equal(label_volume_at(&v, (double[]){p[0] + 1.4, p[1] - 0.9, p[2] + 1.9}), i);
	}
	assert_int_equal(label_volume_at(&v, (double[]){-10 + 4.6, -24, 30}), 0); /* outside, beside voxel 5 */
	assert_int_equal(label_volume_at(&v, (double[]){NAN, -24, 42}), 0);
}

TEST(nifti_files)
{
	static const int types[][2] = {{2, 1}, {256, 1}, {512, 2}, {4, 2}, {768, 4}, {8, 4}, {16, 4}, {64, 8}};
	unsigned char b[600];

	for (size_t t = 0; t < sizeof(types) / sizeof(types[0]); t++)
		for (int form = 0; form < 8; form++) {
			size_t n = nifti(b, types[t][0], types[t][1], form & 1, form & 2);

			write_bytes(test_path(folder, "m.nii.gz"), b, n, form & 4);
			check_places(test_path(folder, "m.nii.gz"));
		}
}

static void refused(const char *path, const char *word)
{
	struct label_volume v = {0};
	struct err err = {0};

	assert_true(label_volume_open(path, &v, &err) < 0);
	assert_null(v.labels);
	if (!strstr(err.msg, word))
		fail_msg("\"%s\" is not in \"%s\"", word, err.msg);
}

TEST(damaged_nifti)
{
	static const struct {
		int at, value;
		const char *word;
	} faults[] = {{0, 347, "not a NIfTI-1 file"},
		      {344, 'x', "not a NIfTI-1 file"},
		      {48, 2, "a volume has three dimensions"},
		      {42, 5000, "5000 voxels along axis 1"},
		      {44, -1, "-1 voxels along axis 2"},
		      {70, 128, "datatype 128"},
		      {254, 0, "no position in the patient"},
		      {42, 2, "bytes after the last voxel"},
		      {46, 5, "ends before its last voxel"},
		      {42, 4097, "4097 voxels along axis 1"},
		      {44, 0, "0 voxels along axis 2"},
		      {40, 0, "bytes after the last voxel"},
		      {70, 0, "datatype 0"},
		      {345, '2', "not a NIfTI-1 file"}};
	unsigned char b[600];
	size_t n;

	for (size_t i = 0; i < sizeof(faults) / sizeof(faults[0]); i++) {
		n = nifti(b, 4, 2, false, false);
		put16(b + 40, faults[i].at == 48 ? 4 : 3, false);
		put16(b + faults[i].at, faults[i].value, false);
		write_bytes(test_path(folder, "m.nii"), b, n, false);
		refused(test_path(folder, "m.nii"), faults[i].word);
	}
	n = nifti(b, 4, 2, false, false);
	put16(b + 352 + 10, -5, false);
	write_bytes(test_path(folder, "m.nii"), b, n, false);
	refused(test_path(folder, "m.nii"), "voxel 2, 1, 0 has the value -5");
	n = nifti(b, 16, 4, false, false);
	put_float(b + 352 + 8, 1.5, false);
	write_bytes(test_path(folder, "m.nii"), b, n, false);
	refused(test_path(folder, "m.nii"), "has the value 1.5; labels are whole numbers");
	n = nifti(b, 4, 2, false, false);
	put_float(b + 284, 0, false); /* two axes along y */
	put_float(b + 300, 2, false);
	write_bytes(test_path(folder, "m.nii"), b, n, false);
	refused(test_path(folder, "m.nii"), "do not span a volume");
	for (int i = 0; i < 3; i++) {
		n = nifti(b, 4, 2, false, false);
		put_float(b + 108, (double[]){1e30, 347, NAN}[i], false);
		write_bytes(test_path(folder, "m.nii"), b, n, false);
		refused(test_path(folder, "m.nii"), "vox_offset");
	}
	for (int i = 0; i < 4; i++) {
		n = nifti(b, 4, 2, false, false);
		put_float(b + (i < 2 ? 284 : 292), (double[]){1e7, NAN, INFINITY, NAN}[i], false);
		write_bytes(test_path(folder, "m.nii"), b, n, false);
		refused(test_path(folder, "m.nii"), "along axis");
	}
	n = nifti(b, 4, 2, false, false); /* more voxels than are read: 4096 x 4096 x 33 */
	for (int i = 0; i < 3; i++)
		put16(b + 42 + 2 * i, (int[]){4096, 4096, 33}[i], false);
	write_bytes(test_path(folder, "m.nii"), b, n, false);
	refused(test_path(folder, "m.nii"), "553648128 voxels");
	put16(b + 46, 32, false); /* as many as are read: only the file is too short */
	write_bytes(test_path(folder, "m.nii"), b, n, false);
	refused(test_path(folder, "m.nii"), "ends before its last voxel");
	write_bytes(test_path(folder, "m.nii"), b, 100, false);
	refused(test_path(folder, "m.nii"), "ends before");
	refused(test_path(folder, "none.nii"), "No such file");
	refused(test_path(folder, "m.dcm"), "volumes are read from .nii, .nii.gz, .mha, .mhd");
}

#define HEAD                                                                                                                     \
	"NDims = 3\nDimSize = 3 2 4\nElementSpacing = 2 3 4\nOffset = -10 -20 30\nTransformMatrix = 0 -1 0 1 0 0 0 0 1\n"        \
	"ElementType = MET_UCHAR\n"

/* The same volume as MetaImage; data in the file, or beside it. change: a line instead of that of its key, or one more. */
static void meta(const char *change, bool local, bool packed)
{
	size_t key = strcspn(change, "=");
	const char *old, *rest;
	char name[64];
	FILE *f = fopen(test_path(folder, "m.mhd"), "wb"), *data;
	unsigned char b[24], out[100];
	uLongf n = sizeof(out);

	assert_non_null(f);
	snprintf(name, sizeof(name), "%.*s=", (int)key, change);
	old = change[key] == '=' ? strstr(HEAD, name) : NULL;
	rest = old ? strchr(old, '\n') + 1 : strchr(HEAD, '\0');
	old = old ? old : rest;
	for (int i = 0; i < 24; i++)
		b[i] = (unsigned char)i;
	fprintf(f, "%.*s%s%sCompressedData = %s\n", (int)(old - HEAD), HEAD, change, rest, packed ? "True" : "False");
	if (!strstr(change, "ElementDataFile"))
		fprintf(f, "ElementDataFile = %s\n", local ? "LOCAL" : "m.raw");
	assert_int_equal(compress(out, &n, b, sizeof(b)), Z_OK);
	data = local ? f : fopen(test_path(folder, "m.raw"), "wb");
	assert_non_null(data);
	assert_int_equal(fwrite(packed ? out : b, 1, packed ? n : sizeof(b), data), packed ? n : sizeof(b));
	fclose(data);
	if (!local)
		fclose(f);
}

/* The largest label, one more, and scaled values; a slope that is no number scales nothing. */
TEST(values_of_labels)
{
	static const struct {
		double slope, shift, value;
		int label; /* -1: refused */
	} rows[] = {{1, 0, 65535, 65535}, {1, 0, 65536, -1},	{1, 0, -1, -1},	  {1, 0, NAN, -1}, {1, 0, 0.5, -1},
		    {2, 1, 3, 7},	  {0.5, 0, 8, 4},	{0.5, 0, 7, -1},  {NAN, 3, 5, 5},  {2, INFINITY, 5, 5},
		    {0, 3, 5, 5},	  {65535, 0, 1, 65535}, {65535, 1, 1, -1}};
	unsigned char b[600];

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		size_t n = nifti(b, 16, 4, false, false);
		struct label_volume v GOES(label_volume_clear) = {0};
		struct err err = {0};

		for (int k = 0; k < 24; k++)
			put_float(b + 352 + 4 * k, rows[i].value, false);
		put_float(b + 112, rows[i].slope, false);
		put_float(b + 116, rows[i].shift, false);
		write_bytes(test_path(folder, "m.nii"), b, n, false);
		if (rows[i].label < 0) {
			assert_error(label_volume_open(test_path(folder, "m.nii"), &v, &err), &err, EBADMSG, "voxel 0, 0, 0");
			continue;
		}
		assert_int_equal(label_volume_open(test_path(folder, "m.nii"), &v, &err), 0);
		assert_int_equal(v.labels[23], rows[i].label);
	}
}

TEST(metaimages)
{
	for (int form = 0; form < 4; form++) {
		meta("", form & 1, form & 2);
		check_places(test_path(folder, "m.mhd"));
	}
	meta("DimSize = 3 2 5\n", true, false);
	refused(test_path(folder, "m.mhd"), "holds 24 bytes; its header requires 30 elements");
	meta("DimSize = 3 2 3\n", true, true);
	refused(test_path(folder, "m.mhd"), "holds more than the 18 elements");
	meta("DimSize = 3 2 5\n", true, true);
	refused(test_path(folder, "m.mhd"), "holds 24 bytes");
	meta("NDims = 2\n", true, false);
	refused(test_path(folder, "m.mhd"), "NDims = 2");
	meta("ElementType = MET_LONG\n", true, false);
	refused(test_path(folder, "m.mhd"), "ElementType = MET_LONG");
	meta("Offset = 1 2\n", true, false);
	refused(test_path(folder, "m.mhd"), "Offset = 1 2; allowed: 3 numbers");
	meta("ElementNumberOfChannels = 3\n", true, false);
	refused(test_path(folder, "m.mhd"), "ElementNumberOfChannels = 3");
	meta("NDims=3\n", true, false);
	refused(test_path(folder, "m.mhd"), "NDims occurs twice");
	meta("nothing\n", true, false);
	refused(test_path(folder, "m.mhd"), "no '='");
	for (const char *const *bad =
		     (const char *const[]){"DimSize = 3 2 4097\n", "DimSize = 3 0 4\n", "DimSize = 3 2 nan\n", "DimSize = 3 2\n",
					   "ElementSpacing = 2 0 4\n", "ElementSpacing = 2 inf 4\n",
					   "TransformMatrix = 1 0 0 1 0 0 0 0 1\n", "TransformMatrix = 1 0 0\n", "NDims = x\n",
					   "ElementDataFile = LIST\n", "ElementDataFile = s%d.raw\n",
					   "ElementDataFile = ../secret\n", NULL};
	     *bad; bad++) {
		struct label_volume v = {0};
		struct err err = {0};

		meta(*bad, true, false);
		if (label_volume_open(test_path(folder, "m.mhd"), &v, &err) >= 0)
			fail_msg("not refused: %s", *bad);
	}
	unlink(test_path(folder, "m.raw"));
	meta("", false, false);
	unlink(test_path(folder, "m.raw"));
	refused(test_path(folder, "m.mhd"), "m.raw");
}

static int setup(void **state)
{
	test_folder(folder, sizeof(folder));
	return 0;
}

TESTS_SETUP(setup, NULL);
