/* SPDX-License-Identifier: Apache-2.0 */
/* Fuzz attenuation maps: arbitrary bytes give a map or an error, never a crash, a leak or reading another file. The first
 * byte selects the form: NIfTI, MetaImage, or an Interfile image with a matrix: header, "====", data, "====", matrix. Run:
 * fuzz_maps -max_len=8192 WORK_FOLDER tests/fuzz/corpus/maps */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "node/format/map_file.h"
#include "tests/fuzz/fuzz.h"

#define LINE "====\n"
#define SMALL 100000 /* voxels: more would only cost time */

static char folder[] = "/tmp/fuzz-maps-XXXXXX", path[3][64];

static void write_file(const char *at, const uint8_t *data, size_t n)
{
	FILE *f = fopen(at, "wb");

	if (!f || fwrite(data, 1, n, f) != n || fclose(f) != 0)
		abort();
}

/* Write the text before the next line to a file; return what is after it. */
static const uint8_t *write_part(const char *at, const uint8_t *data, size_t *n)
{
	const uint8_t *line = memmem(data, *n, LINE, strlen(LINE));
	size_t used = line ? (size_t)(line - data) : *n;

	write_file(at, data, used);
	used += line ? strlen(LINE) : 0;
	*n -= used;
	return data + used;
}

static void check_map(const struct map_file *m)
{
	size_t n = 1;

	for (int a = 0; a < 3; a++)
		n *= (size_t)m->n[a];
	if (n != volume_file_count(&m->file) || m->unit == MAP_UNKNOWN || m->stride[0] + m->stride[1] + m->stride[2] < 3)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const char *const names[] = {"m.nii", "m.mha", "m.hv"};
	struct map_request r = {.path = path[0]};
	struct map_file m = {0};
	struct err err = {0};
	int rc;

	if (size == 0 || (!path[0][0] && !mkdtemp(folder)))
		return 0;
	snprintf(path[0], sizeof(path[0]), "%s/%s", folder, names[data[0] % 3]);
	snprintf(path[1], sizeof(path[1]), "%s/d", folder);
	snprintf(path[2], sizeof(path[2]), "%s/matrix", folder);
	size--;
	if (data[0] % 3 < 2) {
		write_file(path[0], data + 1, size);
	} else {
		const uint8_t *rest = write_part(path[1], write_part(path[0], data + 1, &size), &size);

		write_part(path[2], rest, &size);
		r.matrix = path[2];
	}
	rc = map_file_open(&r, &m, &err);
	if (rc == 0 && volume_file_count(&m.file) <= SMALL) {
		rc = map_file_read(&m, &err);
		if (rc == 0)
			check_map(&m);
		map_file_clear(&m);
	}
	if (rc < 0 && !err.msg[0])
		abort();
	for (int i = 0; i < 3; i++)
		unlink(path[i]);
	return 0;
}
