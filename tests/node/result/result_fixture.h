/* SPDX-License-Identifier: Apache-2.0 */
/* Write the result of a small case and open it again. Include this file in one source only: it defines a reconstruction session
 * that replaces that of recon. */
#ifndef TOMONODE_TESTS_NODE_RESULT_FIXTURE_H
#define TOMONODE_TESTS_NODE_RESULT_FIXTURE_H

#include "node/result/result.h"
#include "recon/dbt/inside.h"
#include "tests/node/tomo/exam_fixture.h"

/* The session of this test: a volume in memory; one slice may be unreadable. */
struct dbt_session {
	const float *volume;
	const struct grid *grid;
	int broken;    /* index of the unreadable slice; -1: none */
	int next;      /* slices are read in order, each once */
	size_t stride; /* the histogram holds every stride-th voxel; 0: each */
};

int dbt_read_slices(struct dbt_session *s, int first, int n, float *ret_slices, struct err *err)
{
	size_t slice = (size_t)s->grid->n[0] * (size_t)s->grid->n[1];

	if (first != s->next || first + n > s->grid->n[2])
		return err_set(err, EINVAL, "slices %d to %d after %d", first, first + n, s->next);
	if (s->broken >= first && s->broken < first + n)
		return err_set(err, ENODEV, "the device is gone");
	s->next += n;
	memcpy(ret_slices, s->volume + (size_t)first * slice, (size_t)n * slice * sizeof(float));
	return 0;
}

int dbt_read_stored(struct dbt_session *s, int k, const struct stored_form *form, uint16_t *ret_values, struct err *err)
{
	size_t slice = (size_t)s->grid->n[0] * (size_t)s->grid->n[1];
	float *image = malloc(slice * sizeof(*image));
	int r;

	assert_non_null(image);
	r = dbt_read_slices(s, k, 1, image, err);
	if (r == 0)
		stored_rows(form, image, 0, form->rows, ret_values);
	free(image);
	return r;
}

int dbt_tally(struct dbt_session *s, double offset, double step, uint64_t bins[65536], size_t *ret_counted,
	      struct tally *ret_tally, struct err *err)
{
	size_t n = grid_size(s->grid);
	struct tally t = {0};

	(void)err;
	for (size_t i = 0; i < n; i++) {
		double steps = floor((s->volume[i] - offset) / step + 0.5);

		t.bad += !isfinite(steps);
		t.below += steps < 0;
		t.above += steps > 65535;
		if (s->stride == 0 || i % s->stride == s->stride - 1)
			bins[(size_t)fmin(fmax(steps, 0), 65535)]++;
	}
	*ret_counted = n;
	*ret_tally = t;
	return 0;
}

int dbt_tally_inside(struct dbt_session *s, double offset, double step, double depth, uint64_t bins[65536], size_t *ret_counted,
		     struct err *err)
{
	int r = 0;

	*ret_counted = 0;
	for (int k = 0; r == 0 && k < s->grid->n[2]; k++)
		r = inside_tally(s->grid, s->volume + (size_t)k * (size_t)(s->grid->n[0] * s->grid->n[1]), offset, step, depth, 1,
				 bins, ret_counted, err);
	return r;
}

#define NX (COLUMNS / 2)
#define NY (ROWS / 2)
#define NZ 3

static const uint32_t shared_group = TAG_SHARED_FUNCTIONAL_GROUPS_SEQUENCE,
		      frame_group = TAG_PER_FRAME_FUNCTIONAL_GROUPS_SEQUENCE;

/* Add the attributes that a modality with complete headers writes. */
static inline void complete(struct dicom_item *root, int i, const void *ctx)
{
	static const struct {
		uint32_t tag;
		const char *text;
	} texts[] = {
		{TAG_DETECTOR_TYPE, "DIRECT"},
		{TAG_DETECTOR_ID, "D1"},
		{TAG_DATE_OF_LAST_DETECTOR_CALIBRATION, "20260101"},
		{TAG_TIME_OF_LAST_DETECTOR_CALIBRATION, "080000"},
		{TAG_DETECTOR_ELEMENT_SPACING, "1\\1"},
		{TAG_ANODE_TARGET_MATERIAL, "TUNGSTEN"},
		{TAG_EXPOSURE_CONTROL_MODE, "AUTOMATIC"},
		{TAG_EXPOSURE_CONTROL_MODE_DESCRIPTION, "pre-exposure"},
		{TAG_HALF_VALUE_LAYER, "0.55"},
		{TAG_ESTIMATED_RADIOGRAPHIC_MAGNIFICATION_FACTOR, "1.07"},
		{TAG_FOCAL_SPOTS, "0.3"},
		{TAG_DETECTOR_TEMPERATURE, "30"},
		{TAG_FILTER_TYPE, "FLAT"},
		{TAG_FILTER_MATERIAL, "RHODIUM"},
		{TAG_COMPRESSION_FORCE, "100"},
		{TAG_PADDLE_DESCRIPTION, "flat"},
		{TAG_FIELD_OF_VIEW_ORIGIN, "0\\0"},
		{TAG_FIELD_OF_VIEW_ROTATION, "0"},
		{TAG_FIELD_OF_VIEW_HORIZONTAL_FLIP, "NO"},
		{TAG_ACQUISITION_DATE, "20260629"},
		{TAG_ACQUISITION_TIME, "101500"},
		{TAG_EXPOSURE_TIME, "50"},
		{TAG_EXPOSURE_IN_UAS, "4200"},
		{TAG_RELATIVE_X_RAY_EXPOSURE, "400"},
		{TAG_ORGAN_DOSE, "0.002"},
		{TAG_ENTRANCE_DOSE_IN_MGY, "0.5"},
		{TAG_KVP, "30"},
		{TAG_BREAST_IMPLANT_PRESENT, "NO"},
	};
	const uint32_t *missing = ctx;

	(void)i;
	for (size_t t = 0; t < sizeof(texts) / sizeof(texts[0]); t++)
		if (!missing || *missing != texts[t].tag)
			put(root, texts[t].tag, texts[t].text);
}

struct made {
	struct exam *exam;
	struct dicom_file *file;
	struct dicom_item *root;
	float volume[NX * NY * NZ];
	struct dbt_plan plan;
	struct result_report report;
};

static inline void volume_fill(float *volume)
{
	for (int k = 0; k < NZ; k++)
		for (int j = 0; j < NY; j++)
			for (int i = 0; i < NX; i++)
				volume[(k * NY + j) * NX + i] = (float)(1e-5 * (1000 * k + 20 * j + i) + 0.01);
}

static inline struct dbt_session session_of(const struct made *m)
{
	return (struct dbt_session){.volume = m->volume, .grid = &m->plan.grid, .broken = -1};
}

static inline const char *path_of(const struct result_object *object)
{
	return fixture_path(object->file);
}

TEST_GIVES_BACK(dicom_close);

/* What it holds is closed when the test ends. */
static inline struct made make_as(const struct fixture_mg *f, const struct protocol_conf *protocol)
{
	struct result_info info = {.protocol = protocol, .device = "cpu (test)", .now = 1782726000.25};
	struct dbt_session session;
	struct made m = {0};
	struct err err = {0};

	fixture_write_mg(f);
	volume_fill(m.volume);
	m.volume[0] = 2.0f;   /* above the range */
	m.volume[1] = -0.01f; /* below */
	m.plan = (struct dbt_plan){
		.grid = {.n = {NX, NY, NZ}, .h = {2, 2, 1.5}, .lo = {0, -ROWS / 2.0, 20}},
		.bin = 2,
		.n_u = NX,
		.n_v = NY,
		.n_views = N_VIEWS,
		.subsets = N_VIEWS,
	};
	assert_done(fixture_open(N_VIEWS, &m.exam, &err), &err);
	info.plan = &m.plan;
	session = session_of(&m);
	if (result_write(m.exam, &info, &session, fixture_folder, &m.report, &err) < 0 ||
	    dicom_open(path_of(&m.report.objects[0]), &m.file, &err) < 0)
		fail_msg("%s", err.msg);
	m.root = dicom_root(m.file);
	test_later(give_back_dicom_close, m.file);
	return m;
}

static inline const char *text_of(const struct dicom_item *item, uint32_t tag)
{
	static char text[4][2048];
	static int k;

	k = (k + 1) % 4;
	if (dicom_get_text(item, tag, text[k], sizeof(text[0]), NULL) != 1)
		fail_msg("no (%04x,%04x)", tag >> 16, tag & 0xFFFF);
	return text[k];
}

static inline double number_of(const struct dicom_item *item, uint32_t tag, unsigned index)
{
	double value = NAN;

	if (!item || dicom_get_double(item, tag, index, &value, NULL) != 1)
		fail_msg("no (%04x,%04x)[%u]", tag >> 16, tag & 0xFFFF, index);
	return value;
}

/* Check that the display window in this item begins within the lowest tenth, and ends within the highest tenth, of the n stored
 * values (those of air, and those limited by the range, excepted). */
static inline void check_window(const struct dicom_item *item, const uint16_t *values, size_t n)
{
	double centre = number_of(item, TAG_WINDOW_CENTER, 0), width = number_of(item, TAG_WINDOW_WIDTH, 0), lo = 65535, hi = 0;

	for (size_t i = 0; i < n; i++)
		if (values[i] > 0 && values[i] < 65535) {
			lo = fmin(lo, values[i]);
			hi = fmax(hi, values[i]);
		}
	assert_true(hi - lo >= 100);
	if (fabs(centre - width / 2 - (lo + 0.05 * (hi - lo))) > 0.05 * (hi - lo) ||
	    fabs(centre + width / 2 - (hi - 0.05 * (hi - lo))) > 0.05 * (hi - lo))
		fail_msg("window %g +- %g for values of %g to %g", centre, width / 2, lo, hi);
}

static inline const struct dicom_item *group(const struct dicom_item *root, uint32_t groups, size_t frame, uint32_t sequence)
{
	const struct dicom_item *item = dicom_item_at(dicom_item_at(root, groups, frame), sequence, 0);

	assert_non_null(item);
	return item;
}

static inline struct protocol_conf protocol_with(const char *const *settings)
{
	struct protocol_conf p = *config_protocol(fixture_config, "dbt-osem");
	struct err err = {0};

	for (; *settings; settings++)
		if (config_set(&p, *settings, &err) < 0)
			fail_msg("%s: %s", *settings, err.msg);
	return p;
}

#endif
