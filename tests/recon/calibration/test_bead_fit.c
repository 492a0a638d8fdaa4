/* SPDX-License-Identifier: Apache-2.0 */
/* The fit of a system's geometry to positions of beads: random true geometries of several systems, positions with noise, compared
 * with the uncertainties that the geometry allows. TOMONODE_FIT_TRIALS=50: more geometries of each system, and a table of their
 * errors as lines for docs/dbt-calibration.md. */
#include "recon/calibration/bead_judge.h"
#include "recon/core/scan.h"
#include "tests/recon/dbt_fixture.h"
#include "tests/test.h"

#define BEADS 12
#define VIEWS_MAX 25
#define NOISE 0.1 /* bins */
#define TRIALS 4
#define ALIKE_TRIALS 50

struct system {
	const char *name;
	int views, n_u, n_v;
	double arc, pitch, value[SYSTEM_PARAMETERS];
	bool turns;
	double sd[SYSTEM_PARAMETERS]; /* known uncertainty with 12 beads in two layers 50 mm apart; 0: not compared */
};

static const struct system systems[] = {
	{"Siemens Inspiration",
	 25,
	 2816,
	 3584,
	 50,
	 0.085,
	 {47, 608.5, 0, 0, 0, 17, 0, 0},
	 false,
	 {0.04, 0.06, 0.015, 0, 0, 0.003}},
	{"GE Essential", 9, 2394, 2850, 25, 0.1, {40, 620, 0, 0, 0, 22, 0, 0}, false, {0.13, 0.12, 0.03, 0, 0, 0.011}},
	{"Hologic Dimensions",
	 15,
	 1664,
	 2048,
	 15,
	 0.14,
	 {0, 700, -13.7, 0, 0, 25, 0.285, 0.3},
	 true,
	 {0.21, 0.18, 0.04, 0, 0, 0.018, 0.0013}},
};
#define SYSTEMS (sizeof(systems) / sizeof(systems[0]))

static uint64_t random_state = 1;

static double uniform(void) /* in -1..1 */
{
	random_state = random_state * 6364136223846793005u + 1442695040888963407u;
	return (double)(random_state >> 11) * 0x1p-52 - 1;
}

static double normal(void)
{
	double sum = 0;

	for (int i = 0; i < 48; i++)
		sum += uniform();
	return sum / 4; /* variance of a term: 1/3 */
}

/* An exam of a phantom: its truth and what a fit gets. */
struct exam {
	double truth[SYSTEM_PARAMETERS], pose[3], angle[VIEWS_MAX], at[BEADS][3];
	struct bead_point points[BEADS * VIEWS_MAX];
	struct bead_fit_input in;
};

/* Lay out two layers, 5 and 55 mm above the phantom's bottom, without symmetry. */
static void make_beads(struct exam *e)
{
	static const double spread[BEADS][2] = {{-60, -80}, {-50, 20}, {-15, 85}, {10, -40}, {40, 45},	{60, -70},
						{-55, -30}, {-35, 75}, {0, -85},  {20, 10},  {45, -20}, {62, 80}};

	for (int i = 0; i < BEADS; i++) {
		e->at[i][0] = spread[i][0] + 3 * uniform();
		e->at[i][1] = spread[i][1] + 3 * uniform();
		e->at[i][2] = i < BEADS / 2 ? 5 : 55;
	}
}

/* Compute the bead's true position. */
static void true_place(const struct exam *e, int bead, double ret[3])
{
	double c = cos(e->pose[2] * M_PI / 180), s = sin(e->pose[2] * M_PI / 180);
	const double *p = e->at[bead];

	ret[0] = e->pose[0] + c * p[0] - s * p[1];
	ret[1] = e->pose[1] + s * p[0] + c * p[1];
	ret[2] = e->truth[SYSTEM_SUPPORT] + p[2];
}

static void make_points(struct exam *e, double noise)
{
	double at[3];

	e->in.n_points = 0;
	for (int b = 0; b < BEADS; b++) {
		true_place(e, b, at);
		for (int v = 0; v < e->in.views.n_views; v++) {
			struct bead_point *p = &e->points[e->in.n_points++];

			*p = (struct bead_point){.bead = b, .view = v};
			bead_project(e->truth, &e->in.views, bead_source_angle(e->truth, &e->in.views, v), at, p->at);
			p->at[0] += noise * normal();
			p->at[1] += noise * normal();
		}
	}
}

/* Make an exam of a system whose true geometry differs from the nominal one by random amounts. */
static void make_exam(struct exam *e, const struct system *s, uint64_t seed, enum bead_knowledge knowledge,
		      enum angle_definition definition, double noise)
{
	static const double moved[SYSTEM_PARAMETERS] = {5, 8, 3, 2, 0.3, 2, 0.02, 0};
	static const double reach[SYSTEM_PARAMETERS] = {100, 150, 300, 100, 15, 100, 1, 100};

	*e = (struct exam){0};
	random_state = seed;
	make_beads(e);
	for (int i = 0; i < s->views; i++)
		e->angle[i] = -s->arc / 2 + i * s->arc / (s->views - 1) + 0.05 * uniform();
	e->pose[0] = 0.4 * s->n_u * s->pitch + 5 * uniform();
	e->pose[1] = 10 * uniform();
	e->pose[2] = 8 * uniform();
	e->in.views = (struct bead_views){.n_u = s->n_u,
					  .n_v = s->n_v,
					  .pitch = s->pitch,
					  .n_views = s->views,
					  .angle = e->angle,
					  .sign = 1,
					  .definition = definition};
	e->in.phantom = (struct bead_phantom){.knowledge = knowledge, .n_beads = BEADS, .at = (const double(*)[3])e->at};
	e->in.points = e->points;
	for (int i = 0; i < SYSTEM_PARAMETERS; i++) {
		e->in.start[i] = s->value[i];
		e->in.lo[i] = s->value[i] - reach[i];
		e->in.hi[i] = s->value[i] + reach[i];
		e->in.fitted[i] = i < SYSTEM_RATIO || (i == SYSTEM_RATIO && s->turns);
		e->truth[i] = s->value[i] + (e->in.fitted[i] ? moved[i] * uniform() : 0);
	}
	make_points(e, noise);
}

/* The model is that of the scans: with all parameters, a detector that turns about an axis outside of its plane. */
TEST(model)
{
	static const double system[SYSTEM_PARAMETERS] = {5, 700, -13, 2, 0.4, 25, 0.28, 3, -12}, point[3] = {80, 33, 60};
	double stated[2] = {-7, 6.5}, angle[2], seen[2] = {0}, found[2];
	struct bead_views views = {1664, 2048, 0.14, 2, stated, -1, ANGLE_AT_DETECTOR};
	struct dbt_geometry g = {.n_u = 1664,
				 .n_v = 2048,
				 .pitch = 0.14,
				 .axis_height = 5,
				 .source_axis = 700,
				 .source_x = -13,
				 .source_y = 2,
				 .n_views = 2,
				 .angle = angle,
				 .detector_ratio = 0.28,
				 .detector_axis_y = 3,
				 .detector_axis_height = -12};
	struct scan *scan;

	for (int i = 0; i < 2; i++) {
		angle[i] = bead_source_angle(system, &views, i);
		assert_near(angle[i], scan_angle_turned(0.4 - stated[i], 5, 700), 1e-12);
	}
	scan = fixture_dbt_scan(&g);
	for (int i = 0; i < 2; i++) {
		assert_true(scan_foot(scan, &scan->views[i], point, seen));
		bead_project(system, &views, angle[i], point, found);
		assert_near(found[0], seen[0], 1e-9);
		assert_near(found[1], seen[1], 1e-9);
	}
}

/* Positions without noise give the true parameters, with either definition of the angle. The tolerances are the differences that
 * the end of the iteration leaves. */
TEST(exact)
{
	for (size_t s = 0; s < SYSTEMS; s++)
		for (int d = ANGLE_ABOUT_AXIS; d <= ANGLE_AT_DETECTOR; d++)
			for (int k = BEADS_KNOWN; k <= BEADS_IN_LAYERS; k++) {
				struct exam e;
				struct bead_fit fit GOES(bead_fit_clear) = {0};

				make_exam(&e, &systems[s], 7 + s, (enum bead_knowledge)k, (enum angle_definition)d, 0);
				assert_int_equal(bead_fit_run(&e.in, &fit, NULL), 0);
				for (int i = 0; i < SYSTEM_PARAMETERS; i++)
					assert_near(fit.value[i], e.truth[i], 1e-3);
				for (int i = 0; k == BEADS_KNOWN && i < 3; i++)
					assert_near(fit.pose[i], e.pose[i], 1e-3);
				assert_near(fit.rms, 0, 1e-5);
			}
}

static int trials(void)
{
	const char *text = getenv("TOMONODE_FIT_TRIALS");

	return text ? atoi(text) : TRIALS;
}

struct fit_tally {
	double error, sd; /* sums of squares of errors and of the fits' own standard deviations */
	double largest;	  /* error in units of the known standard deviation */
	int n, beyond;	  /* errors that were compared with it, and those above three of it */
};

static void tally_fit(const struct system *s, const struct exam *e, const struct bead_fit *fit, struct fit_tally *t)
{
	for (int i = 0; i < SYSTEM_PARAMETERS; i++) {
		double error = fit->value[i] - e->truth[i];

		if (!e->in.fitted[i])
			continue;
		t[i].error += error * error;
		t[i].sd += fit->sd[i] * fit->sd[i];
		assert_true(fabs(error) <= 4.5 * fit->sd[i]); /* once in 150 000 */
		if (!(s->sd[i] > 0))
			continue;
		t[i].largest = fmax(t[i].largest, fabs(error) / s->sd[i]);
		t[i].n++;
		t[i].beyond += fabs(error) > 3 * s->sd[i];
	}
}

/* The errors are those that the fit states, and those that are known for each system: of normal errors 0.3 % are above three
 * standard deviations. */
TEST(noise_known)
{
	int n = trials(), compared = 0, beyond = 0;

	for (size_t s = 0; s < SYSTEMS; s++) {
		struct fit_tally t[SYSTEM_PARAMETERS] = {{0}};

		for (int i = 0; i < n; i++) {
			struct exam e;
			struct bead_fit fit GOES(bead_fit_clear) = {0};

			make_exam(&e, &systems[s], 1000 * s + (uint64_t)i, BEADS_KNOWN, ANGLE_ABOUT_AXIS, NOISE);
			assert_int_equal(bead_fit_run(&e.in, &fit, NULL), 0);
			assert_int_equal(bead_judge_fit(&e.in, &fit, NULL), 0);
			assert_near(fit.noise, NOISE, 0.25 * NOISE);
			tally_fit(&systems[s], &e, &fit, t);
		}
		for (int i = 0; i < SYSTEM_PARAMETERS; i++) {
			compared += t[i].n;
			beyond += t[i].beyond;
			if (t[i].sd > 0 && n > TRIALS)
				printf("| %s | `%s` | %.4f | %.4f | %.1f |\n", systems[s].name, system_parameter_names[i],
				       sqrt(t[i].sd / n), sqrt(t[i].error / n), t[i].largest);
		}
	}
	printf("%d of %d errors above three known standard deviations\n", beyond, compared);
	assert_true(beyond <= compared / 100 + 1);
}

/* Errors along u that are the same in all views of a bead: the errors of the parameters are 0.6 to 1.4 of what the fits state.
 * As of independent positions they would be stated at a third of that. */
TEST(noise_alike)
{
	for (size_t s = 0; s < SYSTEMS; s++) {
		double squares[SYSTEM_PARAMETERS] = {0};

		for (int i = 0; i < ALIKE_TRIALS; i++) {
			double of_bead[BEADS];
			struct exam e;
			struct bead_fit fit GOES(bead_fit_clear) = {0};

			make_exam(&e, &systems[s], 5000 + 1000 * s + (uint64_t)i, BEADS_KNOWN, ANGLE_ABOUT_AXIS, NOISE / 2);
			for (int b = 0; b < BEADS; b++)
				of_bead[b] = NOISE * normal();
			for (int k = 0; k < e.in.n_points; k++)
				e.points[k].at[0] += of_bead[e.points[k].bead];
			assert_int_equal(bead_fit_run(&e.in, &fit, NULL), 0);
			for (int k = 0; k < SYSTEM_PARAMETERS; k++)
				if (e.in.fitted[k])
					squares[k] += pow((fit.value[k] - e.truth[k]) / fit.sd[k], 2) / ALIKE_TRIALS;
		}
		for (int k = 0; k < SYSTEM_PARAMETERS; k++)
			if (squares[k] > 0)
				assert_near(sqrt(squares[k]), 1, 0.4);
	}
}

/* Without the positions within a layer, where the source is (source_axis, source_x) is nearly free; with these two fixed, the
 * rest is determined. */
TEST(layers)
{
	for (size_t s = 0; s < SYSTEMS; s++)
		for (int fixed = 0; fixed < 2; fixed++) {
			struct exam e;
			struct bead_fit fit GOES(bead_fit_clear) = {0};
			struct err err = {0};
			int rc;

			make_exam(&e, &systems[s], 1000 * s, BEADS_IN_LAYERS, ANGLE_ABOUT_AXIS, NOISE);
			for (int i = SYSTEM_SOURCE_AXIS; i <= SYSTEM_SOURCE_X; i++) {
				e.in.fitted[i] = !fixed;
				e.in.start[i] = fixed ? e.truth[i] : e.in.start[i];
			}
			assert_int_equal(bead_fit_run(&e.in, &fit, &err), 0);
			rc = bead_judge_fit(&e.in, &fit, &err);
			assert_int_equal(rc, fixed ? 0 : -EDOM);
			if (!fixed)
				assert_non_null(strstr(err.msg, " only to "));
			for (int i = 0; i < SYSTEM_PARAMETERS; i++)
				assert_true(fabs(fit.value[i] - e.truth[i]) <= 4.5 * fit.sd[i]);
		}
}

/* Unknown heights leave axis_height uncertain by 0.7, 10 and 20 mm, and are refused. */
TEST(unknown_heights)
{
	static const double least[SYSTEMS] = {0.5, 7, 12}, most[SYSTEMS] = {1, 14, 28};

	for (size_t s = 0; s < SYSTEMS; s++)
		for (int i = 0; i < trials(); i++) {
			struct exam e;
			struct bead_fit fit GOES(bead_fit_clear) = {0};
			struct err err = {0};

			make_exam(&e, &systems[s], 1000 * s + (uint64_t)i, BEADS_UNKNOWN, ANGLE_ABOUT_AXIS, NOISE);
			assert_int_equal(bead_fit_run(&e.in, &fit, &err), 0);
			assert_in_range((long)(1000 * fit.sd[SYSTEM_AXIS_HEIGHT]), (long)(1000 * least[s]),
					(long)(1000 * most[s]));
			assert_error(bead_judge_fit(&e.in, &fit, &err), &err, EDOM, "heights of the beads are unknown");
		}
}

/* Beads in one layer, or two views, do not determine the geometry. */
TEST(too_little)
{
	struct exam e;
	struct bead_fit fit;
	struct err err = {0};

	make_exam(&e, &systems[1], 3, BEADS_KNOWN, ANGLE_ABOUT_AXIS, NOISE);
	for (int i = 0; i < BEADS; i++)
		e.at[i][2] = 5;
	make_points(&e, NOISE);
	assert_int_equal(bead_fit_run(&e.in, &fit, &err), 0);
	assert_error(bead_judge_fit(&e.in, &fit, &err), &err, EDOM, "more beads");
	bead_fit_clear(&fit);

	make_exam(&e, &systems[1], 3, BEADS_KNOWN, ANGLE_ABOUT_AXIS, NOISE);
	for (int i = e.in.n_points; i-- > 0;)
		if (e.points[i].view > 0)
			e.points[i] = e.points[--e.in.n_points];
	assert_int_equal(bead_fit_run(&e.in, &fit, &err), 0);
	assert_int_equal(bead_judge_fit(&e.in, &fit, &err), -EDOM);
	bead_fit_clear(&fit);

	e.in.phantom.n_beads = 1;
	e.in.n_points = 1;
	e.points[0].bead = 0;
	assert_int_equal(bead_fit_run(&e.in, &fit, &err), -ENODATA);
	e.points[0].at[1] = NAN;
	assert_int_equal(bead_fit_run(&e.in, &fit, &err), -EINVAL);
	e.points[0].at[1] = 0;
	e.points[0].view = 9;
	assert_int_equal(bead_fit_run(&e.in, &fit, &err), -EINVAL);
	e.points[0].view = 0;
	e.in.phantom.n_beads = 2;
	assert_error(bead_fit_run(&e.in, &fit, &err), &err, ENODATA, "bead 1 is in no view");
}

/* A parameter that would leave its range stays at the limit, and the fit is refused. */
TEST(limits)
{
	struct exam e;
	struct bead_fit fit;
	struct err err = {0};

	make_exam(&e, &systems[0], 5, BEADS_KNOWN, ANGLE_ABOUT_AXIS, 0);
	e.in.lo[SYSTEM_SOURCE_X] = -1;
	e.in.hi[SYSTEM_SOURCE_X] = 1;
	e.truth[SYSTEM_SOURCE_X] = 1.5;
	make_points(&e, 0.01);
	assert_int_equal(bead_fit_run(&e.in, &fit, &err), 0);
	assert_true(fit.at_limit[SYSTEM_SOURCE_X]);
	assert_near(fit.value[SYSTEM_SOURCE_X], 1, 0);
	assert_error(bead_judge_fit(&e.in, &fit, &err), &err, EDOM, "source_x is at the limit");
	bead_fit_clear(&fit);
	e.in.start[SYSTEM_SOURCE_X] = 2;
	assert_int_equal(bead_fit_run(&e.in, &fit, &err), -EINVAL);
}

/* Make an exam whose data follow another convention than its input says. */
static void make_wrong(struct exam *e, size_t system, int seed, int sign, enum angle_definition definition, bool mirrored)
{
	make_exam(e, &systems[system], 1000 * system + (uint64_t)seed, BEADS_KNOWN, definition, 0);
	e->in.views.sign = sign;
	make_points(e, NOISE);
	e->in.views.sign = 1;
	e->in.views.definition = ANGLE_ABOUT_AXIS;
	for (int i = 0; mirrored && i < e->in.n_points; i++)
		e->points[i].at[1] = e->in.views.n_v - 1 - e->points[i].at[1];
}

/* Every wrong sign, definition and mirrored image is found. The axis of the turning system is in its detector, so that both
 * definitions are one geometry. */
TEST(conventions)
{
	double least[SYSTEMS][2];

	for (size_t s = 0; s < SYSTEMS; s++) {
		least[s][0] = least[s][1] = INFINITY;
		for (int i = 0; i < (test_tier() == 2 ? trials() : 1); i++)
			for (int kind = 0; kind < 6; kind++) {
				int sign = kind & 1 ? -1 : 1;
				enum angle_definition definition = kind & 2 ? ANGLE_AT_DETECTOR : ANGLE_ABOUT_AXIS;
				bool mirrored = kind & 4;
				struct bead_conventions c;
				struct exam e;
				struct err err = {0};
				int rc;

				make_wrong(&e, s, i, sign, definition, mirrored);
				assert_int_equal(bead_conventions_test(&e.in, &c, &err), 0);
				rc = bead_judge_conventions(&c, &err);
				assert_int_equal(rc, mirrored ? -EDOM : 0);
				assert_int_equal(c.trials[c.best].sign, mirrored ? -sign : sign);
				assert_int_equal(c.trials[c.best].mirrored, mirrored);
				if (systems[s].value[SYSTEM_AXIS_HEIGHT] > 0)
					assert_int_equal(c.trials[c.best].definition, definition);
				least[s][0] = fmin(least[s][0], c.apart);
				least[s][1] = fmin(least[s][1], c.definition_apart);
			}
		printf("%s: a wrong sign or a mirrored image is at least %.3g noise variances apart, a wrong definition %.3g\n",
		       systems[s].name, least[s][0], least[s][1]);
	}
}

/* A view that is displaced against the others is visible in the residuals of the views. */
TEST(displaced_view)
{
	struct bead_view_residual views[VIEWS_MAX];
	struct bead_fit fit GOES(bead_fit_clear) = {0};
	struct exam e;

	make_exam(&e, &systems[0], 11, BEADS_KNOWN, ANGLE_ABOUT_AXIS, NOISE);
	assert_int_equal(bead_fit_run(&e.in, &fit, NULL), 0);
	assert_true(bead_judge_views(&e.in, &fit, views) < 5);
	assert_int_equal(views[3].n, BEADS);
	bead_fit_clear(&fit);
	for (int i = 0; i < e.in.n_points; i++)
		e.points[i].at[0] += e.points[i].view == 7 ? 0.5 : 0;
	assert_int_equal(bead_fit_run(&e.in, &fit, NULL), 0);
	assert_true(bead_judge_views(&e.in, &fit, views) > 5);
	assert_near(views[7].mean[0], 0.5, 0.1);
}
