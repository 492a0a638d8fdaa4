/* kind_parallel.c - line integrals of parallel beams: a case is a scan, all its chunks. */
#include "node/config/kind.h"

const struct kind kind_parallel = {
	.name = "parallel",
	.content = "sinograms of parallel beams",
	.title = "parallel beams",
	.views = "angles",
	.key = {CASE_STUDY, CASE_SERIES, CASE_FRAME_OF_REFERENCE},
	.as_is_refusal = KIND_SINOGRAMS_AS_IS,
	.protocols = &config_protocols_parallel,
};
