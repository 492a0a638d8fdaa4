/* SPDX-License-Identifier: Apache-2.0 */
/* Sub-headers of Siemens: the segments of real scanners, axes, types of data, the order of TOF bins, refusals. */
#include "node/base/nuclides.h"
#include "tests/node/format/interfile_fixture.h"
#include "tests/test.h"

/* 5 rings, axial compression 3, ring differences up to 3: the last segments have two differences only */
#define SMALL                                                                                                                    \
	"!INTERFILE:=\n%comment:=SMS-MI sinogram common attributes\n!originating system:=1208\n"                                 \
	"%SMS-MI header name space:=sinogram subheader\n%SMS-MI version number:=3.4\n\n!GENERAL DATA:=\n"                        \
	"!name of data file:=C:\\JSRecon12\\small_00.s\n%compression:=off\n!GENERAL IMAGE DATA:=\n"                              \
	"%study date (yyyy:mm:dd):=2024:05:06\n%study time (hh:mm:ss GMT+00:00):=10:11:12\nisotope name:=F-18\n"                 \
	"!PET data type:=emission\ndata format:=sinogram\n%patient orientation:=FFP\nimage data byte order:=LITTLEENDIAN\n"      \
	"!number format:=unsigned integer\n!number of bytes per pixel:=2\nnumber of dimensions:=4\n"                             \
	"matrix axis label[1]:=sinogram projections\nmatrix axis label[2]:=sinogram views\n"                                     \
	"matrix axis label[3]:=number of sinograms\nmatrix axis label[4]:=TOF bin\nmatrix size[1]:=6\nmatrix size[2]:=4\n"       \
	"matrix size[3]:=19\nmatrix size[4]:=5\nscale factor (mm/pixel) [1]:=1.6\nscale factor (degree/pixel) [2]:=45\n"         \
	"scale factor (mm/pixel) [3]:=1.645\nscale factor (ps/bin) [4]:=143.231\n%axial compression:=3\n"                        \
	"%maximum ring difference:=3\nnumber of rings:=5\n%number of segments:=3\n%segment table:={9,5,5}\n"                     \
	"%total number of sinograms:=19\nnumber of scan data types:=2\nscan data type description[1]:=prompts\n"                 \
	"scan data type description[2]:=randoms\ndata offset in bytes[1]:=0\ndata offset in bytes[2]:=4560\n"                    \
	"%TOF mashing factor:=8\n%number of TOF time bins:=5\napplied corrections:={radial arc-correction}\n"                    \
	"!IMAGE DATA DESCRIPTION:=\n!total number of data sets:=1\n!image duration (sec):=300\n"                                 \
	"!image relative start time (sec):=0\n%total uncorrected singles rate:=12345\n"

static const char *swap(const char *from, const char *to)
{
	static char text[8192];
	const char *at = strstr(SMALL, from);

	if (!at)
		fail_msg("no \"%s\" in the header", from);
	snprintf(text, sizeof(text), "%.*s%s%s", (int)(at - SMALL), SMALL, to, at + strlen(from));
	return text;
}

TEST(test_header)
{
	static const int differences[][2] = {{-1, 1}, {2, 3}, {-3, -2}}; /* the file's: 0, -1, +1, from the depth of the gantry */
	struct interfile f;
	struct err err;

	must_parse(SMALL, &f);
	assert_true(f.siemens && f.more_data && f.order == INTERFILE_BY_PLANE && !f.big_endian);
	assert_string_equal(f.data_file, "C:\\JSRecon12\\small_00.s");
	assert_string_equal(f.scanner, "Biograph Vision 600");
	assert_string_equal(f.position, "FFP");
	assert_string_equal(f.tracer.nuclide->name, "F18");
	assert_string_equal(f.date, "20240506");
	assert_string_equal(f.time, "101112");
	assert_string_equal(f.zone, "+0000");
	assert_true(f.duration == 300 && f.bytes == 2 && f.number == INTERFILE_UNSIGNED);
	assert_true(f.m.arc_corrected && !f.precorrected && f.m.scanner.bin == 1.6 && f.m.scanner.rings == 5);
	assert_true(f.m.n_radial == 6 && f.m.n_angles == 4 && f.m.n_segments == 3 && michelogram_planes(&f.m) == 19);
	for (int i = 0; i < 3; i++) {
		assert_int_equal(f.m.segments[i].first, differences[i][0]);
		assert_int_equal(f.m.segments[i].last, differences[i][1]);
	}
	assert_true(f.m.tof.n == 5 && fabs(f.m.tof.width - 143.231 * 299.792458 / 2000) < 1e-6 && f.m.tof.sigma == 0);
	assert_int_equal(interfile_bytes(&f), 5 * 19 * 24 * 2);
	assert_int_equal(interfile_complete(&f, NULL, &err), -ENOKEY);
}

/* Times with their offset from UTC, in the key. The injection is used if it is on the clock of the study. */
TEST(test_times)
{
#define STUDY "%study time (hh:mm:ss GMT+00:00):=10:11:12\n"
#define DAY "%tracer injection date (yyyy:mm:dd):=2024:05:06\n"
	static const struct {
		const char *lines, *time, *zone, *injected, *note; /* time: NULL: refused */
	} cases[] = {
		{STUDY DAY "%tracer injection time (hh:mm:ss GMT+00:00):=09:00:01\n", "101112", "+0000", "20240506090001+0000",
		 NULL},
		{"%study time (hh:mm:ss GMT-05:30):=10:11:12\n" DAY "%tracer injection time (hh:mm:ss GMT+01:00):=09:00:01\n",
		 "101112", "-0530", "20240506090001+0100", NULL},
		{"%study time (hh:mm:ss):=10:11:12\n" DAY "%tracer injection time (hh:mm:ss):=09:00:01\n", "101112", "",
		 "20240506090001", NULL},
		{STUDY DAY "%tracer injection time (hh:mm:ss):=09:00:01\n", "101112", "+0000", "", "is not used"},
		{STUDY "%tracer injection time (hh:mm:ss GMT+00:00):=09:00:01\n", "101112", "+0000", "", "is not used"},
		{STUDY "%tracer injection date (yyyy:mm:dd):=0000:00:00\n%tracer injection time (hh:mm:ss GMT+00:00):=00:00:00\n",
		 "101112", "+0000", "", "is not used"},
		{STUDY DAY "%tracer injection time (hh:mm:ss GMT+00:00):=\n", "101112", "+0000", "", NULL},
		{"%study time (hh:mm:ss GMT+00:00):=10:61:12\n", NULL, "a time of day", NULL, NULL},
		{"%study time (hh:mm:ss GMT+25:00):=10:11:12\n", NULL, "allowed: a time in (hh:mm:ss GMT+HH:MM)", NULL, NULL},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const char *text = swap(STUDY, cases[i].lines);
		struct interfile f GOES(interfile_clear) = {0};
		struct err err = {0};
		int rc = interfile_parse(text, strlen(text), &f, &err);

		if (!cases[i].time) {
			if (rc != -EBADMSG || !strstr(err.msg, cases[i].zone))
				fail_msg("case %zu: %d \"%s\"", i, rc, err.msg);
			continue;
		}
		if (rc < 0)
			fail_msg("case %zu: %s", i, err.msg);
		if (strcmp(f.time, cases[i].time) != 0 || strcmp(f.zone, cases[i].zone) != 0 ||
		    strcmp(f.tracer.injected, cases[i].injected) != 0 ||
		    (strstr(f.notes, "is not used") != NULL) != (cases[i].note != NULL))
			fail_msg("case %zu: %s %s, injected %s; %s", i, f.time, f.zone, f.tracer.injected, f.notes);
	}
#undef STUDY
#undef DAY
}

/* Forms that occur: each is the same header. */
TEST(test_forms)
{
	static const char types[] = "number of scan data types:=6\nscan data type description[1]:=prompts\n"
				    "scan data type description[2]:=prompts\nscan data type description[3]:=prompts\n"
				    "scan data type description[4]:=prompts\nscan data type description[5]:=prompts\n"
				    "scan data type description[6]:=randoms\ndata offset in bytes[1]:=0\n"
				    "data offset in bytes[2]:=912\ndata offset in bytes[3]:=1824\ndata offset in bytes[4]:=2736\n"
				    "data offset in bytes[5]:=3648\ndata offset in bytes[6]:=4560\n";
	static const char usual[] = "number of scan data types:=2\nscan data type description[1]:=prompts\n"
				    "scan data type description[2]:=randoms\ndata offset in bytes[1]:=0\n"
				    "data offset in bytes[2]:=4560\n";
	static const struct {
		const char *from, *to;
	} cases[] = {
		{"!INTERFILE:=", "!INTERFILE"},
		{"!INTERFILE:=", "\xEF\xBB\xBF!INTERFILE := "},
		{usual, types},
		{"!total number of data sets:=1", "%image slope:=1.000\n%image intercept:=0.0\n%x-offset (mm):=0.0\n"},
		{"%axial compression:=3", "\t%axial compression\t:=\t3 ; a comment\r"},
		{"%axial compression:=3", "axial_Compression := 3"},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct interfile f;

		must_parse(swap(cases[i].from, cases[i].to), &f);
		if (!f.siemens || michelogram_planes(&f.m) != 19 || f.randoms != 4560 || f.m.tof.n != 5)
			fail_msg("case %zu", i);
	}
}

/* Stored bin i has k = 0, +1, -1, +2, -2; segments are stored 0, -1, +1. */
TEST(test_order)
{
	static const int later[] = {0, 1, -1, 2, -2};
	uint16_t data[5 * 19 * 24];
	struct interfile f;
	float plane[24];

	must_parse(SMALL, &f);
	for (size_t i = 0; i < sizeof(data) / sizeof(data[0]); i++)
		data[i] = (uint16_t)i;
	for (size_t i = 0; i < 5; i++)
		for (size_t p = 0; p < 19; p++) {
			size_t bin = (size_t)(2 - later[i]); /* t = -later: towards the first end */

			size_t start = p < 9 ? 0 : p < 14 ? 9 : 14, n = p < 9 ? 9 : 5, stored = start + n - 1 - (p - start);

			interfile_plane(&f, (const uint8_t *)data, bin * 19 + p, plane);
			for (size_t b = 0; b < 24; b++)
				assert_true(plane[b] == (float)((i * 19 + stored) * 24 + b));
		}
}

TEST(test_variants)
{
	static const char *const same[][2] = {
		{"number of rings:=5\n", ""},
		{"%segment table:={9,5,5}\n", ""},
		{"%compression:=off\n", ""},
		{"%number of TOF time bins:=5\n", ""},
		{"%SMS-MI version number:=3.4", "%SMS-MI version number:=3.5\n%a key of another version:=7"},
		{"number of dimensions:=4\nmatrix axis label[1]:=sinogram projections\nmatrix axis label[2]:=sinogram views\n"
		 "matrix axis label[3]:=number of sinograms\nmatrix axis label[4]:=TOF bin\n",
		 "number of dimensions:=3\nmatrix axis label[1]:=bin\nmatrix axis label[2]:=projection\n"
		 "matrix axis label[3]:=plane\n"},
		{"{radial arc-correction}", "{arc corrected}"},
		{"{radial arc-correction}", "{arc correction}"},
	};
	struct interfile f;

	for (size_t i = 0; i < sizeof(same) / sizeof(same[0]); i++) {
		must_parse(swap(same[i][0], same[i][1]), &f);
		assert_true(f.m.tof.n == 5 && michelogram_planes(&f.m) == 19 && f.m.arc_corrected && f.m.scanner.rings == 5);
	}
	must_parse(swap("applied corrections:={radial arc-correction}\n", ""), &f);
	assert_false(f.m.arc_corrected);
}

/* The segment tables of scanners. */
TEST(test_scanners)
{
	static const struct {
		int compression, largest, rings, planes, segments;
		const char *table;
	} scanners[] = {
		{19, 79, 80, 815, 9, "{159,139,139,101,101,63,63,25,25}"},	/* Vision */
		{19, 322, 323, 11559, 35, NULL},				/* Quadra */
		{11, 49, 55, 621, 9, "{109,97,97,75,75,53,53,31,31}"},		/* mCT */
		{11, 60, 64, 837, 11, "{127,115,115,93,93,71,71,49,49,27,27}"}, /* mMR */
		{1, 60, 64, 4084, 121, NULL},					/* mMR, without compression */
	};

	for (size_t i = 0; i < sizeof(scanners) / sizeof(scanners[0]); i++) {
		char text[2000], table[200] = "";
		struct interfile f;

		if (scanners[i].table)
			snprintf(table, sizeof(table), "%%segment table:=%s\n", scanners[i].table);
		snprintf(text, sizeof(text),
			 "!INTERFILE:=\n%%SMS-MI version number:=3.4\n!name of data file:=a.s\n!number format:=signed integer\n"
			 "!number of bytes per pixel:=2\nnumber of dimensions:=3\nmatrix axis label[1]:=bin\n"
			 "matrix axis label[2]:=projection\nmatrix axis label[3]:=plane\nmatrix size[1]:=6\nmatrix size[2]:=4\n"
			 "matrix size[3]:=%d\n%%axial compression:=%d\n%%maximum ring difference:=%d\nnumber of rings:=%d\n"
			 "%%number of segments:=%d\n%s",
			 scanners[i].planes, scanners[i].compression, scanners[i].largest, scanners[i].rings,
			 scanners[i].segments, table);
		must_parse(text, &f);
		assert_int_equal(michelogram_planes(&f.m), scanners[i].planes);
		assert_int_equal(f.m.segments[scanners[i].segments - 1].first, -scanners[i].largest);
		assert_int_equal(f.m.segments[scanners[i].segments - 2].last, scanners[i].largest);
	}
}

TEST(test_refused)
{
	static const struct {
		const char *from, *to;
		int code;
		const char *says;
	} cases[] = {
		{"compression:=off", "compression:=on", ENOTSUP, "line 9: %compression := on; compressed sinograms of Siemens"},
		{"{9,5,5}", "{9,5,5,1,1}", EBADMSG,
		 "%segment table has 5 segments; axial compression 3 and maximum ring difference 3"},
		{"{9,5,5}", "{9,7,5}", EBADMSG, "%segment table: 7 planes in segment 1; axial compression 3"},
		{"%number of segments:=3", "%number of segments:=5", EBADMSG,
		 "%number of segments := 5, but the segments make 3"},
		{"size[3]:=19", "size[3]:=20", EBADMSG, "matrix size[3] := 20, but the segments have 19 planes"},
		{"sinograms:=19", "sinograms:=95", EBADMSG, "%total number of sinograms := 95, but the segments make 19"},
		{"%axial compression:=3", "%axial compression:=2", EBADMSG, "%axial compression := 2"},
		{"%axial compression:=3", "%axial compression:=5", EBADMSG, "%segment table: 5 planes in segment 1"},
		{"%axial compression:=3\n", "", EBADMSG, "\"%axial compression\" is missing"},
		{"%maximum ring difference:=3\n", "", EBADMSG, "\"%maximum ring difference\" is missing"},
		{"difference:=3", "difference:=5", EBADMSG, "%maximum ring difference := 5, but there are 5 rings"},
		{"number of rings:=5\n%number of segments:=3\n%segment table:={9,5,5}\n", "", EBADMSG, "one of them is required"},
		{"size[4]:=5", "size[4]:=7", EBADMSG, "matrix size[4] := 7, but %number of TOF time bins := 5"},
		{"size[4]:=5\n", "", EBADMSG, "\"matrix size [4]\" is missing"},
		{"label[2]:=sinogram views\nmatrix axis label[3]:=number of sinograms",
		 "label[2]:=plane\nmatrix axis label[3]:=projection", ENOTSUP,
		 "matrix axis label[2] := plane; supported: projection"},
		{"label[3]:=number of sinograms", "label[3]:=plane", ENOTSUP, "[2] and [3] do not belong together"},
		{"label[1]:=sinogram projections", "label[1]:=sinogram views", ENOTSUP,
		 "label[1] := sinogram views; supported: bin"},
		{"label[4]:=TOF bin", "label[4]:=gate", ENOTSUP, "label[4] := gate; supported: TOF bin"},
		{"number of dimensions:=4", "number of dimensions:=5", ENOTSUP, "sinograms of Siemens have 3 or 4"},
		{"[1]:=prompts", "[1]:=net trues", ENOTSUP, "scan data type description[1] := net trues; supported: prompts"},
		{"bytes[2]:=4560", "bytes[2]:=4558", EBADMSG,
		 "data offset in bytes[2] := 4558, but the data of the first type end"},
		{"[2]:=randoms", "[2]:=prompts", EBADMSG,
		 "data offset in bytes[2] := 4560, but TOF bin 2 begins at 912 if they follow each other"},
		{"!total number of data sets:=1", "%image slope:=2", ENOTSUP, "%image slope := 2; this manufacturer's key"},
		{"!total number of data sets:=1", "%x-offset (mm):=1.5", ENOTSUP, "%x-offset (mm) := 1.5; this"},
		{"!INTERFILE:=", "!INTERFILE\n!INTERFILE", EBADMSG, "line 2: no ':=' in \"!INTERFILE\""},
		{"(ps/bin) [4]:=143.231", "(ps/bin) [4]:=-1", EBADMSG, "scale factor (ps/bin) [4] := -1; allowed"},
		{"number format:=unsigned integer", "number format:=ASCII", ENOTSUP, "number format := ASCII"},
	};
	struct interfile f;
	struct err err;

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		int rc = parse(swap(cases[i].from, cases[i].to), &f, &err);

		if (rc != -cases[i].code || !strstr(err.msg, cases[i].says))
			fail_msg("case %zu (%s): %d, \"%s\"; expected %d, \"%s\"", i, cases[i].to, rc, err.msg, -cases[i].code,
				 cases[i].says);
	}
}
