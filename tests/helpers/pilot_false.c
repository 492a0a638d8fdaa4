/* SPDX-License-Identifier: Apache-2.0 */
/* A pilot with a valid secret that returns other objects than those of its case:
 *	pilot_false HOST:PORT ID SECRET DETAIL FOLDER [SPOOL]
 * DETAIL is a file with the detail of the outcome; its "objects" have names of files in FOLDER as "file", and get the folder of
 *the case, "bytes" and "digest" unless they have them. SPOOL: the shared spool. Without DETAIL ("-") it only
 * repeats the same progress, without an outcome. It prints what the node sends, until ACK or
 *REFUSED. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <poll.h>
#include <sys/stat.h>

#include "kernels/clock.h"
#include "node/base/digest.h"
#include "node/base/version.h"
#include "node/cluster/pilot_case.h"
#include "node/cluster/transfer.h"

struct liar {
	struct link *link;
	const char *folder, *spool;
	json_t *detail; /* NULL: no outcome */
	int64_t job, attempt;
	struct transfer_out out;
	int64_t *offsets; /* of out */
};

static const char *name_of(const struct liar *l, size_t i)
{
	const char *name = json_string_value(json_object_get(json_array_get(json_object_get(l->detail, "objects"), i), "file"));
	const char *slash = strrchr(name, '/');

	return slash ? slash + 1 : name;
}

static int object_path(void *ctx, size_t i, char *ret_path, size_t size, int64_t *ret_bytes, struct err *err)
{
	const struct liar *l = ctx;

	(void)err;
	snprintf(ret_path, size, "%s/%s", l->folder, name_of(l, i));
	*ret_bytes = json_integer_value(json_object_get(json_array_get(json_object_get(l->detail, "objects"), i), "bytes"));
	return 0;
}

static void copy(const char *from, const char *to)
{
	char command[1200];

	snprintf(command, sizeof(command), "cp '%s' '%s'", from, to);
	if (system(command) != 0)
		fprintf(stderr, "%s failed\n", command);
}

/* Complete the description of the objects for this job, and in a shared spool lay them down. */
static void prepare(struct liar *l, int64_t job, int64_t attempt)
{
	char path[500], to[500], file[200], hex[1][DIGEST_SIZE];
	json_t *list = json_object_get(l->detail, "objects");

	if (l->spool) {
		pilot_case_path(l->spool, job, attempt, "", to, sizeof(to), NULL);
		mkdir(to, 0700);
	}
	for (size_t i = 0; i < json_array_size(list); i++) {
		json_t *object = json_array_get(list, i);
		const char *one = path;
		struct stat st = {0};
		int code;

		snprintf(path, sizeof(path), "%s/%s", l->folder, name_of(l, i));
		if (stat(path, &st) == 0 && !json_object_get(object, "bytes"))
			json_object_set_new(object, "bytes", json_integer(st.st_size));
		digest_files(&one, 1, 1, hex, &code, NULL);
		if (!json_object_get(object, "digest"))
			json_object_set_new(object, "digest", json_string(hex[0]));
		if (l->spool) {
			snprintf(to + strlen(to), sizeof(to) - strlen(to), "/%s", name_of(l, i));
			copy(path, to);
			*strrchr(to, '/') = '\0';
		}
		snprintf(file, sizeof(file), "outbox/%lld/%.100s", (long long)job, name_of(l, i));
		json_object_set_new(object, "file", json_string(file));
	}
}

static void on_case(struct liar *l, const struct wire_message *m)
{
	struct wire_message have = {.kind = WIRE_HAVE, .job = m->job, .attempt = m->attempt},
			    outcome = {.kind = WIRE_OUTCOME, .job = m->job, .attempt = m->attempt};
	struct pilot_case c;

	if (pilot_case_decode(m->body, m->job, m->attempt, &c, NULL) < 0)
		return;
	have.n_offsets = l->spool ? 0 : pilot_case_files(&c);
	have.offsets = calloc(have.n_offsets + 1, sizeof(have.offsets[0]));
	for (size_t i = 0; i < have.n_offsets; i++)
		have.offsets[i] = 1ll << 50; /* complete: the images are of no use */
	l->job = m->job;
	l->attempt = m->attempt;
	link_send(l->link, &have, NULL);
	if (l->detail) {
		prepare(l, m->job, m->attempt);
		outcome.body = l->detail;
		link_send(l->link, &outcome, NULL);
	}
	free(have.offsets);
	pilot_case_clear(&c);
}

static void on_have(struct liar *l, struct wire_message *m)
{
	free(l->offsets);
	l->offsets = m->offsets;
	m->offsets = NULL;
	l->out = (struct transfer_out){.n = m->n_offsets, .offsets = l->offsets, .file = object_path, .ctx = l, .fd = -1};
}

/* Return true if this is the end. */
static bool on_message(struct liar *l, struct wire_message *m)
{
	printf("%s %s\n", wire_kind_name(m->kind), m->text);
	fflush(stdout);
	if (m->kind == WIRE_CASE)
		on_case(l, m);
	else if (m->kind == WIRE_HAVE)
		on_have(l, m);
	else if (m->kind == WIRE_PING)
		link_send(l->link, &(struct wire_message){.kind = WIRE_PONG}, NULL);
	else if (m->kind == WIRE_CANCEL)
		link_send(l->link,
			  &(struct wire_message){.kind = WIRE_OUTCOME, .job = m->job, .attempt = m->attempt, .code = ECANCELED},
			  NULL);
	return m->kind == WIRE_ACK || m->kind == WIRE_REFUSED;
}

static void talk(struct liar *l)
{
	struct err err = {0};
	int got = 0;

	while (got >= 0) {
		struct wire_message m;
		struct pollfd p = {.fd = link_fd(l->link)};
		const void *bytes;
		size_t n;

		if (l->offsets && l->out.index < l->out.n)
			got = transfer_out_step(&l->out, l->link, &err);
		got = got < 0 ? got : link_flush(l->link, &err);
		got = got < 0 ? got : link_receive(l->link, &m, &bytes, &n, &err);
		if (got == 1 && on_message(l, &m))
			return;
		if (got == 1)
			wire_clear(&m);
		if (got == 0 && l->job && !l->detail)
			link_send(l->link,
				  &(struct wire_message){.kind = WIRE_PROGRESS,
							 .job = l->job,
							 .attempt = l->attempt,
							 .text = "reconstruct",
							 .fraction = 0.5},
				  NULL);
		p.events = link_events(l->link);
		if (got == 0)
			poll(&p, 1, 100);
	}
	printf("LOST %s\n", err.msg);
}

int main(int argc, char **argv)
{
	struct wire_message hello = {.kind = WIRE_HELLO,
				     .wire = WIRE_VERSION,
				     .version = TOMONODE_VERSION " " TOMONODE_REVISION,
				     .name = "liar",
				     .instance = "1",
				     .device = "cpu"};
	struct liar l = {.out.fd = -1};
	struct err err = {0};

	if (argc < 6)
		return 2;
	signal(SIGPIPE, SIG_IGN);
	l.detail = json_load_file(argv[4], 0, NULL);
	l.folder = argv[5];
	l.spool = argc > 6 ? argv[6] : NULL;
	if (link_dial(argv[1], &(struct link_pilot){argv[2], argv[3], NULL}, (uint64_t)(1000 * clock_wall()), 10, &l.link, &err) <
		    0 ||
	    link_send(l.link, &hello, &err) < 0) {
		printf("LOST %s\n", err.msg);
		return 1;
	}
	talk(&l);
	transfer_out_end(&l.out);
	free(l.offsets);
	link_close(l.link);
	json_decref(l.detail);
	return 0;
}
