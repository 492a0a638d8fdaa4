/* SPDX-License-Identifier: Apache-2.0 */
/* A folder with the objects of a small acquisition, and the values written to them. */
#ifndef TOMONODE_TESTS_NODE_SINOGRAM_FIXTURE_H
#define TOMONODE_TESTS_NODE_SINOGRAM_FIXTURE_H

#include <dirent.h>

#include "dicom/object/dicom_tags.h"
#include "dicom/pixels/pixels.h"
#include "dicom/pixels/start.h"
#include "node/sinogram/sinogram.h"
#include "tests/test.h"

#define RADIAL 5
#define ANGLES 4
#define PLANES 8 /* 4 rings: -1 .. 1: 7 planes; 3: 1 plane */
#define BINS (PLANES * ANGLES * RADIAL)

static char folder[64];
static struct config *config;

static inline const char *in_folder(const char *name)
{
	return test_path(folder, name);
}

static inline int make_folder(void **state)
{
	struct err err = {0};

	test_folder(folder, sizeof(folder));
	if (dicom_start(&err) < 0 || config_load(NULL, NULL, NULL, &config, &err) < 0) {
		fprintf(stderr, "%s\n", err.msg);
		return -1;
	}
	return 0;
}

static inline int list_folder(bool remove)
{
	DIR *d = opendir(folder);
	struct dirent *e;
	int n = 0;

	while (d && (e = readdir(d)))
		if (e->d_name[0] != '.') {
			n++;
			if (remove)
				unlinkat(dirfd(d), e->d_name, 0);
		}
	closedir(d);
	return n;
}

static inline int clean(void **state)
{
	list_folder(true);
	return 0;
}

static inline int remove_folder(void **state)
{
	config = config_free(config);
	dicom_stop();
	return 0;
}

static struct michelogram_segment segments[] = {{-1, 1, 7}, {3, 3, 1}};
static const struct michelogram geometry = {
	.scanner = {4, 16, 6.54, 100, 7, 3},
	.n_radial = RADIAL,
	.n_angles = ANGLES,
	.angle_offset = 10,
	.arc_corrected = true,
	.n_segments = 2,
	.segments = segments,
};
static float values[SINOGRAM_ROLES + 1][BINS];

static char *const basics[] = {"PatientPosition=HFS",	  "AcquisitionDate=20260601",  "AcquisitionTime=101500",
			       "Radionuclide=F18",	  "PatientWeight=70",	       "RadionuclideTotalDose=3.7e8",
			       "ScannerCentre=1\\2\\3.5", "DoseCalibrationFactor=0.25"};
#define N_BASICS 8

/* All objects in the folder, of the roles asked for (bits). Emission has chunks of 100 bytes where `chunked`. */
static inline size_t write_objects(unsigned roles, uint64_t chunk, size_t n_set, char *const *set)
{
	struct sinogram_arrays a = {.m = &geometry, .duration = 600};
	struct sinogram_import conf = {.set = set, .n_set = n_set, .folder = folder, .chunk = chunk, .now = 1782726000};
	struct err err = {0};
	size_t n = 0;

	for (int role = 1; role <= SINOGRAM_ROLES; role++)
		for (int i = 0; i < BINS; i++)
			values[role][i] = (float)(role * 1000 + i) * 0.37f;
	for (int role = 1; role <= SINOGRAM_ROLES; role++)
		a.values[role] = roles >> role & 1 ? values[role] : NULL;
	assert_done(sinogram_write(&a, &conf, &n, &err), &err);
	return n;
}

#define EMISSION (1u << SINOGRAM_EMISSION)
#define ADDITIVE (1u << SINOGRAM_ADDITIVE)
#define ALL 0x3eu

static inline int by_name(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

struct paths {
	char *path[64];
	size_t n;
};

static inline struct paths find_paths(void)
{
	struct paths p = {.n = 0};
	DIR *d = opendir(folder);
	struct dirent *e;

	while ((e = readdir(d)))
		if (strstr(e->d_name, ".dcm") && p.n < 64)
			p.path[p.n++] = strdup(in_folder(e->d_name));
	closedir(d);
	qsort(p.path, p.n, sizeof(p.path[0]), by_name);
	return p;
}

static inline void free_paths(struct paths *p)
{
	for (size_t i = 0; i < p->n; i++)
		free(p->path[i]);
	p->n = 0;
}

static inline struct sinogram *open_all(struct err *err)
{
	struct paths p = find_paths();
	struct sinogram *s = NULL;
	int rc;

	memset(err, 0, sizeof(*err));
	rc = sinogram_open((const char *const *)p.path, p.n, NULL, config, &s, err);
	assert_int_equal(rc == 0, s != NULL);
	free_paths(&p);
	return s;
}

static inline void must_refuse(int code, const char *says)
{
	struct err err;
	struct sinogram *s = open_all(&err);

	if (s || err.code != code || !strstr(err.msg, says))
		fail_msg("%d \"%s\"; wanted %d \"%s\"", err.code, s ? "opened" : err.msg, code, says);
}

/* Check that the planes of every role have the values that were written. */
static inline void check_values(const struct sinogram *s, unsigned roles)
{
	float plane[ANGLES * RADIAL];
	struct err err = {0};

	for (int role = 1; role <= SINOGRAM_ROLES; role++) {
		uint8_t *bytes = NULL;

		assert_int_equal(s->part[role].present, roles >> role & 1);
		if (!s->part[role].present) {
			assert_int_equal(sinogram_read(s, (enum sinogram_role)role, &bytes, &err), -EINVAL);
			continue;
		}
		assert_done(sinogram_read(s, (enum sinogram_role)role, &bytes, &err), &err);
		for (size_t p = 0; p < PLANES; p++) {
			size_t place = p < 7 ? 6 - p : p; /* rings of files are in STIR's order */

			assert_memory_equal(bytes + place * sizeof(plane), values[role] + p * ANGLES * RADIAL, sizeof(plane));
			interfile_plane(&s->part[role].header, bytes, p, plane);
			assert_memory_equal(plane, values[role] + p * ANGLES * RADIAL, sizeof(plane));
		}
		free(bytes);
	}
}

#endif
