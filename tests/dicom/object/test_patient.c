/* SPDX-License-Identifier: Apache-2.0 */
/* Which headers name one patient: what counts as the same value, what contradicts, in any order; no value in a message. */
#include "dicom/object/dicom_tags.h"
#include "dicom/object/patient.h"
#include "tests/dicom/core/fixture.h"
#include "tests/test.h"

static void normal(enum patient_attribute attribute, const char *text, const char *expected)
{
	char found[200];

	patient_normalise(attribute, text, found, sizeof(found));
	assert_string_equal(found, expected);
}

TEST(forms)
{
	normal(PATIENT_ID, "  AB  12 ", "ab 12");
	normal(PATIENT_ID, "007", "007"); /* zeros count */
	normal(PATIENT_ID, " ", "");
	normal(PATIENT_BIRTH_DATE, "1960.11.30", "19601130");
	normal(PATIENT_NAME, "MUSTER^Anna^^", "muster^anna");
	normal(PATIENT_NAME, "Muster ^ Anna^ ^Dr.", "muster^anna^^dr.");
	normal(PATIENT_NAME, "^^^^", "");
	normal(PATIENT_NAME, "Yamada^Tarou=\xe5\xb1\xb1\xe7\x94\xb0^\xe5\xa4\xaa\xe9\x83\x8e", "yamada^tarou");
	normal(PATIENT_NAME, "^=\xe5\xb1\xb1\xe7\x94\xb0\xe3\x80\x80^\xe5\xa4\xaa\xe9\x83\x8e^",
	       "\xe5\xb1\xb1\xe7\x94\xb0^\xe5\xa4\xaa\xe9\x83\x8e");
	normal(PATIENT_NAME, "\xc3\x84RZTIN^\xc3\x98", "\xc3\xa4rztin^\xc3\xb8");
	normal(PATIENT_NAME, "\xd0\x98\xd0\x92\xd0\x90\xd0\x9d", "\xd0\xb8\xd0\xb2\xd0\xb0\xd0\xbd");
	normal(PATIENT_NAME, "\xf0\x90\x8c\xb0\xe2\x82\xac", "\xf0\x90\x8c\xb0\xe2\x82\xac");
}

/* At most size - 1 bytes, whole characters. */
TEST(long_values)
{
	char found[8], text[200];

	patient_normalise(PATIENT_ID, "abc\xc3\xa4\xc3\xb6\xc3\xbc", found, sizeof(found));
	assert_string_equal(found, "abc\xc3\xa4\xc3\xb6");
	memset(text, '^', sizeof(text));
	text[sizeof(text) - 1] = '\0';
	patient_normalise(PATIENT_NAME, text, found, sizeof(found));
	assert_string_equal(found, "");
}

/* ---- headers ---- */

struct person {
	const char *id, *issuer, *birth, *name, *charset;
};

static struct patient_identity identity_of(const struct person *p, const uint8_t *key)
{
	const struct {
		uint32_t tag;
		const char *text;
	} texts[] = {{TAG_SPECIFIC_CHARACTER_SET, p->charset},
		     {TAG_PATIENT_ID, p->id},
		     {TAG_ISSUER_OF_PATIENT_ID, p->issuer},
		     {TAG_PATIENT_BIRTH_DATE, p->birth},
		     {TAG_PATIENT_NAME, p->name}};
	struct patient_identity identity;
	struct dicom_file *file = NULL;
	struct err err = {0};

	assert_int_equal(dicom_new(MG_PROCESSING, "1.2.3", &file, &err), 0);
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
		if (texts[i].text && dicom_put_text(dicom_root(file), texts[i].tag, texts[i].text, &err) < 0)
			fail_msg("%s", err.msg);
	patient_read(dicom_root(file), key, &identity);
	dicom_close(file);
	return identity;
}

#define ID (1u << PATIENT_ID)
#define ISSUER (1u << PATIENT_ISSUER)
#define BIRTH (1u << PATIENT_BIRTH_DATE)
#define NAME (1u << PATIENT_NAME)
#define UNLINKED 0x100u
#define SAME 0x200u
#define PEOPLE_MAX 4

/* What a set of headers says, in every order. */
static void says(const struct person *people, unsigned expected)
{
	static const int orders[][PEOPLE_MAX] = {{0, 1, 2, 3}, {3, 2, 1, 0}, {1, 3, 0, 2}, {2, 0, 3, 1}};

	for (size_t k = 0; k < sizeof(orders) / sizeof(orders[0]); k++) {
		struct patient_set all = {0}, first = {0}, rest = {0};
		struct patient_conflict c = {.header = {-1, -1}}, parts;
		unsigned found = SAME;

		for (int i = 0; i < PEOPLE_MAX; i++) {
			const struct person *p = &people[orders[k][i]];
			struct patient_identity identity;

			if (!p->id)
				continue;
			identity = identity_of(p, NULL);
			patient_set_add(&all, &identity, orders[k][i]);
			patient_set_add(i < 2 ? &first : &rest, &identity, orders[k][i]);
		}
		if (patient_set_conflict(&all, &c)) {
			found = c.attributes ? c.attributes : UNLINKED;
			assert_true(c.header[0] >= 0 && c.header[1] >= 0 && c.header[0] != c.header[1]);
		}
		assert_int_equal(found, expected);
		if (patient_sets_conflict(&first, &rest, &parts))
			found = parts.attributes ? parts.attributes : UNLINKED;
		else
			found = SAME;
		assert_int_equal(found, expected);
	}
}

#define PEOPLE(...) ((const struct person[PEOPLE_MAX]){__VA_ARGS__})

TEST(who_is_the_same)
{
	says(PEOPLE({"1", "H", "19601130", "A^B"}, {"1 ", "h", "1960.11.30", "a^b^"}, {"1", "", "", ""}, {"", "", "", "A^B"}),
	     SAME);
	says(PEOPLE({"", "", "", ""}, {"", "", "", "^^"}), SAME); /* a phantom without any */
	says(PEOPLE({"1", "", "", "M\xfcller", "ISO_IR 100"}, {"1", "", "", "M\xc3\xbcLLER", "ISO_IR 192"}), SAME);
	/* linked through the third one */
	says(PEOPLE({"1", "", "", ""}, {"", "", "", "A"}, {"1", "", "", "A"}), SAME);
	/* cannot be converted: compared as it is */
	says(PEOPLE({"1", "", "", "M\xfcller", "ISO_IR 999"}, {"1", "", "", "M\xfcller", "ISO_IR 999"}), SAME);
}

TEST(who_differs)
{
	says(PEOPLE({"1", "", "", "A"}, {"2", "", "", "A"}), ID);
	says(PEOPLE({"1", "H", "", "A"}, {"1", "J", "", "A"}), ISSUER);
	says(PEOPLE({"1", "", "19601130", "A"}, {"1", "", "19601103", "A"}), BIRTH);
	says(PEOPLE({"1", "", "", "A^B"}, {"1", "", "", "A^C"}), NAME);
	says(PEOPLE({"1", "", "", "A^B"}, {"1", "", "", "A B"}), NAME);
	says(PEOPLE({"1", "", "", "M\xfcller", "ISO_IR 999"}, {"1", "", "", "M\xf6ller", "ISO_IR 999"}), NAME);
	/* the first one is empty: two others are compared all the same */
	says(PEOPLE({"1", "", "", ""}, {"1", "", "", "A"}, {"1", "H", "", "B"}, {"1", "J", "", ""}), NAME | ISSUER);
	says(PEOPLE({"1", "", "", ""}, {"", "", "", "A"}), UNLINKED);
	says(PEOPLE({"", "", "", ""}, {"1", "", "", "A"}), UNLINKED);
	says(PEOPLE({"", "", "19601130", ""}, {"", "", "19601130", "A"}), UNLINKED);
}

/* Another key, another digest of the same value; the same value as another attribute, too. */
TEST(keyed)
{
	static const struct person p = {"1", "1", "19601130", "1", NULL};
	uint8_t key[PATIENT_KEY_SIZE] = {0}, other[PATIENT_KEY_SIZE] = {1};
	struct patient_identity a = identity_of(&p, key), b = identity_of(&p, other);

	for (int i = 0; i < PATIENT_ATTRIBUTES; i++)
		assert_true(a.digest[i] && a.digest[i] != b.digest[i]);
	assert_true(a.digest[PATIENT_ID] != a.digest[PATIENT_ISSUER]);
}

TEST(hmac)
{
	static const uint8_t expected[] = {0xb0, 0x34, 0x4c, 0x61, 0xd8, 0xdb, 0x38, 0x53}; /* RFC 4231, test case 1 */
	uint8_t key[20], mac[32];

	memset(key, 0x0b, sizeof(key));
	dicom_hmac_sha256(key, sizeof(key), "Hi There", 8, mac);
	assert_memory_equal(mac, expected, sizeof(expected));
}

TEST(sentences)
{
	struct patient_conflict c = {.attributes = ID | NAME};
	char text[PATIENT_TEXT_SIZE];

	patient_conflict_text(&c, "between a.dcm and b.dcm", text, sizeof(text));
	assert_string_equal(text,
			    "the headers name different patients: Patient ID (0010,0020), Patient's Name (0010,0010) differ "
			    "between a.dcm and b.dcm");
	c.attributes = BIRTH;
	patient_conflict_text(&c, "between a.dcm and b.dcm", text, sizeof(text));
	assert_string_equal(text,
			    "the headers name different patients: Patient's Birth Date (0010,0030) differs between a.dcm and "
			    "b.dcm");
	c.attributes = 0;
	patient_conflict_text(&c, "in a.dcm and b.dcm", text, sizeof(text));
	assert_string_equal(text, "neither Patient ID (0010,0020) nor Patient's Name (0010,0010) shows that it is one patient in "
				  "a.dcm and b.dcm");
}

TESTS_SETUP(folder_make, folder_remove);
