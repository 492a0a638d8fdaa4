/* SPDX-License-Identifier: Apache-2.0 */
/* Fuzz MetaImage volumes and materials files: arbitrary bytes give a phantom or an error, never a crash, a leak or reading
 * another file. The input is the header, a line "====", the elements, which the header must name "d", and, after another such
 * line, the materials. Run: fuzz_mhd -max_len=8192 WORK_FOLDER tests/fuzz/corpus/mhd */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "node/format/mhd.h"
#include "node/simulate/simulate_voxels.h"
#include "tests/fuzz/fuzz.h"

#define SMALL 100000 /* elements: more would only cost time */
#define LINE "====\n"

struct part {
	const uint8_t *at;
	size_t n;
};

/* Return the text before the next LINE; *rest is then the text after it. */
static struct part next_part(struct part *rest)
{
	const uint8_t *line = memmem(rest->at, rest->n, LINE, strlen(LINE));
	struct part first = {rest->at, line ? (size_t)(line - rest->at) : rest->n};
	size_t used = first.n + (line ? strlen(LINE) : 0);

	rest->at += used;
	rest->n -= used;
	return first;
}

static void write_part(const char *folder, const char *name, struct part part, char *ret_path, size_t path_size)
{
	FILE *f;

	snprintf(ret_path, path_size, "%s/%s", folder, name);
	f = fopen(ret_path, "wb");
	if (!f || fwrite(part.at, 1, part.n, f) != part.n || fclose(f) != 0)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static char folder[64];
	static struct materials m;
	char header[96], elements[96], materials[96], digest[65];
	struct part rest = {data, size}, head = next_part(&rest), body = next_part(&rest);
	struct voxel_phantom *p = NULL;
	struct phantom *shapes = NULL;
	struct mhd h;
	struct err err = {0};
	int rc;

	if (!folder[0]) {
		snprintf(folder, sizeof(folder), "/tmp/fuzz-mhd-XXXXXX");
		if (!mkdtemp(folder))
			abort();
	}
	rc = materials_parse((const char *)rest.at, rest.n, "materials", &m, &err);
	if (rc < 0 && !err.msg[0])
		abort();
	rc = mhd_parse((const char *)head.at, head.n, "header", MHD_PHANTOM, &h, &err);
	if (rc < 0)
		return 0;
	if (strchr(h.data, '/') || !h.data[0] || (h.element != ELEMENT_U8 && h.element != ELEMENT_U16))
		abort();
	if ((size_t)h.n[0] * (size_t)h.n[1] * (size_t)h.n[2] > SMALL || strcmp(h.data, "d") != 0)
		return 0;
	write_part(folder, "h", head, header, sizeof(header));
	write_part(folder, "d", body, elements, sizeof(elements));
	write_part(folder, "m", rest, materials, sizeof(materials));
	rc = simulate_voxels_load(header, materials, &p, digest, &err);
	if ((rc == 0) != (p != NULL) || (rc < 0 && !err.msg[0]))
		abort();
	if (p && voxel_phantom_shapes(p, &shapes, &err) == 0 && shapes->n < 1)
		abort();
	phantom_free(shapes);
	voxel_phantom_free(p);
	unlink(header);
	unlink(elements);
	unlink(materials);
	return 0;
}
