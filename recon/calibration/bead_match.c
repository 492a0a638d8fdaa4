/* SPDX-License-Identifier: Apache-2.0 */
/* bead_match.c - bead_tracks_match(): every pair of tracks is laid on every pair of beads that is as far apart, and the pose with
 * most matching beads wins. Of equal ones the one with the smaller distances; an unmirrored one before a mirrored one. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "recon/calibration/bead_track.h"

#define MATCHED_LEAST 3
#define MATCHED_PART 0.6  /* least part of the tracks, or of the beads if they are fewer: some match any phantom by accident */
#define PAIR_LEAST 20.0	  /* mm: nearer beads do not define a rotation */
#define FIRST_TRACKS 8	  /* tracks that pairs are made of; some of any eight are beads */
#define MIRRORED_MORE 1.5 /* score by which a mirrored pose must be better */

struct matcher {
	const struct bead_tracks *tracks;
	const double (*at)[3];
	int n_beads;
	double (*moved)[3]; /* the phantom's beads in the scan */
	int *bead, *best;   /* [track] */
	double score;
	bool mirrored;
};

/* Move the phantom so that beads a and b lie on tracks i and j. false: their distances differ. */
static bool lay_phantom(struct matcher *m, int i, int j, int a, int b, bool mirrored)
{
	const double *p = m->tracks->tracks[i].at, *q = m->tracks->tracks[j].at;
	double side = mirrored ? -1 : 1;
	double known[2] = {m->at[b][0] - m->at[a][0], side * (m->at[b][1] - m->at[a][1])}, seen[2] = {q[0] - p[0], q[1] - p[1]};
	double length = hypot(known[0], known[1]), c, s;

	if (!(length >= PAIR_LEAST) || fabs(length - hypot(seen[0], seen[1])) > BEAD_MATCH_IN_PLANE ||
	    fabs((q[2] - p[2]) - (m->at[b][2] - m->at[a][2])) > BEAD_MATCH_DEPTH)
		return false;
	c = (known[0] * seen[0] + known[1] * seen[1]) / (length * hypot(seen[0], seen[1]));
	s = (known[0] * seen[1] - known[1] * seen[0]) / (length * hypot(seen[0], seen[1]));
	for (int k = 0; k < m->n_beads; k++) {
		double x = m->at[k][0] - m->at[a][0], y = side * (m->at[k][1] - m->at[a][1]);

		m->moved[k][0] = p[0] + c * x - s * y;
		m->moved[k][1] = p[1] + s * x + c * y;
		m->moved[k][2] = p[2] + m->at[k][2] - m->at[a][2];
	}
	return true;
}

/* Find the nearest track of each bead, one bead for each track. Returns the score: matches, less a part below 1 for distances. */
static double score_match(struct matcher *m)
{
	double sum = 0;
	int n = 0;

	for (int i = 0; i < m->tracks->n; i++)
		m->bead[i] = -1;
	for (int k = 0; k < m->n_beads; k++) {
		double best = BEAD_MATCH_IN_PLANE;
		int track = -1;

		for (int i = 0; i < m->tracks->n; i++) {
			const double *p = m->tracks->tracks[i].at;
			double d = hypot(p[0] - m->moved[k][0], p[1] - m->moved[k][1]);

			if (d < best && m->bead[i] < 0 && fabs(p[2] - m->moved[k][2]) <= BEAD_MATCH_DEPTH) {
				best = d;
				track = i;
			}
		}
		if (track < 0)
			continue;
		m->bead[track] = k;
		n++;
		sum += best / BEAD_MATCH_IN_PLANE;
	}
	return n ? n - sum / (n + 1) : 0;
}

static void try_pairs(struct matcher *m, int i, int j, bool mirrored)
{
	for (int a = 0; a < m->n_beads; a++)
		for (int b = 0; b < m->n_beads; b++) {
			double found;

			if (a == b || !lay_phantom(m, i, j, a, b, mirrored))
				continue;
			found = score_match(m);
			if (!(found > m->score + (mirrored && !m->mirrored ? MIRRORED_MORE : 0)))
				continue;
			m->score = found;
			m->mirrored = mirrored;
			memcpy(m->best, m->bead, (size_t)m->tracks->n * sizeof(*m->best));
		}
}

int bead_tracks_match(const struct bead_tracks *tracks, const double (*at)[3], int n_beads, int *ret_bead, bool *ret_mirrored,
		      struct err *err)
{
	struct matcher m = {.tracks = tracks, .at = at, .n_beads = n_beads};
	int first = tracks->n < FIRST_TRACKS ? tracks->n : FIRST_TRACKS, rc = 0, n = 0;

	m.moved = calloc((size_t)n_beads + 1, sizeof(*m.moved));
	m.bead = calloc((size_t)tracks->n + 1, sizeof(*m.bead));
	m.best = calloc((size_t)tracks->n + 1, sizeof(*m.best));
	if (!m.moved || !m.bead || !m.best)
		rc = err_set(err, ENOMEM, "beads: no memory to match %d beads", n_beads);
	for (int i = 0; rc == 0 && i < tracks->n; i++)
		m.best[i] = -1;
	for (int mirrored = 0; rc == 0 && mirrored < 2; mirrored++)
		for (int i = 0; i < first; i++)
			for (int j = i + 1; j < first; j++)
				try_pairs(&m, i, j, mirrored);
	for (int i = 0; rc == 0 && i < tracks->n; i++)
		n += m.best[i] >= 0;
	if (rc == 0 && (n < MATCHED_LEAST || n < MATCHED_PART * (n_beads < tracks->n ? n_beads : tracks->n)))
		rc = err_set(err, ENODATA, "beads: only %d of %d beads of the exam fit the %d positions of the phantom", n,
			     tracks->n, n_beads);
	if (rc == 0) {
		memcpy(ret_bead, m.best, (size_t)tracks->n * sizeof(*ret_bead));
		*ret_mirrored = m.mirrored;
	}
	free(m.moved);
	free(m.bead);
	free(m.best);
	return rc;
}
