/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_simulate_parallel.c - `tomonode simulate parallel`: write a parallel beam scan of a phantom or a picture as sinogram
 * objects.
 */
#include <jansson.h>
#include <stdio.h>

#include "node/base/plural.h"
#include "node/command/simulate_command.h"
#include "node/simulate/simulate_parallel.h"

struct simulate {
	struct simulate_command base; /* base.phantom -1: not named */
	struct simulate_parallel_options what;
	struct simulate_parallel_report report;
};

static const struct option_spec option_specs[] = {
	{'o', "output", "DIR", "folder for the objects and truth.json; created with its parents if missing",
	 INTO_FOLDER(struct simulate, base.folder)},
	{0, "phantom", "KIND", "circle, square, triangle, shepp-logan (default), head",
	 INTO_WORD(struct simulate, base.phantom, parallel_phantom_names)},
	{0, "picture", "FILE", "PNG or PGM picture instead of a phantom; white attenuates like water",
	 INTO_TEXT(struct simulate, what.picture)},
	{0, "angles", "N", "number of views over the arc, 1 to 16384; default 180",
	 INTO_INT(struct simulate, what.angles, 1, 16384)},
	{0, "size", "N", "number of radial bins, 2 to 16384; default 256, or the diagonal of the picture",
	 INTO_INT(struct simulate, what.size, 2, 16384)},
	{0, "slices", "N", "number of slices, 1 to 65535; default 1", INTO_INT(struct simulate, what.slices, 1, 65535)},
	{0, "arc", "DEGREES", "angle over which the views are spread, at most 360; default 180",
	 INTO_REAL(struct simulate, what.arc, 1e-3, 360)},
	{0, "first-angle", "DEGREES", "angle of the first view; default 0: its rays are parallel to y",
	 INTO_REAL(struct simulate, what.first_angle, -360, 360)},
	{0, "bin", "MM", "distance between rays, and between pixels of a picture; default 1",
	 INTO_REAL(struct simulate, what.bin, 1e-3, 100)},
	{0, "slice", "MM", "distance between slices; default: that between rays",
	 INTO_REAL(struct simulate, what.slice, 1e-3, 100)},
	{0, "offset", "MM", "offset of the radial bins from the axis; default 0",
	 INTO_REAL(struct simulate, what.offset, -1e4, 1e4)},
	{0, "taper", "PART", "reduction of the phantom's size from the first to the last slice, 0 to 0.99; default 0",
	 INTO_REAL(struct simulate, what.taper, 0, 0.99)},
	{0, "counts", "N", "add Poisson noise of N photons in a bin without attenuation, 1 to 1e12; default: no noise",
	 INTO_REAL(struct simulate, what.counts, 1, 1e12)},
	{0, "seed", "N", "seed of the noise; default 1", INTO_SEED(struct simulate, what.seed)},
	{0, "position", "POSITION", "position of the patient: HFS (default), HFP, HFDR, HFDL, FFS, FFP, FFDR, FFDL",
	 INTO_CHARS(struct simulate, what.position)},
	{0, "study", "UID", "Study Instance UID", INTO_UID(struct simulate, what.study)},
	{0},
};

static const struct command_spec spec = {
	.usage = "[OPTION]... -o DIR",
	.summary = "Write a simulated parallel beam scan of a phantom or a picture as DICOM objects, with its true values in "
		   "truth.json.",
	.text = "Line integrals of phantoms are computed from formulas, those of pictures from path lengths through their "
		"pixels. The\n"
		"same options give the same objects and UIDs. docs/sinogram-object.md describes the axes and truth.json.",
	.options = option_specs,
	.json = true,
	.min_arguments = 0,
	.max_arguments = 0,
	.examples = "tomonode simulate parallel --phantom head --angles 300 --slices 16 -o lines\n"
		    "tomonode simulate parallel --picture slice.png --angles 180 -o lines\n",
};

static int check_parallel(struct simulate_command *c)
{
	struct simulate *s = (struct simulate *)c;

	if (c->phantom >= 0 && s->what.picture)
		return options_fail(&c->o, CODE_USAGE, "--phantom or --picture, not both");
	s->what.phantom = c->phantom >= 0 ? (enum parallel_phantom_kind)(c->phantom + 1) : PARALLEL_PHANTOM_SHEPP_LOGAN;
	return CODE_OK;
}

static int run_parallel(struct simulate_command *c, const struct monitor *monitor, struct err *err)
{
	struct simulate *s = (struct simulate *)c;

	return simulate_parallel_run(&s->what, c->folder, monitor, &s->report, err);
}

static int print_parallel(struct simulate_command *c)
{
	const struct simulate *s = (const struct simulate *)c;
	const struct simulate_parallel_report *report = &s->report;

	if (c->o.json)
		return options_json(json_pack("{s:b, s:s, s:i, s:i, s:i, s:i, s:f}", "ok", 1, "folder", c->folder, "files",
					      report->files, "angles", s->what.angles, "radial", report->radial, "matrix",
					      report->matrix, "seconds", report->seconds));
	printf("%d object%s, %d slice%s of %d angle%s and %d radial bins, in %.1f s: %s\n", report->files, plural(report->files),
	       s->what.slices, plural(s->what.slices), s->what.angles, plural(s->what.angles), report->radial, report->seconds,
	       c->folder);
	return CODE_OK;
}

int cmd_simulate_parallel(const char *name, int argc, char **argv)
{
	struct command_spec named = spec;
	struct simulator simulator = {.spec = &named, .check = check_parallel, .run = run_parallel, .print = print_parallel};
	struct simulate s = {
		.base = {.phantom = -1},
		.what = {.angles = 180, .slices = 1, .bin = 1, .arc = 180, .seed = 1, .position = "HFS"},
	};

	named.name = name;
	return simulate_command(&s.base, &simulator, argc, argv);
}
