/* SPDX-License-Identifier: Apache-2.0 */
/* The inner loops of list mode. A template without an include guard: cpu_events_loops.c includes it once per instruction set and
 * defines EVENTS(name) for the names of the functions and EVENTS_TARGET for their attribute. */

EVENTS_TARGET static void EVENTS(samples)(const struct events_model *m, const float *table, const struct cpu_event_strides *s,
					  const struct event_line *line, const struct cpu_event_samples *ret)
{
	const struct event_line l = *line;
	const struct events_model model = *m;
	const struct cpu_event_strides to = *s;
	int32_t *restrict at = ret->at;
	float *restrict u0 = ret->u0, *restrict u1 = ret->u1, *restrict v0 = ret->v0, *restrict v1 = ret->v1;

	for (int j = 0; j < l.n; j++) {
		float w = l.length * event_tof(&model, table, &l, (float)j), a, b, c, d;
		int u, v;

		event_pair(l.at[0] + (float)j * l.step[0], l.base[0], to.n_u, false, &u, &a, &b);
		event_pair(l.at[1] + (float)j * l.step[1], l.base[1], to.n_v, to.ends, &v, &c, &d);
		at[j] = (l.first + j) * to.main + u * to.u + v * to.v;
		u0[j] = w * a;
		u1[j] = w * b;
		v0[j] = c;
		v1[j] = d;
	}
}

EVENTS_TARGET static float EVENTS(dot)(const struct cpu_event_samples *sample, int n, const struct cpu_event_strides *s,
				       const float *x)
{
	const int32_t *restrict at = sample->at;
	const float *restrict u0 = sample->u0, *restrict u1 = sample->u1, *restrict v0 = sample->v0, *restrict v1 = sample->v1;
	const float *right = x + s->next_u, *up = x + s->next_v, *both = right + s->next_v;
	float sum = 0;

#pragma omp simd reduction(+ : sum)
	for (int j = 0; j < n; j++)
		sum += u0[j] * (v0[j] * x[at[j]] + v1[j] * up[at[j]]) + u1[j] * (v0[j] * right[at[j]] + v1[j] * both[at[j]]);
	return sum;
}

const struct cpu_event_loops EVENTS(table) = {.samples = EVENTS(samples), .dot = EVENTS(dot)};

#undef EVENTS
#undef EVENTS_TARGET
