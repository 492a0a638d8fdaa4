/* SPDX-License-Identifier: Apache-2.0 */
/* jobs_objects.c - the objects of a result and their state at each destination, from events. See node/jobs/jobs_objects.h.
 *
 * The strings of all objects of a view are stored in one allocation: a series has hundreds of objects, and a node thousands of
 * jobs.
 */
#include "node/jobs/jobs_objects.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "node/base/json_get.h"

struct job_send *job_sends_free(struct job_send *sends, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		free(sends[i].objects);
		free(sends[i].refusal);
	}
	free(sends);
	return NULL;
}

bool job_view_is_warned(const struct job_view *v)
{
	return v->state == JOB_DELIVERED && v->warned;
}

bool job_view_is_due(const struct job_view *v, size_t object)
{
	for (size_t i = 0; i < v->n_sends; i++)
		if (v->sends[i].objects[object] == SEND_DUE && job_send_is_active(&v->sends[i]))
			return true;
	return false;
}

size_t job_view_count_stored(const struct job_view *v, const struct job_send *s)
{
	size_t n = 0;

	for (size_t i = 0; i < v->n_objects; i++)
		n += s->objects[i] == SEND_DONE || s->objects[i] == SEND_STORED;
	return n;
}

bool job_send_is_active(const struct job_send *s)
{
	return !s->replaced && !s->standby;
}

const char *send_state_name(enum send_state state)
{
	switch (state) {
	case SEND_DONE:
		return "sent";
	case SEND_REFUSED:
		return "refused";
	case SEND_STORED:
		return "stored";
	default:
		return "due";
	}
}

const char *job_send_state_name(const struct job_send *s)
{
	if (s->replaced || s->standby)
		return s->replaced ? "replaced" : "standby";
	return s->state == SEND_DONE && s->committed ? "committed" : send_state_name(s->state);
}

/* Compute the state of a destination from those of its objects. */
static void update_send_state(const struct job_view *v, struct job_send *s)
{
	size_t due = 0, refused = 0, stored = 0;

	for (size_t i = 0; i < v->n_objects; i++) {
		due += s->objects[i] == SEND_DUE;
		refused += s->objects[i] == SEND_REFUSED;
		stored += s->objects[i] == SEND_STORED;
	}
	s->state = due || !v->n_objects ? SEND_DUE : stored ? SEND_STORED : refused ? SEND_REFUSED : SEND_DONE;
	if (!stored)
		s->transaction[0] = '\0'; /* no stored object that it could be about remains */
}

void job_send_make_refused_due(const struct job_view *v, struct job_send *s)
{
	for (size_t i = 0; i < v->n_objects; i++)
		if (s->objects[i] == SEND_REFUSED)
			s->objects[i] = SEND_DUE;
	update_send_state(v, s);
}

/* Allocate the states of n objects, all SEND_DUE. */
static enum send_state *new_states(size_t n)
{
	return calloc(n ? n : 1, sizeof(enum send_state));
}

static int copy_refusal(const struct send_refusal *refusal, struct send_refusal **ret_copy)
{
	*ret_copy = malloc(sizeof(*refusal));
	if (!*ret_copy)
		return -ENOMEM;
	**ret_copy = *refusal;
	return 0;
}

int job_send_begin(const struct job_view *v, const char *name, struct job_send *ret_send)
{
	const struct job_send *old = job_view_find_send(v, name);
	enum send_state *states = new_states(v->n_objects);

	if (!states)
		return -ENOMEM;
	if (old)
		memcpy(states, old->objects, v->n_objects * sizeof(states[0]));
	if (old && (old->state == SEND_DONE || old->state == SEND_STORED))
		*ret_send = *old;
	ret_send->replaced = ret_send->standby = false;
	ret_send->objects = states;
	if (ret_send->refusal && copy_refusal(old->refusal, &ret_send->refusal) < 0) {
		free(states);
		return -ENOMEM;
	}
	if (old && old->state != SEND_DONE && old->state != SEND_STORED)
		job_send_make_refused_due(v, ret_send);
	strncpy(ret_send->destination, name, sizeof(ret_send->destination) - 1);
	return 0;
}

/* The objects of a result while they are read from an event, in two passes: the first adds up the length of their texts, the
 * second copies the texts. */
struct gathering {
	struct job_object *objects;
	char *texts;
	size_t size, used;
};

/* Add `text` to the texts and return its copy; if it equals `before`, that of the preceding object, return that instead. */
static const char *keep_text(struct gathering *g, const char *text, const char *before)
{
	size_t n = strlen(text) + 1;
	char *to = g->texts + g->used;

	if (before && !strcmp(before, text))
		return before;
	memcpy(to, text, n);
	g->used += n;
	return to;
}

static int check_object(const json_t *detail, size_t *ret_size)
{
	const char *uid = json_get_text(detail, "sop_instance"), *file = json_get_text(detail, "file");

	if (!uid[0] || !file[0] || strstr(file, ".."))
		return -EBADMSG;
	*ret_size += strlen(uid) + strlen(file) + strlen(json_get_text(detail, "sop_class")) +
		     strlen(json_get_text(detail, "series")) + strlen(json_get_text(detail, "digest")) + 5;
	return 0;
}

static int gather_objects(const json_t *detail, const json_t *list, size_t n, struct gathering *ret)
{
	struct gathering g = {0};
	struct job_object *o;

	for (size_t i = 0; i < n; i++)
		if (check_object(list ? json_array_get(list, i) : detail, &g.size) < 0)
			return -EBADMSG;
	g.objects = calloc(n, sizeof(g.objects[0]));
	g.texts = malloc(g.size);
	if (!g.objects || !g.texts) {
		free(g.objects);
		free(g.texts);
		return -ENOMEM;
	}
	for (size_t i = 0; i < n; i++) {
		const json_t *one = list ? json_array_get(list, i) : detail;

		o = &g.objects[i];
		o->file = keep_text(&g, json_get_text(one, "file"), NULL);
		o->sop_instance = keep_text(&g, json_get_text(one, "sop_instance"), NULL);
		o->sop_class = keep_text(&g, json_get_text(one, "sop_class"), i ? o[-1].sop_class : NULL);
		o->series = keep_text(&g, json_get_text(one, "series"), i ? o[-1].series : NULL);
		o->digest = keep_text(&g, json_get_text(one, "digest"), i ? o[-1].digest : NULL);
	}
	*ret = g;
	return 0;
}

/* Return the index of the object with this UID, searching from index `first` to the end and then from the beginning; n_objects:
 * not found. */
static size_t find_object_from(const struct job_view *v, const char *uid, size_t first)
{
	for (size_t k = 0; k < v->n_objects; k++) {
		size_t i = (first + k) % v->n_objects;

		if (!strcmp(v->objects[i].sop_instance, uid))
			return i;
	}
	return v->n_objects;
}

/* Return the states of the n new objects at a destination that may have stored objects of the earlier result. NULL: no memory. */
static enum send_state *renew_states(const struct job_view *v, const struct gathering *g, size_t n, const struct job_send *s)
{
	enum send_state *states = new_states(n);

	for (size_t k = 0; states && k < n; k++) {
		/* A repeated reconstruction usually gives the same objects in the same order: start the search at index k. */
		size_t before = find_object_from(v, g->objects[k].sop_instance, k);

		states[k] = before < v->n_objects ? s->objects[before] : SEND_DUE;
		if (states[k] == SEND_REFUSED)
			states[k] = SEND_DUE;
	}
	return states;
}

int job_objects_apply_reconstructed(struct job_view *v, const json_t *detail)
{
	const json_t *list = json_object_get(detail, "objects");
	size_t n = json_is_array(list) ? json_array_size(list) : 1, made = 0;
	enum send_state *states[JOB_SENDS_MAX];
	struct gathering g;
	int ret;

	if (n < 1 || n > JOB_OBJECTS_MAX || (list && !json_is_array(list)))
		return -EBADMSG;
	ret = gather_objects(detail, list, n, &g);
	if (ret < 0)
		return ret;
	while (made < v->n_sends && (states[made] = renew_states(v, &g, n, &v->sends[made])))
		made++;
	if (made < v->n_sends) {
		while (made > 0)
			free(states[--made]);
		free(g.objects);
		free(g.texts);
		return -ENOMEM;
	}
	free(v->objects);
	free(v->object_texts);
	v->objects = g.objects;
	v->object_texts = g.texts;
	v->n_objects = n;
	for (size_t i = 0; i < v->n_sends; i++) {
		free(v->sends[i].objects);
		v->sends[i].objects = states[i];
		update_send_state(v, &v->sends[i]);
	}
	return 0;
}

/* The functions below return the state of an object after an event. */
static enum send_state sent_state(enum send_state before)
{
	(void)before;
	return SEND_DONE;
}

/* Storage commitment is required; an object that is already committed stays so. */
static enum send_state stored_state(enum send_state before)
{
	return before == SEND_DONE ? SEND_DONE : SEND_STORED;
}

static enum send_state refused_state(enum send_state before)
{
	return before == SEND_DUE ? SEND_REFUSED : before;
}

static enum send_state due_state(enum send_state before)
{
	return before == SEND_STORED ? SEND_DUE : before;
}

static enum send_state given_up_state(enum send_state before)
{
	return before == SEND_STORED ? SEND_REFUSED : before;
}

/* Apply to() to the states of the objects that the detail names, in a list or as one UID; to all objects if it names none. */
static int mark_objects(const struct job_view *v, struct job_send *s, const json_t *detail,
			enum send_state (*to)(enum send_state before))
{
	const json_t *uids = json_object_get(detail, "sop_instances"), *uid;
	const char *one = json_get_text(detail, "sop_instance");
	size_t i, at = 0;

	if (uids && !json_is_array(uids))
		return -EBADMSG;
	json_array_foreach(uids, i, uid)
	{
		if (!json_is_string(uid) || !json_string_value(uid)[0])
			return -EBADMSG;
	}
	for (i = 0; !uids && i < v->n_objects; i++)
		if (!one[0] || !strcmp(v->objects[i].sop_instance, one))
			s->objects[i] = to(s->objects[i]);
	json_array_foreach(uids, i, uid)
	{
		at = find_object_from(v, json_string_value(uid), at); /* the UIDs are usually in the order of the objects */
		if (at < v->n_objects)
			s->objects[at] = to(s->objects[at]);
	}
	update_send_state(v, s);
	return 0;
}

int job_objects_apply_response(const struct job_view *v, struct job_send *s, const json_t *detail, bool sent)
{
	bool commit = json_get_bool(detail, "commit");

	return mark_objects(v, s, detail, !sent ? refused_state : commit ? stored_state : sent_state);
}

int job_objects_apply_committed(const struct job_view *v, struct job_send *s, const json_t *detail)
{
	if (!json_is_array(json_object_get(detail, "sop_instances")))
		return -EBADMSG;
	return mark_objects(v, s, detail, sent_state);
}

int job_objects_apply_commit_failed(const struct job_view *v, struct job_send *s, const json_t *detail)
{
	return mark_objects(v, s, detail, due_state);
}

void job_objects_apply_commit_refused(const struct job_view *v, struct job_send *s)
{
	for (size_t i = 0; i < v->n_objects; i++)
		s->objects[i] = given_up_state(s->objects[i]);
	update_send_state(v, s);
}
