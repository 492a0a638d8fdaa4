/* job_unassigned.c - what was set apart, told by groups: an exam that was sent twice is one line of 25 objects, not 25 lines.
 *
 * A group has one classification, one sender, and reasons that say the same of different objects. What came over one association,
 * or one after the other without a long pause (senders that make an association for each image), is one group.
 */
#include <stdbool.h>
#include <string.h>

#include "node/jobs/job_report.h"

#define PAUSE 60.0 /* s */

static const char *text(const json_t *object, const char *key)
{
	const char *value = json_string_value(json_object_get(object, key));

	return value ? value : "";
}

static double received(const json_t *object, const char *key)
{
	return json_number_value(json_object_get(object, key));
}

/* A word that names the object itself: a number, a UID, a path. */
static bool is_name(const char *word, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (word[i] == '/' || (word[i] >= '0' && word[i] <= '9'))
			return true;
	return false;
}

/* Do two reasons say the same, of whatever object? */
static bool same_reason(const char *a, const char *b)
{
	while (*a && *b) {
		size_t n = strcspn(a, " "), m = strcspn(b, " ");

		if (!(is_name(a, n) && is_name(b, m)) && (n != m || memcmp(a, b, n) != 0))
			return false;
		a += n + (a[n] == ' ');
		b += m + (b[m] == ' ');
	}
	return !*a && !*b;
}

static bool belongs(const json_t *group, const json_t *one)
{
	return !strcmp(text(group, "classification"), text(one, "classification")) &&
	       !strcmp(text(group, "calling"), text(one, "calling")) && same_reason(text(group, "reason"), text(one, "reason")) &&
	       (!strcmp(text(group, "association"), text(one, "association")) ||
		received(group, "first_received") - received(one, "received") <= PAUSE);
}

json_t *job_report_unassigned_groups(const json_t *unassigned)
{
	json_t *groups = json_array(), *group;
	const json_t *one;
	size_t i, k;

	json_array_foreach(unassigned, i, one)
	{
		for (k = 0; k < json_array_size(groups) && !belongs(json_array_get(groups, k), one); k++)
			;
		group = json_array_get(groups, k);
		if (group) {
			json_object_set_new(group, "count",
					    json_integer(json_integer_value(json_object_get(group, "count")) + 1));
			json_object_set(group, "first_received", json_object_get(one, "received"));
			continue;
		}
		json_array_append_new(
			groups,
			json_pack("{s:O, s:O, s:O, s:O, s:O, s:O, s:O, s:i}", "instance", json_object_get(one, "instance"),
				  "classification", json_object_get(one, "classification"), "calling",
				  json_object_get(one, "calling"), "association", json_object_get(one, "association"), "received",
				  json_object_get(one, "received"), "first_received", json_object_get(one, "received"), "reason",
				  json_object_get(one, "reason"), "count", 1));
	}
	return groups;
}

const char *job_report_unassigned_hint(const json_t *group)
{
	if (!strcmp(text(group, "classification"), "refused"))
		return "Correct the cause given above, then let the sender send them again.";
	if (!strcmp(text(group, "classification"), "conflict"))
		return "The sender used one UID for two different contents: the node uses the first. Ask the sender which is "
		       "right.";
	return "Nothing has to be done, unless you expected a reconstruction.";
}
