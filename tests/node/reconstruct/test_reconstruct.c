/* SPDX-License-Identifier: Apache-2.0 */
/* Test reconstruct_case(): the report; no files remain if it is cancelled, too large or refused. */
#include "tests/node/tomo/exam_edits.h"
#include "tests/test.h"

#include <dlfcn.h>
#include <sys/statfs.h>
#include <sys/statvfs.h>

#include "node/base/device_names.h"
#include "node/reconstruct/case_files.h"
#include "node/reconstruct/reconstruct_internal.h"

struct stop {
	const char *stage; /* cancel when this stage begins */
	bool seen;
	char stages[256];
};

static void on_progress(void *ctx, const char *stage, double fraction)
{
	struct stop *s = ctx;
	size_t n = strlen(s->stages);

	assert_true(fraction >= 0 && fraction <= 1);
	if (!strstr(s->stages, stage))
		snprintf(s->stages + n, sizeof(s->stages) - n, "%s,", stage);
	if (s->stage && !strcmp(stage, s->stage))
		s->seen = true;
}

static bool is_cancelled(void *ctx)
{
	return ((struct stop *)ctx)->seen;
}

static int entries(void)
{
	DIR *d = opendir(fixture_folder);
	int n = 0;

	while (readdir(d))
		n++;
	closedir(d);
	return n - 2;
}

static int reconstruct(struct protocol_conf *p, const char *device, struct stop *stop, struct reconstruct_report *ret_report,
		       struct err *err)
{
	struct monitor monitor = {.ctx = stop, .progress = on_progress, .cancelled = is_cancelled};
	char names[N_VIEWS][256];
	const char *paths[N_VIEWS];
	struct device *dev = NULL;
	int rc;

	for (int i = 0; i < N_VIEWS; i++) {
		snprintf(names[i], sizeof(names[i]), "%s/%d.dcm", fixture_folder, i);
		paths[i] = names[i];
	}
	assert_int_equal(device_open(device, &dev, NULL), 0);
	rc = reconstruct_case(fixture_config, p, dev, NULL, NULL, paths, N_VIEWS, &(struct case_decision){0}, fixture_folder,
			      stop ? &monitor : NULL, ret_report, err);
	device_close(dev);
	return rc;
}

static struct protocol_conf protocol(void)
{
	struct protocol_conf p = *config_protocol(fixture_config, "dbt-osem");
	struct err err = {0};

	assert_int_equal(config_set(&p, "voxel=2", &err), 0);
	assert_int_equal(config_set(&p, "slice_spacing=3", &err), 0);
	return p;
}

TEST(test_whole)
{
	struct protocol_conf p = protocol();
	struct reconstruct_report report GOES(reconstruct_report_clear) = {0};
	struct stop stop = {0};
	struct dicom_pixel_info info;
	struct dicom_file *file = NULL;
	struct err err = {0};
	char uid[DICOM_UID_SIZE];
	const json_t *bins;

	fixture_write_mg(&(struct fixture_mg){.n = N_VIEWS});
	assert_done(reconstruct(&p, "cpu:2", &stop, &report, &err), &err);
	assert_int_equal(entries(), N_VIEWS + 1); /* the sources and one result */
	assert_int_equal(dicom_open(fixture_path(report.objects[0].file), &file, &err), 0);
	assert_int_equal(dicom_pixels_info(file, &info, &err), 0);
	assert_true(info.columns == COLUMNS / 2 && info.rows == ROWS / 2 && info.frames == 4); /* 2 mm; 12 mm in slices of 3 */
	assert_true(report.n[0] == info.columns && report.n[1] == info.rows && report.n[2] == info.frames);
	assert_true(report.voxel[0] == 2 && report.voxel[1] == 2 && report.voxel[2] == 3 && report.n_views == N_VIEWS);
	assert_int_equal(dicom_get_text(dicom_root(file), TAG_SOP_INSTANCE_UID, uid, sizeof(uid), &err), 1);
	assert_string_equal(uid, report.objects[0].sop_instance);
	assert_int_equal(dicom_get_text(dicom_root(file), TAG_SERIES_INSTANCE_UID, uid, sizeof(uid), &err), 1);
	assert_string_equal(uid, report.objects[0].series);
	assert_string_equal(report.profile, "bench");
	assert_non_null(strstr(report.device, "cpu"));
	assert_true(report.bytes_device > 0 && report.seconds_total > 0);
	bins = json_object_get(report.details, "bins");
	assert_int_equal(json_integer_value(json_object_get(bins, "padded")), 0);
	assert_int_equal(json_integer_value(json_object_get(bins, "saturated")), 0);
	assert_int_equal(json_object_size(bins), 7);
	assert_true(json_is_true(json_object_get(report.details, "quantitative")));
	assert_int_equal(strncmp(report.warnings, "Geometry from literature: ", 26), 0); /* and no other warning before it */
	assert_non_null(
		strstr(json_string_value(json_object_get(report.details, "omitted")), "Contributing Sources is left out"));
	assert_string_equal(report.content, "5 projections");
	assert_int_equal(report.n_objects, 1);
	assert_false(report.is_series);
	assert_true(report.objects[0].bytes > 0);
	assert_non_null(strstr(stop.stages, "read,"));
	assert_non_null(strstr(stop.stages, "write,"));
	dicom_close(file);
}

/* The digests of all objects are those of their files, also where the offset table of encoded frames is written at the end. */
TEST(test_digests)
{
	static const char *const compressions[] = {"compression=none", "compression=jpeg-ls"};

	for (int i = 0; i < 2; i++) {
		struct protocol_conf p = protocol();
		struct reconstruct_report report GOES(reconstruct_report_clear) = {0};
		struct err err = {0};

		assert_int_equal(config_set(&p, compressions[i], &err), 0);
		assert_int_equal(config_set(&p, "slab_thickness=6", &err), 0);
		assert_int_equal(config_set(&p, "synthetic=true", &err), 0);
		fixture_write_mg(&(struct fixture_mg){.n = N_VIEWS});
		assert_done(reconstruct(&p, "cpu:2", NULL, &report, &err), &err);
		assert_int_equal(report.n_objects, 3);
		for (size_t k = 0; k < report.n_objects; k++) {
			const char *path = fixture_path(report.objects[k].file);
			char hex[DIGEST_SIZE];
			int code;

			assert_int_equal(digest_files(&path, 1, 1, &hex, &code, &err), 0);
			assert_int_equal(code, 0);
			assert_string_equal(report.objects[k].digest, hex);
		}
	}
}

static void nothing_left(int code, const char *part, struct protocol_conf *p, const char *device, struct stop *stop)
{
	struct reconstruct_report report = {0};
	struct err err = {0};
	int before = entries();

	assert_int_equal(reconstruct(p, device, stop, &report, &err), -code);
	if (err.code != code || !strstr(err.msg, part))
		fail_msg("'%s' does not hold '%s'", err.msg, part);
	assert_int_equal(report.n_objects, 0);
	assert_int_equal(entries(), before);
}

/* Without air, and without a value of the profile, the attenuation is relative: object and report say so, or the case is held. */
TEST(test_relative)
{
	static const struct edit part[] = {{-1, TAG_MANUFACTURER_MODEL_NAME, "Part"}, {0}},
				 air[] = {{-1, TAG_MANUFACTURER_MODEL_NAME, "Air"}, {-1, TAG_EXPOSURE_IN_UAS, "4000"}, {0}};
	struct protocol_conf p = protocol();
	struct reconstruct_report report GOES(reconstruct_report_clear) = {0};
	struct dicom_file *file = NULL;
	struct err err = {0};
	char text[1024];

	fixture_write_mg(&(struct fixture_mg){.n = N_VIEWS, .change = edit, .ctx = part});
	assert_int_equal(reconstruct(&p, "cpu", NULL, &report, &err), 0);
	assert_true(json_is_false(json_object_get(report.details, "quantitative")));
	assert_int_equal(json_integer_value(json_object_get(json_object_get(report.details, "unattenuated"), "unknown")),
			 N_VIEWS);
	assert_non_null(strstr(report.warnings, "The attenuation is relative: "));
	assert_string_equal(json_string_value(json_object_get(report.details, "warnings")), report.warnings);
	assert_int_equal(dicom_open(fixture_path(report.objects[0].file), &file, &err), 0);
	const struct dicom_item *shared = dicom_item_at(dicom_root(file), TAG_SHARED_FUNCTIONAL_GROUPS_SEQUENCE, 0),
				*map = dicom_item_at(shared, TAG_REAL_WORLD_VALUE_MAPPING_SEQUENCE, 0),
				*derivation = dicom_item_at(shared, TAG_DERIVATION_IMAGE_SEQUENCE, 0);
	assert_int_equal(dicom_get_text(map, TAG_LUT_LABEL, text, sizeof(text), &err), 1);
	assert_string_equal(text, "RELATIVE");
	assert_int_equal(dicom_get_text(derivation, TAG_DERIVATION_DESCRIPTION, text, sizeof(text), &err), 1);
	assert_non_null(strstr(text, report.warnings));
	dicom_close(file);
	reconstruct_report_clear(&report);
	fixture_write_mg(&(struct fixture_mg){.n = N_VIEWS, .change = edit, .ctx = part});
	assert_int_equal(config_set(&p, "require_quantitative=true", &err), 0);
	nothing_left(EBADMSG, "would be relative (", &p, "cpu", NULL);

	fixture_write_mg(&(struct fixture_mg){.n = N_VIEWS, .change = edit, .ctx = air});
	assert_int_equal(config_set(&p, "stored_step=1e-7", &err), 0);
	assert_int_equal(reconstruct(&p, "cpu", NULL, &report, &err), 0);
	assert_int_equal(json_integer_value(json_object_get(json_object_get(report.details, "unattenuated"), "profile")),
			 N_VIEWS);
	assert_int_equal(strncmp(report.warnings, "Geometry from literature: ", 26), 0);
	/* values above the range of the stored values are no longer clipped without a word */
	assert_non_null(strstr(report.warnings, "Voxels above 0.0065535 / mm are stored as this limit: "));
	assert_true(json_integer_value(json_object_get(json_object_get(report.details, "stored"), "above")) > 0);
	reconstruct_report_clear(&report);
	fixture_write_mg(&(struct fixture_mg){.n = N_VIEWS, .change = edit, .ctx = air});
	assert_int_equal(config_set(&p, "stored_step=1e-4", &err), 0);
	assert_int_equal(reconstruct(&p, "cpu", NULL, &report, &err), 0);
	assert_int_equal(strncmp(report.warnings, "Geometry from literature: ", 26), 0);
	assert_null(strstr(report.warnings, "voxels"));
}

TEST(test_nothing_left)
{
	struct protocol_conf p = protocol();
	struct err err = {0};

	fixture_write_mg(&(struct fixture_mg){.n = N_VIEWS});
	nothing_left(ECANCELED, "cancelled", &p, "cpu", &(struct stop){.stage = "read"});
	nothing_left(ECANCELED, "cancelled", &p, "cpu", &(struct stop){.stage = "write"});
	assert_int_equal(config_set(&p, "memory_limit=1000", &err), 0);
	nothing_left(ENOMEM, "limit", &p, "cpu", NULL);
	p = protocol();
	assert_int_equal(unlink(fixture_path("3.dcm")), 0);
	nothing_left(ENOENT, "3.dcm", &p, "cpu", NULL);
	fixture_write_mg(&(struct fixture_mg){.n = N_VIEWS});
	assert_int_equal(truncate(fixture_path("3.dcm"), 2200), 0); /* within the pixels */
	nothing_left(EBADMSG, "3.dcm", &p, "cpu", NULL);
}

/* Group the files of folders into cases: two views, a duplicate, a file of another exam, a damaged file, a text file. */
TEST(test_cases)
{
	struct case_list *list = NULL;
	struct err err = {0};
	char *paths[] = {fixture_folder, NULL};
	char beside[128];
	FILE *f;

	snprintf(beside, sizeof(beside), "%s.dcm", fixture_folder);
	fixture_write_bp(NULL);
	assert_int_equal(rename(fixture_path("0.dcm"), beside), 0);
	fixture_write_mg(&(struct fixture_mg){.n = 3});
	assert_int_equal(rename(beside, fixture_path("bp.dcm")), 0);
	assert_int_equal(link(fixture_path("1.dcm"), fixture_path("1-again.dcm")), 0);
	f = fopen(fixture_path("notes.txt"), "w");
	assert_non_null(f);
	fputs("no images", f);
	fclose(f);
	f = fopen(fixture_path("broken.dcm"), "w");
	assert_non_null(f);
	for (int i = 0; i < 128; i++)
		fputc(0, f);
	fputs("DICM and no more", f);
	fclose(f);
	assert_done(case_list_create(paths, &list, &err), &err);
	assert_int_equal(list->n_files, 7);
	assert_int_equal(list->n, 2);
	assert_int_equal(list->cases[0].n + list->cases[1].n, 4);
	assert_int_equal(list->n_duplicates, 1);
	assert_int_equal(list->n_other, 1);
	assert_int_equal(list->n_refused, 1);
	assert_non_null(strstr(list->refused[0].path, "broken.dcm"));
	assert_true(list->refused[0].reason[0]);
	case_list_free(list);
	paths[0] = (char[]){"/no/such/folder"};
	list = NULL;
	assert_true(case_list_create(paths, &list, &err) < 0);
	assert_non_null(strstr(err.msg, "/no/such/folder"));
}

static void expect_refused(int code, const char *words)
{
	struct reconstruct_report report = {0};
	struct protocol_conf p = protocol();
	struct err err = {0};
	int before = entries();

	assert_int_equal(reconstruct(&p, "cpu:1", NULL, &report, &err), -code);
	if (!strstr(err.msg, words))
		fail_msg("'%s' is not in: %s", words, err.msg);
	assert_int_equal(entries(), before);
}

/* The size of the result is checked before anything is read: against node.max_result, the disk, and its free space. */
TEST(test_result_too_large)
{
	struct node_conf *node = &fixture_config->node, before = *node;
	struct statvfs disk;

	fixture_write_mg(&(struct fixture_mg){.n = N_VIEWS});
	node->max_result = 1000;
	expect_refused(ENOTSUP, "node.max_result allows 0 MB");
	node->max_result = 0;
	node->reserve = (uint64_t)1e15; /* counts in the spool only */
	snprintf(node->spool, sizeof(node->spool), "%s", fixture_folder);
	*strrchr(node->spool, '/') = '\0';
	expect_refused(ENOTSUP, "the disk of ");
	assert_int_equal(statvfs(fixture_folder, &disk), 0);
	/* between free space and size, so that what other programs write and remove meanwhile does not matter */
	node->reserve = ((uint64_t)disk.f_bavail + disk.f_blocks) / 2 * disk.f_frsize;
	expect_refused(ENOSPC, "of free space");
	*node = before;
}

/* Shapes of real scans: grid of the result, and bytes of the data. Those whose size follows the data pass with the size of the
 * detector or of the lines; only one that asks for far more than was sent is held. */
TEST(test_automatic_size)
{
	static const struct {
		const char *what;
		int n[3];
		double bytes;
		int rc;
	} shapes[] = {
		{"Siemens, 25 views of 14 bits, compressed 3:1", {2816, 3584, 60}, 25 * 2816 * 3584 * 2.0 / 3, 0},
		{"GE, 9 views of 14 bits, 90 mm, compressed 3:1", {2850, 2394, 90}, 9 * 2850 * 2394 * 2.0 / 3, 0},
		{"GE, 200 mm, the thickest allowed, compressed 3:1", {2850, 2394, 200}, 9 * 2850 * 2394 * 2.0 / 3, 0},
		{"Hologic, 15 views, 60 mm", {1280, 2048, 60}, 15 * 1280 * 2048 * 2.0, 0},
		{"300 lines at 2 angles, floats", {300, 300, 47}, 300 * 2 * 47 * 4.0, 0},
		{"2048 lines at 60 angles, 16 bits", {2048, 2048, 500}, 2048.0 * 60 * 500 * 2, 0},
		{"4096 lines at 90 angles, 8 bits", {4096, 4096, 100}, 4096 * 90 * 100, 0},
		{"4096 lines at 1 angle, 14 slices: within the bytes that are always allowed",
		 {4096, 4096, 14},
		 4096 * 14 * 4,
		 0},
		{"4096 lines at 1 angle, 120 slices", {4096, 4096, 120}, 4096 * 120 * 4, -ENOTSUP},
		{"2 views of equal bins, compressed", {4096, 4096, 200}, 100000, -ENOTSUP},
	};
	struct protocol_conf p = {.name = "quick"};
	struct config config = {.node.max_result = (uint64_t)8e9};
	const char *paths[] = {fixture_path("sent.dcm")};
	struct err err = {0};

	for (size_t i = 0; i < sizeof(shapes) / sizeof(shapes[0]); i++) {
		const int *n = shapes[i].n;
		struct grid grid = {.n = {n[0], n[1], n[2]}};
		struct reconstruct_work w = {
			.config = &config, .protocol = &p, .paths = paths, .n_paths = 1, .out_dir = "/nowhere/at/all"};
		FILE *f = fopen(paths[0], "w");

		assert_non_null(f);
		fclose(f);
		assert_int_equal(truncate(paths[0], (off_t)shapes[i].bytes), 0);
		if (reconstruct_check_size(&w, &grid, "matrix", &err) != shapes[i].rc)
			fail_msg("%s: %s", shapes[i].what, err.msg);
		assert_int_equal(reconstruct_check_size(&w, &grid, NULL, &err), 0); /* the protocol has the size */
		config.node.max_result = 0;
		assert_int_equal(reconstruct_check_size(&w, &grid, "matrix", &err), 0);
		config.node.max_result = (uint64_t)8e9;
	}
	assert_string_equal(err.msg,
			    "the result of 4096 x 4096 x 200 voxels has 6711 MB, but the data only 0.1 MB; with matrix = 0, "
			    "a result may have 500 MB, or 100 times its data: set matrix in the protocol 'quick'");
	unlink(paths[0]);
}

static uint64_t free_while_writing; /* bytes; 0: the real ones */

/* Takes the place of the C library's function, also in the writer of objects. */
int fstatfs(int fd, struct statfs *ret)
{
	union {
		void *symbol;
		int (*call)(int, struct statfs *);
	} next = {dlsym(RTLD_NEXT, "fstatfs")};
	int r = next.call(fd, ret);

	if (free_while_writing) {
		ret->f_bsize = 1;
		ret->f_bavail = free_while_writing;
	}
	return r;
}

/* Space that was free when the size was checked, and that others have taken since then: writing stops at node.reserve. */
TEST(test_reserve_while_writing)
{
	struct node_conf *node = &fixture_config->node, before = *node;

	fixture_write_mg(&(struct fixture_mg){.n = N_VIEWS});
	node->reserve = 100000;
	free_while_writing = 100100;
	snprintf(node->spool, sizeof(node->spool), "%s", fixture_folder);
	*strrchr(node->spool, '/') = '\0';
	expect_refused(ENOSPC, "too little free space beside node.reserve: result: ");
	expect_refused(ENOSPC, " bytes to write, but 100100 are free, of which 100000 must stay free");
	*node = before; /* outside the spool nothing is reserved */
	free_while_writing = 100;
	expect_refused(ENOSPC, " bytes to write, but 100 are free, of which 0 must stay free");
	free_while_writing = 0;
}

static int check_memory(struct reconstruct_work *w, size_t allowed, struct err *err)
{
	device_names_limit(w->dev, allowed);
	return reconstruct_reserve_memory(w, 3000000, 2000000, 0, err);
}

static int refuse_memory(void *ctx, size_t device, size_t host)
{
	return *(const int *)ctx;
}

/* The control group's limit counts the host's memory, and on a CPU that of the plan. What other workers use is no cancellation. */
TEST(test_memory_of_the_group)
{
	struct protocol_conf protocol = {.name = "slow"};
	struct device *cpu = NULL;
	struct err err = {0};

	assert_int_equal(device_open("cpu:1", &cpu, &err), 0);
	struct device_ops other = *cpu->ops;
	struct device gpu = *cpu;
	struct reconstruct_work w = {.protocol = &protocol, .dev = cpu};

	other.kind = "cuda";
	gpu.ops = &other;
	assert_int_equal(check_memory(&w, 0, &err), 0); /* no group limits it */
	assert_int_equal(check_memory(&w, 5000000, &err), 0);
	assert_int_equal(check_memory(&w, 4999999, &err), -ENOTSUP);
	assert_non_null(strstr(
		err.msg, "'slow' needs 5 MB of main memory; the control group of the node (container, MemoryMax) allows 5 MB"));
	w.dev = &gpu;
	assert_int_equal(check_memory(&w, 2000000, &err), 0);
	assert_error(check_memory(&w, 1900000, &err), &err, ENOTSUP,
		     "2 MB of main memory beside the device's; the control group");
	for (int i = 0; i < 2; i++) {
		int code = i == 0 ? EAGAIN : ECANCELED, answer = -code;

		w.monitor = &(struct monitor){.ctx = &answer, .reserve = refuse_memory};
		assert_error(check_memory(&w, 0, &err), &err, code, i == 0 ? "other workers use the 5000000 bytes" : "cancelled");
	}
	device_close(cpu);
}

TESTS_SETUP(fixture_start, fixture_stop);
