/* SPDX-License-Identifier: Apache-2.0 */
/* Say what is wrong with a text that libconfig refused: libconfig only names the line, often the one after the mistake. */
#ifndef TOMONODE_NODE_CONFIG_SYNTAX_H
#define TOMONODE_NODE_CONFIG_SYNTAX_H

#include <stddef.h>

#include "node/config/config_text.h"

enum { CONFIG_SYNTAX_TEXT = 320 }; /* bytes of a sentence */

/* Find the first place where the text breaks the grammar: what is missing, the column, and the line with the mark <here>.
 * Returns the line of the whole text (from 1), or 0 if no mistake was found; ret_text then stays. */
unsigned config_syntax_explain(const struct config_text *text, char ret_text[CONFIG_SYNTAX_TEXT]);

#endif
