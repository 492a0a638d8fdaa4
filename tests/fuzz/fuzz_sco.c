/* SPDX-License-Identifier: Apache-2.0 */
/* Fuzz what is read of Hologic units: a file (an SCO object or a Breast Projection object with projection matrices) is opened as
 * an exam and as slices, and its frames are decoded; other bytes are the text of the matrices, and a container. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "dicom/pixels/sco_container.h"
#include "dicom/pixels/start.h"
#include "node/tomo/exam.h"
#include "node/tomo/pose_text.h"
#include "node/tomo/tomo_slices.h"
#include "node/tools/image_series.h"
#include "tests/fuzz/fuzz.h"

#define SMALL_FRAME (1 << 20) /* values; larger frames are not decoded, to save time */

static const char conf[] = "profiles = ( { name = \"fuzz\"; manufacturer = \"HOLOGIC*\"; model = \"*Dimensions*\"; axis_height = "
			   "0.0; source_axis = 695.1; support = 25.0;"
			   " source_x = -13.7; pitch = 0.5; elements_x = 16; elements_y = 24; sid_tolerance = 6.0; angle_sign = "
			   "-1; sco = true; pose = \"header\"; "
			   "pose_level = 0.6; } );";
static struct config *config;
static struct fuzz_file input;

static void clean_up(void)
{
	config = config_free(config);
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	struct err err = {0};

	(void)argc;
	(void)argv;
	must(dicom_start(&err) == 0, err.msg);
	must(config_parse(conf, "fuzz.conf", NULL, NULL, &config, &err) == 0, err.msg);
	atexit(clean_up);
	return 0;
}

static void try_text(const uint8_t *data, size_t size)
{
	struct pose_text p;
	struct err err = {0};
	double m[12];

	if (pose_text_read((const char *)data, size, &p, &err) < 0) {
		must(err.msg[0], "no reason");
		return;
	}
	must(p.n_views >= 2 && p.n_views <= POSE_VIEWS_MAX, "an impossible number of views");
	for (int i = 0; i < p.n_views; i++) {
		pose_text_matrix(&p, p.theta[i], m);
		for (int j = 0; j < 12; j++)
			must(isfinite(m[j]), "a number that is none");
	}
}

/* The first bytes are the head and the table, the rest only counts. */
static void try_container(const uint8_t *data, size_t size)
{
	struct sco_container c;
	struct err err = {0};

	if (size < SCO_HEAD_SIZE + SCO_TABLE_SIZE)
		return;
	if (sco_container_read(data, data + SCO_HEAD_SIZE, size, &c, &err) < 0) {
		must(err.msg[0], "no reason");
		return;
	}
	must(c.info.frames >= 1 && c.info.frames <= SCO_FRAMES_MAX && c.offset[0] >= SCO_HEAD_SIZE, "an impossible container");
	for (long i = 0; i < c.info.frames; i++)
		must(c.offset[i] < c.offset[i + 1] && c.offset[i + 1] <= size - SCO_TABLE_SIZE, "an offset outside");
}

static void try_frames(const struct sco *sco)
{
	const struct dicom_pixel_info *info = sco_info(sco);
	struct err err = {0};

	if (info->rows * info->columns > SMALL_FRAME)
		return;
	uint16_t *values = malloc((size_t)(info->rows * info->columns) * 2);
	for (long frame = 0; values && frame < info->frames && frame < 3; frame++) {
		if (sco_read_frame(sco, frame, values, &err) < 0)
			continue;
		for (long k = 0; k < info->rows * info->columns; k++)
			must(values[k] >> info->bits_stored == 0, "a value above its bits");
	}
	free(values);
}

/* Open it as slices, and read some of them as `export` does. */
static void try_slices(void)
{
	static const double voxel[3] = {0.1, 0.1, 1};
	char notes[SLICES_NOTES_SIZE];
	struct image_series *s = NULL;
	struct tomo_object *t = NULL;
	const float *values = NULL;
	struct err err = {0};

	if (tomo_slices_open(input.path, config, voxel, &t, notes, &err) < 0 &&
	    tomo_slices_open(input.path, config, NULL, &t, notes, &err) < 0) {
		must(t == NULL && err.msg[0], "slices refused without a reason");
		return;
	}
	must(!t->sco == !notes[0], "slices without notes");
	if (t->info.rows * t->info.columns <= SMALL_FRAME && image_series_of_tomo(&t, input.path, &s, &err) == 0) {
		must(t == NULL && s->n[2] >= 1 && s->spacing[2] > 0 && isfinite(s->corner[0]), "an impossible volume");
		for (int k = 0; k < s->n[2] && k < 3; k++) {
			if (image_series_slice(s, 0, k, &values, &err) < 0)
				continue;
			for (int i = 0; s->tomo->sco && i < s->n[0] * s->n[1]; i++)
				must(values[i] >= 0 && values[i] < 65536, "a value that cannot be stored");
		}
	}
	image_series_close(s);
	tomo_object_close(t);
}

static void try_file(const uint8_t *data, size_t size)
{
	const char *const paths[] = {input.path};
	struct dicom_file *file = NULL;
	struct exam *exam = NULL;
	struct err err = {0};

	fuzz_file_fill(&input, data, size);
	if (dicom_open(input.path, &file, &err) == 0) {
		for (int i = 0; i < 2; i++) {
			struct sco *sco = NULL;

			if (sco_open(file, i ? SCO_LOWER : SCO_FULL, &sco, &err) == 0)
				try_frames(sco);
			sco_close(sco);
		}
		dicom_close(file);
	}
	if (exam_open(paths, 1, false, NULL, config, &exam, &err) < 0)
		must(exam == NULL && err.msg[0], "an exam refused without a reason");
	else
		must(exam->n_views > 1 && exam->scan != NULL, "an exam without views");
	exam_close(exam);
	try_slices();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (size > 132 && !memcmp(data + 128, "DICM", 4)) {
		try_file(data, size);
		return 0;
	}
	try_text(data, size);
	try_container(data, size);
	return 0;
}
