/* SPDX-License-Identifier: Apache-2.0 */
/* What `tomonode recon` and `tomonode arrays read` share: cases, protocols, and what is decided about them. cmd_recon.c */
#ifndef TOMONODE_NODE_RECON_COMMAND_H
#define TOMONODE_NODE_RECON_COMMAND_H

#include <jansson.h>
#include <limits.h>

#include "node/command/imported_cases.h"
#include "node/command/recon_recipe.h"
#include "node/command/source_options.h"
#include "node/reconstruct/case_files.h"
#include "node/step/step_helper.h"

enum { OPTION_RECON_SET = OPTION_LONG };

struct recon { /* starts as {.steps = {.fd = -1}} */
	struct options o;
	bool arrays;			      /* write the arrays of one case, not results */
	const struct result_outside *outside; /* the volume of one case that is written; NULL: it is reconstructed */
	const char *conf_path, *out_dir, *protocol_name, *device, *table; /* table: of --frames; NULL: not given */
	const char *assignments[RECON_SET_MAX];
	int n_assignments;
	const char *recipe_path;    /* of --recipe; NULL: not given */
	char recipe_file[PATH_MAX]; /* the object */
	struct recon_recipe recipe;
	char frames[PET_FRAMES_TEXT + 8]; /* "frames=TABLE"; "": not given */
	struct gate_options gates;
	struct pet_gates gating;		/* what they mean */
	char gate_keys[3][PET_CYCLE_TEXT + 16]; /* "gates=N" ...; "": not given */
	struct source_options source;
	struct imported_cases imported;
	bool same_patient;
	const char *header;	/* NULL: not given */
	const char *report_dir; /* the same */
	struct config *config;
	struct protocol_conf protocols[KIND_COUNT]; /* one for each kind of case */
	bool chosen[KIND_COUNT];
	struct err why[KIND_COUNT]; /* why a kind has no protocol */
	struct case_list *list;
	struct step_helper steps;
	char steps_folder[PATH_MAX]; /* that of the steps, within out_dir; "": none */
	bool made_folder;	     /* out_dir was made for it */
	json_t *cases, *refused;
	int code; /* exit code of the first refused case */
};

/* Read the options of a command whose table stores them in struct recon. Return -1, or the exit code to return. */
int recon_read_options(struct recon *r, const struct command_spec *of, int argc, char **argv);
/* Do it for these paths, which NULL ends. Return the exit code. */
int recon_run(struct recon *r, char **paths);
void recon_clear(struct recon *r);

#endif
