/* SPDX-License-Identifier: Apache-2.0 */
/* Position of the patient and tracer in Interfile headers. */
#include "node/base/nuclides.h"
#include "tests/node/format/interfile_fixture.h"
#include "tests/test.h"

/* GOOD, which has 33 lines, with further lines from line 33 on. */
static const char *lines(const char *text)
{
	char end[1000];

	snprintf(end, sizeof(end), "%s!END OF INTERFILE", text);
	return WITH({"!END OF INTERFILE", end});
}

static void must_refuse(const char *text, const char *sentence)
{
	struct interfile f;
	struct err err;

	assert_int_equal(parse(lines(text), &f, &err), -EBADMSG);
	if (!strstr(err.msg, sentence))
		fail_msg("'%s' is not in '%s'", sentence, err.msg);
}

TEST(test_positions)
{
	static const struct {
		const char *text, *position, *enters, *lies;
		bool other;
	} cases[] = {
		{"patient orientation := head_in\npatient rotation := supine\n", "HFS", "HF", "S", false},
		{"patient orientation := Feet In\npatient rotation := PRONE\n", "FFP", "FF", "P", false},
		{"patient orientation := feet_in\npatient rotation := left\n", "FFDL", "FF", "DL", false},
		{"patient orientation := head_in\npatient rotation := right\n", "HFDR", "HF", "DR", false},
		{"patient orientation := FFS\n", "FFS", "FF", "S", false},
		{"patient orientation := HFDL\npatient rotation := left\n", "HFDL", "HF", "DL", false},
		{"patient orientation := HFP\npatient rotation := unknown\n", "HFP", "HF", "P", false},
		{"patient orientation := feet_in\n", "", "FF", "", false},
		{"patient rotation := prone\npatient orientation := unknown\n", "", "", "P", false},
		{"patient orientation := head_in\npatient rotation := other\n", "", "HF", "", true},
		{"patient orientation := other\npatient rotation := supine\n", "", "", "S", true},
		{"patient orientation :=\n", "", "", "", false},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct interfile f;

		must_parse(lines(cases[i].text), &f);
		assert_string_equal(f.position, cases[i].position);
		assert_string_equal(f.enters, cases[i].enters);
		assert_string_equal(f.lies, cases[i].lies);
		assert_int_equal(f.other_position, cases[i].other);
	}
	must_refuse(
		"patient orientation := feetfirst\n",
		"line 33: patient orientation := feetfirst; supported: head_in, feet_in, other, unknown; HFS, HFP, HFDR, HFDL, "
		"FFS, FFP, FFDR, FFDL");
	must_refuse("patient orientation := head_in\npatient rotation := back\n",
		    "line 34: patient rotation := back; supported: supine, prone, right, left, other, unknown");
	must_refuse("patient orientation := HFS\npatient rotation := prone\n",
		    "line 34: patient rotation := prone contradicts line 33: patient orientation := HFS");
	must_refuse("patient orientation := HFS\npatient rotation := other\n",
		    "line 34: patient rotation := other contradicts line 33: patient orientation := HFS");
	must_refuse("patient orientation := HF\n", "line 33: patient orientation := HF; supported: ");
}

TEST(test_nuclides)
{
	static const struct {
		const char *text, *name;
		double half_life, branching;
	} cases[] = {
		{"number of radionuclides := 1\nradionuclide name[1] := ^18^Fluorine\nradionuclide halflife (sec)[1] := 6584.04\n"
		 "radionuclide branching factor[1] := 0.9686\n",
		 "F18", 6584.04, 0.9686},
		{"radionuclide name := 68Ga\n", "Ga68", 67.71 * 60, NAN},
		{"isotope name := F-18\nisotope gamma halflife (sec) := 6586.2\nisotope branching factor := 0.97\n", "F18",
		 6586.2, 0.97},
		{"isotope name := F18\nradionuclide name[1] := 18F\n", "F18", 109.77 * 60, NAN},
		{"radionuclide name[1] := Carbon-11\nradionuclide halflife (sec)[1] := -1\nradionuclide branching factor[1] := "
		 "-1\n",
		 "C11", 20.364 * 60, NAN},
		{"radionuclide halflife (sec)[1] := 100\n", NULL, 100, NAN},
		{"radionuclide name[1] := unknown\n", NULL, NAN, NAN},
		{"", NULL, NAN, NAN},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const struct interfile_tracer *t;
		struct interfile f;

		must_parse(lines(cases[i].text), &f);
		t = &f.tracer;
		assert_int_equal(t->nuclide != NULL, cases[i].name != NULL);
		if (t->nuclide)
			assert_string_equal(t->nuclide->name, cases[i].name);
		assert_true(t->half_life == cases[i].half_life || (isnan(t->half_life) && isnan(cases[i].half_life)));
		assert_true(t->branching == cases[i].branching || (isnan(t->branching) && isnan(cases[i].branching)));
		assert_string_equal(f.notes, "");
	}
	must_refuse("radionuclide name[1] := F-18\nradionuclide halflife (sec)[1] := 109.77\n",
		    "line 34: radionuclide halflife (sec)[1] := 109.77 contradicts line 33: radionuclide name[1] := F-18, whose "
		    "half-life is 6586.2 s");
	must_refuse("radionuclide name[1] := F-18\nisotope name := C-11\n",
		    "line 33: radionuclide name[1] := F-18; line 34: isotope name := C-11; allowed: one of them");
	must_refuse("radionuclide halflife (sec) := 100\nisotope gamma halflife (sec) := 103\n", "allowed: one of them");
	must_refuse("radionuclide branching factor[1] := 97\n", "line 33: radionuclide branching factor[1] := 97; allowed: ");
	must_refuse("radionuclide halflife (sec)[1] := short\n", "line 33: ");
}

/* What is in the header and not used is said. */
TEST(test_notes)
{
	static const struct {
		const char *text, *note;
		double half_life;
	} cases[] = {
		{"radionuclide name[1] := Co-55\nradionuclide halflife (sec)[1] := 63108\n",
		 "radionuclide name[1] := Co-55 has no code in this program: the result has only its half-life, 63108 s.", 63108},
		{"isotope name := Xy-1\n",
		 "isotope name := Xy-1 is not known, and the header has no half-life: decay is not corrected", NAN},
		{"number of radionuclides := 2\nradionuclide name[1] := F-18\n",
		 "number of radionuclides := 2: none of them is read", NAN},
		{"calibration factor := 9432.31\n", "calibration factor := 9432.31 is not used", NAN},
		{"calibration factor := 1\n", "calibration factor := 1 is not used", NAN},
		{"calibration factor := -1\n", NULL, NAN},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct interfile f;

		must_parse(lines(cases[i].text), &f);
		assert_true(f.tracer.half_life == cases[i].half_life || (isnan(f.tracer.half_life) && isnan(cases[i].half_life)));
		if (cases[i].note ? !strstr(f.notes, cases[i].note) : f.notes[0] != '\0')
			fail_msg("notes: '%s'", f.notes);
	}
}

TEST(test_dose)
{
	struct interfile f;

	must_parse(lines("radiopharmaceutical := FDG\ntracer activity at time of injection (Bq) := 4.65e+007\n"
			 "injected volume (ml) := 0.0\n"),
		   &f);
	assert_string_equal(f.tracer.drug, "FDG");
	assert_true(f.tracer.dose == 4.65e7 && isnan(f.tracer.volume));
	must_refuse("radiopharmaceutical := F\\DG\n", "line 33: radiopharmaceutical := F\\DG; supported: ");
}

/* Nuclides in a free text. */
TEST(test_nuclides_in_names)
{
	static const char *const gallium[] = {"[68Ga]Ga-PSMA-11",
					      "68Ga-DOTATOC",
					      "68-Ga",
					      "^68^Ga",
					      "^68^Gallium",
					      "68 Ga-DOTATATE",
					      "(68)Ga-PSMA",
					      "(68) Ga",
					      "[68 Ga]PSMA-11",
					      "[68]Ga",
					      "PSMA-617 Ga^68^",
					      "Ga(68)",
					      "DOTANOC Ga (68)",
					      "Ga-68",
					      "Ga 68 chloride",
					      "PSMA Ga68",
					      "gallium-68 citrate",
					      "68 gallium",
					      "Gallium (68) PSMA-11",
					      "ga68",
					      "FAPI-46 Ga-[68]",
					      "PSMA-11 (68 Ga)",
					      "Ga^68^ edotreotide"};
	static const char *const others[][2] = {{"Tc(94m)", "Tc94m"}, {"94m Tc", "Tc94m"},	{"(94m)Tc-MIBI", "Tc94m"},
						{"^52m^Mn", "Mn52m"}, {"52mMn", "Mn52m"},	{"Copper^64^ acetate", "Cu64"},
						{"F^18^", "F18"},     {"(18)F-FDG", "F18"},	{"18 F", "F18"},
						{"Na[18F]F", "F18"},  {"ammonia (13)N", "N13"}, {"O(15) water", "O15"}};
	static const char *const none[] = {"",	     "FDG",	  "PSMA-11", "11",	"C-11111",  "PSMA-1007",
					   "68",     "Ga",	  "68 ga",   "18 FDG",	"15 of 20", "11 choline",
					   "AV-45",  "18 Fr",	  "Tc(99m)", "^99m^Tc", "I-131",    "PBR28 CX",
					   "68\nGa", "lot 11 cc", "(1)8F",   "0018F"};
	static const char both[] = "Ge(68) / [68 Ga]";
	const char *at;

	for (size_t i = 0; i < sizeof(gallium) / sizeof(gallium[0]); i++)
		if (nuclide_in_name(gallium[i], &(const char *){gallium[i]}) != nuclide_find("Ga68"))
			fail_msg("%s", gallium[i]);
	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
		if (nuclide_in_name(others[i][0], &(const char *){others[i][0]}) != nuclide_find(others[i][1]))
			fail_msg("%s", others[i][0]);
	for (size_t i = 0; i < sizeof(none) / sizeof(none[0]); i++)
		if (nuclide_in_name(none[i], &(const char *){none[i]}))
			fail_msg("%s", none[i]);
	at = both;
	assert_ptr_equal(nuclide_in_name(both, &at), nuclide_find("Ge68"));
	assert_ptr_equal(nuclide_in_name(both, &at), nuclide_find("Ga68"));
	assert_null(nuclide_in_name(both, &at));
	assert_ptr_equal(nuclide_of_drug("C-B1037"), nuclide_find("Rb82"));
	assert_ptr_equal(nuclide_of_drug("126763"), nuclide_find("Zr89"));
	assert_null(nuclide_of_drug(""));
	assert_null(nuclide_of_drug("C-B10"));
}

TEST(test_spellings)
{
	static const char *const same[] = {"F18", "f-18", "18F", "^18^Fluorine", "Fluorine 18", "F_18"};
	static const char *const other[] = {"",	    "F",    "18",   "F18F19", "1F8",	    "Fluor18",
					    "F-19", "F18m", "94Tc", "99mTc",  "F1800000000"};

	static const struct {
		const char *text, *name, *code;
		double half_life;
	} rare[] = {
		{"^90^Yttrium", "Y90", "14691008", 64.05 * 3600},   {"44Sc", "Sc44", "126600", 4.042 * 3600},
		{"Y-86", "Y86", "10738001", 14.74 * 3600},	    {"Copper 62", "Cu62", "422934004", 9.673 * 60},
		{"52manganese", "Mn52", "37225000", 5.591 * 86400}, {"52mMn", "Mn52m", "126607", 21.1 * 60},
		{"^52m^Manganese", "Mn52m", "126607", 21.1 * 60},   {"Tc-94m", "Tc94m", "424079002", 52 * 60},
		{"tb152", "Tb152", "126606", 17.5 * 3600},	    {"Ge-68", "Ge68", "53315004", 270.95 * 86400},
	};

	for (size_t i = 0; i < sizeof(same) / sizeof(same[0]); i++)
		assert_true(nuclide_find(same[i]) && !strcmp(nuclide_find(same[i])->name, "F18"));
	for (size_t i = 0; i < sizeof(other) / sizeof(other[0]); i++)
		assert_null(nuclide_find(other[i]));
	for (size_t i = 0; i < sizeof(rare) / sizeof(rare[0]); i++) {
		const struct nuclide *n = nuclide_find(rare[i].text);

		if (!n || strcmp(n->name, rare[i].name) != 0 || strcmp(n->code, rare[i].code) != 0 ||
		    strcmp(n->scheme, strlen(rare[i].code) == 6 ? "DCM" : "SCT") != 0 ||
		    fabs(n->half_life / rare[i].half_life - 1) > 1e-6 || nuclide_of_code(n->code) != n)
			fail_msg("%s", rare[i].text);
	}
	assert_string_equal(nuclide_of_code("C-162A7")->name, "Y90");
	assert_null(nuclide_of_code(""));
	assert_true(nuclide_same_half_life(17.5, 17.88) && nuclide_same_half_life(3.97, 4.042));
	assert_false(nuclide_same_half_life(9.673, 9.965)); /* Cu-62, N-13 */
	assert_true(nuclide_is_generated(nuclide_find("Cu62")->half_life, nuclide_find("Zn62")->half_life));
	assert_true(nuclide_is_generated(nuclide_find("Fe52")->half_life, nuclide_find("Mn52m")->half_life));
	assert_false(nuclide_is_generated(nuclide_find("N13")->half_life, nuclide_find("Zn62")->half_life));
}
