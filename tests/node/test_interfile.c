/* Interfile headers: what is read, in every spelling; the values behind every number format, byte order and order of axes; what a
 * header leaves open; what is written; and what is refused, with its line. */
#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "node/config.h"
#include "node/interfile.h"

/* 3 rings; segments of ring differences -1 .. 1 (5 planes) and 2 (1 plane) */
#define GOOD                                                                                                                     \
	"!INTERFILE  :=\n"                                                                                                       \
	"name of data file := data.s\n"                                                                                          \
	"!type of data := PET\n"                                                                                                 \
	"imagedata byte order := LITTLEENDIAN\n"                                                                                 \
	"!PET data type := Emission\n"                                                                                           \
	"applied corrections := {arc correction}\n"                                                                              \
	"!number format := float\n"                                                                                              \
	"!number of bytes per pixel := 4\n"                                                                                      \
	"number of dimensions := 4\n"                                                                                            \
	"matrix axis label [4] := segment\n"                                                                                     \
	"!matrix size [4] := 2\n"                                                                                                \
	"matrix axis label [3] := view\n"                                                                                        \
	"!matrix size [3] := 4\n"                                                                                                \
	"matrix axis label [2] := axial coordinate\n"                                                                            \
	"!matrix size [2] := { 5,1}\n"                                                                                           \
	"matrix axis label [1] := tangential coordinate\n"                                                                       \
	"!matrix size [1] := 3\n"                                                                                                \
	"minimum ring difference per segment := { -1,2}\n"                                                                       \
	"maximum ring difference per segment := { 1,2}\n"                                                                        \
	"Scanner type := Bench\n"                                                                                                \
	"Number of rings := 3\n"                                                                                                 \
	"Number of detectors per ring := 16\n"                                                                                   \
	"Inner ring diameter (cm) := 20\n"                                                                                       \
	"Average depth of interaction (cm) := 0.7\n"                                                                             \
	"Distance between rings (cm) := 0.654\n"                                                                                 \
	"Default bin size (cm) := 0.4\n"                                                                                         \
	"View offset (degrees) := 2.5\n"                                                                                         \
	"end scanner parameters:=\n"                                                                                             \
	"effective central bin size (cm) := 0.3\n"                                                                               \
	"image scaling factor[1] := 1\n"                                                                                         \
	"data offset in bytes[1] := 0\n"                                                                                         \
	"number of time frames := 1\n"                                                                                           \
	"!END OF INTERFILE :=\n"

static int parse(const char *text, struct interfile *ret, struct err *err)
{
	memset(err, 0, sizeof(*err));
	memset(ret, 0, sizeof(*ret));
	return interfile_parse(text, strlen(text), ret, err);
}

static void must_parse(const char *text, struct interfile *ret)
{
	struct err err;

	if (parse(text, ret, &err) < 0)
		fail_msg("%s\n%s", err.msg, text);
}

/* GOOD with each first text replaced by the second. */
#define SWAPS 3
static const char *with(const char *const swaps[SWAPS][2])
{
	static char text[8192], before[8192];

	snprintf(text, sizeof(text), "%s", GOOD);
	for (int i = 0; i < SWAPS && swaps[i][0]; i++) {
		const char *at;

		memcpy(before, text, sizeof(before));
		at = strstr(before, swaps[i][0]);
		if (!at)
			fail_msg("no \"%s\" in the header", swaps[i][0]);
		snprintf(text, sizeof(text), "%.*s%s%s", (int)(at - before), before, swaps[i][1], at + strlen(swaps[i][0]));
	}
	return text;
}
#define WITH(...) with((const char *const[SWAPS][2]){__VA_ARGS__})

static void test_header(void **state)
{
	struct interfile f;
	struct err err;
	(void)state;

	must_parse(GOOD, &f);
	assert_int_equal(f.kind, INTERFILE_PROJECTIONS);
	assert_string_equal(f.data_file, "data.s");
	assert_string_equal(f.scanner, "Bench");
	assert_int_equal(f.number, INTERFILE_FLOAT);
	assert_int_equal(f.bytes, 4);
	assert_false(f.big_endian);
	assert_int_equal(f.order, INTERFILE_BY_VIEW);
	assert_true(f.scale == 1 && f.offset == 0);
	assert_int_equal(f.m.n_segments, 2);
	assert_int_equal(f.m.segments[0].n_planes, 5);
	assert_int_equal(f.m.segments[1].first, 2);
	assert_int_equal(f.m.n_radial, 3);
	assert_int_equal(f.m.n_angles, 4);
	assert_true(f.m.arc_corrected && !f.precorrected);
	assert_int_equal(f.m.scanner.rings, 3);
	assert_int_equal(f.m.scanner.detectors, 16);
	assert_true(fabs(f.m.scanner.radius - 100) < 1e-12 && fabs(f.m.scanner.interaction_depth - 7) < 1e-12);
	assert_true(fabs(f.m.scanner.ring_spacing - 6.54) < 1e-12 && fabs(f.m.scanner.bin - 3) < 1e-12);
	assert_true(f.m.angle_offset == 2.5);
	assert_true(isnan(f.duration) && isnan(f.start));
	assert_int_equal(interfile_bytes(&f), 6 * 4 * 3 * 4);
	assert_int_equal(interfile_complete(&f, NULL, &err), 0);
	assert_int_equal(michelogram_check(&f.m, &err), 0);
	interfile_clear(&f);
}

/* Case, spaces, '!', '_', line ends, comments, order of lines, indices: nothing of it matters. */
static void test_spellings(void **state)
{
	static const char *const same[][SWAPS][2] = {
		{{"!INTERFILE  :=", "interfile:="},
		 {"!number format :=", "NUMBER_FORMAT:="},
		 {"Number of rings", "!numberOF  rings"}},
		{{"!matrix size [1] := 3", "matrix size[1]:=3"}, {"!matrix size [2] := { 5,1}", "Matrix Size[ 2 ] := {5 , 1 }"}},
		{{"data.s\n", "data.s\n; a comment := of no matter\n\n  \n"}},
		{{"{ -1,2}", "{ -1,\n   2}"}},
		{{"{ 1,2}", "{ 1,\r\n2}\r"}},
		{{"Inner ring diameter (cm) := 20\n", "Inner ring diameter \\\n(cm) \\\r\n := 20\n"}},
		{{"(cm) := 0.654", "(mm) := 6.54"}, {"(cm) := 20", "(mm) := 200"}},
		{{"image scaling factor[1] := 1\n", "image scaling factor := 1.0\nquantification units := 1\n"}},
		{{"data offset in bytes[1] := 0\n", "data starting block := 0\nimage scaling factor[1] := 1\n"}},
		{{"image scaling factor[1] := 1\n", "image scaling factor[1] := {1, 1,1}\n"}},
		{{"!END OF INTERFILE :=\n", ""}},
		{{"!END OF INTERFILE :=\n", "!END OF INTERFILE :=\nwhat follows\nis not read"}},
		{{"frames := 1\n!END OF INTERFILE :=\n", "frames := 1"}}, /* no line end */
		{{"LITTLEENDIAN", "LittleEndian"}, {"Scanner type", "%vendor key := {\n; unknown\n}\nScanner type"}},
		{{"number of dimensions := 4", "number of dimensions := 5\nmatrix axis label [5] := timing positions\n"
					       "!matrix size [5] := 1"}},
		{{"{arc correction}", "arc corrected"}},
	};
	struct interfile want, f;
	char crlf[8192];
	size_t n = 0;
	struct err err;
	(void)state;

	must_parse(GOOD, &want);
	assert_int_equal(interfile_complete(&want, NULL, &err), 0);
	for (size_t i = 0; i <= sizeof(same) / sizeof(same[0]); i++) {
		if (i < sizeof(same) / sizeof(same[0])) {
			must_parse(with(same[i]), &f);
		} else {
			for (const char *c = GOOD; *c; c++) {
				if (*c == '\n')
					crlf[n++] = '\r';
				crlf[n++] = *c;
			}
			crlf[n] = '\0';
			must_parse(crlf, &f);
		}
		if (interfile_complete(&f, NULL, &err) < 0 || interfile_same_rays(&want, &f, &err) < 0)
			fail_msg("spelling %zu: %s", i, err.msg);
		assert_int_equal(f.number, want.number);
		assert_int_equal(f.big_endian, want.big_endian);
		assert_int_equal(f.order, want.order);
		assert_true(f.scale == 1 && f.offset == 0);
		assert_string_equal(f.data_file, "data.s");
		interfile_clear(&f);
	}
	interfile_clear(&want);
}

static void test_meanings(void **state)
{
	struct interfile f;
	(void)state;

	must_parse(WITH({"{arc correction}", "{None}"}), &f);
	assert_false(f.m.arc_corrected || f.precorrected);
	interfile_clear(&f);
	must_parse(WITH({"applied corrections := {arc correction}\n", ""}), &f);
	assert_false(f.m.arc_corrected || f.precorrected);
	interfile_clear(&f);
	must_parse(WITH({"{arc correction}", "{ Arc Correction , measured attenuation,scatter }"}), &f);
	assert_true(f.m.arc_corrected && f.precorrected);
	assert_string_equal(f.corrections, "measured attenuation,scatter");
	interfile_clear(&f);
	must_parse(WITH({"imagedata byte order := LITTLEENDIAN\n", ""}), &f);
	assert_true(f.big_endian); /* Interfile's default */
	interfile_clear(&f);
	must_parse(WITH({"effective central bin size (cm) := 0.3\n", ""}), &f);
	assert_true(fabs(f.m.scanner.bin - 4) < 1e-12); /* the scanner's own */
	interfile_clear(&f);
	must_parse(WITH({"offset in bytes[1] := 0", "offset in bytes[1] := 7"}, {"factor[1] := 1", "factor[1] := 0.25"}), &f);
	assert_true(f.offset == 7 && f.scale == 0.25);
	interfile_clear(&f);
	must_parse(WITH({"data offset in bytes[1] := 0", "data starting block := 3"},
			{"image scaling factor[1]", "quantification units"}),
		   &f);
	assert_true(f.offset == 6144 && f.scale == 1);
	interfile_clear(&f);
	must_parse(WITH({"number of time frames := 1\n",
			 "number of time frames := 1\nimage duration (sec)[1] := 90.5\nimage relative start time (sec)[1] := 3\n"
			 "study date (yyyy:mm:dd) := 2010:06:29\nstudy time (hh:mm:ss) := 10:20:30.5\npatient orientation := "
			 "head_in\n"
			 "patient rotation := Prone\n"}),
		   &f);
	assert_true(f.duration == 90.5 && f.start == 3);
	assert_string_equal(f.date, "20100629");
	assert_string_equal(f.time, "102030");
	assert_string_equal(f.position, "HFP");
	interfile_clear(&f);
	must_parse(
		WITH({"number of dimensions := 4\nmatrix axis label [4] := segment\n!matrix size [4] := 2",
		      "number of dimensions := 3"},
		     {"{ 5,1}", "5"},
		     {"{ -1,2}\nmaximum ring difference per segment := { 1,2}", "-1\nmaximum ring difference per segment := 1"}),
		&f);
	assert_int_equal(f.m.n_segments, 1);
	interfile_clear(&f);
}

/* ---- values ---- */

/* What value has a bin; fits every format that is tested. */
static double truth(size_t plane, size_t angle, size_t radial)
{
	return (double)(plane * 12 + angle * 3 + radial);
}

static void store(uint8_t *p, double v, enum interfile_number number, int bytes, bool big_endian)
{
	uint64_t bits = 0;
	float s = (float)v;

	if (number != INTERFILE_FLOAT)
		bits = (uint64_t)(int64_t)v;
	else if (bytes == 4)
		memcpy(&bits, &s, 4);
	else
		memcpy(&bits, &v, 8);
	for (int i = 0; i < bytes; i++)
		p[i] = (uint8_t)(bits >> 8 * (big_endian ? bytes - 1 - i : i));
}

static void check_values(enum interfile_number number, int bytes, bool big_endian, bool by_view)
{
	static const char *const names[] = {"", "signed integer", "unsigned integer", "float"};
	size_t n = 0, planes[] = {5, 1}, first = 0, offset = 5;
	double sign = number == INTERFILE_UNSIGNED ? 1 : -1;
	char format[40], size[40];
	uint8_t data[6 * 12 * 8 + 5];
	struct interfile f;
	float values[12];

	snprintf(format, sizeof(format), "number format := %s", names[number]);
	snprintf(size, sizeof(size), "bytes per pixel := %d", bytes);
	must_parse(WITH({"number format := float", format}, {"bytes per pixel := 4", size}), &f);
	f.big_endian = big_endian;
	f.order = by_view ? INTERFILE_BY_VIEW : INTERFILE_BY_PLANE;
	f.scale = 0.5;
	f.offset = offset;
	for (int s = 0; s < 2; first += planes[s], s++)
		for (size_t i = 0; i < (by_view ? 4 : planes[s]); i++)
			for (size_t k = 0; k < (by_view ? planes[s] : 4); k++)
				for (size_t t = 0; t < 3; t++)
					store(data + offset + (size_t)bytes * n++,
					      sign * truth(first + (by_view ? k : i), by_view ? i : k, t), number, bytes,
					      big_endian);
	assert_int_equal(n, 72);
	for (size_t plane = 0; plane < 6; plane++) {
		interfile_plane(&f, data, plane, values);
		for (size_t i = 0; i < 12; i++)
			if (values[i] != (float)(0.5 * sign * truth(plane, i / 3, i % 3)))
				fail_msg("%s of %d bytes, %s endian, by %s: plane %zu, bin %zu is %g, not %g", names[number],
					 bytes, big_endian ? "big" : "little", by_view ? "view" : "plane", plane, i,
					 (double)values[i], 0.5 * sign * truth(plane, i / 3, i % 3));
	}
	if (number == INTERFILE_FLOAT && bytes == 4 && !big_endian) { /* the plain ones are copied */
		f.scale = 1;
		interfile_plane(&f, data, 4, values);
		assert_true(values[7] == (float)-truth(4, 2, 1));
	}
	interfile_clear(&f);
}

static void test_values(void **state)
{
	static const struct {
		enum interfile_number number;
		int bytes;
	} formats[] = {{INTERFILE_SIGNED, 1},	{INTERFILE_SIGNED, 2},	 {INTERFILE_SIGNED, 4},	  {INTERFILE_SIGNED, 8},
		       {INTERFILE_UNSIGNED, 1}, {INTERFILE_UNSIGNED, 2}, {INTERFILE_UNSIGNED, 4}, {INTERFILE_UNSIGNED, 8},
		       {INTERFILE_FLOAT, 4},	{INTERFILE_FLOAT, 8}};
	(void)state;

	for (size_t i = 0; i < sizeof(formats) / sizeof(formats[0]); i++)
		for (int k = 0; k < 4; k++)
			check_values(formats[i].number, formats[i].bytes, k & 1, k & 2);
}

static void test_orders(void **state)
{
	struct interfile f;
	(void)state;

	must_parse(WITH({"[3] := view\n!matrix size [3] := 4", "[3] := axial coordinate\n!matrix size [3] := { 5,1}"},
			{"matrix axis label [2] := axial coordinate\n!matrix size [2] := { 5,1}",
			 "matrix axis label [2] := view\n!matrix size [2] := 4"}),
		   &f);
	assert_int_equal(f.order, INTERFILE_BY_PLANE);
	assert_int_equal(f.m.segments[0].n_planes, 5);
	assert_int_equal(f.m.n_angles, 4);
	interfile_clear(&f);
}

/* ---- what is left open ---- */

static struct scanner_conf bench(void)
{
	return (struct scanner_conf){.name = "bench",
				     .scanner = {3, 16, 6.54, 100, 7, 3},
				     .n_radial = 3,
				     .n_angles = 4,
				     .span = 1,
				     .max_difference = 2,
				     .angle_offset = 1.5,
				     .arc_corrected = true};
}

static void test_complete(void **state)
{
	struct scanner_conf known = bench();
	struct interfile f;
	struct err err = {0};
	(void)state;

	must_parse(WITH({"Number of rings := 3\n", ""}, {"Distance between rings (cm) := 0.654\n", ""},
			{"View offset (degrees) := 2.5\n", ""}),
		   &f);
	assert_int_equal(interfile_complete(&f, NULL, &err), -ENOKEY);
	assert_non_null(strstr(err.msg, "number of rings, distance between rings;"));
	assert_int_equal(f.m.scanner.rings, 0);
	assert_int_equal(interfile_complete(&f, &known, &err), 0);
	assert_int_equal(f.m.scanner.rings, 3);
	assert_true(f.m.angle_offset == 1.5 && f.m.scanner.radius == 100);
	interfile_clear(&f);

	/* what the header says wins; a radius brings its own depth */
	known.scanner.rings = 40;
	known.scanner.interaction_depth = 9;
	must_parse(WITH({"Average depth of interaction (cm) := 0.7\n", ""}), &f);
	assert_int_equal(interfile_complete(&f, &known, &err), 0);
	assert_int_equal(f.m.scanner.rings, 3);
	assert_true(f.m.scanner.interaction_depth == 0);
	interfile_clear(&f);
	must_parse(WITH({"Average depth of interaction (cm) := 0.7\n", ""}, {"Inner ring diameter (cm) := 20\n", ""}), &f);
	assert_int_equal(interfile_complete(&f, &known, &err), 0);
	assert_true(f.m.scanner.interaction_depth == 9 && f.m.scanner.radius == 100);
	interfile_clear(&f);

	/* planes that the rings do not have */
	must_parse(WITH({"{ 5,1}", "{ 5,2}"}), &f);
	assert_int_equal(interfile_complete(&f, NULL, &err), -EBADMSG);
	assert_non_null(strstr(err.msg, "segment 1 has 2 planes"));
	interfile_clear(&f);
	must_parse(WITH({"Number of rings := 3", "Number of rings := 2"}), &f);
	assert_int_equal(interfile_complete(&f, NULL, &err), -EBADMSG);
	interfile_clear(&f);
}

/* Without ring differences, the scanner's own segments must be there. */
static void test_differences(void **state)
{
	static const char *const none[SWAPS][2] = {{"minimum ring difference per segment := { -1,2}\n", ""},
						   {"maximum ring difference per segment := { 1,2}\n", ""},
						   {"{ 5,1}", "{ 3,2}"}};
	struct scanner_conf known = bench();
	struct interfile f;
	struct err err = {0};
	(void)state;

	must_parse(with(none), &f);
	assert_true(f.no_differences);
	assert_int_equal(interfile_complete(&f, NULL, &err), -ENOKEY);
	assert_non_null(strstr(err.msg, "ring differences"));
	assert_int_equal(interfile_complete(&f, &known, &err), -EBADMSG); /* span 1, up to 2: 5 segments */
	assert_non_null(strstr(err.msg, "its 2 segments are not the 5"));
	interfile_clear(&f);
	/* -1 .. 1 and nothing else: what GE's span 2 makes of it */
	must_parse(WITH({"minimum ring difference per segment := { -1,2}\nmaximum ring difference per segment := { 1,2}\n", ""},
			{"!matrix size [4] := 2", "!matrix size [4] := 1"}, {"{ 5,1}", "5"}),
		   &f);
	known.span = 2;
	known.max_difference = 1;
	assert_int_equal(interfile_complete(&f, &known, &err), 0);
	assert_true(f.m.segments[0].first == -1 && f.m.segments[0].last == 1 && !f.no_differences);
	interfile_clear(&f);
}

static void test_other_rays(void **state)
{
	static const struct {
		const char *from, *to, *says;
	} cases[] = {
		{"!matrix size [3] := 4", "!matrix size [3] := 5", "angles: 4 and 5"},
		{"!matrix size [1] := 3", "!matrix size [1] := 4", "radial bins: 3 and 4"},
		{"(cm) := 0.3", "(cm) := 0.31", "radial bin, mm"},
		{"(cm) := 0.654", "(cm) := 0.7", "distance of rings"},
		{"(cm) := 0.7", "(cm) := 0.8", "radius where rays end"},
		{":= 2.5", ":= 2.6", "first angle"},
		{"{arc correction}", "None", "arc correction"},
	};
	struct interfile a, b;
	struct err err;
	(void)state;

	must_parse(GOOD, &a);
	assert_int_equal(interfile_complete(&a, NULL, &err), 0);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		must_parse(WITH({cases[i].from, cases[i].to}), &b);
		assert_int_equal(interfile_complete(&b, NULL, &err), 0);
		assert_int_equal(interfile_same_rays(&a, &b, &err), -EBADMSG);
		if (!strstr(err.msg, cases[i].says))
			fail_msg("\"%s\" wanted, not: %s", cases[i].says, err.msg);
		interfile_clear(&b);
	}
	/* One bin more of many: still another geometry. */
	interfile_clear(&a);
	must_parse(WITH({"!matrix size [1] := 3", "!matrix size [1] := 20000"}), &a);
	must_parse(WITH({"!matrix size [1] := 3", "!matrix size [1] := 20001"}), &b);
	assert_int_equal(interfile_complete(&a, NULL, &err), 0);
	assert_int_equal(interfile_complete(&b, NULL, &err), 0);
	assert_int_equal(interfile_same_rays(&a, &b, &err), -EBADMSG);
	assert_non_null(strstr(err.msg, "radial bins: 20000 and 20001"));
	interfile_clear(&b);
	interfile_clear(&a);
	must_parse(GOOD, &a);
	assert_int_equal(interfile_complete(&a, NULL, &err), 0);
	must_parse(WITH({"{ 5,1}", "{ 1,5}"}, {"{ -1,2}", "{2,-1}"}, {"{ 1,2}", "{2,1}"}), &b);
	assert_int_equal(interfile_complete(&b, NULL, &err), 0);
	assert_int_equal(interfile_same_rays(&a, &b, &err), -EBADMSG);
	assert_non_null(strstr(err.msg, "segment 0"));
	interfile_clear(&b);
	interfile_clear(&a);
}

/* ---- writing ---- */

static void test_write(void **state)
{
	struct interfile f = {
		.kind = INTERFILE_PROJECTIONS,
		.data_file = "ste.s",
		.number = INTERFILE_SIGNED,
		.bytes = 2,
		.big_endian = true,
		.offset = 12,
		.scale = 0.1,
		.order = INTERFILE_BY_PLANE,
		.m = {.scanner = {24, 560, 6.54, 443.1, 8.4, 2.397}, .n_radial = 329, .n_angles = 280, .arc_corrected = true},
		.corrections = "attenuation,scatter",
		.scanner = "GE Discovery STE",
		.duration = 600.25,
		.start = NAN,
		.date = "20260629",
		.time = "081500",
		.position = "FFDR"};
	struct interfile again;
	struct err err = {0};
	char *text = NULL;
	(void)state;

	assert_int_equal(michelogram_segments(24, 2, 23, &f.m.segments, &f.m.n_segments, &err), 0);
	assert_int_equal(michelogram_planes(&f.m), 553);
	assert_int_equal(interfile_bytes(&f), (uint64_t)553 * 280 * 329 * 2);
	if (interfile_write(&f, &text, &err) < 0)
		fail_msg("%s", err.msg);
	must_parse(text, &again);
	assert_int_equal(interfile_complete(&again, NULL, &err), 0);
	if (interfile_same_rays(&f, &again, &err) < 0)
		fail_msg("%s", err.msg);
	assert_true(fabs(again.m.scanner.radius - 443.1) < 1e-12 * 443.1 && again.m.scanner.detectors == 560);
	assert_true(again.bytes == 2 && again.number == INTERFILE_SIGNED && again.big_endian && again.offset == 12);
	assert_true(again.scale == 0.1 && again.order == INTERFILE_BY_PLANE && again.duration == 600.25 && isnan(again.start));
	assert_string_equal(again.data_file, "ste.s");
	assert_string_equal(again.scanner, "GE Discovery STE");
	assert_string_equal(again.corrections, "attenuation,scatter");
	assert_string_equal(again.date, "20260629");
	assert_string_equal(again.time, "081500");
	assert_string_equal(again.position, "FFDR");
	interfile_clear(&again);
	free(text);
	snprintf(f.data_file, sizeof(f.data_file), "a\n!END OF INTERFILE :=");
	assert_true(interfile_write(&f, &text, &err) < 0); /* would come back as something else */
	interfile_clear(&f);
}

static void test_image(void **state)
{
	struct interfile f = {.kind = INTERFILE_IMAGE,
			      .data_file = "a.v",
			      .number = INTERFILE_FLOAT,
			      .bytes = 4,
			      .scale = 1,
			      .n = {128, 64, 47},
			      .spacing = {2.5, 2.6, 3.27},
			      .first = {-158.75, -81.9, 0.1},
			      .duration = NAN,
			      .start = NAN};
	struct interfile again;
	struct err err = {0};
	char *text = NULL, *cut;
	(void)state;

	if (interfile_write(&f, &text, &err) < 0)
		fail_msg("%s", err.msg);
	must_parse(text, &again);
	assert_int_equal(again.kind, INTERFILE_IMAGE);
	assert_memory_equal(again.n, f.n, sizeof(f.n));
	assert_memory_equal(again.spacing, f.spacing, sizeof(f.spacing));
	assert_memory_equal(again.first, f.first, sizeof(f.first));
	assert_int_equal(interfile_bytes(&again), (uint64_t)128 * 64 * 47 * 4);
	assert_int_equal(interfile_complete(&again, NULL, &err), -EBADMSG);
	while ((cut = strstr(text, "first pixel offset")))
		memcpy(cut, "some other key    ", 18);
	must_parse(text, &again);
	assert_true(again.first[0] == -64 * 2.5 && again.first[1] == -32 * 2.6 && again.first[2] == 0);
	free(text);
}

/* ---- what is refused ---- */

static void test_refusals(void **state)
{
	static const struct {
		const char *from, *to;
		int code;
		const char *says;
	} cases[] = {
		{"!INTERFILE  :=", "!INTERFACE :=", EBADMSG, "line 1: an Interfile header begins with"},
		{"name of data file := data.s\n", "", EBADMSG, "\"name of data file\" is missing"},
		{"name of data file := data.s", "name of data file :=", EBADMSG, "\"name of data file\" is missing"},
		{"name of data file := data.s", "name of data file = data.s", EBADMSG, "line 2: no ':='"},
		{"data.s\n", "data.s\nname of data file := other.s\n", EBADMSG,
		 "line 3: \"name of data file\" is \"other.s\"; line 2 says \"data.s\""},
		{":= PET\n", ":= Tomographic\n", ENOTSUP, "line 3: !type of data := Tomographic; read: PET"},
		{"LITTLEENDIAN", "MIDDLE", EBADMSG, "line 4: imagedata byte order := MIDDLE; read: LITTLEENDIAN, BIGENDIAN"},
		{":= float", ":= ascii", ENOTSUP, "line 7: !number format := ascii; read: signed integer"},
		{":= float", ":= bit", ENOTSUP, "number format := bit"},
		{"!number format := float\n", "", EBADMSG, "\"number format\" is missing"},
		{"per pixel := 4", "per pixel := 3", EBADMSG, "number of bytes per pixel := 3"},
		{"per pixel := 4", "per pixel := 2", EBADMSG, "number of bytes per pixel := 2; a float has 4 or 8"},
		{"per pixel := 4", "per pixel := four", EBADMSG,
		 "line 8: !number of bytes per pixel := four; allowed: a number from 1"},
		{"per pixel := 4", "per pixel := 4 4", EBADMSG, "line 8"},
		{":= float", ":= long float", EBADMSG, "number of bytes per pixel := 4; a long float has 8"},
		{"dimensions := 4", "dimensions := 2", ENOTSUP, "number of dimensions := 2"},
		{"dimensions := 4", "dimensions := 5", EBADMSG, "\"matrix axis label [5]\" is missing"},
		{"label [4] := segment", "label [4] := gate", ENOTSUP, "line 10: matrix axis label [4] := gate"},
		{"label [4] := segment", "label [4] := view", EBADMSG, "matrix axis labels 3 and 4 are the same"},
		{"label [1] := tangential coordinate", "label [1] := segment", EBADMSG, "matrix axis labels 1 and 4"},
		{"!matrix size [4] := 2", "!matrix size [4] := 3", EBADMSG, "matrix size [2]: 2 numbers for 3 segments"},
		{"!matrix size [4] := 2", "!matrix size [4] := 2000", EBADMSG,
		 "line 11: !matrix size [4] := 2000; allowed: a number"},
		{"!matrix size [3] := 4", "!matrix size [3] := 0", EBADMSG, "line 13"},
		{"!matrix size [3] := 4", "!matrix size [3] := 4.5", EBADMSG, "is not whole"},
		{"!matrix size [3] := 4", "!matrix size [3] := 99999999999999999999", EBADMSG, "line 13"},
		{"!matrix size [3] := 4", "!matrix size [3] := nan", EBADMSG, "line 13"},
		{"!matrix size [3] := 4", "!matrix size [9999] := 4", EBADMSG, "line 13: index"},
		{"!matrix size [1] := 3\n", "", EBADMSG, "\"matrix size [1]\" is missing"},
		{"{ 5,1}", "{ 5,1", EBADMSG, "line 15: !matrix size [2]"},
		{"{ 5,1}", "{ 5;1}", EBADMSG, "line 15"},
		{"{ 5,1}", "{ 5,-1}", EBADMSG, "line 15"},
		{"{ 5,1}", "{ 65000,65000}", EBADMSG, "130000 planes"},
		{"{ -1,2}", "{ -1}", EBADMSG, "minimum ring difference per segment: 1 numbers for 2 segments"},
		{"minimum ring difference per segment := { -1,2}\n", "", EBADMSG,
		 "\"minimum ring difference per segment\" is missing"},
		{"rings := 3", "rings := -1", EBADMSG, "line 21: Number of rings := -1; allowed: a number from 1 to 1024"},
		{"diameter (cm) := 20", "diameter (cm) := -20", EBADMSG, "line 23"},
		{"diameter (cm) := 20", "diameter (cm) := inf", EBADMSG, "line 23"},
		{"factor[1] := 1", "factor[1] := 0", EBADMSG, "scaling factor of 0"},
		{"factor[1] := 1", "factor[1] := {1, 2}", ENOTSUP, "differs: 1, 2"},
		{"factor[1] := 1", "factor[1] := 2\nquantification units := 3", ENOTSUP, "quantification units 3"},
		{"bytes[1] := 0", "bytes[1] := -4", EBADMSG, "data offset in bytes[1] := -4"},
		{"bytes[1] := 0", "bytes[1] := 1e300", EBADMSG, "data offset in bytes[1] := 1e300"},
		{"frames := 1", "frames := 2", ENOTSUP, "number of time frames := 2; read is one"},
		{"dimensions := 4", "dimensions := 5\nmatrix axis label [5] := timing positions\nmatrix size [5] := 13", ENOTSUP,
		 "13 timing positions: time of flight"},
		{"!type of data := PET", "compression := JPEG", ENOTSUP, "compression := JPEG"},
	};
	struct interfile f;
	struct err err;
	char *large;
	(void)state;

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const char *text = WITH({cases[i].from, cases[i].to});
		int rc = parse(text, &f, &err);

		if (rc != -cases[i].code || err.code != cases[i].code || !strstr(err.msg, cases[i].says))
			fail_msg("case %zu (%s): %d, \"%s\"; wanted %d, \"%s\"", i, cases[i].to, rc, err.msg, -cases[i].code,
				 cases[i].says);
	}
	assert_int_equal(parse("", &f, &err), -EBADMSG);
	assert_int_equal(interfile_parse("!INTERFILE :=\n\0", 15, &f, &err), -EBADMSG);
	assert_non_null(strstr(err.msg, "byte 0"));
	large = calloc(1, INTERFILE_TEXT_MAX + 2);
	memset(large, '\n', INTERFILE_TEXT_MAX + 1);
	assert_int_equal(interfile_parse(large, INTERFILE_TEXT_MAX + 1, &f, &err), -EBADMSG);
	assert_non_null(strstr(err.msg, "more than 65536 bytes: this is no Interfile header"));
	free(large);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_header),	    cmocka_unit_test(test_spellings),  cmocka_unit_test(test_meanings),
		cmocka_unit_test(test_values),	    cmocka_unit_test(test_orders),     cmocka_unit_test(test_complete),
		cmocka_unit_test(test_differences), cmocka_unit_test(test_other_rays), cmocka_unit_test(test_write),
		cmocka_unit_test(test_image),	    cmocka_unit_test(test_refusals),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
