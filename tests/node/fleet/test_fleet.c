/* SPDX-License-Identifier: Apache-2.0 */
/* The fleet as pure logic: each case is a table of events in time, and of the actions that must follow each of them. */
#include "node/fleet/fleet.h"
#include "node/fleet/fleet_conf.h"
#include "tests/test.h"

/* Events, each a word and its arguments:
 *	seats 2 a* b	2 cases wait; pilots a (busy) and b (idle) are connected
 *	list Pa Rb Ec	squeue lists a as pending, b as running, c as completing; "Pa:WORD" with a reason
 *	refuses, down	the last submission failed; a list failed
 *	up		a list succeeded
 *	accepts		sbatch --test-only succeeded
 *	deaf a		pilot a did not answer a cancellation
 *	adopt a		the secret of a was found at the start; "adopt a used": it was connected before
 *	silent		from now on sbatch gives no reply
 *	-		nothing
 * A submission makes the next pilot: a with job 1, b with job 2. Expected: "submit", "end a", "cancel 1", "forget a", "test". */
struct step {
	double at;
	const char *event, *expect;
};

struct bench {
	struct fleet f;
	struct fleet_limits limits;
	int made;
	bool silent, failing;
};

static void read_list(struct bench *b, char *words, double now)
{
	struct fleet_row rows[8] = {0};
	size_t n = 0;

	for (char *word = strtok(words, " "); word; word = strtok(NULL, " "), n++) {
		rows[n].state = *word == 'P' ? FLEET_PENDING : *word == 'R' ? FLEET_RUNNING : FLEET_ENDING;
		rows[n].id[0] = word[1];
		rows[n].job = (uint64_t)(word[1] - 'a' + 1);
		rows[n].submitted = 100;
		rows[n].started = rows[n].state == FLEET_RUNNING ? 103 : 0;
		snprintf(rows[n].reason, sizeof(rows[n].reason), "%s", word[2] ? word + 3 : "Priority");
	}
	fleet_listed(&b->f, rows, n, now);
}

static void read_seats(struct bench *b, char *words, double now)
{
	struct fleet_seat seats[8] = {0};
	int waiting = atoi(strtok(words, " "));
	size_t n = 0;

	for (char *word = strtok(NULL, " "); word; word = strtok(NULL, " "), n++) {
		seats[n].id[0] = word[0];
		seats[n].busy = word[1] == '*';
	}
	fleet_connected(&b->f, seats, n, waiting, now);
}

static void event(struct bench *b, const char *text, double now)
{
	char copy[200], *words;

	snprintf(copy, sizeof(copy), "%s", text);
	words = strchr(copy, ' ') ? strchr(copy, ' ') + 1 : copy + strlen(copy);
	if (!strncmp(copy, "list", 4))
		read_list(b, words, now);
	else if (!strncmp(copy, "seats", 5))
		read_seats(b, words, now);
	else if (!strncmp(copy, "deaf", 4))
		fleet_unanswered(&b->f, words);
	else if (!strncmp(copy, "adopt", 5))
		fleet_adopt(&b->f, (char[]){words[0], '\0'}, words[1] != '\0', now);
	else if (!strcmp(copy, "refuses"))
		b->failing = true;
	else if (!strcmp(copy, "accepts"))
		b->failing = false;
	else if (!strcmp(copy, "down") || !strcmp(copy, "up"))
		fleet_replied(&b->f, *copy == 'd' ? FLEET_DOWN : FLEET_UP, "no route");
	else if (!strcmp(copy, "silent"))
		b->silent = true;
	else
		assert_string_equal(copy, "-");
}

static void submit(struct bench *b, double now)
{
	char id[2] = {(char)('a' + b->made), '\0'};

	if (b->failing) {
		fleet_failed(&b->f, FLEET_REFUSES, "no such partition", now);
		return;
	}
	b->made++;
	fleet_submitted(&b->f, id, b->silent ? 0 : (uint64_t)b->made, now);
}

static void test_submission(struct bench *b, double now)
{
	if (b->failing)
		fleet_failed(&b->f, FLEET_REFUSES, "no such partition", now);
	else
		fleet_submission_ok(&b->f);
}

static void act(struct bench *b, double now, char *done, size_t size)
{
	struct fleet_action a;
	double next;

	for (int i = 0; (a = fleet_next(&b->f, &b->limits, now, &next)).kind != FLEET_NOTHING; i++) {
		size_t n = strlen(done);
		const char *gap = n ? " " : "";

		assert_true(i < 20);
		if (a.kind == FLEET_SUBMIT)
			snprintf(done + n, size - n, "%ssubmit", gap);
		else if (a.kind == FLEET_END)
			snprintf(done + n, size - n, "%send %s", gap, a.id);
		else if (a.kind == FLEET_CANCEL)
			snprintf(done + n, size - n, "%scancel %d", gap, (int)a.job);
		else if (a.kind == FLEET_TEST)
			snprintf(done + n, size - n, "%stest", gap);
		else
			snprintf(done + n, size - n, "%sforget %s", gap, a.id);
		if (a.kind == FLEET_SUBMIT)
			submit(b, now);
		if (a.kind == FLEET_TEST)
			test_submission(b, now);
	}
	assert_true(next > now);
}

static void play(struct bench *b, const struct step *steps, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		char done[200] = "";

		event(b, steps[i].event, steps[i].at);
		act(b, steps[i].at, done, sizeof(done));
		if (strcmp(done, steps[i].expect) != 0)
			print_message("step %zu at %g: %s\n", i, steps[i].at, steps[i].event);
		assert_string_equal(done, steps[i].expect);
	}
}
#define PLAY(bench, steps) play((bench), (steps), sizeof(steps) / sizeof((steps)[0]))

TEST(test_grows_and_shrinks)
{
	static const struct step steps[] = {
		{0, "seats 0", ""},
		{1, "seats 2", "submit submit"}, /* no more than cases wait */
		{2, "seats 9", "submit"},	 /* and no more than max */
		{3, "list Pa Pb Pc", ""},
		{4, "list Ra Rb Pc", ""},
		{5, "seats 1 a* b*", ""},
		{10, "seats 0 a b*", ""}, /* c waits in the queue without being wanted: for 100 s that is accepted */
		{50, "seats 0 a b", ""},
		{109, "-", ""},
		{110, "-", "cancel 3 end a"}, /* a is idle since 10 s */
		{111, "list Ra Rb", "forget c"},
		{113, "seats 0 b", ""},
		{114, "list Rb", "forget a"},
		{149, "-", ""},
		{150, "-", "end b"},
		{151, "seats 0", ""},
		{152, "list", "forget b"},
	};
	struct bench b = {.limits = {0, 3, 100}};

	PLAY(&b, steps);
	assert_int_equal(b.f.n, 0);
	assert_int_equal(b.f.started, 2);
	assert_true(b.f.queued_seconds == 6);
}

TEST(test_keeps_the_minimum)
{
	static const struct step steps[] = {
		{0, "-", "submit submit"},
		{1, "list Ra Rb", ""},
		{2, "seats 0 a b", ""},
		{9000, "-", ""}, /* idle, but wanted */
		{9001, "seats 1 a* b*", "submit"},
		{9002, "seats 0 a* b* c", ""},
		{9003, "seats 0 a b* c", ""},
		{9102, "-", "end c"}, /* idle for the longest time */
	};
	struct bench b = {.limits = {2, 4, 100}};

	PLAY(&b, steps);
}

TEST(test_smaller_maximum)
{
	static const struct step first[] = {
		{0, "seats 4", "submit submit submit submit"}, {1, "list Ra Rb Pc Rd", ""}, {2, "seats 0 a* b", ""}};
	static const struct step then[] = {
		{3, "-", "cancel 3 cancel 4 end b"}, /* at once; the pilot that computes goes on */
		{4, "seats 0 a", "end a"},	     {33, "list Ra Rb", "cancel 2 forget c forget d"}, /* b has not ended */
		{34, "seats 0", "cancel 1"},	     {35, "list", "forget a forget b"},
	};
	struct bench b = {.limits = {0, 4, 100}};

	PLAY(&b, first);
	b.limits.max = 0;
	PLAY(&b, then);
}

TEST(test_refused_submissions_wait)
{
	static const struct step steps[] = {
		{0, "refuses", ""},  {1, "seats 1", "submit"},
		{2, "-", ""},	     {5.9, "up", ""}, /* a list of jobs does not show that jobs are accepted */
		{6, "-", "submit"},  {16, "-", "submit"},
		{17, "seats 0", ""}, {36, "-", "test"}, /* nothing waits any more: only test it */
		{37, "accepts", ""}, {75, "-", ""},
		{76, "-", "test"},
	};
	char text[FLEET_TEXT_SIZE];
	struct bench b = {.limits = {0, 3, 100}};

	play(&b, steps, 6);
	assert_int_equal(fleet_describe(&b.f, 16, text), FLEET_REFUSES);
	assert_string_equal(text, "The job of a pilot cannot be submitted: no such partition");
	play(&b, steps + 6, 5);
	assert_int_equal(fleet_describe(&b.f, 76, text), FLEET_UP);
	assert_string_equal(text, "");
}

TEST(test_pilots_that_do_not_connect)
{
	static const struct step ended[] = {
		{1, "seats 1", "submit"}, {2, "list Ra", ""}, {3, "list", "forget a"}, {7, "-", ""}, {8, "-", "submit"},
	};
	static const struct step hangs[] = {
		{10, "list Rb", ""},  {189, "list Rb", ""},	    {190, "list Rb", "cancel 2"}, {191, "list Eb", ""},
		{200, "-", "submit"}, {201, "list Rc", "forget b"}, {202, "seats 0 c*", ""},
	};
	char text[FLEET_TEXT_SIZE];
	struct bench b = {.limits = {0, 3, 100}};

	PLAY(&b, ended);
	assert_int_equal(fleet_describe(&b.f, 8, text), FLEET_FAILING);
	assert_string_equal(text, "Slurm job 1 ended before its pilot connected");
	play(&b, hangs, 4);
	assert_int_equal(fleet_describe(&b.f, 191, text), FLEET_FAILING);
	assert_string_equal(text, "Slurm job 2 runs, but its pilot did not connect");
	play(&b, hangs + 4, 3);
	assert_int_equal(fleet_describe(&b.f, 202, text), FLEET_UP); /* one has connected */
	assert_int_equal(b.f.failures, 0);
}

TEST(test_lost_connection)
{
	static const struct step steps[] = {
		{0, "seats 1", "submit"},	{1, "list Ra", ""},    {2, "seats 0 a*", ""},
		{1000, "seats 1", ""}, /* its case waits again; the pilot may dial in again */
		{2000, "seats 0 a*", ""},	{3000, "seats 1", ""}, {3179, "list Ra", ""},
		{3180, "-", "cancel 1 submit"}, /* it does not dial in again; no failure of the submission */
	};
	struct bench b = {.limits = {0, 3, 100}};

	PLAY(&b, steps);
	assert_int_equal(b.f.failures, 0);
}

TEST(test_unanswered_cancellation)
{
	static const struct step steps[] = {
		{0, "seats 2", "submit submit"},   {1, "list Ra Rb", ""},	   {2, "seats 0 a* b*", ""},
		{3, "seats 1 a* b*", ""}, /* the case of a is cancelled, another one waits: there may be no third pilot */
		{13, "deaf a", "cancel 1 submit"}, {14, "seats 1 b*", ""},	   {15, "list Ea Rb Rc", ""},
		{16, "seats 0 b* c*", ""},	   {17, "list Rb Rc", "forget a"}, {18, "deaf x", ""}, /* none of Slurm */
	};
	static const struct step returned[] = {
		{0, "silent", ""},     {1, "seats 1", "submit"},
		{2, "seats 0 a*", ""}, {12, "deaf a", ""},    /* the number of its job is unknown */
		{13, "seats 0", ""},   {14, "seats 0 a", ""}, /* it connected again */
		{15, "list Ra", ""},
	};
	struct bench b = {.limits = {0, 2, 100}}, again = {.limits = {0, 2, 100}};

	PLAY(&b, steps);
	PLAY(&again, returned);
	assert_int_equal(b.f.failures, 0);
}

/* Slurm lets a job wait for minutes before it starts it again: until then another one takes its place. */
TEST(test_requeued_job)
{
	static const struct step steps[] = {
		{0, "seats 1", "submit"},
		{1, "list Ra", ""},
		{2, "seats 0 a*", ""},
		{3, "seats 1", ""},
		{4, "list Pa:BeginTime", "submit"},
		{5, "list Pa:BeginTime Rb", ""},
		{6, "seats 0 b*", ""},
		{103, "list Pa:BeginTime Rb", ""},
		{104, "list Pa:BeginTime Rb", "cancel 1"},
	};
	static const struct step full[] = {
		{0, "seats 1", "submit"}, {1, "list Ra", ""}, {2, "list Pa:BeginTime", ""}, {3, "list Ra", ""}};
	struct bench b = {.limits = {0, 3, 100}}, one = {.limits = {0, 1, 100}};

	PLAY(&b, steps);
	assert_int_equal(b.f.requeued, 1);
	assert_int_equal(b.f.failures, 0);
	PLAY(&one, full); /* max is kept */
	assert_false(one.f.list[0].requeued);
}

TEST(test_no_reply_to_a_submission)
{
	static const struct step steps[] = {
		{0, "silent", ""},
		{1, "seats 2", "submit submit"}, /* a exists, b does not */
		{2, "list Ra", ""},
		{60, "list Ra", ""},
		{61, "list Ra", "forget b submit"},
		{62, "seats 0 a*", ""},
	};
	struct bench b = {.limits = {0, 3, 100}};

	PLAY(&b, steps);
	assert_int_equal(b.f.list[0].job, 1);
}

TEST(test_restart_of_the_node)
{
	static const struct step steps[] = {
		{0, "adopt a", ""},
		{0, "adopt b", ""},
		{0, "adopt c", ""},
		{0, "adopt d used", ""},
		{1, "seats 2", ""},	       /* they may still work */
		{2, "list Ra Pb", "forget d"}, /* it was in Slurm, and no longer is */
		{3, "seats 0 a*", ""},
		{60, "list Ra Pb", "forget c"}, /* it ended while no node ran; that is no failure */
	};
	struct bench b = {.limits = {0, 5, 100}};

	PLAY(&b, steps);
	assert_int_equal(b.f.failures, 0);
	assert_string_equal(b.f.failure, "");
}

TEST(test_describes_the_queue)
{
	static const struct {
		const char *list;
		double now;
		enum fleet_controller state;
		const char *text;
	} rows[] = {
		{"list Pa Pb", 30, FLEET_UP, ""},
		{"list Pa:Resources Pb", 61, FLEET_FULL, "2 jobs wait in the queue of Slurm until others end (Resources)"},
		{"list Pa Ra", 61, FLEET_FULL, "1 job waits in the queue of Slurm until others end (Priority)"},
		{"list Pa Pb:PartitionDown", 2, FLEET_DRAINING, "Slurm does not start job 2: PartitionDown"},
		{"list Ra Pb:ReqNodeNotAvail", 2, FLEET_DRAINING, "Slurm does not start job 2: ReqNodeNotAvail"},
		{"list Ra Rb", 1e6, FLEET_UP, ""},
	};
	char text[FLEET_TEXT_SIZE];

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		static const struct step steps[] = {{0, "seats 2", "submit submit"}};
		struct bench b = {.limits = {0, 3, 100}};

		PLAY(&b, steps);
		if (strstr(rows[i].list, "Pa Ra"))
			b.f.n = 1; /* of one job alone */
		event(&b, strstr(rows[i].list, "Pa Ra") ? "list Pa" : rows[i].list, rows[i].now);
		assert_int_equal(fleet_describe(&b.f, rows[i].now, text), rows[i].state);
		assert_string_equal(text, rows[i].text);
		event(&b, "down", rows[i].now); /* comes first, and ends with the next list */
		assert_int_equal(fleet_describe(&b.f, rows[i].now, text), FLEET_DOWN);
		assert_string_equal(text, "Slurm cannot be reached: no route");
		event(&b, "up", rows[i].now);
		assert_int_equal(fleet_describe(&b.f, rows[i].now, text), rows[i].state);
	}
}

TEST(test_counts)
{
	static const struct step steps[] = {
		{0, "seats 5", "submit submit submit submit"}, {1, "list Pa Rb Rc Rd", ""}, {2, "seats 0 b* c", ""}};
	struct bench b = {.limits = {0, 4, 100}};
	struct fleet_counts c;

	PLAY(&b, steps);
	c = fleet_count(&b.f);
	assert_int_equal(c.pending, 1);
	assert_int_equal(c.running, 3);
	assert_int_equal(c.idle, 1);
	assert_int_equal(c.busy, 1);
	for (int i = FLEET_UP; i <= FLEET_FAILING; i++)
		assert_true(strlen(fleet_controller_name((enum fleet_controller)i)) > 1);
}

/* ---- limits ---- */

/* As many pilots as the list holds, and one more: it is not added, and nothing behind the list changes. */
TEST(number_of_pilots)
{
	struct fleet f = {0};
	const struct fleet_limits limits = {.max = 1000, .idle = 60};
	double next;

	fleet_connected(&f, NULL, 0, 1000, 100);
	for (int i = 0; i < FLEET_MAX; i++) {
		char id[FLEET_ID_SIZE];

		assert_int_equal(fleet_next(&f, &limits, 100, &next).kind, FLEET_SUBMIT);
		snprintf(id, sizeof(id), "p%d", i);
		fleet_submitted(&f, id, (uint64_t)i + 1, 100);
		assert_int_equal(f.n, i + 1);
	}
	assert_int_equal(fleet_next(&f, &limits, 100, &next).kind, FLEET_NOTHING);
	fleet_submitted(&f, "one-more", 99, 100);
	fleet_adopt(&f, "another", true, 100);
	assert_int_equal(f.n, FLEET_MAX);
	assert_int_equal(f.waiting, 1000);
	assert_int_equal(f.submitted, FLEET_MAX + 1);
	assert_string_equal(f.list[FLEET_MAX - 1].id, "p63");
	assert_int_equal(fleet_count(&f).pending, FLEET_MAX);
}

TEST(a_pilot_is_added_once)
{
	struct fleet f = {0};

	fleet_submitted(&f, "a", 7, 100);
	fleet_submitted(&f, "a", 8, 100);
	fleet_adopt(&f, "a", true, 100);
	assert_int_equal(f.n, 1);
	assert_int_equal(f.list[0].job, 7);
	assert_false(f.list[0].existed);
	fleet_unanswered(&f, "nobody");
	assert_false(f.list[0].unanswered);
}

TEST(reasons_that_block)
{
	static const char *const passing[] = {"", "None", "Resources", "Priority", "BeginTime", "Cleaning", "Prolog", "Licenses"};
	static const char *const blocking[] = {"ReqNodeNotAvail", "none", "Priority ", "PartitionDown", "AssocGrpGRES"};

	for (size_t i = 0; i < sizeof(passing) / sizeof(passing[0]); i++)
		assert_false(fleet_reason_blocks(passing[i]));
	for (size_t i = 0; i < sizeof(blocking) / sizeof(blocking[0]); i++)
		assert_true(fleet_reason_blocks(blocking[i]));
}

TEST(identifiers)
{
	static const struct {
		const char *text;
		bool valid;
	} rows[] = {{"tomonode-0123456789ab", true},
		    {"tomonode-0123456789a", false},
		    {"tomonode-0123456789abc", false},
		    {"tomonode-0123456789AB", false},
		    {"tomonode-0123456789ag", false},
		    {"tomonode-", false},
		    {"Tomonode-0123456789ab", false},
		    {"", false},
		    {" tomonode-0123456789ab", false},
		    {"tomonode-0123456789ab ", false},
		    {"0123456789ab", false}};
	char id[FLEET_ID_SIZE], other[FLEET_ID_SIZE];
	struct err err = {0};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		assert_int_equal(fleet_conf_is_id(rows[i].text), rows[i].valid);
	for (int i = 0; i < 50; i++) {
		assert_int_equal(fleet_conf_new_id(id, &err), 0);
		assert_int_equal(fleet_conf_new_id(other, &err), 0);
		assert_true(fleet_conf_is_id(id) && fleet_conf_is_id(other));
		assert_string_not_equal(id, other);
	}
}

/* A long error of Slurm is cut within the sentence. */
TEST(long_errors)
{
	struct fleet f = {0};
	char text[2 * FLEET_TEXT_SIZE], sentence[FLEET_TEXT_SIZE];

	memset(text, 'x', sizeof(text));
	text[sizeof(text) - 1] = '\0';
	fleet_failed(&f, FLEET_BUSY, text, 100);
	assert_int_equal(strlen(f.reply), FLEET_TEXT_SIZE - 1);
	assert_string_equal(f.failure, "");
	assert_int_equal(fleet_describe(&f, 100, sentence), FLEET_BUSY);
	assert_int_equal(strlen(sentence), strlen("Slurm accepts no more jobs now: ") + 240);
	fleet_replied(&f, FLEET_DOWN, text);
	assert_int_equal(strlen(f.reply), FLEET_TEXT_SIZE - 1);
}

/* ---- whatever happens ---- */

static struct fleet_pilot *pilot_of(struct fleet *f, const char *id)
{
	for (size_t i = 0; i < f->n; i++)
		if (!strcmp(f->list[i].id, id))
			return &f->list[i];
	fail_msg("no pilot %s", id);
	return NULL;
}

static int number_alive(const struct fleet *f)
{
	int n = 0;

	for (size_t i = 0; i < f->n; i++)
		n += f->list[i].state == FLEET_PENDING || f->list[i].state == FLEET_RUNNING;
	return n;
}

/* Random pilots that are listed, that are connected, and how many cases wait. */
static void random_event(struct fleet *f, double now)
{
	static const char *const reasons[] = {"Priority", "PartitionDown", ""};
	struct fleet_row rows[FLEET_MAX] = {0};
	struct fleet_seat seats[FLEET_MAX] = {0};
	size_t n_rows = 0, n_seats = 0;

	for (size_t i = 0; i < f->n; i++) {
		if (rand() % 8) {
			rows[n_rows].job = f->list[i].job ? f->list[i].job : (uint64_t)(1000 + rand());
			rows[n_rows].state = (enum fleet_state)(rand() % 3);
			snprintf(rows[n_rows].reason, sizeof(rows[0].reason), "%s", reasons[rand() % 3]);
			memcpy(rows[n_rows++].id, f->list[i].id, FLEET_ID_SIZE);
		}
		if (rand() % 2) {
			seats[n_seats].busy = rand() % 2;
			memcpy(seats[n_seats++].id, f->list[i].id, FLEET_ID_SIZE);
		}
	}
	switch (rand() % 6) {
	case 0:
		fleet_listed(f, rows, n_rows, now);
		break;
	case 1:
		fleet_failed(f, rand() % 2 ? FLEET_REFUSES : FLEET_BUSY, "no", now);
		break;
	case 2:
		fleet_replied(f, rand() % 2 ? FLEET_UP : FLEET_DOWN, "");
		break;
	case 3:
		if (f->n)
			fleet_unanswered(f, f->list[rand() % (int)f->n].id);
		break;
	default:
		fleet_connected(f, seats, n_seats, rand() % (FLEET_MAX + 20), now);
	}
}

/* The rules of fleet.h hold for every action, and the actions come to an end. */
TEST(random_events)
{
	unsigned seed = test_seed();
	int actions[FLEET_FORGET + 1] = {0};

	for (unsigned round = 0; round < (test_tier() == 2 ? 500u : 30u); round++) {
		struct fleet f = {0};
		struct fleet_limits limits = {0};
		double now = 1000;
		int made = 0;

		srand(seed + round);
		limits.max = rand() % (FLEET_MAX + 20);
		limits.min = rand() % (limits.max + 1);
		limits.idle = 100;
		for (int step = 0; step < 100; step++, now += rand() % 100) {
			struct fleet_action a;
			double next;
			int n = 0;

			random_event(&f, now);
			while ((a = fleet_next(&f, &limits, now, &next)).kind != FLEET_NOTHING) {
				char id[FLEET_ID_SIZE];

				actions[a.kind]++;
				assert_true(n++ < 10 * FLEET_MAX);
				if (a.kind == FLEET_SUBMIT) {
					assert_true(number_alive(&f) < limits.max && f.n < FLEET_MAX);
					snprintf(id, sizeof(id), "p%d", made++);
					fleet_submitted(&f, id, rand() % 5 ? (uint64_t)made : 0, now);
				} else if (a.kind == FLEET_TEST) {
					fleet_submission_ok(&f);
				} else if (a.kind == FLEET_END) {
					const struct fleet_pilot *p = pilot_of(&f, a.id);

					assert_true(p->connected && !p->busy && p->state == FLEET_ENDING);
				} else if (a.kind == FLEET_CANCEL) {
					const struct fleet_pilot *p = pilot_of(&f, a.id);

					assert_true(a.job > 0 && a.job == p->job && p->state == FLEET_ENDING);
				} else {
					for (size_t i = 0; i < f.n; i++)
						assert_string_not_equal(f.list[i].id, a.id);
				}
			}
			assert_true(next > now);
			assert_true(f.n <= FLEET_MAX && number_alive(&f) <= FLEET_MAX);
		}
	}
	for (enum fleet_action_kind k = FLEET_SUBMIT; k <= FLEET_FORGET; k++)
		assert_true(actions[k] > 0);
}
