/* SPDX-License-Identifier: Apache-2.0 */
/* Keys of what is kept of a PET case for its further results: equal for equal inputs; each other input makes another key, and
 * nothing is kept where the content of the files is not known. */
#include "node/reconstruct/case_cache.h"
#include "tests/test.h"

static struct pet_cache *cache;

struct inputs {
	struct case_decision decision;
	struct protocol_conf protocol;
	struct sinogram s;
	struct michelogram_segment segments[1];
	struct michelogram m;
	const char *what;
	double settings[2];
	bool cached;
};

static struct inputs inputs_make(void)
{
	struct inputs in = {.segments = {{0, 0, 4}}, .what = "step 1", .settings = {435, 650}, .cached = true};

	snprintf(in.decision.content, sizeof(in.decision.content), "00112233445566778899aabbccddeeff");
	in.m = (struct michelogram){
		.scanner = {4, 96, 6, 120, 5, 4}, .n_radial = 33, .n_angles = 48, .n_segments = 1, .tof = {5, 90, 25}};
	return in;
}

static struct case_cache_key key_of(struct inputs *in)
{
	struct reconstruct_work work = {.decision = &in->decision, .protocol = &in->protocol, .cache = in->cached ? cache : NULL};
	struct case_corrections c = {.work = &work, .s = &in->s, .m = &in->m};

	in->m.segments = in->segments;
	return case_cache_key(&c, in->what, in->settings, sizeof(in->settings));
}

TEST(each_input_makes_another_key)
{
	struct inputs in[12];
	struct case_cache_key keys[12], again;
	size_t n = 0;

	for (size_t i = 0; i < 12; i++)
		in[i] = inputs_make();
	in[++n].decision.content[31] = 'e'; /* a byte of a file */
	in[++n].what = "step 2";	    /* the version */
	in[++n].settings[1] = 651;	    /* keV */
	in[++n].s.chosen = 1;		    /* another frame, gate or bed */
	strcpy(in[++n].protocol.pet.frames, "2x60");
	in[++n].s.images.n = 4;
	in[++n].s.images.gates.longest = 1200; /* ms */
	in[++n].m.scanner.radius = 121;
	in[++n].m.n_radial = 31;
	in[++n].m.tof.n = 1;
	in[++n].segments[0].n_planes = 3;
	for (size_t i = 0; i <= n; i++) {
		keys[i] = key_of(&in[i]);
		assert_true(keys[i].known);
		for (size_t k = 0; k < i; k++)
			if (!memcmp(keys[i].hash, keys[k].hash, sizeof(keys[i].hash)))
				fail_msg("inputs %zu and %zu have the same key", i, k);
	}
	in[0] = inputs_make();
	in[0].protocol.pet.iterations = 7; /* of the image, of which randoms and scatter do not depend */
	again = key_of(&in[0]);
	assert_memory_equal(again.hash, keys[0].hash, sizeof(again.hash));
}

TEST(nothing_is_kept_of_unknown_content)
{
	struct reconstruct_work work = {.cache = cache};
	struct case_corrections c = {.work = &work};
	struct inputs in = inputs_make();
	struct case_cache_key key = key_of(&in);
	const double value = 3;
	size_t n;

	assert_null(case_cache_find(&c, &key, &n));
	case_cache_keep(&c, &key, &value, sizeof(value));
	assert_memory_equal(case_cache_find(&c, &key, &n), &value, sizeof(value));
	in.decision.content[0] = '\0';
	key = key_of(&in);
	assert_false(key.known);
	case_cache_keep(&c, &key, &value, sizeof(value));
	assert_null(case_cache_find(&c, &key, &n));
	in = inputs_make();
	in.cached = false;
	assert_false(key_of(&in).known);
}

/* What the cache takes of a result, which is one value for each frame, gate or bed, up to its size. */
TEST(bytes_are_counted)
{
	struct inputs in = inputs_make();
	struct reconstruct_work work = {.decision = &in.decision, .protocol = &in.protocol, .cache = cache};
	struct case_corrections c = {.work = &work, .s = &in.s};

	assert_int_equal(case_cache_bytes(&c, 1000), 1000);
	in.s.images.n = 7;
	assert_int_equal(case_cache_bytes(&c, 1000), 7000);
	assert_int_equal(case_cache_bytes(&c, PET_CACHE_BYTES / 4), PET_CACHE_BYTES);
	assert_int_equal(case_cache_bytes(&c, PET_CACHE_BYTES / 2 + 4), 0); /* not kept */
	in.decision.content[0] = '\0';
	assert_int_equal(case_cache_bytes(&c, 1000), 0);
	in = inputs_make();
	work.cache = NULL;
	assert_int_equal(case_cache_bytes(&c, 1000), 0);
}

/* The plan of a case has the memory of the stored scatter: the value in the cache, and the copy that it is made from. */
TEST(scatter_is_planned)
{
	struct inputs in = inputs_make();
	struct device *dev = NULL;
	struct reconstruct_work work = {.decision = &in.decision, .protocol = &in.protocol};
	struct case_corrections c[2];
	struct scatter_estimate_conf conf;
	struct scatter_estimate_plan plan;

	assert_int_equal(device_open("cpu:1", &dev, NULL), 0);
	work.dev = dev;
	in.m.segments = in.segments;
	in.protocol.pet.scatter_iterations = 2;
	in.s.part[SINOGRAM_EMISSION].header.energy_low = 435;
	in.s.part[SINOGRAM_EMISSION].header.energy_high = 650;
	in.s.part[SINOGRAM_EMISSION].header.energy_resolution = 12;
	for (int i = 0; i < 2; i++) {
		work.cache = i ? cache : NULL;
		c[i] = (struct case_corrections){
			.work = &work, .s = &in.s, .m = &in.m, .made = PET_CORRECT_ATTENUATION | PET_CORRECT_RANDOMS};
		assert_int_equal(case_step_scatter.prepare(&c[i], NULL), 0);
		assert_true(c[i].made & PET_CORRECT_SCATTER);
	}
	conf = (struct scatter_estimate_conf){.simulation = c[1].scatter.simulation, .iterations = 2, .threads = 1};
	assert_int_equal(scatter_estimate_plan(&in.m, &conf, dev, &plan, NULL), 0);
	assert_true(plan.bytes_packed > 0);
	assert_int_equal(c[1].bytes_host - c[0].bytes_host, plan.bytes_packed);
	assert_int_equal(c[1].bytes_read - c[0].bytes_read, plan.bytes_packed);
	device_close(dev);
}

static int start(void **state)
{
	cache = pet_cache_create(NULL, 1 << 20);
	return cache ? 0 : -1;
}

static int stop(void **state)
{
	cache = pet_cache_free(cache);
	return 0;
}

TESTS_SETUP(start, stop);
