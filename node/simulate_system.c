/* simulate_system.c - the systems that can be simulated: what their headers say; where their parts stand is in their geometry profiles.
 * Serial numbers say that nothing real is meant. */
#include <string.h>

#include "node/simulate.h"

static const struct simulate_system systems[] = {
	{"siemens-inspiration", "SIEMENS", "MAMMOMAT Inspiration", "SIMULATED", "TUNGSTEN", "RHODIUM", 2816, 3584, 25, 50},
	{"ge-essential", "GE MEDICAL SYSTEMS", "Senographe Essential", "SIMULATED", "RHODIUM", "RHODIUM", 2394, 2850, 9, 25},
	{"victre", "VICTRE", "VICTRE DBT", "SIMULATED", "TUNGSTEN", "RHODIUM", 1500, 3000, 25, 50},
};

const struct simulate_system *simulate_system(const char *profile)
{
	for (size_t i = 0; i < sizeof(systems) / sizeof(systems[0]); i++)
		if (strcmp(systems[i].profile, profile) == 0)
			return &systems[i];
	return NULL;
}

const char *simulate_system_names(void)
{
	return "siemens-inspiration, ge-essential, victre";
}
