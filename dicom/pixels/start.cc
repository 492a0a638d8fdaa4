/* SPDX-License-Identifier: Apache-2.0 */
/* start.cc - process-wide initialisation of DCMTK: dictionary, codecs, parser settings. */
#include "dicom/pixels/start.h"

#include <cstdlib>
#include <mutex>

#include "dicom/core/internal.hh"
#include "dicom/pixels/jpegls.hh"

#include <dcmtk/dcmjpeg/djdecode.h>
#include <dcmtk/dcmjpls/djdecode.h>
#include <dcmtk/oflog/oflog.h>

using namespace tomonode;

static std::mutex start_lock;
static bool started;

int dicom_start(struct err *err)
{
	return guarded(err, "dicom_start", [&] {
		std::lock_guard<std::mutex> lock(start_lock);

		if (started)
			return 0;
		int r = jpegls_link_check(err);
		if (r < 0)
			return r;
		OFLog::configure(OFLogger::OFF_LOG_LEVEL);
		if (!dcmDataDict.isDictionaryLoaded())
			return err_set(err, ENOENT, "DCMTK finds no data dictionary (environment variable DCMDICTPATH: %s)",
				       getenv("DCMDICTPATH") ? getenv("DCMDICTPATH") : "not set");
		dcmEnableAutomaticInputDataCorrection.set(OFFalse); /* keep text as stored, byte for byte */
		dcmEnableUnknownVRConversion.set(OFFalse);	    /* keep UN values as bytes; the getters look up their VR */
		dcmAcceptOddAttributeLength.set(OFTrue);
		dcmEnableCP246Support.set(OFTrue); /* UN of undefined length: a sequence in implicit VR, as layout.cc checks it */
		dcmIgnoreParsingErrors.set(OFFalse);
		dcmAutoDetectDatasetXfer.set(OFFalse);
		dcmAcceptUnexpectedImplicitEncoding.set(OFFalse);
		DJDecoderRegistration::registerCodecs();
		DJLSDecoderRegistration::registerCodecs();
		started = true;
		return 0;
	});
}

void dicom_stop(void)
{
	guarded(nullptr, "dicom_stop", [] {
		std::lock_guard<std::mutex> lock(start_lock);

		if (started) {
			DJLSDecoderRegistration::cleanup();
			DJDecoderRegistration::cleanup();
			started = false;
		}
		return 0;
	});
}
