/* All sinograms of a PET acquisition in a session: read, hashes checked, turned into what the model wants. */
#ifndef TOMONODE_NODE_CASE_PLANES_H
#define TOMONODE_NODE_CASE_PLANES_H

#include "node/sinogram/sinogram.h"
#include "recon/core/monitor.h"
#include "recon/pet/pet.h"

struct case_planes_report {
	double seconds_read, seconds_prepare, seconds_upload; /* one after the other: they add up */
	size_t planes;					      /* of all roles of the model */
};

/* Which roles of the model there are. EBADMSG: the data say that they are corrected for something already that a role of the
 * acquisition corrects for, too. */
int case_planes_roles(const struct sinogram *s, bool *ret_factors, bool *ret_background, struct err *err);

/* Hands every plane of every role to the session. m = MULTIPLICATIVE / (ATTENUATION NORMALISATION), as far as there are. EBADMSG:
 * wrong data, with role, plane, angle and bin of the first. Memory of the roles that one of the model's is made of. */
int case_read_planes(const struct sinogram *s, struct pet_session *session, int threads, const struct monitor *monitor,
		     struct case_planes_report *ret_report, struct err *err);

#endif
