/* SPDX-License-Identifier: Apache-2.0 */
/* Test configurations that are refused: every kind of problem with its line, texts that are too long, includes. */
#include "tests/node/config/config_fixture.h"
#include "tests/test.h"

/* Check that the text has exactly one problem, which begins with `start` and contains `part`. */
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

TEST(test_bad_values)
{
	static const struct {
		const char *text, *start, *part;
	} cases[] = {
		{"node = {\n port = 65536;\n};", "t.conf:2: key 'port' of node: 65536; allowed: a whole number from 1 to 65535",
		 ""},
		{"node = { port = -1; };", "t.conf:1: key 'port' of node: -1", "0: any free port"},
		{"node = { port = 1.5; };", "t.conf:1: key 'port' of node: 1.5", "whole number"},
		{"node = { port = \"104\"; };", "t.conf:1: key 'port' of node: \"104\"", "whole number"},
		{"node = { port = [ 1, 2 ]; };", "t.conf:1: key 'port' of node: an array in [ ]", ""},
		{"node = { port = { a = 1; }; };", "t.conf:1: key 'port' of node: a group in { }", ""},
		{"node = {\n\n prot = 104; };", "t.conf:3: key 'prot' of node is not known, did you mean 'port'?",
		 "allowed: aet, bind"},
		{"node = { zzzzzzzz = 104; };", "t.conf:1: key 'zzzzzzzz' of node is not known; allowed: aet", ""},
		{"node = { zzzzzzzz = 104; };", "t.conf:1: key 'zzzzzzzz'", ", sandbox, user"}, /* the list was cut off */
		{"nod = { };", "t.conf:1: section 'nod' is not known, did you mean 'node'?", "protocols"},
		{"x = { };", "t.conf:1: section 'x' is not known; allowed: node, ", "status, alerts, cluster, slurm"},
		{"node = 5;", "t.conf:1: section 'node': 5; allowed: a group in { }", ""},
		{"node = \"a\\nb\";", "t.conf:1: section 'node': \"a?b\"; allowed: a group in { }",
		 ""}, /* found by fuzzing: a newline was printed */
		{"node : \"\\x41\\x0a\\\"\";", "t.conf:1: section 'node': \"A?", ""},
		{"peers = \"\n\";", "t.conf:", "section 'peers': \"?\"; allowed: a list"},
		{"peers = ( \"\n\" );", "t.conf:", "section 'peers': \"?\" as an entry; allowed: a group"},
		{"node = { aet = \"A\\\\B\"; };", "t.conf:1: key 'aet' of node: ", "no backslash"},
		{"node = { aet = \" A\"; };", "t.conf:1: key 'aet' of node: \" A\"", "no blank at either end"},
		{"node = { aet = \"\xc3\xa4\"; };", "t.conf:1: key 'aet' of node: \"??\"", ""},
		{"node = { bind = \"localhost\"; };", "t.conf:1: key 'bind' of node: \"localhost\"",
		 "numeric IPv4 or IPv6 address"},
		{"status = { trusted_header = \"X-User\"; may_look = [ \"a\" ]; };",
		 "t.conf:1: key 'trusted_from' of status: \"\"", "at least one"},
		{"status = { trusted_header = \"X-User\"; trusted_from = [ \"::1\" ]; };", "t.conf:1: key 'may_look' of status",
		 "at least one group"},
		{"status = { viewer_url = \"javascript:alert({study})\"; };", "t.conf:1: key 'viewer_url' of status",
		 "http:// or https://, a host"},
		{"status = { may_act = [ \"a\" ]; };", "t.conf:1: key 'trusted_header' of status: \"\"", "a header"},
		{"status = { trusted_header = \"X_User\"; trusted_from = [ \"::1\" ]; may_act = [ \"a\" ]; };",
		 "t.conf:1: key 'trusted_header' of status: \"X_User\"", "letters, digits and '-'"},
		{"status = { trusted_header = \"host\"; trusted_from = [ \"::1\" ]; may_act = [ \"a\" ]; };",
		 "t.conf:1: key 'trusted_header' of status: \"host\"", "no other meaning"},
		{"status = { trusted_header = \"x-remote-groups\"; trusted_from = [ \"::1\" ]; may_act = [ \"a\" ]; };",
		 "t.conf:1: key 'trusted_groups' of status: \"X-Remote-Groups\"", "another header"},
		{"status = { trusted_header = \"X-User\"; trusted_from = [ \"0.0.0.0/0\" ]; may_act = [ \"a\" ]; };",
		 "t.conf:1: key 'trusted_from' of status: \"0.0.0.0/0\"", "numeric address"},
		{"status = { trusted_header = \"X-User\"; trusted_from = [ \"::/0\" ]; may_act = [ \"a\" ]; };",
		 "t.conf:1: key 'trusted_from' of status: \"::/0\"", "numeric address"},
		{"status = { trusted_header = \"X-User\"; trusted_from = [ \"::/64\" ]; may_act = [ \"a\" ]; };",
		 "t.conf:1: key 'trusted_from' of status: \"::/64\"", "numeric address"},
		{"status = { trusted_header = \"X-User\"; trusted_from = [ \"proxy\" ]; may_act = [ \"a\" ]; };",
		 "t.conf:1: key 'trusted_from' of status: \"proxy\"", "numeric address"},
		{"status = { trusted_header = \"X-User\"; trusted_from = [ \"::1\" ]; may_act = [ \"a,b\" ]; };",
		 "t.conf:1: key 'may_act' of status: \"a,b\"", "without a comma"},
		{"status = { trusted_from = \"::1\"; };", "t.conf:1: key 'trusted_from' of status: \"::1\"",
		 "addresses or networks in [ ]"},
		{"node = { spool = \"relative\"; };", "t.conf:1: key 'spool' of node: \"relative\"", "absolute path"},
		{"node = { device = \"gpu\"; };", "t.conf:1: key 'device' of node: \"gpu\"", "cuda:NUMBER"},
		{"node = { quiet_time = 1e400; };", "t.conf:1: key 'quiet_time' of node: inf", "0.1 to 86400"},
		{"node = { executor = \"cloud\"; };", "t.conf:1: key 'executor' of node: \"cloud\"", "local, slurm"},
		{"node = { executor = [ \"slurm\", \"local\" ]; };", "t.conf:1: key 'executor' of node: \"slurm+local\"", ""},
		{"node = { executor = [ 1, 2 ]; };", "t.conf:1: key 'executor' of node: \"?+?\"", ""},
		{"node = { executor = [ ]; };", "t.conf:1: key 'executor' of node: an array in [ ]", ""},
		{"protocols = ( { name = \"p\"; kind = \"pet\"; corrections = [ \"scatter\", \"scatter\" ]; } );",
		 "t.conf:1: key 'corrections' of protocol 'p': \"scatter+scatter\"",
		 "none, or attenuation, randoms, scatter, dead_time, or several of these joined by +, each once"},
		{"protocols = ( { name = \"p\"; kind = \"pet\";\n prior_weight = 10; } );",
		 "t.conf:2: key 'prior_weight' of protocol 'p' has no effect with the algorithm 'mlem'", "bsrem"},
		{"protocols = ( { name = \"dbt-osem\"; algorithm = \"fbp\"; subsets = 5; } );",
		 "t.conf:1: key 'subsets' of protocol 'dbt-osem' has no effect with the algorithm 'fbp'", "osem ostr sart"},
		{"protocols = ( { name = \"p\"; kind = \"dbt\";\n prior = \"quadratic\"; } );",
		 "t.conf:2: key 'prior' of protocol 'p' has no effect without 'prior_weight'", ""},
		{"protocols = ( { name = \"p\"; kind = \"dbt\";\n prior_weight = 0.1; prior = \"quadratic\"; prior_gamma = 3.0; "
		 "} );",
		 "t.conf:2: key 'prior_gamma' of protocol 'p' has no effect without 'prior' = relative", ""},
		{"protocols = ( { name = \"p\"; kind = \"dbt\";\n algorithm = \"fbp\"; filter = \"ramp\"; filter_cut = 0.5; } );",
		 "t.conf:2: key 'filter_cut' of protocol 'p' has no effect without 'filter' = hann", ""},
		{"protocols = ( { name = \"p\"; kind = \"pet\";\n corrections = [ \"attenuation\", \"randoms\" ]; "
		 "scatter_iterations = 2; } );",
		 "t.conf:2: key 'scatter_iterations' of protocol 'p' has no effect without 'corrections' = scatter", ""},
		{"protocols = ( { name = \"p\"; kind = \"pet\";\n algorithm = \"bsrem\"; prior_weight = 0; prior_gamma = 3.0; } "
		 ");",
		 "t.conf:2: key 'prior_gamma' of protocol 'p' has no effect without 'prior_weight'", ""},
		{"node = { executor = \"pilots\"; };", "t.conf:1: key 'executor' of node: \"pilots\"", "port in `cluster`"},
		{"node = { executor = \"slurm\"; };", "t.conf:1: key 'executor' of node: with slurm", "port in `cluster`"},
		{"node = { audit = \"file\"; audit_file = \"\"; };", "t.conf:1: key 'audit_file' of node: \"\"",
		 "path of a file"},
		{"node = { audit = \"syslog\"; audit_socket = \"\"; };", "t.conf:1: key 'audit_socket' of node: \"\"",
		 "absolute path"},
		{"slurm = { program = \"\"; };", "t.conf:1: key 'program' of slurm: \"\"", "text"},
		{"slurm = { min = 5; max = 4; };", "t.conf:1: key 'min' of slurm: 5; allowed: at most max, 4", ""},
		{"node = { check_called = 1; };", "t.conf:1: key 'check_called' of node: 1", "true, false"},
		{"node = { log = \"file\"; };", "t.conf:1: key 'log' of node: \"file\"; allowed: stderr, syslog", ""},
		{"node = { reserve = \"1 XB\"; };", "t.conf:1: key 'reserve' of node: \"1 XB\"", "512 MiB"},
		{"node = { port = 1; port = 2; };", "t.conf:1: duplicate", ""},
		{"node = { port = ; };", "t.conf:1: syntax error", "value of 'port'"},
		{"node = {\n port = 1;\n", "t.conf:1: syntax error", "is missing for"},
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
		{"peers = ( { name = \"a\"; host = \"10.0.0.1%eth0\"; } );",
		 "t.conf:1: key 'host' of peer 'a': \"10.0.0.1%eth0\"", ""},
		{"destinations = ( { name = \"arc\"; aet = \"A\"; host = \"host%eth0\"; } );",
		 "t.conf:1: key 'host' of destination 'arc': \"host%eth0\"", ""},
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
		 "a port that 'node' does not use"},
		{"destinations = ( { name = \"pacs\"; tls = true; } );", "t.conf:1: key 'authorities' of destination 'pacs'",
		 "node.tls_authorities"},
		{"destinations = ( { name = \"pacs\"; key = \"/k\"; tls = true; authorities = \"/a\"; } );",
		 "t.conf:1: key 'certificate' of destination 'pacs'", "`key` is set"},
		{"node = { peer_bytes = \"1 MB\"; peer_window = 11; };", "t.conf:1: key 'peer_bytes' of node: 1000000",
		 "each second"},
		{"peers = ( { name = \"a\"; aet = \"A\"; },\n { name = \"a\"; aet = \"B\"; } );",
		 "t.conf:2: peer 'a': this name is already used at t.conf:1", "each name once"},
		{"protocols = ( { name = \"p\"; },\n { name = \"p\"; } );",
		 "t.conf:2: protocol 'p': this name is already used at t.conf:1", ""},
		{"protocols = ( { name = \"dbt-osem\"; },\n { name = \"dbt-osem\"; } );",
		 "t.conf:2: protocol 'dbt-osem': this name is already used", ""},
		{"peers = ( { name = \"a\"; aet = \"A\"; host = \"h h\"; } );", "t.conf:1: key 'host' of peer 'a': \"h h\"", ""},
		{"destinations = ( { name = \"pacs\"; port = 0; } );", "t.conf:1: key 'port' of destination 'pacs': 0",
		 "1 to 65535"},
		{"destinations = ( { name = \"pacs\"; retry_first = 10; retry_cap = 5; } );",
		 "t.conf:1: key 'retry_cap' of destination 'pacs': 5", "at least retry_first, 10 s"},
		{"\ndestinations = ( { name = \"arc\"; aet = \"A\"; host = \"h\"; } );",
		 "t.conf:2: section 'destinations': it has no 'pacs', to which the built-in route", "'routes'"},
		{"routes = ( { name = \"r\"; protocols = [ \"dbt-osm\" ]; destinations = [ \"pacs\" ]; } );",
		 "t.conf:1: key 'protocols' of route 'r': \"dbt-osm\" does not exist, did you mean 'dbt-osem'?", "dbt-mlem"},
		{"routes = ( { name = \"r\"; protocols = [ \"dbt-osem\" ]; destinations = [ \"archive\" ]; } );",
		 "t.conf:1: key 'destinations' of route 'r': \"archive\" does not exist; allowed: pacs", ""},
		{"routes = ( { name = \"r\"; protocols = [ \"dbt-osem\" ]; destinations = [ ]; } );",
		 "t.conf:1: key 'destinations' of route 'r': 0 names; allowed: 1 to 8", ""},
		{"routes = ( { name = \"r\"; protocols = [ \"dbt-osem\" ]; destinations = \"pacs\"; } );",
		 "t.conf:1: key 'destinations' of route 'r': \"pacs\"", "in [ ]"},
		{"routes = ( { name = \"r\"; protocols = [ \"dbt-osem\" ]; destinations = [ \"pacs\", \"pacs\" ]; } );",
		 "t.conf:1: key 'destinations' of route 'r': \"pacs\"", "each once"},
		{"routes = ( { name = \"dbt\"; kind = \"pet\"; } );",
		 "t.conf:1: key 'protocols' of route 'dbt': \"dbt-osem\" is of kind dbt", "of the route's kind, pet"},
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
		 "t.conf:1: key 'matrix' of protocol 'p': only protocols of kind pet or parallel have it",
		 "this one is of kind dbt"},
		{"protocols = ( { name = \"p\"; kind = \"pet\"; matirx = 128; } );",
		 "t.conf:1: key 'matirx' of protocol 'p' is not known, did you mean 'matrix'?", "fov_radius"},
		{"scanners = ( { name = \"small\"; span = 4; } );", "t.conf:1: key 'span' of scanner 'small': 4",
		 "odd number, or 2"},
		{"scanners = ( { name = \"siemens-mmr\"; calibration = 4e7; ecat_counts = 2.05; } );",
		 "t.conf:1: key 'ecat_counts' of scanner 'siemens-mmr': 2.05 beside calibration = 4e+07", "one of both"},
		{"scanners = ( { name = \"small\"; max_difference = 8; } );",
		 "t.conf:1: key 'max_difference' of scanner 'small': 8", "below the 8 rings"},
		{"scanners = ( { name = \"small\"; radial = 87; } );",
		 "t.conf:1: key 'radial' of scanner 'small': 87 bins of 2.5 mm", "105 mm"},
		{"scanners = ( { name = \"siemens-mmr\"; radial = 505; } );",
		 "t.conf:1: key 'radial' of scanner 'siemens-mmr': 505 bins without arc correction", "504 detectors"},
		{"scanners = ( { name = \"s\"; rings = 8; ring_spacing = 6.5; radius = 100; detectors = 96; bin = 2.5; radial = "
		 "65; angles = 48; span = 3; } );",
		 "t.conf:1: key 'max_difference' of scanner 's' is missing", ""},
		{"protocols = ( { name = \"p\"; voxel = 0.001; } );", "t.conf:1: key 'voxel' of protocol 'p': 0.001",
		 "0.02 to 5 mm; 0: the detector's own pitch"},
		{"protocols = ( { name = \"p\"; algorithm = \"art\"; } );", "t.conf:1: key 'algorithm' of protocol 'p': \"art\"",
		 "osem, mlem, ostr, mltr, sart, bp, fbp"},
		{"protocols = ( { name = \"p\"; relaxation = 2.0; } );", "t.conf:1: key 'relaxation' of protocol 'p': 2",
		 "0.001 to 1.999"}, /* from 2 on SART diverges */
		{"protocols = ( { name = \"p\"; kind = \"pet\"; corrections = [ \"randoms\", \"scatter\" ]; } );",
		 "t.conf:1: key 'corrections' of protocol 'p'", "\"scatter\" needs \"attenuation\""},
		{"protocols = ( { name = \"p\"; slab_thickness = 4; slab_step = 5; } );",
		 "t.conf:1: key 'slab_step' of protocol 'p': 5", "at most slab_thickness"},
		{"profiles = ( { name = \"x\"; axis_height = 1; source_axis = 600; support = 20; } );",
		 "t.conf:1: key 'pitch' of profile 'x' is missing", ""},
		{"profiles = ( { name = \"victre\"; support = 700; } );", "t.conf:1: key 'support' of profile 'victre': 700",
		 "0 to 200"},
		{"profiles = ( { name = \"victre\"; axis_height = 400; source_axis = 300; angle_about = \"detector\"; } );",
		 "t.conf:1: key 'angle_about' of profile 'victre': detector", "axis_height below source_axis = 300 mm"},
		{"profiles = ( { name = \"victre\"; i0 = 101; } );", "t.conf:1: key 'i0' of profile 'victre': 101", "percent"},
		{"profiles = ( { name = \"victre\"; i0_mode = \"fixed\"; i0 = 0; } );",
		 "t.conf:1: key 'i0' of profile 'victre': 0", "above 0"},
		{"profiles = ( { name = \"victre\"; i0_mode = \"flatfield\"; } );",
		 "t.conf:1: key 'flatfield' of profile 'victre'", "absolute path"},
		{"profiles = ( { name = \"victre\"; angle_tag = \"0018,1511\"; } );",
		 "t.conf:1: key 'angle_tag' of profile 'victre'", "0018,1531"},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		bad(cases[i].text, cases[i].start, cases[i].part);
}

TEST(test_all_problems)
{
	static struct problems p;
	struct config *c = NULL;
	struct err err = {0};

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

/* A node that sends to itself would deliver to nobody. */
TEST(test_destination_is_this_node)
{
	static const struct {
		const char *bind, *host;
		int port;
		bool here;
	} cases[] = {{"0.0.0.0", "127.0.0.1", 104, true},   {"127.0.0.1", "localhost", 104, true},
		     {"10.0.0.7", "10.0.0.7", 104, true},   {"0.0.0.0", "127.0.0.1", 105, false},
		     {"10.0.0.7", "127.0.0.1", 104, false}, {"0.0.0.0", "pacs", 104, false}};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		static struct problems p;
		struct config *c = NULL;
		char text[400];

		memset(&p, 0, sizeof(p));
		snprintf(text, sizeof(text),
			 "node = { bind = \"%s\"; port = 104; };\ndestinations = ( { name = \"pacs\"; aet = \"P\"; host = "
			 "\"%s\"; port = %d; } );\n",
			 cases[i].bind, cases[i].host, cases[i].port);
		config_parse(text, "t.conf", keep, &p, &c, NULL);
		assert_int_equal(p.n, cases[i].here);
		if (cases[i].here)
			assert_non_null(strstr(p.text[0], "t.conf:2: key 'host' of destination 'pacs'"));
		config_free(c);
	}
}

/* A misspelt key does not hide a misspelt name, and an entry that is invalid is not reported as missing, too. */
TEST(test_names_beside_problems)
{
	static struct problems p;
	struct config *c = NULL;
	struct err err = {0};

	memset(&p, 0, sizeof(p));
	assert_int_equal(
		config_parse("node = { bogus = 1; };\n"
			     "destinations = ( { name = \"pacs\"; aet = \"P\"; host = \"h\"; fallback = \"packs\"; } );\n"
			     "routes = ( { name = \"r\"; protocols = [ \"dbt-osemm\" ]; destinations = [ \"pax\" ]; } );\n",
			     "t.conf", keep, &p, &c, &err),
		-EINVAL);
	if (p.n != 4)
		fail_msg("%zu problems, first: %s", p.n, p.text[0]);
	assert_non_null(strstr(p.text[0], "t.conf:1: key 'bogus'"));
	assert_non_null(strstr(p.text[1],
			       "t.conf:3: key 'protocols' of route 'r': \"dbt-osemm\" does not exist, did you mean 'dbt-osem'?"));
	assert_non_null(strstr(p.text[2], "t.conf:3: key 'destinations' of route 'r': \"pax\" does not exist"));
	assert_non_null(strstr(p.text[3], "t.conf:2: key 'fallback' of destination 'pacs': \"packs\" does not exist"));
	bad("destinations = ( { name = \"a b\"; } );\nroutes = ( { name = \"r\"; protocols = [ \"dbt-osem\" ]; destinations = [ "
	    "\"a\" "
	    "]; } );",
	    "t.conf:1: key 'name' of a destination", "");
	bad("protocols = ( { name = \"p\"; kind = \"x\"; } );\n"
	    "routes = ( { name = \"r\"; protocols = [ \"p\" ]; destinations = [ \"pacs\" ]; } );",
	    "t.conf:1: key 'kind' of protocol 'p'", "");
}

/* libconfig drops the upper bits of integers without the suffix L: 10000000000 was 1410065408, 4294967297 port 1. */
TEST(test_large_integers)
{
	struct config *c = NULL;
	struct err err = {0};

	bad("node = { port = 4294967297; };", "t.conf:1: key 'port' of node: 4294967297; allowed", "65535");
	bad("node = { port = -4294967295; };", "t.conf:1: key 'port' of node: -4294967295; allowed", "65535");
	bad("node = { port = 0x100000001; };", "t.conf:1: key 'port' of node: 4294967297; allowed", "65535");
	bad("node = { port = 99999999999999999999; };", "t.conf:1: key 'port' of node: 9223372036854775807 or more; allowed",
	    "65535");
	bad("node = { port = -99999999999999999999; };", "t.conf:1: key 'port' of node: -9223372036854775807; allowed", "65535");
	bad("node = { reserve = 0xFFFFFFFFFFFFFFFFFF; };",
	    "t.conf:1: key 'reserve' of node: 9223372036854775807 or more; allowed", "");
	assert_int_equal(
		config_parse("node = { reserve = 10000000000; /* 20000000000 */ peer_bytes = 0x200000000; # 30000000000\n"
			     " retention_space = 40000000000L; spool = \"/50000000000\"; peer_window = 1e2; };",
			     "t.conf", NULL, NULL, &c, &err),
		0);
	assert_int_equal(c->node.reserve, 10000000000);
	assert_int_equal(c->node.peer_bytes, 0x200000000);
	assert_int_equal(c->node.retention_space, 40000000000);
	assert_string_equal(c->node.spool, "/50000000000");
	config_free(c);
}

TEST(test_long_texts)
{
	char text[4096], name[1200];

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

static char folder[64];

static void write_file(const char *name, const char *text)
{
	test_put_file(test_path(folder, name), text, strlen(text));
}

/* A destination of kind stow among the keys: `more` after a URL. */
#define WEB(more) "destinations = ( { name = \"pacs\"; kind = \"stow\"; " more " } );"
#define FOLDER(more) "destinations = ( { name = \"pacs\"; kind = \"folder\"; " more " } );"
#define HTTPS "url = \"https://pacs.example.org/dicom-web\"; authorities = \"/ca\"; "

TEST(test_destination_kinds)
{
	static const struct {
		const char *text, *start, *part;
	} cases[] = {
		{WEB(""), "t.conf:1: key 'url' of destination 'pacs': \"\"", "https://HOST"},
		{WEB("url = \"ftp://h/\";"), "t.conf:1: key 'url' of destination 'pacs': \"ftp://h/\"", "neither https nor http"},
		{WEB("url = \"https://h/\";"), "t.conf:1: key 'authorities' of destination 'pacs': \"\"", "with TLS"},
		{WEB(HTTPS "aet = \"A\";"), "t.conf:1: key 'aet' of destination 'pacs': only destinations of kind dicom have it",
		 ""},
		{WEB(HTTPS "commitment = true;"),
		 "t.conf:1: key 'commitment' of destination 'pacs': only destinations of kind dicom", "this one is of kind stow"},
		{WEB(HTTPS "verify = \"authority\";"), "t.conf:1: key 'verify' of destination 'pacs': only", ""},
		{"destinations = ( { name = \"pacs\"; kind = \"http\"; } );",
		 "t.conf:1: key 'kind' of destination 'pacs': \"http\"", "dicom, stow, folder"},
		{WEB("url = \"http://pacs.example.org/\"; credentials = \"/t\";"),
		 "t.conf:1: key 'credentials' of destination 'pacs': ", "without encryption to pacs.example.org"},
		{WEB("url = \"http://pacs.example.org/\"; authorities = \"/ca\";"),
		 "t.conf:1: key 'url' of destination 'pacs': http has no encryption", "allowed: an https URL"},
		{"destinations = ( { name = \"pacs\"; aet = \"A\"; host = \"h\"; url = \"https://h/\"; } );",
		 "t.conf:1: key 'url' of destination 'pacs': only destinations of kind stow have it",
		 "this one is of kind dicom"},
		{"destinations = ( { name = \"pacs\"; credentials = \"/t\"; } );",
		 "t.conf:1: key 'credentials' of destination 'pacs': only destinations of kind stow", ""},
		{FOLDER(""), "t.conf:1: key 'path' of destination 'pacs' is missing", "absolute path"},
		{FOLDER("path = \"/d\"; port = 104;"), "t.conf:1: key 'port' of destination 'pacs': only",
		 "this one is of kind folder"},
		{"node = { spool = \"/s\"; };" FOLDER("path = \"/s/outbox\";"),
		 "t.conf:1: key 'path' of destination 'pacs': /s/outbox is", "own spool"},
		{FOLDER("path = \"/d\"; crl = \"/c\";"),
		 "t.conf:1: key 'crl' of destination 'pacs': only destinations of kind dicom stow", ""},
	};
	struct config *c;

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		bad(cases[i].text, cases[i].start, cases[i].part);
	c = good(WEB(HTTPS "credentials = \"/t\"; answer_timeout = 7;"));
	assert_int_equal(c->destinations[0].kind, DESTINATION_STOW);
	assert_string_equal(c->destinations[0].host, "pacs.example.org");
	assert_string_equal(c->destinations[0].aet, ""); /* not that of the embedded entry */
	assert_int_equal(c->destinations[0].port, 443);
	assert_int_equal(c->destinations[0].answer_timeout, 7);
	assert_true(c->destinations[0].tls && c->destinations[0].verify_name);
	c = good(WEB("url = \"http://127.0.0.1:8042/dicom-web\"; credentials = \"/t\";"));
	assert_true(!c->destinations[0].tls && c->destinations[0].port == 8042);
	c = good(FOLDER("path = \"/d\";"));
	assert_true(!c->destinations[0].host[0] && !c->destinations[0].aet[0] && !c->destinations[0].commitment);
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

TEST(test_files)
{
	struct config *c = NULL;
	struct err err = {0};
	char path[256], name[512], *text = NULL;

	test_folder(folder, sizeof(folder));
	write_file("main.conf",
		   "node = { port = 104; };\n@include \"more.conf\" # why not\npeers = ( { name = \"late\"; aet = \"L\"; } );\n");
	write_file("more.conf", "protocols = (\n { name = \"mine\"; }\n);\n");
	snprintf(path, sizeof(path), "%s/main.conf", folder);
	assert_int_equal(config_load(path, NULL, NULL, &c, &err), 0);
	assert_string_equal(c->path, path);
	assert_non_null(config_protocol(c, "mine"));
	assert_int_equal(c->n_peers, 1);
	config_free(c);
	assert_int_equal(config_load_text(path, NULL, NULL, &c, &text, &err),
			 0); /* the text with the include inserted gives the same configuration */
	assert_non_null(strstr(text, "port = 104; };\nprotocols = (\n { name = \"mine\"; }\n);\npeers"));
	config_free(c);
	assert_int_equal(config_parse(text, "copy", NULL, NULL, &c, &err), 0);
	assert_non_null(config_protocol(c, "mine"));
	assert_int_equal(c->n_peers, 1);
	config_free(c);
	free(text);

	write_file("more.conf", "protocols = (\n { name = \"mine\"; subsets = -2; }\n);\n"); /* the problem names the included
												file and its line */
	bad_file("main.conf", "/more.conf:2: key 'subsets' of protocol 'mine': -2");
	write_file("more.conf", "\n");
	write_file("main.conf",
		   "\n@include \"more.conf\"\nnode = { port = -3; };\n"); /* after the include, the outer file and its line */
	bad_file("main.conf", "/main.conf:3: key 'port' of node: -3");
	write_file("more.conf", "\n\nnode = = 1;\n");
	bad_file("main.conf", "/more.conf:3: syntax error");
	write_file("main.conf", "\n@include \"none.conf\"\n");
	bad_file("main.conf", "/none.conf: No such file");
	write_file("main.conf", "\n\n@include \"main.conf\"\n");
	bad_file("main.conf", "main.conf:3: @include \"main.conf\": more than 8 levels of nested includes");
	write_file("main.conf", "@include more.conf\n");
	bad_file("main.conf", "main.conf:1: invalid @include");
	write_file("main.conf", "@include \"more.conf\" node = 1;\n");
	bad_file("main.conf", "main.conf:1: text after @include");
	write_file("main.conf", "@include \"/dev/zero\"\n");
	bad_file("main.conf", "/dev/zero: not a regular file");
	write_file("main.conf", "@include \".\"\n");
	bad_file("main.conf", "not a regular file");
	write_file("main.conf", "/* @include \"none.conf\"\n@include \"none.conf\"\n*/\nnode = { spool = \"/@include\"; };\n");
	assert_int_equal(config_load(path, NULL, NULL, &c, &err), 0); /* @include in a comment or a string is ignored */
	assert_string_equal(c->node.spool, "/@include");
	config_free(c);
	snprintf(name, sizeof(name), "%s/fifo", folder);
	assert_int_equal(mkfifo(name, 0600), 0);
	bad_file("fifo", "not a regular file");
	bad_file("odd\nname.conf", "odd?name.conf: No such file");
	bad_file("absent.conf", "absent.conf: No such file");
}

#define HEX "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
#define STEP(more) "steps = ( { name = \"a\"; program = \"/opt/a\"; version = \"1\"; sha256 = \"" HEX "\";" more "} );\n"
#define STEPS(kind) "protocols = ( { name = \"p\"; kind = \"" kind "\"; steps = [ \"a\" ]; } );"

TEST(test_steps)
{
	bad(STEPS("pet"), "t.conf:1: key 'steps' of protocol 'p': \"a\" does not exist", "allowed: none is there");
	bad(STEPS("dbt"), "t.conf:1: key 'steps' of protocol 'p': \"a\" does not exist", "allowed: none is there");
	bad(STEP("gpu = \"cuda:0\";"), "t.conf:1: key 'gpu' of step 'a'", "true, false");
	bad(STEP("time = 0.0;"), "t.conf:1: key 'time' of step 'a': 0; allowed: a number from 0.1 to 86400", "");
	bad(STEP("threads = 0;"), "t.conf:1: key 'threads' of step 'a': 0", "");
	bad(STEP("memory = \"1 kB\";"), "t.conf:1: key 'memory' of step 'a'", "");
	bad(STEP("on_failure = \"ignore\";"), "t.conf:1: key 'on_failure' of step 'a'", "hold, fallback, fail");
	bad(STEP("files = [ \"opt/a\" ];"), "t.conf:1: key 'files' of step 'a': \"opt/a\"", "absolute path");
	bad("steps = ( { name = \"a\"; program = \"opt/a\"; version = \"1\"; sha256 = \"" HEX "\"; } );",
	    "t.conf:1: key 'program' of step 'a': \"opt/a\"", "absolute path");
	bad("steps = ( { name = \"a\"; program = \"/opt/a\"; version = \"1\"; sha256 = \"ABC\"; } );",
	    "t.conf:1: key 'sha256' of step 'a': \"ABC\"; allowed: 64 hexadecimal digits in lower case", "");
	bad("steps = ( { name = \"a\"; program = \"/opt/a\"; version = \"1\"; } );",
	    "t.conf:1: key 'sha256' of step 'a' is missing", "");
	bad(STEP("") STEPS("pet") "cluster = { port = 4711; };", "t.conf:2: key 'steps' of protocol 'p': pilots do not run steps",
	    "port = 0");
}

TESTS_SETUP(set_spool, NULL);
