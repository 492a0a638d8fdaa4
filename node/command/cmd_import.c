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
#include "node/command/commands.h"
#include "node/command/source_options.h"
#include "node/format/picture.h"
#include "node/options/options.h"
#include "node/simulate/simulate_parallel.h"
#include "node/sinogram/pet_source.h"

#define ARGUMENTS_MAX 64

enum { OPTION_CHUNK = OPTION_LONG, OPTION_BED };

struct import {
	struct source_options source;
	const char *config_path, *petsird, *e7, *frames; /* NULL: not given */
	struct gate_options gates;
	struct bed_options beds;
	const struct pet_source *row; /* of what is imported */
	const char *from;	      /* the same: file or folder; NULL: beds */
};

static const struct option_spec option_specs[] = {
	{OPTION_BED, "bed", "F.hs,z=MM",
	 "a bed of several, instead of FILE.hs, with the scanner's centre in the frame of reference; may be\nrepeated, in the "
	 "order of time. Further values, after commas: start=SECONDS after bed 1 and\nduration=SECONDS, else those of its "
	 "header; the bed's own additive=F.hs, attenuation=F.hs ..."},
	{0, "petsird", "FILE", "list mode data in the PETSIRD format, instead of FILE.hs", INTO_TEXT(struct import, petsird)},
	{0, "e7", "DIR",
	 "import what the e7tools of Siemens exported to this folder and its sub-folder Debug: prompts,\nnormalisation, "
	 "attenuation, smoothed randoms, scatter; FILE.s.hdr: the header of the prompts, if\nthere are several",
	 INTO_TEXT(struct import, e7)},
	{SOURCE_SET, "set", "KEYWORD=VALUE", "the same as --attribute"},
	SOURCE_OPTIONS(struct import, source),
	{0, "span", "N", "of a PETSIRD file: ring differences in a segment, odd, or 2; default 1 up to 24 rings, else 11",
	 INTO_INT(struct import, source.petsird.span, 1, 999)},
	{0, "max-difference", "N", "of a PETSIRD file: largest ring difference; default: all",
	 INTO_INT(struct import, source.petsird.max_difference, 0, 1023)},
	{0, "radial", "N", "of a PETSIRD file: radial bins; default two thirds of the detectors of a ring",
	 INTO_INT(struct import, source.petsird.n_radial, 1, 65535)},
	{0, "frames", "TABLE", "of a PETSIRD file: time frames, such as 6x10,4x30,(60),120 (docs/petsird.md); default: none",
	 INTO_TEXT(struct import, frames)},
	{0, "gates", "N", "of a PETSIRD file: gates of equal length in each cycle between two time marks; default: none",
	 INTO_INT(struct import, gates.gates, 1, PET_GATES_MAX)},
	{0, "marks", "SIGNAL|FILE",
	 "with --gates: ecg, resp, motion or sync, a trigger in the file; or a table, a time mark in ms in each\nline",
	 INTO_TEXT(struct import, gates.marks)},
	{0, "gate-cycle", "MIN,MAX", "with --gates: lengths of the cycles that are used, ms; default: all",
	 INTO_TEXT(struct import, gates.cycle)},
	{0, "tolerance", "MM", "of a PETSIRD file: largest deviation of a detector from a regular cylinder; default 1",
	 INTO_REAL(struct import, source.petsird.tolerance, 1e-4, 100)},
	{OPTION_CHUNK, "chunk", "BYTES", "largest number of data bytes in one object, 2 to 536870912; default 536870912"},
	{'o', "output", "DIR", "folder for the objects; created with its parents if missing",
	 INTO_FOLDER(struct import, source.conf.folder)},
	{'c', "config", "FILE", "configuration file; its scanners and its keys for the audit trail are used",
	 INTO_TEXT(struct import, config_path)},
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
		"ScannerCentre (X\\Y\\Z, mm in the frame of reference). See also docs/import.md.\n"
		"A PETSIRD file and a folder of the e7tools are recognised without their options, too.\n"
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

static int take_option(const struct options *o, int id, struct import *s)
{
	long long chunk;

	if (id == OPTION_BED)
		return bed_options_add(o, &s->beds);
	if (id != OPTION_CHUNK)
		return source_options_take(o, id, &s->source);
	if (options_integer(o->value, 2, (long long)SINOGRAM_CHUNK_MAX, &chunk) < 0)
		return options_fail(o, CODE_USAGE, "--chunk %s: 2 to %llu bytes", o->value,
				    (unsigned long long)SINOGRAM_CHUNK_MAX);
	s->source.conf.chunk = (uint64_t)chunk;
	return CODE_OK;
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

/* Find out what is imported, and how. A file of no known form is an Interfile, which says what is wrong. */
static int find_source(const struct options *o, struct import *s)
{
	const char *argument = o->first < o->argc ? o->argv[o->first] : NULL, *from = s->petsird ? s->petsird : s->e7;
	const char *option = s->petsird ? "--petsird" : s->e7 ? "--e7" : NULL;
	struct sinogram_import *conf = &s->source.conf;

	if (!conf->folder)
		return options_fail(o, CODE_USAGE, "-o DIR is missing: where to write the objects");
	if (s->petsird && s->e7)
		return options_fail(o, CODE_USAGE, "both --petsird and --e7");
	if (s->beds.n > 0 && (option || argument))
		return options_fail(o, CODE_USAGE, "--bed and %s: each --bed names the header of its counts",
				    option ? option : "FILE.hs");
	if (s->petsird && argument)
		return options_fail(o, CODE_USAGE, "both FILE.hs and --petsird");
	if (!from && !argument && s->beds.n == 0)
		return options_fail(o, CODE_USAGE, "FILE.hs or --petsird FILE is missing");
	s->from = from ? from : argument;
	s->row = s->petsird ? &pet_source_petsird : s->e7 ? &pet_source_e7 : argument ? pet_source_to_import(argument) : NULL;
	s->row = s->row ? s->row : &pet_source_interfile;
	for (int role = 1; !s->row->roles && role <= SINOGRAM_ROLES; role++)
		if (conf->header[role])
			return options_fail(
				o, CODE_USAGE,
				"%s, and Interfile data of the role %s: import the first alone, write all roles with `tomonode "
				"export -o FILE.hs DIR`, and import them together with these data and `--like "
				"DIR/emission.dcm`",
				option ? option : argument, sinogram_role_name((enum sinogram_role)role));
	conf->header[SINOGRAM_EMISSION] = s->e7 ? argument : s->from;
	conf->beds = s->beds.bed;
	conf->n_beds = s->beds.n;
	return CODE_OK;
}

/* Read how list mode is divided. */
static int read_images(const struct options *o, struct import *s)
{
	struct pet_gates gates;
	struct err err = {0};
	int code;

	if ((s->gates.gates || s->frames) && !s->row->list_mode)
		return options_fail(o, CODE_USAGE, "--%s without --petsird", s->gates.gates ? "gates" : "frames");
	if (s->gates.gates && !s->gates.marks)
		return options_fail(o, CODE_USAGE, "--gates without --marks");
	if (s->frames && pet_frames_parse(s->frames, &s->source.petsird.images, &err) < 0)
		return options_fail(o, CODE_USAGE, "--frames: %s", err.msg);
	code = gate_options_read(o, &s->gates, s->frames ? "--frames" : NULL, &gates);
	if (code == CODE_OK && gates.n > 0)
		pet_images_set_gates(&s->source.petsird.images, &gates);
	return code;
}

static int fail_import(const struct options *o, const struct err *err)
{
	return options_fail(o, err->code == EINVAL ? CODE_USAGE : options_code(err), "%s", err->msg);
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
	const struct sinogram_import *conf = &s->source.conf;
	const char *header = s->beds.n > 0 ? s->beds.bed[0].header[SINOGRAM_EMISSION] : conf->header[SINOGRAM_EMISSION];
	struct import_report report = {0};
	struct err err = {0};
	json_t *root;
	const bool is_new = access(conf->folder, F_OK) < 0;
	int rc = folder_create(conf->folder, &err), code;

	if (rc == 0)
		rc = s->row->import(s->from, conf, &report, &err);
	if (rc < 0 && is_new)
		rmdir(conf->folder); /* stays if anything is in it */
	code = rc < 0 ? fail_import(o, &err) : CODE_OK;
	audit_import(conf, header ? header : s->from, report.objects, code);
	if (code != CODE_OK)
		return code;
	if (o->json) {
		root = json_pack("{s:b, s:I, s:s, s:s}", "ok", 1, "objects", (json_int_t)report.objects, "folder", conf->folder,
				 "warnings", conf->warnings);
		json_object_set_new(root, "factors", factors_json(conf->factors));
		if (report.details)
			json_object_set_new(root, s->row->name, report.details);
		return options_json(root);
	}
	json_decref(report.details);
	if (conf->warnings[0])
		fprintf(stderr, "tomonode import: %s\n", conf->warnings);
	printf("%s%s%zu object%s in %s\n", report.text, conf->factors, report.objects, plural(report.objects), conf->folder);
	return CODE_OK;
}

/* Import with options that were checked. Returns an exit code. */
static int import_checked(const struct options *o, struct import *s)
{
	char warnings[1500] = "", factors[1000] = "";
	struct sinogram_import *conf = &s->source.conf;
	struct config *config = NULL;
	int code = options_config(o, s->config_path, &config);

	if (code != CODE_OK)
		return code;
	options_note_folder(o, conf->folder);
	audit_start(&config->node, AUDIT_DIRECT, "import");
	conf->now = clock_wall();
	conf->config = config;
	conf->warnings = warnings;
	conf->warnings_size = sizeof(warnings);
	conf->factors = factors;
	conf->factors_size = sizeof(factors);
	code = run_import(o, s);
	config_free(config);
	return code;
}

int cmd_import(int argc, char **argv)
{
	int id, code = CODE_OK, picture = picture_among(argc, argv);
	struct import s = {.from = NULL};
	struct options o;

	if (picture)
		return scan_picture(argc, argv, picture);
	source_options_begin(&s.source);
	options_begin(&o, &spec, argc, argv);
	o.into = &s;
	while (code == CODE_OK && (id = options_next(&o)) >= 0)
		code = take_option(&o, id, &s);
	if (code == CODE_OK && id == OPTION_STOP)
		code = o.code;
	else if (code == CODE_OK && (code = find_source(&o, &s)) == CODE_OK && (code = read_images(&o, &s)) == CODE_OK)
		code = import_checked(&o, &s);
	bed_options_clear(&s.beds);
	pet_marks_clear(&s.source.petsird.images.gates.marks);
	return code;
}
