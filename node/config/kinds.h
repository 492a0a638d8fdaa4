/* The kinds of cases. Of each kind there are two tables: struct kind (node/config/kind.h), what configuration, jobs and reports
 * know of it, and struct reconstruct_kind (node/reconstruct/reconstruct_internal.h), how its cases are recognised and
 * reconstructed. A new kind is one more line here, and its own files. */
#ifndef TOMONODE_NODE_KINDS_H
#define TOMONODE_NODE_KINDS_H

#include "recon/dbt/dbt.h"
#include "recon/parallel/parallel.h"
#include "recon/pet/pet.h"

/* X(CONSTANT, name): there are a KIND_CONSTANT, a struct name_protocol, and the tables kind_name and reconstruct_name. The first
 * kind is that of routes and protocols that name none. */
#define KINDS(X)                                                                                                                 \
	X(DBT, dbt)                                                                                                              \
	X(PET, pet)                                                                                                              \
	X(PARALLEL, parallel)

#define KIND_DEFAULT "dbt"

/* What a case, and with it the protocol for it, is about. */
#define KIND_NAME_SIZE 16 /* in the configuration and in jobs */

enum case_kind {
#define X(constant, name) KIND_##constant,
	KINDS(X)
#undef X
		KIND_COUNT
};

#endif
