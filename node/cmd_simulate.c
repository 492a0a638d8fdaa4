/* cmd_simulate.c - `tomonode simulate dbt`: a phantom's exam as DICOM files, the way a modality would write them. `simulate pet`
 * is node/cmd_simulate_pet.c, `simulate parallel` node/cmd_simulate_parallel.c. */
#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "node/options.h"
#include "node/plural.h"
#include "node/progress.h"
#include "node/simulate.h"
#include "node/simulate_parallel.h"
#include "node/simulate_pet.h"

enum {
	OPTION_SYSTEM = OPTION_LONG,
	OPTION_PHANTOM,
	OPTION_I0,
	OPTION_BINNING,
	OPTION_FORMAT,
	OPTION_SIDE,
	OPTION_VIEW,
	OPTION_GANTRY,
	OPTION_SEED,
	OPTION_THICKNESS,
	OPTION_NOISE_FREE,
	OPTION_INVERTED,
	OPTION_COLLIMATE,
	OPTION_VIEWS,
	OPTION_ARC,
	OPTION_DETECTOR,
	OPTION_STUDY,
	OPTION_FROM,
	OPTION_MATERIALS,
};

static const struct option_spec option_specs[] = {
	{'c', "config", "FILE", "configuration with further geometry profiles"},
	{'o', "output", "DIR", "folder for the objects and truth.json; made with its parents when it is missing"},
	{OPTION_SYSTEM, "system", "NAME",
	 "name of a geometry profile: siemens-inspiration (default), ge-essential, victre, or one of --config"},
	{OPTION_PHANTOM, "phantom", "KIND", "breast (default), slab, beads, voxels (needs --from, --materials)"},
	{OPTION_FROM, "from", "FILE", "of voxels: a MetaImage header (.mhd) of labels, its data beside it"},
	{OPTION_MATERIALS, "materials", "FILE", "of voxels: what the labels are, as in conf/materials-20keV.conf"},
	{OPTION_I0, "i0", "N", "mean counts of an unattenuated bin; default 10000, at least 10"},
	{OPTION_BINNING, "binning", "N", "a detector of N times the pitch; default 1"},
	{OPTION_FORMAT, "format", "FORMAT",
	 "mg (default): a Digital Mammography For Processing series; bp: one Breast Projection object"},
	{OPTION_SIDE, "side", "SIDE", "L (default), R"},
	{OPTION_VIEW, "view", "VIEW", "CC (default), MLO"},
	{OPTION_GANTRY, "gantry", "DEGREES", "tilt of an MLO; default 45, 20 to 80"},
	{OPTION_SEED, "seed", "N", "of phantom, noise and angles; default 1"},
	{OPTION_THICKNESS, "thickness", "MM", "of the compressed breast; default 50; voxels have their own"},
	{OPTION_NOISE_FREE, "noise-free", NULL, "the expectation instead of Poisson noise"},
	{OPTION_INVERTED, "inverted", NULL, "stored values fall with the intensity"},
	{OPTION_COLLIMATE, "collimate", "MM", "padding at both ends along the chest wall; default 0"},
	{OPTION_VIEWS, "views", "N", "projections, 2 to 200; default: the system's"},
	{OPTION_ARC, "arc", "DEGREES", "from the first to the last projection; default: the system's"},
	{OPTION_DETECTOR, "detector", "XxY", "bins away from and along the chest wall, before binning; default: the system's"},
	{OPTION_STUDY, "study", "UID", "Study Instance UID, to put several views into one study"},
	{0},
};

static const struct command_spec spec = {
	.name = "simulate",
	.usage = "dbt [OPTION]... -o DIR",
	.summary = "Write a phantom's tomosynthesis exam as DICOM objects, with a file that tells the truth about it.",
	.text = "Line integrals are analytic (of voxels: exact), noise is Poisson. The same options give the same exam, UIDs "
		"included. "
		"docs/geometry.md has\n"
		"the axes, the orientations of stored images and the contents of truth.json.\n"
		"`tomonode simulate pet --help` has the options of PET, `tomonode simulate parallel --help` those of parallel "
		"beams.",
	.options = option_specs,
	.json = true,
	.min_arguments = 1,
	.max_arguments = 1,
};

struct simulate {
	struct options o;
	struct simulate_options what;
	const char *conf_path, *folder, *system;
	bool given_views, given_arc, given_detector, given_thickness;
	bool voxels;
};

/* Which of the words is it? -1: none. */
static int choose(const char *value, const char *const *words)
{
	for (int i = 0; words[i]; i++)
		if (strcmp(value, words[i]) == 0)
			return i;
	return -1;
}

static bool read_detector(const char *text, struct simulate_options *w)
{
	char end;

	return sscanf(text, "%5dx%5d%c", &w->columns, &w->rows, &end) == 2 && w->columns >= 16 && w->rows >= 16;
}

static bool read_word(struct simulate *s, int id, const char *value)
{
	static const char *const phantoms[] = {"slab", "beads", "breast", "voxels", NULL}, *const formats[] = {"mg", "bp", NULL};
	static const char *const sides[] = {"L", "R", NULL}, *const views[] = {"CC", "MLO", NULL};
	static const enum phantom_kind kinds[] = {PHANTOM_SLAB, PHANTOM_BEADS, PHANTOM_BREAST};
	int i = choose(value, id == OPTION_PHANTOM  ? phantoms
			      : id == OPTION_FORMAT ? formats
			      : id == OPTION_SIDE   ? sides
						    : views);

	if (i < 0)
		return false;
	if (id == OPTION_PHANTOM) {
		s->voxels = i == 3;
		if (!s->voxels)
			s->what.phantom = kinds[i];
	} else if (id == OPTION_FORMAT)
		s->what.multi = i == 1;
	else if (id == OPTION_SIDE)
		s->what.side = sides[i][0];
	else
		snprintf(s->what.view, sizeof(s->what.view), "%s", views[i]);
	return true;
}

static bool read_option(struct simulate *s, int id, const char *value)
{
	struct simulate_options *w = &s->what;

	switch (id) {
	case 'c':
		s->conf_path = value;
		return true;
	case 'o':
		s->folder = value;
		return true;
	case OPTION_SYSTEM:
		s->system = value;
		return true;
	case OPTION_I0:
		return options_real(value, 10, 1e9, &w->i0) >= 0;
	case OPTION_BINNING:
		return options_int(value, 1, 64, &w->binning);
	case OPTION_GANTRY:
		return options_real(value, 20, 80, &w->gantry) >= 0;
	case OPTION_SEED:
		return options_seed(value, &w->seed);
	case OPTION_FROM:
		w->volume = value;
		return true;
	case OPTION_MATERIALS:
		w->materials = value;
		return true;
	case OPTION_THICKNESS:
		s->given_thickness = true;
		return options_real(value, 5, 300, &w->thickness) >= 0;
	case OPTION_NOISE_FREE:
		w->noise = false;
		return true;
	case OPTION_INVERTED:
		return w->inverted = true;
	case OPTION_COLLIMATE:
		return options_int(value, 0, 1000, &w->collimate);
	case OPTION_VIEWS:
		s->given_views = true;
		return options_int(value, 2, SIMULATE_VIEWS_MAX, &w->views);
	case OPTION_ARC:
		s->given_arc = true;
		return options_real(value, 0.1, 120, &w->arc) >= 0;
	case OPTION_DETECTOR:
		s->given_detector = true;
		return read_detector(value, w);
	case OPTION_STUDY:
		w->study = value;
		return options_uid(value);
	default:
		return read_word(s, id, value);
	}
}

static int read_options(struct simulate *s, int argc, char **argv)
{
	int id;

	options_begin(&s->o, &spec, argc, argv);
	while ((id = options_next(&s->o)) >= 0)
		if (!read_option(s, id, s->o.value))
			return options_refuse(&s->o, id);
	if (id == OPTION_STOP)
		return s->o.code;
	if (strcmp(argv[s->o.first], "dbt") != 0)
		return options_fail(&s->o, CODE_USAGE, "'%s' cannot be simulated; allowed: dbt, pet, parallel, as the first word",
				    argv[s->o.first]);
	if (!s->folder)
		return options_fail(&s->o, CODE_USAGE, "-o DIR is missing");
	if (s->voxels && (!s->what.volume || !s->what.materials))
		return options_fail(&s->o, CODE_USAGE, "a phantom of voxels needs --from FILE and --materials FILE");
	if (s->voxels && s->given_thickness)
		return options_fail(&s->o, CODE_USAGE, "--thickness: a phantom of voxels is as thick as its volume");
	if (!s->voxels && (s->what.volume || s->what.materials))
		return options_fail(&s->o, CODE_USAGE, "--from and --materials are for --phantom voxels");
	return -1;
}

static int unknown_system(const struct simulate *s, const struct config *config)
{
	char names[512] = "";

	for (size_t i = 0; i < config->n_profiles; i++)
		snprintf(names + strlen(names), sizeof(names) - strlen(names), "%s%s", i ? ", " : "", config->profiles[i].name);
	return options_fail(&s->o, CODE_NOT_FOUND, "no geometry profile '%s'; there are: %s", s->system, names);
}

/* The system's own figures where no option gave others; its geometry from the configuration. */
static int choose_system(struct simulate *s, const struct config *config)
{
	struct simulate_options *w = &s->what;

	for (size_t i = 0; i < config->n_profiles; i++)
		if (strcmp(config->profiles[i].name, s->system) == 0)
			w->profile = &config->profiles[i];
	if (!w->profile)
		return unknown_system(s, config);
	simulate_system_find(w->profile, &w->system);
	if (!s->given_views)
		w->views = w->system.views;
	if (!s->given_arc)
		w->arc = w->system.arc;
	if (!s->given_detector) {
		w->columns = w->system.columns;
		w->rows = w->system.rows;
	}
	return 0;
}

static int run(struct simulate *s)
{
	struct config *config = NULL;
	struct simulation *simulation = NULL;
	struct simulate_report report = {0};
	struct progress progress;
	struct err err = {0};
	int rc, code = options_config(&s->o, s->conf_path, &config);

	if (code)
		return code;
	code = choose_system(s, config);
	if (code)
		goto out;
	rc = simulate_plan(&s->what, &simulation, &err);
	if (rc < 0) {
		code = rc == -EINVAL ? options_fail(&s->o, CODE_USAGE, "%s", err.msg) : options_fail_err(&s->o, &err);
		goto out;
	}
	progress_start(&progress, !s->o.json);
	rc = simulate_run(simulation, s->folder, &progress.monitor, &report, &err);
	progress_stop(&progress);
	if (rc < 0)
		code = options_fail_err(&s->o, &err);
	else if (s->o.json)
		code = options_json(json_pack("{s:b, s:s, s:i, s:I, s:f, s:s, s:s}", "ok", 1, "folder", s->folder, "files",
					      report.files, "pixel_bytes", (json_int_t)report.bytes, "seconds", report.seconds,
					      "study", simulation->study, "series", simulation->series));
	else
		printf("%d object%s of %d x %d bins, %d projections, %.1f MB, in %.1f s: %s\n", report.files,
		       plural(report.files), simulation->n_u, simulation->n_v, s->what.views, (double)report.bytes / 1e6,
		       report.seconds, s->folder);
out:
	simulate_free(simulation);
	config_free(config);
	return code;
}

int cmd_simulate(int argc, char **argv)
{
	struct simulate s = {
		.system = "siemens-inspiration",
		.what = {.phantom = PHANTOM_BREAST,
			 .i0 = 10000,
			 .binning = 1,
			 .side = 'L',
			 .view = "CC",
			 .gantry = 45,
			 .seed = 1,
			 .thickness = 50,
			 .noise = true},
	};
	int code;

	if (argc > 1 && strcmp(argv[1], "pet") == 0)
		return cmd_simulate_pet(argc - 1, argv + 1);
	if (argc > 1 && strcmp(argv[1], "parallel") == 0)
		return cmd_simulate_parallel("simulate parallel", argc - 1, argv + 1);
	code = read_options(&s, argc, argv);

	return code < 0 ? run(&s) : code;
}
