/* SPDX-License-Identifier: Apache-2.0 */
/* pose_text.c - the text is read once from its beginning to its end; see pose_text.h. */
#include "node/tomo/pose_text.h"

#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define LINE_SIZE 160	   /* bytes of a line, with a byte 0 at its end */
#define TITLES_MAX 16	   /* lines before the numbers */
#define THETA_MAX 75.0	   /* degrees */
#define VALUE_MAX 1e12	   /* magnitude of a number */
#define SUM_TOLERANCE 0.02 /* relative error of chisq: numbers have seven digits */
#define DIGIT 1e-6	   /* relative error of a value with seven digits */
#define NORM_TOLERANCE 1e-3

struct reader {
	const char *at, *end;
	int line; /* number of the current line, from 1 */
	char text[LINE_SIZE];
	struct err *err;
};

static int refuse_line(struct reader *r, const char *what)
{
	return err_set(r->err, EBADMSG, "line %d of the projection matrices: %s", r->line, what);
}

/* Copy the next line without its end to r->text. Return 1: a line; 0: no text is left. */
static int next_line(struct reader *r)
{
	const char *stop = r->at < r->end ? memchr(r->at, '\n', (size_t)(r->end - r->at)) : NULL;
	size_t n = (size_t)((stop ? stop : r->end) - r->at);

	if (r->at >= r->end)
		return 0;
	r->line++;
	if (n > 0 && r->at[n - 1] == '\r')
		n--;
	if (n >= LINE_SIZE || memchr(r->at, '\0', n))
		return refuse_line(r, "it is too long, or has a byte 0");
	memcpy(r->text, r->at, n);
	r->text[n] = '\0';
	r->at = stop ? stop + 1 : r->end;
	return 1;
}

static bool is_number(const char *word)
{
	return word[0] && !word[strspn(word, "0123456789+-.eE")];
}

/* Read n numbers, and nothing else, from the next line. */
static int read_numbers(struct reader *r, double *ret, int n)
{
	char *word, *more = r->text, *end;
	int found = 0, rc = next_line(r);

	if (rc <= 0)
		return rc < 0 ? rc : refuse_line(r, "the text ends after it");
	while ((word = strsep(&more, " \t"))) {
		if (!word[0])
			continue;
		if (found == n || !is_number(word))
			return refuse_line(r, "another number of words than expected, or a word that is not a number");
		ret[found] = strtod(word, &end);
		if (*end || !(fabs(ret[found]) <= VALUE_MAX))
			return refuse_line(r, "a word that is not a finite number below 1e12");
		found++;
	}
	return found == n ? 0 : refuse_line(r, "fewer numbers than expected");
}

/* Skip the lines before the numbers. */
static int skip_titles(struct reader *r)
{
	for (int i = 0; i < TITLES_MAX; i++) {
		int rc = next_line(r);

		if (rc < 0)
			return rc;
		if (rc == 0)
			break;
		if (!strncmp(r->text, "Fit", 3))
			return 0;
	}
	return refuse_line(r, "no line that begins with \"Fit\" before the numbers");
}

/* Does the next line belong to a view: has it four words? */
static bool view_follows(const struct reader *r)
{
	struct reader ahead = *r;
	char *word, *more = ahead.text;
	int words = 0;

	ahead.err = NULL;
	if (next_line(&ahead) <= 0)
		return false;
	while ((word = strsep(&more, " \t")))
		words += word[0] != '\0';
	return words == 4;
}

static int read_view(struct reader *r, struct pose_text *p, int view, int element, double *ret_value)
{
	double row[4];
	int rc = read_numbers(r, row, 4);

	if (rc < 0)
		return rc;
	if (row[0] != view || row[1] != element)
		return refuse_line(r, "views and elements do not follow each other");
	if (element == 0)
		p->theta[view] = row[2];
	if (p->theta[view] != row[2])
		return refuse_line(r, "the angle of the view is another one than in the first element");
	*ret_value = row[3];
	return 0;
}

static double cubic_at(const double c[4], double theta)
{
	return c[0] + theta * (c[1] + theta * (c[2] + theta * c[3]));
}

/* Check that the fit gives the values with the stated sum of squared errors. */
static int check_fit(struct reader *r, const struct pose_text *p, const double c[4], const double *value, double stated)
{
	double sum = 0, largest = 0;

	for (int i = 0; i < p->n_views; i++) {
		double off = value[i] - cubic_at(c, p->theta[i]);

		sum += off * off;
		largest = fmax(largest, fabs(value[i]));
	}
	if (fabs(sum - stated) <= SUM_TOLERANCE * fabs(stated) + p->n_views * (DIGIT * largest) * (DIGIT * largest))
		return 0;
	return err_set(r->err, EBADMSG,
		       "line %d of the projection matrices: the fit has a sum of squared errors of %g, but the line says %g",
		       r->line, sum, stated);
}

static int check_angles(struct reader *r, const struct pose_text *p)
{
	double lo = HUGE_VAL, hi = -HUGE_VAL;

	if (p->n_views < 2)
		return refuse_line(r, "fewer than two views before it");
	for (int i = 0; i < p->n_views; i++) {
		lo = fmin(lo, p->theta[i]);
		hi = fmax(hi, p->theta[i]);
		for (int j = 0; j < i; j++)
			if (p->theta[i] == p->theta[j])
				return refuse_line(r, "two views before it have the same angle");
	}
	if (!(lo >= -THETA_MAX && lo <= 0 && hi >= 0 && hi <= THETA_MAX))
		return err_set(r->err, EBADMSG,
			       "the projection matrices are at angles of %g to %g degrees; allowed: from -%g to 0, to 0 to %g",
			       lo, hi, THETA_MAX, THETA_MAX);
	return 0;
}

static int read_element(struct reader *r, struct pose_text *p, int element)
{
	double row[6], value[POSE_VIEWS_MAX];
	int n = 0, rc = 0;

	while (rc == 0 && (element == 0 ? view_follows(r) : n < p->n_views)) {
		if (n == POSE_VIEWS_MAX)
			return refuse_line(r, "more than 255 views");
		rc = read_view(r, p, n, element, &value[n]);
		n++;
	}
	p->n_views = n;
	if (rc == 0 && element == 0)
		rc = check_angles(r, p);
	if (rc == 0)
		rc = read_numbers(r, row, 6);
	if (rc < 0)
		return rc;
	if (row[0] != element)
		return refuse_line(r, "elements do not follow each other");
	memcpy(p->fit[element], row + 1, sizeof(p->fit[element]));
	return check_fit(r, p, p->fit[element], value, row[5]);
}

static int check_matrices(struct reader *r, const struct pose_text *p)
{
	double m[12];

	for (int i = 0; i < p->n_views; i++) {
		double norm;

		pose_text_matrix(p, p->theta[i], m);
		norm = sqrt(m[8] * m[8] + m[9] * m[9] + m[10] * m[10]);
		if (!(fabs(norm - 1) <= NORM_TOLERANCE))
			return err_set(r->err, EBADMSG,
				       "projection matrix of view %d: its third row, the detector's normal, has the length %g; "
				       "allowed: 1 (within %g)",
				       i, norm, NORM_TOLERANCE);
	}
	return 0;
}

int pose_text_read(const char *text, size_t size, struct pose_text *ret_pose, struct err *err)
{
	struct reader r = {.err = err};
	struct pose_text p = {0};
	int rc;

	while (size > 0 && (text[size - 1] == '\0' || strchr(" \t\r\n", text[size - 1])))
		size--;
	if (size > POSE_TEXT_MAX)
		return err_set(err, EBADMSG, "the projection matrices have %zu bytes; allowed: at most %d", size, POSE_TEXT_MAX);
	r.at = text;
	r.end = text + size;
	rc = skip_titles(&r);
	for (int j = 0; rc == 0 && j < 12; j++)
		rc = read_element(&r, &p, j);
	if (rc == 0 && r.at < r.end)
		rc = refuse_line(&r, "text follows after the last element");
	if (rc == 0)
		rc = check_matrices(&r, &p);
	if (rc == 0)
		*ret_pose = p;
	return rc;
}

void pose_text_matrix(const struct pose_text *pose, double theta, double ret_matrix[12])
{
	for (int j = 0; j < 12; j++)
		ret_matrix[j] = cubic_at(pose->fit[j], theta);
}
