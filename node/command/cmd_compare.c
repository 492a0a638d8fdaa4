/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_compare.c - `tomonode compare`: what differs between two results, in their values and in how they were made. */
#include <errno.h>
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "node/base/atomic_file.h"
#include "node/base/folder.h"
#include "node/command/audit_files.h"
#include "node/command/commands.h"
#include "node/command/recon_recipe.h"
#include "node/options/options.h"
#include "node/report/compare.h"
#include "node/report/report_files.h"

struct request {
	const char *page, *config_path; /* NULL: not given */
};

static const struct option_spec option_specs[] = {
	{'o', "output", "FILE.html",
	 "also write a page: figures, slices of both, and their difference; created with its parents, an existing file is replaced",
	 INTO_TEXT(struct request, page)},
	{'c', "config", "FILE", "configuration file: profiles of Hologic SCO objects", INTO_TEXT(struct request, config_path)},
	{0},
};

static const struct command_spec spec = {
	.name = "compare",
	.usage = "[-o FILE.html] [-c FILE] [--json] A B",
	.summary =
		"Compare two results with the same voxels at the same place: mean, noise, difference, and how they were made differently.",
	.text = "A, B: the file of a tomosynthesis, or the folder of a PET or CT series. The figures are of\n"
		"the object, without air. The page shows images of the patient, whom it does not name, unless A or B does.",
	.options = option_specs,
	.json = true,
	.min_arguments = 2,
	.max_arguments = 2,
	.examples = "tomonode compare last-year/result new/result\n"
		    "tomonode compare -o page.html series-osem series-mlem\n",
	.files = true,
};

struct compared {	      /* starts as {0} */
	const char *paths[2]; /* as given */
	struct series_files files[2];
	struct image_series *series[2];
	struct comparison figures;
	json_t *changes; /* NULL: not known */
};

/* Open A (0) or B (1), the only volume of its path. */
static int open_one(struct compared *c, int i, char *path, const struct report_conf *conf, struct err *err)
{
	char *paths[] = {path, NULL}, names[SERIES_LIST_SIZE], notes[SLICES_NOTES_SIZE];
	int rc = series_files_find(paths, false, &c->files[i], err);

	if (rc == 0)
		rc = series_files_check(&c->files[i], paths, false, err);
	if (rc < 0)
		return rc;
	series_files_list(&c->files[i], names, sizeof(names));
	if (c->files[i].n != 1)
		return err_set(err, EBADMSG, "%s: %zu results: %s; allowed: one", path, c->files[i].n, names);
	return report_volume_open(&c->files[i].list[0], conf, &c->series[i], notes, err);
}

static int write_page(const struct compared *c, const char *path, struct err *err)
{
	char titles[2][4096 + 300];
	const char *names[2] = {titles[0], titles[1]}, **changes = calloc(json_array_size(c->changes) + 3, sizeof(*changes));
	struct html h = {0};
	size_t i, n = 0;
	json_t *one;
	int rc;

	if (!changes)
		return err_set(err, ENOMEM, "no memory for a page");
	for (int k = 0; k < 2; k++)
		snprintf(titles[k], sizeof(titles[k]), "%s (%s)", c->paths[k], c->files[k].list[0].name);
	json_array_foreach(c->changes, i, one) changes[n++] = json_string_value(one);
	if (c->figures.place[0])
		changes[n++] = c->figures.place;
	if (!c->changes)
		changes[n] = "One of them is not of this program: how it was made is not known.";
	rc = comparison_page((const struct image_series *const *)c->series, &c->figures, names, changes, &h, err);
	if (rc == 0)
		rc = folder_create_parent(path, err);
	if (rc == 0)
		rc = atomic_file_put(path, h.text, h.n, err);
	html_clear(&h);
	free(changes);
	return rc;
}

static json_t *json_number(double value)
{
	return isfinite(value) ? json_real(value) : json_null();
}

static json_t *figures_json(const struct comparison *f)
{
	return json_pack(
		"{s:[f,f], s:[f,f], s:[o,o], s:f, s:f, s:o, s:{s:f, s:[i,i,i,i]}, s:{s:I, s:o}, s:{s:I, s:f, s:f}, s:I, s:I, s:o}",
		"mean", f->mean[0], f->mean[1], "sd", f->sd[0], f->sd[1], "noise", json_number(f->noise[0]),
		json_number(f->noise[1]), "bias", f->bias, "rms", f->rms, "correlation", json_number(f->correlation), "largest",
		"value", f->largest, "at", f->at[0] + 1, f->at[1] + 1, f->at[2] + 1, f->image + 1, "object", "voxels",
		(json_int_t)f->object, "above", json_number(f->level), "air", "voxels", (json_int_t)(f->voxels - f->object),
		"bias", f->air_bias, "rms", f->air_rms, "voxels", (json_int_t)f->voxels, "equal", (json_int_t)f->equal, "place",
		f->place[0] ? json_string(f->place) : json_null());
}

static void print_result(const struct options *o, const struct compared *c)
{
	const struct comparison *f = &c->figures;
	char object[120];
	json_t *one;
	size_t i;

	if (o->json) {
		one = figures_json(f);
		json_object_update_new(one, json_pack("{s:b, s:i, s:o}", "ok", true, "code", CODE_OK, "made_differently",
						      c->changes ? json_incref(c->changes) : json_null()));
		options_json(one);
		return;
	}
	comparison_object_text(c->series[0], f, object, sizeof(object));
	printf("object: %.3g %% of the voxels, those %s\n", 100 * (double)f->object / (double)f->voxels, object);
	printf("A: mean %.6g, standard deviation %.4g, noise %.4g\n", f->mean[0], f->sd[0], f->noise[0]);
	printf("B: mean %.6g, standard deviation %.4g, noise %.4g\n", f->mean[1], f->sd[1], f->noise[1]);
	if (f->equal == f->voxels)
		printf("all %llu voxels are equal\n", (unsigned long long)f->voxels);
	else
		printf("B - A: mean %.4g, root mean square %.4g, largest %.4g at column %d, row %d, slice %d, image %d; correlation "
		       "%.9f; in air: mean %.4g, root mean square %.4g; %.3f %% of all voxels are equal\n",
		       f->bias, f->rms, f->largest, f->at[0] + 1, f->at[1] + 1, f->at[2] + 1, f->image + 1, f->correlation,
		       f->air_bias, f->air_rms, 100 * (double)f->equal / (double)f->voxels);
	if (f->place[0])
		printf("place: %s\n", f->place);
	json_array_foreach(c->changes, i, one) printf("made differently, B: %s\n", json_string_value(one));
}

int cmd_compare(int argc, char **argv)
{
	struct request r = {.page = NULL};
	struct compared c = {.changes = NULL};
	struct report_conf conf = {.config = NULL};
	struct config *config = NULL;
	struct err err = {0};
	struct options o;
	int rc = 0, code;

	options_begin(&o, &spec, argc, argv);
	o.into = &r;
	if (options_next(&o) == OPTION_STOP)
		return o.code;
	code = options_config(&o, r.config_path, &config);
	if (code != CODE_OK)
		return code;
	conf.config = config;
	audit_start(&config->node, AUDIT_DIRECT, "compare");
	for (int i = 0; rc == 0 && i < 2; i++) {
		c.paths[i] = argv[o.first + i];
		rc = open_one(&c, i, argv[o.first + i], &conf, &err);
	}
	if (rc == 0)
		rc = comparison_make((const struct image_series *const *)c.series, &c.figures, &err);
	if (rc == 0)
		c.changes = recon_recipe_differences(c.files[0].list[0].paths[0], c.files[1].list[0].paths[0]);
	if (rc == 0 && r.page)
		rc = write_page(&c, r.page, &err);
	code = rc < 0 ? options_fail_err(&o, &err) : CODE_OK;
	if (rc == 0)
		print_result(&o, &c);
	for (int i = 0; i < 2; i++) {
		if (r.page)
			audit_files_exported(&c.files[i], r.page, code);
		image_series_close(c.series[i]);
		series_files_clear(&c.files[i]);
	}
	json_decref(c.changes);
	config_free(config);
	return code;
}
