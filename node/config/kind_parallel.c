/* SPDX-License-Identifier: Apache-2.0 */
/* kind_parallel.c - line integrals of parallel beams: a case is one scan with all its chunks. */

#include "node/config/config_internal.h"
#include "node/config/kind.h"
#include "recon/parallel/parallel_keys.h"
#include "recon/parallel/parallel_rings.h"

#define NAME "parallel"

static const struct key protocol_keys[] = {
	CONFIG_PROTOCOL_FIRST(NAME),
	PARALLEL_KEYS(protocol_conf, parallel.),
	{"axis",
	 AS_CHOICE(protocol_conf, axis,
		   KEY_CHOICES({"header", PARALLEL_AXIS_HEADER}, {"found", PARALLEL_AXIS_FOUND}, {"agree", PARALLEL_AXIS_AGREE})),
	 .fallback = "header",
	 .meaning =
		 "axis of rotation: `header` (that of the header; found from the data if it has none), `found` (from the data, if "
		 "they determine it), `agree` (that of the header; the case is held if the data contradict it)"},
	{"ring_width", AS_INT(protocol_conf, ring_width, 1, PARALLEL_RING_WIDTH_MAX), .unit = "bins", .zero = "rings stay",
	 .fallback = "0",
	 .meaning = "remove rings up to this width, of detector bins with a constant error (3: usual); off where values must not "
		    "change"},
	{"mu_water", AS_REAL(protocol_conf, mu_water, 1e-6, 100), .unit = "1/mm", .zero = "no Hounsfield units", .fallback = "0",
	 .meaning = "attenuation of water at the energy of the scan, for values in Hounsfield units: 1000 (value / mu_water - "
		    "1); without it, values keep the unit of the data"},
	CONFIG_PROTOCOL_LAST,
};

static const struct config_section protocols =
	CONFIG_PROTOCOLS(protocol_keys, "Protocols for parallel beams (`kind` is `parallel`):");

const struct kind kind_parallel = {
	.name = NAME,
	.content = "sinograms of parallel beams",
	.title = "parallel beams",
	.views = "angles",
	.view_patterns = kind_positions,
	.key = {CASE_STUDY, CASE_SERIES, CASE_FRAME_OF_REFERENCE},
	.image = {"1/mm", {0.5, 0.5, 1}, 0.02F, 0},
	.as_is_refusal = KIND_SINOGRAMS_AS_IS,
	.protocols = &protocols,
};
