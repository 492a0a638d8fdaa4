/* SPDX-License-Identifier: Apache-2.0 */
/* read_planes ROLE OUT FILE...: open the objects of an acquisition with the default configuration, write all planes of a role as
 * floats in the order in memory, and print a line: TOF bins, their width and standard deviation in mm, first angle in degrees,
 * ring radius in mm, and for each segment its ring differences and number of planes. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "dicom/pixels/start.h"
#include "node/sinogram/sinogram.h"

static int write_planes(const struct sinogram *s, enum sinogram_role role, const char *path, struct err *err)
{
	const struct interfile *h = &s->part[role].header;
	FILE *out = fopen(path, "wb");
	uint8_t *bytes = NULL;
	size_t planes, values;
	float *plane;
	int rc = out ? sinogram_read(s, role, &bytes, err) : err_set(err, EIO, "cannot write %s", path);

	interfile_shape(h, &planes, &values);
	plane = malloc(values * sizeof(*plane));
	for (size_t i = 0; rc == 0 && i < planes; i++) {
		interfile_plane(h, bytes, i, plane);
		if (fwrite(plane, sizeof(*plane), values, out) != values)
			rc = err_set(err, EIO, "cannot write %s", path);
	}
	free(plane);
	free(bytes);
	if (out)
		fclose(out);
	return rc;
}

static void print_geometry(const struct michelogram *m)
{
	printf("%d %.9g %.9g %.9g %.9g", m->tof.n, m->tof.width, m->tof.sigma, m->angle_offset,
	       m->scanner.radius + m->scanner.interaction_depth);
	for (int i = 0; i < m->n_segments; i++)
		printf(" %d %d %d", m->segments[i].first, m->segments[i].last, m->segments[i].n_planes);
	printf("\n");
}

int main(int argc, char **argv)
{
	struct config *config = NULL;
	struct sinogram *s = NULL;
	struct err err = {0};
	int role = 1, rc;

	if (argc < 4)
		return 2;
	while (role < SINOGRAM_ROLES && strcmp(sinogram_role_name((enum sinogram_role)role), argv[1]) != 0)
		role++;
	rc = dicom_start(&err);
	if (rc == 0)
		rc = config_load(NULL, NULL, NULL, &config, &err);
	if (rc == 0)
		rc = sinogram_open((const char *const *)argv + 3, (size_t)argc - 3, NULL, config, &s, &err);
	if (rc == 0)
		rc = write_planes(s, (enum sinogram_role)role, argv[2], &err);
	if (rc == 0)
		print_geometry(&s->part[role].header.m);
	else
		fprintf(stderr, "%s\n", err.msg);
	sinogram_close(s);
	config_free(config);
	dicom_stop();
	return rc < 0;
}
