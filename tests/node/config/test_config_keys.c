/* SPDX-License-Identifier: Apache-2.0 */
/* Every key of every section: its limits are kept on both sides, what is written is read back, and a refused value changes
 * nothing. And the limits of the configuration as a text. */
#include "node/config/config_read.h"
#include "node/config/config_table.h"
#include "node/config/config_text.h"
#include "node/config/config_value.h"
#include "tests/node/config/config_fixture.h"

/* Call the function for each key, with an entry of its section that has its defaults. */
static void each_key(void (*check)(const struct key *key, void *base, size_t size))
{
	static const char *const kinds[] = {"dbt", "pet", "parallel", NULL};

	for (size_t s = 0; s < SECTION_COUNT; s++)
		for (size_t k = 0; kinds[k]; k++) {
			const struct config_section *section = &config_sections[s];
			void *base;

			if (section->of_kinds)
				section = config_section_kind(section, kinds[k]);
			else if (k > 0)
				continue;
			assert_non_null(section);
			base = malloc(section->entry_size);
			for (size_t i = 0; i < section->n_keys; i++) {
				config_value_defaults(section, base);
				assert_ptr_equal(config_key_find(section, section->keys[i].name), &section->keys[i]);
				check(&section->keys[i], base, section->entry_size);
			}
			free(base);
		}
}

/* Store a number; it is what is read back. A refused one changes no byte. */
static bool store(const struct key *key, void *base, size_t size, const struct key_value *v)
{
	char *before = malloc(size), text[600];
	int rc;

	memcpy(before, base, size);
	rc = config_value_store(key, v, base);
	if (rc < 0) {
		assert_memory_equal(before, base, size);
	} else {
		char again[600];

		config_value_format(key, base, text, sizeof(text));
		memcpy(before, base, size);
		assert_int_equal(config_value_store_text(key, text, base), 0);
		assert_memory_equal(before, base, size);
		config_value_format(key, base, again, sizeof(again));
		assert_string_equal(text, again);
	}
	free(before);
	return rc == 0;
}

static void check_integer(const struct key *key, void *base, size_t size)
{
	const struct {
		double value;
		bool allowed;
	} rows[] = {
		{key->lo, true},
		{key->hi, true},
		{key->lo - 1, key->zero && key->lo == 1},
		{key->hi + 1, false},
		{0, key->zero || key->lo <= 0},
		{-1e15, false},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct key_value v = {.kind = VALUE_INTEGER, .integer = (long long)rows[i].value};

		if (fabs(rows[i].value) > 1e18 || rows[i].value != floor(rows[i].value))
			continue;
		if (store(key, base, size, &v) != rows[i].allowed)
			fail_msg("%s: %g", key->name, rows[i].value);
	}
	if (key->type == KEY_INT)
		assert_false(store(key, base, size, &(struct key_value){.kind = VALUE_REAL, .real = key->lo}));
}

static void check_real(const struct key *key, void *base, size_t size)
{
	const struct {
		double value;
		bool allowed;
	} rows[] = {
		{key->lo, true},
		{key->hi, true},
		{nextafter(key->lo, -INFINITY), key->zero && key->lo == 0x1p-1074},
		{nextafter(key->hi, INFINITY), false},
		{0, key->zero || (key->lo <= 0 && key->hi >= 0)},
		{NAN, false},
		{INFINITY, false},
		{-INFINITY, false},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		if (store(key, base, size, &(struct key_value){.kind = VALUE_REAL, .real = rows[i].value}) != rows[i].allowed)
			fail_msg("%s: %.17g", key->name, rows[i].value);
	for (int i = 0; i < 20; i++) {
		double part = rand() / (double)RAND_MAX, value = key->lo * (1 - part) + key->hi * part;

		if (!store(key, base, size, &(struct key_value){.kind = VALUE_REAL, .real = value}))
			fail_msg("%s: %.17g", key->name, value);
	}
}

static bool store_words(const struct key *key, void *base, size_t size, const char *text)
{
	return store(key, base, size, &(struct key_value){.kind = VALUE_TEXT, .text = text});
}

/* The longest text that fits, and one letter more. */
static void check_text(const struct key *key, void *base, size_t size)
{
	size_t most = key->type == KEY_TEXT && key->hi < (double)key->size - 1 ? (size_t)key->hi : key->size - 1;
	char *text = malloc(most + 3);
	bool letters = key->type != KEY_ADDRESS && key->type != KEY_DEVICE && key->type != KEY_WORD;

	memset(text, 'a', most + 2);
	text[0] = key->type == KEY_PATH ? '/' : 'a';
	text[most] = '\0';
	if (store_words(key, base, size, text) != letters)
		fail_msg("%s: a text of %zu bytes", key->name, most);
	text[most] = 'a';
	text[most + 1] = '\0';
	if (store_words(key, base, size, text))
		fail_msg("%s: a text of %zu bytes", key->name, most + 1);
	if (store_words(key, base, size, "") != (key->fallback && !key->fallback[0]))
		fail_msg("%s: an empty text", key->name);
	if (store_words(key, base, size, key->type == KEY_PATH ? "/a\x7f" : "a\nb"))
		fail_msg("%s: a control character", key->name);
	if (store(key, base, size, &(struct key_value){.kind = VALUE_INTEGER, .integer = 1}))
		fail_msg("%s: a number", key->name);
	free(text);
}

static void check_choices(const struct key *key, void *base, size_t size)
{
	for (const struct key_choice *c = key->choices; c->word; c++)
		if (!store_words(key, base, size, c->word))
			fail_msg("%s: %s", key->name, c->word);
	if (store_words(key, base, size, "no-such-word"))
		fail_msg("%s: another word", key->name);
	if (store(key, base, size, &(struct key_value){.kind = VALUE_REAL, .real = 1}))
		fail_msg("%s: a number", key->name);
}

static void check_key(const struct key *key, void *base, size_t size)
{
	switch (key->type) {
	case KEY_INT:
	case KEY_BYTES:
		check_integer(key, base, size);
		break;
	case KEY_REAL:
		check_real(key, base, size);
		break;
	case KEY_BOOL:
		for (int i = 0; i < 2; i++)
			assert_true(store(key, base, size, &(struct key_value){.kind = VALUE_BOOL, .integer = i}));
		assert_int_equal(config_value_store_text(key, "yes", base), -1);
		assert_int_equal(config_value_store_text(key, "", base), -1);
		assert_false(store(key, base, size, &(struct key_value){.kind = VALUE_INTEGER, .integer = 1}));
		break;
	case KEY_CHOICE:
		check_choices(key, base, size);
		break;
	case KEY_WORD:
		check_choices(key, base, size);
		check_text(key, base, size);
		break;
	case KEY_NAMES:
	case KEY_TILE:
		break;
	default:
		check_text(key, base, size);
	}
}

TEST(every_key)
{
	srand(test_seed());
	each_key(check_key);
}

/* The default is allowed, and is written as the text that gives it. */
static void check_default(const struct key *key, void *base, size_t size)
{
	struct key_value v = {.kind = VALUE_OTHER, .text = "a list"};
	char text[600];

	if (key->type == KEY_NAMES)
		return;
	if (key->fallback && key->fallback[0]) {
		char *before = malloc(size);

		memcpy(before, base, size);
		assert_int_equal(config_value_store_text(key, key->fallback, base), 0);
		assert_memory_equal(before, base, size);
		config_value_format(key, base, text, sizeof(text));
		assert_int_equal(config_value_store_text(key, text, base), 0);
		assert_memory_equal(before, base, size);
		free(before);
	}
	assert_int_equal(config_value_store(key, &v, base), -1);
	config_value_allowed(key, text, sizeof(text));
	assert_true(strlen(text) > 0);
}

TEST(every_default)
{
	each_key(check_default);
}

#define LETTERS_16 "ABCDEFGHIJKLMNOP"

/* Some limits by their values: every_key takes them from the table that it tests. */
TEST(limits_by_value)
{
	static const struct {
		int section;
		const char *kind, *key; /* kind: NULL: section without kinds */
		const char *below, *least, *most, *above;
	} rows[] = {
		{SECTION_NODE, NULL, "aet", "", "A", LETTERS_16, LETTERS_16 "Q"},
		{SECTION_NODE, NULL, "quiet_time", "0.09", "0.1", "86400", "86401"},
		{SECTION_DESTINATIONS, NULL, "aet", "", "A", LETTERS_16, LETTERS_16 "Q"},
		{SECTION_PROTOCOLS, "dbt", "iterations", "0", "1", "1000", "1001"},
		{SECTION_PROTOCOLS, "dbt", "subsets", "-1", "0", "1000", "1001"},
		{SECTION_PROTOCOLS, "dbt", "relaxation", "0.0009", "0.001", "1.999", "2"},
		{SECTION_PROTOCOLS, "dbt", "filter_cut", "0.009", "0.01", "1", "1.01"},
		{SECTION_PROTOCOLS, "dbt", "voxel", "0.019", "0.02", "5", "5.1"},
		{SECTION_PROTOCOLS, "dbt", "slice_spacing", "0.09", "0.1", "20", "20.1"},
		{SECTION_PROTOCOLS, "dbt", "stored_step", "9e-10", "1e-9", "1", "1.1"},
		{SECTION_PROTOCOLS, "dbt", "slab_thickness", "0.09", "0.1", "300", "301"},
		{SECTION_PROTOCOLS, "dbt", "slab_step", "0.09", "0.1", "300", "301"},
		{SECTION_PROTOCOLS, "pet", "iterations", "0", "1", "1000", "1001"},
		{SECTION_PROTOCOLS, "pet", "subsets", "0", "1", "1000", "1001"},
		{SECTION_PROTOCOLS, "pet", "matrix", "7", "8", "1024", "1025"},
		{SECTION_PROTOCOLS, "pet", "voxel", "0.09", "0.1", "50", "51"},
		{SECTION_PROTOCOLS, "pet", "slice_spacing", "0.09", "0.1", "50", "51"},
		{SECTION_PROTOCOLS, "pet", "fov_radius", "0.9", "1", "1000", "1001"},
		{SECTION_PROTOCOLS, "pet", "psf", "0.09", "0.1", "50", "51"},
		{SECTION_PROTOCOLS, "pet", "postfilter", "0.09", "0.1", "50", "51"},
		{SECTION_PROTOCOLS, "pet", "filter_cut", "0.009", "0.01", "1", "1.01"},
		{SECTION_PROTOCOLS, "pet", "scatter_iterations", "0", "1", "10", "11"},
		{SECTION_PROTOCOLS, "parallel", "iterations", "0", "1", "100000", "100001"},
		{SECTION_PROTOCOLS, "parallel", "subsets", "0", "1", "16384", "16385"},
		{SECTION_PROTOCOLS, "parallel", "relaxation", "0.0009", "0.001", "1.999", "2"},
		{SECTION_PROTOCOLS, "parallel", "filter_cut", "0.009", "0.01", "1", "1.01"},
		{SECTION_PROTOCOLS, "parallel", "matrix", "1", "2", "16384", "16385"},
		{SECTION_PROTOCOLS, "parallel", "pixel", "0.0009", "0.001", "1000", "1001"},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const struct config_section *section = &config_sections[rows[i].section];
		const char *const texts[] = {rows[i].below, rows[i].least, rows[i].most, rows[i].above};
		const struct key *key;
		void *base;

		section = rows[i].kind ? config_section_kind(section, rows[i].kind) : section;
		key = config_key_find(section, rows[i].key);
		assert_non_null(key);
		base = malloc(section->entry_size);
		config_value_defaults(section, base);
		for (int t = 0; t < 4; t++)
			if (config_value_store_text(key, texts[t], base) != (t == 0 || t == 3 ? -1 : 0))
				fail_msg("%s %s: \"%s\"", section->one, key->name, texts[t]);
		free(base);
	}
}

TEST(tiles_and_bytes)
{
	static const struct {
		enum key_type type;
		const char *text;
		long long value; /* -1: refused */
	} rows[] = {
		{KEY_TILE, "1x65535", 65535},
		{KEY_TILE, "65535x1", 1},
		{KEY_TILE, "0x1", -1},
		{KEY_TILE, "1x0", -1},
		{KEY_TILE, "65536x1", -1},
		{KEY_TILE, "1x65536", -1},
		{KEY_TILE, "1x1x", -1},
		{KEY_TILE, "x1", -1},
		{KEY_TILE, "1x-1", -1},
		{KEY_TILE, "1x 1", -1},
		{KEY_TILE, "", -1},
		{KEY_TILE, "auto", 0},
		{KEY_BYTES, "0", 0},
		{KEY_BYTES, "1B", 1},
		{KEY_BYTES, "1 kB", 1000},
		{KEY_BYTES, "1 KiB", 1024},
		{KEY_BYTES, "1.5 GB", 1500000000},
		{KEY_BYTES, "2MiB", 2097152},
		{KEY_BYTES, "1 TB", 1000000000000},
		{KEY_BYTES, "1 TiB", 1099511627776},
		{KEY_BYTES, "9000 TB", 9000000000000000},
		{KEY_BYTES, "9001 TB", -1},
		{KEY_BYTES, "0.5", -1},
		{KEY_BYTES, "-1", -1},
		{KEY_BYTES, "0x10", -1},
		{KEY_BYTES, "1 kb", -1},
		{KEY_BYTES, "1 kB ", -1},
		{KEY_BYTES, "nan", -1},
		{KEY_BYTES, "", -1},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const struct key key = {.name = "k", .type = rows[i].type, .size = 8, .lo = 0, .hi = 1e16};
		long long stored = -7;
		int tile[2];

		if (config_value_store_text(&key, rows[i].text, &stored) != (rows[i].value < 0 ? -1 : 0))
			fail_msg("%s", rows[i].text);
		memcpy(tile, &stored, sizeof(tile));
		if (rows[i].value < 0)
			assert_int_equal(stored, -7);
		else
			assert_int_equal(rows[i].type == KEY_TILE ? tile[1] : stored, rows[i].value);
	}
}

/* ---- limits of a text ---- */

static int parse(const char *text, struct err *err)
{
	struct config *c = NULL;
	int rc = config_parse(text, "t.conf", NULL, NULL, &c, err);

	config_free(c);
	return rc;
}

static void expect(int rc, const struct err *err, bool allowed, const char *names)
{
	if (allowed && rc < 0)
		fail_msg("%s", err->msg);
	if (!allowed)
		assert_error(rc, err, EINVAL, names);
}

static size_t append(char *text, size_t n, const char *more)
{
	size_t length = strlen(more);

	memcpy(text + n, more, length + 1);
	return n + length;
}

TEST(numbers_of_names_and_entries)
{
	char *text = malloc(200 * CONFIG_ENTRIES_MAX), name[200];

	for (int more = 0; more < 2; more++) {
		struct err err = {0};
		size_t n = append(text, 0, "protocols = (");

		for (int i = 0; i < CONFIG_NAMES_MAX + 1; i++) {
			snprintf(name, sizeof(name), "%s{ name = \"p%d\"; iterations = %d; }", i ? "," : "", i, i + 1);
			n = append(text, n, name);
		}
		n = append(text, n, ");\nroutes = ( { name = \"r\"; destinations = [ \"pacs\" ]; protocols = [ ");
		for (int i = 0; i < CONFIG_NAMES_MAX + more; i++) {
			snprintf(name, sizeof(name), "%s\"p%d\"", i ? "," : "", i);
			n = append(text, n, name);
		}
		append(text, n, " ]; } );");
		expect(parse(text, &err), &err, !more, "9 names; allowed: 1 to 8");
		n = append(text, 0, "peers = (");
		for (int i = 0; i < CONFIG_ENTRIES_MAX + more; i++) {
			snprintf(name, sizeof(name), "%s{ name = \"p%d\"; aet = \"A\"; host = \"h%d\"; }", i ? "," : "", i, i);
			n = append(text, n, name);
		}
		append(text, n, ");");
		expect(parse(text, &err), &err, !more, "'peers': 257 entries");
	}
	free(text);
}

/* The deepest nesting reaches libconfig, which refuses its type; one level more does not. */
TEST(depth_of_nesting)
{
	for (int depth = CONFIG_NESTING_MAX; depth <= CONFIG_NESTING_MAX + 1; depth++) {
		struct err err = {0};
		char text[100];
		size_t n = append(text, 0, "a=");

		for (int i = 0; i < depth; i++)
			n = append(text, n, "(");
		n = append(text, n, "1");
		for (int i = 0; i < depth; i++)
			n = append(text, n, ")");
		append(text, n, ";");
		assert_error(parse(text, &err), &err, EINVAL,
			     depth == CONFIG_NESTING_MAX ? "section 'a' is not known" : "more than 12 levels");
	}
}

TEST(length_of_a_text)
{
	char *text = malloc(CONFIG_TEXT_MAX + 10);
	struct config_text *t = NULL;
	struct err err = {0};

	memset(text, ' ', CONFIG_TEXT_MAX);
	text[CONFIG_TEXT_MAX - 2] = '\0';
	assert_int_equal(config_text_copy(text, "t.conf", &t, &err), 0);
	t = config_text_free(t);
	text[CONFIG_TEXT_MAX - 2] = ' ';
	text[CONFIG_TEXT_MAX - 1] = '\0';
	assert_error(config_text_copy(text, "t.conf", &t, &err), &err, EFBIG, "t.conf:1");
	free(text);
}

static char folder[64];

static const char *in_folder(const char *name)
{
	return test_path(folder, name);
}

static FILE *create(const char *name)
{
	FILE *f = fopen(in_folder(name), "w");

	assert_non_null(f);
	return f;
}

static int load(const char *name, struct err *err)
{
	struct config_text *t = NULL;
	int rc = config_text_load(in_folder(name), &t, err);

	config_text_free(t);
	return rc;
}

TEST(numbers_of_files)
{
	struct err err = {0};
	char name[16];
	FILE *f;

	test_folder(folder, sizeof(folder));
	for (int i = 0; i <= CONFIG_INCLUDE_MAX + 1; i++) { /* a chain: 0 includes 1 includes 2 ... */
		snprintf(name, sizeof(name), "%d.conf", i);
		f = create(name);
		if (i <= CONFIG_INCLUDE_MAX)
			fprintf(f, "@include \"%d.conf\"\n", i + 1);
		fclose(f);
	}
	assert_int_equal(load("1.conf", &err), 0);
	assert_error(load("0.conf", &err), &err, EINVAL, "8 levels");
	fclose(create("empty.conf"));
	for (int more = 0; more < 2; more++) {
		f = create("many.conf");
		for (int i = 1; i < CONFIG_FILES_MAX + more; i++)
			fprintf(f, "@include \"empty.conf\"\n");
		fclose(f);
		expect(load("many.conf", &err), &err, !more, "more than 64 files");
	}
	fclose(create("large.conf"));
	assert_int_equal(truncate(in_folder("large.conf"), CONFIG_TEXT_MAX + 1), 0);
	assert_error(load("large.conf", &err), &err, EFBIG, "1048577 bytes");
	assert_int_equal(truncate(in_folder("large.conf"), CONFIG_TEXT_MAX), 0);
	assert_error(load("large.conf", &err), &err, EINVAL, "byte 0");
}

/* The longest name of an included file has 511 characters. */
TEST(length_of_an_include)
{
	struct err err = {0};

	test_folder(folder, sizeof(folder));
	for (int n = 511; n <= 512; n++) {
		FILE *f = create("long.conf");

		fprintf(f, "@include \"%0*d\"\n", n, 0);
		fclose(f);
		assert_error(load("long.conf", &err), &err, n == 511 ? ENAMETOOLONG : EINVAL,
			     n == 511 ? "00000" : "1 to 511 characters");
	}
}

TESTS_SETUP(set_spool, NULL);
