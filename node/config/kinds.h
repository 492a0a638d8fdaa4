/* SPDX-License-Identifier: Apache-2.0 */
/* The kinds of cases. Each kind has two tables: struct kind (node/config/kind.h), its properties for configuration, jobs and
 * reports, and struct reconstruct_kind (node/reconstruct/reconstruct_internal.h), which recognises and reconstructs its cases. To
 * add a kind, add one line below and its own files. */
#ifndef TOMONODE_NODE_KINDS_H
#define TOMONODE_NODE_KINDS_H

#include "recon/dbt/dbt.h"
#include "recon/parallel/parallel.h"
#include "recon/pet/pet.h"

/* X(CONSTANT, name) defines KIND_CONSTANT; struct name_protocol and the tables kind_name and reconstruct_name must exist. */
#define KINDS(X)                                                                                                                 \
	X(DBT, dbt)                                                                                                              \
	X(PET, pet)                                                                                                              \
	LINE_KINDS(X)

/* Those of them whose data are line integrals in sinogram objects of a format of their own. Each also has a header type:
 * INTERFILE_CONSTANT, struct name_scan and the table interfile_name (node/format/interfile.h). */
#define LINE_KINDS(X) X(PARALLEL, parallel)

#define KIND_DEFAULT "dbt" /* kind of routes and protocols without a key `kind` */

#define KIND_NAME_SIZE 16 /* size of a kind's name in the configuration and in jobs */

/* Kind of a case, and of the protocols that can reconstruct it. */
enum case_kind {
#define X(constant, name) KIND_##constant,
	KINDS(X)
#undef X
		KIND_COUNT
};

#endif
