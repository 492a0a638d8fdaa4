/* SPDX-License-Identifier: Apache-2.0 */
/* bench - measure the numeric libraries and print lines of JSON; for a build without DCMTK, and for measurements that `tomonode
 * bench` does not offer.
 *
 *   bench time [--device SPEC]... [--work NAME] [--size tiny|quick|normal|full] [--repeat N] [--stages]
 *              [--instructions baseline|avx2|avx512f] [SETTING]...
 *       The works of `tomonode bench` (recon/bench/bench.h): the same members, and the settings that were given. Default: all
 * works on all devices. --stages: the median of each stage of a run, each waited for: forward, bins, back, update (pet-mlem);
 *       filter, back (fbp-convolution). --instructions: those of an older CPU. Exit code 1: a work could not be run, or computed
 * wrong numbers. bench agree [--device A --device B] [--work dbt-osem|dbt-mlem] [--memory-limit BYTES] [--no-gap] [SETTING]...
 *       Whether two devices make the same image (agree.c).
 *   bench accuracy [--device SPEC] [SETTING]...
 *       The difference between a model of PET and the exact one (accuracy.c).
 *
 * SETTING: --voxels N|NXxNYxNZ, --views N, --fov MM, --model siddon|joseph|sampled|slices|exact, --rule
 * em|transmission|sart|backproject, --tile UxV, --deterministic, --turn RATIO; see struct bench_setup. */
#include "tests/bench/bench.h"

#include <getopt.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const models[] = {
	[PROJECTION_EXACT] = "exact",	[PROJECTION_SLICES] = "slices",	  [PROJECTION_PATHS] = "siddon",
	[PROJECTION_JOSEPH] = "joseph", [PROJECTION_SAMPLED] = "sampled",
};
static const char *const rules[] = {
	[RULE_EM] = "em",
	[RULE_TRANSMISSION] = "transmission",
	[RULE_SART] = "sart",
	[RULE_BACKPROJECT] = "backproject",
};
#define COUNT(names) (int)(sizeof(names) / sizeof((names)[0]))

static const struct {
	const char *name;
	int (*run)(const struct options *o);
} commands[] = {{"time", bench_time}, {"agree", bench_agree}, {"accuracy", bench_accuracy}};

static const struct option long_options[] = {
	{"device", 1, NULL, 'd'},
	{"work", 1, NULL, 'w'},
	{"size", 1, NULL, 's'},
	{"repeat", 1, NULL, 'n'},
	{"stages", 0, NULL, 'g'},
	{"memory-limit", 1, NULL, 'l'},
	{"no-gap", 0, NULL, 'a'},
	{"voxels", 1, NULL, 'x'},
	{"views", 1, NULL, 'v'},
	{"fov", 1, NULL, 'f'},
	{"model", 1, NULL, 'm'},
	{"rule", 1, NULL, 'u'},
	{"tile", 1, NULL, 't'},
	{"deterministic", 0, NULL, 'b'},
	{"turn", 1, NULL, 'r'},
	{"instructions", 1, NULL, 'i'},
	{0},
};

const char *model_name(enum projection_model model)
{
	return models[model];
}

double relative_difference(const float *a, const float *b, size_t n)
{
	double largest = 0, worst = 0;

	for (size_t i = 0; i < n; i++) {
		double d = fabs((double)a[i] - b[i]);

		largest = fmax(largest, fabs((double)b[i]));
		worst = d <= worst ? worst : d; /* NaN stays */
	}
	return worst / largest;
}

/* Return the index of a name; -1: not found. Elements that are NULL are skipped. */
static int find(const char *const *names, int n, const char *name)
{
	for (int i = 0; i < n; i++)
		if (names[i] && !strcmp(names[i], name))
			return i;
	return -1;
}

static bool parse_voxels(const char *text, int voxels[3])
{
	int n = sscanf(text, "%dx%dx%d", &voxels[0], &voxels[1], &voxels[2]);

	if (n == 1)
		voxels[1] = voxels[0];
	return n != 2 && voxels[0] > 1 && voxels[1] > 1 && (n == 1 || voxels[2] > 0);
}

static bool set_size(struct options *o, const char *value)
{
	o->setup.size = bench_size_find(value);
	return o->setup.size < BENCH_SIZES;
}

static bool set_device(struct options *o, const char *value)
{
	if (o->n_devices == DEVICES_MAX)
		return false;
	o->device[o->n_devices++] = value;
	return true;
}

/* Set an option that is not a setting (--device, --work and so on). */
static bool set_option(struct options *o, int option, const char *value)
{
	switch (option) {
	case 'd':
		return set_device(o, value);
	case 'w':
		o->work = value;
		return bench_work_find(value);
	case 's':
		return set_size(o, value);
	case 'n':
		o->repeat = atoi(value);
		return o->repeat > 0 && o->repeat <= BENCH_REPEAT_MAX;
	case 'l':
		o->memory_limit = strtoull(value, NULL, 10);
		return o->memory_limit > 0;
	case 'g':
		o->setup.stages = true;
		return true;
	case 'i':
		o->instructions = value;
		return true;
	default:
		o->gap = false;
		return option == 'a';
	}
}

static bool set_setting(struct options *o, int option, const char *value)
{
	struct bench_setup *s = &o->setup;
	int i;

	switch (option) {
	case 'x':
		return parse_voxels(value, s->voxels);
	case 'v':
		s->views = atoi(value);
		return s->views > 0;
	case 'f':
		s->fov_radius = atof(value);
		return s->fov_radius > 0;
	case 'm':
		i = find(models, COUNT(models), value);
		s->model = (enum projection_model)i;
		return i >= 0;
	case 'u':
		i = find(rules, COUNT(rules), value);
		s->rule = (enum rule_kind)i;
		return i >= 0;
	case 't':
		return sscanf(value, "%dx%d", &s->tile[0], &s->tile[1]) == 2 && s->tile[0] > 0 && s->tile[1] > 0;
	case 'r':
		s->turn = atof(value);
		return s->turn != 0;
	default:
		s->deterministic = true;
		return option == 'b';
	}
}

static bool parse(struct options *o, int argc, char **argv)
{
	int option, index = 0;

	while ((option = getopt_long(argc, argv, "", long_options, &index)) != -1) {
		if (!strchr("xvfmutbr", option)) {
			if (!set_option(o, option, optarg))
				return false;
			continue;
		}
		if (!set_setting(o, option, optarg) || o->n_settings == SETTINGS_MAX)
			return false;
		o->setting[o->n_settings].name = long_options[index].name;
		o->setting[o->n_settings++].value = optarg ? optarg : "true";
	}
	return optind == argc;
}

static int usage(void)
{
	fprintf(stderr,
		"usage: bench time [--device SPEC]... [--work NAME] [--size tiny|quick|normal|full] [--repeat N] [--stages]\n"
		"                  [--instructions baseline|avx2|avx512f]\n"
		"       bench agree [--device A --device B] [--work dbt-osem|dbt-mlem] [--memory-limit BYTES] [--no-gap]\n"
		"       bench accuracy [--device SPEC]\n"
		"each with [--voxels N|NXxNYxNZ] [--views N] [--fov MM] [--model siddon|joseph|sampled|slices|exact]\n"
		"       [--rule em|transmission|sart|backproject] [--tile UxV] [--deterministic] [--turn RATIO]\n"
		"works:");
	for (size_t i = 0; bench_work_at(i); i++)
		fprintf(stderr, " %s", bench_work_at(i)->name);
	fprintf(stderr, "\n");
	return 2;
}

int main(int argc, char **argv)
{
	struct options o = {.setup = {.size = BENCH_NORMAL}, .gap = true};

	if (argc < 2 || !parse(&o, argc - 1, argv + 1))
		return usage();
	for (int i = 0; i < COUNT(commands); i++)
		if (!strcmp(argv[1], commands[i].name))
			return commands[i].run(&o);
	return usage();
}
