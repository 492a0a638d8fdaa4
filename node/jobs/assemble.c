/* SPDX-License-Identifier: Apache-2.0 */
#include "node/jobs/assemble.h"
#include "node/base/plural.h"

#include <stdio.h>

void assemble_add(struct assemble *a, long expected, long frames, double received)
{
	if (a->instances == 0 || received < a->first)
		a->first = received;
	if (a->instances == 0 || received > a->last)
		a->last = received;
	if (a->instances == 0 || received > a->recorded)
		a->recorded = received;
	a->instances++;
	a->frames += frames > 0 ? frames : 1;
	if (expected > 0 && a->expected == 0)
		a->expected = expected;
	else if (expected > 0 && expected != a->expected)
		a->other = expected;
	a->as_is = false;
}

void assemble_lacks(struct assemble *a, const char *text)
{
	snprintf(a->lacks, sizeof(a->lacks), "%s", a->instances == 1 ? text : "");
}

void assemble_clamp_time(struct assemble *a, double now)
{
	if (a->last > now)
		a->last = now;
	if (a->first > now)
		a->first = now;
}

static bool is_complete(const struct assemble *a)
{
	return a->expected > 0 && a->other == 0 && a->instances == a->expected;
}

void assemble_decide(const struct assemble *a, double now, double quiet_time, struct assemble_decision *ret_answer)
{
	struct assemble_decision answer = {.verdict = ASSEMBLE_WAIT, .again = a->last + quiet_time};
	char *reason = answer.reason;
	size_t size = sizeof(answer.reason);

	if (a->instances > 0 && (a->as_is || is_complete(a))) {
		answer.verdict = ASSEMBLE_COMPLETE;
		if (is_complete(a))
			snprintf(reason, size, "%ld of %ld instance%s, %ld frame%s", a->instances, a->expected,
				 plural(a->expected), a->frames, plural(a->frames));
		else
			snprintf(reason, size, "%ld instance%s, %ld frame%s, reconstructed as they are at a person's request",
				 a->instances, plural(a->instances), a->frames, plural(a->frames));
	} else if (now < a->last) {
		answer.again = now + quiet_time; /* the last arrival is in the future, because the clock was set back: start a new
						    quiet time now */
		snprintf(reason, size, "waiting");
	} else if (now - a->last < quiet_time) {
		snprintf(reason, size, "waiting");
	} else if (a->usual > 0 && a->instances == a->usual) {
		answer.verdict = ASSEMBLE_COMPLETE;
		answer.after_quiet = true;
		if (a->expected > 0)
			snprintf(reason, size,
				 "%ld instances after %g s of quiet, as exams of this system have; the headers announce %ld",
				 a->instances, quiet_time, a->other > 0 ? a->other : a->expected);
		else
			snprintf(reason, size, "%ld instances after %g s of quiet, as exams of this system have", a->instances,
				 quiet_time);
	} else {
		answer.verdict = ASSEMBLE_HOLD;
		answer.after_quiet = true;
		if (a->instances == 0)
			snprintf(reason, size, "no instance after %g s of quiet", quiet_time);
		else if (a->other > 0)
			snprintf(reason, size, "the headers contradict each other: %ld and %ld instances expected, %ld received",
				 a->expected, a->other, a->instances);
		else if (a->expected == 0)
			snprintf(reason, size, "no header gives the number of instances; %ld received after %g s of quiet",
				 a->instances, quiet_time);
		else if (a->instances > a->expected)
			snprintf(reason, size, "%ld instance%s, but the headers expect %ld: more than one acquisition",
				 a->instances, plural(a->instances), a->expected);
		else
			snprintf(reason, size, "%ld of %ld instances after %g s of quiet%s%s%s", a->instances, a->expected,
				 quiet_time, a->lacks[0] ? ": " : "", a->lacks, a->lacks[0] ? " is missing" : "");
	}
	*ret_answer = answer;
}
