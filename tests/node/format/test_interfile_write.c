/* SPDX-License-Identifier: Apache-2.0 */
/* Interfile headers that are written, of images, singles and projections, and those that are refused. */
#include "tests/node/format/interfile_fixture.h"
#include "tests/test.h"

TEST(test_write)
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

	assert_int_equal(michelogram_segments(24, 2, 23, &f.m.segments, &f.m.n_segments, &err), 0);
	test_later(free, f.m.segments);
	assert_int_equal(michelogram_planes(&f.m), 553);
	assert_int_equal(interfile_bytes(&f), (uint64_t)553 * 280 * 329 * 2);
	assert_done(interfile_write(&f, &text, &err), &err);
	must_parse(text, &again);
	assert_int_equal(interfile_complete(&again, NULL, &err), 0);
	assert_done(interfile_same_rays(&f, &again, &err), &err);
	assert_true(fabs(again.m.scanner.radius - 443.1) < 1e-12 * 443.1 && again.m.scanner.detectors == 560);
	assert_true(again.bytes == 2 && again.number == INTERFILE_SIGNED && again.big_endian && again.offset == 12);
	assert_true(again.scale == 0.1 && again.order == INTERFILE_BY_PLANE && again.duration == 600.25 && isnan(again.start));
	assert_string_equal(again.data_file, "ste.s");
	assert_string_equal(again.scanner, "GE Discovery STE");
	assert_string_equal(again.corrections, "attenuation,scatter");
	assert_string_equal(again.date, "20260629");
	assert_string_equal(again.time, "081500");
	assert_string_equal(again.position, "FFDR");
	free(text);
	snprintf(f.data_file, sizeof(f.data_file), "a\n!END OF INTERFILE :=");
	assert_true(interfile_write(&f, &text, &err) < 0); /* would come back as something else */
}

TEST(test_image)
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

	assert_done(interfile_write(&f, &text, &err), &err);
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

/* 2 rows of 3 values, each of a block of 4 detectors in 2 rings. */
static const struct interfile singles = {.kind = INTERFILE_SINGLES,
					 .data_file = "s.s",
					 .number = INTERFILE_FLOAT,
					 .bytes = 4,
					 .scale = 1,
					 .offset = 4,
					 .singles = {.blocks = {3, 2}, .block = {4, 2}, .rates = true, .window = 4.7e-9},
					 .duration = 90.5,
					 .start = NAN};

TEST(test_singles)
{
	float data[1 + 6] = {99, 0, 8, 16, 24, 32, 80};
	struct pet_scanner scanner = {.rings = 4, .detectors = 12};
	struct interfile again;
	struct err err = {0};
	char *text = NULL;
	double found[4 * 12], sum;

	assert_done(interfile_write(&singles, &text, &err), &err);
	must_parse(text, &again);
	free(text);
	assert_int_equal(again.kind, INTERFILE_SINGLES);
	assert_memory_equal(again.singles.blocks, singles.singles.blocks, 2 * sizeof(int));
	assert_memory_equal(again.singles.block, singles.singles.block, 2 * sizeof(int));
	assert_true(again.singles.rates && fabs(again.singles.window / 4.7e-9 - 1) < 1e-12 && again.duration == 90.5);
	assert_int_equal(interfile_bytes(&again), 6 * 4);
	if (interfile_singles_check(&again, &scanner, &err) < 0 ||
	    interfile_singles_expand(&again, (const uint8_t *)data, found, &sum, &err) < 0)
		fail_msg("%s", err.msg);
	for (int ring = 0; ring < 4; ring++)
		for (int d = 0; d < 12; d++)
			assert_true(found[ring * 12 + d] ==
				    (double)data[1 + (1 - ring / 2) * 3 + d / 4] / 8); /* rings from the other end */
	assert_true(sum == 160);
	data[1 + 4] = -1;
	assert_int_equal(interfile_singles_expand(&again, (const uint8_t *)data, found, &sum, &err), -EBADMSG);
	assert_string_equal(err.msg, "row 1, value 1: -1; allowed: finite and at least 0");
	data[1 + 4] = NAN;
	assert_int_equal(interfile_singles_expand(&again, (const uint8_t *)data, found, &sum, &err), -EBADMSG);
	scanner.rings = 8;
	assert_int_equal(interfile_singles_check(&again, &scanner, &err), -EBADMSG);
	assert_string_equal(err.msg, "2 values of 2 rings each; the scanner has 8 rings");
	scanner = (struct pet_scanner){.rings = 4, .detectors = 3};
	assert_int_equal(interfile_singles_check(&again, &scanner, &err), -EBADMSG);
	assert_string_equal(err.msg, "3 values of 4 detectors each; the scanner has 3 detectors in each ring");
}

TEST(test_singles_refused)
{
	static const struct {
		const char *from, *to, *says;
	} cases[] = {
		{"unit := counts per second\n", "", "\"unit\" is missing"},
		{"counts per second", "kcps", "unit := kcps; supported: counts, counts per second"},
		{"coincidence window (ns)", "coincidence window (s)", "\"coincidence window (ns)\" is missing"},
		{"(ns) := 4.7", "(ns) := 0", "coincidence window (ns) := 0; allowed"},
		{"(ns) := 4.7", "(ns) := 4700", "coincidence window (ns) := 4700; allowed"},
		{"[2] := ring", "[2] := detector", "matrix axis label [2] := detector; supported: ring"},
		{"dimensions := 2", "dimensions := 3", "number of dimensions := 3; singles have 2"},
		{"rings per block := 2", "rings per block := 0", "rings per block := 0; allowed"},
		{"!matrix size [1] := 3\n", "", "\"matrix size [1]\" is missing"},
	};
	struct interfile f;
	struct err err = {0};
	char *text = NULL;

	assert_done(interfile_write(&singles, &text, &err), &err);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		char changed[2048];
		const char *at = strstr(text, cases[i].from);

		assert_non_null(at);
		snprintf(changed, sizeof(changed), "%.*s%s%s", (int)(at - text), text, cases[i].to, at + strlen(cases[i].from));
		if (parse(changed, &f, &err) == 0 || !strstr(err.msg, cases[i].says))
			fail_msg("case %zu: \"%s\"; wanted \"%s\"", i, err.msg, cases[i].says);
	}
	free(text);
}

TEST(test_refusals)
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
		{":= PET\n", ":= Tomographic\n", ENOTSUP, "line 3: !type of data := Tomographic; supported: PET"},
		{"LITTLEENDIAN", "MIDDLE", EBADMSG, "line 4: imagedata byte order := MIDDLE; supported: LITTLEENDIAN, BIGENDIAN"},
		{":= float", ":= ascii", ENOTSUP, "line 7: !number format := ascii; supported: signed integer"},
		{":= float", ":= bit", ENOTSUP, "number format := bit"},
		{"!number format := float\n", "", EBADMSG, "\"number format\" is missing"},
		{"!number format :=", "!numbre format :=", EBADMSG,
		 "\"number format\" is missing; line 7: \"!numbre format\": did you mean \"number format\"?"},
		{"name of data file :=", "name of data fiel:=", EBADMSG,
		 "\"name of data file\" is missing; line 2: \"name of data fiel\": did you mean \"name of data file\"?"},
		{"!matrix size [1] :=", "!matrixsice[1] :=", EBADMSG,
		 "\"matrix size [1]\" is missing; line 17: \"!matrixsice[1]\": did you mean \"matrix size [1]\"?"},
		{"matrix axis label [2]", "matrix axis lable [2]", EBADMSG,
		 "\"matrix axis label [2]\" is missing; line 14: \"matrix axis lable [2]\": did you mean"},
		{"minimum ring difference", "minimum rings difference", EBADMSG,
		 "\"minimum ring difference per segment\" is missing; line 18: \"minimum rings difference per segment\": did"},
		{"View offset (degrees)", "View offset (radians)", EBADMSG,
		 "line 27: \"View offset (radians)\" has another unit than the key that is known, or none: did you mean \"View "
		 "offset (degrees)\"? Convert"},
		{"View offset (degrees)", "View offset", EBADMSG, "did you mean \"View offset (degrees)\"?"},
		{"View offset (degrees)", "View offset (rad)", EBADMSG, "did you mean \"View offset (degrees)\"?"},
		{"View offset (degrees)", "View offset(deg)", EBADMSG, "did you mean \"View offset (degrees)\"?"},
		{"diameter (cm) := 20", "diameter := 20", EBADMSG,
		 "line 23: \"Inner ring diameter\" has another unit than the key that is known, or none: did you mean \"Inner "
		 "ring diameter (cm)\"?"},
		{"frames := 1\n", "frames := 1\ntracer activity at time of injection (MBq)[1] := 370\n", EBADMSG,
		 "line 33: \"tracer activity at time of injection (MBq)[1]\" has another unit than the key that is known, or "
		 "none: did you mean \"tracer activity at time of injection (Bq)[1]\"?"},
		{"View offset", "View ofset", EBADMSG,
		 "line 27: \"View ofset (degrees)\" is no key that is known: did you mean \"View offset (degrees)\"?"},
		{"image scaling factor", "image scaling facter", EBADMSG, "did you mean \"image scaling factor[1]\"?"},
		{"Number of rings", "Numbr of rings", EBADMSG, "did you mean \"Number of rings\"?"},
		{"Number of detectors", "Number of detektors", EBADMSG, "did you mean \"Number of detectors per ring\"?"},
		{"Distance between", "Distanze between", EBADMSG, "did you mean \"Distance between rings (cm)\"?"},
		{"Distance between rings (cm)", "Ring distance (cm)", EBADMSG,
		 "line 25: \"Ring distance (cm)\" is no key that is known: did you mean \"Distance between rings (cm)\"?"},
		{"Inner ring diameter (cm)", "ring diameter", EBADMSG, "did you mean \"Inner ring diameter (cm)\"?"},
		{"Inner ring", "Iner ring", EBADMSG, "did you mean \"Inner ring diameter (cm)\"?"},
		{"applied corrections", "applied corection", EBADMSG, "did you mean \"applied corrections\"?"},
		{"Average depth", "Averge depth", EBADMSG, "did you mean \"Average depth of interaction (cm)\"?"},
		{"per pixel := 4", "per pixel := 3", EBADMSG, "number of bytes per pixel := 3"},
		{"per pixel := 4", "per pixel := 2", EBADMSG, "number of bytes per pixel := 2; a float has 4 or 8"},
		{"per pixel := 4", "per pixel := four", EBADMSG,
		 "line 8: !number of bytes per pixel := four; allowed: a number from 1"},
		{"per pixel := 4", "per pixel := 4 4", EBADMSG, "line 8"},
		{":= float", ":= long float", EBADMSG, "number of bytes per pixel := 4; a long float has 8"},
		{"number of dimensions := 4\n", "", EBADMSG, "\"number of dimensions\" is missing"},
		{"dimensions := 4", "dimensions := -1", EBADMSG, "line 9: number of dimensions := -1; allowed"},
		{"dimensions := 4", "dimensions := 2", ENOTSUP, "number of dimensions := 2"},
		{"dimensions := 4", "dimensions := 5", EBADMSG, "\"matrix axis label [5]\" is missing"},
		{"label [4] := segment", "label [4] := gate", ENOTSUP, "line 10: matrix axis label [4] := gate"},
		{"label [4] := segment", "label [4] := view", EBADMSG, "matrix axis labels 3 and 4 are the same"},
		{"label [1] := tangential coordinate", "label [1] := segment", EBADMSG, "matrix axis labels 1 and 4"},
		{"!matrix size [4] := 2", "!matrix size [4] := 3", EBADMSG, "matrix size [2]: 2 numbers for 3 segments"},
		{"!matrix size [4] := 2", "!matrix size [4] := 2000", EBADMSG,
		 "line 11: !matrix size [4] := 2000; allowed: a number"},
		{"!matrix size [3] := 4", "!matrix size [3] := 0", EBADMSG, "line 13"},
		{"!matrix size [3] := 4", "!matrix size [3] := 4.5", EBADMSG, "is not an integer"},
		{"!matrix size [3] := 4", "!matrix size [3] := 99999999999999999999", EBADMSG, "line 13"},
		{"!matrix size [3] := 4", "!matrix size [3] := nan", EBADMSG, "line 13"},
		{"!matrix size [3] := 4", "!matrix size [9999] := 4", EBADMSG, "line 13: index"},
		{"!matrix size [3] := 4", "!matrix size [99999999999999999999] := 4", EBADMSG, "line 13: index"},
		{"!matrix size [3] := 4", "!matrix size [-1] := 4", EBADMSG, "line 13: index"},
		{"!matrix size [1] := 3\n", "", EBADMSG, "\"matrix size [1]\" is missing"},
		{"frames := 1", "frames := 1\nmatrix size := 4", EBADMSG, "\"matrix size\" is \"4\"; line 17 says \"3\""},
		{"frames := 1", "frames := 1\nimage duration (sec)[1] := -1", EBADMSG, "image duration (sec)[1] := -1; allowed"},
		{"{ 5,1}", "{ 5,1,1}", EBADMSG, "line 15: !matrix size [2] := { 5,1,1}; allowed: at most 2"},
		{"{ 1,-2}", "{ 1,1e30}", EBADMSG, "line 19: maximum ring difference per segment := { 1,1e30}; allowed"},
		{"{ 1,-2}", "{ 1,2.5}", EBADMSG, "maximum ring difference per segment: 2.5 is not an integer"},
		{"{ 5,1}", "{ 5,1", EBADMSG, "line 15: !matrix size [2]"},
		{"{ 5,1}", "{ 5;1}", EBADMSG, "line 15"},
		{"View offset", "Distance between rings (mm) := 65.4\nView offset", EBADMSG,
		 "line 25: Distance between rings (cm) := 0.654; line 27: Distance between rings (mm) := 65.4; allowed: one of "
		 "them"},
		{"data offset in bytes[1] := 0", "data offset in bytes[1] := 0\ndata starting block := 1", EBADMSG,
		 "data offset in bytes[1] := 0; line 32: data starting block := 1"},
		{"number of time frames", "study date := 2026:02:29\nnumber of time frames", EBADMSG,
		 "line 32: study date := 2026:02:29; supported: a day"},
		{"number of time frames", "study date := 2026:2:2\nnumber of time frames", EBADMSG, "supported: a day"},
		{"number of time frames", "study time := 24:00:00\nnumber of time frames", EBADMSG, "supported: a time of day"},
		{"number of time frames", "study time := 10:60:00\nnumber of time frames", EBADMSG, "supported: a time of day"},
		{"number of time frames", "study time := 10:59:61\nnumber of time frames", EBADMSG, "supported: a time of day"},
		{"number of time frames",
		 "study date := 2026:02:01\nstudy date (yyyy:mm:dd) := 2026:02:02\nnumber of time frames", EBADMSG,
		 "line 33: study date (yyyy:mm:dd) := 2026:02:02; line 32: study date := 2026:02:01"},
		{"{ 5,1}", "{ 5,-1}", EBADMSG, "line 15"},
		{"{ 5,1}", "{ 65000,65000}", EBADMSG, "130000 planes"},
		{"minimum ring difference per segment := { -1,-2}", "minimum ring difference per segment := { 3,-2}", EBADMSG,
		 "minimum ring difference per segment 3 is above maximum ring difference per segment 1 in segment 0: are"},
		{"!matrix size [3] := 4", "!matrix size [3] := { 5,1}", EBADMSG,
		 "line 13: !matrix size [3] := { 5,1}; allowed: a number from 1 to 4096; matrix axis label [3] is \"view\" here"},
		{"!matrix size [2] := { 5,1}", "!matrix size [2] := 4", EBADMSG, "axis label [2] is \"axial coordinate\" here"},
		{"{ -1,-2}", "{ -1}", EBADMSG, "minimum ring difference per segment: 1 numbers for 2 segments"},
		{"minimum ring difference per segment := { -1,-2}\n", "", EBADMSG,
		 "\"minimum ring difference per segment\" is missing"},
		{"rings := 3", "rings := -1", EBADMSG, "line 21: Number of rings := -1; allowed: a number from 1 to 1024"},
		{"diameter (cm) := 20", "diameter (cm) := -20", EBADMSG, "line 23"},
		{"diameter (cm) := 20", "diameter (cm) := inf", EBADMSG, "line 23"},
		{"factor[1] := 1", "factor[1] := 0", EBADMSG, "scaling factor of 0"},
		{"factor[1] := 1", "factor[1] := {1, 2}", ENOTSUP, "differs: 1, 2"},
		{"factor[1] := 1", "factor[1] := 2\nquantification units := 3", ENOTSUP, "quantification units 3"},
		{"bytes[1] := 0", "bytes[1] := -4", EBADMSG, "data offset in bytes[1] := -4"},
		{"bytes[1] := 0", "bytes[1] := 1e300", EBADMSG, "data offset in bytes[1] := 1e300"},
		{"frames := 1", "frames := 2", ENOTSUP, "number of time frames := 2; supported: one"},
		{"!type of data := PET", "compression := JPEG", ENOTSUP, "compression := JPEG"},
		{"Scanner type", "%compression := on\nScanner type", ENOTSUP, "%compression := on; this manufacturer's key"},
		{"Scanner type", "!%Compression:=ON\nScanner type", ENOTSUP, "!%Compression := ON"},
		{"Scanner type", "%segment table := {127,115,115}\nScanner type", ENOTSUP, "%segment table := {127,115,115}"},
		{"Scanner type", "%axial compression := 11\nScanner type", ENOTSUP, "%axial compression := 11"},
		{"Scanner type", "%number of TOF time bins := 13\nScanner type", ENOTSUP, "%number of TOF time bins := 13"},
		{"Scanner type", "%number of scan data types := 2\nScanner type", ENOTSUP, "%number of scan data types := 2"},
		{"Scanner type", "%new key := 1\nScanner type", ENOTSUP, "line 20: %new key := 1"},
		{"frames := 1", "frames := 1\n%number of time frames := 2", EBADMSG, "%number of time frames"},
	};
	struct interfile f;
	struct err err;
	char *large;

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const char *text = WITH({cases[i].from, cases[i].to});
		int rc = parse(text, &f, &err);

		if (rc != -cases[i].code || err.code != cases[i].code || !strstr(err.msg, cases[i].says))
			fail_msg("case %zu (%s): %d, \"%s\"; wanted %d, \"%s\"", i, cases[i].to, rc, err.msg, -cases[i].code,
				 cases[i].says);
	}
	assert_int_equal(parse("", &f, &err), -EBADMSG);
	assert_error(interfile_parse("!INTERFILE :=\n\0", 15, &f, &err), &err, EBADMSG, "byte 0");
	large = calloc(1, INTERFILE_TEXT_MAX + 2);
	memset(large, '\n', INTERFILE_TEXT_MAX + 1);
	assert_error(interfile_parse(large, INTERFILE_TEXT_MAX + 1, &f, &err), &err, EBADMSG,
		     "more than 524288 bytes: not an Interfile header");
	free(large);
}

/* Without arc correction the size of the bins is that of the detectors, 107 mm sin(pi / 16), whatever bin the scanner has. */
TEST(test_central_bin)
{
	struct interfile f, again;
	struct err err;
	char *text;

	must_parse(WITH({"{arc correction}", "{None}"}, {"size (cm) := 0.3", "size (cm) := 0.4"}), &f);
	assert_int_equal(interfile_write(&f, &text, &err), 0);
	must_parse(text, &again);
	assert_true(fabs(again.central_bin - 107 * sin(M_PI / 16)) < 1e-9 && fabs(again.default_bin - 4) < 1e-9);
	free(text);
}
