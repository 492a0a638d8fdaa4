/* The configuration: defaults, overlay, every kind of problem with its line, --set, descriptions, patterns. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "node/config.h"
#include "node/config_table.h"
#include "node/config_value.h"

struct problems {
	size_t n;
	char text[64][1024];
};

static void keep(void *ctx, const char *problem)
{
	struct problems *p = ctx;

	if (p->n < 64)
		snprintf(p->text[p->n], sizeof(p->text[0]), "%s", problem);
	p->n++;
}

static struct config *good(const char *text)
{
	struct problems p = {0};
	struct config *c = NULL;
	struct err err = {0};

	if (config_parse(text, "t.conf", keep, &p, &c, &err) != 0)
		fail_msg("refused: %s", err.msg);
	assert_int_equal(p.n, 0);
	assert_non_null(c);
	return c;
}

/* Exactly one problem, which begins with `start` and holds `part`. */
static void bad(const char *text, const char *start, const char *part)
{
	static struct problems p;
	struct config *c = NULL;
	struct err err = {0};

	memset(&p, 0, sizeof(p));
	assert_int_equal(config_parse(text, "t.conf", keep, &p, &c, &err), -EINVAL);
	assert_null(c);
	if (p.n != 1 || strncmp(p.text[0], start, strlen(start)) != 0 || !strstr(p.text[0], part))
		fail_msg("%zu problems, first: %s\nwanted: %s ... %s", p.n, p.text[0], start, part);
	assert_int_equal(err.code, EINVAL);
	assert_non_null(strstr(err.msg, start));
}

static void test_defaults(void **state)
{
	struct config *c = NULL;
	struct node_conf table;
	struct err err = {0};
	const struct protocol_conf *p;
	const struct profile_conf *f;

	(void)state;
	setenv("TOMONODE_SPOOL", "/spool", 1);
	assert_int_equal(config_load(NULL, NULL, NULL, &c, &err), 0);
	config_value_defaults(&config_sections[SECTION_NODE], &table);
	snprintf(table.spool, sizeof(table.spool), "/spool");
	assert_memory_equal(&table, &c->node, sizeof(table)); /* the sample says what the table says */
	assert_string_equal(c->path, "");
	assert_string_equal(c->node.aet, "TOMONODE");
	assert_string_equal(c->node.bind, "127.0.0.1");
	assert_int_equal(c->node.port, 11112);
	assert_false(c->node.require_known_peer);
	assert_int_equal(c->node.reserve, 512000000);
	assert_int_equal(c->n_peers, 0);
	assert_string_equal(config_destination(c, "pacs")->aet, "ORTHANC");
	assert_int_equal(config_destination(c, "pacs")->port, 4242);
	assert_string_equal(config_route(c, "dbt", "ANYBODY")->protocol, "dbt-osem");
	assert_string_equal(config_route(c, "pet", "ANYBODY")->protocol, "pet-mlem");
	assert_null(config_route(c, "ct", "ANYBODY"));
	p = config_protocol(c, "dbt-osem");
	assert_int_equal(p->dbt.algorithm, DBT_OSEM);
	assert_int_equal(p->dbt.iterations, 1);
	assert_int_equal(p->dbt.subsets, 0);
	assert_true(p->dbt.voxel == 0.34 && p->dbt.slice_spacing == 1.0);
	assert_int_equal(p->dbt.projector, PROJECTION_SLICES);
	assert_int_equal(p->dbt.tile[0], 0); /* auto */
	assert_int_equal(p->dbt.tile[1], 0);
	assert_int_equal(p->dbt.memory_limit, 0);
	assert_false(p->dbt.deterministic);
	assert_true(p->dbt.relaxation == 0.5 && p->dbt.filter_cut == 0.8);
	assert_int_equal(p->dbt.filter, DBT_FILTER_HANN);
	assert_true(p->dbt.breast_mask && !p->dbt.normalise_rows);
	assert_true(p->stored_step == 2e-5 && p->stored_offset == 0);
	assert_true(p->slab_thickness == 0 && p->slab_step == 0 && p->slab_mode == SLAB_MEAN);
	assert_true(!p->synthetic && p->compression == COMPRESSION_NONE);
	assert_true(config_protocol(c, "dbt-osem-full")->dbt.voxel == 0);
	f = config_profile(c, "SIEMENS", "MAMMOMAT Inspiration", "1234");
	assert_string_equal(f->name, "siemens-inspiration");
	assert_true(f->axis_height == 47 && f->source_axis == 608.5 && f->support == 17 && f->pitch == 0.085 && f->source_x == 0);
	assert_int_equal(f->angle_tag, 0x00181510);
	f = config_profile(c, "GE MEDICAL SYSTEMS", "Senographe Essential VERSION ADS_54.11", "");
	assert_string_equal(f->name, "ge-essential");
	assert_int_equal(f->angle_tag, 0x00181531);
	assert_string_equal(config_profile(c, "VICTRE", "", "")->name, "victre");
	assert_null(config_profile(c, "HOLOGIC, Inc.", "Selenia Dimensions", ""));
	config_free(c);
}

/* A protocol for each algorithm, each with the defaults where it says nothing. */
static void test_protocols(void **state)
{
	static const struct {
		const char *name;
		enum dbt_algorithm algorithm;
		double offset;
	} all[] = {
		{"dbt-osem", DBT_OSEM, 0}, {"dbt-mlem", DBT_MLEM, 0}, {"dbt-ostr", DBT_OSTR, 0},  {"dbt-mltr", DBT_MLTR, 0},
		{"dbt-sart", DBT_SART, 0}, {"dbt-bp", DBT_BP, 0},     {"dbt-fbp", DBT_FBP, -0.3},
	};
	struct config *c = good("");

	(void)state;
	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
		const struct protocol_conf *p = config_protocol(c, all[i].name);

		if (!p)
			fail_msg("no protocol %s", all[i].name);
		assert_int_equal(p->dbt.algorithm, all[i].algorithm);
		assert_true(p->stored_offset == all[i].offset);
		assert_true(p->stored_step == 2e-5 && p->dbt.breast_mask && p->dbt.voxel == 0.34);
	}
	config_free(c);
}

/* Those of PET, and that each kind of protocol keeps to its own keys. */
static void test_pet(void **state)
{
	static const char *const sets[] = {
		"algorithm=bsrem",  "iterations=6",    "subsets=14",	     "matrix=128",
		"voxel=4",	    "slice_spacing=2", "fov_radius=90",	     "projector=joseph",
		"psf=4.5",	    "postfilter=5",    "prior_weight=0.5",   "prior_gamma=3",
		"relaxation=0.125", "filter_cut=0.7",  "memory_limit=2 GiB", "deterministic=true",
	};
	static const char *const refused[] = {"kind=dbt",  "name=x",	     "slab_mode=mean", "tile=auto", "projector=slices",
					      "voxel=nan", "algorithm=ostr", "matrix=7",       "psf=-1",    "prior_gamma=inf"};
	struct config *c =
		good("protocols = ( { name = \"pet-mlem\"; iterations = 10; }, { name = \"own\"; kind = \"pet\"; } );");
	struct protocol_conf p = *config_protocol(c, "own"), q = *config_protocol(c, "pet-fbp-preview"), before;
	struct err err = {0};
	char text[1000];

	(void)state;
	assert_int_equal(config_protocol(c, "dbt-osem")->kind, KIND_DBT);
	assert_int_equal(config_protocol(c, "pet-mlem")->kind, KIND_PET);
	assert_int_equal(config_protocol(c, "pet-mlem")->pet.algorithm, PET_MLEM);
	assert_int_equal(config_protocol(c, "pet-mlem")->pet.iterations, 10);
	assert_int_equal(config_protocol(c, "pet-osem")->pet.algorithm, PET_OSEM);
	assert_int_equal(config_protocol(c, "pet-osem")->pet.subsets, 28);
	assert_int_equal(config_protocol(c, "pet-fbp-preview")->pet.algorithm, PET_FBP);
	assert_int_equal(p.pet.iterations, 40); /* the table's default */
	assert_int_equal(p.pet.matrix, 256);
	assert_int_equal(p.pet.projector, PROJECTION_PATHS);
	for (size_t i = 0; i < sizeof(sets) / sizeof(sets[0]); i++)
		if (config_set(&p, sets[i], &err) != 0)
			fail_msg("%s", err.msg);
	config_describe_protocol(&p, text, sizeof(text));
	assert_string_equal(text, "algorithm=bsrem iterations=6 subsets=14 matrix=128 voxel=4 slice_spacing=2 fov_radius=90 "
				  "projector=joseph psf=4.5 postfilter=5 prior_weight=0.5 prior_gamma=3 relaxation=0.125 "
				  "filter_cut=0.7 memory_limit=2147483648 deterministic=true");
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
	assert_int_equal(config_set(&p, "slab_mode=mean", &err), -EINVAL);
	assert_non_null(strstr(err.msg, "only protocols of kind dbt have it, and 'own' is of kind pet"));
	q = *config_protocol(c, "dbt-osem");
	assert_int_equal(config_set(&q, "matrix=128", &err), -EINVAL);
	assert_non_null(strstr(err.msg, "only protocols of kind pet have it, and 'dbt-osem' is of kind dbt"));
	assert_int_equal(config_set(&q, "kind=pet", &err), -EINVAL);
	config_free(c);
}

static void test_scanners(void **state)
{
	struct config *c =
		good("scanners = ( { name = \"mine\"; manufacturer = \"GE *\"; model = \"*Discovery STE*\"; serial = \"7\";"
		     " rings = 24; ring_spacing = 6.54; radius = 443.1; detectors = 560; bin = 2.4; radial = 329; angles = 280;"
		     " span = 2; max_difference = 23; calibration = 12.5; }, { name = \"small\"; angles = 24; } );");
	const struct scanner_conf *s = config_scanner(c, "GE MEDICAL SYSTEMS", "Discovery STE", "");

	(void)state;
	assert_int_equal(c->n_scanners, 4);
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
	assert_int_equal(config_scanner_named(c, "small")->n_angles, 24);
	assert_int_equal(config_scanner_named(c, "small")->scanner.rings, 8);
	assert_null(config_scanner_named(c, "none"));
	assert_null(config_scanner(c, "Philips", "Vereos", ""));
	config_free(c);
}

static void test_overlay(void **state)
{
	struct config *c;

	(void)state;
	c = good("node = { port = 104; bind = \"0.0.0.0\"; };\n"
		 "protocols = ( { name = \"dbt-osem\"; voxel = 0.5; }, { name = \"mine\"; iterations = 2; tile = \"88x56\"; },\n"
		 " { name = \"dbt-osem-full\"; iterations = 3; } );\n"
		 "profiles = ( { name = \"own\"; manufacturer = \"SIEMENS*\"; model = \"*Inspiration*\"; serial = \"77\"; "
		 "axis_height = 48;\n"
		 "  source_axis = 608; support = 17; pitch = 0.085; angle_sign = -1; } );\n");
	assert_int_equal(c->node.port, 104);
	assert_string_equal(c->node.aet, "TOMONODE"); /* untouched */
	assert_true(c->node.require_known_peer);      /* bind is no loopback address */
	assert_int_equal(c->n_protocols, 17);
	assert_true(config_protocol(c, "dbt-osem")->dbt.voxel == 0.5);
	assert_int_equal(config_protocol(c, "dbt-osem-full")->dbt.iterations, 3);
	assert_true(config_protocol(c, "dbt-osem-full")->dbt.voxel == 0); /* kept of the entry of the same name */
	assert_int_equal(config_protocol(c, "mine")->dbt.tile[0], 88);
	assert_int_equal(config_protocol(c, "mine")->dbt.tile[1], 56);
	assert_int_equal(config_protocol(c, "mine")->dbt.iterations, 2);
	assert_true(config_protocol(c, "mine")->dbt.voxel == 0.34); /* the table's default */
	assert_int_equal(c->n_profiles, 4);
	assert_string_equal(config_profile(c, "Siemens", "Mammomat INSPIRATION", "77")->name,
			    "own"); /* the serial number decides */
	assert_int_equal(config_profile(c, "Siemens", "Mammomat INSPIRATION", "77")->angle_sign, -1);
	assert_string_equal(config_profile(c, "Siemens", "Mammomat INSPIRATION", "78")->name, "siemens-inspiration");
	config_free(c);

	c = good("destinations = ( { name = \"archive\"; aet = \"ARC\"; host = \"10.0.0.1\"; }, { name = \"pacs\"; host = \"h\"; "
		 "} );\n"
		 "routes = ( { name = \"a\"; calling = \"MAMMO1\"; protocol = \"dbt-mlem\"; destinations = [ \"archive\", "
		 "\"pacs\" ]; },\n"
		 "           { name = \"b\"; protocol = \"dbt-osem\"; destinations = ( \"pacs\" ); } );\n"
		 "peers = ( { name = \"m1\"; aet = \"MAMMO1\"; } );\n");
	assert_int_equal(c->n_destinations, 2);
	assert_int_equal(config_destination(c, "archive")->port, 104);
	assert_int_equal(config_destination(c, "pacs")->port, 4242); /* starts from the embedded entry */
	assert_string_equal(config_destination(c, "pacs")->host, "h");
	assert_int_equal(c->n_routes, 2); /* the list replaces */
	assert_string_equal(config_route(c, "dbt", "MAMMO1")->name, "a");
	assert_int_equal(config_route(c, "dbt", "MAMMO1")->n_destinations, 2);
	assert_string_equal(config_route(c, "dbt", "OTHER")->name, "b");
	assert_string_equal(c->peers[0].host, "");
	config_free(c);

	c = good("peers = (); routes = ();"); /* an empty list is a list */
	assert_int_equal(c->n_routes, 0);
	assert_int_equal(c->n_protocols, 16);
	config_free(c);
	c = good("");
	assert_int_equal(c->n_routes, 3);
	config_free(c);
}

static void test_bad_values(void **state)
{
	static const struct {
		const char *text, *start, *part;
	} cases[] = {
		{"node = {\n port = 65536;\n};", "t.conf:2: key 'port' of node: 65536; allowed: a whole number from 1 to 65535",
		 ""},
		{"node = { port = -1; };", "t.conf:1: key 'port' of node: -1", "0: any free port"},
		{"node = { port = 1.5; };", "t.conf:1: key 'port' of node: 1.5", "whole number"},
		{"node = { port = \"104\"; };", "t.conf:1: key 'port' of node: \"104\"", "whole number"},
		{"node = { port = 99999999999L; };", "t.conf:1: key 'port' of node: 99999999999", "65535"},
		{"node = { port = [ 1, 2 ]; };", "t.conf:1: key 'port' of node: an array in [ ]", ""},
		{"node = { port = { a = 1; }; };", "t.conf:1: key 'port' of node: a group in { }", ""},
		{"node = {\n\n prot = 104; };", "t.conf:3: key 'prot' of node is not known, did you mean 'port'?",
		 "allowed: aet, bind"},
		{"node = { zzzzzzzz = 104; };", "t.conf:1: key 'zzzzzzzz' of node is not known; allowed: aet", ""},
		{"nod = { };", "t.conf:1: section 'nod' is not known, did you mean 'node'?", "protocols"},
		{"node = 5;", "t.conf:1: section 'node': 5; allowed: a group in { }", ""},
		{"node = \"a\\nb\";", "t.conf:1: section 'node': \"a?b\"; allowed: a group in { }",
		 ""}, /* found by fuzzing: a newline came through */
		{"node : \"\\x41\\x0a\\\"\";", "t.conf:1: section 'node': \"A?", ""},
		{"peers = \"\n\";", "t.conf:", "section 'peers': \"?\"; allowed: a list"},
		{"peers = ( \"\n\" );", "t.conf:", "section 'peers': \"?\" as an entry; allowed: a group"},
		{"node = { aet = \"SEVENTEENLETTERS_\"; };", "t.conf:1: key 'aet' of node: \"SEVENTEENLETTERS_\"", "1 to 16"},
		{"node = { aet = \"\"; };", "t.conf:1: key 'aet' of node: \"\"", ""},
		{"node = { aet = \"A\\\\B\"; };", "t.conf:1: key 'aet' of node: ", "no backslash"},
		{"node = { aet = \"A\\nB\"; };", "t.conf:1: key 'aet' of node: \"A?B\"", ""},
		{"node = { aet = \" A\"; };", "t.conf:1: key 'aet' of node: \" A\"", "no blank at either end"},
		{"node = { aet = \"\xc3\xa4\"; };", "t.conf:1: key 'aet' of node: \"??\"", ""},
		{"node = { bind = \"localhost\"; };", "t.conf:1: key 'bind' of node: \"localhost\"", "address in figures"},
		{"node = { spool = \"relative\"; };", "t.conf:1: key 'spool' of node: \"relative\"", "absolute path"},
		{"node = { device = \"gpu\"; };", "t.conf:1: key 'device' of node: \"gpu\"", "cuda:NUMBER"},
		{"node = { device = \"cpu:0\"; };", "t.conf:1: key 'device' of node: \"cpu:0\"", ""},
		{"node = { quiet_time = 1e400; };", "t.conf:1: key 'quiet_time' of node: inf", "0.1 to 86400"},
		{"node = { check_called = 1; };", "t.conf:1: key 'check_called' of node: 1", "true, false"},
		{"node = { log = \"file\"; };", "t.conf:1: key 'log' of node: \"file\"; allowed: stderr, syslog", ""},
		{"node = { reserve = \"1 XB\"; };", "t.conf:1: key 'reserve' of node: \"1 XB\"", "512 MiB"},
		{"node = { reserve = -1; };", "t.conf:1: key 'reserve' of node: -1", ""},
		{"node = { port = 1; port = 2; };", "t.conf:1: duplicate", ""},
		{"node = { port = ; };", "t.conf:1: syntax error", ""},
		{"node = {\n port = 1;\n", "t.conf:", "syntax error"},
		{"node = { aet = \"A; };", "t.conf:1: this string is not closed", ""},
		{"/* node = { }; \n\n", "t.conf:1: this comment is not closed", ""},
		{"\n@include \"/etc/passwd\"\n", "t.conf:2: @include is allowed in files only", ""},
		{"node = { aet = @ };", "t.conf:1: '@' in an unexpected place", ""},
		{"a=((((((((((((((((1))))))))))))))));", "t.conf:1: more than 12 levels", ""},
		{"peers = { };\npeers = 1;", "t.conf:2: duplicate", ""},
		{"peers = 1;", "t.conf:1: section 'peers': 1; allowed: a list", ""},
		{"peers = ( 1 );", "t.conf:1: section 'peers': 1 as an entry; allowed: a group", ""},
		{"peers = ( { aet = \"A\"; } );", "t.conf:1: key 'name' of a peer is missing", ""},
		{"peers = ( { name = \"a b\"; aet = \"A\"; } );", "t.conf:1: key 'name' of a peer: \"a b\"", "letters, digits"},
		{"destinations = (\n {\n name = \"a\"; host = \"h\"; } );", "t.conf:2: key 'aet' of destination 'a' is missing",
		 "1 to 16"},
		{"peers = ( { name = \"a\"; host = \"10.0.0.0/33\"; } );", "t.conf:1: key 'host' of peer 'a': \"10.0.0.0/33\"",
		 "or a network"},
		{"peers = ( { name = \"a\"; certificate = \"sha256:12\"; } );", "t.conf:1: key 'certificate' of peer 'a'",
		 "64 hexadecimal digits"},
		{"node = { plain = false; };", "t.conf:1: key 'plain' of node: false", "`listeners`"},
		{"listeners = ( { name = \"a\"; client_certificate = \"none\"; } );",
		 "t.conf:1: key 'certificate' of listener 'a'", "node.tls_certificate"},
		{"listeners = ( { name = \"a\"; certificate = \"/c\"; } );", "t.conf:1: key 'authorities' of listener 'a'",
		 "client_certificate"},
		{"listeners = ( { name = \"a\"; tls = false; port = 11112; } );", "t.conf:1: key 'port' of listener 'a': 11112",
		 "another one than 'node' has"},
		{"destinations = ( { name = \"pacs\"; tls = true; } );", "t.conf:1: key 'authorities' of destination 'pacs'",
		 "node.tls_authorities"},
		{"destinations = ( { name = \"pacs\"; key = \"/k\"; tls = true; authorities = \"/a\"; } );",
		 "t.conf:1: key 'certificate' of destination 'pacs'", "with a key"},
		{"node = { peer_bytes = \"1 MB\"; peer_window = 11; };", "t.conf:1: key 'peer_bytes' of node: 1000000",
		 "each second"},
		{"peers = ( { name = \"a\"; aet = \"A\"; },\n { name = \"a\"; aet = \"B\"; } );",
		 "t.conf:2: peer 'a': this name is taken at t.conf:1", "each name once"},
		{"protocols = ( { name = \"p\"; },\n { name = \"p\"; } );",
		 "t.conf:2: protocol 'p': this name is taken at t.conf:1", ""},
		{"protocols = ( { name = \"dbt-osem\"; },\n { name = \"dbt-osem\"; } );",
		 "t.conf:2: protocol 'dbt-osem': this name is taken", ""},
		{"peers = ( { name = \"a\"; aet = \"A\"; host = \"h h\"; } );", "t.conf:1: key 'host' of peer 'a': \"h h\"", ""},
		{"destinations = ( { name = \"pacs\"; port = 0; } );", "t.conf:1: key 'port' of destination 'pacs': 0",
		 "1 to 65535"},
		{"destinations = ( { name = \"pacs\"; retry_first = 10; retry_cap = 5; } );",
		 "t.conf:1: key 'retry_cap' of destination 'pacs': 5", "at least retry_first, 10 s"},
		{"\ndestinations = ( { name = \"arc\"; aet = \"A\"; host = \"h\"; } );",
		 "t.conf:2: section 'destinations': this list replaces the embedded one", "'pacs'"},
		{"routes = ( { name = \"r\"; protocol = \"dbt-osm\"; destinations = [ \"pacs\" ]; } );",
		 "t.conf:1: key 'protocol' of route 'r': \"dbt-osm\" is not there, did you mean 'dbt-osem'?", "dbt-mlem"},
		{"routes = ( { name = \"r\"; protocol = \"dbt-osem\"; destinations = [ \"archive\" ]; } );",
		 "t.conf:1: key 'destinations' of route 'r': \"archive\" is not there; allowed: pacs", ""},
		{"routes = ( { name = \"r\"; protocol = \"dbt-osem\"; destinations = [ ]; } );",
		 "t.conf:1: key 'destinations' of route 'r': 0 names; allowed: 1 to 8", ""},
		{"routes = ( { name = \"r\"; protocol = \"dbt-osem\"; destinations = \"pacs\"; } );",
		 "t.conf:1: key 'destinations' of route 'r': \"pacs\"", "in [ ]"},
		{"routes = ( { name = \"r\"; protocol = \"dbt-osem\"; destinations = [ \"pacs\", \"pacs\" ]; } );",
		 "t.conf:1: key 'destinations' of route 'r': \"pacs\"", "each once"},
		{"routes = ( { name = \"dbt\"; kind = \"pet\"; } );",
		 "t.conf:1: key 'protocol' of route 'dbt': \"dbt-osem\" is of kind dbt", "of the route's kind, pet"},
		{"routes = ( { name = \"dbt\"; kind = \"ct\"; } );",
		 "t.conf:1: key 'kind' of route 'dbt': \"ct\"; allowed: dbt, pet", ""},
		{"protocols = ( { name = \"p\"; kind = \"ct\"; } );", "t.conf:1: key 'kind' of protocol 'p': \"ct\"", "dbt, pet"},
		{"protocols = ( { name = \"p\"; kind = 1; } );", "t.conf:1: key 'kind' of protocol 'p': 1", "dbt, pet"},
		{"protocols = ( { name = \"pet-mlem\";\n kind = \"dbt\"; } );",
		 "t.conf:2: key 'kind' of protocol 'pet-mlem': \"dbt\"; allowed: \"pet\"", "or another name"},
		{"protocols = ( { name = \"p\"; kind = \"pet\";\n slab_mode = \"mean\"; } );",
		 "t.conf:2: key 'slab_mode' of protocol 'p': only protocols of kind dbt have it", "this one is of kind pet"},
		{"protocols = ( { name = \"pet-osem\"; tile = \"auto\"; } );",
		 "t.conf:1: key 'tile' of protocol 'pet-osem': only protocols of kind dbt have it", ""},
		{"protocols = ( { name = \"p\"; matrix = 128; } );",
		 "t.conf:1: key 'matrix' of protocol 'p': only protocols of kind pet have it", "this one is of kind dbt"},
		{"protocols = ( { name = \"p\"; kind = \"pet\"; matirx = 128; } );",
		 "t.conf:1: key 'matirx' of protocol 'p' is not known, did you mean 'matrix'?", "fov_radius"},
		{"protocols = ( { name = \"p\"; kind = \"pet\"; algorithm = \"sart\"; } );",
		 "t.conf:1: key 'algorithm' of protocol 'p': \"sart\"; allowed: mlem, osem, bsrem, fbp", ""},
		{"protocols = ( { name = \"p\"; kind = \"pet\"; projector = \"slices\"; } );",
		 "t.conf:1: key 'projector' of protocol 'p': \"slices\"; allowed: siddon, joseph, exact", ""},
		{"protocols = ( { name = \"p\"; kind = \"pet\"; voxel = 0.01; } );",
		 "t.conf:1: key 'voxel' of protocol 'p': 0.01", "0.1 to 50 mm; 0: diameter of the field of view over"},
		{"protocols = ( { name = \"p\"; kind = \"pet\"; matrix = 4; } );", "t.conf:1: key 'matrix' of protocol 'p': 4",
		 "8 to 1024"},
		{"protocols = ( { name = \"p\"; kind = \"pet\"; prior_weight = -1; } );",
		 "t.conf:1: key 'prior_weight' of protocol 'p': -1", ""},
		{"scanners = ( { name = \"small\"; span = 4; } );", "t.conf:1: key 'span' of scanner 'small': 4",
		 "odd number, or 2"},
		{"scanners = ( { name = \"small\"; max_difference = 8; } );",
		 "t.conf:1: key 'max_difference' of scanner 'small': 8", "below the 8 rings"},
		{"scanners = ( { name = \"small\"; radial = 87; } );",
		 "t.conf:1: key 'radial' of scanner 'small': 87 bins of 2.5 mm", "105 mm"},
		{"scanners = ( { name = \"siemens-mmr\"; radial = 505; } );",
		 "t.conf:1: key 'radial' of scanner 'siemens-mmr': 505 bins without arc correction", "504 detectors"},
		{"scanners = ( { name = \"s\"; rings = 8; ring_spacing = 6.5; radius = 100; detectors = 96; bin = 2.5; radial = "
		 "65; "
		 "angles = 48; span = 3; } );",
		 "t.conf:1: key 'max_difference' of scanner 's' is missing", ""},
		{"protocols = ( { name = \"p\"; voxle = 1; } );",
		 "t.conf:1: key 'voxle' of protocol 'p' is not known, did you mean 'voxel'?", ""},
		{"protocols = ( { name = \"p\"; voxel = 0.001; } );", "t.conf:1: key 'voxel' of protocol 'p': 0.001",
		 "0.02 to 5 mm; 0: the detector's own pitch"},
		{"protocols = ( { name = \"p\"; iterations = 0; } );", "t.conf:1: key 'iterations' of protocol 'p': 0",
		 "1 to 1000"},
		{"protocols = ( { name = \"p\"; algorithm = \"art\"; } );", "t.conf:1: key 'algorithm' of protocol 'p': \"art\"",
		 "osem, mlem, ostr, mltr, sart, bp, fbp"},
		{"protocols = ( { name = \"p\"; relaxation = 2.0; } );", "t.conf:1: key 'relaxation' of protocol 'p': 2",
		 "0.001 to 1.999"},
		{"protocols = ( { name = \"p\"; filter = \"cosine\"; } );", "t.conf:1: key 'filter' of protocol 'p': \"cosine\"",
		 "ramp, hann"},
		{"protocols = ( { name = \"p\"; filter_cut = 0; } );", "t.conf:1: key 'filter_cut' of protocol 'p': 0",
		 "0.01 to 1"},
		{"protocols = ( { name = \"p\"; breast_mask = 1; } );", "t.conf:1: key 'breast_mask' of protocol 'p': 1",
		 "true, false"},
		{"protocols = ( { name = \"p\"; stored_step = 0; } );", "t.conf:1: key 'stored_step' of protocol 'p': 0",
		 "1e-09 to 1 1/mm"},
		{"protocols = ( { name = \"p\"; slab_thickness = -1; } );", "t.conf:1: key 'slab_thickness' of protocol 'p': -1",
		 "0.1 to 300 mm; 0: no slabs"},
		{"protocols = ( { name = \"p\"; slab_mode = \"median\"; } );", "t.conf:1: key 'slab_mode' of protocol 'p'",
		 "mean, maximum"},
		{"protocols = ( { name = \"p\"; compression = \"jpeg\"; } );", "t.conf:1: key 'compression' of protocol 'p'",
		 "none, jpeg-ls"},
		{"protocols = ( { name = \"p\"; slab_thickness = 4; slab_step = 5; } );",
		 "t.conf:1: key 'slab_step' of protocol 'p': 5", "at most slab_thickness"},
		{"protocols = ( { name = \"p\"; tile = \"0x5\"; } );", "t.conf:1: key 'tile' of protocol 'p': \"0x5\"",
		 "\"auto\""},
		{"protocols = ( { name = \"p\"; tile = \"88x56x\"; } );", "t.conf:1: key 'tile' of protocol 'p'", ""},
		{"protocols = ( { name = \"p\"; memory_limit = \"0.3 B\"; } );", "t.conf:1: key 'memory_limit' of protocol 'p'",
		 ""},
		{"profiles = ( { name = \"x\"; axis_height = 1; source_axis = 600; support = 20; } );",
		 "t.conf:1: key 'pitch' of profile 'x' is missing", ""},
		{"profiles = ( { name = \"victre\"; support = 700; } );", "t.conf:1: key 'support' of profile 'victre': 700",
		 "0 to 200"},
		{"profiles = ( { name = \"victre\"; i0 = 101; } );", "t.conf:1: key 'i0' of profile 'victre': 101", "percent"},
		{"profiles = ( { name = \"victre\"; i0_mode = \"fixed\"; i0 = 0; } );",
		 "t.conf:1: key 'i0' of profile 'victre': 0", "above 0"},
		{"profiles = ( { name = \"victre\"; i0_mode = \"flatfield\"; } );",
		 "t.conf:1: key 'flatfield' of profile 'victre'", "absolute path"},
		{"profiles = ( { name = \"victre\"; angle_sign = 0; } );",
		 "t.conf:1: key 'angle_sign' of profile 'victre': 0; allowed: 1, -1", ""},
		{"profiles = ( { name = \"victre\"; angle_tag = \"0018,1511\"; } );",
		 "t.conf:1: key 'angle_tag' of profile 'victre'", "0018,1531"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		bad(cases[i].text, cases[i].start, cases[i].part);
}

static void test_all_problems(void **state)
{
	static struct problems p;
	struct config *c = NULL;
	struct err err = {0};

	(void)state;
	assert_int_equal(config_parse("node = {\n port = 0x1ffff;\n aet = 5;\n bogus = 1;\n};\nprotocols = (\n { name = \"p\"; "
				      "voxel = -1.0; }\n);\n",
				      "t.conf", keep, &p, &c, &err),
			 -EINVAL);
	assert_int_equal(p.n, 4);
	assert_ptr_equal(strstr(p.text[0], "t.conf:2: "), p.text[0]);
	assert_ptr_equal(strstr(p.text[1], "t.conf:3: "), p.text[1]);
	assert_ptr_equal(strstr(p.text[2], "t.conf:4: "), p.text[2]);
	assert_ptr_equal(strstr(p.text[3], "t.conf:7: "), p.text[3]);
	assert_non_null(strstr(err.msg, "t.conf:2: "));
	assert_non_null(strstr(err.msg, "3 more problems"));
}

static void test_long_texts(void **state)
{
	char text[4096], name[1200];

	(void)state;
	memset(name, 'x', sizeof(name) - 1);
	name[sizeof(name) - 1] = '\0';
	snprintf(text, sizeof(text), "node = { spool = \"/%s\"; };", name);
	bad(text, "t.conf:1: key 'spool' of node: \"/xxx", "at most 255 bytes");
	snprintf(text, sizeof(text), "protocols = ( { name = \"%.64s\"; } );", name);
	bad(text, "t.conf:1: key 'name' of a protocol: \"xxx", "at most 63");
	snprintf(text, sizeof(text), "protocols = ( { name = \"p\"; description = \"%.65s\"; } );", name);
	bad(text, "t.conf:1: key 'description' of protocol 'p'", "at most 64");
	snprintf(text, sizeof(text), "node = { %s = 1; };", name);
	bad(text, "t.conf:1: key 'xxx", "is not known");
}

static char folder[] = "/tmp/test_config.XXXXXX";

static void write_file(const char *name, const char *text)
{
	char path[256];
	FILE *f;

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	f = fopen(path, "w");
	assert_non_null(f);
	fputs(text, f);
	fclose(f);
}

static void bad_file(const char *name, const char *part)
{
	static struct problems p;
	struct config *c = NULL;
	struct err err = {0};
	char path[256];

	memset(&p, 0, sizeof(p));
	snprintf(path, sizeof(path), "%s/%s", folder, name);
	assert_int_equal(config_load(path, keep, &p, &c, &err), -EINVAL);
	if (p.n != 1 || !strstr(p.text[0], part))
		fail_msg("%zu problems, first: %s\nwanted: %s", p.n, p.text[0], part);
}

static void test_files(void **state)
{
	struct config *c = NULL;
	struct err err = {0};
	char path[256], name[512], *text = NULL;

	(void)state;
	assert_non_null(mkdtemp(folder));
	write_file("main.conf",
		   "node = { port = 104; };\n@include \"more.conf\" # why not\npeers = ( { name = \"late\"; aet = \"L\"; } );\n");
	write_file("more.conf", "protocols = (\n { name = \"mine\"; }\n);\n");
	snprintf(path, sizeof(path), "%s/main.conf", folder);
	assert_int_equal(config_load(path, NULL, NULL, &c, &err), 0);
	assert_string_equal(c->path, path);
	assert_non_null(config_protocol(c, "mine"));
	assert_int_equal(c->n_peers, 1);
	config_free(c);
	assert_int_equal(config_load_text(path, NULL, NULL, &c, &text, &err), 0); /* all of it in one text, which says the same */
	assert_non_null(strstr(text, "port = 104; };\nprotocols = (\n { name = \"mine\"; }\n);\npeers"));
	config_free(c);
	assert_int_equal(config_parse(text, "copy", NULL, NULL, &c, &err), 0);
	assert_non_null(config_protocol(c, "mine"));
	assert_int_equal(c->n_peers, 1);
	config_free(c);
	free(text);

	write_file("more.conf",
		   "protocols = (\n { name = \"mine\"; subsets = -2; }\n);\n"); /* the included file's own name and line */
	bad_file("main.conf", "/more.conf:2: key 'subsets' of protocol 'mine': -2");
	write_file("more.conf", "\n");
	write_file("main.conf", "\n@include \"more.conf\"\nnode = { port = -3; };\n"); /* and after it the outer one's again */
	bad_file("main.conf", "/main.conf:3: key 'port' of node: -3");
	write_file("more.conf", "\n\nnode = = 1;\n");
	bad_file("main.conf", "/more.conf:3: syntax error");
	write_file("main.conf", "\n@include \"none.conf\"\n");
	bad_file("main.conf", "/none.conf: No such file");
	write_file("main.conf", "\n\n@include \"main.conf\"\n");
	bad_file("main.conf", "main.conf:3: @include \"main.conf\": more than 8 files");
	write_file("main.conf", "@include more.conf\n");
	bad_file("main.conf", "main.conf:1: broken include");
	write_file("main.conf", "@include \"more.conf\" node = 1;\n");
	bad_file("main.conf", "main.conf:1: text after @include");
	write_file("main.conf", "@include \"/dev/zero\"\n");
	bad_file("main.conf", "/dev/zero: not a regular file");
	write_file("main.conf", "@include \".\"\n");
	bad_file("main.conf", "not a regular file");
	write_file("main.conf", "/* @include \"none.conf\"\n@include \"none.conf\"\n*/\nnode = { spool = \"/@include\"; };\n");
	assert_int_equal(config_load(path, NULL, NULL, &c, &err), 0); /* in a comment and in a string it is none */
	assert_string_equal(c->node.spool, "/@include");
	config_free(c);
	snprintf(name, sizeof(name), "%s/fifo", folder);
	assert_int_equal(mkfifo(name, 0600), 0);
	bad_file("fifo", "not a regular file");
	bad_file("odd\nname.conf", "odd?name.conf: No such file");
	bad_file("absent.conf", "absent.conf: No such file");
	unlink(name);
	unlink(path);
	snprintf(path, sizeof(path), "%s/more.conf", folder);
	unlink(path);
	rmdir(folder);
}

static void test_set_round_trip(void **state)
{
	static const char *const sets[] = {
		"algorithm=mlem",      "iterations=7",	    "subsets=5",	   "voxel=0.085",
		"slice_spacing=0.7",   "projector=exact",   "tile=64x32",	   "memory_limit=1.5 GiB",
		"deterministic=true",  "relaxation=1.25",   "normalise_rows=true", "filter=ramp",
		"filter_cut=0.5",      "breast_mask=false", "stored_step=2e-5",	   "stored_offset=-0.125",
		"slab_thickness=10",   "slab_step=2.5",	    "slab_mode=maximum",   "synthetic=true",
		"compression=jpeg-ls", "description=A B"};
	static const char *const refused[] = {"voxel=nan",
					      "voxel=inf",
					      "voxel= 1",
					      "voxel=1mm",
					      "voxel=",
					      "iterations=1.0",
					      "iterations=",
					      "voxel",
					      "=1",
					      "",
					      "name=x",
					      "tile=8",
					      "memory_limit=-1",
					      "memory_limit=99999999999 GB",
					      "deterministic=yes",
					      "relaxation=0",
					      "relaxation=2",
					      "filter=none",
					      "filter_cut=1.5",
					      "stored_step=-1e-5",
					      "stored_offset=nan",
					      "slab_thickness=0.01",
					      "compression=jpeg",
					      "bogus=1",
					      "iterations=99999999999999999999",
					      "description=a\\b"};
	struct config *c = good("");
	struct protocol_conf p = c->protocols[0], q = c->protocols[1], before;
	struct err err = {0};
	char text[1000];

	(void)state;
	for (size_t i = 0; i < sizeof(sets) / sizeof(sets[0]); i++)
		assert_int_equal(config_set(&p, sets[i], &err), 0);
	assert_int_equal(p.dbt.memory_limit, 1610612736);
	assert_int_equal(p.dbt.algorithm, DBT_MLEM);
	assert_int_equal(p.dbt.tile[1], 32);
	assert_true(p.dbt.deterministic);
	assert_string_equal(p.description, "A B");
	config_describe_protocol(&p, text, sizeof(text));
	assert_string_equal(
		text, "algorithm=mlem iterations=7 subsets=5 relaxation=1.25 normalise_rows=true filter=ramp filter_cut=0.5 "
		      "voxel=0.085 slice_spacing=0.7 projector=exact breast_mask=false tile=64x32 memory_limit=1610612736 "
		      "deterministic=true stored_step=2e-05 stored_offset=-0.125 slab_thickness=10 slab_step=2.5 "
		      "slab_mode=maximum synthetic=true");
	for (char *word = strtok(text, " "); word; word = strtok(NULL, " "))
		assert_int_equal(config_set(&q, word, &err), 0);
	assert_memory_equal(&p.dbt.algorithm, &q.dbt.algorithm, sizeof(p.dbt.algorithm));
	assert_true(p.dbt.voxel == q.dbt.voxel && p.dbt.slice_spacing == q.dbt.slice_spacing &&
		    p.dbt.memory_limit == q.dbt.memory_limit);
	assert_true(p.dbt.iterations == q.dbt.iterations && p.dbt.subsets == q.dbt.subsets && p.dbt.projector == q.dbt.projector);
	assert_true(!memcmp(p.dbt.tile, q.dbt.tile, sizeof(p.dbt.tile)) && p.dbt.deterministic == q.dbt.deterministic);
	assert_true(p.dbt.relaxation == q.dbt.relaxation && p.dbt.filter == q.dbt.filter && p.dbt.filter_cut == q.dbt.filter_cut);
	assert_true(p.dbt.normalise_rows && q.dbt.normalise_rows && !p.dbt.breast_mask && !q.dbt.breast_mask);
	assert_true(p.stored_step == q.stored_step && p.stored_offset == q.stored_offset && q.stored_offset == -0.125);
	assert_true(p.slab_thickness == q.slab_thickness && p.slab_step == q.slab_step && p.slab_mode == q.slab_mode);
	assert_true(p.synthetic && q.synthetic);
	assert_int_equal(p.compression, COMPRESSION_JPEGLS);
	assert_int_equal(q.compression, COMPRESSION_NONE); /* has no part in the pixels */
	before = p;
	for (size_t i = 0; i < sizeof(refused) / sizeof(refused[0]); i++) {
		err.code = 0;
		if (config_set(&p, refused[i], &err) != -EINVAL || !strstr(err.msg, "allowed: "))
			fail_msg("'%s' was taken, or: %s", refused[i], err.msg);
		assert_memory_equal(&p, &before, sizeof(p));
	}
	assert_int_equal(config_set(&p, "iteratons=1", &err), -EINVAL);
	assert_non_null(strstr(err.msg, "did you mean 'iterations'?"));
	/* a short buffer is cut, never overrun */
	memset(text, 'z', sizeof(text));
	config_describe_protocol(&p, text, 20);
	assert_int_equal(strlen(text), 19);
	assert_int_equal(text[20], 'z');
	config_describe_profile(&c->profiles[0], text, sizeof(text));
	assert_non_null(strstr(text, "name=siemens-inspiration axis_height=47 source_axis=608.5 support=17"));
	assert_null(strstr(text, "SIEMENS"));
	config_free(c);
}

static void test_reals_read_back(void **state)
{
	const struct config_key *key = config_key_find(&config_sections[SECTION_PROTOCOLS], "voxel");
	static const double values[] = {0.1, 1.0 / 3, 0.34, 0.02, 5, 4.9999999999999991, 0.085};
	struct protocol_conf p, q;
	char text[64];

	(void)state;
	for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++) {
		p.dbt.voxel = values[i];
		config_value_format(key, &p, text, sizeof(text));
		assert_int_equal(config_value_store_text(key, text, &q), 0);
		assert_true(p.dbt.voxel == q.dbt.voxel);
	}
}

static void test_spool_place(void **state)
{
	struct config *c;

	(void)state;
	setenv("TOMONODE_SPOOL", "/a/b", 1);
	c = good("");
	assert_string_equal(c->node.spool, "/a/b");
	config_free(c);
	c = good("node = { spool = \"/x\"; };"); /* what is written wins */
	assert_string_equal(c->node.spool, "/x");
	config_free(c);
	unsetenv("TOMONODE_SPOOL");
	if (geteuid() == 0) {
		c = good("");
		assert_string_equal(c->node.spool, "/var/lib/tomonode");
		config_free(c);
		return;
	}
	setenv("XDG_STATE_HOME", "/state", 1);
	c = good("");
	assert_string_equal(c->node.spool, "/state/tomonode");
	config_free(c);
	setenv("XDG_STATE_HOME", "relative", 1);
	setenv("HOME", "/users/u", 1);
	c = good("");
	assert_string_equal(c->node.spool, "/users/u/.local/state/tomonode");
	config_free(c);
}

static void count(void *ctx, const char *warning)
{
	(void)warning;
	++*(int *)ctx;
}

static int warnings(const char *text)
{
	struct config *c = good(text);
	int n = 0;

	config_warn(c, count, &n);
	config_free(c);
	return n;
}

static void test_allow_list(void **state)
{
	struct config *c;

	(void)state;
	c = good("node = { bind = \"::1\"; };");
	assert_false(c->node.require_known_peer);
	config_free(c);
	c = good("node = { bind = \"127.8.9.1\"; require_known_peer = true; };");
	assert_true(c->node.require_known_peer);
	config_free(c);
	c = good("node = { bind = \"::\"; };");
	assert_true(c->node.require_known_peer);
	config_free(c);
	assert_int_equal(warnings(""), 0);
	assert_int_equal(warnings("node = { bind = \"0.0.0.0\"; require_known_peer = false; };"), 1);
	assert_int_equal(warnings("node = { bind = \"0.0.0.0\"; };"), 1); /* nobody may send */
	assert_int_equal(warnings("node = { bind = \"0.0.0.0\"; }; peers = ( { name = \"a\"; aet = \"A\"; } );"), 0);
	assert_int_equal(warnings("node = { bind = \"0.0.0.0\"; }; peers = ( { name = \"a\"; } );"), 1); /* anybody after all */
	assert_int_equal(warnings("routes = ();"), 1);
	assert_int_equal(warnings("protocols = ( { name = \"dbt-fbp\"; stored_offset = 0; } );"),
			 1); /* negative values are lost */
}

static void test_listeners(void **state)
{
	struct listener_conf list[LISTENERS_MAX];
	struct config *c =
		good("node = { bind = \"::1\"; tls_certificate = \"/c\"; tls_key = \"/k\"; tls_authorities = \"/a\"; "
		     "tls_crl = \"/r\"; };\n"
		     "listeners = ( { name = \"t\"; }, { name = \"o\"; bind = \"10.0.0.1\"; port = 104; certificate = \"/d\"; "
		     "client_certificate = \"none\"; }, { name = \"p\"; port = 105; authorities = \"/b\"; } );");

	(void)state;
	assert_int_equal(config_listeners(c, list), 4);
	assert_string_equal(list[0].name, "node");
	assert_false(list[0].tls);
	assert_int_equal(list[0].port, 11112);
	assert_string_equal(list[1].bind, "::1");
	assert_int_equal(list[1].port, 2762);
	assert_true(list[1].tls && list[1].client_certificate);
	assert_string_equal(list[1].certificate, "/c");
	assert_string_equal(list[1].key, "/k");
	assert_string_equal(list[2].certificate, "/d");
	assert_string_equal(list[2].key, ""); /* the node's belongs to another certificate */
	assert_string_equal(list[2].authorities, "/a");
	assert_string_equal(list[2].crl, "/r");
	assert_string_equal(list[3].authorities, "/b");
	assert_string_equal(list[3].crl, ""); /* the node's is of other authorities */
	assert_false(list[2].client_certificate);
	assert_true(c->node.require_known_peer); /* not on loopback addresses alone */
	assert_int_equal(c->node.peer_refusals, 20);
	config_free(c);
	c = good("node = { plain = false; peer_refusals = 3; tls_certificate = \"/c\"; tls_authorities = \"/a\"; }; "
		 "listeners = ( { name = \"t\"; } );");
	assert_int_equal(config_listeners(c, list), 1);
	assert_string_equal(list[0].name, "t");
	assert_int_equal(c->node.peer_refusals, 3);
	config_free(c);
	c = good("");
	assert_int_equal(c->node.peer_refusals, 0);
	config_free(c);
}

static void test_patterns(void **state)
{
	struct config *c = good("profiles = ( { name = \"w\"; manufacturer = \"?cm*e*\"; axis_height = 1; source_axis = 600; "
				"support = 0.5; pitch = 0.1; },\n"
				"{ name = \"w2\"; manufacturer = \"?cm*e*\"; axis_height = 1; source_axis = 600; support = 0.5; "
				"pitch = 0.1; } );");

	(void)state;
	assert_string_equal(config_profile(c, "ACME", "x", "")->name, "w2"); /* of two alike the later one */
	assert_string_equal(config_profile(c, "acme inc", "", "")->name, "w2");
	assert_null(config_profile(c, "cme", "", ""));
	assert_null(config_profile(c, "", "", ""));
	assert_null(config_profile(c, "[a]cm", "", ""));
	config_free(c);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_defaults),	cmocka_unit_test(test_pet),	    cmocka_unit_test(test_scanners),
		cmocka_unit_test(test_overlay),		cmocka_unit_test(test_bad_values),  cmocka_unit_test(test_all_problems),
		cmocka_unit_test(test_long_texts),	cmocka_unit_test(test_files),	    cmocka_unit_test(test_set_round_trip),
		cmocka_unit_test(test_reals_read_back), cmocka_unit_test(test_spool_place), cmocka_unit_test(test_allow_list),
		cmocka_unit_test(test_listeners),	cmocka_unit_test(test_patterns),    cmocka_unit_test(test_protocols),
	};

	setenv("TOMONODE_SPOOL", "/spool", 1);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
