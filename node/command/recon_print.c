/* SPDX-License-Identifier: Apache-2.0 */
#include "node/command/recon_print.h"

#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "node/base/json_get.h"
#include "node/base/plural.h"
#include "node/tools/image_series.h"

void recon_print_name(const struct case_files *c, char *ret, size_t size)
{
	const struct kind *kind = c->kind;
	bool by_view = false;

	for (size_t i = 0; kind->key[i]; i++)
		by_view = by_view || kind->key[i] == CASE_VIEW;
	if (by_view)
		snprintf(ret, size, "%s %s", c->laterality[0] ? c->laterality : "?", c->view[0] ? c->view : "?");
	else
		snprintf(ret, size, "%s", kind->title);
}

/* Write the total of the measured counts of sinograms, ", 123 counts"; "": the kind has none, or its content says so. */
static void name_counts(const struct case_files *c, const struct reconstruct_report *p, char *ret, size_t size)
{
	const json_t *kind = json_object_get(p->details, c->kind->name), *counts = json_object_get(kind, "counts");

	ret[0] = '\0';
	if (json_is_number(counts) && !json_is_object(json_object_get(kind, "list_mode")))
		snprintf(ret, size, ", %.*f counts", json_number_value(counts) < 10 ? 3 : 0, json_number_value(counts));
}

/* Write the position of the patient, ", patient HFS"; "": the result has none. */
static void name_position(const struct case_files *c, const struct reconstruct_report *p, char *ret, size_t size)
{
	const char *position = json_string_value(json_object_get(json_object_get(p->details, c->kind->name), "patient_position"));

	snprintf(ret, size, "%s%s", position ? ", patient " : "", position ? position : "");
}

/* Say how the values of correction factors were taken. */
static void print_factors(const struct case_files *c, const struct reconstruct_report *p)
{
	const json_t *all = json_object_get(json_object_get(p->details, c->kind->name), "factors"), *one;
	size_t i;

	json_array_foreach((json_t *)all, i, one) printf("  %s\n", json_string_value(one));
}

/* Say what steps did. */
static void print_steps(const struct reconstruct_report *p)
{
	const json_t *all = json_object_get(p->details, "steps"), *one;
	size_t i;

	json_array_foreach((json_t *)all, i, one) if (!json_object_get(one, "failed")) /* that is a warning */
		printf("  step %s %s, %.2f s: %s\n", json_get_text(one, "name"), json_get_text(one, "version"),
		       json_get_number(one, "seconds"), json_get_text(json_object_get(one, "told"), "summary"));
}

/* Say what of metal a tomosynthesis had; nothing if nobody asked. */
static void print_metal(const struct reconstruct_report *p)
{
	const json_t *metal = json_object_get(p->details, "metal");

	if (json_is_array(metal) && json_array_size(metal) == 0)
		printf("  no metal was found\n");
	else if (json_is_array(metal))
		printf("  metal: %zu object%s replaced in the projections and put back; what the shadows cover in nearly all of them is "
		       "lost\n",
		       json_array_size(metal), plural(json_array_size(metal)));
}

/* Say which axis of rotation of parallel beams is not that of a header. */
static void print_axis(const struct case_files *c, const struct reconstruct_report *p)
{
	const json_t *axis = json_object_get(json_object_get(p->details, c->kind->name), "axis");
	const json_t *header = json_object_get(axis, "header_mm");
	double offset = json_get_number(axis, "offset_mm");

	if (!json_is_object(json_object_get(axis, "found")) || (json_is_number(header) && json_number_value(header) == offset))
		return;
	printf("  axis offset %.6g mm, found in the data (%s, +- %.2g mm)\n", offset, json_get_text(axis, "by"),
	       json_get_number(json_object_get(axis, "found"), "sigma_mm"));
}

void recon_print(const struct case_files *c, const struct reconstruct_report *p, const struct imported_case *of,
		 const char *out_dir)
{
	const char *warnings = p->warnings, *assumed = of ? of->assumed.text : "";
	char name[64], counts[40], position[32];

	recon_print_name(c, name, sizeof(name));
	name_position(c, p, position, sizeof(position));
	name_counts(c, p, counts, sizeof(counts));
	printf("%s: %s, %d x %d x %d voxels of %.3g x %.3g x %.3g mm%s, %.2f s (read %.2f, reconstruct %.2f, write %.2f): ", name,
	       p->content, p->n[0], p->n[1], p->n[2], p->voxel[0], p->voxel[1], p->voxel[2], counts, p->seconds_total,
	       p->seconds_read + p->seconds_prepare + p->seconds_upload, p->seconds_reconstruct,
	       p->seconds_download + p->seconds_write);
	if (p->is_series) {
		printf("%zu slice%s in %s, %s%s%s\n", p->n_objects, plural(p->n_objects), out_dir, image_series_unit(p->unit),
		       position, of && of->assumed.position ? " (assumed)" : "");
	} else {
		printf("%s/%s", out_dir, p->objects[0].file);
		for (size_t i = 1; i < p->n_objects; i++)
			printf(", %s", p->objects[i].file);
		printf("\n");
	}
	print_factors(c, p);
	print_axis(c, p);
	print_metal(p);
	print_steps(p);
	if (assumed[0] && !strncmp(warnings, assumed, strlen(assumed))) { /* it was printed before */
		warnings += strlen(assumed);
		warnings += *warnings == ' ';
	}
	if (warnings[0])
		printf("  %s\n", warnings);
	if (p->omitted[0])
		printf("  %s\n", p->omitted);
}
