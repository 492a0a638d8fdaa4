/* SPDX-License-Identifier: Apache-2.0 */
/* The page of a fit of a geometry profile: HTML with drawings (SVG), without scripts. */
#ifndef TOMONODE_NODE_PROFILE_PAGE_H
#define TOMONODE_NODE_PROFILE_PAGE_H

#include "node/tools/profile_fit.h"
#include "node/tools/profile_views.h"

#define PROFILE_PAGE_SIDE 640 /* longer side of the picture of a view, pixels */

/* Return the page; the caller frees it. check: the comparison with the profile in use; NULL: a fit. central: the view in
 * view.png; size: of this picture. NULL: no memory. */
char *profile_page(const struct exam *exam, const struct profile_result *r, const struct profile_constancy *check, int central,
		   const int size[2]);

#endif
