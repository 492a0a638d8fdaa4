/* cmd_simulate_parallel.c - `tomonode simulate parallel`: a phantom or a picture in parallel beams as sinogram objects. */
#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "node/options.h"
#include "node/plural.h"
#include "node/progress.h"
#include "node/simulate_parallel.h"

enum {
	OPTION_PHANTOM = OPTION_LONG,
	OPTION_PICTURE,
	OPTION_ANGLES,
	OPTION_SIZE,
	OPTION_SLICES,
	OPTION_ARC,
	OPTION_FIRST_ANGLE,
	OPTION_BIN,
	OPTION_SLICE,
	OPTION_OFFSET,
	OPTION_TAPER,
	OPTION_COUNTS,
	OPTION_SEED,
	OPTION_POSITION,
	OPTION_STUDY,
};

static const struct option_spec option_specs[] = {
	{'o', "output", "DIR", "folder for the objects and truth.json; made with its parents when it is missing"},
	{OPTION_PHANTOM, "phantom", "KIND", "circle, square, triangle, shepp-logan (default), head"},
	{OPTION_PICTURE, "picture", "FILE", "a PNG or PGM picture instead of a phantom; white attenuates like water"},
	{OPTION_ANGLES, "angles", "N", "views over the arc, 1 to 16384; default 180"},
	{OPTION_SIZE, "size", "N", "radial bins, 2 to 16384; default 256, of a picture its diagonal"},
	{OPTION_SLICES, "slices", "N", "1 to 65535; default 1"},
	{OPTION_ARC, "arc", "DEGREES", "over which the views are spread, at most 360; default 180"},
	{OPTION_FIRST_ANGLE, "first-angle", "DEGREES", "default 0: rays along y"},
	{OPTION_BIN, "bin", "MM", "distance of rays, and a picture's pixels; default 1"},
	{OPTION_SLICE, "slice", "MM", "distance of slices; default: that of rays"},
	{OPTION_OFFSET, "offset", "MM", "of the radial bins from the axis; default 0"},
	{OPTION_TAPER, "taper", "PART", "a phantom becomes smaller from slice to slice, by this in all, 0 to 0.99; default 0"},
	{OPTION_COUNTS, "counts", "N", "photons a bin, for noise, 1 to 1e12; default: no noise"},
	{OPTION_SEED, "seed", "N", "of the noise; default 1"},
	{OPTION_POSITION, "position", "POSITION", "HFS (default), HFP, HFDR, HFDL, FFS, FFP, FFDR, FFDL"},
	{OPTION_STUDY, "study", "UID", "Study Instance UID"},
	{0},
};

static const struct command_spec spec = {
	.usage = "[OPTION]... -o DIR",
	.summary =
		"Write what parallel beams measure of a phantom or a picture as DICOM objects, with a file that tells the truth.",
	.text = "Line integrals of phantoms are analytic, those of pictures path lengths through their pixels. The same options\n"
		"give the same objects, UIDs included. docs/sinogram-object.md has the axes and the contents of truth.json.",
	.options = option_specs,
	.json = true,
	.min_arguments = 0,
	.max_arguments = 0,
};

struct simulate {
	struct options o;
	struct simulate_parallel_options what;
	const char *folder;
	bool given_phantom;
};

static bool read_phantom(struct simulate *s, const char *value)
{
	s->given_phantom = true;
	for (int kind = 1; parallel_phantom_name((enum parallel_phantom_kind)kind); kind++)
		if (!strcmp(value, parallel_phantom_name((enum parallel_phantom_kind)kind))) {
			s->what.phantom = (enum parallel_phantom_kind)kind;
			return true;
		}
	return false;
}

static bool read_option(struct simulate *s, int id, const char *value)
{
	struct simulate_parallel_options *w = &s->what;

	switch (id) {
	case 'o':
		s->folder = value;
		return true;
	case OPTION_PHANTOM:
		return read_phantom(s, value);
	case OPTION_PICTURE:
		w->picture = value;
		return true;
	case OPTION_ANGLES:
		return options_int(value, 1, 16384, &w->angles);
	case OPTION_SIZE:
		return options_int(value, 2, 16384, &w->size);
	case OPTION_SLICES:
		return options_int(value, 1, 65535, &w->slices);
	case OPTION_ARC:
		return options_real(value, 1e-3, 360, &w->arc) >= 0;
	case OPTION_FIRST_ANGLE:
		return options_real(value, -360, 360, &w->first_angle) >= 0;
	case OPTION_BIN:
		return options_real(value, 1e-3, 100, &w->bin) >= 0;
	case OPTION_SLICE:
		return options_real(value, 1e-3, 100, &w->slice) >= 0;
	case OPTION_OFFSET:
		return options_real(value, -1e4, 1e4, &w->offset) >= 0;
	case OPTION_TAPER:
		return options_real(value, 0, 0.99, &w->taper) >= 0;
	case OPTION_COUNTS:
		return options_real(value, 1, 1e12, &w->counts) >= 0;
	case OPTION_SEED:
		return options_seed(value, &w->seed);
	case OPTION_POSITION:
		return snprintf(w->position, sizeof(w->position), "%s", value) < (int)sizeof(w->position);
	default:
		w->study = value;
		return options_uid(value);
	}
}

static int read_options(struct simulate *s, const struct command_spec *named, int argc, char **argv)
{
	int id;

	options_begin(&s->o, named, argc, argv);
	while ((id = options_next(&s->o)) >= 0)
		if (!read_option(s, id, s->o.value))
			return options_refuse(&s->o, id);
	if (id == OPTION_STOP)
		return s->o.code;
	if (!s->folder)
		return options_fail(&s->o, CODE_USAGE, "-o DIR is missing");
	if (s->given_phantom && s->what.picture)
		return options_fail(&s->o, CODE_USAGE, "--phantom or --picture, not both");
	return -1;
}

static int run(struct simulate *s)
{
	struct simulate_parallel_report report = {0};
	struct progress progress;
	struct err err = {0};
	int rc;

	progress_start(&progress, !s->o.json);
	rc = simulate_parallel_run(&s->what, s->folder, &progress.monitor, &report, &err);
	progress_stop(&progress);
	if (rc == -EINVAL)
		return options_fail(&s->o, CODE_USAGE, "%s", err.msg);
	if (rc == -ENOENT)
		return options_fail(&s->o, CODE_NOT_FOUND, "%s", err.msg);
	if (rc < 0)
		return options_fail_err(&s->o, &err);
	if (s->o.json)
		return options_json(json_pack("{s:b, s:s, s:i, s:i, s:i, s:i, s:f}", "ok", 1, "folder", s->folder, "files",
					      report.files, "angles", s->what.angles, "radial", report.radial, "matrix",
					      report.matrix, "seconds", report.seconds));
	printf("%d object%s, %d slice%s of %d angle%s and %d radial bins, in %.1f s: %s\n", report.files, plural(report.files),
	       s->what.slices, plural(s->what.slices), s->what.angles, plural(s->what.angles), report.radial, report.seconds,
	       s->folder);
	return 0;
}

int cmd_simulate_parallel(const char *name, int argc, char **argv)
{
	struct command_spec named = spec;
	struct simulate s = {
		.what = {.phantom = PARALLEL_PHANTOM_SHEPP_LOGAN,
			 .angles = 180,
			 .slices = 1,
			 .bin = 1,
			 .arc = 180,
			 .seed = 1,
			 .position = "HFS"},
	};
	int code;

	named.name = name;
	code = read_options(&s, &named, argc, argv);
	return code < 0 ? run(&s) : code;
}
