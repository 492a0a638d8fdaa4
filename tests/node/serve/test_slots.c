/* SPDX-License-Identifier: Apache-2.0 */
/* Slots as pure logic: events and times in, what is due out. The texts of node.device, too. */
#include "node/serve/slots.h"
#include "tests/test.h"

#define TIMEOUT 100.0
#define NOW 1000.0

static enum slot_action due(struct slots *all, int id, double now)
{
	double next;

	return slots_next_action(slots_find(all, id), TIMEOUT, now, &next);
}

static double next_look(struct slots *all, int id, double now)
{
	double next;

	slots_next_action(slots_find(all, id), TIMEOUT, now, &next);
	return next;
}

static void say(struct slots *all, int id, enum slot_event event, double now)
{
	slots_update(all, id, event, 0, "a word", now);
}

/* From down to idle. */
static void bring_up(struct slots *all, int id, double now)
{
	assert_int_equal(due(all, id, now), SLOT_START);
	say(all, id, SLOT_SPAWNED, now);
	assert_int_equal(due(all, id, now), SLOT_NOTHING);
	slots_update(all, id, SLOT_READY, 0, "device of a test", now);
}

/* The names of those that do not leave, with '!' where they are out, '+' where they are spare. */
static const char *names(const struct slots *all)
{
	static char text[400];

	text[0] = '\0';
	for (size_t i = 0; i < all->n; i++) {
		const struct slot *slot = &all->list[i];

		if (slot->retiring)
			continue;
		if (text[0])
			strcat(text, " ");
		strcat(text, slot->name);
		strcat(text, slot->disabled ? "!" : "");
		strcat(text, slot->spare ? "+" : "");
	}
	return text;
}

static int id_of(const struct slots *all, const char *name)
{
	for (size_t i = 0; i < all->n; i++)
		if (!all->list[i].retiring && !strcmp(all->list[i].name, name))
			return all->list[i].id;
	fail_msg("no slot '%s' in '%s'", name, names(all));
	return 0;
}

/* A new list of these devices. Returns the ID of the first. */
static int begin(struct slots *all, const char *devices)
{
	*all = (struct slots){0};
	slots_configure(all, devices, NOW);
	return all->list[0].id;
}

TEST(texts)
{
	static const struct {
		const char *text;
		int n;
	} cases[] = {
		{"auto", 1},
		{"cpu", 1},
		{"cpu:12", 1},
		{"cuda", 1},
		{"cuda:0", 1},
		{"cuda:0, cuda:2", 2},
		{"cuda:0,cuda:2 , cpu:4", 3},
		{" cpu:1 ,cpu:1 ", 2},
		{"cuda, cpu", 2},
		{"cpu,cpu,cpu,cpu,cpu,cpu,cpu,cpu,cpu,cpu,cpu,cpu,cpu,cpu,cpu,cpu", DEVICE_NAMES_MAX},
		{"cpu,cpu,cpu,cpu,cpu,cpu,cpu,cpu,cpu,cpu,cpu,cpu,cpu,cpu,cpu,cpu,cpu", -1},
		{"", -1},
		{" ", -1},
		{"auto, cpu", -1},
		{"cpu,", -1},
		{",cpu", -1},
		{"cpu cpu", -1},
		{"cpu:0", -1},
		{"cpu:", -1},
		{"cpu:-1", -1},
		{"cpu:1000", -1},
		{"cuda:x", -1},
		{"cuda:1234", -1},
		{"cuda, cuda:1", -1},
		{"cuda, cuda", -1},
		{"gpu", -1},
		{"cuda:00000000000000000000000000001", -1},
	};
	char found[DEVICE_NAMES_MAX][DEVICE_NAME_SIZE];

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		if (device_names_parse(cases[i].text, found) != cases[i].n)
			fail_msg("'%s' is %d, not %d", cases[i].text, device_names_parse(cases[i].text, found), cases[i].n);
	assert_int_equal(device_names_parse(" cuda:3 ,cpu:2", found), 2);
	assert_string_equal(found[0], "cuda:3");
	assert_string_equal(found[1], "cpu:2");
	assert_true(device_name_is_wildcard("auto") && device_name_is_wildcard("cuda") && !device_name_is_wildcard("cuda:0"));
}

/* The first name that opens counts, the last error is told. */
TEST(first_that_opens)
{
	struct device *dev = NULL;
	struct err err = {0};

	assert_int_equal(device_names_open("cuda:255, cpu:2", &dev, &err), 0);
	assert_string_equal(dev->ops->kind, "cpu");
	device_close(dev);
	dev = NULL;
	assert_true(device_names_open("cuda:254, cuda:255", &dev, &err) < 0);
	assert_non_null(strstr(err.msg, "cuda:255"));
	assert_true(device_names_open("gpu", &dev, &err) < 0);
	assert_non_null(strstr(err.msg, "gpu"));
	assert_null(dev);
}

TEST(one_case_after_the_other)
{
	struct slots all = {0};
	int id;

	slots_configure(&all, "cpu", NOW);
	assert_string_equal(names(&all), "cpu");
	assert_null(slots_find_idle(&all));
	id = id_of(&all, "cpu");
	bring_up(&all, id, NOW);
	for (int i = 0; i < 3; i++) {
		assert_ptr_equal(slots_find_idle(&all), slots_find(&all, id));
		assert_string_equal(slots_find_idle(&all)->device, "device of a test");
		say(&all, id, SLOT_ASSIGNED, NOW + i);
		assert_null(slots_find_idle(&all));
		slots_update(&all, id, SLOT_DONE, 1, NULL, NOW + i);
	}
	assert_int_equal(due(&all, id, NOW + 1e9), SLOT_NOTHING); /* waits for ever */
}

/* A worker that dies over a case is started at once; one that dies without having done anything, later each time,
 * then it is out. */
TEST(workers_that_die)
{
	struct slots all = {0};
	double now = NOW;
	int id;

	slots_configure(&all, "cuda:0", now);
	id = id_of(&all, "cuda:0");
	bring_up(&all, id, now);
	for (int i = 0; i < 10; i++) {
		say(&all, id, SLOT_ASSIGNED, now);
		slots_update(&all, id, SLOT_ENDED, 0, "died with signal 11", now);
		bring_up(&all, id, now);
	}
	say(&all, id, SLOT_ENDED, now); /* idle */
	assert_int_equal(due(&all, id, now), SLOT_NOTHING);
	assert_true(next_look(&all, id, now) == now + 1);
	say(&all, id, SLOT_SPAWNED, now += 1);
	say(&all, id, SLOT_ENDED, now); /* starting */
	assert_true(next_look(&all, id, now) == now + 2);
	assert_string_equal(names(&all), "cuda:0");
	say(&all, id, SLOT_SPAWNED, now += 2);
	slots_update(&all, id, SLOT_ENDED, 0, "died with signal 6", now);
	assert_string_equal(names(&all), "cuda:0! cpu+");
	assert_non_null(strstr(slots_find(&all, id)->reason, "signal 6"));
	assert_true(next_look(&all, id, now) == now + SLOT_RETRY_FIRST);
}

TEST(taken_out_and_back)
{
	struct slots all = {0};
	double now = NOW, wait = SLOT_RETRY_FIRST;
	int id, spare;

	slots_configure(&all, "cuda:0", now);
	id = id_of(&all, "cuda:0");
	bring_up(&all, id, now);
	say(&all, id, SLOT_ASSIGNED, now);
	slots_update(&all, id, SLOT_DISABLED, 0, "an illegal address", now);
	assert_string_equal(slots_find(&all, id)->reason, "an illegal address");
	assert_string_equal(names(&all), "cuda:0! cpu+");
	spare = id_of(&all, "cpu");
	bring_up(&all, spare, now); /* at once, while the other still ends */
	assert_ptr_equal(slots_find_idle(&all), slots_find(&all, spare));
	say(&all, id, SLOT_ENDED, now);
	/* The self-test fails again and again: twice as long each time, up to a day. */
	for (int i = 0; i < 12; i++) {
		assert_int_equal(due(&all, id, now + wait - 1), SLOT_NOTHING);
		assert_true(next_look(&all, id, now) == now + wait);
		now += wait;
		wait = fmin(2 * wait, SLOT_RETRY_CAP);
		assert_int_equal(due(&all, id, now), SLOT_START);
		say(&all, id, SLOT_SPAWNED, now);
		assert_string_equal(names(&all), "cuda:0! cpu+"); /* not in before it is ready */
		say(&all, id, SLOT_DISABLED, now);
		say(&all, id, SLOT_ENDED, now);
	}
	assert_true(wait == SLOT_RETRY_CAP);
	/* In again: the spare one does its case and leaves. */
	say(&all, spare, SLOT_ASSIGNED, now);
	bring_up(&all, id, now += wait);
	say(&all, spare, SLOT_ALIVE, now);
	assert_string_equal(names(&all), "cuda:0");
	assert_int_equal(due(&all, spare, now), SLOT_NOTHING);
	slots_update(&all, spare, SLOT_DONE, 1, NULL, now);
	assert_int_equal(due(&all, spare, now), SLOT_STOP);
	assert_ptr_equal(slots_find_idle(&all), slots_find(&all, id));
	say(&all, spare, SLOT_STOPPING, now);
	say(&all, spare, SLOT_ENDED, now);
	assert_null(slots_find(&all, spare));
	/* A case that was refused proves nothing; one that was done does. */
	say(&all, id, SLOT_ASSIGNED, now);
	slots_update(&all, id, SLOT_DONE, 0, NULL, now);
	say(&all, id, SLOT_ASSIGNED, now);
	say(&all, id, SLOT_DISABLED, now);
	say(&all, id, SLOT_ENDED, now);
	assert_true(next_look(&all, id, now) == now + SLOT_RETRY_CAP);
	bring_up(&all, id, now += SLOT_RETRY_CAP);
	say(&all, id, SLOT_ASSIGNED, now);
	slots_update(&all, id, SLOT_DONE, 1, NULL, now);
	say(&all, id, SLOT_ASSIGNED, now);
	say(&all, id, SLOT_DISABLED, now);
	say(&all, id, SLOT_ENDED, now);
	assert_true(next_look(&all, id, now) == now + SLOT_RETRY_FIRST);
}

/* As long as one is in there is no spare one, of whatever kind it is. */
TEST(spare_when_all_are_out)
{
	struct slots all = {0};
	int first, second;

	slots_configure(&all, "cuda:0, cuda:1", NOW);
	first = id_of(&all, "cuda:0");
	second = id_of(&all, "cuda:1");
	say(&all, first, SLOT_SPAWNED, NOW);
	say(&all, second, SLOT_SPAWNED, NOW);
	say(&all, first, SLOT_DISABLED, NOW);
	assert_string_equal(names(&all), "cuda:0! cuda:1");
	say(&all, second, SLOT_DISABLED, NOW);
	assert_string_equal(names(&all), "cuda:0! cuda:1! cpu+");
	say(&all, id_of(&all, "cpu"), SLOT_SPAWNED, NOW);
	say(&all, id_of(&all, "cpu"), SLOT_DISABLED, NOW); /* nothing is left: all are tried again later */
	assert_string_equal(names(&all), "cuda:0! cuda:1! cpu!+");
	slots_configure(&all, "cuda:0, cuda:1", NOW + 5); /* at once when a person says so */
	say(&all, first, SLOT_ENDED, NOW + 6);
	bring_up(&all, first, NOW + 6);
	assert_string_equal(names(&all), "cuda:0 cuda:1!");
	begin(&all, "cuda:0, cpu:2");
	say(&all, id_of(&all, "cuda:0"), SLOT_SPAWNED, NOW);
	say(&all, id_of(&all, "cuda:0"), SLOT_DISABLED, NOW);
	assert_string_equal(names(&all), "cuda:0! cpu:2");
}

TEST(counting)
{
	struct slots all = {0};
	int id;

	id = begin(&all, "auto");
	assert_int_equal(due(&all, id, NOW), SLOT_START);
	say(&all, id, SLOT_SPAWNED, NOW);
	slots_update(&all, id, SLOT_COUNTED, 3, NULL, NOW);
	assert_string_equal(names(&all), "cuda:0 cuda:1 cuda:2");
	assert_int_equal(due(&all, id_of(&all, "cuda:2"), NOW), SLOT_START);
	say(&all, id, SLOT_ENDED, NOW);
	assert_null(slots_find(&all, id));
	/* None, or the counting died: "auto" is the CPU, "cuda" is a device that will say what is wrong. */
	for (int died = 0; died < 2; died++)
		for (int automatic = 0; automatic < 2; automatic++) {
			id = begin(&all, automatic ? "auto" : "cuda");
			say(&all, id, SLOT_SPAWNED, NOW);
			if (!died)
				slots_update(&all, id, SLOT_COUNTED, 0, NULL, NOW);
			for (int i = 1; died && i < SLOT_DEATHS_MAX; i++) { /* once may be an accident */
				say(&all, id, SLOT_ENDED, NOW);
				assert_string_equal(names(&all), automatic ? "auto" : "cuda");
				assert_int_equal(due(&all, id, NOW), SLOT_NOTHING);
				assert_int_equal(due(&all, id, NOW + 10), SLOT_START);
				say(&all, id, SLOT_SPAWNED, NOW);
			}
			say(&all, id, SLOT_ENDED, NOW);
			assert_string_equal(names(&all), automatic ? "cpu" : "cuda:0");
			assert_null(slots_find(&all, id));
		}
	begin(&all, "cuda, cpu:1");
	id = id_of(&all, "cuda");
	say(&all, id, SLOT_SPAWNED, NOW);
	slots_update(&all, id, SLOT_COUNTED, 2, NULL, NOW);
	assert_string_equal(names(&all), "cpu:1 cuda:0 cuda:1");
	bring_up(&all, id_of(&all, "cpu:1"), NOW);
	assert_string_equal(slots_find_idle(&all)->name, "cpu:1");
	bring_up(&all, id_of(&all, "cuda:1"), NOW);
	assert_string_equal(slots_find_idle(&all)->name, "cuda:1"); /* the faster one first */
}

/* What a worker has counted counts once, and only where it is still asked for. */
TEST(counted_in_vain)
{
	struct slots all = {0};
	int id;

	id = begin(&all, "auto");
	say(&all, id, SLOT_SPAWNED, NOW);
	slots_configure(&all, "cpu:2", NOW);
	slots_update(&all, id, SLOT_COUNTED, 4, NULL, NOW);
	assert_string_equal(names(&all), "cpu:2");
	say(&all, id, SLOT_ENDED, NOW);
	assert_string_equal(names(&all), "cpu:2");
	assert_int_equal(all.n, 1);
	/* It was killed for taking too long, and had said it just before. */
	id = begin(&all, "auto");
	say(&all, id, SLOT_SPAWNED, NOW);
	slots_update(&all, id, SLOT_COUNTED, 0, NULL, NOW);
	slots_update(&all, id, SLOT_COUNTED, 2, NULL, NOW);
	assert_string_equal(names(&all), "cpu");
	/* Asked for again before it has answered: its answer is as good. */
	id = begin(&all, "auto");
	say(&all, id, SLOT_SPAWNED, NOW);
	slots_configure(&all, "auto", NOW);
	slots_update(&all, id, SLOT_COUNTED, 2, NULL, NOW);
	assert_string_equal(names(&all), "cuda:0 cuda:1");
}

/* What runs goes on; then its worker is a new one. What is not asked for leaves. */
TEST(configured_anew)
{
	struct slots all = {0};
	int busy, idle, gone;

	slots_configure(&all, "cpu:1, cpu:1, cpu:2", NOW);
	assert_string_equal(names(&all), "cpu:1 cpu:1 cpu:2");
	busy = all.list[0].id;
	idle = all.list[1].id;
	gone = all.list[2].id;
	for (size_t i = 0; i < 3; i++)
		bring_up(&all, all.list[i].id, NOW);
	say(&all, busy, SLOT_ASSIGNED, NOW);
	say(&all, gone, SLOT_ASSIGNED, NOW);
	slots_configure(&all, "cpu:1, cpu:1", NOW);
	assert_string_equal(names(&all), "cpu:1 cpu:1");
	assert_null(slots_find_idle(&all)); /* its worker has the old configuration */
	assert_int_equal(due(&all, busy, NOW), SLOT_NOTHING);
	assert_int_equal(due(&all, gone, NOW), SLOT_NOTHING);
	assert_int_equal(due(&all, idle, NOW), SLOT_STOP);
	say(&all, idle, SLOT_STOPPING, NOW);
	assert_int_equal(due(&all, idle, NOW), SLOT_NOTHING);
	say(&all, idle, SLOT_ENDED, NOW);
	bring_up(&all, idle, NOW);
	assert_ptr_equal(slots_find_idle(&all), slots_find(&all, idle));
	slots_update(&all, busy, SLOT_DONE, 1, NULL, NOW);
	slots_update(&all, gone, SLOT_DONE, 1, NULL, NOW);
	assert_int_equal(due(&all, busy, NOW), SLOT_STOP);
	assert_int_equal(due(&all, gone, NOW), SLOT_STOP);
	say(&all, gone, SLOT_STOPPING, NOW);
	say(&all, gone, SLOT_ENDED, NOW);
	assert_null(slots_find(&all, gone));
	say(&all, busy, SLOT_STOPPING, NOW);
	say(&all, busy, SLOT_ENDED, NOW);
	bring_up(&all, busy, NOW);
	assert_int_equal(all.n, 2);
	/* A slot that works while the devices are counted again is not doubled. */
	begin(&all, "auto");
	say(&all, all.list[0].id, SLOT_SPAWNED, NOW);
	slots_update(&all, all.list[0].id, SLOT_COUNTED, 1, NULL, NOW);
	say(&all, all.list[0].id, SLOT_ENDED, NOW);
	busy = id_of(&all, "cuda:0");
	bring_up(&all, busy, NOW);
	say(&all, busy, SLOT_ASSIGNED, NOW);
	slots_configure(&all, "auto", NOW);
	assert_string_equal(names(&all), "auto");
	idle = id_of(&all, "auto");
	say(&all, idle, SLOT_SPAWNED, NOW);
	slots_update(&all, idle, SLOT_COUNTED, 2, NULL, NOW);
	assert_string_equal(names(&all), "cuda:0 cuda:1");
	assert_int_equal(id_of(&all, "cuda:0"), busy);
}

TEST(without_progress)
{
	struct slots all = {0};
	int id;

	id = begin(&all, "cpu");
	say(&all, id, SLOT_SPAWNED, NOW);
	assert_true(next_look(&all, id, NOW) == NOW + SLOT_START_LIMIT);
	assert_int_equal(due(&all, id, NOW + SLOT_START_LIMIT), SLOT_KILL);
	say(&all, id, SLOT_READY, NOW + 3);
	say(&all, id, SLOT_ASSIGNED, NOW + 10);
	assert_int_equal(due(&all, id, NOW + 9 + TIMEOUT), SLOT_NOTHING);
	say(&all, id, SLOT_ALIVE, NOW + 50);
	assert_true(next_look(&all, id, NOW + 60) == NOW + 50 + TIMEOUT);
	assert_int_equal(due(&all, id, NOW + 49 + TIMEOUT), SLOT_NOTHING);
	assert_int_equal(due(&all, id, NOW + 50 + TIMEOUT), SLOT_KILL);
	say(&all, id, SLOT_STOPPING, NOW + 200);
	assert_int_equal(due(&all, id, NOW + 200), SLOT_NOTHING);
	/* What it says after it was killed for not being ready does not bring it in again. */
	{
		struct slots late = {0};

		slots_configure(&late, "cpu", NOW);
		say(&late, late.list[0].id, SLOT_SPAWNED, NOW);
		say(&late, late.list[0].id, SLOT_DISABLED, NOW);
		say(&late, late.list[0].id, SLOT_READY, NOW);
		assert_string_equal(names(&late), "cpu! cpu+");
		assert_null(slots_find_idle(&late));
	}
	/* Not even SIGKILL ends it: it is out until it does. */
	assert_int_equal(due(&all, id, NOW + 200 + SLOT_END_LIMIT), SLOT_ABANDON);
	say(&all, id, SLOT_ABANDONED, NOW + 300);
	assert_string_equal(names(&all), "cpu! cpu+");
	assert_int_equal(due(&all, id, NOW + 1e6), SLOT_NOTHING);
	say(&all, id, SLOT_ENDED, NOW + 400);
	assert_true(next_look(&all, id, NOW + 400) == NOW + 300 + SLOT_RETRY_FIRST);
	bring_up(&all, id, NOW + 300 + SLOT_RETRY_FIRST);
	assert_string_equal(names(&all), "cpu");
}

TEST(threads)
{
	struct slots all = {0};

	slots_configure(&all, "cuda:0, cuda:1, cuda:2, cuda:3", NOW);
	assert_int_equal(slots_threads(&all, &all.list[0], 64), 16);
	assert_int_equal(slots_threads(&all, &all.list[0], 2), 1);
	say(&all, all.list[3].id, SLOT_DISABLED, NOW);
	assert_int_equal(slots_threads(&all, &all.list[0], 63), 21);
	begin(&all, "cpu:3, cpu");
	assert_int_equal(slots_threads(&all, &all.list[0], 8), 3);
	assert_int_equal(slots_threads(&all, &all.list[1], 8), 4);
	begin(&all, "cuda:0");
	say(&all, all.list[0].id, SLOT_DISABLED, NOW);
	assert_int_equal(slots_threads(&all, &all.list[1], 8), 8); /* the spare one */
}

/* Several workers for each CUDA device, also for those that are counted; a case goes to the device that has the least to do. */
TEST(several_workers)
{
	struct slots all = {.per_device = 2};
	int first;

	slots_configure(&all, "cuda:0, cuda:1, cpu:4", NOW);
	assert_string_equal(names(&all), "cuda:0 cuda:0 cuda:1 cuda:1 cpu:4");
	assert_int_equal(slots_threads(&all, &all.list[0], 20), 8);
	assert_int_equal(slots_threads(&all, &all.list[4], 20), 4);
	for (size_t i = 0; i < all.n; i++)
		bring_up(&all, all.list[i].id, NOW);
	for (int i = 0; i < 4; i++) {
		struct slot *slot = slots_find_idle(&all);

		assert_string_equal(slot->name, i % 2 ? "cuda:1" : "cuda:0");
		say(&all, slot->id, SLOT_ASSIGNED, NOW);
	}
	assert_string_equal(slots_find_idle(&all)->name, "cpu:4");
	/* One more, then fewer: those that stay keep their processes. */
	first = all.list[0].id;
	all.per_device = 3;
	slots_configure(&all, "cuda:0", NOW);
	assert_string_equal(names(&all), "cuda:0 cuda:0 cuda:0");
	assert_int_equal(all.list[0].id, first);
	all.per_device = 1;
	slots_configure(&all, "cuda:0", NOW);
	assert_string_equal(names(&all), "cuda:0");
	/* The device fails in one worker: the others continue until it fails in them. */
	memset(&all, 0, sizeof(all));
	all.per_device = 2;
	slots_configure(&all, "auto", NOW);
	assert_int_equal(due(&all, id_of(&all, "auto"), NOW), SLOT_START);
	say(&all, id_of(&all, "auto"), SLOT_SPAWNED, NOW);
	slots_update(&all, id_of(&all, "auto"), SLOT_COUNTED, 2, NULL, NOW);
	assert_string_equal(names(&all), "cuda:0 cuda:0 cuda:1 cuda:1");
	say(&all, id_of(&all, "cuda:0"), SLOT_DISABLED, NOW);
	assert_string_equal(names(&all), "cuda:0! cuda:0 cuda:1 cuda:1");
}

/* Without a number: several only of devices that were counted and are all large enough; a number of the configuration counts. */
TEST(automatic_number)
{
	static const struct {
		int per_device;
		const char *bytes, *names;
	} cases[] = {
		{0, "85000000000", "cuda:0 cuda:0 cuda:0"},
		{0, "25300000000", "cuda:0 cuda:0 cuda:0"},
		{0, "17000000000", "cuda:0"},
		{0, "0", "cuda:0"},
		{1, "85000000000", "cuda:0"},
		{2, "8000000000", "cuda:0 cuda:0"},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct slots all = {.per_device = cases[i].per_device};
		int id;

		slots_configure(&all, "auto", NOW);
		id = id_of(&all, "auto");
		say(&all, id, SLOT_SPAWNED, NOW);
		slots_update(&all, id, SLOT_COUNTED, 1, cases[i].bytes, NOW);
		assert_string_equal(names(&all), cases[i].names);
		slots_configure(&all, "cuda:0", NOW); /* by name */
		assert_string_equal(names(&all), cases[i].per_device == 2 ? "cuda:0 cuda:0" : "cuda:0");
	}
}

/* Configured again and again while nothing ends: the list is full, nothing is overwritten, and what there is goes on. */
TEST(no_more_room)
{
	struct slots all = {0};
	char text[] = "cpu:10,cpu:10,cpu:10,cpu:10,cpu:10,cpu:10,cpu:10,cpu:10,cpu:10,cpu:10,cpu:10,cpu:10,cpu:10,cpu:10,"
		      "cpu:10,cpu:10";

	for (int round = 10; round < 30; round++) {
		for (char *c = strchr(text, ':'); c; c = strchr(c + 1, ':')) {
			c[1] = (char)('0' + round / 10);
			c[2] = (char)('0' + round % 10);
		}
		slots_configure(&all, text, NOW);
		assert_true(all.n <= SLOTS_MAX);
		for (size_t i = 0; i < all.n; i++)
			if (all.list[i].state == SLOT_DOWN) {
				say(&all, all.list[i].id, SLOT_SPAWNED, NOW);
				say(&all, all.list[i].id, SLOT_READY, NOW);
				say(&all, all.list[i].id, SLOT_ASSIGNED, NOW);
			}
	}
	assert_int_equal(all.n, SLOTS_MAX);
	for (size_t i = SLOTS_MAX; i-- > 0;)
		say(&all, all.list[i].id, SLOT_ENDED, NOW);
	slots_configure(&all, text, NOW);
	assert_int_equal(all.n, DEVICE_NAMES_MAX);
}

/* An event about a slot that is gone does nothing. */
TEST(strangers)
{
	struct slots all = {0};

	slots_configure(&all, "cpu", NOW);
	for (int event = SLOT_SPAWNED; event <= SLOT_ABANDONED; event++)
		say(&all, 4711, (enum slot_event)event, NOW);
	assert_string_equal(names(&all), "cpu");
	assert_int_equal(due(&all, id_of(&all, "cpu"), NOW), SLOT_START);
}

/* One seat waits for a pilot, however long; one that lost its pilot is removed, and no spare slot depends on seats. */
TEST(seats)
{
	struct slots all = {0};
	int first, second;

	slots_configure(&all, "", NOW);
	assert_int_equal(all.n, 0);
	slots_seats(&all, true, NOW);
	slots_seats(&all, true, NOW);
	assert_string_equal(names(&all), "pilot");
	first = id_of(&all, "pilot");
	assert_int_equal(due(&all, first, NOW), SLOT_START);
	say(&all, first, SLOT_SPAWNED, NOW);
	assert_int_equal(due(&all, first, NOW + 1e6), SLOT_NOTHING);
	/* The waiting process dies: it is started again, never disabled. */
	for (int i = 0; i < 2 * SLOT_DEATHS_MAX; i++) {
		say(&all, first, SLOT_ENDED, NOW);
		assert_int_equal(due(&all, first, NOW), SLOT_NOTHING);
		assert_int_equal(due(&all, first, NOW + 1), SLOT_START);
		say(&all, first, SLOT_SPAWNED, NOW);
	}
	slots_seats(&all, true, NOW);
	assert_int_equal(all.n, 1);
	slots_update(&all, first, SLOT_READY, 0, "cpu, pilot d1", NOW);
	assert_int_equal(slots_find_idle(&all)->id, first);
	slots_seats(&all, true, NOW);
	assert_string_equal(names(&all), "pilot pilot");
	second = all.list[1].id;
	say(&all, second, SLOT_SPAWNED, NOW);
	slots_update(&all, second, SLOT_READY, 0, "cuda:0 (GPU), pilot d2", NOW);
	assert_int_equal(slots_find_idle(&all)->id, second);
	/* Its device fails: it leaves without a spare slot. */
	say(&all, second, SLOT_ASSIGNED, NOW);
	say(&all, second, SLOT_DISABLED, NOW);
	assert_string_equal(names(&all), "pilot");
	say(&all, second, SLOT_ENDED, NOW);
	say(&all, first, SLOT_ENDED, NOW);
	assert_int_equal(all.n, 0);
	/* New configuration: a seat that waits or is idle is started anew; without the port all leave. */
	slots_seats(&all, true, NOW);
	first = id_of(&all, "pilot");
	say(&all, first, SLOT_SPAWNED, NOW);
	slots_configure(&all, "cpu", NOW);
	assert_string_equal(names(&all), "pilot cpu");
	assert_int_equal(due(&all, first, NOW), SLOT_STOP);
	slots_seats(&all, false, NOW);
	assert_string_equal(names(&all), "cpu");
}
