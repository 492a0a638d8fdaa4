/* SPDX-License-Identifier: Apache-2.0 */
/* simulate_voxels.c - make a phantom from a volume of labels (node/format/mhd.h) and a file that defines the labels. Labels are
 * converted to indices of materials while they are read, so that each voxel needs one byte in memory. A label without a material
 * is an error that names it, because a forgotten tissue would become air.
 */
#include "node/simulate/simulate_voxels.h"

#include <ctype.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "dicom/core/dataset.h"
#include "node/base/folder.h"
#include "node/base/text_file.h"
#include "node/format/mhd.h"

#define MU_MAX 10.0 /* 1/mm */

static const char *const roles[] = {
	[VOXEL_AIR] = "air",
	[VOXEL_TISSUE] = "tissue",
	[VOXEL_PADDLE] = "paddle",
	[VOXEL_LESION] = "lesion",
	[VOXEL_CALCIFICATION] = "calcification",
};

static bool is_blank(const char *text)
{
	while (isspace((unsigned char)*text))
		text++;
	return !*text;
}

static int parse_line(char *line, const char *name, int number, struct materials *m, struct err *err)
{
	char label_text[16], mu_text[32], word[32], role[32], rest[2], *end;
	struct voxel_material material = {0};
	char *comment = strchr(line, '#');
	long label;

	if (comment)
		*comment = '\0';
	if (is_blank(line))
		return 0;
	if (sscanf(line, "%15s %31s %31s %31s %1s", label_text, mu_text, word, role, rest) != 4)
		return err_set(err, EBADMSG, "%s:%d: \"%.60s\"; expected: label, attenuation in 1/mm, name, role", name, number,
			       line);
	label = strtol(label_text, &end, 10);
	if (*end || label < 0 || label > 65535)
		return err_set(err, EBADMSG, "%s:%d: label %s; allowed: 0 to 65535", name, number, label_text);
	material.mu = strtod(mu_text, &end);
	if (*end || !(material.mu >= 0 && material.mu <= MU_MAX))
		return err_set(err, EBADMSG, "%s:%d: attenuation %s; allowed: 0 to %g /mm", name, number, mu_text, MU_MAX);
	for (int i = VOXEL_AIR; i <= VOXEL_CALCIFICATION; i++)
		if (strcmp(role, roles[i]) == 0)
			material.role = (enum voxel_role)i;
	if (!material.role)
		return err_set(err, EBADMSG, "%s:%d: role %s; allowed: air, tissue, paddle, lesion, calcification", name, number,
			       role);
	if (m->of[label] != MATERIALS_NONE)
		return err_set(err, EBADMSG, "%s:%d: label %ld occurs twice", name, number, label);
	if (m->n == VOXEL_MATERIALS_MAX)
		return err_set(err, EBADMSG, "%s:%d: more than %d materials", name, number, VOXEL_MATERIALS_MAX);
	m->of[label] = (uint16_t)m->n;
	m->material[m->n++] = material;
	return 0;
}

int materials_parse(const char *text, size_t size, const char *name, struct materials *ret_materials, struct err *err)
{
	struct materials *m = calloc(1, sizeof(*m));
	char line[512];
	int rc = 0, number = 1;

	if (!m)
		return err_set(err, ENOMEM, "no memory for materials");
	for (size_t label = 0; label < sizeof(m->of) / sizeof(m->of[0]); label++)
		m->of[label] = MATERIALS_NONE;
	for (size_t at = 0; rc == 0 && at < size; number++) {
		const char *newline = memchr(text + at, '\n', size - at);
		size_t n = newline ? (size_t)(newline - text) - at : size - at;

		if (n >= sizeof(line) || memchr(text + at, '\0', n)) {
			rc = err_set(err, EBADMSG, "%s:%d: not a line of a materials file", name, number);
			break;
		}
		memcpy(line, text + at, n);
		line[n] = '\0';
		rc = parse_line(line, name, number, m, err);
		at += n + 1;
	}
	if (rc == 0 && m->n == 0)
		rc = err_set(err, EBADMSG, "%s contains no material", name);
	if (rc == 0)
		*ret_materials = *m;
	free(m);
	return rc;
}

static int materials_open(const char *path, struct materials *ret_materials, struct err *err)
{
	char *text = NULL;
	size_t size = 0;
	int rc = text_file_read(path, MATERIALS_FILE_MAX, "materials file", &text, &size, err);

	if (rc == 0)
		rc = materials_parse(text, size, file_name(path), ret_materials, err);
	free(text);
	return rc;
}

struct filling {
	const struct materials *materials;
	struct voxel_phantom *phantom;
};

static int store_labels(void *ctx, size_t at, const double *labels, size_t n, struct err *err)
{
	struct filling *f = ctx;

	for (size_t i = 0; i < n; i++) {
		int label = (int)labels[i];
		uint16_t material = f->materials->of[label];

		if (material == MATERIALS_NONE) {
			const int *size = f->phantom->grid.n;
			size_t voxel = at + i, plane = (size_t)size[0] * (size_t)size[1];

			return err_set(err, EBADMSG, "label %d of voxel (%zu, %zu, %zu) is not in the materials file", label,
				       voxel % (size_t)size[0], voxel % plane / (size_t)size[0], voxel / plane);
		}
		f->phantom->voxel[at + i] = (uint8_t)material;
	}
	return 0;
}

static void digest_of(const struct voxel_phantom *p, char ret[65])
{
	char text[256 + VOXEL_MATERIALS_MAX * 32], voxels[65];
	size_t n;

	dicom_sha256(p->voxel, grid_size(&p->grid), voxels);
	n = (size_t)snprintf(text, sizeof(text), "%s %d %d %d %.17g %.17g %.17g", voxels, p->grid.n[0], p->grid.n[1],
			     p->grid.n[2], p->grid.h[0], p->grid.h[1], p->grid.h[2]);
	for (size_t i = 0; i < p->n_materials; i++)
		n += (size_t)snprintf(text + n, sizeof(text) - n, " %.17g %d", p->material[i].mu, (int)p->material[i].role);
	dicom_sha256(text, n, ret);
}

int simulate_voxels_load(const char *volume, const char *materials, struct voxel_phantom **ret_phantom, char ret_digest[65],
			 struct err *err)
{
	struct materials *m = malloc(sizeof(*m));
	struct voxel_phantom *p = NULL;
	struct mhd header;
	int rc = m ? materials_open(materials, m, err) : err_set(err, ENOMEM, "no memory for materials");

	if (rc == 0)
		rc = mhd_open(volume, MHD_PHANTOM, &header, err);
	if (rc == 0)
		rc = voxel_phantom_create(header.n, header.h, m->material, m->n, &p, err);
	if (rc == 0)
		rc = mhd_read(volume, &header, store_labels, &(struct filling){m, p}, err);
	if (rc == 0)
		rc = voxel_phantom_trim(p, err);
	if (rc == 0) {
		digest_of(p, ret_digest);
		*ret_phantom = p;
		p = NULL;
	}
	voxel_phantom_free(p);
	free(m);
	return rc;
}
