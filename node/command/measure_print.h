/* SPDX-License-Identifier: Apache-2.0 */
/* Print what `tomonode measure` found: a summary and tables for people, or lines of comma-separated values. */
#ifndef TOMONODE_NODE_MEASURE_PRINT_H
#define TOMONODE_NODE_MEASURE_PRINT_H

#include <jansson.h>
#include <stdbool.h>

/* pairs: the distance of every pair of points, too. */
void measure_print_tomo(const json_t *result, bool pairs);
void measure_print_series(const json_t *result);

/* Print the members of --json as lines "list,name,figure,value", with a header; a value that is unknown is empty. */
void measure_print_csv(const json_t *result);

#endif
