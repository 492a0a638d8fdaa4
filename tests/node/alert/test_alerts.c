/* SPDX-License-Identifier: Apache-2.0 */
/* What is told to the webhook and when, as a table of what exists in each second; the file that survives a restart; the message.
 */
#include "node/alert/alert_json.h"
#include "node/alert/alert_seen.h"
#include "tests/test.h"

#define WALL 1.7e9

static const struct alert_limits limits = {.delay = 2, .settle = 4, .interval = 3};
static int ids;

static void next_id(char ret[ALERT_ID_SIZE])
{
	snprintf(ret, ALERT_ID_SIZE, "%d", ++ids);
}

/* Troubles are letters; capitals are critical. */
static size_t seen_of(const char *letters, struct alert_seen *ret)
{
	size_t n = strlen(letters);

	for (size_t i = 0; i < n; i++) {
		ret[i] = (struct alert_seen){
			.id = "trouble", .text = "It is wrong.", .remedy = "Mend it.", .critical = letters[i] < 'a'};
		snprintf(ret[i].key, sizeof(ret[i].key), "trouble:%c", letters[i]);
	}
	return n;
}

/* The message as "+a-b": what begins and ends in it. */
static void message_of(const struct alerts *a, char *ret)
{
	for (size_t i = 0; i < a->n; i++) {
		char letter = a->items[i].key[strlen(a->items[i].key) - 1];

		if (a->items[i].in_begin)
			ret += sprintf(ret, "+%c", letter);
		if (a->items[i].in_end)
			ret += sprintf(ret, "-%c", letter);
	}
	*ret = '\0';
}

/* A message that is due is taken at once, unless the receiver is down (!) in this second. */
TEST(test_table)
{
	static const struct {
		const char *what, *each_second; /* separated by commas; "!": the receiver does not take messages */
		const char *told;		/* messages, as "SECOND:+a-b" */
	} rows[] = {
		{"nothing", ",,,,,,,,", ""},
		{"one begins and ends", "a,a,a,a,a,,,,,,,", "2:+a 9:-a"},
		{"shorter than the delay", "a,a,,,a,a,,,,,,,", ""},
		{"it goes and comes back within the time to settle", "a,a,a,,,,a,,,,a,a,,,,,,", "2:+a 16:-a"},
		{"after that time it is another one", "a,a,a,,,,,,,a,a,a,a", "2:+a 7:-a 11:+a"},
		{"two at once are one message", "ab,ab,ab,ab,ab,a,a,a,a,a,a", "2:+a+b 9:-b"},
		{"what begins within the interval is joined", "a,a,ab,abc,abcd,abcd,abcd,abcd,abcd,abcd", "2:+a 5:+b+c 8:+d"},
		{"a listed twice", "aa,aa,aa,aa,aa,aa", "2:+a"},
		{"the receiver is down: tried after 5 and 10 s", "a,a,!a,!a,!a,!a,!a,!a,!a,a,a,a,a,a,a,a,a,a,a", "17:+a"},
		{"meanwhile one ends and one begins", "a,a,!a,!ab,!b,!b,!b,!b,!b,b,b,b,b,b,b,b,b,b,b,b,b,b", "17:+a 20:-a+b"},
		{"it ends and comes back while the receiver is down: still one",
		 "a,a,!a,!,!,!,!,!,!,!,!a,!a,!a,!a,a,a,a,a,a,a,a,a,a", "17:+a"},
		{"begin and end in one message", "a,!a,!a,ab,ab,b,b,b,b,b,b,b,b,b,b,b,,,,,,,", "7:+a 10:-a+b 20:-b"},
		{"its end is being told when it comes back", "a,a,a,,,,,!,!,!a,!a,!a,a,a,a,a,a", "2:+a 12:-a 15:+a"},
	};

	for (size_t r = 0; r < sizeof(rows) / sizeof(rows[0]); r++) {
		const char *at = rows[r].each_second;
		struct alerts a GOES(alerts_clear) = {0};
		char told[200] = "";

		for (int second = 0; at; second++) {
			const char *end = strchr(at, ',');
			bool down = *at == '!';
			char letters[20], message[40];
			struct alert_seen seen[20];

			snprintf(letters, sizeof(letters), "%.*s", end ? (int)(end - at) - down : 10, at + down);
			assert_true(alerts_step(&a, seen, seen_of(letters, seen), &limits, WALL + second, 100 + second, next_id,
						NULL) >= 0);
			if (alerts_is_due(&a, 100 + second) && down) {
				alerts_failed(&a, 100 + second);
			} else if (alerts_is_due(&a, 100 + second)) {
				message_of(&a, message);
				snprintf(told + strlen(told), sizeof(told) - strlen(told), "%s%d:%s", told[0] ? " " : "", second,
					 message);
				alerts_told(&a, &limits, 100 + second);
			}
			at = end ? end + 1 : NULL;
		}
		if (strcmp(told, rows[r].told) != 0)
			fail_msg("%s: told '%s', wanted '%s'", rows[r].what, told, rows[r].told);
	}
}

static int step(struct alerts *a, const char *letters, double clock)
{
	struct alert_seen seen[20];

	return alerts_step(a, seen, seen_of(letters, seen), &limits, WALL + clock, clock, next_id, NULL);
}

/* After kill -9 the message that was being sent is sent again, the same to the byte; nothing is told twice. */
TEST(test_restart)
{
	char folder[64], *before, *after;
	struct config config = {.alerts = {.most = 20}};
	struct alerts a = {0}, b;

	test_folder(folder, sizeof(folder));
	assert_int_equal(alert_file_read(folder, 0, &b, NULL), 0);
	assert_int_equal(b.n, 0);
	assert_int_equal(step(&a, "aB", 10), 0);
	assert_int_equal(step(&a, "aB", 11), 0);
	assert_int_equal(step(&a, "aB", 12), 1);
	assert_int_equal(alert_file_write(folder, &a, NULL), 0);
	assert_int_equal(alert_file_read(folder, 500, &b, NULL), 0);
	assert_true(alerts_is_due(&b, 500));
	before = alert_message_text(&a, &config);
	after = alert_message_text(&b, &config);
	assert_string_equal(before, after);
	free(before);
	free(after);

	alerts_told(&a, &limits, 13);
	assert_int_equal(alert_file_write(folder, &a, NULL), 0);
	alerts_clear(&b);
	assert_int_equal(alert_file_read(folder, 500, &b, NULL), 0);
	assert_int_equal(step(&b, "aB", 500), 0);
	assert_int_equal(step(&b, "aB", 550), 0);
	assert_false(alerts_is_due(&b, 550));
	assert_int_equal(step(&b, "a", 560), 0);
	assert_int_equal(step(&b, "a", 563), 0);
	assert_int_equal(step(&b, "a", 564), 1);
	assert_true(alerts_is_due(&b, 564));
	assert_true(b.items[0].in_end && b.items[0].ended == WALL + 560);
	alerts_clear(&a);
	alerts_clear(&b);
}

/* A trouble does not end before it began, also if the clock was set back meanwhile. */
TEST(test_clock_set_back)
{
	struct alert_seen seen[20];
	struct alerts a GOES(alerts_clear) = {0};

	for (int second = 10; second <= 12; second++)
		alerts_step(&a, seen, seen_of("a", seen), &limits, WALL + 3600 + second, second, next_id, NULL);
	alerts_told(&a, &limits, 12);
	assert_int_equal(step(&a, "", 13), 0);
	assert_int_equal(step(&a, "", 17), 1);
	assert_true(a.items[0].in_end && a.items[0].ended == a.items[0].began && a.items[0].began == WALL + 3610);
}

/* Whatever is there in place of the file, it is refused at once, and the state is empty. */
TEST(test_damaged)
{
#define BEFORE "{\"version\":1,\"active\":true,\"message\":\"0a\",\"made\":1.7e9,\"items\":[{\"key\":\"held:1\","
#define ITEM BEFORE "\"id\":\"held\",\"alert\":\"0b\",\"began\":1.7e9"
	static const struct {
		const char *text;
		int code;
	} rows[] = {
		{ITEM "}]}", 0},
		{ITEM, -EBADMSG},
		{"", -EBADMSG},
		{"[]", -EBADMSG},
		{"{\"version\":2,\"items\":[]}", -EBADMSG},
		{"{\"version\":1,\"active\":true,\"message\":\"\\u00e4\",\"items\":[]}", -EBADMSG},
		{"{\"version\":1,\"made\":1e300,\"items\":[]}", -EBADMSG},
		{"{\"version\":1,\"items\":[5]}", -EBADMSG},
		{BEFORE "\"id\":\"\\u00e4\",\"alert\":\"0b\",\"began\":1.7e9}]}", -EBADMSG},
		{BEFORE "\"id\":\"held\",\"alert\":\"0b\",\"began\":1e300}]}", -EBADMSG},
		{ITEM ",\"ended\":-1}]}", -EBADMSG},
		{ITEM ",\"in_end\":true}]}", -EBADMSG}, /* it did not end */
	};
	char folder[64], path[80];
	struct alerts a;

	test_folder(folder, sizeof(folder));
	snprintf(path, sizeof(path), "%s/alerts.json", folder);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		FILE *f = fopen(path, "w");

		assert_non_null(f);
		fputs(rows[i].text, f);
		fclose(f);
		if (alert_file_read(folder, 0, &a, NULL) != rows[i].code || a.n != (size_t)(rows[i].code == 0))
			fail_msg("%s: not %d", rows[i].text, rows[i].code);
		assert_int_equal(a.message.active, rows[i].code == 0);
		alerts_clear(&a);
	}
	assert_int_equal(truncate(path, 65 << 20), 0);
	assert_int_equal(alert_file_read(folder, 0, &a, NULL), -EBADMSG);
	unlink(path);
	assert_int_equal(symlink("/dev/zero", path), 0);
	assert_int_equal(alert_file_read(folder, 0, &a, NULL), -ELOOP);
	unlink(path);
	assert_int_equal(mkfifo(path, 0600), 0); /* nobody writes: opening it must not wait */
	assert_int_equal(alert_file_read(folder, 0, &a, NULL), -EBADMSG);
}

/* A burst is one message: what is critical first, and the number of those that it does not list. */
TEST(test_burst)
{
	struct config config = {.alerts = {.most = 3}, .node = {.aet = "NODE"}};
	struct alerts a GOES(alerts_clear) = {0};
	json_t *root, *list;
	char *text, *mail;

	step(&a, "abcdeF", 0);
	step(&a, "abcdeF", 2);
	text = alert_message_text(&a, &config);
	root = json_loads(text, 0, NULL);
	list = json_object_get(root, "alerts");
	assert_int_equal(json_array_size(list), 3);
	assert_string_equal(json_string_value(json_object_get(json_array_get(list, 0), "severity")), "critical");
	assert_int_equal(json_integer_value(json_object_get(json_object_get(root, "further"), "begun")), 3);
	assert_string_equal(json_string_value(json_object_get(root, "message")), a.message.id);
	assert_non_null(
		strstr(json_string_value(json_object_get(root, "text")), "NODE: 6 problems began, 0 solved\nCritical: It"));
	assert_string_equal(json_string_value(json_object_get(root, "time")), "2023-11-14T22:13:22Z");
	json_decref(root);
	mail = alert_mail_text(text);
	assert_ptr_equal(strstr(mail, "Subject: tomonode NODE: 6 problems began, 0 solved\nMIME-Version: 1.0\n"), mail);
	assert_non_null(strstr(mail, "8bit\n\nCritical: It is wrong.\nMend it.\nSince 2023-11-14T22:13:20Z\n\nIt is wrong.\n"));
	assert_non_null(strstr(mail, "\n\nAnd 3 more that began, 0 that are solved.\n\nMachine "));
	free(mail);
	free(text);
	alerts_told(&a, &limits, 2);
	step(&a, "abcdeF", 50);
	assert_false(alerts_is_due(&a, 50)); /* those that were not listed were told, too */
}

/* No text has the reason of a case or what a peer answered. Without a journal the cases that were wrong stay wrong. */
TEST(test_seen)
{
	struct job_view held = {.id = 7, .state = JOB_HELD, .kind = "dbt", .reason = "DOE^JANE"},
			refused = {.id = 8, .state = JOB_DEAD_LETTER, .kind = "pet", .reason = "DOE^JANE"},
			done = {.id = 9, .state = JOB_DELIVERED};
	struct job_view *list[] = {&held, &refused, &done};
	struct jobs jobs = {.list = list, .n = 3, .open = list, .n_open = 3};
	struct node_problems problems = {.n = 4};
	struct alert_list seen GOES(alert_list_clear) = {0};
	struct alerts before GOES(alerts_clear) = {0};

	snprintf(problems.list[0].id, sizeof(problems.list[0].id), "cases");
	snprintf(problems.list[1].id, sizeof(problems.list[1].id), "alerts");
	snprintf(problems.list[2].id, sizeof(problems.list[2].id), "destination-down");
	snprintf(problems.list[2].subject, sizeof(problems.list[2].subject), "pacs");
	snprintf(problems.list[2].text, sizeof(problems.list[2].text), "it says DOE^JANE");
	problems.list[3] = problems.list[2];
	snprintf(problems.list[3].id, sizeof(problems.list[3].id), "commitment-late");
	assert_int_equal(alert_list_fill(&seen, &problems, &jobs, &before, NULL), 0);
	assert_int_equal(seen.n, 4);
	for (size_t i = 0; i < seen.n; i++) {
		assert_null(strstr(seen.list[i].text ? seen.list[i].text : seen.list[i].own, "JANE"));
		assert_null(strstr(seen.list[i].remedy, "JANE"));
	}
	assert_string_equal(seen.list[0].key, "destination-down:pacs");
	assert_string_equal(seen.list[1].key, "commitment-late:pacs");
	assert_string_equal(seen.list[2].key, "held:7");
	assert_string_equal(seen.list[3].key, "dead-letter:8");
	assert_false(seen.list[2].critical);
	assert_true(seen.list[3].critical);
	assert_string_equal(seen.list[2].own, "Case 7 (dbt) is held.");

	alerts_step(&before, seen.list, seen.n, &limits, WALL, 0, next_id, NULL);
	alerts_step(&before, seen.list, seen.n, &limits, WALL, 2, next_id, NULL);
	problems.n = 0;
	assert_int_equal(alert_list_fill(&seen, &problems, NULL, &before, NULL), 0);
	assert_int_equal(seen.n, 2);
	assert_int_equal(alert_list_fill(&seen, &problems, &(struct jobs){0}, &before, NULL), 0);
	assert_int_equal(seen.n, 0);
}
