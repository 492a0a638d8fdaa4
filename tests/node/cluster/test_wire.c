/* SPDX-License-Identifier: Apache-2.0 */
/* Messages between node and pilot: every kind comes back as it was sent, and nothing else is accepted. */
#include "node/cluster/pilot_case.h"
#include "node/cluster/wire.h"
#include "tests/test.h"

static int decode(enum wire_kind kind, const char *text, struct wire_message *ret, struct err *err)
{
	*err = (struct err){0};
	return wire_decode(kind, text, strlen(text), ret, err);
}

TEST(test_head)
{
	uint8_t head[WIRE_HEAD], wrong[WIRE_HEAD] = {0, 0, 0, 1, 0, 99};
	enum wire_kind kind;
	struct err err = {0};
	size_t n;

	for (enum wire_kind k = WIRE_HELLO; k < WIRE_KINDS; k++) {
		wire_put_head(k, wire_limit(k), head);
		assert_int_equal(wire_get_head(head, &kind, &n, &err), 0);
		assert_true(kind == k && n == wire_limit(k));
		wire_put_head(k, wire_limit(k) + 1, head);
		assert_error(wire_get_head(head, &kind, &n, &err), &err, EBADMSG, wire_kind_name(k));
	}
	assert_error(wire_get_head(wrong, &kind, &n, &err), &err, EBADMSG, "unknown kind 99");
}

TEST(test_every_kind)
{
	int64_t offsets[] = {0, 1, 1ll << 40};
	struct wire_message m = {.wire = WIRE_VERSION,
				 .version = "1.2 (abc)",
				 .name = "node7",
				 .instance = "0123456789abcdef0123456789abcdef",
				 .device = "cuda:0 (NVIDIA H200)",
				 .batch = "123_4",
				 .memory = 1ll << 37,
				 .job = 17,
				 .attempt = 4711,
				 .lease = 30000,
				 .shared = true,
				 .index = 3,
				 .offset = 1ll << 33,
				 .fraction = 0.25,
				 .code = EBADMSG,
				 .damaged = 2,
				 .text = "because \"so\"",
				 .offsets = offsets,
				 .n_offsets = 3,
				 .body = json_pack("{s:i}", "a", 1)};
	struct wire_message back;
	char *text, *again;
	size_t n;

	for (enum wire_kind k = WIRE_HELLO; k < WIRE_KINDS; k++) {
		if (k == WIRE_DATA)
			continue;
		m.kind = k;
		assert_int_equal(wire_encode(&m, &text, &n, NULL), 0);
		assert_int_equal(wire_decode(k, text, n, &back, NULL), 0);
		back.kind = k;
		assert_int_equal(wire_encode(&back, &again, &n, NULL), 0);
		assert_string_equal(text, again);
		/* Not one byte less, and no field more. */
		assert_int_equal(wire_decode(k, text, n - 1, &back, NULL), -EBADMSG);
		text[n - 1] = ',';
		free(again);
		assert_true(asprintf(&again, n > 2 ? "%s\"more\":1}" : "{\"more\":1}", text) > 0);
		wire_clear(&back);
		assert_int_equal(wire_decode(k, again, strlen(again), &back, NULL), -EBADMSG);
		free(again);
		free(text);
	}
	json_decref(m.body);
}

TEST(test_refused)
{
	static const struct {
		enum wire_kind kind;
		const char *text, *why;
	} wrong[] = {
		{WIRE_WELCOME, "{\"lease\":-1}", "'lease'"},
		{WIRE_WELCOME, "{\"lease\":1.5}", "'lease'"},
		{WIRE_WELCOME, "{\"lease\":86400001}", "'lease'"},
		{WIRE_WELCOME, "{\"lease\":1,\"lease\":1}", "no JSON object"},
		{WIRE_WELCOME, "[]", "no JSON object"},
		{WIRE_WELCOME, "[[[[[[[[[[[[[[[[[[[[", "no JSON object"},
		{WIRE_END, "{\"text\":\"a\\u0000b\"}", "no JSON object"},
		{WIRE_END, "{\"text\":7}", "'text'"},
		{WIRE_END, "{}", "'text'"},
		{WIRE_FILE, "{\"index\":65536,\"offset\":0}", "'index'"},
		{WIRE_FILE, "{\"index\":0,\"offset\":9007199254740993}", "'offset'"},
		{WIRE_REFUSED, "{\"code\":65536,\"last\":0,\"text\":\"\"}", "'code'"},
		{WIRE_OUTCOME, "{\"job\":1,\"attempt\":2,\"code\":0,\"damaged\":65537,\"text\":\"\",\"body\":null}", "'damaged'"},
		{WIRE_PROGRESS, "{\"job\":1,\"attempt\":2,\"text\":\"\",\"fraction\":-0.1}", "'fraction'"},
		{WIRE_PROGRESS, "{\"job\":1,\"attempt\":2,\"text\":\"\",\"fraction\":\"1\"}", "'fraction'"},
		{WIRE_HAVE, "{\"job\":1,\"attempt\":2,\"offsets\":1}", "'offsets'"},
		{WIRE_HAVE, "{\"job\":1,\"attempt\":2,\"offsets\":[9007199254740993]}", "'offsets'"},
		{WIRE_HAVE, "{\"job\":1,\"attempt\":2,\"offsets\":[-1]}", "'offsets'"},
		{WIRE_PROGRESS, "{\"job\":1,\"attempt\":2,\"text\":\"\",\"fraction\":1.1}", "'fraction'"},
		{WIRE_CASE, "{\"job\":1,\"attempt\":2,\"shared\":1,\"body\":{}}", "'shared'"},
		{WIRE_CASE, "{\"job\":1,\"attempt\":2,\"shared\":true,\"body\":[]}", "'body'"},
		{WIRE_DATA, "{}", "no message"},
		{WIRE_KINDS, "{}", "no message"},
	};
	struct wire_message m;
	struct err err;

	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		assert_int_equal(decode(wrong[i].kind, wrong[i].text, &m, &err), -EBADMSG);
		if (!strstr(err.msg, wrong[i].why))
			fail_msg("%s: %s", wrong[i].text, err.msg);
	}
}

/* The largest values and the longest text are read, and a text of one byte more is not. */
TEST(test_largest)
{
	static const struct {
		enum wire_kind kind;
		const char *text;
	} rows[] = {
		{WIRE_WELCOME, "{\"lease\":86400000}"},
		{WIRE_FILE, "{\"index\":65535,\"offset\":9007199254740992}"},
		{WIRE_REFUSED, "{\"code\":65535,\"last\":0,\"text\":\"\"}"},
		{WIRE_OUTCOME, "{\"job\":1,\"attempt\":2,\"code\":0,\"damaged\":65536,\"text\":\"\",\"body\":null}"},
		{WIRE_PROGRESS, "{\"job\":1,\"attempt\":2,\"text\":\"\",\"fraction\":1}"},
		{WIRE_HAVE, "{\"job\":1,\"attempt\":2,\"offsets\":[9007199254740992]}"},
	};
	struct wire_message m;
	char text[2 * sizeof(m.text)];
	struct err err;

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		if (decode(rows[i].kind, rows[i].text, &m, &err) < 0)
			fail_msg("%s: %s", rows[i].text, err.msg);
		wire_clear(&m);
	}
	for (int more = 0; more < 2; more++) {
		snprintf(text, sizeof(text), "{\"text\":\"%0*d\"}", (int)sizeof(m.text) - 1 + more, 0);
		if (more)
			assert_error(decode(WIRE_END, text, &m, &err), &err, EBADMSG, "'text'");
		else
			assert_int_equal(decode(WIRE_END, text, &m, &err), 0);
	}
}

/* As many files as a case may have, and one more; objects in objects as deep as is read, and one more. */
TEST(test_numbers_and_depth)
{
	char *text = malloc(2 * (WIRE_FILES_MAX + 100));
	struct wire_message m;
	struct err err;

	for (int more = 0; more < 2; more++) {
		size_t n = (size_t)sprintf(text, "{\"job\":1,\"attempt\":2,\"offsets\":[0");

		for (int i = 1; i < WIRE_FILES_MAX + more; i++)
			n += (size_t)sprintf(text + n, ",0");
		sprintf(text + n, "]}");
		assert_int_equal(decode(WIRE_HAVE, text, &m, &err), more ? -EBADMSG : 0);
		if (!more) {
			assert_int_equal(m.n_offsets, WIRE_FILES_MAX);
			wire_clear(&m);
		}
		n = (size_t)sprintf(text, "{\"job\":1,\"attempt\":2,\"shared\":true,\"body\":");
		for (int i = 1; i < WIRE_DEPTH + more; i++)
			n += (size_t)sprintf(text + n, "{\"a\":");
		n += (size_t)sprintf(text + n, "1");
		for (int i = 0; i < WIRE_DEPTH + more; i++)
			n += (size_t)sprintf(text + n, "}");
		assert_int_equal(decode(WIRE_CASE, text, &m, &err), more ? -EBADMSG : 0);
		if (!more)
			wire_clear(&m);
	}
	free(text);
	m = (struct wire_message){.kind = WIRE_CASE, .body = json_object()};
	text = malloc(WIRE_CASE_MAX + 1);
	memset(text, 'x', WIRE_CASE_MAX);
	text[WIRE_CASE_MAX] = '\0';
	json_object_set_new(m.body, "a", json_string(text));
	free(text);
	assert_error(wire_encode(&m, &text, &(size_t){0}, &err), &err, EMSGSIZE, "CASE");
	json_decref(m.body);
}

/* A pilot of another version is refused with that reason, so its HELLO must be readable, whatever else is in it. */
TEST(test_other_version)
{
	struct wire_message m;
	struct err err;

	assert_int_equal(decode(WIRE_HELLO, "{\"wire\":9,\"version\":\"2.0 (def)\",\"new\":[1]}", &m, &err), 0);
	assert_int_equal(m.wire, 9);
	assert_string_equal(m.version, "2.0 (def)");
	wire_clear(&m);
	assert_int_equal(decode(WIRE_HELLO, "{\"wire\":2,\"version\":\"1\"}", &m, &err), -EBADMSG);
}

static void fill_case(struct pilot_case *c)
{
	static struct instance_row rows[2] = {{.file = "instances/1-a.dcm",
					       .sop_class = "1.2",
					       .sop_instance = "1.3",
					       .transfer_syntax = "1.4",
					       .digest = "aa",
					       .bytes = 10},
					      {.file = "instances/2-b.dcm", .digest = "bb", .bytes = 20}};
	static struct pilot_flatfield flat[1] = {{.profile = "p", .file = "flatfields/0/a.dcm", .bytes = 5}};
	static char config[] = "node: { };";

	*c = (struct pilot_case){.order = {.job = 3,
					   .attempt = 4,
					   .protocol = "dbt",
					   .as_is = true,
					   .settings = "[\"voxel=2\"]",
					   .place = {.number = 2, .redo = 7, .related_series = "1.9"},
					   .files = rows,
					   .n_files = 2},
				 .config = config,
				 .flatfields = flat,
				 .n_flatfields = 1};
}

TEST(test_case)
{
	struct pilot_case c, back;
	uint64_t bytes;
	json_t *body;

	fill_case(&c);
	body = pilot_case_encode(&c);
	assert_int_equal(pilot_case_decode(body, 3, 4, &back, NULL), 0);
	assert_true(back.order.as_is && !back.order.same_patient && back.order.attempt == 4);
	assert_string_equal(back.order.files[0].sop_instance, "1.3");
	assert_string_equal(back.config, "node: { };");
	assert_string_equal(back.order.settings, "[\"voxel=2\"]");
	assert_true(back.order.place.number == 2 && back.order.place.redo == 7);
	assert_string_equal(back.order.place.related_series, "1.9");
	assert_int_equal(pilot_case_files(&back), 3);
	assert_string_equal(pilot_case_file(&back, 1, &bytes), "instances/2-b.dcm");
	assert_int_equal(bytes, 20);
	assert_string_equal(pilot_case_file(&back, 2, &bytes), "flatfields/0/a.dcm");
	pilot_case_clear(&back);
	assert_int_equal(pilot_case_decode(body, 0, 4, &back, NULL), -EBADMSG);
	json_object_set_new(body, "result", json_integer(RESULTS_MAX + 1));
	assert_int_equal(pilot_case_decode(body, 3, 4, &back, NULL), -EBADMSG);
	json_object_set_new(body, "result", json_integer(1));
	json_object_del(body, "header");
	assert_int_equal(pilot_case_decode(body, 3, 4, &back, NULL), -EBADMSG);
	json_decref(body);
}

/* No name leads out of the folder. */
TEST(test_names)
{
	static const char *const wrong[] = {"flatfields/../x",	"flatfields/0/.x", "flatfields/0/a/b",
					    "/etc/passwd",	"flatfields/0/",   "x",
					    "flatfields/0/a b", "flatfields/x/a",  "instances/a"};
	struct pilot_case c, back;

	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		json_t *body;

		fill_case(&c);
		snprintf(c.flatfields[0].file, sizeof(c.flatfields[0].file), "%s", wrong[i]);
		body = pilot_case_encode(&c);
		assert_int_equal(pilot_case_decode(body, 3, 4, &back, NULL), -EBADMSG);
		json_decref(body);
	}
}

static void add_object(json_t *detail, const char *file, json_int_t bytes)
{
	json_array_append_new(json_object_get(detail, "objects"),
			      json_pack("{s:s,s:I,s:s}", "file", file, "bytes", bytes, "digest", "aa"));
}

TEST(test_objects)
{
	static const char *const wrong[] = {"outbox/33/b.dcm", "outbox/3/../4/b.dcm", "outbox/3/",	"outbox/3/.b",
					    "outbox/3/b/c",    "outbox/3/b.part",     "outbox/3/a.dcm", "instances/b.dcm"};
	json_t *detail = json_pack("{s:[]}", "objects"), *list = json_object_get(detail, "objects");
	struct err err = {0};
	uint64_t bytes;
	char file[40];

	assert_int_equal(pilot_case_objects(detail, 3, &bytes, &err), -EBADMSG);
	add_object(detail, "outbox/3/a.dcm", 4);
	assert_int_equal(pilot_case_objects(detail, 3, &bytes, &err), 1);
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		add_object(detail, wrong[i], 4);
		assert_int_equal(pilot_case_objects(detail, 3, &bytes, &err), -EBADMSG);
		json_array_remove(list, 1);
	}
	for (int n = -1; n <= 0; n++) {
		add_object(detail, "outbox/3/b.dcm", n);
		assert_int_equal(pilot_case_objects(detail, 3, &bytes, &err), -EBADMSG);
		json_array_remove(list, 1);
	}
	/* The largest result, and one object more. */
	for (int i = 1; i < JOB_OBJECTS_MAX; i++) {
		snprintf(file, sizeof(file), "outbox/3/%d", i);
		add_object(detail, file, (1ll << 53) - 1);
	}
	assert_int_equal(pilot_case_objects(detail, 3, &bytes, &err), JOB_OBJECTS_MAX);
	assert_true(bytes == UINT64_MAX);
	add_object(detail, "outbox/3/b.dcm", 4);
	assert_error(pilot_case_objects(detail, 3, &bytes, &err), &err, EBADMSG, "a result of 16385 objects");
	json_decref(detail);
}
