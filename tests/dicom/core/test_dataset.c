/* SPDX-License-Identifier: Apache-2.0 */
/* Data sets: build, get, copy, open; every getter's result for a present, absent and unreadable element. */
#include "dicom/core/bulk.h"
#include "tests/dicom/core/fixture.h"
#include "tests/test.h"

#define KVP DICOM_TAG(0x0018, 0x0060)		  /* DS */
#define SID DICOM_TAG(0x0018, 0x1110)		  /* DS */
#define INSTANCE_NUMBER DICOM_TAG(0x0020, 0x0013) /* IS */
#define IMAGE_TYPE DICOM_TAG(0x0008, 0x0008)	  /* CS 2-n */
#define ROWS DICOM_TAG(0x0028, 0x0010)		  /* US */
#define SHARED DICOM_TAG(0x5200, 0x9229)	  /* SQ */
#define PIXEL_MEASURES DICOM_TAG(0x0028, 0x9110)  /* SQ */
#define VIEW DICOM_TAG(0x0054, 0x0220)		  /* SQ */
#define PIXEL_SPACING DICOM_TAG(0x0028, 0x0030)	  /* DS 2 */
#define PADDING DICOM_TAG(0x0028, 0x0120)	  /* US or SS */
#define FD_ANGLE DICOM_TAG(0x0018, 0x9545)	  /* FD */
#define POINTER DICOM_TAG(0x0028, 0x0009)	  /* AT */
#define COMMENT DICOM_TAG(0x0020, 0x4000)	  /* LT */
#define MODALITY_LUT DICOM_TAG(0x0028, 0x3000)	  /* SQ */
#define LUT_DESCRIPTOR DICOM_TAG(0x0028, 0x3002)  /* US or SS 3 */
#define TEXT_VALUE DICOM_TAG(0x0040, 0xa160)	  /* UT */

static struct dicom_file *fresh(void)
{
	return new_object(MG_PROCESSING, "1.2.3");
}

TEST(test_put_and_get)
{
	struct dicom_file *file = fresh();
	struct dicom_item *root = dicom_root(file);
	uint32_t tags[2] = {0x00189545, 0x00200037};
	double pair[2] = {0.085, -1.5e-7}, d = 7;
	struct err err = {0};
	char text[64];
	long i = 7;

	assert_string_equal(dicom_transfer_syntax(file), EXPLICIT);
	ok(dicom_put_text(root, IMAGE_TYPE, "DERIVED\\PRIMARY\\TOMOSYNTHESIS\\NONE", &err), &err);
	ok(dicom_put_double(root, SID, 655.5, &err), &err);
	ok(dicom_put_doubles(root, PIXEL_SPACING, pair, 2, &err), &err);
	ok(dicom_put_double(root, FD_ANGLE, -24.999999999999996, &err), &err);
	ok(dicom_put_int(root, INSTANCE_NUMBER, -2147483648L, &err), &err);
	ok(dicom_put_int(root, ROWS, 3584, &err), &err);
	ok(dicom_put_uint32s(root, POINTER, tags, 2, &err), &err);

	assert_int_equal(dicom_get_text(root, IMAGE_TYPE, text, sizeof(text), &err), 1);
	assert_string_equal(text, "DERIVED\\PRIMARY\\TOMOSYNTHESIS\\NONE");
	assert_int_equal(dicom_get_text_at(root, IMAGE_TYPE, 2, text, sizeof(text), &err), 1);
	assert_string_equal(text, "TOMOSYNTHESIS");
	assert_int_equal(dicom_get_text_at(root, IMAGE_TYPE, 4, text, sizeof(text), &err), 0);
	assert_string_equal(text, "");
	assert_int_equal(dicom_get_text(root, IMAGE_TYPE, text, 8, &err), -EMSGSIZE);
	assert_string_equal(text, "");
	assert_non_null(strstr(err.msg, "(0008,0008) ImageType"));
	assert_int_equal(dicom_get_double(root, SID, 0, &d, &err), 1);
	assert_true(d == 655.5);
	assert_int_equal(dicom_get_double(root, PIXEL_SPACING, 1, &d, &err), 1);
	assert_true(d == -1.5e-7);
	assert_int_equal(dicom_get_double(root, PIXEL_SPACING, 2, &d, &err), 0);
	assert_int_equal(dicom_get_double(root, FD_ANGLE, 0, &d, &err), 1);
	assert_true(d == -24.999999999999996);
	assert_int_equal(dicom_get_int(root, FD_ANGLE, 0, &i, &err), -EBADMSG);
	assert_int_equal(dicom_get_double(root, FD_ANGLE, 1, &d, &err), 0);
	assert_int_equal(dicom_get_int(root, INSTANCE_NUMBER, 0, &i, &err), 1);
	assert_int_equal(i, -2147483648L);
	assert_int_equal(dicom_get_int(root, ROWS, 0, &i, &err), 1);
	assert_int_equal(i, 3584);
	assert_int_equal(dicom_get_text(root, ROWS, text, sizeof(text), &err), 1);
	assert_string_equal(text, "3584");
	assert_int_equal(dicom_get_text(root, POINTER, text, sizeof(text), &err), 1);
	assert_string_equal(text, "(0018,9545)\\(0020,0037)");
	assert_error(dicom_get_int(root, POINTER, 0, &i, &err), &err, EBADMSG, "VR (data type) is AT");

	/* absent: returns 0 and does not change the output */
	i = 7;
	d = 7;
	assert_int_equal(dicom_get_double(root, KVP, 0, &d, &err), 0);
	assert_int_equal(dicom_get_int(root, KVP, 0, &i, &err), 0);
	assert_int_equal(dicom_get_text(root, KVP, text, sizeof(text), &err), 0);
	assert_true(d == 7 && i == 7);
	assert_false(dicom_has(root, KVP));
	/* present, but empty */
	ok(dicom_put_empty(root, KVP, &err), &err);
	assert_true(dicom_has(root, KVP));
	assert_int_equal(dicom_get_double(root, KVP, 0, &d, &err), 0);
	/* sequences have no text and no number */
	ok(dicom_put_empty(root, VIEW, &err), &err);
	assert_int_equal(dicom_item_count(root, VIEW), 0);
	assert_non_null(dicom_add_item(root, VIEW, &err));
	assert_int_equal(dicom_get_text(root, VIEW, text, sizeof(text), &err), -EBADMSG);
	assert_int_equal(dicom_get_double(root, VIEW, 0, &d, &err), -EBADMSG);
	assert_null(dicom_close(NULL));
}

TEST(test_values_that_do_not_fit)
{
	struct dicom_file *file = fresh(), *longest = NULL;
	struct dicom_item *root = dicom_root(file);
	char uid[66], copy[80];
	struct err err = {0};

	assert_int_equal(dicom_put_double(root, SID, NAN, &err), -ERANGE);
	assert_int_equal(dicom_put_double(root, FD_ANGLE, INFINITY, &err), -ERANGE);
	assert_error(dicom_put_int(root, ROWS, 65536, &err), &err, ERANGE, "(0028,0010) Rows");
	assert_int_equal(dicom_put_text(root, SHARED, "x", &err), -EINVAL);
	assert_int_equal(dicom_put_text(root, DICOM_TAG(0x0071, 0x1002), "x", &err), -EINVAL);
	assert_int_equal(dicom_put_text(root, DICOM_TAG(0x7fe0, 0x0010), "x", &err), -EINVAL);
	assert_false(dicom_has(root, SID) || dicom_has(root, ROWS));
	/* VR "US or SS": the pixel representation decides */
	ok(dicom_put_int(root, PADDING, 65535, &err), &err);
	assert_int_equal(dicom_put_int(root, PADDING, -1, &err), -ERANGE);
	ok(dicom_put_int(root, DICOM_TAG(0x0028, 0x0103), 1, &err), &err);
	ok(dicom_put_int(root, PADDING, -1, &err), &err);
	assert_int_equal(dicom_put_int(root, PADDING, 65535, &err), -ERANGE);
	assert_int_equal(dicom_new("x", "1.2", &file, &err), -EINVAL);
	memset(uid, '1', sizeof(uid)); /* "1.111...": 64 characters are the longest UID, 65 are none (PS3.5 9.1) */
	uid[1] = '.';
	uid[65] = '\0';
	assert_int_equal(dicom_new(MG_PROCESSING, uid, &file, &err), -EINVAL);
	uid[64] = '\0';
	uid[63] = '.';
	assert_int_equal(dicom_new(MG_PROCESSING, uid, &file, &err), -EINVAL);
	uid[63] = '1';
	ok(dicom_new(MG_PROCESSING, uid, &longest, &err), &err);
	ok(dicom_get_text(dicom_root(longest), 0x00080018, copy, sizeof(copy), &err) == 1 ? 0 : -1, &err);
	assert_string_equal(copy, uid);
	assert_null(dicom_close(longest));
}

/* Each whole number is stored within the range of its VR and read back; the next one on either side is refused. */
TEST(ranges_of_whole_numbers)
{
	static const struct {
		uint32_t tag;
		long low, high;
	} rows[] = {
		{0x00200013, -2147483648L, 2147483647L},	     /* IS */
		{0x00280010, 0, 65535},				     /* US */
		{0x00189219, -32768, 32767},			     /* SS */
		{0x00186018, 0, 4294967295L},			     /* UL */
		{0x00186020, -2147483648L, 2147483647L},	     /* SL */
		{0x00181110, -999999999999999L, 9999999999999999L},  /* DS; above 2^53 not read as a whole number */
		{0x00189073, -9007199254740992L, 9007199254740992L}, /* FD: 2^53 */
		{0x00089459, -16777216, 16777216},		     /* FL: 2^24 */
	};
	struct dicom_file *file = fresh();
	struct dicom_item *root = dicom_root(file);
	struct err err = {0};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		for (int high = 0; high < 2; high++) {
			long value = high ? rows[i].high : rows[i].low, back = 1;
			bool exact = labs(value) <= 9007199254740992L;

			ok(dicom_put_int(root, rows[i].tag, value, &err), &err);
			assert_int_equal(dicom_get_int(root, rows[i].tag, 0, &back, &err), exact ? 1 : -EBADMSG);
			assert_int_equal(back, exact ? value : 1);
			assert_error(dicom_put_int(root, rows[i].tag, value + (high ? 1 : -1), &err), &err, ERANGE, "outside");
		}
}

/* The longest text and list of a VR with a length of 16 bits, and one more. */
TEST(longest_values)
{
	static char text[65536];
	static double doubles[16384];
	static uint32_t numbers[32768];
	static const struct {
		uint32_t tag;
		size_t most;
		bool real;
	} rows[] = {{0x00189089, 8191, true},	/* FD: 8 bytes */
		    {0x00081161, 16383, false}, /* UL: 4 bytes */
		    {0x00280009, 16383, false}, /* AT: 4 bytes */
		    {0x00181310, 32767, false}, /* US: 2 bytes */
		    {0x00700022, 16383, true}}; /* FL: 4 bytes */
	struct dicom_file *file = fresh();
	struct dicom_item *root = dicom_root(file);
	struct err err = {0};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		for (size_t n = rows[i].most; n <= rows[i].most + 1; n++) {
			int rc = rows[i].real ? dicom_put_doubles(root, rows[i].tag, doubles, n, &err)
					      : dicom_put_uint32s(root, rows[i].tag, numbers, n, &err);

			assert_int_equal(rc, n == rows[i].most ? 0 : -EMSGSIZE);
		}
	memset(text, 'x', sizeof(text));
	text[65534] = '\0';
	ok(dicom_put_text(root, COMMENT, text, &err), &err);
	text[65534] = 'x';
	text[65535] = '\0';
	assert_error(dicom_put_text(root, COMMENT, text, &err), &err, EMSGSIZE, "65535 bytes");
	ok(dicom_put_text(root, TEXT_VALUE, text, &err), &err); /* UT has a length of 32 bits */
}

struct put {
	REFUSED;
	uint32_t tag;
	char kind; /* d: a real number, u: two unsigned ones, i: a whole one, t: a text, e: empty, s: an item, n: no item at all,
		      p: private elements, c: a copy */
	const char *text, *creator;
};

static int try_put(const void *row, struct err *err)
{
	const struct put *r = row;
	struct dicom_file *file = fresh();
	struct dicom_item *root = dicom_root(file);
	int rc = 0;

	switch (r->kind) {
	case 'd':
		rc = dicom_put_double(root, r->tag, 1, err);
		break;
	case 'u':
		rc = dicom_put_uint32s(root, r->tag, (const uint32_t[]){1, 65536}, 2, err);
		break;
	case 'i':
		rc = dicom_put_int(root, r->tag, 1, err);
		break;
	case 't':
		rc = dicom_put_text(root, r->tag, r->text, err);
		break;
	case 'e':
		rc = dicom_put_empty(root, r->tag, err);
		break;
	case 's':
		rc = dicom_add_item(root, r->tag, err) ? 0 : -err->code;
		break;
	case 'n':
		rc = dicom_put_text(NULL, r->tag, "x", err);
		break;
	case 'p':
		rc = dicom_put_private(root, (uint16_t)r->tag, r->creator, 1, r->text, "x", err);
		break;
	default:
		ok(dicom_put_text(root, COMMENT, "x", err), err);
		rc = dicom_copy(root, r->tag, NULL, err);
	}
	return rc;
}

#define LETTERS "abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijklm" /* 65 */

static const struct put refused_puts[] = {
	{{"a real number in a text", EINVAL, "real number"}, IMAGE_TYPE, 'd', NULL, NULL},
	{{"a real number in an integer", EINVAL, "real number"}, ROWS, 'd', NULL, NULL},
	{{"a list in a text", EINVAL, "unsigned"}, IMAGE_TYPE, 'u', NULL, NULL},
	{{"a large number in a list of US", ERANGE, "value 2 is 65536"}, 0x00181310, 'u', NULL, NULL},
	{{"a whole number in a text", EINVAL, "whole number"}, IMAGE_TYPE, 'i', NULL, NULL},
	{{"a number in a sequence", EINVAL, "whole number"}, SHARED, 'i', NULL, NULL},
	{{"an unknown tag", EINVAL, "dictionary"}, 0x00181111 + 0x7000, 'e', NULL, NULL},
	{{"empty pixels", EINVAL, "frame by frame"}, 0x7fe00010, 'e', NULL, NULL},
	{{"an item of no sequence", EINVAL, "not a sequence"}, ROWS, 's', NULL, NULL},
	{{"no item", EINVAL, "no item"}, COMMENT, 'n', NULL, NULL},
	{{"a copy to nowhere", EINVAL, ""}, COMMENT, 'c', NULL, NULL},
	{{"a private group that is even", EINVAL, "0070"}, 0x0070, 'p', "LO", "A"},
	{{"the private group 7", EINVAL, "0007"}, 0x0007, 'p', "LO", "A"},
	{{"no private creator", EINVAL, "1 to 64"}, 0x0071, 'p', "LO", ""},
	{{"a long private creator", EINVAL, "1 to 64"}, 0x0071, 'p', "LO", LETTERS},
	{{"no value representation", EINVAL, "value representation"}, 0x0071, 'p', "XX", "A"},
	{{"a text in a private sequence", EINVAL, "text"}, 0x0071, 'p', "SQ", "A"},
};

REFUSES(what_cannot_be_put, refused_puts, try_put)

TEST(longest_private_creator)
{
	struct dicom_file *file = fresh();
	struct err err = {0};

	ok(dicom_put_private(dicom_root(file), 0x0071, LETTERS + 1, 1, "LO", "x", &err), &err);
	ok(dicom_put_private(dicom_root(file), 0x0009, "A", 0xff, "LO", "x", &err), &err);
	assert_true(dicom_has(dicom_root(file), 0x000910ff));
}

TEST(texts_that_are_allowed)
{
	static const struct {
		uint32_t tag;
		const char *good, *bad, *allowed;
	} rows[] = {
		{0x00080020, "20300131", "2030-01-31", "YYYYMMDD"},		   /* DA */
		{0x00080030, "235959.999999", "25", "HHMMSS"},			   /* TM */
		{0x0008002a, "20300131235959", "203", "YYYYMMDDHHMMSS"},	   /* DT */
		{0x00101010, "060Y", "60", "060Y"},				   /* AS */
		{0x00080060, "PT", "pt", "capital letters"},			   /* CS */
		{0x00101030, "70.5", "70,5", "a number"},			   /* DS */
		{0x00200013, "12", "1.5", "a whole number"},			   /* IS */
		{0x0020000d, "1.2.3", "1.2.x", "a UID"},			   /* UI */
		{0x00080050, LETTERS + 49, LETTERS + 48, "at most 16 characters"}, /* SH: 16 and 17 */
		{0x00081030, LETTERS + 1, LETTERS, "at most 64 characters"},	   /* LO: 64 and 65 */
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const char *allowed = dicom_text_allowed(rows[i].tag, rows[i].bad);

		if (dicom_text_allowed(rows[i].tag, rows[i].good))
			fail_msg("row %zu: %s", i, dicom_text_allowed(rows[i].tag, rows[i].good));
		assert_non_null(allowed);
		assert_non_null(strstr(allowed, rows[i].allowed));
		assert_null(dicom_text_allowed(rows[i].tag, ""));
	}
	assert_null(dicom_text_allowed(COMMENT, LETTERS));
	/* each of several values has the room of one */
	assert_null(dicom_text_allowed(0x00181020,
				       "abcdefghijklmnopqrstuvwxyz abcdefghijklm\\abcdefghijklmnopqrstuvwxyz abcdefghijklm"));
	assert_non_null(dicom_text_allowed(0x00181020, "x\\" LETTERS));
}

/* A DS has at most 16 characters and the smallest possible error: changing its last decimal by 1 does not make the error
 * smaller. */
static void check_ds(struct dicom_item *root, double value)
{
	double back, gap, bound;
	struct err err = {0};
	char text[64];

	ok(dicom_put_double(root, SID, value, &err), &err);
	assert_int_equal(dicom_get_text(root, SID, text, sizeof(text), &err), 1);
	assert_true(strlen(text) <= 16);
	assert_int_equal(strspn(text, "0123456789+-Ee."), strlen(text));
	back = strtod(text, NULL);
	gap = fabs(back - value);
	/* worst case: -d.ddddddddde-ddd has 10 significant digits, because the exponent needs three; error: half a unit of the
	 * last */
	bound = fabs(value) * 0.5e-8;
	if (fabs(value) >= 1e-5 && fabs(value) < 1e14)
		bound = fabs(value) * 0.5e-10;
	if (!(gap <= bound))
		fail_msg("%.17g became \"%s\"", value, text);
	/* the text of C's %g with 16 characters never has a smaller error */
	for (int digits = 17; digits > 0; digits--) {
		char other[64];

		snprintf(other, sizeof(other), "%.*g", digits, value);
		if (strlen(other) > 16)
			continue;
		assert_true(gap <= fabs(strtod(other, NULL) - value));
		break;
	}
}

TEST(test_decimal_strings)
{
	static const struct {
		double value;
		const char *text;
	} known[] = {
		{0, "0"},
		{-0.0, "0"},
		{1, "1"},
		{-1.5, "-1.5"},
		{0.085, "0.085"},
		{0.1 + 0.2, "0.3"},
		{1e22, "1e22"},
		{1234567890123456.0, "1234567890123456"},
		{12345678901234567.0, "1.2345678901e16"},
		{M_PI, "3.14159265358979"},
		{-M_PI, "-3.1415926535898"},
		{1e-7, "0.0000001"},
		{1.25e-20, "1.25e-20"},
		{5e-324, "5e-324"},
		{-1.7976931348623157e308, "-1.79769313e308"},
		{655.123456789012345, "655.123456789012"},
		{100000, "100000"},
		{1e300, "1e300"},
	};
	struct dicom_file *file = fresh();
	struct dicom_item *root = dicom_root(file);
	struct err err = {0};
	unsigned long seed = test_seed();
	char text[64];

	for (size_t k = 0; k < sizeof(known) / sizeof(known[0]); k++) {
		ok(dicom_put_double(root, SID, known[k].value, &err), &err);
		assert_int_equal(dicom_get_text(root, SID, text, sizeof(text), &err), 1);
		if (known[k].value == 0.1 + 0.2)
			assert_true(strlen(text) <= 16 && fabs(strtod(text, NULL) - 0.3) < 1e-15);
		else if (known[k].value < -1e308 || known[k].value == 12345678901234567.0)
			check_ds(root, known[k].value);
		else
			assert_string_equal(text, known[k].text);
	}
	for (int k = 0; k < (test_tier() == 2 ? 20000 : 2000); k++) {
		seed = seed * 6364136223846793005ul + 1442695040888963407ul;
		double mantissa = (double)(seed >> 11) / 9007199254740992.0 * 2 - 1;

		seed = seed * 6364136223846793005ul + 1442695040888963407ul;
		check_ds(root, mantissa * pow(10, (int)(seed >> 33) % (k % 2 ? 300 : 15)));
		check_ds(root, mantissa * pow(10, -(int)(seed >> 33) % 300));
	}
}

/* Three levels of sequences from one data set to another, and through a file. */
TEST(test_copy)
{
	struct dicom_file *from = fresh(), *to = fresh(), *back = NULL;
	struct dicom_item *item, *deep;
	struct err err = {0};
	char text[64];
	double d;

	for (int k = 0; k < 2; k++) {
		item = dicom_add_item(dicom_root(from), SHARED, &err);
		deep = dicom_add_item(item, PIXEL_MEASURES, &err);
		ok(dicom_put_double(deep, PIXEL_SPACING, 0.085 + k, &err), &err);
		ok(dicom_add_code(deep, VIEW, "R-10242", "SRT", "cranio-caudal", &err), &err);
	}
	ok(dicom_put_text(dicom_root(from), DICOM_TAG(0x0010, 0x0010), "M\xfcller^J\xf6rg", &err),
	   &err); /* ISO 8859-1, as stored */
	assert_int_equal(dicom_copy(dicom_root(from), SHARED, dicom_root(to), &err), 1);
	assert_int_equal(dicom_copy(dicom_root(from), SHARED, dicom_root(to), &err), 1); /* replaces */
	assert_int_equal(dicom_copy(dicom_root(from), DICOM_TAG(0x0010, 0x0010), dicom_root(to), &err), 1);
	assert_int_equal(dicom_copy(dicom_root(from), KVP, dicom_root(to), &err), 0);
	assert_false(dicom_has(dicom_root(to), KVP));
	ok(dicom_put_private(dicom_root(to), 0x0071, "TOMONODE TEST 1", 0x02, "LO", "hello", &err), &err);
	ok(dicom_put_private(dicom_root(to), 0x0071, "TOMONODE TEST 1", 0x03, "UT", "a\\b", &err), &err);
	assert_int_equal(dicom_put_private(dicom_root(to), 0x0071, "ANOTHER", 0x02, "LO", "x", &err), -EEXIST);
	ok(dicom_write(in_folder("copy.dcm"), to, &err), &err);
	back = open_file(in_folder("copy.dcm"));
	assert_int_equal(dicom_item_count(dicom_root(back), SHARED), 2);
	assert_null(dicom_item_at(dicom_root(back), SHARED, 2));
	assert_null(dicom_item_at(dicom_root(back), VIEW, 0));
	item = dicom_item_at(dicom_root(back), SHARED, 1);
	deep = dicom_item_at(item, PIXEL_MEASURES, 0);
	assert_int_equal(dicom_get_double(deep, PIXEL_SPACING, 0, &d, &err), 1);
	assert_true(d == 1.085);
	item = dicom_item_at(deep, VIEW, 0);
	assert_int_equal(dicom_get_text(item, DICOM_TAG(0x0008, 0x0100), text, sizeof(text), &err), 1);
	assert_string_equal(text, "R-10242");
	assert_int_equal(dicom_get_text(dicom_root(back), DICOM_TAG(0x0010, 0x0010), text, sizeof(text), &err), 1);
	assert_string_equal(text, "M\xfcller^J\xf6rg");
	assert_int_equal(dicom_get_text(dicom_root(back), DICOM_TAG(0x0071, 0x0010), text, sizeof(text), &err), 1);
	assert_string_equal(text, "TOMONODE TEST 1");
	assert_int_equal(dicom_get_text(dicom_root(back), DICOM_TAG(0x0071, 0x1003), text, sizeof(text), &err), 1);
	assert_string_equal(text, "a\\b");
	/* only the object's file remains */
	assert_int_equal(access(in_folder("copy.dcm.part"), F_OK), -1);
	unlink(in_folder("copy.dcm"));
}

static int read_blob(void *ctx, void *ret_bytes, size_t n, struct err *err)
{
	const unsigned char **from = ctx;

	(void)err;
	memcpy(ret_bytes, *from, n);
	*from += n;
	return 0;
}

/* A value that is too large to be read at opening is copied completely; the copy can be used after its file was closed and
 * removed. */
TEST(test_large_values)
{
	static unsigned char blob[300001];
	const unsigned char *from = blob;
	const uint32_t tag = DICOM_TAG(0x0042, 0x0011); /* EncapsulatedDocument, OB */
	struct dicom_file *file = fresh(), *copy = fresh();
	struct err err = {0};
	struct stat st;

	for (size_t k = 0; k < sizeof(blob); k++)
		blob[k] = (unsigned char)(k * 7 >> 3);
	ok(dicom_write_bulk(in_folder("large.dcm"), file, tag, sizeof(blob), read_blob, &from, &err), &err);
	file = open_file(in_folder("large.dcm"));
	unlink(in_folder("large.dcm"));
	assert_int_equal(dicom_copy(dicom_root(file), tag, dicom_root(copy), &err), 1);
	ok(dicom_write(in_folder("large2.dcm"), copy, &err), &err);
	assert_int_equal(stat(in_folder("large2.dcm"), &st), 0);
	FILE *f = fopen(in_folder("large2.dcm"), "r");
	unsigned char *all = malloc((size_t)st.st_size);
	assert_int_equal(fread(all, 1, (size_t)st.st_size, f), (size_t)st.st_size);
	fclose(f);
	assert_non_null(memmem(all, (size_t)st.st_size, blob, sizeof(blob)));
	free(all);
	unlink(in_folder("large2.dcm"));
}

#define COSINES 0x00200037u  /* DS, six values */
#define GRADIENT 0x00189089u /* FD, three values */

TEST(test_unreadable_numbers)
{
	static const char *const wrong[] = {"12 mm", "nan", "inf",   "1e999", "0x10", "1,5",
					    "--1",   "+-1", "1.5.2", "-",     "1e",   "\001\002"};
	struct bytes b;
	struct err err = {0};
	double d = 7;
	long i = 7;

	for (size_t k = 0; k < sizeof(wrong) / sizeof(wrong[0]); k++) {
		add_meta(&b, EXPLICIT);
		add_text(&b, SID, "DS", wrong[k]);
		struct dicom_file *file = open_bytes(&b);
		assert_error(dicom_get_double(dicom_root(file), SID, 0, &d, &err), &err, EBADMSG,
			     "(0018,1110) DistanceSourceToDetector");
		assert_int_equal(dicom_get_int(dicom_root(file), SID, 0, &i, &err), -EBADMSG);
	}
	/* the message contains a long value in shortened form and without control characters */
	add_meta(&b, EXPLICIT);
	add_text(&b, SID, "DS", "1234\n5678901234567890123456789012345678901234567890");
	struct dicom_file *file = open_bytes(&b);
	assert_error(dicom_get_double(dicom_root(file), SID, 0, &d, &err), &err, EBADMSG, "\"1234?567890123456789012345678901");
	assert_null(strchr(err.msg, '\n'));
	/* blanks, plus signs and exponents are valid; an empty component between backslashes is absent */
	add_meta(&b, EXPLICIT);
	add_header(&b, GRADIENT, "FD", 16);
	d = NAN;
	add(&b, &d, 8);
	d = -INFINITY;
	add(&b, &d, 8);
	d = 7;
	add_text(&b, COSINES, "DS", " +6.555E+2 \\\\3.0 ");
	file = open_bytes(&b);
	assert_int_equal(dicom_get_double(dicom_root(file), COSINES, 0, &d, &err), 1);
	assert_true(d == 655.5);
	assert_int_equal(dicom_get_double(dicom_root(file), COSINES, 1, &d, &err), 0);
	assert_int_equal(dicom_get_int(dicom_root(file), COSINES, 2, &i, &err), 1);
	assert_int_equal(i, 3);
	assert_error(dicom_get_double(dicom_root(file), GRADIENT, 0, &d, &err), &err, EBADMSG, "nan");
	assert_int_equal(dicom_get_double(dicom_root(file), GRADIENT, 1, &d, &err), -EBADMSG);
	assert_true(d == 655.5);
}

/* Each VR of numbers, stored as it is and as UN, whose VR is that of the dictionary; the smallest and the largest value. */
TEST(numbers_of_each_vr)
{
	static const struct {
		uint32_t tag;
		const char *vr;
		int size;
		uint64_t bits;
		double value;
		int whole; /* what the function that reads whole numbers returns */
	} cases[] = {
		{0x00280010, "US", 2, 0xfffe, 65534, 1},
		{0x00189219, "SS", 2, 0x8000, -32768, 1},
		{0x00186018, "UL", 4, 0xfffffffe, 4294967294.0, 1},
		{0x00186020, "SL", 4, 0x80000000, -2147483648.0, 1},
		{0x00720083, "UV", 8, 0x8000000000000000, 9223372036854775808.0, -ERANGE},
		{0x00720082, "SV", 8, 0x8000000000000000, -9223372036854775808.0, 1},
		{0x00720076, "FL", 4, 0xbfc00000, -1.5, -EBADMSG},
		{GRADIENT, "FD", 8, 0xbff8000000000000, -1.5, -EBADMSG},
	};

	for (size_t k = 0; k < 2 * sizeof(cases) / sizeof(cases[0]); k++) {
		size_t c = k / 2;
		struct dicom_file *file;
		struct bytes b;
		struct err err = {0};
		double value = 0;
		long whole = 7;

		add_meta(&b, EXPLICIT);
		add_header(&b, cases[c].tag, k % 2 ? "UN" : cases[c].vr, (uint32_t)cases[c].size);
		for (int i = 0; i < cases[c].size; i++)
			add(&b, &(unsigned char){(unsigned char)(cases[c].bits >> 8 * i)}, 1);
		file = open_bytes(&b);
		assert_int_equal(dicom_get_double(dicom_root(file), cases[c].tag, 0, &value, &err), 1);
		if (value != cases[c].value)
			fail_msg("%s%s: %.17g, not %.17g", cases[c].vr, k % 2 ? " in UN" : "", value, cases[c].value);
		assert_int_equal(dicom_get_double(dicom_root(file), cases[c].tag, 1, &value, &err), 0); /* there is no second */
		assert_int_equal(dicom_get_int(dicom_root(file), cases[c].tag, 0, &whole, &err), cases[c].whole);
		assert_true(cases[c].whole == 1 ? (double)whole == value : whole == 7);
	}
}

/* The words of a table in each VR that has them; as many as there is room for, and one more. */
TEST(words_of_each_vr)
{
	static const char *const vrs[] = {"US", "SS", "OW", "OB", "UN"};
	uint16_t words[3] = {7, 7, 7};
	struct dicom_file *file;
	struct bytes b;
	struct err err = {0};
	size_t n = 9;

	for (size_t k = 0; k < sizeof(vrs) / sizeof(vrs[0]); k++) {
		add_meta(&b, EXPLICIT);
		add_header(&b, 0x00283006, vrs[k], 4);
		add16(&b, 0x0102);
		add16(&b, 0xfffe);
		file = open_bytes(&b);
		assert_error(dicom_get_words(dicom_root(file), 0x00283006, words, 1, &n, &err), &err, EMSGSIZE,
			     "(0028,3006) LUTData: 2 words, more than 1");
		assert_true(words[0] == 7 && n == 9);
		assert_int_equal(dicom_get_words(dicom_root(file), 0x00283006, words, 2, &n, &err), 1);
		if (n != 2 || words[0] != 0x0102 || words[1] != 0xfffe)
			fail_msg("%s: %zu words %x %x", vrs[k], n, words[0], words[1]);
		assert_int_equal(dicom_get_words(dicom_root(file), 0x00283002, words, 2, &n, &err), 0);
		words[0] = 7;
		n = 9;
	}
	add_meta(&b, EXPLICIT);
	add_header(&b, 0x00283006, "OW", 0);
	file = open_bytes(&b);
	assert_int_equal(dicom_get_words(dicom_root(file), 0x00283006, words, 2, &n, &err), 0);
	add_meta(&b, EXPLICIT);
	add_text(&b, 0x00283006, "LO", "1234");
	file = open_bytes(&b);
	assert_error(dicom_get_words(dicom_root(file), 0x00283006, words, 2, &n, &err), &err, EBADMSG, "LO");
}

/* An attribute of one value that has two: neither is read. An empty second value is none. */
TEST(test_second_value_refused)
{
	static const double two[] = {10, 20};
	struct dicom_file *file;
	struct bytes b;
	struct err err = {0};
	double d = 7;
	long i = 7;

	add_meta(&b, EXPLICIT);
	add_text(&b, SID, "DS", "655\\700 ");
	add_header(&b, FD_ANGLE, "FD", 16);
	add(&b, two, 16);
	add_text(&b, 0x00200013, "IS", "3\\ ");
	file = open_bytes(&b);
	assert_int_equal(dicom_get_double(dicom_root(file), SID, 0, &d, &err), -EBADMSG);
	assert_string_equal(err.msg,
			    "(0018,1110) DistanceSourceToDetector: more than one value (655\\700), but the attribute has one");
	assert_int_equal(dicom_get_int(dicom_root(file), SID, 1, &i, &err), -EBADMSG);
	assert_error(dicom_get_double(dicom_root(file), FD_ANGLE, 0, &d, &err), &err, EBADMSG, "more than one value");
	assert_true(d == 7 && i == 7);
	assert_int_equal(dicom_get_int(dicom_root(file), 0x00200013, 0, &i, &err), 1);
	assert_int_equal(i, 3);
}

/* Text is returned as stored: without padding, with odd lengths and unusual characters. A UN value is read with the dictionary's
 * VR. */
TEST(test_stored_text)
{
	struct bytes b;
	struct err err = {0};
	char text[64];
	long i;

	add_meta(&b, EXPLICIT);
	add_text(&b, IMAGE_TYPE, "CS", " A\\B ");
	add_header(&b, DICOM_TAG(0x0008, 0x0018), "UI", 6);
	add(&b, "1.2.3\0", 6);
	add_header(&b, DICOM_TAG(0x0008, 0x0070), "LO", 6);
	add(&b, "a\0b\0c ", 6);
	add_text(&b, KVP, "UN", "28 ");
	add_text(&b, COMMENT, "LT", "  two \\ blanks ");
	add_text(&b, TEXT_VALUE, "UT", "one \\ two");
	struct dicom_file *file = open_bytes(&b);
	struct dicom_item *root = dicom_root(file);
	assert_int_equal(dicom_get_text(root, IMAGE_TYPE, text, sizeof(text), &err), 1);
	assert_string_equal(text, "A\\B");
	assert_int_equal(dicom_get_text(root, DICOM_TAG(0x0008, 0x0018), text, sizeof(text), &err), 1);
	assert_string_equal(text, "1.2.3");
	assert_int_equal(dicom_get_text(root, DICOM_TAG(0x0008, 0x0070), text, sizeof(text), &err), -EBADMSG);
	assert_int_equal(dicom_get_text(root, COMMENT, text, sizeof(text), &err), 1);
	assert_string_equal(text, "  two \\ blanks");
	assert_int_equal(dicom_get_int(root, KVP, 0, &i, &err), 1);
	assert_int_equal(i, 28);
	/* a backslash separates the values of most VRs, but is an ordinary character of free text */
	assert_int_equal(dicom_get_text_at(root, TEXT_VALUE, 0, text, sizeof(text), &err), 1);
	assert_string_equal(text, "one \\ two");
	assert_int_equal(dicom_get_text_at(root, TEXT_VALUE, 1, text, sizeof(text), &err), 0);
	/* the terminator needs room, too */
	assert_int_equal(dicom_get_text(root, KVP, text, 2, &err), -EMSGSIZE);
	assert_int_equal(dicom_get_text(root, KVP, text, 3, &err), 1);
	/* implicit VR: "US or SS" by PixelRepresentation */
	add_meta(&b, IMPLICIT);
	add_item(&b, DICOM_TAG(0x0028, 0x0103), 2);
	add16(&b, 1);
	add_item(&b, PADDING, 2);
	add16(&b, 0xffff);
	add_item(&b, MODALITY_LUT, 8 + 8 + 6);
	add_item(&b, 0xfffee000, 8 + 6);
	add_item(&b, LUT_DESCRIPTOR, 6);
	for (unsigned v = 0; v < 3; v++)
		add16(&b, 0xfffd);
	file = open_bytes(&b);
	assert_int_equal(dicom_get_int(dicom_root(file), PADDING, 0, &i, &err), 1);
	assert_int_equal(i, -1);
	assert_int_equal(dicom_get_int(dicom_item_at(dicom_root(file), MODALITY_LUT, 0), LUT_DESCRIPTOR, 1, &i, &err), 1);
	assert_int_equal(i, -3);
}

/* Escape sequences are bytes of the 7-bit range: text with them must be converted, too. */
TEST(test_character_sets)
{
	static const struct {
		const char *charset, *name, *utf8;
	} known[] = {
		{"ISO_IR 100", "M\xfcller^Anna", "M\xc3\xbcller^Anna"},
		{"ISO 2022 IR 6\\ISO 2022 IR 100", "M\x1b-A\xfcller^\x1b(BAnna", "M\xc3\xbcller^Anna"},
		{"ISO 2022 IR 6\\ISO 2022 IR 100", "\x1b(BAnna", "Anna"},
	};
	struct err err = {0};
	struct bytes b;
	char text[80];

	for (size_t k = 0; k < sizeof(known) / sizeof(known[0]); k++) {
		add_meta(&b, EXPLICIT);
		add_text(&b, 0x00080005, "CS", known[k].charset);
		add_text(&b, 0x00100010, "PN", known[k].name);
		struct dicom_file *file = open_bytes(&b);
		if (dicom_get_utf8(dicom_root(file), 0x00100010, text, sizeof(text), &err) != 1)
			fail_msg("%s: %s", known[k].charset, err.msg);
		assert_string_equal(text, known[k].utf8);
	}
}

TEST(test_uids)
{
	char a[DICOM_UID_SIZE], b[DICOM_UID_SIZE], hex[65];

	dicom_uid_from_text("exam 1", a);
	dicom_uid_from_text("exam 1", b);
	assert_string_equal(a, b);
	dicom_uid_from_text("exam 2", b);
	assert_string_not_equal(a, b);
	/* SHA-256("abc") = ba7816bf 8f01cfea 414140de 5dae2223...; 8 for the version, 10xx for the variant */
	dicom_uid_from_text("abc", a);
	assert_string_equal(a, "2.25.247859944228867097191300499870369849891");
	for (int k = 0; k < 1000; k++) {
		dicom_uid_random(a);
		assert_true(strlen(a) <= 44 && strncmp(a, "2.25.", 5) == 0 && a[5] != '0');
		assert_string_not_equal(a, b);
		memcpy(b, a, sizeof(b));
	}
	dicom_sha256("abc", 3, hex);
	assert_string_equal(hex, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
	dicom_sha256(NULL, 0, hex);
	assert_string_equal(hex, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
	assert_string_equal(dicom_uid_name(MG_PROCESSING), "DigitalMammographyXRayImageStorageForProcessing");
	assert_string_equal(dicom_uid_name("1.2.3"), "unknown");
	assert_true(dicom_is_storage_class(MG_PROCESSING));
	assert_true(dicom_is_storage_class("1.2.840.10008.5.1.4.1.1.13.1.3"));
	assert_true(dicom_is_storage_class("1.3.12.2.1107.5.9.1"));
	assert_true(dicom_is_storage_class("1.2.840.113619.4.30"));
	assert_false(dicom_is_storage_class("1.2.840.10008.1.1"));	     /* Verification */
	assert_false(dicom_is_storage_class("1.2.840.10008.1.20.1"));	     /* Storage Commitment */
	assert_false(dicom_is_storage_class("1.2.840.10008.5.1.4.1.2.1.1")); /* Patient Root FIND */
	assert_false(dicom_is_storage_class("1.2.840.10008.1.2.1"));
	assert_false(dicom_is_storage_class("1.2..3"));
	assert_true(dicom_is_storage_class("1.2.0.3"));
	assert_false(dicom_is_storage_class("1.2.03")); /* no leading zeros, PS3.5 9.1 */
	assert_false(dicom_is_storage_class("../../etc"));
	assert_false(dicom_is_storage_class(""));
	assert_false(dicom_is_storage_class(NULL));
}

TESTS_SETUP(folder_make, folder_remove);
