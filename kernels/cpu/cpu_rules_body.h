/* SPDX-License-Identifier: Apache-2.0 */
/* Loops that apply the formulas of kernels/rules.h to rows: one loop for each rule, so that the rule is a compile-time constant
 * and the compiler can vectorise the loop. A template without an include guard, included once per instruction set by a file that
 * defines ROWS(name) for the names of the functions and ROWS_TARGET for their attribute. */

ROWS_TARGET static inline __attribute__((always_inline)) void
ROWS(pairs_of)(enum rule_kind kind, const struct rule *rule, const float *restrict y, const float *restrict p,
	       const float *restrict row, const float *restrict mask, float *restrict q, float *restrict d, int n)
{
	struct rule r = *rule;

	r.kind = kind;
	for (int i = 0; i < n; i++) {
		float line = rule_needs_line(kind) ? p[i] : 0, length = rule_needs_length(kind) ? row[i] : 0;
		struct rule_pair pair = rule_bin(&r, y[i], line, length);
		bool on = !mask || mask[i] > 0;

		q[i] = on ? pair.q : 0; /* a masked bin may hold any value, even NaN */
		d[i] = on ? pair.d : 0;
	}
}

ROWS_TARGET static void ROWS(pairs)(const struct rule *rule, const float *y, const float *p, const float *row, const float *mask,
				    float *q, float *d, int n)
{
#define X(kind_of, bins, voxels)                                                                                                 \
	if (rule->kind == (kind_of))                                                                                             \
		ROWS(pairs_of)(bins, rule, y, p, row, mask, q, d, n);
	RULES(X)
#undef X
}

ROWS_TARGET static inline __attribute__((always_inline)) void ROWS(voxels_of)(enum rule_kind kind, const struct rule *rule,
									      const float *restrict num,
									      const float *restrict den, float *restrict x, int n)
{
	struct rule r = *rule;

	r.kind = kind;
	for (int i = 0; i < n; i++)
		x[i] = rule_voxel(&r, x[i], num[i], den[i]);
}

ROWS_TARGET static void ROWS(voxels)(const struct rule *rule, const float *num, const float *den, float *x, int n)
{
#define X(kind_of, bins, voxels)                                                                                                 \
	if (rule->kind == (kind_of))                                                                                             \
		ROWS(voxels_of)(voxels, rule, num, den, x, n);
	RULES(X)
#undef X
}

ROWS_TARGET static inline __attribute__((always_inline)) void ROWS(bins_of)(enum rule_kind kind, const struct rule *rule,
									    const float *restrict y, const float *p,
									    const float *restrict row, const float *restrict mult,
									    const float *restrict add, float *q, int n)
{
	struct rule r = *rule;

	r.kind = kind;
	for (int i = 0; i < n; i++) /* p may be q */
		q[i] = rule_data_bin(&r, y[i], p[i], rule_needs_length(kind) ? row[i] : 0, mult ? mult[i] : 1, add ? add[i] : 0);
}

/* The same with the pointers that are NULL as constants. */
ROWS_TARGET static inline __attribute__((always_inline)) void ROWS(bins_with)(enum rule_kind kind, const struct rule *rule,
									      const float *y, const float *p, const float *row,
									      const float *mult, const float *add, float *q,
									      int n)
{
	if (mult && add)
		ROWS(bins_of)(kind, rule, y, p, row, mult, add, q, n);
	else if (mult)
		ROWS(bins_of)(kind, rule, y, p, row, mult, NULL, q, n);
	else
		ROWS(bins_of)(kind, rule, y, p, row, NULL, add, q, n);
}

ROWS_TARGET static void ROWS(bins)(const struct rule *rule, const float *y, const float *p, const float *row, const float *mult,
				   const float *add, float *q, int n)
{
#define X(kind_of, same, voxels)                                                                                                 \
	if (rule->kind == (kind_of))                                                                                             \
		ROWS(bins_with)(same, rule, y, p, row, mult, add, q, n);
	RULES(X)
#undef X
}
