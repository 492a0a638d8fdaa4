/* SPDX-License-Identifier: Apache-2.0 */
/* Fuzz the reader of DICOM files with arbitrary bytes: open, walk through the whole data set with every getter, copy it, decode
 * small frames.
 *
 * The input is a whole file. It is stored in a file in memory that all runs share, with a name in /proc, so that the reader
 * treats it like any file. The table `stages` has a function for each later stage that uses a file (facts of an exam, an exam of
 * one file, another object of its UID). */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "dicom/pixels/content.h"
#include "dicom/pixels/pixels.h"
#include "dicom/pixels/start.h"
#include "node/config/config.h"
#include "node/reconstruct/case_facts.h"
#include "node/tomo/exam.h"
#include "tests/fuzz/fuzz.h"

#define SMALL_FRAME (1 << 20) /* values; larger frames are not decoded, to save time */

static struct fuzz_file input;
static char copy_path[64];
static struct config *config; /* the embedded defaults */

/* Tags that the program reads, of all VRs, and one private tag. */
static const uint32_t tags[] = {
	0x00080005, 0x00080008, 0x00080016, 0x00080018, 0x00080060, 0x00100010, 0x00180060, 0x00181110, 0x00181149,
	0x00181164, 0x00181510, 0x00189545, 0x0020000d, 0x00200013, 0x00200020, 0x00200032, 0x00280002, 0x00280004,
	0x00280008, 0x00280009, 0x00280010, 0x00280011, 0x00280030, 0x00280100, 0x00280103, 0x00280120, 0x00281040,
	0x00281052, 0x00420011, 0x00710010, 0x00711002, 0x7fe00010, 0xfffcfffc,
};
static const uint32_t sequences[] = {0x00081140, 0x00089215, 0x00189506, 0x00289110,
				     0x00540220, 0x00540222, 0x52009229, 0x52009230};

static void walk(const struct dicom_item *item, struct dicom_item *copy, unsigned depth)
{
	struct err err;
	char text[256];
	double d;
	long i;

	for (size_t k = 0; k < sizeof(tags) / sizeof(tags[0]); k++) {
		err.code = 0;
		memset(text, 'x', sizeof(text));
		int r = dicom_get_text(item, tags[k], text, sizeof(text), &err);
		must(memchr(text, '\0', sizeof(text)) != NULL, "a text without its end");
		must(r >= 0 || err.code == -r, "an error that is not in the box");
		must(r <= 0 || dicom_has(item, tags[k]), "a text out of nowhere");
		for (unsigned n = 0; n < 3; n++) {
			dicom_get_text_at(item, tags[k], n, text, 16, &err);
			d = NAN;
			must(dicom_get_double(item, tags[k], n, &d, &err) <= 0 || isfinite(d), "a number that is none");
			dicom_get_int(item, tags[k], n, &i, &err);
		}
		dicom_copy(item, tags[k], copy, &err);
	}
	for (size_t k = 0; k < sizeof(sequences) / sizeof(sequences[0]); k++) {
		size_t n = dicom_item_count(item, sequences[k]);

		must(dicom_item_at(item, sequences[k], n) == NULL, "an item behind the last");
		for (size_t j = 0; j < n && j < 3; j++)
			if (depth < 17)
				walk(dicom_item_at(item, sequences[k], j), copy, depth + 1);
		dicom_copy(item, sequences[k], copy, &err);
	}
}

static void pixels(struct dicom_file *file)
{
	struct dicom_pixel_info info;
	struct err err;

	if (dicom_pixels_info(file, &info, &err) < 0)
		return;
	must(info.rows > 0 && info.columns > 0 && info.frames > 0, "an image without extent");
	if (info.rows * info.columns > SMALL_FRAME)
		return;
	uint16_t *values = malloc((size_t)(info.rows * info.columns) * 2);
	for (long frame = 0; frame < info.frames && frame < 3; frame++) {
		if (dicom_read_frame(file, frame, values, &err) < 0)
			continue;
		for (long k = 0; k < info.rows * info.columns; k++)
			must(info.bits_stored == 16 || values[k] >> info.bits_stored == 0, "a value above its bits");
	}
	free(values);
}

/* Open the file, walk through it, decode frames; write a copy and read it. */
static void stage_read(void)
{
	struct dicom_file *file = NULL, *copy = NULL;
	struct err err = {0};

	int r = dicom_open(input.path, &file, &err);
	must(r == 0 ? file != NULL : file == NULL && err.code == -r && err.msg[0], "an answer that is neither");
	if (r < 0)
		return;
	must(dicom_new("1.2.840.10008.5.1.4.1.1.66", "1.2.3", &copy, &err) == 0, "no new data set");
	walk(dicom_root(file), dicom_root(copy), 0);
	pixels(file);
	dicom_close(file); /* closed before the copy is written: the copy must not depend on it */
	r = dicom_write(copy_path, copy, &err);
	dicom_close(copy);
	if (r == 0) {
		must(dicom_open(copy_path, &file, &err) == 0, err.msg);
		dicom_close(file);
	}
}

/* Read the facts that the indexer reads from every received file. */
static void stage_facts(void)
{
	struct case_facts facts;
	struct err err = {0};
	char key[512];

	if (case_read_facts(input.path, &facts, &err) < 0)
		return;
	must(memchr(facts.reason, '\0', sizeof(facts.reason)) && memchr(facts.sop_instance, '\0', sizeof(facts.sop_instance)),
	     "facts without their end");
	must(facts.kind || facts.reason[0], "no kind of case, and no reason");
	case_key(&facts, key, sizeof(key));
}

/* Read the file as a worker does: as an exam of one file, and its views if they are small. */
static void stage_exam(void)
{
	const char *const paths[] = {input.path};
	struct exam *exam = NULL;
	struct dicom_pixel_info info;
	struct err err = {0};
	struct exam_i0 alone;
	struct view_air air;

	if (exam_open(paths, 1, false, NULL, config, &exam, &err) < 0) {
		must(exam == NULL && err.msg[0], "an exam refused without a reason");
		return;
	}
	must(exam->n_views > 0 && exam->n_files == 1, "an exam without views");
	if (dicom_pixels_info(exam->files[0], &info, &err) == 0 && info.rows * info.columns <= SMALL_FRAME) {
		uint16_t *values = malloc((size_t)(info.rows * info.columns) * 2);

		for (int view = 0; view < exam->n_views && view < 3; view++)
			if (exam_read_view(exam, view, values, &err) == 0 && !exam->prep.is_log)
				exam_measure_view(exam, view, values, &air, &alone, &err);
		free(values);
	}
	exam_close(exam);
}

/* Compare the file with itself, as the node does with an object that comes again. */
static void stage_content(void)
{
	enum dicom_content content = DICOM_CONTENT_REPAIRS;
	struct err err = {0};
	char where[100];

	if (dicom_compare_content(input.path, input.path, 0.1, &content, where, sizeof(where), &err) == 0)
		must(content != DICOM_CONTENT_REPAIRS, "compared with itself, a file is no repair of it");
}

static void (*const stages[])(void) = {stage_read, stage_facts, stage_exam, stage_content};

static void clean_up(void)
{
	unlink(copy_path);
	config = config_free(config);
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	struct err err = {0};

	(void)argc;
	(void)argv;
	must(dicom_start(&err) == 0, err.msg);
	must(config_load(NULL, NULL, NULL, &config, &err) == 0, err.msg);
	snprintf(copy_path, sizeof(copy_path), "/dev/shm/fuzz_dicom.%d", (int)getpid());
	atexit(clean_up);
	return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	fuzz_file_fill(&input, data, size);
	for (size_t k = 0; k < sizeof(stages) / sizeof(stages[0]); k++)
		stages[k]();
	return 0;
}
