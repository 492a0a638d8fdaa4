/* SPDX-License-Identifier: Apache-2.0 */
/* pet_put.c - receive planes into a session, from several threads.
 *
 * Planes are received one by one but stored view by view, with the planes of a bin adjacent: BLOCK planes at a time are
 * transposed, each a float of the same cache line. The same pass checks every bin, adds it up and, if sensitivity images depend
 * on it, hashes it. Sums are computed in pieces of planes and angles that do not depend on the number of threads, and added in
 * order. */
#include <errno.h>
#include <float.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "recon/pet/pet_internal.h"

#define BLOCK 16
#define PIECES 8 /* pieces of the angles of a plane */

static const char *const role_names[PET_ROLES] = {"", "data", "factors", "background"};

/* Sums over one piece of the angles of a plane. */
struct piece {
	double all, seen;
	uint64_t hash;
	bool bad;
};

/* A plane that the caller has passed and that is to be stored. */
struct incoming_plane {
	int u; /* index in the bins of a radial bin: TOF bin k, plane u of the scan: k n_u + u */
	int i; /* index in the call */
};

/* Return the output function of the generator splitmix64 (Steele, Lea & Flood 2014), used as a hash. */
static inline uint64_t splitmix64(uint64_t z)
{
	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
	return z ^ (z >> 31);
}

uint64_t pet_hash(uint64_t hash, const void *bytes, size_t n)
{
	const unsigned char *at = bytes;

	for (size_t i = 0; i < n; i++)
		hash = splitmix64((hash ^ at[i]) + 0x9e3779b97f4a7c15u);
	return hash;
}

uint64_t pet_hash_row(const float *row, int n, uint64_t at)
{
	uint64_t sum = 0;

	for (int t = 0; t < n; t++) {
		uint32_t word;

		memcpy(&word, &row[t], sizeof(word));
		sum += splitmix64((at + (uint64_t)t + 1) * 0x9e3779b97f4a7c15u ^ ((uint64_t)word << 17));
	}
	return sum;
}

bool pet_takes_negative(const struct pet_session *s)
{
	return algorithm_info(s->p->algorithm)->filtered;
}

static float least_allowed(const struct pet_session *s, enum pet_role role)
{
	return role == PET_DATA && pet_takes_negative(s) ? -FLT_MAX : 0;
}

/* Return the sum of row[begin .. end - 1]; set *bad if a value is below `least` or not finite. */
static double add_row(const float *row, int begin, int end, float least, bool *bad)
{
	double sum = 0;
	int wrong = 0;

#pragma omp simd reduction(+ : sum) reduction(| : wrong)
	for (int t = begin; t < end; t++) {
		wrong |= !((row[t] >= least) & (row[t] <= FLT_MAX));
		sum += row[t];
	}
	*bad |= wrong;
	return sum;
}

/* Add a row to the sums of its piece, to its hash if it holds factors, and set `bad` if a value is not allowed. */
static void check_row(const struct pet_session *s, enum pet_role role, const float *row, uint64_t at, struct piece *piece)
{
	int n = s->layout.scan->n_v;
	float least = least_allowed(s, role);
	double seen = add_row(row, s->v_first, s->v_end, least, &piece->bad);

	piece->seen += seen;
	piece->all += seen + add_row(row, 0, s->v_first, least, &piece->bad) + add_row(row, s->v_end, n, least, &piece->bad);
	if (role == PET_FACTORS)
		piece->hash += pet_hash_row(row, n, at);
}

/* Copy n <= BLOCK rows of one angle into the stored order: n_v radial bins of n_u values. */
static void transpose_rows(size_t n_u, int n_v, const float *const *row, const struct incoming_plane *c, int n, float *to)
{

	if (n == BLOCK && c[BLOCK - 1].u - c[0].u == BLOCK - 1) {
		for (int t = 0; t < n_v; t++)
			for (int k = 0; k < BLOCK; k++)
				to[(size_t)t * n_u + (size_t)c[0].u + (size_t)k] = row[k][t];
		return;
	}
	for (int t = 0; t < n_v; t++)
		for (int k = 0; k < n; k++)
			to[(size_t)t * n_u + (size_t)c[k].u] = row[k][t];
}

static int compare_planes(const void *a, const void *b)
{
	return ((const struct incoming_plane *)a)->u - ((const struct incoming_plane *)b)->u;
}

static void describe_plane(const struct pet_session *s, enum pet_role role, int number, char *ret_text, size_t size)
{
	if (s->expected[role] > s->n_planes)
		snprintf(ret_text, size, "TOF bin %d, plane %d", number / s->n_planes, number % s->n_planes);
	else
		snprintf(ret_text, size, "plane %d", number);
}

static int refuse_value(const struct pet_session *s, enum pet_role role, int first, int n, const float *data, struct err *err)
{
	size_t n_t = (size_t)s->m->n_radial, n_a = (size_t)s->m->n_angles, i = 0, end = (size_t)n * n_a * n_t;
	float least = least_allowed(s, role);
	char plane[64];

	while (i < end - 1 && data[i] >= least && data[i] <= FLT_MAX)
		i++;
	describe_plane(s, role, first + (int)(i / (n_a * n_t)), plane, sizeof(plane));
	return err_set(err, EINVAL, "sinogram: %s of %s, angle %zu, radial bin %zu: %g; allowed: finite%s", role_names[role],
		       plane, i / n_t % n_a, i % n_t, (double)data[i], least < 0 ? "" : ", not negative");
}

static int place_of(const struct pet_session *s, int number)
{
	return number / s->n_planes * s->n_planes + s->u_of[number % s->n_planes];
}

static int store_planes(struct pet_session *s, enum pet_role role, int first, int n, const float *data, struct err *err)
{
	int n_a = s->m->n_angles, blocks = (n + BLOCK - 1) / BLOCK;
	size_t n_t = (size_t)s->m->n_radial, row_bins = pet_row(s, role), view_bins = pet_view(s, role);
	struct incoming_plane *incoming = malloc((size_t)n * sizeof(*incoming));
	struct piece *pieces = calloc((size_t)n * PIECES, sizeof(*pieces));
	bool bad = false;
	int r = 0;

	if (!incoming || !pieces) {
		r = err_set(err, ENOMEM, "sinogram: no memory to receive %d planes", n);
		goto out;
	}
	for (int i = 0; i < n; i++)
		incoming[i] = (struct incoming_plane){place_of(s, first + i), i};
	qsort(incoming, (size_t)n, sizeof(*incoming), compare_planes);
#pragma omp parallel for collapse(2) schedule(dynamic)
	for (int b = 0; b < blocks; b++) {
		for (int piece = 0; piece < PIECES; piece++) {
			const struct incoming_plane *c = incoming + b * BLOCK;
			int m = n - b * BLOCK < BLOCK ? n - b * BLOCK : BLOCK;

			for (int a = n_a * piece / PIECES; a < n_a * (piece + 1) / PIECES; a++) {
				const float *row[BLOCK];

				for (int k = 0; k < m; k++) {
					size_t at = ((size_t)c[k].i * (size_t)n_a + (size_t)a) * n_t;
					uint64_t number = (uint64_t)first * (uint64_t)n_a * n_t + at;

					row[k] = data + at;
					check_row(s, role, row[k], number, &pieces[(size_t)c[k].i * PIECES + (size_t)piece]);
				}
				transpose_rows(row_bins, (int)n_t, row, c, m,
					       s->host[role] + (size_t)s->layout.views.place[a] * view_bins);
			}
		}
	}
	for (int i = 0; i < n; i++) {
		struct pet_plane *plane = &s->plane[role][first + i];
		const struct piece *piece = &pieces[(size_t)i * PIECES];

		plane->all = plane->seen = 0;
		plane->hash = 0;
		for (int k = 0; k < PIECES; k++) {
			plane->all += piece[k].all;
			plane->seen += piece[k].seen;
			plane->hash += piece[k].hash;
			bad |= piece[k].bad;
		}
	}
	if (bad)
		r = refuse_value(s, role, first, n, data, err);
out:
	free(incoming);
	free(pieces);
	return r;
}

/* Mark planes [first, first + n) as being received; EINVAL: they are out of range, or were received before. */
static int claim_planes(struct pet_session *s, enum pet_role role, int first, int n, struct err *err)
{
	if (role < PET_DATA || role > PET_BACKGROUND || !s->has[role])
		return err_set(err, EINVAL, "sinogram: role %d%s%s was not announced to pet_open()", (int)role,
			       role > 0 && role < PET_ROLES ? ", " : "", role > 0 && role < PET_ROLES ? role_names[role] : "");
	if (first < 0 || n < 1 || n > s->expected[role] - first || s->done)
		return err_set(err, EINVAL, "sinogram: planes %d to %d of %d%s", first, first + n - 1, s->expected[role],
			       s->done ? " after pet_run()" : "");
	for (int i = first; i < first + n; i++)
		if (s->plane[role][i].begun)
			return err_set(err, EINVAL, "sinogram: %s of plane %d were already received", role_names[role], i);
	for (int i = first; i < first + n; i++)
		s->plane[role][i].begun = true;
	return 0;
}

int pet_put(struct pet_session *s, enum pet_role role, int first, int n, const float *data, struct err *err)
{
	int r;

	pthread_mutex_lock(&s->lock);
	r = claim_planes(s, role, first, n, err);
	pthread_mutex_unlock(&s->lock);
	if (r < 0)
		return r;
	r = store_planes(s, role, first, n, data, err);
	pthread_mutex_lock(&s->lock);
	for (int i = first; i < first + n; i++) {
		s->plane[role][i].begun = r == 0;
		s->plane[role][i].received = r == 0;
	}
	if (r == 0)
		s->n_received[role] += n;
	pthread_mutex_unlock(&s->lock);
	return r;
}
