/* SPDX-License-Identifier: Apache-2.0 */
/* Scattered radiation in simulated projections, from a Monte Carlo (recon/phantom/scatter_mc.h) of the phantom. */
#ifndef TOMONODE_NODE_SIMULATE_SCATTER_H
#define TOMONODE_NODE_SIMULATE_SCATTER_H

#include "node/simulate/simulate.h"

/* Add the scatter of one view to its line integrals: -ln(exp(-line) + s->o.scatter S), where S is relative to the unattenuated
 * intensity. line: n_v * n_u; below 0 where scatter meets air. */
int simulate_scatter(const struct simulation *s, int view, float *line, struct err *err);

#endif
