/* SPDX-License-Identifier: Apache-2.0 */
/* Base class of the objects that receive bytes from DCMTK's encoder or network. It always reports success and free space to
 * DCMTK; a derived class stores its error, and the caller checks it at the end. */
#ifndef TOMONODE_DICOM_CONSUMER_HH
#define TOMONODE_DICOM_CONSUMER_HH

#include <dcmtk/config/osconfig.h>
#include <dcmtk/dcmdata/dcostrma.h>

namespace tomonode
{

class Consumer : public DcmConsumer
{
      public:
	OFBool good() const override
	{
		return OFTrue;
	}
	OFCondition status() const override
	{
		return EC_Normal;
	}
	OFBool isFlushed() const override
	{
		return OFTrue;
	}
	offile_off_t avail() const override
	{
		return 1 << 30;
	}
	void flush() override
	{
	}
};

} // namespace tomonode
#endif
