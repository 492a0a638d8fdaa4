/* SPDX-License-Identifier: Apache-2.0 */
/* The pictures of corrections: what is written is read again; a file that is damaged, hostile or of another series is refused. */
#include "node/format/correction_pictures.h"
#include "tests/test.h"

#define SERIES "2.25.17"
#define RADIAL 5

static char folder[64];

static double *numbers(double first)
{
	double *v = malloc(RADIAL * sizeof(*v));

	assert_non_null(v);
	for (int i = 0; i < RADIAL; i++)
		v[i] = first + i / 8.0;
	return v;
}

static void make_map(struct correction_map *m, int width, int height, double highest)
{
	*m = (struct correction_map){
		.width = width, .height = height, .size = {100, 50}, .highest = highest, .across = {1, 0, 0}, .down = {0, 1, 0}};
	m->value = malloc((size_t)width * (size_t)height);
	assert_non_null(m->value);
	for (int i = 0; i < width * height; i++)
		m->value[i] = (unsigned char)(7 * i);
}

static void make(struct correction_pictures *p)
{
	*p = (struct correction_pictures){.series = SERIES, .image = "gate", .number = 2, .n_images = 3, .acf_plane = 3};
	for (int i = 0; i < CORRECTION_PLANES; i++)
		make_map(&p->mu[i], 4 + i, 40, 0.096);
	make_map(&p->acf, 17, 3, 16.5);
	p->n_planes = 7;
	p->n_radial = RADIAL;
	p->radius = numbers(-0.25);
	p->n_profiles = 2;
	for (int i = 0; i < p->n_profiles; i++) {
		p->profile[i].plane = 1 + i;
		p->profile[i].position = -3.5 * i;
		p->profile[i].prompts = numbers(1000.5);
		p->profile[i].randoms = i ? NULL : numbers(0.125);
	}
}

static void same_map(const struct correction_map *a, const struct correction_map *b)
{
	assert_int_equal(a->width, b->width);
	assert_int_equal(a->height, b->height);
	assert_memory_equal(a->size, b->size, sizeof(a->size));
	assert_memory_equal(a->across, b->across, sizeof(a->across));
	assert_memory_equal(a->down, b->down, sizeof(a->down));
	assert_true(a->lowest == b->lowest && a->highest == b->highest);
	assert_memory_equal(a->value, b->value, (size_t)a->width * (size_t)a->height);
}

static void write_text(const char *text)
{
	char path[200];
	struct err err = {0};

	assert_int_equal(correction_pictures_path(folder, SERIES, path, sizeof(path), &err), 0);
	test_put_file(path, text, strlen(text));
}

static void refused(int code, const char *sentence)
{
	struct correction_pictures p = {0};
	struct err err = {0};

	assert_int_equal(correction_pictures_read(folder, SERIES, &p, &err), code);
	if (!strstr(err.msg, sentence))
		fail_msg("\"%s\" is not in \"%s\"", sentence, err.msg);
	assert_null(p.radius);
}

TEST(test_round_trip)
{
	struct correction_pictures p, q = {0};
	struct err err = {0};
	json_t *all;

	make(&p);
	all = correction_pictures_encode(&p);
	if (correction_pictures_write(all, folder, SERIES, &err) < 0 || correction_pictures_read(folder, SERIES, &q, &err) < 0)
		fail_msg("%s", err.msg);
	assert_string_equal(q.series, SERIES);
	assert_string_equal(q.image, "gate");
	assert_int_equal(q.number, 2);
	assert_int_equal(q.n_images, 3);
	for (int i = 0; i < CORRECTION_PLANES; i++)
		same_map(&p.mu[i], &q.mu[i]);
	same_map(&p.acf, &q.acf);
	assert_int_equal(q.acf_plane, 3);
	assert_int_equal(q.n_planes, 7);
	assert_int_equal(q.n_profiles, 2);
	assert_int_equal(q.n_radial, RADIAL);
	for (int i = 0; i < RADIAL; i++) {
		assert_true(fabs(q.radius[i] - p.radius[i]) < 1e-9);
		assert_true(fabs(q.profile[1].prompts[i] / p.profile[1].prompts[i] - 1) < 1e-5);
		assert_true(fabs(q.profile[0].randoms[i] - p.profile[0].randoms[i]) < 1e-9);
	}
	assert_null(q.profile[1].randoms);
	assert_null(q.profile[0].scatter);
	assert_int_equal(q.profile[1].plane, 2);
	assert_true(q.profile[1].position == -3.5);
	assert_int_equal(correction_pictures_write(all, folder, "2.25.18", &err), -EBADMSG);
	correction_pictures_clear(&p);
	correction_pictures_clear(&q);
	json_decref(all);
}

/* Each member alone with a value that it may not have, by the reader of the worker and by that of the report. */
TEST(test_damaged)
{
	static const struct {
		const char *member, *value;
	} cases[] = {
		{"tomonode", "\"other\""},
		{"version", "2"},
		{"series", "\"../../x\""},
		{"series", "\"\""},
		{"image", "[\"<b>\", 1, 2]"},
		{"image", "[\"gate\", 4, 3]"},
		{"mu", "[null, null]"},
		{"mu", "[null, null, {}]"},
		{"acf",
		 "{\"pixels\":[1,1],\"size\":[1,1],\"range\":[1,0],\"across\":[0,0,0],\"down\":[0,0,0],\"values\":\"00\"}"},
		{"acf",
		 "{\"pixels\":[1,1],\"size\":[0,1],\"range\":[0,1],\"across\":[0,0,0],\"down\":[0,0,0],\"values\":\"00\"}"},
		{"acf", "{\"pixels\":[1,1],\"size\":[1,1],\"range\":[0,1],\"across\":[0,0,0],\"down\":[0,0,0],\"values\":\"0\"}"},
		{"acf",
		 "{\"pixels\":[1,1],\"size\":[1,1],\"range\":[0,1],\"across\":[0,0,0],\"down\":[0,0,0],\"values\":\"0G\"}"},
		{"acf", "{\"pixels\":[9999,9999],\"size\":[1,1],\"range\":[0,1],\"across\":[0,0,0],\"down\":[0,0,0]}"},
		{"acf_plane", "7"},
		{"planes", "-1"},
		{"radius_mm", "[1, \"2\"]"},
		{"profiles", "[{}, {}, {}, {}]"},
		{"profiles", "[{\"plane\": 7, \"position_mm\": 0, \"prompts\": null, \"randoms\": null, \"scatter\": null}]"},
		{"profiles", "[{\"plane\": 0, \"position_mm\": 0, \"prompts\": [1], \"randoms\": null, \"scatter\": null}]"}};
	struct correction_pictures p;
	json_t *good;

	make(&p);
	good = correction_pictures_encode(&p);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		json_t *bad = json_copy(good), *value = json_loads(cases[i].value, JSON_DECODE_ANY, NULL);
		struct err err = {0};
		char *text;

		assert_non_null(value);
		json_object_set_new(bad, cases[i].member, value);
		if (correction_pictures_write(bad, folder, SERIES, &err) != -EBADMSG || !strstr(err.msg, cases[i].member))
			fail_msg("%s = %s: %s", cases[i].member, cases[i].value, err.msg);
		text = json_dumps(bad, 0);
		write_text(text);
		refused(-EBADMSG, cases[i].member);
		free(text);
		json_decref(bad);
	}
	json_decref(good);
	correction_pictures_clear(&p);
	write_text("{\"tomonode\": \"correc");
	refused(-EBADMSG, "no JSON");
	write_text("");
	refused(-EBADMSG, "no JSON");
	write_text("[]");
	refused(-EBADMSG, "'tomonode'");
}

TEST(test_file)
{
	struct correction_pictures p GOES(correction_pictures_clear) = {0};
	struct err err = {0};
	char path[200], *text;
	json_t *all;

	assert_int_equal(correction_pictures_path(folder, SERIES, path, sizeof(path), &err), 0);
	remove(path);
	refused(-ENOENT, "");
	make(&p);
	strcpy(p.series, "2.25.18"); /* a copy under the name of another series */
	all = correction_pictures_encode(&p);
	text = json_dumps(all, 0);
	write_text(text);
	free(text);
	refused(-EBADMSG, "of the series 2.25.18");
	json_decref(all);
}

static int start(void **state)
{
	test_folder(folder, sizeof(folder));
	return 0;
}

TESTS_SETUP(start, NULL);
