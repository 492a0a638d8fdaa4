/* SPDX-License-Identifier: Apache-2.0 */
/* Files that this program writes beside objects for itself: truth.json of `simulate`, corrections-UID.json of a result. Commands
 * that look for objects in a folder pass them over without a word. */
#ifndef TOMONODE_NODE_OWN_FILES_H
#define TOMONODE_NODE_OWN_FILES_H

#include <stdbool.h>

#define OWN_CORRECTIONS "corrections-" /* and UID.json, UID being that of the series */

bool own_file(const char *path); /* by its name alone */

#endif
