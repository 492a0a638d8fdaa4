/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_simulate_pet.c - `tomonode simulate pet`: write a PET scan of a phantom as sinogram objects. */
#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "node/base/plural.h"
#include "node/base/progress.h"
#include "node/command/commands.h"
#include "node/process/options.h"
#include "node/simulate/simulate_pet.h"

struct simulate {
	struct options o;
	struct simulate_pet_options what; /* radius, length 0: not said */
	const char *conf_path, *folder, *scanner;
};

static const struct option_spec option_specs[] = {
	{'c', "config", "FILE", "configuration with further scanners", INTO_TEXT(struct simulate, conf_path)},
	{'o', "output", "DIR", "folder for the objects and truth.json; created with its parents if missing",
	 INTO_TEXT(struct simulate, folder)},
	{0, "scanner", "NAME", "ge-discovery-ste (default), siemens-mmr, small, or one of --config",
	 INTO_TEXT(struct simulate, scanner)},
	{OPTION_LONG, "phantom", "KIND", "nema-iq (default), cylinder, f-shape"},
	{0, "radius", "MM", "radius of the cylinder; default 100", INTO_REAL(struct simulate, what.radius, 0.1, 1000)},
	{0, "length", "MM", "length of the cylinder; default 200", INTO_REAL(struct simulate, what.length, 0.1, 5000)},
	{0, "size", "FACTOR", "factor for all lengths of the phantom; default 1, less if it does not fit the scanner",
	 INTO_REAL(struct simulate, what.size, 0.01, 10)},
	{0, "counts", "N", "expected counts of the activity in all bins; default 5e7",
	 INTO_REAL(struct simulate, what.counts, 1, 1e12)},
	{0, "noise-free", NULL, "expected values without Poisson noise", INTO_OFF(struct simulate, what.noise)},
	{0, "attenuation", NULL, "the phantom attenuates; also write the attenuation factors",
	 INTO_ON(struct simulate, what.attenuation)},
	{0, "randoms", "FRACTION", "fraction of the counts that are randoms, spread evenly; also write them; default 0",
	 INTO_REAL(struct simulate, what.randoms, 0, 100)},
	{0, "seed", "N", "seed of the noise; default 1", INTO_SEED(struct simulate, what.seed)},
	{0, "position", "POSITION", "HFS (default), HFP, HFDR, HFDL, FFS, FFP, FFDR, FFDL",
	 INTO_CHARS(struct simulate, what.position)},
	{0, "study", "UID", "Study Instance UID", INTO_UID(struct simulate, what.study)},
	{0, "interfile", NULL, "write Interfile headers and data (.hs, .s) instead of objects",
	 INTO_ON(struct simulate, what.interfile)},
	{0},
};

static const struct command_spec spec = {
	.name = "simulate pet",
	.usage = "[OPTION]... -o DIR",
	.summary = "Write a simulated PET scan of a phantom as DICOM objects, with its true values in truth.json.",
	.text = "Line integrals are analytic, noise is Poisson. The same options give the same objects and UIDs.\n"
		"See docs/pet-geometry.md for the axes, the phantoms and the contents of truth.json.",
	.options = option_specs,
	.json = true,
	.min_arguments = 0,
	.max_arguments = 0,
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

static int read_options(struct simulate *s, int argc, char **argv)
{
	int id;

	options_begin(&s->o, &spec, argc, argv);
	s->o.into = s;
	while ((id = options_next(&s->o)) >= 0)
		if (!read_phantom(s, s->o.value))
			return options_refuse(&s->o, id);
	if (id == OPTION_STOP)
		return s->o.code;
	if (!s->folder)
		return options_fail(&s->o, CODE_USAGE, "-o DIR is missing");
	if ((s->what.radius > 0 || s->what.length > 0) && s->what.phantom != PET_PHANTOM_CYLINDER)
		return options_fail(&s->o, CODE_USAGE, "--radius and --length are for --phantom cylinder");
	if (s->what.radius == 0)
		s->what.radius = PET_CYLINDER_RADIUS;
	if (s->what.length == 0)
		s->what.length = PET_CYLINDER_LENGTH;
	return -1;
}

static int unknown_scanner(const struct simulate *s, const struct config *config)
{
	char names[512] = "";

	for (size_t i = 0; i < config->n_scanners; i++)
		snprintf(names + strlen(names), sizeof(names) - strlen(names), "%s%s", i ? ", " : "", config->scanners[i].name);
	return options_fail(&s->o, CODE_NOT_FOUND, "no scanner '%s'; available: %s", s->scanner, names);
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
			 .counts = SIMULATE_PET_COUNTS,
			 .noise = true,
			 .seed = 1,
			 .position = "HFS"},
	};
	int code = read_options(&s, argc, argv);

	return code < 0 ? run(&s) : code;
}
