/* SPDX-License-Identifier: Apache-2.0 */
/* gates.c - time marks, the cycles between them, and their gates. All times are integers: a gate of a cycle begins at the first
 * whole millisecond at or after k L / n, so that finding the gate of a time and summing durations agree to the millisecond. */
#include "recon/pet/gates.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LINE_SHOWN 40	    /* characters of a refused line in the message */
#define FORMATTED_LENGTH 12 /* characters of a line of a written table, at most */

const char *pet_signal_name(enum pet_signal s)
{
	static const char *const names[PET_SIGNALS] = {"table", "ecg", "resp", "motion", "sync"};

	return (unsigned)s < PET_SIGNALS ? names[s] : "";
}

bool pet_signal_named(const char *name, enum pet_signal *ret)
{
	for (int i = 0; i < PET_SIGNALS; i++)
		if (!strcmp(name, pet_signal_name((enum pet_signal)i))) {
			*ret = (enum pet_signal)i;
			return true;
		}
	return false;
}

/* ---- marks ---- */

int pet_marks_add(struct pet_marks *m, int64_t ms, struct err *err)
{
	if (ms < 0)
		return err_set(err, EBADMSG, "mark %zu is at %lld ms: before the start of the acquisition", m->n + 1,
			       (long long)ms);
	if (ms > PET_MARKS_END)
		return err_set(err, EBADMSG, "mark %zu is at %lld ms; allowed: at most %d", m->n + 1, (long long)ms,
			       PET_MARKS_END);
	if (m->n > 0 && ms <= m->ms[m->n - 1])
		return err_set(err, EBADMSG, "mark %zu is at %lld ms, not after mark %zu at %lld ms", m->n + 1, (long long)ms,
			       m->n, (long long)m->ms[m->n - 1]);
	if (m->n == PET_MARKS_MAX)
		return err_set(err, EBADMSG, "more than %zu marks", PET_MARKS_MAX);
	if (!(m->n & (m->n - 1))) { /* grows by doubling */
		int64_t *more = realloc(m->ms, (m->n ? 2 * m->n : 1) * sizeof(*more));

		if (!more)
			return err_set(err, ENOMEM, "no memory for %zu time marks", 2 * m->n);
		m->ms = more;
	}
	m->ms[m->n++] = ms;
	return 0;
}

void pet_marks_clear(struct pet_marks *m)
{
	free(m->ms);
	*m = (struct pet_marks){0};
}

/* Read the digits of a line of this length into *ret; false: it is anything else, or has more digits than a time has. */
static bool read_number(const char *line, size_t length, int64_t *ret)
{
	bool negative = length > 0 && line[0] == '-';
	int64_t v = 0;

	if (length <= negative || length - negative > 15)
		return false;
	for (size_t i = negative; i < length; i++) {
		if (line[i] < '0' || line[i] > '9')
			return false;
		v = 10 * v + (line[i] - '0');
	}
	*ret = negative ? -v : v;
	return true;
}

static bool is_blank(char c)
{
	return c == ' ' || c == '\t' || c == '\r';
}

static size_t trim_line(const char **line, size_t length)
{
	while (length > 0 && is_blank((*line)[length - 1]))
		length--;
	while (length > 0 && is_blank(**line)) {
		++*line;
		length--;
	}
	return length;
}

static int add_line(struct pet_marks *m, const char *line, size_t length, struct err *err)
{
	int64_t ms;

	length = trim_line(&line, length);
	if (length == 0 || line[0] == '#')
		return 0;
	if (read_number(line, length, &ms))
		return pet_marks_add(m, ms, err);
	return err_set(err, EBADMSG, "\"%.*s\" is not a time; allowed: whole milliseconds",
		       (int)(length < LINE_SHOWN ? length : LINE_SHOWN), line);
}

int pet_marks_parse(const char *text, size_t size, struct pet_marks *ret, struct err *err)
{
	const char *end = text + size;
	struct pet_marks m = {0};
	int rc = 0;

	if (size > PET_MARKS_BYTES)
		return err_set(err, EBADMSG, "time marks: %zu bytes; allowed: at most %zu", size, PET_MARKS_BYTES);
	for (long number = 1; rc == 0 && text < end; number++) {
		const char *stop = memchr(text, '\n', (size_t)(end - text));

		stop = stop ? stop : end;
		rc = add_line(&m, text, (size_t)(stop - text), err);
		if (rc < 0)
			err_prefix(err, "time marks: line %ld", number);
		text = stop + 1;
	}
	if (rc == 0 && m.n < 2)
		rc = err_set(err, EBADMSG, "time marks: %zu mark%s; a cycle needs two", m.n, m.n == 1 ? "" : "s");
	if (rc < 0)
		pet_marks_clear(&m);
	else
		*ret = m;
	return rc;
}

int pet_marks_format(const struct pet_marks *m, char **ret_text, struct err *err)
{
	char *text = malloc(m->n * FORMATTED_LENGTH + 1), *at = text;

	if (!text)
		return err_set(err, ENOMEM, "no memory for %zu time marks", m->n);
	*text = '\0';
	for (size_t i = 0; i < m->n; i++)
		at += snprintf(at, FORMATTED_LENGTH + 1, "%lld\n", (long long)m->ms[i]);
	*ret_text = text;
	return 0;
}

int pet_marks_copy(const struct pet_marks *m, struct pet_marks *ret, struct err *err)
{
	struct pet_marks copy = {0};
	int rc = 0;

	for (size_t i = 0; rc == 0 && i < m->n; i++)
		rc = pet_marks_add(&copy, m->ms[i], err);
	if (rc < 0)
		pet_marks_clear(&copy);
	else
		*ret = copy;
	return rc;
}

/* ---- cycles ---- */

static int64_t length_of(const struct pet_gates *g, size_t cycle)
{
	return g->marks.ms[cycle + 1] - g->marks.ms[cycle];
}

static bool is_used(const struct pet_gates *g, size_t cycle)
{
	int64_t length = length_of(g, cycle);

	return g->longest == 0 || (length >= g->shortest && length <= g->longest);
}

/* Return where gate k of a cycle begins; k = n: where the cycle ends. */
static int64_t begin_of(const struct pet_gates *g, size_t cycle, int k)
{
	return g->marks.ms[cycle] + (k * length_of(g, cycle) + g->n - 1) / g->n;
}

int pet_gates_parse_cycle(const char *text, struct pet_gates *g, struct err *err)
{
	const char *comma = strchr(text, ',');
	int64_t shortest = 0, longest = 0;

	if (*text && (!comma || !read_number(text, (size_t)(comma - text), &shortest) ||
		      !read_number(comma + 1, strlen(comma + 1), &longest) || shortest < 0 || longest < 1 || shortest > longest ||
		      longest > PET_MARKS_END))
		return err_set(err, EINVAL, "\"%s\"; allowed: SHORTEST,LONGEST, lengths of cycles in ms, such as 600,1200", text);
	g->shortest = shortest;
	g->longest = longest;
	return 0;
}

void pet_gates_count(const struct pet_gates *g, struct pet_cycles *ret)
{
	double sum = 0;

	*ret = (struct pet_cycles){0};
	for (size_t i = 0; i + 1 < g->marks.n; i++) {
		if (is_used(g, i) && (ret->used == 0 || length_of(g, i) < ret->shortest))
			ret->shortest = length_of(g, i);
		ret->used += is_used(g, i);
		ret->left_out += !is_used(g, i);
		sum += is_used(g, i) ? (double)length_of(g, i) : 0;
	}
	ret->mean = ret->used > 0 ? sum / (double)ret->used : 0;
}

/* Check that every gate of every used cycle has at least 1 ms. */
static int check_lengths(const struct pet_gates *g, struct err *err)
{
	for (size_t i = 0; i + 1 < g->marks.n; i++)
		if (is_used(g, i) && length_of(g, i) < g->n)
			return err_set(err, EBADMSG,
				       "time marks: cycle %zu from %lld to %lld ms is shorter than %d gates of 1 ms", i + 1,
				       (long long)g->marks.ms[i], (long long)g->marks.ms[i + 1], g->n);
	return 0;
}

int pet_gates_check(const struct pet_gates *g, int64_t duration, struct err *err)
{
	const struct pet_marks *m = &g->marks;
	struct pet_cycles cycles;

	if (g->n < 1 || g->n > PET_GATES_MAX)
		return err_set(err, EINVAL, "%d gates; allowed: 1 to %d", g->n, PET_GATES_MAX);
	if (g->shortest < 0 || g->longest < 0 || (g->longest > 0 && g->shortest > g->longest))
		return err_set(err, EINVAL, "cycles of %lld to %lld ms: the first must not be above the second",
			       (long long)g->shortest, (long long)g->longest);
	if (m->n < 2)
		return err_set(err, EBADMSG, "time marks: %zu mark%s; a cycle needs two", m->n, m->n == 1 ? "" : "s");
	if (m->ms[m->n - 1] > duration)
		return err_set(err, EBADMSG, "time marks: mark %zu is at %lld ms, after the end of the acquisition at %lld ms",
			       m->n, (long long)m->ms[m->n - 1], (long long)duration);
	pet_gates_count(g, &cycles);
	if (cycles.used == 0)
		return err_set(err, ENOTSUP, "time marks: none of the %ld cycles has %lld to %lld ms", cycles.left_out,
			       (long long)g->shortest, (long long)g->longest);
	return check_lengths(g, err);
}

/* Return the cycle with the time t, between the first mark and the last one. */
static size_t search_cycle(const struct pet_marks *m, int64_t t)
{
	size_t low = 0, high = m->n - 1;

	while (high - low > 1) {
		size_t middle = (low + high) / 2;

		if (m->ms[middle] <= t)
			low = middle;
		else
			high = middle;
	}
	return low;
}

int pet_gates_find(const struct pet_gates *g, int64_t t, size_t *cycle)
{
	const struct pet_marks *m = &g->marks;

	if (t < m->ms[0] || t >= m->ms[m->n - 1])
		return -1;
	if (t < m->ms[*cycle] || t >= m->ms[*cycle + 1])
		*cycle = search_cycle(m, t);
	return is_used(g, *cycle) ? (int)((t - m->ms[*cycle]) * g->n / length_of(g, *cycle)) : -1;
}

void pet_gates_add(const struct pet_gates *g, int64_t a, int64_t b, int64_t *sum)
{
	const struct pet_marks *m = &g->marks;

	for (size_t i = a > m->ms[0] ? search_cycle(m, a) : 0; i + 1 < m->n && m->ms[i] < b; i++)
		for (int k = 0; is_used(g, i) && k < g->n; k++) {
			int64_t begin = begin_of(g, i, k), end = begin_of(g, i, k + 1);

			begin = begin > a ? begin : a;
			end = end < b ? end : b;
			sum[k] += end > begin ? end - begin : 0;
		}
}

struct pet_gate_sum pet_gates_sum(const struct pet_gates *g, int k, double lambda)
{
	struct pet_gate_sum ret = {.decay_factor = 1};
	double activity = 0, moment = 0; /* integrals of the activity, s, and of the time, ms^2 */

	for (size_t i = 0; i + 1 < g->marks.n; i++) {
		int64_t begin = begin_of(g, i, k), end = begin_of(g, i, k + 1);

		if (!is_used(g, i))
			continue;
		ret.duration += end - begin;
		moment += (double)(end - begin) * (double)(end + begin) / 2;
		if (lambda > 0)
			activity += exp(-lambda * (double)begin / 1000) * -expm1(-lambda * (double)(end - begin) / 1000) / lambda;
	}
	if (lambda > 0)
		ret.decay_factor = (double)ret.duration / 1000 / activity;
	ret.reference = lambda > 0 ? 1000 * log(ret.decay_factor) / lambda : moment / (double)ret.duration;
	return ret;
}
