/* SPDX-License-Identifier: Apache-2.0 */
/* What line integrals of parallel beams say about their header: each sentence on both sides of its limit, with its numbers, and
 * those that may stand together; which axis is taken. */
#include "node/reconstruct/reconstruct_internal.h"
#include "tests/test.h"

enum { SLICES = 4, ANGLES = 8, BINS = 8, N = SLICES * ANGLES * BINS };

struct scene {
	struct interfile h;
	struct parallel_look look;
	float lines[N];
	char said[4000];
};

/* Line integrals of 1 with air on both sides; an axis that is that of the header. */
static void make_scene(struct scene *s)
{
	*s = (struct scene){
		.h = {.parallel = {SLICES, ANGLES, BINS, .bin = 2, .slice = 3, .arc = 180}, .unit = INTERFILE_ATTENUATION},
		.look = {.axis = {.sigma = 0.01}, .views = {.known = true, .agree = true}}};
	for (int i = 0; i < N; i++)
		s->lines[i] = i % BINS > 0 && i % BINS < BINS - 1;
}

static void fill_lines(struct scene *s, float first, float last, float inside)
{
	for (int i = 0; i < N; i++)
		s->lines[i] = i % BINS == 0 ? first : i % BINS == BINS - 1 ? last : inside;
}

static void fill_signs(struct scene *s, double negative)
{
	for (int i = 0; i < N; i++)
		s->lines[i] = i < negative * N ? -1 : 1;
}

/* The sentences must be `parts` in this order, and no others; the parts are their beginnings. NULL behind the last. */
static void check_said(struct scene *s, const char *what, const char *const *parts)
{
	const char *at = s->said;
	size_t n = 0, n_said = 0;

	parallel_sum_lines(&s->h.parallel, s->lines, NULL, &s->look.sums);
	parallel_note(&s->h, &s->look, s->said, sizeof(s->said));
	for (; parts[n]; n++) {
		at = strstr(at, parts[n]);
		if (!at)
			fail_msg("%s: \"%s\" is not in, or not in its place of \"%s\"", what, parts[n], s->said);
		at += strlen(parts[n]);
	}
	for (at = s->said; *at; at++) /* a sentence ends with a full stop and a blank, or with the text */
		n_said += *at == '.' && (at[1] == '\0' || at[1] == ' ');
	if (n_said != n)
		fail_msg("%s: %zu sentences, expected %zu: \"%s\"", what, n_said, n, s->said);
}

#define SAYS(what, change, ...)                                                                                                  \
	do {                                                                                                                     \
		make_scene(&s);                                                                                                  \
		change;                                                                                                          \
		check_said(&s, what, (const char *const[]){__VA_ARGS__, NULL});                                                  \
	} while (0)
#define SAYS_NOTHING(what, change) SAYS(what, change, NULL)

TEST(lines_that_are_not_of_an_object)
{
	struct scene s;

	SAYS_NOTHING("an object", );
	SAYS_NOTHING("30", s.lines[9] = 30);
	SAYS("more than 30", s.lines[9] = 30.5F, "Line integrals are up to 30.5, which no photons pass");
	SAYS_NOTHING("of another unit", s.lines[9] = 30.5F; s.h.unit[0] = 'g');
	SAYS("transmissions", fill_lines(&s, 0.95F, 1, 0.25F),
	     "Line integrals are from 0.25 to 1 and 0.95 at the edges of the views");
	SAYS("brighter than air by a tenth", fill_lines(&s, 1.09F, 1, 0.25F), "Line integrals are from 0.25 to 1.09 and 1 at");
	SAYS_NOTHING("brighter than that", fill_lines(&s, 1.11F, 1, 0.25F));
	SAYS_NOTHING("no air at one edge", fill_lines(&s, 1, 0.89F, 0.25F));
	SAYS("nearly air", fill_lines(&s, 1, 0.91F, 0.25F), "Line integrals are from 0.25 to 1 and 0.91 at");
	SAYS("nothing negative", fill_lines(&s, 1, 1, 0), "Line integrals are from 0 to 1 and 1 at");
	SAYS_NOTHING("negative", fill_lines(&s, 1, 1, -0.01F));
	SAYS_NOTHING("all as air", fill_lines(&s, 1, 1, 0.91F));
	SAYS("zeros", fill_lines(&s, 0, -0.0F, 0), "All line integrals are 0.");
	SAYS_NOTHING("three quarters negative", fill_signs(&s, 0.75));
	SAYS("more are negative", fill_signs(&s, 0.76), "The sum of the line integrals is negative");
}

TEST(detector_bins_and_rings)
{
	struct scene s;

	SAYS("no dark field", s.look.flat.n_flat = 1, "There is no dark field");
	SAYS_NOTHING("dark field", s.look.flat.n_flat = s.look.flat.n_dark = 1);
	SAYS("a dead bin", s.look.flat.dead = 1;
	     s.look.flat.bins = 64, "1 of 64 detector bins are no measurement (1 dead", "Iterative algorithms leave them out");
	SAYS("no signal", s.look.flat.dark = 1; s.look.flat.values = 99, "1 of 99 line integrals have no signal");
	SAYS("rings", s.look.ring_width = 1;
	     s.look.rings = ((struct parallel_rings){0.25, 0.125}),
	     "Rings up to 1 bin were removed: offsets of detector bins of 0.25 (line integrals, root mean square), of which 0.125 are",
	     "A faint edge of the object that is round");
	SAYS("a round object", s.look.ring_width = 3; s.look.rings.n_round = 2, "Rings up to 3 bins",
						      "Edges of an object that is round about the axis were left in 2 slices");
	SAYS("few views", s.h.parallel.n_angles = 3, "3 views of 8 bins, and a slice needs about 12");
	SAYS_NOTHING("enough views", s.h.parallel.n_angles = 4);
}

/* What was done to the data is said of doubtful line integrals, too; what the views say is not: they are no line integrals. */
TEST(doubtful_lines_and_what_was_done_to_them)
{
	struct scene s;

#define DONE                                                                                                                     \
	s.look.flat = (struct parallel_flat_report){.n_flat = 1, .bins = 64, .values = 99, .dead = 2, .dark = 3};                \
	s.look.ring_width = 3;                                                                                                   \
	s.h.parallel.n_angles = 2;                                                                                               \
	s.look.views = (struct parallel_consistency){.known = true, .n_odd = 1, .air = 0.5, .rough = 0.5, .axes_differ = true};  \
	s.look.faults.of[PARALLEL_COPY].n = 1
#define DONE_SAYS                                                                                                                \
	"There is no dark field", "2 of 64", "Iterative algorithms", "3 of 99", "Rings up to 3", "A faint edge of",              \
		"2 views of 8 bins"
	SAYS("up to 31", s.lines[9] = 31; DONE, "Line integrals are up to 31", DONE_SAYS);
	SAYS("transmissions", fill_lines(&s, 1, 1, 0.25F); DONE, "Line integrals are from 0.25", DONE_SAYS);
	SAYS("zeros", fill_lines(&s, 0, 0, 0); DONE, "All line integrals are 0", DONE_SAYS);
	SAYS("right lines", DONE, DONE_SAYS, "Slice 1 of 4 has other data", "View 1, at 0 degrees",
	     "The sums of half of the views", "Line integrals are 0.5 at both ends", "The views contradict the angles");
}

TEST(views_that_do_not_fit)
{
	static const double angles[ANGLES] = {0, 1, 2, 3, 4, 5, 6, 90};
	const struct parallel_consistency bad = {.known = true,
						 .centre_rest = 1.5,
						 .width_rest = 2.5,
						 .centre_limit = 3.5,
						 .width_limit = 4.5,
						 .odd = 3,
						 .odd_mass = 1.25};
	struct parallel_faults *faults;
	struct scene s;

	faults = &s.look.faults;
	for (int fault = PARALLEL_ODD_VIEW; fault < PARALLEL_FAULTS; fault++)
		for (int n = 1; n <= 3; n++) {
			static const char *const more[] = {"", ", as do 1 more slice", ", as do 2 more slices"};
			static const char *const says[PARALLEL_FAULTS][2] = {
				[PARALLEL_ODD_VIEW] = {"Slice 3 of 4 has other data than the rest",
						       ": its view 4, at 67.5 degrees, has 1.25 times"},
				[PARALLEL_ANGLES] = {"Slice 3 of 4 contradicts the angles in the header",
						     ", unlike the rest: its centres of mass deviate by 1.5 mm, its widths by "
						     "2.5 mm, and noise explains 3.5 and 4.5 mm"},
				[PARALLEL_AXIS] = {"Slice 3 of 4 has another axis of rotation than the rest",
						   ": its centres of mass turn about a point 5 mm (2.5 bins) from theirs"},
				[PARALLEL_COPY] = {"Slice 3 of 4 has other data than the rest",
						   ": its data are those of the slice before it"},
			};
			char text[300];

			snprintf(text, sizeof(text), "%s%s%s", says[fault][0], more[n - 1], says[fault][1]);
			SAYS("a slice", faults->of[fault].n = n; faults->of[fault].first = 2; faults->of[fault].value = 5;
			     faults->of[fault].c = bad, text);
		}
	SAYS("a view", s.look.views.n_odd = 1; s.look.views.odd = 7;
	     s.look.views.odd_mass = 1.25, "View 8, at 157.5 degrees, has 1.25 times the sum of the views beside it: probably");
	SAYS("two views", s.look.views.n_odd = 2,
	     "View 1, at 0 degrees, has 0 times the sum of the views beside it, and 1 more view: ");
	SAYS("three views", s.look.views.n_odd = 3, "beside it, and 2 more views: ");
	SAYS_NOTHING("even sums", s.look.views.rough = 0.02);
	SAYS("uneven sums", s.look.views.rough = 0.03, "The sums of half of the views differ by 3 % or more");
	SAYS("sums by turns", s.look.views.rough = 0.03;
	     s.look.views.alternate = true, "every second view has about 1.06 times the sum");
	SAYS("other air", s.look.views.rough = 0.03;
	     s.look.views.air_spread = 0.1, "differ from view to view by 0.1 (standard deviation)");
	SAYS("wrong air", s.look.views.air = -0.5, "Line integrals are -0.5 at both ends of all views");
	SAYS("other angles", s.look.views = bad,
	     "deviate by 1.5 mm from a turn of one object, their widths by 2.5 mm, and noise or a truncated "
	     "object explain 3.5 and 4.5 mm: angles are wrong or exchanged");
	SAYS("stretched angles", s.look.views.stretched = true;
	     s.look.views.stretch = -0.04,
	     "The angles in the header are probably stretched, which doubles edges: the centres of mass and the widths of the views agree "
	     "with angles 0.96 times as large");
	SAYS_NOTHING("perhaps stretched", s.look.views.stretch = -0.04);
	SAYS_NOTHING("nothing is known", s.look.views.agree = s.look.views.known = false);
	SAYS("twice the angles", s.look.views = bad; s.look.views.factor = 2, "4.5 mm: arc (degrees) := 360 would agree");
	SAYS("more than a turn", s.look.views = bad; s.look.views.factor = 2.5, "4.5 mm: angles 2.5 times those of the header");
	SAYS("a list of angles", s.look.views = bad; s.look.views.factor = 2;
	     s.h.parallel.angle = angles, "4.5 mm: angles 2 times those");
}

TEST(angles_in_radians)
{
	struct scene s;

	/* the last view may be at the end of the arc, or one step before it; to 0.5 % */
	SAYS("half a turn", s.h.parallel.arc = 3.1416;
	     s.look.views.agree = false, "from 0 to 2.7489 degrees, half a turn in radians");
	SAYS("with its end", s.h.parallel.arc = 3.1416 * ANGLES / (ANGLES - 1),
	     "from 0 to 3.1416 degrees, half a turn in radians");
	SAYS("a turn", s.h.parallel.arc = 6.2832; s.h.parallel.first_angle = -2, "from -2 to 3.4978 degrees, a turn in radians");
	SAYS("nearly", s.h.parallel.arc = 3.1416 * 0.996, "half a turn in radians");
	SAYS_NOTHING("less", s.h.parallel.arc = 3.1416 * 0.994);
	SAYS("one view", s.h.parallel.arc = 3.1416; s.h.parallel.n_angles = 1, "1 view of 8 bins");
	SAYS("two views", s.h.parallel.arc = 3.1416; s.h.parallel.n_angles = 2, "2 views of 8 bins", "half a turn in radians");
}

TEST(the_axis_of_rotation)
{
	struct scene s;

#define FOUND(place, noise) s.look.axis = ((struct parallel_axis){.by = PARALLEL_AXIS_SEAM, .offset = place, .sigma = noise})
	SAYS("other axes", s.look.views.axes_differ = true; FOUND(4, 0.1), "The slices have different axes");
	SAYS("not found", s.h.parallel.offset_unknown = true;
	     s.look.axis.reason = PARALLEL_AXIS_ARC,
	     "do not show it (less than half a turn): the axis of rotation is taken in the middle");
	SAYS_NOTHING("found", s.h.parallel.offset_unknown = true);
	SAYS_NOTHING("within 3/4 of a bin", FOUND(-1.5, 0.1));
	SAYS("elsewhere", FOUND(-1.9, 0.1);
	     s.look.given = 0.5,
	     "axis offset is 0.5 mm in the header, -1.9 +- 0.1 mm in the data (by first and last view), which is 1.2 bins away; axis");
	SAYS_NOTHING("and used", FOUND(-1.6, 0.1); s.look.is_found = true);
	SAYS_NOTHING("or noise", FOUND(1.6, 0.4));
	SAYS("or not", FOUND(1.6, 0.39), "The axis of rotation is elsewhere");
	SAYS_NOTHING("or unknown", FOUND(1.6, 0.1); s.look.axis.reason = PARALLEL_AXIS_UNCERTAIN);
	/* half a bin, 1 mm, at the end of 4 slices of 3 mm: atan(1/6) = 9.46 degrees */
	SAYS_NOTHING("upright", s.look.axis.lean = -9.4);
	SAYS("leaning", s.look.axis.lean = -9.5, "leans by -9.5 degrees: in the first and the last slice it is 0.5 bins away");
	SAYS_NOTHING("unknown", s.look.axis.lean = 20; s.look.axis.reason = PARALLEL_AXIS_NOISE);
}

TEST(which_axis_is_taken)
{
	static const struct {
		enum parallel_axis_rule rule;
		bool unknown;
		double found, taken; /* mm; 1 in the header; taken: NaN where the case is refused */
		enum parallel_axis_reason reason;
	} rows[] = {
		{PARALLEL_AXIS_HEADER, false, 5, 1, PARALLEL_AXIS_KNOWN},
		{PARALLEL_AXIS_HEADER, true, 5, 5, PARALLEL_AXIS_KNOWN},
		{PARALLEL_AXIS_FOUND, false, 5.0011, 5.002, PARALLEL_AXIS_KNOWN}, /* in steps of 1/1000 bin */
		{PARALLEL_AXIS_FOUND, false, 1.19, 1, PARALLEL_AXIS_KNOWN},	  /* within a tenth of a bin */
		{PARALLEL_AXIS_FOUND, false, 1.21, 1.21, PARALLEL_AXIS_KNOWN},
		{PARALLEL_AXIS_FOUND, true, 5, 1, PARALLEL_AXIS_UNCERTAIN},
		{PARALLEL_AXIS_AGREE, false, 2.4, 1, PARALLEL_AXIS_KNOWN},
		{PARALLEL_AXIS_AGREE, false, 2.6, NAN, PARALLEL_AXIS_KNOWN},
		{PARALLEL_AXIS_AGREE, false, 2.6, 1, PARALLEL_AXIS_FEW},
		{PARALLEL_AXIS_AGREE, true, 2.6, 2.6, PARALLEL_AXIS_KNOWN},
	};
	static const char *const words[] = {"seam",
					    "few views or bins",
					    "less than half a turn",
					    "no place fits better than others",
					    "several places fit about as well",
					    "noise"};
	struct err err = {0};
	struct scene s;

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		int rc;

		make_scene(&s);
		FOUND(rows[i].found, 0.01);
		s.look.axis.reason = rows[i].reason;
		s.look.given = 1;
		s.h.parallel.offset_unknown = rows[i].unknown;
		rc = parallel_settle_axis(rows[i].rule, &s.h.parallel, &s.look, &err);
		if (isnan(rows[i].taken)) {
			assert_error(rc, &err, EBADMSG, "axis offset");
			continue;
		}
		assert_int_equal(rc, 0);
		assert_near(s.h.parallel.offset, rows[i].taken, 1e-9);
		assert_int_equal(s.look.is_found, rows[i].taken != 1);
	}
	for (int reason = PARALLEL_AXIS_KNOWN; reason <= PARALLEL_AXIS_UNCERTAIN; reason++)
		assert_string_equal(parallel_axis_word(&(struct parallel_axis){.reason = reason, .by = PARALLEL_AXIS_SEAM}),
				    words[reason]);
}
