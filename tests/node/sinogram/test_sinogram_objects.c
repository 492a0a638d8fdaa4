/* SPDX-License-Identifier: Apache-2.0 */
/* Objects of one acquisition that say something else about the patient, the tracer and the data. */
#include "tests/node/sinogram/sinogram_fixture.h"
#include "tests/test.h"

static void change(const char *name, uint32_t tag, const char *value)
{
	const bool tracer = tag >> 16 == 0x0018 && (tag & 0xFF00) == 0x1000;
	struct dicom_file *file = NULL;
	struct err err = {0};
	struct dicom_item *item;

	assert_done(dicom_open(in_folder(name), &file, &err), &err);
	item = tracer ? dicom_item_at(dicom_root(file), TAG_RADIOPHARMACEUTICAL_INFORMATION_SEQUENCE, 0) : dicom_root(file);
	if (dicom_put_text(item, tag, value, &err) < 0 || dicom_write(in_folder(name), file, &err) < 0)
		fail_msg("%s", err.msg);
	dicom_close(file);
}

#define HALF_LIFE TAG_RADIONUCLIDE_HALF_LIFE
#define DOSE TAG_RADIONUCLIDE_TOTAL_DOSE
#define INJECTED TAG_RADIOPHARMACEUTICAL_START_DATE_TIME
#define POSITION TAG_PATIENT_POSITION

TEST(test_objects_agree, .teardown = clean)
{
	static const struct {
		const char *name;
		uint32_t tag;
		const char *value, *says; /* says: NULL: accepted */
		char *set;		  /* of all objects; NULL: nothing more */
	} cases[] = {
		{"attenuation-0001.dcm", POSITION, "HFP",
		 "attenuation-0001.dcm (ATTENUATION) has the patient's position HFP, emission-0001.dcm (EMISSION) HFS"},
		{"attenuation-0003.dcm", POSITION, "FFS", "attenuation-0003.dcm (ATTENUATION) has the patient's position FFS"},
		{"attenuation-0001.dcm", POSITION, "", NULL},
		{"attenuation-0001.dcm", TAG_PATIENT_WEIGHT, "76", NULL},
		{"attenuation-0001.dcm", TAG_PATIENT_WEIGHT, "90",
		 "attenuation-0001.dcm (ATTENUATION) has the Patient's Weight (0010,1030), kg, 90, emission-0001.dcm (EMISSION) 70: "
		 "they are not of one acquisition, or one is wrong; correct the wrong value at its source, or empty it"},
		{"attenuation-0001.dcm", TAG_PATIENT_WEIGHT, "3.4", NULL, "PatientWeight=3"}, /* a newborn */
		{"attenuation-0001.dcm", TAG_PATIENT_WEIGHT, "16", "kg, 16, emission-0001.dcm (EMISSION) 20", "PatientWeight=20"},
		{"attenuation-0001.dcm", HALF_LIFE, "23408352", NULL}, /* a rod of Ge-68 */
		{"additive-0001.dcm", POSITION, "HFDR", "(ADDITIVE) has the patient's position HFDR"},
		{"additive-0002.dcm", HALF_LIFE, "4062.6",
		 "(ADDITIVE) has the half-life, s, 4062.6, emission-0001.dcm (EMISSION) 6586"},
		{"additive-0002.dcm", HALF_LIFE, "6588", NULL},
		{"additive-0002.dcm", DOSE, "3e8",
		 "(ADDITIVE) has the dose, Bq, 300000000, emission-0001.dcm (EMISSION) 370000000"},
		{"additive-0002.dcm", TAG_CORRECTED_IMAGE, "NORM", NULL},
		{"normalisation-0001.dcm", POSITION, "HFP", NULL},
		{"multiplicative-0001.dcm", POSITION, "HFP", NULL},
		{"emission-0002.dcm", POSITION, "HFP",
		 "emission-0002.dcm (EMISSION) has the patient's position HFP, emission-0001.dcm (EMISSION) HFS"},
		{"emission-0003.dcm", TAG_PATIENT_WEIGHT, "71",
		 "emission-0003.dcm (EMISSION) has the Patient's Weight (0010,1030), kg, 71"},
		{"emission-0002.dcm", TAG_DOSE_CALIBRATION_FACTOR, "0.5", "has the Dose Calibration Factor (0054,1322) 0.5"},
		{"emission-0002.dcm", INJECTED, "20260601090100", "has the time of injection 20260601090100, emission-0001.dcm"},
		{"emission-0002.dcm", INJECTED, "20260601090000.000", NULL},
		{"emission-0002.dcm", TAG_ACQUISITION_TIME, "101600",
		 "emission-0002.dcm (EMISSION) has the start of the acquisition 101600, emission-0001.dcm (EMISSION) 101500"},
		{"emission-0003.dcm", TAG_ACQUISITION_DATE, "20260602", "has the date of the acquisition 20260602"},
		{"emission-0003.dcm", TAG_ACQUISITION_TIME, "", NULL},
		{"emission-0003.dcm", TAG_ACQUISITION_TIME, "101500.000", NULL},
		{"emission-0002.dcm", TAG_ACTUAL_FRAME_DURATION, "300000",
		 "has the Actual Frame Duration (0018,1242), s, 300, emission-0001.dcm (EMISSION) 600"},
		{"emission-0002.dcm", TAG_ACTUAL_FRAME_DURATION, "600001", NULL},
		{"emission-0002.dcm", TAG_ACTUAL_FRAME_DURATION, "605000", NULL},
		{"emission-0002.dcm", TAG_ACTUAL_FRAME_DURATION, "607000", "s, 607, emission-0001.dcm (EMISSION) 600"},
		{"emission-0002.dcm", TAG_ACTUAL_FRAME_DURATION, "9000", NULL, "ActualFrameDuration=10000"},
		{"additive-0002.dcm", TAG_ACQUISITION_TIME, "101600", NULL},
	};
	char *set[N_BASICS + 2];

	memcpy(set, basics, sizeof(basics));
	set[N_BASICS] = "RadiopharmaceuticalStartDateTime=20260601090000";
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		set[N_BASICS + 1] = cases[i].set ? cases[i].set : set[N_BASICS];
		write_objects(ALL, 300, N_BASICS + 2, set); /* 640 bytes of each role in 3 chunks */
		change(cases[i].name, cases[i].tag, cases[i].value);
		if (cases[i].says) {
			must_refuse(EBADMSG, cases[i].says);
		} else {
			struct err err;
			struct sinogram *s = open_all(&err);

			if (!s)
				fail_msg("case %zu: %s", i, err.msg);
			sinogram_close(s);
		}
		list_folder(true);
	}
}

TESTS_SETUP(make_folder, remove_folder);
