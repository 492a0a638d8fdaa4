/* kind_pet.c - sinograms of a PET scanner: a case is an acquisition, all its roles and chunks. */
#include "node/config/kind.h"

const struct kind kind_pet = {
	.name = "pet",
	.content = "sinograms of a PET scanner",
	.title = "PET",
	.views = "angles",
	.key = {CASE_STUDY, CASE_SERIES, CASE_FRAME_OF_REFERENCE},
	.as_is_refusal = KIND_SINOGRAMS_AS_IS,
	.protocols = &config_protocols_pet,
};
