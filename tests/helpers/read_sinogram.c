/* SPDX-License-Identifier: Apache-2.0 */
/* read_sinogram CONF OUT PLANES FILE...: open the objects of a PET acquisition as a worker does, read all roles, and write the
 * planes with these numbers ("0,5,12") to OUT.ROLE: float32 [plane][angle][radial]. Prints one line for each role: its name, its
 * number of planes, the sum of all values; for raw data of a scanner also what they are not corrected for. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "dicom/pixels/start.h"
#include "node/sinogram/pet_source.h"
#include "node/sinogram/sinogram.h"

static int write_role(const struct sinogram *s, enum sinogram_role role, const char *out, const char *planes, struct err *err)
{
	const struct interfile *h = &s->part[role].header;
	size_t n_planes, n;
	uint8_t *bytes = NULL;
	float *values;
	char path[400];
	double sum = 0;
	FILE *f;
	int rc = sinogram_read(s, role, &bytes, err);

	if (rc < 0)
		return rc;
	interfile_shape(h, &n_planes, &n);
	values = malloc(n * sizeof(*values));
	for (size_t p = 0; p < n_planes; p++) {
		interfile_plane(h, bytes, p, values);
		for (size_t i = 0; i < n; i++)
			sum += values[i];
	}
	printf("%s %zu %.17g\n", sinogram_role_name(role), n_planes, sum);
	snprintf(path, sizeof(path), "%s.%s", out, sinogram_role_name(role));
	f = fopen(path, "wb");
	for (const char *at = planes; f && *at; at += strcspn(at, ","), at += *at == ',') {
		size_t plane = strtoul(at, NULL, 10);

		if (plane >= n_planes)
			continue;
		interfile_plane(h, bytes, plane, values);
		fwrite(values, sizeof(*values), n, f);
	}
	free(values);
	free(bytes);
	return f && fclose(f) == 0 ? 0 : err_set(err, 5, "cannot write %s", path);
}

static int read_all(const struct config *config, int argc, char **argv, struct err *err)
{
	struct sinogram *s = NULL;
	char note[600];
	int rc = sinogram_open((const char *const *)argv + 4, (size_t)argc - 4, NULL, config, &s, err);

	for (int role = 1; rc == 0 && role <= SINOGRAM_ROLES; role++)
		if (s->part[role].present)
			rc = write_role(s, (enum sinogram_role)role, argv[2], argv[3], err);
	if (rc == 0) {
		pet_source_note(s, note, sizeof(note));
		printf("%s%s", note, note[0] ? "\n" : "");
	}
	sinogram_close(s);
	return rc;
}

int main(int argc, char **argv)
{
	struct config *config = NULL;
	struct err err = {0};
	int rc;

	if (argc < 5)
		return 2;
	rc = dicom_start(&err);
	if (rc == 0)
		rc = config_load(strcmp(argv[1], "-") ? argv[1] : NULL, NULL, NULL, &config, &err);
	if (rc == 0)
		rc = read_all(config, argc, argv, &err);
	if (rc < 0)
		fprintf(stderr, "%s\n", err.msg);
	config_free(config);
	dicom_stop();
	return rc < 0;
}
