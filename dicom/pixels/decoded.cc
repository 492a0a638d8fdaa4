/* SPDX-License-Identifier: Apache-2.0 */
/* decoded.cc - return the data set, encoded by DCMTK, and then the decoded frames as one stream of bytes.
 *
 * Thread t of T decodes frames t, t + T, ... into its own buffer, and waits until read() has copied it. So memory is needed for T
 * frames only, and read() does not have to wait as long as the network is slower than T cores. */
#include "dicom/pixels/decoded.hh"

#include <algorithm>
#include <cerrno>
#include <condition_variable>
#include <cstring>
#include <mutex>
#include <thread>
#include <vector>

#include "dicom/core/element.hh"
#include "dicom/core/internal.hh"
#include "dicom/core/part10.hh"
#include "dicom/pixels/pixels.h"

namespace tomonode
{

constexpr long max_threads = 8;

namespace
{

/* The buffer of one thread. */
struct Slot {
	std::vector<uint16_t> values;
	bool ready = false; /* contains a decoded frame that read() has not yet copied completely */
};

class Stream : public Decoded
{
      public:
	~Stream() override;
	int open(const char *path, bool implicit, struct err *err);
	uint64_t size() const override
	{
		return head_.size() + frame_size_ * (uint64_t)info_.frames;
	}
	int read(void *ret_bytes, size_t n, struct err *err) override;

      private:
	void decode(long first);
	int copy_frame(char *to, size_t n, struct err *err);

	struct dicom_file *file_ = nullptr;
	struct dicom_pixel_info info_ = {};
	std::string head_;
	uint64_t frame_size_ = 0, at_ = 0;
	std::vector<Slot> slots_;
	std::vector<std::thread> threads_;
	std::mutex lock_;
	std::condition_variable changed_;
	bool stop_ = false;
	int rc_ = 0;
	struct err err_ = {};
};

} // namespace

Stream::~Stream()
{
	{
		std::lock_guard<std::mutex> guard(lock_);
		stop_ = true;
	}
	changed_.notify_all();
	for (std::thread &t : threads_)
		t.join();
	dicom_close(file_);
}

int Stream::open(const char *path, bool implicit, struct err *err)
{
	int r = dicom_open(path, &file_, err);

	if (r == 0)
		r = dicom_pixels_info(file_, &info_, err);
	if (r < 0)
		return r;
	if (info_.bits_allocated != 16)
		return err_set(err, ENOTSUP, "%s: pixels of %d bits cannot be decoded for sending, only 16 bits", path,
			       info_.bits_allocated);
	frame_size_ = (uint64_t)info_.rows * (uint64_t)info_.columns * 2;
	if (frame_size_ > 0xfffffffeu / (uint64_t)info_.frames)
		return err_set(err, EFBIG, "%s: %ld frames of %ld x %ld: more than 4 GiB - 2 bytes when decoded", path,
			       info_.frames, info_.columns, info_.rows);
	delete file_->dataset.remove(DCM_PixelData); /* replaced by the decoded frames */
	if (file_->dataset.card() > 0 && file_->dataset.getElement(file_->dataset.card() - 1)->getTag().getXTag() > DCM_PixelData)
		return err_set(err, ENOTSUP, "%s: an object with elements after the pixel data cannot be decoded for sending",
			       path);
	r = dataset_bytes(file_, implicit, &head_, err);
	if (r < 0)
		return r;
	put_element(&head_, tag_pixel_data, implicit ? "" : "OW", (uint32_t)(frame_size_ * (uint64_t)info_.frames));

	long n = std::clamp<long>((long)std::thread::hardware_concurrency(), 1, std::min(max_threads, info_.frames));
	slots_.resize((size_t)n);
	for (Slot &slot : slots_)
		slot.values.resize((size_t)frame_size_ / 2);
	for (long t = 0; t < n; t++)
		threads_.emplace_back(&Stream::decode, this, t);
	return 0;
}

void Stream::decode(long first)
{
	Slot &slot = slots_[(size_t)first];

	for (long k = first; k < info_.frames; k += (long)slots_.size()) {
		std::unique_lock<std::mutex> guard(lock_);
		struct err err = {};
		int r;

		changed_.wait(guard, [&] { return stop_ || rc_ < 0 || !slot.ready; });
		if (stop_ || rc_ < 0)
			return;
		guard.unlock();
		r = dicom_read_frame(file_, k, slot.values.data(), &err);
		guard.lock();
		if (r < 0 && rc_ == 0) {
			rc_ = r;
			err_ = err;
		}
		slot.ready = r == 0;
		changed_.notify_all();
	}
}

/* Copy the next n bytes, which are all in one frame. Wait until it is decoded. */
int Stream::copy_frame(char *to, size_t n, struct err *err)
{
	uint64_t in = at_ - head_.size(), offset = in % frame_size_;
	Slot &slot = slots_[(size_t)(in / frame_size_) % slots_.size()];
	std::unique_lock<std::mutex> guard(lock_);

	changed_.wait(guard, [&] { return rc_ < 0 || slot.ready; });
	if (!slot.ready) {
		if (err)
			*err = err_;
		return rc_;
	}
	guard.unlock();
	memcpy(to, reinterpret_cast<const char *>(slot.values.data()) + offset, n);
	if (offset + n < frame_size_)
		return 0;
	guard.lock();
	slot.ready = false; /* the thread may decode its next frame, T positions later */
	changed_.notify_all();
	return 0;
}

int Stream::read(void *ret_bytes, size_t n, struct err *err)
{
	char *to = static_cast<char *>(ret_bytes);

	if (n > size() - at_)
		return err_set(err, EINVAL, "%zu bytes at %llu of %llu", n, (unsigned long long)at_, (unsigned long long)size());
	while (n > 0) {
		size_t part = n;

		if (at_ < head_.size()) {
			part = std::min<size_t>(part, head_.size() - (size_t)at_);
			memcpy(to, head_.data() + at_, part);
		} else {
			part = (size_t)std::min<uint64_t>(part, frame_size_ - (at_ - head_.size()) % frame_size_);
			int r = copy_frame(to, part, err);

			if (r < 0)
				return r;
		}
		to += part;
		at_ += part;
		n -= part;
	}
	return 0;
}

bool decoded_supports(const char *transfer_syntax)
{
	return !strcmp(transfer_syntax, UID_JPEGLSLosslessTransferSyntax);
}

int decoded_open(const char *path, bool implicit, std::unique_ptr<Decoded> *ret_decoded, struct err *err)
{
	return guarded(err, "decoded_open", [&] {
		auto stream = std::make_unique<Stream>();
		int r = stream->open(path, implicit, err);

		if (r == 0)
			*ret_decoded = std::move(stream);
		return r;
	});
}

} // namespace tomonode
