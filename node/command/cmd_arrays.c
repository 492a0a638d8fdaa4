/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_arrays.c - `tomonode arrays read`: the arrays that a case is reconstructed from, for other programs; `arrays write`: a volume
 * that one of these has computed as a result. */
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "dicom/core/dataset.h"
#include "node/base/text_file.h"
#include "node/command/commands.h"
#include "node/command/recon_command.h"
#include "node/reconstruct/case_told.h"

struct arrays {
	struct recon r; /* first: the options of recon are stored in it */
	const char *software, *version, *note, *told;
	int algorithm; /* enum result_algorithm */
	struct result_outside outside;
};

static const char *const algorithm_words[] = {[RESULT_UNSTATED] = "unstated", "iterative", "filtered", "backprojection", NULL};

static const struct option_spec option_specs[] = {
	{'c', "config", "FILE", "configuration file, applied over the embedded defaults; its keys of the audit trail count, too",
	 INTO_TEXT(struct arrays, r.conf_path)},
	{'o', "output", "DIR", "folder for case.json and the arrays; created with its parents if missing",
	 INTO_FOLDER(struct arrays, r.out_dir)},
	{0, "protocol", "NAME",
	 "protocol of the configuration, which has the corrections; default: for each kind the first one of its first route",
	 INTO_TEXT(struct arrays, r.protocol_name)},
	{0, "device", "SPEC", "auto, cpu, cpu:THREADS, cuda or cuda:N; default: the first of node.device that can be opened",
	 INTO_TEXT(struct arrays, r.device)},
	{OPTION_RECON_SET, "set", "KEY=VALUE",
	 "set one key of the protocol, with the syntax of the configuration; may be repeated"},
	SOURCE_OPTIONS(struct arrays, r.source),
	SOURCE_MAP_OPTION,
	{0, "same-patient", NULL,
	 "state that the files of the case are of one patient, although their headers name different ones",
	 INTO_ON(struct arrays, r.same_patient)},
	{0, "software", "NAME", "write: the program that computed the volume", INTO_TEXT(struct arrays, software)},
	{0, "version", "V", "write: its version", INTO_TEXT(struct arrays, version)},
	{0, "note", "TEXT", "write: how, for the description of the result, up to 200 characters",
	 INTO_TEXT(struct arrays, note)},
	{0, "told", "FILE",
	 "write: what the program tells of the volume, as JSON like step.json of a step: summary, figures, warnings\n(docs/steps.md)",
	 INTO_TEXT(struct arrays, told)},
	{0, "algorithm", "KIND",
	 "write: the kind of algorithm of the program, iterative, filtered or backprojection; of a tomosynthesis it must\nbe stated",
	 INTO_WORD(struct arrays, algorithm, algorithm_words)},
	{0, "corrected", NULL,
	 "write: state that the program used all factors and the background of arrays read: a PET result then has the\nunit and the "
	 "corrections that one of recon has, otherwise only those that the data had before; a tomosynthesis\nnames the scatter "
	 "that was subtracted",
	 INTO_ON(struct arrays, outside.corrected)},
	{0},
};

static const char *action_name(size_t i)
{
	return i == 0 ? "read" : i == 1 ? "write" : NULL;
}

static const struct command_spec spec = {
	.name = "arrays",
	.usage =
		"read [-c FILE] [--protocol NAME] [--set KEY=VALUE]... [OPTION]... -o DIR PATH...\n"
		"       tomonode arrays write --software NAME --version V [--note TEXT] [--told FILE] [--algorithm KIND] [--corrected] [OPTION]... -o DIR VOLUME.f32 PATH...",
	.summary =
		"Write what a case is reconstructed from as JSON and float32, for programs (tn.open() of the Python package),\nand a "
		"volume that a program has computed from it as a DICOM result (tn.write()).",
	.text = "PATH: the files of one case, as for recon: DICOM files or folders, Interfile headers, folders of the e7tools or\n"
		"PETSIRD files. DIR/case.json has the geometry, the shapes and units of the arrays, and warnings; data.f32,\n"
		"factors.f32, background.f32, valid.f32, for single events points.f32, events.i32, tof_bin.i32, add.f32 and\n"
		"sensitivity.f32 have the values that a reconstruction with the protocol uses, with its corrections, in C order\n"
		"(docs/library.md). No attribute of the patient is written.\n"
		"VOLUME.f32: float32, little endian, [z][y][x], on the grid of case.json with the same protocol and PATHs, in the\n"
		"unit of a reconstruction. The result has the header of the sources, names the program, and has the SHA-256 of the\n"
		"values.",
	.options = option_specs,
	.json = true,
	.min_arguments = 2,
	.max_arguments = -1,
	.examples = "tomonode arrays read -o case exam\n"
		    "tomonode arrays read --protocol pet-osem --set corrections=attenuation -o case pet/*.dcm ct/*.dcm\n"
		    "tomonode arrays write --protocol pet-osem --software mine --version 1.0 -o result mlem.f32 pet/*.dcm\n",
	.files = true,
	.word = action_name,
};

/* Copy a text for an attribute, without what its value cannot have. */
static int take_text(const struct options *o, const char *name, const char *text, size_t least, char *ret, size_t size)
{
	if (!text || strlen(text) < least || strlen(text) >= size)
		return options_fail(o, CODE_USAGE, "--%s: %s; needed: %zu to %zu characters", name, text ? text : "missing",
				    least, size - 1);
	for (size_t i = 0; text[i]; i++)
		if (!isprint((unsigned char)text[i]) || text[i] == '\\')
			return options_fail(o, CODE_USAGE, "--%s %s: allowed are printable characters of ASCII but the backslash",
					    name, text);
	snprintf(ret, size, "%s", text);
	return CODE_OK;
}

static int take_told(const char *path, struct result_outside *of, struct err *err)
{
	json_t *told = NULL;
	FILE *f = NULL;
	int rc = regular_file_open(path, &f, err);

	if (rc < 0)
		return rc;
	rc = case_told_read(fileno(f), path, &told, err);
	fclose(f);
	case_told_text(told, of->said, sizeof(of->said));
	case_told_warnings(told, of->software, of->warnings, sizeof(of->warnings));
	json_decref(told);
	return rc;
}

/* Read the values of the volume; *ret is allocated. */
static int read_volume(const char *path, float **ret, size_t *ret_n, struct err *err)
{
	FILE *f = NULL;
	struct stat st;
	int rc = regular_file_open(path, &f, err);

	if (rc < 0)
		return rc;
	if (fstat(fileno(f), &st) < 0)
		rc = err_set(err, EIO, "%s: %s", path, strerror(errno));
	else if (st.st_size <= 0 || st.st_size % (off_t)sizeof(float) != 0)
		rc = err_set(err, EBADMSG, "%s: %lld bytes; needed: a file of float32", path, (long long)st.st_size);
	else if (!(*ret = malloc((size_t)st.st_size)))
		rc = err_set(err, ENOMEM, "%s: no memory for %lld bytes", path, (long long)st.st_size);
	else if (fread(*ret, 1, (size_t)st.st_size, f) != (size_t)st.st_size)
		rc = err_set(err, EIO, "%s: cannot be read", path);
	else
		*ret_n = (size_t)st.st_size / sizeof(float);
	fclose(f);
	return rc;
}

static int write_volume(struct arrays *a, char **paths)
{
	const struct options *o = &a->r.o;
	struct result_outside *of = &a->outside;
	float *values = NULL;
	struct err err = {0};
	int code = take_text(o, "software", a->software, 1, of->software, sizeof(of->software));

	if (code == CODE_OK)
		code = take_text(o, "version", a->version, 1, of->version, sizeof(of->version));
	if (code == CODE_OK)
		code = take_text(o, "note", a->note ? a->note : "", 0, of->note, sizeof(of->note));
	if (code == CODE_OK && (!paths[0] || !paths[1]))
		code = options_fail(o, CODE_USAGE, "needed: the volume, and the files that it was computed from");
	if (code == CODE_OK && a->told && take_told(a->told, of, &err) < 0)
		code = options_fail_err(o, &err);
	if (code == CODE_OK && read_volume(paths[0], &values, &of->n, &err) < 0)
		code = options_fail_err(o, &err);
	if (code == CODE_OK) {
		dicom_sha256(values, of->n * sizeof(float), of->sha256);
		of->values = values;
		of->algorithm = (enum result_algorithm)a->algorithm;
		a->r.outside = of;
		code = recon_run(&a->r, paths + 1);
	}
	free(values);
	return code;
}

int cmd_arrays(int argc, char **argv)
{
	struct arrays a = {.r = {.arrays = true, .steps = {.fd = -1}}};
	int code = recon_read_options(&a.r, &spec, argc, argv);
	char **words = argv + a.r.o.first;

	if (code < 0 && !strcmp(words[0], "write")) {
		a.r.arrays = false;
		code = write_volume(&a, words + 1);
	} else if (code < 0) {
		code = strcmp(words[0], "read")
			       ? options_fail(&a.r.o, CODE_USAGE, "'%s' is not an action; allowed: read, write", words[0])
			       : recon_run(&a.r, words + 1);
	}
	recon_clear(&a.r);
	return code;
}
