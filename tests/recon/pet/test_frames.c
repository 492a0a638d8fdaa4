/* SPDX-License-Identifier: Apache-2.0 */
/* Tables of time frames: what they mean, to the millisecond; refused ones, with the entry; to which frame a time belongs. */
#include "recon/pet/frames.h"
#include "tests/test.h"

static struct pet_images parse(const char *text)
{
	struct pet_images f;
	struct err err = {0};

	assert_done(pet_frames_parse(text, &f, &err), &err);
	return f;
}

static void is_frame(const struct pet_images *f, int i, long start, long stop)
{
	assert_int_equal(f->image[i].time.start, start);
	assert_int_equal(f->image[i].time.stop, stop);
}

TEST(tables)
{
	struct pet_images f = parse("6x10,4x30,120");

	assert_int_equal(f.n, 11);
	is_frame(&f, 0, 0, 10000);
	is_frame(&f, 5, 50000, 60000);
	is_frame(&f, 6, 60000, 90000);
	is_frame(&f, 10, 180000, 300000);
	f = parse("(2x5), 0.5,(0.001),1x2.125 ");
	assert_int_equal(f.n, 2);
	is_frame(&f, 0, 10000, 10500);
	is_frame(&f, 1, 10501, 12626);
	assert_int_equal(parse("").n, 0);
	assert_int_equal(parse("512x1").n, PET_FRAMES_MAX);
	f = parse("2147483.647");
	is_frame(&f, 0, 0, PET_FRAMES_END);
}

TEST(refused)
{
	static const struct {
		const char *text, *part;
	} cases[] = {
		{"6x10,4y30", "entry 2 is \"4y30\"; allowed: SECONDS or COUNTxSECONDS"},
		{"6x10,", "entry 2 is \"\""},
		{",10", "entry 1 is \"\""},
		{"10,,10", "entry 2 is \"\""},
		{"10 20", "entry 1 is \"10 20\""},
		{"x10", "entry 1"},
		{"5x", "entry 1"},
		{"1e3", "entry 1"},
		{"-10", "entry 1"},
		{"10.", "entry 1"},
		{"0.0005", "entry 1"},
		{"(10", "entry 1"},
		{"10)", "entry 1"},
		{"()", "entry 1"},
		{"10,0", "entry 2 is \"0\"; counts and seconds must be above 0"},
		{"0x10", "must be above 0"},
		{"10,512x1", "entry 2 is \"512x1\"; a table has at most 512 frames"},
		{"513x1", "at most 512 frames"},
		{"2147483.648", "at most 2147483.647 s"},
		{"(2147483),1", "entry 2 is \"1\"; the table may end"},
		{"99999999999999999999", "entry 1"},
		{"(10),(20)", "gaps only"},
		{"gates", "entry 1 is \"gates\""},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct pet_images f = {.n = -7};
		struct err err = {0};

		if (pet_frames_parse(cases[i].text, &f, &err) != -EINVAL || !strstr(err.msg, cases[i].part))
			fail_msg("\"%s\": %s", cases[i].text, err.msg);
		assert_int_equal(f.n, -7); /* written only on success */
	}
}

TEST(within_the_acquisition)
{
	struct pet_images f = parse("2x10,30.25");
	struct err err = {0};

	assert_int_equal(pet_frames_check(&f, 50.25, &err), 0);
	assert_int_equal(pet_frames_check(&f, 50.249, &err), -ENOTSUP);
	assert_string_equal(err.msg, "frames: frame 3 ends after 50.25 s, but the acquisition has 50.249 s");
}

/* Each time is in one frame or in none; a frame has its start, not its end. */
TEST(times_of_frames)
{
	struct pet_images f = parse("(1),2x0.01,(0.005),0.02");
	struct pet_images_near near = {0};

	assert_int_equal(pet_images_find(&f, 1040, &near), 2); /* and back */
	for (long t = 0; t < 1100; t++) {
		int wanted = t < 1000 ? -1 : t < 1010 ? 0 : t < 1020 ? 1 : t < 1025 ? -1 : t < 1045 ? 2 : -1;

		for (int i = 0; i < f.n; i++)
			assert_int_equal(pet_frame_has(&f.image[i].time, t), i == wanted);
		assert_int_equal(pet_images_find(&f, t, &near), wanted);
	}
}
