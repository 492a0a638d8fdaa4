/* SPDX-License-Identifier: Apache-2.0 */
/* Interfile headers of projections: spellings, meanings, values, orders, what the scanner completes. */
#include "tests/node/format/interfile_fixture.h"
#include "tests/test.h"

TEST(test_header)
{
	struct interfile f;
	struct err err;

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
}

/* Case, spaces, '!', '_', line ends, comments, order of lines, indices: nothing of it matters. */
TEST(test_spellings)
{
	static const char *const same[][SWAPS][2] = {
		{{"!INTERFILE  :=", "interfile:="},
		 {"!number format :=", "NUMBER_FORMAT:="},
		 {"Number of rings", "!numberOF  rings"}},
		{{"!matrix size [1] := 3", "matrix size[1]:=3"}, {"!matrix size [2] := { 5,1}", "Matrix Size[ 2 ] := {5 , 1 }"}},
		{{"data.s\n", "data.s\n; a comment := of no matter\n\n  \n"}},
		{{"{ -1,-2}", "{ -1,\n   -2}"}},
		{{"{ 1,-2}", "{ 1,\r\n-2}\r"}},
		{{"Inner ring diameter (cm) := 20\n", "Inner ring diameter \\\n(cm) \\\r\n := 20\n"}},
		{{"(cm) := 0.654", "(mm) := 6.54"}, {"(cm) := 20", "(mm) := 200"}},
		{{"(cm) := 0.654", "(cm) := 0.654\nDistance between rings (mm) := 6.54"}},
		{{"data offset in bytes[1] := 0", "data offset in bytes[1] := 0\ndata starting block := 0"}},
		{{"image scaling factor[1] := 1\n", "image scaling factor := 1.0\nquantification units := 1\n"}},
		{{"data offset in bytes[1] := 0\n", "data starting block := 0\nimage scaling factor[1] := 1\n"}},
		{{"image scaling factor[1] := 1\n", "image scaling factor[1] := {1, 1,1}\n"}},
		{{"!END OF INTERFILE :=\n", ""}},
		{{"ring := 16", "ring := 16 ; of two layers"},
		 {"{ 5,1}", "{ 5,1}\t; planes"},
		 {"data.s\n", "data.s ; in this folder\n"}},
		{{"Default bin size (cm) := 0.4", "Default bin size (cm) := -1 ; unused"},
		 {"!type of data", "!imaging modality := PET\n!type of data"}},
		{{"!END OF INTERFILE :=\n", "!END OF INTERFILE :=\nwhat follows\nis not read"}},
		{{"frames := 1\n!END OF INTERFILE :=\n", "frames := 1"}}, /* no line end */
		{{"LITTLEENDIAN", "LittleEndian"},
		 {"Scanner type", "%comment := {\n; unknown\n}\n%compression := off\n%axial compression := 1\nScanner type"}},
		{{"number of dimensions := 4", "number of dimensions := 5\nmatrix axis label [5] := timing positions\n"
					       "!matrix size [5] := 1"}},
		{{"{arc correction}", "arc corrected"}},
		{{"!INTERFILE  :=", "\xEF\xBB\xBF!INTERFILE :="}}, /* a byte order mark */
	};
	struct interfile want, f;
	char crlf[8192];
	size_t n = 0;
	struct err err;

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
	}
}

TEST(test_meanings)
{
	struct interfile f;

	must_parse(WITH({"{arc correction}", "{None}"}), &f);
	assert_false(f.m.arc_corrected || f.precorrected);
	must_parse(WITH({"applied corrections := {arc correction}\n", ""}), &f);
	assert_false(f.m.arc_corrected || f.precorrected);
	must_parse(WITH({"{arc correction}", "{ Arc Correction , measured attenuation,scatter }"}), &f);
	assert_true(f.m.arc_corrected && f.precorrected);
	assert_string_equal(f.corrections, "measured attenuation,scatter");
	must_parse(WITH({"imagedata byte order := LITTLEENDIAN\n", ""}), &f);
	assert_true(f.big_endian); /* Interfile's default */
	must_parse(WITH({"effective central bin size (cm) := 0.3\n", ""}), &f);
	assert_true(fabs(f.m.scanner.bin - 4) < 1e-12); /* the scanner's own */
	must_parse(WITH({"offset in bytes[1] := 0", "offset in bytes[1] := 7"}, {"factor[1] := 1", "factor[1] := 0.25"}), &f);
	assert_true(f.offset == 7 && f.scale == 0.25);
	must_parse(WITH({"data offset in bytes[1] := 0", "data starting block := 3"},
			{"image scaling factor[1] := 1", "quantification units := 2.5"}),
		   &f);
	assert_true(f.offset == 6144 && f.scale == 2.5);
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
	must_parse(WITH({"number of time frames := 1\n",
			 "number of time frames := 1\n%study date (yyyy:mm:dd) := 2024.02.29\nstudy date := 20240229\n"
			 "study time := 23-59-60\n"}),
		   &f);
	assert_string_equal(f.date, "20240229");
	assert_string_equal(f.time, "235960");
	must_parse(WITH({"number of dimensions := 4\nmatrix axis label [4] := segment\n!matrix size [4] := 2",
			 "number of dimensions := 3"},
			{"{ 5,1}", "5"},
			{"{ -1,-2}\nmaximum ring difference per segment := { 1,-2}",
			 "-1\nmaximum ring difference per segment := 1"}),
		   &f);
	assert_int_equal(f.m.n_segments, 1);
}

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
					      sign * truth(first + planes[s] - 1 - (by_view ? k : i), by_view ? i : k, t), number,
					      bytes, big_endian);
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
}

TEST(test_values)
{
	static const struct {
		enum interfile_number number;
		int bytes;
	} formats[] = {{INTERFILE_SIGNED, 1},	{INTERFILE_SIGNED, 2},	 {INTERFILE_SIGNED, 4},	  {INTERFILE_SIGNED, 8},
		       {INTERFILE_UNSIGNED, 1}, {INTERFILE_UNSIGNED, 2}, {INTERFILE_UNSIGNED, 4}, {INTERFILE_UNSIGNED, 8},
		       {INTERFILE_FLOAT, 4},	{INTERFILE_FLOAT, 8}};

	for (size_t i = 0; i < sizeof(formats) / sizeof(formats[0]); i++)
		for (int k = 0; k < 4; k++)
			check_values(formats[i].number, formats[i].bytes, k & 1, k & 2);
}

TEST(test_orders)
{
	struct interfile f;

	must_parse(WITH({"[3] := view\n!matrix size [3] := 4", "[3] := axial coordinate\n!matrix size [3] := { 5,1}"},
			{"matrix axis label [2] := axial coordinate\n!matrix size [2] := { 5,1}",
			 "matrix axis label [2] := view\n!matrix size [2] := 4"}),
		   &f);
	assert_int_equal(f.order, INTERFILE_BY_PLANE);
	assert_int_equal(f.m.segments[0].n_planes, 5);
	assert_int_equal(f.m.n_angles, 4);
}

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

TEST(test_complete)
{
	struct scanner_conf known = bench();
	struct interfile f;
	struct err err = {0};

	must_parse(WITH({"Number of rings := 3\n", ""}, {"Distance between rings (cm) := 0.654\n", ""},
			{"View offset (degrees) := 2.5\n", ""}),
		   &f);
	assert_error(interfile_complete(&f, NULL, &err), &err, ENOKEY,
		     "the header lacks: number of rings, distance between rings (cm)");
	assert_int_equal(f.m.scanner.rings, 0);
	assert_int_equal(interfile_complete(&f, &known, &err), 0);
	assert_int_equal(f.m.scanner.rings, 3);
	assert_true(f.m.angle_offset == 1.5 && f.m.scanner.radius == 100);

	/* misspelt, they would be those of the configuration */
	assert_int_equal(parse(WITH({"Number of rings", "Number of ring"}), &f, &err), -EBADMSG);
	assert_string_equal(err.msg,
			    "line 21: \"Number of ring\" is no key that is known: did you mean \"Number of rings\"? Correct it, "
			    "or make the line a comment (;)");
	assert_error(parse(WITH({"Distance between rings (cm)", "Distance between rings (m)"}), &f, &err), &err, EBADMSG,
		     "did you mean \"Distance between rings (cm)\"?");
	/* other keys are not similar */
	assert_int_equal(parse(WITH({"!number format := float\n", ""}), &f, &err), -EBADMSG);
	assert_string_equal(err.msg, "\"number format\" is missing");

	/* what the header says wins; a radius brings its own depth */
	known.scanner.rings = 40;
	known.scanner.interaction_depth = 9;
	must_parse(WITH({"Average depth of interaction (cm) := 0.7\n", ""}), &f);
	assert_int_equal(interfile_complete(&f, &known, &err), 0);
	assert_int_equal(f.m.scanner.rings, 3);
	assert_true(f.m.scanner.interaction_depth == 0);
	must_parse(WITH({"Average depth of interaction (cm) := 0.7\n", ""}, {"Inner ring diameter (cm) := 20\n", ""}), &f);
	assert_int_equal(interfile_complete(&f, &known, &err), 0);
	assert_true(f.m.scanner.interaction_depth == 9 && f.m.scanner.radius == 100);

	/* distances of rings in another unit */
	must_parse(WITH({"rings (cm) := 0.654", "rings (mm) := 0.2"}), &f);
	assert_error(interfile_complete(&f, NULL, &err), &err, EBADMSG,
		     "Distance between rings is 0.2 mm (0.02 cm); allowed: 0.3 to 35 mm");
	known.scanner.ring_spacing = 6.5;
	must_parse(GOOD, &f);
	assert_int_equal(interfile_check_scanner(&f, &known, &err), 0);
	known.scanner.ring_spacing = 6.2;
	assert_int_equal(interfile_check_scanner(&f, &known, &err), -EBADMSG);
	assert_int_equal(interfile_check_scanner(&f, NULL, &err), 0);

	/* planes that the rings do not have */
	must_parse(WITH({"{ 5,1}", "{ 5,2}"}), &f);
	assert_error(interfile_complete(&f, NULL, &err), &err, EBADMSG, "segment 1 has 2 planes");
	must_parse(WITH({"Number of rings := 3", "Number of rings := 2"}), &f);
	assert_int_equal(interfile_complete(&f, NULL, &err), -EBADMSG);
	must_parse(WITH({"{ 5,1}", "{ 6,1}"}, {"{ -1,-2}", "{ -2,-2}"}), &f); /* the direct planes would be tilted */
	assert_error(interfile_complete(&f, NULL, &err), &err, EBADMSG, "segment 0: minimum ring difference per segment := -2");
}

/* A file counts rings from the depth of the gantry, as STIR does: each segment has the opposite differences, and its planes are
 * the other way round. What is written is read again. */
TEST(test_first_ring)
{
	static const size_t place[6] = {4, 3, 2, 1, 0, 5};
	struct scanner_conf known = bench();
	float data[72], plane[12];
	struct interfile f, again;
	struct err err = {0};
	char *text = NULL;

	for (size_t i = 0; i < 72; i++)
		data[i] = (float)i;
	must_parse(GOOD, &f);
	assert_true(f.m.segments[0].first == -1 && f.m.segments[0].last == 1 && f.m.segments[0].n_planes == 5);
	assert_true(f.m.segments[1].first == 2 && f.m.segments[1].last == 2);
	f.order = INTERFILE_BY_PLANE;
	for (size_t p = 0; p < 6; p++) {
		interfile_plane(&f, (const uint8_t *)data, p, plane);
		assert_memory_equal(plane, data + 12 * place[p], sizeof(plane));
		assert_int_equal(interfile_place(&f.m, p), place[p]);
	}
	assert_int_equal(interfile_write(&f, &text, &err), 0);
	assert_non_null(strstr(text, "minimum ring difference per segment := { -1,-2}"));
	assert_non_null(strstr(text, "maximum ring difference per segment := { 1,-2}"));
	must_parse(text, &again);
	assert_int_equal(interfile_same_rays(&f, &again, &err), 0);
	free(text);
	/* with time of flight: bins from the first end of the ray to the second are k descending */
	f.m.tof = (struct scan_tof){.n = 3, .width = 30, .sigma = 12};
	interfile_tof_ascending(&f);
	for (size_t p = 0; p < 18; p++) {
		assert_int_equal(interfile_place(&f.m, p), (2 - p / 6) * 6 + place[p % 6]);
		assert_int_equal(interfile_place(&f.m, interfile_place(&f.m, p)), p);
		assert_int_equal(f.tof_bin[p / 6], 2 - p / 6);
	}
	assert_int_equal(interfile_write(&f, &text, &err), 0);
	assert_non_null(strstr(text, "TOF bin order := { -1,0,1}"));
	free(text);
	/* the segments of the configuration are those of the file, too */
	known.span = 1;
	known.max_difference = 1;
	must_parse(WITH({"minimum ring difference per segment := { -1,-2}\nmaximum ring difference per segment := { 1,-2}\n", ""},
			{"!matrix size [4] := 2", "!matrix size [4] := 3"}, {"{ 5,1}", "{3,2,2}"}),
		   &f);
	assert_int_equal(interfile_complete(&f, &known, &err), 0);
	assert_true(f.m.segments[1].first == -1 && f.m.segments[2].first == 1);
}

/* Without ring differences, the scanner's own segments must be there. */
TEST(test_differences)
{
	static const char *const none[SWAPS][2] = {{"minimum ring difference per segment := { -1,-2}\n", ""},
						   {"maximum ring difference per segment := { 1,-2}\n", ""},
						   {"{ 5,1}", "{ 3,2}"}};
	struct scanner_conf known = bench();
	struct interfile f;
	struct err err = {0};

	must_parse(with(none), &f);
	assert_true(f.no_differences);
	assert_error(interfile_complete(&f, NULL, &err), &err, ENOKEY,
		     "lacks: minimum ring difference per segment, maximum ring difference per segment");
	assert_int_equal(interfile_complete(&f, &known, &err), -EBADMSG); /* span 1, up to 2: 5 segments */
	assert_non_null(strstr(err.msg, "its 2 segments are not the 5"));
	/* -1 .. 1 and nothing else: what GE's span 2 makes of it */
	must_parse(WITH({"minimum ring difference per segment := { -1,-2}\nmaximum ring difference per segment := { 1,-2}\n", ""},
			{"!matrix size [4] := 2", "!matrix size [4] := 1"}, {"{ 5,1}", "5"}),
		   &f);
	known.span = 2;
	known.max_difference = 1;
	assert_int_equal(interfile_complete(&f, &known, &err), 0);
	assert_true(f.m.segments[0].first == -1 && f.m.segments[0].last == 1 && !f.no_differences);
}

static const char *const DETECTORS[2] = {"{arc correction}",
					 "{None}"}; /* bins of the detectors: 107 mm sin(pi / 16) = 20.875 mm */

static int complete(const char *text, struct interfile *f, struct err *err)
{
	must_parse(text, f);
	return interfile_complete(f, NULL, err);
}

/* Keys that contradict each other about the size of the image. */
TEST(test_sizes)
{
	static const struct {
		const char *from, *to, *says; /* says: NULL: nothing; "~...": a note */
	} cases[] = {
		{"bin size (cm) := 0.3", "bin size (cm) := 2.08747", NULL},
		{"bin size (cm) := 0.3", "bin size (cm) := 2.05", "~:= 2.05 differs by 1.8 % from the distance"},
		{"bin size (cm) := 0.3", "bin size (cm) := 1.97",
		 "effective central bin size (cm) := 1.97 contradicts the distance of neighbouring rays in the middle, 2.08747 "
		 "cm, of Number of detectors per ring := 16, Inner ring diameter (cm) := 20 and"},
		{"bin size (cm) := 0.3", "bin size (cm) := 0.208747", "contradicts"}, /* mm and cm */
		{"bin size (cm) := 0.3", "bin size (mm) := 2.08747", "effective central bin size (mm) := 2.08747 contradicts"},
		{"bin size (cm) := 0.3", "bin size (mm) := 20.5", "~bin size (mm) := 20.5 differs by 1.8 %"},
		{"diameter (cm) := 20", "diameter (mm) := 20",
		 "Inner ring diameter (mm) := 20 and Average depth of interaction (cm) := 0.7:"},
		{"interaction (cm) := 0.7", "interaction (mm) := 0.7", "interaction (mm) := 0.7:"},
		{"effective central bin size (cm) := 0.3\n", "", "Default bin size (cm) := 0.4 contradicts"},
		{"effective central bin size (cm) := 0.3\n", "effective central bin size (cm) := 0.4\n",
		 "effective central bin size and Default bin size (cm) := 0.4 contradicts"},
	};
	struct interfile f;
	struct err err;

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		bool note = cases[i].says && cases[i].says[0] == '~';
		int rc = complete(WITH({DETECTORS[0], DETECTORS[1]}, {cases[i].from, cases[i].to}), &f, &err);

		assert_int_equal(rc, cases[i].says && !note ? -EBADMSG : 0);
		if (rc < 0 ? !strstr(err.msg, cases[i].says) : note ? !strstr(f.notes, cases[i].says + 1) : f.notes[0] != '\0')
			fail_msg("case %zu: %s%s", i, rc < 0 ? err.msg : "", f.notes);
	}
	/* one number for both bins: an old template of STIR, within a limit */
	assert_error(complete(WITH({DETECTORS[0], DETECTORS[1]},
				   {"effective central bin size (cm) := 0.3", "effective central bin size (cm) := 1.5"},
				   {"size (cm) := 0.4", "size (cm) := 1.5"}),
			      &f, &err),
		     &err, EBADMSG, "effective central bin size and Default bin size (cm) := 1.5 contradicts");
	assert_int_equal(complete(WITH({DETECTORS[0], DETECTORS[1]},
				       {"effective central bin size (cm) := 0.3", "effective central bin size (cm) := 1.9"},
				       {"size (cm) := 0.4", "size (cm) := 1.9"}),
				  &f, &err),
			 0);
	assert_non_null(strstr(f.notes, ":= 1.9 differs by 9 % from the distance"));
	/* the default bin of arc-corrected data need not be the distance of rays; a unit is another matter */
	assert_int_equal(complete(WITH({DETECTORS[0], DETECTORS[1]}, {"effective central bin size (cm) := 0.3\n", ""},
				       {"size (cm) := 0.4", "size (cm) := 1"}),
				  &f, &err),
			 0);
	assert_non_null(strstr(f.notes, "Default bin size (cm) := 1 differs by 52 % from the distance"));
	assert_error(complete(WITH({"size (cm) := 0.4", "size (mm) := 0.4"}), &f, &err), &err, EBADMSG,
		     "effective central bin size (cm) := 0.3 contradicts Default bin size (mm) := 0.4");
	/* without the default bin: 107 mm sin(pi / 160) = 2.1 mm */
	assert_error(complete(WITH({"detectors per ring := 16", "detectors per ring := 160"},
				   {"bin size (cm) := 0.3", "bin size (mm) := 0.3"},
				   {"Default bin size (cm) := 0.4", "Default bin size (mm) := 0.4"}),
			      &f, &err),
		     &err, EBADMSG, "effective central bin size (mm) := 0.3 contradicts the distance of neighbouring rays");
	/* only the bins that no ray through the rings has */
	assert_error(complete(WITH({"(cm) := 20", "(cm) := 0.2"}, {"of interaction (cm) := 0.7", "of interaction (cm) := 0"}), &f,
			      &err),
		     &err, EBADMSG, "reaches to 0.3 cm from the middle, beyond the detectors at 0.1 cm");
}

/* What is not a cylinder, or not PET. */
TEST(test_doubts)
{
	struct interfile f;
	struct err err;

	must_parse(WITH({"imagedata byte order := LITTLEENDIAN\n", ""}), &f);
	assert_string_equal(f.notes, "The header has no \"imagedata byte order\": BIGENDIAN is assumed, as Interfile 3.3 does.");
	must_parse(WITH({"!type of data", "!imaging modality := nucmed\n!type of data"}), &f);
	assert_non_null(strstr(f.notes, "imaging modality := nucmed, but keys of PET"));
	assert_error(parse(WITH({"!type of data", "!imaging modality := CT\n!type of data"}), &f, &err), &err, ENOTSUP,
		     "line 3: !imaging modality := CT; supported: PT");
	must_parse(WITH({"end scanner",
			 "Scanner geometry (BlocksOnCylindrical/Cylindrical/Generic) := BlocksOnCylindrical\nend scanner"}),
		   &f);
	assert_non_null(strstr(f.notes, "taken to be on a cylinder"));
	assert_done(complete(WITH({"Number of detectors per ring := 16\n", ""}), &f, &err), &err);
	assert_non_null(strstr(f.notes, "no Number of detectors per ring: each view is taken as one angle"));
	assert_done(complete(WITH({"", ""}), &f, &err), &err);
	assert_null(strstr(f.notes, "each view is taken"));
	assert_error(parse(WITH({"end scanner", "Scanner geometry (BlocksOnCylindrical/Cylindrical) := Generic\nend scanner"}),
			   &f, &err),
		     &err, ENOTSUP, "crystal map");
	/* segments of both sides: opposite, or not; 3 rings have the differences -2 to 2 */
	for (int wrong = 0; wrong < 2; wrong++) {
		int rc = complete(WITH({"!matrix size [4] := 2", "!matrix size [4] := 3"},
				       {"{ 5,1}", wrong ? "{3,3,1}" : "{3,3,3}"},
				       {"{ -1,-2}\nmaximum ring difference per segment := { 1,-2}",
					wrong ? "{0,1,-2}\nmaximum ring difference per segment := {0,2,-2}"
					      : "{0,1,-2}\nmaximum ring difference per segment := {0,2,-1}"}),
				  &f, &err);

		assert_int_equal(rc, wrong ? -EBADMSG : 0);
		if (wrong && !strstr(err.msg, "segments 2 and 1 have the ring differences -2 to -2 and 1 to 2, which overlap"))
			fail_msg("%s", err.msg);
	}
}

/* The energy window, in keV; the resolution in percent of 511 keV. */
TEST(test_energy)
{
	static const struct {
		const char *keys;
		double low, high, resolution;
	} cases[] = {
		{"energy window lower level[1] := 425\nenergy window upper level[1] := 650\nEnergy resolution := 0.145\n", 425,
		 650, 14.5},
		{"energy window lower level := 425\nenergy window upper level := 650\nEnergy resolution := 14.5\n", 425, 650,
		 14.5},
		{"number of energy windows := 2\nenergy window lower level[1] := 425\nenergy window upper level[1] := 650\n", 0,
		 0, 0},
		{"energy resolution := 0.2\nReference energy (in keV) := 127.75\n", 0, 0, 10},
		{"energy window lower level[1] := -1\nenergy window upper level[1] := -1\nEnergy resolution := -1\n", 0, 0, 0},
	};
	struct interfile f;
	struct err err;
	char text[400];

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		snprintf(text, sizeof(text), "%send scanner", cases[i].keys);
		must_parse(WITH({"end scanner", text}), &f);
		if (f.energy_low != cases[i].low || f.energy_high != cases[i].high ||
		    fabs(f.energy_resolution - cases[i].resolution) > 1e-9)
			fail_msg("case %zu: %g to %g keV, %g %%", i, f.energy_low, f.energy_high, f.energy_resolution);
	}
	assert_error(parse(WITH({"end scanner",
				 "energy window lower level[1] := 650\nenergy window upper level[1] := 425\nend scanner"}),
			   &f, &err),
		     &err, EBADMSG, "lower level[1] := 650");
}

/* Values in the other byte order are refused, with the key that names it; values that are only unusual are not. */
TEST(test_byte_order)
{
	static const struct {
		const char *format, *bytes;
		enum interfile_number number;
		int n;
	} cases[] = {{"float", "4", INTERFILE_FLOAT, 4},
		     {"float", "8", INTERFILE_FLOAT, 8},
		     {"signed integer", "2", INTERFILE_SIGNED, 2},
		     {"unsigned integer", "4", INTERFILE_UNSIGNED, 4}};
	uint8_t data[6 * 12 * 8];
	struct interfile f;
	struct err err;
	char format[60], bytes[60];

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		for (int big = 0; big < 2; big++) {
			snprintf(format, sizeof(format), "number format := %s", cases[i].format);
			snprintf(bytes, sizeof(bytes), "per pixel := %s", cases[i].bytes);
			must_parse(WITH({"number format := float", format}, {"per pixel := 4", bytes},
					{"LITTLEENDIAN", big ? "BIGENDIAN" : "LITTLEENDIAN"}),
				   &f);
			for (size_t k = 0; k < 72; k++)
				store(data + k * (size_t)cases[i].n, (double)(k % 19), cases[i].number, cases[i].n, big);
			assert_int_equal(interfile_check_order(&f, data, &err), 0);
			f.big_endian = !f.big_endian;
			assert_int_equal(interfile_check_order(&f, data, &err), -EBADMSG);
			if (!strstr(err.msg, big ? "the key should be BIGENDIAN" : "the key should be LITTLEENDIAN"))
				fail_msg("%s", err.msg);
			f.order_stated = false;
			assert_error(interfile_check_order(&f, data, &err), &err, EBADMSG,
				     "the header has no \"imagedata byte order\"");
		}
	/* impossible in both orders, or too few to tell: the reconstruction finds what is wrong */
	must_parse(GOOD, &f);
	for (size_t k = 0; k < 72; k++)
		store(data + k * 4, k % 2 ? NAN : INFINITY, INTERFILE_FLOAT, 4, false);
	assert_int_equal(interfile_check_order(&f, data, &err), 0);
	for (size_t k = 0; k < 72; k++) /* -0 is 128 in the other order */
		store(data + k * 4, -0.0, INTERFILE_FLOAT, 4, false);
	assert_int_equal(interfile_check_order(&f, data, &err), 0);
	memset(data, 0, sizeof(data));
	for (size_t k = 0; k < 15; k++)
		store(data + k * 4, 1, INTERFILE_FLOAT, 4, true);
	assert_int_equal(interfile_check_order(&f, data, &err), 0);
	store(data + 60, 1, INTERFILE_FLOAT, 4, true);
	assert_int_equal(interfile_check_order(&f, data, &err), -EBADMSG);
}

/* Floats that are declared as integers, and the reverse, in both byte orders: the number format is named, not the order alone. */
TEST(test_other_number)
{
	static const struct {
		double from, step;
		int n;
		bool integers;
	} data[] = {
		{0, 1, 19, true}, {50, 1, 30, true},	   {-3, 1, 300, true},	    {1000, 7, 50, true},       {0, 1, 19, false},
		{1, 1, 2, false}, {0.7, 0.013, 40, false}, {1e-6, 3e-6, 30, false}, {300, 12345.6, 50, false},
	};
	uint8_t bytes[600 * 8];
	struct interfile f;
	struct err err;
	char says[100];

	for (size_t i = 0; i < sizeof(data) / sizeof(data[0]); i++)
		for (int how = 0; how < 16; how++) {
			enum interfile_number is = data[i].integers ? INTERFILE_SIGNED : INTERFILE_FLOAT;
			bool big = how & 1, big_said = how & 2, integers_said = how & 4;
			int size = how & 8 ? 8 : 4, rc;

			must_parse(GOOD, &f);
			f.number = integers_said ? INTERFILE_SIGNED : INTERFILE_FLOAT;
			f.bytes = size;
			f.big_endian = big_said;
			f.order_stated = true;
			for (int k = 0; k < 72; k++)
				store(bytes + k * size, data[i].from + data[i].step * (k % data[i].n), is, size, big);
			rc = interfile_check_order(&f, bytes, &err);
			snprintf(says, sizeof(says), "the key should be number format := %s%s",
				 data[i].integers ? "signed integer" : "float",
				 big == big_said ? ""
				 : big		 ? ", with imagedata byte order := BIG"
						 : ", with imagedata byte order := LITTLE");
			if (integers_said == data[i].integers ? big == big_said && rc != 0
							      : rc != -EBADMSG || !strstr(err.msg, says))
				fail_msg("data %zu, way %d: %d, '%s' wanted: %s", i, how, rc, says, err.msg);
		}
}

/* The same factor in all bins, a power of two or 0: floats with one byte each, which would be a small integer in the other order.
 */
TEST(test_constant_factor)
{
	static const double factors[] = {0.25, 0.5, 1, 2, 4, 8};
	uint8_t bytes[72 * 8];
	struct interfile f;
	struct err err;

	must_parse(GOOD, &f);
	for (size_t i = 0; i < sizeof(factors) / sizeof(factors[0]); i++)
		for (int how = 0; how < 4; how++) {
			f.bytes = how & 1 ? 8 : 4;
			f.big_endian = how & 2;
			for (int k = 0; k < 72; k++)
				store(bytes + k * f.bytes, k % 7 ? factors[i] : 0, INTERFILE_FLOAT, f.bytes, f.big_endian);
			if (interfile_check_order(&f, bytes, &err) != 0)
				fail_msg("factor %g, way %d: %s", factors[i], how, err.msg);
		}
}

TEST(test_other_rays)
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
		{"{arc correction}", "None", "arc correction"}, /* with the bin of the detectors */
	};
	struct interfile a, b;
	struct err err;

	must_parse(GOOD, &a);
	assert_int_equal(interfile_complete(&a, NULL, &err), 0);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		bool detectors = !strcmp(cases[i].to, "None");

		must_parse(WITH({cases[i].from, cases[i].to},
				{"size (cm) := 0.4", detectors ? "size (cm) := 2.0875" : "size (cm) := 0.4"},
				{detectors ? "size (cm) := 0.3" : "", detectors ? "size (cm) := 2.0875" : ""}),
			   &b);
		assert_int_equal(interfile_complete(&b, NULL, &err), 0);
		assert_int_equal(interfile_same_rays(&a, &b, &err), -EBADMSG);
		if (!strstr(err.msg, cases[i].says))
			fail_msg("\"%s\" wanted, not: %s", cases[i].says, err.msg);
	}
	/* One bin more of many: still another geometry. */
	must_parse(WITH({"!matrix size [1] := 3", "!matrix size [1] := 20000"}, {"(cm) := 0.3", "(cm) := 0.0003"},
			{"(cm) := 0.4", "(cm) := 0.0003"}),
		   &a);
	must_parse(WITH({"!matrix size [1] := 3", "!matrix size [1] := 20001"}, {"(cm) := 0.3", "(cm) := 0.0003"},
			{"(cm) := 0.4", "(cm) := 0.0003"}),
		   &b);
	assert_int_equal(interfile_complete(&a, NULL, &err), 0);
	assert_int_equal(interfile_complete(&b, NULL, &err), 0);
	assert_error(interfile_same_rays(&a, &b, &err), &err, EBADMSG, "radial bins: 20000 and 20001");
	must_parse(GOOD, &a);
	assert_int_equal(interfile_complete(&a, NULL, &err), 0);
	must_parse(WITH({"{ 5,1}", "{ 1,5}"}, {"{ -1,-2}", "{-2,-1}"}, {"{ 1,-2}", "{-2,1}"}), &b);
	assert_int_equal(interfile_complete(&b, NULL, &err), 0);
	assert_error(interfile_same_rays(&a, &b, &err), &err, EBADMSG, "segment 0");
}
