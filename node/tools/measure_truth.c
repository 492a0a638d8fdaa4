/* SPDX-License-Identifier: Apache-2.0 */
/* measure_truth.c - read the items to measure from truth.json, and the true attenuation: that of its shapes, or of its breast of
 * tissue, which is made again from its seed. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "dicom/core/dataset.h"
#include "node/base/json_file.h"
#include "node/base/json_get.h"
#include "node/tomo/exam.h"
#include "node/tools/measure_internal.h"

#define CALCIFICATION_MOST 1.0 /* mm, radius; masses are larger */

int measure_add(struct measure_list *list, const struct measure_item *item, struct err *err)
{
	struct measure_item *items = realloc(list->items, (list->n + 1) * sizeof(*items));

	if (!items)
		return err_set(err, ENOMEM, "no memory for %zu regions", list->n + 1);
	items[list->n++] = *item;
	list->items = items;
	return 0;
}

void measure_clear(struct measure_list *list)
{
	free(list->items);
	free(list->truth.shapes);
	voxel_phantom_free(list->voxels);
	phantom_free(list->details);
	*list = (struct measure_list){0};
}

void measure_place(const struct tomo_object *t, const struct measure_list *list, double column, double row, double depth,
		   double ret_at[3])
{
	double step[2] = {column * t->spacing[0], row * t->spacing[1]};

	for (int a = 0; a < 3; a++) {
		ret_at[a] = 0;
		for (int c = 0; c < 3; c++)
			ret_at[a] += list->axis[a][c] *
				     (t->corner[c] + step[0] * t->across[c] + step[1] * t->down[c] + depth * t->normal[c]);
	}
}

double measure_true(const struct measure_list *list, const double at[3], const char **ret_tissue)
{
	const struct voxel_phantom *p = list->voxels;
	size_t voxel = 0;

	if (ret_tissue)
		*ret_tissue = NULL;
	if (!p)
		return phantom_value(&list->truth, at);
	for (int c = 2; c >= 0; c--) {
		double place = floor((at[c] - p->grid.lo[c]) / p->grid.h[c]);

		if (!(place >= 0 && place < p->grid.n[c]))
			return 0;
		voxel = voxel * (size_t)p->grid.n[c] + (size_t)place;
	}
	if (ret_tissue)
		*ret_tissue = breast_tissue(p->voxel[voxel]);
	return p->material[p->voxel[voxel]].mu + phantom_value(list->details, at);
}

static bool read_three(const json_t *shape, const char *key, double ret[3])
{
	const json_t *a = json_object_get(shape, key);

	for (size_t c = 0; c < 3; c++) {
		const json_t *number = json_array_get(a, c);

		if (!json_is_number(number))
			return false;
		ret[c] = json_number_value(number);
	}
	return true;
}

static enum shape_kind kind_of(const char *name)
{
	if (!strcmp(name, "box"))
		return SHAPE_BOX;
	if (!strcmp(name, "cylinder"))
		return SHAPE_CYLINDER_Z;
	return !strcmp(name, "breast") ? SHAPE_BREAST : SHAPE_ELLIPSOID;
}

/* Name an item: by its name in the truth, else by its kind and its number among the items of that kind. In a breast small details
 * are calcifications, whether they are measured as points or as regions. */
static void name_item(const char *name, bool breast, const struct measure_list *list, struct measure_item *item)
{
	bool small = item->radius[0] < CALCIFICATION_MOST;
	const char *kind = item->point && !breast ? "bead" : item->point || small ? "calcification" : "mass";
	size_t n = 1;

	for (size_t i = 0; i < list->n; i++)
		n += !strncmp(list->items[i].name, kind, strlen(kind));
	if (name && name[0])
		snprintf(item->name, sizeof(item->name), "%s", name);
	else
		snprintf(item->name, sizeof(item->name), "%s %zu", kind, n);
}

static int read_shape(const json_t *from, size_t number, bool breast, const struct tomo_object *object, struct measure_list *list,
		      struct err *err)
{
	const char *role = json_string_value(json_object_get(from, "role")),
		   *kind = json_string_value(json_object_get(from, "kind"));
	const json_t *mu = json_object_get(from, "mu_per_mm");
	struct shape *s = &list->truth.shapes[list->truth.n];
	struct measure_item item = {.in_truth = true};

	if (!role || !kind || !read_three(from, "center_mm", item.center) || !read_three(from, "half_axes_mm", item.radius) ||
	    !read_three(from, "patient_mm", item.patient))
		return err_set(err, EBADMSG, "shape %zu lacks one of role, kind, center_mm, half_axes_mm, patient_mm", number);
	s->kind = kind_of(kind);
	s->role = !strcmp(role, "bead") ? ROLE_BEAD : !strcmp(role, "lesion") ? ROLE_LESION : ROLE_BODY;
	s->mu = json_number_value(mu);
	memcpy(s->c, item.center, sizeof(s->c));
	memcpy(s->r, item.radius, sizeof(s->r));
	list->truth.n++;
	if (s->role == ROLE_BODY)
		return 0;
	item.point = s->role == ROLE_BEAD;
	name_item(json_string_value(json_object_get(from, "name")), breast, list, &item);
	tomo_object_locate(object, item.patient, item.at);
	return measure_add(list, &item, err);
}

static void move_phantom(const double by[3], struct measure_list *list)
{
	for (int c = 0; c < 3; c++) {
		list->voxels->grid.lo[c] += by[c];
		for (size_t i = 0; i < list->details->n; i++)
			list->details->shapes[i].c[c] += by[c];
	}
}

/* Make the breast of tissue again. A truth.json of an older program may lack what that needs: then the true attenuation is not
 * known. */
static int make_breast(const json_t *root, struct measure_list *list, struct err *err)
{
	const json_t *breast = json_object_get(root, "breast"), *room = json_object_get(breast, "room_mm");
	const char *digest = json_get_text(breast, "digest");
	struct breast_options o = {
		.room = {json_number_value(json_array_get(room, 0)), json_number_value(json_array_get(room, 1))},
		.thickness = json_get_number(root, "thickness_mm"),
		.glandular = json_get_number(breast, "asked_percent"),
		.muscle = !strcmp(json_get_text(root, "view"), "MLO"),
		.mirrored = json_get_text(root, "side")[0] == 'R',
		.clips = (int)json_get_integer(breast, "clips"),
		.seed = (unsigned)json_get_integer(root, "seed")};
	struct breast_truth truth;
	double origin[3];
	char found[65];
	int rc;

	if (!digest[0] || !read_three(breast, "origin_mm", origin))
		return 0;
	rc = breast_phantom_create(&o, &list->voxels, &list->details, &truth, err);
	if (rc < 0)
		return rc;
	dicom_sha256(list->voxels->voxel, grid_size(&list->voxels->grid), found);
	if (strcmp(found, digest) != 0)
		return err_set(
			err, EBADMSG,
			"this version of the program makes another breast from seed %u than the one that truth.json describes: simulate the "
			"exam again",
			o.seed);
	move_phantom(origin, list);
	list->known = true;
	return 0;
}

int measure_read_truth(const char *path, const struct tomo_object *object, struct measure_list *list, struct err *err)
{
	json_t *root = NULL;
	int r = json_file_read(path, &root, err);
	json_t *shapes = json_object_get(root, "shapes");
	const char *side = json_string_value(json_object_get(root, "side")),
		   *view = json_string_value(json_object_get(root, "view"));
	const char *frame = json_string_value(json_object_get(root, "frame_of_reference"));
	const char *phantom = json_string_value(json_object_get(root, "phantom"));
	bool breast = phantom && strcmp(phantom, "beads") != 0 && strcmp(phantom, "calibration") != 0;

	if (r < 0)
		return r;
	if (!side || !view || !json_is_array(shapes)) {
		r = err_set(err, EBADMSG, "not a truth.json of `tomonode simulate dbt`: side, view or shapes are missing");
		goto out;
	}
	if (frame && strcmp(frame, object->frame_of_reference) != 0) {
		r = err_set(err, EBADMSG,
			    "truth.json belongs to another exam: its frame of reference is %s, that of the object is %s", frame,
			    object->frame_of_reference);
		goto out;
	}
	orientation_axes(side[0], json_get_number(root, "gantry_degrees"), list->axis);
	list->truth.shapes = calloc(json_array_size(shapes) + 1, sizeof(*list->truth.shapes));
	if (!list->truth.shapes)
		r = err_set(err, ENOMEM, "no memory for %zu shapes", json_array_size(shapes));
	for (size_t i = 0; r == 0 && i < json_array_size(shapes); i++)
		r = read_shape(json_array_get(shapes, i), i, breast, object, list, err);
	list->breast = phantom && (!strcmp(phantom, "breast") || !strcmp(phantom, "ellipsoids"));
	list->known = phantom && strcmp(phantom, "voxels") != 0 && strcmp(phantom, "breast") != 0;
	if (r == 0 && phantom && !strcmp(phantom, "breast"))
		r = make_breast(root, list, err);
out:
	json_decref(root);
	return r;
}
