/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_arrays.c - `tomonode arrays read`: the arrays that a case is reconstructed from, for other programs. */
#include <string.h>

#include "node/command/commands.h"
#include "node/command/recon_command.h"

static const struct option_spec option_specs[] = {
	{'c', "config", "FILE", "configuration file, applied over the embedded defaults; its keys of the audit trail count, too",
	 INTO_TEXT(struct recon, conf_path)},
	{'o', "output", "DIR", "folder for case.json and the arrays; created with its parents if missing",
	 INTO_TEXT(struct recon, out_dir)},
	{0, "protocol", "NAME",
	 "protocol of the configuration, which has the corrections; default: for each kind the first one of its first route",
	 INTO_TEXT(struct recon, protocol_name)},
	{0, "device", "SPEC", "auto, cpu, cpu:THREADS, cuda or cuda:N; default: the first of node.device that can be opened",
	 INTO_TEXT(struct recon, device)},
	{OPTION_RECON_SET, "set", "KEY=VALUE",
	 "set one key of the protocol, with the syntax of the configuration; may be repeated"},
	SOURCE_OPTIONS(struct recon, source),
	{0, "same-patient", NULL,
	 "state that the files of the case are of one patient, although their headers name different ones",
	 INTO_ON(struct recon, same_patient)},
	{0},
};

static const char *action_name(size_t i)
{
	return i == 0 ? "read" : NULL;
}

static const struct command_spec spec = {
	.name = "arrays",
	.usage = "read [-c FILE] [--protocol NAME] [--set KEY=VALUE]... [OPTION]... -o DIR PATH...",
	.summary = "Write what a case is reconstructed from as JSON and float32, for programs (tn.open() of the Python package).",
	.text = "PATH: the files of one case, as for recon: DICOM files or folders, Interfile headers, folders of the e7tools or\n"
		"PETSIRD files. DIR/case.json has the geometry, the shapes and units of the arrays, and warnings; data.f32,\n"
		"factors.f32, background.f32, valid.f32, for single events points.f32, events.i32, tof_bin.i32, add.f32 and\n"
		"sensitivity.f32 have the values that a reconstruction with the protocol uses, with its corrections, in C order\n"
		"(docs/library.md). No attribute of the patient is written.",
	.options = option_specs,
	.json = true,
	.min_arguments = 2,
	.max_arguments = -1,
	.examples = "tomonode arrays read -o case exam\n"
		    "tomonode arrays read --protocol pet-osem --set corrections=attenuation -o case pet/*.dcm ct/*.dcm\n",
	.files = true,
	.word = action_name,
};

int cmd_arrays(int argc, char **argv)
{
	struct recon r = {.arrays = true};
	int code = recon_read_options(&r, &spec, argc, argv);

	if (code < 0 && strcmp(argv[r.o.first], "read") != 0)
		code = options_fail(&r.o, CODE_USAGE, "'%s' is not an action; allowed: read", argv[r.o.first]);
	if (code < 0)
		code = recon_run(&r, argv + r.o.first + 1);
	recon_clear(&r);
	return code;
}
