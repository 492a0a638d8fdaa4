/* SPDX-License-Identifier: Apache-2.0 */
/* The projector: a device's system matrix (kernels/device.h) as a linear operator.
 *
 * x: a volume on spec->grid, attenuation in 1/mm. y: line integrals of the views [first, first + n_views), dimensionless. The
 * scan and the mask are borrowed and must outlive the operator. The operator has the fused passes if the device has them. */
#ifndef TOMONODE_RECON_PROJECTOR_H
#define TOMONODE_RECON_PROJECTOR_H

#include "recon/core/linop.h"

int projector_create(struct device *dev, const struct projection_spec *spec, struct linop **ret_op, struct err *err);

#endif
