/* SPDX-License-Identifier: Apache-2.0 */
/* recon_cases.c - reconstruct one case after the other, and note what became of each. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "node/base/progress.h"
#include "node/command/recon_internal.h"
#include "node/command/recon_print.h"
#include "node/sinogram/pet_source.h"

/* Is --header a file of this case? */
static bool has_header(const struct recon *r, const struct case_files *c)
{
	struct stat wanted, file;
	bool found = false;

	if (!r->header || stat(r->header, &wanted) < 0)
		return false;
	for (size_t i = 0; i < c->n && !found; i++)
		found = stat(c->paths[i], &file) == 0 && file.st_dev == wanted.st_dev && file.st_ino == wanted.st_ino;
	return found;
}

int recon_cases_check_header(const struct recon *r)
{
	bool found = !r->header;

	for (size_t i = 0; i < r->list->n; i++)
		found = found || has_header(r, &r->list->cases[i]);
	return found ? -1 : options_fail(&r->o, CODE_NOT_FOUND, "--header %s: no case has this file", r->header);
}

static int reconstruct_one(struct recon *r, const struct case_files *c, struct device *dev, struct pet_cache *cache,
			   struct reconstruct_report *ret_report, struct err *err)
{
	struct case_decision decision = {.patient = {r->same_patient, has_header(r, c) ? r->header : NULL},
					 .marks = r->gating.marks.n > 0 ? &r->gating.marks : NULL,
					 .file = &r->source.conf,
					 .n_maps = r->source.n_maps,
					 .maps = r->source.map,
					 .arrays = r->arrays};
	const struct imported_case *of = imported_cases_of(&r->imported, c);
	const struct pet_source *source = of ? NULL : pet_source_of_file(c->paths[0]);
	const struct protocol_conf *p = &r->protocols[kind_id(c->kind)];
	const char **joined = NULL, *last = r->n_assignments > 0 ? r->assignments[r->n_assignments - 1] : "";
	struct progress progress;
	char axes[400];
	size_t n = c->n;
	int rc;

	if (!r->chosen[kind_id(c->kind)]) {
		*err = r->why[kind_id(c->kind)];
		return -err->code;
	}
	decision.place.outside = r->outside;
	decision.steps = r->steps.fd >= 0 ? &r->steps.runner : NULL;
	recon_protocols_changes(r, p, decision.place.changed, sizeof(decision.place.changed));
	if (r->n_assignments > 0)
		snprintf(decision.place.named, sizeof(decision.place.named), "%.*s", (int)strcspn(last, " ="), last);
	if (of) {
		decision.assumed = of->assumed.text[0] ? &of->assumed : NULL;
		if (of->assumed.text[0])
			fprintf(stderr, "tomonode %s: %s: %s\n", r->o.spec->name, of->from, of->assumed.text);
	}
	if (source && source->taken) {
		source->taken(&r->source.conf, axes, sizeof(axes));
		fprintf(stderr, "tomonode %s: %s: %s\n", r->o.spec->name, c->paths[0], axes);
	}
	if (kind_needs_ct(p) && !(joined = case_paths_with_ct(r->list, c, &n)))
		return err_set(err, ENOMEM, "no memory for the paths of the CT");
	if (joined && n == c->n && r->list->n_ct > 0)
		fprintf(stderr,
			"tomonode %s: %s: none of the %zu objects of CT or maps has its frame of reference or its study; with "
			"several scans each needs one that does, or a command of its own\n",
			r->o.spec->name, c->paths[0], r->list->n_ct);
	if (joined && r->list->n == 1 && n > c->n && n - c->n < r->list->n_ct)
		fprintf(stderr,
			"tomonode %s: %s: %zu of the %zu objects of CT or maps are not of its frame of reference, and not used\n",
			r->o.spec->name, c->paths[0], r->list->n_ct - (n - c->n), r->list->n_ct);
	progress_start(&progress, !r->o.json);
	rc = reconstruct_case(r->config, p, dev, cache, NULL, joined ? joined : (const char *const *)c->paths, n, &decision,
			      r->out_dir, &progress.monitor, ret_report, err);
	progress_stop(&progress);
	free(joined);
	return rc;
}

/* Return the exit code for a refused case. If a --set is not valid for its kind, the command line is wrong, not the case. */
static int refusal_code(const struct recon *r, const struct case_files *c, const struct err *err)
{
	if (r->chosen[kind_id(c->kind)])
		return options_code(err);
	return err->code == ENOENT ? CODE_NOT_FOUND : CODE_USAGE;
}

/* Why a case was refused whose series has other cases, of other frames of reference. */
struct split_case {
	char *reason; /* NULL: it was not refused */
	int code;
};

static bool are_of_one_series(const struct recon *r, size_t i, size_t j)
{
	const struct case_files *a = &r->list->cases[i], *b = &r->list->cases[j];

	return a->kind == b->kind && kind_keys_differ_in_frame(a->kind, a->key, b->key);
}

static bool is_split(const struct recon *r, size_t i)
{
	size_t j = 0;

	while (j < r->list->n && !are_of_one_series(r, i, j))
		j++;
	return j < r->list->n;
}

static void name_case(const struct recon *r, size_t i, char *ret, size_t size)
{
	char name[64];

	recon_print_name(&r->list->cases[i], name, sizeof(name));
	snprintf(ret, size, "case %zu (%s)", i + 1, name);
}

/* Note the refusals of cases of one series that have the same reason as one. */
static void note_split_cases(struct recon *r, struct split_case *split)
{
	char who[96], text[700];

	for (size_t i = 0; i < r->list->n; i++) {
		size_t files = r->list->cases[i].n, frames = 1;

		if (!split[i].reason)
			continue;
		for (size_t j = i + 1; j < r->list->n; j++)
			if (split[j].reason && !strcmp(split[j].reason, split[i].reason) && are_of_one_series(r, i, j)) {
				files += r->list->cases[j].n;
				frames++;
				free(split[j].reason);
				split[j].reason = NULL;
			}
		text[0] = '\0';
		if (frames > 1)
			kind_frames_text((long)files, (long)frames, text, sizeof(text));
		snprintf(text + strlen(text), sizeof(text) - strlen(text), "%s", split[i].reason);
		name_case(r, i, who, sizeof(who));
		recon_notes_refusal(r, split[i].code, who, text);
		free(split[i].reason);
	}
	free(split);
}

void recon_cases_reconstruct(struct recon *r, struct device *dev)
{
	struct pet_cache *cache = pet_cache_create(dev, PET_CACHE_BYTES);
	struct split_case *split = calloc(r->list->n + 1, sizeof(*split));

	for (size_t i = 0; i < r->list->n && r->code != CODE_CANCELLED; i++) {
		const struct case_files *c = &r->list->cases[i];
		struct reconstruct_report report = {0};
		struct err err = {0};
		const struct imported_case *of = imported_cases_of(&r->imported, c);
		char who[96];
		int rc = reconstruct_one(r, c, dev, cache, &report, &err), code = rc < 0 ? refusal_code(r, c, &err) : 0;

		name_case(r, i, who, sizeof(who));
		if (rc < 0 && code != CODE_CANCELLED && split && !of && is_split(r, i) && (split[i].reason = strdup(err.msg)))
			split[i].code = code;
		else if (rc < 0)
			recon_notes_refusal(r, code, of ? of->from : who, err.msg);
		else if (r->arrays)
			recon_notes_arrays(r, c, &report);
		else
			recon_notes_result(r, c, &report);
		reconstruct_report_clear(&report);
	}
	if (split)
		note_split_cases(r, split);
	pet_cache_free(cache);
}
