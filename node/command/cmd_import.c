/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_import.c - `tomonode import`: convert Interfile projection data, of PET or of parallel beams, or a PETSIRD file to sinogram
 * objects; project a picture with parallel beams. */
#include <errno.h>
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "kernels/clock.h"
#include "node/base/folder.h"
#include "node/base/plural.h"
#include "node/command/audit_files.h"
#include "node/command/bed_options.h"
#include "node/command/commands.h"
#include "node/command/gate_options.h"
#include "node/command/recon_inputs.h"
#include "node/format/picture.h"
#include "node/options/options.h"
#include "node/simulate/simulate_parallel.h"
#include "node/sinogram/petsird_import.h"
#include "node/sinogram/sinogram.h"

#define SET_MAX 200
#define ARGUMENTS_MAX 64

enum {
	OPTION_MULTIPLICATIVE = OPTION_LONG,
	OPTION_ADDITIVE,
	OPTION_ATTENUATION,
	OPTION_NORMALISATION,
	OPTION_DELAYEDS,
	OPTION_SINGLES,
	OPTION_LIKE,
	OPTION_SET,
	OPTION_CHUNK,
	OPTION_BED
};

struct import {
	struct sinogram_import conf;
	struct petsird_import petsird; /* path NULL: Interfile */
	const char *frames;	       /* NULL: none */
	struct gate_options gates;
	struct bed_options beds;
	const char *e7; /* folder of the e7tools; NULL: none */
};

static const struct option_spec option_specs[] = {
	{OPTION_MULTIPLICATIVE, "multiplicative", "F.hs", "factors m of the model y = m (A x) + b, with counts y and activity x"},
	{OPTION_ADDITIVE, "additive", "F.hs",
	 "background b of this model: expected randoms and scatter, in counts; b / m (additive sinogram of STIR) if\nits header "
	 "lists attenuation and normalisation as applied corrections"},
	{OPTION_ATTENUATION, "attenuation", "F.hs", "attenuation correction factors, 1 or more (measured ones with noise)"},
	{OPTION_NORMALISATION, "normalisation", "F.hs", "normalisation correction factors, above 0"},
	{OPTION_DELAYEDS, "delayeds", "F.hs",
	 "delayed coincidences, in counts, without TOF bins: for randoms made by the protocol's\ncorrections"},
	{OPTION_SINGLES, "singles", "F.hs",
	 "single events of the detectors (docs/sinogram-object.md): for randoms where there are no delayed\ncoincidences"},
	{OPTION_BED, "bed", "F.hs,z=MM",
	 "a bed of several, instead of FILE.hs, with the scanner's centre in the frame of reference; may be\nrepeated, in the "
	 "order of "
	 "time. Further values, after commas: start=SECONDS after bed 1 and\nduration=SECONDS, else those of its header; the "
	 "bed's own "
	 "additive=F.hs, attenuation=F.hs ..."},
	{0, "petsird", "FILE", "list mode data in the PETSIRD format, instead of FILE.hs",
	 INTO_TEXT(struct import, petsird.path)},
	{0, "span", "N", "of --petsird: ring differences in a segment, odd, or 2; default 1 up to 24 rings, else 11",
	 INTO_INT(struct import, petsird.span, 1, 999)},
	{0, "max-difference", "N", "of --petsird: largest ring difference; default: all",
	 INTO_INT(struct import, petsird.max_difference, 0, 1023)},
	{0, "radial", "N", "of --petsird: radial bins; default two thirds of the detectors of a ring",
	 INTO_INT(struct import, petsird.n_radial, 1, 65535)},
	{0, "no-tof", NULL, "of --petsird: add all TOF bins", INTO_ON(struct import, petsird.no_tof)},
	{0, "frames", "TABLE", "of --petsird: time frames, such as 6x10,4x30,(60),120 (docs/petsird.md); default: none",
	 INTO_TEXT(struct import, frames)},
	{0, "gates", "N", "of --petsird: gates of equal length in each cycle between two time marks; default: none",
	 INTO_INT(struct import, gates.gates, 1, PET_GATES_MAX)},
	{0, "marks", "SIGNAL|FILE",
	 "with --gates: ecg, resp, motion or sync, a trigger in the file; or a table, a time mark in ms in each\nline",
	 INTO_TEXT(struct import, gates.marks)},
	{0, "gate-cycle", "MIN,MAX", "with --gates: lengths of the cycles that are used, ms; default: all",
	 INTO_TEXT(struct import, gates.cycle)},
	{0, "axes", "X,Y,Z", "of --petsird: axes of the file that are x, y, z of the scanner (docs/petsird.md); default x,y,z",
	 INTO_TEXT(struct import, petsird.axes)},
	{0, "tolerance", "MM", "of --petsird: largest deviation of a detector from a regular cylinder; default 1",
	 INTO_REAL(struct import, petsird.tolerance, 1e-4, 100)},
	{0, "e7", "DIR",
	 "import what the e7tools of Siemens exported to this folder and its sub-folder Debug: prompts,\nnormalisation, "
	 "attenuation, "
	 "smoothed randoms, scatter; FILE.s.hdr: the header of the prompts, if\nthere are several",
	 INTO_TEXT(struct import, e7)},
	{OPTION_LIKE, "like", "FILE.dcm",
	 "copy patient, study, frame of reference and scanner from this DICOM file, and if it is\nof PET the times and the "
	 "tracer that "
	 "the data lack; default: anonymous, a new study"},
	{OPTION_SET, "set", "KEYWORD=VALUE", "set an attribute, by keyword or as gggg,eeee=VALUE; may be repeated"},
	{OPTION_SET, "attribute", "KEYWORD=VALUE", "the same, as `tomonode recon` calls it"},
	{OPTION_CHUNK, "chunk", "BYTES", "largest number of data bytes in one object, 2 to 536870912; default 536870912"},
	{'o', "output", "DIR", "folder for the objects; created with its parents if missing"},
	{'c', "config", "FILE", "configuration file; its scanners and its keys for the audit trail are used"},
	{0},
};

static const struct command_spec spec = {
	.name = "import",
	.usage =
		"FILE.hs [--multiplicative F.hs] [--additive F.hs] [--attenuation F.hs]\n"
		"                       [--normalisation F.hs] [--delayeds F.hs] [--singles F.hs] [--like FILE.dcm]\n"
		"                       [--set KEYWORD=VALUE]...\n"
		"                       [-c FILE] -o DIR\n"
		"       tomonode import --bed FILE.hs,z=MM[,additive=F.hs]... --bed ... [--attenuation F.hs] [OPTION]... -o DIR\n"
		"       tomonode import [FILE.s.hdr] --e7 DIR [--like FILE.dcm] [--set KEYWORD=VALUE]... [-c FILE] -o DIR\n"
		"       tomonode import --petsird FILE [--span N] [--radial N] [OPTION]... -o DIR\n"
		"       tomonode import FILE.png|FILE.pgm [OPTION]... -o DIR",
	.summary = "Convert Interfile (STIR) projection data, of PET or of parallel beams, or PETSIRD to DICOM sinogram objects.",
	.text = "Useful attributes for --set, in DICOM units: PatientPosition (HFS, HFP, FFS, FFP, HFDL, HFDR, FFDL, FFDR),\n"
		"AcquisitionDate, AcquisitionTime, ActualFrameDuration (ms), PatientWeight (kg), PatientSize (m),\n"
		"Radionuclide (F18, Ga68 and the others of CID 4020 of DICOM: code and half-life) or\n"
		"RadionuclideHalfLife (s), RadionuclideTotalDose (Bq), RadiopharmaceuticalStartTime or\n"
		"RadiopharmaceuticalStartDateTime, DoseCalibrationFactor ((Bq/ml) per (count/s and mm)), CorrectedImage\n"
		"(ATTN\\NORM\\...: what the data are corrected for), Manufacturer, ManufacturerModelName,\n"
		"ScannerCentre (X\\Y\\Z, mm in the frame of reference). See also docs/sinogram-object.md.\n"
		"A picture (PNG or PGM) is projected with parallel beams: the same as `tomonode simulate parallel --picture "
		"FILE`,\n"
		"with the options of that command.",
	.options = option_specs,
	.json = true,
	.min_arguments = 0,
	.max_arguments = 1,
	.examples =
		"tomonode import scan.hs --attenuation acf.hs --like ct.dcm --set PatientPosition=HFS --set Radionuclide=F18 "
		"-o sinograms\n"
		"tomonode import --petsird scan.petsird --set PatientPosition=HFS -o sinograms\n"
		"tomonode import --bed chest.hs,z=-400 --bed belly.hs,z=-520 --normalisation norm.hs --like ct.dcm -o sinograms\n"
		"tomonode import --e7 e7 --like ct.dcm -o sinograms\n",
	.files = true,
};

/* Store the value of an option. Returns 0 or the exit code. */
static int parse_option(struct options *o, int id, struct import *s, char **set)
{
	struct sinogram_import *conf = &s->conf;
	static const enum sinogram_role roles[] = {SINOGRAM_MULTIPLICATIVE, SINOGRAM_ADDITIVE, SINOGRAM_ATTENUATION,
						   SINOGRAM_NORMALISATION,  SINOGRAM_DELAYEDS, SINOGRAM_SINGLES};
	long long chunk;

	switch (id) {
	case 'o':
		conf->folder = o->value;
		break;
	case OPTION_LIKE:
		conf->like = o->value;
		break;
	case OPTION_SET:
		if (conf->n_set == SET_MAX)
			return options_fail(o, CODE_USAGE, "more than %d values set", SET_MAX);
		set[conf->n_set++] = (char *)o->value; /* a string of argv */
		break;
	case OPTION_BED:
		return bed_options_add(o, &s->beds);
	case OPTION_CHUNK:
		if (options_integer(o->value, 2, (long long)SINOGRAM_CHUNK_MAX, &chunk) < 0)
			return options_fail(o, CODE_USAGE, "--chunk %s: 2 to %llu bytes", o->value,
					    (unsigned long long)SINOGRAM_CHUNK_MAX);
		conf->chunk = (uint64_t)chunk;
		break;
	default:
		return recon_inputs_role(o, roles[id - OPTION_MULTIPLICATIVE], conf);
	}
	return 0;
}

/* Return true if the next argument is the value of this option. Of the options that a picture may have, those of `simulate
 * parallel`, only --json and --help have no value. */
static bool takes_next(const char *argument)
{
	if (argument[0] != '-' || argument[1] == '\0' || !strcmp(argument, "--"))
		return false;
	if (argument[1] != '-')
		return argument[1] != 'h' && argument[2] == '\0';
	return !strchr(argument, '=') && strcmp(argument, "--json") != 0 && strcmp(argument, "--help") != 0;
}

/* Return the index of a picture among the arguments that are not values of options; 0: none. `import FILE.png ...` means
 * `simulate parallel --picture FILE.png ...`. */
static int picture_among(int argc, char **argv)
{
	for (int i = 1; i < argc; i++)
		if (takes_next(argv[i]))
			i++;
		else if (argv[i][0] != '-' && picture_has_extension(argv[i]))
			return i;
	return 0;
}

static int scan_picture(int argc, char **argv, int picture)
{
	char *given[ARGUMENTS_MAX], option[] = "--picture";
	int n = 0;

	if (argc + 2 > ARGUMENTS_MAX) {
		fprintf(stderr, "tomonode import: more than %d arguments\n", ARGUMENTS_MAX);
		return CODE_USAGE;
	}
	given[n++] = argv[0];
	for (int i = 1; i < argc; i++) {
		if (i == picture)
			given[n++] = option;
		given[n++] = argv[i];
	}
	given[n] = NULL;
	return cmd_simulate_parallel(spec.name, n, given);
}

/* Write the audit message. All objects of an import are of one study. from: the file or folder that was imported. */
static void audit_import(const struct sinogram_import *conf, const char *from, size_t n, int code)
{
	static const char *const names[] = {"emission.dcm",	   "emission-0001.dcm",
					    "emission-bed001.dcm", "emission-bed001-0001.dcm",
					    "lines.dcm",	   "lines-0001.dcm"};
	struct audit_files files = {0};
	struct stat st;
	char path[1024];

	if (!audit_is_on())
		return;
	for (size_t i = 0; code == CODE_OK && i < sizeof(names) / sizeof(names[0]); i++)
		/* The folder may contain objects of an earlier import: use only those of this one. */
		if (files.n == 0 && snprintf(path, sizeof(path), "%s/%s", conf->folder, names[i]) < (int)sizeof(path) &&
		    stat(path, &st) == 0 && (double)st.st_mtime >= floor(conf->now))
			audit_files_add(&files, path);
	if (files.n == 1)
		files.list[0].classes[0].instances = n;
	audit_imported(from, files.list, files.n, code);
	audit_files_clear(&files);
}

/* Check the arguments together, and set conf.header[SINOGRAM_EMISSION] to the file to import. Returns an exit code. */
static int check_arguments(const struct options *o, struct import *s)
{
	bool petsird = s->petsird.path != NULL, argument = o->first < o->argc;
	struct pet_gates gates;
	struct err err = {0};
	int code;

	if (!s->conf.folder)
		return options_fail(o, CODE_USAGE, "-o DIR is missing: where to write the objects");
	if (petsird && s->e7)
		return options_fail(o, CODE_USAGE, "both --petsird and --e7");
	if (s->beds.n > 0 && (petsird || s->e7 || argument))
		return options_fail(o, CODE_USAGE, "--bed and %s: each --bed names the header of its counts",
				    petsird ? "--petsird"
				    : s->e7 ? "--e7"
					    : "FILE.hs");
	if (petsird == argument && !s->e7 && s->beds.n == 0)
		return options_fail(o, CODE_USAGE,
				    petsird ? "both FILE.hs and --petsird" : "FILE.hs or --petsird FILE is missing");
	for (int role = 1; (petsird || s->e7) && role <= SINOGRAM_ROLES; role++)
		if (s->conf.header[role])
			return options_fail(
				o, CODE_USAGE,
				"%s, and Interfile data of the role %s: import %s first, write all roles with `tomonode "
				"export -o FILE.hs DIR`, and import them together with these data and `--like "
				"DIR/emission.dcm`",
				petsird ? "--petsird" : "--e7", sinogram_role_name((enum sinogram_role)role),
				petsird ? "the list mode" : "the folder");
	if (s->gates.gates && !petsird)
		return options_fail(o, CODE_USAGE, "--gates without --petsird");
	if (s->gates.gates && !s->gates.marks)
		return options_fail(o, CODE_USAGE, "--gates without --marks");
	if (s->frames && !petsird)
		return options_fail(o, CODE_USAGE, "--frames without --petsird");
	if (s->frames && pet_frames_parse(s->frames, &s->petsird.images, &err) < 0)
		return options_fail(o, CODE_USAGE, "--frames: %s", err.msg);
	s->conf.header[SINOGRAM_EMISSION] = petsird ? s->petsird.path : argument ? o->argv[o->first] : NULL;
	s->conf.beds = s->beds.bed;
	s->conf.n_beds = s->beds.n;
	code = gate_options_read(o, &s->gates, s->frames ? "--frames" : NULL, &gates);
	if (code == CODE_OK && gates.n > 0)
		pet_images_set_gates(&s->petsird.images, &gates);
	return code;
}

static int fail_import(const struct options *o, const struct err *err)
{
	return options_fail(o,
			    err->code == EINVAL	  ? CODE_USAGE
			    : err->code == ENOENT ? CODE_NOT_FOUND
						  : options_code(err),
			    "%s", err->msg);
}

static json_t *petsird_json(const struct petsird_import_report *r)
{
	const struct pet_scanner *c = &r->m.scanner;

	return json_pack("{s:s, s:I, s:I, s:I, s:I, s:I, s:f, s:f, s:i, s:f, s:i, s:f, s:f, s:I, s:f, s:i, s:i, s:I, s:i, s:b, "
			 "s:I, s:I, s:I}",
			 "scanner", r->model, "prompts", (json_int_t)r->counts.prompts, "delayeds",
			 (json_int_t)r->counts.delayeds, "in_bins", (json_int_t)r->stored, "outside", (json_int_t)r->outside,
			 "surplus", (json_int_t)r->counts.surplus, "duration", (double)r->counts.covered / 1000, "calibration",
			 r->calibration, "rings", c->rings, "ring_spacing", c->ring_spacing, "detectors", c->detectors, "radius",
			 c->radius, "angle_offset", r->m.angle_offset, "missing", (json_int_t)r->missing, "deviation",
			 r->deviation, "radial", r->m.n_radial, "angles", r->m.n_angles, "planes", (json_int_t)r->planes,
			 "tof_bins", r->m.tof.n, "normalisation", r->normalisation, "in_no_frame", (json_int_t)r->between,
			 "cycles_used", (json_int_t)r->cycles.used, "cycles_left_out", (json_int_t)r->cycles.left_out);
}

static void print_petsird(const struct petsird_import_report *r, const char *axes)
{
	char tof[32] = "no time of flight", text[400];

	if (r->m.tof.n > 0)
		snprintf(tof, sizeof(tof), "%d TOF bin%s", r->m.tof.n, plural(r->m.tof.n));
	printf("%llu prompts: %llu in bins, %llu outside; %llu delayeds; %g s\n", (unsigned long long)r->counts.prompts,
	       (unsigned long long)r->stored, (unsigned long long)r->outside, (unsigned long long)r->counts.delayeds,
	       (double)r->counts.covered / 1000);
	printf("%d rings of %d detectors, %g mm apart, radius %g mm, %zu positions empty; %zu planes, %d angles, %d radial bins, "
	       "%s\n",
	       r->m.scanner.rings, r->m.scanner.detectors, r->m.scanner.ring_spacing, r->m.scanner.radius, r->missing, r->planes,
	       r->m.n_angles, r->m.n_radial, tof);
	petsird_axes_text(axes, text, sizeof(text));
	printf("%s\n", text);
	if (r->cycles.used > 0)
		printf("%ld cycles of %.4g ms on average divided into gates, %ld left out; %llu prompts in no gate\n",
		       r->cycles.used, r->cycles.mean, r->cycles.left_out, (unsigned long long)r->between);
}

/* Make an array of sentences, each ended by a line end. */
static json_t *factors_json(const char *lines)
{
	json_t *all = json_array();

	for (size_t n; *lines; lines += n + 1) {
		n = strcspn(lines, "\n");
		json_array_append_new(all, json_stringn(lines, n));
	}
	return all;
}

/* Import, and print the report. Returns an exit code. */
static int run_import(const struct options *o, const struct import *s)
{
	struct petsird_import_report report = {0};
	struct err err = {0};
	size_t n = 0;
	json_t *root;
	const bool is_new = access(s->conf.folder, F_OK) < 0;
	int rc = folder_create(s->conf.folder, &err), code;

	if (rc == 0)
		rc = s->petsird.path ? petsird_import(&s->petsird, &s->conf, &report, &err)
		     : s->e7	     ? sinogram_import_e7(&s->conf, s->e7, &n, &err)
				     : sinogram_import(&s->conf, &n, &err);
	if (rc < 0 && is_new)
		rmdir(s->conf.folder); /* stays if anything is in it */
	code = rc < 0 ? fail_import(o, &err) : CODE_OK;
	n = s->petsird.path ? report.objects : n;
	audit_import(&s->conf,
		     s->beds.n > 0			 ? s->beds.bed[0].header[SINOGRAM_EMISSION]
		     : s->conf.header[SINOGRAM_EMISSION] ? s->conf.header[SINOGRAM_EMISSION]
							 : s->e7,
		     n, code);
	if (code != CODE_OK)
		return code;
	if (o->json) {
		root = json_pack("{s:b, s:I, s:s, s:s}", "ok", 1, "objects", (json_int_t)n, "folder", s->conf.folder, "warnings",
				 s->conf.warnings);
		json_object_set_new(root, "factors", factors_json(s->conf.factors));
		if (s->petsird.path)
			json_object_set_new(root, "petsird", petsird_json(&report));
		return options_json(root);
	}
	if (s->conf.warnings[0])
		fprintf(stderr, "tomonode import: %s\n", s->conf.warnings);
	if (s->petsird.path)
		print_petsird(&report, s->petsird.axes);
	printf("%s%zu object%s in %s\n", s->conf.factors, n, plural(n), s->conf.folder);
	return CODE_OK;
}

/* Import with options that were checked. Returns an exit code. */
static int import_checked(const struct options *o, struct import *s, const char *config_path)
{
	struct config *config = NULL;
	int code;

	s->conf.now = clock_wall();
	code = options_config(o, config_path, &config);
	if (code != CODE_OK)
		return code;
	options_note_folder(o, s->conf.folder);
	audit_start(&config->node, AUDIT_DIRECT, "import");
	s->conf.config = config;
	code = run_import(o, s);
	config_free(config);
	return code;
}

int cmd_import(int argc, char **argv)
{
	char warnings[1500] = "", factors[1000] = "", *set[SET_MAX];
	struct import s = {.conf = {.set = set,
				    .warnings = warnings,
				    .warnings_size = sizeof(warnings),
				    .factors = factors,
				    .factors_size = sizeof(factors)},
			   .petsird = {.max_difference = -1, .tolerance = 1, .axes = "x,y,z"}};
	struct options o;
	const char *config_path = NULL;
	int id, code = CODE_OK;

	if (picture_among(argc, argv))
		return scan_picture(argc, argv, picture_among(argc, argv));
	options_begin(&o, &spec, argc, argv);
	o.into = &s;
	while ((id = options_next(&o)) >= 0) {
		if (id == 'c')
			config_path = o.value;
		else
			code = parse_option(&o, id, &s, set);
		if (code)
			break;
	}
	if (id == OPTION_STOP)
		code = o.code;
	else if (code == CODE_OK)
		code = check_arguments(&o, &s);
	if (id != OPTION_STOP && code == CODE_OK)
		code = import_checked(&o, &s, config_path);
	bed_options_clear(&s.beds);
	pet_marks_clear(&s.petsird.images.gates.marks);
	return code;
}
