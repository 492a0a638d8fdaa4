/* SPDX-License-Identifier: Apache-2.0 */
/* Read the recipe of a result that this program has made: how its values were computed (provenance.h writes it). */
#ifndef TOMONODE_NODE_RECIPE_H
#define TOMONODE_NODE_RECIPE_H

#include "dicom/object/attribute.h"

enum { RECIPE_SIZE = 2048 }; /* bytes; Contribution Description has at most 1024 characters */

/* Read the recipe, "sha256=HEX ...", of a result. Returns the item of Contributing Equipment that has it; NULL, and "": none. */
const struct dicom_item *recipe_read(const struct dicom_item *root, char ret_recipe[RECIPE_SIZE]);
enum recipe_found { RECIPE_NONE, RECIPE_CUT, RECIPE_WHOLE }; /* cut: the attribute ends within the part */
/* Take the part " KIND="NAME: pairs"" of a recipe: up to the next part, or its end. kind: device, protocol, profile, scanner,
 * beams. ret_name: "" if the part has none. */
enum recipe_found recipe_part(const char *recipe, const char *kind, char ret_name[RECIPE_SIZE], char ret_pairs[RECIPE_SIZE]);

#endif
