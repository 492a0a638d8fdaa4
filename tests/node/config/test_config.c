/* SPDX-License-Identifier: Apache-2.0 */
/* The configuration: defaults, every kind of protocol, overlay, --set, descriptions, patterns. */
#include "node/config/config_table.h"
#include "node/config/config_value.h"
#include "node/config/kind.h"
#include "node/config/route.h"
#include "tests/node/config/config_fixture.h"
#include "tests/test.h"

TEST(test_defaults)
{
	struct config *c = NULL;
	struct node_conf table;
	struct err err = {0};
	const struct profile_conf *f;

	setenv("TOMONODE_SPOOL", "/spool", 1);
	assert_int_equal(config_load(NULL, NULL, NULL, &c, &err), 0);
	test_later(give_back_config_free, c);
	config_value_defaults(&config_sections[SECTION_NODE], &table);
	snprintf(table.spool, sizeof(table.spool), "/spool");
	assert_memory_equal(&table, &c->node, sizeof(table));
	assert_string_equal(c->path, "");
	assert_int_equal(c->n_peers, 0);
	assert_string_equal(config_route_default(c, "dbt")->protocols.name[0], "dbt-osem");
	assert_string_equal(config_route_default(c, "pet")->protocols.name[0], "pet-mlem");
	assert_null(config_route_default(c, "ct"));
	f = config_profile(c, "SIEMENS", "MAMMOMAT Inspiration", "1234");
	assert_string_equal(f->name, "siemens-inspiration");
	assert_int_equal(f->angle_tag, 0x00181510);
	f = config_profile(c, "GE MEDICAL SYSTEMS", "Senographe Essential VERSION ADS_54.11", "");
	assert_string_equal(f->name, "ge-essential");
	assert_int_equal(f->angle_tag, 0x00181531);
	assert_string_equal(config_profile(c, "VICTRE", "", "")->name, "victre");
	assert_int_equal(config_profile(c, "VICTRE", "", "")->geometry_source, GEOMETRY_SIMULATED);
	assert_string_equal(config_profile(c, "SIEMENS", "MAMMOMAT Revelation", "")->name, "siemens-revelation");
	assert_string_equal(config_profile(c, "GE MEDICAL SYSTEMS", "SenoClaire", "")->name, "ge-senoclaire");
	assert_string_equal(config_profile(c, "GE MEDICAL SYSTEMS", "Senographe Pristina", "")->name, "ge-pristina");
	assert_string_equal(config_profile(c, "HOLOGIC, Inc.", "3Dimensions", "")->name, "hologic-3dimensions");
	f = config_profile(c, "HOLOGIC, Inc.", "Selenia Dimensions", "");
	assert_string_equal(f->name, "hologic-dimensions");
	assert_null(config_profile(c, "HOLOGIC, Inc.", "Lorad Selenia", ""));
}

TEST(test_executor)
{
	static const struct {
		const char *text;
		int executor;
	} all[] = {
		{"", EXECUTOR_LOCAL},
		{"cluster = { port = 11113; }; node = { executor = \"pilots\"; };", EXECUTOR_PILOTS},
		{"node = { executor = [ \"local\" ]; };", EXECUTOR_LOCAL},
		{"cluster = { port = 11113; }; node = { executor = \"slurm\"; };", EXECUTOR_SLURM},
		{"cluster = { port = 11113; }; node = { executor = [ \"local\", \"slurm\" ]; };",
		 EXECUTOR_LOCAL | EXECUTOR_SLURM},
	};

	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
		struct config *c = good(all[i].text);

		assert_int_equal(c->node.executor, all[i].executor);
		assert_true(c->slurm.min == 0 && c->slurm.max == 4 && c->slurm.idle == 300 && c->slurm.cpus == 0);
		assert_string_equal(c->slurm.gres, "gpu:1");
	}
}

/* The words may be in any order; the text of a protocol has them in one. */
TEST(test_corrections)
{
	static const struct {
		const char *text, *shown;
		int corrections;
	} all[] = {
		{"", "", 0},
		{"corrections = \"none\";", "", 0},
		{"corrections = \"attenuation\";", "corrections=attenuation", PET_CORRECT_ATTENUATION},
		{"corrections = [ \"scatter\", \"attenuation\" ];", "corrections=attenuation+scatter",
		 PET_CORRECT_ATTENUATION | PET_CORRECT_SCATTER},
		{"corrections = [ \"randoms\", \"scatter\", \"attenuation\" ];", "corrections=attenuation+randoms+scatter",
		 PET_CORRECT_ATTENUATION | PET_CORRECT_RANDOMS | PET_CORRECT_SCATTER},
		{"corrections = \"dead_time+scatter+attenuation\";", "corrections=attenuation+scatter+dead_time",
		 PET_CORRECT_ATTENUATION | PET_CORRECT_SCATTER | PET_CORRECT_DEAD_TIME},
		{"corrections = [ \"dead_time\", \"randoms\" ];", "corrections=randoms+dead_time",
		 PET_CORRECT_RANDOMS | PET_CORRECT_DEAD_TIME},
	};

	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
		char text[256], shown[1024];
		struct config *c;
		const struct protocol_conf *p;

		snprintf(text, sizeof(text), "protocols = ( { name = \"p\"; kind = \"pet\"; %s } );", all[i].text);
		c = good(text);
		p = config_protocol(c, "p");
		assert_int_equal(p->pet.corrections, all[i].corrections);
		assert_int_equal(kind_needs_ct(p), (all[i].corrections & PET_CORRECT_ATTENUATION) != 0);
		config_describe_protocol(p, shown, sizeof(shown));
		if (all[i].corrections)
			assert_non_null(strstr(shown, all[i].shown));
		else
			assert_null(strstr(shown, "corrections"));
	}
}

/* There is an embedded protocol for each algorithm of a tomosynthesis. */
TEST(test_protocols)
{
	const struct key_choice *choice = config_key_find(kind_dbt.protocols, "algorithm")->choices;
	struct config *c = good("");

	for (; choice->word; choice++) {
		char name[40];

		snprintf(name, sizeof(name), "dbt-%s", choice->word);
		if (!config_protocol(c, name) || (int)config_protocol(c, name)->dbt.algorithm != choice->value)
			fail_msg("no protocol %s", name);
	}
}

/* One subset is all views at once, as an algorithm without subsets uses them. */
TEST(one_subset)
{
	good("protocols = ( { name = \"p\"; kind = \"pet\"; algorithm = \"mlem\"; subsets = 1; },\n"
	     "              { name = \"q\"; kind = \"dbt\"; algorithm = \"fbp\"; subsets = 1; } );\n");
}

/* Protocols of PET; a protocol accepts only the keys of its kind. */
/* What identifies a step is part of the protocol's text, so of UIDs: protocols that differ only in it make different results. */
TEST(steps_are_described)
{
	static const char text[] =
		"steps = ( { name = \"a\"; program = \"/opt/a\"; version = \"1.2\"; parameters = \"x=1\"; sha256 = "
		"\"0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef\"; } );\n"
		"protocols = ( { name = \"p\"; kind = \"pet\"; steps = [ \"a\" ]; }, { name = \"q\"; kind = \"pet\"; } );\n"
		"routes = ( { name = \"r\"; kind = \"pet\"; protocols = [ \"p\", \"q\" ]; destinations = [ \"pacs\" ]; } );\n";
	char with[CONFIG_PROTOCOL_TEXT], without[CONFIG_PROTOCOL_TEXT];
	struct config *c = NULL;
	struct err err = {0};

	assert_int_equal(config_parse(text, "t.conf", NULL, NULL, &c, &err), 0);
	test_later(give_back_config_free, c);
	config_describe_protocol(config_protocol(c, "p"), with, sizeof(with));
	config_describe_protocol(config_protocol(c, "q"), without, sizeof(without));
	assert_int_equal(strncmp(with, without, strlen(without)), 0);
	assert_string_equal(with + strlen(without),
			    " steps=\"a 1.2 sha256=0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef x=1\"");
}

TEST(test_pet)
{
	static const char *const sets[] = {
		"algorithm=bsrem",    "iterations=6",	      "subsets=14",	  "matrix=128",	    "voxel=4",
		"slice_spacing=2",    "fov_radius=90",	      "projector=joseph", "psf=4.5",	    "postfilter=5",
		"prior_weight=0.5",   "prior_gamma=3",	      "relaxation=0.125", "filter_cut=0.7", "tof_mashing=3",
		"memory_limit=2 GiB", "deterministic = true",
	};
	static const char *const refused[] = {"kind=dbt",
					      "name=x",
					      "slab_mode=mean",
					      "corrections=[]",
					      "corrections=[x]",
					      "corrections=[attenuation",
					      "corrections=randoms+randoms",
					      "corrections=none+randoms",
					      "corrections=randoms+",
					      "corrections=+",
					      "corrections=randoms+x"};
	static const char *const lists[] = {"corrections=attenuation+randoms", "corrections=[\"attenuation\", \"randoms\"]",
					    "corrections=[randoms,attenuation]", "corrections=randoms+attenuation"};
	struct config *c =
		good("protocols = ( { name = \"pet-mlem\"; iterations = 10; }, { name = \"own\"; kind = \"pet\"; } );");
	struct protocol_conf p = *config_protocol(c, "own"), q = *config_protocol(c, "pet-fbp-preview"), before;
	struct err err = {0};
	char text[1000];

	assert_int_equal(config_protocol(c, "dbt-osem")->kind, KIND_DBT);
	assert_int_equal(config_protocol(c, "pet-mlem")->kind, KIND_PET);
	assert_int_equal(config_protocol(c, "pet-mlem")->pet.algorithm, ALGORITHM_MLEM);
	assert_int_equal(config_protocol(c, "pet-mlem")->pet.iterations, 10);
	assert_int_equal(config_protocol(c, "pet-osem")->pet.algorithm, ALGORITHM_OSEM);
	assert_int_equal(config_protocol(c, "pet-osem")->pet.subsets, 28);
	assert_int_equal(config_protocol(c, "pet-fbp-preview")->pet.algorithm, ALGORITHM_FBP);
	assert_int_equal(p.pet.iterations, 40); /* the table's default */
	assert_int_equal(p.pet.matrix, 0);
	assert_int_equal(p.pet.projector, PROJECTION_PATHS);
	for (size_t i = 0; i < sizeof(sets) / sizeof(sets[0]); i++)
		assert_done(config_set(&p, sets[i], &err), &err);
	config_describe_protocol(&p, text, sizeof(text));
	assert_string_equal(text, "algorithm=bsrem iterations=6 subsets=14 matrix=128 voxel=4 slice_spacing=2 fov_radius=90 "
				  "projector=joseph psf=4.5 postfilter=5 prior_weight=0.5 prior_gamma=3 relaxation=0.125 "
				  "filter_cut=0.7 tof_mashing=3 memory_limit=2147483648 deterministic=true");
	for (char *word = strtok(text, " "); word; word = strtok(NULL, " "))
		assert_int_equal(config_set(&q, word, &err), 0);
	config_describe_protocol(&p, text, sizeof(text));
	{
		char again[1000];

		config_describe_protocol(&q, again, sizeof(again));
		assert_string_equal(text, again);
	}
	before = p;
	for (size_t i = 0; i < sizeof(refused) / sizeof(refused[0]); i++) {
		if (config_set(&p, refused[i], &err) != -EINVAL || !strstr(err.msg, "allowed: "))
			fail_msg("'%s' was taken, or: %s", refused[i], err.msg);
		assert_memory_equal(&p, &before, sizeof(p));
	}
	for (size_t i = 0; i < sizeof(lists) / sizeof(lists[0]); i++) {
		q.pet.corrections = 0;
		assert_int_equal(config_set(&q, lists[i], &err), 0);
		assert_int_equal(q.pet.corrections, PET_CORRECT_ATTENUATION | PET_CORRECT_RANDOMS);
	}
	assert_error(config_set(&p, "slab_mode=mean", &err), &err, EINVAL,
		     "only protocols of kind dbt have it, and 'own' is of kind pet");
	q = *config_protocol(c, "dbt-osem");
	assert_error(config_set(&q, "matrix=128", &err), &err, EINVAL,
		     "only protocols of kind pet or parallel have it, and 'dbt-osem' is of kind dbt");
	assert_int_equal(config_set(&q, "kind=pet", &err), -EINVAL);
}

/* The numbers of entries of the embedded defaults; the pointers are not valid. */
static struct config defaults(void)
{
	struct config *c = good(""), counts = *c;

	return counts;
}

TEST(test_scanners)
{
	struct config *c =
		good("scanners = ( { name = \"mine\"; manufacturer = \"GE *\"; model = \"*Discovery STE*\"; serial = \"7\";"
		     " rings = 24; ring_spacing = 6.54; radius = 443.1; detectors = 560; bin = 2.4; radial = 329; angles = 280;"
		     " span = 2; max_difference = 23; calibration = 12.5; }, { name = \"small\"; angles = 24; } );");
	const struct scanner_conf *s = config_scanner(c, "GE MEDICAL SYSTEMS", "Discovery STE", "");

	assert_int_equal(c->n_scanners, defaults().n_scanners + 1);
	assert_string_equal(s->name, "ge-discovery-ste");
	assert_true(s->scanner.rings == 24 && s->scanner.ring_spacing == 6.54 && s->scanner.radius == 443.1);
	assert_true(s->scanner.interaction_depth == 8.4 && s->scanner.detectors == 560 && s->scanner.bin == 2.397);
	assert_true(s->n_radial == 329 && s->n_angles == 280 && s->span == 2 && s->max_difference == 23);
	assert_true(s->arc_corrected && s->angle_offset == 0 && s->calibration == 0);
	s = config_scanner(c, "GE MEDICAL SYSTEMS", "Discovery STE", "7");
	assert_string_equal(s->name, "mine");
	assert_true(s->calibration == 12.5 && s->scanner.interaction_depth == 0);
	s = config_scanner(c, "SIEMENS", "Biograph_mMR", "51");
	assert_string_equal(s->name, "siemens-mmr");
	assert_true(s->scanner.rings == 64 && s->span == 11 && s->max_difference == 60 && !s->arc_corrected);
	/* the distance of lines between neighbouring detectors: half an arc between two detectors */
	assert_true(fabs(s->scanner.bin - M_PI * (s->scanner.radius + s->scanner.interaction_depth) / s->scanner.detectors) <
		    1e-4);
	assert_int_equal(config_scanner_named(c, "small")->n_angles, 24);
	assert_int_equal(config_scanner_named(c, "small")->scanner.rings, 8);
	assert_null(config_scanner_named(c, "none"));
	assert_null(config_scanner(c, "Philips", "Vereos", ""));
}

TEST(test_overlay)
{
	struct config *c;

	c = good("node = { port = 104; bind = \"0.0.0.0\"; };\n"
		 "protocols = ( { name = \"dbt-osem\"; voxel = 0.5; }, { name = \"mine\"; iterations = 2; tile = \"88x56\"; },\n"
		 " { name = \"dbt-osem-full\"; iterations = 3; } );\n"
		 "profiles = ( { name = \"own\"; manufacturer = \"SIEMENS*\"; model = \"*Inspiration*\"; serial = \"77\"; "
		 "axis_height = 48;\n"
		 "  source_axis = 608; support = 17; pitch = 0.085; angle_sign = -1; } );\n");
	assert_int_equal(c->node.port, 104);
	assert_string_equal(c->node.aet, "TOMONODE"); /* untouched */
	assert_true(c->node.require_known_peer);      /* bind is no loopback address */
	assert_int_equal(c->n_protocols, defaults().n_protocols + 1);
	assert_true(config_protocol(c, "dbt-osem")->dbt.voxel == 0.5);
	assert_int_equal(config_protocol(c, "dbt-osem-full")->dbt.iterations, 3);
	assert_true(config_protocol(c, "dbt-osem-full")->dbt.voxel == 0); /* inherited from the embedded entry of this name */
	assert_int_equal(config_protocol(c, "mine")->dbt.tile[0], 88);
	assert_int_equal(config_protocol(c, "mine")->dbt.tile[1], 56);
	assert_int_equal(config_protocol(c, "mine")->dbt.iterations, 2);
	assert_true(config_protocol(c, "mine")->dbt.voxel == 0.34); /* the table's default */
	assert_int_equal(c->n_profiles, defaults().n_profiles + 1);
	assert_string_equal(config_profile(c, "Siemens", "Mammomat INSPIRATION", "77")->name,
			    "own"); /* the serial number decides */
	assert_int_equal(config_profile(c, "Siemens", "Mammomat INSPIRATION", "77")->angle_sign, -1);
	assert_string_equal(config_profile(c, "Siemens", "Mammomat INSPIRATION", "78")->name, "siemens-inspiration");

	c = good("destinations = ( { name = \"pacs\"; aet = \"ARC\"; host = \"fe80::1%eth0\"; } );"
		 "peers = ( { name = \"link\"; host = \"fe80::%eth0/64\"; } );");
	assert_string_equal(config_destination(c, "pacs")->host, "fe80::1%eth0");
	assert_string_equal(c->peers[0].host, "fe80::%eth0/64");
	c = good("destinations = ( { name = \"archive\"; aet = \"ARC\"; host = \"10.0.0.1\"; }, { name = \"pacs\"; host = \"h\"; "
		 "} );\n"
		 "routes = ( { name = \"a\"; calling = \"MAMMO1\"; protocols = [ \"dbt-mlem\" ]; destinations = [ \"archive\", "
		 "\"pacs\" ]; },\n"
		 "           { name = \"b\"; protocols = [ \"dbt-osem\" ]; destinations = ( \"pacs\" ); } );\n"
		 "peers = ( { name = \"m1\"; aet = \"MAMMO1\"; } );\n");
	assert_int_equal(c->n_destinations, 2);
	assert_int_equal(config_destination(c, "archive")->port, 104);
	assert_int_equal(config_destination(c, "pacs")->port, 4242); /* starts from the embedded entry */
	assert_string_equal(config_destination(c, "pacs")->host, "h");
	assert_int_equal(c->n_routes, 2); /* the list replaces */
	assert_string_equal(c->routes[0].name, "a");
	assert_int_equal(c->routes[0].destinations.n, 2);
	assert_string_equal(c->routes[1].destinations.name[0], "pacs");
	assert_string_equal(c->peers[0].host, "");

	c = good("peers = (); routes = ();"); /* an empty list is a list */
	assert_int_equal(c->n_routes, 0);
	assert_int_equal(c->n_protocols, defaults().n_protocols);
	c = good("");
	assert_int_equal(c->n_routes, KIND_COUNT); /* one for each kind */
}

/* A written profile is read again with the same values: those of the program, and one with every kind of key. */
TEST(test_write_profile)
{
	struct config *c = good(
		"profiles = ( { name = \"every\"; manufacturer = \"A*\"; serial = \"7\"; axis_height = -1.6; source_axis = "
		"700.25; support = 25; source_x = -13.7; source_y = 0.1; detector_ratio = 0.285; pitch = 0.07; angle_tag = "
		"\"0018,1531\"; angle_sign = -1; angle_about = \"detector\"; chest_wall = \"left\"; pose = \"header\"; pose_edge "
		"= 1280; pose_rows = \"-y\"; pose_level = 0.6; sco = true; scale_by_exposure = true; detector_type = \"DIRECT\"; "
		"paddle = \"18 x 24\"; elements_x = 3328; projections = 15; geometry_source = \"calibrated\"; calibration_date = "
		"\"2026-05-31\"; calibration_rms = 0.05; } );");

	for (size_t i = 0; i < c->n_profiles; i++) {
		char text[4096], was[1024], is[1024];
		struct config *again;
		const struct profile_conf *p;

		config_write_profile(&c->profiles[i], text, sizeof(text));
		again = good(text);
		p = config_profile(again, c->profiles[i].manufacturer, c->profiles[i].model, c->profiles[i].serial);
		config_describe_profile(&c->profiles[i], was, sizeof(was));
		assert_non_null(p);
		config_describe_profile(p, is, sizeof(is));
		assert_string_equal(was, is);
		assert_string_equal(p->name, c->profiles[i].name);
		assert_int_equal(p->geometry_source, c->profiles[i].geometry_source);
		assert_int_equal(p->projections, c->profiles[i].projections);
		assert_string_equal(p->calibration_date, c->profiles[i].calibration_date);
		assert_true(p->calibration_rms == c->profiles[i].calibration_rms);
	}
}

TEST(test_set_round_trip)
{
	static const char *const sets[] = {
		"algorithm=mlem",      "iterations=7",	    "subsets=5",	   "voxel=0.085",
		"slice_spacing=0.7",   "projector=exact",   "tile=64x32",	   "memory_limit=1.5 GiB",
		"deterministic=true",  "relaxation=1.25",   "normalise_rows=true", "filter=ramp",
		"filter_cut=0.5",      "breast_mask=false", "stored_step=2e-5",	   "stored_offset=-0.125",
		"slab_thickness=10",   "slab_step=2.5",	    "slab_mode=maximum",   "synthetic=true",
		"compression=jpeg-ls", "description=A B",   "edge_taper=7.5",	   "scatter_correction=true",
		"prior=quadratic",     "prior_weight=0.25", "prior_gamma=3",	   "prior_across=0.5",
		"breast_shape=true",   "skin_edge=true",    "metal=reduce"};
	static const char *const refused[] = {"voxel=1mm", "voxel=", "iterations=", "voxel",	       "=1",
					      "",	   "name=x", "bogus=1",	    "description=a\\b"};
	static const char *const described[] = {
		"algorithm=mlem iterations=7 subsets=5 relaxation=1.25 normalise_rows=true",
		"prior=quadratic prior_weight=0.25 prior_gamma=3 prior_across=0.5",
		"filter=ramp filter_cut=0.5 voxel=0.085 slice_spacing=0.7 projector=exact",
		"breast_mask=false breast_shape=true skin_edge=true metal=reduce edge_taper=7.5 scatter_correction=true tile=64x32 memory_limit=1610612736 deterministic=true",
		"stored_step=2e-05 stored_offset=-0.125 slab_thickness=10 slab_step=2.5",
		"slab_mode=maximum",
		"synthetic=true"};
	struct config *c = good("");
	struct protocol_conf p = c->protocols[0], q = c->protocols[1], before;
	struct err err = {0};
	char text[1000], words[1000];
	size_t n = 0;

	for (size_t i = 0; i < sizeof(sets) / sizeof(sets[0]); i++)
		assert_int_equal(config_set(&p, sets[i], &err), 0);
	assert_int_equal(p.dbt.memory_limit, 1610612736);
	assert_int_equal(p.dbt.algorithm, ALGORITHM_MLEM);
	assert_int_equal(p.dbt.tile[1], 32);
	assert_true(p.dbt.deterministic);
	assert_string_equal(p.description, "A B");
	config_describe_protocol(&p, text, sizeof(text));
	for (size_t i = 0; i < sizeof(described) / sizeof(described[0]); i++)
		n += (size_t)snprintf(words + n, sizeof(words) - n, "%s%s", i ? " " : "", described[i]);
	assert_string_equal(text, words);	   /* all keys in this order: the UIDs of results depend on this text */
	assert_null(strstr(text, "compression=")); /* omitted, because it does not affect pixels */
	snprintf(words, sizeof(words), "%s", text);
	for (char *word = strtok(words, " "); word; word = strtok(NULL, " "))
		assert_int_equal(config_set(&q, word, &err), 0);
	config_describe_protocol(&q, words, sizeof(words));
	assert_string_equal(words, text);
	assert_int_equal(p.compression, COMPRESSION_JPEGLS);
	assert_int_equal(q.compression, COMPRESSION_NONE);
	/* what differs: in the order of the keys, nothing twice, values that are written in another way are the same */
	q = p;
	config_describe_changes(&p, &q, text, sizeof(text));
	assert_string_equal(text, "");
	assert_int_equal(config_set(&q, "description=other", &err), 0);
	assert_int_equal(config_set(&q, "voxel=0.50", &err), 0);
	assert_int_equal(config_set(&q, "iterations=7", &err), 0);
	assert_int_equal(config_set(&q, "iterations=8", &err), 0);
	config_describe_changes(&p, &q, text, sizeof(text));
	assert_string_equal(text, "iterations=8, voxel=0.5");
	config_describe_changes(&p, &q, text, sizeof("voxel=0.5"));
	assert_string_equal(text, "");
	config_describe_changes(&p, &q, text, sizeof(", iterations=8"));
	assert_string_equal(text, "iterations=8");
	before = p;
	for (size_t i = 0; i < sizeof(refused) / sizeof(refused[0]); i++) {
		err.code = 0;
		if (config_set(&p, refused[i], &err) != -EINVAL || !strstr(err.msg, "allowed: "))
			fail_msg("'%s' was taken, or: %s", refused[i], err.msg);
		assert_memory_equal(&p, &before, sizeof(p));
	}
	assert_error(config_set(&p, "iteratons=1", &err), &err, EINVAL, "did you mean 'iterations'?");
	/* the text is cut at the end of a short buffer */
	memset(text, 'z', sizeof(text));
	config_describe_protocol(&p, text, 20);
	assert_int_equal(strlen(text), 19);
	assert_int_equal(text[20], 'z');
	config_describe_profile(&c->profiles[0], text, sizeof(text));
	assert_non_null(strstr(text, "name=siemens-inspiration axis_height=47 source_axis=608.5 support=17"));
	assert_null(strstr(text, "SIEMENS"));
	assert_null(strstr(text, "detector_ratio"));
	c = good("profiles = ( { name = \"siemens-inspiration\"; detector_ratio = 0.285; detector_axis_y = 0.3; "
		 "detector_axis_height = -2; } );");
	config_describe_profile(config_profile(c, "SIEMENS", "MAMMOMAT Inspiration", ""), text, sizeof(text));
	assert_non_null(strstr(text, "detector_ratio=0.285 detector_axis_y=0.3 detector_axis_height=-2"));
}

TEST(test_spool_place)
{
	const uid_t user = geteuid();
	struct config *c;

	setenv("TOMONODE_SPOOL", "/a/b", 1);
	c = good("");
	assert_string_equal(c->node.spool, "/a/b");
	c = good("node = { spool = \"/x\"; };"); /* a value in the file takes precedence */
	assert_string_equal(c->node.spool, "/x");
	unsetenv("TOMONODE_SPOOL");
	if (user == 0) {
		c = good("");
		assert_string_equal(c->node.spool, "/var/lib/tomonode");
		assert_int_equal(seteuid(65534), 0);
	}
	setenv("XDG_STATE_HOME", "/state", 1);
	c = good("");
	assert_string_equal(c->node.spool, "/state/tomonode");
	setenv("XDG_STATE_HOME", "relative", 1);
	setenv("HOME", "/users/u", 1);
	c = good("");
	assert_string_equal(c->node.spool, "/users/u/.local/state/tomonode");
	assert_int_equal(seteuid(user), 0);
}

TEST(test_patterns)
{
	struct config *c = good("profiles = ( { name = \"w\"; manufacturer = \"?cm*e*\"; axis_height = 1; source_axis = 600; "
				"support = 0.5; pitch = 0.1; },\n"
				"{ name = \"w2\"; manufacturer = \"?cm*e*\"; axis_height = 1; source_axis = 600; support = 0.5; "
				"pitch = 0.1; } );");

	assert_string_equal(config_profile(c, "ACME", "x", "")->name, "w2"); /* equal scores: the later one */
	assert_string_equal(config_profile(c, "acme inc", "", "")->name, "w2");
	assert_null(config_profile(c, "cme", "", ""));
	assert_null(config_profile(c, "", "", ""));
	assert_null(config_profile(c, "[a]cm", "", ""));
}

TESTS_SETUP(set_spool, NULL);
