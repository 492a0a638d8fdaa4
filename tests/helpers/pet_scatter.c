/* SPDX-License-Identifier: Apache-2.0 */
/* pet_scatter HEADER ACTIVITY MU N_XY N_Z VOXEL SLICE LOW HIGH RESOLUTION OUT: simulate the single scatter of the sinogram that
 * an Interfile header describes, from N_XY x N_XY x N_Z floats of activity and of mu (1/mm), x fastest, in voxels of VOXEL x
 * VOXEL x SLICE mm around the scanner's middle; energy window in keV, resolution in percent. OUT: floats [plane][angle][radial],
 * in the unit of line integrals of the activity. Prints points, pairs and seconds as JSON. */
#include <stdio.h>
#include <stdlib.h>

#include "node/format/interfile.h"
#include "recon/scatter/single_scatter.h"

static void *read_all(const char *path, size_t *ret_size)
{
	FILE *f = fopen(path, "rb");
	char *data = NULL;
	long size = -1;

	if (f && fseek(f, 0, SEEK_END) == 0)
		size = ftell(f);
	if (size > 0 && fseek(f, 0, SEEK_SET) == 0)
		data = malloc((size_t)size);
	if (data && fread(data, 1, (size_t)size, f) != (size_t)size) {
		free(data);
		data = NULL;
	}
	if (f)
		fclose(f);
	*ret_size = data ? (size_t)size : 0;
	return data;
}

static int write_all(const struct single_scatter *s, const struct michelogram *m, const char *path, struct err *err)
{
	size_t n = michelogram_size(m);
	float *values = malloc(n * sizeof(*values));
	FILE *f = fopen(path, "wb");
	int rc = values && f ? single_scatter_planes(s, 0, (int)michelogram_data_planes(m), 1, values, err) : -1;

	if (rc == 0 && fwrite(values, sizeof(*values), n, f) != n)
		rc = -1;
	if (f && fclose(f))
		rc = -1;
	free(values);
	return rc;
}

int main(int argc, char **argv)
{
	struct single_scatter_report report = {0};
	struct single_scatter *s = NULL;
	struct device *dev = NULL;
	struct interfile header = {0};
	struct err err = {0};
	char *text, *bytes[2];
	size_t size, sizes[2];
	int rc;

	if (argc != 12)
		return 2;
	text = read_all(argv[1], &size);
	for (int i = 0; i < 2; i++)
		bytes[i] = read_all(argv[2 + i], &sizes[i]);
	int n = atoi(argv[4]), slices = atoi(argv[5]);
	double h = atof(argv[6]), slice = atof(argv[7]);
	struct grid grid = {{n, n, slices}, {h, h, slice}, {-n * h / 2, -n * h / 2, -slices * slice / 2}, false};
	struct single_scatter_conf conf = {
		.energy_low = atof(argv[8]), .energy_high = atof(argv[9]), .energy_resolution = atof(argv[10]), .seed = 1};

	if (!text || sizes[0] != grid_size(&grid) * sizeof(float) || sizes[1] != sizes[0])
		return 2;
	rc = interfile_parse(text, size, &header, &err);
	rc = rc < 0 ? rc : interfile_complete(&header, NULL, &err);
	rc = rc < 0 ? rc : device_open("cpu", &dev, &err);
	rc = rc < 0 ? rc : single_scatter_open(&header.m, &conf, dev, &s, &err);
	rc = rc < 0 ? rc : single_scatter_run(s, &grid, (const float *)bytes[0], (const float *)bytes[1], NULL, &report, &err);
	rc = rc < 0 ? rc : write_all(s, &header.m, argv[11], &err);
	if (rc < 0)
		fprintf(stderr, "pet_scatter: %s\n", err.msg);
	else
		printf("{\"points\": %zu, \"pairs\": %zu, \"seconds\": %.3f}\n", report.points, report.pairs, report.seconds);
	single_scatter_close(s);
	device_close(dev);
	interfile_clear(&header);
	free(text);
	free(bytes[0]);
	free(bytes[1]);
	return rc < 0;
}
