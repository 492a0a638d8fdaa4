/* kind_dbt.c - breast tomosynthesis: a case is what one exposure series saw of one breast in one view. */
#include "node/config/kind.h"

const struct kind kind_dbt = {
	.name = "dbt",
	.content = "breast tomosynthesis",
	.title = "tomosynthesis",
	.views = "projections",
	.key = {CASE_STUDY, CASE_SERIES, CASE_LATERALITY, CASE_VIEW, CASE_FRAME_OF_REFERENCE},
	.as_is_frames = 2,
	.as_is_refusal = "a tomosynthesis needs at least 2 projections; send what is missing",
	.protocols = &config_sections[SECTION_PROTOCOLS],
};
