/* SPDX-License-Identifier: Apache-2.0 */
/* Figures of series in memory whose values are known: the answers are known, too. */
#include "node/tools/measure_series.h"
#include "tests/test.h"

static char folder[64];

/* A series of n voxels of h mm, in the usual directions or turned, its middle at (5, -8, 20) mm. */
static struct image_series *series(const int n[3], const double h[3], bool turned, bool ct, const char *units)
{
	static const double usual[3][3] = {{1, 0, 0}, {0, 1, 0}, {0, 0, 1}},
			    other[3][3] = {{0.6, 0.8, 0}, {0, 0, -1}, {-0.8, 0.6, 0}};
	struct image_series *s = calloc(1, sizeof(*s));

	assert_non_null(s);
	*s = (struct image_series){.n = {n[0], n[1], n[2]}, .n_images = 1, .ct = ct, .spacing = {h[0], h[1], h[2]}};
	memcpy(s->across, turned ? other[0] : usual[0], sizeof(s->across));
	memcpy(s->down, turned ? other[1] : usual[1], sizeof(s->down));
	memcpy(s->normal, turned ? other[2] : usual[2], sizeof(s->normal));
	for (int c = 0; c < 3; c++)
		s->corner[c] =
			(c == 0	  ? 5
			 : c == 1 ? -8
				  : 20) -
			((n[0] - 1) * h[0] * s->across[c] + (n[1] - 1) * h[1] * s->down[c] + (n[2] - 1) * h[2] * s->normal[c]) /
				2;
	snprintf(s->units, sizeof(s->units), "%s", units);
	s->values = calloc((size_t)n[0] * (size_t)n[1] * (size_t)n[2], sizeof(*s->values));
	s->order = calloc((size_t)n[2], sizeof(*s->order));
	assert_true(s->values && s->order);
	for (size_t k = 0; k < (size_t)n[2]; k++) /* stored from the last slice to the first */
		s->order[k] = (size_t)n[2] - 1 - k;
	return s;
}

static float *value(struct image_series *s, int i, int j, int k)
{
	return &s->values[(s->order[k] * (size_t)s->n[1] + (size_t)j) * (size_t)s->n[0] + (size_t)i];
}

static void place(const struct image_series *s, int i, int j, int k, double ret[3])
{
	for (int c = 0; c < 3; c++)
		ret[c] = s->corner[c] + i * s->spacing[0] * s->across[c] + j * s->spacing[1] * s->down[c] +
			 k * s->spacing[2] * s->normal[c];
}

static json_t *run(const struct image_series *s, const struct series_request *q, size_t n, const char *truth)
{
	struct series_requests all = {.request = q, .n = n, .truth = truth};
	struct series_suv suv = {.factor = NAN, .reason = "not known"};
	json_t *result = NULL;
	struct err err = {0};

	assert_done(measure_series_run(s, &all, &suv, &result, &err), &err);
	return result;
}

static double at(const json_t *root, const char *list, size_t i, const char *key)
{
	const json_t *number = json_object_get(json_array_get(json_object_get(root, list), i), key);

	if (!json_is_number(number))
		fail_msg("%s %zu: %s is no number", list, i, key);
	return json_number_value(number);
}

/* A ramp along patient x and z: the mean of a circle and of a sphere is the value at their centre, whatever the orientation. Half
 * of the symmetric partial voxels lie on each side. */
TEST(ramp)
{
	for (int turned = 0; turned < 2; turned++) {
		struct image_series *s = series((int[]){41, 31, 21}, (double[]){1.5, 2, 2.5}, turned, false, "BQML");
		struct series_request q[] = {{SERIES_CIRCLE, "circle", {5, -8, 20}, 17.3, 0},
					     {SERIES_SPHERE, "ball", {5, -8, 20}, 23.1, 0}};
		json_t *result;

		for (int k = 0; k < 21; k++)
			for (int j = 0; j < 31; j++)
				for (int i = 0; i < 41; i++) {
					double p[3];

					place(s, i, j, k, p);
					*value(s, i, j, k) = (float)(100 + 3 * (p[0] - 5) - 2 * (p[2] - 20));
				}
		result = run(s, q, 2, NULL);
		assert_near(at(result, "regions", 0, "mean"), 100, 1e-4);
		assert_near(at(result, "regions", 1, "mean"), 100, 1e-4);
		assert_near(at(result, "regions", 0, "voxels"), M_PI * 17.3 * 17.3 / 4 / 3, 1e-9);
		assert_near(at(result, "regions", 1, "volume_ml"), M_PI / 6 * 2.31 * 2.31 * 2.31, 1e-3);
		assert_true(json_is_string(json_object_get(json_object_get(result, "suv"), "left_out")));
		assert_null(json_object_get(json_array_get(json_object_get(result, "regions"), 0), "suv_mean"));
		json_decref(result);
		image_series_close(s);
	}
}

static const char truth_text[] =
	"{\"kind\": \"pet\", \"phantom\": \"nema-iq\", \"position\": \"HFS\", \"origin_mm\": [5, -8, 20], \"shapes\": ["
	"{\"kind\": \"cylinder\", \"center_mm\": [0, 0, 22], \"half_axes_mm\": [147, 115, 90], \"becquerel_per_ml\": 1000},"
	"{\"kind\": \"cylinder\", \"center_mm\": [0, 0, 22], \"half_axes_mm\": [25, 25, 90], \"becquerel_per_ml\": -1000},"
	"{\"kind\": \"ellipsoid\", \"role\": \"lesion\", \"center_mm\": [57.2, 0, 0], \"half_axes_mm\": [11, 11, 11], "
	"\"becquerel_per_ml\": 3000},"
	"{\"kind\": \"ellipsoid\", \"role\": \"lesion\", \"center_mm\": [-57.2, 0, 0], \"half_axes_mm\": [18.5, 18.5, 18.5], "
	"\"becquerel_per_ml\": -1000}]}";

static const char *truth_file(const char *text)
{
	const char *path = test_path(folder, "truth.json");

	test_put_file(path, text, strlen(text));
	return path;
}

/* Return the value of the phantom; `wide` mm are added to the half axes of spheres and insert, so that circles have no edge. */
static float phantom(const double p[3], double wide, double hot)
{
	double x = p[0] - 5, y = p[1] + 8, z = p[2] - 20;

	if (hypot(hypot(x - 57.2, y), z) <= 11 + wide)
		return (float)hot;
	if (hypot(hypot(x + 57.2, y), z) <= 18.5 + wide)
		return 100;
	if (hypot(x, y) <= 25 + wide)
		return 250;
	return x * x / (147 * 147) + y * y / (115 * 115) <= 1 ? 1000 : 0;
}

/* Hot 2500 of 4000: Q = (2.5 - 1) / (4 - 1) = 50 %. Cold 100 of 1000: 90 %. Lung 25 %. No noise: no variability. Then without
 * background: refused instead of divided by 0. */
TEST(nema)
{
	struct image_series *s = series((int[]){156, 124, 40}, (double[]){2, 2, 4}, false, false, "BQML");
	struct series_requests all = {.truth = truth_file(truth_text)};
	struct series_suv suv = {.factor = 0.5};
	const json_t *found, *lung;
	struct err err = {0};
	json_t *result;

	for (int k = 0; k < 40; k++)
		for (int j = 0; j < 124; j++)
			for (int i = 0; i < 156; i++) {
				double p[3];

				place(s, i, j, k, p);
				*value(s, i, j, k) = phantom(p, 3, 2500);
			}
	assert_int_equal(measure_series_run(s, &all, &suv, &result, &err), 0);
	found = json_object_get(result, "nema");
	assert_near(at(found, "spheres", 0, "recovery_percent"), 50, 1e-6);
	assert_near(at(found, "spheres", 1, "recovery_percent"), 90, 1e-6);
	assert_near(at(found, "spheres", 1, "variability_percent"), 0, 1e-6);
	assert_near(at(found, "spheres", 0, "true_ratio"), 4, 0);
	lung = json_object_get(found, "lung");
	assert_near(json_number_value(json_object_get(lung, "residual_percent")), 25, 1e-6);
	assert_int_equal(json_array_size(json_object_get(lung, "slices")), 37); /* -88, -84 .. 56 mm from its middle */
	assert_near(at(result, "regions", 0, "mean"), 1000, 1e-3);
	assert_near(at(result, "regions", 0, "bias"), 0, 1e-3);
	assert_near(at(result, "regions", 0, "suv_mean"), 500, 1e-3);
	assert_near(at(result, "regions", 3, "true"), 0, 0); /* a cold sphere has a core */
	assert_near(at(result, "regions", 3, "bias"), 100, 1e-3);
	assert_true(json_is_null(json_object_get(json_array_get(json_object_get(result, "regions"), 3), "bias_percent")));
	json_decref(result);

	memset(s->values, 0, sizeof(*s->values) * 156 * 124 * 40);
	assert_error(measure_series_run(s, &all, &suv, &result, &err), &err, EBADMSG, "needs a value above 0");
	*value(s, 3, 4, 5) = NAN;
	assert_error(measure_series_run(s, &all, &suv, &result, &err), &err, EBADMSG,
		     "slice 6, column 4, row 5 has the value nan");
	*value(s, 3, 4, 5) = 0;
	snprintf(s->units, sizeof(s->units), "CNTS"); /* counts have no true value in Bq/ml */
	all.truth =
		truth_file("{\"kind\": \"pet\", \"position\": \"HFS\", \"origin_mm\": [5, -8, 20], \"shapes\": [{\"kind\": "
			   "\"cylinder\", \"center_mm\": [0, 0, 0], \"half_axes_mm\": [90, 90, 70], \"becquerel_per_ml\": 1}]}");
	assert_int_equal(measure_series_run(s, &all, &suv, &result, &err), 0);
	assert_true(json_is_null(json_object_get(json_array_get(json_object_get(result, "regions"), 0), "true")));
	assert_null(json_object_get(json_array_get(json_object_get(result, "regions"), 0), "bias"));
	/* uniformity of nothing is left out with a reason, and nothing is divided by 0 */
	assert_true(json_is_string(json_object_get(json_array_get(json_object_get(result, "uniformity"), 0), "left_out")));
	json_decref(result);
	image_series_close(s);
}

/* A cup: 3 % less in the middle than at the sides; a step of one square. For CT of HU + 1000. */
TEST(uniform)
{
	for (int ct = 0; ct < 2; ct++) {
		struct image_series *s = series((int[]){120, 120, 5}, (double[]){2, 2, 3}, true, ct, ct ? "HU" : "BQML");
		struct series_request q = {SERIES_UNIFORM, "water", {5, -8, 20}, 200, 6};
		double base = ct ? -1000 : 0;
		json_t *result;

		for (int k = 0; k < 5; k++)
			for (int j = 0; j < 120; j++)
				for (int i = 0; i < 120; i++)
					*value(s, i, j, k) = (float)(base + (hypot(i - 59.5, j - 59.5) < 15 ? 970 : 1000));
		for (int j = 60; j < 65; j++) /* the square of 10 mm at +20 .. 30, 0 .. 10 mm */
			for (int i = 75; i < 80; i++)
				*value(s, i, j, 2) = (float)(base + 1100);
		result = run(s, &q, 1, NULL);
		assert_near(at(result, "uniformity", 0, "middle"), base + 970, 1e-3);
		assert_near(at(result, "uniformity", 0, "largest_difference"), 30, 1e-3);
		assert_near(at(result, "uniformity", 0, "first_slice"), 2, 0);
		assert_near(at(result, "uniformity", 0, "last_slice"), 4, 0);
		assert_near(at(result, "uniformity", 0, "integral_percent"), 100 * (1100 - 970) / (1100 + 970.0), 0.02);
		assert_true(at(result, "nps", 0, "squares") >= 12);
		assert_near(at(result, "nps", 0, "integral"), at(result, "nps", 0, "variance"), 1e-6);
		json_decref(result);
		image_series_close(s);
	}
}

static void refused(const struct image_series *s, const struct series_requests *all, const char *word)
{
	struct series_suv suv = {.factor = NAN};
	json_t *result = NULL;
	struct err err = {0};

	assert_true(measure_series_run(s, all, &suv, &result, &err) < 0);
	assert_null(result);
	if (!strstr(err.msg, word))
		fail_msg("\"%s\" is not in \"%s\"", word, err.msg);
}

TEST(refusals)
{
	static const char *const truths[][2] = {
		{"{", "truth.json: line 1"},
		{"{\"kind\": \"dbt\"}", "its kind is \"dbt\"; needed: pet or parallel"},
		{"{\"kind\": \"parallel\"}", "the truth of a CT series, but the series is PET"},
		{"{\"kind\": \"pet\", \"frame_of_reference\": \"1.2\"}",
		 "belongs to another exam: its frame of reference is 1.2"},
		{"{\"kind\": \"pet\", \"position\": \"HFS\", \"shapes\": []}", "0 shapes; allowed: 1 to"},
		{"{\"kind\": \"pet\", \"position\": \"HFS\", \"size\": 0, \"shapes\": [1]}", "size 0"},
		{"{\"kind\": \"pet\", \"position\": \"HFS\", \"shapes\": [1]}", "shape 0 (\"\") needs kind"},
		{"{\"kind\": \"pet\", \"shapes\": [1]}", "position is \"\""},
		{"{\"kind\": \"pet\", \"position\": \"HFX\"}", "position is \"HFX\""},
		{"{\"kind\": \"pet\", \"position\": \"HFS\", \"slice_mm\": 0, \"shapes\": [1]}", "slice_mm 0"},
		{"{\"kind\": \"pet\", \"position\": \"HFS\", \"slices\": 0, \"shapes\": [1]}", "slices 0"},
		{"{\"kind\": \"pet\", \"position\": \"HFS\", \"taper\": 1, \"shapes\": [1]}", "taper 1"},
		{"{\"kind\": \"pet\", \"position\": \"HFS\", \"taper\": -0.1, \"shapes\": [1]}", "taper -0.1"},
		{"{\"kind\": \"pet\", \"position\": \"HFS\", \"origin_mm\": [1, 2], \"shapes\": [1]}", "origin_mm"},
		{"{\"kind\": \"pet\", \"position\": \"HFS\", \"origin_mm\": [1, 2, \"3\"], \"shapes\": [1]}", "origin_mm"},
		{"{\"kind\": \"pet\", \"position\": \"HFS\", \"shapes\": [{\"kind\": \"ellipse\", \"center_mm\": [0, 0, 0], "
		 "\"half_axes_mm\": [1, 1, 1], \"becquerel_per_ml\": 5}]}",
		 "shape 0 (\"ellipse\")"},
		{"{\"kind\": \"pet\", \"position\": \"HFS\", \"shapes\": [{\"kind\": \"polygon\", \"center_mm\": [0, 0, 0], "
		 "\"half_axes_mm\": [1, 1, 1], \"becquerel_per_ml\": 5}]}",
		 "shape 0 (\"polygon\")"},
		{"{\"kind\": \"pet\", \"position\": \"HFS\", \"shapes\": [{\"kind\": \"ellipsoid\", \"center_mm\": [0, 0], "
		 "\"half_axes_mm\": [1, 1, 1], \"becquerel_per_ml\": 5}]}",
		 "shape 0 (\"ellipsoid\")"},
		{"{\"kind\": \"pet\", \"position\": \"HFS\", \"shapes\": [{\"kind\": \"ellipsoid\", \"center_mm\": [0, 0, 0], "
		 "\"half_axes_mm\": [1, 0, 1], \"becquerel_per_ml\": 5}]}",
		 "half_axes_mm above 0"},
		{"{\"kind\": \"pet\", \"position\": \"HFS\", \"shapes\": [{\"kind\": \"cylinder\", \"center_mm\": [0, 0, 0], "
		 "\"half_axes_mm\": [1, 1, -1], \"becquerel_per_ml\": 5}]}",
		 "half_axes_mm above 0"},
		{"{\"kind\": \"pet\", \"position\": \"HFS\", \"shapes\": [{\"kind\": \"cylinder\", \"center_mm\": [0, 0, 0], "
		 "\"half_axes_mm\": [1, 1, 1]}]}",
		 "becquerel_per_ml"},
		{"{\"kind\": \"pet\", \"position\": \"HFS\", \"shapes\": [{\"kind\": \"cylinder\", \"center_mm\": [0, 0, 0], "
		 "\"half_axes_mm\": [1, 1, 1], \"becquerel_per_ml\": 5}], \"background_mm\": [[1, 2], [3]]}",
		 "circle 2 is not two numbers"},
	};
	struct image_series *s = series((int[]){20, 20, 5}, (double[]){2, 2, 3}, false, false, "BQML");
	struct series_request q = {SERIES_CIRCLE, "c", {5, -8, 20}, 60, 0};
	struct series_requests all = {.request = &q, .n = 1};

	refused(s, &all, "c extends beyond the image: columns -4.5 to 25.5 of 20");
	q.at[2] = 28;
	refused(s, &all, "c is at slice 5.7, outside the series of 5 slices: its centre is 5, -8, 28 mm");
	q = (struct series_request){SERIES_UNIFORM, "u", {5, -8, 20}, 38, 30};
	refused(s, &all, "u: slices -2 to 8 of 5"); /* 30 mm are 10 slices */
	all = (struct series_requests){.image = 1};
	refused(s, &all, "image 2; the series has 1");
	for (size_t i = 0; i < sizeof(truths) / sizeof(truths[0]); i++) {
		all = (struct series_requests){.truth = truth_file(truths[i][0])};
		refused(s, &all, truths[i][1]);
	}
	image_series_close(s);
}

/* As many shapes as a truth may have, and one more; of the most nothing else is wrong. */
TEST(number_of_shapes)
{
	struct image_series *s = series((int[]){20, 20, 5}, (double[]){2, 2, 3}, false, false, "BQML");
	char *text = malloc(257 * 120 + 100);

	for (int more = 0; more < 2; more++) {
		struct series_requests all = {0};
		size_t n = (size_t)sprintf(text, "{\"kind\": \"pet\", \"position\": \"HFS\", \"shapes\": [");

		for (int i = 0; i < 256 + more; i++)
			n += (size_t)sprintf(text + n,
					     "%s{\"kind\": \"ellipsoid\", \"center_mm\": [0, 0, 0], \"half_axes_mm\": [1, 1, 1], "
					     "\"becquerel_per_ml\": 5}",
					     i ? "," : "");
		sprintf(text + n, "]}");
		all.truth = truth_file(text);
		if (more)
			refused(s, &all, "257 shapes; allowed: 1 to 256");
		else
			json_decref(run(s, NULL, 0, all.truth));
	}
	free(text);
	image_series_close(s);
}

static int setup(void **state)
{
	test_folder(folder, sizeof(folder));
	return 0;
}

TESTS_SETUP(setup, NULL);
