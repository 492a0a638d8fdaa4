/* simulate_system.c - the systems that can be simulated: their header values. Positions of their parts are in the geometry
 * profiles. Serial numbers show that they are not real systems. */
#include <stdio.h>
#include <string.h>

#include "node/simulate/simulate.h"

static const struct simulate_system systems[] = {
	{"siemens-inspiration", "SIEMENS", "MAMMOMAT Inspiration", "SIMULATED", "TUNGSTEN", "RHODIUM", 2816, 3584, 25, 50},
	{"ge-essential", "GE MEDICAL SYSTEMS", "Senographe Essential", "SIMULATED", "RHODIUM", "RHODIUM", 2394, 2850, 9, 25},
	{"victre", "VICTRE", "VICTRE DBT", "SIMULATED", "TUNGSTEN", "RHODIUM", 1500, 3000, 25, 50},
};

void simulate_matching_text(const char *pattern, const char *other, char *ret_text, size_t size)
{
	size_t n = 0;

	for (const char *c = pattern; *c && n + 1 < size; c++)
		if (*c != '*')
			ret_text[n++] = *c == '?' ? 'X' : *c;
	ret_text[n] = '\0';
	if (n == 0)
		snprintf(ret_text, size, "%s", other);
}

void simulate_system_find(const struct profile_conf *profile, struct simulate_system *ret_system)
{
	for (size_t i = 0; i < sizeof(systems) / sizeof(systems[0]); i++)
		if (strcmp(systems[i].profile, profile->name) == 0) {
			*ret_system = systems[i];
			return;
		}
	*ret_system = systems[0];
	snprintf(ret_system->profile, sizeof(ret_system->profile), "%s", profile->name);
	simulate_matching_text(profile->manufacturer, "SIMULATED", ret_system->manufacturer, sizeof(ret_system->manufacturer));
	simulate_matching_text(profile->model, "SIMULATED", ret_system->model, sizeof(ret_system->model));
	simulate_matching_text(profile->serial, "SIMULATED", ret_system->serial, sizeof(ret_system->serial));
}
