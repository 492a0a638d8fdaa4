#include "node/jobs/jobs_lines.h"

#include <string.h>

#define LINES_MAX 64 /* two for each of a configuration's destinations at most; of more, some waiters are not told why */

struct line {
	const char *destination;
	bool commit;
	const struct job_send *down; /* the one whose next attempt is last: all wait for that */
};

bool job_send_in_line(const struct job_view *v, const struct job_send *s, bool *ret_commit)
{
	*ret_commit = s->state == SEND_STORED;
	if (!job_send_counts(s) || (v->state != JOB_RECONSTRUCTED && v->state != JOB_STORED))
		return false;
	return s->state == SEND_DUE || (s->state == SEND_STORED && !(s->transaction[0] && s->taken));
}

static struct line *find(struct line *lines, size_t n, const char *destination, bool commit)
{
	for (size_t i = 0; i < n; i++)
		if (lines[i].commit == commit && !strcmp(lines[i].destination, destination))
			return &lines[i];
	return NULL;
}

static size_t look_at(struct line *lines, size_t n, const struct job_view *v, const struct job_send *s)
{
	struct line *line;
	bool commit;

	if (!s->down || !job_send_in_line(v, s, &commit))
		return n;
	line = find(lines, n, s->destination, commit);
	if (line && s->next > line->down->next)
		line->down = s;
	if (line || n == LINES_MAX)
		return n;
	lines[n] = (struct line){s->destination, commit, s};
	return n + 1;
}

void jobs_lines_look(struct jobs *jobs)
{
	struct line lines[LINES_MAX];
	size_t n = 0;

	for (size_t i = 0; i < jobs->n; i++)
		for (size_t k = 0; k < jobs->list[i]->n_sends; k++)
			n = look_at(lines, n, jobs->list[i], &jobs->list[i]->sends[k]);
	for (size_t i = 0; i < jobs->n; i++)
		for (size_t k = 0; k < jobs->list[i]->n_sends; k++) {
			struct job_send *s = &jobs->list[i]->sends[k];
			const struct line *line;
			bool commit, waits = job_send_in_line(jobs->list[i], s, &commit);

			/* One that failed itself says why; one that a person wants now does not wait. */
			waits = waits && !s->hurry && !(s->since > 0);
			line = waits ? find(lines, n, s->destination, commit) : NULL;
			s->behind = line && line->down != s ? line->down : NULL;
		}
}
