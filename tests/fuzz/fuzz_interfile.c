/* SPDX-License-Identifier: Apache-2.0 */
/* Fuzz Interfile headers: arbitrary bytes give a header or an error. An accepted header can be completed or not, its values are
 * read within its bytes, and writing and reading it again gives the same header. Each text is also read as the header of data
 * that belong to projections of Siemens. Bytes after a line "====" are the data. Run: fuzz_interfile -max_len=8192
 * -dict=tests/fuzz/interfile.dict WORK_FOLDER tests/fuzz/corpus/interfile */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "node/config/config.h"
#include "node/format/interfile.h"
#include "tests/fuzz/fuzz.h"

#define SMALL 200000 /* bytes of values: more would only cost time */
#define LINE "====\n"

static struct config *config; /* the embedded defaults */

static void must_be_sane(const struct interfile *f)
{
	must(memchr(f->data_file, '\0', sizeof(f->data_file)) && f->data_file[0], "no data file");
	must(memchr(f->corrections, '\0', sizeof(f->corrections)) && memchr(f->scanner, '\0', sizeof(f->scanner)),
	     "a text without its end");
	must(f->bytes == 1 || f->bytes == 2 || f->bytes == 4 || f->bytes == 8, "values of no size");
	must(isfinite(f->scale) && f->scale != 0, "no scale");
	must(f->kind != INTERFILE_PARALLEL || parallel_check(&f->parallel, NULL) == 0, "a scan that no reconstruction accepts");
	must(interfile_bytes(f) > 0 && interfile_bytes(f) < (uint64_t)1 << 60, "a size out of bounds");
}

/* Read every value from a buffer of exactly the size that the header requires. */
static void read_values(const struct interfile *f, const uint8_t *data, size_t size)
{
	size_t n = (size_t)(f->offset + interfile_bytes(f)), planes, per_plane;
	uint8_t *bytes = malloc(n);
	float *values;

	interfile_shape(f, &planes, &per_plane);
	values = malloc(per_plane * sizeof(*values));
	for (size_t i = 0; i < n; i++)
		bytes[i] = size ? data[i % size] : 0;
	for (size_t plane = 0; plane < planes; plane++)
		interfile_plane(f, bytes, plane, values);
	free(bytes);
	free(values);
}

static void write_again(const struct interfile *f)
{
	struct interfile again;
	struct err err = {0};
	char *text = NULL;

	if (interfile_write(f, &text, &err) < 0) {
		must(err.msg[0], "not written, without a reason");
		return;
	}
	must(interfile_parse(text, strlen(text), &again, &err) == 0, err.msg);
	must(!again.parallel.angle == !f->parallel.angle && !strcmp(again.unit, f->unit),
	     "other angles or another unit come back");
	must(again.kind == f->kind && again.bytes == f->bytes && again.number == f->number && again.order == f->order &&
		     again.big_endian == f->big_endian && again.offset == f->offset && again.scale == f->scale &&
		     interfile_bytes(&again) == interfile_bytes(f),
	     "another header comes back");
	if (f->kind == INTERFILE_PROJECTIONS && interfile_complete(&again, NULL, &err) == 0)
		must(interfile_same_rays(f, &again, &err) == 0 && interfile_same_tof(f, &again, &err) == 0, err.msg);
	interfile_clear(&again);
	free(text);
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	struct err err = {0};

	(void)argc;
	(void)argv;
	must(config_load(NULL, NULL, NULL, &config, &err) == 0, err.msg);
	return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const uint8_t *line = memmem(data, size, LINE, strlen(LINE));
	size_t head = line ? (size_t)(line - data) : size, used = line ? head + strlen(LINE) : size;
	struct interfile f;
	struct err err = {0};
	bool big_endian;
	int rc = interfile_companion((const char *)data, head, (const int[4]){6, 4, 19, 5}, &big_endian, &err);

	must(rc == 0 || (err.msg[0] && err.code == -rc), "refused without a reason");
	err = (struct err){0};
	rc = interfile_parse((const char *)data, head, &f, &err);
	if (rc < 0) {
		must(err.msg[0] && err.code == -rc, "refused without a reason");
		return 0;
	}
	must_be_sane(&f);
	if (f.kind != INTERFILE_PROJECTIONS) {
		write_again(&f);
		if (f.kind != INTERFILE_IMAGE && f.offset < SMALL && interfile_bytes(&f) < SMALL)
			read_values(&f, data + used, size - used);
	} else if (interfile_complete(&f, NULL, &err) == 0 ||
		   interfile_complete(&f, config->n_scanners ? &config->scanners[0] : NULL, &err) == 0) {
		must(michelogram_check(&f.m, &err) == 0, err.msg);
		must(interfile_same_rays(&f, &f, &err) == 0, err.msg);
		write_again(&f);
		if (f.offset < SMALL && interfile_bytes(&f) < SMALL)
			read_values(&f, data + used, size - used);
	}
	interfile_clear(&f);
	return 0;
}
