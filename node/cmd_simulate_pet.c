/* cmd_simulate_pet.c - `tomonode simulate pet`: a phantom in a PET scanner as sinogram objects. */
#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "node/options.h"
#include "node/plural.h"
#include "node/progress.h"
#include "node/simulate_pet.h"

enum {
	OPTION_SCANNER = OPTION_LONG,
	OPTION_PHANTOM,
	OPTION_RADIUS,
	OPTION_LENGTH,
	OPTION_SIZE,
	OPTION_COUNTS,
	OPTION_NOISE_FREE,
	OPTION_ATTENUATION,
	OPTION_RANDOMS,
	OPTION_SEED,
	OPTION_POSITION,
	OPTION_STUDY,
	OPTION_INTERFILE,
};

static const struct option_spec option_specs[] = {
	{'c', "config", "FILE", "configuration with further scanners"},
	{'o', "output", "DIR", "folder for the objects and truth.json; made with its parents when it is missing"},
	{OPTION_SCANNER, "scanner", "NAME", "ge-discovery-ste (default), siemens-mmr, small, or one of --config"},
	{OPTION_PHANTOM, "phantom", "KIND", "nema-iq (default), cylinder, f-shape"},
	{OPTION_RADIUS, "radius", "MM", "of a cylinder; default 100"},
	{OPTION_LENGTH, "length", "MM", "of a cylinder; default 200"},
	{OPTION_SIZE, "size", "FACTOR", "on all lengths of the phantom; default 1, less where it does not fit the scanner"},
	{OPTION_COUNTS, "counts", "N", "expected counts of the activity in all bins; default 5e7"},
	{OPTION_NOISE_FREE, "noise-free", NULL, "the expectation instead of Poisson noise"},
	{OPTION_ATTENUATION, "attenuation", NULL, "the phantom attenuates; its factors are written, too"},
	{OPTION_RANDOMS, "randoms", "FRACTION", "of the counts, spread evenly; they are written, too; default 0"},
	{OPTION_SEED, "seed", "N", "of the noise; default 1"},
	{OPTION_POSITION, "position", "POSITION", "HFS (default), HFP, HFDR, HFDL, FFS, FFP, FFDR, FFDL"},
	{OPTION_STUDY, "study", "UID", "Study Instance UID"},
	{OPTION_INTERFILE, "interfile", NULL, "Interfile headers and data (.hs, .s) instead of objects"},
	{0},
};

static const struct command_spec spec = {
	.name = "simulate pet",
	.usage = "[OPTION]... -o DIR",
	.summary = "Write what a PET scanner measures of a phantom as DICOM objects, with a file that tells the truth about it.",
	.text = "Line integrals are analytic, noise is Poisson. The same options give the same objects, UIDs included.\n"
		"docs/pet-geometry.md has the axes, the phantoms and the contents of truth.json.",
	.options = option_specs,
	.json = true,
	.min_arguments = 0,
	.max_arguments = 0,
};

struct simulate {
	struct options o;
	struct simulate_pet_options what;
	const char *conf_path, *folder, *scanner;
	bool given_cylinder;
};

static bool read_phantom(struct simulate *s, const char *value)
{
	for (int kind = PET_PHANTOM_CYLINDER; kind <= PET_PHANTOM_F; kind++)
		if (strcmp(value, pet_phantom_name((enum pet_phantom_kind)kind)) == 0) {
			s->what.phantom = (enum pet_phantom_kind)kind;
			return true;
		}
	return false;
}

static bool read_option(struct simulate *s, int id, const char *value)
{
	struct simulate_pet_options *w = &s->what;

	switch (id) {
	case 'c':
		s->conf_path = value;
		return true;
	case 'o':
		s->folder = value;
		return true;
	case OPTION_SCANNER:
		s->scanner = value;
		return true;
	case OPTION_PHANTOM:
		return read_phantom(s, value);
	case OPTION_RADIUS:
		s->given_cylinder = true;
		return options_real(value, 0.1, 1000, &w->radius) >= 0;
	case OPTION_LENGTH:
		s->given_cylinder = true;
		return options_real(value, 0.1, 5000, &w->length) >= 0;
	case OPTION_SIZE:
		return options_real(value, 0.01, 10, &w->size) >= 0;
	case OPTION_COUNTS:
		return options_real(value, 1, 1e12, &w->counts) >= 0;
	case OPTION_NOISE_FREE:
		w->noise = false;
		return true;
	case OPTION_ATTENUATION:
		return w->attenuation = true;
	case OPTION_RANDOMS:
		return options_real(value, 0, 100, &w->randoms) >= 0;
	case OPTION_SEED:
		return options_seed(value, &w->seed);
	case OPTION_POSITION:
		return snprintf(w->position, sizeof(w->position), "%s", value) < (int)sizeof(w->position);
	case OPTION_STUDY:
		w->study = value;
		return options_uid(value);
	default:
		return w->interfile = true;
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
	if (!s->folder)
		return options_fail(&s->o, CODE_USAGE, "-o DIR is missing");
	if (s->given_cylinder && s->what.phantom != PET_PHANTOM_CYLINDER)
		return options_fail(&s->o, CODE_USAGE, "--radius and --length are for --phantom cylinder");
	return -1;
}

static int unknown_scanner(const struct simulate *s, const struct config *config)
{
	char names[512] = "";

	for (size_t i = 0; i < config->n_scanners; i++)
		snprintf(names + strlen(names), sizeof(names) - strlen(names), "%s%s", i ? ", " : "", config->scanners[i].name);
	return options_fail(&s->o, CODE_NOT_FOUND, "no scanner '%s'; there are: %s", s->scanner, names);
}

static int print_report(const struct simulate *s, const struct simulate_pet *simulation, const struct simulate_pet_report *report)
{
	size_t bins = michelogram_size(&simulation->m);

	if (s->o.json)
		return options_json(json_pack("{s:b, s:s, s:i, s:I, s:f, s:f, s:f, s:s}", "ok", 1, "folder", s->folder, "files",
					      report->files, "bins", (json_int_t)bins, "counts", report->counts, "size",
					      simulation->size, "seconds", report->seconds, "study", simulation->study));
	printf("%d %s%s, %d plane%s of %d angles and %d radial bins, %.4g counts, in %.1f s: %s\n", report->files,
	       s->what.interfile ? "header" : "object", plural(report->files), simulation->scan->n_u,
	       plural(simulation->scan->n_u), simulation->m.n_angles, simulation->m.n_radial, report->counts, report->seconds,
	       s->folder);
	if (simulation->size < 1 && !(s->what.size > 0))
		printf("the phantom was made %.3g times as large to fit the scanner\n", simulation->size);
	return 0;
}

static int run(struct simulate *s)
{
	struct config *config = NULL;
	struct simulate_pet *simulation = NULL;
	struct simulate_pet_report report = {0};
	struct progress progress;
	struct err err = {0};
	int rc, code = options_config(&s->o, s->conf_path, &config);

	if (code)
		return code;
	s->what.scanner = config_scanner_named(config, s->scanner);
	if (!s->what.scanner) {
		code = unknown_scanner(s, config);
		goto out;
	}
	rc = simulate_pet_plan(&s->what, &simulation, &err);
	if (rc < 0) {
		code = rc == -EINVAL ? options_fail(&s->o, CODE_USAGE, "%s", err.msg) : options_fail_err(&s->o, &err);
		goto out;
	}
	progress_start(&progress, !s->o.json);
	rc = simulate_pet_run(simulation, s->folder, &progress.monitor, &report, &err);
	progress_stop(&progress);
	code = rc < 0 ? options_fail_err(&s->o, &err) : print_report(s, simulation, &report);
out:
	simulate_pet_free(simulation);
	config_free(config);
	return code;
}

int cmd_simulate_pet(int argc, char **argv)
{
	struct simulate s = {
		.scanner = "ge-discovery-ste",
		.what = {.phantom = PET_PHANTOM_NEMA_IQ,
			 .radius = PET_CYLINDER_RADIUS,
			 .length = PET_CYLINDER_LENGTH,
			 .counts = SIMULATE_PET_COUNTS,
			 .noise = true,
			 .seed = 1,
			 .position = "HFS"},
	};
	int code = read_options(&s, argc, argv);

	return code < 0 ? run(&s) : code;
}
