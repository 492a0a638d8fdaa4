/* SPDX-License-Identifier: Apache-2.0 */
/* Fuzz sinogram objects: arbitrary bytes give an object's facts, an acquisition, its data, or an error.
 *
 * The input is a file, or two separated by a line "====". If the hash is wrong, as in nearly every input, values are read from
 * zeros instead: only the sizes matter. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "dicom/pixels/start.h"
#include "node/config/config.h"
#include "node/sinogram/sinogram.h"
#include "tests/fuzz/fuzz.h"
#include "tests/node/sinogram/sinogram_facts.h"

#define LINE "====\n"

static struct fuzz_file file[2];
static struct config *config; /* the embedded defaults */

static void facts(const char *path)
{
	struct sinogram_facts f;
	struct err err = {0};
	int rc = read_facts(path, &f, &err);

	if (rc <= 0) {
		must(err.msg[0], "no object of ours, and no reason");
		return;
	}
	must(f.role >= 1 && f.role <= SINOGRAM_ROLES && sinogram_role_name(f.role)[0], "a role that is none");
	must(f.chunk >= 0 && f.chunk < f.n_chunks && f.instances >= f.n_chunks && f.bytes > 0, "counts that cannot be");
	must(strlen(f.sha256) == 64 && f.sop_instance[0] && f.series[0], "facts that are missing");
}

static void acquisition(size_t n)
{
	const char *const paths[] = {file[0].path, file[1].path};
	struct sinogram *s = NULL;
	struct err err = {0};

	if (sinogram_open(paths, n, NULL, config, &s, &err) < 0) {
		must(s == NULL && err.msg[0], "refused without a reason");
		return;
	}
	must(s->n_files == n && s->part[s->format->first].present, "an acquisition without data");
	must(isfinite(s->centre[0] + s->centre[1] + s->centre[2]), "a scanner that is nowhere");
	for (int role = 1; role <= SINOGRAM_ROLES; role++) {
		const struct sinogram_part *part = &s->part[role];
		const struct interfile *header = &part->header;
		size_t per_plane, planes;
		uint8_t *bytes = NULL;
		float *values;

		if (!part->present)
			continue;
		must(header->kind == sinogram_header_kind(s->format, (enum sinogram_role)role), "a header of another kind");
		must((role == SINOGRAM_LINES || role == SINOGRAM_SINGLES) == (header->kind != INTERFILE_PROJECTIONS),
		     "a role of another kind");
		must(header->kind != INTERFILE_PARALLEL || parallel_check(&header->parallel, &err) == 0, err.msg);
		must(header->kind != INTERFILE_PROJECTIONS || michelogram_check(&header->m, &err) == 0, err.msg);
		interfile_shape(header, &planes, &per_plane);
		must(part->bytes <= 1 << 20, "more data than the file has");
		if (sinogram_read(s, (enum sinogram_role)role, &bytes, &err) < 0) {
			must(bytes == NULL && err.msg[0], "not read, without a reason");
			bytes = calloc(1, part->bytes);
		}
		values = malloc(per_plane * sizeof(*values));
		for (size_t plane = 0; plane < planes; plane++)
			interfile_plane(header, bytes, plane, values);
		free(values);
		free(bytes);
	}
	sinogram_close(s);
}

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
	must(config_load(NULL, NULL, NULL, &config, &err) == 0, err.msg);
	atexit(clean_up);
	return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const uint8_t *line = memmem(data, size, LINE, strlen(LINE));
	size_t first = line ? (size_t)(line - data) : size;

	fuzz_file_fill(&file[0], data, first);
	facts(file[0].path);
	acquisition(1);
	if (!line)
		return 0;
	fuzz_file_fill(&file[1], line + strlen(LINE), size - first - strlen(LINE));
	facts(file[1].path);
	acquisition(2);
	return 0;
}
