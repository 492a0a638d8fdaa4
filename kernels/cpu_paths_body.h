/* The loops of the transaxial paths in C with vectors of the compiler. Included once per instruction set, with PATHS(name) to
 * name a function, PATHS_TARGET for its attribute, and PATHS_SPLIT for the function that makes entries where that is not the one
 * in here. No include guard: it is a template. */

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

/* `wide` vectors of 16 and then `narrow` ones of 8 floats; several sums each, so that an addition need not wait for the one
 * before. */
PATHS_TARGET static inline __attribute__((always_inline)) void PATHS(forward_of)(int wide, int narrow, int ways,
										 float *restrict sums, const float *restrict slab,
										 const float *restrict weight,
										 const int *restrict place, int n)
{
	vector16 w[4][2] = {0};
	vector8 h[4] = {0};
	int i = 0;

	for (; i + ways <= n; i += ways) {
#pragma GCC unroll 4
		for (int k = 0; k < ways; k++) {
			const float *from = slab + place[i + k];

#pragma GCC unroll 2
			for (int j = 0; j < wide; j++)
				w[k][j] += weight[i + k] * *(const vector16 *)(from + 16 * j);
			if (narrow)
				h[k] += weight[i + k] * *(const vector8 *)(from + 16 * wide);
		}
	}
	for (; i < n; i++) {
		const float *from = slab + place[i];

#pragma GCC unroll 2
		for (int j = 0; j < wide; j++)
			w[0][j] += weight[i] * *(const vector16 *)(from + 16 * j);
		if (narrow)
			h[0] += weight[i] * *(const vector8 *)(from + 16 * wide);
	}
#pragma GCC unroll 4
	for (int k = 1; k < ways; k++) {
#pragma GCC unroll 2
		for (int j = 0; j < wide; j++)
			w[0][j] += w[k][j];
		if (narrow)
			h[0] += h[k];
	}
#pragma GCC unroll 2
	for (int j = 0; j < wide; j++)
		*(vector16 *)(sums + 16 * j) += w[0][j];
	if (narrow)
		*(vector8 *)(sums + 16 * wide) += h[0];
}

PATHS_TARGET static void PATHS(forward)(float *restrict sums, const float *restrict slab, int width, const float *restrict weight,
					const int *restrict place, int n)
{
	float sum[4] = {0};
	int i = 0;

	switch (width) {
	case 8:
		PATHS(forward_of)(0, 1, 4, sums, slab, weight, place, n);
		break;
	case 16:
		PATHS(forward_of)(1, 0, 4, sums, slab, weight, place, n);
		break;
	case 24:
		PATHS(forward_of)(1, 1, 4, sums, slab, weight, place, n);
		break;
	case 32:
		PATHS(forward_of)(2, 0, 2, sums, slab, weight, place, n);
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

PATHS_TARGET static inline __attribute__((always_inline)) void PATHS(back_of)(int wide, int narrow, float *restrict slab,
									      const float *restrict bins,
									      const float *restrict weight,
									      const int *restrict place, int n)
{
	vector16 w[2] = {0};
	vector8 h = {0};

#pragma GCC unroll 2
	for (int j = 0; j < wide; j++)
		w[j] = *(const vector16 *)(bins + 16 * j);
	if (narrow)
		h = *(const vector8 *)(bins + 16 * wide);
	for (int i = 0; i < n; i++) {
		float *to = slab + place[i];

#pragma GCC unroll 2
		for (int j = 0; j < wide; j++)
			*(vector16 *)(to + 16 * j) += weight[i] * w[j];
		if (narrow)
			*(vector8 *)(to + 16 * wide) += weight[i] * h;
	}
}

PATHS_TARGET static void PATHS(back)(float *restrict slab, const float *restrict bins, int width, const float *restrict weight,
				     const int *restrict place, int n)
{
	switch (width) {
	case 8:
		PATHS(back_of)(0, 1, slab, bins, weight, place, n);
		break;
	case 16:
		PATHS(back_of)(1, 0, slab, bins, weight, place, n);
		break;
	case 24:
		PATHS(back_of)(1, 1, slab, bins, weight, place, n);
		break;
	case 32:
		PATHS(back_of)(2, 0, slab, bins, weight, place, n);
		break;
	default:
		for (int i = 0; i < n; i++)
			slab[place[i]] += weight[i] * bins[0];
		break;
	}
}

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

PATHS_TARGET static void PATHS(take)(const struct cpu_lane *lane, float stretch, const float *restrict bins, float *restrict to)
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

PATHS_TARGET static void PATHS(put)(const struct cpu_lane *lane, float stretch, const float *restrict sums, bool add,
				    float *restrict bins)
{
	for (int i = 0; i < lane->n; i++) {
		float *to = bins + i * lane->stride;

		*to = (add ? *to : 0) + stretch * sums[i];
	}
}

const struct cpu_path_loops PATHS(table) = {
	.split = PATHS_SPLIT,
	.forward = PATHS(forward),
	.back = PATHS(back),
	.gather = PATHS_GATHER,
	.scatter = PATHS_SCATTER,
	.take = PATHS(take),
	.put = PATHS(put),
};
