/* SPDX-License-Identifier: Apache-2.0 */
/* Raw data of a Siemens mMR: headers (line ends, missing and wrong keys), words of the list mode one by one, efficiencies against
 * the formula for single bins, refusals with their places. tests/system/formats/test_mmr.py compares whole objects with numpy. */
#include <ctype.h>
#include <strings.h>

#include "node/format/mmr.h"
#include "recon/pet/michelogram_pairs.h"
#include "tests/test.h"

#define NORM_FLOATS (MMR_NORM_BYTES / 4)

static const char list_text[] = "!INTERFILE:=\r\n!originating system:=2008\r\n%SMS-MI version number:=3.4\r\n"
				"!data offset in bytes:=0\r\n%patient orientation:=FFP\r\ndata format:=CoincidenceList\r\n"
				"number of rings:=64\r\nimage duration (sec):=900\r\n%total listmode word counts:=331257106\r\n"
				"%LM event and tag words format (bits):=32\r\n%axial compression:=1\r\n"
				"%maximum ring difference:=60\r\n%number of projections:=344\r\n%number of views:=252\r\n";
static const char norm_text[] = "!INTERFILE:=\r\r\n!originating system:=2008\r\r\n%data set [1]:={0,,a.n}\r\r\n"
				"%number of normalization components:=8\r\r\ndata offset in bytes [2]:=174752\r\r\n"
				"%matrix size [1]:={344,127}\r\r\n%axial compression:=11\r\r\n";

/* Replace a part of the text, once. */
static char *replaced(const char *text, const char *part, const char *by)
{
	const char *at = strstr(text, part);
	char *ret;

	assert_non_null(at);
	assert_true(asprintf(&ret, "%.*s%s%s", (int)(at - text), text, by, at + strlen(part)) > 0);
	test_later(free, ret);
	return ret;
}

TEST(headers)
{
	struct mmr_header h;
	struct err err = {0};
	char with_zeros[sizeof(list_text) + 3] = {0};

	memcpy(with_zeros, list_text, sizeof(list_text));
	assert_done(mmr_header_read_list(with_zeros, sizeof(with_zeros), &h, &err), &err);
	assert_int_equal(h.words, 331257106);
	assert_true(h.singles == MMR_SINGLES);
	assert_near(h.duration, 900, 0);
	assert_string_equal(h.position, "FFP");
	assert_done(mmr_header_read_norm(norm_text, strlen(norm_text), &h, &err), &err);
	assert_int_equal(h.words, 0);
	assert_true(isnan(h.quantification) && isnan(h.cross_calibration));
}

/* ---- forms of real headers ---- */

/* What programs make of the same lines. */
static char *in_form(const char *text, int form)
{
	char *ret = take_memory(4 * strlen(text) + 100), *to = ret;

	assert_non_null(ret);
	if (form == 1)
		to += sprintf(to, "\xEF\xBB\xBF");
	for (; *text; text++) {
		if (form == 2 && text[0] == ':' && text[1] == '=') {
			to += sprintf(to, "\t:= ");
			text++;
		} else if (form == 3) {
			*to++ = (char)tolower((unsigned char)*text);
		} else if (form == 4 && (*text == '%' || *text == '\r')) {
			continue;
		} else if (form == 5 && *text == '\n') {
			to += sprintf(to, "\r\n; a comment := 1\n\n");
		} else {
			*to++ = *text;
		}
	}
	*to = '\0';
	return ret;
}

/* All keys of a header of syngo MR VB20P and VE11P, as published ones have them; each form is read alike. */
TEST(forms)
{
	static const char all[] =
		"!INTERFILE:=\r\n%comment:=SMS-MI list mode\r\n!originating system:=2008\r\n"
		"%SMS-MI header name space:=PETLINK bin address\r\n%SMS-MI version number:=3.1\r\n\r\n!GENERAL DATA:=\r\n"
		"%listmode header file:=D:\\x\\a.l.hdr\r\n%listmode data file:=D:\\x\\a.l\r\n"
		"!name of data file:=D:\\x\\PET_ACQ_1-0.l\r\n!GENERAL IMAGE DATA:=\r\n!type of data:=PET\r\n"
		"%study date (yyyy:mm:dd):=2017:01:24\r\n%study time (hh:mm:ss GMT+00:00):=16:03:20\r\nisotope name:=F-18\r\n"
		"isotope gamma halflife (sec):=6588\r\nisotope branching factor:=0.97\r\n"
		"tracer activity at time of injection (Bq):=3.7e+006\r\n%patient orientation:=HFS\r\n"
		"%patient scan orientation:=HFS\r\n%scan direction:=out\r\n%coincidence window width (ns):=5.85938\r\n"
		"septa state:=none\r\ngantry tilt angle (degrees):=0\r\n%type of detector motion:=step and shoot\r\n"
		"PET data type:=Emission\r\ndata format:=CoincidenceList\r\nhorizontal bed translation:=stepped\r\n"
		"start horizontal bed position (mm):=0\r\n%bed zero offset (mm):=0\r\nnumber of energy windows:=1\r\n"
		"%energy window lower level (keV) [1]:=430\r\n%energy window upper level (keV) [1]:=610\r\n"
		"!PET STUDY (Emission data):=\r\nPET scanner type:=cylindrical\r\ntransaxial FOV diameter (cm):=59.6\r\n"
		"number of rings:=64\r\ndistance between rings (cm):=0.40625\r\ngantry crystal radius (cm):=32.8\r\n"
		"bin size (cm):=0.20445\r\n%number of projections:=344\r\n%number of views:=252\r\n"
		"%number of segments:=121\r\n%maximum ring difference:=60\r\n%number of TOF time bins:=1\r\n"
		"%TOF mashing factor:=1\r\n%axial compression:=1\r\n%preset type:=time\r\n%preset value:=600\r\n"
		"%preset unit:=seconds\r\n!IMAGE DATA DESCRIPTION:=\r\n!total number of data sets:=1\r\n"
		"image duration (sec):=900\r\nimage relative start time (sec):=0\r\n"
		"%total listmode word counts:=331257106\r\n%coincidence list data:=\r\n"
		"%LM event and tag words format (bits):=32\r\n%timing tagwords interval (msec):=1\r\n"
		"%singles polling method:=instantaneous\r\n%singles polling interval (sec):=2\r\n"
		"%singles scale factor:=8\r\n%total number of singles blocks:=224\r\n%time_sync:=25934299\r\n%comment:=\r\n";

	for (int form = 0; form < 6; form++) {
		char *list = in_form(all, form), *norm = in_form(norm_text, form);
		struct mmr_header h;
		struct err err = {0};

		if (mmr_header_read_list(list, strlen(list), &h, &err) < 0)
			fail_msg("form %d: %s", form, err.msg);
		assert_true(h.words == 331257106 && h.duration == 900 && h.energy[0] == 430 && h.singles == 8);
		assert_true(!strcasecmp(h.position, "HFS") && !strcasecmp(h.data_file, "D:\\x\\PET_ACQ_1-0.l"));
		if (mmr_header_read_norm(norm, strlen(norm), &h, &err) < 0)
			fail_msg("form %d: %s", form, err.msg);
		assert_string_equal(h.data_file, "a.n");
	}
}

/* The calibration of a header is read, 0 if it is no number above 0, and never a reason to refuse the data. */
TEST(calibration)
{
	static const struct {
		const char *lines;
		double quantification, cross;
	} cases[] = {
		{"%scanner quantification factor (Bq*s/ECAT counts):=1.98459e+007\n%cross calibration factor:=0.96\n", 1.98459e7,
		 0.96},
		{"scanner quantification factor (Bq*s/ECAT counts) := 2\n", 2, NAN},
		{"%scanner quantification factor (Bq*s/ECAT counts):=-2\n%cross calibration factor:=\n", 0, NAN},
		{"%scanner quantification factor (Bq*s/ECAT counts):=1e400\n%cross calibration factor:=0.9x\n", 0, 0},
		{"%cross calibration factor:=0.9\n%cross calibration factor:=0.96\n", NAN, 0},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		char *text = replaced(norm_text, "%axial compression", cases[i].lines),
		     *rest = replaced(text, ":=11", "%axial compression:=11");
		struct mmr_header h;

		assert_int_equal(mmr_header_read_norm(rest, strlen(rest), &h, NULL), 0);
		assert_true(isnan(cases[i].quantification) ? isnan(h.quantification)
							   : h.quantification == cases[i].quantification);
		assert_true(isnan(cases[i].cross) ? isnan(h.cross_calibration) : h.cross_calibration == cases[i].cross);
	}
}

TEST(refused_headers)
{
	static const struct {
		int (*read)(const char *, size_t, struct mmr_header *, struct err *);
		const char *text, *part, *by;
		int code;
		const char *words;
	} cases[] = {
		{mmr_header_read_list, list_text, "2008", "1208", ENOTSUP,
		 "line 2: !originating system := 1208; supported: 2008"},
		{mmr_header_read_list, list_text, "(bits):=32", "(bits):=64", ENOTSUP, "supported: 32"},
		{mmr_header_read_list, list_text, "compression:=1", "compression:=11", ENOTSUP, "supported: 1"},
		{mmr_header_read_list, list_text, "%axial", "%total number of singles blocks:=112\n%axial", ENOTSUP,
		 "supported: 224"},
		{mmr_header_read_list, list_text, "%axial", "%singles scale factor:=0\n%axial", EBADMSG,
		 "singles scale factor := 0"},
		{mmr_header_read_list, list_text, "%axial", "%compression:=on\n%axial", ENOTSUP,
		 "%compression := on; supported: off"},
		{mmr_header_read_list, list_text, "%axial", "image data byte order:=BIGENDIAN\n%axial", ENOTSUP,
		 "supported: littleendian"},
		{mmr_header_read_norm, norm_text, "%axial", "image data byte order:=BIGENDIAN\n%axial", ENOTSUP,
		 "supported: littleendian"},
		{mmr_header_read_norm, norm_text, "%axial", "%number of buckets:=112\n%axial", ENOTSUP, "supported: 224"},
		{mmr_header_read_norm, norm_text, "%axial", "%normalization component [2]:=crystal efficiencies\n%axial", ENOTSUP,
		 "%normalization component [2] := crystal efficiencies; supported: crystalinterference"},
		{mmr_header_read_list, list_text, "difference:=60", "difference:=63", ENOTSUP, "supported: 60"},
		{mmr_header_read_list, list_text, "projections:=344", "projections:=", EBADMSG,
		 "has no key \"%number of projections\""},
		{mmr_header_read_list, list_text, "views:=252", "views:={252,1}", ENOTSUP, "{252,1}; supported: 252"},
		{mmr_header_read_list, list_text, "bytes:=0", "bytes:=512", ENOTSUP, "data offset in bytes := 512"},
		{mmr_header_read_list, list_text, "CoincidenceList", "sinogram", ENOTSUP, "data format := sinogram"},
		{mmr_header_read_list, list_text, "counts:=331257106", "counts:=", EBADMSG, "total listmode word counts"},
		{mmr_header_read_list, list_text, "counts:=331257106", "counts:=0", EBADMSG, "total listmode word counts := 0"},
		{mmr_header_read_list, list_text, "counts:=331257106", "counts:=1.5", EBADMSG, "not an integer"},
		{mmr_header_read_list, list_text, "counts:=331257106", "counts:=nan", EBADMSG, "nan"},
		{mmr_header_read_list, list_text, "%axial", "%segment table:={64,63}\n%axial", EBADMSG, "has 2 segments"},
		{mmr_header_read_list, list_text, "!INTERFILE", "!OTHERFILE", EBADMSG, "!INTERFILE"},
		{mmr_header_read_norm, norm_text, "components:=8", "components:=7", ENOTSUP, "supported: 8"},
		{mmr_header_read_norm, norm_text, "174752", "174756", ENOTSUP, "data offset in bytes [2] := 174756"},
		{mmr_header_read_norm, norm_text, "{344,127}", "{336,109}", ENOTSUP, "{336,109}; supported: 344, 127"},
		{mmr_header_read_norm, norm_text, "components:=8", "components:=", EBADMSG,
		 "has no key \"%number of normalization components\""},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		char *text = replaced(cases[i].text, cases[i].part, cases[i].by);
		struct mmr_header h = {.words = 7};
		struct err err = {0};

		assert_int_equal(cases[i].read(text, strlen(text), &h, &err), -cases[i].code);
		if (!strstr(err.msg, cases[i].words))
			fail_msg("'%s' does not contain '%s'", err.msg, cases[i].words);
		assert_int_equal(h.words, 7);
	}
}

/* ---- list mode ---- */

static struct michelogram make(int span, int largest)
{
	struct michelogram m = {
		.scanner = {MMR_RINGS, MMR_DETECTORS, 4.0625, 328, 6.7, 2.08626}, .n_radial = MMR_RADIAL, .n_angles = MMR_ANGLES};

	assert_int_equal(michelogram_segments(MMR_RINGS, span, largest, &m.segments, &m.n_segments, NULL), 0);
	test_later(free, m.segments);
	return m;
}

static void put_word(uint8_t *to, uint32_t word)
{
	for (int i = 0; i < 4; i++)
		to[i] = (uint8_t)(word >> 8 * i);
}

static uint32_t event(int plane, int view, int radial, bool prompt)
{
	return (uint32_t)((plane * MMR_ANGLES + view) * MMR_RADIAL + radial) | (prompt ? 0x40000000u : 0);
}

TEST(list_words)
{
	/* Planes of span 1: 0 .. 63 difference 0, 64 .. 126 difference -1 (first end minus second end), 127 .. 189 +1. */
	const uint32_t words[] = {
		0x80000000u | 5000,	 event(0, 0, 0, true), event(63, 251, 343, true),
		event(64, 1, 2, true),	 0xa0000000u | 3,      event(127, 1, 2, true),
		event(127, 1, 2, false), 0xc0000001u,	       event(64 + 63 * 2, 3, 4, true),
		event(4083, 5, 6, true), 0xffffffffu,	       0x80000000u | 5001,
	};
	const size_t n = sizeof(words) / sizeof(words[0]);
	struct michelogram m = make(11, 5);
	uint32_t *counts = take_zeros(127 * MMR_PLANE_BINS, sizeof(*counts));
	uint8_t bytes[sizeof(words)];
	struct mmr_list l;
	uint64_t sum = 0;

	for (size_t i = 0; i < n; i++)
		put_word(bytes + 4 * i, words[i]);
	assert_int_equal(mmr_list_begin(&m, &l, NULL), 0);
	assert_int_equal(mmr_list_add(&l, bytes, 5, counts, NULL), 0);
	assert_int_equal(mmr_list_add(&l, bytes + 20, n - 5, counts, NULL), 0);
	/* rings of the file are counted from the other end */
	assert_int_equal(counts[126 * MMR_PLANE_BINS], 1);			/* ring 0 with itself */
	assert_int_equal(counts[MMR_PLANE_BINS - 1], 1);			/* ring 63 with itself */
	assert_int_equal(counts[125 * MMR_PLANE_BINS + MMR_RADIAL + 2], 2);	/* rings 0 and 1, both ways; not the delayed */
	assert_int_equal(counts[124 * MMR_PLANE_BINS + 3 * MMR_RADIAL + 4], 1); /* the first of difference -2: rings 0 and 2 */
	for (size_t i = 0; i < 127 * MMR_PLANE_BINS; i++)
		sum += counts[i];
	assert_int_equal(sum, 5);
	assert_int_equal(l.report.words, n);
	assert_int_equal(l.report.prompts, 6);
	assert_int_equal(l.report.delayeds, 1);
	assert_int_equal(l.report.outside, 1);
	assert_int_equal(l.report.singles, 1);
	assert_int_equal(l.report.skipped, 2);
	assert_int_equal(l.report.marks, 2);
	assert_int_equal(l.report.first, 5000);
	assert_int_equal(l.report.last, 5001);
}

/* The sign of the ring difference: with span 1 the planes of differences -1 and +1 are different ones. It is the opposite of the
 * file's. */
TEST(list_segments)
{
	struct michelogram m = make(1, 60);
	struct michelogram_index x;
	struct mmr_list l;

	assert_int_equal(michelogram_index_init(&m, &x, NULL), 0);
	assert_int_equal(mmr_list_begin(&m, &l, NULL), 0);
	assert_int_equal(michelogram_plane_rings(&x, l.plane[64]).difference, 1);
	assert_int_equal(michelogram_plane_rings(&x, l.plane[127]).difference, -1);
	assert_int_equal(michelogram_plane_rings(&x, l.plane[190]).difference, 2);
	assert_int_equal(michelogram_plane_rings(&x, l.plane[4083]).difference, -60);
	assert_int_equal(michelogram_plane_rings(&x, l.plane[4083]).sum, 60); /* rings 63 and 3 of the file: 0 and 60 */
}

/* Frames: an event has the time of the mark before it, minus that of the first mark; a frame has its start, not its end; events
 * before the first mark have time 0; what is in no frame is counted. The pieces may be cut anywhere. */
TEST(list_frames)
{
	/* ms: event 1 time 0, 2: 0, 3: 9, 4: 10, 5: 19, 6: 20 (in a gap), 7: 29, 8: 30, 9: 31 (in no frame) */
	const uint32_t words[] = {
		event(1, 0, 1, true), 0x80000000u | 700,    event(1, 0, 2, true), 0x80000000u | 709,	event(1, 0, 3, true),
		0x80000000u | 710,    event(1, 0, 4, true), 0x80000000u | 719,	  event(1, 0, 5, true), 0x80000000u | 720,
		event(1, 0, 6, true), 0x80000000u | 729,    event(1, 0, 7, true), 0x80000000u | 730,	event(1, 0, 8, true),
		0x80000000u | 731,    event(1, 0, 9, true),
	};
	static const struct pet_frame frames[] = {{0, 10}, {10, 20}, {30, 31}};
	static const int first[] = {1, 4, 8}, last[] = {3, 5, 8};
	const size_t n = sizeof(words) / sizeof(words[0]);
	struct michelogram m = make(11, 5);
	uint32_t *counts = take_zeros(127 * MMR_PLANE_BINS, sizeof(*counts));
	uint8_t bytes[sizeof(words)];
	struct mmr_list l;

	for (size_t i = 0; i < n; i++)
		put_word(bytes + 4 * i, words[i]);
	for (size_t piece = 1; piece <= n; piece++) {
		size_t at = 0;

		assert_int_equal(mmr_list_begin(&m, &l, NULL), 0);
		for (int f = 0; f < 3; f++) {
			size_t part, used;
			uint64_t sum = 0;

			memset(counts, 0, 127 * MMR_PLANE_BINS * sizeof(*counts));
			l.frame = frames[f];
			do {
				part = n - at < piece ? n - at : piece;
				used = mmr_list_in_frame(&l, bytes + 4 * at, part);
				assert_int_equal(mmr_list_add(&l, bytes + 4 * at, used, counts, NULL), 0);
				at += used;
			} while (used == part && at < n);
			for (size_t i = 0; i < 127 * MMR_PLANE_BINS; i++)
				sum += counts[i];
			assert_int_equal(sum, last[f] - first[f] + 1);
			for (int k = first[f]; k <= last[f]; k++)
				assert_int_equal(counts[124 * MMR_PLANE_BINS + (size_t)k], 1);
		}
		assert_int_equal(l.report.between, 2);
		assert_int_equal(mmr_list_add(&l, bytes + 4 * at, n - at, counts, NULL), 0);
		assert_int_equal(l.report.words, n);
		assert_int_equal(l.report.prompts, 9);
		assert_int_equal(l.report.between, 3);
	}
}

/* Gates of a list in pieces of any size: each pass counts the events of one gate, and those of none. */
TEST(list_gates)
{
	int64_t times[] = {4, 14, 40, 50};
	/* cycles of 10, 26 (left out) and 10 ms, two gates each; event k at 0, 4, 8, 9, 14, 40, 44, 45, 49, 50 ms */
	static const int ms[] = {0, 4, 8, 9, 14, 40, 44, 45, 49, 50}, gate[] = {-1, 0, 0, 1, -1, 0, 0, 1, 1, -1};
	const struct pet_gates gates = {.n = 2, .shortest = 5, .longest = 20, .marks = {4, times}};
	uint32_t *counts = take_zeros(127 * MMR_PLANE_BINS, sizeof(*counts));
	struct michelogram m = make(11, 5);
	uint8_t bytes[2 * 4 * 10];
	struct mmr_list l;

	for (int k = 0; k < 10; k++) {
		put_word(bytes + 8 * k, 0x80000000u | (700 + (uint32_t)ms[k]));
		put_word(bytes + 8 * k + 4, event(1, 0, k, true));
	}
	for (int wanted = 0; wanted < 2; wanted++)
		for (size_t piece = 1; piece <= 20; piece++) {
			memset(counts, 0, 127 * MMR_PLANE_BINS * sizeof(*counts));
			assert_int_equal(mmr_list_begin(&m, &l, NULL), 0);
			mmr_list_choose_gate(&l, &gates, wanted);
			for (size_t at = 0; at < 20; at += piece)
				assert_int_equal(
					mmr_list_add(&l, bytes + 4 * at, 20 - at < piece ? 20 - at : piece, counts, NULL), 0);
			for (int k = 0; k < 10; k++)
				assert_int_equal(counts[124 * MMR_PLANE_BINS + (size_t)k], gate[k] == wanted);
			assert_int_equal(l.report.between, 3);
		}
}

/* Gating words: those of the signal, at the time of the time mark before them; neither other types and values nor the legacy
 * format. */
TEST(gating_words)
{
	const uint32_t words[] = {0xE1002000u, 0x80000000u | 700, 0xE1002000u, 0xE100A000u,	  0x80000000u | 710, 0xE1002001u,
				  0xE1001000u, 0xE0000080u,	  0xE0002000u, 0x80000000u | 730, 0xE1FF2000u,	     0xE1001001u};
	static const struct {
		enum pet_signal signal;
		size_t n;
		int64_t ms[2];
	} wanted[] = {{PET_SIGNAL_ECG, 2, {0, 30}}, {PET_SIGNAL_RESP, 1, {10}}};
	const size_t n = sizeof(words) / sizeof(words[0]);
	uint8_t bytes[sizeof(words)];
	struct err err = {0};

	for (size_t i = 0; i < n; i++)
		put_word(bytes + 4 * i, words[i]);
	for (size_t w = 0; w < 2; w++)
		for (size_t piece = 1; piece <= n; piece++) {
			struct mmr_marks m = {.signal = wanted[w].signal, .first = -1, .last = -1};

			for (size_t at = 0; at < n; at += piece)
				assert_int_equal(mmr_marks_add(&m, bytes + 4 * at, n - at < piece ? n - at : piece, NULL), 0);
			assert_int_equal(m.marks.n, wanted[w].n);
			for (size_t i = 0; i < m.marks.n; i++)
				assert_int_equal(m.marks.ms[i], wanted[w].ms[i]);
			pet_marks_clear(&m.marks);
		}
	put_word(bytes + 4 * 9, 0x80000000u | 690);
	struct mmr_marks back = {.signal = PET_SIGNAL_ECG, .first = -1, .last = -1};
	assert_int_equal(mmr_marks_add(&back, bytes, 5, &err), 0);
	assert_int_equal(mmr_marks_add(&back, bytes + 20, n - 5, &err), -EBADMSG);
	assert_string_equal(err.msg, "list mode: word 9: a time mark of 690 ms, after one of 710 ms");
	pet_marks_clear(&back.marks);
}

TEST(refused_words)
{
	static const struct {
		uint32_t word;
		const char *part;
	} cases[] = {
		{0x40000000u + (uint32_t)MMR_PLANES * MMR_ANGLES * MMR_RADIAL, "word 1 is an event in plane 4084 of 4084"},
		{0x7fffffffu, "word 1 is an event in plane 12386"},
		{0x80000000u | 4999, "word 1 is a time mark of 4999 ms, after one of 5000 ms"},
	};
	struct michelogram m = make(11, 5);
	uint32_t *counts = take_zeros(127 * MMR_PLANE_BINS, sizeof(*counts));
	struct err err = {0};
	uint8_t bytes[8];
	struct mmr_list l;

	put_word(bytes, 0x80000000u | 5000);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		put_word(bytes + 4, cases[i].word);
		assert_int_equal(mmr_list_begin(&m, &l, NULL), 0);
		assert_int_equal(mmr_list_add(&l, bytes, 2, counts, &err), -EBADMSG);
		if (!strstr(err.msg, cases[i].part))
			fail_msg("'%s' does not contain '%s'", err.msg, cases[i].part);
	}
	m.n_angles = 126;
	assert_int_equal(mmr_list_begin(&m, &l, &err), -ENOTSUP);
	m.n_angles = MMR_ANGLES;
	m.scanner.rings = 63;
	assert_int_equal(mmr_list_begin(&m, &l, &err), -ENOTSUP);
	m.scanner.rings = MMR_RINGS;
	m.arc_corrected = true;
	assert_int_equal(mmr_list_begin(&m, &l, &err), -ENOTSUP);
}

/* ---- normalisation ---- */

static float norm_value(size_t i)
{
	return 0.5f + (float)(i * 7919 % 1000) / 1000;
}

static uint8_t *make_norm(size_t change, float to)
{
	uint8_t *bytes = take_memory(MMR_NORM_BYTES);

	for (size_t i = 0; i < NORM_FLOATS; i++) {
		float v = i == change ? to : norm_value(i);
		uint32_t word;

		memcpy(&word, &v, sizeof(word));
		put_word(bytes + 4 * i, word);
	}
	return bytes;
}

/* One bin, by the formula and the layout of the file. */
static double expected(int first, int second, int axial_plane, int view, int radial)
{
	const size_t interference = 127 * 344, efficiency = interference + 344 * 9, axial = efficiency + 64 * 504;
	int t = radial - 172, c_second = ((view + (int)floor(t / 2.0)) % 504 + 504) % 504,
	    c_first = (view - (int)floor((t + 1) / 2.0) + 252 + 504) % 504;

	if (c_first % 9 == 0 || c_second % 9 == 0)
		return 0;
	return (double)norm_value(efficiency + (size_t)(504 * first + (c_first + 503) % 504)) *
	       (double)norm_value(efficiency + (size_t)(504 * second + (c_second + 503) % 504)) *
	       (double)norm_value((size_t)(344 * (first + second) + radial)) / (double)norm_value(axial + (size_t)axial_plane) *
	       (double)norm_value(interference + (size_t)(9 * radial + view % 9));
}

static void check_plane(const struct mmr_norm *n, const struct michelogram *m, int plane, const int (*pairs)[2], int n_pairs,
			int axial_plane)
{
	static float values[MMR_ANGLES * MMR_RADIAL];
	struct michelogram_index x;

	assert_int_equal(michelogram_index_init(m, &x, NULL), 0);
	mmr_norm_plane(n, &x, plane, values);
	for (int view = 0; view < MMR_ANGLES; view += 5)
		for (int radial = 0; radial < MMR_RADIAL; radial++) {
			double sum = 0;

			for (int i = 0; i < n_pairs; i++)
				sum += expected(pairs[i][0], pairs[i][1], axial_plane, view, radial);
			assert_near(values[view * MMR_RADIAL + radial], sum, 2e-6 * sum); /* float, 16 roundings */
		}
}

TEST(efficiencies)
{
	/* rings of the file */
	static const int own[][2] = {{63, 63}}, both[][2] = {{63, 62}, {62, 63}}, low[][2] = {{57, 63}}, high[][2] = {{63, 57}};
	uint8_t *bytes = make_norm(NORM_FLOATS, 0);
	struct michelogram wide = make(11, 60), narrow = make(1, 60);
	struct mmr_norm *n = NULL;

	assert_int_equal(mmr_norm_read(bytes, MMR_NORM_BYTES, &n, NULL), 0);
	check_plane(n, &wide, 0, own, 1, 126);
	check_plane(n, &wide, 1, both, 2, 125);
	/* Differences +6 .. +16 are the second segment of the michelogram, and -16 .. -6 that of the file. */
	check_plane(n, &wide, 127, low, 1, 127 + 114);
	check_plane(n, &wide, 127 + 115, high, 1, 127 + 115 + 114);
	check_plane(n, &narrow, 64, both + 1, 1, 125); /* span 1, difference +1: rings 1 and 0, of the file 62 and 63 */
	mmr_norm_free(n);
}

TEST(refused_norms)
{
	static const struct {
		size_t change;
		float to;
		const char *part;
	} cases[] = {
		{5, NAN, "geometric factor 6 of 43688 is nan"},
		{127 * 344, -1, "interference factor 1 of 3096 is -1; allowed: 0 to 1e+06"},
		{79040, 0, "axial factor 1 of 837 is 0; allowed: 1e-06 to 1e+06"},
		{46784, 2e6f, "crystal efficiency factor 1 of 32256 is 2e+06; allowed: 0 to 1e+06"},
		{79040 + 837, INFINITY, "paralysing dead time factor 1 of 64 is inf; allowed: -3.4"},
		{NORM_FLOATS - 1, NAN, "further axial factor 837 of 837 is nan"},
	};
	struct mmr_norm *n = NULL;
	struct err err = {0};
	uint8_t *bytes;

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		bytes = make_norm(cases[i].change, cases[i].to);
		assert_int_equal(mmr_norm_read(bytes, MMR_NORM_BYTES, &n, &err), -EBADMSG);
		if (!strstr(err.msg, cases[i].part))
			fail_msg("'%s' does not contain '%s'", err.msg, cases[i].part);
	}
	bytes = make_norm(NORM_FLOATS, 0);
	assert_error(mmr_norm_read(bytes, MMR_NORM_BYTES - 4, &n, &err), &err, EBADMSG, "323400 bytes");
	assert_null(n);
}

#define PARALYSING (46784 + 64 * 504 + 837) /* in the normalisation, floats */
#define RING 9				    /* of the file; of buckets 28 to 55 */
#define ALONG_Z (MMR_RINGS - 1 - RING)
#define BUCKET (28 + 3)

/* The live fraction of detector 3 * 18 of a ring, of buckets that all have this rate but one. EDOM: NaN. */
static double alive_at(float paralysing, float non_paralysing, double rate, double others)
{
	static double alive[MMR_RINGS * MMR_DETECTORS];
	uint8_t *bytes = make_norm(NORM_FLOATS, 0), word[4];
	struct mmr_singles s;
	struct mmr_norm *n = NULL;
	uint32_t as_word;
	double ret = NAN;

	for (int i = 0; i < 128; i++) {
		float v = i == RING ? paralysing : i == 64 + RING ? non_paralysing : 0;

		memcpy(&as_word, &v, sizeof(v));
		put_word(bytes + 4 * (PARALYSING + i), as_word);
	}
	assert_int_equal(mmr_norm_read(bytes, MMR_NORM_BYTES, &n, NULL), 0);
	mmr_singles_begin(&s, NULL, MMR_SINGLES);
	for (uint32_t b = 0; b < MMR_BUCKETS; b++) {
		put_word(word, 5u << 29 | b << 19 | (uint32_t)((b == BUCKET ? rate : others) / 8));
		mmr_singles_add(&s, word, 1);
	}
	if (mmr_norm_alive(n, &s, alive, NULL) == 0) {
		for (int c = 0; c < MMR_DETECTORS; c++)
			for (int ring = 0; ring < MMR_RINGS; ring++)
				assert_true(ring == ALONG_Z || alive[ring * MMR_DETECTORS + c] == 1);
		assert_true(alive[ALONG_Z * MMR_DETECTORS + 54] == alive[ALONG_Z * MMR_DETECTORS + 71]);
		assert_true(others > 0 || alive[ALONG_Z * MMR_DETECTORS + 53] == 1);
		ret = alive[ALONG_Z * MMR_DETECTORS + 54];
	}
	mmr_norm_free(n);
	return ret;
}

/* Against the formula in the head; 1 at rate 0, and the lower the higher the rate. */
TEST(dead_time)
{
	double before = 1;

	assert_true(alive_at(-2e-6f, 3e-6f, 0, 0) == 1);
	for (double rate = 8000; rate < 2e6; rate *= 2) {
		double half = rate / 2, slow = 1 + half * (double)3e-6f;
		double alive = alive_at(-2e-6f, 3e-6f, rate, 0);

		assert_near(alive, exp(half * (double)-2e-6f / slow) / slow, 1e-12);
		assert_true(alive < before);
		before = alive;
	}
	assert_near(alive_at(0, 4e-6f, 100000, 800), 1 / (1 + 50000 * (double)4e-6f), 1e-12);
	assert_true(isnan(alive_at(4e-6f, 1e-6f, 100000, 0))); /* above 1 */
	assert_true(isnan(alive_at(0, -1e-4f, 100000, 0)));    /* below 0 */
}

/* The mean of a bucket's words in a frame. */
TEST(singles)
{
	const struct {
		uint32_t word;
		double sum;
		uint64_t n;
	} words[] = {{5u << 29 | 7 << 19 | 10, 0, 0}, /* before the first mark: time 0 */
		     {4u << 29 | 500, 0, 0},
		     {4u << 29 | 1500, 0, 0},
		     {5u << 29 | 7 << 19 | 100, 800, 1},
		     {5u << 29 | 900 << 19 | 100, 800, 1}, /* no bucket */
		     {5u << 29 | 8 << 19 | 100, 800, 1},
		     {5u << 29 | 7 << 19 | 0x7ffff, 800 + 8.0 * 0x7ffff, 2},
		     {4u << 29 | 2500, 800 + 8.0 * 0x7ffff, 2},
		     {5u << 29 | 7 << 19 | 100, 800 + 8.0 * 0x7ffff, 2}};
	const struct pet_frame frame = {1000, 2000};
	struct mmr_singles s;
	uint8_t bytes[4];

	for (double scale = 1; scale < 9; scale += 7) {
		mmr_singles_begin(&s, &frame, scale);
		for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
			put_word(bytes, words[i].word);
			mmr_singles_add(&s, bytes, 1);
			assert_true(s.sum[7] == words[i].sum * scale / 8 && s.n[7] == words[i].n);
		}
		assert_true(s.sum[8] == 100 * scale && s.n[8] == 1 && s.n[9] == 0);
	}
}
