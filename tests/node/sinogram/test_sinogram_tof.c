/* SPDX-License-Identifier: Apache-2.0 */
/* Sinogram objects with TOF bins: the order of the bins, roles without them, roles with other bins. */
#include "tests/node/sinogram/sinogram_fixture.h"
#include "tests/test.h"

#define TOF 3
#define TOF_BINS (TOF * BINS)

static float tof_values[SINOGRAM_ROLES + 1][TOF_BINS];

/* Write the roles (bits) with TOF bins; factors: with TOF bins, too. */
static void write_tof(unsigned roles, bool factors)
{
	struct michelogram m = geometry;
	struct sinogram_arrays a = {.m = &m, .duration = 600, .tof_factors = factors};
	struct sinogram_import conf = {.set = basics, .n_set = N_BASICS, .folder = folder, .now = 1782726000};
	struct err err = {0};
	size_t n = 0;

	m.tof = (struct scan_tof){TOF, 60, 13.6};
	for (int role = 1; role <= SINOGRAM_ROLES; role++)
		for (int i = 0; i < TOF_BINS; i++)
			tof_values[role][i] = (float)(role * 10000 + i);
	for (int role = 1; role <= SINOGRAM_ROLES; role++)
		a.values[role] = roles >> role & 1 ? tof_values[role] : NULL;
	assert_done(sinogram_write(&a, &conf, &n, &err), &err);
}

static void check_role(const struct sinogram *s, enum sinogram_role role, size_t planes)
{
	const struct interfile *h = &s->part[role].header;
	float plane[ANGLES * RADIAL];
	size_t found, per_plane;
	uint8_t *bytes = NULL;
	struct err err = {0};

	interfile_shape(h, &found, &per_plane);
	assert_int_equal(found, planes);
	assert_done(sinogram_read(s, role, &bytes, &err), &err);
	for (size_t p = 0; p < planes; p++) {
		interfile_plane(h, bytes, p, plane);
		assert_memory_equal(plane, tof_values[role] + p * ANGLES * RADIAL, sizeof(plane));
	}
	free(bytes);
}

TEST(test_roles, .teardown = clean)
{
	struct err err;
	struct sinogram *s;

	for (int factors = 0; factors < 2; factors++) {
		write_tof(ALL | 1u << SINOGRAM_DELAYEDS, factors);
		s = open_all(&err);
		if (!s)
			fail_msg("%s", err.msg);
		assert_true(fabs(s->part[SINOGRAM_EMISSION].header.m.tof.width - 60) < 1e-9);
		assert_true(fabs(s->part[SINOGRAM_ADDITIVE].header.m.tof.sigma - 13.6) < 1e-9);
		check_role(s, SINOGRAM_EMISSION, TOF * PLANES);
		check_role(s, SINOGRAM_ADDITIVE, TOF * PLANES);
		check_role(s, SINOGRAM_ATTENUATION, factors ? TOF * PLANES : PLANES);
		check_role(s, SINOGRAM_NORMALISATION, factors ? TOF * PLANES : PLANES);
		check_role(s, SINOGRAM_DELAYEDS, PLANES);
		sinogram_close(s);
		clean(state);
	}
}

/* Write NAME.hs with n TOF bins of a width, and its data. */
static const char *save_header(const char *name, int n, double width)
{
	struct interfile f = {.kind = INTERFILE_PROJECTIONS,
			      .number = INTERFILE_FLOAT,
			      .bytes = 4,
			      .scale = 1,
			      .order = INTERFILE_BY_PLANE,
			      .m = geometry,
			      .duration = 90,
			      .start = NAN};
	struct err err = {0};
	char *text = NULL, file[40];

	f.m.tof = (struct scan_tof){n, width, 13.6};
	snprintf(f.data_file, sizeof(f.data_file), "%s.s", name);
	assert_done(interfile_write(&f, &text, &err), &err);
	/* equal data of two roles are refused */
	test_put_file(in_folder(f.data_file), tof_values[name[0] == 'b' ? 2 : 1], (size_t)(n ? n : 1) * BINS * sizeof(float));
	snprintf(file, sizeof(file), "%s.hs", name);
	test_put_file(in_folder(file), text, strlen(text));
	free(text);
	return in_folder(file);
}

TEST(test_import, .teardown = clean)
{
	static const struct {
		enum sinogram_role role;
		int emission, n;
		double width;
		const char *says; /* NULL: accepted */
	} cases[] = {
		{SINOGRAM_ADDITIVE, TOF, TOF, 60, NULL},
		{SINOGRAM_ATTENUATION, TOF, 0, 0, NULL},
		{SINOGRAM_ADDITIVE, TOF, 0, 0, "EMISSION and ADDITIVE: different TOF bins: number: 3 and 0"},
		{SINOGRAM_ADDITIVE, TOF, TOF, 61, "EMISSION and ADDITIVE: different TOF bins: width, mm: 60 and 61"},
		{SINOGRAM_NORMALISATION, TOF, 5, 60, "EMISSION and NORMALISATION: different TOF bins: number: 3 and 5"},
		{SINOGRAM_NORMALISATION, 0, TOF, 60, "EMISSION and NORMALISATION: different TOF bins: number: 0 and 3"},
		{SINOGRAM_DELAYEDS, TOF, 0, 0, NULL},
		{SINOGRAM_DELAYEDS, TOF, TOF, 60,
		 "EMISSION and DELAYEDS: 3 TOF bins of delayed coincidences, which are the same in all; add them to one"},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct sinogram_import conf = {.folder = folder, .now = 1782726000};
		struct err err = {0};
		size_t n = 0;
		int rc;

		conf.header[SINOGRAM_EMISSION] = save_header("a", cases[i].emission, 60);
		conf.header[cases[i].role] = save_header("b", cases[i].n, cases[i].width);
		rc = sinogram_import(&conf, &n, &err);
		if (!cases[i].says ? rc < 0 : rc != -EBADMSG || !strstr(err.msg, cases[i].says))
			fail_msg("case %zu: %d \"%s\"; expected \"%s\"", i, rc, err.msg, cases[i].says ? cases[i].says : "");
		clean(state);
	}
}

TESTS_SETUP(make_folder, remove_folder);
