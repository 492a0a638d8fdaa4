/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_simulate_pet.c - `tomonode simulate pet`: write a PET scan of a phantom as sinogram objects. */
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "node/base/plural.h"
#include "node/command/simulate_command.h"
#include "node/simulate/simulate_pet.h"

struct simulate {
	struct simulate_command base;
	struct simulate_pet_options what; /* radius, length 0: not given */
	const char *scanner, *beds;
	struct simulate_pet *simulation;
	struct simulate_pet_report report;
};

static const struct option_spec option_specs[] = {
	{'c', "config", "FILE", "configuration with further scanners", INTO_TEXT(struct simulate, base.conf_path)},
	{'o', "output", "DIR", "folder for the objects and truth.json; created with its parents if missing",
	 INTO_FOLDER(struct simulate, base.folder)},
	{0, "scanner", "NAME", "ge-discovery-ste (default), siemens-mmr, small, or one of --config",
	 INTO_TEXT(struct simulate, scanner)},
	{0, "phantom", "KIND", "nema-iq (default), cylinder, f-shape",
	 INTO_WORD(struct simulate, base.phantom, pet_phantom_names)},
	{0, "radius", "MM", "radius of the cylinder; default 100", INTO_REAL(struct simulate, what.radius, 0.1, 1000)},
	{0, "length", "MM", "length of the cylinder; default 200", INTO_REAL(struct simulate, what.length, 0.1, 5000)},
	{0, "size", "FACTOR", "factor for all lengths of the phantom; default 1, or less if it would not fit into the scanner",
	 INTO_REAL(struct simulate, what.size, 0.01, 10)},
	{0, "counts", "N", "expected number of true coincidences, sum of all bins; default 5e7",
	 INTO_REAL(struct simulate, what.counts, 1, 1e12)},
	{0, "noise-free", NULL, "write expected values, without Poisson noise", INTO_OFF(struct simulate, what.noise)},
	{0, "attenuation", NULL, "simulate attenuation in the phantom; also write the attenuation factors",
	 INTO_ON(struct simulate, what.attenuation)},
	{0, "randoms", "FRACTION", "randoms as a fraction of --counts, the same number in each bin; also write them; default 0",
	 INTO_REAL(struct simulate, what.randoms, 0, 100)},
	{0, "delayeds", NULL,
	 "randoms that follow the singles of the detectors, which differ; instead of the randoms write delayed\ncoincidences; "
	 "for "
	 "scanners without arc correction",
	 INTO_ON(struct simulate, what.delayeds)},
	{0, "singles", NULL, "the same randoms; instead of them write the single events of the detectors, from which they follow",
	 INTO_ON(struct simulate, what.singles)},
	{0, "beds", "N,STEP",
	 "N bed positions, STEP mm from one to the next, around the middle of the phantom: a whole-body\nacquisition; --counts "
	 "is their "
	 "sum",
	 INTO_TEXT(struct simulate, beds)},
	{OPTION_LONG, "tof", "N,WIDTH,RESOLUTION",
	 "time of flight: N bins of WIDTH ps, measured with a full width at half maximum of RESOLUTION ps; or off;\ndefault: as "
	 "the scanner (docs/pet-geometry.md)"},
	{0, "seed", "N", "seed of the noise; default 1", INTO_SEED(struct simulate, what.seed)},
	{0, "position", "POSITION", "position of the patient: HFS (default), HFP, HFDR, HFDL, FFS, FFP, FFDR, FFDL",
	 INTO_CHARS(struct simulate, what.position)},
	{0, "study", "UID", "Study Instance UID", INTO_UID(struct simulate, what.study)},
	{0, "interfile", NULL, "write Interfile headers and data (.hs, .s) instead of objects",
	 INTO_ON(struct simulate, what.interfile)},
	{0, "petsird", NULL,
	 "also write the events as list mode, scan.petsird; the sinograms then have span 1 and no arc\ncorrection",
	 INTO_ON(struct simulate, what.petsird)},
	{0},
};

static const struct command_spec spec = {
	.name = "simulate pet",
	.usage = "[OPTION]... -o DIR",
	.summary = "Write a simulated PET scan of a phantom as DICOM objects, with its true values in truth.json.",
	.text = "Line integrals are computed from formulas, the noise is Poisson noise. The same options give the same objects "
		"and\n"
		"UIDs. docs/pet-geometry.md describes the axes, the phantoms and the contents of truth.json.",
	.options = option_specs,
	.json = true,
	.min_arguments = 0,
	.max_arguments = 0,
	.examples = "tomonode simulate pet --scanner ge-discovery-ste --attenuation -o sinograms\n"
		    "tomonode simulate pet --scanner small --interfile -o scan\n"
		    "tomonode simulate pet --phantom cylinder --length 400 --beds 3,120 --attenuation -o body\n",
};

/* Read the value of --tof. The michelogram is checked with it. */
static bool read_tof(struct simulate_command *c)
{
	struct simulate_pet_options *w = &((struct simulate *)c)->what;
	char end;

	if (!strcmp(c->o.value, "off")) {
		w->tof_bins = 0;
		return true;
	}
	return sscanf(c->o.value, "%6d,%lf,%lf%c", &w->tof_bins, &w->tof_width, &w->tof_resolution, &end) == 3 && w->tof_bins > 0;
}

static int check_pet(struct simulate_command *c)
{
	struct simulate *s = (struct simulate *)c;
	char end;

	if (s->beds && (sscanf(s->beds, "%6d,%lf%c", &s->what.beds, &s->what.bed_step, &end) != 2 || s->what.beds < 1 ||
			!isfinite(s->what.bed_step)))
		return options_fail(&c->o, CODE_USAGE, "--beds %s; allowed: the number of beds and the mm between them, as 3,120",
				    s->beds);
	s->what.phantom = (enum pet_phantom_kind)(c->phantom + 1);
	if ((s->what.radius > 0 || s->what.length > 0) && s->what.phantom != PET_PHANTOM_CYLINDER)
		return options_fail(&c->o, CODE_USAGE, "--radius and --length are for --phantom cylinder");
	if (s->what.radius == 0)
		s->what.radius = PET_CYLINDER_RADIUS;
	if (s->what.length == 0)
		s->what.length = PET_CYLINDER_LENGTH;
	return CODE_OK;
}

static int choose_scanner(struct simulate_command *c, const struct config *config)
{
	struct simulate *s = (struct simulate *)c;

	s->what.scanner = config_scanner_named(config, s->scanner);
	if (s->what.scanner)
		return CODE_OK;
	return simulate_not_found(&c->o, "scanner", s->scanner, config->scanners[0].name, config->n_scanners,
				  sizeof(config->scanners[0]));
}

static int plan_pet(struct simulate_command *c, struct err *err)
{
	struct simulate *s = (struct simulate *)c;

	return simulate_pet_plan(&s->what, &s->simulation, err);
}

static int run_pet(struct simulate_command *c, const struct monitor *monitor, struct err *err)
{
	struct simulate *s = (struct simulate *)c;

	return simulate_pet_run(s->simulation, c->folder, monitor, &s->report, err);
}

static int print_pet(struct simulate_command *c)
{
	const struct simulate *s = (const struct simulate *)c;
	const struct simulate_pet *simulation = s->simulation;
	const struct simulate_pet_report *report = &s->report;
	size_t bins = michelogram_size(&simulation->m);
	char tof[60] = "";

	if (c->o.json)
		return options_json(json_pack("{s:b, s:s, s:i, s:I, s:f, s:f, s:f, s:s}", "ok", 1, "folder", c->folder, "files",
					      report->files, "bins", (json_int_t)bins, "counts", report->counts, "size",
					      simulation->size, "seconds", report->seconds, "study", simulation->study));
	if (simulation->m.tof.n > 0)
		snprintf(tof, sizeof(tof), ", %d TOF bins of %.4g ps", simulation->o.tof_bins, simulation->o.tof_width);
	if (s->what.beds > 0)
		snprintf(tof + strlen(tof), sizeof(tof) - strlen(tof), ", %d beds", s->what.beds);
	printf("%d %s%s, %d plane%s of %d angles and %d radial bins%s, %.4g counts, in %.1f s: %s\n", report->files,
	       s->what.interfile ? "header" : "object", plural(report->files), simulation->scan->n_u,
	       plural(simulation->scan->n_u), simulation->m.n_angles, simulation->m.n_radial, tof, report->counts,
	       report->seconds, c->folder);
	if (simulation->size < 1 && !(s->what.size > 0))
		printf("the phantom was made %.3g times as large to fit the scanner\n", simulation->size);
	return CODE_OK;
}

static void clear_pet(struct simulate_command *c)
{
	struct simulate *s = (struct simulate *)c;

	s->simulation = simulate_pet_free(s->simulation);
}

int cmd_simulate_pet(int argc, char **argv)
{
	static const struct simulator simulator = {&spec,    read_tof, check_pet, choose_scanner,
						   plan_pet, run_pet,  print_pet, clear_pet};
	struct simulate s = {
		.base = {.phantom = PET_PHANTOM_NEMA_IQ - 1},
		.scanner = "ge-discovery-ste",
		.what = {.counts = SIMULATE_PET_COUNTS,
			 .noise = true,
			 .tof_bins = SIMULATE_PET_TOF,
			 .seed = 1,
			 .position = "HFS"},
	};

	return simulate_command(&s.base, &simulator, argc, argv);
}
