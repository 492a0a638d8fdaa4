/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_simulate.c - `tomonode simulate dbt`: write a simulated exam of a phantom as DICOM files, as a modality would. `simulate
 * pet` is in node/command/cmd_simulate_pet.c, `simulate parallel` in node/command/cmd_simulate_parallel.c. */
#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "node/base/nearest.h"
#include "node/base/plural.h"
#include "node/command/commands.h"
#include "node/command/simulate_command.h"
#include "node/config/config.h"
#include "node/config/kind.h"
#include "node/simulate/simulate.h"
#include "node/simulate/simulate_parallel.h"
#include "node/simulate/simulate_pet.h"

#define THICKNESS 50 /* mm */
#define GLANDULAR 20 /* percent */

static const char *const phantoms[] = {"slab", "beads", "ellipsoids", "voxels", "calibration", "air", "breast", NULL};
static const char *const open_fields[] = {"uniform", "distance", NULL};
static const char *const formats[] = {"mg", "bp", NULL}, *const sides[] = {"L", "R", NULL}, *const views[] = {"CC", "MLO", NULL};
enum { PHANTOM_WORD_VOXELS = 3, PHANTOM_WORD_BREAST = 6 };

struct simulate {
	struct simulate_command base;
	struct simulate_options what; /* thickness, views, arc, columns 0: not given */
	const char *system;
	int format, side, view, open_field; /* indices of words */
	struct simulation *simulation;
	struct simulate_report report;
};

static const struct option_spec option_specs[] = {
	{'c', "config", "FILE", "configuration with further geometry profiles", INTO_TEXT(struct simulate, base.conf_path)},
	{'o', "output", "DIR", "folder for the objects and truth.json; created with its parents if missing",
	 INTO_FOLDER(struct simulate, base.folder)},
	{0, "system", "NAME",
	 "name of a geometry profile (tomonode check --verbose lists them), also of --config; default siemens-inspiration",
	 INTO_TEXT(struct simulate, system)},
	{0, "phantom", "KIND",
	 "breast (default): tissue from a seed; ellipsoids: breast of simple shapes; slab, beads, voxels (needs --from, "
	 "--materials), calibration (with phantom.json), air (for flat fields)",
	 INTO_WORD(struct simulate, base.phantom, phantoms)},
	{0, "from", "FILE", "voxels only: MetaImage header (.mhd) of a volume of labels; its data file is in the same folder",
	 INTO_TEXT(struct simulate, what.volume)},
	{0, "materials", "FILE", "voxels only: file with the material of each label, see conf/materials-20keV.conf",
	 INTO_TEXT(struct simulate, what.materials)},
	{0, "i0", "N", "mean number of photons in a bin without attenuation, before binning; default 10000, at least 10",
	 INTO_REAL(struct simulate, what.i0, 10, 1e9)},
	{0, "binning", "N", "combine N x N bins of the detector into one, 1 to 8, as many as recon reads; default 1",
	 INTO_INT(struct simulate, what.binning, 1, PROFILE_BINNING_MAX)},
	{0, "format", "FORMAT", "mg (default): a Digital Mammography For Processing series; bp: one Breast Projection object",
	 INTO_WORD(struct simulate, format, formats)},
	{0, "side", "SIDE", "laterality of the breast: L (default), R", INTO_WORD(struct simulate, side, sides)},
	{0, "view", "VIEW", "view of the breast: CC (default), MLO", INTO_WORD(struct simulate, view, views)},
	{0, "gantry", "DEGREES", "tilt of the MLO view, 20 to 80; default 45", INTO_REAL(struct simulate, what.gantry, 20, 80)},
	{0, "seed", "N", "seed of the random numbers for phantom, noise and angles; default 1",
	 INTO_SEED(struct simulate, what.seed)},
	{0, "thickness", "MM", "thickness of the compressed breast; default 50; breast: 20 to 100, voxels have their own",
	 INTO_REAL(struct simulate, what.thickness, 5, 300)},
	{0, "glandular", "PERCENT", "breast only: share of glandular tissue, 5 to 60; default 20",
	 INTO_REAL(struct simulate, what.glandular, BREAST_GLANDULAR_LEAST, BREAST_GLANDULAR_MOST)},
	{0, "clips", "N", "breast only: add N clips of titanium, 3 x 0.5 mm, at random places; 0 (default) to 20",
	 INTO_INT(struct simulate, what.clips, 0, BREAST_CLIPS_MOST)},
	{0, "noise-free", NULL, "write expected values, without Poisson noise", INTO_OFF(struct simulate, what.noise)},
	{0, "inverted", NULL, "stored values decrease where the intensity increases", INTO_ON(struct simulate, what.inverted)},
	{0, "scatter", "FACTOR",
	 "add scattered radiation from a Monte Carlo, times FACTOR: 1: as without anti-scatter grid; default 0",
	 INTO_REAL(struct simulate, what.scatter, 0, 10)},
	{0, "collimate", "MM", "width of the strips without data at both ends along the chest wall; default 0",
	 INTO_INT(struct simulate, what.collimate, 0, 1000)},
	{0, "open-field", "KIND",
	 "open beam: uniform (default); distance: as the distance and direction of the source make it, relative to 0 degrees",
	 INTO_WORD(struct simulate, open_field, open_fields)},
	{0, "heel", "PERCENT", "loss of intensity by the heel effect at the detector's far end; default 0",
	 INTO_REAL(struct simulate, what.heel, 0, 80)},
	{0, "exposure-swing", "PERCENT",
	 "largest deviation of a projection's exposure from the mean; default: 5 if the profile scales by it, else 0",
	 INTO_REAL(struct simulate, what.exposure_swing, 0, 80)},
	{0, "over-range", "PERCENT", "store more than PERCENT of I0 as the largest code; default 0: never",
	 INTO_REAL(struct simulate, what.over_range, 1, 100)},
	{0, "air", "PERCENT", "stretch the phantom so that this share of the bins shows air; default: the phantom's own size",
	 INTO_REAL(struct simulate, what.air, 0, 95)},
	{0, "views", "N", "number of projections, 2 to 200; default: that of the system",
	 INTO_INT(struct simulate, what.views, 2, SIMULATE_VIEWS_MAX)},
	{0, "arc", "DEGREES", "angle from the first to the last projection; default: that of the system",
	 INTO_REAL(struct simulate, what.arc, 0.1, 120)},
	{OPTION_LONG, "detector", "XxY",
	 "number of bins perpendicular to (X) and along (Y) the chest wall, before binning; default: that of the system"},
	{0, "window-x", "MM", "the images begin at this distance from the detector's chest-wall edge; default 0",
	 INTO_REAL(struct simulate, what.window[0], 0, 300)},
	{0, "window-y", "MM", "position along y of the middle of the images, from that of the detector; default 0",
	 INTO_REAL(struct simulate, what.window[1], -300, 300)},
	{0, "study", "UID", "Study Instance UID, to put several views into one study", INTO_UID(struct simulate, what.study)},
	{0},
};

static int simulate_dbt(int argc, char **argv);

static int simulate_pet(int argc, char **argv)
{
	return cmd_simulate_pet(argc - 1, argv + 1);
}

static int simulate_parallel(int argc, char **argv)
{
	return cmd_simulate_parallel("simulate parallel", argc - 1, argv + 1);
}

/* [kind of case, which the first word names]; NULL: this kind cannot be simulated. */
static int (*const simulators[KIND_COUNT])(int argc, char **argv) = {
	[KIND_DBT] = simulate_dbt, [KIND_PET] = simulate_pet, [KIND_PARALLEL] = simulate_parallel};

/* Return the name of the i-th kind of case that can be simulated. */
static const char *kind_name(size_t i)
{
	for (int kind = 0; kind < KIND_COUNT; kind++)
		if (simulators[kind] && i-- == 0)
			return kind_of((enum case_kind)kind)->name;
	return NULL;
}

static const struct command_spec spec = {
	.name = "simulate",
	.usage = "dbt [OPTION]... -o DIR",
	.summary = "Write a simulated tomosynthesis exam of a phantom as DICOM objects, with its true values in truth.json.",
	.text = "Line integrals are computed from formulas (for breast and voxels: exact path lengths), the noise is Poisson noise. The "
		"same\n"
		"options give the same exam, including its UIDs. docs/geometry.md describes the axes, the orientations of "
		"stored\n"
		"images and the contents of truth.json. For other modalities see `tomonode simulate pet --help` and\n"
		"`tomonode simulate parallel --help`.",
	.options = option_specs,
	.json = true,
	.min_arguments = 1,
	.max_arguments = 1,
	.examples = "tomonode simulate dbt --binning 4 -o exam\n"
		    "tomonode simulate pet --scanner ge-discovery-ste --attenuation -o sinograms\n"
		    "tomonode simulate parallel --phantom head --angles 300 --slices 16 -o lines\n",
	.word = kind_name,
};

/* Read the value of --detector. */
static bool read_detector(struct simulate_command *c)
{
	struct simulate_options *w = &((struct simulate *)c)->what;
	char end;

	return sscanf(c->o.value, "%5dx%5d%c", &w->columns, &w->rows, &end) == 2 && w->columns >= 16 && w->rows >= 16;
}

/* Convert the words, and set the default thickness. */
static void apply_words(struct simulate *s)
{
	static const enum phantom_kind kinds[] = {PHANTOM_SLAB,	       PHANTOM_BEADS, PHANTOM_ELLIPSOIDS, PHANTOM_ELLIPSOIDS,
						  PHANTOM_CALIBRATION, PHANTOM_AIR,   PHANTOM_ELLIPSOIDS};

	s->what.phantom = kinds[s->base.phantom];
	s->what.breast = s->base.phantom == PHANTOM_WORD_BREAST;
	s->what.multi = s->format == 1;
	if (s->what.glandular == 0)
		s->what.glandular = GLANDULAR;
	s->what.open_distance = s->open_field == 1;
	s->what.side = sides[s->side][0];
	snprintf(s->what.view, sizeof(s->what.view), "%s", views[s->view]);
	if (s->what.thickness == 0)
		s->what.thickness = THICKNESS;
}

static const char *simulated_name(const void *ctx, size_t i)
{
	(void)ctx;
	return kind_name(i);
}

static int not_simulated(const struct options *o, const char *word)
{
	char allowed[200] = "", hint[NEAREST_HINT];

	for (size_t i = 0; kind_name(i); i++)
		snprintf(allowed + strlen(allowed), sizeof(allowed) - strlen(allowed), "%s, ", kind_name(i));
	return options_fail(o, CODE_USAGE, "'%s' cannot be simulated%s; allowed: %sas the first word", word,
			    nearest_hint(nearest_word(word, simulated_name, NULL), hint), allowed);
}

static int check_dbt(struct simulate_command *c)
{
	struct simulate *s = (struct simulate *)c;
	const char *word = c->o.argv[c->o.first];
	bool voxels = c->phantom == PHANTOM_WORD_VOXELS, breast = c->phantom == PHANTOM_WORD_BREAST;

	if (strcmp(word, kind_dbt.name) != 0)
		return not_simulated(&c->o, word);
	if (voxels && (!s->what.volume || !s->what.materials))
		return options_fail(&c->o, CODE_USAGE, "a phantom of voxels needs --from FILE and --materials FILE");
	if (voxels && s->what.thickness > 0)
		return options_fail(&c->o, CODE_USAGE, "--thickness: a phantom of voxels is as thick as its volume");
	if (!voxels && (s->what.volume || s->what.materials))
		return options_fail(&c->o, CODE_USAGE, "--from and --materials are for --phantom voxels");
	if (!breast && (s->what.glandular > 0 || s->what.clips > 0))
		return options_fail(&c->o, CODE_USAGE, "--glandular and --clips are for --phantom breast");
	apply_words(s);
	return CODE_OK;
}

/* Find the geometry profile, and complete the options with the values of its system. */
static int choose_profile(struct simulate_command *c, const struct config *config)
{
	struct simulate *s = (struct simulate *)c;
	struct simulate_options *w = &s->what;

	for (size_t i = 0; i < config->n_profiles; i++)
		if (strcmp(config->profiles[i].name, s->system) == 0)
			w->profile = &config->profiles[i];
	if (!w->profile)
		return simulate_not_found(&c->o, "geometry profile", s->system, config->profiles[0].name, config->n_profiles,
					  sizeof(config->profiles[0]));
	simulate_system_find(w->profile, &w->system);
	if (w->views == 0)
		w->views = w->system.views;
	if (w->arc == 0)
		w->arc = w->system.arc;
	if (w->columns == 0) {
		w->columns = w->system.columns;
		w->rows = w->system.rows;
	}
	return CODE_OK;
}

static int plan_dbt(struct simulate_command *c, struct err *err)
{
	struct simulate *s = (struct simulate *)c;

	return simulate_plan(&s->what, &s->simulation, err);
}

static int run_dbt(struct simulate_command *c, const struct monitor *monitor, struct err *err)
{
	struct simulate *s = (struct simulate *)c;

	return simulate_run(s->simulation, c->folder, monitor, &s->report, err);
}

static int print_dbt(struct simulate_command *c)
{
	const struct simulate *s = (const struct simulate *)c;
	const struct simulation *simulation = s->simulation;
	const struct simulate_report *report = &s->report;

	if (c->o.json)
		return options_json(json_pack("{s:b, s:s, s:i, s:I, s:f, s:s, s:s}", "ok", 1, "folder", c->folder, "files",
					      report->files, "pixel_bytes", (json_int_t)report->bytes, "seconds", report->seconds,
					      "study", simulation->study, "series", simulation->series));
	printf("%d object%s of %d x %d bins, %d projections, %.1f MB, in %.1f s: %s\n", report->files, plural(report->files),
	       simulation->n_u, simulation->n_v, s->what.views, (double)report->bytes / 1e6, report->seconds, c->folder);
	if (s->what.clips > 0 && simulation->pitch > BREAST_CLIP_WIDTH)
		printf("  The clips are %g mm thick, less than a bin of %g mm: metal = \"reduce\" may not find them. Use a smaller --binning.\n",
		       BREAST_CLIP_WIDTH, simulation->pitch);
	return CODE_OK;
}

static void clear_dbt(struct simulate_command *c)
{
	struct simulate *s = (struct simulate *)c;

	simulate_free(s->simulation);
	s->simulation = NULL;
}

static int simulate_dbt(int argc, char **argv)
{
	static const struct simulator simulator = {&spec,    read_detector, check_dbt, choose_profile,
						   plan_dbt, run_dbt,	    print_dbt, clear_dbt};
	struct simulate s = {
		.base = {.phantom = PHANTOM_WORD_BREAST},
		.system = "siemens-inspiration",
		.what = {.i0 = 10000, .binning = 1, .gantry = 45, .seed = 1, .noise = true, .exposure_swing = -1, .air = -1},
	};

	return simulate_command(&s.base, &simulator, argc, argv);
}

const struct kind *simulate_bench_exam(bool full, const char *folder, const char **ret_words)
{
	static const char *const large[] = {"--phantom", "slab", NULL};
	static const char *const tiny[] = {"--phantom", "beads", "--detector", "512x512", "--binning", "8", "--views", "3", NULL};
	const struct kind *kind = kind_of(KIND_DBT);
	size_t n = 0;

	ret_words[n++] = kind->name;
	for (const char *const *word = full ? large : tiny; *word; word++)
		ret_words[n++] = *word;
	ret_words[n++] = "-o";
	ret_words[n++] = folder;
	ret_words[n] = NULL;
	return kind;
}

int cmd_simulate(int argc, char **argv)
{
	const struct kind *kind = argc > 1 ? kind_named(argv[1]) : NULL;

	return kind && simulators[kind_id(kind)] ? simulators[kind_id(kind)](argc, argv) : simulate_dbt(argc, argv);
}
