/* SPDX-License-Identifier: Apache-2.0 */
/* Slices that a person looks at on the page: values, order and window are those of the series that a report shows. */
#include "tests/node/result/pet_result_fixture.h"
#include "tests/test.h"

#include <jansson.h>

#include "node/report/look.h"
#include "node/result/thumbnail.h"
#include "node/tools/series_window.h"

static const char *name_of_file(void)
{
	static char name[256];
	DIR *d = opendir(folder);
	struct dirent *e;

	while (d && (e = readdir(d)))
		if (strstr(e->d_name, ".dcm"))
			snprintf(name, sizeof(name), "%s", e->d_name);
	closedir(d);
	return name;
}

/* Compare a slice with the values of the series, whose range is `range`. */
static void check_slice(const struct look *l, long slice, double range)
{
	const float *values;
	struct err err = {0};
	struct html h GOES(html_clear) = {0};
	const unsigned char *bytes;
	json_t *head;
	int width = 0, height = 0;
	double lo = 0, step = 0;

	if (look_slice(l, slice, &h, &err) < 0)
		fail_msg("%s", err.msg);
	bytes = (const unsigned char *)strchr(h.text, '\n') + 1;
	assert_int_equal((bytes - (const unsigned char *)h.text) % 2, 0);
	head = json_loadb(h.text, (size_t)(bytes - (const unsigned char *)h.text), 0, NULL);
	assert_int_equal(json_unpack(head, "{s:i, s:i, s:F, s:F}", "width", &width, "height", &height, "lo", &lo, "step", &step),
			 0);
	assert_true(width == NX && height == NY && step > 0 && step < range / 1000);
	assert_int_equal(h.n, (size_t)(bytes - (const unsigned char *)h.text) + 2 * NX * NY);
	assert_int_equal(json_integer_value(json_object_get(head, "slices")), NZ);
	assert_int_equal(json_integer_value(json_object_get(head, "slice")), slice);
	assert_near(json_number_value(json_object_get(head, "black")), l->window.hi,
		    1e-8 * l->window.hi); /* PET: high values are dark */
	assert_true(json_number_value(json_object_get(head, "white")) == 0);
	assert_true(json_string_length(json_object_get(head, "left")) > 0);
	assert_int_equal(image_series_slice(l->s, 0, (int)slice - 1, &values, &err), 0);
	for (int i = 0; i < NX * NY; i++)
		assert_true(fabs(lo + step * (bytes[2 * i] + 256 * bytes[2 * i + 1]) - (double)values[i]) <= 0.51 * step);
	json_decref(head);
}

/* The picture of the overview has the polarity of the report: high values are dark. */
static void check_thumbnail(const struct look *l)
{
	const char *file = name_of_file();
	struct picture p GOES(picture_clear) = {0};
	const float *values;
	int least = 0, most = 0;

	assert_int_equal(thumbnail_make(folder, &file, 1, NULL), 0);
	assert_int_equal(picture_read(path_of("thumbnail.png"), &p, NULL), 0);
	unlink(path_of("thumbnail.png"));
	assert_true(p.width == NX && p.height == NY);
	for (int k = 0; k < NZ;
	     k++) { /* the slice with the largest values is as good as the one of the picture: all grow alike */
		assert_int_equal(image_series_slice(l->s, 0, k, &values, NULL), 0);
		for (int i = 0; i < NX * NY; i++) {
			least = values[i] < values[least] ? i : least;
			most = values[i] > values[most] ? i : most;
		}
	}
	assert_true(p.value[most] < 0.1f && p.value[least] > p.value[most]);
}

TEST(test_slices)
{
	static const long none[] = {-1, 0, NZ + 1, 999999999999999999};
	struct err err = {0};
	struct html h = {0};
	struct input in;
	struct look l;
	double top;

	input_make(&in);
	write_series(&in);
	if (look_open(NULL, folder, name_of_file(), &l, &err) < 0)
		fail_msg("%s", err.msg);
	assert_int_equal(look_slices(&l), NZ);
	assert_int_equal(series_window_top(l.s, 0, &top, &err), 0);
	assert_true(l.window.inverse && l.window.lo == 0 && l.window.hi == top);
	for (long k = 1; k <= NZ; k++)
		check_slice(&l, k, top);
	for (size_t i = 0; i < sizeof(none) / sizeof(none[0]); i++)
		assert_int_equal(look_slice(&l, none[i], &h, &err), -ERANGE);
	assert_int_equal(h.n, 0);

	check_thumbnail(&l);
	/* all side by side: squares */
	assert_int_equal(look_strip(&l, &h, &err), 0);
	assert_memory_equal(h.text, "\x89PNG\r\n\x1a\n", 8);
	assert_int_equal((unsigned char)h.text[19], NZ * NX);
	assert_int_equal((unsigned char)h.text[23], NX);
	html_clear(&h);

	look_close(&l);
	assert_int_equal(look_open(NULL, folder, "other.dcm", &l, &err), -ENOENT);
}

TESTS_SETUP(start, stop);
