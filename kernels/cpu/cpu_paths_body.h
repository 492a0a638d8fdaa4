/* SPDX-License-Identifier: Apache-2.0 */
/* The loops of the transaxial paths in C with compiler vectors. A template without an include guard: cpu_paths_loops.c includes
 * it once per instruction set and defines PATHS(name) for the names of the functions, PATHS_TARGET for their attribute,
 * PATHS_VECTOR for a vector of PATHS_FLOATS (4, 8 or 16) floats, and PATHS_SPLIT, PATHS_GATHER and PATHS_SCATTER if other
 * functions replace those in this file. */

#ifndef PATHS_SPLIT
#define PATHS_SPLIT PATHS(split)

PATHS_TARGET static int PATHS(split)(const struct cpu_slab *slab, const struct cpu_lane *lane, const struct cpu_ray *ray,
				     const float *restrict t, const float *restrict length, int n, float *restrict ret_weight,
				     int *restrict ret_place)
{
	const float slope = ray->slope, z = lane->z, inv = ray->inv, rise = ray->rise;
	const int lowest = lane->lowest, highest = lane->highest, front = slab->front + lane->base / 2, half = slab->half;
	int slice[CPU_PATH_BLOCK], end = n;
	float rest[CPU_PATH_BLOCK];

	for (int i = 0; i < n; i++) {
		float zs = slope * t[i] + z, rounded = zs + ROUNDING, upper;
		int32_t b, pair;

		memcpy(&b, &rounded, sizeof(b));
		b -= ROUNDING_BITS;
		upper = inv * (zs - (rounded - ROUNDING)) + rise;
		upper = upper < length[i] ? upper : length[i];
		pair = b >> 1;
		pair = pair < lowest ? lowest : pair > highest ? highest : pair;
		ret_weight[i] = upper;
		ret_place[i] = i * slab->row + front + pair + (b & 1) * half;
		rest[i] = length[i] - upper;
		slice[i] = b - 1;
	}
	for (int i = 0; i < n; i++) {
		int pair = slice[i] >> 1;

		if (!(rest[i] > 0))
			continue;
		pair = pair < lowest ? lowest : pair > highest ? highest : pair;
		ret_weight[end] = rest[i];
		ret_place[end++] = i * slab->row + front + pair + (slice[i] & 1) * half;
	}
	return end;
}
#endif

/* Add up `whole` vectors, plus 8 floats if `half` is set. Each vector has `ways` independent sums, so that an addition need not
 * wait for the previous one. */
PATHS_TARGET static inline __attribute__((always_inline)) void PATHS(forward_of)(int whole, bool half, int ways,
										 float *restrict sums, const float *restrict slab,
										 const float *restrict weight,
										 const int *restrict place, int n)
{
	PATHS_VECTOR w[4][8] = {0};
	vector8 h[4] = {0};
	int i = 0;

	for (; i + ways <= n; i += ways) {
#pragma GCC unroll 4
		for (int k = 0; k < ways; k++) {
			const float *from = slab + place[i + k];

#pragma GCC unroll 8
			for (int j = 0; j < whole; j++)
				w[k][j] += weight[i + k] * *(const PATHS_VECTOR *)(from + PATHS_FLOATS * j);
			if (half)
				h[k] += weight[i + k] * *(const vector8 *)(from + PATHS_FLOATS * whole);
		}
	}
	for (; i < n; i++) {
		const float *from = slab + place[i];

#pragma GCC unroll 8
		for (int j = 0; j < whole; j++)
			w[0][j] += weight[i] * *(const PATHS_VECTOR *)(from + PATHS_FLOATS * j);
		if (half)
			h[0] += weight[i] * *(const vector8 *)(from + PATHS_FLOATS * whole);
	}
#pragma GCC unroll 4
	for (int k = 1; k < ways; k++) {
#pragma GCC unroll 8
		for (int j = 0; j < whole; j++)
			w[0][j] += w[k][j];
		if (half)
			h[0] += h[k];
	}
#pragma GCC unroll 8
	for (int j = 0; j < whole; j++)
		*(PATHS_VECTOR *)(sums + PATHS_FLOATS * j) += w[0][j];
	if (half)
		*(vector8 *)(sums + PATHS_FLOATS * whole) += h[0];
}

/* The width of a lane as a number of vectors of PATHS_FLOATS floats, and whether 8 floats remain; number of sums per vector such
 * that all sums fit into 12 registers. */
#define PATHS_WHOLE(width) ((width) / PATHS_FLOATS)
#define PATHS_HALF(width) ((width) % PATHS_FLOATS == 8)
#define PATHS_WAYS(width) (PATHS_WHOLE(width) <= 3 ? 4 : 12 / PATHS_WHOLE(width))

PATHS_TARGET static void PATHS(forward)(float *restrict sums, const float *restrict slab, int width, const float *restrict weight,
					const int *restrict place, int n)
{
	float sum[4] = {0};
	int i = 0;

	switch (width) {
	case 8:
		PATHS(forward_of)(PATHS_WHOLE(8), PATHS_HALF(8), PATHS_WAYS(8), sums, slab, weight, place, n);
		break;
	case 16:
		PATHS(forward_of)(PATHS_WHOLE(16), PATHS_HALF(16), PATHS_WAYS(16), sums, slab, weight, place, n);
		break;
	case 24:
		PATHS(forward_of)(PATHS_WHOLE(24), PATHS_HALF(24), PATHS_WAYS(24), sums, slab, weight, place, n);
		break;
	case 32:
		PATHS(forward_of)(PATHS_WHOLE(32), PATHS_HALF(32), PATHS_WAYS(32), sums, slab, weight, place, n);
		break;
	default: /* one plane */
		for (; i + 4 <= n; i += 4)
			for (int k = 0; k < 4; k++)
				sum[k] += weight[i + k] * slab[place[i + k]];
		for (; i < n; i++)
			sum[0] += weight[i] * slab[place[i]];
		sums[0] += (sum[0] + sum[1]) + (sum[2] + sum[3]);
		break;
	}
}

PATHS_TARGET static inline __attribute__((always_inline)) void PATHS(back_of)(int whole, bool half, float *restrict slab,
									      const float *restrict bins,
									      const float *restrict weight,
									      const int *restrict place, int n)
{
	PATHS_VECTOR w[8] = {0};
	vector8 h = {0};

#pragma GCC unroll 8
	for (int j = 0; j < whole; j++)
		w[j] = *(const PATHS_VECTOR *)(bins + PATHS_FLOATS * j);
	if (half)
		h = *(const vector8 *)(bins + PATHS_FLOATS * whole);
	for (int i = 0; i < n; i++) {
		float *to = slab + place[i];

#pragma GCC unroll 8
		for (int j = 0; j < whole; j++)
			*(PATHS_VECTOR *)(to + PATHS_FLOATS * j) += weight[i] * w[j];
		if (half)
			*(vector8 *)(to + PATHS_FLOATS * whole) += weight[i] * h;
	}
}

PATHS_TARGET static void PATHS(back)(float *restrict slab, const float *restrict bins, int width, const float *restrict weight,
				     const int *restrict place, int n)
{
	switch (width) {
	case 8:
		PATHS(back_of)(PATHS_WHOLE(8), PATHS_HALF(8), slab, bins, weight, place, n);
		break;
	case 16:
		PATHS(back_of)(PATHS_WHOLE(16), PATHS_HALF(16), slab, bins, weight, place, n);
		break;
	case 24:
		PATHS(back_of)(PATHS_WHOLE(24), PATHS_HALF(24), slab, bins, weight, place, n);
		break;
	case 32:
		PATHS(back_of)(PATHS_WHOLE(32), PATHS_HALF(32), slab, bins, weight, place, n);
		break;
	default:
		for (int i = 0; i < n; i++)
			slab[place[i]] += weight[i] * bins[0];
		break;
	}
}

#undef PATHS_WHOLE
#undef PATHS_HALF
#undef PATHS_WAYS

#ifndef PATHS_GATHER
#define PATHS_GATHER PATHS(gather)
#define PATHS_SCATTER PATHS(scatter)

PATHS_TARGET static void PATHS(gather)(const struct cpu_slab *slab, float *restrict row, const float *restrict column,
				       const float *restrict other, float share)
{
	float *restrict even = row + slab->front, *restrict odd = even + slab->half;
	int pairs = slab->n_z / 2;

	if (!other) {
		for (int i = 0; i < pairs; i++) {
			even[i] = column[2 * i];
			odd[i] = column[2 * i + 1];
		}
		if (slab->n_z & 1)
			even[pairs] = column[2 * pairs];
		return;
	}
	for (int i = 0; i < pairs; i++) {
		even[i] = (1 - share) * column[2 * i] + share * other[2 * i];
		odd[i] = (1 - share) * column[2 * i + 1] + share * other[2 * i + 1];
	}
	if (slab->n_z & 1)
		even[pairs] = (1 - share) * column[2 * pairs] + share * other[2 * pairs];
}

PATHS_TARGET static void PATHS(scatter)(const struct cpu_slab *slab, const float *restrict row, float weight,
					float *restrict column)
{
	const float *restrict even = row + slab->front, *restrict odd = even + slab->half;
	int pairs = slab->n_z / 2;

	for (int i = 0; i < pairs; i++) {
		column[2 * i] += weight * even[i];
		column[2 * i + 1] += weight * odd[i];
	}
	if (slab->n_z & 1)
		column[2 * pairs] += weight * even[pairs];
}
#endif

PATHS_TARGET static void PATHS(load_bins)(const struct cpu_lane *lane, float stretch, const float *restrict bins,
					  float *restrict to)
{
	if (lane->stride == 1)
		for (int i = 0; i < lane->n; i++)
			to[i] = stretch * bins[i];
	else
		for (int i = 0; i < lane->n; i++)
			to[i] = stretch * bins[i * lane->stride];
	for (int i = lane->n; i < lane->width; i++)
		to[i] = 0;
}

PATHS_TARGET static void PATHS(store_bins)(const struct cpu_lane *lane, float stretch, const float *restrict sums, bool add,
					   float *restrict bins)
{
	for (int i = 0; i < lane->n; i++) {
		float *to = bins + i * lane->stride;

		*to = (add ? *to : 0) + stretch * sums[i];
	}
}

PATHS_TARGET static void PATHS(tof_windows)(const struct cpu_tof *tof, const float *restrict t, float stretch, int n,
					    int *restrict ret_first, float *restrict ret_weight)
{
	const double per_mm = tof->per_mm * stretch, offset = tof->offset, most = tof->n + 2.0 * tof->window;
	const float per_bin = tof->per_bin, last = tof->last;
	const int before = 2 * tof->window - 1, row = tof->row;
	int from[CPU_PATH_BLOCK];
	float share[CPU_PATH_BLOCK];

	for (int i = 0; i < n; i++) {
		double end = t[i] * per_mm + offset;
		int bin;
		float at;

		end = end < 0 ? 0 : end;
		end = end > most ? most : end;
		bin = (int)end;
		at = (float)(end - bin) * per_bin;
		at = at < last ? at : last;
		from[i] = (int)at;
		share[i] = at - (float)from[i];
		ret_first[i] = bin - before;
	}
	for (int i = 0; i < n; i++) {
		const float *weight = tof->weight + (size_t)from[i] * (size_t)row;

		for (int k = 0; k < row; k += 8) {
			vector8 here = *(const vector8 *)(weight + k);

			*(vector8 *)(ret_weight + (size_t)i * (size_t)row + k) =
				here + share[i] * (*(const vector8 *)(weight + row + k) - here);
		}
	}
}

/* Process `whole` vectors, or 8 floats if `half` is set, of the lane's planes, from plane `at`. */
PATHS_TARGET static inline __attribute__((always_inline)) const int *PATHS(tof_forward_of)(int whole, bool half, int bins, int at,
											   const struct cpu_run *run,
											   const float *restrict slab,
											   float *restrict sums)
{
	const float *restrict length = run->length, *restrict weight = run->weight, *restrict bin = run->bin;
	const int *restrict place = run->place, *restrict second = run->second_place;
	const int n = run->n, row = run->row, width = run->width;
	PATHS_VECTOR w[CPU_TOF_BINS][2] = {0};
	vector8 h[CPU_TOF_BINS] = {0};

	for (int i = 0; i < n; i++, bin += row) {
		const float *from = slab + place[i] + at;
		PATHS_VECTOR v[2] = {0};
		vector8 u = {0};
		float rest = length[i] - weight[i];

#pragma GCC unroll 2
		for (int j = 0; j < whole; j++)
			v[j] = weight[i] * *(const PATHS_VECTOR *)(from + PATHS_FLOATS * j);
		if (half)
			u = weight[i] * *(const vector8 *)from;
		if (rest > 0) {
			from = slab + *second++ + at;
#pragma GCC unroll 2
			for (int j = 0; j < whole; j++)
				v[j] += rest * *(const PATHS_VECTOR *)(from + PATHS_FLOATS * j);
			if (half)
				u += rest * *(const vector8 *)from;
		}
#pragma GCC unroll 8
		for (int k = 0; k < bins; k++) {
#pragma GCC unroll 2
			for (int j = 0; j < whole; j++)
				w[k][j] += bin[k] * v[j];
			if (half)
				h[k] += bin[k] * u;
		}
	}
#pragma GCC unroll 8
	for (int k = 0; k < bins; k++) {
		float *to = sums + k * width + at;

#pragma GCC unroll 2
		for (int j = 0; j < whole; j++)
			*(PATHS_VECTOR *)(to + PATHS_FLOATS * j) += w[k][j];
		if (half)
			*(vector8 *)to += h[k];
	}
	return second;
}

PATHS_TARGET static inline __attribute__((always_inline)) const int *PATHS(tof_back_of)(int whole, bool half, int bins, int at,
											const struct cpu_run *run,
											const float *restrict sums,
											float *restrict slab)
{
	const float *restrict length = run->length, *restrict weight = run->weight, *restrict bin = run->bin;
	const int *restrict place = run->place, *restrict second = run->second_place;
	const int n = run->n, row = run->row, width = run->width;
	PATHS_VECTOR w[CPU_TOF_BINS][2] = {0};
	vector8 h[CPU_TOF_BINS] = {0};

#pragma GCC unroll 8
	for (int k = 0; k < bins; k++) {
		const float *from = sums + k * width + at;

#pragma GCC unroll 2
		for (int j = 0; j < whole; j++)
			w[k][j] = *(const PATHS_VECTOR *)(from + PATHS_FLOATS * j);
		if (half)
			h[k] = *(const vector8 *)from;
	}
	for (int i = 0; i < n; i++, bin += row) {
		float *to = slab + place[i] + at;
		PATHS_VECTOR v[2] = {0};
		vector8 u = {0};
		float rest = length[i] - weight[i];

#pragma GCC unroll 8
		for (int k = 0; k < bins; k++) {
#pragma GCC unroll 2
			for (int j = 0; j < whole; j++)
				v[j] += bin[k] * w[k][j];
			if (half)
				u += bin[k] * h[k];
		}
#pragma GCC unroll 2
		for (int j = 0; j < whole; j++)
			*(PATHS_VECTOR *)(to + PATHS_FLOATS * j) += weight[i] * v[j];
		if (half)
			*(vector8 *)to += weight[i] * u;
		if (rest > 0) {
			to = slab + *second++ + at;
#pragma GCC unroll 2
			for (int j = 0; j < whole; j++)
				*(PATHS_VECTOR *)(to + PATHS_FLOATS * j) += rest * v[j];
			if (half)
				*(vector8 *)to += rest * u;
		}
	}
	return second;
}

/* The same for a lane of one plane: the bins are the vector. The weights after the last bin are read but not used. */
PATHS_TARGET static const int *PATHS(tof_forward_one)(const struct cpu_run *run, const float *restrict slab, float *restrict sums)
{
	const float *restrict bin = run->bin;
	const int *restrict second = run->second_place;
	vector8 sum = {0};

	for (int i = 0; i < run->n; i++, bin += run->row) {
		float value = run->weight[i] * slab[run->place[i]], rest = run->length[i] - run->weight[i];

		if (rest > 0)
			value += rest * slab[*second++];
		sum += value * *(const vector8 *)bin;
	}
	for (int k = 0; k < run->bins; k++)
		sums[k] += sum[k];
	return second;
}

PATHS_TARGET static const int *PATHS(tof_back_one)(const struct cpu_run *run, const float *restrict sums, float *restrict slab)
{
	const float *restrict bin = run->bin;
	const int *restrict second = run->second_place;

	for (int i = 0; i < run->n; i++, bin += run->row) {
		float value = 0, rest = run->length[i] - run->weight[i];

		for (int k = 0; k < run->bins; k++)
			value += bin[k] * sums[k];
		slab[run->place[i]] += run->weight[i] * value;
		if (rest > 0)
			slab[*second++] += rest * value;
	}
	return second;
}

/* Return the call for the run's number of bins, which the compiler then knows. */
#define PATHS_BY_BINS(call)                                                                                                      \
	switch (run->bins) {                                                                                                     \
	case 1:                                                                                                                  \
		return call(1);                                                                                                  \
	case 2:                                                                                                                  \
		return call(2);                                                                                                  \
	case 3:                                                                                                                  \
		return call(3);                                                                                                  \
	case 4:                                                                                                                  \
		return call(4);                                                                                                  \
	case 5:                                                                                                                  \
		return call(5);                                                                                                  \
	case 6:                                                                                                                  \
		return call(6);                                                                                                  \
	case 7:                                                                                                                  \
		return call(7);                                                                                                  \
	default:                                                                                                                 \
		return call(8);                                                                                                  \
	}

#define PATHS_FORWARD_TWO(bins) PATHS(tof_forward_of)(2, false, bins, at, run, slab, sums)
#define PATHS_FORWARD_WHOLE(bins) PATHS(tof_forward_of)(1, false, bins, at, run, slab, sums)
#define PATHS_FORWARD_HALF(bins) PATHS(tof_forward_of)(0, true, bins, at, run, slab, sums)
#define PATHS_BACK_TWO(bins) PATHS(tof_back_of)(2, false, bins, at, run, sums, slab)
#define PATHS_BACK_WHOLE(bins) PATHS(tof_back_of)(1, false, bins, at, run, sums, slab)
#define PATHS_BACK_HALF(bins) PATHS(tof_back_of)(0, true, bins, at, run, sums, slab)

/* Process at least one vector from plane `at`; *ret_width: how many floats. With AVX-512 there are registers for two vectors of
 * each bin, and half a vector may remain. */
PATHS_TARGET static const int *PATHS(tof_forward_part)(const struct cpu_run *run, int at, const float *restrict slab,
						       float *restrict sums, int *ret_width)
{
	int left = run->width - at;

	*ret_width = left >= 32 && PATHS_FLOATS == 16 ? 32 : left >= PATHS_FLOATS ? PATHS_FLOATS : 8;
	if (PATHS_FLOATS == 16 && left >= 32)
		PATHS_BY_BINS(PATHS_FORWARD_TWO)
	if (PATHS_FLOATS == 16 && left < 16)
		PATHS_BY_BINS(PATHS_FORWARD_HALF)
	PATHS_BY_BINS(PATHS_FORWARD_WHOLE)
}

PATHS_TARGET static const int *PATHS(tof_back_part)(const struct cpu_run *run, int at, const float *restrict sums,
						    float *restrict slab, int *ret_width)
{
	int left = run->width - at;

	*ret_width = left >= 32 && PATHS_FLOATS == 16 ? 32 : left >= PATHS_FLOATS ? PATHS_FLOATS : 8;
	if (PATHS_FLOATS == 16 && left >= 32)
		PATHS_BY_BINS(PATHS_BACK_TWO)
	if (PATHS_FLOATS == 16 && left < 16)
		PATHS_BY_BINS(PATHS_BACK_HALF)
	PATHS_BY_BINS(PATHS_BACK_WHOLE)
}

PATHS_TARGET static const int *PATHS(tof_forward)(const struct cpu_run *run, const float *slab, float *sums)
{
	const int *second = NULL;

	if (run->width == 1)
		return PATHS(tof_forward_one)(run, slab, sums);
	for (int at = 0, width; at < run->width; at += width)
		second = PATHS(tof_forward_part)(run, at, slab, sums, &width);
	return second;
}

PATHS_TARGET static const int *PATHS(tof_back)(const struct cpu_run *run, const float *sums, float *slab)
{
	const int *second = NULL;

	if (run->width == 1)
		return PATHS(tof_back_one)(run, sums, slab);
	for (int at = 0, width; at < run->width; at += width)
		second = PATHS(tof_back_part)(run, at, sums, slab, &width);
	return second;
}

#undef PATHS_BY_BINS
#undef PATHS_FORWARD_TWO
#undef PATHS_FORWARD_WHOLE
#undef PATHS_FORWARD_HALF
#undef PATHS_BACK_TWO
#undef PATHS_BACK_WHOLE
#undef PATHS_BACK_HALF

const struct cpu_path_loops PATHS(table) = {
	.split = PATHS_SPLIT,
	.forward = PATHS(forward),
	.back = PATHS(back),
	.gather = PATHS_GATHER,
	.scatter = PATHS_SCATTER,
	.load_bins = PATHS(load_bins),
	.store_bins = PATHS(store_bins),
	.tof_windows = PATHS(tof_windows),
	.tof_forward = PATHS(tof_forward),
	.tof_back = PATHS(tof_back),
};

#undef PATHS
#undef PATHS_TARGET
#undef PATHS_SPLIT
#undef PATHS_GATHER
#undef PATHS_SCATTER
#undef PATHS_VECTOR
#undef PATHS_FLOATS
