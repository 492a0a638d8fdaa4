/* SPDX-License-Identifier: Apache-2.0 */
/* What writes a file tells when any of its calls fails, and leaves the old file or the new one; what reads and writes gives back
 * descriptors and memory, whichever call fails. */
#include <dirent.h>

#include "tests/failing_calls.h"

#include "dicom/core/dataset.h"
#include "dicom/pixels/pixels.h"
#include "dicom/pixels/start.h"

#include "node/base/atomic_file.h"
#include "node/base/json_file.h"
#include "node/base/text_file.h"
#include "node/format/label_volume.h"
#include "node/format/mhd.h"
#include "node/format/picture.h"
#include "node/format/png_write.h"
#include "node/store/node_file.h"
#include "node/store/patient_key.h"
#include "node/store/pilot_secret.h"
#include "node/tools/export_image.h"
#include "node/tools/export_picture.h"
#include "node/tools/profile_phantom.h"
#include "node/web/http_credentials.h"
#include "tests/node/report/volume_fixture.h"

static char folder[64];
static struct image_series *series, *dynamic;

static const char *in_folder(const char *name)
{
	return test_path(folder, name);
}

/* ---- writers: each makes files in the folder ---- */

static int put_text(struct err *err)
{
	return text_file_write(in_folder("text"), "new", 3, err);
}

static int put_atomic(struct err *err)
{
	return atomic_file_put(in_folder("atomic"), "new", 3, err);
}

static int put_json(struct err *err)
{
	return json_file_write(json_pack("{s:i}", "a", 1), folder, "json", err);
}

static int put_png(struct err *err)
{
	return png_write(in_folder("a.png"), 2, 1, 16, 0.5, (const uint16_t[]){1, 65535}, err);
}

static int put_picture(struct err *err)
{
	return picture_write(in_folder("b.png"), 2, 1, (const unsigned char[]){1, 255}, err);
}

static int put_nifti(struct err *err)
{
	return export_nifti(series, in_folder("a.nii"), err);
}

static int put_packed_nifti(struct err *err)
{
	return export_nifti(dynamic, in_folder("a.nii.gz"), err);
}

static int put_mha(struct err *err)
{
	return export_metaimage(series, in_folder("a.mha"), true, err);
}

static int put_mhd(struct err *err)
{
	return export_metaimage(dynamic, in_folder("a.mhd"), true, err);
}

static int put_interfile(struct err *err)
{
	return export_interfile_image(series, in_folder("a.hv"), err);
}

static int put_pictures(struct err *err)
{
	const struct picture_choice choice = {.slice = SLICE_ALL, .image = 1, .window = WINDOW_FULL, .bits = 8};
	struct picture_report report;

	return export_pictures(series, &choice, in_folder("p.png"), &report, err);
}

static int put_node_file(struct err *err)
{
	return node_file_write(folder, "{}") ? 0 : err_set(err, errno ? errno : EIO, "node.json");
}

static int put_key(struct err *err)
{
	bool created;

	unlink(in_folder("patient.key"));
	return patient_key_create(folder, &created, err);
}

static int put_secret(struct err *err)
{
	char hex[PILOT_SECRET_SIZE];

	unlink(in_folder("pilots/p1"));
	return pilot_secret_create(folder, "p1", hex, err);
}

static int put_dicom(struct err *err)
{
	struct dicom_file *file = NULL;
	int rc = dicom_new("1.2.840.10008.5.1.4.1.1.2", "1.2.3", &file, err);

	if (rc == 0)
		rc = dicom_write(in_folder("a.dcm"), file, err);
	dicom_close(file);
	return rc;
}

/* With a frame; the header is without the implementation's time, so the file is the same each time. */
static int put_frames(struct err *err)
{
	static const struct {
		uint32_t tag;
		long value;
	} numbers[] = {{0x00280002, 1},	 {0x00280010, 1},  {0x00280011, 2}, {0x00280100, 16},
		       {0x00280101, 16}, {0x00280102, 15}, {0x00280103, 0}};
	struct dicom_file *file = NULL;
	struct dicom_writer *w = NULL;
	int rc = dicom_new("1.2.840.10008.5.1.4.1.1.2", "1.2.3", &file, err);

	for (size_t i = 0; rc == 0 && i < sizeof(numbers) / sizeof(numbers[0]); i++)
		rc = dicom_put_int(dicom_root(file), numbers[i].tag, numbers[i].value, err);
	if (rc == 0)
		rc = dicom_put_text(dicom_root(file), 0x00280004, "MONOCHROME2", err);
	if (rc == 0)
		rc = dicom_writer_open(in_folder("f.dcm"), file, NULL, &w, err);
	if (rc == 0) {
		rc = dicom_writer_frame(w, (const uint16_t[]){1, 2}, err);
		if (rc == 0)
			rc = dicom_writer_close(w, err);
		else
			dicom_writer_abort(w);
	}
	dicom_close(file);
	return rc;
}

/* ---- readers: of what the writers made ---- */

static int get_text(struct err *err)
{
	char *text = NULL;
	size_t n;
	int rc = text_file_read(in_folder("text"), 10, "test", &text, &n, err);

	free(text);
	return rc;
}

static int get_picture(struct err *err)
{
	struct picture p = {0};
	int rc = picture_read(in_folder("b.png"), &p, err);

	picture_clear(&p);
	return rc;
}

static int get_labels(const char *name, struct err *err)
{
	struct label_volume v = {0};
	int rc = label_volume_open(in_folder(name), &v, err);

	label_volume_clear(&v);
	return rc;
}

static int get_nifti(struct err *err)
{
	return get_labels("a.nii", err);
}

static int get_metaimage(struct err *err)
{
	return get_labels("a.mha", err);
}

static int take_nothing(void *ctx, size_t at, const double *elements, size_t n, struct err *err)
{
	return 0;
}

static int get_mhd(struct err *err)
{
	struct mhd h;
	int rc = mhd_open(in_folder("m.mhd"), MHD_PHANTOM, &h, err);

	return rc == 0 ? mhd_read(in_folder("m.mhd"), &h, take_nothing, NULL, err) : rc;
}

static int get_phantom(struct err *err)
{
	struct profile_phantom p;

	return profile_phantom_read(in_folder("phantom"), &p, err);
}

static int get_credentials(struct err *err)
{
	struct http_credentials c;
	int rc = http_credentials_read(in_folder("token"), &c, err);

	if (rc == 0)
		http_credentials_clear(&c);
	return rc;
}

static int get_dicom(struct err *err)
{
	struct dicom_file *file = NULL;
	struct dicom_pixel_info info;
	uint16_t values[2];
	int rc = dicom_open(in_folder("f.dcm"), &file, err);

	if (rc == 0)
		rc = dicom_pixels_info(file, &info, err);
	if (rc == 0)
		rc = dicom_read_frame(file, 0, values, err);
	dicom_close(file);
	return rc;
}

static const struct work {
	const char *name;
	int (*run)(struct err *err);
	bool reads;
	bool random;	/* its content is another one each time */
	bool synced;	/* after fsync() nothing can be lost by close() */
	bool dcmtk;	/* which loses some of its memory when an allocation fails */
	bool in_pieces; /* several files, or one that is not replaced at once */
} works[] = {
	{"text_file_write", put_text, .in_pieces = true},
	{"atomic_file_put", put_atomic},
	{"json_file_write", put_json},
	{"png_write", put_png},
	{"picture_write", put_picture},
	{"export_nifti", put_nifti},
	{"export_nifti, packed", put_packed_nifti, .in_pieces = true},
	{"export_metaimage, .mha", put_mha},
	{"export_metaimage, .mhd", put_mhd, .in_pieces = true},
	{"export_interfile_image", put_interfile, .in_pieces = true},
	{"export_pictures", put_pictures, .in_pieces = true},
	{"node_file_write", put_node_file},
	{"patient_key_create", put_key, .random = true, .synced = true},
	{"pilot_secret_create", put_secret, .random = true, .synced = true},
	{"dicom_write", put_dicom, .dcmtk = true},
	{"dicom_writer", put_frames, .dcmtk = true},
	{"text_file_read", get_text, .reads = true},
	{"picture_read", get_picture, .reads = true},
	{"label_volume_open, NIfTI", get_nifti, .reads = true},
	{"label_volume_open, MetaImage", get_metaimage, .reads = true},
	{"mhd_read", get_mhd, .reads = true},
	{"profile_phantom_read", get_phantom, .reads = true},
	{"http_credentials_read", get_credentials, .reads = true},
	{"dicom_open", get_dicom, .reads = true, .dcmtk = true},
};
#define N_WORKS (sizeof(works) / sizeof(works[0]))

/* ---- the folder ---- */

/* Names and contents of all files, in the order of their names. */
static char *content_of_folder(void)
{
	struct dirent **list = NULL;
	char *text = NULL;
	size_t size = 0;
	int n = scandir(folder, &list, NULL, alphasort);
	FILE *out = open_memstream(&text, &size);

	for (int i = 0; i < n; i++) {
		FILE *f = fopen(in_folder(list[i]->d_name), "r");
		int c;

		fprintf(out, "%s\n", list[i]->d_name);
		while (f && list[i]->d_type == DT_REG && (c = fgetc(f)) != EOF)
			fprintf(out, "%02x", c);
		if (f)
			fclose(f);
		fputc('\n', out);
		free(list[i]);
	}
	free(list);
	fclose(out);
	return text;
}

#define MHD "NDims = 3\nElementSpacing = 1 1 1\nDimSize = 2 2 2\nElementType = MET_UCHAR\nElementDataFile = m.raw\n"

static void run_well(const struct work *w)
{
	struct err err = {0};

	if (w->run(&err) != 0)
		fail_msg("%s: %s", w->name, err.msg);
}

/* Let the n-th call of each kind fail, for every n. */
static void let_calls_fail(const struct work *w, enum fail_kind kind)
{
	char *before, *after;
	int n = 0;

	run_well(w);
	before = content_of_folder();
	do {
		int descriptors = test_descriptors(), rc;
		struct err err = {0};
		bool failed;

		fail_calls(kind, ++n);
		rc = w->run(&err);
		failed = fail_end();
		if (failed != (rc < 0) && !(w->synced && kind == FAIL_CLOSE))
			fail_msg("%s: call %d of kind %d %s, but it returns %d", w->name, n, kind, failed ? "fails" : "works",
				 rc);
		if (rc < 0 && !err.msg[0])
			fail_msg("%s: no sentence", w->name);
		if (test_descriptors() != descriptors)
			fail_msg("%s: after call %d of kind %d a descriptor is left open", w->name, n, kind);
		after = content_of_folder();
		if (strstr(after, ".part\n") && !w->random)
			fail_msg("%s: a part remains", w->name);
		if (!w->random && !w->in_pieces)
			assert_string_equal(before, after);
		free(after);
		if (!failed)
			break;
		run_well(w);
	} while (n < 1000);
	assert_true(n < 1000);
	free(before);
}

TEST(every_call_of_every_writer)
{
	for (size_t i = 0; i < N_WORKS; i++)
		for (enum fail_kind kind = FAIL_WRITE; kind <= FAIL_RENAME && !works[i].reads; kind++)
			let_calls_fail(&works[i], kind);
}

/* What is written in pieces: the old file stays, or its header is gone; never is there a header with other values. */
TEST(values_and_header_belong_together)
{
	int n = 0;
	bool failed;

	do {
		struct err err = {0};

		run_well(&(struct work){"metaimage", put_mhd});
		fail_calls(FAIL_RENAME, ++n);
		put_mhd(&err);
		failed = fail_end();
		if (access(in_folder("a.mhd"), F_OK) == 0)
			assert_int_equal(access(in_folder("a.zraw"), F_OK), 0);
	} while (failed);
}

TEST(memory_and_descriptors)
{
	if (!FAIL_HAS_MEMORY)
		skip_because("the sanitizer has its own memory");
	for (size_t i = 0; i < N_WORKS; i++) {
		int n = 0, few = test_tier() == 2 ? 100000 : 400;
		bool failed = true;

		run_well(&works[i]); /* what is kept for the next time is made */
		run_well(&works[i]);
		while (failed && n < few) {
			int descriptors = test_descriptors();
			long live = fail_allocations();
			struct err err = {0};

			fail_calls(FAIL_MEMORY, ++n);
			works[i].run(&err);
			failed = fail_end();
			if (fail_allocations() > live && !works[i].dcmtk)
				fail_msg("%s: after allocation %d failed, %ld more are left", works[i].name, n,
					 fail_allocations() - live);
			if (test_descriptors() != descriptors)
				fail_msg("%s: after allocation %d failed, a descriptor is left open", works[i].name, n);
			if (!works[i].reads)
				run_well(&works[i]);
		}
	}
}

static int set_up(void **state)
{
	static struct image_time times[2] = {{0, 10, NAN}, {10, 10, NAN}};

	test_folder(folder, sizeof(folder));
	series = volume_make(4, 3, 2, 1, 1, 2);
	dynamic = volume_make(4, 3, 2, 1, 1, 2);
	dynamic->values = realloc(dynamic->values, 2 * 24 * sizeof(float));
	dynamic->order = realloc(dynamic->order, 4 * sizeof(*dynamic->order));
	for (int i = 0; i < 48; i++)
		dynamic->values[i] = (float)i;
	for (size_t k = 0; k < 4; k++)
		dynamic->order[k] = k;
	strcpy(dynamic->type, "DYNAMIC");
	dynamic->n_images = 2;
	dynamic->time = times;
	for (int i = 0; i < 24; i++)
		series->values[i] = (float)i;
	strcpy(series->position, "HFS");
	test_put_file(in_folder("m.mhd"), MHD, strlen(MHD));
	test_put_file(in_folder("m.raw"), "abcdefgh", 8);
	test_put_file(in_folder("phantom"), "{\"diameter_mm\": 1}", 18);
	test_put_file(in_folder("token"), "abc\n", 4);
	return dicom_start(NULL);
}

static int tear_down(void **state)
{
	dynamic->time = NULL;
	dicom_stop();
	return 0;
}

TESTS_SETUP(set_up, tear_down);
