/* SPDX-License-Identifier: Apache-2.0 */
/* Functions shared by the files of node/options/options.h. Private to them. */
#ifndef TOMONODE_NODE_OPTIONS_INTERNAL_H
#define TOMONODE_NODE_OPTIONS_INTERNAL_H

#include "node/options/options.h"

extern const char options_exit_codes[]; /* lines of --help */
extern const char options_of_config[];	/* what is read without --config */
extern const char options_of_json[];	/* help of --json */
extern const char options_of_help[];	/* help of --help */

bool options_have(const struct command_spec *spec, const char *name);

/* options_man.c: print the manual page of a command in the macros of man(7). */
void options_print_man(const struct command_spec *spec);
/* options_complete.c: print what can stand at the place of the last word, a line each. */
void options_print_words(const struct command_spec *spec, const char *before, const char *word);

#endif
