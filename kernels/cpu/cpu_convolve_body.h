/* SPDX-License-Identifier: Apache-2.0 */
/* The inner loops of convolutions. A template without an include guard: cpu_convolve.c includes it once per instruction set and
 * defines CONVOLVE(name) for the names of the functions, CONVOLVE_TARGET for their attribute, CONVOLVE_VECTOR for a vector type
 * and CONVOLVE_FLOATS for its length.
 *
 * Sums stay in registers and are added in the order of j. */

/* Compute the results [i, i + vectors * CONVOLVE_FLOATS) as sums of shifted kernels; mirror[n - 1 + d] = kernel[|d|]. */
CONVOLVE_TARGET static inline __attribute__((always_inline)) void CONVOLVE(run)(const float *y, int n, const float *mirror, int i,
										int vectors, float *out)
{
	CONVOLVE_VECTOR sum[8] = {{0}}, *to = (CONVOLVE_VECTOR *)(out + i);

	for (int j = 0; j < n; j++) {
		const CONVOLVE_VECTOR *shifted = (const CONVOLVE_VECTOR *)(mirror + (n - 1 + i - j));

		for (int k = 0; k < vectors; k++)
			sum[k] += y[j] * shifted[k];
	}
	for (int k = 0; k < vectors; k++)
		to[k] = sum[k];
}

CONVOLVE_TARGET static void CONVOLVE(row)(const float *y, int n, const float *mirror, float *out)
{
	int i = 0;

	for (; i + 8 * CONVOLVE_FLOATS <= n; i += 8 * CONVOLVE_FLOATS)
		CONVOLVE(run)(y, n, mirror, i, 8, out);
	for (; i + CONVOLVE_FLOATS <= n; i += CONVOLVE_FLOATS)
		CONVOLVE(run)(y, n, mirror, i, 1, out);
	for (; i < n; i++) {
		float sum = 0;

		for (int j = 0; j < n; j++)
			sum += y[j] * mirror[n - 1 + i - j];
		out[i] = sum;
	}
}

/* Compute `results` results from i on, for two vectors of columns. */
CONVOLVE_TARGET static inline __attribute__((always_inline)) void
CONVOLVE(block)(const float *y, int n, size_t n_inner, const float *mirror, int i, int results, float *out)
{
	CONVOLVE_VECTOR a[4] = {{0}}, b[4] = {{0}};

	for (int j = 0; j < n; j++) {
		const CONVOLVE_VECTOR *from = (const CONVOLVE_VECTOR *)(y + (size_t)j * n_inner), c = from[0], d = from[1];
		const float *shifted = mirror + (n - 1 + i - j);

		for (int k = 0; k < results; k++) {
			a[k] += shifted[k] * c;
			b[k] += shifted[k] * d;
		}
	}
	for (int k = 0; k < results; k++) {
		CONVOLVE_VECTOR *to = (CONVOLVE_VECTOR *)(out + (size_t)(i + k) * n_inner);

		to[0] = a[k];
		to[1] = b[k];
	}
}

/* Compute the results [first, end) of `width` columns. */
CONVOLVE_TARGET static void CONVOLVE(columns)(const float *y, int n, size_t n_inner, const float *mirror, int first, int end,
					      size_t width, float *out)
{
	size_t k = 0;

	for (; k + 2 * CONVOLVE_FLOATS <= width; k += 2 * CONVOLVE_FLOATS) {
		int i = first;

		for (; i + 4 <= end; i += 4)
			CONVOLVE(block)(y + k, n, n_inner, mirror, i, 4, out + k);
		for (; i < end; i++)
			CONVOLVE(block)(y + k, n, n_inner, mirror, i, 1, out + k);
	}
	for (; k < width; k++)
		for (int i = first; i < end; i++) {
			float sum = 0;

			for (int j = 0; j < n; j++)
				sum += mirror[n - 1 + i - j] * y[(size_t)j * n_inner + k];
			out[(size_t)i * n_inner + k] = sum;
		}
}

static const struct loops CONVOLVE(loops) = {CONVOLVE(row), CONVOLVE(columns)};

#undef CONVOLVE
#undef CONVOLVE_TARGET
#undef CONVOLVE_VECTOR
#undef CONVOLVE_FLOATS
