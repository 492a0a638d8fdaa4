/* SPDX-License-Identifier: Apache-2.0 */
/* `tomonode recon --recipe RESULT`: make a result again with the protocol that RESULT has in its provenance, and say what differs. */
#ifndef TOMONODE_NODE_RECON_RECIPE_H
#define TOMONODE_NODE_RECON_RECIPE_H

#include <jansson.h>

#include "kernels/err.h"
#include "node/config/kind.h"
#include "node/sinogram/recipe.h"

#define RECON_SET_MAX 64 /* settings of a protocol */

struct recon_recipe {
	const struct kind *kind;		/* of the cases that it is for */
	char protocol[RECIPE_SIZE];		/* name */
	char text[RECIPE_SIZE];			/* "algorithm=osem\0iterations=1\0..." */
	const char *assignments[RECON_SET_MAX]; /* into the text, as config_set() takes them */
	int n;
};

/* Write the path of the result: of a folder the first file of the only volume in it; else `path` itself. EBADMSG: no volume, or
 * several; the text lists them. */
int recon_recipe_file(const char *path, char *ret_file, size_t size, struct err *err);
/* EBADMSG: the object has no recipe of this program, or not all of it; the text says which file. */
int recon_recipe_load(const char *path, struct recon_recipe *ret, struct err *err);
/* Return what is not the same in two results: version, device, protocol, geometry, maps, study, data, as an array of "device cpu,
 * was cuda"; empty: nothing. NULL: one of them cannot be read, or without memory. */
json_t *recon_recipe_differences(const char *was, const char *is);

#endif
