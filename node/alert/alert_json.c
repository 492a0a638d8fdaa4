/* SPDX-License-Identifier: Apache-2.0 */
#include "node/alert/alert_json.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "node/base/atomic_file.h"
#include "node/base/json_get.h"
#include "node/base/plural.h"
#include "node/store/event.h"
#include "node/store/json_fields.h"

#define VERSION 1	      /* of both */
#define ROOM 16384	      /* bytes: the file is filled with blanks to a multiple of this */
#define FILE_MAX (64 << 20)   /* bytes of a file that is read: more than 50 000 troubles */
#define TIME_END 253402300800 /* s since the epoch: the year 10000, which RFC 3339 cannot write */

void alert_new_id(char ret[ALERT_ID_SIZE])
{
	static const char digits[] = "0123456789abcdef";
	unsigned char bytes[(ALERT_ID_SIZE - 1) / 2];

	while (getrandom(bytes, sizeof(bytes), 0) != (ssize_t)sizeof(bytes))
		;
	for (size_t i = 0; i < sizeof(bytes); i++) {
		ret[2 * i] = digits[bytes[i] >> 4];
		ret[2 * i + 1] = digits[bytes[i] & 15];
	}
	ret[ALERT_ID_SIZE - 1] = '\0';
}

/* ---- the message ---- */

/* As RFC 3339, in UTC. */
static json_t *time_json(double wall)
{
	char text[40];
	time_t t = (time_t)wall;
	struct tm parts;

	gmtime_r(&t, &parts);
	strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%SZ", &parts);
	return json_string(text);
}

static json_t *node_json(const struct config *config)
{
	char host[256] = "";

	if (gethostname(host, sizeof(host) - 1) < 0)
		host[0] = '\0';
	return json_pack("{s:o, s:o}", "aet", event_json_text(config->node.aet), "host", event_json_text(host));
}

static json_t *event_json(const struct alert_item *i, bool solved)
{
	json_t *event = json_pack("{s:s, s:s, s:o, s:s, s:s, s:o, s:o, s:o}", "alert", i->alert, "event",
				  solved ? "solved" : "begun", "key", event_json_text(i->key), "id", i->id, "severity",
				  i->critical ? "critical" : "warning", "text", event_json_text(i->text), "remedy",
				  event_json_text(solved ? "" : i->remedy), "began", time_json(i->began));

	if (event && i->job)
		json_object_set_new(event, "job", json_integer((json_int_t)i->job));
	if (event && solved)
		json_object_set_new(event, "ended", time_json(i->ended));
	return event;
}

struct listing {
	json_t *events;
	size_t most, begun, solved, more_begun, more_solved;
	char text[1000]; /* a line for each listed event */
};

static void list_event(struct listing *l, const struct alert_item *i, bool solved)
{
	size_t used = strlen(l->text);

	*(solved ? &l->solved : &l->begun) += 1;
	if (json_array_size(l->events) >= l->most) {
		*(solved ? &l->more_solved : &l->more_begun) += 1;
		return;
	}
	json_array_append_new(l->events, event_json(i, solved));
	if (used + strlen(i->text) + 20 < sizeof(l->text))
		snprintf(l->text + used, sizeof(l->text) - used, "\n%s%s",
			 solved	       ? "Solved: "
			 : i->critical ? "Critical: "
				       : "",
			 i->text);
}

static char *compose_text(json_t *root)
{
	char *text = root ? json_dumps(root, JSON_COMPACT) : NULL;

	json_decref(root);
	return text;
}

char *alert_message_text(const struct alerts *a, const struct config *config)
{
	struct listing l = {.events = json_array(), .most = (size_t)config->alerts.most};
	char text[1200];

	/* first what is critical, then the other beginnings, then the ends */
	for (int pass = 0; pass < 3; pass++)
		for (size_t i = 0; i < a->n; i++) {
			const struct alert_item *item = &a->items[i];

			if (pass == 2 ? item->in_end : item->in_begin && item->critical == (pass == 0))
				list_event(&l, item, pass == 2);
		}
	snprintf(text, sizeof(text), "tomonode %s: %zu problem%s began, %zu solved%s", config->node.aet, l.begun,
		 plural((long long)l.begun), l.solved, l.text);
	return compose_text(json_pack("{s:i, s:s, s:b, s:o, s:o, s:o, s:o, s:{s:i, s:i}}", "version", VERSION, "message",
				      a->message.id, "test", false, "time", time_json(a->message.made), "node", node_json(config),
				      "text", event_json_text(text), "alerts", l.events, "further", "begun", (int)l.more_begun,
				      "solved", (int)l.more_solved));
}

char *alert_test_text(const struct config *config, double wall)
{
	char id[ALERT_ID_SIZE], text[200];

	alert_new_id(id);
	snprintf(text, sizeof(text), "tomonode %s: a test; nothing is wrong.", config->node.aet);
	return compose_text(json_pack("{s:i, s:s, s:b, s:o, s:o, s:o, s:[], s:{s:i, s:i}}", "version", VERSION, "message", id,
				      "test", true, "time", time_json(wall), "node", node_json(config), "text",
				      event_json_text(text), "alerts", "further", "begun", 0, "solved", 0));
}

static void put_event(FILE *to, const json_t *e)
{
	bool solved = !strcmp(json_get_text(e, "event"), "solved");
	const char *remedy = json_get_text(e, "remedy");

	fprintf(to, "%s%s\n",
		solved						    ? "Solved: "
		: !strcmp(json_get_text(e, "severity"), "critical") ? "Critical: "
								    : "",
		json_get_text(e, "text"));
	if (remedy[0])
		fprintf(to, "%s\n", remedy);
	fprintf(to, "Since %s%s%s\n\n", json_get_text(e, "began"), solved ? ", until " : "",
		solved ? json_get_text(e, "ended") : "");
}

char *alert_mail_text(const char *message)
{
	json_t *root = json_loads(message, 0, NULL);
	const json_t *list = json_object_get(root, "alerts"), *further = json_object_get(root, "further"), *one;
	const char *text = json_get_text(root, "text");
	char *mail = NULL;
	size_t size, i;
	FILE *to = root ? open_memstream(&mail, &size) : NULL;

	if (to) {
		fprintf(to,
			"Subject: %.*s\nMIME-Version: 1.0\nContent-Type: text/plain; charset=utf-8\nContent-Transfer-Encoding: 8bit\n\n",
			(int)strcspn(text, "\n"), text);
		json_array_foreach(list, i, one) put_event(to, one);
		if (json_get_integer(further, "begun") + json_get_integer(further, "solved") > 0)
			fprintf(to, "And %lld more that began, %lld that are solved.\n\n", json_get_integer(further, "begun"),
				json_get_integer(further, "solved"));
		fprintf(to, "Machine %s, message %s\n", json_get_text(json_object_get(root, "node"), "host"),
			json_get_text(root, "message"));
	}
	json_decref(root);
	if (to && fclose(to) != 0) {
		free(mail);
		return NULL;
	}
	return mail;
}

/* ---- the file ---- */

#define FIELD(member) JSON_FIELD_OF(struct alert_item, #member, member)
static const struct json_field item_fields[] = {FIELD(key),	 FIELD(id),	  FIELD(alert), FIELD(job),   FIELD(critical),
						FIELD(text),	 FIELD(remedy),	  FIELD(began), FIELD(ended), FIELD(begin_told),
						FIELD(end_told), FIELD(in_begin), FIELD(in_end)};
static const struct json_field message_fields[] = {JSON_FIELD_OF(struct alert_message, "message", id),
						   JSON_FIELD_OF(struct alert_message, "active", active),
						   JSON_FIELD_OF(struct alert_message, "made", made)};

/* Fill up with blanks. Frees `text`. */
static char *fill_up(char *text, size_t *ret_size)
{
	size_t n = text ? strlen(text) : 0, size = (n / ROOM + 1) * ROOM;
	char *filled = text ? malloc(size) : NULL;

	if (filled) {
		memcpy(filled, text, n + 1);
		memset(filled + n, ' ', size - n - 1);
		filled[size - 1] = '\n';
	}
	free(text);
	*ret_size = size;
	return filled;
}

/* On a full disk a file that is there already, with its blanks, can be changed where it is. */
static bool overwrite_file(const char *path, const char *text, size_t size)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	struct stat st;
	bool done;

	if (fd < 0)
		return false;
	done = fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && (size_t)st.st_size >= size &&
	       pwrite(fd, text, size, 0) == (ssize_t)size && ftruncate(fd, (off_t)size) == 0 && fdatasync(fd) == 0;
	close(fd);
	return done;
}

int alert_file_write(const char *spool, const struct alerts *a, struct err *err)
{
	json_t *items = json_array(), *root = json_fields_write(JSON_FIELDS(message_fields), &a->message);
	char path[340], *text;
	size_t size;
	int ret;

	for (size_t i = 0; i < a->n; i++)
		if (a->items[i].begun)
			json_array_append_new(items, json_fields_write(JSON_FIELDS(item_fields), &a->items[i]));
	json_object_update_new(root, json_pack("{s:i, s:o}", "version", VERSION, "items", items));
	text = fill_up(compose_text(root), &size);
	if (!text)
		return err_set(err, ENOMEM, "no memory for %s/alerts.json", spool);
	snprintf(path, sizeof(path), "%s/alerts.json", spool);
	ret = atomic_file_put(path, text, size, err);
	if ((ret == -ENOSPC || ret == -EDQUOT) && overwrite_file(path, text, size))
		ret = 0;
	free(text);
	return ret;
}

/* As alert_new_id() and job_state_name() write it: the same in a message and in this file, whatever its size. */
static bool is_word(const char *text)
{
	const char *c = text;

	while (isalnum((unsigned char)*c) || *c == '-')
		c++;
	return c > text && !*c;
}

static bool is_time(double wall)
{
	return wall >= 0 && wall < TIME_END;
}

/* Returns false for what alert_file_write() does not write. */
static bool read_item(const json_t *one, double clock, struct alert_item *i)
{
	*i = (struct alert_item){.begun = true, .first = clock};
	json_fields_read(JSON_FIELDS(item_fields), one, i);
	return i->key[0] && is_word(i->id) && is_word(i->alert) && is_time(i->began) && is_time(i->ended) &&
	       (i->ended > 0 || (!i->in_end && !i->end_told));
}

static int read_items(const json_t *list, double clock, struct alerts *a)
{
	size_t n = json_array_size(list), i;

	a->items = n > 0 ? calloc(n, sizeof(a->items[0])) : NULL;
	if (n > 0 && !a->items)
		return -ENOMEM;
	a->n = a->capacity = n;
	for (i = 0; i < n; i++)
		if (!read_item(json_array_get(list, i), clock, &a->items[i]))
			return -EBADMSG;
	return 0;
}

static int read_root(const json_t *root, double clock, struct alerts *ret)
{
	if (json_get_integer(root, "version") != VERSION || !json_is_array(json_object_get(root, "items")))
		return -EBADMSG;
	json_fields_read(JSON_FIELDS(message_fields), root, &ret->message);
	if (!is_time(ret->message.made) || (ret->message.active && !is_word(ret->message.id)))
		return -EBADMSG;
	return read_items(json_object_get(root, "items"), clock, ret);
}

/* A link, a pipe or a file of any size must not stop the node. *ret_root is NULL if there is no file, and on error. */
static int load_file(const char *path, json_t **ret_root, struct err *err)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK), ret = 0;
	json_error_t why;
	FILE *f = fd < 0 ? NULL : fdopen(fd, "r"); /* json_loadfd() would read it byte by byte */
	struct stat st;

	*ret_root = NULL;
	if (!f) {
		ret = errno == ENOENT ? 0 : err_set(err, errno, "%s: %s", path, strerror(errno));
		if (fd >= 0)
			close(fd);
		return ret;
	}
	if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) || st.st_size > FILE_MAX)
		ret = err_set(err, EBADMSG, "%s: not a file of at most %d MiB", path, FILE_MAX >> 20);
	else
		*ret_root = json_loadf(f, 0, &why);
	fclose(f);
	return ret == 0 && !*ret_root ? err_set(err, EBADMSG, "%s: %s", path, why.text) : ret;
}

int alert_file_read(const char *spool, double clock, struct alerts *ret, struct err *err)
{
	char path[340];
	json_t *root;
	int code;

	*ret = (struct alerts){0};
	snprintf(path, sizeof(path), "%s/alerts.json", spool);
	code = load_file(path, &root, err);
	if (!root)
		return code;
	code = read_root(root, clock, ret);
	json_decref(root);
	if (code < 0)
		alerts_clear(ret);
	return code == 0 ? 0
			 : err_set(err, -code, "%s: %s", path, code == -ENOMEM ? "no memory" : "damaged, or of another version");
}
