/* SPDX-License-Identifier: Apache-2.0 */
/* Test the survey of a volume: statistics, noise, and which detail has the largest contrast. */
#include "node/report/survey.h"
#include "tests/node/report/volume_fixture.h"
#include "tests/test.h"

#define N 120
#define SLICES 9

/* Pseudorandom numbers of mean 0 and standard deviation 1. */
static double gauss(unsigned *state)
{
	double sum = 0;

	for (int i = 0; i < 12; i++) {
		*state = *state * 1664525u + 1013904223u;
		sum += (double)*state / 4294967296.0;
	}
	return sum - 6;
}

/* A block of 1 in air: its edges have contrasts on one side only. */
static struct image_series *block(void)
{
	struct image_series *s = volume_make(N, N, SLICES, 1, 1, 3);

	for (int k = 0; k < SLICES; k++)
		for (int j = 10; j < N - 10; j++)
			for (int i = 10; i < N - 10; i++)
				*volume_at(s, i, j, k) = 1;
	return s;
}

static void put_disc(struct image_series *s, int x, int y, int first, int last, double radius, float value)
{
	for (int k = first; k <= last; k++)
		for (int j = 0; j < N; j++)
			for (int i = 0; i < N; i++)
				if (hypot(i - x, j - y) <= radius)
					*volume_at(s, i, j, k) = value;
}

TEST_GIVES_BACK(survey_clear);

static struct survey survey(const struct image_series *s, double reach)
{
	struct survey v;
	struct err err = {0};

	assert_done(survey_make(s, reach, &v, &err), &err);
	test_later(give_back_survey_clear, take_copy(&v, sizeof(v)));
	return v;
}

static void expect_at(const struct survey *v, int i, int j, int k, double contrast)
{
	assert_near(v->at[0], i, 1); /* a cell has 2 x 2 voxels */
	assert_near(v->at[1], j, 1);
	assert_int_equal(v->at[2], k);
	assert_near(v->contrast, contrast, 1e-6);
}

TEST(test_largest)
{
	struct image_series *s = block();
	struct survey v;

	put_disc(s, 40, 70, 2, 7, 4, 3);
	put_disc(s, 80, 50, 1, 4, 4, 2);
	for (int k = 0; k < SLICES; k++)
		for (int i = 10; i < N - 10; i++) /* a line, brighter than both */
			for (int j = 20; j < 24; j++)
				*volume_at(s, i, j, k) = 9;
	v = survey(s, 8);
	expect_at(&v, 40, 70, 4, 2);

	put_disc(s, 60, 90, 5, 6, 4, -4); /* darker than its surroundings, and by more */
	v = survey(s, 8);
	expect_at(&v, 60, 90, 5, -5);
}

/* The place of a ball is its middle, although its rim is brighter at one point. */
TEST(test_rim)
{
	struct image_series *s = block();
	struct survey v;

	for (int k = 0; k < SLICES; k++)
		for (int j = 0; j < N; j++)
			for (int i = 0; i < N; i++)
				if (hypot(hypot(i - 40.5, j - 70.5), 3 * (k - 5)) <= 7)
					*volume_at(s, i, j, k) = 3;
	for (int j = 70; j < 72; j++)
		for (int i = 44; i < 46; i++)
			*volume_at(s, i, j, 4) = 3.5f;
	v = survey(s, 16);
	expect_at(&v, 40, 70, 5, 2.5);
}

/* A detail that is larger than the circles has no contrast. */
TEST(test_reach)
{
	struct image_series *s = block();
	struct survey v;

	put_disc(s, 60, 60, 3, 5, 12, 4);
	v = survey(s, 8);
	assert_true(isnan(v.contrast));
	assert_int_equal(v.at[0], N / 2);
	assert_int_equal(v.at[2], SLICES / 2);
	v = survey(s, 24);
	expect_at(&v, 60, 60, 4, 3);
}

/* A slice with much noise has larger differences, but is not chosen. */
TEST(test_noise)
{
	struct image_series *s = block();
	unsigned seed = 7;
	struct survey v;

	put_disc(s, 40, 70, 4, 4, 4, 3);
	for (int k = 0; k < SLICES; k++)
		for (int j = 10; j < N - 10; j++)
			for (int i = 10; i < N - 10; i++)
				*volume_at(s, i, j, k) += (float)((k == SLICES - 1 ? 2 : 0.05) * gauss(&seed));
	v = survey(s, 8);
	assert_near(v.at[0], 40, 4);
	assert_near(v.at[1], 70, 4);
	assert_int_equal(v.at[2], 4);
	assert_near(v.contrast, 2, 0.2);
	for (int k = 0; k < SLICES - 1; k++)
		assert_near(v.slice_noise[k], 0.05, 0.003);
	assert_in_range((int)(100 * v.slice_noise[SLICES - 1]), 100, 220); /* where both are above the mean: a part of it */
}

TEST(test_statistics)
{
	struct image_series *s = volume_make(4, 2, 3, 1, 1, 1);
	double sum = 0, squares = 0;
	struct survey v;

	for (int k = 0; k < 3; k++)
		for (int j = 0; j < 2; j++)
			for (int i = 0; i < 4; i++) {
				float value = (float)(100 * k + 10 * j + i);

				*volume_at(s, i, j, k) = value;
				sum += value / 24.0;
				squares += value * value / 24.0;
			}
	v = survey(s, 8);
	assert_near(v.lo, 0, 0);
	assert_near(v.hi, 213, 0);
	assert_near(v.mean, sum, 1e-9);
	assert_near(v.sd, sqrt(squares - sum * sum), 1e-9);
	assert_near(v.slice_mean[1], 106.5, 1e-9);
	assert_near(v.slice_sd[1], sqrt(25 + 1.25), 1e-9);
	assert_near(v.image_mean[0], sum, 1e-9);
	assert_int_equal(v.count[0], 1);
	assert_int_equal(v.count[SURVEY_BINS - 1], 1);
	assert_near(survey_quantile(&v, 0.5), 103, 213.0 / SURVEY_BINS); /* 12 of 24 values */
	*volume_at(s, 1, 1, 1) = INFINITY;
	assert_int_equal(survey_make(s, 8, &v, NULL), -EBADMSG);
}

/* Of several images the one with the largest mean is surveyed. */
TEST(test_images)
{
	struct image_series *s = volume_make(3, 3, 4, 1, 1, 1);
	struct survey v;

	s->n[2] = 2;
	s->n_images = 2;
	*volume_at(s, 1, 1, 0) = 9;
	*volume_at(s, 2, 1, 3) = 18; /* second slice of the second image */
	v = survey(s, 8);
	assert_int_equal(v.image, 1);
	assert_near(v.image_mean[0], 0.5, 1e-9);
	assert_near(v.image_mean[1], 1, 1e-9);
	assert_near(v.hi, 18, 0);
}

/* What is hot, or filled with water, does not move the edge of the object; padding and images without contrast have no air. */
TEST(test_object_level)
{
	struct tomo_object padded = {.padding = 65535};
	struct image_series *s = block();
	struct survey v;

	put_disc(s, 40, 70, 2, 7, 4, 30);
	v = survey(s, 8);
	assert_near(survey_object_level(s, &v), 0.5, 30.0 / SURVEY_BINS);
	s->tomo = &padded;
	assert_true(survey_object_level(s, &v) == -INFINITY);
	s->tomo = NULL;
	for (int i = 0; i < N * N * SLICES; i++)
		s->values[i] = 1000 * (s->values[i] - 1);
	snprintf(s->units, sizeof(s->units), "HU");
	v = survey(s, 8);
	assert_near(survey_object_level(s, &v), -500, 30000.0 / SURVEY_BINS);
	memset(s->values, 0, N * N * SLICES * sizeof(float));
	v = survey(s, 8);
	assert_true(survey_object_level(s, &v) == -INFINITY);
}
